"""The store as one thing: what it holds, by part, and what concerns all parts."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from taiwa.conversation.node import AppSource, Node
from taiwa.kernel.errors import InputError
from taiwa.postgres.address import Server, is_server
from taiwa.store.bill import Axis, Line, bill
from taiwa.store.commits import Commit, commit
from taiwa.store.connection import Clock, Connection, now_us
from taiwa.store.exchange import export, import_lines
from taiwa.store.fsck import Fault, fsck
from taiwa.store.items import Items
from taiwa.store.names import composed
from taiwa.store.nodes import Nodes
from taiwa.store.persons import Persons
from taiwa.store.refs import Refs
from taiwa.store.revisions import resolve
from taiwa.store.runs import Runs
from taiwa.store.search import Hit, search
from taiwa.store.snaps import Snaps
from taiwa.store.upkeep import KEPT_MOVES, Forgotten, Swept, forget, gc

__all__ = ["Store"]


class Store:
    """Conversations in one SQLite file, or on a PostgreSQL server.

    `nodes` holds apps and nodes by hash, `refs` the sessions, `runs` the journals and so the bill, `items` the rows of
    batches, `snaps` states that are kept to save time, `persons` those who ask. Threads may share a store; processes may share its file, and machines its server.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.nodes = Nodes(db)
        self.refs = Refs(db, self.nodes)
        self.runs = Runs(db)
        self.items = Items(db)
        self.snaps = Snaps(db, self.nodes)
        self.persons = Persons(db, self.refs)

    @classmethod
    def open(cls, place: str | Path | Server, *, readonly: bool = False, clock: Clock = now_us) -> Self:
        """Open a store, made on first use with access for its owner only; `":memory:"` is gone when it is closed.

        `place` is the path of a file, or the address of a server: `postgresql://USER@HOST/DATABASE`.

        Raises:
            StoreError: it cannot be opened, is of a newer version, or belongs to another program.
            CorruptError: it is no store, or damaged.
            ConfigError: the extra for a server is not installed.
            InputError: the address is none.
        """
        if isinstance(place, Path) or (isinstance(place, str) and not is_server(place)):
            from taiwa.store.local import Connection as Local

            return cls(Local(place, readonly=readonly, clock=clock))
        from taiwa.store.server import Connection as Remote

        return cls(Remote(_server(place), readonly=readonly, clock=clock))

    @property
    def path(self) -> Path | None:
        """The file, or None in memory and on a server."""
        return self._db.path

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def together(self, name: str = "") -> Generator[None]:
        """Do several things or none. Between them nobody else does things together under the same name, or moves it."""
        with self._db.transaction():
            self._db.hold(composed(name))
            yield

    def commit(
        self,
        ref: str,
        nodes: Sequence[Node],
        *,
        expected: str | None,
        why: str = "turn",
        run: int | None = None,
        apps: Sequence[AppSource] = (),
    ) -> str:
        """Add nodes to a session in one transaction, close the run that made them, and return the new tip.

        `expected` is the tip that the session has, None for a new one. The nodes follow that tip, or another node of the
        store: a retried turn follows an earlier one.

        Raises:
            ConflictError: the session is not at `expected`; nothing is changed, and the run's calls stay on the bill.
            InputError: each node does not follow the one before it, or the name is not allowed.
        """
        return commit(self._db, self.nodes, self.refs, self.runs, Commit(ref, nodes, expected, why, apps), run)

    def resolve(self, revision: str) -> str:
        """Return the hash that a revision names: `name`, `name~2`, `name@{3}`, the beginning of a hash, `""` for the latest.

        Raises:
            InputError: it names nothing, or several nodes.
        """
        return resolve(self._db, self.nodes, self.refs, revision)

    def search(self, text: str, limit: int = 20) -> tuple[Hit, ...]:
        """Find the newest nodes whose words hold every one of the words given, in any language; no query language.

        Raises:
            InputError: there is no word to look for.
        """
        return search(self._db, text, limit)

    def bill(self, by: Axis) -> tuple[Line, ...]:
        """Add up all calls, failed and lost turns included, by app, model, day (UTC) or session."""
        return bill(self._db, by)

    def export(self, revision: str, *, calls: bool = False) -> Iterator[str]:
        """Write the history that a revision names as lines of JSON, without their ends."""
        name = revision.strip(" @") or self.refs.latest() or ""
        name = name if self.refs.has(name) else ""
        return export(self.nodes, self.runs, self.resolve(revision), name, calls=calls)

    def import_lines(
        self, lines: Iterable[str], name: str | None = None, check: Callable[[str], object] | None = None
    ) -> str:
        """Read exported lines, all or nothing, make a session of them, and return its tip.

        `check` is given the tip before anything is kept; what it finds corrupt is not imported.

        Raises:
            InputError: a line is bad or does not fit its hash; its number is said. Or the check failed.
            ConflictError: a session of that name stands elsewhere.
        """
        return import_lines(self._db, self.nodes, self.refs, lines, name, check)

    def gc(self, keep: int = KEPT_MOVES, *, dry_run: bool = False) -> Swept:
        """Delete what neither a name nor one of the newest `keep` moves of names leads to."""
        return gc(self._db, keep, dry_run=dry_run)

    def forget(self, name: str) -> Forgotten:
        """Delete a session for good, with its runs, and overwrite what it was.

        Raises:
            InputError: there never was such a session.
        """
        return forget(self._db, self.refs, name)

    def fsck(self) -> tuple[Fault, ...]:
        """Look for faults; nothing is changed."""
        return fsck(self._db)


def _server(place: str | Server) -> Server:
    try:
        return place if isinstance(place, Server) else Server.read(place)
    except ValueError as error:
        raise InputError(f"the store {error}") from None
