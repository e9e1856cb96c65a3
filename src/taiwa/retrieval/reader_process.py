"""Files are read in a child process with bounds on time, memory and text, whatever their format; one process reads many files.

A file comes as the path of a private copy; the answer is its title, its access list and its chunks, or a short description of the
problem. Both ends are in this file: `IsolatedReader` is the parent's, `entry` the child's.
"""

import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, cast

from taiwa.isolation import Handler, IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.records import Json, value
from taiwa.plugins import find_plugin, plugin_names
from taiwa.retrieval.access import AccessUnclearError
from taiwa.retrieval.types import Chunk, UnreadableError

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
    "markdown": "markdown-3", "text": "text-3", "table": "table-3", "html": "html-2", "pdf": "pdf-1", "docx": "docx-1",
}  # fmt: skip
"""The reader of each format; files read by another version are read again."""
CHUNKER = "split-1"
"""The version of `chunks`; the name of a reader holds it too."""
NEEDED = {"pdf": "pypdfium2", "docx": "mammoth"}
MISSING = "missing"
"""The reader of files that need a missing extra: they are tried again each time."""
LIMITS = ProcessLimits(seconds=20.0, memory_mb=400, characters=16_000_000)


@value
class ReadDocument:
    """What is indexed of a file: its title, its own access list (None without one), and its chunks."""

    title: str
    access: tuple[str, ...] | None
    chunks: tuple[Chunk, ...]


def document_format(path: str) -> str | None:
    """Return the format of a document by its suffix, None for unsupported ones; that of a plug-in is the suffix itself."""
    suffix = PurePosixPath(path).suffix.lower()
    return FORMATS.get(suffix) or (suffix if suffix in _plugin_suffixes() else None)


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the files that are read, those of plug-ins too, in order."""
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
    """Reads files in a child process, which is started at the first one, and again after one that it could not survive."""

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
            AccessUnclearError: the document says who may see it, in a way that cannot be understood.
        """
        if reader_name(kind) == MISSING and kind in NEEDED:
            raise UnreadableError(f"needs the extra docs: pip install 'taiwa[docs]' (no {NEEDED[kind]})")
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
    from taiwa.retrieval.readers import read_document, split_into_chunks

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
            return {"problem": f"cannot be read: {(error.strerror or type(error).__name__).lower()}"}
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
