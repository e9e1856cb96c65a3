"""Reply → answer and delta; what is shown while it streams."""

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import TypeAlias

from taiwa.conversation.app import App
from taiwa.conversation.turn_prompt import DELTA_LINE, ENVIRONMENT
from taiwa.kernel.effects import Watcher, WatchResult
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.records import Json, digest, value
from taiwa.kernel.text import REPLACEMENT, whole_characters
from taiwa.structured import OutputType

__all__ = ["AnswerWatcher", "MemberWatcher", "ParsedReply", "StringMember", "read_delta", "read_reply", "watcher"]


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


class StringMember:
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
        self._growing = StringMember(member)
        self._read = read
        self._pieces: list[str] = []
        self._said: list[str] = []

    def feed(self, text: str) -> WatchResult:
        """Show the next characters of the string."""
        self._pieces.append(text)
        show = self._growing.feed(text)
        self._said.append(show)
        return WatchResult(show)

    def close(self) -> WatchResult:
        """Show what only the whole reply tells."""
        answer, said = self._read("".join(self._pieces)), "".join(self._said)
        return WatchResult(answer.removeprefix(said) if answer.startswith(said) else f"\n\n{answer}")


LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t\r]*(?=[\n{{`]|\Z)\n?")

JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")

FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")

FENCE_END = re.compile(r"\s*(?:```)?\s*")

OPENED = re.compile(rf"{ENVIRONMENT[0]}{JSON_NEXT.pattern}")

AT_ONCE = 1_000
"""Held text up to this size is looked at with every chunk; a longer one only when it has doubled, so that the work stays
in proportion to the text."""


@value
class ParsedReply:
    """A reply: its answer, its delta (None where it cannot be used) and why not, one line per fault."""

    answer: str
    delta: dict[str, Json] | None
    faults: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def read_reply(app: App, text: str) -> ParsedReply:
    """Divide a reply into answer and delta as the app's reply mode says.

    The newest readings are kept: what shows a reply while it comes reads it at its end, and so does the turn after that.
    """
    if not app.written:
        return ParsedReply(whole_characters(text), {})
    if app.reply == "environment":
        return _read_environment(app, text)
    return _read_json(app, text) if app.reply == "json" else _read_text(app, text)


def read_delta(app: App, text: str) -> ParsedReply:
    """Read a delta that stands alone, as after a repair."""
    shape = app.environment if app.reply == "environment" else app.delta
    try:
        return _sound("", shape.parse(text).value)
    except OutputValidationError as error:
        return ParsedReply("", None, error.diagnostics or (error.message,))


def _sound(answer: str, delta: dict[str, Json]) -> ParsedReply:
    """Only what a node can hold may become part of one."""
    try:
        digest(delta)
    except InputError as error:
        return ParsedReply(whole_characters(answer), None, (f"$: {error.message}",))
    return ParsedReply(whole_characters(answer), delta)


def _read_text(app: App, text: str) -> ParsedReply:
    marks = _marks(text)
    if not marks:
        return ParsedReply(*_unmarked(text))
    mark = marks[-1]
    answer, rest = text[: mark.start()].rstrip(), text[mark.end() :]
    inner, behind = _divided(rest)
    read = read_delta(app, inner)
    return ParsedReply(whole_characters(answer or behind), read.delta, read.faults)


def _unmarked(text: str) -> tuple[str, None, tuple[str, ...]]:
    """A reply without JSON; a delta line at its end is no part of the answer."""
    last = next((line for line in LINE.finditer(text) if FENCE_NEXT.fullmatch(text, line.end())), None)
    if last is None:
        return whole_characters(text.rstrip()), None, (f"there is no {DELTA_LINE} line",)
    return whole_characters(text[: last.start()].rstrip()), None, (f"nothing follows the {DELTA_LINE} line",)


def _divided(rest: str) -> tuple[str, str]:
    """The JSON behind a delta line, and the words behind the JSON, which are the answer where none came before."""
    start = JSON_NEXT.match(rest)
    if start is None:
        return rest, ""
    try:
        _, end = json.JSONDecoder().raw_decode(rest, start.end())
    except (ValueError, RecursionError):
        return rest, ""
    fence = FENCE_END.match(rest, end)
    return rest[start.end() : end], rest[end if fence is None else fence.end() :].rstrip()


@cache
def _reply_shape() -> OutputType[dict[str, Json]]:
    return OutputType.fields("Reply", {"answer": str, "delta": object}, required=frozenset({"answer"}))


def _read_json(app: App, text: str) -> ParsedReply:
    try:
        reply = _reply_shape().parse(text).value
    except OutputValidationError as error:
        return ParsedReply(_grown("answer", text), None, error.diagnostics or (error.message,))
    answer = str(reply["answer"])
    try:
        return _sound(answer, app.delta.validate(reply.get("delta") or {}))
    except OutputValidationError as error:
        faults = tuple(f"$.delta{line.removeprefix('$')}" for line in error.diagnostics)
        return ParsedReply(whole_characters(answer), None, faults)


def _read_environment(app: App, text: str) -> ParsedReply:
    opened, end = OPENED.search(text), text.rfind(ENVIRONMENT[1])
    start = 0 if opened is None else opened.end()
    inner = text[start : end if end > start else len(text)]
    read = read_delta(app, inner)
    if read.delta is not None:
        return ParsedReply(whole_characters(str(read.delta["response"])), read.delta)
    return ParsedReply(_grown("response", inner), None, read.faults)


def _grown(member: str, text: str) -> str:
    """The answer of a reply that is otherwise of no use: as far as it goes, or all words where there is no JSON."""
    return whole_characters(StringMember(member).feed(text) or text.strip())


class AnswerWatcher:
    """Shows the answer of a `text+delta` reply as it comes and holds back what may be the delta line and its JSON.

    `read` tells at the end what the whole reply's answer is.
    """

    __slots__ = ("_held", "_look_at", "_pieces", "_read", "_shown", "_size")

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._pieces: list[str] = []
        self._held: list[str] = []
        self._size = 0
        self._look_at = 0
        self._shown = 0

    def feed(self, text: str) -> WatchResult:
        """Show all that cannot be part of the delta any more."""
        self._pieces.append(text)
        self._held.append(text)
        self._size += len(text)
        if self._size < self._look_at:
            return WatchResult()
        held = "".join(self._held)
        if self._shown and "\n" not in held:  # in the middle of a line, as most pieces are: no delta line begins here
            keep = len(held.rstrip())
        else:
            keep = _certain(held, 0 if self._shown == 0 else _next_line(held))
        self._held, self._size = [held[keep:]], len(held) - keep
        self._look_at = 2 * self._size if self._size > AT_ONCE else 0
        self._shown += keep
        return WatchResult(whole_characters(held[:keep]))

    def close(self) -> WatchResult:
        """Show what was held back and turned out to be the answer's."""
        return WatchResult(self._read("".join(self._pieces))[self._shown :])


def _next_line(text: str) -> int:
    """Where the first whole line begins; what was shown before never ends with a line break."""
    return text.find("\n") + 1 or len(text)


def _marks(text: str) -> list[re.Match[str]]:
    return [line for line in LINE.finditer(text) if JSON_NEXT.match(text, line.end())]


def _certain(text: str, start: int) -> int:
    """How much belongs to the answer whatever comes: all before the newest delta line that has, or may get, JSON."""
    begun: int | None = None
    for line in LINE.finditer(text, start):
        if JSON_NEXT.match(text, line.end()) or (begun is None and FENCE_NEXT.fullmatch(text, line.end())):
            begun = line.start()
    if begun is None:
        last = max(text.rfind("\n") + 1, start)
        begun = last if last < len(text) and DELTA_LINE.startswith(text[last:].strip()) else len(text)
    return len(text[:begun].rstrip())


def watcher(app: App) -> Callable[[], Watcher] | None:
    """What shows an app's replies while they come: only ever the answer."""
    if not app.written:
        return None

    def read(text: str) -> str:
        return read_reply(app, text).answer

    if app.reply == "text+delta":
        return partial(AnswerWatcher, read)
    return partial(MemberWatcher, "answer" if app.reply == "json" else "response", read)
