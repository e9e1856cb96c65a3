"""Find the tool calls in a streamed text, however it is cut into chunks.

Pure: text in, matches out. A call counts where a reader would take it for one: outside code blocks and inline code, and where
its tool-call format allows it. Text that the program inserts is skipped and never scanned.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeAlias

from taiwa.kernel.records import value

MAX_INPUT_CHARS = 1_000

MAX_TAIL_CHARS = MAX_INPUT_CHARS + 200

MAX_HEAD_CHARS = 80

MAX_BLOCK_CHARS = 20_000

MAX_BLOCK_LINE_CHARS = 200

LINES = re.compile(r"[^\n]*\n|[^\n]+")

FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)")


@value
class CallMatch:
    """A call that a text asks for.

    `end` is where it ends in the text that was fed last, `size` its whole length in characters. `number` is what the result
    must repeat of it, such as the number of an action. A `final` match calls no tool: its input is the answer.
    """

    name: str
    input: str
    end: int
    size: int = 0
    number: str = ""
    final: bool = False


class Scanner(Protocol):
    """Finds the calls of a tool-call format; `copy.copy` gives an independent scanner of the same position."""

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        ...

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        ...

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""
        ...


MatchReader: TypeAlias = Callable[[re.Match[str], tuple[str, ...]], CallMatch | None]
"""Makes a call of a match, the lines before it and the text before it on its line; None where it is not a call."""


@value
class CallPattern:
    """The patterns of calls within a line: `closed` for a whole call, which ends with `last`, `opened` for an unfinished one.

    `context_lines` is the number of lines before the call's own that `read` needs. An `anchored` call is a whole line.
    """

    last: str
    closed: re.Pattern[str]
    opened: re.Pattern[str]
    read: MatchReader
    context_lines: int = 0
    anchored: bool = False


class LineScanner:
    """Finds calls within a line. It keeps the current line's start and end, and whether they are code."""

    __slots__ = ("_before", "_dropped", "_fence", "_head", "_pattern", "_tail", "_ticks")

    def __init__(self, pattern: CallPattern) -> None:
        self._pattern = pattern
        self._before: tuple[str, ...] = ()
        self._fence = ""
        self._head = ""
        self._tail = ""
        self._ticks = 0
        self._dropped = 0

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        done = 0
        last = self._pattern.last
        for match in LINES.finditer(text):
            line = match[0]
            before = len(self._tail)
            self._tail += line
            self._head += line[: MAX_HEAD_CHARS - len(self._head)]
            if last in self._tail[max(before - len(last) + 1, 0) :] and (call := self._first(self._pattern.closed)):
                end = done + call.end - before
                self._forget(call.end)
                self._tail, self._before = "", ()
                if line.endswith("\n") and end == match.end():
                    self._end_line()
                return replace(call, end=end)
            done = match.end()
            if line.endswith("\n"):
                self._end_line()
            else:
                self._forget(len(self._tail) - MAX_TAIL_CHARS)
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        _, newline, rest = text.rpartition("\n")
        if newline:
            self._end_line()
        self._dropped += len(self._tail) + len(rest)
        self._ticks += self._tail.count("`")
        self._tail = ""

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""
        return self._first(self._pattern.opened) is not None

    def _first(self, pattern: re.Pattern[str]) -> CallMatch | None:
        """Return the first call that is not in code, with its end in the tail."""
        if self._fence or FENCE.match(self._head) or (self._pattern.anchored and self._dropped):
            return None
        for match in pattern.finditer(self._tail):
            if (self._ticks + self._tail.count("`", 0, match.start())) % 2 == 0:
                call = self._pattern.read(match, (*self._before, self._tail[: match.start()]))
                if call is not None:
                    return call
        return None

    def _forget(self, length: int) -> None:
        """Drop the start of the line's tail; keep the number of its characters and backticks."""
        if length > 0:
            self._ticks += self._tail.count("`", 0, length)
            self._tail = self._tail[length:]
            self._dropped += length

    def _end_line(self) -> None:
        self._fence = fence_after(self._head, self._fence)
        if self._pattern.context_lines and self._tail.strip():
            self._before = (*self._before, self._tail.strip())[-self._pattern.context_lines :]
        self._head, self._tail, self._ticks, self._dropped = "", "", 0, 0


class BlockScanner:
    """Finds closed code blocks that are marked with the name of a tool; `tools` maps marks in lower case to names."""

    __slots__ = ("_block", "_fence", "_line", "_name", "_size", "_tools")

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = tools
        self._fence = ""
        self._line = ""
        self._name = ""
        self._block = ""
        self._size = 0

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        for match in LINES.finditer(text):
            line = match[0]
            self._line += line[: MAX_BLOCK_LINE_CHARS - len(self._line)]
            self._size += len(line)
            if self._name:
                self._block = (self._block + line)[: MAX_BLOCK_CHARS + 1]
            if line.endswith("\n") and (call := self._end_line(match.end())):
                return call
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        if "\n" in text:
            self._line = ""
        rest = text.rpartition("\n")[2].replace("`", "'").replace("~", "-")
        self._line += rest[: MAX_BLOCK_LINE_CHARS - len(self._line)]

    @property
    def open(self) -> bool:
        """Whether the text so far ends in the closing marks of a block, which lack only the end of their line."""
        return bool(self._name) and not fence_after(self._line, self._fence)

    def _end_line(self, end: int) -> CallMatch | None:
        line, self._line = self._line, ""
        was, self._fence = self._fence, fence_after(line, self._fence)
        if self._fence and not was:
            opening = FENCE.match(line)
            words = opening["rest"].split() if opening else []
            self._name = self._tools.get(words[0].casefold(), "") if len(words) == 1 else ""
            self._block, self._size = "", len(line)
        elif was and not self._fence and self._name:
            name, block = self._name, self._block
            self._name = self._block = ""
            if len(block) <= MAX_BLOCK_CHARS:
                code = block.rstrip("\n").rpartition("\n")[0] if block.count("\n") > 1 else ""
                return CallMatch(name, code, end, self._size)
        return None


def fence_after(line: str, fence: str) -> str:
    """Return the marks of the code block that is open after a line, '' for none; `fence` are those open before it.

    >>> fence_after("```python", ""), fence_after("x", "```"), fence_after("```", "```")
    ('```', '```', '')
    """
    match = FENCE.match(line)
    if match is None:
        return fence
    marks, rest = match["marks"], match["rest"]
    if not fence:
        return "" if "`" in rest and marks[0] == "`" else marks
    return "" if marks.startswith(fence) and not rest.strip() else fence
