"""`Rationale` and its parts, and `CallBudget`: the limits, execution and memory of all tool calls of one rationale."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from taiwa.flows.solve.tool_call_formats import normalize_name
from taiwa.kernel.approval import NOT_APPROVED
from taiwa.kernel.effects import CallTool, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, LimitError, ToolError, UnknownToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.serialization import Json, canonical, value
from taiwa.kernel.text import truncate

OnToolError: TypeAlias = Literal["report", "let_model_answer", "stop"]
"""What happens after a failed call: the error is sent to the model · the model writes the result · the rationale ends."""

ToolMode: TypeAlias = Literal["prefill", "stop", "native"]
"""How tool results are returned to the model: its text continues after them · its text is stopped and it is asked to
continue · they answer a function call."""

EndReason: TypeAlias = Literal[
    "end", "calls", "repeat", "tool", "stops", "tokens", "limit", "length", "interrupted", "refusal", "repetition"
]
"""Why a rationale ended: the model finished · the limit of calls was reached · the same call too often · a tool failed · too many false stops · its limit of tokens · a limit of the run · the
finish reason of the model."""

AnswerSource: TypeAlias = Literal["typed", "line", "prompt", "none"]
"""Where the answer comes from: a typed answer · the last line · a second request · there is none."""

InsertedKind: TypeAlias = Literal["result", "stop", "call", "cue"]


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What becomes of calls of tools.

    - `on_error`, `on_unknown`: what to do when a call fails, and when it names an unknown tool.
    - `simulated_tools`: tools that are described and never executed: the model writes their results.
      `forbid_own_results`: whether the instructions forbid the model to write results itself.
    - `retry_without_tools`: whether a question whose last call failed is solved again without tools. It suits tools that only
      calculate; without tools that look something up, a model would make that up.
    """

    on_error: OnToolError = "report"
    on_unknown: OnToolError = "report"
    simulated_tools: Collection[str] = ()
    forbid_own_results: bool = True
    retry_without_tools: bool = False


REPORTING = CallPolicy()


@value(tag="solve-limits")
class SolveLimits:
    """Limits of one rationale.

    - `max_tool_calls`: tool calls in all. `max_tokens`: output tokens in all, None for no limit.
    - `max_repeats`: how often the same call is answered; it is executed once and then answered from memory.
    - `max_false_stops`: how often the server may stop at a marker that closes no call.

    Time and cost are limits of the run.
    """

    max_tool_calls: int = 10
    max_tokens: int | None = 2_000
    max_repeats: int = 3
    max_false_stops: int = 20


@value(tag="text-part")
class TextPart:
    """Text that the model wrote."""

    text: str


@value(tag="inserted-text")
class InsertedText:
    """Text that the program inserted: a result, the stop string that was met, a function call as text, or a cue."""

    text: str
    kind: InsertedKind = "result"


@value(tag="executed-call")
class ExecutedCall:
    """One call, with its input as the model wrote it.

    - `result`: the whole result. Its `origin` is "memo" if an earlier result was repeated, and "model" if the model wrote
      it. `shown`: the result as it was inserted into the text, before it was shortened; of an error, its brief form.
    - `fault`: the full error, for the user. `discarded`: what the model had written after the call before it was
      interrupted.
    """

    name: str
    input: str
    result: ToolResult
    shown: str = ""
    fault: str = ""
    discarded: str = ""


@value(tag="rationale")
class Rationale:
    """A chain of thought with its tool calls, and the answer that was read from it ('' for none).

    `value` is the answer as JSON if an output type was given.
    """

    parts: tuple[TextPart | InsertedText, ...] = ()
    calls: tuple[ExecutedCall, ...] = ()
    ending: EndReason = "end"
    tool_mode: ToolMode = "prefill"
    answer: str = ""
    answered_by: AnswerSource = "none"
    value: Json = None

    def __repr__(self) -> str:
        return f"Rationale(answer {truncate(self.answer, 60)!r}, calls {len(self.calls)}, ending {self.ending!r})"

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The transcript; function calls are written as text."""
        return "".join(part.text for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether the model finished by itself; no other answer may count as correct."""
        return self.ending == "end"


