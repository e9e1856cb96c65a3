"""A node in words: `integer, 1..5`, `"small" or "large"`, `an Address object`."""

import json
import re
from collections.abc import Iterable

from taiwa.kernel import Json
from taiwa.shape.form import (
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
)

__all__ = ["BREAKS", "constraints", "cut", "described", "literal", "named"]

BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
MOST_NAMES = 12
MOST_LITERALS = 20


def literal(value: Json) -> str:
    """Write a JSON value on one line, with every character that does not show escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return (
        text if text.isprintable() else "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
    )


def cut(text: str, most: int) -> str:
    """Shorten a text to at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def named(names: Iterable[str]) -> str:
    """List names, the first of them when there are many."""
    shown = sorted(names)
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    return ", ".join(cut(name if name.isidentifier() else literal(name), 60) for name in shown[:MOST_NAMES]) + more


def described(node: Node, name: str = "") -> str:
    """Say what a value of the node is, its constraints included."""
    if isinstance(node, LiteralNode):
        values = [literal(value) for value in node.values[:MOST_LITERALS]]
        values += ["…"] if len(node.values) > MOST_LITERALS else []
        return " or ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else "".join(values)
    if isinstance(node, ObjectNode):
        words = f"an object {name}" if name else "an object"
        if not name and node.properties:
            words += f" with {named(each.name for each in node.properties if each.required)}".removesuffix(" with ")
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
