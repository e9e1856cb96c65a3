"""The programs that make turns: those of files, and the built-in ones.

`solve` solves problems step by step with tools, `extract` and `route` read values of a type, or of one of several; each after the
turns before.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from taiwa.apps.catalog import values_of
from taiwa.apps.examples import (
    ResultOf,
    WorkedExample,
    built_in_examples,
    first_examples,
    read_shots_text,
    render,
    render_native,
    results,
    select_examples,
    usable,
)
from taiwa.conversation.app import EXTRACT, ROUTE, SOLVE, App, merge_sampling, settled
from taiwa.conversation.history import Conversation
from taiwa.conversation.replies import TypedWatch
from taiwa.flows.extract import RepairPolicy
from taiwa.flows.extract import extract as extracting
from taiwa.flows.program_turn import TurnProgram, earlier_messages, program_of
from taiwa.flows.route import CONTENT, TO, NeedsClarification, Routed, Routes
from taiwa.flows.solve.rationale import CallPolicy, Rationale, SolveLimits, ToolMode
from taiwa.flows.solve.solve import ANSWER_LABEL, SolveOptions, tool_modes
from taiwa.flows.solve.solve import solve as solving
from taiwa.flows.solve.tool_call_formats import tool_call_format
from taiwa.flows.turn import Findings, Reply
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import GetCapabilities, HideOutput, Program, perform
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import Capability, Message, Sampling, assistant, system, user
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType
from taiwa.tools.registry import builtin_tools


def turn_program(app: App, tools: Iterable[Tool], attachments: tuple[Attachment, ...] = ()) -> TurnProgram:
    """Return the program of a turn of an app, whose text has these attachments.

    Raises:
        ConfigError: its file was not confirmed. InputError: the app has no type to extract.
    """
    if app.flow in (EXTRACT, ROUTE):
        return extract_turn(app, attachments)
    return solve_turn(tools) if app.flow == SOLVE else program_of(app.flow)


# --- solve ------------------------------------------------------------------------------------------------------------

SHOTS = 5
"""The default number of worked examples of a tool-call format in text."""


@dataclass(frozen=True, slots=True)
class Solving:
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

    def program(
        self, question: str, capabilities: frozenset[Capability], earlier: Iterable[Message] = ()
    ) -> Program[Rationale]:
        """Return the program that solves a question with a model of these capabilities, after `earlier` messages.

        Raises:
            InputError: the question is empty, there are too few examples, or one cannot be evaluated.
        """
        if not question.strip():
            raise InputError("the question is empty")
        mode = self.tool_mode(capabilities)
        # Without a mode the program may still fall back from one to another.
        is_fixed = self.options.tool_mode is not None or (self.text_only and mode == "stop")
        built_in = builtin_tools()
        calculates = all(tool.spec.name in built_in for tool in self.tools) and self.options.calls.on_error == "report"
        calls = self.options.calls
        options = replace(
            self.options,
            tool_mode=mode if is_fixed else None,
            shots=(*self._messages(mode), *earlier),
            calls=replace(calls, retry_without_tools=calls.retry_without_tools or calculates),
        )
        return solving(question, [tool.spec for tool in self.tools], options)

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


def solving_of(app: App, tools: Iterable[Tool]) -> Solving:
    """Return the tools and options of the app `solve`, from its parameters and the options of its answers.

    Raises:
        InputError: an option has an unknown value, or a worked example an error.
    """
    values = values_of(app, SOLVE)
    only, form, mode, by = (values[name] for name in ("only", "tool_format", "tool_mode", "answer_by"))
    limits = SolveLimits(values["max_tool_calls"], values["max_tokens"] or SolveLimits().max_tokens)
    options = SolveOptions(
        tool_format=tool_call_format(form if form not in ("", "native") else "tagged"),
        tool_mode="native" if form == "native" else None if mode == "auto" else mode,
        system=app.instructions or None,
        sampling=settled(Sampling(app.answer_options.sampling.temperature)),
        calls=CallPolicy(*(values[name].replace("-", "_") for name in ("on_error", "on_unknown"))),
        limits=limits,
        output_type=app.output_type,
        answer_by=("typed", "line", "prompt") if by == "auto" else ("typed", by),
    )
    own = app.tools[: len(app.tools) - len(app.options.tools)]
    chosen = tuple(
        tool for name, tool in zip(app.tools, tools, strict=True) if name not in own or only is None or name in only
    )
    examples = read_shots_text(values["examples"], "the worked examples") if values["examples"] else None
    text_only = mode == "auto" and form not in ("", "native")
    return Solving(chosen, options, values["shots"], values["seed"], examples, text_only)


def preset(tool: Tool, app: App) -> Tool:
    """Return a tool with the atomic weights, or the rounding, that the app `solve` has; any other tool as it is."""
    weights, decimals = app.values.get("weights", "iupac"), app.values.get("round")
    if weights != "iupac":
        from taiwa.tools.chemical_formulas import molar_mass

        tool = molar_mass.preset(weights=weights) if tool is molar_mass else tool
    if isinstance(decimals, int):
        from taiwa.tools.calculator import calculator, rounding_calculator

        tool = rounding_calculator(decimals) if tool is calculator else tool
    return tool


def solve_turn(tools: Iterable[Tool]) -> TurnProgram:
    """Return the program of the turns of the app `solve`: earlier turns are the messages before the question."""
    offered = tuple(tools)

    def solve(conversation: Conversation, text: str) -> Program[Reply]:
        capabilities = yield from perform(GetCapabilities())
        chosen = solving_of(conversation.app, offered)
        rationale = yield from chosen.program(text, capabilities, earlier_messages(conversation))
        stated = rationale.answer and rationale.answer not in rationale.text.rpartition("\n")[2]
        said = f"{rationale.text.rstrip()}\n\n{ANSWER_LABEL} {rationale.answer}" if stated else rationale.text
        return Reply(said, value=rationale.value, findings=Findings(calls=rationale.calls, rationale=rationale))

    return solve


# --- extract, route ---------------------------------------------------------------------------------------------------


def extract_turn(app: App, attachments: tuple[Attachment, ...] = ()) -> TurnProgram:
    """Return the program of a turn of the apps `extract` and `route`, whose text has these attachments.

    Raises:
        InputError: the app has no type, or no types to choose from.
    """
    wanted, values = _wanted(app), values_of(app, EXTRACT)

    def extract(conversation: Conversation, text: str) -> Program[Reply]:
        opening: list[Message] = [system(app.instructions)] if app.instructions else []
        for shown in app.examples:
            opening += [user(shown.user), assistant(shown.answer)]
        found = yield from extracting(
            wanted,
            (*opening, *earlier_messages(conversation), user(text, attachments)),
            repair=RepairPolicy(values["max_repairs"], guess=values["guess"]),
            mode=values["mode"],
            sampling=settled(merge_sampling(app.sampling, app.answer_options.sampling)),
            watch=TypedWatch(wanted, in_member=False) if isinstance(wanted, OutputType) else HideOutput,
        )
        findings = Findings(attempts=found.attempts)
        if isinstance(found.value, NeedsClarification):
            return Reply(found.value.question, findings=findings)
        value = _dump(wanted, found.value)
        typed = found.value if isinstance(wanted, OutputType) else None
        return Reply(json.dumps(value, ensure_ascii=False), value=value, typed=typed, findings=findings)

    return extract


def _wanted(app: App) -> OutputType[Any] | Routes:
    """Return the type of the answers of an app; with `flow: route` the members of the type are the types to choose from.

    Raises:
        InputError: it has no type, or its type has no members.
    """
    whole = app.output_type
    if whole is None:
        raise InputError(f"the app {app.name!r} requires a type; give one: `answer` in its file, or --type TYPE")
    if app.flow != ROUTE:
        return whole
    schema = whole.json_schema.schema
    types, shared = schema.get("properties"), {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    if not isinstance(types, dict) or not types:
        raise InputError(f"the app {app.name!r} requires types to choose from: `answer: {{ NAME: TYPE, … }}`")
    members = cast("dict[str, dict[str, Json]]", types)
    return Routes({name: OutputType.from_json_schema(shared | each, name=name) for name, each in members.items()})


def _dump(wanted: OutputType[Any] | Routes, value: object) -> Json:
    if isinstance(wanted, Routes):
        assert isinstance(value, Routed), "a question was returned before"
        target = wanted.targets[value.to]
        return {TO: value.to, CONTENT: target.dump(value.value) if isinstance(target, OutputType) else None}
    return wanted.dump(value)
