"""A constraint in a server's own fields, what is enforced, promised or checked; llama.cpp's converter."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

from taiwa.constraints.automaton import Automaton, compile_regex
from taiwa.constraints.earley import GrammarGuide
from taiwa.constraints.gbnf import grammar_to_gbnf, regex_size, regex_to_gbnf, tool_calls_to_gbnf
from taiwa.constraints.guide import Coverage
from taiwa.constraints.readable_guides import choice_regex
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.schema_rewriter import rewrite_schema
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.json_schema.complement import are_disjoint
from taiwa.json_schema.document import Document, join_pointer, resolve_pointer
from taiwa.json_schema.keywords import KEYWORDS, Schema, has_type, subschemas, types
from taiwa.kernel.errors import ConfigError, InputError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Constraint,
    Enforcement,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    Request,
    StreamEnd,
    TextDelta,
    ToolCallsInText,
)
from taiwa.kernel.records import Json, items_at
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.provider_interface import ConstraintWire, Enforce
from taiwa.structured.rendering import is_strict, strict_form

__all__ = ["ConstraintCheck", "ConstraintEncoder", "clause", "of_coverage"]


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


def enforced_keywords(schema: Mapping[str, Json]) -> Places:
    """The keywords that the server holds an answer to.

    >>> sorted(enforced_keywords({"type": "integer", "minimum": 1, "multipleOf": 2}))
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


MOST_CLAUSES = 2_000

NAMES: dict[type, str] = {Regex: "regex", OneOf: "choice", Grammar: "grammar", ToolCallsInText: "tools"}
"""What is no schema is held or not as a whole; this stands in the place of a keyword."""

PLAIN = frozenset(("type", "properties", "items", "prefixItems", "allOf"))
"""Keywords that no check of a probe is about: a server that holds the plainest schema holds them."""

CHECKS: Mapping[str, str] = {
    **dict.fromkeys(("minLength", "maxLength"), "maxLength"),
    **dict.fromkeys(("minItems", "maxItems"), "items bounds"),
}

ENFORCING_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))


def clause(pointer: str, keyword: str) -> str:
    """A keyword and where it stands, as `taiwa.constraints.SchemaClause` writes it."""
    return f"{pointer or '/'}: {keyword}"


def clauses(schema: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json], str]]:
    """Every keyword of a schema that says something about values: its pointer, the schema that holds it, and the keyword."""
    todo: list[tuple[str, Schema]] = [("", schema)]
    while todo:
        pointer, here = todo.pop()
        if isinstance(here, Mapping):
            yield from ((pointer, here, keyword) for keyword in here if keyword in KEYWORDS)
            todo += reversed([(join_pointer(pointer, *steps), part) for steps, part in subschemas(here)])


def by_places(schema: Mapping[str, Json], places: Places, held: Mapping[str, str], way: str) -> Enforcement:
    """Judge by a walk that knows the server's converter; a probe's finding that a keyword is ignored goes before it."""
    enforced: list[str] = []
    checked: list[str] = []
    for pointer, here, keyword in clauses(schema):
        is_held = (pointer, keyword) in places and held.get(_check(here, keyword)) not in ("ignored", "refused")
        (enforced if is_held else checked).append(clause(pointer, keyword))
    return _told(way, enforced, (), checked)


def by_findings(schema: Mapping[str, Json], held: Mapping[str, str], way: str, *, is_promised: bool) -> Enforcement:
    """Judge by what a probe found; of what it did not ask about there is the server's word, or none."""
    found: dict[str, list[str]] = {"enforced": [], "promised": [], "checked": []}
    for pointer, here, keyword in clauses(schema):
        verdict = held.get(_check(here, keyword), "")
        sort = (
            "enforced"
            if verdict == "enforced"
            else "promised"
            if is_promised and verdict in ("", "unknown")
            else "checked"
        )
        found[sort].append(clause(pointer, keyword))
    return _told(way, found["enforced"], found["promised"], found["checked"])


def of_coverage(constraint: Constraint, coverage: Coverage) -> Enforcement:
    """Say of a guide of our own what it enforces: of what is no schema, all that it does not name as left out."""
    missed = (*coverage.relaxed, *coverage.unsupported)
    left = [clause(each.pointer, each.keyword) for each in missed]
    name = NAMES.get(type(constraint))
    held = [clause(each.pointer, each.keyword) for each in coverage.enforced] if name is None else [clause("", name)]
    return _told("mask", [each for each in held if each not in left], (), left)


def _check(schema: Mapping[str, Json], keyword: str) -> str:
    """The name of the check of a probe that is about a keyword."""
    if keyword in PLAIN:
        return "required"
    if keyword in ENFORCING_BOUNDS:
        return "integer bounds" if schema.get("type") == "integer" else "number bounds"
    return CHECKS.get(keyword, keyword)


