"""A store on a PostgreSQL server, for many machines and users at once.

Each name is locked while it is moved, so programs that work on different sessions do not wait for each other. A process that
has begun a run keeps a lock of its connection, which the server frees when the program or its machine is gone.
"""

from collections.abc import Iterator, Sequence

from taiwa.sql import PostgresUrl
from taiwa.sql.base import Clock, SqlRow, now_us
from taiwa.sql.postgres import PostgresDatabase
from taiwa.store.nodes import searchable_texts
from taiwa.store.schema import STORE
from taiwa.store.search import index_text, query_words

OWNER = 0x74616977
"""The class of the advisory locks that mark living processes."""
BATCH = 500
LARGEST = 900_000
"""Bytes of words; a tsvector holds a little more."""
TOUCHED = "app, node, ref, reflog, run, call, snapshot, search, unindexed"
REFERENCES = (
    ("node", "parent", "node"),
    ("node", "app", "app"),
    ("reflog", "ref", "ref"),
    ("run", "app", "app"),
    ("call", "run", "run"),
    ("snapshot", "node", "node"),
    ("feedback", "user_profile", "user_profile"),
)
ALIVE = """
SELECT EXISTS(SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = CAST(? AS oid)
    AND objid = CAST(? AS oid) AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
TAKE = """
WITH taken AS (
    DELETE FROM unindexed WHERE node IN (
        SELECT node FROM unindexed WHERE large = 0 ORDER BY node LIMIT ? FOR UPDATE SKIP LOCKED)
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
        SELECT node FROM search WHERE words @@ CAST(?1 AS tsquery) UNION SELECT node FROM unindexed) AS every
    WHERE node < ?2 ORDER BY node DESC LIMIT ?3) AS found JOIN node ON node.seq = found.node
ORDER BY seq DESC"""


class PostgresStoreDatabase(PostgresDatabase):
    """An open store on a server."""

    def __init__(self, url: PostgresUrl, *, readonly: bool = False, clock: Clock = now_us) -> None:
        super().__init__(url, STORE, readonly=readonly, clock=clock)
        self.text_index = TsvectorIndex(self)
        self._owner = 0

    def owner(self) -> tuple[int, str]:
        """Take a number whose lock the server frees with this connection; after a reconnection the same number is locked again."""
        if not self._owner:
            self._owner = int(self.one("SELECT nextval('owner')"))
        if not self.is_alive(self._owner, ""):
            self.rows("SELECT pg_advisory_lock(CAST(? AS integer), CAST(? AS integer))", OWNER, self._owner)
        return self._owner, f"{self._pid}"

    def is_alive(self, owner: int, token: str) -> bool:  # noqa: ARG002  (the number is enough: none is given out twice)
        """Report whether that number is locked, on any machine."""
        return owner > 0 and bool(self.one(ALIVE, OWNER, owner))

    def erase_deleted(self) -> bool:
        """Let the server use the space of deleted rows again; its log and its backups are outside our reach."""
        self.rows(f"VACUUM {TOUCHED}")
        return False

    def check(self) -> Iterator[tuple[str, str]]:
        """Check the references between rows; the pages are the server's business."""
        for table, column, target in REFERENCES:
            key = "node" if table == "snapshot" else "seq"
            there = f"EXISTS(SELECT 1 FROM {target} WHERE {target}.seq = one.{column})"  # noqa: S608  (constants)
            select = f"SELECT {key} FROM {table} AS one WHERE {column} IS NOT NULL AND NOT {there}"  # noqa: S608
            for (row,) in self.rows(select):
                yield f"{table} {row}", f"refers to a row of {target} that does not exist"


class TsvectorIndex:
    """The words of nodes in tsvectors that are not parsed by the server."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db = db

    def refresh(self) -> None:
        """Index new nodes, in steps; several programs take different nodes."""
        while self._db.one("SELECT EXISTS(SELECT 1 FROM unindexed WHERE large = 0)"):
            with self._db.transaction():
                rows = [(seq, index_text(*searchable_texts(body))) for seq, body in self._db.rows(TAKE, BATCH)]
                large = [seq for seq, words in rows if len(words.encode()) > LARGEST]
                small = [(seq, words) for seq, words in rows if seq not in large]
                self._db.run(PUT, [seq for seq, _ in small], [words for _, words in small])
                self._db.run("INSERT INTO unindexed SELECT unnest(CAST(? AS bigint[])), 1", large)
            if not rows:
                return  # other programs are indexing the rest

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[SqlRow]:
        """Return nodes that the index finds, and those that it does not contain."""
        asked = query_words(terms)
        if not asked:
            return self._db.rows(NEWEST, before, limit)
        query = " & ".join(f"'{word}':*" if begins else f"'{word}'" for word, begins in asked)
        return self._db.rows(FOUND, query, before, limit)

    def nodes_deleted(self) -> None:
        """Do nothing: words are deleted with their nodes."""

    def clear(self) -> None:
        """Empty the index."""
        self._db.run("DELETE FROM search")
        self._db.run("INSERT INTO unindexed(node) SELECT seq FROM node ON CONFLICT DO NOTHING")

    def words(self) -> Iterator[tuple[int, str]]:
        """Yield every word with the row of its node."""
        for node, words in self._db.rows("SELECT node, tsvector_to_array(words) FROM search"):
            for word in words:
                yield node, word

    def covered(self) -> Iterator[SqlRow]:
        """Yield the indexed nodes."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq NOT IN (SELECT node FROM unindexed)")
