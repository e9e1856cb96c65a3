"""Tool-interrupted reasoning: `[Complete] → trigger → [CallTool] → splice → [Complete prefix=…] → … → final answer`.

After MultiTool-CoT (Inaba et al., ACL 2023): the model writes a rationale, is interrupted where it asks for a tool, and goes
on behind the result. Text and splices joined are the transcript, byte for byte.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from taiwa.flows.calling import shown
from taiwa.flows.interrupting import Interrupt, unrepeated
from taiwa.flows.scanning import Trigger
from taiwa.flows.tagged import CLOSE, Tagged
from taiwa.kernel.effects import Abilities, CallTool, Complete, Program, Watcher, perform, tell
from taiwa.kernel.errors import RefusalError, ToolError, UnknownToolError
from taiwa.kernel.records import value
from taiwa.kernel.values import (
    Ability,
    Message,
    Request,
    Response,
    Sampling,
    ToolResult,
    ToolSpec,
    assistant,
    system,
    user,
)

__all__ = ["Called", "Ending", "OnTrouble", "Rationale", "Said", "Spliced", "last_number", "reason"]

OnTrouble: TypeAlias = Literal["tell", "model_writes", "stop"]
"""What follows an unknown tool or a failure: the model reads the error · the model writes the result · the end."""
Ending: TypeAlias = Literal["end", "calls", "tool", "stops", "length", "interrupted", "refusal"]
"""Why a rationale ended: by itself · no call was left · a tool's trouble · too many false stops · as the model's finish says."""

INSTRUCTIONS = """\
Solve the problem step by step. Where you need a tool, write its call as <<name: input>>, on one line: what the tool gives is \
put right behind it, and you go on from there. Never write a result of a tool yourself. End with a line that states the \
answer; its number comes last.

