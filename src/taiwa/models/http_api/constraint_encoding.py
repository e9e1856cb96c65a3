"""Encode constraints in the fields of a server, and report what it enforces, what it promises, and what must be checked.

llama.cpp silently drops parts of JSON Schema, so a walk over the schema imitates its converter to find what it enforces.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

from taiwa.constraints.automaton import (
    MOST_STEPS,
    Alternation,
    Automaton,
    Chars,
    Concatenation,
    Node,
    Repeat,
    compile_regex,
    parse_regex,
)
from taiwa.constraints.compile import to_engine_lark
from taiwa.constraints.gbnf import grammar_to_gbnf, regex_size, regex_to_gbnf, tool_calls_to_gbnf
from taiwa.constraints.guide import Coverage
from taiwa.constraints.readable_guides import GrammarGuide, choice_regex
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.schema_rewriter import SPACED, close_objects, rewrite_schema
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.isolation import Handler, ProcessLimits, ProcessPool
from taiwa.json_schema import (
    KEYWORDS,
    Document,
    Schema,
    has_type,
    join_pointer,
    listed_values,
    map_subschemas,
    name_keys,
    resolve_pointer,
    subschemas,
    types,
)
from taiwa.kernel.errors import ConfigError, InputError, ToolError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Choice,
    Chunk,
    Constraint,
    Enforcement,
    FailedAttempt,
    Grammar,
    JsonSchema,
    Regex,
    Request,
    StreamEnd,
    TextDelta,
    ToolCallsInText,
    constrained_prefix,
)
from taiwa.kernel.serialization import Json, items_at, text_at
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.provider_interface import ConstraintWire, Enforce
from taiwa.schema_values import are_disjoint
from taiwa.structured.rendering import is_strict, strict_form

EncodableConstraint: TypeAlias = JsonSchema | Regex | Grammar | Choice | ToolCallsInText

KeywordPlaces: TypeAlias = frozenset[tuple[str, str]]
"""The JSON pointer of a schema, and a keyword in it."""

Part: TypeAlias = tuple[str, "Json | Schema"]
"""The JSON pointer of a schema, and the schema."""

KINDS: Mapping[type, tuple[str, Capability, str]] = {
    JsonSchema: ("schema", "json_schema", "a JSON Schema"),
    Regex: ("regex", "regex", "a regular expression"),
    Choice: ("choice", "regex", "a list of words"),
    Grammar: ("grammar", "grammar", "a grammar"),
    ToolCallsInText: ("tools", "grammar", "tools in free text"),
}
"""The name of a kind of constraint in clauses (instead of a keyword), its capability, and its name in errors."""

GRAMMAR_FIELDS: Mapping[ConstraintWire, tuple[str, ...]] = {
    "structured_outputs": ("structured_outputs", "grammar"), "fields": ("ebnf",), "gbnf": ("grammar",), "llguidance": ("grammar",)
}  # fmt: skip

SPACE = " ?"
LARGEST_REGEX = 3_000
"""The size of a regular expression of a schema: turning a larger one into a grammar takes longer than the request."""
LONGEST_REGEX = 30_000
LONGEST_ANSWER = 20_000
"""Longer answers are not checked by a grammar, because the time grows faster than their length."""
MOST_CLAUSES = 2_000
MOST_NUMBER = 10**15
"""The default bound of numbers for servers whose engine writes unbounded exponents."""
CACHED = 64
CACHED_AUTOMATA = 8
QUICK_STEPS = 20_000
"""The steps in which this process makes an automaton, some hundredths of a second."""
LIMITS = ProcessLimits(seconds=2.0, memory_mb=256, characters=1_000_000)

PLAIN_KEYWORDS = frozenset(("type", "properties", "items", "prefixItems", "allOf"))
"""Keywords without a separate check in a probe: a server that enforces the simplest schema enforces them."""
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
CHECKS: Mapping[str, str] = {
    **dict.fromkeys(("minLength", "maxLength"), "maxLength"),
    **dict.fromkeys(("minItems", "maxItems"), "items bounds"),
}
"""The check of a probe that covers a keyword, if it has another name."""

PLAIN_PATTERN = re.compile(r"\^(?:[^\\^$(]|\\[^A-Za-z0-9]|\((?!\?))*\$", re.ASCII)
"""A pattern that llama.cpp understands: anchored at both ends, without letter classes and special groups."""
ESCAPED_IN_JSON = (*range(0x20), 0x22, 0x5C)
FORMATS = ("uuid", "date", "time", "date-time")
PRIMITIVE = ("string", "integer", "number", "boolean", "null", "object", "array")
MOST_REPETITIONS = 2_000
"""The most repetitions that the grammar parser of llama.cpp accepts."""


@dataclass(frozen=True, slots=True)
class EncodedConstraint:
    """The fields for the body of a request, and how they enforce the constraint."""

    fields: Mapping[str, Json]
    enforcement: Enforcement


@dataclass(frozen=True, slots=True)
class ConstraintEncoder:
    """Encodes constraints for one server. `strict`: rewrite schemas into the strict form, which OpenAI enforces."""

    label: str
    model: str
    wire: ConstraintWire
    capabilities: Capabilities
    strict: bool = False
    enforce: Enforce = "auto"

    def encode(self, constraint: EncodableConstraint, prefix: str = "") -> EncodedConstraint:
        """Encode a constraint; `prefix` is the start of the answer, to which the server applies no constraint.

        Raises:
            UnsupportedError: the server has no field for it, or does not enforce all of it and `enforce` is strict.
        """
        _, capability, description = KINDS[type(constraint)]
        able = self.capabilities.capabilities
        if capability == "regex" and "regex" not in able and "grammar" in able:
            capability = "grammar"  # a pattern can be written as one
        if isinstance(constraint, JsonSchema):
            constraint = replace(constraint, schema=name_keys(constraint.schema))
        try:
            self.capabilities.require(capability, self.model, f"be constrained by {description}")
            encoded = self._encode(constraint, prefix)
        except (InputError, UnsupportedError) as error:
            if self.enforce == "lenient":
                return EncodedConstraint({}, Enforcement(checked=_clauses_of(constraint)))
            if isinstance(error, UnsupportedError):
                raise
            raise UnsupportedError(
                f"{self.label} cannot be constrained by {description}: {error.message}", capability=capability
            ) from error
        unenforced = encoded.enforcement.checked
        if unenforced and self.enforce == "strict":
            first, *others = unenforced
            more = f" and {len(others)} more" if others else ""
            raise UnsupportedError(
                f"{self.label} does not enforce {first}{more}; remove it, or check the answer instead",
                capability=capability,
            )
        return encoded

    def _encode(self, constraint: EncodableConstraint, prefix: str) -> EncodedConstraint:
        match constraint:
            case JsonSchema():
                return self._encode_schema(constraint, prefix)
            case Regex(pattern):
                return self._encode_regex(pattern, prefix, "regex")
            case Choice(texts):
                return self._encode_regex(choice_regex(texts), prefix, "choice", texts)
            case Grammar():
                if prefix:
                    raise InputError("an answer with a prefix cannot be constrained by a grammar")
                return self._encode_grammar(self._translate(constraint), "grammar")
            case ToolCallsInText():
                grammar = tool_calls_to_gbnf(constraint, constrained_prefix(constraint, prefix))
                encoded = self._encode_grammar(grammar.text, "tools")
                missed = tuple(clause(each.pointer, each.keyword) for each in grammar.missed)
                return replace(encoded, enforcement=replace(encoded.enforcement, checked=missed))

    def _encode_regex(self, pattern: str, prefix: str, name: str, texts: tuple[str, ...] = ()) -> EncodedConstraint:
        """Encode a pattern unchanged if the server accepts patterns and there is no prefix, else as a grammar."""
        if prefix or "regex" not in self.capabilities.capabilities:
            return self._encode_grammar(_regex_to_gbnf(pattern, prefix), name)
        if self.wire == "structured_outputs":
            field: dict[str, Json] = {"choice": [*texts]} if texts else {"regex": pattern}
            return self._enforced({"structured_outputs": field}, f"structured_outputs.{next(iter(field))}", name)
        if self.wire == "fields":
            return self._enforced({"regex": pattern}, "regex", name)
        return self._encode_grammar(_regex_to_gbnf(pattern, prefix), name)

    def _translate(self, grammar: Grammar) -> str:
        try:
            return grammar_to_gbnf(grammar)
        except ConfigError:  # nothing can be translated without Lark's parser
            if self.wire != "structured_outputs":
                raise
            return to_engine_lark(grammar)

    def _encode_grammar(self, text: str, name: str) -> EncodedConstraint:
        path = GRAMMAR_FIELDS.get(self.wire)
        if path is None:
            capability: Capability = "regex" if name in ("regex", "choice") else "grammar"
            raise UnsupportedError(f"{self.label} has no field for constraint {name!r}", capability=capability)
        field: Json = text
        for key in reversed(path):
            field = {key: field}
        assert isinstance(field, dict)
        return self._enforced(field, ".".join(path), name)

    def _enforced(self, fields: Mapping[str, Json], method: str, name: str) -> EncodedConstraint:
        """Constraints other than schemas are enforced completely, as measured (llama.cpp), probed or documented."""
        capability = "regex" if name in ("regex", "choice") else "grammar"
        known = self.wire in ("gbnf", "llguidance") or dict(self.capabilities.verdicts).get(capability) == "enforced"
        whole = (clause("", name),)
        return EncodedConstraint(fields, Enforcement(method, whole, ()) if known else Enforcement(method, (), whole))

    def _encode_schema(self, constraint: JsonSchema, prefix: str) -> EncodedConstraint:
        schema = dict(constraint.schema)
        if prefix:
            return self._encode_rest_of_schema(schema, prefix)
        if self.wire == "llguidance":
            # For unbounded numbers, servers write exponents that JSON parsers do not read.
            is_open = any(keyword == "type" and _are_numbers_open(here) for _, here, keyword in _keywords(schema))
            grammar = self._schema_to_gbnf(schema) if is_open else None
            if grammar is not None:
                return EncodedConstraint({"grammar": grammar}, Enforcement("grammar", _clauses_of(constraint)))
            return _encode_for_llguidance(json.dumps(schema, ensure_ascii=False))
        verdicts = dict(self.capabilities.verdicts)
        if self.wire == "structured_outputs":
            enforcement = _by_verdicts(schema, verdicts, "structured_outputs.json", is_promised=True)
            return EncodedConstraint({"structured_outputs": {"json": schema}}, enforcement)
        if self.wire == "gbnf":
            enforcement = _by_converter(schema, verdicts, "response_format")
            grammar = self._schema_to_gbnf(schema) if enforcement.checked else None
            if grammar is not None:
                every = tuple(dict.fromkeys((*enforcement.enforced, *enforcement.checked)))
                return EncodedConstraint({"grammar": grammar}, Enforcement("grammar", every))
            sent = _without_loose_patterns(schema, enforced_keywords(schema))
            return _in_response_format(constraint.name, sent, is_strict(schema), enforcement)
        sent, strict = strict_form(schema) if self.strict else (schema, is_strict(schema))
        enforcement = _by_verdicts(sent, verdicts, "response_format", is_promised=strict or not self.strict)
        if sent != schema:  # keywords that the strict form moves to descriptions are not enforced
            known = {*enforcement.enforced, *enforcement.promised, *enforcement.checked}
            more = (each for each in _clauses_of(constraint) if each not in known)
            enforcement = replace(enforcement, checked=(*enforcement.checked, *more))
        return _in_response_format(constraint.name, sent, strict, enforcement)

    def _schema_to_gbnf(self, schema: Mapping[str, Json]) -> str | None:
        """Return a grammar for a schema that the server enforces only in part; None if no pattern expresses all of it."""
        if "grammar" not in self.capabilities.capabilities or _is_recursive(schema):
            return None
        try:
            pattern = to_regex(dict(schema), SPACE)
            return _regex_to_gbnf(pattern, "") if _is_small_regex(pattern) else None
        except InputError:
            return None

    def _encode_rest_of_schema(self, schema: Mapping[str, Json], prefix: str) -> EncodedConstraint:
        """Encode what may follow a prefix: a server constrains only the text that it generates."""
        if GRAMMAR_FIELDS.get(self.wire) is None:
            raise UnsupportedError(f"{self.label} cannot continue a prefix under a JSON Schema", capability="prefix")
        pattern = to_regex(dict(schema), SPACE)
        if not _is_small_regex(pattern):
            raise InputError("the schema is too large for an answer with a prefix")
        encoded = self._encode_grammar(_regex_to_gbnf(pattern, prefix), "schema")
        every = _clauses_of(JsonSchema(schema))
        known = bool(encoded.enforcement.enforced)
        enforcement = replace(encoded.enforcement, enforced=every if known else (), promised=() if known else every)
        return EncodedConstraint(encoded.fields, enforcement)


def _in_response_format(
    name: str, schema: Mapping[str, Json], strict: bool, enforcement: Enforcement
) -> EncodedConstraint:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "answer"
    named: dict[str, Json] = {"name": name, "schema": dict(schema), "strict": strict}
    return EncodedConstraint({"response_format": {"type": "json_schema", "json_schema": named}}, enforcement)


def _clauses_of(constraint: EncodableConstraint) -> tuple[str, ...]:
    if isinstance(constraint, JsonSchema):
        return tuple(dict.fromkeys(clause(pointer, keyword) for pointer, _, keyword in _keywords(constraint.schema)))
    return (clause("", KINDS[type(constraint)][0]),)


@lru_cache(maxsize=CACHED)
def _is_small_regex(pattern: str) -> bool:
    return len(pattern) <= LONGEST_REGEX and regex_size(pattern) <= LARGEST_REGEX


_regex_to_gbnf = lru_cache(maxsize=CACHED)(regex_to_gbnf)


@lru_cache(maxsize=CACHED)
def _encode_for_llguidance(schema: str) -> EncodedConstraint:
    """Encode a schema for llama.cpp with llguidance, rewritten to keywords that it enforces, as for a model in this process."""
    rewritten = rewrite_schema(close_objects(json.loads(schema)))
    closed = _close_numbers(rewritten.schema)
    # Not optional white space: the older engine versions in servers do not enforce its bounds.
    text = json.dumps({**closed, "x-guidance": dict(SPACED)}, ensure_ascii=False)
    enforced = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in rewritten.enforced))
    checked = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in rewritten.missed))
    enforced = tuple(each for each in enforced if each not in checked)
    return EncodedConstraint(
        {"grammar": f"%llguidance {{}}\nstart: %json {text}\n"}, Enforcement("grammar", enforced, (), checked)
    )


def _are_numbers_open(schema: Mapping[str, Json]) -> bool:
    """Return whether a schema allows numbers of any size."""
    lower, upper = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
    if not types(schema) & {"number", "integer"} or listed_values(schema) is not None:
        return False
    return not any(key in schema for key in lower) or not any(key in schema for key in upper)


def _close_numbers(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Bound the open numbers of a schema for llguidance, which writes a number between two bounds without an exponent."""
    closed = map_subschemas(schema, lambda _, part: _close_numbers(part) if isinstance(part, Mapping) else part)
    if "type" in schema and _are_numbers_open(schema):
        closed = {"minimum": -MOST_NUMBER, "maximum": MOST_NUMBER, **closed}
    return closed


