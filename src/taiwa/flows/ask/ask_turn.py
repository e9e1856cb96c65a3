"""One turn of `taiwa ask` as a step over conversations: clarify, retrieve, answer; and its result.

The state delta of the turn is its `AskResult`; the next turn reads its clarification state from there.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

from taiwa.conversation.history import NO_MODEL, AnsweredBy, Conversation, PastTurn, add_turn
from taiwa.flows.ask.answer import (
    PLAIN,
    Answer,
    AnswerSource,
    Citation,
    Claim,
    TermWeights,
    answer_or_quote,
    extractive,
    held_share,
)
from taiwa.flows.ask.check_citations import TAG
from taiwa.flows.ask.clarify_then_retrieve import Clarified, ClarifyOptions, clarify
from taiwa.flows.ask.decide_search_or_clarify import answerable, group_options, narrow_options
from taiwa.flows.ask.read_dialogue import is_option_number, reply_language, select_option
from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    QUESTIONS,
    SCORES,
    Act,
    AdviceKind,
    Advise,
    Ask,
    ClarificationState,
    Decision,
    HandOver,
    HandoverCase,
    Option,
    Search,
    UserProfile,
)
from taiwa.flows.chat import Reply, check_text, shorten_history
from taiwa.i18n import Translate, dialogue_catalogue, gettext_noop
from taiwa.kernel.effects import Program, Step, notify
from taiwa.kernel.errors import CorruptError, RefusalError
from taiwa.kernel.messages import Message, Passage, Sampling, assistant, passage_key, user
from taiwa.kernel.serialization import Json, record, restore, tag_of, value
from taiwa.kernel.text import CONTROL

# --- the result of a turn ---------------------------------------------------------------------------------------------
# The result of a turn of `taiwa ask`: a typed value, its JSON form as the state delta of the turn, and the text for the user.
#
# `AskResult.to_delta` and `AskResult.from_delta` are the one codec of the delta's keys; `CITATION_KEYS` and `PASSAGE_KEYS` list those
# of its parts. The text is plain, in the language of the user. Texts of documents and models are on separate lines, without
# anything that could begin another line or that a Markdown or HTML viewer would load or run.

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

GAP = re.compile(r"\s+|(?<=[。！？])")


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
    """Options of one turn of `taiwa ask`.

    `terms` names the analyzer that defines a term, `notice` is reported before the turn, and `instructions` are those of the
    app for a model that writes the answer, with this `sampling`.
    """

    clarify: ClarifyOptions = ClarifyOptions()
    profile: UserProfile = ANONYMOUS_USER
    instructions: str = ""
    terms: str = ""
    notice: str = ""
    sampling: Sampling = Sampling()

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
        end = passage.start + len(passage.text)
        score = round(passage.score, 4)
        return cls(passage.id, passage.source, passage.heading, passage.page, passage.start, end, score)


@dataclass(frozen=True, slots=True)
class AskResult:
    """The outcome of one turn of `taiwa ask`.

    `options` are offered to the user, with a clarifying question or beside an answer. `is_uncertain` marks an extractive answer
    with weak evidence. `answer.passages` is empty in a result that was read from a delta: texts of passages are not stored.
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
        """The name of the act in JSON: `ask`, `search`, `hand_over` or `advise`."""
        return tag_of(type(self.act)).replace("-", "_")

    @property
    def evidence(self) -> dict[str, Json]:
        """The figures of the evidence, rounded; empty if the retriever cannot measure them."""
        evidence = self.decision.situation.evidence
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
        questions = (name for name in (*QUESTIONS, "reply") if getattr(assessment, name))
        own = dict[str, Json](assessment.own_scores) | dict[str, Json](assessment.own_questions)
        return {name: getattr(assessment, name) for name in (*SCORES, *questions, "source")} | own

    def __str__(self) -> str:
        return self.answer_text

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
        """The text that later turns see: the clarifying question, or the claims without their sources."""
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
    def from_delta(cls, delta: Json) -> "AskResult | None":
        """Read the delta of a turn; None for a turn of another app.

        The decision has no dialogue: that is in the turns before.

        Raises:
            CorruptError: a part of the delta is malformed.
        """
        if not isinstance(delta, dict) or "decision" not in delta or "clarification" not in delta:
            return None
        decision = _restored(delta["decision"], Decision)
        clarification = _restored(delta["clarification"], ClarificationState)
        case = _restored(delta["case"], HandoverCase) if "case" in delta else None
        options = decision.act.options if isinstance(decision.act, Ask) else clarification.offered
        try:
            query, queries = str(delta.get("query", "")), _text_tuple(delta.get("queries", []))
            passages = tuple(_from_json(FoundPassage, each, PASSAGE_KEYS) for each in _list(delta.get("passages", [])))
            answer = _answer_from_json(query, delta) if "documented" in delta else None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"cannot read the delta of a turn: {type(error).__name__}: {error}") from None
        return cls(
            decision.act, decision, clarification, str(delta.get("language", "")), query, queries, passages, options, answer,
            case, delta.get("is_uncertain") is True, options_from_delta(delta),
        )  # fmt: skip

    def render_text(self, sentence: Translate) -> str:
        """Return the text for the user; `sentence` translates the program's own sentences."""
        act = self.act
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
        if answer is not None and not answer.documented:
            before.append(sentence("The documents do not say."))
        elif self.is_uncertain:
            before.append(sentence("The documents may not cover this. The closest passages are:"))
        return tuple(before)

    def _blocks(self, sentence: Translate) -> Iterator[str]:
        answer = self.answer
        if answer is None or not answer.passages:
            yield sentence("The documents that you may see contain nothing about this.")
        else:
            yield from self.remarks(sentence)
            if answer.claims:
                yield "\n".join(_claim(claim, sentence) for claim in answer.claims)
            if answer.sources:
                yield "\n".join(_sources(answer, sentence))
        if self.options:
            head = sentence(MORE)
            yield "\n".join((head, *_options(self.options)))


