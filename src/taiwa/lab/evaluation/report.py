"""What an evaluation reports: one line for each setting, as JSON, as a Markdown table, and as cells for a terminal.

A scripted model plays what somebody wrote. Its figures would say nothing of any model, so a report of one has none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taiwa.kernel.records import Json
from taiwa.lab.evaluation.rows import Header, written

__all__ = ["NO_FIGURE", "Column", "Report", "Table", "cells", "markdown", "percent", "plain", "with_interval"]

NO_FIGURE = "no figure"
Line = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its head, what stands in it, and whether that is a figure of the model's quality.

    A column that is no `main` one stands on the page and not on a terminal, which is narrow.
    """

    head: str
    show: Callable[[Line], str]
    figure: bool = False
    main: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A further table of figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The lines of all settings; `figures` names the fields that tell how good the model is, `more` holds nothing else."""

    header: Header
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    figures: frozenset[str]
    notes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    more: tuple[Table, ...] = ()

    def fit_to_print(self) -> "Report":
        """Take out what must not be reported."""
        if not self.header.scripted:
            return self
        lines = tuple(
            {name: None if name in self.figures else part for name, part in line.items()} for line in self.lines
        )
        note = "The model is scripted: it plays what was written for it, so there is no figure."
        return replace(self, lines=lines, notes=(note, *self.notes), more=())

    def told(self) -> dict[str, Json]:
        """The report as one JSON object."""
        fit = self.fit_to_print()
        notes: list[Json] = [*fit.notes]
        programs: list[Json] = [*fit.programs]
        rows: list[Json] = [dict(line) for line in fit.lines]
        more: dict[str, Json] = {"programs": programs, "notes": notes, "rows": rows}
        return written(fit.header) | more


def cells(report: Report, *, narrow: bool = False) -> tuple[list[str], list[list[str]]]:
    """The heads and the cells of the table; a narrow one has the main columns only."""
    fit, scripted = report.fit_to_print(), report.header.scripted
    columns = [column for column in fit.columns if column.main or not narrow]
    heads = [column.head for column in columns]
    rows = [
        [NO_FIGURE if scripted and column.figure else column.show(line) for column in columns] for line in fit.lines
    ]
    return heads, rows


def markdown(report: Report) -> str:
    """The report as a page of Markdown."""
    fit, header = report.fit_to_print(), report.header
    about = [
        f"# {_cell(header.evaluation)}: {_cell(header.data)}, {_cell(header.model or 'no model')}",
        "",
        f"{header.date} · taiwa {', '.join(report.programs) or header.program} · data SHA-256 {header.data_hash[:16]}…",
        "",
    ]
    notes = [f"\n{note}" for note in fit.notes]
    more = [
        line for table in fit.more for line in ("", f"## {_cell(table.title)}", "", *_lines(table.heads, table.rows))
    ]
    return "\n".join([*about, *_lines(*cells(report)), *notes, *more, ""])


def _lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return [f"| {' | '.join(map(_cell, row))} |" for row in body]


def _cell(text: str) -> str:
    """A text that stays in its cell and is read as it is."""
    if set(text) <= set("-:"):
        return text
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


def percent(part: Json, digits: int = 2) -> str:
    """A share in percent.

    >>> percent(0.8584615), percent(None)
    ('85.85', '–')
    """
    return f"{100 * part:.{digits}f}" if isinstance(part, (int, float)) else "–"


def with_interval(field: str, interval: str) -> Callable[[Line], str]:
    """A share in percent with its interval."""

    def show(line: Line) -> str:
        bounds = line.get(interval)
        between = f" [{percent(bounds[0], 1)}, {percent(bounds[1], 1)}]" if isinstance(bounds, list) else ""
        return f"{percent(line.get(field))}{between}"

    return show


def plain(field: str) -> Callable[[Line], str]:
    """A number or a word as it is; counts as `2 a, 1 b`."""

    def show(line: Line) -> str:
        found = line.get(field)
        if found is None:
            return "–"
        if isinstance(found, Mapping):
            return ", ".join(f"{number} {word}" for word, number in found.items()) or "0"
        return f"{found:,}" if isinstance(found, int) else f"{found:g}" if isinstance(found, float) else str(found)

    return show
