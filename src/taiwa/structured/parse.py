"""Answer text → value, stage by stage (exact, fenced, embedded, lenient, guessed); type-directed repairs; valid JSON is never altered."""

import json
import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import islice
from typing import Any, Generic, NoReturn, TypeVar, cast

from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.records import Json
from taiwa.structured.diagnostics import branch, diagnostics, node_at, pointer
from taiwa.structured.find_json import after_thinking, find_candidates, inside_fence, parse_again
from taiwa.structured.ir import (
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    TypeIR,
    literal,
    members,
)
from taiwa.structured.json_repair.parser import LenientResult
from taiwa.structured.json_repair.scanner import NUMBER, BudgetError, DepthError, Fix, Level, WorkBudget
from taiwa.structured.json_repair.strings import ParseHints
from taiwa.structured.validators import (
    InvalidValueError,
    ValidationIssue,
    Validator,
    depth_of,
    flaws,
    has_duplicate_keys,
    has_odd_numbers,
    is_deeper,
)

__all__ = ["STANDARD", "WRAP", "ParseOptions", "ParseResult", "Target", "parse_answer"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParseResult(Generic[T]):
    """A value read from a text.

    `complete` is False when the text ended before the value did. Such a text is refused, with two exceptions: a partial value was
    asked for, or only the last closing brackets are missing and the type leaves nothing that could still have come. `guessed` is
    True when a fix of level `guess` was needed; a value that is not complete is always a guess.
    """

    value: T
    fixes: tuple[Fix, ...] = ()
    complete: bool = True
    guessed: bool = False


WRAP = "value"


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """What is wanted. `form` is the form of the bare type, `wrapped` tells whether it travels as `{"value": …}`."""

    judge: Validator[T]
    form: TypeIR
    name: str
    wrapped: bool
    depth: int = 128

    def bare(self, data: Json) -> Json:
        """Take wire data out of its wrapping; data that is bare already stays as it is."""
        if self.wrapped and isinstance(data, dict) and len(data) == 1 and WRAP in data:
            return data[WRAP]
        return data

    def accept(self, data: Json) -> T:
        """Give the value that bare JSON data stands for.

        Raises:
            MisfitError: the data does not have the type.
        """
        if depth_of(data, self.depth) > self.depth:
            raise InvalidValueError((ValidationIssue((), f"nested deeper than {self.depth}", "validator"),))
        try:
            raw = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            raise InvalidValueError(
                tuple(ValidationIssue(path, text, "validator") for path, text in flaws(data))
            ) from None
        return self.judge.from_json(raw)

    def diagnose(self, data: Json, invalid_value: InvalidValueError) -> tuple[str, ...]:
        """Say what is wrong with bare data."""
        if depth_of(data, self.depth) > self.depth:
            return (f"$: nested deeper than {self.depth}",)
        odd = tuple(f"{pointer(path)} {text}" for path, text in flaws(data))
        return odd[:1] or diagnostics(self.form, data, invalid_value.complaints) or ("$: does not have the type",)

    def admits(self, kind: type[ObjectNode] | type[ArrayNode] | type[StringNode] | type[LiteralNode]) -> bool:
        """Tell whether a value of the type can be of a kind."""
        return any(isinstance(each, kind) for each in members(self.form.root, self.form))


LONGEST_INNER = 1 << 20


def repair_value(form: TypeIR, data: Json, position: int) -> tuple[Json, tuple[Fix, ...]]:
    """Give data as its writer meant it, with what was mended; without mends the data itself."""
    mend = _Mend(form, position)
    data = mend.unwrapped(data)
    made = mend.node(form.root, data, 0)
    return made, tuple(mend.fixes)


@dataclass(slots=True)
class _Mend:
    form: TypeIR
    position: int
    fixes: list[Fix] = field(default_factory=list[Fix])

    def fix(self, code: str, level: str) -> None:
        self.fixes.append(Fix(code, self.position, "safe" if level == "safe" else "likely"))

    def unwrapped(self, data: Json) -> Json:
        """Take off `{"value": …}` or `{"Order": …}` around an answer that has no such key."""
        if not isinstance(data, dict) or len(data) != 1:
            return data
        key, inner = next(iter(data.items()))
        if key != WRAP and key.casefold() != self.form.name.casefold():
            return data
        for option in members(self.form.root, self.form):
            if isinstance(option, AnyNode) or (isinstance(option, ObjectNode) and (option.get(key) or option.extra)):
                return data
        self.fix("unwrapped", "safe" if key == WRAP else "likely")
        return inner

    def node(self, node: Node, data: Json, depth: int) -> Json:
        if depth > 2 * 128 or not isinstance(data, (dict, list, str)):
            return data
        chosen = branch(self.form, node, data)
        if isinstance(data, str):
            return self.opened(node, data, depth)
        if isinstance(data, dict) and isinstance(chosen, ObjectNode):
            return self.object(chosen, data, depth)
        if isinstance(data, list) and isinstance(chosen, ArrayNode):
            prefix = len(chosen.prefix)
            return [
                self.node(chosen.prefix[index] if index < prefix else chosen.items, item, depth + 1)
                for index, item in enumerate(data)
            ]
        return data

    def object(self, node: ObjectNode, data: dict[str, Json], depth: int) -> Json:
        made: dict[str, Json] = {}
        for key, inner in data.items():
            found = node.get(key)
            if found is None:
                made[key] = inner if node.extra is None else self.node(node.extra, inner, depth + 1)
            elif inner is None and not found.required and not self.takes(found.node, NullNode):
                self.fix("null-for-omitted", "safe")
            else:
                made[key] = self.node(found.node, inner, depth + 1)
        return made

    def takes(self, node: Node, *kinds: type) -> bool:
        options = members(node, self.form)
        if NullNode in kinds and any(isinstance(each, LiteralNode) and None in each.values for each in options):
            return True
        return any(isinstance(each, (*kinds, AnyNode)) for each in options)

    def opened(self, node: Node, text: str, depth: int) -> Json:
        """Read a string as JSON where only an object or a list fits."""
        if text.lstrip()[:1] not in ("{", "[") or len(text) > LONGEST_INNER:
            return text
        if self.takes(node, StringNode, LiteralNode) or not self.takes(node, ObjectNode, ArrayNode):
            return text
        try:
            inner: Json = json.loads(text)
        except (ValueError, RecursionError):
            return text
        self.fix("json-in-string", "likely")
        return self.node(node, inner, depth + 1) if not isinstance(inner, str) else text


def is_complete(target: Target[T], draft: LenientResult) -> bool:
    """Tell whether a draft holds all that its writer meant to write.

    Missing closers are the last thing a text loses when it is cut, and the first thing a model forgets. A list could go on, and
    so could an object that lacks one of the keys that its type names; an object with all of them could not.
    """
    if draft.elided or draft.cut:
        return False
    if not draft.open or draft.fenced:
        return True
    data = target.bare(draft.data)
    skip = 1 if data is not draft.data else 0
    path: tuple[str | int, ...] = ()
    for index, (container, place) in enumerate(draft.open):
        if index >= skip:
            node = node_at(target.form, data, path)
            chosen = branch(target.form, node, container) if node is not None else None
            if not isinstance(chosen, ObjectNode) or not isinstance(container, dict):
                return False
            if not chosen.properties or any(each.name not in container for each in chosen.properties):
                return False
            path = (*path, place)
    return True


MOST_REPAIRED = 8 * 1024

LEFT_OVER = re.compile(r"[\"':,{\[]")

MOST_WORDS = 2_000

WRAPPING = " \t\r\n\"'`*_.!。！「」『』“”‘’()（）<>"

BOOLEANS: dict[str, bool] = {"true": True, "false": False, "yes": True, "no": False}


def from_words(target: Target[T], text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Read a text without JSON as the scalar that is wanted: a label, a number, or the text itself."""
    options = members(target.form.root, target.form)
    if end - start > MOST_WORDS or any(isinstance(each, (ObjectNode, AnyNode)) for each in options):
        return None
    words = text[start:end].strip()
    plain = words.strip(WRAPPING)
    if not plain:
        return None
    for node in options:
        if isinstance(node, LiteralNode):
            found = _label(node, plain)
            if found is not None:
                return found[0], Fix("bare-label", start, found[1])
        if isinstance(node, NumberNode) and (number := NUMBER.fullmatch(plain)):
            return json.loads(number[0]), Fix("bare-value", start, "likely")
        if isinstance(node, BoolNode) and plain.casefold() in BOOLEANS:
            return BOOLEANS[plain.casefold()], Fix("bare-value", start, "likely")
        if isinstance(node, NullNode) and plain.casefold() in ("null", "none"):
            return None, Fix("bare-value", start, "likely")
    if any(isinstance(each, StringNode) for each in options) and words[0] not in "{[\"'`":
        return words, Fix("bare-text", start, "guess")
    return None


def _label(node: LiteralNode, plain: str) -> tuple[Json, Level] | None:
    """Find the one label that the text is, or the only one that it holds as a word of its own."""
    labels = [value for value in node.values if isinstance(value, str) and value]
    for value in node.values:
        if plain == value or (not isinstance(value, str) and plain == json.dumps(value)):
            return value, "likely"
    same = [label for label in labels if label.casefold() == plain.casefold()]
    if len(same) == 1:
        return same[0], "likely"
    held = [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain, re.IGNORECASE)]
    return (held[0], "guess") if len(held) == 1 else None


def from_json_repair(text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Ask json_repair (the extra `repair`) about the widest span of brackets; None without it, or where it finds nothing.

    Short texts only, for its time grows with the square of the length; and none that looks cut, for it closes what is open.
    """
    opened = min((at for at in (text.find("{", start, end), text.find("[", start, end)) if at >= 0), default=-1)
    closed = max(text.rfind("}", start, end), text.rfind("]", start, end))
    if opened < 0 or closed < opened or closed - opened > MOST_REPAIRED:
        return None
    span = text[opened : closed + 1]
    if span.count("{") + span.count("[") > span.count("}") + span.count("]") or LEFT_OVER.search(text, closed + 1, end):
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


COSTS = {"safe": 1, "likely": 10, "guess": 100}

MOST_CANDIDATES = 64

CLOSELY_READ = 64 * 1024
"""Bytes of valid JSON up to which a key that is there twice is looked for: that costs as much as the validation itself."""

LOSSES = ("dropped-text", "extra-closer", "missing-value")

RISKY = ("inner-quote", "missing-quote", "dropped-text", "extra-closer")


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What a reading may do: accept guesses, give a value of a text that is cut, how long and deep, how much work."""

    guess: bool = True
    partial: bool = False
    most_chars: int = 1 << 20
    most_depth: int = 128
    work_per_char: int = 10


STANDARD = ParseOptions()


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """A candidate and what became of it: a value, or the faults that kept it from being one."""

    data: Json
    fixes: tuple[Fix, ...]
    whole: bool
    end: int
    value: T | None = None
    invalid_value: InvalidValueError | None = None
    faults: tuple[str, ...] = ()
    cut_at: str = ""
    ended: bool = True
    """Whether the value ended before the text did; a value can be whole although it did not, and lacks its last brackets."""

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        return (self.invalid_value is None, self.whole, -sum(COSTS[fix.level] for fix in self.fixes), self.end)

    @property
    def losses(self) -> int:
        return sum(fix.code in LOSSES for fix in self.fixes)


def parse_answer(target: Target[T], text: str, rules: ParseOptions) -> ParseResult[T]:
    """Read a text.

    Raises:
        ShapeError: no rung holds.
    """
    ladder = _Parser(target, text, rules)
    try:
        return ladder.climb()
    except RecursionError:  # the caller's own stack is nearly full
        ladder.fail("$: nested too deep for what is left of the stack")


@dataclass(slots=True)
class _Parser(Generic[T]):
    target: Target[T]
    text: str
    rules: ParseOptions
    work: WorkBudget = field(default_factory=lambda: WorkBudget(0))
    inner: bool = False
    before: tuple[Fix, ...] = ()

    def climb(self) -> ParseResult[T]:
        if len(self.text) > self.rules.most_chars:
            self.fail(f"$: {len(self.text)} characters, at most {self.rules.most_chars}")
        self.work = WorkBudget(self.rules.work_per_char * len(self.text) + 2_000)
        return self.stages()

    def stages(self) -> ParseResult[T]:
        start, end = 0, len(self.text)
        found = self.strict(start, end)
        if found is None:
            start, end = after_thinking(self.text, start, end)
            if start:
                self.before += (Fix("thinking", 0, "safe"),)
            fenced = inside_fence(self.text, start, end)
            if fenced is not None or start:
                inner = fenced or (start, end)
                fence = (Fix("fence", start, "safe"),) if fenced else ()
                self.before += fence
                found = self.strict(*inner)
                self.before = self.before[: len(self.before) - len(fence)] if found is None else self.before
        if found is None:
            found = self.best(start, end)
        return self.settle(found, start, end)

    def fail(self, *lines: str) -> NoReturn:
        raise OutputValidationError(f"not a {self.target.name}: {lines[0]}", text=self.text, diagnostics=lines)

    def strict(self, start: int, end: int) -> "_Found[T] | None":
        """Rungs 1 and 2: this part of the text is JSON as it stands."""
        try:
            raw = (self.text if (start, end) == (0, len(self.text)) else self.text[start:end]).encode()
        except UnicodeEncodeError as error:
            self.fail(
                f"$: half a character (U+{ord(error.object[error.start]):04X}) at character {start + error.start}"
            )
        bare = not self.target.wrapped or not raw.lstrip().startswith(b"{")
        if bare:
            try:
                value = self.target.judge.from_json(raw)
            except InvalidValueError as invalid_value:
                if invalid_value.malformed:
                    return None
            else:
                return None if self.odd(raw) else _Found(None, self.before, whole=True, end=end, value=value)
        if self.odd(raw):
            return None
        try:
            data: Json = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        if isinstance(data, str) and not self.inner:
            found = self.inside_string(data, start)
            if found is not None:
                return found
        return self.judged(data, self.before, start, end)

    def odd(self, raw: bytes) -> bool:
        """Tell whether valid JSON has to be read closely after all, for a key that is there twice.

        Raises:
            ShapeError: it holds what no JSON value has, or is nested too deep.
        """
        if has_odd_numbers(raw) or is_deeper(raw, self.rules.most_depth):
            try:
                data: Json = json.loads(raw)
            except (ValueError, RecursionError):
                return True
            if depth_of(data, self.rules.most_depth) > self.rules.most_depth:
                self.fail(f"$: nested deeper than {self.rules.most_depth}")
            for path, flaw in flaws(data):
                self.fail(f"{pointer(path)} {flaw}")
        return len(raw) <= CLOSELY_READ and has_duplicate_keys(raw)

    def inside_string(self, text: str, start: int) -> "_Found[T] | None":
        """The answer is a JSON string that holds JSON: open it, once."""
        if self.target.admits(StringNode) or self.target.admits(LiteralNode) or not text.strip():
            return None
        inner = _Parser(self.target, text, self.rules, self.work, inner=True)
        self.work.spend(len(text))
        try:
            reading = inner.stages()
        except OutputValidationError:
            return None
        opened = (
            *self.before,
            Fix("json-in-string", start, "safe"),
            *(replace(fix, position=start) for fix in reading.fixes),
        )
        return _Found(None, opened, True, len(self.text), reading.value, ended=reading.complete)

    def judged(self, data: Json, fixes: tuple[Fix, ...], start: int, end: int, *, whole: bool = True) -> "_Found[T]":
        """Let the judge look at data; where it does not fit, mend what the type leaves no doubt about, once."""
        bare = self.target.bare(data)
        try:
            value = self.target.accept(bare)
        except InvalidValueError as error:
            invalid_value = error
        else:
            return _Found(bare, fixes, whole, end, value)
        other, more = repair_value(self.target.form, bare, start)
        if more:
            try:
                return _Found(other, (*fixes, *more), whole, end, self.target.accept(other))
            except InvalidValueError as error:
                invalid_value = error
        return _Found(other, (*fixes, *more), whole, end, None, invalid_value)

    def best(self, start: int, end: int) -> "_Found[T] | None":
        """Rung 3: the best of the values in the text."""
        hints = ParseHints(_names(self.target), depth=self.rules.most_depth)
        try:
            each = list(islice(find_candidates(self.text, start, end, self.work, hints), MOST_CANDIDATES * 64))
            if len(each) > 2 * MOST_CANDIDATES:
                each = each[:MOST_CANDIDATES] + each[-MOST_CANDIDATES:]
            found = [self.from_draft(draft) for draft in each]
            if not found:
                return None
            top = max(range(len(found)), key=lambda index: found[index].rank)
            best = self.patient(found[top], each[top], end, hints)
        except DepthError as error:
            self.fail(f"$: nested deeper than {self.rules.most_depth} at character {error.position}")
        except BudgetError:
            self.fail("$: too tangled to read within the work allowed; ask for plain JSON")
        together = self.together(each) if best.invalid_value is not None and len(each) > 1 else None
        return together or self.one_of(best, found)

    def from_draft(self, draft: LenientResult) -> "_Found[T]":
        whole = is_complete(self.target, draft)
        self.work.spend(50)
        found = self.judged(draft.data, (*self.before, *draft.fixes), draft.start, draft.end, whole=whole)
        return replace(found, ended=not draft.open or draft.fenced, cut_at="" if whole else _cut_at(draft))

    def patient(self, best: "_Found[T]", draft: LenientResult, end: int, hints: ParseHints) -> "_Found[T]":
        """Read the best value once more with quotes taken as text, where quotes were in doubt."""
        if not any(fix.code in RISKY for fix in best.fixes):
            return best
        again = parse_again(self.text, draft, end, self.work, replace(hints, patient=True))
        if again is None:
            return best
        other = self.from_draft(again)
        return other if (*other.rank[:2], -other.losses) > (*best.rank[:2], -best.losses) else best

    def together(self, each: list[LenientResult]) -> "_Found[T] | None":
        """Take values that stand side by side as the items of the list that is wanted."""
        if not self.target.admits(ArrayNode) or any(draft.open or draft.cut or draft.elided for draft in each):
            return None
        fixes = [Fix("missing-opener", each[0].start, "guess")]
        fixes += [fix for draft in each for fix in draft.fixes]
        found = self.judged([draft.data for draft in each], (*self.before, *fixes), each[0].start, each[-1].end)
        return found if found.invalid_value is None else None

    def one_of(self, best: "_Found[T]", found: list["_Found[T]"]) -> "_Found[T]":
        """Say so where another value in the text would have done as well and says something else."""
        rivals = [each for each in found if each.invalid_value is None and each.whole and each.data != best.data]
        if best.invalid_value is None and rivals:
            return replace(best, fixes=(*best.fixes, Fix("other-answer", best.end, "guess")))
        return best

    def settle(self, found: "_Found[T] | None", start: int, end: int) -> ParseResult[T]:
        """Turn the best candidate into a reading, or into the error that says why there is none."""
        if found is None or (found.invalid_value is not None and found.whole):
            guess = self.guessed(found, start, end) if self.rules.guess and not self.inner else None
            found = guess or found
        if found is None:
            self.fail(f"$: {self.nothing(start, end)}")
        if not found.whole and not self.rules.partial:
            self.fail(f"$: the text ends before the value does{found.cut_at}")
        if found.invalid_value is not None:
            self.fail(*self.target.diagnose(found.data, found.invalid_value))
        guesses = [fix for fix in found.fixes if fix.level == "guess"]
        if guesses and not self.rules.guess:
            self.fail(f"$: readable only by a guess ({guesses[0].code} at character {guesses[0].position})")
        value = cast("T", found.value)  # there is one where there is no misfit; it may be None
        return ParseResult(value, found.fixes, found.whole and found.ended, bool(guesses))

    def nothing(self, start: int, end: int) -> str:
        """Say why there is no candidate at all."""
        if start == end and start:
            return "the text ends inside the thinking"
        if self.work.stuck >= 0:
            return (
                f"the JSON breaks off at character {self.work.stuck}, near {literal(self.text[self.work.stuck :][:30])}"
            )
        return f"no JSON {'object' if self.target.admits(ObjectNode) else 'value'} in the text"

    def guessed(self, found: "_Found[T] | None", start: int, end: int) -> "_Found[T] | None":
        """Rungs 4 and 5."""
        data = from_words(self.target, self.text, start, end) if found is None else None
        if data is not None:
            made = self.judged(data[0], (*self.before, data[1]), start, end)
            if made.invalid_value is None:
                return made
        plain = found is not None and not any(fix.level == "guess" for fix in found.fixes)
        if plain or (found is not None and any(flaws(found.data))):
            return None  # what was read is what was written, and it does not fit
        repaired = from_json_repair(self.text, start, end)
        if repaired is None:
            return None
        made = self.judged(repaired[0], (*self.before, repaired[1]), start, end)
        return made if made.invalid_value is None else None


def _cut_at(draft: LenientResult) -> str:
    if draft.elided:
        return ": it leaves something out with an ellipsis"
    path = tuple(place for _, place in draft.open)
    return f", inside {pointer(path[:-1] if path[-1] == '' else path)}" if path else ""


def _names(target: Target[T]) -> frozenset[str]:
    """Collect the keys that the type names; none where it takes any key."""
    names: set[str] = set()
    todo = [target.form.root, *target.form.named.values()]
    while todo:
        node = todo.pop()
        if isinstance(node, ObjectNode):
            names |= {each.name for each in node.properties}
            todo += [each.node for each in node.properties]
            todo += [node.extra] if node.extra is not None else []
        elif isinstance(node, ArrayNode):
            todo += [*node.prefix, node.items]
        else:
            todo += list(getattr(node, "options", ()))
    return frozenset(names)
