"""The state of a conversation after deltas, environments, edits and changes of app."""

import copy

import pytest

from taiwa.conversation.state import (
    StateField,
    TurnContext,
    apply_delta,
    apply_edit,
    migrate_state,
    replace_state,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, initial_state

FIELDS = (TOPICS, DICTIONARY, MOOD, TURNS)
NOW = TurnContext(3, "hi", "hello", None)


def test_a_state_begins_with_what_its_fields_say() -> None:
    opening = StateField("opening", "str", init="Once upon a time")

    assert initial_state((*FIELDS, opening)) == {
        "topics": [], "dictionary": {}, "mood": None, "turns": 0, "opening": "Once upon a time",
    }  # fmt: skip


def test_a_delta_changes_the_fields_it_names_and_computed_fields_always_change() -> None:
    before = initial_state(FIELDS)
    kept = copy.deepcopy(before)

    after = apply_delta(FIELDS, before, {"topics": ["tea"]}, NOW)

    assert after == {"topics": ["tea"], "dictionary": {}, "mood": None, "turns": 3}
    assert list(after) == ["topics", "dictionary", "mood", "turns"]
    assert before == kept


def test_a_whole_environment_takes_the_place_of_the_old_one() -> None:
    before = initial_state(FIELDS) | {"topics": ["tea"]}

    after = replace_state(
        FIELDS, before, {"response": "hello", "topics": ["go"], "dictionary": {}, "mood": "fine"}, NOW
    )

    assert after == {"topics": ["go"], "dictionary": {}, "mood": "fine", "turns": 3}


@pytest.mark.parametrize(
    ("kind", "reduce", "written", "after"),
    [
        ("list[str]", "last(3)", ["a", "b", "c", "d"], ["b", "c", "d"]),
        ("list[str]", "append", ["a", "b"], ["a", "b"]),
        ("list[str]", "union", ["a", "A", "b"], ["a", "b"]),
        ("dict[str, str | null]", "table", {"a": "x", "b": None}, {"a": "x"}),
        ("int", "sum", 5, 5),
        ("int", "max", 1, 1),
        ("dict[str, int]", "count", {"a": 2}, {"a": 2}),
        ("list[str]", "log", [{"turn": 1, "entry": "a"}], [{"turn": 1, "entry": "a"}]),
    ],
)
def test_a_reducer_bounds_a_value_that_the_model_writes_whole(
    kind: str, reduce: str, written: Json, after: Json
) -> None:
    field = StateField("f", kind, reduce=reduce)
    before: dict[str, Json] = {"f": [*written[1:], "old"] if isinstance(written, list) else written}

    assert replace_state((field,), before, {"response": "so", "f": written}, NOW) == {"f": after}


def test_a_model_cannot_write_a_computed_field() -> None:
    after = replace_state(FIELDS, initial_state(FIELDS), {"turns": 99, "mood": "fine"}, NOW)

    assert after["turns"] == 3


def test_a_hand_may_set_a_value_of_the_fields_type() -> None:
    after = apply_edit(FIELDS, initial_state(FIELDS), {"topics": ["go", "go"], "mood": None})

    assert after["topics"] == ["go", "go"]
    assert after["mood"] is None


bad_edits: list[tuple[dict[str, Json], str]] = [
    ({"nothing": 1}, "the state has no field 'nothing'; fields: topics, dictionary, mood, turns"),
    ({"turns": 1}, r"the field 'turns' is computed \(turn_count\) and cannot be set"),
    ({"topics": "go"}, "does not fit"),
    ({"dictionary": {"a": 1}}, "does not fit"),
]


@pytest.mark.parametrize(("changes", "complaint"), bad_edits)
def test_a_hand_cannot_set_what_does_not_fit(changes: dict[str, Json], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        apply_edit(FIELDS, initial_state(FIELDS), changes)


def test_another_app_keeps_the_values_that_fit_it() -> None:
    state: dict[str, Json] = {"topics": ["tea"], "mood": "fine", "gone": 1}
    fields = (StateField("topics", "list[str]", reduce="append"), StateField("mood", "int"), TURNS)

    assert migrate_state(fields, state) == {"topics": ["tea"], "mood": None, "turns": 0}
