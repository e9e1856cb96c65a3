"""Whole turns by taiwa and by other libraries, each in its own process.

Every module has a function `open_talks`, which takes the address of a model server and the system text, and returns a function
that creates conversations. A conversation has one method, `say`, and keeps its history.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

__all__ = ["Begin", "Dialogue", "Message"]

Message: TypeAlias = dict[str, str]


class Dialogue(Protocol):
    """One conversation."""

    async def say(self, text: str) -> str:
        """Run one turn and return the answer."""
        ...


Begin: TypeAlias = Callable[[], Dialogue]
