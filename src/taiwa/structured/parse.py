"""Parse the text of an answer, stage by stage: exact, fenced, lenient, guessed.

1. exact: the whole text is JSON.
2. fenced: the text without its thinking block and code fence is JSON.
3. lenient: the best of the JSON values in the text, malformed ones read by the lenient parser.
4. guessed: a scalar written in words, or what the library json_repair makes of the text.

A value that does not have the type is repaired where the type leaves no doubt. Valid JSON of the type is never altered.
"""

import json
import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import islice
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, cast

from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.records import Json
from taiwa.structured import ir
from taiwa.structured.diagnostics import branch, diagnostics, find_mismatches, node_at, pointer
from taiwa.structured.find_json import after_thinking, find_candidates, inside_fence, try_value
from taiwa.structured.ir import literal, members
from taiwa.structured.json_repair.parser import LenientResult
from taiwa.structured.json_repair.scanner import NUMBER, BudgetError, DepthError, Fix, Level, WorkBudget
from taiwa.structured.json_repair.strings import ParseHints
from taiwa.structured.validators import (
    InvalidValueError,
    ValidationIssue,
    Validator,
    depth_of,
    has_duplicate_keys,
    has_odd_numbers,
    is_deeper,
    not_json,
)

T = TypeVar("T")

Stage: TypeAlias = Literal["exact", "fenced", "lenient", "guessed"]

WRAP = "value"
"""The key of the object that wraps a type that is not an object itself."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What parsing may do: guess, return the value of a text that is cut, and the limits of length, depth and work."""

    guess: bool = True
    partial: bool = False
    max_chars: int = 1 << 20
    max_depth: int = 128
    work_per_char: int = 10


DEFAULT_OPTIONS = ParseOptions()


@dataclass(frozen=True, slots=True)
class ParseResult(Generic[T]):
    """A value parsed from a text, the fixes that it took, and the stage that gave it.

    `complete` is False if the text ended before the value did. Such a text is refused, with two exceptions: `partial` was
    set, or only the last closing brackets are missing and the type admits nothing more before them. `guessed` is True if a fix
    of level `guess` was needed; an incomplete value is always a guess.
    """

    value: T
    fixes: tuple[Fix, ...] = ()
    complete: bool = True
    guessed: bool = False
    stage: Stage = "exact"


@dataclass(frozen=True, slots=True)
class ParseTarget(Generic[T]):
    """The type to parse: validator and IR of the bare type; if `wrapped`, the wire form is `{"value": …}`."""

    validator: Validator[T]
    type_ir: ir.TypeIR
    name: str
    wrapped: bool
    max_depth: int = 128

    def unwrap(self, data: Json) -> Json:
        """Take data out of the wrapping object; bare data is returned unchanged."""
        if self.wrapped and isinstance(data, dict) and len(data) == 1 and WRAP in data:
            return data[WRAP]
        return data

    def validate(self, data: Json) -> T:
        """Return the value of bare JSON data.

        Raises:
            InvalidValueError: the data does not have the type.
        """
        if depth_of(data, self.max_depth) > self.max_depth:
            raise InvalidValueError((ValidationIssue((), f"nested deeper than {self.max_depth}", "validator"),))
        try:
            raw = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            issues = tuple(ValidationIssue(path, text, "validator") for path, text in not_json(data))
            raise InvalidValueError(issues) from None
        return self.from_json(raw)

    def from_json(self, raw: bytes) -> T:
        """Return the value of the JSON text of bare data.

        Raises:
            InvalidValueError: the text is not JSON, or the data does not have the type.
        """
        value = self.validator.from_json(raw)
        if not self.validator.checks_keys:
            mismatches = find_mismatches(self.type_ir, json.loads(raw))
            unknown = [each for each in mismatches if each.code == "unknown" and not each.branch]
            if unknown:
                raise InvalidValueError(tuple(ValidationIssue(each.path, each.expected, each.code) for each in unknown))
        return value

    def diagnose(self, data: Json, error: InvalidValueError) -> tuple[str, ...]:
        """Return the diagnostics of bare data that is not valid."""
        if depth_of(data, self.max_depth) > self.max_depth:
            return (f"$: nested deeper than {self.max_depth}",)
        for path, text in not_json(data):
            return (f"{pointer(path)} {text}",)
        return diagnostics(self.type_ir, data, error.issues) or ("$: does not have the type",)

    def admits(self, *kinds: type[ir.Node]) -> bool:
        """Return whether a value of the type can be of one of these kinds."""
        return any(isinstance(each, kinds) for each in members(self.type_ir.root, self.type_ir))


