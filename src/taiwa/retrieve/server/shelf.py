"""One index on a server. Rows and words change in one transaction, so whoever asks sees whole documents, as they are now."""

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from taiwa.kernel.errors import ConflictError
from taiwa.kernel.values import Passage
from taiwa.postgres import Connection
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.tabled import TableShelf
from taiwa.retrieve.local.tables import State, held
from taiwa.retrieve.seam import Vector
from taiwa.retrieve.server.vectors import ServerVectors
from taiwa.retrieve.server.words import Holding, ServerWords
from taiwa.retrieve.server.writing import Writing
from taiwa.retrieve.values import Batch, Counts, Listed, Who, may_see
from taiwa.sqlite import Row

__all__ = ["ServerShelf"]

MOST = 10_000
"""Passages that are given for one question at most."""
MOST_ASKERS = 1_000
INDEXER = 0x7461696C
"""The class of the locks of those who index."""
HOLDING = """
SELECT CAST(coalesce(sum(passages), 0) AS bigint), CAST(coalesce(sum(terms), 0) AS bigint) FROM document
WHERE shelf = ? AND audience = ANY(CAST(? AS bigint[]))"""


class ServerShelf(TableShelf):
    """One index."""

    def __init__(self, db: Connection, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        self._vectors = ServerVectors(db, seq)
        super().__init__(db, seq, named, analyzer, self._vectors)
        self._writing = Writing(db, seq, analyzer)
        self._words = ServerWords(db, seq)
        self._seen: State | None = None
        self._visible: dict[Who, tuple[list[int], Holding]] = {}
        self._indexed = False

    @contextmanager
    def writing(self, wait: float) -> Generator[None]:
        """Be the only one who indexes; the server ends that with the connection.

        Raises:
            ConflictError: another process did for longer than `wait` seconds.
        """
        deadline = time.monotonic() + wait
        taking = "SELECT pg_try_advisory_lock(CAST(? AS integer), CAST(? AS integer))"
        # A connection that has a lock is given it again, so within a process it must be known who has it.
        while self._indexed or not self._db.one(taking, INDEXER, self.seq):
            if time.monotonic() >= deadline:
                raise ConflictError(f"another process is indexing {self.name!r}: wait until it is done")
            time.sleep(0.05)
        self._indexed = True
        try:
            yield
        finally:
            self._indexed = False
            self._db.rows("SELECT pg_advisory_unlock(CAST(? AS integer), CAST(? AS integer))", INDEXER, self.seq)

    def commit(self, batch: Batch) -> None:
        """Do what a batch says, all or nothing."""
        self._writing.commit(batch)

    def settle(self) -> None:
        """Make everything committed quick to find."""
        self._writing.settle()

    def search(self, weights: Mapping[str, float], k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first."""
        with self._db.transaction(write=False):
            audiences, holding = self._held_for(who)
            if not holding.passages:
                return ()
            scores = self._words.search(weights, min(k, MOST), audiences, holding)
            rows = self._tables.passages(scores) if scores else {}
            return tuple(rows[number].passage for number in scores if number in rows)

    def counts(self, terms: Sequence[str], who: Who) -> Counts:
        """Count passages and the holders of terms."""
        with self._db.transaction(write=False):
            audiences, holding = self._held_for(who)
            found = self._words.holders(terms, audiences)
        return Counts(holding.passages, {term: found[term][1] if term in found else 0 for term in terms})

    def documents(self, who: Who | None) -> tuple[Listed, ...]:
        """List documents by path."""
        with self._db.transaction(write=False):
            return super().documents(who)

    def nearest(self, model: str, vector: Vector, k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first."""
        with self._db.transaction(write=False):
            return _passages(self._vectors.nearest(model, vector, min(k, MOST), self._seen_by(who)))

    def _seen_by(self, who: Who) -> list[int]:
        return self._held_for(who)[0]

    def _held_for(self, who: Who) -> tuple[list[int], Holding]:
        """Return the audiences that somebody belongs to, and what these may see; remembered until anything changes."""
        state = self._tables.state()
        if state != self._seen or len(self._visible) >= MOST_ASKERS:
            self._visible.clear()
            self._seen = state
        if who not in self._visible:
            visible = [seq for seq, audience in self._tables.audiences().items() if may_see(audience, who)]
            self._visible[who] = visible, Holding(*self._db.rows(HOLDING, self.seq, visible)[0])
        return self._visible[who]


def _passages(rows: Iterable[Row]) -> tuple[Passage, ...]:
    return tuple(held(tuple(row[:-1]), float(row[-1])).passage for row in rows)
