"""What a client sets and leaves out reaches the model's server, and what that does not take is named."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taiwa
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Notice, Request, ToolSpec, user
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.http_api.capabilities import save_verdict
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import open_model, resolve, resolve_asked, resolve_probed
from taiwa.server.served import ServedModels
from taiwa.sessions.replay import replay_history
from taiwa.settings import ModelSettings, Settings, load
from tests.models.inprocess.stub_model import StubModel
from tests.peers.faults import DONE, Act, FaultServer, event, head, raw, speech, status
from tests.server.serving import KEY, Serving, serving, sse
from tests.server.test_callers import called

HI: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
OWN = {"model", "messages", "stream", "stream_options", "tools"}


@pytest.fixture(scope="module")
def served(upstream: FaultServer) -> Iterator[Serving]:
    name = f"{upstream.base_url}#m"
    with serving(model=HttpModel(resolve(name, overrides={name: {"tools": True, "json_schema": True}}))) as running:
        yield running


def sent(served: Serving, upstream: FaultServer, path: str, **fields: Any) -> list[dict[str, Any]]:
    """The fields that the model's server gets, besides those that are always sent."""
    upstream.plays(speech("Yes."))
    said = {"input": "Hi"} if path == "/v1/responses" else {"messages": HI}
    answer = served.client.post(path, json={"model": served.model.name, **said, **fields})
    assert answer.status_code == 200, answer.text
    bodies: list[Any] = [seen.json for seen in upstream.seen]
    return [{name: field for name, field in body.items() if name not in OWN} for body in bodies]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/api/chat"])
def test_nothing_that_the_client_has_not_set_is_sent(served: Serving, upstream: FaultServer, path: str) -> None:
    assert sent(served, upstream, path, stream=False) == [{}]


OPEN = (1.0, 1.0, None)
"""What the protocol has where nothing is sent."""


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("", {}, OPEN),
        ("", {"temperature": 0.3, "top_p": 0.5, "max_output_tokens": 9}, (0.3, 0.5, 9)),
        ("vllm:m", {}, (1.0, 1.0, 4096)),
        ("openai:gpt-5", {"temperature": 0.3, "max_output_tokens": 9}, (1.0, 1.0, 9)),
        ("anthropic:claude-sonnet-4-5", {"temperature": 0.3, "top_p": 0.5}, (0.3, 1.0, 4096)),
        ("inside", {}, (0.7, 0.9, 4096)),
        ("inside", {"temperature": 0.3}, (0.3, 1.0, 4096)),
    ],
)
def test_a_response_reports_what_was_used(
    upstream: FaultServer, name: str, given: dict[str, Any], used: tuple[float, float, int | None]
) -> None:
    target = resolve(f"{upstream.base_url}#m")
    if name not in ("", "inside"):
        target = replace(target, codec=resolve(name).codec)
    upstream.plays(speech("Yes."))
    with serving(model=StubModel("Yes.") if name == "inside" else HttpModel(target)) as running:
        asked = {"model": running.model.name, "input": "Hi", "background": True}
        begun = running.client.post("/v1/responses", json={**asked, **given}).json()
    assert (begun["temperature"], begun["top_p"], begun["max_output_tokens"]) == used


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.3, "top_p": 0.5},
        {"presence_penalty": 0.5, "frequency_penalty": -0.25, "logit_bias": {"50256": -100}},
        {"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1, "chat_template_kwargs": {"enable_thinking": False}},
        {"thinking": {"type": "enabled"}, "num_ctx": 4096, "id": "own"},
        {"verbosity": "low", "service_tier": "flex"},
    ],
)
def test_what_the_client_sets_is_sent(served: Serving, upstream: FaultServer, fields: dict[str, Any]) -> None:
    assert sent(served, upstream, "/v1/chat/completions", **fields) == [fields]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat", "/v1/completions"])
@pytest.mark.parametrize("streams", [False, True])
def test_the_models_server_is_asked_for_a_stream_only_if_the_client_asks_for_one(
    served: Serving, upstream: FaultServer, path: str, streams: bool
) -> None:
    upstream.plays(speech("Yes.") if streams else WHOLE)
    said: dict[str, Any] = {"prompt": "Hi"} if path == "/v1/completions" else {"messages": HI}
    said |= {"max_tokens": 9} if path == "/v1/messages" else {}
    answer = served.client.post(path, json={"model": served.model.name, "stream": streams, **said})
    body: Any = upstream.seen[0].json
    assert (answer.status_code, body["stream"], "stream_options" in body) == (200, streams, streams)
    assert "Yes." in answer.text


