"""One SQLite file: how it is opened, locked, and spoken to.

Write-ahead log with `synchronous=NORMAL`: what was committed survives the death of the process (`kill -9`); after a power
cut the newest commits may be missing, and the file is whole. One connection is shared by all threads under a lock, since
SQLite has one writer anyway; other processes open their own.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from taiwa.kernel.errors import InputError, StoreError
from taiwa.sqlite.database import Clock, Database, Row
from taiwa.sqlite.faults import translate
from taiwa.sqlite.kind import Kind, is_current, migrate

__all__ = ["Connection", "now_us"]


MEMORY = ":memory:"
WAIT = 10.0
"""Seconds to wait for another process that is writing."""
TROUBLE = (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, OverflowError)


def now_us() -> int:
    """Read the clock."""
    return time.time_ns() // 1000


class Connection(Database):
    """An open file of some kind. Safe for use by several threads, and by a child process after a fork."""

    def __init__(self, path: str | Path, kind: Kind, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self.kind = kind
        self.path = None if str(path) == MEMORY else Path(path).expanduser()
        self.readonly = readonly
        self.clock = clock
        self._left_behind: list[sqlite3.Connection] = []
        self._begin()

    def close(self) -> None:
        """Close the file; the write-ahead log is emptied by whoever closes last."""
        with self._lock:
            self._sql.close()

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Run a statement and return all its rows.

        Raises:
            StoreError: SQLite refused; `translate` says how.
        """
        self._follow_fork()
        with self._lock:
            try:
                return self._sql.execute(statement, values).fetchall()
            except TROUBLE as error:
                raise translate(error, self.path, self.kind) from error

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return how many it changed."""
        self._follow_fork()
        with self._lock:
            try:
                return self._sql.execute(statement, values).rowcount
            except TROUBLE as error:
                raise translate(error, self.path, self.kind) from error

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its number, None when `ON CONFLICT DO NOTHING` did nothing."""
        self._follow_fork()
        with self._lock:
            try:
                cursor = self._sql.execute(statement, values)
            except TROUBLE as error:
                raise translate(error, self.path, self.kind) from error
            return cursor.lastrowid if cursor.rowcount > 0 else None

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; not within a transaction."""
        self._follow_fork()
        with self._lock:
            try:
                # `execute` would take one step, which frees one page.
                self._sql.executescript("PRAGMA incremental_vacuum")
            except TROUBLE as error:
                raise translate(error, self.path, self.kind) from error

    @contextmanager
    def transaction(self, *, write: bool = True, alone: bool = False) -> Generator[None]:
        """Do all or nothing; one within another belongs to the outer one. Without `write`: one unchanging view.

        Whoever writes is `alone` anyway; on a server, which is spoken to in the same way, that must be asked for.
        """
        self._follow_fork()
        with self._lock:
            if self._sql.in_transaction:
                yield
                return
            try:
                # Within the `try`: an interrupt right behind it must not leave the transaction open for all that follows.
                self.run("BEGIN IMMEDIATE" if write or alone else "BEGIN")
                yield
                self.run("COMMIT")
            except BaseException:
                # SQLite ends a transaction by itself when the disk is full.
                if self._sql.in_transaction:
                    self.run("ROLLBACK")
                raise

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        try:
            self._sql = self._open()
        except (*TROUBLE, OSError) as error:
            raise translate(error, self.path, self.kind) from error

    def _open(self) -> sqlite3.Connection:
        target = self._target()
        sql = sqlite3.connect(target, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT)
        try:
            sql.execute("PRAGMA foreign_keys = ON")
            sql.execute("PRAGMA synchronous = NORMAL")
            sql.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten with zeros
            sql.execute("PRAGMA temp_store = MEMORY")
            sql.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; at the usual 1000, a turn in 50 waits for the disk
            current = is_current(sql, self.kind)  # before anything is changed: the file may be somebody else's
            if not self.readonly:
                _log_ahead(sql)
                migrate(sql, self.kind)
            elif not current:
                raise StoreError(f"{self.kind} {self.path} is of an older version: open it once for writing")
        except BaseException:
            sql.close()
            raise
        return sql

    def _target(self) -> str:
        if self.path is None:
            return "file::memory:"
        if "\0" in str(self.path):
            raise InputError(f"the path of {self.kind} holds a character that no path can have")
        uri = self.path.absolute().as_uri()
        there = self.path.exists()
        if self.readonly:
            if not there:
                raise StoreError(f"there is no {self.kind.name} {self.path}: {self.kind.maker}")
            return f"{uri}?mode=ro{self._frozen()}"
        if not there:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        return f"{uri}?mode=rw"

    def _frozen(self) -> str:
        """In a folder that cannot be written SQLite cannot keep its log; with no log there, nobody is writing."""
        assert self.path is not None
        log = self.path.with_name(self.path.name + "-wal")
        return "" if os.access(self.path.parent, os.W_OK) or log.exists() else "&immutable=1"

    def _follow_fork(self) -> None:
        """A connection must not be used in a forked child; closing it there could hurt the parent, so it is kept."""
        if self._pid != os.getpid() and self.path is not None:
            self._left_behind.append(self._sql)
            self._begin()


def _log_ahead(sql: sqlite3.Connection) -> None:
    """Switch a new file to the write-ahead log; where two processes do this at once, SQLite makes one fail at once."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            sql.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only a new file takes this
            sql.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
