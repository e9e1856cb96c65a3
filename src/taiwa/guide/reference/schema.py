"""`to_regex`: JSON Schema as one regular expression, for as much of it as is finite.

No text that it allows is wrong, but not every right one is allowed: the properties stand in the order of the schema and
no others are written, what has no type nests two levels deep, and so does what refers to itself. A keyword that cannot be
said is refused with its pointer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import unquote

from taiwa.guide.protocol import Clause, UncoveredError
from taiwa.guide.reference.options import TYPES, Schema, apart, kind_of, kinds_of, values_of
from taiwa.guide.reference.ranges import decimals, integers
from taiwa.guide.reference.strings import CHARACTER, FORMATS, STRING, searched
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["escaped", "to_regex"]

MOST_CHARS = 1_000_000
MOST_NESTED = 2
MOST_DEPTH = 40
INTEGER = "-?(0|[1-9][0-9]*)"
NUMBER = rf"{INTEGER}(\.[0-9]+)?([eE][+-]?[0-9]+)?"
SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
REFUSED = (
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "patternProperties", "propertyNames",
    "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems", "unevaluatedProperties", "multipleOf",
)  # fmt: skip
HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
STRUCTURE = frozenset(
    ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", *(name for names in HINTS.values() for name in names))
)


def escaped(text: str) -> str:
    r"""Write a text as the pattern that matches just it.

    >>> escaped("1+1")
    '1\\+1'
    """
    return SPECIAL.sub(r"\\\g<0>", text)


def to_regex(schema: Json, space: str = "") -> str:
    r"""Write the JSON texts of a schema as a regular expression; `space` is the pattern of what may stand between signs, in
    parentheses where it has alternatives.

    >>> to_regex({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
    '\\{"ok":(true|false)\\}'

    Raises:
        UncoveredError: a keyword asks for what no regular expression can say, or for what no text can be.
        InputError: this is no JSON Schema.
    """
    found = _Writer(schema, space).whole(schema, _Place())
    if found is None:
        raise InputError("no JSON text can meet this schema")
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the schema, how deep in the text, and through which references."""

    pointer: str = ""
    depth: int = 0
    nested: int = 0
    through: tuple[str, ...] = ()

    def at(self, *keys: str | int) -> "_Place":
        """A place below: one level deeper in the text."""
        if self.depth >= MOST_DEPTH:
            self.refuse("type", f"nested deeper than {MOST_DEPTH}")
        tail = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
        return _Place(self.pointer + tail, self.depth + 1, self.nested, self.through)

    def refuse(self, keyword: str, reason: str) -> NoReturn:
        clause = str(Clause(self.pointer, keyword, reason))
        raise UncoveredError(f"a regular expression cannot say this: {clause}", clauses=(clause,))


@dataclass(slots=True)
class _Writer:
    """Writes schemas; None stands for what no text can be."""

    root: Json
    space: str
    written: int = field(default=0)

    def whole(self, schema: Json, place: _Place) -> str | None:
        found = self.any(place, TYPES) if schema is True else None if schema is False else self.read(schema, place)
        self.count(len(found or ""))
        return found

    def count(self, chars: int) -> None:
        self.written += chars
        if self.written > MOST_CHARS:
            raise InputError(f"the regex of this schema would have more than {MOST_CHARS:,} characters")

    def read(self, schema: Json, place: _Place) -> str | None:
        if not isinstance(schema, Mapping):
            raise InputError(f"{place.pointer or '/'}: expected a schema, not {type(schema).__name__}")
        for keyword in REFUSED:
            if schema.get(keyword) not in (None, False) and not (keyword == "multipleOf" and schema[keyword] == 1):
                place.refuse(keyword, "not kept by the reference guide")
        for keyword in ("const", "enum", "$ref", "anyOf", "oneOf", "allOf"):
            if keyword in schema:
                values = keyword in ("const", "enum")
                beside = sorted(STRUCTURE & set(schema) - {keyword, "type" if values else keyword})
                if beside:
                    place.refuse(keyword, f"beside {beside[0]}")
                return self.choice(schema, keyword, place) if values else self.combined(schema, keyword, place)
        return self.typed(schema, place)

    def constant(self, data: Json) -> str:
        """One value, in the one way that it is written."""
        if isinstance(data, dict):
            return self.joined("{", "}", [f"{self.key(key)}{self.constant(part)}" for key, part in data.items()])
        if isinstance(data, list):
            return self.joined("[", "]", [self.constant(part) for part in data])
        return escaped(json.dumps(data, ensure_ascii=False))

    def choice(self, schema: Schema, keyword: str, place: _Place) -> str:
        options, kinds = values_of(schema), kinds_of(schema)
        fitting = [option for option in options if kind_of(option) in kinds]
        if not fitting:
            place.refuse(keyword, "no value can be one of them" if options else "no value can be one of none")
        return self.either([self.constant(option) for option in fitting])

    def either(self, options: Sequence[str | None]) -> str:
        found = list(dict.fromkeys(option for option in options if option is not None))
        return found[0] if len(found) == 1 else f"({'|'.join(found)})"

    def combined(self, schema: Schema, keyword: str, place: _Place) -> str | None:
        if keyword == "$ref":
            return self.reference(schema["$ref"], place)
        parts = schema[keyword]
        if not isinstance(parts, list) or not parts:
            raise InputError(f"{place.pointer or '/'}: {keyword} must be a list of schemas")
        if keyword == "allOf" and len(parts) > 1:
            place.refuse(keyword, "more than one schema")
        if keyword == "oneOf" and not apart([self.followed(part) for part in parts]):
            place.refuse(keyword, "a value might be of two of them")
        found = [self.whole(part, place.at(keyword, number)) for number, part in enumerate(parts)]
        return self.either(found) if any(part is not None for part in found) else None

    def reference(self, pointer: Json, place: _Place) -> str | None:
        target = self.target(pointer, place)
        assert isinstance(pointer, str)
        if place.through.count(pointer) >= MOST_NESTED:
            return None
        return self.whole(target, _Place(pointer[1:], place.depth + 1, place.nested, (*place.through, pointer)))

    def target(self, pointer: Json, place: _Place) -> Json:
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            place.refuse("$ref", f"{pointer!r} leads out of the schema, and nothing is fetched")
        here = self.root
        for part in pointer[1:].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping) and name in here:
                here = here[name]
            elif isinstance(here, list) and name.isdecimal() and int(name) < len(here):
                here = here[int(name)]
            else:
                place.refuse("$ref", f"{pointer!r} leads nowhere")
        return here

    def followed(self, schema: Json) -> Json:
        """What a schema that is only a reference refers to."""
        for _ in range(MOST_NESTED):
            if isinstance(schema, Mapping) and "$ref" in schema:
                schema = self.target(schema["$ref"], _Place())
        return schema

    def typed(self, schema: Schema, place: _Place) -> str | None:
        kinds = schema.get("type")
        if kinds is None:
            kinds = [kind for kind, words in HINTS.items() if any(word in schema for word in words)]
            if not kinds:
                return self.any(place, TYPES)
        names = [kinds] if isinstance(kinds, str) else kinds
        if not isinstance(names, list) or not names:
            raise InputError(f"{place.pointer or '/'}: type must be a name or a list of names")
        found = [self.one(str(name), schema, place) for name in names]
        return self.either(found) if any(part is not None for part in found) else None

    def one(self, kind: str, schema: Schema, place: _Place) -> str | None:
        match kind:
            case "object":
                return self.object(schema, place)
            case "array":
                return self.array(schema, place)
            case "string":
                return self.string(schema, place)
            case "integer" | "number":
                return _number(kind, schema, place)
            case "boolean":
                return "(true|false)"
            case "null":
                return "null"
            case _:
                raise InputError(f"{place.pointer or '/'}: JSON has no type {kind!r}")

    def any(self, place: _Place, kinds: Sequence[str]) -> str | None:
        """Whatever has one of these types; objects and lists nest a bounded number of levels."""
        deeper = _Place(place.pointer, place.depth, place.nested + 1, place.through)
        flat = [kind for kind in kinds if place.nested < MOST_NESTED or kind not in ("object", "array")]
        found = [self.one(kind, {}, deeper) for kind in flat]
        return self.either(found) if found else None

    def string(self, schema: Schema, place: _Place) -> str | None:
        least, most = _size(schema, "minLength", place) or 0, _size(schema, "maxLength", place)
        if most is not None and most < least:
            place.refuse("minLength", f"more than maxLength, which is {most}")
        form = schema.get("format")
        if "pattern" in schema:
            for other in ("minLength", "maxLength", "format"):
                if other in schema:
                    place.refuse("pattern", f"beside {other}")
            return self.patterned(schema["pattern"], place)
        if form is not None:
            if form not in FORMATS:
                place.refuse("format", f"{form!r} is not known")
            if least or most is not None:
                place.refuse("format", "beside a length")
            return f'"{FORMATS[str(form)]}"'
        if not least and most is None:
            return STRING
        times = f"{{{least},{'' if most is None else most}}}"
        return f'"{CHARACTER}{times}"'

    def patterned(self, pattern: Json, place: _Place) -> str:
        try:
            return f'"{searched(str(pattern))}"'
        except InputError as error:
            place.refuse("pattern", error.message)

    def array(self, schema: Schema, place: _Place) -> str | None:
        least, most = _size(schema, "minItems", place) or 0, _size(schema, "maxItems", place)
        if most is not None and most < least:
            place.refuse("minItems", f"more than maxItems, which is {most}")
        first, rest_of = _items(schema)
        heads = [self.whole(part, place.at(*keys)) for keys, part in first]
        rest = self.rest(rest_of, place, bare=not first)
        if None in heads:
            cut = heads.index(None)
            heads, rest = heads[:cut], None
        whole = heads[: most if most is not None else len(heads)]
        if least > len(whole) and rest is None:
            return None
        return self.listed([head for head in whole if head is not None], rest, least, most)

    def rest(self, found: tuple[str, Json] | None, place: _Place, *, bare: bool) -> str | None:
        """What comes after the first items: what `items` says; anything, where nothing at all is said; else nothing."""
        if found is not None:
            return self.whole(found[1], place.at(found[0]))
        return self.any(place, TYPES) if bare else None

    def listed(self, heads: list[str], rest: str | None, least: int, most: int | None) -> str:
        comma = f"{self.space},{self.space}"
        if not heads:
            if rest is None or most == 0:
                return self.joined("[", "]", [])
            more = f"({comma}{rest})" + _times(max(0, least - 1), None if most is None else most - 1)
            return self.around("[", "]", f"{rest}{more}", may_lack=not least)
        room = None if most is None else most - len(heads)
        tail = "" if rest is None or room == 0 else f"({comma}{rest})" + _times(max(0, least - len(heads)), room)
        inner = heads[-1] + tail
        for number in range(len(heads) - 1, 0, -1):
            inner = f"{heads[number - 1]}{comma}{inner}" if number < least else f"{heads[number - 1]}({comma}{inner})?"
        return self.around("[", "]", inner, may_lack=not least)

    def object(self, schema: Schema, place: _Place) -> str | None:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise InputError(f"{place.pointer or '/'}: properties must be an object, and required a list")
        others = schema.get("additionalProperties")
        if not properties and not required and others is not False:
            return self.map(others, schema, place)
        members: list[tuple[str, bool]] = []
        for key in [*properties, *(str(key) for key in required if key not in properties)]:
            below = place.at("properties", key) if key in properties else place.at("additionalProperties")
            found = self.whole(properties.get(key, True if others is None else others), below)
            if found is None and key in required:
                return None
            if found is not None:
                members.append((self.key(key) + found, key in required))
        _counted(schema, members, place)
        return self.around("{", "}", self.members(members), may_lack=not any(needed for _, needed in members))

    def map(self, others: Json, schema: Schema, place: _Place) -> str | None:
        least, most = _size(schema, "minProperties", place) or 0, _size(schema, "maxProperties", place)
        if least > 1:
            place.refuse("minProperties", "of keys that are not named, two may be the same")
        free = others is None or others is True
        found = self.any(place, TYPES) if free else self.whole(others, place.at("additionalProperties"))
        if found is None or most == 0:
            return None if least else self.joined("{", "}", [])
        member = f"{STRING}{self.space}:{self.space}{found}"
        more = f"({self.space},{self.space}{member})" + _times(0, None if most is None else most - 1)
        return self.around("{", "}", f"{member}{more}", may_lack=not least)

    def members(self, members: list[tuple[str, bool]]) -> str:
        """The members of an object in their order, any of which may be left out that is not required."""
        comma = f"{self.space},{self.space}"
        pivot = next((number for number, (_, required) in enumerate(members) if required), None)
        if pivot is None:  # each of them may be the first, so each is written as often as it has others before it
            self.count(sum(len(text) * place for place, (text, _) in enumerate(members)))
            options = [text + self.after(members[number + 1 :]) for number, (text, _) in enumerate(members)]
            return f"({'|'.join(options)})" if options else ""
        before = "".join(f"({text}{comma})?" for text, _ in members[:pivot])
        return before + members[pivot][0] + self.after(members[pivot + 1 :])

    def after(self, members: Sequence[tuple[str, bool]]) -> str:
        comma = f"{self.space},{self.space}"
        return "".join(f"{comma}{text}" if required else f"({comma}{text})?" for text, required in members)

    def key(self, name: str) -> str:
        return f"{escaped(json.dumps(name, ensure_ascii=False))}{self.space}:{self.space}"

    def joined(self, opening: str, closing: str, parts: Sequence[str]) -> str:
        return self.around(opening, closing, f"{self.space},{self.space}".join(parts))

    def around(self, opening: str, closing: str, inner: str, *, may_lack: bool = False) -> str:
        filled = f"{inner}{self.space}" if inner and self.space else inner
        return f"\\{opening}{self.space}{f'({filled})?' if filled and may_lack else filled}\\{closing}"


def _times(least: int, most: int | None) -> str:
    if most is None:
        return "*" if least == 0 else f"{{{least},}}"
    return f"{{{least},{max(0, most)}}}"


def _items(schema: Schema) -> tuple[list[tuple[tuple[str | int, ...], Json]], tuple[str, Json] | None]:
    """The schemas of the first items, and that of the rest; the older words for them are known as well."""
    word = "prefixItems" if "prefixItems" in schema else "items"
    first = schema.get(word)
    if isinstance(first, list):
        other = "items" if word == "prefixItems" else "additionalItems"
        rest = (other, schema[other]) if other in schema else None
        return [((word, number), part) for number, part in enumerate(first)], rest
    return [], ("items", schema["items"]) if "items" in schema else None


def _size(schema: Schema, keyword: str, place: _Place) -> int | None:
    size = schema.get(keyword)
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, (int, float)) or size < 0 or int(size) != size:
        raise InputError(f"{place.pointer or '/'}: {keyword} must be a whole number, not {size!r}")
    return int(size)