def _is_recursive(schema: Mapping[str, Json]) -> bool:
    """Whether a schema refers to itself, directly or not: a pattern can express recursion only to a small depth."""
    references = [
        (pointer, str(here["$ref"]).removeprefix("#"))
        for pointer, here, keyword in _keywords(schema)
        if keyword == "$ref"
    ]
    for _, start in references:
        reached, todo = set[str](), [start]
        while todo:
            here = todo.pop()
            new = {target for pointer, target in references if pointer.startswith(here)} - reached
            reached |= new
            todo += new
        if start in reached:
            return True
    return False


# --- a text as a schema -------------------------------------------------------------------------------------------------

TEXTS = ("choice", "text")
"""The member of the object that holds a chosen text, or one that matches a pattern: strict servers accept only objects."""
MOST_LISTED = 200
"""The most texts of a pattern that are listed in place of it: an enum is enforced by more servers than a pattern."""


def text_as_schema(request: Request, able: Set[Capability]) -> Request:
    """Return a request whose choice or pattern is a schema, for a server that enforces only schemas; any other unchanged."""
    constraint = request.constraint
    if (
        not isinstance(constraint, Choice | Regex)
        or request.prefix
        or {"regex", "grammar"} & able
        or "json_schema" not in able
    ):
        return request
    texts = constraint.texts if isinstance(constraint, Choice) else _texts_of(constraint.pattern)
    name = TEXTS[not texts]
    text: dict[str, Json] = {"type": "string"}
    text |= {"enum": [*texts]} if texts else {"pattern": f"^(?:{cast('Regex', constraint).pattern})$"}
    schema: dict[str, Json] = {
        "type": "object", "properties": {name: text}, "required": [name], "additionalProperties": False,
    }  # fmt: skip
    return replace(request, constraint=JsonSchema(schema, name))


