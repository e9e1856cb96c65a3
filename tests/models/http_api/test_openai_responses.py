"""The Responses protocol: what goes out, what comes back, and reasoning that goes back as it came."""

import json
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import (
    ConfigError,
    InputError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    UnsupportedError,
)
from taiwa.kernel.messages import (
    Choice,
    FinishReason,
    JsonSchema,
    Message,
    Request,
    Response,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.openai_responses import Responses
from taiwa.models.providers import resolve
from taiwa.tools.registry import builtin_tools
from tests.models.pieces import PLACES, cut
from tests.peers.faults import FaultServer, head, raw

MODEL = "openai:gpt-5.6-luna"
OLD = "openai:gpt-4.1?wire=responses"
ASK = Request((system("Be brief."), user("How are you?")))
CLOCK = ToolSpec("clock", "Tell the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
}
ITEM = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "Z0FBQUFB"}
HEAD = {"id": "resp_1", "model": "gpt-5.6-luna-2026-05-01", "status": "in_progress"}
USAGE = {
    "input_tokens": 36,
    "input_tokens_details": {"cached_tokens": 24, "cache_write_tokens": 8},
    "output_tokens": 87,
    "output_tokens_details": {"reasoning_tokens": 64},
    "total_tokens": 123,
}


def codec(name: str = MODEL) -> Responses:
    found = resolve(name).codec
    assert isinstance(found, Responses)
    return found


@cache
def types_of_openai() -> tuple[TypeAdapter[Any], TypeAdapter[Any]]:
    """What OpenAI's own package says of the body of a request, and of an event: it takes seconds to load and to compile."""
    from openai.types.responses import ResponseStreamEvent
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return TypeAdapter(ResponseCreateParamsStreaming), TypeAdapter(ResponseStreamEvent)


def written(request: Request, name: str = MODEL) -> dict[str, Any]:
    call = codec(name).encode(request)
    assert call.path == "responses"
    body: dict[str, Any] = json.loads(call.body)
    assert types_of_openai()[0].validate_python(body)
    return body


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def event(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, "sequence_number": 1, **fields}


def ended(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": HEAD | {"status": kind, "usage": USAGE} | fields}


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_9", "name": "clock"}
SPOKEN = (
    event("output_item.added", 0, item=MESSAGE | {"content": [], "status": "in_progress"}),
    event("content_part.added", 0, item_id="msg_1", content_index=0, part={"type": "output_text", "text": ""}),
    event("output_text.delta", 0, item_id="msg_1", content_index=0, delta="so ", logprobs=[]),
    event("output_text.delta", 0, item_id="msg_1", content_index=0, delta="it is 😀", logprobs=[]),
    event("output_text.done", 0, item_id="msg_1", content_index=0, text="so it is 😀", logprobs=[]),
    event("output_item.done", 0, item=MESSAGE | {"content": [{"type": "output_text", "text": "so it is 😀"}]}),
)
REASONED = (
    event("output_item.added", 0, item={"id": "rs_1", "type": "reasoning", "summary": []}),
    event("reasoning_summary_part.added", 0, item_id="rs_1", summary_index=0, part={"type": "summary_text", "text": ""}),
    event("reasoning_summary_text.delta", 0, item_id="rs_1", summary_index=0, delta="The clock"),
    event("reasoning_summary_text.delta", 0, item_id="rs_1", summary_index=0, delta=" knows."),
    event("reasoning_summary_part.added", 0, item_id="rs_1", summary_index=1, part={"type": "summary_text", "text": ""}),
    event("reasoning_summary_text.delta", 0, item_id="rs_1", summary_index=1, delta="Ask it."),
    event(
        "output_item.done", 0,
        item=ITEM | {
            "summary": [{"type": "summary_text", "text": "The clock knows."}, {"type": "summary_text", "text": "Ask it."}],
            "status": "completed",
        },
    ),
)  # fmt: skip
CALLED = (
    event("output_item.added", 1, item=CALL | {"arguments": "", "status": "in_progress"}),
    event("function_call_arguments.delta", 1, item_id="fc_1", delta='{"zone": '),
    event("function_call_arguments.delta", 1, item_id="fc_1", delta='"東京"}'),
    event("function_call_arguments.done", 1, item_id="fc_1", arguments='{"zone": "東京"}'),
    event("output_item.done", 1, item=CALL | {"arguments": '{"zone": "東京"}', "status": "completed"}),
)
WHOLE = sse({"type": "response.created", "response": HEAD}, *REASONED, *CALLED, ended())
KEPT = ITEM | {"summary": REASONED[-1]["item"]["summary"]}


def read(body: bytes, *places: int, name: str = MODEL) -> Response:
    decoder = codec(name).decoder("text/event-stream")
    return collect_response([chunk for piece in cut(body, places) for chunk in decoder.feed(piece)] + decoder.close())


# --- which wire ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-5.6-luna", "gpt-5", "o3", "o4-mini", "gpt-5.1-codex-max", "gpt-7"])
def test_models_that_reason_are_asked_by_responses(model: str) -> None:
    assert isinstance(resolve(f"openai:{model}").codec, Responses)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai:gpt-4.1", "chat/completions"),
        ("openai:gpt-5-chat-latest", "chat/completions"),
        ("openai:gpt-5?wire=chat", "chat/completions"),
        ("openai:davinci-002", "completions"),
        ("http://127.0.0.1:1/v1#m", "chat/completions"),
        ("http://127.0.0.1:1/v1#m?wire=responses", "responses"),
        ("ollama:m?wire=responses", "responses"),
        ("http://127.0.0.1:1/v1#m?wire=messages", "messages"),
        ("https://acme.openai.azure.com/openai/v1#prod?wire=responses", "responses"),
    ],
)
def test_the_wire_of_a_model_is_chosen_by_its_provider_or_by_the_option(name: str, path: str) -> None:
    codec = resolve(name).codec
    assert codec is not None

    assert codec.encode(Request((user("x"),))).path == path


