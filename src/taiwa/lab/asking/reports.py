"""The reports of the four evaluations: lines, columns, notes and charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taiwa.kernel.records import Json
from taiwa.lab.asking.answering import CITED, EXTRACTIVE, WITHOUT
from taiwa.lab.asking.lines import (
    Line,
    answer_line,
    by_set,
    clarify_line,
    found_line,
    paired_lines,
    retrieve_line,
    told_apart,
)
from taiwa.lab.asking.looking import LAST, WITH_HISTORY
from taiwa.lab.asking.sample import sample_of
from taiwa.lab.evaluation.chart import Bar, Chart
from taiwa.lab.evaluation.conduct import Evaluation
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.report import Column, Report, percent, plain, with_interval
from taiwa.lab.evaluation.rows import Row

__all__ = ["KINDS", "Kind", "chart_of", "report_of"]

Show = Callable[[Mapping[str, Json]], str]


def decimal(name: str, digits: int = 3) -> Show:
    """A number with a few digits."""
    return lambda line: f"{number:.{digits}f}" if isinstance(number := line.get(name), (int, float)) else "–"


def decimal_between(name: str, digits: int = 3) -> Show:
    """A number with its interval."""

    def show(line: Mapping[str, Json]) -> str:
        bounds = line.get(f"{name}_interval")
        between = f" [{_shown(bounds[0], digits)}, {_shown(bounds[1], digits)}]" if isinstance(bounds, list) else ""
        return f"{decimal(name, digits)(line)}{between}"

    return show


def _shown(number: Json, digits: int) -> str:
    return f"{number:.{digits}f}" if isinstance(number, (int, float)) else "–"


def costs(ratio: int) -> Show:
    """A cost beside those of never asking and of always asking."""
    names = (f"cost_{ratio}", f"never_ask_cost_{ratio}", f"always_ask_cost_{ratio}")
    return lambda line: " / ".join(_shown(line.get(name), 2) for name in names)


def _gain(line: Mapping[str, Json]) -> str:
    gain = line.get("gain")
    if not isinstance(gain, Mapping):
        return "–"
    bounds = gain["interval"]
    between = f" [{float(str(bounds[0])):+.3f}, {float(str(bounds[1])):+.3f}]" if isinstance(bounds, list) else ""
    return f"{float(str(gain['ndcg10'])):+.3f}{between}"


HEAD = (Column("set", plain("set")), Column("setting", plain("setting")), Column("n", plain("n")))
FAILED = Column("failed", plain("failed"), main=False)
CLARIFY = (
    *HEAD,
    Column("to ask", plain("to_ask")),
    Column("AUC", decimal_between("auc"), figure=True),
    Column("asked", plain("asked"), figure=True),
    Column("F1", decimal_between("f1"), figure=True, main=False),
    Column("precision %", with_interval("precision", "precision_interval"), figure=True),
    Column("recall %", with_interval("recall", "recall_interval"), figure=True),
    Column("recall % at 5 % false", with_interval("recall_at_5", "recall_at_5_interval"), figure=True, main=False),
    Column("precision % there", with_interval("precision_at_5", "precision_at_5_interval"), figure=True, main=False),
    Column("cost 1:1 / never / always", costs(1), figure=True),
    Column("cost 3:1 / never / always", costs(3), figure=True),
    Column("Brier", decimal("brier"), figure=True, main=False),
    Column("ECE", decimal("ece"), figure=True, main=False),
    Column("rounds", decimal("rounds", 2), figure=True, main=False),
    FAILED,
)
FOUND = (
    *HEAD,
    Column("nDCG@5", decimal_between("ndcg5"), figure=True),
    Column("nDCG@10", decimal_between("ndcg10"), figure=True),
    Column("recall@5", decimal("recall5"), figure=True, main=False),
    Column("recall@10", decimal_between("recall10"), figure=True),
    Column("MRR@10", decimal_between("mrr"), figure=True, main=False),
)
RETRIEVE = (*FOUND, Column("p50 ms", decimal("p50_ms", 2)), Column("p99 ms", decimal("p99_ms", 2), main=False), FAILED)
REWRITE = (*FOUND, Column(f"nDCG@10 over {LAST}", _gain, figure=True), FAILED)
ANSWER = (
    *HEAD,
    Column("quotes standing %", lambda line: percent(line.get("quotes_standing"), 1), figure=True),
    Column("right passage %", with_interval("citation_precision", "citation_precision_interval"), figure=True),
    Column("first one right %", with_interval("first_right", "first_right_interval"), figure=True, main=False),
    Column("refused, not there %", with_interval("refused_unanswerable", "refused_unanswerable_interval"), figure=True),
    Column("refused, there %", with_interval("refused_answerable", "refused_answerable_interval"), figure=True),
    Column("holds the answer %", with_interval("holds", "holds_interval"), figure=True),
    Column("F1", decimal("f1"), figure=True, main=False),
    Column("exact %", with_interval("exact", "exact_interval"), figure=True, main=False),
    Column("dropped quotations", plain("dropped_quotations"), figure=True, main=False),
    FAILED,
)
WITHOUT_FIGURES = frozenset(
    "setting set n failed errors to_ask answerable unanswerable requests input_tokens cached_tokens output_tokens "
    "tokens_at_most cost cost_at_most wall_ms ms_per_item p50_ms p99_ms "
    "never_ask_cost_1 never_ask_cost_3 always_ask_cost_1 always_ask_cost_3".split()
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the evaluations: how its rows add up, its columns, and what its chart shows."""

    line: Callable[[Sequence[Row]], Line]
    columns: tuple[Column, ...]
    charted: str
    unit: str
    notes: tuple[str, ...]


