"""Text as words for searching, and the places where they were found.

Scripts that put no spaces between words (Han, kana, Thai …; Hangul too, for its particles) are cut into overlapping pairs of
characters, so a Japanese word of two characters is found; all others into words, which a query finds by their beginning.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Excerpt", "excerpt", "fold", "index_text", "match_expression", "query_words"]

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
LONGEST = 40
"""Characters of a word; a longer one is no word but a blob, and is kept in pieces."""
SPACED = re.compile(rf"[^\W_{DENSE}]{{1,{LONGEST}}}")
PACKED = re.compile(f"[{DENSE}]+")

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with what may be composed with it."""
PIECE = 2048
"""Characters that are looked through at a time for the place of a word in the text as it was written."""
MOST_WORDS = 64
"""Words of a query that the index is asked for; the rest is looked for in the texts that it gives."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some text around what was found; `marks` are the places of it, as (start, end) in characters of the excerpt."""

    text: str
    marks: tuple[tuple[int, int], ...]


def fold(text: str) -> str:
    """Make what differs only by width, case or composition equal."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def index_text(*texts: str | None) -> str:
    """Return the words of a turn, each once and in no order, separated by spaces."""
    words: set[str] = set()
    for text in texts:
        if text:
            folded = fold(text)
            words.update(SPACED.findall(folded))
            if not folded.isascii():
                words.update(_pairs(folded))
    return " ".join(words)


def _pairs(folded: str) -> set[str]:
    return {run[place : place + 2] for run in PACKED.findall(folded) for place in range(len(run))}


def query_words(terms: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Return what an index is asked for: words and pairs of folded terms, and whether each is a beginning."""
    words: dict[tuple[str, bool], None] = {}
    for term in terms:
        words.update(((word, True), None) for word in SPACED.findall(term))
        for run in PACKED.findall(term):
            pairs = [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
            words.update(((pair, len(pair) == 1), None) for pair in pairs)
    return tuple(words)[:MOST_WORDS]


def match_expression(terms: Iterable[str]) -> str:
    """Write folded terms as a query of FTS5: every word by its beginning, every pair as it is; "" without any word."""
    return " ".join(f'"{word}" *' if begins else f'"{word}"' for word, begins in query_words(terms))


def excerpt(text: str, terms: Sequence[str], width: int = 80) -> Excerpt:
    """Cut out what surrounds the first of the folded terms."""
    longest = max(map(len, terms), default=0)
    for start in range(0, max(len(text), 1), PIECE):
        piece = text[start : start + PIECE + longest]
        if any(term in fold(piece) for term in terms):
            found = _places(piece, terms)
            if found:
                return _around(text, [(start + first, start + last) for first, last in found], width)
    return Excerpt(_on_one_line(text[:width]) + ("…" if len(text) > width else ""), ())


def _around(text: str, found: list[tuple[int, int]], width: int) -> Excerpt:
    first, last = found[0]
    begin = max(0, min(first - width // 4, len(text) - width))
    end = max(begin + width, last)
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    shift = len(before) - begin
    marks = tuple((start + shift, stop + shift) for start, stop in found if stop <= end)
    return Excerpt(before + _on_one_line(text[begin:end]) + after, marks)


def _places(piece: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    """Find the terms in a piece as it was written; folding may change the number of characters."""
    folded: list[str] = []
    origin: list[int] = []
    for cluster in CLUSTER.finditer(piece):
        part = fold(cluster[0])
        folded.append(part)
        origin += [cluster.start()] * len(part)
    origin.append(len(piece))
    found = re.finditer("|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True)), "".join(folded))
    return [(origin[place.start()], _end(origin, place.end())) for place in found]


def _end(origin: list[int], end: int) -> int:
    """Return where the cluster ends whose last folded character stands before `end`."""
    last = origin[end - 1]
    return next((place for place in origin[end:] if place > last), origin[-1])


def _on_one_line(text: str) -> str:
    return re.sub(r"\s", " ", text)
