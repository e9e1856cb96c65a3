"""Chat Completions: what is sent to the model, and what comes back, whole and streamed."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.errors import OverloadedError, RateLimitError, UnsupportedError
from taiwa.kernel.messages import (
    Choice,
    Chunk,
    Decoding,
    Grammar,
    JsonSchema,
    Message,
    Regex,
    Request,
    Response,
    Text,
    TextDelta,
    Thinking,
    TokenLogprob,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
)
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from taiwa.server.wires.chat_completions import ANY_OBJECT
from taiwa.sessions.replay import replay_history
from tests.server.serving import Serving, serving, sse

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = Response(
    Message("assistant", (Text("I look."), ToolCall("get_weather", '{"city": "Nara"}', "call_7"))), "tool_calls",
    usage=Usage(10, 5, cache_read_tokens=3, reasoning_tokens=2),
)  # fmt: skip


def last_request(served: Serving) -> Request:
    assert isinstance(served.model, ScriptedModel)
    return served.model.requests[-1]


def chunks(served: Serving, messages: object, **more: object) -> list[dict[str, Any]]:
    *data, end = sse(served.chat(messages, stream=True, **more))
    assert end == "[DONE]"
    return [json.loads(each) for each in data]


def deltas(found: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for each in found for choice in each["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_a_response_has_the_fields_of_the_protocol() -> None:
    with serving(Response(assistant("Hello!"), usage=Usage(7, 2, cache_read_tokens=4, reasoning_tokens=1))) as served:
        answer = served.chat("Hi").json()
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello!", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 2,
            "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }


def test_unknown_usage_is_left_out_and_not_zero() -> None:
    with serving("Hello!") as served:
        assert "usage" not in served.chat("Hi").json()


def test_a_stream_begins_with_the_role_and_ends_with_the_reason_and_the_usage() -> None:
    with serving(Response(assistant("Hello there, friend."), "length", usage=Usage(7, 2))) as served:
        found = chunks(served, "Hi", stream_options={"include_usage": True})
    assert found[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert deltas(found) == "Hello there, friend."
    assert found[-2]["choices"][0]["finish_reason"] == "length"
    assert (found[-1]["choices"], found[-1]["usage"]["total_tokens"]) == ([], 9)
    assert all(each["usage"] is None for each in found[:-1])
    assert len({each["id"] for each in found}) == 1


def test_a_tool_call_goes_to_the_client_and_its_result_back_to_the_model() -> None:
    with serving(CALL, "Rain.", "Snow.") as served:
        asked = [{"role": "user", "content": "Weather?"}]
        first = served.chat(asked, tools=[WEATHER], tool_choice="required", taiwa={}).json()
        choice = first["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["tool_calls"] == [
            {"id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Nara"}'}}
        ]
        assert (last_request(served).tools[0].name, last_request(served).tool_choice) == ("get_weather", "required")
        result = {"role": "tool", "tool_call_id": "call_7", "content": "rain"}
        history = [*asked, {k: v for k, v in choice["message"].items() if v is not None}, result]
        second = served.chat(history, tools=[WEATHER], taiwa={}).json()
        assert second["choices"][0]["message"]["content"] == "Rain."
        # `tool_choice` changed, so a node of the app lies between the turns.
        nodes = [name for name, _ in served.repository.store.nodes.path(second["taiwa"]["node"])]
        assert nodes[2] == first["taiwa"]["node"]
        assert last_request(served).messages[-2:] == (
            Message("assistant", (Text("I look."), ToolCall("get_weather", '{"city": "Nara"}', "call_7"))),
            Message("tool", (ToolResult("rain", "get_weather", "call_7"),)),
        )
        renamed = json.loads(
            json.dumps(history).replace("call_7", "other_id").replace('{\\"city\\": ', '{ \\"city\\":')
        )
        third = served.chat(renamed, tools=[WEATHER], taiwa={}).json()
        assert third["taiwa"]["parent"] == second["taiwa"]["parent"]
        for ref in served.repository.store.refs.list():
            assert not [each for each in replay_history(served.repository, ref.tip) if each.difference]
        assert served.repository.fsck() == ()


def test_tools_that_a_client_sends_again_are_read_once() -> None:
    function: Any = WEATHER["function"]
    changed = {"type": "function", "function": {**function, "description": "Another."}}
    with serving("a", "b", "c") as served:
        for tools in ([WEATHER], [WEATHER], [changed]):
            served.chat("Hi", tools=tools)
        first, second, third = (request.tools[0] for request in served.model.requests)
        assert first is second
        assert third.description == "Another."
        wrong = [served.chat("Hi", tools=[{"type": "other"}]).json()["error"]["param"] for _ in range(2)]
        assert wrong == ["tools[0].type"] * 2


def test_only_the_allowed_tools_are_sent_to_the_model() -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    other = {"type": "function", "function": {"name": "get_time"}}
    with serving(CALL) as served:
        served.chat("Hi", tools=[other, WEATHER], tool_choice=allowed)
        sent = last_request(served)
    assert ([tool.name for tool in sent.tools], sent.tool_choice) == (["get_weather"], "required")


def test_tool_calls_are_streamed_with_their_index() -> None:
    with serving(CALL) as served:
        found = chunks(served, "Weather?", tools=[WEATHER])
    calls = [call for each in found for choice in each["choices"] for call in choice["delta"].get("tool_calls", [])]
    assert [(call["index"], call["id"], call["function"]["name"]) for call in calls] == [(0, "call_7", "get_weather")]
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, ANY_OBJECT),
        (
            {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
            JsonSchema({"type": "object"}, "object"),
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "person", "schema": {"type": "array"}},
                }
            },
            JsonSchema({"type": "array"}, "person"),
        ),
        ({"structured_outputs": {"json": {"type": "array"}}}, JsonSchema({"type": "array"})),
        ({"structured_outputs": {"json": '{"type": "array"}'}}, JsonSchema({"type": "array"})),
        ({"structured_outputs": {"regex": "[ab]+"}}, Regex("[ab]+")),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, Choice(("yes", "no"))),
        ({"structured_outputs": {"grammar": "start: /a/"}}, Grammar("start: /a/")),
        ({"grammar": 'root ::= "a"'}, Grammar('root ::= "a"')),
        ({"json_schema": {"type": "array"}}, JsonSchema({"type": "array"})),
    ],
)
def test_every_way_to_constrain_an_answer_is_read(fields: dict[str, Any], constraint: object) -> None:
    fitting = "yes" if isinstance(constraint, Choice) else "{}" if "json_object" in str(fields) else "[]"
    with serving(fitting) as served:
        assert served.chat("Hi", **fields).status_code == 200
        assert last_request(served).constraint == constraint


def test_sampling_and_stop_strings_are_those_of_the_request() -> None:
    with serving("abc STOP def") as served:
        fields = {"temperature": 0.7, "top_p": 0.5, "seed": 3, "max_tokens": 9, "stop": ["STOP"]}
        assert served.chat("Hi", **fields).json()["choices"][0]["message"]["content"] == "abc "
        sampling = last_request(served).sampling
        assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.max_tokens) == (0.7, 0.5, 3, 9)


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_come_where_they_were_asked_for(stream: bool) -> None:
    token = TokenLogprob("Hé", -0.5, (("Hé", -0.5), ("A", -1.0), ("B", -2.0)))
    with serving(Response(assistant("Hé"), decoding=Decoding((token,)))) as served:
        fields = {"logprobs": True, "top_logprobs": 2}
        if stream:
            found = [choice["logprobs"] for each in chunks(served, "Hi", **fields) for choice in each["choices"]]
            (logprobs,) = [each for each in found if each]
        else:
            logprobs = served.chat("Hi", **fields).json()["choices"][0]["logprobs"]
    assert logprobs["content"] == [
        {
            "token": "Hé",
            "logprob": -0.5,
            "bytes": [72, 195, 169],
            "top_logprobs": [
                {"token": "Hé", "logprob": -0.5, "bytes": [72, 195, 169]},
                {"token": "A", "logprob": -1.0, "bytes": [65]},
            ],
        }
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_several_choices_are_branches_of_one_node(stream: bool) -> None:
    with serving(*(Response(assistant(text), usage=Usage(5, 1)) for text in ("A", "B", "C"))) as served:
        if stream:
            found = chunks(served, "Hi", n=3, taiwa={})
            texts, placed = {deltas(found, index) for index in range(3)}, found[-1]["taiwa"]
        else:
            answer = served.chat("Hi", n=3, taiwa={}).json()
            texts = {choice["message"]["content"] for choice in answer["choices"]}
            placed = answer["taiwa"]
            assert answer["usage"]["prompt_tokens"] == 15
        assert texts == {"A", "B", "C"}
        assert len({each["session"] for each in placed}) == 3
        assert len({each["parent"] for each in placed}) == 1


def test_a_refusal_is_the_same_whole_and_streamed() -> None:
    with serving(*[Response(assistant("I cannot."), "refusal")] * 2) as served:
        choice = served.chat("Hi").json()["choices"][0]
        parts = [choice for each in chunks(served, "Hi") for choice in each["choices"]]
    streamed = {name: "".join(part["delta"].get(name) or "" for part in parts) for name in ("content", "refusal")}
    assert (choice["finish_reason"], parts[-1]["finish_reason"]) == ("content_filter", "content_filter")
    assert {name: choice["message"][name] for name in streamed} == streamed == dict.fromkeys(streamed, "I cannot.")


def test_images_of_several_messages_reach_the_model_and_the_conversation_goes_on() -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    with serving("Two dots.", "Yes.") as served:
        said = [
            {"role": "user", "content": [image]},
            {"role": "user", "content": [image, {"type": "text", "text": "?"}]},
        ]
        answer = served.chat(said, taiwa={}).json()
        said += [answer["choices"][0]["message"], {"role": "user", "content": "Sure?"}]
        again = served.chat(said, taiwa={}).json()

        sent = served.model.requests[0].messages
        assert [(len(message.attachments), message.text) for message in sent if message.role == "user"] == [(2, "?")]
        assert again["taiwa"]["parent"] == answer["taiwa"]["node"]


def test_reasoning_is_a_field_of_its_own() -> None:
    with serving(Response(Message("assistant", (Thinking("Hm."), Text("Yes."))))) as served:
        message = served.chat("Hi").json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Hm.", "Yes.")


def test_an_app_keeps_its_state_for_a_client_that_resends_its_texts(tmp_path: Path) -> None:
    file = tmp_path / "cafe.md"
    file.write_text(
        '---\ntaiwa: 1\nname: cafe\nstate:\n  items: {type: "list[str]", reduce: append}\n---\nTake the order.\n'
    )
    replies = ('Two teas.\n@@delta\n{"items": ["tea"]}', 'And one cake.\n@@delta\n{"items": ["cake"]}', "x")
    with serving(*replies, apps=(str(file),)) as served:
        said = [{"role": "user", "content": "Two teas."}]
        first = ask_app(served, "cafe", said)
        answer = first["choices"][0]["message"]["content"]
        assert answer == "Two teas."
        said += [{"role": "assistant", "content": answer}, {"role": "user", "content": "And a cake."}]
        second = ask_app(served, "cafe", said)
        assert second["choices"][0]["message"]["content"] == "And one cake."
        assert second["taiwa"]["parent"] == first["taiwa"]["node"]
        assert second["taiwa"]["delta"] == {"items": ["cake"]}
        assert served.repository.at(second["taiwa"]["session"]).state == {"items": ["tea", "cake"]}
        assert '{"items":["tea"]}' in last_request(served).messages[-1].text


def ask_app(served: Serving, app: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"model": app, "messages": messages, "taiwa": {}}
    response = served.client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"nonsense": 1}, "nonsense", "unknown_parameter"),
        ({"nonsense": None}, "nonsense", "unknown_parameter"),
        ({"model": 3}, "model", "invalid_type"),
        ({"model": "gpt-nothing"}, "model", "model_not_found"),
        ({"model": "http://127.0.0.1:9/v1#x"}, "model", "model_not_found"),
        ({"model": "order@openai:gpt-5"}, "model", "model_not_found"),
        ({"messages": "text"}, "messages", "invalid_type"),
        ({"messages": []}, "messages", "empty_array"),
        ({"messages": [3]}, "messages[0]", "invalid_type"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role", "invalid_value"),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "missing_required_parameter"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "invalid_type"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type", None),
        ({"messages": [{"role": "user", "content": "x"}] * 5001}, "messages", "too_many_messages"),
        ({"n": 0}, "n", "invalid_value"),
        ({"n": "two"}, "n", "invalid_type"),
        ({"n": 1000}, "n", "invalid_value"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"temperature": True}, "temperature", "invalid_type"),
        ({"stream": "yes"}, "stream", "invalid_type"),
        ({"stream_options": {}}, "stream_options", "invalid_value"),
        ({"top_logprobs": 3}, "top_logprobs", "invalid_value"),
        ({"logprobs": True, "top_logprobs": 30}, "top_logprobs", "invalid_value"),
        ({"presence_penalty": 1}, "presence_penalty", "unsupported_parameter"),
        ({"logit_bias": {"1": 2}}, "logit_bias", "unsupported_parameter"),
        ({"audio": {}}, "audio", "unsupported_parameter"),
        ({"stop": [1]}, "stop[0]", "invalid_type"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported_parameter"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", "missing_required_parameter"),
        ({"tools": [WEATHER, WEATHER]}, "tools", None),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice", None),
        ({"tools": [WEATHER], "tool_choice": {"type": "custom", "custom": {"name": "x"}}}, "tool_choice.type", None),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
        ({"response_format": {"type": "json_schema"}}, "response_format.schema", None),
        ({"structured_outputs": {}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs", "invalid_value"),
        ({"grammar": "start: /a/", "json_schema": {}}, "grammar", "invalid_value"),
        ({"taiwa": {"nonsense": None}}, "taiwa.nonsense", "unknown_parameter"),
    ],
)
def test_a_wrong_field_is_named_in_the_error_and_nothing_is_sent(
    idle: Serving, fields: dict[str, Any], param: str, code: str | None
) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}], **fields}
    response = idle.client.post("/v1/chat/completions", json=body)
    error = response.json()["error"]
    assert response.status_code == (404 if code == "model_not_found" else 400)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert code is None or error["code"] == code


@pytest.fixture(scope="module")
def idle() -> Iterator[Serving]:
    with serving() as running:
        yield running
        assert isinstance(running.model, ScriptedModel)
        assert running.model.requests == []


@pytest.mark.parametrize(
    ("problem", "status", "header"),
    [
        (RateLimitError("slow down", retry_after=2.5), 429, "3"),
        (RateLimitError("slow down"), 429, "1"),
        (OverloadedError("busy"), 503, None),
        (UnsupportedError("no tools", capability="tools"), 400, None),
        (RuntimeError("a bug with a secret"), 500, None),
    ],
)
def test_an_error_of_the_model_has_its_status_whole_and_streamed(
    problem: Exception, status: int, header: str | None
) -> None:
    with serving(problem, problem) as served:
        response = served.chat("Hi")
        assert (response.status_code, response.headers.get("retry-after")) == (status, header)
        assert "secret" not in response.text
        streamed = served.chat("Hi", stream=True)
        assert (streamed.status_code, streamed.json()) == (status, response.json())


def test_an_app_that_keeps_a_state_calls_no_tools_of_a_client() -> None:
    said = {"model": "order", "messages": [{"role": "user", "content": "tea"}], "tools": [WEATHER]}
    with serving("One tea.", "Two teas.") as served:
        for given in ({}, {"tool_choice": "none"}):
            response = served.client.post("/v1/chat/completions", json=said | given)
            assert response.json()["choices"][0]["finish_reason"] == "stop"
        assert WEATHER["function"]["name"] not in {tool.name for each in served.model.requests for tool in each.tools}
        named = {"type": "function", "function": {"name": WEATHER["function"]["name"]}}
        for required in ("required", named):
            response = served.client.post("/v1/chat/completions", json=said | {"tool_choice": required})
            assert response.status_code == 400
            assert "keeps a state" in response.json()["error"]["message"]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_an_image_of_a_message_is_sent_and_kept_with_the_turn() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    with serving("A pixel.", "Red.") as served:
        first = served.chat(said, taiwa={}).json()
        (file,) = last_request(served).messages[-1].attachments
        assert file.media_type == "image/png"
        said += [{"role": "assistant", "content": "A pixel."}, {"role": "user", "content": "Its colour?"}]
        second = served.chat(said, taiwa={}).json()
        assert second["taiwa"]["parent"] == first["taiwa"]["node"]
        assert last_request(served).messages[0].attachments == (file,)
        assert not [each for each in replay_history(served.repository, second["taiwa"]["session"]) if each.difference]


def test_an_image_of_a_result_is_sent_with_it() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    call = {"id": "c", "type": "function", "function": {"name": "shoot", "arguments": "{}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a screen"}, image]},
    ]
    with serving("Red.") as served:
        served.chat(said)

        (result,) = last_request(served).messages[-1].parts
        assert isinstance(result, ToolResult)
        assert (result.text, [each.media_type for each in result.attachments]) == ("a screen", ["image/png"])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.png",
        "https://example.com/x.png",
        "file:///etc/passwd",
        "data:image/png;base64,???",
        "data:,x",
    ],
)
def test_an_image_is_never_fetched(idle: Serving, url: str) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    response = idle.chat(said)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages[0].content[0].image_url.url"


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_that_the_model_cannot_enforce_is_checked_and_repaired_and_this_is_said(stream: bool) -> None:
    schema = {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]}
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": schema}}

    def refuse(request: Request) -> Response:
        assert isinstance(request.constraint, JsonSchema)
        raise UnsupportedError("it cannot be bound", capability="json_schema")

    with serving(refuse, '{"cups": "many"}', '{"cups": 2}', refuse, "many", "more") as served:
        got = served.chat("Tea?", response_format=form, stream=stream, taiwa={})
        if stream:
            parts = [json.loads(data) for data in sse(got) if data != "[DONE]"]
            text = "".join(part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"])
            extension = parts[-1]["taiwa"]
        else:
            text, extension = got.json()["choices"][0]["message"]["content"], got.json()["taiwa"]
        assert json.loads(text) == {"cups": 2}
        assert "checked against its schema and not bound to it" in extension["warnings"][0]
        assert "was repaired" in extension["warnings"][1]
        failed = served.chat("Cups?", response_format=form)
        assert (failed.status_code, failed.json()["error"]["code"]) == (422, "json_validate_failed")


def test_an_answer_that_is_checked_is_not_asked_for_again_when_it_was_cut() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": {"type": "object"}}}
    refused = UnsupportedError("it cannot be bound", capability="json_schema")

    model = scripted_model(refused, Response(assistant('{"cups": '), "length"), '{"cups": 2}')
    with serving(model=model) as served:
        failed = served.chat("Tea?", response_format=form, max_tokens=9)

    assert failed.status_code == 422
    assert "cut off at the length limit; raise max_tokens, which is 9" in failed.json()["error"]["message"]
    assert len(model.requests) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_the_other_choices_are_cancelled_when_one_fails(stream: bool) -> None:
    cancelled = threading.Semaphore(0)

    class OneFails(ScriptedModel):
        begun = 0

        async def astream(self, request: Request) -> AsyncIterator[Chunk]:
            self.begun += 1
            if self.begun == 3:
                raise OverloadedError("the model is busy")
            try:
                await asyncio.Event().wait()
                yield TextDelta(request.messages[0].text)
            finally:
                cancelled.release()

    with serving(model=OneFails((), "scripted", ALL_CAPABILITIES, 7, None)) as served:
        failed = served.chat([{"role": "user", "content": "a"}], n=3, stream=stream)

        assert "the model is busy" in failed.text
        assert all(cancelled.acquire(timeout=300) for _ in range(2))
