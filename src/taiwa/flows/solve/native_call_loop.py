"""Tool calls by function calling: the model requests tools through its provider, and reads results as messages.

The text of the model is not scanned. Messages are only appended, so that a server's prefix cache stays valid.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

from taiwa.flows.solve.rationale import NO_CALL_LEFT, CallBudget
from taiwa.flows.solve.text_loop import RationaleBuilder
from taiwa.flows.solve.tool_call_formats import ToolCallFormat, describe_input, sanitize_result
from taiwa.kernel.effects import Complete, Program, Watcher, perform
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Message, Request, Response, Text, ToolCall, ToolResult, ToolSpec
from taiwa.kernel.records import Json, refuse_constant

MAX_RESULT_CHARS = 5_000
"""A message of its own has more room than a line of a text."""

BY_MODEL = "no tool gives this: work the result out yourself"


class FunctionCallingLoop(RationaleBuilder):
    """A rationale with function calls; `tool_format` is how its calls are shown in the transcript."""

    def __init__(
        self,
        request: Request,
        calls: CallBudget,
        tool_format: ToolCallFormat,
        watch: Callable[[], Watcher] | None = None,
    ) -> None:
        super().__init__(replace(request, tools=tuple(calls.specs.values())), calls, tool_format, watch)
        self._more: tuple[Message, ...] = ()
        self._ids: set[str] = set()
        self._count = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the first request and all that followed."""
        return (*self.base_request.messages, *self._more)

    def run(self) -> Program[None]:
        """Run the loop to its end."""
        while self.ending is None:
            # The tools stay in the last request too: they stand before everything that a cache holds.
            choice = "none" if self.calls.ending == "calls" else "auto"
            request = replace(self.base_request, messages=self.messages, tool_choice=choice)
            response = yield from perform(Complete(self.limit_tokens(request), self.watch))
            self.count_tokens(response)
            self.add_text(response.text)
            calls = self._with_ids(response)
            if not calls or response.finish not in ("tool_calls", "stop"):
                self._more = (
                    *self._more,
                    Message("assistant", (*response.message.signed_thinking, Text(response.text))),
                )
                self.finish(response)
                self.ending = (
                    self.calls.ending or self.ending
                )  # the text after the last call does not change why it ended
            elif self.ending is None:
                yield from self._answer(response, calls)

    def _answer(self, response: Response, calls: tuple[ToolCall, ...]) -> Program[None]:
        """Execute the calls of one response, and append the results in the order of the calls.

        The reasoning stays before the calls that it led to: servers refuse calls without their signed reasoning.
        """
        text, thinking = response.text, response.message.signed_thinking
        if self.calls.ending == "calls":  # it calls a tool although no call was left
            self._more = (*self._more, Message("assistant", (*thinking, Text(text))))
            self.ending = "calls"
            return
        done = yield from self.calls.execute(
            [self.calls.request(call.name, call.arguments, partial(_arguments, call.arguments)) for call in calls]
        )
        results: list[ToolResult] = []
        for call, executed in zip(calls, done, strict=True):
            if executed is None:
                result, error = NO_CALL_LEFT, "calls"
            elif executed.result.origin == "model":
                result, error = BY_MODEL, ""
            else:
                result, error = executed.shown, executed.result.error
            result = sanitize_result(result, MAX_RESULT_CHARS)
            results.append(ToolResult(result, call.name, call.id, error=error))
            yield from self._show(call, result)
        said = (Text(text),) if text else ()
        self._more = (*self._more, Message("assistant", (*thinking, *said, *calls)), Message("tool", tuple(results)))
        if self.calls.ending not in (None, "calls"):
            self.ending = self.calls.ending

    def _with_ids(self, response: Response) -> tuple[ToolCall, ...]:
        """Return the calls of a response, each with a unique id: some servers leave it out or repeat it."""
        calls: list[ToolCall] = []
        for call in response.message.tool_calls:
            name = call.id
            while not name or name in self._ids:
                self._count += 1
                name = f"call_{self._count}"
            self._ids.add(name)
            calls.append(replace(call, id=name))
        return tuple(calls)

    def _show(self, call: ToolCall, result: str) -> Program[None]:
        """Insert a call and its result into the transcript as the format writes them."""
        text = self.text
        start = "" if not text or text.endswith("\n") else "\n"
        written = self.tool_format.write_call(call.name, _input(call, self.calls.specs.get(call.name)), text + start)
        yield from self.insert(start + written, "call")
        result = self.tool_format.write_result(result)
        yield from self.insert(result if result.endswith("\n") else f"{result}\n", "result")


def _arguments(text: str, spec: ToolSpec) -> dict[str, Json]:
    """Parse the arguments of a call.

    Raises:
        ToolError: they are not a JSON object; the message says where.
    """
    expected = describe_input(spec)
    hint = f"give a JSON object: {expected if expected.startswith('{') else '{' + json.dumps(expected) + ': …}'}"
    try:
        data = cast("Json", json.loads(text or "{}", parse_constant=refuse_constant))
    except (ValueError, RecursionError) as error:
        where = (
            f"{error.msg} at line {error.lineno} column {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else error
        )
        raise ToolError(f"the arguments are not JSON: {where}", code="bad_arguments", hint=hint) from None
    if not isinstance(data, dict):
        raise ToolError("the arguments are not a JSON object", code="bad_arguments", hint=hint)
    return data


def _input(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return the input of a call as it stands in a text: the bare value of its only argument, or the whole object."""
    try:
        data = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return " ".join(call.arguments.split())
    arguments = {name: part for name, part in cast("dict[str, Json]", data).items() if part is not None}
    values = tuple(arguments.values())
    if spec is not None and len(values) == 1 and isinstance(values[0], str):
        return " ".join(values[0].split())
    return json.dumps(arguments, ensure_ascii=False)
