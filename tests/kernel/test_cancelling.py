"""Cancelling the task of an asynchronous run."""

import asyncio

import pytest

from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program, gather, perform
from tests.kernel.fakes import Double, Echo, ask


class Endless(Echo):
    """A model that never ends its answer."""

    def _chunks(self, text: str):  # type: ignore[no-untyped-def]
        while True:
            yield from super()._chunks(text)


def endless(closed: list[str]) -> Program[str]:
    try:
        return (yield from ask("on and on"))
    finally:
        closed.append("program")


async def cancelled(runtime: AsyncRuntime, program: Program[object]) -> None:
    task = asyncio.create_task(runtime.run(program))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("many", [False, True])
def test_cancelling_a_run_closes_its_streams_and_its_programs(many: bool) -> None:
    closed: list[str] = []
    model = Endless()
    model.finish = False
    program = gather([endless(closed), endless(closed)]) if many else endless(closed)

    asyncio.run(cancelled(AsyncRuntime(model), program))

    assert closed == ["program"] * (2 if many else 1)
    assert model.closed == ["on and on"] * (2 if many else 1)
    assert model.open_now == 0


def test_cancelling_a_run_cancels_its_handlers() -> None:
    ended: list[str] = []

    async def wait(_: Double) -> int:
        try:
            await asyncio.sleep(300)
        finally:
            ended.append("handler")
        return 0

    asyncio.run(cancelled(AsyncRuntime(handlers={Double: wait}), perform(Double(1))))

    assert ended == ["handler"]


def test_a_handler_whose_own_work_was_cancelled_does_not_leave_the_run_waiting() -> None:
    async def wait(_: Double) -> int:
        raise asyncio.CancelledError

    async def run() -> None:
        async with asyncio.timeout(300):
            await AsyncRuntime(handlers={Double: wait}).run(perform(Double(1)))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_a_timeout_around_a_run_is_the_callers() -> None:
    async def wait(_: Double) -> int:
        await asyncio.sleep(300)
        return 0

    async def run() -> None:
        async with asyncio.timeout(0.01):
            await AsyncRuntime(handlers={Double: wait}).run(perform(Double(1)))

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_two_runs_share_a_loop() -> None:
    async def both() -> tuple[str, str]:
        runtime = AsyncRuntime(Echo(chunk=1))
        one, two = await asyncio.gather(runtime.run(ask("a")), runtime.run(ask("b")))
        return one, two

    assert asyncio.run(both()) == ("a!", "b!")


def test_an_asynchronous_handler_is_awaited() -> None:
    async def double(effect: Double) -> int:
        await asyncio.sleep(0)
        return effect.number * 2

    runtime = AsyncRuntime(handlers={Double: double})

    assert asyncio.run(runtime.run(gather([perform(Double(1)), perform(Double(2))]))) == (2, 4)


@pytest.mark.parametrize(("many", "tasks"), [(False, 1), (True, 3)])
def test_only_effects_side_by_side_take_tasks(many: bool, tasks: int) -> None:
    async def count(_: Double) -> int:
        found = len(asyncio.all_tasks())
        await asyncio.sleep(0)
        return found

    runtime = AsyncRuntime(handlers={Double: count})
    both: Program[object] = gather([perform(Double(1)), perform(Double(2))]) if many else perform(Double(1))

    assert asyncio.run(runtime.run(both)) == ((tasks, tasks) if many else tasks)
