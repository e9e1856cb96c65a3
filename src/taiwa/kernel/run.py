"""The blocking driver: performs wishes with plain calls, and with threads where a program gathers."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias, TypeVar

from taiwa.kernel.effects import Effect, Program
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.journal import Journal
from taiwa.kernel.protocols import Model
from taiwa.kernel.runtime import BaseRuntime
from taiwa.kernel.session import Done, Session, Wish
from taiwa.kernel.values import Chunk, Note, Request, TextDelta

__all__ = ["Runtime", "answer_chunks"]

T = TypeVar("T")
Posted: TypeAlias = tuple[Callable[..., object], tuple[object, ...]]


class Runtime(BaseRuntime[Model]):
    """Runs programs one after the other; programs of a gather run in at most `width` threads.

    With `interrupts="keep"` a KeyboardInterrupt ends the answer that is streaming and the program goes on with what
    it has; otherwise it ends the run.
    """

    def run(self, program: Program[T], journal: Journal | None = None) -> T:
        """Run a program to its value.

        Raises:
            TaiwaError: what the program raised; `spent` holds the bill.
        """
        return self.done(program, journal).value

    def done(self, program: Program[T], journal: Journal | None = None) -> Done[T]:
        """As `run`, and return the bill and the journal with the value."""
        session = self.session(program, journal)
        for _ in self._drive(session):
            session.events.clear()
        return Done(session.result(), session.ledger.spent, session.journal)

    def stream(self, program: Program[T], journal: Journal | None = None) -> Iterator[TextDelta | Note | Done[T]]:
        """Run a program and give out what it says as it says it, last `Done`; closing the iterator stops the run."""
        session = self.session(program, journal)
        with closing(self._drive(session)) as ticks:
            for _ in ticks:
                while session.events:
                    yield session.events.popleft()
        while session.events:
            yield session.events.popleft()
        yield Done(session.result(), session.ledger.spent, session.journal)

    def _drive(self, session: Session[T]) -> Generator[None]:
        side = _Side(self, session)
        try:
            while not session.done:
                if session.events:
                    yield
                wishes = session.take()
                if len(wishes) == 1 and not side.busy:
                    yield from self._perform(session, wishes[0])
                else:
                    side.add(wishes)
                    side.settle_one()
                    yield
        finally:
            session.close()

    def _perform(self, session: Session[T], wish: Wish) -> Iterator[None]:
        effect = wish.effect
        if self.streams(effect):
            yield from self._complete(session, wish, effect.request)
            return
        try:
            answer = self.handle(effect)
        except Exception as error:
            session.fail(wish, error)
        else:
            session.answer(wish, answer)

    def _complete(self, session: Session[T], wish: Wish, request: Request) -> Iterator[None]:
        wish.begin()
        chunks = answer_chunks(self, request)
        try:
            for chunk in chunks:
                going = session.feed(wish, chunk)
                yield
                if not going:
                    break
        except KeyboardInterrupt:
            if self.interrupts != "keep":
                raise
        except Exception as error:
            session.fail(wish, error)
            return
        finally:
            try:
                chunks.close()
            except KeyboardInterrupt:  # a second key, or one that came late: the answer has ended already
                if self.interrupts != "keep":
                    raise
        session.complete(wish)

    def handle(self, effect: Effect[Any]) -> object:
        """Answer one effect that is not streamed.

        Raises:
            ConfigError: its handler is asynchronous, and nobody here could await it.
        """
        answer = self.handler(effect)(effect)
        if hasattr(answer, "__await__"):
            getattr(answer, "close", int)()
            raise ConfigError(
                f"the handler of {type(effect).__name__} is asynchronous: run the program on an AsyncRuntime"
            )
        return answer


def answer_chunks(runtime: Runtime, request: Request) -> Generator[Chunk]:
    """Yield the chunks of an answer.

    A KeyboardInterrupt that is raised inside, while the answer is waited for, ends the answer and nothing else: a handler of
    SIGINT recognises that by the frames of this function, whatever the model behind it.
    """
    chunks = runtime.the_model().stream(request)
    try:
        yield from chunks
    finally:
        _close(chunks)


class _Side:
    """Wishes that run side by side, each in a thread; all answers come back to the thread of the run."""

    def __init__(self, runtime: Runtime, session: Session[Any]) -> None:
        self._runtime = runtime
        self._session = session
        self._posts: queue.SimpleQueue[Posted] = queue.SimpleQueue()
        self._waiting: list[Wish] = []
        self._running = 0

    @property
    def busy(self) -> bool:
        return self._running > 0

    def add(self, wishes: Iterable[Wish]) -> None:
        self._waiting.extend(wishes)
        while self._waiting and self._running < self._runtime.width:
            wish = self._waiting.pop(0)
            if wish.wanted:
                self._running += 1
                threading.Thread(target=self._work, args=(wish,), daemon=True).start()

    def settle_one(self) -> None:
        """Wait for one thing to happen and tell the session."""
        left = self._session.ledger.remaining()
        try:
            act, arguments = self._posts.get(timeout=None if left is None else max(left, 0.0))
        except queue.Empty:
            self._session.expire()
        else:
            act(*arguments)
        self.add(())

    def _work(self, wish: Wish) -> None:
        session, post = self._session, self._posts.put
        try:
            settle = self._result(wish)
        except Exception as error:
            settle = partial(session.fail, wish, error)
        except BaseException as error:  # a handler that wants to exit: the run would wait for its answer for ever
            settle = partial(_raise, error)
        post((self._finish, (settle,)))

    def _result(self, wish: Wish) -> Callable[[], None]:
        effect = wish.effect
        if not self._runtime.streams(effect):
            return partial(self._session.answer, wish, self._runtime.handle(effect))
        wish.begin()
        chunks = self._runtime.the_model().stream(effect.request)
        try:
            for chunk in chunks:
                self._posts.put((self._feed, (wish, chunk)))
                if wish.over:
                    break
        finally:
            _close(chunks)
        return partial(self._session.complete, wish)

    def _feed(self, wish: Wish, chunk: Chunk) -> None:
        try:
            self._session.feed(wish, chunk)
        except Exception as error:
            self._session.fail(wish, error)

    def _finish(self, settle: Callable[[], None]) -> None:
        self._running -= 1
        settle()


def _close(chunks: Iterator[Chunk] | None) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def _raise(error: BaseException) -> None:
    raise error
