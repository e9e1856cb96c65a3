"""The layout `record`: what the model is asked before its answer, and how its list of changes is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.app import App, AppSource, Example
from taiwa.conversation.history import add_turn, begin, edit_state
from taiwa.conversation.state import StateField
from taiwa.conversation.state_record import changes_schema, parse_changes, record_request
from taiwa.conversation.turn_prompt import stable_bytes, turn_request
from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import OutputType

CITY = StateField("city", "str", description="where to")
PEOPLE = StateField("people", "int")
PLAN = StateField("plan", "dict[str, str | null]", reduce="table")
FOODS = StateField("foods", "list[str]", reduce="union")
KIND = StateField("kind", '"business" | "holiday"')
TURNS = StateField("turns", "int", reduce="turn_count")


def app(*fields: StateField, examples: tuple[Example, ...] = ()) -> App:
    return App(AppSource("trip", f"{fields} {examples}"), "Plan a trip.", fields, examples=examples)


TRIP = app(CITY, PEOPLE, PLAN, FOODS, KIND, TURNS)


def test_the_request_holds_the_fields_the_last_exchange_and_the_state_but_not_the_conversation() -> None:
    conversation = add_turn(begin(TRIP), "An old text.", "An old answer.", {"city": "Oslo"})
    conversation = add_turn(conversation, "With trains?", "Which day?", {})

    request = record_request(conversation, "On Friday.")

    last = request.messages[-1].text
    assert last == 'Assistant said: Which day?\nUser says: On Friday.\n\nRecord so far: {"city": "Oslo"}'
    assert "An old" not in "".join(message.text for message in request.messages)
    assert "- city (str): where to" in request.messages[0].text
    assert "turns" not in request.messages[0].text


def test_the_opening_is_the_same_in_every_turn() -> None:
    first = begin(TRIP)
    second = add_turn(first, "To Oslo.", "Fine.", {"city": "Oslo"})

    assert record_request(first, "x").messages[:-1] == record_request(second, "y").messages[:-1]


def test_the_examples_are_made_from_the_fields_and_those_of_the_app() -> None:
    shown = app(CITY, PEOPLE, examples=(Example("Hi! We are 2.", "Noted.", {"people": 2}),))

    texts = [message.text for message in record_request(begin(shown), "x").messages]

    assert texts[3:5] == [
        "<city>, please.\n\nRecord so far: {}",
        '[{"said": "<city>, please.", "changes": [{"field": "city", "value": "<city>"}]}]',
    ]  # fmt: skip
    assert texts[-3:-1] == [
        "Hi! We are 2.\n\nRecord so far: {}",
        '[{"said": "We are 2.", "changes": [{"field": "people", "value": 2}]}]',
    ]


def test_a_text_before_which_an_edit_can_put_notes_is_no_part_of_the_prefix() -> None:
    first = begin(TRIP)
    edited = edit_state(first, {"city": "Oslo"})

    before, after = (stable_bytes(turn_request(each, "x", layout="record")) for each in (first, edited))

    assert before == after


def test_each_change_has_the_type_of_its_field() -> None:
    changes = OutputType.from_json_schema(dict(changes_schema(TRIP, "Two of us.").schema), name="changes")

    of_two = [{"field": "people", "value": 2}, {"field": "plan", "value": {"mon": None}}]
    assert changes.validate([{"said": "Two of us.", "changes": of_two}])
    for placeholder in ({"field": "city", "value": "<city>"}, {"field": "plan", "value": {"<plan>": "Oslo"}}):
        with pytest.raises(OutputValidationError):
            changes.validate([{"said": "Two of us.", "changes": [placeholder]}])


def test_changes_stand_under_a_sentence_of_the_message_so_that_one_that_nobody_spoke_of_has_none() -> None:
    changes = OutputType.from_json_schema(
        dict(changes_schema(TRIP, "Hello! To Oslo, 4.5 days.").schema), name="changes"
    )
    to_oslo = {"changes": [{"field": "city", "value": "Oslo"}]}

    assert changes.validate([{"said": "To Oslo, 4.5 days.", **to_oslo}])
    with pytest.raises(OutputValidationError):
        changes.validate([{"said": "We like Oslo.", **to_oslo}])
    with pytest.raises(OutputValidationError):
        changes.validate([to_oslo])


@pytest.mark.parametrize("text", [" ".join(f"So {number}." for number in range(30)), "x" * 3_000, "…"])
def test_of_a_message_whose_sentences_cannot_be_listed_the_words_are_free(text: str) -> None:
    changes = OutputType.from_json_schema(dict(changes_schema(TRIP, text).schema), name="changes")

    assert changes.validate([{"said": "some words", "changes": [{"field": "city", "value": "Oslo"}]}])


def test_of_a_list_that_is_cut_off_the_whole_changes_count() -> None:
    text = '[{"said": "To Oslo.", "changes": [{"field": "city", "value": "Oslo"}'

    for rest in ("", ", {", ', {"field": "foods", "value": ["n', "]}", ']}, {"said": "To Os'):
        assert parse_changes(TRIP, text + rest, is_cut=True).delta == {"city": "Oslo"}
    assert parse_changes(TRIP, '[{"said": "To', is_cut=True).delta in (None, {})


def test_changes_become_a_delta_and_those_of_one_field_are_joined() -> None:
    text = json.dumps([
        {"field": "foods", "value": ["nuts"]}, {"field": "city", "value": "Oslo"}, {"field": "foods", "value": ["fish"]},
        {"field": "plan", "value": {"mon": "ski"}}, {"field": "plan", "value": {"tue": None}}, {"field": "city", "value": "Bergen"},
    ])  # fmt: skip

    parsed = parse_changes(TRIP, text)

    assert parsed.delta == {"foods": ["nuts", "fish"], "city": "Bergen", "plan": {"mon": "ski", "tue": None}}


def test_changes_in_the_form_of_a_delta_are_read() -> None:
    for text in ('{"city": "Rome"}', '[{"said": "Rome.", "changes": {"city": "Rome"}}]', '[{"city": "Rome"}]'):
        assert parse_changes(TRIP, text).delta == {"city": "Rome"}


def test_a_list_that_cannot_be_read_says_why() -> None:
    assert parse_changes(TRIP, "none").problems
    assert parse_changes(TRIP, '[{"value": 2}]').problems == ('{"value": 2} does not name a field',)
    assert parse_changes(TRIP, '[{"field": "people", "value": "many"}]').delta is None


@given(st.dictionaries(st.sampled_from(["city", "kind"]), st.sampled_from(["business", "holiday"])))
def test_every_delta_survives_as_a_list_of_changes(delta: dict[str, str]) -> None:
    changes = [{"field": name, "value": part} for name, part in delta.items()]

    assert parse_changes(TRIP, json.dumps(changes)).delta == delta
    assert parse_changes(TRIP, json.dumps([{"said": "So.", "changes": changes}])).delta == delta


def test_the_answer_is_plain_text_that_sees_the_new_state() -> None:
    request = turn_request(begin(TRIP), "x", layout="record", state={**begin(TRIP).state, "city": "Oslo"})

    assert request.messages[-1].text == '[Notes: {"city":"Oslo"}]\n\nx'
    assert "@@delta" not in request.messages[0].text
    assert request.constraint is None


@pytest.mark.parametrize(
    ("described", "text", "begins"),
    [
        ("行き先", "OK", "あなたは"), ("where to", "京都に行きたいです。", "あなたは"), ("where to", "我想去北京。", "你负责"), ("where to", "To Oslo.", "You keep"),
    ],
)  # fmt: skip
def test_the_prompts_are_in_the_language_of_the_text_or_of_the_fields(described: str, text: str, begins: str) -> None:
    request = record_request(begin(app(StateField("city", "str", description=described))), text)

    assert request.messages[0].text.startswith(begins)
