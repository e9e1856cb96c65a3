"""AG-UI as its own client in JavaScript sees it, which verifies every event."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.messages import Message, Response, Text, Thinking, ToolCall, Usage
from tests.orders import order_model
from tests.server.node.programs import run_node
from tests.server.serving import KEY, Serving, serving
from tests.server.test_ag_ui import desk_app

Json = dict[str, Any]


def act(server: Serving, *steps: Json, agent: str = "", thread: str = "thread-1") -> list[Json]:
    """Let the client perform some steps, and return what it holds after each of them."""
    path = f"/ag-ui/agents/{agent}" if agent else "/ag-ui"
    given = {"url": f"{server.server.url}{path}", "key": KEY, "thread": thread, "steps": steps}
    done = run_node("ag_ui.mjs", given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    seen: list[Json] = json.loads(done.stdout)
    assert all(step.get("error") is None for step in seen), seen
    return seen


def texts(step: Json) -> list[str]:
    return [str(message.get("content")) for message in step["messages"]]


def test_its_messages_and_its_thread_are_those_of_the_store() -> None:
    thought = Response(Message("assistant", (Thinking("Hm."), Text("Hello"))), usage=Usage(3, 2))
    with serving(thought, "Again") as server:
        _, second = act(server, {"say": "Hi"}, {"say": "And?"})

        assert [text for text in texts(second) if text != "Hm."] == ["Hi", "Hello", "And?", "Again"]
        assert server.turns() == [["Hi", "And?"]]


def test_its_verifier_accepts_the_raw_stream() -> None:
    with serving("Hello") as server:
        events = act(server)

    assert [each["type"] for each in events][:2] == ["RUN_STARTED", "TEXT_MESSAGE_START"]
    assert events[-1]["type"] == "RUN_FINISHED"


def test_its_state_follows_snapshots_and_patches_and_an_edited_message_goes_back() -> None:
    with serving(model=order_model(), apps=("order",)) as server:
        first, second, third = act(
            server,
            {"say": "Two green teas, please."},
            {"say": "And a lemonade."},
            {"messages": [{"id": "u", "role": "user", "content": "Three lemonades, please."}]},
            agent="order",
        )
        stored = dict(server.repository.at("thread-1").state)

    assert first["state"]["items"]["1"]["quantity"] == 2
    assert [item["name"] for item in second["state"]["items"].values()] == ["green tea", "lemonade"]
    assert [item["name"] for item in third["state"]["items"].values()] == ["lemonade"]
    assert third["state"] == stored
    assert {"STATE_SNAPSHOT", "STATE_DELTA"} <= set(first["events"])


def test_its_tools_are_called_and_answered() -> None:
    call = Response(Message("assistant", (ToolCall("look", '{"at": "sky"}', "c1"),)), finish="tool_calls")
    tools = {"tools": [{"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}]}
    with serving(call, "It is blue.") as server:
        first, second = act(
            server,
            {"say": "How is the sky?", "run": tools},
            {"result": {"toolCallId": "c1", "content": "blue"}, "run": tools},
        )

    assert first["messages"][-1]["toolCalls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
    assert texts(second)[-1] == "It is blue."


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Serving]:
    with serving(quotes=True, apps=(desk_app(tmp_path),)) as server:
        yield server


def test_it_answers_a_question_back_as_an_interrupt(desk: Serving) -> None:
    asked, answered, later = act(
        desk, {"say": "I have a question about leave"}, {"answer": "Annual leave"}, {"say": "Thank you"}, agent="desk"
    )

    assert asked["interrupts"][0]["reason"] == "question"
    assert answered["interrupts"] == []
    assert "Annual leave" in texts(answered)
    assert len(later["messages"]) == 6
    assert desk.turns() == [["I have a question about leave", "Annual leave", "Thank you"]]
