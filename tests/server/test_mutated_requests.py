"""Requests of every protocol with something wrong in them: an error of that protocol, never a failure of the server."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.models.scripted import function_model
from taiwa.server.access import BodyLimits, ServerLimits
from tests.peers.embedder import EmbeddingServer
from tests.server.serving import Serving, serving

MOST_BYTES = 1 << 20
TEXT = [{"role": "user", "content": "Tea?"}]
PARTS = [{"type": "text", "text": "Tea?"}, {"type": "text", "text": "Hot."}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FUNCTION = {"name": "look_up", "description": "Look up.", "parameters": SCHEMA}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"a": 1}'}}
USE = {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"a": 1}}
SAMPLING = {"temperature": 0.5, "top_p": 0.9}
CALLED = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
BODIES: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [
        {
            "model": "served", "n": 2, "max_tokens": 9, "stop": ["x"], "stream": True, "tools": [{"type": "function", "function": FUNCTION}],
            "messages": [*TEXT, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": PARTS}],
            "stream_options": {"include_usage": True}, "tool_choice": "auto", "reasoning_effort": "low", "taiwa": {"params": {}}, **SAMPLING,
        },
        {"model": "plain", "messages": TEXT, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
    ],
    "/v1/responses": [
        {
            "model": "served", "max_output_tokens": 9, "tools": [{"type": "function", **FUNCTION}], "stream": True, "include": ["taiwa:state"],
            "input": [*TEXT, CALLED, {"type": "function_call_output", "call_id": "call_1", "output": "1"}], "metadata": {"a": "b"}, **SAMPLING,
        },
        {"model": "served", "input": "Tea?", "previous_response_id": None, "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}},
    ],
    "/v1/messages": [
        {
            "model": "served", "max_tokens": 5000, "system": PARTS, "stop_sequences": ["x"], "stream": True, "tool_choice": {"type": "auto"},
            "messages": [*TEXT, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": PARTS}]}],
            "tools": [{"name": "look_up", "input_schema": SCHEMA}], "thinking": {"type": "enabled", "budget_tokens": 2000}, **SAMPLING,
        },
        {"model": "served", "max_tokens": 9, "messages": [{"role": "user", "content": PARTS}], "output_format": {"type": "json_schema", "schema": SCHEMA}},
    ],
    "/v1/messages/count_tokens": [{"model": "served", "messages": TEXT, "tools": [{"name": "look_up", "input_schema": SCHEMA}]}],
    "/v1/embeddings": [{"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2}],
    "/api/chat": [
        {
            "model": "served", "options": {**SAMPLING, "num_predict": 9, "stop": ["x"]}, "format": SCHEMA, "think": True, "tools": [{"type": "function", "function": FUNCTION}],
            "messages": [*TEXT, {"role": "assistant", "content": "", "tool_calls": [CALL | {"function": {"name": "look_up", "arguments": {}}}]}, {"role": "tool", "content": "1", "tool_name": "look_up"}],
        },
    ],
    "/api/generate": [{"model": "served", "prompt": "Tea?", "system": "Be brief.", "images": [], "stream": False}],
    "/api/show": [{"model": "served"}],
}  # fmt: skip
WRONG: list[object] = [
    None, True, -1, 0, 2**70, 1e308, 0.5, "", "x", "\ud800", "a\0b", "data:image/png;base64,%", "x" * 5_000, [], {}, [None], [[]], {"type": "x"},
    {"": {}}, [{"role": "user"}], "resp_0", {"$ref": "#"}, {"type": ["object"], "properties": 1},
]  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    model = function_model(lambda request: '{"a": 1}' if request.constraint else "Green.", name="served")
    with (
        EmbeddingServer() as vectors,
        serving(
            model=model, embeddings=f"{vectors.base_url}#m", limits=ServerLimits(body=BodyLimits(MOST_BYTES, 300.0))
        ) as running,
    ):
        yield running


def places(data: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a body."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@st.composite
def mutated(draw: st.DrawFn, path: str) -> bytes:
    """A body with one to three places left out, replaced, or with an unknown field; or cut off."""
    body = deepcopy(draw(st.sampled_from(BODIES[path])))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(body))
        if not found:
            break
        *outer, last = draw(st.sampled_from(found))
        holder: Any = body
        for key in outer:
            holder = holder[key]
        match draw(st.sampled_from(["replace", "replace", "leave out", "add"])):
            case "leave out":
                del holder[last]
            case "add" if isinstance(holder, dict):
                holder["nonsense"] = deepcopy(draw(st.sampled_from(WRONG)))
            case _:
                holder[last] = deepcopy(draw(st.sampled_from(WRONG)))
    written = json.dumps(body).encode()
    return written[: draw(st.integers(0, len(written)))] if draw(st.integers(0, 19)) == 0 else written


def check(path: str, answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert "internal error" not in answer.text
    assert "Traceback" not in answer.text
    if answer.status_code == 200:
        return
    error = answer.json()
    if path.startswith("/api/"):
        assert isinstance(error["error"], str)
    elif path.startswith("/v1/messages"):
        assert (error["type"], set(error["error"])) == ("error", {"type", "message"})
    else:
        assert set(error["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", BODIES)
def test_no_request_makes_the_server_fail(served: Serving, path: str) -> None:
    @settings(max_examples=40, deadline=None)
    @given(mutated(path))
    def send(content: bytes) -> None:
        content = content.replace(b'"model": "m"', f'"model": "{served.server.options.served.embeddings}"'.encode())
        check(path, served.client.post(path, content=content, headers={"content-type": "application/json"}))

    send()


NAMED = {
    "/v1/chat/completions": ("tools", 0, "function", "name"),
    "/v1/responses": ("tools", 0, "name"),
    "/v1/messages": ("tools", 0, "name"),
    "/api/chat": ("tools", 0, "function", "name"),
}


@pytest.mark.parametrize("path", NAMED)
@pytest.mark.parametrize("name", ["a\0b", "a\x1b[31m"])
def test_a_name_with_control_characters_is_refused(served: Serving, path: str, name: str) -> None:
    body: Any = deepcopy(BODIES[path][0])
    *outer, last = NAMED[path]
    holder = body
    for key in outer:
        holder = holder[key]
    holder[last] = name
    answer = served.client.post(path, json=body)
    assert answer.status_code == 400
    assert "must not contain control characters" in answer.text


@pytest.mark.parametrize("path", BODIES)
def test_half_a_character_in_the_name_of_a_field_is_refused(served: Serving, path: str) -> None:
    content = json.dumps(BODIES[path][0] | {"\ud800": 1})
    answer = served.client.post(path, content=content, headers={"content-type": "application/json"})
    check(path, answer)
    assert answer.status_code == 400


@pytest.mark.parametrize("path", BODIES)
def test_a_right_request_of_every_protocol_is_answered(served: Serving, path: str) -> None:
    for body in BODIES[path]:
        given_body = body | ({"model": served.server.options.served.embeddings} if path == "/v1/embeddings" else {})
        answer = served.client.post(path, json=given_body)
        assert answer.status_code == 200, answer.text

    large = served.client.post(path, content=b" " * (MOST_BYTES + 1), headers={"content-type": "application/json"})
    assert large.status_code == 413