def test_a_provider_at_another_address_is_asked_by_chat_completions() -> None:
    codec = resolve("openai:gpt-5", base_urls={"openai": "http://127.0.0.1:4000/v1"}).codec
    assert codec is not None

    assert codec.encode(Request((user("x"),))).path == "chat/completions"


# --- writing ------------------------------------------------------------------------------------------------------------


def test_a_request_is_whole_and_nothing_is_stored() -> None:
    assert written(ASK) == {
        "model": "gpt-5.6-luna",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "How are you?"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_a_model_that_does_not_reason_gets_its_temperature_and_no_include() -> None:
    body = written(Request((user("x"),), sampling=Sampling(0.5, 0.9, 100, 7)), OLD)

    assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (0.5, 0.9, 100)
    assert "include" not in body
    assert "seed" not in body


def test_effort_and_summary_are_options_of_the_model() -> None:
    assert written(ASK, f"{MODEL}?effort=low&summary=auto")["reasoning"] == {"effort": "low", "summary": "auto"}
    assert written(ASK, f"{MODEL}?effort=none")["reasoning"] == {"effort": "none"}
    assert "reasoning" not in written(ASK)


def test_texts_calls_and_results_are_items_in_their_order() -> None:
    messages = (
        user("time?"),
        Message("assistant", (Text("I look."), ToolCall("clock", '{"zone": "JST"}', "c1"), ToolCall("clock", ""))),
        Message("tool", (ToolResult("noon", call="c1"), ToolResult("one"))),
        Message("user", (Text("<state>", transient=True), Text("thanks"))),
    )

    assert written(Request(messages))["input"] == [
        {"role": "user", "content": "time?"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "clock", "arguments": '{"zone": "JST"}'},
        {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"role": "user", "content": "thanks\n\n<state>"},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", None), ("required", "required"), ("none", "none"), ("clock", {"type": "function", "name": "clock"})],
)
def test_tools_are_written_flat(choice: str, sent: object) -> None:
    body = written(Request((user("x"),), tools=(CLOCK,), tool_choice=choice))

    assert body["tools"] == [
        {
            "type": "function",
            "name": "clock",
            "description": "Tell the time.",
            "parameters": CLOCK.parameters,
            "strict": False,
        }
    ]
    assert body.get("tool_choice") == sent


def test_an_unknown_tool_cannot_be_demanded() -> None:
    with pytest.raises(InputError, match="'dice', which is not a tool"):
        written(Request((user("x"),), tools=(CLOCK,), tool_choice="dice"))


def test_a_schema_is_the_format_of_the_text() -> None:
    call = codec().encode(Request((user("x"),), constraint=JsonSchema(POINT, "point")))

    assert json.loads(call.body)["text"] == {
        "format": {"type": "json_schema", "name": "point", "schema": POINT, "strict": True}
    }
    assert call.enforcement is not None
    assert call.enforcement.method == "text.format"


@pytest.mark.parametrize(
    ("request_", "capability"),
    [
        (Request((user("x"),), stop=("a",)), "stop"),
        (Request((user("x"),), prefix="a"), "prefix"),
        (Request((user("x"),), constraint=Choice(("a", "b"))), "regex"),
        (Request((user("x"),), top_logprobs=2), "logprobs"),
    ],
)
def test_what_the_protocol_lacks_is_refused(request_: Request, capability: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        written(request_)

    assert caught.value.capability == capability
    assert capability not in resolve(MODEL).capabilities


def test_log_probabilities_are_asked_for_where_the_model_has_them() -> None:
    body = written(Request((user("x"),), top_logprobs=2), OLD)

    assert (body["top_logprobs"], body["include"]) == (2, ["message.output_text.logprobs"])


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("openai:gpt-5?effort=lots", "unknown effort 'lots'; choose one of none, minimal"),
        ("openai:gpt-5?efort=low", "did you mean 'effort'"),
        ("openai:gpt-5?wire=soap", "unknown wire 'soap'"),
        ("openai:gpt-4.1?summary=auto", "no option 'summary' over the wire 'chat'"),
        ("openai:gpt-5?budget=10", "no option 'budget'"),
        ("openai:davinci-002?effort=low", "no option 'effort'"),
        ("ollama:m?store=true", "no option 'store'"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(name: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        resolve(name)


# --- reading ------------------------------------------------------------------------------------------------------------


def test_text_is_shown_as_it_comes() -> None:
    decoder = codec().decoder("text/event-stream")

    chunks = decoder.feed(sse(*SPOKEN[:3])) + decoder.feed(sse(*SPOKEN[3:], ended()))

    assert chunks[:2] == [TextDelta("so "), TextDelta("it is 😀")]
    assert isinstance(chunks[2], StreamEnd)


def test_reasoning_calls_and_the_bill_are_kept_apart() -> None:
    response = read(WHOLE)

    assert response.message.parts == (
        Thinking("The clock knows.\n\nAsk it.", KEPT, "responses:OpenAI:gpt-5.6-luna"),
        Text(""),
        ToolCall("clock", '{"zone": "東京"}', "call_9"),
    )
    assert response.finish == "tool_calls"
    assert response.usage == Usage(36, 87, 24, 8, 64)
    assert response.model == "gpt-5.6-luna-2026-05-01"


def test_a_summary_is_streamed_as_reasoning() -> None:
    chunks = codec().decoder("text/event-stream").feed(WHOLE)

    shown = "".join(chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta))
    assert shown == "The clock knows.\n\nAsk it."


@given(PLACES)
def test_pieces_of_a_stream_change_nothing(places: list[int]) -> None:
    assert read(WHOLE, *places) == read(WHOLE)


def test_the_events_of_these_tests_are_those_of_openai() -> None:
    _, known = types_of_openai()
    for each in (*SPOKEN, *REASONED, *CALLED):
        kinds = {error["type"] for error in _errors(known, each)}
        assert "union_tag_invalid" not in kinds, each["type"]


def _errors(known: TypeAdapter[Any], data: dict[str, Any]) -> list[Any]:
    from pydantic import ValidationError

    try:
        known.validate_python(data)
    except ValidationError as error:
        return list(error.errors())
    return []


def test_a_response_of_one_piece_is_read_like_a_stream() -> None:
    output = [REASONED[-1]["item"], CALL | {"arguments": '{"zone": "東京"}'}]
    body = HEAD | {"status": "completed", "output": output, "usage": USAGE, "error": None}

    assert read(json.dumps(body).encode()) == read(WHOLE)


def test_a_server_that_sends_complete_items_only_is_read_too() -> None:
    message = MESSAGE | {"content": [{"type": "output_text", "text": "so it is"}]}

    response = read(sse(event("output_item.done", 0, item=message), ended()))

    assert (response.text, response.finish) == ("so it is", "stop")


def test_reasoning_in_clear_is_shown_and_does_not_go_back() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    stream = sse(
        event("reasoning_text.delta", 0, delta="hm"), *SPOKEN[2:4], event("output_item.done", 0, item=item), ended()
    )

    assert read(stream).message.parts == (Thinking("hm"), Text("so it is 😀"))


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        (ended("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), "refusal"),
        (ended("incomplete", incomplete_details=None), "interrupted"),
        (ended("cancelled"), "interrupted"),
    ],
)
def test_an_incomplete_answer_says_why(last: dict[str, Any], finish: FinishReason) -> None:
    response = read(sse(*SPOKEN, last))

    assert (response.text, response.finish) == ("so it is 😀", finish)


def test_a_refusal_is_the_text_and_the_reason() -> None:
    response = read(sse(event("refusal.delta", 0, delta="I can"), event("refusal.delta", 0, delta="not."), ended()))

    assert (response.text, response.finish) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (ended("failed", error={"code": "server_error", "message": "it fell over"}), OverloadedError),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "slow down"}), RateLimitError),
        (ended("failed", error=None), OverloadedError),
        ({"type": "error", "code": "server_error", "message": "it fell over", "param": None}, OverloadedError),
        ({"type": "error", "code": "invalid_prompt", "message": "no"}, ModelError),
    ],
)
def test_a_failure_in_mid_stream_is_raised_after_what_was_said(last: dict[str, Any], error: type[ModelError]) -> None:
    decoder = codec().decoder("text/event-stream")

    chunks = decoder.feed(sse(*SPOKEN, last))

    assert chunks == [TextDelta("so it is 😀")]
    with pytest.raises(error):
        decoder.feed(b"")


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    with pytest.raises(ProtocolError, match="broke off in the middle"):
        read(sse(*SPOKEN))


