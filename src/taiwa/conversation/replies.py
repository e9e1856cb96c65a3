"""Reading what a model replied, and what to show of it while it comes.

Only a reply is read here. In `text+delta` mode the last delta line that has JSON under it divides answer and delta, so an
answer may quote the line itself. What is shown while a reply comes is, in the end, the answer that is read from it.
"""

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial

from taiwa.conversation.app import App
from taiwa.conversation.growing import Growing, MemberWatcher, whole_characters
from taiwa.conversation.layout import DELTA_LINE, ENVIRONMENT
from taiwa.kernel.effects import Seen, Watcher
from taiwa.kernel.errors import InputError, ShapeError
from taiwa.kernel.records import Json, digest, value
from taiwa.shape import Shape

__all__ = ["AnswerWatcher", "Read", "read_delta", "read_reply", "watcher"]

LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t\r]*(?=[\n{{`]|\Z)\n?")
JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")
FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")
FENCE_END = re.compile(r"\s*(?:```)?\s*")
OPENED = re.compile(rf"{ENVIRONMENT[0]}{JSON_NEXT.pattern}")
AT_ONCE = 1_000
"""Held text up to this size is looked at with every chunk; a longer one only when it has doubled, so that the work stays
in proportion to the text."""


@value
class Read:
    """A reply: its answer, its delta (None where it cannot be used) and why not, one line per fault."""

    answer: str
    delta: dict[str, Json] | None
    faults: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def read_reply(app: App, text: str) -> Read:
    """Divide a reply into answer and delta as the app's reply mode says.

    The newest readings are kept: what shows a reply while it comes reads it at its end, and so does the turn after that.
    """
    if not app.written:
        return Read(whole_characters(text), {})
    if app.reply == "environment":
        return _read_environment(app, text)
    return _read_json(app, text) if app.reply == "json" else _read_text(app, text)


def read_delta(app: App, text: str) -> Read:
    """Read a delta that stands alone, as after a repair."""
    shape = app.environment if app.reply == "environment" else app.delta
    try:
        return _sound("", shape.read(text).value)
    except ShapeError as error:
        return Read("", None, error.diagnostics or (error.message,))


def _sound(answer: str, delta: dict[str, Json]) -> Read:
    """Only what a node can hold may become part of one."""
    try:
        digest(delta)
    except InputError as error:
        return Read(whole_characters(answer), None, (f"$: {error.message}",))
    return Read(whole_characters(answer), delta)


def _read_text(app: App, text: str) -> Read:
    marks = _marks(text)
    if not marks:
        return Read(*_unmarked(text))
    mark = marks[-1]
    answer, rest = text[: mark.start()].rstrip(), text[mark.end() :]
    inner, behind = _divided(rest)
    read = read_delta(app, inner)
    return Read(whole_characters(answer or behind), read.delta, read.faults)


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
def _reply_shape() -> Shape[dict[str, Json]]:
    return Shape.fields("Reply", {"answer": str, "delta": object}, required=frozenset({"answer"}))


def _read_json(app: App, text: str) -> Read:
    try:
        reply = _reply_shape().read(text).value
    except ShapeError as error:
        return Read(_grown("answer", text), None, error.diagnostics or (error.message,))
    answer = str(reply["answer"])
    try:
        return _sound(answer, app.delta.check(reply.get("delta") or {}))
    except ShapeError as error:
        faults = tuple(f"$.delta{line.removeprefix('$')}" for line in error.diagnostics)
        return Read(whole_characters(answer), None, faults)


def _read_environment(app: App, text: str) -> Read:
    opened, end = OPENED.search(text), text.rfind(ENVIRONMENT[1])
    start = 0 if opened is None else opened.end()
    inner = text[start : end if end > start else len(text)]
    read = read_delta(app, inner)
    if read.delta is not None:
        return Read(whole_characters(str(read.delta["response"])), read.delta)
    return Read(_grown("response", inner), None, read.faults)


def _grown(member: str, text: str) -> str:
    """The answer of a reply that is otherwise of no use: as far as it goes, or all words where there is no JSON."""
    return whole_characters(Growing(member).feed(text) or text.strip())


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

    def feed(self, text: str) -> Seen:
        """Show all that cannot be part of the delta any more."""
        self._pieces.append(text)
        self._held.append(text)
        self._size += len(text)
        if self._size < self._look_at:
            return Seen()
        held = "".join(self._held)
        if self._shown and "\n" not in held:  # in the middle of a line, as most pieces are: no delta line begins here
            keep = len(held.rstrip())
        else:
            keep = _certain(held, 0 if self._shown == 0 else _next_line(held))
        self._held, self._size = [held[keep:]], len(held) - keep
        self._look_at = 2 * self._size if self._size > AT_ONCE else 0
        self._shown += keep
        return Seen(whole_characters(held[:keep]))

    def close(self) -> Seen:
        """Show what was held back and turned out to be the answer's."""
        return Seen(self._read("".join(self._pieces))[self._shown :])


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
