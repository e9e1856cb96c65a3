import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import (
    AuthenticationError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RefusalError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.models.http_api.client import Deadline, RetryPolicy
from taiwa.models.http_api.provider_interface import RequestLimits

DAY = 86_400.0
chance = st.floats(0, 1, exclude_max=True)


def test_waits_double_up_to_the_cap_and_half_of_each_is_chance() -> None:
    retry = RetryPolicy(attempts=9, base=0.5, cap=3.0)
    busy = OverloadedError("busy")

    shortest = [retry.decide(busy, attempt, DAY, random=0.0) for attempt in range(1, 6)]
    longest = [retry.decide(busy, attempt, DAY, random=1.0) for attempt in range(1, 6)]

    assert shortest == [0.25, 0.5, 1.0, 1.5, 1.5]
    assert longest == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_the_last_attempt_is_not_followed_by_another() -> None:
    retry = RetryPolicy(attempts=3)

    decisions = [retry.decide(OverloadedError("busy"), attempt, DAY, 0.5) for attempt in (1, 2, 3, 4)]

    assert [decision is not None for decision in decisions] == [True, True, False, False]


def test_a_wait_that_the_server_asked_for_is_obeyed_and_stretched_a_little() -> None:
    retry = RetryPolicy(cap=1.0)

    assert retry.decide(RateLimitError("slow down", retry_after=20.0), 1, DAY, random=0.0) == 20.0
    assert retry.decide(RateLimitError("slow down", retry_after=20.0), 1, DAY, random=0.5) == pytest.approx(21.0)
    assert retry.decide(OverloadedError("busy"), 1, DAY, random=0.0, asked=7.0) == 7.0
    assert retry.decide(RateLimitError("slow down", retry_after=0.0), 1, DAY, random=0.9) == 0.0


def test_a_wait_longer_than_the_calls_time_is_not_begun() -> None:
    assert RetryPolicy().decide(RateLimitError("slow down", retry_after=20.0), 1, left=19.0, random=0.0) is None
    assert RetryPolicy().decide(OverloadedError("busy"), 1, left=0.1, random=0.0) is None


def test_waits_that_a_rate_limit_asks_for_do_not_count_as_attempts() -> None:
    asked = RateLimitError("slow down", retry_after=2.0)

    assert RetryPolicy(attempts=3).decide(asked, 50, left=3.0, random=0.0) is None  # a later wait is longer
    assert RetryPolicy(attempts=3, cap=1.0).decide(asked, 50, left=3.0, random=0.0) == 2.0
    assert RetryPolicy(attempts=3).decide(asked, 50, left=1.0, random=0.0) is None
    assert RetryPolicy(attempts=1).decide(asked, 1, DAY, random=0.0) is None
    assert RetryPolicy(attempts=3).decide(RateLimitError("slow down"), 3, DAY, random=0.0) is None


def test_a_rate_limit_that_never_asks_for_a_wait_is_not_asked_without_end() -> None:
    waits = [RetryPolicy().decide(RateLimitError("", retry_after=0.0), made, DAY, random=0.0) for made in range(1, 9)]

    assert waits == [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationError("no key"),
        RefusalError("no"),
        UnsupportedError("no", capability="stop"),
        ProtocolError("odd"),
        ModelError("bad request", status=400),
        OverloadedError("not implemented", status=501),
    ],
)
def test_what_will_be_the_same_tomorrow_is_not_tried_again(error: ModelError) -> None:
    assert RetryPolicy().decide(error, 1, DAY, 0.5) is None


@pytest.mark.parametrize("error", [OverloadedError("", status=503), RateLimitError(""), TimeoutError("", status=408)])
def test_what_passes_is_tried_again(error: ModelError) -> None:
    assert RetryPolicy().decide(error, 1, DAY, 0.5) is not None


@given(st.integers(1, 10**6), st.floats(0, DAY), chance, st.none() | st.floats(0, 10**9), st.integers(1, 10**6))
def test_no_wait_is_negative_or_outlasts_the_call(
    attempt: int, left: float, random: float, asked: float | None, attempts: int
) -> None:
    wait = RetryPolicy(attempts=attempts).decide(OverloadedError("busy"), attempt, left, random, asked)

    assert wait is None or (0 <= wait < left and attempt < attempts and (asked is None or wait >= asked))


def test_every_wait_ends_with_the_attempt_and_the_call() -> None:
    now = [100.0]
    deadline = Deadline(RequestLimits(connect=5, first_byte=30, between=20, total=60), lambda: now[0])

    timeouts = deadline.begin_attempt()
    assert timeouts == {"connect": 5, "write": 30}
    assert (deadline.until_first_byte(), deadline.until_next_byte(), deadline.left) == (30, 20, 60)

    now[0] = 145.0
    assert (deadline.until_first_byte(), deadline.until_next_byte(), deadline.is_over) == (-15, 15, False)
    assert deadline.begin_attempt() == {"connect": 5, "write": 15}
    assert deadline.until_first_byte() == 15

    now[0] = 160.0
    assert deadline.is_over
    assert deadline.begin_attempt() == {"connect": 0, "write": 0}
