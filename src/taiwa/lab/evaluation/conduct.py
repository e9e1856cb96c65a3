"""An evaluation from beginning to end: what was done before, what is left, and every row kept as soon as it is there."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from taiwa.kernel.errors import InputError
from taiwa.kernel.ledger import Spent
from taiwa.lab.evaluation.items import DataSet
from taiwa.lab.evaluation.onray import Place, on_ray
from taiwa.lab.evaluation.provenance import program_version
from taiwa.lab.evaluation.rowfile import RowFile, Rows
from taiwa.lab.evaluation.rows import Header, Row
from taiwa.lab.evaluation.running import Job, Perform, Running, Work

__all__ = ["ROWS", "Conduct", "Evaluation"]

ROWS = "rows.jsonl"


@dataclass(frozen=True, slots=True)
class Conduct:
    """How an evaluation is done: jobs at a time, what it may cost in billionths, where, and the folder that keeps it.

    With `resume` the folder must hold rows already; they are gone on with in any case.
    """

    width: int = 4
    cost: int | None = None
    place: Place | None = None
    folder: Path | None = None
    resume: bool = False


@dataclass
class Evaluation:
    """One run of an evaluation; its file is open within its with block. So many jobs were `left` and `kept` when it began."""

    work: Work
    data: DataSet
    conduct: Conduct = field(default_factory=Conduct)
    spent: Spent = field(default_factory=Spent, init=False)
    kept: int = field(default=0, init=False)
    left: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        """Open the file, and find what is left.

        Raises:
            InputError: the file cannot be used, or holds rows of something else.
        """
        self.header = _header(self.work, self.data)
        folder = self.conduct.folder
        self.rows: Rows = Rows() if folder is None else RowFile(folder / ROWS)
        with ExitStack() as stack:
            stack.enter_context(self.rows)
            self._check(folder)
            self._done = self.rows.finished()
            self.left = sum(1 for _ in self._jobs())
            self.kept = len(self.work.settings) * len(self.data.items) - self.left
            if self.left or not self.rows.headers:
                self.rows.add(self.header)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _jobs(self) -> Iterator[Job]:
        """What is left, one setting after the other: their prompts begin alike, which the caches of servers like."""
        for setting in self.work.settings:
            for item in self.data.items:
                if (setting, item.id) not in self._done:
                    yield Job(setting, item)

    def _check(self, folder: Path | None) -> None:
        if self.conduct.resume and (folder is None or not self.rows.rows):
            raise InputError(f"{folder or 'no folder'}: there are no rows to go on with; leave out --resume to begin")
        for before in self.rows.headers:
            name = before.differs(self.header)
            if name:
                raise InputError(
                    f"{folder}: holds rows with another {name.replace('_', ' ')}{_change(before, self.header, name)};"
                    " choose another folder"
                )

    async def run(self) -> AsyncGenerator[Row]:
        """Measure what is left; every row is in the file before it is given out.

        Raises:
            TaiwaError: the next row could only fail as well; what was measured is kept.
        """
        if not self.left:
            return
        async with self._performing() as perform:
            running = Running(perform, self._jobs(), self.conduct.width, self.conduct.cost)
            try:
                async with aclosing(running.rows()) as rows:
                    async for row in rows:
                        self.rows.add(row)
                        yield row
            finally:
                self.spent = running.spent

    @asynccontextmanager
    async def _performing(self) -> AsyncGenerator[Perform]:
        if self.conduct.place is None:
            yield self.work.measure
            return
        async with on_ray(self.work, self.conduct.place, self.conduct.width) as perform:
            yield perform

    @property
    def measured(self) -> list[Row]:
        """The rows of the settings and items of this evaluation; a file may hold more."""
        settings, items = set(self.work.settings), {item.id for item in self.data.items}
        return [row for row in self.rows.rows.values() if row.setting in settings and row.id in items]

    @property
    def programs(self) -> tuple[str, ...]:
        """Every version of this program that wrote rows, the first first."""
        return tuple(dict.fromkeys(header.program for header in self.rows.headers))


def _header(work: Work, data: DataSet) -> Header:
    return Header(
        work.name, data.name, data.digest, work.model, datetime.now(UTC).isoformat(timespec="seconds"), program_version(),
        work.settings, work.options, work.scripted,
    )  # fmt: skip


def _change(before: Header, now: Header, name: str) -> str:
    """What exactly is different, where a person can read it."""
    if name == "options":
        keys = [*now.options, *(key for key in before.options if key not in now.options)]
        key = next(key for key in keys if now.options.get(key) != before.options.get(key))
        return f": {key} was {before.options.get(key)!r} and is {now.options.get(key)!r}"
    return f": it was {getattr(before, name)!r} and is {getattr(now, name)!r}"
