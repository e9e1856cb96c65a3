"""Reading what a model replied, and what to show of it while it comes.

Only a reply is read here. In `text+delta` mode the last delta line that is followed by nothing but JSON divides answer and
delta, so an answer may quote the line itself.
"""

import json
import re
from collections.abc import Callable
from typing import cast

from taiwa.conversation.app import App
from taiwa.conversation.layout import DELTA_LINE, ENVIRONMENT
from taiwa.kernel.effects import Seen, Watcher
from taiwa.kernel.errors import ShapeError
from taiwa.kernel.records import Json, value

__all__ = ["AnswerWatcher", "Hidden", "Read", "read_delta", "read_reply", "watcher"]

LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t]*(?=[\n{{`]|\Z)\n?")
JSON_START = re.compile(r"\s*(?:```(?:json)?\s*)?(?:\{|\Z)")


@value
class Read:
    """A reply: its answer, its delta (None where it cannot be used) and why not, one line per fault."""

    answer: str
    delta: dict[str, Json] | None
    faults: tuple[str, ...] = ()


def read_reply(app: App, text: str) -> Read:
    """Divide a reply into answer and delta as the app's reply mode says."""
    if not app.written:
        return Read(text, {})
    if app.reply == "environment":
        return _read_environment(app, text)
    return _read_json(app, text) if app.reply == "json" else _read_text(app, text)


def read_delta(app: App, text: str) -> Read:
    """Read a delta that stands alone, as after a repair."""
    shape = app.environment if app.reply == "environment" else app.delta
    try:
        return Read("", shape.read(text).value)
    except ShapeError as error:
        return Read("", None, error.diagnostics or (error.message,))


def _read_text(app: App, text: str) -> Read:
    marks = _marks(text)
    if not marks:
        return Read(text.rstrip(), None, (f"there is no {DELTA_LINE} line",))
    mark = marks[-1]
    answer, rest = text[: mark.start()].rstrip(), text[mark.end() :]
    if not rest.strip():
        return Read(answer, None, (f"nothing follows the {DELTA_LINE} line",))
    read = read_delta(app, rest)
    return Read(answer, read.delta, read.faults)


def _read_json(app: App, text: str) -> Read:
    from taiwa.shape import Shape

    try:
        reply = Shape.fields("Reply", {"answer": str, "delta": object}, required=frozenset({"answer"})).read(text).value
    except ShapeError as error:
        return Read(text.strip(), None, error.diagnostics or (error.message,))
    try:
        return Read(str(reply["answer"]), app.delta.check(reply.get("delta") or {}))
    except ShapeError as error:
        return Read(str(reply["answer"]), None, tuple(f"$.delta{line.removeprefix('$')}" for line in error.diagnostics))


def _read_environment(app: App, text: str) -> Read:
    start, end = text.rfind(ENVIRONMENT[0]), text.rfind(ENVIRONMENT[1])
    inner = text[start + len(ENVIRONMENT[0]) : end if end > start else len(text)] if start >= 0 else text
    read = read_delta(app, inner)
    if read.delta is not None:
        return Read(str(read.delta["response"]), read.delta)
    return Read(_response(inner) or text.strip(), None, read.faults)


def _response(inner: str) -> str:
    """The response of an environment whose other fields cannot be used."""
    try:
        loose: object = json.loads(inner)
    except ValueError:
        return ""
    held = cast("dict[str, object]", loose).get("response") if isinstance(loose, dict) else None
    return held if isinstance(held, str) else ""


class Hidden:
    """Shows nothing: for answers that only the program reads."""

    __slots__ = ()

    def feed(self, text: str) -> Seen:  # noqa: ARG002  (a watcher's signature)
        """Show nothing."""
        return Seen()

    def close(self) -> Seen:
        """Show nothing."""
        return Seen()


class AnswerWatcher:
    """Shows the answer of a `text+delta` reply as it comes and holds back what may be the delta line and its JSON."""

    __slots__ = ("_fresh_line", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._fresh_line = True

    def feed(self, text: str) -> Seen:
        """Show all that cannot be part of the delta any more."""
        self._held += text
        keep = _doubtful(self._held, self._first_line())
        show, self._held = self._held[:keep], self._held[keep:]
        self._fresh_line = self._fresh_line and not show
        return Seen(show)

    def close(self) -> Seen:
        """Show what was held back and turned out to be the answer's."""
        held, start = self._held, self._first_line()
        self._held = ""
        marks = _marks(held, start)
        return Seen(held[: marks[-1].start()].rstrip() if marks else held.rstrip())

    def _first_line(self) -> int:
        """Where the first whole line of the held text begins; what was shown never ends with a line break."""
        return 0 if self._fresh_line else (self._held.find("\n") + 1 or len(self._held))


def _marks(text: str, start: int = 0) -> list[re.Match[str]]:
    return [mark for mark in LINE.finditer(text, start) if JSON_START.match(text, mark.end())]


def _doubtful(text: str, start: int) -> int:
    """Where the part begins that may still turn out to be the delta."""
    for mark in LINE.finditer(text, start):
        if _may_be_delta(text[mark.end() :]):
            return len(text[: mark.start()].rstrip())
    line = max(text.rfind("\n") + 1, start)
    if line < len(text) and DELTA_LINE.startswith(text[line:].strip()):
        return len(text[:line].rstrip())
    return len(text.rstrip())


def _may_be_delta(rest: str) -> bool:
    if not JSON_START.match(rest):
        return "```json".startswith(rest.strip())
    inner = rest.lstrip().removeprefix("```").removeprefix("json").lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(inner)
    except ValueError:
        return True
    return not inner[end:].strip(" \t\r\n`")


def watcher(app: App) -> Callable[[], Watcher] | None:
    """What shows an app's replies while they come: only ever the answer."""
    if not app.written:
        return None
    return AnswerWatcher if app.reply == "text+delta" else Hidden
