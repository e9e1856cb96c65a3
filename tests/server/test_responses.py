"""Responses and Conversations: parents and forks, streams that are taken up again, and what belongs to whom."""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest
from openai.types.responses import Response as OpenAiResponse
from openai.types.responses.response_item_list import ResponseItemList

from taiwa.kernel.errors import (
    ModelError,
    OverloadedError,
    RateLimitError,
    StoreError,
    TaiwaError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.messages import (
    JsonSchema,
    Message,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    Usage,
    assistant,
    result_files,
)
from taiwa.sessions.replay import replay_history
from tests.files import GIF
from tests.peers.faults import FaultServer, head, silence, speech, words
from tests.server.serving import KEY, Serving, requests_of, serving, sse
from tests.waiting import wait_for

TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = Response(Message("assistant", (ToolCall("get_weather", '{"city": "Nara"}', "call_7"),)), "tool_calls")


def respond(served: Serving, given: object, status: int = 200, **more: object) -> dict[str, Any]:
    response = served.client.post("/v1/responses", json={"model": "scripted", "input": given, **more})
    assert response.status_code == status, response.text
    return response.json()


def text_of(response: dict[str, Any]) -> str:
    return "".join(item["content"][0]["text"] for item in response["output"] if item["type"] == "message")


def events(response: httpx.Response) -> list[dict[str, Any]]:
    *data, end = sse(response)
    assert end == "[DONE]"
    return [json.loads(each) for each in data]


def get(served: Serving, path: str, **query: object) -> httpx.Response:
    return served.client.get(f"/v1/{path}", params=query)


def test_two_uses_of_one_response_are_a_fork() -> None:
    with serving("One.", "Two.", "Three.") as served:
        first = respond(served, "a", taiwa={})
        second = respond(served, "b", previous_response_id=first["id"], taiwa={})
        third = respond(served, "c", previous_response_id=first["id"], taiwa={})
        assert second["taiwa"]["parent"] == third["taiwa"]["parent"] == first["taiwa"]["node"]
        assert second["taiwa"]["session"] == first["taiwa"]["session"] != third["taiwa"]["session"]
        assert requests_of(served)[1:] == [
            ["user: a", "assistant: One.", "user: b"],
            ["user: a", "assistant: One.", "user: c"],
        ]
        for ref in served.repository.store.refs.list():
            assert not [each for each in replay_history(served.repository, ref.tip) if each.difference]


def test_instructions_are_those_of_one_request() -> None:
    with serving("One.", "Two.") as served:
        first = respond(served, "a", instructions="Be brief.")
        respond(served, "b", previous_response_id=first["id"])
        assert requests_of(served) == [["system: Be brief.", "user: a"], ["user: a", "assistant: One.", "user: b"]]


def test_a_tool_call_and_its_output_are_items() -> None:
    with serving(CALL, "Rain.") as served:
        first = respond(served, "Weather?", tools=[TOOL], tool_choice="required")
        (call,) = first["output"]
        assert (call["type"], call["call_id"], call["name"]) == ("function_call", "call_7", "get_weather")
        image = {"type": "input_image", "image_url": f"data:image/gif;base64,{b64encode(GIF).decode()}"}
        said = [{"type": "input_text", "text": "rain"}, image]
        output = {"type": "function_call_output", "call_id": "call_7", "output": said}
        second = respond(served, [output], previous_response_id=first["id"], tools=[TOOL])
        assert text_of(second) == "Rain."
        resent = [{"role": "user", "content": "Weather?"}, call, output]
        with serving("Again.") as other:
            assert text_of(respond(other, resent, tools=[TOOL])) == "Again."
            request = other.model.requests[-1]
            assert [message.role for message in request.messages] == ["user", "assistant", "tool"]
            assert [each.data for each in result_files(request.messages)] == [GIF]


def test_a_client_that_stores_nothing_and_resends_its_input_is_matched_to_its_conversation() -> None:
    with serving("One.", "Two.") as served:
        first = respond(served, "a", store=False, taiwa={})
        assert get(served, f"responses/{first['id']}").status_code == 404
        resent = [{"role": "user", "content": "a"}, *first["output"], {"role": "user", "content": "b"}]
        second = respond(served, resent, store=False, taiwa={})
        assert second["taiwa"]["parent"] == first["taiwa"]["node"]


def test_an_item_can_be_referred_to_by_its_id() -> None:
    with serving("One.", "Two.") as served:
        first = respond(served, "a")
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        respond(served, [{"role": "user", "content": "a"}, reference, {"role": "user", "content": "b"}])
        assert requests_of(served)[-1] == ["user: a", "assistant: One.", "user: b"]
        for forged in (first["id"], "msg_", "msg_" + "0" * 34, "x"):
            respond(served, [{"type": "item_reference", "id": forged}], 400)


def test_a_format_is_a_constraint() -> None:
    schema = {"type": "object", "properties": {}}
    with serving("{}", "{}") as served:
        made = respond(served, "a", text={"format": {"type": "json_schema", "name": "person", "schema": schema}})
        assert served.model.requests[-1].constraint == JsonSchema(schema, "person")
        assert made["text"]["format"]["schema"] == schema
        respond(served, "a", text={"format": {"type": "json_object"}})


def test_a_stream_can_be_taken_up_again_at_any_event_during_the_run_and_after_it() -> None:
    go_on = threading.Event()

    def slow(_: Request) -> Response:
        assert go_on.wait(300)
        return Response(
            Message("assistant", (Thinking("Hm."), Text("A long answer."), ToolCall("f", "{}", "c1"))),
            usage=Usage(3, 2),
        )

    with serving(slow) as served:
        begun = respond(served, "a", background=True, tools=[{"type": "function", "name": "f"}])
        assert begun["status"] == "in_progress"
        assert get(served, f"responses/{begun['id']}").json()["status"] == "in_progress"
        found: list[list[dict[str, Any]]] = []
        reader = threading.Thread(
            target=lambda: found.append(events(get(served, f"responses/{begun['id']}", stream="true")))
        )
        reader.start()
        go_on.set()
        reader.join(300)
        (live,) = found
        assert [each["sequence_number"] for each in live] == list(range(len(live)))
        assert live[-1]["type"] == "response.completed"
        assert get(served, f"responses/{begun['id']}").json() == live[-1]["response"]
        for after in range(-1, len(live)):
            again = events(get(served, f"responses/{begun['id']}", stream="true", starting_after=after))
            assert again == live[after + 1 :]


def test_a_reader_that_leaves_loses_nothing() -> None:
    go_on = threading.Event()

    def slow(_: Request) -> str:
        assert go_on.wait(300)
        return "The whole answer."

    with serving(slow) as served:
        body = {"model": "scripted", "input": "a", "stream": True}
        with served.client.stream("POST", "/v1/responses", json=body) as response:
            lines = response.iter_lines()
            data = next(line for line in lines if line.startswith("data: "))
        name = json.loads(data.removeprefix("data: "))["response"]["id"]
        go_on.set()
        again = events(get(served, f"responses/{name}", stream="true"))
        assert text_of(again[-1]["response"]) == "The whole answer."
        assert served.turns() == [["a"]]


def test_a_running_response_can_be_cancelled_and_stays_so() -> None:
    go_on = threading.Event()

    def slow(_: Request) -> str:
        go_on.wait(300)
        return "Never seen."

    with serving(slow) as served:
        begun = respond(served, "a", background=True)
        try:
            cancelled = served.client.post(f"/v1/responses/{begun['id']}/cancel")
            assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        finally:
            go_on.set()
        again = served.client.post(f"/v1/responses/{begun['id']}/cancel")
        assert (again.status_code, again.json(), served.turns()) == (200, cancelled.json(), [])


def test_a_response_that_has_ended_cannot_be_cancelled() -> None:
    with serving("One.") as served:
        made = respond(served, "a")
        response = served.client.post(f"/v1/responses/{made['id']}/cancel")
        assert (response.status_code, response.json()["error"]["param"]) == (400, "response_id")


def test_a_client_that_waits_gets_its_response_as_it_was_cancelled_by_another() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Request) -> str:
        begun.set()
        go_on.wait(300)
        return "Never seen."

    with serving(slow) as served, ThreadPoolExecutor() as threads:
        waiting = threads.submit(respond, served, "a")
        try:
            assert begun.wait(300)
            (name,) = served.server.state.live
            cancelled = served.client.post(f"/v1/responses/{name}/cancel").json()
            assert (waiting.result(300), cancelled["status"]) == (cancelled, "cancelled")
        finally:
            go_on.set()


