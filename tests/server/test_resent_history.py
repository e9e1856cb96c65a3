"""State for clients without state: which node a resent history is matched to."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from taiwa.apps.catalog import load_app, load_text
from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import Message, Request, Role, Sampling, Text
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from taiwa.operations.resent_history import Place, ResentHistory
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.replay import replay_history
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import Store
from tests.server.serving import KEY, Serving, requests_of, serving, sse

Said = list[dict[str, object]]


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def model(text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text}


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving("One.", "Two.", "Three.", "Four.", "Five.") as running:
        yield running


def place(served: Serving, messages: Said, **more: object) -> dict[str, str]:
    response = served.chat(messages, taiwa={}, **more)
    assert response.status_code == 200, response.text
    return response.json()["taiwa"]


def replayed(served: Serving) -> None:
    """Every session replays to its hashes without a call."""
    for ref in served.repository.store.refs.list():
        assert not [each for each in replay_history(served.repository, ref.tip) if each.difference]
    assert served.repository.fsck() == ()


def test_a_resent_history_goes_on_in_its_session(served: Serving) -> None:
    first = place(served, [user("a")])
    second = place(served, [user("a"), model("One."), user("b")])
    third = place(served, [user("a"), model("One."), user("b"), model("Two."), user("c")])
    assert first["session"] == second["session"] == third["session"]
    assert (second["parent"], third["parent"]) == (first["node"], second["node"])
    assert served.turns() == [["a", "b", "c"]]
    replayed(served)


def test_a_regenerated_or_edited_message_is_a_branch(served: Serving) -> None:
    first = place(served, [user("a")])
    second = place(served, [user("a"), model("One."), user("b")])
    again = place(served, [user("a"), model("One."), user("b")])
    edited = place(served, [user("a"), model("One."), user("B")])
    assert {second["parent"], again["parent"], edited["parent"]} == {first["node"]}
    assert len({second["session"], again["session"], edited["session"]}) == 3
    on = place(served, [user("a"), model("One."), user("b"), model("Three."), user("c")])
    assert (on["session"], on["parent"]) == (again["session"], again["node"])
    replayed(served)


def test_an_edited_answer_is_adopted_as_a_turn_of_its_own(served: Serving) -> None:
    first = place(served, [user("a")])
    place(served, [user("a"), model("Eins."), user("b")])
    assert requests_of(served)[-1] == ["user: a", "assistant: Eins.", "user: b"]
    assert served.turns()[0] == ["a", "b"]
    assert served.repository.store.nodes.has(first["node"])
    replayed(served)


def test_a_history_that_is_not_known_begins_a_new_root_with_its_turns(served: Serving) -> None:
    place(served, [user("x"), model("y"), user("b")])
    place(served, [user("x"), model("y"), user("b"), model("One."), user("c")])
    assert served.turns() == [["x", "b", "c"]]
    assert requests_of(served)[-1] == ["user: x", "assistant: y", "user: b", "assistant: One.", "user: c"]
    replayed(served)


@pytest.mark.parametrize("answer", [" One.\n", "One.  ", "<think>hm</think>\n\nOne."])
def test_white_space_and_reasoning_do_not_change_the_place(served: Serving, answer: str) -> None:
    first = place(served, [user("a  b")])
    second = place(served, [user("a\r\nb "), model(answer), user("c")])
    assert (second["session"], second["parent"]) == (first["session"], first["node"])


def test_reasoning_that_a_client_drops_does_not_change_the_place() -> None:
    with serving("<think>long thoughts</think>One.", "Two.") as served:
        first = place(served, [user("a")])
        second = place(served, [user("a"), model("One."), user("c")])
        assert (second["session"], second["parent"]) == (first["session"], first["node"])


def test_a_message_that_is_sent_in_parts_is_the_same(served: Serving) -> None:
    first = place(served, [user("a b")])
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": " b"}]
    second = place(served, [{"role": "user", "content": parts}, model("One."), user("c")])
    assert second["parent"] == first["node"]


def test_a_trimmed_history_is_found_by_its_last_turns_and_only_those_are_sent(served: Serving) -> None:
    whole: Said = []
    last: dict[str, str] = {}
    for text, answer in (("a", "One."), ("b", "Two."), ("c", "Three.")):
        last = place(served, [*whole, user(text)])
        whole += [user(text), model(answer)]
    trimmed = place(served, [*whole[2:], user("d")])
    assert trimmed["session"] == last["session"]
    assert served.turns() == [["a", "b", "c", "d"]]
    assert requests_of(served)[-1] == [
        "user: b", "assistant: Two.", "user: c", "assistant: Three.", "user: d",
    ]  # fmt: skip
    without_question = place(served, [*whole[3:], user("e")])
    assert without_question["session"] != last["session"]  # a branch: the session itself has gone on to d
    assert served.turns()[0] == ["a", "b", "c", "e"]
    replayed(served)


@pytest.mark.parametrize("edited", [0, 2])
def test_a_history_that_differs_is_not_checked_out_to_be_compared(
    served: Serving, edited: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Said = []
    for text, answer in (("a", "One."), ("b", "Two."), ("c", "Three.")):
        place(served, [*whole, user(text)])
        whole += [user(text), model(answer)]
    first = place(served, [*whole, user("d")])
    read: list[str] = []
    checkout = Repository.checkout

    def reading(repository: Repository, tip: str) -> Conversation:
        read.append(tip)
        return checkout(repository, tip)

    monkeypatch.setattr(Repository, "checkout", reading)

    changed = [user("b!") if at == edited else each for at, each in enumerate(whole)]
    other = place(served, [*changed[edited:], user("e")])

    assert first["parent"] not in read
    assert other["session"] != first["session"]


def test_one_short_exchange_is_not_enough_to_be_a_trimmed_history(served: Serving) -> None:
    place(served, [user("a")])
    place(served, [user("a"), model("One."), user("b")])
    place(served, [user("b"), model("Two."), user("c")])
    assert served.turns()[0] == ["b", "c"]


def test_of_equal_histories_the_newest_node_counts(served: Serving) -> None:
    with serving("Same.", "Same.", "Next.") as twice:
        place(twice, [user("a")])
        second = place(twice, [user("a")])
        third = place(twice, [user("a"), model("Same."), user("b")])
        assert third["session"] == second["session"]


def test_the_system_text_of_the_request_counts_and_not_the_one_before(served: Serving) -> None:
    first = place(served, [{"role": "system", "content": "Be brief. {{PROMPT}}"}, user("a")])
    second = place(
        served, [{"role": "developer", "content": "## example\nBe long."}, user("a"), model("One."), user("b")]
    )
    assert second["session"] == first["session"]
    assert requests_of(served) == [
        ["system: Be brief. {{PROMPT}}", "user: a"],
        ["system: ## example\nBe long.", "user: a", "assistant: One.", "user: b"],
    ]
    replayed(served)


def test_the_histories_of_two_apps_are_separate(served: Serving) -> None:
    first = place(served, [user("a")])
    for name in ("code", "code@scripted"):
        request = {"model": name, "messages": [user("a"), model("One."), user("b")], "taiwa": {}}
        other = served.client.post("/v1/chat/completions", json=request).json()
        assert other["taiwa"]["session"] != first["session"]


def test_the_turns_of_a_client_are_turns_of_the_store(served: Serving) -> None:
    made = place(served, [{"role": "system", "content": "Be brief."}, user("a")], temperature=0.5)
    conversation = served.repository.at(made["session"])
    assert conversation.app.answer_options.system == "Be brief."
    lines = list(served.repository.store.export(made["session"], calls=False))
    with serving() as other:
        assert other.repository.import_lines(lines, "copy").tip == made["node"]
    assert KEY not in "".join(lines)


def test_what_a_user_set_holds_beneath_the_options_of_a_request() -> None:
    with serving("One.", "Two.", "Three.") as served:
        repository = served.repository
        options = AnswerOptions("Be kind.", Sampling(0.5, max_tokens=9))
        repository.commit(
            "kept", add_turn(begin(load_app("plain").with_options(options)), "Hi", "Hello.", None), expected=None
        )
        asked = {"model": "plain", "input": "a", "conversation": "kept"}

        said = [{"instructions": "Be brief.", "temperature": 1, "top_p": 0.5}, {"temperature": 0}, {}]
        for more in said:
            assert served.client.post("/v1/responses", json=asked | more).status_code == 200

        assert [lines[0] for lines in requests_of(served)] == [
            "system: Be brief.",
            "system: Be kind.",
            "system: Be kind.",
        ]
        assert [each.sampling for each in served.model.requests] == [
            Sampling(1, 0.5, 9),
            Sampling(0, None, 9),
            Sampling(0.5, None, 9),
        ]
        assert repository.at("kept").app.options == options
        replayed(served)


def test_an_import_does_not_replace_the_served_app_that_it_is_named_as() -> None:
    gift = Repository(Store.open(":memory:"))
    foreign = load_text("---\ntaiwa: 1\nname: plain\ntools: [calculator]\n---\nObey.\n", "gift", "plain")
    said = add_turn(gift.start(foreign), "Hello", "Hi.", None)
    imported = gift.commit("gift", said, expected=None)
    home = Repository(Store.open(":memory:"))
    home.import_lines(gift.store.export("gift"), "gift")
    asked = load_app("plain").with_options(AnswerOptions(request=AnswerOptions("Be brief.")))

    placed = ResentHistory(home, asked, [Message("user", (Text("Hi"),))]).place_after(Place(imported.tip, "gift"))

    assert placed.turn_input.base.app == asked
    gift.store.close()
    home.store.close()


def test_a_conversation_that_is_kept_in_memory_is_the_stored_one_and_goes_with_it() -> None:
    with serving("One.", "Two.", "Three.") as served:
        history = [{"role": "user", "content": "a"}]
        answer = served.chat(history).json()["choices"][0]["message"]["content"]
        repository = served.repository
        (ref,) = repository.store.refs.list()
        assert repository.recent(ref.tip) is repository.recent(ref.tip)
        assert repository.recent(ref.tip) == repository.checkout(ref.tip)
        repository.store.refs.delete(ref.name)
        repository.store.gc(keep=0)
        served.chat([*history, {"role": "assistant", "content": answer}, {"role": "user", "content": "b"}])
        assert served.turns() == [["a", "b"]]


def test_a_long_history_is_found_with_its_turns_in_order() -> None:
    with serving(*[f"Answer {number}." for number in range(70)]) as served:
        history: list[dict[str, str]] = []
        for number in range(70):
            history += [{"role": "user", "content": f"Question {number}."}]
            history += [
                {"role": "assistant", "content": served.chat(history).json()["choices"][0]["message"]["content"]}
            ]
        (ref,) = served.repository.store.refs.list()
        turns = served.repository.checkout(ref.tip).turns
        assert [(turn.user, turn.answer) for turn in turns] == [(f"Question {n}.", f"Answer {n}.") for n in range(70)]


# --- histories as clients send them -----------------------------------------------------------------------------------

ASKS = {"role": "user", "content": "Tea?"}
SAYS = {"role": "assistant", "content": "It is green."}
CALLS: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
TABLE = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "tea", "schema": {"type": "object"}}}


def result(call: str) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": call, "content": "42"}


@pytest.mark.parametrize(
    ("messages", "more"),
    [
        ([ASKS, SAYS], {"response_format": FORMAT}),
        ([{"role": "system", "content": "Write a haiku."}], {}),
        ([{"role": "developer", "content": "Write a haiku."}, {"role": "system", "content": "On tea."}], {}),
        ([ASKS, ASKS], {}),
        ([ASKS, SAYS, SAYS, ASKS], {}),
        ([SAYS, ASKS], {}),
        ([ASKS, {"role": "system", "content": "Be brief."}], {}),
        ([ASKS, CALLS, result("c1")], {"tools": [TABLE]}),
    ],
)
def test_a_history_is_sent_as_it_comes(messages: list[dict[str, Any]], more: dict[str, Any]) -> None:
    with serving("{}") as served:
        answer = served.chat(messages, **more)
        assert answer.status_code == 200, answer.text
        (sent,) = served.model.requests
    roles = [message["role"].replace("developer", "system") for message in messages]
    assert ([message.role for message in sent.messages], sent.prefix) == (roles, "")


def test_the_model_writes_after_a_text_of_the_assistant_that_it_cannot_continue() -> None:
    model = scripted_model("Yes.", "No.", capabilities=ALL_CAPABILITIES - {"prefix"})
    with serving(model=model) as served:
        for last in (SAYS, SAYS | {"prefix": True}):
            assert served.chat([ASKS, last]).status_code == 200
    first, second = model.requests
    assert ([message.role for message in first.messages], first.prefix) == (["user", "assistant"], "")
    assert ([message.role for message in second.messages], second.prefix) == (["user"], "It is green.")


@pytest.mark.parametrize("model", ["scripted", "order"])
@pytest.mark.parametrize(
    "messages", [[ASKS, result("c1")], [ASKS, result("c1"), CALLS, ASKS], [ASKS, CALLS, result("c2")]]
)
def test_a_result_without_its_call_is_refused_before_anything_is_paid(
    model: str, messages: list[dict[str, Any]]
) -> None:
    with serving("Never.") as served:
        refused = served.chat(messages, model=model)
        assert refused.status_code == 400
        assert "does not follow its call" in refused.json()["error"]["message"]
        output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
        refused = served.client.post("/v1/responses", json={"model": model, "input": [output]})
        assert "does not follow its call" in refused.json()["error"]["message"]
        assert served.model.requests == []


def test_a_tool_of_a_client_may_return_nothing() -> None:
    with serving("Done.") as served:
        answer = served.chat([ASKS, CALLS, result("c1") | {"content": ""}], model="order")

        assert answer.status_code == 200, answer.text


ORDERED = 'Noted.\n@@delta {"items": {"1": {"name": "cheesecake", "quantity": 1, "options": []}}}'
EDITED = [user("A cheesecake."), model("Noted, a cheesecake."), user("And a tea.")]


@pytest.mark.parametrize("streams", [False, True])
def test_turns_that_the_state_lacks_are_named_in_the_answer(streams: bool) -> None:
    with serving(ORDERED, ORDERED, ORDERED, "@@delta {}") as served:
        body: dict[str, Any] = {"model": "order", "messages": EDITED[:1]}
        known = served.client.post("/v1/chat/completions", json=body).json()
        assert "taiwa" not in known
        body = {"model": "order", "messages": EDITED, "stream": streams}
        answer = served.client.post("/v1/chat/completions", json=body)
        parts = [json.loads(data) for data in sse(answer) if data != "[DONE]"] if streams else [answer.json()]
        (warning,) = parts[-1]["taiwa"]["warnings"]
        assert "contains 1 resent turn that" in warning
        assert "'A cheesecake.'" in warning
        answered = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
        response = served.client.post("/v1/responses", json={"model": "order", "input": [*answered, *EDITED]}).json()
        assert "contains 2 resent turns that" in response["taiwa"]["warnings"][0]


def test_a_client_may_have_a_history_refused_that_the_state_lacks() -> None:
    with serving("Never.") as served:
        body = {"model": "order", "messages": EDITED, "taiwa": {"unknown_turns": "refuse"}}
        refused = served.client.post("/v1/chat/completions", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "unknown_turns")
        assert refused.headers["x-should-retry"] == "false"
        assert served.model.requests == []


MENU = """\
---
taiwa: 1
name: cafe
state:
  items: { type: "list[str]", reduce: union }
  note: { type: str, from: reply }
