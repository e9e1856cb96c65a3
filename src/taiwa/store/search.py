"""Full text search in any language, newest first, without an index: the texts of turns are read until enough are found.

A word is found by its beginning; in scripts without spaces between words (Han, kana, Thai …; Hangul too, for its particles)
anywhere.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.serialization import value
from taiwa.sql import Database, SqlRow
from taiwa.store.nodes import OWNED, Nodes, decoding, searchable_texts

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
LETTER = re.compile(rf"[^\W_{DENSE}]")
"""A letter or digit of a script with spaces between words."""
CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with its combining marks."""
PIECE = 2048
"""Characters searched at a time for the position of a term in the original text."""


@value
class Excerpt:
    """Text around a match; `marks` are the matches as (start, end) in characters of the excerpt."""

    text: str
    marks: tuple[tuple[int, int], ...]


def fold(text: str) -> str:
    """Fold width, case and composition."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def excerpt(text: str, terms: Sequence[str], width: int = 80) -> Excerpt:
    """Return the text around the first match of the folded terms, about `width` characters."""
    # Pieces overlap by the longest term, or a match across their border would be missed.
    longest = max(map(len, terms), default=0)
    for start in range(0, max(len(text), 1), PIECE):
        piece = text[start : start + PIECE + longest]
        if any(term in fold(piece) for term in terms):
            matches = _places(piece, terms)
            if matches:
                return _around(text, [(start + first, start + last) for first, last in matches], width)
    return Excerpt(_on_one_line(text[:width]) + ("…" if len(text) > width else ""), ())


def _around(text: str, matches: list[tuple[int, int]], width: int) -> Excerpt:
    first, last = matches[0]
    begin = max(0, min(first - width // 4, len(text) - width))
    end = max(begin + width, last)
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    shift = len(before) - begin
    marks = tuple((start + shift, stop + shift) for start, stop in matches if stop <= end)
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
    matches = re.finditer("|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True)), "".join(folded))
    return [(origin[place.start()], _end(origin, place.end())) for place in matches]


def _end(origin: list[int], end: int) -> int:
    """Return the end of the cluster whose last folded character is before `end`."""
    last = origin[end - 1]
    return next((place for place in origin[end:] if place > last), origin[-1])


def _on_one_line(text: str) -> str:
    return re.sub(r"\s", " ", text)


BATCH = 500
NEWEST = f"SELECT node.seq, hash, kind, at_us, body {OWNED} AND node.seq < ? ORDER BY node.seq DESC LIMIT ?"
REFS = """
WITH RECURSIVE
    hit(seq) AS (SELECT value FROM json_each(?)),
    down(hit, seq) AS (
        SELECT seq, seq FROM hit
        UNION SELECT down.hit, node.seq FROM down JOIN node ON node.parent = down.seq),
    reached(hit, seq) AS MATERIALIZED (SELECT hit, seq FROM down WHERE seq IN (SELECT node FROM ref))
SELECT reached.hit, ref.name FROM reached JOIN ref ON ref.node = reached.seq WHERE ref.owner = ? ORDER BY ref.moved DESC"""
LEFT = REFS.replace("SELECT node FROM ref)", "SELECT new FROM reflog)").replace(
    "JOIN ref ON ref.node = reached.seq WHERE",
    "JOIN reflog ON reflog.new = reached.seq JOIN ref ON ref.seq = reflog.ref WHERE ref.node IS NOT NULL AND",
)
FIRST = 2**62


@value
class Hit:
    """A node whose texts contain every term, the sessions it belongs to (latest first), and an excerpt; `left` are the sessions
    that have left it, by an undo or an edit, if it belongs to none.
    """

    hash: str
    kind: str
    refs: tuple[str, ...]
    excerpt: Excerpt
    at_us: int
    left: tuple[str, ...] = ()


def search(db: Database, nodes: Nodes, query: str, limit: int = 20) -> tuple[Hit, ...]:
    """Find the newest nodes of an owner that contain every word of a text, ignoring case and width, at most `limit`.

    A word matches by its beginning, or anywhere within text without spaces (Chinese, Japanese …); there is no query language.

    Raises:
        InputError: the text has no word, or `limit` is below 1.
    """
    terms = fold(query).split()
    if not terms:
        raise InputError("the search text has no words; give at least one")
    if limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    words = [re.compile((f"(?<!{LETTER.pattern})" if LETTER.match(term) else "") + re.escape(term)) for term in terms]
    hits: list[tuple[SqlRow, str]] = []
    before = FIRST
    while len(hits) < limit and (rows := db.rows(NEWEST, nodes.owner, before, BATCH)):
        before = rows[-1][0]
        for row in rows:
            try:
                text = "\n".join(searchable_texts(row[4]))
            except CorruptError:  # `fsck` names it
                continue
            folded = fold(text)
            # The plain comparison is ten times quicker, and most texts end there.
            if all(term in folded and word.search(folded) for term, word in zip(terms, words, strict=True)):
                hits.append((row, text))
    hits = hits[:limit]

    def names(select: str, nodes_: Iterable[int]) -> dict[int, tuple[str, ...]]:
        found: dict[int, dict[str, None]] = {}
        for seq, name in db.rows(select, str([*nodes_]), nodes.owner):
            found.setdefault(seq, {})[str(name)] = None
        return {seq: tuple(each) for seq, each in found.items()}

    refs = names(REFS, (row[0] for row, _ in hits))
    left = names(LEFT, (row[0] for row, _ in hits if row[0] not in refs))
    with decoding("node"):
        return tuple(
            Hit(key.hex(), kind, refs.get(seq, ()), excerpt(text, terms), at, left.get(seq, ()))
            for (seq, key, kind, at, _), text in hits
        )
