"""What the evaluations on real models share: the model and its server, the ways, and how a way is measured.

A way is `taiwa` or `taiwa-gguf`, followed by `:VARIANT` for something else than the defaults, or one of the `PEERS`. An
exception of a peer is a result: its answer counts as invalid, with the reason.
"""

import os
import platform
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias, TypeVar

from evals.real.llama_server import CONTEXT, llama_server
from evals.real.peers import MAX_REASON, Endpoint, PeerError, Peers, peer_errors
from taiwa.evals.data import DataSet, Item
from taiwa.evals.report import (
    FAILED_COLUMN,
    HEAD_COLUMNS,
    Column,
    SetReport,
    bootstrap_mean,
    interval_json,
    plain,
    rounded,
    share_marked,
    sum_field,
    with_interval,
)
from taiwa.evals.run import EvalRow, Job, Measurement, ModelTask
from taiwa.kernel.errors import InputError, OverloadedError, TaiwaError
from taiwa.kernel.messages import Sampling
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.models.providers import resolve
from taiwa.sessions.batch import is_fatal
from taiwa.settings import Settings

T = TypeVar("T")
Found: TypeAlias = dict[str, Json]
TAIWA, IN_PROCESS = "taiwa", "taiwa-gguf"
VERSIONS = ("taiwa", "openai", "instructor", "pydantic-ai-slim", "xllamacpp")


