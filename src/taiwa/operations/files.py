"""Read the user's files within limits, with errors that name the file and the byte: texts, JSON, and attachments."""

import json
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from taiwa.kernel.attachments import MAX_BYTES, Attachment, AttachmentSource, open_file, read_attachments
from taiwa.kernel.errors import InputError, file_errors
from taiwa.kernel.serialization import Json

MAX_FILE_BYTES = 256 << 20
"""Maximum bytes of a file that is read completely."""
BINARY_FORMATS = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF")
"""First bytes of non-text files that could be mistaken for text."""


def read_bytes(file: BinaryIO, where: str) -> bytes:
    """Read a stream to its end.

    Raises:
        InputError: it has more than `MAX_FILE_BYTES`.
    """
    raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise InputError(f"{where} is too large; at most {MAX_FILE_BYTES:,} bytes are read")
    return raw


def read_file(path: Path) -> str:
    """Read a text file as `decode` does.

    Raises:
        InputError: it cannot be read, is too large, or is not UTF-8.
    """
    with open_file(path) as file:
        return decode(read_bytes(file, str(path)), str(path))


def decode(raw: bytes, where: str) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it; a line ends in `\\n`.

    Raises:
        InputError: the bytes are neither.
    """
    if raw.startswith(b"SQLite format 3\0"):
        what = f"{where} is an SQLite database; give what `taiwa export` writes of a store"
        raise InputError(f"{what}, or `llm logs -n 0 --json` of a log of llm")
    try:
        text = raw.decode("utf-16" if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start:,}; convert it, for instance with iconv") from None
    return text.replace("\r\n", "\n")


def read_fragment(file: BinaryIO, where: str) -> str:
    """Read a text in any common encoding, as the reader of documents does.

    Raises:
        InputError: it is too large, or is not text.
    """
    from taiwa.retrieval.decoding import decode as decode_any
    from taiwa.retrieval.types import UnreadableError

    raw = read_bytes(file, where)
    try:
        if raw.startswith(BINARY_FORMATS):
            raise UnreadableError("not a text file")
        return decode_any(raw)
    except UnreadableError:
        raise InputError(f"{where} is not a text file; -f takes text, -a any file") from None


def read_json_object(path: Path) -> dict[str, Json]:
    """Read a file that holds a JSON object, such as a JSON Schema.

    Raises:
        InputError: it cannot be read, or holds anything else.
    """
    try:
        found: object = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON Schema; it must hold an object")
    return cast("dict[str, Json]", found)


def write_file(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file; a private one is readable and writable by its owner only.

    Raises:
        InputError: it cannot be written.
    """
    with file_errors(f"write {path}", InputError):
        if private:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            if path.is_file():  # not a terminal or a pipe
                path.chmod(0o600)
        path.write_text(text, encoding="utf-8")


TEXT_OF = frozenset({"pdf", "docx", "html"})
"""Formats of documents that are converted to text."""


def read_files(paths: Sequence[str], stdin: BinaryIO, *, as_text: bool = False) -> tuple[Attachment, ...]:
    """Read the files of options; `-` is standard input. With `as_text`, documents are replaced by their text.

    Raises:
        InputError: one cannot be read, or there are too many.
    """
    if paths.count("-") > 1:
        raise InputError("standard input (-) can be attached once")
    sources: list[AttachmentSource] = []
    for path in paths:
        if path == "-":
            piped = Attachment.from_bytes(stdin.read(MAX_BYTES + 1))
            sources.append(text_of(piped.data, "piped.pdf") if as_text and piped.kind == "pdf" else piped)
        else:
            sources.append(document_text(path) if as_text else path)
    return read_attachments(sources)


def document_text(path: str | os.PathLike[str]) -> Attachment:
    """Return the text of a PDF, a DOCX or an HTML file as an attachment; any other file unchanged.

    PDF and DOCX need the extra `docs`.

    Raises:
        InputError: it cannot be read, or has no text.
    """
    from taiwa.retrieval.readers import document_format

    if document_format(str(path)) not in TEXT_OF:
        return Attachment.from_path(path)
    with open_file(Path(path)) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is too large; an attachment may have {MAX_BYTES:,} bytes")
    return text_of(data, Path(path).name)


def text_of(data: bytes, name: str) -> Attachment:
    """Return the text of a document's bytes; its name determines the format.

    Raises:
        InputError: they cannot be read, or have no text.
    """
    from taiwa.retrieval.readers import IsolatedReader, document_format
    from taiwa.retrieval.types import UnreadableError

    kind = document_format(name)
    assert kind is not None, "the caller has checked its format"
    reader = IsolatedReader()
    try:
        chunks = reader.read(data, kind).chunks
    except UnreadableError as error:
        raise InputError(f"{name}: {error.message}") from None
    finally:
        reader.close()
    text = "\n\n".join(chunk.text for chunk in chunks)
    if not text.strip():
        raise InputError(f"{name} has no text; attach it to a model that reads images")
    return Attachment.from_bytes(text.encode(), f"{name}.txt")
