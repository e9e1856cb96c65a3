"""A server of embeddings on this machine that knows which words mean the same, and can be made to fail in the usual ways.

with EmbeddingServer() as server:
    resolve(f"{server.base_url}#topics")
"""

import base64
import json
import struct
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

__all__ = ["TOPICS", "EmbeddingServer", "topics_of"]

TOPICS = {"leave": ("holiday", "vacation", "休暇"), "pay": ("salary", "wage"), "trip": ("train", "journey", "rail")}
NOT_FOUND = 404
JSON = "application/json"


def topics_of(text: str) -> list[float]:
    """The vector of a text: how much it speaks of each topic, and a little of everything."""
    return [0.1 + float(sum(text.lower().count(word) for word in words)) for words in TOPICS.values()]


class EmbeddingServer:
    """The server, from entering to leaving. `most` texts fit into one request, and `longest` characters into a text."""

    def __init__(self) -> None:
        self.models = ["topics"]
        self.most = 1000
        self.longest = 100_000
        self.key = ""
        self.turned = False
        """Whether another model stands there under the old name."""
        self.shuffled = self.packed = False
        self.answer: bytes | None = None
        self.status = 200
        self.asked: list[list[str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self.say(200, {"object": "list", "data": [{"id": name} for name in server.models]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = server.answered(self.path, self.headers.get("authorization", ""), body)
                self.say(status, answer)

            def say(self, status: int, answer: object) -> None:
                raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", JSON)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name it has there)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """All texts that were embedded."""
        return [text for texts in self.asked for text in texts]

    def answered(self, path: str, authorization: str, body: dict[str, Any]) -> tuple[int, object]:
        texts: list[str] = body["input"]
        if path != "/v1/embeddings":
            return NOT_FOUND, {"error": {"message": "no such place"}}
        if self.key and authorization != f"Bearer {self.key}":
            return 401, {"error": {"message": "wrong key", "type": "authentication_error"}}
        if self.answer is not None or self.status != 200:
            return self.status, self.answer or {"error": {"message": "out of order"}}
        if len(texts) > self.most:
            return 422, {"error": f"batch size {len(texts)} > maximum allowed batch size {self.most}"}
        if any(len(text) > self.longest for text in texts):
            return 500, {"error": {"code": 500, "message": "input (600 tokens) is too large to process"}}
        self.asked.append(texts)
        items = [{"object": "embedding", "index": at, "embedding": self.vector(text)} for at, text in enumerate(texts)]
        return 200, {"data": items[::-1] if self.shuffled else items, "usage": {"prompt_tokens": sum(map(len, texts))}}

    def vector(self, text: str) -> Sequence[float] | str:
        found = topics_of(str(text))  # or of tokens
        if self.turned:
            found = [found[0], -found[1], found[2]]
        return base64.b64encode(struct.pack("<3f", *found)).decode() if self.packed else found

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