def test_an_answer_of_chat_completions_is_no_response() -> None:
    with pytest.raises(ProtocolError, match="without output"):
        read(b'{"choices": [{"message": {"content": "5"}}]}')


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["item", "delta", "response", "type", "output_index", "summary", "usage"]), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_events_of_any_shape_end_in_an_answer_or_in_one_of_our_errors(data: Any) -> None:
    kinds = [each["type"] for each in (*SPOKEN, *REASONED, *CALLED, ended(), ended("failed"))]
    damaged = [data | {"type": kind} if isinstance(data, dict) else {"type": kind, "item": data} for kind in kinds]

    with suppress(ModelError):
        read(sse(*damaged))


def test_log_probabilities_come_with_the_text() -> None:
    row = {"token": "so", "logprob": -0.1, "top_logprobs": [{"token": "so", "logprob": -0.1}]}

    response = read(sse(event("output_text.delta", 0, delta="so", logprobs=[row]), ended()), name=OLD)

    assert [(each.token, each.logprob) for each in response.decoding.logprobs] == [("so", -0.1)]


# --- reasoning goes back ------------------------------------------------------------------------------------------------


def test_encrypted_reasoning_goes_back_before_what_it_led_to() -> None:
    response = read(WHOLE)
    messages = (user("time?"), response.message, Message("tool", (ToolResult("noon", "clock", "call_9"),)))

    assert written(Request(messages))["input"][1:] == [
        KEPT,
        {"type": "function_call", "call_id": "call_9", "name": "clock", "arguments": '{"zone": "東京"}'},
        {"type": "function_call_output", "call_id": "call_9", "output": "noon"},
    ]


