"""Batches: rows from a file, each a turn of one conversation, or of a conversation of its own.

Rows are read one by one, and a row that cannot be read or answered becomes a row with its error.
"""

import asyncio
import csv
import io
import json
import os
import re
import sys
import tempfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Literal, Self, TypeAlias, cast

from taiwa.apps.catalog import convert_params, load_app
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App
from taiwa.conversation.history import begin
from taiwa.kernel.attachments import Attachment, is_url, open_file, read_attachments
from taiwa.kernel.errors import InputError, LimitError, RefusalError
from taiwa.kernel.serialization import Json, digest
from taiwa.kernel.usage_limits import RunUsage
from taiwa.operations.open_session import AskParam, model_of, open_app, set_options
from taiwa.operations.request_preview import capabilities_of, first_turn_request, known_tools, request_tokens
from taiwa.sessions.batch import (
    BatchInput,
    BatchRow,
    TurnBatch,
    committed_rows,
    run_in_one_session,
)
from taiwa.sessions.commit_turn import MAX_TEXT_CHARS, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session, open_priced_model
from taiwa.settings import Settings

BatchMode: TypeAlias = Literal["fold", "map"]
Stopped: TypeAlias = Literal["", "interrupted", "failing", "cost"]
MAX_BYTES = 4 * MAX_TEXT_CHARS
MAX_PIPED_BYTES = 1 << 30
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
JSONL = frozenset({".jsonl", ".ndjson"})
TABLES = frozenset({".csv", ".tsv"})
MAX_OPENED = 256
MAX_FAILURES = 10
"""Rows in a row that failed for the same reason of the server, after which a batch ends."""
UNAVAILABLE = frozenset({"overloaded", "timeout", "rate-limit"})
"""Errors of a server that cannot be reached; all are one reason."""
FAILING = frozenset({"model", "protocol", "unsupported"})
"""Other errors of a server; equal ones are one reason."""
DIGITS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")
NAME_SEPARATORS = re.compile(r"[~@{}\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a batch of turns is run.

    - `app`: its name or file. `params`: its parameters, as text.
    - `mode`: `fold` for one conversation whose state is carried over; `map` for independent rows.
    - `session`: the conversation of a fold ("": named after the app and the file).
    - `width`: rows at a time (map). `resume`: keep the rows that were answered before.
    - `answers`: options of the answers. `max_failures`: see `FailureStreak`.
    """

    app: str
    mode: BatchMode
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    session: str = ""
    width: int = 4
    resume: bool = False
    answers: AnswerOptions = NO_OPTIONS
    max_failures: int = MAX_FAILURES


@dataclass(frozen=True, slots=True)
class BatchPreview:
    """What a batch would send: rows that can be sent, rows that cannot with their errors, and an estimate of the tokens."""

    rows: int
    tokens: int
    errors: tuple[tuple[int, str], ...]


@dataclass
class FailureStreak:
    """The last rows, if they failed for the same reason of the server: their number, and the `message` of the last one.

    `most` of them end the batch.
    """

    most: int = MAX_FAILURES
    rows: int = 0
    message: str = ""
    _reason: str = ""

    def add(self, error: Json) -> None:
        """Count a row that failed, or, without an error, one that did not."""
        reason, self.message = _reason_of_server(error)
        self.rows = (self.rows + 1 if reason == self._reason else 1) if reason else 0
        self._reason = reason

    @property
    def is_full(self) -> bool:
        """Whether it ends the batch."""
        return self.rows >= self.most


@dataclass
class Counts:
    """The counts and the bill of the rows so far; `kept` rows were answered before, `stopped` says why a batch ended early.

    `refused` rows were refused by the model; those that have a text are `done` too.
    """

    done: int = 0
    failed: int = 0
    kept: int = 0
    refused: int = 0
    spent: RunUsage = field(default_factory=RunUsage)
    session: str = ""
    stopped: Stopped = ""
    reason: str = ""
    streak: FailureStreak = field(default_factory=FailureStreak)

    def add(self, row: BatchRow) -> None:
        """Count a row."""
        is_refusal = isinstance(row.error, dict) and row.error.get("type") == RefusalError.tag
        self.kept += row.reused
        self.refused += is_refusal or row.turn.is_refused
        self.failed += row.error is not None and not is_refusal
        self.done += row.error is None and not row.reused
        if not row.reused:
            self.spent = self.spent + row.turn.spent
        self.streak.add(row.error)
        if self.streak.is_full:
            self.stopped, self.reason = "failing", self.streak.message


def _reason_of_server(error: Json) -> tuple[str, str]:
    """Return what errors of a server for the same reason have in common, "" for other errors, and the message."""
    found = error if isinstance(error, dict) else {}
    kind, message = str(found.get("type", "")), str(found.get("message", ""))
    if kind in UNAVAILABLE:
        return "unavailable", message
    return (DIGITS.sub("0", message) if kind in FAILING else ""), message


OnRow: TypeAlias = Callable[[BatchRow, Counts], None]
"""Called for each row with the counts so far, in the order of the file."""


class _StoppedError(Exception):
    """The last rows failed for the same reason of the server."""


def run_turns(
    repository: Repository,
    settings: Settings,
    turns: TurnOptions,
    options: BatchOptions,
    rows: "RowFile",
    on_row: OnRow,
    *,
    ask: AskParam | None = None,
) -> Counts:
    """Run a batch of turns; the counts say why it stopped early.

    Raises:
        TaiwaError: the batch cannot begin, or an error that every further row would have.
    """
    counts = Counts(streak=FailureStreak(options.max_failures))
    if options.mode == "map":
        opened = _AppOpener(options)
        repository.add_tools(turns.tools)
        repository.add_types(turns.types)
        if not rows.as_json:
            opened(None)  # a missing parameter would be missing in every row
        priced_model = open_priced_model(None, settings, opened.app)
        job = TurnBatch(repository, priced_model, turns, opened=opened, width=options.width, resume=options.resume)
        return _run(counts, on_row, lambda add: asyncio.run(_drain(job.rows(rows), add)))
    app = set_options(open_app(options.app, options.params, ask), options.answers)
    counts.session = options.session or _session_name(repository, app, rows, resume=options.resume)
    conversation = repository.at(counts.session) if repository.store.refs.has(counts.session) else repository.start(app)
    if conversation.app.hash != app.hash:
        raise InputError(f"session {counts.session!r} has another app or other parameters; choose another -s NAME")
    session = Session(
        repository,
        counts.session,
        conversation,
        model_of(repository, settings, conversation, counts.session),
        options=turns,
    )
    before = committed_rows(session, rows) if options.resume else ()

    def run(add: Callable[[BatchRow], None]) -> None:
        for row in run_in_one_session(session, rows, before):
            add(row)

    return _run(counts, on_row, run)


def _run(counts: Counts, on_row: OnRow, run: Callable[[Callable[[BatchRow], None]], None]) -> Counts:
    def add(row: BatchRow) -> None:
        counts.add(row)
        on_row(row, counts)
        if counts.stopped:
            raise _StoppedError

    try:
        run(add)
    except KeyboardInterrupt:
        counts.stopped = "interrupted"
    except _StoppedError:
        pass
    except LimitError as error:
        counts.stopped, counts.reason = "cost", error.message
    return counts


async def _drain(rows: AsyncGenerator[BatchRow], add: Callable[[BatchRow], None]) -> None:
    async with aclosing(rows):
        async for row in rows:
            add(row)


def preview_turns(settings: Settings, options: BatchOptions, rows: "RowFile") -> BatchPreview:
    """Estimate what a batch of turns would send; nothing is sent.

    Raises:
        TaiwaError: the app or the model cannot be opened.
    """
    opened, capabilities = _AppOpener(options), capabilities_of(settings)
    good = tokens = 0
    errors: list[tuple[int, str]] = []
    for row in rows:
        try:
            if row.error:
                raise InputError(row.error)
            app = opened(row.params if options.mode == "map" else None)
            tokens += request_tokens(
                first_turn_request(begin(app), row.text, known_tools(app), capabilities, row.attachments)
            )
            good += 1
        except InputError as error:
            errors.append((row.index, error.message))
    return BatchPreview(good, tokens, tuple(errors))


def _session_name(repository: Repository, app: App, rows: "RowFile", *, resume: bool) -> str:
    """Name the conversation of a fold after its file, so that resuming with the file finds it."""
    if rows.name == "-":
        if resume:
            raise InputError("--resume of rows from standard input requires the name of their session: -s NAME")
        return repository.new_name(app)
    name = f"{app.name}-{NAME_SEPARATORS.sub('-', Path(rows.name).stem)[:60]}"
    if repository.store.refs.has(name) and not resume:
        raise InputError(f"session {name} already exists; --resume continues it, -s NAME creates another")
    return name


class _AppOpener:
    """Open an app with the parameters of a row on top of those of the batch."""

    def __init__(self, options: BatchOptions) -> None:
        self.app = load_app(options.app)
        self._params = convert_params(self.app, options.params)
        self._answers = options.answers
        self._opened: dict[str, App] = {}

    def __call__(self, params: Json) -> App:
        """Return the app of a row; rows with the same parameters share it.

        Raises:
            InputError: a parameter is unknown, missing or has the wrong type.
        """
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise InputError("params must be an object of names and values")
        name = digest(params)
        if name not in self._opened:
            if len(self._opened) >= MAX_OPENED:
                self._opened.clear()
            self._opened[name] = set_options(self.app.with_params(self._params | params), self._answers)
        return self._opened[name]


@dataclass(frozen=True)
class RowFile:
    """A file of rows that can be read repeatedly; it is not kept in memory. The first row of a table names its columns."""

    name: str
    stream: BinaryIO
    as_json: bool
    count: int
    is_table: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def unreadable(self) -> tuple[str, ...]:
        """Return the errors of unreadable rows, each with its line."""
        return tuple(f"{self.name}: {row.error}" for row in self if row.error)

    def __iter__(self) -> Iterator[BatchInput]:
        """Yield every non-blank row; it is numbered by its line."""
        if self.is_table:
            yield from _table_rows(self.name, self.stream)
            return
        for number, raw in _lines(self.stream):
            if raw is None:
                yield BatchInput(number, error=f"line {number} is longer than {MAX_BYTES:,} bytes")
            elif raw.strip():
                folder = Path() if self.name == "-" else Path(self.name).parent
                try:
                    line = raw.decode().rstrip("\r\n")
                except UnicodeDecodeError as error:
                    yield BatchInput(number, error=f"line {number} is not UTF-8 at byte {error.start}")
                else:
                    yield _read_json_row(number, line, folder) if self.as_json else BatchInput(number, line)


def open_rows(file: str) -> RowFile:
    """Open a file of rows (`-` for standard input): lines of text, or of JSON if its name or its first line says so; rows of a
    table if its name ends in .csv or .tsv.

    Raises:
        InputError: it cannot be read.
    """
    stream: BinaryIO = sys.stdin.buffer if file == "-" else open_file(Path(file))
    if (
        file == "-" or not stream.seekable() or not os.fstat(stream.fileno()).st_size
    ):  # a file of the system may not end
        stream = _copied(stream, "standard input" if file == "-" else file)
    if Path(file).suffix.lower() in TABLES:
        return RowFile(file, stream, as_json=False, count=sum(1 for _ in _table_rows(file, stream)), is_table=True)
    count, first = 0, b""
    for _, raw in _lines(stream):
        if raw is None or raw.strip():
            first = first or raw or b"?"
            count += 1
    return RowFile(file, stream, Path(file).suffix.lower() in JSONL or _is_row(first), count)


def _copied(stream: BinaryIO, where: str) -> BinaryIO:
    """Copy a stream that can be read only once to a temporary file.

    Raises:
        InputError: it is longer than `MAX_PIPED_BYTES`.
    """
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  (a RowFile closes it)
    left = MAX_PIPED_BYTES
    while left > 0 and (piece := stream.read(min(1 << 20, left))):
        copy.write(piece)
        left -= len(piece)
    if left <= 0:
        copy.close()
        raise InputError(f"{where} has {MAX_PIPED_BYTES:,} bytes or more; write it to a file, and name the file")
    return copy


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line with its number; None for one that is too long to be read."""
    stream.seek(0)
    number = 0
    while raw := stream.readline(MAX_BYTES + 1):
        number += 1
        too_long = len(raw) > MAX_BYTES
        while len(raw) > MAX_BYTES and not raw.endswith(b"\n"):
            raw = stream.readline(MAX_BYTES + 1)
        yield number, None if too_long else raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw


def _table_rows(name: str, stream: BinaryIO) -> Iterator[BatchInput]:
    """Yield the rows of CSV or TSV as texts, a line `column: value` for each cell that is not empty; a column `text` is the whole text
    of a row if there is no other but `id`.

    Raises:
        InputError: it cannot be read.
    """
    from taiwa.retrieval.read_text import HEAD, SEPARATOR_ROW, delimiter_of, table_start

    stream.seek(0)
    is_wide = stream.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)  # as spreadsheets write it
    stream.seek(0)
    lines = io.TextIOWrapper(stream, "utf-16" if is_wide else "utf-8-sig", newline="")
    try:
        head = lines.read(HEAD)
        start = table_start(head)
        lines.seek(0)
        skipped = lines.read(start).count("\n")
        rows = csv.reader(_table_lines(name, lines), delimiter=delimiter_of(head[start:].lstrip().partition("\n")[0]))
        header = next((row for row in rows if any(row) and row != SEPARATOR_ROW), [])
        has_text = "text" in (columns := {each.strip() for each in header}) and columns <= {"id", "text"}
        for row in rows:
            named = [(each.strip(), cell.strip()) for each, cell in zip_longest(header, row, fillvalue="")]
            shown = (pair for pair in named if pair[1] and not (has_text and pair[0] == "id"))
            if text := "\n".join(cell if has_text or not each else f"{each}: {cell}" for each, cell in shown):
                yield BatchInput(skipped + rows.line_num, text, dict(named).get("id") or None)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read as a table in UTF-8: {error}") from None
    finally:
        lines.detach()