def _told(way: str, enforced: Iterable[str], promised: Iterable[str], checked: Iterable[str]) -> Enforcement:
    enforced, promised, checked = (tuple(dict.fromkeys(each))[:MOST_CLAUSES] for each in (enforced, promised, checked))
    return Enforcement(way, enforced, promised, checked)


WORDS: dict[type, tuple[Capability, str]] = {
    JsonSchema: ("json_schema", "a JSON Schema"),
    Regex: ("regex", "a regular expression"),
    OneOf: ("regex", "a choice"),
    Grammar: ("grammar", "a grammar"),
    ToolCallsInText: ("grammar", "tools in free text"),
}

GRAMMAR_FIELDS: dict[ConstraintWire, tuple[str, ...]] = {
    "structured_outputs": ("structured_outputs", "grammar"), "fields": ("ebnf",), "gbnf": ("grammar",), "llguidance": ("grammar",)
}  # fmt: skip

SPACE = " ?"

MOST_PLACES = 3_000
"""Larger patterns of schemas take more time to be made a grammar of than it takes to ask; they are kept once they are made."""

LONGEST_PATTERN = 30_000

MOST_KEPT = 256

Held: TypeAlias = JsonSchema | Regex | Grammar | OneOf | ToolCallsInText


@dataclass(frozen=True, slots=True)
class EncodedConstraint:
    """The fields of a request's body, and how the constraint is kept by them."""

    fields: Mapping[str, Json]
    enforcement: Enforcement


