import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError, ModelError, OverloadedError, ProtocolError, RateLimitError, UnsupportedError
from taiwa.kernel.messages import (
    Constraint,
    Grammar,
    JsonSchema,
    Message,
    Regex,
    Request,
    Response,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.models.http_api.errors import error_from_status
from taiwa.models.providers import resolve
from tests.models.pieces import PLACES, cut

OLD, NEW = "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-7"
ASK = (system("Be brief."), user("How are you?"))
CLOCK = ToolSpec("clock", "Tell the time.", {"type": "object", "properties": {}})
DICE = ToolSpec("dice", "Throw.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}
ORIGIN = "messages:Anthropic:claude-sonnet-4-5"


def written(request: Request, name: str = OLD, **overrides: bool) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(resolve(name, overrides={name: overrides}).codec.encode(request).body)
    return body


def bare(node: Any) -> Any:
    """The same without cache marks."""
    if isinstance(node, dict):
        return {key: bare(value) for key, value in node.items() if key != "cache_control"}
    return [bare(item) for item in node] if isinstance(node, list) else node


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": "m", "content": [], "usage": usage}}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def more(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | fields}


def end(reason: str = "end_turn", stop: str | None = None, **usage: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": stop}
    return {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}


SPOKEN = (begin(0, type="text", text=""), more(0, "text_delta", text="so "), more(0, "text_delta", text="it is"))


def read(body: bytes, prefix: str = "", *places: int) -> Response:
    decoder = resolve(OLD).codec.decoder("text/event-stream", prefix)
    return collect_response([chunk for piece in cut(body, places) for chunk in decoder.feed(piece)] + decoder.close())


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_plain_request_has_its_instructions_apart_and_a_bound() -> None:
    call = resolve(OLD).codec.encode(Request(ASK))

    assert call.path == "messages"
    assert ("anthropic-version", "2023-06-01") in call.headers
    assert bare(json.loads(call.body)) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": [text("Be brief.")],
        "messages": [{"role": "user", "content": [text("How are you?")]}],
        "stream": True,
        "temperature": 0.0,
    }


def test_the_key_stands_in_a_header_of_its_own() -> None:
    codec = resolve(OLD).codec

    assert codec.auth("secret") == (("x-api-key", "secret"),)
    assert codec.auth("") == ()
    assert all(name != "x-api-key" for name, _ in codec.encode(Request(ASK)).headers)


def test_messages_of_one_role_are_one_turn() -> None:
    messages = (user("a"), user("b"), assistant("c"), assistant("d"), user("e"))

    assert bare(written(Request(messages)))["messages"] == [
        {"role": "user", "content": [text("a"), text("b")]},
        {"role": "assistant", "content": [text("c"), text("d")]},
        {"role": "user", "content": [text("e")]},
    ]


def test_instructions_in_mid_conversation_keep_their_place() -> None:
    messages = (system("first"), system("second"), user("a"), system("now in French"), user("b"))

    body = bare(written(Request(messages)))

    assert body["system"] == [text("first"), text("second")]
    assert body["messages"] == [{"role": "user", "content": [text("a"), text("now in French"), text("b")]}]


def test_text_of_white_space_alone_is_not_sent() -> None:
    messages = (system(" "), user("a"), assistant("\n"), user("b"))

    body = bare(written(Request(messages)))

    assert "system" not in body
    assert body["messages"] == [{"role": "user", "content": [text("a"), text("b")]}]


def test_a_request_without_a_message_is_an_input_error() -> None:
    with pytest.raises(InputError, match="add a user message"):
        written(Request((system("Be brief."),)))


def test_calls_and_results_are_bound_by_ids_and_results_come_first() -> None:
    messages = (
        user("time?"),
        Message("assistant", (Thinking("hm"), Text("Let me see."), ToolCall("clock", '{"zone": "JST"}', "c1"), ToolCall("dice", "")))
        ,
        Message("user", (Text("and?"), ToolResult("noon", call="c1"))),
        Message("tool", (ToolResult("no dice", name="dice", error="missing"),)),
    )  # fmt: skip

    assert bare(written(Request(messages)))["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                text("Let me see."),
                {"type": "tool_use", "id": "c1", "name": "clock", "input": {"zone": "JST"}},
                {"type": "tool_use", "id": "call_1", "name": "dice", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "noon"},
                {"type": "tool_result", "tool_use_id": "call_1", "content": "no dice", "is_error": True},
                text("and?"),
            ],
        },
    ]


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '"text"', "NaN", '{"a": NaN}', '{"a": "\\ud83d"}', "[" * 9999])
def test_arguments_that_are_no_object_are_handed_back_in_one(arguments: str) -> None:
    messages = (user("?"), Message("assistant", (ToolCall("clock", arguments, "c1"),)), user("!"))

    sent = bare(written(Request(messages)))["messages"][1]["content"][0]["input"]

    assert sent == {"invalid_json": arguments}


