"""Function calls that a server returns as text, in the form that its model was taught.

A server that does not know the form of its model passes the call on as text. All forms have two parts, and any combination of these is
read: a head of special tokens, tags, a fence and words, which may name the tool, and the call: JSON, tags for the arguments, or a call
of Python. JSON also stands alone on a line. Text counts as a call only if tools were offered, and its name and arguments fit one of
them. What follows a call was written without its result, and is dropped. A call in a message of the user or a result is
a repetition of it, and one in the thinking a draft: both stay text.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast
from warnings import catch_warnings

from taiwa.json_schema import is_object, types
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import (
    BLOCKS,
    Chunk,
    Message,
    StreamEnd,
    TextDelta,
    ToolCall,
    ToolSpec,
    is_quoted,
    source_texts,
)
from taiwa.kernel.serialization import Json, refuse_constant
from taiwa.structured import OutputType
from taiwa.structured.lenient_parser import try_value
from taiwa.structured.lenient_scanner import ParseHints, WorkBudget, WorkLimitError

START = re.compile(r"^[ \t]*(?:`{1,2}\Z|```|[{\[]|\Z)|(?<!`)(?:<(?![\s/])|\[(?![^A-Z_])|◁)", re.MULTILINE)
"""Where a call or a block of thinking may begin: JSON and fences on their lines, tags and special tokens anywhere."""
BRACKETED = r"\[/?(?:[A-Z_]{0,20}(?:TOOL|CALL|FUNC)[A-Z_]{0,20}|ARGS)\]"
MARK = re.compile(
    rf"\s*(?:<[|｜][^<>\n]{{1,80}}>|<[^<>\n]{{0,40}}(?i:call|func|invoke|tool)[^<>\n]{{0,60}}>|{BRACKETED}"
    r"|```(?:json|xml|tool_\w{1,8})?[ \t]*\n)"
)
HALF_MARK = re.compile(r"\s*(?:<[^<>\n]{0,100}|\[/?[A-Z_]{0,20}|`{1,2}|```(?:[jxt]\w{0,12})?[ \t]*)?\Z")
WORDS = re.compile(r"\s*[\w.:-]*(?: [\w.=:-]+){0,2}\s*")
PLAIN_FENCE = re.compile(r"\s*```(?:json)?\s*\Z")
PARAMETER = re.compile(
    r"\s*(?:<(?P<tag>[^\s<>=/]+)(?:\s*=\s*[\"']?(?P<one>[^\s<>\"']+)[\"']?\s*|\s[^<>]*?\bname=[\"'](?P<two>[^\"'<>]+)[\"'][^<>]*)>"
    r"|<\w*key>(?P<three>[^<>]+)</\w*key>\s*<(?P<value_tag>\w*value)>)"
)
OPENED_PARAMETER = re.compile(r"\s*<(?:[^\s<>/]+[\s=][^<>]*|\w*key)>")
BEGUN_PYTHON = re.compile(r"\[\s*[\w.]*\Z")
END_OF_LIST = re.compile(r"(?<=\))\s*\]()")
OPENED_CLOSE = re.compile(r"\s*</[^<>\n]")
PYTHON = re.compile(r"\s*\[?\s*(?:print\(\s*)?[A-Za-z_][\w.]*\(")
CLOSE = re.compile(rf"()(?:</|<[|｜]|<\w*(?i:call|func|invoke|tool)\w*[|｜]?>|\n[ \t]*```|{BRACKETED})")
"""What ends the arguments of a call that are not JSON."""
HEADS = tuple(
    f'"{key}"'
    for key in ("name", "type", "id", "function", "arguments", "parameters", "tool_calls", "tool_name", "tool_call_id")
)
"""The first keys of JSON that may be a call."""
CHANNEL = "<|channel|>analysis"
HALF_TAG = re.compile(r"[<\[◁][^<\[◁]{0,20}\Z")
CHANNEL_END = re.compile(r"<\|(?:end|start|channel|call|return)\|>")

FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
MAX_HEAD_CHARS = 300
MAX_BLOCK_CHARS = 20_000


class _UndecidedError(Exception):
    """More of the text decides whether it is a call."""


class CallsInText:
    """Passes on the chunks of an answer, and turns calls in its text into function calls; text that may become one is held back.

    >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "b"]}
    >>> reader = CallsInText((ToolSpec("add", "Add.", schema),))
    >>> reader.feed(TextDelta('So:\\n```json\\n{"name": "add", "arguments": {"a": 1, '))
    [TextDelta(text='So:\\n', refuses=False)]
    >>> reader.feed(TextDelta('"b": 2}}\\n```\\nIt is 4. [TOOL_CALLS]add{"a": 2, "b": 2}'))
    []
    >>> [call.arguments for call in reader.feed(StreamEnd())[0].tool_calls]
    ['{"a": 1, "b": 2}', '{"a": 2, "b": 2}']
    """

    def __init__(self, tools: Sequence[ToolSpec], messages: Sequence[Message] = (), ids: str = "call_") -> None:
        self._messages = messages
        self._ids = ids
        self._tools = {tool.name: tool for tool in tools}
        self._held = ""
        self._last = "\n"
        """The character before the text that is held back."""
        self._thinking: re.Pattern[str] | None = None
        """What ends the thinking that the text is in."""
        self._thought = ""
        self._is_code = False
        """Whether a fence is open in the text that was passed on."""
        self._calls: list[ToolCall] = []

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """Take the next chunk; return those that can be passed on."""
        if isinstance(chunk, TextDelta) and not chunk.refuses:
            self._held += chunk.text
            return self._texts(is_whole=False)
        if isinstance(chunk, StreamEnd):
            texts = self._texts(is_whole=chunk.finish != "length")
            texts += self._shown(len(self._held))
            if self._thinking is not None and not self._calls and chunk.finish != "length":
                # A model that does not end its thinking calls there.
                reader = CallsInText((*self._tools.values(),), self._messages, self._ids)
                reader.feed(TextDelta(self._thought))
                reader.feed(StreamEnd(chunk.finish))
                self._calls = reader._calls
            if self._calls and not chunk.tool_calls and chunk.finish != "interrupted":
                chunk = replace(chunk, tool_calls=tuple(self._calls), finish="tool_calls")
            return [*texts, chunk]
        return [chunk]

    def _texts(self, *, is_whole: bool) -> list[Chunk]:
        texts: list[Chunk] = []
        while self._held:
            if self._thinking is not None:
                closing = self._thinking.search(self._held)
                tag = None if is_whole else HALF_TAG.search(self._held)
                texts += self._shown(closing.end() if closing else tag.start() if tag else len(self._held))
                if closing is None:
                    break
                self._thinking = None
                continue
            if self._calls and self._last == "\n":
                self._held = self._held.lstrip("; ,\t")
            texts += self._shown(self._start(0))
            try:
                opening = self._opening(is_whole=is_whole)
                calls, end = ((), 0) if opening or not self._held else self._read(self._held, is_whole=is_whole)
            except _UndecidedError:
                break
            if calls:
                self._calls += (replace(call, id=f"{self._ids}{len(self._calls) + n}") for n, call in enumerate(calls))
                self._held, self._last = self._held[end:], "\n"
            elif opening:
                texts += self._shown(len(opening))
                ends = BLOCKS.get(opening)
                self._thinking = re.compile(re.escape(ends), re.IGNORECASE) if ends else CHANNEL_END
                self._thought = ""
            else:
                texts += self._shown(self._start(1))
        return texts

    def _shown(self, size: int) -> list[Chunk]:
        """Take text from what is held back; return it, unless it follows a call."""
        text, self._held = self._held[:size], self._held[size:]
        if not text:
            return []
        line = text if self._last == "\n" else f".{text}"  # `^` would match where a piece begins within a line
        self._is_code ^= len(FENCE.findall(line)) % 2 == 1
        self._last = text[-1]
        if self._thinking is not None:
            self._thought += text
        return [] if self._calls else [TextDelta(text)]

    def _start(self, at: int) -> int:
        """Return where a call or thinking may begin; the length of the text for nowhere."""
        start = START.search(self._last + self._held, at + 1)
        return len(self._held) if start is None else start.start() - 1

    def _opening(self, *, is_whole: bool) -> str:
        """Return the tag that opens thinking here, '' for none."""
        begun = self._held[: len(CHANNEL)].lower()
        if not is_whole and any(each != begun and each.startswith(begun) for each in (*BLOCKS, CHANNEL)):
            raise _UndecidedError
        return next((each for each in (*BLOCKS, CHANNEL) if begun.startswith(each)), "")

    def _read(self, text: str, *, is_whole: bool) -> tuple[Sequence[ToolCall], int]:
        """Read the calls at the start of a text, and where they end; none if they are not calls of the tools.

        Raises:
            _UndecidedError: the text may become a call.
        """
        if self._is_code and text.startswith("["):
            return (), 0  # a line of Python in a block of code
        reader = _Reader(text, self._tools, is_whole=is_whole or len(text) > MAX_BLOCK_CHARS)
        try:
            calls = reader.read()
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # it is not what it seemed to be
            return (), 0
        is_source = is_quoted(text[reader.named_at : reader.at], source_texts(self._messages))
        return ((), 0) if is_source else (calls, reader.at)


class _Reader:
    """Reads the calls at the start of a text; raises ValueError if there are none, `_UndecidedError` if it may become one."""

    def __init__(self, text: str, tools: Mapping[str, ToolSpec], *, is_whole: bool) -> None:
        self.text = text
        self.at = self.named_at = 0
        self._tools = tools
        self._is_whole = is_whole
        self._tool: ToolSpec | None = None
        self._is_plain = True
        """Whether the call stands alone or in a fence for any JSON."""

    def read(self) -> Sequence[ToolCall]:
        """Return the calls; `at` is where they end, `named_at` where the first one begins to name its tool."""
        self._read_head()
        head = self.text[: self.at]
        self.at += len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        self._is_plain = not head or PLAIN_FENCE.match(head) is not None
        tool, char = self._tool, self.text[self.at : self.at + 1]
        if tool is None:
            self.named_at = self.at
        if HALF_MARK.match(self.text, self.at):
            self._undecided()
        if PYTHON.match(self.text, self.at) and (not self._is_plain or char == "["):
            return self._python()
        if char == "[" and BEGUN_PYTHON.match(self.text, self.at):
            self._undecided(self._is_plain and not self._begins(f"{name}(" for name in self._tools))
        if char and char in ("{[" if tool is None else '{"'):
            return self._json()
        if tool is not None and OPENED_PARAMETER.match(self.text, self.at):
            return [self._call(tool, self._parameters(tool, head))]
        if tool is not None and self.text.startswith("</", self.at):
            return [self._call(tool, {})]
        raise ValueError

    def _undecided(self, is_decided: bool = False) -> None:
        """Wait for more of the text, unless that is decided or there is no more."""
        if not is_decided and not self._is_whole:
            raise _UndecidedError

    def _read_head(self) -> None:
        while self.at < MAX_HEAD_CHARS and (mark := MARK.match(self.text, self.at)):
            if self._tool and (OPENED_PARAMETER.match(self.text, self.at) or mark[0].lstrip().startswith("</")):
                return
            start, self.at = self.at, mark.end()
            if not PYTHON.match(self.text, self.at) and (words := WORDS.match(self.text, self.at)):
                self.at = words.end()
            for word in re.findall(r"[\w.-]+", self.text[start : self.at]):
                if (tool := self._named(word)) is not None:
                    self._tool, self.named_at = tool, start

    def _named(self, name: Json) -> ToolSpec | None:
        """Return the tool of a name, which may stand in the namespace of the prompt."""
        return self._tools.get(name) or self._tools.get(name.rpartition(".")[2]) if isinstance(name, str) else None

    def _begins(self, words: Iterable[str]) -> bool:
        """Whether the JSON or list here begins with one of some words, as far as there is text."""
        begun = "".join(self.text[self.at : self.at + 80].split()).lstrip("[{")
        if not begun and len(self.text) - self.at >= 80:
            return False
        return any(word.startswith(begun[: len(word)]) for word in words)

    def _json(self) -> Sequence[ToolCall]:
        try:
            data, end = json.JSONDecoder(parse_constant=refuse_constant).raw_decode(self.text, self.at)
        except json.JSONDecodeError:
            close = CLOSE.search(self.text, self.at)
            if self._is_plain:
                self._undecided(close is not None or not self._begins(HEADS))
                raise
            data, end = self._malformed_json(close)
        self.at = end
        if self._tool is not None:
            return [self._call(self._tool, data)]
        return self._described(data)

    def _malformed_json(self, close: re.Match[str] | None) -> tuple[Json, int]:
        """Read JSON up to the mark that closes the call."""
        read = None
        if close is not None and close.start() > self.at and self.text[self.at] in "{[":
            with suppress(WorkLimitError):
                read = try_value(
                    self.text, self.at, close.start(), WorkBudget(MAX_BLOCK_CHARS + 20 * len(self.text)), ParseHints()
                )
        if read is None or close is None or read.cut or read.elided:
            self._undecided()
            raise ValueError
        return read.data, close.start()

    def _described(self, data: Json) -> list[ToolCall]:
        """Return the calls that JSON describes."""
        if isinstance(data, list) and data:
            return [call for item in data for call in self._described(item)]
        if not isinstance(data, dict) or not data:
            raise ValueError
        (key, inner), *others = data.items()
        if key == "tool_calls":
            return self._described(inner)
        if isinstance(function := data.get("function"), dict):
            return self._described(function)
        tool = self._named(data.get("name", data.get("tool_name")))
        if tool is None and not others and not self._is_plain:
            tool, data = self._named(key), {"arguments": inner}
        if tool is None:
            raise ValueError
        return [self._call(tool, data.get("arguments", data.get("parameters", None if self._is_plain else {})))]

    def _call(self, tool: ToolSpec, arguments: Json) -> ToolCall:
        if isinstance(arguments, str):
            arguments = cast("Json", json.loads(arguments, parse_constant=refuse_constant))
        if not isinstance(arguments, dict) or not _fits(arguments, tool):
            raise ValueError
        return ToolCall(tool.name, json.dumps(arguments, ensure_ascii=False))

    def _parameters(self, tool: ToolSpec, head: str) -> dict[str, Json]:
        """Read arguments in tags; a tag that is not closed ends where the next one, or the tag around it, begins or ends."""
        arguments: dict[str, Json] = {}
        around = "|".join(re.escape(name) for name in re.findall(r"<([^\s<>=/]+)", head)) or r"\Z"
        properties = tool.parameters.get("properties")
        while opened := PARAMETER.match(self.text, self.at):
            tag = re.escape(opened["tag"] or opened["value_tag"])
            end = re.compile(rf"</{tag}>|(?=<{tag}[\s=])|(?=</(?:{around})>)").search(self.text, opened.end())
            if end is None:
                self._undecided()
                raise ValueError
            key = str(opened["one"] or opened["two"] or opened["three"]).strip()
            text = re.sub(r"\A\n|\n\Z", "", self.text[opened.end() : end.start()])
            schema = properties.get(key) if is_object(properties) else None
            if text or not is_object(schema) or "string" in types(schema):  # an empty tag is no number
                arguments[key] = text
            self.at = end.end()
        if OPENED_PARAMETER.match(self.text, self.at) or (
            HALF_MARK.match(self.text, self.at) and not OPENED_CLOSE.match(self.text, self.at)
        ):
            self._undecided()
        with suppress(InputError):
            return cast("dict[str, Json]", OutputType.from_json_schema(tool.parameters).repair(arguments))
        return arguments

    def _python(self) -> Sequence[ToolCall]:
        """Read a call, or a list of calls, in the syntax of Python, with constants by name."""
        close = (END_OF_LIST if self.text[self.at] == "[" else CLOSE).search(self.text, self.at)
        if close is None:
            self._undecided()
        end = close.start(1) if close else len(self.text)
        if self._is_plain and close is not None:
            rest = self.text[end:].lstrip(" \t;,")
            if not rest:
                self._undecided()
            elif rest[0] not in "\n\r<[`{":
                raise ValueError
        self.at, written = end, self.text[self.at : end].strip()
        with catch_warnings(action="ignore"):  # of escapes in strings
            tree = ast.parse(written, mode="eval").body  # only read, never evaluated
        calls: list[ToolCall] = []
        for node in tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]:
            call = (
                node.args[0] if isinstance(node, ast.Call) and _name(node) == "print" and len(node.args) == 1 else node
            )
            tool = self._named(_name(call)) if isinstance(call, ast.Call) and not call.args else None
            if tool is None or not isinstance(call, ast.Call):
                raise ValueError
            calls.append(self._call(tool, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}))
        return calls


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func)


def _fits(arguments: dict[str, Json], tool: ToolSpec) -> bool:
    """Whether arguments have the names that a tool requires, and no others."""
    schema = tool.parameters
    properties, required = schema.get("properties"), schema.get("required")
    known = set(properties) if isinstance(properties, dict) else set[str]()
    needed = set(required) if isinstance(required, list) else set[Json]()
    return needed <= arguments.keys() and (
        arguments.keys() <= known or schema.get("additionalProperties") not in (None, False)
    )
