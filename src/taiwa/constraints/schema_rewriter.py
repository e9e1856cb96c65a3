"""Rewrite a JSON Schema into one that llguidance enforces exactly, and list what is left out by pointer and keyword.

The engine refuses some keywords without a path and ignores others silently (those of another draft, keys spelled with escapes,
options in `x-guidance`). So it never sees a user's schema: it sees one written here, of keywords whose enforcement is tested,
in which every reference points into the schema itself. What has an exact equivalent among them (a `oneOf` of disjoint
branches, simple `not`, `if` and `dependentRequired`) is replaced by it; the rest is listed, so that a strict compilation can
refuse it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import copysign, inf, isfinite, lcm, nextafter
from typing import cast

from taiwa.constraints.allowed_tokens import engine_error
from taiwa.constraints.guide import SchemaClause
from taiwa.json_schema.document import Document, SchemaLocation, join_pointer
from taiwa.json_schema.keywords import (
    ANNOTATIONS,
    APPLICATORS,
    FORMATS,
    KEYWORDS,
    Schema,
    child,
    is_any,
    is_object,
    names,
    types,
    whole,
)
from taiwa.json_schema.value_sets import are_disjoint, complement
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

MOST_CASES = 5
"""The number of conditions of one schema that split into cases; the engine multiplies the cases."""


class _SchemaWriter:
    """Collects the keywords and conditions written for one schema."""

    def __init__(self, writer: "_Rewriter", place: SchemaLocation, depth: int) -> None:
        self.writer = writer
        self.place = place
        self.depth = depth
        self.schema = cast("Mapping[str, Json]", place.schema)
        self._own: dict[str, Json] = {}
        self._also: list[Schema] = []
        self._cases = 0

    def keep(self, keyword: str, reason: str = "") -> None:
        """Record a keyword as enforced."""
        self.writer.enforced.append(SchemaClause(self.place.pointer, keyword, reason))

    def miss(self, keyword: str, reason: str) -> None:
        """Record a keyword as left out, with the reason."""
        self.writer.missed.append(SchemaClause(self.place.pointer, keyword, reason))

    def put(self, keyword: str, held: Json) -> None:
        """Write a keyword."""
        self._own[keyword] = held

    def copy(self, *keywords: str) -> None:
        """Copy keywords unchanged."""
        for keyword in keywords:
            if keyword in self.schema:
                self.keep(keyword)
                held = self.schema[keyword]
                if keyword.startswith(("min", "max")) and isinstance(held, float) and held.is_integer():
                    held = int(held)  # the engine expects 2 instead of 2.0
                self._own[keyword] = held

    def also(self, schema: Schema) -> None:
        """Add a condition that is rewritten already."""
        self._also.append(schema)

    def inner(self, *steps: str | int) -> Schema:
        """Rewrite the schema at these steps."""
        held: object = self.schema
        for step in steps:
            held = cast("dict[str | int, object]", held)[step]
        return self._write(cast("Schema", held), join_pointer(self.place.pointer, *steps))

    def written(self, schema: Schema, *steps: str | int) -> Schema:
        """Rewrite a schema in the place of the one at these steps."""
        return self._write(schema, join_pointer(self.place.pointer, *steps))

    def inner_list(self, keyword: str) -> list[Schema]:
        """Rewrite a list of schemas."""
        return [self.inner(keyword, number) for number in range(len(cast("list[Json]", self.schema[keyword])))]

    def _write(self, schema: Schema, pointer: str) -> Schema:
        return self.writer.write(SchemaLocation(schema, pointer, self._base(schema)), self.depth + 1)

    def _base(self, schema: Schema) -> str:
        return self.writer.document.base_of(schema, self.place.base)

    def joined(self) -> Schema:
        """Return the collected schema."""
        held = cast("list[Schema]", self._own.pop("allOf", []))
        rest: list[Schema] = []
        for part in (*held, *self._also):
            if not is_any(part) and part not in rest:
                rest.append(part)
        references = [part for part in rest if is_object(part) and "$ref" in part]
        if self.writer.merged and references and (self._own or len(rest) > 1):
            for keyword in ("$ref", *self._own):
                self.miss(keyword, "a reference beside other keywords may be merged without end")
            return references[0]
        if not rest:
            return self._own
        if not self._own and len(rest) == 1:
            return rest[0]
        return {**self._own, "allOf": cast("list[Json]", rest)}

    def complements(self) -> None:
        """Rewrite `not`, `if` and dependencies as far as simple schemas are equivalent."""
        if "not" in self.schema:
            other = self._negated("not")
            if other is None:
                self.miss("not", "its complement cannot be expressed")
            else:
                self.keep("not")
                self.also(self._write(other, join_pointer(self.place.pointer, "not")))
        self._condition()
        self._dependents()

    def _negated(self, keyword: str) -> Schema | None:
        schema = cast("Schema", self.schema[keyword])
        place = SchemaLocation(schema, join_pointer(self.place.pointer, keyword), self._base(schema))
        return complement(place, self.writer.document)

    def _condition(self) -> None:
        if "if" not in self.schema:
            return
        branches = [
            key for key in ("then", "else") if key in self.schema and not is_any(cast("Schema", self.schema[key]))
        ]
        if not branches:
            return
        other = self._negated("if")
        if other is None or not self._split():
            for keyword in ("if", *branches):
                self.miss(keyword, "the complement of the condition cannot be expressed")
            return
        for keyword in ("if", *branches):
            self.keep(keyword)
        unmet = self._write(other, join_pointer(self.place.pointer, "if"))
        met = [self.inner("if"), *([self.inner("then")] if "then" in branches else [])]
        not_met = [unmet, *([self.inner("else")] if "else" in branches else [])]
        self.also({"anyOf": [{"allOf": cast("list[Json]", met)}, {"allOf": cast("list[Json]", not_met)}]})

    def _dependents(self) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            held = self.schema.get(keyword)
            if not is_object(held):
                continue
            if not all(self._depends(keyword, name, held[name]) for name in held):
                self.miss(keyword, f"more than {MOST_CASES} conditional parts in one object")
            else:
                self.keep(keyword)

    def _depends(self, keyword: str, name: str, held: Json) -> bool:
        listed = names({"required": held}) if isinstance(held, list) else ()
        if (isinstance(held, list) and not listed) or held is True or held == {}:
            return True
        if not self._split():
            return False
        if isinstance(held, list):
            met: Schema = {"type": "object", "required": [name, *listed]}
        else:
            met = {"allOf": [{"required": [name]}, cast("Json", self.inner(keyword, name))]}
        self.also({"anyOf": [{"properties": {name: False}}, cast("Json", met)]})
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
    return isinstance(value, (str, bool)) or value is None or (isfinite(value) and abs(value) <= MOST_EXACT)


def _numbers(conditions: _SchemaWriter) -> None:
    schema = conditions.schema
    for keyword in ("minimum", "maximum", "multipleOf"):
        _number(conditions, keyword)
    for keyword, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        held = schema.get(keyword)
        if isinstance(held, bool):
            if held and plain in schema:
                conditions.keep(keyword)
                conditions.put(keyword, schema[plain])
                _excluded(conditions, keyword, cast("float", schema[plain]))
        else:
            _number(conditions, keyword)


def _number(conditions: _SchemaWriter, keyword: str) -> None:
    held = conditions.schema.get(keyword)
    if held is None:
        return
    if abs(cast("float", held)) > MOST_EXACT:
        conditions.miss(keyword, f"numbers beyond {MOST_EXACT} are not exact")
        return
    fault = engine_error({"type": "number", keyword: held})
    if fault:
        conditions.miss(keyword, fault)
        return
    ways = _ways(cast("float", held)) if keyword == "multipleOf" else []
    if ways:
        conditions.keep(keyword)
        conditions.also({"anyOf": [*ways, {"type": ["null", "boolean", "object", "array", "string"]}]})
        return
    conditions.copy(keyword)
    _excluded(conditions, keyword, cast("float", held))


def _excluded(conditions: _SchemaWriter, keyword: str, held: float) -> None:
    """Exclude a bound once more: the engine accepts 10 itself where the values above it end before 11."""
    outwards = {"exclusiveMinimum": 1, "exclusiveMaximum": -1}.get(keyword, 0)
    if outwards and float(held).is_integer() and outwards * held >= 0 and "number" in types(conditions.schema):
        edge = nextafter(held, outwards * inf) if held else copysign(LEAST, outwards)
        conditions.also({keyword.replace("exclusiveM", "m"): edge})


def _ways(step: float) -> list[Json]:
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
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        fault = pattern_fault(pattern)
        if fault:
            conditions.miss("pattern", fault)
        else:
            conditions.copy("pattern")
    held = schema.get("format")
    if not isinstance(held, str):
        return
    if held in FORMATS:
        conditions.keep("format", FORMATS[held])
        conditions.put("format", held)
        if held.startswith("date"):
            conditions.also({"allOf": [{"pattern": IN_CALENDAR}, {"pattern": LEAP_DAYS}]})
    else:
        conditions.miss("format", f"{held!r} is not one of {' '.join(FORMATS)}")


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
    rest = _rest_keyword(schema, listed)
    if listed:
        conditions.keep(listed)
        conditions.put("prefixItems", cast("list[Json]", conditions.inner_list(listed)))
    if rest:
        conditions.keep(rest)
        conditions.put("items", cast("Json", conditions.inner(rest)))
    if schema.get("uniqueItems") is True:
        if (whole(schema, "maxItems") or 0) == 1 or whole(schema, "maxItems") == 0:
            conditions.keep("uniqueItems")
        else:
            conditions.miss("uniqueItems", "earlier items are not compared")
    _contains(conditions)


def _rest_keyword(schema: Schema, listed: str) -> str:
    """Return the keyword of the items after those listed by position."""
    held = cast("dict[str, Json]", schema)
    if listed == "items":
        return "additionalItems" if "additionalItems" in held else ""
    return "items" if "items" in held and not isinstance(held["items"], list) else ""


def _contains(conditions: _SchemaWriter) -> None:
    schema = conditions.schema
    if "contains" in schema:
        trivial = whole(schema, "minContains") == 0 and "maxContains" not in schema
        if not trivial:
            conditions.miss("contains", "matching items are not counted")
    if "unevaluatedItems" in schema and not is_any(cast("Schema", schema["unevaluatedItems"])):
        conditions.miss("unevaluatedItems", "items evaluated by other schemas are not tracked")


MOST_CHOICES = 32
MOST_KEYS = 3_000
"""The engine's time grows with the square of the number of keys: a second for 3,000."""


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
    if is_object(properties):
        if len(properties) > MOST_KEYS:
            raise InputError(
                f"{conditions.place.pointer or '/'}: properties has {len(properties)} keys, {MOST_KEYS} at most"
            )
        conditions.keep("properties")
        first = [name for name in conditions.writer.order if name in properties]
        names_in_order = [*first, *(name for name in properties if name not in first)]
        conditions.put(
            "properties", {name: cast("Json", conditions.inner("properties", name)) for name in names_in_order}
        )
    enforced = _patterns(conditions)
    _names(conditions)
    _unevaluated(conditions, patterns=enforced)
    _least(conditions)
    _most(conditions)


