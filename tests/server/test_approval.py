"""Turns that wait for the approval of a tool call: over the server's own API, and over the protocols of others."""

import json
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.messages import Capability, Message, Response, ToolCall
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.tools.calculator import calculator
from tests.server.serving import serving, sse
from tests.server.test_api import events, get, post, texts

NATIVE: frozenset[Capability] = frozenset({"tools"})
CALL = {"name": "calculator", "arguments": {"expression": "6*7"}}


def calling_model() -> ScriptedModel:
    """A model that calls a tool and answers, as often as it is asked."""
    call = Response(Message("assistant", (ToolCall("calculator", '{"expression": "6*7"}', "a"),)), "tool_calls")
    return scripted_model(*[call, "It is 42."] * 4, capabilities=NATIVE)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app with a tool whose calls need approval."""
    monkeypatch.setattr(calculator, "confirm", True)
    file = tmp_path / "desk.md"
    file.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nAnswer.\n")
    return str(file)


def begun(server: Any) -> str:
    started = post(server, "/api/conversations", 202, app="desk", text="6*7?")
    assert [name for name, _ in events(server, started["run"])][-2:] == ["error", "end"]
    return str(started["session"])


def decide(server: Any, session: str, status: int, *, approve: bool, waiting: str = "") -> Any:
    """Decide on the calls that wait now, or that had an id."""
    waiting = waiting or get(server, f"/api/conversations/{session}/waiting")["id"]
    return post(server, f"/api/conversations/{session}/resume", status, approve=approve, waiting=waiting)


def calls(*expressions: str) -> Response:
    """The calls of an answer."""
    found = [ToolCall("calculator", json.dumps({"expression": each}), each) for each in expressions]
    return Response(Message("assistant", tuple(found)), "tool_calls")


def results(server: Any) -> list[str]:
    """The results of tools in the last request."""
    return [
        str(part)
        for message in server.model.requests[-1].messages
        for part in message.parts
        if "ToolResult" in str(part)
    ]


@pytest.mark.parametrize("approve", [True, False])
def test_a_turn_waits_for_the_approval_of_a_call_and_is_resumed_with_it(desk: str, approve: bool) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        session = begun(server)

        assert get(server, f"/api/conversations/{session}/waiting")["calls"] == [CALL]
        run = decide(server, session, 202, approve=approve)["run"]
        assert [name for name, _ in events(server, run)][-2:] == ["turn", "end"]
        assert texts(server, session) == ["6*7?"]
        assert get(server, f"/api/conversations/{session}/waiting") == {"id": "", "calls": []}
        result = str(server.model.requests[-1].messages[-1])
    assert ("42" in result) == approve
    assert ("the user refused the call" in result) != approve


def test_a_turn_that_is_resumed_without_a_decision_waits_again(desk: str) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        session = begun(server)
        run = post(server, f"/api/conversations/{session}/resume", 202)["run"]

        assert [name for name, _ in events(server, run)][-2:] == ["error", "end"]
        assert get(server, f"/api/conversations/{session}/waiting")["calls"] == [CALL]


def test_a_decision_that_comes_again_decides_on_no_later_call(desk: str) -> None:
    model = scripted_model(calls("6*7"), calls("7*8"), "Done.", capabilities=NATIVE)
    with serving(model=model, apps=(desk,)) as server:
        session = begun(server)
        first = get(server, f"/api/conversations/{session}/waiting")["id"]
        run = decide(server, session, 202, approve=True)["run"]
        assert [name for name, _ in events(server, run)][-2:] == ["error", "end"]

        assert decide(server, session, 409, approve=True, waiting=first)["error"]["code"] == "conflict"
        found = get(server, f"/api/conversations/{session}/waiting")["calls"]
        assert found == [{"name": "calculator", "arguments": {"expression": "7*8"}}]
        assert len(server.model.requests) == 2


def test_a_client_of_responses_decides_on_each_call(desk: str) -> None:
    model = scripted_model(calls("6*7", "7*8", "8*9"), calls("9*9"), "Done.", capabilities=NATIVE)
    with serving(model=model, apps=(desk,)) as server:
        first = post(server, "/v1/responses", model="desk", input="Calculate.")
        asked = [each["id"] for each in first["output"]]
        item = {"type": "mcp_approval_response", "approval_request_id": asked[0], "approve": True}
        refused = item | {"approval_request_id": asked[1], "approve": False}
        more = item | {"approval_request_id": asked[2]}
        follows = {"model": "desk", "previous_response_id": first["id"]}
        second = post(server, "/v1/responses", input=[more, refused, item], **follows)
        again = post(server, "/v1/responses", 400, input=[item], **follows)
        said = results(server)

    assert [each["arguments"] for each in second["output"]] == ['{"expression":"9*9"}']
    assert ["refused" in each for each in said] == [False, True, False]
    assert "does not wait for an approval" in again["error"]["message"]


@pytest.mark.parametrize(("approve", "status"), [("ask", 403), ("always", 200), ("never", 200)])
def test_a_protocol_that_cannot_ask_is_refused_unless_the_operator_decides(
    desk: str, approve: str, status: int
) -> None:
    with serving(model=calling_model(), apps=(desk,), approve=approve) as server:
        response = server.client.post(
            "/v1/chat/completions", json={"model": "desk", "messages": [{"role": "user", "content": "6*7?"}]}
        )

    assert response.status_code == status
    if approve == "ask":
        error = response.json()["error"]
        assert error["code"] == "approval_required"
        assert error["message"].startswith('approval is required for calculator({"expression": "6*7"})')


@pytest.mark.parametrize("approve", [True, False])
def test_a_client_of_responses_decides_by_the_items_of_the_protocol(desk: str, approve: bool) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        first = post(server, "/v1/responses", model="desk", input="6*7?")
        (request,) = first["output"]
        item = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve}
        second = post(server, "/v1/responses", model="desk", input=[item], previous_response_id=first["id"])
        third = post(server, "/v1/responses", model="desk", input="And now?", previous_response_id=second["id"])
        again = post(server, "/v1/responses", 400, model="desk", input=[item])
        result = str(server.model.requests[1].messages[-1])
        turns = server.turns()

    assert first["status"] == "completed"
    assert request | {"id": ""} == {
        "type": "mcp_approval_request", "id": "", "server_label": "taiwa", "name": "calculator",
        "arguments": '{"expression":"6*7"}',
    }  # fmt: skip
    assert second["output"][0]["content"][0]["text"] == "It is 42."
    assert ("the user refused" in result) != approve
    assert third["output"][0]["type"] == "mcp_approval_request"
    assert "does not wait for an approval" in again["error"]["message"]
    assert turns == [["6*7?"]]


def test_a_stream_of_responses_ends_with_the_request_for_approval(desk: str) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        response = server.client.post("/v1/responses", json={"model": "desk", "input": "6*7?", "stream": True})
        found = [json.loads(data) for data in sse(response) if data != "[DONE]"]

    assert [each["type"] for each in found][-3:] == [
        "response.output_item.added", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert found[-2]["item"]["type"] == "mcp_approval_request"