@dataclass(frozen=True)
class RealModel:
    """The model of an evaluation: its settings for taiwa, and its server for the others.

    `file` is its GGUF file, if it has one; `endpoint` is None for a model without an OpenAI-compatible server.
    """

    name: str
    settings: Settings
    endpoint: Endpoint | None = None
    file: Path | None = None
    threads: int = 0
    max_tokens: int = 400
    seed: int = 0
    empty: Callable[[], None] = lambda: None
    """Empty its server: otherwise a way finds the prompts that another one has read, and seems faster by that."""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file; '' without one."""
        if self.file is None:
            return ""
        with self.file.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()

    @property
    def sampling(self) -> Sampling:
        """The sampling of every call."""
        return Sampling(0.0, max_tokens=self.max_tokens, seed=self.seed)


@contextmanager
def open_real_model(settings: Settings, *, threads: int, max_tokens: int, seed: int) -> Generator[RealModel]:
    """Open the model that the settings name; a GGUF file gets a llama.cpp server for the time of the evaluation.

    Raises:
        TaiwaError: the model is not configured, or cannot be opened.
    """
    name = settings.chosen_model()
    prefix, _, rest = name.partition(":")
    file = Path(rest if prefix == "gguf" else name).expanduser()
    if prefix != "gguf" and file.suffix != ".gguf":
        target = resolve(name, base_urls=settings.models.base_urls)
        served = "" if target.inside or not target.base_url.startswith("http") else target.base_url
        key = os.environ.get(target.key_variable, "") if served else ""
        endpoint = Endpoint(served, target.model, key or "none") if served else None
        yield RealModel(name, settings, endpoint, max_tokens=max_tokens, seed=seed)
        return
    file = Path(str(file).partition("?")[0])
    with llama_server(file, threads) as (url, empty):
        ours = replace(
            settings,
            model=f"llamacpp:{file.stem}",
            models=replace(settings.models, base_urls={**settings.models.base_urls, "llamacpp": url}),
        )
        yield RealModel(file.name, ours, Endpoint(url, file.stem), file, threads, max_tokens, seed, empty)


def conditions(model: RealModel) -> dict[str, Json]:
    """Return what a figure depends on beside the evaluation: model, seed, versions, threads, and the load of the machine."""
    return {
        "model": model.name, "model_sha256": model.digest or None, "seed": model.seed, "max_tokens": model.max_tokens,
        "threads": model.threads or None, "context": CONTEXT if model.file else None, "cores": os.cpu_count(),
        "machine": platform.machine(), "load": [round(each, 2) for each in os.getloadavg()],
        "versions": {name: _version(name) for name in VERSIONS},
    }  # fmt: skip


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@dataclass(kw_only=True)
class RealTask(ModelTask, ABC):
    """Base of the evaluations on real models: one item by one way."""

    real: RealModel
    settings: tuple[str, ...]
    name: str = ""
    _inside: ModelTask | None = field(default=None, init=False, repr=False)
    _peers: Peers | None = field(default=None, init=False, repr=False)
    _way: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the model can be used in all ways.

        Raises:
            InputError: a way requires a server or a GGUF file, and the model has none.
        """
        self.model_settings = self.model_settings or self.real.settings
        for way in self.settings:
            if not way.startswith(TAIWA) and self.real.endpoint is None:
                raise InputError(f"--way {way} requires an OpenAI-compatible server; {self.real.name} has none")
            if way.partition(":")[0] == IN_PROCESS and self.real.file is None:
                raise InputError(f"--way {IN_PROCESS} requires a GGUF file; {self.real.name} is not one")

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.real.name

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a row depends on besides way, item and model."""
        real = self.real
        return {"sha256": real.digest, "seed": real.seed, "max_tokens": real.max_tokens, "threads": real.threads}

    @property
    def peers(self) -> Peers:
        """The clients of the other ways."""
        if self._peers is None:
            assert self.real.endpoint is not None, "checked before anything is measured"
            self._peers = Peers(self.real.endpoint, self.real.max_tokens, self.real.seed)
        return self._peers

    def ours(self, way: str) -> ModelTask:
        """Return the runtimes of a way of taiwa: by the server, or in this process."""
        if way.partition(":")[0] != IN_PROCESS:
            return self
        if self._inside is None:
            threads = f"?threads={self.real.threads}" if self.real.threads else ""
            chosen = replace(self.real.settings, model=f"gguf:{self.real.file}{threads}")
            self._inside = ModelTask(model_settings=chosen)
        return self._inside

    def close(self) -> None:
        """End the process of the model that was opened beside the server."""
        opened = None if self._inside is None else self._inside.priced_model
        if opened is not None and (close := getattr(opened.model, "close", None)) is not None:
            close()

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Measure one item by one way; time is that of the whole way.

        Raises:
            TaiwaError: every other item would fail as well, or the server does not answer.
        """
        if job.setting != self._way:
            self._way = job.setting
            self.real.empty()
        started = time.monotonic()
        try:
            if job.setting.startswith(TAIWA):
                found, spent = await self.by_taiwa(job, limits)
            else:
                found, spent = await self._by_peer(job)
        except TaiwaError as error:
            if is_fatal(error) or isinstance(error, (InputError, OverloadedError)):
                raise
            found, spent = invalid(error), error.spent if isinstance(error.spent, RunUsage) else RunUsage()
        found = {**found, **self.score(job.item, found)}
        return Measurement(found, replace(spent, seconds=time.monotonic() - started))

    async def _by_peer(self, job: Job) -> tuple[Found, RunUsage]:
        peers = self.peers
        peers.take_spent()
        try:
            with peer_errors():
                found = await self.by_peer(job, peers)
        except PeerError as error:
            found = {"valid": False, "reason": error.message}
        return found, peers.take_spent()

    @abstractmethod
    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Answer an item with taiwa."""

    @abstractmethod
    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Answer an item in another way; exceptions count as invalid."""

    @abstractmethod
    def score(self, item: Item, found: Found) -> Found:
        """Compare what was found with the expected answer."""


def invalid(error: BaseException) -> Found:
    """Return the fields of an answer that failed."""
    text = " ".join(str(error).split())[:MAX_REASON]
    return {"valid": False, "reason": f"{type(error).__name__}: {text}"}


def sample(items: Sequence[T], limit: int | None, seed: int) -> tuple[T, ...]:
    """Return `limit` of the items drawn by the seed, in their order; all without a limit.

    >>> sample("abcdef", 3, 0) == sample("abcdef", 3, 0), len(sample("abcdef", 9, 0))
    (True, 6)
    """
    count = len(items) if limit is None else min(limit, len(items))
    chosen = random.Random(seed).sample(range(len(items)), count)  # noqa: S311  (a repeatable draw, not a secret)
    return tuple(items[place] for place in sorted(chosen))


