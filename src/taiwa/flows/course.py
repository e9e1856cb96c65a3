"""A rationale in text: the model writes, is interrupted where it asks for a tool, and goes on behind the result.

Every request begins with what the one before sent, so that a server's prefix cache holds. Where the server can continue an
answer, the text so far is its prefix; elsewhere the text was cut, and each next piece is a turn of its own.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Literal

from taiwa.conversation.derive import tokens_of
from taiwa.flows.demands import NO_CALL_LEFT, Calls, Demand, demanded
from taiwa.flows.interrupting import Interrupt, unrepeated
from taiwa.flows.live import Live, Through, withheld
from taiwa.flows.protocol import Protocol
from taiwa.flows.rationale import Bounds, Ending, Said, Spliced
from taiwa.flows.scanning import Trigger
from taiwa.kernel.effects import Complete, Program, Watcher, perform, tell
from taiwa.kernel.errors import RefusalError, ToolError
from taiwa.kernel.values import Message, Request, Response, Thought, Usage, assistant, user

__all__ = ["TextCourse", "Track"]

GO_ON = "Go on exactly where your text stops. Repeat none of it."
ENDINGS: Mapping[str, Ending] = {"length": "length", "interrupted": "interrupted", "refusal": "refusal"}
LONGEST_NOTE = 200
Mark = Literal["result", "stop", "call", "cue"]


class Track:
    """What both kinds of courses keep: what was said and put in, the calls, the tokens, and how it ended."""

    def __init__(
        self, asked: Request, calls: Calls, bounds: Bounds, watch: Callable[[], Watcher] | None = None
    ) -> None:
        self.asked = asked
        self.calls = calls
        self.bounds = bounds
        self.watch = watch
        self.parts: list[Said | Spliced] = []
        self.ending: Ending | None = None
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
        usage = response.usage or Usage(output_tokens=tokens_of(response.text + response.discarded))
        self.used += usage.output_tokens
        if self.bounds.tokens is not None and self.used >= self.bounds.tokens and self.ending is None:
            self.ending = "tokens"

    def say(self, text: str) -> None:
        """Add what the model wrote."""
        if text:
            self.parts.append(Said(text))

    def put(self, text: str, kind: Mark, *, seen: str = "") -> Program[None]:
        """Put something into the text, and show it; `seen` is what of the model's words is shown with it."""
        self.parts.append(Spliced(text, kind))
        if seen + text:
            yield from tell(seen + text, code="call" if seen else kind)

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


class TextCourse(Track):
    """A rationale under way in text."""

    def __init__(
        self,
        asked: Request,
        calls: Calls,
        bounds: Bounds,
        protocol: Protocol,
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
                yield from tell("stopped within hidden reasoning; asked again without stop strings", code="downgrade")
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
        return self._shown(Live(Interrupt(self._scanner, self.text)))

    def _shown(self, live: Live) -> Watcher:
        return live if self.watch is None else Through(live, self.watch())

    def _unsaid(self, response: Response) -> bool:
        """Whether the server stopped at a mark in hidden reasoning, which is nobody's text. From then on none is given."""
        thought = any(isinstance(part, Thought) for part in response.message.parts)
        if not (self.asked.stop and thought and not response.text and response.finish == "stop"):
            return False
        self.asked = replace(self.asked, stop=())
        return True

    def _take(self, response: Response) -> Program[tuple[Trigger | None, str]]:
        """Add what the model wrote, up to its first trigger; where there is none, `ending` may be set.

        Gives the trigger and what stood behind it.
        """
        text = unrepeated(response.text, self.text)
        trigger = self._scanner.feed(text)
        if trigger is None:
            return (yield from self._stopped(response, text)), ""
        self._add(text[: trigger.end], max(trigger.end - trigger.size, 0))
        if seen := withheld(text[: trigger.end], trigger.size):
            yield from tell(seen, code="call")
        return trigger, text[trigger.end :]

    def _stopped(self, response: Response, text: str) -> Program[Trigger | None]:
        """The answer ended without a call: at a mark that the server does not give back, or for good."""
        self._add(text, len(text))
        seen = withheld(text, None) if self._scanner.open else ""
        met = self._met(response, text)
        if not met:
            if seen:
                yield from tell(seen, code="call")
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

    def _call(self, trigger: Trigger, behind: str) -> Program[None]:
        """Have a call done, and put its result in."""
        if trigger.final:
            self.final, self.ending = trigger.input, "end"
            return
        if behind.strip():
            yield from tell(f"passed over: {behind.strip()[:LONGEST_NOTE]}", code="discarded")
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

    def _demand(self, trigger: Trigger, behind: str) -> Demand:
        try:
            spec = self.calls.spec(trigger.name)
            arguments = self._protocol.arguments(spec, trigger.input)
        except ToolError as error:
            return Demand(trigger.name, trigger.input, {}, error, behind)
        return demanded(spec.name, arguments, trigger.input, behind)

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
            Complete(self.bounded(request), lambda: self._shown(Live(Interrupt(_NOTHING, known))))
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

    def feed(self, text: str) -> Trigger | None:  # noqa: ARG002  (a scanner's)
        """Find nothing."""
        return None

    def skip(self, text: str) -> None:
        """Pass over it."""


_NOTHING = _Nothing()
