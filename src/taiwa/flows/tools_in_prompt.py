"""Tools of a client for a model whose server calls none: they are in the prompt, and calls are read from the text of the answer.

The form is that of Hermes, which many open models were trained on.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from taiwa.flows.calls_in_text import CallsInText
from taiwa.kernel.effects import WatchResult
from taiwa.kernel.messages import (
    JsonSchema,
    Message,
    Part,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    collect_response,
    system,
)
from taiwa.kernel.serialization import Json

TOOLS = """\
You can call these functions; each line is the JSON description of one:
<tools>
{tools}
</tools>

To call functions, end the answer with a block for each call, and write nothing after them; the results follow in the next message:
<tool_call>
{{"name": "<name of the function>", "arguments": {{<its arguments>}}}}
</tool_call>"""
REQUIRED = "\n\nAnswer only with a call of {named}."
CALL = "<tool_call>\n{call}\n</tool_call>"
RESULT = "<tool_response>\n{result}\n</tool_response>"


def tools_in_prompt(request: Request, *, enforces_schemas: bool) -> Request:
    """Return a request that describes its tools in the prompt, and shows earlier calls and results as text.

    A call that `tool_choice` requires is enforced as JSON where the server can do so.
    """
    said = _in_text(request.messages)
    if request.tool_choice == "none":
        return replace(request, messages=said, tools=(), tool_choice="auto")
    offered = request.tools
    choice, constraint = request.tool_choice, request.constraint
    if is_required := choice != "auto":
        offered = tuple(tool for tool in offered if choice in ("required", tool.name))
        constraint = _call_schema(offered) if enforces_schemas and _is_whole(offered) else None
    lines = "\n".join(
        _plain({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)})
        for tool in offered
    )
    text = TOOLS.format(tools=lines)
    if is_required:
        text += REQUIRED.format(named=" or ".join(tool.name for tool in offered))
    has_head = bool(said) and said[0].role == "system"
    instructed = system(f"{said[0].text}\n\n{text}" if has_head else text)
    return replace(
        request, messages=(instructed, *said[has_head:]), tools=(), tool_choice="auto", constraint=constraint
    )


def _is_whole(tools: Sequence[ToolSpec]) -> bool:
    """Whether the schemas may stand inside another one: they refer to no part of themselves."""
    return not any('"$ref"' in json.dumps(dict(tool.parameters)) for tool in tools)


def _call_schema(tools: Sequence[ToolSpec]) -> JsonSchema:
    calls: list[Json] = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": dict(tool.parameters)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return JsonSchema({"anyOf": calls}, "call")


def _in_text(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Write calls and results as text; results and the message of the user after them are one message."""
    said: list[Message] = []
    before = ""
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                parts.append(Text(CALL.format(call=_plain({"name": part.name, "arguments": part.arguments_object()}))))
            elif isinstance(part, ToolResult):
                # As JSON, so that a result ends its block neither early nor in another role.
                parts += part.attachments
                parts.append(Text(RESULT.format(result=_plain({"name": part.name, "content": part.text}))))
            else:
                parts.append(part)
        if before == "tool" and message.role in ("tool", "user"):
            parts = [*said.pop().parts, Text("\n"), *parts]
        before = message.role
        said.append(Message("user" if message.role == "tool" else message.role, tuple(parts)))
    return tuple(said)


def _plain(data: Json) -> str:
    return json.dumps(data, ensure_ascii=False).replace("</", "<\\/")


class CallsHidden:
    """The watcher that shows an answer without its calls."""

    def __init__(self, tools: Sequence[ToolSpec], messages: Sequence[Message] = ()) -> None:
        self._reader = CallsInText(tools, messages, is_prompted=True)

    def feed(self, text: str) -> WatchResult:
        """Show what is not, and may not become, a call."""
        return self._shown(TextDelta(text))

    def close(self) -> WatchResult:
        """Show what has not become one."""
        return self._shown(StreamEnd())

    def _shown(self, chunk: TextDelta | StreamEnd) -> WatchResult:
        return WatchResult("".join(each.text for each in self._reader.feed(chunk) if isinstance(each, TextDelta)))


def read_calls(response: Response, tools: Sequence[ToolSpec], request: Request) -> Response:
    """Return a response whose calls are read from its text."""
    reader = CallsInText(tools, request.messages, is_prompted=True)
    read = collect_response([*reader.feed(TextDelta(response.text)), *reader.feed(StreamEnd(response.finish))])
    if not read.message.tool_calls:
        return response
    message = Message("assistant", (*response.message.thinking, *read.message.parts))
    return replace(response, message=message, finish=read.finish)
