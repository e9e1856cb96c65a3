"""The statistics agree with published values, and with each other at their ends."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.evals.report import PairedComparison, Proportion, mcnemar, wilson


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_the_interval_is_that_of_the_literature(count: int, of: int, low: float, high: float) -> None:
    found = wilson(count, of)

    assert isclose(found[0], low, abs_tol=5e-5)
    assert isclose(found[1], high, abs_tol=5e-5)


@given(st.integers(1, 5000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_stays_within_nothing_and_all(pair: tuple[int, int]) -> None:
    count, of = pair

    low, high = wilson(count, of)

    assert 0 <= low <= count / of <= high <= 1
    mirrored = wilson(of - count, of)
    assert isclose(low, 1 - mirrored[1], abs_tol=1e-12)


@pytest.mark.parametrize(("count", "of"), [(1, 0), (0, 0), (-1, 3), (4, 3)])
def test_what_is_no_share_has_no_interval(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson(count, of)


def test_nothing_of_nothing_has_neither_share_nor_interval() -> None:
    assert Proportion(0, 0).share is None
    assert Proportion(0, 0).interval is None


@pytest.mark.parametrize(
    ("this", "that", "p"),
    [
        (0, 0, 1.0),
        (3, 3, 1.0),
        (0, 1, 1.0),
        (0, 5, 0.0625),
        (1, 9, 0.021484375),
        (2, 10, 2 * (1 + 12 + 66) / 4096),
        (5, 15, 0.04138946533203125),
    ],
)
def test_the_test_of_pairs_is_the_exact_binomial(this: int, that: int, p: float) -> None:
    assert isclose(mcnemar(this, that), p, rel_tol=1e-12)


@given(st.integers(0, 400), st.integers(0, 400))
def test_it_does_not_matter_which_setting_is_named_first(this: int, that: int) -> None:
    assert mcnemar(this, that) == mcnemar(that, this)
    assert 0 < mcnemar(this, that) <= 1


def test_thousands_of_pairs_are_no_overflow() -> None:
    assert 0 <= PairedComparison(0, 5000, 9000).p < 1e-300


def test_a_number_of_pairs_is_not_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        mcnemar(-1, 3)