def _patterns(conditions: _SchemaWriter) -> bool:
    """Rewrite `patternProperties` and return whether they are enforced; otherwise neither is `additionalProperties`."""
    schema = conditions.schema
    held = schema.get("patternProperties")
    if is_object(held) and held:
        fault = next((fault for pattern in held if (fault := pattern_fault(pattern))), "")
        fault = fault or engine_error({"type": "object", "patternProperties": dict.fromkeys(held, True)})
        if conditions.writer.merged:
            fault = fault or "patterns of merged objects are not distinguished"
        if fault:
            conditions.miss("patternProperties", fault)
            if "additionalProperties" in schema:
                conditions.miss("additionalProperties", "patternProperties beside it is not enforced")
            return False
        conditions.keep("patternProperties")
        written = {pattern: cast("Json", conditions.inner("patternProperties", pattern)) for pattern in held}
        conditions.put("patternProperties", written)
    if "additionalProperties" in schema:
        conditions.keep("additionalProperties")
        conditions.put("additionalProperties", cast("Json", conditions.inner("additionalProperties")))
    return True


def _names(conditions: _SchemaWriter) -> None:
    """Rewrite `propertyNames` as a pattern of keys, if no other rule for keys stands beside it."""
    held = conditions.schema.get("propertyNames")
    if held is None or is_any(cast("Schema", held)):
        return
    pattern = _pattern_of(held)
    if pattern is None or pattern_fault(pattern) or conditions.writer.merged:
        conditions.miss("propertyNames", "only a pattern, a length or a list of texts is supported")
        return
    conditions.keep("propertyNames")
    conditions.also({"patternProperties": {pattern: True}, "additionalProperties": False})


