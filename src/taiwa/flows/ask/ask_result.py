"""The result of the documents stage of a turn: a typed value, its JSON form in the findings of the turn, and the text for the user.

`AskResult.to_json` and `AskResult.of` are the one codec of the keys; `CITATION_KEYS` and `PASSAGE_KEYS` list those of its parts. The
text is plain, in the language of the user. Texts of documents and models are on separate lines, without anything that could begin
another line or that a Markdown or HTML viewer would load or run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypeVar, cast

from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    Act,
    AdviceKind,
    Advise,
    Ask,
    ClarificationState,
    ClarifyOptions,
    Decision,
    HandOver,
    HandoverCase,
    Option,
    Search,
    UserProfile,
)
from taiwa.i18n import Translate, dialogue_catalogue, gettext_noop
from taiwa.kernel.errors import CorruptError
from taiwa.kernel.messages import Passage, passage_key
from taiwa.kernel.serialization import Json, record, restore, tag_of, value
from taiwa.kernel.text import CONTROL

T = TypeVar("T")

ADVICE: Mapping[AdviceKind, str] = {
    "greeting": gettext_noop("Hello. What would you like to know?"),
    "thanks": gettext_noop("You are welcome."),
    "farewell": gettext_noop("Goodbye."),
    "command": gettext_noop("There is nothing to stop or change here. What would you like to know?"),
    "chat": gettext_noop("I look things up in documents. What would you like to know?"),
    "consultation": gettext_noop("The documents do not help with this; please speak to someone responsible."),
}
"""The replies without a search."""

HOW_TO_REPLY = gettext_noop("(reply with a number, in your own words, or “just answer”)")

MORE = gettext_noop("There is more about this. Please say which one you mean:")

INDENT = "    "

HEADING = re.compile(r"\s*#{1,6} [^\n]*\n")

SNIPPET = 300
"""Characters of a passage to show around a quotation."""

BEFORE = 80

NUMBER = attrgetter("number")

GAP = re.compile(r"\s+|(?<=[。！？])")


@value(tag="citation")
class Citation:
    """The words of a source from the character offset `start` to `end`.

    `number` refers to the passage within the answer; `passage` is its permanent key.
    """

    number: int
    passage: str
    source: str
    words: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int = 0


def make_citation(passage: Passage, start: int, end: int, number: int) -> Citation:
    """Cite a part of a passage; the offsets `start` and `end` are within it."""
    begin = passage.start + start
    return Citation(
        number, passage_key(passage), passage.source, passage.text[start:end], begin, passage.start + end,
        passage.heading, passage.page,
    )  # fmt: skip


@value(tag="claim")
class Claim:
    """One statement of an answer; without citations it is the model's own words."""

    text: str
    citations: tuple[Citation, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether words of a passage support it."""
        return bool(self.citations)

    @property
    def numbers(self) -> str:
        """The numbers of its citations, each once: `[1][3]`."""
        return "".join(f"[{number}]" for number in dict.fromkeys(each.number for each in self.citations))


AnswerSource: TypeAlias = Literal["generated", "extractive"]


@value(tag="answer")
class Answer:
    """An answer from documents.

    `documented` is false if they do not answer the question. `source`: a model wrote the answer (`generated`), or it is sentences of
    the passages alone (`extractive`). `doubted`: the model that read the passages found no answer in them.
    """

    query: str
    claims: tuple[Claim, ...] = ()
    passages: tuple[Passage, ...] = ()
    documented: bool = True
    source: AnswerSource = "generated"
    doubted: bool = False

    @property
    def sources(self) -> tuple[Citation, ...]:
        """The first citation of each cited passage, by number."""
        first = {each.number: each for each in reversed(self.citations)}
        return tuple(first[number] for number in sorted(first))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations in the order of the claims."""
        return tuple(each for claim in self.claims for each in claim.citations)

    @property
    def text(self) -> str:
        """The claims, one per line, with the numbers of the passages that support them."""
        return "\n".join(f"{claim.text} {claim.numbers}".strip() for claim in self.claims)


TARGET = r"\((?P<to>(?:[^()\s]|\([^()]*\))*)(?:[^()]|\([^()]*\))*\)"

IMAGE = re.compile(rf"!\[(?P<words>[^\]\[]*)\](?:{TARGET}|\[[^\]]*\])")

LINK = re.compile(rf"(?<!!)\[(?P<words>[^\]\[]*)\]{TARGET}")

URL = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|www\.|data:|javascript:|mailto:)[^\s<>\"'）」』】\])]*", re.IGNORECASE
)

