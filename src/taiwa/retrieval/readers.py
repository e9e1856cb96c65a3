"""Documents to text with headings and pages, and from there to chunks: text formats here, all others in a child process.

A byte order mark, the declared encoding and strict UTF-8 come before any guess. Chunks are cut out and never rewritten: each
is `text[start:end]`, they are in order and do not overlap, and only white space lies between them.
"""

import csv
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.records import restore
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.types import Chunk, Heading, ParsedDocument, UnreadableError, lines_of
from taiwa.yamlfile import Items, Scalar, Table, Tree, read_yaml

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch
    from markdown_it import MarkdownIt

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
UTF_16 = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", *UTF_16]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
STRAY = 4
"""Control codes that may stand in a text file, however short it is."""
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
NOT_ASCII = re.compile("[^\x00-\x7f]")
IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file with `\\n` for every line ending; `declared` is the encoding that the file names itself.

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
    wide = sample.count(0) * 10 > len(sample)  # UTF-16 without a mark: zeros are valid UTF-8, too
    likely = (("iso2022_jp_ext" if b"\x1b$" in raw else ""), *(() if wide else ("utf-8", declared)))
    for encoding in likely:
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    text = raw.decode("utf-8", errors="replace")
    if not wide and text.count("\ufffd") * 50 < len(NOT_ASCII.findall(text)):
        return text  # UTF-8 with a broken place
    return raw.decode(_guess(sample if wide or len(raw) <= SAMPLE_BYTES else _whole_lines(sample)), errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _whole_lines(sample: bytes) -> bytes:
    """Cut a sample at a line end, so that no character is cut."""
    return sample[: sample.rfind(b"\n") + 1] or sample


def _guess(sample: bytes) -> str:
    """Name the encoding of some bytes; cp1252, in which anything is a text, where nothing else fits."""
    from charset_normalizer import from_bytes

    def is_unlikely(match: "CharsetMatch") -> bool:
        return match.encoding in UTF_16 or (match.encoding == "cp949" and bool(IDEOGRAPH.search(str(match))))

    # Equal scores are common for a few characters: Korean is written without ideographs, and few files are UTF-16 without a mark.
    best = min(from_bytes(sample, cp_isolation=GUESSES), key=is_unlikely, default=None)
    return "cp1252" if best is None else best.encoding


MARKDOWN = "markdown-1"
FRONT = re.compile(r"---[ \t]*\n(?P<yaml>.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
TITLE = re.compile(r"^title:[ \t]*(?P<quote>[\"']?)(?P<words>.+?)(?P=quote)[ \t]*$", re.MULTILINE)
LINK = re.compile(r"!?\[(?P<words>[^\]\[]*)\](?:\([^()]*\)|\[[^\]]*\])")
EMPHASIS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|\s*\{#[^}]*\}\s*$")


ACCESS = re.compile(r"^[\"']?access[\"']?[ \t]*:", re.MULTILINE)


def read_markdown(text: str) -> ParsedDocument:
    """Read Markdown; front matter gives the title and `access:`, and is not part of the text.

    Raises:
        UnreadableError: what the front matter says of access cannot be understood.
    """
    front = FRONT.match(text)
    begin = front.end() if front else 0
    yaml = (front["yaml"] or "") if front else ""
    body = text[begin:]
    starts = lines_of(body)
    headings: list[Heading] = []
    tokens = _parser().parse(body)
    for at, token in enumerate(tokens):
        # Only headings of the document itself: one within a quotation or a list opens no section.
        if token.type == "heading_open" and token.level == 0 and token.map:
            headings.append(
                Heading(begin + starts[token.map[0]], int(token.tag[1]), _plain_heading(tokens[at + 1].content))
            )
    named = TITLE.search(yaml)
    title = named["words"] if named else next((each.words for each in headings if each.level == 1), "")
    # Blanks in place of the front matter keep every offset true.
    return ParsedDocument(" " * begin + body, title, tuple(headings), access=own_access(yaml))


def own_access(front: str) -> tuple[str, ...] | None:
    """Return the names under `access:` in front matter, None where it has no such key.

    Raises:
        UnreadableError: it cannot be understood, so access cannot be decided.
    """
    if not ACCESS.search(front):
        return None
    try:
        tree = read_yaml(front, "front matter with `access:`")
    except ConfigError as error:
        raise UnreadableError(error.message) from None
    entry = tree.get("access") if isinstance(tree, Table) else None
    names = access_names(entry.value) if entry is not None else None
    if names is None:
        raise UnreadableError("`access:` must be a list of names, like `access: [group:hr]`")
    return names


def access_names(tree: Tree) -> tuple[str, ...] | None:
    """Return the principals of a rule: one name or a list of names; None for anything else."""
    items = tree.items if isinstance(tree, Items) else (tree,)
    names = {item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str) and item.value}
    return tuple(sorted(names)) if all(isinstance(item, Scalar) and item.value in names for item in items) else None


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Without the inner grammar: only where blocks begin is asked for, and it is where parsers get slow.
    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])


def _plain_heading(words: str) -> str:
    """The words of a heading without their dress."""
    return " ".join(EMPHASIS.sub("", LINK.sub(lambda link: link["words"], words)).split())


TEXT_READER = "text-1"
TABLE_READER = "table-1"
NUMBER = re.compile(r"[\s\d.,:/%+-]*")
QUOTED = re.compile(r'"[^"]*"')
CELL = 1 << 20
"""Characters of a cell at most."""


def read_text(text: str) -> ParsedDocument:
    """Read plain text: it has no headings."""
    return ParsedDocument(text)


