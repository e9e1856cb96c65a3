"""Schemas and patterns of callers: refused at the door of each protocol, and the server answers others meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.serving import Serving, serving

REACHING = {"not": {"$dynamicRef": "file:///etc/passwd"}}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(900):
    DEEP = {"type": "array", "items": DEEP}
WIDE = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}
REFUSED = {"reaching": REACHING, "deep": DEEP, "wide": WIDE}
HI = [{"role": "user", "content": "hi"}]


def requests(schema: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """A request of each protocol with a schema for its answer or its tools."""
    function = {"name": "f", "parameters": schema}
    chat = {"model": "scripted", "messages": HI}
    return {
        "Chat": ("/v1/chat/completions", chat | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}),
        "Chat tool": ("/v1/chat/completions", chat | {"tools": [{"type": "function", "function": function}]}),
        "vLLM": ("/v1/chat/completions", chat | {"structured_outputs": {"json": schema}}),
        "llama.cpp": ("/v1/chat/completions", chat | {"json_schema": schema}),
        "Responses": ("/v1/responses", {"model": "scripted", "input": "hi", "text": {"format": {"type": "json_schema", "name": "a", "schema": schema}}}),
        "Responses tool": ("/v1/responses", {"model": "scripted", "input": "hi", "tools": [{"type": "function", **function}]}),
        "Messages": ("/v1/messages", chat | {"max_tokens": 9, "output_format": {"type": "json_schema", "schema": schema}}),
        "Messages tool": ("/v1/messages", chat | {"max_tokens": 9, "tools": [{"name": "f", "input_schema": schema}]}),
        "Ollama": ("/api/chat", chat | {"stream": False, "format": schema}),
        "Ollama prompt": ("/api/generate", {"model": "scripted", "prompt": "hi", "stream": False, "format": schema}),
        "Ollama tool": ("/api/chat", chat | {"stream": False, "tools": [{"type": "function", "function": function}]}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(*['{"a": 1}'] * 99) as started:
        yield started


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("protocol", requests({}))
def test_a_schema_that_reaches_out_or_is_too_large_is_refused_by_each_protocol(
    server: Serving, protocol: str, kind: str
) -> None:
    path, body = requests(REFUSED[kind])[protocol]

    response = server.client.post(path, json=body)

    assert response.status_code == 400, response.text[:300]
    assert "nothing is fetched" in response.text or "nested too deep" in response.text or "more than" in response.text


@pytest.mark.parametrize("protocol", requests({}))
def test_a_schema_within_the_limits_is_taken_by_each_protocol(server: Serving, protocol: str) -> None:
    path, body = requests({"type": "object", "properties": {"a": {"type": "integer"}}})[protocol]

    assert server.client.post(path, json=body).status_code == 200
