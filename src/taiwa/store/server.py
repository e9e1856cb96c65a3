"""Conversations on a PostgreSQL server, for many machines and users at once.

Each name is held while it is moved, so programs that go on with different conversations do not wait for each other. Whoever
has begun a run keeps a lock of the connection, which the server frees when the program or its machine is gone.
"""

from collections.abc import Iterator, Sequence

from taiwa.postgres import Connection as AnyConnection
from taiwa.postgres import Server
from taiwa.sqlite import Clock, Row, now_us
from taiwa.store.bodies import texts
from taiwa.store.serverschema import STORE
from taiwa.store.words import index_text, query_words

__all__ = ["Connection"]

OWNER = 0x74616977
"""The class of the locks that say who is alive."""
BATCH = 500
LARGEST = 900_000
"""Bytes of words; a tsvector holds a little more."""
TOUCHED = "app, node, ref, reflog, run, call, snap, search, fresh"
REFERENCES = (
    ("node", "parent", "node"),
    ("node", "app", "app"),
    ("reflog", "ref", "ref"),
    ("run", "app", "app"),
    ("call", "run", "run"),
    ("snap", "node", "node"),
    ("verdict", "person", "person"),
)
ALIVE = """
SELECT EXISTS(SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = CAST(? AS oid)
    AND objid = CAST(? AS oid) AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
TAKE = """
WITH taken AS (
    DELETE FROM fresh WHERE node IN (
        SELECT node FROM fresh WHERE large = 0 ORDER BY node LIMIT ? FOR UPDATE SKIP LOCKED)
    RETURNING node)
SELECT seq, body FROM node JOIN taken ON taken.node = seq"""
PUT = """
INSERT INTO search(node, words)
SELECT node, array_to_tsvector(string_to_array(words, ' '))
FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS new(node, words)
ON CONFLICT(node) DO UPDATE SET words = excluded.words"""
NEWEST = "SELECT seq, hash, kind, at_us, body FROM node WHERE seq < ? ORDER BY seq DESC LIMIT ?"
FOUND = """
SELECT seq, hash, kind, at_us, body
FROM (SELECT node FROM (
        SELECT node FROM search WHERE words @@ CAST(?1 AS tsquery) UNION SELECT node FROM fresh) AS every
    WHERE node < ?2 ORDER BY node DESC LIMIT ?3) AS found JOIN node ON node.seq = found.node
ORDER BY seq DESC"""


class Connection(AnyConnection):
    """An open store."""

    def __init__(self, server: Server, *, readonly: bool = False, clock: Clock = now_us) -> None:
        super().__init__(server, STORE, readonly=readonly, clock=clock)
        self.words = ServerWords(self)
        self._owner = 0

    def owner(self) -> tuple[int, str]:
        """Take a number that the server frees with this connection; a connection that was lost takes its number again."""
        if not self._owner:
            self._owner = int(self.one("SELECT nextval('owner')"))
        if not self.is_alive(self._owner, ""):
            self.rows("SELECT pg_advisory_lock(CAST(? AS integer), CAST(? AS integer))", OWNER, self._owner)
        return self._owner, f"{self._pid}"

    def is_alive(self, owner: int, token: str) -> bool:  # noqa: ARG002  (a number is enough: it is not given out twice)
        """Say whether that number is held, on whatever machine."""
        return owner > 0 and bool(self.one(ALIVE, OWNER, owner))

    def seal(self) -> bool:
        """Let the server use the room of deleted rows again; its log and its backups are its keeper's."""
        self.rows(f"VACUUM {TOUCHED}")
        return False

    def check(self) -> Iterator[tuple[str, str]]:
        """See that every row is there that another names; the pages are the server's business."""
        for table, column, target in REFERENCES:
            key = "node" if table == "snap" else "seq"
            there = f"EXISTS(SELECT 1 FROM {target} WHERE {target}.seq = one.{column})"  # noqa: S608  (constants)
            select = f"SELECT {key} FROM {table} AS one WHERE {column} IS NOT NULL AND NOT {there}"  # noqa: S608
            for (row,) in self.rows(select):
                yield f"{table} {row}", f"names a row of {target} that is not there"


class ServerWords:
    """The words of nodes as tsvectors of our own making."""

    def __init__(self, db: AnyConnection) -> None:
        self._db = db

    def refresh(self) -> None:
        """Take in what is new, in steps. Several programs take different nodes."""
        while self._db.one("SELECT EXISTS(SELECT 1 FROM fresh WHERE large = 0)"):
            with self._db.transaction():
                rows = [(seq, index_text(*texts(body))) for seq, body in self._db.rows(TAKE, BATCH)]
                large = [seq for seq, words in rows if len(words.encode()) > LARGEST]
                small = [(seq, words) for seq, words in rows if seq not in large]
                self._db.run(PUT, [seq for seq, _ in small], [words for _, words in small])
                self._db.run("INSERT INTO fresh SELECT unnest(CAST(? AS bigint[])), 1", large)
            if not rows:
                return  # the rest is in other hands

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[Row]:
        """Return what the index says, and what it does not hold."""
        asked = query_words(terms)
        if not asked:
            return self._db.rows(NEWEST, before, limit)
        query = " & ".join(f"'{word}':*" if begins else f"'{word}'" for word, begins in asked)
        return self._db.rows(FOUND, query, before, limit)

    def part(self) -> None:
        """Words go with their nodes."""

    def clear(self) -> None:
        """Empty the index."""
        self._db.run("DELETE FROM search")
        self._db.run("INSERT INTO fresh(node) SELECT seq FROM node ON CONFLICT DO NOTHING")

    def held(self) -> Iterator[tuple[int, str]]:
        """Give every word with the row of its node."""
        for node, words in self._db.rows("SELECT node, tsvector_to_array(words) FROM search"):
            for word in words:
                yield node, word

    def covered(self) -> Iterator[Row]:
        """Give the nodes that do not wait to be indexed."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq NOT IN (SELECT node FROM fresh)")
