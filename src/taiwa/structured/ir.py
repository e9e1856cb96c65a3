"""Output types as trees of nodes: the intermediate representation (IR) of Python types, JSON Schema and TypeScript.

Also its description in words, for prompts and error messages.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate


class Absent(Enum):
    """The type of `ABSENT`: no default, as opposed to a default of null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

ANONYMOUS: Final = "Object"
"""The name of anonymous objects, possibly with a number. They are rendered inline."""


@dataclass(frozen=True, slots=True)
class About:
    """Annotations of a node; `notes` are validated constraints without a separate field."""

    description: str = ""
    default: "Json | Absent" = ABSENT
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    about: About = field(default=About())


@dataclass(frozen=True, slots=True)
class AnyNode(_Base):
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class NeverNode(_Base):
    """No value is valid."""


@dataclass(frozen=True, slots=True)
class NullNode(_Base):
    """Null only."""


@dataclass(frozen=True, slots=True)
class BoolNode(_Base):
    """True or false."""


@dataclass(frozen=True, slots=True)
class StringNode(_Base):
    """Text; lengths in characters, `pattern` an unanchored regular expression."""

    min_length: int = 0
    max_length: int | None = None
    pattern: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class NumberNode(_Base):
    """A number; the bounds are valid values unless exclusive."""

    integer: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: int | float | None = None


@dataclass(frozen=True, slots=True)
class LiteralNode(_Base):
    """One of these values."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ArrayNode(_Base):
    """A list: the nodes of `prefix` in order, then any number of `items`."""

    items: "Node"
    prefix: tuple["Node", ...] = ()
    min_items: int = 0
    max_items: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Property:
    """One key of an object."""

    name: str
    node: "Node"
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectNode(_Base):
    """An object; `extra` is the node of unnamed keys: None if they are ignored, `NeverNode` if they are invalid."""

    properties: tuple[Property, ...] = ()
    extra: "Node | None" = None
    min_properties: int = 0
    max_properties: int | None = None

    def get(self, name: str) -> Property | None:
        """Return the property of a key; None if the key is unnamed."""
        return next((each for each in self.properties if each.name == name), None)


@dataclass(frozen=True, slots=True)
class UnionNode(_Base):
    """One of several nodes."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class RefNode(_Base):
    """A reference to a named node of the `TypeIR`."""

    name: str


Node: TypeAlias = (
    AnyNode
    | NeverNode
    | NullNode
    | BoolNode
    | StringNode
    | NumberNode
    | LiteralNode
    | ArrayNode
    | ObjectNode
    | UnionNode
    | RefNode
)


@dataclass(frozen=True, slots=True)
class TypeIR:
    """A type: its root node and name, and the nodes of its references in the order of first use."""

    root: Node
    name: str = "Answer"
    named: dict[str, Node] = field(default_factory=dict[str, Node])


def resolve(node: Node, ir: TypeIR) -> Node:
    """Follow references to another node; a circle of references is `NeverNode`."""
    seen: set[str] = set()
    while isinstance(node, RefNode):
        if node.name in seen or node.name not in ir.named:
            return NeverNode()
        seen.add(node.name)
        node = ir.named[node.name]
    return node


