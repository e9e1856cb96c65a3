"""Several servers on one store: each stores the events of its runs, follows and ends those of the others, and takes over those of
a terminated server.

Events are stored in batches: those that arrive while a batch is written form the next one. Other servers poll for them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from taiwa.kernel.errors import ConfigError, StoreError
from taiwa.kernel.serialization import Json, record, restore
from taiwa.server.access import Repositories
from taiwa.server.http_responses import SERVER, ApiError
from taiwa.server.runs import RunEvent, Take
from taiwa.sessions.commit_turn import TurnResult, turn_from_json, turn_to_json
from taiwa.store.server_records import SharedRun, SharedRuns

logger = logging.getLogger("taiwa.server")
POLL = 0.1
"""Seconds between two polls of the other servers' changes."""
LOOKS = 10
"""Every this many polls, one also looks for the runs of terminated servers."""
CONNECTIONS = 8
"""Connections of a server to its database."""
LOST = ApiError(503, "the server that wrote this is gone; the turn can be resumed", SERVER, "stopping", retry_after=1)


class Followable(Protocol):
    """A run with its events from the first one."""

    def follow(self, *, take: Take | None = None) -> AsyncIterator[RunEvent]:
        """Yield the events; `take` may receive them earlier, as in `LiveRun.follow`."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run of another server, followed and ended through the store."""

    id: str
    caller: str
    session: str
    ended: bool
    shared: SharedRuns

    async def follow(self, *, take: Take | None = None) -> AsyncIterator[RunEvent]:
        """Yield the events from the first one by polling, so `take` receives none. If another server takes the run over, continue
        after the events already read.
        """
        del take
        start = 0
        while True:
            run, events = await asyncio.to_thread(self._read, start)
            for each in events:
                yield event_from_json(each)
            start += len(events)
            if run is None or run.ended:
                return
            if not events:
                await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """Ask the other server to end the run."""
        await asyncio.to_thread(self.shared.stop, self.id)

    def _read(self, start: int) -> tuple[SharedRun | None, list[Json]]:
        run = self.shared.find(self.id)  # before its events: nothing follows the end of a run
        return run, [] if run is None else self.shared.events(run, start)


