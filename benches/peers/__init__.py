"""Whole turns by taiwa and by others, each in a process of its own.

Every module has one function, `open_talks`: from the address of a model server and the words that stand before the first
turn it makes a function that begins conversations. A conversation has one method, `say`, and keeps what was said before.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

__all__ = ["Begin", "Dialogue", "Message"]

Message: TypeAlias = dict[str, str]


class Dialogue(Protocol):
    """One conversation."""

    async def say(self, text: str) -> str:
        """Have one turn and return the answer."""
        ...


Begin: TypeAlias = Callable[[], Dialogue]
