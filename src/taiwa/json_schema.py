"""JSON Schema: its keywords, and documents with their references and drafts.

Nothing is fetched: a `$ref` that leaves its document is unresolved.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias, TypeGuard, cast
from urllib.parse import unquote, urldefrag, urljoin

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, is_number

Schema: TypeAlias = Mapping[str, Json] | bool
Steps: TypeAlias = tuple[str | int, ...]
"""From a schema to one directly inside it: the keyword, then the name or index where the keyword contains several."""
TYPES = ("null", "boolean", "object", "array", "number", "string")
"""Without `integer`, which is a subset of `number`."""

ANNOTATIONS = frozenset(
    """$comment $id $schema $anchor $dynamicAnchor $recursiveAnchor $vocabulary $defs definitions id title description default
    examples example deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema""".split()
)
"""Keywords that do not affect which values are valid."""

FORMATS: Mapping[str, str] = {
    "date-time": "syntax only: a leap second is allowed at any time",
    "time": "syntax only: a leap second is allowed at any time",
} | dict.fromkeys("date duration email hostname ipv4 ipv6 uuid uri".split(), "")
"""The formats that the mask engine enforces, and what it does not check."""

REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
APPLICATORS = REFERENCES | frozenset("allOf anyOf oneOf not if then else dependentSchemas dependencies".split())
"""Keywords that apply another schema to the same value."""


def is_object(item: object) -> TypeGuard[Mapping[str, Json]]:
    """Return whether the item is a JSON object."""
    return isinstance(item, Mapping)


def is_schema(item: object) -> TypeGuard[Mapping[str, Json] | bool]:
    """Return whether the item has the form of a schema: an object or a boolean."""
    return isinstance(item, (Mapping, bool))


def _is_list_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda item: isinstance(item, list) and all(map(check, cast("list[object]", item)))


def _is_object_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda item: isinstance(item, Mapping) and all(map(check, cast("Mapping[str, object]", item).values()))


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def is_whole(number: float) -> bool:
    """Return whether a number is an integer, of any size."""
    return isinstance(number, int) or number.is_integer()


LARGEST = 1e308
"""The largest number of a keyword; engines hold them in 64 bits."""


def _is_limit(item: object) -> bool:
    return is_number(item) and abs(cast("float", item)) <= LARGEST


def _is_count(item: object) -> bool:
    return _is_limit(item) and cast("float", item) >= 0 and is_whole(cast("float", item))


def _is_type(item: object) -> bool:
    listed = cast("list[object]", item) if isinstance(item, list) else [item]
    return bool(listed) and all(name in (*TYPES, "integer") for name in listed)


_is_names = _is_list_of(_is_text)
_are_schemas = _is_list_of(is_schema)

Contents: TypeAlias = Literal["", "one", "list", "one or list", "named"]
"""Which subschemas a keyword contains: none, one, a list of them, either, or an object of them by name."""
NEVER = 99


@dataclass(frozen=True, slots=True)
class Keyword:
    """The allowed values of a keyword, their description, its subschemas, and the drafts that define it.

    Drafts are numbered 3, 4, 6, 7, 8 (2019-09) and 9 (2020-12).
    """

    check: Callable[[object], bool]
    expected: str
    contents: Contents = ""
    since: int = 0
    until: int = NEVER


def _one(since: int = 0, until: int = NEVER) -> Keyword:
    return Keyword(is_schema, "a schema", "one", since, until)


def _each(names: str, keyword: Keyword) -> dict[str, Keyword]:
    return dict.fromkeys(names.split(), keyword)


_COUNT = Keyword(_is_count, "a whole number that is not negative")
_NAMED = Keyword(_is_object_of(is_schema), "an object of schemas", "named")
_SOME = Keyword(lambda item: _are_schemas(item) and item != [], "a list of schemas, and not empty", "list", since=4)
_TEXT = Keyword(_is_text, "a text")
KEYWORDS: Mapping[str, Keyword] = {
    "type": Keyword(_is_type, "one or a list of: null boolean object array number integer string"),
    "enum": Keyword(lambda item: isinstance(item, list), "a list"),
    "const": Keyword(lambda _: True, "a value", since=6),
    **_each("$ref pattern format", _TEXT),
    "$dynamicRef": replace(_TEXT, since=9),
    "$recursiveRef": replace(_TEXT, since=8, until=8),
    **_each("allOf anyOf oneOf", _SOME),
    "not": _one(since=4),
    **_each("if then else", _one(since=7)),
    **_each("propertyNames contains", _one(since=6)),
    **_each("unevaluatedProperties unevaluatedItems", _one(since=8)),
    "additionalProperties": _one(),
    "additionalItems": _one(until=8),
    **_each("properties patternProperties", _NAMED),
    "required": Keyword(lambda item: _is_names(item) or isinstance(item, bool), "a list of names"),
    **_each("minProperties maxProperties", replace(_COUNT, since=4)),
    "dependencies": Keyword(
        _is_object_of(lambda item: is_schema(item) or _is_names(item)),
        "an object of schemas or lists of names",
        "named",
        until=7,
    ),
    "dependentRequired": Keyword(_is_object_of(_is_names), "an object of lists of names", since=8),
    "dependentSchemas": replace(_NAMED, since=8),
    "items": Keyword(
        lambda item: is_schema(item) or _are_schemas(item), "a schema or a list of schemas", "one or list"
    ),
    "prefixItems": Keyword(
        lambda item: is_schema(item) or _are_schemas(item), "a list of schemas", "one or list", since=9
    ),
    **_each("minContains maxContains minItems maxItems minLength maxLength", _COUNT),
    "uniqueItems": Keyword(lambda item: isinstance(item, bool), "true or false"),
    **_each("minimum maximum", Keyword(_is_limit, "a number up to 1e308")),
    **_each(
        "exclusiveMinimum exclusiveMaximum",
        Keyword(lambda item: _is_limit(item) or isinstance(item, bool), "a number up to 1e308"),
    ),
    "multipleOf": Keyword(lambda item: _is_limit(item) and cast("float", item) > 0, "a number above 0", since=4),
}
"""The keywords that affect validity. A keyword that is neither here nor in `ANNOTATIONS` has no meaning in JSON Schema."""


def check_keywords(schema: Mapping[str, Json], pointer: str) -> None:
    """Check that each keyword of a schema has an allowed value.

    Raises:
        InputError: one does not; the message begins with the pointer.
    """
    for keyword, value in schema.items():
        if keyword in KEYWORDS and not KEYWORDS[keyword].check(value):
            raise InputError(f"{pointer or '/'}: {keyword} must be {KEYWORDS[keyword].expected}")


_CONTENTS: Mapping[str, Contents] = {
    **{name: keyword.contents for name, keyword in KEYWORDS.items() if keyword.contents},
    "$defs": "named",
    "definitions": "named",
    "contentSchema": "one",
}


def subschemas(schema: Mapping[str, Json], *keywords: str) -> Iterator[tuple[Steps, Schema]]:
    """Yield the schemas directly inside a schema, each with the steps that lead to it.

    With `keywords`, yield only what these contain, in their order; otherwise in the order of the schema's own keys.

    >>> list(subschemas({"items": {"type": "null"}, "anyOf": [True], "enum": [{}]}))
    [(('items',), {'type': 'null'}), (('anyOf', 0), True)]
    """
    for keyword in keywords or schema:
        contents, value = _CONTENTS.get(keyword), schema.get(keyword)
        if contents is None:
            continue
        if contents == "named":
            if is_object(value):
                yield from (((keyword, name), part) for name, part in value.items() if is_schema(part))
        elif isinstance(value, list):
            if contents != "one":
                yield from (((keyword, number), part) for number, part in enumerate(value) if is_schema(part))
        elif contents != "list" and is_schema(value):
            yield (keyword,), value


def map_subschemas(schema: Mapping[str, Json], change: "Callable[[Steps, Schema], Json | Schema]") -> dict[str, Json]:
    """Copy a schema, replacing each schema directly inside it by `change(steps, subschema)`.

    >>> map_subschemas({"type": "array", "items": {"type": "null"}}, lambda steps, _: {"title": str(steps[0])})
    {'type': 'array', 'items': {'title': 'items'}}
    """
    copy = dict(schema)
    for steps, part in subschemas(schema):
        keyword, changed = str(steps[0]), cast("Json", change(steps, part))
        if len(steps) == 1:
            copy[keyword] = changed
            continue
        original = schema[keyword]
        if copy[keyword] is original:
            copy[keyword] = list(original) if isinstance(original, list) else dict(cast("Mapping[str, Json]", original))
        cast("dict[str | int, Json]", copy[keyword])[steps[1]] = changed
    return copy


def is_any(schema: Schema) -> bool:
    """Return whether a schema has no keyword that could refuse a value."""
    return schema is True or (is_object(schema) and not any(key in KEYWORDS for key in schema))


def child(schema: Mapping[str, Json], keyword: str) -> Schema:
    """Return the schema that is the value of a keyword; True without it."""
    return cast("Schema", schema.get(keyword, True))


def names(schema: Mapping[str, Json], keyword: str = "required") -> tuple[str, ...]:
    """Return the names that a keyword lists."""
    listed = schema.get(keyword)
    return tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()


def whole(schema: Mapping[str, Json], keyword: str) -> int | None:
    """Return the whole number that is the value of a keyword."""
    value = schema.get(keyword)
    return int(cast("float", value)) if _is_count(value) else None


def types(schema: Mapping[str, Json]) -> frozenset[str]:
    """Return the types that a schema's own `type` allows; `integer` is not replaced by `number`."""
    value = schema.get("type")
    if value is None:
        return frozenset(TYPES)
    return frozenset(kind for kind in (value if isinstance(value, list) else [value]) if isinstance(kind, str))