def data_set(paths: Sequence[Path], digests: Sequence[str], items: Sequence[Item]) -> DataSet:
    """Return items of several files as one data set."""
    return DataSet(", ".join(path.name for path in paths), sha256("".join(digests).encode()).hexdigest(), tuple(items))


def way_names(text: Sequence[str], known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """Return the ways to measure: those given, comma-separated or one by one, or the default.

    Raises:
        InputError: one is unknown.
    """
    given = tuple(dict.fromkeys(name.strip() for part in text for name in part.split(",") if name.strip()))
    # A way of taiwa may be measured in this process as well.
    unknown = next((name for name in given if name.replace(IN_PROCESS, TAIWA, 1) not in known), None)
    if unknown is not None:
        raise InputError(f"--way: unknown way {unknown!r}; choose among {', '.join((*known, IN_PROCESS))}")
    return given or tuple(default)


def seconds_with_interval(line: Mapping[str, Json]) -> str:
    """Format the seconds per item with their interval."""
    bounds = line.get("seconds_interval")
    shown = f" [{bounds[0]:.1f}, {bounds[1]:.1f}]" if isinstance(bounds, list) and bounds else ""
    seconds = line.get("seconds")
    return f"{seconds:.1f}{shown}" if isinstance(seconds, (int, float)) else "–"


WAY_COLUMNS = (
    HEAD_COLUMNS[0],
    Column("way", plain("setting")),
    HEAD_COLUMNS[2],
)
COST_COLUMNS = (
    Column("calls", plain("requests")),
    Column("tokens in", plain("input_tokens")),
    Column("tokens out", plain("output_tokens")),
    Column("s/item", seconds_with_interval),
    FAILED_COLUMN,
)


def share_column(head: str, name: str) -> Column:
    """Return the column of a share with its interval."""
    return Column(head, with_interval(name, f"{name}_interval"), figure=True)


def share_fields(rows: Sequence[EvalRow], mark: str) -> Found:
    """Return the share of the rows whose field is true, with its interval and its count; rows without the field do not count."""
    known = [row for row in rows if mark in row.found]
    share = share_marked(known, mark)
    return {mark: share.share, f"{mark}_interval": interval_json(share.interval), f"{mark}_of": [share.count, share.of]}


def tool_report(head: str, name: str, *notes: str) -> SetReport:
    """Return the form of an evaluation with tools: right answers, the share `name` in the column `head`, and the calls of tools."""

    def line(rows: Sequence[EvalRow]) -> Found:
        return {
            **share_fields(rows, "right"), **share_fields(rows, name), "tool_calls": sum_field(rows, "tool_calls"),
            **reasons(rows), **time_fields(rows),
        }  # fmt: skip

    columns = (
        *WAY_COLUMNS, share_column("right %", "right"), share_column(head, name), Column("tool calls", plain("tool_calls")),
        *COST_COLUMNS,
    )  # fmt: skip
    return SetReport(line, columns, "right", "right answers, %", notes)


def time_fields(rows: Sequence[EvalRow]) -> Found:
    """Return the mean seconds per item with their interval."""
    seconds = [row.spent.seconds for row in rows if row.error is None]
    mean = sum(seconds) / len(seconds) if seconds else None
    return {"seconds": rounded(mean), "seconds_interval": interval_json(bootstrap_mean(seconds))}


def reasons(rows: Sequence[EvalRow]) -> Found:
    """Count the reasons of invalid answers by the name of their exception."""
    counts: dict[str, int] = {}
    for row in rows:
        if isinstance(reason := row.found.get("reason"), str):
            name = reason.partition(":")[0]
            counts[name] = counts.get(name, 0) + 1
    return {"reasons": {name: counts[name] for name in sorted(counts, key=lambda each: -counts[each])}}
