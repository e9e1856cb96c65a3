"""Addresses in requests: wherever a protocol has a place for one, and where it has none, the server connects to nobody."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.serving import Serving, serving

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def requests(url: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Requests that name an address, each by where it stands."""

    def said(*parts: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"role": "user", "content": [{"type": "text", "text": "hi"}, *parts]}]

    def asked(*parts: dict[str, Any]) -> dict[str, Any]:
        return {"model": "scripted", "input": [{"role": "user", "content": [*parts]}]}

    hi = said()
    chat = {"model": "scripted", "messages": hi}
    source = {"type": "url", "url": url}
    mcp = {"type": "mcp", "server_label": "x", "server_url": url, "require_approval": "never"}
    ag_ui: dict[str, Any] = {
        "threadId": "t",
        "runId": "r",
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    image = {"type": "image", "source": source}
    return {
        "a model": (CHAT, chat | {"model": f"{url}#m"}),
        "a model of Ollama": ("/api/chat", chat | {"model": url, "stream": False}),
        "a model for embeddings": ("/v1/embeddings", {"model": f"{url}#m", "input": "hi"}),
        "a base URL": (CHAT, chat | {"base_url": url, "api_base": url, "extra_body": {"base_url": url}}),
        "a model of taiwa": (CHAT, chat | {"taiwa": {"model": f"{url}#m"}}),
        "an image": (CHAT, chat | {"messages": said({"type": "image_url", "image_url": {"url": url}})}),
        "an image as a text": (CHAT, chat | {"messages": said({"type": "image_url", "image_url": url})}),
        "a file": (CHAT, chat | {"messages": said({"type": "file", "file": {"file_data": url}})}),
        "audio": (CHAT, chat | {"messages": said({"type": "input_audio", "input_audio": {"data": url}})}),
        "an image in Markdown": (CHAT, chat | {"messages": [{"role": "user", "content": f"![x]({url})"}]}),
        "an image of Responses": (RESPONSES, asked({"type": "input_image", "image_url": url})),
        "a file of Responses": (RESPONSES, asked({"type": "input_file", "file_url": url})),
        "a server of tools": (RESPONSES, {"model": "scripted", "input": "hi", "tools": [mcp]}),
        "a prompt": (RESPONSES, {"model": "scripted", "input": "hi", "prompt": {"id": url}}),
        "an image of Messages": (MESSAGES, chat | {"max_tokens": 9, "messages": said({"type": "image", "source": source})}),
        "a document": (MESSAGES, chat | {"max_tokens": 9, "messages": said({"type": "document", "source": source})}),
        "servers of Messages": (MESSAGES, chat | {"max_tokens": 9, "mcp_servers": [{"type": "url", "url": url, "name": "x"}]}),
        "an image of Ollama": ("/api/generate", {"model": "scripted", "prompt": "hi", "images": [url], "stream": False}),
        "a pull": ("/api/pull", {"model": url, "stream": False}),
        "an image of AG-UI": ("/ag-ui", ag_ui | {"messages": [{"id": "1", "role": "user", "content": [image]}]}),
        "a conversation": ("/v1/conversations", {"items": [{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]}]}),
        "an index": ("/api/indexes", {"name": "x", "folder": url, "url": url, "model": url}),
        "a vector store": ("/v1/vector_stores", {"name": "x", "file_ids": [url]}),
        "the model of the page": ("/page/models", {"model": f"{url}#m"}),
        "an app": ("/api/conversations", {"app": url}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(*["Hello."] * 99) as started:
        yield started


@pytest.mark.parametrize(
    "form", ["http://{}/x.png", "HTTP://user:pass@{}/", "//{}/x", "http://[::ffff:127.0.0.1]:{port}/"]
)
@pytest.mark.parametrize("place", requests(""))
def test_no_address_in_a_request_is_opened(server: Serving, place: str, form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.setblocking(False)
        port = inside.getsockname()[1]
        path, body = requests(form.format(f"127.0.0.1:{port}", port=port))[place]

        response = server.client.post(path, json=body)
        server.client.get("/health")

        assert response.status_code < 500, response.text[:300]
        with pytest.raises(BlockingIOError):
            inside.accept()


@pytest.mark.parametrize(
    "header", ["x-forwarded-host", "forwarded", "x-taiwa-model", "x-base-url", "referer", "x-openai-base-url"]
)
def test_no_address_in_a_header_is_opened(server: Serving, header: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.setblocking(False)
        address = f"http://127.0.0.1:{inside.getsockname()[1]}/"

        response = server.client.post(
            CHAT,
            content=json.dumps(requests("")["an image in Markdown"][1]),
            headers={header: address, "content-type": "application/json"},
        )

        assert response.status_code in (200, 403)
        with pytest.raises(BlockingIOError):
            inside.accept()
