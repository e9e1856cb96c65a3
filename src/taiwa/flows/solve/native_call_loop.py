"""A rationale by function calls: the model asks for tools as its provider has it, and reads results as messages of their own.

Nothing is scanned in what it writes. The messages only ever grow, so that a server's prefix cache holds.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, cast

from taiwa.flows.solve.rationale import (
    NO_CALL_LEFT,
    CallBudget,
    RequestedCall,
    SolveLimits,
    request_call,
    shown,
    wanted,
)
from taiwa.flows.solve.text_loop import _RationaleBuilder
from taiwa.flows.solve.tool_call_formats import ToolCallFormat
from taiwa.kernel.effects import Complete, Program, Watcher, perform
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Message, Request, Response, Text, ToolCall, ToolResult, ToolSpec
from taiwa.kernel.records import Json

__all__ = ["FunctionCallingLoop"]


LONGEST_RESULT = 5_000
"""A message of its own has more room than a line of a text."""

BY_MODEL = "no tool gives this: work the result out yourself"


class FunctionCallingLoop(_RationaleBuilder):
    """A rationale under way; `protocol` is how its calls are shown to a person."""

    def __init__(
        self,
        asked: Request,
        calls: CallBudget,
        bounds: SolveLimits,
        protocol: ToolCallFormat,
        watch: Callable[[], Watcher] | None = None,
    ) -> None:
        super().__init__(replace(asked, tools=tuple(calls.specs.values())), calls, bounds, watch)
        self._protocol = protocol
        self._more: tuple[Message, ...] = ()
        self._ids: set[str] = set()
        self._count = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """The question with all that was said to it."""
        return (*self.asked.messages, *self._more)

    def run(self) -> Program[None]:
        """Go on to the end."""
        while self.ending is None:
            response = yield from perform(Complete(self._request(), self.watch))
            self.charge(response)
            self.say(response.text)
            calls = self._named(response)
            if not calls or response.finish not in ("tool_calls", "stop"):
                self._more = (*self._more, Message("assistant", (Text(response.text),)))
                self.end(response)
                self.ending = (
                    self.calls.ending or self.ending
                )  # the last words, which were asked for, are no end of its own
            elif self.ending is None:
                yield from self._answer(response.text, calls)

    def _request(self) -> Request:
        # The tools stay where they are in the last request, too: they stand before everything that a cache holds.
        choice = "none" if self.calls.ending == "calls" else "auto"
        return self.bounded(replace(self.asked, messages=self.messages, tool_choice=choice))

    def _answer(self, said: str, calls: tuple[ToolCall, ...]) -> Program[None]:
        """Have the calls of one answer done, and give the results in the order of the calls."""
        if self.calls.ending == "calls":  # it was told that there are no tools any more, and calls one all the same
            self._more = (*self._more, Message("assistant", (Text(said),)))
            self.ending = "calls"
            return
        done = yield from self.calls.answer([self._demand(call) for call in calls])
        results: list[ToolResult] = []
        for call, called in zip(calls, done, strict=True):
            error = "calls" if called is None else called.result.error
            by_model = called is not None and called.result.origin == "model"
            words = NO_CALL_LEFT if called is None else BY_MODEL if by_model else called.shown
            read = shown(words, LONGEST_RESULT)
            results.append(ToolResult(read, call.name, call.id, error="" if by_model else error))
            yield from self._show(call, read)
        spoken = (Text(said),) if said else ()
        self._more = (*self._more, Message("assistant", (*spoken, *calls)), Message("tool", tuple(results)))
        if self.calls.ending not in (None, "calls"):
            self.ending = self.calls.ending

    def _named(self, response: Response) -> tuple[ToolCall, ...]:
        """The calls of an answer, each with an id that no other has: some servers leave it out or give it twice."""
        named: list[ToolCall] = []
        for call in response.message.tool_calls:
            name = call.id
            while not name or name in self._ids:
                self._count += 1
                name = f"call_{self._count}"
            self._ids.add(name)
            named.append(replace(call, id=name))
        return tuple(named)

    def _demand(self, call: ToolCall) -> RequestedCall:
        try:
            spec = self.calls.spec(call.name)
            arguments = _arguments(call.arguments, spec)
        except ToolError as error:
            return RequestedCall(call.name, call.arguments, {}, error)
        return request_call(spec.name, arguments, call.arguments)

    def _show(self, call: ToolCall, result: str) -> Program[None]:
        """Write a call and its result as they would stand in the text."""
        text = self.text
        start = "" if not text or text.endswith("\n") else "\n"
        written = self._protocol.call(call.name, _input(call, self.calls.specs.get(call.name)), text + start)
        yield from self.put(start + written, "call")
        spliced = self._protocol.splice(result)
        yield from self.put(spliced if spliced.endswith("\n") else f"{spliced}\n", "result")


def _arguments(text: str, spec: ToolSpec) -> dict[str, Json]:
    """Read the arguments of a call.

    Raises:
        ToolError: they are no JSON object; the message says where.
    """
    hint = f"give a JSON object: {wanted(spec) if wanted(spec).startswith('{') else '{' + json.dumps(wanted(spec)) + ': …}'}"
    try:
        given = cast("Json", json.loads(text or "{}", parse_constant=_refuse))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ToolError(
            f"the arguments are not JSON: {error.msg} at {where}", code="bad_arguments", hint=hint
        ) from None
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the arguments are not JSON: {error}", code="bad_arguments", hint=hint) from None
    if not isinstance(given, dict):
        raise ToolError("the arguments are not a JSON object", code="bad_arguments", hint=hint)
    return given


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _input(call: ToolCall, spec: ToolSpec | None) -> str:
    """The input of a call as a text would have it: the bare value of the one argument that it has, or the whole object."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return " ".join(call.arguments.split())
    if not isinstance(given, dict):
        return " ".join(call.arguments.split())
    said = {name: part for name, part in cast("dict[str, Json]", given).items() if part is not None}
    values: Sequence[Json] = tuple(said.values())
    if spec is not None and len(values) == 1 and isinstance(values[0], str):
        return " ".join(values[0].split())
    return json.dumps(said, ensure_ascii=False)
