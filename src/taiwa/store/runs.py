"""Runs and their calls: the journal of a turn, written while it runs, and its cost.

A run is open from its beginning until it is committed (`done`), fails, finds that another writer moved its session
(`conflict`), or is abandoned. An open run whose process has ended or released it is interrupted: it can be resumed from its
journal without paying twice.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import date, timedelta
from math import ceil
from typing import Any, Literal, TypeAlias, cast

from taiwa.conversation.app import AppSource
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConflictError, StoreError, TaiwaError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Response, ToolResult, Usage
from taiwa.kernel.serialization import Json, canonical, record, value
from taiwa.kernel.usage_limits import Price
from taiwa.sql import Database
from taiwa.sql.base import SqlRow
from taiwa.store.nodes import Nodes, check_json, decoding, hash_to_bytes, pack, pack_value, unpack
from taiwa.store.refs import composed

Status: TypeAlias = Literal["open", "done", "failed", "conflict", "abandoned"]
Axis: TypeAlias = Literal["app", "model", "day", "session", "owner"]

INSERT_CALL = """
INSERT INTO call(run, strand, position, kind, key, answer, error, model, metered, input, output, cache_read, cache_write,
    reasoning, cost_nano, price, ms, thought_ms, at_us)
SELECT seq, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM run WHERE seq = ? AND owner = ?"""
RUN = """
SELECT run.seq, run.ref, base.hash, app.hash, run.status, run.input, run.at_us, run.pid,
    (SELECT count(*) FROM call WHERE call.run = run.seq AND call.kind NOT IN ('get-capabilities', 'get-price'))
FROM run LEFT JOIN node base ON base.seq = run.base LEFT JOIN app ON app.seq = run.app WHERE run.owner = ?"""
CALL = """
SELECT call.kind, call.model, call.metered, input, output, cache_read, cache_write, reasoning, cost_nano, price, ms,
    thought_ms, call.at_us, call.answer, call.error
FROM call"""
# The calls belong to the last node of their commit; its other nodes have the same base.
STEP = """
WITH RECURSIVE step(seq, base) AS (
    SELECT seq, base FROM node WHERE hash = ?
    UNION SELECT node.seq, node.base FROM step JOIN node ON node.parent = step.seq AND node.base = step.base)
SELECT run.seq FROM step JOIN run ON run.node = step.seq WHERE run.owner = ?"""
CALLED = """
WITH RECURSIVE up(seq, parent) AS (
    SELECT seq, parent FROM node WHERE seq = ?
    UNION ALL SELECT node.seq, node.parent FROM up JOIN node ON node.seq = up.parent
    WHERE up.parent < up.seq AND NOT EXISTS (SELECT 1 FROM run WHERE run.node = up.seq AND owner = ? AND model <> ''))
SELECT model FROM up JOIN run ON run.node = up.seq WHERE owner = ? AND model <> ''"""
"""The models of the runs that ended with the last such node up to a node."""
REPEATED = """
SELECT seq, pid FROM run
WHERE owner = ? AND status = 'open' AND coalesce(app, 0) = ? AND coalesce(base, 0) = ? AND input = ? AND (ref = ? OR ? = 1)"""
HERE = "SELECT run.seq FROM run JOIN node ON node.seq = run.node WHERE node.hash = ? AND run.owner = ?"


DAY_US, MINUTE_US = 86_400_000_000, 60_000_000
MOST = 2**62
"""More than any amount."""
Scope: TypeAlias = Literal["conversation", "owner", "store"]


LONGEST_CALL_US = 600_000_000
"""The default timeout of the SDKs of OpenAI and Anthropic, in microseconds."""


@value
class SpendingLimit:
    """A limit on the cost of calls since a time: those of a conversation, of an owner, or of all owners of a store."""

    scope: Scope
    bound: int
    since_us: int = 0


@value
class TooLittle:
    """The limit that leaves too little for a call, and what is spent and reserved of it."""

    limit: SpendingLimit
    spent: int


@value
class Run:
    """The input of a run: the user's text, the tip, the app and the options.

    Once it is committed, the text is in its node and no longer here.
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


