"""An evaluation from plan to rows: every item under every setting once, several at a time, resumable, within a cost limit.

What is evaluated is a `Task`. A `Worker` performs one measurement, in this process or on Ray; it does not handle files,
limits or progress. A failed measurement is a row, and the run continues.

The file of the rows and their header is JSON lines, append-only, the source of every table. A process may be killed between any
two bytes: an incomplete last line is cut off before the next one is written. A later row of the same setting and item
replaces an earlier, failed one.
"""

import asyncio
import io
import json
import os
import secrets
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    aclosing,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    redirect_stdout,
)
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Protocol, Self, TextIO, TypeAlias, cast

from taiwa.conversation.app import App
from taiwa.evals.data import DataSet, Item
from taiwa.extras import missing_extra, require_posix
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.errors import ConfigError, InputError, LimitError, TaiwaError, UnsupportedError, restore_error
from taiwa.kernel.messages import Usage
from taiwa.kernel.runtime import AnyModel, Retriever, Tool
from taiwa.kernel.serialization import Json, record, restore, value
from taiwa.kernel.usage_limits import Billing, RunUsage, UsageLimits, check_cost, usage_of
from taiwa.models.scripted import ScriptedModel
from taiwa.operations.result_json import cost_of
from taiwa.sessions.batch import is_fatal
from taiwa.sessions.commit_turn import PricedModel
from taiwa.sessions.session import open_priced_model
from taiwa.settings import Settings

if sys.platform != "win32":
    import fcntl

FORMAT_VERSION = "1"
"""Rows of unreleased versions have format 1, and other error names."""
MUST_MATCH = ("evaluation", "data_hash", "model", "options")
"""Header fields that must be equal for two runs to share a file."""


@value(tag="row-error")
class RowError:
    """Why a measurement failed: name and code of the error, and its message."""

    code: str
    message: str