@pytest.mark.parametrize(
    "name", ["openai:gpt-5", "ollama:gpt-5.6-luna?wire=responses", "openai:gpt-4.1", "anthropic:claude-opus-5"]
)
def test_reasoning_of_another_model_or_server_is_left_out(name: str) -> None:
    message = Message("assistant", (*read(WHOLE).message.signed_thinking, Text("noon")))
    codec = resolve(name).codec
    assert codec is not None

    assert b"Z0FBQUFB" not in codec.encode(Request((user("time?"), message, user("sure?")))).body


def test_nothing_but_reasoning_is_taken_from_a_stored_block() -> None:
    """An imported conversation may hold any block."""
    hostile = Thinking("", {"type": "item_reference", "id": "msg_2"}, "responses:OpenAI:gpt-5.6-luna")

    body = written(Request((user("a"), Message("assistant", (hostile, Text("b"))), user("c"))))

    assert [item.get("role") for item in body["input"]] == ["user", "assistant", "user"]


def test_a_server_that_stores_the_conversation_gets_only_what_is_new() -> None:
    name = f"{MODEL}?store=true"
    first = read(WHOLE, name=name).message
    messages = (system("Be brief."), user("time?"), first, Message("tool", (ToolResult("noon", call="call_9"),)))

    body = written(Request(messages), name)

    assert (body["store"], body["previous_response_id"]) == (True, "resp_1")
    assert body["instructions"] == "Be brief."
    assert body["input"] == [{"type": "function_call_output", "call_id": "call_9", "output": "noon"}]


