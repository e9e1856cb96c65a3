"""Paths into a state, and the differences of two states."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.state import MISSING, Change, diff_states, format_path, get_path, parse_path
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from tests.strategies import json_objects, json_values, texts

STATE: Json = {"dictionary": {"文": "sentence", "a.b": "dotted"}, "topics": ["tea", "go"], "mood": None}
steps = st.one_of(texts.filter(bool), st.integers(-3, 10))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("mood", None),
        ("dictionary.文", "sentence"),
        ('dictionary["a.b"]', "dotted"),
        ("topics[0]", "tea"),
        ("topics[-1]", "go"),
        ("topics[2]", MISSING),
        ("topics.x", MISSING),
        ("mood.x", MISSING),
        ("nothing", MISSING),
    ],
)
def test_a_place_is_looked_up_as_a_person_writes_it(text: str, held: object) -> None:
    assert get_path(STATE, parse_path(text)) == held


@given(texts.filter(bool), st.lists(steps, max_size=3))
def test_a_place_that_was_written_is_read_back(first: str, rest: list[str | int]) -> None:
    place = (first, *rest)

    assert parse_path(format_path(place)) == place


@pytest.mark.parametrize("text", ["", "a..b", "a[", "a[x]", "a]", ".", "a. b"])
def test_what_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_path(text)


def test_differences_are_reported_by_path() -> None:
    after: Json = {"dictionary": {"文": "sentences"}, "topics": ["go", "tea"], "mood": "fine", "new": 0}

    assert list(diff_states(STATE, after)) == [
        Change(("dictionary", "文"), "changed", "sentence", "sentences"),
        Change(("dictionary", "a.b"), "removed", "dotted", None),
        Change(("topics", 0), "removed", "tea", None),
        Change(("topics", 1), "added", None, "tea"),
        Change(("mood",), "changed", None, "fine"),
        Change(("new",), "added", None, 0),
    ]


@given(json_objects)
def test_equal_states_have_no_differences(state: dict[str, Json]) -> None:
    assert list(diff_states(state, state)) == []


@given(json_objects, json_values)
def test_a_table_that_gained_an_entry_has_one_difference(state: dict[str, Json], entry: Json) -> None:
    state.pop("new", None)

    assert list(diff_states(state, state | {"new": entry})) == [Change(("new",), "added", None, entry)]


def test_the_end_of_a_list_that_is_gone_is_all_that_changed() -> None:
    found = list(diff_states({"topics": ["tea", "go", "koi"]}, {"topics": ["tea", "go"]}))

    assert found == [Change(("topics", 2), "removed", "koi", None)]


def test_lists_that_part_at_their_ends_differ_there_only() -> None:
    found = list(diff_states(["tea", "go", "koi"], ["tea", "go", "haiku"]))

    assert found == [Change((2,), "changed", "koi", "haiku")]


@given(st.lists(json_values, max_size=4), st.lists(json_values, min_size=1, max_size=3))
def test_what_is_added_to_a_list_is_all_that_changed(held: list[Json], added: list[Json]) -> None:
    found = list(diff_states(held, [*held, *added]))

    assert {change.kind for change in found} == {"added"}
    assert [change.after for change in found] == added
