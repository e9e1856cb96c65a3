"""Generated parts of the documents: recorded sessions, the list of commands, and benchmark figures.

`make docs` and `make check` run cog with this folder on its path.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

from taiwa.cli.main import COMMANDS, SECTIONS
from taiwa.models.http_api import errors
from taiwa.sql import sqlite
from taiwa.store.schema import STORE

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benches" / "results"
MARK, ABOUT = "#== ", "#~ "
STANDING_FOR = {
    "host": "HOST", "url": "ADDRESS", "connect": "N", "first_byte": "N", "between": "N", "total": "N",
    "who": "SERVER", "model": "MODEL", "code": " (STATUS)", "text": ": …", "wait": ", try again in N s", "parameter": "PARAMETER",
    "place": " in VARIABLE", "remedy": "set another in the environment",
}  # fmt: skip
"""Placeholders that a table of errors shows for values known only at run time."""


class _Plain(Formatter):
    """A formatter that fills in placeholders and ignores format specifications."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401, ARG002
        return STANDING_FOR[field_name.removeprefix("limits.")], field_name

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401, ARG002
        return str(value)


def session(name: str, *parts: str) -> str:
    """Return a recorded session, or some of its parts, as one block."""
    found: dict[str, list[str]] = {}
    lines = found.setdefault("", [])
    record = (HERE / "sessions" / f"{name}.out").read_text(encoding="utf-8")
    for line in record.splitlines():
        if line.startswith(MARK):
            lines = found.setdefault(line.removeprefix(MARK), [])
        elif not line.startswith(ABOUT):
            lines.append(line)
    shown = [line for part in parts or found if found[part] for line in ("", *found[part])][1:]
    fence = "````" if any("```" in line for line in shown) else "```"
    return "\n".join([f"{fence}console", *shown, fence, ""])


def source(path: str, language: str) -> str:
    """Return a file of the project as one block."""
    text = (HERE.parent / path).read_text(encoding="utf-8").rstrip()
    return f"````{language}\n{text}\n````\n"


def together(part: str, until: str = "") -> str:
    """Return a part of the talks that `docs/together.py` recorded with a real model, up to a line that begins with `until`."""
    text = session("../real/together", part)
    return text if not until else text.partition(f"\n{until}")[0] + "\n  …\n```\n"


def model_errors() -> str:
    """Return the messages about the network and servers' responses, with the error class of each."""
    rows = [(row.message, row.kind) for row in errors.TABLE.values()] + [
        (words, kind) for kind, words in errors.MESSAGES.values()
    ]
    lines = (f"| {_Plain().format(words)} | `{kind.__name__}` |\n" for words, kind in rows)
    return f"| it says | error |\n|---|---|\n{''.join(lines)}"


def store_errors() -> str:
    """Return the messages about a store file, each once."""
    rows = dict.fromkeys([(words, kind.__name__) for kind, words in sqlite.TABLE.values()])
    said = ((words.replace("{name}", STORE.name).replace("{repair}", STORE.repair), kind) for words, kind in rows)
    lines = (f"| the store FILE {words} | `{kind}` |\n" for words, kind in said)
    return f"| it says | error |\n|---|---|\n{''.join(lines)}"


def overview() -> str:
    """Return a line for every command, by section."""
    lines = [
        f"| **{section}** | |\n" + "".join(f"| `taiwa {name}` | {COMMANDS[name].help} |\n" for name in names)
        for section, names in SECTIONS.items()
    ]
    return f"| | |\n|---|---|\n{''.join(lines)}"


def figures(*picks: str) -> str:
    """Return a table of the benchmark targets whose names begin with a pick."""
    lines: list[str] = []
    places: dict[str, None] = {}
    for path in sorted(RESULTS.glob("*.json")):
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for row in found["targets"]:
            if f"{path.stem}: {row['what']}".startswith(picks):
                places[f"{found['machine']}, {found['date'][:7]}"] = None
                kept = "" if row["met"] else " (not met)"
                measured, bound = amount(row["value"], row["unit"]), amount(row["bound"], row["unit"])
                lines.append(f"| {path.stem} | {row['what']} | {measured}{kept} | {bound} |\n")
    return f"| benchmark | measurement | result | limit |\n|---|---|---|---|\n{''.join(lines)}\n{'; '.join(places)}.\n"


def rows(name: str) -> str:
    """Return the results of one benchmark, peers included."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    lines = (f"| {row['what']} | {amount(row['value'], row['unit'])} | {row['note']} |\n" for row in found["rows"])
    return f"| {found['about']} | | |\n|---|---|---|\n{''.join(lines)}"


def recovery() -> str:
    """Return each parser's share of malformed answers read correctly, and in brackets read wrongly without an error."""
    found: dict[str, Any] = json.loads((RESULTS / "typed.json").read_text(encoding="utf-8"))
    table: dict[str, dict[str, str]] = {}
    for row in found["rows"]:
        if row["what"].startswith("right, "):
            group, _, parser = row["what"].removeprefix("right, ").rpartition(": ")
            silent = next(
                (part.split()[-1] for part in row["note"].split(", ") if part.startswith("wrong and silent")), ""
            )
            shown = f"{row['value']:.0f} %" + (f" ({silent.removesuffix('%')})" if silent else "")
            table.setdefault(f"{group}, {row['note'].rpartition(', ')[2]}".removesuffix(", "), {})[parser] = shown
    parsers = list(next(iter(table.values())))
    lines = [f"| {group} | {' | '.join(cells[name] for name in parsers)} |\n" for group, cells in table.items()]
    return f"| | {' | '.join(parsers)} |\n|{'---|' * (len(parsers) + 1)}\n{''.join(lines)}"


def amount(value: float, unit: str) -> str:
    """Format a figure with three digits and its unit."""
    text = f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{text} times" if unit == "x" else f"{text} {unit}"


def handbook() -> str:
    """Return a table of how the built-in handbook is found, quoted and clarified without a model."""
    from evals.handbook import measure_handbook

    rows = [
        "| questions | with an answer | found first | among three | quoted | clarifying question asked | options offered | clarifying question expected |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in measure_handbook():
        counts = (each.questions, each.first, each.three, each.quoted, each.asked, each.offered, each.should_ask)
        rows.append(f"| {each.name.replace('_', ' ')} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows) + "\n"
