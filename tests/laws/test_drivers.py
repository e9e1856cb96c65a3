"""A program means the same on every driver."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator

from hypothesis import given

from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.execution import Event, Journal
from taiwa.kernel.messages import Chunk, Request, StreamEnd, TextDelta
from taiwa.kernel.runtime import Runtime
from tests.laws.properties import USAGE, Oracle, ProgramRun, ProgramTerm, oracles, run_program, small_values, terms


class Speaking:
    """An oracle behind both faces of a model."""

    name = "oracle"
    capabilities = frozenset[str]()

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def stream(self, request: Request) -> Iterator[Chunk]:
        yield TextDelta(self.oracle.answer(request))
        yield StreamEnd(usage=USAGE, model="oracle")

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        for chunk in self.stream(request):
            await asyncio.sleep(0)
            yield chunk


def blocking(phrase: ProgramTerm, state: object, oracle: Oracle, observe: Callable[[Event], None]) -> ProgramRun:
    journal = Journal()
    try:
        return ProgramRun(Runtime(Speaking(oracle), observers=[observe], width=2).run(phrase(state), journal), None, ())  # type: ignore[arg-type]
    except TaiwaError as error:
        return ProgramRun(None, error, ())


def asynchronous(phrase: ProgramTerm, state: object, oracle: Oracle, observe: Callable[[Event], None]) -> ProgramRun:
    runtime = AsyncRuntime(Speaking(oracle), observers=[observe], width=2)  # type: ignore[arg-type]
    try:
        return ProgramRun(asyncio.run(runtime.run(phrase(state))), None, ())  # type: ignore[arg-type]
    except TaiwaError as error:
        return ProgramRun(None, error, ())


@given(terms, small_values, oracles(counting=False))
def test_both_drivers_come_to_what_the_law_suite_comes_to(
    phrase: ProgramTerm, state: object, oracle: Callable[[], Oracle]
) -> None:
    expected = run_program(phrase(state), oracle())  # type: ignore[arg-type]

    for drive in (blocking, asynchronous):
        told: list[Event] = []
        assert drive(phrase, state, oracle(), told.append).outcome == expected.outcome


def test_played_programs_with_equal_values_of_different_types_differ() -> None:
    outcomes = {ProgramRun(item, None, ()).outcome for item in (1, 1.0, True, "1")}

    assert len(outcomes) == 4
    assert json.dumps(1) != json.dumps(1.0)
