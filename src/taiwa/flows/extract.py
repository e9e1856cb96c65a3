"""Typed answers: `[Complete constraint=type] → parse → value | diagnostics → [Complete] …`.

The answer is parsed and validated in every mode, even where the server promised its schema. A text that was cut off is never
accepted.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast, get_args, overload

from taiwa.flows.output_modes import (
    ModeChoice,
    OutputMode,
    OutputSpec,
    PromptStyle,
    TypedRequest,
    TypedResponse,
    complete_typed,
    modes_for,
)
from taiwa.flows.retry_invalid_output import (
    DEFAULT_REPAIR,
    NO_GUESS,
    AnswerForm,
    Attempt,
    RepairPolicy,
    apply_patch,
    parse_json,
    parse_partial_json,
    patch_messages,
    patch_places,
    repair_messages,
    stop_reason,
)
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import GetPrice, HideOutput, Program, Watcher, perform
from taiwa.kernel.errors import ConfigError, InputError, LimitError, OutputValidationError, RefusalError, check_argument
from taiwa.kernel.messages import JsonSchema, Message, Request, Sampling, Task, Text, Usage, user
from taiwa.kernel.records import Json, value
from taiwa.kernel.text import estimate_tokens
from taiwa.structured import Fix, OutputType, ParseOptions, ParseResult

T = TypeVar("T")
Schema: TypeAlias = JsonSchema | Mapping[str, Json] | str
"""A JSON Schema, as a dict too, or fields: `"name, age int"`. Its values are plain JSON."""
ALLOW_GUESS = ParseOptions()
UNFINISHED = 1_000
"""Counts as more faults than any whole answer has."""
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
class TypedAnswer(Generic[T]):
    """A value of the output type, and the attempts that it took; the value is that of the last one."""

    value: T
    attempts: tuple[Attempt, ...]

    @property
    def usage(self) -> Usage | None:
        """The usage of all attempts; None where the server did not report it for one."""
        return _total(self.attempts)


class ExtractError(OutputValidationError):
    """No attempt was valid.

    `tries` holds the attempts, `best` the JSON of the one with the fewest faults (None without any), `reason` why the last
    one was not sent back. `spent` holds the usage of the run.
    """

    tag = "extraction"
    details = (*OutputValidationError.details, "reason")
    tries: tuple[Attempt, ...] = ()
    best: Json = None
    reason: str = ""

    @property
    def usage(self) -> Usage | None:
        """The usage of all attempts; None where the server did not report it for one."""
        return _total(self.tries)


@overload
def extract(
    wanted: type[T] | OutputSpec[T], prompt: str | Sequence[Message], *, repair: RepairPolicy = ..., mode: ModeChoice = ...,
    style: PromptStyle = ..., sampling: Sampling = ..., watch: Callable[[], Watcher] = ..., task: Task = ...,
) -> Program[TypedAnswer[T]]: ...  # fmt: skip
@overload
def extract(
    wanted: Schema, prompt: str | Sequence[Message], *, repair: RepairPolicy = ..., mode: ModeChoice = ...,
    style: PromptStyle = ..., sampling: Sampling = ..., watch: Callable[[], Watcher] = ..., task: Task = ...,
) -> Program[TypedAnswer[Json]]: ...  # fmt: skip
def extract(
    wanted: type[T] | OutputSpec[T] | Schema,
    prompt: str | Sequence[Message],
    *,
    repair: RepairPolicy = DEFAULT_REPAIR,
    mode: ModeChoice = "auto",
    style: PromptStyle = "plain",
    sampling: Sampling = Sampling(),
    watch: Callable[[], Watcher] = HideOutput,
    task: Task = "extract",
) -> Program[TypedAnswer[Any]]:
    """Ask for a value of a type: `yield from extract(Order, "Two teas, please.")`.

    `task` is the task of its requests; see `Request`. `style` is how they are worded; see `PromptStyle`.

    Raises (when run):
        InputError: `repair`, `mode` or `style` has an invalid value. ConfigError: `budget_cost` is set and no price is known.
        ExtractError: no attempt was valid within the limits of `repair`.
        RefusalError: the model refused to answer.
    """
    check_argument("repair", repair, RepairPolicy, "taiwa.RepairPolicy(…)")
    repair.check()
    if repair.budget_cost is not None and (yield from perform(GetPrice(Usage()))) is None:
        raise ConfigError("no price is known for the model, so budget_cost cannot hold; set one in `prices`")
    modes = yield from modes_for(mode, task)
    if style not in get_args(PromptStyle):
        raise InputError(f"unknown style {style!r}; choose one of {', '.join(get_args(PromptStyle))}")
    messages = (user(prompt),) if isinstance(prompt, str) else tuple(prompt)
    typed: TypedRequest[Any] = TypedRequest(output_spec(wanted), messages, sampling, watch, task=task, style=style)
    loop = _ExtractionLoop(typed, repair, modes)
    while True:
        found = yield from loop.attempt()
        if found is not None:
            return TypedAnswer(found.value, tuple(loop.attempts))
        reason = stop_reason(repair, tuple(loop.attempts)) or (yield from loop.over_budget())
        if reason:
            raise loop.failure(reason)


def output_spec(wanted: type[T] | OutputSpec[T] | Schema) -> OutputSpec[Any]:
    """Return what can be requested: an `OutputType` or an `Api` as it is, `OutputType.of` anything else."""
    if not isinstance(wanted, type) and hasattr(wanted, "parse") and hasattr(wanted, "render"):
        return cast("OutputSpec[Any]", wanted)
    return OutputType.of(wanted)


@dataclass(slots=True)
class _ExtractionLoop(Generic[T]):
    """The state of an extraction. `text` and `faults` are those of the last whole answer, with patches applied."""

    typed: TypedRequest[T]
    repair: RepairPolicy
    modes: tuple[OutputMode, ...]
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    answer: TypedResponse | None = None
    text: str = ""
    faults: tuple[str, ...] = ()
    used: Usage = field(default_factory=Usage)
    best: tuple[int, Json] | None = None

    def attempt(self) -> Program[ParseResult[T] | None]:
        """Make one request and parse its answer; return None where it is invalid."""
        places = self.places()
        modes: tuple[OutputMode, ...] = ("prompt",) if places else self.modes
        typed = replace(self.typed, brief=SHORTER) if self.was_cut else self.typed
        try:
            answer = yield from complete_typed(typed, modes, self.more)
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
        """Return the paths that a patch has to correct; none where the whole answer is requested."""
        if self.answer is None or any(each.form == "invalid_patch" for each in self.attempts):
            return ()
        return patch_places(self.repair, self.answer, self.text, self.faults)

    def more(self, mode: OutputMode) -> tuple[Message, ...]:
        """Return the messages that follow the question: none at first, and none after an answer that was cut off."""
        if self.answer is None or self.was_cut:
            return ()
        if self.places():
            return patch_messages(self.text, self.faults)
        return repair_messages(self.answer, self.text, self.faults, self.typed.function.name, mode)

    def charge(self, answer: TypedResponse) -> None:
        """Add the usage of an answer; estimate it where the server did not report it."""
        usage = answer.response.usage
        self.used += usage or Usage(_size(answer.request), estimate_tokens(answer.text))

    def read(self, answer: TypedResponse, text: str, form: AnswerForm) -> ParseResult[T] | None:
        """Parse a whole answer; record the attempt and its faults."""
        ending = ENDINGS.get(answer.response.finish, "")
        found: ParseResult[T] | None = None
        try:
            if not ending:
                found = self.typed.wanted.parse(text, ALLOW_GUESS if self.repair.guess else NO_GUESS)
            self.faults = (ending,) if ending else ()
        except OutputValidationError as error:
            self.faults = error.diagnostics or (error.message,)
        self.record(answer, self.faults, form, () if found is None else found.fixes)
        if found is None:
            self.keep_best(text, ending)
        return found

    def read_patch(self, answer: TypedResponse, places: tuple[str, ...]) -> ParseResult[T] | None:
        """Apply a patch and parse the whole answer again."""
        patch = None if answer.response.finish in ENDINGS else parse_json(answer.text)
        whole = None
        if isinstance(patch, dict):
            inner = parse_json(self.text)
            whole = apply_patch(inner, patch, places)
            if whole is None and isinstance(inner, dict) and len(inner) == 1:  # an object that only wraps the value
                whole = apply_patch(next(iter(inner.values())), patch, places)
        if whole is None:
            self.record(answer, ("the patch is not a JSON object of the requested paths",), "invalid_patch")
            return None
        self.text = json.dumps(whole, ensure_ascii=False)
        return self.read(answer, self.text, "patch")

    def record(
        self, answer: TypedResponse, faults: tuple[str, ...], form: AnswerForm, fixes: tuple[Fix, ...] = ()
    ) -> None:
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
        """Keep the JSON of the best attempt: whole before unfinished, then with the fewest faults, then the last."""
        data = None if ending else parse_json(text)
        faults = UNFINISHED if data is None else len(self.faults)
        data = parse_partial_json(text) if data is None else data
        if data is not None and (self.best is None or faults <= self.best[0]):
            self.best = (faults, data)

    def over_budget(self) -> Program[str]:
        """Return why the next request would exceed a budget, '' where it would not."""
        typed = replace(self.typed, brief=SHORTER) if self.was_cut else self.typed
        mode: OutputMode = "prompt" if self.places() else self.modes[0]
        after = self.used + Usage(_size(typed.request(mode, self.more(mode)), self.attempts[0].usage))
        tokens, cost = self.repair.budget_tokens, self.repair.budget_cost
        if tokens is not None and after.input_tokens + after.output_tokens > tokens:
            return f"the budget of {tokens:,} tokens does not allow another call"
        if cost is None:
            return ""
        quote = yield from perform(GetPrice(after))
        over = quote is None or quote > cost
        return f"the budget of {cost / 1e9:g} does not allow another call" if over else ""

    def failure(self, reason: str) -> ExtractError:
        """Make the error with all attempts."""
        count = len(self.attempts)
        tried = f"{count} attempt{'s' if count > 1 else ''}"
        error = ExtractError(
            f"no {self.typed.wanted.name} could be read in {tried}: {self.faults[0]} ({reason})",
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


def _size(request: Request, first: Usage | None = None) -> int:
    """Estimate the tokens of a request; those of its attachments at most, by the usage of the `first` one if it is known."""
    parts = [part for message in request.messages for part in message.parts]
    tokens = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    attached = sum(part.max_tokens for part in parts if isinstance(part, Attachment))
    tokens += attached if first is None else min(attached, first.input_tokens)
    schemas = [tool.parameters for tool in request.tools]
    return tokens + sum(estimate_tokens(json.dumps(schema)) for schema in schemas)
