"""How an evaluation is run from the command line: its progress, how it ends, and what it leaves in its folder."""

import asyncio
import json
import sys
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.output import emit, errors, say_line, table, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import ConfigError, InputError, LimitError
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.conduct import ROWS, Conduct, Evaluation
from taiwa.lab.evaluation.onray import read_place
from taiwa.lab.evaluation.report import Report, cells, markdown
from taiwa.lab.evaluation.rows import Row
from taiwa.lab.evaluation.running import UnansweredError
from taiwa.observe.prices import money

if TYPE_CHECKING:
    from taiwa.cli.options import Flags
    from taiwa.lab.evaluation.chart import Chart

__all__ = ["Asked", "conclude", "conduct_of", "run"]

FAILED, INTERRUPTED = 1, 130
TABLE, SUMMARY = "table.md", "summary.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """What every evaluation can be told: jobs at a time, where, the folder, and whether it must have begun."""

    width: int = 4
    on: str | None = None
    out: Path | None = None
    resume: bool = False


def conduct_of(shared: "Flags", asked: Asked) -> Conduct:
    """How an evaluation is done under these flags.

    Raises:
        InputError: one of them cannot be used.
    """
    place = None if asked.on is None else read_place(asked.on)
    return Conduct(asked.width, shared.settings().max_cost_nano, place, asked.out, asked.resume)


def run(evaluation: Evaluation, *, quiet: bool) -> tuple[str, int]:
    """Measure what is left; say why it ended before its end, '' where it did not, and the exit code.

    Raises:
        TaiwaError: something is wrong that no row could be measured with.
    """
    why, code = "", 0
    kept, left = evaluation.kept, evaluation.left
    if kept and not quiet:
        tell(
            ngettext(
                "{n} row was there before, {left} are left",
                "{n} rows were there before, {left} are left",
                kept,
                left=f"{left:,}",
            )
        )
    with _progress(left) as advance:
        try:
            asyncio.run(_drained(evaluation, advance))
        except KeyboardInterrupt:
            why, code = _("interrupted"), INTERRUPTED
        except UnansweredError as error:
            why, code = error.message, FAILED
        except LimitError as error:
            why, code = _("the cost limit was reached ({why})", why=error.message), FAILED
    return why, code


async def _drained(evaluation: Evaluation, advance: Callable[[Evaluation, Row], None]) -> None:
    async with aclosing(evaluation.run()) as rows:
        async for row in rows:
            advance(evaluation, row)


def conclude(evaluation: Evaluation, report: Report, chart: "Chart", ended: tuple[str, int], *, as_json: bool) -> None:
    """Write what there is to be seen, print it, and leave with the exit code.

    Raises:
        Exit: the evaluation did not come to its end, or a row failed.
    """
    why, code = ended
    folder = evaluation.conduct.folder
    files = [] if folder is None else _leave(folder, report, chart)
    failed = sum(row.error is not None for row in evaluation.measured)
    if as_json:
        ended_so: dict[str, Json] = {"failed": failed, "stopped": why or None, "files": [str(path) for path in files]}
        emit(report.told() | ended_so)
    else:
        heads, rows = cells(report, narrow=True)
        table(heads, rows, frozenset(range(1, len(heads))))
        for note in report.fit_to_print().notes:
            say_line(note)
        for path in files:
            tell(f"written: {path}")
    if why:
        again = f"; the same command goes on with {folder}" if folder is not None else ""
        tell(f"stopped: {why}{again}", "yellow")
    if code or failed:
        raise click.exceptions.Exit(code or FAILED)


def _leave(folder: Path, report: Report, chart: "Chart") -> list[Path]:
    from taiwa.lab.evaluation.chart import draw

    texts = {TABLE: markdown(report), SUMMARY: f"{json.dumps(report.told(), ensure_ascii=False, indent=2)}\n"}
    written = [folder / ROWS]
    for name, text in texts.items():
        path = folder / name
        try:
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        written.append(path)
    if chart.bars:
        try:
            written += draw(chart, folder)
        except ConfigError as error:  # the table says the same
            tell(error.message, "yellow")
    return written


def _nobody(evaluation: Evaluation, row: Row) -> None:
    """Where no terminal is, nobody is shown anything."""


@contextmanager
def _progress(count: int) -> Generator[Callable[[Evaluation, Row], None]]:
    """Show a bar to a person; nothing where no terminal is."""
    if not sys.stderr.isatty():
        yield _nobody
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), transient=True) as shown:
        task = shown.add_task(_("rows"), total=count)
        failed = cost = 0
        known = True

        def advance(_evaluation: Evaluation, row: Row) -> None:
            nonlocal failed, cost, known
            failed += row.error is not None
            known = known and row.spent.cost_at_most is not None
            cost += row.spent.cost_at_most or 0
            more = " · " + _("{failed} failed", failed=failed) if failed else ""
            shown.update(
                task, advance=1, description=f"{row.setting}{more} · {money(cost if known else None)}",
            )  # fmt: skip

        yield advance
