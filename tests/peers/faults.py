"""A server on this machine that misbehaves on command and remembers what it was sent.

It speaks bytes, not HTTP by a library: the faults are below HTTP. It runs on an event loop in a thread of its own.

    with FaultServer() as server:
        server.plays(status(429, b"slow down", retry_after="1"), speech("hello"))
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

__all__ = [
    "Act",
    "FaultServer",
    "Scene",
    "Seen",
    "drip",
    "event",
    "head",
    "raw",
    "silence",
    "speech",
    "status",
    "together",
    "words",
]

CERTIFICATE = Path(__file__).with_name("localhost.pem")
TLS_HELLO = b"\x16"
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}


@dataclass
class Seen:
    """One request as it came; `closed` is set when the client hung up, `ended` when the server has closed the connection."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    connection: int = 0
    closed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> object:
        return json.loads(self.body)


@dataclass
class Scene:
    """One connection in the hands of an act."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seen: Seen

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def pause(self, seconds: float) -> None:
        """Sleep, and wake with an error when the client hangs up."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while (left := end - clock()) > 0:
            if self.reader.at_eof():
                self.seen.closed.set()
                raise ConnectionResetError
            await asyncio.sleep(min(left, 0.02))


Act = Callable[[Scene], Awaitable[None]]
"""Answers one request; an act that wants the connection to end closes `scene.writer`."""


def head(length: int | None = None, kind: str = "text/event-stream", code: int = 200, **headers: str) -> bytes:
    """The head of an answer; without a length it ends with its connection."""
    lines = [f"HTTP/1.1 {code} Whatever", f"content-type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    lines.append("connection: close" if length is None else f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def event(delta: Mapping[str, object] | None = None, *, finish: str | None = None, **more: object) -> bytes:
    """One event of a Chat Completions stream."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    data = {"id": "c1", "object": "chat.completion.chunk", "model": "test-model", "choices": choices} | more
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def words(text: str, chunk: int = 4) -> bytes:
    """The events that say a text."""
    return b"".join(event({"content": text[at : at + chunk]}) for at in range(0, len(text), chunk))


def body_of(text: str, *, usage: bool = True) -> bytes:
    """A whole, faultless answer."""
    return words(text) + event({}, finish="stop") + (event(usage=USAGE) if usage else b"") + DONE


def raw(*pieces: bytes, close: bool = True, gap: float = 0.0) -> Act:
    """Send these bytes, a gap of seconds between them."""

    async def act(scene: Scene) -> None:
        for number, piece in enumerate(pieces):
            await scene.pause(gap if number else 0)
            await scene.write(piece)
        if close:
            scene.writer.close()

    return act


def speech(text: str, *, usage: bool = True, wait: float = 0.0, gap: float = 0.0) -> Act:
    """Answer as a good server does: chunked, and the connection stays open; `wait` before, a `gap` between chunks."""

    async def act(scene: Scene) -> None:
        await scene.pause(wait)
        await scene.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        pieces = [piece + b"\n\n" for piece in body_of(text, usage=usage).split(b"\n\n") if piece]
        for number, piece in enumerate(pieces if gap else [b"".join(pieces)]):
            await scene.pause(gap if number else 0)
            await scene.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await scene.write(b"0\r\n\r\n")

    return act


def status(code: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> Act:
    """Answer with a status, and keep the connection."""
    return raw(head(len(body), kind, code, **headers) + body, close=False)


def silence(*pieces: bytes) -> Act:
    """Send these bytes and then nothing, until the client hangs up."""

    async def act(scene: Scene) -> None:
        for piece in pieces:
            await scene.write(piece)
        await scene.reader.read()
        scene.seen.closed.set()
        raise ConnectionResetError

    return act


def drip(piece: bytes, gap: float, *before: bytes) -> Act:
    """Send a piece again and again until the client hangs up."""

    async def act(scene: Scene) -> None:
        for first in before:
            await scene.write(first)
        while True:
            await scene.write(piece)
            await scene.pause(gap)

    return act


def together(count: int, act: Act) -> Act:
    """Answer each request only when `count` of them are here."""
    here: list[Scene] = []
    all_here = asyncio.Event()

    async def wait(scene: Scene) -> None:
        here.append(scene)
        if len(here) == count:
            all_here.set()
        await all_here.wait()
        await act(scene)

    return wait


class FaultServer:
    """The server: each request gets the next act, the last act is repeated."""

    def __init__(self, *, tls: bool = False) -> None:
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if tls else None
        if self._tls:
            self._tls.load_cert_chain(CERTIFICATE)
        self.seen: list[Seen] = []
        self.connections = 0
        self.url = ""
        self._acts: list[Act] = []
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="faults", daemon=True)

    def plays(self, *acts: Act) -> None:
        """Set what the next requests get."""
        self._acts = list(acts)
        self.seen.clear()

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(300)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(300)
        assert not self._thread.is_alive(), "the server does not end"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**20, backlog=500, ssl=self._tls)
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while not writer.is_closing():
                first = await reader.readexactly(1)
                if first == TLS_HELLO:
                    writer.write(head(0, code=400))  # what servers without TLS say to it
                    break
                seen = await self._request(reader, first)
                seen.connection = number
                self.seen.append(seen)
                act = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
                await act(Scene(reader, writer, seen))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up
        except asyncio.CancelledError:  # the server ends, and its streams would print it
            writer.transport.abort()  # what a client does not read would keep the connection open, and the tests waiting
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            for seen in self.seen:
                if seen.connection == number:
                    seen.ended.set()

    @staticmethod
    async def _request(reader: asyncio.StreamReader, first: bytes) -> Seen:
        text = first + await reader.readuntil(b"\r\n\r\n")
        line, *lines = text.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines if one)}
        method, path, _ = line.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Seen(method, path, headers, body)
