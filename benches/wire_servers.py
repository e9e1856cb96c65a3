"""The servers for the benchmark of the protocols, each in its own process.

    python -m benches.wire_servers taiwa STORE MODEL    taiwa, with a model that drips and the one of an address
    python -m benches.wire_servers proxy ADDRESS        a proxy that passes requests and answers on, and does nothing else
    python -m benches.wire_servers raw                  a bare ASGI application on the same uvicorn, which drips and stores nothing

Each prints its port, and serves until its standard input closes.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import uvicorn

from taiwa.kernel.messages import Capability, Chunk, Request, StreamEnd, TextDelta, Usage

EVENTS = 100
GAP = 0.1
"""Seconds between two events of a stream."""
PIECE = "word "
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
CHOICE = {"index": 0, "delta": {"content": PIECE}, "logprobs": None, "finish_reason": None}
EVENT = {
    "id": "chatcmpl-0123456789abcdef01234567",
    "object": "chat.completion.chunk",
    "created": 1_760_000_000,
    "model": "drip",
}
PART = b"data: " + json.dumps(EVENT | {"choices": [CHOICE]}, separators=(",", ":")).encode() + b"\n\n"


async def ticks() -> AsyncIterator[int]:
    """Yield the numbers of the events at their times."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(EVENTS):
        await asyncio.sleep(max(started + number * GAP - loop.time(), 0))
        yield number


class Drip:
    """A model that writes an event every 100 ms, inside the server's process."""

    name = "drip"
    capabilities: frozenset[Capability] = frozenset()

    def stream(self, request: Request) -> Iterator[Chunk]:
        """The server never blocks on a model."""
        raise NotImplementedError

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """Yield the pieces."""
        del request
        async for _ in ticks():
            yield TextDelta(PIECE)
        yield StreamEnd(usage=Usage(10, EVENTS))


def serve_taiwa(store: str, model: str) -> None:
    """Serve until standard input closes."""
    from taiwa import settings as configured
    from taiwa.server.access import Address, Served, ServerLimits, ServerOptions
    from taiwa.server.serve import TaiwaServer
    from taiwa.sessions.repository import Repository
    from taiwa.store import Store

    settings = replace(configured.load({}, {}), model=None)
    limits = ServerLimits(runs=4_000, streams=8_000)
    options = ServerOptions(Address(port=0), Served(("plain",), (model,)), limits=limits)
    server = TaiwaServer(Repository(Store.open(store)), settings, options, models={"drip": Drip()})
    threading.Thread(target=lambda: (sys.stdin.read(), server.stop()), daemon=True).start()
    print(server.port, flush=True)
    server.run()


async def raw(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Read a request and stream events."""
    del scope
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    async for _ in ticks():
        await send({"type": "http.response.body", "body": PART, "more_body": True})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})


def serve_raw() -> None:
    """Serve until standard input closes."""
    from taiwa.server.serve import bind

    socket = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        raw, http="h11", loop="asyncio", ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
    print(socket.getsockname()[1], flush=True)
    server.run(sockets=[socket])


def serve_proxy(address: str) -> None:
    """Pass each request on to an address, until standard input closes."""
    import httpx2
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    from taiwa.server.serve import bind

    client = httpx2.AsyncClient(timeout=60)

    async def forward(request: HttpRequest) -> Response:
        data = json.loads(await request.body())
        if data.get("stream"):
            sent = client.build_request("POST", f"{address}/chat/completions", json=data)
            stream = await client.send(sent, stream=True)
            return StreamingResponse(stream.aiter_raw(), stream.status_code, media_type="text/event-stream")
        answer = await client.post(f"{address}/chat/completions", json=data)
        return Response(json.dumps(answer.json()), answer.status_code, media_type="application/json")

    app = Starlette(routes=[Route("/v1/chat/completions", forward, methods=["POST"])])
    socket = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        app, http="h11", loop="asyncio", ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
    print(socket.getsockname()[1], flush=True)
    server.run(sockets=[socket])


if __name__ == "__main__":
    if sys.argv[1] == "raw":
        serve_raw()
    elif sys.argv[1] == "proxy":
        serve_proxy(sys.argv[2])
    else:
        serve_taiwa(*sys.argv[2:])
