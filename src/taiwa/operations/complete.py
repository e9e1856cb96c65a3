"""Answer a request of a client that resends its history: the turn in its place, and the session that performs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from taiwa.apps.catalog import load_unchanged
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App
from taiwa.conversation.history import START, change_app
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.async_runtime import Stop
from taiwa.kernel.errors import InputError
from taiwa.kernel.execution import Observer
from taiwa.kernel.messages import Message
from taiwa.kernel.records import Json, record
from taiwa.kernel.text import estimate_tokens
from taiwa.operations.documents import has_library, open_library
from taiwa.operations.say import request_tokens
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, TurnResult
from taiwa.sessions.repository import Repository
from taiwa.sessions.resent_history import is_relayed, place_after, place_compaction, place_in_session, place_turn
from taiwa.sessions.session import AsyncSession
from taiwa.store.refs import BY_CLIENT


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """A request of a client: its app with parameters, the messages without the leading system text, and its options.

    - `request`: what the client sets for the answer; see `AnswerOptions.request`.
    """

    app: str
    messages: tuple[Message, ...]
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: AnswerOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and the session that goes on if this is its tip."""

    node: str
    session: str


@dataclass(frozen=True, slots=True)
class Thread:
    """A session with which a turn stays, wherever the history of its client leads.

    - `after`: the node that the turn follows, "" for the one that the history leads to.
    - `state`: the state that the client holds; what it has changed in it is set before the turn.
    """

    session: str
    after: str = ""
    state: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A turn that can be performed by its session: a new one, or without `turn_input` the interrupted one of the session."""

    session: AsyncSession
    turn_input: TurnInput | None = None

    @property
    def text(self) -> str:
        """What the user said; "" for an interrupted turn, which the store has."""
        return "" if self.turn_input is None else self.turn_input.text

    def by_client(self, client: str) -> "Completion":
        """Return the same turn, with the program and the protocol of its client in the log of the session."""
        if self.turn_input is None:
            return self
        return replace(self, turn_input=replace(self.turn_input, reason=f"{BY_CLIENT}{client}"))

    async def perform(self, observer: Observer, stop: Stop | None = None) -> TurnResult:
        """Perform the turn, as `AsyncSession.perform`.

        Raises:
            InputError: the session has no interrupted turn.
        """
        result = await self.session.perform(self.turn_input, observer, stop)
        if result is None:
            raise InputError(f"the session {self.session.name!r} has no interrupted turn")
        return result


def begin_completion(
    repository: Repository,
    priced_model: PricedModel,
    options: CompletionOptions,
    turns: TurnOptions,
    after: Place | Thread | None = None,
) -> Completion:
    """Find the place of a turn in the store, and open the session that performs it; nothing is sent yet.

    With a `Place` the turn follows it, and the messages are those behind it. A turn of a `Thread` stays in its session.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown, or there is nothing to answer.
    """
    if repository.quota is not None:
        repository.quota.check()
    app = _open_app(options, repository)
    repository.trust(app.hash)  # the operator of the server serves it
    if after is None:
        placed = place_turn(repository, app, options.messages)
    elif isinstance(after, Thread):
        placed = place_in_session(repository, app, after.session, options.messages, after.after, after.state)
    else:
        address = repository.store.transcripts.address_of(after.node) or START
        placed = place_after(repository, app, after.node, after.session, address, options.messages)
    session = AsyncSession(repository, placed.session, placed.turn_input.base, priced_model, options=turns)
    return Completion(session, placed.turn_input)


def begin_compaction(
    repository: Repository,
    priced_model: PricedModel,
    options: CompletionOptions,
    turns: TurnOptions,
    after: Place | None,
) -> Completion:
    """Find the history that a summary is to replace, as `begin_completion`; messages that are not answered stay out of it.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
    """
    app = _open_app(options, repository)
    repository.trust(app.hash)
    placed = place_compaction(repository, app, options.messages, "" if after is None else after.node)
    session = AsyncSession(repository, placed.session, placed.turn_input.base, priced_model, options=turns)
    return Completion(session, placed.turn_input)


def estimate_input(repository: Repository, options: CompletionOptions, after: Place | None = None) -> int:
    """Estimate the tokens of the request that a turn would send; nothing is sent or stored.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
    """
    app = _open_app(options, repository)
    base = repository.start(app) if after is None else change_app(repository.checkout(after.node), app)
    request = turn_request(base, "", inputs=options.messages)
    tools = sum(estimate_tokens(str(record(tool))) for tool in request.tools)
    return request_tokens(request) + tools


GRANTED = ("in", "as", "user")
"""The parameters of an app that searches documents that say which ones, for whom, and whose profile is read."""


def served_app(app: App, params: Mapping[str, Json], repository: Repository) -> App:
    """Return a served app with the parameters of a request.

    Where its file names no indexes and no principals, a request may choose from the indexes of its caller; where it names no
    user, from the caller's persons.

    Raises:
        InputError: a parameter is missing, unknown or of another type, or grants access.
    """
    if app.flow == "ask":
        closed = closed_params(app)
        refused = next((name for name in GRANTED if name in params and name in closed), None)
        if refused is not None:
            raise InputError(
                f"a request may not set {refused!r} of the app {app.name!r}, which decides what is searched for whom; "
                "serve an app file with a default of its own"
            )
        _check_indexes(params.get("in"), repository)
        if (name := params.get("user")) and isinstance(name, str) and repository.store.users.get(name) is None:
            raise repository.store.users.unknown(name)
    return app.with_params(params)


def is_relayed_app(options: CompletionOptions, repository: Repository) -> bool:
    """Report whether the app of a request relays it as it is: without state, tools and look-ups of its own.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
    """
    return is_relayed(_open_app(options, repository))


def closed_params(app: App) -> frozenset[str]:
    """Return the parameters of an app that searches documents which a request may not set: what its file decides."""
    own = {param.name for param in app.params if param.name in GRANTED and param.default not in (None, "", [])}
    return frozenset({"as", *own, *(("in",) if "as" in own else ())})


def _check_indexes(names: Json, repository: Repository) -> None:
    """Check that the indexes of a request are some of its caller; a folder is none."""
    if not names or repository.settings is None:
        return
    with open_library(repository.settings, reading=not has_library(repository.settings)) as library:
        known = library.names() if repository.scope is None else repository.scope.names(library)
    unknown = next((name for name in (names if isinstance(names, list) else [names]) if name not in known), None)
    if unknown is not None:
        listed = f"choose from {', '.join(known[:8])}" if known else "there is none yet"
        raise InputError(f"index {str(unknown)[:80]!r} not found; {listed}")


def _open_app(options: CompletionOptions, repository: Repository) -> App:
    app = served_app(load_unchanged(options.app), options.params, repository)
    return app.with_options(AnswerOptions(request=options.request))


def split_system(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """Return the text of the system messages that a history begins with, and the messages behind them."""
    count = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    if count == len(messages):
        raise InputError("the messages must contain one of the user")
    return "\n\n".join(message.text for message in messages[:count]), tuple(messages[count:])
