"""The store: its parts, and operations on all of them; export and import of sessions as JSON lines.

The first line of an export is a header, followed by apps and nodes, each under its hash, the oldest first, and, on request,
the paid calls. Without calls a file contains no clock and no row number, so equal conversations give equal bytes.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Self, cast

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import AnsweredBy, Node, TurnParts, restore_messages, restore_thinking
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import ConfigError, ConflictError, CorruptError, InputError
from taiwa.kernel.serialization import Json, canonical, items_at, record
from taiwa.kernel.wording import Wording
from taiwa.sql import Clock, Database, PostgresUrl, is_postgres_url, now_us
from taiwa.store.batches import Batches
from taiwa.store.maintenance import (
    DeleteResult,
    FsckProblem,
    GcResult,
    delete_session,
    fsck,
    gc,
    require_session,
)
from taiwa.store.nodes import (
    KINDS,
    OPTIONAL,
    Nodes,
    Snapshots,
    check_content,
    check_json,
    node_texts,
    short_hash,
)
from taiwa.store.refs import Refs, check_name, composed, conflict_message
from taiwa.store.runs import Axis, CostLine, Runs, costs
from taiwa.store.schema import STORE
from taiwa.store.search import Hit, search
from taiwa.store.server_records import Callers, ServedObjects, SharedRuns, Transcripts
from taiwa.store.users import Users

LONGEST_OWNER = 100


class Store:
    """The conversations of one owner, in one SQLite file or on a PostgreSQL server.

    `nodes` has apps and nodes by hash, `refs` the sessions, `runs` the journals and their costs, `batches` the rows of
    batches, `snapshots` cached states, `users` the user profiles, `blobs` the attachments, `transcripts` nodes by their history.
    Threads may share a store; processes may share its file, and machines its server.

    `owner` is "" if there is only one. A program with several callers opens the store once and uses `owned_by` for each:
    data of another owner is treated as nonexistent, whatever name, hash or number is requested.
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
        """The callers of a server of this store, of all owners."""
        return Callers(self._db)

    @cached_property
    def served(self) -> ServedObjects:
        """The responses and conversations of the server."""
        return ServedObjects(self._db, self.nodes, self.owner)

    @cached_property
    def shared_runs(self) -> SharedRuns:
        """The runs that other servers can follow."""
        return SharedRuns(self._db, self.owner)

    @cached_property
    def transcripts(self) -> Transcripts:
        """The nodes that clients of the server find by history."""
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
        """Return the same store for another owner; both share the connection, and closing either closes it.

        Raises:
            InputError: the owner is not one printable line of at most 100 characters.
        """
        return type(self)(self._db, owner)

    def allow_connections(self, count: int) -> None:
        """Allow the threads of this process several concurrent connections to a server; a file has one."""
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
        """Commit all changes or none; other transactions under the same name, and its moves, wait meanwhile."""
        with self._db.transaction():
            self._db.lock(composed(name))
            yield

    def transaction_now(self) -> AbstractContextManager[bool]:
        """Begin a transaction if nothing would have to wait for it, and return whether it was begun; see `Database`."""
        return self._db.transaction_now()

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
        name = check_name(ref) if expected is None else composed(ref)
        try:
            with self._db.transaction():
                self._db.lock(name)
                session = self.refs.find(name)
                at = None if session is None else session[2]
                if at != expected:
                    raise ConflictError(conflict_message(name, at, expected))
                tip = self.keep(nodes, apps)
                if session is None:
                    self.refs.begin(name, tip, reason)
                else:
                    self.refs.log(session[0], "commit", session[1], tip, reason)
                if run is not None:
                    self.runs.finish(run, tip, name)
        except ConflictError:
            # In a transaction of its own, since the first one was rolled back.
            if run is not None:
                self.runs.end(run, "conflict")
            raise
        return nodes[-1].hash

    def keep(self, nodes: Sequence[Node], apps: Sequence[AppSource] = ()) -> int:
        """Add nodes, and return the row of the last one; `gc` deletes those that no session and no open run leads to.

        Raises:
            InputError: a node does not follow the one before it.
        """
        _check_linked(nodes)
        with self._db.transaction():
            rows = {(name := app.hash): self.nodes.app_row(app, name) for app in apps}
            return self.nodes.insert(nodes, None, rows)

    def undo(self, name: str, steps: int = 1) -> str:
        """Move a session back; see `Refs.undo`."""
        return self.refs.undo(name, steps)

    def redo(self, name: str, steps: int = 1) -> str:
        """Move a session forward; see `Refs.redo`."""
        return self.refs.redo(name, steps)

    def resolve(self, revision: str) -> str:
        """Return the hash of a revision; see `Refs.resolve`."""
        return self.refs.resolve(revision)

    def search(self, text: str, limit: int = 20) -> tuple[Hit, ...]:
        """Find the newest nodes that contain every word of a text, in any language, at most `limit`; no query language.

        Raises:
            InputError: the text has no word.
        """
        return search(self._db, self.nodes, text, limit)

    def costs(self, by: Axis, session: str | None = None) -> tuple[CostLine, ...]:
        """Sum all calls, or those of one session, by app, model, day (UTC) or session; failed turns count too.

        By `owner` the calls of all owners are summed, without the names of their sessions.

        Raises:
            InputError: all owners were requested, but the store was opened for one.
        """
        if by == "owner":
            self._whole("the cost by owner")
        return costs(self._db, by, self.owner, session)

    def export(
        self, revision: str, *, calls: bool = False, apps: bool = True, attachments: bool = True
    ) -> Iterator[str]:
        """Yield the history of a revision as JSON lines, without line ends.

        Without its apps it can be imported only into a store that has them; without the bytes of its attachments the
        importing store cannot send them. Calls are informational and are not imported, since a copy was not paid for. The
        bytes of an attachment are on a line before the first node that refers to them; omitting them does not change the
        nodes.
        """
        name = revision.strip(" @") or self.refs.latest() or ""
        name = name if self.refs.has(name) else ""
        return self._exported(self.resolve(revision), name, calls=calls, apps=apps, attachments=attachments)

    def _exported(self, tip: str, name: str, *, calls: bool, apps: bool, attachments: bool) -> Iterator[str]:
        yield _line({"taiwa": KIND, "format": FORMAT, "name": name, "tip": tip})
        known: set[str] = set()
        for hashed, node in reversed(tuple(self.nodes.path(tip))):
            if apps and node.app not in known:
                known.add(node.app)
                app = self.nodes.app(node.app)
                options: dict[str, Json] = {} if app.options is None else {"options": app.options}
                yield _line({"app": node.app, "name": app.name, "source": app.source, "params": app.params, **options})
            for attachment in node.files if attachments else ():
                if attachment.sha256 not in known and (data := self.blobs.data(attachment.sha256)):
                    known.add(attachment.sha256)
                    yield _line({"blob": attachment.sha256, "base64": b64encode(data).decode("ascii")})
            base = self.nodes.base(hashed)
            of: dict[str, Json] = {"parent": node.parent, "kind": node.kind, "of": node.app, "state": node.state_hash}
            more: dict[str, Json] = {} if base in (None, node.parent) else {"base": base}
            yield _line({"node": hashed, **of, **node_texts(node), **more})
            for call in self.runs.calls(hashed, together=False) if calls else ():
                parts = asdict(call)
                usage = None if call.usage is None else record(call.usage)
                yield _line({"call": hashed, **parts.pop("time"), **parts, "usage": usage})

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
        with self._db.transaction():
            header = _take_all(self.nodes, lines, trusted=trusted)
            tip = str(header["tip"])
            if not self.nodes.has(tip):
                raise InputError(
                    Wording("the file ends before its tip, node {node}; nothing was imported", node=short_hash(tip))
                )
            name = check_name(header["name"] if name is None else name)
            if not self.refs.has(name):
                self.refs.create(name, tip, "import")
            elif self.refs.tip(name) != tip:
                raise ConflictError(
                    f"another session {name!r} already exists; import under another name, nothing was imported"
                )
            try:
                if check is not None:
                    check(tip)
            except (CorruptError, ConfigError) as error:
                raise InputError(Wording("{problem}; nothing was imported", problem=error.message)) from None
        return tip

    def gc(self, keep: int | None = None, *, dry_run: bool = False) -> GcResult:
        """Delete the nodes that no session of any owner reaches or has left; with `keep`, only the newest moves of names count.

        Raises:
            InputError: the store was opened for an owner, or `keep` is negative.
        """
        self._whole("gc")
        return gc(self._db, keep, dry_run=dry_run)

    def require_session(self, name: str) -> None:
        """Check that a session exists; see `maintenance.require_session`."""
        require_session(self._db, self.refs, name, self.owner)

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
        if following.parent != node.hash or following.kind == "root":
            raise InputError(f"node {number} of the commit does not follow the one before it")


