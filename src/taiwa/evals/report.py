"""Reports: one line of figures for each setting, as JSON, as a Markdown table, as cells for a terminal, and as a chart.

Also here: when an answer counts as right, what all evaluations count in the same way, and their statistics. Shares have Wilson's
interval (JASA 22, 1927); two settings are compared by McNemar's exact test on pairs (Psychometrika 12, 1947). Means have
percentile bootstrap intervals over the questions. nDCG is that of Järvelin and Kekäläinen (2002) with grades 0 and 1.

A scripted model plays written answers, so a report of one contains no figures. Charts need the extra `charts`.
"""

import logging
import math
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from taiwa.evals.run import EvalRow, Evaluation, Header, to_json
from taiwa.extras import missing_extra
from taiwa.kernel.errors import InputError, file_errors
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import plural
from taiwa.kernel.usage_limits import RunUsage

T = TypeVar("T")
Interval = tuple[float, float]
NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
DRAWS = 1_000


@value(tag="proportion")
class Proportion:
    """A share: `count` out of `of`."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share; None if `of` is 0."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> Interval | None:
        """The Wilson interval at 95 %; None if `of` is 0."""
        return wilson(self.count, self.of) if self.of else None


@value(tag="paired-difference")
class PairedComparison:
    """Two settings on the same items: the numbers that only the one or only the other got right, of `pairs`."""

    only_this: int
    only_that: int
    pairs: int

    @property
    def p(self) -> float:
        """The two-sided exact p-value."""
        return mcnemar(self.only_this, self.only_that)


def wilson(count: int, of: int) -> Interval:
    """Return the Wilson score interval of a share at 95 %.

    >>> low, high = wilson(15, 148)
    >>> round(low, 4), round(high, 4)
    (0.0624, 0.1605)
    """
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is not a share")
    share, square = count / of, NORMAL_95**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = NORMAL_95 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends, floating-point arithmetic would miss 0 and 1 by one digit.
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == of else min(1.0, middle + half)
    return low, high


def mcnemar(only_this: int, only_that: int) -> float:
    """Return the probability of a split of the discordant pairs at least this uneven, if neither setting is better.

    >>> mcnemar(1, 9)
    0.021484375
    """
    pairs, fewer = only_this + only_that, min(only_this, only_that)
    if fewer < 0:
        raise ValueError("a number of pairs must not be negative")
    tail = sum(math.comb(pairs, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**pairs)))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of an empty sequence."""
    return math.fsum(values) / len(values) if values else None


def quantile(values: Sequence[float], part: float = 0.5) -> float | None:
    """Return the value below which `part` of the values are, the median by default; None of an empty sequence."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else None


def bootstrap(values: Sequence[T], statistic: Callable[[Sequence[T]], float]) -> Interval | None:
    """Return the percentile interval of a statistic at 95 %; the draws are seeded by the number of values."""
    if not values:
        return None
    chance = random.Random(len(values))  # noqa: S311  (repeatable draws, not a secret)
    drawn = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS) - 1]


def bootstrap_mean(values: Sequence[float]) -> Interval | None:
    """Return the bootstrap interval of the mean at 95 %; None of an empty sequence."""
    return bootstrap(values, lambda drawn: math.fsum(drawn) / len(drawn))


def ndcg(ranking: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first k; a duplicate counts once.

    >>> ndcg(["a", "b"], ["b"], 10)
    0.6309297535714575
    """
    right = set(relevant)
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(dict.fromkeys(ranking[:k])) if one in right)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(k, len(right)))) if right else 0.0


