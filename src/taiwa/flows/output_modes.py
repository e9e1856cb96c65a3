"""Output modes of a typed answer: with its schema enforced by the server, as a function call, or by the prompt.

The mode follows from the capabilities of the server; the next one is tried where the server refuses it. The answer is parsed
and validated in every mode, because servers do not always keep what they promise.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from taiwa.conversation.turn_prompt import TYPED
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
    user,
)
from taiwa.kernel.records import Json
from taiwa.structured import ParseOptions, ParseResult

T = TypeVar("T")

OutputMode: TypeAlias = Literal["native", "tool", "tool_optional", "prompt"]
"""The server enforces the schema · a call of a function is required · a call is optional · the prompt describes the type."""

PromptStyle: TypeAlias = Literal["plain", "typechat"]
"""How a request is worded where it shows the type: the type in the system message, or all in one message as TypeChat words it."""

ModeChoice: TypeAlias = OutputMode | Literal["auto"]

NEEDS: dict[OutputMode, Capability] = {"native": "json_schema", "tool": "tools"}

REFUSALS: dict[OutputMode, str] = {
    "native": "json_schema response_format structured_outputs output_config format schema",
    "tool": "tools tool_choice functions function_call json_schema",
    "tool_optional": "tools tool_choice functions function_call json_schema",
}
"""What a server names when it refuses a mode: the capability, or the parameter of its protocol."""

TYPECHAT = """\
You are a service that translates user requests into JSON objects of type "{name}" according to the following TypeScript definitions:
```
{type}
```
The following is a user request:
\"\"\"
{request}
\"\"\"
The following is the user request translated into a JSON object with 2 spaces of indentation and no properties with the value undefined:
"""
"""The request prompt of TypeChat, https://github.com/microsoft/TypeChat (MIT, Microsoft Corporation)."""

FORCED = "Answer by calling the function {name}, once, and say nothing else."

OFFERED = "When you have what the function {name} takes, call it; its arguments are the answer."

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class OutputSpec(Protocol[T]):
    """What can be requested: an `OutputType`, or any object with a text for the model, a schema and a parser."""

    @property
    def name(self) -> str:
        """The name of the type."""
        ...

    def render(self) -> str:
        """Write the type for a model."""
        ...

    def schema(self) -> dict[str, Json]:
        """Return its JSON Schema."""
        ...

    def parse(self, text: str, options: ParseOptions) -> ParseResult[T]:
        """Parse the text of an answer.

        Raises:
            OutputValidationError: it holds no value of the type.
        """
        ...


def modes_for(choice: ModeChoice, task: Task = "") -> Program[tuple[OutputMode, ...]]:
    """List the modes to try: the chosen one, or all that the server supports, best first.

    Raises (when run):
        InputError: the mode is unknown.
    """
    if choice != "auto":
        if choice not in get_args(OutputMode):
            raise InputError(f"unknown mode {choice!r}; choose one of auto, {', '.join(get_args(OutputMode))}")
        return (choice,)
    capabilities = yield from perform(GetCapabilities(task))
    able: list[OutputMode] = [mode for mode, capability in NEEDS.items() if capability in capabilities]
    return (*able, "prompt")


@dataclass(frozen=True, slots=True)
class TypedRequest(Generic[T]):
    """A request for a value; `watch` decides what is shown of the answer while it is streamed."""

    wanted: OutputSpec[T]
    messages: tuple[Message, ...]
    sampling: Sampling
    watch: Callable[[], Watcher] = HideOutput
    brief: str = ""
    """A last sentence of the instructions."""
    task: Task = "extract"
    style: PromptStyle = "plain"

    def request(self, mode: OutputMode, more: tuple[Message, ...] = ()) -> Request:
        """Make the request of a mode; `more` follows the messages."""
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
        """The function whose arguments are the answer."""
        name = NOT_IN_NAMES.sub("_", self.wanted.name)[:64] or "answer"
        return ToolSpec(name, f"Takes the answer, {self.wanted.name}.", self.wanted.schema())

    def _messages(self, mode: OutputMode) -> tuple[Message, ...]:
        """Put the type into the system message, where a prefix cache keeps it, or around the user's last message."""
        if self.style == "typechat" and mode in ("native", "prompt"):
            *before, last = self.messages
            rendered = self.wanted.render()
            text = TYPECHAT.format(name=self.wanted.name, type=rendered, request=last.text)
            return *before, user(text + self.brief, last.attachments)
        if mode in ("native", "prompt"):
            wanted = TYPED.format(type=self.wanted.render())
        else:
            wanted = (FORCED if mode == "tool" else OFFERED).format(name=self.function.name)
        wanted += f"\n\n{self.brief}" if self.brief else ""
        if self.messages and self.messages[0].role == "system":
            return system(f"{self.messages[0].text.rstrip()}\n\n{wanted}"), *self.messages[1:]
        return system(wanted), *self.messages


@dataclass(frozen=True, slots=True)
class TypedResponse:
    """A response, the modes that are left (its own first), and why each mode before it was given up."""

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
        """The function call that holds the answer: the last of several, as with several values in a text."""
        calls = self.response.message.tool_calls
        return calls[-1] if calls and self.mode in ("tool", "tool_optional") else None

    @property
    def text(self) -> str:
        """The text to parse: the arguments of the function call, else the text."""
        return self.response.text if self.call is None else self.call.arguments


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
            if len(modes) == 1 or (
                error.capability and error.capability.partition(".")[0] not in REFUSALS[modes[0]].split()
            ):
                raise
            downgrades = (*downgrades, f"{modes[0]}: {error.message}")
            yield from notify(f"trying output mode {modes[1]!r} instead: {error.message}", code="downgrade")
            modes = modes[1:]
        else:
            return TypedResponse(response, request, modes, downgrades)
