"""A typed answer: `[Complete constraint=shape] → output_type.parse → value | diagnostics → [Complete] …`.

The answer is read and checked in every mode, even where the server promised its form. A text that ends before its value
does is no success, whatever it looks like.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from taiwa.flows.output_modes import (
    Choice,
    OutputMode,
    OutputSpec,
    TypedRequest,
    TypedResponse,
    complete_typed,
    modes_for,
)
from taiwa.flows.retry_invalid_output import (
    ONCE,
    STRICTLY,
    Attempt,
    Form,
    RepairPolicy,
    check_repair,
    loosely,
    patch_places,
    patch_wanted,
    patched,
    repair_messages,
    stop_reason,
    unfinished,
)
from taiwa.kernel.effects import GetPrice, HideOutput, Program, Watcher, perform
from taiwa.kernel.errors import ConfigError, LimitError, OutputValidationError, RefusalError
from taiwa.kernel.messages import Message, Request, Sampling, Task, Text, Usage, user
from taiwa.kernel.records import Json, value
from taiwa.kernel.text import estimate_tokens
from taiwa.structured import Fix, OutputType, ParseOptions, ParseResult

__all__ = ["ExtractError", "Extraction", "extract", "plain_json"]

T = TypeVar("T")
GUESSING = ParseOptions()
UNFINISHED = 1_000
"""More faults than any whole answer is said to have."""
SHORTER = """\
Your last answer was cut off at the length limit: write the JSON without spaces and line breaks, and leave out what is \
optional."""
ENDINGS = {
    "length": "the answer was cut off at the length limit",
    "interrupted": "the answer was interrupted",
    "cut": "the answer was cut off",
    "refusal": "the model refused to answer",
}


@value(tag="extraction")
class Extraction(Generic[T]):
    """A value of the wanted type and the attempts that it took, the last of them the one that was read."""

    value: T
    attempts: tuple[Attempt, ...]

    @property
    def usage(self) -> Usage | None:
        """What all attempts used together; None where the server did not say it of one."""
        return _total(self.attempts)


class ExtractError(OutputValidationError, tag="extraction"):
    """No attempt could be read.

    `tries` holds the attempts whole, `best` the JSON of the one that came nearest (None where there was none), `reason`
    why the last one was not sent back. `spent` holds the bill of the run.
    """

    details = (*OutputValidationError.details, "reason")
    tries: tuple[Attempt, ...] = ()
    best: Json = None
    reason: str = ""

    @property
    def usage(self) -> Usage | None:
        """What all attempts used together; None where the server did not say it of one."""
        return _total(self.tries)


def extract(
    wanted: OutputSpec[T],
    said: str | Sequence[Message],
    *,
    repair: RepairPolicy = ONCE,
    mode: Choice = "auto",
    sampling: Sampling = Sampling(),
    watch: Callable[[], Watcher] = HideOutput,
    task: Task = "extract",
) -> Program[Extraction[T]]:
    """Ask for a value of a type: `yield from extract(OutputType(Order), "Two teas, please.")`.

    `task` is that of its requests; see `Request`.

    Raises (when run):
        InputError: `repair` or `mode` is out of bounds. ConfigError: `budget_cost` is set and no price is known.
        ExtractError: no attempt could be read, and what `repair` allows did not mend it.
        RefusalError: the model refused to answer.
    """
    check_repair(repair)
    if repair.budget_cost is not None and (yield from perform(GetPrice(Usage()))) is None:
        raise ConfigError("no price is known for the model, so budget_cost cannot hold; set one in `prices`")
    modes = yield from modes_for(mode)
    messages = (user(said),) if isinstance(said, str) else tuple(said)
    course = _Course(TypedRequest(wanted, messages, sampling, watch, task=task), repair, modes)
    while True:
        found = yield from course.attempt()
        if found is not None:
            return Extraction(found.value, tuple(course.attempts))
        reason = stop_reason(repair, tuple(course.attempts)) or (yield from course.over_budget())
        if reason:
            raise course.failure(reason)


def plain_json(shape: OutputType[T], given: T) -> Json:
    """Write a value as JSON, without the wrapping that some types have on the wire.

    >>> plain_json(OutputType(list[int]), [1, 2])
    [1, 2]

    Raises:
        InputError: the value does not have the type.
    """
    data = shape.dump(given)
    return data["value"] if shape.wrapped and isinstance(data, dict) else data


@dataclass(slots=True)
class _Course(Generic[T]):
    """An extraction under way. `text` and `faults` are those of the last whole answer, as patches have left it."""

    asking: TypedRequest[T]
    repair: RepairPolicy
    modes: tuple[OutputMode, ...]
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    answer: TypedResponse | None = None
    text: str = ""
    faults: tuple[str, ...] = ()
    used: Usage = field(default_factory=Usage)
    best: tuple[int, Json] | None = None

    def attempt(self) -> Program[ParseResult[T] | None]:
        """Make one call and read its answer; None where that failed."""
        places = self.places()
        modes: tuple[OutputMode, ...] = ("prompt",) if places else self.modes
        asking = replace(self.asking, brief=SHORTER) if self.was_cut else self.asking
        try:
            answer = yield from complete_typed(asking, modes, self.more)
        except LimitError as error:
            if not self.attempts:
                raise
            raise self.failure(error.message) from error
        if answer.response.finish == "refusal" and not self.attempts:
            raise RefusalError(ENDINGS["refusal"], request=answer.request.digest)
        self.charge(answer)
        if places:
            return self.read_patch(answer, places)
        self.modes, self.answer, self.text = answer.modes, answer, answer.text
        return self.read(answer, answer.text, "whole")

    @property
    def was_cut(self) -> bool:
        return bool(self.attempts) and self.attempts[-1].finish == "length"

    def places(self) -> tuple[str, ...]:
        """What a patch is to correct, none where the whole answer is asked for."""
        if self.answer is None or any(each.form == "invalid_patch" for each in self.attempts):
            return ()
        return patch_places(self.repair, self.answer, self.text, self.faults)

    def more(self, mode: OutputMode) -> tuple[Message, ...]:
        """What follows the question: nothing at first, and nothing of an answer that was cut off."""
        if self.answer is None or self.was_cut:
            return ()
        if self.places():
            return patch_wanted(self.text, self.faults)
        return repair_messages(self.answer, self.text, self.faults, self.asking.function.name, mode)

    def charge(self, answer: TypedResponse) -> None:
        """Add what an answer used, or about what it must have used."""
        usage = answer.response.usage
        self.used += usage or Usage(_size(answer.request), estimate_tokens(answer.text))

    def read(self, answer: TypedResponse, text: str, form: Form) -> ParseResult[T] | None:
        """Read a whole answer; keep what it was and what is wrong with it."""
        ending = ENDINGS.get(answer.response.finish, "")
        found: ParseResult[T] | None = None
        try:
            if not ending:
                found = self.asking.wanted.parse(text, GUESSING if self.repair.guess else STRICTLY)
            self.faults = (ending,) if ending else ()
        except OutputValidationError as error:
            self.faults = error.diagnostics or (error.message,)
        self.note(answer, self.faults, form, () if found is None else found.fixes)
        if found is None:
            self.keep_best(text, ending)
        return found

    def read_patch(self, answer: TypedResponse, places: tuple[str, ...]) -> ParseResult[T] | None:
        """Apply a patch and read the whole again."""
        patch = None if answer.response.finish in ENDINGS else loosely(answer.text)
        whole = None
        if isinstance(patch, dict):
            inner = loosely(self.text)
            whole = patched(inner, patch, places)
            if whole is None and isinstance(inner, dict) and len(inner) == 1:  # an object that only wraps the value
                whole = patched(next(iter(inner.values())), patch, places)
        if whole is None:
            self.note(answer, ("the patch is no JSON object of paths that were asked for",), "invalid_patch")
            return None
        self.text = json.dumps(whole, ensure_ascii=False)
        return self.read(answer, self.text, "patch")

    def note(self, answer: TypedResponse, faults: tuple[str, ...], form: Form, fixes: tuple[Fix, ...] = ()) -> None:
        response = answer.response
        self.attempts.append(
            Attempt(
                answer.text,
                faults,
                fixes,
                response.finish,
                response.usage,
                answer.mode,
                form,
                answer.downgrades,
                response.enforcement,
            )
        )

    def keep_best(self, text: str, ending: str) -> None:
        """Keep the JSON of the attempt that came nearest: whole before unfinished, then the fewest faults, then the last."""
        data = None if ending else loosely(text)
        faults = UNFINISHED if data is None else len(self.faults)
        data = unfinished(text) if data is None else data
        if data is not None and (self.best is None or faults <= self.best[0]):
            self.best = (faults, data)

    def over_budget(self) -> Program[str]:
        """Say which budget the next call would break."""
        asking = replace(self.asking, brief=SHORTER) if self.was_cut else self.asking
        mode: OutputMode = "prompt" if self.places() else self.modes[0]
        after = self.used + Usage(_size(asking.request(mode, self.more(mode))))
        tokens, cost = self.repair.budget_tokens, self.repair.budget_cost
        if tokens is not None and after.input_tokens + after.output_tokens > tokens:
            return f"the budget of {tokens:,} tokens does not allow another call"
        if cost is None:
            return ""
        quote = yield from perform(GetPrice(after))
        over = quote is None or quote > cost
        return f"the budget of {cost / 1e9:g} does not allow another call" if over else ""

    def failure(self, reason: str) -> ExtractError:
        """Make the error that holds everything."""
        count = len(self.attempts)
        tried = f"{count} attempt{'s' if count > 1 else ''}"
        error = ExtractError(
            f"no {self.asking.wanted.name} could be read in {tried}: {self.faults[0]} ({reason})",
            text=self.text,
            diagnostics=self.faults,
            attempts=tuple(each.text for each in self.attempts),
        )
        error.tries, error.reason = tuple(self.attempts), reason
        error.best = None if self.best is None else self.best[1]
        return error


def _total(attempts: Sequence[Attempt]) -> Usage | None:
    total = Usage()
    for each in attempts:
        if each.usage is None:
            return None
        total += each.usage
    return total


def _size(request: Request) -> int:
    """About how many tokens a request is."""
    texts = (part for message in request.messages for part in message.parts)
    said = sum(estimate_tokens(part.text) for part in texts if isinstance(part, Text))
    schemas = [tool.parameters for tool in request.tools]
    return said + sum(estimate_tokens(json.dumps(schema)) for schema in schemas)
