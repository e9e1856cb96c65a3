"""The intermediate form of a type: what rendering, diagnosing, coercing and native schemas all read.

A form is a root node and the named nodes that it refers to; recursion goes through names only, so every walk ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from taiwa.kernel import Json

__all__ = [
    "ABSENT",
    "ANONYMOUS",
    "About",
    "Absent",
    "AnyNode",
    "ArrayNode",
    "BoolNode",
    "Form",
    "LiteralNode",
    "NeverNode",
    "Node",
    "NullNode",
    "NumberNode",
    "ObjectNode",
    "Property",
    "RefNode",
    "StringNode",
    "UnionNode",
    "children",
    "members",
    "resolve",
    "retold",
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
class Form:
    """A type: `root`, its own name, and the nodes that references name, in the order of first use."""

    root: Node
    name: str = "Answer"
    named: dict[str, Node] = field(default_factory=dict[str, Node])


def resolve(node: Node, form: Form) -> Node:
    """Follow references to a node that is none; a reference that leads only to itself is `NeverNode`."""
    seen: set[str] = set()
    while isinstance(node, RefNode):
        if node.name in seen or node.name not in form.named:
            return NeverNode()
        seen.add(node.name)
        node = form.named[node.name]
    return node


def members(node: Node, form: Form) -> tuple[Node, ...]:
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


def retold(node: Node, about: About) -> Node:
    """Give the node with `about` laid over what it says itself."""
    own = node.about
    merged = About(
        about.description or own.description,
        own.default if about.default is ABSENT else about.default,
        (*own.notes, *(note for note in about.notes if note not in own.notes)),
    )
    return node if merged == own else replace(node, about=merged)
