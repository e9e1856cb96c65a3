"""Schemas, and for each the JSON that tempts a model to break it: the material of a probe."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from taiwa.kernel.records import Json
from taiwa.models.loose import item_at

__all__ = ["OTHER", "RULES", "WORD", "Rule", "matches"]

WORD, OTHER = "qz7", "kw3"
"""Words that no model says of itself."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One keyword: a schema, the JSON that tempts to break it, and what an answer that keeps it looks like."""

    keyword: str
    schema: Mapping[str, Json]
    temptation: str
    kept: Callable[[Json], bool]


def _object(value: Json, *more: str) -> dict[str, Json]:
    """The schema of an object with a member `v`, and others that are always one word."""
    properties: dict[str, Json] = {"v": value}
    for name in more:
        properties[name] = {"enum": [WORD]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _member(keyword: str, schema: Json, temptation: str, kept: Callable[[Json], bool]) -> Rule:
    """A rule about the member `v` of an object: strict servers take nothing but objects."""
    return Rule(
        keyword, _object(schema), f'{{"v": {temptation}}}', lambda data: _names(data) == ["v"] and kept(item_at(data, "v"))
    )  # fmt: skip


def _names(data: Json) -> list[str]:
    return sorted(data) if isinstance(data, dict) else []


def _is_number(value: Json, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def matches(pattern: str) -> Callable[[Json], bool]:
    """Tell texts that match a pattern from all other JSON."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _one_of_two(value: Json) -> bool:
    return value in (WORD, OTHER)


WORD_BY_NAME: dict[str, Json] = {"$defs": {"word": {"enum": [WORD]}}}
LETTERS: list[Json] = ["a", "b", "c", "d", "e", "f"]
EITHER: Json = [{"const": WORD}, {"const": OTHER}]
RULES = (
    _member("enum", {"enum": [WORD, OTHER]}, '"blue"', _one_of_two),
    Rule("required", _object({"enum": [WORD]}, "w"), "{}", lambda data: _names(data) == ["v", "w"]),
    Rule(
        "additionalProperties", _object({"enum": [WORD]}), f'{{"v": "{WORD}", "w": 1}}', lambda data: _names(data) == ["v"]
    ),
    _member("const", {"const": WORD}, '"blue"', lambda v: v == WORD),
    _member(
        "integer bounds", {"type": "integer", "minimum": 41, "maximum": 43}, "7",
        lambda v: isinstance(v, int) and _is_number(v, 41, 43),
    ),
    _member(
        "number bounds", {"type": "number", "minimum": 0.25, "maximum": 0.75}, "12.5", lambda v: _is_number(v, 0.25, 0.75)
    ),
    _member(
        "multipleOf", {"type": "integer", "minimum": 1, "maximum": 999, "multipleOf": 37}, "5",
        lambda v: isinstance(v, int) and v > 0 and v % 37 == 0,
    ),
    _member("maxLength", {"type": "string", "maxLength": 3}, '"a longer text"', matches(r"(?s).{0,3}")),
    _member("pattern", {"type": "string", "pattern": "^[xyz]{4}$"}, '"abcd"', matches("[xyz]{4}")),
    _member("format", {"type": "string", "format": "date"}, '"tomorrow"', matches(r"\d{4}-\d\d-\d\d")),
    _member(
        "items bounds", {"type": "array", "items": {"enum": [WORD]}, "minItems": 2, "maxItems": 3}, "[]",
        lambda v: isinstance(v, list) and 2 <= len(v) <= 3,
    ),
    _member(
        "uniqueItems",
        {"type": "array", "items": {"enum": LETTERS}, "minItems": 6, "maxItems": 6, "uniqueItems": True},
        '["a", "a", "a", "a", "a", "a"]',
        lambda v: isinstance(v, list) and sorted(map(str, v)) == LETTERS,
    ),
    _member("oneOf", {"oneOf": EITHER}, '"blue"', _one_of_two),
    _member("anyOf", {"anyOf": EITHER}, '"blue"', _one_of_two),
    Rule(
        "$ref", _object({"$ref": "#/$defs/word"}) | WORD_BY_NAME, '{"v": "blue"}',
        lambda data: data == {"v": WORD},
    ),
)  # fmt: skip