def _texts_of(pattern: str) -> tuple[str, ...]:
    """Return the texts that match a pattern, if they are few; () otherwise.

    >>> _texts_of("(?:green |black )?tea"), _texts_of("[a-z]+")
    (('black tea', 'green tea', 'tea'), ())
    """
    automaton = _automaton(pattern)
    if automaton is None or not 0 < (automaton.extent[0] or 0) <= MOST_LISTED:
        return ()
    texts: list[str] = []
    waiting = [("", 0)]
    while waiting:
        text, state = waiting.pop()
        texts += [text] if state in automaton.finals else []
        waiting += [
            (text + chr(code), there) for low, high, there in automaton.moves[state] for code in range(low, high + 1)
        ]
    return tuple(sorted(texts))


class TextReader:
    """Reads the text from the JSON of an answer to `text_as_schema`, which is complete at its end; any other text stays as it is."""

    def __init__(self) -> None:
        self._text = ""

    def read(self, chunk: Chunk) -> tuple[Chunk, ...]:
        """Return the chunks to pass on."""
        if isinstance(chunk, TextDelta) and not chunk.refuses:
            self._text += chunk.text
            return ()
        if isinstance(chunk, FailedAttempt):
            self._text = ""
        if not isinstance(chunk, StreamEnd) or not self._text:
            return (chunk,)
        try:
            data = cast("Json", json.loads(self._text))
            chosen = next(filter(None, (text_at(data, name) for name in TEXTS)), self._text)
        except (ValueError, RecursionError):
            chosen = self._text
        return TextDelta(chosen), chunk


