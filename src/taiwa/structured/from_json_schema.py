"""JSON Schema → IR, `allOf` merged."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.structured.ir import (
    ABSENT,
    About,
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    TypeIR,
    UnionNode,
    children,
    with_description,
)

__all__ = ["form_of", "identifier"]


Object = dict[str, Json]

MAX_OPTIONS = 64

OPTIONS = ("anyOf", "oneOf")


def merge_all_of(parts: list[Json]) -> Json:
    """Join schemas that must all hold; of two words that cannot be joined the first stays, for the validator knows both.

    >>> merge_all_of([{"minimum": 1}, {"minimum": 3, "type": "integer"}])
    {'minimum': 3, 'type': 'integer'}
    """
    whole: Object = {}
    for part in parts:
        if part is False:
            return False
        if not isinstance(part, dict):
            continue
        whole = _both(whole, part)
    return whole or True


def _both(left: Object, right: Object) -> Object:
    whole = dict(left)
    for word, part in right.items():
        if word not in whole:
            whole[word] = part
        elif whole[word] != part:
            _merge(whole, word, part)
    return whole


def _merge(whole: Object, word: str, part: Json) -> None:
    have = whole[word]
    if word in OPTIONS and isinstance(have, list) and isinstance(part, list):
        if len(have) * len(part) <= MAX_OPTIONS:
            whole[word] = [merge_all_of([one, other]) for one in have for other in part]
        return
    if word == "$ref":
        _merge_all_of(whole, [{"$ref": part}])
        return
    if word == "allOf" and isinstance(part, list):
        _merge_all_of(whole, part)
        return
    if word in ("properties", "$defs") and isinstance(have, dict) and isinstance(part, dict):
        whole[word] = have | {
            key: merge_all_of([have[key], inner]) if key in have else inner for key, inner in part.items()
        }
        return
    rule = RULES.get(word)
    if rule is not None:
        whole[word] = rule(have, part)


def _merge_all_of(whole: Object, parts: list[Json]) -> None:
    have = whole.get("allOf")
    together = list(have) if isinstance(have, list) else []
    together += [each for each in parts if each not in together]
    if len(together) > MAX_OPTIONS:
        raise InputError(f"schema: more than {MAX_OPTIONS} schemas under one `allOf`")
    whole["allOf"] = together


def _types(have: Json, part: Json) -> Json:
    ours, theirs = (each if isinstance(each, list) else [each] for each in (have, part))
    kept = [each for each in ours if each in theirs or (each == "integer" and "number" in theirs)]
    kept += [each for each in theirs if each == "integer" and "number" in ours and each not in kept]
    return kept[0] if len(kept) == 1 else kept


def _in_both(have: Json, part: Json) -> Json:
    if not isinstance(have, list) or not isinstance(part, list):
        return have
    return [each for each in have if each in part]


def _in_either(have: Json, part: Json) -> Json:
    if not isinstance(have, list) or not isinstance(part, list):
        return have
    return [*have, *(each for each in part if each not in have)]


def _larger(have: Json, part: Json) -> Json:
    return max(cast("float", have), cast("float", part)) if _numbers(have, part) else have


def _smaller(have: Json, part: Json) -> Json:
    return min(cast("float", have), cast("float", part)) if _numbers(have, part) else have


def _numbers(*parts: Json) -> bool:
    return all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts)


def _every(have: Json, part: Json) -> Json:
    return merge_all_of([have, part])


RULES: dict[str, Callable[[Json, Json], Json]] = {
    "type": _types,
    "enum": _in_both,
    "required": _in_either,
    "items": _every,
    "additionalProperties": _every,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _larger),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _smaller),
    "uniqueItems": lambda have, part: have is True or part is True,
}

MAX_DEPTH = 128

NOTE_CHARS = 120

NOTED = (
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
)

ALL_TYPES = ("object", "array", "string", "number", "boolean", "null")

HINTS: dict[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def form_of(schema: Mapping[str, Json], name: str = "Answer") -> TypeIR:
    """Read a JSON Schema.

    Raises:
        InputError: a reference leads nowhere or outside of the schema, a keyword has a value that it cannot have, or the
            schema is nested too deep.
    """
    reader = _Reader(dict(schema))
    root = reader.node(reader.schema, "#", 0)
    while reader.waiting:
        pointer, named = reader.waiting.popitem()
        reader.named[named] = reader.node(reader.at(pointer), pointer, 0)
    return TypeIR(root, name, _used(root, reader.named))


def _used(root: Node, named: dict[str, Node]) -> dict[str, Node]:
    """Keep the named nodes that can be reached, in the order of first use."""
    used: dict[str, Node] = {}
    todo: list[Node] = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode) and node.name not in used:
            used[node.name] = named[node.name]
            todo.append(named[node.name])
        todo.extend(reversed(list(children(node))))
    return used


@dataclass(slots=True)
class _Reader:
    schema: Object
    names: dict[str, str] = field(default_factory=dict[str, str])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    named: dict[str, Node] = field(default_factory=dict[str, Node])

    def at(self, pointer: str) -> Json:
        """Follow a JSON pointer such as `#/$defs/Item`."""
        from taiwa.json_schema.document import resolve_pointer

        try:
            return resolve_pointer(self.schema, pointer)
        except LookupError:
            raise InputError(f"schema: the reference {pointer!r} leads nowhere") from None

    def reference(self, pointer: Json) -> RefNode:
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            raise InputError(f"schema: the reference {pointer!r} leads out of the schema; put the type into `$defs`")
        if pointer not in self.names:
            found = self.at(pointer)
            title = found.get("title") if isinstance(found, dict) else None
            wanted = pointer.rsplit("/", 1)[-1] if pointer != "#" else str(title or "Root")
            self.names[pointer] = self.waiting[pointer] = self._fresh(identifier(unquote(wanted)))
        return RefNode(self.names[pointer])

    def _fresh(self, wanted: str) -> str:
        taken, name, count = set(self.names.values()), wanted, 2
        while name in taken:
            name, count = f"{wanted}{count}", count + 1
        return name

    def node(self, schema: Json, path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise InputError(f"schema: nested deeper than {MAX_DEPTH} at {path[:80]}")
        if isinstance(schema, bool):
            return AnyNode() if schema else NeverNode()
        if not isinstance(schema, dict):
            raise InputError(f"schema: expected an object at {path[:80]}, not {type(schema).__name__}")
        about = _about(schema)
        if "allOf" in schema:
            return with_description(self._all_of(schema, path, depth), about)
        if "$ref" in schema:
            rest = {key: part for key, part in schema.items() if key in _STRUCTURE}
            if not rest:
                return with_description(self.reference(schema["$ref"]), about)
            self.reference(schema["$ref"])  # checks it
            target = self.at(str(schema["$ref"]))
            return with_description(self.node(merge_all_of([target, rest]), path, depth + 1), about)
        return with_description(self._plain(schema, path, depth), about)

    def _all_of(self, schema: Object, path: str, depth: int) -> Node:
        parts = _listed(schema, "allOf", path)
        rest: Object = {key: part for key, part in schema.items() if key in _STRUCTURE}
        if len(parts) == 1 and not rest:
            return self.node(parts[0], f"{path}/allOf/0", depth + 1)
        opened: list[Json] = []
        if "$ref" in schema:
            parts = [{"$ref": schema["$ref"]}, *parts]
        for part in parts:
            if isinstance(part, dict) and set(part) == {"$ref"}:
                self.reference(part["$ref"])  # checks it; the name is dropped again when nothing else uses it
                opened.append(self.at(str(part["$ref"])))
            else:
                opened.append(part)
        return self.node(merge_all_of([rest, *opened]), path, depth + 1)

    def _plain(self, schema: Object, path: str, depth: int) -> Node:
        if "const" in schema:
            return LiteralNode((schema["const"],))
        if "enum" in schema:
            return LiteralNode(tuple(_listed(schema, "enum", path)))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._union(schema, word, path, depth)
        kinds = schema.get("type")
        if isinstance(kinds, str):
            return self._typed(kinds, schema, path, depth)
        if isinstance(kinds, list):
            return _union([self._typed(str(kind), schema, path, depth) for kind in kinds])
        hinted = [kind for kind, words in HINTS.items() if any(word in schema for word in words)]
        return self._typed(hinted[0], schema, path, depth) if hinted else AnyNode()

    def _union(self, schema: Object, word: str, path: str, depth: int) -> Node:
        base: Object = {
            key: part for key, part in schema.items() if key in _STRUCTURE and key not in (word, "discriminator")
        }
        options: list[Node] = []
        for index, part in enumerate(_listed(schema, word, path)):
            inner = merge_all_of([base, part]) if base else part
            options.append(self.node(inner, f"{path}/{word}/{index}", depth + 1))
        tag = schema.get("discriminator")
        name = tag.get("propertyName") if isinstance(tag, dict) else ""
        return _union(options, name if isinstance(name, str) else "")

    def _typed(self, kind: str, schema: Object, path: str, depth: int) -> Node:
        if kind == "object":
            return self._object(schema, path, depth)
        if kind == "array":
            return self._array(schema, path, depth)
        make: Callable[[Object, str], Node] | None = _SCALARS.get(kind)
        if make is None:
            raise InputError(f"schema: {kind[:40]!r} at {path[:80]}/type is not a JSON type")
        return make(schema, path)

    def _object(self, schema: Object, path: str, depth: int) -> Node:
        required = [part for part in _listed(schema, "required", path) if isinstance(part, str)]
        given = schema.get("properties", {})
        if not isinstance(given, dict):
            raise InputError(f"schema: `properties` at {path[:80]} is not an object")
        properties = [
            Property(key, self.node(part, f"{path}/properties/{key}", depth + 1), key in required)
            for key, part in given.items()
        ]
        properties += [Property(key, AnyNode(), required=True) for key in dict.fromkeys(required) if key not in given]
        return ObjectNode(
            tuple(properties),
            self._extra(schema, path, depth),
            _size(schema, "minProperties", path) or 0,
            _size(schema, "maxProperties", path),
        )

    def _extra(self, schema: Object, path: str, depth: int) -> Node | None:
        """Read what other keys may hold: which of the patterns a key has to match, a note says."""
        extra = schema.get("additionalProperties")
        node = None if extra is None else self.node(extra, f"{path}/additionalProperties", depth + 1)
        patterns = schema.get("patternProperties")
        if not isinstance(patterns, dict) or not patterns or isinstance(node, AnyNode):
            return node
        options = [self.node(part, f"{path}/patternProperties/{key}", depth + 1) for key, part in patterns.items()]
        return None if node is None else _union([*options, *([] if isinstance(node, NeverNode) else [node])])

    def _array(self, schema: Object, path: str, depth: int) -> Node:
        items = schema.get("items", True)
        first = schema.get("prefixItems", items if isinstance(items, list) else [])
        if isinstance(items, list):  # before draft 2020-12 a list of items was the prefix
            items = schema.get("additionalItems", True)
        if not isinstance(first, list):
            raise InputError(f"schema: `prefixItems` at {path[:80]} is not a list")
        most = _size(schema, "maxItems", path)
        return ArrayNode(
            self.node(items if most is None or most > len(first) else False, f"{path}/items", depth + 1),
            tuple(self.node(part, f"{path}/prefixItems/{at}", depth + 1) for at, part in enumerate(first)),
            _size(schema, "minItems", path) or 0,
            most,
            schema.get("uniqueItems") is True,
        )


def _string(schema: Object, path: str) -> Node:
    return StringNode(
        _size(schema, "minLength", path) or 0,
        _size(schema, "maxLength", path),
        _text(schema, "pattern"),
        _text(schema, "format"),
    )


def _number(schema: Object, path: str) -> Node:
    low, high = _bound(schema, "minimum", path), _bound(schema, "maximum", path)
    under, over = _bound(schema, "exclusiveMinimum", path), _bound(schema, "exclusiveMaximum", path)
    low_open = under is not None and (low is None or under >= low)
    high_open = over is not None and (high is None or over <= high)
    return NumberNode(
        schema.get("type") == "integer" or schema.get("type") == ["integer"],
        under if low_open else low,
        over if high_open else high,
        low_open,
        high_open,
        _bound(schema, "multipleOf", path),
    )


_SCALARS: dict[str, Callable[[Object, str], Node]] = {
    "string": _string,
    "number": _number,
    "integer": lambda schema, path: _number({**schema, "type": "integer"}, path),
    "boolean": lambda _schema, _path: BoolNode(),
    "null": lambda _schema, _path: NullNode(),
}

_STRUCTURE = {word for words in HINTS.values() for word in words} | {
    *("type", "enum", "const", "anyOf", "oneOf", "discriminator", "additionalItems"),
    *NOTED,
}


def _about(schema: Object) -> About:
    notes = [f"{word} {_brief(schema[word])}" for word in NOTED if word in schema]
    if "anyOf" in schema and "oneOf" in schema:
        notes.append(f"oneOf {_brief(schema['oneOf'])}")
    return About(_text(schema, "description"), schema.get("default", ABSENT), tuple(notes))


def _brief(part: Json) -> str:
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= NOTE_CHARS else text[: NOTE_CHARS - 1] + "…"


def _union(options: list[Node], tag: str = "") -> Node:
    """Make a union: literals side by side become one literal, copies are dropped, a union of one is that one."""
    kept: list[Node] = []
    for option in options:
        last = kept[-1] if kept else None
        if isinstance(option, LiteralNode) and isinstance(last, LiteralNode) and option.about == last.about == About():
            kept[-1] = LiteralNode(last.values + tuple(value for value in option.values if value not in last.values))
        elif option not in kept:
            kept.append(option)
    if not kept:
        return NeverNode()
    return kept[0] if len(kept) == 1 else UnionNode(tuple(kept), tag)


def _listed(schema: Object, word: str, path: str) -> list[Json]:
    found = schema.get(word, [])
    if not isinstance(found, list):
        raise InputError(f"schema: `{word}` at {path[:80]} is not a list")
    return found


def _text(schema: Object, word: str) -> str:
    found = schema.get(word)
    return found if isinstance(found, str) else ""


def _bound(schema: Object, word: str, path: str) -> int | float | None:
    found = schema.get(word)
    if found is None or (isinstance(found, (int, float)) and not isinstance(found, bool)):
        return found
    if word.startswith("exclusive") and isinstance(found, bool):  # draft 4 said: the other bound is open
        return _bound(schema, word.replace("exclusiveM", "m"), path) if found else None
    raise InputError(f"schema: `{word}` at {path[:80]} is not a number")


def _size(schema: Object, word: str, path: str) -> int | None:
    found = _bound(schema, word, path)
    if found is not None and (found < 0 or found != int(found)):
        raise InputError(f"schema: `{word}` at {path[:80]} is not a size")
    return None if found is None else int(found)


def identifier(text: str) -> str:
    """Make a name that TypeScript accepts: `list[Item]` becomes `list_Item`, `module__Item__2` becomes `Item`."""
    whole = re.sub(r"\W+", "_", text).strip("_")
    plain = re.sub(r"__\d+\Z", "", whole).rsplit("__", 1)[-1].strip("_")
    name = plain or whole
    return f"_{name}" if not name or name[0].isdecimal() else name
