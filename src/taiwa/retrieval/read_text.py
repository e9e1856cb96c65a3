"""Documents of plain text: Markdown with its headings, tables, lines, and lines of JSON."""

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from taiwa.kernel.serialization import Digits, Json, read_fraction
from taiwa.kernel.text import whole_characters
from taiwa.retrieval.document_access import front_matter
from taiwa.retrieval.tables import guess_header, markdown_tables, table_text, tables_of_lines
from taiwa.retrieval.types import Heading, ParsedDocument, UnreadableError, lines_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


MOST_LINES = 50_000
"""Maximum lines of Markdown with headings; a longer file is read as plain text."""
LINK = re.compile(r"!?\[(?P<words>[^\]\[]*)\](?:\([^()]*\)|\[[^\]]*\])")
EMPHASIS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|\s*\{#[^}]*\}\s*$")
LONGEST_SOURCE = 1_000
"""Maximum characters of the source of a heading."""


def read_markdown(text: str) -> ParsedDocument:
    """Read Markdown; front matter gives the title and `access:`, and is not part of the text.

    Raises:
        AccessUnclearError: the access in the front matter cannot be understood.
    """
    front = front_matter(text)
    body = markdown_tables(text[front.end :])
    headings: list[Heading] = []
    if body.count("\n") <= MOST_LINES:
        starts = lines_of(body)
        tokens = _parser().parse(body)
        for at, token in enumerate(tokens):
            # Only headings of the document itself: a heading within a quotation or a list starts no section.
            if token.type == "heading_open" and token.level == 0 and token.map:
                words = _plain_heading(tokens[at + 1].content[:LONGEST_SOURCE])
                headings.append(Heading(front.end + starts[token.map[0]], int(token.tag[1]), words))
    title = front.title or first_heading(headings)
    # Spaces replace the front matter, so that all offsets stay valid.
    return ParsedDocument(" " * front.end + body, title, tuple(headings), access=front.access)


def first_heading(headings: Iterable[Heading]) -> str:
    """Return the first heading of the highest level, "" if there is none."""
    return next((each.words for each in headings if each.level == 1), "")


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Without the inline grammar: only the starts of blocks are needed, and inline parsing is slow.
    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])


def _plain_heading(words: str) -> str:
    """Return the words of a heading without markup."""
    return " ".join(EMPHASIS.sub("", LINK.sub(lambda link: link["words"], words)).split())


QUOTED = re.compile(r'"[^"]*"')
LONGEST_CELL = 64 << 10
HEAD = 4_000
"""Characters in which the lines above a table end."""


def read_text(text: str) -> ParsedDocument:
    """Read plain text: it has no headings, but may have front matter and tables.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    reading = _plain(text)
    return replace(reading, text=tables_of_lines(markdown_tables(reading.text)))


def _plain(text: str) -> ParsedDocument:
    front = front_matter(text, "comments")
    return ParsedDocument(" " * front.end + text[front.end :], front.title, access=front.access)


SEPARATOR_ROW = ["sep=", ""]
"""The line with which Excel names the delimiter."""


def read_table(text: str) -> ParsedDocument:
    """Read CSV or TSV as a table of Markdown; a text that cannot be read so stays as it is.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    reading = _plain(text)
    body = reading.text.lstrip()
    csv.field_size_limit(LONGEST_CELL)
    before, body = body[: (start := table_start(body))], body[start:]
    lines = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter_of(body.partition("\n")[0]))
    try:
        rows = [row for row in lines if any(row) and row != SEPARATOR_ROW]
    except csv.Error:
        return reading
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width < 2 or len(rows) * width > 2 * len(body):
        return reading
    table = table_text(*guess_header(rows, usual=True))
    return replace(reading, text=f"{before.strip()}\n\n{table}" if before else table)


def table_start(text: str) -> int:
    """Return where the table of a text begins: behind the title and the notes that programs write above it, which are lines without a
    delimiter, if two lines with equally many follow.

    >>> table_start("Sales 2024\\n\\nregion;units\\nNorth;7\\n")
    12
    """
    start, lines = 0, text[:HEAD].splitlines(keepends=True)
    for number, line in enumerate(lines):
        delimiter = delimiter_of(line)
        count = QUOTED.sub("", line).count(delimiter)
        if line.count('"') % 2:  # a cell of several lines
            return 0
        if count and not line.startswith("#"):
            following = next(filter(str.strip, lines[number + 1 :]), "")
            is_open = following.count('"') % 2  # it has a cell of several lines
            return start if is_open or QUOTED.sub("", following).count(delimiter) == count else 0
        start += len(line)
    return 0


def delimiter_of(line: str) -> str:
    """Return the delimiter of a table from its first line."""
    return max(",\t;|", key=QUOTED.sub("", line).count)


LONGEST_FIELD = 100


def read_json_lines(text: str) -> ParsedDocument:
    """Read objects, one a line: as a table, or, if fields have long texts, each as a section under its short fields, of which the first
    needs no name.

    Raises:
        UnreadableError: a line is not a JSON object.
    """
    rows: list[dict[str, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                record = json.loads(line, parse_float=read_fraction)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise UnreadableError(f"broken: line {number} is not a JSON object")
            rows.append({_field(key): _field(each) for key, each in record.items() if each not in (None, "")})
    names = [*dict.fromkeys(key for row in rows for key in row)]
    are_short = all(map(_is_short, chain.from_iterable(row.values() for row in rows)))
    if names and are_short and len(rows) * len(names) <= len(text):
        return ParsedDocument(table_text(names, [[row.get(name, "") for name in names] for row in rows]))
    sections, headings, start = list[str](), list[Heading](), 0
    for row in rows:
        short = [(name, each) for name, each in row.items() if _is_short(each)]
        words = " · ".join([*(each for _, each in short[:1]), *(f"{name}: {each}" for name, each in short[1:])])
        long = [(name, each.strip()) for name, each in row.items() if not _is_short(each)]
        body = "\n\n".join(each if len(long) == 1 else f"{name}: {each}" for name, each in long)
        section = f"## {words}\n\n{body}\n\n" if words else f"{body}\n\n"
        headings += [Heading(start, 2, words)] if words else []
        start += len(section)
        sections.append(section)
    return ParsedDocument("".join(sections), headings=tuple(headings))


def _field(value: Json) -> str:
    number = value.text if isinstance(value, Digits) else None
    text = value if isinstance(value, str) else number or json.dumps(value, ensure_ascii=False)
    return whole_characters(text.replace("\0", ""))


def _is_short(field: str) -> bool:
    return len(field) <= LONGEST_FIELD and not {"\n", "\r"} & {*field}
