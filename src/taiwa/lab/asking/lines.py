"""What rows of each evaluation add up to: one line for a setting and a set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from taiwa.kernel.records import Json
from taiwa.lab.asking import figures
from taiwa.lab.asking.figures import Chosen, auc, brier, calibration, cost, drawn, f1, f1_interval, mean, median
from taiwa.lab.evaluation.intervals import Share
from taiwa.lab.evaluation.rows import Row
from taiwa.lab.evaluation.summary import bill, failures, interval_of

__all__ = ["Line", "answer_line", "by_set", "clarify_line", "found_line", "paired_lines", "retrieve_line", "told_apart"]

Line: TypeAlias = "dict[str, Json]"
RATIOS = (1, 3)
DIGITS = 6
METRICS = ("ndcg5", "ndcg10", "recall5", "recall10", "rr")


def by_set(
    rows: Iterable[Row], settings: Sequence[str], sets: Sequence[str], line: Callable[[Sequence[Row]], Mapping[str, Json]],
    paid: Iterable[Row] = (),
) -> tuple[Line, ...]:  # fmt: skip
    """One line for each set and setting that has rows."""
    groups: dict[tuple[str, str], list[Row]] = {(one, setting): [] for one in sets for setting in settings}
    replaced: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.kind, row.setting), []).append(row)
    for row in paid:
        replaced.setdefault((row.kind, row.setting), []).append(row)
    lines: list[Line] = []
    for (one, setting), group in groups.items():
        if group:
            ordered = sorted(group, key=lambda row: row.id)  # rows come as they are done; draws must not depend on it
            failed = sum(row.error is not None for row in ordered)
            head: Line = {"setting": setting, "set": one, "n": len(ordered)}
            tail: Line = {"failed": failed, "errors": failures(ordered)}
            lines.append({**head, **line(ordered), **tail, **bill(ordered, replaced.get((one, setting), []))})
    return tuple(lines)


def clarify_line(rows: Sequence[Row]) -> Line:
    """How well it is told when to ask back."""
    labels = [row.found.get("should") is True for row in rows]
    scores = [_number(row, "score") for row in rows]
    told: Line = {"to_ask": sum(labels)}
    told |= {f"never_ask_cost_{ratio}": _rounded(cost([False] * len(labels), labels, ratio)) for ratio in RATIOS}
    told |= {f"always_ask_cost_{ratio}": _rounded(cost([True] * len(labels), labels, ratio)) for ratio in RATIOS}
    told |= _area(auc(scores, labels))
    told |= _cut(figures.operating(scores, labels))
    return told | _decisions(rows) | _chances(rows)


def _area(found: tuple[float, tuple[float, float]] | None) -> Line:
    if found is None:
        return {"auc": None, "auc_interval": None}
    return {"auc": _rounded(found[0]), "auc_interval": _bounds(found[1])}


def _cut(found: Chosen) -> Line:
    return {
        "recall_at_5": found.recall.share, "recall_at_5_interval": interval_of(found.recall),
        "precision_at_5": found.precision.share, "precision_at_5_interval": interval_of(found.precision),
        "false_at_5": found.false.share,
    }  # fmt: skip


def _decisions(rows: Sequence[Row]) -> Line:
    """What was decided, where it was; a signal alone decides nothing."""
    deciding = [row for row in rows if isinstance(row.found.get("asked"), bool)]
    if not deciding:
        return dict.fromkeys(
            ("asked", "f1", "f1_interval", "precision", "precision_interval", "recall", "recall_interval", "rounds", "why",
             *(f"cost_{ratio}" for ratio in RATIOS), *(f"cost_{ratio}_interval" for ratio in RATIOS)),
        )  # fmt: skip
    asked = [row.found["asked"] is True for row in deciding]
    labels = [row.found.get("should") is True for row in deciding]
    right = sum(one and label for one, label in zip(asked, labels, strict=True))
    precision, recall = Share(right, sum(asked)), Share(right, sum(labels))
    told: Line = {
        "asked": sum(asked), "f1": _rounded(f1(asked, labels)), "f1_interval": _bounds(f1_interval(asked, labels)),
        "precision": precision.share, "precision_interval": interval_of(precision),
        "recall": recall.share, "recall_interval": interval_of(recall),
        "rounds": _rounded(mean([_number(row, "rounds") for row in deciding])), "why": _why(deciding),
    }  # fmt: skip
    for ratio in RATIOS:
        costs = [cost([one], [label], ratio) or 0.0 for one, label in zip(asked, labels, strict=True)]
        told |= {f"cost_{ratio}": _rounded(mean(costs)), f"cost_{ratio}_interval": _bounds(drawn(costs))}
    return told


def _why(rows: Sequence[Row]) -> Json:
    """Why it was asked back, each reason with its number."""
    counts: dict[str, Json] = {}
    for row in rows:
        if row.found.get("asked") is True:
            name = str(row.found.get("why"))
            counts[name] = int(str(counts.get(name, 0))) + 1
    return counts


def _chances(rows: Sequence[Row]) -> Line:
    given = [row for row in rows if isinstance(row.found.get("chance"), (int, float))]
    chances = [_number(row, "chance") for row in given]
    labels = [row.found.get("should") is True for row in given]
    return {"brier": _rounded(brier(chances, labels)), "ece": _rounded(calibration(chances, labels))}


def found_line(rows: Sequence[Row]) -> Line:
    """How good rankings are; a row that failed found nothing."""
    told: Line = {}
    for name in METRICS:
        values = [_number(row, name) for row in rows]
        shown = "mrr" if name == "rr" else name
        told |= {shown: _rounded(mean(values)), f"{shown}_interval": _bounds(drawn(values))}
    return told


def retrieve_line(rows: Sequence[Row]) -> Line:
    """As `found_line`, with how long a question took."""
    taken = [_number(row, "find_ms") for row in rows if "find_ms" in row.found]
    return found_line(rows) | {
        "p50_ms": _rounded(median(taken)),
        "p99_ms": _rounded(median(taken, 0.99)),
        "none_found": sum(row.found.get("found") == 0 for row in rows),
    }


def paired_lines(lines: Sequence[Line], rows: Iterable[Row], against: str) -> tuple[Line, ...]:
    """The same lines with what each setting gains in nDCG@10 over another, question by question."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row.kind, row.setting), {})[row.id] = _number(row, "ndcg10")
    told: list[Line] = []
    for line in lines:
        this, that = found[str(line["set"]), str(line["setting"])], found.get((str(line["set"]), against), {})
        gains = [value - that[name] for name, value in sorted(this.items()) if name in that]
        compared = gains and line["setting"] != against
        gain: Json = {
            "against": against, "pairs": len(gains), "ndcg10": _rounded(mean(gains)), "interval": _bounds(drawn(gains)),
        }  # fmt: skip
        told.append({**line, "gain": gain if compared else None})
    return tuple(told)


