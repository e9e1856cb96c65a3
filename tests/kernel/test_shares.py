"""The work of one caller waits for no other: threads for steps, threads of a server, and processes have a share for each."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from taiwa import isolation
from taiwa.isolation import ProcessLimits, ProcessPool
from taiwa.kernel.async_runtime import finish_in_thread
from taiwa.kernel.serialization import Json
from taiwa.kernel.shares import WORK_OF, current_share
from taiwa.server.access import SharedThreads
from tests.server.serving import PatientModel, serving
from tests.server.test_callers import called

MANY = 60
GATES = (finish_in_thread, asyncio.to_thread)


async def as_caller(name: str, start: Callable[..., Any], call: Callable[[], Any]) -> Any:
    WORK_OF.set(name)
    return await start(call)


@pytest.mark.parametrize("start", GATES)
def test_the_blocked_threads_of_one_caller_are_not_those_of_another(start: Callable[..., Any]) -> None:
    gate = threading.Event()

    async def main() -> int:
        asyncio.get_running_loop().set_default_executor(SharedThreads())
        blocked = [asyncio.create_task(as_caller("ann", start, gate.wait)) for _ in range(MANY)]
        await asyncio.sleep(0)
        found = [await asyncio.create_task(as_caller(name, start, current_share)) for name in ("ben", "")]
        gate.set()
        await asyncio.gather(*blocked)
        assert found[0] != found[1] == 0
        return found[0]

    assert asyncio.run(main()) > 0


class Gated:
    """A process that answers when a gate is opened."""

    alive = True
    gate = threading.Event()
    asked = threading.Semaphore(0)

    def __init__(self, *_: object) -> None:
        pass

    def ask(self, question: dict[str, Json], _: ProcessLimits) -> dict[str, Json]:
        if question["waits"]:
            self.asked.release()
            self.gate.wait(300)
        return {}

    def end(self) -> None:
        pass


def test_the_questions_of_one_caller_leave_a_process_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "IsolatedProcess", Gated)
    pool = ProcessPool("", "", ProcessLimits())

    async def main() -> None:
        def ask(*, waits: bool) -> dict[str, Json]:
            return pool.ask({"waits": waits})

        blocked = [asyncio.create_task(as_caller("ann", finish_in_thread, lambda: ask(waits=True))) for _ in range(4)]
        await asyncio.to_thread(Gated.asked.acquire)
        assert await asyncio.create_task(as_caller("ben", finish_in_thread, lambda: ask(waits=False))) == {}
        Gated.gate.set()
        await asyncio.gather(*blocked)

    asyncio.run(main())


def test_a_request_is_the_work_of_its_caller() -> None:
    seen: list[str] = []

    def answer(_: object) -> str:
        seen.append(WORK_OF.get())
        return "Hello."

    with (
        serving(model=PatientModel((answer, answer), "scripted", frozenset(), 7, None)) as server,
        called(server, "ann") as ann,
    ):
        ann.post("/v1/chat/completions", json={"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]})
        server.chat("Hi")

    assert seen == ["ann", ""]
