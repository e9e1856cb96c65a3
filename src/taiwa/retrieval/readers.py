"""Convert documents to text with headings and pages, in a child process with limits on time, memory and text; one process
reads many files.

A request is the path of a private copy; the answer is its title, its access list and its chunks, or a short description of
the problem. Both ends are in this file: `IsolatedReader` is the parent's, `entry` the child's.

A byte order mark, the declared encoding and strict UTF-8 are tried before any guess. HTML becomes text with headings: blocks
become lines, and scripts and styles are dropped. A table of any format becomes one of Markdown. Nothing is fetched. Reading a file takes time
and memory proportional to its size, whatever its content.
"""

import csv
import io
import os
import re
import tempfile
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, pairwise, takewhile, zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from taiwa.extras import missing_extra
from taiwa.isolation import Handler, IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import SENTENCE_END
from taiwa.plugins import find_plugin, plugin_names
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.document_access import AccessUnclearError, front_matter
from taiwa.retrieval.tables import Box, aligned_tables, guess_header, table_text, tables_in
from taiwa.retrieval.types import Chunk, Heading, ParsedDocument, UnreadableError, lines_of, reason_of

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch
    from markdown_it import MarkdownIt


DocumentFormat: TypeAlias = Literal["markdown", "text", "table", "html", "pdf", "docx"]
FORMATS: dict[str, DocumentFormat] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".log"), "text"),
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}
"""The format of a document by its suffix."""
VERSIONS: dict[DocumentFormat, str] = {
    "markdown": "markdown-3", "text": "text-4", "table": "table-5", "html": "html-4", "pdf": "pdf-3", "docx": "docx-2",
}  # fmt: skip
"""The reader of each format; files read by another version are read again."""
CHUNKER = "split-2"
"""The version of `chunks`, which is part of the name of a reader."""
NEEDED = {"pdf": "pypdfium2", "docx": "mammoth"}
MISSING = "missing"
"""The reader name of files that need a missing extra: they are retried each time."""
LIMITS = ProcessLimits(seconds=20.0, memory_mb=400, characters=16_000_000)


@value
class ReadDocument:
    """The indexed content of a file: its title, its own access list (None without one), and its chunks.

    `doubt` says why the text may be a fragment.
    """

    title: str
    access: tuple[str, ...] | None
    chunks: tuple[Chunk, ...]
    doubt: str = ""


def document_format(path: str) -> str | None:
    """Return the format of a document by its suffix: None if unsupported, the suffix itself for a plug-in."""
    suffix = PurePosixPath(path).suffix.lower()
    return FORMATS.get(suffix) or (suffix if suffix in _plugin_suffixes() else None)


def readable_suffixes() -> tuple[str, ...]:
    """Return the supported suffixes, including those of plug-ins, in order."""
    return tuple(sorted({*FORMATS, *_plugin_suffixes()}))


@cache
def _plugin_suffixes() -> frozenset[str]:
    return frozenset(f".{name.lower()}" for name in plugin_names("readers"))


@cache
def reader_name(kind: str) -> str:
    """Return the name and version of the reader of a format: files read by another version are read again.

    Raises:
        ConfigError: two packages read the format.
    """
    if kind.startswith("."):
        plugin = find_plugin("readers", kind[1:])
        return f"{plugin.package}-{plugin.version}+{CHUNKER}" if plugin is not None else MISSING
    if kind in NEEDED and find_spec(NEEDED[kind]) is None:
        return MISSING
    bare = "bare " if kind == "html" and find_spec("trafilatura") is None else ""
    return f"{bare}{VERSIONS[cast('DocumentFormat', kind)]}+{CHUNKER}"


