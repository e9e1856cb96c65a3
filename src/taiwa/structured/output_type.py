"""`OutputType[T]`: one type for the text of the prompt, the schema of the constraint and the value of the answer.

The text of an answer is parsed stage by stage:

1. exact: the whole text is JSON.
2. fenced: the text without its thinking block and code fence is JSON.
3. lenient: the best of the JSON values in the text, malformed ones read by the lenient parser.
4. guessed: a scalar written in words, or what the library json_repair makes of the text.

An invalid value is repaired if the type leaves no doubt. Valid JSON of the type is never altered.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import Any, Generic, Literal, NoReturn, NotRequired, TypeAlias, TypeVar, cast, overload

from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import JsonSchema
from taiwa.kernel.serialization import Json, exact_json, is_number, parse_json, read_fraction
from taiwa.structured import ir
from taiwa.structured.from_json_schema import type_ir_from_schema
from taiwa.structured.ir import AnyNode, ObjectNode, Property, TypeIR, literal, members
from taiwa.structured.lenient_parser import (
    CONSTANTS,
    NUMBER,
    WIDE_NUMBER,
    LenientResult,
    after_thinking,
    find_candidates,
    inside_fence,
    later_thinking,
    read_wide_number,
    try_value,
)
from taiwa.structured.lenient_scanner import (
    MAX_DEPTH,
    QUOTES,
    DepthError,
    Fix,
    Level,
    ParseHints,
    WorkBudget,
    WorkLimitError,
)
from taiwa.structured.rendering import ServerSchema, to_json_schema, to_typescript
from taiwa.structured.type_notation import is_field_list, parse_fields
from taiwa.structured.validators import (
    FieldsValidator,
    InvalidValueError,
    JsonSchemaValidator,
    PydanticValidator,
    ValidationIssue,
    branch,
    depth_of,
    diagnostics,
    find_mismatches,
    has_duplicate_keys,
    has_odd_numbers,
    is_deeper,
    node_at,
    not_json,
    pointer,
    value_at,
    with_bases_resolved,
)

T = TypeVar("T")

Stage: TypeAlias = Literal["exact", "fenced", "lenient", "guessed"]

WORK_PER_CHAR = 10
WRAP = "value"
"""The key of the object that wraps a type that is not an object itself."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Options of parsing: whether to guess, and the limit of the length."""

    guess: bool = True
    max_chars: int = 1 << 20


DEFAULT_OPTIONS = ParseOptions()


@dataclass(frozen=True, slots=True)
class ParseResult(Generic[T]):
    """A value parsed from a text, its fixes, and the stage that produced it.

    `complete` is False if the text ended before the value did. Such a text is refused, unless only the last closing brackets
    are missing and the type allows nothing more before them. `guessed` is True if a fix of level `guess` was needed; an
    incomplete value is always a guess.
    """

    value: T
    fixes: tuple[Fix, ...] = ()
    complete: bool = True
    guessed: bool = False
    stage: Stage = "exact"


RenderStyle = Literal["typescript", "jsonschema"]


