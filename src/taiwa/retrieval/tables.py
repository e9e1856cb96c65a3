"""Write tables of every format as Markdown, so that each row is found, quoted and cited with the names of its columns.

A table of Markdown has a header; where a document marks none, the first row is taken for it unless it looks like the rows below.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TypeAlias

from taiwa.kernel.text import table_cells

Rows: TypeAlias = Sequence[Sequence[str]]

NUMBER = re.compile(r"[\s\d.,:/%+-]*")
DIGITS = re.compile(r"\d+")
YEARS = range(1900, 2101)
DATES = frozenset({"0-0-0", "0/0/0", "0.0.0", "0-0", "0/0"})
"""The shapes of dates and months, which are names of columns above cells of other shapes."""


def table_text(header: Sequence[str], rows: Rows) -> str:
    r"""Return a table as lines of Markdown, each with as many cells as the widest row.

    >>> print(table_text(["Grade", ""], [["G5", "a|b"]]))
    | Grade |  |
    | --- | --- |
    | G5 | a\|b |
    """
    width = max(map(len, (header, *rows)))
    lines = [[*row, *[""] * (width - len(row))] for row in (header, ["---"] * width, *rows)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def guess_header(rows: Rows, *, usual: bool = False) -> tuple[Sequence[str], Rows]:
    """Divide a table into its header, which is empty if the first row is one of data, and its rows.

    Two columns may be names and values without a header, unless the format has one as a rule (`usual`).

    >>> guess_header([["Region", "2023"], ["North", "10"]], usual=True), guess_header([["Ann", "12"], ["Bob", "13"]])
    ((['Region', '2023'], [['North', '10']]), ([], [['Ann', '12'], ['Bob', '13']]))
    """
    names, below = rows[0], rows[1:]
    pairs = (
        not usual and len(names) == 2 and not (len(below) > 1 and any(map(_counts, names, zip(*below, strict=False))))
    )
    is_title = 2 * sum(not name.strip() for name in names) > len(names) and not (usual and not names[0].strip())
    return (names, below) if not (pairs or is_title) and _is_header(names, below) else ([], rows)


def _counts(name: str, column: Sequence[str]) -> bool:
    return not DIGITS.search(name) and all(map(DIGITS.search, column))


def _is_header(names: Sequence[str], rows: Rows) -> bool:
    """Whether no column has a name that looks like its cells; numbers are names if they are years or count up."""
    if not rows or all(map(NUMBER.fullmatch, names)):
        return False
    numbers = [int(name) for name in names if name.strip().isdecimal()]
    counts = {other - one for one, other in pairwise(numbers)} == {1} or all(number in YEARS for number in numbers)
    for at, name in enumerate(names):
        if DIGITS.search(name) and not (counts and name.strip().isdecimal()):
            shapes = {DIGITS.sub("0", row[at].strip()) for row in rows if at < len(row) and row[at].strip()}
            shape = DIGITS.sub("0", name.strip())
            if shape in DATES and shape not in shapes:
                continue
            if shapes == {shape} or (NUMBER.fullmatch(name) and all(map(NUMBER.fullmatch, shapes))):
                return False
    return True


TABLE = re.compile(r"^[ \t]*\|(.*)\n(?=.*--)[ \t]*\|[ \t|:+-]+\n(?:[ \t]*\|.*(?:\n|\Z))+", re.MULTILINE)
LONGEST_HEADER = 1_000


def tables_in(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return the start, the end and the names of the columns of each table of Markdown, in order."""
    return tuple(
        (table.start(), table.end(), " | ".join(table_cells(table[1])))
        for table in TABLE.finditer(text)
        if len(table[1]) <= LONGEST_HEADER
    )


OPEN_TABLE = re.compile(
    r"^ {0,3}(?![|+])[^|\n]*\|.*\n *:?-+:?[ \t]*(?:[|+][ \t]*:?-+:?[ \t]*)+[|+]?[ \t]*(?:\n(?![|+])[^|\n]*\|.*)*",
    re.MULTILINE,
)
GRID_TABLE = re.compile(r"^[ \t]*\+-[-+]*\+[ \t]*(?:\n[ \t]*[|+].*[|+][ \t]*$)+", re.MULTILINE)
GRID_LINE = re.compile(r"[ \t]*\+[-=+:]*[ \t]*")


def markdown_tables(text: str) -> str:
    """Return a text whose tables without outer bars, or in a grid of `+` and `-`, are tables of Markdown.

    >>> print(markdown_tables("Grade | Limit\\n------+------\\nG5    | 150"))
    | Grade | Limit |
    | ------|------ |
    | G5    | 150 |
    >>> print(markdown_tables("+-------+-------+\\n| Grade | Limit |\\n+=======+=======+\\n| G5    | 150   |\\n+-------+-------+"))
    | Grade | Limit |
    | --- | --- |
    | G5 | 150 |
    """
    return GRID_TABLE.sub(_without_grid, OPEN_TABLE.sub(_with_edges, text))


def _with_edges(table: re.Match[str]) -> str:
    header, rule, *rows = table[0].split("\n")
    return "\n".join(f"| {row.strip().removesuffix('|').strip()} |" for row in (header, rule.replace("+", "|"), *rows))


def _without_grid(table: re.Match[str]) -> str:
    rows = [table_cells(line) for line in table[0].split("\n") if not GRID_LINE.fullmatch(line)]
    return table_text(rows[0], rows[1:]) if len(rows) > 1 else table[0]


CELL = re.compile(r"\S+(?: \S+)*")
CHARACTER = 10.0
"""The width of a character of plain text, in the unit of a `Box`."""
COLUMN = 10_000.0
"""The distance of cells that tabs separate: a tab is as wide as the cell before it leaves room for."""


