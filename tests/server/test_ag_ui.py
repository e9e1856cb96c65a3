"""AG-UI: threads, runs, state and clarifying questions, read with the types of the protocol's own package."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import (
    Message,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    Usage,
    assistant,
)
from taiwa.models.scripted import scripted_model
from taiwa.server.access import ServerLimits
from taiwa.server.wires.ag_ui import json_patch
from taiwa.tools.calculator import calculator
from tests.orders import order_model
from tests.server.serving import Serving, requests_of, serving, sse
from tests.server.test_approval import NATIVE, calling_model, calls

Json = dict[str, Any]
EVENT: TypeAdapter[Any] = TypeAdapter(Event)
GOOD: Json = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Agent:
    """A client that holds messages and state, as the protocol's own does, and checks the order of events."""

    def __init__(self, server: Serving, model: str = "", thread: str = "thread-1") -> None:
        self.server, self.thread = server, thread
        self.path = f"/ag-ui/agents/{model}" if model else "/ag-ui"
        self.messages: list[Json] = []
        self.state: Any = {}
        self.events: list[Json] = []
        self.runs = 0

    def say(self, text: str, **more: Any) -> str:
        self.messages.append({"id": f"u{len(self.messages)}", "role": "user", "content": text})
        return self.run(**more)

    def run(self, run: str = "", **more: Any) -> str:
        """Run the agent, apply the events, and return the text of the new answer."""
        self.runs += 1
        known = {str(message["id"]) for message in self.messages}
        body = {"threadId": self.thread, "runId": run or f"run-{self.runs}", "messages": self.messages, **more}
        body.setdefault("state", self.state)
        RunAgentInput.model_validate(body)
        response = self.server.client.post(self.path, json=body)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        self.events = [json.loads(data) for data in sse(response)]
        self.apply()
        new = [each for each in self.messages if str(each["id"]) not in known and each["role"] == "assistant"]
        return "".join(str(each.get("content") or "") for each in new)

    def apply(self) -> None:
        opened: dict[str, str] = {}
        kinds = [each["type"] for each in self.events]
        assert kinds[0] == "RUN_STARTED"
        assert kinds[-1] in ("RUN_FINISHED", "RUN_ERROR")
        for each in self.events:
            EVENT.validate_python(each)
            kind = each["type"]
            if kind.endswith("_START") or kind in ("TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_MESSAGE_END"):
                name = f"{kind.rpartition('_')[0]} {each.get('messageId') or each['toolCallId']}"
                assert (name in opened) == kind.endswith("_END"), each
                opened[name] = kind
                if kind.endswith("_END"):
                    del opened[name]
            self.apply_one(each)
        assert kinds[-1] == "RUN_ERROR" or set(opened.values()) <= {"REASONING_START"}

    def apply_one(self, each: Json) -> None:
        kind, by_id = each["type"], {str(message["id"]): message for message in self.messages}
        if kind == "TEXT_MESSAGE_START":
            self.messages.append({"id": each["messageId"], "role": each["role"], "content": ""})
        elif kind == "TEXT_MESSAGE_CONTENT":
            by_id[each["messageId"]]["content"] += each["delta"]
        elif kind == "TOOL_CALL_START":
            call = {
                "id": each["toolCallId"],
                "type": "function",
                "function": {"name": each["toolCallName"], "arguments": ""},
            }
            holder = by_id.get(each.get("parentMessageId", ""))
            if holder is None:
                holder = {"id": each.get("parentMessageId") or each["toolCallId"], "role": "assistant"}
                self.messages.append(holder)
            holder.setdefault("toolCalls", []).append(call)
        elif kind == "TOOL_CALL_ARGS":
            calls = [call for message in self.messages for call in message.get("toolCalls", ())]
            next(call for call in calls if call["id"] == each["toolCallId"])["function"]["arguments"] += each["delta"]
        elif kind == "TOOL_CALL_RESULT":
            self.messages.append(
                {"id": each["messageId"], "role": "tool", "toolCallId": each["toolCallId"], "content": each["content"]}
            )
        elif kind == "STATE_SNAPSHOT":
            self.state = each["snapshot"]
        elif kind == "STATE_DELTA":
            self.state = patched(self.state, each["delta"])
        elif kind == "MESSAGES_SNAPSHOT":
            given = {str(message["id"]): message for message in each["messages"]}
            kept = [given.pop(str(message["id"])) for message in self.messages if str(message["id"]) in given]
            self.messages = [*kept, *given.values()]

    @property
    def kinds(self) -> list[str]:
        return [str(each["type"]) for each in self.events]

    @property
    def outcome(self) -> Json:
        found: Json = self.events[-1]["outcome"]
        return found

    def event(self, kind: str) -> Json:
        return next(each for each in self.events if each["type"] == kind)


