"""The report of an evaluation of reasoning: what rows of rationales add up to, as lines, a table and a chart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from taiwa.kernel.records import Json
from taiwa.lab.evaluation.ablation import Grid, Setting
from taiwa.lab.evaluation.chart import Bar, Chart, Point, Series
from taiwa.lab.evaluation.conduct import Evaluation
from taiwa.lab.evaluation.intervals import Share
from taiwa.lab.evaluation.report import Column, Report, Table, percent, plain, with_interval
from taiwa.lab.evaluation.rows import Row
from taiwa.lab.evaluation.summary import (
    added,
    bill,
    by_setting,
    counted,
    failures,
    interval_of,
    paired,
    paired_of,
    right,
)

__all__ = ["chart_of", "lines_of", "report_of"]

EXACT, TOLERANT = "right", "near"
MOST_CLASSES = 12
FIGURES = frozenset(
    {
        "right", "accuracy", "interval", "accuracy_tolerant", "interval_tolerant", "mcnemar", "mcnemar_tolerant", "classes",
        "faithful_next", "faithful_used", "faithful_last",
    }
)  # fmt: skip
Line = Mapping[str, Json]


def _p(line: Line) -> str:
    test = line.get("mcnemar")
    return "–" if not isinstance(test, Mapping) else f"{test['p']:.2g}"


def _money(line: Line) -> str:
    cost, most = line.get("cost"), line.get("cost_at_most")
    if isinstance(cost, (int, float)) or most == 0:
        return f"{cost or 0:g}"
    return f"≤ {most:g}" if isinstance(most, (int, float)) else "–"


def _tokens(line: Line) -> str:
    parts = [line.get(name) for name in ("input_tokens", "cached_tokens", "output_tokens")]
    most = line.get("tokens_at_most")
    if None in parts:
        return "–" if most is None else f"≤ {most:,}"
    return " / ".join(f"{part:,}" for part in parts)


COLUMNS = (
    Column("setting", plain("setting")),
    Column("n", plain("n")),
    Column("exact %", with_interval("accuracy", "interval"), figure=True),
    Column("±0.5 %", with_interval("accuracy_tolerant", "interval_tolerant"), figure=True),
    Column("p", _p, figure=True),
    Column("calls", plain("calls")),
    Column("tool errors", plain("tool_errors_total"), main=False),
    Column("by model", plain("model_written")),
    Column("kept next %", lambda line: percent(line.get("faithful_next"), 1), figure=True, main=False),
    Column("kept last %", lambda line: percent(line.get("faithful_last"), 1), figure=True, main=False),
    Column("no answer", plain("extraction_failures")),
    Column("cut", plain("truncations")),
    Column("false stops", plain("false_stops"), main=False),
    Column("failed", plain("failed")),
    Column("tokens in / cached / out", _tokens, main=False),
    Column("cost", _money),
    Column("s/item", lambda line: "–" if (ms := line.get("ms_per_item")) is None else f"{float(str(ms)) / 1000:.2f}"),
)


def lines_of(rows: Iterable[Row], replaced: Iterable[Row], plan: Sequence[Setting], full: str) -> tuple[Line, ...]:
    """One line for each setting that has rows; `full` is the setting that the others are compared with."""
    named = {setting.name: setting for setting in plan}
    groups = by_setting(rows, [*named])
    paid = by_setting(replaced, [*named])
    return tuple(
        _line(named[name], group, paid.get(name, []), groups.get(full, []), full)
        for name, group in groups.items()
        if name in named
    )


def _line(setting: Setting, rows: list[Row], paid: list[Row], whole: list[Row], full: str) -> Line:
    exact, near = right(rows, EXACT), right(rows, TOLERANT)
    errors = counted(rows, "tool_errors")
    compared = bool(whole) and setting.name != full
    line: dict[str, Json] = {
        "setting": setting.name, "shots": setting.shots, "ablate": setting.ablate or None, "mode": setting.mode or None,
        "order": setting.order, "tools": [*setting.working], "n": len(rows),
        "right": exact.count, "accuracy": exact.share, "interval": interval_of(exact),
        "accuracy_tolerant": near.share, "interval_tolerant": interval_of(near),
        "mcnemar": paired_of(paired(rows, whole, EXACT), full) if compared else None,
        "mcnemar_tolerant": paired_of(paired(rows, whole, TOLERANT), full) if compared else None,
        "calls": added(rows, "calls"), "called": counted(rows, "called"), "memo": added(rows, "memo"),
        "tool_errors": errors, "tool_errors_total": sum(number for number in errors.values() if isinstance(number, int)),
        "model_written": added(rows, "model_written"),
        **_faith(rows),
        "answered_by": counted(rows, "answered_by"), "endings": counted(rows, "ending"), "ways": counted(rows, "way"),
        "extraction_failures": added(rows, "unanswered"), "truncations": added(rows, "truncated"),
        "false_stops": added(rows, "false_stops"),
        "failed": sum(row.error is not None for row in rows), "errors": failures(rows),
        "classes": _classes(rows),
    }  # fmt: skip
    return line | bill(rows, paid)


def _faith(rows: Sequence[Row]) -> dict[str, Json]:
    """How often the model kept to what its tools gave; null where there was nothing to keep to."""
    behind, last = added(rows, "next_of"), added(rows, "last_of")
    return {
        "faithful_next": Share(added(rows, "next_kept"), behind).share,
        "faithful_used": Share(added(rows, "used"), behind).share,
        "faithful_last": Share(added(rows, "last_kept"), last).share,
        "faithful_next_of": behind, "faithful_last_of": last,
    }  # fmt: skip


def _classes(rows: Iterable[Row]) -> list[Json]:
    """How every class of questions came out, the largest first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.kind, []).append(row)
    found = [(kind, right(those, EXACT), right(those, TOLERANT)) for kind, those in groups.items()]
    return [
        {"class": kind, "n": exact.of, "accuracy": exact.share, "interval": interval_of(exact), "accuracy_tolerant": near.share}
        for kind, exact, near in sorted(found, key=lambda one: (-one[1].of, one[0]))
    ]  # fmt: skip


