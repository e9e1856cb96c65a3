"""A database on a PostgreSQL server: how it is opened, locked, and spoken to.

Statements are written as for SQLite, with `?` for values. One connection is shared by all threads of a process under a lock;
other processes, on any machine, open their own. One that was lost while nothing was under way is opened anew.
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

from taiwa.kernel.errors import ConfigError, InputError, StoreError
from taiwa.postgres.address import Server
from taiwa.postgres.faults import translate, unreachable
from taiwa.postgres.kind import Kind, migrate, version
from taiwa.sqlite import Clock, Database, Row, now_us

if TYPE_CHECKING:
    import psycopg

    Sql: TypeAlias = psycopg.Connection[Row]

__all__ = ["Connection"]

WAIT = 10
"""Seconds to wait for the server to answer at first."""
LOCKED = "10s"
"""How long to wait for another program that is writing."""
IDLE = "10min"
"""After how long the server ends a transaction of a program that says nothing."""
ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds and times, for both sides: a machine that vanished lets go of its locks within a minute."""
PLACE = re.compile(r"\?(\d*)")
READS = ("SELECT", "WITH")


class Connection(Database):
    """A schema of some kind on a server. Safe for use by several threads, and by a child process after a fork."""

    path: Path | None = None
    """There is no file."""
    _sql: "Sql"

    def __init__(self, server: Server, kind: Kind, *, readonly: bool = False, clock: Clock = now_us) -> None:
        self.server = server
        self.kind = kind
        self.readonly = readonly
        self.clock = clock
        self._left_behind: list[Sql] = []
        self._closed = False
        self._begin()

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._closed = True
            self._sql.close()

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Run a statement and return all its rows.

        Raises:
            StoreError: the server refused; `translate` says how.
        """
        self._follow_fork()
        with self._lock:
            cursor = self._execute(statement, values)
            return [] if cursor.description is None else cursor.fetchall()

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return how many it changed."""
        self._follow_fork()
        with self._lock:
            return self._execute(statement, values).rowcount

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its number, None when `ON CONFLICT DO NOTHING` did nothing."""
        number: int | None = self.one(f"{statement} RETURNING seq", *values)
        return number

    def copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Put many rows into a table, written as `table(column, …)`; the types are those of the columns."""
        self._follow_fork()
        with self._lock, self._ready().cursor() as cursor:
            try:
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)".encode()) as copying:
                    copying.set_types(types)
                    for row in rows:
                        copying.write_row(row)
            except _trouble() as error:
                raise translate(error, self.server, self.kind) from error

    def shrink(self) -> None:
        """The server gives room back by itself (autovacuum)."""

    def hold(self, *names: str) -> None:
        """Let nobody else hold the same names until the transaction ends."""
        for name in sorted(set(names)):
            self.rows("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", f"{self.kind.schema}/{name}")

    @contextmanager
    def transaction(self, *, write: bool = True, alone: bool = False) -> Generator[None]:
        """Do all or nothing; one within another belongs to the outer one. Without `write`: one unchanging view.

        Several programs write at once, each statement sees what the others have committed, and `hold` is how they give
        way to each other; `alone` waits until no other transaction writes, and keeps all from beginning.
        """
        self._follow_fork()
        with self._lock:
            if self._in_transaction():
                yield
                return
            try:
                self._start(write=write, alone=alone)
                yield
                self.rows("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _start(self, *, write: bool, alone: bool) -> None:
        if not write:
            self.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        key = f"hashtextextended('{self.kind.schema}', 0)"
        lock = f"pg_advisory_xact_lock({key})" if alone else f"pg_advisory_xact_lock_shared({key})"
        self.rows(f"BEGIN; SELECT {lock}")

    def _roll_back(self) -> None:
        import psycopg

        try:
            if self._in_transaction():
                self._sql.execute(b"ROLLBACK")
        except psycopg.Error:
            self._sql.close()  # the server rolls back what its client no longer ends

    def _in_transaction(self) -> bool:
        return not self._sql.closed and self._sql.info.transaction_status.value != 0

    def _execute(self, statement: str, values: Sequence[object]) -> "psycopg.Cursor[Row]":
        written, sql, inside = _numbered(statement), self._ready(), self._in_transaction()
        trouble = _trouble()
        try:
            return sql.execute(written, values or None, binary=bool(values))
        except trouble as error:
            # A connection may die unseen between two steps; asking again changes nothing, and so does beginning.
            if inside or not sql.closed or not statement.lstrip().startswith((*READS, "BEGIN")):
                raise translate(error, self.server, self.kind) from error
        try:
            return self._ready().execute(written, values or None, binary=bool(values))
        except trouble as error:
            raise translate(error, self.server, self.kind) from error

    def _ready(self) -> "Sql":
        """Return the connection, a new one where the old one was lost."""
        if self._closed:
            raise StoreError(f"{self.kind} on {self.server} is closed: open it again")
        if self._sql.closed:
            self._sql = self._open()
        return self._sql

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._sql = self._open()

    def _follow_fork(self) -> None:
        """A forked child opens its own; the driver leaves alone what another process opened, so that is kept, not closed."""
        if self._pid != os.getpid() and not self._closed:
            self._left_behind.append(self._sql)
            self._begin()

    def _open(self) -> "Sql":
        psycopg = _driver()
        defaults: dict[str, Any] = {"connect_timeout": WAIT, "fallback_application_name": "taiwa", **ALIVE}
        try:
            given = psycopg.conninfo.conninfo_to_dict(self.server.url)
        except psycopg.Error:
            raise InputError(f"the address {self.server} has a parameter that PostgreSQL does not know") from None
        try:
            sql = psycopg.connect(**{**defaults, **given}, autocommit=True, cursor_factory=psycopg.RawCursor)
        except psycopg.Error as error:
            raise unreachable(error, self.server) from None
        try:
            self._prepare(cast("Sql", sql))
        except psycopg.Error as error:
            sql.close()
            raise translate(error, self.server, self.kind) from error
        except BaseException:
            sql.close()
            raise
        # Commands end without closing what they opened, as with a file; the server is told all the same.
        weakref.finalize(self, _let_go, sql, os.getpid())
        return cast("Sql", sql)

    def _prepare(self, sql: "Sql") -> None:
        _adapt(sql)
        settings = (
            "client_encoding = 'UTF8'",
            f"search_path = {self.kind.schema}",
            f"lock_timeout = '{LOCKED}'",
            f"idle_in_transaction_session_timeout = '{IDLE}'",
            "client_min_messages = warning",
            "jit = off",  # compiling a statement costs more than ours take
            *(f"tcp_{name} = {number}" for name, number in ALIVE.items()),
            *self.kind.settings,
        )
        sql.execute("; ".join(f"SET {each}" for each in settings).encode())

        def ask(statement: str, *values: object) -> list[Row]:
            cursor = sql.execute(statement.encode(), values or None)
            return [] if cursor.description is None else cursor.fetchall()

        if not self.readonly:
            migrate(ask, self.kind)
            return
        found = version(ask, self.kind)
        if not found:
            raise StoreError(f"there is no {self.kind.name} on {self.server}: {self.kind.maker}")
        if found < len(self.kind.migrations):
            raise StoreError(f"{self.kind} on {self.server} is of an older version: open it once for writing")
        sql.execute(b"SET default_transaction_read_only = on")


def _let_go(sql: "Sql", pid: int) -> None:
    if pid == os.getpid():
        sql.close()


@lru_cache(maxsize=512)
def _numbered(statement: str) -> bytes:
    """Write `?` and `?1` as the server does. No text of ours holds a question mark."""
    places = iter(range(1, statement.count("?") + 1))
    return PLACE.sub(lambda found: f"${found[1] or next(places)}", statement).encode()


def _driver() -> Any:  # noqa: ANN401  (the module, which need not be there)
    try:
        import psycopg
    except ImportError:
        raise ConfigError("a PostgreSQL server needs the extra postgres: pip install 'taiwa[postgres]'") from None
    return psycopg


def _trouble() -> tuple[type[Exception], ...]:
    return (_driver().Error, UnicodeEncodeError, OverflowError)


def _adapt(sql: "Sql") -> None:
    """Give every whole number as 64 bits, true and false as 1 and 0: the tables hold nothing else, as in SQLite."""
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

    class AsNumber(Int8Dumper):
        def dump(self, obj: Any) -> bytes:  # noqa: ANN401  (the driver's signature)
            return str(int(obj)).encode()

    for dumper in (Int8Dumper, Int8BinaryDumper):
        sql.adapters.register_dumper(int, dumper)
    sql.adapters.register_dumper(bool, AsNumber)
