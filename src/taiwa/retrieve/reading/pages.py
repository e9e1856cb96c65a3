"""HTML as text with headings: blocks become lines, cells are parted by tabs, and what is no text is left out."""

import re
from html.parser import HTMLParser

from taiwa.retrieve.reading.reading import Heading, Reading

__all__ = ["declared_encoding", "sections"]

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
    found = CHARSET.search(raw[:4096])
    name = found[1].decode("ascii").lower() if found else ""
    return {"shift_jis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030", "gbk": "gb18030"}.get(name, name)


def sections(html: str) -> Reading:
    """Read HTML as text with its headings."""
    reading = _read(html, SILENT | AROUND)
    return reading if reading.text.strip() else _read(html, SILENT)


def _read(html: str, silent: frozenset[str]) -> Reading:
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

    def reading(self) -> Reading:
        text = "".join(self._parts)
        title = " ".join("".join(self._title).split())
        return Reading(
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
            words = " ".join("".join(self._parts)[start:].split()) if len(self._parts) < 64 else self._since(start)
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
