"""What counts as right on real models: states of dialogues, orders, numbers, answers, and types of JSON Schemas."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from evals.dialogue.corpora import read_corpora
from evals.real.answer import WITHHOLD_EACH, answer_data, history_of, sample_of, score_answer
from evals.real.constrain import BUNDLED, fits, read_constraints, schema_of
from evals.real.extract import has_order, order_key
from evals.real.peers import SchemaModels
from evals.real.solve import stated_answer
from evals.real.state import (
    Dialogue,
    Outcome,
    Slot,
    Turn,
    compare_states,
    is_right,
    score_turns,
    set_values,
    slot_f1,
    state_schema,
)
from evals.real.task import sample, way_names
from evals.real.turn import BUNDLED as DESKS
from evals.real.turn import before, desk_of, is_accepted, read_desks
from taiwa.evals.run import EvalRow
from taiwa.kernel.errors import ConfigError, InputError

SLOTS = (Slot("class", "fare class", ("Value", "Flexible")), Slot("city", "where to"))


@pytest.mark.parametrize(
    ("value", "spellings", "categorical", "right"),
    [
        ("flexible", ["Flexible"], True, True),
        ("Flexible fare", ["Flexible"], True, False),
        ("the 3rd of May", ["May 3rd", "the 3rd of may"], False, True),
        ("San Francisko", ["San Francisco"], False, True),
        ("San Jose", ["San Francisco"], False, False),
    ],
)
def test_a_value_is_right_by_any_spelling_and_a_categorical_one_exactly(
    value: str, spellings: Sequence[str], categorical: bool, right: bool
) -> None:
    assert is_right(value, spellings, categorical=categorical) is right


def test_a_wrong_value_is_wrong_and_missing_and_null_is_not_a_value() -> None:
    state = set_values({"class": "Value", "city": None, "other": " "})
    assert state == {"class": "Value"}
    assert compare_states(state, {"class": ["Flexible"], "city": ["Rome"]}, SLOTS) == (0, 1, 2)


def test_a_loss_is_silent_if_the_state_should_have_changed_and_nothing_is_said() -> None:
    turns = (
        Turn("To Rome.", "When?", {"city": ["Rome"]}),
        Turn("Flexible, please.", "Fine.", {"city": ["Rome"], "class": ["Flexible"]}),
        Turn("Thanks.", "Bye.", {"city": ["Rome"], "class": ["Flexible"]}),
    )
    rome = {"city": "Rome"}
    dialogue = Dialogue("", SLOTS, turns)
    counts = score_turns(dialogue, [Outcome(rome), Outcome(rome), Outcome(rome)])
    told = score_turns(dialogue, [Outcome(rome), Outcome(rome, "the state cannot be used"), Outcome(rome)])
    assert (counts["turns"], counts["joint"], counts["changes"], counts["silent"]) == (3, 1, 2, 1)
    assert (counts["right"], counts["wrong"], counts["missing"]) == (3, 0, 2)
    assert (told["silent"], told["failed_turns"]) == (0, 1)


def test_slot_f1_is_that_of_all_turns_together() -> None:
    rows = [
        EvalRow("taiwa", "a", found={"right": 3, "wrong": 1, "missing": 0}),
        EvalRow("taiwa", "b", found={"right": 0, "wrong": 0, "missing": 2}),
    ]
    assert slot_f1(rows) == 6 / 9


def test_the_schema_of_a_whole_state_writes_every_field() -> None:
    schema = state_schema(Dialogue("", SLOTS, ()))
    assert schema["required"] == ["class", "city"]


def test_an_order_is_right_by_its_products_and_quantities_and_without_others() -> None:
    readings = order_key()["coffeeShop-input-29"]

    def cart(*lines: tuple[str, float]) -> dict[str, object]:
        return {"items": [{"type": "lineitem", "product": {"name": name}, "quantity": count} for name, count in lines]}

    assert has_order(readings, cart(("coffee", 1.0), ("latte", 1)))  # type: ignore[arg-type]
    assert not has_order(readings, cart(("coffee", 1), ("latte", 2)))  # type: ignore[arg-type]
    assert not has_order(readings, cart(("coffee", 1), ("latte", 1), ("mocha", 1)))  # type: ignore[arg-type]
    assert not has_order(readings, {"items": "latte"})


def test_the_answer_is_the_number_of_its_line_and_else_the_last_one() -> None:
    assert stated_answer("2 + 2 = 4\n**Answer:** 4 apples\nHope that helps, 7!") == "4"
    assert stated_answer("answer: 12\nAnswer: 13") == "13"


def test_a_refusal_is_not_right_and_an_answer_to_nothing_is_counted() -> None:
    assert score_answer({"refused": True, "text": "nine"}, ["nine"], there=True) == {
        "answered": False, "right": False, "f1": 0.0,
    }  # fmt: skip
    cited = {"refused": False, "text": "It opens at ten.", "claims": 1, "unsupported": 0, "right_citations": 0}
    assert score_answer(cited, ["nine"], there=True)["false_supported"] is True
    assert score_answer({**cited, "right_citations": 1}, ["nine"], there=True)["false_supported"] is False
    assert score_answer({"refused": True, "text": ""}, (), there=False) == {"unanswerable_answered": False}


def test_every_third_question_of_a_set_without_unanswerable_ones_is_asked_without_its_passages(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": "q{place}", "q": "where is leave {place}", "rel": ["p1"]}}\n' for place in range(6))
    (tmp_path / "leave_questions.jsonl").write_text(rows)
    (tmp_path / "leave_passages.jsonl").write_text('{"id": "p1", "text": "Leave is in the portal."}\n')
    data = answer_data(read_corpora([tmp_path / "leave_questions.jsonl"]), 6, 0)
    assert [item.more["withheld"] for item in data.items] == [place % WITHHOLD_EACH == 2 for place in range(6)]
    assert history_of(sample_of(data.items[0])).count == 0
    fewer = answer_data(read_corpora([tmp_path / "leave_questions.jsonl"]), 4, 0)
    assert {item.id: item.more["withheld"] for item in fewer.items}.items() <= {
        item.id: item.more["withheld"] for item in data.items
    }.items()


@pytest.mark.parametrize(
    ("text", "accepted", "right"),
    [
        ("Noted, you may.", ["no"], False),
        ("全部で48,000円です。", ["48000"], True),
        ("It is 48.50 euro.", ["48"], False),
        ("39,20 €", ["39.2"], True),
        ("<<calculator: 6 * 2>> 12", ["2"], False),
        ("Yes, within 14 days.", ["14 days"], False),
        ("You bring guests. [1, 2]", ["2"], False),
    ],
)
def test_an_answer_at_a_desk_is_right_by_whole_words_and_numbers(
    text: str, accepted: Sequence[str], right: bool
) -> None:
    assert is_accepted(text, accepted, ["yes"]) is right


def test_what_a_desk_recorded_is_its_state_and_a_limit_counts_in_each_language() -> None:
    for item in read_desks(DESKS, None, 0).items:
        desk = desk_of(item)
        recorded = desk.row["recorded"]
        assert isinstance(recorded, dict)
        assert {**recorded, **before(desk).state} == before(desk).state
    assert [item.kind for item in read_desks(DESKS, 1, 0).items] == ["en", "ja", "zh"]


def test_patterns_and_choices_are_checked_as_a_whole_and_sent_as_schemas() -> None:
    items = {item.id: item for item in read_constraints([BUNDLED], None, 0).items}
    assert fits(items["colour"], "#FF0000")
    assert not fits(items["colour"], "#FF0000.")
    assert schema_of(items["capital"])["enum"] == ["Sydney", "Melbourne", "Canberra", "Perth"]
    assert schema_of(items["time"])["type"] == "string"


def test_a_schema_becomes_the_model_that_one_would_write() -> None:
    schema = {
        "type": "object",
        "$defs": {
            "Tea": {"type": "object", "properties": {"kind": {"enum": ["green", "black"]}}, "required": ["kind"]}
        },
        "properties": {
            "teas": {"type": "array", "items": {"$ref": "#/$defs/Tea"}},
            "model_no": {"type": ["integer", "null"]},
        },
        "required": ["teas"],
    }
    model = SchemaModels(schema, "Order").root
    made = model.model_validate({"teas": [{"kind": "green"}], "model_no": 3})
    assert made.model_dump(by_alias=True) == {"teas": [{"kind": "green"}], "model_no": 3}
    with pytest.raises(ValidationError):
        model.model_validate({"teas": [{"kind": "red"}]})
    with pytest.raises(ConfigError, match="recursive"):
        SchemaModels({"type": "object", "properties": {"next": {"$ref": "#"}}}, "Node")


def test_a_draw_is_repeatable_and_an_unknown_way_is_an_error() -> None:
    assert sample(range(100), 5, 1) == sample(range(100), 5, 1) != sample(range(100), 5, 2)
    assert way_names(["taiwa-gguf:json,openai"], ("taiwa:json", "openai"), ()) == ("taiwa-gguf:json", "openai")
    with pytest.raises(InputError, match="unknown way 'rag'"):
        way_names(["rag"], ("taiwa", "openai"), ())
