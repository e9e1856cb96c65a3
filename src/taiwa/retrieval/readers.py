"""Documents to text with headings and pages, and from there to chunks: text formats here, all others in a child process.

Marks at the beginning and strict UTF-8 decide the encoding of almost every file; the remaining ones are tried in each legacy
encoding, and the one whose result looks most like its language wins. Chunks are cut out and never rewritten: each is
`text[start:end]`, they are in order and do not overlap, and only white space lies between them.
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
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from taiwa.apart import Bounds, Worker
from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import revive
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.types import Chunk, Heading, ParsedDocument, UnreadableError, lines_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = [
    "CHUNKER",
    "FORMATS",
    "LARGEST_FILE",
    "MARKDOWN",
    "MISSING",
    "TABLE_READER",
    "TEXT_READER",
    "IsolatedReader",
    "access_names",
    "decode",
    "document_format",
    "own_access",
    "read_markdown",
    "read_table",
    "read_text",
    "read_text_format",
    "reader_name",
    "split_into_chunks",
]

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
STRAY = 4
"""Control codes that may stand in a text file, however short it is."""
SAMPLE = 1 << 16
"""Bytes that are looked at to tell old encodings apart."""
JAPANESE = "のにはをたがでてとしれさいるかなもう。、日本人年大一中時上分生間行国会出者手的事社月場見合"
SIMPLIFIED = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运假费请每天员工公司需，。"
TRADITIONAL = "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實，。"
KOREAN = "이다는의에을를가은하고로지니기사한도리자대나정시인보일제과해전부수서아어상원장게라주구여성동면그생무공회방안연오비조신문발경용국관소만스들것있년월간내위세신계당물치모입출요까거저말습되와유금감휴규실중약재급신청업직근차반학분결산교육명예식및등총락십바"
EVERY = frozenset(JAPANESE + SIMPLIFIED + TRADITIONAL)
COMMON = {
    "cp932": frozenset(JAPANESE), "euc_jp": frozenset(JAPANESE), "gb18030": frozenset(SIMPLIFIED),
    "big5": frozenset(TRADITIONAL), "euc_kr": frozenset(KOREAN), "utf-16-le": EVERY, "utf-16-be": EVERY,
}  # fmt: skip
OLD = ("cp932", "euc_jp", "gb18030", "big5", "euc_kr", "utf-16-le", "utf-16-be")
KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
HANGUL = re.compile("[\uac00-\ud7a3]")
NON_ASCII = re.compile("[^\x00-\x7f]")
ODD = re.compile("[\uff61-\uff9f\ue000-\uf8ff\u0080-\u009f\u2500-\u257f\u0370-\u03ff\u0400-\u04ff]")
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
USUAL = {
    "cp932": ("euc_jp", 0xB0, 0xCF), "euc_jp": ("euc_jp", 0xB0, 0xCF), "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
}  # fmt: skip
"""Where a national standard puts the characters of its first, usual level: an encoding, and from which to which lead byte."""
LEAST = 0.25
"""Below this, none of the encodings of East Asia explains the bytes."""


def decode(raw: bytes, declared: str = "") -> str:
    """Decode a text file, with `\n` as line ends; `declared` is the encoding that the file declares.

    Raises:
        UnreadableError: the bytes are not text.
    """
    text = _decoded(raw, declared)
    if len(BINARY.findall(text[:SAMPLE])) > STRAY + len(text[:SAMPLE]) // 100:
        raise UnreadableError("not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(raw: bytes, declared: str) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _strict(raw, encoding) or raw.decode(encoding, errors="replace").lstrip("\ufeff")
    if b"\x1b$" in raw and (text := _strict(raw, "iso2022_jp_ext")) is not None:
        return text
    half = _halves(raw[:SAMPLE])
    for encoding in (half, "utf-8", declared):
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    likeness = {encoding: _likeness(raw[:SAMPLE], encoding) for encoding in OLD}
    best = max(OLD, key=likeness.__getitem__)
    if likeness[best] >= LEAST:
        return raw.decode(best, errors="replace")
    # Mostly UTF-8 with a broken place, or the encoding of western Europe.
    if (text := raw.decode("utf-8", errors="replace")).count("\ufffd") * 50 < len(NON_ASCII.findall(text)):
        return text
    return raw.decode("cp1252", errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _halves(sample: bytes) -> str:
    """UTF-16 without a mark: every other byte of its spaces, line ends and figures is zero."""
    if b"\x00" not in sample or len(sample) < 4:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 40 < len(sample) or min(even, odd) * 4 > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _likeness(sample: bytes, encoding: str) -> float:
    """How much the bytes look like a language of the encoding, 1 at most; the end of a sample may cut a character."""
    text = sample.decode(encoding, errors="replace")
    wide = NON_ASCII.findall(text.rstrip("\ufffd"))
    if not wide:
        return 0.0
    broken = wide.count("\ufffd")
    common = COMMON[encoding]
    good = sum(sign in common for sign in wide)
    kana = KANA.findall(text) if encoding not in {"gb18030", "big5", "euc_kr"} else []
    if (
        encoding == "euc_kr"
    ):  # its syllables are where other encodings have their usual characters: rare ones say nothing
        usual = 0.5 * sum(sign not in common for sign in HANGUL.findall(text))
    else:
        usual = sum(sign not in common and _is_usual(sign, encoding) for sign in wide)
    points = good + 0.8 * len(kana) + 0.4 * usual - len(ODD.findall(text)) - 20 * broken
    return points / len(wide) - 0.01 * OLD.index(encoding)


def _is_usual(sign: str, encoding: str) -> bool:
    if encoding not in USUAL:
        return False
    standard, first, last = USUAL[encoding]
    return first <= sign.encode(standard, errors="ignore")[:1].rjust(1, b"\0")[0] <= last


MARKDOWN = "read_markdown-1"
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
    """Return what front matter says of access, None if nothing.

    Raises:
        UnreadableError: the list is invalid, so access cannot be decided.
    """
    if not ACCESS.search(front):
        return None
    import yaml

    try:
        given: object = yaml.safe_load(front)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise UnreadableError("front matter with `access:` is not valid YAML") from None
    names = access_names(cast("dict[str, object]", given).get("access")) if isinstance(given, dict) else None
    if names is None:
        raise UnreadableError("`access:` must be a list of names, like `access: [group:hr]`")
    return names


def access_names(given: object) -> tuple[str, ...] | None:
    """Return the principals of a rule: one name or a list of names; None for anything else."""
    if isinstance(given, str) and given:
        return (given,)
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in cast("list[object]", given)):
        return None
    return tuple(sorted(set(cast("list[str]", given))))


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Without the inner grammar: only where blocks begin is asked for, and it is where parsers get slow.
    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])


def _plain_heading(words: str) -> str:
    """The words of a heading without their dress."""
    return " ".join(EMPHASIS.sub("", LINK.sub(lambda found: found["words"], words)).split())


TEXT_READER = "text-1"
TABLE_READER = "read_table-1"
NUMBER = re.compile(r"[\s\d.,:/%+-]*")
QUOTED = re.compile(r'"[^"]*"')
CELL = 1 << 20
"""Characters of a cell at most."""


def read_text(text: str) -> ParsedDocument:
    """Read read_text text: it has no headings."""
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
        cuts = [found.end() for found in borders[0].finditer(text, start, end)]
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
BOUNDS = Bounds(seconds=60.0, memory_mb=1_024, characters=MOST_CHARACTERS)
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

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self._bounds = bounds
        self._worker: Worker | None = None

    def __enter__(self) -> "IsolatedReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
            return read_text_format(raw, kind, self._bounds.characters)
        return self._ask(raw, "bare html" if reader.startswith("bare") else kind)

    def _ask(self, raw: bytes, kind: str) -> ParsedDocument:
        if self._worker is None:
            self._worker = Worker("taiwa.retrieval.reader_process:door", {}, "reading", self._bounds)
        # A private copy: the file itself may be moved or linked elsewhere between two looks.
        handle, name = tempfile.mkstemp(prefix="taiwa-")
        try:
            with os.fdopen(handle, "wb") as copy:
                copy.write(raw)
            answer = self._worker.ask({"path": name, "kind": kind}, self._bounds)
        except ToolError as error:
            self.close()
            raise UnreadableError(_why(error.code, self._bounds)) from error
        except BaseException:
            self.close()
            raise
        finally:
            Path(name).unlink(missing_ok=True)
        if "problem" in answer:
            raise UnreadableError(str(answer["problem"]))
        return cast("ParsedDocument", revive(answer["reading"]))


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


def _why(code: str, bounds: Bounds) -> str:
    words = {
        "timeout": f"takes longer than {bounds.seconds:g} seconds to read",
        "too_large": f"more than {bounds.characters:,} characters of text",
    }
    return words.get(code, "makes its reader fail: it is broken, or needs too much memory")
