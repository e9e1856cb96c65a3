"""What the tables of conversations need of a database, whichever it is: SQLite here (`local`), PostgreSQL elsewhere (`server`).

Statements are those that both understand, with `?` for values. `json_each(?)` makes rows of a list of row numbers.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from taiwa.sqlite.connection import Clock, Row, now_us

__all__ = ["Clock", "Connection", "Row", "Words", "now_us"]


class Words(Protocol):
    """The index of what was said. It is a cache that `search` brings up to date, so that turns do not pay for it."""

    def refresh(self) -> None:
        """Take in what is new, in steps, so that nobody waits long for the lock."""
        ...

    def candidates(self, terms: Sequence[str], before: int, limit: int) -> list[Row]:
        """Return (row, hash, kind, clock, body) of nodes that may hold the folded terms and stand before a row, newest first."""
        ...

    def part(self) -> None:
        """Let go of the words of nodes that were just deleted."""
        ...

    def clear(self) -> None:
        """Empty the index; the next search fills it anew."""
        ...

    def held(self) -> Iterator[tuple[int, str]]:
        """Give every word of the index with the row of its node."""
        ...

    def covered(self) -> Iterator[Row]:
        """Give (row, hash, body) of the nodes whose words the index should have."""
        ...


class Connection(Protocol):
    """An open store."""

    readonly: bool
    clock: Clock

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        ...

    @property
    def words(self) -> Words:
        """The index of what was said."""
        ...

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
        ...

    def one(self, statement: str, *values: object) -> Any:  # noqa: ANN401  (its type is known only to the statement)
        """Return the first value of the first row, or None."""
        ...

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

    def hold(self, *names: str) -> None:
        """Let nobody else hold the same names until the transaction ends."""
        ...

    def owner(self) -> tuple[int, str]:
        """Say who this is: what `is_alive` knows again, from any process that opened the same store."""
        ...

    def is_alive(self, owner: int, token: str) -> bool:
        """Say whether that one is still there."""
        ...

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; not within a transaction."""
        ...

    def seal(self) -> bool:
        """Overwrite what was deleted wherever it still lies, and say whether nothing of it is left."""
        ...

    def check(self) -> Iterator[tuple[str, str]]:
        """Look at the database itself, and give (where, what) of each fault."""
        ...
