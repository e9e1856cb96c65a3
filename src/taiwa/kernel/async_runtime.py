"""The asyncio runtime: performs effects as tasks of one event loop."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from taiwa.kernel.effects import CallTool, GetEvidence, Program, Retrieve
from taiwa.kernel.errors import ToolErrorBoundary
from taiwa.kernel.execution import Execution, PendingEffect, RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.messages import Notice, Request, TextDelta, ToolResult
from taiwa.kernel.runtime import AsyncModel, AsyncTool, BaseRuntime, check_result, start_in_thread

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class AsyncRuntime(BaseRuntime[AsyncModel]):
    """Runs programs on an event loop; handlers may be plain or asynchronous functions.

    Programs of a gather run as tasks, at most `width` at a time. Cancelling the task that awaits a run cancels its calls. What
    may block runs in threads, so that the loop goes on: plain tools and retrievers, and the steps of a program whose journal has a
    sink, with its observers. Plain handlers of the caller run on the loop, whose futures and windows they may touch; one that
    blocks is an `async def` that awaits `asyncio.to_thread`.

    Once `stop` is set, an answer that is being streamed ends with the text that it has.
    """

    stop: asyncio.Event | None = None

    async def run(self, program: Program[T], journal: Journal | None = None) -> T:
        """Run a program to its value.

        Raises:
            TaiwaError: what the program raised; `spent` holds the usage of the run.
        """
        return (await self.run_result(program, journal)).value

    async def run_result(self, program: Program[T], journal: Journal | None = None) -> RunResult[T]:
        """Run a program to its value, usage and journal."""
        run = await self._begin(program, journal)
        execution = run.execution
        async with aclosing(self._drive(run, shows_text=False)) as ticks:
            async for _ in ticks:
                execution.events.clear()
        return RunResult(execution.result(), execution.ledger.spent, execution.journal)

    async def stream(
        self, program: Program[T], journal: Journal | None = None
    ) -> AsyncGenerator[TextDelta | Notice | RunResult[T]]:
        """Run a program; yield text and notices as they arrive, then `RunResult`. Closing the iterator cancels the run."""
        run = await self._begin(program, journal)
        execution = run.execution
        async with aclosing(self._drive(run, shows_text=True)) as ticks:
            async for _ in ticks:
                while execution.events:
                    yield execution.events.popleft()
        while execution.events:
            yield execution.events.popleft()
        yield RunResult(execution.result(), execution.ledger.spent, execution.journal)

    async def _begin(self, program: Program[T], journal: Journal | None) -> "_Run[T]":
        if journal is None or journal.sink is None:
            return _Run(self.execution(program, journal), blocks=False)
        return _Run(await finish_in_thread(partial(self.execution, program, journal)), blocks=True)

    async def _drive(self, run: "_Run[T]", *, shows_text: bool) -> AsyncGenerator[None]:
        execution = run.execution
        tasks: dict[asyncio.Task[None], PendingEffect] = {}
        waiting: list[PendingEffect] = []
        ticks = asyncio.Event()
        try:
            while not execution.done:
                if execution.events:
                    yield
                waiting += await run.read(execution.take_pending)
                if (
                    len(waiting) == 1
                    and not tasks
                    and self._needs_no_task(execution, waiting[0], shows_text=shows_text)
                ):
                    await self._perform(run, waiting.pop(), ticks)
                    ticks.clear()
                    continue
                while waiting and len(tasks) < self.width:
                    pending = waiting.pop(0)
                    if pending.active:
                        tasks[asyncio.create_task(self._perform(run, pending, ticks))] = pending
                await self._settle_some(run, tasks, ticks)
                yield
        finally:
            await run.step(execution.close)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _needs_no_task(self, execution: Execution[T], pending: PendingEffect, *, shows_text: bool) -> bool:
        """Say whether an effect can be awaited directly: a task costs as much as a small effect, but time limits and streams
        require one.
        """
        return execution.ledger.limits.seconds is None and not (shows_text and self.streams(pending.effect))

    async def _settle_some(
        self, run: "_Run[T]", tasks: dict[asyncio.Task[None], PendingEffect], ticks: asyncio.Event
    ) -> None:
        """Wait until a task ends or a chunk arrives; then remove finished and cancelled tasks."""
        seconds = run.execution.ledger.remaining()
        try:
            if seconds is None:
                await ticks.wait()
            else:
                async with asyncio.timeout(seconds):
                    await ticks.wait()
        except TimeoutError:
            await run.step(run.execution.expire)
        ticks.clear()
        for task, pending in list(tasks.items()):
            if not task.done() and not pending.active:
                task.cancel()
            if task.done():
                del tasks[task]
                if pending.active or not task.cancelled():
                    task.result()

    async def _perform(self, run: "_Run[T]", pending: PendingEffect, ticks: asyncio.Event) -> None:
        try:
            try:
                settle = await self._result(run, pending, ticks)
            except Exception as error:
                settle = partial(run.execution.fail, pending, error)
            await run.step(settle)
        finally:
            ticks.set()

    async def _result(self, run: "_Run[T]", pending: PendingEffect, ticks: asyncio.Event) -> Callable[[], None]:
        effect, execution = pending.effect, run.execution
        if self.streams(effect):
            await self._complete(run, pending, effect.request, ticks)
            return partial(execution.complete, pending)
        handler = self.handler(effect)
        if isinstance(effect, CallTool) and CallTool not in self.handlers:
            tool = self._tools.get(effect.name)
            if isinstance(tool, AsyncTool):
                return partial(execution.answer, pending, await self._acall_tool(effect, tool))
        if isinstance(effect, CallTool | Retrieve | GetEvidence) and type(effect) not in self.handlers:
            in_thread = start_in_thread(partial(handler, effect), type(effect).__name__)
            return partial(execution.answer, pending, await asyncio.wrap_future(in_thread))
        answer: Any = handler(effect)
        return partial(execution.answer, pending, await answer if inspect.isawaitable(answer) else answer)

    async def _acall_tool(self, effect: CallTool, tool: AsyncTool) -> ToolResult:
        with ToolErrorBoundary(effect.name):
            return check_result(effect.name, await tool.acall(effect.arguments))

    async def _complete(self, run: "_Run[T]", pending: PendingEffect, request: Request, ticks: asyncio.Event) -> None:
        pending.begin()
        chunks = self.require_model().astream(request)
        stopping = self.stop and asyncio.create_task(_cancel_on(self.stop, asyncio.current_task()))
        try:
            async for chunk in chunks:
                wants_more = await run.read(partial(run.execution.feed, pending, chunk))
                ticks.set()
                if not wants_more:
                    break
        except asyncio.CancelledError:
            here = asyncio.current_task()
            if self.stop is None or not self.stop.is_set() or here is None or here.uncancel():
                raise
        finally:
            if stopping:
                stopping.cancel()
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


async def _cancel_on(event: asyncio.Event, task: "asyncio.Task[Any] | None") -> None:
    await event.wait()
    if task is not None:
        task.cancel()


async def finish_in_thread(call: Callable[[], R]) -> R:
    """Make a call that may block, and must not be left half done, in a thread; a caller that is cancelled waits for its end."""
    future = asyncio.wrap_future(start_in_thread(call, "step"))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait((future,))
        raise


@dataclass(eq=False, slots=True)
class _Run(Generic[T]):
    """An execution that is moved on by one thread at a time; `blocks` says whether that may block."""

    execution: Execution[T]
    blocks: bool
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def step(self, call: Callable[[], R]) -> R:
        """Move the execution on."""
        if not self.blocks:
            return call()
        async with self.lock:
            return await finish_in_thread(call)

    async def read(self, call: Callable[[], R]) -> R:
        """Make a call that does not block, between two steps."""
        if not self.blocks or not self.lock.locked():
            return call()
        async with self.lock:
            return call()
