"""The paper counts equal texts; a tolerance forgives rounding and nothing else."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.evals.report import is_exact, is_near, parse_number


@pytest.mark.parametrize(
    ("answer", "gold", "same", "close"),
    [
        ("621", "621", True, True),
        ("621.0", "621", False, True),
        ("54.2373", "54.24", False, True),
        ("54.5", "54.24", False, True),
        ("54.6", "54.24", False, False),
        ("1,536", "1536", False, True),
        ("-5", "5", False, False),
        ("0", "0", True, True),
        ("0.001", "0", False, False),
        ("3/4", "0.75", False, True),
        ("１２", "12", False, True),
        ("Option 1", "Option 1", True, True),
        ("Option  1", "Option 1", False, True),
        ("Option 2", "Option 1", False, False),
        ("", "621", False, False),
        ("", "", False, False),
        ("6e2", "600", False, True),
        ("25%", "25", False, True),
        ("$9", "9", False, True),
    ],
)
def test_an_answer_is_judged_both_ways(answer: str, gold: str, same: bool, close: bool) -> None:
    assert is_exact(answer, gold) is same
    assert is_near(answer, gold) is close


@pytest.mark.parametrize(
    "text", ["", ".", "-", "1/0", "1e", "12 apples", "1,2", "NaN", "inf", "1e9999", "9" * 50, "0x10"]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert parse_number(text) is None


def test_a_minus_of_typesetters_is_a_minus() -> None:
    assert parse_number("−2.5") == Fraction(-5, 2)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_any_decimal_is_read_as_it_is(given: object) -> None:
    assert parse_number(f"{given:f}") == Fraction(str(given))


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    parse_number(text)
    assert is_near(text, text) is bool(text.strip())
