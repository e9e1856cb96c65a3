"""One table of an app file, taken key by key; a key that nobody knows is a fault."""

from dataclasses import dataclass
from typing import cast

from taiwa.apps.faults import Faults, nearest, quoted
from taiwa.yamlfile import Items, Location, Scalar, Table, Tree

__all__ = ["Keys", "kind_name"]

NAMES: dict[type[Tree], str] = {Items: "a list", Table: "a table"}


def kind_name(tree: Tree) -> str:
    """Name what stands there, for a message."""
    if not isinstance(tree, Scalar):
        return NAMES[type(tree)]
    return quoted(tree.text) if tree.text else "nothing"


@dataclass(slots=True)
class Keys:
    """Reads the values of one table; `what` names the table in messages."""

    table: Table
    known: tuple[str, ...]
    what: str
    faults: Faults

    def __post_init__(self) -> None:
        for entry in self.table.entries:
            if entry.key not in self.known:
                message = f"unknown key {quoted(entry.key)}{self.what and f' in {self.what}'}"
                self.faults.error(entry.at, message, nearest(entry.key, self.known, "keys"))

    def __contains__(self, key: str) -> bool:
        return self.table.get(key) is not None

    def spot(self, key: str) -> Location:
        """Where a key stands, or else where the table begins."""
        entry = self.table.get(key)
        return entry.at if entry else self.table.at

    def tree(self, key: str) -> Tree | None:
        """Whatever a key holds."""
        entry = self.table.get(key)
        return entry.value if entry else None

    def text(self, key: str, otherwise: str = "") -> str:
        """A text; a number or a word like `true` is taken as it was written."""
        held = self.tree(key)
        if held is None:
            return otherwise
        if isinstance(held, Scalar) and held.value is not None:
            return held.text
        self.wrong(key, "a text")
        return otherwise

    def whole(self, key: str, low: int, otherwise: int | None = None) -> int | None:
        """A whole number of at least `low`."""
        held = self.tree(key)
        if held is None:
            return otherwise
        number = held.value if isinstance(held, Scalar) else None
        if isinstance(number, int) and not isinstance(number, bool) and low <= number:
            return number
        self.wrong(key, f"a whole number, {low} or more")
        return otherwise

    def number(self, key: str, low: float, high: float, otherwise: float | None = None) -> float | None:
        """A number between two others, or null."""
        held = self.tree(key)
        if held is None:
            return otherwise
        number = held.value if isinstance(held, Scalar) else ""
        if number is None:
            return None
        if isinstance(number, (int, float)) and not isinstance(number, bool) and low <= number <= high:
            return float(number)
        self.wrong(key, f"a number from {low:g} to {high:g}")
        return otherwise

    def inner(self, key: str) -> Table | None:
        """A table."""
        held = self.tree(key)
        if held is None or isinstance(held, Table):
            return held
        self.wrong(key, "a table")
        return None

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """A list of texts."""
        held = self.tree(key)
        if held is None:
            return ()
        if isinstance(held, Items) and all(isinstance(item, Scalar) and item.value is not None for item in held.items):
            return cast("tuple[Scalar, ...]", held.items)
        self.wrong(key, "a list of names", f"write {key}: [one, two]")
        return ()

    def wrong(self, key: str, wanted: str, mend: str = "") -> None:
        """Note that a key holds something else than it should."""
        entry = self.table.get(key)
        held = kind_name(entry.value) if entry else "nothing"
        self.faults.error(
            self.spot(key), f"{key} must be {wanted}, not {held}", mend or "change it, or leave the key out"
        )
