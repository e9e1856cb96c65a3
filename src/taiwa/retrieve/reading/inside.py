"""The inside of the process that reads what needs a library: PDF, DOCX and web pages.

A file comes as a path of a private copy; the answer is a reading, or the problem in a few words. Nothing is fetched.
"""

import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from taiwa.isolation import Handler
from taiwa.kernel.records import Json, record
from taiwa.retrieve.reading.encoding import decode
from taiwa.retrieve.reading.markdown import markdown
from taiwa.retrieve.reading.pages import declared_encoding, sections
from taiwa.retrieve.reading.reading import Heading, Reading, UnreadableError

__all__ = ["entry"]

MOST_UNPACKED = 256 << 20
MOST_ENTRIES = 10_000
MOST_BOOKMARKS = 5_000
DEEPEST_BOOKMARK = 6


def entry(start: dict[str, Json]) -> Handler:
    """Get ready to read files of any kind."""
    del start

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        try:
            reading = READERS[str(question["kind"])](Path(str(question["path"])))
            if len(reading.text) > characters:
                raise UnreadableError(f"more than {characters:,} characters of text")
        except UnreadableError as error:
            return {"problem": error.message}
        except OSError as error:
            return {"problem": f"cannot be read: {(error.strerror or type(error).__name__).lower()}"}
        except MemoryError:
            return {"problem": "needs too much memory to read"}
        return {"reading": record(reading)}

    return answer


def _pdf(path: Path) -> Reading:
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
    return Reading("".join(parts), title, headings, tuple(starts))


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
    found: list[Heading] = []
    ends = [*starts[1:], len(text)]
    for bookmark in document.get_toc(max_depth=DEEPEST_BOOKMARK):
        to: Any = bookmark.get_dest()
        page = cast("int | None", to.get_index() if to is not None else None)
        words = " ".join(str(bookmark.get_title()).split())
        if page is None or not 0 <= page < len(starts) or not words:
            continue
        at = text.find(words, starts[page], ends[page])
        found.append(Heading(max(at, starts[page]), int(bookmark.level) + 1, words))
        if len(found) >= MOST_BOOKMARKS:
            break
    return tuple(sorted(found, key=lambda each: each.start))


def _docx(path: Path) -> Reading:
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
    return _with_text(sections(str(html)))


def _no_picture(picture: object) -> dict[str, str]:
    del picture
    return {}


def _html(path: Path) -> Reading:
    html = _html_text(path)
    whole = sections(html)
    try:
        trafilatura: Any = import_module("trafilatura")
    except ImportError:
        return _with_text(whole)
    # It finds the text of a page among its menus; where it loses the page's headings or most of its text, it found none.
    inner = trafilatura.extract(html, output_format="markdown", include_comments=False, include_tables=True)
    reading = markdown(str(inner or ""))
    if 4 * len(reading.text) < len(whole.text) or 2 * len(reading.headings) < len(whole.headings):
        return _with_text(whole)
    return _with_text(Reading(reading.text, whole.title or reading.title, reading.headings))


def _bare_html(path: Path) -> Reading:
    return _with_text(sections(_html_text(path)))


def _html_text(path: Path) -> str:
    raw = path.read_bytes()
    return decode(raw, declared_encoding(raw))


def _with_text(reading: Reading) -> Reading:
    if not reading.text.strip():
        raise UnreadableError("no text in it")
    return reading


READERS: dict[str, Callable[[Path], Reading]] = {
    "pdf": _pdf, "docx": _docx, "html": _html, "bare html": _bare_html,
}  # fmt: skip
