"""One SQLite file: how it is opened, locked, migrated and queried.

Write-ahead log with `synchronous=NORMAL`: committed transactions survive the death of the process (`kill -9`); after a power
cut the newest ones may be missing, and the file is intact. One connection is shared by all threads under a lock, since
SQLite has one writer anyway; other processes open their own.
"""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from taiwa.kernel.errors import CorruptError, InputError, StoreError, TaiwaError
from taiwa.sql.base import (
    CLOSED,
    DELETED_MEANWHILE,
    FULL,
    LOCKED,
    Clock,
    Database,
    DatabaseSpec,
    Dialect,
    FaultTable,
    SqlRow,
    check_version,
    find_fault,
    invalid_value,
    migrate,
    now_us,
    unreleased,
)

MEMORY = ":memory:"
T = TypeVar("T")
WAIT = 10.0
"""Seconds to wait for another process that is writing."""
FAULTS = (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, OverflowError)

NOT_WRITABLE = "cannot be written; correct the permissions of the file and its folder, or choose another {name}"
NOT_READABLE = "cannot be opened; check that its folder exists and is readable"
TABLE: FaultTable = {
    sqlite3.SQLITE_AUTH: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_BUSY: (StoreError, LOCKED),
    sqlite3.SQLITE_CANTOPEN: (StoreError, NOT_READABLE),
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: (StoreError, DELETED_MEANWHILE),
    sqlite3.SQLITE_CORRUPT: (CorruptError, "is damaged; {repair}"),
    sqlite3.SQLITE_FULL: (StoreError, FULL),
    sqlite3.SQLITE_IOERR: (StoreError, "could not be read or written (disk error); check the disk"),
    sqlite3.SQLITE_LOCKED: (StoreError, LOCKED),
    sqlite3.SQLITE_NOMEM: (StoreError, "does not fit into the free memory"),
    sqlite3.SQLITE_NOTADB: (CorruptError, "is not a {name}; name another file"),
    sqlite3.SQLITE_PERM: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_PROTOCOL: (StoreError, LOCKED),
    sqlite3.SQLITE_READONLY: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_TOOBIG: (StoreError, "cannot hold a text of a billion bytes"),
}
FILES: FaultTable = {
    errno.EACCES: (StoreError, NOT_WRITABLE),
    errno.EDQUOT: (StoreError, FULL),
    errno.ENOSPC: (StoreError, FULL),
    errno.EPERM: (StoreError, NOT_WRITABLE),
    errno.EROFS: (StoreError, NOT_WRITABLE),
}


