"""Indexing as runs that are followed: one at a time for an index, and a few for the server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from functools import partial
from secrets import token_urlsafe
from typing import TYPE_CHECKING, TypeAlias

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.records import Json
from taiwa.operations.documents import IndexOptions, Reporter, index_folder, open_library
from taiwa.operations.result_json import refreshed_to_json, to_json
from taiwa.server.errors import INTERNAL, ApiError, api_error
from taiwa.settings import Settings

if TYPE_CHECKING:
    from taiwa.retrieval.ingest import Progress

logger = logging.getLogger("taiwa.server")
AT_ONCE = 2
"""Indexes that are read at the same time."""
MOST_KEPT = 64
"""Ended runs whose events can still be followed."""
STEPS = 100
"""Events of progress of a run at most."""
IndexEvent: TypeAlias = tuple[str, "Json | ApiError"]
"""The kind of an event and its data: `progress`, `warning`, `indexed`, `embeddings`, `error`."""


class _CancelledError(TaiwaError):
    """The run was cancelled between two files."""


class IndexRun:
    """The indexing of one index: its events from the first one."""

    def __init__(self, caller: str, index: str) -> None:
        self.id = token_urlsafe(12)
        self.caller = caller
        self.index = index
        self.events: list[IndexEvent] = []
        self.done = False
        self.cancelled = False
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[IndexEvent]:
        """Yield the events, those that exist and those that come."""
        at = 0
        while True:
            changed = self._changed
            while at < len(self.events):
                yield self.events[at]
                at += 1
            if self.done:
                return
            await changed.wait()

    def cancel(self) -> None:
        """Stop behind the file that is being read; the next run reads the rest."""
        self.cancelled = True

    def publish(self, kind: str, data: "Json | ApiError") -> None:
        """Add an event; for the event loop."""
        self.events.append((kind, data))
        self._wake()

    def end(self) -> None:
        """End the run; for the event loop."""
        self.done = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def reporter(self) -> Reporter:
        """Return where indexing in a thread reports to."""

        def said(text: str) -> None:
            self.report("warning", {"text": text})

        return Reporter(said, said, self._progress)

    def report(self, kind: str, data: "Json | ApiError") -> None:
        """Add an event; for any thread."""
        self._loop.call_soon_threadsafe(self.publish, kind, data)

    @contextmanager
    def _progress(self) -> "Generator[Progress]":
        last = -1

        def moved(done: int, whole: int, what: str) -> None:
            nonlocal last
            if self.cancelled:
                raise _CancelledError("the run was cancelled")
            if (step := done * STEPS // max(whole, 1)) != last:
                last = step
                self.report("progress", {"done": done, "of": whole, "path": what})

        yield moved


class Indexing:
    """The runs of a server that index."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs: dict[str, IndexRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    def find(self, name: str, caller: str) -> IndexRun | None:
        """Return a run of a caller; None where the caller has none of that name."""
        found = self._runs.get(name)
        return found if found is not None and found.caller == caller else None

    def of_index(self, index: str) -> IndexRun | None:
        """Return the run that reads an index now, or will."""
        return next((run for run in self._runs.values() if run.index == index and not run.done), None)

    def start(self, caller: str, index: str, root: str) -> IndexRun:
        """Begin to read what changed in the folder of an index."""
        run = IndexRun(caller, index)
        self._runs[run.id] = run
        for old in [each.id for each in self._runs.values() if each.done][:-MOST_KEPT]:
            del self._runs[old]
        task = asyncio.create_task(self._perform(run, root))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, run))
        return run

    def _end(self, run: IndexRun, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.error("indexing failed", exc_info=problem)
            run.publish("error", INTERNAL)
        run.end()

    async def _perform(self, run: IndexRun, root: str) -> None:
        try:
            async with self._locks.setdefault(run.index, asyncio.Lock()), self._room:
                await asyncio.to_thread(self._index, run, root)
        except _CancelledError:
            run.publish("warning", {"text": "stopped; the next run reads the rest"})
        except TaiwaError as error:
            run.publish("error", api_error(error))

    def _index(self, run: IndexRun, root: str) -> None:
        with open_library(self._settings) as library:
            for step in index_folder(library, self._settings, IndexOptions(root), run.reporter()):
                if isinstance(step, tuple):
                    run.report("indexed", without_folder(refreshed_to_json(*step)))
                elif step is not None:
                    run.report("embeddings", to_json(step))

    async def stop(self) -> None:
        """End all runs behind the files that they read; the rest is read by the next one."""
        for run in self._runs.values():
            run.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def without_folder(data: dict[str, Json]) -> dict[str, Json]:
    """Return a summary of an index without the folder of the server."""
    return {name: each for name, each in data.items() if name != "folder"}