def test_without_the_option_no_response_is_continued_on_the_server() -> None:
    stored = read(WHOLE, name=f"{MODEL}?store=true").message

    body = written(Request((user("time?"), Message("assistant", (*stored.signed_thinking, Text("noon"))), user("?"))))

    assert "previous_response_id" not in body
    assert body["input"][1:3] == [KEPT, {"role": "assistant", "content": "noon"}]


# --- over HTTP ----------------------------------------------------------------------------------------------------------


def test_a_solution_carries_its_encrypted_reasoning_across_calls_of_tools(faults: FaultServer) -> None:
    called = CALL | {"name": "calculator", "arguments": '{"expression": "3 + 2"}'}
    first = sse(*REASONED, event("output_item.done", 1, item=called), ended())
    faults.plays(raw(head() + first), raw(head() + sse(*SPOKEN, ended())))
    calculator = builtin_tools()["calculator"]
    model = HttpModel(
        resolve(f"{faults.base_url}#m?wire=responses", overrides={f"{faults.base_url}#m": {"tools": True}})
    )

    done = Runtime(model, tools=[calculator]).run(solve("3 + 2?", [calculator.spec], SolveOptions(tool_mode="native")))

    assert {seen.path for seen in faults.seen} == {"/v1/responses"}
    sent: Any = faults.seen[1].json
    kinds = [item.get("type", item.get("role")) for item in sent["input"]]
    assert kinds[-3:] == ["reasoning", "function_call", "function_call_output"]
    assert sent["input"][-3] == KEPT
    assert sent["input"][-1]["output"] == "5"
    assert "3 + 2" in done.text


def test_a_wrong_address_is_reported_once(faults: FaultServer) -> None:
    body = b'{"error": {"message": "Not Found", "type": "invalid_request_error"}}'
    faults.plays(raw(head(len(body), "application/json", 404) + body))

    with pytest.raises(ModelError, match="does not have this path"):
        list(HttpModel(resolve(f"{faults.base_url}#m?wire=responses")).stream(ASK))


def test_an_assistant_s_turn_without_reasoning_is_plain() -> None:
    assert written(Request((user("a"), assistant("b"), user("c"))))["input"][1] == {"role": "assistant", "content": "b"}


def test_an_image_and_a_pdf_are_parts_of_the_input() -> None:
    image = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(16), "cat.png")
    report = Attachment.from_bytes(b"%PDF-1.7\n", "report.pdf")

    [message] = written(Request((user("Look", [image, report]),)))["input"]

    assert [part["type"] for part in message["content"]] == ["input_image", "input_file", "input_text"]
    assert message["content"][0]["image_url"].startswith("data:image/png;base64,")
    assert message["content"][1]["filename"] == "report.pdf"


def test_a_response_of_azure_is_read_with_its_filters_beside_it() -> None:
    """Transcribed from a recorded exchange with a resource's /openai/v1/responses."""
    output = [
        {
            "content": [{"annotations": [], "logprobs": [], "text": "Paris", "type": "output_text"}],
            "id": "msg_1",
            "phase": "final_answer",
            "role": "assistant",
            "status": "completed",
            "type": "message",
        }
    ]
    filters = [{"blocked": False, "content_filter_raw": [], "content_filter_results": {}, "source_type": "prompt"}]
    reasoning = {"context": "all_turns", "effort": "none", "mode": "standard", "summary": None}
    usage = USAGE | {"input_tokens": 18, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5}
    body = HEAD | {
        "model": "gpt-5.4", "status": "completed", "content_filters": filters, "error": None, "incomplete_details": None,
        "output": output, "reasoning": reasoning, "usage": usage | {"output_tokens_details": {"reasoning_tokens": 0}},
    }  # fmt: skip

    response = read(json.dumps(body).encode(), name="https://acme.openai.azure.com/openai/v1#prod?wire=responses")

    assert (response.text, response.finish, response.usage, response.model) == (
        "Paris",
        "stop",
        Usage(18, 5),
        "gpt-5.4",
    )