def tables_of_lines(text: str) -> str:
    """Return plain text whose tables, in columns made of spaces or tabs, are tables of Markdown.

    >>> print(tables_of_lines("Grade  Limit\\nG4     120 EUR\\nG5     150 EUR"))
    | Grade | Limit |
    | --- | --- |
    | G4 | 120 EUR |
    | G5 | 150 EUR |
    """
    lines = text.split("\n")
    parts: list[str] = []
    for are_rows, numbers in groupby(range(len(lines)), key=lambda at: len(_boxes(lines[at])) > 1):
        run = [lines[at] for at in numbers]
        if are_rows:
            for first, last, table in [*aligned_tables([*map(_boxes, run)])][::-1]:
                run[first:last] = [table]
        parts += run
    return "\n".join(parts)


def _boxes(line: str) -> list["Box"]:
    if "\t" in line.strip():
        return [
            (at * COLUMN, at * COLUMN + 1, cell.strip()) for at, cell in enumerate(line.split("\t")) if cell.strip()
        ]
    return [(CHARACTER * cell.start(), CHARACTER * cell.end(), cell[0]) for cell in CELL.finditer(line)]


Box: TypeAlias = tuple[float, float, str]
"""The left and the right edge of a cell on a page, and its text."""
LEAST_ROWS = 3
LIST_MARK = re.compile(r"\W*|\(?\w{1,3}[.)]")
"""What stands before the items of a list, which are not rows; nor are labels with their values."""
RULE = re.compile(r"[-=_]*")
"""A line between rows."""
WORDS_OF_LINE = 4
"""Words that a line of a column of prose has on average; most lines go on in small letters."""
TOLERANCE = 4.0
"""Points by which the cells of a column may be out of line."""


def aligned_tables(lines: Sequence[Sequence[Box]]) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the line after the last one, and the text of each table among the lines of a page.

    Lines of several cells that stand in columns are a table; a line of one cell below a column goes on with the row above it. In
    the first column that is so where the table goes on below, and the first word had no room above.
    """
    first = 0
    while first < len(lines):
        last = first
        while last < len(lines) and (len(lines[last]) > 1 or (last > first and _continues(lines, first, last))):
            last += 1
        if last - first >= LEAST_ROWS and (rows := _in_columns(lines[first:last])) is not None:
            yield first, last, _prose(rows) or table_text(*guess_header(rows))
        first = max(last, first + 1)


def _prose(rows: Rows) -> str:
    """Return the text of rows that are the lines of columns of prose, column by column; "" if they are a table."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    goes_on = sum(cell[0].islower() for column in columns for cell in column)
    words = min(sum(len(cell.split()) for cell in column) / len(column) for column in columns)
    is_prose = words >= WORDS_OF_LINE and 2 * goes_on > sum(map(len, columns))
    return "\n\n".join(map("\n".join, columns)) if is_prose else ""


def _continues(lines: Sequence[Sequence[Box]], first: int, at: int) -> bool:
    line, head = lines[at], lines[first]
    if len(line) != 1:
        return False
    (left, right, text), above = line[0], lines[at - 1][0]
    if left > head[0][1]:
        return any(_in_line(line[0], box) for box in head[1:])
    following = next((each for each in lines[at + 1 :] if len(each) != 1), ())
    starts = [each[0][0] for each in (*lines[first:at], following[:1]) if each]
    room = max(box[1] for each in lines[first : at + 1] for box in each[:1])
    word = (right - left) * (len(text.split()[0]) + 1) / len(text)
    return (
        len(following) > 1
        and right < min(each[1][0] for each in lines[first:at] if len(each) > 1)
        and max(abs(start - left) for start in starts) <= TOLERANCE
        and above[1] + word > room
    )


def _in_columns(lines: Sequence[Sequence[Box]]) -> list[list[str]] | None:
    """Return the rows of lines whose cells each stand in one column of the widest line; None if some do not."""
    widest: Sequence[Box] = max(lines, key=len)
    columns = sorted(widest)
    lefts, rights = [column[0] for column in columns], [column[1] for column in columns]
    rows: list[list[str]] = []
    for line in lines:
        row = [""] * len(columns)
        for box in line:
            around = range(bisect_left(rights, box[0] - TOLERANCE), bisect_right(lefts, box[1] + TOLERANCE))
            near = [at for at in around if _in_line(box, columns[at]) or _overlap(box, columns[at])]
            # A cell in two columns, or two in one: text that happens to be spaced widely.
            if len(near) != 1 or row[near[0]]:
                return None
            row[near[0]] = box[2]
        if len(line) == 1:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
    if all(LIST_MARK.fullmatch(row[0]) or row[0].endswith((":", "：")) for row in rows):
        return None
    rows = [row for row in rows if not all(RULE.fullmatch(cell) for cell in row)]
    # Most rows of a table are full; scattered text fills few.
    widths = Counter(sum(map(bool, row)) for row in rows)
    return rows if len(rows) >= LEAST_ROWS and widths[len(columns)] * 2 > len(rows) else None


def _overlap(one: Box, other: Box) -> bool:
    return min(one[1], other[1]) > max(one[0], other[0])


def _in_line(one: Box, other: Box) -> bool:
    """Whether two cells share their left edge, their right edge, or their middle."""
    return any(
        abs(edge - edge_of_other) <= TOLERANCE
        for edge, edge_of_other in (
            (one[0], other[0]),
            (one[1], other[1]),
            ((one[0] + one[1]) / 2, (other[0] + other[1]) / 2),
        )
    )
