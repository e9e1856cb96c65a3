"""What an evaluation of orders reports: structure, items, sizes, options, and requests that are right altogether."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from taiwa.kernel.records import Json
from taiwa.lab.evaluation.chart import Bar, Chart
from taiwa.lab.evaluation.conduct import Evaluation
from taiwa.lab.evaluation.intervals import Share
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.report import Column, Report, percent, plain, with_interval
from taiwa.lab.evaluation.rows import Row
from taiwa.lab.evaluation.summary import added, bill, by_setting, failures, interval_of, right
from taiwa.lab.ordering.orders import best_of, readings_of

__all__ = ["chart_of", "line_of", "report_of"]

SHARES = {
    "structure": "replies that could be read, with their delta",
    "items": "lines with the right name and quantity, of those that were ordered",
    "precision": "lines with the right name and quantity, of those that were written down",
    "names": "lines with the right name, of those that were ordered",
    "sizes": "right sizes, of lines with the right name and quantity",
    "options": "right options, of the same",
    "whole": "requests with every line right and none too many",
}
COLUMNS = (
    Column("setting", plain("setting")),
    Column("n", plain("n")),
    Column("structure %", with_interval("structure", "structure_interval"), figure=True),
    Column("items %", with_interval("items", "items_interval"), figure=True),
    Column("precision %", with_interval("precision", "precision_interval"), figure=True, main=False),
    Column("names %", with_interval("names", "names_interval"), figure=True, main=False),
    Column("sizes %", lambda line: percent(line.get("sizes"), 1), figure=True),
    Column("options %", lambda line: percent(line.get("options"), 1), figure=True),
    Column("wholly right %", with_interval("whole", "whole_interval"), figure=True),
    Column("failed", plain("failed")),
    Column("s/item", lambda line: "–" if (ms := line.get("ms_per_item")) is None else f"{float(str(ms)) / 1000:.2f}"),
)
FIGURES = frozenset(
    {*SHARES, *(f"{name}_interval" for name in SHARES), "counts", "wrong"}
)  # fmt: skip
NOTES = (
    "Items: lines with the right name and quantity, of those that were ordered; precision: of those that were written down."
    " Sizes and options: of lines with the right name and quantity.",
    "Intervals: Wilson, 95 %.",
)
MOST_WRONG = 200


def line_of(rows: Sequence[Row]) -> dict[str, Json]:
    """What rows add up to."""
    sums = {name: added(rows, name) for name in ("wanted", "heard", "named", "counted", "sizes", "options")}
    shares = {
        "structure": right(rows, "sound"),
        "items": Share(sums["counted"], sums["wanted"]),
        "precision": Share(sums["counted"], sums["heard"]),
        "names": Share(sums["named"], sums["wanted"]),
        "sizes": Share(sums["sizes"], sums["counted"]),
        "options": Share(sums["options"], sums["counted"]),
        "whole": right(rows, "whole"),
    }
    told: dict[str, Json] = {}
    for name, share in shares.items():
        told |= {name: share.share, f"{name}_interval": interval_of(share)}
    counts: dict[str, Json] = {name: [share.count, share.of] for name, share in shares.items()}
    return {**told, "counts": counts}


def report_of(evaluation: Evaluation, notes: Sequence[str] = ()) -> Report:
    """The report of what an evaluation has so far."""
    items = {item.id: item for item in evaluation.data.items}
    rows = [_counted(row, items[row.id]) for row in evaluation.measured]
    settings = evaluation.work.settings
    paid = by_setting([row for row in evaluation.rows.paid if row.setting in settings], settings)
    lines: list[Mapping[str, Json]] = []
    for name, group in by_setting(rows, settings).items():
        failed = sum(row.error is not None for row in group)
        wrong: list[Json] = [row.id for row in group if row.found.get("whole") is not True]
        head: dict[str, Json] = {"setting": name, "n": len(group)}
        tail: dict[str, Json] = {"wrong": wrong[:MOST_WRONG], "failed": failed, "errors": failures(group)}
        lines.append({**head, **line_of(group), **tail, **bill(group, paid.get(name, []))})
    missing = len(settings) * len(items) - len(rows)
    told = (*notes, *NOTES, *_warned(rows), *((f"{missing:,} rows are still to come.",) if missing else ()))
    return Report(evaluation.header, tuple(lines), COLUMNS, FIGURES, told, evaluation.programs)


def _counted(row: Row, item: Item) -> Row:
    """A row that failed, as what it then was: nothing was written down."""
    if row.error is None:
        return row
    return replace(row, found={**best_of(readings_of(item)[:1], ()), "sound": False, "whole": False})


def _warned(rows: Sequence[Row]) -> tuple[str, ...]:
    """What was wrong with replies, the most frequent first."""
    counts = Counter(
        str(each)[:120] for row in rows if isinstance(said := row.found.get("warnings"), (list, tuple)) for each in said
    )
    return tuple(f"{count} times: {words}" for words, count in counts.most_common(3))


def chart_of(report: Report) -> Chart:
    """A bar for each share."""
    bars = [bar for line in report.fit_to_print().lines for name in SHARES if (bar := _bar(line, name)) is not None]
    header = report.header
    return Chart(
        f"{header.evaluation}: {header.data}, {header.model}", "the share, %", tuple(bars), legend=("share", "")
    )


def _bar(line: Mapping[str, Json], name: str) -> Bar | None:
    share, bounds = line.get(name), line.get(f"{name}_interval")
    if not isinstance(share, float) or not isinstance(bounds, list):
        return None
    low, high = (100 * float(str(bound)) for bound in bounds)
    return Bar(name, 100 * share, min(low, 100 * share), max(high, 100 * share))
