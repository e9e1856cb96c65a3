"""The asyncio runtime: performs effects as tasks of one event loop."""

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

T = TypeVar("T")


class AsyncRuntime(BaseRuntime[AsyncModel]):
    """Runs programs on an event loop; handlers may be plain or asynchronous functions.

    Programs of a gather run as tasks, at most `width` at a time. Cancelling the task that awaits a run cancels its calls.
    """

    async def run(self, program: Program[T], journal: Journal | None = None) -> T:
        """Run a program to its value.

        Raises:
            TaiwaError: what the program raised; `spent` holds the usage of the run.
        """
        return (await self.run_result(program, journal)).value

    async def run_result(self, program: Program[T], journal: Journal | None = None) -> RunResult[T]:
        """Run a program to its value, usage and journal."""
        execution = self.execution(program, journal)
        async with aclosing(self._drive(execution, shows_text=False)) as ticks:
            async for _ in ticks:
                execution.events.clear()
        return RunResult(execution.result(), execution.ledger.spent, execution.journal)

    async def stream(
        self, program: Program[T], journal: Journal | None = None
    ) -> AsyncGenerator[TextDelta | Notice | RunResult[T]]:
        """Run a program; yield text and notices as they arrive, then `RunResult`. Closing the iterator cancels the run."""
        execution = self.execution(program, journal)
        async with aclosing(self._drive(execution, shows_text=True)) as ticks:
            async for _ in ticks:
                while execution.events:
                    yield execution.events.popleft()
        while execution.events:
            yield execution.events.popleft()
        yield RunResult(execution.result(), execution.ledger.spent, execution.journal)

    async def _drive(self, execution: Execution[T], *, shows_text: bool) -> AsyncGenerator[None]:
        tasks: dict[asyncio.Task[None], PendingEffect] = {}
        waiting: list[PendingEffect] = []
        ticks = asyncio.Event()
        try:
            while not execution.done:
                if execution.events:
                    yield
                waiting += execution.take_pending()
                if (
                    len(waiting) == 1
                    and not tasks
                    and self._needs_no_task(execution, waiting[0], shows_text=shows_text)
                ):
                    await self._perform(execution, waiting.pop(), ticks)
                    ticks.clear()
                    continue
                while waiting and len(tasks) < self.width:
                    pending = waiting.pop(0)
                    if pending.active:
                        tasks[asyncio.create_task(self._perform(execution, pending, ticks))] = pending
                await self._settle_some(execution, tasks, ticks)
                yield
        finally:
            execution.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _needs_no_task(self, execution: Execution[T], pending: PendingEffect, *, shows_text: bool) -> bool:
        """Say whether an effect can be awaited directly: a task costs as much as a small effect, but time limits and streams
        require one.
        """
        return execution.ledger.limits.seconds is None and not (shows_text and self.streams(pending.effect))

    async def _settle_some(
        self, execution: Execution[T], tasks: dict[asyncio.Task[None], PendingEffect], ticks: asyncio.Event
    ) -> None:
        """Wait until a task ends or a chunk arrives; then remove finished and cancelled tasks."""
        try:
            async with asyncio.timeout(execution.ledger.remaining()):
                await ticks.wait()
        except TimeoutError:
            execution.expire()
        ticks.clear()
        for task, pending in list(tasks.items()):
            if not task.done() and not pending.active:
                task.cancel()
            if task.done():
                del tasks[task]
                if pending.active or not task.cancelled():
                    task.result()

    async def _perform(self, execution: Execution[T], pending: PendingEffect, ticks: asyncio.Event) -> None:
        try:
            try:
                settle = await self._result(execution, pending, ticks)
            except Exception as error:
                settle = partial(execution.fail, pending, error)
            settle()
        finally:
            ticks.set()

    async def _result(
        self, execution: Execution[T], pending: PendingEffect, ticks: asyncio.Event
    ) -> Callable[[], None]:
        effect = pending.effect
        if self.streams(effect):
            await self._complete(execution, pending, effect.request, ticks)
            return partial(execution.complete, pending)
        answer: Any = self.handler(effect)(effect)
        return partial(execution.answer, pending, await answer if inspect.isawaitable(answer) else answer)

    async def _complete(
        self, execution: Execution[T], pending: PendingEffect, request: Request, ticks: asyncio.Event
    ) -> None:
        pending.begin()
        chunks = self.require_model().astream(request)
        try:
            async for chunk in chunks:
                wants_more = execution.feed(pending, chunk)
                ticks.set()
                if not wants_more:
                    break
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