def test_an_answer_that_may_be_cut_is_read_as_a_stream(upstream: FaultServer) -> None:
    upstream.plays(speech("Yes."))
    with serving(model=HttpModel(resolve(f"{upstream.base_url}#m"))) as served:
        assert served.chat("A latte.", model="order").status_code == 200
    bodies: list[Any] = [seen.json for seen in upstream.seen]
    assert True in [body["stream"] for body in bodies]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("delta", "finish", "ends"),
    [({"refusal": "I cannot."}, "stop", "stop"), ({"content": "I"}, "content_filter", "content_filter")],
)
def test_a_refusal_of_the_model_is_no_filtered_answer(
    served: Serving, upstream: FaultServer, streams: bool, delta: dict[str, str], finish: str, ends: str
) -> None:
    upstream.plays(raw(head(), event(delta) + event({}, finish=finish)))
    answer = served.chat(HI, model=served.model.name, stream=streams, response_format=FORMAT)
    choices = [json.loads(data)["choices"] for data in sse(answer) if data != "[DONE]"] if streams else []
    parts = [choice["delta"] | {"ends": choice["finish_reason"]} for each in choices for choice in each]
    if not streams:
        (choice,) = answer.json()["choices"]
        parts = [choice["message"] | {"ends": choice["finish_reason"]}]
    assert "".join(part.get("refusal") or "" for part in parts) == next(iter(delta.values()))
    assert parts[-1]["ends"] == ends


def test_the_sdk_of_openai_reads_a_refusal(served: Serving, upstream: FaultServer) -> None:
    openai = pytest.importorskip("openai")
    from pydantic import BaseModel

    class Order(BaseModel):
        cups: int

    upstream.plays(
        *[raw(head(), event({"refusal": "I "}) + event({"refusal": "cannot."}) + event({}, finish="stop"))] * 4
    )
    with openai.OpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
        asked: dict[str, Any] = {"model": served.model.name}
        message = client.chat.completions.parse(messages=HI, response_format=Order, **asked).choices[0].message
        response = client.responses.parse(input="Hi", text_format=Order, **asked)
        with client.responses.stream(input="Hi", **asked) as stream:
            events = list(stream)
            last = stream.get_final_response()
        with client.chat.completions.stream(messages=HI, response_format=Order, **asked) as chat:
            pieces = [each.delta for each in chat if each.type == "refusal.delta"]
        recorded = list(client.responses.retrieve(last.id, stream=True))

    for each in (message, chat.get_final_completion().choices[0].message):
        assert (each.parsed, each.refusal, each.content or "") == (None, "I cannot.", "")
    assert "".join(pieces) == "I cannot."
    for each in (response, last):
        (part,) = each.output[0].content
        assert (each.status, each.output_text, part.type, part.refusal) == ("completed", "", "refusal", "I cannot.")
    kinds = [each.type for each in events if "delta" in each.type or "text" in each.type]
    assert set(kinds) == {"response.refusal.delta"}
    assert "".join(each.delta for each in events if each.type == "response.refusal.delta") == "I cannot."
    assert [each.refusal for each in events if each.type == "response.refusal.done"] == ["I cannot."]
    assert [(each.type, each.sequence_number) for each in recorded] == [
        (each.type, each.sequence_number) for each in events
    ]


CITED: dict[str, Any] = {"url": "https://tea.example", "title": "Tea", "start_index": 0, "end_index": 3}
ANNOTATIONS = [{"type": "url_citation", "url_citation": CITED}]