@value(tag="eval-row")
class EvalRow:
    """One item under one setting: the measured fields or the error, and the usage in either case."""

    setting: str
    id: str
    kind: str = ""
    found: Mapping[str, Json] = field(default_factory=dict[str, Json])
    spent: RunUsage = RunUsage()
    error: RowError | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key by which a row is unique."""
        return self.setting, self.id


@value(tag="eval-header")
class Header:
    """What was evaluated, by which program, and when (ISO 8601, UTC); `options` is everything else that rows depend on."""

    evaluation: str
    data: str
    data_hash: str
    model: str
    date: str
    program: str
    settings: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    scripted: bool = False

    def differs(self, other: "Header") -> str:
        """Return the name of the first field that separates the rows of two headers, or ''."""
        return next((name for name in MUST_MATCH if getattr(self, name) != getattr(other, name)), "")


def row_error(error: TaiwaError) -> RowError:
    """Return an error as the error of a row."""
    code = getattr(error, "code", "")
    return RowError(f"{error.tag}{f'/{code}' if code else ''}", error.message)


def to_json(what: Header | EvalRow) -> dict[str, Json]:
    """Return a header or a row as a JSON object."""
    if isinstance(what, Header):
        return {
            "format": FORMAT_VERSION, "evaluation": what.evaluation, "model": what.model, "scripted": what.scripted,
            "data": what.data, "data_hash": what.data_hash, "date": what.date, "program": what.program,
            "settings": list(what.settings), "options": dict(what.options),
        }  # fmt: skip
    spent = what.spent
    return {
        "setting": what.setting, "id": what.id, "kind": what.kind, "found": dict(what.found),
        "requests": spent.requests, "tool_calls": spent.tool_calls, "calls_without_usage": spent.calls_without_usage,
        "usage": asdict(spent.usage), "usage_estimated": asdict(spent.estimated),
        "cost": cost_of(spent.cost), "max_cost": cost_of(spent.max_cost), "ms": round(spent.seconds * 1000, 3),
        "error": None if what.error is None else {"code": what.error.code, "message": what.error.message},
    }  # fmt: skip


def read_header(line: Mapping[str, Json]) -> Header:
    """Read a header.

    Raises:
        ValueError: the line is not a header, or has an unsupported format.
    """
    if line.get("format") != FORMAT_VERSION:
        raise ValueError(f"unsupported format {line.get('format')!r}; this version reads {FORMAT_VERSION}")
    words = {name: str(line[name]) for name in ("evaluation", "data", "data_hash", "model", "date", "program")}
    settings, options = cast("list[str]", line["settings"]), cast("dict[str, Json]", line["options"])
    return Header(**words, settings=tuple(settings), options=options, scripted=line.get("scripted") is True)


def read_row(line: Mapping[str, Json]) -> EvalRow:
    """Read a row.

    Raises:
        ValueError, KeyError, TypeError: the line is not a row.
    """
    error = cast("dict[str, str] | None", line["error"])
    usage, estimated = (Usage(**cast("dict[str, int]", line[name])) for name in ("usage", "usage_estimated"))
    requests, tool_calls, without_usage = (
        cast("int", line[name]) for name in ("requests", "tool_calls", "calls_without_usage")
    )
    spent = RunUsage(
        requests, tool_calls, usage, without_usage, _to_nano(line["cost"]), cast("float", line["ms"]) / 1000, estimated,
        _to_nano(line["max_cost"]),
    )  # fmt: skip
    return EvalRow(
        str(line["setting"]), str(line["id"]), str(line["kind"]), cast("dict[str, Json]", line["found"]), spent,
        None if error is None else RowError(error["code"], error["message"]),
    )  # fmt: skip


def _to_nano(cost: Json) -> int | None:
    return None if cost is None else round(cast("float", cost) * 1e9)


MAX_TEXT_IN_MEMORY = 200


class Rows:
    """The rows of an evaluation in memory: `rows` by setting and item, and one of `headers` for each run.

    `paid` are rows that were replaced; only their usage counts.
    """

    def __init__(self) -> None:
        self.headers: list[Header] = []
        self.rows: dict[tuple[str, str], EvalRow] = {}
        self.paid: list[EvalRow] = []

    def add(self, what: Header | EvalRow) -> None:
        """Append a header or a row."""
        if isinstance(what, Header):
            self.headers.append(what)
            return
        if what.key in self.rows:
            self.paid.append(self.rows[what.key])
        self.rows[what.key] = what

    def close(self) -> None:
        """Close the file, where there is one."""

    def finished(self) -> frozenset[tuple[str, str]]:
        """Return the keys of rows without an error."""
        return frozenset(key for key, row in self.rows.items() if row.error is None)


class RowFile(Rows):
    """A file of rows, locked by one process at a time. Long texts are not kept in memory."""

    def __init__(self, path: Path) -> None:
        """Open, lock and read the file, and cut off an incomplete last line.

        Raises:
            InputError: the file cannot be opened, is in use, or is not a file of rows.
        """
        super().__init__()
        require_posix("an evaluation")
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        with ExitStack() as stack:
            stack.callback(self._stream.close)
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{path} is being written by another evaluation") from None
            self._read()
            stack.pop_all()

    def close(self) -> None:
        """Close and unlock the file."""
        self._stream.close()

    def add(self, what: Header | EvalRow) -> None:
        """Append a header or a row to the file.

        Raises:
            InputError: the file cannot be written.
        """
        line = json.dumps(to_json(what), ensure_ascii=False, allow_nan=False)
        self._write(f"{line}\n".encode("utf-8", errors="backslashreplace"))
        # Kept as it will be read from the file, so that a later report of the rows has the same figures.
        super().add(_without_long_texts(self._value(0, json.loads(line))))

    def _write(self, raw: bytes) -> None:
        try:
            while raw:
                raw = raw[self._stream.write(raw) :]
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from None

    def _read(self) -> None:
        complete, torn, raw = 0, False, b"\n"
        with self.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if torn:
                    raise InputError(f"{self.path}:{number - 1}: not JSON")
                try:
                    line: object = json.loads(raw)
                except (ValueError, RecursionError):
                    torn = True  # allowed as the last line: its writer was killed
                    continue
                super().add(_without_long_texts(self._value(number, line)))
                complete += len(raw)
        if torn:
            self._stream.truncate(complete)
        elif not raw.endswith(b"\n"):
            self._write(b"\n")

    def _value(self, number: int, line: object) -> Header | EvalRow:
        try:
            row = cast("Mapping[str, Json]", line)
            return read_header(row) if "format" in row else read_row(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{self.path}:{number}: not a row of an evaluation ({error})") from None


def _without_long_texts(what: Header | EvalRow) -> Header | EvalRow:
    if isinstance(what, Header):
        return what
    long = {name for name, part in what.found.items() if isinstance(part, str) and len(part) > MAX_TEXT_IN_MEMORY}
    return replace(what, found={name: part for name, part in what.found.items() if name not in long}) if long else what


ROWS_FILE = "rows.jsonl"
MAX_UNANSWERED = 10
UNANSWERED_ERRORS = frozenset({"overloaded", "timeout", "rate-limit", "lost-worker"})
"""Errors of a server that is down, or of workers that cannot start; `MAX_UNANSWERED` such consecutive rows end a run."""
SOURCE = Path(__file__).parent
GIT_TIMEOUT_S = 10


class UnansweredError(TaiwaError):
    """The server failed to answer `MAX_UNANSWERED` consecutive rows."""

    tag = "unanswered"


@value(tag="eval-job")
class Job:
    """One item under one setting."""

    setting: str
    item: Item


@value(tag="measurement")
class Measurement:
    """The fields measured for one item, as defined by its task, and the usage."""

    found: Mapping[str, Json]
    spent: RunUsage = RunUsage()


class Task(Protocol):
    """What is evaluated: names, settings in the order of the table, and the measurement of one item."""

    @property
    def name(self) -> str:
        """The name of the evaluation on the command line."""

    @property
    def model(self) -> str:
        """The name of the model; '' without a model."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings."""

    @property
    def scripted(self) -> bool:
        """Whether the model is scripted; reports then contain no figures."""

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a measurement depends on besides setting, item and model."""

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Measure an item under a setting.

        Raises:
            TaiwaError: the measurement failed; `spent` holds the usage.
        """


