"""Runs: answers that are being written. A run belongs to the store and not to a connection: readers follow its events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import TypeAlias

from taiwa.kernel.errors import StoreError, TaiwaError
from taiwa.kernel.execution import Event
from taiwa.kernel.messages import Notice, TextDelta, ThinkingDelta
from taiwa.operations.complete import Completion
from taiwa.server.errors import INTERNAL, STOPPING, ApiError, api_error, too_many
from taiwa.sessions.durable_turn import TurnResult
from taiwa.sessions.repository import Repository

logger = logging.getLogger("taiwa.server")


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run: of the answer with this index, one of `Completion.choices` of the request.

    `event` is text, reasoning or a notice, then the committed turn or the error that ended the answer.
    """

    index: int
    event: TextDelta | ThinkingDelta | Notice | TurnResult | ApiError

    @property
    def is_last(self) -> bool:
        """Whether it ends its answer."""
        return isinstance(self.event, (TurnResult, ApiError))


OnEnd: TypeAlias = Callable[["LiveRun"], Awaitable[None]]
OnTurn: TypeAlias = Callable[[Repository, str, str], None]
"""Called with the repository, the node and the session of each turn that was stored."""


class LiveRun:
    """The answers of one request while they are written, and their events from the first one."""

    def __init__(
        self, completions: Sequence[Completion], on_end: OnEnd | None = None, on_turn: OnTurn | None = None
    ) -> None:
        self._on_end = on_end
        self._on_turn = on_turn
        self.completions = tuple(completions)
        self.events: list[RunEvent] = []
        self.done = False
        self.ended = asyncio.Event()
        self.abandoned = False
        self.stopped = False
        self._stop = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    def begin(self) -> asyncio.Task[None]:
        """Perform the run in a task of its own."""
        return asyncio.create_task(self._perform())

    async def follow(self, start: int = 0) -> AsyncIterator[RunEvent]:
        """Yield the events from a position, those that exist and those that come, up to the end of the run."""
        while True:
            while start < len(self.events):
                yield self.events[start]
                start += 1
            if self.done:
                return
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)

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
        """End the answers with the text that they have; the turns are committed."""
        self._stop.set()

    async def _perform(self) -> None:
        self._tasks = [asyncio.create_task(self._answer(index)) for index in range(len(self.completions))]
        for index, task in enumerate(self._tasks):
            task.add_done_callback(partial(self._report, index))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if self._on_end is not None:
                await self._on_end(self)
        finally:
            self.done = True
            self.ended.set()
            self._wake()

    async def _answer(self, index: int) -> None:
        completion = self.completions[index]
        try:
            result = await completion.perform(partial(self._observe, index), self._stop)
            if self._on_turn is not None:
                self._on_turn(completion.session.repository, result.node, result.session)
            self._publish(index, result)
        except TaiwaError as error:
            self._publish(index, api_error(error))
        except asyncio.CancelledError:
            if self.abandoned:
                await asyncio.to_thread(_abandon, completion)
            self._publish(index, STOPPING)

    def _observe(self, index: int, event: Event) -> None:
        """Publish what is to be shown; the steps of a program are made in other threads."""
        if not isinstance(event, (TextDelta, ThinkingDelta, Notice)):
            return
        if get_ident() == self._thread:
            self._publish(index, event)
        else:
            self._loop.call_soon_threadsafe(self._publish, index, event)

    def _report(self, index: int, task: asyncio.Task[None]) -> None:
        """Report a failure that no error of ours describes; cancelled answers have ended themselves."""
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.error("a turn failed", exc_info=problem)
            self._publish(index, INTERNAL)

    def _publish(self, index: int, event: TextDelta | ThinkingDelta | Notice | TurnResult | ApiError) -> None:
        self.events.append(RunEvent(index, event))
        self._wake()

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


def _abandon(completion: Completion) -> None:
    """End the interrupted runs of a turn after its client left."""
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
        self.stopping = False

    def check_room(self, count: int = 1) -> None:
        """Check that more answers can be written now.

        Raises:
            ApiError: too many are being written, or the server is stopping.
        """
        if self.stopping:
            raise STOPPING
        if sum(len(run.completions) for run in self._running.values()) + count > self._most:
            raise too_many("the server writes as many answers as it may; try again in a moment")

    def start(self, completions: Sequence[Completion], on_end: OnEnd | None = None) -> LiveRun:
        """Begin to write the answers of a request; they are written to their end whether or not anybody reads them.

        `on_end` is awaited when all of them have ended, before their readers see the end.

        Raises:
            ApiError: as `check_room`.
        """
        self.check_room(len(completions))
        run = LiveRun(completions, on_end, self._on_turn)
        task = run.begin()
        self._running[task] = run
        task.add_done_callback(self._running.pop)
        return run

    async def stop(self, grace: float) -> None:
        """Let open runs end for some seconds; what is not finished then is left in the store, to be resumed."""
        self.stopping = True
        tasks = list(self._running)
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task, run in list(self._running.items()):
            run.cancel(abandon=False)
            await asyncio.wait((task,))
