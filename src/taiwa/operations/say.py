"""Open a conversation from options, resume a turn, preview the first request of an operation, and describe requests.

The events of a turn are those of the opened session: `TextDelta` and `Notice` while the answer streams, `TurnResult` last.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from taiwa.apps.catalog import DEFAULT_APP, convert_param, convert_params, load_app, load_source
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App, Param
from taiwa.conversation.history import Conversation, change_app
from taiwa.conversation.turn_prompt import stable_bytes, turn_request
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.execution import Observer, first_request
from taiwa.kernel.messages import Capability, JsonSchema, Message, Part, Request, Text, ToolCall
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.http_api.capabilities import file_text
from taiwa.models.providers import resolve_probed
from taiwa.operations.results import RequestPreview, UntrustedApp
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, has_moved_since, step_of
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session, chosen_model, open_priced_model
from taiwa.settings import NoModelError, Settings
from taiwa.store.runs import Run

if TYPE_CHECKING:
    from taiwa.kernel.runtime import Tool
    from taiwa.models.http_api.provider_interface import Target

ASSUMED: frozenset[Capability] = frozenset({"json_schema", "tools"})
"""Capabilities of an unknown server."""
MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its text: its role and delimiters."""
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
    from taiwa.models.providers import resolve_probed

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
    return app.with_params(values)


