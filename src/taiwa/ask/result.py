"""The result of a turn that looks things up: a typed value, its form in the turn's delta, and the text shown to the user.

`AskResult.to_delta` is the only writer of the delta's keys and `AskResult.from_delta` their only reader. The text is plain, one
block after another, in the language of the user. Words of documents and models keep to lines of their own, with nothing in
them that could begin another line or be executed by a reader of Markdown or HTML.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from taiwa.ask.answer import Answer, Citation, Claim
from taiwa.ask.check_citations import TAG
from taiwa.ask.dialogue_step import ClarifyOptions
from taiwa.ask.types import (
    NOBODY,
    SCORES,
    Act,
    AdviceKind,
    Advise,
    Ask,
    Assessment,
    ClarificationState,
    Decision,
    HandOver,
    HandoverCase,
    Option,
    Search,
    UserProfile,
)
from taiwa.conversation.history import PastTurn
from taiwa.i18n import Translate, gettext_noop
from taiwa.kernel.errors import CorruptError
from taiwa.kernel.messages import Evidence, Passage, passage_key
from taiwa.kernel.records import Json, record, restore, value
from taiwa.kernel.text import CONTROL

__all__ = ["AskResult", "AskTurnOptions", "FoundPassage", "answer_text_of", "options_from_delta"]


T = TypeVar("T")

ADVICE: Mapping[AdviceKind, str] = {
    "greeting": gettext_noop("Hello. What would you like to know?"),
    "thanks": gettext_noop("You are welcome."),
    "farewell": gettext_noop("Goodbye."),
    "command": gettext_noop("There is nothing to stop or change here. What would you like to know?"),
    "chat": gettext_noop("I look things up in documents. What would you like to know?"),
    "consultation": gettext_noop("The documents do not help with this; please speak to someone responsible."),
}
"""What is said where nothing is looked up."""

INDENT = "    "

HEADING = re.compile(r"\s*#{1,6} [^\n]*\n")

SNIPPET = 300
"""Characters of a passage that are shown around a quotation."""

BEFORE = 80

GAP = re.compile(r"\s+|(?<=[。！？])")

ACTS: Mapping[type, str] = {Ask: "ask", Search: "search", HandOver: "hand_over", Advise: "advise"}

SENTENCES = ("ask_missing_info", "res_consultation", "ask_user_meta_info")


@value(tag="ask-turn-options")
class AskTurnOptions:
    """Options of one turn that looks things up.

    `terms` names the analyzer that defines a term, `notice` is reported before the turn, and `instructions` are those of the
    app for a model that words an answer.
    """

    clarify: ClarifyOptions = ClarifyOptions()
    person: UserProfile = NOBODY
    instructions: str = ""
    terms: str = ""
    notice: str = ""

    @property
    def is_extractive(self) -> bool:
        """Whether answers are sentences of the passages, without a model."""
        return self.clarify.assess_by == "no-model"


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that a turn found: where it stands and its score. Its text stays in the index.

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
        """Refer to a passage."""
        end = passage.start + len(passage.text)
        score = round(passage.score, 4)
        return cls(passage.id, passage.source, passage.heading, passage.page, passage.start, end, score)


@dataclass(frozen=True, slots=True)
class AskResult:
    """The outcome of one turn of the dialogue before retrieval.

    `options` are the choices put to the user, with a question back or beside an answer. `is_uncertain` marks an extractive
    answer for which the evidence is weak. `answer.passages` is filled only in the process that made the result: texts of
    passages are not stored.
    """

    act: Act
    decision: Decision
    clarification: ClarificationState
    language: str
    query: str = ""
    queries: tuple[str, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    options: tuple[Option, ...] = ()
    answer: Answer | None = None
    case: HandoverCase | None = None
    is_uncertain: bool = False
    turn_options: AskTurnOptions | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the documents answer the question, and the evidence is not weak."""
        return self.answer is not None and self.answer.documented and not self.is_uncertain

    @property
    def act_name(self) -> str:
        """The act as its name on the wire: `ask`, `search`, `hand_over` or `advise`."""
        return ACTS[type(self.act)]

    @property
    def evidence(self) -> dict[str, Json]:
        """The figures of the evidence, rounded; empty where the retriever cannot measure."""
        return _evidence(self.decision.situation.evidence)

    @property
    def scores(self) -> dict[str, Json]:
        """The scores of the assessment; empty where no model assessed the dialogue."""
        return _scores(self.decision.situation.assessment)

    @property
    def answer_text(self) -> str:
        """What later turns see of this one: the question back, or the claims without their sources."""
        if isinstance(self.act, Ask):
            return self.act.question
        return "" if self.answer is None else "\n".join(claim.text for claim in self.answer.claims)

    def to_delta(self) -> dict[str, Json]:
        """Write the result as the delta of its turn; empty parts are omitted."""
        decision = self.decision
        whole: dict[str, Json] = {
            "act": self.act_name,
            "policy": decision.policy,
            "reasons": list[Json](decision.reasons),
            "language": self.language,
            "numbers": dict[str, Json](decision.numbers),
            "scores": self.scores,
            "evidence": self.evidence,
            "query": self.query,
            "queries": list[Json](self.queries),
            "passages": [_passage(passage) for passage in self.passages],
            "options": [_option(option) for option in self.options],
            "assumption": self.act.assumption if isinstance(self.act, Search) else "",
            "case": None if self.case is None else record(self.case),
            **(_answer(self.answer) if self.answer is not None else {}),
            "answer": self.answer_text,
            "is_uncertain": self.is_uncertain or None,
            "clarification": record(self.clarification),
            "decision": record(replace(decision, situation=replace(decision.situation, dialogue=()))),
            "turn_options": None if self.turn_options is None else record(replace(self.turn_options, notice="")),
        }
        return {name: part for name, part in whole.items() if part not in (None, "", [], {})}

    @classmethod
    def from_delta(cls, delta: Json) -> "AskResult | None":
        """Read the delta of a turn; None for a turn of another app.

        The dialogue is not part of the decision that is read: it is that of the turns before.

        Raises:
            CorruptError: a part of the delta has another form.
        """
        if not isinstance(delta, dict) or "decision" not in delta or "clarification" not in delta:
            return None
        decision = _restored(delta["decision"], Decision)
        clarification = _restored(delta["clarification"], ClarificationState)
        case = _restored(delta["case"], HandoverCase) if "case" in delta else None
        options = decision.act.options if isinstance(decision.act, Ask) else clarification.offered
        try:
            query, queries = str(delta.get("query", "")), _texts(delta.get("queries", []))
            passages = tuple(_read_passage(each) for each in cast("list[dict[str, Json]]", delta.get("passages", [])))
            answer = _read_answer(query, delta) if "documented" in delta else None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"cannot read the delta of a turn: {type(error).__name__}: {error}") from None
        return cls(
            decision.act, decision, clarification, str(delta.get("language", "")), query, queries, passages, options, answer,
            case, delta.get("is_uncertain") is True, options_from_delta(delta),
        )  # fmt: skip

    def render_text(self, sentence: Translate) -> str:
        """Write the result for the user, with the program's own sentences from a catalogue."""
        act = self.act
        if isinstance(act, Ask):
            hint = (sentence("(reply with a number, in your own words, or “just answer”)"),) if act.options else ()
            return "\n".join((_line(act.question), *_options(act.options), *hint))
        if isinstance(act, HandOver):
            head = sentence("This question needs a human. The case so far:")
            return "\n".join((head, *(_case(self.case, sentence) if self.case else ())))
        if isinstance(act, Advise):
            return sentence(ADVICE[act.kind])
        blocks = [*_blocks(act, self.answer, sentence, self.is_uncertain)]
        if self.options:
            head = sentence("There is more about this. Please say which one you mean:")
            blocks.append("\n".join((head, *_options(self.options))))
        return "\n\n".join(blocks)


