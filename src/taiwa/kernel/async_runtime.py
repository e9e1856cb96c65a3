"""The asynchronous driver: performs wishes as tasks of one event loop."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from taiwa.kernel.effects import Program
from taiwa.kernel.execution import Execution, PendingEffect, RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.messages import Notice, Request, TextDelta
from taiwa.kernel.runtime import AsyncModel, BaseRuntime

__all__ = ["AsyncRuntime"]


T = TypeVar("T")


class AsyncRuntime(BaseRuntime[AsyncModel]):
    """Runs programs on an event loop; handlers may be plain or asynchronous functions.

    Programs of a gather run as tasks, at most `width` at a time. Cancelling the task that awaits a run cancels its calls.
    """

    async def run(self, program: Program[T], journal: Journal | None = None) -> T:
        """Run a program to its value.

        Raises:
            TaiwaError: what the program raised; `spent` holds the bill.
        """
        return (await self.done(program, journal)).value

    async def done(self, program: Program[T], journal: Journal | None = None) -> RunResult[T]:
        """As `run`, and return the bill and the journal with the value."""
        session = self.session(program, journal)
        async with aclosing(self._drive(session, heard=False)) as ticks:
            async for _ in ticks:
                session.events.clear()
        return RunResult(session.result(), session.ledger.spent, session.journal)

    async def stream(
        self, program: Program[T], journal: Journal | None = None
    ) -> AsyncGenerator[TextDelta | Notice | RunResult[T]]:
        """Run a program and give out what it says as it says it, last `RunResult`; closing the iterator stops the run."""
        session = self.session(program, journal)
        async with aclosing(self._drive(session, heard=True)) as ticks:
            async for _ in ticks:
                while session.events:
                    yield session.events.popleft()
        while session.events:
            yield session.events.popleft()
        yield RunResult(session.result(), session.ledger.spent, session.journal)

    async def _drive(self, session: Execution[T], *, heard: bool) -> AsyncGenerator[None]:
        tasks: dict[asyncio.Task[None], PendingEffect] = {}
        waiting: list[PendingEffect] = []
        ticks = asyncio.Event()
        try:
            while not session.done:
                if session.events:
                    yield
                waiting += session.take()
                if len(waiting) == 1 and not tasks and self._needs_no_task(session, waiting[0], heard=heard):
                    await self._perform(session, waiting.pop(), ticks)
                    ticks.clear()
                    continue
                while waiting and len(tasks) < self.width:
                    wish = waiting.pop(0)
                    if wish.wanted:
                        tasks[asyncio.create_task(self._perform(session, wish, ticks))] = wish
                await self._settle_some(session, tasks, ticks)
                yield
        finally:
            session.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _needs_no_task(self, session: Execution[T], wish: PendingEffect, *, heard: bool) -> bool:
        """A task costs as much as the rest of a small effect; without one, nobody sees the time or the words pass."""
        return session.ledger.limits.seconds is None and not (heard and self.streams(wish.effect))

    async def _settle_some(
        self, session: Execution[T], tasks: dict[asyncio.Task[None], PendingEffect], ticks: asyncio.Event
    ) -> None:
        """Wait until a task ended or a chunk came; then drop what is over or no longer wanted."""
        try:
            async with asyncio.timeout(session.ledger.remaining()):
                await ticks.wait()
        except TimeoutError:
            session.expire()
        ticks.clear()
        for task, wish in list(tasks.items()):
            if not task.done() and not wish.wanted:
                task.cancel()
            if task.done():
                del tasks[task]
                if wish.wanted or not task.cancelled():
                    task.result()

    async def _perform(self, session: Execution[T], wish: PendingEffect, ticks: asyncio.Event) -> None:
        try:
            try:
                settle = await self._result(session, wish, ticks)
            except Exception as error:
                settle = partial(session.fail, wish, error)
            settle()
        finally:
            ticks.set()

    async def _result(self, session: Execution[T], wish: PendingEffect, ticks: asyncio.Event) -> Callable[[], None]:
        effect = wish.effect
        if self.streams(effect):
            await self._complete(session, wish, effect.request, ticks)
            return partial(session.complete, wish)
        answer: Any = self.handler(effect)(effect)
        return partial(session.answer, wish, await answer if inspect.isawaitable(answer) else answer)

    async def _complete(
        self, session: Execution[T], wish: PendingEffect, request: Request, ticks: asyncio.Event
    ) -> None:
        wish.begin()
        chunks = self.the_model().astream(request)
        try:
            async for chunk in chunks:
                going = session.feed(wish, chunk)
                ticks.set()
                if not going:
                    break
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
