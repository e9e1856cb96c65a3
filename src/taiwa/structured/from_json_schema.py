"""JSON Schema → IR: references named, `allOf` merged, unknown constraints noted."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote

from taiwa.json_schema import Document, bound, check_keywords, is_object, names, resolve_pointer, whole
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, is_number, items_at, text_at
from taiwa.kernel.text import truncate
from taiwa.structured import ir
from taiwa.structured.ir import with_description

Object = dict[str, Json]

MAX_OPTIONS = 64
OPTIONS = ("anyOf", "oneOf")


def merge_all_of(parts: list[Json]) -> Json:
    """Merge schemas that must all be satisfied; of two keywords that cannot be merged the first is kept, and the validator
    checks both.

    >>> merge_all_of([{"minimum": 1}, {"minimum": 3, "type": "integer"}])
    {'minimum': 3, 'type': 'integer'}
    """
    merged: Object = {}
    for part in parts:
        if part is False:
            return False
        for keyword, value in part.items() if isinstance(part, dict) else ():
            if keyword not in merged:
                merged[keyword] = value
            elif merged[keyword] != value:
                _merge(merged, keyword, value)
    return merged or True


def _merge(merged: Object, keyword: str, part: Json) -> None:
    have = merged[keyword]
    if keyword in OPTIONS and isinstance(have, list) and isinstance(part, list):
        if len(have) * len(part) <= MAX_OPTIONS:
            merged[keyword] = [merge_all_of([one, other]) for one in have for other in part]
        return
    if keyword == "$ref" or (keyword == "allOf" and isinstance(part, list)):
        _merge_all_of(merged, part if isinstance(part, list) else [{"$ref": part}])
        return
    if keyword in ("properties", "$defs") and isinstance(have, dict) and isinstance(part, dict):
        merged[keyword] = have | {
            key: merge_all_of([have[key], inner]) if key in have else inner for key, inner in part.items()
        }
        return
    merged[keyword] = _both(keyword, have, part)


def _merge_all_of(merged: Object, parts: list[Json]) -> None:
    together = [*items_at(merged, "allOf")]
    together += [each for each in parts if each not in together]
    if len(together) > MAX_OPTIONS:
        raise InputError(f"schema: more than {MAX_OPTIONS} schemas under one `allOf`")
    merged["allOf"] = together


def _types(have: Json, part: Json) -> Json:
    ours, theirs = (each if isinstance(each, list) else [each] for each in (have, part))
    both = [each for each in ours if each in theirs or (each == "integer" and "number" in theirs)]
    both += [each for each in theirs if each == "integer" and "number" in ours and each not in both]
    return both[0] if len(both) == 1 else both


def _both(keyword: str, have: Json, part: Json) -> Json:
    """Return the value of a keyword in the merged schema; the first if the two cannot be merged."""
    if keyword == "type":
        return _types(have, part)
    if keyword in ("items", "additionalProperties"):
        return merge_all_of([have, part])
    if keyword == "uniqueItems":
        return have is True or part is True
    if is_number(have) and is_number(part):
        return max(have, part) if keyword in LEAST else min(have, part) if keyword in MOST else have
    if isinstance(have, list) and isinstance(part, list):
        if keyword == "enum":
            listed = {json.dumps(each, sort_keys=True) for each in part}
            return [each for each in have if json.dumps(each, sort_keys=True) in listed]
        if keyword == "required":
            return [*dict.fromkeys(name for name in (*have, *part) if isinstance(name, str))]
    return have


LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
MAX_DEPTH = 128
MAX_NODES = 50_000
NOTE_CHARS = 120
NOTED = """not if then else contains minContains maxContains propertyNames patternProperties dependentRequired dependentSchemas
    dependencies unevaluatedItems unevaluatedProperties contentEncoding contentMediaType""".split()

HINTS: dict[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def type_ir_from_schema(schema: Mapping[str, Json], name: str = "Answer") -> ir.TypeIR:
    """Return the IR of a JSON Schema.

    Raises:
        InputError: a reference is unresolved or leaves the schema, a keyword has an invalid value, or the schema is nested
        too deep.
    """
    for location in Document(schema).locations():
        if is_object(location.schema):
            check_keywords(location.schema, f"schema: {location.pointer or '/'}")
    converter = _Converter(dict(schema))
    root = converter.node(converter.schema, "#", 0)
    while converter.waiting:
        pointer, named = converter.waiting.popitem()
        converter.named[named] = converter.node(converter.at(pointer), pointer, 0)
    return ir.TypeIR(root, name, ir.reachable(root, converter.named))


@dataclass(slots=True)
class _Converter:
    schema: Object
    names: dict[str, str] = field(default_factory=dict[str, str])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    named: dict[str, ir.Node] = field(default_factory=dict[str, ir.Node])
    nodes: int = 0

    def at(self, pointer: str) -> Json:
        try:
            return resolve_pointer(self.schema, pointer)
        except LookupError:
            raise InputError(f"schema: the reference {pointer!r} refers to nothing") from None

    def reference(self, pointer: Json) -> ir.RefNode:
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            raise InputError(f"schema: the reference {pointer!r} leaves the schema; put the type into `$defs`")
        if pointer not in self.names:
            target = self.at(pointer)
            base = identifier(
                unquote(pointer.rsplit("/", 1)[-1] if pointer != "#" else text_at(target, "title") or "Root")
            )
            taken, name, count = set(self.names.values()), base, 2
            while name in taken:
                name, count = f"{base}{count}", count + 1
            self.names[pointer] = self.waiting[pointer] = name
        return ir.RefNode(self.names[pointer])

    def node(self, schema: Json, path: str, depth: int) -> ir.Node:
        if depth > MAX_DEPTH:
            raise InputError(f"schema: nested deeper than {MAX_DEPTH} at {path[:80]}")
        self.nodes += 1
        if self.nodes > MAX_NODES:  # merged schemas are copied wherever they are applied
            raise InputError(f"schema: more than {MAX_NODES:,} parts at {path[:80]}, its references opened; divide it")
        if isinstance(schema, bool):
            return ir.AnyNode() if schema else ir.NeverNode()
        if not isinstance(schema, dict):
            raise InputError(f"schema: expected an object at {path[:80]}, not {type(schema).__name__}")
        about = _about(schema)
        if "allOf" in schema:
            return with_description(self._all_of(schema, path, depth), about)
        if "$ref" in schema:
            rest = {key: part for key, part in schema.items() if key in _STRUCTURE}
            if not rest:
                return with_description(self.reference(schema["$ref"]), about)
            self.reference(schema["$ref"])  # raises for an unresolved reference
            target = self.at(str(schema["$ref"]))
            return with_description(self.node(merge_all_of([target, rest]), path, depth + 1), about)
        return with_description(self._plain(schema, path, depth), about)

    def _all_of(self, schema: Object, path: str, depth: int) -> ir.Node:
        parts = items_at(schema, "allOf")
        rest: Object = {key: part for key, part in schema.items() if key in _STRUCTURE}
        if len(parts) == 1 and not rest:
            return self.node(parts[0], f"{path}/allOf/0", depth + 1)
        opened: list[Json] = []
        if "$ref" in schema:
            parts = [{"$ref": schema["$ref"]}, *parts]
        for part in parts:
            if isinstance(part, dict) and set(part) == {"$ref"}:
                self.reference(part["$ref"])  # raises as above; an unused name is dropped at the end
                opened.append(self.at(str(part["$ref"])))
            else:
                opened.append(part)
        return self.node(merge_all_of([rest, *opened]), path, depth + 1)

    def _plain(self, schema: Object, path: str, depth: int) -> ir.Node:
        if "const" in schema:
            return ir.LiteralNode((schema["const"],))
        if "enum" in schema:
            return ir.LiteralNode(tuple(items_at(schema, "enum")))
        for keyword in OPTIONS:
            if keyword in schema:
                return self._union(schema, keyword, path, depth)
        kinds = schema.get("type")
        if isinstance(kinds, str):
            return self._typed(kinds, schema, path, depth)
        if isinstance(kinds, list):
            return ir.union([self._typed(str(kind), schema, path, depth) for kind in kinds])
        hinted = [kind for kind, keywords in HINTS.items() if any(keyword in schema for keyword in keywords)]
        return self._typed(hinted[0], schema, path, depth) if hinted else ir.AnyNode()

    def _union(self, schema: Object, keyword: str, path: str, depth: int) -> ir.Node:
        base: Object = {
            key: part for key, part in schema.items() if key in _STRUCTURE and key not in (keyword, "discriminator")
        }
        options: list[ir.Node] = []
        for index, part in enumerate(items_at(schema, keyword)):
            inner = merge_all_of([base, part]) if base else part
            options.append(self.node(inner, f"{path}/{keyword}/{index}", depth + 1))
        return ir.union(options)

    def _typed(self, kind: str, schema: Object, path: str, depth: int) -> ir.Node:
        if kind == "object":
            return self._object(schema, path, depth)
        if kind == "array":
            return self._array(schema, path, depth)
        if kind in ("number", "integer"):
            return _number(schema, integer=kind == "integer")
        if kind == "string":
            size = whole(schema, "minLength") or 0, whole(schema, "maxLength")
            return ir.StringNode(*size, text_at(schema, "pattern"), text_at(schema, "format"))
        return ir.BoolNode() if kind == "boolean" else ir.NullNode()

    def _object(self, schema: Object, path: str, depth: int) -> ir.Node:
        required = dict.fromkeys(names(schema))
        listed = cast("Object", schema.get("properties", {}))
        properties = [
            ir.Property(key, self.node(part, f"{path}/properties/{key}", depth + 1), key in required)
            for key, part in listed.items()
        ]
        properties += [ir.Property(key, ir.AnyNode(), required=True) for key in required if key not in listed]
        return ir.ObjectNode(
            tuple(properties),
            self._extra(schema, path, depth),
            whole(schema, "minProperties") or 0,
            whole(schema, "maxProperties"),
        )

    def _extra(self, schema: Object, path: str, depth: int) -> ir.Node | None:
        """Return the node of unnamed keys; a note describes the patterns that keys must match."""
        extra = schema.get("additionalProperties")
        node = None if extra is None else self.node(extra, f"{path}/additionalProperties", depth + 1)
        patterns = schema.get("patternProperties")
        if not isinstance(patterns, dict) or not patterns or isinstance(node, ir.AnyNode):
            return node
        options = [self.node(part, f"{path}/patternProperties/{key}", depth + 1) for key, part in patterns.items()]
        return None if node is None else ir.union([*options, *([] if isinstance(node, ir.NeverNode) else [node])])

    def _array(self, schema: Object, path: str, depth: int) -> ir.Node:
        items = schema.get("items", True)
        prefix = items_at(schema, "prefixItems" if "prefixItems" in schema else "items")
        if isinstance(items, list):  # before draft 2020-12 a list of items was the prefix
            items = schema.get("additionalItems", True)
        max_items = whole(schema, "maxItems")
        return ir.ArrayNode(
            self.node(items if max_items is None or max_items > len(prefix) else False, f"{path}/items", depth + 1),
            tuple(self.node(part, f"{path}/prefixItems/{at}", depth + 1) for at, part in enumerate(prefix)),
            whole(schema, "minItems") or 0,
            max_items,
            schema.get("uniqueItems") is True,
        )


def _number(schema: Object, *, integer: bool) -> ir.Node:
    low, above = bound(schema, "min") or (None, False)
    high, below = bound(schema, "max") or (None, False)
    step = schema.get("multipleOf")
    return ir.NumberNode(integer, low, high, above, below, step if is_number(step) else None)


_STRUCTURE = {keyword for keywords in HINTS.values() for keyword in keywords} | {
    *("type", "enum", "const", "anyOf", "oneOf", "discriminator", "additionalItems"),
    *NOTED,
}


def _about(schema: Object) -> ir.About:
    notes = [f"{keyword} {_brief(schema[keyword])}" for keyword in NOTED if keyword in schema]
    if "anyOf" in schema and "oneOf" in schema:
        notes.append(f"oneOf {_brief(schema['oneOf'])}")
    return ir.About(text_at(schema, "description"), schema.get("default", ir.ABSENT), tuple(notes))


def _brief(part: Json) -> str:
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return truncate(text, NOTE_CHARS)


def identifier(text: str) -> str:
    """Return a name that TypeScript accepts: `list[Item]` becomes `list_Item`, `module__Item__2` becomes `Item`."""
    whole = re.sub(r"\W+", "_", text).strip("_")
    plain = re.sub(r"__\d+\Z", "", whole).rsplit("__", 1)[-1].strip("_")
    name = plain or whole
    return f"_{name}" if not name or name[0].isdecimal() else name
