"""What a schema leaves open of types and values, and whether two schemas can share a value."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from taiwa.kernel.records import Json

__all__ = ["TYPES", "Schema", "apart", "kind_of", "kinds_of", "values_of"]

TYPES = ("object", "array", "string", "number", "boolean", "null")

Schema: TypeAlias = Mapping[str, Json]


def apart(parts: Sequence[Json]) -> bool:
    """Say whether no value can be of two schemas: by their types, or by a required property with other constants."""
    return all(_strangers(one, other) for number, one in enumerate(parts) for other in parts[number + 1 :])


def _strangers(one: Json, other: Json) -> bool:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return False
    if kinds_of(one).isdisjoint(kinds_of(other)):
        return True
    if values_of(one) and values_of(other):
        return _texts(one).isdisjoint(_texts(other))
    tags = dict(_tags(one)), dict(_tags(other))
    return any(tags[0][key].isdisjoint(tags[1][key]) for key in tags[0] if key in tags[1])


def kinds_of(schema: Schema) -> set[str]:
    """The types that a schema leaves open."""
    kinds = schema.get("type")
    if kinds is None and values_of(schema):
        return {kind_of(option) for option in values_of(schema)}
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else TYPES
    return {str(name) for name in names} | ({"integer"} if "number" in names else set())


def kind_of(data: Json) -> str:
    """The type of a value, by its narrowest name."""
    match data:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if data == int(data) else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def values_of(schema: Schema) -> list[Json]:
    """The values that `const` or `enum` lists."""
    if "const" in schema:
        return [schema["const"]]
    options = schema.get("enum", [])
    return options if isinstance(options, list) else []


def _texts(schema: Schema) -> set[str]:
    return {json.dumps(option, sort_keys=True) for option in values_of(schema)}


def _tags(schema: Schema) -> Iterator[tuple[str, set[str]]]:
    """The required properties of an object that are constants."""
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, Mapping) and isinstance(required, list) and schema.get("type") == "object":
        for key, part in properties.items():
            if key in required and isinstance(part, Mapping) and values_of(part):
                yield key, _texts(part)