Worker: TypeAlias = Callable[[Job, UsageLimits], Awaitable[Measurement]]
"""Performs one measurement."""
StartWorkers: TypeAlias = Callable[[Task, int], AbstractAsyncContextManager[Worker]]
"""Starts workers elsewhere for a number of jobs at a time, and stops them at the end of the context."""


@dataclass(kw_only=True)
class ModelTask:
    """Base of tasks with a model: `given_model`, or the one that the settings name, opened at first use."""

    model_settings: Settings | None = None
    given_model: AnyModel | None = None
    _opened: PricedModel | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Leave out the open connection; a worker opens its own."""
        return {**self.__dict__, "_opened": None}

    def open(self, app: App | None = None) -> PricedModel | None:
        """Return the model with its prices, configured by `app`; None without a model."""
        if self._opened is None and self.given_model is not None:
            self._opened = PricedModel(self.given_model)
        elif self._opened is None and self.model_settings is not None:
            self._opened = open_priced_model(None, self.model_settings, app)
        return self._opened

    @property
    def priced_model(self) -> PricedModel | None:
        """The model with its prices; None without a model."""
        return self.open()

    @property
    def required_model(self) -> AnyModel:
        """The model of a task that requires one."""
        priced_model = self.priced_model
        assert priced_model is not None, "this evaluation requires a model or settings"
        return priced_model.model

    @property
    def model(self) -> str:
        """The name of the model; '' without a model."""
        return "" if self.priced_model is None else self.priced_model.model.name

    @property
    def scripted(self) -> bool:
        """Whether the model is scripted."""
        return self.priced_model is not None and isinstance(self.priced_model.model, ScriptedModel)

    def runtime(
        self, limits: UsageLimits, *, tools: Sequence[Tool] = (), retriever: Retriever | None = None
    ) -> AsyncRuntime:
        """Return a runtime with the model, if there is one."""
        priced = self.priced_model
        if priced is None:
            return AsyncRuntime(retriever=retriever, limits=limits)
        return AsyncRuntime(
            priced.model, tools=tools, retriever=retriever, limits=limits, billing=Billing(priced.price)
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an evaluation is run: jobs at a time, cost limit in billionths, output folder, and where the workers are.

    Rows in the folder are continued; `resume` requires them to exist. Without `workers` jobs run in this process.
    """

    width: int = 4
    cost: int | None = None
    folder: Path | None = None
    resume: bool = False
    workers: StartWorkers | None = None


