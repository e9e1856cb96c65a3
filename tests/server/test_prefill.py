"""A last message of the assistant is the beginning of the answer, which the model continues."""

from typing import Any

import httpx
import pytest

from tests.server.serving import Serving, serving

MESSAGES = [{"role": "user", "content": "Greet the world."}, {"role": "assistant", "content": "Hello, "}]
JOINED = [MESSAGES[0], {"role": "assistant", "content": "Hello, world!"}, {"role": "user", "content": "And now?"}]


def written(path: str, response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    if path == "/v1/messages":
        return "".join(block["text"] for block in body["content"])
    return str((body["choices"][0] if "choices" in body else body)["message"]["content"])


def send(server: Serving, path: str, messages: list[dict[str, str]], **more: object) -> httpx.Response:
    body = {"model": "scripted", "messages": messages, "max_tokens": 50, "stream": False, **more}
    if path == "/api/chat":
        del body["max_tokens"]
    return server.client.post(path, json=body)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_the_model_continues_a_last_message_of_the_assistant(path: str) -> None:
    with serving("world!", "Good night.") as server:
        assert written(path, send(server, path, MESSAGES)) == "world!"
        assert written(path, send(server, path, JOINED)) == "Good night."
        turns = server.turns()
        first, second = server.model.requests

    assert ([message.text for message in first.messages], first.prefix) == (["Greet the world."], "Hello, ")
    assert [message.text for message in second.messages] == ["Greet the world.", "Hello, world!", "And now?"]
    assert turns == [["Greet the world.", "And now?"]]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_stream_has_the_continuation_only(path: str) -> None:
    with serving("world!") as server:
        text = send(server, path, MESSAGES, stream=True).text

    assert "world!" in text
    assert "Hello" not in text


def test_a_response_without_input_continues_the_answer_before_it_on_a_branch() -> None:
    with serving("Hello, ", "world!", "Good night.") as server:

        def respond(**more: object) -> dict[str, Any]:
            response = server.client.post("/v1/responses", json={"model": "scripted", **more})
            assert response.status_code == 200, response.text
            answer: dict[str, Any] = response.json()
            return answer

        first = respond(input="Greet the world.")
        second = respond(previous_response_id=first["id"])
        respond(previous_response_id=second["id"], input="And now?")
        asked = [[message.text for message in request.messages] for request in server.model.requests]

    assert second["output"][0]["content"][0]["text"] == "world!"
    assert asked[1] == ["Greet the world.", "Hello, "]
    assert asked[2] == ["Greet the world.", "Hello, ", "world!", "And now?"]


def test_a_response_without_input_is_refused_by_an_app_with_a_state() -> None:
    with serving(*["Yes."] * 2) as server:
        first = server.client.post("/v1/responses", json={"model": "order", "input": "A tea."}).json()
        asked = len(server.model.requests)
        refused = server.client.post("/v1/responses", json={"model": "order", "previous_response_id": first["id"]})

    assert (refused.status_code, len(server.model.requests)) == (400, asked)
    assert "the last message must be of the user" in refused.json()["error"]["message"]