def test_a_result_that_stands_with_its_call_goes_to_the_next_turn() -> None:
    spliced = Message("assistant", (Text("Let me see."), ToolCall("clock", "{}", "c1"), ToolResult("noon", call="c1")))

    sent = bare(written(Request((user("?"), spliced))))["messages"]

    assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": "noon"}]


def test_an_id_that_the_wire_refuses_is_replaced_in_call_and_result() -> None:
    call, result = ToolCall("clock", "{}", "functions.clock:0"), ToolResult("noon", call="functions.clock:0")

    sent = bare(written(Request((user("?"), Message("assistant", (call,)), Message("tool", (result,))))))["messages"]

    assert sent[1]["content"][0]["id"] == sent[2]["content"][0]["tool_use_id"] == "call_0"


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("auto", None),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("clock", {"type": "tool", "name": "clock"}),
    ],
)
def test_tools_are_offered_with_the_choice(choice: str, field: Any) -> None:
    body = bare(written(Request(ASK, tools=(CLOCK,), tool_choice=choice)))

    assert body["tools"] == [{"name": "clock", "description": "Tell the time.", "input_schema": CLOCK.parameters}]
    assert body.get("tool_choice") == field


def test_a_choice_that_names_no_tool_is_an_input_error() -> None:
    with pytest.raises(InputError, match="'watch', which is not a tool"):
        written(Request(ASK, tools=(CLOCK,), tool_choice="watch"))


def test_sampling_is_sent_where_it_is_taken_and_never_both_kinds() -> None:
    old = written(Request(ASK, sampling=Sampling(0.7, 0.9, 100, 7)))
    nucleus = written(Request(ASK, sampling=Sampling(None, 0.9)))
    new = written(Request(ASK, sampling=Sampling(0.7, 0.9, 100)), NEW)

    assert (old["temperature"], old["max_tokens"]) == (0.7, 100)
    assert not {"top_p", "seed"} & set(old)
    assert nucleus["top_p"] == 0.9
    assert not {"top_p", "temperature"} & set(new)


def test_stop_strings_are_sent_and_white_space_alone_is_refused() -> None:
    assert written(Request(ASK, stop=("<<", "a", "b", "c", "d")))["stop_sequences"] == ["<<", "a", "b", "c", "d"]
    with pytest.raises(UnsupportedError, match="white space only") as caught:
        written(Request(ASK, stop=("\n",)))
    assert caught.value.capability == "stop"


def test_a_prefix_is_a_last_message_without_white_space_at_its_end() -> None:
    body = bare(written(Request(ASK, prefix="I am \n")))

    assert body["messages"][-1] == {"role": "assistant", "content": [text("I am")]}
    assert bare(written(Request(ASK, prefix=" \n")))["messages"][-1]["role"] == "user"


def test_a_message_of_the_model_at_the_end_is_sent_without_white_space_at_its_end() -> None:
    turns = bare(written(Request((*ASK, assistant("Fine. "), user("And now?"), assistant("I am ")))))["messages"]

    assert [turn["content"][0]["text"] for turn in turns if turn["role"] == "assistant"] == ["Fine. ", "I am"]


def test_a_prefix_is_refused_where_the_model_would_refuse_it() -> None:
    with pytest.raises(UnsupportedError) as caught:
        written(Request(ASK, prefix="I am"), NEW)
    assert caught.value.capability == "prefix"
    with pytest.raises(UnsupportedError, match="remove one"):
        written(Request(ASK, prefix="{", constraint=JsonSchema({"type": "object", "properties": {}})))


@pytest.mark.parametrize(("constraint", "capability"), [(Regex("a"), "regex"), (Grammar("start: /a/"), "grammar")])
def test_other_constraints_are_refused(constraint: Constraint, capability: str) -> None:
    with pytest.raises(UnsupportedError, match="does not support constraint") as caught:
        written(Request(ASK, constraint=constraint))

    assert caught.value.capability == capability