def _counted(schema: Schema, members: Sequence[tuple[str, bool]], place: _Place) -> None:
    least, most = _size(schema, "minProperties", place), _size(schema, "maxProperties", place)
    if least is not None and least > sum(required for _, required in members):
        place.refuse("minProperties", "more than the required ones")
    if most is not None and most < len(members):
        place.refuse("maxProperties", f"fewer than the {len(members)} properties")


def _number(kind: str, schema: Schema, place: _Place) -> str | None:
    low, above = _bound(schema, "minimum", "exclusiveMinimum", place, lower=True)
    high, below = _bound(schema, "maximum", "exclusiveMaximum", place, lower=False)
    if low is None and high is None:
        return INTEGER if kind == "integer" else NUMBER
    if kind == "number":
        found = decimals(low, high, above=above, below=below)
    else:
        found = integers(
            None if low is None else low + above,
            None if high is None else high - below,
        )
    return None if found is None else f"({found})"


def _bound(schema: Schema, inside: str, outside: str, place: _Place, *, lower: bool) -> tuple[int | None, bool]:
    """The stricter of two bounds, and whether it is itself left out."""
    found: list[tuple[int, bool]] = []
    for keyword, strict in ((inside, False), (outside, True)):
        bound = schema.get(keyword)
        if bound is None or isinstance(bound, bool):
            if bound is True:
                place.refuse(keyword, "a switch, as in draft 4")
            continue
        if not isinstance(bound, (int, float)) or int(bound) != bound or abs(bound) >= 10**300:
            place.refuse(keyword, f"{bound!r} is not a whole number")
        found.append((int(bound), strict))
    if not found:
        return None, False
    return max(found) if lower else min(found, key=lambda pair: (pair[0], not pair[1]))