class OutputType(Generic[T]):
    """The type of an answer: anything that pydantic's `TypeAdapter` accepts.

    A type that is not a JSON object (a number, a list, an enum) is `wrapped`: the wire form is an object with the single key
    `value`. Parsing accepts the bare value as well.

    >>> OutputType(list[int]).parse("[1, 2]").value
    [1, 2]
    """

    @overload
    def __init__(self, annotation: type[T], *, name: str = "") -> None: ...
    @overload
    def __init__(self: "OutputType[Any]", annotation: object, *, name: str = "") -> None: ...
    def __init__(self, annotation: object, *, name: str = "") -> None:
        is_validator = isinstance(annotation, FieldsValidator)
        validator = cast("PydanticValidator[T]", annotation) if is_validator else PydanticValidator[T](annotation)
        _check_json(validator.schema)
        self.validator = validator
        self.name = name or _name(annotation)
        self.bare_ir = type_ir_from_schema(_with_plain_keys(validator.schema), self.name)
        """The intermediate representation of the type itself, not wrapped."""
        self.wrapped = not _admits(self, ObjectNode, AnyNode)
        from_schema = isinstance(annotation, JsonSchemaValidator)
        is_relaxed = from_schema or to_json_schema(self.bare_ir).relaxed
        self._source = validator.schema if is_relaxed else None

    @classmethod
    def of(cls, wanted: object) -> "OutputType[Any]":
        """Return the output type of a type, of a JSON Schema as a dict or a `JsonSchema`, or of fields: `"name, age int"`.

        >>> OutputType.of("name, age int").parse('{"name": "Aiko", "age": 7}').value
        {'name': 'Aiko', 'age': 7}

        Raises:
            InputError: it is not one of these.
        """
        if isinstance(wanted, OutputType):
            return wanted
        if isinstance(wanted, JsonSchema):
            return cls.from_json_schema(wanted.schema, name=wanted.name)
        if isinstance(wanted, Mapping):
            return cls.from_json_schema(cast("Mapping[str, Json]", wanted))
        if isinstance(wanted, str) and is_field_list(wanted):
            return cls.fields("Answer", *parse_fields(wanted))
        return OutputType[Any](wanted)

    @classmethod
    def fields(
        cls, name: str, fields: Mapping[str, object], required: Set[str] = frozenset()
    ) -> "OutputType[dict[str, Json]]":
        """Return the type of an object with these keys and no other; its values are plain JSON.

        Raises:
            InputError: `required` names a key that is not a field.
        """
        missing = sorted(set(required) - set(fields))
        if missing:
            raise InputError(f"{name} requires {missing[0]!r}, which is not one of its fields")
        parts = {key: with_bases_resolved(part) for key, part in fields.items()}
        layout = {key: part if key in required else NotRequired[part] for key, part in parts.items()}
        annotation = cast("Any", TypedDict)(name if name.isidentifier() else "Fields", layout)
        annotation.__pydantic_config__ = {"extra": "forbid"}
        return cast("OutputType[dict[str, Json]]", OutputType(FieldsValidator(annotation), name=name))

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Json], *, name: str = "") -> "OutputType[Json]":
        """Return the type of a JSON Schema; its values are plain JSON.

        Raises:
            InputError: the mapping is not a JSON Schema.
        """
        if not isinstance(cast("object", schema), Mapping):
            raise InputError(f"not a JSON Schema: it must be an object, not {type(schema).__name__}")
        _check_json(schema)
        title = schema.get("title")
        return OutputType(JsonSchemaValidator(schema), name=name or (title if isinstance(title, str) else "Answer"))

    @classmethod
    def from_typescript(cls, text: str, name: str) -> "OutputType[Json]":
        """Return the type `name` that TypeScript declares; its values are plain JSON. Comments are shown to the model.

        Raises:
            ConfigError: the extra `typescript` is not installed.
            InputError: a `TypeScriptError` with line and column: the text is not TypeScript, does not declare the type, or uses
                what JSON has no types for.
        """
        from taiwa.structured.from_typescript import schema_from_typescript

        return cls.from_json_schema(schema_from_typescript(text, name), name=name)

    def __repr__(self) -> str:
        return f"OutputType({self.name})"

    @cached_property
    def type_ir(self) -> TypeIR:
        """The intermediate representation of the wire form."""
        if not self.wrapped:
            return self.bare_ir
        return TypeIR(ObjectNode((Property(WRAP, self.bare_ir.root, required=True),)), self.name, self.bare_ir.named)

    def schema(self) -> dict[str, Json]:
        """Return the JSON Schema of the wire form: the original schema of the type, or the shortest equivalent one."""
        if self._source is None:
            return to_json_schema(self.type_ir).schema
        bare = dict(self._source)
        if not self.wrapped:
            return bare
        shared = {key: bare.pop(key) for key in ("$defs", "definitions", "$schema") if key in bare}
        wrapping: dict[str, Json] = {
            "type": "object",
            "properties": {WRAP: _move_references(bare)},
            "required": [WRAP],
            "additionalProperties": False,
        }
        return wrapping | {key: part if key == "$schema" else _move_references(part) for key, part in shared.items()}

    @property
    def json_schema(self) -> JsonSchema:
        """The JSON Schema of the type itself, not wrapped, under its name: what `from_json_schema` makes the type from again."""
        bare = to_json_schema(self.bare_ir).schema if self._source is None else dict(self._source)
        return JsonSchema(bare, self.name)

    def strict_schema(self) -> ServerSchema:
        """Return the schema for OpenAI's strict mode, and what that mode cannot express."""
        return to_json_schema(self.type_ir, strict=True)

    def render(self, style: RenderStyle = "typescript") -> str:
        """Render the type as text for a prompt.

        Raises:
            InputError: it is nested too deep.
        """
        if style == "typescript":
            try:
                return to_typescript(self.type_ir)
            except RecursionError:
                raise InputError("schema: its references are nested too deep to be written in a prompt") from None
        return json.dumps(self.schema(), ensure_ascii=False, separators=(",", ":"))

    def validate(self, data: Json) -> T:
        """Validate JSON data, wrapped or bare, and return the value.

        Raises:
            OutputValidationError: the data does not have the type; the diagnostics name the paths.
        """
        bare = _unwrap(self, data)
        try:
            return _value(self, bare)
        except InvalidValueError as error:
            lines = _diagnose(self, bare, error)
            raise OutputValidationError(
                f"not of the type {self.name}: {'; '.join(lines[:3])}", diagnostics=lines
            ) from None

    def narrow(self, data: Json) -> Json:
        """Return a copy of bare JSON data without keys that the type excludes, to pass on a value of a wider type.

        >>> OutputType.fields("Point", {"x": int}).narrow({"x": 1, "y": 2})
        {'x': 1}
        """
        narrowed = deepcopy(data)
        for mismatch in find_mismatches(self.bare_ir, data):
            if mismatch.code == "unknown":
                del cast("dict[str, Json]", value_at(narrowed, mismatch.path[:-1]))[str(mismatch.path[-1])]
        return narrowed

    def repair(self, data: Json) -> Json:
        """Change bare JSON data that is not of the type to its probable meaning, as `parse` does.

        >>> OutputType.fields("Point", {"x": int, "y": int}, frozenset({"x"})).repair({"x": "1", "y": None})
        {'x': 1}
        """
        repair = _ValueRepair(self.bare_ir, 0)
        return repair.node(self.bare_ir.root, repair.unwrapped(data), 0)

    def parse(self, text: str, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[T]:
        """Parse the text of an answer; see `taiwa.structured.output_type` for what is repaired.

        Raises:
            OutputValidationError: the text holds no value of the type, or ends before the value does.
        """
        parser = _Parser(self, text, options, WorkBudget(WORK_PER_CHAR * len(text) + 2_000))
        if len(text) > options.max_chars:
            parser.fail(f"$: {len(text)} characters, at most {options.max_chars}")
        try:
            return parser.run()
        except RecursionError:  # the caller's own stack is nearly full
            parser.fail("$: nested too deep for the rest of the stack")

    def dump(self, value: T) -> Json:
        """Return a value as JSON data, not wrapped.

        >>> OutputType(list[int]).dump([1, 2])
        [1, 2]

        Raises:
            InputError: the value does not have the type.
        """
        return self.validator.dump(value)

    def dump_result(self, value: object) -> Json:
        """As `dump`; but what is not of the type as it is, such as a number of numpy, must be so only as JSON.

        >>> OutputType(set[int]).dump_result([1, 2])
        [1, 2]

        Raises:
            InputError: the value does not have the type.
        """
        try:
            return self.dump(cast("T", value))
        except InputError:
            from pydantic_core import PydanticSerializationError, to_jsonable_python

            with suppress(PydanticSerializationError, OutputValidationError, TypeError, ValueError):
                return self.dump(self.validate(to_jsonable_python(value, fallback=_without_arrays)))
            raise


def _without_arrays(value: object) -> object:
    """Return a scalar or array of numpy, or what resembles them, as Python's own numbers and lists."""
    if not hasattr(value, "dtype") or not hasattr(value, "tolist"):
        raise TypeError(type(value).__name__)
    return cast("Any", value).tolist()


def _check_json(schema: Mapping[str, Json]) -> None:
    """Check that a schema can be sent: models, servers and files take JSON only.

    Raises:
        InputError: it contains half a character, a number that is not finite, or what is not JSON.
    """
    for path, problem in not_json(dict(schema)):
        raise InputError(f"schema: {pointer(path)} {problem}")


def _with_plain_keys(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    if "propertyNames" not in str(schema):
        return schema
    from taiwa.json_schema import name_keys

    return name_keys(schema)


def _name(annotation: object) -> str:
    name = getattr(annotation, "__name__", "")
    return name if isinstance(annotation, type) and name.isidentifier() and name[:1].isupper() else "Answer"


def _move_references(schema: Json) -> Json:
    """Point references to the root of a schema to its place inside the wrapping object."""
    if isinstance(schema, list):
        return [_move_references(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _move_references(part) for key, part in schema.items()}
    target = moved.get("$ref")
    if isinstance(target, str) and target.startswith("#") and not target.startswith(("#/$defs/", "#/definitions/")):
        moved["$ref"] = f"#/properties/{WRAP}{target[1:]}"
    return moved


# --- stages -----------------------------------------------------------------------------------------------------------

LEVEL_COSTS = {"safe": 1, "likely": 10, "guess": 100}
MAX_CANDIDATES = 64
MAX_DUPLICATE_SEARCH = 64 * 1024
"""Maximum bytes of valid JSON to search for duplicate keys; the search costs as much as the validation."""
LOSSES = ("dropped-text", "extra-closer", "missing-value")
QUOTE_DOUBTS = ("inner-quote", "missing-quote", "dropped-text", "extra-closer")


def _unwrap(output_type: OutputType[T], data: Json) -> Json:
    """Unwrap data; bare data is returned unchanged."""
    if output_type.wrapped and isinstance(data, dict) and len(data) == 1 and WRAP in data:
        return data[WRAP]
    return data


def _value(output_type: OutputType[T], data: Json) -> T:
    """Return the value of bare JSON data.

    Raises:
        InvalidValueError: the data does not have the type.
    """
    if depth_of(data, MAX_DEPTH) > MAX_DEPTH:
        raise InvalidValueError((ValidationIssue((), f"nested deeper than {MAX_DEPTH}", "validator"),))
    try:
        raw = exact_json(data).encode()
    except ValueError:
        raise InvalidValueError(tuple(ValidationIssue(*problem, "validator") for problem in not_json(data))) from None
    return _from_json(output_type, raw, data)


def _from_json(output_type: OutputType[T], raw: bytes, data: Json = None) -> T:
    """Return the value of the JSON text of bare data, which may be given too.

    Raises:
        InvalidValueError: the text is not JSON, or the data does not have the type.
    """
    validator = output_type.validator
    value = validator.from_json(raw) if data is None else validator.from_data(data, raw)
    if not output_type.validator.checks_keys:
        mismatches = find_mismatches(output_type.bare_ir, json.loads(raw))
        unknown = [each for each in mismatches if each.code == "unknown" and not each.branch]
        if unknown:
            raise InvalidValueError(tuple(ValidationIssue(each.path, each.expected, each.code) for each in unknown))
    return value


def _diagnose(output_type: OutputType[T], data: Json, error: InvalidValueError) -> tuple[str, ...]:
    """Return the diagnostics of bare data that is not valid."""
    if depth_of(data, MAX_DEPTH) > MAX_DEPTH:
        return (f"$: nested deeper than {MAX_DEPTH}",)
    for path, text in not_json(data):
        return (f"{pointer(path)} {text}",)
    return diagnostics(output_type.bare_ir, data, error.issues) or ("$: does not have the type",)


def _admits(output_type: OutputType[T], *kinds: type[ir.Node]) -> bool:
    """Return whether a bare value can have one of these kinds."""
    return any(isinstance(each, kinds) for each in members(output_type.bare_ir.root, output_type.bare_ir))


WORD = re.compile(r"[^\W\d_]{2}")
QUOTE = re.compile(r"[\"'“‘「]")


@dataclass(frozen=True, slots=True)
class _Candidate(Generic[T]):
    """Data from the text, and its value or the error of the validator."""

    data: Json
    fixes: tuple[Fix, ...]
    stage: Stage
    end: int
    value: T | None = None
    error: InvalidValueError | None = None
    whole: bool = True
    """Whether the data is complete; only its last brackets may be missing."""
    ended: bool = True
    """Whether the value ended before the text did."""
    cut_at: str = ""

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        return (self.error is None, self.whole, -sum(LEVEL_COSTS[fix.level] for fix in self.fixes), self.end)

    @property
    def losses(self) -> int:
        return sum(fix.code in LOSSES for fix in self.fixes)


@dataclass(slots=True)
class _Parser(Generic[T]):
    target: OutputType[T]
    text: str
    options: ParseOptions
    work: WorkBudget
    in_string: bool = False
    before: tuple[Fix, ...] = ()
    """The fixes made before searching for a value: removal of a thinking block or a fence."""

    def run(self) -> ParseResult[T]:
        start, end = 0, len(self.text)
        best = self.strict(start, end, "exact")
        if best is None:
            start, end = after_thinking(self.text, start, end)
            if start:
                self.before = (Fix("thinking", 0, "safe"),)
            fenced = inside_fence(self.text, start, end)
            if fenced is not None:
                outside, self.before = self.before, (*self.before, Fix("fence", start, "safe"))
                best = self.strict(*fenced, "fenced")
                self.before = self.before if best is not None else outside
            elif start:
                best = self.strict(start, end, "fenced")
        return self.result(best or self.lenient(start, end), start, end)

    def fail(self, *lines: str) -> NoReturn:
        raise OutputValidationError(
            f"not of the type {self.target.name}: {'; '.join(lines[:3])}", text=self.text, diagnostics=lines
        )

    def strict(self, start: int, end: int, stage: Stage) -> "_Candidate[T] | None":
        """Parse a part of the text as JSON; None if it is malformed."""
        try:
            raw = (self.text if (start, end) == (0, len(self.text)) else self.text[start:end]).encode()
        except UnicodeEncodeError as error:
            code, position = ord(error.object[error.start]), start + error.start
            self.fail(f"$: half a character (U+{code:04X}) at character {position}")
        if not self.target.wrapped or not raw.lstrip().startswith(b"{"):
            try:
                value = _from_json(self.target, raw)
            except InvalidValueError as error:
                if error.malformed:
                    return None
            else:
                return None if self.is_odd(raw) else _Candidate(None, self.before, stage, end, value)
        if self.is_odd(raw):
            return None
        try:
            data: Json = json.loads(raw, parse_float=read_fraction)
        except (ValueError, RecursionError):
            return None
        if isinstance(data, str) and not self.in_string:
            inner = self.inside_string(data, start, stage)
            if inner is not None:
                return inner
        return self.candidate(data, self.before, stage, start, end)

    def is_odd(self, raw: bytes) -> bool:
        """Return whether valid JSON is passed to the lenient parser, because it repeats a key.

        Raises:
            OutputValidationError: the data contains what JSON cannot express, or is nested too deep.
        """
        if has_odd_numbers(raw) or is_deeper(raw, MAX_DEPTH):
            try:
                data: Json = json.loads(raw)
            except (ValueError, RecursionError):
                return True
            if depth_of(data, MAX_DEPTH) > MAX_DEPTH:
                self.fail(f"$: nested deeper than {MAX_DEPTH}")
            for path, text in not_json(data):
                self.fail(f"{pointer(path)} {text}")
        return len(raw) <= MAX_DUPLICATE_SEARCH and has_duplicate_keys(raw)

    def inside_string(self, text: str, start: int, stage: Stage) -> "_Candidate[T] | None":
        """Parse the JSON inside an answer that is a JSON string, once."""
        if _admits(self.target, ir.StringNode, ir.LiteralNode) or not text.strip():
            return None
        inner = _Parser(self.target, text, self.options, self.work, in_string=True)
        self.work.spend(len(text))
        try:
            result = inner.run()
        except OutputValidationError:
            return None
        moved = [replace(fix, position=start) for fix in result.fixes]
        fixes = (*self.before, Fix("json-in-string", start, "safe"), *moved)
        return _Candidate(None, fixes, stage, len(self.text), result.value, ended=result.complete)

    def candidate(
        self, data: Json, fixes: tuple[Fix, ...], stage: Stage, start: int, end: int, *, whole: bool = True
    ) -> "_Candidate[T]":
        """Validate data; if it is not valid, repair the value and validate it again."""
        bare = _unwrap(self.target, data)
        try:
            return _Candidate(bare, fixes, stage, end, _value(self.target, bare), whole=whole)
        except InvalidValueError as error:
            invalid = error
        repair = _ValueRepair(self.target.bare_ir, start)
        repaired = repair.node(repair.type_ir.root, repair.unwrapped(bare), 0)
        fixes = (*fixes, *repair.fixes)
        if repair.fixes:
            try:
                return _Candidate(repaired, fixes, stage, end, _value(self.target, repaired), whole=whole)
            except InvalidValueError as error:
                invalid = error
        return _Candidate(repaired, fixes, stage, end, error=invalid, whole=whole)

    def lenient(self, start: int, end: int) -> "_Candidate[T] | None":
        """Return the best of the JSON values in the text; None if there are none."""
        objects = (node for node in ir.nodes(self.target.bare_ir) if isinstance(node, ir.ObjectNode))
        names = frozenset(each.name for node in objects for each in node.properties)
        hints = ParseHints(names)
        try:
            found = find_candidates(self.text, start, end, self.work, hints)
            thoughts = later_thinking(self.text, start, end) if start else []
            results = [
                each
                for each in islice(found, MAX_CANDIDATES * 64)
                if not self.is_quoted(each) and not any(first <= each.start < last for first, last in thoughts)
            ]
            if len(results) > 2 * MAX_CANDIDATES:
                results = results[:MAX_CANDIDATES] + results[-MAX_CANDIDATES:]
            if not results:
                return None
            candidates = [self.from_lenient(result) for result in results]
            top = max(range(len(candidates)), key=lambda index: candidates[index].rank)
            best = self.with_quotes_as_text(candidates[top], results[top], end, hints)
        except DepthError as error:
            self.fail(f"$: nested deeper than {MAX_DEPTH} at character {error.position}")
        except WorkLimitError:
            self.fail("$: too tangled to read within the work allowed; ask for plain JSON")
        if best.error is not None:
            return self.as_list(results) or best
        others = [each for each in candidates if each.error is None and each.whole and each.data != best.data]
        return replace(best, fixes=(*best.fixes, Fix("other-answer", best.end, "guess"))) if others else best

    def is_quoted(self, result: LenientResult) -> bool:
        """Return whether an object with a bare word for a value is part of a sentence: an echo of the type, as in `the format { a: string; }`."""
        return any(fix.code == "bare-string" for fix in result.fixes) and in_sentence(
            self.text, result.start, result.end
        )

    def from_lenient(self, result: LenientResult) -> "_Candidate[T]":
        whole = is_complete(self.target, result)
        self.work.spend(50)
        fixes = (*self.before, *result.fixes)
        candidate = self.candidate(result.data, fixes, "lenient", result.start, result.end, whole=whole)
        return replace(candidate, ended=not result.open or result.fenced, cut_at="" if whole else _cut_at(result))

    def with_quotes_as_text(
        self, best: "_Candidate[T]", result: LenientResult, end: int, hints: ParseHints
    ) -> "_Candidate[T]":
        """Parse a value with doubtful quotes again, treating quotes as text; return the better candidate."""
        if not any(fix.code in QUOTE_DOUBTS for fix in best.fixes):
            return best
        as_text = replace(hints, quotes_are_text=True)
        again = try_value(self.text, result.start, end, self.work, as_text, bare_object=result.bare)
        if again is None:
            return best
        other = self.from_lenient(again)
        return other if (*other.rank[:2], -other.losses) > (*best.rank[:2], -best.losses) else best

    def as_list(self, results: list[LenientResult]) -> "_Candidate[T] | None":
        """Treat several values as the items of a list; None if that is invalid."""
        incomplete = any(result.open or result.cut or result.elided for result in results)
        if len(results) < 2 or incomplete or not _admits(self.target, ir.ArrayNode):
            return None
        start, data = results[0].start, [result.data for result in results]
        fixes = [Fix("missing-opener", start, "guess"), *(fix for result in results for fix in result.fixes)]
        candidate = self.candidate(data, (*self.before, *fixes), "lenient", start, results[-1].end)
        return candidate if candidate.error is None else None

    def result(self, best: "_Candidate[T] | None", start: int, end: int) -> ParseResult[T]:
        """Return the result of the best candidate, or raise the error that says why there is none."""
        if self.options.guess and not self.in_string and (best is None or (best.error is not None and best.whole)):
            best = self.guessed(best, start, end) or best
        if best is None:
            self.fail(f"$: {self.why_nothing(start, end)}")
        if not best.whole:
            self.fail(f"$: the text ends before the value does{best.cut_at}")
        if best.error is not None:
            self.fail(*_diagnose(self.target, best.data, best.error))
        guesses = [fix for fix in best.fixes if fix.level == "guess"]
        if guesses and not self.options.guess:
            self.fail(f"$: readable only by a guess ({guesses[0].code} at character {guesses[0].position})")
        value = cast("T", best.value)  # without an error there is a value, which may be None
        return ParseResult(value, best.fixes, best.ended, bool(guesses), best.stage)

    def why_nothing(self, start: int, end: int) -> str:
        if start == end and start:
            return "the text ends inside the thinking"
        if self.work.unreadable_at >= 0:
            near = literal(self.text[self.work.unreadable_at :][:30])
            return f"the JSON breaks off at character {self.work.unreadable_at}, near {near}"
        return f"no JSON {'object' if _admits(self.target, ir.ObjectNode) else 'value'} in the text"

    def guessed(self, best: "_Candidate[T] | None", start: int, end: int) -> "_Candidate[T] | None":
        """Parse the text as words, or with json_repair; None if neither gives a valid value."""
        if best is None:
            scalar = self.valid_guess(scalar_from_words(self.target, self.text, start, end), start, end)
            if scalar is not None:
                return scalar
        elif not any(fix.level == "guess" for fix in best.fixes) or any(not_json(best.data)):
            return None  # the data is as written, and it is invalid
        return self.valid_guess(from_json_repair(self.text, start, end), start, end)

    def valid_guess(self, guess: tuple[Json, Fix] | None, start: int, end: int) -> "_Candidate[T] | None":
        if guess is None:
            return None
        candidate = self.candidate(guess[0], (*self.before, guess[1]), "guessed", start, end)
        return candidate if candidate.error is None else None


def _cut_at(result: LenientResult) -> str:
    if result.elided:
        return ": it leaves something out with an ellipsis"
    path = tuple(place for _, place in result.open)
    return f", inside {pointer(path[:-1] if path[-1] == '' else path)}" if path else ""


# --- repair of values that do not have the type -----------------------------------------------------------------------

MAX_INNER_CHARS = 1 << 20
MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]00:00(?::00(?:\.0+)?)?(Z|[+]00:00)?)?")
"""A date, and the time at which pydantic takes it for a date-time, and a date-time for a date."""
YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})")
"""A date whose parts stand in the order of ISO 8601; in every other order a day may be a month."""
MAX_REPAIR_DEPTH = 256
KINDS: dict[type, type[ir.Node]] = {
    dict: ObjectNode, list: ir.ArrayNode, bool: ir.BoolNode, int: ir.NumberNode, float: ir.NumberNode, type(None): ir.NullNode,
}  # fmt: skip