def listed_values(schema: Mapping[str, Json]) -> list[Json] | None:
    """Return the values that `const` or `enum` lists; None if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


def json_type(value: Json) -> str:
    """Return the JSON type of a value, one of `TYPES`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_type(value: Json, allowed: frozenset[str]) -> bool:
    """Return whether a value has one of some types, `integer` among them."""
    kind = json_type(value)
    return kind in allowed or (kind == "number" and "integer" in allowed and is_whole(cast("float", value)))


def bound(schema: Mapping[str, Json], side: Literal["min", "max"]) -> tuple[float, bool] | None:
    """Return the stricter bound on one side: the number, and whether it is itself excluded."""
    edge, outer = schema.get(f"{side}imum"), schema.get(f"exclusive{side.title()}imum")
    bounds: list[tuple[float, bool]] = []
    if is_number(edge):
        bounds.append((cast("float", edge), outer is True))
    if is_number(outer):
        bounds.append((cast("float", outer), True))
    if not bounds:
        return None
    return max(bounds) if side == "min" else min(bounds, key=lambda pair: (pair[0], not pair[1]))


MAX_NAMED_KEYS = 256
"""Keys of an object that are named one by one in place of `propertyNames`."""


def name_keys(schema: Mapping[str, Json], *, numbers_as_text: bool = False) -> dict[str, Json]:
    """Replace `propertyNames` where it lists the keys by optional properties, and remove it where it forbids nothing: most servers ignore
    or refuse the keyword. With `numbers_as_text` a number in the list stands for its text, as in the schema of `dict[IntEnum, …]`.

    >>> name_keys({"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": {"type": "null"}})
    {'type': 'object', 'additionalProperties': False, 'properties': {'a': {'type': 'null'}}}
    """
    return _with_named_keys(schema, schema, as_text=numbers_as_text) if _has_key_rules(schema) else dict(schema)


