"""Rows of an evaluation, their header, and the file that holds both: JSON lines, append-only, the source of every table.

A process may be killed between any two bytes: an incomplete last line is cut off before the next one is written. A later
row of the same setting and item replaces an earlier one, which failed.
"""

import fcntl
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import cast

from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.messages import Usage
from taiwa.kernel.records import Json, value
from taiwa.kernel.usage_limits import RunUsage
from taiwa.operations.result_json import cost_of

FORMAT_VERSION = "1"
"""Rows of unreleased versions have the number 1 here, and other names of errors."""
MUST_MATCH = ("evaluation", "data_hash", "model", "options")
"""Header fields in which two runs must agree to share a file."""


@value(tag="row-error")
class RowError:
    """Why a measurement failed: name and code of the error, and its message."""

    code: str
    message: str


@value(tag="eval-row")
class EvalRow:
    """One item under one setting: the measured fields or the error, and the usage in either case."""

    setting: str
    id: str
    kind: str = ""
    found: Mapping[str, Json] = field(default_factory=dict[str, Json])
    spent: RunUsage = RunUsage()
    error: RowError | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key by which a row is unique."""
        return self.setting, self.id


@value(tag="eval-header")
class Header:
    """What was evaluated, by which program, and when (ISO 8601, UTC); `options` is everything else that rows depend on."""

    evaluation: str
    data: str
    data_hash: str
    model: str
    date: str
    program: str
    settings: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    scripted: bool = False

    def differs(self, other: "Header") -> str:
        """Return the name of the first field that separates the rows of two headers, or ''."""
        return next((name for name in MUST_MATCH if getattr(self, name) != getattr(other, name)), "")


def row_error(error: TaiwaError) -> RowError:
    """Return an error as the error of a row."""
    code = getattr(error, "code", "")
    return RowError(f"{error.tag}{f'/{code}' if code else ''}", error.message)


def to_json(what: Header | EvalRow) -> dict[str, Json]:
    """Return a header or a row as a JSON object."""
    if isinstance(what, Header):
        return {
            "format": FORMAT_VERSION, "evaluation": what.evaluation, "model": what.model, "scripted": what.scripted,
            "data": what.data, "data_hash": what.data_hash, "date": what.date, "program": what.program,
            "settings": list(what.settings), "options": dict(what.options),
        }  # fmt: skip
    spent = what.spent
    return {
        "setting": what.setting, "id": what.id, "kind": what.kind, "found": dict(what.found),
        "requests": spent.requests, "tool_calls": spent.tool_calls, "calls_without_usage": spent.calls_without_usage,
        "usage": asdict(spent.usage), "usage_estimated": asdict(spent.estimated),
        "cost": cost_of(spent.cost), "max_cost": cost_of(spent.max_cost), "ms": round(spent.seconds * 1000, 3),
        "error": None if what.error is None else {"code": what.error.code, "message": what.error.message},
    }  # fmt: skip


def read_header(line: Mapping[str, Json]) -> Header:
    """Read a header.

    Raises:
        ValueError: the line is not a header, or has an unsupported format.
    """
    if line.get("format") != FORMAT_VERSION:
        raise ValueError(f"unsupported format {line.get('format')!r}; this version reads {FORMAT_VERSION}")
    words = {name: str(line[name]) for name in ("evaluation", "data", "data_hash", "model", "date", "program")}
    settings, options = cast("list[str]", line["settings"]), cast("dict[str, Json]", line["options"])
    return Header(**words, settings=tuple(settings), options=options, scripted=line.get("scripted") is True)


def read_row(line: Mapping[str, Json]) -> EvalRow:
    """Read a row.

    Raises:
        ValueError, KeyError, TypeError: the line is not a row.
    """
    error = cast("dict[str, str] | None", line["error"])
    usage, estimated = (Usage(**cast("dict[str, int]", line[name])) for name in ("usage", "usage_estimated"))
    requests, tool_calls, without_usage = (
        cast("int", line[name]) for name in ("requests", "tool_calls", "calls_without_usage")
    )
    spent = RunUsage(
        requests, tool_calls, usage, without_usage, _to_nano(line["cost"]), cast("float", line["ms"]) / 1000, estimated,
        _to_nano(line["max_cost"]),
    )  # fmt: skip
    return EvalRow(
        str(line["setting"]), str(line["id"]), str(line["kind"]), cast("dict[str, Json]", line["found"]), spent,
        None if error is None else RowError(error["code"], error["message"]),
    )  # fmt: skip


def _to_nano(cost: Json) -> int | None:
    return None if cost is None else round(cast("float", cost) * 1e9)


MAX_TEXT_IN_MEMORY = 200


class Rows:
    """The rows of an evaluation in memory: `rows` by setting and item, and one of `headers` for each run.

    `paid` are rows that were replaced; only their usage counts.
    """

    def __init__(self) -> None:
        self.headers: list[Header] = []
        self.rows: dict[tuple[str, str], EvalRow] = {}
        self.paid: list[EvalRow] = []

    def add(self, what: Header | EvalRow) -> None:
        """Append a header or a row."""
        if isinstance(what, Header):
            self.headers.append(what)
            return
        if what.key in self.rows:
            self.paid.append(self.rows[what.key])
        self.rows[what.key] = what

    def close(self) -> None:
        """Close the file, where there is one."""

    def finished(self) -> frozenset[tuple[str, str]]:
        """Return the keys of rows without an error."""
        return frozenset(key for key, row in self.rows.items() if row.error is None)


class RowFile(Rows):
    """A file of rows, locked by one process at a time. Long texts are not kept in memory."""

    def __init__(self, path: Path) -> None:
        """Open, lock and read the file, and cut off an incomplete last line.

        Raises:
            InputError: the file cannot be opened, is in use, or is not a file of rows.
        """
        super().__init__()
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        with ExitStack() as stack:
            stack.callback(self._stream.close)
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{path} is being written by another evaluation") from None
            self._read()
            stack.pop_all()

    def close(self) -> None:
        """Close and unlock the file."""
        self._stream.close()

    def add(self, what: Header | EvalRow) -> None:
        """Append a header or a row to the file.

        Raises:
            InputError: the file cannot be written.
        """
        line = json.dumps(to_json(what), ensure_ascii=False, allow_nan=False)
        self._write(f"{line}\n".encode("utf-8", errors="backslashreplace"))
        # Kept as it will be read from the file, so that a later report of the rows has the same figures.
        super().add(_without_long_texts(self._value(0, json.loads(line))))

    def _write(self, raw: bytes) -> None:
        try:
            while raw:
                raw = raw[self._stream.write(raw) :]
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from None

    def _read(self) -> None:
        complete, torn, raw = 0, False, b"\n"
        with self.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if torn:
                    raise InputError(f"{self.path}:{number - 1}: not JSON")
                try:
                    line: object = json.loads(raw)
                except (ValueError, RecursionError):
                    torn = True  # allowed as the last line: its writer was killed
                    continue
                super().add(_without_long_texts(self._value(number, line)))
                complete += len(raw)
        if torn:
            self._stream.truncate(complete)
        elif not raw.endswith(b"\n"):
            self._write(b"\n")

    def _value(self, number: int, line: object) -> Header | EvalRow:
        try:
            row = cast("Mapping[str, Json]", line)
            return read_header(row) if "format" in row else read_row(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{self.path}:{number}: not a row of an evaluation ({error})") from None


def _without_long_texts(what: Header | EvalRow) -> Header | EvalRow:
    if isinstance(what, Header):
        return what
    short = {
        name: part for name, part in what.found.items() if not isinstance(part, str) or len(part) <= MAX_TEXT_IN_MEMORY
    }
    return what if len(short) == len(what.found) else replace(what, found=short)
