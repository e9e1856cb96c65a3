"""The older protocol of prompts, and what every response has: ids, and refusals of names with control characters."""

import json
import logging
import re
from typing import Any

import pytest

from taiwa.kernel.errors import RefusalError
from taiwa.kernel.messages import Decoding, Request, Response, TokenLogprob, assistant
from taiwa.server.serve import WIRES
from tests.lazily import Lazily
from tests.server.serving import KEY, Serving, serving, sse

openai: Any = Lazily("openai")


def test_the_client_of_openai_completes_prompts_whole_and_streamed() -> None:
    with serving("Four.", "Five.") as served, openai.OpenAI(base_url=served.url, api_key=KEY) as client:
        whole = client.completions.create(model="scripted", prompt="2 + 2 =", max_tokens=5, stop="6", temperature=0)
        assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("Four.", "stop")
        parts = list(client.completions.create(model="scripted", prompt=["2 + 3 ="], stream=True))
        assert "".join(part.choices[0].text for part in parts) == "Five."
        assert parts[-1].choices[0].finish_reason == "stop"
        first = served.model.requests[0]
        assert (first.messages[-1].text, first.stop, first.sampling.max_tokens) == ("2 + 2 =", ("6",), 5)


def test_each_prompt_has_its_answers_in_order() -> None:
    def read(request: Request) -> str:
        return f"Read {request.messages[-1].text}."

    with serving(*[read] * 4) as served:
        body = {"model": "scripted", "prompt": ["a", "b"], "n": 2, "best_of": 2}
        choices = served.client.post("/v1/completions", json=body).json()["choices"]
        assert [(each["index"], each["text"]) for each in choices] == [
            (0, "Read a."),
            (1, "Read a."),
            (2, "Read b."),
            (3, "Read b."),
        ]
        assert sorted(served.turns()) == [["a"], ["a"], ["b"], ["b"]]


@pytest.mark.parametrize("streams", [False, True])
def test_log_probabilities_have_the_form_of_the_older_protocol(streams: bool) -> None:
    tokens = (
        TokenLogprob("He", -0.5, (("He", -0.5), ("Ha", -1.5))),
        TokenLogprob("y", -0.25, (("y", -0.25), ("i", -3.0))),
    )
    with serving(Response(assistant("Hey"), decoding=Decoding(tokens))) as served:
        body = {"model": "scripted", "prompt": "Hi", "logprobs": 1, "stream": streams}
        answer = served.client.post("/v1/completions", json=body)
        parts = [json.loads(each) for each in sse(answer) if each != "[DONE]"] if streams else [answer.json()]
        (found,) = [choice["logprobs"] for part in parts for choice in part["choices"] if choice["logprobs"]]
        assert served.model.requests[0].top_logprobs == 1
    assert found == {
        "tokens": ["He", "y"],
        "token_logprobs": [-0.5, -0.25],
        "top_logprobs": [{"He": -0.5}, {"y": -0.25}],
        "text_offset": [0, 2],
    }


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"prompt": ["a"] * 33, "n": 2}, "prompt"), ({"prompt": [1, 2]}, "prompt[0]"), ({}, "prompt"), ({"prompt": []}, "prompt"),
     ({"prompt": "a", "suffix": "b"}, "suffix"), ({"prompt": "a", "echo": True}, "echo"), ({"prompt": "a", "model": 3}, "model"),
     ({"prompt": "a", "best_of": 3, "n": 2}, "best_of"), ({"prompt": "a", "logprobs": 21}, "logprobs")],
)  # fmt: skip
def test_what_a_chat_cannot_give_is_refused(fields: dict[str, Any], param: str) -> None:
    with serving("Never.") as served:
        refused = served.client.post("/v1/completions", json={"model": "scripted"} | fields)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_an_error_has_its_status_before_a_stream() -> None:
    with serving(RefusalError("no")) as served:
        body = {"model": "scripted", "prompt": "a", "stream": True}
        assert served.client.post("/v1/completions", json=body).status_code == 400


def test_a_request_has_one_id_in_its_headers_its_error_and_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("taiwa.server.requests")  # directly: `taiwa serve` in another test ends the way to the root
    monkeypatch.setattr(log, "handlers", [caplog.handler])
    with caplog.at_level(logging.INFO, log.name), serving("Yes.", "Yes.") as served:
        own = served.chat("Hi")
        assert re.fullmatch("req_[0-9a-f]{24}", own.headers["x-request-id"])
        assert own.headers["request-id"] == own.headers["x-request-id"]
        given = served.client.post("/v1/messages", json={}, headers={"x-request-id": "from-the-proxy"})
        assert given.headers["x-request-id"] == given.json()["request_id"] == "from-the-proxy"
        forged = served.chat("Hi", stream=True)
        assert list(sse(forged))
        ids = {own.headers["x-request-id"], "from-the-proxy", forged.headers["x-request-id"]}
    assert ids <= {getattr(record, "request", "") for record in caplog.records}


def test_models_exist_since_the_server_was_started() -> None:
    with serving() as served:
        created = served.client.get("/v1/models").json()["data"][0]["created"]
        assert created == served.server.state.served.created > 0
        written = served.client.get("/v1/models/scripted", headers={"anthropic-version": "2023-06-01"}).json()
        assert not written["created_at"].startswith("1970")


NAMES = ("%00", "a%00b", "%1f", "%7F", "unknown", "%ED%A0%80")


@pytest.fixture(scope="module")
def served() -> Any:
    with serving(*["Yes."] * 50) as running:
        yield running


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_name_of_any_characters_is_not_found(served: Serving, name: str) -> None:
    routes = [
        route for wire in WIRES for route in wire.routes if "{" in route.path and not route.path.endswith("/find")
    ]
    for route in routes:
        path = re.sub(r"\{\w+(:\w+)?\}", name, route.path)
        for method in route.methods:
            answer = served.client.request(method, path, json=None if method == "GET" else {"text": "x"})
            assert answer.status_code < 500, (method, path, answer.text)
            if method != "POST":
                assert answer.status_code == 404, (method, path, answer.text)


@pytest.mark.parametrize("name", ["a\0b", "a\x1fb", "\x7f"])
def test_a_vector_store_has_a_name_without_control_characters(served: Serving, name: str) -> None:
    refused = served.client.post("/v1/vector_stores", json={"name": name})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "name"), refused.text


def test_the_instructions_of_apps_are_prompts_of_mcp(served: Serving) -> None:
    def ask(method: str, **params: object) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = served.client.post("/mcp", json=body, headers={"accept": "application/json, text/event-stream"})
        (data,) = sse(answer)
        return dict(json.loads(data))

    assert ask("ping")["result"] == {}
    (translate,) = (each for each in ask("prompts/list")["result"]["prompts"] if each["name"] == "translate")
    assert [each["name"] for each in translate["arguments"]] == ["target_lang"]
    got = ask("prompts/get", name="translate", arguments={"target_lang": "Latin"})["result"]["messages"][0]
    assert "Latin" in got["content"]["text"]
    assert "not found" in ask("prompts/get", name="unknown")["error"]["message"]
    assert ask("prompts/get", name="translate", arguments={"tongue": "Latin"})["error"]["code"] == -32602
