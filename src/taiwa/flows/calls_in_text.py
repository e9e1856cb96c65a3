"""Function calls that a server returns as text, in the form that its model was taught.

A server that does not know the form of its model passes the call on as text. All forms have two parts, and any combination of these is
read: a head of marks (special tokens, tags, a fence, fixed words) and words, which may name the tool, and the call: JSON, tags for the
arguments, or a call of Python. JSON and lists of Python also stand alone on a line. Text counts as a call only if tools were offered,
and its name and arguments fit one of them. What follows a call was written without its result, and is dropped. A call in a message of
the user or a result is a repetition of it, one in the thinking a draft, and one in a block of code an example: they stay text.

Text is read once, as it arrives; what turns out to be no call is text up to the place that shows it.
"""

import ast
import json
import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias, TypeVar
from warnings import catch_warnings

from taiwa.json_schema import is_object, types
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import BLOCKS, Chunk, Message, StreamEnd, TextDelta, ToolCall, ToolSpec, source_texts
from taiwa.kernel.serialization import Json, exact_json, read_exact_json, read_fraction
from taiwa.structured import OutputType
from taiwa.structured.lenient_parser import try_value
from taiwa.structured.lenient_scanner import ParseHints, WorkBudget, WorkLimitError

A = TypeVar("A")
Reading: TypeAlias = Generator[None, None, A]
"""A reading that pauses until there is more text."""

START = re.compile(r"^[ \t;,]*(?=[`{\[Af])|(?<!`)(?=[<◁]|\[(?:[A-Z_]|\Z)|\bto=|\bto?\Z)", re.MULTILINE)
"""Where a call, code or thinking may begin: JSON, fences and words on their lines, tags, special tokens and channels anywhere."""
FENCE = "```"
MARK = re.compile(
    r"<[|｜][^<>\n]{1,80}>|<[^<>\n]{0,40}(?i:call|func|invoke|tool)[^<>\n]{0,60}>"
    r"|\[/?(?:[A-Z_]{0,20}(?:TOOL|CALL|FUNC)[A-Z_]{0,20}|ARGS)\]|```(?:json|xml|tool_\w{1,8})?[ \t]*\n"
    r"|functools(?=\[)|Action(?: Input)?:|to=(?=functions\.)"
)
HALF_MARK = re.compile(
    r"(?:<[^<>\n]{0,100}|\[/?[A-Z_]{0,20}|```\w{0,13}[ \t]{0,9}|`{1,2}|[Af][\w ]{0,12}|to?=?[a-z]{0,9})?"
)
WORDS = re.compile(r"\s{0,20}[\w.:=-]{0,80}(?: [\w.:=-]{1,80}){0,2} ?")
PARAMETER = re.compile(
    r"<([^\s<>=/]+)(?:\s*=\s*[\"']?([^\s<>\"']+)[\"']?\s*|\s[^<>]*?\bname=[\"']([^\"'<>]+)[\"'][^<>]*)>|<\w*key>"
)
VALUE = r"</\w*key>\s*<(\w*value)>"
KEY = re.compile(
    r'[\[{\s]{1,80}"(?:name|type|id|function|tool|arguments|parameters|tool_calls|tool_name|tool_call_id)"'
)
"""The first keys of JSON that may be a call."""
PYTHON = re.compile(r"(?:\[\s{0,80}|print\(\s*)?([A-Za-z_][\w.]*)\(")
HALF_PYTHON = re.compile(r"(?:print\(\s{0,80})?[A-Za-z_][\w.]{0,80}")
HALF_VALUE = re.compile(r'[\[{\s]{1,80}(?:"?\w{0,80})?')
"""JSON without its first key, or a list of Python without its first name."""
REST = re.compile(r"[ \t;,]{0,80}")
TOKEN = re.compile(r"[\"'\\()\[\]{}<`]")
CLOSE = re.compile(r"</|<[|｜]|\n[ \t]*```")
CHANNEL = "<|channel|>analysis"
CHANNEL_END = re.compile(r"<\|(?:end|start|channel|call|return)\|>")
HALF_TAG = re.compile(r"[<\[◁][^<\[◁]{0,20}\Z")

MAX_TAG_CHARS = 120
MAX_HEAD_CHARS = 300
MAX_CALL_CHARS = 100_000
MAX_PIECE_CHARS = 4_000


