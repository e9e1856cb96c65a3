"""Intermediate representation of types, described in words."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from taiwa.kernel.records import Json
from taiwa.kernel.text import truncate

__all__ = [
    "ABSENT",
    "ANONYMOUS",
    "BREAKS",
    "About",
    "AnyNode",
    "ArrayNode",
    "BoolNode",
    "LiteralNode",
    "NeverNode",
    "Node",
    "NullNode",
    "NumberNode",
    "ObjectNode",
    "Property",
    "RefNode",
    "StringNode",
    "TypeIR",
    "UnionNode",
    "children",
    "constraints",
    "describe",
    "join_names",
    "literal",
    "members",
    "resolve",
    "with_description",
]


class Absent(Enum):
    """The type of `ABSENT`: no default, which is not a default of null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

ANONYMOUS: Final = "Object"
"""The name of objects whose author gave none; a number may follow it. They are shown where they are used."""


@dataclass(frozen=True, slots=True)
class About:
    """What a node says beside its structure; `notes` are validated constraints that have no field of their own."""

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
    """No value at all."""


@dataclass(frozen=True, slots=True)
class NullNode(_Base):
    """Null only."""


@dataclass(frozen=True, slots=True)
class BoolNode(_Base):
    """True or false."""


@dataclass(frozen=True, slots=True)
class StringNode(_Base):
    """Text; sizes in characters, `pattern` an unanchored regular expression."""

    shortest: int = 0
    longest: int | None = None
    pattern: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class NumberNode(_Base):
    """A number; the bounds belong to the range unless they are open."""

    integer: bool = False
    low: int | float | None = None
    high: int | float | None = None
    low_open: bool = False
    high_open: bool = False
    step: int | float | None = None


@dataclass(frozen=True, slots=True)
class LiteralNode(_Base):
    """One of these values."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ArrayNode(_Base):
    """A list: first the nodes of `prefix` in order, then any number of `items`."""

    items: "Node"
    prefix: tuple["Node", ...] = ()
    fewest: int = 0
    most: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Property:
    """One key of an object."""

    name: str
    node: "Node"
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectNode(_Base):
    """An object; `extra` is the node of unnamed keys, None where they are ignored, `NeverNode` where they are faults."""

    properties: tuple[Property, ...] = ()
    extra: "Node | None" = None
    fewest: int = 0
    most: int | None = None

    def get(self, name: str) -> Property | None:
        """Find a named key."""
        return next((each for each in self.properties if each.name == name), None)


@dataclass(frozen=True, slots=True)
class UnionNode(_Base):
    """One of several nodes; `tag` names the key whose literal tells which, or is ''."""

    options: tuple["Node", ...]
    tag: str = ""


@dataclass(frozen=True, slots=True)
class RefNode(_Base):
    """A named node of the form."""

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
    """A type: `root`, its own name, and the nodes that references name, in the order of first use."""

    root: Node
    name: str = "Answer"
    named: dict[str, Node] = field(default_factory=dict[str, Node])


def resolve(node: Node, form: TypeIR) -> Node:
    """Follow references to a node that is none; a reference that leads only to itself is `NeverNode`."""
    seen: set[str] = set()
    while isinstance(node, RefNode):
        if node.name in seen or node.name not in form.named:
            return NeverNode()
        seen.add(node.name)
        node = form.named[node.name]
    return node


def members(node: Node, form: TypeIR) -> tuple[Node, ...]:
    """List what a union may be, unions in it opened, everything resolved; another node is its own only member."""
    found: list[Node] = []
    todo, opened = [node], set[str]()
    while todo:
        at = todo.pop(0)
        if isinstance(at, RefNode):
            if at.name not in opened:
                opened.add(at.name)
                todo.insert(0, form.named.get(at.name, NeverNode()))
        elif isinstance(at, UnionNode):
            todo[:0] = at.options
        else:
            found.append(at)
    return tuple(found) or (NeverNode(),)


def children(node: Node) -> Iterator[Node]:
    """Give the nodes directly inside a node."""
    if isinstance(node, ArrayNode):
        yield from node.prefix
        yield node.items
    elif isinstance(node, ObjectNode):
        yield from (each.node for each in node.properties)
        if node.extra is not None:
            yield node.extra
    elif isinstance(node, UnionNode):
        yield from node.options


def with_description(node: Node, about: About) -> Node:
    """Give the node with `about` laid over what it says itself."""
    own = node.about
    merged = About(
        about.description or own.description,
        own.default if about.default is ABSENT else about.default,
        (*own.notes, *(note for note in about.notes if note not in own.notes)),
    )
    return node if merged == own else replace(node, about=merged)


BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")

MOST_NAMES = 12

MOST_LITERALS = 20


def literal(value: Json) -> str:
    """Write a JSON value on one line, with every character that does not show escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return (
        text if text.isprintable() else "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
    )


