import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from taiwa import constraints
from taiwa.constraints import UnsupportedConstraintError, Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import JsonSchema
from tests.json_schema_cases import cases

BYTES = Vocabulary.of_bytes()
LONGEST = 120
LIKED = {ord(sign): weight for sign, weight in (('"', 8), ("]", 4), ("}", 4), ("0", 2), ("1", 2), ("-", 2), (".", 2))}


def accepts(schema: Any, text: str) -> bool:
    return constraints.compile(JsonSchema(schema), BYTES).accepts(text.encode())


def written(schema: Any, random: Random) -> str | None:
    """A text that a model without taste writes under the schema; None if it does not come to an end."""
    state = constraints.compile(JsonSchema(schema), BYTES).start()
    for _ in range(LONGEST):
        tokens = state.allowed() or ()
        if BYTES.end[0] in tokens and (len(tokens) == 1 or random.random() < 0.3):
            return state.text.decode()
        bytes_ = [token for token in tokens if token not in BYTES.end]
        state = state.advance(random.choices(bytes_, [LIKED.get(token, 1) for token in bytes_])[0])
    return None


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_whatever_is_written_under_a_strict_guide_is_valid(
    case: tuple[dict[str, Any], list[Any]], random: Random
) -> None:
    schema, _ = case
    try:
        texts = [written(schema, random) for _ in range(4)]
    except (UnsupportedConstraintError, NoValidTokenError, InputError):
        return
    for text in texts:
        if text is not None:
            assert Draft202012Validator(schema).is_valid(json.loads(text)), text


@pytest.mark.parametrize(
    ("schema", "out", "inside"),
    [
        ({"exclusiveMinimum": 0, "maximum": 0.5}, "0", "0.5"),
        ({"exclusiveMinimum": 10, "maximum": 10.5}, "10", "10.25"),
        ({"minimum": -0.5, "exclusiveMaximum": 0}, "-0", "-0.5"),
        ({"exclusiveMinimum": -1.5, "exclusiveMaximum": -1}, "-1", "-1.25"),
        ({"allOf": [{"exclusiveMinimum": 0}, {"maximum": 0.5}]}, "0", "0.001"),
        ({"minimum": 0, "exclusiveMinimum": True, "maximum": 0.5}, "0", "0.25"),
        ({"exclusiveMinimum": 0, "maximum": 0.5, "multipleOf": 0.1}, "0", "0.3"),
    ],
)
def test_an_excluded_bound_is_left_out_however_near_the_other_one_is(schema: Any, out: str, inside: str) -> None:
    numbers = {"type": "number", **schema}

    assert not accepts(numbers, out)
    assert accepts(numbers, inside)


@pytest.mark.parametrize("text", ["0.25", "-98.5", "0.50", "1", "1.0", "0.0", "12.75"])
def test_multiples_may_be_written_with_as_many_places_as_they_need(text: str) -> None:
    assert accepts({"type": "number", "multipleOf": 0.25}, text)
    assert not accepts({"type": "number", "multipleOf": 0.25}, "0.3")


@pytest.mark.parametrize("value", [12345678901234567890, 1e100, [{"a": 2**53 + 1}]])
@pytest.mark.parametrize("keyword", ["const", "enum"])
def test_a_value_that_the_engine_would_round_is_refused_by_its_place(keyword: str, value: Any) -> None:
    held = value if keyword == "const" else [1, value]

    with pytest.raises(UnsupportedConstraintError, match=f"/properties/a: {keyword} .numbers beyond"):
        constraints.compile(JsonSchema({"properties": {"a": {keyword: held}}}), BYTES)


def test_a_count_may_be_written_with_a_fraction_of_nought() -> None:
    assert accepts({"type": "string", "minLength": 2.0, "maxLength": 3.0}, '"ab"')
    assert not accepts({"type": "array", "maxItems": 1.0}, "[1,2]")


@pytest.mark.parametrize(
    "part",
    [
        lambda below: {"oneOf": [below, below]},
        lambda below: {"oneOf": [below] * 20},
        lambda below: {"not": {"allOf": [below] * 20}},
        lambda below: {"allOf": [below] * 10},
        lambda below: {"if": below, "then": below, "else": below},
    ],
)
def test_schemas_whose_proofs_would_double_at_each_of_forty_steps_are_settled(part: Any) -> None:
    steps = {f"d{number}": part({"$ref": f"#/$defs/d{number + 1}"}) for number in range(40)}
    schema: Any = {"$ref": "#/$defs/d0", "$defs": {**steps, "d40": {"type": "string"}}}

    with suppress(UnsupportedConstraintError):
        constraints.compile(JsonSchema(schema), BYTES)


@pytest.mark.parametrize(
    ("date", "valid"),
    [
        ("2024-02-29", True), ("2023-02-29", False), ("1900-02-29", False), ("2000-02-29", True), ("2023-02-28", True),
        ("2023-12-31", True), ("2023-04-31", False), ("2023-10-29", True), ("0000-01-01", False), ("0001-01-01", True),
    ],
)  # fmt: skip
def test_a_date_is_one_of_the_calendar(date: str, valid: bool) -> None:
    assert accepts({"type": "string", "format": "date"}, f'"{date}"') is valid
    assert accepts({"type": "string", "format": "date-time"}, f'"{date}T12:00:00Z"') is valid
    assert accepts({"type": "string", "format": "date", "pattern": "^20"}, f'"{date}"') is (valid and date[:2] == "20")
