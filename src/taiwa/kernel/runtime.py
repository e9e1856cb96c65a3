"""Protocols of models, tools, retrievers; handler lookup; the blocking runtime."""

import queue
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, cast, runtime_checkable

from taiwa.kernel.effects import CallTool, Complete, Effect, GetCapabilities, GetEvidence, GetPrice, Program, Retrieve
from taiwa.kernel.errors import ConfigError, ToolError, ToolErrorBoundary, UnknownToolError
from taiwa.kernel.execution import Execution, Observer, PendingEffect, RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Evidence,
    Message,
    Notice,
    Passage,
    Request,
    TextDelta,
    ToolResult,
    ToolSpec,
)
from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import Price, UsageLedger, UsageLimits

__all__ = [
    "AsyncModel",
    "BaseRuntime",
    "Handler",
    "Interrupts",
    "Model",
    "Retriever",
    "Runtime",
    "Tool",
    "answer_chunks",
]


class Model(Protocol):
    """A language model behind a blocking call."""

    @property
    def name(self) -> str:
        """The name a person would give it: `openai:gpt-x`, `http://127.0.0.1:8080/v1#qwen`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its server can do."""
        ...

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Answer in chunks, the last one `Finished`; closing the iterator cancels the call.

        Raises:
            ModelError: the call failed.
        """
        ...


class AsyncModel(Protocol):
    """The same model behind an asynchronous call."""

    @property
    def name(self) -> str:
        """As `Model.name`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """As `Model.capabilities`."""
        ...

    def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `Model.stream`; cancelling the task cancels the call."""
        ...


class Tool(Protocol):
    """Something a program can call by name."""

    @property
    def spec(self) -> ToolSpec:
        """How a model sees it."""
        ...

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Do it.

        Raises:
            ToolError: the arguments are wrong or the tool failed; this is what a model may read.
        """
        ...


@runtime_checkable
class Retriever(Protocol):
    """A source of passages."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages, best first."""
        ...


@runtime_checkable
class ContextualRetriever(Protocol):
    """A retriever that can weigh what was said before a query."""

    def after(self, history: tuple[Message, ...]) -> Retriever:
        """Return the retriever for what is said next."""
        ...


@runtime_checkable
class EvidenceSource(Protocol):
    """A retriever that can say how much there is on a query."""

    def evidence(self, query: str) -> Evidence:
        """Measure it."""
        ...


M = TypeVar("M")

T = TypeVar("T")

Handler: TypeAlias = Callable[[Any], Any]

Interrupts = Literal["raise", "keep"]