@dataclass(slots=True)
class _ValueRepair:
    """Changes data to its probable meaning; without fixes, it stays unchanged."""

    type_ir: ir.TypeIR
    position: int
    fixes: list[Fix] = field(default_factory=list[Fix])

    def fix(self, code: str, level: Level) -> None:
        self.fixes.append(Fix(code, self.position, level))

    def unwrapped(self, data: Json) -> Json:
        """Remove what stands around an answer whose type lacks it: a list of one, a call with it as arguments, or a key: `value`, the
        name of the type, or, as a guess, any other beside texts and numbers only, around an object that has all keys that the
        type requires.
        """
        options = members(self.type_ir.root, self.type_ir)
        if isinstance(data, list):
            is_one = len(data) == 1 and isinstance(data[0], dict)
            if not is_one or not all(isinstance(option, ir.ObjectNode) for option in options):
                return data
            self.fix("unwrapped", "likely")
            return data[0]
        if not isinstance(data, dict) or not data:
            return data
        objects = [option for option in options if isinstance(option, ir.ObjectNode)]
        called = [key for key in ("arguments", "parameters") if key in data]
        if any(isinstance(option, ir.AnyNode) for option in options) or any(
            not isinstance(each.extra, ir.NeverNode | None) or any(each.get(key) for key in called) for each in objects
        ):
            return data
        if called and (isinstance(data.get("name"), str) or len(data) == 1):
            self.fix("unwrapped", "likely")
            return data[called[0]]
        if any(each.get(key) is not None for each in objects for key in data):
            return data
        key, inner = next(iter(data.items()))
        if len(data) == 1 and (key == WRAP or key.casefold() == self.type_ir.name.casefold()):
            self.fix("unwrapped", "safe" if key == WRAP else "likely")
            return inner
        found = [each for each in data.values() if isinstance(each, (dict, list))]
        if len(found) != 1 or not any(_has_required(option, found[0]) for option in options):
            return data
        self.fix("unwrapped", "guess")
        return found[0]

    def node(self, node: ir.Node, data: Json, depth: int) -> Json:
        if is_number(data):
            return self.numbered_label(node, data)
        if depth > MAX_REPAIR_DEPTH or not isinstance(data, (dict, list, str)):
            return data
        if isinstance(data, str):
            return self.parsed_string(node, data, depth)
        chosen = branch(self.type_ir, node, data)
        if isinstance(data, dict) and isinstance(chosen, ir.ObjectNode):
            return self.object(chosen, data, depth)
        if isinstance(data, list) and isinstance(chosen, ir.ArrayNode):
            prefix = len(chosen.prefix)
            return [
                self.node(chosen.prefix[index] if index < prefix else chosen.items, item, depth + 1)
                for index, item in enumerate(data)
            ]
        return data

    def object(self, node: ir.ObjectNode, data: dict[str, Json], depth: int) -> Json:
        repaired: dict[str, Json] = {}
        for key, inner in data.items():
            named = node.get(key)
            if named is None:
                repaired[key] = inner if node.extra is None else self.node(node.extra, inner, depth + 1)
            elif inner is None and not named.required and not ir.takes_null(named.node, self.type_ir):
                self.fix("null-for-omitted", "safe")
            else:
                repaired[key] = self.node(named.node, inner, depth + 1)
        return repaired

    def numbered_label(self, node: ir.Node, number: float) -> Json:
        """Read a number as the label that is written so, where no number is valid."""
        options, text = members(node, self.type_ir), exact_json(number, allow_nan=True)
        labels = [label for each in options if isinstance(each, ir.LiteralNode) for label in each.values]
        if (
            text not in labels
            or number in labels
            or any(isinstance(each, (ir.NumberNode, ir.AnyNode)) for each in options)
        ):
            return number
        self.fix("label", "likely")
        return text

    def parsed_string(self, node: ir.Node, text: str, depth: int) -> Json:
        """Read a string as JSON, as a constant of another language or as a label, where it is not valid as a string."""
        options = members(node, self.type_ir)
        formats = {each.format for each in options if isinstance(each, ir.StringNode)}
        if formats == {"date"} and (written := YEAR_FIRST.fullmatch(text)):
            self.fix("date", "safe")
            return "-".join(written[part].zfill(2) for part in (1, 3, 4))
        if formats in ({"date"}, {"date-time"}) and (midnight := MIDNIGHT.fullmatch(text)):
            self.fix("midnight", "safe")
            return midnight[1] if formats == {"date"} else f"{midnight[1]}T00:00:00{midnight[2] or ''}"
        if len(text) > MAX_INNER_CHARS or any(
            isinstance(each, (ir.StringNode, ir.AnyNode)) or (isinstance(each, ir.LiteralNode) and text in each.values)
            for each in options
        ):
            return text
        labels = {
            label
            for each in options
            for label in (each.values if isinstance(each, ir.LiteralNode) else ())
            if isinstance(label, str) and label.casefold().strip() == text.casefold().strip()
        }
        if len(labels) == 1:
            self.fix("label", "likely")
            return labels.pop()
        try:
            plain = text if text.lstrip()[:1] in ("{", "[") else unicodedata.normalize("NFKC", text).strip()
            inner = CONSTANTS[plain][0] if plain in CONSTANTS else parse_json(plain)
        except ValueError:
            return text
        if isinstance(inner, str) or not any(
            isinstance(each, KINDS[type(inner)]) or (isinstance(each, ir.LiteralNode) and inner in each.values)
            for each in options
        ):
            return text
        self.fix("json-in-string", "likely")
        return self.node(node, inner, depth + 1)


