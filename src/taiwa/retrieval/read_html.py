"""HTML as text with headings: blocks become lines, tables become Markdown, and scripts and styles are dropped."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from importlib import import_module
from itertools import chain, takewhile, zip_longest
from typing import Any

from taiwa.retrieval.decoding import decode
from taiwa.retrieval.document_access import front_matter
from taiwa.retrieval.read_text import first_heading, read_markdown
from taiwa.retrieval.tables import guess_header, table_text, tables_in
from taiwa.retrieval.types import Heading, ParsedDocument

CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "address article blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure form hr html "
    "legend li main ol option p pre section summary table tbody tfoot thead title tr ul".split()
)
CELLS = frozenset({"td", "th"})
LISTS = frozenset({"ol", "ul"})
TABLE_PARTS = CELLS | {"table", "tr", "thead", "tbody", "tfoot"}
MOST_SPANNED = 20
MOST_CELLS = 100_000
LONGEST_TABLE_CELL = 1_000
"""Characters of a cell above which a table is taken to arrange a page."""
LONGEST_REPEATED = 100
"""Characters of a cell up to which it is repeated in the rows or columns over which it extends."""
SILENT = frozenset("script style noscript template svg math object iframe select textarea button rt rp".split())
OPEN_ENDED = frozenset("p li dt dd tr td th thead tbody tfoot option".split())
"""Hidden elements whose end tags may be left out: the next block, or the end of the one around them, ends them."""
READINGS = frozenset({"rt", "rp"})
"""Readings above characters and the brackets around them, which would divide a word; their end tags may be left out."""
AROUND = frozenset({"nav", "header", "footer", "aside"})
"""Elements around the main text of a page; a page that has text only there keeps it."""
INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
POWER = re.compile(r"\s*[+−-]?[0-9]{1,4}\s*")
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell from the part `start` to the part `end`, with the columns and rows over which it extends."""

    start: int
    end: int
    is_name: bool
    columns: int
    rows: int


LONGEST_REST = 10_000
"""Characters behind an opening that is never closed; more are read as text, since the parser would look for its end again and again."""


def raised(text: str) -> str:
    """Write a number as superscript; other texts stay.

    >>> raised("2"), raised("th")
    ('²', 'th')
    """
    return text.translate(RAISED) if POWER.fullmatch(text) else text


def declared_encoding(raw: bytes) -> str:
    """Return the encoding that a page declares; "" if it declares none."""
    match = CHARSET.search(raw[:4096])
    name = match[1].decode("ascii").lower() if match else ""
    return {"shift_jis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030", "gbk": "gb18030"}.get(name, name)


def sections(html: str) -> ParsedDocument:
    """Read HTML as text with its headings."""
    reading = _read_sections(html, SILENT | AROUND)
    return reading if reading.text.strip() else _read_sections(html, SILENT)


def _read_sections(html: str, silent: frozenset[str]) -> ParsedDocument:
    pages = _Sections(silent)
    pages.feed(html)
    if len(pages.rawdata) > LONGEST_REST:
        pages.handle_data(pages.rawdata)
    else:
        pages.close()
    return pages.reading()


