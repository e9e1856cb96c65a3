"""A scripted local server for documented sessions and tests: it streams written answers over HTTP and contains no model.

It speaks Chat Completions with streaming and usage, listens on the loopback address only, and refuses a request that does
not contain the expected texts, so a client has to send the right prompt.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from taiwa.kernel.text import estimate_tokens

__all__ = ["ScriptedExchange", "ScriptedServer"]

POLL_INTERVAL_S = 0.02
"""Seconds between two checks for shutdown."""
ATTEMPTS = 120
"""How often a port that is taken is tried, once a second."""


@dataclass(frozen=True, slots=True)
class ScriptedExchange:
    """One exchange: the last message must contain all of `hears`; then `says` is sent."""

    says: str
    hears: tuple[str, ...] = ()


def _bound(port: int, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """Bind a port; wait for one that another recorder has."""
    for _ in range(ATTEMPTS):
        try:
            return ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError:
            time.sleep(1)
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


class ScriptedServer:
    """Sends its exchanges in order while it is open, in pieces of some characters; `pace` is the time between two in seconds.

    By default it has a free port. A recorder names one, because the hash of a turn covers the host and port of its server.
    """

    def __init__(self, lines: Sequence[ScriptedExchange], pace: float = 0.0, piece: int = 6, port: int = 0) -> None:
        self.pace, self.piece = pace, piece
        self._lines = list(lines)
        self._server = _bound(port, _handler(self))
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(POLL_INTERVAL_S,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Mapping[str, Any]) -> tuple[str, dict[str, int]] | str:
        """Return the next answer and its usage, or why the request is not the expected one."""
        messages = [str(message["content"]) for message in request["messages"]]
        if not self._lines:
            return "the written dialogue is over"
        if not request.get("stream"):
            return "the dialogue is streamed"
        missing = [part for part in self._lines[0].hears if part not in messages[-1]]
        if missing:
            return f"the dialogue expects {missing[0]!r} in the last message"
        says = self._lines.pop(0).says
        return says, {"prompt_tokens": sum(map(estimate_tokens, messages)), "completion_tokens": estimate_tokens(says)}


def _events(says: str, piece: int, usage: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    """The events of a stream: the words in pieces, the finish, the bill."""
    for at in range(0, len(says), piece):
        yield {"choices": [{"index": 0, "delta": {"content": says[at : at + piece]}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": usage}


def _handler(player: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:  # the client may disconnect
                self.close_connection = True

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            played = player.answer(json.loads(self.rfile.read(length)))
            if isinstance(played, str):
                self._send(400, "application/json", json.dumps({"error": {"message": played}}).encode())
                return
            says, usage = played
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in (*map(json.dumps, _events(says, player.piece, usage)), "[DONE]"):
                line = f"data: {event}\n\n".encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                time.sleep(player.pace)
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (http.server's signature)
            """Write no log: the demonstration is the output."""

    return Handler
