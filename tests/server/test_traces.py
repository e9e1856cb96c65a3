"""What a turn did: its calls, tools and searches, and the tokens of its answers under their masks."""

import math
from typing import Any, Literal

import pytest

from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Decoding, Message, Response, TokenLogprob, ToolCall, Usage, assistant
from taiwa.models.scripted import scripted_model
from taiwa.operations.traces import tokens
from taiwa.structured import OutputType
from tests.models.inprocess.stub_model import StubModel
from tests.orders import TEAS
from tests.server.serving import Serving, serving

Json = dict[str, Any]

TOKEN_FIELDS = {
    "text", "forced", "probability", "unmasked", "allowed", "pointer", "keyword", "expected", "alternatives",
}  # fmt: skip


def respond(server: Serving, said: str = "Hello", /, **more: object) -> Json:
    response = server.client.post("/v1/responses", json={"model": "scripted", "input": said, "taiwa": {}, **more})
    assert response.status_code == 200, response.text
    body: Json = response.json()
    return body


def node_of(body: Json) -> str:
    return str(body["taiwa"]["node"])


def get(server: Serving, path: str) -> Any:
    response = server.client.get(path)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_trace_has_the_calls_with_what_they_were_given_and_returned() -> None:
    with serving(Response(assistant("Hi"), usage=Usage(7, 2), model="scripted")) as server:
        found = get(server, f"/api/nodes/{node_of(respond(server))}/trace")

    assert found["whole"] is True
    (step,) = found["steps"]
    assert (step["kind"], step["role"], step["text"], step["finish"]) == ("model", "", "Hi", "stop")
    assert (step["repair"], step["error"], step["constraint"]) == (False, None, None)
    assert step["usage"]["input_tokens"] == 7


def test_a_repair_is_marked() -> None:
    with serving("Two.\n@@delta\n{broken", '{"topics": ["tea"], "summary": "tea"}') as server:
        found = get(server, f"/api/nodes/{node_of(respond(server, model='chat'))}/trace")

    assert [step["repair"] for step in found["steps"]] == [False, True]


def test_tools_of_an_app_are_traced_with_their_arguments_and_results(tmp_path: Any) -> None:
    app = tmp_path / "sums.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nCount.\n", "utf-8")
    message = Message("assistant", (ToolCall("calculator", '{"expression": "6*7"}', "c1"),))
    call = Response(message, finish="tool_calls")
    with serving(call, "It is 42.", apps=(str(app),)) as server:
        found = get(server, f"/api/nodes/{node_of(respond(server, model='sums'))}/trace")

    assert [step["kind"] for step in found["steps"]] == ["model", "tool", "model"]
    assert found["steps"][0]["tool_calls"] == [{"id": "c1", "name": "calculator", "arguments": '{"expression": "6*7"}'}]
    assert found["steps"][1]["arguments"] == {"expression": "6*7"}
    assert found["steps"][1]["text"] == "42"


def test_tokens_of_a_model_in_this_process_are_read_again_under_the_constraint() -> None:
    schema = OutputType.fields("Order", {"drink": Literal["tea", "coffee"], "cups": int}).schema()
    text = {"format": {"type": "json_schema", "name": "Order", "schema": schema}}
    with serving(model=StubModel('{"drink": "tea", "cups": 2}')) as server:
        body = respond(server, "Two teas, please.", model="plain", text=text, temperature=0.1)
        (answer,) = get(server, f"/api/nodes/{node_of(body)}/tokens?top=3")["answers"]

    assert (answer["source"], answer["exact"], answer["note"], answer["model"]) == ("model", True, "", "stub")
    assert "".join(token["text"] for token in answer["tokens"]) == answer["text"]
    forced = [token for token in answer["tokens"] if token["forced"]]
    assert 0 < len(forced) < len(answer["tokens"])
    for token in answer["tokens"]:
        assert token.keys() == TOKEN_FIELDS
        assert token["unmasked"] <= token["probability"] + 1e-6
        assert len(token["alternatives"]) == 3
        assert token["allowed"] > 1 or (token["forced"] and token["probability"] == 1)
        assert all(each["probability"] == 0 for each in token["alternatives"] if not each["allowed"])


