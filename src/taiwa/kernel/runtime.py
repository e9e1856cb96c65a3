"""The protocols of models, tools and retrievers; how effects find their handlers; the blocking runtime; streams of events."""

import logging
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast, runtime_checkable

from taiwa.kernel.approval import ApprovalRequest, Approve, Decision, apply_decision, check_approve, needs_approval
from taiwa.kernel.effects import CallTool, Complete, Effect, GetCapabilities, Program, Retrieve
from taiwa.kernel.errors import ConfigError, InputError, ToolError, ToolErrorBoundary, UnknownToolError
from taiwa.kernel.execution import LIMIT_NOTICE, Execution, Journal, Observer, PendingEffect, RunResult
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Found,
    Message,
    Notice,
    Passage,
    Request,
    ShownEvent,
    ToolResult,
    ToolSpec,
)
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import NO_BILLING, Billing, Limits, UsageLedger, UsageLimits


class Model(Protocol):
    """A language model behind a blocking call."""

    @property
    def name(self) -> str:
        """The name that selects it: `openai:gpt-x`, `http://127.0.0.1:8080/v1#qwen`."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its server can do."""

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Complete in chunks, the last one `StreamEnd`; closing the iterator cancels the call.

        Raises:
            ModelError: the call failed.
        """


class AsyncModel(Protocol):
    """The same model behind an asynchronous call."""

    @property
    def name(self) -> str:
        """As `Model.name`."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """As `Model.capabilities`."""

    def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `Model.stream`; cancelling the task cancels the call."""


class AnyModel(Model, AsyncModel, Protocol):
    """A model with blocking and asynchronous calls."""


class Tool(Protocol):
    """A tool that programs call by name."""

    @property
    def spec(self) -> ToolSpec:
        """The specification for the model."""

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the tool.

        Raises:
            ToolError: the arguments are wrong or the tool failed; models may read the message.
        """


@runtime_checkable
class AsyncTool(Protocol):
    """A tool that an `AsyncRuntime` awaits on its event loop."""

    async def acall(self, arguments: Mapping[str, Json]) -> ToolResult:
        """As `Tool.call`."""


@runtime_checkable
class Retriever(Protocol):
    """A source of passages."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages, best first."""


@runtime_checkable
class ContextualRetriever(Protocol):
    """A retriever that can take the messages before a query into account."""

    def after(self, history: tuple[Message, ...]) -> Retriever:
        """Return the retriever for a query after these messages."""


@runtime_checkable
class MeasuringRetriever(Protocol):
    """A retriever that can measure the evidence on a query."""

    def find_with_evidence(self, query: str, k: int) -> Found:
        """Return at most k passages, best first, and the evidence."""


limits_logger, notices_logger = logging.getLogger("taiwa.limits"), logging.getLogger("taiwa.notices")

M = TypeVar("M")

T = TypeVar("T")

Handler: TypeAlias = Callable[[Any], Any]

Interrupts = Literal["raise", "keep"]


