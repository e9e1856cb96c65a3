"""Rewrite a JSON Schema into one that llguidance enforces exactly, and list what is left out by pointer and keyword.

The engine refuses some keywords without a path and ignores others silently (those of another draft, keys spelled with escapes,
options in `x-guidance`). Therefore it never receives a user's schema, only one written here with keywords whose enforcement
is tested, in which every reference points into the schema itself. Keywords with an exact equivalent among them (a `oneOf` of
disjoint branches, simple `not`, `if` and `dependentRequired`) are replaced by it; the rest is listed, so that a strict
compilation can refuse it.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import copysign, inf, lcm, nextafter
from types import MappingProxyType
from typing import cast

from taiwa.constraints.allowed_tokens import engine_error
from taiwa.constraints.automaton import escape_regex
from taiwa.constraints.guide import SchemaClause
from taiwa.json_schema import (
    ANNOTATIONS,
    APPLICATORS,
    FORMATS,
    KEYWORDS,
    Document,
    Schema,
    SchemaLocation,
    check_keywords,
    child,
    is_any,
    is_object,
    is_whole,
    join_pointer,
    listed_values,
    map_subschemas,
    names,
    subschemas,
    types,
    whole,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.schema_values import are_disjoint, complement

MOST_CASES = 5
"""The number of conditions of one schema that split into cases; the engine multiplies the cases."""


SPACED: Mapping[str, Json] = MappingProxyType(
    {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
)
"""Options of llguidance for JSON as models write it on one line: behind `"name":` without a space they tend to `null`."""
COMPOSING = frozenset({
    "allOf", "if", "not", "dependentSchemas", "dependencies", "patternProperties", "propertyNames", "minProperties", "unevaluatedProperties",
    "$dynamicRef",
})  # fmt: skip
"""Keywords by which the keys of an object may be described elsewhere than beside its properties."""


def close_objects(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a schema whose objects have no keys but those listed, where it does not say: what a model adds is its invention.

    As llama.cpp's converter does. A schema in which an object may be described in several places is returned as it is.

    >>> close_objects({"properties": {"a": {"type": "string"}}})
    {'properties': {'a': {'type': 'string'}}, 'additionalProperties': False}
    >>> close_objects({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]})
    {'properties': {'a': {}}, 'allOf': [{'properties': {'b': {}}}]}
    """
    return schema if _is_composed(schema) else _closed(schema)


def _is_composed(schema: Mapping[str, Json]) -> bool:
    several = {"anyOf", "oneOf", "$ref"} & schema.keys()
    if COMPOSING & schema.keys() or (several and "properties" in schema):
        return True
    if "oneOf" in several and "discriminator" not in schema:  # closed branches might seem to exclude each other
        return True
    return any(_is_composed(part) for _, part in subschemas(schema) if is_object(part))


def _closed(schema: Mapping[str, Json]) -> dict[str, Json]:
    copy = map_subschemas(schema, lambda _, part: _closed(part) if is_object(part) else part)
    listed = schema.get("properties")
    if listed and is_object(listed) and set(names(schema)) <= listed.keys():
        copy.setdefault("additionalProperties", False)
    return copy