def recall(ranking: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the share of the relevant that is among the first k."""
    right = set(relevant)
    return len(right & set(ranking[:k])) / len(right) if right else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Sequence[str]) -> float:
    """Return one divided by the rank of the first relevant element; 0 without one."""
    right = set(relevant)
    return next((1 / place for place, one in enumerate(ranking, 1) if one in right), 0.0)


FORMATS = ("png", "svg")
BAR_HEIGHT, LINES_HEIGHT, WIDTH, DOTS = 0.32, 2.8, 8.0, 150
MAX_LABEL_LENGTH = 120
FONTS = (
    "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "IPAexGothic", "Hiragino Sans", "Yu Gothic", "MS Gothic",
)  # fmt: skip
"""A character that is in none of these fonts is drawn as a box; SVG keeps text as text."""
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "taiwa", "font.family": [*FONTS], "font.size": 9, "axes.edgecolor": "#333333",
}  # fmt: skip
BLUE, LIGHT, INK = "#1f5fa8", "#a9c6e8", "#333333"
COLOURS = ("#1f5fa8", "#c0504d", "#4f8f3a", "#7d5ba6", "#c98a1b")


@value
class Point:
    """A share with its interval, in percent; `at` is its position on the axis of a series."""

    at: float
    share: float
    low: float
    high: float


@value
class Bar:
    """A labelled share; `second` is a more tolerant count of the same."""

    label: str
    point: Point
    second: float | None = None


@value
class Series:
    """A labelled line of points."""

    label: str
    points: tuple[Point, ...]


@value
class Chart:
    """The data of a chart: bars in percent of `unit`, and series over `axis`."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    series: tuple[Series, ...] = ()
    axis: str = ""
    legend: tuple[str, str] = ("exact", "within tolerance")


def draw(chart: Chart, folder: Path, stem: str = "chart") -> tuple[Path, ...]:
    """Draw a chart as PNG and SVG; equal charts give equal SVG.

    Raises:
        ConfigError: matplotlib is not installed.
        InputError: the chart has no bars, or the folder cannot be written.
    """
    if not chart.bars:
        raise InputError("the chart has no bars")
    try:
        matplotlib: Any = import_module("matplotlib")
        figures: Any = import_module("matplotlib.figure")
    except ImportError:
        raise missing_extra("a chart", "charts") from None
    paths = tuple(folder / f"{stem}.{form}" for form in FORMATS)
    with matplotlib.rc_context(STYLE), _quiet_font_log():
        figure = _figure(figures, chart)
        with file_errors(f"write a chart into {folder}", InputError):
            for path in paths:
                figure.savefig(path, dpi=DOTS, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _figure(figures: Any, chart: Chart) -> Any:  # noqa: ANN401  (of an extra: its types may not be here)
    upper = BAR_HEIGHT * len(chart.bars) + 0.6
    heights = [upper, LINES_HEIGHT] if chart.series else [upper]
    figure = figures.Figure(figsize=(WIDTH, sum(heights) + 0.6), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    figure.suptitle(_label(chart.title), fontsize=10, parse_math=False)
    _bars(axes[0][0], chart)
    if chart.series:
        _lines(axes[1][0], chart)
    return figure


@contextmanager
def _quiet_font_log() -> Generator[None]:
    """Suppress matplotlib's warnings about missing fonts, one per character."""
    log = logging.getLogger("matplotlib.font_manager")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        log.setLevel(before)


def _bars(axes: Any, chart: Chart) -> None:  # noqa: ANN401  (of an extra: its types may not be here)
    places = list(range(len(chart.bars)))
    seconds = [bar.second for bar in chart.bars]
    if any(second is not None for second in seconds):
        axes.barh(places, [second or 0 for second in seconds], height=0.7, color=LIGHT, label=chart.legend[1])
    shares, errors = _shares_and_errors([bar.point for bar in chart.bars])
    axes.barh(places, shares, height=0.45, color=BLUE, label=chart.legend[0])
    axes.errorbar(shares, places, xerr=errors, fmt="none", ecolor=INK, capsize=2.5, lw=1)
    axes.set_yticks(places, [_label(bar.label) for bar in chart.bars], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(_label(chart.unit), parse_math=False)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, frameon=False)


def _lines(axes: Any, chart: Chart) -> None:  # noqa: ANN401  (the same)
    for number, series in enumerate(chart.series):
        colour = COLOURS[number % len(COLOURS)]
        ats = [point.at for point in series.points]
        shares, errors = _shares_and_errors(series.points)
        axes.errorbar(
            ats, shares, yerr=errors, marker="o", color=colour, capsize=2.5, lw=1.3, label=_label(series.label)
        )
    axes.set_xticks(sorted({point.at for series in chart.series for point in series.points}))
    axes.set_ylim(0, 100)
    axes.set_xlabel(_label(chart.axis), parse_math=False)
    axes.set_ylabel(_label(chart.unit), parse_math=False)
    axes.grid(alpha=0.25)
    for text in axes.legend(fontsize=8).get_texts():
        text.set_parse_math(False)


def _shares_and_errors(points: Sequence[Point]) -> tuple[list[float], list[list[float]]]:
    shares = [point.share for point in points]
    return shares, [[point.share - point.low for point in points], [point.high - point.share for point in points]]


def _label(text: str) -> str:
    """Return a text as one bounded line without characters that XML forbids."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))[:MAX_LABEL_LENGTH]


TOLERANCE = Fraction(1, 200)
"""Half a percent: covers rounding and other tables of weights."""
NUMBER = re.compile(
    r"(?P<sign>[-+−]?)[$¥€£]?(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{0,40})(?:\.(?P<part>[0-9]{0,40}))?"
    r"(?:[eE](?P<power>[-+]?[0-9]{1,3}))?(?:/(?P<below>[0-9]{1,40}))?%?"
)
FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


def is_exact(answer: str, gold: str) -> bool:
    """Return whether two answers are the same text."""
    return bool(answer) and answer == gold


def is_near(answer: str, gold: str) -> bool:
    """Return whether two answers are the same number within a share of the right one, or else the same words.

    >>> is_near("25.9", "25.93"), is_near("26.5", "25.93"), is_near("1,200", "1200.0")
    (True, False, True)
    """
    stated, right = parse_number(answer), parse_number(gold)
    if stated is None or right is None:
        return bool(answer.strip()) and answer.split() == gold.split()
    return abs(stated - right) <= TOLERANCE * abs(right)


def parse_number(text: str) -> Fraction | None:
    """Parse a number with separators, currency, percent, fraction or exponent; None for any other text.

    >>> parse_number("1,225.50"), parse_number("3/4"), parse_number("many")
    (Fraction(2451, 2), Fraction(3, 4), None)
    """
    written = NUMBER.fullmatch(text.strip().translate(FULL_WIDTH).replace(" ", ""))
    if written is None or not (written["whole"] or written["part"]):
        return None
    digits, part = written["whole"].replace(",", ""), written["part"] or ""
    below = int(written["below"] or 1)
    if not below:
        return None
    number = Fraction(int(f"{digits}{part}"), 10 ** len(part)) * Fraction(10) ** int(written["power"] or 0) / below
    return -number if written["sign"] in ("-", "−") else number


def group_by_setting(rows: Iterable[EvalRow], settings: Sequence[str]) -> dict[str, list[EvalRow]]:
    """Group rows by setting, in the order of the settings; settings without rows are left out."""
    groups: dict[str, list[EvalRow]] = {name: [] for name in settings}
    for row in rows:
        groups.setdefault(row.setting, []).append(row)
    return {name: group for name, group in groups.items() if group}


def share_marked(rows: Iterable[EvalRow], mark: str) -> Proportion:
    """Return the share of rows whose field is true; failed rows count as false."""
    marks = [row.found.get(mark) is True for row in rows]
    return Proportion(sum(marks), len(marks))


def compare_settings(these: Iterable[EvalRow], those: Iterable[EvalRow], mark: str) -> PairedComparison:
    """Compare two settings on the items measured in both."""
    other = {row.id: row.found.get(mark) is True for row in those if row.error is None}
    both = [(row.found.get(mark) is True, other[row.id]) for row in these if row.error is None and row.id in other]
    return PairedComparison(both.count((True, False)), both.count((False, True)), len(both))


def comparison_json(comparison: PairedComparison, against: str) -> Json:
    """Return a paired test as JSON."""
    return {
        "against": against, "pairs": comparison.pairs, "only_this": comparison.only_this, "only_that": comparison.only_that, "p": comparison.p,
    }  # fmt: skip


def interval_json(interval: tuple[float, float] | None) -> Json:
    """Return an interval as JSON; None stays None."""
    return None if interval is None else [round(bound, DIGITS) for bound in interval]


def sum_field(rows: Iterable[EvalRow], name: str) -> int:
    """Return the sum of a numeric field."""
    return sum(number for row in rows if isinstance(number := row.found.get(name), int))


def count_field(rows: Iterable[EvalRow], name: str) -> dict[str, Json]:
    """Count the values of a field, a text or counts by text; the most frequent first."""
    counts: Counter[str] = Counter()
    for row in rows:
        part = row.found.get(name)
        if isinstance(part, str) and part:
            counts[part] += 1
        elif isinstance(part, Mapping):
            counts.update({word: number for word, number in part.items() if isinstance(number, int)})
    return dict(counts.most_common())


def count_errors(rows: Iterable[EvalRow]) -> dict[str, Json]:
    """Count the errors of rows, the most frequent first."""
    return dict(Counter(row.error.code for row in rows if row.error is not None).most_common())


def usage_and_cost(rows: Sequence[EvalRow], replaced: Iterable[EvalRow] = ()) -> dict[str, Json]:
    """Return usage and cost of rows, replaced rows included; null if the server did not report it."""
    spent = sum((row.spent for row in (*rows, *replaced)), RunUsage())
    known = not spent.calls_without_usage
    usage, most = spent.usage, spent.estimated
    return {
        "requests": spent.requests,
        "input_tokens": usage.input_tokens if known else None,
        "cached_tokens": usage.cache_read_tokens if known else None,
        "output_tokens": usage.output_tokens if known else None,
        "tokens_at_most": None if spent.max_cost is None else usage.input_tokens + usage.output_tokens + most.input_tokens + most.output_tokens,
        "cost": None if spent.cost is None else spent.cost / 1e9,
        "max_cost": None if spent.max_cost is None else spent.max_cost / 1e9,
        "wall_ms": round(sum(row.spent.seconds for row in rows) * 1000),
        "ms_per_item": round(sum(row.spent.seconds for row in rows) * 1000 / len(rows), 1) if rows else None,
    }  # fmt: skip


NO_FIGURE = "no figure"
DIGITS = 6
Line = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: head, cell text, and whether it is a figure of the quality of the model.

    Columns that are not `main` are left out in a terminal.
    """

    head: str
    show: Callable[[Line], str]
    figure: bool = False
    main: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """An additional table of figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The lines of all settings; `figures` names the fields that measure the model, as all of `more` does."""

    header: Header
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    figures: frozenset[str]
    notes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    more: tuple[Table, ...] = ()

    def without_scripted_figures(self) -> "Report":
        """Return the report without figures if the model is scripted."""
        if not self.header.scripted:
            return self
        lines = tuple({**line, **dict.fromkeys(self.figures & line.keys())} for line in self.lines)
        note = "The model is scripted: it plays written answers, so there are no figures."
        return replace(self, lines=lines, notes=(note, *self.notes), more=())

    def to_json(self) -> dict[str, Json]:
        """Return the report as one JSON object."""
        fit = self.without_scripted_figures()
        rows: list[Json] = [dict(line) for line in fit.lines]
        return {**to_json(fit.header), "programs": [*fit.programs], "notes": [*fit.notes], "rows": rows}


def table_cells(report: Report, *, narrow: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells of the table; a narrow one has the main columns only."""
    fit, scripted = report.without_scripted_figures(), report.header.scripted
    columns = [column for column in fit.columns if column.main or not narrow]
    heads = [column.head for column in columns]
    hidden = {column.head for column in columns if scripted and column.figure}
    return heads, [[NO_FIGURE if one.head in hidden else one.show(line) for one in columns] for line in fit.lines]


def to_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    fit, header = report.without_scripted_figures(), report.header
    about = [
        f"# {_markdown_cell(header.evaluation)}: {_markdown_cell(header.data)}, {_markdown_cell(header.model or 'no model')}",
        "",
        f"{header.date} · taiwa {', '.join(report.programs) or header.program} · data SHA-256 {header.data_hash[:16]}…",
        "",
    ]
    lines = [*about, *_markdown_table(*table_cells(report)), *(f"\n{note}" for note in fit.notes)]
    for table in fit.more:
        lines += ["", f"## {_markdown_cell(table.title)}", "", *_markdown_table(table.heads, table.rows)]
    return "\n".join([*lines, ""])


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return [f"| {' | '.join(map(_markdown_cell, row))} |" for row in body]


def _markdown_cell(text: str) -> str:
    """Escape a text for a table cell."""
    if set(text) <= set("-:"):
        return text
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


def percent(part: Json, digits: int = 2) -> str:
    """Format a share in percent.

    >>> percent(0.8584615), percent(None)
    ('85.85', '–')
    """
    return f"{100 * part:.{digits}f}" if isinstance(part, (int, float)) else "–"


def decimal_text(number: Json, digits: int = 3) -> str:
    """Format a number with a fixed number of decimals; anything else as a dash."""
    return f"{number:.{digits}f}" if isinstance(number, (int, float)) else "–"


def with_interval(field: str, interval: str) -> Callable[[Line], str]:
    """Return a formatter of a share in percent with its interval."""
    return lambda line: percent(line.get(field)) + _between(line.get(interval), partial(percent, digits=1))


def decimal_with_interval(name: str) -> Callable[[Line], str]:
    """Return a formatter of a number with its interval."""
    return lambda line: decimal_text(line.get(name)) + _between(line.get(f"{name}_interval"), decimal_text)


def _between(bounds: Json, text: Callable[[Json], str]) -> str:
    return f" [{text(bounds[0])}, {text(bounds[1])}]" if isinstance(bounds, list) else ""


def decimal(name: str, digits: int = 3) -> Callable[[Line], str]:
    """Return a formatter of a number with a fixed number of decimals."""
    return lambda line: decimal_text(line.get(name), digits)


def plain(field: str) -> Callable[[Line], str]:
    """Return a formatter of a number or a text; counts become `2 a, 1 b`."""

    def show(line: Line) -> str:
        match line.get(field):
            case None:
                return "–"
            case dict(counts):
                return ", ".join(f"{number} {word}" for word, number in counts.items()) or "0"
            case int(number):
                return f"{number:,}"
            case float(number):
                return f"{number:g}"
            case part:
                return str(part)

    return show


def missing_note(evaluation: Evaluation) -> list[str]:
    """Return a note on rows that are missing and on those of another form."""
    missing, skipped = evaluation.missing, len(evaluation.data.skipped)
    notes = [f"{plural(missing, 'row')} {'is' if missing == 1 else 'are'} missing."] if missing else []
    if skipped:
        has, was = ("has", "was") if skipped == 1 else ("have", "were")
        notes.append(f"{plural(skipped, 'row')} of the data {has} another form and {was} skipped.")
    return notes


@dataclass(frozen=True, slots=True)
class SetReport:
    """How an evaluation over several sets is reported: figures of rows, columns, and the charted field with its unit."""

    line: Callable[[Sequence[EvalRow]], "dict[str, Json]"]
    columns: tuple[Column, ...]
    charted: str
    unit: str
    notes: tuple[str, ...] = ()


HEAD_COLUMNS = (Column("set", plain("set")), Column("setting", plain("setting")), Column("n", plain("n")))
FAILED_COLUMN = Column("failed", plain("failed"), main=False)
NEUTRAL_FIELDS = frozenset(
    "setting set n failed errors to_ask answerable unanswerable requests input_tokens cached_tokens output_tokens "
    "tokens_at_most cost cost_at_most wall_ms ms_per_item p50_ms p99_ms "
    "never_ask_cost_1 never_ask_cost_3 always_ask_cost_1 always_ask_cost_3".split()
)
"""Fields of a line that do not measure the quality of the model."""


def lines_by_set(
    rows: Iterable[EvalRow], settings: Sequence[str], sets: Sequence[str],
    line: Callable[[Sequence[EvalRow]], Mapping[str, Json]], paid: Iterable[EvalRow] = (),
) -> "tuple[dict[str, Json], ...]":  # fmt: skip
    """Return a line for each set and setting that has rows; the kind of an item names its set."""
    groups: dict[tuple[str, str], list[EvalRow]] = {(one, setting): [] for one in sets for setting in settings}
    for row in rows:
        groups.setdefault((row.kind, row.setting), []).append(row)
    replaced = tuple(paid)
    lines: list[dict[str, Json]] = []
    for (one, setting), group in groups.items():
        if not group:
            continue
        group.sort(key=lambda row: row.id)  # bootstrap draws must not depend on the order of completion
        failed = sum(row.error is not None for row in group)
        before = (row for row in replaced if (row.kind, row.setting) == (one, setting))
        lines.append({
            "setting": setting, "set": one, "n": len(group), **line(group), "failed": failed, "errors": count_errors(group),
            **usage_and_cost(group, before),
        })  # fmt: skip
    return tuple(lines)


def set_report(
    evaluation: Evaluation, form: SetReport, lines: Sequence[Line] | None = None, notes: Sequence[str] = ()
) -> Report:
    """Return the report of the rows measured so far, by set and setting; `lines` replaces the lines of `form`."""
    settings = evaluation.task.settings
    if lines is None:
        sets = tuple(dict.fromkeys(item.kind for item in evaluation.data.items))
        paid = [row for row in evaluation.rows.paid if row.setting in settings]
        lines = lines_by_set(evaluation.measured, settings, sets, form.line, paid)
    figures = frozenset(name for line in lines for name in line) - NEUTRAL_FIELDS
    all_notes = (*notes, *form.notes, *missing_note(evaluation))
    return Report(evaluation.header, tuple(lines), form.columns, figures, all_notes, evaluation.programs)


def set_chart(report: Report, form: SetReport) -> Chart:
    """Return a bar for each line that has the charted field."""
    bars: list[Bar] = []
    for line in report.without_scripted_figures().lines:
        share, bounds = line.get(form.charted), line.get(f"{form.charted}_interval")
        if isinstance(share, (int, float)) and isinstance(bounds, list):
            low, high = (min(max(100 * float(str(bound)), 0.0), 100.0) for bound in bounds)
            middle = 100 * share
            bars.append(Bar(f"{line['set']}: {line['setting']}", Point(0, middle, min(low, middle), max(high, middle))))
    title = f"{report.header.evaluation}: {report.header.data}, {report.header.model or 'no model'}"
    return Chart(title, form.unit, tuple(bars), legend=("figure (95 % interval)", ""))


def number_field(row: EvalRow, name: str) -> float:
    """Return a numeric field of a row; 0 if it is missing."""
    number = row.found.get(name)
    return float(number) if isinstance(number, (int, float)) else 0.0


def rounded(number: float | None) -> float | None:
    """Round a figure for JSON."""
    return None if number is None else round(number, DIGITS)
