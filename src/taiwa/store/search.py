"""Full text search in any language, newest first.

The index is a cache that `search` itself updates, so that turns do not pay for it. It only narrows the candidates: each text is
checked for the terms. Scripts without spaces between words (Han, kana, Thai …; Hangul too, for its particles) are cut into
overlapping pairs of characters, so a Japanese word of two characters is found; all others into words, which a query finds by
their beginning.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from taiwa.kernel.errors import InputError, StoreError
from taiwa.kernel.serialization import value
from taiwa.sql import Database, SqlRow
from taiwa.store.nodes import Nodes, decoding, searchable_texts

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
LONGEST = 40
"""Maximum characters of a word; longer runs are cut into pieces."""
SPACED = re.compile(rf"[^\W_{DENSE}]{{1,{LONGEST}}}")
PACKED = re.compile(f"[{DENSE}]+")

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with its combining marks."""
PIECE = 2048
"""Characters searched at a time for the position of a term in the original text."""
MOST_WORDS = 64
"""Maximum number of query words looked up in the index; the others are searched in the texts that it returns."""


@value
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
    index = text_index(db)
    if not db.readonly:
        with suppress(
            StoreError
        ):  # a full disk, or another writer: nodes that are not indexed yet are searched without the index
            index.refresh()
    hits: list[tuple[SqlRow, str]] = []
    before = FIRST
    while len(hits) < limit and (rows := index.candidates(terms, before, BATCH)):
        before = rows[-1][0]
        # The index has the words of all owners, so what it finds says nothing before this check.
        owned = nodes.owned(row[0] for row in rows)
        for row in rows:
            if row[0] not in owned:
                continue
            # Words of the index are cut into pieces, so a candidate may have all pieces and not the term.
            text = "\n".join(searchable_texts(row[4]))
            folded = fold(text)
            if all(term in folded for term in terms):
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


def text_index(db: Database) -> "Fts5Index | TsvectorIndex":
    """Return the full text index of a store: a cache that `search` updates."""
    return Fts5Index(db) if db.dialect == "sqlite" else TsvectorIndex(db)


UNINDEXED = "SELECT seq, hash, kind, at_us, body FROM node WHERE seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?"
INDEXED = """
SELECT node.seq, hash, kind, at_us, body
FROM (SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?) AS found
JOIN node ON node.seq = found.rowid ORDER BY node.seq DESC"""


class Fts5Index:
    """The full-text index of an SQLite store (FTS5); the table `indexed` holds the last indexed node."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def refresh(self) -> None:
        """Index new nodes in steps, so that the lock is never held for long; do not wait for another writer.

        Raises:
            StoreError: another program is writing, or the disk is full.
        """
        # A search does not wait for a writer only to have a newer cache.
        wait = self._db.one("PRAGMA busy_timeout")
        self._db.run("PRAGMA busy_timeout = 0")
        try:
            self._index_new()
        finally:
            self._db.run(f"PRAGMA busy_timeout = {wait}")

    def _index_new(self) -> None:
        while self._db.one("SELECT EXISTS(SELECT 1 FROM node WHERE seq > (SELECT seq FROM indexed))"):
            with self._db.transaction():
                done: int = self._db.one("SELECT seq FROM indexed")
                new = "SELECT seq, body FROM node WHERE seq > ? ORDER BY seq LIMIT ?"
                for seq, body in self._db.rows(new, done, BATCH):
                    done = seq
                    words = index_text(*searchable_texts(body))
                    if words:
                        self._db.run("INSERT INTO search(rowid, words) VALUES(?, ?)", seq, words)
                self._db.run("UPDATE indexed SET seq = ?", done)

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[SqlRow]:
        """Return (seq, hash, kind, at_us, body) of nodes with `seq < before` that may contain the folded terms, newest first.

        In a read-only store some nodes may not be indexed yet; they come first.
        """
        # Every word matches by its beginning, every pair of characters exactly.
        query = " ".join(f'"{word}" *' if begins else f'"{word}"' for word, begins in query_words(terms))
        done: int = self._db.one("SELECT seq FROM indexed") if query else 0
        new = self._db.rows(UNINDEXED, done, before, limit)
        return new if new or not query else self._db.rows(INDEXED, query, before, limit)

    def clear(self) -> None:
        """Empty the index; the next search fills it again."""
        self._db.run("INSERT INTO search(search) VALUES('delete-all')")
        self._db.run("UPDATE indexed SET seq = 0")

    def words(self) -> Iterator[tuple[int, str]]:
        """Yield every word with the row of its node."""
        self._db.run("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word USING fts5vocab(main, search, instance)")
        for term, doc in self._db.rows("SELECT term, doc FROM temp.word"):
            yield doc, term

    def covered(self) -> Iterator[SqlRow]:
        """Yield (seq, hash, body) of the nodes whose words the index should have."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq <= (SELECT seq FROM indexed)")