CITATION_NUMBER = re.compile(r"[\[【［]\s*(?:\d{1,3}(?:\s*[,、，-]\s*\d{1,3})*)\s*[\]】］]")

TAG = re.compile(r"<(?=[a-zA-Z/!|])")

REMOVED = "[…]"

PUNCTUATION = ".,;:!?。、，；：！？"


def safe_line(text: str, sources: str = "") -> str:
    """Make a model's text about documents safe to show on one line.

    Images, tags, invisible characters, numbers that look like citations, and URLs that the sources do not contain are removed.

    >>> safe_line("See ![x](https://a.example/?q=1) [here](https://b.example) [2] now", "go to https://b.example")
    'See x here (https://b.example) now'
    """
    line = " ".join(CONTROL.sub("", text).split())
    line = IMAGE.sub(lambda image: image["words"], line)
    line = LINK.sub(lambda link: f"{link['words']} ({link['to']})" if link["to"] else link["words"], line)
    line = URL.sub(lambda url: url[0] if url[0].rstrip(PUNCTUATION) in sources else REMOVED, line)
    return " ".join(TAG.sub("‹", CITATION_NUMBER.sub("", line)).split())


def _text_tuple(data: Json) -> tuple[str, ...]:
    return tuple(map(str, cast("list[Json]", data)))


def _integer(data: Json) -> int:
    return int(str(data or 0))


Keys: TypeAlias = Mapping[str, tuple[str, Callable[[Json], object]]]
"""By JSON key: its attribute, and how to read its value."""

CITATION_KEYS: Keys = {
    "number": ("number", _integer), "id": ("passage", str), "path": ("source", str), "heading": ("heading", _text_tuple),
    "page": ("page", _integer), "start": ("start", _integer), "end": ("end", _integer), "words": ("words", str),
}  # fmt: skip

PASSAGE_KEYS: Keys = {
    "id": ("id", str), "path": ("source", str), "heading": ("heading", _text_tuple), "page": ("page", _integer),
    "start": ("start", _integer), "end": ("end", _integer), "score": ("score", lambda data: float(str(data))),
}  # fmt: skip


