"""The protocol of Ollama: chat and generate, whole and as lines, and what is said of the models."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from taiwa.kernel.errors import OverloadedError
from taiwa.kernel.messages import (
    JsonSchema,
    Message,
    Response,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
)
from tests.server.serving import KEY, Serving, requests_of, serving

TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": "Look up.", "parameters": {"type": "object"}},
}
PNG = b"\x89PNG\r\n\x1a\n0000"
CALL = Message("assistant", (ToolCall("look_up", '{"x": 1}', "call_1"),))


def post(served: Serving, content: object = "Tea?", **more: object) -> httpx.Response:
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return served.client.post("/api/chat", json={"model": "scripted", "messages": messages} | more)


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.fixture
def idle() -> Iterator[Serving]:
    with serving() as running:
        yield running


def test_the_client_of_ollama_chats_streams_calls_tools_and_reads_a_schema() -> None:
    ollama = pytest.importorskip("ollama")
    entries = ["Green.", "Green tea.", Response(CALL, "tool_calls"), "Done.", '{"a": 1}', "Yes."]
    with serving(*entries) as served:
        client = ollama.Client(served.server.url, headers={"Authorization": f"Bearer {KEY}"})
        said: list[Any] = [{"role": "user", "content": "Tea?"}]
        assert client.chat("scripted", said).message.content == "Green."
        assert "".join(part.message.content for part in client.chat("scripted", said, stream=True)) == "Green tea."
        called = client.chat("scripted", said, tools=[TOOL]).message
        assert called.tool_calls[0].function.arguments == {"x": 1}
        said += [called, {"role": "tool", "content": "one", "tool_name": "look_up"}]
        assert client.chat("scripted", said, tools=[TOOL]).message.content == "Done."
        result = served.model.requests[3].messages[-1].parts[0]
        assert isinstance(result, ToolResult)
        assert (result.text, result.name) == ("one", "look_up")
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        assert json.loads(client.chat("scripted", said[:1], format=schema).message.content) == {"a": 1}
        assert served.model.requests[4].constraint == JsonSchema(schema)
        assert client.generate("scripted", "Tea?").response == "Yes."
        assert "scripted" in {model.model for model in client.list().models}
        assert client.show("scripted").capabilities == ["completion", "tools"]
        assert client.ps().models == []
        with pytest.raises(ollama.ResponseError, match="does not exist here") as refused:
            client.chat("unknown", said)
        assert refused.value.status_code == 404
        client.close()


def test_lines_end_with_the_reason_and_the_counts() -> None:
    with serving(Response(assistant("Green tea."), "length", usage=Usage(7, 3))) as served:
        found = lines(post(served))
    assert [each["done"] for each in found] == [False, False, True]
    assert "".join(each["message"]["content"] for each in found) == "Green tea."
    last = found[-1]
    assert (last["done_reason"], last["prompt_eval_count"], last["eval_count"]) == ("length", 7, 3)
    assert last["total_duration"] > 0


def test_unknown_counts_are_left_out_and_not_zero() -> None:
    with serving("Green.") as served:
        assert "eval_count" not in post(served, stream=False).json()


def test_what_a_request_sets_is_sent_to_the_model() -> None:
    with serving("Yes.") as served:
        options = {"temperature": 0.5, "top_p": 0.9, "seed": 4, "num_predict": 50, "stop": ["\n"], "num_ctx": 4096}
        said = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Tea?", "images": [base64.b64encode(PNG).decode()]},
        ]
        post(served, said, options=options, think="high", keep_alive="5m")
        (request,) = served.model.requests
        assert request.sampling == Sampling(0.5, 0.9, 50, 4, "high")
        assert request.stop == ("\n",)
        assert request.messages[0].text == "Be brief."
        assert request.messages[-1].attachments[0].data == PNG


def test_the_reasoning_is_a_field_unless_it_is_switched_off() -> None:
    answer = Response(Message("assistant", (Thinking("Hm."), Text("Yes."))))
    with serving(answer, answer, answer) as served:
        found = lines(post(served))
        assert [each["message"].get("thinking") for each in found[:2]] == ["Hm.", None]
        assert post(served, stream=False).json()["message"]["thinking"] == "Hm."
        assert "thinking" not in post(served, stream=False, think=False).json()["message"]


def test_the_result_of_a_call_may_have_an_id_that_the_call_is_resent_without() -> None:
    call = {"function": {"name": "look_up", "arguments": {"x": 1}}}
    with serving(Response(CALL, "tool_calls"), "Done.", "Done.") as served:
        post(served, tools=[TOOL], stream=False)
        for text in ("Tea?", "Not known here"):
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": "", "tool_calls": [call]}]
            result = {"role": "tool", "content": "one", "tool_call_id": "call_1"}
            assert post(served, [*said, result], tools=[TOOL], stream=False).json()["message"]["content"] == "Done."


def test_a_tool_call_is_a_line_of_its_own() -> None:
    with serving(Response(CALL, "tool_calls")) as served:
        found = lines(post(served, tools=[TOOL]))
        assert found[0]["message"]["tool_calls"][0]["function"] == {
            "index": 0,
            "name": "look_up",
            "arguments": {"x": 1},
        }


def test_a_resent_history_goes_on_and_an_edited_one_branches() -> None:
    with serving("One.", "Two.", "Three.") as served:
        said: list[dict[str, Any]] = [{"role": "user", "content": "a"}]
        for text in ("b", "c"):
            said += [post(served, said, stream=False).json()["message"], {"role": "user", "content": text}]
        post(served, [*said[:2], {"role": "user", "content": "x"}])
        assert sorted(served.turns()) == [["a", "b"], ["a", "x"]]
        assert requests_of(served)[-1][-3:] == ["user: a", "assistant: One.", "user: x"]


def test_a_request_without_a_message_only_finds_the_model(idle: Serving) -> None:
    assert post(idle, []).json()["done_reason"] == "load"
    assert idle.client.post("/api/generate", json={"model": "scripted"}).json()["done_reason"] == "load"
    for at, more in (("chat", {"messages": []}), ("generate", {"prompt": ""})):
        for keep_alive, reason in ((0, "unload"), ("0s", "unload"), ("5m", "load"), (-1, "load")):
            body = {"model": "scripted", "keep_alive": keep_alive, **more}
            assert idle.client.post(f"/api/{at}", json=body).json()["done_reason"] == reason
    assert idle.client.get("/api/version").json()["version"]
    assert idle.model.requests == []


def test_what_the_client_in_go_sends_empty_is_left_out() -> None:
    with serving("Green.") as served:
        asked = {"model": "scripted", "prompt": "Tea?", "suffix": "", "system": "", "template": "", "stream": False}
        assert (
            served.client.post("/api/generate", json={**asked, "format": "", "options": None}).json()["response"]
            == "Green."
        )
        described = {"model": "", "system": "", "template": "", "verbose": False, "options": None, "name": "scripted"}
        assert served.client.post("/api/show", json=described).json()["capabilities"] == ["completion", "tools"]


def test_a_model_without_a_tag_has_the_tag_latest() -> None:
    with serving("Green.") as served:
        answer = post(served, model="scripted:latest", stream=False).json()
        assert (answer["model"], answer["message"]["content"]) == ("scripted:latest", "Green.")
        assert served.client.post("/api/generate", json={"model": "scripted:latest"}).json()["done"]
        assert served.client.post("/api/show", json={"model": "scripted:latest"}).status_code == 200
        for unknown in ("scripted:8b", "other:latest"):
            assert served.client.post("/api/show", json={"model": unknown}).status_code == 404


def test_the_extension_comes_only_where_it_was_asked_for() -> None:
    with serving("One.", "Two.") as served:
        assert "taiwa" not in post(served, stream=False).json()
        assert lines(post(served, taiwa={}))[-1]["taiwa"]["session"]


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("chat", {"model": "other"}, 404, "does not exist here"),
        ("chat", {"messages": "Tea?"}, 400, "messages must be an array"),
        ("chat", {"messages": [{"role": "robot"}]}, 400, "messages[0].role"),
        ("chat", {"messages": [{"role": "user", "content": "x", "images": ["%"]}]}, 400, "not Base64"),
        ("chat", {"messages": [{"role": "tool", "content": "x"}]}, 400, "does not follow its call"),
        ("chat", {"nonsense": 1}, 400, "unknown parameter: 'nonsense'"),
        ("chat", {"options": {"nonsense": 1}}, 400, "options.nonsense"),
        ("chat", {"options": {"presence_penalty": 1}}, 400, "not supported"),
        ("chat", {"options": {"temperature": "warm"}}, 400, "options.temperature"),
        ("chat", {"format": "xml"}, 400, "format"),
        ("chat", {"think": "very"}, 400, "think"),
        ("chat", {"stream": "yes"}, 400, "stream must be a boolean"),
        ("generate", {"raw": True, "messages": None}, 400, "raw is not supported"),
        ("generate", {"suffix": "x", "messages": None}, 400, "suffix is not supported"),
        ("show", {"messages": None, "model": "other"}, 404, "does not exist here"),
        ("show", {"messages": None, "model": None}, 400, "missing required parameter"),
    ],
)
def test_a_wrong_field_is_named_in_the_error_and_nothing_is_sent(
    idle: Serving, path: str, fields: dict[str, Any], status: int, words: str
) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Tea?"}], **fields}
    answer = idle.client.post(f"/api/{path}", json={name: value for name, value in body.items() if value is not None})
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert words in answer.json()["error"]
    assert idle.model.requests == []


def test_an_error_of_the_model_has_its_status_whole_and_streamed() -> None:
    with serving(OverloadedError("busy"), OverloadedError("busy")) as served:
        for streams in (False, True):
            answer = post(served, stream=streams)
            assert (answer.status_code, answer.json()) == (503, {"error": "busy"})


def test_an_error_before_routing_has_the_form_of_the_protocol(idle: Serving) -> None:
    answer = httpx.post(f"{idle.server.url}/api/chat", timeout=300, json={})
    assert (answer.status_code, list(answer.json())) == (401, ["error"])
    assert isinstance(answer.json()["error"], str)


def test_a_body_of_no_named_type_is_json_unless_a_page_sends_it() -> None:
    with serving("Green.") as served:
        body = b'{"model": "scripted", "messages": [{"role": "user", "content": "Tea?"}], "stream": false}'
        form = {"content-type": "application/x-www-form-urlencoded"}  # what curl -d says
        assert served.client.post("/api/chat", content=body, headers=form).json()["message"]["content"] == "Green."
        from_page = served.client.post("/api/chat", content=body, headers=form | {"origin": served.server.url})
        assert from_page.status_code == 415


def test_models_are_not_managed_by_clients(idle: Serving) -> None:
    for method, path in (("POST", "pull"), ("POST", "create"), ("DELETE", "delete")):
        refused = idle.client.request(method, f"/api/{path}", json={"model": "x"})
        assert refused.status_code == 403
        assert "taiwa serve -m" in refused.json()["error"]