def read_table(text: str) -> ParsedDocument:
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
        return ParsedDocument(text)
    return ParsedDocument(text, headings=(Heading(0, 1, " | ".join(cells)),))


def _delimiter(line: str) -> str:
    return max(",\t;|", key=QUOTED.sub("", line).count)


CHUNKER = "split-1"
"""Kept with every document: chunks that another version cut are cut again."""
ROOM = 1_000
"""The size of a chunk at most; a character of a script without spaces counts for two and a half."""
WIDE = re.compile(f"[{DENSE}\u3000-\u3002\uff01-\uff0f]")
EXTRA = 1.5
PARAGRAPH = re.compile(r"\n[ \t\u3000]*\n\s*")
LINE = re.compile(r"\n\s*")
SENTENCE = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+")
GAP = re.compile(r"\s+")
LONGEST_PATH = 6
LONGEST_HEADING = 120


def split_into_chunks(reading: ParsedDocument, room: int = ROOM) -> tuple[Chunk, ...]:
    """Split a document into chunks of at most `room` units."""
    chunks: list[Chunk] = []
    path: list[Heading] = []
    following = list(reading.headings)
    page = 0
    for start, end in pairwise(sorted({0, *reading.pages, *(each.start for each in following), len(reading.text)})):
        while page < len(reading.pages) and reading.pages[page] <= start:
            page += 1
        while following and following[0].start <= start:
            heading = following.pop(0)
            path = [above for above in path if above.level < heading.level] + [heading]
        words = tuple(each.words[:LONGEST_HEADING] for each in path if each.words)[-LONGEST_PATH:]
        for first, last in _packed(reading.text, start, end, room):
            chunks.append(Chunk(reading.text[first:last], first, words, page))
    return tuple(chunks)


def _packed(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Put neighbours together as long as they fit."""
    first = last = -1
    for begin, stop in _parts(text, start, end, room, (PARAGRAPH, LINE, SENTENCE, GAP)):
        if first >= 0 and _size(text, first, stop) <= room:
            last = stop
            continue
        if first >= 0:
            yield first, last
        first, last = begin, stop
    if first >= 0:
        yield first, last


def _parts(
    text: str, start: int, end: int, room: int, borders: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    """Cut at the first kind of border, what is still too large at the next, and at last anywhere."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    if _size(text, start, end) <= room:
        yield start, end
    elif borders:
        cuts = [border.end() for border in borders[0].finditer(text, start, end)]
        for first, last in pairwise([start, *cuts, end]):
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
LARGEST_FILE = 64 << 20
MOST_CHARACTERS = 16_000_000
LIMITS = ProcessLimits(seconds=60.0, memory_mb=1_024, characters=MOST_CHARACTERS)
MISSING = "missing"
"""The reader of files that need a missing extra: they are tried again each time."""
NEEDED = {"pdf": "pypdfium2", "docx": "mammoth"}
OWN: dict[str, tuple[str, Callable[[str], ParsedDocument]]] = {
    "markdown": (MARKDOWN, read_markdown),
    "text": (TEXT_READER, read_text),
    "table": (TABLE_READER, read_table),
}


def document_format(path: str) -> DocumentFormat | None:
    """Return the format of a document by its suffix, None for unsupported ones."""
    return FORMATS.get(PurePosixPath(path).suffix.lower())


@cache
def reader_name(kind: DocumentFormat) -> str:
    """Return the name and version of the reader of a format: files read by another version are read again."""
    if kind in OWN:
        return f"{OWN[kind][0]}+{CHUNKER}"
    if kind == "html" and find_spec("trafilatura") is None:
        return f"bare html-1+{CHUNKER}"
    if kind in NEEDED and find_spec(NEEDED[kind]) is None:
        return MISSING
    return f"{kind}-1+{CHUNKER}"


class IsolatedReader:
    """Reads files; formats that need a library are read in a child process, started at the first such file."""

    def __init__(self, limits: ProcessLimits = LIMITS) -> None:
        self._limits = limits
        self._worker: IsolatedProcess | None = None

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def read(self, raw: bytes, kind: DocumentFormat) -> ParsedDocument:
        """Read the bytes of a document.

        Raises:
            UnreadableError: they cannot be read; the message says why.
        """
        reader = reader_name(kind)
        if reader == MISSING:
            raise UnreadableError(f"needs the extra docs: pip install 'taiwa[docs]' (no {NEEDED[kind]})")
        if kind in OWN:
            return read_text_format(raw, kind, self._limits.characters)
        return self._ask(raw, "bare html" if reader.startswith("bare") else kind)

    def _ask(self, raw: bytes, kind: str) -> ParsedDocument:
        if self._worker is None:
            self._worker = IsolatedProcess("taiwa.retrieval.reader_process:entry", {}, "reading", self._limits)
        # A private copy: the file itself may be moved or linked elsewhere between two looks.
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
        if "problem" in answer:
            raise UnreadableError(str(answer["problem"]))
        return cast("ParsedDocument", restore(answer["reading"]))


def read_text_format(raw: bytes, kind: DocumentFormat, characters: int = MOST_CHARACTERS) -> ParsedDocument:
    """Read a text format.

    Raises:
        UnreadableError: as `IsolatedReader.read`.
    """
    text = decode(raw)
    if len(text) > characters:
        raise UnreadableError(f"more than {characters:,} characters of text")
    if not text.strip():
        raise UnreadableError("no text in it")
    return OWN[kind][1](text)


def _why(code: str, limits: ProcessLimits) -> str:
    words = {
        "timeout": f"takes longer than {limits.seconds:g} seconds to read",
        "too_large": f"more than {limits.characters:,} characters of text",
    }
    return words.get(code, "makes its reader fail: it is broken, or needs too much memory")