class IsolatedReader:
    """Reads files in a child process, which is started at the first file, and again after a file that crashed it."""

    def __init__(self, limits: ProcessLimits = LIMITS) -> None:
        self._limits = limits
        self._worker: IsolatedProcess | None = None

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def read(self, raw: bytes, kind: str) -> ReadDocument:
        """Read the bytes of a document; one whose text seems to be a fragment is read again by a new process.

        Raises:
            UnreadableError: they cannot be read; the message says why.
            AccessUnclearError: the document restricts access in a way that cannot be understood.
        """
        if reader_name(kind) == MISSING and kind in NEEDED:
            raise UnreadableError(missing_extra(f"a file of this format (no {NEEDED[kind]})", "docs").message)
        document = self._read(raw, kind)
        if document.doubt:
            self.close()
            document = self._read(raw, kind)
        return document

    def _read(self, raw: bytes, kind: str) -> ReadDocument:
        if self._worker is None:
            self._worker = IsolatedProcess("taiwa.retrieval.readers:entry", {}, "reading", self._limits)
        # A private copy: the file itself may be moved or relinked between two accesses.
        handle, name = tempfile.mkstemp(prefix="taiwa-")
        try:
            with os.fdopen(handle, "wb") as copy:
                copy.write(raw)
            answer = self._worker.ask({"path": name, "kind": kind}, self._limits)
        except ToolError as error:
            self.close()
            raise UnreadableError(_why(error.code, self._limits)) from error
        except BaseException:
            self.close()
            raise
        finally:
            Path(name).unlink(missing_ok=True)
        if "unclear" in answer:
            raise AccessUnclearError(str(answer["unclear"]))
        if "problem" in answer:
            raise UnreadableError(str(answer["problem"]))
        return _from_json(answer)


def _why(code: str, limits: ProcessLimits) -> str:
    words = {
        "timeout": f"takes longer than {limits.seconds:g} seconds to read",
        "too_large": f"more than {limits.characters:,} characters of text",
    }
    return words.get(code, "makes its reader fail: it is broken, or needs too much memory")


def entry(start: dict[str, Json]) -> Handler:
    """Return the function that answers requests in the child process."""
    del start

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        try:
            reading = read_document(Path(str(question["path"])).read_bytes(), str(question["kind"]), characters)
            return _to_json(ReadDocument(reading.title, reading.access, split_into_chunks(reading), reading.doubt))
        except AccessUnclearError as error:
            return {"unclear": error.message}
        except (UnreadableError, ConfigError) as error:
            return {"problem": error.message}
        except OSError as error:
            return {"problem": f"cannot be read: {reason_of(error)}"}
        except (MemoryError, RecursionError):
            return {"problem": "needs too much memory to read"}

    return answer


def _to_json(document: ReadDocument) -> dict[str, Json]:
    access: Json = None if document.access is None else [*document.access]
    chunks: list[Json] = [[each.text, each.start, [*each.heading], each.page] for each in document.chunks]
    return {"title": document.title, "access": access, "chunks": chunks, "doubt": document.doubt}


def _from_json(answer: dict[str, Json]) -> ReadDocument:
    access = cast("list[str] | None", answer["access"])
    chunks = cast("list[tuple[str, int, list[str], int]]", answer["chunks"])
    return ReadDocument(
        str(answer["title"]), None if access is None else tuple(access),
        tuple(Chunk(text, start, tuple(heading), page) for text, start, heading, page in chunks),
        str(answer["doubt"]),
    )  # fmt: skip


BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
UTF_16 = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", *UTF_16]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
NOT_ASCII = re.compile(rb"[\x80-\xff][^\n]*\n?")
STRAY = 4
"""Control codes allowed in a text file."""
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file with `\\n` for every line ending; `declared` is the encoding that the file declares.

    Raises:
        UnreadableError: the bytes are not text.
    """
    text = _decode(raw, declared)
    if len(BINARY.findall(text[:SAMPLE_BYTES])) > STRAY + len(text[:SAMPLE_BYTES]) // 100:
        raise UnreadableError("not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, declared: str) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _strict(raw, encoding) or raw.decode(encoding, errors="replace").lstrip("\ufeff")
    sample = raw[:SAMPLE_BYTES]
    wide = sample.count(0) * 10 > len(sample)  # UTF-16 without a byte order mark: zeros are valid UTF-8 too
    likely = (("iso2022_jp_ext" if b"\x1b$" in raw else ""), *(() if wide else ("utf-8", declared)))
    for encoding in likely:
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    text = raw.decode("utf-8", errors="replace")
    if not wide and text.count("\ufffd") * 50 < len(text) - len(text.encode("ascii", errors="ignore")):
        return text  # UTF-8 with an invalid sequence
    del text
    return raw.decode(_guess(sample if wide else _telling_lines(raw)), errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _telling_lines(raw: bytes) -> bytes:
    """Return the first lines that are not ASCII, wherever they are; only these depend on the encoding."""
    lines: list[bytes] = []
    size = end = 0
    for rest in NOT_ASCII.finditer(raw):
        lines.append(raw[raw.rfind(b"\n", end, rest.start()) + 1 or end : rest.end()])
        size, end = size + len(lines[-1]), rest.end()
        if size > SAMPLE_BYTES:
            break
    return b"".join(lines[: -1 if size > SAMPLE_BYTES else None] or lines)[:SAMPLE_BYTES]


def _guess(sample: bytes) -> str:
    """Guess the encoding of some bytes; cp1252, which accepts anything, if nothing else fits."""
    from charset_normalizer import from_bytes

    def is_unlikely(match: "CharsetMatch") -> bool:
        return match.encoding in UTF_16 or (match.encoding == "cp949" and bool(IDEOGRAPH.search(str(match))))

    # Equal scores are common for a few characters: Korean is written without ideographs, and few files are UTF-16 without a mark.
    best = min(from_bytes(sample, cp_isolation=GUESSES), key=is_unlikely, default=None)
    return "cp1252" if best is None else best.encoding


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
    body = text[front.end :]
    headings: list[Heading] = []
    if body.count("\n") <= MOST_LINES:
        starts = lines_of(body)
        tokens = _parser().parse(body)
        for at, token in enumerate(tokens):
            # Only headings of the document itself: a heading within a quotation or a list starts no section.
            if token.type == "heading_open" and token.level == 0 and token.map:
                words = _plain_heading(tokens[at + 1].content[:LONGEST_SOURCE])
                headings.append(Heading(front.end + starts[token.map[0]], int(token.tag[1]), words))
    title = front.title or _first_heading(headings)
    # Spaces replace the front matter, so that all offsets stay valid.
    return ParsedDocument(" " * front.end + body, title, tuple(headings), access=front.access)


def _first_heading(headings: Iterable[Heading]) -> str:
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


def read_text(text: str) -> ParsedDocument:
    """Read plain text: it has no headings, but may have front matter.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    front = front_matter(text, "comments")
    return ParsedDocument(" " * front.end + text[front.end :], front.title, access=front.access)


SEPARATOR_ROW = ["sep=", ""]
"""The line with which Excel names the delimiter."""


