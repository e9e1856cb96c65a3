"""Attachments from the command line: files, standard input, and the text of documents that a model cannot read as files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from taiwa.kernel.attachments import MAX_BYTES, Attachment, AttachmentSource, open_file, read_attachments
from taiwa.kernel.errors import InputError

TEXT_OF = frozenset({"pdf", "docx", "html"})
"""Formats of documents whose text is taken."""


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
    """Return the text of a PDF, a DOCX or an HTML file as an attachment; any other file as it is.

    PDF and DOCX need the extra `docs`.

    Raises:
        InputError: it cannot be read, or has no text.
    """
    from taiwa.retrieval.reader_process import document_format

    if document_format(str(path)) not in TEXT_OF:
        return Attachment.from_path(path)
    with open_file(Path(path)) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is too large; an attachment may have {MAX_BYTES:,} bytes")
    return text_of(data, Path(path).name)


def text_of(data: bytes, name: str) -> Attachment:
    """Return the text of the bytes of a document, whose format its name says.

    Raises:
        InputError: they cannot be read, or have no text.
    """
    from taiwa.retrieval.reader_process import IsolatedReader, document_format
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
