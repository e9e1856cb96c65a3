"""A schema whose values cannot hold the mark behind them: so a reader finds the end of a call where the guide put it."""

import re
from collections.abc import Mapping
from typing import cast

from taiwa.guide.schema.keywords import Schema, is_any, is_object, types
from taiwa.kernel.records import Json

__all__ = ["kept_apart", "without"]

ANY = "any"


def without(mark: str) -> str:
    """A pattern of the texts in which a mark does not stand; in quotes, their end may begin one.

    >>> [bool(re.search(without(">>"), text)) for text in ("a > b", "a >> b", "a >")]
    [True, False, True]
    """
    first, rest = mark[0], len(mark) - 1
    if mark != first * len(mark):
        return f"^[^{_in_class(first)}\\n]*$"
    ways = [
        f"[^{_in_class(first)}\\n]",
        *(f"{_one(first) * count}[^{_in_class(first)}\\n]" for count in range(1, rest + 1)),
    ]
    return f"^(?:{'|'.join(ways)})*{_one(first)}{{0,{rest}}}$"


def _in_class(char: str) -> str:
    return f"\\{char}" if char in r"\]^-[&~" else char


def _one(char: str) -> str:
    return re.escape(char) if not char.isalnum() and char not in "<>" else char


def kept_apart(schema: Mapping[str, Json], mark: str) -> dict[str, Json]:
    """The schema (a rewritten one) with no text in it, key or value, that could hold the mark.

    Raises:
        nothing: a listed word that holds the mark stays, and the trial of the grammar finds it.
    """
    rule = without(mark)
    made = _Restricting(rule).of(cast("Schema", schema))
    root: dict[str, Json] = dict(made) if is_object(made) else {}
    held = cast("dict[str, Json]", root.get("$defs") or {})
    return {**root, "$defs": {**held, ANY: _anything(rule)}}


def _anything(rule: str) -> Json:
    again: Json = {"$ref": f"#/$defs/{ANY}"}
    return {
        "anyOf": [
            {"type": ["null", "boolean", "number"]},
            {"type": "string", "pattern": rule},
            {"type": "array", "items": again},
            {"type": "object", "patternProperties": {rule: again}, "additionalProperties": False},
        ]
    }


class _Restricting:
    def __init__(self, rule: str) -> None:
        self.rule = rule

    def of(self, schema: Schema) -> Schema:
        if schema is False:
            return False
        if is_any(schema) or not is_object(schema):
            return {"$ref": f"#/$defs/{ANY}"}
        made = {keyword: self._held(keyword, held) for keyword, held in schema.items()}
        if {"$ref", "anyOf", "enum", "const"} & made.keys():
            return made
        kinds = types(schema)
        if "object" in kinds:
            self._object(made)
        if "array" in kinds:
            made.setdefault("items", {"$ref": f"#/$defs/{ANY}"})
        if "string" in kinds:
            self._string(made)
        return made

    def _held(self, keyword: str, held: Json) -> Json:
        if keyword in ("properties", "$defs", "patternProperties") and isinstance(held, dict):
            return {name: cast("Json", self.of(cast("Schema", part))) for name, part in held.items()}
        if keyword in ("anyOf", "allOf", "prefixItems") and isinstance(held, list):
            return [cast("Json", self.of(cast("Schema", part))) for part in held]
        if keyword in ("items", "additionalProperties"):
            return cast("Json", self.of(cast("Schema", held)))
        return held

    def _object(self, made: dict[str, Json]) -> None:
        """Bind free keys; where listed keys have a rule of their own beside them, the keys stay as they are."""
        rest = made.get("additionalProperties", {"$ref": f"#/$defs/{ANY}"})
        free = "additionalProperties" not in made
        if rest is not False and "patternProperties" not in made and (free or not made.get("properties")):
            made["patternProperties"] = {self.rule: {} if made.get("properties") else rest}
            made["additionalProperties"] = False

    def _string(self, made: dict[str, Json]) -> None:
        if "pattern" not in made:
            made["pattern"] = self.rule
        else:
            made["allOf"] = [*cast("list[Json]", made.get("allOf", [])), {"pattern": self.rule}]
