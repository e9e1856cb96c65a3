"""Answers as claims with citations: written by a model, or sentences of the passages if the model writes no text
(`answer_or_quote`).

`check_answer` looks up each quotation of a model word for word (`check_citations`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from taiwa.flows.ask.check_citations import clean_untrusted, find_quotation, supports
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.read_dialogue import REPLY_LANGUAGES
from taiwa.flows.extract import extract
from taiwa.kernel.effects import Program, notify
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Message, Passage, Sampling, passage_key, system, user
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import strip_control, terms
from taiwa.structured import OutputType


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
    """One statement of an answer; without citations it is unsupported."""

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

    `documented` is false if they do not answer the question; then `missing` may name what they lack. `source`: a model worded the
    claims (`generated`), or they are sentences of the passages (`extractive`). `refused` counts quotations with an
    unknown number, with words that the passage does not contain, or with words that do not support the claim.
    """

    query: str
    claims: tuple[Claim, ...] = ()
    passages: tuple[Passage, ...] = ()
    documented: bool = True
    missing: str = ""
    source: AnswerSource = "generated"
    refused: int = 0

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


MAX_CLAIMS = 20


@value(tag="quotation")
class Quotation:
    """Words of a passage, which is identified by its number."""

    passage: int
    words: str


@value(tag="statement")
class Statement:
    """One fact with the words that support it."""

    text: str
    quotations: tuple[Quotation, ...] = ()


@value(tag="answer-output")
class AnswerOutput:
    """The typed answer of a model."""

    in_documents: bool
    statements: tuple[Statement, ...] = ()
    missing: str = ""


def answer_with_citations(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    instructions: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
    sampling: Sampling = Sampling(),
) -> Program[Answer]:
    """Answer a query from passages, in a language (en, ja, zh, or that of the query); `instructions` are added to the prompt,
    which `own_prompts` may replace.

    Without passages no model is called.

    Raises (when run):
        OutputValidationError: the answer could not be read.
        RefusalError: the model refused to answer.
    """
    if not passages:
        return Answer(query, documented=False)
    messages = request_messages(query, passages, language, instructions, own_prompts)
    typed = yield from extract(OutputType(AnswerOutput), messages, sampling=sampling)
    output = typed.value
    answer = check_answer(query, output, tuple(passages))
    if answer.refused:
        total = sum(len(statement.quotations) for statement in output.statements)
        text = f"{answer.refused} of {total} quotations are not in their passages or do not support their statements"
        yield from notify(text, code="citation", warning=True)
    return answer


def request_messages(
    query: str,
    passages: Sequence[Passage],
    language: str = "",
    instructions: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
) -> tuple[Message, ...]:
    """Return the messages to the model: instructions, then question and passages as one line of JSON."""
    prompts = load_prompts(language if language in REPLY_LANGUAGES else "en").replaced_by(own_prompts)
    prompt = prompts.answer(language)
    numbered: list[Json] = [_passage_json(number, passage) for number, passage in enumerate(passages, 1)]
    material = json.dumps({"question": strip_control(query), "passages": numbered}, ensure_ascii=False)
    return system("\n\n".join(filter(None, (prompt, instructions.strip())))), user(material)


def check_answer(query: str, output: AnswerOutput, passages: tuple[Passage, ...]) -> Answer:
    """Look up the quotations of a model; refuse those that do not occur in their passage or do not support their claim.

    >>> leave = Passage("leave.md", "Everybody has **ten** days.")
    >>> quotations = Quotation(1, "ten days"), Quotation(7, "ten days")
    >>> output = AnswerOutput(True, (Statement("Ten.", quotations), Statement("Or 20.", quotations[:1])))
    >>> answer = check_answer("how many?", output, (leave,))
    >>> [(claim.text, claim.supported) for claim in answer.claims], answer.refused, answer.citations[0].words
    ([('Ten.', True), ('Or 20.', False)], 2, 'ten** days')
    """
    sources = "\n".join(passage.text for passage in passages)
    numbers: dict[int, int] = {}
    claims: list[Claim] = []
    refused = 0
    for statement in output.statements[:MAX_CLAIMS]:
        text = clean_untrusted(statement.text, sources)
        citations = [_check_quotation(each, text, passages, sources, numbers) for each in statement.quotations]
        refused += citations.count(None)
        if text:
            claims.append(Claim(text, tuple(dict.fromkeys(each for each in citations if each is not None))))
    documented = bool(claims) and (output.in_documents or any(claim.supported for claim in claims))
    missing = "" if output.in_documents and claims else clean_untrusted(output.missing, sources)
    return Answer(query, tuple(claims), passages, documented, missing, refused=refused)