# --- stages -----------------------------------------------------------------------------------------------------------

LEVEL_COSTS = {"safe": 1, "likely": 10, "guess": 100}
MAX_CANDIDATES = 64
MAX_DUPLICATE_SEARCH = 64 * 1024
"""Bytes of valid JSON in which duplicate keys are looked for; the search costs as much as the validation."""
LOSSES = ("dropped-text", "extra-closer", "missing-value")
QUOTE_DOUBTS = ("inner-quote", "missing-quote", "dropped-text", "extra-closer")


def parse_answer(target: ParseTarget[T], text: str, options: ParseOptions) -> ParseResult[T]:
    """Parse a text.

    Raises:
        OutputValidationError: every stage failed.
    """
    parser = _Parser(target, text, options, WorkBudget(options.work_per_char * len(text) + 2_000))
    if len(text) > options.max_chars:
        parser.fail(f"$: {len(text)} characters, at most {options.max_chars}")
    try:
        return parser.run()
    except RecursionError:  # the caller's own stack is nearly full
        parser.fail("$: nested too deep for the rest of the stack")


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
    """Whether the data is all that was meant to be written; only its last brackets may be missing."""
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
    target: ParseTarget[T]
    text: str
    options: ParseOptions
    work: WorkBudget
    in_string: bool = False
    before: tuple[Fix, ...] = ()
    """The fixes made before a value was looked for: a thinking block or a fence was removed."""

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
        """Take a part of the text as JSON; None if it is malformed."""
        try:
            raw = (self.text if (start, end) == (0, len(self.text)) else self.text[start:end]).encode()
        except UnicodeEncodeError as error:
            code, position = ord(error.object[error.start]), start + error.start
            self.fail(f"$: half a character (U+{code:04X}) at character {position}")
        if not self.target.wrapped or not raw.lstrip().startswith(b"{"):
            try:
                value = self.target.from_json(raw)
            except InvalidValueError as error:
                if error.malformed:
                    return None
            else:
                return None if self.is_odd(raw) else _Candidate(None, self.before, stage, end, value)
        if self.is_odd(raw):
            return None
        try:
            data: Json = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        if isinstance(data, str) and not self.in_string:
            inner = self.inside_string(data, start, stage)
            if inner is not None:
                return inner
        return self.candidate(data, self.before, stage, start, end)

    def is_odd(self, raw: bytes) -> bool:
        """Return whether valid JSON is left to the lenient parser, because it repeats a key.

        Raises:
            OutputValidationError: the data contains what JSON cannot express, or is nested too deep.
        """
        if has_odd_numbers(raw) or is_deeper(raw, self.options.max_depth):
            try:
                data: Json = json.loads(raw)
            except (ValueError, RecursionError):
                return True
            if depth_of(data, self.options.max_depth) > self.options.max_depth:
                self.fail(f"$: nested deeper than {self.options.max_depth}")
            for path, text in not_json(data):
                self.fail(f"{pointer(path)} {text}")
        return len(raw) <= MAX_DUPLICATE_SEARCH and has_duplicate_keys(raw)

    def inside_string(self, text: str, start: int, stage: Stage) -> "_Candidate[T] | None":
        """Parse the JSON inside an answer that is a JSON string, once."""
        if self.target.admits(ir.StringNode, ir.LiteralNode) or not text.strip():
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
        bare = self.target.unwrap(data)
        try:
            return _Candidate(bare, fixes, stage, end, self.target.validate(bare), whole=whole)
        except InvalidValueError as error:
            invalid = error
        repaired, repairs = repair_value(self.target.type_ir, bare, start)
        fixes = (*fixes, *repairs)
        if repairs:
            try:
                return _Candidate(repaired, fixes, stage, end, self.target.validate(repaired), whole=whole)
            except InvalidValueError as error:
                invalid = error
        return _Candidate(repaired, fixes, stage, end, error=invalid, whole=whole)

    def lenient(self, start: int, end: int) -> "_Candidate[T] | None":
        """Return the best of the JSON values in the text; None if there are none."""
        objects = (node for node in ir.nodes(self.target.type_ir) if isinstance(node, ir.ObjectNode))
        names = frozenset(each.name for node in objects for each in node.properties)
        hints = ParseHints(names, depth=self.options.max_depth)
        try:
            results = list(islice(find_candidates(self.text, start, end, self.work, hints), MAX_CANDIDATES * 64))
            if len(results) > 2 * MAX_CANDIDATES:
                results = results[:MAX_CANDIDATES] + results[-MAX_CANDIDATES:]
            if not results:
                return None
            candidates = [self.from_lenient(result) for result in results]
            top = max(range(len(candidates)), key=lambda index: candidates[index].rank)
            best = self.with_quotes_as_text(candidates[top], results[top], end, hints)
        except DepthError as error:
            self.fail(f"$: nested deeper than {self.options.max_depth} at character {error.position}")
        except BudgetError:
            self.fail("$: too tangled to read within the work allowed; ask for plain JSON")
        if best.error is not None:
            return self.as_list(results) or best
        others = [each for each in candidates if each.error is None and each.whole and each.data != best.data]
        return replace(best, fixes=(*best.fixes, Fix("other-answer", best.end, "guess"))) if others else best

    def from_lenient(self, result: LenientResult) -> "_Candidate[T]":
        whole = is_complete(self.target, result)
        self.work.spend(50)
        fixes = (*self.before, *result.fixes)
        candidate = self.candidate(result.data, fixes, "lenient", result.start, result.end, whole=whole)
        return replace(candidate, ended=not result.open or result.fenced, cut_at="" if whole else _cut_at(result))

    def with_quotes_as_text(
        self, best: "_Candidate[T]", result: LenientResult, end: int, hints: ParseHints
    ) -> "_Candidate[T]":
        """Parse a value with doubtful quotes again, taking quotes as text; return the better candidate."""
        if not any(fix.code in QUOTE_DOUBTS for fix in best.fixes):
            return best
        as_text = replace(hints, quotes_are_text=True)
        again = try_value(self.text, result.start, end, self.work, as_text, bare_object=result.bare)
        if again is None:
            return best
        other = self.from_lenient(again)
        return other if (*other.rank[:2], -other.losses) > (*best.rank[:2], -best.losses) else best

    def as_list(self, results: list[LenientResult]) -> "_Candidate[T] | None":
        """Take several values as the items of a list; None if that is not valid."""
        incomplete = any(result.open or result.cut or result.elided for result in results)
        if len(results) < 2 or incomplete or not self.target.admits(ir.ArrayNode):
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
        if not best.whole and not self.options.partial:
            self.fail(f"$: the text ends before the value does{best.cut_at}")
        if best.error is not None:
            self.fail(*self.target.diagnose(best.data, best.error))
        guesses = [fix for fix in best.fixes if fix.level == "guess"]
        if guesses and not self.options.guess:
            self.fail(f"$: readable only by a guess ({guesses[0].code} at character {guesses[0].position})")
        value = cast("T", best.value)  # without an error there is a value, which may be None
        return ParseResult(value, best.fixes, best.whole and best.ended, bool(guesses), best.stage)

    def why_nothing(self, start: int, end: int) -> str:
        if start == end and start:
            return "the text ends inside the thinking"
        if self.work.unreadable_at >= 0:
            near = literal(self.text[self.work.unreadable_at :][:30])
            return f"the JSON breaks off at character {self.work.unreadable_at}, near {near}"
        return f"no JSON {'object' if self.target.admits(ir.ObjectNode) else 'value'} in the text"

    def guessed(self, best: "_Candidate[T] | None", start: int, end: int) -> "_Candidate[T] | None":
        """Read the text as words, or with json_repair; None if neither gives a valid value."""
        if best is None:
            scalar = self.valid_guess(scalar_from_words(self.target, self.text, start, end), start, end)
            if scalar is not None:
                return scalar
        elif not any(fix.level == "guess" for fix in best.fixes) or any(not_json(best.data)):
            return None  # the data is what was written, and it is not valid
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
MAX_REPAIR_DEPTH = 256


