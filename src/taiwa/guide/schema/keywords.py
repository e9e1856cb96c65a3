"""The keywords of JSON Schema: what each may hold, and what the engine makes of it."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeGuard, cast

from taiwa.kernel.records import Json

__all__ = [
    "ANNOTATIONS",
    "APPLICATORS",
    "FORMATS",
    "HOLDERS",
    "KINDS",
    "TYPES",
    "Schema",
    "bound",
    "child",
    "is_any",
    "is_object",
    "names",
    "types",
    "whole",
]

Schema: TypeAlias = Mapping[str, Json] | bool
TYPES = ("null", "boolean", "object", "array", "number", "string")
"""`integer` apart, which is a part of `number`."""

ANNOTATIONS = frozenset(
    """$comment $id $schema $anchor $dynamicAnchor $recursiveAnchor $vocabulary $defs definitions id title description default
    examples example deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema""".split()
)
"""Keywords that say nothing about which value is valid."""

FORMATS: Mapping[str, str] = {
    "date-time": "by its form: a leap second at any time",
    "time": "by its form: a leap second at any time",
} | dict.fromkeys("date duration email hostname ipv4 ipv6 uuid uri".split(), "")
"""The formats that the engine knows, with what it does not look at."""

APPLICATORS = frozenset(
    "$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if then else dependentSchemas dependencies".split()
)
"""What adds conditions to the same value from another schema."""

HOLDERS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords that hold schemas by name; the names themselves are no keywords."""


def is_schema(item: object) -> bool:
    """Say whether this has the form of a schema."""
    return isinstance(item, (Mapping, bool))


def _is_schemas(item: object) -> bool:
    return isinstance(item, list) and item != [] and all(map(is_schema, cast("list[object]", item)))


def _is_named(item: object) -> bool:
    return isinstance(item, Mapping) and all(map(is_schema, cast("Mapping[str, object]", item).values()))


def _is_names(item: object) -> bool:
    return isinstance(item, list) and all(isinstance(name, str) for name in cast("list[object]", item))


def _is_items(item: object) -> bool:
    return is_schema(item) or (isinstance(item, list) and all(map(is_schema, cast("list[object]", item))))


def _is_number(item: object) -> bool:
    return isinstance(item, (int, float)) and not isinstance(item, bool)


def _is_bound(item: object) -> bool:
    return _is_number(item) or isinstance(item, bool)


def _is_step(item: object) -> bool:
    return _is_number(item) and cast("float", item) > 0


def _is_count(item: object) -> bool:
    return _is_number(item) and cast("float", item) >= 0 and float(cast("float", item)).is_integer()


def _is_type(item: object) -> bool:
    known = (*TYPES, "integer")
    named: list[object] = cast("list[object]", item) if isinstance(item, list) else [item]
    return bool(named) and _is_names(named) and all(name in known for name in named)


def _is_dependencies(item: object) -> bool:
    return isinstance(item, Mapping) and all(
        is_schema(part) or _is_names(part) for part in cast("Mapping[str, object]", item).values()
    )


def _is_lists(item: object) -> bool:
    return isinstance(item, Mapping) and all(map(_is_names, cast("Mapping[str, object]", item).values()))


Check: TypeAlias = tuple[Callable[[object], bool], str]
_ONE: Check = (is_schema, "a schema")
_SOME: Check = (_is_schemas, "a list of schemas, and not empty")
_NAMED: Check = (_is_named, "an object of schemas")
_COUNT: Check = (_is_count, "a whole number that is not negative")
_NUMBER: Check = (_is_number, "a number")
_TEXT: Check = (lambda item: isinstance(item, str), "a text")
_FLAG: Check = (lambda item: isinstance(item, bool), "true or false")

KINDS: Mapping[str, Check] = {
    "type": (_is_type, "one or a list of: null boolean object array number integer string"),
    "enum": (lambda item: isinstance(item, list), "a list"),
    "const": (lambda _: True, "a value"),
    "$ref": _TEXT,
    "$dynamicRef": _TEXT,
    "$recursiveRef": _TEXT,
    "allOf": _SOME,
    "anyOf": _SOME,
    "oneOf": _SOME,
    "not": _ONE,
    "if": _ONE,
    "then": _ONE,
    "else": _ONE,
    "properties": _NAMED,
    "patternProperties": _NAMED,
    "additionalProperties": _ONE,
    "unevaluatedProperties": _ONE,
    "propertyNames": _ONE,
    "required": (lambda item: _is_names(item) or isinstance(item, bool), "a list of names"),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependencies": (_is_dependencies, "an object of schemas or lists of names"),
    "dependentRequired": (_is_lists, "an object of lists of names"),
    "dependentSchemas": _NAMED,
    "items": (_is_items, "a schema or a list of schemas"),
    "prefixItems": (_is_items, "a list of schemas"),
    "additionalItems": _ONE,
    "unevaluatedItems": _ONE,
    "contains": _ONE,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": _FLAG,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": (_is_bound, "a number"),
    "exclusiveMaximum": (_is_bound, "a number"),
    "multipleOf": (_is_step, "a number above 0"),
}
"""What a keyword may hold, and how to say so. A keyword that is not here has no meaning in JSON Schema."""


def is_object(item: object) -> TypeGuard[Mapping[str, Json]]:
    """Say whether this is a JSON object."""
    return isinstance(item, Mapping)


def is_any(schema: Schema) -> bool:
    """Say whether a schema lets everything through at first sight."""
    return schema is True or (is_object(schema) and not any(key in KINDS for key in schema))


def child(schema: Mapping[str, Json], keyword: str, default: Schema = True) -> Schema:
    """The schema that a keyword holds."""
    return cast("Schema", schema.get(keyword, default))


def names(schema: Mapping[str, Json], keyword: str = "required") -> tuple[str, ...]:
    """The names that a keyword lists."""
    listed = schema.get(keyword)
    return tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()


def whole(schema: Mapping[str, Json], keyword: str) -> int | None:
    """The whole number that a keyword holds."""
    held = schema.get(keyword)
    return int(cast("float", held)) if _is_count(held) else None


def types(schema: Mapping[str, Json]) -> frozenset[str]:
    """The types that a schema's own `type` leaves; `integer` stays beside `number`."""
    held = schema.get("type")
    if held is None:
        return frozenset(TYPES)
    return frozenset(kind for kind in (held if isinstance(held, list) else [held]) if isinstance(kind, str))


def bound(schema: Mapping[str, Json], side: str) -> tuple[float, bool] | None:
    """The bound on one side (`imum` is added): the number, and whether it is itself excluded."""
    edge, outer = schema.get(f"{side}imum"), schema.get(f"exclusive{side.title()}imum")
    found: list[tuple[float, bool]] = []
    if _is_number(edge):
        found.append((cast("float", edge), outer is True))
    if _is_number(outer):
        found.append((cast("float", outer), True))
    if not found:
        return None
    return max(found) if side == "min" else min(found, key=lambda pair: (pair[0], not pair[1]))
