"""Text files of the user, read within limits, with errors that name the file and the byte."""

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import BinaryIO, cast

from taiwa.kernel.attachments import open_file
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json

MAX_FILE_BYTES = 256 << 20
"""Maximum bytes of a file that is read completely."""


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
