"""What the tables of conversations need of a database, whichever it is: SQLite here (`local`), PostgreSQL elsewhere (`server`).

Statements are those that both understand, with `?` for values. `json_each(?)` makes rows of a list of row numbers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from taiwa.sqlite import Clock, Row, now_us
from taiwa.sqlite.database import Database

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


class Connection(Database, Protocol):
    """An open store."""

    readonly: bool

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        ...

    @property
    def words(self) -> Words:
        """The index of what was said."""
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

    def seal(self) -> bool:
        """Overwrite what was deleted wherever it still lies, and say whether nothing of it is left."""
        ...

    def check(self) -> Iterator[tuple[str, str]]:
        """Look at the database itself, and give (where, what) of each fault."""
        ...