def test_a_client_that_leaves_cancels_a_response_that_is_not_stored() -> None:
    with FaultServer() as peer, serving(models=(model := f"{peer.base_url}#told",)) as served:
        peer.plays(silence())
        leaving = HTTPConnection("127.0.0.1", served.server.port)
        body = json.dumps({"model": model, "input": "a", "store": False})
        leaving.request("POST", "/v1/responses", body, {**served.client.headers, "content-type": "application/json"})
        wait_for(lambda: peer.seen)

        leaving.close()

        assert peer.seen[0].closed.wait(30)


@pytest.mark.parametrize("pieces", [(), (head(), words("Once"))], ids=["before the first piece", "behind it"])
def test_a_response_that_is_deleted_while_it_is_written_hangs_up_on_the_model(pieces: tuple[bytes, ...]) -> None:
    def read(lines: Iterator[str], until: str) -> dict[str, Any]:
        told = (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {"))
        return next(each for each in told if each["type"] == until)

    with FaultServer() as peer, serving(models=(model := f"{peer.base_url}#told",)) as served:
        peer.plays(silence(*pieces))
        body = {"model": model, "input": "a", "stream": True}
        with served.client.stream("POST", "/v1/responses", json=body) as first:
            lines = first.iter_lines()
            path = f"/v1/responses/{read(lines, 'response.created')['response']['id']}"
            with served.client.stream("GET", path, params={"stream": "true"}) as second:
                others = second.iter_lines()
                for each in (lines, others) if pieces else ():
                    read(each, "response.output_text.delta")
                wait_for(lambda: peer.seen)

                assert served.client.delete(path).json()["deleted"]

                assert peer.seen[0].closed.wait(30)
                for each in (lines, others):
                    assert read(each, "response.failed")["response"]["status"] == "cancelled"
                    assert [line for line in each if line] == ["data: [DONE]"]
        assert served.client.get(path).status_code == 404
        assert (len(peer.seen), served.turns(), served.repository.store.runs.open_runs()) == (1, [], ())
        peer.plays(speech("Next."))
        assert text_of(respond(served, "b", model=model)) == "Next."


def test_a_failed_response_is_an_error_and_is_kept_as_failed() -> None:
    with serving(OverloadedError("busy"), OverloadedError("busy")) as served:
        assert respond(served, "a", 503)["error"]["message"] == "busy"
        response = served.client.post("/v1/responses", json={"model": "scripted", "input": "a", "stream": True})
        last = events(response)[-1]
        assert last["type"] == "response.failed"
        assert last["response"]["error"] == {"code": "server_error", "message": "busy"}
        kept = get(served, f"responses/{last['response']['id']}").json()
        assert kept["status"] == "failed"


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (RateLimitError("slow"), "rate_limit_exceeded"),
        (UnsupportedError("no", capability="tools"), "invalid_prompt"),
        (TimeoutError("late"), "server_error"),
        (ModelError("bad"), "server_error"),
    ],
)
def test_the_error_of_a_failed_response_has_a_code_of_the_protocol(problem: TaiwaError, code: str) -> None:
    with serving(problem) as served:
        last = events(served.client.post("/v1/responses", json={"model": "scripted", "input": "a", "stream": True}))[-1]
        assert last["response"]["error"] == {"code": code, "message": problem.message}
        OpenAiResponse.model_validate(last["response"])