def test_a_schema_is_refused_by_models_before_it_was_invented() -> None:
    with pytest.raises(UnsupportedError, match="JSON Schema"):
        written(
            Request(ASK, constraint=JsonSchema({"type": "object", "properties": {}})),
            "anthropic:claude-3-5-haiku-latest",
        )


def test_a_schema_is_sent_in_the_words_that_the_server_takes() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "description": "in years"},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 2, "maxItems": 3},
            "some": {"type": "array", "items": {"$ref": "#/$defs/P"}, "minItems": 1},
            "either": {"oneOf": [{"type": "number", "multipleOf": 2}, {"type": "null"}]},
            "minimum": {"enum": [1, 2]},
        },
        "required": ["age"],
        "$defs": {"P": {"type": ["object", "null"], "properties": {}}},
    }

    body = written(Request(ASK, constraint=JsonSchema(schema)))

    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {
                "age": {"type": "integer", "description": "in years"},
                "names": {"type": "array", "items": {"type": "string"}},
                "some": {"type": "array", "items": {"$ref": "#/$defs/P"}, "minItems": 1},
                "either": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "minimum": {"enum": [1, 2]},
            },
            "required": ["age"],
            "$defs": {"P": {"type": ["object", "null"], "properties": {}, "additionalProperties": False}},
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    "free", [{"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}]
)
def test_an_object_with_free_keys_is_refused_with_its_place(free: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"words": {"type": "array", "items": free}}}

    with pytest.raises(UnsupportedError, match=r"at the schema\.words\[\]") as caught:
        written(Request(ASK, constraint=JsonSchema(schema)))

    assert caught.value.capability == "json_schema"


def marks(body: dict[str, Any]) -> list[str]:
    """Where the marks are, in the order of the cache: tools, instructions, messages."""
    found = [f"tool {tool['name']}" for tool in body.get("tools", []) if "cache_control" in tool]
    found += [f"system {block['text']}" for block in body.get("system", []) if "cache_control" in block]
    for number, turn in enumerate(body["messages"]):
        found += [
            f"{number} {block.get('text', block['type'])}" for block in turn["content"] if "cache_control" in block
        ]
    return found


def test_marks_sit_on_what_the_next_request_repeats() -> None:
    last = Message("user", (Text("state", transient=True), Text("c"), Text("d")))
    messages = (system("one"), system("two"), user("a"), assistant("b"), last)

    body = written(Request(messages, tools=(CLOCK, DICE), prefix="I"))

    assert marks(body) == ["tool dice", "system two", "2 d"]
    assert body["messages"][2]["content"] == [text("c"), text("d") | {"cache_control": MARK}, text("state")]
    assert body["messages"][3]["role"] == "assistant"


def test_a_mark_may_sit_on_a_result() -> None:
    messages = (
        user("?"),
        Message("assistant", (ToolCall("clock", "{}", "c"),)),
        Message("tool", (ToolResult("noon", call="c"),)),
    )

    assert marks(written(Request(messages))) == ["2 tool_result"]


def test_there_are_no_marks_where_they_are_not_wanted() -> None:
    assert marks(written(Request(ASK, tools=(CLOCK,)), cache=False)) == []


TURNS = st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), max_size=4)
WORDS = st.text(max_size=6).filter(lambda words: bool(words.strip()))


def conversation(turns: list[tuple[str, str]], said: str, state: str) -> Request:
    told = [message for asked, answer in turns for message in (user(asked), assistant(answer))]
    return Request((system("app"), *told, Message("user", (Text(said), Text(state, transient=True)))), tools=(CLOCK,))


@given(TURNS, WORDS, WORDS, WORDS, WORDS)
def test_the_next_request_repeats_this_one_up_to_its_last_mark(
    turns: list[tuple[str, str]], said: str, state: str, answer: str, next_state: str
) -> None:
    now, later = (
        written(conversation(turns, said, state)),
        written(conversation([*turns, (said, answer)], "go on", next_state)),
    )

    *earlier, last = bare(now)["messages"]
    lasting = [block for block, marked in zip(last["content"], now["messages"][-1]["content"], strict=True)]
    while "cache_control" not in now["messages"][-1]["content"][len(lasting) - 1]:
        lasting.pop()
    place = len(earlier)
    repeated = bare(later)["messages"]
    assert repeated[:place] == earlier
    assert repeated[place]["content"] == lasting
    assert (later["system"], later["tools"]) == (now["system"], now["tools"])


