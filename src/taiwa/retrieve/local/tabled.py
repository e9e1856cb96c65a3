"""What indexes over SQL tables have in common, whatever engine keeps the tables."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.values import Passage
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.meanings import Meanings
from taiwa.retrieve.local.tables import Held, Tables
from taiwa.retrieve.seam import Vector
from taiwa.retrieve.values import Feedback, Gain, Known, Listed, Meaning, Summary, Who
from taiwa.sqlite import Database

__all__ = ["TableShelf", "TableShelves"]

LONGEST_NUMBER = 18


class Vectors(Protocol):
    """Where the vectors of an index are kept."""

    def missing(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        ...

    def put(self, model: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Keep the vectors of passages, by their numbers."""
        ...

    def count(self, model: str) -> int:
        """Count the vectors of a model."""
        ...

    def keep(self, model: str) -> None:
        """Delete the vectors of every other model."""
        ...


class TableShelf(ABC):
    """One index in tables: all that does not depend on how words are found."""

    def __init__(self, db: Database, seq: int, named: tuple[str, str], analyzer: Analyzer, vectors: Vectors) -> None:
        self.seq = seq
        self.name, self.root = named
        self.analyzer = analyzer
        self._db = db
        self._tables = Tables(db, seq)
        self._kept = vectors
        self._meanings = Meanings(db, seq)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Let go of what is held besides the tables."""

    @abstractmethod
    def writing(self, wait: float) -> AbstractContextManager[None]:
        """Be the only one who indexes.

        Raises:
            ConflictError: another process did for longer than `wait` seconds.
        """

    @abstractmethod
    def _seen_by(self, who: Who) -> Collection[int] | None:
        """The audiences that somebody belongs to; None when these are all."""

    def known(self) -> Mapping[str, Known]:
        """Return what is known of every file, by path."""
        return self._tables.known()

    def passage(self, id: str, who: Who) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if it is still there and may be seen."""
        found = self._placed(id)
        if found is None:
            return None
        visible = self._seen_by(who)
        return found.passage if visible is None or found.audience in visible else None

    def documents(self, who: Who | None) -> tuple[Listed, ...]:
        """List documents by path."""
        visible = None if who is None else self._seen_by(who)
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
        return self._kept.missing(model, k)

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, Vector]]) -> None:
        """Keep the vectors of passages; one that is gone meanwhile is passed over."""
        there = ((self._placed(name), vector) for name, vector in vectors)
        self._kept.put(model, [(found.seq, vector) for found, vector in there if found is not None])

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        return self._kept.count(model)

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        self._kept.keep(model)

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


S = TypeVar("S", bound=TableShelf)


class TableShelves(ABC, Generic[S]):
    """All indexes of one database, by name."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._open: dict[int, S] = {}

    @abstractmethod
    def _shelf(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> S:
        """Open the index of a number."""

    def _begin(self, seq: int, stamp: bytes) -> None:
        """Put down what a new index begins with."""

    def _gone(self, shelf: S) -> None:
        """Delete what an index has besides rows."""

    def names(self) -> tuple[str, ...]:
        """Name every index."""
        return tuple(name for (name,) in self._db.rows("SELECT name FROM shelf ORDER BY name"))

    def open(self, name: str) -> S:
        """Return an index.

        Raises:
            InputError: there is none of that name.
        """
        row = self._db.row("SELECT seq, root, analyzer FROM shelf WHERE name = ?", name)
        if row is None:
            there = f"there are {', '.join(self.names())}" if self.names() else "make one with `taiwa index FOLDER`"
            raise InputError(f"there is no index {name!r}: {there}")
        seq, root, analyzer = row
        if seq not in self._open:
            self._open[seq] = self._shelf(seq, (name, root), Analyzer.named(analyzer))
        return self._open[seq]

    def create(self, name: str, root: str, analyzer: Analyzer) -> S:
        """Return a new, empty index.

        Raises:
            ConflictError: there is one of that name.
        """
        with self._db.transaction():
            stamp = secrets.token_bytes(8)
            seq = self._db.insert(
                "INSERT INTO shelf(name, root, analyzer, generation, stamp, at_us) VALUES(?, ?, ?, 0, ?, ?)"
                " ON CONFLICT(name) DO NOTHING",
                name, root, analyzer.name, stamp, self._db.clock(),
            )  # fmt: skip
            if seq is None:
                raise ConflictError(f"there is already an index {name!r}: choose another name")
            self._begin(seq, stamp)
            self._db.run("INSERT INTO audience(shelf, clauses) VALUES(?, '[]')", seq)
        return self.open(name)

    def drop(self, name: str) -> None:
        """Delete an index and all that it holds.

        Raises:
            InputError: there is none of that name.
            ConflictError: another process is indexing there.
        """
        shelf = self.open(name)
        with shelf.writing(0.0):
            self._db.run("DELETE FROM shelf WHERE seq = ?", shelf.seq)
            shelf.close()
            del self._open[shelf.seq]
            self._gone(shelf)
        self._db.shrink()

    def close(self) -> None:
        """Let go of the database."""
        for shelf in self._open.values():
            shelf.close()
        self._open.clear()
        self._db.close()
