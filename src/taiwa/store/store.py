"""The store: its parts, and what concerns all of them."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError
from taiwa.sql import Clock, Database, PostgresUrl, is_postgres_url, now_us
from taiwa.store.export import export_lines, import_lines
from taiwa.store.maintenance import KEPT_MOVES, DeleteResult, FsckProblem, GcResult, delete_session, fsck, gc
from taiwa.store.nodes import Nodes, Snapshots
from taiwa.store.refs import Refs, check_name, composed, conflict_message
from taiwa.store.runs import Axis, Batches, CostLine, Runs, costs
from taiwa.store.schema import STORE
from taiwa.store.search import Hit, search
from taiwa.store.served import Callers, ServedObjects, SharedRuns, Transcripts
from taiwa.store.users import Users

LONGEST_OWNER = 100


class Store:
    """The conversations of one owner, in one SQLite file or on a PostgreSQL server.

    `nodes` has apps and nodes by hash, `refs` the sessions, `runs` the journals and their costs, `batches` the rows of
    batches, `snapshots` cached states, `users` the user profiles, `blobs` the attachments, `transcripts` nodes by their history.
    Threads may share a store; processes may share its file, and machines its server.

    `owner` is "" where there is only one. A program with several callers opens the store once and takes `owned_by` for each:
    everything of another owner is answered as what does not exist, whatever name, hash or number is asked for.
    """

    def __init__(self, db: Database, owner: str = "") -> None:
        if len(owner) > LONGEST_OWNER or not owner.isprintable():
            raise InputError(f"invalid owner {owner!r}; give one line of at most {LONGEST_OWNER} characters")
        self._db = db
        self.owner = owner
        self.nodes = Nodes(db, owner)
        self.blobs = self.nodes.blobs
        self.refs = Refs(db, self.nodes)
        self.runs = Runs(db, self.nodes)
        self.snapshots = Snapshots(db, self.nodes)

    @cached_property
    def batches(self) -> Batches:
        """The rows of batches."""
        return Batches(self._db, self.owner)

    @cached_property
    def callers(self) -> Callers:
        """The callers of a server of this store, whoever owns it."""
        return Callers(self._db)

    @cached_property
    def served(self) -> ServedObjects:
        """The responses and conversations of the server."""
        return ServedObjects(self._db, self.nodes, self.owner)

    @cached_property
    def shared_runs(self) -> SharedRuns:
        """The runs of servers that others can follow."""
        return SharedRuns(self._db, self.owner)

    @cached_property
    def transcripts(self) -> Transcripts:
        """The nodes that clients of the server find by their history."""
        return Transcripts(self._db, self.nodes, self.owner)

    @cached_property
    def users(self) -> Users:
        """The user profiles."""
        return Users(self._db, self.refs, self.owner)

    @classmethod
    def open(
        cls, location: str | Path | PostgresUrl, *, readonly: bool = False, owner: str = "", clock: Clock = now_us
    ) -> Self:
        """Open a store, created on first use with access for its owner only; `":memory:"` is lost when it is closed.

        `location` is the path of a file, or a PostgreSQL URL: `postgresql://USER@HOST/DATABASE`.

        Raises:
            StoreError: it cannot be opened, has a newer or unreleased format, or belongs to another program.
            CorruptError: it is not a store, or damaged.
            ConfigError: the extra `postgres` is not installed.
            InputError: the URL or the owner is invalid.
        """
        if isinstance(location, Path) or (isinstance(location, str) and not is_postgres_url(location)):
            from taiwa.sql.sqlite import SqliteDatabase

            return cls(SqliteDatabase(location, STORE, readonly=readonly, clock=clock), owner)
        from taiwa.sql.postgres import PostgresDatabase

        try:
            url = location if isinstance(location, PostgresUrl) else PostgresUrl.parse(location)
        except ValueError as error:
            raise InputError(f"the store {error}") from None
        return cls(PostgresDatabase(url, STORE, readonly=readonly, clock=clock), owner)

    def owned_by(self, owner: str) -> Self:
        """Return the same store for another owner; both share the connection, which either closes.

        Raises:
            InputError: the owner is not one printable line of at most 100 characters.
        """
        return type(self)(self._db, owner)

    def allow_connections(self, count: int) -> None:
        """Let the threads of this process use several connections to a server at the same time; a file has one."""
        self._db.connections = count

    def now(self) -> int:
        """Return the time by the clock of the store, in microseconds since 1970."""
        return self._db.clock()

    @property
    def path(self) -> Path | None:
        """The file, or None in memory and on a server."""
        return self._db.path

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, name: str = "") -> Generator[None]:
        """Commit several changes or none; other transactions under the same name, and moves of it, wait meanwhile."""
        with self._db.transaction():
            self._db.lock(composed(name))
            yield

    def commit(
        self,
        ref: str,
        nodes: Sequence[Node],
        *,
        expected: str | None,
        reason: str = "turn",
        run: int | None = None,
        apps: Sequence[AppSource] = (),
    ) -> str:
        """Add nodes to a session in one transaction, end the run that made them, and return the new tip.

        `expected` is the tip that the session has, None for a new one. The nodes follow that tip, or another node of the
        store: a retried turn follows an earlier one.

        Raises:
            ConflictError: the session is not at `expected`; nothing is changed, and the costs of the run stay.
            InputError: a node does not follow the one before it, or the name is not allowed.
        """
        _check_linked(nodes)
        name = check_name(ref) if expected is None else composed(ref)
        try:
            with self._db.transaction():
                self._db.lock(name)
                session = self.refs.find(name)
                at = None if session is None else session[2]
                if at != expected:
                    raise ConflictError(conflict_message(name, at, expected))
                rows = {(name_of_app := app.hash): self.nodes.app_row(app, name_of_app) for app in apps}
                tip = self.nodes.insert(nodes, None, rows)
                if session is None:
                    self.refs.begin(name, tip, reason)
                else:
                    self.refs.log(session[0], "commit", session[1], tip, reason)
                if run is not None:
                    self.runs.finish(run, tip)
        except ConflictError:
            if run is not None:
                self.runs.end(run, "conflict")
            raise
        return nodes[-1].hash

    def undo(self, name: str, steps: int = 1) -> str:
        """Move a session some steps back and return its new tip; everything that one commit added goes together.

        Raises:
            InputError: there are fewer steps.
        """
        return self.refs.undo(name, steps)

    def redo(self, name: str, steps: int = 1) -> str:
        """Move a session forward over undone steps and return its new tip.

        Raises:
            InputError: nothing was undone, or something was added since.
        """
        return self.refs.redo(name, steps)

    def resolve(self, revision: str) -> str:
        """Return the hash of a revision: `name`, `name~2`, `name@{3}`, the beginning of a hash, `""` for the latest.

        Raises:
            InputError: it matches no node, or several.
        """
        return self.refs.resolve(revision)

    def search(self, text: str, limit: int = 20) -> tuple[Hit, ...]:
        """Find the newest nodes that contain every word of a text, in any language, at most `limit`; no query language.

        Raises:
            InputError: the text has no word.
        """
        return search(self._db, self.nodes, text, limit)

    def costs(self, by: Axis, session: str | None = None) -> tuple[CostLine, ...]:
        """Add up all calls, or those of one session, by app, model, day (UTC) or session; failed turns count too.

        By `owner` the calls of all owners are added up, without the names of their sessions.

        Raises:
            InputError: all owners were asked for, and the store was opened for one.
        """
        if by == "owner":
            self._whole("the cost by owner")
        return costs(self._db, by, self.owner, session)

    def export(
        self, revision: str, *, calls: bool = False, apps: bool = True, attachments: bool = True
    ) -> Iterator[str]:
        """Yield the history of a revision as JSON lines, without line ends.

        Without its apps it can be imported only where they are stored already; without the bytes of its attachments they
        cannot be sent from there.
        """
        name = revision.strip(" @") or self.refs.latest() or ""
        name = name if self.refs.has(name) else ""
        tip = self.resolve(revision)
        return export_lines(self.nodes, self.runs, tip, name, calls=calls, apps=apps, attachments=attachments)

    def import_lines(
        self,
        lines: Iterable[str],
        name: str | None = None,
        check: Callable[[str], object] | None = None,
        *,
        trusted: bool = False,
    ) -> str:
        """Read exported lines into a session, all or nothing, and return its tip. It does not become the latest session.

        Its apps are untrusted (`nodes.is_trusted`), unless the store had them before; with `trusted`, they are trusted.

        `check` is called with the tip before the commit; a `CorruptError` that it raises prevents the import.

        Raises:
            InputError: a line is invalid or does not match its hash, or the check failed; the message names the line.
            ConflictError: a session of that name points elsewhere.
        """
        return import_lines(self._db, self.nodes, self.refs, lines, name, check, trusted=trusted)

    def gc(self, keep: int = KEPT_MOVES, *, dry_run: bool = False) -> GcResult:
        """Delete the nodes that neither a name nor one of the newest `keep` moves of names leads to, of all owners.

        Raises:
            InputError: the store was opened for an owner, or `keep` is negative.
        """
        self._whole("gc")
        return gc(self._db, keep, dry_run=dry_run)

    def delete_session(self, name: str) -> DeleteResult:
        """Delete a session permanently, with its runs, and overwrite its content.

        Raises:
            InputError: there never was a session of that name.
        """
        return delete_session(self._db, self.refs, name, self.owner)

    def fsck(self) -> tuple[FsckProblem, ...]:
        """Check the store of all owners and return its problems; nothing is changed.

        Raises:
            InputError: the store was opened for an owner.
        """
        self._whole("fsck")
        return fsck(self._db)

    def _whole(self, what: str) -> None:
        if self.owner:
            raise InputError(f"{what} concerns all owners; open the store without an owner")


def _check_linked(nodes: Sequence[Node]) -> None:
    """Check that each node is the parent of the next."""
    if not nodes:
        raise InputError("a commit must have at least one node")
    for number, (node, following) in enumerate(pairwise(nodes), 2):
        if following.parent != node.hash:
            raise InputError(f"node {number} of the commit does not follow the one before it")
