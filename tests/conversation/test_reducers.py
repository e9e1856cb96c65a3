"""How a delta becomes the next value of a field."""

import copy
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.reducers import BUILT_IN, item_key, reducer
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json, canonical
from tests.strategies import json_values, texts

words = st.lists(st.sampled_from(["a", "b", "Ａ", "A ", "ab", "が", "か\u3099", ""]), max_size=4)
tables = st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 3), max_size=3)


def step(name: str, held: Json, given: Json, turn: int = 1) -> Json:
    return reducer(name).step(held, given, turn)


@pytest.mark.parametrize(
    ("name", "held", "given", "after"),
    [
        ("set", "old", "new", "new"),
        ("append", ["a"], ["a", "b"], ["a", "a", "b"]),
        ("union", ["a"], ["a", "b", "b"], ["a", "b"]),
        ("table", {"a": 1, "b": 2}, {"a": None, "c": 3}, {"b": 2, "c": 3}),
        ("sum", 0.1, 0.2, 0.3),
        ("sum", 1, 2, 3),
        ("sum", 10**20, 1, 10**20 + 1),
        ("count", {"a": 1}, ["a", "b"], {"a": 2, "b": 1}),
        ("max", None, 3, 3),
        ("max", 3, 2.5, 3),
        ("min", 3, 2.5, 2.5),
        ("log", [{"turn": 1, "entry": "x"}], ["y"], [{"turn": 1, "entry": "x"}, {"turn": 7, "entry": "y"}]),
        ("last(2)", ["a", "b"], ["c"], ["b", "c"]),
        ("last( 1 )", [], ["a", "b"], ["b"]),
    ],
)
def test_each_reducer_folds_a_delta_into_the_value(name: str, held: Json, given: Json, after: Json) -> None:
    folded = step(name, held, given, turn=7)

    assert folded == after
    assert type(folded) is type(after)


@pytest.mark.parametrize("name", [*BUILT_IN, "last(2)"])
def test_a_reducer_changes_neither_the_value_nor_the_delta(name: str) -> None:
    held: Json = {"a": 1} if reducer(name).empty == {} else 1 if name in {"sum", "max", "min"} else ["a"]
    given: Json = {"a": None} if name == "table" else ["b"] if isinstance(held, (list, dict)) else 2
    before = copy.deepcopy((held, given))

    step(name, held, given)

    assert (held, given) == before


@given(texts)
def test_unicode_forms_width_case_and_surrounding_space_make_no_difference(text: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert item_key(unicodedata.normalize(form, text)) == item_key(text)
    assert item_key(f" {text}\n") == item_key(text)


@pytest.mark.parametrize(
    ("left", "right"), [("が", "か\u3099"), ("Ｔｏｋｙｏ", "tokyo "), ("ｶﾞ", "ガ"), ("Straße", "STRASSE")]
)
def test_the_same_word_written_differently_is_one_item(left: str, right: str) -> None:
    assert step("union", [left], [right]) == [left]


@pytest.mark.parametrize(
    ("held", "given"), [("ab", "a"), ("a", "ab"), ("日本語", "日本"), ("1", 1), ("[1]", [1]), (1, True), (1, 1.0)]
)
def test_what_is_only_a_part_or_looks_alike_is_another_item(held: Json, given: Json) -> None:
    assert step("union", [held], [given]) == [held, given]


@given(texts, json_values.filter(lambda item: not isinstance(item, str)))
def test_a_text_is_never_the_item_key_as_anything_else(text: str, other: Json) -> None:
    assert item_key(text) != item_key(other)
    assert item_key(canonical(other).decode()) != item_key(other)


@given(words, words)
def test_union_keeps_the_first_form_and_the_order(held: list[Json], given: list[Json]) -> None:
    once = step("union", [], held)

    assert step("union", once, given) == step("union", [], [*held, *given])
    assert step("union", once, once) == once


@given(words, words, words)
def test_union_leaves_what_a_person_set_as_it_is(held: list[Json], first: list[Json], second: list[Json]) -> None:
    union = reducer("union")
    after = union.step(held, first, 1)

    assert isinstance(after, list)
    assert after[: len(held)] == held
    assert union.combine is not None
    assert union.step(after, second, 2) == union.step(held, union.combine(first, second), 1)


@given(tables, tables)
def test_a_table_never_holds_what_was_removed(held: dict[str, Json], given: dict[str, Json]) -> None:
    after = step("table", held, given)

    assert isinstance(after, dict)
    assert None not in after.values()
    assert all(after.get(key) == entry for key, entry in given.items())


def test_what_was_set_last_stands_last_in_a_table() -> None:
    after = step("table", {"a": 1, "b": 2, "c": 3}, {"a": 4})

    assert list(after) == ["b", "c", "a"] if isinstance(after, dict) else False


@given(st.lists(st.integers(-999_999, 999_999), max_size=8))
def test_sums_are_those_of_paper(cents: list[int]) -> None:
    total: Json = 0
    for amount in cents:
        total = step("sum", total, amount / 100)

    assert total == sum(cents) / 100


@given(st.lists(words, max_size=4))
def test_counting_in_turns_is_counting_at_once(turns: list[list[Json]]) -> None:
    counts: Json = {}
    for turn in turns:
        counts = step("count", counts, turn)

    assert counts == step("count", {}, [word for turn in turns for word in turn])


wrong: list[tuple[str, Json, Json, str]] = [
    ("append", [], "a", "expected a list, got str"),
    ("union", [], None, "expected a list, got NoneType"),
    ("table", {}, ["a"], "expected a table, got list"),
    ("sum", 0, "1", "expected a number, got str"),
    ("max", 1, True, "expected a number, got bool"),
    ("count", [], ["a"], "expected a table, got list"),
]


@pytest.mark.parametrize(("name", "held", "given", "complaint"), wrong)
def test_a_delta_of_the_wrong_kind_is_refused(name: str, held: Json, given: Json, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        step(name, held, given)


@pytest.mark.parametrize("name", ["unknown", "last", "last(0)", "last(-1)", "last(1.5)", "last(9999999)", ""])
def test_an_unknown_reducer_is_an_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown reducer .*; choose one of set, append, union.*last\(n\)"):
        reducer(name)