LARGEST = 900_000
"""Maximum bytes of words; a tsvector can contain slightly more."""
TAKE = """
WITH taken AS (
    DELETE FROM unindexed WHERE node IN (
        SELECT node FROM unindexed WHERE large = 0 ORDER BY node LIMIT ? FOR UPDATE SKIP LOCKED)
    RETURNING node)
SELECT seq, body FROM node JOIN taken ON taken.node = seq"""
PUT = """
INSERT INTO search(node, words)
SELECT node, array_to_tsvector(string_to_array(words, ' '))
FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS new(node, words)
ON CONFLICT(node) DO UPDATE SET words = excluded.words"""
NEWEST = "SELECT seq, hash, kind, at_us, body FROM node WHERE seq < ? ORDER BY seq DESC LIMIT ?"
FOUND = """
SELECT seq, hash, kind, at_us, body
FROM (SELECT node FROM (
        SELECT node FROM search WHERE words @@ CAST(?1 AS tsquery) UNION SELECT node FROM unindexed) AS every
    WHERE node < ?2 ORDER BY node DESC LIMIT ?3) AS found JOIN node ON node.seq = found.node
ORDER BY seq DESC"""


class TsvectorIndex:
    """The full-text index of a PostgreSQL store: tsvectors computed here, not by the server's parser."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def refresh(self) -> None:
        """Index new nodes, in steps; several programs take different nodes."""
        while self._db.one("SELECT EXISTS(SELECT 1 FROM unindexed WHERE large = 0)"):
            with self._db.transaction():
                rows = [(seq, index_text(*searchable_texts(body))) for seq, body in self._db.rows(TAKE, BATCH)]
                large = [seq for seq, words in rows if len(words.encode()) > LARGEST]
                small = [(seq, words) for seq, words in rows if seq not in large]
                self._db.run(PUT, [seq for seq, _ in small], [words for _, words in small])
                self._db.run("INSERT INTO unindexed SELECT unnest(CAST(? AS bigint[])), 1", large)
            if not rows:
                return  # other programs are indexing the rest

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[SqlRow]:
        """Return (seq, hash, kind, at_us, body) of nodes with `seq < before` that may contain the folded terms, newest first."""
        query = " & ".join(f"'{word}':*" if begins else f"'{word}'" for word, begins in query_words(terms))
        return self._db.rows(FOUND, query, before, limit) if query else self._db.rows(NEWEST, before, limit)

    def clear(self) -> None:
        """Empty the index; the next search fills it again."""
        self._db.run("DELETE FROM search")
        self._db.run("INSERT INTO unindexed(node) SELECT seq FROM node ON CONFLICT DO NOTHING")

    def words(self) -> Iterator[tuple[int, str]]:
        """Yield every word with the row of its node."""
        for node, words in self._db.rows("SELECT node, tsvector_to_array(words) FROM search"):
            for word in words:
                yield node, word

    def covered(self) -> Iterator[SqlRow]:
        """Yield (seq, hash, body) of the indexed nodes."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq NOT IN (SELECT node FROM unindexed)")
