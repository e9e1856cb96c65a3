"""What a batch does to the tables, in one transaction and a few statements, however many documents it has."""

import json
import secrets
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from taiwa.kernel.errors import StoreError
from taiwa.postgres import Connection
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.tables import Tables
from taiwa.retrieve.values import Batch, Document, Known

__all__ = ["Writing"]

MOST_OFTEN = 255
MOST_TERMS_HELD = 500_000
"""Numbers of terms that are remembered between batches."""
PUT = """
INSERT INTO document(shelf, path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters,
    terms, at_us)
SELECT ?1, path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters, terms, ?2
FROM unnest(CAST(?3 AS text[]), CAST(?4 AS text[]), CAST(?5 AS bytea[]), CAST(?6 AS bigint[]), CAST(?7 AS bigint[]),
    CAST(?8 AS text[]), CAST(?9 AS bigint[]), CAST(?10 AS text[]), CAST(?11 AS text[]), CAST(?12 AS bigint[]),
    CAST(?13 AS bigint[]), CAST(?14 AS bigint[]))
    AS new(path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters, terms)
ON CONFLICT(shelf, path) DO UPDATE SET title = excluded.title, digest = excluded.digest, size = excluded.size,
    modified_ns = excluded.modified_ns, reader = excluded.reader, audience = excluded.audience, access = excluded.access,
    problem = excluded.problem, passages = excluded.passages, characters = excluded.characters, terms = excluded.terms,
    at_us = excluded.at_us
RETURNING path, seq"""
VERSIONS = """
INSERT INTO version(document, digest, size, at_us)
SELECT seq, digest, size, at_us FROM document
WHERE seq = ANY(CAST(? AS bigint[])) AND length(digest) > 0 AND digest IS DISTINCT FROM (
    SELECT digest FROM version WHERE version.document = document.seq ORDER BY version.seq DESC LIMIT 1)"""
TALLY = """
INSERT INTO tally(shelf, term, audience, holders)
SELECT ?1, term, audience, ?2 * count(*)
FROM words JOIN passage ON passage.seq = words.passage CROSS JOIN LATERAL unnest(terms) AS term
WHERE document = ANY(CAST(?3 AS bigint[])) GROUP BY term, audience"""
TERMS = """
INSERT INTO term(shelf, text)
SELECT ?1, new FROM unnest(CAST(?2 AS text[])) AS new
WHERE NOT EXISTS(SELECT 1 FROM term WHERE shelf = ?1 AND text = new)"""
TOUCH = """
UPDATE document SET audience = ?, size = ?, modified_ns = ?, at_us = ? WHERE seq = ?"""
COMPACT = """
WITH old AS (DELETE FROM tally WHERE shelf = ?1 RETURNING term, audience, holders)
INSERT INTO tally(shelf, term, audience, holders)
SELECT ?1, term, audience, sum(holders) FROM old GROUP BY term, audience HAVING sum(holders) <> 0"""


class _Cut(NamedTuple):
    """A passage that is to be written: its place in the batch, its piece, its terms."""

    document: int
    piece: int
    terms: dict[str, int]


