"""Tool-interrupted reasoning: `[Complete] → call → [CallTool] → insert result → [Complete …] → … → answer`.

After MultiTool-CoT (Inaba et al., ACL 2023): the model writes a rationale, is interrupted where it calls a tool, and continues
behind the result. Text and insertions joined are the transcript, byte for byte. `vote` takes the majority of several answers
(self-consistency, Wang et al. 2023).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args

from taiwa.flows.solve.answers import FinalAnswer, find_answer
from taiwa.flows.solve.native_call_loop import FunctionCallingLoop
from taiwa.flows.solve.rationale import AnswerSource, CallBudget, OnToolError, Rationale, SolveLimits, ToolMode
from taiwa.flows.solve.text_loop import RationaleBuilder, TextLoop
from taiwa.flows.solve.tool_call_formats import TaggedFormat, ToolCallFormat
from taiwa.kernel.effects import GetCapabilities, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, LimitError, OutputValidationError, UnsupportedError
from taiwa.kernel.messages import Capability, Message, Request, Sampling, ToolSpec, system, user
from taiwa.kernel.records import value
from taiwa.structured import OutputType

INSTRUCTIONS = "Solve the problem step by step. End with a line that states the answer; its number comes last."

NATIVE_INSTRUCTIONS = """\
Use the tools for whatever they can work out; never make up a result of a tool yourself. Calls that do not need each other's \
results can be made together."""

REQUIRED_CAPABILITIES: dict[ToolMode, Capability] = {"prefill": "prefix", "native": "tools"}

