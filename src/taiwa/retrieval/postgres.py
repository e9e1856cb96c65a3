"""Indexes on a PostgreSQL server. Rows and words change in one transaction, so every search sees complete, current
documents.

The inverted index (GIN) of PostgreSQL gives candidates, and BM25 ranks them here. Only passages with at least one of the rarer
terms are scored; an upper bound for the more common ones shows when no other passage can be among the best; until then more
terms are included, up to a limit. Passages that the principals may not see never leave the server.
"""

import json
import math
import secrets
import sys
import time
from array import array
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from taiwa.kernel.errors import ConflictError, StoreError
from taiwa.kernel.messages import Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import (
    LIBRARY,
    MOST,
    IndexBackend,
    LibraryBackend,
    access_json,
    passage_terms,
)
from taiwa.retrieval.types import Batch, Chunk, Document, DocumentListing, FileFacts, Principals, TermCounts, may_see
from taiwa.sql import Clock, PostgresUrl, now_us
from taiwa.sql.postgres import PostgresDatabase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K1, B = 1.2, 0.75
ENOUGH_AT_FIRST = 250
"""Passages with the rarest terms that are scored before the best scores are known."""
MOST_HOLDERS = 2_000
"""Maximum number of passages to score; beyond it, passages with only common terms are ignored."""
HOLDERS = """
SELECT text, term.seq, CAST(sum(holders) AS bigint) FROM term JOIN tally ON tally.term = term.seq
WHERE term.doc_index = ? AND text = ANY(CAST(? AS text[])) AND audience = ANY(CAST(? AS bigint[]))
GROUP BY text, term.seq HAVING sum(holders) > 0"""
CANDIDATES = """
SELECT passage, length, numbers, counts FROM words
WHERE terms && CAST(? AS integer[]) AND audience = ANY(CAST(? AS bigint[]))"""


class Holding(NamedTuple):
    """The number of passages that the principals may see, and of their terms."""

    passages: int
    terms: int


class _Term(NamedTuple):
    seq: int
    holders: int
    most: float
    """The maximum that it can add to a score."""


class _Scored(NamedTuple):
    passages: "NDArray[np.int64]"
    scores: "NDArray[np.float64]"


class PostgresTerms:
    """The words of one index."""

    def __init__(self, db: PostgresDatabase, index: int) -> None:
        self._db = db
        self._index = index

    def holders(self, terms: Collection[str], audiences: Sequence[int]) -> dict[str, tuple[int, int]]:
        """Return the number of each term, and of the visible passages that contain it, if any."""
        rows = self._db.rows(HOLDERS, self._index, [each for each in terms if "\0" not in each], audiences)
        return {text: (seq, count) for text, seq, count in rows}

    def search(
        self, weights: Mapping[str, float], k: int, audiences: Sequence[int], holding: Holding
    ) -> dict[int, float]:
        """Return the k best passages with their scores, best first."""
        terms = [
            _Term(seq, count, weights[text] * _idf(holding.passages, count) * (K1 + 1))
            for text, (seq, count) in self.holders(weights, audiences).items()
            if weights[text] > 0
        ]
        terms.sort(key=lambda term: (term.holders, term.seq))
        if not terms or k < 1:
            return {}
        import numpy as np

        best = _Scored(np.empty(0, np.int64), np.empty(0, np.float64))
        reached, wanted = 0, _reach(terms, max(ENOUGH_AT_FIRST, k))
        most = max(_reach(terms, max(MOST_HOLDERS, 4 * k)), wanted)
        while reached < wanted:
            best = _best(best, self._scored(terms, (reached, wanted), audiences, holding), k)
            bar = float(best.scores[-1]) if len(best.scores) >= k else 0.0
            reached, wanted = wanted, min(_enough(terms, bar), most)
        return dict(zip(best.passages.tolist(), best.scores.tolist(), strict=True))

    def _scored(
        self, terms: Sequence[_Term], part: tuple[int, int], audiences: Sequence[int], holding: Holding
    ) -> _Scored:
        """Score the passages that contain one of some terms, by all terms."""
        import numpy as np

        rows = self._db.rows(CANDIDATES, [term.seq for term in terms[part[0] : part[1]]], audiences)
        if not rows:
            return _Scored(np.empty(0, np.int64), np.empty(0, np.float64))
        passages, lengths, numbers, counts = zip(*rows, strict=True)
        numbers_of_terms, times = np.frombuffer(b"".join(numbers), "<i4"), np.frombuffer(b"".join(counts), np.uint8)
        owner = np.repeat(np.arange(len(rows)), [len(each) for each in counts])
        highest = max(term.seq for term in terms)
        places = np.zeros(highest + 2, np.int16)
        places[[term.seq for term in terms]] = np.arange(1, len(terms) + 1)
        place = places[np.minimum(numbers_of_terms, highest + 1)]
        hits = np.flatnonzero(place)
        owner, place, times = owner[hits], place[hits] - 1, times[hits]
        norm = K1 * (1 - B + B * np.array(lengths) * holding.passages / holding.terms)[owner]
        parts = np.array([term.most for term in terms])[place] * (times / (times + norm))
        return _Scored(np.array(passages), np.bincount(owner, parts, len(rows)).astype(np.float64))