INTERVALS = "Intervals at 95 %: Wilson's for shares, DeLong's for AUC, of 1,000 draws of the questions for the others."
KINDS = {
    "clarify": Kind(
        clarify_line, CLARIFY, "auc", "AUC, % (50 is chance)",
        (
            "A cost is what a turn costs on average where a needless question costs 1 and a missing one 1 or 3; beside it never"
            " asking and always asking.",
            "At 5 % false: the scores are cut where at most one of twenty clear turns is asked about, on these very turns.",
            INTERVALS,
        ),
    ),
    "rewrite": Kind(found_line, REWRITE, "ndcg10", "nDCG@10, %", (INTERVALS,)),
    "retrieve": Kind(retrieve_line, RETRIEVE, "ndcg10", "nDCG@10, %", (INTERVALS,)),
    "answer": Kind(
        answer_line, ANSWER, "citation_precision", "citations of the right passage, %",
        ("Withheld: the passages that answer are taken out, so that the right answer is that it is not there.", INTERVALS),
    ),
}  # fmt: skip


def report_of(evaluation: Evaluation, notes: Sequence[str] = ()) -> Report:
    """The report of what an evaluation has so far."""
    name, settings = evaluation.work.name, evaluation.work.settings
    items = {item.id: item for item in evaluation.data.items}
    rows = [_counted(name, row, items[row.id]) for row in evaluation.measured]
    kind = KINDS[name]
    sets = tuple(dict.fromkeys(item.kind for item in evaluation.data.items))
    paid = [row for row in evaluation.rows.paid if row.setting in settings]
    lines = by_set(rows, settings, sets, kind.line, paid)
    if name == "retrieve":  # a question alone and in no dialogue is the same
        within = {item.kind for item in items.values() if sample_of(item).history}
        lines = tuple(line for line in lines if line["setting"] != WITH_HISTORY or line["set"] in within)
    if name == "rewrite":
        lines = paired_lines(lines, rows, LAST)
    told = (*notes, *kind.notes, *(_apart(rows) if name == "answer" else ()))
    missing = len(settings) * len(evaluation.data.items) - len(rows)
    if missing:
        told = (*told, f"{missing:,} rows are still to come.")
    figures = frozenset(name for line in lines for name in line) - WITHOUT_FIGURES
    return Report(evaluation.header, lines, kind.columns, figures, told, evaluation.programs)


def _counted(name: str, row: Row, item: Item) -> Row:
    """A row that failed, as what it then was: nobody was asked back, and nothing was answered or refused."""
    if row.error is None or name not in ("clarify", "answer"):
        return row
    if name == "clarify":
        return replace(row, found={"should": item.more.get("ask") is True, "asked": False, "score": 0.0, "rounds": 0})
    there = item.more.get("answerable") is True and row.setting not in (
        WITHOUT.format(EXTRACTIVE),
        WITHOUT.format(CITED),
    )
    return replace(row, found={"there": there, "refused": False})


def _apart(rows: Iterable[Row]) -> tuple[str, ...]:
    """How well the evidence alone tells whether the passage is there."""
    found = told_apart(rows, (EXTRACTIVE, WITHOUT.format(EXTRACTIVE)))
    shown = ", ".join(
        f"{name} {decimal_between('auc')(line)}" for name, line in found.items() if line["auc"] is not None
    )
    return (f"What is there told from what is not by the evidence alone, AUC: {shown}.",) if shown else ()


def chart_of(report: Report) -> Chart:
    """A bar for each line that has the figure of its kind."""
    kind = KINDS[report.header.evaluation]
    fit = report.fit_to_print()
    bars = [bar for line in fit.lines if (bar := _bar(line, kind.charted)) is not None]
    title = f"{report.header.evaluation}: {report.header.data}, {report.header.model or 'no model'}"
    return Chart(title, kind.unit, tuple(bars), legend=("figure (95 % interval)", ""))


def _bar(line: Mapping[str, Json], name: str) -> Bar | None:
    share, bounds = line.get(name), line.get(f"{name}_interval")
    if not isinstance(share, (int, float)) or not isinstance(bounds, list):
        return None
    low, high = (min(max(100 * float(str(bound)), 0.0), 100.0) for bound in bounds)
    middle = 100 * share
    return Bar(f"{line['set']}: {line['setting']}", middle, min(low, middle), max(high, middle))