def test_log_probabilities_that_a_server_reported_are_the_tokens_of_other_models() -> None:
    reported = (TokenLogprob("Hi", math.log(0.5), (("Hi", math.log(0.5)), ("Ho", math.log(0.25)))),)
    with serving(Response(assistant("Hi"), decoding=Decoding(reported), model="scripted")) as server:
        (answer,) = get(server, f"/api/nodes/{node_of(respond(server))}/tokens")["answers"]

    (token,) = answer["tokens"]
    assert answer["source"] == "recorded"
    assert (token["probability"], token["unmasked"], token["allowed"]) == (0.5, None, None)
    assert [each["text"] for each in token["alternatives"]] == ["Hi", "Ho"]


def test_an_answer_without_tokens_says_why() -> None:
    with serving("Hi") as server:
        (answer,) = get(server, f"/api/nodes/{node_of(respond(server))}/tokens")["answers"]

    assert (answer["source"], answer["tokens"]) == ("", [])
    assert "does not run in this process" in answer["note"]


def test_state_trace_and_masks_come_with_a_response_only_when_asked_for() -> None:
    with serving(model=StubModel(TEAS)) as server:
        asked = {"model": "order", "include": ["taiwa:state", "taiwa:trace", "taiwa:masks"]}
        body = respond(server, "Two green teas, please.", **asked)
        plain = respond(server, "Two green teas, please.", model="order")
        node = node_of(body)
        trace, listed = get(server, f"/api/nodes/{node}/trace"), get(server, f"/api/nodes/{node}/tokens")

    assert body["taiwa"]["state"]["items"]["1"]["name"] == "green tea"
    assert body["taiwa"]["trace"] == {name: part for name, part in trace.items() if name != "node"}
    assert body["taiwa"]["masks"] == listed["answers"]
    assert not plain["taiwa"].keys() & {"state", "trace", "masks"}


def test_the_extension_object_includes_state_trace_and_masks_on_chat_completions() -> None:
    with serving("Hi", "Hi again") as server:
        body = server.chat("Hello", taiwa={"include": ["state", "trace", "masks"]}).json()
        wrong = server.chat("Hello", taiwa={"include": ["secrets"]})

    assert body["taiwa"]["state"] == {}
    assert [step["kind"] for step in body["taiwa"]["trace"]["steps"]] == ["model"]
    assert body["taiwa"]["masks"][0]["text"] == "Hi"
    assert wrong.status_code == 400
    assert wrong.json()["error"]["param"] == "taiwa.include"


@pytest.mark.parametrize("path", ["trace", "tokens", "tokens?top=3"])
def test_traces_of_unknown_nodes_are_not_found(path: str) -> None:
    with serving("Hi") as server:
        response = server.client.get(f"/api/nodes/{'0' * 32}/{path}")

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "node_not_found"


@pytest.mark.parametrize("top", ["0", "21", "x", "-1"])
def test_the_number_of_alternatives_is_bounded(top: str) -> None:
    with serving("Hi") as server:
        node = node_of(respond(server))
        response = server.client.get(f"/api/nodes/{node}/tokens?top={top}")
        with pytest.raises(InputError, match="from 0 to 20"):
            tokens(server.repository, node, lambda _: None, 99)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "top"


def test_tokens_of_a_model_that_is_not_served_any_more_are_not_found_by_another() -> None:
    model = scripted_model("Hi", name="other")
    with serving(model=model) as server:
        node = node_of(respond(server, model="other"))
        (answer,) = tokens(server.repository, node, lambda _: None).answers

    assert "is not served here" in answer.note
