"""Text and tables: what needs no library."""

import csv
import re
from itertools import pairwise

from taiwa.retrieve.reading.reading import Heading, Reading, lines_of

__all__ = ["TABLE", "TEXT", "plain", "table"]

TEXT = "text-1"
TABLE = "table-1"
NUMBER = re.compile(r"[\s\d.,:/%+-]*")
QUOTED = re.compile(r'"[^"]*"')
CELL = 1 << 20
"""Characters of a cell at most."""


def plain(text: str) -> Reading:
    """Read plain text: it has no headings."""
    return Reading(text)


def table(text: str) -> Reading:
    """Read CSV or TSV: rows stay as written, and the names of the columns are the heading they stand under."""
    starts = lines_of(text)
    delimiter = _delimiter(text[: starts[1]] if len(starts) > 1 else text)
    csv.field_size_limit(CELL)
    reader = csv.reader((text[start:end] for start, end in pairwise(starts)), delimiter=delimiter)
    try:
        first = next(reader, list[str]())
    except csv.Error:
        first = []
    cells = [" ".join(cell.split()) for cell in first]
    if len(starts) < 3 or not all(cells) or len(set(cells)) < len(cells) or any(map(NUMBER.fullmatch, cells)):
        return Reading(text)
    return Reading(text, headings=(Heading(0, 1, " | ".join(cells)),))


def _delimiter(line: str) -> str:
    return max(",\t;|", key=QUOTED.sub("", line).count)
