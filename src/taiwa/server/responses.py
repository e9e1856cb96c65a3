"""Responses: JSON, and streams of server-sent events that notice when their reader leaves."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import aclosing, suppress
from typing import TypeAlias, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from taiwa.kernel.records import Json, to_json
from taiwa.server.errors import invalid

SendNow: TypeAlias = Callable[[bytes], bool]
SEND = "taiwa.send"
"""In the scope: how the parts of a body are sent past the layers that only look at the start of a response."""
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
    """A stream of server-sent events. `on_leave` is called where the reader leaves before the end.

    A function that makes `events` gets one that sends a part at once, for while it waits between the parts that it yields;
    that returns False where nothing can be sent at once.
    """

    def __init__(
        self,
        events: "AsyncGenerator[bytes] | Callable[[SendNow], AsyncGenerator[bytes]]",
        on_leave: Callable[[], None] | None = None,
        media_type: bytes = b"",
    ) -> None:
        super().__init__()
        self._events = events
        self._on_leave = on_leave
        self._head = [(b"content-type", media_type), *EVENT_STREAM[1:]] if media_type else EVENT_STREAM

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; the server drops what is sent to a reader who has left, so `receive` is watched."""
        here, left = asyncio.current_task(), False
        assert here is not None
        watching = asyncio.create_task(_until_left(receive))

        def leave(_: object) -> None:
            nonlocal left
            left = True
            if self._on_leave is not None:
                self._on_leave()
            here.cancel()

        watching.add_done_callback(leave)
        try:
            await self._send(send, scope.get(SEND, send))
        except asyncio.CancelledError:
            if not left or here.uncancel():
                raise
        finally:
            watching.remove_done_callback(leave)
            watching.cancel()

    async def _send(self, send: Send, send_part: Send) -> None:
        begun: list[_Begun] = []

        def send_now(part: bytes) -> bool:
            if begun:
                return False
            sending = cast(
                "Coroutine[object, None, None]",
                send_part({"type": "http.response.body", "body": part, "more_body": True}),
            )
            with suppress(StopIteration):
                begun.append(_Begun(sending, sending.send(None)))
            return True

        await send({"type": "http.response.start", "status": 200, "headers": self._head})
        made = self._events(send_now) if callable(self._events) else self._events
        async with aclosing(made) as events:
            async for part in events:
                while begun:
                    await begun[0]
                    begun.clear()
                await send_part({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Begun:
    """A coroutine that was begun, and what it waits for: awaiting this brings it to its end."""

    def __init__(self, call: Coroutine[object, None, None], waits_for: object) -> None:
        self._call, self._waits_for = call, waits_for

    def __await__(self) -> Generator[object, None, None]:
        return cast("Generator[object, None, None]", self)

    def __next__(self) -> object:
        if self._waits_for is None:
            return self._call.send(None)
        waits_for, self._waits_for = self._waits_for, None
        return waits_for

    def throw(self, error: BaseException) -> object:
        """Raise an error within the coroutine, as where its task is cancelled."""
        self._waits_for = None
        return self._call.throw(error)


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
