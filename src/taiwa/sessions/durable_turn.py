"""One turn that survives its process: begun in the store, journaled as it happens, committed in one transaction."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from taiwa.conversation.history import Conversation
from taiwa.flows.chat import Reply, say
from taiwa.kernel.effects import Complete, Effect, Program
from taiwa.kernel.errors import ConflictError, InputError, StoreError, TaiwaError
from taiwa.kernel.execution import EffectStarted, Event
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.records import Json, record, value
from taiwa.kernel.runtime import AsyncModel, Handler, Interrupts, Model, Retriever, Tool
from taiwa.kernel.usage_limits import Price, RunUsage, UsageLimits
from taiwa.models.pricing import Prices
from taiwa.sessions.checkout import Repository
from taiwa.store import Run, check_name, conflict_message

if TYPE_CHECKING:
    from taiwa.ask.result import AskResult
    from taiwa.sessions.stored_ask import RagResources

__all__ = ["ActiveTurn", "PricedModel", "TurnInput", "TurnOptions", "TurnResult", "begin_turn", "resume_turn", "sink"]


class Edges(TypedDict, total=False):
    """What a runtime is given beside a model and tools."""

    retriever: Retriever
    handlers: Mapping[type[Effect[Any]], Handler]


class AnyModel(Model, AsyncModel, Protocol):
    """A model with both faces, as all of ours have."""


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model and what it costs; rates None means that nobody gave its prices."""

    model: AnyModel
    rates: Prices | None = None

    @property
    def price(self) -> Price:
        """The price of a call, for limits and the bill."""
        rates = self.rates
        return lambda _, usage: None if rates is None else rates.cost(usage)


