"""Tool calls in text: generate, stop, insert the result, go on; display while streaming."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Literal

from taiwa.flows.solve.find_tool_calls import CallMatch, Scanner
from taiwa.flows.solve.rationale import (
    NO_CALL_LEFT,
    CallBudget,
    EndReason,
    InsertedText,
    RequestedCall,
    SolveLimits,
    TextPart,
    request_call,
)
from taiwa.flows.solve.tool_call_formats import ToolCallFormat
from taiwa.kernel.effects import Complete, Program, Watcher, WatchResult, notify, perform
from taiwa.kernel.errors import RefusalError, ToolError
from taiwa.kernel.messages import Message, Request, Response, Thinking, Usage, assistant, user
from taiwa.kernel.text import estimate_tokens

__all__ = ["MARKED", "StopAtCall", "TextLoop", "_RationaleBuilder", "unrepeated"]


SHORTEST_REPETITION = 8


class StopAtCall:
    """Watches an answer: skips what it repeats of `known`, shows the rest, and cuts it behind the first trigger."""

    __slots__ = ("_at", "_held", "_known", "scanner", "trigger")

    def __init__(self, scanner: Scanner, known: str = "") -> None:
        self.scanner = copy(scanner)
        self.trigger: CallMatch | None = None
        self._known = _repetitions(known)
        self._held: str | None = ""
        self._at = 0

    def feed(self, text: str) -> WatchResult:
        """Show all words that are new, up to the end of the first trigger."""
        if self._held is not None:
            self._held += text
            if any(len(each) > len(self._held) and each.startswith(self._held) for each in self._known):
                return WatchResult()
            self._at = _repeated(self._held, self._known)
            text, self._held = self._held[self._at :], None
        self.trigger = trigger = self.scanner.feed(text)
        if trigger is not None:
            return WatchResult(text[: trigger.end], self._at + trigger.end)
        self._at += len(text)
        return WatchResult(text)

    def close(self) -> WatchResult:
        """Show what might have become a repetition and did not, up to the end of the first trigger."""
        held, self._held = self._held or "", None
        self.trigger = self.trigger or self.scanner.feed(held)
        return WatchResult(held if self.trigger is None else held[: self.trigger.end])


def unrepeated(text: str, known: str) -> str:
    """Take off the start of a text what it repeats of the text that it continues: all of it, or its last line."""
    return text[_repeated(text, _repetitions(known)) :]


def _repetitions(known: str) -> tuple[str, ...]:
    whole = known.rstrip()
    return tuple(each for each in (whole, whole.rpartition("\n")[2]) if len(each) >= SHORTEST_REPETITION)


def _repeated(text: str, known: tuple[str, ...]) -> int:
    return max((len(each) for each in known if text.startswith(each)), default=0)


MARKED = ("call", "result", "stop", "cue")
"""The codes of notes whose text belongs to the transcript."""

OPEN, CLOSE = "<<", ">>"

LONGEST_CALL = 1_400


class LiveDisplay:
    """Watches an answer as an interrupt does, and holds back what may become a call, so that it can be shown as one.

    Calls that are whole lines, as in ReAct, are shown as the words they are.
    """

    __slots__ = ("_inner", "_wait", "goes_on")

    def __init__(self, inner: StopAtCall) -> None:
        self.goes_on = False
        self._inner = inner
        self._wait = ""

    def feed(self, text: str) -> WatchResult:
        """Show all words that are surely no part of a call."""
        seen = self._inner.feed(text)
        whole = self._wait + seen.show
        trigger = self._inner.trigger
        if seen.cut is not None and trigger is not None:
            self._wait = ""
            return WatchResult(whole[: len(whole) - len(hidden_tail(whole, trigger.size))], seen.cut)
        sure = _sure(whole)
        self._wait = whole[sure:]
        return WatchResult(whole[:sure])

    def close(self) -> WatchResult:
        """Show what might have become a call and did not; one that only lacks its end may still become one."""
        whole = self._wait + self._inner.close().show
        self.goes_on = self._inner.trigger is not None or self._inner.scanner.open
        if self._inner.trigger is not None:
            return WatchResult(whole[: len(whole) - len(hidden_tail(whole, self._inner.trigger.size))])
        return WatchResult(whole[: _sure(whole)] if self.goes_on else whole)


class Through:
    """Shows of a rationale only what another watcher shows; where it is cut, or ends in a call, it shows all it was given,
    because the other one saw no whole answer.
    """

    __slots__ = ("_fed", "_first", "_second", "_shown")

    def __init__(self, first: LiveDisplay, second: Watcher) -> None:
        self._first = first
        self._second = second
        self._fed = ""
        self._shown = 0

    def feed(self, text: str) -> WatchResult:
        """Show what both let through."""
        seen = self._first.feed(text)
        show = self._next(seen.show)
        return WatchResult(show if seen.cut is None else show + self._rest(), seen.cut)

    def close(self) -> WatchResult:
        """Show what both held back."""
        show = self._next(self._first.close().show)
        return WatchResult(show + (self._rest() if self._first.goes_on else self._second.close().show))

    def _next(self, text: str) -> str:
        self._fed += text
        show = self._second.feed(text).show if text else ""
        self._shown += len(show)
        return show

    def _rest(self) -> str:
        return self._fed[self._shown :]


def hidden_tail(text: str, size: int | None) -> str:
    """The end of what a model wrote that was not shown: a call of that size; None for one that lacks its end."""
    start = _sure(text) if size is None else max(len(text) - size, 0)
    return text[start:] if text.startswith(OPEN, start) else ""


def _sure(text: str) -> int:
    """How much of a text belongs to no call, whatever comes."""
    at = text.find(OPEN, text.rfind("\n") + 1)
    while at >= 0 and (closed := text.find(CLOSE, at)) >= 0:
        at = text.find(OPEN, closed + len(CLOSE))
    if at < 0:
        return len(text) - text.endswith(OPEN[0])
    return at if len(text) - at <= LONGEST_CALL else len(text)


GO_ON = "Go on exactly where your text stops. Repeat none of it."

ENDINGS: Mapping[str, EndReason] = {"length": "length", "interrupted": "interrupted", "refusal": "refusal"}

LONGEST_NOTE = 200

Mark = Literal["result", "stop", "call", "cue"]


class _RationaleBuilder:
    """What both kinds of courses keep: what was said and put in, the calls, the tokens, and how it ended."""

    def __init__(
        self, asked: Request, calls: CallBudget, bounds: SolveLimits, watch: Callable[[], Watcher] | None = None
    ) -> None:
        self.asked = asked
        self.calls = calls
        self.bounds = bounds
        self.watch = watch
        self.parts: list[TextPart | InsertedText] = []
        self.ending: EndReason | None = None
        self.final = ""
        self.used = 0
        self._ours = False

    @property
    def text(self) -> str:
        """The transcript so far."""
        return "".join(part.text for part in self.parts)

    def bounded(self, request: Request) -> Request:
        """Ask for no more tokens than are left."""
        if self.bounds.tokens is None:
            return request
        left, most = max(self.bounds.tokens - self.used, 1), request.sampling.max_tokens
        self._ours = most is None or left <= most
        return replace(request, sampling=replace(request.sampling, max_tokens=left)) if self._ours else request

    def charge(self, response: Response) -> None:
        """Count what an answer was long; about, where the server did not say."""
        usage = response.usage or Usage(output_tokens=estimate_tokens(response.text + response.discarded))
        self.used += usage.output_tokens
        if self.bounds.tokens is not None and self.used >= self.bounds.tokens and self.ending is None:
            self.ending = "tokens"

    def say(self, text: str) -> None:
        """Add what the model wrote."""
        if text:
            self.parts.append(TextPart(text))

    def put(self, text: str, kind: Mark, *, seen: str = "") -> Program[None]:
        """Put something into the text, and show it; `seen` is what of the model's words is shown with it."""
        self.parts.append(InsertedText(text, kind))
        if seen + text:
            yield from notify(seen + text, code="call" if seen else kind)

    def end(self, response: Response) -> None:
        """End as an answer did that asks for nothing more.

        Raises:
            RefusalError: nothing at all was said.
        """
        if response.finish == "refusal" and not self.text.strip():
            raise RefusalError("the model refused to answer", request=self.asked.digest)
        ending = ENDINGS.get(response.finish, "end")
        if self.ending in (None, "tokens"):
            own = self._ours and self.bounds.tokens is not None and 2 * self.used >= self.bounds.tokens
            self.ending = "tokens" if ending == "length" and own else ending