NO_CALL_LEFT = "error: no call is left; finish without tools"

MAX_FAULT_CHARS = 8_000

REPEATED = "the same call was requested too often"

UNUSABLE = "error: this input cannot be used"


def brief_error(error: ToolError) -> str:
    """Return the text of an error for a rationale, without any number or example that could pass for a result.

    >>> brief_error(ToolError("an equation needs an arrow", hint="for example H2 + O2 -> H2O"))
    'error: an equation needs an arrow'
    >>> brief_error(ToolError("expected an operator, got 'g' (character 9)"))
    'error: this input cannot be used'
    """
    if any(map(str.isnumeric, error.message)):
        return UNUSABLE
    has_hint = error.hint and not any(map(str.isnumeric, error.hint))
    return f"error: {error.message} ({error.hint})" if has_hint else f"error: {error.message}"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call requested by a model; `input` is its text, and `error` says why it cannot be used."""

    name: str
    input: str
    arguments: Mapping[str, Json]
    error: ToolError | None = None
    discarded: str = ""

    @property
    def key(self) -> bytes:
        """Equal for equal calls."""
        if self.error is None:
            return canonical([self.name, dict(self.arguments)])
        return f"{self.name}\0{self.input}".encode("utf-8", "surrogatepass")


class CallBudget:
    """Executes calls within limits, each call once; `ending` is set when no further call is allowed."""

    def __init__(self, tools: Iterable[ToolSpec], limits: SolveLimits, policy: CallPolicy = REPORTING) -> None:
        self.executed: list[ExecutedCall] = []
        self.ending: EndReason | None = None
        self.specs = {tool.name: tool for tool in tools}
        self.limits = limits
        self._policy = policy
        self._results: dict[bytes, ToolResult | ToolError] = {}
        self._counts = Counter[bytes]()

    def spec(self, name: str) -> ToolSpec:
        """Find a tool by its name, without the namespace `functions.` and a special token behind it, as models for Harmony write them.

        Raises:
            UnknownToolError: no tool has that name.
        """
        normal = normalize_name(name.removeprefix("functions.").partition("<|")[0])
        alike = (spec for spec in self.specs.values() if normalize_name(spec.name) == normal)
        found = self.specs.get(name) or next(alike, None)
        if found is None:
            known = ", ".join(self.specs) or "none"
            raise UnknownToolError(f"unknown tool {name!r}", code="unknown_tool", hint=f"tools: {known}")
        return found

    def request(
        self, name: str, text: str, parse: Callable[[ToolSpec], Mapping[str, Json]], discarded: str = ""
    ) -> RequestedCall:
        """Create a call from its name and text; an unknown name or unusable arguments become its error."""
        try:
            spec = self.spec(name)
            arguments = parse(spec)
        except ToolError as error:
            return RequestedCall(name, text, {}, error, discarded)
        try:
            canonical(dict(arguments))
        except InputError as error:
            return RequestedCall(spec.name, text, {}, ToolError(error.message, code="bad_arguments"), discarded)
        return RequestedCall(spec.name, text, arguments, None, discarded)

    def execute(self, requested: Sequence[RequestedCall]) -> Program[tuple[ExecutedCall | None, ...]]:
        """Answer calls that were requested together, in their order; None for a call beyond the limits.

        New calls are executed in parallel.
        """
        keys = [call.key for call in requested]
        allowed = self._count_allowed(requested, keys)
        new: dict[bytes, RequestedCall] = {}
        for call, key in zip(requested[:allowed], keys, strict=False):
            if call.error is None and key not in self._results and call.name not in self._policy.simulated_tools:
                new.setdefault(key, call)
        calls = [_call_tool(call) for call in new.values()]
        results = ((yield from calls[0]),) if len(calls) == 1 else (yield from gather(calls))
        if any(isinstance(result, LimitError) for result in results):
            self.ending = "calls"
        self._results |= {key: each for key, each in zip(new, results, strict=True) if not isinstance(each, LimitError)}
        done: list[ExecutedCall | None] = []
        for call, key in zip(requested[:allowed], keys, strict=False):
            found = call.error or self._results.get(key)
            if isinstance(found, ToolResult) and new.pop(key, None) is None:
                found = replace(found, origin="memo")
            done.append((yield from self._finish(call, found)))
        if allowed < len(requested):
            done.append((yield from self._refuse(requested[allowed])))
        return (*done, *(None,) * (len(requested) - len(done)))

    def set_model_result(self, place: int, text: str) -> None:
        """Set the text that the model wrote instead of a result."""
        call = self.executed[place]
        self.executed[place] = replace(call, result=replace(call.result, text=text), shown=text)

    def _count_allowed(self, requested: Sequence[RequestedCall], keys: Sequence[bytes]) -> int:
        """Count the calls to answer: those within the limit, up to the first that was repeated too often.

        A call that failed would fail again, so it is not answered twice.
        """
        left = max(self.limits.max_tool_calls - len(self.executed), 0)
        if len(keys) > left:
            self.ending = "calls"
        for place, (call, key) in enumerate(zip(requested[:left], keys, strict=False)):
            self._counts[key] += 1
            failed = call.error is not None or isinstance(self._results.get(key), ToolError)
            if self._counts[key] > (1 if failed else self.limits.max_repeats):
                self.ending = "repeat"
                return place
        return min(left, len(keys))

    def _refuse(self, call: RequestedCall) -> Program[ExecutedCall | None]:
        """Record the first call that is not answered, if it was repeated too often."""
        if self.ending != "repeat":
            return None
        yield from notify(f"{call.name}: {REPEATED}", code="repeat", warning=True)
        return self._record(call, ToolResult("", call.name, error="repeat"), fault=REPEATED)

    def _finish(self, call: RequestedCall, found: ToolResult | ToolError | None) -> Program[ExecutedCall | None]:
        """Record the outcome of a call."""
        if isinstance(found, ToolError):
            return (yield from self._fail(call, found))
        if call.name in self._policy.simulated_tools:
            return self._record(call, ToolResult("", call.name, error="simulated", origin="model"))
        if found is None:
            return None
        if found.origin == "memo":
            yield from notify(f"{call.name}: answered from memory", code="memo")
        return self._record(call, found, found.as_text)

    def _fail(self, call: RequestedCall, error: ToolError) -> Program[ExecutedCall]:
        policy = self._policy.on_unknown if isinstance(error, UnknownToolError) else self._policy.on_error
        policy = (
            "report" if error.code == NOT_APPROVED else policy
        )  # a model is not to write the result of what was refused
        message = f"error: {error.message}" + (f" ({error.hint})" if error.hint else "")
        yield from notify(f"{call.name}: {error.message}", code="tool")
        code, fault = error.code or "error", (error.trace or message)[-MAX_FAULT_CHARS:]
        if policy == "let_model_answer":
            return self._record(call, ToolResult("", call.name, error=code, origin="model"), fault=fault)
        if policy == "stop":
            self.ending = "tool"
        shown = brief_error(error) if policy == "report" else ""
        return self._record(call, ToolResult(message, call.name, error=code), shown, fault)

    def _record(self, call: RequestedCall, result: ToolResult, shown: str = "", fault: str = "") -> ExecutedCall:
        executed = ExecutedCall(call.name, call.input, result, shown, fault, call.discarded)
        self.executed.append(executed)
        return executed


def _call_tool(call: RequestedCall) -> Program[ToolResult | ToolError | LimitError]:
    try:
        return (yield from perform(CallTool(call.name, call.arguments)))
    except ToolError as error:
        return error
    except LimitError as error:
        if error.which != "tool_calls":
            raise
        return error
