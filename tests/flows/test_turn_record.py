"""A turn with a model on this machine: first it is asked what the text changes, then it answers in plain text."""

import json

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.app import ReplyLayout
from taiwa.conversation.history import add_turn, begin
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import format_reply
from taiwa.flows.turn import say
from taiwa.kernel.messages import Capability, JsonSchema, Response, assistant
from taiwa.kernel.serialization import Json, item_at, items_at
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, app, reloaded, talked
from tests.flows.driving import Drive

LOCAL = ALL_CAPABILITIES | frozenset[Capability](("local",))
CHANGED = json.dumps([{"field": "mood", "value": "fine"}, {"field": "topics", "value": ["tea"]}])


def test_what_the_text_changes_is_asked_first_and_shown_with_the_question(drive: Drive) -> None:
    model = scripted_model(CHANGED, "Tea it is.", capabilities=LOCAL)

    driven = drive(lambda: say("Fine. Tea, please.")(begin(app(TOPICS, DICTIONARY, MOOD, TURNS, reply="auto"))), model)

    said, after = driven.value
    assert (said.text, said.warnings, said.state_read, driven.shown) == ("Tea it is.", (), True, "Tea it is.")
    assert after.state == {"topics": ["tea"], "dictionary": {}, "mood": "fine", "turns": 1}
    asked, answered = model.requests
    assert isinstance(asked.constraint, JsonSchema)
    assert answered.constraint is None
    assert '"mood":"fine"' in answered.messages[-1].text
    assert reloaded(after).state == after.state


def test_a_list_of_changes_that_cannot_be_read_leaves_the_state_and_says_so(drive: Drive) -> None:
    model = scripted_model('[{"field": "mood", "value": 3}]', "Hello.", capabilities=LOCAL)

    said, after = drive(lambda: say("Hi.")(begin(app(MOOD, reply="auto"))), model).value

    assert (said.text, said.state_read, after.state) == ("Hello.", False, {"mood": None})
    assert said.warnings[0].startswith("the state is unchanged: $.mood")


def test_the_changes_that_fit_are_recorded_and_a_warning_names_the_others(drive: Drive) -> None:
    changes: list[Json] = [
        {"field": "mood", "value": 3},
        {"value": 7},
        {"field": "topics", "value": ["tea", 5]},
        {"field": "weather", "value": "wet"},
    ]
    model = scripted_model(json.dumps(changes), "Hello.", capabilities=LOCAL)

    said, after = drive(lambda: say("Tea, please.")(begin(app(TOPICS, MOOD, reply="auto"))), model).value

    assert (after.state, said.state_read) == ({"topics": ["tea"], "mood": None}, False)
    (warning,) = said.warnings
    assert warning.startswith('not recorded: {"value": 7} does not name a field; ')
    assert all(part in warning for part in ("$.mood = 3", "$.topics[1] = 5", "the state has no field 'weather'"))


def test_what_the_user_said_stays_if_the_changes_of_the_reply_cannot_be_read(drive: Drive) -> None:
    fields = (MOOD, StateField("price", "int", source="reply"))
    said_so = json.dumps([{"field": "mood", "value": "fine"}])
    model = scripted_model(said_so, "It costs 3.", '[{"field": "price", "value": "much"}]', capabilities=LOCAL)

    said, after = drive(lambda: say("Fine.")(begin(app(*fields, reply="auto"))), model).value

    assert after.state == {"mood": "fine", "price": None}
    assert said.warnings == ('not recorded: $.price = "much": must be integer',)


def test_of_a_list_of_changes_that_is_cut_off_the_whole_ones_count_and_it_is_said(drive: Drive) -> None:
    first = '[{"said": "Fine.", "changes": [{"field": "mood", "value": "fine"}'
    for rest in (', {"field": "to', ']}, {"said": "T', "]}, "):
        cut = Response(assistant(first + rest), finish="length")
        model = scripted_model(cut, "Tea it is.", capabilities=LOCAL)

        driven = drive(lambda: say("Fine. Tea, please.")(begin(app(TOPICS, MOOD, reply="auto"))), model)

        assert driven.value[1].state == {"topics": [], "mood": "fine"}
        assert "cut off at the length limit" in driven.notes[0].text


def test_what_the_user_has_not_said_is_not_recorded_and_the_turn_says_so(drive: Drive) -> None:
    under = [{"field": "mood", "value": "gloomy"}, {"field": "topics", "value": ["tea"]}]
    changes = [{"said": "Hi.", "changes": under}]
    model = scripted_model(json.dumps(changes), "Hello.", capabilities=LOCAL)

    driven = drive(lambda: say("Hi.")(begin(app(TOPICS, MOOD, reply="auto"))), model)

    assert driven.value[1].state == {"topics": ["tea"], "mood": None}
    assert driven.notes[0].text.startswith('not recorded, because it was not said: mood: "gloomy"')


@pytest.mark.parametrize("reduce", ["append", "log", "last(9)"])
@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("What is the total?", [84, 31]),
        ("How much was dinner?", [84, 31]),
        ("Dinner was 32, sorry.", [84, 31, 32]),
        ("Another dinner for 31?", [84, 31, 31]),
    ],
)
def test_what_a_list_already_has_is_added_again_only_if_the_user_says_it_again(
    drive: Drive, text: str, amounts: list[int], reduce: str
) -> None:
    items = [{"what": "train", "amount": 84}, {"what": "dinner", "amount": 31}]
    spent = StateField("items", "list[{what: str, amount: int}]", reduce=reduce)
    before = add_turn(begin(app(spent, reply="auto")), "Train 84, dinner 31.", "Noted.", {"items": items})
    new = [{"what": "dinner", "amount": 32}] if text.startswith("Dinner") else []
    changes = json.dumps([{"said": text, "changes": [{"field": "items", "value": [*items, *new]}]}])

    driven = drive(lambda: say(text)(before), scripted_model(changes, "115.", capabilities=LOCAL))

    kept = items_at(driven.value[1].state, "items")
    assert [item_at(each, *(["entry"] if reduce == "log" else []), "amount") for each in kept] == amounts
    assert 'not said: items: [{"what": "train", "amount": 84}' in driven.notes[0].text