class _SchemaWriter:
    """Collects the keywords and conditions written for one schema."""

    def __init__(self, writer: "_Rewriter", place: SchemaLocation, depth: int) -> None:
        self.writer = writer
        self.place = place
        self.depth = depth
        self.schema = cast("Mapping[str, Json]", place.schema)
        self.own: dict[str, Json] = {}
        self.also: list[Schema] = []
        """Conditions that are already rewritten."""
        self._cases = 0

    def keep(self, keyword: str, reason: str = "") -> None:
        """Record a keyword as enforced."""
        self.writer.enforced.append(SchemaClause(self.place.pointer, keyword, reason))

    def miss(self, keyword: str, reason: str) -> None:
        """Record a keyword as left out, with the reason."""
        self.writer.missed.append(SchemaClause(self.place.pointer, keyword, reason))

    def copy(self, *keywords: str) -> None:
        """Copy keywords unchanged."""
        for keyword in keywords:
            if keyword in self.schema:
                self.keep(keyword)
                value = self.schema[keyword]
                if keyword.startswith(("min", "max")) and isinstance(value, float) and value.is_integer():
                    value = int(value)  # the engine expects 2 instead of 2.0
                self.own[keyword] = value

    def location(self, schema: Schema, *steps: str | int) -> SchemaLocation:
        """Return the location of the schema at these steps, or of its replacement."""
        base = self.writer.document.base_of(schema, self.place.base)
        return SchemaLocation(schema, join_pointer(self.place.pointer, *steps), base)

    def write(self, schema: Schema, *steps: str | int) -> Json:
        """Rewrite the schema at these steps, or its replacement."""
        return cast("Json", self.writer.write(self.location(schema, *steps), self.depth + 1))

    def inner(self, keyword: str) -> Json:
        """Rewrite the schema or the schemas that a keyword contains."""
        return map_subschemas({keyword: self.schema[keyword]}, lambda steps, part: self.write(part, *steps))[keyword]

    def nest(self, keyword: str, written_as: str = "") -> None:
        """Record a keyword as enforced and write it, the schemas in it rewritten."""
        self.keep(keyword)
        self.own[written_as or keyword] = self.inner(keyword)

    def joined(self) -> Schema:
        """Return the collected schema."""
        conditions: list[Schema] = []
        for part in (*cast("list[Schema]", self.own.pop("allOf", [])), *self.also):
            if not is_any(part) and part not in conditions:
                conditions.append(part)
        references = [part for part in conditions if is_object(part) and "$ref" in part]
        if self.writer.merged and references and (self.own or len(conditions) > 1):
            for keyword in ("$ref", *self.own):
                self.miss(keyword, "a reference beside other keywords may be merged without end")
            return references[0]
        if not conditions:
            return self.own
        if not self.own and len(conditions) == 1:
            return conditions[0]
        return {**self.own, "allOf": cast("list[Json]", conditions)}

    def complements(self) -> None:
        """Rewrite `not`, `if` and dependencies as far as simple schemas are equivalent."""
        if "not" in self.schema:
            other = self._complement("not")
            if other is None:
                self.miss("not", "its complement cannot be expressed")
            else:
                self.keep("not")
                self.also.append(cast("Schema", self.write(other, "not")))
        self._condition()
        self._dependents()

    def _complement(self, keyword: str) -> Schema | None:
        return complement(self.location(child(self.schema, keyword), keyword), self.writer.document)

    def _condition(self) -> None:
        if "if" not in self.schema:
            return
        branches = [key for key in ("then", "else") if not is_any(child(self.schema, key))]
        if not branches:
            return
        other = self._complement("if")
        if other is None or not self._split():
            for keyword in ("if", *branches):
                self.miss(keyword, "the complement of the condition cannot be expressed")
            return
        for keyword in ("if", *branches):
            self.keep(keyword)
        met = [self.inner("if"), *([self.inner("then")] if "then" in branches else [])]
        unmet = [self.write(other, "if"), *([self.inner("else")] if "else" in branches else [])]
        self.also.append({"anyOf": [{"allOf": met}, {"allOf": unmet}]})

    def _dependents(self) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            parts = self.schema.get(keyword)
            if not is_object(parts):
                continue
            if not all(self._depends(keyword, name, part) for name, part in parts.items()):
                self.miss(keyword, f"more than {MOST_CASES} conditional parts in one object")
            else:
                self.keep(keyword)

    def _depends(self, keyword: str, name: str, part: Json) -> bool:
        # Such a part demands nothing, and must not use up one of the few cases.
        if part in ([], True, {}):
            return True
        if not self._split():
            return False
        if isinstance(part, list):
            met: Json = {"type": "object", "required": [name, *part]}
        else:
            met = {"allOf": [{"required": [name]}, self.write(cast("Schema", part), keyword, name)]}
        # An implication as the engine can follow it: the key is missing, or the part holds.
        self.also.append({"anyOf": [{"properties": {name: False}}, met]})
        return True

    def _split(self) -> bool:
        self._cases += 1
        return self._cases <= MOST_CASES


