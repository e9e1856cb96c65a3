"""The exact complement of a schema, where simple keywords can say it. So `not` and `if` become what can be enforced."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import cast

from taiwa.guide.schema.disjoint import kind_of
from taiwa.guide.schema.document import Document, Place
from taiwa.guide.schema.keywords import ANNOTATIONS, KINDS, TYPES, Schema, names, types, whole
from taiwa.kernel.records import Json

__all__ = ["negated", "none_of"]

MOST_DEPTH = 8
MOST_WORDS = 200
ANYTHING = r"[\s\S]*"


def negated(place: Place, document: Document, depth: int = 0) -> Schema | None:
    """The schema of all other values; None where no keywords say exactly that."""
    schema = place.schema
    if isinstance(schema, bool):
        return not schema
    if depth > MOST_DEPTH or document.tired():
        return None
    parts: list[Schema] = []
    for keyword in schema:
        if keyword in ANNOTATIONS or keyword not in KINDS:
            continue
        part = _Complement(schema, place, document, depth).of(keyword)
        if part is None:
            return None
        parts.append(part)
    if not parts:
        return False
    return parts[0] if len(parts) == 1 else {"anyOf": cast("list[Json]", parts)}


class _Complement:
    def __init__(self, schema: Mapping[str, Json], place: Place, document: Document, depth: int) -> None:
        self.schema = schema
        self.place = place
        self.document = document
        self.depth = depth

    def of(self, keyword: str) -> Schema | None:
        """What breaks one keyword of the schema."""
        held = self.schema[keyword]
        if keyword == "type":
            return _other_types(self.schema)
        if keyword in ("const", "enum"):
            return _other_values([held] if keyword == "const" else cast("list[Json]", held))
        if keyword == "required":
            lacking = [{"type": "object", "properties": {name: False}} for name in names(self.schema)]
            return _any(cast("list[Schema]", lacking))
        if keyword == "properties":
            return self._other_properties(cast("Mapping[str, Schema]", held))
        if keyword in BOUNDS:
            return _other_side(keyword, held)
        if keyword in COUNTS:
            return _other_count(self.schema, keyword)
        return self._of_applicator(keyword, held)

    def _of_applicator(self, keyword: str, held: Json) -> Schema | None:
        if keyword == "not":
            return cast("Schema", held)
        if keyword == "$ref":
            found = self.document.find(cast("str", held), self.place.base)
            return None if found is None else negated(found, self.document, self.depth + 1)
        if keyword in ("anyOf", "allOf"):
            inner = [self._inner(cast("Schema", part)) for part in cast("list[Json]", held)]
            if any(part is None for part in inner):
                return None
            other = "allOf" if keyword == "anyOf" else "anyOf"
            return {other: cast("list[Json]", inner)}
        return None

    def _other_properties(self, properties: Mapping[str, Schema]) -> Schema | None:
        broken: list[Schema] = []
        for name, part in properties.items():
            inner = self._inner(part)
            if inner is None:
                return None
            broken.append({"type": "object", "required": [name], "properties": {name: cast("Json", inner)}})
        return _any(broken)

    def _inner(self, schema: Schema) -> Schema | None:
        return negated(Place(schema, self.place.pointer, self.place.base), self.document, self.depth + 1)


def _any(parts: list[Schema]) -> Schema:
    if not parts:
        return False
    return parts[0] if len(parts) == 1 else {"anyOf": cast("list[Json]", parts)}


def _other_types(schema: Mapping[str, Json]) -> Schema | None:
    held = types(schema)
    if "integer" in held and "number" not in held:
        return None
    left: list[Json] = [kind for kind in TYPES if kind not in held]
    return {"type": left} if left else False


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


def _other_side(keyword: str, held: Json) -> Schema | None:
    return None if isinstance(held, bool) else {"type": "number", BOUNDS[keyword]: held}


def _other_count(schema: Mapping[str, Json], keyword: str) -> Schema | None:
    kind, other, step = COUNTS[keyword]
    count = (whole(schema, keyword) or 0) + step
    return False if count < 0 else {"type": kind, other: count}


def _other_values(values: list[Json]) -> Schema | None:
    """Everything but some simple values."""
    by_kind: dict[str, list[Json]] = {}
    for value in values:
        by_kind.setdefault(kind_of(value), []).append(value)
    if not by_kind.keys() <= {"string", "boolean", "null", "number"}:
        return None
    parts: list[Schema] = [{"type": cast("Json", [kind for kind in TYPES if kind not in by_kind])}]
    if "string" in by_kind:
        words = cast("list[str]", by_kind["string"])
        if len(words) > MOST_WORDS or any(len(word) > MOST_WORDS for word in words):
            return None
        parts.append({"type": "string", "pattern": none_of(words)})
    if "boolean" in by_kind:
        parts.append({"enum": [each for each in (True, False) if each not in by_kind["boolean"]]})
    if "number" in by_kind:
        parts += _between(sorted(set(cast("list[float]", by_kind["number"]))))
    return {"anyOf": cast("list[Json]", [part for part in parts if part not in ({"type": []}, {"enum": []})])}


def _between(numbers: list[float]) -> list[Schema]:
    edges: list[float | None] = [None, *numbers, None]
    found: list[Schema] = []
    for low, high in pairwise(edges):
        part: dict[str, Json] = {"type": "number"}
        if low is not None:
            part["exclusiveMinimum"] = low
        if high is not None:
            part["exclusiveMaximum"] = high
        found.append(part)
    return found


def none_of(words: list[str]) -> str:
    """A pattern that every text but these matches, without look-around.

    >>> bool(re.search(none_of(["ab", "a"]), "abc")), bool(re.search(none_of(["ab", "a"]), "ab"))
    (True, False)
    """
    return f"^(?:{_rest(frozenset(words))})$"


def _rest(words: frozenset[str]) -> str:
    """What follows a common start, so that none of the words is written."""
    follow: dict[str, set[str]] = {}
    for word in words:
        if word:
            follow.setdefault(word[0], set()).add(word[1:])
    if not follow:
        return r"[\s\S]+" if "" in words else ANYTHING
    ways = [rf"[^{''.join(_in_class(char) for char in sorted(follow))}]{ANYTHING}"]
    ways += [f"{_literal(char)}(?:{_rest(frozenset(rest))})" for char, rest in sorted(follow.items())]
    if "" not in words:
        ways.append("")
    return "|".join(ways)


def _in_class(char: str) -> str:
    return f"\\{char}" if char in r"\]^-[&~" else char


def _literal(char: str) -> str:
    return re.escape(char) if char in r".^$*+?{}[]\|()-&~#" else char
