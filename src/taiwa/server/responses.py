"""Responses: JSON, and streams of server-sent events that notice when their reader leaves."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taiwa.kernel.records import Json, to_json
from taiwa.server.errors import invalid

NO_STORE = {"cache-control": "no-store"}
EVENT_STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def json_response(data: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response, keys in their given order."""
    merged = {**NO_STORE, **(headers or {})}
    return Response(to_json(data), status, headers=merged, media_type="application/json")


def event(data: Json, name: str = "") -> bytes:
    """Write one server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + to_json(data) + b"\n\n"


class EventStream(Response):
    """A stream of server-sent events. `on_leave` is called where the reader leaves before the end."""

    def __init__(
        self, events: AsyncGenerator[bytes], on_leave: Callable[[], None] | None = None, media_type: bytes = b""
    ) -> None:
        super().__init__()
        self._events = events
        self._on_leave = on_leave
        self._head = [(b"content-type", media_type), *EVENT_STREAM[1:]] if media_type else EVENT_STREAM

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; the server drops what is sent to a reader who has left, so `receive` is watched."""
        del scope
        sending = asyncio.create_task(self._send(send))
        watching = asyncio.create_task(_until_left(receive))
        try:
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() and self._on_leave is not None:
                self._on_leave()
        finally:
            watching.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Callable[[Message], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._head})
        async with aclosing(self._events) as events:
            async for part in events:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def page_of(items: list[Json], after: str, limit: int, *, newest_first: bool) -> Json:
    """Return a page of items as the protocols list them.

    Raises:
        ApiError: `after` is not the id of one of them.
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


def page_for(request: Request, items: list[Json], most: int = 100) -> Json:
    """Return the page of a list that a request asks for."""
    query = request.query_params
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not limit.isdecimal() or not 1 <= int(limit) <= most:
        raise invalid("limit", f"limit must be from 1 to {most}", "invalid_value")
    if order not in ("asc", "desc"):
        raise invalid("order", "order must be asc or desc", "invalid_value")
    return page_of(items, query.get("after", ""), int(limit), newest_first=order == "desc")
