"""Rows of a batch that know nothing of each other: asked side by side, each paid for once, given out in order."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Spent
from taiwa.kernel.protocols import Tool
from taiwa.kernel.records import Json
from taiwa.kernel.session import Done
from taiwa.talk.desk import Desk
from taiwa.talk.rows import Given, ends_batch, see_that_limits_hold
from taiwa.talk.turn import TurnOptions, Voice, sink

__all__ = ["Asking", "SideBySide"]

A = TypeVar("A")
R = TypeVar("R")
AHEAD = 4
"""Rows that may wait for an older one, for each that is under way; so the memory of a batch is bounded."""
LOOK_AGAIN = 0.5
"""Seconds until it is seen whether another program has answered a row."""


@dataclass(frozen=True, slots=True)
class Asking(Generic[A]):
    """What a row asks for: a program, and a name made of all that its answer depends on."""

    name: str
    program: Program[A]
    app: str | None = None
    options: Json = None
    tools: tuple[Tool, ...] = ()


@dataclass
class SideBySide(ABC, Generic[A, R]):
    """A batch, `width` rows at a time. With `resume` a row that was answered before is not asked again."""

    desk: Desk
    voice: Voice
    options: TurnOptions
    width: int = field(default=4, kw_only=True)
    resume: bool = field(default=False, kw_only=True)
    spent: Spent = field(default_factory=Spent, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _cut_off: dict[str, int] = field(default_factory=dict[str, int], init=False)

    @abstractmethod
    def asking(self, given: Given) -> Asking[A]:
        """Say what a row asks for.

        Raises:
            TaiwaError: it cannot be asked.
        """

    @abstractmethod
    def answered(self, given: Given, done: Done[A]) -> R:
        """Make a row of its answer."""

    @abstractmethod
    def failed(self, given: Given, error: TaiwaError) -> R:
        """Make a row of its error."""

    @abstractmethod
    def recorded(self, row: R) -> Json:
        """Give what is kept of a row that was answered; its place in the file is not."""

    @abstractmethod
    def restored(self, given: Given, held: dict[str, Json]) -> R:
        """Make a row again of what was kept of it."""

    async def rows(self, given: Iterable[Given]) -> AsyncGenerator[R]:
        """Answer rows and give them out in their order.

        Raises:
            TaiwaError: the next row could only fail as well; rows that were under way are given out before.
        """
        if self.resume:
            self._cut_off = self._find_cut_off()
        gate = asyncio.Semaphore(self.width)
        tasks: deque[asyncio.Task[R | None]] = deque()
        try:
            for one in given:
                tasks.append(asyncio.create_task(self._row(one, gate)))
                if len(tasks) >= AHEAD * self.width:
                    row = await tasks.popleft()
                    if row is not None:
                        yield row
                if self._fatal is not None:
                    break
            while tasks:
                row = await tasks.popleft()
                if row is not None:
                    yield row
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._fatal is not None:
            raise self._fatal

    async def _row(self, given: Given, gate: asyncio.Semaphore) -> R | None:
        """Answer a row; None means that the batch ended before it."""
        if given.error:
            return self.failed(given, InputError(given.error))
        waited = False
        while True:
            async with gate:
                if self._fatal is not None:
                    return None
                try:
                    see_that_limits_hold(self.options, self.spent, self.voice)
                    row = await self._answered(given, waited=waited)
                except TaiwaError as error:
                    if not ends_batch(error):
                        return self.failed(given, error)
                    self._fatal = error
                    return None
            if row is not None:
                return row
            waited = True
            await asyncio.sleep(LOOK_AGAIN)

    async def _answered(self, given: Given, *, waited: bool) -> R | None:
        """Answer a row; None while another program is asking for it, so that a resumed batch can have many workers."""
        asking = self.asking(given)
        items = self.desk.store.batches
        item = items.take(asking.name) if self.resume else items.begin(asking.name)
        if item is None:
            return None
        if self.resume and item.status == "done" and isinstance(item.result, dict):
            return self.restored(given, item.result)
        if waited:
            self._cut_off = self._find_cut_off()  # whoever had it is gone
        run, journal = self._begun(given.text, asking)
        try:
            done = await self._asked(asking, journal)
        except TaiwaError as error:
            self._end(run, asking.name, error)
            raise
        except BaseException:
            self.desk.store.runs.release(run)
            items.release(asking.name)
            raise
        row = self.answered(given, done)
        # The result first: a crash between the two is then no reason to ask again.
        items.finish(asking.name, self.recorded(row), done.spent.cost)
        self.desk.store.runs.complete(run)
        return row

    async def _asked(self, asking: Asking[A], journal: Journal) -> Done[A]:
        limits, known = self.options.limits, self.spent.cost
        if limits.cost is not None and known is not None:
            limits = replace(limits, cost=limits.cost - known)
        runtime = AsyncRuntime(self.voice.model, tools=asking.tools, limits=limits, price=self.voice.price)
        try:
            events = [event async for event in runtime.stream(asking.program, journal) if isinstance(event, Done)]
        except TaiwaError as error:
            self._charge(error.spent)
            raise
        self._charge(events[0].spent)
        return events[0]

    def _charge(self, spent: object) -> None:
        if isinstance(spent, Spent):
            self.spent = self.spent + spent

    def _begun(self, text: str, asking: Asking[A]) -> tuple[int, Journal]:
        """Begin the run of a row, or take up the one that was cut off."""
        runs = self.desk.store.runs
        found = self._cut_off.pop(asking.name, None)
        if found is not None:
            runs.claim(found)
            return found, Journal(runs.journal(found), sink(self.desk, found, self.voice))
        options = asking.options if isinstance(asking.options, dict) else {}
        run = runs.begin("", None, asking.app, text, options | {"item": asking.name})
        return run, Journal((), sink(self.desk, run, self.voice))

    def _end(self, run: int, name: str, error: TaiwaError) -> None:
        """Record a failure. One that a limit stopped is not over: the next try goes on with what was paid for."""
        with suppress(StoreError):
            if isinstance(error, LimitError):
                self.desk.store.runs.release(run)
            else:
                self.desk.store.runs.fail(run, error)
            cost = error.spent.cost if isinstance(error.spent, Spent) else 0
            self.desk.store.batches.fail(name, error, cost)

    def _find_cut_off(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for run in self.desk.store.runs.open_runs(""):
            item = run.options.get("item") if isinstance(run.options, dict) else None
            if isinstance(item, str):
                found[item] = run.id
        return found
