"""A schema on a PostgreSQL server: how it is opened, locked, migrated and queried.

Statements are written as for SQLite, with `?` for values. All threads of a process share one connection under a lock; a
server uses a pool while that connection is busy. Other processes, on any machine, open their own. A connection lost outside
a transaction is reopened.
"""

import os
import re
import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from taiwa.extras import missing_extra
from taiwa.kernel.errors import ConflictError, CorruptError, InputError, StoreError, TaiwaError
from taiwa.sql import base
from taiwa.sql.base import Clock, Database, DatabaseSpec, Dialect, FaultTable, PostgresUrl, SqlRow, now_us

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

    Sql: TypeAlias = psycopg.Connection[SqlRow]

WAIT = 10
"""Seconds to wait for the server's first answer."""
LOCK_TIMEOUT = "10s"
"""The time to wait for another program that is writing."""
IDLE_TIMEOUT = "10min"
"""The time after which the server ends an idle transaction."""
ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Keep-alive settings of both sides: a machine that vanishes loses its locks within a minute."""
OWNER = 0x74616977
"""The class of the advisory locks that mark running processes; the schema has the sequence `owner`."""
IS_ALIVE = """
SELECT EXISTS(SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = CAST(? AS oid)
    AND objid = CAST(? AS oid) AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
LOCK_OWNER = b"SELECT pg_advisory_lock(CAST($1 AS integer), CAST($2 AS integer))"
RELATION = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|SEQUENCE) (\w+)")
PLACEHOLDER = re.compile(r"\?(\d*)")
READS = ("SELECT", "WITH")
MARK = "taiwa_format"
"""The table that marks a schema as ours and holds its version."""

BUSY = "has no free connection left; try again in a moment"
FIRST = "was changed by another program first; nothing was changed here, try again"
GONE = "lost its connection; check that the server runs and whether the last step was done, and try again"
NO_MEMORY = "has no memory left for this; ask for less, or give the server more"
NOT_TEXT = "does not store text with a NUL character, or text that is not Unicode"
TABLE: FaultTable = {
    "08": (StoreError, GONE),
    "22001": (InputError, "cannot hold a text of this length"),
    "22003": (InputError, "holds integers of 64 bits, and one is too large"),
    "22021": (InputError, NOT_TEXT),
    "22P05": (InputError, NOT_TEXT),
    "23503": (StoreError, base.DELETED_MEANWHILE),
    "23505": (ConflictError, FIRST),
    "25006": (StoreError, "is open for reading only; open it for writing, and not on a standby server"),
    "25P03": (StoreError, "ended a transaction that was idle for minutes; nothing was changed, try again"),
    "3F000": (StoreError, "is no longer there: it was dropped meanwhile"),
    "40": (ConflictError, FIRST),
    "42501": (
        StoreError,
        "cannot be written by this user; let the owner of the database grant it, or choose another database",
    ),
    "42P01": (StoreError, "no longer has its tables: they were dropped meanwhile"),
    "53100": (StoreError, base.FULL),
    "53200": (StoreError, NO_MEMORY),
    "53300": (StoreError, "has too many connections; end some, or raise max_connections"),
    "54": (InputError, "cannot hold that much in one row"),
    "55P03": (StoreError, base.LOCKED),
    "57014": (StoreError, "ended a statement that took too long; see the server's statement_timeout"),
    "57P": (StoreError, GONE),
    "XX001": (CorruptError, "is damaged; restore a backup of the database"),
    "XX002": (CorruptError, "has a damaged index; let the administrator of the server run REINDEX DATABASE"),
}