PARTS = st.lists(
    st.builds(Text, st.sampled_from(["", " ", "a", "b"]), st.booleans())
    | st.builds(ToolCall, st.just("clock"), st.sampled_from(["{}", "", "{"]), st.sampled_from(["", "c", "é"]))
    | st.builds(ToolResult, st.just("noon"), call=st.sampled_from(["", "c", "x"]))
    | st.builds(Thinking, st.just("hm")),
    max_size=3,
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.lists(st.builds(lambda role, parts: Message(role, tuple(parts)), ROLES, PARTS), max_size=5))
def test_whatever_is_said_turns_alternate_and_none_is_empty(messages: list[Message]) -> None:
    try:
        sent = written(Request((*messages, user("last"))))["messages"]
    except InputError:
        return

    roles = [turn["role"] for turn in sent]
    assert all(first != second for first, second in pairwise(roles))
    assert all(turn["content"] for turn in sent)
    for turn in sent:
        kinds = [block["type"] for block in turn["content"]]
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result") or turn["role"] == "assistant"
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")


def test_a_result_in_a_message_of_the_model_stands_before_the_words_of_its_turn() -> None:
    result = Message("assistant", (ToolResult("noon"),))

    said = written(Request((user("a"), result, user("last"))))["messages"]

    assert [block["type"] for block in said[0]["content"]] == ["tool_result", "text", "text"]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_stream_is_read_as_it_comes() -> None:
    decoder = resolve(OLD).codec.decoder("text/event-stream")
    body = sse(start(input_tokens=3, output_tokens=1), {"type": "ping"}, *SPOKEN, *end(output_tokens=4))
    first, second = body[: body.index(b"it is")], body[body.index(b"it is") :]

    assert decoder.feed(first) == [TextDelta("so ")]
    assert decoder.feed(second) == [TextDelta("it is"), StreamEnd("stop", None, Usage(3, 4), "m")]
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"), ("max_tokens", "length"), ("model_context_window_exceeded", "length"), ("tool_use", "stop"),
        ("refusal", "refusal"), ("pause_turn", "interrupted"), ("something_new", "stop"),
    ],
)  # fmt: skip
def test_the_reason_of_the_end_is_translated(reason: str, finish: str) -> None:
    assert read(sse(start(), *SPOKEN, *end(reason))).finish == finish


def test_the_stop_string_is_told() -> None:
    response = read(sse(start(), *SPOKEN, *end("stop_sequence", "<<")))

    assert (response.finish, response.stop) == ("stop", "<<")


def test_thoughts_calls_and_words_are_kept_apart() -> None:
    body = sse(
        start(),
        begin(0, type="thinking", thinking=""), more(0, "thinking_delta", thinking="hm"), more(0, "signature_delta", signature="x"),
        begin(1, type="redacted_thinking", data="x"),
        begin(2, type="text", text="a"), more(2, "text_delta", text="b"), more(2, "citations_delta", citation={}),
        begin(3, type="tool_use", id="t1", name="clock", input={}), more(3, "input_json_delta", partial_json='{"zo'),
        begin(4, type="tool_use", id="t2", name="dice", input={"n": 1}),
        more(3, "input_json_delta", partial_json='ne": 1}'),
        begin(5, type="server_tool_use", id="s", name="web_search", input={}), more(5, "input_json_delta", partial_json="{}"),
        begin(6, type="web_search_tool_result", content=[]), begin(7, type="tool_use", id="t3", name="coin", input={}),
        {"type": "content_block_stop", "index": 3}, {"type": "news"},
        *end("tool_use"),
    )  # fmt: skip

    response = read(body)

    assert response.message.parts == (
        Thinking("hm", {"type": "thinking", "thinking": "hm", "signature": "x"}, ORIGIN),
        Thinking("", {"type": "redacted_thinking", "data": "x"}, ORIGIN),
        Text("ab"),
        ToolCall("clock", '{"zone": 1}', "t1"),
        ToolCall("dice", '{"n": 1}', "t2"),
        ToolCall("coin", "{}", "t3"),
    )
    assert response.finish == "tool_calls"