def test_what_a_list_already_has_is_added_again_only_if_the_reply_says_it_again(drive: Drive) -> None:
    events = StateField("events", "list[str]", reduce="last(3)", source="reply")
    before = add_turn(
        begin(app(events, reply="auto")), "I go.", "You leave the inn.", {"events": ["You leave the inn"]}
    )
    changes = json.dumps([{"field": "events", "value": ["You leave the inn", "You sleep"]}])

    driven = drive(lambda: say("I sleep.")(before), scripted_model("You sleep.", changes, capabilities=LOCAL))

    assert driven.value[1].state == {"events": ["You leave the inn", "You sleep"]}
    assert driven.notes[-1].text.startswith('not recorded, because it was not said: events: ["You leave the inn"]')


COUNT = StateField("count", "int | null")


@pytest.mark.parametrize(
    ("text", "read", "count"),
    [
        ("What would five cost?", ["ask"], 2),
        ("Can you make it five?", ["change"], 5),
        ("Can you make it five?", ["I would say so"], 5),
        ("Five, please. What would that cost?", [], 5),
        ("5個だといくらですか。", ["ask"], 2),
    ],
)
def test_a_question_that_only_asks_overwrites_no_value(drive: Drive, text: str, read: list[str], count: int) -> None:
    before = add_turn(begin(app(COUNT, MOOD, reply="auto")), "Two.", "Yes.", {"count": 2})
    under = [{"field": "count", "value": 5}, {"field": "mood", "value": None}]
    changes = json.dumps([{"said": text.partition("What")[0].strip() or text, "changes": under}])
    model = scripted_model(changes, *read, "That is 10.", capabilities=LOCAL)

    driven = drive(lambda: say(text)(before), model)

    assert driven.value[1].state == {"count": count, "mood": None}
    assert len(model.requests) == 2 + len(read)
    told = [note.text for note in driven.notes]
    assert told == (["not recorded, because the message only asks: count: 5"] if count == 2 else [])


def test_a_question_sets_a_field_that_has_no_value_yet(drive: Drive) -> None:
    changes = json.dumps([{"said": "Is there one for five?", "changes": [{"field": "count", "value": 5}]}])
    model = scripted_model(changes, "Yes.", capabilities=LOCAL)

    assert drive(lambda: say("Is there one for five?")(begin(app(COUNT, reply="auto"))), model).value[1].state == {
        "count": 5
    }


def test_an_answer_with_a_type_follows_the_changes_and_they_are_not_read_as_that_type(drive: Drive) -> None:
    typed = load_text("---\ntaiwa: 1\nstate: { mood: str }\nanswer: { cups: int }\n---\nHelp.\n", "a.md", "a")
    model = scripted_model('[{"field": "mood", "value": "fine"}]', '{"cups": 2}', capabilities=LOCAL)

    said, after = drive(lambda: say("Fine. Two cups.")(begin(typed)), model).value

    assert (said.value, after.state, said.warnings) == ({"cups": 2}, {"mood": "fine"}, ())
    assert any("<mood>" in message.text for message in model.requests[0].messages)
    assert all(isinstance(request.constraint, JsonSchema) for request in model.requests)


def test_the_history_holds_plain_answers(drive: Drive) -> None:
    model = scripted_model("[]", "Again.", capabilities=LOCAL)

    drive(lambda: say("And?")(add_turn(begin(app(MOOD, reply="auto")), "One?", "Two.", {"mood": "fine"})), model)

    assert [message.text for message in model.requests[1].messages[1:3]] == ["One?", "Two."]


def test_a_field_that_every_turn_writes_and_an_app_without_fields_need_no_such_request(drive: Drive) -> None:
    required = app(StateField("mood", "str", required=True), reply="auto")

    for of, answer in ((required, '{"delta": {"mood": "fine"}, "answer": "Hi."}'), (app(TURNS, reply="auto"), "Hi.")):
        model = scripted_model(answer, capabilities=LOCAL)
        assert drive(lambda of=of: say("Hello?")(begin(of)), model).value[0].text == "Hi."
        assert len(model.requests) == 1


@pytest.mark.parametrize("layout", ["record", "json", "text+delta"])
def test_null_removes_an_entry_of_a_table_whose_values_are_never_null(drive: Drive, layout: ReplyLayout) -> None:
    of = app(StateField("stock", "dict[str, int]", reduce="table"), reply=layout)
    gone: Json = {"stock": {"eggs": None, "rice": 2}}
    changes = [json.dumps([{"field": "stock", "value": {"eggs": None, "rice": 2}}]), "Noted."]
    replies = changes if layout == "record" else [format_reply(of, "Noted.", gone)]
    model = scripted_model(*replies, capabilities=LOCAL)

    said, after = drive(lambda: say("No eggs.")(talked(of, ("6 eggs", "OK", {"stock": {"eggs": 6}}))), model).value

    assert (after.state, said.warnings) == ({"stock": {"rice": 2}}, ())
    assert "null removes an entry" in model.requests[0].messages[0].text
