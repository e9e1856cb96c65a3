"""Strings of malformed JSON: where does one end, when quotes inside are not escaped or the last one is missing?

A quote ends a string when what follows it can follow a string there; it belongs to the text when it cannot. A quoted
string's content is never trimmed.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from taiwa.kernel.records import Json
from taiwa.structured.json_repair.scanner import CLOSERS, COLONS, COMMAS, OPEN_KEY, OPENERS, QUOTES, Level, Scanner

__all__ = ["OpenContainer", "ParseHints", "StringReader"]


StringRole: TypeAlias = Literal["key", "member", "item"]

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

HEX = re.compile(r"[0-9a-fA-F]{4}")

HEX_BYTE = re.compile(r"x([0-9a-fA-F]{2})")

SURROGATE = re.compile(r"[\ud800-\udfff]")

WHOLE_ITEM = re.compile(r'"[^"\n]{0,200}"\s*(?:[,\]]|\n|\Z)')

REST_OF_KEY = re.compile(r"[^\"'\n:]{0,60}[\"']\s*:")

VALUE_START = re.compile(r"[\"'“‘`\[{(\-0-9]|true|false|null|True|False|None")

INDENT = re.compile(r"(?<=\n)\xa0+")

TAIL_CHARS = " \t\r\n,}]{["

MAX_TAIL = 200

MAX_CLOSERS = 64

MAX_RETRIES = 8

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
        """Tell whether keys come before values here; a set in braces is a list."""
        return isinstance(self.data, dict)


@dataclass(frozen=True, slots=True)
class ParseHints:
    """What the wanted type tells a reader: the keys it names; `patient` reads quotes as text rather than as ends."""

    names: frozenset[str] = frozenset()
    patient: bool = False
    depth: int = 128


@dataclass(slots=True)
class _Open:
    """The string being read."""

    role: StringRole
    start: int
    quotes: str
    pieces: list[str] = field(default_factory=list[str])
    inner: int = 0
    balance: int = 0
    control: bool = False
    spared: bool = False
    """Has an escape that JSON does not know, so the others may not have been meant as escapes either."""
    first: tuple[int, int, int] = (0, 0, 0)
    """Where the first quote was taken for text, with how many pieces and fixes before it."""

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.balance += piece.count("{") + piece.count("[") - piece.count("}") - piece.count("]")

    @property
    def doubtful(self) -> bool:
        """Looks like JSON inside the text, so a bracket after a quote may be text as well."""
        return self.inner > 0 and self.balance > 0


class StringReader:
    """Reads one string after another for the reader whose frames it looks at."""

    def __init__(self, scan: Scanner, frames: list[OpenContainer], hints: ParseHints) -> None:
        self.scan = scan
        self.frames = frames
        self.hints = hints
        self.ended = True
        self.retries = MAX_RETRIES

    def read(self, role: StringRole) -> str:
        """Read the string that starts here; `ended` tells whether it did."""
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
        """Read a string between single marks."""
        scan = self.scan
        special, at = _special(opened.quotes), opened.start + 1
        while True:
            found = special.search(scan.text, at, scan.end)
            stop = found.start() if found else scan.end
            scan.work.spend(stop - at + 1)
            opened.add(scan.text[at:stop])
            if found is None:
                return self.unterminated(opened)
            char = found[0]
            if char == "\\":
                piece, at = self.escape(stop)
                opened.spared = opened.spared or (piece == "\\" and at == stop + 1)
                opened.pieces.append(piece)
            elif char < " ":
                self.raw_control(opened, stop)
                opened.pieces.append(char)
                at = stop + 1
            else:
                verdict = self.verdict(opened, stop)
                if verdict == END:
                    scan.at = stop + 1
                    return self.finished(opened)
                if verdict == UNCLOSED:
                    return self.unclosed(opened, stop)
                self.keep(opened, stop)
                at = stop + 1

    def keep(self, opened: _Open, at: int) -> None:
        """Take a quote for text."""
        if not opened.inner:
            opened.first = (at, len(opened.pieces), len(self.scan.fixes))
        opened.inner += not self.apostrophe(at)
        self.scan.fix("inner-quote", self.certainty(at), at)
        opened.pieces.append(self.scan.text[at])

    def apostrophe(self, at: int) -> bool:
        text = self.scan.text
        return text[at] in "'’" and text[at - 1].isalpha() and text[at + 1 : at + 2].isalpha()

    def certainty(self, at: int) -> Level:
        """A quote that punctuation of JSON follows may have been an end after all."""
        after, _ = self.scan.look(at + 1)
        return "guess" if after and (after in CLOSERS or after in COMMAS or after in COLONS) else "likely"

    def wide(self, mark: str, role: StringRole) -> str | None:
        """Read a string between doubled or tripled quotes, where that is what they are."""
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
        """Read the escape at a backslash; a wrong one keeps its characters."""
        scan = self.scan
        char = scan.text[at + 1] if at + 1 < scan.end else ""
        if char in ESCAPES and char:
            return ESCAPES[char], at + 2
        if char == "u" and (found := HEX.match(scan.text, at + 2, scan.end)):
            return chr(int(found[0], 16)), at + 6
        if char in QUOTES:
            scan.fix("bad-escape", "safe", at)
            return char, at + 2
        if char == "\n":
            scan.fix("bad-escape", "likely", at)
            return "\n", at + 2
        if char == "x" and (found := HEX_BYTE.match(scan.text, at + 1, scan.end)):
            scan.fix("bad-escape", "likely", at)
            return chr(int(found[1], 16)), at + 4
        if char:
            scan.fix("bad-escape", "likely", at)
        return "\\", at + 1

    def raw_control(self, opened: _Open, at: int) -> None:
        if not opened.control:
            opened.control = True
            self.scan.fix("raw-control", "likely", at)

    def verdict(self, opened: _Open, at: int) -> int:
        """Decide what a quote is: the end, text, or the start of the next string after a missing end."""
        after, where = self.scan.look(at + 1)
        if opened.role == "key":
            return self.key_verdict(at, after, where)
        if self.follows(opened, after, where):
            return END
        return UNCLOSED if self.starts_next(opened, at) else INNER

    def key_verdict(self, at: int, after: str, where: int) -> int:
        if not after or after in COLONS or after in ",}=":
            return END
        if REST_OF_KEY.match(self.scan.text, at + 1, self.scan.end) and after not in QUOTES:
            return INNER
        return END if VALUE_START.match(self.scan.text, where, self.scan.end) else INNER

    def follows(self, opened: _Open, after: str, where: int) -> bool:
        """Tell whether what comes after a quote can come after a string in this role."""
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
        """Tell whether a key stands there; in doubt it has to be one that the type names."""
        found = self.scan.key_at(where, bare=bare or self.scan.bare_keys, half=half)
        if found is None:
            return self.scan.name_at(where) in self.hints.names
        if (doubtful or self.hints.patient) and self.hints.names:
            return found in self.hints.names
        return not doubtful

    def dots(self, where: int) -> bool:
        return self.scan.text.startswith(("...", "…"), where, self.scan.end)

    def fence(self, where: int) -> bool:
        """Tell whether a fence on a line of its own, or at the end, closes the text there."""
        text, end = self.scan.text, self.scan.end
        if not text.startswith("```", where, end):
            return False
        stop = where + 3
        return stop >= end or text[stop] == "\n" or not text[stop:end].strip()

    def closes(self, opened: _Open, where: int) -> bool:
        """Tell whether the closers there, and what follows them, fit what is open."""
        return self.fit(len(self.frames), where, doubtful=opened.doubtful) > 0

    def fit(self, depth: int, where: int, *, doubtful: bool = False) -> int:
        """Tell how well what comes at `where` fits while `depth` containers are open.

        0 not · 1 as text after a value that is done · 2 as the next member or item · 3 to the end.
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
        """Count what stays open after a closer: it ends the innermost container of its kind; -1 without one."""
        self.scan.work.spend(1)
        while depth:
            depth -= 1
            if self.frames[depth].closer == closer:
                return depth
        return -1

    def after_root(self, char: str, where: int, *, doubtful: bool) -> bool:
        if not doubtful and not self.hints.patient:
            return True
        if char not in COMMAS:
            return False
        after, at = self.scan.look(where + 1)
        return not after or after in OPENERS or self.key(at, doubtful=doubtful)

    def tail(self, opened: _Open, at: int) -> int:
        """Find where the punctuation before a quote begins that would belong outside of a string."""
        stop = max(opened.start + 1, at - MAX_TAIL)
        start = at
        while start > stop and self.scan.text[start - 1] in TAIL_CHARS:
            start -= 1
        self.scan.work.spend(at - start + 1)
        return start

    def starts_next(self, opened: _Open, at: int) -> bool:
        """Tell whether this quote opens the next string, because the end of this one is missing."""
        start = self.tail(opened, at)
        tail = self.scan.text[start:at]
        if "\n" not in tail and "," not in tail:
            return False
        found = self.scan.key_at(at, bare=False)
        if found is not None:
            if tail.strip() != "," and not self.fit(len(self.frames), start):
                return False
            known = not self.hints.names or found in self.hints.names
            return known and (opened.balance <= 0 or bool(self.hints.names)) and not self.hints.patient
        if opened.role == "member" or self.hints.patient or tail.strip(" \t\r\n,"):
            return False
        return bool(WHOLE_ITEM.match(self.scan.text, at, self.scan.end))

    def unclosed(self, opened: _Open, at: int) -> str:
        """End the string where its quote is missing: before the punctuation in front of the next string."""
        scan = self.scan
        whole = "".join(opened.pieces)
        scan.at = self.tail(opened, at)
        scan.fix("missing-quote", "guess")
        return _text([whole[: len(whole) - (at - scan.at)]])

    def unterminated(self, opened: _Open) -> str:
        """The text ended inside the string: it is cut, unless exactly the closers that are missing end it."""
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
        if opened.inner and opened.role in ("member", "item") and not self.hints.patient and self.retries:
            self.retries -= 1
            scan.at, kept, known = opened.first  # no later quote ended it, so that one did
            del opened.pieces[kept:], scan.fixes[known:]
            opened.inner = 0
            scan.at += 1
            return self.finished(opened)
        scan.at = scan.end
        self.ended = False
        return _text([whole])

    def finished(self, opened: _Open) -> str:
        """Give the text of a string; where spaces of the indentation became no-break spaces, turn them back inside too."""
        whole = _text(opened.pieces)
        if opened.inner % 2:  # quotes inside of text come in pairs; one alone may as well be a lost end or beginning
            self.scan.fix("odd-quote", "guess", opened.first[0])
        if opened.spared and any(char in whole for char in "\b\f\n\r\t"):
            self.scan.fix("odd-escape", "guess", opened.start)
        if "nbsp-indent" in self.scan.once and "\n\xa0" in whole:
            self.scan.fix("nbsp-indent", "likely", opened.start)
            return INDENT.sub(lambda found: " " * len(found[0]), whole)
        return whole


@cache
def _special(quotes: str) -> re.Pattern[str]:
    return re.compile("[\\\\\x00-\x1f" + re.escape(quotes) + "]")


def _text(pieces: list[str]) -> str:
    """Join pieces, and halves of characters that were escaped one by one."""
    whole = "".join(pieces)
    if SURROGATE.search(whole):
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return whole