def options_from_delta(delta: Json) -> AskTurnOptions | None:
    """Return the options of the turn of a delta; None if it has none.

    Raises:
        CorruptError: they are malformed.
    """
    options = delta.get("turn_options") if isinstance(delta, dict) else None
    return None if options is None else _restored(options, AskTurnOptions)


def answer_text_of(past: PastTurn) -> str:
    """Return the text that later turns see of a turn: its claims without the list of their sources."""
    text = past.delta.get("answer") if isinstance(past.delta, dict) and "decision" in past.delta else None
    return text if isinstance(text, str) else past.answer


def format_source(citation: Citation, sentence: Translate) -> str:
    """Return the source of a citation: path, headings, page.

    >>> from taiwa.i18n import dialogue_catalogue
    >>> format_source(Citation(1, "a#0", "a.pdf", "w", 0, 1, ("Leave", "Sick"), 3), dialogue_catalogue("en"))
    'a.pdf › Leave › Sick, page 3'
    """
    page = ", " + sentence("page {number}", number=citation.page) if citation.page else ""
    return _line(" › ".join((citation.source, *citation.heading))) + page


def _claim(claim: Claim, sentence: Translate) -> str:
    return _line(claim.text) + " " + (claim.numbers or sentence("(the model's own words)"))


def _sources(answer: Answer, sentence: Translate) -> Iterator[str]:
    """Yield source and snippet of each cited passage, with the quotations in brackets."""
    passages = {passage_key(passage): passage for passage in answer.passages}
    for source in answer.sources:
        yield f"[{source.number}] {format_source(source, sentence)}"
        passage = passages[source.passage]
        cited = [each for each in answer.citations if each.number == source.number]
        marks = [(each.start - passage.start, each.end - passage.start) for each in cited]
        yield INDENT + _snippet(passage.text, marks)


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """Return a part of a passage around its first mark, on one line, without its heading, with the marks in brackets."""
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
    for query in case.searched:
        yield INDENT + sentence("searched for: {text}", text=_line(query))
    if case.missing:
        yield INDENT + sentence("missing: {text}", text=_line(", ".join(case.missing)))
    for passage in case.passages:
        yield INDENT + _line("· " + " › ".join((passage.source, *passage.heading)))
    if case.owner:
        yield INDENT + sentence("responsible: {text}", text=_line(case.owner))


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