def patched(value: Any, patch: Sequence[Json]) -> Any:
    """Apply a JSON patch, as RFC 6902 says."""
    value = json.loads(json.dumps(value))
    for operation in patch:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        if not steps:
            value = operation["value"]
            continue
        holder = value
        for step in steps[:-1]:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        key: Any = int(steps[-1]) if isinstance(holder, list) else steps[-1]
        if operation["op"] == "remove":
            del holder[key]
        elif operation["op"] == "add" and isinstance(holder, list):
            holder.insert(key, operation["value"])
        else:
            assert operation["op"] == "add" or key in holder or isinstance(holder, list)
            holder[key] = operation["value"]
    return value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_patch_turns_one_value_into_the_other(before: Any, after: Any) -> None:
    patch = json_patch(before, after)

    assert json.dumps(patched(before, patch), sort_keys=True) == json.dumps(after, sort_keys=True)
    assert (patch == []) == (json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True))


@pytest.fixture
def order() -> Iterator[Agent]:
    with serving(model=order_model(), apps=("order",)) as server:
        yield Agent(server, "order")


def test_a_run_is_a_turn_of_the_session_that_its_thread_names() -> None:
    with serving("Hello", "Again") as server:
        agent = Agent(server)
        answers = [agent.say("Hi"), agent.say("And?")]

        assert answers == ["Hello", "Again"]
        assert agent.kinds[0] == "RUN_STARTED"
        assert agent.events[0]["protocolVersion"] == "1.0"
        assert (agent.events[-1]["threadId"], agent.events[-1]["runId"]) == ("thread-1", "run-2")
        assert agent.outcome == {"type": "success"}
        assert [ref.name for ref in server.repository.store.refs.list()] == ["thread-1"]
        assert server.turns() == [["Hi", "And?"]]
        assert requests_of(server)[1] == ["user: Hi", "assistant: Hello", "user: And?"]


def test_equal_histories_of_two_threads_are_two_sessions() -> None:
    with serving("Hello", "Hello", "one", "two") as server:
        first, second = Agent(server, thread="a-thread"), Agent(server, thread="b-thread")
        for text in ("Hi", "1"):
            first.say(text)
            second.say(text.replace("1", "2"))

        assert sorted(server.turns()) == [["Hi", "1"], ["Hi", "2"]]


def test_state_travels_as_a_snapshot_and_as_a_patch_of_what_the_turn_changed(order: Agent) -> None:
    order.say("Two green teas, please.")

    assert order.event("STATE_SNAPSHOT")["snapshot"]["items"] == {}
    assert order.state["items"]["1"]["name"] == "green tea"
    assert "@@delta" not in json.dumps(order.events)
    assert order.state == dict(order.server.repository.at("thread-1").state)


def test_an_edited_message_goes_back_to_the_state_before_it(order: Agent) -> None:
    order.say("Two green teas, please.")
    order.messages = []  # the first message is taken back and said otherwise; the client still holds the later state
    order.say("Three lemonades, please.")

    assert [item["name"] for item in order.state["items"].values()] == ["lemonade"]
    assert order.server.turns() == [["Three lemonades, please."]]
    assert order.server.client.post("/api/conversations/thread-1/undo", json={}).status_code == 200


