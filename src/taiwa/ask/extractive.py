"""Answers without a model: sentences of the passages; the choice between both ways."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import normalize

from taiwa.ask.answer import Answer, Claim, answer_with_citations, citation
from taiwa.ask.check_citations import clean_untrusted
from taiwa.kernel.effects import Program, notify
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Message, Passage

__all__ = ["PLAIN", "TermWeights", "answer", "extractive", "lacks_generation", "spans"]


MOST = 3
"""Passages that an answer is taken from."""

NEAR = 0.8
"""A passage is taken from this part of the best one's score on."""

NAMED = 0.4
"""What a term still counts that stands in the headings above: the whole passage is about it."""

EARLIER = 0.4

REFERRING = 0.6
"""What a part still counts that leads elsewhere by a link."""

LONGEST = 240
"""Characters of a sentence that are still read with its neighbour."""

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
    """How words become terms: `weigh` a question and what was said before it, and the `terms` of a text."""

    weigh: Callable[[str, Sequence[Message]], Mapping[str, float]]
    terms: Callable[[str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a passage, from where to where, and how much of what is asked it holds; `text` is how it reads alone."""

    start: int
    end: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, an item or a row; `head` names the columns of a row."""

    start: int
    end: int
    head: str = ""


Weights: TypeAlias = Mapping[str, float]


def extractive(
    query: str, passages: Sequence[Passage], history: Sequence[Message] = (), reader: "TermWeights | None" = None
) -> Answer:
    """Answer with words of the passages; each claim is a quotation, so each is supported.

    >>> leave = Passage("leave.md", "# Leave\\nEverybody has ten days. Ask your lead first.", 1.0)
    >>> [claim.text for claim in extractive("how many days are there?", [leave]).claims]
    ['Everybody has ten days.']
    """
    marked = zip(passages, spans(query, passages, history, reader or PLAIN), strict=True)
    found = [(passage, span) for passage, span in marked if span is not None]
    best = max((passage.score for passage, _ in found), default=0.0)
    near = [each for each in found if each[0].score >= NEAR * best]
    claims: list[Claim] = []
    told: set[str] = set()
    for passage, span in near:
        if len(claims) < MOST and span.text not in told:
            told.add(span.text)
            cited = citation(passage, span.start, span.end, len(claims) + 1)
            claims.append(Claim(clean_untrusted(span.text, passage.text), (cited,)))
    return Answer(query, tuple(claims), tuple(passages), documented=bool(claims), source="extractive")


def spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], reader: TermWeights
) -> tuple[Span | None, ...]:
    """Return the best part of each passage: a sentence or two, an item, or a row; None where it holds nothing of the question."""
    weights = _fading(reader, query, history)
    units = [tuple(_units(passage.text)) for passage in passages]
    held = [
        [frozenset(reader.terms(passage.text[unit.start : unit.end] + unit.head)) for unit in each]
        for passage, each in zip(passages, units, strict=True)
    ]
    counts = Counter(term for each in held for terms in each for term in terms if term in weights)
    number = sum(map(len, units))
    rare = {term: weights[term] * math.log1p((number - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    # Where the question's own words are found, a passage that holds only what was said before is none of its answers.
    own = frozenset(term for term in reader.weigh(query, ()) if term in rare)
    own = frozenset(term for term in own if len(term) > 1) or own  # 給 of 給与 stands in 有給休暇 too
    found: list[Span | None] = []
    for passage, each, terms in zip(passages, units, held, strict=True):
        above = frozenset(reader.terms("\n".join((passage.title, *passage.heading))))
        inner = {term: weight * (NAMED if term in above else 1.0) for term, weight in rare.items()}
        if own and above.isdisjoint(own) and not any(own & unit for unit in terms):
            inner = {}
        found.append(_best(passage.text, each, terms, inner))
    return tuple(found)


def _fading(reader: TermWeights, query: str, history: Sequence[Message]) -> Weights:
    """What was said before has helped to find the passage; within it the question's own words decide."""
    own = reader.weigh(query, ())
    if not history:
        return own
    return {term: weight if term in own else weight * EARLIER for term, weight in reader.weigh(query, history).items()}


def _best(text: str, units: Sequence[_Unit], held: Sequence[frozenset[str]], rare: Weights) -> Span | None:
    """The window of one unit, or of two neighbours that are short, which holds most."""
    best: Span | None = None
    for at, unit in enumerate(units):
        for last in range(at, min(at + 2, len(units))):
            joined = last > at
            if joined and not _neighbours(text, unit, units[last]):
                continue
            terms = held[at] | held[last]
            score = sum(rare.get(term, 0.0) for term in terms)
            score /= 1 + 0.15 * joined + (units[last].end - unit.start) / 1_500
            if LINKED.search(text, unit.start, units[last].end):
                score *= REFERRING
            if score > 0 and (best is None or score > best.score * 1.0001):
                best = Span(unit.start, units[last].end, score, _alone(text, unit, units[last].end))
    return best


def _neighbours(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two units read on: sentences of one paragraph, together not long."""
    between = text[one.end : other.start]
    return not one.head and not other.head and "\n" not in between.strip(" ") and other.end - one.start <= LONGEST


def _alone(text: str, unit: _Unit, end: int) -> str:
    """How a part reads alone: a row with the names of its columns, a sentence without its dress."""
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
    """Divide a passage: table rows, list items and sentences; headings and rules are left out."""
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
    """Words, and pairs of characters where there are no spaces."""
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
"""Words as they stand, for a retriever that tells nothing of its own."""

WORDS = "words"
"""The ability that a model names as missing which judges dialogues and writes no prose."""


def lacks_generation(error: UnsupportedError) -> bool:
    """Whether a model says that it writes no words of its own, rather than that its server lacks something."""
    return error.capability == WORDS


def answer(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    manner: str = "",
    history: Sequence[Message] = (),
    reader: TermWeights = PLAIN,
) -> Program[Answer]:
    """Answer by `answer_with_citations`; where the model writes no words, by quoting, which `history` and `reader` guide.

    Raises (when run):
        ShapeError: the answer could not be read. RefusalError: the model refused to answer.
    """
    try:
        return (yield from answer_with_citations(query, passages, language=language, manner=manner))
    except UnsupportedError as error:
        if not lacks_generation(error):
            raise
        yield from notify("the model words no answers, so the passages are quoted", code="answer")
    return extractive(query, passages, history, reader)
