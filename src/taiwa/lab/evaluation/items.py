"""What an evaluation asks: items with their right answers, in one file whose bytes have a hash."""

from collections.abc import Mapping
from dataclasses import field

from taiwa.kernel.records import Json, value

__all__ = ["DataSet", "Item"]


@value(tag="eval-item")
class Item:
    """One question with its right answer; `kind` is its class, `line` where it stands in its file.

    `more` is what else a measurement of its kind needs.
    """

    id: str
    text: str
    gold: str
    kind: str = ""
    line: int = 0
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])


@value(tag="data-set")
class DataSet:
    """The items of a file, by its name and the SHA-256 of its bytes; `numbered` data has the types of NumGLUE."""

    name: str
    digest: str
    items: tuple[Item, ...]
    numbered: bool = False