# --- export and import ------------------------------------------------------------------------------------------------

KIND = "conversation"
FORMAT = 1
MOST_TOGETHER = 64
"""How far back to search for the tip on which a node was committed together with others."""


def _line(data: dict[str, Json]) -> str:
    return canonical(data).decode("utf-8")


def _take_all(nodes: Nodes, lines: Iterable[str], *, trusted: bool) -> dict[str, Any]:
    """Store the content of the lines and return their header."""
    number = 0
    header: dict[str, Any] = {}
    try:
        for line in lines:
            number += 1
            if not line.strip():
                continue
            if header:
                _take(nodes, _read(line), trusted=trusted)
            else:
                header = _header(line)
    except UnicodeDecodeError:
        raise InputError(f"line {number + 1}: not UTF-8; nothing was imported") from None
    except (InputError, CorruptError) as error:
        raise InputError(
            Wording("line {n}: {problem}; nothing was imported", n=number, problem=error.message)
        ) from None
    if not header:
        raise InputError(Wording("the file is empty; nothing was imported"))
    return header


def _read(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(Wording("not JSON")) from None
    if not isinstance(data, dict):
        raise InputError("not a JSON object")
    return cast("dict[str, Any]", data)


def _header(line: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    with suppress(InputError):
        data = _read(line)
    if data.get("taiwa") != KIND or not isinstance(data.get("tip"), str) or not isinstance(data.get("name"), str):
        raise InputError(
            Wording(
                "neither an exported session nor conversations of OpenAI, Anthropic, ShareGPT, ChatGPT, Claude or llm"
            )
        )
    version = data.get("format")
    if version is None:
        raise InputError("the file was written by an unreleased version of taiwa and cannot be imported")
    if version != FORMAT:
        raise InputError(f"the file has format {version!r} and this version of taiwa reads {FORMAT}; update taiwa")
    return data


def _take(nodes: Nodes, data: dict[str, Any], *, trusted: bool) -> None:
    if "node" in data:
        node = _node(data)
        _compare(data["node"], node.hash)
        for attachment in node.files:
            if content := nodes.blobs.data(attachment.sha256):
                check_content(attachment, content)
        nodes.put(node, _base(nodes, node, data.get("base")))
    elif "app" in data:
        name, source = data.get("name"), data.get("source")
        if not isinstance(name, str) or not isinstance(source, str):
            raise InputError("an app must have a name and a source")
        app = AppSource(name, source, check_json(data.get("params")), check_json(data.get("options")))
        _compare(data["app"], app.hash)
        nodes.put_app(app, untrusted=not trusted)
        if trusted:
            nodes.trust(app.hash)
    elif "blob" in data:
        attachment = _attachment(data.get("base64"))
        _compare(data["blob"], attachment.sha256)
        nodes.blobs.put(attachment)
    elif "call" not in data:
        raise InputError("expected an app, a node, an attachment or a call")


def _attachment(text: object) -> Attachment:
    try:
        data = b64decode(text if isinstance(text, str) else "?", validate=True)
    except ValueError:
        raise InputError("the bytes of an attachment must be base64") from None
    return Attachment.from_bytes(data)


def _node(data: dict[str, Any]) -> Node:
    user, answer = data.get("user"), data.get("answer")
    prefix, model, host = texts = [data.get(name, "") for name in ("prefix", "model", "host")]
    match data:
        case {"parent": str() | None as parent, "kind": kind, "of": str(app), "state": str(state)} if (
            kind in KINDS
            and isinstance(user, OPTIONAL)
            and isinstance(answer, OPTIONAL)
            and all(isinstance(text, str) for text in texts)
        ):
            listed = data.get("attachments", [])
            if not isinstance(listed, list):
                raise InputError("attachments must be a list")
            attachments = tuple(map(read_reference, cast("list[object]", listed)))
            thinking, messages = restore_thinking(data.get("thinking")), restore_messages(data.get("messages"))
            delta, findings = check_json(data.get("delta")), _findings(data.get("findings"))
            parts = TurnParts(attachments, thinking, messages, prefix, findings)
            return Node(parent, kind, app, user, answer, delta, state, parts, AnsweredBy(model, host))
        case _:
            raise InputError("a field of the node is missing or has the wrong type")


def _findings(data: Json) -> Json:
    """Check that what a turn rests on can be read, since whatever shows the turn reads it."""
    found = check_json(data)
    calls = items_at(found, "calls")
    if not isinstance(found, dict | None) or not all(isinstance(each, dict) for each in calls):
        raise InputError("the findings of a node cannot be read")
    if isinstance(found, dict) and "documents" in found:
        from taiwa.flows.ask.ask_result import AskResult

        AskResult.of(found)
    return found


def _base(nodes: Nodes, node: Node, claimed: object) -> str | None:
    """Return the claimed base of a node, if it is an ancestor: undo must not lead anywhere else."""
    if node.parent is None or not isinstance(claimed, str):
        return None
    near = islice(nodes.path(node.parent), MOST_TOGETHER)
    return claimed if any(hashed == claimed for hashed, _ in near) else None


def _compare(claimed: object, computed: str) -> None:
    if claimed != computed:
        raise InputError(Wording("the content does not match its hash: the line was changed or damaged"))
