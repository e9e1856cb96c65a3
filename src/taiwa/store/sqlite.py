"""A store in one SQLite file: process identities, the FTS5 index, and checks of the file."""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from taiwa.sql.base import Clock, SqlRow, now_us
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store.nodes import searchable_texts
from taiwa.store.schema import STORE
from taiwa.store.search import index_text, query_words

BATCH = 500
UNINDEXED = "SELECT seq, hash, kind, at_us, body FROM node WHERE seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?"
INDEXED = """
SELECT node.seq, hash, kind, at_us, body
FROM (SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?) AS found
JOIN node ON node.seq = found.rowid ORDER BY node.seq DESC"""
PROCESSES = Path("/proc")
ENDED = ("Z", "X")
"""States of a process that has ended and was not yet waited for."""


class SqliteStoreDatabase(SqliteDatabase):
    """An open store file. SQLite has one writer at a time, so names need no locks."""

    def __init__(self, path: str | Path, *, readonly: bool = False, clock: Clock = now_us) -> None:
        super().__init__(path, STORE, readonly=readonly, clock=clock)
        self.text_index = Fts5Index(self)

    def lock(self, *names: str) -> None:
        """Do nothing: a writing transaction is exclusive anyway."""

    def owner(self) -> tuple[int, str]:
        """Return the id and the start of this process: ids are used again, so the start is kept with them."""
        return _own(os.getpid())

    def is_alive(self, owner: int, token: str) -> bool:
        """Report whether that process still runs."""
        return is_alive(owner, token)

    def erase_deleted(self) -> bool:
        """Empty the write-ahead log, unless another program is reading it."""
        return not self.one("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> Iterator[tuple[str, str]]:
        """Check the pages of the file and the foreign keys."""
        for (line,) in self.rows("PRAGMA integrity_check"):
            if line != "ok":
                yield "file", str(line)
        for table, row, target, _ in self.rows("PRAGMA foreign_key_check"):
            yield f"{table} {row}", f"refers to a row of {target} that does not exist"


class Fts5Index:
    """The words of a file's nodes in FTS5; the table `indexed` holds the last node in it."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    def refresh(self) -> None:
        """Index new nodes, in steps."""
        while self._db.one("SELECT EXISTS(SELECT 1 FROM node WHERE seq > (SELECT seq FROM indexed))"):
            with self._db.transaction():
                done: int = self._db.one("SELECT seq FROM indexed")
                new = "SELECT seq, body FROM node WHERE seq > ? ORDER BY seq LIMIT ?"
                for seq, body in self._db.rows(new, done, BATCH):
                    done = seq
                    words = index_text(*searchable_texts(body))
                    if words:
                        self._db.run("INSERT INTO search(rowid, words) VALUES(?, ?)", seq, words)
                self._db.run("UPDATE indexed SET seq = ?", done)

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[SqlRow]:
        """Return nodes that are not indexed yet (in a read-only store), then those that the index finds."""
        # Every word matches by its beginning, every pair of characters exactly.
        query = " ".join(f'"{word}" *' if begins else f'"{word}"' for word, begins in query_words(terms))
        done: int = self._db.one("SELECT seq FROM indexed") if query else 0
        new = self._db.rows(UNINDEXED, done, before, limit)
        return new if new or not query else self._db.rows(INDEXED, query, before, limit)

    def nodes_deleted(self) -> None:
        """Empty the index: deleting single rows would leave their words in the file."""
        self.clear()

    def clear(self) -> None:
        """Empty the index."""
        self._db.run("INSERT INTO search(search) VALUES('delete-all')")
        self._db.run("UPDATE indexed SET seq = 0")

    def words(self) -> Iterator[tuple[int, str]]:
        """Yield every word with the row of its node."""
        self._db.run("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word USING fts5vocab(main, search, instance)")
        for term, doc in self._db.rows("SELECT term, doc FROM temp.word"):
            yield doc, term

    def covered(self) -> Iterator[SqlRow]:
        """Yield the nodes up to the last one that is indexed."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq <= (SELECT seq FROM indexed)")


@lru_cache(maxsize=1)
def _own(pid: int) -> tuple[int, str]:
    return pid, start_of_process(pid)


def start_of_process(pid: int) -> str:
    """Return when a process began (boot id and clock ticks since), or "" when that is unknown or the process has ended."""
    try:
        state, *fields = (PROCESSES / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in ENDED or len(fields) < 19 else f"{_boot_id()} {fields[18]}"


def is_alive(pid: int, token: str) -> bool:
    """Report whether the process with this id and start still runs; 0 is the id of none."""
    if pid == 0:
        return False
    if (PROCESSES / "self" / "stat").exists():
        return token != "" and start_of_process(pid) == token
    if os.name == "nt":
        return pid == os.getpid()  # there, os.kill would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return (PROCESSES / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