def test_a_response_and_its_input_have_the_types_of_the_protocol() -> None:
    given: list[dict[str, object]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "The weather?", "id": None},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "Sun."},
        {"role": "assistant", "content": "It is sunny."},
        {"role": "user", "content": [{"type": "input_text", "text": "And tomorrow?"}]},
    ]
    with serving(Response(assistant("Rain."), usage=Usage(9, 2, 4, 3))) as served:
        made = respond(served, given)
        items = get(served, f"responses/{made['id']}/input_items", order="asc").json()

    assert made["usage"]["input_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 3}
    OpenAiResponse.model_validate(made)
    ResponseItemList.model_validate(items)
    assert [each["type"] for each in items["data"]] == [each.get("type", "message") for each in given]
    assert len({each["id"] for each in items["data"]}) == len(given)


def test_an_answer_that_was_cut_off_is_incomplete() -> None:
    with serving(Response(assistant("So"), "length")) as served:
        made = respond(served, "a")
        assert (made["status"], made["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_an_answer_that_cannot_be_stored_is_sent_and_its_run_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("taiwa.server.wires.responses._store", fail)
    with serving("Hello!") as served:
        made = respond(served, "a")
        assert (made["status"], made["output"][0]["content"][0]["text"]) == ("completed", "Hello!")
        assert not served.server.state.live


def test_a_conversation_is_a_session() -> None:
    with serving("One.", "Two.", "Three.") as served:
        items = [{"role": "user", "content": "hey"}, {"role": "assistant", "content": "yo"}]
        made = served.client.post("/v1/conversations", json={"items": items, "metadata": {"a": "b"}}).json()
        first = respond(served, "a", conversation=made["id"])
        respond(served, "b", conversation={"id": made["id"]})
        assert requests_of(served)[-1] == ["user: hey", "assistant: yo", "user: a", "assistant: One.", "user: b"]
        listed = get(served, f"conversations/{made['id']}/items", order="asc").json()
        assert [item["content"][0]["text"] for item in listed["data"]] == ["hey", "yo", "a", "One.", "b", "Two."]
        assert listed["data"][3]["id"] == first["output"][0]["id"]
        page = get(served, f"conversations/{made['id']}/items", limit=2).json()
        assert ([item["content"][0]["text"] for item in page["data"]], page["has_more"]) == (["Two.", "b"], True)
        item = get(served, f"conversations/{made['id']}/items/{listed['data'][0]['id']}").json()
        assert item == listed["data"][0]
        changed = served.client.post(f"/v1/conversations/{made['id']}", json={"metadata": {"c": "d"}}).json()
        assert (changed["metadata"], changed["created_at"]) == ({"c": "d"}, made["created_at"])
        assert served.repository.at(made["id"]).count == 3
        assert served.client.delete(f"/v1/conversations/{made['id']}").json()["deleted"] is True
        assert get(served, f"conversations/{made['id']}").status_code == 404


def test_items_are_added_to_a_conversation_and_deleted_from_it() -> None:
    openai = pytest.importorskip("openai")

    def said(text: str, role: str = "user") -> dict[str, str]:
        return {"role": role, "content": text}

    with serving("Two.", "Three.") as served, openai.OpenAI(base_url=served.url, api_key=KEY) as client:
        name, items = client.conversations.create(items=[said("one")]).id, client.conversations.items

        def texts() -> list[str]:
            return [each.content[0].text for each in items.list(name, order="asc").data]

        added = items.create(name, items=[said("One.", "assistant"), said("two")])
        assert [each.content[0].text for each in added.data] == ["One.", "two"]
        assert texts() == ["one", "One.", "two"]
        client.responses.create(model="scripted", conversation=name, input=[said("and more")])
        assert requests_of(served)[-1] == ["user: one", "assistant: One.", "user: two", "user: and more"]
        assert texts() == ["one", "One.", "two", "and more", "Two."]
        items.delete(items.list(name).data[0].id, conversation_id=name)
        assert texts() == ["one", "One.", "two", "and more"]
        items.delete(items.list(name).data[0].id, conversation_id=name)
        client.responses.create(model="scripted", conversation=name, input="and others")
        assert requests_of(served)[-1][-2:] == ["user: two", "user: and others"]
        items.delete(items.list(name, order="asc").data[1].id, conversation_id=name)
        assert texts() == ["one", "two", "and others", "Three."]
        with pytest.raises(openai.NotFoundError):
            items.delete("msg_0", conversation_id=name)
        with pytest.raises(openai.BadRequestError):
            items.create(name, items=[])


def test_a_response_is_completed_when_its_conversation_is_deleted_meanwhile() -> None:
    go_on = threading.Event()

    def slow(_: Request) -> str:
        go_on.wait(300)
        return "Yes."

    with serving(slow) as served:
        conversation = served.client.post("/v1/conversations", json={}).json()["id"]
        begun = respond(served, "Is it green?", conversation=conversation, background=True)
        try:
            assert served.client.delete(f"/v1/conversations/{conversation}").status_code == 200
        finally:
            go_on.set()
        assert text_of(events(get(served, f"responses/{begun['id']}", stream="true"))[-1]["response"]) == "Yes."
        assert get(served, f"responses/{begun['id']}").json()["status"] == "completed"


def test_a_response_without_input_answers_what_waits_in_its_conversation() -> None:
    with serving("Yes.") as served:
        items = [{"type": "message", "role": "user", "content": "Is it green?"}]
        name = served.client.post("/v1/conversations", json={"items": items}).json()["id"]
        body = {"model": "scripted", "conversation": name}
        assert text_of(served.client.post("/v1/responses", json=body).json()) == "Yes."
        assert requests_of(served) == [["user: Is it green?"]]
        assert served.client.post("/v1/responses", json=body).status_code == 400  # nothing waits any more


def test_the_metadata_of_a_conversation_is_replaced_only_by_others() -> None:
    with serving() as served:
        path = (
            f"/v1/conversations/{served.client.post('/v1/conversations', json={'metadata': {'a': 'b'}}).json()['id']}"
        )
        response = served.client.post(path, json={})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "metadata")
        assert served.client.get(path).json()["metadata"] == {"a": "b"}


def test_items_of_an_app_with_a_state_stay_as_they_are() -> None:
    with serving("Hello.\n@@delta\n{}") as served:
        name = served.client.post("/v1/conversations", json={}).json()["id"]
        served.client.post("/v1/responses", json={"model": "chat", "input": "Hi", "conversation": name})
        last = get(served, f"conversations/{name}/items").json()["data"][0]["id"]
        assert served.client.delete(f"/v1/conversations/{name}/items/{last}").status_code == 400
        body = {"items": [{"role": "assistant", "content": "No."}]}
        assert served.client.post(f"/v1/conversations/{name}/items", json=body).status_code == 400


def test_a_session_of_the_command_line_is_a_conversation_by_its_name() -> None:
    with serving("One.", "Two.") as served:
        made = respond(served, "a", taiwa={})
        served.repository.fork(made["taiwa"]["node"], "mine")
        respond(served, "b", conversation="mine")
        assert served.repository.at("mine").count == 2


def test_a_conversation_without_turns_takes_any_app() -> None:
    with serving("Hello.\n@@delta\n{}") as served:
        made = served.client.post("/v1/conversations", json={}).json()
        body = {"model": "chat", "input": "Hi", "conversation": made["id"]}
        assert served.client.post("/v1/responses", json=body).status_code == 200
        assert served.repository.at(made["id"]).app.name == "chat"


def test_a_compaction_stands_for_the_history_before_it() -> None:
    with serving("One.", "A summary.", "Two.") as served:
        first = respond(served, "a")
        body = {"model": "scripted", "previous_response_id": first["id"]}
        made = served.client.post("/v1/responses/compact", json=body).json()
        assert made["object"] == "response.compaction"
        respond(served, [*made["output"], {"role": "user", "content": "b"}])
        request = served.model.requests[-1]
        assert "A summary." in request.messages[0].text
        assert [message.text for message in request.messages][-1].endswith("b")
        assert "One." not in str(request.messages)
        respond(
            served, [{"type": "compaction", "encrypted_content": "cmp_forged"}, {"role": "user", "content": "b"}], 400
        )


def test_a_coding_agent_gets_calls_of_its_namespaces_beside_tools_that_no_other_server_has() -> None:
    crew = {"type": "namespace", "name": "crew", "description": "Agents.", "tools": [TOOL | {"name": "wait"}, TOOL]}
    tools = [TOOL, crew, {"type": "web_search"}]
    call = Response(Message("assistant", (ToolCall("crew__wait", '{"city": "Nara"}', "call_7"),)), "tool_calls")
    with serving(call, "It rains.", call) as served:
        asked = [{"role": "user", "content": "Wait."}]
        first = respond(served, asked, tools=tools, store=False, client_metadata={"thread": "1"})
        (item,) = first["output"]
        assert (item["name"], item["namespace"], item["call_id"]) == ("wait", "crew", "call_7")
        assert [each["type"] for each in first["tools"]] == ["function", "namespace"]
        result = {"type": "function_call_output", "call_id": "call_7", "output": "rain"}
        respond(served, [*asked, item, result], tools=tools, store=False)
        streamed = served.client.post(
            "/v1/responses", json={"model": "scripted", "input": "Wait!", "tools": tools, "stream": True}
        )
        events = [json.loads(data) for data in sse(streamed) if data != "[DONE]"]
        added = next(each["item"] for each in events if each["type"] == "response.output_item.added")
        assert (added["name"], added["namespace"]) == ("wait", "crew")
        assert len(served.turns()) == 2
    assert [tool.name for tool in served.model.requests[0].tools] == ["get_weather", "crew__wait", "crew__get_weather"]
    said, answered = served.model.requests[1].messages[-2:]
    assert [part.name for part in (*said.tool_calls, *answered.parts)] == ["crew__wait", "crew__wait"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"nonsense": 1}, "nonsense"),
        ({"prompt": {}}, "prompt"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"role": "king", "content": "x"}]}, "input[0].role"),
        ({"previous_response_id": "resp_" + "0" * 32}, "previous_response_id"),
        ({"previous_response_id": "x", "conversation": "y"}, "conversation"),
        ({"background": True, "store": False}, "background"),
        ({"include": ["everything"]}, "include"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        (
            {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}]},
            "tools[0].tools[0].type",
        ),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"metadata": {"a" * 65: "x"}}, "metadata." + "a" * 65),
        ({"input": [{"content": "x"}]}, "input[0].role"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "allowed_tools", "tools": [{"name": "f"}]}, "tools": [TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "tools": []}, "tools": [TOOL]}, "tool_choice.tools"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ({"truncation": "some"}, "truncation"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ],
)
def test_a_wrong_field_is_named_in_the_error(fields: dict[str, object], param: str) -> None:
    with serving() as served:
        body = {"model": "scripted", "input": "a", **fields}
        response = served.client.post("/v1/responses", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == param


@pytest.mark.parametrize("number", ["-2", "x", "1.5", "9" * 30, "9" * 5_000])
def test_a_wrong_number_of_the_query_is_refused(number: str) -> None:
    with serving("One.") as served:
        path = f"responses/{respond(served, 'a')['id']}"
        for name, of in (("starting_after", path), ("limit", f"{path}/input_items")):
            response = get(served, of, stream="true", **{name: number})
            assert (response.status_code, response.json()["error"]["param"]) == (400, name)


def test_only_the_allowed_tools_are_sent_to_the_model() -> None:
    other = TOOL | {"name": "get_time"}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}
    with serving(CALL) as served:
        made = respond(served, "a", tools=[other, TOOL], tool_choice=allowed)
        (sent,) = served.model.requests
        assert ([tool.name for tool in sent.tools], sent.tool_choice) == (["get_weather"], "required")
        assert ([tool["name"] for tool in made["tools"]], made["tool_choice"]) == (["get_time", "get_weather"], allowed)


