"""Sessions: conversations of a store with a model. `open` one, or `run` and `stream` a program without a store."""

from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Unpack
from urllib.parse import urlsplit

from taiwa import settings as configured
from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.state import State
from taiwa.flows.chat import Reply
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.execution import Observer, RunResult
from taiwa.kernel.messages import Notice, TextDelta, Usage
from taiwa.kernel.records import Json
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.models.pricing import find_prices
from taiwa.sessions.durable_turn import (
    ActiveTurn,
    AnyModel,
    PricedModel,
    RuntimeOptions,
    TurnInput,
    TurnOptions,
    TurnResult,
    begin_turn,
    request_counter,
    resume_turn,
)
from taiwa.sessions.repository import Repository
from taiwa.settings import BUILTIN, Settings
from taiwa.store import Store

if TYPE_CHECKING:
    from taiwa.kernel.async_runtime import AsyncRuntime

TurnEvent: TypeAlias = TextDelta | Notice | TurnResult

TurnValue: TypeAlias = tuple[Reply, Conversation]


class Session:
    """One session of a store with a model. A failed turn leaves the conversation unchanged.

    A new session without a name takes a free one when its first turn begins; until then `session` is provisional.
    """

    def __init__(
        self,
        repository: Repository,
        session: str,
        conversation: Conversation,
        priced_model: PricedModel,
        *,
        options: TurnOptions | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.repository = repository
        self.session = session or repository.new_name(conversation.app)
        self._requested_name = session
        self.conversation = conversation
        self.priced_model = priced_model
        self.options = options or TurnOptions()
        repository.tools.update({tool.spec.name: tool for tool in self.options.tools})
        self.spent = RunUsage()
        """The usage of this object's turns, failed ones included."""
        self._observers = tuple(observers)

    @property
    def state(self) -> State:
        """The dialogue state after the last turn."""
        return self.conversation.state

    @property
    def app(self) -> App:
        """The app of the conversation."""
        return self.conversation.app

    def say(self, text: str) -> TurnResult:
        """Complete one turn.

        Raises:
            TaiwaError: the turn failed; the conversation is unchanged, and paid calls stay in the store.
        """
        turn = self._turn(TurnInput(self.conversation, text))
        with self._count_usage(turn):
            done = self._runtime(turn).run_result(turn.program, turn.journal)
        return self._settle(turn, done)

    def stream(self, text: str) -> Iterator[TurnEvent]:
        """Complete one turn; yield the answer as it arrives, then the committed turn."""
        return self._play(self._turn(TurnInput(self.conversation, text)))

    async def asay(self, text: str) -> TurnResult:
        """As `say`, on an event loop."""
        from taiwa.kernel.async_runtime import finish_in_thread

        turn = await self._abegin(text)
        with self._count_usage(turn):
            done = await self._async_runtime(turn).run_result(turn.program, turn.journal)
        return await finish_in_thread(lambda: self._settle(turn, done))

    def astream(self, text: str) -> AsyncIterator[TurnEvent]:
        """As `stream`, on an event loop."""
        return self._aplay(text)

    def retry(self) -> Iterator[TurnEvent]:
        """Repeat the last turn from the same state; the new answer replaces the old one.

        Raises:
            InputError: there is no turn yet.
        """
        return self.edit(self.last_turn_text(), turns=1, reason="retry")

    def last_turn_text(self, turns: int = 1) -> str:
        """Return the user text of a turn, counted from the end; 1 is the last turn.

        Raises:
            InputError: the conversation has fewer turns.
        """
        if self.conversation.new_nodes:
            raise InputError("there is no turn yet")
        return self.repository.turn(self.conversation.tip, turns)[1].user or ""

    def edit(self, text: str, *, turns: int = 1, reason: str = "edit") -> Iterator[TurnEvent]:
        """Go back some turns and continue with another text; the old branch stays in the log.

        Raises:
            InputError: the conversation has fewer turns.
        """
        if self.conversation.new_nodes:
            raise InputError("there is no turn yet")
        base = self.repository.checkout(self.repository.before_turn(self.conversation.tip, turns))
        return self._play(self._turn(TurnInput(base, text, reason, self.conversation.tip)))

    def resume(self) -> Iterator[TurnEvent] | None:
        """Finish an interrupted turn of this session; None without one."""
        runs = self.repository.store.runs.open_runs(self.session)
        if not runs:
            return None
        for stale in runs[:-1]:
            self.repository.store.runs.end(stale.id, "abandoned")
        return self._play(resume_turn(self.repository, runs[-1], self.priced_model))

    def undo(self, turns: int = 1) -> Conversation:
        """Go back; message, state and window move together."""
        return self._check_out(self.repository.store.undo(self.session, turns))

    def redo(self, turns: int = 1) -> Conversation:
        """Go forward to where `undo` started."""
        return self._check_out(self.repository.store.redo(self.session, turns))

    def set_state(self, values: State) -> Conversation:
        """Set values of the state by hand."""
        self._ensure_stored()
        self.conversation = self.repository.set_state(self.session, values)
        return self.conversation

    def change_app(self, app: App) -> Conversation:
        """Continue with another or an edited app; values that fit its fields are kept."""
        self._ensure_stored()
        self.conversation = self.repository.change_app(self.session, app)
        return self.conversation

    def _ensure_stored(self) -> None:
        if self.conversation.new_nodes:
            with self.repository.store.transaction():
                self.session = self._requested_name or self.repository.new_name(self.app)
                self.conversation = self.repository.commit(
                    self.session, self.conversation, expected=None, reason="begin"
                )

    def fork(self, name: str) -> "Session":
        """Continue from here under a second name; the branches are independent."""
        self._ensure_stored()
        self.repository.fork(self.conversation.tip, name)
        here, options, observers = self.conversation, self.options, self._observers
        return Session(self.repository, name, here, self.priced_model, options=options, observers=observers)

    def _check_out(self, tip: str) -> Conversation:
        self.conversation = self.repository.checkout(tip)
        return self.conversation

    def _turn(self, turn_input: TurnInput) -> ActiveTurn:
        self._remaining_limits()
        name = self._requested_name if turn_input.base.new_nodes else self.session
        turn = begin_turn(self.repository, name, turn_input, self.priced_model, self.options)
        self.session = turn.session
        return turn

    def _remaining_limits(self) -> UsageLimits:
        """Return the limits that are left for the next turn.

        Raises:
            ConfigError: the model reports no usage, so the cost limit cannot be checked.
        """
        limits = self.options.limits
        if limits.cost is None:
            return limits
        spent, name = self.spent, self.priced_model.model.name
        if spent.calls_without_usage > 1 and spent.usage == Usage():
            raise ConfigError(f"{name} does not report usage, so the cost limit cannot be checked")
        # Of a cut answer the bound on its cost is known; an interrupted one has no usage, and the cost of the others is known.
        known = spent.max_cost if spent.cost is None else spent.cost
        known = (self.priced_model.price("", spent.usage) or 0) if known is None else known
        return replace(limits, cost=max(limits.cost - known, 0))

    def _runtime(self, turn: ActiveTurn) -> Runtime:
        return Runtime(self.priced_model.model, interrupts=self.options.interrupts, **self._runtime_options(turn))

    def _async_runtime(self, turn: ActiveTurn) -> "AsyncRuntime":
        from taiwa.kernel.async_runtime import AsyncRuntime  # asyncio costs more than the rest of the kernel

        return AsyncRuntime(self.priced_model.model, **self._runtime_options(turn))

    def _runtime_options(self, turn: ActiveTurn) -> RuntimeOptions:
        counter = request_counter(self.repository, turn.run, self.priced_model)
        observers = (*self._observers, counter)
        return {**turn.runtime_options, "observers": observers, "limits": self._remaining_limits()}

    def _play(self, turn: ActiveTurn) -> Iterator[TurnEvent]:
        done: list[RunResult[TurnValue]] = []
        with self._count_usage(turn):
            for event in self._runtime(turn).stream(turn.program, turn.journal):
                if isinstance(event, RunResult):
                    done.append(event)
                else:
                    yield event
        yield self._settle(turn, done[0])

    async def _abegin(self, text: str) -> ActiveTurn:
        """Begin a turn without blocking the event loop; a caller that is cancelled leaves no turn open."""
        from taiwa.kernel.async_runtime import finish_in_thread

        begun: list[ActiveTurn] = []
        try:
            await finish_in_thread(lambda: begun.append(self._turn(TurnInput(self.conversation, text))))
        except BaseException:
            for turn in begun:
                self.repository.store.runs.end(turn.run, "abandoned")
            raise
        return begun[0]

    async def _aplay(self, text: str) -> AsyncIterator[TurnEvent]:
        from taiwa.kernel.async_runtime import finish_in_thread

        turn = await self._abegin(text)
        done: list[RunResult[TurnValue]] = []
        with self._count_usage(turn):
            # Closed here and not by the garbage collector, so that closing the iterator cancels the call.
            async with aclosing(self._async_runtime(turn).stream(turn.program, turn.journal)) as events:
                async for event in events:
                    if isinstance(event, RunResult):
                        done.append(event)
                    else:
                        yield event
        yield await finish_in_thread(lambda: self._settle(turn, done[0]))

    def _settle(self, turn: ActiveTurn, done: "RunResult[TurnValue]") -> TurnResult:
        self.spent = self.spent + done.spent
        reply, after = done.value
        result, self.conversation = turn.commit(reply, after, done.spent)
        return result

    @contextmanager
    def _count_usage(self, turn: ActiveTurn) -> Generator[None]:
        try:
            with turn.record_failure():
                yield
        except TaiwaError as error:
            if isinstance(error.spent, RunUsage):
                self.spent = self.spent + error.spent
            raise


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def open(
    app: str | App = "plain",
    *,
    model: str | AnyModel | None = None,
    session: str = "",
    store: str | Path | Store | None = None,
    params: Mapping[str, Json] | None = None,
    options: TurnOptions | None = None,
    retry_paid: bool = False,
) -> Session:
    """Open the session of that name if it exists, else start a new one with the app.

    `store` is a file, a PostgreSQL URL, `":memory:"`, or an open store; by default the configured one.
    `retry_paid` repeats calls that failed although the server may have charged them.

    Raises:
        ConfigError: the model, the app or the store cannot be opened.
        InputError: a parameter is missing, unknown, or of the wrong type.
    """
    chosen = configured.load({"model": model if isinstance(model, str) else None, "retry_paid": retry_paid or None})
    repository = Repository(open_store(store, chosen))
    repository.settings = chosen
    if session and repository.store.refs.has(session):
        start = repository.at(session)
    else:
        opened = (load_app(app) if isinstance(app, str) else app).with_params(params or {})
        repository.trust(opened.hash)  # the caller names it, so it is their own
        start = repository.start(opened)
    last = "" if start.new_nodes else repository.last_model(start.tip)
    priced_model = open_priced_model(None if isinstance(model, str) else model, chosen, start.app, last=last)
    return Session(repository, session, start, priced_model, options=options)


def open_store(store: str | Path | Store | None, chosen: Settings) -> Store:
    """Open a store by path, or the configured one."""
    return store if isinstance(store, Store) else Store.open(chosen.store if store is None else store)


def chosen_model(chosen: Settings, app: App | None = None, last: str = "") -> str:
    """Return the name of the model that answers, "" without one.

    The first of these counts: an argument, the model that wrote the conversation so far (`last`, unless it is the built-in
    one), the configured one, and that of the app.
    """
    earlier = "" if chosen.origins.get("model") == "argument" or last == BUILTIN else last
    return earlier or chosen.model or (app.model if app is not None else "") or last


def open_priced_model(
    model: AnyModel | None, chosen: Settings, app: App | None = None, *, last: str = ""
) -> PricedModel:
    """Open a model with its prices: that of `chosen_model`, else the built-in one; an app of the flow `ask` runs without one.

    Raises:
        ConfigError: the model is unknown, or its key is missing.
    """
    if model is not None:
        return PricedModel(model, find_prices(chosen.prices, model.name))
    name = chosen_model(chosen, app, last)
    if app is not None and app.flow == "ask":
        return _open_models_of_ask(chosen, name)
    return _open_named(name or BUILTIN, chosen)


def _open_named(name: str, chosen: Settings) -> PricedModel:
    from taiwa.models.registry import open_model, resolve_probed

    target = resolve_probed(name, chosen)
    local = target.inside or urlsplit(target.base_url).hostname in LOOPBACK
    return PricedModel(open_model(target, chosen), find_prices(chosen.prices, target.name, local=local))


def _open_models_of_ask(chosen: Settings, name: str) -> PricedModel:
    """Open the model that answers, and those that judge and rewrite if they are set."""
    from taiwa.sessions.stored_ask import ModelPerTask, NoModel

    answering = _open_named(name, chosen) if name else PricedModel(NoModel())
    if chosen.judge_model is None and chosen.rewrite_model is None:
        return answering
    named = [None if each is None else _open_named(each, chosen) for each in (chosen.judge_model, chosen.rewrite_model)]
    judge, rewriting = (None if each is None else each.model for each in named)
    parts = tuple(each for each in (answering, *named) if each is not None and each.model.name)
    return PricedModel(ModelPerTask(answering.model, judge, rewriting), answering.rates, parts)


T = TypeVar("T")


def run(program: Program[T], model: str | AnyModel | None = None, **options: Unpack[RuntimeOptions]) -> T:
    """Run a program to its value; the default is the configured model.

    Options: `limits`, `tools`, `handlers` of further effects, `retriever`, `observers`, `price`.

    Raises:
        TaiwaError: what the program raised; `spent` holds the usage of the run.
    """
    priced_model = _priced_model(model)
    return Runtime(priced_model.model, **priced_model.runtime_options(options)).run(program)


def stream(
    program: Program[T], model: str | AnyModel | None = None, **options: Unpack[RuntimeOptions]
) -> Iterator[TextDelta | Notice | RunResult[T]]:
    """Run a program, with the options of `run`; yield text and notices as they arrive, then `RunResult`."""
    priced_model = _priced_model(model)
    return Runtime(priced_model.model, **priced_model.runtime_options(options)).stream(program)


async def arun(program: Program[T], model: str | AnyModel | None = None, **options: Unpack[RuntimeOptions]) -> T:
    """As `run`, on an event loop."""
    from taiwa.kernel.async_runtime import AsyncRuntime

    priced_model = _priced_model(model)
    return await AsyncRuntime(priced_model.model, **priced_model.runtime_options(options)).run(program)


def astream(
    program: Program[T], model: str | AnyModel | None = None, **options: Unpack[RuntimeOptions]
) -> AsyncIterator[TextDelta | Notice | RunResult[T]]:
    """As `stream`, on an event loop."""
    from taiwa.kernel.async_runtime import AsyncRuntime

    priced_model = _priced_model(model)
    return AsyncRuntime(priced_model.model, **priced_model.runtime_options(options)).stream(program)


def _priced_model(model: str | AnyModel | None) -> PricedModel:
    if isinstance(model, str):
        return open_priced_model(None, configured.load({"model": model}))
    return open_priced_model(model, configured.load({}))