def report_of(evaluation: Evaluation, grid: Grid, notes: Sequence[str] = ()) -> Report:
    """The report of what an evaluation has so far."""
    names = {setting.name for setting in grid.settings()}
    paid = [row for row in evaluation.rows.paid if row.setting in names]
    lines = lines_of(evaluation.measured, paid, grid.settings(), grid.full)
    told = (*notes, *_notes(lines, evaluation, grid))
    more = _by_class(evaluation.measured, lines)
    return Report(evaluation.header, lines, COLUMNS, FIGURES, told, evaluation.programs, more)


def _by_class(rows: Iterable[Row], lines: Sequence[Line]) -> tuple[Table, ...]:
    """Exact and tolerant shares of the largest classes; nothing where all questions are of one class."""
    sizes = Counter({row.id: row.kind for row in rows}.values())
    kinds = sorted(filter(None, sizes), key=lambda kind: (-sizes[kind], kind))[:MOST_CLASSES]
    if len(sizes) < 2 or not kinds:
        return ()
    body: list[tuple[str, ...]] = []
    for line in lines:
        classes = line["classes"] if isinstance(line["classes"], list) else []
        found = {one["class"]: one for one in classes if isinstance(one, dict)}
        body.append((str(line["setting"]), *(_both(found.get(kind, {})) for kind in kinds)))
    heads = ("setting", *(f"{kind} (n {sizes[kind]})" for kind in kinds))
    return (Table("By class: exact % / within 0.5 %", heads, tuple(body)),)


def _both(one: Line) -> str:
    return f"{percent(one.get('accuracy'), 1)} / {percent(one.get('accuracy_tolerant'), 1)}"


def _notes(lines: Sequence[Line], evaluation: Evaluation, grid: Grid) -> list[str]:
    notes: list[str] = []
    missing = len(evaluation.work.settings) * len(evaluation.data.items) - len(evaluation.measured)
    if missing:
        notes.append(f"{missing:,} rows are still to come.")
    if any(line["mcnemar"] for line in lines):
        notes.append(f"p: exact two-sided McNemar test on pairs, against {grid.full}. Intervals: Wilson, 95 %.")
    spread = _spread(lines)
    if spread:
        notes.append(f"Orders of worked examples, lowest to highest exact %: {spread}.")
    return notes


def _spread(lines: Iterable[Line]) -> str:
    """How far the figures of one setting are apart by the order of its examples."""
    groups: dict[str, list[float]] = {}
    for line in lines:
        if isinstance(share := line["accuracy"], float):
            groups.setdefault(str(line["setting"]).replace(f" order {line['order']}", ""), []).append(share)
    return ", ".join(
        f"{name} {percent(min(shares))} to {percent(max(shares))}" for name, shares in groups.items() if len(shares) > 1
    )


def chart_of(report: Report) -> Chart:
    """The bars of all settings, and a line over the numbers of examples for every kind that has several."""
    fit = report.fit_to_print()
    lines = [line for line in fit.lines if isinstance(line["accuracy"], float)]
    bars = tuple(_bar(line) for line in lines)
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if line["shots"] and not line["order"]:
            groups.setdefault(str(line["setting"]).replace(f"@{line['shots']}", ""), []).append(line)
    series = tuple(
        Series(name, tuple(_point(line) for line in sorted(those, key=lambda one: int(str(one["shots"])))))
        for name, those in groups.items()
        if len(those) > 1
    )
    title = f"{report.header.data}, {report.header.model}"
    legend = ("exact (95 % interval)", "within 0.5 %")
    return Chart(title, "right answers, %", bars, series, "worked examples", legend)


def _bounds(line: Line) -> tuple[float, float, float]:
    low, high = (
        (100 * float(str(bound)) for bound in line["interval"]) if isinstance(line["interval"], list) else (0.0, 0.0)
    )
    return 100 * float(str(line["accuracy"])), low, high


def _bar(line: Line) -> Bar:
    return Bar(str(line["setting"]), *_bounds(line), 100 * float(str(line["accuracy_tolerant"])))


def _point(line: Line) -> Point:
    return Point(float(str(line["shots"])), *_bounds(line))