@dataclass(eq=False)
class BaseRuntime(Generic[M]):
    """The edges and limits of a run. A handler given for an effect class takes precedence over the edges.

    `width` bounds how many programs of a gather are performed at a time; `interrupts` says what a KeyboardInterrupt does
    to an answer that is streaming: `keep` ends it with what it has, `raise` ends the run.
    """

    model: M | None = None
    _: KW_ONLY
    tools: Iterable[Tool] = ()
    retriever: Retriever | None = None
    handlers: Mapping[type[Effect[Any]], Handler] = field(default_factory=dict[type[Effect[Any]], Handler])
    observers: Iterable[Observer] = ()
    limits: UsageLimits | None = None
    price: Price | None = None
    width: int = 16
    interrupts: Interrupts = "raise"

    def __post_init__(self) -> None:
        self.width = max(self.width, 1)
        self._tools = {tool.spec.name: tool for tool in self.tools}
        edges: dict[type[Effect[Any]], Handler] = {
            GetCapabilities: self._abilities,
            CallTool: self._call_tool,
            GetEvidence: self._measure,
            GetPrice: self._quote,
            Retrieve: self._retrieve,
        }
        self._handlers = edges | dict(self.handlers)
        self._observers = tuple(self.observers)

    def session(self, program: Program[T], journal: Journal | None) -> Execution[T]:
        """Begin a run."""
        name = str(getattr(self.model, "name", ""))
        return Execution(program, UsageLedger(self.limits or UsageLimits(), name, self.price), journal, self._observers)

    def streams(self, effect: Effect[Any]) -> TypeGuard[Complete]:
        """Say whether an effect is answered by the model's stream and not by a handler."""
        return isinstance(effect, Complete) and Complete not in self._handlers

    def handler(self, effect: Effect[Any]) -> Handler:
        """Find who answers an effect.

        Raises:
            ConfigError: nobody does.
        """
        found = self._handlers.get(type(effect))
        if found is None:
            raise ConfigError(f"nothing handles {type(effect).__name__}: give the runtime `handlers={{...}}` for it")
        return found

    def the_model(self) -> M:
        """Return the model.

        Raises:
            ConfigError: there is none.
        """
        if self.model is None:
            raise ConfigError("this program asks a model and the runtime has none: give `model=`")
        return self.model

    def _abilities(self, _: GetCapabilities) -> frozenset[Capability]:
        nothing: frozenset[Capability] = frozenset()
        return cast("frozenset[Capability]", getattr(self.the_model(), "capabilities", nothing))

    def _call_tool(self, effect: CallTool) -> ToolResult:
        tool = self._tools.get(effect.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownToolError(f"there is no tool {effect.name!r}", code="unknown_tool", hint=f"tools: {known}")
        with ToolErrorBoundary(effect.name):
            result = cast("object", tool.call(effect.arguments))  # foreign code: it may give anything
        if not isinstance(result, ToolResult):
            trace = f"{effect.name} gave a {type(result).__name__} and no ToolResult"
            raise ToolError(f"{effect.name} failed", code="internal", trace=trace)
        return result

    def _quote(self, effect: GetPrice) -> int | None:
        name = str(getattr(self.model, "name", ""))
        return None if self.price is None else self.price(name, effect.usage)

    def _retrieve(self, effect: Retrieve) -> tuple[Passage, ...]:
        return self._retriever_after(effect.history).find(effect.query, effect.k)

    def _measure(self, effect: GetEvidence) -> Evidence | None:
        retriever = self._retriever_after(effect.history)
        return retriever.evidence(effect.query) if isinstance(retriever, EvidenceSource) else None

    def _retriever_after(self, history: tuple[Message, ...]) -> Retriever:
        retriever = self.retriever
        if retriever is None:
            raise ConfigError("this program looks up passages and the runtime has no `retriever=`")
        return retriever.after(history) if history and isinstance(retriever, ContextualRetriever) else retriever


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

    def done(self, program: Program[T], journal: Journal | None = None) -> RunResult[T]:
        """As `run`, and return the bill and the journal with the value."""
        session = self.session(program, journal)
        for _ in self._drive(session):
            session.events.clear()
        return RunResult(session.result(), session.ledger.spent, session.journal)

    def stream(
        self, program: Program[T], journal: Journal | None = None
    ) -> Iterator[TextDelta | Notice | RunResult[T]]:
        """Run a program and give out what it says as it says it, last `RunResult`; closing the iterator stops the run."""
        session = self.session(program, journal)
        with closing(self._drive(session)) as ticks:
            for _ in ticks:
                while session.events:
                    yield session.events.popleft()
        while session.events:
            yield session.events.popleft()
        yield RunResult(session.result(), session.ledger.spent, session.journal)

    def _drive(self, session: Execution[T]) -> Generator[None]:
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

    def _perform(self, session: Execution[T], wish: PendingEffect) -> Iterator[None]:
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

    def _complete(self, session: Execution[T], wish: PendingEffect, request: Request) -> Iterator[None]:
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

    def __init__(self, runtime: Runtime, session: Execution[Any]) -> None:
        self._runtime = runtime
        self._session = session
        self._posts: queue.SimpleQueue[Posted] = queue.SimpleQueue()
        self._waiting: list[PendingEffect] = []
        self._running = 0

    @property
    def busy(self) -> bool:
        return self._running > 0

    def add(self, wishes: Iterable[PendingEffect]) -> None:
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

    def _work(self, wish: PendingEffect) -> None:
        session, post = self._session, self._posts.put
        try:
            settle = self._result(wish)
        except Exception as error:
            settle = partial(session.fail, wish, error)
        except BaseException as error:  # a handler that wants to exit: the run would wait for its answer for ever
            settle = partial(_raise, error)
        post((self._finish, (settle,)))

    def _result(self, wish: PendingEffect) -> Callable[[], None]:
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

    def _feed(self, wish: PendingEffect, chunk: Chunk) -> None:
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