def read_table(text: str) -> ParsedDocument:
    """Read CSV or TSV as a table of Markdown; a text that cannot be read so stays as it is.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    reading = read_text(text)
    body = reading.text.lstrip()
    csv.field_size_limit(LONGEST_CELL)
    lines = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter_of(body.partition("\n")[0]))
    try:
        rows = [row for row in lines if any(row) and row != SEPARATOR_ROW]
    except csv.Error:
        return reading
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width < 2 or len(rows) * width > 2 * len(body):
        return reading
    return replace(reading, text=table_text(*guess_header(rows, usual=True)))


def delimiter_of(line: str) -> str:
    """Return the delimiter of a table from its first line."""
    return max(",\t;|", key=QUOTED.sub("", line).count)


CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "address article blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure form hr html "
    "legend li main ol option p pre section summary table tbody tfoot thead title tr ul".split()
)
CELLS = frozenset({"td", "th"})
TABLE_PARTS = CELLS | {"table", "tr", "thead", "tbody", "tfoot"}
MOST_SPANNED = 20
MOST_CELLS = 100_000
LONGEST_TABLE_CELL = 1_000
"""Characters of a cell above which a table is taken to arrange a page."""
LONGEST_REPEATED = 100
"""Characters of a cell up to which it is repeated in the rows or columns over which it extends."""
SILENT = frozenset("script style noscript template svg math object iframe select textarea button rt rp".split())
READINGS = frozenset({"rt", "rp"})
"""Readings above characters and the brackets around them, which would divide a word; their end tags may be left out."""
AROUND = frozenset({"nav", "header", "footer", "aside"})
"""Elements around the main text of a page; a page that has text only there keeps it."""
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell from the part `start` to the part `end`, with the columns and rows over which it extends."""

    start: int
    end: int
    is_name: bool
    columns: int
    rows: int


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
        spans = (int(given) if (given := attrs.get(name) or "").isdecimal() else 1 for name in ("colspan", "rowspan"))
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

    def reading(self) -> ParsedDocument:
        title = " ".join("".join(self._title).split()) or _first_heading(self._headings)
        return ParsedDocument("".join(self._parts), title, tuple(self._headings))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and not self._hushed and not self._title:
            self._in_title = True  # the title of a drawing is not the title of the page
        self._end_readings(tag)
        if tag in self._silent:
            self._hushed.append(tag)
        if self._hushed:
            return
        if tag in TABLE_PARTS and self._tables:
            self._tables[-1].end_cell(len(self._parts))
        if level := HEADINGS.get(tag):
            self._break(2)
            self._heading = (self._length, level)
            self._no_tables()
        elif tag in BLOCKS:
            self._break(2 if tag in {"p", "table", "ul", "ol", "dl", "pre", "blockquote", "section", "article"} else 1)
            self._kept += tag == "pre"
            if tag == "li":
                self._put("- ")
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
                self._tables[-1].start_cell(len(self._parts), tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        self._end_readings(tag)
        if self._hushed:
            while tag in self._hushed and self._hushed.pop() != tag:
                pass
            return
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
        elif tag in BLOCKS and tag not in VOID:
            self._break(1)
            self._kept -= tag == "pre" and self._kept > 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._hushed:
            self._write(data)

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
        before = " " if text[0].isspace() and not self._fresh else ""
        after = " " if text[-1].isspace() else ""
        self._put(before + words + after)
        self._fresh = bool(after)

    def _break(self, lines: int) -> None:
        if self._length:
            self._put("\n" * max(lines - self._newlines, 0))
        self._fresh = True

    def _put(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)
            line = text.rstrip("\n")
            self._newlines = len(text) - len(line) + (0 if line else self._newlines)


MOST_UNPACKED = 256 << 20
MOST_ENTRIES = 10_000
MOST_BOOKMARKS = 5_000
LEAST_ON_PAGE = 4
"""Characters of an average page below which the text of a PDF is rather a fragment, or the number of a page that is a picture."""
DEEPEST_BOOKMARK = 6


def _read_pdf(raw: bytes) -> ParsedDocument:
    pdfium: Any = import_module("pypdfium2")

    try:
        document = pdfium.PdfDocument(raw)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise UnreadableError("encrypted: it needs a password") from None
        raise UnreadableError("broken: not a PDF that can be opened") from None
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    try:
        for number in range(len(document)):
            text = _page(document, number)
            starts.append(length)
            parts.append(text)
            length += len(text)
        headings = _bookmarks(document, starts, "".join(parts))
        title = str(document.get_metadata_value("Title") or "").strip()
    except pdfium.PdfiumError:
        raise UnreadableError(f"broken: page {len(parts) + 1} cannot be read") from None
    found = sum(len("".join(part.split())) for part in parts)
    if not found:
        raise UnreadableError("no text layer: it is pictures of pages, so run text recognition on it first")
    few = (
        f"fewer than {LEAST_ON_PAGE} characters of text a page; it will be read again"
        if found < LEAST_ON_PAGE * len(parts)
        else ""
    )
    return ParsedDocument("".join(parts), title, headings, tuple(starts), doubt=few)


NOT_SPACE = re.compile(r"\S+")
LONGEST_LINE = 1_000


def _page(document: Any, number: int) -> str:  # noqa: ANN401  (pypdfium2 has no types)
    page = document[number]
    try:
        written = page.get_textpage()
        lines = str(written.get_text_range()).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for first, last, table in [*aligned_tables(_boxes(written, len(lines)))][::-1]:
            lines[first:last] = [table]
    finally:
        page.close()
    # A word hyphenated at the end of a line is joined again; PDFium marks the position.
    text = "\n".join(lines)
    for mark in ("\ufffe", "\x02"):
        text = text.replace(f"{mark}\n", "").replace(mark, "")
    return text.replace("\x00", "").rstrip() + "\n\n"


WIDE_GAP = 0.8
"""The least width of the gap between two cells, in heights of a line; words of justified text are nearer."""


def _boxes(page: Any, lines: int) -> list[list[Box]]:  # noqa: ANN401  (as above)
    """Return the parts of each line of a page that stand apart; nothing if its characters do not come in these lines."""
    raw: Any = import_module("pypdfium2.raw")
    read, place = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
    characters = (
        "".join(chr(read(page, at)) for at in range(page.count_chars())).replace("\r\n", " \n").replace("\r", "\n")
    )
    found: list[list[Box]] = []
    at = 0
    if characters.count("\n") + 1 != lines:
        return found
    left, right = raw.FS_RECTF(), raw.FS_RECTF()
    for line in characters.split("\n"):
        boxes: list[Box] = []
        words = [*NOT_SPACE.finditer(line)] if len(line) <= LONGEST_LINE else []
        for word in words:
            place(page, at + word.start(), left)
            place(page, at + word.end() - 1, right)
            if boxes and left.left - boxes[-1][1] < WIDE_GAP * (left.top - left.bottom):
                boxes[-1] = (boxes[-1][0], right.right, f"{boxes[-1][2]} {word[0]}")
            else:
                boxes.append((left.left, right.right, word[0]))
        found.append(boxes)
        at += len(line) + 1
    return found


def _bookmarks(document: Any, starts: list[int], text: str) -> tuple[Heading, ...]:  # noqa: ANN401  (as above)
    """Return the outline; a heading starts at its words on its page, or at the start of the page."""
    headings: list[Heading] = []
    ends = [*starts[1:], len(text)]
    for bookmark in document.get_toc(max_depth=DEEPEST_BOOKMARK):
        to: Any = bookmark.get_dest()
        page = cast("int | None", to.get_index() if to is not None else None)
        words = " ".join(str(bookmark.get_title()).split())
        if page is None or not 0 <= page < len(starts) or not words:
            continue
        at = text.find(words, starts[page], ends[page])
        headings.append(Heading(max(at, starts[page]), int(bookmark.level) + 1, words))
        if len(headings) >= MOST_BOOKMARKS:
            break
    return tuple(sorted(headings, key=lambda each: each.start))


def _read_docx(raw: bytes) -> ParsedDocument:
    mammoth: Any = import_module("mammoth")

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            entries = packed.infolist()
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > MOST_UNPACKED:
                raise UnreadableError(f"unpacks to more than {MOST_UNPACKED >> 20} MB")
            parts = {entry.filename: packed.read(entry) for entry in entries if WORD_PART.fullmatch(entry.filename)}
            written = sum(len(text) for part in parts.values() for text in WRITTEN.findall(part))
            if any(map(READING.search, parts.values())):
                raw = _without_readings(packed, parts)
        # Pictures are neither read nor followed.
        html = mammoth.convert_to_html(io.BytesIO(raw), convert_image=mammoth.images.img_element(_no_picture)).value
    except zipfile.BadZipFile:
        raise UnreadableError("broken or encrypted: not a DOCX that can be opened") from None
    reading = sections(str(html))
    found = len(reading.text.encode())
    few = f"only {found / written:.0%} of its text was found; it will be read again" if 4 * found < written else ""
    return replace(reading, doubt=few)


WORD_PART = re.compile(r"word/\w+\.xml")
WRITTEN = re.compile(rb"<\w+:t(?: [^>]*)?>([^<]*)")
READING = re.compile(rb"<(\w+):rt(?: [^>]*)?>.*?</\1:rt>", re.DOTALL)
AROUND_READING = re.compile(rb"</?\w+:(?:ruby|rubyBase)(?: [^>]*)?>")


def _without_readings(packed: zipfile.ZipFile, parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX without the readings above its characters: mammoth leaves out these characters together with them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as plain:
        for entry in packed.infolist():
            if (part := parts.get(entry.filename)) is not None:
                plain.writestr(entry.filename, AROUND_READING.sub(b"", READING.sub(b"", part)))
            elif entry.filename.endswith((".xml", ".rels")):
                plain.writestr(entry.filename, packed.read(entry))
    return out.getvalue()


def _no_picture(_: object) -> dict[str, str]:
    return {}


def _read_html(raw: bytes) -> ParsedDocument:
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
    # It extracts the main text of a page; if it loses tables, headings or most of the text, its result is discarded.
    inner = trafilatura.extract(html, output_format="markdown", include_comments=False, include_tables=True)
    text, tables, own = str(inner or ""), tables_in(whole.text), tables_in(str(inner or ""))
    if len(own) == len(tables):  # it shifts the cells of merged rows
        for (start, end, _), (first, last, _) in [*zip(own, tables, strict=True)][::-1]:
            text = text[:start] + whole.text[first:last] + text[end:]
    reading = read_markdown(text)
    if (
        len(own) != len(tables)
        or 4 * len(reading.text) < len(whole.text)
        or 2 * len(reading.headings) < len(whole.headings)
    ):
        return whole
    return ParsedDocument(reading.text, whole.title or reading.title, reading.headings)


TEXT_FORMATS = frozenset({"markdown", "text", "table", "html"})
BYTES_PER_CHARACTER = 4
READERS: dict[str, Callable[[bytes], ParsedDocument]] = {
    "markdown": lambda raw: read_markdown(decode(raw)), "text": lambda raw: read_text(decode(raw)),
    "table": lambda raw: read_table(decode(raw)), "html": _read_html, "pdf": _read_pdf, "docx": _read_docx,
}  # fmt: skip


def _plugin_reader(suffix: str) -> Callable[[bytes], ParsedDocument]:
    """Return the reader of a plug-in for a suffix such as `.epub`; one that returns text gives a document without headings.

    Raises:
        ConfigError: it cannot be used.
    """
    plugin = find_plugin("readers", suffix[1:])
    if plugin is None:
        raise ConfigError(f"no plug-in reads {suffix} files")
    read = cast("Callable[[bytes], object]", plugin.load())

    def parsed(raw: bytes) -> ParsedDocument:
        found = read(raw)
        if not isinstance(found, str | ParsedDocument):
            raise UnreadableError(f"broken: its reader returned no text ({type(found).__name__})")
        return read_text(found) if isinstance(found, str) else found

    return parsed


def read_document(raw: bytes, kind: str, characters: int) -> ParsedDocument:
    """Read the bytes of a document of a format.

    Raises:
        UnreadableError: they cannot be read, or are more than `characters` of text.
        ConfigError: the plug-in that reads the format cannot be used.
    """
    too_long = UnreadableError(f"more than {characters:,} characters of text")
    if kind in TEXT_FORMATS and len(raw) > BYTES_PER_CHARACTER * characters:
        raise too_long
    try:
        reading = _plugin_reader(kind)(raw) if kind.startswith(".") else READERS[kind](raw)
    except (UnreadableError, ConfigError, MemoryError, RecursionError):
        raise
    except Exception as error:
        raise UnreadableError(f"broken: its reader failed ({type(error).__name__})") from error
    if len(reading.text) > characters:
        raise too_long
    if not reading.text.strip():
        raise UnreadableError("no text in it")
    return reading


ROOM = 1_000
"""The maximum size of a chunk; a character of a script without spaces counts as two and a half."""
WIDE = re.compile(f"[{DENSE}\u3000-\u3002\uff01-\uff0f]")
EXTRA = 1.5
PARAGRAPH = re.compile(r"\n[ \t\u3000]*\n\s*")
LINE = re.compile(r"\n\s*")
GAP = re.compile(r"\s+")
LONGEST_PATH = 6
LONGEST_HEADING = 120
MOST_CHUNKS = 200_000


def split_into_chunks(reading: ParsedDocument, room: int = ROOM) -> tuple[Chunk, ...]:
    """Split a document into chunks of at most `room` units.

    Raises:
        UnreadableError: there are more than `MOST_CHUNKS`.
    """
    chunks: list[Chunk] = []
    path: list[Heading] = []
    page = following = 0
    tables = tables_in(reading.text)
    begins = [begin for begin, _, _ in tables]
    starts = {0, *reading.pages, *(each.start for each in reading.headings), len(reading.text)}
    for start, end in pairwise(sorted(starts)):
        while page < len(reading.pages) and reading.pages[page] <= start:
            page += 1
        while following < len(reading.headings) and reading.headings[following].start <= start:
            heading = reading.headings[following]
            path = [above for above in path if above.level < heading.level] + [heading]
            following += 1
        words = tuple(each.words[:LONGEST_HEADING] for each in path if each.words)[-LONGEST_PATH:]
        for first, last in _packed(reading.text, start, end, room):
            at = bisect_right(begins, first - 1) - 1
            columns = (
                (tables[at][2],) if at >= 0 and first < tables[at][1] else ()
            )  # it continues with the rows of a table
            chunks.append(Chunk(reading.text[first:last], first, words + columns, page))
            if len(chunks) > MOST_CHUNKS:
                raise UnreadableError(f"more than {MOST_CHUNKS:,} sections")
    return tuple(chunks)


def _packed(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Merge neighbours as long as they fit."""
    first = last = -1
    size = 0.0
    for begin, stop in _parts(text, start, end, room, (PARAGRAPH, LINE, SENTENCE_END, GAP)):
        more = _size(text, last if first >= 0 else begin, stop)
        if first >= 0 and size + more <= room:
            last, size = stop, size + more
            continue
        if first >= 0:
            yield first, last
        first, last, size = begin, stop, _size(text, begin, stop)
    if first >= 0:
        yield first, last


def _parts(
    text: str, start: int, end: int, room: int, borders: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    """Split at the first kind of boundary, oversized parts at the next kind, and finally anywhere."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    if _size(text, start, end) <= room:
        yield start, end
    elif borders:
        cuts = (border.end() for border in borders[0].finditer(text, start, end))
        for first, last in pairwise(chain((start,), cuts, (end,))):
            yield from _parts(text, first, last, room, borders[1:])
    else:
        step = max(int(room / (1 + EXTRA)), 1)
        for first in range(start, end, step):
            yield from _parts(text, first, min(first + step, end), room + step * 2, ())


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _size(text: str, start: int, end: int) -> float:
    if end - start > 4 * ROOM:
        return float(end - start)
    return end - start + EXTRA * len(WIDE.findall(text, start, end))
