"""`taiwa.open`, `Session`; `taiwa.run`, `stream`, `arun`, `astream`."""

from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from taiwa import settings as configured
from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.state import State
from taiwa.flows.chat import Reply
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Effect, Program
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.execution import Observer, RunResult
from taiwa.kernel.messages import Notice, TextDelta, Usage
from taiwa.kernel.records import Json
from taiwa.kernel.runtime import Handler, Runtime, Tool
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.models.http_api.probe_server import probed
from taiwa.models.open_model import open_model
from taiwa.models.pricing import find_prices
from taiwa.sessions.checkout import Repository
from taiwa.sessions.durable_turn import (
    ActiveTurn,
    AnyModel,
    PricedModel,
    TurnInput,
    TurnOptions,
    TurnResult,
    begin_turn,
    resume_turn,
)
from taiwa.settings import Settings
from taiwa.store import Store

__all__ = ["Session", "arun", "astream", "open", "open_priced_model", "run", "stream"]


TurnEvent: TypeAlias = TextDelta | Notice | TurnResult

Turned: TypeAlias = tuple[Reply, Conversation]


class Session:
    """One session of a store with a model to talk to. A failed turn leaves the conversation where it was.

    A new session that was given no name takes a free one when its first turn begins; until then `session` is a guess.
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
        self._given = session
        self.conversation = conversation
        self.priced_model = priced_model
        self.options = options or TurnOptions()
        repository.tools.update({tool.spec.name: tool for tool in self.options.tools})
        self.spent = RunUsage()
        """The bill of this talk, failed turns included."""
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
        """Have one turn.

        Raises:
            TaiwaError: the turn failed; the conversation has not moved, what was paid for stays in the store.
        """
        turn = self._turn(TurnInput(self.conversation, text))
        with self._billed(turn):
            done = self._runtime(turn).run_result(turn.program, turn.journal)
        return self._settle(turn, done)

    def stream(self, text: str) -> Iterator[TurnEvent]:
        """Have one turn and give out the answer as it comes, last the committed turn."""
        return self._play(self._turn(TurnInput(self.conversation, text)))

    async def asay(self, text: str) -> TurnResult:
        """As `say`, on an event loop."""
        turn = self._turn(TurnInput(self.conversation, text))
        with self._billed(turn):
            done = await self._async_runtime(turn).run_result(turn.program, turn.journal)
        return self._settle(turn, done)

    def astream(self, text: str) -> AsyncIterator[TurnEvent]:
        """As `stream`, on an event loop."""
        return self._aplay(self._turn(TurnInput(self.conversation, text)))

    def retry(self) -> Iterator[TurnEvent]:
        """Say the last utterance again from the same state; the new answer takes the place of the old one.

        Raises:
            InputError: there is no turn yet.
        """
        return self.edit(self.said(1), turns=1, why="retry")

    def said(self, turns: int = 1) -> str:
        """What was said so many turns ago; 1 is the last turn.

        Raises:
            InputError: there are not so many turns.
        """
        if self.conversation.new_nodes:
            raise InputError("there is no turn yet")
        return self.repository.turn(self.conversation.tip, turns)[1].user or ""

    def edit(self, text: str, *, turns: int = 1, why: str = "edit") -> Iterator[TurnEvent]:
        """Go back some turns and say something else; the old branch stays in the log.

        Raises:
            InputError: there are not so many turns.
        """
        if self.conversation.new_nodes:
            raise InputError("there is no turn yet")
        base = self.repository.checkout(self.repository.before_turn(self.conversation.tip, turns))
        return self._play(self._turn(TurnInput(base, text, why, self.conversation.tip)))

    def resume(self) -> Iterator[TurnEvent] | None:
        """Finish a turn of this session that was cut off, or return None when there is none."""
        runs = self.repository.store.runs.open_runs(self.session)
        if not runs:
            return None
        for stale in runs[:-1]:
            self.repository.store.runs.abandon(stale.id)
        return self._play(resume_turn(self.repository, runs[-1], self.priced_model))

    def undo(self, turns: int = 1) -> Conversation:
        """Go back; message, state and window move together."""
        return self._to(self.repository.store.undo(self.session, turns))

    def redo(self, turns: int = 1) -> Conversation:
        """Go forward again to where `undo` came from."""
        return self._to(self.repository.store.redo(self.session, turns))

    def set_state(self, values: State) -> Conversation:
        """Change the state by hand."""
        self._begun()
        self.conversation = self.repository.set_state(self.session, values)
        return self.conversation

    def change_app(self, app: App) -> Conversation:
        """Go on with another app, or an edited one; values that still fit stay."""
        self._begun()
        self.conversation = self.repository.change_app(self.session, app)
        return self.conversation

    def _begun(self) -> None:
        if self.conversation.new_nodes:
            with self.repository.store.transaction():
                self.session = self._given or self.repository.new_name(self.app)
                self.conversation = self.repository.commit(self.session, self.conversation, expected=None, why="begin")

    def fork(self, name: str) -> "Session":
        """Go on from here under a second name; neither branch can change the other."""
        self._begun()
        self.repository.fork(self.conversation.tip, name)
        options, observers = self.options, self._observers
        return Session(
            self.repository, name, self.conversation, self.priced_model, options=options, observers=observers
        )

    def _to(self, tip: str) -> Conversation:
        self.conversation = self.repository.checkout(tip)
        return self.conversation

    def _turn(self, said: TurnInput) -> ActiveTurn:
        self._limits()
        name = self._given if said.base.new_nodes else self.session
        turn = begin_turn(self.repository, name, said, self.priced_model, self.options)
        self.session = turn.session
        return turn

    def _limits(self) -> UsageLimits:
        """What is left for the next turn.

        Raises:
            ConfigError: the model never says what was used, so nothing would ever reach the limit of cost.
        """
        limits = self.options.limits
        if limits.cost is None:
            return limits
        known = self.spent.cost
        if self.spent.calls_without_usage > 1 and self.spent.usage == Usage():
            raise ConfigError(
                f"{self.priced_model.model.name} reported the usage of no call, so a cost limit cannot hold"
            )
        if known is None:  # what an answer that was cut cost at most
            known = self.spent.max_cost
        if known is None:  # an answer that was stopped has no bill; what the others cost is known all the same
            known = self.priced_model.price("", self.spent.usage) or 0
        return replace(limits, cost=max(limits.cost - known, 0))

    def _runtime(self, turn: ActiveTurn) -> Runtime:
        observers, interrupts = (*self._observers, turn.observe), self.options.interrupts
        return Runtime(
            self.priced_model.model,
            tools=turn.tools,
            observers=observers,
            limits=self._limits(),
            price=self.priced_model.price,
            interrupts=interrupts,
            **turn.edges,
        )

    def _async_runtime(self, turn: ActiveTurn) -> AsyncRuntime:
        observers, limits = (*self._observers, turn.observe), self._limits()
        model, price = self.priced_model.model, self.priced_model.price
        return AsyncRuntime(model, tools=turn.tools, observers=observers, limits=limits, price=price, **turn.edges)

    def _play(self, turn: ActiveTurn) -> Iterator[TurnEvent]:
        done: list[RunResult[Turned]] = []
        with self._billed(turn):
            for event in self._runtime(turn).stream(turn.program, turn.journal):
                if isinstance(event, RunResult):
                    done.append(event)
                else:
                    yield event
        yield self._settle(turn, done[0])

    async def _aplay(self, turn: ActiveTurn) -> AsyncIterator[TurnEvent]:
        done: list[RunResult[Turned]] = []
        with self._billed(turn):
            # Closed here and not when it is collected: who stops listening stops the call.
            async with aclosing(self._async_runtime(turn).stream(turn.program, turn.journal)) as events:
                async for event in events:
                    if isinstance(event, RunResult):
                        done.append(event)
                    else:
                        yield event
        yield self._settle(turn, done[0])

    def _settle(self, turn: ActiveTurn, done: "RunResult[Turned]") -> TurnResult:
        self.spent = self.spent + done.spent
        reply, after = done.value
        said, self.conversation = turn.commit(reply, after, done.spent)
        return said

    @contextmanager
    def _billed(self, turn: ActiveTurn) -> Generator[None]:
        try:
            with turn.kept():
                yield
        except TaiwaError as error:
            if isinstance(error.spent, RunUsage):
                self.spent = self.spent + error.spent
            raise


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def open(
    app: str | App = "chat",
    *,
    model: str | AnyModel | None = None,
    session: str = "",
    store: str | Path | Store | None = None,
    params: Mapping[str, Json] | None = None,
    options: TurnOptions | None = None,
) -> Session:
    """Open a conversation: the session of that name where there is one, else a new one with the app.

    `store` is a file, the address of a PostgreSQL server, `":memory:"`, or an open store; without it the configured one.

    Raises:
        ConfigError: the model, the app or the store cannot be opened.
        InputError: the parameters are not those that the app needs.
    """
    chosen = configured.load({"model": model} if isinstance(model, str) else {})
    repository = Repository(open_store(store, chosen))
    repository.settings = chosen
    if session and repository.store.refs.has(session):
        start = repository.at(session)
    else:
        start = repository.start((load_app(app) if isinstance(app, str) else app).with_params(params or {}))
    priced_model = open_priced_model(None if isinstance(model, str) else model, chosen, start.app)
    return Session(repository, session, start, priced_model, options=options)


def open_store(store: str | Path | Store | None, chosen: Settings) -> Store:
    """Open a store by path, or the configured one."""
    return store if isinstance(store, Store) else Store.open(chosen.store if store is None else store)


def open_priced_model(model: AnyModel | None, chosen: Settings, app: App | None = None) -> PricedModel:
    """Open a model with what it costs. The one that an app asks for goes before all but an argument; where
    none is set, the small one that comes along answers; an app that looks things up does without it where it is not there.

    Raises:
        ConfigError: its name leads nowhere, or its key is missing.
    """
    if model is not None:
        return PricedModel(model, find_prices(chosen.prices, model.name))
    if app is not None and app.flow == "ask" and not app.model and chosen.model is None:
        from taiwa.models.builtin.model import is_there

        if not is_there():
            from taiwa.sessions.stored_ask import NoModel

            return PricedModel(NoModel())
    asked_for = app.model if app is not None and chosen.origins.get("model") != "argument" else ""
    target = probed(asked_for or chosen.chosen_model(), chosen)
    local = target.inside or urlsplit(target.base_url).hostname in LOOPBACK
    return PricedModel(open_model(target, chosen), find_prices(chosen.prices, target.name, local=local))


T = TypeVar("T")

Handlers: TypeAlias = Mapping[type[Effect[Any]], Handler]

NOBODY: Handlers = MappingProxyType({})


def run(
    program: Program[T],
    model: str | AnyModel | None = None,
    limits: UsageLimits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> T:
    """Run a program to its value; without a model, with the configured one.

    Raises:
        TaiwaError: what the program raised; `spent` holds the bill.
    """
    priced_model = _voice(model)
    return Runtime(priced_model.model, tools=tools, handlers=handlers, limits=limits, price=priced_model.price).run(
        program
    )


def stream(
    program: Program[T],
    model: str | AnyModel | None = None,
    limits: UsageLimits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> Iterator[TextDelta | Notice | RunResult[T]]:
    """Run a program and give out what it says as it says it, last `RunResult`."""
    priced_model = _voice(model)
    return Runtime(priced_model.model, tools=tools, handlers=handlers, limits=limits, price=priced_model.price).stream(
        program
    )


async def arun(
    program: Program[T],
    model: str | AnyModel | None = None,
    limits: UsageLimits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> T:
    """As `run`, on an event loop."""
    priced_model = _voice(model)
    runtime = AsyncRuntime(priced_model.model, tools=tools, handlers=handlers, limits=limits, price=priced_model.price)
    return await runtime.run(program)


def astream(
    program: Program[T],
    model: str | AnyModel | None = None,
    limits: UsageLimits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> AsyncIterator[TextDelta | Notice | RunResult[T]]:
    """As `stream`, on an event loop."""
    priced_model = _voice(model)
    runtime = AsyncRuntime(priced_model.model, tools=tools, handlers=handlers, limits=limits, price=priced_model.price)
    return runtime.stream(program)


def _voice(model: str | AnyModel | None) -> PricedModel:
    if isinstance(model, str):
        return open_priced_model(None, configured.load({"model": model}))
    return open_priced_model(model, configured.load({}))
