"""Reports of the evaluations of dialogues: lines, columns, notes and charts."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from evals.dialogue.answering import CITED, EXTRACTIVE, WITHOUT
from evals.dialogue.rewriting import LAST_TURN
from evals.dialogue.statistics import (
    OperatingPoint,
    auc,
    bootstrap_f1,
    brier,
    calibration_error,
    f1,
    mean_cost,
    operating_point,
)
from taiwa.evals.data import Item
from taiwa.evals.report import (
    FAILED_COLUMN,
    HEAD_COLUMNS,
    Chart,
    Column,
    Proportion,
    Report,
    SetReport,
    bootstrap_mean,
    decimal,
    decimal_text,
    decimal_with_interval,
    interval_json,
    lines_by_set,
    mean,
    number_field,
    percent,
    plain,
    rounded,
    set_chart,
    set_report,
    with_interval,
)
from taiwa.evals.retrieval import INTERVALS, RANKING_COLUMNS, RETRIEVAL_REPORT, ranking_line, retrieval_report
from taiwa.evals.run import EvalRow, Evaluation
from taiwa.kernel.serialization import Json

__all__ = ["REPORTS", "dialogue_chart", "dialogue_report"]

Line = dict[str, Json]
RATIOS = (1, 3)


def clarify_line(rows: Sequence[EvalRow]) -> Line:
    """Return the figures of clarifying questions: ranking of scores, decisions, probabilities."""
    labels = [row.found.get("should") is True for row in rows]
    scores = [number_field(row, "score") for row in rows]
    line: Line = {"to_ask": sum(labels)}
    line |= {f"never_ask_cost_{ratio}": rounded(mean_cost([False] * len(labels), labels, ratio)) for ratio in RATIOS}
    line |= {f"always_ask_cost_{ratio}": rounded(mean_cost([True] * len(labels), labels, ratio)) for ratio in RATIOS}
    line |= _auc_json(auc(scores, labels))
    line |= _operating_point_json(operating_point(scores, labels))
    given = [row for row in rows if isinstance(row.found.get("chance"), (int, float))]
    chances = [number_field(row, "chance") for row in given]
    known = [row.found.get("should") is True for row in given]
    return line | _decisions(rows) | {
        "brier": rounded(brier(chances, known)), "ece": rounded(calibration_error(chances, known)),
    }  # fmt: skip


def _auc_json(found: tuple[float, tuple[float, float]] | None) -> Line:
    if found is None:
        return {"auc": None, "auc_interval": None}
    return {"auc": rounded(found[0]), "auc_interval": interval_json(found[1])}


def _operating_point_json(found: OperatingPoint) -> Line:
    return {
        "recall_at_5": found.recall.share, "recall_at_5_interval": interval_json(found.recall.interval),
        "precision_at_5": found.precision.share, "precision_at_5_interval": interval_json(found.precision.interval),
        "false_at_5": found.false.share,
    }  # fmt: skip


def _decisions(rows: Sequence[EvalRow]) -> Line:
    """Return the figures of decisions; null for signals, which do not decide."""
    deciding = [row for row in rows if isinstance(row.found.get("asked"), bool)]
    if not deciding:
        return dict.fromkeys(
            ("asked", "f1", "f1_interval", "precision", "precision_interval", "recall", "recall_interval", "rounds", "why",
             *(f"cost_{ratio}" for ratio in RATIOS), *(f"cost_{ratio}_interval" for ratio in RATIOS)),
        )  # fmt: skip
    asked = [row.found["asked"] is True for row in deciding]
    labels = [row.found.get("should") is True for row in deciding]
    right = sum(one and label for one, label in zip(asked, labels, strict=True))
    precision, recall = Proportion(right, sum(asked)), Proportion(right, sum(labels))
    reasons: dict[str, Json] = dict(
        Counter(str(row.found.get("why")) for row in deciding if row.found["asked"] is True)
    )
    line: Line = {
        "asked": sum(asked), "f1": rounded(f1(asked, labels)),
        "f1_interval": interval_json(bootstrap_f1(asked, labels)),
        "precision": precision.share, "precision_interval": interval_json(precision.interval),
        "recall": recall.share, "recall_interval": interval_json(recall.interval),
        "rounds": rounded(mean([number_field(row, "rounds") for row in deciding])), "why": reasons,
    }  # fmt: skip
    for ratio in RATIOS:
        costs = [mean_cost([one], [label], ratio) or 0.0 for one, label in zip(asked, labels, strict=True)]
        line |= {
            f"cost_{ratio}": rounded(mean(costs)), f"cost_{ratio}_interval": interval_json(bootstrap_mean(costs)),
        }  # fmt: skip
    return line


def lines_with_gain(lines: Sequence[Line], rows: Iterable[EvalRow], against: str) -> tuple[Line, ...]:
    """Return the lines with the gain of each setting in nDCG@10 over another, paired by question."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row.kind, row.setting), {})[row.id] = number_field(row, "ndcg10")
    result: list[Line] = []
    for line in lines:
        this, that = found[str(line["set"]), str(line["setting"])], found.get((str(line["set"]), against), {})
        gains = [value - that[name] for name, value in sorted(this.items()) if name in that]
        compared = gains and line["setting"] != against
        gain: Json = {
            "against": against, "pairs": len(gains), "ndcg10": rounded(mean(gains)),
            "interval": interval_json(bootstrap_mean(gains)),
        }  # fmt: skip
        result.append({**line, "gain": gain if compared else None})
    return tuple(result)


