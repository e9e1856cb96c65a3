import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError, InputError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Message,
    Regex,
    Request,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolCallsInText,
    ToolResult,
    ToolSpec,
    assistant,
    system,
    user,
)
from taiwa.models.http_api.provider_interface import parse_base_url
from taiwa.models.providers import resolve

ASK = (system("Be brief."), user("How are you?"))
CLOCK = ToolSpec("clock", "Tell the time.", {"type": "object", "properties": {}})
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


def written(request: Request, name: str = "openai:gpt-4o", **overrides: bool) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(resolve(name, overrides={name: overrides}).codec.encode(request).body)
    return body


def test_a_plain_request_says_no_more_than_it_must() -> None:
    call = resolve("openai:gpt-4o").codec.encode(Request(ASK))

    assert call.path == "chat/completions"
    assert json.loads(call.body) == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
    }


@pytest.mark.parametrize("provider", ["llamacpp", "vllm", "sglang", "ollama", "lmstudio"])
def test_a_server_of_the_user_s_own_gets_a_limit_that_the_caller_replaces(provider: str) -> None:
    own = Request(ASK, sampling=Sampling(max_tokens=9_000))

    assert written(Request(ASK), f"{provider}:m")["max_tokens"] == 4_096
    assert written(Request(ASK), f"{provider}:m?wire=responses")["max_output_tokens"] == 4_096
    assert written(own, f"{provider}:m")["max_tokens"] == 9_000