class PostgresDatabase(Database):
    """An open schema on a server. Safe for use by several threads, and by a child process after a fork."""

    dialect: Dialect = "postgres"
    path: Path | None = None
    connections: int = 1
    _sql: "Sql"
    _pool: "ConnectionPool[Sql] | None"

    def __init__(self, url: PostgresUrl, spec: DatabaseSpec, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self.url = url
        self.spec = spec
        self.readonly = readonly
        self.clock = clock
        self._inherited: list[object] = []
        self._closed = False
        self._owner = 0
        self._begin()

    def __str__(self) -> str:
        return f"{self.spec} on {self.url}"

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            self._sql.close()
            if self._pool is not None:
                self._pool.close()

    def rows(self, statement: str, *values: object) -> list[SqlRow]:
        """Run a statement and return all its rows.

        Raises:
            StoreError: the server refused the statement.
        """
        with self._held():
            cursor = self._execute(statement, values)
            return [] if cursor.description is None else cursor.fetchall()

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return the number of changed rows."""
        with self._held():
            return self._execute(statement, values).rowcount

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its `seq`, or None when `ON CONFLICT DO NOTHING` applied."""
        number: int | None = self.one(f"{statement} RETURNING seq", *values)
        return number

    def copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert many rows into a table, written as `table(column, …)`; `types` are those of the columns."""
        with self._held(), self._ready().cursor() as cursor:
            try:
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)".encode()) as copying:
                    copying.set_types(types)
                    for row in rows:
                        copying.write_row(row)
            except _faults() as error:
                raise self._error(error) from error

    def vacuum(self) -> None:
        """Do nothing: the server frees space by itself (autovacuum)."""

    def owner(self) -> int:
        """Take a number whose lock the server releases with this connection; a reconnection locks the same number again."""
        while not self._owner:
            number = int(self.one("SELECT nextval('owner')"))
            # The locks are those of the database: another schema has a sequence of its own, and one made anew begins at 1.
            self._owner = 0 if self.is_alive(number) else number
        if not self.is_alive(self._owner):
            with self._lock:  # on the connection that is never returned to a pool
                self._ready(shared=True).execute(LOCK_OWNER, [OWNER, self._owner])
        return self._owner

    def is_alive(self, owner: int) -> bool:
        """Report whether that number is locked, on any machine."""
        return owner > 0 and bool(self.one(IS_ALIVE, OWNER, owner))

    def erase_deleted(self) -> bool:
        """Let the server reuse the space of deleted rows; its log and backups are out of reach."""
        tables = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = ?", self.spec.schema)
        self.rows(f"VACUUM {', '.join(name for (name,) in tables)}")
        return False

    def damages(self) -> list[str]:
        """List missing tables, indexes and sequences; the server checks its pages itself."""
        statements = "\n".join(
            each for migration in self.spec.migrations for each in migration.statements(self.dialect)
        )
        select = "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ?"
        own = {name for (name,) in self.rows(select, self.spec.schema)}
        return [
            f"the {kind.lower()} {name} is missing" for kind, name in RELATION.findall(statements) if name not in own
        ]

    def lock(self, *names: str) -> None:
        """Block other transactions that lock the same names, until this one ends."""
        # In one order for all, so that no two transactions wait for each other.
        for name in sorted(set(names)):
            self.rows("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", f"{self.spec.schema}/{name}")

    @contextmanager
    def transaction(self, *, write: bool = True, exclusive: bool = False) -> Generator[None]:
        """Commit on success, roll back on an exception; a nested transaction joins the outer one.

        Without `write`, all reads see one snapshot. Several programs can write at once; each statement sees the commits of
        others, and `lock` serialises changes to the same names. `exclusive` waits until no other transaction writes, and
        blocks new ones.
        """
        with self._held():
            if self._in_transaction():
                yield
                return
            try:
                self._start(write=write, exclusive=exclusive)
                yield
                self.rows("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _start(self, *, write: bool, exclusive: bool) -> None:
        if not write:
            self.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        key = f"hashtextextended('{self.spec.schema}', 0)"
        lock = f"pg_advisory_xact_lock({key})" if exclusive else f"pg_advisory_xact_lock_shared({key})"
        self.rows(f"BEGIN; SELECT {lock}")

    def _roll_back(self) -> None:
        import psycopg

        sql = self._current
        try:
            if self._in_transaction():
                sql.execute(b"ROLLBACK")
        except psycopg.Error:
            sql.close()  # the server rolls back the transaction of a lost client

    def _in_transaction(self) -> bool:
        return not self._current.closed and self._current.info.transaction_status.value != 0

    @property
    def _current(self) -> "Sql":
        """Return the connection of this thread: one borrowed from the pool, or the shared one."""
        return getattr(self._borrowed, "sql", None) or self._sql

    @contextmanager
    def _held(self) -> Generator[None]:
        """Hold a connection for this thread: the shared one, or one of the pool if another thread holds the shared one."""
        self._follow_fork()
        if getattr(self._borrowed, "sql", None) is not None:
            yield
        # One thread at a time needs no second connection; most programs never open the pool.
        elif self._lock.acquire(blocking=self.connections == 1):
            try:
                yield
            finally:
                self._lock.release()
        else:
            self._borrow()
            try:
                yield
            finally:
                self._return()

    def _borrow(self) -> None:
        from psycopg_pool import PoolTimeout

        if self._closed:
            raise StoreError(f"{self} {base.CLOSED}")
        with self._opening:
            if self._pool is None:
                self._pool = self._open_pool()
        try:
            self._borrowed.sql = self._pool.getconn()
        except PoolTimeout:
            raise StoreError(f"{self} {BUSY}") from None

    def _return(self) -> None:
        sql, self._borrowed.sql = self._borrowed.sql, None
        if self._pool is not None and sql is not None:
            self._pool.putconn(sql)

    def _open_pool(self) -> "ConnectionPool[Sql]":
        from psycopg_pool import ConnectionPool

        options = {**self._parameters(), "autocommit": True, "cursor_factory": _driver().RawCursor}
        return cast(
            "ConnectionPool[Sql]",
            ConnectionPool(
                kwargs=options, min_size=0, max_size=self.connections - 1, open=True, configure=self._prepare,
                timeout=WAIT, name="taiwa",
            ),
        )  # fmt: skip

    def _execute(self, statement: str, values: Sequence[object]) -> "psycopg.Cursor[SqlRow]":
        written, sql, inside = _numbered(statement), self._ready(), self._in_transaction()
        faults = _faults()
        try:
            return sql.execute(written, values or None, binary=bool(values))
        except faults as error:
            # A connection may be lost between two statements; repeating a read or a begin is safe.
            if inside or not sql.closed or not statement.lstrip().startswith((*READS, "BEGIN")):
                raise self._error(error) from error
        try:
            return self._ready().execute(written, values or None, binary=bool(values))
        except faults as error:
            raise self._error(error) from error

    def _ready(self, *, shared: bool = False) -> "Sql":
        """Return the connection of this thread, reopened if it was lost."""
        if self._closed:
            raise StoreError(f"{self} {base.CLOSED}")
        if not shared and (borrowed := getattr(self._borrowed, "sql", None)) is not None:
            if borrowed.closed and self._pool is not None:
                self._return()
                self._pool.check()  # whatever ended this connection has ended the others too
                self._borrow()
            return self._current
        if self._sql.closed:
            self._sql = self._open()
        return self._sql

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._opening = threading.Lock()
        self._borrowed = threading.local()
        self._pool = None
        self._pid = os.getpid()
        self._sql = self._open()

    def _follow_fork(self) -> None:
        """Open a new connection in a forked child; the inherited one is kept, not closed."""
        if self._pid != os.getpid() and not self._closed:
            self._inherited += [self._sql, self._pool]
            self._begin()

    def _open(self) -> "Sql":
        psycopg = _driver()
        parameters = self._parameters()
        try:
            sql = psycopg.connect(**parameters, autocommit=True, cursor_factory=psycopg.RawCursor)
        except psycopg.Error as error:
            raise _unreachable(error, self.url) from None
        try:
            self._prepare(cast("Sql", sql))
        except BaseException as error:
            sql.close()
            if isinstance(error, psycopg.Error):
                raise self._error(cast("Exception", error)) from error
            raise
        # Commands exit without closing the database, as with a file; close the connection properly anyway.
        weakref.finalize(self, _close_own, sql, os.getpid())
        return cast("Sql", sql)

    def _parameters(self) -> dict[str, Any]:
        psycopg = _driver()
        defaults: dict[str, Any] = {"connect_timeout": WAIT, "fallback_application_name": "taiwa", **ALIVE}
        try:
            return {**defaults, **psycopg.conninfo.conninfo_to_dict(self.url.url)}
        except psycopg.Error:
            raise InputError(f"the URL {self.url} has a parameter that PostgreSQL does not know") from None

    def _prepare(self, sql: "Sql") -> None:
        _adapt(sql)
        settings = (
            "client_encoding = 'UTF8'",
            f"search_path = {self.spec.schema}",
            # Each statement sees the commits of others; statements that wait for a lock rely on this.
            "default_transaction_isolation = 'read committed'",
            f"lock_timeout = '{LOCK_TIMEOUT}'",
            f"idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}'",
            "client_min_messages = warning",
            "jit = off",  # preparing a statement costs more than executing ours
            *(f"tcp_{name} = {number}" for name, number in ALIVE.items()),
            *self.spec.settings,
        )
        sql.execute("; ".join(f"SET {each}" for each in settings).encode())
        target, where = _Migrating(sql, self.spec, self.url), f"on {self.url}"
        if not self.readonly:
            base.migrate(target, self.spec, where)
            return
        current = base.check_version(target, self.spec, where)
        if not target.read_version():
            raise StoreError(f"{self.spec.name} on {self.url} not found; {self.spec.created_by}")
        if not current:
            raise StoreError(f"{self} has an older format; open it once for writing")
        sql.execute(b"SET default_transaction_read_only = on")

    def _error(self, error: Exception) -> TaiwaError:
        """Map an exception of the driver; neither a password nor a value of a statement appears in the message."""
        if (invalid := base.invalid_value(error, self.spec)) is not None:
            return invalid
        state = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            unknown = StoreError(f"{self} refused a statement ({type(error).__name__}, {state}); see the server's log")
            return base.find_fault(TABLE, (state, state[:3], state[:2]), str(self), self.spec) or unknown
        if "NUL" in str(error):
            return InputError(f"{self} {NOT_TEXT}")
        return StoreError(f"{self} {base.CLOSED if 'closed' in str(error) else GONE}")


class _Migrating:
    """A connection for `migrate`: the version is in a table of the schema."""

    dialect: Dialect = "postgres"

    def __init__(self, sql: "Sql", spec: DatabaseSpec, url: PostgresUrl) -> None:
        self._sql = sql
        self._spec = spec
        self._url = url

    def read_version(self) -> int:
        schema = self._spec.schema
        select = b"SELECT tablename FROM pg_tables WHERE schemaname = $1"
        tables = {name for (name,) in self._sql.execute(select, [schema])}
        if MARK in tables:
            return int(self._sql.execute(f"SELECT version FROM {schema}.{MARK}".encode()).fetchall()[0][0])  # noqa: S608
        if tables:
            raise StoreError(f"the schema {schema} on {self._url} belongs to another program; name another database")
        return 0

    def write_version(self, version: int) -> None:
        self.execute(f"UPDATE {self._spec.schema}.{MARK} SET version = {version}")  # noqa: S608  (our own names)

    def execute(self, statement: str) -> object:
        return self._sql.execute(statement.encode())

    @contextmanager
    def alone(self) -> Generator[None]:
        schema = self._spec.schema
        with self._sql.transaction():
            self.execute(f"SELECT pg_advisory_xact_lock(hashtextextended('{schema} migrates', 0))")
            if not self.read_version():
                if self._sql.execute(b"SHOW server_encoding").fetchall()[0][0] != "UTF8":
                    raise StoreError(
                        f"the database {self._url} does not store Unicode; create one with ENCODING 'UTF8'"
                    )
                self.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                self.execute(f"CREATE TABLE {schema}.{MARK}(version bigint NOT NULL)")
                self.execute(f"INSERT INTO {schema}.{MARK} VALUES(0)")
            yield


REFUSALS = (
    ("password|authentication", "rejected the password", "give it in the URL, in PGPASSWORD or in ~/.pgpass"),
    ("database .*does not exist", "does not have this database", "create it: createdb NAME"),
    ("role .*does not exist", "does not know this user", "create it: createuser NAME"),
    ("too many|remaining connection slots", "has too many connections", "end some, or raise max_connections"),
    ("starting up|shutting down", "is starting or shutting down", "try again in a moment"),
    ("ssl|no pg_hba.conf entry", "rejected this connection", "see sslmode in the URL, and pg_hba.conf on the server"),
    ("", "cannot be reached", "check that it runs, and the host and port"),
)
"""The driver's text, its meaning, and what to do."""


def _unreachable(error: Exception, url: PostgresUrl) -> StoreError:
    """Explain in one line why a connection failed. The driver gives only text, in the server's language."""
    reason = " ".join(str(error).split()).rpartition("FATAL:")[2].strip().lower()
    why, remedy = next(rest for pattern, *rest in REFUSALS if re.search(pattern, reason))
    return StoreError(f"the server {url} {why}; {remedy}")


def _close_own(sql: "Sql", pid: int) -> None:
    if pid == os.getpid():
        sql.close()


@lru_cache(maxsize=512)
def _numbered(statement: str) -> bytes:
    """Write `?` and `?1` as `$1`. No literal of our statements contains a question mark."""
    places = iter(range(1, statement.count("?") + 1))
    return PLACEHOLDER.sub(lambda match: f"${match[1] or next(places)}", statement).encode()


def _driver() -> Any:  # noqa: ANN401  (the module, which need not be there)
    try:
        import psycopg
    except ImportError:
        raise missing_extra("a PostgreSQL store", "postgres") from None
    return psycopg


def _faults() -> tuple[type[Exception], ...]:
    return (_driver().Error, UnicodeEncodeError, OverflowError)


def _adapt(sql: "Sql") -> None:
    """Send every integer as 64 bits, true and false as 1 and 0, because the tables contain nothing else, as in SQLite."""
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

    class AsNumber(Int8Dumper):
        def dump(self, obj: Any) -> bytes:  # noqa: ANN401  (the driver's signature)
            return str(int(obj)).encode()

    for dumper in (Int8Dumper, Int8BinaryDumper):
        sql.adapters.register_dumper(int, dumper)
    sql.adapters.register_dumper(bool, AsNumber)
