"""Anthropic Messages: the body of a request, the blocks of an answer, and the events of a stream."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from taiwa.kernel.errors import ContextLengthError, OverloadedError, RateLimitError
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
    result_files,
)
from tests.server.serving import Serving, requests_of, serving, sse

ASK: dict[str, Any] = {"model": "scripted", "max_tokens": 5_000}
TOOLS = [{"name": "look_up", "description": "Look up.", "input_schema": {"type": "object", "properties": {}}}]
PNG = b"\x89PNG\r\n\x1a\n0000"
SIGNED = Thinking("Green?", {"type": "thinking", "thinking": "Green?", "signature": "abc"}, "messages:Anthropic:x")
REDACTED = Thinking("", {"type": "redacted_thinking", "data": "0000"}, "messages:Anthropic:x")
THINKING = {"type": "enabled", "budget_tokens": 3_000}


def post(served: Serving, content: object = "Tea?", path: str = "/v1/messages", **more: object) -> httpx.Response:
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return served.client.post(path, json={**ASK, "messages": messages, **more})


def events(response: httpx.Response) -> list[dict[str, Any]]:
    found = [json.loads(data) for data in sse(response)]
    names = [line.removeprefix("event: ") for line in response.text.splitlines() if line.startswith("event: ")]
    assert names == [each["type"] for each in found]
    return found


@pytest.fixture
def idle() -> Iterator[Serving]:
    with serving() as running:
        yield running


def test_a_message_has_the_fields_of_the_protocol() -> None:
    usage = Usage(10, 3, cache_read_tokens=4, cache_write_tokens=1)
    with serving(Response(assistant("Green."), usage=usage)) as served:
        answer = post(served).json()
        assert answer["id"].startswith("msg_")
        assert (answer["type"], answer["role"], answer["model"]) == ("message", "assistant", "scripted")
        assert answer["content"] == [{"type": "text", "text": "Green.", "citations": []}]
        assert (answer["stop_reason"], answer["stop_sequence"]) == ("end_turn", None)
        counts = [answer["usage"][f"{name}_tokens"] for name in ("input", "cache_read_input", "cache_creation_input")]
        assert counts == [5, 4, 1]
        assert "taiwa" not in answer


def test_usage_that_is_not_known_is_estimated() -> None:
    with serving("Green tea, please.") as served:
        usage = post(served).json()["usage"]
        assert usage["input_tokens"] > 0
        assert usage["output_tokens"] > 0


def test_the_events_of_a_stream_are_complete_and_in_order() -> None:
    with serving(Response(assistant("Green tea."), usage=Usage(7, 3))) as served:
        found = events(post(served, stream=True))
    assert [each["type"] for each in found] == [
        "message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert "".join(each["delta"]["text"] for each in found if each["type"] == "content_block_delta") == "Green tea."
    assert found[0]["message"]["usage"]["input_tokens"] > 0
    assert found[-2]["delta"]["stop_reason"] == "end_turn"
    assert (found[-2]["usage"]["input_tokens"], found[-2]["usage"]["output_tokens"]) == (7, 3)


@pytest.mark.parametrize(
    ("stop", "finish", "reason"), [("\n", "stop", "stop_sequence"), (None, "length", "max_tokens")]
)
def test_the_reason_of_the_end_is_that_of_the_model(stop: str | None, finish: Any, reason: str) -> None:
    with serving(Response(assistant("Green"), finish, stop)) as served:
        answer = post(served, stop_sequences=["\n"]).json()
        assert (answer["stop_reason"], answer["stop_sequence"]) == (reason, stop)
        assert served.model.requests[0].stop == ("\n",)


def test_a_refusal_has_its_reason() -> None:
    with serving(Response(assistant("No."), "refusal")) as served:
        answer = post(served).json()
        assert (answer["stop_reason"], answer["stop_details"]["type"]) == ("refusal", "refusal")


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_goes_to_the_client_and_its_result_back_to_the_model(stream: bool) -> None:
    call = Message("assistant", (Text("Wait."), ToolCall("look_up", '{"x": 1}', "call_1")))
    with serving(Response(call, "tool_calls"), "Done.") as served:
        got = post(served, tools=TOOLS, tool_choice={"type": "any"}, stream=stream)
        if stream:
            found = events(got)
            block = next(each["content_block"] for each in found if each.get("index") == 1)
            assert block == {
                "type": "tool_use",
                "id": "call_1",
                "name": "look_up",
                "input": {},
                "caller": {"type": "direct"},
            }
            assert [each["delta"]["partial_json"] for each in found if "partial_json" in each.get("delta", {})] == [
                '{"x":1}'
            ]
            assert found[-2]["delta"]["stop_reason"] == "tool_use"
            block["input"] = {"x": 1}
        else:
            answer = got.json()
            assert answer["stop_reason"] == "tool_use"
            block = answer["content"][1]
            assert (block["id"], block["input"]) == ("call_1", {"x": 1})
        request = served.model.requests[0]
        assert (request.tools[0].name, request.tool_choice) == ("look_up", "required")
        said = [
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, block]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [{"type": "text", "text": "1"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "Well?"},
                ],
            },
        ]
        assert post(served, said, tools=TOOLS).json()["content"][0]["text"] == "Done."
        result = served.model.requests[1].messages[-2].parts[0]
        assert isinstance(result, ToolResult)
        assert (result.text, result.name, result.call, bool(result.error)) == ("1", "look_up", "call_1", True)
        assert served.turns() == [["Tea?", "Well?"]]


def test_the_reasoning_comes_before_the_answer_with_its_signature() -> None:
    answer = Response(Message("assistant", (SIGNED, REDACTED, Text("Yes."))))
    with serving(answer, answer, answer, answer, answer) as served:
        whole = post(served, thinking=THINKING).json()["content"]
        assert [block["type"] for block in whole] == ["thinking", "redacted_thinking", "text"]
        assert whole[0] == SIGNED.data
        assert whole[1] == REDACTED.data
        found = events(post(served, stream=True, thinking=THINKING))
        kinds = [each["delta"]["type"] for each in found if each["type"] == "content_block_delta"]
        assert kinds == ["thinking_delta", "signature_delta", "text_delta"]
        starts = [each["content_block"] for each in found if each["type"] == "content_block_start"]
        assert [block["type"] for block in starts] == ["thinking", "redacted_thinking", "text"]
        assert [each["index"] for each in found if each["type"] == "content_block_stop"] == [0, 1, 2]
        omitted = post(served, thinking={**THINKING, "display": "omitted"}).json()["content"]
        assert (omitted[0]["thinking"], omitted[0]["signature"]) == ("", "abc")
        hidden = events(post(served, stream=True, thinking={**THINKING, "display": "omitted"}))
        assert not any(each.get("delta", {}).get("thinking") for each in hidden)
        assert [block["type"] for block in post(served).json()["content"]] == ["text"]


def test_the_stored_reasoning_goes_back_to_the_model_whatever_the_client_resends() -> None:
    with serving(Response(Message("assistant", (SIGNED, Text("Yes.")))), "Good.") as served:
        content = post(served, thinking=THINKING).json()["content"]
        content[0]["signature"] = "forged"
        said = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": content}]
        post(served, [*said, {"role": "user", "content": "Now?"}], thinking=THINKING)
        assert served.model.requests[1].messages[1].thinking == (SIGNED,)


def test_reasoning_without_a_signature_is_a_block_too() -> None:
    with serving(Response(Message("assistant", (Thinking("Hm."), Text("Yes."))))) as served:
        found = events(post(served, stream=True, thinking={"type": "adaptive"}))
        assert [each["delta"]["type"] for each in found if "index" in each and "delta" in each] == [
            "thinking_delta",
            "text_delta",
        ]


@pytest.mark.parametrize(
    ("fields", "effort"),
    [
        ({"thinking": THINKING}, "low"),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"output_config": {"effort": "high"}}, "high"),
        ({"thinking": {"type": "adaptive"}}, ""),
    ],
)
def test_what_a_request_sets_is_sent_to_the_model(fields: dict[str, Any], effort: str) -> None:
    with serving("Yes.") as served:
        system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
        post(served, system=system, temperature=0.5, top_p=0.9, metadata={"user_id": "u"}, top_k=3, **fields)
        (request,) = served.model.requests
        assert request.sampling == Sampling(0.5, 0.9, 5_000, None, effort)
        assert request.messages[0].text == "Be brief.\n\nBe kind."


@pytest.mark.parametrize("name", ["output_config", "output_format"])
def test_a_format_is_a_constraint(name: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "schema": schema}
    with serving('{"a": 1}') as served:
        answer = post(served, **{name: {"format": form} if name == "output_config" else form}).json()
        assert json.loads(answer["content"][0]["text"]) == {"a": 1}
        assert served.model.requests[0].constraint == JsonSchema(schema)


def test_images_and_documents_are_sent_with_the_message() -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
    }
    document = {
        "type": "document",
        "title": "menu",
        "source": {"type": "text", "media_type": "text/plain", "data": "Sencha"},
    }
    with serving("A cup.", "Two.") as served:
        post(served, [{"role": "user", "content": [image, document, {"type": "text", "text": "What?"}]}])
        files = served.model.requests[0].messages[-1].attachments
        assert [file.data for file in files] == [PNG, b"Sencha"]


def test_images_in_the_results_of_calls_are_sent_with_them_and_again_with_later_requests() -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
    }
    said: list[dict[str, Any]] = [{"role": "user", "content": "Look"}]
    for name in ("a", "b"):
        call = {"type": "tool_use", "id": name, "name": "look_up", "input": {}}
        result = {"type": "tool_result", "tool_use_id": name, "content": [{"type": "text", "text": name}, image]}
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    with serving("Red.", "Yes.") as served:
        assert post(served, said, tools=TOOLS).status_code == 200
        said += [{"role": "assistant", "content": "Red."}, {"role": "user", "content": "Sure?"}]
        answer = post(served, said, tools=TOOLS, taiwa={}).json()

        for request in served.model.requests:
            assert [each.data for each in result_files(request.messages)] == [PNG, PNG]
        kept = served.repository.store.nodes.get(answer["taiwa"]["parent"])
        assert [each.size for each in kept.files] == [len(PNG)]


def test_a_resent_history_goes_on_and_an_edited_one_branches() -> None:
    with serving("One.", "Two.", "Three.") as served:
        said: list[dict[str, Any]] = [{"role": "user", "content": "a"}]
        for text in ("b", "c"):
            answer = post(served, said).json()["content"]
            said += [{"role": "assistant", "content": answer}, {"role": "user", "content": text}]
        post(served, [*said[:2], {"role": "user", "content": "x"}])
        assert sorted(served.turns()) == [["a", "b"], ["a", "x"]]
        assert requests_of(served)[-1][-3:] == ["user: a", "assistant: One.", "user: x"]


def test_the_extension_comes_only_where_it_was_asked_for() -> None:
    with serving("One.", "Two.") as served:
        assert post(served, taiwa={}).json()["taiwa"]["session"]
        assert events(post(served, taiwa={}, stream=True))[-2]["taiwa"]["node"]


def test_an_empty_list_of_what_is_not_supported_asks_for_nothing() -> None:
    with serving("Green.") as served:
        assert post(served, mcp_servers=[], fallbacks=[]).status_code == 200


def test_tokens_are_counted_without_a_call(idle: Serving) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "a" * 400}]}
    counted = idle.client.post("/v1/messages/count_tokens", json=body).json()
    assert 100 <= counted["input_tokens"] <= 150
    assert idle.model.requests == []
    assert not idle.repository.store.refs.list()


TEXT = [{"role": "user", "content": "Tea?"}]


@pytest.mark.parametrize(
    ("fields", "status", "kind", "words"),
    [
        ({"model": "other"}, 404, "not_found_error", "does not exist here"),
        ({"max_tokens": None}, 400, "invalid_request_error", "max_tokens"),
        ({"max_tokens": "many"}, 400, "invalid_request_error", "max_tokens must be an integer"),
        ({"messages": "Tea?"}, 400, "invalid_request_error", "messages must be an array"),
        ({"messages": []}, 400, "invalid_request_error", "at least one message"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "invalid_request_error", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, 400, "invalid_request_error", "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, 400, "invalid_request_error", "messages[0].content[0].type 'video'"),
        ({"nonsense": 1}, 400, "invalid_request_error", "unknown parameter: 'nonsense'"),
        ({"mcp_servers": [{}]}, 400, "invalid_request_error", "mcp_servers is not supported"),
        ({"temperature": 2}, 400, "invalid_request_error", "temperature must be from 0 to 1"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9_000}}, 400, "invalid_request_error", "less than max_tokens"),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, 400, "invalid_request_error", "web_search"),
        ({"tools": [{"name": "w"}]}, 400, "invalid_request_error", "tools[0].input_schema"),
        ({"tool_choice": {"type": "tool", "name": "w"}}, 400, "invalid_request_error", "only with tools"),
        ({"output_format": {"type": "xml"}}, 400, "invalid_request_error", "output_format.type"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_in_the_error_and_nothing_is_sent(
    idle: Serving, fields: dict[str, Any], status: int, kind: str, words: str
) -> None:
    answer = idle.client.post("/v1/messages", json={**ASK, "messages": TEXT, **fields})
    error = answer.json()
    assert (answer.status_code, error["type"], error["error"]["type"]) == (status, "error", kind)
    assert words in error["error"]["message"]
    assert idle.model.requests == []


@pytest.mark.parametrize("source", [{"type": "url", "url": "http://127.0.0.1:1/"}, {"type": "file", "file_id": "f"}])
def test_an_image_is_never_fetched(idle: Serving, source: dict[str, str]) -> None:
    answer = post(idle, [{"role": "user", "content": [{"type": "image", "source": source}]}])
    assert answer.status_code == 400
    assert "addresses are not fetched" in answer.json()["error"]["message"]


def test_an_overflow_has_the_words_by_which_clients_know_it() -> None:
    with serving(ContextLengthError("too many")) as served:
        response = post(served)
    assert response.status_code == 400
    assert response.json()["error"] == {"type": "invalid_request_error", "message": "prompt is too long: too many"}


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [(OverloadedError("busy"), 529, "overloaded_error"), (RateLimitError("slow"), 429, "rate_limit_error")],
)
def test_an_error_of_the_model_has_the_status_and_type_of_the_protocol(
    error: Exception, status: int, kind: str
) -> None:
    with serving(error, error) as served:
        whole = post(served)
        assert (whole.status_code, whole.json()["error"]["type"]) == (status, kind)
        streamed = post(served, stream=True)
        assert (streamed.status_code, streamed.json()["error"]) == (status, whole.json()["error"])


def test_an_error_before_routing_has_the_form_of_the_protocol(idle: Serving) -> None:
    answer = httpx.post(f"{idle.url}/messages", timeout=300, json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    broken = idle.client.post("/v1/messages", content=b"{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_thread_goes_on_without_its_history_and_can_be_forked() -> None:
    with serving("One.", "Two.", "Three.") as served:
        begun = post(served, "a", system="Be brief.", thread={"type": "create"}).json()
        follow = {"type": "continue", "previous_message_id": begun["id"]}
        assert post(served, "b", thread=follow).json()["content"][0]["text"] == "Two."
        assert post(served, "c", thread=follow).json()["content"][0]["text"] == "Three."
        assert [each[1:] for each in requests_of(served)[1:]] == [
            ["user: a", "assistant: One.", "user: b"],
            ["user: a", "assistant: One.", "user: c"],
        ]
        assert all("Be brief." in each[0] for each in requests_of(served))
        lost = post(served, "d", thread={"type": "continue", "previous_message_id": "msg_0"})
        assert (lost.status_code, lost.json()["error"]["details"]) == (404, {"error_code": "thread_not_found"})
