"""What values a JSON Schema allows: whether two schemas exclude each other, what one excludes, and whether any value is finite.

`oneOf` may be enforced as `anyOf` if its branches are proved disjoint; `not` and `if` if their complement is exact.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias, cast

from taiwa.json_schema import (
    ANNOTATIONS,
    KEYWORDS,
    ROOT,
    TYPES,
    Document,
    Schema,
    SchemaLocation,
    bound,
    child,
    has_type,
    is_object,
    join_pointer,
    json_type,
    listed_values,
    names,
    subschemas,
    types,
    whole,
)
from taiwa.kernel.serialization import Json

MAX_DEPTH = 12
MAX_PAIRS = 5_000
MAX_NESTED = 8
MAX_WORDS = 200
MAX_ROUNDS = 64
Bound: TypeAlias = tuple[float, bool]
"""A number, and whether it is itself excluded."""
ANYTHING = r"[\s\S]*"


# --- disjointness -----------------------------------------------------------------------------------------------------


def equal_json(one: Json, other: Json) -> bool:
    """Return whether two values are equal in JSON Schema: 1 equals 1.0, and true does not equal 1."""
    return _canonical(one) == _canonical(other)


def _canonical(value: Json) -> str:
    return json.dumps(_whole_floats_as_integers(value), sort_keys=True)


def _whole_floats_as_integers(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole_floats_as_integers(part) for part in value]
    if isinstance(value, dict):
        return {key: _whole_floats_as_integers(part) for key, part in value.items()}
    return value


def are_disjoint(schemas: Sequence[Schema], document: Document, *, beside: Schema = True, base: str = ROOT) -> bool:
    """Return whether it is proved that no value is valid under two of the schemas and under `beside`.

    `base` is the base URI of the references in all of them.

    >>> are_disjoint([{"type": "string"}, {"const": 1}], Document(True))
    True
    """
    views = [_Conjunction(schema, base, document) for schema in schemas]
    for view in views:
        view.add(beside, base)
    if _have_disjoint_values(views):
        return True
    if len(schemas) * (len(schemas) - 1) // 2 > MAX_PAIRS:
        return False
    return all(_disjoint(one, other) for number, one in enumerate(views) for other in views[number + 1 :])


def _have_disjoint_values(views: "list[_Conjunction]") -> bool:
    """Return whether the schemas list different values, or one key that all objects require has different values."""
    if _share_no_value([view.values() for view in views]):
        return True
    if not views or any(view.types() - {"object"} for view in views):
        return False
    shared = views[0].required()
    for view in views:
        shared &= view.required()
    return any(_share_no_value([view.values_of(name) for view in views]) for name in sorted(shared))


def _share_no_value(lists: "Iterable[list[Json] | None]") -> bool:
    seen: set[str] = set()
    for values in lists:
        keys = {_canonical(value) for value in values or ()}
        if values is None or seen & keys:
            return False
        seen |= keys
    return True


class _Conjunction:
    """All conditions on one value: those of a schema, and of its `$ref` and `allOf`."""

    def __init__(self, schema: Schema, base: str, document: Document, depth: int = 0) -> None:
        self.document = document
        self.depth = depth
        self.conditions: list[tuple[Mapping[str, Json], str]] = []
        self.never = False
        self.add(schema, base)

    def add(self, schema: Schema, base: str, steps: int = 0) -> None:
        """Add the conditions of one more schema."""
        if schema is False:
            self.never = True
        if not is_object(schema) or steps > MAX_DEPTH or self.document.is_proof_budget_spent():
            return
        self.conditions.append((schema, base))
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = self.document.find(reference, base)
            if target is not None:
                self.add(target.schema, target.base, steps + 1)
        for _, part in subschemas(schema, "allOf"):
            self.add(part, base, steps + 1)

    def types(self) -> frozenset[str]:
        """Return the types that a value can have; `integer` counts as `number`."""
        left = frozenset(TYPES)
        for schema, _ in self.conditions:
            left &= {"number" if kind == "integer" else kind for kind in types(schema)}
            values = listed_values(schema)
            if values is not None:
                left &= {json_type(value) for value in values}
        return left

    def values(self) -> list[Json] | None:
        """Return the values that a `const` or `enum` lists; None if there is neither."""
        return next((values for schema, _ in self.conditions if (values := listed_values(schema)) is not None), None)

    def values_of(self, name: str) -> list[Json] | None:
        """Return the values that are listed for a key; None if none are."""
        return next((values for view in self.properties(name) if (values := view.values()) is not None), None)

    def branches(self) -> "Iterator[list[_Conjunction]]":
        """Yield the alternatives of each `anyOf` and `oneOf`."""
        for schema, base in self.conditions:
            for keyword in ("anyOf", "oneOf"):
                if isinstance(schema.get(keyword), list) and self.depth < MAX_DEPTH:
                    yield [self._inner(part, base) for _, part in subschemas(schema, keyword)]

    def required(self) -> frozenset[str]:
        """Return the keys that an object must have."""
        return frozenset(name for schema, _ in self.conditions for name in names(schema))

    def properties(self, name: str) -> "list[_Conjunction]":
        """Return the conditions on the value of a key."""
        views: list[_Conjunction] = []
        for schema, base in self.conditions:
            listed = schema.get("properties")
            if is_object(listed) and name in listed:
                views.append(self._inner(cast("Schema", listed[name]), base))
            elif "additionalProperties" in schema and not schema.get("patternProperties"):
                views.append(self._inner(child(schema, "additionalProperties"), base))
        return views

    def excludes(self, value: Json) -> bool:
        """Return whether a value is proved invalid."""
        listed = self.values()
        if json_type(value) not in self.types():
            return True
        if listed is not None and not any(equal_json(value, each) for each in listed):
            return True
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return False
        point = (len(value) if isinstance(value, str) else value, False)
        ranges = [_range(schema, json_type(value)) for schema, _ in self.conditions]
        return any(_crossed(low, point) or _crossed(point, high) for low, high in ranges)

    def _inner(self, schema: Schema, base: str) -> "_Conjunction":
        return _Conjunction(schema, base, self.document, self.depth + 1)


def _disjoint(one: _Conjunction, other: _Conjunction) -> bool:
    if one.never or other.never:
        return True
    if max(one.depth, other.depth) > MAX_DEPTH or one.document.is_proof_budget_spent():
        return False
    if any(all(_disjoint(branch, other) for branch in branches) for branches in one.branches()):
        return True
    if any(all(_disjoint(one, branch) for branch in branches) for branches in other.branches()):
        return True
    for view, against in ((one, other), (other, one)):
        values = view.values()
        if values is not None and all(map(against.excludes, values)):
            return True
    return all(
        _objects_disjoint(one, other) if kind == "object" else _ranges_disjoint(one, other, kind)
        for kind in one.types() & other.types()
    )


def _objects_disjoint(one: _Conjunction, other: _Conjunction) -> bool:
    anything = [_Conjunction(True, "", one.document)]
    return any(
        any(_disjoint(mine, theirs) for mine in one.properties(name) or anything for theirs in other.properties(name))
        or any(mine.never for mine in one.properties(name))
        for name in sorted(one.required() | other.required())
    )


def _ranges_disjoint(one: _Conjunction, other: _Conjunction, kind: str) -> bool:
    return any(
        _crossed(_range(low, kind)[0], _range(high, kind)[1])
        for lower, upper in ((one, other), (other, one))
        for low, _ in lower.conditions
        for high, _ in upper.conditions
    )


def _range(schema: Mapping[str, Json], kind: str) -> tuple[Bound | None, Bound | None]:
    """Return the bounds of a number, or of the length of a string or an array; other types have none."""
    if kind in ("number", "integer"):
        return bound(schema, "min"), bound(schema, "max")
    what = {"string": "Length", "array": "Items"}.get(kind, "")
    low, high = whole(schema, f"min{what}"), whole(schema, f"max{what}")
    return None if low is None else (low, False), None if high is None else (high, False)


def _crossed(low: Bound | None, high: Bound | None) -> bool:
    """Return whether no number lies between two bounds."""
    if low is None or high is None:
        return False
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))


# --- complements ------------------------------------------------------------------------------------------------------

BOUNDS = {
    "minimum": "exclusiveMaximum",
    "maximum": "exclusiveMinimum",
    "exclusiveMinimum": "maximum",
    "exclusiveMaximum": "minimum",
}
COUNTS = {
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
}


def complement(location: SchemaLocation, document: Document, depth: int = 0) -> Schema | None:
    """Return the schema of all values that another schema rejects; None if keywords cannot express it exactly.

    >>> complement(SchemaLocation({"maxLength": 2}, "", ""), Document(True))
    {'type': 'string', 'minLength': 3}
    """
    schema = location.schema
    if isinstance(schema, bool):
        return not schema
    if depth > MAX_NESTED or document.is_proof_budget_spent():
        return None
    parts: list[Schema | None] = []
    for keyword in schema:
        if keyword not in ANNOTATIONS and keyword in KEYWORDS:
            parts.append(_violation(keyword, schema, location, document, depth))
            if parts[-1] is None:
                return None
    return _either(parts)


def _violation(
    keyword: str, schema: Mapping[str, Json], location: SchemaLocation, document: Document, depth: int
) -> Schema | None:
    """Return the schema of the values that violate one keyword."""

    def inner(part: Schema) -> Schema | None:
        return complement(SchemaLocation(part, location.pointer, location.base), document, depth + 1)

    value = schema[keyword]
    if keyword == "type":
        allowed = types(schema)
        left: list[Json] = [kind for kind in TYPES if kind not in allowed]
        # What is left are numbers that are not whole, for which there is no type.
        if "integer" in allowed and "number" not in allowed:
            return None
        return {"type": left} if left else False
    if keyword in ("const", "enum"):
        return _other_values([value] if keyword == "const" else cast("list[Json]", value))
    if keyword == "required":
        return _either([{"type": "object", "properties": {name: False}} for name in names(schema)])
    if keyword == "properties":
        others = {name: cast("Json", inner(part)) for name, part in cast("Mapping[str, Schema]", value).items()}
        if None in others.values():
            return None
        # A key that is absent violates nothing, so the violating one is required.
        return _either([{"type": "object", "required": [name], "properties": {name: others[name]}} for name in others])
    if keyword in BOUNDS:
        return None if isinstance(value, bool) else {"type": "number", BOUNDS[keyword]: value}
    if keyword in COUNTS:
        kind, opposite, step = COUNTS[keyword]
        count = (whole(schema, keyword) or 0) + step
        # Below a minimum of 0 there is nothing.
        return False if count < 0 else {"type": kind, opposite: count}
    if keyword == "not":
        return cast("Schema", value)
    if keyword == "$ref":
        target = document.find(cast("str", value), location.base)
        return None if target is None else complement(target, document, depth + 1)
    if keyword in ("anyOf", "allOf"):
        inverted = [inner(cast("Schema", part)) for part in cast("list[Json]", value)]
        opposite = "allOf" if keyword == "anyOf" else "anyOf"
        return None if None in inverted else {opposite: cast("list[Json]", inverted)}
    return None


def _either(parts: "Sequence[Schema | None]") -> Schema | None:
    if None in parts:
        return None
    if not parts:
        return False
    return parts[0] if len(parts) == 1 else {"anyOf": cast("list[Json]", parts)}


def _other_values(values: list[Json]) -> Schema | None:
    """Return the schema of everything but some strings, numbers, booleans and null."""
    by_type: dict[str, list[Json]] = {}
    for value in values:
        by_type.setdefault(json_type(value), []).append(value)
    if not by_type.keys() <= {"string", "boolean", "null", "number"}:
        return None
    parts: list[Schema] = [{"type": cast("Json", [kind for kind in TYPES if kind not in by_type])}]
    if "string" in by_type:
        words = cast("list[str]", by_type["string"])
        if len(words) > MAX_WORDS or any(len(word) > MAX_WORDS for word in words):
            return None
        parts.append({"type": "string", "pattern": pattern_without(words)})
    if "boolean" in by_type:
        parts.append({"enum": [each for each in (True, False) if each not in by_type["boolean"]]})
    if "number" in by_type:
        edges: list[float | None] = [None, *sorted(set(cast("list[float]", by_type["number"]))), None]
        for low, high in pairwise(edges):
            between: dict[str, Json] = {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}
            parts.append({key: edge for key, edge in between.items() if edge is not None})
    return {"anyOf": cast("list[Json]", [part for part in parts if part not in ({"type": []}, {"enum": []})])}


def pattern_without(words: Sequence[str]) -> str:
    """Return a pattern, without look-around, that matches every text but these.

    >>> bool(re.search(pattern_without(["ab", "a"]), "abc")), bool(re.search(pattern_without(["ab", "a"]), "ab"))
    (True, False)
    """
    return f"^(?:{_rest_without(frozenset(words))})$"


def _rest_without(words: frozenset[str]) -> str:
    """Return what may follow a common beginning, so that none of the words is written."""
    follow: dict[str, set[str]] = {}
    for word in words:
        if word:
            follow.setdefault(word[0], set()).add(word[1:])
    if not follow:
        return r"[\s\S]+" if "" in words else ANYTHING
    first = "".join(f"\\{char}" if char in r"\]^-[&~" else char for char in sorted(follow))
    ways = [rf"[^{first}]{ANYTHING}"]
    for char, rest in sorted(follow.items()):
        literal = re.escape(char) if char in r".^$*+?{}[]\|()-&~#" else char
        ways.append(f"{literal}(?:{_rest_without(frozenset(rest))})")
    if "" not in words:
        ways.append("")
    return "|".join(ways)


# --- finite values ----------------------------------------------------------------------------------------------------


def find_unsatisfiable(schema: Mapping[str, Json], origins: Mapping[str, str]) -> str | None:
    """Return the pointer of a part that excludes every finite value; None if there is none.

    A guide for such a schema would never reach an end. `schema` is a rewritten one: its references point into its own
    `$defs`, and `origins` has the pointers from which these come.
    """
    named: dict[str, Schema] = {"#": schema}
    places = {"#": ""}
    for steps, part in subschemas(schema, "$defs"):
        named[f"#/$defs/{steps[1]}"] = part
        places[f"#/$defs/{steps[1]}"] = origins.get(str(steps[1]), "")
    search = _FiniteSearch(named)
    if search.has_finite_value():
        return None
    name, seen = "#", set[str]()
    while name not in seen:  # follow the references from one blocker to the next
        seen.add(name)
        blocker = search.blocker(named.get(name, True), "")
        if blocker is None:
            break
        if blocker not in named:
            return places.get(name, "") + blocker
        name = blocker
    return places.get(name, "")


class _FiniteSearch:
    """The least fixed point: a schema has a finite value if the schemas that it needs have one."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self.named = named
        self.finite: set[str] = set()

    def has_finite_value(self) -> bool:
        """Return whether the root has a finite value, or that was not decided in time."""
        for _ in range(MAX_ROUNDS):
            undecided = self.named.keys() - self.finite
            more = {name for name in undecided if self.blocker(self.named[name], "") is None}
            self.finite |= more
            if "#" in self.finite:
                return True
            if not more:
                return False
        return True

    def blocker(self, schema: Schema, pointer: str) -> str | None:
        """Return the pointer or undecided reference of the part that excludes every finite value; None without one."""
        if isinstance(schema, bool):
            return None if schema else pointer
        if schema.get("enum") == []:
            return pointer
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in self.finite:
            return reference
        for steps, part in subschemas(schema, "allOf"):
            blocker = self.blocker(part, join_pointer(pointer, *steps))
            if blocker is not None:
                return blocker
        blockers = [self.blocker(part, join_pointer(pointer, *steps)) for steps, part in subschemas(schema, "anyOf")]
        if blockers and all(blocker is not None for blocker in blockers):
            return blockers[0]
        values = listed_values(schema)
        if values is not None:
            return None if any(has_type(value, types(schema)) for value in values) else pointer
        by_type = [self._of_type(kind, schema, pointer) for kind in sorted(types(schema), reverse=True)]
        return None if any(blocker is None for blocker in by_type) else by_type[0]

    def _of_type(self, kind: str, schema: Mapping[str, Json], pointer: str) -> str | None:
        if _crossed(*_range(schema, kind)):
            return pointer
        if kind == "array":
            return self._items(schema, pointer)
        return self._properties(schema, pointer) if kind == "object" else None

    def _items(self, schema: Mapping[str, Json], pointer: str) -> str | None:
        least, count = whole(schema, "minItems") or 0, 0
        for steps, part in subschemas(schema, "prefixItems"):
            count += 1
            blocker = self.blocker(part, join_pointer(pointer, *steps)) if count <= least else None
            if blocker is not None:
                return blocker
        return self.blocker(child(schema, "items"), join_pointer(pointer, "items")) if least > count else None

    def _properties(self, schema: Mapping[str, Json], pointer: str) -> str | None:
        properties = cast("Mapping[str, Schema]", schema.get("properties") or {})
        for name in names(schema):
            if name not in properties and schema.get("patternProperties"):
                continue
            steps = ("properties", name) if name in properties else ("additionalProperties",)
            part = properties[name] if name in properties else child(schema, "additionalProperties")
            blocker = self.blocker(part, join_pointer(pointer, *steps))
            if blocker is not None:
                return blocker
        return None
