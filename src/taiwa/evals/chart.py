"""Charts of reports: a bar with its interval for each setting, and a line for each series. Needs the extra `charts`."""

import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import value

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
    """A share with its interval, in percent; `at` is its place on the axis of a series."""

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
        raise ConfigError("charts require matplotlib; install it with: pip install 'taiwa[charts]'") from None
    paths = tuple(folder / f"{stem}.{form}" for form in FORMATS)
    with matplotlib.rc_context(STYLE), _quiet_font_log():
        figure = _figure(figures, chart)
        try:
            for path in paths:
                figure.savefig(path, dpi=DOTS, metadata={"Date": None} if path.suffix == ".svg" else None)
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}") from None
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
