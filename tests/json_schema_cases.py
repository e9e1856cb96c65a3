"""Random JSON Schemas of nearly all keywords, and values that may fit them."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
WORDS = ("", "a", "b", "ab", "x", "aa", "é", "日", "2020-01-01")
NUMBERS = (0, 1, 2, 3, 5, 10, -1, -3, 100, 0.1, 1.5, 2.5)
TYPES = ("object", "object", "array", "string", "number", "integer", ["integer", "string"], ["object", "null"])
DEFINITIONS: dict[str, Any] = {
    "x": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}},
    "y": {"type": "string", "maxLength": 2},
}
LEAVES = (
    True,
    {},
    {"type": "integer"},
    {"type": "string"},
    False,
    {"type": "null"},
    {"$ref": "#/$defs/x"},
    {"$ref": "#/$defs/y"},
)
DEEPEST = 2


class Maker:
    """Makes schemas and values from one source of randomness, which shrinks."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(10 if depth < DEEPEST else 6)
        if kind < 2:
            return None if kind == 0 else self.random.random() < 0.5
        if kind < 6:
            return self.random.choice(NUMBERS if kind < 4 else WORDS)
        if kind < 8:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {name: self.value(depth + 1) for name in self.names(0)}

    def names(self, least: int = 1) -> list[str]:
        return self.random.sample(NAMES, self.random.randrange(least, 4))

    def schema(self, depth: int = 0) -> Any:
        if depth > DEEPEST or self.random.random() < 0.05:
            return self.random.choice(LEAVES)
        made: dict[str, Any] = {"type": self.random.choice(TYPES)} if self.random.random() < 0.8 else {}
        rules = self.rules(depth + 1)
        for keyword in self.random.sample(sorted(rules), self.random.randrange(1, 5)):
            made[keyword] = rules[keyword]()
        if "if" in made:
            made |= {branch: self.schema(depth + 1) for branch in ("then", "else") if self.random.random() < 0.7}
        return made

    def whole(self) -> dict[str, Any]:
        made = self.schema()
        return {**(made if isinstance(made, dict) else {"allOf": [made]}), "$defs": DEFINITIONS}

    def rules(self, depth: int) -> dict[str, Callable[[], Any]]:
        def inner() -> Any:
            return self.schema(depth)

        def some() -> list[Any]:
            return [inner() for _ in range(self.random.randrange(1, 4))]

        def named() -> dict[str, Any]:
            return {name: inner() for name in self.names()}

        choice = self.random.choice
        alike = dict.fromkeys(
            ("additionalProperties", "items", "not", "contains", "unevaluatedProperties", "if"), inner
        )
        lists = dict.fromkeys(("prefixItems", "anyOf", "oneOf", "allOf"), some)
        holders = dict.fromkeys(("properties", "dependentSchemas"), named)
        counts = ("minItems", "minLength", "minProperties", "maxItems", "maxLength", "maxProperties")
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        return {
            **alike,
            **lists,
            **holders,
            **dict.fromkeys(counts, lambda: self.random.randrange(4)),
            **dict.fromkeys(bounds, lambda: choice(NUMBERS)),
            "required": self.names,
            "dependentRequired": lambda: {choice(NAMES): self.names()},
            "enum": lambda: [self.value(1) for _ in range(self.random.randrange(1, 4))],
            "const": lambda: self.value(1),
            "multipleOf": lambda: choice((0.5, 2, 3)),
            "pattern": lambda: choice(("a", "^a", "b$", "^(a|b)$", "^a|b$", "^.$")),
            "propertyNames": lambda: choice(
                ({"pattern": "^[ab]$"}, {"enum": ["a", "c"]}, {"maxLength": 1}, {"minLength": 2})
            ),
            "patternProperties": lambda: {pattern: inner() for pattern in self.random.sample(("^a", "b", "^c$"), 2)},
            "uniqueItems": lambda: choice((True, False)),
        }


MAKERS = st.randoms(use_true_random=False).map(Maker)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
    """A schema with its definitions, and values."""
    maker = draw(MAKERS)
    return maker.whole(), [maker.value() for _ in range(15)]
