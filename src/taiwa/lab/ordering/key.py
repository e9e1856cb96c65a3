"""Reading a key: which lines each request orders, by the ids of the requests. YAML or JSON, written by a person.

    espresso-17:
      - { name: latte, size: grande, quantity: 2, options: [oat milk] }
      - { name: [scone, plain scone] }        # either name is right; a quantity that is not written is one
    small-talk-3: []                          # nothing is ordered

Instead of a list a request may have a table with its list under `items`, for notes beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from taiwa.apps.faults import Faults, Spot, nearest
from taiwa.apps.files import bounded
from taiwa.apps.tree import Entry, Items, Scalar, Table, Tree, read_tree
from taiwa.kernel.errors import InputError
from taiwa.lab.ordering.dishes import Dish

__all__ = ["Key", "read_key"]

MOST_BYTES = 4 * 2**20
MOST_LINES, MOST_OF_ONE = 100, 999
FIELDS = ("name", "size", "quantity", "options")


@dataclass(frozen=True, slots=True)
class Key:
    """What is right: the name of the file, the SHA-256 of its bytes, and the lines of every request."""

    name: str
    digest: str
    orders: Mapping[str, tuple[Dish, ...]]


def read_key(path: Path) -> Key:
    """Read a key.

    Raises:
        InputError: it cannot be read or used; the message names the line.
    """
    raw, text = bounded(path, MOST_BYTES, f"is larger than {MOST_BYTES >> 20} MB, which no key is")
    faults = Faults()
    tree = read_tree(text.replace("\r\n", "\n"), 1, faults)
    if faults.fatal:
        raise InputError(faults.sorted()[0].told(str(path)))
    orders = _Reader(path).orders(tree)
    if not orders:
        raise InputError(f"{path} holds no order")
    return Key(path.name, sha256(raw).hexdigest(), orders)


class _Reader:
    """Makes orders of a tree; whatever is wrong is one line with its place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def orders(self, tree: Tree | None) -> dict[str, tuple[Dish, ...]]:
        if tree is None:
            return {}
        if not isinstance(tree, Table):
            self._fault(tree.at, "a key is a table: the id of a request, and the lines that it orders")
        return {entry.key: self._order(entry) for entry in tree.entries}

    def _order(self, entry: Entry) -> tuple[Dish, ...]:
        found = entry.value
        if isinstance(found, Table):
            items = found.get("items")
            if items is None:
                self._fault(entry.at, f"the request {entry.key!r} has no 'items'")
            found = items.value
        if not isinstance(found, Items):
            self._fault(entry.at, f"the request {entry.key!r} has no list of lines; one that orders nothing has []")
        if len(found.items) > MOST_LINES:
            self._fault(entry.at, f"an order of {len(found.items):,} lines; at most {MOST_LINES} are compared")
        return tuple(self._line(item) for item in found.items)

    def _line(self, item: Tree) -> Dish:
        if not isinstance(item, Table):
            self._fault(item.at, "a line of an order is a table such as { name: latte, size: tall, quantity: 2 }")
        for entry in item.entries:
            if entry.key not in FIELDS:
                self._fault(entry.at, f"no field is called {entry.key!r}; {nearest(entry.key, FIELDS, 'fields')}")
        name = item.get("name")
        if name is None:
            self._fault(item.at, "a line of an order has a name")
        size, options = item.get("size"), item.get("options")
        return Dish(
            self._texts(name.value, "name") or self._fault(name.at, "a line of an order has a name"),
            self._quantity(item.get("quantity")),
            "" if size is None else self._text(size.value, "size"),
            () if options is None else self._texts(options.value, "options"),
        )

    def _texts(self, tree: Tree, field: str) -> tuple[str, ...]:
        if isinstance(tree, Items):
            return tuple(self._text(item, field) for item in tree.items[: MOST_LINES + 1])
        return (self._text(tree, field),)

    def _text(self, tree: Tree, field: str) -> str:
        if not isinstance(tree, Scalar) or isinstance(tree.value, bool) or (field == "name" and not tree.text.strip()):
            self._fault(tree.at, f"the field {field!r} is no text")
        return "" if tree.value is None else tree.text.strip()

    def _quantity(self, entry: Entry | None) -> int:
        if entry is None:
            return 1
        found = entry.value.value if isinstance(entry.value, Scalar) else None
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MOST_OF_ONE:
            self._fault(entry.at, f"the quantity is a whole number from 1 to {MOST_OF_ONE}")
        return found

    def _fault(self, at: Spot, why: str) -> NoReturn:
        raise InputError(f"{self._path}:{at.line}: {why}")
