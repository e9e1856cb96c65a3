"""The file of an evaluation: JSON lines, headers and rows, only ever added to; the truth that all tables are made of.

A process may be killed between any two bytes. What it left of a line is cut off before the next one is written. A later
row of the same setting and item replaces the earlier one, which had failed.
"""

import fcntl
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.rows import Header, Row, read_header, read_row, written

__all__ = ["RowFile", "Rows"]

LONGEST = 200


class Rows:
    """The rows of an evaluation: `rows` by setting and item, `headers` one for each time that it was gone on with.

    `paid` are rows that were replaced: they count for nothing but for what they cost.
    """

    def __init__(self) -> None:
        self.headers: list[Header] = []
        self.rows: dict[tuple[str, str], Row] = {}
        self.paid: list[Row] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def add(self, what: Header | Row) -> None:
        """Put a header or a row behind the others."""
        if isinstance(what, Header):
            self.headers.append(what)
            return
        before = self.rows.get(what.key)
        if before is not None:
            self.paid.append(before)
        self.rows[what.key] = what

    def finished(self) -> frozenset[tuple[str, str]]:
        """What was measured and need not be asked again."""
        return frozenset(key for key, row in self.rows.items() if row.error is None)


class RowFile(Rows):
    """One file of rows, open for one program at a time. Long texts stay in the file: what is held here can be counted."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._stream: io.FileIO | None = None

    def __enter__(self) -> Self:
        """Open, lock and read the file, and cut off what a killed program left unfinished.

        Raises:
            InputError: it cannot be opened, is in use, or holds something else.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("a+b", buffering=0)
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise InputError(f"{self.path} is being written by another evaluation") from None
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from None
        try:
            self._read()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def add(self, what: Header | Row) -> None:
        """Write a header or a row behind the others; it is in the file when this returns.

        Raises:
            InputError: the disk is full, or the file is gone.
        """
        line = json.dumps(written(what), ensure_ascii=False, allow_nan=False)
        self._write(f"{line}\n".encode("utf-8", errors="backslashreplace"))
        super().add(_countable(what))

    def _write(self, raw: bytes) -> None:
        assert self._stream is not None, "a row file is written within its with block"
        try:
            while raw:
                raw = raw[self._stream.write(raw) :]
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from None

    def _read(self) -> None:
        good, torn, raw = 0, False, b"\n"
        with self.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if torn:
                    raise InputError(f"{self.path}:{number - 1}: not JSON; no evaluation wrote this line")
                try:
                    line: object = json.loads(raw)
                except (ValueError, RecursionError):
                    torn = True  # as the last line it is what a killed program left
                    continue
                super().add(_countable(self._value(number, line)))
                good += len(raw)
        if torn:
            assert self._stream is not None
            self._stream.truncate(good)
        elif not raw.endswith(b"\n"):
            self._write(b"\n")

    def _value(self, number: int, line: object) -> Header | Row:
        if not isinstance(line, dict):
            raise InputError(f"{self.path}:{number}: no row of an evaluation")
        found = cast("Mapping[str, Json]", line)
        try:
            return read_header(found) if "format" in found else read_row(found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{self.path}:{number}: no row of an evaluation ({error})") from None


def _countable(what: Header | Row) -> Header | Row:
    if isinstance(what, Header):
        return what
    found = {name: part for name, part in what.found.items() if not isinstance(part, str) or len(part) <= LONGEST}
    return what if len(found) == len(what.found) else replace(what, found=found)