def repair_value(type_ir: ir.TypeIR, data: Json, position: int) -> tuple[Json, tuple[Fix, ...]]:
    """Return data as it was probably meant, and the fixes; without fixes, the data itself."""
    repair = _ValueRepair(type_ir, position)
    repaired = repair.node(type_ir.root, repair.unwrapped(data), 0)
    return repaired, tuple(repair.fixes)


@dataclass(slots=True)
class _ValueRepair:
    type_ir: ir.TypeIR
    position: int
    fixes: list[Fix] = field(default_factory=list[Fix])

    def fix(self, code: str, level: Level) -> None:
        self.fixes.append(Fix(code, self.position, level))

    def unwrapped(self, data: Json) -> Json:
        """Remove `{"value": …}` or `{"Order": …}` around an answer whose type has no such key."""
        if not isinstance(data, dict) or len(data) != 1:
            return data
        key, inner = next(iter(data.items()))
        if key != WRAP and key.casefold() != self.type_ir.name.casefold():
            return data
        for option in members(self.type_ir.root, self.type_ir):
            open_object = isinstance(option, ir.ObjectNode) and not isinstance(option.extra, ir.NeverNode | None)
            named = isinstance(option, ir.ObjectNode) and option.get(key) is not None
            if isinstance(option, ir.AnyNode) or open_object or named:
                return data
        self.fix("unwrapped", "safe" if key == WRAP else "likely")
        return inner

    def node(self, node: ir.Node, data: Json, depth: int) -> Json:
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

    def parsed_string(self, node: ir.Node, text: str, depth: int) -> Json:
        """Parse a string as JSON where only an object or a list is valid."""
        if text.lstrip()[:1] not in ("{", "[") or len(text) > MAX_INNER_CHARS:
            return text
        options = members(node, self.type_ir)
        if any(isinstance(each, (ir.StringNode, ir.LiteralNode, ir.AnyNode)) for each in options):
            return text
        if not any(isinstance(each, (ir.ObjectNode, ir.ArrayNode)) for each in options):
            return text
        try:
            inner: Json = json.loads(text)
        except (ValueError, RecursionError):
            return text
        self.fix("json-in-string", "likely")
        return self.node(node, inner, depth + 1) if not isinstance(inner, str) else text