def _has_required(node: ir.Node, data: Json) -> bool:
    """Return whether data is an object with all keys that a node requires, which must be some: a list beside a refusal is no answer."""
    required = (
        {each.name for each in node.properties if each.required} if isinstance(node, ir.ObjectNode) else set[str]()
    )
    return isinstance(data, dict) and bool(required) and required <= data.keys()


def is_complete(target: OutputType[T], result: LenientResult) -> bool:
    """Return whether a lenient result is complete.

    Missing closing brackets may mean that the text is truncated, or that the model forgot them. A list could continue, and
    so could an object that lacks one of its named keys, but not an object with all of them.
    """
    if result.elided or result.cut:
        return False
    if not result.open or result.fenced:
        return True
    data = _unwrap(target, result.data)
    skip = 1 if data is not result.data else 0
    path: tuple[str | int, ...] = ()
    for container, place in result.open[skip:]:
        node = node_at(target.bare_ir, data, path)
        chosen = branch(target.bare_ir, node, container) if node is not None else None
        if not isinstance(chosen, ir.ObjectNode) or not isinstance(container, dict):
            return False
        if not chosen.properties or any(each.name not in container for each in chosen.properties):
            return False
        path = (*path, place)
    return True


# --- guesses ----------------------------------------------------------------------------------------------------------

