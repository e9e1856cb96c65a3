"""All indexes of one file, by name."""

import json
import secrets
import shutil
from pathlib import Path

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.schema import LIBRARY
from taiwa.retrieve.local.shelf import LocalShelf
from taiwa.sqlite import Clock, Connection, now_us

__all__ = ["LocalShelves"]


class LocalShelves:
    """Indexes in one SQLite file; the words of each stand in a folder beside it."""

    def __init__(self, path: str | Path, *, clock: Clock = now_us) -> None:
        self._db = Connection(path, LIBRARY, clock=clock)
        if self._db.path is None:
            raise InputError("a library is a file, since its words stand beside it: name one")
        self._folder = self._db.path.with_suffix(".words")
        self._open: dict[int, LocalShelf] = {}

    def __repr__(self) -> str:
        return f"LocalShelves({str(self._db.path)!r})"

    def names(self) -> tuple[str, ...]:
        """Name every index."""
        return tuple(name for (name,) in self._db.rows("SELECT name FROM shelf ORDER BY name"))

    def open(self, name: str) -> LocalShelf:
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
            self._open[seq] = LocalShelf(self._db, self._folder / str(seq), seq, (name, root), Analyzer.named(analyzer))
        return self._open[seq]

    def create(self, name: str, root: str, analyzer: Analyzer) -> LocalShelf:
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
            self._db.run("INSERT INTO change VALUES(?, 0, ?)", seq, stamp)
            self._db.run("INSERT INTO audience(shelf, clauses) VALUES(?, ?)", seq, json.dumps([]))
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
            shutil.rmtree(self._folder / str(shelf.seq), ignore_errors=True)
        self._db.shrink()

    def close(self) -> None:
        """Close the file."""
        for shelf in self._open.values():
            shelf.close()
        self._open.clear()
        self._db.close()