def is_complete(target: ParseTarget[T], result: LenientResult) -> bool:
    """Return whether a lenient result contains all that was meant to be written.

    Missing closing brackets are the last thing a text loses when it is cut, and the first thing a model forgets. A list could
    go on, and so could an object that lacks one of its named keys; an object with all of them could not.
    """
    if result.elided or result.cut:
        return False
    if not result.open or result.fenced:
        return True
    data = target.unwrap(result.data)
    skip = 1 if data is not result.data else 0
    path: tuple[str | int, ...] = ()
    for container, place in result.open[skip:]:
        node = node_at(target.type_ir, data, path)
        chosen = branch(target.type_ir, node, container) if node is not None else None
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


def scalar_from_words(target: ParseTarget[T], text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Read a text without JSON as a scalar of the type: a label, a number, or the text itself."""
    options = members(target.type_ir.root, target.type_ir)
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
            return json.loads(number[0]), Fix("bare-value", start, "likely")
        if isinstance(node, ir.BoolNode) and plain.casefold() in BOOLEANS:
            return BOOLEANS[plain.casefold()], Fix("bare-value", start, "likely")
        if isinstance(node, ir.NullNode) and plain.casefold() in ("null", "none"):
            return None, Fix("bare-value", start, "likely")
    if any(isinstance(each, ir.StringNode) for each in options) and words[0] not in "{[\"'`":
        return words, Fix("bare-text", start, "guess")
    return None


def _label(node: ir.LiteralNode, plain: str) -> tuple[Json, Level] | None:
    """Return the label that the text is, or the only one that it contains as a word."""
    labels = [value for value in node.values if isinstance(value, str) and value]
    for value in node.values:
        if plain == value or (not isinstance(value, str) and plain == json.dumps(value)):
            return value, "likely"
    same = [label for label in labels if label.casefold() == plain.casefold()]
    if len(same) == 1:
        return same[0], "likely"
    contained = [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain, re.IGNORECASE)]
    return (contained[0], "guess") if len(contained) == 1 else None


def from_json_repair(text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Parse the widest span of brackets with json_repair (extra `repair`); None without it or without a result.

    Only short texts, because its time grows with the square of the length, and none that seem cut, because it closes what is open.
    """
    opened = min((at for at in (text.find("{", start, end), text.find("[", start, end)) if at >= 0), default=-1)
    closed = max(text.rfind("}", start, end), text.rfind("]", start, end))
    if opened < 0 or closed < opened or closed - opened > MAX_REPAIRED_CHARS:
        return None
    span = text[opened : closed + 1]
    cut = span.count("{") + span.count("[") > span.count("}") + span.count("]")
    if cut or AFTER_JSON.search(text, closed + 1, end):
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
