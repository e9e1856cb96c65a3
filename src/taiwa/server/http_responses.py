"""Responses: errors in the format of a protocol, JSON, and streams of server-sent events that detect a disconnected reader."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from taiwa.kernel.approval import ApprovalRequest
from taiwa.kernel.errors import (
    ApprovalRequiredError,
    ConfigError,
    ConflictError,
    ContextLengthError,
    InputError,
    LimitError,
    ModelError,
    NotFoundError,
    NoValidTokenError,
    OutputValidationError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    TaiwaError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.serialization import Json, to_json
from taiwa.operations.resent_history import UnknownTurnsError
from taiwa.sessions.budgets import BudgetError

T = TypeVar("T")
INVALID = "invalid_request_error"
SERVER = "server_error"
APPROVAL_REQUIRED = "approval_required"
"""The code of the error of a turn that waits for the approval of a tool call."""


@dataclass
class ApiError(Exception):
    """An error with its HTTP status, the type and code for clients, and the field that it concerns."""

    status: int
    message: str
    type: str = INVALID
    code: str | None = None
    param: str | None = None
    retry_after: int | None = None
    is_final: bool = False
    """Whether repeating the request cannot help, or would pay for the same answer again: the response forbids it to clients."""
    calls: tuple[ApprovalRequest, ...] = ()
    """The tool calls for whose approval a turn waits."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        if self.is_final:
            headers["x-should-retry"] = "false"  # the SDKs of OpenAI and Anthropic repeat 409, 429 and 5xx otherwise
        return headers | ({"www-authenticate": 'Bearer realm="taiwa"'} if self.status == 401 else {})


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """Return the error of an invalid field."""
    return ApiError(400, message, code=code, param=param)


def too_many(message: str) -> ApiError:
    """Return the error for a temporary limit of this server."""
    return ApiError(429, message, "rate_limit_error", "rate_limit_exceeded", retry_after=1)


INTERNAL = ApiError(
    500, "internal error; the log of the server has its traceback", SERVER, "internal_error", is_final=True
)
STOPPING = ApiError(503, "the server is stopping; the turn can be resumed", SERVER, "stopping", retry_after=5)


ERRORS: Mapping[type[TaiwaError], tuple[int, str, str | None]] = {
    RateLimitError: (429, "rate_limit_error", "rate_limit_exceeded"),
    LimitError: (429, "insufficient_quota", "insufficient_quota"),
    ApprovalRequiredError: (403, "permission_error", APPROVAL_REQUIRED),
    UnsupportedError: (400, INVALID, "unsupported_parameter"),
    NoValidTokenError: (400, INVALID, "unsupported_parameter"),
    RefusalError: (400, INVALID, "content_filter"),
    ContextLengthError: (400, INVALID, "context_length_exceeded"),
    OverloadedError: (503, SERVER, "overloaded"),
    TimeoutError: (504, SERVER, "timeout"),
    ModelError: (502, SERVER, "model_error"),
    OutputValidationError: (422, INVALID, "json_validate_failed"),
    NotFoundError: (404, "not_found_error", "not_found"),
    InputError: (400, INVALID, None),
    UnknownTurnsError: (409, "conflict_error", "unknown_turns"),
    ConflictError: (409, "conflict_error", "conflict"),
    ConfigError: (500, SERVER, "configuration_error"),
}
"""The status, type and code of the library's errors; the first matching class applies."""


FINAL = (ModelError, OutputValidationError, LimitError, ConfigError, ConflictError)
"""Errors that a repeated request would meet again, or that come after calls that were paid for; not this server's own rate."""
REFUSALS: Mapping[int, tuple[str, str | None]] = {
    400: (INVALID, None),
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("permission_error", "permission_denied"),
    404: ("not_found_error", "model_not_found"),
    413: (INVALID, None),
    422: (INVALID, None),
    429: ("insufficient_quota", "insufficient_quota"),
}
"""The types and codes of statuses by which a model's server refuses a request. These and others of the 4xx class are those of the
response, too.
"""


def api_error(error: TaiwaError) -> ApiError:
    """Map an error of the library to an API error.

    A model's server has been asked as often as its rate limits and the setting `retry_paid` allow: a client that repeats the
    request would multiply the calls.
    """
    known = (answer for kind, answer in ERRORS.items() if isinstance(error, kind))
    status, kind, code = next(known, (500, SERVER, error.tag))
    if isinstance(error, OverloadedError) and error.may_be_charged:
        status, code = 502, "model_error"
    elif code == "model_error" and isinstance(error, ModelError) and 400 <= (error.status or 0) < 500:
        status = error.status or 0
        kind, code = REFUSALS.get(status, (INVALID, None))
    wait = None
    if isinstance(error, (RateLimitError, BudgetError)):
        wait = 1 if error.retry_after is None else ceil(error.retry_after)
    calls = error.calls if isinstance(error, ApprovalRequiredError) else ()
    is_final = isinstance(error, FINAL) and not (isinstance(error, RateLimitError) and error.status is None)
    return ApiError(status, error.message, kind, code, retry_after=wait, is_final=is_final, calls=calls)