def join_names(names: Iterable[str]) -> str:
    """List names, the first of them when there are many."""
    shown = sorted(names)
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    return ", ".join(truncate(name if name.isidentifier() else literal(name), 60) for name in shown[:MOST_NAMES]) + more


def describe(node: Node, name: str = "") -> str:
    """Say what a value of the node is, its constraints included."""
    if isinstance(node, LiteralNode):
        values = [literal(value) for value in node.values[:MOST_LITERALS]]
        values += ["…"] if len(node.values) > MOST_LITERALS else []
        return " or ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else "".join(values)
    if isinstance(node, ObjectNode):
        words = f"an object {name}" if name else "an object"
        if not name and node.properties:
            words += f" with {join_names(each.name for each in node.properties if each.required)}".removesuffix(
                " with "
            )
    elif isinstance(node, ArrayNode):
        words = "a list"
    elif isinstance(node, NumberNode):
        words = "integer" if node.integer else "number"
        return ", ".join([words, *(each for each in constraints(node) if each != "integer")])
    else:
        kinds: dict[type, str] = {
            AnyNode: "any value",
            NeverNode: "left out",
            NullNode: "null",
            BoolNode: "true or false",
        }
        words = kinds.get(type(node), "string")
    return ", ".join([words, *constraints(node)])


def constraints(node: Node) -> list[str]:
    """Say the constraints that a node itself carries."""
    if isinstance(node, StringNode):
        size = _range(node.shortest or None, node.longest, "chars")
        pattern = BREAKS.sub(" ", f"pattern {node.pattern}") if node.pattern else ""
        return [each for each in (size, BREAKS.sub(" ", node.format), pattern) if each]
    if isinstance(node, NumberNode):
        said = ["integer"] if node.integer else []
        said += [_bounds(node)] if node.low is not None or node.high is not None else []
        return said + ([f"multiple of {node.step}"] if node.step is not None else [])
    if isinstance(node, ArrayNode):
        fixed = node.fewest == len(node.prefix) and isinstance(node.items, NeverNode)
        size = "" if fixed else _range(node.fewest or None, node.most, "items")
        return [each for each in (size, "unique items" if node.unique else "") if each]
    if isinstance(node, ObjectNode):
        size = _range(node.fewest or None, node.most, "keys")
        return [size] if size else []
    return []


def _range(low: int | None, high: int | None, unit: str) -> str:
    if low is not None and high is not None:
        return f"{low}..{high} {unit}" if low != high else f"exactly {low} {unit}"
    if low is None:
        return "" if high is None else f"max {high} {unit}"
    return f"min {low} {unit}"


def _bounds(node: NumberNode) -> str:
    if node.low is not None and node.high is not None and not node.low_open and not node.high_open:
        return f"{node.low}..{node.high}"
    low = "" if node.low is None else f"{'>' if node.low_open else '>='} {node.low}"
    high = "" if node.high is None else f"{'<' if node.high_open else '<='} {node.high}"
    return " and ".join(each for each in (low, high) if each)
