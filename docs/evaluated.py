"""Generated parts of the documents on evaluations of recorded dialogues: the summaries written by `python -m evals`."""

import json
from collections import Counter
from typing import Any

from embed import RESULTS

from evals.dialogue.report import REPORTS
from evals.ordering.order_lines import IGNORED_WORDS, SPELLINGS, SYNONYMS
from evals.real.table import markdown, read_results
from evals.real.task import TAIWA
from taiwa.evals.report import wilson

__all__ = ["alike", "evaluated", "real_models", "real_summary"]

LEFT_OUT = ("failed",)
SUMMARY = {
    ("extract", "valid"): "typed answers, valid", ("extract", "right"): "typed answers, right",
    ("solve", "right"): "word problems, right", ("answer", "right"): "questions to documents, right",
    ("answer", "unanswerable_answered"): "answered though no passage answers",
    ("state", "joint"): "state, all fields right after a turn",
    ("constrain", "valid"): "schemas and patterns, valid", ("turn", "right"): "turns with state, tools and documents, right",
}  # fmt: skip
"""The shares of the summary."""


def evaluated(name: str, *heads: str) -> str:
    """Return the table of an evaluation with its notes; with `heads`, only these columns."""
    found: dict[str, Any] = json.loads((RESULTS / "dialogues" / f"{name}.json").read_text(encoding="utf-8"))
    shown = [
        each for each in REPORTS[name].columns if each.head in (heads or {each.head}) and each.head not in LEFT_OUT
    ]
    lines = [[each.head for each in shown], ["---", "---", *("---:" for _ in shown[2:])]]
    lines += [[each.show(line) for each in shown] for line in found["rows"]]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    notes = "".join(f"- {note}\n" for note in found["notes"])
    when, programs = found["date"][:10], ", ".join(found["programs"])
    return f"{table}\n{notes}\n{when}, taiwa {programs}, no model, data SHA-256 {found['data_hash'][:16]}…\n"


def alike() -> str:
    """Return the synonyms and the ignored words of the evaluation of orders."""
    one = (*SPELLINGS, *SYNONYMS.items())
    table = ", ".join(f"{written} = {compared}" for written, compared in one)
    return f"Left out: {', '.join(sorted(IGNORED_WORDS))}.\nCounted as one: {table}.\n"


def real_models() -> str:
    """Return the tables of all real models that were measured."""
    return "\n".join(markdown(found) for found in read_results()) or "No model has been measured yet.\n"


def real_summary() -> str:
    """Return the percent of each way in each evaluation of all real models that were measured, with 95 % intervals of shares."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    items: dict[tuple[str, str], int] = {}
    for found in read_results():
        for (name, field), label in SUMMARY.items():
            counts: dict[str, list[tuple[int, int]]] = {}
            for line in found["evaluations"].get(name, {"rows": []})["rows"]:
                if ":" not in line["setting"]:
                    counts.setdefault(line["setting"], []).append(line[f"{field}_of"])
            model = str(found["model"]).removesuffix(".gguf")
            for way, each in counts.items():
                got, of = (sum(numbers) for numbers in zip(*each, strict=True))
                low, high = wilson(got, of)
                row, items[model, label] = rows.setdefault((model, label), {}), of
                row[way] = f"{100 * got / of:.0f} [{100 * low:.0f}, {100 * high:.0f}]"
            if name == "state":
                rows[model, "state, F1 of its fields"] = _slot_f1(found["evaluations"][name]["rows"])
    if not rows:
        return "No model has been measured yet.\n"
    found_ways = dict.fromkeys(way for row in rows.values() for way in row)
    ways = sorted(found_ways, key=lambda way: not way.startswith(TAIWA))
    lines = [f"| model | percent | of | {' | '.join(ways)} |", f"|---|---|---:|{'---:|' * len(ways)}"]
    before = ""
    for (model, label), row in rows.items():
        cells = (row.get(way, "–") for way in ways)
        lines.append(
            f"| {'' if model == before else model} | {label} | {items.get((model, label), '')} | {' | '.join(cells)} |"
        )
        before = model
    return "\n".join(lines) + "\n"


def _slot_f1(lines: list[dict[str, Any]]) -> dict[str, str]:
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        parts = {name: line[name] for name in ("right", "wrong", "missing")}
        counts.setdefault(line["setting"], Counter()).update(parts)
    return {
        way: f"{200 * each['right'] / (each.total() + each['right']):.0f}"
        for way, each in counts.items()
        if ":" not in way
    }
