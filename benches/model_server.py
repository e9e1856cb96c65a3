"""A local server that plays a model: it waits 200 ms and answers, as a stream or as one JSON object.

    python -m benches.model_server        prints its port, and serves until its standard input closes

It is raw asyncio in a separate process, so that a client's CPU time excludes it. A streaming request gets one event per few
characters, each in its own chunk, as real servers send them; a request that offers one tool gets a call of it.
"""

import asyncio
import json
import sys
from functools import cache

__all__ = ["ANSWER", "DELTA", "LATENCY"]

LATENCY = 0.2
CHARACTERS = 5
"""The size of one streamed event: about a token."""
DRIPPED = b"drip"
"""Part of the name of a model whose events are spread over the 200 ms instead of sent together at the end."""
ANSWER = (
    "The maples are at their best from the middle to the end of November, and the days are cool and mostly dry. "
    "It is also the busiest time of the year, so book a room now and see the gardens early in the morning."
)
CHANGED = {"topics": ["Kyoto in November"], "confidence": 0.95, "ambiguity": 0.1}
DELTA = f"\n@@delta\n{json.dumps(CHANGED)}"
USAGE = {"prompt_tokens": 700, "completion_tokens": 80, "total_tokens": 780}


def answer(body: bytes) -> tuple[bytes, ...]:
    """Return the HTTP response to a request, in the pieces in which a server writes it."""
    asked = json.loads(body or b'{"model": ""}')
    model = asked["model"]
    text = ANSWER + DELTA if "delta" in model else ANSWER
    tools = asked.get("tools") or []
    tool = tools[0]["function"]["name"] if len(tools) == 1 else ""
    return streamed(text, tool) if asked.get("stream") else (whole(text, tool),)


def about(kind: str) -> dict[str, object]:
    """Return the members that every object of the protocol begins with."""
    return {"id": "chatcmpl-1", "object": kind, "created": 1_760_000_000, "model": "played"}


@cache
def whole(text: str, tool: str) -> bytes:
    """Return the answer as one JSON object; with a tool, as the arguments of a call of it."""
    message = {"role": "assistant", "content": text} if not tool else call_of(tool)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop", "logprobs": None}
    body = json.dumps(about("chat.completion") | {"choices": [choice], "usage": USAGE}).encode()
    return head("application/json", f"content-length: {len(body)}") + body


def call_of(tool: str) -> dict[str, object]:
    """Return the message that calls a tool."""
    called = {"name": tool, "arguments": json.dumps({"answer": ANSWER} | CHANGED)}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": called}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@cache
def streamed(text: str, tool: str) -> tuple[bytes, ...]:
    """Return the answer as server-sent events, each in its own HTTP chunk, with the usage in the last one."""
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + CHARACTERS]} for at in range(0, len(text), CHARACTERS)]
    deltas = [call_of(tool)] if tool else deltas
    choices: list[list[dict[str, object]]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}])
    chunks = [about("chat.completion.chunk") | {"choices": choice, "usage": None} for choice in choices]
    chunks.append(about("chat.completion.chunk") | {"choices": [], "usage": USAGE})
    events = [f"data: {json.dumps(event)}\n\n".encode() for event in chunks] + [b"data: [DONE]\n\n", b""]
    first, *others = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    return (head("text/event-stream; charset=utf-8", "transfer-encoding: chunked") + first, *others)


def head(kind: str, length: str) -> bytes:
    """Return the head of a response."""
    return f"HTTP/1.1 200 OK\r\nserver: played\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode()


class Connection(asyncio.Protocol):
    """Serve one keep-alive connection."""

    def __init__(self) -> None:
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        start, gap, rest = self._held.partition(b"\r\n\r\n")
        if not gap:
            return
        fields = dict(line.split(b": ", 1) for line in start.lower().split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        if len(rest) >= length:
            self._held = rest[length:]
            self._play(answer(rest[:length]), drips=DRIPPED in rest[:length])

    def _play(self, pieces: tuple[bytes, ...], *, drips: bool) -> None:
        call_later = asyncio.get_running_loop().call_later
        if not drips:
            call_later(LATENCY, self._write, b"".join(pieces))
            return
        for place, piece in enumerate(pieces, 1):
            call_later(LATENCY * place / len(pieces), self._write, piece)

    def _write(self, piece: bytes) -> None:
        assert isinstance(self._transport, asyncio.WriteTransport)
        self._transport.write(piece)


async def serve() -> None:
    """Serve until standard input closes."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
