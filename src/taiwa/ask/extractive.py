"""Answers without a model: sentences of the passages. `answer_or_quote` uses a model where it writes text, else this."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import normalize

from taiwa.ask.answer import Answer, Claim, answer_with_citations, make_citation
from taiwa.ask.check_citations import clean_untrusted
from taiwa.kernel.effects import Program, notify
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Message, Passage, Sampling

MAX_CLAIMS = 3

MIN_SHARE = 0.8
"""Share of the best score that a passage needs to be quoted."""

HEADING_TERM = 0.4
"""Factor for a term of the headings: the whole passage is about it."""

HISTORY_TERM = 0.4
"""Factor for a term of the history: it helped to find the passage; within it the question's own terms decide."""

LINKING = 0.6
"""Factor for a part with a link, which refers to another place."""

MAX_PAIR_CHARACTERS = 240

SENTENCE = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+(?=\S)")

MARK = re.compile(r"(?:[-*+•・]|\d{1,3}[.)]|>)\s+")

RULE = re.compile(r"[\s|:+-]*-{2,}[\s|:+-]*")

HEADING = re.compile(r"#{1,6}\s")

LINKED = re.compile(r"\]\([^)]*\)")

EMPHASIS = re.compile(r"\*+|`+")

RUN = re.compile(
    r"(?P<cjk>[\u3005\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+)|\w+"
)


@dataclass(frozen=True, slots=True)
class TermWeights:
    """How text becomes terms: `weigh` the terms of a question and of the turns before it; list the `terms` of a text."""

    weigh: Callable[[str, Sequence[Message]], Mapping[str, float]]
    terms: Callable[[str], Iterable[str]]


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
        if passage.score >= MIN_SHARE * best and len(claims) < MAX_CLAIMS and span.text not in claims:
            citation = make_citation(passage, span.start, span.end, len(claims) + 1)
            claims[span.text] = Claim(clean_untrusted(span.text, passage.text), (citation,))
    return Answer(query, tuple(claims.values()), tuple(passages), documented=bool(claims), source="extractive")


def spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], term_weights: TermWeights
) -> tuple[Span | None, ...]:
    """Return the best part of each passage: one or two sentences, an item or a row; None if it has no term of the question."""
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
    # If terms of the question occur, a passage with terms of the history only does not answer it.
    own = frozenset(term for term in question if term in rare)
    own = frozenset(term for term in own if len(term) > 1) or own  # 給 of 給与 is in 有給休暇 too
    found: list[Span | None] = []
    for passage, each, terms in zip(passages, units, unit_terms, strict=True):
        above = frozenset(term_weights.terms("\n".join((passage.title, *passage.heading))))
        inner = {term: weight * (HEADING_TERM if term in above else 1.0) for term, weight in rare.items()}
        if own and above.isdisjoint(own) and not any(own & unit for unit in terms):
            inner = {}
        found.append(_best(passage.text, each, terms, inner))
    return tuple(found)


def _best(text: str, units: Sequence[_Unit], unit_terms: Sequence[frozenset[str]], rare: Weights) -> Span | None:
    """Return the best unit or pair of short neighbours."""
    best: Span | None = None
    for at, unit in enumerate(units):
        for last in range(at, min(at + 2, len(units))):
            joined = last > at
            if joined and not _neighbours(text, unit, units[last]):
                continue
            terms = unit_terms[at] | unit_terms[last]
            score = sum(rare.get(term, 0.0) for term in terms)
            score /= 1 + 0.15 * joined + (units[last].end - unit.start) / 1_500
            if LINKED.search(text, unit.start, units[last].end):
                score *= LINKING
            if score > 0 and (best is None or score > best.score * 1.0001):
                best = Span(unit.start, units[last].end, score, _plain(text, unit, units[last].end))
    return best


def _neighbours(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two units are short sentences of one paragraph."""
    between = text[one.end : other.start]
    return (
        not one.head
        and not other.head
        and "\n" not in between.strip(" ")
        and other.end - one.start <= MAX_PAIR_CHARACTERS
    )


def _plain(text: str, unit: _Unit, end: int) -> str:
    """Return a part without its context: a row with the names of its columns, a sentence without emphasis."""
    part = text[unit.start : end]
    if not unit.head:
        return " ".join(EMPHASIS.sub("", part).split())
    names, cells = _cells(unit.head), _cells(part)
    if len(names) != len(cells):
        return " · ".join(cells)
    return " · ".join(
        f"{name}: {cell}" if name and at else cell for at, (name, cell) in enumerate(zip(names, cells, strict=True))
    )


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


def _terms(text: str) -> Iterator[str]:
    """Yield words, and pairs of characters in scripts without spaces."""
    for run in RUN.finditer(normalize("NFKC", text).casefold()):
        word = run[0]
        if run["cjk"] and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


def _weigh(query: str, history: Sequence[Message]) -> dict[str, float]:
    weights = {term: 0.5 for message in history if message.role == "user" for term in _terms(message.text)}
    return weights | dict.fromkeys(_terms(query), 1.0)


PLAIN = TermWeights(_weigh, _terms)
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
        return (
            yield from answer_with_citations(
                query,
                passages,
                language=language,
                instructions=instructions,
                own_prompts=own_prompts,
                sampling=sampling,
            )
        )
    except UnsupportedError as error:
        if not lacks_generation(error):
            raise
        yield from notify("the model writes no answers; quoting the passages instead", code="answer")
    return extractive(query, passages, history, term_weights)
