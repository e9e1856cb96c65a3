"""One index on a server. Rows and words change in one transaction, so whoever asks sees whole documents, as they are now."""

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from taiwa.kernel.errors import ConflictError
from taiwa.kernel.values import Passage
from taiwa.postgres import Connection
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.meanings import Meanings
from taiwa.retrieve.local.tables import Held, State, Tables, held
from taiwa.retrieve.seam import Vector
from taiwa.retrieve.server.vectors import ServerVectors
from taiwa.retrieve.server.words import Holding, ServerWords
from taiwa.retrieve.server.writing import Writing
from taiwa.retrieve.values import Batch, Counts, Feedback, Gain, Known, Listed, Meaning, Summary, Who, may_see
from taiwa.sqlite import Row

__all__ = ["ServerShelf"]

MOST = 10_000
"""Passages that are given for one question at most."""
LONGEST_NUMBER = 18
MOST_ASKERS = 1_000
INDEXER = 0x7461696C
"""The class of the locks of those who index."""
HOLDING = """
SELECT CAST(coalesce(sum(passages), 0) AS bigint), CAST(coalesce(sum(terms), 0) AS bigint) FROM document
WHERE shelf = ? AND audience = ANY(CAST(? AS bigint[]))"""


class ServerShelf:
    """One index."""

    def __init__(self, db: Connection, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        self.seq = seq
        self.name, self.root = named
        self.analyzer = analyzer
        self._db = db
        self._tables = Tables(db, seq)
        self._writing = Writing(db, seq, analyzer)
        self._words = ServerWords(db, seq)
        self._vectors = ServerVectors(db, seq)
        self._meanings = Meanings(db, seq)
        self._seen: State | None = None
        self._visible: dict[Who, tuple[list[int], Holding]] = {}
        self._indexed = False

    def __repr__(self) -> str:
        return f"ServerShelf({self.name!r})"

    def known(self) -> Mapping[str, Known]:
        """Return what is known of every file, by path."""
        return self._tables.known()

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
            audiences, holding = self._seen_by(who)
            if not holding.passages:
                return ()
            scores = self._words.search(weights, min(k, MOST), audiences, holding)
            rows = self._tables.passages(scores) if scores else {}
            return tuple(rows[number].passage for number in scores if number in rows)

    def counts(self, terms: Sequence[str], who: Who) -> Counts:
        """Count passages and the holders of terms."""
        with self._db.transaction(write=False):
            audiences, holding = self._seen_by(who)
            found = self._words.holders(terms, audiences)
        return Counts(holding.passages, {term: found[term][1] if term in found else 0 for term in terms})

    def passage(self, id: str, who: Who) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if it is still there and may be seen."""
        found = self._placed(id)
        return found.passage if found is not None and found.audience in self._seen_by(who)[0] else None

    def documents(self, who: Who | None) -> tuple[Listed, ...]:
        """List documents by path."""
        with self._db.transaction(write=False):
            visible = None if who is None else self._seen_by(who)[0]
            return tuple(each for audience, each in self._tables.listed() if visible is None or audience in visible)

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document, in its order."""
        return self._tables.of(path)

    def summary(self, who: Who | None) -> Summary:
        """Describe the index as far as somebody may see it."""
        listed = self.documents(who)
        at: int = self._db.one("SELECT at_us FROM shelf WHERE seq = ?", self.seq) or 0
        return Summary(
            self.name, self.root, self.analyzer.name, sum(not each.known.problem for each in listed),
            sum(each.passages for each in listed), sum(each.characters for each in listed),
            sum(bool(each.known.problem) for each in listed), at,
        )  # fmt: skip

    def tell(self, feedback: Feedback) -> None:
        """Keep what a person said of a passage."""
        self._tables.tell(feedback)

    def told(self) -> tuple[Feedback, ...]:
        """Return all feedback, oldest first."""
        return self._tables.told()

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        return self._vectors.missing(model, k)

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, Vector]]) -> None:
        """Keep the vectors of passages; one that is gone meanwhile is passed over."""
        there = ((self._placed(name), vector) for name, vector in vectors)
        self._vectors.put(model, [(found.seq, vector) for found, vector in there if found is not None])

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        return self._vectors.count(model)

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        self._vectors.keep(model)

    def nearest(self, model: str, vector: Vector, k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first."""
        with self._db.transaction(write=False):
            return _passages(self._vectors.nearest(model, vector, min(k, MOST), self._seen_by(who)[0]))

    def judge(self, model: str, gain: Gain) -> None:
        """Keep what a check of a model found."""
        self._meanings.judge(model, gain)

    def gain(self, model: str) -> Gain | None:
        """Return what the last check of a model found."""
        return self._meanings.gain(model)

    def meaning(self) -> Meaning | None:
        """Return by which embedder the index is asked by meaning too."""
        return self._meanings.meaning()

    def choose(self, meaning: Meaning | None) -> None:
        """Ask by this embedder from now on, or by words alone."""
        self._meanings.choose(meaning)

    def _placed(self, name: str) -> Held | None:
        """The passage of an id, if that version is there."""
        document, version, start = (*name.split("-"), "", "")[:3]
        if not (document.isdecimal() and start.isdecimal()) or name.count("-") != 2 or len(version) != 12:
            return None
        if max(len(document), len(start)) > LONGEST_NUMBER:
            return None
        return self._tables.passage(int(document), version, int(start))

    def _seen_by(self, who: Who) -> tuple[list[int], Holding]:
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
