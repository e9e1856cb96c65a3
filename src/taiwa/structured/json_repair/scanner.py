"""Lenient JSON parser: spaces, comments, numbers, fixes, work budget."""

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from taiwa.kernel.records import value

__all__ = [
    "BARE_KEY",
    "BRACKETS",
    "CLOSERS",
    "COLONS",
    "COMMAS",
    "CONSTANTS",
    "GROUPED",
    "KEY",
    "LOOSE_NUMBER",
    "NUMBER",
    "OPENERS",
    "OPEN_KEY",
    "QUOTES",
    "BudgetError",
    "DepthError",
    "EscapedError",
    "Fix",
    "Level",
    "Scanner",
    "UnreadableError",
    "WorkBudget",
]


Level: TypeAlias = Literal["safe", "likely", "guess"]
"""How sure a fix is: it cannot change the meaning · hardly any other meaning is possible · others are possible."""


@value(tag="fix")
class Fix:
    """One departure from JSON that was mended; `position` is its character offset in the text."""

    code: str
    position: int
    level: Level


QUOTES: dict[str, str] = {
    '"': '"',
    "'": "'",
    "“": '”“"',
    "”": '”"',
    "„": '“”"',
    "‘": "’‘'",
    "’": "’'",
    "`": "`´'",
    "´": "´`'",
    "«": "»",
    "「": "」",
    "『": "』",
    "＂": "＂",
    "＇": "＇",
}
"""What opens a string, and what may then close it."""

OPENERS = {"{": "}", "[": "]", "(": ")", "｛": "}", "［": "]", "【": "]", "（": ")"}

CLOSERS = {"}": "}", "]": "]", ")": ")", "｝": "}", "］": "]", "】": "]", "）": ")"}

BRACKETS = re.compile(r"[{\[｛［]")

COMMAS = ",，、"

COLONS = ":："

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.$+%-])")

LOOSE_NUMBER = re.compile(
    r"([-+]?)([0-9]+(?:_[0-9]+)*)?(?:\.([0-9]+(?:_[0-9]+)*)?)?(?:[eE]([-+]?[0-9]+))?(?![\w.$+/%:-])"
)

