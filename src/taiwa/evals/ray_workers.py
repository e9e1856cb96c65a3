"""Ray workers: the same jobs on a cluster, or in several processes of this machine. Needs the extra `ray`.

A worker is an actor with an event loop and several jobs under way. It receives jobs and returns plain JSON; only the
process that started the evaluation writes rows, so no row is written twice. Ray restarts a worker that dies, and its jobs
are sent again.
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

from taiwa.evals.run import Job, Measurement, Task, Worker
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, restore_error
from taiwa.kernel.records import Json, record, restore
from taiwa.kernel.usage_limits import RunUsage, UsageLimits

MAX_TRIES = 5
RESTART_PAUSE_S = 0.2
OBJECT_STORE_BYTES = 128 * 2**20
MAX_WORKERS = 256
MAX_FOLDER_LENGTH = 24
RAY_ENVIRONMENT = dict.fromkeys(
    ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_UV_RUN_RUNTIME_ENV", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"), "0"
)
"""No usage reports, no guess at how this program was started, no accelerator hidden from a worker."""


class LostWorkerError(TaiwaError):
    """The worker that had a job died repeatedly."""

    tag = "lost-worker"


@dataclass(frozen=True, slots=True)
class RayAddress:
    """The address of a cluster, or a number of worker processes on this machine."""

    address: str = ""
    workers: int = 0


def parse_ray_address(text: str) -> RayAddress:
    """Parse `local`, `local:N` or `ray://HOST:PORT`.

    >>> parse_ray_address("local:2")
    RayAddress(address='', workers=2)

    Raises:
        InputError: the text has another form.
    """
    word, _, count = text.partition(":")
    if word == "local" and (not count or (count.isascii() and count.isdecimal())):
        workers = int(count[:6]) if count else max(os.cpu_count() or 1, 1)
        if 1 <= workers <= MAX_WORKERS:
            return RayAddress(workers=workers)
    elif text.startswith("ray://") and len(text) > len("ray://") and text.isprintable() and " " not in text:
        return RayAddress(text)
    raise InputError(
        f"invalid Ray address {text!r}; use local, local:N with N from 1 to {MAX_WORKERS}, or ray://HOST:10001"
    )


@asynccontextmanager
async def start_workers(task: Task, width: int, address: RayAddress) -> AsyncGenerator[Worker]:
    """Start workers for `width` jobs at a time, and yield the function that sends a job to one of them.

    Raises:
        ConfigError: Ray is not installed, or the cluster cannot be reached.
    """
    with (
        _private_environment(address),
        _ray_folder() as folder,
        redirect_stdout(cast("io.StringIO", _WithoutRayOutput(sys.stdout))),
    ):
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise ConfigError("--ray requires Ray; install it with: pip install 'taiwa[ray]'") from None
        try:
            await asyncio.to_thread(_connect, ray, address, folder)
            yield _WorkerPool(ray, task, _count(ray, address, width), width).perform
        finally:
            await asyncio.to_thread(ray.shutdown)


@contextmanager
def _ray_folder() -> Generator[str]:
    """Yield a temporary folder for logs and sockets of Ray; '' for Ray's default.

    A socket path has at most 107 characters.
    """
    if len(gettempdir()) > MAX_FOLDER_LENGTH:
        yield ""
        return
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield folder


class _WithoutRayOutput:
    """Standard output without the lines that Ray's threads print when a worker dies; it carries JSON."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, unless a thread of Ray does."""
        return len(text) if threading.current_thread().name.startswith("ray_") else self._stream.write(text)


@contextmanager
def _private_environment(address: RayAddress) -> Generator[None]:
    """Set an authentication token for local workers, in the environment only, so that no other user can submit work.

    Ray reads these variables when it is imported.
    """
    mine = {} if address.address else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}
    before = {name: os.environ[name] for name in mine if name in os.environ}
    os.environ.update(mine)
    for name, text in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, text)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]
        os.environ.update(before)


@cache
def _token() -> str:
    """Return one token per process: Ray keeps the first it sees."""
    return secrets.token_hex(32)


def _connect(ray: Any, address: RayAddress, folder: str) -> None:  # noqa: ANN401  (Ray is an extra: its types may not be here)
    # "local" overrides RAY_ADDRESS.
    options: dict[str, Any] = {"address": address.address} if address.address else {
        "address": "local", "num_cpus": address.workers, "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES, "_temp_dir": folder or None,
    }  # fmt: skip
    try:
        with warnings.catch_warnings(action="ignore"):  # failures are raised below
            ray.init(log_to_driver=False, logging_level="CRITICAL", **options)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise ConfigError(f"Ray at {address.address or 'this machine'} does not answer: {words}") from None


def _count(ray: Any, address: RayAddress, width: int) -> int:  # noqa: ANN401  (Ray is an extra: its types may not be here)
    if not address.address:
        return min(address.workers, width)
    processors = cast("Mapping[str, float]", ray.cluster_resources()).get("CPU", 1.0)
    return max(1, min(int(processors), width, MAX_WORKERS))


@dataclass
class _ActorSlot:
    """One actor and its number of jobs."""

    actor: Any
    busy: int = 0


@dataclass
class _WorkerPool:
    """The workers of a run; a job goes to the one with the fewest jobs."""

    ray: Any
    task: Task
    count: int
    width: int
    workers: Sequence[_ActorSlot] = field(init=False)
    _sent: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        most = -(-self.width // self.count)
        actor = self.ray.remote(max_restarts=-1, max_task_retries=0, max_concurrency=most, num_cpus=1)(RayActor)
        # Kept here: a worker that is started again must find it, however large it is.
        self._sent = self.ray.put(self.task)
        self.workers = [_ActorSlot(actor.remote(self._sent)) for _ in range(self.count)]

    async def perform(self, job: Job, limits: UsageLimits) -> Measurement:
        """Send a job to a worker; retry at most `MAX_TRIES` times if workers die, on another one if there is one."""
        lost, why, died = self.ray.exceptions.RayActorError, "", None
        for tries in range(MAX_TRIES):
            worker = min(self.workers, key=lambda one: (one is died, one.busy))
            worker.busy += 1
            try:
                answer = await asyncio.wrap_future(worker.actor.measure.remote(record(job), record(limits)).future())
            except lost as error:
                why, died = " ".join(str(error).split())[:300], worker
                await asyncio.sleep(RESTART_PAUSE_S * 2**tries)  # Ray is restarting it
                continue
            except ConnectionError as error:
                raise ConfigError(f"lost the connection to Ray: {' '.join(str(error).split())[:300]}") from None
            finally:
                worker.busy -= 1
            return _read_measurement(cast("dict[str, Json]", answer))
        raise LostWorkerError(f"{MAX_TRIES} workers died on this item: {why}")


class RayActor:
    """The actor on a worker."""

    def __init__(self, task: Task) -> None:
        self._task = task

    async def measure(self, job: Json, limits: Json) -> dict[str, Json]:
        """Measure one job; return an error as JSON."""
        try:
            done = await self._task.measure(restore(job), restore(limits))
        except TaiwaError as error:
            return {"error": cast("Json", error.record()), "spent": record(error.spent or RunUsage())}
        return {"found": dict(done.found), "spent": record(done.spent)}


def _read_measurement(answer: dict[str, Json]) -> Measurement:
    spent = restore(answer["spent"])
    error = answer.get("error")
    if error is not None:
        raised = restore_error(cast("dict[str, Any]", error))
        raised.spent = spent
        raise raised
    return Measurement(cast("dict[str, Json]", answer["found"]), spent)