@pytest.mark.parametrize("streams", [False, True])
def test_annotations_and_the_fingerprint_of_the_models_server_are_given_on(
    served: Serving, upstream: FaultServer, streams: bool
) -> None:
    said = {"role": "assistant", "content": "Yes.", "annotations": ANNOTATIONS}
    whole: dict[str, Any] = {
        "id": "c1",
        "model": "m",
        "system_fingerprint": "fp_1",
        "choices": [SAID | {"message": said}],
    }
    parts = [{"content": "Yes."}, {"annotations": ANNOTATIONS}, {}]
    choices = [{"index": 0, "delta": each, "finish_reason": None if each else "stop"} for each in parts]
    events = "".join(f"data: {json.dumps(whole | {'choices': [each]})}\n\n" for each in choices).encode()
    upstream.plays(raw(head(), events) if streams else status(200, json.dumps(whole).encode()), raw(head(), events))

    answer = served.chat(HI, model=served.model.name, stream=streams)
    response = served.client.post("/v1/responses", json={"model": served.model.name, "input": "Hi", "stream": streams})

    if streams:
        chunks = [json.loads(data) for data in sse(answer) if data != "[DONE]"]
        found = [each["choices"][0]["delta"].get("annotations") for each in chunks]
        assert [each for each in found if each] == [ANNOTATIONS]
        assert chunks[-1]["system_fingerprint"] == "fp_1"
        last = [json.loads(data) for data in sse(response) if data != "[DONE]"]
        assert [each["annotation"] for each in last if "annotation" in each] == [{"type": "url_citation", **CITED}]
        output = last[-1]["response"]["output"]
    else:
        assert answer.json()["choices"][0]["message"]["annotations"] == ANNOTATIONS
        assert answer.json()["system_fingerprint"] == "fp_1"
        output = response.json()["output"]
    assert output[0]["content"][0]["annotations"] == [{"type": "url_citation", **CITED}]