@dataclass
class Runner:
    """One run of the remaining jobs, `width` at a time; `cost` limits the total cost in billionths."""

    worker: Worker
    jobs: Iterator[Job]
    width: int = 4
    cost: int | None = None
    spent: RunUsage = field(default_factory=RunUsage, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _unanswered: int = field(default=0, init=False)
    _shares: list[int] = field(default_factory=list[int], init=False)
    _dearest: int = field(default=0, init=False)

    async def rows(self) -> AsyncGenerator[EvalRow]:
        """Yield rows as they are completed.

        Raises:
            TaiwaError: every further row would fail as well; rows under way are yielded before.
        """
        tasks: set[asyncio.Task[EvalRow | None]] = set()
        try:
            while True:
                self._start(tasks)
                if not tasks:
                    break
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for row in filter(None, (task.result() for task in done)):
                    yield row
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._fatal is not None:
            raise self._fatal

    def _start(self, tasks: set[asyncio.Task[EvalRow | None]]) -> None:
        while len(tasks) < self.width and self._fatal is None:
            try:
                check_cost(self.spent, self.cost)
            except TaiwaError as error:
                self._fatal = error
            if self.cost is not None and tasks and self._free < self._dearest:
                return  # until one has ended, so that no answer is cut for the sake of another one
            job = None if self._fatal is not None else next(self.jobs, None)
            if job is None:
                return
            share = None if self.cost is None else self._free // (self.width - len(tasks))
            share = None if share is None else min(max(share, self._dearest), self._free)
            self._shares.append(share or 0)
            tasks.add(asyncio.create_task(self._row(job, share)))

    @property
    def _free(self) -> int:
        """The part of the cost limit that is not spent and no running job may spend."""
        return max((self.cost or 0) - (self.spent.max_cost or 0) - sum(self._shares), 0)

    async def _row(self, job: Job, share: int | None) -> EvalRow | None:
        """Measure one job; return None if it failed, without usage, in a way that every other job would."""
        setting, item = job.setting, job.item
        try:
            measured = await self.worker(job, UsageLimits(cost=share))
        except TaiwaError as error:
            spent = usage_of(error)
            self.spent = self.spent + spent
            self._unanswered = self._unanswered + 1 if error.tag in UNANSWERED_ERRORS else 0
            if is_fatal(error) or isinstance(error, UnsupportedError):
                self._fatal = self._fatal or error
                if not isinstance(error, LimitError):
                    return None
            elif self._unanswered >= MAX_UNANSWERED:
                message = f"the server did not answer {self._unanswered} consecutive rows: {error.message}"
                self._fatal = self._fatal or UnansweredError(message)
            return EvalRow(setting, item.id, item.kind, spent=spent, error=row_error(error))
        finally:
            self._shares.remove(share or 0)
        self.spent = self.spent + measured.spent
        self._dearest = max(self._dearest, measured.spent.max_cost or 0)
        self._unanswered = 0
        return EvalRow(setting, item.id, item.kind, measured.found, measured.spent)


@dataclass
class Evaluation:
    """One run of an evaluation; its row file is open within the `with` block. `left` and `kept` count jobs at its start."""

    task: Task
    data: DataSet
    options: RunOptions = field(default_factory=RunOptions)
    spent: RunUsage = field(default_factory=RunUsage, init=False)
    kept: int = field(default=0, init=False)
    left: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        """Open the row file and find the remaining jobs.

        Raises:
            InputError: the file cannot be used, or holds rows of another evaluation.
        """
        task, data, folder = self.task, self.data, self.options.folder
        self.header = Header(
            task.name, data.name, data.digest, task.model, datetime.now(UTC).isoformat(timespec="seconds"),
            program_version(), task.settings, task.options, task.scripted,
        )  # fmt: skip
        self.rows: Rows = Rows() if folder is None else RowFile(folder / ROWS_FILE)
        try:
            self._check(folder)
            self._done = self.rows.finished()
            self.left = sum(1 for _ in self._jobs())
            self.kept = len(task.settings) * len(data.items) - self.left
            if self.left or not self.rows.headers:
                self.rows.add(self.header)
        except BaseException:
            self.rows.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.rows.close()

    def _jobs(self) -> Iterator[Job]:
        """Yield the remaining jobs setting by setting: their prompts share a prefix, which servers cache."""
        for setting in self.task.settings:
            for item in self.data.items:
                if (setting, item.id) not in self._done:
                    yield Job(setting, item)

    def _check(self, folder: Path | None) -> None:
        if self.options.resume and (folder is None or not self.rows.rows):
            raise InputError(f"{folder or 'no folder'}: no rows to resume from; leave out --resume to begin")
        for before in self.rows.headers:
            if name := before.differs(self.header):
                what = f"another {name.replace('_', ' ')}{_difference(before, self.header, name)}"
                raise InputError(f"{folder}: holds rows with {what}; choose another folder")

    async def run(self) -> AsyncGenerator[EvalRow]:
        """Measure the remaining jobs; each row is written before it is yielded.

        Raises:
            TaiwaError: every further row would fail as well; completed rows are kept.
        """
        if not self.left:
            return
        start = self.options.workers
        async with nullcontext(self.task.measure) if start is None else start(self.task, self.options.width) as worker:
            runner = Runner(worker, self._jobs(), self.options.width, self.options.cost)
            try:
                async with aclosing(runner.rows()) as rows:
                    async for row in rows:
                        self.rows.add(row)
                        yield row
            finally:
                self.spent = runner.spent

    @property
    def measured(self) -> list[EvalRow]:
        """The rows of this evaluation's settings and items; the file may hold more."""
        settings, items = set(self.task.settings), {item.id for item in self.data.items}
        return [row for row in self.rows.rows.values() if row.setting in settings and row.id in items]

    @property
    def missing(self) -> int:
        """The number of rows that have not been measured yet."""
        return len(self.task.settings) * len(self.data.items) - len(self.measured)

    @property
    def programs(self) -> tuple[str, ...]:
        """The versions of this program that wrote rows, oldest first."""
        return tuple(dict.fromkeys(header.program for header in self.rows.headers))


def _difference(before: Header, now: Header, name: str) -> str:
    """Describe what differs in a field of two headers."""
    if name == "options":
        keys = [*now.options, *(key for key in before.options if key not in now.options)]
        key = next(key for key in keys if now.options.get(key) != before.options.get(key))
        return f": {key} was {before.options.get(key)!r} and is {now.options.get(key)!r}"
    return f": it was {getattr(before, name)!r} and is {getattr(now, name)!r}"


def program_version() -> str:
    """Return the version of this program; in a checkout with its commit, and `+` if files of the package differ from it."""
    try:
        released = version("taiwa")
    except PackageNotFoundError:
        released = "unknown"
    commit = git_output(SOURCE, "rev-parse", "--short=12", "HEAD")
    # A wheel installed inside another project's checkout would report that project's commit.
    if not commit or not git_output(SOURCE, "ls-files", "--error-unmatch", Path(__file__).name):
        return released
    changed = git_output(SOURCE, "status", "--porcelain", "--untracked-files=no", "--", str(SOURCE.parent))
    return f"{released} {commit}{'+' if changed else ''}"


def git_output(folder: Path, *arguments: str) -> str:
    """Return the output of git in a folder; '' without git or outside a repository."""
    try:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# --- on Ray -----------------------------------------------------------------------------------------------------------
# Ray workers: the same jobs on a cluster, or in several processes of this machine. Needs the extra `ray`.
#
# A worker is an actor with an event loop and several jobs under way. It receives jobs and returns plain JSON; only the
# process that started the evaluation writes rows, so no row is written twice. Ray restarts a worker that dies, and its jobs
# are sent again.

MAX_TRIES = 5
RESTART_PAUSE_S = 0.2
OBJECT_STORE_BYTES = 128 * 2**20
MAX_WORKERS = 256
MAX_FOLDER_LENGTH = 24
RAY_ENVIRONMENT = dict.fromkeys(
    ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_UV_RUN_RUNTIME_ENV", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"), "0"
)
"""Disable usage reports, detection of how this program was started, and hiding accelerators from workers."""


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
            raise missing_extra("--ray", "ray") from None
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
        # Kept here, because a restarted worker must find it, however large it is.
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
