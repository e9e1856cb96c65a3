"""Sessions: conversations of a store with a model, blocking (`Session`) and on an event loop (`AsyncSession`)."""

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node, change_app
from taiwa.conversation.state import Change, State, diff_states, parse_path
from taiwa.flows.turn import Reply
from taiwa.kernel.approval import Approve, check_approve
from taiwa.kernel.async_runtime import AsyncRuntime, Now, Outcome, Stop, finish_in_thread, make_step
from taiwa.kernel.attachments import AttachmentSource, read_attachments
from taiwa.kernel.errors import (
    ConfigError,
    ConflictError,
    InputError,
    NotFoundError,
    StoreError,
    check_argument,
    describe,
)
from taiwa.kernel.execution import Execution, Observer, RunResult
from taiwa.kernel.messages import Message, ShownEvent, ToolResult, assistant, result_files, user
from taiwa.kernel.runtime import AnyModel, AsyncStream, Done, Runtime, Stream
from taiwa.kernel.usage_limits import Billing, Prices, RunUsage, UsageLimits, currency_units, usage_of
from taiwa.kernel.wording import Wording
from taiwa.models.price_table import usable_table
from taiwa.models.providers import by_full_name, find_prices
from taiwa.sessions.commit_turn import (
    ActiveTurn,
    CommitTarget,
    PricedModel,
    RuntimeOptions,
    TurnInput,
    TurnOptions,
    TurnResult,
    V,
    begin_turn,
    has_moved_since,
    is_of_program,
    request_counter,
    resume_turn,
    state_table,
)
from taiwa.sessions.repository import Repository, ValueOrigin
from taiwa.settings import NoModelError, Settings
from taiwa.store import Run, Store

if TYPE_CHECKING:
    from taiwa.flows.program_turn import TurnProgram
    from taiwa.sessions.replay import ReplayedNode

TurnEvent: TypeAlias = ShownEvent | TurnResult[V]
TurnStream: TypeAlias = Stream[TurnEvent[V], TurnResult[V]]

TurnValue: TypeAlias = tuple[Reply, Conversation]


class Closing(Protocol):
    """The resources that a session closes."""

    def close(self) -> None:
        """Close the resource."""
        ...