SAID = {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
WHOLE = status(200, json.dumps({"id": "c1", "object": "chat.completion", "model": "m", "choices": [SAID]}).encode())


def test_options_of_other_protocols_are_sent_under_their_names(served: Serving, upstream: FaultServer) -> None:
    options = {"num_ctx": 4096, "top_k": 4, "presence_penalty": 0.5}
    assert sent(served, upstream, "/api/chat", options=options | {"num_gpu": 1}, stream=False) == [options]
    assert sent(served, upstream, "/v1/messages", max_tokens=9, top_k=4) == [{"max_tokens": 9, "top_k": 4}]


def test_a_response_reports_what_was_sent(served: Serving, upstream: FaultServer) -> None:
    upstream.plays(speech("Yes."))
    body = {"model": served.model.name, "input": "Hi", "presence_penalty": 0.5, "id": "own"}
    plain = served.client.post("/v1/responses", json=body).json()
    assert (plain["temperature"], plain["top_p"], plain["presence_penalty"]) == (
        1.0,
        1.0,
        0.5,
    )  # the defaults of the protocol
    assert plain["id"].startswith("resp_")
    order = served.client.post("/v1/responses", json={"model": "order", "input": "Hi"}).json()
    assert order["temperature"] == 0.0  # that of the app


def test_what_the_model_does_not_take_is_named_before_anything_is_sent() -> None:
    with serving("Never.") as served:  # a model without a server
        refused = [served.chat("Hi", **{name: 1}).json()["error"] for name in ("presence_penalty", "frobnicate")]
        assert [each["param"] for each in refused] == ["presence_penalty", "frobnicate"]
        assert served.model.requests == []


def test_strict_fields_are_those_of_the_protocol(upstream: FaultServer) -> None:
    upstream.plays(speech("Yes."))
    with serving(model=HttpModel(resolve(f"{upstream.base_url}#m")), strict_fields=True) as served:
        assert served.chat("Hi", model=served.model.name, presence_penalty=1).status_code == 200
        refused = served.chat("Hi", model=served.model.name, frobnicate=1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unknown_parameter")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("field", ["models", "api_base", "best_of"])
def test_only_the_owner_without_a_limit_on_cost_sends_what_may_name_another_model_or_price(
    served: Serving, upstream: FaultServer, path: str, field: str
) -> None:
    body = {"model": served.model.name, "input": "Hi", "messages": HI, field: 9}
    del body["messages" if "responses" in path else "input"]
    upstream.plays(speech("Yes."))
    with called(served, f"ann-{field}-{len(path)}") as ann:
        refused = [ann.post(path, json=body)]
    served.repository.limits = UsageLimits(call_cost=10**9)
    refused.append(served.client.post(path, json=body))
    served.repository.limits = None

    assert [(each.status_code, each.json()["error"]["param"]) for each in refused] == [(400, field)] * 2
    assert upstream.seen == []
    assert sent(served, upstream, path, **{field: 9}) == [{field: 9}]


def test_under_a_limit_on_cost_no_tier_of_another_price_is_asked_for(upstream: FaultServer) -> None:
    model = HttpModel(resolve(f"{upstream.base_url}#m"))
    with serving(model=model) as served:
        catalogue = served.server.state.served
        catalogue.settings = replace(
            catalogue.settings, models=ModelSettings(prices={model.name: {"input": 1, "output": 1}})
        )
        served.repository.limits = UsageLimits(call_cost=10**9)
        fields = {"service_tier": "priority", "prediction": {"type": "content", "content": "Yes."}, "verbosity": "low"}
        (body,) = sent(served, upstream, "/v1/chat/completions", **fields)
    assert fields.keys() & body.keys() == {"verbosity"}


@pytest.mark.parametrize(("name", "takes"), [("openai:gpt-4o", False), ("llamacpp:m", True), ("mistral:m", False)])
def test_providers_that_refuse_unknown_fields_do_not_get_them(name: str, takes: bool) -> None:
    codec = resolve(name).codec
    assert codec is not None
    assert [codec.takes(field) for field in ("top_k", "logit_bias")] == [takes, True]


def test_several_answers_with_a_seed_have_different_seeds() -> None:
    with serving("a", "b", "c") as served:
        served.chat("Hi", n=3, seed=7)
        assert sorted(request.sampling.seed for request in served.model.requests) == [7, 8, 9]


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Nara"}'}}


@pytest.mark.parametrize("streams", [False, True])
def test_a_client_of_functions_gets_a_function_call(served: Serving, upstream: FaultServer, streams: bool) -> None:
    calling = event({"tool_calls": [CALL]}) + event({}, finish="tool_calls") + b"data: [DONE]\n\n"
    upstream.plays(raw(head(), calling), speech("Rain."))
    functions = [{"name": "weather", "parameters": {"type": "object", "properties": {}}}]
    asked = {"model": served.model.name, "functions": functions, "function_call": {"name": "weather"}}
    answer = served.chat(HI, stream=streams, **asked)
    if streams:
        choices = [json.loads(data)["choices"][0] for data in sse(answer) if data != "[DONE]"]
        called = next(each["delta"]["function_call"] for each in choices if "function_call" in each["delta"])
        reason = choices[-1]["finish_reason"]
    else:
        choice = answer.json()["choices"][0]
        called, reason = choice["message"]["function_call"], choice["finish_reason"]
    assert (called, reason) == ({"name": "weather", "arguments": '{"city": "Nara"}'}, "function_call")
    first: Any = upstream.seen[0].json
    assert first["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    result = {"role": "function", "name": "weather", "content": "rain"}
    history = [*HI, {"role": "assistant", "content": None, "function_call": called}, result]
    after = served.chat(history, model=served.model.name, functions=functions).json()
    assert after["choices"][0]["message"]["content"] == "Rain."


@pytest.mark.parametrize(
    ("guide", "kind"),
    [({"guided_json": {"type": "object"}}, "json_schema"),
     ({"guided_json": {"type": "object"}, "structured_outputs": {"json": {"type": "object"}}}, "json_schema")],
)  # fmt: skip
def test_the_older_names_of_constraints_are_read(
    served: Serving, upstream: FaultServer, guide: dict[str, Any], kind: str
) -> None:
    upstream.plays(speech("{}"))
    assert served.chat(HI, model=served.model.name, **guide).status_code == 200
    body: Any = upstream.seen[0].json
    assert body["response_format"]["type"] == kind


def test_a_server_of_which_nothing_is_known_is_asked_for_log_probabilities(
    served: Serving, upstream: FaultServer
) -> None:
    upstream.plays(speech("Yes."))
    answer = served.chat(HI, model=served.model.name, logprobs=True, top_logprobs=2)
    body: Any = upstream.seen[0].json
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
    assert answer.json()["choices"][0]["logprobs"] is None


# --- answers that were to be bound ------------------------------------------------------------------------------------

CUPS: dict[str, Any] = {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "order", "schema": CUPS}}


@pytest.mark.parametrize(
    "text",
    [
        "many",
        '{"cups": "many"}',
        'Here: {"cups": 2}',
        '{"cups": 2} or so',
        '"{\\"cups\\": 2}"',
        '{"order": {"cups": 2}}',
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_what_the_models_server_promises_to_enforce_is_checked(
    served: Serving, upstream: FaultServer, text: str, streams: bool
) -> None:
    upstream.plays(speech(text))
    answer = served.chat(HI, model=served.model.name, response_format=FORMAT, stream=streams)
    if streams:
        *_, last = sse(answer)
        error = json.loads(last)["error"]
    else:
        assert answer.status_code == 422
        error = answer.json()["error"]
    assert error["code"] == "json_validate_failed"
    assert len(upstream.seen) == 1


def test_a_null_stands_for_what_a_schema_leaves_out(served: Serving, upstream: FaultServer) -> None:
    schema = CUPS | {"properties": CUPS["properties"] | {"note": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": schema}}
    upstream.plays(speech('{"cups": 2, "note": null}'))
    assert served.chat(HI, model=served.model.name, response_format=form).status_code == 200


def test_an_answer_that_fits_or_was_cut_is_returned_as_it_is(served: Serving, upstream: FaultServer) -> None:
    upstream.plays(speech('{"cups": 2}'), raw(head(), event({"content": '{"cu'}), event({}, finish="length")))
    for reason in ("stop", "length"):
        answer = served.chat(HI, model=served.model.name, response_format=FORMAT).json()
        assert answer["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize("text", ["I am not sure: the format { cups: number; } is unclear.", "I can't help with that."])
def test_a_refusal_in_words_never_becomes_data(upstream: FaultServer, text: str) -> None:
    upstream.plays(speech(text))
    name = f"{upstream.base_url}#m"
    model = HttpModel(resolve(name, overrides={name: {"json_schema": False}}))
    with serving(model=model) as served:
        schema = {"type": "object", "properties": {"cups": {"type": "string"}}, "required": ["cups"]}
        form = {"type": "json_schema", "json_schema": {"name": "order", "schema": schema}}
        answer = served.chat(HI, model=name, response_format=form)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "json_validate_failed")


def test_repairs_of_an_answer_are_said(upstream: FaultServer) -> None:
    upstream.plays(speech("{cups: 2}"))
    name = f"{upstream.base_url}#m"
    with serving(model=HttpModel(resolve(name, overrides={name: {"json_schema": False}}))) as served:
        answer = served.chat(HI, model=name, response_format=FORMAT, taiwa={}).json()
    assert answer["choices"][0]["message"]["content"] == '{"cups": 2}'
    assert "was repaired: unquoted-key" in answer["taiwa"]["warnings"][-1]


# --- servers of which nothing is known ------------------------------------------------------------------------------------


@pytest.fixture
def unknown(upstream: FaultServer) -> Iterator[Serving]:
    with serving(model=HttpModel(resolve(f"{upstream.base_url}#m"))) as running:
        yield running


def formats(upstream: FaultServer) -> list[bool]:
    bodies: list[Any] = [seen.json for seen in upstream.seen]
    return ["response_format" in body for body in bodies]


def test_an_unknown_server_gets_tools_schemas_and_seeds_at_once(unknown: Serving, upstream: FaultServer) -> None:
    upstream.plays(CALLS, speech('{"cups": 2}'))
    answer = unknown.chat(
        HI, model=unknown.model.name, response_format=FORMAT, seed=3, tools=[WEATHER], taiwa={}
    ).json()
    assert answer["taiwa"]["warnings"] == []
    body: Any = upstream.seen[1].json
    assert {"response_format", "tools", "seed"} <= body.keys()


CALLS = raw(
    head(),
    event({"tool_calls": [{**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Nara"}'}}]})
    + event({}, finish="tool_calls"),
)
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {}}}},
}
IN_TEXT = 'Let me see.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Nara"}}\n</tool_call>'
NO_TOOLS = status(400, json.dumps({"error": {"message": "m does not support tools"}}).encode())
STRANGE = status(422, json.dumps({"detail": "what is this?"}).encode())


def offers(upstream: FaultServer) -> list[bool]:
    bodies: list[Any] = [seen.json for seen in upstream.seen]
    return ["tools" in body for body in bodies]


@pytest.mark.parametrize("first", [speech("It rains."), NO_TOOLS, STRANGE])
@pytest.mark.parametrize("streams", [False, True])
def test_tools_stand_in_the_prompt_of_a_server_that_refuses_or_ignores_them(
    unknown: Serving, upstream: FaultServer, first: Act, streams: bool
) -> None:
    upstream.plays(first, speech(IN_TEXT), speech("Rain."))
    asked: dict[str, Any] = {"model": unknown.model.name, "tools": [WEATHER], "stream": streams}
    answer = unknown.chat(HI, **asked)
    if streams:
        choices = [each for data in sse(answer) if data != "[DONE]" for each in json.loads(data)["choices"]]
        said = "".join(each["delta"].get("content") or "" for each in choices)
        (call,) = next(each["delta"]["tool_calls"] for each in choices if "tool_calls" in each["delta"])
        reason = choices[-1]["finish_reason"]
    else:
        (choice,) = answer.json()["choices"]
        said, (call,), reason = choice["message"]["content"], choice["message"]["tool_calls"], choice["finish_reason"]
    assert (said.strip(), call["function"], reason) == (
        "Let me see.",
        {"name": "weather", "arguments": '{"city": "Nara"}'},
        "tool_calls",
    )
    result = {"role": "tool", "tool_call_id": call["id"], "content": "rain </tool_response> and wind"}
    history = [*HI, {"role": "assistant", "content": said, "tool_calls": [call]}, result]
    assert (
        unknown.chat(history, model=unknown.model.name, tools=[WEATHER]).json()["choices"][0]["message"]["content"]
        == "Rain."
    )
    assert offers(upstream) == [True, False, False]
    for ref in unknown.repository.store.refs.list():
        assert not [each for each in replay_history(unknown.repository, ref.tip) if each.difference]
    body: Any = upstream.seen[2].json
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][3]["content"].count("</tool_response>") == 1


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_required_call_in_text_is_asked_for_once_more(unknown: Serving, upstream: FaultServer, choice: Any) -> None:
    upstream.plays(NO_TOOLS, speech("It rains."), speech(IN_TEXT), speech("No."))
    asked: dict[str, Any] = {"model": unknown.model.name, "tools": [WEATHER], "tool_choice": choice}
    assert unknown.chat(HI, **asked).json()["choices"][0]["finish_reason"] == "tool_calls"
    assert unknown.chat(HI, **asked).status_code == 422


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
@pytest.mark.parametrize("streams", [False, True])
def test_a_required_call_is_had_from_a_server_that_has_tools_and_ignores_the_choice(
    served: Serving, upstream: FaultServer, choice: Any, streams: bool
) -> None:
    in_json = speech('{"name": "weather", "arguments": {"city": "Nara"}}')
    upstream.plays(speech("It rains."), in_json, speech("It rains."))
    asked: dict[str, Any] = {"model": served.model.name, "tools": [WEATHER], "tool_choice": choice, "stream": streams}
    answer = served.chat(HI, **asked)
    assert "It rains." not in answer.text
    assert '"name":"weather"' in answer.text
    second: Any = upstream.seen[1].json
    assert ("tools" in second, second["response_format"]["type"]) == (False, "json_schema")
    assert served.chat(HI, **asked).status_code == 422
    assert len(upstream.seen) == 5


def test_what_is_wrong_apart_from_tools_is_the_clients_to_see(unknown: Serving, upstream: FaultServer) -> None:
    upstream.plays(status(401, b"{}"), CALLS, status(400, json.dumps({"error": {"message": "bad schema"}}).encode()))
    for code in (401, 400):
        assert unknown.chat(HI, model=unknown.model.name, tools=[WEATHER]).status_code == code
    assert offers(upstream) == [True, True, True]


def test_what_a_server_has_shown_is_remembered_by_the_next_process(upstream: FaultServer, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "s.db", tmp_path / "config.yaml")
    name = f"{upstream.base_url}#m"
    upstream.plays(status(404), CALLS, speech("Rain."), status(404), speech("Rain."))
    for first in (True, False):
        with serving(model=open_model(resolve_asked(name, settings), settings)) as served:
            assert served.chat(HI, model=name, tools=[WEATHER]).status_code == 200
        assert first or "tools" in resolve_probed(name, settings).capabilities
    assert len(upstream.seen) == 5


IGNORES = speech("Two cups, I think.")
REFUSES = status(400, json.dumps({"error": {"message": "response_format is not supported"}}).encode())


@pytest.mark.parametrize("first", [IGNORES, REFUSES])
@pytest.mark.parametrize("streams", [False, True])
def test_an_unknown_server_without_schemas_is_asked_in_words_and_remembered(
    unknown: Serving, upstream: FaultServer, first: Act, streams: bool
) -> None:
    upstream.plays(first, speech('{"cups": 2}'))
    for _ in range(2):
        answer = unknown.chat(HI, model=unknown.model.name, response_format=FORMAT, stream=streams)
        choices = [json.loads(data)["choices"] for data in sse(answer) if data != "[DONE]"] if streams else []
        streamed = "".join(choice["delta"].get("content") or "" for each in choices for choice in each)
        text = streamed if streams else answer.json()["choices"][0]["message"]["content"]
        assert json.loads(text) == {"cups": 2}
    assert formats(upstream) == [True, False, False]


FENCED = 'Here it is:\n```json\n{\n  "cups": 2\n}\n```\nEnjoy!'


@pytest.mark.parametrize("streams", [False, True])
def test_the_first_answer_of_an_unknown_server_is_taken_out_of_its_fences(
    unknown: Serving, upstream: FaultServer, streams: bool
) -> None:
    upstream.plays(speech(FENCED))
    answer = unknown.chat(HI, model=unknown.model.name, response_format=FORMAT, stream=streams, taiwa={})
    if streams:
        pieces = [json.loads(data) for data in sse(answer) if data != "[DONE]"]
        text = "".join(each["delta"].get("content") or "" for piece in pieces for each in piece["choices"])
        warnings = pieces[-1]["taiwa"]["warnings"]
    else:
        text, warnings = answer.json()["choices"][0]["message"]["content"], answer.json()["taiwa"]["warnings"]
    assert json.loads(text) == {"cups": 2}
    assert "taken out of its fences" in warnings[0]
    assert formats(upstream) == [True]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ('Such as {"cups": 2}?', FENCED),
        ("Hi", FENCED + '\nOr:\n```\n{"cups": 3}\n```'),
        ("Hi", FENCED.replace("2", '"many"')),
        ("Hi", 'The form {"cups": 2} is unclear.'),
    ],
)
def test_what_may_not_be_the_answer_is_asked_for_again(
    unknown: Serving, upstream: FaultServer, asked: str, text: str
) -> None:
    upstream.plays(speech(text), speech('{"cups": 4}'))
    answer = unknown.chat(asked, model=unknown.model.name, response_format=FORMAT).json()
    assert answer["choices"][0]["message"]["content"] == '{"cups": 4}'
    assert formats(upstream) == [True, False]


CHECKED_STREAMS = {
    "/v1/chat/completions": {"messages": HI, "response_format": FORMAT},
    "/v1/responses": {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "order", "schema": CUPS}}},
    "/v1/messages": {"messages": HI, "max_tokens": 9, "output_format": {"type": "json_schema", "schema": CUPS}},
    "/api/chat": {"messages": HI, "format": CUPS},
}


@pytest.mark.parametrize("path", CHECKED_STREAMS)
def test_an_answer_that_is_checked_before_it_is_shown_is_a_piece_of_the_stream(
    unknown: Serving, upstream: FaultServer, path: str
) -> None:
    upstream.plays(speech('{"cups": 2}'))

    body = {"model": unknown.model.name, "stream": True, **CHECKED_STREAMS[path]}
    lines = unknown.client.post(path, json=body).text.splitlines()

    events: list[Any] = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith(("data: {", "{"))]
    deltas = [each.get("delta") for each in events]
    deltas = [each.get("text") if isinstance(each, dict) else each for each in deltas]
    deltas += [choice["delta"].get("content") for each in events for choice in each.get("choices", [])]
    deltas += [each["message"]["content"] for each in events if path == "/api/chat"]
    assert "".join(filter(None, deltas)) == '{"cups": 2}'


