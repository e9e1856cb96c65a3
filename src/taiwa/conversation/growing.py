"""One string of a JSON object while the object is still being written.

The text is looked at once, however it is cut: a reply of a megabyte in chunks of four characters costs what one chunk costs.
"""

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from taiwa.kernel.effects import Seen

__all__ = ["Growing", "MemberWatcher", "whole_characters"]

Scan: TypeAlias = "Callable[[str, int], int]"
"""Reads on from a place in a text and returns where it stopped."""

SPACE = re.compile(r"[ \t\r\n]*")
PLAIN = re.compile(r'[^"\\]+')
STRING_STOP = re.compile(r'["\\]')
VALUE_STOP = re.compile(r'["{}\[\]]')
SCALAR_STOP = re.compile(r"[,}]")
SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
UNIT = re.compile(r"\\u([0-9A-Fa-f]{4})")
UNIT_START = re.compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")
HALF = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def whole_characters(text: str) -> str:
    """Put U+FFFD where a text holds half a character, which no file and no request can carry.

    >>> whole_characters("cut \\ud83d off")
    'cut \ufffd off'
    """
    return text if text.isascii() else HALF.sub(REPLACEMENT, text)


class Growing:
    """Reads the string member `name` of the first JSON object of a text.

    `closed` turns true when the string has ended. Text that is not strict JSON ends the reading: what was given out stays
    true, and the rest is for a reader that sees the whole.
    """

    __slots__ = ("_depth", "_escaped", "_held", "_key", "_member", "_scan", "_shown", "closed")

    def __init__(self, name: str) -> None:
        self.closed = False
        self._member = name
        self._scan: Scan | None = self._before
        self._held = ""
        self._key: list[str] = []
        self._shown: list[str] = []
        self._depth = 0
        self._escaped = False

    def feed(self, text: str) -> str:
        """Take the next characters of the text; return the next ones of the string."""
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text) and self._scan is not None:
            at = self._scan(text, at)
        shown = "".join(self._shown)
        self._shown.clear()
        return shown

    def _before(self, text: str, at: int) -> int:
        at = text.find("{", at)
        if at < 0:
            return len(text)
        self._scan = self._wait_for_key
        return at + 1

    def _wait_for_key(self, text: str, at: int) -> int:
        return self._wait(text, at, {'"': self._read_key})

    def _read_key(self, text: str, at: int) -> int:
        end = self._string_end(text, at)
        self._key.append(text[at:] if end < 0 else text[at : end - 1])
        if end < 0:
            return len(text)
        self._scan = self._wait_for_colon
        return end

    def _wait_for_colon(self, text: str, at: int) -> int:
        return self._wait(text, at, {":": self._wait_for_value})

    def _wait_for_value(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        raw, self._key = "".join(self._key), []
        wanted = _key(raw) == self._member
        if wanted and text[at] != '"':
            self._scan = None
        elif wanted:
            self._scan = self._show
            return at + 1
        else:
            self._scan = self._skip if text[at] in '"{[' else self._skip_scalar
        return at

    def _skip(self, text: str, at: int) -> int:
        found = VALUE_STOP.search(text, at)
        if found is None:
            return len(text)
        if found[0] == '"':
            self._scan = self._skip_string
            return found.end()
        self._depth += 1 if found[0] in "{[" else -1
        if self._depth == 0:
            self._scan = self._wait_for_next
        return found.end()

    def _skip_string(self, text: str, at: int) -> int:
        end = self._string_end(text, at)
        if end < 0:
            return len(text)
        self._scan = self._skip if self._depth else self._wait_for_next
        return end

    def _skip_scalar(self, text: str, at: int) -> int:
        found = SCALAR_STOP.search(text, at)
        if found is None:
            return len(text)
        self._scan = self._wait_for_next
        return found.start()

    def _wait_for_next(self, text: str, at: int) -> int:
        return self._wait(text, at, {",": self._wait_for_key})

    def _wait(self, text: str, at: int, ways: dict[str, Scan]) -> int:
        at = _after_space(text, at)
        if at < len(text):
            self._scan = ways.get(text[at])
            at += 1
        return at

    def _string_end(self, text: str, at: int) -> int:
        """Where the string ends that is open here (behind its quote), or -1 where it goes on in the next text."""
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = STRING_STOP.search(text, at)
            if found is None:
                return -1
            at = found.end()
            if found[0] == '"':
                return at
            self._escaped = True
        return -1

    def _show(self, text: str, at: int) -> int:
        plain = PLAIN.match(text, at)
        if plain is not None:
            self._shown.append(plain[0])
            return plain.end()
        if text[at] == '"':
            self.closed = True
            self._scan = None
            return at + 1
        return self._unescape(text, at)

    def _unescape(self, text: str, at: int) -> int:
        mark = text[at + 1 : at + 2]
        if mark in SIMPLE:
            self._shown.append(SIMPLE[mark])
            return at + 2
        unit = UNIT.match(text, at)
        if unit is None:
            return self._hold(text, at)
        code, end = int(unit[1], 16), unit.end()
        if 0xD800 <= code < 0xDC00:
            low = UNIT.match(text, end)
            if end == len(text) or (low is None and UNIT_START.fullmatch(text, end)):
                return self._hold(text, at)
            if low is not None and 0xDC00 <= int(low[1], 16) < 0xE000:
                code, end = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00, low.end()
        self._shown.append(REPLACEMENT if 0xD800 <= code < 0xE000 else chr(code))
        return end

    def _hold(self, text: str, at: int) -> int:
        """Wait for the rest of an escape; one that no rest can complete ends the reading."""
        rest = text[at:]
        if UNIT_START.fullmatch(rest) or (rest[6:7] in {"", "\\"} and UNIT.match(rest)):
            self._held = rest
        else:
            self._scan = None
        return len(text)


def _after_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return at if found is None else found.end()


def _key(quoted: str) -> str:
    try:
        return str(json.loads(f'"{quoted}"'))
    except ValueError:
        return quoted


class MemberWatcher:
    """Shows one string of a JSON reply while it comes; `read` tells at the end what the whole reply's answer is.

    Where that differs from what was shown, the answer is shown as well: nobody is left with words that were not kept.
    """

    __slots__ = ("_growing", "_pieces", "_read", "_said")

    def __init__(self, member: str, read: Callable[[str], str]) -> None:
        self._growing = Growing(member)
        self._read = read
        self._pieces: list[str] = []
        self._said: list[str] = []

    def feed(self, text: str) -> Seen:
        """Show the next characters of the string."""
        self._pieces.append(text)
        show = self._growing.feed(text)
        self._said.append(show)
        return Seen(show)

    def close(self) -> Seen:
        """Show what only the whole reply tells."""
        answer, said = self._read("".join(self._pieces)), "".join(self._said)
        return Seen(answer.removeprefix(said) if answer.startswith(said) else f"\n\n{answer}")