def options_from_delta(delta: Json) -> AskTurnOptions | None:
    """Return the options of the turn that left a delta; None where it has none.

    Raises:
        CorruptError: they have another form.
    """
    held = delta.get("turn_options") if isinstance(delta, dict) else None
    return None if held is None else _restored(held, AskTurnOptions)


def answer_text_of(past: PastTurn) -> str:
    """Return what later turns see of a turn: its claims without the list of their sources."""
    brief = past.delta.get("answer") if isinstance(past.delta, dict) and "decision" in past.delta else None
    return brief if isinstance(brief, str) else past.answer


def place_of(cited: Citation, sentence: Translate) -> str:
    """Write where a citation stands: path, headings, page.

    >>> from taiwa.i18n import dialogue_catalogue
    >>> place_of(Citation(1, "a#0", "a.pdf", "w", 0, 1, ("Leave", "Sick"), 3), dialogue_catalogue("en"))
    'a.pdf › Leave › Sick, page 3'
    """
    page = ", " + sentence("page {number}", number=cited.page) if cited.page else ""
    return _line(" › ".join((cited.source, *cited.heading))) + page


def _blocks(act: Search, answer: Answer | None, sentence: Translate, is_uncertain: bool) -> Iterator[str]:
    if answer is None or not answer.passages:
        yield sentence("The documents that you may see contain nothing about this.")
        return
    if act.assumption:
        yield _line(f"({act.assumption})")
    if not answer.documented:
        yield sentence("The documents do not say.")
    elif is_uncertain:
        yield sentence("The documents may not cover this. The closest passages are:")
    if answer.claims:
        yield "\n".join(_claim(claim, sentence) for claim in answer.claims)
    if answer.missing:
        yield sentence("Not in the documents: {text}", text=_line(answer.missing))
    if answer.sources:
        yield "\n".join(_sources(answer, sentence))


