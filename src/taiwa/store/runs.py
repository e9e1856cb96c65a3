"""Runs and their calls: the journal of a turn, written as it happens, and so the bill.

A run is open from its beginning until it is committed (`done`), fails, loses against another writer, or is given up. One
whose process is gone or has let go of it while it is open was cut off: it can be resumed from its journal without paying twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from taiwa.kernel.errors import ConflictError, StoreError, TaiwaError
from taiwa.kernel.journal import Entry
from taiwa.kernel.ledger import Price
from taiwa.kernel.records import Json, record
from taiwa.kernel.values import Response, Usage
from taiwa.store.bodies import key, pack, short, text, unpack
from taiwa.store.connection import Connection, Row
from taiwa.store.names import composed

__all__ = ["Call", "Run", "Runs", "Status"]

Status: TypeAlias = Literal["open", "done", "failed", "lost", "abandoned"]

INSERT_CALL = """
INSERT INTO call(run, strand, place, kind, key, answer, error, model, metered, input, output, cache_read, cache_write,
    reasoning, cost_nano, price, ms, at_us)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
RUN = """
SELECT run.seq, run.ref, base.hash, app.hash, run.status, run.input, run.at_us, run.pid, run.token,
    (SELECT count(*) FROM call WHERE call.run = run.seq)
FROM run LEFT JOIN node base ON base.seq = run.base LEFT JOIN app ON app.seq = run.app"""
CALL = """
SELECT call.kind, call.model, call.metered, input, output, cache_read, cache_write, reasoning, cost_nano, price, ms,
    call.at_us, call.answer, call.error
FROM call"""
# The calls hang on the last node of their commit; the others of that commit went back to the same base.
STEP = """
WITH RECURSIVE step(seq, base) AS (
    SELECT seq, base FROM node WHERE hash = ?
    UNION SELECT node.seq, node.base FROM step JOIN node ON node.parent = step.seq AND node.base = step.base)
SELECT run.seq FROM step JOIN run ON run.node = step.seq"""
HERE = "SELECT run.seq FROM run JOIN node ON node.seq = run.node WHERE node.hash = ?"


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it was begun: what was said, on which tip, with which app and options.

    Once it is committed, what was said is in its node and no longer here.
    """

    id: int
    ref: str
    base: str | None
    app: str | None
    status: Status
    text: str
    options: Json
    at_us: int
    calls: int


@dataclass(frozen=True, slots=True)
class Call:
    """One effect of a run as it was paid for. `usage` and `cost_nano` None mean not known, never nothing."""

    kind: str
    model: str
    usage: Usage | None
    cost_nano: int | None
    price: str
    ms: int
    at_us: int
    answer: Json
    error: Json


class Runs:
    """The runs of a store."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def begin(self, ref: str, base: str | None, app: str | None, text: str, options: Json = None) -> int:
        """Open a run and return its number. It belongs to this process until it ends.

        `ref` may be "" for a run outside any session; `app` must have been put.

        Raises:
            StoreError: the app or the base is not here.
        """
        with self._db.transaction():
            rows = self._row("app", app), self._row("node", base)
            said = pack({"text": text, "options": options})
            insert = """
            INSERT INTO run(ref, app, base, status, input, pid, token, at_us) VALUES(?, ?, ?, 'open', ?, ?, ?, ?)"""
            number = self._db.insert(insert, composed(ref), *rows, said, *self._db.owner(), self._db.clock())
            assert number is not None
            return number

    def _row(self, table: Literal["app", "node"], name: str | None) -> int | None:
        if name is None:
            return None
        seq: int | None = self._db.one(f"SELECT seq FROM {table} WHERE hash = ?", key(name))  # noqa: S608  (two words)
        if seq is None:
            raise StoreError(f"the store has no {table} {short(name)}")
        return seq

    def sink(
        self, run: int, *, model: str = "", price: Price | None = None, price_id: str = ""
    ) -> Callable[[Entry], None]:
        """Return what writes each entry of a journal durably before the program goes on.

        `model` is the name that a person gave; without it each answer names its own. `price` is asked once per answer,
        and `price_id` says later which table of prices it read.
        """

        def write(entry: Entry) -> None:
            data = entry.record()
            name, usage, cost = model, None, None
            if isinstance(entry.answer, Response):
                name, usage = model or entry.answer.model, entry.answer.usage
                cost = None if price is None or usage is None else price(name, usage)
            tokens = usage or Usage()
            values: Row = (
                ".".join(map(str, entry.strand)), entry.index, entry.kind, key(entry.key),
                _packed(data["answer"]), _packed(data["error"]), name, usage is not None,
                tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens,
                tokens.reasoning_tokens, cost, price_id if cost is not None else "", round(entry.seconds * 1000),
            )  # fmt: skip
            self._db.run(INSERT_CALL, run, *values, self._db.clock())

        return write

    def asked(self, run: int, model: str) -> None:
        """Note that a model is about to be asked: a call that is stopped before it answers is on the bill all the same."""
        self._db.run("UPDATE run SET asked = asked + 1, model = ? WHERE seq = ?", model, run)

    def run(self, run: int) -> Run:
        """Return a run.

        Raises:
            StoreError: there is none of that number.
        """
        row = self._db.row(f"{RUN} WHERE run.seq = ?", run)
        if row is None:
            raise StoreError(f"the store has no run {run}")
        return _run(row)

    def open_runs(self, ref: str | None = None) -> tuple[Run, ...]:
        """Return the runs that were cut off, oldest first: open, and their process is gone."""
        ref = None if ref is None else composed(ref)
        rows = self._db.rows(f"{RUN} WHERE run.status = 'open' ORDER BY run.seq")
        return tuple(_run(row) for row in rows if ref in (None, row[1]) and not self._db.is_alive(row[7], row[8]))

    def holds(self, ref: str) -> bool:
        """Say whether a turn of this session is under way, or was cut off, so that its name is not free."""
        return bool(self._db.one("SELECT EXISTS(SELECT 1 FROM run WHERE status = 'open' AND ref = ?)", composed(ref)))

    def claim(self, run: int) -> Run:
        """Make a run that was cut off this process's own, to resume it.

        Raises:
            ConflictError: it is not open, or the process that has it still runs.
        """
        with self._db.transaction():
            self._db.hold(f"run {run}")
            found = self.run(run)
            pid, token = self._db.rows("SELECT pid, token FROM run WHERE seq = ?", run)[0]
            if found.status != "open" or self._db.is_alive(pid, token):
                raise ConflictError(f"run {run} was taken up or ended by another program: nothing is left to resume")
            self._db.run("UPDATE run SET pid = ?, token = ? WHERE seq = ?", *self._db.owner(), run)
            return found

    def journal(self, run: int) -> tuple[Entry, ...]:
        """Return what the run was answered, in the order in which it happened."""
        select = "SELECT strand, place, key, answer, error, ms FROM call WHERE run = ? ORDER BY seq"
        return tuple(_entry(row) for row in self._db.rows(select, run))

    def calls(self, node: str) -> tuple[Call, ...]:
        """Return what was paid for a node: the calls of all runs that committed it or nodes together with it."""
        rows = self._db.rows(f"{CALL} WHERE call.run IN ({STEP}) ORDER BY call.seq", key(node))
        return tuple(_call(row) for row in rows)

    def made(self, node: str) -> tuple[Call, ...]:
        """Return the calls that hang on this very node, so that a walk over nodes meets each call once."""
        rows = self._db.rows(f"{CALL} WHERE call.run IN ({HERE}) ORDER BY call.seq", key(node))
        return tuple(_call(row) for row in rows)

    def journal_of(self, node: str) -> tuple[Entry, ...]:
        """Return the journal of the first run that ended with this very node; empty for nodes that no run made."""
        select = "SELECT run.seq FROM run JOIN node ON node.seq = run.node WHERE node.hash = ? ORDER BY run.seq LIMIT 1"
        run: int | None = self._db.one(select, key(node))
        return () if run is None else self.journal(run)

    def finish(self, run: int, node: int) -> None:
        """End a run that was committed, whatever it was before; what was said is in its nodes from now on."""
        if not self._db.run("UPDATE run SET status = 'done', input = NULL, node = ? WHERE seq = ?", node, run):
            raise StoreError(f"the store has no run {run}: it was forgotten")

    def release(self, run: int) -> None:
        """Let go of an open run that was stopped half-way: it counts as cut off from now on and can be resumed."""
        self._db.run("UPDATE run SET pid = 0, token = '' WHERE seq = ? AND status = 'open'", run)

    def settle(self, run: int) -> None:
        """End an open run outside any session that went well; its calls stay on the bill."""
        self._end(run, "done", None)

    def lose(self, run: int) -> None:
        """End an open run whose session was moved by another program."""
        self._end(run, "lost", None)

    def fail(self, run: int, error: TaiwaError) -> None:
        """End an open run that failed; its calls stay on the bill."""
        self._end(run, "failed", pack(record(error.record())))

    def abandon(self, run: int) -> None:
        """Give an open run up; its calls stay on the bill."""
        self._end(run, "abandoned", None)

    def _end(self, run: int, status: Status, error: bytes | None) -> None:
        """A run ends once: a run that lost does not fail as well."""
        self._db.run("UPDATE run SET status = ?, error = ? WHERE seq = ? AND status = 'open'", status, error, run)


def _packed(data: Json) -> bytes | None:
    return None if data is None else pack(data)


def _run(row: Row) -> Run:
    seq, ref, base, app, status, said, at, _, _, calls = row
    data = cast("dict[str, Json]", {"text": "", "options": None} if said is None else unpack(said))
    return Run(seq, ref, text(base), text(app), status, str(data["text"]), data["options"], at, calls)


def _entry(row: Row) -> Entry:
    strand, place, name, answer, error, ms = row
    entry = Entry.revive(
        {
            "strand": [int(step) for step in strand.split(".")] if strand else [],
            "index": place,
            "key": name.hex(),
            "answer": None if answer is None else unpack(answer),
            "error": None if error is None else unpack(error),
        }
    )
    entry.seconds = ms / 1000
    return entry


def _call(row: Row) -> Call:
    kind, model, metered, *tokens, cost, price, ms, at, answer, error = row
    usage = Usage(*tokens) if metered else None
    told = None if answer is None else unpack(answer)
    return Call(kind, model, usage, cost, price, ms, at, told, None if error is None else unpack(error))