def test_a_value_that_the_client_sets_in_its_state_is_set_before_the_turn(order: Agent) -> None:
    order.say("Two green teas, please.")
    order.state["items"]["1"]["quantity"] = 5
    order.say("And a lemonade.")

    assert order.state["items"]["1"]["quantity"] == 5
    kinds = [
        node.kind for _, node in order.server.repository.store.nodes.path(order.server.repository.at("thread-1").tip)
    ]
    assert "edit" in kinds


@pytest.mark.parametrize(
    ("state", "problem"),
    [({"admin": True}, "no field 'admin'"), ({"items": 7}, "does not fit")],
)
def test_a_client_cannot_write_what_the_app_does_not_own(order: Agent, state: Json, problem: str) -> None:
    order.say("Two green teas, please.")
    said = [{"id": "1", "role": "user", "content": "And a lemonade."}]
    body = {"threadId": "thread-1", "runId": "r", "messages": said, "state": state}
    response = order.server.client.post(order.path, json=body)

    assert response.status_code == 400
    assert problem in response.json()["error"]["message"]
    assert len(order.server.turns()[0]) == 1


def test_state_of_the_client_is_its_own_where_the_app_has_none() -> None:
    with serving("Hello") as server:
        agent = Agent(server)
        agent.state = {"open": ["panel"]}
        agent.say("Hi")

    assert agent.state == {"open": ["panel"]}
    assert "STATE_SNAPSHOT" not in agent.kinds


def test_a_regenerated_answer_leaves_the_first_one_in_the_store() -> None:
    with serving("one", "two", "three") as server:
        agent = Agent(server)
        agent.say("Hi")
        del agent.messages[-1]
        again = agent.run()
        agent.say("More")

        assert again == "two"
        assert server.turns() == [["Hi", "More"]]
        assert requests_of(server)[2] == ["user: Hi", "assistant: two", "user: More"]


def test_a_parent_run_is_the_node_that_a_run_follows() -> None:
    with serving("one", "two", "three") as server:
        agent = Agent(server)
        agent.say("Hi", run="a")
        agent.say("More", run="b")
        branch = Agent(server)
        branch.messages = [{"id": "x", "role": "user", "content": "Other"}]
        branch.run("c", parentRunId="a")

        assert requests_of(server)[2] == ["user: Hi", "assistant: one", "user: Other"]
        assert branch.events[0]["parentRunId"] == "a"
        assert [message["content"] for message in branch.messages] == ["Other", "Hi", "one", "three"]
        assert server.turns() == [["Hi", "Other"]]


def test_a_parent_run_of_an_agent_elsewhere_is_only_named() -> None:
    with serving("one") as server:
        agent = Agent(server)
        agent.say("Hi", parentRunId="run of another agent")

        assert agent.events[0]["parentRunId"] == "run of another agent"
        assert "MESSAGES_SNAPSHOT" not in agent.kinds


def test_a_thread_without_new_messages_is_shown_without_a_call() -> None:
    with serving("one") as server:
        Agent(server).say("Hi")
        agent = Agent(server)
        agent.run("again")

        assert [message["content"] for message in agent.messages] == ["Hi", "one"]
        assert agent.kinds == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert len(server.model.requests) == 1


def test_a_run_is_performed_once_and_can_be_followed_again() -> None:
    with serving("Hello") as server:
        agent, again = Agent(server), Agent(server)
        agent.say("Hi", run="a")
        again.say("Hi", run="a")

        assert again.messages == agent.messages
        assert len(server.model.requests) == 1


class WaitingModel:
    """Writes a piece, and the rest when it may go on."""

    name = "waiting"
    capabilities = frozenset[Any]()

    def __init__(self) -> None:
        self.going = threading.Event()
        self.asked = 0

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
        del request
        self.asked += 1
        yield TextDelta("Hello")
        await asyncio.to_thread(self.going.wait, 60)
        yield TextDelta(" there")
        yield StreamEnd("stop", None, None, "waiting")


