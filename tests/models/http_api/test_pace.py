"""The pace of calls: no minute has more requests and tokens than its limits, no moment more calls."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.http_api.pace import MINUTE, Pace, PacedCall, PaceLimits


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 400), st.integers(0, 900)), max_size=40),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 2_000),
)
def test_no_minute_has_more_requests_or_tokens_than_its_limits(
    calls: list[tuple[int, int, int]], requests: int | None, tokens: int | None
) -> None:
    pace, now, sent = Pace(PaceLimits(requests=requests, tokens=tokens)), 0.0, list[PacedCall]()
    for gap, read, written in calls:
        now += gap
        for _ in range(200):
            begun = pace.start(read, now)
            if isinstance(begun, PacedCall):
                break
            assert begun > 0
            now += begun
        else:
            raise AssertionError("a call waits without end")
        in_minute = [each for each in sent if each.at > now - MINUTE]
        assert requests is None or len(in_minute) < requests
        assert tokens is None or not in_minute or sum(each.tokens for each in (*in_minute, begun)) <= tokens + 1e-6
        sent.append(begun)
        pace.settle(begun, read, written)


def test_at_most_so_many_calls_are_open_at_a_time() -> None:
    pace, open_now, most = Pace(PaceLimits(concurrency=3)), 0, 0

    async def call() -> None:
        nonlocal open_now, most
        async with pace.place():
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0)
            open_now -= 1

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(20)))

    asyncio.run(all_calls())
    asyncio.run(all_calls())

    assert most == 3


def test_calls_of_several_event_loops_share_the_places() -> None:
    pace, lock, open_now, most = Pace(PaceLimits(concurrency=2)), threading.Lock(), [0], [0]

    async def call() -> None:
        async with pace.place():
            with lock:
                open_now[0] += 1
                most[0] = max(most[0], open_now[0])
            await asyncio.sleep(0)
            with lock:
                open_now[0] -= 1

    async def many() -> None:
        await asyncio.gather(*(call() for _ in range(25)))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(300)

    assert not any(each.is_alive() for each in threads)
    assert most[0] <= 2


def test_a_call_that_is_cancelled_while_it_waits_leaves_its_turn_to_the_next() -> None:
    pace = Pace(PaceLimits(concurrency=1))

    async def call() -> str:
        async with pace.place():
            return "done"

    async def both() -> str:
        async with pace.place():
            first, second = asyncio.create_task(call()), asyncio.create_task(call())
            await asyncio.sleep(0)
            first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert asyncio.run(both()) == "done"