class SqliteDatabase(Database):
    """An open SQLite file. Safe for use by several threads, and by a child process after a fork."""

    def __init__(self, path: str | Path, spec: DatabaseSpec, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self.spec = spec
        self.path = None if str(path) == MEMORY else Path(path).expanduser()
        self.readonly = readonly
        self.clock = clock
        self._inherited: list[sqlite3.Connection] = []
        self._begin()

    def close(self) -> None:
        """Close the file; the last process that closes it empties the write-ahead log."""
        with self._lock:
            self._sql.close()

    def rows(self, statement: str, *values: object) -> list[SqlRow]:
        """Run a statement and return all its rows.

        Raises:
            StoreError: SQLite refused the statement.
        """
        return self._on_cursor(statement, values, lambda cursor: cursor.fetchall())

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return the number of changed rows."""
        return self._on_cursor(statement, values, lambda cursor: cursor.rowcount)

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its `seq`, or None when `ON CONFLICT DO NOTHING` applied."""
        return self._on_cursor(statement, values, lambda cursor: cursor.lastrowid if cursor.rowcount > 0 else None)

    def vacuum(self) -> None:
        """Return the space of deleted rows to the disk; not allowed within a transaction."""
        self._follow_fork()
        with self._lock:
            try:
                # `execute` would take one step, which frees one page.
                self._sql.executescript("PRAGMA incremental_vacuum")
            except FAULTS as error:
                raise self._error(error) from error

    @contextmanager
    def transaction(self, *, write: bool = True, exclusive: bool = False) -> Generator[None]:
        """Commit on success, roll back on an exception; a nested transaction joins the outer one.

        Without `write`, all reads see one snapshot. A writing transaction is exclusive anyway.
        """
        self._follow_fork()
        with self._lock:
            if self._sql.in_transaction:
                yield
                return
            try:
                # Within the `try`: an interrupt right behind it must not leave the transaction open for later calls.
                self.run("BEGIN IMMEDIATE" if write or exclusive else "BEGIN")
                yield
                self.run("COMMIT")
            except BaseException:
                # SQLite ends a transaction by itself when the disk is full.
                if self._sql.in_transaction:
                    self.run("ROLLBACK")
                raise

    def _on_cursor(self, statement: str, values: tuple[object, ...], read: Callable[[sqlite3.Cursor], T]) -> T:
        self._follow_fork()
        with self._lock:
            try:
                return read(self._sql.execute(statement, values))
            except FAULTS as error:
                raise self._error(error) from error

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        try:
            self._sql = self._open()
        except (*FAULTS, OSError) as error:
            raise self._error(error) from error

    def _open(self) -> sqlite3.Connection:
        target = self._target()
        deadline = time.monotonic() + WAIT
        while True:
            sql = sqlite3.connect(target, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT)
            try:
                self._prepare(sql)
            except sqlite3.OperationalError as error:
                sql.close()
                # Where two processes switch a new file to the write-ahead log, SQLite makes one of them fail at once.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except BaseException:
                sql.close()
                raise
            else:
                return sql

    def _prepare(self, sql: sqlite3.Connection) -> None:
        sql.execute("PRAGMA foreign_keys = ON")
        sql.execute("PRAGMA synchronous = NORMAL")
        sql.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten with zeros
        sql.execute("PRAGMA temp_store = MEMORY")
        sql.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; at the usual 1000, a turn in 50 waits for the disk
        target, where = _Migrating(sql, self.spec, self.path), self.path or "in memory"
        current = check_version(target, self.spec, where)  # before anything is changed: the file may not be ours
        if not self.readonly:
            sql.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only a new file takes this
            sql.execute("PRAGMA journal_mode = WAL").fetchone()
            migrate(target, self.spec, where)
        elif not current:
            raise StoreError(f"{self.spec} {self.path} has an older format; open it once for writing")

    def _target(self) -> str:
        if self.path is None:
            return "file::memory:"
        if "\0" in str(self.path):
            raise InputError(f"the path of {self.spec} contains a NUL character")
        uri = self.path.absolute().as_uri()
        if self.readonly:
            if not self.path.exists():
                raise StoreError(f"{self.spec.name} {self.path} not found; {self.spec.created_by}")
            # In a folder that cannot be written SQLite cannot keep its log; without a log there, no process is writing.
            log = self.path.with_name(self.path.name + "-wal")
            frozen = not os.access(self.path.parent, os.W_OK) and not log.exists()
            return f"{uri}?mode=ro{'&immutable=1' if frozen else ''}"
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        return f"{uri}?mode=rw"

    def _follow_fork(self) -> None:
        """Open a connection of its own in a forked child; the inherited one is kept, since closing it could hurt the parent."""
        if self._pid != os.getpid() and self.path is not None:
            self._inherited.append(self._sql)
            self._begin()

    def _error(self, error: Exception) -> TaiwaError:
        """Map an exception of `sqlite3` or the system; values of a statement never appear in the message."""
        if (invalid := invalid_value(error, self.spec)) is not None:
            return invalid
        file = f"{self.spec} {self.path}" if self.path is not None else f"{self.spec} in memory"
        if isinstance(error, OSError):
            return find_fault(FILES, [error.errno], file, self.spec) or StoreError(f"{file} {NOT_READABLE}")
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            return StoreError(f"{file} {CLOSED}")
        code: int = getattr(error, "sqlite_errorcode", -1)
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        unknown = StoreError(f"{file} refused a statement ({name}); {self.spec.repair}")
        return find_fault(TABLE, [code, code & 0xFF], file, self.spec) or unknown


class _Migrating:
    """A connection as `migrate` needs it: the version is `user_version`, and `application_id` marks the file."""

    dialect: Dialect = "sqlite"

    def __init__(self, sql: sqlite3.Connection, spec: DatabaseSpec, path: Path | None) -> None:
        self._sql = sql
        self._spec = spec
        self._path = path

    def read_version(self) -> int:
        # One snapshot: another process that makes the tables sets the mark and the version at once.
        own = not self._sql.in_transaction
        if own:
            self._sql.execute("BEGIN")
        try:
            mark = self._sql.execute("PRAGMA application_id").fetchone()[0]
            version = int(self._sql.execute("PRAGMA user_version").fetchone()[0])
            filled = self._sql.execute("SELECT 1 FROM sqlite_master").fetchone()
        finally:
            if own and self._sql.in_transaction:
                self._sql.execute("COMMIT")
        if mark == self._spec.unreleased_id:
            raise unreleased(self._path)
        if mark != self._spec.application_id and (mark or version or filled):
            raise StoreError(
                f"the SQLite file {self._path} belongs to another program; name another file for {self._spec}"
            )
        return version

    def write_version(self, version: int) -> None:
        self._sql.execute(f"PRAGMA application_id = {self._spec.application_id}")
        self._sql.execute(f"PRAGMA user_version = {version}")

    def execute(self, statement: str) -> object:
        return self._sql.execute(statement)

    @contextmanager
    def alone(self) -> Generator[None]:
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise
