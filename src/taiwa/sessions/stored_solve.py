"""Stored solving: questions solved with tools, each in a run of the store with its prompt, calls and usage."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from taiwa.apps.examples import (
    ResultOf,
    WorkedExample,
    built_in_examples,
    first_examples,
    render,
    render_native,
    results,
    select_examples,
    usable,
)
from taiwa.flows.solve.rationale import Rationale, ToolMode
from taiwa.flows.solve.solve import SolveOptions, tool_modes
from taiwa.flows.solve.solve import solve as flow
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.execution import Observer, RunResult, first_request
from taiwa.kernel.messages import Capability, Message, Notice, Request, Sampling, TextDelta
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, digest, record
from taiwa.sessions.commit_turn import PricedModel, TurnOptions, run_outside_sessions
from taiwa.sessions.repository import Repository
from taiwa.structured import OutputType
from taiwa.tools.registry import builtin_tools

SHOTS = 5
"""The default number of worked examples of a tool-call format in text."""

SolveEvent: TypeAlias = TextDelta | Notice | RunResult[Rationale]


@dataclass(frozen=True, slots=True)
class ReasonRun:
    """A question's tools, options and worked examples.

    `examples` are worked examples to show; None selects `shots` of the built-in ones, by the `seed`: first those whose tools
    are offered, then others, in which the results of other tools are stated in words. `shots=None` means five if calls are
    in the text, and none if the model calls functions, or if no built-in example calls any of the tools. `text_only`
    excludes function calling if `options.tool_mode` is None.
    """

    tools: tuple[Tool, ...]
    options: SolveOptions = field(default_factory=SolveOptions)
    shots: int | None = None
    seed: int = 0
    examples: tuple[WorkedExample, ...] | None = None
    text_only: bool = False

    def program(self, question: str, capabilities: frozenset[Capability]) -> Program[Rationale]:
        """Return the program that solves a question with a model of these capabilities.

        Raises:
            InputError: the question is empty, there are too few examples, or one cannot be evaluated.
        """
        if not question.strip():
            raise InputError("the question is empty")
        mode = self.tool_mode(capabilities)
        # Without a mode the program may still fall back from one to another.
        is_fixed = self.options.tool_mode is not None or (self.text_only and mode == "stop")
        built_in = builtin_tools()
        calculates = all(tool.spec.name in built_in for tool in self.tools) and self.options.on_error == "report"
        options = replace(
            self.options,
            tool_mode=mode if is_fixed else None,
            shots=self._messages(mode),
            retry_without_tools=self.options.retry_without_tools or calculates,
        )
        return flow(question, [tool.spec for tool in self.tools], options)

    def tool_mode(self, capabilities: frozenset[Capability]) -> ToolMode:
        """Choose the tool mode: prefill if the server supports it; else function calling, if neither a mode nor examples are
        requested; else stop.
        """
        if self.options.tool_mode is not None:
            return self.options.tool_mode
        free = not self.text_only and not self.shots and self.examples is None
        return tool_modes(None, capabilities, allow_native=free and bool(self.tools))[0]

    def select_shots(self, mode: ToolMode) -> tuple[WorkedExample, ...]:
        """Return the worked examples to show.

        Raises:
            InputError: there are fewer than `shots`.
        """
        if self.examples is not None:
            if self.shots is not None and not 0 <= self.shots <= len(self.examples):
                raise InputError(
                    f"shots must be at most {len(self.examples)}, the number of worked examples; got {self.shots}"
                )
            return self.examples[: self.shots]
        if self.shots == 0 or (self.shots is None and mode == "native"):
            return ()
        offered = {tool.spec.name for tool in self.tools}
        able = usable(built_in_examples(), self._results())
        fitting = [worked for worked in able if not offered or set(worked.tools) <= offered]
        others = [worked for worked in able if worked not in fitting]
        first = select_examples(fitting, len(fitting), self.seed)
        if not self.seed:
            first = first_examples(first)
        order = (*first, *select_examples(others, len(others), self.seed))
        if self.shots is not None and self.shots > len(order):
            raise InputError(f"shots must be at most {len(order)}, the number of worked examples; got {self.shots}")
        if self.shots is None and offered and not any(worked.tools for worked in fitting):
            return ()  # examples without calls would teach the model not to call tools
        return order[: min(SHOTS, len(fitting)) if self.shots is None else self.shots]

    def to_json(self, mode: ToolMode) -> dict[str, Json]:
        """Return everything that an answer depends on except the question and the model."""
        output_type = self.options.output_type
        if output_type is not None and not isinstance(output_type, OutputType):
            output_type = OutputType(output_type)
        options: dict[str, Json] = {
            "tools": [tool.spec.name for tool in self.tools],
            "tool_format": self.options.tool_format.name,
            "tool_mode": mode,
            "shots": digest(self._messages(mode)),
            "policy": [self.options.on_error, self.options.on_unknown],
            "limits": record(self.options.limits),
            "answer_by": list(self.options.answer_by),
            "type": None if output_type is None else digest(output_type.schema()),
        }
        sampling = None if self.options.sampling == Sampling() else record(self.options.sampling)
        more: dict[str, Json] = {"system": self.options.system, "sampling": sampling}
        return options | {name: each for name, each in more.items() if each is not None}

    def first_request(self, question: str, capabilities: frozenset[Capability]) -> Request:
        """Return the request that is sent first; nothing is sent.

        Raises:
            TaiwaError: as `program`, or the model does not support the tool mode.
        """
        return first_request(self.program(question, capabilities), capabilities)

    def _messages(self, mode: ToolMode) -> tuple[Message, ...]:
        results_of, tool_format = self._results(), self.options.tool_format
        specs = {tool.spec.name: tool.spec for tool in (*builtin_tools().values(), *self.tools)}
        offered = {tool.spec.name for tool in self.tools}
        messages: list[Message] = []
        for worked in self.select_shots(mode):
            try:
                if mode == "native":
                    messages += render_native(
                        worked, results_of, lambda name, text: tool_format.parse_arguments(specs[name], text)
                    )
                else:
                    messages += render(worked, tool_format, results_of, offered)
            except ToolError as error:
                where = f"worked example {worked.id} ({worked.question[:40]!r})"
                raise InputError(f"{where} cannot be evaluated: {error.message}") from error
        return tuple(messages)

    def _results(self) -> ResultOf:
        """Return the results of tool calls, of offered and built-in tools, for examples that state them in words."""
        return results((*builtin_tools().values(), *self.tools), self.options.tool_format)


def solve_and_store(
    repository: Repository,
    priced_model: PricedModel,
    turns: TurnOptions,
    solve_run: ReasonRun,
    question: str,
    observers: Iterable[Observer] = (),
) -> Iterator[SolveEvent]:
    """Solve a question; yield text and notices as they arrive, then `RunResult`. Its calls are stored as they are answered,
    even if it fails.

    Raises:
        TaiwaError: the question cannot be solved, or a call failed; `spent` holds the usage of the run.
    """
    capabilities = priced_model.model.capabilities
    program, options = solve_run.program(question, capabilities), replace(turns, tools=solve_run.tools)
    recorded = solve_run.to_json(solve_run.tool_mode(capabilities))
    return run_outside_sessions(repository, priced_model, options, program, question, recorded, observers)