def _has_key_rules(schema: Mapping[str, Json]) -> bool:
    waiting: list[Schema] = [schema]
    while waiting:
        part = waiting.pop()
        if is_object(part):
            if "propertyNames" in part:
                return True
            waiting.extend(inner for _, inner in subschemas(part))
    return False


def _with_named_keys(schema: Mapping[str, Json], root: Mapping[str, Json], *, as_text: bool) -> dict[str, Json]:
    named = map_subschemas(
        schema, lambda _, part: _with_named_keys(part, root, as_text=as_text) if is_object(part) else part
    )
    rule = named.get("propertyNames")
    if is_object(rule) and isinstance(reference := rule.get("$ref"), str) and reference.startswith("#"):
        with suppress(LookupError):
            rule = resolve_pointer(dict(root), reference)
    listed = listed_values(rule) if is_object(rule) else None
    if listed is not None and as_text:
        listed = [str(each) if type(each) is int else each for each in listed]
    properties, extra = named.get("properties", {}), named.get("additionalProperties", True)
    if not isinstance(properties, dict) or "patternProperties" in named or not (is_object(rule) or rule is True):
        return named
    without = {keyword: part for keyword, part in named.items() if keyword != "propertyNames"}
    if rule is True or _allows_any_key(rule):
        return without
    if listed is None:
        is_idle = extra is False and all(_allows_key(rule, key) for key in properties)
        return without if is_idle else named
    names = [each for each in listed if isinstance(each, str)]
    if len(names) < len(listed) or len(names) > MAX_NAMED_KEYS or not properties.keys() <= set(names):
        return named
    added = {} if extra is False else {key: extra for key in names if key not in properties}
    closed: dict[str, Json] = {"properties": {**properties, **added}, "additionalProperties": False}
    return without | closed