def _claim(claim: Claim, sentence: Translate) -> str:
    numbers = "".join(f"[{number}]" for number in dict.fromkeys(each.number for each in claim.citations))
    return _line(claim.text) + " " + (numbers or sentence("(not supported by any passage)"))


def _sources(answer: Answer, sentence: Translate) -> Iterator[str]:
    """Path, headings, page and a snippet of each passage that is cited; what is quoted stands in brackets."""
    held = {cited.number: cited for cited in answer.sources}
    quoted = {number: [each for each in answer.citations if each.number == number] for number in held}
    texts = {passage_key(passage): passage for passage in answer.passages}
    for number, cited in held.items():
        yield f"[{number}] {place_of(cited, sentence)}"
        passage = texts[cited.passage]
        marks = [(each.start - passage.start, each.end - passage.start) for each in quoted[number]]
        yield INDENT + _snippet(passage.text, marks)


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """A part of a passage around its first mark, on one line, with what is quoted in brackets; its heading is said already."""
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
    """Marks in order, those that touch as one."""
    held: tuple[int, int] | None = None
    for start, end in sorted(marks):
        if held is not None and start <= held[1]:
            held = (held[0], max(held[1], end))
            continue
        if held is not None:
            yield held
        held = (start, end)
    if held is not None:
        yield held


def _options(options: Sequence[Option]) -> Iterator[str]:
    for number, option in enumerate(options, 1):
        yield _line(f"{INDENT}{number}. {option.label} ({option.count})", INDENT)


def _case(case: HandoverCase, sentence: Translate) -> Iterator[str]:
    yield INDENT + sentence("searched for: {text}", text=_line(case.query))
    if case.missing:
        yield INDENT + sentence("missing: {text}", text=_line(", ".join(case.missing)))
    for passage in case.passages:
        yield INDENT + _line("· " + " › ".join((passage.source, *passage.heading)))
    if case.owner:
        yield INDENT + sentence("responsible: {text}", text=_line(case.owner))


