"""The strict form of a tool's specification, which providers of constrained function calling demand."""

from dataclasses import replace
from typing import cast

from taiwa.kernel.records import Json
from taiwa.kernel.values import ToolSpec

__all__ = ["strict"]

DROPPED = frozenset(("default", "title"))
NULL: dict[str, Json] = {"type": "null"}


def strict(spec: ToolSpec) -> ToolSpec:
    """Require every parameter; one that may be left out takes null instead, which a tool reads as left out."""
    return replace(spec, parameters=cast("dict[str, Json]", _strict(dict(spec.parameters))))


def _strict(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _strict(part) if key != "properties" else part for key, part in schema.items() if key not in DROPPED}
    properties = kept.get("properties")
    if isinstance(properties, dict):
        needed = kept.get("required")
        required = needed if isinstance(needed, list) else []
        kept["properties"] = {
            name: _strict(part) if name in required else _nullable(_strict(part)) for name, part in properties.items()
        }
        kept["required"] = list(properties)
        kept["additionalProperties"] = False
    return kept


def _nullable(schema: Json) -> Json:
    """Let a schema take null; an enum or a union stays one behind `anyOf`."""
    if (
        isinstance(schema, dict)
        and isinstance(schema.get("type"), str)
        and "enum" not in schema
        and "const" not in schema
    ):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, NULL]}
