"""From the text of an answer to its value, rung by rung; the first rung that holds is taken.

    1 the whole text is JSON        2 so is what a thinking block and a fence leave
    3 one of the values in the text, read tolerantly: the one that fits, is whole, needs the fewest mends, comes last
    4 a label or a number without any JSON around it        5 json_repair, where it is installed, as a guess

Valid JSON is never altered, nothing that is missing is invented, and a text that ends before its value does is no success.
"""

import json
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic, NoReturn, TypeVar, cast

from taiwa.kernel import Json, ShapeError
from taiwa.shape.candidates import drafts, reread
from taiwa.shape.diagnose import pointer
from taiwa.shape.form import ArrayNode, LiteralNode, ObjectNode, StringNode
from taiwa.shape.guesses import from_json_repair, from_words
from taiwa.shape.judges import MisfitError
from taiwa.shape.mend import mended
from taiwa.shape.plain import depth_of, flaws, has_duplicate_keys, has_odd_numbers, is_deeper
from taiwa.shape.reading import Fix, Reading
from taiwa.shape.regions import after_thinking, inside_fence
from taiwa.shape.scan import BudgetError, DepthError, Work
from taiwa.shape.strings import Hints
from taiwa.shape.target import Target
from taiwa.shape.tolerant import Draft
from taiwa.shape.whole import is_whole
from taiwa.shape.wording import literal

__all__ = ["STANDARD", "Rules", "climb"]

