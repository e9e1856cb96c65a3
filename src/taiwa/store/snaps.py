"""States as they were after some nodes: a cache that may be deleted at any time."""

from typing import NamedTuple

from taiwa.conversation.node import Node
from taiwa.kernel.errors import StoreError
from taiwa.kernel.records import Json
from taiwa.store.bodies import key, pack, plain, short, unpack
from taiwa.store.connection import Connection
from taiwa.store.nodes import COLUMNS, Nodes, node_of

__all__ = ["Checkout", "Snaps"]

# The walk ends at the first node that has a snapshot.
BACK = """
WITH RECURSIVE up(seq, parent, snap, steps) AS (
    SELECT node.seq, node.parent, snap.node, 0 FROM node LEFT JOIN snap ON snap.node = node.seq WHERE node.hash = ?
    UNION ALL SELECT node.seq, node.parent, snap.node, steps + 1
    FROM up JOIN node ON node.seq = up.parent LEFT JOIN snap ON snap.node = node.seq
    WHERE up.snap IS NULL AND steps < ?)"""
STEPS = f"""{BACK}
SELECT node.hash, up.snap, {COLUMNS} FROM up JOIN node ON node.seq = up.seq JOIN app ON app.seq = node.app
ORDER BY up.seq"""  # noqa: S608  (pieces that are constants)
NEAREST = f"""{BACK}
SELECT node.hash, snap.state FROM up JOIN node ON node.seq = up.seq JOIN snap ON snap.node = up.snap"""  # noqa: S608
PUT = "INSERT INTO snap(node, state) VALUES(?, ?) ON CONFLICT(node) DO UPDATE SET state = excluded.state"
FAR = 2**60


class Checkout(NamedTuple):
    """What a state is made from: a snapshot (hash of its node, state), and the nodes after it, oldest first.

    Without a snapshot the nodes begin at the root.
    """

    near: tuple[str, Json] | None
    steps: tuple[tuple[str, Node], ...]


class Snaps:
    """The snapshots of a store."""

    def __init__(self, db: Connection, nodes: Nodes) -> None:
        self._db = db
        self._nodes = nodes

    def get(self, name: str) -> Json:
        """Return the snapshot after a node, None when there is none."""
        select = "SELECT snap.state FROM snap JOIN node ON node.seq = snap.node WHERE node.hash = ?"
        body: bytes | None = self._db.one(select, key(name))
        return None if body is None else unpack(body)

    def put(self, name: str, state: Json) -> None:
        """Keep a snapshot after a node, in place of an older one; a table keeps its order, its newest entries last."""
        body = pack(plain(state), in_order=True)
        with self._db.transaction():
            self._db.run(PUT, self._nodes.seq(name), body)

    def nearest(self, name: str, steps: int = FAR) -> tuple[str, Json] | None:
        """Return the last snapshot at or before a node, looking back at most so many steps."""
        row = self._db.row(NEAREST, key(name), steps)
        return None if row is None else (row[0].hex(), unpack(row[1]))

    def checkout(self, name: str) -> Checkout:
        """Return what the state after a node is made from.

        Raises:
            StoreError: the node is not here.
        """
        rows = self._db.rows(STEPS, key(name), FAR)
        if not rows:
            raise StoreError(f"the store has no node {short(name)}")
        near: tuple[str, Json] | None = None
        if rows[0][1] is not None:
            near = rows[0][0].hex(), unpack(self._db.one("SELECT state FROM snap WHERE node = ?", rows[0][1]))
        after = None if near is None else rows.pop(0)[0]
        steps: list[tuple[str, Node]] = []
        for hashed, _, *columns in rows:
            steps.append((hashed.hex(), node_of(after, tuple(columns))))
            after = hashed
        return Checkout(near, tuple(steps))

    def drop(self) -> int:
        """Delete all snapshots and return how many there were; states are folded anew when asked for."""
        return self._db.run("DELETE FROM snap")