@value(tag="ask-turn-options")
class AskTurnOptions:
    """Options of the documents stage of a turn.

    `terms` names the analyzer that defines a term, and `notice` is reported before the turn. With `quote` a model answers with whole
    sentences of the passages, and cannot write anything else if its server has masks.
    """

    clarify: ClarifyOptions = ClarifyOptions()
    profile: UserProfile = ANONYMOUS_USER
    terms: str = ""
    notice: str = ""
    quote: bool = False

    @property
    def is_extractive(self) -> bool:
        """Whether answers are sentences of the passages, without a model."""
        return self.clarify.assess_by == "no-model"


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that a turn found: its position and score. Its text is in the index.

    `start` and `end` are character offsets within the document; `page` is 0 where the document has none.
    """

    id: str
    source: str
    heading: tuple[str, ...]
    page: int
    start: int
    end: int
    score: float

    @classmethod
    def of(cls, passage: Passage) -> "FoundPassage":
        """Return the reference to a passage."""
        end = passage.end
        score = round(passage.score, 4)
        return cls(passage.id, passage.source, passage.heading, passage.page, passage.start, end, score)


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a turn searched for, and found: the question, the queries that it was searched by, and the passages."""

    query: str = ""
    queries: tuple[str, ...] = ()
    passages: tuple[FoundPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class AskResult:
    """The outcome of the documents stage of one turn.

    `is_uncertain` marks an extractive answer with weak evidence. `answer.passages` is empty in a result that was read from a store: texts of passages are not stored.
    `words` is the reply of a model that does more than answer from documents: its claims are a part of it.
    """

    decision: Decision
    clarification: ClarificationState
    language: str
    look_up: LookUp = LookUp()
    answer: Answer | None = None
    case: HandoverCase | None = None
    is_uncertain: bool = False
    turn_options: AskTurnOptions | None = None
    words: str = ""

    @property
    def act(self) -> Act:
        """The act that was decided."""
        return self.decision.act

    @property
    def passages(self) -> tuple[FoundPassage, ...]:
        """The passages that were found."""
        return self.look_up.passages

    @property
    def options(self) -> tuple[Option, ...]:
        """What is offered to the user, with a clarifying question or beside an answer."""
        return self.act.options if isinstance(self.act, Ask) else self.clarification.offered

    @property
    def is_answered(self) -> bool:
        """Whether the documents answer the question, and the evidence is not weak."""
        return self.answer is not None and self.answer.documented and not self.is_uncertain

    @property
    def act_name(self) -> str:
        """The name of the act in JSON: `ask`, `search`, `hand_over` or `advise`."""
        return tag_of(type(self.act)).replace("-", "_")

    @property
    def evidence(self) -> dict[str, Json]:
        """The figures of the evidence, rounded; empty if the retriever cannot measure them."""
        evidence = self.decision.situation.found.evidence
        if evidence is None:
            return {}
        words = {name: list[Json](getattr(evidence, name)) for name in ("unknown", "unresolved_references")}
        figures = {name: round(getattr(evidence, name), 4) for name in ("passages", "found", "coverage", "top", "nqc")}
        return {**figures, **{name: each for name, each in words.items() if each}}

    @property
    def scores(self) -> dict[str, Json]:
        """The scores and questions of the assessment; empty if no model assessed the dialogue."""
        assessment = self.decision.situation.assessment
        if assessment is None:
            return {}
        reply: dict[str, Json] = {"reply": assessment.reply} if assessment.reply else {}
        return {**dict(assessment.scores), **dict(assessment.questions), **reply, "source": assessment.source}

    def __str__(self) -> str:
        return self.answer_text

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the text for the user, with its sources."""
        return self.render_text()

    @property
    def question_back(self) -> str:
        """The clarifying question; empty if there is none."""
        return self.act.question if isinstance(self.act, Ask) else ""

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The citations of all claims of the answer, in their order."""
        return () if self.answer is None else self.answer.citations

    @property
    def answer_text(self) -> str:
        """The text that later turns see: the clarifying question, the reply, or the claims, without their sources."""
        if isinstance(self.act, Ask):
            return self.act.question
        return self.words or _claims_text(self.answer)

    def to_json(self) -> dict[str, Json]:
        """Write the result as `documents` among the findings of its turn; empty parts are omitted."""
        decision = self.decision
        whole: dict[str, Json] = {
            "act": self.act_name,
            "policy": decision.policy,
            "reasons": list[Json](decision.reasons),
            "language": self.language,
            "numbers": dict[str, Json](decision.numbers),
            "scores": self.scores,
            "evidence": self.evidence,
            "query": self.look_up.query,
            "queries": list[Json](self.look_up.queries),
            "passages": [_to_json(passage, PASSAGE_KEYS) for passage in self.passages],
            "options": [{"label": each.label, "count": each.count, "preview": each.preview} for each in self.options],
            "assumption": self.act.assumption if isinstance(self.act, Search) else "",
            "case": None if self.case is None else record(self.case),
            **(_answer_to_json(self.answer) if self.answer is not None else {}),
            "answer": self.answer_text,
            "is_uncertain": self.is_uncertain or None,
            "clarification": record(self.clarification),
            "decision": record(replace(decision, situation=replace(decision.situation, dialogue=()))),
            "turn_options": None if self.turn_options is None else record(replace(self.turn_options, notice="")),
        }
        return {name: part for name, part in whole.items() if part not in (None, "", [], {})}

    @classmethod
    def of(cls, findings: Json) -> "AskResult | None":
        """Read the result from the findings of a turn; None for a turn without documents.

        The decision has no dialogue: that is in the turns before.

        Raises:
            CorruptError: a part is malformed.
        """
        data = documents_of(findings)
        if data is None:
            return None
        try:
            return cls._of(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"cannot read the findings of a turn: {type(error).__name__}: {error}") from None

    @classmethod
    def _of(cls, data: dict[str, Json]) -> "AskResult":
        decision = _restored(data["decision"], Decision)
        clarification = _restored(data["clarification"], ClarificationState)
        case = _restored(data["case"], HandoverCase) if "case" in data else None
        query, queries = str(data.get("query", "")), _text_tuple(data.get("queries", []))
        passages = tuple(_from_json(FoundPassage, each, PASSAGE_KEYS) for each in _list(data.get("passages", [])))
        answer = _answer_from_json(query, data) if "documented" in data else None
        text = str(data.get("answer", ""))
        return cls(
            decision, clarification, str(data.get("language", "")), LookUp(query, queries, passages), answer, case,
            data.get("is_uncertain") is True, options_of(data),
            "" if isinstance(decision.act, Ask) or text == _claims_text(answer) else text,
        )  # fmt: skip

    def render_text(self) -> str:
        """Return the text for the user, in the language of the dialogue."""
        act = self.act
        sentence = dialogue_catalogue(self.language, self.decision.situation.wording.catalogue_version)
        if self.words:
            return "\n\n".join(self._blocks(sentence))
        if isinstance(act, Ask):
            hint = (sentence(HOW_TO_REPLY),) if act.options else ()
            return "\n".join((_line(act.question), *_options(act.options), *hint))
        if isinstance(act, HandOver):
            head = sentence("This question needs a human. The case so far:")
            return "\n".join((head, *(_case(self.case, sentence) if self.case else ())))
        if isinstance(act, Advise):
            return sentence(ADVICE[act.kind])
        return "\n\n".join(self._blocks(sentence))

    def remarks(self, sentence: Translate) -> tuple[str, ...]:
        """Return the texts before the claims: what is assumed, and whether the documents answer."""
        act, answer, before = self.act, self.answer, list[str]()
        if isinstance(act, Search) and act.assumption:
            before.append(_line(f"({act.assumption})"))
        if answer is not None and not answer.documented and not answer.claims:
            before.append(sentence("The documents do not say."))
        elif self.is_uncertain:
            before.append(sentence("The documents may not cover this. The closest passages are:"))
        return tuple(before)

    def _blocks(self, sentence: Translate) -> Iterator[str]:
        answer = self.answer
        if self.words:
            yield self.words
            if answer is not None and answer.claims:
                yield from _sources(answer, sentence)
        elif answer is None or not answer.passages:
            yield sentence("The documents that you may see contain nothing about this.")
        else:
            yield from self.remarks(sentence)
            if answer.claims:
                yield "\n".join(_claim(claim, sentence) for claim in answer.claims)
                yield from _sources(answer, sentence)
        if self.options:
            head = sentence(MORE)
            yield "\n".join((head, *_options(self.options)))


def documents_of(findings: Json) -> dict[str, Json] | None:
    """Return the documents in the findings of a turn, or None."""
    data = findings.get("documents") if isinstance(findings, dict) else None
    return data if isinstance(data, dict) else None


def options_of(data: Mapping[str, Json]) -> AskTurnOptions | None:
    """Return the options of a turn from its result or from its run; None if they are not recorded.

    Raises:
        CorruptError: they are malformed.
    """
    options = data.get("turn_options")
    return None if options is None else _restored(options, AskTurnOptions)


def format_source(citation: Citation, sentence: Translate) -> str:
    """Return the source of a citation: path, headings, page.

    >>> from taiwa.i18n import dialogue_catalogue
    >>> format_source(Citation(1, "a#0", "a.pdf", "w", 0, 1, ("Leave", "Sick"), 3), dialogue_catalogue("en"))
    'a.pdf › Leave › Sick, page 3'
    """
    page = ", " + sentence("page {number}", number=citation.page) if citation.page else ""
    return _line(" › ".join((citation.source, *citation.heading))) + page


def _claims_text(answer: Answer | None) -> str:
    return "" if answer is None else "\n".join(claim.text for claim in answer.claims)


def _claim(claim: Claim, sentence: Translate) -> str:
    return _line(claim.text) + " " + (claim.numbers or sentence("(the model's own words)"))


def _sources(answer: Answer, sentence: Translate) -> Iterator[str]:
    """Yield the block of source and snippet of each cited passage, with the quotations in brackets; nothing without citations."""
    passages, lines = {passage_key(passage): passage for passage in answer.passages}, list[str]()
    for number, cited in groupby(sorted(answer.citations, key=NUMBER), key=NUMBER):
        first, *more = cited
        passage = passages[first.passage]
        marks = [(each.start - passage.start, each.end - passage.start) for each in (first, *more)]
        lines += [f"[{number}] {format_source(first, sentence)}", INDENT + _snippet(passage.text, marks)]
    if lines:
        yield "\n".join(lines)


UNMARKED = str.maketrans("⟦⟧", "[]")


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """Return a part of a passage around its first mark, on one line, without its heading, with the marks in brackets."""
    text = text.translate(UNMARKED)  # a document marks no quotation
    heading = HEADING.match(text)
    first = min(start for start, _ in marks)
    top = min(heading.end() if heading else 0, first)
    begin = top if len(text) - top <= SNIPPET else max(first - BEFORE, top)
    if top < begin < first:
        gap = GAP.search(text, begin, first)
        begin = gap.end() if gap else begin
    end = min(begin + SNIPPET, len(text))
    shown, at = "", begin
    for start, stop in _merged(marks):
        if start < end:
            shown += f"{text[at:start]}⟦{text[start : min(stop, end)]}⟧"
            at = min(stop, end)
    return _line(("…" if begin > top else "") + shown + text[at:end] + ("…" if end < len(text) else ""))


def _merged(marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the marks in order; merge adjacent ones."""
    begin, stop = min(marks)
    for start, end in sorted(marks):
        if start > stop:
            yield begin, stop
            begin = start
        stop = max(stop, end)
    yield begin, stop


def _options(options: Sequence[Option]) -> Iterator[str]:
    for number, option in enumerate(options, 1):
        yield _line(f"{INDENT}{number}. {option.label} ({option.count})", INDENT)


def _case(case: HandoverCase, sentence: Translate) -> Iterator[str]:
    if not case.searched:
        yield _line(case.query, INDENT)
    for query in case.searched:
        yield INDENT + sentence("searched for: {text}", text=_line(query))
    if case.missing:
        yield INDENT + sentence("missing: {text}", text=_line(", ".join(case.missing)))
    for passage in case.passages:
        yield INDENT + _line("· " + " › ".join((passage.source, *passage.heading)))


def _line(text: str, indent: str = "") -> str:
    """Return a text on one line, without invisible characters and anything that Markdown or HTML would load or run."""
    return indent + TAG.sub("‹", " ".join(CONTROL.sub("", text).split()).replace("![", "! [").replace("](", "] ("))


def _answer_to_json(answer: Answer) -> dict[str, Json]:
    claims: list[Json] = [
        {"text": each.text, "supported": each.supported, "citations": [_to_json(one, CITATION_KEYS) for one in each.citations]}
        for each in answer.claims
    ]  # fmt: skip
    return {
        "documented": answer.documented, "source": answer.source, "claims": claims, "doubted": answer.doubted or None,
    }  # fmt: skip


def _answer_from_json(query: str, data: dict[str, Json]) -> Answer:
    claims = tuple(
        Claim(str(each["text"]), tuple(_from_json(Citation, one, CITATION_KEYS) for one in _list(each["citations"])))
        for each in _list(data.get("claims", []))
    )
    source: AnswerSource = "extractive" if data["source"] == "extractive" else "generated"
    return Answer(query, claims, (), data["documented"] is True, source, data.get("doubted") is True)


def _to_json(part: Citation | FoundPassage, keys: Keys) -> dict[str, Json]:
    data = {key: getattr(part, attribute) for key, (attribute, _) in keys.items()}
    return data | {"heading": list[Json](part.heading), "page": part.page or None}


def _from_json(kind: type[T], data: dict[str, Json], keys: Keys) -> T:
    fields: dict[str, Any] = {attribute: read(data[key]) for key, (attribute, read) in keys.items()}
    return kind(**fields)


def _list(data: Json) -> "list[dict[str, Json]]":
    return cast("list[dict[str, Json]]", data)


def _restored(data: Json, kind: type[T]) -> T:
    found = cast("object", restore(data))
    if not isinstance(found, kind):
        raise CorruptError(f"expected {kind.__name__} among the findings of a turn, got {type(found).__name__}")
    return found