def answer_line(rows: Sequence[EvalRow]) -> Line:
    """Return the figures of answers: citations, refusals, overlap; a failed row neither answers nor refuses."""

    def proportion(field: str, of: Sequence[EvalRow]) -> Proportion:
        return Proportion(sum(row.found.get(field) is True for row in of), len(of))

    def total(field: str) -> int:
        return sum(found for row in there if isinstance(found := row.found.get(field), int))

    counted = [row for row in rows if row.found.get("counts") is not False]
    there = [row for row in counted if row.found.get("there") is True]
    absent = [row for row in counted if row.found.get("there") is False]
    cited = total("citations")
    shares = {
        "quotes_standing": Proportion(total("standing"), cited),
        "first_right": proportion("first", [row for row in there if row.found.get("citations")]),
        "citation_precision": Proportion(total("right"), cited),
        "refused_unanswerable": proportion("refused", absent),
        "refused_answerable": proportion("refused", there),
    }
    line: Line = {"n": len(counted), "answerable": len(there), "unanswerable": len(absent), "citations": cited}
    for name, share in shares.items():
        line |= {name: share.share, f"{name}_interval": interval_json(share.interval)}
    line |= {"unsupported_claims": total("unsupported")}
    if not any("f1" in row.found for row in there):
        return line | dict.fromkeys(("exact", "exact_interval", "f1", "f1_interval", "holds", "holds_interval"))
    # A refused answer contains no expected one.
    compared = [row for row in there if "f1" in row.found or row.found.get("refused") is True or row.error is not None]
    overlaps = [number_field(row, "f1") for row in compared]
    for name in ("exact", "holds"):
        share = proportion(name, compared)
        line |= {name: share.share, f"{name}_interval": interval_json(share.interval)}
    return line | {"f1": rounded(mean(overlaps)), "f1_interval": interval_json(bootstrap_mean(overlaps))}


def cost_comparison(ratio: int) -> Callable[[Mapping[str, Json]], str]:
    """Return a formatter of a cost beside those of never and of always asking."""
    names = (f"cost_{ratio}", f"never_ask_cost_{ratio}", f"always_ask_cost_{ratio}")
    return lambda line: " / ".join(decimal_text(line.get(name), 2) for name in names)


def _gain_text(line: Mapping[str, Json]) -> str:
    gain = line.get("gain")
    if not isinstance(gain, Mapping):
        return "–"
    bounds = gain["interval"]
    between = f" [{float(str(bounds[0])):+.3f}, {float(str(bounds[1])):+.3f}]" if isinstance(bounds, list) else ""
    return f"{float(str(gain['ndcg10'])):+.3f}{between}"