def _answer_from_json(query: str, delta: dict[str, Json]) -> Answer:
    claims = tuple(
        Claim(str(each["text"]), tuple(_from_json(Citation, data, CITATION_KEYS) for data in _list(each["citations"])))
        for each in _list(delta.get("claims", []))
    )
    source: AnswerSource = "extractive" if delta["source"] == "extractive" else "generated"
    return Answer(query, claims, (), delta["documented"] is True, source, delta.get("doubted") is True)


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
        raise CorruptError(f"expected {kind.__name__} in the delta of a turn, got {type(found).__name__}")
    return found


# --- the turn ---------------------------------------------------------------------------------------------------------

BROAD_WORDS = 4
"""A text of at most this number of words may have several meanings."""

LATIN = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")

ONLY_HEADINGS = re.compile(r"(?:\s*#{1,6} [^\n]*)*\s*")

WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")

MIN_PASSAGES = 20
"""Number of passages from which rare words can be distinguished from common ones."""

MIN_HELD = 1 / 3
"""Share of the content of a question in a quoted passage below which the text warns, if there are few passages.

Questions to folders of five passages: none of 345 to their own folder (JSQuAD, JaQuAD, the handbook) and 12 % of 85 (MTRAG) are
warned about or refused, and 52 to 72 % of those to another folder.
"""

UNCERTAIN_BELOW = 0.15
"""Probability of an answer in the documents below which the text warns that they may not contain one."""


def ask_turn(
    text: str, options: AskTurnOptions, term_weights: TermWeights = PLAIN, by: AnsweredBy = NO_MODEL
) -> Step[Conversation, Reply]:
    """Return the step of one turn; `term_weights` defines the terms of extractive answers, and `by` is recorded in the turn.

    Raises (when run):
        InputError: the text is empty or too large.
        OutputValidationError: the assessment could not be read.
    """

    def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
        check_text(text)
        if options.notice:
            yield from notify(options.notice, code="place", warning=True)
        settled = yield from shorten_history(conversation)
        dialogue = (*dialogue_of(settled.turns), user(text))
        clarification = _drop_offer(clarification_of(settled), text)
        found = yield from clarify(dialogue, options.clarify, clarification=clarification, profile=options.profile)
        language = reply_language(dialogue, options.profile.language, found.decision.situation.locale)
        answered = yield from _answer(found, dialogue, language, options, term_weights)
        result = _result(found, answered, text, language, options, term_weights)
        sentence = dialogue_catalogue(language, options.clarify.catalogue_version)
        words = result.render_text(sentence)
        after = add_turn(settled, text, words, result.to_delta(), by=by)
        return Reply(words, after.new_nodes[-1].delta), after

    return step


def _result(
    found: Clarified,
    answered: Answer | None,
    text: str,
    language: str,
    options: AskTurnOptions,
    term_weights: TermWeights,
) -> AskResult:
    offered = found.decision.situation.clarification.offered
    # A user who has chosen is not asked to choose again, and options without an answer would contradict it.
    unanswered = answered is not None and not answered.documented
    also = () if offered or unanswered else other_meanings(found, text)
    act, case = found.act, found.case
    passages = found.passages or (() if case is None else case.passages)
    clarification = replace(found.clarification, offered=also) if also else found.clarification
    query = "" if found.queries is None else found.queries.text
    uncertain = answered is not None and _is_uncertain(found, answered, term_weights)
    return AskResult(
        act, found.decision, clarification, language, query, found.searched, tuple(map(FoundPassage.of, passages)),
        act.options if isinstance(act, Ask) else also, answered, case, uncertain, options,
    )  # fmt: skip


