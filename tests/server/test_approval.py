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


@pytest.mark.parametrize("approve", [True, False])
def test_a_turn_waits_for_the_approval_of_a_call_and_is_resumed_with_it(desk: str, approve: bool) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        session = begun(server)

        assert get(server, f"/api/conversations/{session}/waiting") == {"calls": [CALL]}
        run = post(server, f"/api/conversations/{session}/resume", 202, approve=approve)["run"]
        assert [name for name, _ in events(server, run)][-2:] == ["turn", "end"]
        assert texts(server, session) == ["6*7?"]
        assert get(server, f"/api/conversations/{session}/waiting") == {"calls": []}
        result = str(server.model.requests[-1].messages[-1])
    assert ("42" in result) == approve
    assert ("the user refused the call" in result) != approve


def test_a_turn_that_is_resumed_without_a_decision_waits_again(desk: str) -> None:
    with serving(model=calling_model(), apps=(desk,)) as server:
        session = begun(server)
        run = post(server, f"/api/conversations/{session}/resume", 202)["run"]

        assert [name for name, _ in events(server, run)][-2:] == ["error", "end"]
        assert get(server, f"/api/conversations/{session}/waiting") == {"calls": [CALL]}


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
