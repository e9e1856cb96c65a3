"""A batch whose rows know nothing of each other: answered side by side, given out in order."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.chat import Reply, say
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.errors import InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, record, revive
from taiwa.kernel.session import Done
from taiwa.store import item_key
from taiwa.talk.desk import Desk
from taiwa.talk.rows import Given, Row, ends_batch, failed, see_that_limits_hold
from taiwa.talk.turn import Manner, Voice, sink

__all__ = ["Map"]

AHEAD = 4
"""Rows that may wait for an older one, for each that is under way; so the memory of a batch is bounded."""


@dataclass
class Map:
    """Rows that know nothing of each other, `width` at a time. `opened` gives the app with the params of a row.

    With `resume` a row that was answered before, with the same app, model and params, is not asked again.
    """

    desk: Desk
    voice: Voice
    manner: Manner
    opened: Callable[[Json], App]
    width: int = 4
    resume: bool = False
    spent: Spent = field(default_factory=Spent)
    _fatal: TaiwaError | None = None
    _cut_off: dict[str, int] = field(default_factory=dict[str, int])

    async def rows(self, given: Iterable[Given]) -> AsyncGenerator[Row]:
        """Answer rows and give them out in their order.

        Raises:
            TaiwaError: the next row could only fail as well; rows that were under way are given out before.
        """
        if self.resume:
            self._cut_off = self._find_cut_off()
        gate = asyncio.Semaphore(self.width)
        tasks: deque[asyncio.Task[Row | None]] = deque()
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

    async def _row(self, given: Given, gate: asyncio.Semaphore) -> Row | None:
        """Answer a row; None means that the batch ended before it."""
        if given.error:
            return failed(given, InputError(given.error))
        async with gate:
            if self._fatal is not None:
                return None
            try:
                see_that_limits_hold(self.manner, self.spent, self.voice)
                return await self._answered(given)
            except TaiwaError as error:
                if not ends_batch(error):
                    return failed(given, error)
                self._fatal = error
                return None

    async def _answered(self, given: Given) -> Row:
        app = self.opened(given.params)
        name = item_key(given.text, app.hash, self.voice.model.name, self.manner.options())
        item = self.desk.store.items.begin(name)
        if self.resume and item.status == "done" and isinstance(item.result, dict):
            return _restored(given, item.result)
        run, journal = self._begun(given.text, app, name)
        try:
            done = await self._asked(given.text, app, journal)
        except TaiwaError as error:
            self._end(run, name, error)
            raise
        except BaseException:
            self.desk.store.runs.release(run)
            raise
        reply, after = done.value
        row = Row(given, reply.text, reply.delta, dict(after.state), reply.warnings, spent=done.spent)
        # The result first: a crash between the two is then no reason to ask again.
        self.desk.store.items.finish(name, _recorded(row), done.spent.cost)
        self.desk.store.runs.settle(run)
        return row

    async def _asked(self, text: str, app: App, journal: Journal) -> Done[tuple[Reply, Conversation]]:
        limits, known = self.manner.limits, self.spent.cost
        if limits.cost is not None and known is not None:
            limits = replace(limits, cost=limits.cost - known)
        program = say(text, strict=self.manner.strict, repairs=self.manner.repairs)(begin(app))
        runtime = AsyncRuntime(self.voice.model, limits=limits, price=self.voice.price)
        try:
            events = [event async for event in runtime.stream(program, journal) if isinstance(event, Done)]
        except TaiwaError as error:
            self._charge(error.spent)
            raise
        self._charge(events[0].spent)
        return events[0]

    def _charge(self, spent: object) -> None:
        if isinstance(spent, Spent):
            self.spent = self.spent + spent

    def _begun(self, text: str, app: App, name: str) -> tuple[int, Journal]:
        """Begin the run of a row, or take up the one that was cut off."""
        runs = self.desk.store.runs
        found = self._cut_off.pop(name, None)
        if found is not None:
            runs.claim(found)
            return found, Journal(runs.journal(found), sink(self.desk, found, self.voice))
        self.desk.store.nodes.put_app(app.source)
        run = runs.begin("", None, app.hash, text, self.manner.options() | {"item": name})
        return run, Journal((), sink(self.desk, run, self.voice))

    def _end(self, run: int, name: str, error: TaiwaError) -> None:
        """Record a failure. One that a limit stopped is not over: the next try goes on with what was paid for."""
        with suppress(StoreError):
            if isinstance(error, LimitError):
                self.desk.store.runs.release(run)
            else:
                self.desk.store.runs.fail(run, error)
            cost = error.spent.cost if isinstance(error.spent, Spent) else 0
            self.desk.store.items.fail(name, error, cost)

    def _find_cut_off(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for run in self.desk.store.runs.open_runs(""):
            item = run.options.get("item") if isinstance(run.options, dict) else None
            if isinstance(item, str):
                found[item] = run.id
        return found


def _recorded(row: Row) -> Json:
    """What is kept of a row that was answered; its place in the file is not."""
    return {
        "answer": row.answer,
        "delta": row.delta,
        "state": row.state,
        "warnings": list(row.warnings),
        "spent": record(row.spent),
    }


def _restored(given: Given, held: dict[str, Json]) -> Row:
    warnings = held.get("warnings")
    spent = revive(held.get("spent"))
    return Row(
        given,
        str(held.get("answer")),
        held.get("delta"),
        held.get("state"),
        tuple(map(str, warnings)) if isinstance(warnings, list) else (),
        spent=spent if isinstance(spent, Spent) else Spent(),
        kept=True,
    )
