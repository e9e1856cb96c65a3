"""Whether some finite value fits a schema: a guide under one that none fits would never come to an end."""

from collections.abc import Mapping
from typing import cast

from taiwa.guide.schema.disjoint import kind_of
from taiwa.guide.schema.document import below
from taiwa.guide.schema.keywords import Schema, bound, child, names, types, whole
from taiwa.kernel.records import Json

__all__ = ["blocked"]

MOST_ROUNDS = 64


def blocked(schema: Mapping[str, Json], origins: Mapping[str, str]) -> str | None:
    """The pointer of the schema that no finite value fits, None where nothing of that kind is found.

    `schema` is a rewritten one; `origins` has the places of its `$defs`.
    """
    held = cast("Mapping[str, Schema]", schema.get("$defs") or {})
    search = _Search({"#": schema, **{f"#/$defs/{name}": part for name, part in held.items()}})
    if search.settle():
        return None
    places = {"#": "", **{f"#/$defs/{name}": origins.get(name, "") for name in held}}
    return search.place("#", places)


class _Search:
    """The least fixed point: a schema has a finite value if the schemas that it needs have one."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self.named = named
        self.fine: set[str] = set()

    def settle(self) -> bool:
        """Whether the root has a finite value, or that could not be settled in time."""
        for _ in range(MOST_ROUNDS):
            more = {name for name, schema in self.named.items() if name not in self.fine and self.finite(schema)}
            self.fine |= more
            if "#" in self.fine:
                return True
            if not more:
                return False
        return True

    def finite(self, schema: Schema) -> bool:
        """Whether a finite value fits, with what is known so far of the named schemas."""
        return not isinstance(self.fault(schema, ""), str)

    def fault(self, schema: Schema, pointer: str) -> str | None:
        """The pointer of what keeps every finite value out."""
        if isinstance(schema, bool):
            return None if schema else pointer
        if schema.get("enum") == []:
            return pointer
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in self.fine:
            return reference
        for number, part in enumerate(cast("list[Schema]", schema.get("allOf") or [])):
            found = self.fault(part, below(pointer, "allOf", number))
            if found is not None:
                return found
        options = cast("list[Schema]", schema.get("anyOf") or [])
        faults = [self.fault(part, below(pointer, "anyOf", number)) for number, part in enumerate(options)]
        if faults and all(found is not None for found in faults):
            return faults[0]
        if "const" in schema or "enum" in schema:
            listed = [schema["const"]] if "const" in schema else cast("list[Json]", schema["enum"])
            held = types(schema) | frozenset({"number"} if "integer" in types(schema) else ())
            return None if any(kind_of(value) in held for value in listed) else pointer
        kinds = [self._of_kind(kind, schema, pointer) for kind in sorted(types(schema), reverse=True)]
        return None if any(found is None for found in kinds) else kinds[0]

    def _of_kind(self, kind: str, schema: Mapping[str, Json], pointer: str) -> str | None:
        if kind in ("number", "integer"):
            low, high = bound(schema, "min"), bound(schema, "max")
            crossed = low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])))
            return pointer if crossed else None
        if kind == "string":
            return _crossed(schema, "Length", pointer)
        if kind == "array":
            return _crossed(schema, "Items", pointer) or self._items(schema, pointer)
        return self._properties(schema, pointer) if kind == "object" else None

    def _items(self, schema: Mapping[str, Json], pointer: str) -> str | None:
        first = cast("list[Schema]", schema.get("prefixItems") or [])
        least = whole(schema, "minItems") or 0
        for number, part in enumerate(first[:least]):
            found = self.fault(part, below(pointer, "prefixItems", number))
            if found is not None:
                return found
        return self.fault(child(schema, "items"), below(pointer, "items")) if least > len(first) else None

    def _properties(self, schema: Mapping[str, Json], pointer: str) -> str | None:
        properties = cast("Mapping[str, Schema]", schema.get("properties") or {})
        for name in names(schema):
            if name in properties:
                found = self.fault(properties[name], below(pointer, "properties", name))
            elif schema.get("patternProperties"):
                found = None
            else:
                found = self.fault(child(schema, "additionalProperties"), below(pointer, "additionalProperties"))
            if found is not None:
                return found
        return None

    def place(self, name: str, places: Mapping[str, str]) -> str:
        """Follow the faults from a named schema to the last place that is not a reference."""
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            found = self.fault(self.named.get(name, True), "")
            if found is None:
                break
            if found not in self.named:
                return places.get(name, "") + found
            name = found
        return places.get(name, "")


def _crossed(schema: Mapping[str, Json], what: str, pointer: str) -> str | None:
    least, most = whole(schema, f"min{what}"), whole(schema, f"max{what}")
    return pointer if least is not None and most is not None and least > most else None