def test_forged_ids_are_not_found() -> None:
    with serving("One.") as served:
        respond(served, "a")
        for path in ("responses/resp_x", "responses/resp_x/input_items", "conversations/x", "conversations/x/items"):
            response = get(served, path)
            assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
        for path in ("responses/resp_x", "conversations/plain"):
            assert served.client.delete(f"/v1/{path}").status_code == 404
        respond(served, "a", 404, conversation="x")


def test_input_tokens_are_estimated_without_a_call() -> None:
    with serving() as served:
        short, long = (
            served.client.post("/v1/responses/input_tokens", json={"model": "scripted", "input": text}).json()
            for text in ("a", "a long text " * 100)
        )
        assert 0 < short["input_tokens"] < long["input_tokens"]
        assert served.turns() == []


def test_the_state_comes_only_where_it_was_asked_for() -> None:
    with serving("Hello, Ann.\n@@delta\n{}", "Hello again.\n@@delta\n{}") as served:
        body = {"model": "chat", "input": "I am Ann."}
        asked = served.client.post("/v1/responses", json={**body, "include": ["taiwa:state"]}).json()
        assert asked["taiwa"]["state"] == served.repository.at(asked["taiwa"]["session"]).state
        assert "taiwa" not in served.client.post("/v1/responses", json=body).json()


