"""The text of a PDF, with its tables, its bookmarks as headings, and where its pages begin."""

import re
from importlib import import_module
from typing import Any, cast

from taiwa.kernel.wording import Wording
from taiwa.retrieval.tables import Box, aligned_tables
from taiwa.retrieval.types import Heading, ParsedDocument, UnreadableError

MOST_BOOKMARKS = 5_000
LEAST_ON_PAGE = 4
"""Characters of an average page below which the text of a PDF is rather a fragment, or the number of a page that is a picture."""
DEEPEST_BOOKMARK = 6


def read_pdf(raw: bytes) -> ParsedDocument:
    """Read a PDF."""
    pdfium: Any = import_module("pypdfium2")

    try:
        document = pdfium.PdfDocument(raw)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise UnreadableError(Wording("encrypted: it needs a password")) from None
        raise UnreadableError(Wording("broken: not a PDF that can be opened")) from None
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
        raise UnreadableError(Wording("no text layer: it is pictures of pages, so run text recognition on it first"))
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
        lines += _annotations(page)
    finally:
        page.close()
    # A word hyphenated at the end of a line is joined again; PDFium marks the position.
    text = "\n".join(lines)
    for mark in ("\ufffe", "\x02"):
        text = text.replace(f"{mark}\n", "").replace(mark, "")
    return text.replace("\x00", "").rstrip() + "\n\n"


MOST_ANNOTATIONS = 1_000
MOST_BYTES = 1 << 16


def _annotations(page: Any) -> list[str]:  # noqa: ANN401  (as above)
    """Return the values of the fields of a form, with their names, and the texts written on a page, which are not part of its text."""
    raw: Any = import_module("pypdfium2.raw")

    def value(annotation: object, key: bytes) -> str:
        buffer = (raw.FPDF_WCHAR * (MOST_BYTES // 2))()
        size = raw.FPDFAnnot_GetStringValue(annotation, key, buffer, MOST_BYTES)
        return bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "replace") if size <= MOST_BYTES else ""

    found: list[str] = []
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_FREETEXT:
            found.append(value(annotation, b"Contents"))
        elif kind == raw.FPDF_ANNOT_WIDGET and (written := value(annotation, b"V")):
            found.append(f"{value(annotation, b'T')}: {written}")
        raw.FPDFPage_CloseAnnot(annotation)
    return [each for each in found if each.strip()]


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
