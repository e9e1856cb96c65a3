"""Full text search in any language, newest first.

The index is a cache that `search` itself updates, so that turns do not pay for it. It only narrows the candidates: each text is
checked for the terms. Scripts without spaces between words (Han, kana, Thai …; Hangul too, for its particles) are cut into
overlapping pairs of characters, so a Japanese word of two characters is found; all others into words, which a query finds by
their beginning.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taiwa.kernel.errors import InputError
from taiwa.store.nodes import searchable_texts
from taiwa.store.schema import StoreDatabase

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
LONGEST = 40
"""Characters of a word; longer runs, which are not words of a language, are cut into pieces."""
SPACED = re.compile(rf"[^\W_{DENSE}]{{1,{LONGEST}}}")
PACKED = re.compile(f"[{DENSE}]+")

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with its combining marks."""
PIECE = 2048
"""Characters that are searched at a time for the position of a term in the original text."""
MOST_WORDS = 64
"""Words of a query that are looked up in the index; the others are searched in the texts that it returns."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around a match; `marks` are the matches as (start, end) in characters of the excerpt."""

    text: str
    marks: tuple[tuple[int, int], ...]


def fold(text: str) -> str:
    """Fold width, case and composition."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def index_text(*texts: str | None) -> str:
    """Return the distinct words of the texts, in no order, separated by spaces."""
    words: set[str] = set()
    for text in texts:
        if text:
            folded = fold(text)
            words.update(SPACED.findall(folded))
            if not folded.isascii():
                words.update(run[at : at + 2] for run in PACKED.findall(folded) for at in range(len(run)))
    return " ".join(words)


def query_words(terms: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Return the words and pairs of folded terms to look up, each with whether it is the beginning of a word."""
    words: dict[tuple[str, bool], None] = {}
    for term in terms:
        words.update(((word, True), None) for word in SPACED.findall(term))
        for run in PACKED.findall(term):
            pairs = [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
            words.update(((pair, len(pair) == 1), None) for pair in pairs)
    return tuple(words)[:MOST_WORDS]


def excerpt(text: str, terms: Sequence[str], width: int = 80) -> Excerpt:
    """Return the text around the first match of the folded terms, `width` characters or a little more."""
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
    """Find the terms in original text; folding may change the number of characters."""
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
    """Return the end of the cluster whose last folded character is before `end`."""
    last = origin[end - 1]
    return next((place for place in origin[end:] if place > last), origin[-1])


def _on_one_line(text: str) -> str:
    return re.sub(r"\s", " ", text)


BATCH = 500
REFS = """
WITH RECURSIVE
    hit(seq) AS (SELECT value FROM json_each(?)),
    down(hit, seq) AS (
        SELECT seq, seq FROM hit
        UNION SELECT down.hit, node.seq FROM down JOIN node ON node.parent = down.seq),
    reached(hit, seq) AS MATERIALIZED (SELECT hit, seq FROM down WHERE seq IN (SELECT node FROM ref))
SELECT reached.hit, ref.name FROM reached JOIN ref ON ref.node = reached.seq ORDER BY ref.moved DESC"""
FIRST = 2**62


@dataclass(frozen=True, slots=True)
class Hit:
    """A node whose texts contain every term, the sessions it belongs to (latest first), and an excerpt."""

    hash: str
    kind: str
    refs: tuple[str, ...]
    excerpt: Excerpt
    at_us: int


def search(db: StoreDatabase, query: str, limit: int = 20) -> tuple[Hit, ...]:
    """Find the newest nodes that contain every word of a text, ignoring case and width, at most `limit`.

    A word matches by its beginning, or anywhere within text without spaces (Chinese, Japanese …); there is no query language.

    Raises:
        InputError: the text has no word, or `limit` is below 1.
    """
    terms = fold(query).split()
    if not terms:
        raise InputError("the search text has no words; give at least one")
    if limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    if not db.readonly:
        db.text_index.refresh()
    found: list[tuple[Any, ...]] = []
    for seq, hashed, kind, at, text in _candidates(db, terms):
        folded = fold(text)
        if all(term in folded for term in terms):
            found.append((seq, hashed, kind, at, text))
            if len(found) >= limit:
                break
    refs = _refs(db, [row[0] for row in found])
    return tuple(Hit(row[1].hex(), row[2], refs.get(row[0], ()), excerpt(row[4], terms), row[3]) for row in found)


def _candidates(db: StoreDatabase, terms: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield nodes that may contain the terms, newest first."""
    last = FIRST
    while rows := db.text_index.candidates(terms, last, BATCH):
        last = rows[-1][0]
        for seq, hashed, kind, at, body in rows:
            yield seq, hashed, kind, at, "\n".join(searchable_texts(body))


def _refs(db: StoreDatabase, seqs: Sequence[int]) -> dict[int, tuple[str, ...]]:
    names: dict[int, tuple[str, ...]] = {}
    for seq, name in db.rows(REFS, str(list(seqs))):
        names[seq] = (*names.get(seq, ()), name)
    return names
