"""Whether two schemas have no value in common; only what is proved counts. So `oneOf` may be read as `anyOf`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from taiwa.guide.schema.document import Document, Place
from taiwa.guide.schema.keywords import TYPES, Schema, bound, child, is_object, names, types, whole
from taiwa.kernel.records import Json

__all__ = ["apart", "disjoint", "kind_of", "same"]

MOST_DEPTH = 12
MOST_PAIRS = 5_000


def kind_of(value: Json) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def same(one: Json, other: Json) -> bool:
    """Whether two values are equal as JSON Schema means it: 1 is 1.0, and true is not 1."""
    return _plain(one) == _plain(other)


def _plain(value: Json) -> str:
    return json.dumps(_numbered(value), sort_keys=True)


def _numbered(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_numbered(part) for part in value]
    if isinstance(value, dict):
        return {key: _numbered(part) for key, part in value.items()}
    return value


def apart(schemas: Sequence[Place], document: Document, beside: Place) -> bool:
    """Say whether no value fits two of the schemas and the one that they stand beside."""
    views = [_View(place, document) for place in schemas]
    for view in views:
        view.add(beside)
    if _told_apart(views):
        return True
    if len(schemas) * (len(schemas) - 1) // 2 > MOST_PAIRS:
        return False
    return all(disjoint(one, other) for place, one in enumerate(views) for other in views[place + 1 :])


def _told_apart(views: "list[_View]") -> bool:
    """Say whether lists of values tell the schemas apart, their own or those of one key that every object must have."""
    if _listed_apart([view.values() for view in views]):
        return True
    if not views or any(view.kinds() - {"object"} for view in views):
        return False
    shared = views[0].required()
    for view in views:
        shared &= view.required()
    return any(_listed_apart([view.values_of(name) for view in views]) for name in sorted(shared))


def _listed_apart(lists: "Iterable[list[Json] | None]") -> bool:
    seen: set[str] = set()
    for values in lists:
        plain = {_plain(value) for value in values or ()}
        if values is None or seen & plain:
            return False
        seen |= plain
    return True


class _View:
    """A schema seen as all the conditions that hold for its value: its own, and those of `$ref` and `allOf`."""

    def __init__(self, place: Place, document: Document, depth: int = 0) -> None:
        self.document = document
        self.depth = depth
        self.conditions: list[tuple[Mapping[str, Json], str]] = []
        self.never = False
        self._gather(place, 0)

    def add(self, place: Place) -> None:
        """Let the conditions of one more schema hold."""
        self._gather(place, 0)

    def _gather(self, place: Place, steps: int) -> None:
        if place.schema is False:
            self.never = True
        if not is_object(place.schema) or steps > MOST_DEPTH or self.document.tired():
            return
        schema = place.schema
        self.conditions.append((schema, place.base))
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found = self.document.find(reference, place.base)
            if found is not None:
                self._gather(found, steps + 1)
        for part in cast("list[Schema]", schema.get("allOf") or []):
            self._gather(Place(part, place.pointer, place.base), steps + 1)

    def kinds(self) -> frozenset[str]:
        """The types that a value of the schema can have; `integer` is `number` here."""
        left = frozenset(TYPES)
        for schema, _ in self.conditions:
            left &= {"number" if kind == "integer" else kind for kind in types(schema)}
            values = self._listed(schema)
            if values is not None:
                left &= {kind_of(value) for value in values}
        return left

    def values(self) -> list[Json] | None:
        """The values that a `const` or `enum` lists, if there is one."""
        for schema, _ in self.conditions:
            found = self._listed(schema)
            if found is not None:
                return found
        return None

    def values_of(self, name: str) -> list[Json] | None:
        """The values that are listed for a key, if they are."""
        return next((found for view in self.properties(name) if (found := view.values()) is not None), None)

    @staticmethod
    def _listed(schema: Mapping[str, Json]) -> list[Json] | None:
        if "const" in schema:
            return [schema["const"]]
        listed = schema.get("enum")
        return listed if isinstance(listed, list) else None

    def branches(self) -> "Iterable[list[_View]]":
        """What the alternatives of the schema are, for each `anyOf` and `oneOf`."""
        for schema, base in self.conditions:
            for keyword in ("anyOf", "oneOf"):
                listed = schema.get(keyword)
                if isinstance(listed, list) and self.depth < MOST_DEPTH:
                    yield [self._inner(cast("Schema", part), base) for part in listed]

    def required(self) -> frozenset[str]:
        """The keys that an object of the schema must have."""
        return frozenset(name for schema, _ in self.conditions for name in names(schema))

    def properties(self, name: str) -> "list[_View]":
        """The conditions on what an object of the schema holds under a key."""
        found: list[_View] = []
        for schema, base in self.conditions:
            listed = schema.get("properties")
            if is_object(listed) and name in listed:
                found.append(self._inner(cast("Schema", listed[name]), base))
            elif "additionalProperties" in schema and not schema.get("patternProperties"):
                found.append(self._inner(child(schema, "additionalProperties"), base))
        return found

    def _inner(self, schema: Schema, base: str) -> "_View":
        return _View(Place(schema, "", base), self.document, self.depth + 1)


def disjoint(one: _View, other: _View) -> bool:
    """Say whether no value fits both; False where that is not proved."""
    if one.never or other.never:
        return True
    if max(one.depth, other.depth) > MOST_DEPTH or one.document.tired():
        return False
    if any(all(disjoint(branch, other) for branch in branches) for branches in one.branches()):
        return True
    if any(all(disjoint(one, branch) for branch in branches) for branches in other.branches()):
        return True
    common = one.kinds() & other.kinds()
    listed, also = one.values(), other.values()
    if listed is not None and all(_misses(value, other) for value in listed):
        return True
    if also is not None and all(_misses(value, one) for value in also):
        return True
    proofs = {"object": _objects, "array": _arrays, "string": _strings, "number": _numbers}
    return all(kind in proofs and proofs[kind](one, other) for kind in common)


def _misses(value: Json, view: _View) -> bool:
    """Say whether a value plainly does not fit."""
    listed = view.values()
    if kind_of(value) not in view.kinds() or (listed is not None and not any(same(value, each) for each in listed)):
        return True
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        edges = [(bound(schema, "min"), bound(schema, "max")) for schema, _ in view.conditions]
        return any(_outside(value, low, high) for low, high in edges)
    if isinstance(value, str):
        lengths = [(whole(schema, "minLength"), whole(schema, "maxLength")) for schema, _ in view.conditions]
        return any(len(value) < (low or 0) or (high is not None and len(value) > high) for low, high in lengths)
    return False


def _outside(value: float, low: tuple[float, bool] | None, high: tuple[float, bool] | None) -> bool:
    below = low is not None and (value < low[0] or (value == low[0] and low[1]))
    return below or (high is not None and (value > high[0] or (value == high[0] and high[1])))


def _objects(one: _View, other: _View) -> bool:
    return any(
        any(disjoint(mine, theirs) for mine in one.properties(name) or [_ANYTHING] for theirs in other.properties(name))
        or any(mine.never for mine in one.properties(name))
        for name in sorted(one.required() | other.required())
    )


def _arrays(one: _View, other: _View) -> bool:
    return _lengths(one, other, "Items")


def _strings(one: _View, other: _View) -> bool:
    return _lengths(one, other, "Length")


def _lengths(one: _View, other: _View, what: str) -> bool:
    least = [
        max((whole(schema, f"min{what}") or 0 for schema, _ in view.conditions), default=0) for view in (one, other)
    ]
    return any(
        most is not None and least[1 - side] > most
        for side, view in enumerate((one, other))
        for most in (whole(schema, f"max{what}") for schema, _ in view.conditions)
    )


def _numbers(one: _View, other: _View) -> bool:
    return any(
        low is not None and high is not None and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])))
        for lower, upper in ((one, other), (other, one))
        for low in (bound(schema, "min") for schema, _ in lower.conditions)
        for high in (bound(schema, "max") for schema, _ in upper.conditions)
    )


_ANYTHING = _View(Place(True, "", ""), Document(True))