class StuckModel(WaitingModel):
    """Writes a piece, and never the rest."""

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
        del request
        yield TextDelta("Hello")
        await asyncio.Event().wait()


def follow(lines: Iterator[str]) -> Iterator[Json]:
    return (json.loads(line.removeprefix("data: ")) for line in lines if line)


def test_two_readers_follow_one_run_and_a_reader_that_leaves_does_not_end_it() -> None:
    model: Any = WaitingModel()
    with serving(model=model) as server:
        with server.client.stream("POST", "/ag-ui", json=GOOD) as leaving:
            next(leaving.iter_lines())
        with server.client.stream("POST", "/ag-ui", json=GOOD) as first:
            begun = follow(first.iter_lines())
            next(begun)
            with server.client.stream("POST", "/ag-ui", json=GOOD) as second:
                model.going.set()
                seen = list(follow(second.iter_lines()))
            rest = list(begun)

        assert seen[1:] == rest
        assert seen[-1]["outcome"] == {"type": "success"}
        assert model.asked == 1
        assert server.turns() == [["Hi"]]


@pytest.mark.parametrize(
    ("version", "outcome"), [({"protocolVersion": "1.0"}, {"type": "cancelled"}), ({}, None)], ids=["1.0", "before 1.0"]
)
def test_a_stopped_run_is_cancelled_and_keeps_its_text(version: Json, outcome: Json | None) -> None:
    model: Any = WaitingModel()
    with serving(model=model) as server:
        with server.client.stream("POST", "/ag-ui", json=GOOD | version) as response:
            events = follow(response.iter_lines())
            while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
                pass
            stopped = server.client.post("/ag-ui/threads/t/runs/r/cancel", json={})
            model.going.set()
            last = list(events)[-1]
        unknown = server.client.post("/ag-ui/threads/t/runs/other/cancel", json={})

        assert stopped.json() == {"cancelled": True}
        assert last["type"] == "RUN_FINISHED"
        assert last.get("outcome") == outcome
        assert unknown.status_code == 404
        assert server.repository.at("t").turns[-1].answer == "Hello"


def test_a_run_that_a_stopped_server_left_open_is_resumed_where_it_is_sent_again(tmp_path: Path) -> None:
    store, stuck = str(tmp_path / "store.db"), StuckModel()
    model: Any = stuck
    with (
        serving(model=model, store=store, limits=ServerLimits(grace=0.0)) as stopped,
        stopped.client.stream("POST", "/ag-ui", json=GOOD) as response,
    ):
        events = follow(response.iter_lines())
        while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
            pass
    with serving("Hello again", store=store) as server:
        agent = Agent(server, thread="t")
        agent.messages = list(GOOD["messages"])
        answer = agent.run("r")
        repeated = Agent(server, thread="t")
        repeated.messages = list(GOOD["messages"])

        assert answer == repeated.run("r") == "Hello again"
        assert server.turns() == [["Hi"]]
        assert server.repository.store.runs.open_runs() == ()


