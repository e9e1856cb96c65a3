"""What the server stores: responses and conversations of its protocols by their ids, and nodes by the content address of the
messages that lead to them, for clients that resend their history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from taiwa.kernel.records import Json
from taiwa.sql import Database
from taiwa.sql.base import SqlRow
from taiwa.store.nodes import Nodes, decoding, hash_to_bytes, pack, unpack

ServedKind: TypeAlias = Literal["response", "conversation", "compaction", "run", "message", "file", "vector_store", "file_batch"]
SELECT = """
SELECT served.id, served.kind, served.session, node.hash, served.body
FROM served LEFT JOIN node ON node.seq = served.node"""


@dataclass(frozen=True, slots=True)
class ServedObject:
    """An object, its session, and the node that it led to; None before there is one."""

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
        """Return the object of an id; None where this owner has none."""
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

    def unfinished(self) -> tuple[tuple[str, str], ...]:
        """Return the owners and ids of the responses of all owners that have no node, the oldest first."""
        select = "SELECT owner, id FROM served WHERE node IS NULL AND kind = 'response' ORDER BY seq"
        return tuple((owner, name) for owner, name in self._db.rows(select))

    def delete(self, name: str) -> bool:
        """Delete an object, and report whether there was one; its nodes stay."""
        return self._db.run("DELETE FROM served WHERE owner = ? AND id = ?", self._owner, name) > 0


def _object(row: SqlRow) -> ServedObject:
    name, kind, session, node, body = row
    with decoding("served object"):
        return ServedObject(name, kind, session, node and node.hex(), cast("dict[str, Json]", unpack(body)))


MOST_CANDIDATES = 16
"""How many nodes that end in the same turn are compared, the newest first."""
MOST_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A node under the address of the whole history that leads to it, and the digest of its last turn."""

    node: str
    address: str
    session: str


class Transcripts:
    """The addresses of the nodes that clients of the server made. Each belongs to an owner and an app."""

    def __init__(self, db: Database, nodes: Nodes, owner: str) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = owner

    def put(self, app: str, address: str, turn: str, node: str, session: str) -> None:
        """Store a node under an address; the newest node of an address is the one that is found."""
        insert = "INSERT INTO transcript(owner, app, address, turn, node, session) VALUES(?, ?, ?, ?, ?, ?)"
        self._db.run(
            insert, self._owner, app, hash_to_bytes(address), hash_to_bytes(turn), self._nodes.seq(node), session
        )

    def find(self, app: str, addresses: Sequence[str], session: str = "") -> dict[str, TranscriptEntry]:
        """Return the newest node of each address that is known; with a session, of those that were made in it."""
        found: dict[str, TranscriptEntry] = {}
        within, names = (" AND transcript.session = ?", [session]) if session else ("", [])
        for start in range(0, len(addresses), MOST_AT_ONCE):
            keys = [hash_to_bytes(address) for address in addresses[start : start + MOST_AT_ONCE]]
            marks = ", ".join("?" * len(keys))
            rows = self._db.rows(
                "SELECT node.hash, transcript.address, transcript.session FROM transcript "  # noqa: S608  (marks only)
                f"JOIN node ON node.seq = transcript.node WHERE transcript.address IN ({marks}) "
                f"AND transcript.owner = ? AND transcript.app = ?{within} ORDER BY transcript.seq",
                *keys, self._owner, app, *names,
            )  # fmt: skip
            found |= {key.hex(): TranscriptEntry(node.hex(), key.hex(), session) for node, key, session in rows}
        return found

    def address_of(self, node: str) -> str | None:
        """Return the address of a node; None where no client led to it."""
        select = "SELECT address FROM transcript WHERE node = ? AND owner = ? ORDER BY seq DESC LIMIT 1"
        address: bytes | None = self._db.one(select, self._nodes.seq(node), self._owner)
        return None if address is None else address.hex()

    def ending_in(self, app: str, turn: str) -> tuple[TranscriptEntry, ...]:
        """Return the newest nodes whose last turn has that digest."""
        select = """
        SELECT node.hash, transcript.address, transcript.session FROM transcript JOIN node ON node.seq = transcript.node
        WHERE transcript.turn = ? AND transcript.owner = ? AND transcript.app = ? ORDER BY transcript.seq DESC LIMIT ?"""
        rows = self._db.rows(select, hash_to_bytes(turn), self._owner, app, MOST_CANDIDATES)
        return tuple(TranscriptEntry(node.hex(), address.hex(), session) for node, address, session in rows)
