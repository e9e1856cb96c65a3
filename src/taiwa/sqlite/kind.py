"""What a SQLite file of ours is: its mark, its tables as an ordered list of migrations, and the words for it in errors.

A file of version n has seen the first n migrations.
"""

import sqlite3
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.kernel.errors import StoreError

__all__ = ["Kind", "Migration", "is_current", "migrate"]

Migration: TypeAlias = tuple[str, ...]
"""Statements that are run together in one transaction."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    `application` marks the file as ours (PRAGMA application_id), `name` is what a person calls it, `maker` says what makes
    a first one, `mend` what to do about a damaged one.
    """

    name: str
    application: int
    migrations: tuple[Migration, ...]
    maker: str
    mend: str

    def __str__(self) -> str:
        return f"the {self.name}"


def is_current(sql: sqlite3.Connection, kind: Kind) -> bool:
    """Say whether the file needs no migration; changes nothing.

    Raises:
        StoreError: the file belongs to another program or to a newer version of this one.
    """
    return _version(sql, kind) == len(kind.migrations)


def migrate(sql: sqlite3.Connection, kind: Kind) -> None:
    """Bring a file to the newest version, each migration in a transaction of its own.

    Raises:
        StoreError: as `is_current`.
    """
    while (version := _version(sql, kind)) < len(kind.migrations):
        sql.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it while this one waited for its turn.
            if _version(sql, kind) == version:
                for statement in kind.migrations[version]:
                    sql.execute(statement)
                sql.execute(f"PRAGMA application_id = {kind.application}")
                sql.execute(f"PRAGMA user_version = {version + 1}")
            sql.execute("COMMIT")
        except BaseException:
            if sql.in_transaction:
                sql.execute("ROLLBACK")
            raise


def _version(sql: sqlite3.Connection, kind: Kind) -> int:
    newest = len(kind.migrations)
    mark = sql.execute("PRAGMA application_id").fetchone()[0]
    version = int(sql.execute("PRAGMA user_version").fetchone()[0])
    if mark != kind.application and (mark or version or sql.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise StoreError(f"this SQLite file belongs to another program: name another file for {kind}")
    if version > newest:
        words = f"{kind} is of version {version} and this program knows {newest}"
        raise StoreError(f"{words}: update taiwa, or choose another {kind.name}")
    return version
