"""Measuring on Ray: the same jobs on many machines, or on some processes of this one. Needs the extra `ray`.

Workers are actors, each an event loop of its own with several jobs under way. They are sent jobs and send back plain
JSON; rows are written by the one program that asked for them, so none can be there twice. A worker that dies is started
again by Ray, and what it had under way is given out anew.
"""

import asyncio
import io
import os
import secrets
import sys
import threading
import warnings
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TextIO, cast

from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, revive_error
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.records import Json, record, revive
from taiwa.lab.evaluation.running import Job, Measured, Perform, Work

__all__ = ["LostWorkerError", "Place", "on_ray", "read_place"]

TRIES = 5
PAUSE = 0.2
OBJECT_STORE_BYTES = 128 * 2**20
MOST_WORKERS = 256
LONGEST_FOLDER = 24
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""No report to anybody, no guess at how this program was started, no accelerator hidden from a worker."""


class LostWorkerError(TaiwaError, tag="lost-worker"):
    """The worker that had a job died, again and again."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster by its address, or `workers` processes of this machine."""

    address: str = ""
    workers: int = 0


def read_place(text: str) -> Place:
    """Read `local`, `local:N` or `ray://HOST:PORT`.

    >>> read_place("local:2")
    Place(address='', workers=2)

    Raises:
        InputError: it is none of these.
    """
    word, _, count = text.partition(":")
    if word == "local" and (not count or (count.isascii() and count.isdecimal())):
        workers = int(count[:6]) if count else max(os.cpu_count() or 1, 1)
        if 1 <= workers <= MOST_WORKERS:
            return Place(workers=workers)
    elif text.startswith("ray://") and len(text) > len("ray://") and text.isprintable() and " " not in text:
        return Place(text)
    raise InputError(f"{text!r} is no place: say local, local:N with N from 1 to {MOST_WORKERS}, or ray://HOST:10001")


@asynccontextmanager
async def on_ray(work: Work, place: Place, width: int) -> AsyncGenerator[Perform]:
    """Start workers, and give what has a job done by one of them; `width` jobs are under way in all.

    Raises:
        ConfigError: Ray is not installed, or the cluster cannot be reached.
    """
    with _private(place), _folder() as folder, redirect_stdout(cast("io.StringIO", _Output(sys.stdout))):
        ray = _ray()
        try:
            await asyncio.to_thread(_connect, ray, place, folder)
            yield _Crew(ray, work, _count(ray, place, width), width).perform
        finally:
            await asyncio.to_thread(ray.shutdown)


@contextmanager
def _folder() -> Generator[str]:
    """A folder for the logs and sockets of Ray that is gone afterwards; '' for Ray's own choice.

    The whole name of a socket has 107 characters at most.
    """
    if len(gettempdir()) > LONGEST_FOLDER:
        yield ""
        return
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield folder


class _Output:
    """Standard output without what a thread of Ray prints there when a worker dies; programs read JSON from it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write what is not Ray's."""
        return len(text) if threading.current_thread().name.startswith("ray_") else self._stream.write(text)


@contextmanager
def _private(place: Place) -> Generator[None]:
    """Give processes of this machine a token of their own: no stranger here gives them work, and no disk keeps it.

    Ray reads these variables when it is imported.
    """
    mine = {} if place.address else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}
    before = {name: os.environ[name] for name in mine if name in os.environ}
    os.environ.update(mine)
    for name, text in QUIET.items():
        os.environ.setdefault(name, text)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]
        os.environ.update(before)


@cache
def _token() -> str:
    """One for the life of this process: Ray remembers the first it sees."""
    return secrets.token_hex(32)


def _ray() -> Any:  # noqa: ANN401  (Ray is an extra: its types may not be here)
    try:
        return import_module("ray")
    except ImportError:
        raise ConfigError("--on needs Ray: pip install 'taiwa[ray]'") from None


def _connect(ray: Any, place: Place, folder: str) -> None:  # noqa: ANN401  (the same)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}
    if not place.address:
        # The address "local" says: not the cluster that RAY_ADDRESS may name.
        quiet |= {
            "address": "local", "num_cpus": place.workers, "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES, "_temp_dir": folder or None,
        }  # fmt: skip
    else:
        quiet |= {"address": place.address}
    try:
        with warnings.catch_warnings(action="ignore"):  # what is wrong is an error below
            ray.init(**quiet)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise ConfigError(f"Ray at {place.address or 'this machine'} does not answer: {words}") from None


def _count(ray: Any, place: Place, width: int) -> int:  # noqa: ANN401  (the same)
    if not place.address:
        return min(place.workers, width)
    processors = cast("Mapping[str, float]", ray.cluster_resources()).get("CPU", 1.0)
    return max(1, min(int(processors), width, MOST_WORKERS))


@dataclass
class _Worker:
    """One actor, and how many jobs it has."""

    actor: Any
    busy: int = 0


@dataclass
class _Crew:
    """The workers of a run; a job goes to one that has the fewest."""

    ray: Any
    work: Work
    count: int
    width: int
    workers: Sequence[_Worker] = field(init=False)
    _sent: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        most = -(-self.width // self.count)
        actor = self.ray.remote(max_restarts=-1, max_task_retries=0, max_concurrency=most, num_cpus=1)(Hand)
        self._sent = self.ray.put(
            self.work
        )  # held here: a worker that is started again must find it, however large it is
        self.workers = [_Worker(actor.remote(self._sent)) for _ in range(self.count)]

    async def perform(self, job: Job, limits: Limits) -> Measured:
        """Have a job done; a worker that dies of it is not asked for ever."""
        lost, why = self.ray.exceptions.RayActorError, ""
        for _ in range(TRIES):
            worker = min(self.workers, key=lambda one: one.busy)
            worker.busy += 1
            try:
                told = await asyncio.wrap_future(worker.actor.measure.remote(record(job), record(limits)).future())
            except lost as error:
                why = " ".join(str(error).split())[:300]
                await asyncio.sleep(PAUSE)  # it is being started again
                continue
            except ConnectionError as error:
                raise ConfigError(f"the connection to Ray is lost: {' '.join(str(error).split())[:300]}") from None
            finally:
                worker.busy -= 1
            return _heard(cast("dict[str, Json]", told))
        raise LostWorkerError(f"{TRIES} workers died while they had this item: {why}")


class Hand:
    """What runs on a worker."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def measure(self, job: Json, limits: Json) -> dict[str, Json]:
        """Measure one job; an error is an answer, too."""
        try:
            done = await self._work.measure(revive(job), revive(limits))
        except TaiwaError as error:
            return {"error": cast("Json", error.record()), "spent": record(error.spent or Spent())}
        return {"found": dict(done.found), "spent": record(done.spent)}


def _heard(told: dict[str, Json]) -> Measured:
    spent = revive(told["spent"])
    error = told.get("error")
    if error is not None:
        raised = revive_error(cast("dict[str, Any]", error))
        raised.spent = spent
        raise raised
    return Measured(cast("dict[str, Json]", told["found"]), spent)
