"""Reading a key: which lines each request orders, by the ids of the requests. YAML or JSON, written by a person.

    requests:
      espresso-17:
        items:
          - { name: latte, size: grande, quantity: 2, options: [oat milk] }
          - { name: [scone, plain scone] }        # either name is right; a quantity that is not written is one
        also:                                     # other readings of the whole request that are right, too
          - items: [{ name: latte, size: grande, quantity: 2, options: [oat milk] }]
        missing: [crumpet]                        # asked for and not to be had: nothing is written down for it
      small-talk-3: { items: [] }                 # nothing is ordered
      espresso-18: { duplicate: espresso-17 }     # the same words; they count once

Other fields at the top, such as `version`, are for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, TypeAlias

from taiwa.apps.faults import Faults, nearest
from taiwa.apps.files import bounded
from taiwa.kernel.errors import InputError
from taiwa.lab.ordering.dishes import Dish
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml

__all__ = ["Key", "Readings", "read_key"]

Readings: TypeAlias = tuple[tuple[Dish, ...], ...]
"""The lines of a request; behind the first reading others that are right, too."""

MOST_BYTES = 4 * 2**20
MOST_LINES, MOST_OF_ONE = 100, 999
FIELDS = ("name", "size", "quantity", "options")
OF_REQUEST = ("items", "also", "missing", "duplicate")
MOST_READINGS = 20


@dataclass(frozen=True, slots=True)
class Key:
    """What is right: the name of the file, the SHA-256 of its bytes, the readings of every request, and what has the words of which."""

    name: str
    digest: str
    orders: Mapping[str, Readings]
    duplicates: Mapping[str, str]


def read_key(path: Path) -> Key:
    """Read a key.

    Raises:
        InputError: it cannot be read or used; the message names the line.
    """
    raw, text = bounded(path, MOST_BYTES, f"is larger than {MOST_BYTES >> 20} MB, which no key is")
    faults = Faults()
    tree = parse_yaml(text.replace("\r\n", "\n"), faults.error)
    if faults.fatal:
        raise InputError(faults.sorted()[0].told(str(path)))
    orders, duplicates = _Reader(path).requests(tree)
    if not orders:
        raise InputError(f"{path} holds no order")
    return Key(path.name, sha256(raw).hexdigest(), orders, duplicates)


class _Reader:
    """Makes orders of a tree; whatever is wrong is one line with its place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def requests(self, tree: Tree | None) -> tuple[dict[str, Readings], dict[str, str]]:
        found = None if tree is None else tree.get("requests") if isinstance(tree, Table) else None
        if tree is None:
            return {}, {}
        if found is None or not isinstance(found.value, Table):
            at = tree.at if found is None else found.at
            self._fault(at, "a key has 'requests': the id of each, and below it the 'items' that it orders")
        orders: dict[str, Readings] = {}
        duplicates: dict[str, str] = {}
        for entry in found.value.entries:
            table = self._fields(entry, OF_REQUEST)
            same = table.get("duplicate")
            if same is None:
                orders[entry.key] = self._readings(entry, table)
            else:
                duplicates[entry.key] = self._text(same.value, "duplicate")
        return orders, duplicates

    def _fields(self, entry: Entry, names: tuple[str, ...]) -> Table:
        if not isinstance(entry.value, Table):
            self._fault(
                entry.at, f"below {entry.key!r} stand 'items', the lines that are ordered; none: {{ items: [] }}"
            )
        self._known(entry.value, names)
        return entry.value

    def _known(self, table: Table, names: tuple[str, ...]) -> None:
        for entry in table.entries:
            if entry.key not in names:
                self._fault(entry.at, f"no field is called {entry.key!r}; {nearest(entry.key, names, 'fields')}")

    def _readings(self, entry: Entry, table: Table) -> Readings:
        also = table.get("also")
        others = () if also is None else also.value.items if isinstance(also.value, Items) else None
        if others is None or len(others) > MOST_READINGS:
            self._fault(entry.at, f"'also' is a list of at most {MOST_READINGS} tables with 'items'")
        readings = [self._order(entry, table)]
        for other in others:
            if not isinstance(other, Table):
                self._fault(other.at, "another reading is a table with 'items'")
            self._known(other, ("items",))
            readings.append(self._order(entry, other))
        return tuple(readings)

    def _order(self, entry: Entry, table: Table) -> tuple[Dish, ...]:
        items = table.get("items")
        if items is None or not isinstance(items.value, Items):
            self._fault(entry.at, f"the request {entry.key!r} has no list of 'items'; one that orders nothing has []")
        lines = items.value.items
        if len(lines) > MOST_LINES:
            self._fault(items.at, f"an order of {len(lines):,} lines; at most {MOST_LINES} are compared")
        return tuple(self._line(item) for item in lines)

    def _line(self, item: Tree) -> Dish:
        if not isinstance(item, Table):
            self._fault(item.at, "a line of an order is a table such as { name: latte, size: tall, quantity: 2 }")
        self._known(item, FIELDS)
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

    def _fault(self, at: Location, why: str) -> NoReturn:
        raise InputError(f"{self._path}:{at.line}: {why}")
