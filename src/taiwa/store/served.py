"""Objects of the server that have ids of their own: responses and conversations of its protocols."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from taiwa.kernel.records import Json
from taiwa.sql import Database
from taiwa.sql.base import SqlRow
from taiwa.store.nodes import Nodes, decoding, pack, unpack

ServedKind: TypeAlias = Literal["response", "conversation", "compaction"]
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
