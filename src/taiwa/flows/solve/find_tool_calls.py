"""Finding the calls in a text that comes in pieces, wherever the pieces are cut: what all text protocols share.

Pure: text in, triggers out. A trigger counts where a person would mean it as one: on one line, outside of code blocks and
inline code, in its protocol's place. What the program puts in is passed over and never scanned.
"""

import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

from taiwa.kernel.records import value

__all__ = ["FENCE", "LONGEST_INPUT", "PIECE", "CallMatch", "Form", "LineScanner", "Reading", "Scanner", "fence"]


LONGEST_INPUT = 1_000

KEPT_TAIL = LONGEST_INPUT + 200

KEPT_HEAD = 80

PIECE = re.compile(r"[^\n]*\n|[^\n]+")

FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)")


@value
class CallMatch:
    """A call that a text asks for.

    `end` is where it ends in the text that was fed last, `size` how long it is as a whole. `mark` is what the result must
    repeat of it, such as the number of an action. A `final` trigger asks for no tool: its input is the answer.
    """

    name: str
    input: str
    end: int
    size: int = 0
    mark: str = ""
    final: bool = False


class Scanner(Protocol):
    """Finds the triggers of a protocol; `copy.copy` gives one that goes on by itself."""

    def feed(self, text: str) -> CallMatch | None:
        """Take the next words; stop right behind the first trigger and leave the rest to whoever asks again."""
        ...

    def skip(self, text: str) -> None:
        """Take what the program put in: it moves the place in the line and is never scanned."""
        ...

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a trigger that only lacks the protocol's `close`."""
        ...


Reading: TypeAlias = Callable[[re.Match[str], tuple[str, ...]], CallMatch | None]
"""What a match says, given the lines before and the words before it on its line; None where it is no call after all."""


@value
class Form:
    """How the triggers of a protocol look: a pattern for a whole one, which ends with `last`, and one for an unfinished one.

    `read` makes a trigger of a match. `lines` says how many lines before the trigger's own it wants to know. A form that is
    `anchored` is a whole line or none.
    """

    last: str
    closed: re.Pattern[str]
    opened: re.Pattern[str]
    read: Reading
    lines: int = 0
    anchored: bool = False


class LineScanner:
    """Finds triggers that stand within a line. It knows the line it is in and whether that is code."""

    __slots__ = ("_before", "_dropped", "_fence", "_form", "_head", "_tail", "_ticks")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._before: tuple[str, ...] = ()
        self._fence = ""
        self._head = ""
        self._tail = ""
        self._ticks = 0
        self._dropped = 0

    def feed(self, text: str) -> CallMatch | None:
        """Take the next words; stop right behind the first trigger and leave the rest to whoever asks again."""
        done = 0
        for found in PIECE.finditer(text):
            piece = found[0]
            before = len(self._tail)
            self._tail += piece
            self._head += piece[: KEPT_HEAD - len(self._head)]
            if self._form.last in self._tail[max(before - len(self._form.last) + 1, 0) :] and (
                call := self._first(self._form.closed)
            ):
                self._forget(call.end)
                self._tail, self._before = "", ()
                if piece.endswith("\n") and done + call.end - before == found.end():
                    self._end_line()
                return CallMatch(call.name, call.input, done + call.end - before, call.size, call.mark, call.final)
            done = found.end()
            if piece.endswith("\n"):
                self._end_line()
            else:
                self._forget(len(self._tail) - KEPT_TAIL)
        return None

    def skip(self, text: str) -> None:
        """Take what the program put in: it moves the place in the line and is never scanned."""
        _, newline, rest = text.rpartition("\n")
        if newline:
            self._end_line()
        self._dropped += len(self._tail) + len(rest)
        self._ticks += self._tail.count("`")
        self._tail = ""

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a trigger that only lacks the protocol's `close`."""
        return self._first(self._form.opened) is not None

    def _first(self, pattern: re.Pattern[str]) -> CallMatch | None:
        """The first trigger that is not in code, with its end in the tail."""
        if self._fence or FENCE.match(self._head) or (self._form.anchored and self._dropped):
            return None
        for found in pattern.finditer(self._tail):
            if (self._ticks + self._tail.count("`", 0, found.start())) % 2 == 0:
                call = self._form.read(found, (*self._before, self._tail[: found.start()]))
                if call is not None:
                    return call
        return None

    def _forget(self, length: int) -> None:
        """Drop the start of the line's tail, but not what is known of it."""
        if length > 0:
            self._ticks += self._tail.count("`", 0, length)
            self._tail = self._tail[length:]
            self._dropped += length

    def _end_line(self) -> None:
        self._fence = fence(self._head, self._fence)
        if self._form.lines and self._tail.strip():
            self._before = (*self._before, self._tail.strip())[-self._form.lines :]
        self._head, self._tail, self._ticks, self._dropped = "", "", 0, 0


def fence(line: str, within: str) -> str:
    """The marks of the code block that a line leaves a text in, '' for none; `within` are those it came in with.

    >>> fence("```python", ""), fence("x", "```"), fence("```", "```")
    ('```', '```', '')
    """
    found = FENCE.match(line)
    if found is None:
        return within
    marks, rest = found["marks"], found["rest"]
    if not within:
        return "" if "`" in rest and marks[0] == "`" else marks
    return "" if marks.startswith(within) and not rest.strip() else within