@pytest.mark.parametrize(
    ("at_start", "at_end", "usage"),
    [
        ({"input_tokens": 3, "output_tokens": 1}, {"output_tokens": 9}, Usage(3, 9)),
        ({"input_tokens": 3}, {"input_tokens": 5, "output_tokens": 9}, Usage(5, 9)),
        (
            {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20},
            {"output_tokens": 9, "cache_read_input_tokens": None},
            Usage(123, 9, 100, 20),
        ),
        (
            {"input_tokens": 3},
            {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 7}},
            Usage(3, 9, 0, 0, 7),
        ),
        ({}, {"output_tokens": 9}, None),
        ({}, {}, None),
    ],
)
def test_a_bill_is_merged_from_both_ends(at_start: dict[str, Any], at_end: dict[str, Any], usage: Usage | None) -> None:
    assert read(sse(start(**at_start), *SPOKEN, *end(**at_end))).usage == usage


def test_an_answer_of_one_piece_is_read_like_a_stream() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        text("so it is"),
        {"type": "tool_use", "id": "t1", "name": "clock", "input": {"zone": "日本"}},
    ]
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 4}
    body = {"type": "message", "model": "m", "content": content, "stop_reason": "tool_use", "usage": usage}

    response = read(json.dumps(body).encode())

    call = ToolCall("clock", '{"zone": "日本"}', "t1")
    message = Message("assistant", (Thinking("hm", content[0], ORIGIN), Text("so it is"), call))
    assert response == Response(message, "tool_calls", None, Usage(13, 4, 10), "m")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", OverloadedError),
        ("rate_limit_error", RateLimitError),
        ("api_error", OverloadedError),
        ("new", ModelError),
    ],
)
def test_a_failure_in_mid_stream_is_raised_after_what_was_said(kind: str, error: type[ModelError]) -> None:
    decoder = resolve(OLD).codec.decoder("text/event-stream")
    failed = {"type": "error", "error": {"type": kind, "message": "Overloaded"}}

    said = decoder.feed(sse(start(), *SPOKEN, failed))

    assert said == [TextDelta("so it is")]
    with pytest.raises(ModelError, match="Overloaded") as caught:
        decoder.close()
    assert type(caught.value) is error


@pytest.mark.parametrize("body", [b"", sse(start()), sse(start(), *SPOKEN), sse(start(), *SPOKEN, *end())[:-160]])
def test_an_answer_that_ends_in_the_middle_is_no_answer(body: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"in the middle|empty answer"):
        read(body)


def test_an_answer_that_told_its_end_is_whole_without_the_last_event() -> None:
    assert read(sse(start(), *SPOKEN, end()[0])).text == "so it is"


@pytest.mark.parametrize("body", [b"{}", b'{"content": "text"}', b"[]", b'{"content": ['])
def test_an_answer_of_one_piece_must_be_a_message(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(body)


def test_a_failure_names_the_server_and_the_model() -> None:
    body = {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-sonnet-4-5"}}

    error = error_from_status(
        404, {"content-type": "application/json"}, json.dumps(body).encode(), resolve(OLD).codec.server
    )

    assert error.message.startswith("Anthropic does not have the model 'claude-sonnet-4-5' (404)")


def test_white_space_that_was_not_sent_is_taken_off_the_answer() -> None:
    body = sse(start(), begin(0, type="text", text=""), more(0, "text_delta", text=" \n4"), *end())

    assert read(body, "Answer: \n").text == "4"
    assert read(body, "Answer:").text == " \n4"


@given(st.lists(st.text(max_size=5), max_size=6), st.text(max_size=6), PLACES)
def test_an_answer_reads_the_same_however_it_is_cut(said: list[str], arguments: str, places: list[int]) -> None:
    events = [more(0, "text_delta", text=piece) for piece in said]
    call = begin(1, type="tool_use", id="t", name="dice", input={}), more(1, "input_json_delta", partial_json=arguments)
    body = sse(start(input_tokens=1), begin(0, type="text", text=""), *events, *call, *end("tool_use", output_tokens=2))

    response = read(body, "", *places)

    expected = ToolCall("dice", arguments if arguments.strip() else "{}", "t")
    assert response == Response(
        Message("assistant", (Text("".join(said)), expected)), "tool_calls", None, Usage(1, 2), "m"
    )


# --- reasoning ----------------------------------------------------------------------------------------------------------

SIGNED = Thinking("hm", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, ORIGIN)
HIDDEN = Thinking("", {"type": "redacted_thinking", "data": "eA=="}, ORIGIN)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (
            "anthropic:claude-opus-5?effort=low",
            ({"type": "adaptive", "display": "summarized"}, {"effort": "low"}, 32_000),
        ),
        (
            "anthropic:claude-opus-4-6?effort=max",
            ({"type": "adaptive", "display": "summarized"}, {"effort": "max"}, 32_000),
        ),
        ("anthropic:claude-opus-4-8?effort=none", ({"type": "disabled"}, None, 4096)),
        (
            "anthropic:claude-opus-4-5?effort=high",
            ({"type": "enabled", "budget_tokens": 16_384}, {"effort": "high"}, 20_480),
        ),
        ("anthropic:claude-sonnet-4-5?effort=minimal", ({"type": "enabled", "budget_tokens": 1024}, None, 5120)),
        ("anthropic:claude-sonnet-4-6?budget=2000", ({"type": "enabled", "budget_tokens": 2000}, None, 6096)),
        ("anthropic:claude-sonnet-4-5?effort=none", (None, None, 4096)),
        ("anthropic:claude-opus-5", (None, None, 4096)),
    ],
)
def test_effort_is_written_as_each_version_takes_it(name: str, sent: tuple[Any, Any, int]) -> None:
    body = written(Request(ASK), name)

    assert (body.get("thinking"), body.get("output_config"), body["max_tokens"]) == sent