# --- checking the answer ------------------------------------------------------------------------------------------------


STARTS = frozenset('{["-0123456789tfn')
"""The first characters of JSON."""


class ConstraintCheck:
    """Collects the text of an answer from its chunks, and adds the violated constraint to the last one."""

    def __init__(self, enforcement: Enforcement, request: Request) -> None:
        self._enforcement = enforcement
        self._request = request
        self._texts = [constrained_prefix(request.constraint, request.prefix) if request.constraint else request.prefix]
        self.is_prose = False
        """Whether the answer has ended and does not begin like JSON."""

    def seen(self, chunk: Chunk) -> Chunk:
        """Return a chunk, the last one with the violation."""
        if isinstance(chunk, TextDelta):
            self._texts.append(chunk.text)
        elif isinstance(chunk, StreamEnd):
            text = "".join(self._texts)
            self.is_prose = chunk.finish == "stop" and text.lstrip()[:1] not in STARTS
            broken = find_violation(self._request, text) if chunk.finish == "stop" else ()
            enforcement = replace(self._enforcement, broken=broken)
            return replace(chunk, decoding=replace(chunk.decoding, enforcement=enforcement))
        return chunk


def find_violation(request: Request, text: str) -> tuple[str, ...]:
    """Return the clause of a constraint that a complete answer violates; the parser of the answer checks schemas.

    >>> find_violation(Request((), constraint=Regex("[0-9]+")), "ten")
    ('/: regex',)
    """
    constraint = request.constraint
    match constraint:
        case Regex(pattern):
            name, fits = "regex", _matches(pattern, text)
        case Choice(texts):
            name, fits = "choice", text in texts
        case ToolCallsInText():
            name, fits = "tools", _fits_tool_calls(constraint, text)
        case Grammar():
            guide = None if len(text) > LONGEST_ANSWER else _grammar_guide(constraint)
            name, fits = "grammar", guide is None or guide.accepts(text)
        case _:
            return ()
    return () if fits else (clause("", name),)