MOST_EXACT = 1 << 53
"""Above it the engine's numbers are not exact."""
IN_CALENDAR = "^(?:[1-9]|0[1-9]|00[1-9]|000[1-9])"
LEAP_DAYS = (
    "^(?:[0-9]{4}-(?:[^0]|0[^2])|[0-9]{4}-02-(?:[01]|2[0-8])|"
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
"""The engine accepts 29 February in any year, and the year 0000."""
LEAST = 1e-30
"""Numbers nearer than this to an excluded 0 are excluded with it."""
MOST_PLACES = 12


def scalar_part(conditions: _SchemaWriter) -> None:
    """Rewrite `type`, `const`, `enum`, numbers and strings."""
    schema = conditions.schema
    conditions.copy("type")
    for keyword in ("const", "enum"):
        if keyword in schema and not _is_exact(schema[keyword]):
            conditions.miss(keyword, f"numbers beyond {MOST_EXACT} are not exact")
        else:
            conditions.copy(keyword)
    if types(schema) & {"number", "integer"}:
        _numbers(conditions)
    if "string" in types(schema):
        _strings(conditions)


def _is_exact(value: Json) -> bool:
    """Return whether the engine writes a value exactly."""
    if isinstance(value, (list, dict)):
        return all(map(_is_exact, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (str, bool)) or value is None or abs(value) <= MOST_EXACT


def _numbers(conditions: _SchemaWriter) -> None:
    schema = conditions.schema
    for keyword in ("minimum", "maximum", "multipleOf"):
        _number(conditions, keyword)
    for keyword, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if not isinstance(schema.get(keyword), bool):
            _number(conditions, keyword)
        elif schema[keyword] and plain in schema:
            conditions.keep(keyword)
            conditions.own[keyword] = schema[plain]
            _excluded(conditions, keyword, cast("float", schema[plain]))


def _number(conditions: _SchemaWriter, keyword: str) -> None:
    if keyword not in conditions.schema:
        return
    number = cast("float", conditions.schema[keyword])
    fault = f"numbers beyond {MOST_EXACT} are not exact" if abs(number) > MOST_EXACT else ""
    if fault := fault or engine_error({"type": "number", keyword: number}):
        conditions.miss(keyword, fault)
        return
    steps = _equivalent_steps(number) if keyword == "multipleOf" else []
    if steps:
        conditions.keep(keyword)
        conditions.also.append({"anyOf": [*steps, {"type": ["null", "boolean", "object", "array", "string"]}]})
        return
    conditions.copy(keyword)
    _excluded(conditions, keyword, number)


def _excluded(conditions: _SchemaWriter, keyword: str, number: float) -> None:
    """Exclude a bound explicitly: the engine accepts 10 itself if the values above it end before 11."""
    outwards = {"exclusiveMinimum": 1, "exclusiveMaximum": -1}.get(keyword, 0)
    if outwards and is_whole(number) and outwards * number >= 0 and "number" in types(conditions.schema):
        edge = nextafter(number, outwards * inf) if number else copysign(LEAST, outwards)
        conditions.also.append({keyword.replace("exclusiveM", "m"): edge})


def _equivalent_steps(step: float) -> list[Json]:
    """Return steps that together reach the same numbers with fewer decimals: for multiples of 0.25 the engine expects 0.50, or 1."""
    _, digits, exponent = Decimal(repr(step)).normalize().as_tuple()
    places, whole_step = -int(exponent), int("".join(map(str, digits)))
    if not 1 < places <= MOST_PLACES or whole_step == 1:
        return []
    steps = dict.fromkeys(lcm(whole_step, 10**shift) / 10**places for shift in range(places))
    return [{"type": "number", "multipleOf": each} for each in steps]


def _strings(conditions: _SchemaWriter) -> None:
    schema = conditions.schema
    conditions.copy("minLength", "maxLength")
    if "pattern" in schema:
        if fault := pattern_fault(cast("str", schema["pattern"])):
            conditions.miss("pattern", fault)
        else:
            conditions.copy("pattern")
    name = schema.get("format")
    if isinstance(name, str) and name in FORMATS:
        conditions.keep("format", FORMATS[name])
        conditions.own["format"] = name
        if name.startswith("date"):
            conditions.also.append({"allOf": [{"pattern": IN_CALENDAR}, {"pattern": LEAP_DAYS}]})
    elif name is not None:
        conditions.miss("format", f"{name!r} is not one of {' '.join(FORMATS)}")


@lru_cache(maxsize=1_024)
def pattern_fault(pattern: str) -> str:
    """Return why a pattern cannot be enforced; '' if it can."""
    return engine_error({"type": "string", "pattern": pattern})


def array_part(conditions: _SchemaWriter) -> None:
    """Rewrite the keywords of arrays."""
    schema = conditions.schema
    if "array" not in types(schema):
        return
    conditions.copy("minItems", "maxItems")
    listed = next((key for key in ("prefixItems", "items") if isinstance(schema.get(key), list)), "")
    rest = "additionalItems" if listed == "items" else "items"
    if listed:
        conditions.nest(listed, "prefixItems")
    if rest in schema and not isinstance(schema[rest], list):
        conditions.nest(rest, "items")
    if schema.get("uniqueItems") is True:
        if whole(schema, "maxItems") in (0, 1):
            conditions.keep("uniqueItems")
        else:
            conditions.miss("uniqueItems", "earlier items are not compared")
    if "contains" in schema and (whole(schema, "minContains") != 0 or "maxContains" in schema):
        conditions.miss("contains", "matching items are not counted")
    if not is_any(child(schema, "unevaluatedItems")):
        conditions.miss("unevaluatedItems", "items evaluated by other schemas are not tracked")


MOST_CHOICES = 32
MOST_KEYS = 3_000
"""The engine's time grows with the square of the number of keys: a second for 3,000."""
MOST_KEYS_OF_ALL = 10_000
"""The engine merges the keys of several schemas into one object, and overflows its stack beyond about 30,000 of them."""


def object_part(conditions: _SchemaWriter) -> None:
    """Rewrite the keywords of objects."""
    schema = conditions.schema
    if "object" not in types(schema):
        return
    if isinstance(schema.get("required"), list):
        conditions.copy("required")
    elif schema.get("required") is True:
        conditions.miss("required", "booleans are the notation of an old draft; list the names in the object's schema")
    properties = schema.get("properties")
    conditions.writer.count_keys({*names(schema), *(properties if is_object(properties) else ())}, conditions.place)
    if is_object(properties):
        conditions.keep("properties")
        written = cast("dict[str, Json]", conditions.inner("properties"))
        # The engine writes keys in the order of the schema.
        first = {name: written[name] for name in conditions.writer.order if name in written}
        conditions.own["properties"] = {**first, **written}
    enforced = _patterns(conditions)
    _names(conditions)
    _unevaluated(conditions, patterns=enforced)
    _least(conditions)
    _most(conditions)


def _patterns(conditions: _SchemaWriter) -> bool:
    """Rewrite `patternProperties` and return whether they are enforced; otherwise neither is `additionalProperties`."""
    schema = conditions.schema
    patterns = schema.get("patternProperties")
    if is_object(patterns) and patterns:
        fault = next((fault for pattern in patterns if (fault := pattern_fault(pattern))), "")
        fault = fault or engine_error({"type": "object", "patternProperties": dict.fromkeys(patterns, True)})
        if conditions.writer.merged:
            fault = fault or "patterns of merged objects are not distinguished"
        if fault:
            conditions.miss("patternProperties", fault)
            if "additionalProperties" in schema:
                conditions.miss("additionalProperties", "patternProperties beside it is not enforced")
            return False
        conditions.nest("patternProperties")
    if "additionalProperties" in schema:
        conditions.nest("additionalProperties")
    return True


def _names(conditions: _SchemaWriter) -> None:
    """Rewrite `propertyNames` as a pattern of keys, if the schema has no other rule for keys."""
    if is_any(child(conditions.schema, "propertyNames")):
        return
    pattern = _pattern_of(conditions.schema["propertyNames"])
    if pattern is None or pattern_fault(pattern) or conditions.writer.merged:
        conditions.miss("propertyNames", "only a pattern, a length or a list of texts is supported")
        return
    conditions.keep("propertyNames")
    conditions.also.append({"patternProperties": {pattern: True}, "additionalProperties": False})


def _pattern_of(schema: Json) -> str | None:
    """Return the one pattern that is equivalent to a schema of strings."""
    if not is_object(schema):
        return None
    asked = {key for key in schema if key in KEYWORDS} - {"type"}
    if "string" not in types(schema):
        return None
    if asked in ({"const"}, {"enum"}):
        words = [word for word in listed_values(schema) or () if isinstance(word, str)]
        return f"^(?:{'|'.join(map(escape_regex, words))})$" if words else None
    if asked and asked <= {"minLength", "maxLength"}:
        most = whole(schema, "maxLength")
        return rf"^[\s\S]{{{whole(schema, 'minLength') or 0},{'' if most is None else most}}}$"
    return cast("str", schema["pattern"]) if asked == {"pattern"} else None


def _unevaluated(conditions: _SchemaWriter, *, patterns: bool) -> None:
    """Rewrite `unevaluatedProperties`: without adjacent applicators it equals `additionalProperties`."""
    schema = conditions.schema
    if is_any(child(schema, "unevaluatedProperties")):
        return
    if any(key in schema for key in APPLICATORS) or "additionalProperties" in schema:
        conditions.miss("unevaluatedProperties", "keys evaluated by other schemas are not tracked")
    elif not patterns:
        conditions.miss("unevaluatedProperties", "patternProperties beside it is not enforced")
    else:
        conditions.nest("unevaluatedProperties", "additionalProperties")


def _is_closed(schema: Mapping[str, Json]) -> bool:
    rest = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    return rest is False and not schema.get("patternProperties")


def _least(conditions: _SchemaWriter) -> None:
    """Rewrite `minProperties` if it requires at most one key more than `required` does.

    The engine counts a key that is written twice as two, so more cannot be enforced.
    """
    schema = conditions.schema
    least = whole(schema, "minProperties") or 0
    required = set(names(schema))
    optional = [name for name in cast("Mapping[str, Json]", schema.get("properties") or {}) if name not in required]
    closed = _is_closed(schema)
    if least <= len(required):
        if least > 0:
            conditions.keep("minProperties")
    elif least > len(required) + 1 or len(optional) > MOST_CHOICES or not (closed or not conditions.writer.merged):
        conditions.miss("minProperties", "a repeated key would be counted twice")
    else:
        conditions.keep("minProperties")
        cases: list[Json] = [{"type": "object", "required": [name]} for name in optional]
        if not closed:
            # A key that is not declared may be the further one, but none that another case covers.
            none: dict[str, Json] = dict.fromkeys(optional, False)
            cases.append({"type": "object", "properties": none, "minProperties": least})
        others: Json = {"type": ["null", "boolean", "array", "number", "string"]}
        conditions.also.append({"anyOf": [*cases, others]})


def _most(conditions: _SchemaWriter) -> None:
    schema = conditions.schema
    most = whole(schema, "maxProperties")
    if most is None:
        return
    listed = cast("Mapping[str, Json]", schema.get("properties") or {})
    required = set(names(schema))
    if _is_closed(schema) and len(listed) <= most:
        conditions.keep("maxProperties")
    elif set(listed) <= required and not conditions.writer.merged and not any(key in schema for key in APPLICATORS):
        conditions.copy("maxProperties")
    else:
        conditions.miss("maxProperties", "optional keys are not counted")


MOST_SCHEMAS = 20_000
MOST_OPPOSITES = 4
MOST_DEPTH = 24
"""The depth at which a part of the rewritten schema moves to `$defs`: the engine's JSON parser has a limit."""


@dataclass(frozen=True, slots=True)
class RewrittenSchema:
    """The schema for the engine; `origins` has the pointer of the schema behind each entry of its `$defs`."""

    schema: Mapping[str, Json]
    enforced: tuple[SchemaClause, ...]
    missed: tuple[SchemaClause, ...]
    ignored: tuple[SchemaClause, ...]
    origins: Mapping[str, str]


def rewrite_schema(schema: Schema, order: tuple[str, ...] = (), *, merged: bool = False) -> RewrittenSchema:
    """Rewrite a schema; the keys in `order` come first in every object that has them.

    `merged` leaves out keywords that the engine supports only for objects that are not merged with others.

    Raises:
        InputError: it is not a JSON Schema, or has too many parts.
    """
    writer = _Rewriter(Document(schema), order, merged=merged)
    written = writer.all()
    writer.ignored += [SchemaClause(*clause) for clause in writer.document.ignored]
    return RewrittenSchema(
        written, tuple(writer.enforced), tuple(writer.missed), tuple(writer.ignored), dict(writer.origins)
    )


class _Rewriter:
    """Rewrites each schema of a document once; referenced schemas become entries of `$defs`."""

    def __init__(self, document: Document, order: tuple[str, ...], *, merged: bool) -> None:
        self.document = document
        self.merged = merged
        self.order = order
        self.enforced: list[SchemaClause] = []
        self.missed: list[SchemaClause] = []
        self.ignored: list[SchemaClause] = []
        self.origins: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._waiting: deque[tuple[str, SchemaLocation]] = deque()
        self._count = 0
        self._keys = 0

    def all(self) -> dict[str, Json]:
        """Rewrite the root and everything that it references."""
        root = self.write(self.document.root, 0)
        made: dict[str, Json] = dict(root) if is_object(root) else {"enum": []} if root is False else {}
        definitions: dict[str, Json] = {}
        while self._waiting:
            name, place = self._waiting.popleft()
            definitions[name] = cast("Json", self.write(place, 0))
        return {**made, "$defs": definitions} if definitions else made

    def write(self, place: SchemaLocation, depth: int) -> Schema:
        """Rewrite one schema."""
        if not is_object(place.schema):
            return place.schema
        if depth > MOST_DEPTH:
            return self.reference(place)
        self._count += 1
        if self._count > MOST_SCHEMAS:
            raise InputError(f"the schema has more than {MOST_SCHEMAS} parts: divide it")
        self._check(place)
        conditions = _SchemaWriter(self, place, depth)
        self._references(conditions)
        self._alternatives(conditions)
        for part in (scalar_part, array_part, object_part):
            part(conditions)
        return conditions.joined()

    def count_keys(self, keys: Collection[str], place: SchemaLocation) -> None:
        """Count the keys that one schema names.

        Raises:
            InputError: they are too many for the engine.
        """
        self._keys += len(keys)
        if len(keys) > MOST_KEYS or self._keys > MOST_KEYS_OF_ALL:
            most = f"{MOST_KEYS:,} in one schema and {MOST_KEYS_OF_ALL:,} in all"
            raise InputError(f"{place.pointer or '/'}: {len(keys):,} keys are too many; at most {most}")

    def reference(self, place: SchemaLocation) -> dict[str, Json]:
        """Return a reference to a schema that is rewritten once."""
        if place is self.document.root:
            return {"$ref": "#"}
        name = self._names.get(id(place))
        if name is None:
            name = str(len(self._names))
            self._names[id(place)] = name
            self.origins[name] = place.pointer
            self._waiting.append((name, place))
        return {"$ref": f"#/$defs/{name}"}

    def _check(self, place: SchemaLocation) -> None:
        schema = cast("Mapping[str, Json]", place.schema)
        check_keywords(schema, place.pointer)
        for keyword, value in schema.items():
            if isinstance(value, bool) and keyword == "required":
                self.ignored.append(SchemaClause(place.pointer, keyword, "booleans are the notation of an old draft"))
            elif keyword not in KEYWORDS and keyword not in ANNOTATIONS:
                self.ignored.append(SchemaClause(place.pointer, keyword, "unknown in JSON Schema"))

    def _references(self, conditions: _SchemaWriter) -> None:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = conditions.schema.get(keyword)
            if not isinstance(reference, str):
                continue
            target = self.document.find(reference, conditions.place.base)
            if target is None:
                conditions.miss(keyword, f"{reference} is not in this schema; nothing is fetched")
            elif keyword != "$ref" and self.document.dynamic > 1:
                conditions.miss(keyword, "its target depends on the path of evaluation")
            else:
                conditions.keep(keyword)
                conditions.also.append(self.reference(target))

    def _alternatives(self, conditions: _SchemaWriter) -> None:
        for keyword in ("anyOf", "allOf"):
            if keyword in conditions.schema:
                conditions.nest(keyword)
        if "oneOf" in conditions.schema:
            self._one_of(conditions)
        conditions.complements()

    def _one_of(self, conditions: _SchemaWriter) -> None:
        """Rewrite `oneOf` as `anyOf`, if its branches are disjoint or can be made so by their complements."""
        branches = cast("list[Schema]", conditions.schema["oneOf"])
        rest = {keyword: value for keyword, value in conditions.schema.items() if keyword != "oneOf"}
        written = cast("list[Json]", conditions.inner("oneOf"))
        if len(branches) == 1 or are_disjoint(branches, self.document, beside=rest, base=conditions.place.base):
            conditions.keep("oneOf")
        else:
            others = [
                complement(conditions.location(branch, "oneOf", number), self.document)
                for number, branch in enumerate(branches)
            ]
            if len(branches) > MOST_OPPOSITES or None in others:
                conditions.miss("oneOf", "its branches are not proved disjoint")
            else:
                conditions.keep("oneOf")
                unfit = [
                    conditions.write(cast("Schema", other), "oneOf", number) for number, other in enumerate(others)
                ]
                for place, fit in enumerate(written):
                    written[place] = {"allOf": [fit, *unfit[:place], *unfit[place + 1 :]]}
        conditions.also.append({"anyOf": written})
