"""Function calls that a server returns as text: in a JSON block, in `<tool_call>` tags, or as the whole answer.

Many models write their calls so, and servers that do not know the form of a model pass them on as text. Text counts as a call only
if tools were offered, and its name and arguments fit one of them. What follows a call was written without its result, and is dropped.
A call that stands in a message of the user or a result is a repetition of it, and stays text.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from taiwa.kernel.messages import Chunk, Message, StreamEnd, TextDelta, ToolCall, ToolSpec, is_quoted, source_texts
from taiwa.kernel.serialization import Json, refuse_constant

OPENINGS = ("```", "<tool_call>", "{", "[")

HEADS = ('{"name"', '[{"name"')
"""How the JSON of calls begins, without white space."""

BLOCK = re.compile(
    r"\s*(?:```(?:json|tool_call)?[ \t]*\n(?P<fenced>.*?)(?:\n[ \t]*```|\Z)"
    r"|<tool_call>(?P<tagged>.*?)(?:</tool_call>|\Z)"
    r"|(?P<bare>[{\[].*))",
    re.DOTALL,
)

OPENED = re.compile(r"\s*(?:```(?:json|tool_call)?[ \t]*\n|<tool_call>)?(?P<json>.*)", re.DOTALL)

MAX_BLOCK_CHARS = 20_000


class CallsInText:
    """Passes on the chunks of an answer, and turns calls in its text into function calls; text that may become one is held back.

    >>> schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    >>> reader = CallsInText((ToolSpec("add", "Add.", schema),))
    >>> reader.feed(TextDelta('So:\\n```json\\n{"name": "add", "arguments": {"a": 1, '))
    [TextDelta(text='So:\\n', refuses=False)]
    >>> reader.feed(TextDelta('"b": 2}}\\n```\\nIt is 4.'))
    []
    >>> reader.feed(StreamEnd())[0].tool_calls
    (ToolCall(name='add', arguments='{"a": 1, "b": 2}', id='call_0'),)
    """

    def __init__(self, tools: Sequence[ToolSpec], messages: Sequence[Message] = (), ids: str = "call_") -> None:
        self._messages = messages
        self._ids = ids
        self._tools = {tool.name: tool for tool in tools}
        self._held = ""
        self._starts_line = True
        self._calls: list[ToolCall] = []

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """Take the next chunk; return those that can be passed on."""
        if isinstance(chunk, TextDelta) and not chunk.refuses:
            self._held += chunk.text
            return self._texts(is_whole=False)
        if isinstance(chunk, StreamEnd):
            texts = self._texts(is_whole=chunk.finish != "length")
            if self._held:
                texts += self._shown(self._held)
                self._held = ""
            if self._calls and not chunk.tool_calls and chunk.finish != "interrupted":
                chunk = replace(chunk, tool_calls=tuple(self._calls), finish="tool_calls")
            return [*texts, chunk]
        return [chunk]

    def _texts(self, *, is_whole: bool) -> list[Chunk]:
        texts: list[Chunk] = []
        while self._held:
            start = self._start()
            texts += self._shown(self._held[:start])
            self._held = self._held[start:]
            if not self._held or (not is_whole and self._may_grow()):
                break
            block = BLOCK.match(self._held)
            content = block and (block["fenced"] or block["tagged"] or block["bare"])
            calls, end = self._read(content) if content else ((), 0)
            if block and content and calls and not is_quoted(content[:end], source_texts(self._messages)):
                self._calls += calls
                self._held = self._held[block.start("bare") + end if block["bare"] else block.end() :]
                continue
            line = self._held.find("\n") + 1 or len(self._held)
            texts += self._shown(self._held[:line])
            self._held = self._held[line:]
        return texts

    def _shown(self, text: str) -> list[Chunk]:
        if text:
            self._starts_line = text.endswith("\n")
        return [TextDelta(text)] if text and not self._calls else []

    def _start(self) -> int:
        """Return where the first line begins that may open a call; the length of the text for none."""
        at = 0 if self._starts_line else self._held.find("\n") + 1 or len(self._held)
        while at < len(self._held):
            line = self._held[at:].lstrip(" \t\n")
            if not line or any(line.startswith(mark) or mark.startswith(line) for mark in OPENINGS):
                return at
            at = self._held.find("\n", at) + 1 or len(self._held)
        return at

    def _may_grow(self) -> bool:
        """Whether the text that is held back is the beginning of a call."""
        held = self._held.lstrip()
        if len(held) > MAX_BLOCK_CHARS:
            return False
        if any(mark.startswith(held) for mark in OPENINGS[:2]):
            return True
        opened = OPENED.match(held)
        begun = "".join(opened["json"].split()) if opened else ""
        if held.startswith("```") and "\n" not in held:
            return "json".startswith(held[3:].strip()) or "tool_call".startswith(held[3:].strip())
        if not any(head.startswith(begun[: len(head)]) for head in HEADS):
            return False
        is_closed = "\n```" in held[3:] if held.startswith("```") else "</tool_call>" in held
        return not (is_closed or (held[0] in "{[" and self._read(held)[0]))

    def _read(self, text: str) -> tuple[tuple[ToolCall, ...], int]:
        """Read the calls at the start of a text, and where they end; none if they are not calls of the tools."""
        start = len(text) - len(text.lstrip())
        try:
            data, end = json.JSONDecoder(parse_constant=refuse_constant).raw_decode(text, start)
        except (ValueError, RecursionError):
            return (), 0
        items = cast("list[Json]", data) if isinstance(data, list) else [cast("Json", data)]
        calls = [call for call in map(self._call, items) if call is not None]
        return (tuple(calls), end) if calls and len(calls) == len(items) else ((), 0)

    def _call(self, item: Json) -> ToolCall | None:
        if not isinstance(item, dict):
            return None
        name, arguments = item.get("name"), item.get("arguments", item.get("parameters"))
        tool = self._tools.get(name) if isinstance(name, str) else None
        if isinstance(arguments, str):
            try:
                arguments = cast("Json", json.loads(arguments, parse_constant=refuse_constant))
            except (ValueError, RecursionError):
                return None
        if tool is None or not isinstance(arguments, dict) or not _fits(arguments, tool):
            return None
        return ToolCall(tool.name, json.dumps(arguments, ensure_ascii=False), f"{self._ids}{len(self._calls)}")


def _fits(arguments: dict[str, Json], tool: ToolSpec) -> bool:
    """Whether arguments have the names that a tool requires, and no others."""
    schema = tool.parameters
    properties, required = schema.get("properties"), schema.get("required")
    known = set(properties) if isinstance(properties, dict) else set[str]()
    needed = set(required) if isinstance(required, list) else set[Json]()
    return needed <= arguments.keys() and (
        arguments.keys() <= known or schema.get("additionalProperties") not in (None, False)
    )
