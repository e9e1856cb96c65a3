"""One small value that fits a schema, where that is plain to see; for trying what was made of the schema."""

from collections.abc import Mapping
from typing import cast

from taiwa.guide.schema.keywords import Schema, bound, is_object, names, types, whole
from taiwa.kernel.records import Json

__all__ = ["sample"]

MOST_DEPTH = 6
HARD = frozenset(
    "$ref $dynamicRef allOf anyOf oneOf not if dependencies dependentRequired contains uniqueItems".split()
)
ORDER = ("string", "integer", "number", "boolean", "object", "array", "null")


def sample(schema: Schema, depth: int = 0) -> Json:
    """A value that fits; None where it is not plain which one does."""
    if not is_object(schema):
        return "text" if schema else None
    for keyword in ("examples", "enum"):
        listed = schema.get(keyword)
        if isinstance(listed, list) and listed:
            return listed[0]
    for keyword in ("const", "default", "example"):
        if schema.get(keyword) is not None:
            return schema[keyword]
    if depth > MOST_DEPTH or HARD & schema.keys():
        return None
    kind = next((kind for kind in ORDER if kind in types(schema)), "null")
    return _of_kind(kind, schema, depth)


def _of_kind(kind: str, schema: Mapping[str, Json], depth: int) -> Json:
    if kind == "string":
        hard = "pattern" in schema or "format" in schema
        return (
            None if hard else "text".ljust(whole(schema, "minLength") or 0, "x")[: whole(schema, "maxLength")] or None
        )
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return True
    if kind == "array":
        part = sample(cast("Schema", schema.get("items", True)), depth + 1)
        items: list[Json] = [part] * (whole(schema, "minItems") or 1)
        return None if part is None or isinstance(schema.get("prefixItems"), list) else items
    if kind != "object" or "minProperties" in schema:
        return None
    properties = cast("Mapping[str, Schema]", schema.get("properties") or {})
    made: dict[str, Json] = {}
    for name in [name for name in properties if name in names(schema)]:
        made[name] = sample(properties[name], depth + 1)
    return None if any(part is None for part in made.values()) or len(made) < len(set(names(schema))) else made


def _number(schema: Mapping[str, Json]) -> Json:
    if "multipleOf" in schema:
        return None
    low, high = bound(schema, "min"), bound(schema, "max")
    for guess in (1, 0, 2, *(round(edge[0]) + step for edge in (low, high) if edge for step in (0, 1, -1))):
        above = low is None or guess > low[0] or (guess == low[0] and not low[1])
        under = high is None or guess < high[0] or (guess == high[0] and not high[1])
        if above and under:
            return guess
    return None