def clarification_of(conversation: Conversation) -> ClarificationState:
    """Return the clarification state after the last turn.

    Raises:
        CorruptError: the delta of the turn is malformed.
    """
    result = AskResult.from_delta(conversation.turns[-1].delta) if conversation.turns else None
    return ClarificationState() if result is None else result.clarification


def dialogue_of(turns: Sequence[PastTurn]) -> tuple[Message, ...]:
    """Return the turns as messages; answers without their lists of sources."""
    return tuple(message for past in turns for message in (user(past.user), assistant(answer_text_of(past))))


def other_meanings(found: Clarified, text: str) -> tuple[Option, ...]:
    """Return the meanings of a short text as options: groups of the passages, or of those of the best group."""
    declined = found.decision.situation.clarification.declined
    if not isinstance(found.act, Search) or declined or _count_words(text) > BROAD_WORDS:
        return ()
    passages = [passage for passage in found.passages if not ONLY_HEADINGS.fullmatch(passage.text)]
    return narrow_options(passages, group_options(passages))


def _count_words(text: str) -> float:
    """Estimate the number of words; two Chinese or Japanese characters count as one."""
    return len(LATIN.findall(text)) + len(WIDE.findall(text)) / 2


def _drop_offer(clarification: ClarificationState, text: str) -> ClarificationState:
    """Drop the options offered beside an answer, unless the text is a number or a whole label: anything else is a new question."""
    if clarification.rounds or not clarification.offered or is_option_number(text):
        return clarification
    option = select_option(text, clarification.offered)
    whole = option is not None and (text.strip().casefold() == option.label.casefold() or _count_words(text) <= 1)
    return clarification if whole else replace(clarification, offered=())


def _answer(
    found: Clarified, dialogue: Sequence[Message], language: str, options: AskTurnOptions, term_weights: TermWeights
) -> Program[Answer | None]:
    """Answer if the act is `Search`: by a model, or by quotations if there is none or its answer cannot be used."""
    if not isinstance(found.act, Search) or found.queries is None:
        return None
    query, passages = found.queries.text, found.passages
    if not options.is_extractive:
        try:
            own = () if options.clarify.table is None else options.clarify.table.prompts
            return (yield from answer_or_quote(
                query, passages, language=language, instructions=options.instructions, own_prompts=own,
                history=dialogue[:-1], term_weights=term_weights, sampling=options.sampling,
            ))  # fmt: skip
        except RefusalError as error:
            text = f"quoting the passages instead: {error.message}"
            yield from notify(text, code="answer", warning=True)
    return extractive(query, passages, dialogue[:-1], term_weights)


def _is_uncertain(found: Clarified, answer: Answer, term_weights: TermWeights) -> bool:
    """Whether the documents may not contain an answer.

    A sentence of a model that could be read off a passage settles it; a model that found no answer is believed unless the evidence
    is strong. With few passages no word is rare, so the content is counted.
    """
    chance = answerable(found.evidence, len(found.passages))
    if answer.source == "generated" and all(claim.supported for claim in answer.claims):
        return False
    if answer.doubted and chance < found.decision.situation.profile.thresholds.strong_evidence:
        return True
    if found.evidence is None or found.evidence.passages >= MIN_PASSAGES:
        return chance < UNCERTAIN_BELOW
    content, cited = term_weights.content(answer.query), {each.passage for each in answer.citations}
    quoted = [term_weights.terms_of(each) for each in answer.passages if passage_key(each) in cited]
    return bool(content and quoted) and max(held_share(content, terms) for terms in quoted) < MIN_HELD
