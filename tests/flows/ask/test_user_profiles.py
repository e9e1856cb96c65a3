"""Learning from feedback, within bounds and reversible."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    MAX_EVENTS,
    MAX_TOLERANCE,
    MAX_UNCLEAR,
    MIN_TOLERANCE,
    MIN_UNCLEAR,
    AskTolerance,
    Feedback,
    Thresholds,
    UserProfile,
    Verdict,
    learn_from_feedback,
    parse_verdict,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import record, restore

EVENTS = st.lists(st.builds(Feedback, st.sampled_from(get_args(Verdict)), st.booleans()), max_size=60)


def test_without_feedback_nothing_moves() -> None:
    assert learn_from_feedback(ANONYMOUS_USER, ()) == ANONYMOUS_USER
    assert ANONYMOUS_USER.effective_thresholds == Thresholds()
    assert ANONYMOUS_USER.tolerance.mean == 0.5


@given(EVENTS)
def test_learning_is_bounded(events: list[Feedback]) -> None:
    person = learn_from_feedback(UserProfile("ann"), events)

    assert MIN_TOLERANCE <= person.tolerance.mean <= MAX_TOLERANCE
    assert MIN_UNCLEAR <= person.effective_thresholds.unclear <= MAX_UNCLEAR
    assert person.tolerance.welcome + person.tolerance.unwelcome <= 4 + MAX_EVENTS + 1e-6
    assert restore(record(person)) == person


@given(EVENTS, st.booleans())
def test_negative_feedback_never_raises_the_tolerance(events: list[Feedback], asked: bool) -> None:
    before = learn_from_feedback(ANONYMOUS_USER, events)
    after = learn_from_feedback(ANONYMOUS_USER, [*events, Feedback("should_not_have_asked", asked)])

    assert after.tolerance.mean <= before.tolerance.mean
    assert after.effective_thresholds.unclear >= before.effective_thresholds.unclear


@given(EVENTS)
def test_the_tolerance_is_derived_from_feedback_and_can_be_reset(events: list[Feedback]) -> None:
    assert learn_from_feedback(learn_from_feedback(ANONYMOUS_USER, events), ()) == ANONYMOUS_USER
    assert learn_from_feedback(learn_from_feedback(ANONYMOUS_USER, events), events) == learn_from_feedback(
        ANONYMOUS_USER, events
    )


def test_old_feedback_can_be_unlearnt() -> None:
    never = learn_from_feedback(ANONYMOUS_USER, [Feedback("should_not_have_asked", True)] * 1000)
    again = learn_from_feedback(
        ANONYMOUS_USER, [*[Feedback("should_not_have_asked", True)] * 1000, *[Feedback("should_have_asked")] * 40]
    )

    assert never.tolerance.mean == MIN_TOLERANCE
    assert again.tolerance.mean > 0.5


@pytest.mark.parametrize(
    ("verdict", "asked", "more"),
    [
        ("good", True, True), ("bad", True, False), ("good", False, False), ("bad", False, True),
        ("should_have_asked", False, True), ("should_not_have_asked", True, False),
    ],
)  # fmt: skip
def test_each_verdict_moves_to_one_side(verdict: Verdict, asked: bool, more: bool) -> None:
    mean = AskTolerance().after(verdict, asked).mean

    assert (mean > 0.5) is more
    assert mean != 0.5


def test_a_threshold_set_beyond_the_bounds_is_kept() -> None:
    strict = UserProfile("ann", thresholds=Thresholds(unclear=5))

    assert strict.effective_thresholds.unclear == 5
    assert learn_from_feedback(strict, [Feedback("should_not_have_asked", True)] * 9).effective_thresholds.unclear == 5


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("/good", "good"), ("BAD", "bad"), ("should have asked", "should_have_asked"), ("should-not-have-asked", "should_not_have_asked"),
        ("👍", "good"), ("聞かないで", "should_not_have_asked"), ("不好", "bad"), ("-", "bad"),
    ],
)  # fmt: skip
def test_a_verdict_is_parsed_in_all_spellings(words: str, verdict: str) -> None:
    assert parse_verdict(words) == verdict


def test_an_unknown_verdict_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="good, bad, should_have_asked"):
        parse_verdict("meh")
