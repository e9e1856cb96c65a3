"""The scanner of the lenient parser: spaces, comments and keys; the fixes; the work budget."""

import re
from dataclasses import dataclass, field
from math import inf, nan
from typing import Literal, TypeAlias

from taiwa.kernel.records import value

Level: TypeAlias = Literal["safe", "likely", "guess"]
"""How certain a fix is: no other meaning is possible, hardly any is, or others are."""


@value(tag="fix")
class Fix:
    """A repair of malformed JSON; `position` is a character offset in the text."""

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
"""The quotes that open a string, and those that may close it."""

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

CONSTANTS: dict[str, tuple[bool | float | None, Level]] = {
    **dict.fromkeys(("true", "True"), (True, "safe")),
    **dict.fromkeys(("false", "False"), (False, "safe")),
    **dict.fromkeys(("null", "None"), (None, "safe")),
    "TRUE": (True, "likely"),
    "FALSE": (False, "likely"),
    **dict.fromkeys(("NULL", "Null", "nil"), (None, "likely")),
    "undefined": (None, "guess"),
    **dict.fromkeys(("NaN", "nan"), (nan, "guess")),
    **dict.fromkeys(("Infinity", "inf"), (inf, "guess")),
    **dict.fromkeys(("-Infinity", "-inf"), (-inf, "guess")),
}
"""Constants of JSON, Python and JavaScript; numbers that are not finite are read in order to refuse them by name."""

SPACE = re.compile(r"[\s\ufeff\u200b-\u200d\u2060\xad]*")
SOLID = frozenset(chr(code) for code in range(33, 127)) - {"/", "#"}
"""ASCII characters that begin neither space nor comment."""

JSON_SPACE = re.compile(r"[ \t\n\r]*")
LINE_COMMENT = re.compile(r"(?://|#)[^\n]*")
COMMENT_END = re.compile(r"[,}\]]")
MAX_KEY_CHARS = 350
KEY = re.compile(
    r"[\s\ufeff]*(?:\"((?:[^\"\\\n]|\\.){0,300})\"|'((?:[^'\\\n]|\\.){0,300})'|[“„]([^”“\n]{0,300})[”“])\s*(?:[:：]|=(?!=))"
)

OPEN_KEY = re.compile(
    r"[\"']([\w$ -]{1,60}):(?=\s*[\"'](?!\s*[:：,}\]])"
    r"|\s*[\[{][\s\[{]*[\"'\]}0-9tfnTFN-]|\s*(?:-?[0-9.]+|true|false|null|True|False|None)\s*[,}\n])"
)

KEY_WITHOUT_COLON = re.compile(
    r"[\s\ufeff]*[\"']([\w$ -]{1,60})[\"']\s*(?=[\"'\[{0-9-]|true|false|null|True|False|None)"
)
BARE_KEY = re.compile(r"\s*([^\W\d][\w$-]{0,60})\s*[:：](?!//)")
LOOSE_KEY = re.compile(r"\s*([\w$][\w$.-]{0,60})\s*[:：](?!//)")
HALF_KEY = re.compile(r"\s*([\w$-]{1,60})[\"']\s*[:：]")