def error_to_json(error: ApiError) -> dict[str, Json]:
    """Format an error as OpenAI does, and as the server's own API does."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is answered, as in the log and in the headers of its response."""
SendNow: TypeAlias = Callable[[bytes], bool]
WRITE = "taiwa.write"
"""The key in the scope under which a request has its `part_writer`."""
USED = ("flow", "transport", "disconnected", "response_started", "response_complete")
"""The members of uvicorn that `part_writer` uses; if one is missing, parts are sent and awaited."""
NO_STORE = {"cache-control": "no-store"}
EVENT_STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def json_response(data: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response, preserving the order of keys."""
    merged = {**NO_STORE, **(headers or {})}
    return Response(to_json(data), status, headers=merged, media_type="application/json")


def event(data: Json, name: str = "") -> bytes:
    """Format one server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + to_json(data) + b"\n\n"


class EventStream(Response):
    """A stream of server-sent events. `on_leave` is called if the reader disconnects before the end.

    A function that makes `events` receives a function that sends a part immediately, for use while it waits between the parts
    that it yields; that one returns False if nothing can be sent immediately.
    """

    def __init__(
        self,
        events: "AsyncGenerator[bytes] | Callable[[SendNow], AsyncGenerator[bytes]]",
        on_leave: Callable[[], None] | None = None,
        media_type: bytes = b"",
    ) -> None:
        super().__init__()
        self._events = events
        self._on_leave: Callable[[], object] = on_leave or (lambda: None)
        self._head = [(b"content-type", media_type), *EVENT_STREAM[1:]] if media_type else EVENT_STREAM

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; the server drops data for a disconnected reader, so `receive` is watched."""
        with suppress(ClientDisconnect):
            await wait_connected(receive, self._send(send, scope.get(WRITE, _write_nothing)), self._on_leave)

    async def _send(self, send: Send, send_now: SendNow) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._head})
        made = self._events(send_now) if callable(self._events) else self._events
        async with aclosing(made) as events:
            async for part in events:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def part_writer(scope: Scope, send: Send) -> SendNow:
    """Return a function that writes a part of a body without a length, once the body has begun; it returns False if the part must
    be sent and awaited.

    An empty part asks whether a part can be written now.

    A part is one chunk of HTTP/1.1, which does not change the state of the connection. It bypasses the state machine of uvicorn,
    which costs more than all other processing of a part.
    """
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or not all(hasattr(cycle, each) for each in USED):
        return _write_nothing
    if scope["http_version"] != "1.1" or scope["method"] == "HEAD":
        return _write_nothing

    def write(part: bytes) -> bool:
        if cycle.flow.write_paused or cycle.disconnected or not cycle.response_started or cycle.response_complete:
            return False
        if part:
            cycle.transport.write(b"%x\r\n%b\r\n" % (len(part), part))
        return True

    return write


def _write_nothing(_: bytes) -> bool:
    return False


async def _until_left(receive: Receive) -> None:
    """Wait until a client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_connected(receive: Receive, awaited: Coroutine[Any, Any, T], leave: Callable[[], object]) -> T:
    """Wait for something while the client is connected; `leave` is called if it disconnects, or its key is revoked, meanwhile.

    Raises:
        ClientDisconnect: the client disconnected.
    """
    here, left, has_ended = asyncio.current_task(), False, False
    assert here is not None

    def hang_up(_: object) -> None:
        nonlocal left
        if has_ended:  # both at once
            return
        left = True
        leave()
        here.cancel()

    watching = asyncio.create_task(_until_left(receive))
    watching.add_done_callback(hang_up)
    try:
        return await awaited
    except asyncio.CancelledError:
        if not left:  # the key of the caller was revoked
            leave()
        if not left or here.uncancel():
            raise
        raise ClientDisconnect from None
    finally:
        has_ended = True
        watching.cancel()


def page_of(items: list[Json], after: str, limit: int, *, newest_first: bool) -> Json:
    """Return a page of items in the format of the protocols.

    Raises:
        ApiError: `after` is not the id of an item.
    """
    listed = items[::-1] if newest_first else items
    ids = [str(item.get("id", "")) if isinstance(item, dict) else "" for item in listed]
    if after and after not in ids:
        raise invalid("after", f"item {after[:80]!r} not found")
    start = ids.index(after) + 1 if after else 0
    page = listed[start : start + limit]
    shown = ids[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": shown[0] if shown else None,
        "last_id": shown[-1] if shown else None,
        "has_more": start + limit < len(listed),
    }
