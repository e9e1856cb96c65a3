r"""JSON Schema as one regular expression, as far as it is finite.

Every text that it matches is valid, but not every valid text matches: properties come in the order of the schema and no
others are written, and untyped values and recursive types nest two levels deep. A keyword that no pattern can represent is
refused with its pointer.

A pattern of a string is written as JSON writes it: `"` as `\"`, a new line as `\n`. Each character has one spelling, so `\u` and
`\/` do not occur: a key that is spelled otherwise would be another key.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn, TypeAlias, cast

from taiwa.constraints.allowed_tokens import EXPONENT, MOST_DECIMALS, MOST_DIGITS
from taiwa.constraints.automaton import (
    ALL,
    Alternation,
    Chars,
    Concatenation,
    Node,
    Ranges,
    Repeat,
    compile_regex,
    escape_regex,
    format_regex,
    format_times,
    invert_ranges,
    merge_ranges,
    parse_regex,
)
from taiwa.constraints.guide import SchemaClause, UnsupportedConstraintError, Whitespace, check_json
from taiwa.json_schema import (
    Document,
    bound,
    check_keywords,
    has_type,
    join_pointer,
    listed_values,
    names,
    resolve_pointer,
    types,
    whole,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Regex
from taiwa.kernel.serialization import Json
from taiwa.schema_values import are_disjoint

FRACTION = rf"(\.[0-9]{{1,{MOST_DECIMALS}}})?"
NO_FRACTION = rf"(\.0{{1,{MOST_DECIMALS}}})?"
SOME_FRACTION = rf"\.[0-9]{{0,{MOST_DECIMALS - 1}}}[1-9]"  # next to an excluded bound, a trailing zero is not needed


def integer_range(low: int | None, high: int | None) -> str | None:
    """Return the pattern of the integers from one to another; None if there are none.

    >>> integer_range(8, 23)
    '[8-9]|1[0-9]|2[0-3]'
    >>> integer_range(-1, None)
    '-[0-1]|[0-9]|[1-9][0-9]{1,19}'
    """
    found: list[str] = []
    if low is None or low < 0:
        found += (
            f"-({part})" if "|" in part else f"-{part}"
            for part in _sizes(max(0, -(0 if high is None else high)), _negate(low))
        )
    if high is None or high >= 0:
        found += _sizes(max(0, low or 0), high)
    return "|".join(found) or None


def decimal_range(low: int | None, high: int | None, *, above: bool, below: bool) -> str | None:
    """Return the pattern of the numbers between two whole bounds, without exponent; `above` and `below` exclude the bounds.

    >>> decimal_range(0, 1, above=True, below=False)
    '0\\\\.[0-9]{0,23}[1-9]|1(\\\\.0{1,24})?'
    """
    found: list[str] = []
    if low is None or low < 0:
        ceiling = -high if high is not None and high < 0 else 0
        found += (f"-({part})" for part in _amounts((ceiling, below or not ceiling), (_negate(low), above)))
    if high is None or high >= 0:
        floor = low if low is not None and low > 0 else 0
        found += _amounts((floor, above and low == floor), (high, below))
    return "|".join(found) or None


def _negate(bound: int | None) -> int | None:
    return None if bound is None else -bound


def _amounts(low: tuple[int, bool], high: tuple[int | None, bool]) -> Iterator[str]:
    """Yield numbers that are not negative; each bound comes with whether it is excluded."""
    (least, above), (most, below) = low, high
    if most is not None and most < least:
        return
    if most is None or least < most:
        yield f"{least}{SOME_FRACTION if above else FRACTION}"
        between = "|".join(_sizes(least + 1, None if most is None else most - 1))
        if between:
            yield f"({between}){FRACTION}"
    if most is not None and not below and not (most == least and above):
        yield f"{most}{NO_FRACTION}"


def _sizes(low: int, high: int | None) -> Iterator[str]:
    """Yield whole numbers that are not negative, by their number of digits."""
    first = str(low)
    if high is None:
        yield from _digits(first, "9" * len(first))
        if len(first) < MOST_DIGITS:
            yield f"[1-9][0-9]{{{len(first)},{MOST_DIGITS - 1}}}"
        return
    for size in range(len(first), len(str(high)) + 1 if low <= high else 0):
        least = max(low, 10 ** (size - 1) if size > 1 else 0)
        yield from _digits(str(least), str(min(high, 10**size - 1)))


def _digits(low: str, high: str) -> Iterator[str]:
    """Yield numbers of one length, digit by digit."""
    if low == high:
        yield low
    elif low[0] == high[0]:
        yield from (low[0] + rest for rest in _digits(low[1:], high[1:]))
    else:
        size = len(low) - 1
        first, last = int(low[0]), int(high[0])
        if low[1:].strip("0"):
            yield from (low[0] + rest for rest in _digits(low[1:], "9" * size))
            first += 1
        if high[1:].strip("9"):
            last -= 1
        if first <= last:
            tail = f"[0-9]{{{size}}}" if size > 1 else "[0-9]" * size
            yield (str(first) if first == last else f"[{first}-{last}]") + tail
        if high[1:].strip("9"):
            yield from (high[0] + rest for rest in _digits("0" * size, high[1:]))


CHARACTER = r'([^"\\\x00-\x1f\x7f]|\\["\\bfnrt])'
STRING = f'"{CHARACTER}*"'
HEX = "[0-9a-fA-F]"
LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
DATE = f"([0-9]{{4}}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|{LEAP_YEAR}-02-29)"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
FORMATS = {
    "date": DATE,
    "time": f"{CLOCK}{ZONE}",
    "date-time": f"{DATE}T{CLOCK}{ZONE}",
    "uuid": f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}",
    "ipv4": rf"{BYTE}(\.{BYTE}){{3}}",
}
ESCAPED: Ranges = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F))
SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
ANYTHING = Repeat(Chars(ALL), 0, None)


def json_string_regex(pattern: str) -> str:
    r"""Return the pattern of the strings in which a pattern is found, as JSON writes them, without quotes.

    >>> json_string_regex("^[a-c]$")
    '[a-c]'
    >>> json_string_regex('^"$')
    '\\\\"'

    Raises:
        InputError: no automaton can represent the pattern.
    """
    found = _in_json(parse_regex(pattern, around=ANYTHING))
    return f"({format_regex(found)})" if isinstance(found, Alternation) else format_regex(found)


def _in_json(node: Node) -> Node:
    match node:
        case Chars(ranges):
            options = list(_json_ways(ranges))
            return options[0] if len(options) == 1 else Alternation(tuple(options))
        case Concatenation(parts):
            return Concatenation(tuple(map(_in_json, parts)))
        case Alternation(options):
            return Alternation(tuple(map(_in_json, options)))
        case Repeat(part, least, most):
            return Repeat(_in_json(part), least, most)
        case _:
            return node


def _json_ways(ranges: Ranges) -> Iterator[Node]:
    """Yield the JSON spellings of one of some characters."""
    plain = invert_ranges(merge_ranges((*invert_ranges(ranges), *ESCAPED)))
    if plain:
        yield Chars(plain)
    short = [ord(sign) for code, sign in SHORT.items() if any(low <= code <= high for low, high in ranges)]
    if short:
        yield Concatenation((Chars(((0x5C, 0x5C),)), Chars(merge_ranges((sign, sign) for sign in short))))
    if not plain and not short:
        yield Chars(())


MOST_CHARS = 1_000_000
MOST_NESTED = 2
MOST_DEPTH = 40
INTEGER = f"-?(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})"
NUMBER = INTEGER + FRACTION + EXPONENT
Schema: TypeAlias = Mapping[str, Json]
TYPES = ("object", "array", "string", "number", "boolean", "null")
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
    ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", *(word for words in HINTS.values() for word in words))
)


SPACED = " "
SPACES = {"bounded": "( |\\n {0,24})?", "compact": "", "spaced": SPACED, "free": "[ \\t\\r\\n]*"}
JSON_SPACE = frozenset(map(ord, " \t\r\n"))


def space_regex(whitespace: Whitespace) -> str:
    """Return the pattern of the white space between JSON tokens, for `to_regex`.

    Raises:
        InputError: the mode is unknown, or a pattern matches other characters.
    """
    if not isinstance(whitespace, Regex):
        if whitespace not in SPACES:
            raise InputError(f"unknown whitespace mode {whitespace!r}; choose one of {', '.join(SPACES)}, or a pattern")
        return SPACES[whitespace]
    for low, high, _ in (move for row in compile_regex(whitespace.pattern, chars=True).moves for move in row):
        for code in range(low, min(high, low + len(JSON_SPACE)) + 1):
            if code not in JSON_SPACE:
                raise InputError(
                    f"the pattern {whitespace.pattern!r} for white space matches {chr(code)!r}; choose one of {', '.join(SPACES)}, or a pattern of ' \\t\\r\\n'"
                )
    return f"({whitespace.pattern})?"


def to_regex(schema: Json, space: str = "") -> str:
    r"""Return the regular expression of the JSON texts of a schema.

    `space` is the pattern of white space between tokens, in parentheses if it has alternatives; one space stands after commas
    and colons only.

    >>> to_regex({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
    '\\{"ok":(true|false)\\}'

    Raises:
        UnsupportedConstraintError: no regular expression can represent a keyword, or no text satisfies it.
        InputError: it is not a JSON Schema.
    """
    check_json(schema, "the schema")
    comma, colon = (", ", ": ") if space == SPACED else (f"{space},{space}", f"{space}:{space}")
    writer = _RegexWriter(Document(cast("bool", schema)), "" if space == SPACED else space, comma, colon)
    found = writer.whole(schema, _Location())
    if found is None:
        raise InputError("no JSON text is valid under this schema")
    return found


@dataclass(frozen=True, slots=True)
class _Location:
    """The pointer in the schema, the depth in the text, and the references that led here."""

    pointer: str = ""
    depth: int = 0
    nested: int = 0
    through: tuple[str, ...] = ()

    def at(self, *keys: str | int) -> "_Location":
        """Return a location one level deeper in the text."""
        if self.depth >= MOST_DEPTH:
            self.refuse("type", f"nested deeper than {MOST_DEPTH}")
        return _Location(join_pointer(self.pointer, *keys), self.depth + 1, self.nested, self.through)

    def refuse(self, keyword: str, reason: str) -> NoReturn:
        clause = str(SchemaClause(self.pointer, keyword, reason))
        raise UnsupportedConstraintError(f"a regular expression cannot represent this: {clause}", clauses=(clause,))


@dataclass(slots=True)
class _RegexWriter:
    """Writes schemas; None stands for a schema that no text satisfies."""

    document: Document
    space: str
    comma: str
    colon: str
    written: int = field(default=0)

    def whole(self, schema: Json, place: _Location) -> str | None:
        found = self.any(place, TYPES) if schema is True else None if schema is False else self.read(schema, place)
        self.count(len(found or ""))
        return found

    def count(self, chars: int) -> None:
        self.written += chars
        if self.written > MOST_CHARS:
            raise InputError(f"the regex of this schema would have more than {MOST_CHARS:,} characters")

    def read(self, schema: Json, place: _Location) -> str | None:
        if not isinstance(schema, Mapping):
            raise InputError(f"{place.pointer or '/'}: expected a schema, not {type(schema).__name__}")
        check_keywords(schema, place.pointer)
        for keyword in REFUSED:
            if schema.get(keyword) not in (None, False) and not (keyword == "multipleOf" and schema[keyword] == 1):
                place.refuse(keyword, "not enforced by the readable guides")
        for keyword in ("const", "enum", "$ref", "anyOf", "oneOf", "allOf"):
            if keyword in schema:
                values = keyword in ("const", "enum")
                beside = sorted(STRUCTURE & set(schema) - {keyword, "type" if values else keyword})
                if beside:
                    place.refuse(keyword, f"beside {beside[0]}")
                return self.choice(schema, keyword, place) if values else self.combined(schema, keyword, place)
        return self.typed(schema, place)

    def constant(self, data: Json) -> str:
        """Return the pattern of one value."""
        if isinstance(data, dict):
            return self.joined("{", "}", [f"{self.key(key)}{self.constant(part)}" for key, part in data.items()])
        if isinstance(data, list):
            return self.joined("[", "]", [self.constant(part) for part in data])
        return escape_regex(json.dumps(data, ensure_ascii=False))

    def choice(self, schema: Schema, keyword: str, place: _Location) -> str | None:
        options = listed_values(schema) or []
        fitting = [option for option in options if has_type(option, types(schema))]
        if not fitting:
            place.refuse(keyword, "no value can be one of them" if options else "no value can be one of none")
        return self.either(map(self.constant, fitting))

    def either(self, options: Iterable[str | None]) -> str | None:
        patterns = list(dict.fromkeys(option for option in options if option is not None))
        return f"({'|'.join(patterns)})" if len(patterns) > 1 else next(iter(patterns), None)

    def combined(self, schema: Schema, keyword: str, place: _Location) -> str | None:
        if keyword == "$ref":
            return self.reference(schema["$ref"], place)
        parts = cast("list[Json]", schema[keyword])
        if keyword == "allOf" and len(parts) > 1:
            place.refuse(keyword, "more than one schema")
        if keyword == "oneOf" and not are_disjoint(cast("list[bool]", parts), self.document):
            place.refuse(keyword, "a value might be of two of them")
        return self.either(self.whole(part, place.at(keyword, number)) for number, part in enumerate(parts))

    def reference(self, pointer: Json, place: _Location) -> str | None:
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            place.refuse("$ref", f"{pointer!r} is outside of the schema; nothing is fetched")
        try:
            target = resolve_pointer(self.document.root.schema, pointer)
        except LookupError:
            place.refuse("$ref", f"{pointer!r} is not in the schema")
        if place.through.count(pointer) >= MOST_NESTED:
            return None
        return self.whole(target, _Location(pointer[1:], place.depth + 1, place.nested, (*place.through, pointer)))

    def typed(self, schema: Schema, place: _Location) -> str | None:
        kinds = schema.get("type") or [kind for kind, words in HINTS.items() if not schema.keys().isdisjoint(words)]
        if not kinds:
            return self.any(place, TYPES)
        listed = cast("list[str]", kinds if isinstance(kinds, list) else [kinds])
        return self.either(self.one(kind, schema, place) for kind in listed)

    def one(self, kind: str, schema: Schema, place: _Location) -> str | None:
        match kind:
            case "object":
                return self.object(schema, place)
            case "array":
                return self.array(schema, place)
            case "string":
                return self.string(schema, place)
            case "boolean":
                return "(true|false)"
            case "null":
                return "null"
            case _:
                return _number(kind, schema, place)

    def any(self, place: _Location, kinds: Sequence[str]) -> str | None:
        """Return the pattern of any value of these types; objects and lists nest a bounded number of levels."""
        deeper = _Location(place.pointer, place.depth, place.nested + 1, place.through)
        flat = [kind for kind in kinds if place.nested < MOST_NESTED or kind not in ("object", "array")]
        return self.either(self.one(kind, {}, deeper) for kind in flat)

    def string(self, schema: Schema, place: _Location) -> str | None:
        least, most = whole(schema, "minLength") or 0, whole(schema, "maxLength")
        if most is not None and most < least:
            place.refuse("minLength", f"more than maxLength, which is {most}")
        form = schema.get("format")
        if "pattern" in schema:
            for other in ("minLength", "maxLength", "format"):
                if other in schema:
                    place.refuse("pattern", f"beside {other}")
            try:
                return f'"{json_string_regex(str(schema["pattern"]))}"'
            except InputError as error:
                place.refuse("pattern", error.message)
        if form is not None:
            if form not in FORMATS:
                place.refuse("format", f"{form!r} is not known")
            if least or most is not None:
                place.refuse("format", "beside a length")
            return f'"{FORMATS[str(form)]}"'
        if not least and most is None:
            return STRING
        return f'"{CHARACTER}{{{least},{"" if most is None else most}}}"'

    def array(self, schema: Schema, place: _Location) -> str | None:
        least, most = whole(schema, "minItems") or 0, whole(schema, "maxItems")
        if most is not None and most < least:
            place.refuse("minItems", f"more than maxItems, which is {most}")
        first, rest_of = _items(schema)
        heads = [self.whole(part, place.at(*keys)) for keys, part in first]
        if rest_of is not None:
            rest = self.whole(rest_of[1], place.at(rest_of[0]))
        else:  # any value, if not specified
            rest = None if first else self.any(place, TYPES)
        if None in heads:
            cut = heads.index(None)
            heads, rest = heads[:cut], None
        heads = heads[:most]
        if least > len(heads) and rest is None:
            return None
        return self.listed([head for head in heads if head is not None], rest, least, most)

    def listed(self, heads: list[str], rest: str | None, least: int, most: int | None) -> str:
        comma = self.comma
        if not heads:
            if rest is None or most == 0:
                return self.joined("[", "]", [])
            more = f"({comma}{rest})" + format_times(max(0, least - 1), None if most is None else most - 1)
            return self.around("[", "]", f"{rest}{more}", may_lack=not least)
        room = None if most is None else most - len(heads)
        tail = "" if rest is None or room == 0 else f"({comma}{rest})" + format_times(max(0, least - len(heads)), room)
        inner = heads[-1] + tail
        for number in range(len(heads) - 1, 0, -1):
            inner = f"{heads[number - 1]}{comma}{inner}" if number < least else f"{heads[number - 1]}({comma}{inner})?"
        return self.around("[", "]", inner, may_lack=not least)

    def object(self, schema: Schema, place: _Location) -> str | None:
        properties = cast("Mapping[str, Json]", schema.get("properties", {}))
        required = names(schema)
        if schema.get("required") is True:
            place.refuse("required", "a switch, as in draft 3")
        others = schema.get("additionalProperties")
        if not properties and not required and others is not False:
            return self.map(others, schema, place)
        members: list[tuple[str, bool]] = []
        for key in [*properties, *(key for key in required if key not in properties)]:
            below = place.at("properties", key) if key in properties else place.at("additionalProperties")
            found = self.whole(properties.get(key, True if others is None else others), below)
            if found is None and key in required:
                return None
            if found is not None:
                members.append((self.key(key) + found, key in required))
        _counted(schema, members, place)
        return self.around("{", "}", self.members(members), may_lack=not any(needed for _, needed in members))

    def map(self, others: Json, schema: Schema, place: _Location) -> str | None:
        least, most = whole(schema, "minProperties") or 0, whole(schema, "maxProperties")
        if least > 1:
            place.refuse("minProperties", "of keys that are not named, two may be the same")
        free = others is None or others is True
        found = self.any(place, TYPES) if free else self.whole(others, place.at("additionalProperties"))
        if found is None or most == 0:
            return None if least else self.joined("{", "}", [])
        member = f"{STRING}{self.colon}{found}"
        more = f"({self.comma}{member})" + format_times(0, None if most is None else most - 1)
        return self.around("{", "}", f"{member}{more}", may_lack=not least)

    def members(self, members: list[tuple[str, bool]]) -> str:
        """Return the pattern of the members of an object in order; members that are not required are optional."""
        pivot = next((number for number, (_, required) in enumerate(members) if required), None)
        if pivot is None:  # each of them may be the first, so each is written once for every other before it
            self.count(sum(len(text) * place for place, (text, _) in enumerate(members)))
            options = [text + self.after(members[number + 1 :]) for number, (text, _) in enumerate(members)]
            return f"({'|'.join(options)})" if options else ""
        before = "".join(f"({text}{self.comma})?" for text, _ in members[:pivot])
        return before + members[pivot][0] + self.after(members[pivot + 1 :])

    def after(self, members: Sequence[tuple[str, bool]]) -> str:
        return "".join(f"{self.comma}{text}" if required else f"({self.comma}{text})?" for text, required in members)

    def key(self, name: str) -> str:
        return f"{escape_regex(json.dumps(name, ensure_ascii=False))}{self.colon}"

    def joined(self, opening: str, closing: str, parts: Sequence[str]) -> str:
        return self.around(opening, closing, self.comma.join(parts))

    def around(self, opening: str, closing: str, inner: str, *, may_lack: bool = False) -> str:
        filled = f"{inner}{self.space}" if inner and self.space else inner
        return f"\\{opening}{self.space}{f'({filled})?' if filled and may_lack else filled}\\{closing}"


def _items(schema: Schema) -> tuple[list[tuple[tuple[str | int, ...], Json]], tuple[str, Json] | None]:
    """Return the schemas of the first items, and that of the rest; the keywords of older drafts are read as well."""
    word = "prefixItems" if "prefixItems" in schema else "items"
    first = schema.get(word)
    if isinstance(first, list):
        other = "items" if word == "prefixItems" else "additionalItems"
        rest = (other, schema[other]) if other in schema else None
        return [((word, number), part) for number, part in enumerate(first)], rest
    return [], ("items", schema["items"]) if "items" in schema else None


def _counted(schema: Schema, members: Sequence[tuple[str, bool]], place: _Location) -> None:
    least, most = whole(schema, "minProperties"), whole(schema, "maxProperties")
    if least is not None and least > sum(required for _, required in members):
        place.refuse("minProperties", "more than the required ones")
    if most is not None and most < len(members):
        place.refuse("maxProperties", f"fewer than the {len(members)} properties")


def _number(kind: str, schema: Schema, place: _Location) -> str | None:
    for keyword in HINTS["number"]:
        edge = schema.get(keyword)
        if isinstance(edge, (int, float)) and (not abs(edge) < 10**300 or int(edge) != edge):
            place.refuse(keyword, f"{edge!r} is not a whole number")
    low, above = _whole_bound(schema, "min")
    high, below = _whole_bound(schema, "max")
    if low is None and high is None:
        return INTEGER if kind == "integer" else NUMBER
    if kind == "number":
        found = decimal_range(low, high, above=above, below=below)
    else:
        found = integer_range(None if low is None else low + above, None if high is None else high - below)
    return None if found is None else f"({found})"


def _whole_bound(schema: Schema, side: Literal["min", "max"]) -> tuple[int | None, bool]:
    """Return the stricter bound on one side, and whether it is excluded."""
    edge = bound(schema, side)
    return (None, False) if edge is None else (int(edge[0]), edge[1])
