"""How an answer of a type is asked for: held to its schema by the server, as a call of a function, or in plain words.

The mode follows from what the server can do, and is left for the next one when it turns out that it cannot. Whatever the
mode, the answer is read and checked in the same way, for a server's promise is not always kept.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, Watcher, notify, perform
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    JsonSchema,
    Message,
    Request,
    Response,
    Sampling,
    Task,
    ToolCall,
    ToolSpec,
    system,
)
from taiwa.kernel.records import Json
from taiwa.structured import ParseOptions, ParseResult

__all__ = ["Choice", "OutputMode", "OutputSpec", "TypedRequest", "TypedResponse", "complete_typed", "modes_for"]


T = TypeVar("T")

OutputMode: TypeAlias = Literal["native", "tool", "tool_optional", "prompt"]
"""Held to the schema by the server · as a call of the one function that must be called · of one that may be · in words."""

Choice: TypeAlias = OutputMode | Literal["auto"]

NEEDS: dict[OutputMode, Capability] = {"native": "json_schema", "tool": "tools"}

REFUSALS: dict[OutputMode, str] = {
    "native": "json_schema response_format structured_outputs output_config format schema",
    "tool": "tools tool_choice functions function_call json_schema",
    "tool_optional": "tools tool_choice functions function_call json_schema",
}
"""What a server names when it refuses a mode: the ability, or the parameter of its protocol."""

TYPED = """\
Reply only with JSON of this type, and nothing else:

{type}"""

FORCED = "Answer by calling the function {name}, once, and say nothing else."

OFFERED = "When you have what the function {name} takes, call it; its arguments are the answer."

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class OutputSpec(Protocol[T]):
    """What can be asked for: a `Shape`, or whatever else has a text for the model, a schema and a reader."""

    @property
    def name(self) -> str:
        """What the answer is called."""
        ...

    def render(self) -> str:
        """Write the type as a model should see it."""
        ...

    def schema(self) -> dict[str, Json]:
        """Give its JSON Schema."""
        ...

    def parse(self, text: str, options: ParseOptions) -> ParseResult[T]:
        """Read the text of an answer.

        Raises:
            ShapeError: no value of the type can be read from it.
        """
        ...


def modes_for(choice: Choice) -> Program[tuple[OutputMode, ...]]:
    """List the modes to try: the one that was chosen, or all that the server has the abilities for, best first.

    Raises (when run):
        InputError: there is no mode of that name.
    """
    if choice != "auto":
        if choice not in get_args(OutputMode):
            raise InputError(f"{choice!r} is no mode: choose auto, {', '.join(get_args(OutputMode))}")
        return (choice,)
    capabilities = yield from perform(GetCapabilities())
    able: list[OutputMode] = [mode for mode, capability in NEEDS.items() if capability in capabilities]
    return (*able, "prompt")


@dataclass(frozen=True, slots=True)
class TypedRequest(Generic[T]):
    """A question for a value; `watch` decides what a person sees of the answer while it comes."""

    wanted: OutputSpec[T]
    said: tuple[Message, ...]
    sampling: Sampling
    watch: Callable[[], Watcher] = HideOutput
    brief: str = ""
    """A last sentence of the instructions."""
    task: Task = "extract"

    def request(self, mode: OutputMode, more: tuple[Message, ...] = ()) -> Request:
        """Write the request in a mode; `more` follows what was said."""
        messages = (*self._messages(mode), *more)
        request = Request(messages, sampling=self.sampling, task=self.task)
        if mode == "native":
            return replace(request, constraint=JsonSchema(self.wanted.schema(), self.wanted.name))
        if mode == "prompt":
            return request
        # Of one function "required" says the same as its name, and more servers understand it.
        return replace(request, tools=(self.function,), tool_choice="required" if mode == "tool" else "auto")

    @property
    def function(self) -> ToolSpec:
        """The answer as a function whose arguments it is."""
        name = NOT_IN_NAMES.sub("_", self.wanted.name)[:64] or "answer"
        return ToolSpec(name, f"Takes the answer, {self.wanted.name}.", self.wanted.schema())

    def _messages(self, mode: OutputMode) -> tuple[Message, ...]:
        """Put the type into the one system message, where a prefix cache keeps it."""
        if mode in ("native", "prompt"):
            wanted = TYPED.format(type=self.wanted.render())
        else:
            wanted = (FORCED if mode == "tool" else OFFERED).format(name=self.function.name)
        wanted += f"\n\n{self.brief}" if self.brief else ""
        if self.said and self.said[0].role == "system":
            return system(f"{self.said[0].text.rstrip()}\n\n{wanted}"), *self.said[1:]
        return system(wanted), *self.said


@dataclass(frozen=True, slots=True)
class TypedResponse:
    """An answer, the modes that are left (its own first), and why each mode before it was given up."""

    response: Response
    request: Request
    modes: tuple[OutputMode, ...]
    downgrades: tuple[str, ...] = ()

    @property
    def mode(self) -> OutputMode:
        """The mode that it was asked for in."""
        return self.modes[0]

    @property
    def call(self) -> ToolCall | None:
        """The call that holds the answer: of several the last, as of several values in a text."""
        calls = self.response.message.tool_calls
        return calls[-1] if calls and self.mode in ("tool", "tool_optional") else None

    @property
    def text(self) -> str:
        """The text to read: the arguments of the call, else the words."""
        return self.response.text if self.call is None else self.call.arguments


def complete_typed(
    asking: TypedRequest[T], modes: tuple[OutputMode, ...], more: Callable[[OutputMode], tuple[Message, ...]]
) -> Program[TypedResponse]:
    """Ask in the first mode that the server does not refuse; `more` follows what was said.

    Raises (when run):
        UnsupportedError: the server refuses the last mode, or something that no mode could change.
    """
    downgrades: tuple[str, ...] = ()
    while True:
        request = asking.request(modes[0], more(modes[0]))
        try:
            response = yield from perform(Complete(request, asking.watch))
        except UnsupportedError as error:
            if len(modes) == 1 or (
                error.capability and error.capability.partition(".")[0] not in REFUSALS[modes[0]].split()
            ):
                raise
            downgrades = (*downgrades, f"{modes[0]}: {error.message}")
            yield from notify(f"asked in the mode {modes[1]!r} instead: {error.message}", code="downgrade")
            modes = modes[1:]
        else:
            return TypedResponse(response, request, modes, downgrades)