def test_a_model_that_reasons_gets_no_temperature_and_no_prefix() -> None:
    name = f"{OLD}?effort=low"

    assert "temperature" not in written(Request(ASK), name)
    assert written(Request(ASK), f"{OLD}?effort=none")["temperature"] == 0.0
    with pytest.raises(UnsupportedError, match="prefix"):
        written(Request(ASK, prefix="I"), name)


def test_effort_and_a_schema_stand_side_by_side() -> None:
    schema = JsonSchema({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]})

    body = written(Request(ASK, constraint=schema), "anthropic:claude-opus-5?effort=high")

    assert body["output_config"]["effort"] == "high"
    assert body["output_config"]["format"]["type"] == "json_schema"


def test_a_limit_below_the_budget_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="max_tokens must be more than the 2048 tokens of reasoning, got 100"):
        written(Request(ASK, sampling=Sampling(max_tokens=100)), f"{OLD}?effort=low")


def test_a_demanded_call_goes_without_a_budget_which_the_server_would_refuse() -> None:
    body = written(Request(ASK, tools=(CLOCK,), tool_choice="required"), f"{OLD}?effort=low")

    assert "thinking" not in body


def test_signed_reasoning_goes_back_unchanged_before_its_calls() -> None:
    called = Message("assistant", (SIGNED, HIDDEN, Text("I look."), ToolCall("clock", "{}", "t1")))
    messages = (user("time?"), called, Message("tool", (ToolResult("noon", call="t1"),)))

    assert written(Request(messages))["messages"][1]["content"] == [
        SIGNED.data,
        HIDDEN.data,
        text("I look."),
        {"type": "tool_use", "id": "t1", "name": "clock", "input": {}},
    ]


@pytest.mark.parametrize(
    "block",
    [
        Thinking("hm"),
        Thinking("hm", SIGNED.data, "messages:Anthropic:claude-opus-4-7"),
        Thinking("", {"type": "image", "source": {"type": "url", "url": "http://h"}}, ORIGIN),
    ],
)
def test_reasoning_of_others_and_other_blocks_are_left_out(block: Thinking) -> None:
    message = Message("assistant", (block, Text("noon")))

    assert written(Request((user("time?"), message, user("sure?"))))["messages"][1]["content"] == [text("noon")]


def test_what_was_read_is_what_goes_back() -> None:
    body = sse(
        start(), begin(0, type="thinking", thinking="", signature=""), more(0, "thinking_delta", thinking="h"),
        more(0, "thinking_delta", thinking="m"), more(0, "signature_delta", signature="c2"), more(0, "signature_delta", signature="ln"),
        begin(1, type="tool_use", id="t1", name="clock", input={}), *end("tool_use"),
    )  # fmt: skip

    assert read(body).message.signed_thinking == (SIGNED,)


def test_reasoning_without_a_signature_is_shown_only() -> None:
    body = sse(start(), begin(0, type="thinking", thinking=""), more(0, "thinking_delta", thinking="hm"), *end())

    assert read(body).message.parts == (Thinking("hm"), Text(""))