class BaseSession(Generic[V]):
    """The common part of `Session` and `AsyncSession`: one session of a store with a model.

    A new session without a name takes a free one when its first turn begins; until then `name` is provisional.
    """

    def __init__(
        self,
        repository: Repository,
        name: str,
        conversation: Conversation,
        priced_model: PricedModel,
        *,
        options: TurnOptions | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.repository = repository
        self.name = name or repository.new_name(conversation.app)
        self._requested_name = name
        self.conversation = conversation
        self.priced_model = priced_model
        self.options = options or TurnOptions()
        repository.add_tools(self.options.tools)
        repository.add_types(self.options.types)
        self.spent = RunUsage()
        """The usage of this object's turns, including failed ones."""
        self._observers = tuple(observers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, app {self.app.name!r}, turn {self.conversation.count})"

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the place of the session, and its state as a table."""
        place = f"**{self.name or self.app.name}** · {self.app.name} · turn {self.conversation.count}"
        return "\n\n".join(filter(None, (place, state_table(self.state))))

    @property
    def state(self) -> State:
        """The dialogue state after the last turn."""
        return self.conversation.state

    @property
    def app(self) -> App:
        """The app of the conversation."""
        return self.conversation.app

    @property
    def turns(self) -> tuple[Node, ...]:
        """All turns, oldest first: each has `user`, `answer` and `delta`."""
        tip = self.conversation.stored_tip
        path = () if tip is None else self.repository.store.nodes.path(tip)
        return tuple(node for _, node in path if node.kind == "turn")[::-1]

    @property
    def messages(self) -> tuple[Message, ...]:
        """All turns as messages, with their attachments."""
        fill = self.repository.store.blobs.fill
        return tuple(
            message
            for turn in self.turns
            for message in (user(turn.user or "", fill(turn.attachments)), assistant(turn.answer or ""))
        )

    @property
    def cost(self) -> Decimal | None:
        """The cost of all turns of this session, including failed ones, in currency units; None if a price is unknown."""
        lines = self.repository.store.costs("session", self.name)
        return currency_units(lines[0].cost_nano if lines else 0)

    def last_turn_text(self, turns: int = 1) -> str:
        """Return the user text of a turn, counted from the end; 1 is the last turn.

        Raises:
            InputError: the conversation has fewer turns.
        """
        return self.repository.turn(self._ensure_begun(), turns)[1].user or ""

    def _say(self, text: str, attachments: Iterable[AttachmentSource]) -> ActiveTurn:
        return self._begin(TurnInput(self.conversation, text, attachments=read_attachments(attachments)))

    def _run_program(self, program: "TurnProgram", text: str, approve: Approve | None) -> ActiveTurn:
        if not callable(program):
            raise InputError(f"give the function of a program, not {describe(program)}")
        check_approve(approve)
        turn_input = TurnInput(self.conversation, text, program=program)
        for run in self.repository.store.runs.open_runs(self.name):
            if is_of_program(run, program) and run.text == text and run.base == turn_input.follows:
                return self._resume_run(run, approve, program)
        return self._begin(turn_input, approve)

    def edit_input(
        self,
        text: str,
        turn: int,
        attachments: Iterable[AttachmentSource] | None = None,
        reason: str = "edit",
        prefix: str = "",
    ) -> TurnInput:
        """Return the turn that replaces the turn of a number; negative numbers count from the end.

        With the same text the messages of the turn stay. `prefix` is prefilled.

        Raises:
            InputError: the conversation has no such turn.
        """
        check_argument("turn", turn, int, "the number of a turn")
        tip, count = self._ensure_begun(), self.conversation.count
        if not (1 <= turn <= count or -count <= turn <= -1):
            raise NotFoundError(f"turn {turn} not found; the conversation has {count}")
        back = count - turn + 1 if turn > 0 else -turn
        base = self.repository.checkout(self.repository.before_turn(tip, back))
        if self.conversation.new_nodes:  # the app was changed for this turn
            base = change_app(base, self.app)
        edited = self.repository.turn(tip, back)[1]
        files = edited.attachments if attachments is None else read_attachments(attachments)
        messages = edited.parts.messages[:-1] if text == (edited.user or "") else ()
        return TurnInput(base, text, CommitTarget(reason, tip), files, messages, prefix=prefix)

    def _retry(self, prefix: str = "") -> ActiveTurn:
        check_argument("prefix", prefix, str, "a str")
        return self._begin(self.edit_input(self.last_turn_text(), -1, reason="retry", prefix=prefix))

    def _resume(self, approve: Approve | None = None) -> ActiveTurn | None:
        check_approve(approve)
        runs = [
            run
            for run in self.repository.store.runs.open_runs(self.name)
            if not is_of_program(run) or not has_moved_since(self.repository, run)  # a program cannot make a branch
        ]
        if not runs:
            return None
        return self._resume_run(runs[-1], approve)

    def _resume_run(self, run: Run, approve: Approve | None, program: "TurnProgram | None" = None) -> ActiveTurn:
        turn = resume_turn(self.repository, run, self.priced_model, approve or self.options.approve, program)
        self.name = turn.session
        return turn

    def _ensure_begun(self) -> str:
        """Return the tip of the conversation.

        Raises:
            InputError: it has none yet.
        """
        if self.conversation.stored_tip is None:
            raise InputError("there is no turn yet")
        return self.conversation.stored_tip

    def _check_out(self, tip: str) -> Conversation:
        self.conversation = self.repository.checkout(tip)
        return self.conversation

    def _ensure_stored(self) -> None:
        if self.conversation.new_nodes:
            with self.repository.store.transaction():
                self.name = self._requested_name or self.repository.new_name(self.app)
                expected = self.conversation.stored_tip
                reason = "begin" if expected is None else f"app {self.app.name}"
                self.conversation = self.repository.commit(
                    self.name, self.conversation, expected=expected, reason=reason
                )

    def _begin(self, turn_input: TurnInput, approve: Approve | None = None) -> ActiveTurn:
        self._limits()
        name = self._requested_name if turn_input.follows is None else self.name
        options = self.options if approve is None else replace(self.options, approve=approve)
        turn = begin_turn(self.repository, name, turn_input, self.priced_model, options)
        self.name = turn.session
        return turn

    def _limits(self) -> UsageLimits:
        """Return the limits of the next turn; that of the cost includes the turns before it.

        Raises:
            ConfigError: a call of unknown usage was made without a limit, so that of the cost cannot be checked.
        """
        limits = self.options.limits or self.app.answer_options.limits or UsageLimits()
        limits = limits if self.repository.limits is None else limits.under(self.repository.limits)
        if limits.cost is not None and self.spent.max_cost is None:
            name = self.priced_model.model.name
            raise ConfigError(f"{name} did not report the usage of a call, so the cost limit cannot be checked")
        return limits

    def _runtime_options(self, turn: ActiveTurn) -> RuntimeOptions:
        turn.partial.rest = request_counter(self.repository, turn.run, self.priced_model)
        observers: tuple[Observer, ...] = (*self._observers, turn.partial)
        limits = self._limits()
        budgets = self.repository.budgets(turn.run, limits)
        billing = Billing(self.priced_model.price, budgets, self.spent.max_cost or 0)
        return {**turn.runtime_options, "observers": observers, "limits": limits, "billing": billing}

    def _settle(self, turn: ActiveTurn, done: "RunResult[TurnValue]") -> TurnResult[V]:
        self.spent = self.spent + done.spent
        reply, after = done.value
        calls = tuple(entry.answer for entry in done.journal.entries if isinstance(entry.answer, ToolResult))
        result, self.conversation = turn.commit(reply, after, done.spent, calls)
        return result

    @contextmanager
    def _record_failure(self, turn: ActiveTurn) -> Generator[None]:
        """Record a failure of the turn, and count its cost; an interrupted turn can be resumed."""
        try:
            yield
        except BaseException as error:
            turn.fail(error)
            self.spent = self.spent + usage_of(error)
            raise
        finally:
            if turn.resources is not None:
                turn.resources.close()


S = TypeVar("S", bound=BaseSession[Any])


class Session(BaseSession[V]):
    """A conversation of a store with a model. A failed turn leaves the conversation unchanged.

    >>> import taiwa
    >>> session = taiwa.open(model=taiwa.scripted_model("Hello!", "Again."), store=":memory:")
    >>> session.say("Hi").text, session.retry().text, len(session.turns)
    ('Hello!', 'Again.', 1)
    """

    client: Closing | None = None
    """The client owned by this session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what `taiwa.open` opened for this session: the connections of its model, and the store."""
        if self.client is not None:
            self.client.close()

    def say(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> TurnResult[V]:
        """Complete one turn. Attachments are paths of images, PDFs and text files, bytes, or `Attachment` objects.

        Raises:
            InputError: the text is empty without attachments, or an attachment cannot be read.
            TaiwaError: the turn failed; the conversation is unchanged, and paid calls stay in the store.
        """
        return self._run(self._say(text, attachments))

    def run(self, program: "TurnProgram", text: str, *, approve: Approve | None = None) -> TurnResult[V]:
        """Let a program make one turn: a generator function of the conversation and the text, which yields effects.

        It returns a `Reply`, a text, or a value of the type of the app's answers. A program that asks the user by `AskUser` ends
        the turn with its question; run it again with the answer, and it continues without calling anything twice. One that was
        interrupted, or waits for an approval, continues when it is run again with the same text. `approve` is as of `resume`.

        Raises:
            ConfigError: the program raised, yielded something that is not an effect, or did not return a reply.
            TaiwaError: as `say`.
        """
        return self._run(self._run_program(program, text, approve))

    def retry(self, *, prefix: str = "") -> TurnResult[V]:
        """Repeat the last turn from the same state; the new answer replaces the old one.

        The model continues `prefix`; the answer includes it.

        Raises:
            InputError: there is no turn yet, or the app searches documents and supports no prefix. UnsupportedError: the
            model calls functions.
        """
        return self._run(self._retry(prefix))

    def edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> TurnResult[V]:
        """Replace the text of a turn (1 is the first, -1 the last) and answer it; the old branch stays in the log.

        The attachments of the turn stay unless others are given.

        Raises:
            InputError: the conversation has no such turn.
        """
        return self._run(self._begin(self.edit_input(text, turn, attachments)))

    def resume(self, *, approve: Approve | None = None) -> TurnResult[V] | None:
        """Finish an interrupted turn of this session, or one that waits for an approval; None without one.

        `approve` decides on calls of tools that need approval, in place of that of the session.
        """
        turn = self._resume(approve)
        return None if turn is None else self._run(turn)

    def stream(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> TurnStream[V]:
        """Complete one turn; yield the answer as it arrives, then the committed turn, which is the `result`.

        Of a typed answer a `PartialValue` is yielded whenever more of it is certain.
        """
        return Stream(self._events(lambda: self._say(text, attachments)))

    def stream_run(self, program: "TurnProgram", text: str, *, approve: Approve | None = None) -> TurnStream[V]:
        """As `run`, with the events of `stream`."""
        return Stream(self._events(lambda: self._run_program(program, text, approve)))

    def stream_retry(self) -> TurnStream[V]:
        """As `retry`, with the events of `stream`."""
        return Stream(self._events(self._retry))

    def stream_edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> TurnStream[V]:
        """As `edit`, with the events of `stream`."""
        return Stream(self._events(lambda: self._begin(self.edit_input(text, turn, attachments))))

    def stream_resume(self, *, approve: Approve | None = None) -> Stream[TurnEvent[V], TurnResult[V] | None]:
        """As `resume`, with the events of `stream`."""
        return Stream(self._resumed(approve))

    # An `AsyncSession` runs what follows in a thread, with itself.

    def undo(self: BaseSession, turns: int = 1) -> Conversation:
        """Go back; message, state and window move together."""
        check_argument("turns", turns, int, "a whole number")
        self._ensure_begun()
        return self._check_out(self.repository.store.undo(self.name, turns))

    def redo(self: BaseSession, turns: int = 1) -> Conversation:
        """Go forward to where `undo` started."""
        check_argument("turns", turns, int, "a whole number")
        self._ensure_begun()
        return self._check_out(self.repository.store.redo(self.name, turns))

    def fork(self: S, name: str) -> S:
        """Continue from here under a second name; the branches are independent."""
        check_argument("name", name, str, "a name")
        self._ensure_stored()
        self.repository.fork(self.conversation.tip, name, self.name)
        options, observers = self.options, self._observers
        return type(self)(
            self.repository, name, self.conversation, self.priced_model, options=options, observers=observers
        )

    def set_state(self: BaseSession, values: State) -> Conversation:
        """Set values of the state by hand, as a node of its own."""
        self._ensure_stored()
        self.conversation = self.repository.set_state(self.name, values)
        return self.conversation

    def change_app(self: BaseSession, app: str | App) -> Conversation:
        """Continue with another or an edited app, or the app of that name or path; values that fit its fields are kept."""
        app = load_app(app).with_params({}) if isinstance(app, str) else app
        self._ensure_stored()
        self.conversation = self.repository.change_app(self.name, app)
        return self.conversation

    def diff(self: BaseSession, other: "BaseSession | str") -> tuple[Change, ...]:
        """Return what differs in the state of another session or revision."""
        check_argument("other", other, (str, BaseSession), "a session or a revision")
        then = other.conversation if isinstance(other, BaseSession) else self.repository.at(other)
        return tuple(diff_states(dict(self.state), dict(then.state)))

    def why(self: BaseSession, path: str) -> ValueOrigin:
        """Return the node that set a value of the state last, such as `items.1`.

        Raises:
            InputError: the state never had a value there.
        """
        check_argument("path", path, str, "a path such as items.1")
        self._ensure_stored()
        return self.repository.origin(self.conversation.tip, parse_path(path))

    def replay(self: BaseSession) -> "tuple[ReplayedNode, ...]":
        """Replay every turn from its records, without a call; `difference` says where one differs."""
        from taiwa.sessions.replay import replay_history

        return tuple(replay_history(self.repository, self.conversation.tip)) if self.conversation.count else ()

    def export(self: BaseSession) -> str:
        """Return the conversation as JSONL, which `taiwa import` reads."""
        self._ensure_stored()
        return "".join(f"{line}\n" for line in self.repository.store.export(self.name))

    def _run(self, turn: ActiveTurn) -> TurnResult[V]:
        with self._record_failure(turn):
            done = self._runtime(turn).run_result(turn.program, turn.journal)
        return self._settle(turn, done)

    def _resumed(self, approve: Approve | None) -> Generator[TurnEvent[V], None, TurnResult[V] | None]:
        turn = self._resume(approve)
        return None if turn is None else (yield from self._events(lambda: turn))

    def _events(self, begin: Callable[[], ActiveTurn]) -> Generator[TurnEvent[V], None, TurnResult[V]]:
        turn = begin()
        done: list[RunResult[TurnValue]] = []
        with self._record_failure(turn):
            for event in self._runtime(turn).stream(turn.program, turn.journal):
                if isinstance(event, RunResult):
                    done.append(event)
                else:
                    yield event
        result = self._settle(turn, done[0])
        yield result
        return result

    def _runtime(self, turn: ActiveTurn) -> Runtime:
        return Runtime(self.priced_model.model, interrupts=self.options.interrupts, **self._runtime_options(turn))


# --- on an event loop -------------------------------------------------------------------------------------------------

T = TypeVar("T")
AsyncTurnStream: TypeAlias = AsyncStream[TurnEvent[V], TurnResult[V]]


class AsyncSession(BaseSession[V]):
    """As `Session`, on an event loop: methods that wait for a model or the store are coroutines.

    Its client closes its resources; it is a context manager like `Session`.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def say(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> TurnResult[V]:
        """As `Session.say`."""
        return await self._run(lambda: self._say(text, attachments))

    async def run(self, program: "TurnProgram", text: str, *, approve: Approve | None = None) -> TurnResult[V]:
        """As `Session.run`."""
        return await self._run(lambda: self._run_program(program, text, approve))

    async def retry(self, *, prefix: str = "") -> TurnResult[V]:
        """As `Session.retry`."""
        return await self._run(lambda: self._retry(prefix))

    async def edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> TurnResult[V]:
        """As `Session.edit`."""
        return await self._run(lambda: self._begin(self.edit_input(text, turn, attachments)))

    async def resume(self, *, approve: Approve | None = None) -> TurnResult[V] | None:
        """As `Session.resume`."""
        turn = await to_thread(self._resume, approve)
        return None if turn is None else await self._run(lambda: turn)

    def stream(self, text: str, attachments: Iterable[AttachmentSource] = ()) -> "AsyncTurnStream[V]":
        """As `Session.stream`."""
        return AsyncStream(self._events(lambda: self._say(text, attachments)))

    def stream_turn(self, turn_input: TurnInput) -> "AsyncTurnStream[V]":
        """Complete a fully described turn, with the events of `stream`."""
        return AsyncStream(self._events(lambda: self._begin(turn_input)))

    async def perform(
        self, turn_input: TurnInput | None, observer: Observer, stop: Stop | None = None
    ) -> TurnResult[V] | None:
        """Complete a fully described turn, or without one as `resume`; `observer` gets the events of its programs, in any
        thread.

        Once `stop` is set, the answer ends with the text so far, and the turn is committed.
        """
        if turn_input is not None:
            now = None if self._observers or not writes_little(turn_input) else self.repository.store.transaction_now
            return await self._run(lambda: self._begin(turn_input), stop, (observer,), now)
        turn = await to_thread(self._resume)
        return None if turn is None else await self._run(lambda: turn, stop, (observer,))

    def stream_run(self, program: "TurnProgram", text: str, *, approve: Approve | None = None) -> "AsyncTurnStream[V]":
        """As `Session.stream_run`."""
        return AsyncStream(self._events(lambda: self._run_program(program, text, approve)))

    def stream_retry(self) -> "AsyncTurnStream[V]":
        """As `Session.stream_retry`."""
        return AsyncStream(self._events(self._retry))

    def stream_edit(
        self, text: str, *, turn: int = -1, attachments: Iterable[AttachmentSource] | None = None
    ) -> "AsyncTurnStream[V]":
        """As `Session.stream_edit`."""
        return AsyncStream(self._events(lambda: self._begin(self.edit_input(text, turn, attachments))))

    def stream_resume(self, *, approve: Approve | None = None) -> AsyncStream[TurnEvent[V], TurnResult[V] | None]:
        """As `Session.stream_resume`."""
        return AsyncStream(self._resumed(approve))

    async def undo(self, turns: int = 1) -> Conversation:
        """As `Session.undo`."""
        return await to_thread(Session.undo, self, turns)

    async def redo(self, turns: int = 1) -> Conversation:
        """As `Session.redo`."""
        return await to_thread(Session.redo, self, turns)

    async def fork(self, name: str) -> "AsyncSession[V]":
        """As `Session.fork`."""
        return await to_thread(Session.fork, self, name)

    async def set_state(self, values: State) -> Conversation:
        """As `Session.set_state`."""
        return await to_thread(Session.set_state, self, values)

    async def change_app(self, app: str | App) -> Conversation:
        """As `Session.change_app`."""
        return await to_thread(Session.change_app, self, app)

    async def diff(self, other: "BaseSession | str") -> tuple[Change, ...]:
        """As `Session.diff`."""
        return await to_thread(Session.diff, self, other)

    async def why(self, path: str) -> ValueOrigin:
        """As `Session.why`."""
        return await to_thread(Session.why, self, path)

    async def replay(self) -> "tuple[ReplayedNode, ...]":
        """As `Session.replay`."""
        return await to_thread(Session.replay, self)

    async def export(self) -> str:
        """As `Session.export`."""
        return await to_thread(Session.export, self)

    async def _run(
        self,
        begin: Callable[[], ActiveTurn],
        stop: Stop | None = None,
        observers: tuple[Observer, ...] = (),
        now: Now | None = None,
    ) -> TurnResult[V]:
        """Complete a turn in two steps: up to the model call, and from its answer to the commit."""
        turns: list[ActiveTurn] = []
        settled: Outcome[TurnResult[V]] = Outcome()
        before = self.conversation

        def start() -> "tuple[AsyncRuntime, Execution[TurnValue]]":
            turns.append(turn := begin())
            runtime = self._runtime(turn, stop, observers)
            return runtime, runtime.execution(turn.program, turn.journal)

        def settle(done: "RunResult[TurnValue]") -> None:
            settled.make(lambda: self._settle(turns[0], done))

        try:
            async with self._record_failures(turns):
                runtime, execution = await self._begin_turn(start, turns, now)
                try:
                    await runtime.finish(execution, settle, now)
                except StoreError as error:  # the turn was not committed, even if it was settled
                    self.conversation = before
                    settled.fail(error)
                    raise
        except asyncio.CancelledError:
            if not settled.made:
                raise
        return settled.result()  # a turn committed while its task is cancelled is not reverted

    async def _begin_turn(self, begin: Callable[[], T], turns: list[ActiveTurn], now: Now | None = None) -> T:
        """Begin a turn without blocking the event loop, and append it to the list; a cancelled caller leaves no turn open."""
        try:
            return await make_step(begin, now)
        except asyncio.CancelledError:
            for turn in turns:
                await finish_in_thread(partial(self.repository.store.runs.end, turn.run, "abandoned"))
            raise

    @asynccontextmanager
    async def _record_failures(self, turns: list[ActiveTurn]) -> AsyncGenerator[None]:
        """Record a failure of a turn begun in a thread, and count its cost."""
        try:
            yield
        except BaseException as error:
            for turn in turns:
                await finish_in_thread(partial(turn.fail, error))
            self.spent = self.spent + usage_of(error)
            raise
        finally:
            for turn in turns:
                if turn.resources is not None:
                    turn.resources.close()

    async def _resumed(self, approve: Approve | None) -> "AsyncGenerator[TurnEvent[V] | Done[TurnResult[V] | None]]":
        turn = await to_thread(self._resume, approve)
        if turn is None:
            yield Done(None)
            return
        async with aclosing(self._events(lambda: turn)) as events:
            async for event in events:
                yield Done(event.result) if isinstance(event, Done) else event

    async def _events(self, begin: Callable[[], ActiveTurn]) -> "AsyncGenerator[TurnEvent[V] | Done[TurnResult[V]]]":
        turns: list[ActiveTurn] = []
        await self._begin_turn(lambda: turns.append(begin()), turns)
        turn = turns[0]
        done: list[RunResult[TurnValue]] = []
        # Closed here rather than by the garbage collector, so that closing the iterator cancels the call.
        async with (
            self._record_failures(turns),
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
        return AsyncRuntime(self.priced_model.model, stop=stop, whole=self.options.whole, **options)


# --- opening ----------------------------------------------------------------------------------------------------------

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_AT_ONCE = 100_000
"""Characters of a conversation whose turns are begun and stored on the event loop, within about a millisecond."""


def writes_little(turn_input: TurnInput) -> bool:
    """Return whether the steps of a turn only write some short rows: no files, indexes, code of others, and answers that are
    compared with a type.
    """
    base = turn_input.base
    if base.app.documents is not None or base.app.flow or base.app.tools or base.app.fields or turn_input.attachments:
        return False
    if base.app.answer_options.schema is not None or base.app.answer_options.parts.constraint is not None:
        return False
    said = len(turn_input.text) + sum(len(message.text) for message in turn_input.messages)
    return said + base.size <= LONGEST_AT_ONCE and not result_files(turn_input.messages) and not base.files


def open_store(store: str | Path | Store | None, chosen: Settings) -> Store:
    """Open a store by path, or the configured one."""
    return store if isinstance(store, Store) else Store.open(chosen.store if store is None else store)


def chosen_model(chosen: Settings, app: App | None = None, last: str = "") -> str:
    """Return the name of the model that answers, "" without one.

    The first of these counts: an argument, the model that answered so far (`last`), the configured one, and that of the app.
    """
    earlier = "" if chosen.is_argument("model") else last
    return earlier or chosen.model or (app.model if app is not None else "") or last


def open_priced_model(
    model: AnyModel | None,
    chosen: Settings,
    app: App | None = None,
    *,
    last: str = "",
    prices: Prices | None = None,
    opened: "dict[str, AnyModel] | None" = None,
) -> PricedModel:
    """Open a model with its prices: that of `chosen_model`; an app with documents or a program of its own runs without one.

    `prices` replace those of the settings; a model in `opened` is not opened again, and newly opened ones are added to it.

    Raises:
        NoModelError: no model is set.
        ConfigError: the model is unknown, or its key is missing.
    """
    if model is not None:
        return PricedModel(model, prices or _find_prices(chosen, model.name))
    name = chosen_model(chosen, app, last)
    models = {} if opened is None else opened
    if app is not None and (app.documents is not None or app.runs_file):
        from taiwa.sessions.ask_resources import NoModel

        return _open_named(name, chosen, prices, models) if name else PricedModel(NoModel())
    if not name:
        raise NoModelError
    return _open_named(name, chosen, prices, models)


def _open_named(name: str, chosen: Settings, prices: Prices | None, opened: dict[str, AnyModel]) -> PricedModel:
    from taiwa.models.providers import open_model, resolve_asked

    if name not in opened:
        opened[name] = open_model(resolve_asked(name, chosen), chosen)
    return with_prices(opened[name], chosen, prices)


def with_prices(model: AnyModel, chosen: Settings, prices: Prices | None = None) -> PricedModel:
    """Return a model with its prices: without `prices`, those of the settings; one on this machine costs nothing otherwise."""
    host: str = getattr(model, "host", "")  # "" in this process
    local = not host or urlsplit(f"//{host}").hostname in LOOPBACK
    return PricedModel(model, prices or _find_prices(chosen, model.name, local=local))


def _find_prices(chosen: Settings, model: str, *, local: bool = False) -> Prices | None:
    return find_prices(
        by_full_name(chosen, chosen.models.prices), model, local=local, table=usable_table(chosen.price_table_path)
    )


def rerun(
    repository: Repository, revision: str, name: str, priced_model: PricedModel, app: App | None, options: TurnOptions
) -> Iterator[TurnResult]:
    """Repeat the turns and edits of a history in a new session, with calls to the model.

    Raises:
        ConflictError: the session exists already.
    """
    if repository.store.refs.has(name):
        raise ConflictError(Wording("session {name!r} already exists; choose another name", name=name))
    history = tuple(repository.walk(repository.store.resolve(revision)))
    session = Session(repository, name, repository.start(app or history[0].after.app), priced_model, options=options)
    for entry in history:
        if entry.node.kind == "turn":
            yield session.say(entry.node.user or "", repository.store.blobs.fill(entry.node.attachments))
        elif entry.node.kind == "edit" and isinstance(entry.node.delta, dict):
            session.set_state(entry.node.delta)
        elif entry.node.kind == "app" and app is None:
            session.change_app(entry.after.app)
