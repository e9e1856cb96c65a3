"""Conversations in one SQLite file of this machine."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from taiwa.sqlite import Clock, Row, now_us
from taiwa.sqlite import Connection as AnyConnection
from taiwa.store.bodies import texts
from taiwa.store.process import is_alive, own
from taiwa.store.schema import STORE
from taiwa.store.words import index_text, match_expression

__all__ = ["Connection"]

BATCH = 500
NEW = "SELECT seq, hash, kind, at_us, body FROM node WHERE seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?"
INDEXED = """
SELECT node.seq, hash, kind, at_us, body
FROM (SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?) AS found
JOIN node ON node.seq = found.rowid ORDER BY node.seq DESC"""


class Connection(AnyConnection):
    """An open store. SQLite has one writer at a time, so names need not be held."""

    def __init__(self, path: str | Path, *, readonly: bool = False, clock: Clock = now_us) -> None:
        super().__init__(path, STORE, readonly=readonly, clock=clock)
        self.words = LocalWords(self)

    def hold(self, *names: str) -> None:
        """Whoever writes is alone already."""

    def owner(self) -> tuple[int, str]:
        """Return the id and the start of this process."""
        return own()

    def is_alive(self, owner: int, token: str) -> bool:
        """Say whether that process still runs."""
        return is_alive(owner, token)

    def seal(self) -> bool:
        """Empty the write-ahead log, unless another program is reading it."""
        return not self.one("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> Iterator[tuple[str, str]]:
        """Let SQLite look at its pages and at what names what."""
        for (line,) in self.rows("PRAGMA integrity_check"):
            if line != "ok":
                yield "file", str(line)
        for table, row, target, _ in self.rows("PRAGMA foreign_key_check"):
            yield f"{table} {row}", f"names a row of {target} that is not there"


class LocalWords:
    """The words of a file's nodes in FTS5; `indexed` is the last node in it."""

    def __init__(self, db: AnyConnection) -> None:
        self._db = db

    def refresh(self) -> None:
        """Take in what is new, in steps."""
        while self._db.one("SELECT EXISTS(SELECT 1 FROM node WHERE seq > (SELECT seq FROM indexed))"):
            with self._db.transaction():
                done: int = self._db.one("SELECT seq FROM indexed")
                new = "SELECT seq, body FROM node WHERE seq > ? ORDER BY seq LIMIT ?"
                for seq, body in self._db.rows(new, done, BATCH):
                    done = seq
                    words = index_text(*texts(body))
                    if words:
                        self._db.run("INSERT INTO search(rowid, words) VALUES(?, ?)", seq, words)
                self._db.run("UPDATE indexed SET seq = ?", done)

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[Row]:
        """Return what is not indexed yet (a store that is only read), then what the index says."""
        expression = match_expression(terms)
        done: int = self._db.one("SELECT seq FROM indexed") if expression else 0
        new = self._db.rows(NEW, done, before, limit)
        return new if new or not expression else self._db.rows(INDEXED, expression, before, limit)

    def part(self) -> None:
        """Empty the index: deleting single rows would leave their words behind in the file."""
        self.clear()

    def clear(self) -> None:
        """Empty the index."""
        self._db.run("INSERT INTO search(search) VALUES('delete-all')")
        self._db.run("UPDATE indexed SET seq = 0")

    def held(self) -> Iterator[tuple[int, str]]:
        """Give every word with the row of its node."""
        self._db.run("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word USING fts5vocab(main, search, instance)")
        for term, doc in self._db.rows("SELECT term, doc FROM temp.word"):
            yield doc, term

    def covered(self) -> Iterator[Row]:
        """Give the nodes up to the last one that is indexed."""
        yield from self._db.rows("SELECT seq, hash, body FROM node WHERE seq <= (SELECT seq FROM indexed)")
