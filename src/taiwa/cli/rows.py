"""The rows of a batch in files: read one by one, whatever is wrong with them, and written as they come."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self, TextIO, cast

from taiwa.cli.hear import usage_of
from taiwa.flows.chat import TEXT_LIMIT
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.talk.rows import Given, Row

__all__ = ["RowFile", "open_output", "read_rows", "told_row"]

MOST_BYTES = 4 * TEXT_LIMIT
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
JSONL = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True)
class RowFile:
    """A file of rows that can be read again and again; nothing of it is kept in memory."""

    name: str
    stream: BinaryIO
    as_json: bool
    count: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def __iter__(self) -> Iterator[Given]:
        """Every row, blank lines left out; a row has the number of its line."""
        for number, raw in _lines(self.stream):
            if raw is None:
                yield Given(number, error=f"line {number} is longer than {MOST_BYTES:,} bytes")
            elif raw.strip():
                yield _given(number, raw, as_json=self.as_json)


def read_rows(file: str) -> RowFile:
    """Open a file of rows, `-` for standard input: lines of text, or of JSON where its name or its first line says so.

    Raises:
        InputError: it cannot be read.
    """
    if file == "-":
        stream: BinaryIO = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  (a RowFile closes it)
        shutil.copyfileobj(sys.stdin.buffer, stream)
    else:
        try:
            stream = Path(file).open("rb")  # noqa: SIM115  (the same)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None
    count, first = 0, b""
    for _, raw in _lines(stream):
        if raw is None or raw.strip():
            first = first or raw or b"?"
            count += 1
    return RowFile(file, stream, Path(file).suffix.lower() in JSONL or _is_row(first), count)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Every line with its number; None for one that is too long to be held."""
    stream.seek(0)
    number = 0
    while raw := stream.readline(MOST_BYTES + 1):
        number += 1
        too_long = len(raw) > MOST_BYTES
        while len(raw) > MOST_BYTES and not raw.endswith(b"\n"):
            raw = stream.readline(MOST_BYTES + 1)
        yield number, None if too_long else raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw


def _is_row(raw: bytes) -> bool:
    try:
        found: object = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "text" in found


def _given(number: int, raw: bytes, *, as_json: bool) -> Given:
    try:
        line = raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        return Given(number, error=f"line {number} is not UTF-8 at byte {error.start}")
    return _from_json(number, line) if as_json else Given(number, line)


def _from_json(number: int, line: str) -> Given:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Given(number, error=f"line {number} is not JSON ({error})")
    if not isinstance(found, dict):
        return Given(number, error=f'line {number} is no object such as {{"text": …}}')
    row = cast("dict[str, Json]", found)
    name, text = row.get("id"), row.get("text")
    if not isinstance(text, str):
        return Given(number, id=name, error=f'line {number} has no "text"')
    return Given(number, text, name, row.get("params"))


def told_row(row: Row) -> dict[str, Json]:
    """A row as it is written."""
    spent = row.spent
    return {
        "index": row.given.index,
        "id": row.given.id,
        "session": row.session or None,
        "node": row.node or None,
        "parent": row.parent or None,
        "text": row.given.text,
        "answer": row.answer,
        "delta": row.delta,
        "state": row.state,
        "warnings": list(row.warnings),
        "usage": usage_of(spent),
        "cost": None if spent.cost is None else spent.cost / 1e9,
        "error": row.error,
    }


def open_output(output: Path | None, *, again: bool) -> TextIO:
    """Open what rows are written to; a file that is there is written anew only when a batch goes on.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    if output is None:
        return sys.stdout
    try:
        # Half a character is written as its escape, which in JSON means the same.
        return output.open("w" if again else "x", encoding="utf-8", errors="backslashreplace", newline="\n")
    except FileExistsError:
        raise InputError(f"{output} is there already: --resume goes on with it, or choose another name") from None
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None
