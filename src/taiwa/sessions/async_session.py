"""Sessions on an event loop."""

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Self, TypeAlias, TypeVar

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.state import Change, State
from taiwa.kernel.async_runtime import AsyncRuntime, Outcome, Stop, finish_in_thread
from taiwa.kernel.attachments import AttachmentSource
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.execution import Execution, Observer, RunResult
from taiwa.kernel.runtime import AsyncStream, Done
from taiwa.kernel.usage_limits import RunUsage
from taiwa.sessions.commit_turn import ActiveTurn, TurnInput, TurnResult
from taiwa.sessions.replay import ReplayedNode
from taiwa.sessions.repository import ValueOrigin
from taiwa.sessions.session import BaseSession, TurnEvent, TurnValue

T = TypeVar("T")
AsyncTurnStream: TypeAlias = AsyncStream[TurnEvent, TurnResult]


class AsyncSession(BaseSession):
    """As `Session`, on an event loop: what waits for a model or for the store is a coroutine.

    Its client closes what it uses; it is a context manager as `Session` is.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def say(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> TurnResult:
        """As `Session.say`."""
        return await self._run(lambda: self._say(text, attachments))

    async def retry(self, *, prefix: str = "") -> TurnResult:
        """As `Session.retry`."""
        return await self._run(lambda: self._retry(prefix))

    async def edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> TurnResult:
        """As `Session.edit`."""
        return await self._run(lambda: self._edit(text, turn, attachments))

    async def resume(self) -> TurnResult | None:
        """As `Session.resume`."""
        turn = await to_thread(self._resume)
        return None if turn is None else await self._run(lambda: turn)

    def stream(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> "AsyncTurnStream":
        """As `Session.stream`."""
        return AsyncStream(self._events(lambda: self._say(text, attachments)))

    def stream_turn(self, turn_input: TurnInput) -> "AsyncTurnStream":
        """Complete a turn that is described in full, with the events of `stream`."""
        return AsyncStream(self._events(lambda: self._begin(turn_input)))

    async def perform(
        self, turn_input: TurnInput | None, observer: Observer, stop: Stop | None = None
    ) -> TurnResult | None:
        """Complete a turn that is described in full, or without one as `resume`; `observer` sees what its programs do, in any thread.

        Once `stop` is set, the answer ends with the text that it has, and the turn is committed.
        """
        if turn_input is not None:
            return await self._run(lambda: self._begin(turn_input), stop, (observer,))
        turn = await to_thread(self._resume)
        return None if turn is None else await self._run(lambda: turn, stop, (observer,))

    def stream_retry(self) -> "AsyncTurnStream":
        """As `Session.stream_retry`."""
        return AsyncStream(self._events(self._retry))

    def stream_edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> "AsyncTurnStream":
        """As `Session.stream_edit`."""
        return AsyncStream(self._events(lambda: self._edit(text, turn, attachments)))

    async def stream_resume(self) -> "AsyncTurnStream | None":
        """As `Session.stream_resume`."""
        turn = await to_thread(self._resume)
        return None if turn is None else AsyncStream(self._events(lambda: turn))

    async def undo(self, turns: int = 1) -> Conversation:
        """As `Session.undo`."""
        return await to_thread(self._undo, turns)

    async def redo(self, turns: int = 1) -> Conversation:
        """As `Session.redo`."""
        return await to_thread(self._redo, turns)

    async def fork(self, name: str) -> "AsyncSession":
        """As `Session.fork`."""
        return await to_thread(self._fork, name)

    async def set_state(self, values: State) -> Conversation:
        """As `Session.set_state`."""
        return await to_thread(self._set_state, values)

    async def change_app(self, app: App) -> Conversation:
        """As `Session.change_app`."""
        return await to_thread(self._change_app, app)

    async def diff(self, other: "BaseSession | str") -> tuple[Change, ...]:
        """As `Session.diff`."""
        return await to_thread(self._diff, other)

    async def why(self, path: str) -> ValueOrigin:
        """As `Session.why`."""
        return await to_thread(self._why, path)

    async def replay(self) -> "tuple[ReplayedNode, ...]":
        """As `Session.replay`."""
        return await to_thread(self._replay)

    async def export(self) -> str:
        """As `Session.export`."""
        return await to_thread(self._export)

    async def _run(
        self, begin: Callable[[], ActiveTurn], stop: Stop | None = None, observers: tuple[Observer, ...] = ()
    ) -> TurnResult:
        """Complete a turn in two steps: one up to the call of the model, one from its answer to the commit."""
        turns: list[ActiveTurn] = []
        settled: Outcome[TurnResult] = Outcome()

        def start() -> tuple[AsyncRuntime, Execution[TurnValue]]:
            turns.append(turn := begin())
            runtime = self._runtime(turn, stop, observers)
            return runtime, runtime.execution(turn.program, turn.journal)

        def settle(done: RunResult[TurnValue]) -> None:
            settled.make(lambda: self._settle(turns[0], done))

        try:
            async with self._record_failure(turns):
                runtime, execution = await self._begin_in_thread(start, turns)
                await runtime.finish(execution, settle)
        except asyncio.CancelledError:
            if not settled.made:
                raise
        return settled.result()  # a turn that is committed while its task is cancelled is not taken back

    async def _begin_in_thread(self, begin: Callable[[], T], turns: list[ActiveTurn]) -> T:
        """Begin a turn, which is added to the list, without blocking the event loop; a caller that is cancelled leaves no turn open."""
        try:
            return await finish_in_thread(begin)
        except asyncio.CancelledError:
            for turn in turns:
                await finish_in_thread(partial(self.repository.store.runs.end, turn.run, "abandoned"))
            raise

    @asynccontextmanager
    async def _record_failure(self, turns: list[ActiveTurn]) -> AsyncGenerator[None]:
        """Record a failure of a turn that was begun in a thread, and count what it cost."""
        try:
            yield
        except BaseException as error:
            for turn in turns:
                await finish_in_thread(partial(turn.fail, error))
            if isinstance(error, TaiwaError) and isinstance(error.spent, RunUsage):
                self.spent = self.spent + error.spent
            raise
        finally:
            for turn in turns:
                if turn.resources is not None:
                    turn.resources.close()

    async def _events(self, begin: Callable[[], ActiveTurn]) -> "AsyncGenerator[TurnEvent | Done[TurnResult]]":
        turns: list[ActiveTurn] = []
        await self._begin_in_thread(lambda: turns.append(begin()), turns)
        turn = turns[0]
        done: list[RunResult[TurnValue]] = []
        # Closed here and not by the garbage collector, so that closing the iterator cancels the call.
        async with (
            self._record_failure(turns),
            aclosing(self._runtime(turn).stream(turn.program, turn.journal)) as events,
        ):
            async for event in events:
                if isinstance(event, RunResult):
                    done.append(event)
                else:
                    yield event
        result = await finish_in_thread(lambda: self._settle(turn, done[0]))
        yield result
        yield Done(result)

    def _runtime(
        self, turn: ActiveTurn, stop: Stop | None = None, observers: tuple[Observer, ...] = ()
    ) -> AsyncRuntime:
        options = self._runtime_options(turn)
        options["observers"] = (*options.get("observers", ()), *observers)
        return AsyncRuntime(self.priced_model.model, stop=stop, **options)
