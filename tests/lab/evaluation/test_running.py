"""Every job once, side by side; what fails is a row, and what would fail every row ends the run."""

import asyncio
from collections.abc import Iterator

import pytest

from taiwa.kernel.errors import (
    AuthError,
    ConfigError,
    LimitError,
    OverloadedError,
    TaiwaError,
    ToolError,
    UnsupportedError,
)
from taiwa.kernel.ledger import Limits, Spent
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.rows import Row
from taiwa.lab.evaluation.running import MOST_SILENT, Job, Measured, Perform, Running, UnansweredError


def jobs(count: int) -> Iterator[Job]:
    return (Job("s", Item(str(number), "Q", "1")) for number in range(count))


def run(running: Running) -> list[Row]:
    async def gathered() -> list[Row]:
        return [row async for row in running.rows()]

    return asyncio.run(gathered())


def until(running: Running) -> tuple[list[Row], TaiwaError]:
    """The rows before a run ended by an error, and the error."""
    rows: list[Row] = []

    async def gathered() -> None:
        async for row in running.rows():
            rows.append(row)  # noqa: PERF401  (a comprehension would keep nothing when it is cut short)

    with pytest.raises(TaiwaError) as raised:
        asyncio.run(gathered())
    return rows, raised.value


def failing(error: TaiwaError, spent: Spent | None = None) -> Perform:
    async def perform(job: Job, limits: Limits) -> Measured:
        error.spent = spent
        raise error

    return perform


@pytest.mark.parametrize("width", [1, 3, 50])
def test_every_job_is_done_once_and_no_more_at_a_time_than_asked(width: int) -> None:
    busy = most = 0

    async def perform(job: Job, limits: Limits) -> Measured:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return Measured({"said": job.item.id}, Spent(requests=1))

    running = Running(perform, jobs(20), width)
    rows = run(running)

    assert sorted(int(row.id) for row in rows) == list(range(20))
    assert most == min(width, 20)
    assert running.spent.requests == 20


def test_a_failure_is_a_row_with_its_code_and_its_bill() -> None:
    rows = run(Running(failing(ToolError("no", code="syntax"), Spent(requests=1)), jobs(3)))

    assert [row.error.code for row in rows if row.error] == ["tool/syntax"] * 3
    assert sum(row.spent.requests for row in rows) == 3


@pytest.mark.parametrize(
    "error", [AuthError("wrong key"), ConfigError("no price"), UnsupportedError("no", ability="tools")]
)
def test_what_would_fail_every_row_ends_the_run_without_a_row(error: TaiwaError) -> None:
    rows, raised = until(Running(failing(error), jobs(100), 1))

    assert (rows, raised) == ([], error)


def test_a_server_that_never_answers_ends_the_run() -> None:
    rows, raised = until(Running(failing(OverloadedError("down")), jobs(100), 1))

    assert isinstance(raised, UnansweredError)
    assert len(rows) == MOST_SILENT


def test_a_limit_on_cost_ends_the_run_and_keeps_what_was_paid_for() -> None:
    lefts: list[int | None] = []

    async def perform(job: Job, limits: Limits) -> Measured:
        lefts.append(limits.cost)
        return Measured({}, Spent(requests=1, cost_at_most=40))

    rows, raised = until(Running(perform, jobs(100), 1, cost=100))

    assert isinstance(raised, LimitError)
    assert len(rows) == 3
    assert lefts == [100, 60, 20]


def test_a_row_that_a_limit_cut_off_is_kept_with_its_bill() -> None:
    rows, _ = until(Running(failing(LimitError("cost", 1, 1), Spent(1, cost_at_most=100)), jobs(9), 1, cost=100))

    assert [row.spent.cost_at_most for row in rows] == [100]


def test_a_bill_that_nobody_knows_ends_a_run_with_a_limit_and_no_other() -> None:
    async def perform(job: Job, limits: Limits) -> Measured:
        return Measured({}, Spent(1, cost_at_most=None))

    rows, raised = until(Running(perform, jobs(9), 1, cost=100))

    assert len(rows) == 1
    assert "not known" in raised.message
    assert len(run(Running(perform, jobs(9), 1))) == 9


def test_whoever_stops_listening_stops_what_is_under_way() -> None:
    cancelled = 0

    async def perform(job: Job, limits: Limits) -> Measured:
        nonlocal cancelled
        if job.item.id == "0":
            return Measured({})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return Measured({})

    async def first() -> None:
        rows = Running(perform, jobs(50), 4).rows()
        await anext(rows)
        await rows.aclose()

    asyncio.run(first())

    assert cancelled >= 3
