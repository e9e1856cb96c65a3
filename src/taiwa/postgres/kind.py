"""What a schema of ours on a server is: its name, its tables as an ordered list of migrations, and the words for errors.

A schema of version n has seen the first n migrations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from taiwa.kernel.errors import StoreError

__all__ = ["Kind", "Migration", "migrate", "version"]

Migration: TypeAlias = tuple[str, ...]
"""Statements that are run together in one transaction."""
Ask: TypeAlias = Callable[..., list[tuple[Any, ...]]]

MARK = "taiwa_version"
"""The table that says that a schema is ours, and which version it has."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of schema. `name` is what a person calls it, `maker` says what makes a first one.

    `settings` hold for its connections: `name = value`.
    """

    name: str
    schema: str
    migrations: tuple[Migration, ...]
    maker: str
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"the {self.name}"


def version(ask: Ask, kind: Kind) -> int:
    """Return the version of a schema, 0 when there is none yet; nothing is changed.

    Raises:
        StoreError: it is another program's, or a newer version's of this one.
    """
    tables = [name for (name,) in ask("SELECT tablename FROM pg_tables WHERE schemaname = $1", kind.schema)]
    if MARK not in tables:
        if tables:
            raise StoreError(f"the schema {kind.schema} on this server is another program's: name another database")
        return 0
    found = int(ask(f"SELECT number FROM {kind.schema}.{MARK}")[0][0])  # noqa: S608  (our own names)
    if found > len(kind.migrations):
        words = f"{kind} on this server is of version {found} and this program knows {len(kind.migrations)}"
        raise StoreError(f"{words}: update taiwa, or choose another database")
    return found


def migrate(ask: Ask, kind: Kind) -> None:
    """Bring a schema to the newest version, each migration in a transaction of its own.

    Raises:
        StoreError: as `version`, or the server keeps no Unicode.
    """
    while (found := version(ask, kind)) < len(kind.migrations):
        if found == 0 and ask("SHOW server_encoding")[0][0] != "UTF8":
            raise StoreError("the database keeps no Unicode: make one with ENCODING 'UTF8'")
        ask("BEGIN")
        try:
            ask("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"{kind.schema} migrates")
            # Another process may have done it while this one waited for its turn.
            if version(ask, kind) == found:
                _step(ask, kind, found)
            ask("COMMIT")
        except BaseException:
            ask("ROLLBACK")
            raise


def _step(ask: Ask, kind: Kind, found: int) -> None:
    if found == 0:
        ask(f"CREATE SCHEMA IF NOT EXISTS {kind.schema}")
        ask(f"CREATE TABLE {kind.schema}.{MARK}(number bigint NOT NULL)")
        ask(f"INSERT INTO {kind.schema}.{MARK} VALUES(0)")
    for statement in kind.migrations[found]:
        ask(statement)
    ask(f"UPDATE {kind.schema}.{MARK} SET number = {found + 1}")  # noqa: S608