@value
class UnfinishedRun:
    """The last run of a session if it did not end with a turn: what the model wrote, the record of the error that ended it (None if
    its process ended), the model, and when it ended, as far as that is known.
    """

    run: Run
    model: str
    text: str
    error: Json
    at_us: int


@value
class CallTime:
    """How long a call took and when it ended; `thought_ms` of the `ms` are those of streamed reasoning."""

    ms: int
    thought_ms: int
    at_us: int


@value
class CallRecord:
    """One paid effect of a run. `usage` and `cost_nano` are None if unknown, which is not zero."""

    kind: str
    model: str
    usage: Usage | None
    cost_nano: int | None
    price: str
    time: CallTime
    answer: Json
    error: Json


TOKENS = tuple(field.name for field in fields(Usage))
MOST_TOKENS = 2**40
"""Tokens of one call above which a server's report is ignored: larger sums would not fit into 64 bits."""


def is_credible(usage: Usage) -> bool:
    """Return whether the numbers of a usage are plausible for one call."""
    return all(0 <= getattr(usage, name) <= MOST_TOKENS for name in TOKENS)


class Runs:
    """The runs of one owner of a store. The number of a run is not a secret; every statement also compares the owner."""

    def __init__(self, db: Database, nodes: Nodes) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = nodes.owner

    def begin(
        self,
        ref: str,
        base: str | int | None,
        app: str | AppSource | None,
        text: str,
        options: Json = None,
        attachments: Iterable[Attachment] = (),
        *,
        branches: bool = False,
        attempt: str = "",
    ) -> int:
        """Open a run and return its number. It belongs to this process until it ends; `attempt` is what `repeated` finds it by.

        `ref` may be "" for a run outside any session; `base` is a node or its row; `app` is stored, or given as its source. `attachments` are stored with it.
        An interrupted run that it repeats is abandoned: one of the session with the same input, or of any if it `branches`.

        Raises:
            StoreError: the store does not have the app or the base.
        """
        with self._db.transaction():
            if isinstance(app, AppSource):
                app_row: int | None = self._nodes.app_row(app, app.hash)
            else:
                app_row = None if app is None else self._nodes.seq(app, "app")
            rows = app_row, self._nodes.seq(base) if isinstance(base, str) else base
            recorded = canonical({"text": text, "options": options})  # mostly removed within seconds, so not compressed
            insert = """INSERT INTO run(owner, ref, app, base, status, input, pid, attempt, at_us)
                VALUES(?, ?, ?, ?, 'open', ?, ?, ?, ?)"""
            process = self._db.owner()
            if ref:
                same = *(row or 0 for row in rows), recorded, composed(ref), int(branches)
                for run, pid in self._db.rows(REPEATED, self._owner, *same):
                    if not self._db.is_alive(pid):
                        self.end(run, "abandoned")
            values = self._owner, composed(ref), *rows, recorded, process, attempt, self._db.clock()
            number = self._db.insert(insert, *values)
            assert number is not None
            self._nodes.blobs.link("run", number, attachments)
            return number

    def sink(
        self, run: int, *, model: str = "", price: Price | None = None, price_id: str = ""
    ) -> Callable[[Entry], None]:
        """Return a function that writes each entry of a journal durably before the program continues.

        `model` is the name that the user gave; without it each response names its own. `price` is called once per response,
        and `price_id` identifies its table of prices. It raises a `StoreError` if the run does not exist.
        """

        def write(entry: Entry) -> None:
            answer, error = entry.answer, entry.recorded_error
            name, usage, cost = model, None, None
            files = entry.answer.attachments if isinstance(entry.answer, ToolResult) else ()
            if isinstance(entry.answer, Response):
                name, usage = model or entry.answer.model, entry.answer.usage
                if usage is not None and not is_credible(usage):
                    usage = None  # unknown rather than wrong: one such number would spoil every sum
                cost = None if price is None or usage is None else price(name, usage)
            tokens = usage or Usage()
            values: SqlRow = (
                ".".join(map(str, entry.strand)), entry.index, entry.kind, hash_to_bytes(entry.key),
                None if answer is None else pack_value(answer), None if error is None else pack(error),
                name, usage is not None,
                tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens,
                tokens.reasoning_tokens, cost, price_id if cost is not None else "", round(entry.seconds * 1000),
                ceil(entry.thought * 1000),
            )  # fmt: skip
            with self._db.transaction() if files else nullcontext():
                if not self._db.run(INSERT_CALL, *values, self._db.clock(), run, self._owner):
                    raise _missing(run)
                self._nodes.blobs.link("run", run, files)

        return write

    def count_request(self, run: int, model: str) -> None:
        """Count a request before it is sent to a model, because an interrupted request may still be charged."""
        self._db.run(
            "UPDATE run SET requests = requests + 1, model = ? WHERE seq = ? AND owner = ?", model, run, self._owner
        )

    def begun_before_last(self, count: int, since_us: int) -> int | None:
        """Return the start time of the `count`-th last run begun since a time; None if there were fewer."""
        select = (
            "SELECT at_us FROM run WHERE owner = ? AND owner <> '' AND at_us > ? ORDER BY at_us DESC LIMIT 1 OFFSET ?"
        )
        at: int | None = self._db.one(select, self._owner, since_us, count - 1)
        return at

    def begun_since(self, since_us: int) -> tuple[int, int | None]:
        """Return the number of runs begun since a time, and when the last of them began."""
        count, last = self._db.rows(
            "SELECT count(*), max(at_us) FROM run WHERE owner = ? AND owner <> '' AND at_us > ?", self._owner, since_us
        )[0]
        return int(count), last

    def set_back(self, now_us: int) -> None:
        """Let the runs that were begun later than now, by a clock that was set back since, begin now."""
        self._db.run("UPDATE run SET at_us = ? WHERE owner = ? AND at_us > ?", now_us, self._owner, now_us)

    def spent_since(self, at_us: int) -> int:
        """Return the cost of calls since a time, plus what is reserved for open calls and those of unknown cost, in billionths."""
        return self._spent(SpendingLimit("owner", MOST, at_us), 0, "")

    def _spent(self, limit: SpendingLimit, run: int, ref: str) -> int:
        """Return what counts for a limit; a run outside any session is a conversation of its own."""
        owned: dict[Scope, tuple[str, SqlRow]] = {
            "conversation": ("run.owner = ? AND run.ref = ? AND ", (self._owner, ref))
            if ref
            else ("run.seq = ? AND ", (run,)),
            "owner": ("run.owner = ? AND ", (self._owner,)),
            "store": ("", ()),
        }
        (where, values), since = owned[limit.scope], limit.since_us
        # The sum of PostgreSQL is numeric, and would come back as a Decimal.
        paid = "SELECT CAST(sum(cost_nano) AS BIGINT) FROM call JOIN run ON run.seq = call.run WHERE"
        reserved = "SELECT CAST(sum(reserved) AS BIGINT) FROM run WHERE"
        # A call that was open at midnight counts on both days.
        begun = "reserved > 0 AND at_us >= ? AND (at_us >= ? OR status = 'open')"
        known = self._db.one(f"{paid} {where}call.at_us >= ?", *values, since)
        unknown = self._db.one(f"{reserved} {where}{begun}", *values, since - DAY_US, since)
        return int(known or 0) + int(unknown or 0)

    def reserve(self, run: int, least: int, most: int, limits: Iterable[SpendingLimit]) -> int | TooLittle:
        """Reserve what the limits leave for the next call of a run, at least `least` and at most `most`; return the amount, or
        the limit that leaves too little. Concurrent reservations see each other.
        """
        limits = tuple(limits)
        with self._db.transaction():
            scopes: tuple[Scope, ...] = tuple(limit.scope for limit in limits)
            # Two transactions would otherwise both find what is left, before either of them has reserved it.
            self.lock(*scopes)
            ref = str(self._db.one("SELECT ref FROM run WHERE seq = ? AND owner = ?", run, self._owner) or "")
            for limit in limits:
                spent = self._spent(limit, run, ref)
                if spent + least > limit.bound:
                    return TooLittle(limit, spent)
                most = min(most, limit.bound - spent)
            self._db.run("UPDATE run SET reserved = reserved + ? WHERE seq = ? AND owner = ?", most, run, self._owner)
            return most

    def give_back(self, run: int, reserved: int) -> None:
        """End a reservation: its call has a known cost, which its row holds, or was not charged."""
        update = "UPDATE run SET reserved = reserved - ? WHERE seq = ? AND owner = ?"
        self._db.run(update, reserved, run, self._owner)

    def exceeded(self, run: int, limits: Iterable[SpendingLimit]) -> bool:
        """Return whether more was spent than one of the limits allows."""
        ref = str(self._db.one("SELECT ref FROM run WHERE seq = ? AND owner = ?", run, self._owner) or "")
        return any(self._spent(limit, run, ref) > limit.bound for limit in limits)

    def lock(self, *scopes: Scope) -> None:
        """Make other transactions that admit or reserve for this owner, or for all of them, wait until this one ends."""
        # In the same order for all, so that no two transactions wait for each other.
        if "store" in scopes:
            self._db.lock("spending")
        self._db.lock(f"spending {self._owner}")

    def run(self, run: int) -> Run:
        """Return a run.

        Raises:
            StoreError: the run does not exist.
        """
        row = self._db.row(f"{RUN} AND run.seq = ?", self._owner, run)
        if row is None:
            raise _missing(run)
        return _run(row)

    def model(self, run: int) -> str:
        """Return the name of the model that a run called last; "" if none."""
        return str(self._db.one("SELECT model FROM run WHERE seq = ? AND owner = ?", run, self._owner) or "")

    def keep_partial(self, run: int, text: str) -> None:
        """Keep what a model has written of the answer of an open run."""
        partial = pack({"text": text, "at_us": self._db.clock()})
        update = "UPDATE run SET partial = ? WHERE seq = ? AND owner = ? AND status = 'open'"
        self._db.run(update, partial, run, self._owner)

    def unfinished(self, ref: str) -> UnfinishedRun | None:
        """Return the last run of a session if it failed or was interrupted, else None."""
        last: int | None = self._db.one(
            "SELECT seq FROM run WHERE ref = ? AND owner = ? ORDER BY seq DESC LIMIT 1", composed(ref), self._owner
        )
        if last is None:
            return None
        (row,) = self._db.rows("SELECT pid, model, error, partial FROM run WHERE seq = ?", last)
        run, (pid, model, error, partial) = self.run(last), row
        if run.status not in ("failed", "open") or (run.status == "open" and self._db.is_alive(pid)):
            return None
        with decoding("run"):
            kept = cast("dict[str, Json]", unpack(partial) if partial else {})
            failure = None if error is None else unpack(error)
            return UnfinishedRun(run, model, str(kept.get("text", "")), failure, int(str(kept.get("at_us", run.at_us))))

    def begun_with(self, ref: str) -> str:
        """Return the text of the last run of a session, "" without one or once it is committed."""
        select = f"{RUN} AND run.ref = ? ORDER BY run.seq DESC LIMIT 1"
        rows = self._db.rows(select, self._owner, composed(ref))
        return _run(rows[0]).text if rows else ""

    def open_runs(self, ref: str | None = None) -> tuple[Run, ...]:
        """Return the interrupted runs, oldest first: open, and their process has ended."""
        ref = None if ref is None else composed(ref)
        rows = self._db.rows(f"{RUN} AND run.status = 'open' ORDER BY run.seq", self._owner)
        return tuple(_run(row) for row in rows if ref in (None, row[1]) and not self._db.is_alive(row[7]))

    def is_running(self, ref: str) -> bool:
        """Return whether a process completes a turn of a session."""
        rows = self._db.rows(f"{RUN} AND run.status = 'open' AND run.ref = ?", self._owner, composed(ref))
        return any(self._db.is_alive(row[7]) for row in rows)

    def repeated(self, attempt: str, seconds: float | None = None, ref: str = "") -> tuple[Run, str] | None:
        """Return the last run of an attempt, in a session if one is named, and the node of its turn, "" while it is open; None if it has
        ended without a turn, or its last call more than `seconds` ago; an open one may have waited for it `LONGEST_CALL_US` longer.
        """
        since_us = 0 if seconds is None else self._db.clock() - int(seconds * 1e6)
        open_or_done = "(run.status = 'open' OR run.node IN (SELECT seq FROM node))"
        last = "coalesce((SELECT max(call.at_us) FROM call WHERE call.run = run.seq), run.at_us)"
        since = f"{last} >= ? - CASE run.status WHEN 'open' THEN {LONGEST_CALL_US} ELSE 0 END"
        where = f"run.attempt = ? AND {since} AND ? IN ('', run.ref) AND {open_or_done} ORDER BY run.seq DESC LIMIT 1"
        row = self._db.row(f"{RUN} AND {where}", self._owner, attempt, since_us, composed(ref))
        if row is None:
            return None
        node = self._db.one("SELECT hash FROM node WHERE seq = (SELECT node FROM run WHERE seq = ?)", row[0])
        return _run(row), "" if node is None else node.hex()

    def claim(self, run: int) -> Run:
        """Assign an interrupted run to this process, to resume it.

        Raises:
            ConflictError: it is not open, or its process still runs.
        """
        with self._db.transaction():
            self._db.lock(f"run {run}")
            claimed = self.run(run)
            if claimed.status != "open" or self._db.is_alive(self._db.one("SELECT pid FROM run WHERE seq = ?", run)):
                raise ConflictError(f"run {run} was resumed or ended by another program; nothing is left to resume")
            self._db.run("UPDATE run SET pid = ? WHERE seq = ?", self._db.owner(), run)
            return claimed

    def journal(self, run: int) -> tuple[Entry, ...]:
        """Return the answers of a run, in their order of arrival.

        Raises:
            StoreError: the run does not exist.
        """
        self.run(run)
        select = "SELECT strand, position, key, answer, error, ms FROM call WHERE run = ? ORDER BY seq"
        return tuple(_entry(row) for row in self._db.rows(select, run))

    def calls(self, node: str, session: str = "", *, together: bool = True) -> tuple[CallRecord, ...]:
        """Return the paid calls of a node: those of all runs that committed it or nodes together with it.

        Sessions with equal histories share nodes: the calls are those of the given session, or of the first run. Without
        `together`, only calls of runs that ended with exactly this node, so a walk over nodes counts each call once.
        """
        runs, key = STEP if together else HERE, (hash_to_bytes(node), self._owner)
        of_session = "(SELECT ref FROM run WHERE run.seq = call.run) = ?"
        own = f"{CALL} WHERE call.run IN ({runs}) AND {of_session} ORDER BY call.seq"
        rows = self._db.rows(own, *key, composed(session)) if session else ()
        if not rows:
            first = f"(SELECT min(run.seq) FROM run WHERE run.seq IN ({runs}))"  # noqa: S608
            rows = self._db.rows(f"{CALL} WHERE call.run = {first} ORDER BY call.seq", *key)
        return tuple(map(_call, rows))

    def model_of(self, node: str, session: str = "") -> str:
        """Return the name of the model called by a run that ended with exactly this node; "" without one.

        Sessions with equal histories and models share nodes: a run of the given session takes precedence.
        """
        select = (
            "SELECT model FROM run JOIN node ON node.seq = run.node WHERE node.hash = ? AND owner = ? AND model <> ''"
        )
        order = "ORDER BY CASE WHEN ref = ? THEN 0 ELSE 1 END, run.seq LIMIT 1"
        return str(self._db.one(f"{select} {order}", hash_to_bytes(node), self._owner, session) or "")

    def last_model(self, tip: str, session: str = "") -> str:
        """Return the same as `model_of` for the last node up to a node where it is not ""; "" without one."""
        order = "ORDER BY up.seq DESC, CASE WHEN ref = ? THEN 0 ELSE 1 END, run.seq LIMIT 1"
        values = (self._nodes.seq(tip), self._owner, self._owner, composed(session))
        return str(self._db.one(f"{CALLED} {order}", *values) or "")

    def model_of_session(self, session: str) -> str:
        """Return the name of the model that a session called last, whether its turn was kept or not; "" without one."""
        select = "SELECT model FROM run WHERE ref = ? AND owner = ? AND model <> '' ORDER BY seq DESC LIMIT 1"
        return str(self._db.one(select, composed(session), self._owner) or "")

    def bill_of(self, node: str) -> "CostLine | None":
        """Return the cost of a node and those committed together with it, under the name of the first model called; None for
        a node that is not the last of a commit with calls.
        """
        where = "run.owner = ? AND run.node = (SELECT seq FROM node WHERE hash = ?)"
        rows = self._db.rows(f"SELECT min(nullif(call.model, '')), {SUMS}{where}", self._owner, hash_to_bytes(node))
        name, requests, tools, failed, *rest = rows[0]
        if not requests and not tools:
            return None
        with decoding("call"):
            return CostLine(str(name or ""), requests, tools, failed, Usage(*map(int, rest[:5])), *map(int, rest[5:]))

    def journal_of(self, node: str) -> tuple[Entry, ...]:
        """Return the journal of the first run that ended with exactly this node; empty for nodes without a run."""
        run: int | None = self._db.one(f"{HERE} ORDER BY run.seq LIMIT 1", hash_to_bytes(node), self._owner)
        return () if run is None else self.journal(run)

    def that_made(self, node: str) -> tuple[Run, ...]:
        """Return the runs that ended with exactly this node, oldest first; () for nodes without a run."""
        values = (self._owner, hash_to_bytes(node), self._owner)
        return tuple(map(_run, self._db.rows(f"{RUN} AND run.seq IN ({HERE}) ORDER BY run.seq", *values)))

    def calls_of(self, run: int) -> tuple[CallRecord, ...]:
        """Return the paid calls of a run, in the order of its journal.

        Raises:
            StoreError: the run does not exist.
        """
        self.run(run)
        return tuple(map(_call, self._db.rows(f"{CALL} WHERE call.run = ? ORDER BY call.seq", run)))

    def finish(self, run: int, node: int, ref: str) -> None:
        """End a run that was committed in a session, whatever its status was; the user's text is in its nodes from now on."""
        update = "UPDATE run SET status = 'done', input = NULL, partial = NULL, node = ?, ref = ? WHERE seq = ? AND owner = ?"
        if not self._db.run(update, node, ref, run, self._owner):
            raise StoreError(f"run {run} not found in the store: it was deleted")
        self._db.run("DELETE FROM run_blob WHERE run = ?", run)

    def release(self, run: int) -> None:
        """Mark an open run as interrupted, so that any process can resume it."""
        self._db.run("UPDATE run SET pid = 0 WHERE seq = ? AND owner = ? AND status = 'open'", run, self._owner)

    def wait(self, run: int, calls: Json) -> None:
        """As `release`, for a run that ended before these calls, which need approval; its options name them as `waiting`."""
        with self._db.transaction():
            self._db.lock(f"run {run}")
            found = self.run(run)
            options = found.options if isinstance(found.options, dict) else {}
            recorded = pack({"text": found.text, "options": {**options, "waiting": check_json(calls)}})
            update = "UPDATE run SET pid = 0, input = ? WHERE seq = ? AND owner = ? AND status = 'open'"
            self._db.run(update, recorded, run, self._owner)

    def end(self, run: int, status: Status, error: TaiwaError | None = None) -> None:
        """End an open run; the costs of its calls stay. It ends once: after a conflict it does not fail as well."""
        body = None if error is None else pack(record(error.record()))
        update = "UPDATE run SET status = ?, error = ? WHERE seq = ? AND owner = ? AND status = 'open'"
        self._db.run(update, status, body, run, self._owner)


def _missing(run: int) -> StoreError:
    return StoreError(f"run {run} not found in the store")


def _run(row: SqlRow) -> Run:
    seq, ref, base, app, status, body, at, _, calls = row
    with decoding("run"):
        data = cast("dict[str, Json]", {"text": "", "options": None} if body is None else unpack(body))
        return Run(
            seq, ref, base and base.hex(), app and app.hex(), status, str(data["text"]), data["options"], at, calls
        )


def _entry(row: SqlRow) -> Entry:
    strand, position, key, answer, error, ms = row
    with decoding("call"):
        parts = {name: body and unpack(body) for name, body in (("answer", answer), ("error", error))}
        steps: list[Json] = [int(step) for step in strand.split(".")] if strand else []
        entry = Entry.restore({"strand": steps, "index": position, "key": key.hex(), **parts})
        entry.seconds = ms / 1000
        return entry


def _call(row: SqlRow) -> CallRecord:
    kind, model, metered, *tokens, cost, price, ms, thought, at, answer, error = row
    usage = Usage(*tokens) if metered else None
    return CallRecord(
        kind, model, usage, cost, price, CallTime(ms, thought, at), answer and unpack(answer), error and unpack(error)
    )


AXES: dict[Axis, str] = {
    "app": "coalesce(app.name, '')",
    "model": "call.model",
    "day": "call.at_us / 86400000000",
    "session": "run.ref",
    "owner": "run.owner",
}
SUMS = """
    count(*) FILTER (WHERE kind = 'complete'), count(*) FILTER (WHERE kind = 'call-tool'),
    count(*) FILTER (WHERE kind = 'complete' AND call.error IS NOT NULL),
    CAST(sum(call.input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cache_read) AS BIGINT),
    CAST(sum(cache_write) AS BIGINT), CAST(sum(reasoning) AS BIGINT),
    count(*) FILTER (WHERE kind = 'complete' AND answer IS NOT NULL AND metered = 0),
    count(*) FILTER (WHERE metered <> 0 AND cost_nano IS NULL),
    CAST(sum(coalesce(cost_nano, 0)) AS BIGINT)
FROM call JOIN run ON run.seq = call.run LEFT JOIN app ON app.seq = run.app WHERE """

