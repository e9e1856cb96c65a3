"""Records of servers: responses and conversations of their protocols by id, nodes by the content address of the messages
that lead to them (for clients that resend their history), named callers, and the runs that servers of one store share.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal, TypeAlias, cast

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.serialization import Json, value
from taiwa.sql import Database
from taiwa.sql.base import SqlRow
from taiwa.store.nodes import Nodes, decoding, hash_to_bytes, pack, unpack

ServedKind: TypeAlias = Literal[
    "response", "conversation", "compaction", "run", "message", "file", "vector_store", "file_batch"
]
SELECT = """
SELECT served.id, served.kind, served.session, node.hash, served.body
FROM served LEFT JOIN node ON node.seq = served.node"""


@value
class ServedObject:
    """An object, its session, and its resulting node; None before there is one."""

    id: str
    kind: ServedKind
    session: str
    node: str | None
    body: dict[str, Json]


class ServedObjects:
    """The objects of one owner. Deleting the node of an object deletes the object."""

    def __init__(self, db: Database, nodes: Nodes, owner: str) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = owner

    def put(self, item: ServedObject) -> None:
        """Store an object, or replace the one of its id."""
        node = None if item.node is None else self._nodes.seq(item.node)
        with self._db.transaction():
            self.delete(item.id)
            insert = "INSERT INTO served(owner, id, kind, session, node, body) VALUES(?, ?, ?, ?, ?, ?)"
            self._db.insert(insert, self._owner, item.id, item.kind, item.session, node, pack(item.body))

    def find(self, name: str) -> ServedObject | None:
        """Return the object of an id; None if this owner has none."""
        if "\0" in name:  # PostgreSQL has no such text
            return None
        row = self._db.row(f"{SELECT} WHERE served.owner = ? AND served.id = ?", self._owner, name)
        return None if row is None else _object(row)

    def of_session(self, session: str) -> tuple[ServedObject, ...]:
        """Return the responses of a session, the oldest first."""
        where = "WHERE served.owner = ? AND served.session = ? AND served.kind = 'response' ORDER BY served.seq"
        return tuple(map(_object, self._db.rows(f"{SELECT} {where}", self._owner, session)))

    def of_kind(self, kind: ServedKind) -> tuple[ServedObject, ...]:
        """Return the objects of a kind, the oldest first."""
        where = "WHERE served.owner = ? AND served.kind = ? ORDER BY served.seq"
        return tuple(map(_object, self._db.rows(f"{SELECT} {where}", self._owner, kind)))

    def attributes(self, index: str) -> dict[str, dict[str, Json]]:
        """Return the attributes of the files of an index, by their ids."""
        found = self.find(f"vector_store/{index}")
        return {} if found is None else cast("dict[str, dict[str, Json]]", found.body["attributes"])

    def unfinished(self) -> tuple[tuple[str, str], ...]:
        """Return the owners and ids of the responses of all owners that have no node, the oldest first."""
        select = "SELECT owner, id FROM served WHERE node IS NULL AND kind = 'response' ORDER BY seq"
        return tuple((owner, name) for owner, name in self._db.rows(select))

    def delete(self, name: str) -> bool:
        """Delete an object, and return whether it existed; its nodes stay."""
        return self._db.run("DELETE FROM served WHERE owner = ? AND id = ?", self._owner, name) > 0


def _object(row: SqlRow) -> ServedObject:
    name, kind, session, node, body = row
    with decoding("served object"):
        return ServedObject(name, kind, session, node and node.hex(), cast("dict[str, Json]", unpack(body)))


MOST_CANDIDATES = 16
"""Maximum number of nodes with the same last turn to compare, newest first."""
FIRST_LOOKUP = 16
"""Number of longest prefixes to look up first; an unchanged history is among them."""
MOST_AT_ONCE = 256


@value
class TranscriptEntry:
    """A node under the address of the whole history that leads to it, and the digest of its last turn."""

    node: str
    address: str
    session: str


PUT_TRANSCRIPT = """
INSERT INTO transcript(owner, app, session, address, turn, node)
SELECT ?, ?, ?, ?, ?, seq FROM node LEFT JOIN owned_node ON owned_node.node = node.seq
WHERE hash = ? AND coalesce(owned_node.owner, '') = ?"""


class Transcripts:
    """The addresses of nodes created by clients of the server. Each belongs to an owner and an app."""

    def __init__(self, db: Database, nodes: Nodes, owner: str) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = owner

    def put(self, app: str, address: str, turn: str, node: str, session: str) -> None:
        """Store a node under an address; `find_last` returns the newest node of an address."""
        keys = map(hash_to_bytes, (address, turn, node))
        if not self._db.run(PUT_TRANSCRIPT, self._owner, app, session, *keys, self._owner):
            self._nodes.seq(node)  # raises if it is missing

    def find_last(self, app: str, addresses: Sequence[str], session: str = "") -> TranscriptEntry | None:
        """Return the newest node of the last address that is known; with a session, only nodes created in it count."""
        within, names = (" AND transcript.session = ?", [session]) if session else ("", [])
        end, most = len(addresses), FIRST_LOOKUP
        while end > 0:
            keys = list(map(hash_to_bytes, addresses[max(end - most, 0) : end]))
            end, most = end - most, MOST_AT_ONCE
            marks = ", ".join("?" * len(keys))
            rows = self._db.rows(
                "SELECT node.hash, transcript.address, transcript.session FROM transcript "  # noqa: S608  (marks only)
                f"JOIN node ON node.seq = transcript.node WHERE transcript.address IN ({marks}) "
                f"AND transcript.owner = ? AND transcript.app = ?{within} ORDER BY transcript.seq DESC",
                *keys, self._owner, app, *names,
            )  # fmt: skip
            if rows:
                node, key, session = max(rows, key=lambda row: keys.index(row[1]))
                return TranscriptEntry(node.hex(), key.hex(), session)
        return None

    def address_of(self, node: str) -> str | None:
        """Return the address of a node; None if no client created it."""
        select = "SELECT address FROM transcript WHERE node = ? AND owner = ? ORDER BY seq DESC LIMIT 1"
        address: bytes | None = self._db.one(select, self._nodes.seq(node), self._owner)
        return None if address is None else address.hex()

    def ending_in(self, app: str, turn: str, least: int) -> tuple[tuple[TranscriptEntry, int], ...]:
        """Return the newest nodes whose last turn has that digest and that end at least `least` turns, each with the number of these."""
        select = """
        SELECT node.hash, transcript.address, transcript.session, node.turns
        FROM transcript JOIN node ON node.seq = transcript.node
        WHERE transcript.turn = ? AND transcript.owner = ? AND transcript.app = ? AND node.turns >= ?
        ORDER BY transcript.seq DESC LIMIT ?"""
        rows = self._db.rows(select, hash_to_bytes(turn), self._owner, app, least, MOST_CANDIDATES)
        return tuple(
            (TranscriptEntry(node.hex(), address.hex(), session), count) for node, address, session, count in rows
        )


SELECT_CALLER = "SELECT name, max_cost, rate, principals, at_us FROM caller"


@value
class Caller:
    """A caller. `max_cost` is its daily budget (UTC), in billionths of the currency unit, and `rate` the number of answers
    per minute; None means no limit. `principals` are those for whom it searches documents.
    """

    name: str
    max_cost: int | None = None
    rate: int | None = None
    principals: tuple[str, ...] = ()
    at_us: int = 0


class Callers:
    """The callers of a store; their keys are stored as hashes."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, caller: Caller, key: str) -> None:
        """Store a caller with its key.

        Raises:
            ConflictError: there is one of that name.
        """
        columns = "name, max_cost, rate, principals, at_us, key"
        insert = f"INSERT INTO caller({columns}) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO NOTHING"
        principals = json.dumps(caller.principals, ensure_ascii=False)
        values = (caller.name, caller.max_cost, caller.rate, principals, self._db.clock(), hash_key(key))
        if self._db.insert(insert, *values) is None:
            raise ConflictError(
                f"the caller {caller.name!r} has a key already; revoke it first, or choose another name"
            )

    def list(self) -> tuple[Caller, ...]:
        """Return the callers, sorted by name."""
        return tuple(map(_caller, self._db.rows(f"{SELECT_CALLER} ORDER BY name")))

    def find(self, key: str) -> Caller | None:
        """Return the caller of a key; None if no caller has it."""
        row = self._db.row(f"{SELECT_CALLER} WHERE key = ?", hash_key(key))
        return None if row is None else _caller(row)

    def get(self, name: str) -> Caller | None:
        """Return the caller of a name; None if there is none."""
        row = self._db.row(f"{SELECT_CALLER} WHERE name = ?", name)
        return None if row is None else _caller(row)

    def revoke(self, name: str) -> None:
        """Delete a caller, whose key becomes invalid; its conversations stay, and belong to a new caller of that name.

        Raises:
            InputError: the name is unknown.
        """
        if not self._db.run("DELETE FROM caller WHERE name = ?", name):
            known = ", ".join(each.name for each in self.list()[:8])
            raise InputError(f"the caller {name!r} has no key{f'; callers: {known}' if known else ''}")