def _line(text: str, indent: str = "") -> str:
    """One line, without what is not seen, and with nothing that a reader of Markdown or HTML would load or run."""
    return indent + TAG.sub("‹", " ".join(CONTROL.sub("", text).split()).replace("![", "! [").replace("](", "] ("))


def _scores(found: Assessment | None) -> dict[str, Json]:
    if found is None:
        return {}
    scores: dict[str, Json] = {name: getattr(found, name) for name in SCORES}
    return (
        scores | {name: getattr(found, name) for name in SENTENCES if getattr(found, name)} | {"source": found.source}
    )


def _evidence(found: Evidence | None) -> dict[str, Json]:
    if found is None:
        return {}
    numbers: dict[str, Json] = {name: round(getattr(found, name), 4) for name in ("coverage", "top", "nqc")}
    words: dict[str, Json] = {
        "unknown": list[Json](found.unknown),
        "unresolved_references": list[Json](found.unresolved_references),
    }
    return {
        "passages": found.passages,
        "found": found.found,
        **numbers,
        **{name: each for name, each in words.items() if each},
    }


def _passage(passage: FoundPassage) -> Json:
    return {
        "id": passage.id, "path": passage.source, "heading": list[Json](passage.heading), "page": passage.page or None,
        "start": passage.start, "end": passage.end, "score": passage.score,
    }  # fmt: skip


def _option(option: Option) -> Json:
    return {"label": option.label, "count": option.count, "preview": option.preview}


def _answer(answer: Answer) -> dict[str, Json]:
    claims: list[Json] = [
        {"text": claim.text, "supported": claim.supported, "citations": [_citation(each) for each in claim.citations]}
        for claim in answer.claims
    ]
    return {
        "documented": answer.documented, "source": answer.source, "claims": claims, "missing": answer.missing,
        "refused": answer.refused or None,
    }  # fmt: skip


def _citation(cited: Citation) -> Json:
    return {
        "number": cited.number, "id": cited.passage, "path": cited.source, "heading": list[Json](cited.heading),
        "page": cited.page or None, "start": cited.start, "end": cited.end, "words": cited.words,
    }  # fmt: skip


def _read_passage(held: dict[str, Json]) -> FoundPassage:
    return FoundPassage(
        str(held["id"]), str(held["path"]), _texts(held["heading"]), _number(held["page"]), _number(held["start"]),
        _number(held["end"]), float(str(held["score"])),
    )  # fmt: skip


def _read_answer(query: str, delta: dict[str, Json]) -> Answer:
    claims = cast("list[dict[str, Json]]", delta.get("claims", []))
    return Answer(
        query,
        tuple(Claim(str(each["text"]), tuple(map(_read_citation, cast("list[dict[str, Json]]", each["citations"])))) for each in claims),
        documented=delta["documented"] is True,
        missing=str(delta.get("missing", "")),
        source="extractive" if delta["source"] == "extractive" else "generated",
        refused=_number(delta.get("refused")),
    )  # fmt: skip


def _read_citation(held: dict[str, Json]) -> Citation:
    return Citation(
        _number(held["number"]), str(held["id"]), str(held["path"]), str(held["words"]), _number(held["start"]),
        _number(held["end"]), _texts(held["heading"]), _number(held["page"]),
    )  # fmt: skip


def _texts(held: Json) -> tuple[str, ...]:
    return tuple(map(str, cast("list[Json]", held)))


def _number(held: Json) -> int:
    return int(str(held or 0))


def _restored(held: Json, kind: type[T]) -> T:
    found = cast("object", restore(held))
    if not isinstance(found, kind):
        raise CorruptError(f"expected a {kind.__name__} in the delta of a turn, got a {type(found).__name__}")
    return found