T = TypeVar("T")
COSTS = {"safe": 1, "likely": 10, "guess": 100}
MOST_CANDIDATES = 64
CLOSELY_READ = 64 * 1024
"""Bytes of valid JSON up to which a key that is there twice is looked for: that costs as much as the validation itself."""
LOSSES = ("dropped-text", "extra-closer", "missing-value")
RISKY = ("inner-quote", "missing-quote", "dropped-text", "extra-closer")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a reading may do: accept guesses, give a value of a text that is cut, how long and deep, how much work."""

    guess: bool = True
    partial: bool = False
    most_chars: int = 1 << 20
    most_depth: int = 128
    work_per_char: int = 10


STANDARD = Rules()


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """A candidate and what became of it: a value, or the faults that kept it from being one."""

    data: Json
    fixes: tuple[Fix, ...]
    whole: bool
    end: int
    value: T | None = None
    misfit: MisfitError | None = None
    faults: tuple[str, ...] = ()
    cut_at: str = ""
    ended: bool = True
    """Whether the value ended before the text did; a value can be whole although it did not, and lacks its last brackets."""

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        return (self.misfit is None, self.whole, -sum(COSTS[fix.level] for fix in self.fixes), self.end)

    @property
    def losses(self) -> int:
        return sum(fix.code in LOSSES for fix in self.fixes)


def climb(target: Target[T], text: str, rules: Rules) -> Reading[T]:
    """Read a text.

    Raises:
        ShapeError: no rung holds.
    """
    ladder = _Ladder(target, text, rules)
    try:
        return ladder.climb()
    except RecursionError:  # the caller's own stack is nearly full
        ladder.fail("$: nested too deep for what is left of the stack")


@dataclass(slots=True)
class _Ladder(Generic[T]):
    target: Target[T]
    text: str
    rules: Rules
    work: Work = field(default_factory=lambda: Work(0))
    inner: bool = False
    before: tuple[Fix, ...] = ()

    def climb(self) -> Reading[T]:
        if len(self.text) > self.rules.most_chars:
            self.fail(f"$: {len(self.text)} characters, at most {self.rules.most_chars}")
        self.work = Work(self.rules.work_per_char * len(self.text) + 2_000)
        return self.rungs()

    def rungs(self) -> Reading[T]:
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
        raise ShapeError(f"not a {self.target.name}: {lines[0]}", text=self.text, diagnostics=lines)

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
            except MisfitError as misfit:
                if misfit.malformed:
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
        inner = _Ladder(self.target, text, self.rules, self.work, inner=True)
        self.work.spend(len(text))
        try:
            reading = inner.rungs()
        except ShapeError:
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
        except MisfitError as error:
            misfit = error
        else:
            return _Found(bare, fixes, whole, end, value)
        other, more = mended(self.target.form, bare, start)
        if more:
            try:
                return _Found(other, (*fixes, *more), whole, end, self.target.accept(other))
            except MisfitError as error:
                misfit = error
        return _Found(other, (*fixes, *more), whole, end, None, misfit)

    def best(self, start: int, end: int) -> "_Found[T] | None":
        """Rung 3: the best of the values in the text."""
        hints = Hints(_names(self.target), depth=self.rules.most_depth)
        try:
            each = list(islice(drafts(self.text, start, end, self.work, hints), MOST_CANDIDATES * 64))
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
        together = self.together(each) if best.misfit is not None and len(each) > 1 else None
        return together or self.one_of(best, found)

    def from_draft(self, draft: Draft) -> "_Found[T]":
        whole = is_whole(self.target, draft)
        self.work.spend(50)
        found = self.judged(draft.data, (*self.before, *draft.fixes), draft.start, draft.end, whole=whole)
        return replace(found, ended=not draft.open or draft.fenced, cut_at="" if whole else _cut_at(draft))

    def patient(self, best: "_Found[T]", draft: Draft, end: int, hints: Hints) -> "_Found[T]":
        """Read the best value once more with quotes taken as text, where quotes were in doubt."""
        if not any(fix.code in RISKY for fix in best.fixes):
            return best
        again = reread(self.text, draft, end, self.work, replace(hints, patient=True))
        if again is None:
            return best
        other = self.from_draft(again)
        return other if (*other.rank[:2], -other.losses) > (*best.rank[:2], -best.losses) else best

    def together(self, each: list[Draft]) -> "_Found[T] | None":
        """Take values that stand side by side as the items of the list that is wanted."""
        if not self.target.admits(ArrayNode) or any(draft.open or draft.cut or draft.elided for draft in each):
            return None
        fixes = [Fix("missing-opener", each[0].start, "guess")]
        fixes += [fix for draft in each for fix in draft.fixes]
        found = self.judged([draft.data for draft in each], (*self.before, *fixes), each[0].start, each[-1].end)
        return found if found.misfit is None else None

    def one_of(self, best: "_Found[T]", found: list["_Found[T]"]) -> "_Found[T]":
        """Say so where another value in the text would have done as well and says something else."""
        rivals = [each for each in found if each.misfit is None and each.whole and each.data != best.data]
        if best.misfit is None and rivals:
            return replace(best, fixes=(*best.fixes, Fix("other-answer", best.end, "guess")))
        return best

    def settle(self, found: "_Found[T] | None", start: int, end: int) -> Reading[T]:
        """Turn the best candidate into a reading, or into the error that says why there is none."""
        if found is None or (found.misfit is not None and found.whole):
            guess = self.guessed(found, start, end) if self.rules.guess and not self.inner else None
            found = guess or found
        if found is None:
            self.fail(f"$: {self.nothing(start, end)}")
        if not found.whole and not self.rules.partial:
            self.fail(f"$: the text ends before the value does{found.cut_at}")
        if found.misfit is not None:
            self.fail(*self.target.diagnose(found.data, found.misfit))
        guesses = [fix for fix in found.fixes if fix.level == "guess"]
        if guesses and not self.rules.guess:
            self.fail(f"$: readable only by a guess ({guesses[0].code} at character {guesses[0].position})")
        value = cast("T", found.value)  # there is one where there is no misfit; it may be None
        return Reading(value, found.fixes, found.whole and found.ended, bool(guesses))

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
            if made.misfit is None:
                return made
        plain = found is not None and not any(fix.level == "guess" for fix in found.fixes)
        if plain or (found is not None and any(flaws(found.data))):
            return None  # what was read is what was written, and it does not fit
        repaired = from_json_repair(self.text, start, end)
        if repaired is None:
            return None
        made = self.judged(repaired[0], (*self.before, repaired[1]), start, end)
        return made if made.misfit is None else None


def _cut_at(draft: Draft) -> str:
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
