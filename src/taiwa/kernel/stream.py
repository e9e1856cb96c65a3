"""Streams: the events of an answer that is being written, and the result that they lead to."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Generic, Self, TypeVar

from taiwa.kernel.errors import InputError

E = TypeVar("E")
R = TypeVar("R")

CLOSED = "the stream was closed before its end, so it has no result"


class Stream(Generic[E, R]):
    """The events of an answer while it is written; `result` is what they lead to.

    Iterating yields events as they arrive. Closing the stream, or leaving its `with` block, cancels the call. It is made of a
    generator that yields the events and returns the result.
    """

    def __init__(self, events: Generator[E, None, R]) -> None:
        self._events = events
        self._results: list[R] = []
        self._open = True

    def __iter__(self) -> Iterator[E]:
        return self

    def __next__(self) -> E:
        try:
            return next(self._events)
        except StopIteration as end:
            if self._open:
                self._results.append(end.value)
                self._open = False
            raise StopIteration from None

    @property
    def result(self) -> R:
        """The result; waits for the end of the answer.

        Raises:
            InputError: the stream was closed before its end.
            TaiwaError: what the call raised.
        """
        for _ in self:
            pass
        if not self._results:
            raise InputError(CLOSED)
        return self._results[0]

    def close(self) -> None:
        """Cancel the call."""
        self._open = False
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Done(Generic[R]):
    """The last item of an asynchronous generator, which cannot return a value."""

    __slots__ = ("result",)

    def __init__(self, result: R) -> None:
        self.result = result


class AsyncStream(Generic[E, R]):
    """As `Stream`, on an event loop; `await stream.result()` waits for what the events lead to.

    It is made of an asynchronous generator that yields the events and then `Done(result)`.
    """

    def __init__(self, events: "AsyncGenerator[E | Done[R]]") -> None:
        self._events = events
        self._done: Done[R] | None = None

    def __aiter__(self) -> AsyncIterator[E]:
        return self

    async def __anext__(self) -> E:
        event = await anext(self._events)
        if not isinstance(event, Done):
            return event
        self._done = event
        await self._events.aclose()
        raise StopAsyncIteration

    async def result(self) -> R:
        """Wait for the end of the answer and return the result.

        Raises:
            InputError: the stream was closed before its end.
            TaiwaError: what the call raised.
        """
        async for _ in self:
            pass
        if self._done is None:
            raise InputError(CLOSED)
        return self._done.result

    async def aclose(self) -> None:
        """Cancel the call."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
