"""Where a text that is not finished stands in its JSON, and what the schema says about that place.

Advisory: it is what a person is told, and decides nothing. So where a schema leaves several ways open, all of them are
named, and what it does not know it leaves out.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from urllib.parse import unquote

from taiwa.guide.protocol import Explanation
from taiwa.kernel.records import Json

__all__ = ["Spot", "keyword_at", "placed", "spot"]

Want: TypeAlias = Literal["value", "in string", "in word", "key", "in key", "colon", "after value", "end"]
Inside: TypeAlias = Literal["object", "array", ""]
MOST_CANDIDATES = 64
SHOWN = 60
KEYWORDS: tuple[tuple[str, tuple[Want, ...]], ...] = (
    ("const", ("value", "in string", "in word")),
    ("enum", ("value", "in string", "in word")),
    ("pattern", ("in string",)),
    ("format", ("in string",)),
    ("maxLength", ("in string",)),
    ("minLength", ("in string",)),
    ("minimum", ("in word",)),
    ("exclusiveMinimum", ("in word",)),
    ("maximum", ("in word",)),
    ("exclusiveMaximum", ("in word",)),
    ("multipleOf", ("in word",)),
)
WANTED: Mapping[Want, str] = {
    "value": "a value",
    "in string": "more of a string, or its end",
    "in word": "more of a number or a word, or what follows it",
    "key": "a key, or the end of the object",
    "in key": "more of a key, or its end",
    "colon": "':'",
    "after value": "',' or the end of what is open",
    "end": "the end",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a text that is being written: the keys and numbers that lead to it, what comes there, and what has begun."""

    path: tuple[str | int, ...]
    want: Want
    begun: str = ""
    keys: tuple[str, ...] = ()
    inside: Inside = ""

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value that is being written."""
        return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in self.path)


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet."""

    is_object: bool
    keys: list[str]
    count: int = 0


def spot(text: str) -> Spot:
    """Find where the text of a JSON value stands; the text is taken to be right as far as it goes.

    >>> spot('{"drinks": [{"name": "te')
    Spot(path=('drinks', 0, 'name'), want='in string', begun='te', keys=('name',), inside='object')
    """
    stack: list[_Open] = []
    want: Want = "value"
    begun = 0
    at = 0
    while at < len(text):
        sign = text[at]
        if want in ("in string", "in key"):
            if sign == "\\":
                at += 1
            elif sign == '"':
                if want == "in key":
                    stack[-1].keys.append(_unescaped(text[begun:at]))
                want = "colon" if want == "in key" else "after value"
        elif want == "in word" and sign not in ",]} \t\r\n":
            pass
        elif sign not in " \t\r\n":
            want = _sign(sign, "after value" if want == "in word" else want, stack)
            begun = at + 1 if sign == '"' else at
        elif want == "in word":
            want = "after value"
        at += 1
    if not stack and want == "after value":
        want = "end"
    inside: Inside = "" if not stack else "object" if stack[-1].is_object else "array"
    keys = tuple(stack[-1].keys) if stack and stack[-1].is_object else ()
    begins = text[begun:] if want in ("in string", "in key", "in word") else ""
    return Spot(tuple(_path(stack, want)), want, begins, keys, inside)


def _unescaped(written: str) -> str:
    try:
        return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        return written


def _sign(sign: str, want: Want, stack: list[_Open]) -> Want:
    """What comes after a sign outside of strings and words."""
    if sign in "}]":
        if stack:
            stack.pop()
        return "after value"
    if sign == ",":
        if stack:
            stack[-1].count += 1
        return "key" if stack and stack[-1].is_object else "value"
    if sign == ":":
        return "value"
    if sign in "{[":
        stack.append(_Open(sign == "{", []))
        return "key" if sign == "{" else "value"
    if sign == '"':
        return "in key" if want == "key" else "in string"
    return "in word"


def _path(stack: list[_Open], want: Want) -> Iterator[str | int]:
    for number, part in enumerate(stack):
        last = number == len(stack) - 1
        if not part.is_object:
            yield part.count
        elif part.keys and not (last and want in ("key", "in key", "after value")):
            yield part.keys[-1]


def keyword_at(schema: Json, here: Spot) -> tuple[str, str, str]:
    """The pointer in the schema, the keyword and the words for what may come: what a schema says about a place."""
    found = list(_schemas(schema, here.path))
    pointers = [pointer for pointer, _ in found]
    if not found:
        return "", "", WANTED[here.want]
    if here.inside == "object" and here.want in ("key", "in key", "after value"):
        return _of_object(found, here)
    if here.inside == "array" and here.want == "after value":
        holders = list(_schemas(schema, here.path[:-1]))
        bounds = [word for _, each in holders for word in ("minItems", "maxItems") if word in each]
        return (holders or found)[0][0], (bounds or ["items"])[0], WANTED[here.want]
    for keyword, wants in KEYWORDS:
        for pointer, each in found:
            if keyword in each and here.want in wants:
                return pointer, keyword, _said(keyword, [each[keyword] for _, each in found if keyword in each], here)
    kinds = list(dict.fromkeys(_kind(each) for _, each in found if "type" in each))
    keyword = "type" if kinds else ""
    return pointers[0], keyword, " or ".join(kinds) if kinds and here.want == "value" else WANTED[here.want]


