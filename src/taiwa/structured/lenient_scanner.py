"""The scanner of the lenient parser: spaces, comments and keys; the fixes; the work budget."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import SURROGATE

Level: TypeAlias = Literal["safe", "likely", "guess"]
"""How certain a fix is: no other meaning is possible, another is unlikely, or others are possible."""


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
COMMAS = ",，、"
COLONS = ":："
SPACE = re.compile(r"[\s\ufeff\u200b-\u200d\u2060\xad]*")
SOLID = frozenset(chr(code) for code in range(33, 127)) - {"/", "#"}
"""ASCII characters that start neither space nor comment."""

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
    """The quote at `position` is escaped: the complete value is inside a string."""


class DepthError(UnreadableError):
    """The value is nested too deep."""


class WorkLimitError(Exception):
    """The work budget is spent."""


@dataclass(slots=True)
class WorkBudget:
    """The number of characters that parsing may still examine, shared by all attempts.

    `unreadable_at` is the position at which the last value became unreadable, or -1; `exact_attempts` counts down values
    that fail as plain JSON.
    """

    left: int
    unreadable_at: int = -1
    exact_attempts: int = 8

    def spend(self, amount: int) -> None:
        """Spend a number of characters.

        Raises:
            WorkLimitError: the budget is spent.
        """
        self.left -= amount
        if self.left < 0:
            raise WorkLimitError


@dataclass(slots=True)
class Scanner:
    """A position in a text, the fixes so far, and the remaining work."""

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

    def fix_once(self, code: str, level: Level) -> None:
        """Record a fix once, of a kind that occurs throughout a text."""
        if code not in self.once:
            self.once.add(code)
            self.fix(code, level)

    def peek(self) -> str:
        """Return the character here, '' at the end."""
        return self.text[self.at] if self.at < self.end else ""

    def starts(self, word: str) -> bool:
        """Return whether a word follows."""
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
        """Return the key at `start` if a colon follows, else None; a `half` key lacks a quote."""
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


StringRole: TypeAlias = Literal["key", "member", "item"]

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"[0-9a-fA-F]{4}")
HEX_BYTE = re.compile(r"x([0-9a-fA-F]{2})")
WHOLE_ITEM = re.compile(r'"[^"\n]{0,200}"\s*(?:[,\]]|\n|\Z)')
REST_OF_KEY = re.compile(r"[^\"'\n:]{0,60}[\"']\s*:")
VALUE_START = re.compile(r"[\"'“‘`\[{(\-0-9]|true|false|null|True|False|None")
INDENT = re.compile(r"(?<=\n)\xa0+")
TAIL_CHARS = " \t\r\n,}]{["
MAX_TAIL = 200
MAX_CLOSERS = 64
MAX_RETRIES = 8
MAX_DEPTH = 128

END, INNER, UNCLOSED = 0, 1, 2


@dataclass(slots=True)
class OpenContainer:
    """An object or list that is still open; `key` waits for its value."""

    closer: str
    data: dict[str, Json] | list[Json]
    opened: int
    state: str = "first"
    key: str = ""
    key_at: int = 0
    comma: int = -1

    @property
    def is_object(self) -> bool:
        """Whether values have keys; a Python set in braces is a list."""
        return isinstance(self.data, dict)

    @property
    def place(self) -> str | int:
        """The key or the index that is being filled."""
        return len(self.data) if isinstance(self.data, list) else self.key


@dataclass(frozen=True, slots=True)
class ParseHints:
    """Hints from the type: its keys; if `quotes_are_text`, doubtful quotes are text rather than ends."""

    names: frozenset[str] = frozenset()
    quotes_are_text: bool = False


@dataclass(slots=True)
class _Open:
    """The string that is being read."""

    role: StringRole
    start: int
    quotes: str
    pieces: list[str] = field(default_factory=list[str])
    inner: int = 0
    balance: int = 0
    control: bool = False
    odd_escape: bool = False
    """Whether an escape is invalid in JSON, so that the others may not be meant as escapes either."""
    first: tuple[int, int, int] = (0, 0, 0)
    """The position of the first quote treated as text, and the numbers of pieces and fixes before it."""

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.balance += piece.count("{") + piece.count("[") - piece.count("}") - piece.count("]")

    @property
    def doubtful(self) -> bool:
        """Whether the text may contain JSON, so that a bracket after a quote may be text as well."""
        return self.inner > 0 and self.balance > 0


class StringReader:
    """Reads strings; the open containers of the parser decide what may follow one."""

    def __init__(self, scan: Scanner, frames: list[OpenContainer], hints: ParseHints) -> None:
        self.scan = scan
        self.frames = frames
        self.hints = hints
        self.ended = True
        self.retries = MAX_RETRIES

    def read(self, role: StringRole) -> str:
        """Read the string that starts here; afterwards, `ended` is whether it had an end."""
        scan = self.scan
        quote, start = scan.peek(), scan.at
        self.ended = True
        if role == "key" and (half := OPEN_KEY.match(scan.text, start, scan.end)):
            scan.fix("missing-quote", "guess", half.end(1))
            scan.at = half.end(1)
            return half[1]
        if quote != '"':
            scan.fix_once("quotes", "safe")
        for size in (3, 2):
            if quote in "\"'" and scan.starts(quote * size) and (wide := self.wide(quote * size, role)) is not None:
                return wide
        return self.narrow(_Open(role, start, QUOTES[quote]))

    def narrow(self, opened: _Open) -> str:
        """Read a string between single quotes or double quotes."""
        scan = self.scan
        special, at = _special(opened.quotes), opened.start + 1
        while True:
            match = special.search(scan.text, at, scan.end)
            stop = match.start() if match else scan.end
            scan.work.spend(stop - at + 1)
            opened.add(scan.text[at:stop])
            if match is None:
                return self.unterminated(opened)
            char = match[0]
            if char == "\\":
                piece, at = self.escape(stop)
                opened.odd_escape = opened.odd_escape or (piece == "\\" and at == stop + 1)
                opened.pieces.append(piece)
            elif char < " ":
                if not opened.control:
                    opened.control = True
                    scan.fix("raw-control", "likely", stop)
                opened.pieces.append(char)
                at = stop + 1
            else:
                verdict = self.verdict(opened, stop)
                if verdict == END:
                    scan.at = stop + 1
                    return self.finished(opened)
                if verdict == UNCLOSED:
                    return self.unclosed(opened, stop)
                self.quote_as_text(opened, stop)
                at = stop + 1

    def quote_as_text(self, opened: _Open, at: int) -> None:
        """Treat a quote as a character of the string; the fix is a guess if the quote may have ended it."""
        if not opened.inner:
            opened.first = (at, len(opened.pieces), len(self.scan.fixes))
        text = self.scan.text
        is_apostrophe = text[at] in "'’" and text[at - 1].isalpha() and text[at + 1 : at + 2].isalpha()
        opened.inner += not is_apostrophe
        after, _ = self.scan.look(at + 1)
        in_doubt = after and (after in CLOSERS or after in COMMAS or after in COLONS)  # it may be the end
        self.scan.fix("inner-quote", "guess" if in_doubt else "likely", at)
        opened.pieces.append(text[at])

    def wide(self, mark: str, role: StringRole) -> str | None:
        """Read a string between doubled or tripled quotes; None if they are something else."""
        scan = self.scan
        begin = scan.at + len(mark)
        close = scan.text.find(mark, begin, scan.end)
        scan.work.spend((scan.end if close < 0 else close) - begin + 1)
        if close < 0 or (len(mark) == 2 and scan.text[begin] in " \t\r\n,:}])"):
            return None
        after, _ = scan.look(close + len(mark))
        if after not in ("", *COMMAS, *COLONS, *CLOSERS, ";"):
            return None
        if role == "key" and after and after not in COLONS:
            return None
        scan.fix_once("wide-quotes", "likely")
        scan.at = close + len(mark)
        return _text([self.unescaped(begin, close)])

    def unescaped(self, at: int, stop: int) -> str:
        """Return a span with its escapes replaced."""
        pieces: list[str] = []
        while True:
            slash = self.scan.text.find("\\", at, stop)
            if slash < 0 or slash + 1 >= stop:
                pieces.append(self.scan.text[at:stop])
                return "".join(pieces)
            pieces.append(self.scan.text[at:slash])
            piece, at = self.escape(slash)
            pieces.append(piece)

    def escape(self, at: int) -> tuple[str, int]:
        """Read the escape at a backslash; an invalid one keeps its characters. Also return the position after it."""
        scan = self.scan
        char = scan.text[at + 1] if at + 1 < scan.end else ""
        if char in ESCAPES and char:
            return ESCAPES[char], at + 2
        if char == "u" and (digits := HEX.match(scan.text, at + 2, scan.end)):
            return chr(int(digits[0], 16)), at + 6
        if char in QUOTES:
            scan.fix("bad-escape", "safe", at)
            return char, at + 2
        if char == "\n":
            scan.fix("bad-escape", "likely", at)
            return "\n", at + 2
        if char == "x" and (digits := HEX_BYTE.match(scan.text, at + 1, scan.end)):
            scan.fix("bad-escape", "likely", at)
            return chr(int(digits[1], 16)), at + 4
        if char:
            scan.fix("bad-escape", "likely", at)
        return "\\", at + 1

    def verdict(self, opened: _Open, at: int) -> int:
        """Classify a quote: the end, text inside, or the start of the next string after a missing end."""
        after, where = self.scan.look(at + 1)
        if opened.role == "key":
            return self.key_verdict(at, after, where)
        if self.follows(opened, after, where):
            return END
        return UNCLOSED if self.starts_next(opened, at) else INNER

    def key_verdict(self, at: int, after: str, where: int) -> int:
        """Decide whether a quote ends a key (`END`) or belongs to it (`INNER`), by the text that follows."""
        if not after or after in COLONS or after in ",}=":
            return END
        if REST_OF_KEY.match(self.scan.text, at + 1, self.scan.end) and after not in QUOTES:
            return INNER
        return END if VALUE_START.match(self.scan.text, where, self.scan.end) else INNER

    def follows(self, opened: _Open, after: str, where: int) -> bool:
        """Return whether the text after a quote can follow a string in this role."""
        text = self.scan.text
        if not after or self.fence(where):
            return True
        if after in COMMAS:
            return self.after_comma(opened, where + 1)
        if after in CLOSERS:
            return self.closes(opened, where)
        if after == "+":
            return self.scan.look(where + 1)[0] in QUOTES
        if after == ";":
            return self.scan.look(where + 1)[0] in ("", *CLOSERS, *QUOTES)
        if after == "#" or (opened.role == "item" and after in COLONS):
            return True
        if opened.role == "member":
            return self.key(where, doubtful=opened.doubtful, bare="\n" in text[max(0, where - MAX_TAIL) : where])
        return after in QUOTES and text[where - 1].isspace()

    def after_comma(self, opened: _Open, start: int) -> bool:
        """Return whether the text after a comma can be the next item or member, so that the quote before it ended a string."""
        char, where = self.scan.look(start)
        if not char:
            return True
        if opened.role == "item":
            return bool(char in CLOSERS or VALUE_START.match(self.scan.text, where, self.scan.end) or self.dots(where))
        if char in CLOSERS:
            return self.closes(opened, where)
        if char in "{｛" and len(self.frames) > 1 and not self.frames[-2].is_object:
            return self.key(where + 1, doubtful=opened.doubtful)
        return self.dots(where) or self.key(where, doubtful=opened.doubtful, half=True)

    def key(self, where: int, *, doubtful: bool = False, bare: bool = False, half: bool = False) -> bool:
        """Return whether there is a key; in doubt, only keys of the type count."""
        key = self.scan.key_at(where, bare=bare or self.scan.bare_keys, half=half)
        if key is None:
            return self.scan.name_at(where) in self.hints.names
        if (doubtful or self.hints.quotes_are_text) and self.hints.names:
            return key in self.hints.names
        return not doubtful

    def dots(self, where: int) -> bool:
        """Return whether there is an ellipsis, as in an abbreviated list."""
        return self.scan.text.startswith(("...", "…"), where, self.scan.end)

    def fence(self, where: int) -> bool:
        """Return whether a code fence on a separate line, or at the end, closes the text there."""
        text, end = self.scan.text, self.scan.end
        if not text.startswith("```", where, end):
            return False
        stop = where + 3
        return stop >= end or text[stop] == "\n" or not text[stop:end].strip()

    def closes(self, opened: _Open, where: int) -> bool:
        """Return whether the closing brackets there, and the text after them, fit the open containers."""
        return self.fit(len(self.frames), where, doubtful=opened.doubtful) > 0

    def fit(self, depth: int, where: int, *, doubtful: bool = False) -> int:
        """Return how well the text at `where` fits while `depth` containers are open.

        0: it does not; 1: as text after a complete value; 2: as the next member or item; 3: to the end.
        """
        char, where = self.scan.look(where)
        for _ in range(MAX_CLOSERS):
            if char not in CLOSERS or not depth:
                break
            depth = self.outside(depth, CLOSERS[char])
            if depth < 0:
                return 0
            char, where = self.scan.look(where + 1)
        if not char or self.fence(where):
            return 2 if depth else 3
        if not depth:
            return int(self.after_root(char, where, doubtful=doubtful))
        if char in COMMAS:
            char, where = self.scan.look(where + 1)
        if not char or char in CLOSERS:
            return 2
        if self.frames[depth - 1].is_object:
            return 2 * self.key(where, doubtful=doubtful, half=True)
        return 2 * (VALUE_START.match(self.scan.text, where, self.scan.end) is not None)

    def outside(self, depth: int, closer: str) -> int:
        """Return how many containers stay open after a closing bracket, which closes the innermost of its kind; -1 without one."""
        self.scan.work.spend(1)
        while depth:
            depth -= 1
            if self.frames[depth].closer == closer:
                return depth
        return -1

    def after_root(self, char: str, where: int, *, doubtful: bool) -> bool:
        """Return whether the text after a string at the top level leaves no doubt that the string ended."""
        if not doubtful and not self.hints.quotes_are_text:
            return True
        if char not in COMMAS:
            return False
        after, at = self.scan.look(where + 1)
        return not after or after in OPENERS or self.key(at, doubtful=doubtful)

    def tail(self, opened: _Open, at: int) -> int:
        """Return the start of the punctuation before a quote that would be outside the string."""
        stop = max(opened.start + 1, at - MAX_TAIL)
        start = at
        while start > stop and self.scan.text[start - 1] in TAIL_CHARS:
            start -= 1
        self.scan.work.spend(at - start + 1)
        return start

    def starts_next(self, opened: _Open, at: int) -> bool:
        """Return whether a quote opens the next string because the end of this one is missing."""
        start = self.tail(opened, at)
        tail = self.scan.text[start:at]
        if "\n" not in tail and "," not in tail:
            return False
        key = self.scan.key_at(at, bare=False)
        if key is not None:
            if tail.strip() != "," and not self.fit(len(self.frames), start):
                return False
            known = not self.hints.names or key in self.hints.names
            return known and (opened.balance <= 0 or bool(self.hints.names)) and not self.hints.quotes_are_text
        if opened.role == "member" or self.hints.quotes_are_text or tail.strip(" \t\r\n,"):
            return False
        return bool(WHOLE_ITEM.match(self.scan.text, at, self.scan.end))

    def unclosed(self, opened: _Open, at: int) -> str:
        """End the string before the punctuation in front of the next string."""
        scan = self.scan
        whole = "".join(opened.pieces)
        scan.at = self.tail(opened, at)
        scan.fix("missing-quote", "guess")
        return _text([whole[: len(whole) - (at - scan.at)]])

    def unterminated(self, opened: _Open) -> str:
        """Return a string at the end of the text: it is cut, unless it ends with exactly the missing closing brackets."""
        scan = self.scan
        at = scan.end
        while at > opened.start + 1 and (scan.text[at - 1] in CLOSERS or scan.text[at - 1].isspace()):
            at -= 1
        scan.work.spend(scan.end - at + 1)
        closers = "".join(CLOSERS.get(char, "") for char in scan.text[at : scan.end])
        wanted = "".join(frame.closer for frame in reversed(self.frames))
        whole = "".join(opened.pieces)
        if closers and closers == wanted and opened.role != "key" and opened.inner % 2 == 0:
            scan.at = at
            scan.fix("missing-quote", "guess", at)
            return _text([whole[: len(whole) - (scan.end - at)]])
        if opened.inner and opened.role in ("member", "item") and not self.hints.quotes_are_text and self.retries:
            self.retries -= 1
            scan.at, pieces, fixes = opened.first  # no later quote was the end, so this one is
            del opened.pieces[pieces:], scan.fixes[fixes:]
            opened.inner = 0
            scan.at += 1
            return self.finished(opened)
        scan.at = scan.end
        self.ended = False
        return _text([whole])

    def finished(self, opened: _Open) -> str:
        """Return the content of a string; no-break spaces of indentation become spaces."""
        whole = _text(opened.pieces)
        if opened.inner % 2:  # quotes inside text come in pairs; a single one may be a lost end or beginning
            self.scan.fix("odd-quote", "guess", opened.first[0])
        if opened.odd_escape and any(char in whole for char in "\b\f\n\r\t"):
            self.scan.fix("odd-escape", "guess", opened.start)
        if "nbsp-indent" in self.scan.once and "\n\xa0" in whole:
            self.scan.fix("nbsp-indent", "likely", opened.start)
            return INDENT.sub(lambda indent: " " * len(indent[0]), whole)
        return whole


@cache
def _special(quotes: str) -> re.Pattern[str]:
    return re.compile("[\\\\\x00-\x1f" + re.escape(quotes) + "]")


def _text(pieces: list[str]) -> str:
    """Join pieces, and surrogate pairs whose halves were escaped one by one."""
    whole = "".join(pieces)
    if SURROGATE.search(whole):
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return whole