def _allows_any_key(rule: Mapping[str, Json]) -> bool:
    ignored = ("title", "description", "$comment")
    rules = {keyword: part for keyword, part in rule.items() if keyword not in ignored}
    is_text = (
        "string" in types(rules) and rules.keys() <= {"type", "minLength", "pattern"} and rules.get("minLength", 0) == 0
    )
    return is_text and ANY_TEXT.fullmatch(str(rules.get("pattern", ""))) is not None


ANY_TEXT = re.compile(r"\^?(?:\.\*)?|(?:\.\*)?\$|\^?(?:\[\\s\\S\]|\[\\w\\W\]|\[\\d\\D\])\*\$?")
"""Patterns that occur in every text; others are not tried, since they may come from strangers."""


def _allows_key(rule: Mapping[str, Json], key: str) -> bool:
    """Return whether a key certainly fits simple rules; a pattern is not one, since it could take any time."""
    if "string" not in types(rule) or not rule.keys() <= {"type", "minLength", "maxLength", "title", "description"}:
        return False
    most = whole(rule, "maxLength")
    return (whole(rule, "minLength") or 0) <= len(key) and (most is None or len(key) <= most)


ROOT = "taiwa:/schema"
"""The base URI of a document that has no `$id`."""
MAX_LOCATIONS = 200_000
MAX_PROOF_STEPS = 200_000
"""The depth limit of proofs, because the number of cases grows exponentially."""
DRAFTS: Mapping[str, int] = {
    "draft-03": 3,
    "draft-04": 4,
    "draft-06": 6,
    "draft-07": 7,
    "draft/2019-09": 8,
    "draft/2020-12": 9,
}
DRAFT_URI = re.compile(r"https?://json-schema\.org/(draft(?:-0\d|/20\d\d-\d\d))/schema#?\Z")