class Writing:
    """Writes batches into one index."""

    def __init__(self, db: Connection, shelf: int, analyzer: Analyzer) -> None:
        self._db = db
        self._shelf = shelf
        self._analyzer = analyzer
        self._tables = Tables(db, shelf)
        self._terms: dict[str, int] = {}

    def commit(self, batch: Batch) -> None:
        """Do what a batch says, all or nothing.

        Raises:
            StoreError: the index was dropped meanwhile.
        """
        documents = tuple({each.path: each for each in batch.documents}.values())
        cuts = list(self._cut(documents))
        try:
            with self._db.transaction():
                # Whoever writes to the same index waits here.
                if not self._db.rows("SELECT 1 FROM shelf WHERE seq = ? FOR UPDATE", self._shelf):
                    raise StoreError("the index is no longer there: it was dropped meanwhile")
                tallied = self._clear(documents, batch.gone) + self._put(documents, cuts)
                tallied += sum(self._touch(path, known) for path, known in batch.touched)
                self._db.run(
                    "UPDATE shelf SET generation = generation + 1, stamp = ?, at_us = ?, untallied = untallied + ?"
                    " WHERE seq = ?",
                    secrets.token_bytes(8), self._db.clock(), tallied, self._shelf,
                )  # fmt: skip
        except BaseException:
            self._terms.clear()  # numbers that were given and taken back
            raise

    def settle(self) -> None:
        """Add up what was counted, when there is more of it than of sums."""
        tallied, untallied = self._db.row("SELECT tallied, untallied FROM shelf WHERE seq = ?", self._shelf) or (0, 0)
        if untallied <= tallied:
            return
        with self._db.transaction():
            self._db.rows("SELECT 1 FROM shelf WHERE seq = ? FOR UPDATE", self._shelf)
            rows = self._db.run(COMPACT, self._shelf)
            self._db.run("UPDATE shelf SET tallied = ?, untallied = 0 WHERE seq = ?", rows, self._shelf)
        for table in ("words", "tally", "passage", "document", "term"):
            self._db.rows(f"ANALYZE {table}")

    def _cut(self, documents: Sequence[Document]) -> Iterator[_Cut]:
        """Cut pieces into terms, outside the transaction: nobody waits for that."""
        for at, document in enumerate(documents):
            headings: tuple[str, list[str]] = ("", [])
            for number, piece in enumerate(document.pieces):
                above = f"{document.title}\n{json.dumps(piece.heading, ensure_ascii=False)}"
                if headings[0] != above:
                    headings = (above, self._analyzer.terms(above))
                yield _Cut(at, number, Counter(headings[1] + self._analyzer.terms(piece.text)))

    def _clear(self, documents: Sequence[Document], gone: Iterable[str]) -> int:
        """Take out the passages of documents that change, and documents that are gone; return how many rows it counted."""
        select = "SELECT path, seq FROM document WHERE shelf = ? AND path = ANY(CAST(? AS text[]))"
        leaving = set(gone)
        found: dict[str, int] = dict(
            self._db.rows(select, self._shelf, [*(_text(each.path) for each in documents), *leaving])
        )
        if not found:
            return 0
        every = list(found.values())
        counted = self._db.run(TALLY, self._shelf, -1, every)
        self._db.run("DELETE FROM passage WHERE document = ANY(CAST(? AS bigint[]))", every)
        ended = [seq for path, seq in found.items() if path in leaving]
        self._db.run("DELETE FROM document WHERE seq = ANY(CAST(? AS bigint[]))", ended)
        return counted

    def _put(self, documents: Sequence[Document], cuts: Sequence[_Cut]) -> int:
        if not documents:
            return 0
        audiences = [self._tables.audience(each.known.audience) for each in documents]
        lengths = Counter[int]()
        for cut in cuts:
            lengths[cut.document] += sum(cut.terms.values())
        facts = [
            (
                _text(each.path), _text(each.title), bytes.fromhex(known.digest), known.size, known.modified_ns,
                known.reader, audience, None if known.access is None else json.dumps(known.access, ensure_ascii=False),
                _text(known.problem), len(each.pieces), sum(len(piece.text) for piece in each.pieces), lengths[at],
            )
            for at, (each, known, audience) in enumerate(
                (each, each.known, audience) for each, audience in zip(documents, audiences, strict=True)
            )
        ]  # fmt: skip
        columns = [list(column) for column in zip(*facts, strict=True)]
        numbers: dict[str, int] = dict(self._db.rows(PUT, self._shelf, self._db.clock(), *columns))
        seqs = [numbers[_text(each.path)] for each in documents]
        self._db.run(VERSIONS, seqs)
        self._put_passages(documents, cuts, seqs, audiences)
        return self._db.run(TALLY, self._shelf, 1, seqs)

    def _put_passages(
        self, documents: Sequence[Document], cuts: Sequence[_Cut], seqs: Sequence[int], audiences: Sequence[int]
    ) -> None:
        self._know({term for cut in cuts for term in cut.terms})
        taking = "SELECT nextval(pg_get_serial_sequence('passage', 'seq')) FROM generate_series(1, CAST(? AS integer))"
        numbers = [number for (number,) in self._db.rows(taking, len(cuts))]
        passages: list[tuple[object, ...]] = []
        words: list[tuple[object, ...]] = []
        for number, cut in zip(numbers, cuts, strict=True):
            piece = documents[cut.document].pieces[cut.piece]
            heading = json.dumps(piece.heading, ensure_ascii=False)
            passages.append((number, seqs[cut.document], piece.start, piece.page, _text(heading), _text(piece.text)))
            held = sorted((self._terms[term], min(times, MOST_OFTEN)) for term, times in cut.terms.items())
            words.append((
                number, audiences[cut.document], sum(cut.terms.values()), [term for term, _ in held],
                _little_endian(term for term, _ in held), bytes(times for _, times in held),
            ))  # fmt: skip
        self._db.copy("passage(seq, document, start, page, heading, text)", ["int8"] * 4 + ["text"] * 2, passages)
        self._db.copy(
            "words(passage, audience, length, terms, numbers, counts)",
            ["int8"] * 3 + ["int4[]", "bytea", "bytea"],
            words,
        )

    def _know(self, terms: set[str]) -> None:
        """Learn the numbers of terms, new ones for those that were never seen."""
        if len(self._terms) > MOST_TERMS_HELD:
            self._terms.clear()
        unknown = sorted(terms - self._terms.keys())
        if unknown:
            self._db.run(TERMS, self._shelf, unknown)
            select = "SELECT text, seq FROM term WHERE shelf = ? AND text = ANY(CAST(? AS text[]))"
            self._terms.update(self._db.rows(select, self._shelf, unknown))

    def _touch(self, path: str, known: Known) -> int:
        """Change facts of a file whose text is the same; where somebody else may see it now, its words go with it."""
        row = self._db.row("SELECT seq, audience FROM document WHERE shelf = ? AND path = ?", self._shelf, path)
        if row is None:
            return 0
        seq, before = row
        audience = self._tables.audience(known.audience)
        self._db.run(TOUCH, audience, known.size, known.modified_ns, self._db.clock(), seq)
        if audience == before:
            return 0
        counted = self._db.run(TALLY, self._shelf, -1, [seq])
        moving = "UPDATE words SET audience = ? WHERE passage IN (SELECT seq FROM passage WHERE document = ?)"
        self._db.run(moving, audience, seq)
        return counted + self._db.run(TALLY, self._shelf, 1, [seq])


def _text(text: str) -> str:
    """The server keeps no NUL; a character in its place keeps all others where they are."""
    return text.replace("\0", "\ufffd")


def _little_endian(numbers: Iterable[int]) -> bytes:
    written = array("i", numbers)
    if sys.byteorder == "big":
        written.byteswap()
    return written.tobytes()
