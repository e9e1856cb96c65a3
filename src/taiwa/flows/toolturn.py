"""The reply of a turn whose app has tools: by function calls where the model takes them, else by calls in its text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.layout import DELTA_LINE
from taiwa.conversation.replies import watcher
from taiwa.flows.course import TextCourse, Track
from taiwa.flows.demands import Calls
from taiwa.flows.native import NativeCourse
from taiwa.flows.rationale import Bounds, Ending, Said
from taiwa.flows.scanning import Scanner, Trigger
from taiwa.flows.tagged import Tagged
from taiwa.kernel.effects import Abilities, Program, Seen, Watcher, perform, tell
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Finish, Request, Response, ToolSpec, assistant, system

__all__ = ["answered_with_tools", "tooled"]

BOUNDS = Bounds(tokens=None)
"""A reply may be as long as any other."""
BETWEEN = "\n\n"
DELTA = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}\s*(?:```(?:json)?\s*)?\{{")
FINISHES: Mapping[Ending, Finish] = {
    "end": "stop", "calls": "stop", "length": "length", "refusal": "refusal", "interrupted": "interrupted",
    "repeat": "interrupted", "stops": "interrupted", "tool": "interrupted",
}  # fmt: skip
BROKEN: Mapping[Ending, str] = {
    "calls": "no further call of a tool was allowed",
    "repeat": "the same call of a tool was asked for again and again",
    "stops": "the reply came to no end",
}


def answered_with_tools(request: Request, tools: Sequence[ToolSpec], app: App) -> Program[Response]:
    """Ask for the reply of a turn; the answer is as one without tools would be, calls in its text included.

    Raises (when run):
        ConfigError: the app's replies are JSON, in whose text nothing can be put, and the model takes no tools.
    """
    abilities = yield from perform(Abilities())
    calls = Calls(tools, BOUNDS)
    track: NativeCourse | TextCourse
    if "tools" in abilities:
        track = NativeCourse(request, calls, BOUNDS, Tagged(), _Lines(watcher(app)))
    elif app.written and app.reply != "text+delta":
        raise ConfigError(
            f"the app {app.name!r} has tools and replies in JSON, so its model must take tools, and this one does not"
        )
    else:
        spoken = _BeforeDelta() if app.written else Tagged()
        track = TextCourse(tooled(request, tools), calls, BOUNDS, spoken, watcher(app))
        track.enable(in_place="prefix" in abilities, stops="stop" in abilities)
    yield from track.run()
    ending: Ending = track.ending or "end"
    if ending in BROKEN:
        yield from tell(BROKEN[ending], code="turn", warning=True)
    return Response(assistant(_text(track, app)), FINISHES.get(ending, "stop"))


def tooled(request: Request, tools: Sequence[ToolSpec]) -> Request:
    """Tell the model in its instructions how to call tools in its text."""
    head, *rest = request.messages
    return replace(request, messages=(system(f"{head.text}\n\n{Tagged().instructions(tools)}"), *rest))


def _text(track: Track, app: App) -> str:
    """The words of the reply. Of JSON only the last is the reply; what came before it went with calls."""
    if isinstance(track, TextCourse):
        return track.text
    said = [part.text for part in track.parts if isinstance(part, Said)]
    return BETWEEN.join(said) if app.reply == "text+delta" or not app.written else said[-1] if said else ""


class _BeforeDelta(Tagged):
    """Calls in the words of a reply: what stands in its delta is data, whatever it looks like."""

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls before the delta."""
        return _Before(super().scanner(names))


class _Before:
    """A scanner that finds nothing once the delta has begun. That is looked up only where there would be a call."""

    def __init__(self, inner: Scanner, seen: str = "") -> None:
        self._inner = inner
        self._seen = seen

    def __copy__(self) -> "_Before":
        return _Before(copy(self._inner), self._seen)

    @property
    def open(self) -> bool:
        """Whether the text ends in what lacks only the mark at which a server may have stopped."""
        return self._inner.open

    def feed(self, text: str) -> Trigger | None:
        """Take the next words, up to the first call in them."""
        trigger = self._inner.feed(text)
        words = text if trigger is None else text[: trigger.end]
        self._seen += words
        if trigger is None or not self._over():
            return trigger
        self._seen += text[len(words) :]
        return None

    def skip(self, text: str) -> None:
        """Take what was put in."""
        self._inner.skip(text)
        self._seen += text

    def _over(self) -> bool:
        return DELTA.search(self._seen) is not None


class _Lines:
    """Makes the watchers of one reply that comes in several answers: each but the first begins a paragraph."""

    def __init__(self, make: Callable[[], Watcher] | None) -> None:
        self._make = make
        self._said = False

    def __call__(self) -> Watcher:
        """Watch the next answer."""
        return _Paragraph(self, None if self._make is None else self._make())

    def led(self, show: str) -> str:
        """Put a blank line between what was shown and what comes."""
        lead = BETWEEN if self._said and show else ""
        return lead + show

    def over(self) -> None:
        """The answers so far are over."""
        self._said = True


class _Paragraph:
    """Watches one answer."""

    def __init__(self, lines: _Lines, inner: Watcher | None) -> None:
        self._lines = lines
        self._inner = inner
        self._begun = False

    def feed(self, text: str) -> Seen:
        """Show what there is to show."""
        return Seen(self._led(text if self._inner is None else self._inner.feed(text).show))

    def close(self) -> Seen:
        """Show what was held back."""
        shown = self._led("" if self._inner is None else self._inner.close().show)
        if self._begun:
            self._lines.over()
        return Seen(shown)

    def _led(self, show: str) -> str:
        if self._begun or not show:
            return show
        self._begun = True
        return self._lines.led(show)
