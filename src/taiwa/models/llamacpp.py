"""Which keywords of a JSON Schema llama.cpp's server makes a grammar of, and which it drops without a word.

Its converter (`common/json-schema-to-grammar.cpp`) asks of each schema in a fixed order what it holds (`$ref`, `anyOf`, a list
of types, `const`, `enum`, properties, `allOf`, items, `pattern`, `format`, bounds) and takes the first that is there; what
stands beside it is dropped, unless it belongs to it. This is the same walk, so it can say beforehand what will be lost.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from taiwa.json_schema.complement import are_disjoint
from taiwa.json_schema.document import Document, join_pointer, resolve_pointer
from taiwa.json_schema.keywords import Schema, has_type, subschemas, types
from taiwa.kernel.records import Json
from taiwa.models.loose import items_at

__all__ = ["Places", "held"]

Places: TypeAlias = frozenset[tuple[str, str]]
"""The JSON pointer of a schema, and a keyword in it."""

Part: TypeAlias = tuple[str, "Json | Schema"]
PLAIN_PATTERN = re.compile(r"\^(?:[^\\^$(]|\\[^A-Za-z0-9]|\((?!\?))*\$", re.ASCII)
"""A pattern that is translated as it is meant: closed at both ends, without classes by letter and without special groups."""
FORMATS = ("uuid", "date", "time", "date-time")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
PRIMITIVE = ("string", "integer", "number", "boolean", "null", "object", "array")
MOST_TIMES = 2_000
"""The most repetitions that the server's reader of grammars takes."""


def held(schema: Mapping[str, Json]) -> Places:
    """The keywords that the server holds an answer to.

    >>> sorted(held({"type": "integer", "minimum": 1, "multipleOf": 2}))
    [('', 'minimum'), ('', 'type')]
    """
    root = dict(schema)
    walk = _Walk(root)
    walk.visit("", root)
    return frozenset(walk.found)


class _Walk:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self.document = Document(root)
        self.found: set[tuple[str, str]] = set()
        self._seen: set[str] = set()

    def visit(self, pointer: str, schema: "Json | Schema") -> None:
        if not isinstance(schema, Mapping) or pointer in self._seen:
            return
        self._seen.add(pointer)
        for part in self.taken(pointer, schema):
            self.visit(*part)

    def keep(self, pointer: str, schema: Mapping[str, Json], *keywords: str) -> None:
        self.found |= {(pointer, keyword) for keyword in keywords if keyword in schema}

    def taken(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        """Go the way that the converter goes; give the schemas that it looks into."""
        kind = schema.get("type")
        if "$ref" in schema:
            yield from self.reference(pointer, schema)
        elif "oneOf" in schema or "anyOf" in schema:
            yield from self.union(pointer, schema)
        elif isinstance(kind, list):
            yield from self.kinds(pointer, schema, kind)
        elif "const" in schema or "enum" in schema:
            self.values(pointer, schema)
        elif kind in (None, "object") and (
            "properties" in schema or schema.get("additionalProperties") not in (None, True)
        ):
            yield from self.object(pointer, schema)
        elif kind in (None, "object", "string") and "allOf" in schema:
            yield from self.merged(pointer, schema)
        elif kind in (None, "array") and ("items" in schema or "prefixItems" in schema):
            yield from self.array(pointer, schema)
        else:
            self.scalar(pointer, schema, kind)

    def reference(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        target = self.target(schema["$ref"])
        if target is not None:
            self.keep(pointer, schema, "$ref")
            yield target

    def target(self, reference: Json) -> Part | None:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        try:
            return reference[1:], resolve_pointer(self.document.root.schema, reference)
        except LookupError:
            return None

    def union(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        keyword = "oneOf" if "oneOf" in schema else "anyOf"
        parts = list(subschemas(schema, keyword))
        if keyword == "anyOf" or are_disjoint([part for _, part in parts], self.document):
            self.keep(pointer, schema, keyword)
        yield from self.below(pointer, schema, keyword)

    @staticmethod
    def below(pointer: str, schema: Mapping[str, Json], *keywords: str) -> Iterator[Part]:
        yield from ((join_pointer(pointer, *steps), part) for steps, part in subschemas(schema, *keywords))

    def kinds(self, pointer: str, schema: Mapping[str, Json], kinds: list[Json]) -> Iterator[Part]:
        """One way for each type; a keyword is held when it is held on the way of the type that it speaks of."""
        self.keep(pointer, schema, "type")
        # Bounds are made a part of the grammar of integers alone, so beside numbers they hold nothing.
        left = {key: held for key, held in schema.items() if "number" not in kinds or key not in BOUNDS}
        for kind in kinds:
            yield from self.taken(pointer, {**left, "type": kind})

    def values(self, pointer: str, schema: Mapping[str, Json]) -> None:
        keyword = "const" if "const" in schema else "enum"
        listed = [schema["const"]] if keyword == "const" else items_at(dict(schema), "enum")
        self.keep(pointer, schema, keyword)
        if "type" in schema and all(has_type(each, types(schema)) for each in listed):
            self.keep(pointer, schema, "type")

    def object(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        properties = schema.get("properties")
        named = properties if isinstance(properties, Mapping) else {}
        self.keep(pointer, schema, "type", "properties", "additionalProperties")
        if all(name in named for name in items_at(dict(schema), "required")):
            self.keep(pointer, schema, "required")
        yield from self.below(pointer, schema, "properties", "additionalProperties")

    def merged(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        """Of `allOf` the properties of its parts are put together; all else in the parts is dropped."""
        parts = [
            self.target(part["$ref"]) if isinstance(part, Mapping) and "$ref" in part else (join_pointer(pointer, "allOf", number), part)
            for number, part in enumerate(items_at(dict(schema), "allOf"))
        ]  # fmt: skip
        found = [part for part in parts if part is not None]
        if len(found) == len(parts) and all(isinstance(part, Mapping) and "properties" in part for _, part in found):
            self.keep(pointer, schema, "allOf", "type")
        for where, part in found:
            if isinstance(part, Mapping) and isinstance(part.get("properties"), Mapping):
                named = cast("Mapping[str, Json]", part["properties"])
                self.keep(where, part, "type", "properties")
                if all(name in named for name in items_at(dict(part), "required")):
                    self.keep(where, part, "required")
                yield from self.below(where, part, "properties")

    def array(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        keyword = "items" if "items" in schema else "prefixItems"
        self.keep(pointer, schema, "type", keyword)
        if not isinstance(schema[keyword], list):
            self.keep(pointer, schema, *(word for word in ("minItems", "maxItems") if _is_small(schema.get(word))))
        yield from self.below(pointer, schema, keyword)

    def scalar(self, pointer: str, schema: Mapping[str, Json], kind: Json) -> None:
        if kind in (None, "string") and "pattern" in schema:
            pattern = schema["pattern"]
            if isinstance(pattern, str) and PLAIN_PATTERN.fullmatch(pattern):
                self.keep(pointer, schema, "pattern")
        elif kind in (None, "string") and schema.get("format") in FORMATS:
            self.keep(pointer, schema, "format")
        elif kind == "string":
            self.keep(pointer, schema, *(word for word in ("minLength", "maxLength") if _is_small(schema.get(word))))
        elif kind == "integer":
            self.keep(pointer, schema, *(word for word in BOUNDS if _is_whole(schema.get(word))))
        if kind in PRIMITIVE:
            self.keep(pointer, schema, "type")


def _is_whole(bound: Json) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool)


def _is_small(bound: Json) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound <= MOST_TIMES