@dataclass(eq=False, kw_only=True)
class BaseRuntime(Generic[M]):
    """What both runtimes have: a model, tools, a retriever, handlers and limits. `handlers` take precedence.

    `approve` decides on calls of tools that need approval, one at a time; without it such a call ends the run with an
    `ApprovalRequiredError`. `width` limits the programs of a gather that run at a time.
    """

    model: M | None = field(default=None, kw_only=False)
    tools: Iterable[Tool] = ()
    retriever: Retriever | None = None
    handlers: Mapping[type[Effect[Any]], Handler] = field(default_factory=dict[type[Effect[Any]], Handler])
    observers: Iterable[Observer] = ()
    limits: UsageLimits | Limits | None = None
    billing: Billing = NO_BILLING
    approve: Approve | None = None
    width: int = 16

    def __post_init__(self) -> None:
        self.width = max(self.width, 1)
        check_approve(self.approve)
        self._tools = {tool.spec.name: tool for tool in self.tools}
        self._asking = threading.Lock()
        defaults: dict[type[Effect[Any]], Handler] = {
            GetCapabilities: self._capabilities,
            CallTool: self._call_tool,
            Retrieve: self._retrieve,
        }
        self._handlers = defaults | dict(self.handlers)
        self._observers = tuple(self.observers)

    def execution(self, program: Program[T], journal: Journal | None) -> Execution[T]:
        """Start a run."""
        limits = self.limits.usage_limits if isinstance(self.limits, Limits) else self.limits
        ledger = UsageLedger(limits or UsageLimits(), self._model_name, self.billing)
        return Execution(program, ledger, journal, self._observers)

    @property
    def _model_name(self) -> str:
        return str(getattr(self.model, "name", ""))

    def streams(self, effect: Effect[Any]) -> TypeGuard[Complete]:
        """Return whether an effect is answered by the stream of the model."""
        return isinstance(effect, Complete) and Complete not in self._handlers

    def handler(self, effect: Effect[Any]) -> Handler:
        """Find the handler of an effect.

        Raises:
            ConfigError: it has none.
        """
        found = self._handlers.get(type(effect))
        if found is None:
            hint = getattr(effect, "unhandled", Effect.unhandled)
            raise ConfigError(f"no handler for effect {type(effect).__name__}; {hint}")
        return found

    def require_model(self) -> M:
        """Return the model.

        Raises:
            ConfigError: the runtime has no model.
        """
        if self.model is None:
            raise ConfigError("the program requires a model; pass the runtime `model=`")
        return self.model

    def _capabilities(self, _: GetCapabilities) -> frozenset[Capability]:
        return cast("frozenset[Capability]", getattr(self.require_model(), "capabilities", frozenset[Capability]()))

    def _call_tool(self, effect: CallTool) -> ToolResult:
        request = self.approval_request(effect)
        if request is not None:
            decision = self.decide_in_turn(request)
            if not isinstance(decision, bool | None):
                getattr(decision, "close", int)()
                raise ConfigError("approve is asynchronous; run the program on an AsyncRuntime")
            apply_decision(request, decision)
        return self.call_approved(effect)

    def approval_request(self, effect: CallTool) -> ApprovalRequest | None:
        """Return the request for the approval of a call; None if it needs none."""
        tool = self._tools.get(effect.name)
        if tool is None or self.approve == "always" or not needs_approval(tool):
            return None
        return ApprovalRequest(effect.name, effect.arguments, tool.spec.description)

    def decide(self, request: ApprovalRequest) -> Decision | Awaitable[Decision]:
        """Return the decision on a call, or the promise of one."""
        if callable(self.approve):
            return self.approve(request)
        return False if self.approve == "never" else None

    def decide_in_turn(self, request: ApprovalRequest) -> Decision | Awaitable[Decision]:
        """As `decide`, one call at a time, as a user is asked."""
        with self._asking:
            return self.decide(request)

    def call_approved(self, effect: CallTool) -> ToolResult:
        """Call a tool.

        Raises:
            ToolError: as `Tool.call`, or the tool is unknown.
        """
        tool = self._tools.get(effect.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownToolError(f"unknown tool {effect.name!r}", code="unknown_tool", hint=f"tools: {known}")
        with ToolErrorBoundary(effect.name):
            return check_result(effect.name, tool.call(effect.arguments))

    def _retrieve(self, effect: Retrieve) -> Found:
        retriever = self.retriever
        if retriever is None:
            raise ConfigError("the program searches passages; pass the runtime `retriever=`")
        if effect.history and isinstance(retriever, ContextualRetriever):
            retriever = retriever.after(effect.history)
        if isinstance(retriever, MeasuringRetriever):
            return retriever.find_with_evidence(effect.query, effect.k)
        return Found(retriever.find(effect.query, effect.k))


@dataclass(eq=False, kw_only=True)
class Runtime(BaseRuntime[Model]):
    """Runs programs in the calling thread; programs of a gather run in at most `width` threads.

    `interrupts` says what a KeyboardInterrupt does to a streaming answer: `keep` ends the answer with the text so far, `raise` ends
    the run.
    """

    interrupts: Interrupts = "raise"

    def run(self, program: Program[T], journal: Journal | None = None) -> T:
        """Run a program to its value.

        Raises:
            TaiwaError: what the program raised; `spent` holds the usage of the run.
        """
        return self.run_result(program, journal).value

    def run_result(self, program: Program[T], journal: Journal | None = None) -> RunResult[T]:
        """Run a program to its value, usage and journal."""
        execution = self.execution(program, journal)
        for _ in self._drive(execution):
            drop_events(execution)
        drop_events(execution)
        return execution.run_result()

    def stream(self, program: Program[T], journal: Journal | None = None) -> Generator[ShownEvent | RunResult[T]]:
        """Run a program; yield text and notices as they arrive, then `RunResult`. Closing the iterator cancels the run."""
        execution = self.execution(program, journal)
        with closing(self._drive(execution)) as ticks:
            for _ in ticks:
                while execution.events:
                    yield execution.events.popleft()
        while execution.events:
            yield execution.events.popleft()
        yield execution.run_result()

    def _drive(self, execution: Execution[T]) -> Generator[None]:
        threads = _EffectThreads(self, execution)
        try:
            while not execution.done:
                if execution.events:
                    yield
                taken = execution.take_pending()
                if len(taken) == 1 and not threads.busy:
                    yield from self._perform(execution, taken[0])
                else:
                    threads.add(taken)
                    threads.settle_one()
                    yield
        finally:
            execution.close()

    def _perform(self, execution: Execution[T], pending: PendingEffect) -> Iterator[None]:
        effect = pending.sent
        if self.streams(effect):
            yield from self._complete(execution, pending, effect)
            return
        try:
            answer = self.handle(effect)
        except Exception as error:
            execution.fail(pending, error)
        else:
            execution.answer(pending, answer)

    def _complete(self, execution: Execution[T], pending: PendingEffect, effect: Complete) -> Iterator[None]:
        pending.begin()
        chunks = answer_chunks(self, effect)
        try:
            for chunk in chunks:
                wants_more = execution.feed(pending, chunk)
                yield
                if not wants_more:
                    break
        except KeyboardInterrupt:
            if self.interrupts != "keep":
                raise
        except Exception as error:
            execution.fail(pending, error)
            return
        finally:
            try:
                chunks.close()
            except KeyboardInterrupt:  # a second interrupt, or one after the answer has ended
                if self.interrupts != "keep":
                    raise
        execution.complete(pending)

    def handle(self, effect: Effect[Any]) -> object:
        """Answer one effect that is not streamed.

        Raises:
            ConfigError: its handler is asynchronous.
        """
        answer = self.handler(effect)(effect)
        if hasattr(answer, "__await__"):
            getattr(answer, "close", int)()
            raise ConfigError(
                f"the handler of {type(effect).__name__} is asynchronous; run the program on an AsyncRuntime"
            )
        return answer


def drop_events(execution: Execution[Any]) -> None:
    """Drop the events of a run that is not streamed; notices are logged, as a warning if a limit was exceeded or cut an answer, else
    for debugging, since they can quote texts.
    """
    while execution.events:
        event = execution.events.popleft()
        if isinstance(event, Notice):
            is_limit = event.code == LIMIT_NOTICE
            limits_logger.warning("%s", event.text) if is_limit else notices_logger.debug("%s", event.text)


def answer_chunks(runtime: Runtime, effect: Complete) -> Generator[Chunk]:
    """Yield the chunks of an answer.

    A KeyboardInterrupt raised inside, while waiting for the answer, ends only the answer: a SIGINT handler recognises this
    by the frames of this function, for any model.
    """
    chunks = runtime.require_model().stream(effect.request)
    try:
        yield from chunks
    finally:
        _close(chunks)


def check_result(name: str, result: object) -> ToolResult:
    """Return the result of a tool, which may be foreign code.

    Raises:
        ToolError: it is not a ToolResult.
    """
    if not isinstance(result, ToolResult):
        trace = f"{name} returned a {type(result).__name__}, not a ToolResult"
        raise ToolError(f"{name} failed", code="internal", trace=trace)
    return result


class _EffectThreads:
    """Performs effects in threads; their answers are delivered in the thread of the run."""

    def __init__(self, runtime: Runtime, execution: Execution[Any]) -> None:
        self._runtime = runtime
        self._execution = execution
        self._posts: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._waiting: list[PendingEffect] = []
        self._running = 0

    @property
    def busy(self) -> bool:
        return self._running > 0

    def add(self, taken: Iterable[PendingEffect]) -> None:
        self._waiting.extend(taken)
        while self._waiting and self._running < self._runtime.width:
            pending = self._waiting.pop(0)
            if pending.active:
                self._running += 1
                threading.Thread(target=self._work, args=(pending,), daemon=True).start()

    def settle_one(self) -> None:
        """Wait for one chunk, answer or error and report it to the execution."""
        left = self._execution.ledger.remaining()
        try:
            report = self._posts.get(timeout=None if left is None else max(left, 0.0))
        except queue.Empty:
            self._execution.expire()
        else:
            report()
        self.add(())

    def _work(self, pending: PendingEffect) -> None:
        execution, post = self._execution, self._posts.put
        try:
            settle = self._result(pending)
        except Exception as error:
            settle = partial(execution.fail, pending, error)
        except BaseException as error:  # a handler that exits: otherwise the run would wait forever for its answer
            settle = partial(_raise, error)
        post(partial(self._finish, settle))

    def _result(self, pending: PendingEffect) -> Callable[[], None]:
        effect = pending.sent
        if not self._runtime.streams(effect):
            return partial(self._execution.answer, pending, self._runtime.handle(effect))
        pending.begin()
        chunks = self._runtime.require_model().stream(effect.request)
        try:
            for chunk in chunks:
                self._posts.put(partial(self._feed, pending, chunk))
                if pending.is_complete:
                    break
        finally:
            _close(chunks)
        return partial(self._execution.complete, pending)

    def _feed(self, pending: PendingEffect, chunk: Chunk) -> None:
        try:
            self._execution.feed(pending, chunk)
        except Exception as error:
            self._execution.fail(pending, error)

    def _finish(self, settle: Callable[[], None]) -> None:
        self._running -= 1
        settle()


def _close(chunks: Iterator[Chunk] | None) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def _raise(error: BaseException) -> None:
    raise error


E = TypeVar("E")
R = TypeVar("R")

CLOSED = "the stream was closed before its end, so it has no result"


def start_in_thread(call: Callable[[], R], name: str) -> "Future[R]":
    """Start a call in a daemon thread of its own, with the context of the caller; the future gets its result or error.

    The threads of `concurrent.futures` and `asyncio.to_thread` would keep the program from exiting if a call never ends.
    """
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()  # a cancelled caller does not wait; the call runs to its end

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future


class Stream(Generic[E, R]):
    """The events of an answer while it streams; `result` is their outcome.

    Iterating yields events as they arrive. Closing the stream, or leaving its `with` block, cancels the call. It wraps a
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
    """As `Stream`, on an event loop; `await stream.result()` waits for the outcome.

    It wraps an asynchronous generator that yields the events and then `Done(result)`.
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
