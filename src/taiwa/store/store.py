"""The store as one thing: what it holds, by part, and what concerns all parts."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from taiwa.conversation.node import AppSource, Node
from taiwa.store.commits import Commit, commit
from taiwa.store.connection import Clock, Connection, now_us
from taiwa.store.nodes import Nodes
from taiwa.store.refs import Refs
from taiwa.store.revisions import resolve
from taiwa.store.runs import Runs

__all__ = ["Store"]


class Store:
    """Conversations in one SQLite file.

    `nodes` holds apps and nodes by hash, `refs` the sessions, `runs` the journals and so the bill. Threads may share a
    store; processes may share its file.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.nodes = Nodes(db)
        self.refs = Refs(db, self.nodes)
        self.runs = Runs(db)

    @classmethod
    def open(cls, path: str | Path, *, readonly: bool = False, clock: Clock = now_us) -> Self:
        """Open a store, made on first use with access for its owner only; `":memory:"` is gone when it is closed.

        Raises:
            StoreError: it cannot be opened, is of a newer version, or belongs to another program.
            CorruptError: it is no store, or damaged.
        """
        return cls(Connection(path, readonly=readonly, clock=clock))

    @property
    def path(self) -> Path | None:
        """The file, or None in memory."""
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

        `expected` is the tip that the nodes follow, None for a new session.

        Raises:
            ConflictError: the session is not at `expected`; nothing is changed, and the run's calls stay on the bill.
            InputError: the nodes are no chain that begins at `expected`, or the name is not allowed.
        """
        return commit(self._db, self.nodes, self.refs, self.runs, Commit(ref, nodes, expected, why, apps), run)

    def resolve(self, revision: str) -> str:
        """Return the hash that a revision names: `name`, `name~2`, `name@{3}`, the beginning of a hash, `""` for the latest.

        Raises:
            InputError: it names nothing, or several nodes.
        """
        return resolve(self._db, self.nodes, self.refs, revision)
