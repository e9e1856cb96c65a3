"""The tagged protocol: a model asks for a tool by `<<name: input>>` in its text, and the result is put right after it.

Pure: text in, triggers out. A trigger counts where a person would mean it as one: on one line, outside of code blocks and
inline code. What tools give back is never scanned, so a result can start no call and open no code block.
"""

import json
import re
from collections.abc import Iterable, Mapping
from copy import copy
from typing import NoReturn, cast

from taiwa.kernel.effects import Seen
from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["CLOSE", "Interrupt", "Scanner", "Trigger", "arguments", "shown", "unrepeated"]

CLOSE = ">>"
LONGEST_INPUT = 1_000
LONGEST_RESULT = 500
KEPT_TAIL = LONGEST_INPUT + 200
KEPT_HEAD = 80
SHORTEST_REPETITION = 8
PIECE = re.compile(r"[^\n]*\n|[^\n]+")
FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)")
UNKNOWN = rf"<<(?P<other>[^\W\d][\w-]{{0,63}}):(?P<odd>(?:(?!<<|>>).){{0,{LONGEST_INPUT}}})>>"


@value
class Trigger:
    """A call that a text asks for; `end` is where it ends in the text that was fed last."""

    name: str
    input: str
    end: int


class Scanner:
    """Finds triggers in a text that comes in pieces, wherever the pieces are cut.

    It knows the line it is in and whether that is code, so it can go on after a trigger. A name that is not among `names`
    counts only in the exact form `<<name:input>>`.
    """

    __slots__ = ("_fence", "_form", "_head", "_open", "_tail", "_ticks")

    def __init__(self, names: Iterable[str]) -> None:
        known = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)"
        opening = rf"<<[ \t]{{0,8}}(?P<name>{known})[ \t]{{0,8}}:(?P<input>(?:(?!>>).){{0,{LONGEST_INPUT}}})"
        self._form = re.compile(f"{opening}>>|{UNKNOWN}")
        self._open = re.compile(rf"{opening}\Z")
        self._fence = ""
        self._head = ""
        self._tail = ""
        self._ticks = 0

    def feed(self, text: str) -> Trigger | None:
        """Take the next words; stop right behind the first trigger and leave the rest to whoever asks again."""
        done = 0
        for found in PIECE.finditer(text):
            piece = found[0]
            before = len(self._tail)
            self._tail += piece
            self._head += piece[: KEPT_HEAD - len(self._head)]
            if CLOSE in self._tail[max(before - 1, 0) :] and (call := self._first(self._form)):
                end = done + call.end() - before
                self._forget(call.end())
                self._tail = ""
                return Trigger(call["name"] or call["other"], (call["input"] or call["odd"] or "").strip(), end)
            done = found.end()
            if piece.endswith("\n"):
                self._end_line()
            else:
                self._forget(len(self._tail) - KEPT_TAIL)
        return None

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a trigger that was not closed."""
        return self._first(self._open) is not None

    def _first(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """The first match that is not in code."""
        if self._fence or FENCE.match(self._head):
            return None
        for found in form.finditer(self._tail):
            if (self._ticks + self._tail.count("`", 0, found.start())) % 2 == 0:
                return found
        return None

    def _forget(self, length: int) -> None:
        """Drop the start of the line's tail, but not what is known of it."""
        if length > 0:
            self._ticks += self._tail.count("`", 0, length)
            self._tail = self._tail[length:]

    def _end_line(self) -> None:
        fence = FENCE.match(self._head)
        if fence is not None:
            marks, rest = fence["marks"], fence["rest"]
            if not self._fence:
                self._fence = "" if "`" in rest and marks[0] == "`" else marks
            elif marks.startswith(self._fence) and not rest.strip():
                self._fence = ""
        self._head, self._tail, self._ticks = "", "", 0


class Interrupt:
    """Watches an answer: skips what it repeats of `known`, shows the rest, and cuts it behind the first trigger."""

    __slots__ = ("_at", "_held", "_known", "_scanner")

    def __init__(self, scanner: Scanner, known: str = "") -> None:
        self._scanner = copy(scanner)
        self._known = _repetitions(known)
        self._held: str | None = ""
        self._at = 0

    def feed(self, text: str) -> Seen:
        """Show all words that are new, up to the end of the first trigger."""
        if self._held is not None:
            self._held += text
            if any(len(each) > len(self._held) and each.startswith(self._held) for each in self._known):
                return Seen()
            self._at = _repeated(self._held, self._known)
            text, self._held = self._held[self._at :], None
        trigger = self._scanner.feed(text)
        if trigger is not None:
            return Seen(text[: trigger.end], self._at + trigger.end)
        self._at += len(text)
        return Seen(text)

    def close(self) -> Seen:
        """Show what might have become a repetition and did not."""
        return Seen(self._held or "")


def unrepeated(text: str, known: str) -> str:
    """Take off the start of a text what it repeats of the text that it continues: all of it, or its last line."""
    return text[_repeated(text, _repetitions(known)) :]


def _repetitions(known: str) -> tuple[str, ...]:
    whole = known.rstrip()
    return tuple(each for each in (whole, whole.rpartition("\n")[2]) if len(each) >= SHORTEST_REPETITION)


def _repeated(text: str, known: tuple[str, ...]) -> int:
    return max((len(each) for each in known if text.startswith(each)), default=0)


def shown(result: str) -> str:
    """A result as it stands in the text: one line of at most 500 printable characters without any trigger mark."""
    plain = "".join(char for char in result if char.isprintable() or char.isspace())
    line = " ".join(plain.split()).replace("<<", "‹‹").replace(">>", "››")
    return (line if len(line) <= LONGEST_RESULT else f"{line[: LONGEST_RESULT - 1]}…") or "(nothing)"


def arguments(spec: ToolSpec, text: str) -> dict[str, Json]:
    """Read a trigger's input: a JSON object of all arguments, or the bare text of the one that the tool needs.

    Raises:
        ToolError: the tool needs several, and this is no JSON object.
    """
    declared = spec.parameters.get("properties")
    properties = declared if isinstance(declared, dict) else {}
    needed = spec.parameters.get("required")
    names = [str(name) for name in needed] if isinstance(needed, list) and needed else list(properties)
    given = _json(text)
    if isinstance(given, dict) and (len(names) != 1 or names[0] in given):
        return given
    if not properties and not text:
        return {}
    if len(names) != 1:
        wanted = ", ".join(f'"{name}": …' for name in names)
        raise ToolError("the input must be a JSON object", code="bad_arguments", hint=f"<<{spec.name}: {{{wanted}}}>>")
    kind = properties.get(names[0])
    bare = not isinstance(kind, Mapping) or kind.get("type") == "string" or given is None
    return {names[0]: text if bare else given}


def _json(text: str) -> Json:
    """The JSON value of a text; None where it is none."""
    try:
        return cast("Json", json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
