"""Read text and JSON files of the user within bounds, with errors that name the file and the byte."""

import json
import os
from pathlib import Path
from typing import BinaryIO, cast

from taiwa.kernel.attachments import open_file
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

MAX_BYTES = 256 << 20
"""Bytes of a file that is read as a whole."""
BINARY_FORMATS = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF")
"""How files begin that are not text, although some of their bytes may pass for it."""


def read_bytes(file: BinaryIO, where: str) -> bytes:
    """Read a stream to its end.

    Raises:
        InputError: it has more than `MAX_BYTES`.
    """
    raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise InputError(f"{where} is too large; at most {MAX_BYTES:,} bytes are read")
    return raw


def read_file(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Raises:
        InputError: it cannot be read, is too large, or is not UTF-8.
    """
    with open_file(path) as file:
        return decode(read_bytes(file, str(path)), str(path))


def decode(raw: bytes, where: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises:
        InputError: the bytes are not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start:,}; convert it, for instance with iconv") from None


def read_fragment(file: BinaryIO, where: str) -> str:
    """Read a text in any common encoding, as the reader of documents does.

    Raises:
        InputError: it is too large, or is not text.
    """
    from taiwa.retrieval.readers import decode as decode_any
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
    try:
        if private:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            if path.is_file():  # not a terminal or a pipe
                path.chmod(0o600)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
