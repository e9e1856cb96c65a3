"""Convert documents to text with headings and pages, in a child process with limits on time, memory and text; one process
reads many files.

A request is the path of a private copy; the answer is its title, its access list and its chunks, or a short description of
the problem. Both ends are in this file: `IsolatedReader` is the parent's, `entry` the child's.

A table of any format becomes one of Markdown. Nothing is fetched. Reading a file takes time and memory proportional to its size,
whatever its content.
"""

import os
import re
import tempfile
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, cast

from taiwa.extras import missing_extra
from taiwa.isolation import Handler, IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.serialization import Json, value
from taiwa.plugins import find_plugin, plugin_names
from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.decoding import decode
from taiwa.retrieval.document_access import AccessUnclearError
from taiwa.retrieval.read_docx import read_docx
from taiwa.retrieval.read_html import read_html
from taiwa.retrieval.read_pdf import read_pdf
from taiwa.retrieval.read_text import read_json_lines, read_markdown, read_table, read_text
from taiwa.retrieval.types import Chunk, ParsedDocument, UnreadableError, reason_of

DocumentFormat: TypeAlias = Literal["markdown", "text", "table", "json", "html", "pdf", "docx"]
FORMATS: dict[str, DocumentFormat] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".log"), "text"),
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}
"""The format of a document by its suffix."""
VERSIONS: dict[DocumentFormat, str] = {
    "markdown": "markdown-4", "text": "text-5", "table": "table-5", "json": "json-1", "html": "html-6", "pdf": "pdf-4", "docx": "docx-3",
}  # fmt: skip
"""The reader of each format; files read by another version are read again."""
CHUNKER = "split-3"
"""The version of what follows every reader, which is part of its name."""
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


TEXT_FORMATS = frozenset({"markdown", "text", "table", "json", "html"})
BYTES_PER_CHARACTER = 4
READERS: dict[str, Callable[[bytes], ParsedDocument]] = {
    "markdown": lambda raw: read_markdown(decode(raw)), "text": lambda raw: read_text(decode(raw)),
    "table": lambda raw: read_table(decode(raw)), "json": lambda raw: read_json_lines(decode(raw)), "html": read_html, "pdf": read_pdf, "docx": read_docx,
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
    return _without_soft_hyphens(reading)


SOFT_HYPHEN = "\xad"


def _without_soft_hyphens(reading: ParsedDocument) -> ParsedDocument:
    """Leave out the marks of where a word may be divided: it would not be found by its letters."""
    at = [mark.start() for mark in re.finditer(SOFT_HYPHEN, reading.text)]
    return (
        replace(
            reading,
            text=reading.text.replace(SOFT_HYPHEN, ""),
            headings=tuple(
                replace(each, start=each.start - bisect_left(at, each.start), words=each.words.replace(SOFT_HYPHEN, ""))
                for each in reading.headings
            ),
            pages=tuple(start - bisect_left(at, start) for start in reading.pages),
        )
        if at
        else reading
    )