class TextLoop(_RationaleBuilder):
    """A rationale under way in text."""

    def __init__(
        self,
        asked: Request,
        calls: CallBudget,
        bounds: SolveLimits,
        protocol: ToolCallFormat,
        watch: Callable[[], Watcher] | None = None,
    ) -> None:
        super().__init__(asked, calls, bounds, watch)
        self._protocol = protocol
        self._scanner = protocol.scanner(calls.specs)
        self._in_place = False
        self._turns: list[str] = []
        self._false_stops = 0
        self._writing: int | None = None

    def enable(self, *, in_place: bool, stops: bool) -> None:
        """Choose the way to go on. A stop string could end a repetition before it is over, so it is used only where nothing
        is repeated.
        """
        self._in_place = in_place
        if in_place and stops and self.calls.specs:
            self.asked = replace(self.asked, stop=self._protocol.stops)

    def run(self) -> Program[None]:
        """Go on to the end."""
        while self.ending is None:
            response = yield from perform(Complete(self.bounded(self.request()), self._watch))
            self.charge(response)
            if self._unsaid(response):
                yield from notify("stopped within hidden reasoning; asked again without stop strings", code="downgrade")
                continue
            trigger, text = yield from self._take(response)
            if trigger is not None and self.ending is None:
                yield from self._call(trigger, f"{text}{response.discarded}")
        self._wrote("")

    def request(self) -> Request:
        """Ask for what follows the text so far; every request begins with the messages of the one before."""
        if self._in_place:
            return replace(self.asked, prefix=self.text)
        turns = (message for turn in self._turns for message in (assistant(turn), user(GO_ON)))
        return replace(self.asked, messages=(*self.asked.messages, *turns))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The question with all that was said to it."""
        return (*self.asked.messages, assistant(self.text))

    def _watch(self) -> Watcher:
        return self._shown(LiveDisplay(StopAtCall(self._scanner, self.text)))

    def _shown(self, live: LiveDisplay) -> Watcher:
        return live if self.watch is None else Through(live, self.watch())

    def _unsaid(self, response: Response) -> bool:
        """Whether the server stopped at a mark in hidden reasoning, which is nobody's text. From then on none is given."""
        thought = any(isinstance(part, Thinking) for part in response.message.parts)
        if not (self.asked.stop and thought and not response.text and response.finish == "stop"):
            return False
        self.asked = replace(self.asked, stop=())
        return True

    def _take(self, response: Response) -> Program[tuple[CallMatch | None, str]]:
        """Add what the model wrote, up to its first trigger; where there is none, `ending` may be set.

        Gives the trigger and what stood behind it.
        """
        text = unrepeated(response.text, self.text)
        trigger = self._scanner.feed(text)
        if trigger is None:
            return (yield from self._stopped(response, text)), ""
        self._add(text[: trigger.end], max(trigger.end - trigger.size, 0))
        if seen := hidden_tail(text[: trigger.end], trigger.size):
            yield from notify(seen, code="call")
        return trigger, text[trigger.end :]

    def _stopped(self, response: Response, text: str) -> Program[CallMatch | None]:
        """The answer ended without a call: at a mark that the server does not give back, or for good."""
        self._add(text, len(text))
        seen = hidden_tail(text, None) if self._scanner.open else ""
        met = self._met(response, text)
        if not met:
            if seen:
                yield from notify(seen, code="call")
            self.end(response)
            return None
        trigger = self._scanner.feed(met)
        self._false_stops += trigger is None
        if self._false_stops > self.bounds.false_stops and self.ending is None:
            self.ending = "stops"
        mark = met if trigger is None else met[: trigger.end]
        self._turns[-1] += mark
        yield from self.put(mark, "stop", seen=seen)
        return trigger

    def _met(self, response: Response, text: str) -> str:
        """The mark at which the server stopped, which is no part of its answer; '' for the end of the answer."""
        if response.finish != "stop":
            return ""
        if response.stop in self._protocol.stops:
            return response.stop or ""
        close = self._protocol.close
        if self._scanner.open or (self.asked.stop and copy(self._scanner).feed(close)):
            return close
        # Many servers do not say at which mark they stopped. An answer does not end in the middle of a line on a blank.
        untold = response.stop is None and self.asked.stop and close in self.asked.stop
        return close if untold and text[-1:] in (" ", "\t", "<") else ""

    def _call(self, trigger: CallMatch, behind: str) -> Program[None]:
        """Have a call done, and put its result in."""
        if trigger.final:
            self.final, self.ending = trigger.input, "end"
            return
        if behind.strip():
            yield from notify(f"passed over: {behind.strip()[:LONGEST_NOTE]}", code="discarded")
        (called,) = yield from self.calls.answer([self._demand(trigger, behind)])
        if called is None:
            yield from self._splice(NO_CALL_LEFT, trigger.mark)
        elif called.result.origin == "model":
            self._writing = len(self.calls.made) - 1
        elif self.calls.ending in (None, "calls"):
            yield from self._splice(called.shown, trigger.mark)
        if self.calls.ending == "calls" and self.ending is None:
            yield from self._finish()
        elif self.calls.ending is not None:
            self.ending = self.calls.ending

    def _demand(self, trigger: CallMatch, behind: str) -> RequestedCall:
        try:
            spec = self.calls.spec(trigger.name)
            arguments = self._protocol.arguments(spec, trigger.input)
        except ToolError as error:
            return RequestedCall(trigger.name, trigger.input, {}, error, behind)
        return request_call(spec.name, arguments, trigger.input, behind)

    def _splice(self, words: str, mark: str) -> Program[None]:
        """Put a result behind its call. A new turn begins a new line, so that no digit of it can join the result."""
        text = self._protocol.splice(words, mark)
        text += "" if self._in_place or text.endswith("\n") else "\n"
        self._turns[-1] += text
        self._scanner.skip(text)
        yield from self.put(text, "result")

    def _finish(self) -> Program[None]:
        """Ask once for the last words, in which nothing is called."""
        request = replace(self.request(), stop=())
        known = self.text
        last = yield from perform(
            Complete(self.bounded(request), lambda: self._shown(LiveDisplay(StopAtCall(_NOTHING, known))))
        )
        self.charge(last)
        self._add(unrepeated(last.text, known), None)
        self.ending = "calls"

    def _add(self, text: str, call: int | None) -> None:
        """Add what the model wrote; `call` is where a call begins in it."""
        self._turns.append(text)
        self.say(text)
        self._wrote(text if call is None else text[:call])

    def _wrote(self, text: str) -> None:
        """Keep what the model wrote in place of a result: the rest of the line."""
        if self._writing is not None:
            self.calls.wrote(self._writing, text.strip().partition("\n")[0].strip()[:LONGEST_NOTE])
            self._writing = None


class _Nothing:
    """Finds no call."""

    open = False

    def feed(self, text: str) -> CallMatch | None:  # noqa: ARG002  (a scanner's)
        """Find nothing."""
        return None

    def skip(self, text: str) -> None:
        """Pass over it."""


_NOTHING = _Nothing()