UNANSWERED_AXES = AXES | {"model": "run.model", "day": "run.at_us / 86400000000"}
UNANSWERED = """
    CAST(sum(run.requests - run.answered) AS BIGINT)
FROM (SELECT run.*, (SELECT count(*) FROM call WHERE call.run = run.seq AND call.kind = 'complete') AS answered
      FROM run WHERE run.requests > 0) run
LEFT JOIN app ON app.seq = run.app WHERE run.requests > run.answered AND """


@value
class CostLine:
    """One line of costs, in billionths of the currency unit.

    `calls_without_usage` responses came without usage, `unpriced` ones from a model of unknown price; with any of them `cost_nano` is
    None, since the sum is unknown, and `known_nano` is its known part.
    """

    name: str
    requests: int
    tool_calls: int
    failed: int
    usage: Usage
    calls_without_usage: int
    unpriced: int
    known_nano: int

    @property
    def cost_nano(self) -> int | None:
        """The total cost, or None if it is unknown."""
        return None if self.calls_without_usage or self.unpriced else self.known_nano


def costs(db: Database, by: Axis, owner: str = "", session: str | None = None) -> tuple[CostLine, ...]:
    """Sum all calls of an owner, or of one of its sessions, by app, model, day (UTC, as providers count) or session.

    The lines are sorted by name. By `owner`, the calls of all owners are summed.

    Failed, conflicting and abandoned turns count too. A request without an answer counts as failed and unmetered, since it
    may have been paid for.
    """
    # By position: the word `name` would be the app's, which is a column.
    conditions = {} if by == "owner" else {"run.owner = ?": owner}
    conditions |= {} if session is None else {"run.ref = ?": session}
    where, values = " AND ".join(conditions) or "1 = 1", conditions.values()
    answered = db.rows(f"SELECT {AXES[by]}, {SUMS}{where} GROUP BY 1", *values)
    label: Callable[[Any], str] = _day if by == "day" else str
    with decoding("call"):
        lines = {
            label(key): CostLine(label(key), requests, tools, failed, Usage(*map(int, rest[:5])), *map(int, rest[5:]))
            for key, requests, tools, failed, *rest in answered
        }
    for key, count in db.rows(f"SELECT {UNANSWERED_AXES[by]}, {UNANSWERED}{where} GROUP BY 1", *values):
        name = label(key)
        line = lines.get(name, CostLine(name, 0, 0, 0, Usage(), 0, 0, 0))
        without = line.calls_without_usage + count
        lines[name] = replace(
            line, requests=line.requests + count, failed=line.failed + count, calls_without_usage=without
        )
    return tuple(lines[name] for name in sorted(lines))


def _day(number: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
    except (OverflowError, TypeError):  # a clock wrong by millennia, or a damaged row
        return "unknown"