class CallsInText:
    """Passes on the chunks of an answer, and turns calls in its text into function calls; text that may become one is held back.

    Args:
        is_prompted: Whether the tools are described in the prompt, so that the model may call them in a form of its own (ReAct).

    >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "b"]}
    >>> reader = CallsInText((ToolSpec("add", "Add.", schema),))
    >>> reader.feed(TextDelta('So:\\n```json\\n{"name": "add", "arguments": {"a": 1, '))
    [TextDelta(text='So:\\n', refuses=False)]
    >>> reader.feed(TextDelta('"b": 2}}\\n```\\nIt is 4. [TOOL_CALLS]add{"a": 2, "b": 2}'))
    []
    >>> [call.arguments for call in reader.feed(StreamEnd())[0].tool_calls]
    ['{"a": 1, "b": 2}', '{"a": 2, "b": 2}']
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec],
        messages: Sequence[Message] = (),
        *,
        is_prompted: bool = False,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._messages = messages
        self._is_prompted = is_prompted
        self._text = "\n"
        """What was not passed on, after the character before it; that is a line feed as long as the line is blank."""
        self._at = 1
        self._is_whole = self._is_code = self._is_fenced = False
        self._passed: list[str] = []
        self._thought: list[str] | None = None
        """The thinking that the text is in."""
        self._calls: list[ToolCall] = []
        self._reading = self._read()

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """Take the next chunk; return those that can be passed on."""
        if isinstance(chunk, TextDelta) and not chunk.refuses:
            for at in range(0, len(chunk.text), MAX_PIECE_CHARS):
                self._text += chunk.text[at : at + MAX_PIECE_CHARS]
                next(self._reading)
            return self._texts()
        if not isinstance(chunk, StreamEnd):
            return [chunk]
        if chunk.finish != "length":
            self._is_whole = True
            next(self._reading, None)
        self._pass(len(self._text))
        if self._thought and self._is_whole and not self._calls:  # a model that does not end its thinking calls there
            reader = CallsInText((*self._tools.values(),), self._messages)
            reader.feed(TextDelta("".join(self._thought)))
            reader._is_whole = True
            next(reader._reading, None)
            self._calls = reader._calls
        if self._calls and not chunk.tool_calls and chunk.finish != "interrupted":
            chunk = replace(chunk, tool_calls=tuple(self._calls), finish="tool_calls")
        return [*self._texts(), chunk]

    def _texts(self) -> list[Chunk]:
        text = "".join(self._passed)
        self._passed.clear()
        return [TextDelta(text)] if text else []

    def _pass(self, end: int) -> None:
        """Pass text on, unless it follows a call."""
        if self._thought is not None:
            self._thought.append(self._text[1:end])
        if not self._calls:
            self._passed.append(self._text[1:end])
        line = self._text.rfind("\n", 0, end)
        is_blank = line >= 0 and not self._text[line:end].strip("\n \t;,")
        self._text = ("\n" if is_blank else self._text[end - 1]) + self._text[end:]

    def _more(self) -> Reading[bool]:
        """Wait for more text; return whether there may be any."""
        if self._is_whole or len(self._text) > MAX_CALL_CHARS:
            return False
        yield
        return True

    def _read(self) -> Reading[None]:
        while True:
            start = START.search(self._text, 1)
            self._pass(start.end() if start else len(self._text))
            if start is None:
                if not (yield from self._more()):
                    return
                continue
            self._at = 1
            if self._is_code:
                yield from self._match(HALF_MARK)
                self._is_code = not self._text.startswith(FENCE, 1)
                self._pass(2 if self._is_code else 4)
                if not self._is_code:  # a call may stand directly behind a block
                    self._text = "\n" + self._text[1:]
            elif opening := (yield from self._opening()):
                yield from self._think(opening)
            else:
                try:
                    calls = yield from self._call()
                except (ValueError, SyntaxError, RecursionError, MemoryError):  # it is not what it seemed to be
                    is_fence = self._text.startswith(FENCE, 1)
                    end = 4 if is_fence else max(self._at, 2)
                    self._is_code = not self._is_fenced and (
                        is_fence or self._text.count(f"\n{FENCE}", 1, end) % 2 == 1
                    )
                    self._is_fenced &= not is_fence
                    self._pass(end)
                else:
                    self._is_fenced = FENCE in self._text[1 : self._at]
                    self._text = "\n" + self._text[self._at :]
                    self._calls += calls

    def _match(self, pattern: re.Pattern[str]) -> Reading[int]:
        """Return where a match here ends, after more text as long as that is the end of the text."""
        while True:
            found = pattern.match(self._text, self._at)
            end = found.end() if found else self._at
            if not found or end < len(self._text) or not (yield from self._more()):
                return end

    def _opening(self) -> Reading[str]:
        """Return the tag that opens thinking here, '' for none."""
        while True:
            begun = self._text[1 : 1 + len(CHANNEL)].lower()
            openings = [each for each in (*BLOCKS, CHANNEL) if begun.startswith(each) or each.startswith(begun)]
            if not openings or len(begun) >= len(openings[0]) or not (yield from self._more()):
                return next((each for each in openings if begun.startswith(each)), "")

    def _think(self, opening: str) -> Reading[None]:
        """Pass on thinking up to its end."""
        ends = re.compile(re.escape(BLOCKS[opening]), re.IGNORECASE) if opening in BLOCKS else CHANNEL_END
        self._pass(1 + len(opening))
        self._thought = []
        while not (closing := ends.search(self._text, 1)):
            half = None if self._is_whole else HALF_TAG.search(self._text, 1)
            self._pass(half.start() if half else len(self._text))
            if not (yield from self._more()):
                return
        self._pass(closing.end())
        self._thought = None

    def _call(self) -> Reading[Sequence[ToolCall]]:
        """Read the calls that begin here, and move behind them.

        Raises:
            ValueError: they are not calls of the tools.
        """
        tool, named_at = None, 0
        while self._at < MAX_HEAD_CHARS and (mark := (yield from self._mark())):
            is_closing = mark[0].startswith("</")
            if is_closing if self._at == 1 else tool and (is_closing or PARAMETER.match(self._text, self._at)):
                break
            if mark[0].startswith("Action") and not self._is_prompted:
                raise ValueError
            start, self._at = self._at, mark.end()
            words = yield from self._match(WORDS)
            self._at = self._at if self._text.startswith("(", words) else words
            for word in re.findall(r"[\w.-]+", self._text[start : self._at]):
                if (named := self._named(word)) is not None:
                    tool, named_at = named, start
        head, start = self._text[1 : self._at], self._at
        is_plain = re.fullmatch(r"(?:```(?:json)?)?\s*", head) is not None
        if is_plain and self._text[0] != "\n":
            raise ValueError
        yield from self._match(HALF_VALUE)
        if not is_plain:
            yield from self._match(HALF_PYTHON)
        char, python = self._text[start : start + 1], PYTHON.match(self._text, start)
        if python and (char == "[" and self._named(python[1]) if is_plain else True):
            yield from self._balanced()
            calls = self._of_python(self._text[start : self._at])
            rest = yield from self._match(REST)
            if is_plain and self._text[rest : rest + 1] not in (*"\n\r<[`{", ""):
                raise ValueError
        elif char and char in ("{[" if tool is None else '{"') and (not is_plain or KEY.match(self._text, start)):
            yield from self._balanced()
            data = self._of_json(start, is_plain)
            calls = self._described(data, is_plain) if tool is None else [_call(tool, data)]
        elif tool and self._text.startswith("</", start):
            calls = [_call(tool, {})]
        elif tool and PARAMETER.match(self._text, start):
            calls = [_call(tool, (yield from self._parameters(tool, head)))]
        else:
            raise ValueError
        written = "".join(self._text[named_at or start : self._at].split())
        if any(written in source for source in self._sources):
            raise ValueError
        return calls

    @cached_property
    def _sources(self) -> list[str]:
        return ["".join(text.split()) for text in source_texts(self._messages)]

    def _mark(self) -> Reading[re.Match[str] | None]:
        """Move behind white space, and return the mark that follows."""
        while True:
            self._at = len(self._text) - len(self._text[self._at :].lstrip())
            yield from self._match(HALF_MARK)
            if not self._text[self._at : self._at + 1].isspace():
                return MARK.match(self._text, self._at)

    def _named(self, name: Json) -> ToolSpec | None:
        """Return the tool of a name, which may stand in the namespace of the prompt."""
        return self._tools.get(name) or self._tools.get(name.rpartition(".")[2]) if isinstance(name, str) else None

    def _balanced(self) -> Reading[None]:
        """Move behind the value or call that begins here, or before the mark that ends it."""
        start, depth, quote = self._at, 0, ""
        while True:
            token = TOKEN.search(self._text, self._at)
            if token is None:
                self._at = max(self._at, len(self._text))
                if not (yield from self._more()):
                    close = CLOSE.search(self._text, start)
                    self._at = close.start() if close else len(self._text)
                    return
                continue
            self._at, char = token.end(), token[0]
            if char == "\\":
                self._at += 1
            elif quote or char in "\"'":
                quote = "" if quote == char else quote or char
            elif char in "<`":
                self._at -= 1
                return
            else:
                depth += 1 if char in "([{" else -1
            if not quote and depth <= 0:
                return

    def _of_json(self, start: int, is_plain: bool) -> Json:
        written = self._text[start : self._at]
        for each in (written, written[1:-1]):  # the chat template of Qwen2.5-Coder shows a call in two pairs of braces
            with suppress(json.JSONDecodeError):
                return read_exact_json(each)
        read = None
        if not is_plain and self._text[start] in "{[":
            with suppress(WorkLimitError):
                work = WorkBudget(MAX_CALL_CHARS + 20 * (self._at - start))
                read = try_value(self._text, start, self._at, work, ParseHints())
        if read is None or read.cut or read.elided:
            raise ValueError
        return read.data

    def _described(self, data: Json, is_plain: bool) -> list[ToolCall]:
        """Return the calls that JSON describes."""
        if isinstance(data, list) and data:
            return [call for item in data for call in self._described(item, is_plain)]
        if not isinstance(data, dict) or not data:
            raise ValueError
        (key, inner), *others = data.items()
        if key == "tool_calls":
            return self._described(inner, is_plain)
        if isinstance(function := data.get("function"), dict):  # with the arguments in it, or beside it
            return self._described({**data, "function": None, **function}, is_plain)
        tool = next(
            filter(None, (self._named(data.get(each)) for each in ("name", "tool_name", "function", "tool"))), None
        )
        if tool is None and not others and not is_plain:
            tool, data = self._named(key), {"arguments": inner}
        if tool is None:
            raise ValueError
        return [_call(tool, data.get("arguments", data.get("parameters", None if is_plain else {})))]

    def _parameters(self, tool: ToolSpec, head: str) -> Reading[Json]:
        """Read arguments in tags; a tag that is not closed ends where the next one, or the tag around it, begins or ends."""
        arguments: dict[str, Json] = {}
        around = "|".join(re.escape(name) for name in re.findall(r"<([^\s<>=/]+)", head)) or r"\Z"
        properties = tool.parameters.get("properties")
        while opened := PARAMETER.match(self._text, self._at):
            self._at = opened.end()
            tag, key = opened[1], opened[2] or opened[3]
            if tag is None:
                key, tag = yield from self._until(VALUE)
            text, _ = yield from self._until(rf"()</{re.escape(tag)}>|(?=<{re.escape(tag)}[\s=])|(?=</(?:{around})>)")
            text = re.sub(r"\A\n|\n\Z", "", text)
            schema = properties.get(key) if is_object(properties) else None
            if text or not is_object(schema) or "string" in types(schema):  # an empty tag is no number
                arguments[key] = text
            yield from self._mark()
        with suppress(InputError):
            return OutputType.from_json_schema(tool.parameters).repair(arguments)
        return arguments

    def _until(self, end: str) -> Reading[tuple[str, str]]:
        """Move behind a mark; return the text before it, and its group."""
        start = self._at
        while not (found := re.compile(end).search(self._text, self._at)):
            self._at = max(start, len(self._text) - MAX_TAG_CHARS)
            if not (yield from self._more()):
                self._at = len(self._text)
                raise ValueError
        self._at = found.end()
        return self._text[start : found.start()], found[1]

    def _of_python(self, written: str) -> list[ToolCall]:
        """Read a call, or a list of calls, in the syntax of Python, with constants by name."""
        with catch_warnings(action="ignore"):  # of escapes in strings
            tree = _ExactNumbers(written).visit(ast.parse(written, mode="eval").body)  # only read, never evaluated
        calls: list[ToolCall] = []
        for node in tree.elts if isinstance(tree, ast.List) else [tree]:
            call = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else node  # as in `print(call())`
            tool = self._named(ast.unparse(call.func)) if isinstance(call, ast.Call) and not call.args else None
            if tool is None or not isinstance(call, ast.Call):
                raise ValueError
            calls.append(_call(tool, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}))
        return calls


class _ExactNumbers(ast.NodeTransformer):
    def __init__(self, written: str) -> None:
        self._written = written

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Constant, ast.UnaryOp)):
            with suppress(ValueError):
                if isinstance(ast.literal_eval(node), float):
                    number = str(ast.get_source_segment(self._written, node))
                    return ast.Constant(read_fraction("".join(number.split()).replace("_", "")))
        return self.generic_visit(node)


def _call(tool: ToolSpec, arguments: Json) -> ToolCall:
    """Make a call; raise ValueError unless its arguments have the names that the tool requires, and no others."""
    if isinstance(arguments, str):
        arguments = read_exact_json(arguments)
    schema = tool.parameters
    properties, required = schema.get("properties"), schema.get("required")
    known = set(properties) if isinstance(properties, dict) else set[str]()
    needed = set(required) if isinstance(required, list) else set[Json]()
    if isinstance(arguments, dict) and needed and not known & arguments.keys():  # they are in the only object in it
        objects = [each for each in arguments.values() if isinstance(each, dict)]
        arguments = objects[0] if len(objects) == 1 else arguments
    if (
        not isinstance(arguments, dict)
        or not needed <= arguments.keys()
        or not (arguments.keys() <= known or schema.get("additionalProperties") not in (None, False))
    ):
        raise ValueError
    return ToolCall(tool.name, exact_json(arguments))
