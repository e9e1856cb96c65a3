"""Typed answers: `[Complete constraint=type] → parse → value | diagnostics → [Complete] …`.

The output mode (schema enforced by the server, function call, or the type in the prompt) follows from the capabilities of the
server; the next one is tried if the server refuses it. The answer is parsed and validated in every mode, because servers do
not always enforce what they promise. A truncated text is never accepted and never requested again as it was: the model
continues it if the limit was not the caller's. An invalid answer is requested again, completely or as a patch.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from operator import eq
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args, overload

from taiwa.conversation.turn_prompt import TYPED
from taiwa.flows.repetition import Path, bound_items, repeated_items
from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, Watcher, notify, perform
from taiwa.kernel.errors import (
    InputError,
    LimitError,
    ModelError,
    OutputValidationError,
    RefusalError,
    UnsupportedError,
    check_argument,
)
from taiwa.kernel.messages import (
    Capability,
    Enforcement,
    FinishReason,
    JsonSchema,
    Message,
    Request,
    Response,
    Sampling,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    system,
    user,
)
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import REPLACEMENT, estimate_tokens, repeated_end
from taiwa.kernel.wording import Wording
from taiwa.structured import Fix, OutputType, ParseOptions, ParseResult, PartialParser

T = TypeVar("T")

OutputMode: TypeAlias = Literal["native", "tool", "tool_optional", "prompt"]
"""The server enforces the schema · a call of a function is required · a call is optional · the prompt describes the type."""

ModeChoice: TypeAlias = OutputMode | Literal["auto"]

NEEDS: dict[OutputMode, Capability] = {"native": "json_schema", "tool": "tools"}

REFUSALS: dict[OutputMode, str] = {
    "native": "json_schema response_format structured_outputs output_config format schema",
    "tool": "tools tool_choice functions function_call json_schema",
    "tool_optional": "tools tool_choice functions function_call json_schema",
}
"""The name that a server gives when it refuses a mode: the capability, or the parameter of its protocol."""

NAMED = "Reply only with JSON of the type {name}, and nothing else."

FORCED = "Answer by calling the function {name}, once, and say nothing else."

OFFERED = "When you have what the function {name} takes, call it; its arguments are the answer."

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class OutputSpec(Protocol[T]):
    """What can be requested: an `OutputType`, or any object with a text for the model, a schema and a parser."""

    @property
    def name(self) -> str:
        """The name of the type."""

    def render(self) -> str:
        """Write the type for a model."""

    def schema(self) -> dict[str, Json]:
        """Return its JSON Schema."""

    def parse(self, text: str, options: ParseOptions) -> ParseResult[T]:
        """Parse the text of an answer.

        Raises:
            OutputValidationError: it contains no value of the type.
        """


def modes_for(choice: ModeChoice, capabilities: Collection[Capability]) -> tuple[OutputMode, ...]:
    """List the modes to try: the chosen one, or all that the server supports, best first.

    Raises:
        InputError: the mode is unknown.
    """
    if choice != "auto":
        if choice not in get_args(OutputMode):
            raise InputError(f"unknown mode {choice!r}; choose one of auto, {', '.join(get_args(OutputMode))}")
        return (choice,)
    able: list[OutputMode] = [mode for mode, capability in NEEDS.items() if capability in capabilities]
    return (*able, "prompt")


@dataclass(frozen=True, slots=True)
class TypedRequest(Generic[T]):
    """A request for a value; `watch` decides what is shown of the answer while it is streamed."""

    wanted: OutputSpec[T]
    messages: tuple[Message, ...]
    sampling: Sampling
    watch: Callable[[], Watcher] = HideOutput
    is_named: bool = False
    """Whether the model is only told the name of the type."""
    bounded: dict[str, Json] | None = None
    """The schema with a bound for a list that the model repeated without end; None for the schema of the type."""

    @property
    def schema(self) -> dict[str, Json]:
        """The schema that is enforced."""
        return self.wanted.schema() if self.bounded is None else self.bounded

    def request(self, mode: OutputMode, more: tuple[Message, ...] = ()) -> Request:
        """Make the request of a mode; `more` follows the messages."""
        if mode in ("native", "prompt"):
            shown = NAMED.format(name=self.wanted.name) if self.is_named else TYPED.format(type=self.wanted.render())
            messages = _instruct(self.messages, shown)
        else:
            sentence = FORCED if mode == "tool" else OFFERED
            messages = _instruct(self.messages, sentence.format(name=self.function.name))
        request = Request((*messages, *more), sampling=self.sampling)
        if mode == "native":
            return replace(request, constraint=JsonSchema(self.schema, self.wanted.name))
        if mode == "prompt":
            return request
        # With a single function, "required" equals its name, and more servers support it.
        return replace(request, tools=(self.function,), tool_choice="required" if mode == "tool" else "auto")

    @property
    def function(self) -> ToolSpec:
        """The function whose arguments are the answer."""
        name = NOT_IN_NAMES.sub("_", self.wanted.name)[:64] or "answer"
        return ToolSpec(name, f"Takes the answer, {self.wanted.name}.", self.schema)


def _instruct(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Return messages whose system message ends in a text."""
    if messages and messages[0].role == "system":
        return system(f"{messages[0].text.rstrip()}\n\n{text}"), *messages[1:]
    return system(text), *messages


