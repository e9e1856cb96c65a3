"""All indexes of a server, by name."""

import secrets

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.postgres import Connection, Server
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.server.schema import LIBRARY
from taiwa.retrieve.server.shelf import ServerShelf
from taiwa.sqlite import Clock, now_us

__all__ = ["ServerShelves"]


class ServerShelves:
    """Indexes in one database of a PostgreSQL server."""

    def __init__(self, server: Server, *, clock: Clock = now_us) -> None:
        self._db = Connection(server, LIBRARY, clock=clock)
        self._open: dict[int, ServerShelf] = {}

    def __repr__(self) -> str:
        return f"ServerShelves({str(self._db.server)!r})"

    def names(self) -> tuple[str, ...]:
        """Name every index."""
        return tuple(name for (name,) in self._db.rows("SELECT name FROM shelf ORDER BY name"))

    def open(self, name: str) -> ServerShelf:
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
            self._open[seq] = ServerShelf(self._db, seq, (name, root), Analyzer.named(analyzer))
        return self._open[seq]

    def create(self, name: str, root: str, analyzer: Analyzer) -> ServerShelf:
        """Return a new, empty index.

        Raises:
            ConflictError: there is one of that name.
        """
        with self._db.transaction():
            seq = self._db.insert(
                "INSERT INTO shelf(name, root, analyzer, generation, stamp, at_us) VALUES(?, ?, ?, 0, ?, ?)"
                " ON CONFLICT(name) DO NOTHING",
                name, root, analyzer.name, secrets.token_bytes(8), self._db.clock(),
            )  # fmt: skip
            if seq is None:
                raise ConflictError(f"there is already an index {name!r}: choose another name")
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
            del self._open[shelf.seq]

    def close(self) -> None:
        """End the connection."""
        self._open.clear()
        self._db.close()
