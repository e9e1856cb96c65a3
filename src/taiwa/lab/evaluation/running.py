"""Running an evaluation: every item under every setting once, side by side; what failed is a row, and a run goes on.

What is evaluated is a `Work`; where it is done is a `Perform`: here, or on other machines. Either is asked for one
measurement at a time and knows nothing of files, limits or progress.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from taiwa.kernel.errors import ConfigError, LimitError, TaiwaError, UnsupportedError
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.records import Json, value
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.rows import Row, fault
from taiwa.talk.rows import ends_batch

__all__ = ["Job", "Measured", "Perform", "Running", "UnansweredError", "Work"]

MOST_SILENT = 10
SILENT = frozenset({"overloaded", "timeout", "rate-limit", "lost-worker"})
"""What a server that is not there looks like, or workers that cannot start; so many rows of it in a row end an evaluation."""


class UnansweredError(TaiwaError, tag="unanswered"):
    """The server did not answer row after row."""


@value(tag="eval-job")
class Job:
    """One item under one setting."""

    setting: str
    item: Item


@value(tag="measurement")
class Measured:
    """What was found of an item, in the terms of its evaluation, and the bill."""

    found: Mapping[str, Json]
    spent: Spent = Spent()


class Work(Protocol):
    """What is evaluated: its name, the model's, the settings in the order of the table, and how one item is measured."""

    @property
    def name(self) -> str:
        """The name of the evaluation, as the command line has it."""
        ...

    @property
    def model(self) -> str:
        """The name of the model; '' where there is none."""
        ...

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings."""
        ...

    @property
    def scripted(self) -> bool:
        """Whether the model plays what somebody wrote for it."""
        ...

    @property
    def options(self) -> Mapping[str, Json]:
        """All that a measurement depends on beside the setting, the item and the model."""
        ...

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Measure an item under a setting.

        Raises:
            TaiwaError: there is no measurement; `spent` holds the bill.
        """
        ...


Perform: TypeAlias = Callable[[Job, Limits], Awaitable[Measured]]
"""Has one measurement made, somewhere."""


@dataclass
class Running:
    """One run: the jobs that are left, `width` at a time. `cost` is what may be spent in all, in billionths."""

    perform: Perform
    jobs: Iterator[Job]
    width: int = 4
    cost: int | None = None
    spent: Spent = field(default_factory=Spent, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _silent: int = field(default=0, init=False)

    async def rows(self) -> AsyncGenerator[Row]:
        """Give out rows as they are done.

        Raises:
            TaiwaError: the next row could only fail as well; rows that were under way are given out before.
        """
        tasks: set[asyncio.Task[Row | None]] = set()
        try:
            while True:
                self._begin(tasks)
                if not tasks:
                    break
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    row = task.result()
                    if row is not None:
                        yield row
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._fatal is not None:
            raise self._fatal

    def _begin(self, tasks: set[asyncio.Task[Row | None]]) -> None:
        while len(tasks) < self.width and self._fatal is None:
            self._fatal = self._reached()
            job = None if self._fatal is not None else next(self.jobs, None)
            if job is None:
                return
            tasks.add(asyncio.create_task(self._row(job)))

    async def _row(self, job: Job) -> Row | None:
        """Measure one job; None where it failed as every other would, and cost nothing."""
        setting, item = job.setting, job.item
        paid = self.spent.cost_at_most
        left = None if self.cost is None or paid is None else max(0, self.cost - paid)
        try:
            measured = await self.perform(job, Limits(cost=left))
        except TaiwaError as error:
            spent = error.spent if isinstance(error.spent, Spent) else Spent()
            self._charge(spent, error.tag)
            if ends_batch(error) or isinstance(error, UnsupportedError):
                self._fatal = self._fatal or error
                if not isinstance(error, LimitError):
                    return None
            elif self._silent >= MOST_SILENT:
                words = f"{self._silent} rows in a row met a server that does not answer: {error.message}"
                self._fatal = self._fatal or UnansweredError(words)
            return Row(setting, item.id, item.kind, spent=spent, error=fault(error))
        self._charge(measured.spent)
        return Row(setting, item.id, item.kind, measured.found, measured.spent)

    def _charge(self, spent: Spent, error: str = "") -> None:
        self.spent = self.spent + spent
        self._silent = self._silent + 1 if error in SILENT else 0

    def _reached(self) -> TaiwaError | None:
        if self.cost is None:
            return None
        paid = self.spent.cost_at_most
        if paid is None:
            return ConfigError("the cost of a call is not known, so a cost limit cannot hold any longer")
        return LimitError("cost", paid / 1e9, self.cost / 1e9) if paid >= self.cost else None
