"""Apps and nodes by their hashes, and the way from a node to its root."""

from collections.abc import Iterator
from typing import Any, cast

from taiwa.conversation.node import AppSource, Node
from taiwa.kernel.errors import CorruptError, InputError, StoreError
from taiwa.kernel.records import Json
from taiwa.store.bodies import key, pack, plain, short, text, unpack
from taiwa.store.connection import Connection, Row

__all__ = ["COLUMNS", "Nodes", "app_of", "node_of"]

BATCH = 256
COLUMNS = "node.kind, app.hash, node.state, node.body"
"""What `node_of` reads, after the hash of the parent."""
INSERT = """
INSERT INTO node(hash, parent, base, kind, app, turns, state, body, at_us)
SELECT ?, ?, ?, ?, seq, ?, ?, ?, ? FROM app WHERE hash = ? ON CONFLICT(hash) DO NOTHING"""
# S608 sees a statement made of pieces; the pieces are the constants above.
# One step of the walk reads one row by its number, so a batch costs what it gives.
UP = f"""
WITH RECURSIVE up(seq, parent, steps) AS (
    SELECT seq, parent, 1 FROM node WHERE seq = ?
    UNION ALL SELECT node.seq, node.parent, steps + 1 FROM up JOIN node ON node.seq = up.parent WHERE steps < {BATCH})
SELECT node.hash, up.parent, {COLUMNS} FROM up JOIN node ON node.seq = up.seq JOIN app ON app.seq = node.app
ORDER BY up.seq DESC"""  # noqa: S608
ONE = f"""
SELECT parent.hash, {COLUMNS} FROM node JOIN app ON app.seq = node.app LEFT JOIN node parent ON parent.seq = node.parent
WHERE node.hash = ?"""  # noqa: S608


def app_of(name: str, body: bytes) -> AppSource:
    """Make an app of its row."""
    said = cast("dict[str, Any]", unpack(body))  # what `put_app` wrote
    return AppSource(name, said["source"], said["params"])


def node_of(parent: bytes | None, columns: Row) -> Node:
    """Make a node of its row: kind, hash of the app, hash of the state, body."""
    kind, app, state, body = columns
    said = cast("dict[str, Any]", unpack(body))  # what `insert` wrote
    return Node(text(parent), kind, app.hex(), said.get("user"), said.get("answer"), said.get("delta"), state.hex())


