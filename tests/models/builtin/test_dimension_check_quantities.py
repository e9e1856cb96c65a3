"""The numbers of a question and what they count."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.dimension_check import NONE, Dimension, asked_dimensions, over, read_quantities, times

dimensions = st.dictionaries(st.sampled_from("LMT"), st.integers(-4, 4).filter(bool)).map(
    lambda powers: frozenset(powers.items())
)


def of(**powers: int) -> Dimension:
    return frozenset(powers.items())


@given(dimensions, dimensions)
def test_dimensions_are_a_commutative_group(one: Dimension, other: Dimension) -> None:
    assert times(one, other) == times(other, one)
    assert over(times(one, other), other) == one
    assert over(one, one) == NONE


@given(st.integers(1, 99))
def test_a_number_in_words_is_read_as_the_same_in_digits(number: int) -> None:
    ones = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    words = ones[number] if number < 20 else f"{tens[number // 10 - 2]}{'-' + ones[number % 10] if number % 10 else ''}"

    assert [each.value for each in read_quantities(f"There are {words} eggs.").mentions] == [number]
    assert [each.value for each in read_quantities(f"There are {words} hundred and seven eggs.").mentions] == [
        100 * number + 7
    ]


@pytest.mark.parametrize(
    ("question", "value", "dimension"),
    [
        ("a force of 17 N", "17", of(M=1, L=1, T=-2)),
        ("a spring of 348.5 N/m", "348.5", of(M=1, T=-2)),
        ("2 grams per cubic centimetre", "2", of(M=1, L=-3)),
        ("a momentum of 446 kg m/s", "446", of(M=1, L=1, T=-1)),
        ("9 metres per second squared", "9", of(L=1, T=-2)),
        ("832 pages per week", "832", of(page=1, T=-1)),
        ("one glorb is 19.7 snirts", "19.7", of(snirt=1, glorb=-1)),
        ("140 kroner per one rupee", "140", of(kroner=1, rupee=-1)),
        ("21 tennis balls a month", "21", of(ball=1, T=-1)),
        ("63 % of them", "63", NONE),
        ("$28 for all", "28", of(dollar=1)),
    ],
)
def test_a_number_may_count_what_stands_with_it(question: str, value: str, dimension: Dimension) -> None:
    found = next(each for each in read_quantities(question).mentions if each.value == Fraction(value))

    assert dimension in found.dimensions


def test_what_is_asked_for_is_a_thing_or_a_unit() -> None:
    assert [*asked_dimensions("How many boxes does he need?")] == [of(box=1)]
    assert [*asked_dimensions("What is the speed, in metres per second?")] == [of(L=1, T=-1)]
    assert not [*asked_dimensions("How far is it?")]