Tools:
{tools}"""
GO_ON = "Go on exactly where your text stops. Repeat none of it."
NO_CALL_LEFT = "error: no call is left; finish without tools"
FALSE_STOPS = 20
ENDINGS: Mapping[str, Ending] = {"length": "length", "interrupted": "interrupted", "refusal": "refusal"}
FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x2212: "-"}
# Not \w: in "答えは25" the number follows a letter; in "H2O" it belongs to one.
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_])[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+|/[0-9]+)?"
)


@value
class Said:
    """What the model wrote."""

    text: str


@value
class Spliced:
    """What the program put into the text."""

    text: str


@value
class Called:
    """One call; a result of `origin` "model" is left to the model to write."""

    name: str
    input: str
    result: ToolResult


@value
class Rationale:
    """A train of thought with its calls; `answer` is the last number of the last line, or ''."""

    parts: tuple[Said | Spliced, ...]
    calls: tuple[Called, ...]
    ending: Ending = "end"

    @property
    def text(self) -> str:
        """The transcript."""
        return "".join(part.text for part in self.parts)

    @property
    def answer(self) -> str:
        """The final answer."""
        return last_number(self.text)


def reason(
    question: str,
    tools: Iterable[ToolSpec],
    *,
    shots: Sequence[Message] = (),
    trouble: OnTrouble = "tell",
    calls: int = 10,
    sampling: Sampling = Sampling(),
) -> Program[Rationale]:
    """Answer a question in words, with the results of tools put in where the text asks for them.

    `shots` are worked examples, a user's question and the assistant's rationale in turn. After `calls` calls the model is
    asked once to finish without tools. Where a server can stop at a string it is asked to, which spares tokens; nothing
    depends on it, because the text is watched and cut here.

    Raises (when run):
        RefusalError: the model refused at once.
    """
    known = tuple(tools)
    course = _Course((system(_instructions(known)), *shots, user(question)), sampling, known)
    course.enable((yield from perform(Abilities())))
    while True:
        response = yield from perform(Complete(course.request(), course.watch))
        trigger = course.take(response)
        if trigger is not None and len(course.calls) >= calls:
            course.splice(NO_CALL_LEFT)
            last = yield from perform(Complete(replace(course.request(), stop=())))
            course.finish(last)
        elif trigger is not None:
            yield from _call(course, trigger, trouble)
        if course.ending is not None:
            return Rationale(tuple(course.parts), tuple(course.calls), course.ending)


def _call(course: "_Course", trigger: Trigger, trouble: OnTrouble) -> Program[None]:
    try:
        spec = course.spec(trigger.name)
        result = yield from perform(CallTool(spec.name, Tagged().arguments(spec, trigger.input)))
    except ToolError as error:
        words = f"error: {error.message}" + (f" ({error.hint})" if error.hint else "")
        origin: Literal["tool", "model"] = "model" if trouble == "model_writes" else "tool"
        result = ToolResult(words, trigger.name, error=error.code or "error", origin=origin)
        yield from tell(f"{trigger.name}: {error.message}", code="tool")
    course.calls.append(Called(trigger.name, trigger.input, result))
    if not result.error or trouble == "tell":
        course.splice(result.text)
    elif trouble == "stop":
        course.ending = "tool"


class _Course:
    """A rationale under way: what has been said and spliced, and how the model is asked to go on from there."""

    def __init__(self, messages: tuple[Message, ...], sampling: Sampling, tools: tuple[ToolSpec, ...]) -> None:
        self.parts: list[Said | Spliced] = []
        self.calls: list[Called] = []
        self.ending: Ending | None = None
        self._asked = Request(messages, sampling=sampling)
        self._tools = {tool.name: tool for tool in tools}
        self._scanner = Tagged().scanner(self._tools)
        self._in_place = False
        self._turns: list[str] = []
        self._false_stops = 0

    def enable(self, abilities: frozenset[Ability]) -> None:
        """Choose the way to go on: by a prefix, or by a new turn. A stop string could end a repetition before it is over,
        so it is used only where nothing is repeated.
        """
        self._in_place = "prefix" in abilities
        if self._in_place and "stop" in abilities:
            self._asked = replace(self._asked, stop=(CLOSE,))

    def spec(self, name: str) -> ToolSpec:
        """Find a tool.

        Raises:
            UnknownToolError: there is none of that name.
        """
        if name not in self._tools:
            known = ", ".join(self._tools) or "none"
            raise UnknownToolError(f"there is no tool {name!r}", code="unknown_tool", hint=f"tools: {known}")
        return self._tools[name]

    def request(self) -> Request:
        """Ask for what follows the text so far; every request begins with the messages of the one before."""
        if self._in_place:
            return replace(self._asked, prefix=self._text)
        turns = (message for turn in self._turns for message in (assistant(turn), user(GO_ON)))
        return replace(self._asked, messages=(*self._asked.messages, *turns))

    def watch(self) -> Watcher:
        """Watch the answer for its first trigger."""
        return Interrupt(self._scanner, self._text)

    def take(self, response: Response) -> Trigger | None:
        """Add what the model wrote, up to its first trigger; where there is none, `ending` may be set."""
        text = unrepeated(response.text, self._text)
        trigger = self._scanner.feed(text)
        if trigger is not None:
            self._say(text[: trigger.end])
            return trigger
        self._say(text)
        if response.finish == "stop" and (response.stop == CLOSE or self._scanner.open):
            return self._close()
        if response.finish == "refusal" and not self._text.strip():
            raise RefusalError("the model refused to answer", request=self._asked.digest)
        self.ending = ENDINGS.get(response.finish, "end")
        return None

    def splice(self, result: str) -> None:
        """Put a result behind the trigger. A new turn begins a new line, so that no digit of it can join the result."""
        self._put(f" {shown(result)}" if self._in_place else f" {shown(result)}\n")

    def finish(self, last: Response) -> None:
        """Add the last words, triggers or not."""
        self._say(unrepeated(last.text, self._text))
        self.ending = "calls"

    def _close(self) -> Trigger | None:
        """Put back the mark at which the server stopped; where it closes no trigger, the stop was a false one."""
        self._put(CLOSE)
        trigger = self._scanner.feed(CLOSE)
        self._false_stops += trigger is None
        if self._false_stops > FALSE_STOPS:
            self.ending = "stops"
        return trigger

    @property
    def _text(self) -> str:
        return "".join(self._turns)

    def _say(self, text: str) -> None:
        self._turns.append(text)
        if text:
            self.parts.append(Said(text))

    def _put(self, text: str) -> None:
        self._turns[-1] += text
        self.parts.append(Spliced(text))


def _instructions(tools: tuple[ToolSpec, ...]) -> str:
    lines = [f"- <<{tool.name}: {_input(tool)}>>: {' '.join(tool.description.split())}" for tool in tools]
    return INSTRUCTIONS.format(tools="\n".join(lines) or "(none)")


def _input(tool: ToolSpec) -> str:
    properties = tool.parameters.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    return names[0] if len(names) == 1 else "{" + ", ".join(f'"{name}": …' for name in names) + "}"


def last_number(text: str) -> str:
    """The last number of the last line, without thousands commas; '' where there is none.

    >>> last_number("2 x 612.5 = 1,225.00 yen")
    '1225.00'
    """
    lines = text.translate(FULL_WIDTH).strip().splitlines()
    found = NUMBER.findall(lines[-1]) if lines else []
    return found[-1].replace(",", "").removeprefix("+") if found else ""
