"""Generated parts of the documents on benchmarks: the result files, as tables, and the code that is compared."""

import ast
import json
from collections.abc import Iterator
from typing import Any

from embed import RESULTS, amount

__all__ = ["ahead", "job", "lines", "missed", "result", "rows"]


def result(name: str) -> str:
    """Format one result file: measurements, targets and conditions."""
    found = _read(name)
    rows = "".join(
        f"| {row['what']} | {amount(row['value'], row['unit'])} | {row['note']} |\n" for row in found["rows"]
    )
    targets = "".join(f"| {target} |\n" for target in map(_target, found["targets"]))
    versions = "".join(f", {each} {version}" for each, version in found.get("versions", {}).items())
    load = f", load {found['load']}" if "load" in found else ""
    return (
        f"| {found['about']} | | |\n|---|---|---|\n{rows}\n"
        f"| target | measured | limit | |\n|---|---|---|---|\n{targets}\n"
        f"{found['date']}, commit {found['commit']}, {found['machine']}{load}{versions}.\n"
    )


def rows(name: str, *words: str) -> str:
    """Format the rows of a result file whose names contain one of some words."""
    if not (RESULTS / f"{name}.json").is_file():
        return "`python -m benches` has not been run yet.\n"
    found = _read(name)
    picked = [row for row in found["rows"] if any(word in row["what"] for word in words)]
    lines = "".join(f"| {row['what']} | {amount(row['value'], row['unit'])} | {row['note']} |\n" for row in picked)
    return f"| measurement | result | |\n|---|---|---|\n{lines}\n{found['date']}, commit {found['commit']}.\n"


def missed() -> str:
    """List the targets that the last run missed, one line each."""
    lines = [f"- {name}: {row['what']}: {_bounds(row)}\n" for name, row in _all("targets") if not row["met"]]
    return "".join(lines) or "None: the last run met every target.\n"


def ahead() -> str:
    """List the peers that took less than taiwa in the same run, one line each."""
    rows = [(name, row) for name, row in _all("rows") if 0 < row.get("times", 0) < 1]
    return "".join(f"- {name}: {row['what']}: {row['times']:.2g} times ours\n" for name, row in rows) or "Nothing.\n"


def _target(row: dict[str, Any]) -> str:
    verdict = "met" if row["met"] else "**missed**"
    return f"{row['what']} | {amount(row['value'], row['unit'])} | {amount(row['bound'], row['unit'])} | {verdict}"


def _bounds(row: dict[str, Any]) -> str:
    return f"{amount(row['value'], row['unit'])}, limit {amount(row['bound'], row['unit'])}"


def _all(part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(RESULTS.glob("*.json")):
        for row in _read(path.stem)[part]:
            yield path.stem, row


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def job(name: str, *tools: str) -> str:
    """Return the function of `benches/lines` that does a job with each tool, as one block of code."""
    blocks: list[str] = []
    for tool in tools:
        text = (RESULTS.parent / "lines" / f"with_{tool}.py").read_text(encoding="utf-8")
        found = next(each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name == name)
        source = ast.get_source_segment(text, found) or ""
        blocks.append(source.replace(f"def {name}(", f"def with_{tool}("))
    return "```py\n" + "\n\n\n".join(blocks) + "\n```\n"


def lines() -> str:
    """Format the lines of code of each job with each library; a dash means that the library does not support the job."""
    found = _read("lines")
    counts: dict[str, dict[str, int]] = {}
    for row in found["rows"]:
        job, _, tool = row["what"].rpartition(": ")
        counts.setdefault(job, {})[tool] = int(row["value"])
    tools = list(dict.fromkeys(tool for row in counts.values() for tool in row))
    head = f"| | {' | '.join(tools)} |\n|---|{'---|' * len(tools)}\n"
    body = "".join(
        f"| {job} | {' | '.join(str(row.get(tool, '–')) for tool in tools)} |\n" for job, row in counts.items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return f"{head}{body}\n{found['date']}, {versions}.\n"