class UnreadableError(Exception):
    """The text at `position` cannot be repaired; `depth` brackets were open there."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position
        self.depth = 0


class EscapedError(UnreadableError):
    """The quote at `position` is escaped: the whole value is the inside of a string."""


class DepthError(UnreadableError):
    """The value is nested too deep."""


class BudgetError(Exception):
    """The work budget is spent."""


@dataclass(slots=True)
class WorkBudget:
    """The number of characters that parsing may still look at, shared by all of its attempts.

    `unreadable_at` is the position at which the last value became unreadable, or -1; `exact_attempts` counts down the values that
    are tried as plain JSON and are not.
    """

    left: int
    unreadable_at: int = -1
    exact_attempts: int = 8

    def spend(self, amount: int) -> None:
        """Spend a number of characters.

        Raises:
            BudgetError: the budget is spent.
        """
        self.left -= amount
        if self.left < 0:
            raise BudgetError


@dataclass(slots=True)
class Scanner:
    """A position in a text, the fixes so far, and the work that is left."""

    text: str
    at: int
    end: int
    work: WorkBudget
    fixes: list[Fix] = field(default_factory=list[Fix])
    once: set[str] = field(default_factory=set[str])
    bare_keys: bool = False

    def fix(self, code: str, level: Level, position: int | None = None) -> None:
        """Record a fix."""
        self.fixes.append(Fix(code, self.at if position is None else position, level))

    def fix_once(self, code: str, level: Level, position: int | None = None) -> None:
        """Record a fix once, of a kind that occurs throughout a text."""
        if code not in self.once:
            self.once.add(code)
            self.fix(code, level, position)

    def peek(self) -> str:
        """Return the character here, '' at the end."""
        return self.text[self.at] if self.at < self.end else ""

    def starts(self, word: str) -> bool:
        """Return whether the text goes on with a word."""
        return self.text.startswith(word, self.at, self.end)

    def skip(self) -> str:
        """Skip spaces and comments; return the character there, '' at the end."""
        while True:
            start = self.at
            char = self.text[start] if start < self.end else ""
            if char in SOLID:
                self.work.spend(1)
                return char
            space = JSON_SPACE.match(self.text, start, self.end)
            self.at = space.end() if space else start
            char = self.peek()
            if char and not char.isascii():
                self.wide_space()
            elif char in ("/", "#"):
                self.comment(char)
            self.work.spend(self.at - start + 1)
            if self.at == start:
                return char

    def wide_space(self) -> None:
        """Skip whitespace that JSON does not allow, such as no-break spaces, and record the fix."""
        space = SPACE.match(self.text, self.at, self.end)
        if space and space.end() > self.at:
            self.fix_once("nbsp-indent" if "\xa0" in space[0] else "whitespace", "safe")
            self.at = space.end()

    def comment(self, char: str) -> None:
        """Skip the comment that begins here, if one does, and record the fix."""
        if self.starts("/*"):
            self.fix("comment", "safe")
            close = self.text.find("*/", self.at + 2, self.end)
            self.at = self.end if close < 0 else close + 2
        elif char == "#" or self.starts("//"):
            line = LINE_COMMENT.match(self.text, self.at, self.end)
            stop = line.end() if line else self.end
            # in a text of one line, the comment ends before the next punctuation
            inside = COMMENT_END.search(self.text, self.at, stop) if stop == self.end else None
            self.fix("comment", "guess" if inside else "safe")
            self.at = inside.start() if inside else stop

    def look(self, start: int) -> tuple[str, int]:
        """Return the next character at or after `start` that is not space or comment, and its position."""
        if start < self.end and self.text[start] in SOLID:
            self.work.spend(1)
            return self.text[start], start
        space = SPACE.match(self.text, start, self.end)
        at = space.end() if space else start
        for _ in range(4):
            if self.text.startswith("/*", at, self.end):
                close = self.text.find("*/", at + 2, self.end)
                stop = self.end if close < 0 else close + 2
            elif self.text.startswith(("//", "#"), at, self.end):
                line = self.text.find("\n", at, self.end)
                stop = self.end if line < 0 else line
            else:
                break
            space = SPACE.match(self.text, stop, self.end)
            at = space.end() if space else stop
        self.work.spend(at - start + 1)
        return (self.text[at] if at < self.end else ""), at

    def name_at(self, start: int) -> str:
        """Return the quoted word at `start` if a value follows it without a colon, else ''."""
        self.work.spend(8)
        key = KEY_WITHOUT_COLON.match(self.text, start, min(self.end, start + MAX_KEY_CHARS))
        return key[1] if key else ""

    def key_at(self, start: int, *, bare: bool, half: bool = False) -> str | None:
        """Return the key that stands at `start` with its colon, else None; a `half` key lacks a quote."""
        self.work.spend(8)
        stop = min(self.end, start + MAX_KEY_CHARS)
        key = KEY.match(self.text, start, stop)
        if key is None and half:
            space = SPACE.match(self.text, start, stop)
            key = HALF_KEY.match(self.text, start, stop) or OPEN_KEY.match(
                self.text, space.end() if space else start, stop
            )
        if key is None and bare:
            key = (LOOSE_KEY if self.bare_keys else BARE_KEY).match(self.text, start, stop)
        if key is None:
            return None
        self.work.spend(key.end() - start)
        return key.group(key.lastindex or 0)
