"""An event loop goes on while a tool, a retriever or the sink of a journal blocks."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from taiwa.kernel.async_runtime import MOST_STEP_THREADS, AsyncRuntime, finish_in_thread
from taiwa.kernel.effects import CallTool, Effect, Retrieve, gather, perform
from taiwa.kernel.errors import LimitError
from taiwa.kernel.execution import Entry, Journal
from taiwa.kernel.messages import Passage, ToolResult, ToolSpec
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import UsageLimits
from tests.kernel.fakes import Echo, ask

LONG = 30.0
"""Seconds after which a loop that is blocked lets a test fail."""


class Gate:
    """Blocks the thread that comes to it, until the event loop opens it."""

    def __init__(self) -> None:
        self.spec = ToolSpec("gate", "Wait.", {})
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self._open = threading.Event()

    def wait(self) -> None:
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self._open.wait(LONG), "the event loop was blocked"

    async def opened(self) -> None:
        await self.reached.wait()
        self._open.set()

    def open(self) -> None:
        self._open.set()

    def call(self, _: Mapping[str, Json]) -> ToolResult:
        self.wait()
        return ToolResult("passed", "gate")

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        self.wait()
        return (Passage("gate", query),)

    def sink(self, _: Entry) -> None:
        self.wait()


@pytest.mark.parametrize("effect", [CallTool("gate", {}), Retrieve("q")], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("limits", [UsageLimits(), UsageLimits(seconds=LONG)], ids=["", "within a time"])
def test_the_loop_goes_on_while_an_effect_blocks(effect: Effect[Any], limits: UsageLimits) -> None:
    async def main() -> None:
        gate = Gate()
        runtime = AsyncRuntime(tools=[gate], retriever=gate, limits=limits)
        await asyncio.gather(runtime.run(perform(effect)), gate.opened())

    asyncio.run(main())


def test_the_loop_goes_on_while_a_journal_is_written() -> None:
    async def main() -> str:
        gate = Gate()
        journal = Journal(sink=gate.sink)
        answers, _ = await asyncio.gather(
            AsyncRuntime(Echo()).run(gather([ask("a"), ask("b")]), journal), gate.opened()
        )
        assert len(journal.entries) == 2
        return ",".join(answers)

    assert asyncio.run(main()) == asyncio.run(AsyncRuntime(Echo()).run(ask("a"))) + "," + asyncio.run(
        AsyncRuntime(Echo()).run(ask("b"))
    )


def test_a_run_whose_tool_blocks_can_be_cancelled() -> None:
    async def main() -> None:
        gate = Gate()
        task = asyncio.create_task(AsyncRuntime(tools=[gate]).run(perform(CallTool("gate", {}))))
        await gate.reached.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        gate.open()

    asyncio.run(main())


def test_a_time_limit_ends_a_run_whose_tool_blocks() -> None:
    async def main() -> None:
        gate = Gate()
        with pytest.raises(LimitError):
            await AsyncRuntime(tools=[gate], limits=UsageLimits(seconds=0.05)).run(perform(CallTool("gate", {})))
        gate.open()

    asyncio.run(main())


def test_what_was_paid_is_written_before_a_cancelled_run_ends() -> None:
    written: list[Entry] = []

    async def main() -> None:
        gate = Gate()

        def sink(entry: Entry) -> None:
            gate.wait()
            written.append(entry)

        task = asyncio.create_task(AsyncRuntime(Echo()).run(ask("a"), Journal(sink=sink)))
        await gate.reached.wait()
        task.cancel()
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert len(written) == 1


def test_many_steps_share_a_few_threads() -> None:
    async def run() -> set[int]:
        return set(await asyncio.gather(*(finish_in_thread(threading.get_ident) for _ in range(100))))

    found = asyncio.run(run())

    assert len(found) <= MOST_STEP_THREADS
    assert threading.get_ident() not in found
