"""The child process that reads PDF, DOCX and HTML.

A file comes as the path of a private copy; the answer is a parsed document, or a short description of the problem. Nothing is
fetched. HTML becomes text with headings: blocks become lines, cells are separated by tabs, and scripts and styles are dropped.
"""

import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from taiwa.isolation import Handler
from taiwa.kernel.records import Json, record
from taiwa.retrieval.readers import decode, read_markdown
from taiwa.retrieval.types import Heading, ParsedDocument, UnreadableError

CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "address article blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure form hr html "
    "legend li main ol option p pre section summary table tbody tfoot thead title tr ul".split()
)
CELLS = frozenset({"td", "th"})
SILENT = frozenset("script style noscript template svg math object iframe select textarea button".split())
AROUND = frozenset({"nav", "header", "footer", "aside"})
"""What surrounds the text of a page; a page whose whole text stands there keeps it."""
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


def declared_encoding(raw: bytes) -> str:
    """Return the encoding that a page says it has; nothing if it does not say."""
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
        self._fresh = True
        """Whether a line has just begun, so that white space is not wanted."""
        self._hushed: list[str] = []
        self._kept = 0
        self._heading: tuple[int, int] | None = None
        self._headings: list[Heading] = []
        self._title: list[str] = []
        self._in_title = False

    def reading(self) -> ParsedDocument:
        text = "".join(self._parts)
        title = " ".join("".join(self._title).split())
        return ParsedDocument(
            text, title or next((each.words for each in self._headings if each.level == 1), ""), tuple(self._headings)
        )

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "title" and not self._hushed and not self._title:
            self._in_title = True  # that of a drawing is none of the page's
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
            if tag in self._hushed:
                del self._hushed[len(self._hushed) - 1 - self._hushed[::-1].index(tag) :]
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
        """The words from a place near the end on, without joining all that was written."""
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
            tail = "".join(self._parts[-3:])
            there = len(tail) - len(tail.rstrip("\n"))
            self._put("\n" * max(lines - there, 0))
        self._fresh = True

    def _put(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)


MOST_UNPACKED = 256 << 20
MOST_ENTRIES = 10_000
MOST_BOOKMARKS = 5_000
DEEPEST_BOOKMARK = 6


def entry(start: dict[str, Json]) -> Handler:
    """Return the function that answers requests in the child process."""
    del start

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        try:
            reading = READERS[str(question["kind"])](Path(str(question["path"])))
            if len(reading.text) > characters:
                raise UnreadableError(f"more than {characters:,} characters of text")
            if not reading.text.strip():
                raise UnreadableError("no text in it")
        except UnreadableError as error:
            return {"problem": error.message}
        except OSError as error:
            return {"problem": f"cannot be read: {(error.strerror or type(error).__name__).lower()}"}
        except MemoryError:
            return {"problem": "needs too much memory to read"}
        return {"reading": record(reading)}

    return answer


def _pdf(path: Path) -> ParsedDocument:
    pdfium: Any = import_module("pypdfium2")

    try:
        document = pdfium.PdfDocument(path)
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
    # A word that was parted at the end of a line is put together again; PDFium marks the place.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for mark in ("\ufffe", "\x02"):
        text = text.replace(f"{mark}\n", "").replace(mark, "")
    return text.replace("\x00", "").rstrip() + "\n\n"


def _bookmarks(document: Any, starts: list[int], text: str) -> tuple[Heading, ...]:  # noqa: ANN401  (as above)
    """The outline; a heading begins where its page holds its words, or with the page."""
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


def _docx(path: Path) -> ParsedDocument:
    mammoth: Any = import_module("mammoth")

    try:
        with zipfile.ZipFile(path) as packed:
            entries = packed.infolist()
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > MOST_UNPACKED:
                raise UnreadableError(f"unpacks to more than {MOST_UNPACKED >> 20} MB")
        with path.open("rb") as file:
            # Pictures are neither read nor followed.
            html = mammoth.convert_to_html(file, convert_image=mammoth.images.img_element(_no_picture)).value
    except zipfile.BadZipFile:
        raise UnreadableError("broken or encrypted: not a DOCX that can be opened") from None
    except (KeyError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, SyntaxError) as error:
        raise UnreadableError(f"broken: not a DOCX that can be read ({type(error).__name__})") from None
    return sections(str(html))


def _no_picture(_: object) -> dict[str, str]:
    return {}


def _html(path: Path) -> ParsedDocument:
    html = _html_text(path)
    whole = sections(html)
    try:
        trafilatura: Any = import_module("trafilatura")
    except ImportError:
        return whole
    # It finds the text of a page among its menus; where it loses the page's headings or most of its text, it found none.
    inner = trafilatura.extract(html, output_format="markdown", include_comments=False, include_tables=True)
    reading = read_markdown(str(inner or ""))
    if 4 * len(reading.text) < len(whole.text) or 2 * len(reading.headings) < len(whole.headings):
        return whole
    return ParsedDocument(reading.text, whole.title or reading.title, reading.headings)


def _html_text(path: Path) -> str:
    raw = path.read_bytes()
    return decode(raw, declared_encoding(raw))


READERS: dict[str, Callable[[Path], ParsedDocument]] = {
    "pdf": _pdf, "docx": _docx, "html": _html, "bare html": lambda path: sections(_html_text(path)),
}  # fmt: skip
