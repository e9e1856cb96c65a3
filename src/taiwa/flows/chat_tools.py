"""The reply of a chat turn whose model may call tools on its way: in its text, or by function calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.replies import find_delta, reply_watcher
from taiwa.flows.solve.loops import FunctionCallingLoop, TextLoop
from taiwa.flows.solve.rationale import CallBudget, EndReason, SolveLimits, TextPart
from taiwa.flows.solve.tool_call_formats import CallMatch, Scanner, TaggedFormat
from taiwa.kernel.effects import GetCapabilities, Program, Watcher, WatchResult, notify, perform
from taiwa.kernel.errors import ConfigError, UnsupportedError
from taiwa.kernel.messages import FinishReason, Request, Response, ToolSpec, assistant, system

LIMITS = SolveLimits(max_tokens=None)
"""The app limits the length of replies, not this flow."""

PARAGRAPH = "\n\n"

FINISH_REASONS: Mapping[EndReason, FinishReason] = {
    "end": "stop", "calls": "stop", "length": "length", "refusal": "refusal", "interrupted": "interrupted",
    "repeat": "interrupted", "stops": "interrupted", "tool": "interrupted",
}  # fmt: skip

WARNINGS: Mapping[EndReason, str] = {
    "calls": "no further tool call was allowed",
    "repeat": "the same tool call was requested too often",
    "stops": "the reply did not end",
}


def complete_with_tools(request: Request, tools: Sequence[ToolSpec], app: App) -> Program[Response]:
    """Ask for the reply of a turn; the response is like one without tools, with the calls that stand in its text.

    A request with a prefix goes on with the reply that begins with it; calls in it were answered before.

    Raises (when run):
        UnsupportedError: the request has a prefix, and the model calls functions or cannot go on with a text.
        ConfigError: the app replies in JSON, in whose text nothing can be inserted, and the model has no function calling.
    """
    capabilities = yield from perform(GetCapabilities())
    calls = CallBudget(tools, LIMITS)
    if request.prefix and "tools" in capabilities:
        why = "a reply whose model calls functions cannot be made to begin with a text"
        raise UnsupportedError(why, capability="prefix")
    if request.prefix and "prefix" not in capabilities:
        raise UnsupportedError("this model cannot go on with the beginning of a reply", capability="prefix")
    replies_in_json = app.output_type is not None or (bool(app.model_fields) and app.reply != "text+delta")
    if "tools" in capabilities:
        native = FunctionCallingLoop(request, calls, TaggedFormat(), _ReplyWatch(reply_watcher(app)))
        yield from native.run()
        ending = native.ending or "end"
        texts = [part.text for part in native.parts if isinstance(part, TextPart)]
        # Of JSON only the last text is the reply; the text before it belongs to calls.
        text = PARAGRAPH.join(texts[-1:] if replies_in_json else texts)
    elif replies_in_json:
        why = "has tools and replies in JSON, so its model must support function calling; this model does not"
        raise ConfigError(f"the app {app.name!r} {why}")
    else:
        has_head = request.messages[0].role == "system"
        head = f"{request.messages[0].text}\n\n" if has_head else ""
        instructed = system(f"{head}{TaggedFormat().instructions(tools)}")
        request = replace(request, messages=(instructed, *request.messages[has_head:]))
        form = _TaggedBeforeDelta() if app.model_fields else TaggedFormat()
        watch, prefill, stops = reply_watcher(app, request.prefix), "prefix" in capabilities, "stop" in capabilities
        loop = TextLoop(request, calls, form, watch, prefill=prefill, stops=stops)
        yield from loop.run()
        ending, text = loop.ending or "end", loop.text
    if ending in WARNINGS:
        yield from notify(WARNINGS[ending], code="turn", warning=True)
    return Response(assistant(text), FINISH_REASONS.get(ending, "stop"))


class _TaggedBeforeDelta(TaggedFormat):
    """Calls in the text of a reply: everything in its state delta is data."""

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls before the delta."""
        return _BeforeDelta(super().scanner(names))


class _BeforeDelta:
    """A scanner that finds nothing once the delta has begun; it looks for the delta only where it finds a call."""

    def __init__(self, inner: Scanner, seen: str = "") -> None:
        self._inner = inner
        self._seen = seen

    def __copy__(self) -> "_BeforeDelta":
        return _BeforeDelta(copy(self._inner), self._seen)

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""
        return self._inner.open

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        call = self._inner.feed(text)
        end = len(text) if call is None else call.end
        self._seen += text[:end]
        if call is None or find_delta(self._seen, ()) is None:
            return call
        self._seen += text[end:]
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        self._inner.skip(text)
        self._seen += text


class _ReplyWatch:
    """Makes the watchers of one reply in several responses: each but the first begins a paragraph."""

    def __init__(self, make: Callable[[], Watcher] | None) -> None:
        self.has_text = False
        self._make = make

    def __call__(self) -> Watcher:
        """Watch the next response."""
        return _ResponseWatch(self, None if self._make is None else self._make())


class _ResponseWatch:
    """Watches one response."""

    def __init__(self, reply: _ReplyWatch, inner: Watcher | None) -> None:
        self._reply = reply
        self._inner = inner
        self._begun = False

    def feed(self, text: str) -> WatchResult:
        """Show what the app's watcher shows."""
        return self._show(text if self._inner is None else self._inner.feed(text).show)

    def close(self) -> WatchResult:
        """Show what was held back."""
        shown = self._show("" if self._inner is None else self._inner.close().show)
        self._reply.has_text |= self._begun
        return shown

    def _show(self, text: str) -> WatchResult:
        lead = PARAGRAPH if text and not self._begun and self._reply.has_text else ""
        self._begun = self._begun or bool(text)
        return WatchResult(lead + text)
