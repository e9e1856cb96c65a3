"""Open a conversation from options, and resume a turn.

The events of a turn are those of the opened session: `TextDelta` and `Notice` while the answer streams, `TurnResult` last.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from taiwa.apps.catalog import DEFAULT_APP, apps, convert_param, convert_params, load_app, load_source, with_places
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App, Param
from taiwa.conversation.history import Conversation, change_app
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.execution import Observer
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.providers import resolve_probed
from taiwa.sessions.commit_turn import PricedModel, TurnOptions, has_moved_since
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session, chosen_model, open_priced_model
from taiwa.settings import NoModelError, Settings
from taiwa.store.runs import Run

if TYPE_CHECKING:
    from taiwa.models.http_api.provider_interface import Target

AskParam = Callable[[Param], str]


@dataclass(frozen=True, slots=True)
class SayOptions:
    """The conversation of a turn.

    - `app`: its name, a file, or an app whose parameters are filled in ("": `plain`).
    - `session`: its name; a new one is created under it ("": a free name).
    - `continue_latest`: whether to continue the latest conversation.
    - `params`: parameters of a new conversation, as text.
    - `answers`: options of its answers, from its next turn on.
    """

    app: str | App = ""
    session: str = ""
    continue_latest: bool = False
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    answers: AnswerOptions = NO_OPTIONS


def open_session(
    repository: Repository,
    settings: Settings,
    options: SayOptions,
    turns: TurnOptions,
    *,
    observers: Iterable[Observer] = (),
    ask: AskParam | None = None,
    choose_model: Callable[[Settings], Settings] | None = None,
) -> Session:
    """Open the conversation that the options name, or create one; `ask` is called for parameters that are missing, and
    `choose_model` if no model is set.

    Raises:
        TaiwaError: the app, the model or the store cannot be opened, or the options contradict the conversation.
    """
    repository.place, repository.settings = settings.store, settings
    session, conversation = find_or_create_session(repository, options, ask)
    try:
        priced_model = model_of(repository, settings, conversation, session)
    except NoModelError:
        if choose_model is None:
            raise
        repository.settings = settings = choose_model(settings)
        priced_model = model_of(repository, settings, conversation, session)
    turns = with_own_limits(turns, settings, conversation)
    return Session(repository, session, conversation, priced_model, options=turns, observers=observers)


def with_own_limits(turns: TurnOptions, settings: Settings, conversation: Conversation) -> TurnOptions:
    """Return options with the limits that a conversation keeps, unless an argument sets another cost limit."""
    own = conversation.app.answer_options.limits
    if own is None or settings.is_argument("max_cost"):
        return turns
    return replace(turns, limits=own.under(replace(settings.limits, requests=None, tool_calls=None, cost=None)))


def find_or_create_session(
    repository: Repository, options: SayOptions, ask: AskParam | None = None
) -> tuple[str, Conversation]:
    """Return a session name ("" if still to be chosen) and its existing or new conversation.

    Raises:
        InputError: the conversation exists and has another app, or parameters were given for it.
    """
    name = options.session or (repository.session() if options.continue_latest else "")
    app, params = options.app, options.params

    def load() -> App:
        loaded = app if isinstance(app, App) else open_app(app or DEFAULT_APP, params, ask)
        return set_options(loaded, options.answers)

    found = repository.find_or_begin(name, app, params, load)
    return name, found if found.stored_tip is None else change_options(repository, found, options.answers)


def set_options(app: App, changes: AnswerOptions) -> App:
    """Return an app with the user's options of its answers, on top of the present ones.

    Raises:
        InputError: the app has its own instructions or reply format, and the changes set another.
    """
    if changes.system is not None and app.body:
        raise InputError(
            f"the app {app.name!r} has its own instructions; a system prompt requires an app without instructions, such as plain"
        )
    return app if changes == NO_OPTIONS else app.with_options(app.options.updated(changes))


def change_options(repository: Repository, found: Conversation, changes: AnswerOptions) -> Conversation:
    """Return a conversation with the user's options of its answers; a stored one keeps them from its next turn on.

    Raises:
        InputError: its app does not support the changes, or is an untrusted import.
    """
    app = set_options(found.app, changes)
    if found.stored_tip is None:
        return repository.start(app)
    if app.hash == found.app.hash:
        return found
    named = load_source(repository.store.nodes.app(found.app.hash))
    if named.model or named.tools or named.documents is not None or named.flow:
        repository.require_trust(named, "changing its options")
    return change_app(found, app)


def model_of(repository: Repository, settings: Settings, conversation: Conversation, session: str = "") -> PricedModel:
    """Open the model of a conversation: the named one, else the one that answered so far, else the configured one.

    Raises:
        ConfigError: the model is unknown, or its key is missing.
    """
    return open_priced_model(None, settings, conversation.app, last=_last_model(repository, conversation, session))


def target_of(
    repository: Repository, settings: Settings, conversation: Conversation, session: str = ""
) -> "Target | None":
    """Return the server of the model of a conversation; None if no model is set.

    Raises:
        ConfigError: the model is unknown.
    """

    name = chosen_model(settings, conversation.app, _last_model(repository, conversation, session))
    return resolve_probed(name, settings) if name else None


def _last_model(repository: Repository, conversation: Conversation, session: str) -> str:
    return "" if conversation.stored_tip is None else repository.last_model(conversation.stored_tip, session)


def open_app(name: str, params: Mapping[str, str], ask: AskParam | None = None) -> App:
    """Open an app with its parameters; `ask` is called for a required parameter that is missing.

    Raises:
        ConfigError: the app is not found, or has an error.
        InputError: a parameter is unknown, missing or has the wrong type.
    """
    app = load_app(name)
    values = convert_params(app, params)
    for param in app.params:
        if ask is not None and param.name not in values and param.default is None and param.required:
            values[param.name] = convert_param(param, ask(param))
    return with_places(app, values)


def edited_app(app: App, path: str = "") -> App | None:
    """Return the app of the current file, with the same parameters and options; None if the file is unchanged.

    An app outside the app folders is found only by its path.

    Raises:
        ConfigError: no app file was found, or it has an error.
        InputError: the file is of another app, or the parameters do not fit it any more.
    """
    file = load_app(path or app.name)
    if file.name != app.name:
        raise InputError(f"{path} is the app {file.name!r}, not {app.name!r}")
    if file.source.source == app.source.source:
        return None
    known = {param.name for param in file.params}
    filled = file.with_params({name: data for name, data in app.values.items() if name in known})
    return filled.with_options(app.options)


def update_app(repository: Repository, session: str, path: str = "") -> bool:
    """Update a session to the current version of its app file, by default found by name; return whether the file differs.

    Raises:
        ConfigError: no app file was found, or it has an error.
        InputError: the app was imported, the file is of another app, or the parameters no longer fit.
    """
    now = repository.at(session).app
    repository.require_trust(now, "updating it")
    if not path and not any(each.name == now.name for each in apps()):
        raise ConfigError(
            f"app {now.name!r} not found among your apps; name its file: taiwa apps update {session} FILE"
        )
    app = edited_app(now, path)
    if app is not None:
        repository.change_app(session, app)
    return app is not None


def find_turn(repository: Repository, revision: str) -> tuple[str, int]:
    """Return the session of a revision, and its distance in turns (1 is the last turn).

    Raises:
        InputError: the revision is not a turn of a session.
    """
    tip, session = repository.store.resolve(revision), repository.store.refs.session_of(revision)
    if not session:
        refs = repository.store.refs.list()
        session = next(
            (ref.name for ref in refs if any(name == tip for name, _ in repository.store.nodes.path(ref.tip))), ""
        )
    turns = [name for name, node in repository.store.nodes.path(repository.at(session).tip) if node.kind == "turn"]
    if tip not in turns:
        raise InputError(f"{revision!r} is not a turn of {session}; give a session and a turn, such as chat-1:2")
    return session, turns.index(tip) + 1


def interrupted_runs(repository: Repository, session: str = "") -> tuple[Run, ...]:
    """Return the interrupted turns of all sessions, or of one, oldest first.

    Raises:
        InputError: no turn was interrupted, or the session does not exist.
    """
    runs = tuple(run for run in repository.store.runs.open_runs(session or None) if run.ref)
    if not runs:
        if session:
            repository.session(session)
        raise InputError("nothing to resume: no turn was cut off")
    return runs


def discard_interrupted(repository: Repository, session: str = "") -> Run:
    """Abandon the latest interrupted turn, of a session if one is named, and return it; its calls stay on the bill.

    Raises:
        InputError: no turn was interrupted, or the session does not exist. ConflictError: another process resumed it.
    """
    run = repository.store.runs.claim(interrupted_runs(repository, session)[-1].id)
    repository.store.runs.end(run.id, "abandoned")
    return run


def find_passed_over(session: Session) -> Run | None:
    """Return the interrupted turn at the end of a session, which its next turn abandons; None without one."""
    runs = session.repository.store.runs.open_runs(session.name)
    return next((run for run in reversed(runs) if not has_moved_since(session.repository, run)), None)


def open_interrupted(
    repository: Repository, settings: Settings, turns: TurnOptions, session: str = ""
) -> tuple[Session, tuple[str, ...]]:
    """Open the latest interrupted turn, to resume it under its limits; also return the sessions of the others.

    Raises:
        InputError: no turn was interrupted, or the session does not exist.
    """
    runs = interrupted_runs(repository, session)
    run, others = runs[-1], {run.ref for run in runs[:-1]}
    begun = repository.start(repository.app(run.app or ""))
    conversation = repository.at(run.ref) if repository.store.refs.has(run.ref) else begun
    last = repository.store.runs.model(run.id) or _last_model(repository, conversation, run.ref)
    model = open_priced_model(None, settings, conversation.app, last=last)
    turns = with_own_limits(turns, settings, begun)
    limit = run.options.get("max_cost") if isinstance(run.options, dict) else None
    if turns.cost_limit is None and isinstance(limit, int) and not settings.is_argument("max_cost"):
        turns = replace(turns, limits=replace(turns.limits or UsageLimits(), cost=limit))
    return Session(repository, run.ref, conversation, model, options=turns), tuple(sorted(others))
