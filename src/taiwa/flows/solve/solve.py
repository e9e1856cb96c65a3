"""Tool-interrupted reasoning: `[Complete] → call → [CallTool] → splice → [Complete …] → … → answer`.

After MultiTool-CoT (Inaba et al., ACL 2023): the model writes a rationale, is interrupted where it asks for a tool, and goes
on behind the result. Text and splices joined are the transcript, byte for byte.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from taiwa.flows.solve.answers import NO_ANSWER, Finding, find_answer
from taiwa.flows.solve.native_call_loop import FunctionCallingLoop
from taiwa.flows.solve.rationale import AnswerSource, CallBudget, OnToolError, Rationale, SolveLimits, ToolMode
from taiwa.flows.solve.text_loop import TextLoop, _RationaleBuilder
from taiwa.flows.solve.tool_call_formats import Tagged, ToolCallFormat
from taiwa.kernel.effects import GetCapabilities, Program, notify, perform
from taiwa.kernel.errors import InputError, LimitError, UnsupportedError
from taiwa.kernel.messages import Capability, Message, Request, Sampling, ToolSpec, system, user
from taiwa.structured import OutputType

__all__ = ["SolveOptions", "solve", "ways_for"]


STEPS = "Solve the problem step by step. End with a line that states the answer; its number comes last."

NATIVE = """\
Use the tools for whatever they can work out; never make up a result of a tool yourself. Calls that do not need each other's \
results can be made together."""

NEEDS: dict[ToolMode, Capability] = {"prefill": "prefix", "native": "tools"}

ANSWERED = ("end", "calls")
"""The endings after which there is an answer to be read."""

TYPABLE = frozenset[Capability](("json_schema", "tools"))

