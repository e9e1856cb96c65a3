"""Which files are read, and by what: text here, everything with a grammar of its own in a process that can be killed."""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Literal, TypeAlias, cast

from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import revive
from taiwa.retrieve.reading import markdown, plain
from taiwa.retrieve.reading.encoding import decode
from taiwa.retrieve.reading.reading import Reading, UnreadableError
from taiwa.retrieve.reading.split import SPLIT

__all__ = ["KINDS", "LARGEST_FILE", "MISSING", "Apart", "kind_of", "read", "reader_of"]

Kind: TypeAlias = Literal["markdown", "text", "table", "html", "pdf", "docx"]
KINDS: dict[str, Kind] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".log"), "text"),
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}
"""What kind of document a file is, by how its name ends."""
LARGEST_FILE = 64 << 20
MOST_CHARACTERS = 16_000_000
LIMITS = ProcessLimits(seconds=60.0, memory_mb=1_024, characters=MOST_CHARACTERS)
MISSING = "missing"
"""The reader of what could not be read for want of an extra: it is tried again each time."""
NEEDED = {"pdf": "pypdfium2", "docx": "mammoth"}
OWN: dict[str, tuple[str, Callable[[str], Reading]]] = {
    "markdown": (markdown.NAME, markdown.markdown),
    "text": (plain.TEXT, plain.plain),
    "table": (plain.TABLE, plain.table),
}


def kind_of(path: str) -> Kind | None:
    """Return the kind of a document, None for what is not read."""
    return KINDS.get(PurePosixPath(path).suffix.lower())


@cache
def reader_of(kind: Kind) -> str:
    """Name what reads a kind, with its version: what another version read is read again."""
    if kind in OWN:
        return f"{OWN[kind][0]}+{SPLIT}"
    if kind == "html" and find_spec("trafilatura") is None:
        return f"bare html-1+{SPLIT}"
    if kind in NEEDED and find_spec(NEEDED[kind]) is None:
        return MISSING
    return f"{kind}-1+{SPLIT}"


class Apart:
    """Reads files; what needs a library is read in a process of its own, which is started at the first such file."""

    def __init__(self, limits: ProcessLimits = LIMITS) -> None:
        self._limits = limits
        self._worker: IsolatedProcess | None = None

    def __enter__(self) -> "Apart":
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

    def read(self, raw: bytes, kind: Kind) -> Reading:
        """Read the bytes of a document.

        Raises:
            UnreadableError: they cannot be read; the message says why.
        """
        reader = reader_of(kind)
        if reader == MISSING:
            raise UnreadableError(f"needs the extra docs: pip install 'taiwa[docs]' (no {NEEDED[kind]})")
        if kind in OWN:
            return read(raw, kind, self._limits.characters)
        return self._ask(raw, "bare html" if reader.startswith("bare") else kind)

    def _ask(self, raw: bytes, kind: str) -> Reading:
        if self._worker is None:
            self._worker = IsolatedProcess("taiwa.retrieve.reading.inside:entry", {}, "reading", self._limits)
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
        return cast("Reading", revive(answer["reading"]))


def read(raw: bytes, kind: Kind, characters: int = MOST_CHARACTERS) -> Reading:
    """Read what needs no library.

    Raises:
        UnreadableError: as `Apart.read`.
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