def hash_key(key: str) -> bytes:
    """Return the stored hash of a key."""
    return sha256(key.encode("utf-8", "replace")).digest()


def _caller(row: SqlRow) -> Caller:
    name, max_cost, rate, principals, at = row
    return Caller(name, max_cost, rate, tuple(json.loads(principals)), at)


MOST_ENDED = 256
"""Ended runs of an owner whose events can still be followed."""


@value
class SharedRun:
    """A run of a server. `is_lost` says that its process has ended or released it."""

    number: int
    owner: str
    id: str
    session: str
    ended: bool
    is_lost: bool


class SharedRuns:
    """The runs of one owner that servers share.

    A run belongs to a process, which holds a lock as in `Runs`. The database releases the lock when the process or its
    machine dies; then another server may claim the run.
    """

    def __init__(self, db: Database, owner: str) -> None:
        self._db = db
        self._owner = owner

    def begin(self, name: str, session: str, *, alone: bool = False) -> bool:
        """Share a run of this process under an id; one that must be `alone` is not begun beside another in its session."""
        insert = "INSERT INTO shared_run(owner, id, session, process, stop, ended) VALUES(?, ?, ?, ?, 0, 0)"
        with self._db.transaction():
            self._db.lock(f"shared session {self._owner} {session}")  # or two servers would both find none
            if alone and self.of_session(session) is not None:
                return False
            self._db.insert(insert, self._owner, name, session, self._db.owner())
        return True

    def append(self, name: str, start: int, events: Sequence[Json]) -> None:
        """Write the next events of a run; `start` events were written before."""
        insert = """INSERT INTO shared_event(run, start, until, body)
            SELECT seq, ?, ?, ? FROM shared_run WHERE owner = ? AND id = ? AND process = ?"""
        until, body = start + len(events), pack(list(events))
        self._db.run(insert, start, until, body, self._owner, name, self._db.owner())

    def find(self, name: str) -> SharedRun | None:
        """Return the run of an id; None if this owner has none, or it ended long ago."""
        where = "WHERE owner = ? AND id = ?"
        return next(iter(self._select(where, self._owner, name)), None)

    def of_session(self, session: str) -> SharedRun | None:
        """Return the run that writes in a session now."""
        found = self._select("WHERE owner = ? AND session = ? AND ended = 0", self._owner, session)
        return next((run for run in found if not run.is_lost), None)

    def events(self, run: SharedRun, start: int) -> list[Json]:
        """Return the events of a run from a position on."""
        select = "SELECT start, body FROM shared_event WHERE run = ? AND until > ? ORDER BY until"
        found: list[Json] = []
        for first, body in self._db.rows(select, run.number, start):
            with decoding("shared event"):
                found += cast("list[Json]", unpack(body))[max(0, start - first) :]
        return found

    def end(self, name: str) -> None:
        """End a run of this process; delete the oldest ended ones."""
        update = "UPDATE shared_run SET ended = 1 WHERE owner = ? AND id = ? AND process = ?"
        self._db.run(update, self._owner, name, self._db.owner())
        old = "SELECT seq FROM shared_run WHERE owner = ? AND ended = 1 ORDER BY seq DESC LIMIT 1000 OFFSET ?"
        self._db.run(f"DELETE FROM shared_run WHERE seq IN ({old})", self._owner, MOST_ENDED)  # noqa: S608

    def release(self, name: str) -> None:
        """Leave a run of this process to another server."""
        update = "UPDATE shared_run SET process = 0 WHERE owner = ? AND id = ? AND process = ?"
        self._db.run(update, self._owner, name, self._db.owner())

    def stop(self, name: str) -> None:
        """Ask the process of a run to end it."""
        self._db.run("UPDATE shared_run SET stop = 1 WHERE owner = ? AND id = ?", self._owner, name)

    def claim(self, run: SharedRun) -> bool:
        """Take over a run whose process has ended, without events; False if another server was first."""
        with self._db.transaction():
            self._db.lock(f"shared run {run.number}")
            process = self._db.one("SELECT process FROM shared_run WHERE seq = ? AND ended = 0", run.number)
            if process is None or self._db.is_alive(process):
                return False
            self._db.run("UPDATE shared_run SET process = ? WHERE seq = ?", self._db.owner(), run.number)
            self._db.run("DELETE FROM shared_event WHERE run = ?", run.number)
            return True

    # Queries of a server for itself, over all owners.

    def lost(self) -> tuple[SharedRun, ...]:
        """Return the runs of all owners whose process died before they ended, the oldest first."""
        return tuple(run for run in self._select("WHERE ended = 0") if run.is_lost)

    def stopped(self) -> tuple[SharedRun, ...]:
        """Return the runs of this process, of all owners, that should end."""
        return self._select("WHERE process = ? AND stop = 1 AND ended = 0", self._db.owner())

    def serve(self) -> int | None:
        """Record that this process serves the store; return the number of another process that does, None if there is none.

        If the database is a file, this process serves it only if no other does.
        """
        own = self._db.owner()
        with self._db.transaction():
            self._db.lock("server")
            processes = [int(process) for (process,) in self._db.rows("SELECT process FROM server")]
            others = [process for process in processes if process != own and self._db.is_alive(process)]
            for process in set(processes) - set(others):
                self._db.run("DELETE FROM server WHERE process = ?", process)
            if not others or self.is_shared:
                self._db.run("INSERT INTO server(process) VALUES(?)", own)
        return others[0] if others else None

    def leave(self) -> None:
        """Record that this process no longer serves the store."""
        self._db.run("DELETE FROM server WHERE process = ?", self._db.owner())

    @property
    def is_shared(self) -> bool:
        """Whether several servers may serve the store, because it is not a file."""
        return self._db.dialect == "postgres"

    def _select(self, where: str, *values: object) -> tuple[SharedRun, ...]:
        select = f"SELECT seq, owner, id, session, ended, process FROM shared_run {where} ORDER BY seq"  # noqa: S608
        return tuple(
            SharedRun(seq, owner, name, session, bool(ended), not ended and not self._db.is_alive(process))
            for seq, owner, name, session, ended, process in self._db.rows(select, *values)
        )
