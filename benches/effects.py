"""What an effect costs on its way through a driver, without the work that answers it."""

import asyncio

from benches.measure import Subject, median, timed
from taiwa.kernel import AsyncRuntime, Limits, Program, Retrieve, Runtime, perform
from taiwa.kernel.values import Passage

EFFECTS = 5_000


class Nowhere:
    """A retriever that finds nothing, at once."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:  # noqa: ARG002  (a retriever's signature)
        return ()


def many() -> Program[int]:
    for _ in range(EFFECTS):
        yield from perform(Retrieve("x"))
    return EFFECTS


def main() -> None:
    subject = Subject("effects", "microseconds of CPU per effect: yield, record in the journal, handler, resume")
    limits = Limits(None, None)
    blocking = Runtime(retriever=Nowhere(), limits=limits)
    loop = AsyncRuntime(retriever=Nowhere(), limits=limits)
    sync = [timed(lambda: blocking.run(many())) / EFFECTS * 1e6 for _ in range(9)]
    later = [timed(lambda: asyncio.run(loop.run(many()))) / EFFECTS * 1e6 for _ in range(5)]
    subject.row("effect through the blocking driver", median(sync), "µs")
    subject.row("effect through the asynchronous driver (a task each)", median(later), "µs")
    subject.target("effect through the blocking driver", median(sync), 15, "µs")
    subject.write()
