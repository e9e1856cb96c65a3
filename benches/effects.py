"""The overhead of an effect in a runtime, excluding the work of its handler, beside plain code."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator

from benches.measure import Subject, timed
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Complete, Program, Retrieve, gather, notify, perform
from taiwa.kernel.messages import Chunk, Found, Passage, Request, StreamEnd, TextDelta, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits

EFFECTS = 5_000
ROUNDS = 15
LIMITS = UsageLimits(requests=None, tool_calls=None)
REQUEST = Request((user("x"),))


class Nowhere:
    """A retriever that returns no passages, without delay."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:  # noqa: ARG002  (a retriever's signature)
        return ()


class Yes:
    """A model that returns one word, without delay."""

    name = "yes"
    capabilities = frozenset[str]()

    def stream(self, request: Request) -> Iterator[Chunk]:  # noqa: ARG002  (a model's signature)
        yield TextDelta("yes")
        yield StreamEnd()

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:  # noqa: ARG002  (a model's signature)
        yield TextDelta("yes")
        yield StreamEnd()


def many() -> Program[int]:
    for _ in range(EFFECTS):
        yield from perform(Retrieve("x"))
    return EFFECTS


def many_calls() -> Program[int]:
    for _ in range(EFFECTS):
        yield from perform(Complete(REQUEST))
    return EFFECTS


def many_notes() -> Program[int]:
    for _ in range(EFFECTS):
        yield from notify("x")
    return EFFECTS


def many_at_once() -> Program[int]:
    for _ in range(EFFECTS // 10):
        yield from gather([perform(Retrieve("x")) for _ in range(10)])
    return EFFECTS


def generator() -> Generator[Retrieve, Found, int]:
    for _ in range(EFFECTS):
        yield Retrieve("x")
    return EFFECTS


def by_hand() -> None:
    """Run a loop without journal, limits and errors."""
    nowhere, program = Nowhere(), generator()
    try:
        wish = next(program)
        while True:
            wish = program.send(Found(nowhere.find(wish.query, wish.k)))
    except StopIteration:
        return


async def tasks() -> None:
    """Run as many empty tasks on an event loop."""

    async def nothing() -> tuple[Passage, ...]:
        return ()

    for _ in range(EFFECTS):
        await asyncio.create_task(nothing())


def main() -> None:
    subject = Subject("effects", "microseconds of CPU per effect: yield, limits, journal, handler, resume")
    blocking = Runtime(Yes(), retriever=Nowhere(), limits=LIMITS)
    loop = AsyncRuntime(Yes(), retriever=Nowhere(), limits=LIMITS)
    acts = {
        "a plain generator loop, without limits and journal": by_hand,
        "an effect through the blocking runtime": lambda: blocking.run(many()),
        "a notice through the blocking runtime": lambda: blocking.run(many_notes()),
        "a model call of one word through the blocking runtime": lambda: blocking.run(many_calls()),
        "an empty task of asyncio": lambda: asyncio.run(tasks()),
        "an effect through the asyncio runtime": lambda: asyncio.run(loop.run(many())),
        "a model call of one word through the asyncio runtime": lambda: asyncio.run(loop.run(many_calls())),
        "an effect of ten in parallel, asyncio": lambda: asyncio.run(loop.run(many_at_once())),
    }
    times: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(ROUNDS):
        for name, act in acts.items():
            times[name].append(timed(act) / EFFECTS * 1e6)
    at = {name: subject.median(name, each, "µs") for name, each in times.items()}
    subject.target("effect through the blocking runtime", at["an effect through the blocking runtime"], 15, "µs")
    subject.write()