class _Table:
    """The cells of a table as ranges of the parts that a page was written as; one that arranges a page `is_layout`."""

    def __init__(self) -> None:
        self.start = 0
        self.is_layout = False
        self._rows: list[list[_Cell]] = []
        self._is_open = False

    def start_row(self, at: int) -> None:
        """Start a row at a number of parts."""
        self.start = self.start if self._rows else at
        self._rows.append([])

    def start_cell(self, at: int, tag: str, attrs: Mapping[str, str | None]) -> None:
        """Start a cell."""
        if not self._rows:
            self.start_row(at)
        spans = (
            int(given[:9]) if (given := attrs.get(name) or "").isdecimal() else 1 for name in ("colspan", "rowspan")
        )
        columns, rows = (min(max(span, 1), MOST_SPANNED) for span in spans)
        self._rows[-1].append(_Cell(at, at, tag == "th", columns, rows))
        self._is_open = True

    def end_cell(self, at: int) -> None:
        """End the open cell, if there is one."""
        if self._is_open:
            self._rows[-1][-1] = replace(self._rows[-1][-1], end=at)
        self._is_open = False

    def text(self, parts: Sequence[str]) -> str:
        """Return the table as one of Markdown; "" if it arranges a page, or is no more than a row or a column."""
        cells = sum(map(len, self._rows))
        if self.is_layout or cells > MOST_CELLS:
            return ""
        headers = [*takewhile(lambda row: row and all(cell.is_name for cell in row), self._rows)]
        rows = self._filled(parts, len(headers))
        width = max(map(len, rows), default=0)
        if (
            len(rows) < 2
            or width < 2
            or len(rows) * width > 10 * cells + 100
            or max(map(len, chain(*rows))) > LONGEST_TABLE_CELL
        ):
            return ""
        if not 0 < len(headers) < len(rows):
            return table_text(*guess_header(rows))
        names = zip_longest(*rows[: len(headers)], fillvalue="")
        return table_text([" ".join(dict.fromkeys(filter(None, column))) for column in names], rows[len(headers) :])

    def _filled(self, parts: Sequence[str], headers: int) -> list[list[str]]:
        """Return the texts of the rows: a cell over several rows is repeated in each, a name over several columns in each."""
        filled: list[list[str]] = []
        below: dict[int, tuple[int, str]] = {}
        for number, cells in enumerate(self._rows):
            line: list[str] = []
            following: dict[int, tuple[int, str]] = {}

            def put(
                text: str, rows: int, line: list[str] = line, following: dict[int, tuple[int, str]] = following
            ) -> None:
                if rows > 1:
                    following[len(line)] = (rows - 1, text if len(text) <= LONGEST_REPEATED else "")
                line.append(text)

            for cell in cells:
                while len(line) in below:
                    rows, above = below[len(line)]
                    put(above, rows)
                text = " ".join("".join(parts[cell.start : cell.end]).split())
                for column in range(cell.columns):
                    put(text if not column or (number < headers and len(text) <= LONGEST_REPEATED) else "", cell.rows)
            while len(line) in below:
                rows, above = below[len(line)]
                put(above, rows)
            below = following
            if any(line):
                filled.append(line)
        return filled