MAX_REPAIRED_CHARS = 8 * 1024
AFTER_JSON = re.compile(r"[\"':,{\[]")
MAX_SCALAR_CHARS = 2_000
AROUND_SCALAR = " \t\r\n\"'`*_.!。！「」『』“”‘’()（）<>"
BOOLEANS: dict[str, bool] = {"true": True, "false": False, "yes": True, "no": False}


def scalar_from_words(target: OutputType[T], text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Read a text without JSON as a scalar of the type: a label, a number, or the text itself."""
    options = members(target.bare_ir.root, target.bare_ir)
    if end - start > MAX_SCALAR_CHARS or any(isinstance(each, (ir.ObjectNode, ir.AnyNode)) for each in options):
        return None
    words = text[start:end].strip()
    plain = words.strip(AROUND_SCALAR)
    if not plain:
        return None
    for node in options:
        if isinstance(node, ir.LiteralNode):
            label = _label(node, plain)
            if label is not None:
                return label[0], Fix("bare-label", start, label[1])
        if isinstance(node, ir.NumberNode) and (number := NUMBER.fullmatch(plain)):
            return json.loads(number[0], parse_float=read_fraction), Fix("bare-value", start, "likely")
        if isinstance(node, ir.NumberNode) and WIDE_NUMBER.fullmatch(plain):
            return read_wide_number(plain), Fix("bare-value", start, "likely")
        if isinstance(node, ir.BoolNode) and plain.casefold() in BOOLEANS:
            return BOOLEANS[plain.casefold()], Fix("bare-value", start, "likely")
        if isinstance(node, ir.NullNode) and plain.casefold() in ("null", "none"):
            return None, Fix("bare-value", start, "likely")
    if any(isinstance(each, ir.StringNode) for each in options) and words[0] not in "{[`":
        is_cut = words[0] == '"' and words.count('"') == 1
        quoted = _quoted(words, start) if words[0] in QUOTES and words[-1] in QUOTES else None
        return None if is_cut else quoted or (words, Fix("bare-text", start, "guess"))
    return None


def _quoted(words: str, start: int) -> tuple[Json, Fix] | None:
    """Read a text in quotes that is not valid JSON; None if it is not one text."""
    read = try_value(f"[{words}]", 0, len(words) + 2, WorkBudget(WORK_PER_CHAR * len(words) + 2_000), ParseHints())
    data = None if read is None or read.open or read.cut else read.data
    if read is None or not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], str):
        return None
    is_guess = any(fix.level == "guess" or fix.code == "inner-quote" for fix in read.fixes)
    return data[0], Fix("quotes", start, "guess" if is_guess else "likely")


def _label(node: ir.LiteralNode, plain: str) -> tuple[Json, Level] | None:
    """Return the label that equals the text, or the only one that it contains as a word."""
    labels = [value for value in node.values if isinstance(value, str) and value]
    for value in node.values:
        if plain == value or (not isinstance(value, str) and plain == json.dumps(value)):
            return value, "likely"
    same = [label for label in labels if label.casefold() == plain.casefold()]
    if len(same) == 1:
        return same[0], "likely"
    contained = [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain, re.IGNORECASE)]
    return (contained[0], "guess") if len(contained) == 1 else None


def in_sentence(text: str, start: int, end: int) -> bool:
    """Return whether there are words before or after a part of a text, on its lines."""
    line_end = text.find("\n", end)
    line = text.rfind("\n", 0, start) + 1, line_end if line_end >= 0 else len(text)
    return WORD.search(text, line[0], start) is not None or WORD.search(text, end, line[1]) is not None


def from_json_repair(text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Parse the widest span of brackets with json_repair (extra `repair`); None without it or without a result.

    Only short texts, because its time grows with the square of the length, and no texts that seem truncated, because it
    closes open brackets.
    """
    opened = min((at for at in (text.find("{", start, end), text.find("[", start, end)) if at >= 0), default=-1)
    closed = max(text.rfind("}", start, end), text.rfind("]", start, end))
    if opened < 0 or closed < opened or closed - opened > MAX_REPAIRED_CHARS:
        return None
    span = text[opened : closed + 1]
    cut = span.count("{") + span.count("[") > span.count("}") + span.count("]")
    is_echo = not QUOTE.search(span) and in_sentence(text, opened, closed + 1)  # of a type, such as { a: string; }
    if cut or is_echo or AFTER_JSON.search(text, closed + 1, end):
        return None
    try:
        library: Any = import_module("json_repair")
    except ImportError:
        return None
    try:
        data: Json = library.loads(span)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return (data, Fix("json-repair", opened, "guess")) if isinstance(data, (dict, list)) else None