GROUPED = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?=\s*(?:,\s*[\"'\w]|[}\]]|\n))")

NAN, INFINITY = float("nan"), float("inf")

CONSTANTS: dict[str, tuple[bool | float | None, Level]] = {
    "true": (True, "safe"),
    "false": (False, "safe"),
    "null": (None, "safe"),
    "True": (True, "safe"),
    "False": (False, "safe"),
    "None": (None, "safe"),
    "TRUE": (True, "likely"),
    "FALSE": (False, "likely"),
    "NULL": (None, "likely"),
    "Null": (None, "likely"),
    "nil": (None, "likely"),
    "undefined": (None, "guess"),
    "NaN": (NAN, "guess"),
    "nan": (NAN, "guess"),
    "Infinity": (INFINITY, "guess"),
    "inf": (INFINITY, "guess"),
}
"""What words mean in JSON, Python and JavaScript; what is not finite is read only to be refused by name."""

SPACE = re.compile(r"[\s\ufeff\u200b-\u200d\u2060\xad]*")

SOLID = frozenset(chr(code) for code in range(33, 127)) - {"/", "#"}
"""Characters that begin neither space nor comment."""

JSON_SPACE = re.compile(r"[ \t\n\r]*")

LINE_COMMENT = re.compile(r"(?://|#)[^\n]*")

COMMENT_END = re.compile(r"[,}\]]")

KEY_SPAN = 350

KEY = re.compile(
    r"[\s\ufeff]*(?:\"((?:[^\"\\\n]|\\.){0,300})\"|'((?:[^'\\\n]|\\.){0,300})'|[“„]([^”“\n]{0,300})[”“])\s*(?:[:：]|=(?!=))"
)

OPEN_KEY = re.compile(
    r"[\"']([\w$ -]{1,60}):(?=\s*[\"'](?!\s*[:：,}\]])"
    r"|\s*[\[{][\s\[{]*[\"'\]}0-9tfnTFN-]|\s*(?:-?[0-9.]+|true|false|null|True|False|None)\s*[,}\n])"
)

NAMED = re.compile(r"[\s\ufeff]*[\"']([\w$ -]{1,60})[\"']\s*(?=[\"'\[{0-9-]|true|false|null|True|False|None)")

BARE_KEY = re.compile(r"\s*([^\W\d][\w$-]{0,60})\s*[:：](?!//)")

LOOSE_KEY = re.compile(r"\s*([\w$][\w$.-]{0,60})\s*[:：](?!//)")

HALF_KEY = re.compile(r"\s*([\w$-]{1,60})[\"']\s*[:：]")


class UnreadableError(Exception):
    """The text at `position` cannot be part of a JSON value, whatever is mended; `depth` brackets were open there."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position
        self.depth = 0


class EscapedError(UnreadableError):
    """The quote at `position` is escaped, so the whole value is the inside of a string."""


class DepthError(UnreadableError):
    """The value is nested deeper than allowed."""


class BudgetError(Exception):
    """The reading would cost more work than allowed."""


@dataclass(slots=True)
class WorkBudget:
    """The characters that one reading may still look at, whatever it tries; shared by all of its attempts.

    `stuck` is where the last value could not be read on, or -1; `exact` how many more values may turn out to be no plain JSON
    before none is taken for it at first.
    """

    left: int
    stuck: int = -1
    exact: int = 8

    def spend(self, amount: int) -> None:
        """Take from the budget.

        Raises:
            BudgetError: nothing is left.
        """
        self.left -= amount
        if self.left < 0:
            raise BudgetError


@dataclass(slots=True)
class Scanner:
    """A place in a text, the mends so far, and the work that is left."""

    text: str
    at: int
    end: int
    work: WorkBudget
    fixes: list[Fix] = field(default_factory=list[Fix])
    once: set[str] = field(default_factory=set[str])
    bare_keys: bool = False

    def fix(self, code: str, level: Level, position: int | None = None) -> None:
        """Write down a mend."""
        self.fixes.append(Fix(code, self.at if position is None else position, level))

    def fix_once(self, code: str, level: Level, position: int | None = None) -> None:
        """Write down the first mend of a kind that runs through the whole text."""
        if code not in self.once:
            self.once.add(code)
            self.fix(code, level, position)

    def peek(self) -> str:
        """Give the character here, or '' at the end."""
        return self.text[self.at] if self.at < self.end else ""

    def starts(self, word: str) -> bool:
        """Tell whether a word stands here."""
        return self.text.startswith(word, self.at, self.end)

    def skip(self) -> str:
        """Go over spaces and comments; give the character there, or '' at the end."""
        while True:
            start = self.at
            char = self.text[start] if start < self.end else ""
            if char in SOLID:
                self.work.spend(1)
                return char
            found = JSON_SPACE.match(self.text, start, self.end)
            self.at = found.end() if found else start
            char = self.peek()
            if char and not char.isascii():
                self.wide_space()
            elif char in ("/", "#"):
                self.comment(char)
            self.work.spend(self.at - start + 1)
            if self.at == start:
                return char

    def wide_space(self) -> None:
        found = SPACE.match(self.text, self.at, self.end)
        if found and found.end() > self.at:
            self.fix_once("nbsp-indent" if "\xa0" in found[0] else "whitespace", "safe")
            self.at = found.end()

    def comment(self, char: str) -> None:
        if self.starts("/*"):
            self.fix("comment", "safe")
            close = self.text.find("*/", self.at + 2, self.end)
            self.at = self.end if close < 0 else close + 2
        elif char == "#" or self.starts("//"):
            found = LINE_COMMENT.match(self.text, self.at, self.end)
            stop = found.end() if found else self.end
            if stop < self.end or not COMMENT_END.search(self.text, self.at, stop):
                self.fix("comment", "safe")
                self.at = stop
                return
            ended = COMMENT_END.search(self.text, self.at, stop)  # all on one line: the comment cannot hold the rest
            self.fix("comment", "guess")
            self.at = ended.start() if ended else stop

    def look(self, start: int) -> tuple[str, int]:
        """Give the next character that is no space or comment after `start`, and where it is, without going there."""
        if start < self.end and self.text[start] in SOLID:
            self.work.spend(1)
            return self.text[start], start
        found = SPACE.match(self.text, start, self.end)
        at = found.end() if found else start
        for _ in range(4):
            if self.text.startswith("/*", at, self.end):
                close = self.text.find("*/", at + 2, self.end)
                stop = self.end if close < 0 else close + 2
            elif self.text.startswith(("//", "#"), at, self.end):
                line = self.text.find("\n", at, self.end)
                stop = self.end if line < 0 else line
            else:
                break
            found = SPACE.match(self.text, stop, self.end)
            at = found.end() if found else stop
        self.work.spend(at - start + 1)
        return (self.text[at] if at < self.end else ""), at

    def name_at(self, start: int) -> str:
        """Give the quoted word that stands at `start` right before a value, as a key without its colon does."""
        self.work.spend(8)
        found = NAMED.match(self.text, start, min(self.end, start + KEY_SPAN))
        return found[1] if found else ""

    def key_at(self, start: int, *, bare: bool, half: bool = False) -> str | None:
        """Tell whether a key and its colon stand at `start`, and which key; a `half` key has lost its first quote."""
        self.work.spend(8)
        stop = min(self.end, start + KEY_SPAN)
        found = KEY.match(self.text, start, stop)
        if found is None and half:
            space = SPACE.match(self.text, start, stop)
            found = HALF_KEY.match(self.text, start, stop) or OPEN_KEY.match(
                self.text, space.end() if space else start, stop
            )
        if found is None and bare:
            found = (LOOSE_KEY if self.bare_keys else BARE_KEY).match(self.text, start, stop)
        if found is None:
            return None
        self.work.spend(found.end() - start)
        return found.group(found.lastindex or 0)