class Nodes:
    """The apps and nodes of a store. They are only added to; `upkeep` alone deletes."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def put_app(self, app: AppSource) -> str:
        """Keep an app and return its hash."""
        name = app.hash
        if self._db.one("SELECT seq FROM app WHERE hash = ?", key(name)) is None:
            body = pack({"source": app.source, "params": plain(app.params)})
            insert = "INSERT INTO app(hash, name, body) VALUES(?, ?, ?) ON CONFLICT(hash) DO NOTHING"
            self._db.run(insert, key(name), app.name, body)
        return name

    def app(self, name: str) -> AppSource:
        """Return the app of a hash.

        Raises:
            StoreError: it is not here.
        """
        row = self._db.row("SELECT name, body FROM app WHERE hash = ?", key(name))
        if row is None:
            raise StoreError(f"the store has no app {short(name)}")
        return app_of(row[0], row[1])

    def put(self, node: Node, base: str | None = None) -> str:
        """Keep a node, whose parent and app must be here, and return its hash; a known node stays as it is.

        `base` is the tip that undo goes back to from here: the parent, unless the node is one of several of a commit.

        Raises:
            InputError: its parent or app is not here, it cannot be written, or it is a root with a parent.
        """
        name = node.hash
        with self._db.transaction():
            self.insert(node, key(name), None if base is None else self.seq(base))
        return name

    def insert(self, node: Node, name: bytes, base: int | None) -> int:
        """Keep a node under its hash and return its row; `put` says the rest, and the caller holds a transaction."""
        parent, turns = self._parent(node)
        state = key(node.state_hash) if node.state_hash else b""
        said: dict[str, Json] = {"user": node.user, "answer": node.answer, "delta": plain(node.delta)}
        body = pack({part: words for part, words in said.items() if words is not None})
        back = parent if base is None else base
        values = (name, parent, back, node.kind, turns, state, body, self._db.clock(), key(node.app))
        return self._db.insert(INSERT, *values) or self._known(node, name)

    def _known(self, node: Node, name: bytes) -> int:
        known: int | None = self._db.one("SELECT seq FROM node WHERE hash = ?", name)
        if known is None:
            raise InputError(f"a node names the app {short(node.app)}, which the store does not have: put it first")
        return known

    def _parent(self, node: Node) -> tuple[int | None, int]:
        """Return the row of the parent and the number of turns up to and with this node."""
        own = 1 if node.kind == "turn" else 0
        if (node.parent is None) != (node.kind == "root"):
            raise InputError("a root has no parent, and every other node has one")
        if node.parent is None:
            return None, own
        row = self._db.row("SELECT seq, turns FROM node WHERE hash = ?", key(node.parent))
        if row is None:
            raise InputError(f"a node follows {short(node.parent)}, which the store does not have")
        return row[0], row[1] + own

    def seq(self, name: str) -> int:
        """Return the row of a node.

        Raises:
            StoreError: it is not here.
        """
        seq: int | None = self._db.one("SELECT seq FROM node WHERE hash = ?", key(name))
        if seq is None:
            raise StoreError(f"the store has no node {short(name)}")
        return seq

    def name(self, seq: int) -> str:
        """Return the hash of a row.

        Raises:
            CorruptError: there is no such row.
        """
        name: bytes | None = self._db.one("SELECT hash FROM node WHERE seq = ?", seq)
        if name is None:
            raise CorruptError("the store names a node that it does not have: run `taiwa fsck`")
        return name.hex()

    def base(self, name: str) -> str | None:
        """Return the node that undo goes back to from here, None at a root."""
        base: int | None = self._db.one("SELECT base FROM node WHERE hash = ?", key(name))
        return None if base is None else self.name(base)

    def made_at(self, name: str) -> int:
        """Return what the clock said when a node came here (microseconds since 1970), for showing only."""
        at: int | None = self._db.one("SELECT at_us FROM node WHERE seq = ?", self.seq(name))
        return at or 0

    def has(self, name: str) -> bool:
        """Say whether a node is here."""
        return self._db.one("SELECT 1 FROM node WHERE hash = ?", key(name)) is not None

    def get(self, name: str) -> Node:
        """Return the node of a hash.

        Raises:
            StoreError: it is not here.
        """
        row = self._db.row(ONE, key(name))
        if row is None:
            raise StoreError(f"the store has no node {short(name)}")
        return node_of(row[0], row[1:])

    def path(self, tip: str, stop: str | None = None) -> Iterator[tuple[str, Node]]:
        """Walk from a node to its root and give each node with its hash; end before `stop`.

        Rows are read in batches, so the store may be written to meanwhile.

        Raises:
            StoreError: the node is not here.
        """
        seq: int | None = self.seq(tip)
        while seq is not None:
            rows = self._db.rows(UP, seq)
            names = [row[0] for row in rows]
            seq = rows[-1][1]
            names.append(None if seq is None else key(self.name(seq)))
            for place, (name, _, *columns) in enumerate(rows):
                if stop is not None and name.hex() == stop:
                    return
                yield name.hex(), node_of(names[place + 1], tuple(columns))

    def children(self, name: str) -> tuple[str, ...]:
        """Return the hashes of the nodes that follow this one, oldest first."""
        rows = self._db.rows("SELECT hash FROM node WHERE parent = ? ORDER BY seq", self.seq(name))
        return tuple(row[0].hex() for row in rows)

    def count(self) -> int:
        """Return how many nodes the store has."""
        return int(self._db.one("SELECT count(*) FROM node"))
