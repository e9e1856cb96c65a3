"""Parse a reply into answer and state delta, and show only its answer while it streams."""

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

Scan: TypeAlias = "Callable[[str, int], int]"
"""Reads a text from a position and returns the position where it stopped."""

SPACE = re.compile(r"[ \t\r\n]*")

PLAIN = re.compile(r'[^"\\]+')

STRING_STOP = re.compile(r'["\\]')

VALUE_STOP = re.compile(r'["{}\[\]]')

SCALAR_STOP = re.compile(r"[,}]")

SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

UNIT = re.compile(r"\\u([0-9A-Fa-f]{4})")

UNIT_START = re.compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")


class StringMember:
    """Incremental reader of the string member `name` of the first JSON object of a text.

    `closed` turns true when the string has ended. Text that is not strict JSON ends the reading: what was returned is
    correct, and the rest is left to a parser of the whole text.
    """

    __slots__ = ("_depth", "_escaped", "_key", "_member", "_pending", "_scan", "_shown", "closed")

    def __init__(self, name: str) -> None:
        self.closed = False
        self._member = name
        self._scan: Scan | None = self._find_object
        self._pending = ""
        self._key: list[str] = []
        self._shown: list[str] = []
        self._depth = 0
        self._escaped = False

    def feed(self, text: str) -> str:
        """Read the next piece of the text; return the next piece of the string."""
        text, self._pending = self._pending + text, ""
        at = 0
        while at < len(text) and self._scan is not None:
            at = self._scan(text, at)
        shown = "".join(self._shown)
        self._shown.clear()
        return shown

    def _find_object(self, text: str, at: int) -> int:
        at = text.find("{", at)
        if at < 0:
            return len(text)
        self._scan = self._wait_for_key
        return at + 1

    def _wait_for_key(self, text: str, at: int) -> int:
        return self._expect(text, at, {'"': self._read_key})

    def _read_key(self, text: str, at: int) -> int:
        end = self._string_end(text, at)
        self._key.append(text[at:] if end < 0 else text[at : end - 1])
        if end < 0:
            return len(text)
        self._scan = self._wait_for_colon
        return end

    def _wait_for_colon(self, text: str, at: int) -> int:
        return self._expect(text, at, {":": self._wait_for_value})

    def _wait_for_value(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        raw, self._key = "".join(self._key), []
        is_member = _unescape_key(raw) == self._member
        if is_member and text[at] != '"':
            self._scan = None
        elif is_member:
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
        return self._expect(text, at, {",": self._wait_for_key})

    def _expect(self, text: str, at: int, following: dict[str, Scan]) -> int:
        at = _after_space(text, at)
        if at < len(text):
            self._scan = following.get(text[at])
            at += 1
        return at

    def _string_end(self, text: str, at: int) -> int:
        """Return the position behind the closing quote, or -1 where the string continues in the next piece."""
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
        """Hold back an incomplete escape; an invalid one ends the reading."""
        rest = text[at:]
        if UNIT_START.fullmatch(rest) or (rest[6:7] in {"", "\\"} and UNIT.match(rest)):
            self._pending = rest
        else:
            self._scan = None
        return len(text)


def _after_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return at if found is None else found.end()


def _unescape_key(quoted: str) -> str:
    try:
        return str(json.loads(f'"{quoted}"'))
    except ValueError:
        return quoted


class MemberWatcher:
    """Shows one string of a JSON reply while it streams; `parse` returns the answer of the whole reply.

    Where that answer differs from what was shown, it is shown as well, so that the user sees what is stored.
    """

    __slots__ = ("_member", "_parse", "_pieces", "_shown")

    def __init__(self, member: str, parse: Callable[[str], str]) -> None:
        self._member = StringMember(member)
        self._parse = parse
        self._pieces: list[str] = []
        self._shown: list[str] = []

    def feed(self, text: str) -> WatchResult:
        """Show the next characters of the string."""
        self._pieces.append(text)
        show = self._member.feed(text)
        self._shown.append(show)
        return WatchResult(show)

    def close(self) -> WatchResult:
        """Show what is known only from the whole reply."""
        answer, shown = self._parse("".join(self._pieces)), "".join(self._shown)
        return WatchResult(answer.removeprefix(shown) if answer.startswith(shown) else f"\n\n{answer}")


LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t\r]*(?=[\n{{`]|\Z)\n?")

JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")

FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")

FENCE_END = re.compile(r"\s*(?:```)?\s*")

OPENED = re.compile(rf"{ENVIRONMENT[0]}{JSON_NEXT.pattern}")

SCAN_EACH_CHUNK = 1_000
"""Characters of held text up to which it is scanned with every chunk; above, only when it has doubled, so that the work is
linear in the length of the text."""


@value
class ParsedReply:
    """A parsed reply: its answer, its state delta, or None and the problems of the delta, one line each."""

    answer: str
    delta: dict[str, Json] | None
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def parse_reply(app: App, text: str) -> ParsedReply:
    """Parse a reply into answer and state delta by the app's reply mode.

    Cached, because the watcher of a reply parses it at its end, and the turn does so again.
    """
    if not app.model_fields:
        return ParsedReply(whole_characters(text), {})
    if app.reply == "environment":
        return _parse_environment(app, text)
    return _parse_json(app, text) if app.reply == "json" else _parse_text(app, text)


def parse_delta(app: App, text: str) -> ParsedReply:
    """Parse a state delta without an answer, as after a repair."""
    output_type = app.environment_type if app.reply == "environment" else app.delta_type
    try:
        return _storable("", output_type.parse(text).value)
    except OutputValidationError as error:
        return ParsedReply("", None, error.diagnostics or (error.message,))


def _storable(answer: str, delta: dict[str, Json]) -> ParsedReply:
    """Accept only a delta that can be recorded in a node."""
    try:
        digest(delta)
    except InputError as error:
        return ParsedReply(whole_characters(answer), None, (f"$: {error.message}",))
    return ParsedReply(whole_characters(answer), delta)


def _parse_text(app: App, text: str) -> ParsedReply:
    mark = next((line for line in reversed([*LINE.finditer(text)]) if JSON_NEXT.match(text, line.end())), None)
    if mark is None:
        return _without_delta(text)
    answer, rest = text[: mark.start()].rstrip(), text[mark.end() :]
    inner, behind = _split_delta(rest)
    parsed = parse_delta(app, inner)
    return ParsedReply(whole_characters(answer or behind), parsed.delta, parsed.problems)


def _without_delta(text: str) -> ParsedReply:
    """Parse a reply without JSON; a delta line at its end is not part of the answer."""
    last = next((line for line in LINE.finditer(text) if FENCE_NEXT.fullmatch(text, line.end())), None)
    if last is None:
        return ParsedReply(whole_characters(text.rstrip()), None, (f"there is no {DELTA_LINE} line",))
    return ParsedReply(
        whole_characters(text[: last.start()].rstrip()), None, (f"nothing follows the {DELTA_LINE} line",)
    )


def _split_delta(rest: str) -> tuple[str, str]:
    """Split the JSON behind a delta line from the text behind it, which is the answer where none came before."""
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
def _reply_type() -> OutputType[dict[str, Json]]:
    return OutputType.fields("Reply", {"answer": str, "delta": object}, required=frozenset({"answer"}))


def _parse_json(app: App, text: str) -> ParsedReply:
    try:
        reply = _reply_type().parse(text).value
    except OutputValidationError as error:
        return ParsedReply(_partial_answer("answer", text), None, error.diagnostics or (error.message,))
    answer = str(reply["answer"])
    try:
        return _storable(answer, app.delta_type.validate(reply.get("delta") or {}))
    except OutputValidationError as error:
        problems = tuple(f"$.delta{line.removeprefix('$')}" for line in error.diagnostics)
        return ParsedReply(whole_characters(answer), None, problems)


def _parse_environment(app: App, text: str) -> ParsedReply:
    opened, end = OPENED.search(text), text.rfind(ENVIRONMENT[1])
    start = 0 if opened is None else opened.end()
    inner = text[start : end if end > start else len(text)]
    parsed = parse_delta(app, inner)
    if parsed.delta is not None:
        return ParsedReply(whole_characters(str(parsed.delta["response"])), parsed.delta)
    return ParsedReply(_partial_answer("response", inner), None, parsed.problems)


def _partial_answer(member: str, text: str) -> str:
    """Return the answer of an unparsable reply: the part that can be read, or all of a text without JSON."""
    return whole_characters(StringMember(member).feed(text) or text.strip())


class AnswerWatcher:
    """Shows the answer of a `text+delta` reply while it streams; holds back what may be the delta line and its JSON.

    `parse` returns the answer of the whole reply.
    """

    __slots__ = ("_parse", "_pending", "_pieces", "_scan_at", "_shown", "_size")

    def __init__(self, parse: Callable[[str], str]) -> None:
        self._parse = parse
        self._pieces: list[str] = []
        self._pending: list[str] = []
        self._size = 0
        self._scan_at = 0
        self._shown = 0

    def feed(self, text: str) -> WatchResult:
        """Show all that cannot be part of the delta."""
        self._pieces.append(text)
        self._pending.append(text)
        self._size += len(text)
        if self._size < self._scan_at:
            return WatchResult()
        pending = "".join(self._pending)
        if (
            self._shown and "\n" not in pending
        ):  # in the middle of a line, as most pieces are: no delta line begins here
            end = len(pending.rstrip())
        else:
            end = _answer_end(pending, 0 if self._shown == 0 else pending.find("\n") + 1 or len(pending))
        self._pending, self._size = [pending[end:]], len(pending) - end
        self._scan_at = 2 * self._size if self._size > SCAN_EACH_CHUNK else 0
        self._shown += end
        return WatchResult(whole_characters(pending[:end]))

    def close(self) -> WatchResult:
        """Show what was held back and belongs to the answer."""
        return WatchResult(self._parse("".join(self._pieces))[self._shown :])


def _answer_end(text: str, start: int) -> int:
    """Return how much belongs to the answer for certain: all before the newest delta line that has, or may get, JSON."""
    begun: int | None = None
    for line in LINE.finditer(text, start):
        if JSON_NEXT.match(text, line.end()) or (begun is None and FENCE_NEXT.fullmatch(text, line.end())):
            begun = line.start()
    if begun is None:
        last = max(text.rfind("\n") + 1, start)
        begun = last if last < len(text) and DELTA_LINE.startswith(text[last:].strip()) else len(text)
    return len(text[:begun].rstrip())


def reply_watcher(app: App) -> Callable[[], Watcher] | None:
    """Return the factory of the watcher that shows only the answer of an app's replies; None where no watcher is needed."""
    if not app.model_fields:
        return None

    def parse(text: str) -> str:
        return parse_reply(app, text).answer

    if app.reply == "text+delta":
        return partial(AnswerWatcher, parse)
    return partial(MemberWatcher, "answer" if app.reply == "json" else "response", parse)