def _table_lines(name: str, lines: io.TextIOWrapper) -> Iterator[str]:
    while line := lines.readline(MAX_BYTES + 1):
        if len(line) > MAX_BYTES:
            raise InputError(f"{name}: a line is longer than {MAX_BYTES:,} characters")
        yield line


def _is_row(raw: bytes) -> bool:
    try:
        found: object = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "text" in found


def _read_json_row(number: int, line: str, folder: Path) -> BatchInput:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BatchInput(number, error=f"line {number} is not JSON ({error})")
    if not isinstance(found, dict):
        return BatchInput(number, error=f'line {number} is not an object such as {{"text": …}}')
    row = cast("dict[str, Json]", found)
    name, text = row.get("id"), row.get("text")
    if not isinstance(text, str):
        return BatchInput(number, id=name, error=f'line {number} has no "text"')
    try:
        attachments = _read_files(row.get("attachments"), folder)
    except InputError as error:
        return BatchInput(number, text, name, error=f"line {number}: {error.message}")
    return BatchInput(number, text, name, row.get("params"), attachments=attachments)


def _read_files(paths: Json, folder: Path) -> tuple[Attachment, ...]:
    """Read the attachments of a row; relative paths start at the folder of the file of rows."""
    if paths is None:
        return ()
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise InputError("attachments must be a list of paths")
    return read_attachments(path if is_url(path) else folder / path for path in map(str, paths))
