"""A local server that plays the model of the jobs: Chat Completions, complete or streamed, with tools."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["serving"]

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 1_000, "total_tokens": 2_000}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the message that answers a request."""
    messages = request["messages"]
    users = [str(each["content"]) for each in messages if each["role"] == "user"]
    asked, tools = users[0], [tool["function"] for tool in request.get("tools", ())]
    if "teas" in asked:  # the first answer lacks a field
        value = (
            {"drink": "tea"} if len(messages) <= 2 or messages[-1]["role"] == "user" == messages[-2]["role"] else None
        )
        value = value or {"drink": "tea", "cups": 2}
        return called(tools[0], value) if tools else {"content": json.dumps(value)}
    if "mood" in asked:
        return called(tools[0], mood(tools[0])) if tools else {"content": '{"value": "positive"}'}
    if "cost" in asked and messages[-1]["role"] == "user":
        return called(tools[0], {"drink": "tea"})
    if "cost" in asked:
        return {"content": "It costs 3.5 euros."}
    return {"content": f"I remember: {' '.join(users)}"}


def mood(tool: dict[str, Any]) -> dict[str, str]:
    return dict.fromkeys(tool["parameters"]["properties"], "positive")


def called(tool: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"name": tool["name"], "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]}


class Handler(BaseHTTPRequestHandler):
    """A handler that answers one request after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  (its signature)
        """Write no log."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", **answer(request)}
        about = {"id": "x", "created": 1, "model": request["model"]}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._send("application/json", {**about, "object": "chat.completion", "choices": [choice], "usage": USAGE})
            return
        about["object"] = "chat.completion.chunk"
        parts = [{"index": 0, "delta": message}, {"index": 0, "delta": {}, "finish_reason": finish}]
        events = [{**about, "choices": [part]} for part in parts] + [{**about, "choices": [], "usage": USAGE}]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._send("text/event-stream", body)

    def _send(self, kind: str, body: object) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """A server with a large backlog of connections."""

    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serving() -> Generator[str]:
    """Serve on the loopback address, and yield the base URL."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