@dataclass(frozen=True, slots=True)
class ConstraintEncoder:
    """How one server is told of a constraint. `is_strict`: schemas are rewritten as OpenAI holds models to them."""

    label: str
    model: str
    way: ConstraintWire
    facts: Capabilities
    strict: bool = False
    hold: Enforce = "auto"

    def of(self, constraint: Held, begun: str = "") -> EncodedConstraint:
        """Write a constraint; `begun` is the beginning of the answer, which the server continues and holds to nothing.

        Raises:
            UnsupportedError: the server cannot be told of it, or would not hold all of it and the caller is strict.
        """
        capability, words = WORDS[type(constraint)]
        try:
            self.facts.require(capability, self.model)
            worded = self._told(constraint, begun)
        except (InputError, UnsupportedError) as error:
            if self.hold == "lenient":
                return EncodedConstraint({}, Enforcement(checked=tuple(_clauses(constraint))))
            if isinstance(error, UnsupportedError):
                raise
            raise UnsupportedError(
                f"{self.label} cannot be given {words}: {error.message}", capability=capability
            ) from error
        left = worded.enforcement.checked
        if left and self.hold == "strict":
            first, *others = left
            more = f" and {len(others)} more" if others else ""
            raise UnsupportedError(
                f"{self.label} does not hold the answer to this: {first}{more}; leave it out, or check the answer instead",
                capability=capability,
            )
        return worded

    def _told(self, constraint: Held, begun: str) -> EncodedConstraint:
        match constraint:
            case JsonSchema():
                return self._schema(constraint, begun)
            case Regex(pattern):
                return self._pattern(pattern, begun, "regex")
            case OneOf(texts):
                return self._pattern(choice_regex(texts), begun, "choice", texts)
            case Grammar():
                if begun:
                    raise InputError("an answer that was begun cannot be gone on with under a grammar")
                return self._grammar(self._translated(constraint), "grammar")
            case ToolCallsInText():
                made = tool_calls_to_gbnf(constraint, begun)
                worded = self._grammar(made.text, "tools")
                missed = tuple(clause(each.pointer, each.keyword) for each in made.missed)
                return replace(worded, enforcement=replace(worded.enforcement, checked=missed))

    def _pattern(self, pattern: str, begun: str, name: str, texts: tuple[str, ...] = ()) -> EncodedConstraint:
        """A pattern as it is, where a server takes patterns and nothing was written yet, else as a grammar."""
        if not begun and self.way == "structured_outputs":
            field: dict[str, Json] = {"choice": [*texts]} if texts else {"regex": pattern}
            return self._worded({"structured_outputs": field}, f"structured_outputs.{next(iter(field))}", name)
        if not begun and self.way == "fields":
            return self._worded({"regex": pattern}, "regex", name)
        return self._grammar(_of_regex(pattern, begun), name)

    def _translated(self, grammar: Grammar) -> str:
        try:
            return grammar_to_gbnf(grammar)
        except ConfigError:  # without Lark's own reader nothing is translated
            if self.way != "structured_outputs":
                raise
            return _from_start(grammar)

    def _grammar(self, text: str, name: str) -> EncodedConstraint:
        path = GRAMMAR_FIELDS.get(self.way)
        if path is None:
            capability: Capability = "regex" if name in ("regex", "choice") else "grammar"
            raise UnsupportedError(f"there is no way to give {self.label} a {name}", capability=capability)
        field: Json = text
        for key in reversed(path):
            field = {key: field}
        assert isinstance(field, dict)
        return self._worded(field, ".".join(path), name)

    def _worded(self, fields: Mapping[str, Json], way: str, name: str) -> EncodedConstraint:
        """What is no schema is held as a whole: as was measured of llama.cpp, found by a probe, or promised."""
        capability = "regex" if name in ("regex", "choice") else "grammar"
        known = self.way in ("gbnf", "llguidance") or dict(self.facts.held).get(capability) == "enforced"
        held_to = (clause("", name),)
        return EncodedConstraint(fields, Enforcement(way, held_to, ()) if known else Enforcement(way, (), held_to))

    # --- schemas ------------------------------------------------------------------------------------------------------

    def _schema(self, constraint: JsonSchema, begun: str) -> EncodedConstraint:
        schema = dict(constraint.schema)
        if begun:
            return self._begun_schema(schema, begun)
        if self.way == "llguidance":
            return _for_llguidance(json.dumps(schema, ensure_ascii=False))
        verdicts = dict(self.facts.held)
        if self.way == "structured_outputs":
            told = by_findings(schema, verdicts, "structured_outputs.json", is_promised=True)
            return EncodedConstraint({"structured_outputs": {"json": schema}}, told)
        if self.way == "gbnf":
            enforcement = by_places(schema, enforced_keywords(schema), verdicts, "response_format")
            own = self._own_grammar(schema) if enforcement.checked else None
            if own is not None:
                every = tuple(dict.fromkeys((*enforcement.enforced, *enforcement.checked)))
                return EncodedConstraint({"grammar": own}, Enforcement("grammar", every))
            return EncodedConstraint(_response_format(constraint, schema, is_strict(schema)), enforcement)
        sent, strict = strict_form(schema) if self.strict else (schema, is_strict(schema))
        told = by_findings(sent, verdicts, "response_format", is_promised=strict or not self.strict)
        if sent != schema:  # what was said in words only is not held
            told = _checked_too(told, schema)
        return EncodedConstraint(_response_format(constraint, sent, strict), told)

    def _own_grammar(self, schema: Mapping[str, Json]) -> str | None:
        """A grammar of our own for a schema of which the server would drop a part, where a pattern can say all of it."""
        if "grammar" not in self.facts.capabilities or _is_recursive(schema):
            return None
        try:
            pattern = to_regex(dict(schema), SPACE)
            return _of_regex(pattern, "") if _wording_is_small(pattern) else None
        except InputError:
            return None

    def _begun_schema(self, schema: Mapping[str, Json], begun: str) -> EncodedConstraint:
        """A server holds only what it writes itself, and would begin the JSON anew: so it is given what is left of it."""
        if GRAMMAR_FIELDS.get(self.way) is None:
            raise UnsupportedError(
                f"{self.label} cannot go on with an answer and be held to a JSON Schema at once", capability="prefix"
            )
        pattern = to_regex(dict(schema), SPACE)
        if not _wording_is_small(pattern):
            raise InputError("the schema is too large for an answer that was begun")
        worded = self._grammar(_of_regex(pattern, begun), "schema")
        every = tuple(dict.fromkeys(clause(pointer, keyword) for pointer, _, keyword in clauses(schema)))
        known = bool(worded.enforcement.enforced)
        told = Enforcement(worded.enforcement.method, every if known else (), () if known else every)
        return EncodedConstraint(worded.fields, told)


def _response_format(constraint: JsonSchema, schema: Mapping[str, Json], strict: bool) -> dict[str, Json]:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", constraint.name)[:64] or "answer"
    named: dict[str, Json] = {"name": name, "schema": dict(schema), "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _checked_too(told: Enforcement, schema: Mapping[str, Json]) -> Enforcement:
    known = {*told.enforced, *told.promised, *told.checked}
    missing = (clause(pointer, keyword) for pointer, _, keyword in clauses(schema))
    return replace(told, checked=(*told.checked, *(each for each in dict.fromkeys(missing) if each not in known)))


def _clauses(constraint: Held) -> list[str]:
    if isinstance(constraint, JsonSchema):
        return list(dict.fromkeys(clause(pointer, keyword) for pointer, _, keyword in clauses(constraint.schema)))
    return [clause("", NAMES[type(constraint)])]


@lru_cache(maxsize=MOST_KEPT)
def _wording_is_small(pattern: str) -> bool:
    return len(pattern) <= LONGEST_PATTERN and regex_size(pattern) <= MOST_PLACES


@lru_cache(maxsize=MOST_KEPT)
def _of_regex(pattern: str, begun: str) -> str:
    return regex_to_gbnf(pattern, begun)


@lru_cache(maxsize=MOST_KEPT)
def _for_llguidance(schema: str) -> EncodedConstraint:
    """A schema for a llama.cpp with llguidance in it, rewritten into what that enforces, as for a model in this process."""
    written = rewrite_schema(json.loads(schema))
    # No white space: the engine's older versions, which servers are built with, do not keep its bounds.
    text = json.dumps({**written.schema, "x-guidance": {"whitespace_flexible": False}}, ensure_ascii=False)
    enforced = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in written.enforced))
    checked = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in written.missed))
    kept = tuple(each for each in enforced if each not in checked)
    return EncodedConstraint(
        {"grammar": f"%llguidance {{}}\nstart: %json {text}\n"}, Enforcement("grammar", kept, (), checked)
    )


