from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.copy_constraint import CONSTANTS, MAX_DIGITS, NumberSet, find_digits, find_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3 apples, 4,5 or 1,250.50", "3 4 5 1250.5 1250.50"),
        ("a .5 l bottle", "0.5 1"),
        ("twenty-five and two hundred and six", "25 206"),
        ("three thousand four hundred fifty", "3450"),
        ("1.5 million and 2k", "1500000 2000"),
        ("a dozen, half a dozen, two and a half dozen", "12 6 30"),
        ("2 1/2 cups, three quarters of 12", "2.5 0.75 3 4"),
        ("20% off, 7.5 percent more", "0.2 0.8 0.075 1.075"),
        ("twice as many, a couple of", "2"),
        ("at 3:45 pm", "3 45"),
        ("C6H8O7", "6 8 7"),
    ],
)
def test_finds_the_numbers_of_a_question(text: str, numbers: str) -> None:
    assert set(numbers.split()) <= find_numbers(text)


@given(st.text())
def test_whatever_the_text_numbers_are_short_and_can_be_read(text: str) -> None:
    for number in find_numbers(text) | {each.replace(",", "") for each in find_digits(text)}:
        assert len(number) <= MAX_DIGITS
        assert Decimal(number) >= 0


@pytest.mark.parametrize(
    "text", ["9" * 100_000, "one " * 20_000, "million " * 20_000, "1," * 50_000, "1/" * 50_000, "%" * 100_000]
)
def test_long_texts_take_no_time(text: str) -> None:
    assert all(len(number) <= MAX_DIGITS for number in find_numbers(text[-1_200:]))


def test_what_is_begun_is_what_a_number_begins_with() -> None:
    found = NumberSet().plus(frozenset(("12.5", "7")))
    assert found.begun == {"1", "12", "12.", "12.5", "7"}
    assert found.plus(frozenset(("7",))) is found


def test_constants_are_spelled_as_they_are_written() -> None:
    assert find_numbers(" ".join(sorted(CONSTANTS))) >= CONSTANTS
