"""Convert documents to text with headings and pages, in a child process with limits on time, memory and text; one process
reads many files.

A request is the path of a private copy; the answer is its title, its access list and its chunks, or a short description of
the problem. Both ends are in this file: `IsolatedReader` is the parent's, `entry` the child's.

A byte order mark, the declared encoding and strict UTF-8 are tried before any guess. HTML becomes text with headings: blocks
become lines, cells are separated by tabs, and scripts and styles are dropped. Nothing is fetched. Reading a file takes time
and memory proportional to its size, whatever its content.
"""

import csv
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from taiwa.extras import missing_extra
from taiwa.isolation import Handler, IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.serialization import Json, value
from taiwa.plugins import find_plugin, plugin_names
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.document_access import AccessUnclearError, front_matter
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
    "markdown": "markdown-3", "text": "text-4", "table": "table-4", "html": "html-3", "pdf": "pdf-1", "docx": "docx-1",
}  # fmt: skip
"""The reader of each format; files read by another version are read again."""
CHUNKER = "split-1"
"""The version of `chunks`, which is part of the name of a reader."""
NEEDED = {"pdf": "pypdfium2", "docx": "mammoth"}
MISSING = "missing"
"""The reader name of files that need a missing extra: they are retried each time."""
LIMITS = ProcessLimits(seconds=20.0, memory_mb=400, characters=16_000_000)


@value
class ReadDocument:
    """The indexed content of a file: its title, its own access list (None without one), and its chunks."""

    title: str
    access: tuple[str, ...] | None
    chunks: tuple[Chunk, ...]


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
        """Read the bytes of a document.

        Raises:
            UnreadableError: they cannot be read; the message says why.
            AccessUnclearError: the document restricts access in a way that cannot be understood.
        """
        if reader_name(kind) == MISSING and kind in NEEDED:
            raise UnreadableError(missing_extra(f"a file of this format (no {NEEDED[kind]})", "docs").message)
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
            return _to_json(ReadDocument(reading.title, reading.access, split_into_chunks(reading)))
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
    return {"title": document.title, "access": access, "chunks": chunks}


def _from_json(answer: dict[str, Json]) -> ReadDocument:
    access = cast("list[str] | None", answer["access"])
    chunks = cast("list[tuple[str, int, list[str], int]]", answer["chunks"])
    return ReadDocument(
        str(answer["title"]), None if access is None else tuple(access),
        tuple(Chunk(text, start, tuple(heading), page) for text, start, heading, page in chunks),
    )  # fmt: skip


BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
UTF_16 = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", *UTF_16]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
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
    return raw.decode(_guess(sample if wide or len(raw) <= SAMPLE_BYTES else _whole_lines(sample)), errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _whole_lines(sample: bytes) -> bytes:
    """Cut a sample at a line end, so that no character is split."""
    return sample[: sample.rfind(b"\n") + 1] or sample


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


NUMBER = re.compile(r"[\s\d.,:/%+-]*")
QUOTED = re.compile(r'"[^"]*"')
LONGEST_ROW = 64 << 10
"""Maximum characters of the column names."""


def read_text(text: str) -> ParsedDocument:
    """Read plain text: it has no headings, but may have front matter.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    front = front_matter(text, "comments")
    return ParsedDocument(" " * front.end + text[front.end :], front.title, access=front.access)


def read_table(text: str) -> ParsedDocument:
    """Read CSV or TSV: rows stay as written, and the column names are their heading.

    Raises:
        AccessUnclearError: as `read_markdown`.
    """
    reading = read_text(text)
    start = reading.text.find("\n") + 1
    head = text[:LONGEST_ROW]
    csv.field_size_limit(LONGEST_ROW)
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=_delimiter(head.partition("\n")[0]))
    try:
        cells = [" ".join(cell.split()) for cell in next(reader, list[str]())]
    except csv.Error:
        return reading
    if not 0 < start < len(text) or not all(cells) or len(set(cells)) < len(cells) or any(map(NUMBER.fullmatch, cells)):
        return reading
    return replace(reading, headings=(Heading(0, 1, " | ".join(cells)),))


def _delimiter(line: str) -> str:
    return max(",\t;|", key=QUOTED.sub("", line).count)


CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "address article blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure form hr html "
    "legend li main ol option p pre section summary table tbody tfoot thead title tr ul".split()
)
CELLS = frozenset({"td", "th"})
SILENT = frozenset("script style noscript template svg math object iframe select textarea button".split())
AROUND = frozenset({"nav", "header", "footer", "aside"})
"""Elements around the main text of a page; a page that has text only there keeps it."""
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


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

    def reading(self) -> ParsedDocument:
        title = " ".join("".join(self._title).split()) or _first_heading(self._headings)
        return ParsedDocument("".join(self._parts), title, tuple(self._headings))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "title" and not self._hushed and not self._title:
            self._in_title = True  # the title of a drawing is not the title of the page
        if tag in self._silent:
            self._hushed.append(tag)
        if self._hushed:
            return
        if level := HEADINGS.get(tag):
            self._break(2)
            self._heading = (self._length, level)
        elif tag in BLOCKS:
            self._break(2 if tag in {"p", "table", "ul", "ol", "dl", "pre", "blockquote", "section", "article"} else 1)
            self._kept += tag == "pre"
            if tag == "li":
                self._put("- ")
                self._fresh = True
        elif tag in CELLS and not self._fresh:
            self._put("\t")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._hushed:
            while tag in self._hushed and self._hushed.pop() != tag:
                pass
            return
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
    if not any(part.strip() for part in parts):
        raise UnreadableError("no text layer: it is pictures of pages, so run text recognition on it first")
    return ParsedDocument("".join(parts), title, headings, tuple(starts))


def _page(document: Any, number: int) -> str:  # noqa: ANN401  (pypdfium2 has no types)
    page = document[number]
    try:
        text = str(page.get_textpage().get_text_range())
    finally:
        page.close()
    # A word hyphenated at the end of a line is joined again; PDFium marks the position.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for mark in ("\ufffe", "\x02"):
        text = text.replace(f"{mark}\n", "").replace(mark, "")
    return text.replace("\x00", "").rstrip() + "\n\n"


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
        # Pictures are neither read nor followed.
        html = mammoth.convert_to_html(io.BytesIO(raw), convert_image=mammoth.images.img_element(_no_picture)).value
    except zipfile.BadZipFile:
        raise UnreadableError("broken or encrypted: not a DOCX that can be opened") from None
    return sections(str(html))


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
    # It extracts the main text of a page; if it loses the headings or most of the text, its result is discarded.
    inner = trafilatura.extract(html, output_format="markdown", include_comments=False, include_tables=True)
    reading = read_markdown(str(inner or ""))
    if 4 * len(reading.text) < len(whole.text) or 2 * len(reading.headings) < len(whole.headings):
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
        return found if isinstance(found, ParsedDocument) else read_text(str(found))

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
SENTENCE = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+")
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
            chunks.append(Chunk(reading.text[first:last], first, words, page))
            if len(chunks) > MOST_CHUNKS:
                raise UnreadableError(f"more than {MOST_CHUNKS:,} sections")
    return tuple(chunks)


def _packed(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Merge neighbours as long as they fit."""
    first = last = -1
    size = 0.0
    for begin, stop in _parts(text, start, end, room, (PARAGRAPH, LINE, SENTENCE, GAP)):
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