@pytest.mark.parametrize(
    ("version", "named"),
    [({"protocolVersion": "1.0"}, {"pendingToolCallIds": ["c1"]}), ({}, {})],
    ids=["1.0", "before 1.0, whose clients take no other field"],
)
def test_tools_of_the_client_are_called_and_their_results_answered(version: Json, named: Json) -> None:
    call = Response(
        Message("assistant", (Text("Let me see."), ToolCall("look", '{"at": "sky"}', "c1"))), finish="tool_calls"
    )
    tools = [{"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}]
    with serving(call, "It is blue.") as server:
        agent = Agent(server)
        agent.say("How is the sky?", tools=tools, **version)
        pending = agent.outcome
        agent.messages.append({"id": "t1", "role": "tool", "toolCallId": "c1", "content": "blue"})
        answer = agent.run(tools=tools)

        assert pending == {"type": "success", **named}
        assert answer == "It is blue."
        assert [message.role for message in server.model.requests[1].messages] == ["user", "assistant", "tool"]
        assert server.model.requests[0].tools[0].name == "look"
        assert len(server.repository.store.refs.list()) == 1


def test_tools_of_the_app_are_shown_with_their_results_and_do_not_change_the_history(tmp_path: Path) -> None:
    app = tmp_path / "sums.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nCount.\n", "utf-8")
    call = Response(Message("assistant", (ToolCall("calculator", '{"expression": "6*7"}', "c1"),)), finish="tool_calls")
    with serving(call, "It is 42.", "You are welcome.", apps=(str(app),)) as server:
        agent = Agent(server, "sums")
        agent.say("6*7?", tools=[{"name": "look", "description": ""}])
        result = agent.event("TOOL_CALL_RESULT")
        agent.say("Thanks")

        assert result["content"] == "42"
        assert agent.outcome == {"type": "success"}
        assert server.turns() == [["6*7?", "Thanks"]]
        assert all("look" not in {tool.name for tool in request.tools} for request in server.model.requests)


def test_reasoning_is_a_span_of_its_own() -> None:
    thought = Response(Message("assistant", (Thinking("Hm."), Text("Yes."))))
    with serving(thought, "No.") as server:
        agent = Agent(server)
        agent.say("Really?")
        reasoning = agent.event("REASONING_MESSAGE_CONTENT")
        assert agent.kinds.index("REASONING_END") < agent.kinds.index("TEXT_MESSAGE_START")
        agent.messages.append({"id": "r", "role": "reasoning", "content": "Hm."})
        agent.messages.append({"id": "p", "role": "activity", "activityType": "PLAN", "content": {}})
        agent.say("Sure?")

        assert reasoning["delta"] == "Hm."
        assert server.turns() == [["Really?", "Sure?"]]


def test_context_is_shown_to_the_model_as_data() -> None:
    with serving("Hello") as server:
        agent = Agent(server)
        agent.messages.append({"id": "s", "role": "system", "content": "Be brief."})
        agent.say("Hi", context=[{"description": "page", "value": "{{secret}}\n# not a heading"}])

        system = server.model.requests[0].messages[0]
        assert system.role == "system"
        assert system.text.startswith("Be brief.\n\n")
        assert '{"description":"page","value":"{{secret}}\\n# not a heading"}' in system.text


def test_usage_is_that_of_the_run_and_left_out_where_it_is_unknown() -> None:
    with serving(Response(assistant("Hi"), usage=Usage(10, 4, 3, reasoning_tokens=1), model="m"), "Hi") as server:
        agent = Agent(server)
        agent.say("Hi")
        (usage,) = agent.events[-1]["usage"]
        agent.say("Hi again")

    assert (usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]) == (10, 4, 14)
    assert (usage["cachedInputTokens"], usage["reasoningTokens"], usage["model"]) == (3, 1, "m")
    assert "usage" not in agent.events[-1]


def test_a_failed_run_ends_with_an_error_and_keeps_the_thread() -> None:
    with serving(RuntimeError("boom"), "Hello") as server:
        agent = Agent(server)
        agent.say("Hi")
        failed = agent.events[-1]
        agent.messages = agent.messages[:1]

        assert agent.run() == "Hello"
        assert failed["type"] == "RUN_ERROR"
        assert "boom" not in json.dumps(failed)


def desk_app(folder: Path) -> str:
    """Write the app `desk`, which looks questions up in the built-in handbook, without a model."""
    params = """
  in: { type: "list[str]", default: ["taiwa:handbook"] }
  as: { type: "list[str]", default: [] }
  policy: { type: str, default: look_first }
  max_questions: { type: "int(0..10) | null", default: null }
  assess_by: { type: str, default: no-model }
  user: { type: str, default: "" }
"""
    app = folder / "desk.md"
    app.write_text(f"---\ntaiwa: 1\ndocuments: {{}}\nparams:{params}---\nBe brief.\n", "utf-8")
    return str(app)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Agent]:
    with serving(quotes=True, apps=(desk_app(tmp_path),)) as server:
        yield Agent(server, "desk")


