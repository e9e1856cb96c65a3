"""What is written for objects."""

from collections.abc import Mapping
from typing import cast

from taiwa.guide.schema.conditions import Conditions
from taiwa.guide.schema.keywords import APPLICATORS, KINDS, Schema, child, is_any, is_object, names, types, whole
from taiwa.guide.schema.scalars import pattern_fault
from taiwa.guide.verdict import verdict
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["object_part"]

MOST_CHOICES = 32
MOST_KEYS = 3_000
"""Beyond it the engine's time grows with the square: a second for 3,000 keys."""


def object_part(conditions: Conditions) -> None:
    """Write what objects hold."""
    schema = conditions.schema
    if "object" not in types(schema):
        return
    if isinstance(schema.get("required"), list):
        conditions.copy("required")
    elif schema.get("required") is True:
        conditions.miss(
            "required", "true or false is the notation of an old draft: list the names in the object's schema"
        )
    properties = schema.get("properties")
    if is_object(properties):
        if len(properties) > MOST_KEYS:
            raise InputError(
                f"{conditions.place.pointer or '/'}: properties has {len(properties)} keys, {MOST_KEYS} at most"
            )
        conditions.keep("properties")
        first = [name for name in conditions.writer.order if name in properties]
        names_in_order = [*first, *(name for name in properties if name not in first)]
        conditions.put(
            "properties", {name: cast("Json", conditions.inner("properties", name)) for name in names_in_order}
        )
    enforced = _patterns(conditions)
    _names(conditions)
    _unevaluated(conditions, patterns=enforced)
    _least(conditions)
    _most(conditions)


def _patterns(conditions: Conditions) -> bool:
    """Write `patternProperties`; where they cannot be, neither can what holds for all other keys. Say whether they are."""
    schema = conditions.schema
    held = schema.get("patternProperties")
    if is_object(held) and held:
        fault = next((fault for pattern in held if (fault := pattern_fault(pattern))), "")
        fault = fault or verdict({"type": "object", "patternProperties": dict.fromkeys(held, True)})
        if conditions.writer.merged:
            fault = fault or "the patterns of objects that hold together are not told apart"
        if fault:
            conditions.miss("patternProperties", fault)
            if "additionalProperties" in schema:
                conditions.miss("additionalProperties", "patternProperties, which it leaves out, is not enforced")
            return False
        conditions.keep("patternProperties")
        written = {pattern: cast("Json", conditions.inner("patternProperties", pattern)) for pattern in held}
        conditions.put("patternProperties", written)
    if "additionalProperties" in schema:
        conditions.keep("additionalProperties")
        conditions.put("additionalProperties", cast("Json", conditions.inner("additionalProperties")))
    return True


def _names(conditions: Conditions) -> None:
    """Write `propertyNames`: as a pattern for keys where no other rule for keys stands beside it."""
    held = conditions.schema.get("propertyNames")
    if held is None or is_any(cast("Schema", held)):
        return
    pattern = _pattern_of(held)
    if pattern is None or pattern_fault(pattern) or conditions.writer.merged:
        conditions.miss("propertyNames", "only texts by their pattern, their length or a list of them")
        return
    conditions.keep("propertyNames")
    conditions.also({"patternProperties": {pattern: True}, "additionalProperties": False})


def _pattern_of(schema: Json) -> str | None:
    """The one pattern that says what a schema asks of a text."""
    if not is_object(schema):
        return None
    asked = {key for key in schema if key in KINDS} - {"type"}
    if "string" not in types(schema) or len(asked) == 0:
        return None
    if asked <= {"const", "enum"} and len(asked) == 1:
        listed = [schema["const"]] if "const" in schema else cast("list[Json]", schema["enum"])
        words = [word for word in listed if isinstance(word, str)]
        return f"^(?:{'|'.join(map(_literal, words))})$" if words else None
    if asked <= {"minLength", "maxLength"}:
        most = whole(schema, "maxLength")
        return rf"^[\s\S]{{{whole(schema, 'minLength') or 0},{'' if most is None else most}}}$"
    return cast("str", schema["pattern"]) if asked == {"pattern"} else None


def _literal(word: str) -> str:
    return "".join(f"\\{char}" if char in r".^$*+?{}[]\|()-/" else char for char in word)


def _unevaluated(conditions: Conditions, *, patterns: bool) -> None:
    """Write `unevaluatedProperties`: beside no schema that could see further keys it is `additionalProperties`."""
    schema = conditions.schema
    if "unevaluatedProperties" not in schema or is_any(child(schema, "unevaluatedProperties")):
        return
    if any(key in schema for key in APPLICATORS) or "additionalProperties" in schema:
        conditions.miss("unevaluatedProperties", "which keys another schema has seen is not known")
    elif not patterns:
        conditions.miss("unevaluatedProperties", "patternProperties, which it leaves out, is not enforced")
    else:
        conditions.keep("unevaluatedProperties")
        conditions.put("additionalProperties", cast("Json", conditions.inner("unevaluatedProperties")))


def _is_closed(schema: Mapping[str, Json]) -> bool:
    rest = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    return rest is False and not schema.get("patternProperties")


def _least(conditions: Conditions) -> None:
    """Write `minProperties` where one key more than the required ones is asked for.

    More cannot be asked of the engine, which would count a key that is written twice as two.
    """
    schema = conditions.schema
    least = whole(schema, "minProperties") or 0
    required = set(names(schema))
    optional = [name for name in cast("Mapping[str, Json]", schema.get("properties") or {}) if name not in required]
    closed = _is_closed(schema)
    if least <= len(required):
        if least > 0:
            conditions.keep("minProperties")
    elif least > len(required) + 1 or len(optional) > MOST_CHOICES or not (closed or not conditions.writer.merged):
        conditions.miss("minProperties", "a key that is written twice would be counted twice")
    else:
        conditions.keep("minProperties")
        cases: list[Json] = [{"type": "object", "required": [name]} for name in optional]
        if not closed:
            none: dict[str, Json] = dict.fromkeys(optional, False)
            cases.append({"type": "object", "properties": none, "minProperties": least})
        others: Json = {"type": ["null", "boolean", "array", "number", "string"]}
        conditions.also({"anyOf": [*cases, others]})


def _most(conditions: Conditions) -> None:
    schema = conditions.schema
    most = whole(schema, "maxProperties")
    if most is None:
        return
    listed = cast("Mapping[str, Json]", schema.get("properties") or {})
    required = set(names(schema))
    if _is_closed(schema) and len(listed) <= most:
        conditions.keep("maxProperties")
    elif set(listed) <= required and not conditions.writer.merged and not any(key in schema for key in APPLICATORS):
        conditions.copy("maxProperties")
    else:
        conditions.miss("maxProperties", "optional keys are not counted")