def _check_quotation(
    quotation: Quotation, claim: str, passages: tuple[Passage, ...], sources: str, numbers: dict[int, int]
) -> Citation | None:
    """Return the citation of a quotation, None if it is refused; `numbers` renumbers passages in the order of the answer."""
    at = quotation.passage
    if not 1 <= at <= len(passages):
        return None
    passage = passages[at - 1]
    span = find_quotation(quotation.words, passage.text)
    heading = " ".join((passage.title, *passage.heading))
    if span is None or not supports(claim, quotation.words, heading, sources):
        return None
    return make_citation(passage, *span, numbers.setdefault(at, len(numbers) + 1))


def _passage_json(number: int, passage: Passage) -> Json:
    source, *headings, text = map(strip_control, (passage.source, *passage.heading, passage.text))
    parts: dict[str, Json] = {"passage": number, "source": source, "heading": " › ".join(headings), "text": text}
    return {name: part for name, part in parts.items() if part}


MAX_QUOTED = 3

MIN_SHARE = 0.8
"""Share of the best score that a passage needs to be quoted."""

HEADING_TERM = 0.4
"""Factor for a term of the headings: the whole passage is about it."""

HISTORY_TERM = 0.4
"""Factor for a term of the history: it helped to find the passage; within it the question's own terms decide."""

LINKING = 0.6
"""Factor for a part with a link, which refers to another document."""

MAX_PAIR_CHARACTERS = 240

SENTENCE = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+(?=\S)")

MARK = re.compile(r"(?:[-*+•・]|\d{1,3}[.)]|>)\s+")

RULE = re.compile(r"[\s|:+-]*-{2,}[\s|:+-]*")

HEADING = re.compile(r"#{1,6}\s")

LINKED = re.compile(r"\]\([^)]*\)")

EMPHASIS = re.compile(r"\*+|`+")


@dataclass(frozen=True, slots=True)
class TermWeights:
    """How text becomes terms: `weigh` the terms of a question and of the turns before it; list the `terms` of a text.

    `content` lists the terms that say what a question is about, without words that fit any subject; by default all of it.
    """

    weigh: Callable[[str, Sequence[Message]], Mapping[str, float]]
    terms: Callable[[str], Iterable[str]]
    content: Callable[[str], Sequence[str]] = lambda _: ()

    def content_of(self, query: str) -> tuple[str, ...]:
        """Return the content of a question; all its terms if it has none."""
        return tuple(self.content(query)) or tuple(self.weigh(query, ()))

    def terms_of(self, passage: Passage) -> frozenset[str]:
        """Return the terms of a passage with its title and headings."""
        return frozenset(self.terms("\n".join((passage.title, *passage.heading, passage.text))))


def has_term(term: str, terms: AbstractSet[str]) -> bool:
    """Whether a term is among others; of a pair of characters without spaces both may stand apart.

    >>> has_term("养猫", {"猫", "饲", "养", "饲养"}), has_term("养蛇", {"猫", "饲", "养", "饲养"})
    (True, False)
    """
    return term in terms or (len(term) == 2 and not term.isascii() and all(character in terms for character in term))


def held_share(content: Sequence[str], terms: AbstractSet[str]) -> float:
    """Return the share of the content of a question that is among the terms, 0 to 1; 0 if there is no content.

    A pair of characters that overlaps one that is there, and is not there itself, is probably not a word, and is not counted.

    >>> held_share(("养猫", "猫费", "费用", "押金"), {"养猫", "费用"})
    0.6666666666666666
    """
    held = [has_term(term, terms) for term in content]
    is_part = [
        not held[at]
        and any(
            0 <= near < len(content) and held[near] and _overlaps(content, min(at, near)) for near in (at - 1, at + 1)
        )
        for at in range(len(content))
    ]
    counted = len(content) - sum(is_part)
    return sum(held) / counted if counted else 0.0


