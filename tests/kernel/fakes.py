"""Models, clocks and tools for tests of the kernel, and one interface to both runtimes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeVar

from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import CallTool, Complete, Effect, Program, perform
from taiwa.kernel.execution import Execution, Journal, RunResult
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Notice,
    Request,
    Response,
    StreamEnd,
    TextDelta,
    ToolResult,
    Usage,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import value
from taiwa.kernel.usage_limits import UsageLedger

T = TypeVar("T")
Kind = Literal["blocking", "asynchronous"]
StreamEvent = TextDelta | Notice | RunResult[Any]


@value(tag="double")
class Double(Effect[int]):
    """An effect of our own."""

    number: int


def ask(text: str) -> Program[str]:
    """Ask the model and return its words."""
    response = yield from perform(Complete(Request((user(text),))))
    return response.text


def call(name: str, **arguments: str) -> Program[ToolResult]:
    """Call a tool."""
    return (yield from perform(CallTool(name, arguments)))


def respond(text: str) -> Program[Response]:
    """Ask the model and return its whole response."""
    return (yield from perform(Complete(Request((user(text),)))))


@dataclass
class Echo:
    """A model that answers `<text>!`, fails where the text says so, and remembers what was opened and closed."""

    usage: Usage | None = field(default_factory=lambda: Usage(1, 1))
    name: str = "echo"
    chunk: int = 100
    finish: bool = True
    on_chunk: Callable[[], object] = lambda: None
    capabilities: frozenset[Capability] = frozenset({"stop"})
    asked: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])
    open_now: int = 0
    open_most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Answer in chunks."""
        text = self._begin(request)
        try:
            yield from self._chunks(text)
        finally:
            self._end(text)

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `stream`; other tasks run between two chunks."""
        text = self._begin(request)
        try:
            for chunk in self._chunks(text):
                await asyncio.sleep(0)
                yield chunk
        finally:
            self._end(text)

    def _begin(self, request: Request) -> str:
        text = request.messages[-1].text
        with self.lock:
            self.asked.append(text)
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
        return text

    def _end(self, text: str) -> None:
        with self.lock:
            self.open_now -= 1
            self.closed.append(text)

    def _chunks(self, text: str) -> Iterator[Chunk]:
        answer = f"{text}!"
        for start in range(0, len(answer), self.chunk):
            yield TextDelta(answer[start : start + self.chunk])
            self.on_chunk()
        if "fail" in text:
            raise ValueError(text)
        if self.finish:
            yield StreamEnd(usage=self.usage, model=self.name)


@dataclass
class Clock:
    """Seconds that pass only when a test says so."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


class _Timed:
    """Lets a test set the clock of a run."""

    clock: Clock

    def execution(self, program: Program[T], journal: Journal | None) -> Execution[T]:
        limits, billing, observers = self.limits, self.billing, self.observers  # type: ignore[attr-defined]
        name = str(getattr(self.model, "name", ""))  # type: ignore[attr-defined]
        return Execution(program, UsageLedger(limits, name, billing, self.clock), journal, observers)


class _TimedRuntime(_Timed, Runtime):
    pass


class _TimedAsyncRuntime(_Timed, AsyncRuntime):
    pass


@dataclass(frozen=True)
class Drive:
    """Runs programs on one of the drivers; edges are the keyword arguments of `Runtime`."""

    kind: Kind

    def run(self, program: Program[T], journal: Journal | None = None, clock: Clock | None = None, **edges: Any) -> T:
        """Run a program to its value."""
        if self.kind == "blocking":
            return self._blocking(clock, edges).run(program, journal)
        return asyncio.run(self._asynchronous(clock, edges).run(program, journal))

    def run_result(self, program: Program[T], **edges: Any) -> RunResult[T]:
        """Run a program to its value, its bill and its journal."""
        if self.kind == "blocking":
            return self._blocking(None, edges).run_result(program)
        return asyncio.run(self._asynchronous(None, edges).run_result(program))

    def stream(
        self, program: Program[Any], journal: Journal | None = None, most: int | None = None, **edges: Any
    ) -> list[StreamEvent]:
        """Stream a program and return what was streamed; after `most` events the iterator is closed."""
        if self.kind == "blocking":
            with closing(self._blocking(None, edges).stream(program, journal)) as events:  # type: ignore[type-var]
                return list(islice(events, most))
        return asyncio.run(self._stream(self._asynchronous(None, edges), program, journal, most))

    async def _stream(
        self, runtime: AsyncRuntime, program: Program[Any], journal: Journal | None, most: int | None
    ) -> list[StreamEvent]:
        streamed: list[StreamEvent] = []
        async with aclosing(runtime.stream(program, journal)) as events:  # type: ignore[type-var]
            async for event in events:
                streamed.append(event)
                if len(streamed) == most:
                    break
        return streamed

    def _blocking(self, clock: Clock | None, edges: dict[str, Any]) -> Runtime:
        if clock is None:
            return Runtime(**edges)
        runtime = _TimedRuntime(**edges)
        runtime.clock = clock
        return runtime

    def _asynchronous(self, clock: Clock | None, edges: dict[str, Any]) -> AsyncRuntime:
        if clock is None:
            return AsyncRuntime(**edges)
        runtime = _TimedAsyncRuntime(**edges)
        runtime.clock = clock
        return runtime


def shown(streamed: Iterable[object]) -> str:
    """All words that a person saw."""
    return "".join(event.text for event in streamed if isinstance(event, TextDelta))