def _pattern_of(schema: Json) -> str | None:
    """Return the one pattern that is equivalent to a schema of strings."""
    if not is_object(schema):
        return None
    asked = {key for key in schema if key in KEYWORDS} - {"type"}
    if "string" not in types(schema) or len(asked) == 0:
        return None
    if asked <= {"const", "enum"} and len(asked) == 1:
        listed = [schema["const"]] if "const" in schema else cast("list[Json]", schema["enum"])
        words = [word for word in listed if isinstance(word, str)]
        return f"^(?:{'|'.join(map(_literal, words))})$" if words else None
    if asked <= {"minLength", "maxLength"}:
        most = whole(schema, "maxLength")
        return rf"^[\s\S]{{{whole(schema, 'minLength') or 0},{'' if most is None else most}}}$"
    return cast("str", schema["pattern"]) if asked == {"pattern"} else None


def _literal(word: str) -> str:
    return "".join(f"\\{char}" if char in r".^$*+?{}[]\|()-/" else char for char in word)


def _unevaluated(conditions: _SchemaWriter, *, patterns: bool) -> None:
    """Rewrite `unevaluatedProperties`: without applicators beside it, it equals `additionalProperties`."""
    schema = conditions.schema
    if "unevaluatedProperties" not in schema or is_any(child(schema, "unevaluatedProperties")):
        return
    if any(key in schema for key in APPLICATORS) or "additionalProperties" in schema:
        conditions.miss("unevaluatedProperties", "keys evaluated by other schemas are not tracked")
    elif not patterns:
        conditions.miss("unevaluatedProperties", "patternProperties beside it is not enforced")
    else:
        conditions.keep("unevaluatedProperties")
        conditions.put("additionalProperties", cast("Json", conditions.inner("unevaluatedProperties")))


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
            none: dict[str, Json] = dict.fromkeys(optional, False)
            cases.append({"type": "object", "properties": none, "minProperties": least})
        others: Json = {"type": ["null", "boolean", "array", "number", "string"]}
        conditions.also({"anyOf": [*cases, others]})


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

    `merged` leaves out what the engine supports only for an object that is not merged with another.

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

    def all(self) -> dict[str, Json]:
        """Rewrite the root and everything that it references."""
        root = self.write(self.document.root, 0)
        made: dict[str, Json] = dict(root) if is_object(root) else {"enum": []} if root is False else {}
        held: dict[str, Json] = {}
        while self._waiting:
            name, place = self._waiting.popleft()
            held[name] = cast("Json", self.write(place, 0))
        return {**made, "$defs": held} if held else made

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
        for keyword, held in schema.items():
            if isinstance(held, bool) and keyword == "required":
                self.ignored.append(SchemaClause(place.pointer, keyword, "booleans are the notation of an old draft"))
            if keyword not in KEYWORDS:
                if keyword not in ANNOTATIONS:
                    self.ignored.append(SchemaClause(place.pointer, keyword, "unknown in JSON Schema"))
                continue
            if not KEYWORDS[keyword].check(held):
                raise InputError(f"{place.pointer or '/'}: {keyword} must be {KEYWORDS[keyword].expected}")

    def _references(self, conditions: _SchemaWriter) -> None:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = conditions.schema.get(keyword)
            if not isinstance(reference, str):
                continue
            found = self.document.find(reference, conditions.place.base)
            if found is None:
                conditions.miss(keyword, f"{reference} is not in this schema; nothing is fetched")
            elif keyword != "$ref" and self._is_dynamic():
                conditions.miss(keyword, "its target depends on the path of evaluation")
            else:
                conditions.keep(keyword)
                conditions.also(self.reference(found))

    def _is_dynamic(self) -> bool:
        return self.document.dynamic > 1

    def _alternatives(self, conditions: _SchemaWriter) -> None:
        for keyword in ("anyOf", "allOf"):
            listed = conditions.schema.get(keyword)
            if isinstance(listed, list):
                conditions.keep(keyword)
                conditions.put(keyword, [cast("Json", part) for part in conditions.inner_list(keyword)])
        if isinstance(conditions.schema.get("oneOf"), list):
            self._one_of(conditions)
        conditions.complements()

    def _one_of(self, conditions: _SchemaWriter) -> None:
        """Rewrite `oneOf` as `anyOf`, if its branches are disjoint or can be made so by their complements."""
        pointer, base = conditions.place.pointer, conditions.place.base
        listed = cast("list[Schema]", conditions.schema["oneOf"])
        branches = [
            SchemaLocation(part, join_pointer(pointer, "oneOf", number), base) for number, part in enumerate(listed)
        ]
        rest = {keyword: held for keyword, held in conditions.schema.items() if keyword != "oneOf"}
        written = conditions.inner_list("oneOf")
        if len(branches) > 1 and not are_disjoint(listed, self.document, beside=rest, base=base):
            others = [complement(branch, self.document) for branch in branches]
            if len(branches) > MOST_OPPOSITES or None in others:
                conditions.miss("oneOf", "its branches are not proved disjoint")
            else:
                conditions.keep("oneOf")
                unfit = [
                    conditions.written(cast("Schema", other), "oneOf", number) for number, other in enumerate(others)
                ]
                written = [_alone(number, written, unfit) for number in range(len(written))]
        else:
            conditions.keep("oneOf")
        conditions.also({"anyOf": cast("list[Json]", written)})


def _alone(number: int, fit: list[Schema], unfit: list[Schema]) -> Schema:
    """Return the schema of the values that are valid under one branch only."""
    others = [schema for place, schema in enumerate(unfit) if place != number]
    return {"allOf": cast("list[Json]", [fit[number], *others])}
