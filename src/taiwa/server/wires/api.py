"""The server's own API: conversations with their trees, states and bills, for the page and for programs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count, repeat
from typing import cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from taiwa.apps.catalog import load_app
from taiwa.apps.output_types import read_output_type
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App, RequestParts
from taiwa.flows.ask.dialogue import select_option
from taiwa.flows.program_turn import question_of
from taiwa.kernel.attachments import Attachment, read_attachments
from taiwa.kernel.errors import ConflictError, CorruptError, InputError, TaiwaError
from taiwa.kernel.messages import Constraint, Grammar, Notice, Regex, Sampling, TextDelta, ThinkingDelta
from taiwa.kernel.serialization import Json
from taiwa.kernel.wording import Wording
from taiwa.operations import result_json
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.export import export
from taiwa.operations.generate import answer_checker
from taiwa.operations.log import diff, log, sessions, show, title_of, tree
from taiwa.operations.message_lists import import_message_lists, read_message_lists
from taiwa.operations.resent_history import check_reply_options, served_app
from taiwa.operations.result_json import to_json
from taiwa.operations.results import CostResult
from taiwa.operations.state_values import set_value, why
from taiwa.operations.traces import MOST_ALTERNATIVES, tokens, trace
from taiwa.server import api_types
from taiwa.server.access import LOCAL_CALLER
from taiwa.server.conversation_turns import (
    TurnRequest,
    begin_conversation,
    check_tip,
    estimate_turns,
    interrupted_turn,
    open_conversation,
    repeat_request,
    rewrite_turn,
    run_to_json,
    texts_after,
)
from taiwa.server.http_responses import NO_STORE, ApiError, EventStream, SendNow, error_to_json, event, invalid
from taiwa.server.page.branches import leaf
from taiwa.server.repeats import attempt_of, request_key
from taiwa.server.request import (
    Fields,
    ServerState,
    caller_of,
    language_of,
    name_of,
    query_number,
    repository_of,
    state_of,
)
from taiwa.server.runs import InsertedDelta, RunEvent, Take, take_pieces
from taiwa.server.served import ServedModels
from taiwa.server.shared_store import Followable
from taiwa.server.wire_interface import COUNT, DELETE, GET, LIMIT, POST, TEXT, Described, Route, Wire
from taiwa.server.wires.answer_request import read_base64, read_params
from taiwa.server.wires.responses import is_response
from taiwa.sessions.commit_turn import TurnResult, decide_waiting, waiting_calls, waiting_id
from taiwa.sessions.replay import replay_history
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession
from taiwa.store import Store
from taiwa.store.runs import Axis
from taiwa.tools.registry import BUILT_IN

MOST_LISTED = 1000
MOST_TITLE = 200
"""Characters of a title."""
MOST_AUTHOR = 60
"""Characters in the name of the editor of a state."""
SAMPLING = ("temperature", "max_tokens")
"""The options of answers that are part of their sampling."""
FORMS = {"jsonl": "application/jsonl", "md": "text/markdown", "html": "text/html", "verifiable": "text/html"}
AXES: tuple[Axis, ...] = ("app", "model", "day", "session")


def _json(result: object) -> Json:
    found: Json = to_json(result)
    return found


def _existing(request: Request, kind: str, has: Callable[[Store, str], bool]) -> str:
    """Return a name from the path, of something that the caller has.

    Raises:
        ApiError: the caller has nothing of that name.
    """
    name = name_of(request)
    try:
        exists = has(repository_of(request).store, name)
    except InputError:  # it does not look like a hash
        exists = False
    if not exists:
        raise ApiError(404, f"{kind} {name[:80]!r} not found", code=f"{kind}_not_found")
    return name


def _session(request: Request) -> str:
    return _existing(request, "conversation", lambda store, name: store.refs.has(name))


def _node(request: Request) -> str:
    return _existing(request, "node", lambda store, name: store.nodes.has(name))


def _idle_session(request: Request) -> str:
    """Return the conversation that a path names.

    Raises:
        ApiError: the caller has none of that name, or it is answering.
    """
    name = _session(request)
    if state_of(request).followed.of_session(name, caller_of(request)) is not None:
        raise ApiError(409, f"{name!r} is answering; stop it or wait for its end", "conflict_error", "conflict")
    return name


def _model(request: Request, body: Fields) -> str:
    """Return the requested model, or "".

    Raises:
        ApiError: it is not served.
    """
    name = body.text("model", "")
    if name and name not in state_of(request).served.models:
        raise ApiError(
            404, Wording("the model {name!r} does not exist here (GET /v1/models lists all)", name=name[:80]), code="model_not_found", param="model"
        )  # fmt: skip
    return name


def read_files(body: Fields) -> tuple[Attachment, ...]:
    """Read the attachments of a body: objects with a `name` and their bytes in base64 as `data`.

    Raises:
        ApiError: the data is not Base64, or one is neither an image, a PDF nor text.
        InputError: there are too many.
    """
    files: list[Attachment] = []
    for each in body.objects("attachments"):
        each.check_names(api_types.NewAttachment.__annotations__)
        files.append(read_base64(each.text("data"), each.at("data"), each.text("name", "")))
    return read_attachments(files)


def _answer_options(body: Fields) -> AnswerOptions:
    """Read the options of a new conversation.

    Raises:
        ApiError: one has another type, or a tool is not built in.
        InputError: the type or the constraint cannot be read.
    """
    given = body.object("options")
    if given is None:
        return NO_OPTIONS
    given.check_names(api_types.NewOptions.__annotations__)
    unknown = next((name for name in given.texts("tools") if name not in BUILT_IN), None)
    if unknown is not None:
        raise given.error("tools", f"unknown tool {unknown[:40]!r}; choose from {', '.join(BUILT_IN)}", "invalid_value")
    sampling = Sampling(given.number("temperature", 0, 2), max_tokens=given.count("max_tokens", 1))
    output_type = read_output_type(given.text("type")) if given.text("type", "").strip() else None
    schema = None if output_type is None else output_type.json_schema
    constraint: Constraint | None = None
    for name, kind in (("regex", Regex), ("grammar", Grammar)):
        if text := given.text(name, "").strip():
            constraint = kind(text)
            answer_checker(constraint)
    return AnswerOptions(
        given.text("system", "") or None, sampling, given.texts("tools"), schema, RequestParts(constraint=constraint)
    )


def _changed_options(own: AnswerOptions, given: AnswerOptions, named: Collection[str]) -> AnswerOptions:
    """Return options with those of a request that it names, also as empty."""
    sampling = replace(own.sampling, **{key: getattr(given.sampling, key) for key in SAMPLING if key in named})
    chosen = given if {"regex", "grammar"} & {*named} else own
    return replace(
        own,
        sampling=sampling,
        system=given.system if "system" in named else own.system,
        tools=given.tools if "tools" in named else own.tools,
        schema=given.schema if "type" in named else own.schema,
        parts=replace(own.parts, constraint=chosen.parts.constraint),
    )


def list_conversations(request: Request) -> Json:
    """List conversations, all or those with a tag, or search them for words."""
    limit, query = query_number(request, "limit", 100, 1, MOST_LISTED), request.query_params.get("q", "")
    repository, tag = repository_of(request), request.query_params.get("tag", "")
    return _json(repository.store.search(query, limit) if query else sessions(repository, limit, tag=tag))


async def begin(request: Request, body: Fields) -> Json:
    """Start a conversation with its first turn; the response names its run."""
    state, repository = state_of(request), repository_of(request)

    def make() -> tuple[AsyncSession, TurnRequest]:
        params, files = read_params(body), read_files(body)
        app = load_app(state.served.app_file(body.text("app", "plain")))
        state.served.check_attachments(app, body.text("model", ""), files)
        options, name = _answer_options(body), body.text("name", "")
        turn = TurnRequest(body.text("text"), attachments=files)
        app = served_app(app, params, repository).with_options(options)
        check_reply_options(app)
        return begin_conversation(state.served, repository, state.turns, app, _model(request, body), name), turn

    session, turn = await asyncio.to_thread(make)
    try:
        followed = await state.followed.start(state.runs, caller_of(request), session, turn)
    except (ApiError, TaiwaError):  # no conversation without a message is left behind
        await asyncio.to_thread(repository.store.delete_session, session.name)
        raise
    return run_to_json(followed)


def history(request: Request) -> Json:
    """Return the nodes of a conversation, oldest first."""
    name, limit = _session(request), query_number(request, "limit", MOST_LISTED, 1, MOST_LISTED)
    repository = repository_of(request)
    return _json(log(repository, repository.session(name), limit))


def delete(request: Request) -> Json:
    """Delete a conversation."""
    name = _session(request)
    repository_of(request).store.delete_session(name)
    return {"deleted": name}


def all_trees(request: Request) -> Json:
    """Return all histories that names refer to, as a forest."""
    return _json(tree(repository_of(request)))


async def say(request: Request, body: Fields) -> Json:
    """Start a turn: at the end, after a node, replacing a turn, the last one again, or an unfinished one; the response names its run."""
    state = state_of(request)
    session, turn = await asyncio.to_thread(_next_turn, request, body)
    key = request_key(request)
    turn = replace(turn, attempt=attempt_of(key.attempt if key.idempotency else ""))
    return run_to_json(await state.followed.start(state.runs, caller_of(request), session, turn))


def _next_turn(request: Request, body: Fields) -> tuple[AsyncSession, TurnRequest]:
    name, state, repository = _idle_session(request), state_of(request), repository_of(request)
    prefix = body.text("prefix", "")
    if (number := body.count("option", 1)) is not None:
        body = Fields(body.data | {"text": _option(repository, name, number)})
    session = open_conversation(state.served, repository, state.turns, name, _model(request, body))
    parent, expected, edit = body.text("parent", ""), body.text("expected", ""), _edited(body)
    end = repository.store.resolve(parent or name)
    if body.flag("repeat"):
        return session, repeat_request(repository, name, expected, prefix)
    if body.flag("retry"):
        said = repository.turn(end)[1].user or ""
        return session, TurnRequest(said, parent, -1, "retry", expected=expected, prefix=prefix)
    texts = texts_after(repository, end, edit) if edit and body.flag("replay") else ()
    files = read_files(body) if "attachments" in body.data else None
    state.served.check_attachments(session.app, session.priced_model.model.name, files or ())
    reason = "edit" if edit else "turn"
    return session, TurnRequest(body.text("text"), parent, edit, reason, texts, files, expected, prefix)


def _edited(body: Fields) -> int:
    edit = body.data.get("edit") or 0
    if not isinstance(edit, int) or isinstance(edit, bool):
        raise invalid("edit", "edit must be the number of a turn", "invalid_type")
    return edit


def rewrite(request: Request, body: Fields) -> Json:
    """Change the text of a turn on a new branch, keeping all answers; no model is called."""
    name, repository = _idle_session(request), repository_of(request)
    edit, text, parent, expected = _edited(body), body.text("text"), body.text("parent", ""), body.text("expected", "")
    check_tip(name, repository.store.refs.tip(name), expected)
    end = repository.store.resolve(parent) if parent else ""
    return {"session": name, "node": rewrite_turn(repository, name, edit, text, end)}


def estimate(request: Request) -> api_types.TurnEstimate:
    """Estimate the cost of answering a turn again, and with the turns after it, from what they used before."""
    state, name, query, repository = state_of(request), _session(request), request.query_params, repository_of(request)
    turn = query_number(request, "turn", 1, 1, MOST_LISTED)
    session = open_conversation(state.served, repository, state.turns, name, query.get("model", ""))
    end = repository.store.resolve(query.get("node") or name)
    return estimate_turns(repository, session.priced_model, end, turn)


def _option(repository: Repository, name: str, number: int) -> str:
    """Return the text that selects an option of the question of a conversation, or of its last answer."""
    tip = repository.store.refs.tip(name)
    turn, asked = find_ask_turn(repository, tip), question_of(repository.store.nodes.get(tip).findings)
    options = () if turn is None else turn.result.options
    count = len(options if asked is None else asked.options)
    if number > count:
        what = f"choose from 1 to {count}" if count else "the last turn offers none"
        raise ApiError(409, f"option {number} does not exist; {what}", "conflict_error", "conflict", "option")
    if asked is not None:
        return str(number)
    label = options[number - 1].label
    return label if select_option(label, options) == options[number - 1] else str(number)


def question(request: Request) -> Json:
    """Return the clarifying question at which a conversation pauses, with its options and their passages; null if it does not."""
    name, repository = _session(request), repository_of(request)
    tip = repository.store.refs.tip(name)
    turn = find_ask_turn(repository, tip)
    asks = turn is not None and turn.result.question_back
    return {"session": name, "node": tip, "ask": to_json(turn) if asks else None}


def set_params(request: Request, body: Fields) -> Json:
    """Continue with other parameters of the app, such as the indexes to search; parameters that are not named stay."""
    name, repository = _idle_session(request), repository_of(request)
    params, given = read_params(body), _answer_options(body)
    named = frozenset() if body.object("options") is None else body.required("options").data.keys()
    here = repository.at(name).app
    repository.require_trust(here, "changing its parameters")
    app = load_app(state_of(request).served.app_file(here.name))
    changed = served_app(app, params, repository).values
    app = app.with_params({**here.values, **{key: changed[key] for key in params}})
    app = app.with_options(_changed_options(here.options, given, named))
    repository.trust(app.hash)
    return {"session": name, "node": repository.change_app(name, app).tip}


def waiting(request: Request) -> Json:
    """Return the tool calls for whose approval the interrupted turn waits; `approve` of `resume` decides on them."""
    interrupted = interrupted_turn(repository_of(request), _session(request))
    if interrupted is None:
        return {"id": "", "calls": []}
    calls: list[Json] = [{"name": each.name, "arguments": dict(each.arguments)} for each in waiting_calls(interrupted)]
    return {"id": waiting_id(interrupted), "calls": calls}


async def resume(request: Request, body: Fields) -> Json:
    """Complete the interrupted turn; answered calls are not repeated. The response names its run.

    `approve` decides on the calls that `waiting` names, if the turn still waits for them.
    """
    state = state_of(request)

    def reopen() -> AsyncSession:
        name, repository, turns = _idle_session(request), repository_of(request), state.turns
        interrupted = interrupted_turn(repository, name)
        if interrupted is None:
            raise ApiError(409, f"{name!r} has no interrupted turn", "conflict_error", "conflict")
        model = _model(request, body) or repository.store.runs.model(interrupted.id)
        if "approve" in body.data:
            if body.text("waiting") != waiting_id(interrupted):
                raise ApiError(409, f"{name!r} does not wait for these calls any more", "conflict_error", "conflict")
            turns = replace(turns, approve=decide_waiting(interrupted, repeat(body.flag("approve"))))
        return open_conversation(state.served, repository, turns, name, model)

    session = await asyncio.to_thread(reopen)
    return run_to_json(await state.followed.resume(state.runs, caller_of(request), session))


def undo(request: Request, body: Fields) -> Json:
    """Undo some turns."""
    return _move(request, body, repository_of(request).store.undo)


def redo(request: Request, body: Fields) -> Json:
    """Redo undone turns."""
    return _move(request, body, repository_of(request).store.redo)


def _move(request: Request, body: Fields, move: Callable[[str, int], str]) -> Json:
    name = _session(request)
    return {"session": name, "node": move(name, body.count("turns", 1, MOST_LISTED) or 1)}


def fork(request: Request, body: Fields) -> Json:
    """Name a branch that begins at a node."""
    name = _session(request)
    new, node = body.text("name"), body.text("node", name)
    return {"session": new, "node": repository_of(request).fork(node, new, name)}


def rename(request: Request, body: Fields) -> Json:
    """Rename a conversation."""
    name, new = _session(request), body.text("name")
    repository_of(request).store.refs.rename(name, new)
    return {"session": new}


def label(request: Request, body: Fields) -> Json:
    """Give a conversation a title in free words or tags, pin it, or archive it."""
    name = _session(request)
    title = None if body.data.get("title") is None else " ".join(body.text("title").split())[:MOST_TITLE]
    given = "pinned" in body.data or "archived" in body.data
    place = (1 if body.flag("pinned") else -1 if body.flag("archived") else 0) if given else None
    tags = body.texts("tags") if "tags" in body.data else None
    repository_of(request).store.refs.label(name, title=title, place=place, tags=tags)
    return {"session": name}


def state(request: Request) -> Json:
    """Return the state of a conversation, at its end or after a node."""
    node = request.query_params.get("node") or _session(request)
    return _json(repository_of(request).at(node))


def set_state(request: Request, body: Fields) -> Json:
    """Set a value of the state manually, as a separate node."""
    name, repository = _session(request), repository_of(request)
    path, value, author = body.text("path"), body.data.get("value"), body.text("author", "")[:MOST_AUTHOR]
    parent, expected = body.text("parent", ""), body.text("expected", "")
    check_tip(name, repository.store.refs.tip(name), expected)
    return _json(set_value(repository, name, path, value, author=author, at=parent)[0])


def cause(request: Request) -> Json:
    """Return the node that last set a value."""
    node, path = request.query_params.get("node") or _session(request), request.query_params.get("path", "")
    return _json(why(repository_of(request), path, node))


def end(request: Request) -> Json:
    """Return the end of the branch that continues a node."""
    name, node, repository = _session(request), request.query_params.get("node"), repository_of(request)
    if node is None:
        raise Fields({}).missing("node")
    return {"node": leaf(repository, name, repository.store.resolve(node))}


def keep(request: Request, body: Fields) -> Json:
    """Continue on the branch of a node, which becomes the end of the conversation; the other branches stay."""
    name, repository = _idle_session(request), repository_of(request)
    node, expected, tip = body.text("node"), body.text("expected", ""), repository.store.refs.tip(name)
    check_tip(name, tip, expected)
    kept = leaf(repository, name, repository.store.resolve(node))
    if kept != tip:
        repository.store.refs.move(name, kept, tip, "keep")
    return {"session": name, "node": kept}


def verify(request: Request) -> Json:
    """Replay every turn of a conversation from its records, without a call; every hash and state must match."""
    name, repository = _session(request), repository_of(request)
    path = [(each, node.kind == "turn") for each, node in repository.store.nodes.path(repository.store.refs.tip(name))]
    path.reverse()
    nodes = replayed = 0
    try:
        for node in replay_history(repository, repository.session(name)):
            if node.difference:
                raise CorruptError(f"node {node.hash[:12]}: {node.difference}")
            nodes, replayed = nodes + 1, replayed + (node.calls > 0)
    except CorruptError as error:
        turn = sum(is_turn for _, is_turn in path[: nodes + 1])
        at: dict[str, Json] = {"node": path[nodes][0], "turn": turn, "problem": error.message}
        return {"verified": False, "nodes": nodes, "replayed": replayed} | at
    return {"verified": True, "problem": "", "nodes": nodes, "replayed": replayed}


def export_conversation(request: Request) -> Response:
    """Export a conversation as `jsonl`, which the holder of the server's token gets with its app, `md`, `html`, or as HTML that verifies
    itself.
    """
    name, form = _session(request), request.query_params.get("form", "jsonl")
    if form not in FORMS:
        raise invalid("form", f"unknown form {form[:20]!r}; choose one of {', '.join(FORMS)}")
    app, language, repository = caller_of(request) == LOCAL_CALLER, language_of(request), repository_of(request)
    title = title_of(repository, next(ref for ref in repository.store.refs.list() if ref.name == name))
    title = " ".join(title.split())[:MOST_TITLE]
    text = export(repository, name, form, app=app, language=language, title=title)
    file = quote(f"{title[:60]}.{'html' if form == 'verifiable' else form}", safe="")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}", **NO_STORE}
    return Response(text, headers=headers, media_type=FORMS[form])


def import_file(request: Request, body: Fields) -> Json:
    """Import the text of a file, all or nothing: an exported conversation, whose every hash is checked, or messages of other programs.

    An exported conversation keeps its name unless that is taken. The model, tools and documents of its app are ignored unless the
    store trusts it, or it is served here.
    """
    text, name, served, repository = (
        body.text("text"),
        body.text("name", ""),
        state_of(request).served,
        repository_of(request),
    )
    if (lists := read_message_lists(text)) is not None:
        made = import_message_lists(repository, lists, name)
        return {"sessions": [*made], "turns": sum(here.count for here in made.values()), "trusted": True}
    lines = text.split("\n")  # `splitlines` splits at more than line feeds
    try:
        here = repository.import_lines(lines, name or None)
    except ConflictError:
        if name:
            raise
        here = repository.import_lines(lines, repository.store.refs.free_name("imported"))
    names: list[Json] = [ref.name for ref in repository.store.refs.list() if ref.tip == here.tip]
    if trusted := repository.store.nodes.is_trusted(here.app.hash) or _is_served(served, here.app):
        repository.trust(here.app.hash)
    return {"sessions": names, "turns": here.count, "trusted": trusted}


def _is_served(served: ServedModels, app: App) -> bool:
    """Report whether a new conversation could have this app: a served one, whose instructions and sampling may be others."""
    if (file := served.apps.get(app.name)) is None:
        return False
    with suppress(InputError):  # a parameter is required
        own, given = load_app(file).with_params({}), app.answer_options
        return app.hash in (own.hash, own.with_options(AnswerOptions(given.system, given.sampling)).hash)
    return False


def node(request: Request) -> Json:
    """Return a node with its calls, its passages and its clarifying question."""
    name, repository = _node(request), repository_of(request)
    shown, turn = to_json(show(repository, name)), find_ask_turn(repository, repository.store.resolve(name))
    return shown if turn is None else {**shown, "ask": to_json(turn)}


def trace_node(request: Request) -> Json:
    """Return the calls, tools, searches and scores of a node."""
    return _json(trace(repository_of(request), _node(request)))


def token_list(request: Request) -> Json:
    """Return the tokens of the answers of a node: forced tokens, alternatives, and positions in the schema."""
    name, served = _node(request), state_of(request).served
    most = query_number(request, "top", 5, 1, MOST_ALTERNATIVES)
    return _json(tokens(repository_of(request), name, served.model_named, most))


def compare(request: Request) -> Json:
    """Return the differences between two revisions."""
    before, after = request.query_params.get("before", ""), request.query_params.get("after", "")
    return _json(diff(repository_of(request), before, after))


def cost(request: Request) -> Json:
    """Return the bill by app, model, day or session."""
    wanted = request.query_params.get("by", "session")
    by: Axis | None = next((axis for axis in AXES if axis == wanted), None)
    if by is None:
        raise invalid("by", f"unknown axis {wanted[:20]!r}; choose one of {', '.join(AXES)}")
    return _json(CostResult(by, repository_of(request).store.costs(by)))


def list_apps(request: Request) -> Json:
    """List the served apps with their parameters."""
    found: list[Json] = []
    for name, file in state_of(request).served.apps.items():
        try:
            app = load_app(file)
        except TaiwaError as error:
            found.append({"name": name, "problem": error.message})
            continue
        params: list[Json] = [
            {"name": param.name, "type": param.type, "default": param.default, "required": param.required}
            for param in app.params
        ]
        found.append({"name": name, "about": app.about, "documents": app.documents is not None, "params": params})
    return found


async def changes(request: Request) -> Response:
    """Follow all conversations: those that move, are deleted, or are being answered by any program.

    `after` is the number of a change, as `Last-Event-ID`; by default, only future changes are reported. The events are
    `conversation` with its entry in the listing, `deleted`, `answering` and `answered`; `ready` means that all changes so far
    were reported.
    """
    state, caller, repository = state_of(request), caller_of(request), repository_of(request)
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    start = int(given[:18]) if given.isascii() and given.isdigit() else None
    refs = repository.store.refs
    names: set[str] = set()

    def look(known: tuple[int, int]) -> tuple[tuple[int, int], Json, set[str]]:
        moves = refs.moves()
        if moves == known:
            return moves, [], set()
        before = names.copy()
        names.clear()
        names.update(ref.name for ref in refs.list())
        return moves, to_json(sessions(repository, since=known[0])), before - names

    async def write() -> AsyncGenerator[bytes]:
        known = (start, -1) if start is not None else (await asyncio.to_thread(look, (0, 0)))[0]
        shown: dict[str, str] = {}
        ready = False
        yield b"retry: 1000\n\n"
        while not state.followed.stopping:
            version = state.followed.version
            now = {run.id: run for run in state.followed.open(caller)}
            known, moved, deleted = await asyncio.to_thread(look, known)
            for entry in reversed(cast("list[Json]", moved)):
                yield f"id: {known[0]}\n".encode() + event(entry, "conversation")
            for name in deleted:
                yield event({"session": name}, "deleted")
            for name in [name for name in shown if name not in now]:
                yield event({"run": name, "session": shown.pop(name)}, "answered")
            for run in now.values():
                if run.id not in shown:
                    shown[run.id] = run.session
                    data: Json = {"run": run.id, "session": run.session, "text": run.text, "client": run.client or None}
                    yield event(data, "answering")
            if not ready:
                ready = True
                yield event({}, "ready")
            await state.followed.wait(caller, version, known, refs.moves)

    return EventStream(write())


async def events(request: Request) -> Response:
    """Follow a run from its first event, or after `Last-Event-ID`."""
    happened = await _events_of(request)
    last = request.headers.get("last-event-id", "")
    start = int(last[:18]) + 1 if last.isascii() and last.isdigit() else 0

    async def write(send_now: SendNow) -> AsyncGenerator[bytes]:
        numbers = count()

        def numbered(kind: str, data: Json) -> bytes:
            number = next(numbers)
            return f"id: {number}\n".encode() + event(data, kind) if number >= start else b""

        take = take_pieces(lambda piece: numbered(KINDS[type(piece)], {"text": piece.text}), send_now)
        async for kind, data in happened(take):
            if part := numbered(kind, data):
                yield part
        yield event({}, "end")

    return EventStream(write)


async def _events_of(request: Request) -> Callable[[Take], AsyncIterator[tuple[str, Json]]]:
    """Return a function that yields the events of a run of the caller, by kind.

    Raises:
        ApiError: it does not exist, or belongs to another caller.
    """
    state, name, caller = state_of(request), name_of(request), caller_of(request)
    if (indexing := state.indexing.find(name, caller)) is not None:
        return lambda _: indexing.follow()
    return partial(_events_of_turns, await state.followed.get(name, caller), repository_of(request))


async def _events_of_turns(run: Followable, repository: Repository, take: Take) -> AsyncIterator[tuple[str, Json]]:
    async for each in run.follow(take=take):
        data = _event(each)
        if isinstance(each.event, TurnResult) and each.event.ask is not None and isinstance(data, dict):
            data = data | {"ask": to_json(await asyncio.to_thread(find_ask_turn, repository, each.event.node))}
        yield KINDS[type(each.event)], data


KINDS: Mapping[type, str] = {
    TurnResult: "turn", ApiError: "error", ThinkingDelta: "thinking", TextDelta: "text", InsertedDelta: "notice", Notice: "notice",
}  # fmt: skip
"""The events of a run by type."""


def _event(each: RunEvent) -> Json:
    if isinstance(each.event, ApiError):
        return error_to_json(each.event)
    text = str(each.event) if isinstance(each.event, Notice) else None
    found: Json = to_json(each.event) if isinstance(each.event, TurnResult) else {"text": text or each.event.text}
    return found


async def cancel(request: Request) -> Json:
    """Stop a run; a turn is committed with the text so far, and the next run of an index reads the rest."""
    state, name, caller = state_of(request), name_of(request), caller_of(request)
    if (indexing := state.indexing.find(name, caller)) is not None:
        indexing.cancel()
    else:
        await (await state.followed.get(name, caller)).stop()
    return {"cancelled": True}


async def end_lost(state: ServerState) -> None:
    """End the runs of a terminated server; a caller can resume their turns."""
    for run in await state.sharing.take_over(lambda name: not is_response(name)):
        await state.sharing.end_lost(run)


HERE = "/api/conversations/{name}"
wire = Wire(
    "api",
    (
        Route(
            "/api/conversations",
            list_conversations,
            GET,
            api=Described(
                list[result_json.ConversationEntry | result_json.FoundNode], query={"limit": LIMIT, "q": TEXT}
            ),
        ),
        Route(
            "/api/conversations",
            begin,
            POST,
            api=Described(api_types.RunStarted, api_types.FirstTurn, status=202),
        ),
        Route(HERE, history, GET, api=Described(list[result_json.NodeEntry], query={"limit": LIMIT})),
        Route(HERE, delete, DELETE, api=Described(api_types.Deleted)),
        Route(f"{HERE}/turns", say, POST, api=Described(api_types.RunStarted, api_types.NextTurn, status=202)),
        Route(f"{HERE}/rewrite", rewrite, POST, api=Described(api_types.Moved, api_types.Rewritten)),
        Route(
            f"{HERE}/estimate",
            estimate,
            GET,
            api=Described(api_types.TurnEstimate, query={"turn": LIMIT, "node": TEXT, "model": TEXT}),
        ),
        Route(f"{HERE}/params", set_params, POST, api=Described(api_types.Moved, api_types.NewParams)),
        Route(f"{HERE}/question", question, GET, api=Described(api_types.QuestionBack)),
        Route(f"{HERE}/waiting", waiting, GET, api=Described(api_types.WaitingCalls)),
        Route(f"{HERE}/resume", resume, POST, api=Described(api_types.RunStarted, api_types.ResumeTurn, status=202)),
        Route(f"{HERE}/undo", undo, POST, api=Described(api_types.Moved, api_types.MoveTurns)),
        Route(f"{HERE}/redo", redo, POST, api=Described(api_types.Moved, api_types.MoveTurns)),
        Route(f"{HERE}/fork", fork, POST, api=Described(api_types.Moved, api_types.NewFork)),
        Route(f"{HERE}/label", label, POST, api=Described(api_types.Renamed, api_types.NewLabel)),
        Route(f"{HERE}/keep", keep, POST, api=Described(api_types.Moved, api_types.KeptBranch)),
        Route(f"{HERE}/rename", rename, POST, api=Described(api_types.Renamed, api_types.NewName)),
        Route(f"{HERE}/state", state, GET, api=Described(result_json.StateAt, query={"node": TEXT})),
        Route(f"{HERE}/state", set_state, POST, api=Described(result_json.StateSet, api_types.NewValue)),
        Route(
            f"{HERE}/why",
            cause,
            GET,
            api=Described(
                result_json.Cause,
                query={"path!": api_types.PATH, "node": TEXT},
            ),
        ),
        Route(f"{HERE}/end", end, GET, api=Described(api_types.BranchEnd, query={"node!": TEXT})),
        Route(f"{HERE}/verify", verify, GET, api=Described(api_types.Verified)),
        Route(
            f"{HERE}/export",
            export_conversation,
            GET,
            api=Described(str, query={"form": {"enum": list(FORMS)}}, media=tuple(dict.fromkeys(FORMS.values()))),
        ),
        Route("/api/nodes/{name}", node, GET, api=Described(api_types.ShownNode)),
        Route("/api/nodes/{name}/trace", trace_node, GET, api=Described(result_json.JsonObject)),
        Route(
            "/api/nodes/{name}/tokens",
            token_list,
            GET,
            api=Described(Json, query={"top": COUNT | {"maximum": MOST_ALTERNATIVES}}),
        ),
        Route("/api/import", import_file, POST, api=Described(api_types.Imported, api_types.NewImport)),
        Route("/api/tree", all_trees, GET, api=Described(list[result_json.NodeEntry])),
        Route("/api/diff", compare, GET, api=Described(result_json.Difference, query={"before": TEXT, "after": TEXT})),
        Route("/api/cost", cost, GET, api=Described(list[api_types.CostEntry], query={"by": {"enum": list(AXES)}})),
        Route("/api/apps", list_apps, GET, api=Described(list[api_types.AppEntry])),
        Route("/api/events", changes, GET, api=Described(str, query={"after": TEXT}, media=("text/event-stream",))),
        Route("/api/runs/{name}/events", events, GET, api=Described(str, media=("text/event-stream",))),
        Route("/api/runs/{name}/cancel", cancel, POST, api=Described(api_types.Cancelled)),
    ),
    error_to_json,
    end_lost,
)