def _of_object(found: list[tuple[str, Mapping[str, Json]]], here: Spot) -> tuple[str, str, str]:
    for pointer, each in found:
        properties = each.get("properties")
        if not isinstance(properties, Mapping):
            continue
        required = each.get("required")
        needed = [str(key) for key in required] if isinstance(required, list) else []
        left = [key for key in properties if key not in here.keys]
        if here.want == "in key":
            left = [key for key in left if key.startswith(here.begun)]
            return pointer, "properties", f"the key {' or '.join(map(repr, left[:8]))}" if left else WANTED[here.want]
        missing = [key for key in needed if key not in here.keys]
        keyword = "required" if missing else "properties"
        names = ", ".join(repr(key) + ("" if key in missing else "?") for key in left[:8])
        more = ", …" if len(left) > 8 else ""
        word = "key" if len(left) == 1 else "keys"
        return pointer, keyword, f"the {word} {names}{more}" if left else "the end of the object"
    return found[0][0], "additionalProperties" if "additionalProperties" in found[0][1] else "type", WANTED[here.want]


def _said(keyword: str, values: list[Json], here: Spot) -> str:
    if keyword in ("const", "enum"):
        flat = [
            option for each in values for option in (each if isinstance(each, list) and keyword == "enum" else [each])
        ]
        texts = [json.dumps(option, ensure_ascii=False) for option in flat]
        opening = {"in string": '"', "in word": ""}.get(here.want)
        fitting = texts if opening is None else [text for text in texts if text.startswith(opening + here.begun)]
        shown = " or ".join((fitting or texts)[:8])
        return shown + (" or …" if len(fitting or texts) > 8 else "")
    return f"{keyword} {_written(values[0])}"


def _kind(schema: Mapping[str, Json]) -> str:
    """The type, and what narrows it."""
    kinds = schema["type"]
    names = [str(kind) for kind in kinds] if isinstance(kinds, list) else [str(kinds)]
    narrower = [word for word, _ in KEYWORDS if word in schema and word not in ("const", "enum")]
    return ", ".join((" or ".join(names), *(f"{word} {_written(schema[word])}" for word in narrower)))


def _written(data: Json) -> str:
    shown = json.dumps(data, ensure_ascii=False)
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…"


def _schemas(schema: Json, path: tuple[str | int, ...]) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The schemas that may speak of a place, with their own pointers."""
    found = list(_open(schema, "", schema, 0))
    for key in path:
        below = (step for pointer, each in found for step in _below(each, pointer, key))
        found = [one for part, at in below for one in _open(part, at, schema, 0)][:MOST_CANDIDATES]
    yield from found


def _below(schema: Mapping[str, Json], pointer: str, key: str | int) -> Iterator[tuple[Json, str]]:
    if isinstance(key, str):
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and key in properties:
            yield properties[key], f"{pointer}/properties/{key.replace('~', '~0').replace('/', '~1')}"
        elif isinstance(schema.get("additionalProperties"), Mapping):
            yield schema["additionalProperties"], f"{pointer}/additionalProperties"
        return
    for word in ("prefixItems", "items"):
        part = schema.get(word)
        if isinstance(part, list) and key < len(part):
            yield part[key], f"{pointer}/{word}/{key}"
            return
        if isinstance(part, Mapping):
            yield part, f"{pointer}/{word}"


def _open(schema: Json, pointer: str, root: Json, depth: int) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """A schema, or those that it is made of: references are followed, alternatives opened."""
    if not isinstance(schema, Mapping) or depth > 16:
        return
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        yield from _open(_target(root, target), target[1:], root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(word)
        if isinstance(parts, list):
            for number, part in enumerate(parts):
                yield from _open(part, f"{pointer}/{word}/{number}", root, depth + 1)
    if not {"$ref", "anyOf", "oneOf", "allOf"} & set(schema) or {"properties", "items", "type"} & set(schema):
        yield pointer, schema


def _target(root: Json, pointer: str) -> Json:
    here = root
    for part in pointer[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isdecimal() and int(name) < len(here):
            here = here[int(name)]
        else:
            return None
    return here


def placed(schema: Json, text: bytes, explanation: Explanation) -> Explanation:
    """Add to an explanation where the text stands in its JSON and which keyword of the schema speaks of that place.

    >>> told = placed({"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}}, b'{"a":"y', Explanation())
    >>> told.pointer, told.keyword, told.expected
    ('/a', '/properties/a: enum', '"yes"')
    """
    here = spot(text.decode("utf-8", "ignore"))
    pointer, keyword, expected = keyword_at(schema, here)
    more = explanation.expected
    both = expected if more in ("", expected) else f"{expected}: {more}"
    return replace(
        explanation, pointer=here.pointer, keyword=f"{pointer or '/'}: {keyword}" if keyword else "", expected=both
    )
