"""What is written for types, values, numbers, strings and arrays."""

from decimal import Decimal
from functools import lru_cache
from math import copysign, inf, isfinite, lcm, nextafter
from typing import cast

from taiwa.guide.schema.conditions import Conditions
from taiwa.guide.schema.keywords import FORMATS, is_any, types, whole
from taiwa.guide.schema.keywords import Schema as SchemaOf
from taiwa.guide.verdict import verdict
from taiwa.kernel.records import Json

__all__ = ["array_part", "scalar_part"]

MOST_EXACT = 1 << 53
"""Above it the engine's numbers are not exact."""
IN_CALENDAR = "^(?:[1-9]|0[1-9]|00[1-9]|000[1-9])"
LEAP_DAYS = (
    "^(?:[0-9]{4}-(?:[^0]|0[^2])|[0-9]{4}-02-(?:[01]|2[0-8])|"
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
"""The engine takes 29 February for a date in any year, and has a year 0000."""
LEAST = 1e-30
"""What is nearer to an excluded 0 is left out with it."""
MOST_PLACES = 12


def scalar_part(conditions: Conditions) -> None:
    """Write `type`, `const`, `enum`, numbers and strings."""
    schema = conditions.schema
    conditions.copy("type")
    for keyword in ("const", "enum"):
        if keyword in schema and not _is_exact(schema[keyword]):
            conditions.miss(keyword, f"numbers beyond {MOST_EXACT} are not exact")
        else:
            conditions.copy(keyword)
    if types(schema) & {"number", "integer"}:
        _numbers(conditions)
    if "string" in types(schema):
        _strings(conditions)


def _is_exact(value: Json) -> bool:
    """Say whether the engine writes a value as it stands."""
    if isinstance(value, (list, dict)):
        return all(map(_is_exact, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (str, bool)) or value is None or (isfinite(value) and abs(value) <= MOST_EXACT)


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
                _excluded(conditions, keyword, cast("float", schema[plain]))
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
        return
    ways = _ways(cast("float", held)) if keyword == "multipleOf" else []
    if ways:
        conditions.keep(keyword)
        conditions.also({"anyOf": [*ways, {"type": ["null", "boolean", "object", "array", "string"]}]})
        return
    conditions.copy(keyword)
    _excluded(conditions, keyword, cast("float", held))


def _excluded(conditions: Conditions, keyword: str, held: float) -> None:
    """Say once more that a bound is excluded: the engine lets 10 itself through where what lies above it ends before 11."""
    outwards = {"exclusiveMinimum": 1, "exclusiveMaximum": -1}.get(keyword, 0)
    if outwards and float(held).is_integer() and outwards * held >= 0 and "number" in types(conditions.schema):
        edge = nextafter(held, outwards * inf) if held else copysign(LEAST, outwards)
        conditions.also({keyword.replace("exclusiveM", "m"): edge})


def _ways(step: float) -> list[Json]:
    """Steps that together reach the same numbers with fewer places: the engine wants 0.50 for a multiple of 0.25, or 1."""
    _, digits, exponent = Decimal(repr(step)).normalize().as_tuple()
    places, whole_step = -int(exponent), int("".join(map(str, digits)))
    if not 1 < places <= MOST_PLACES or whole_step == 1:
        return []
    steps = dict.fromkeys(lcm(whole_step, 10**shift) / 10**places for shift in range(places))
    return [{"type": "number", "multipleOf": each} for each in steps]


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
        if held.startswith("date"):
            conditions.also({"allOf": [{"pattern": IN_CALENDAR}, {"pattern": LEAP_DAYS}]})
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