def _best(one: _Scored, two: _Scored, k: int) -> _Scored:
    """Return the k best of both, best first, older ones first among equals. A passage may be in both, with the same score."""
    import numpy as np

    passages, first = np.unique(np.concatenate((one.passages, two.passages)), return_index=True)
    scores = np.concatenate((one.scores, two.scores))[first]
    order = np.lexsort((passages, -scores))[:k]
    return _Scored(passages[order], scores[order])


def _idf(passages: int, holders: int) -> float:
    return math.log1p((max(passages - holders, 0) + 0.5) / (holders + 0.5))


def _reach(terms: Sequence[_Term], most: int) -> int:
    """Return the number of terms, rarest first, with at most `most` passages in total; at least 1."""
    holders = 0
    for count, term in enumerate(terms):
        holders += term.holders
        if holders > most:
            return max(count, 1)
    return len(terms)


def _enough(terms: Sequence[_Term], bar: float) -> int:
    """Return how many terms, rarest first, must be considered so that the others together stay below the threshold."""
    rest, count = 0.0, len(terms)
    while count > 0 and rest + terms[count - 1].most < bar:
        count -= 1
        rest += terms[count].most
    return count


MOST_OFTEN = 255
MOST_TERMS_HELD = 500_000
"""The number of term numbers cached between batches."""
PUT_DOCUMENTS = """
INSERT INTO document(doc_index, path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters,
    terms, at_us)
SELECT ?1, path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters, terms, ?2
FROM unnest(CAST(?3 AS text[]), CAST(?4 AS text[]), CAST(?5 AS bytea[]), CAST(?6 AS bigint[]), CAST(?7 AS bigint[]),
    CAST(?8 AS text[]), CAST(?9 AS bigint[]), CAST(?10 AS text[]), CAST(?11 AS text[]), CAST(?12 AS bigint[]),
    CAST(?13 AS bigint[]), CAST(?14 AS bigint[]))
    AS new(path, title, digest, size, modified_ns, reader, audience, access, problem, passages, characters, terms)
ON CONFLICT(doc_index, path) DO UPDATE SET title = excluded.title, digest = excluded.digest, size = excluded.size,
    modified_ns = excluded.modified_ns, reader = excluded.reader, audience = excluded.audience, access = excluded.access,
    problem = excluded.problem, passages = excluded.passages, characters = excluded.characters, terms = excluded.terms,
    at_us = excluded.at_us
RETURNING path, seq"""
TALLY = """
INSERT INTO tally(doc_index, term, audience, holders)
SELECT ?1, term, audience, ?2 * count(*)
FROM words JOIN passage ON passage.seq = words.passage CROSS JOIN LATERAL unnest(terms) AS term
WHERE document = ANY(CAST(?3 AS bigint[])) GROUP BY term, audience"""
TERMS = """
INSERT INTO term(doc_index, text)
SELECT ?1, new FROM unnest(CAST(?2 AS text[])) AS new
WHERE NOT EXISTS(SELECT 1 FROM term WHERE doc_index = ?1 AND text = new)"""
TOUCH = """
UPDATE document SET audience = ?, size = ?, modified_ns = ?, at_us = ? WHERE seq = ?"""
COMPACT = """
WITH old AS (DELETE FROM tally WHERE doc_index = ?1 RETURNING term, audience, holders)
INSERT INTO tally(doc_index, term, audience, holders)
SELECT ?1, term, audience, sum(holders) FROM old GROUP BY term, audience HAVING sum(holders) <> 0"""
INDEXER = 0x7461696C
"""The class of the locks of indexing processes."""
HOLDING = """
SELECT CAST(coalesce(sum(passages), 0) AS bigint), CAST(coalesce(sum(terms), 0) AS bigint) FROM document
WHERE doc_index = ? AND audience = ANY(CAST(? AS bigint[]))"""