def test_a_question_back_is_an_interrupt_that_the_next_run_answers(desk: Agent) -> None:
    desk.say("I have a question about leave")
    (question,) = desk.outcome["interrupts"]
    entry = {"interruptId": question["id"], "status": "resolved", "payload": {"answer": "Annual leave"}}
    answer = desk.run(resume=[entry])
    texts = [message["content"] for message in desk.messages if message["role"] == "user"]
    desk.say("Thank you")

    assert question["reason"] == "question"
    assert "Annual leave" in question["responseSchema"]["examples"]
    assert "[1]" in answer
    assert texts == ["I have a question about leave", "Annual leave"]
    assert desk.server.turns() == [["I have a question about leave", "Annual leave", "Thank you"]]


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
def test_an_abandoned_or_unknown_question_is_passed_over_without_a_turn(desk: Agent, status: str) -> None:
    desk.say("I have a question about leave")
    (question,) = desk.outcome["interrupts"]
    name = question["id"] if status == "cancelled" else "int_unknown"
    desk.run(resume=[{"interruptId": name, "status": status, "payload": "x"}])

    assert desk.outcome == {"type": "success"}
    assert desk.server.turns() == [["I have a question about leave"]]


@pytest.mark.parametrize(
    ("entry", "made"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, True),
        ({"status": "resolved", "payload": True}, True),
        ({"status": "resolved", "payload": {"approved": False}}, False),
        ({"status": "cancelled"}, False),
    ],
)
def test_a_call_that_needs_approval_is_an_interrupt_that_the_next_run_decides_on(
    entry: Json, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calculator, "confirm", True)
    app = tmp_path / "tutor.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nAnswer.\n")
    with serving(model=calling_model(), apps=(str(app),)) as server:
        agent = Agent(server, "tutor")
        agent.say("6*7?", protocolVersion="1.0")
        (question,) = agent.outcome["interrupts"]
        answer = agent.run(resume=[{"interruptId": question["id"], **entry}], protocolVersion="1.0")
        turns, result = server.turns(), str(server.model.requests[-1].messages[-1])

    assert (question["reason"], question["message"]) == ("tool_call", 'calculator({"expression": "6*7"})')
    assert "It is 42." in answer
    assert turns == [["6*7?"]]
    assert ("the user refused" in result) != made


def test_an_interrupt_that_is_resolved_again_decides_on_no_later_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calculator, "confirm", True)
    app = tmp_path / "tutor.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nAnswer.\n")
    model = scripted_model(calls("6*7"), calls("7*8"), "Done.", capabilities=NATIVE)
    with serving(model=model, apps=(str(app),)) as server:
        agent = Agent(server, "tutor")
        agent.say("6*7?", protocolVersion="1.0")
        (question,) = agent.outcome["interrupts"]
        entry = {"interruptId": question["id"], "status": "resolved", "payload": True}
        agent.run(resume=[entry], protocolVersion="1.0")
        (later,) = agent.outcome["interrupts"]
        body = {"threadId": agent.thread, "runId": "late", "messages": agent.messages, "state": {}, "resume": [entry]}
        refused = server.client.post(agent.path, json=body)

    assert "7*8" in later["message"]
    assert refused.status_code == 409
    assert len(model.requests) == 2


def test_images_that_a_model_reads_are_attached_and_others_do_not_fail_the_run() -> None:
    image = {"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"}}
    distant = {"type": "image", "source": {"type": "url", "value": "http://169.254.169.254/"}}
    sound = {"type": "audio", "source": {"type": "data", "value": "AAAA", "mimeType": "audio/wav"}}
    content = [{"type": "text", "text": "What is this?"}, image, distant, sound]
    said = [{"id": "1", "role": "user", "content": content}]
    with serving("A pixel.") as server:
        agent = Agent(server)
        agent.messages = said
        agent.run()
        parts = [part for message in server.model.requests[0].messages for part in message.parts]

        assert len([part for part in parts if isinstance(part, Attachment)]) == 1
    with serving(model=order_model(), apps=("order",)) as server:
        agent = Agent(server, "order")
        agent.messages = [
            {"id": "1", "role": "user", "content": [{"type": "text", "text": "Two green teas, please."}, image]}
        ]
        agent.run()

        assert agent.kinds[-1] == "RUN_FINISHED"


