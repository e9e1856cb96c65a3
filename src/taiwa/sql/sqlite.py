"""One SQLite file: how it is opened, locked, migrated and queried.

Write-ahead log with `synchronous=NORMAL`: committed transactions survive the death of the process (`kill -9`); after a power
failure the newest ones may be missing, but the file is intact. One connection is shared by all threads under a lock, since
SQLite has one writer anyway; other processes open their own.
"""

import errno
import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path

from taiwa.extras import require_posix
from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import CorruptError, InputError, StoreError, TaiwaError
from taiwa.sql import base
from taiwa.sql.base import Clock, Database, DatabaseSpec, Dialect, FaultTable, SqlRow, now_us

if sys.platform != "win32":
    import fcntl

MEMORY = ":memory:"
_forks: list[None] = []
"""One entry for each fork that led to this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forks.append(None))
OWNERS = threading.Lock()
WAIT = 10.0
"""Seconds to wait for another process that is writing."""
SYNCHRONOUS = "NORMAL"
"""With a write-ahead log only a loss of power can undo the last commits, and no file is damaged; FULL waits for the disk each time."""
CHECKPOINT_PAGES = 4_000
"""Pages of the log at which a commit writes them into the file; at the usual 1000, a turn in 50 waits for the disk."""
REFUSED_NOW = 512
"""Every this many calls, `transaction_now` refuses one, so that a thread checkpoints the log."""
MOST_WAIT_NOW = 0.002
"""Seconds that `transaction_now` waits for a thread, which holds the lock for the time of a statement or two."""
REST_NOW = 0.1
"""Seconds for which it does not ask again after a thread kept the lock for longer."""
MARK = """
SELECT application_id, user_version, EXISTS(SELECT 1 FROM sqlite_master)
FROM pragma_application_id, pragma_user_version"""
"""One statement, and so one snapshot: another process that creates the tables sets the mark and the version together."""
SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
FAULTS = (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError)

NOT_WRITABLE = "cannot be written; correct the permissions of the file and its folder, or choose another {name}"
NOT_READABLE = "cannot be opened; check that its folder exists and is readable"
TABLE: FaultTable = {
    sqlite3.SQLITE_AUTH: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_BUSY: (StoreError, base.LOCKED),
    sqlite3.SQLITE_CANTOPEN: (StoreError, NOT_READABLE),
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: (StoreError, base.DELETED_MEANWHILE),
    sqlite3.SQLITE_CORRUPT: (CorruptError, "is damaged; {repair}"),
    sqlite3.SQLITE_FULL: (StoreError, base.FULL),
    sqlite3.SQLITE_IOERR: (StoreError, "could not be read or written (disk error); check the disk"),
    sqlite3.SQLITE_LOCKED: (StoreError, base.LOCKED),
    sqlite3.SQLITE_NOMEM: (StoreError, "does not fit into the free memory"),
    sqlite3.SQLITE_NOTADB: (CorruptError, "is not a {name}; name another file"),
    sqlite3.SQLITE_PERM: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_PROTOCOL: (StoreError, base.LOCKED),
    sqlite3.SQLITE_READONLY: (StoreError, NOT_WRITABLE),
    sqlite3.SQLITE_TOOBIG: (StoreError, "cannot hold a text of a billion bytes"),
}
FILES: FaultTable = {
    errno.EACCES: (StoreError, NOT_WRITABLE),
    errno.EDQUOT: (StoreError, base.FULL),
    errno.ENOSPC: (StoreError, base.FULL),
    errno.EPERM: (StoreError, NOT_WRITABLE),
    errno.EROFS: (StoreError, NOT_WRITABLE),
}


class SqliteDatabase(Database):
    """An open SQLite file. Safe for use by several threads, and by a child process after a fork."""

    dialect: Dialect = "sqlite"
    connections: int = 1
    _sql: sqlite3.Connection
    _is_hasty: bool

    def __init__(self, path: str | Path, spec: DatabaseSpec, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self.spec = spec
        self.path = None if str(path) == MEMORY else Path(path).expanduser()
        self.readonly = readonly
        self.clock = clock
        self._inherited: list[sqlite3.Connection] = []
        self._is_now, self._asked_now, self._busy_until, self._changes_before = False, 0, 0.0, 0
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
        return self._on_cursor(statement, values)[0]

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return the number of changed rows."""
        return self._on_cursor(statement, values)[1].rowcount

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its `seq`, or None when `ON CONFLICT DO NOTHING` applied."""
        cursor = self._on_cursor(statement, values)[1]
        return cursor.lastrowid if cursor.rowcount > 0 else None

    def lock(self, *names: str) -> None:
        """Do nothing: a writing transaction is exclusive anyway."""

    def owner(self) -> int:
        """Return the number of this process, which is locked until it ends."""
        with OWNERS:
            return 1 if self.path is None else self._owner_number(self.path).get()

    def is_alive(self, owner: int) -> bool:
        """Report whether the process of a number still runs."""
        with OWNERS:
            return owner == 1 if self.path is None else owner > 0 and self._owner_number(self.path).is_locked(owner)

    def _owner_number(self, path: Path) -> "_OwnerNumber":
        return _owner_number(path.absolute(), os.getpid())

    def erase_deleted(self) -> bool:
        """Empty the write-ahead log, unless another program is reading it."""
        return not self.one("PRAGMA wal_checkpoint(TRUNCATE)")

    def damages(self) -> list[str]:
        """Check the tables and indexes against those of a new file, and the pages, and describe what is damaged."""
        pages = [str(line) for (line,) in self.rows("PRAGMA integrity_check") if line != "ok"]
        # A fresh file, and not a list of names: each migration would have to keep such a list right.
        fresh = SqliteDatabase(MEMORY, self.spec)
        new, own = ({(kind, name): sql for kind, name, sql in db.rows(SCHEMA)} for db in (fresh, self))
        changed = [f"the {kind} {name} is missing" for kind, name in new.keys() - own.keys()]
        changed += [f"the {kind} {name} is not ours" for kind, name in own.keys() - new.keys()]
        changed += [
            f"the {kind} {name} was changed"
            for kind, name in new.keys() & own.keys()
            if new[kind, name] != own[kind, name]
        ]
        return [*sorted(changed), *pages]

    def vacuum(self) -> None:
        """Return the space of deleted rows to the disk; not allowed within a transaction."""
        self._follow_fork()
        with self._lock:
            try:
                # `execute` would take one step, which frees one page.
                self._sql.executescript("PRAGMA incremental_vacuum")
            except FAULTS as error:
                raise self._error(error) from error

    def transaction(self, *, write: bool = True, exclusive: bool = False) -> AbstractContextManager[None]:
        """Commit on success, roll back on an exception; a nested transaction joins the outer one.

        Without `write`, all reads see one snapshot. A writing transaction is exclusive anyway.
        """
        joins = (
            self._within == threading.get_ident()
            and (self.path is None or self._fork == len(_forks))
            and self._sql.in_transaction
        )
        return nullcontext() if joins else self._transaction("BEGIN IMMEDIATE" if write or exclusive else "BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Generator[None]:
        self._follow_fork()
        with self._lock:
            self._within = threading.get_ident()
            try:
                # `transaction_now` commits whatever happens, so a part that fails is undone by itself.
                if self._is_now:
                    with self._savepoint():
                        yield
                    return
                # IMMEDIATE: a transaction that began by reading fails at its first write if another one wrote meanwhile.
                # Within the `try`: an interrupt right after it must not leave the transaction open for later calls.
                self.run(begin)
                yield
                self.run("COMMIT")
            except BaseException:
                # SQLite itself ends a transaction if the disk is full.
                if self._sql.in_transaction and not self._in_now:
                    self.run("ROLLBACK")
                raise
            finally:
                self._within = 0

    @contextmanager
    def transaction_now(self) -> Generator[bool]:
        """Begin a writing transaction if no other thread or program writes, and return whether it was begun.

        It is committed at its end, even after an exception, without the changes of a transaction within it that failed. It does
        not wait for the disk: the log is written back into the file by other transactions, and one in `REFUSED_NOW` is refused
        so that there are some.
        """
        self._follow_fork()
        if not self._begin_now():
            yield False
            return
        self._is_now = self._in_now = True
        try:
            yield True
        finally:
            self._is_now = False
            try:
                if self._sql.in_transaction:  # SQLite itself ends a transaction if the disk is full
                    self.run("COMMIT")
            finally:
                if self._sql.in_transaction:
                    with suppress(*FAULTS):
                        self._sql.execute("ROLLBACK")
                self._in_now = False
                self._lock.release()

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        """Undo the changes of a block that fails; transactions within it join it."""
        is_first = self._sql.total_changes == self._changes_before  # then all changes are those of the block
        if not is_first:
            self.run("SAVEPOINT part")
        self._is_now = False
        try:
            yield
        except BaseException:
            with suppress(*FAULTS):  # SQLite itself ends a transaction if the disk is full
                self._sql.execute("ROLLBACK" if is_first else "ROLLBACK TO part")
                if is_first:
                    self._sql.execute("BEGIN IMMEDIATE")
            raise
        finally:
            self._is_now = True
            if self._sql.in_transaction and not is_first:
                self.run("RELEASE part")

    def _begin_now(self) -> bool:
        """Take the lock and begin a transaction, unless another thread or program is writing; return whether it was begun."""
        self._asked_now += 1
        now = time.monotonic()
        if not self._asked_now % REFUSED_NOW or now < self._busy_until:
            return False
        if not self._lock.acquire(timeout=MOST_WAIT_NOW):
            self._busy_until = now + REST_NOW
            return False
        try:
            self._set_haste(is_hasty=True)
            self._sql.execute("BEGIN IMMEDIATE")
        except FAULTS:
            self._lock.release()
            return False
        self._changes_before = self._sql.total_changes
        return True

    def _set_haste(self, *, is_hasty: bool) -> None:
        """Wait for nothing, which an event loop cannot: not for another program that writes, and not for the disk, as a checkpoint
        does. This stays so until a statement outside of `transaction_now`.
        """
        if is_hasty != self._is_hasty:
            self._sql.execute(f"PRAGMA busy_timeout = {0 if is_hasty else round(WAIT * 1000)}")
            self._sql.execute(f"PRAGMA wal_autocheckpoint = {0 if is_hasty else CHECKPOINT_PAGES}")
            self._is_hasty = is_hasty

    def _on_cursor(self, statement: str, values: tuple[object, ...]) -> tuple[list[SqlRow], sqlite3.Cursor]:
        """Run a statement; return its rows, and the cursor with what it changed."""
        if self._fork != len(_forks):
            self._follow_fork()
        with self._lock:
            try:
                if self._is_hasty and not self._in_now:
                    self._set_haste(is_hasty=False)
                cursor = self._sql.execute(statement, values)
                return cursor.fetchall(), cursor
            except FAULTS as error:
                raise self._error(error) from error

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._fork, self._within = len(_forks), 0
        self._in_now = self._is_hasty = False
        try:
            self._sql = self._open()
        except (*FAULTS, OSError) as error:
            raise self._error(error) from error

    def _open(self) -> sqlite3.Connection:
        target = self._target()
        if not self.readonly or self.path is None:
            return self._connect(target, writable=True)
        log = self.path.with_name(f"{self.path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        with suppress(sqlite3.OperationalError):
            return self._connect(target)
        # On a read-only or full disk SQLite cannot lock the file. Without a log there is no writer.
        if not has_log:
            return self._connect(f"{target}&immutable=1")
        return self._connect(self._copy(), writable=True)

    def _connect(self, target: str, *, writable: bool = False) -> sqlite3.Connection:
        deadline = time.monotonic() + WAIT
        while True:
            sql = sqlite3.connect(target, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT)
            try:
                if self._prepare(sql, writable=writable):
                    return sql
                sql.close()
                return self._connect(self._copy(), writable=True)  # an older version: migrate a copy
            except sqlite3.OperationalError as error:
                sql.close()
                # If two processes switch a new file to the write-ahead log, SQLite makes one of them fail immediately.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except BaseException:
                sql.close()
                raise

    def _copy(self) -> str:
        """Copy the file with its log to a temporary folder, where it can be recovered or migrated, and return its target."""
        import shutil
        from tempfile import mkdtemp

        assert self.path is not None
        folder = Path(mkdtemp(prefix="taiwa-"))
        # Commands end without closing the database.
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for suffix in ("", "-wal"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                shutil.copyfile(source, folder / f"copy{suffix}")
        return f"{(folder / 'copy').as_uri()}?mode=rw"

    def _prepare(self, sql: sqlite3.Connection, *, writable: bool) -> bool:
        """Set up a connection, and return whether its tables have the newest version."""
        sql.execute("PRAGMA foreign_keys = ON")
        sql.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        sql.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten with zeros
        sql.execute("PRAGMA temp_store = MEMORY")
        sql.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        target, where = _Migrating(sql, self.spec, self.path), self.path or "in memory"
        current = base.check_version(target, self.spec, where)  # before any change: the file may be another program's
        size = 0 if current or self.path is None else self.path.stat().st_size
        # SQLite reads a truncated file until it needs a missing page, perhaps after writing to it.
        if size % sql.execute("PRAGMA page_size").fetchone()[0]:
            raise CorruptError(f"{self.spec} {self.path} is damaged: its end is missing; {self.spec.repair}")
        if writable:
            if not current:
                sql.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only takes effect in a new file
            sql.execute("PRAGMA journal_mode = WAL").fetchone()
            base.migrate(target, self.spec, where)
        return current or writable

    def _target(self) -> str:
        if self.path is None:
            return "file::memory:"
        if "\0" in str(self.path):
            raise InputError(f"the path of {self.spec} contains a NUL character")
        if path_kind(self.path) == "other":  # SQLite would wait for it, or read it without end
            raise StoreError(f"{self.path} is not a regular file; name the file of {self.spec}")
        if self.readonly:
            if not self.path.exists():
                raise StoreError(f"{self.spec.name} {self.path} not found; {self.spec.created_by}")
        elif not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        return f"{self.path.absolute().as_uri()}?mode={'ro' if self.readonly else 'rw'}"

    def _follow_fork(self) -> None:
        """Open a new connection in a forked child; the inherited one is kept, since closing it could harm the parent."""
        if self._fork != len(_forks) and self.path is not None:
            self._inherited.append(self._sql)
            self._begin()

    def _error(self, error: Exception) -> TaiwaError:
        """Map an exception of `sqlite3` or the system; values of a statement never appear in the message."""
        if (invalid := base.invalid_value(error, self.spec)) is not None:
            return invalid
        file = f"{self.spec} {self.path}" if self.path is not None else f"{self.spec} in memory"
        if isinstance(error, OSError):
            return base.find_fault(FILES, [error.errno], file, self.spec) or StoreError(f"{file} {NOT_READABLE}")
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            return StoreError(f"{file} {base.CLOSED}")
        if isinstance(error, UnicodeDecodeError) or "Could not decode" in str(error):
            return CorruptError(f"{file} is damaged; {self.spec.repair}")
        code: int = getattr(error, "sqlite_errorcode", -1)
        if (
            code & 0xFF == sqlite3.SQLITE_CANTOPEN
            and self.path is not None
            and self.path.exists()
            and not self.readonly
        ):
            # On a read-only file system the file itself can be opened, but files next to it cannot be created.
            code = code if os.access(self.path, os.W_OK) else sqlite3.SQLITE_READONLY
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        unknown = StoreError(f"{file} refused a statement ({name}); {self.spec.repair}")
        return base.find_fault(TABLE, [code, code & 0xFF], file, self.spec) or unknown


class _Migrating:
    """A connection for `migrate`: the version is `user_version`, and `application_id` marks the file."""

    dialect: Dialect = "sqlite"
    connections: int = 1

    def __init__(self, sql: sqlite3.Connection, spec: DatabaseSpec, path: Path | None) -> None:
        self._sql = sql
        self._spec = spec
        self._path = path

    def read_version(self) -> int:
        mark, version, filled = self._sql.execute(MARK).fetchone()
        if mark != self._spec.application_id and (mark or version or filled):
            raise StoreError(
                f"the SQLite file {self._path} belongs to another program; name another file for {self._spec}"
            )
        return int(version)

    def write_version(self, version: int) -> None:
        self._sql.execute(f"PRAGMA application_id = {self._spec.application_id}")
        self._sql.execute(f"PRAGMA user_version = {version}")

    def execute(self, statement: str) -> object:
        return self._sql.execute(statement)

    @contextmanager
    def alone(self) -> Generator[None]:
        self._sql.execute("BEGIN IMMEDIATE")
        with self._sql:
            yield


class _OwnerNumber:
    """The number of this process: the offset of a byte that it locks in a file next to the database.

    The system releases the lock when the process ends, in any container, and also when the process closes the file;
    therefore the file is opened once and never closed.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(f"{database.name}-owners")
        self._file: int | None = None
        self._number = 0

    def get(self) -> int:
        if not self._number:
            require_posix("a store or an index in a file")
            mode = self._database.stat().st_mode & 0o666  # as SQLite does with its own files next to the database
            file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode)
            with suppress(PermissionError):  # it belongs to another account, which has already done so
                os.fchmod(file, mode)
            # Drawn, since processes in containers share ids; shifted, since an offset has 63 bits and one is added.
            number = 1 + (int.from_bytes(os.urandom(8)) >> 2)
            fcntl.lockf(file, fcntl.LOCK_EX, 1, number)
            self._number = number
        return self._number

    def is_locked(self, number: int) -> bool:
        if number == self._number:
            return True
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            # The lock is only tried, and given back: a dead process does not hold it.
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
        except FileNotFoundError:
            return False
        except (BlockingIOError, PermissionError):
            return True
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
        return False


@cache
def _owner_number(path: Path, pid: int) -> _OwnerNumber:  # noqa: ARG001  (a forked process has its own)
    return _OwnerNumber(path)
