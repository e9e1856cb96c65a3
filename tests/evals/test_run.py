"""Every job once, side by side; what fails is a row, and what would fail every row ends the run."""

import asyncio
from collections.abc import Iterator

import pytest

from taiwa.evals.data import Item
from taiwa.evals.run import MAX_UNANSWERED, EvalRow, Job, Measurement, Runner, UnansweredError, Worker
from taiwa.kernel.errors import (
    AuthenticationError,
    ConfigError,
    LimitError,
    OverloadedError,
    TaiwaError,
    ToolError,
    UnsupportedError,
)
from taiwa.kernel.usage_limits import RunUsage, UsageLimits


def jobs(count: int) -> Iterator[Job]:
    return (Job("s", Item(str(number), "Q", "1")) for number in range(count))


def run(running: Runner) -> list[EvalRow]:
    async def gathered() -> list[EvalRow]:
        return [row async for row in running.rows()]

    return asyncio.run(gathered())


def until(running: Runner) -> tuple[list[EvalRow], TaiwaError]:
    """The rows before a run ended by an error, and the error."""
    rows: list[EvalRow] = []

    async def gathered() -> None:
        async for row in running.rows():
            rows.append(row)  # noqa: PERF401  (a comprehension would keep nothing when it is cut short)

    with pytest.raises(TaiwaError) as raised:
        asyncio.run(gathered())
    return rows, raised.value


def failing(error: TaiwaError, spent: RunUsage | None = None) -> Worker:
    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        error.spent = spent
        raise error

    return perform


@pytest.mark.parametrize("width", [1, 3, 50])
def test_every_job_is_done_once_and_no_more_at_a_time_than_asked(width: int) -> None:
    busy = most = 0

    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return Measurement({"said": job.item.id}, RunUsage(requests=1))

    running = Runner(perform, jobs(20), width)
    rows = run(running)

    assert sorted(int(row.id) for row in rows) == list(range(20))
    assert most == min(width, 20)
    assert running.spent.requests == 20


def test_a_failure_is_a_row_with_its_code_and_its_bill() -> None:
    rows = run(Runner(failing(ToolError("no", code="syntax"), RunUsage(requests=1)), jobs(3)))

    assert [row.error.code for row in rows if row.error] == ["tool/syntax"] * 3
    assert sum(row.spent.requests for row in rows) == 3


@pytest.mark.parametrize(
    "error", [AuthenticationError("wrong key"), ConfigError("no price"), UnsupportedError("no", capability="tools")]
)
def test_what_would_fail_every_row_ends_the_run_without_a_row(error: TaiwaError) -> None:
    rows, raised = until(Runner(failing(error), jobs(100), 1))

    assert (rows, raised) == ([], error)


def test_a_server_that_never_answers_ends_the_run() -> None:
    rows, raised = until(Runner(failing(OverloadedError("down")), jobs(100), 1))

    assert isinstance(raised, UnansweredError)
    assert len(rows) == MAX_UNANSWERED


def test_a_limit_on_cost_ends_the_run_and_keeps_what_was_paid_for() -> None:
    lefts: list[int | None] = []

    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        lefts.append(limits.cost)
        return Measurement({}, RunUsage(requests=1, max_cost=40))

    rows, raised = until(Runner(perform, jobs(100), 1, cost=100))

    assert isinstance(raised, LimitError)
    assert len(rows) == 3
    assert lefts == [100, 60, 20]


def test_parallel_jobs_share_what_a_limit_leaves() -> None:
    running: list[int] = []
    most: list[int] = []

    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        assert limits.cost is not None
        running.append(limits.cost)
        most.append(sum(running))
        await asyncio.sleep(0)
        running.remove(limits.cost)
        return Measurement({}, RunUsage(requests=1, max_cost=min(30, limits.cost)))

    runner = Runner(perform, jobs(100), 4, cost=200)
    rows, raised = until(runner)

    assert isinstance(raised, LimitError)
    assert len(rows) == 7  # six, and one with what was left
    assert runner.spent.max_cost == 200
    assert max(most) <= 200


def test_a_row_that_a_limit_cut_off_is_kept_with_its_bill() -> None:
    rows, _ = until(Runner(failing(LimitError("cost", 1, 1), RunUsage(1, max_cost=100)), jobs(9), 1, cost=100))

    assert [row.spent.max_cost for row in rows] == [100]


def test_a_bill_that_nobody_knows_ends_a_run_with_a_limit_and_no_other() -> None:
    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        return Measurement({}, RunUsage(1, max_cost=None))

    rows, raised = until(Runner(perform, jobs(9), 1, cost=100))

    assert len(rows) == 1
    assert "unknown" in raised.message
    assert len(run(Runner(perform, jobs(9), 1))) == 9


def test_whoever_stops_listening_stops_what_is_under_way() -> None:
    cancelled = 0

    async def perform(job: Job, limits: UsageLimits) -> Measurement:
        nonlocal cancelled
        if job.item.id == "0":
            return Measurement({})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return Measurement({})

    async def first() -> None:
        rows = Runner(perform, jobs(50), 4).rows()
        await anext(rows)
        await rows.aclose()

    asyncio.run(first())

    assert cancelled >= 3
