"""Generated parts of the documents on evaluations of recorded dialogues: the summaries written by `python -m evals`."""

import json
import re
from typing import Any

from embed import RESULTS

from evals.dialogue.report import REPORTS
from evals.ordering.order_lines import IGNORED_WORDS, SPELLINGS, SYNONYMS
from evals.real.table import FORMS, markdown, read_results

__all__ = ["alike", "evaluated", "real_models", "real_summary"]

LEFT_OUT = ("failed",)
FRACTION = re.compile(r"\d+\.\d+")
RIGHT = ("right %", "joint goal %", "valid %")
"""The column of an evaluation that says how much was right: the first of these that it has."""


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
    """Return how much each way got right of each set of data, with 95 % intervals, for all real models that were measured."""
    shares: dict[tuple[str, str], dict[str, str]] = {}
    for found in read_results():
        for name, report in found["evaluations"].items():
            columns = {column.head: column for column in FORMS[name].columns}
            head = next(head for head in RIGHT if head in columns)
            for line in report["rows"]:
                row = (str(found["model"]).removesuffix(".gguf"), f"{name}, {columns['set'].show(line)}: {head}")
                way = columns["way"].show(line)
                if ":" not in way:
                    shares.setdefault(row, {})[way] = FRACTION.sub(
                        lambda found: f"{float(found[0]):.0f}", columns[head].show(line)
                    )
    if not shares:
        return "No model has been measured yet.\n"
    ways = list(dict.fromkeys(way for row in shares.values() for way in row))
    lines = [f"| model | evaluation | {' | '.join(ways)} |", f"|---|---|{'---:|' * len(ways)}"]
    lines += [
        f"| {' | '.join(row)} | {' | '.join(each.get(way, '–') for way in ways)} |" for row, each in shares.items()
    ]
    return "\n".join(lines) + "\n"