class _NewPassage(NamedTuple):
    """A passage to write: the position of its document in the batch, its chunk, and the counts of its terms."""

    document: int
    chunk: Chunk
    terms: dict[str, int]


class _Visible(NamedTuple):
    """The audiences that include the principals, and their totals."""

    audiences: list[int]
    holding: Holding


class PostgresIndexBackend(IndexBackend):
    """One index."""

    def __init__(self, db: PostgresDatabase, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        super().__init__(db, seq, named, analyzer)
        self._server = db
        self._words = PostgresTerms(db, seq)
        self._term_numbers: dict[str, int] = {}
        self._locked = False

    @contextmanager
    def write_lock(self, wait: float) -> Generator[None]:
        """Hold the lock of the only writer; the server frees it with the connection.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """
        deadline = time.monotonic() + wait
        taking = "SELECT pg_try_advisory_lock(CAST(? AS integer), CAST(? AS integer))"
        # A connection can acquire its own lock again, so the process must track its owner.
        while self._locked or not self._db.one(taking, INDEXER, self.seq):
            if time.monotonic() >= deadline:
                raise ConflictError(f"another process is indexing {self.name!r}; wait until it has finished")
            time.sleep(0.05)
        self._locked = True
        try:
            yield
        finally:
            self._locked = False
            self._db.rows("SELECT pg_advisory_unlock(CAST(? AS integer), CAST(? AS integer))", INDEXER, self.seq)

    # --- writing ------------------------------------------------------------------------------------------------------

    def commit(self, batch: Batch) -> None:
        """Apply a batch, all or nothing.

        Raises:
            StoreError: the index was deleted meanwhile.
        """
        documents = tuple({each.path: each for each in batch.documents}.values())
        # Analysed before the transaction, so that no other process waits for it.
        chunks = [(at, each, chunk) for at, each in enumerate(documents) for chunk in each.chunks]
        new = [_NewPassage(at, chunk, self._terms_of(each, chunk)) for at, each, chunk in chunks]
        try:
            with self._db.transaction():
                # Other writers to the same index wait here.
                if not self._db.rows("SELECT 1 FROM doc_index WHERE seq = ? FOR UPDATE", self.seq):
                    raise StoreError("the index does not exist any more: it was deleted meanwhile")
                tallied = self._clear(documents, batch.gone) + self._put(documents, new)
                tallied += sum(self._touch(path, known) for path, known in batch.touched)
                self._db.run(
                    "UPDATE doc_index SET generation = generation + 1, stamp = ?, at_us = ?, untallied = untallied + ?"
                    " WHERE seq = ?",
                    secrets.token_bytes(8), self._db.clock(), tallied, self.seq,
                )  # fmt: skip
        except BaseException:
            self._term_numbers.clear()  # numbers that were given and taken back
            raise

    def update_derived(self) -> None:
        """Sum up new counts once they outnumber the sums."""
        counts = self._db.row("SELECT tallied, untallied FROM doc_index WHERE seq = ?", self.seq)
        if counts is None or counts[1] <= counts[0]:
            return
        with self._db.transaction():
            self._db.rows("SELECT 1 FROM doc_index WHERE seq = ? FOR UPDATE", self.seq)
            rows = self._db.run(COMPACT, self.seq)
            self._db.run("UPDATE doc_index SET tallied = ?, untallied = 0 WHERE seq = ?", rows, self.seq)
        for table in ("words", "tally", "passage", "document", "term"):
            self._db.rows(f"ANALYZE {table}")

    def _terms_of(self, document: Document, chunk: Chunk) -> dict[str, int]:
        return Counter(passage_terms(self.analyzer, document.title, _heading_json(chunk), chunk.text))

    def _clear(self, documents: Sequence[Document], gone: Iterable[str]) -> int:
        """Remove the passages of changed documents, and deleted documents; return the number of count rows written."""
        select = "SELECT path, seq FROM document WHERE doc_index = ? AND path = ANY(CAST(? AS text[]))"
        leaving = set(gone)
        paths = [*(_without_nul(each.path) for each in documents), *leaving]
        numbers: dict[str, int] = dict(self._db.rows(select, self.seq, paths))
        if not numbers:
            return 0
        every = list(numbers.values())
        counted = self._db.run(TALLY, self.seq, -1, every)
        self._db.run("DELETE FROM passage WHERE document = ANY(CAST(? AS bigint[]))", every)
        ended = [seq for path, seq in numbers.items() if path in leaving]
        self._db.run("DELETE FROM document WHERE seq = ANY(CAST(? AS bigint[]))", ended)
        return counted

    def _put(self, documents: Sequence[Document], new: Sequence[_NewPassage]) -> int:
        if not documents:
            return 0
        audiences = [self._audience_row(each.known.audience) for each in documents]
        lengths = Counter[int]()
        for passage in new:
            lengths[passage.document] += sum(passage.terms.values())
        facts = [
            (
                _without_nul(each.path), _without_nul(each.title), bytes.fromhex(each.known.digest), each.known.size,
                each.known.modified_ns, each.known.reader, audience, access_json(each.known), _without_nul(each.known.problem),
                len(each.chunks), sum(len(chunk.text) for chunk in each.chunks), lengths[at],
            )
            for at, (each, audience) in enumerate(zip(documents, audiences, strict=True))
        ]  # fmt: skip
        columns = [list(column) for column in zip(*facts, strict=True)]
        numbers: dict[str, int] = dict(self._db.rows(PUT_DOCUMENTS, self.seq, self._db.clock(), *columns))
        seqs = [numbers[_without_nul(each.path)] for each in documents]
        self._put_passages(new, seqs, audiences)
        return self._db.run(TALLY, self.seq, 1, seqs)

    def _put_passages(self, new: Sequence[_NewPassage], seqs: Sequence[int], audiences: Sequence[int]) -> None:
        self._number_terms({term for each in new for term in each.terms})
        taking = "SELECT nextval(pg_get_serial_sequence('passage', 'seq')) FROM generate_series(1, CAST(? AS integer))"
        passages: list[tuple[object, ...]] = []
        words: list[tuple[object, ...]] = []
        for (number,), each in zip(self._db.rows(taking, len(new)), new, strict=True):
            chunk = each.chunk
            heading, text = _without_nul(_heading_json(chunk)), _without_nul(chunk.text)
            passages.append((number, seqs[each.document], chunk.start, chunk.page, heading, text))
            counts = sorted((self._term_numbers[term], min(times, MOST_OFTEN)) for term, times in each.terms.items())
            terms = [term for term, _ in counts]
            words.append((
                number, audiences[each.document], sum(each.terms.values()), terms, _little_endian(terms),
                bytes(times for _, times in counts),
            ))  # fmt: skip
        columns = ["int8"] * 4 + ["text"] * 2
        self._server.copy("passage(seq, document, start, page, heading, text)", columns, passages)
        columns = ["int8"] * 3 + ["int4[]", "bytea", "bytea"]
        self._server.copy("words(passage, audience, length, terms, numbers, counts)", columns, words)

    def _number_terms(self, terms: set[str]) -> None:
        """Return the numbers of terms; assign new numbers to unknown ones."""
        if len(self._term_numbers) > MOST_TERMS_HELD:
            self._term_numbers.clear()
        unknown = sorted(terms - self._term_numbers.keys())
        if unknown:
            self._db.run(TERMS, self.seq, unknown)
            select = "SELECT text, seq FROM term WHERE doc_index = ? AND text = ANY(CAST(? AS text[]))"
            self._term_numbers.update(self._db.rows(select, self.seq, unknown))

    def _touch(self, path: str, known: FileFacts) -> int:
        """Change the facts of a file with unchanged text; if its audience changed, its words change too."""
        row = self._db.row("SELECT seq, audience FROM document WHERE doc_index = ? AND path = ?", self.seq, path)
        if row is None:
            return 0
        seq, before = row
        audience = self._audience_row(known.audience)
        self._db.run(TOUCH, audience, known.size, known.modified_ns, self._db.clock(), seq)
        if audience == before:
            return 0
        counted = self._db.run(TALLY, self.seq, -1, [seq])
        moving = "UPDATE words SET audience = ? WHERE passage IN (SELECT seq FROM passage WHERE document = ?)"
        self._db.run(moving, audience, seq)
        return counted + self._db.run(TALLY, self.seq, 1, [seq])

    # --- searching ----------------------------------------------------------------------------------------------------

    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first."""
        with self._db.transaction(write=False):
            audiences, holding = self._visible(principals)
            if not holding.passages:
                return ()
            scores = self._words.search(weights, min(k, MOST), audiences, holding)
            return tuple(each.passage for each in self._scored(scores))

    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""
        with self._db.transaction(write=False):
            audiences, holding = self._visible(principals)
            holders = self._words.holders(terms, audiences)
        return TermCounts(holding.passages, {term: holders[term][1] if term in holders else 0 for term in terms})

    def documents(self, principals: Principals | None) -> tuple[DocumentListing, ...]:
        """List documents by path."""
        with self._db.transaction(write=False):
            return super().documents(principals)

    def _visible_audiences(self, principals: Principals) -> list[int]:
        return self._visible(principals).audiences

    def _visible(self, principals: Principals) -> _Visible:
        cache: dict[Principals, _Visible] = self._cache_of_state()
        if principals not in cache:
            audiences = [seq for seq, audience in self._audiences().items() if may_see(audience, principals)]
            cache[principals] = _Visible(audiences, Holding(*self._db.rows(HOLDING, self.seq, audiences)[0]))
        return cache[principals]


def _heading_json(chunk: Chunk) -> str:
    return json.dumps(chunk.heading, ensure_ascii=False)


def _without_nul(text: str) -> str:
    """The server does not store NUL; a replacement character keeps all offsets."""
    return text.replace("\0", "\ufffd")


def _little_endian(numbers: Iterable[int]) -> bytes:
    written = array("i", numbers)
    if sys.byteorder == "big":
        written.byteswap()
    return written.tobytes()


class PostgresLibraryBackend(LibraryBackend[PostgresIndexBackend]):
    """Indexes in one database of a PostgreSQL server."""

    def __init__(self, url: PostgresUrl, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self._server = PostgresDatabase(url, LIBRARY, readonly=readonly, clock=clock)
        super().__init__(self._server)

    def __repr__(self) -> str:
        return f"PostgresLibraryBackend({str(self._server.url)!r})"

    def _open_backend(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> PostgresIndexBackend:
        return PostgresIndexBackend(self._server, seq, named, analyzer)