def join_pointer(pointer: str, *steps: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a location below another one.

    >>> join_pointer("/properties", "a/b", 0)
    '/properties/a~1b/0'
    """
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def resolve_pointer(root: "Json | Schema", pointer: str) -> Json:
    """Return what a JSON pointer refers to; the `#` and the percent encoding of a URI fragment are accepted.

    >>> resolve_pointer({"a/b": [True]}, "#/a~1b/0")
    True

    Raises:
        LookupError: the pointer refers to nothing.
    """
    here = cast("Json", root)
    for step in unquote(pointer.removeprefix("#")).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isascii() and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            raise LookupError(pointer)
    return here


@dataclass(slots=True, eq=False)
class SchemaLocation:
    """A schema in a document: its JSON pointer, and the base URI of its references."""

    schema: Schema
    pointer: str
    base: str


class Document:
    """A schema, the URIs and pointers of its parts, and the keywords that its draft ignores.

    `ignored` lists the pointer, keyword and reason of each keyword without a meaning in the draft that `$schema` names; they
    are removed from a copy, because a validator ignores them and a guide that enforced them would refuse valid values.
    `dynamic` counts dynamic anchors.
    """

    def __init__(self, root: Schema) -> None:
        named = root.get("$schema") if is_object(root) else None
        uri = DRAFT_URI.match(named) if isinstance(named, str) else None
        self.draft = DRAFTS.get(uri[1]) if uri else None
        self.ignored: list[tuple[str, str, str]] = []
        self.root = SchemaLocation(root if self.draft is None else deepcopy(root), "", ROOT)
        self._by_uri: dict[str, SchemaLocation] = {ROOT: self.root}
        self._by_pointer: dict[str, SchemaLocation] = {}
        self.dynamic = 0
        self._proof_steps = 0
        self._index(self.root)

    def _index(self, start: SchemaLocation) -> None:
        """Record every schema with its own identifier, without recursion: documents may be deep."""
        waiting = [start]
        while waiting:
            location = waiting.pop()
            if is_object(location.schema):
                self._identify(location, location.schema)
                if self.draft is not None and isinstance(location.schema, dict):
                    for keyword, reason in list(_ignored_keywords(location.schema, self.draft)):
                        self.ignored.append((location.pointer, keyword, reason))
                        del location.schema[keyword]
                    if self.draft == 3:
                        _modernize(location.schema)
                for steps, part in subschemas(location.schema):
                    waiting.append(SchemaLocation(part, join_pointer(location.pointer, *steps), location.base))
            self._by_pointer[location.pointer] = location
            if len(self._by_pointer) > MAX_LOCATIONS:
                raise InputError(f"the schema has more than {MAX_LOCATIONS} parts; divide it")

    def _identify(self, location: SchemaLocation, schema: Mapping[str, Json]) -> None:
        own = self.base_of(schema, location.base)
        if own != location.base:
            location.base = own
            self._by_uri.setdefault(urldefrag(location.base).url, location)
            self._by_uri.setdefault(location.base, location)
        self.dynamic += "$dynamicAnchor" in schema or schema.get("$recursiveAnchor") is True
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._by_uri.setdefault(f"{urldefrag(location.base).url}#{anchor}", location)

    def locations(self) -> Iterator[SchemaLocation]:
        """Yield every schema that was recorded, those that `find` records meanwhile included."""
        number = 0
        while number < len(self._by_pointer):
            found = list(islice(self._by_pointer.values(), number, None))
            number += len(found)
            yield from found

    def applied(self, location: SchemaLocation) -> Iterator[SchemaLocation]:
        """Yield the schemas that a schema applies to the same value.

        Raises:
            InputError: a reference leads out of the document.
        """
        schema = location.schema
        if not is_object(schema):
            return
        for keyword in REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                target = self.find(reference, location.base)
                if target is None:
                    where = join_pointer(location.pointer, keyword)
                    raise InputError(f"schema: {where}: {reference[:80]!r} is not in this schema; nothing is fetched")
                yield target
        for steps, _ in subschemas(schema, *sorted(APPLICATORS - REFERENCES)):
            yield self._by_pointer[join_pointer(location.pointer, *steps)]

    def is_proof_budget_spent(self) -> bool:
        """Count one more step of a proof; return whether the budget is exceeded and the proof must be given up."""
        self._proof_steps += 1
        return self._proof_steps > MAX_PROOF_STEPS

    def base_of(self, schema: Schema, base: str) -> str:
        """Return the base URI of a schema inside one with the base URI `base`; `id` is a keyword only until draft 4."""
        own = schema.get("$id", schema.get("id") if self.draft in (3, 4) else None) if is_object(schema) else None
        return urljoin(base, own) if isinstance(own, str) else base

    def find(self, reference: str, base: str) -> SchemaLocation | None:
        """Return what a reference refers to from a base URI; None if it is not in this document."""
        uri, fragment = urldefrag(urljoin(base, reference))
        if reference.startswith("#"):
            uri, fragment = urldefrag(base).url, reference[1:]
        if fragment and not fragment.startswith("/"):
            return self._by_uri.get(f"{uri}#{fragment}")
        start = self._by_uri.get(uri)
        if start is None or not fragment:
            return start
        pointer = start.pointer + unquote(fragment)
        if pointer not in self._by_pointer:
            try:
                part = resolve_pointer(start.schema, fragment)
            except LookupError:
                return None
            if not is_schema(part):
                return None
            self._index(SchemaLocation(part, pointer, start.base))
        return self._by_pointer[pointer]


MAX_VALUES = 50_000
MAX_VALUE_DEPTH = 100
MAX_SCHEMAS = 5_000
MAX_APPLIED = 2_000


def check_bounds(schema: Schema) -> None:
    """Check that a schema refers to nothing outside, and that its size and depth, and the number of schemas that it applies to
    one value, are bounded. This takes time in proportion to its size.

    Raises:
        InputError: it does not.
    """
    _check_size(schema)
    document = Document(schema)
    counts: dict[str, int] = {}
    for number, start in enumerate(document.locations()):
        if number >= MAX_SCHEMAS:
            raise InputError(f"schema: more than {MAX_SCHEMAS:,} schemas; divide it")
        _count_applied(document, start, counts)


def _check_size(schema: Schema) -> None:
    level, count = [cast("Json", schema)], 0
    for _ in range(MAX_VALUE_DEPTH):
        containers = [each for each in level if isinstance(each, (Mapping, list))]
        level = [inner for each in containers for inner in (each if isinstance(each, list) else each.values())]
        count += len(level)
        if count > MAX_VALUES:
            raise InputError(f"schema: more than {MAX_VALUES:,} values; divide it")
        if not level:
            return
    if level:
        raise InputError(f"schema: nested too deep; more than {MAX_VALUE_DEPTH} levels")


def _count_applied(document: Document, start: SchemaLocation, counts: dict[str, int]) -> None:
    """Count the schemas that a schema applies to one value, itself and repeated ones included, by pointer."""
    path, entered = [start], set[str]()
    while path:
        here = path[-1]
        applied = () if here.pointer in counts else tuple(document.applied(here))
        waiting = [each for each in applied if each.pointer not in counts]
        if any(each.pointer in entered or each is here for each in waiting):
            raise InputError(f"schema: {here.pointer or '/'} applies itself to the same value, without end")
        if waiting:
            entered.add(here.pointer)
            path += waiting
            continue
        path.pop()
        if here.pointer not in counts:
            entered.discard(here.pointer)
            counts[here.pointer] = 1 + sum(counts[each.pointer] for each in applied)
            if counts[here.pointer] > MAX_APPLIED:
                raise InputError(
                    f"schema: {here.pointer or '/'} applies more than {MAX_APPLIED:,} schemas to one value"
                )


def _ignored_keywords(schema: Mapping[str, Json], draft: int) -> Iterator[tuple[str, str]]:
    """Yield the keywords of a schema that its draft ignores, and why."""
    alone = draft <= 7 and isinstance(schema.get("$ref"), str)
    for keyword, value in schema.items():
        if keyword not in KEYWORDS or keyword == "$ref":
            continue
        bound = keyword in ("exclusiveMinimum", "exclusiveMaximum") and not isinstance(value, bool)
        if alone:
            yield keyword, "its draft ignores keywords beside $ref"
        elif KEYWORDS[keyword].since > draft or (bound and draft <= 4):
            yield keyword, "introduced after its draft"
        elif draft > KEYWORDS[keyword].until:
            yield keyword, "removed before its draft"


def _modernize(schema: dict[str, Json]) -> None:
    """Replace the keywords of draft 3 by those of today."""
    properties = schema.get("properties")
    parts = properties.items() if isinstance(properties, dict) else ()
    required: list[Json] = [
        name for name, part in parts if isinstance(part, dict) and part.pop("required", False) is True
    ]
    schema.pop("required", None)
    if required:
        schema["required"] = required
    if "divisibleBy" in schema:
        schema["multipleOf"] = schema.pop("divisibleBy")
    if "extends" in schema:
        extended = schema.pop("extends")
        schema["allOf"] = extended if isinstance(extended, list) else [extended]
    if "disallow" in schema:
        schema["not"] = {"type": schema.pop("disallow")}
    for holder in (schema, schema.get("not")):
        if isinstance(holder, dict):
            allowed = holder.get("type")
            if "any" in (allowed if isinstance(allowed, list) else [allowed]):
                del holder["type"]


FORBIDDING_NULL = ("type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else")


def from_openapi(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Write the keywords that OpenAPI 3.0 has in place of those of JSON Schema as these: `nullable`, and bounds excluded by true.

    >>> from_openapi({"type": "string", "enum": ["a"], "nullable": True})
    {'type': ['string', 'null'], 'enum': ['a', None]}
    """
    plain = map_subschemas(schema, lambda _, part: from_openapi(part) if is_object(part) else part)
    for edge, outer in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(plain.get(outer), bool) and plain.pop(outer) is True and edge in plain:
            plain[outer] = plain.pop(edge)
    if plain.pop("nullable", False) is not True:
        return plain
    kind, listed = plain.get("type"), plain.get("enum")
    if not isinstance(kind, str):
        # the others, such as `properties`, allow null, and stay where references find them
        limits: dict[str, Json] = {key: plain.pop(key) for key in FORBIDDING_NULL if key in plain}
        return {"anyOf": [limits, {"type": "null"}], **plain} if limits else plain
    return plain | {"type": [kind, "null"]} | ({"enum": [*listed, None]} if isinstance(listed, list) else {})