def test_what_the_config_denies_is_not_assumed(upstream: FaultServer) -> None:
    name = f"{upstream.base_url}#m"
    codec = resolve(name, overrides={name: {"tools": False}}).codec
    assert codec is not None
    with pytest.raises(UnsupportedError):
        codec.encode(Request((user("Hi"),), tools=(ToolSpec("f", "", {"type": "object"}),)))


def test_a_request_may_name_a_served_model_by_its_alias_or_in_full(upstream: FaultServer, tmp_path: Path) -> None:
    name = f"{upstream.base_url}#m"
    (tmp_path / "config.yaml").write_text(f"aliases: {{tea: '{name}'}}\n")
    settings = load(environ={"TAIWA_CONFIG": str(tmp_path / "config.yaml")})
    for served in ("tea", name):
        catalogue = ServedModels(settings, (), (served,), {})
        assert {catalogue.choose(asked).model for asked in ("tea", name, f"order@{name}", "order@tea")} == {served}


def test_an_app_calls_its_tools_in_prompt_if_the_server_refuses_them(upstream: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "sums.md").write_text("---\ntaiwa: 1\nname: sums\ntools: [calculator]\n---\nCalculate.\n")
    name = f"{upstream.base_url}#m"
    upstream.plays(NO_TOOLS, speech("<<calculator: 6*7>>"), speech("It is 42."))
    model = HttpModel(resolve(name, overrides={name: {"tools": True}}))
    with serving(model=model, apps=(str(tmp_path / "sums.md"),)) as served:
        for _ in range(2):
            assert served.chat("6*7?", model="sums").json()["choices"][0]["message"]["content"].endswith("It is 42.")
    assert offers(upstream) == [True, False, False, False]


