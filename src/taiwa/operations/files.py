"""Read the files that options of a command name: fragments and attachments; write files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from taiwa.kernel.attachments import MAX_BYTES, Attachment, AttachmentSource, open_file, read_attachments, read_bytes
from taiwa.kernel.errors import InputError, file_errors

BINARY_FORMATS = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF")
"""First bytes of non-text files that could be mistaken for text."""


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
