"""What is written for types, values, numbers, strings and arrays."""

from functools import lru_cache
from typing import cast

from taiwa.guide.schema.conditions import Conditions
from taiwa.guide.schema.keywords import FORMATS, is_any, types, whole
from taiwa.guide.schema.keywords import Schema as SchemaOf
from taiwa.guide.verdict import verdict
from taiwa.kernel.records import Json

__all__ = ["array_part", "scalar_part"]

MOST_EXACT = 1 << 53
"""Above it the engine's numbers are not exact."""
MOST_ITEMS = 100_000


def scalar_part(conditions: Conditions) -> None:
    """Write `type`, `const`, `enum`, numbers and strings."""
    schema = conditions.schema
    conditions.copy("type", "const", "enum")
    if types(schema) & {"number", "integer"}:
        _numbers(conditions)
    if "string" in types(schema):
        _strings(conditions)


def _numbers(conditions: Conditions) -> None:
    schema = conditions.schema
    for keyword in ("minimum", "maximum", "multipleOf"):
        _number(conditions, keyword)
    for keyword, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        held = schema.get(keyword)
        if isinstance(held, bool):
            if held and plain in schema:
                conditions.keep(keyword)
                conditions.put(keyword, schema[plain])
        else:
            _number(conditions, keyword)


def _number(conditions: Conditions, keyword: str) -> None:
    held = conditions.schema.get(keyword)
    if held is None:
        return
    if abs(cast("float", held)) > MOST_EXACT:
        conditions.miss(keyword, f"numbers beyond {MOST_EXACT} are not exact")
        return
    fault = verdict({"type": "number", keyword: held})
    if fault:
        conditions.miss(keyword, fault)
    else:
        conditions.copy(keyword)


def _strings(conditions: Conditions) -> None:
    schema = conditions.schema
    conditions.copy("minLength", "maxLength")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        fault = pattern_fault(pattern)
        if fault:
            conditions.miss("pattern", fault)
        else:
            conditions.copy("pattern")
    held = schema.get("format")
    if not isinstance(held, str):
        return
    if held in FORMATS:
        conditions.keep("format", FORMATS[held])
        conditions.put("format", held)
    else:
        conditions.miss("format", f"{held!r} is none of {' '.join(FORMATS)}")


@lru_cache(maxsize=1_024)
def pattern_fault(pattern: str) -> str:
    """Why a pattern cannot be enforced; '' if it can."""
    return verdict({"type": "string", "pattern": pattern})


def array_part(conditions: Conditions) -> None:
    """Write what arrays hold."""
    schema = conditions.schema
    if "array" not in types(schema):
        return
    conditions.copy("minItems", "maxItems")
    listed = next((key for key in ("prefixItems", "items") if isinstance(schema.get(key), list)), "")
    rest = _rest_keyword(schema, listed)
    if listed:
        conditions.keep(listed)
        conditions.put("prefixItems", cast("list[Json]", conditions.inner_list(listed)))
    if rest:
        conditions.keep(rest)
        conditions.put("items", cast("Json", conditions.inner(rest)))
    if schema.get("uniqueItems") is True:
        if (whole(schema, "maxItems") or 0) == 1 or whole(schema, "maxItems") == 0:
            conditions.keep("uniqueItems")
        else:
            conditions.miss("uniqueItems", "what was written before is not compared")
    _contains(conditions)


def _rest_keyword(schema: SchemaOf, listed: str) -> str:
    """The keyword that holds the schema of the items that are not listed by place."""
    held = cast("dict[str, Json]", schema)
    if listed == "items":
        return "additionalItems" if "additionalItems" in held else ""
    return "items" if "items" in held and not isinstance(held["items"], list) else ""


def _contains(conditions: Conditions) -> None:
    schema = conditions.schema
    if "contains" in schema:
        trivial = whole(schema, "minContains") == 0 and "maxContains" not in schema
        if not trivial:
            conditions.miss("contains", "how many items fit is not counted")
    if "unevaluatedItems" in schema and not is_any(cast("SchemaOf", schema["unevaluatedItems"])):
        conditions.miss("unevaluatedItems", "which items another schema has seen is not known")