@value(tag="turn-options")
class TurnOptions:
    """Options of the turns of a session.

    - `strict`: a state delta that cannot be read fails the turn. `repairs`: how often a bad delta is sent back.
    - `limits`: usage limits of the whole session.
    - `interrupts`: what a KeyboardInterrupt does to a streaming answer (`keep`: the turn is committed with what it has).
    - `tools`: tools that an app may name beside the built-in ones.
    """

    strict: bool = False
    repairs: int = 1
    limits: UsageLimits = UsageLimits()
    interrupts: Interrupts = "raise"
    tools: tuple[Tool, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return what another process needs to resume the turn."""
        return {"strict": self.strict, "repairs": self.repairs}


@value(tag="turn-input")
class TurnInput:
    """What is said, and after which place. `leaving` is the tip that the session leaves when it goes back to say it."""

    base: Conversation
    text: str
    why: str = "turn"
    leaving: str | None = None

    @property
    def follows(self) -> str | None:
        """The node that the turn follows, None where no store has it yet."""
        return None if self.base.new_nodes else self.base.tip

    @property
    def expected(self) -> str | None:
        """Where the session must stand, None where there must be none."""
        return self.leaving or self.follows

    def to_json(self) -> dict[str, Json]:
        """Return what another process needs to commit the turn."""
        return {"why": self.why, "leaving": self.leaving}


@value
class TurnResult:
    """A committed turn: the answer, its state delta, its place in the store, and its bill.

    `ask` is the typed result of a turn that looked things up.
    """

    text: str
    delta: Json
    warnings: tuple[str, ...]
    session: str
    node: str
    parent: str
    spent: RunUsage
    ask: "AskResult | None" = None


@dataclass(slots=True)
class ActiveTurn:
    """A turn under way."""

    repository: Repository
    session: str
    said: TurnInput
    run: int
    journal: Journal
    program: Program[tuple[Reply, Conversation]]
    model: str = ""
    tools: tuple[Tool, ...] = ()
    looking: "RagResources | None" = None

    @contextmanager
    def kept(self) -> Generator[None]:
        """Record the failure of the turn, if it fails; one that is stopped half-way can be resumed."""
        runs = self.repository.store.runs
        try:
            yield
        except TaiwaError as error:
            with suppress(StoreError):
                runs.fail(self.run, error)
            raise
        except BaseException:
            with suppress(StoreError):
                runs.release(self.run)
            raise
        finally:
            if self.looking is not None:
                self.looking.close()

    @property
    def edges(self) -> Edges:
        """What a runtime is given so that the turn can look things up."""
        return {} if self.looking is None else {"retriever": self.looking.retriever, "handlers": self.looking.handlers}

    def observe(self, event: Event) -> None:
        """Note in the store that the model is about to be asked."""
        if isinstance(event, EffectStarted) and isinstance(event.effect, Complete):
            self.repository.store.runs.count_request(self.run, self.model)

    def commit(self, reply: Reply, after: Conversation, spent: RunUsage) -> tuple[TurnResult, Conversation]:
        """Write the turn; the session moves to it.

        Raises:
            ConflictError: another program moved the session meanwhile; the answer stays in this run's calls.
        """
        said = self.said
        settled = self.repository.commit(self.session, after, expected=said.expected, why=said.why, run=self.run)
        if self.looking is not None:
            self.looking.claim(self.repository.store, self.session)
        parent = said.follows or after.new_nodes[0].hash
        result = TurnResult(
            reply.text, reply.delta, reply.warnings, self.session, settled.tip, parent, spent, self._ask(reply)
        )
        return result, settled

    def _ask(self, reply: Reply) -> "AskResult | None":
        if self.looking is None:
            return None
        from taiwa.ask.result import AskResult

        return AskResult.from_delta(reply.delta)


def begin_turn(
    repository: Repository, session: str, said: TurnInput, priced_model: PricedModel, options: TurnOptions
) -> ActiveTurn:
    """Begin a turn; from here on nothing that is paid for can be lost. Without a name, a new session takes a free one.

    Raises:
        ConflictError: the session stands elsewhere, so the turn could not be committed; nothing was asked.
        InputError: no session can be called so.
    """
    store, base = repository.store, said.base
    tools = repository.tools_of(base.app)
    with (
        _looking(repository, base, priced_model) as looking,
        store.transaction(session if said.expected else ""),
    ):  # two programs that begin at once take different names
        session = check_name(session or repository.new_name(base.app))
        tip = _tip(repository, session)
        if tip != said.expected:
            raise ConflictError(conflict_message(session, tip, said.expected))
        if base.new_nodes:
            store.nodes.put_app(base.app.source)
        asked: dict[str, Json] = {} if looking is None else {"turn_options": record(looking.options)}
        recorded = options.to_json() | said.to_json() | asked
        run = store.runs.begin(session, said.follows, base.app.hash, said.text, recorded)
    name = priced_model.model.name
    program = _program(said.text, options, base, tools, looking)
    return ActiveTurn(
        repository, session, said, run, Journal((), sink(repository, run, priced_model)), program, name, tools, looking
    )


def resume_turn(repository: Repository, found: Run, priced_model: PricedModel) -> ActiveTurn:
    """Take up a turn that was cut off: what had been answered is not asked again.

    Raises:
        ConflictError: another program took it up, or the session has moved on.
    """
    store = repository.store
    run = store.runs.claim(found.id)
    recorded = run.options if isinstance(run.options, dict) else {}
    leaving = recorded.get("leaving")
    leaving = leaving if isinstance(leaving, str) else None
    if _tip(repository, run.ref) != (leaving or run.base):
        store.runs.abandon(run.id)
        raise ConflictError(f"{run.ref} has moved on since its turn was cut off; say it again: {run.text[:60]!r}")
    if run.app is None:
        raise InputError(f"run {run.id} has no app to resume with")
    base = repository.start(repository.app(run.app)) if run.base is None else repository.checkout(run.base)
    repairs = recorded.get("repairs")
    options = TurnOptions(bool(recorded.get("strict")), repairs if isinstance(repairs, int) else 1)
    journal = Journal(store.runs.journal(run.id), sink(repository, run.id, priced_model))
    said = TurnInput(base, run.text, str(recorded.get("why") or "turn"), leaving)
    tools = repository.tools_of(base.app)
    looking = _looking_again(repository, base, recorded)
    program = _program(run.text, options, base, tools, looking)
    return ActiveTurn(repository, run.ref, said, run.id, journal, program, priced_model.model.name, tools, looking)


def _tip(repository: Repository, session: str) -> str | None:
    return repository.store.refs.tip(session) if repository.store.refs.has(session) else None


def _program(
    text: str, options: TurnOptions, base: Conversation, tools: tuple[Tool, ...], looking: "RagResources | None"
) -> Program[tuple[Reply, Conversation]]:
    if looking is not None:
        return looking.program(text)(base)
    specs = [tool.spec for tool in tools]
    return say(text, strict=options.strict, repairs=options.repairs, tools=specs)(base)


@contextmanager
def _looking(repository: Repository, base: Conversation, priced_model: PricedModel) -> "Generator[RagResources | None]":
    """Open what a turn looks into, if its app does; closed again where the turn cannot begin."""
    if base.app.flow != "ask":
        yield None
        return
    from taiwa.sessions.stored_ask import NoModel, open_rag_resources

    found = open_rag_resources(
        base.app, repository, modelless=isinstance(priced_model.model, NoModel), first=not base.count
    )
    try:
        yield found
    except BaseException:
        found.close()
        raise


def _looking_again(repository: Repository, base: Conversation, recorded: dict[str, Json]) -> "RagResources | None":
    """Open what a turn looked into that was cut off."""
    if base.app.flow != "ask":
        return None
    from taiwa.ask.result import options_from_delta
    from taiwa.sessions.stored_ask import reopen_rag_resources

    options = options_from_delta(recorded)
    return None if options is None else reopen_rag_resources(base.app, repository, options)


def sink(repository: Repository, run: int, priced_model: PricedModel) -> Callable[[Entry], None]:
    """What writes the journal of a run, with its bill."""
    price_id = "" if priced_model.rates is None else priced_model.rates.id
    return repository.store.runs.sink(run, model=priced_model.model.name, price=priced_model.price, price_id=price_id)