class Sharing:
    """The part of a server that is shared through its store; inactive if the store is a file, which has one server."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._store = repositories.of("").store
        self.has_others = self._store.shared_runs.is_shared
        self._stops: dict[tuple[str, str], Callable[[], None]] = {}
        self._writers: set[asyncio.Task[None]] = set()
        self._watcher: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Register this server.

        Raises:
            ConfigError: the store is a file that another process serves.
        """
        if self.has_others:
            self._store.allow_connections(CONNECTIONS)
        if self._store.shared_runs.serve() is not None and not self.has_others:
            raise ConfigError(
                f"another `taiwa serve` uses the store {self._store.path}; stop it, choose another file with --store, "
                "or use a PostgreSQL database, which several servers share"
            )

    def watch(self, take_over: Callable[[], Awaitable[None]]) -> None:
        """Start to poll for runs to end here, and for runs of terminated servers."""
        if self.has_others:
            self._watcher = asyncio.create_task(self._watch(take_over))

    async def share(self, caller: str, name: str, session: str, run: Followable, stop: Callable[[], None]) -> None:
        """Make a run available to other servers, which may end it by `stop`."""
        if self.has_others:
            await asyncio.to_thread(self._of(caller).begin, name, session)
            self.share_begun(caller, name, run, stop)

    def share_begun(
        self, caller: str, name: str, run: Followable, stop: Callable[[], None],
        *, is_left: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """As `share`, for a run that the store already has. If it `is_left` at its end, another server takes it over."""
        if self.has_others:
            self._stops[caller, name] = stop
            task = asyncio.create_task(self._write(caller, name, run, is_left))
            self._writers.add(task)
            task.add_done_callback(self._writers.discard)

    async def find(self, name: str, caller: str) -> RemoteRun | None:
        """Return a run of another server."""
        shared = self._of(caller)
        found = await asyncio.to_thread(shared.find, name) if self.has_others else None
        return None if found is None else RemoteRun(name, caller, found.session, found.ended, shared)

    def of_session(self, session: str, caller: str) -> RemoteRun | None:
        """Return the active run of a session on another server; this may block."""
        shared = self._of(caller)
        found = shared.of_session(session) if self.has_others else None
        return None if found is None else RemoteRun(found.id, caller, session, found.ended, shared)

    async def take_over(self, is_mine: Callable[[str], bool]) -> list[SharedRun]:
        """Take over and return the runs of terminated servers."""

        def claim() -> list[SharedRun]:
            shared = self._store.shared_runs
            return [run for run in shared.lost() if is_mine(run.id) and shared.claim(run)]

        return await asyncio.to_thread(claim) if self.has_others else []

    async def end_lost(self, run: SharedRun) -> None:
        """End a run that was taken over and cannot continue."""

        def end() -> None:
            shared = self._of(run.owner)
            shared.append(run.id, 0, [event_to_json(RunEvent(0, LOST))])
            shared.end(run.id)

        await asyncio.to_thread(end)

    async def close(self) -> None:
        """Write the remaining events and unregister this server."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait((self._watcher,))
        if self._writers:
            await asyncio.wait(self._writers, timeout=5)
        await asyncio.to_thread(self.leave)

    def leave(self) -> None:
        """Unregister this server."""
        with suppress(StoreError):
            self._store.shared_runs.leave()

    def _of(self, caller: str) -> SharedRuns:
        return self._repositories.of(caller).store.shared_runs

    async def _write(self, caller: str, name: str, run: Followable, is_left: Callable[[], bool]) -> None:
        shared, waiting, more, start = self._of(caller), list[Json](), asyncio.Event(), 0

        async def gather() -> None:
            async for each in run.follow():
                waiting.append(event_to_json(each))
                more.set()

        # Apart from the writing: a slow store must not hold the events of the run back, and gets more of them at a time.
        gathering = asyncio.create_task(gather())
        gathering.add_done_callback(lambda _: more.set())
        try:
            while waiting or not gathering.done():
                await more.wait()
                more.clear()
                portion = waiting[:]
                if not portion:
                    continue
                try:
                    await asyncio.to_thread(shared.append, name, start, portion)
                except StoreError as error:
                    logger.warning("the events of a run could not be written: %s", error.message)
                    await asyncio.sleep(1)
                    more.set()
                    continue
                del waiting[: len(portion)]
                start += len(portion)
            with suppress(StoreError):
                await asyncio.to_thread(shared.release if is_left() else shared.end, name)
        finally:
            gathering.cancel()
            self._stops.pop((caller, name), None)

    async def _watch(self, take_over: Callable[[], Awaitable[None]]) -> None:
        looks = 0
        while True:
            await asyncio.sleep(POLL)
            looks += 1
            try:
                if self._stops:
                    for run in await asyncio.to_thread(self._store.shared_runs.stopped):
                        self._stops.get((run.owner, run.id), lambda: None)()
                if looks % LOOKS == 0:
                    await take_over()
            except StoreError as error:  # the task goes on: the database may be back at the next look
                logger.warning("the store cannot be asked for other servers: %s", error.message)


def event_to_json(each: RunEvent) -> Json:
    """Serialise an event of a run for another server."""
    event = each.event
    if isinstance(event, ApiError):
        return {"index": each.index, "error": asdict(event)}
    if isinstance(event, TurnResult):
        return {"index": each.index, "turn": turn_to_json(event)}
    return {"index": each.index, "event": record(event)}


def event_from_json(data: Json) -> RunEvent:
    """Read an event of another server."""
    read = cast("Mapping[str, Any]", data)
    index = read["index"]
    if "error" in read:
        return RunEvent(index, ApiError(**read["error"]))
    if "turn" in read:
        return RunEvent(index, turn_from_json(read["turn"]))
    return RunEvent(index, restore(read["event"]))
