"""Runs: answers in progress. A run belongs to the store, not to a connection; readers follow its events."""

import asyncio
import logging
from array import array
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import Generic, TypeAlias, TypeVar

from taiwa.kernel.async_runtime import Stop, finish_in_thread
from taiwa.kernel.errors import StoreError, TaiwaError
from taiwa.kernel.execution import DeltaStarted, Event
from taiwa.kernel.messages import Notice, TextDelta, ThinkingDelta
from taiwa.kernel.serialization import value
from taiwa.operations.resent_history import Completion
from taiwa.server.access import has_room
from taiwa.server.http_responses import INTERNAL, STOPPING, ApiError, api_error, too_many
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.repository import Repository

logger = logging.getLogger("taiwa.server")
T = TypeVar("T")


class EventLog(Generic[T]):
    """Events, which any number of readers follow from the first one."""

    def __init__(self) -> None:
        self.done = False
        """Whether no more come."""
        self.events: list[T] = []
        self._changed = asyncio.Event()

    async def follow(self) -> AsyncGenerator[T]:
        """Yield past and future events."""
        at = 0
        while True:
            changed = self._changed
            while at < len(self.events):
                yield self.events[at]
                at += 1
            if self.done:
                return
            await changed.wait()

    def add(self, event: T) -> None:
        """Add an event; call this on the event loop."""
        self.events.append(event)
        self._wake()

    def end(self) -> None:
        """Add no more; call this on the event loop."""
        self.done = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run, for the answer with this index (one of `Completion.choices` of the request).

    `event` is text, reasoning or a notice, and finally the committed turn or the error that ended the answer.
    """

    index: int
    event: "PublishedEvent"

    @property
    def is_last(self) -> bool:
        """Whether it ends its answer."""
        return isinstance(self.event, (TurnResult, ApiError))


@value(tag="inserted-delta")
class InsertedDelta(TextDelta):
    """The next text of an answer that its program inserted, such as the result of a call."""

    text: str
    refuses: bool = False


STATE_NOTICE = "state"
"""The code of the notice that the state delta is being written."""
CANCEL_SECONDS = 5.0
"""Seconds that cancelled runs get to end before the connections that follow them are closed."""
PublishedEvent: TypeAlias = TextDelta | ThinkingDelta | Notice | TurnResult | ApiError
Take: TypeAlias = Callable[[int, PublishedEvent], bool]
"""Receives the index of an answer and its event immediately, and returns whether it consumed the event."""


def take_pieces(write: Callable[[TextDelta | ThinkingDelta], bytes], send_now: Callable[[bytes], bool]) -> Take:
    """Return a function that sends pieces of text and reasoning immediately; `write` is called only if a piece can be sent."""

    def take(_: int, event: PublishedEvent) -> bool:
        return isinstance(event, (TextDelta, ThinkingDelta)) and send_now(b"") and send_now(write(event))

    return take


OnEnd: TypeAlias = Callable[["LiveRun"], Awaitable[None]]
OnTurn: TypeAlias = Callable[[Repository, str, str], None]
"""Called with the repository, the node and the session of each stored turn."""


class LiveRun:
    """The answers of one request in progress, and their events from the first one.

    `when_done` is called at the end, before readers see it.
    """

    __slots__ = (
        "_events", "_indexes", "_loop", "_on_end", "_on_turn", "_readers", "_stop", "_tasks", "_thread",
        "abandoned", "completions", "ended", "stopped", "when_done",
    )  # fmt: skip

    def __init__(
        self, completions: Sequence[Completion], on_end: OnEnd | None = None, on_turn: OnTurn | None = None
    ) -> None:
        self._on_end = on_end
        self._on_turn = on_turn
        self.completions = tuple(completions)
        self.when_done: Callable[[], None] | None = None
        self._events: list[PublishedEvent] = []
        self._indexes = array("I")
        self.ended: float | None = None
        """When all answers had ended, in the time of the event loop."""
        self.abandoned = False
        self.stopped = False
        self._stop = Stop()
        self._readers: list[_Reader] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    @property
    def events(self) -> list[RunEvent]:
        """The events so far."""
        return list(map(RunEvent, self._indexes, self._events))

    @property
    def last(self) -> PublishedEvent | None:
        """The last event; None before the first."""
        return self._events[-1] if self._events else None

    def begin(self) -> asyncio.Task[None]:
        """Perform the run in its own task."""
        return asyncio.create_task(self._perform())

    async def follow(self, start: int = 0, take: Take | None = None) -> AsyncGenerator[RunEvent]:
        """Yield past and future events from a position, up to the end of the run.

        While a reader waits for the next event, `take` receives events immediately; those that it consumes are not yielded.
        """
        reader = _Reader(start, take)
        while True:
            while reader.position < len(self._events):
                at = reader.position
                reader.position += 1
                yield RunEvent(self._indexes[at], self._events[at])
            if self.ended is not None:
                return
            # No event can come in between: events are published on this loop, and nothing was awaited since the check.
            reader.woken = self._loop.create_future()
            self._readers.append(reader)
            try:
                await reader.woken
            finally:
                self._readers.remove(reader)

    async def begun(self) -> None:
        """Wait for the first event.

        Raises:
            ApiError: that is an error.
        """
        async with aclosing(self.follow()) as events:
            async for each in events:
                if isinstance(each.event, ApiError):
                    raise each.event
                if not isinstance(each.event, Notice):
                    return

    async def end(self) -> None:
        """Wait for the end of all answers."""
        async for _ in self.follow(len(self._events)):
            pass

    async def results(self) -> list[TurnResult]:
        """Wait for the end of all answers.

        Raises:
            ApiError: one of them failed.
        """
        found: dict[int, TurnResult] = {}
        async for each in self.follow():
            if isinstance(each.event, ApiError):
                raise each.event
            if isinstance(each.event, TurnResult):
                found[each.index] = each.event
        return [found[index] for index in range(len(self.completions))]

    def cancel(self, *, abandon: bool) -> None:
        """Cancel the run. It can be resumed later, unless it is abandoned."""
        self.abandoned = self.abandoned or abandon
        self.stopped = not abandon
        for task in self._tasks:
            task.cancel()

    def finish(self) -> None:
        """End the answers with the text so far; the turns are committed."""
        self._stop.set()

    async def _perform(self) -> None:
        if len(self.completions) == 1:
            here = asyncio.current_task()
            self._tasks = [] if here is None else [here]
            with suppress(asyncio.CancelledError):  # as below, if it is cancelled twice
                await self._answer(0)
            self._tasks = []
        else:
            self._tasks = [asyncio.create_task(self._answer(index)) for index in range(len(self.completions))]
            await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if self._on_end is not None:
                await self._on_end(self)
        except Exception:
            logger.exception("the end of a run failed")
        finally:
            self.ended = self._loop.time()
            when_done, self.when_done = self.when_done, None  # it holds more than the run, which is kept for repeats
            if when_done is not None:
                when_done()
            self._wake()

    async def _answer(self, index: int) -> None:
        completion = self.completions[index]
        try:
            result = await completion.perform(partial(self._observe, index), self._stop)
            if self._on_turn is not None:
                self._on_turn(completion.session.repository, result.node, result.session)
            if rest := self._rest(index, result.continuation):
                self._publish(index, TextDelta(rest))
            self._publish(index, result)
        except TaiwaError as error:
            self._publish(index, api_error(error))
            self._cancel_others(index)
        except asyncio.CancelledError:
            if self.abandoned:
                await finish_in_thread(partial(_abandon, completion))
            self._publish(index, STOPPING)
        except Exception:
            logger.exception("a turn failed")
            self._publish(index, INTERNAL)
            self._cancel_others(index)

    def _rest(self, index: int, text: str) -> str:
        """Return what a streamed answer lacks of its text; "" if it is another text, or nothing was streamed."""
        pieces = (
            event.text
            for at, event in zip(self._indexes, self._events, strict=True)
            if at == index and isinstance(event, TextDelta)
        )
        written = "".join(pieces)
        return text[len(written) :] if written and text.startswith(written) else ""

    def _cancel_others(self, failed: int) -> None:
        """Cancel the other answers of a request, which fails with this one, so that they are not paid for."""
        self.abandoned = self.abandoned or len(self._tasks) > 1
        for index, task in enumerate(self._tasks):
            if index != failed:
                task.cancel()

    def _observe(self, index: int, event: Event) -> None:
        """Publish an event; the steps of a program may run in other threads."""
        if isinstance(event, Notice) and event.in_answer:
            event = InsertedDelta(event.text)
        elif not isinstance(event, (TextDelta, ThinkingDelta, Notice)):
            if not isinstance(event, DeltaStarted):
                return
            event = Notice("updating the state …", code=STATE_NOTICE)
        if get_ident() == self._thread:
            self._publish(index, event)
        else:
            self._loop.call_soon_threadsafe(self._publish, index, event)

    def _publish(self, index: int, event: PublishedEvent) -> None:
        self._indexes.append(index)
        self._events.append(event)
        for reader in self._readers:
            if reader.take is not None and not reader.woken.done() and reader.take(index, event):
                reader.position += 1
            else:
                reader.wake()

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()


class _Reader:
    """A reader of the events of a run, waiting for the event at a position."""

    __slots__ = ("position", "take", "woken")
    woken: "asyncio.Future[None]"

    def __init__(self, position: int, take: Take | None) -> None:
        self.position, self.take = position, take

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


def _abandon(completion: Completion) -> None:
    """End the interrupted runs of a turn after its client disconnected."""
    runs = completion.session.repository.store.runs
    with suppress(StoreError):
        for run in runs.open_runs(completion.session.name):
            runs.end(run.id, "abandoned")


class Runs:
    """All runs of a server."""

    def __init__(self, most: int, on_turn: OnTurn | None = None) -> None:
        self._most = most
        self._on_turn = on_turn
        self._running: dict[asyncio.Task[None], LiveRun] = {}
        self._answers: Counter[str] = Counter()
        """The answers that are written for each caller."""
        self.stopping = False

    def check_room(self, caller: str, count: int = 1) -> None:
        """Check that another run of a caller can be started.

        Raises:
            ApiError: too many runs are active, or the server is stopping.
        """
        if self.stopping:
            raise STOPPING
        if not has_room(self._answers[caller], self._answers.total(), self._most, count):
            raise too_many("the server writes as many answers as it may; try again in a moment")

    def start(self, caller: str, completions: Sequence[Completion], on_end: OnEnd | None = None) -> LiveRun:
        """Start the answers of a request of a caller; they are completed even without readers.

        `on_end` is awaited when all of them have ended, before their readers see the end.

        Raises:
            ApiError: as `check_room`.
        """
        self.check_room(caller, len(completions))
        run = LiveRun(completions, on_end, self._on_turn)
        task = run.begin()
        self._running[task] = run
        self._answers[caller] += len(completions)

        def end(ended: asyncio.Task[None]) -> None:
            del self._running[ended]
            self._answers[caller] -= len(completions)
            if not self._answers[caller]:
                del self._answers[caller]

        task.add_done_callback(end)
        return run

    async def stop(self, grace: float) -> None:
        """Give open runs some seconds to end; unfinished runs stay in the store and can be resumed."""
        self.stopping = True
        tasks = list(self._running)
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for run in self._running.values():
            run.cancel(abandon=False)
        if tasks := list(self._running):
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