def answer_line(rows: Sequence[Row]) -> Line:
    """What is answered, cited and refused; a row that failed neither answers nor refuses."""
    counted = [row for row in rows if row.found.get("counts") is not False]
    there = [row for row in counted if row.found.get("there") is True]
    absent = [row for row in counted if row.found.get("there") is False]
    cited = sum(_whole(row, "citations") for row in there)
    standing, right = (Share(sum(_whole(row, name) for row in there), cited) for name in ("standing", "right"))
    citing = [row for row in there if _whole(row, "citations")]
    first = Share(sum(row.found.get("first") is True for row in citing), len(citing))
    seen = Share(sum(row.found.get("refused") is True for row in absent), len(absent))
    missed = Share(sum(row.found.get("refused") is True for row in there), len(there))
    told: Line = {
        "n": len(counted), "answerable": len(there), "unanswerable": len(absent), "citations": cited,
        "quotes_standing": standing.share, "quotes_standing_interval": interval_of(standing),
        "first_right": first.share, "first_right_interval": interval_of(first),
        "citation_precision": right.share, "citation_precision_interval": interval_of(right),
        "refused_unanswerable": seen.share, "refused_unanswerable_interval": interval_of(seen),
        "refused_answerable": missed.share, "refused_answerable_interval": interval_of(missed),
        "dropped_quotations": sum(_whole(row, "dropped") for row in there),
        "unsupported_claims": sum(_whole(row, "unsupported") for row in there),
    }  # fmt: skip
    return told | _words(there)


def _words(rows: Sequence[Row]) -> Line:
    """Answers beside the right ones; one that was refused holds none of them."""
    with_answer = [
        row for row in rows if "f1" in row.found or row.found.get("refused") is True or row.error is not None
    ]
    if not any("f1" in row.found for row in rows):
        return dict.fromkeys(("exact", "exact_interval", "f1", "f1_interval", "holds", "holds_interval"))
    marks = {
        name: Share(sum(row.found.get(name) is True for row in with_answer), len(with_answer))
        for name in ("exact", "holds")
    }
    overlaps = [_number(row, "f1") for row in with_answer]
    return {
        "exact": marks["exact"].share, "exact_interval": interval_of(marks["exact"]),
        "f1": _rounded(mean(overlaps)), "f1_interval": _bounds(drawn(overlaps)),
        "holds": marks["holds"].share, "holds_interval": interval_of(marks["holds"]),
    }  # fmt: skip


def told_apart(rows: Iterable[Row], settings: tuple[str, str]) -> dict[str, Line]:
    """How often the evidence is stronger where the passage is there than where it is not, by set (AUC)."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        if row.setting in settings and row.found.get("counts") is not False and "chance" in row.found:
            groups.setdefault(row.kind, []).append((_number(row, "chance"), row.found.get("there") is True))
    return {
        name: _area(auc([chance for chance, _ in pairs], [there for _, there in pairs]))
        for name, pairs in groups.items()
    }


def _whole(row: Row, name: str) -> int:
    found = row.found.get(name)
    return found if isinstance(found, int) else 0


def _number(row: Row, name: str) -> float:
    found = row.found.get(name)
    return float(found) if isinstance(found, (int, float)) else 0.0


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DIGITS)


def _bounds(interval: tuple[float, float] | None) -> Json:
    return None if interval is None else [round(bound, DIGITS) for bound in interval]