@pytest.mark.parametrize("name", ["openai:gpt-5", "openrouter:a/b", "mistral:m", "groq:m", "http://10.0.0.1/v1#m"])
def test_a_server_with_limits_of_its_own_gets_none(name: str) -> None:
    assert not {"max_tokens", "max_completion_tokens", "max_output_tokens"} & set(written(Request(ASK), name))


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://acme.openai.azure.com/openai/v1", "https://acme.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://acme.openai.azure.com/openai/deployments/chat?api-version=2024-10-21",
            "https://acme.openai.azure.com/openai/deployments/chat/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_azure_is_asked_at_its_address_with_its_version_and_its_header(base: str, address: str) -> None:
    target = resolve(f"{base}#chat")
    call = target.codec.encode(Request(ASK, constraint=JsonSchema(POINT)))

    assert parse_base_url(target.base_url).join(call.path) == address
    assert str(parse_base_url(base)) == base
    assert target.codec.auth("secret") == (("api-key", "secret"),)
    assert json.loads(call.body)["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("query", ["key=secret", "api-version=1&key=secret", "api-version=", "api-version=%0d"])
def test_no_other_query_is_taken_in_a_base_url(query: str) -> None:
    with pytest.raises(ConfigError, match="query or a fragment"):
        resolve(f"https://acme.openai.azure.com/openai?{query}#chat")


def test_the_key_stands_in_a_header_and_nowhere_else() -> None:
    codec = resolve("openai:gpt-4o").codec

    assert codec.auth("secret") == (("authorization", "Bearer secret"),)
    assert codec.auth("") == ()
    assert all(name != "authorization" for name, _ in codec.encode(Request(ASK)).headers)


def test_several_texts_are_one_with_a_blank_line_between_and_the_transient_ones_last() -> None:
    message = Message("user", (Text("state", transient=True), Text("one"), Text(""), Text("two")))

    assert written(Request((message,)))["messages"] == [{"role": "user", "content": "one\n\ntwo\n\nstate"}]


def test_a_model_s_own_words_are_joined_as_it_wrote_them_and_its_thoughts_left_out() -> None:
    message = Message("assistant", (Thinking("hm"), Text("2+2"), Text("=4")))

    assert written(Request((user("?"), message, user("why?"))))["messages"][1] == {
        "role": "assistant",
        "content": "2+2=4",
    }


def test_calls_and_results_are_bound_by_ids() -> None:
    messages = (
        user("time?"),
        Message("assistant", (ToolCall("clock", '{"zone": "JST"}', "c1"), ToolCall("clock", ""))),
        Message("tool", (ToolResult("noon", call="c1"), ToolResult("one"))),
    )

    assert written(Request(messages))["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "JST"}'}},
                {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
        {"role": "tool", "tool_call_id": "call_1", "content": "one"},
    ]


def test_a_result_in_a_user_s_message_stands_before_its_words() -> None:
    messages = (
        user("?"),
        Message("assistant", (ToolCall("clock", "{}", "c1"),)),
        Message("user", (Text("and?"), ToolResult("noon", call="c1"))),
    )

    assert [message["role"] for message in written(Request(messages))["messages"]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_a_tool_message_of_plain_text_answers_the_open_call() -> None:
    messages = (user("?"), Message("assistant", (ToolCall("clock", "{}", "c1"),)), Message("tool", (Text("noon"),)))

    assert written(Request(messages))["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "noon"}


def test_an_empty_message_is_still_a_message() -> None:
    assert written(Request((user(""),)))["messages"] == [{"role": "user", "content": ""}]


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("none", "none"),
        ("required", "required"),
        ("clock", {"type": "function", "function": {"name": "clock"}}),
    ],
)
def test_tools_are_offered_with_the_choice(choice: str, field: Any) -> None:
    body = written(Request(ASK, tools=(CLOCK,), tool_choice=choice))

    function = {"name": "clock", "description": "Tell the time.", "parameters": CLOCK.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["tool_choice"] == field


def test_a_schema_keeps_the_order_of_its_fields() -> None:
    properties: dict[str, Any] = {"why": {"type": "string"}, "answer": {"type": "string"}}
    schema = JsonSchema({"type": "object", "properties": properties})
    tool = ToolSpec("judge", "", {"type": "object", "properties": properties})

    body = written(Request(ASK, constraint=schema, tools=(tool,)))

    assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == ["why", "answer"]
    assert list(body["tools"][0]["function"]["parameters"]["properties"]) == ["why", "answer"]


def test_an_automatic_choice_is_not_spelt_out() -> None:
    assert "tool_choice" not in written(Request(ASK, tools=(CLOCK,)))


def test_a_choice_that_names_no_tool_is_an_input_error() -> None:
    with pytest.raises(InputError, match="'watch', which is not a tool"):
        written(Request(ASK, tools=(CLOCK,), tool_choice="watch"))


def test_sampling_uses_the_words_of_the_dialect() -> None:
    request = Request(ASK, sampling=Sampling(0.7, 0.9, 100, 7))

    names = "openai:gpt-4o", "mistral:x", "deepseek:deepseek-chat", "http://h/v1#m"
    openai, mistral, deepseek, plain = (written(request, name) for name in names)

    assert (openai["max_completion_tokens"], openai["seed"], openai["top_p"]) == (100, 7, 0.9)
    assert (mistral["max_tokens"], mistral["random_seed"], mistral["temperature"]) == (100, 7, 0.7)
    assert "stream_options" not in mistral
    assert "seed" not in deepseek
    assert plain["seed"] == 7  # nothing is known about it


@pytest.mark.parametrize("name", ["openai:o3", "openai:gpt-5-mini", "openai:gpt-7", "openrouter:openai/o4-mini"])
def test_a_reasoning_model_is_not_sent_the_sampling_it_refuses(name: str) -> None:
    body = written(Request(ASK, sampling=Sampling(0.0, 0.5, 100, 7)), name)

    assert not {"temperature", "top_p", "seed"} & set(body)


def test_sampling_left_open_is_not_sent() -> None:
    assert "temperature" not in written(Request(ASK, sampling=Sampling(None)))


def test_stop_strings_are_sent_up_to_the_limit() -> None:
    assert written(Request(ASK, stop=("a", "b", "c", "d")))["stop"] == ["a", "b", "c", "d"]
    with pytest.raises(UnsupportedError, match="at most 4 stop strings, got 5") as caught:
        written(Request(ASK, stop=tuple("abcde")))
    assert caught.value.capability == "stop"


@pytest.mark.parametrize(
    ("request_", "capability"),
    [
        (Request(ASK, stop=("x",)), "stop"),
        (Request(ASK, tools=(CLOCK,)), "tools"),
        (Request(ASK, prefix="I am"), "prefix"),
        (Request(ASK, constraint=JsonSchema(POINT)), "json_schema"),
        (Request(ASK, constraint=Regex("a+")), "regex"),
        (Request(ASK, constraint=Grammar("start: /a+/")), "grammar"),
    ],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_what_a_model_cannot_do_is_refused_before_it_is_sent(
    request_: Request, capability: Capability, allowed: bool
) -> None:
    beyond = {"regex", "grammar"}

    if allowed and capability not in beyond:
        written(request_, "http://h/v1#m", **{capability: True})
        return
    with pytest.raises(UnsupportedError) as caught:
        written(request_, "http://h/v1#m", **{capability: allowed})

    assert caught.value.capability == capability
    assert "\n" not in caught.value.message


def test_a_prefix_is_said_as_the_server_wants_it() -> None:
    request = Request(ASK, prefix="I am ")
    last = {"role": "assistant", "content": "I am "}

    llama, vllm, mistral = (written(request, name) for name in ("llamacpp:x", "vllm:x", "mistral:x"))
    other = written(request, "http://h/v1#m", prefix=True)

    assert llama["messages"][-1] == vllm["messages"][-1] == other["messages"][-1] == last
    assert (vllm["continue_final_message"], vllm["add_generation_prompt"]) == (True, False)
    assert "continue_final_message" not in llama
    assert mistral["messages"][-1] == last | {"prefix": True}


def test_deepseek_continues_an_answer_at_another_path() -> None:
    codec = resolve("deepseek:deepseek-chat").codec

    assert codec.encode(Request(ASK, prefix="I am")).path == "beta/chat/completions"
    assert codec.encode(Request(ASK)).path == "chat/completions"


MANY_AS = 'root ::= anon0\nanon0 ::= "a" anon0-1\nanon0-1 ::= "a" anon0-1 | ""'


@pytest.mark.parametrize(
    ("name", "constraint", "fields"),
    [
        ("vllm:x", JsonSchema(POINT), {"structured_outputs": {"json": POINT}}),
        ("vllm:x", Regex("a+"), {"structured_outputs": {"regex": "a+"}}),
        ("vllm:x", Choice(("a", "b")), {"structured_outputs": {"choice": ["a", "b"]}}),
        ("vllm:x", Grammar("a: /a+/", "a"), {"structured_outputs": {"grammar": MANY_AS}}),
        ("sglang:x", Grammar("start: /a+/"), {"ebnf": MANY_AS}),
        ("sglang:x", Choice(("a", "b?")), {"regex": r"a|b\?"}),
        ("llamacpp:x", Grammar("start: /a+/"), {"grammar": MANY_AS}),
        ("llamacpp:x", Grammar('root ::= "a"+'), {"grammar": 'root ::= "a"+'}),
        ("llamacpp:x", Regex("yes|no"), {"grammar": 'root ::= "no" | "yes"'}),
        ("llamacpp:x", Choice(("yes", "no")), {"grammar": 'root ::= "no" | "yes"'}),
        ("sglang:x", Regex("a+"), {"regex": "a+"}),
        *(
            (name, JsonSchema(POINT, "a point!"), {"response_format": {"type": "json_schema", "json_schema": {"name": "a_point_", "schema": POINT, "strict": True}}})
            for name in ("openai:gpt-4o", "llamacpp:x", "ollama:x", "sglang:x", "mistral:x")
        ),
    ],
)  # fmt: skip
def test_a_constraint_is_said_as_the_server_wants_it(name: str, constraint: Constraint, fields: dict[str, Any]) -> None:
    body = written(Request(ASK, constraint=constraint), name)

    assert {key: body[key] for key in fields} == fields


@pytest.mark.parametrize("constraint", [Grammar("start: /a/"), Regex("a"), Choice(("a",)), ToolCallsInText((CLOCK,))])
@pytest.mark.parametrize("name", ["openai:gpt-4o", "ollama:x", "mistral:x"])
def test_a_constraint_without_words_for_it_is_refused_whatever_a_person_claims(
    name: str, constraint: Constraint
) -> None:
    with pytest.raises(UnsupportedError, match="has no field for constraint"):
        written(Request(ASK, constraint=constraint), name, grammar=True, regex=True)


def object_of(**changes: Any) -> dict[str, Any]:
    return POINT | changes


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (POINT, True),
        (object_of(properties={"x": {"type": "array", "items": POINT}}), True),
        (object_of(properties={"x": {"anyOf": [POINT, {"type": "null"}]}}), True),
        (object_of(properties={"x": {"$ref": "#/$defs/P"}}, **{"$defs": {"P": POINT}}), True),
        (
            object_of(
                properties={"type": {"type": "object", "properties": {}, "additionalProperties": False}},
                required=["type"],
            ),
            True,
        ),
        (object_of(additionalProperties={"type": "string"}), False),
        (object_of(properties={"x": {}}), False),
        ({"type": "object", "additionalProperties": True}, False),
        # It may be left out, or null, and the strict form could not say the first.
        (object_of(properties={"x": {"type": ["integer", "null"]}}, required=[]), False),
    ],
)
def test_a_schema_that_the_strict_form_can_say_is_asked_for_strictly_as_it_is(
    schema: dict[str, Any], strict: bool
) -> None:
    body = written(Request(ASK, constraint=JsonSchema(schema)))

    assert body["response_format"]["json_schema"]["strict"] is strict
    assert body["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    ("schema", "part", "rewritten"),
    [
        (object_of(required=[]), "required", list(POINT["properties"])),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, "additionalProperties", False),
        (
            object_of(properties={"x": {"type": "string", "maxLength": 9}}, required=["x"]),
            "properties", {"x": {"type": "string", "description": "max 9 chars"}},
        ),
        (
            object_of(properties={"x": {"type": "string"}}, required=[]),
            "properties", {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        ),
        (
            object_of(properties={"x": {"type": "string", "default": "a"}}, required=[]),
            "properties", {"x": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": 'default "a"'}},
        ),
        ({"anyOf": [POINT, object_of(required=[])]}, "required", ["value"]),
    ],
)  # fmt: skip
def test_what_the_strict_form_lacks_is_said_in_other_words(schema: dict[str, Any], part: str, rewritten: Any) -> None:
    form = written(Request(ASK, constraint=JsonSchema(schema)))["response_format"]["json_schema"]

    assert form["strict"] is True
    assert form["schema"][part] == rewritten


def test_another_server_gets_the_schema_as_it_is() -> None:
    schema = object_of(properties={"x": {"type": "string", "maxLength": 9}}, required=[])

    body = written(Request(ASK, constraint=JsonSchema(schema)), "llamacpp:x")

    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": schema, "strict": False}


def test_mistral_gets_ids_of_the_one_form_it_takes() -> None:
    messages = (
        user("?"),
        Message("assistant", (ToolCall("clock", "{}", "call_abc"),)),
        Message("tool", (ToolResult("noon", call="call_abc"),)),
    )

    sent = written(Request(messages), "mistral:x")["messages"]

    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call00000"


@pytest.mark.parametrize("beyond", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_say_is_refused_before_it_is_sent(beyond: float) -> None:
    with pytest.raises(InputError, match="not a JSON value"):
        written(Request(ASK, sampling=Sampling(beyond)))


def test_half_a_character_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InputError, match="half a character"):
        written(Request((user("\ud83d"),)))


WORDS = st.text(max_size=8)
TURNS = st.lists(st.tuples(WORDS, WORDS), max_size=4)


def conversation(turns: list[tuple[str, str]], text: str, state: str) -> Request:
    told = [message for asked, said in turns for message in (user(asked), assistant(said))]
    return Request((system("app"), *told, Message("user", (Text(text), Text(state, transient=True)))))


@given(TURNS, WORDS, WORDS.filter(bool), WORDS, WORDS.filter(bool))
def test_the_next_request_begins_with_the_bytes_of_this_one_up_to_its_state(
    turns: list[tuple[str, str]], text: str, state: str, said: str, next_state: str
) -> None:
    codec = resolve("openai:gpt-4o").codec

    now = codec.encode(conversation(turns, text, state)).body
    later = codec.encode(conversation([*turns, (text, said)], "and then?", next_state)).body

    lasting = json.dumps(text, ensure_ascii=False)[:-1].encode()
    last = b'{"role":"user","content":' + lasting
    shared = now[: now.rindex(last) + len(last)]
    assert later.startswith(shared)
    assert codec.encode(conversation(turns, text, state)).body == now