@lru_cache(maxsize=CACHED_AUTOMATA)
def _automaton(pattern: str, most_steps: int = QUICK_STEPS) -> Automaton | None:
    try:
        return compile_regex(pattern, chars=True, most_steps=most_steps)
    except InputError:
        return None  # a large pattern, or one in a dialect of the server


def _matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, or that cannot be found out; a large one is compared in another process."""
    if (automaton := _automaton(pattern)) is not None:
        return automaton.accepts(map(ord, text))
    if pattern in _unanswered:
        return True
    try:
        return _processes.ask({"pattern": pattern, "text": text})["fits"] is True
    except ToolError as error:
        if error.code == "timeout":
            _unanswered.append(pattern)
    except ConfigError:
        pass
    return True


_processes = ProcessPool(f"{__name__}:entry", "the pattern", LIMITS)
_unanswered = deque[str](maxlen=CACHED_AUTOMATA)
"""Patterns that took all of a process's time: they would for every other text."""


def entry(start: dict[str, Json]) -> Handler:
    """Return the function that compares texts with patterns in a child process."""
    del start

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        del characters
        automaton = _automaton(str(question["pattern"]), MOST_STEPS)
        return {"fits": automaton is None or automaton.accepts(map(ord, str(question["text"])))}

    return answer