def test_what_finds_out_whether_the_tools_of_an_app_are_functions_is_said_once_and_helps(
    upstream: FaultServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taiwa.server.served.PRICE_SECONDS", -1.0)
    (tmp_path / "sums.md").write_text("---\ntaiwa: 1\nname: sums\ntools: [calculator]\n---\nCalculate.\n")
    name, settings = f"{upstream.base_url}#m", Settings(tmp_path / "s.db", tmp_path / "config.yaml")
    upstream.plays(status(404), speech("42."), speech("43."))
    catalogue = ServedModels(settings, (str(tmp_path / "sums.md"),), (name,))
    model, again = (catalogue.open(catalogue.choose("sums")).model for _ in range(2))
    assert (model is again, len(caplog.records)) == (True, 1)
    talk = taiwa.open(str(tmp_path / "sums.md"), model=model, store=tmp_path / "s.db")
    notices = [[event for event in talk.stream("6*7?") if isinstance(event, Notice)] for _ in range(2)]
    assert [[each.level for each in some] for some in notices] == [["warning"], []]
    hint = notices[0][0].text
    assert hint == caplog.records[0].getMessage()
    assert f"`taiwa probe {name}`" in hint
    save_verdict(settings, resolve(name), "tools", "enforced")
    assert "tools" in catalogue.open(catalogue.choose("sums")).model.capabilities


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_model_in_this_process_calls_the_tools_of_a_client(choice: str) -> None:
    with serving(model=StubModel('{"name": "weather", "arguments": {"city": "Nara"}}')) as served:
        answer = served.chat(HI, model="stub", tools=[WEATHER], tool_choice=choice, taiwa={}).json()
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert call["function"] == {"name": "weather", "arguments": '{"city": "Nara"}'}
        (warning,) = answer["taiwa"]["warnings"]
        assert warning.endswith("'stub' cannot call tools")


@pytest.mark.parametrize("of_server", ["call_1", ""])
def test_no_two_calls_of_a_conversation_have_one_id_and_the_server_sees_the_same_ids_again(
    served: Serving, upstream: FaultServer, of_server: str
) -> None:
    one = {"index": 0, "id": of_server, "function": {"name": "weather", "arguments": "{}"}}
    upstream.plays(raw(head(), event({"tool_calls": [one]}) + event({}, finish="tool_calls") + DONE))
    history, given = [*HI], list[str]()
    for _ in range(3):
        asked = {"model": served.model.name, "tools": [WEATHER]}
        message = served.chat(history, **asked).json()["choices"][0]["message"]
        given.append(message["tool_calls"][0]["id"])
        history += [message, {"role": "tool", "tool_call_id": given[-1], "content": f"rain {len(given)}"}]
    assert len({*given, ""}) == 4
    assert given[0] == of_server or not of_server
    earlier: list[str] = []
    for seen in upstream.seen:
        body: Any = seen.json
        calls = [call["id"] for each in body["messages"] for call in each.get("tool_calls", ())]
        assert calls == [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]
        assert calls[: len(earlier)] == earlier
        earlier = calls
    assert earlier == given[:2]
