"""Checks of fields: a valid field keeps its type under every delta."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.reducers import BUILT_IN
from taiwa.conversation.state import (
    StateField,
    TurnContext,
    apply_delta,
    check_field,
    delta_output_type,
    value_output_type,
)
from taiwa.kernel.errors import ConfigError, OutputValidationError
from taiwa.kernel.serialization import Json
from tests.conversation.apps import initial_state

TYPES = (
    "str", "int", "float", "bool", "any", "str | null", "int | null", "int | float", "int(1..5)", "float(0..1)", '"x" | "y"',
    "{a: int}", "list[str]", "list[int](max 2)", "list[str | null]", "list[str] | null", "list[{a: int, b?: str}]",
    "dict[str, str]", "dict[str, str | null]", "dict[str, int]", "dict[str, list[str]]",
)  # fmt: skip
REDUCERS = (*BUILT_IN, "last(2)")
VALUES: tuple[Json, ...] = (
    None, True, 0, 1, 5, -1, 0.5, "x", "", [], ["a"], ["a", "b", "c"], [1, 2], [None], [{"a": 1}],
    {}, {"a": 1}, {"a": "b"}, {"a": None}, {"k": ["v"]},
)  # fmt: skip
INITS: tuple[Json, ...] = (None, 1, "x", [], {}, ["a"], {"a": 1}, {"a": "b"})


def fits(field: StateField) -> bool:
    try:
        check_field(field)
    except ConfigError:
        return False
    return True


def sound_fields() -> st.SearchStrategy[StateField]:
    every = (StateField("f", kind, init, how) for kind in TYPES for how in REDUCERS for init in INITS)
    return st.sampled_from([field for field in every if fits(field)])


@given(st.deferred(sound_fields), st.lists(st.sampled_from(VALUES), max_size=5))
def test_every_delta_of_the_type_folds_and_leaves_the_type(field: StateField, deltas: list[Json]) -> None:
    state = initial_state((field,))
    for turn, given_value in enumerate(deltas, 1):
        try:
            delta = delta_output_type((field,)).validate({"f": given_value})
        except OutputValidationError:
            continue
        state = apply_delta((field,), state, delta, TurnContext(turn, "", "", None))

    assert value_output_type(field).validate(state) == state


def test_bounds_hold_for_what_is_written_and_not_for_what_piles_up() -> None:
    field = StateField("f", "list[int](max 2)", None, "append")

    assert value_output_type(field).validate({"f": [1, 2, 3]}) == {"f": [1, 2, 3]}
    with pytest.raises(OutputValidationError):
        delta_output_type((field,)).validate({"f": [1, 2, 3]})


@pytest.mark.parametrize(
    ("kind", "how", "said"),
    [
        ("list[str] | null", "append", "the reducer 'append' requires list, and the type is 'list[str] | null'"),
        ("dict[str, str]", "count", "the reducer 'count' requires dict[str, int], and the type is 'dict[str, str]'"),
        ("str", "sum", "the reducer 'sum' requires int or float, and the type is 'str'"),
    ],
)
def test_a_type_that_a_reducer_cannot_hold_is_refused(kind: str, how: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_field(StateField("f", kind, None, how))

    assert caught.value.message == said