@pytest.mark.parametrize("stream", [False, True])
def test_the_reasoning_is_an_item_before_the_message_and_is_streamed_as_it_comes(stream: bool) -> None:
    answer = Response(Message("assistant", (Thinking("Green or black?"), Text("Green tea."))))
    with serving(answer, answer) as served:
        body = {"model": "scripted", "input": "Tea?", "reasoning": {"effort": "low"}, "stream": stream}
        got = served.client.post("/v1/responses", json=body)
        assert served.model.requests[0].sampling.effort == "low"
        if stream:
            live = [json.loads(data) for data in sse(got) if data != "[DONE]"]
            final = live[-1]["response"]
            kinds = [each["type"].removeprefix("response.") for each in live]
            assert (
                kinds.index("reasoning_text.delta")
                < kinds.index("reasoning_text.done")
                < kinds.index("output_text.delta")
            )
            thought = "".join(each["delta"] for each in live if each["type"] == "response.reasoning_text.delta")
            assert thought == "Green or black?"
            places = {(each["item_id"], each["output_index"]) for each in live if "item_id" in each}
            assert places == {(item["id"], index) for index, item in enumerate(final["output"])}
            again = served.client.get(f"/v1/responses/{final['id']}", params={"stream": "true"})
            assert [json.loads(data) for data in sse(again) if data != "[DONE]"] == live
        else:
            final = got.json()
        assert [item["type"] for item in final["output"]] == ["reasoning", "message"]
        assert final["output"][0]["content"] == [{"type": "reasoning_text", "text": "Green or black?"}]