CLARIFY = (
    *HEAD_COLUMNS,
    Column("to ask", plain("to_ask")),
    Column("AUC", decimal_with_interval("auc"), figure=True),
    Column("asked", plain("asked"), figure=True),
    Column("F1", decimal_with_interval("f1"), figure=True, main=False),
    Column("precision %", with_interval("precision", "precision_interval"), figure=True),
    Column("recall %", with_interval("recall", "recall_interval"), figure=True),
    Column("recall % at 5 % false", with_interval("recall_at_5", "recall_at_5_interval"), figure=True, main=False),
    Column("precision % there", with_interval("precision_at_5", "precision_at_5_interval"), figure=True, main=False),
    Column("cost 1:1 / never / always", cost_comparison(1), figure=True),
    Column("cost 3:1 / never / always", cost_comparison(3), figure=True),
    Column("Brier", decimal("brier"), figure=True, main=False),
    Column("ECE", decimal("ece"), figure=True, main=False),
    Column("rounds", decimal("rounds", 2), figure=True, main=False),
    FAILED_COLUMN,
)
REWRITE = (*RANKING_COLUMNS, Column(f"nDCG@10 over {LAST_TURN}", _gain_text, figure=True), FAILED_COLUMN)
ANSWER = (
    *HEAD_COLUMNS,
    Column("quotes standing %", lambda line: percent(line.get("quotes_standing"), 1), figure=True),
    Column("right passage %", with_interval("citation_precision", "citation_precision_interval"), figure=True),
    Column("first one right %", with_interval("first_right", "first_right_interval"), figure=True, main=False),
    Column("refused, not there %", with_interval("refused_unanswerable", "refused_unanswerable_interval"), figure=True),
    Column("refused, there %", with_interval("refused_answerable", "refused_answerable_interval"), figure=True),
    Column("holds the answer %", with_interval("holds", "holds_interval"), figure=True),
    Column("F1", decimal("f1"), figure=True, main=False),
    Column("exact %", with_interval("exact", "exact_interval"), figure=True, main=False),
    FAILED_COLUMN,
)
REPORTS = {
    "clarify": SetReport(
        clarify_line, CLARIFY, "auc", "AUC, % (50 is chance)",
        (
            "A cost is the mean cost of a turn, where a needless question costs 1 and a missing one 1 or 3; beside it the costs"
            " of never and of always asking.",
            "At 5 % false: the threshold on scores at which at most one of twenty clear turns is asked about, on these very"
            " turns.",
            INTERVALS,
        ),
    ),
    "rewrite": SetReport(ranking_line, REWRITE, "ndcg10", "nDCG@10, %", (INTERVALS,)),
    "retrieve": RETRIEVAL_REPORT,
    "answer": SetReport(
        answer_line, ANSWER, "citation_precision", "citations of the right passage, %",
        ("Withheld: the passages that answer are excluded, so the correct answer is that it is not there.", INTERVALS),
    ),
}  # fmt: skip


def dialogue_report(evaluation: Evaluation, notes: Sequence[str] = ()) -> Report:
    """Return the report of the rows measured so far."""
    name, settings = evaluation.task.name, evaluation.task.settings
    if name == "retrieve":
        return retrieval_report(evaluation, notes)
    items = {item.id: item for item in evaluation.data.items}
    rows = [_failed_as_measured(name, row, items[row.id]) for row in evaluation.measured]
    form, sets = REPORTS[name], tuple(dict.fromkeys(item.kind for item in evaluation.data.items))
    paid = [row for row in evaluation.rows.paid if row.setting in settings]
    lines = lines_by_set(rows, settings, sets, form.line, paid)
    if name == "rewrite":
        lines = lines_with_gain(lines, rows, LAST_TURN)
    report = set_report(evaluation, form, lines, notes)
    return replace(report, notes=(*report.notes, *_evidence_notes(rows))) if name == "answer" else report


def _failed_as_measured(name: str, row: EvalRow, item: Item) -> EvalRow:
    """Return how a failed row counts: nothing was asked, answered or refused."""
    if row.error is None or name not in ("clarify", "answer"):
        return row
    if name == "clarify":
        return replace(row, found={"should": item.more.get("ask") is True, "asked": False, "score": 0.0, "rounds": 0})
    withheld = row.setting in (WITHOUT.format(EXTRACTIVE), WITHOUT.format(CITED))
    return replace(row, found={"there": item.more.get("answerable") is True and not withheld, "refused": False})


def _evidence_notes(rows: Iterable[EvalRow]) -> tuple[str, ...]:
    """Report by set how well the evidence alone separates answerable from unanswerable questions (AUC)."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        extractive = row.setting in (EXTRACTIVE, WITHOUT.format(EXTRACTIVE))
        if extractive and row.found.get("counts") is not False and "chance" in row.found:
            groups.setdefault(row.kind, []).append((number_field(row, "chance"), row.found.get("there") is True))
    lines = {
        name: _auc_json(auc([chance for chance, _ in pairs], [there for _, there in pairs]))
        for name, pairs in groups.items()
    }
    shown = ", ".join(
        f"{name} {decimal_with_interval('auc')(line)}" for name, line in lines.items() if line["auc"] is not None
    )
    return (f"AUC of the evidence alone, answerable against unanswerable: {shown}.",) if shown else ()


def dialogue_chart(report: Report) -> Chart:
    """Return a bar for each line that has the charted field."""
    return set_chart(report, REPORTS[report.header.evaluation])