reply: text+delta
---
Take orders.
"""


def changes(field: str, value: object) -> str:
    return json.dumps([{"field": field, "value": value}])


RESENT = [user("A cheesecake."), model("Noted."), user("And two teas."), model("Noted, 14 minutes."), user("No more.")]
RECORDED = changes("items", ["cheesecake"]), "[]", changes("items", ["tea", "tea 2"]), changes("note", "14 minutes")


@pytest.fixture
def cafe(tmp_path: Path) -> str:
    (tmp_path / "cafe.md").write_text(MENU)
    return str(tmp_path / "cafe.md")


def ask(served: Serving, wire: str, messages: Said, taiwa: dict[str, object] | None = None) -> dict[str, Any]:
    """Send a history by a wire; return what the answer says beside its text."""
    extension = {} if taiwa is None else {"taiwa": taiwa}
    body: dict[str, Any] = {"model": "cafe", **extension}
    match wire:
        case "messages":
            answer = served.client.post("/v1/messages", json=body | {"max_tokens": 99, "messages": messages})
        case "ollama":
            answer = served.client.post("/api/chat", json=body | {"messages": messages, "stream": False})
        case "responses":
            answer = served.client.post("/v1/responses", json=body | {"input": messages})
        case "ag-ui":
            said = [message | {"id": str(number)} for number, message in enumerate(messages)]
            run = {"threadId": uuid4().hex, "runId": uuid4().hex, "tools": [], "context": [], "state": {}}
            run |= {"messages": said, "forwardedProps": extension}
            streamed = served.client.post("/ag-ui/agents/cafe", json=run)
            if streamed.status_code != 200:
                return {"error": streamed.text}
            events = [json.loads(data) for data in sse(streamed)]
            found = [event["value"] for event in events if event.get("name") == "taiwa"]
            return {"taiwa": found[0]} if found else {"events": events}
        case _:
            answer = served.client.post("/v1/chat/completions", json=body | {"messages": messages})
    return {"status": answer.status_code, **answer.json()}


WIRES = ["chat", "messages", "ollama", "responses", "ag-ui"]


@pytest.mark.parametrize("wire", WIRES)
def test_the_state_of_unknown_turns_is_recorded_if_the_caller_wishes(wire: str, cafe: str) -> None:
    with serving(*RECORDED, "Thanks.\n@@delta {}", apps=(cafe,)) as served:
        answer = ask(served, wire, RESENT, {"unknown_turns": "record", "include": ["state"]})
        state = answer["taiwa"]["state"]
        assert state == {"items": ["cheesecake", "tea", "tea 2"], "note": "14 minutes"}
        assert answer["taiwa"]["warnings"] == ["the state of 2 unknown resent turns was recorded from the text"]
        assert served.turns() == [["A cheesecake.", "And two teas.", "No more."]]
        (line,) = served.repository.store.costs("session")
        assert line.requests == len(served.model.requests) == 5
        replayed(served)


@pytest.mark.parametrize("wire", WIRES)
def test_an_app_may_wish_that_unknown_turns_are_recorded_or_refused(wire: str, cafe: str) -> None:
    for choice in ("record", "refuse"):
        Path(cafe).write_text(MENU.replace("reply:", f"unknown_turns: {choice}\nreply:"))
        with serving(*RECORDED, "Thanks.\n@@delta {}", apps=(cafe,)) as served:
            answer = ask(served, wire, RESENT)
            if choice == "record":
                assert "turns was recorded from the text" in answer["taiwa"]["warnings"][0]
            else:
                assert "contains 2 resent turns that" in json.dumps(answer)
                assert served.model.requests == []


def test_after_an_edited_turn_only_what_follows_it_is_recorded(cafe: str) -> None:
    first, second = 'Noted.\n@@delta {"items": ["cheesecake"]}', 'Noted.\n@@delta {"items": ["tea"]}'
    with serving(first, second, changes("items", ["coffee"]), "[]", "Fine.\n@@delta {}", apps=(cafe,)) as served:
        record: dict[str, object] = {"unknown_turns": "record", "include": ["state"]}
        known = ask(served, "chat", RESENT[:1], record)
        ask(served, "chat", [*RESENT[:2], user("A tea.")], record)
        edited = ask(served, "chat", [*RESENT[:2], user("A coffee."), model("Noted."), user("No more.")], record)
        assert edited["taiwa"]["state"]["items"] == ["cheesecake", "coffee"]
        session, recorded = edited["taiwa"]["session"], edited["taiwa"]["parent"]
        assert served.repository.store.nodes.get(recorded).parent == known["taiwa"]["node"]
        assert served.repository.store.undo(session) == recorded  # the turn itself, not those recorded before it
        replayed(served)


def test_a_trimmed_history_keeps_its_state_whatever_is_wished(cafe: str) -> None:
    answers = [f'{number}.\n@@delta {{"items": ["{number}"]}}' for number in range(4)]
    with serving(*answers, apps=(cafe,)) as served:
        said: Said = []
        for number in range(3):
            said.append(user(f"Item {number}."))
            ask(served, "chat", said)
            said.append(model(f"{number}."))
        trimmed = ask(served, "chat", [*said[2:], user("More.")], {"unknown_turns": "record", "include": ["state"]})
        assert trimmed["taiwa"]["state"]["items"] == ["0", "1", "2", "3"]
        assert trimmed["taiwa"]["warnings"] == []
        assert len(served.model.requests) == 4


def test_a_model_that_fails_to_record_loses_no_turn_and_says_so(cafe: str) -> None:
    failing = RECORDED[0], "[]", ModelError("the server is down", status=500), "Thanks.\n@@delta {}"
    with serving(*failing, apps=(cafe,)) as served:
        answer = ask(served, "chat", RESENT, {"unknown_turns": "record", "include": ["state"]})
        assert answer["taiwa"]["state"]["items"] == ["cheesecake"]
        _, lost = answer["taiwa"]["warnings"]
        assert lost == "the state lacks what 'And two teas.' changed: the server is down"
        assert [message.text for message in served.model.requests[-1].messages][1:4:2] == [
            "A cheesecake.",
            "And two teas.",
        ]
        assert len(served.turns()[0]) == 3


def test_recorded_turns_are_resumed_without_paying_twice(cafe: str) -> None:
    def crash(_: Request) -> str:
        raise KeyboardInterrupt

    repository = Repository(Store.open(":memory:"))
    said = [Message(cast("Role", each["role"]), (Text(str(each["content"])),)) for each in RESENT]
    placed = ResentHistory(repository, load_app(cafe), said, "record").place()
    begun = placed.completion(repository, PricedModel(scripted_model(*RECORDED, crash)), TurnOptions())
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(begun.perform(lambda _: None))

    again = scripted_model("Thanks.\n@@delta {}")
    session = Session(repository, placed.session, placed.turn_input.base, PricedModel(again))
    result = session.resume()

    assert result is not None
    assert result.state["items"] == ["cheesecake", "tea", "tea 2"]
    assert len(again.requests) == 1
    repository.store.close()


def test_a_long_unknown_history_is_recorded_from_its_last_turns(cafe: str) -> None:
    history: Said = []
    for number in range(20):
        history += [user(f"Text {number}."), model("Yes.")]
    with serving(*["[]"] * 32, "Thanks.\n@@delta {}", apps=(cafe,)) as served:
        answer = ask(served, "chat", [*history, user("And?")], {"unknown_turns": "record"})
        left_out, recorded = answer["taiwa"]["warnings"]
        assert "contains 4 resent turns that" in left_out
        assert "the state of 16 unknown resent turns" in recorded
        replayed(served)


def test_a_long_history_with_one_letter_changed_is_answered_and_named_in_short() -> None:
    history: list[dict[str, object]] = []
    for number in range(1000):
        history += [user(f"Text {number}."), model(f"Answer {number}.")]
    with serving("Yes.") as served:
        body = {"model": "order", "messages": [*history, user("And?")]}
        warning, *_ = served.client.post("/v1/chat/completions", json=body).json()["taiwa"]["warnings"]
        assert warning.endswith("'Text 0.', 'Text 1.', 'Text 2.', …")