def _overlaps(content: Sequence[str], at: int) -> bool:
    one, other = content[at], content[at + 1]
    return len(one) == len(other) == 2 and not one.isascii() and one[1] == other[0]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a passage with its offsets, its score for the question, and its text without markup."""

    start: int
    end: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, a list item or a table row; `head` is the header of the table."""

    start: int
    end: int
    head: str = ""


Weights: TypeAlias = Mapping[str, float]


def extractive(
    query: str, passages: Sequence[Passage], history: Sequence[Message] = (), term_weights: "TermWeights | None" = None
) -> Answer:
    """Answer with sentences of the passages; each claim is a quotation, and so supported.

    >>> leave = Passage("leave.md", "# Leave\\nEverybody has ten days. Ask your lead first.", 1.0)
    >>> [claim.text for claim in extractive("how many days are there?", [leave]).claims]
    ['Everybody has ten days.']
    """
    pairs = zip(passages, spans(query, passages, history, term_weights or PLAIN), strict=True)
    found = [(passage, span) for passage, span in pairs if span is not None]
    best = max((passage.score for passage, _ in found), default=0.0)
    claims: dict[str, Claim] = {}
    for passage, span in found:
        if passage.score >= MIN_SHARE * best and len(claims) < MAX_QUOTED and span.text not in claims:
            citation = make_citation(passage, span.start, span.end, len(claims) + 1)
            claims[span.text] = Claim(clean_untrusted(span.text, passage.text), (citation,))
    return Answer(query, tuple(claims.values()), tuple(passages), documented=bool(claims), source="extractive")


def spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], term_weights: TermWeights
) -> tuple[Span | None, ...]:
    """Return the best part of each passage: one or two sentences, an item or a row; None if it has no content of the question.

    If only the headings have, the first sentences are its best part.
    """
    question = term_weights.weigh(query, ())
    weights = question
    if history:
        weighed = term_weights.weigh(query, history)
        weights = {term: weight if term in question else weight * HISTORY_TERM for term, weight in weighed.items()}
    units = [tuple(_units(passage.text)) for passage in passages]
    unit_terms = [
        [frozenset(term_weights.terms(passage.text[unit.start : unit.end] + unit.head)) for unit in each]
        for passage, each in zip(passages, units, strict=True)
    ]
    counts = Counter(term for each in unit_terms for terms in each for term in terms if term in weights)
    number = sum(map(len, units))
    rare = {term: weights[term] * math.log1p((number - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    above = [frozenset(term_weights.terms("\n".join((each.title, *each.heading)))) for each in passages]
    content = (
        tuple(question) if history else term_weights.content_of(query)
    )  # "and is that allowed?" is about the history
    held = [
        frozenset(term for term in content if any(has_term(term, terms) for terms in (over, *inside)))
        for over, inside in zip(above, unit_terms, strict=True)
    ]
    own = frozenset[str]().union(*held)
    if not own and not history:  # words that fit any subject do not answer it
        return tuple(None for _ in passages)
    # If content of the question occurs anywhere, a passage with only terms of the history does not answer it.
    own = frozenset(term for term in own if len(term) > 1) or own  # 給 of 給与 is in 有給休暇 too
    found: list[Span | None] = []
    for at, passage in enumerate(passages):
        if own.isdisjoint(held[at]) and own:
            found.append(None)
            continue
        inner = {term: weight * (HEADING_TERM if term in above[at] else 1.0) for term, weight in rare.items()}
        best = _best(passage.text, units[at], unit_terms[at], inner)
        if best is None and any(has_term(term, above[at]) for term in own):
            best = _first(passage.text, units[at])
        found.append(best)
    return tuple(found)


def _best(text: str, units: Sequence[_Unit], unit_terms: Sequence[frozenset[str]], rare: Weights) -> Span | None:
    """Return the best unit or pair of short neighbours."""
    best: Span | None = None
    for at, unit in enumerate(units):
        for last in range(at, min(at + 2, len(units))):
            joined = last > at
            if joined and not _neighbours(text, unit, units[last]):
                continue
            score = sum(rare.get(term, 0.0) for term in unit_terms[at] | unit_terms[last])
            score /= 1 + 0.15 * joined + (units[last].end - unit.start) / 1_500
            if LINKED.search(text, unit.start, units[last].end):
                score *= LINKING
            if score > 0 and (best is None or score > best.score * 1.0001):
                best = Span(unit.start, units[last].end, score, _plain(text, unit, units[last].end))
    return best


def _first(text: str, units: Sequence[_Unit]) -> Span | None:
    """Return the first unit, with the next one if both are short neighbours."""
    if not units:
        return None
    last = units[1] if len(units) > 1 and _neighbours(text, units[0], units[1]) else units[0]
    return Span(units[0].start, last.end, 0.0, _plain(text, units[0], last.end))


def _neighbours(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two units are short sentences of one paragraph."""
    between = text[one.end : other.start].strip(" ")
    return not one.head and not other.head and "\n" not in between and other.end - one.start <= MAX_PAIR_CHARACTERS


def _plain(text: str, unit: _Unit, end: int) -> str:
    """Return a part without its context: a row with the names of its columns, a sentence without emphasis."""
    part = text[unit.start : end]
    if not unit.head:
        return " ".join(EMPHASIS.sub("", part).split())
    names, cells = _cells(unit.head), _cells(part)
    if len(names) != len(cells):
        return " · ".join(cells)
    pairs = zip(names[1:], cells[1:], strict=True)
    return " · ".join((cells[0], *(f"{name}: {cell}" if name else cell for name, cell in pairs)))


def _cells(row: str) -> list[str]:
    return [EMPHASIS.sub("", cell).strip() for cell in row.strip().strip("|").split("|")]


def _units(text: str) -> Iterator[_Unit]:
    """Divide a passage into table rows, list items and sentences, without headings and rules."""
    head, at = "", 0
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        start, at = at, at + len(line)
        plain = line.strip()
        if plain.startswith("|"):
            if RULE.fullmatch(plain):
                continue
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if below.startswith("|") and RULE.fullmatch(below):
                head = plain
                continue
            begin = start + line.index("|")
            yield _Unit(begin, begin + len(plain), head or "|")
            continue
        head = ""
        if plain and not HEADING.match(plain) and not RULE.fullmatch(plain):
            yield from _sentences(text, start + len(line) - len(line.lstrip()), start + len(line.rstrip()))


def _sentences(text: str, start: int, end: int) -> Iterator[_Unit]:
    mark = MARK.match(text, start, end)
    at = mark.end() if mark else start
    for border in SENTENCE.finditer(text, at, end):
        if border.end() > at:
            stop = border.start() + len(border[0].rstrip())
            if text[at:stop].strip():
                yield _Unit(at, stop)
            at = border.end()
    if text[at:end].strip():
        yield _Unit(at, end)


def _weigh(query: str, history: Sequence[Message]) -> dict[str, float]:
    weights = {term: 0.5 for message in history if message.role == "user" for term in terms(message.text)}
    return weights | dict.fromkeys(terms(query), 1.0)


PLAIN = TermWeights(_weigh, terms)
"""Plain words, for a retriever without an analyzer."""


def lacks_generation(error: UnsupportedError) -> bool:
    """Whether the model assesses dialogues but writes no text, rather than that its server lacks a capability."""
    return error.capability == "words"


def answer_or_quote(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    instructions: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
    history: Sequence[Message] = (),
    term_weights: TermWeights = PLAIN,
    sampling: Sampling = Sampling(),
) -> Program[Answer]:
    """Answer by `answer_with_citations`, or by `extractive` if the model writes no text; only that uses `history`.

    Raises (when run):
        OutputValidationError: the answer could not be read.
        RefusalError: the model refused to answer.
    """
    try:
        request = answer_with_citations(
            query, passages, language=language, instructions=instructions, own_prompts=own_prompts, sampling=sampling
        )
        return (yield from request)
    except UnsupportedError as error:
        if not lacks_generation(error):
            raise
        yield from notify("the model writes no answers; quoting the passages instead", code="answer")
    return extractive(query, passages, history, term_weights)