def _fits_tool_calls(calls: ToolCallsInText, text: str) -> bool:
    try:
        return tool_calls_to_gbnf(calls).accepts(text)
    except InputError:
        return True


@lru_cache(maxsize=CACHED_AUTOMATA)
def _grammar_guide(grammar: Grammar) -> GrammarGuide | None:
    try:
        return GrammarGuide(grammar.text, Vocabulary.of_bytes(), start=grammar.start)
    except (ConfigError, InputError):
        return None  # Lark is not installed, or the grammar is in a dialect of the server


# --- what is enforced, promised or checked ------------------------------------------------------------------------------


def clause(pointer: str, keyword: str) -> str:
    """Return a keyword and its location, as `taiwa.constraints.SchemaClause` formats them."""
    return f"{pointer or '/'}: {keyword}"


def _keywords(schema: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json], str]]:
    """Yield every keyword of a schema that constrains values: its pointer, the schema that contains it, and the keyword."""
    todo: list[tuple[str, Schema]] = [("", schema)]
    while todo:
        pointer, here = todo.pop()
        if isinstance(here, Mapping):
            yield from ((pointer, here, keyword) for keyword in here if keyword in KEYWORDS)
            todo += reversed([(join_pointer(pointer, *steps), part) for steps, part in subschemas(here)])


def _by_converter(schema: Mapping[str, Json], verdicts: Mapping[str, str], method: str) -> Enforcement:
    """Judge by the keywords that llama.cpp's converter supports; a probe that found a keyword ignored takes precedence."""
    places = enforced_keywords(schema)
    enforced: list[str] = []
    checked: list[str] = []
    for pointer, here, keyword in _keywords(schema):
        is_enforced = (pointer, keyword) in places and verdicts.get(_check(here, keyword)) not in ("ignored", "refused")
        (enforced if is_enforced else checked).append(clause(pointer, keyword))
    return _enforcement(method, enforced, (), checked)


def _without_loose_patterns(schema: Mapping[str, Json], places: KeywordPlaces, pointer: str = "") -> dict[str, Json]:
    """Leave out the patterns that llama.cpp does not enforce: one that matches a quotation mark takes in the rest of the document."""
    kept = {key: part for key, part in schema.items() if key != "pattern" or (pointer, key) in places}
    return map_subschemas(
        kept,
        lambda steps, part: (
            _without_loose_patterns(part, places, join_pointer(pointer, *steps)) if isinstance(part, Mapping) else part
        ),
    )


def _is_plain_pattern(pattern: str) -> bool:
    """Return whether llama.cpp translates a pattern faithfully; its converter escapes no character of the string for JSON."""
    try:
        return PLAIN_PATTERN.fullmatch(pattern) is not None and not _matches_escaped(parse_regex(pattern))
    except InputError:
        return False


def _matches_escaped(node: Node) -> bool:
    if isinstance(node, Chars):
        return any(low <= code <= high for low, high in node.ranges for code in ESCAPED_IN_JSON)
    if isinstance(node, Repeat):
        return _matches_escaped(node.part)
    parts = node.parts if isinstance(node, Concatenation) else node.options if isinstance(node, Alternation) else ()
    return any(_matches_escaped(part) for part in parts)


def _by_verdicts(
    schema: Mapping[str, Json], verdicts: Mapping[str, str], method: str, *, is_promised: bool
) -> Enforcement:
    """Judge by the verdicts of a probe; a keyword without one is promised by the server, or not."""
    found: dict[str, list[str]] = {"enforced": [], "promised": [], "checked": []}
    for pointer, here, keyword in _keywords(schema):
        verdict = verdicts.get(_check(here, keyword), "")
        if verdict == "enforced" and keyword == "type" and "number" in types(here) and _are_numbers_open(here):
            verdict = "promised"  # a probe cannot verify that exponents stay within JSON's range
        elif verdict != "enforced":
            verdict = "promised" if is_promised and verdict in ("", "unknown") else "checked"
        found[verdict].append(clause(pointer, keyword))
    return _enforcement(method, found["enforced"], found["promised"], found["checked"])


