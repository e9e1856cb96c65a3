"""What reading a text gives: a value, and everything that had to be assumed to get it."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from taiwa.kernel.records import value

__all__ = ["Fix", "Level", "Reading"]

T = TypeVar("T")
Level: TypeAlias = Literal["safe", "likely", "guess"]
"""How sure a fix is: it cannot change the meaning · hardly any other meaning is possible · others are possible."""


@value(tag="fix")
class Fix:
    """One departure from JSON that was mended; `position` is its character offset in the text."""

    code: str
    position: int
    level: Level


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value read from a text.

    `complete` is False when the text ended before the value did. Such a text is refused, with two exceptions: a partial value was
    asked for, or only the last closing brackets are missing and the type leaves nothing that could still have come. `guessed` is
    True when a fix of level `guess` was needed; a value that is not complete is always a guess.
    """

    value: T
    fixes: tuple[Fix, ...] = ()
    complete: bool = True
    guessed: bool = False