def _is_recursive(schema: Mapping[str, Json]) -> bool:
    """Whether a schema refers to itself, however far around: a pattern could say that to a small depth only."""
    leads: dict[str, set[str]] = {}
    for pointer, here, keyword in clauses(schema):
        if keyword == "$ref":
            leads.setdefault(pointer, set()).add(str(here["$ref"]).removeprefix("#"))
    targets = {target for found in leads.values() for target in found}
    reach = {
        target: {other for pointer, found in leads.items() if pointer.startswith(target) for other in found}
        for target in targets
    }
    for target in targets:
        seen, todo = set[str](), list(reach[target])
        while todo:
            here_ = todo.pop()
            if here_ not in seen:
                seen.add(here_)
                todo += reach.get(here_, ())
        if target in seen:
            return True
    return False


def _from_start(grammar: Grammar) -> str:
    """Write a grammar whose first rule is called `start`, as the wire wants it."""
    if grammar.start == "start":
        return grammar.text
    if re.search(r"^\s*[?!]*start\s*:", grammar.text, re.MULTILINE):
        raise InputError(f"the grammar begins at {grammar.start!r} and has another rule 'start': rename it")
    return f"start: {grammar.start}\n{grammar.text}"


KEEPING_MOST_KEPT = 64

LONGEST = 20_000
"""Longer answers are not read by a grammar here: that takes time that grows faster than they do."""


class ConstraintCheck:
    """Watches the chunks of an answer go by, and adds to the last one how its constraint was kept."""

    def __init__(self, enforcement: Enforcement, request: Request) -> None:
        self._enforcement = enforcement
        self._request = request
        self._said = [request.prefix]

    def seen(self, chunk: Chunk) -> Chunk:
        """Give out a chunk."""
        if isinstance(chunk, TextDelta):
            self._said.append(chunk.text)
        elif isinstance(chunk, StreamEnd):
            faults = find_violation(self._request, "".join(self._said)) if chunk.finish == "stop" else ()
            return replace(chunk, enforcement=replace(self._enforcement, broken=faults))
        return chunk


def find_violation(request: Request, text: str) -> tuple[str, ...]:
    """Say which constraint a whole answer breaks; of a schema nothing is said here.

    >>> find_violation(Request((), constraint=Regex("[0-9]+")), "ten")
    ('/: regex',)
    """
    constraint = request.constraint
    match constraint:
        case Regex(pattern):
            automaton = _automaton(pattern)
            name, fits = "regex", automaton is None or automaton.accepts(map(ord, text))
        case OneOf(texts):
            name, fits = "choice", text in texts
        case ToolCallsInText():
            name, fits = "tools", _calls(constraint, text)
        case Grammar():
            name, fits = "grammar", len(text) > LONGEST or _grammar(constraint, text)
        case _:
            return ()
    return () if fits else (clause("", name),)


@lru_cache(maxsize=KEEPING_MOST_KEPT)
def _automaton(pattern: str) -> Automaton | None:
    try:
        return compile_regex(pattern, chars=True)
    except InputError:
        return None  # a pattern of the server's own dialect


def _calls(calls: ToolCallsInText, text: str) -> bool:
    try:
        return tool_calls_to_gbnf(calls).accepts(text)
    except InputError:
        return True


def _grammar(grammar: Grammar, text: str) -> bool:
    guide = _reference(grammar)
    return guide is None or guide.accepts(text)


@lru_cache(maxsize=KEEPING_MOST_KEPT)
def _reference(grammar: Grammar) -> GrammarGuide | None:
    try:
        return GrammarGuide(grammar.text, Vocabulary.of_bytes(), start=grammar.start)
    except (ConfigError, InputError):
        return None  # no Lark here, or a grammar of the server's own dialect