def edited_app(app: App, path: str = "") -> App | None:
    """Return the app of the current file, with the same parameters and options; None if the file is unchanged or deleted.

    An app outside the app folders is found only by its path.

    Raises:
        ConfigError: no app file was found at the path, or it has an error.
        InputError: the file is of another app, or the parameters do not fit it any more.
    """
    try:
        file = load_app(path or app.name)
    except ConfigError:
        if path:
            raise
        return None
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
        ConfigError: no app file was found at the path, or it has an error.
        InputError: the app was imported, the file is of another app, or the parameters no longer fit.
    """
    now = repository.at(session).app
    repository.require_trust(now, "updating it")
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
    """Return the interrupted turn at the end of a session, which its next turn leaves behind; None without one."""
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


def preview_turn(
    conversation: Conversation,
    text: str,
    tools: "Sequence[Tool]" = (),
    target: "Target | None" = None,
    attachments: Sequence[Attachment] = (),
) -> RequestPreview:
    """Return the request that a turn would send first; nothing is sent. With a target it includes the body on the wire;
    without one the server is assumed to support schemas and function calling.

    Raises:
        InputError: the text is empty or too large, or the app searches documents before it calls a model.
        UnsupportedError: the model does not support the request.
    """
    capabilities = ASSUMED if target is None else target.capabilities
    request = first_turn_request(conversation, text, tools, capabilities, attachments)
    preview = RequestPreview(request, request_tokens(request), _cached_tokens(conversation, request))
    if target is None or target.codec is None:
        return preview
    call = target.codec.encode(request)
    return replace(preview, url=f"{target.base_url}/{call.path.lstrip('/')}", body=json.loads(call.body))


def first_turn_request(
    conversation: Conversation,
    text: str,
    tools: "Sequence[Tool]",
    capabilities: frozenset[Capability],
    attachments: Sequence[Attachment] = (),
) -> Request:
    """Return the request that a turn would send first to a model of these capabilities; nothing is sent.

    Raises:
        InputError: as `preview_turn`.
    """
    if conversation.app.documents is not None:
        raise InputError(
            f"the app {conversation.app.name!r} searches documents before its first request; see taiwa ask -v"
        )
    turn_input = TurnInput(conversation, text, attachments=tuple(attachments))
    return first_request(step_of(turn_input, TurnOptions(), tools)(conversation), capabilities)


def capabilities_of(settings: Settings) -> frozenset[Capability]:
    """Return what the server of the configured model can do; without a model it is assumed."""
    return ASSUMED if settings.model is None else open_priced_model(None, settings).model.capabilities


def _cached_tokens(conversation: Conversation, request: Request) -> int:
    """Estimate the tokens of the prefix that the request shares with the one of the last turn."""
    if not conversation.turns:
        return 0
    before = replace(conversation, turns=conversation.turns[:-1])
    now = stable_bytes(request).decode()
    past = conversation.turns[-1]
    constrained = request.constraint is not None
    last = stable_bytes(turn_request(before, past.user, past.attachments, constrained=constrained)).decode()
    shared = next((at for at, (a, b) in enumerate(zip(now, last, strict=False)) if a != b), min(len(now), len(last)))
    return estimate_tokens(now[:shared])


def known_tools(app: App) -> "tuple[Tool, ...]":
    """Return the built-in tools and plug-ins of an app; tools passed by a program are unknown here."""
    if not app.tools:
        return ()
    from taiwa.tools.registry import named_tool

    return tuple(tool for tool in map(named_tool, app.tools) if tool is not None)


def request_text(request: Request) -> str:
    """Write a request as text: every message with its role and an estimate of its tokens.

    A part marked "not kept" is sent with this request only; the next request begins with everything above it too.
    """
    blocks = [_message(message) for message in request.messages]
    if isinstance(request.constraint, JsonSchema):
        blocks.append(f"── constraint: JSON Schema {request.constraint.name!r} ──")
    if request.tools:
        blocks.append(f"── tools: {', '.join(tool.name for tool in request.tools)} ──")
    files = sum(each.kind is not None for message in request.messages for each in message.attachments)
    besides = f", and {_counted(files, 'image or PDF', 'images or PDFs')}" if files else ""
    size = f"{_about(request_tokens(request))} in {_counted(len(request.messages), 'message')}{besides}"
    blocks.append(f"── {size} ──")
    return "\n\n".join(blocks)


def request_tokens(request: Request) -> int:
    """Estimate the tokens of a request without a tokenizer, excluding images and PDFs, which servers count."""
    return sum(
        MESSAGE_TOKENS + sum(estimate_tokens(_words(part)) for part in message.parts) for message in request.messages
    )


def _message(message: Message) -> str:
    kept = [part for part in message.parts if not _transient(part)]
    blocks = [(message.role, kept), (f"{message.role}, not kept", [part for part in message.parts if _transient(part)])]
    lines: list[str] = []
    for title, parts in blocks:
        if parts or title == message.role:
            lines.append(f"── {title} ({_about(sum(estimate_tokens(_words(part)) for part in parts))}) ──")
            lines += [_words(part) for part in parts]
    return "\n".join(lines)


def _transient(part: Part) -> bool:
    return isinstance(part, Text) and part.transient


def _about(tokens: int) -> str:
    return f"about {_counted(tokens, 'token')}"


def _counted(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or f'{word}s'}"


def _words(part: Part) -> str:
    if isinstance(part, Attachment):
        if part.kind is None and part.data:
            return file_text(part).text
        return f"[{part.label}: {part.media_type}, {part.size:,} bytes]"
    return f"{part.name} {part.arguments}" if isinstance(part, ToolCall) else part.text


def untrusted_apps(repository: Repository, settings: Settings, name: str = "") -> tuple[UntrustedApp, ...]:
    """Return the untrusted apps of a store, oldest first; with a name those of that app, session or beginning of a hash.

    Raises:
        InputError: a name is given, and no untrusted app has it.
    """
    store = repository.store
    sessions: dict[str, list[str]] = {}
    for ref in store.refs.list():
        sessions.setdefault(store.nodes.get(ref.tip).app, []).append(ref.name)
    found = tuple(
        _describe(load_source(source), tuple(sessions.get(source.hash, ())), settings)
        for source in store.nodes.untrusted_apps()
        if name in ("", source.name, *sessions.get(source.hash, ())) or source.hash.startswith(name)
    )
    if name and not found:
        raise InputError(f"no untrusted app is named {name!r}; `taiwa apps trust` lists them")
    return found


def _describe(app: App, sessions: tuple[str, ...], settings: Settings) -> UntrustedApp:
    values = app.document_settings
    documents, principals = (
        tuple(map(str, each)) if isinstance(each, list) else () for each in (values.get("in"), values.get("as"))
    )
    user = str(values.get("user") or "")
    searches = app.documents is not None
    host = _host(app.model, settings)
    limits = app.options.limits or UsageLimits()
    return UntrustedApp(
        app.hash,
        app.name,
        sessions,
        app.model,
        host,
        app.tools,
        app.flow,
        searches,
        documents,
        principals,
        user,
        limits.cost,
    )


def _host(model: str, settings: Settings) -> str:
    """Return the host of a model's server; the name of the model if it cannot be resolved."""
    try:
        return (urlsplit(resolve_probed(model, settings).base_url).hostname or "") if model else ""
    except ConfigError:
        return model