@dataclass(frozen=True, slots=True)
class TypedResponse:
    """A response, the remaining modes (its own first), and why each earlier mode was given up."""

    response: Response
    request: Request
    modes: tuple[OutputMode, ...]
    downgrades: tuple[str, ...] = ()

    @property
    def mode(self) -> OutputMode:
        """The mode of the request."""
        return self.modes[0]

    @property
    def call(self) -> ToolCall | None:
        """The function call that holds the answer: the last one if there are several, as with several values in a text."""
        calls = self.response.message.tool_calls
        return calls[-1] if calls and self.mode in ("tool", "tool_optional") else None

    @property
    def text(self) -> str:
        """The text to parse: the arguments of the function call, also of one that is written in the text, else the text."""
        if self.call is not None:
            return self.call.arguments
        text = self.request.prefix + self.response.text
        return written_arguments(text, self.request.tools[0].name) or text if self.request.tools else text


def written_arguments(text: str, name: str) -> str:
    """Return the arguments of a function call that a model wrote as JSON in its text, "" without one.

    >>> written_arguments('```json\\n{"name": "Order", "arguments": {"cups": 2}}\\n```', "Order")
    '{"cups": 2}'
    """
    call = parse_json(text) if name in text else None
    if not isinstance(call, dict) or len(call) != 2 or call.pop("name", None) != name:
        return ""
    argument, arguments = call.popitem()
    if argument not in ("arguments", "parameters"):  # OpenAI, Qwen and most · Llama
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def complete_typed(
    typed: TypedRequest[T], modes: tuple[OutputMode, ...], more: Callable[[OutputMode], tuple[Message, ...]]
) -> Program[TypedResponse]:
    """Complete in the first mode that the server does not refuse; `more` follows the messages.

    Raises (when run):
        UnsupportedError: the server refuses the last mode, or something that does not depend on the mode.
    """
    downgrades: tuple[str, ...] = ()
    while True:
        request = typed.request(modes[0], more(modes[0]))
        try:
            response = yield from perform(Complete(request, typed.watch))
        except UnsupportedError as error:
            named = error.capability.partition(".")[0]
            if len(modes) == 1 or (named and named not in REFUSALS[modes[0]].split()):
                raise
            downgrades = (*downgrades, f"{modes[0]}: {error.message}")
            yield from notify(f"trying output mode {modes[1]!r} instead: {error.message}", code="downgrade")
            modes = modes[1:]
        else:
            return TypedResponse(response, request, modes, downgrades)


STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<index>\d{1,9})\]|\[(?P<key>\"(?:[^\"\\]|\\.)*\")\]")


def read_path(text: str) -> Path | None:
    """Parse a path as diagnostics write it; return None for any other text.

    >>> read_path('$.items[5]["odd key"]')
    ('items', 5, 'odd key')
    """
    found, end = _leading(text)
    return found if end == len(text) else None


def path_of_line(line: str) -> str:
    """Return the path at the start of a line of diagnostics; '' if the line is about the complete answer.

    >>> path_of_line("$.cups = 0: must be integer, 1..9")
    '$.cups'
    """
    found, end = _leading(line)
    return line[:end] if found and line.startswith((" = ", ": "), end) else ""


def apply_patch(data: Json, patch: dict[str, Json], places: Iterable[str]) -> Json:
    """Return the patched data; None if a path does not exist or does not lead to an invalid part."""
    faulty, whole = [read_path(place) or () for place in places], deepcopy(data)
    for text, new in patch.items():
        path = read_path(text)
        # A path and an invalid part are related if one is a prefix of the other.
        if not path or not any(all(map(eq, path, each)) for each in faulty) or not _put(whole, path, deepcopy(new)):
            return None
    return whole if patch else None


def _leading(text: str) -> tuple[Path | None, int]:
    if not text.startswith("$"):
        return None, 0
    path: list[str | int] = []
    at = 1
    while match := STEP.match(text, at):
        if match["key"] is not None:
            try:
                path.append(json.loads(match["key"]))
            except ValueError:
                return None, at
        else:
            path.append(match["name"] if match["index"] is None else int(match["index"]))
        at = match.end()
    return tuple(path), at


def _put(data: Json, path: Path, value: Json) -> bool:
    """Set the value at a path whose container exists; a key may be new, an item may not."""
    match data, path:
        case dict(), [str(key)]:
            data[key] = value
        case list(), [int(index)] if index < len(data):
            data[index] = value
        case dict(), [str(key), *rest]:
            return _put(data.get(key), tuple(rest), value)
        case list(), [int(index), *rest] if rest and index < len(data):
            return _put(data[index], tuple(rest), value)
        case _:
            return False
    return True


AnswerForm: TypeAlias = Literal["whole", "patch", "invalid_patch", "continued"]
"""What was requested; a patch is invalid if it is not a JSON object of the requested paths. A continued answer begins with the
text of the attempt before it."""

MAX_ROUNDS = 3

MAX_PATCHED = 5

BROKEN_OFF: dict[FinishReason, str] = {"interrupted": "it was interrupted", "cut": "it was cut off"}

NO_GUESS = ParseOptions(guess=False)

MORE = re.compile(r"… and (\d+) more\Z")

FAULTY = "{whose} does not have the wanted type:\n{faults}\n{request}"

WHOLE = "Reply only with the corrected JSON, whole, and nothing else."

CALL = "Call {name} again, with all of its arguments."

PATCH = """\
Reply only with one JSON object that gives each of these paths its corrected value, as in {{{example}: …}}, and nothing else. \
All the rest stays as it is."""


@value(tag="repair-policy")
class RepairPolicy:
    """Limits of the repair of an invalid answer.

    - `rounds`: how often an invalid answer is sent back or a cut one is continued, 0 to 3; each is one request, and one more
      if a patch was invalid.
    - `patch_above`: the tokens above which an invalid answer is corrected by a patch; None disables patches.
    - `guess`: accept a value that can be parsed only by a guess, instead of sending the answer back.
    """

    rounds: int = 1
    patch_above: int | None = 300
    guess: bool = False

    def check(self) -> None:
        """Check the values.

        Raises:
            InputError: a value is out of range.
        """
        if not 0 <= self.rounds <= MAX_ROUNDS:
            raise InputError(f"rounds must be 0 to {MAX_ROUNDS}, got {self.rounds}")
        if self.patch_above is not None and self.patch_above < 0:
            raise InputError(f"patch_above must not be negative, got {self.patch_above}")


DEFAULT_REPAIR = RepairPolicy()


@value(tag="attempt")
class Attempt:
    """One answer of the model: its text, fixes, errors, how it was requested, and its usage.

    It was accepted if it has no diagnostics. `usage` is None if the server did not report it. `downgrades` say why better
    modes were given up before this answer, and `enforcement` which parts of the type the decoder enforced.
    """

    text: str
    diagnostics: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    finish: FinishReason = "stop"
    usage: Usage | None = None
    mode: OutputMode = "prompt"
    form: AnswerForm = "whole"
    downgrades: tuple[str, ...] = ()
    enforcement: Enforcement | None = None


def stop_reason(repair: RepairPolicy, attempts: tuple[Attempt, ...]) -> str:
    """Return why the last, invalid attempt is not sent back; '' if it is."""
    last, whole = attempts[-1], tuple(each for each in attempts if each.form != "invalid_patch")
    if last.finish == "refusal":
        return "the model refused"
    if last.finish in BROKEN_OFF:
        return BROKEN_OFF[last.finish]
    if last.form == "invalid_patch":
        return ""
    if any(set(last.diagnostics) == set(each.diagnostics) for each in whole[:-1]):
        return "the repair changed nothing"
    if len(whole) > 1 and _is_located(last) and _is_located(whole[-2]) and _count(last) > _count(whole[-2]):
        return "the repair made it worse"
    return "no round of repair is left" if len(whole) > repair.rounds else ""


def _is_located(attempt: Attempt) -> bool:
    """Return whether the attempt was JSON whose errors have paths."""
    return bool(path_of_line(attempt.diagnostics[0]))


def _count(attempt: Attempt) -> int:
    more = MORE.match(attempt.diagnostics[-1])
    return len(attempt.diagnostics) + (int(more[1]) - 1 if more else 0)


def repair_messages(
    answer: TypedResponse, text: str, faults: tuple[str, ...], function: str, mode: OutputMode
) -> tuple[Message, ...]:
    """Return the messages that send an invalid answer back, as the result of its function call or as a turn.

    `text` is the answer with patches applied; `mode` is the mode of the next request.
    """
    request = WHOLE if mode in ("native", "prompt") else CALL.format(name=function)
    call = answer.call
    if call is None or mode != answer.mode or call.arguments != text or not _is_json_object(text):
        return assistant(text), user(_faulty("Your answer", faults, request))
    result = ToolResult(_faulty("The call", faults, request), call.name, call.id, error="bad_arguments")
    return Message("assistant", (call,)), Message("tool", (result,))


def patch_places(repair: RepairPolicy, answer: TypedResponse, text: str, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that a patch must correct; none if the complete answer is requested again."""
    if repair.patch_above is None or answer.response.finish == "length" or estimate_tokens(text) <= repair.patch_above:
        return ()
    places = tuple(dict.fromkeys(path_of_line(line) for line in faults))
    return places if len(places) <= MAX_PATCHED and all(places) else ()


def patch_messages(text: str, faults: tuple[str, ...]) -> tuple[Message, ...]:
    """Return the messages that request a patch of an invalid answer."""
    example = json.dumps(path_of_line(faults[0]), ensure_ascii=False)
    return assistant(text), user(_faulty("Your answer", faults, PATCH.format(example=example)))


def _faulty(whose: str, faults: tuple[str, ...], request: str) -> str:
    return FAULTY.format(whose=whose, faults="\n".join(faults), request=request)


def parse_json(text: str) -> Json:
    """Parse the JSON in a text, of any type, without guessing; return None if there is none."""
    try:
        return cast("Json", _any().parse(text, NO_GUESS).value)
    except OutputValidationError:
        return None


def parse_partial_json(text: str) -> Json:
    """Parse the JSON in a truncated text, as far as it goes; return None if there is none."""
    stream = PartialParser(_any())
    stream.feed(text)
    return stream.view


@cache
def _any() -> OutputType[Any]:
    return OutputType(Any)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


Schema: TypeAlias = JsonSchema | Mapping[str, Json] | str
"""A JSON Schema, as a dict too, or fields: `"name, age int"`. Its values are plain JSON."""
ALLOW_GUESS = ParseOptions()
TOO_LARGE = (400, 413)
"""The statuses of a request that does not fit into the context."""
UNFINISHED = 1_000
"""Counts as more errors than any complete answer has."""
ENDINGS = {
    "length": "the answer was cut off at the length limit",
    "interrupted": "the answer was interrupted",
    "cut": "the answer was cut off",
    "repetition": "the answer was ended because it repeated itself",
    "refusal": Wording("the model refused to answer"),
}


@value(tag="extraction")
class TypedAnswer(Generic[T]):
    """A value of the output type, and the attempts that led to it; the value is that of the last one."""

    value: T
    attempts: tuple[Attempt, ...]

    @property
    def usage(self) -> Usage | None:
        """The usage of all attempts; None if the server did not report it for one."""
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
        """The usage of all attempts; None if the server did not report it for one."""
        return _total(self.tries)


@overload
def extract(
    wanted: type[T] | OutputSpec[T], prompt: str | Sequence[Message], *, repair: RepairPolicy = ..., mode: ModeChoice = ...,
    sampling: Sampling = ..., watch: Callable[[], Watcher] = ...,
) -> Program[TypedAnswer[T]]: ...  # fmt: skip
@overload
def extract(
    wanted: Schema, prompt: str | Sequence[Message], *, repair: RepairPolicy = ..., mode: ModeChoice = ...,
    sampling: Sampling = ..., watch: Callable[[], Watcher] = ...,
) -> Program[TypedAnswer[Json]]: ...  # fmt: skip
def extract(
    wanted: type[T] | OutputSpec[T] | Schema,
    prompt: str | Sequence[Message],
    *,
    repair: RepairPolicy = DEFAULT_REPAIR,
    mode: ModeChoice = "auto",
    sampling: Sampling = Sampling(),
    watch: Callable[[], Watcher] = HideOutput,
) -> Program[TypedAnswer[Any]]:
    """Ask for a value of a type: `yield from extract(Order, "Two teas, please.")`.

    Raises (when run):
        InputError: `repair` or `mode` has an invalid value.
        ExtractError: no attempt was valid within the limits of `repair`.
        RefusalError: the model refused to answer.
    """
    check_argument("repair", repair, RepairPolicy, "taiwa.RepairPolicy(…)")
    repair.check()
    capabilities = frozenset[Capability]()
    if mode in ("auto", "native"):
        capabilities = yield from perform(GetCapabilities())
    modes = modes_for(mode, capabilities)
    messages = (user(prompt),) if isinstance(prompt, str) else tuple(prompt)
    # Measured on 0.5 billion parameters: a type of 1,000 tokens is copied from, and the answer runs on.
    is_named = modes[0] == "native" and "small" in capabilities
    typed: TypedRequest[Any] = TypedRequest(output_spec(wanted), messages, sampling, watch, is_named=is_named)
    loop = _ExtractionLoop(typed, repair, modes)
    while True:
        found = yield from loop.attempt()
        if found is not None:
            return TypedAnswer(found.value, tuple(loop.attempts))
        reason = ""
        if not loop.bound_list():
            reason = (yield from loop.cut_reason()) or stop_reason(repair, tuple(loop.attempts))
        if reason:
            raise loop.failure(reason)


def output_spec(wanted: type[T] | OutputSpec[T] | Schema) -> OutputSpec[Any]:
    """Return what can be requested: an `OutputType` or an `Api` unchanged, `OutputType.of` anything else."""
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
    best: tuple[int, Json] | None = None

    def attempt(self) -> Program[ParseResult[T] | None]:
        """Make one request and parse its answer; return None if it is invalid."""
        places = self.places()
        modes: tuple[OutputMode, ...] = ("prompt",) if places else self.modes
        try:
            if self.is_cut:
                return (yield from self.go_on())
            answer = yield from complete_typed(self.typed, modes, self.more)
        except LimitError as error:
            if not self.attempts:
                raise
            raise self.failure(error.message) from error
        if answer.response.finish == "refusal" and not self.attempts:
            raise RefusalError(ENDINGS["refusal"], request=answer.request.digest)
        if places:
            return self.read_patch(answer, places)
        self.modes, self.answer, self.text = answer.modes, answer, answer.text
        return self.read(answer, answer.text, "whole")

    @property
    def is_cut(self) -> bool:
        """Whether the last whole answer was cut off at the length limit."""
        return (
            self.answer is not None
            and self.answer.response.finish == "length"
            and self.attempts[-1].form != "invalid_patch"
        )

    def bound_list(self) -> bool:
        """Bound the list that the last answer repeated without end, for another request; return whether there is one."""
        if self.attempts[-1].finish not in ("length", "repetition") or len(self.attempts) > self.repair.rounds:
            return False
        if self.modes[0] == "prompt" or (found := repeated_items(parse_partial_json(self.text))) is None:
            return False
        self.typed = replace(self.typed, bounded=bound_items(self.typed.schema, *found))
        self.answer = None
        return True

    def cut_reason(self) -> Program[str]:
        """Return why a cut answer is not continued; "" for any other, or if it is."""
        if not self.is_cut or self.answer is None:
            return ""
        if repeated_end(self.text):
            return "the answer repeats itself, so a higher max_tokens would not help"
        may_go_on = (
            self.typed.sampling.max_tokens is None
            and self.attempts[-1].form == "whole"
            and len(self.attempts) <= self.repair.rounds
            and not self.answer.request.tools
            and bool(self.text.strip())
        )
        if may_go_on and "prefix" in (yield from perform(GetCapabilities())):
            return ""
        return self.limit_to_raise

    @property
    def limit_to_raise(self) -> str:
        """Say which limit cut the answer."""
        own, usage = self.typed.sampling.max_tokens, self.attempts[-1].usage
        if own is not None:
            return f"raise max_tokens, which is {own:,}"
        return "raise max_tokens" + (f"; the answer had {usage.output_tokens:,}" if usage else "")

    def go_on(self) -> Program[ParseResult[T] | None]:
        """Let the model continue a cut answer, without its constraint if that is not possible under it."""
        request = self.continuation
        response = yield from self.complete_unless_refused(request)
        if response is None and request.constraint is not None:
            request = replace(request, constraint=None)
            response = yield from self.complete_unless_refused(request)
        if response is None:
            raise self.failure(self.limit_to_raise)
        answer = TypedResponse(response, request, self.modes)
        self.answer, self.text = answer, answer.text
        return self.read(answer, answer.text, "continued")

    def complete_unless_refused(self, request: Request) -> Program[Response | None]:
        """Complete a request; return None if the model cannot continue the answer, or has no room left for it."""
        try:
            return (yield from perform(Complete(request, self.typed.watch)))
        except (InputError, ModelError) as error:
            if isinstance(error, (InputError, UnsupportedError)) or error.status in TOO_LARGE:
                return None
            raise

    @property
    def continuation(self) -> Request:
        """The request that continues the last answer; a character that was cut in two is left out."""
        assert self.answer is not None
        return replace(self.answer.request, prefix=self.text.rstrip(REPLACEMENT))

    def places(self) -> tuple[str, ...]:
        """Return the paths that a patch has to correct; none where the whole answer is requested."""
        if self.answer is None or any(each.form == "invalid_patch" for each in self.attempts):
            return ()
        return patch_places(self.repair, self.answer, self.text, self.faults)

    def more(self, mode: OutputMode) -> tuple[Message, ...]:
        """Return the messages that follow the question: none at first."""
        if self.answer is None:
            return ()
        if self.places():
            return patch_messages(self.text, self.faults)
        return repair_messages(self.answer, self.text, self.faults, self.typed.function.name, mode)

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
        text, mode, downgrades, got = answer.text, answer.mode, answer.downgrades, answer.response
        attempt = Attempt(text, faults, fixes, got.finish, got.usage, mode, form, downgrades, got.decoding.enforcement)
        self.attempts.append(attempt)

    def keep_best(self, text: str, ending: str) -> None:
        """Keep the JSON of the best attempt: complete before incomplete, then with the fewest errors, then the last."""
        data = None if ending else parse_json(text)
        faults = UNFINISHED if data is None else len(self.faults)
        data = parse_partial_json(text) if data is None else data
        if data is not None and (self.best is None or faults <= self.best[0]):
            self.best = (faults, data)

    def failure(self, reason: str) -> ExtractError:
        """Make the error with all attempts."""
        count = len(self.attempts)
        tried = f"{count} attempt{'s' if count > 1 else ''}"
        message = f"no {self.typed.wanted.name} could be read in {tried}: {self.faults[0]} ({reason})"
        texts = tuple(each.text for each in self.attempts)
        error = ExtractError(message, text=self.text, diagnostics=self.faults, attempts=texts)
        error.tries, error.reason = tuple(self.attempts), reason
        error.best = None if self.best is None else self.best[1]
        return error


def _total(attempts: Sequence[Attempt]) -> Usage | None:
    reported = [each.usage for each in attempts if each.usage is not None]
    return sum(reported, Usage()) if len(reported) == len(attempts) else None
