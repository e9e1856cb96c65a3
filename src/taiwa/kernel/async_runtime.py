"""The asyncio runtime: performs effects as tasks of one event loop."""

import asyncio
import inspect
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar, cast

from taiwa.kernel.approval import apply_decision
from taiwa.kernel.effects import CallTool, Complete, Effect, Program, Retrieve
from taiwa.kernel.errors import ToolErrorBoundary
from taiwa.kernel.execution import Execution, Journal, PendingEffect, RunResult
from taiwa.kernel.messages import ShownEvent
from taiwa.kernel.runtime import AsyncModel, AsyncTool, BaseRuntime, check_result, drop_events, start_in_thread
from taiwa.kernel.shares import current_share

T = TypeVar("T")
R = TypeVar("R")
UNREAD: deque[ShownEvent] = deque(maxlen=0)
"""The events of all executions whose events are not read; an empty deque takes 760 bytes."""


@dataclass(eq=False)
class AsyncRuntime(BaseRuntime[AsyncModel]):
    """Runs programs on an event loop; handlers may be plain or asynchronous functions.

    Programs of a gather run as tasks, at most `width` at a time. Cancelling the task that awaits a run cancels its calls.
    Blocking work runs in threads and does not block the loop: plain tools and retrievers, and the steps of a program whose
    journal has a sink, with its observers, unless `finish` may make them at once. Plain handlers of the caller run on the
    loop, because they may use its objects; write a handler that blocks as an `async def` that awaits `asyncio.to_thread`.

    Once `stop` is set, a streaming answer ends with the text so far. With `whole`, an answer that nothing cuts is requested in one
    piece, because nothing reads it before its end.
    """

    stop: "Stop | None" = None
    whole: bool = False

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
                drop_events(execution)
        drop_events(execution)
        return execution.run_result()

    async def stream(
        self, program: Program[T], journal: Journal | None = None
    ) -> AsyncGenerator[ShownEvent | RunResult[T]]:
        """Run a program; yield text and notices as they arrive, then `RunResult`. Closing the iterator cancels the run."""
        run = await self._begin(program, journal)
        execution = run.execution
        async with aclosing(self._drive(run, shows_text=True)) as ticks:
            async for _ in ticks:
                while execution.events:
                    yield execution.events.popleft()
        while execution.events:
            yield execution.events.popleft()
        yield execution.run_result()

    async def finish(
        self, execution: Execution[T], end: Callable[[RunResult[T]], None], now: "Now | None" = None
    ) -> None:
        """Perform the effects of an execution that was begun by `make_step`; `end` gets the result within the last step.

        Raises:
            BaseException: as `run`, and what `end` raised.
        """
        run = _Run(execution, blocks=True, end=end, now=now)
        execution.events = UNREAD
        if execution.done:
            await run.step(int)
        async with aclosing(self._drive(run, shows_text=False)) as ticks:
            async for _ in ticks:
                pass

    async def _begin(self, program: Program[T], journal: Journal | None) -> "_Run[T]":
        if journal is None or journal.sink is None:
            return _Run(self.execution(program, journal), blocks=False)
        return _Run(await finish_in_thread(partial(self.execution, program, journal)), blocks=True)

    async def _drive(self, run: "_Run[T]", *, shows_text: bool) -> AsyncGenerator[None]:
        execution = run.execution
        tasks: dict[asyncio.Task[None], PendingEffect] = {}
        waiting: list[PendingEffect] = []
        ticks: asyncio.Event | None = None  # one takes 700 bytes, and an answer that is awaited directly needs none
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
                    await self._perform(run, waiting.pop(), None)
                    continue
                ticks = ticks or asyncio.Event()
                while waiting and len(tasks) < self.width:
                    pending = waiting.pop(0)
                    if pending.active:
                        tasks[asyncio.create_task(self._perform(run, pending, ticks))] = pending
                await self._settle_some(run, tasks, ticks)
                yield
        finally:
            if not execution.done:
                # What ends early has no result to commit with its last step.
                run.end = None
                await run.step(execution.close)
            # After the programs are closed, so that no answer of a cancelled call is sent into one.
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.gather(*tasks, return_exceptions=True)

    def _needs_no_task(self, execution: Execution[T], pending: PendingEffect, *, shows_text: bool) -> bool:
        """Return whether an effect can be awaited directly: a task costs as much as a small effect, but time limits and
        streams need one.
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
                # A task that was cancelled with its group is expected; any other exception is a fault of the runtime.
                if pending.active or not task.cancelled():
                    task.result()

    async def _perform(self, run: "_Run[T]", pending: PendingEffect, ticks: asyncio.Event | None) -> None:
        effect, settle = pending.sent, partial(run.execution.complete, pending)
        try:
            try:
                if self.streams(effect):
                    await self._complete(run, pending, effect, ticks)
                else:
                    settle = partial(run.execution.answer, pending, await self._answer(effect))
            except Exception as error:
                settle = partial(run.execution.fail, pending, error)
            await run.step(settle)
        finally:
            if ticks is not None:
                ticks.set()

    async def _answer(self, effect: Effect[Any]) -> object:
        handler = self.handler(effect)
        if isinstance(effect, CallTool) and CallTool not in self.handlers:
            await self._approve(effect)
            handler = cast("Callable[[Effect[Any]], Any]", self.call_approved)
            tool = self._tools.get(effect.name)
            if isinstance(tool, AsyncTool):
                with ToolErrorBoundary(effect.name):
                    return check_result(effect.name, await tool.acall(effect.arguments))
        if isinstance(effect, CallTool | Retrieve) and type(effect) not in self.handlers:
            in_thread = start_in_thread(partial(handler, effect), type(effect).__name__)
            return await asyncio.wrap_future(in_thread)
        answer: Any = handler(effect)
        return await answer if inspect.isawaitable(answer) else answer

    async def _approve(self, effect: CallTool) -> None:
        """Wait for the decision on a call; a plain function is called in a thread.

        Raises:
            ToolError, ApprovalRequiredError: as `apply_decision`.
        """
        request = self.approval_request(effect)
        if request is None:
            return
        if inspect.iscoroutinefunction(self.approve):
            decision: Any = self.decide(request)
        else:
            decision = await asyncio.wrap_future(start_in_thread(partial(self.decide_in_turn, request), "approve"))
        decision = await decision if inspect.isawaitable(decision) else decision
        apply_decision(request, decision)

    async def _complete(
        self, run: "_Run[T]", pending: PendingEffect, effect: Complete, ticks: asyncio.Event | None
    ) -> None:
        pending.begin()
        request = effect.request
        if self.whole and pending.is_uncut:
            request = replace(request, hints=replace(request.hints, whole=True))
        chunks = self.require_model().astream(request)
        here, stop = asyncio.current_task(), self.stop
        assert here is not None
        if stop is not None:
            stop.cancels(here)
        try:
            async for chunk in chunks:
                if run.steps:
                    wants_more = await run.read(partial(run.execution.feed, pending, chunk))
                else:  # chunks are frequent, and usually no step is in progress
                    wants_more = run.execution.feed(pending, chunk)
                if ticks is not None and run.execution.events:
                    ticks.set()
                if not wants_more:
                    break
        except asyncio.CancelledError:
            # What `uncancel` leaves is a cancellation by the caller, which goes on.
            if stop is None or not stop.is_set or here.uncancel():
                raise
        finally:
            if stop is not None:
                stop.spares(here)
            # The connection is closed now, not when the generator is collected.
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


class Stop:
    """Ends streaming answers, each with the text so far; used on their event loop."""

    __slots__ = ("_tasks", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._tasks: list[asyncio.Task[Any]] = []  # few, and an empty set takes four times as much

    def set(self) -> None:
        """End all answers, current and future ones."""
        self.is_set = True
        for task in self._tasks:
            task.cancel()

    def cancels(self, task: "asyncio.Task[Any]") -> None:
        """Cancel a task once this is set, until `spares`."""
        self._tasks.append(task)
        if self.is_set:
            task.cancel()

    def spares(self, task: "asyncio.Task[Any]") -> None:
        """Stop cancelling a task."""
        self._tasks.remove(task)


Now: TypeAlias = Callable[[], AbstractContextManager[bool]]
"""Yields whether what may block can be done at once, without waiting for others."""


async def make_step(call: Callable[[], R], now: Now | None) -> R:
    """Make a short call that may block at once if it would not wait, since a thread can cost as much as the call, else in
    a thread; it completes even if its caller is cancelled.
    """
    if now is not None:
        outcome: Outcome[R] = Outcome()
        with now() as at_once:
            if at_once:
                outcome.make(call)
        if outcome.made:
            return outcome.result()
    return await finish_in_thread(call)


async def finish_in_thread(call: Callable[[], R]) -> R:
    """Make a call that may block and must complete in a thread; a cancelled caller waits for its end."""
    return await step_threads().start(call).end()


class Outcome(Generic[R]):
    """The result or exception of a call, to be read later; a `concurrent.futures` future is larger."""

    __slots__ = ("_error", "_value", "made")
    _value: R

    def __init__(self) -> None:
        self.made = False
        self._error: BaseException | None = None

    def make(self, call: Callable[[], R]) -> None:
        """Make the call."""
        try:
            self._value = call()
        except BaseException as error:
            self._error = error
        self.made = True

    def fail(self, error: BaseException) -> None:
        """Let `result` raise an exception, whatever the call returned."""
        self._error, self.made = error, True

    def result(self) -> R:
        """Return the result of the call, or raise its exception.

        Raises:
            BaseException: the exception of the call.
        """
        if self._error is not None:
            raise self._error
        return self._value


MOST_STEP_THREADS = 8


class _Step(Generic[R]):
    """A call that a thread makes for a task."""

    __slots__ = ("_call", "_context", "_error", "_loop", "_made", "_value", "_waiter")
    _value: R

    def __init__(self, call: Callable[[], R]) -> None:
        self._call, self._context = call, copy_context()
        self._loop = asyncio.get_running_loop()
        self._made = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def make(self) -> None:
        """Make the call, in a thread."""
        try:
            self._value = self._context.run(self._call)
        except BaseException as error:
            self._error = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._made = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def end(self) -> R:
        """Wait for the end of the call, even if the task is cancelled; return its result or raise its exception."""
        cancelled: asyncio.CancelledError | None = None
        while not self._made:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError as error:
                cancelled = error
        try:
            if cancelled is not None:
                raise cancelled
            if self._error is not None:
                raise self._error
        finally:
            cancelled = self._error = None  # their tracebacks hold this frame
        return self._value


class StepThreads:
    """Daemon threads that perform short steps; each performs many, because starting a thread costs more than a step.

    Threads of `asyncio.to_thread` would keep the program from exiting if a step never ends.
    """

    def __init__(self) -> None:
        self._steps: SimpleQueue[_Step[Any]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def start(self, call: Callable[[], R]) -> _Step[R]:
        """Start a call with the context of the caller, after the calls that wait for a thread."""
        step = _Step(call)
        self._steps.put(step)
        if self._count < MOST_STEP_THREADS and not self._idle.acquire(blocking=False):
            self._count += 1
            threading.Thread(target=self._make_steps, name="step", daemon=True).start()
        return step

    def _make_steps(self) -> None:
        while True:
            self._steps.get().make()
            self._idle.release()


_threads: dict[int, StepThreads] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.clear)


def step_threads() -> StepThreads:
    """Return the threads of this process for the current share; a forked child does not inherit its parent's."""
    share = current_share()
    return _threads.get(share) or _threads.setdefault(share, StepThreads())


@dataclass(eq=False, slots=True)
class _Run(Generic[T]):
    """An execution advanced by one thread at a time; `blocks` says whether a step may block, `now` when it would not.

    `end` gets the result in the last step. `steps` says whether a step is in progress.
    """

    execution: Execution[T]
    blocks: bool
    end: Callable[[RunResult[T]], None] | None = None
    now: Now | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    steps: bool = False

    async def step(self, call: Callable[[], R]) -> R:
        """Advance the execution."""
        if not self.blocks:
            return call()
        async with self.lock:
            self.steps = True
            try:
                return await make_step(partial(self._made, call), self.now)
            finally:
                self.steps = False

    def _made(self, call: Callable[[], R]) -> R:
        made = call()
        if self.end is not None and self.execution.done:
            self.end(self.execution.run_result())
        return made

    async def read(self, call: Callable[[], R]) -> R:
        """Make a call that does not block, between two steps."""
        if not self.steps:
            return call()
        async with self.lock:
            return call()