def test_the_extension_comes_as_a_custom_event_only_when_asked_for() -> None:
    with serving("one", "two") as server:
        agent = Agent(server)
        agent.say("Hi")
        plain = agent.kinds
        agent.say("Again", forwardedProps={"taiwa": {"include": ["trace"]}, "mine": 1})

    assert "CUSTOM" not in plain
    assert agent.event("CUSTOM")["name"] == "taiwa"
    assert agent.event("CUSTOM")["value"]["session"] == "thread-1"


def test_a_thread_of_the_command_line_goes_on() -> None:
    with serving(model=scripted_model("one", "two")) as server:
        begun = server.client.post("/api/conversations", json={"app": "plain", "text": "Hi", "name": "mine"}).json()
        server.client.get(f"/api/runs/{begun['run']}/events")
        agent = Agent(server, thread="mine")
        agent.run("show")
        agent.say("More")

        assert server.turns() == [["Hi", "More"]]


@pytest.mark.parametrize("thread", ["a b", "x" * 200, "0123456789abcdef0123456789abcdef", "-o", "a@{1}", "ü/../x"])
def test_any_thread_id_is_a_thread(thread: str) -> None:
    with serving("one", "two") as server:
        agent = Agent(server, thread=thread)
        agent.say("Hi")
        agent.say("More")

        assert server.turns() == [["Hi", "More"]]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"threadId": 7}, "threadId"),
        ({"threadId": ""}, "threadId"),
        ({"threadId": "x" * 300}, "threadId"),
        ({"runId": None}, "runId"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [7]}, "messages[0]"),
        ({"messages": [{"id": "1", "role": "king", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].id"),
        ({"messages": [{"id": "1", "role": "user"}]}, "messages[0].content"),
        ({"messages": [{"id": "1", "role": "user", "content": [{"type": "hologram"}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"id": "1", "role": "assistant", "toolCalls": [{"id": "c"}]}]},
            "messages[0].toolCalls[0].function",
        ),
        ({"messages": [{"id": "1", "role": "tool", "content": "x"}]}, "messages[0].toolCallId"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"description": "nameless"}]}, "tools[0].name"),
        ({"context": [{"value": "x"}]}, "context[0].description"),
        ({"resume": [{"interruptId": "i", "status": "maybe"}]}, "resume[0].status"),
        ({"forwardedProps": {"taiwa": {"secret": 1}}}, "forwardedProps.taiwa.secret"),
        ({"parentRunId": []}, "parentRunId"),
    ],
)
def test_malformed_input_is_refused_before_the_run_starts(change: Json, param: str) -> None:
    with serving("Hello") as server:
        response = server.client.post("/ag-ui", json=GOOD | change)

        assert response.status_code == 400
        assert response.json()["error"]["param"] == param
        assert server.turns() == []


def test_what_the_protocol_does_not_have_is_ignored() -> None:
    with serving("Hello") as server:
        response = server.client.post("/ag-ui", json=GOOD | {"novelty": 1, "state": None, "forwardedProps": "x"})

    assert response.status_code == 200


def test_an_unknown_agent_and_a_wrong_key_are_refused() -> None:
    with serving("Hello") as server:
        unknown = server.client.post("/ag-ui/agents/nothing", json=GOOD)
        keyless = server.client.post("/ag-ui", json=GOOD, headers={"authorization": "Bearer wrong"})

    assert unknown.status_code == 404
    assert keyless.status_code == 401
    assert keyless.json()["error"]["code"] == "invalid_api_key"