class _Sections(HTMLParser):
    def __init__(self, silent: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._silent = silent
        self._parts: list[str] = []
        self._length = 0
        self._newlines = 0
        """The number of line ends at the end of the output."""
        self._fresh = True
        """Whether a line has just begun, so that white space is dropped."""
        self._hushed: list[str] = []
        self._kept = 0
        self._heading: tuple[int, int] | None = None
        self._headings: list[Heading] = []
        self._title: list[str] = []
        self._in_title = False
        self._tables: list[_Table] = []
        self._described = ""
        """The last part of a list of descriptions: a term (`dt`), or what is said of it (`dd`)."""
        self._joins = False
        """Whether what follows belongs to the term before it."""
        self._lists: list[int] = []
        """The numbers of the last items of the open lists, -1 without numbers."""
        self._is_raised = False

    def reading(self) -> ParsedDocument:
        title = " ".join("".join(self._title).split()) or first_heading(self._headings)
        return ParsedDocument("".join(self._parts), title, tuple(self._headings))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and not self._hushed and not self._title:
            self._in_title = True  # the title of a drawing is not the title of the page
        self._end_readings(tag)
        given = dict(attrs)
        is_hidden = given.get("hidden", "until-found") != "until-found" or INVISIBLE.search(given.get("style") or "")
        if (
            self._hushed
            and OPEN_ENDED.issuperset(self._hushed)
            and (tag == self._hushed[0] or (self._hushed[0] == "p" and tag in BLOCKS | HEADINGS.keys()))
        ):
            self._hushed.clear()
        if is_hidden and tag in BLOCKS and not self._hushed:
            self._break(1)
        if tag in self._silent or ((is_hidden or self._hushed) and tag not in VOID):
            self._hushed.append(tag)
        if self._hushed:
            return
        self._is_raised = tag == "sup"
        if tag in TABLE_PARTS and self._tables:
            self._tables[-1].end_cell(len(self._parts))
        if level := HEADINGS.get(tag):
            self._break(2)
            self._heading = (self._length, level)
            self._no_tables()
        elif tag == "dd" and self._described:
            self._put("; " if self._described == "dd" else ": ")
            self._fresh = self._joins = True
            self._described = tag
        elif tag in BLOCKS:
            self._described = tag if tag == "dt" else self._described * (tag != "dl")
            self._break(2 if tag in {"p", "table", "ul", "ol", "dl", "pre", "blockquote", "section", "article"} else 1)
            self._kept += tag == "pre"
            if tag in LISTS:
                start = given.get("start") or ""
                self._lists.append(-1 if tag == "ul" else int(start[:9]) - 1 if start.isdecimal() else 0)
            elif tag == "li":
                number = self._lists[-1] if self._lists else -1
                self._lists[-1:] = [number + (number >= 0)]
                self._put("- " if number < 0 else f"{number + 1}. ")
                self._fresh = True
            elif tag == "table":
                self._no_tables()  # one within another arranges a page
                self._tables.append(_Table())
            elif tag == "tr" and self._tables:
                self._tables[-1].start_row(len(self._parts))
        elif tag in CELLS:
            if not self._fresh:
                self._put("\t")
            if self._tables:
                self._tables[-1].start_cell(len(self._parts), tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        self._end_readings(tag)
        if self._hushed:
            if tag in self._hushed or self._hushed[0] not in OPEN_ENDED or tag not in BLOCKS | TABLE_PARTS:
                while tag in self._hushed and self._hushed.pop() != tag:
                    pass
                return
            self._hushed.clear()  # the element around the hidden one ends
        self._is_raised = False
        if tag in LISTS and self._lists:
            self._lists.pop()
        if tag in TABLE_PARTS and self._tables:
            self._tables[-1].end_cell(len(self._parts))
        if tag == "table" and self._tables:
            self._end_table(self._tables.pop())
        if tag in HEADINGS and self._heading is not None:
            start, level = self._heading
            words = self._since(start)
            if words:
                self._headings.append(Heading(start, level, words))
            self._heading = None
            self._break(2)
        elif tag in BLOCKS - {"dt", "dd"} and tag not in VOID:
            self._described = self._described * (tag != "dl")
            self._break(1)
            self._kept -= tag == "pre" and self._kept > 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._hushed:
            # As plain digits, a power or the number of a note would become part of the number before it.
            self._write(raised(data) if self._is_raised else data)

    def _end_readings(self, tag: str) -> None:
        while self._hushed and self._hushed[-1] in READINGS and (tag in READINGS | BLOCKS or tag in {"ruby", "rb"}):
            self._hushed.pop()

    def _no_tables(self) -> None:
        for table in self._tables:
            table.is_layout = True

    def _end_table(self, table: "_Table") -> None:
        text = table.text(self._parts)
        if text:
            self._length -= sum(map(len, self._parts[table.start :]))
            del self._parts[table.start :]
            self._newlines = 1
            self._put(f"{text}\n\n")
            self._fresh = True

    def _since(self, start: int) -> str:
        """Return the words from a position near the end on, without joining the complete output."""
        at, length = len(self._parts), self._length
        while length > start:
            at -= 1
            length -= len(self._parts[at])
        return " ".join("".join(self._parts[at:])[start - length :].split())

    def _write(self, text: str) -> None:
        if self._kept:
            self._put(text)
            self._fresh = text.endswith("\n")
            return
        words = " ".join(text.split())
        if not words:
            if text and not self._fresh:
                self._put(" ")
                self._fresh = True
            return
        self._joins = False
        before = " " if text[0].isspace() and not self._fresh else ""
        after = " " if text[-1].isspace() else ""
        self._put(before + words + after)
        self._fresh = bool(after)

    def _break(self, lines: int) -> None:
        if self._length and not self._joins:
            self._put("\n" * max(lines - self._newlines, 0))
        self._fresh = True

    def _put(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)
            line = text.rstrip("\n")
            self._newlines = len(text) - len(line) + (0 if line else self._newlines)


SMALL = re.compile(r"<(su[bp])>([^<]*)</\1>")


def read_html(raw: bytes) -> ParsedDocument:
    """Read a page; with trafilatura installed only its main text, unless that loses much of it."""
    text = decode(raw, declared_encoding(raw))
    front = front_matter(text, "page")
    page = _read_page(text[front.end :])
    return replace(page, title=front.title or page.title, access=front.access)


def _read_page(html: str) -> ParsedDocument:
    whole = sections(html)
    try:
        trafilatura: Any = import_module("trafilatura")
    except ImportError:
        return whole
    # It extracts the main text of a page; if it loses tables, the terms of descriptions, headings or most of the text, its result is
    # discarded.
    tree = trafilatura.load_html(html)
    for hidden in () if tree is None else tree.xpath("//*[@hidden and @hidden != 'until-found']"):
        hidden.drop_tree()
    inner = trafilatura.extract(tree, output_format="markdown", include_comments=False, include_tables=True)
    text = SMALL.sub(lambda each: raised(each[2]) if each[1] == "sup" else each[2], str(inner or ""))
    tables, own = tables_in(whole.text), tables_in(text)
    if len(own) == len(tables):  # it shifts the cells of merged rows
        for (start, end, _), (first, last, _) in [*zip(own, tables, strict=True)][::-1]:
            text = text[:start] + whole.text[first:last] + text[end:]
    reading = read_markdown(text)
    if (
        len(own) != len(tables)
        or "<dl" in html.lower()
        or 4 * len(reading.text) < len(whole.text)
        or 2 * len(reading.headings) < len(whole.headings)
    ):
        return whole
    return ParsedDocument(reading.text, whole.title or reading.title, reading.headings)
