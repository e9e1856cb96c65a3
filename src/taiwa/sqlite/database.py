"""How a database is spoken to, whichever it is: statements that SQLite and PostgreSQL both understand, with `?` for values."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

__all__ = ["Clock", "Database", "Row"]

Row: TypeAlias = tuple[Any, ...]
"""One row of a result; its types are known only to its statement."""
Clock: TypeAlias = Callable[[], int]
"""Microseconds since 1970."""


class Database(Protocol):
    """An open database."""

    clock: Clock

    def close(self) -> None:
        """Close it."""
        ...

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Run a statement and return all its rows.

        Raises:
            StoreError: the database refused.
        """
        ...

    def row(self, statement: str, *values: object) -> Row | None:
        """Return the first row, if there is one."""
        found = self.rows(statement, *values)
        return found[0] if found else None

    def one(self, statement: str, *values: object) -> Any:  # noqa: ANN401  (its type is known only to the statement)
        """Return the first value of the first row, or None."""
        found = self.rows(statement, *values)
        return found[0][0] if found else None

    def run(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, and return how many it changed."""
        ...

    def insert(self, statement: str, *values: object) -> int | None:
        """Insert one row and return its number, None when `ON CONFLICT DO NOTHING` did nothing."""
        ...

    def transaction(self, *, write: bool = True, alone: bool = False) -> AbstractContextManager[None]:
        """Do all or nothing; one within another belongs to the outer one. Without `write`: one unchanging view.

        Where several programs can write at once, `alone` keeps the others out.
        """
        ...

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; not within a transaction."""
        ...