def enforcement_of(constraint: Constraint, coverage: Coverage) -> Enforcement:
    """Return what a guide in this process enforces; constraints other than schemas are enforced as a whole."""
    missed = [clause(each.pointer, each.keyword) for each in coverage.relaxed]
    if type(constraint) in KINDS and not isinstance(constraint, JsonSchema):
        enforced = [clause("", KINDS[type(constraint)][0])]
    else:
        enforced = [clause(each.pointer, each.keyword) for each in coverage.enforced]
    return _enforcement("mask", [each for each in enforced if each not in missed], (), missed)


def _check(schema: Mapping[str, Json], keyword: str) -> str:
    """Return the name of the check of a probe that covers a keyword."""
    if keyword in PLAIN_KEYWORDS:
        return "required"
    if keyword in BOUNDS:
        return "integer bounds" if schema.get("type") == "integer" else "number bounds"
    return CHECKS.get(keyword, keyword)


def _enforcement(method: str, enforced: Iterable[str], promised: Iterable[str], checked: Iterable[str]) -> Enforcement:
    enforced, promised, checked = (tuple(dict.fromkeys(each))[:MOST_CLAUSES] for each in (enforced, promised, checked))
    return Enforcement(method, enforced, promised, checked)


# --- the schema converter of llama.cpp ----------------------------------------------------------------------------------


def enforced_keywords(schema: Mapping[str, Json]) -> KeywordPlaces:
    """Return the keywords of a schema that llama.cpp enforces.

    >>> sorted(enforced_keywords({"type": "integer", "minimum": 1, "multipleOf": 2}))
    [('', 'minimum'), ('', 'type')]
    """
    root = dict(schema)
    walk = _ConverterWalk(root)
    walk.visit("", root)
    return frozenset(walk.found)


class _ConverterWalk:
    """Walks a schema like the converter of llama.cpp, and collects the keywords that it supports."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self.document = Document(root)
        self.found: set[tuple[str, str]] = set()
        self._seen: set[str] = set()

    def visit(self, pointer: str, schema: "Json | Schema") -> None:
        todo: list[Part] = [(pointer, schema)]
        while todo:  # without recursion: a schema may be a chain of thousands of references
            pointer, schema = todo.pop()
            if isinstance(schema, Mapping) and pointer not in self._seen:
                self._seen.add(pointer)
                todo += self.taken(pointer, schema)

    def keep(self, pointer: str, schema: Mapping[str, Json], *keywords: str) -> None:
        self.found |= {(pointer, keyword) for keyword in keywords if keyword in schema}

    def taken(self, pointer: str, schema: Mapping[str, Json]) -> Iterator[Part]:
        """Collect the keywords of a schema; yield the schemas that the converter descends into."""
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
        """Process each type separately; a keyword is enforced if it is enforced for the type that it applies to."""
        if "number" not in kinds:
            self.keep(pointer, schema, "type")
        # Bounds become part of the grammar only for integers; with `number` they enforce nothing.
        rest = {key: part for key, part in schema.items() if "number" not in kinds or key not in BOUNDS}
        for kind in kinds:
            yield from self.taken(pointer, {**rest, "type": kind})

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
        """Process `allOf`: the properties of its parts are merged; everything else in the parts is dropped."""
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
            if isinstance(pattern, str) and _is_plain_pattern(pattern):
                self.keep(pointer, schema, "pattern")
        elif kind in (None, "string") and schema.get("format") in FORMATS:
            self.keep(pointer, schema, "format")
        elif kind == "string":
            self.keep(pointer, schema, *(word for word in ("minLength", "maxLength") if _is_small(schema.get(word))))
        elif kind == "integer":
            self.keep(pointer, schema, *(word for word in BOUNDS if _is_whole(schema.get(word))))
        if kind in PRIMITIVE and kind != "number":  # its exponents exceed JSON's range
            self.keep(pointer, schema, "type")


def _is_whole(bound: Json) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool)


def _is_small(bound: Json) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound <= MOST_REPETITIONS
