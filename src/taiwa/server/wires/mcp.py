"""The Model Context Protocol over Streamable HTTP (`/mcp`), through the SDK's own server. Requests are independent."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taiwa.apps.catalog import load_app, load_unchanged
from taiwa.conversation.app import App
from taiwa.kernel.errors import ConfigError, TaiwaError, ToolError
from taiwa.kernel.messages import TextDelta
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, to_json
from taiwa.operations.mcp_tools import McpContext, answer_over_http, operation_tools, passage_reader, report_progress
from taiwa.operations.resent_history import Completion
from taiwa.server.http_responses import ApiError, invalid
from taiwa.server.request import Fields, ServerState, caller_of, read_body, state_of, watched_run
from taiwa.server.runs import EventLog
from taiwa.server.wire_interface import Route, Wire
from taiwa.sessions.commit_turn import PricedModel, TurnResult
from taiwa.tools.mcp_client import require_mcp
from taiwa.tools.registry import builtin_tools

INVALID_REQUEST, PARSE_ERROR, INTERNAL_ERROR = -32600, -32700, -32603


def error(problem: ApiError) -> dict[str, Json]:
    """Format an error as JSON-RPC, for a request that did not reach the protocol."""
    code = (
        PARSE_ERROR if problem.code == "invalid_json" else INVALID_REQUEST if problem.status < 500 else INTERNAL_ERROR
    )
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": problem.message}}


async def answer(request: Request) -> Response:
    """Answer one message of a client."""
    try:
        require_mcp()
    except ConfigError as problem:
        raise ApiError(501, problem.message, code="not_installed") from None
    body = await read_body(request)
    check_message(body)
    state = state_of(request)
    context = context_of(state, caller_of(request))
    apps = await asyncio.to_thread(_served_apps, state)
    made = _Answer(context, apps, state.options.limits.body.size, to_json(body.data))
    if body.data.get("method") != "tools/call" or not request.headers.get("idempotency-key"):
        return made
    return _Replay(await state.repeats.once(request, partial(_record, made, request.scope)))


def check_message(body: Fields) -> None:
    """Check that a body is one JSON-RPC message.

    Raises:
        ApiError: it is not.
    """
    if body.data.get("jsonrpc") != "2.0":
        raise invalid("jsonrpc", 'jsonrpc must be "2.0"')
    if not {"result", "error"} & body.data.keys():
        body.text("method")
    if isinstance(body.data.get("id"), bool) or not isinstance(body.data.get("id", ""), (str, int)):
        raise invalid("id", "id must be a string or a number")


class _Answer(Response):
    """The SDK's response to a body that was already read."""

    def __init__(self, context: McpContext, apps: Sequence[App], most_bytes: int, body: bytes) -> None:
        super().__init__()
        self._apps = apps
        self._context = context
        self._most_bytes = most_bytes
        self._unread: bytes | None = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK write the response."""

        async def receiving() -> Message:
            if self._unread is None:
                return await receive()
            body, self._unread = self._unread, None
            return {"type": "http.request", "body": body, "more_body": False}

        tools: tuple[Tool, ...] = (*builtin_tools().values(), *operation_tools(self._context))
        read, connection = passage_reader(self._context), (scope, receiving, send)
        await answer_over_http(tools, read, self._apps, self._most_bytes, connection)


class _Recording(NamedTuple):
    """The response to a call that is made once, for each request of its client."""

    parts: EventLog[Message]
    task: asyncio.Task[None]


async def _wait() -> Message:
    """Wait for ever: a client that is gone may send its request again."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


async def _record(made: _Answer, scope: Scope) -> _Recording:
    """Make a call in a task of its own, which goes on without its client."""
    parts = EventLog[Message]()

    async def send(message: Message) -> None:
        parts.add(message)

    task = asyncio.create_task(made({**scope}, _wait, send))
    task.add_done_callback(lambda _: parts.end())
    return _Recording(parts, task)


class _Replay(Response):
    """A recorded response."""

    def __init__(self, recording: _Recording) -> None:
        super().__init__()
        self._recording = recording

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Send what there is, and what comes."""
        async with aclosing(self._recording.parts.follow()) as parts:
            async for part in parts:
                await send(part)
        self._recording.task.result()


def context_of(state: ServerState, caller: str) -> McpContext:
    """Return the context of a caller's tools: the caller's data, and the served apps and models."""
    served = state.served

    def open_model(app: App | None) -> PricedModel:
        return served.open_for(app) if app is not None else served.open(served.choose(served.default))

    return McpContext(
        state.repository(caller),
        served.settings,
        state.turns,
        _ask_app(state),
        open_model,
        partial(_perform, state, caller),
    )


async def _perform(state: ServerState, caller: str, completion: Completion) -> TurnResult:
    """Perform a turn as a run of the server, with its limits, and report its progress."""
    try:
        run, written = watched_run(state, caller, "MCP", [completion.by_client("MCP")]), 0
        async for each in run.follow():
            if isinstance(each.event, TextDelta):
                written += len(each.event.text)
                await report_progress(written, each.event.text)
        (result,) = await run.results()
    except ApiError as problem:
        raise ToolError(problem.message, code=problem.code or problem.type) from None
    return result


def _served_apps(state: ServerState) -> list[App]:
    """Return the served apps without an error."""
    apps: list[App] = []
    for file in state.served.apps.values():
        with suppress(TaiwaError):
            apps.append(load_unchanged(file))
    return apps


def _ask_app(state: ServerState) -> App | None:
    """Return the first served app that searches documents, or None."""
    for file in state.served.apps.values():
        try:
            app = load_app(file)
            if app.only_answers:
                return app.with_params({})
        except TaiwaError:
            continue  # an app with an error, or with a required parameter
    return None


wire = Wire("mcp", (Route("/mcp", answer, repeats=True),), error)
