"""What an evaluation asks: items with their right answers, in one file whose bytes have a hash."""

from taiwa.kernel.records import value

__all__ = ["DataSet", "Item"]


@value
class Item:
    """One question with its right answer; `kind` is its class, `line` where it stands in its file."""

    id: str
    text: str
    gold: str
    kind: str = ""
    line: int = 0


@value
class DataSet:
    """The items of a file, by its name and the SHA-256 of its bytes; `numbered` data has the types of NumGLUE."""

    name: str
    digest: str
    items: tuple[Item, ...]
    numbered: bool = False