USUAL = SolveLimits()


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Options of `solve`.

    - `tool_format`: the text format of tool calls. `tool_mode`: how tool results are returned to the model (None: the best that
      its server supports).
    - `shots`: worked examples, as messages in turn. `system`: instructions in place of ours, "" for none; the description of
      the tool-call format follows them.
    - `on_error`, `on_unknown`: what follows a failed call, and a call of an unknown tool.
    - `withheld`: tools that are described and never called: the model writes their results. `guarded`: whether the
      instructions forbid the model to write results itself.
    - `bounds`: limits of one rationale. `sampling`: how tokens are drawn.
    - `output_type`: a type of the answer. `answer_by`: the ways to find one.
    """

    tool_format: ToolCallFormat = field(default_factory=Tagged)
    tool_mode: ToolMode | None = None
    shots: Sequence[Message] = ()
    system: str | None = None
    on_error: OnToolError = "report"
    on_unknown: OnToolError = "report"
    withheld: Collection[str] = ()
    guarded: bool = True
    bounds: SolveLimits = USUAL
    sampling: Sampling = Sampling()
    output_type: "type[Any] | OutputType[Any] | None" = None
    answer_by: Collection[AnswerSource] = ("typed", "line", "prompt")

    def check(self) -> None:
        """Check the options.

        Raises:
            InputError: one has a value that does not exist, or a bound is too small.
        """
        chosen = (
            ("on_error", self.on_error, get_args(OnToolError)), ("on_unknown", self.on_unknown, get_args(OnToolError)),
            ("tool_mode", self.tool_mode, (None, *get_args(ToolMode))), *(("answer_by", each, get_args(AnswerSource)) for each in self.answer_by),
        )  # fmt: skip
        for name, given, known in chosen:
            if given not in known:
                raise InputError(
                    f"unknown {name} {given!r}; choose one of {', '.join(str(each) for each in known if each)}"
                )
        bounds = self.bounds
        low = {"calls": bounds.calls, "repeats": bounds.repeats - 1, "false_stops": bounds.false_stops}
        for name, number in (*low.items(), ("tokens", 0 if bounds.tokens is None else bounds.tokens - 1)):
            if number < 0:
                raise InputError(f"the bound on {name} is too small: {number}")

    def finding(self, capabilities: frozenset[Capability]) -> Finding:
        """Return how the answer is looked for."""
        wanted = self.output_type
        shape = wanted if isinstance(wanted, OutputType) or wanted is None else OutputType(wanted)
        return Finding(shape, self.answer_by, self.sampling, bool(TYPABLE & capabilities))

    def request(self, question: str, tools: Sequence[ToolSpec], way: ToolMode) -> Request:
        """Return the first request."""
        parts = [STEPS if self.system is None else self.system]
        if tools:
            parts.append(NATIVE if way == "native" else self.tool_format.instructions(tools, guarded=self.guarded))
        head = "\n\n".join(part for part in parts if part)
        messages = (*((system(head),) if head else ()), *self.shots, user(question))
        # With instructions of the caller it is another task than the one that the built-in model learned.
        return Request(messages, sampling=self.sampling, task="solve" if self.system is None else "")


DEFAULT = SolveOptions()


def solve(question: str, tools: Iterable[ToolSpec] = (), options: SolveOptions = DEFAULT) -> Program[Rationale]:
    """Answer a question in words, with the results of tools inserted where the text calls them.

    By what its server supports, the model continues its own text; or, without worked examples, it calls functions; or its text
    is stopped at a call and it is asked to continue. A server that can stop at a string is asked to, which spares tokens;
    nothing depends on it, because the text is watched and cut here.

    Raises (when run):
        InputError: an option has a value that does not exist.
        UnsupportedError: `tool_mode` is set, and the model does not support it.
        RefusalError: the model refused at once.
    """
    known = tuple(tools)
    options.check()
    capabilities = yield from perform(GetCapabilities())
    track, way = yield from _gone(question, known, options, capabilities)
    ending = track.ending or "end"
    answer = NO_ANSWER
    if ending in ANSWERED:
        answer = yield from find_answer(user(question), track.text, options.finding(capabilities), track.final)
    parts, calls = tuple(track.parts), tuple(track.calls.made)
    return Rationale(parts, calls, ending, way, answer.text, answer.by, answer.value)


def ways_for(way: ToolMode | None, capabilities: frozenset[Capability], *, natively: bool) -> tuple[ToolMode, ...]:
    """List the ways to try, best first; `natively` says whether function calls may be chosen.

    Raises:
        UnsupportedError: the way that is asked for needs what the model cannot do.
    """
    if way is not None:
        if way in NEEDS and NEEDS[way] not in capabilities:
            able = ", ".join(each for each in get_args(ToolMode) if each not in NEEDS or NEEDS[each] in capabilities)
            raise UnsupportedError(
                f"the model does not support tool mode {way!r}; supported: {able}", capability=NEEDS[way]
            )
        return (way,)
    ways: list[ToolMode] = ["prefill"] if "prefix" in capabilities else []
    if natively and "tools" in capabilities:
        ways.append("native")
    return (*ways, "stop")


def course_of(
    request: Request, tools: Sequence[ToolSpec], options: SolveOptions, way: ToolMode, *, stops: bool
) -> TextLoop | FunctionCallingLoop:
    """Make the course of a rationale."""
    calls = CallBudget(
        tools,
        options.bounds,
        on_error=options.on_error,
        on_unknown=options.on_unknown,
        withheld=options.withheld,
    )
    if way == "native":
        return FunctionCallingLoop(request, calls, options.bounds, options.tool_format)
    course = TextLoop(request, calls, options.bounds, options.tool_format)
    course.enable(in_place=way == "prefill", stops=stops)
    return course


def _gone(
    question: str, tools: Sequence[ToolSpec], options: SolveOptions, capabilities: frozenset[Capability]
) -> Program[tuple[_RationaleBuilder, ToolMode]]:
    """Go the first way that the server does not refuse after all."""
    ways = ways_for(options.tool_mode, capabilities, natively=not options.shots and bool(tools))
    for place, way in enumerate(ways):
        course = course_of(options.request(question, tools, way), tools, options, way, stops="stop" in capabilities)
        yield from notify(f"way: {way}", code="way")
        try:
            yield from course.run()
        except UnsupportedError as error:
            if course.parts or place + 1 == len(ways):
                raise
            yield from notify(
                f"tool mode {way} was refused; trying {ways[place + 1]}: {error.message}", code="downgrade"
            )
            continue
        except LimitError as error:
            if not course.parts:
                raise
            yield from notify(f"{error.message}; the rationale ends here", code="limit", warning=True)
            course.ending = "limit"
        return course, way
    raise AssertionError("the last way returns or raises")