def members(node: Node, ir: TypeIR) -> tuple[Node, ...]:
    """Return the members of a union, nested unions flattened and references resolved; another node is its only member."""
    flat: list[Node] = []
    todo, opened = [node], set[str]()
    while todo:
        at = todo.pop(0)
        if isinstance(at, RefNode):
            if at.name not in opened:
                opened.add(at.name)
                todo.insert(0, ir.named.get(at.name, NeverNode()))
        elif isinstance(at, UnionNode):
            todo[:0] = at.options
        else:
            flat.append(at)
    return tuple(flat) or (NeverNode(),)


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly inside a node."""
    if isinstance(node, ArrayNode):
        yield from node.prefix
        yield node.items
    elif isinstance(node, ObjectNode):
        yield from (each.node for each in node.properties)
        if node.extra is not None:
            yield node.extra
    elif isinstance(node, UnionNode):
        yield from node.options


def reachable(root: Node, named: Mapping[str, Node]) -> dict[str, Node]:
    """Return the named nodes that are reachable from a node, in the order of first use."""
    used: dict[str, Node] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode) and node.name not in used:
            used[node.name] = named[node.name]
            todo.append(named[node.name])
        todo.extend(reversed(list(children(node))))
    return used


def nodes(type_ir: TypeIR) -> Iterator[Node]:
    """Yield all nodes of a type."""
    todo = [type_ir.root, *type_ir.named.values()]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(children(node))


def takes_null(node: Node, type_ir: TypeIR) -> bool:
    """Return whether null is one of the values of a node."""
    return any(
        isinstance(each, (NullNode, AnyNode)) or (isinstance(each, LiteralNode) and None in each.values)
        for each in members(node, type_ir)
    )


def union(options: Sequence[Node]) -> Node:
    """Return the union of nodes: adjacent literals are merged, duplicates dropped, and a single member is returned as it is."""
    merged: list[Node] = []
    for option in options:
        last = merged[-1] if merged and merged[-1].about == About() == option.about else None
        if isinstance(option, LiteralNode) and isinstance(last, LiteralNode):
            have = {(type(each), each) for each in last.values}  # to Python, 1 and True are equal
            merged[-1] = LiteralNode(
                (*last.values, *(each for each in option.values if (type(each), each) not in have))
            )
        elif option not in merged:
            merged.append(option)
    if NumberNode() in merged:  # which has all integers
        merged = [each for each in merged if each != NumberNode(integer=True)]
    if not merged:
        return NeverNode()
    return merged[0] if len(merged) == 1 else UnionNode(tuple(merged))


def with_description(node: Node, about: About) -> Node:
    """Return the node with the annotations `about` over its own."""
    merged = merge_about(about, node.about)
    return node if merged == node.about else replace(node, about=merged)


def merge_about(over: About, own: About) -> About:
    """Return `own` annotations overridden by those of `over`; notes are collected."""
    default = own.default if over.default is ABSENT else over.default
    notes = (*own.notes, *(note for note in over.notes if note not in own.notes))
    return About(over.description or own.description, default, notes)


CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
"""Whitespace, control and direction characters: one line of a prompt contains none of them but spaces."""
MAX_NAMES = 12
MAX_LITERALS = 20
SCALAR_DESCRIPTIONS: dict[type, str] = {
    AnyNode: "any value",
    NeverNode: "left out",
    NullNode: "null",
    BoolNode: "true or false",
}


def literal(value: Json) -> str:
    """Render a JSON value on one line; characters that are not printable are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def join_names(names: Iterable[str]) -> str:
    """Join names in alphabetical order, at most twelve."""
    shown = sorted(names)
    more = f" and {len(shown) - MAX_NAMES} more" if len(shown) > MAX_NAMES else ""
    return ", ".join(truncate(name if name.isidentifier() else literal(name), 60) for name in shown[:MAX_NAMES]) + more


def join_or(words: list[str]) -> str:
    """Join alternatives: `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def describe(node: Node, name: str = "") -> str:
    """Describe the values of a node with their constraints."""
    if isinstance(node, LiteralNode):
        values = [literal(value) for value in node.values[:MAX_LITERALS]]
        values += ["…"] if len(node.values) > MAX_LITERALS else []
        return join_or(values)
    if isinstance(node, ObjectNode):
        required = join_names(each.name for each in node.properties if each.required)
        words = f"an object {name}" if name else f"an object with {required}".removesuffix(" with ")
    elif isinstance(node, ArrayNode):
        words = "a list"
    elif isinstance(node, NumberNode):
        words = "integer" if node.integer else "number"
        return ", ".join([words, *(each for each in constraints(node) if each != "integer")])
    else:
        words = SCALAR_DESCRIPTIONS.get(type(node), "string")
    return ", ".join([words, *constraints(node)])


def constraints(node: Node) -> list[str]:
    """Describe the constraints of a node without those of its children."""
    if isinstance(node, StringNode):
        size = _range(node.min_length or None, node.max_length, "chars")
        pattern = CONTROL.sub(" ", f"pattern {node.pattern}") if node.pattern else ""
        return [each for each in (size, CONTROL.sub(" ", node.format), pattern) if each]
    if isinstance(node, NumberNode):
        step = "" if node.multiple_of is None else f"multiple of {node.multiple_of}"
        return [each for each in ("integer" if node.integer else "", _bounds(node), step) if each]
    if isinstance(node, ArrayNode):
        fixed = node.min_items == len(node.prefix) and isinstance(node.items, NeverNode)
        size = "" if fixed else _range(node.min_items or None, node.max_items, "items")
        return [each for each in (size, "unique items" if node.unique else "") if each]
    if isinstance(node, ObjectNode):
        size = _range(node.min_properties or None, node.max_properties, "keys")
        return [size] if size else []
    return []


def _range(low: int | None, high: int | None, unit: str) -> str:
    if low is not None and high is not None:
        return f"{low}..{high} {unit}" if low != high else f"exactly {low} {unit}"
    if low is None:
        return "" if high is None else f"max {high} {unit}"
    return f"min {low} {unit}"


def _bounds(node: NumberNode) -> str:
    inclusive = not (node.exclusive_minimum or node.exclusive_maximum)
    if inclusive and node.minimum is not None and node.maximum is not None:
        return f"{node.minimum}..{node.maximum}"
    low = "" if node.minimum is None else f"{'>' if node.exclusive_minimum else '>='} {node.minimum}"
    high = "" if node.maximum is None else f"{'<' if node.exclusive_maximum else '<='} {node.maximum}"
    return " and ".join(each for each in (low, high) if each)
