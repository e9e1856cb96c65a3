"""The key: the order lines of each request, by request id, in hand-written YAML or JSON.

    requests:
      espresso-17:
        items:
          - { name: latte, size: grande, quantity: 2, options: [oat milk] }
          - { name: [scone, plain scone] }        # either name is right; the default quantity is 1
        also:                                     # other correct readings of the whole request
          - items: [{ name: latte, size: grande, quantity: 2, options: [oat milk] }]
        missing: [crumpet]                        # requested but not on the menu: nothing is written down
      small-talk-3: { items: [] }                 # nothing is ordered
      espresso-18: { duplicate: espresso-17 }     # the same text; counts once

Other top-level fields, such as `version`, are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, TypeAlias

from evals.ordering.order_lines import OrderLine
from taiwa.apps.app_file import Problems, suggest
from taiwa.apps.catalog import read_bounded
from taiwa.kernel.errors import InputError
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml

__all__ = ["OrderKey", "Readings", "read_key"]

Readings: TypeAlias = tuple[tuple[OrderLine, ...], ...]
"""The lines of a request; after the first reading, other correct ones."""

MAX_KEY_BYTES = 4 * 2**20
MAX_LINES, MAX_QUANTITY = 100, 999
LINE_FIELDS = ("name", "size", "quantity", "options")
REQUEST_FIELDS = ("items", "also", "missing", "duplicate")
MAX_READINGS = 20


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A key: file name, SHA-256 of its bytes, the readings of each request, and requests that repeat another."""

    name: str
    digest: str
    orders: Mapping[str, Readings]
    duplicates: Mapping[str, str]


def read_key(path: Path) -> OrderKey:
    """Read a key.

    Raises:
        InputError: the file cannot be used; the message names the line.
    """
    raw, text = read_bounded(path, MAX_KEY_BYTES, f"is larger than {MAX_KEY_BYTES >> 20} MB")
    faults = Problems()
    tree = parse_yaml(text.replace("\r\n", "\n"), faults.error)
    if faults.fatal:
        raise InputError(faults.sorted()[0].format(str(path)))
    orders, duplicates = _KeyReader(path).requests(tree)
    if not orders:
        raise InputError(f"{path} holds no order")
    return OrderKey(path.name, sha256(raw).hexdigest(), orders, duplicates)


class _KeyReader:
    """A reader of orders from a YAML tree; errors name the line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def requests(self, tree: Tree | None) -> tuple[dict[str, Readings], dict[str, str]]:
        found = None if tree is None else tree.get("requests") if isinstance(tree, Table) else None
        if tree is None:
            return {}, {}
        if found is None or not isinstance(found.value, Table):
            at = tree.at if found is None else found.at
            self._fault(at, "a key requires 'requests', a table of ids with 'items' each")
        orders: dict[str, Readings] = {}
        duplicates: dict[str, str] = {}
        for entry in found.value.entries:
            table = self._fields(entry, REQUEST_FIELDS)
            same = table.get("duplicate")
            if same is None:
                orders[entry.key] = self._readings(entry, table)
            else:
                duplicates[entry.key] = self._text(same.value, "duplicate")
        return orders, duplicates

    def _fields(self, entry: Entry, names: tuple[str, ...]) -> Table:
        if not isinstance(entry.value, Table):
            self._fault(entry.at, f"the request {entry.key!r} requires 'items'; use {{ items: [] }} for none")
        self._known(entry.value, names)
        return entry.value

    def _known(self, table: Table, names: tuple[str, ...]) -> None:
        for entry in table.entries:
            if entry.key not in names:
                self._fault(entry.at, f"unknown field {entry.key!r}; {suggest(entry.key, names, 'fields')}")

    def _readings(self, entry: Entry, table: Table) -> Readings:
        also = table.get("also")
        others = () if also is None else also.value.items if isinstance(also.value, Items) else None
        if others is None or len(others) > MAX_READINGS:
            self._fault(entry.at, f"'also' must be a list of at most {MAX_READINGS} tables with 'items'")
        readings = [self._order(entry, table)]
        for other in others:
            if not isinstance(other, Table):
                self._fault(other.at, "another reading must be a table with 'items'")
            self._known(other, ("items",))
            readings.append(self._order(entry, other))
        return tuple(readings)

    def _order(self, entry: Entry, table: Table) -> tuple[OrderLine, ...]:
        items = table.get("items")
        if items is None or not isinstance(items.value, Items):
            self._fault(entry.at, f"the request {entry.key!r} requires a list of 'items'; use [] for none")
        lines = items.value.items
        if len(lines) > MAX_LINES:
            self._fault(items.at, f"an order has at most {MAX_LINES} lines, not {len(lines):,}")
        return tuple(self._line(item) for item in lines)

    def _line(self, item: Tree) -> OrderLine:
        if not isinstance(item, Table):
            self._fault(item.at, "a line of an order must be a table such as { name: latte, size: tall, quantity: 2 }")
        self._known(item, LINE_FIELDS)
        name = item.get("name")
        if name is None:
            self._fault(item.at, "a line of an order requires a name")
        size, options = item.get("size"), item.get("options")
        return OrderLine(
            self._texts(name.value, "name") or self._fault(name.at, "a line of an order requires a name"),
            self._quantity(item.get("quantity")),
            "" if size is None else self._text(size.value, "size"),
            () if options is None else self._texts(options.value, "options"),
        )

    def _texts(self, tree: Tree, field: str) -> tuple[str, ...]:
        if isinstance(tree, Items):
            return tuple(self._text(item, field) for item in tree.items[: MAX_LINES + 1])
        return (self._text(tree, field),)

    def _text(self, tree: Tree, field: str) -> str:
        if not isinstance(tree, Scalar) or isinstance(tree.value, bool) or (field == "name" and not tree.text.strip()):
            self._fault(tree.at, f"the field {field!r} must be a text")
        return "" if tree.value is None else tree.text.strip()

    def _quantity(self, entry: Entry | None) -> int:
        if entry is None:
            return 1
        found = entry.value.value if isinstance(entry.value, Scalar) else None
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MAX_QUANTITY:
            self._fault(entry.at, f"the quantity must be an integer from 1 to {MAX_QUANTITY}")
        return found

    def _fault(self, at: Location, why: str) -> NoReturn:
        raise InputError(f"{self._path}:{at.line}: {why}")
