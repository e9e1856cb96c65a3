"""Responses (`/v1/responses`) over the nodes and sessions of the store.

`previous_response_id` is the parent node, so using an id twice is a fork. A response belongs to the store: a disconnected client
may resume from any of its events.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from taiwa.conversation.app import EXTRACT, ROUTE, SOLVE, AnswerOptions, App, RequestParts, settled
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import JsonSchema, Sampling, TextDelta, ThinkingDelta, ToolSpec
from taiwa.kernel.runtime import AnyModel
from taiwa.kernel.serialization import Json, item_at, items_at
from taiwa.operations.resent_history import (
    Completion,
    CompletionOptions,
    Place,
    before_last_turn,
    begin_compaction,
    begin_completion,
    estimate_input,
    split_system,
)
from taiwa.server.conversation_turns import LOCKED, session_of_run
from taiwa.server.http_responses import ApiError, EventStream, SendNow, error_to_json, event, invalid, wait_connected
from taiwa.server.repeats import RequestKey, attempt_of, request_key
from taiwa.server.request import (
    Fields,
    ServerState,
    caller_of,
    name_of,
    page_for,
    query_number,
    read_body,
    repository_of,
    start_run,
    state_of,
)
from taiwa.server.runs import LiveRun, take_pieces
from taiwa.server.shared_store import RemoteRun
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.answer_request import (
    MOST_LOGPROBS,
    AnswerRequest,
    Extension,
    checked_tools,
    pass_on,
    passed_on,
    read_extension,
    read_penalties,
    remembered,
    unasked,
    unsupported_tool,
)
from taiwa.server.wires.chat_completions import read_effort, read_format, read_function, read_tool_choice
from taiwa.server.wires.conversations import conversation_of, find_item, pending_messages, read_metadata, take_pending
from taiwa.server.wires.files import with_files
from taiwa.server.wires.response_items import (
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    NAMESPACE,
    Body,
    EventWriter,
    finished,
    is_answer,
    listed_item,
    name_in,
    pieces_of,
    read_input,
    recorded_events,
    response_of_item,
    write_response_usage,
)
from taiwa.server.wires.vector_stores import RESULTS, FileSearch, check_indexes, read_file_search, with_searches
from taiwa.server.wires.vector_stores import TYPE as FILE_SEARCH
from taiwa.sessions.commit_turn import TurnResult, decide_waiting, waiting_id
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession
from taiwa.store.server_records import ServedObject

READ = frozenset(
    """model input instructions previous_response_id conversation stream stream_options store background tools tool_choice
    text temperature top_p max_output_tokens top_logprobs include metadata reasoning truncation presence_penalty
    frequency_penalty taiwa""".split()
)
IGNORED = frozenset(
    """user safety_identifier moderation prompt_cache_key prompt_cache_options prompt_cache_retention
    max_tool_calls context_management client_metadata""".split()
)
HINTS = frozenset({"service_tier", "parallel_tool_calls"})
"""Fields that are passed on to servers that take them."""
KNOWN = READ | IGNORED | HINTS
UNSUPPORTED = frozenset({"prompt"})
MOST_EVENTS = 2**53
"""The largest number of an event that a client can ask for: the largest integer of JavaScript."""
INCLUDES = frozenset(
    """file_search_call.results web_search_call.results web_search_call.action.sources message.input_image.image_url
    computer_call_output.output.image_url code_interpreter_call.outputs reasoning.encrypted_content
    message.output_text.logprobs""".split()
)


WAITING = "waiting_run"
"""The member of a stored response with the number of its run, which waits for the approval of tool calls."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """What a response follows: the id of another response, or of a conversation; and of the compaction that covers the input before it."""

    response: str
    conversation: str
    compaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest(AnswerRequest):
    """A parsed request."""

    items: list[Json]
    follows: Predecessor
    background: bool
    stores: bool
    search: FileSearch | None
    included: Body
    """What the final event includes: `results` of its search, at most this number, and the names of parts of `taiwa`."""
    begun: Body
    key: RequestKey | None = None
    decision: tuple[str, Mapping[str, bool]] | None
    """The response whose tool calls the request decides on, and which of them are approved, by the ids of their items."""


@dataclass(slots=True)
class LiveResponse:
    """A response in progress."""

    caller: str
    run: LiveRun
    begun: Body
    final: Body | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.begun["id"])

    def end(self) -> Body:
        """Write its body after the end of its run; the body is kept here, whatever fails later."""
        self.final = finished(self.begun, self.run.events, int(time.time()), cancelled=self.run.abandoned)
        return self.final

    async def finished(self) -> Body | None:
        """Return its body after the end of its run."""
        return self.final

    async def stop(self) -> None:
        """Cancel its run, and wait for the end."""
        self.run.cancel(abandon=True)
        await self.run.end()


@dataclass(frozen=True, slots=True)
class RemoteResponse:
    """A response that another server is writing."""

    repository: Repository
    run: RemoteRun
    begun: Body

    async def finished(self) -> Body | None:
        """Return its body after the end of its run, as stored by the other server."""
        found = await asyncio.to_thread(self.repository.store.served.find, str(self.begun["id"]))
        return None if found is None else cast("Body", found.body["response"])

    async def stop(self) -> None:
        """Let the other server cancel its run, and wait for the end."""
        await self.run.stop()
        async for _ in self.run.follow():
            pass


def read_request(body: Fields, repository: Repository, most: int) -> ResponseRequest:
    """Read a request.

    Raises:
        ApiError: a field is missing, unknown, or has a wrong type or value.
    """
    fields = body.others(KNOWN, UNSUPPORTED) | read_penalties(body)
    stream_options = body.object("stream_options")
    if stream_options is not None:
        stream_options.check_names({"include_obfuscation"})
    model = body.text("model")
    body, compaction = _behind_compaction(body)
    items, messages = read_input(body, lambda name: find_item(repository, name), most)
    instructions = body.optional_text("instructions")
    leading, said = split_system(messages)
    leading, said = (leading, said) if said else ("", messages)
    previous, conversation = body.optional_text("previous_response_id") or "", _read_conversation(body)
    decision = _read_decision(items)
    if not (said or previous or conversation or decision):  # items that wait in a conversation can be answered
        raise invalid("input", "input must contain a message of the user or a result of a tool", "invalid_value")
    tools, search = _read_tools(body), read_file_search(body)
    tool_choice, callable_tools = ("auto", tools) if search else read_tool_choice(body, tools)
    form = None if (text := body.object("text")) is None else text.object("format")
    constraint = None if form is None else read_format(form)
    logprobs = body.count("top_logprobs", 0, MOST_LOGPROBS)
    if "message.output_text.logprobs" in body.texts("include"):
        logprobs = max(logprobs or 0, 1)
    reasoning = body.object("reasoning")
    options = AnswerOptions(
        "\n\n".join(filter(None, (instructions, leading))) or None,
        parts=RequestParts(callable_tools, tool_choice, constraint, top_logprobs=logprobs or 0),
        sampling=Sampling(
            body.number("temperature", 0, 2), body.number("top_p", 0, 1), body.count("max_output_tokens", 1),
            effort="" if reasoning is None else read_effort(reasoning, "effort"),
        ),
    )  # fmt: skip
    if previous and conversation:
        raise invalid("conversation", "previous_response_id and conversation exclude each other", "invalid_value")
    stores, background = body.flag("store", default=True), body.flag("background")
    if background and not stores:
        raise invalid("background", "background requires store: true", "invalid_value")
    begun = _begun(body, model, previous, conversation, options, tools, instructions, form, stores=stores)
    extension = read_extension(body, INCLUDES)
    included: Body = {} if extension is None else {"taiwa": [*extension.include]}
    if search is not None and RESULTS in body.texts("include"):
        included["results"] = search.most
    return ResponseRequest(
        model=model, messages=said, items=items, options=options, follows=Predecessor(previous, conversation, compaction),
        streams=body.flag("stream"), background=background, stores=stores, extension=extension,
        search=search, included=included, begun=begun, decision=decision,
        passed=pass_on(fields, body, HINTS),
    )  # fmt: skip


def _read_decision(items: Sequence[Json]) -> tuple[str, dict[str, bool]] | None:
    """Return the id of the response whose tool calls the last items of the input approve or refuse, and the decisions; None without one."""
    found: dict[str, bool] = {}
    for index, each in reversed([*enumerate(items)]):
        if not isinstance(each, dict) or each.get("type") != APPROVAL_RESPONSE:
            break
        item = Fields.of(each, f"input[{index}]")
        found.setdefault(item.text("approval_request_id"), item.flag("approve"))
    return (response_of_item(next(iter(found))), found) if found else None


def _behind_compaction(body: Fields) -> tuple[Fields, str]:
    """Return a body whose input begins after its last compaction, and the id of the compaction; its summary covers everything
    before it.
    """
    items = body.data.get("input")
    listed = items if isinstance(items, list) else []
    found = [index for index, item in enumerate(listed) if isinstance(item, dict) and item.get("type") == "compaction"]
    if not found:
        return body, ""
    item = Fields.of(listed[found[-1]], f"input[{found[-1]}]")
    return Fields({**body.data, "input": listed[found[-1] + 1 :]}), item.text("encrypted_content")


def _read_conversation(body: Fields) -> str:
    given = body.data.get("conversation")
    if isinstance(given, dict):
        return Fields(given, "conversation").text("id")
    return body.optional_text("conversation") or ""


@remembered
def _read_tools(body: Fields) -> tuple[ToolSpec, ...]:
    """Read the functions, also those of a namespace; tools that only another server could run are left out beside others."""
    tools: list[ToolSpec] = []
    unusable: list[Fields] = []
    for item in body.objects("tools"):
        kind = item.text("type")
        if kind == "function":
            tools.append(read_function(item))
        elif kind == NAMESPACE:
            inner = [*item.objects("tools")]
            spec = map(read_function, (each for each in inner if each.text("type") == "function"))
            tools += [replace(each, name=name_in(item.text("name"), each.name)) for each in spec]
            unusable += (each for each in inner if each.text("type") != "function")
        elif kind != FILE_SEARCH:
            unusable.append(item)
    if unusable and not tools:
        raise unsupported_tool(unusable[0], "function or file_search")
    return checked_tools(tools, "tools")


def _begun(
    body: Fields,
    model: str,
    previous: str,
    conversation: str,
    options: AnswerOptions,
    functions: tuple[ToolSpec, ...],
    instructions: str | None,
    form: Fields | None,
    *,
    stores: bool,
) -> Body:
    """Return the body of a response in progress."""
    reasoning = body.object("reasoning")
    sampling = options.sampling
    written: Json = {"type": "text"}
    if isinstance(options.parts.constraint, JsonSchema) and form is not None:
        written = {"type": form.text("type")}
        if form.text("type") == "json_schema":
            schema: Json = dict(options.parts.constraint.schema)
            written |= {
                "name": options.parts.constraint.name, "description": form.optional_text("description"), "schema": schema,
                "strict": form.flag("strict"),
            }  # fmt: skip
    specs = {tool.name: tool for tool in functions}
    tools: list[Json] = [
        {
            "type": "function", "name": tool.name, "description": tool.description or None,
            "parameters": dict(tool.parameters), "strict": item.flag("strict"),
        }
        for item in body.objects("tools")
        if item.text("type") == "function"
        for tool in (specs[item.text("name")],)
    ]  # fmt: skip
    tools += [item.data for item in body.objects("tools") if item.text("type") in (NAMESPACE, FILE_SEARCH)]
    return {
        "id": f"resp_{token_hex(16)}",
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "background": body.flag("background"),
        "error": None,
        "incomplete_details": None,
        "instructions": instructions,
        "max_output_tokens": sampling.max_tokens,
        "max_tool_calls": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": body.flag("parallel_tool_calls", default=True),
        "previous_response_id": previous or None,
        "conversation": {"id": conversation} if conversation else None,
        "prompt_cache_key": body.optional_text("prompt_cache_key"),
        "reasoning": {
            "effort": None if reasoning is None else reasoning.optional_text("effort"),
            "summary": None if reasoning is None else reasoning.optional_text("summary"),
        },
        "safety_identifier": body.optional_text("safety_identifier"),
        "service_tier": "default",
        "store": stores,
        "temperature": 1.0,
        "text": {"format": written},
        "tool_choice": body.data.get("tool_choice") or "auto",
        "tools": tools,
        "top_logprobs": options.parts.top_logprobs,
        "top_p": 1.0,
        "truncation": body.choice("truncation", ("auto", "disabled"), "disabled"),
        "usage": None,
        "user": body.optional_text("user"),
        "metadata": read_metadata(body),
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


async def _on_end(state: ServerState, live: LiveResponse, end: Callable[[LiveRun], Body], run: LiveRun) -> None:
    try:
        live.final = await asyncio.to_thread(end, run)
    finally:
        state.live.pop(live.id, None)


def _end(state: ServerState, live: LiveResponse, items: list[Json], included: Body, run: LiveRun) -> Body:
    """Write a finished response with the parts that its request `included`, and store it."""
    repository = state.repository(live.caller)
    final = with_searches(live.end(), run.last, repository, cast("int | None", included.get("results")))
    if isinstance(run.last, TurnResult):
        if isinstance(conversation := live.begun["conversation"], dict):
            take_pending(repository, str(conversation["id"]))
        if (names := included.get("taiwa")) is not None:
            extension = Extension(include=tuple(map(str, cast("list[Json]", names))))
            final["taiwa"] = extension.write([run.last], repository, state.served)
        else:
            final |= unasked(run.completions, [run.last])
    if live.begun["store"]:
        _store(repository, items, live, final)
    return final


async def create(request: Request) -> "Response | Json":
    """Create a response: as one object, as a stream, or in the background."""
    state, caller = state_of(request), caller_of(request)
    state.runs.check_room(caller)
    body = await with_files(request, await read_body(request), "input")

    def read() -> ResponseRequest:
        asked = read_request(body, state.repository(caller), state.options.limits.messages)
        return replace(asked, search=check_indexes(request, asked.search), key=request_key(request))

    asked = await asyncio.to_thread(read)
    attempt = await state.repeats.attempt(request, partial(_start, request, asked))
    live, leave = attempt.started.result(), partial(attempt.leave, cancels=not asked.stores)
    if asked.streams:
        return EventStream(partial(stream, live, -1), partial(leave, at_once=True))
    if asked.background:
        return live.begun if live.final is None else live.final
    try:
        await wait_connected(request.receive, live.run.results(), leave)
    except ApiError as error:
        await live.run.end()
        if not (live.run.abandoned or error.calls):
            raise
    return live.final


async def _start(request: Request, asked: ResponseRequest) -> LiveResponse:
    """Start the run of a request; a conversation answers one request at a time."""
    state, caller = state_of(request), caller_of(request)
    repository = state.repository(caller)
    async with AsyncExitStack() as locked:
        if asked.follows.conversation:
            found = await asyncio.to_thread(conversation_of, repository, asked.follows.conversation)
            await locked.enter_async_context(state.followed.only(found.session, caller))
        completion, begun = await asyncio.to_thread(_begin, state, repository, asked)
        live = LiveResponse(caller, LiveRun([]), begun)
        end = partial(_end, state, live, asked.items, asked.included)
        live.run = start_run(request, "Responses", [completion], partial(_on_end, state, live, end), live.id)
    state.live[live.id] = live
    if asked.stores:
        _share(state, live)
    return live


def _begin(state: ServerState, repository: Repository, asked: ResponseRequest) -> tuple[Completion, Body]:
    """Find the position of the turn, and store the response as started."""
    choice = state.served.choose(asked.model)
    if asked.decision is not None:
        return _decide(state, repository, asked, *asked.decision)
    if asked.search is not None:
        choice = asked.search.choice(state.served, choice)
    after = _place(repository, asked)
    waiting = pending_messages(repository, asked.follows.conversation) if asked.follows.conversation else ()
    messages = (*waiting, *asked.messages)
    if asked.follows.response and after is not None and not messages:
        after, messages = before_last_turn(repository, after)
    priced_model = state.served.open(choice)
    given = passed_on(asked, priced_model.model, repository, strict=state.options.strict_fields)
    extension = asked.extension or Extension()
    params = extension.params
    if asked.search is not None:
        given, params = replace(given, filters=asked.search.filters), {**params, "in": [*asked.search.indexes]}
    options = CompletionOptions(choice.app, messages, params, given, unknown=extension.unknown)
    completion = begin_completion(repository, priced_model, options, state.turns, after)
    if completion.turn_input is not None:
        asked.begun.update(_used(completion.turn_input.base.app, priced_model.model, given))
    _store_begun(state, repository, asked, completion.session.name)
    return completion, asked.begun


def _used(app: App, model: AnyModel, given: AnswerOptions) -> Body:
    """Return how the answer is sampled, as far as it is known: a client that sends nothing leaves it to the app and the model."""
    sampling = app.answer_sampling
    if app.documents is not None or app.flow in (EXTRACT, ROUTE, SOLVE):
        sampling = settled(sampling)
    use: Callable[[Sampling], Sampling] | None = getattr(model, "used", None)
    used = sampling if use is None else use(sampling)
    numbers = {"temperature": used.temperature, "top_p": used.top_p, "max_output_tokens": used.max_tokens}
    extra = given.sampling.extra if isinstance(given.sampling.extra, dict) else {}
    passed = {name: extra.get(name) for name in ("presence_penalty", "frequency_penalty", "service_tier")}
    # Open Responses requires numbers, so the defaults of the protocol stand for those of the model's server, which are unknown.
    return {name: each for name, each in (numbers | passed).items() if each is not None}


def _store_begun(state: ServerState, repository: Repository, asked: ResponseRequest, session: str) -> None:
    if asked.stores:
        begun: Body = {"response": asked.begun, "input": asked.items, "pieces": [], "included": asked.included}
        if asked.key is not None:
            begun["key"] = [asked.key.digest.hex(), asked.key.idempotency, asked.key.retries]
        name = str(asked.begun["id"])
        alone = bool(asked.follows.conversation)
        if state.sharing.has_others and not repository.store.shared_runs.begin(name, session, alone=alone):
            raise LOCKED
        repository.store.served.put(ServedObject(name, "response", session, None, begun))


def _decide(
    state: ServerState, repository: Repository, asked: ResponseRequest, response: str, decisions: Mapping[str, bool]
) -> tuple[Completion, Body]:
    """Resume the turn of a response that waits for the approval of its tool calls."""
    found = repository.store.served.find(response)
    runs = () if found is None else repository.store.runs.open_runs(found.session)
    run = next((run for run in runs if found is not None and waiting_id(run) == found.body.get(WAITING)), None)
    if found is None or run is None:
        raise invalid("input", f"response {response[:80]!r} does not wait for an approval", "item_not_found")
    output = [item for item in items_at(found.body["response"], "output") if item_at(item, "type") == APPROVAL_REQUEST]
    given = (decisions.get(str(item_at(item, "id"))) for item in output)
    turns = replace(state.turns, approve=decide_waiting(run, given))
    priced_model = state.served.open(state.served.choose(asked.model))
    session = session_of_run(repository, found.session, run, priced_model, turns)
    _store_begun(state, repository, asked, found.session)
    return Completion(session), asked.begun


def _place(repository: Repository, asked: ResponseRequest) -> Place | None:
    """Return the node that the turn follows; None if the history in the input decides."""
    if asked.follows.response:
        found = repository.store.served.find(asked.follows.response)
        if found is None or found.kind != "response" or found.node is None:
            state = "not found" if found is None or found.kind != "response" else "not complete"
            raise invalid(
                "previous_response_id",
                f"response {asked.follows.response[:80]!r} is {state}",
                "previous_response_not_found",
            )
        return Place(found.node, found.session)
    if asked.follows.compaction:
        found = repository.store.served.find(asked.follows.compaction)
        if found is None or found.node is None:
            raise invalid("input", f"compaction {asked.follows.compaction[:80]!r} not found", "item_not_found")
        return Place(found.node, found.session)
    if asked.follows.conversation:
        session = conversation_of(repository, asked.follows.conversation).session
        return Place(repository.store.refs.tip(session), session, stays=True)
    return None


def _store(repository: Repository, items: list[Json], live: LiveResponse, final: Body) -> None:
    """Store a finished response, unless it was deleted meanwhile."""
    served, result = repository.store.served, live.run.last
    if served.find(live.id) is None:
        return
    node, session = (result.node, result.session) if isinstance(result, TurnResult) else (None, "")
    waiting: Body = {}
    if isinstance(result, ApiError) and result.calls:
        session = live.run.completions[0].session.name
        runs = repository.store.runs.open_runs(session)
        waiting = {WAITING: waiting_id(runs[-1])} if runs else {}
    if node is None and final["status"] == "failed" and live.run.stopped:
        return  # the run can be resumed, and the response stays in progress
    body: Body = {"response": final, "begun": live.begun, "input": items, "pieces": pieces_of(live.run.events)}
    body |= waiting
    served.put(ServedObject(live.id, "response", session, node, body))


def _share(state: ServerState, live: LiveResponse) -> None:
    """Let other servers follow a response; if this server leaves it unfinished, another one takes it over."""
    run = live.run
    state.sharing.share_begun(
        live.caller, live.id, run, partial(run.cancel, abandon=True), is_left=lambda: run.stopped and not run.abandoned
    )


async def stream(live: LiveResponse | RemoteResponse, after: int, send_now: SendNow) -> AsyncGenerator[bytes]:
    """Yield the events of a response in progress, after a given number."""
    writer = EventWriter(live.begun)

    def write(piece: TextDelta | ThinkingDelta) -> bytes:
        if isinstance(piece, TextDelta):
            written = writer.text(piece.text, refuses=piece.refuses)
        else:
            written = writer.thinking(piece.text)
        return b"".join(_after(written, after))

    for each in _after(writer.begin(), after):
        yield each
    async for run_event in live.run.follow(take=take_pieces(write, send_now)):
        if isinstance(run_event.event, (TextDelta, ThinkingDelta)) and (part := write(run_event.event)):
            yield part
    final = await live.finished()
    if final is not None:
        for each in _after(writer.end(final), after):
            yield each
    yield b"data: [DONE]\n\n"


def _after(events: Iterable[Body], after: int) -> Iterator[bytes]:
    """Write the events after a given number."""
    return (event(each, str(each["type"])) for each in events if cast("int", each["sequence_number"]) > after)


async def _recorded(found: ServedObject, after: int) -> AsyncGenerator[bytes]:
    begun, final = cast("Body", found.body["begun"]), cast("Body", found.body["response"])
    for each in _after(recorded_events(begun, final, cast("list[Json]", found.body["pieces"])), after):
        yield each
    yield b"data: [DONE]\n\n"


def _find(request: Request) -> ServedObject:
    found = repository_of(request).store.served.find(name := name_of(request, "id"))
    if found is None or found.kind != "response":
        raise ApiError(404, f"response {name[:80]!r} not found", code="not_found", param="response_id")
    return found


async def _live(request: Request) -> LiveResponse | RemoteResponse | None:
    """Return a response in progress, here or on another server."""
    state, caller, name = state_of(request), caller_of(request), name_of(request, "id")
    live: LiveResponse | None = state.live.get(name)
    if live is not None and live.caller == caller:
        return live
    remote = await state.sharing.find(name, caller)
    if remote is None or remote.ended:
        return None
    found = await asyncio.to_thread(_find, request)
    return RemoteResponse(repository_of(request), remote, cast("Body", found.body["response"]))


async def retrieve(request: Request) -> "Response | Json":
    """Return a response, or its events from any number on."""
    query, live = request.query_params, await _live(request)
    after = query_number(request, "starting_after", -1, -1, MOST_EVENTS)
    streams = query.get("stream") == "true"
    if live is not None:
        return EventStream(partial(stream, live, after)) if streams else live.begun
    found = await asyncio.to_thread(_find, request)
    if not streams or "begun" not in found.body:
        return found.body["response"]
    return EventStream(_recorded(found, after))


async def delete(request: Request) -> Json:
    """Delete a response; its turn stays in the store. A response in progress is cancelled first."""
    found = await asyncio.to_thread(_find, request)
    if (live := await _live(request)) is not None:
        await live.stop()
    await asyncio.to_thread(repository_of(request).store.served.delete, found.id)
    return {"id": found.id, "object": "response", "deleted": True}


async def cancel(request: Request) -> Json:
    """Cancel a response in progress; for a cancelled one, return it again."""
    live = await _live(request)
    if live is None:
        final = cast("Body", (await asyncio.to_thread(_find, request)).body["response"])
        if (status := final["status"]) == "cancelled":
            return final
        raise invalid("response_id", f"the response is {status} and cannot be cancelled", "invalid_value")
    await live.stop()
    return await live.finished() or live.begun


def input_items(request: Request) -> Json:
    """List the items of the input of a response."""
    found = _find(request)
    listed = [
        listed_item(cast("Body", item), f"item_{found.id.removeprefix('resp_')}{index:02d}")
        for index, item in enumerate(cast("list[Json]", found.body["input"]))
    ]
    return page_for(request, cast("list[Json]", listed))


async def input_tokens(request: Request) -> Json:
    """Estimate the tokens of an input without a model call."""
    state, repository = state_of(request), repository_of(request)
    body = await read_body(request)

    def estimate() -> int:
        asked = read_request(body, repository, state.options.limits.messages)
        choice = state.served.choose(asked.model)
        place = _place(repository, asked)
        options = CompletionOptions(choice.app, asked.messages, request=asked.options)
        return estimate_input(repository, options, place)

    tokens = await asyncio.to_thread(estimate)
    return {"object": "response.input_tokens", "input_tokens": tokens}


async def compact(request: Request) -> Json:
    """Replace a history by a summary, to which later inputs refer by the item that this returns."""
    state, repository = state_of(request), repository_of(request)
    state.runs.check_room(caller_of(request))
    body = await read_body(request, {"model", "input", "previous_response_id", "instructions", "prompt_cache_key"})
    choice = state.served.choose(body.text("model"))

    def begin() -> tuple[Completion, list[Json]]:
        most = state.options.limits.messages
        sliced, compaction = _behind_compaction(body)
        items, messages = (
            read_input(sliced, lambda name: find_item(repository, name), most) if "input" in sliced.data else ([], ())
        )
        previous = body.optional_text("previous_response_id") or compaction
        found = repository.store.served.find(previous) if previous else None
        if previous and (found is None or found.node is None):
            raise invalid(
                "previous_response_id", f"response {previous[:80]!r} not found", "previous_response_not_found"
            )
        after = None if found is None or found.node is None else Place(found.node, found.session)
        said = tuple(message for message in messages if message.role != "system")
        options = CompletionOptions(choice.app, said)
        last = max((at for at, item in enumerate(items) if is_answer(item)), default=-1)
        return begin_compaction(repository, state.served.open(choice), options, state.turns, after), items[last + 1 :]

    completion, rest = await asyncio.to_thread(begin)
    (result,) = await start_run(request, "Responses", [completion]).results()
    name = f"cmp_{token_hex(16)}"
    made = ServedObject(name, "compaction", result.session, result.node, {})
    await asyncio.to_thread(repository.store.served.put, made)
    item: Json = {"type": "compaction", "id": name, "encrypted_content": name}
    return {
        "id": f"resp_{token_hex(16)}", "object": "response.compaction", "created_at": int(time.time()),
        "output": [item, *rest], "usage": write_response_usage(result),
    }  # fmt: skip


async def resume(state: ServerState) -> None:
    """Resume the responses of a killed server; answered calls are not paid for again."""
    for owner, name in await asyncio.to_thread(state.repository("").store.served.unfinished):
        if not state.sharing.has_others:
            await _resume_one(state, owner, name)
    for run in await state.sharing.take_over(is_response):
        if not await _resume_one(state, run.owner, run.id):
            await state.sharing.end_lost(run)


def is_response(name: str) -> bool:
    """Report whether an id belongs to a response."""
    return name.startswith("resp_")


async def _resume_one(state: ServerState, caller: str, name: str) -> bool:
    """Resume a response, unless it has ended or cannot be resumed; report whether it continues."""
    repository = state.repository(caller)
    found = await asyncio.to_thread(repository.store.served.find, name)
    if found is None or cast("Body", found.body["response"])["status"] != "in_progress":
        return False
    begun, items = cast("Body", found.body["response"]), cast("list[Json]", found.body["input"])
    digest, *marks = map(str, cast("list[Json]", found.body.get("key") or [""]))
    key = RequestKey(caller, bytes.fromhex(digest), *(marks or ("",)))
    attempt = attempt_of(key.attempt or name)

    def reopen() -> Completion:
        refs, committed = repository.store.refs, repository.store.runs.repeated(attempt, ref=found.session)
        runs = repository.store.runs.open_runs(found.session) or (committed or ())[:1]
        if not runs:
            raise InputError("the server was stopped before the turn began")
        run = runs[-1]
        base = repository.at(found.session) if refs.has(found.session) else None
        if base is None:
            base = (
                repository.start(repository.app(run.app or "")) if run.base is None else repository.checkout(run.base)
            )
        priced_model = state.served.open(state.served.choose(str(begun["model"])))
        session = AsyncSession(repository, found.session, base, priced_model, options=state.turns)
        return Completion(session, repeats=attempt)

    live = LiveResponse(caller, LiveRun([]), begun)
    try:
        completion = await asyncio.to_thread(reopen)
    except (ApiError, InputError) as problem:
        error: Body = {"code": "server_error", "message": problem.message}
        failed: Body = {**begun, "status": "failed", "error": error}
        body: Body = {"response": failed, "begun": begun, "input": items, "pieces": []}
        await asyncio.to_thread(repository.store.served.put, replace(found, body=body))
        return False
    end = partial(_end, state, live, items, cast("Body", found.body.get("included", {})))
    live.run = state.runs.start(live.caller, [completion], partial(_on_end, state, live, end))
    state.live[name] = live
    if digest:
        state.repeats.resume(key, live)
    _share(state, live)
    return True


wire = Wire(
    "responses",
    (
        Route("/v1/responses", create, repeats=True),
        Route("/v1/responses/input_tokens", input_tokens),
        Route("/v1/responses/compact", compact),
        Route("/v1/responses/{id}", retrieve, GET),
        Route("/v1/responses/{id}", delete, DELETE),
        Route("/v1/responses/{id}/cancel", cancel),
        Route("/v1/responses/{id}/input_items", input_items, GET),
    ),
    error_to_json,
    resume,
)
