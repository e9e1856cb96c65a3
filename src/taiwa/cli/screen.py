"""What reaches a terminal: plain when piped, aligned for wide characters, and free of control codes from models and files."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import click

from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "emit", "errors", "inert", "plain", "say_line", "table", "tell"]

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Make text safe to print: control codes and direction overrides become visible signs.

    >>> plain("a\\x1b[2Jb\\r")
    'a␛[2Jb␍'
    """
    return CONTROL.sub(lambda match: chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else "\ufffd", text)


@cache
def console() -> "Console":
    """Where results go; colours only on a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, emoji=False, markup=False)


@cache
def errors() -> "Console":
    """Where remarks and progress go."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False, markup=False)


def emit(item: Json) -> None:
    """Print one JSON object on one line, for programs."""
    click.echo(inert(json.dumps(item, ensure_ascii=False)))


def inert(text: str) -> str:
    """Escape in JSON what a terminal would obey; it reads back as it was."""
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def say_line(text: str, style: str = "") -> None:
    """Print a line of a result."""
    if not style or not sys.stdout.isatty():
        click.echo(plain(text))
    else:
        console().print(plain(text), style=style)


def tell(text: str, style: str = "dim") -> None:
    """Print a remark to a person; programs that read the result do not see it."""
    if sys.stderr.isatty():
        errors().print(plain(text), style=style)
    else:
        click.echo(plain(text), err=True)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> None:
    """Print aligned columns; Japanese and Chinese count two cells. The columns `right` are numbers; no heads, no head line."""
    from rich.cells import cell_len

    lines = [tuple(plain(cell).replace("\n", " ") for cell in row) for row in ((heads, *rows) if heads else rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells: list[str] = []
        for column, cell in enumerate(line):
            pad = " " * (widths[column] - cell_len(cell))
            cells.append(pad + cell if column in right else cell + pad)
        say_line("  ".join(cells).rstrip(), "bold" if heads and number == 0 else "")