DEFAULT_LIMITS = SolveLimits()


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Options of `solve`.

    - `tool_format`: the text format of tool calls. `tool_mode`: how tool results are returned to the model (None: the best that
      its server supports).
    - `shots`: worked examples, as messages in turn. `system`: instructions in place of the built-in ones, "" for none; the
      description of the tool-call format follows them.
    - `on_error`, `on_unknown`: what to do when a call fails, and when it names an unknown tool.
    - `simulated_tools`: tools that are described and never executed: the model writes their results.
      `forbid_own_results`: whether the instructions forbid the model to write results itself.
    - `limits`: limits of one rationale. `sampling`: how tokens are sampled.
    - `output_type`: a type of the answer. `answer_by`: where the answer may be taken from.
    - `min_confidence`: of a model that states its confidence, a less confident rationale gives no answer; 0 takes every one.
    """

    tool_format: ToolCallFormat = field(default_factory=TaggedFormat)
    tool_mode: ToolMode | None = None
    shots: Sequence[Message] = ()
    system: str | None = None
    on_error: OnToolError = "report"
    on_unknown: OnToolError = "report"
    simulated_tools: Collection[str] = ()
    forbid_own_results: bool = True
    limits: SolveLimits = DEFAULT_LIMITS
    sampling: Sampling = Sampling()
    output_type: "type[Any] | OutputType[Any] | None" = None
    answer_by: Collection[AnswerSource] = ("typed", "line", "prompt")
    min_confidence: float = 0.4

    def check(self) -> None:
        """Check the options.

        Raises:
            InputError: an option has an unknown value, or a limit is too small.
        """
        chosen = (
            ("on_error", self.on_error, get_args(OnToolError)), ("on_unknown", self.on_unknown, get_args(OnToolError)),
            ("tool_mode", self.tool_mode, (None, *get_args(ToolMode))), *(("answer_by", each, get_args(AnswerSource)) for each in self.answer_by),
        )  # fmt: skip
        for name, choice, known in chosen:
            if choice not in known:
                raise InputError(
                    f"unknown {name} {choice!r}; choose one of {', '.join(str(each) for each in known if each)}"
                )
        for name, least in (("max_tool_calls", 0), ("max_tokens", 1), ("max_repeats", 1), ("max_false_stops", 0)):
            number = getattr(self.limits, name)
            if number is not None and number < least:
                raise InputError(f"{name} must be at least {least}, got {number}")

    def request(self, question: str, tools: Sequence[ToolSpec], mode: ToolMode) -> Request:
        """Make the first request."""
        parts = [INSTRUCTIONS if self.system is None else self.system]
        if tools and mode == "native":
            parts.append(NATIVE_INSTRUCTIONS)
        elif tools:
            parts.append(self.tool_format.instructions(tools, forbid_own_results=self.forbid_own_results))
        head = "\n\n".join(part for part in parts if part)
        messages = (*((system(head),) if head else ()), *self.shots, user(question))
        # With instructions of the caller it is not the task that the built-in model was trained for.
        return Request(messages, sampling=self.sampling, task="solve" if self.system is None else "")


DEFAULT_OPTIONS = SolveOptions()


def solve(question: str, tools: Iterable[ToolSpec] = (), options: SolveOptions = DEFAULT_OPTIONS) -> Program[Rationale]:
    """Answer a question in words, with the results of tools inserted where the text calls them.

    By what its server supports, the model continues its own text; or, without worked examples, it calls functions; or its text
    is stopped at a call and it is asked to continue. A server that supports stop strings gets them, which saves tokens;
    nothing depends on it, because the text is watched and cut here.

    Raises (when run):
        InputError: an option has an unknown value.
        UnsupportedError: `tool_mode` is set, and the model does not support it.
        RefusalError: the model refused at once.
    """
    specs = tuple(tools)
    options.check()
    capabilities = yield from perform(GetCapabilities())
    loop, mode = yield from _run_loop(question, specs, options, capabilities)
    ending = loop.ending or "end"
    if ending == "end" and loop.confidence is not None and loop.confidence < options.min_confidence:
        ending = "unsure"
    answer = FinalAnswer()
    if ending in ("end", "calls"):
        is_enforced = "json_schema" in capabilities or "tools" in capabilities
        answer = yield from find_answer(
            user(question), loop.text, options.output_type, options.answer_by, options.sampling,
            is_enforced=is_enforced, final=loop.final,
        )  # fmt: skip
    parts, calls = tuple(loop.parts), tuple(loop.calls.executed)
    return Rationale(parts, calls, ending, mode, answer.text, answer.answered_by, answer.value, loop.confidence)


def tool_modes(
    mode: ToolMode | None, capabilities: frozenset[Capability], *, allow_native: bool
) -> tuple[ToolMode, ...]:
    """List the tool modes to try, best first: only `mode` where it is set.

    Raises:
        UnsupportedError: the model does not support `mode`.
    """
    supported = [each for each in get_args(ToolMode) if REQUIRED_CAPABILITIES.get(each) in (None, *capabilities)]
    if mode is not None:
        if mode not in supported:
            raise UnsupportedError(
                f"the model does not support tool mode {mode!r}; supported: {', '.join(supported)}",
                capability=REQUIRED_CAPABILITIES[mode],
            )
        return (mode,)
    order: tuple[ToolMode, ...] = ("prefill", "native", "stop")
    return tuple(each for each in order if each in supported and (allow_native or each != "native"))


def _run_loop(
    question: str, tools: Sequence[ToolSpec], options: SolveOptions, capabilities: frozenset[Capability]
) -> Program[tuple[RationaleBuilder, ToolMode]]:
    """Run the loop of the first tool mode that the server does not refuse.

    A server may refuse a mode at its second request only, which is the first one that continues a text or has results. The next
    mode then goes on with the text so far.
    """
    allow_native = not options.shots and bool(tools)
    modes: list[ToolMode] = list(tool_modes(options.tool_mode, capabilities, allow_native=allow_native))
    refused: RationaleBuilder | None = None
    while True:
        mode = modes.pop(0)
        request = options.request(question, tools, mode)
        calls = CallBudget(tools, options.limits, options.on_error, options.on_unknown, options.simulated_tools)
        loop: TextLoop | FunctionCallingLoop
        if mode == "native":
            loop = FunctionCallingLoop(request, calls, options.tool_format)
        else:
            loop = TextLoop(
                request, calls, options.tool_format, prefill=mode == "prefill", stops="stop" in capabilities
            )
            if refused is not None:
                yield from loop.take_over(refused)
        yield from notify(f"tool mode: {mode}", code="tool_mode")
        try:
            yield from loop.run()
        except UnsupportedError as error:
            if loop.parts:
                refused, modes = loop, [each for each in modes if each != "native"]  # a text has no function calls
            if not modes:
                raise
            yield from notify(f"tool mode {mode} was refused; trying {modes[0]}: {error.message}", code="downgrade")
            continue
        except LimitError as error:
            if not loop.parts:
                raise
            yield from notify(f"{error.message}; the rationale ends here", code="limit", warning=True)
            loop.ending = "limit"
        return loop, mode


A = TypeVar("A")


@value(tag="vote")
class Vote(Generic[A]):
    """The most frequent answer, its count, all answers in order, and how many programs `failed` with an invalid answer."""

    winner: A
    count: int
    answers: tuple[A, ...]
    failed: int = 0


def vote(program: Callable[[int], Program[A]], n: int, *, by: Callable[[A], object] | None = None) -> Program[Vote[A]]:
    """Run `program(0)` … `program(n - 1)` in parallel and take the majority; of equal counts, the answer that is first.

    `by` returns what must be equal, such as only the number of an answer. The argument of `program` may serve as its seed.

    Raises (when run):
        InputError: n is less than 1.
        OutputValidationError: every answer was invalid; this is the error of the first.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    outcomes = yield from gather(_answer(program(index)) for index in range(n))
    answers = tuple(outcome[0] for outcome in outcomes if isinstance(outcome, tuple))
    errors = [outcome for outcome in outcomes if isinstance(outcome, OutputValidationError)]
    if not answers:
        raise errors[0]
    keys: list[object] = []  # compared by `==`, because not every value can be hashed
    groups: list[list[A]] = []
    for answer in answers:
        key = answer if by is None else by(answer)
        if key in keys:
            groups[keys.index(key)].append(answer)
        else:
            keys.append(key)
            groups.append([answer])
    most = max(groups, key=len)
    return Vote(most[0], len(most), answers, len(errors))


def _answer(program: Program[A]) -> Program[tuple[A] | OutputValidationError]:
    """Return an invalid answer as its error; any other error ends the vote."""
    try:
        return ((yield from program),)
    except OutputValidationError as error:
        return error
