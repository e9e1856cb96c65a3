"""Batches: rows that are turns of an app, in parallel or in one session, and that resume without repeating paid calls."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node, begin
from taiwa.conversation.state import State
from taiwa.flows.extract import Attempt, ExtractError
from taiwa.flows.turn import Findings, Reply
from taiwa.kernel.async_runtime import AsyncRuntime, finish_in_thread
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import AuthenticationError, ConfigError, InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.execution import Journal, RunResult
from taiwa.kernel.messages import Usage
from taiwa.kernel.serialization import Json, digest, items_at, value
from taiwa.kernel.usage_limits import Billing, RunUsage, UsageLimits, check_cost, usage_of
from taiwa.sessions.commit_turn import (
    PricedModel,
    RuntimeOptions,
    TurnInput,
    TurnOptions,
    TurnResult,
    has_moved_since,
    open_resources,
    prepare_turn,
    request_counter,
    sink,
    turn_from_json,
    turn_to_json,
)
from taiwa.sessions.replay import recorded_replies
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import item_key

if TYPE_CHECKING:
    from taiwa.sessions.ask_resources import RagResources


@value(tag="batch-input")
class BatchInput:
    """One row of the input; `error` says why it is invalid, or is empty."""

    index: int
    text: str = ""
    id: Json = None
    params: Json = None
    error: str = ""
    attachments: tuple[Attachment, ...] = ()

    def key(self, app: str, model: str, options: Json) -> str:
        """Return the name of the row, derived from everything that its answer depends on."""
        hashes: list[Json] = [each.sha256 for each in self.attachments]
        return item_key(self.text, app, model, {"options": options, "attachments": hashes} if hashes else options)

    def is_turn(self, node: Node) -> bool:
        """Return whether a turn of a conversation is the one of this row."""
        return node.user == self.text and node.attachments == self.attachments


@value(tag="batch-row")
class BatchRow:
    """The result of a row: its turn, which has no place in the store if the row is not one of a session; of a failed row it has
    only the usage and the attempts of the app `extract`. `reused` rows were answered earlier.
    """

    input: BatchInput
    turn: TurnResult
    error: Json = None
    reused: bool = False

    @property
    def answer(self) -> str | None:
        """The answer, None if the row failed."""
        return self.turn.text if self.error is None else None

    @property
    def state(self) -> "State | None":
        """The state after the turn, None if the row failed."""
        return self.turn.state if self.error is None else None


def failed_row(row_input: BatchInput, error: TaiwaError) -> BatchRow:
    """Return the row of an error, with its usage, and its attempts at a value."""
    failure: dict[str, Json] = {"type": error.tag, "message": error.message}
    attempts: tuple[Attempt, ...] = ()
    if isinstance(error, ExtractError):
        failure |= {"diagnostics": list(error.diagnostics), "best": error.best}
        attempts = error.tries
    return BatchRow(
        row_input, _turn(Reply("", findings=Findings(attempts=attempts), state_read=False), usage_of(error)), failure
    )


def _turn(reply: Reply, spent: RunUsage, after: Conversation | None = None) -> TurnResult:
    """Return a turn that is not one of a session."""
    if after is None:
        return TurnResult(reply, "", "", "", spent)
    return TurnResult(reply, "", "", "", spent, dict(after.state), findings=after.new_nodes[-1].findings)


def is_fatal(error: TaiwaError) -> bool:
    """Return whether all further rows would fail in the same way."""
    if isinstance(error, LimitError):
        return error.which.startswith("cost") and error.which != "cost of a call"
    return isinstance(error, (AuthenticationError, ConfigError, StoreError))


MAX_WAITING_PER_WORKER = 4
"""Finished rows per worker that may wait for an older one; limits the memory of a batch."""

POLL_SECONDS = 0.5
"""Seconds between checks of whether another process has answered a row."""


@dataclass(frozen=True, slots=True)
class _StartedRow:
    """A row answered by this process: its name, its run and the run's journal, its program, and what that runs with."""

    name: str
    run: int
    journal: Journal
    program: Program[tuple[Reply, Conversation]]
    runtime_options: RuntimeOptions
    resources: "RagResources | None"


@dataclass(frozen=True, slots=True)
class _Room:
    """What a row may cost; `is_all` says that it is all that the limit leaves."""

    cost: int
    is_all: bool


@dataclass
class TurnBatch:
    """Independent rows, each a first turn, `width` at a time. `opened` returns the app with the parameters of a row.

    With `resume`, rows that were answered before with the same app, model and parameters are not repeated.
    """

    repository: Repository
    priced_model: PricedModel
    options: TurnOptions
    opened: Callable[[Json], App] = field(kw_only=True)
    width: int = field(default=4, kw_only=True)
    resume: bool = field(default=False, kw_only=True)
    spent: RunUsage = field(default_factory=RunUsage, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _shares: list[int] = field(default_factory=list[int], init=False)
    _held: int = field(default=0, init=False)
    _dearest: int | None = field(default=None, init=False)
    _ended: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    _interrupted: dict[str, int] = field(default_factory=dict[str, int], init=False)

    async def rows(self, inputs: Iterable[BatchInput]) -> AsyncGenerator[BatchRow]:
        """Answer rows and yield them in order.

        Raises:
            TaiwaError: further rows would fail in the same way; rows that were running are yielded before.
        """
        if self.resume:
            self._interrupted = await finish_in_thread(self._find_interrupted)
        gate = asyncio.Semaphore(self.width)
        tasks: deque[asyncio.Task[BatchRow | None]] = deque()
        try:
            for row_input in inputs:
                tasks.append(asyncio.create_task(self._row(row_input, gate)))
                if len(tasks) >= MAX_WAITING_PER_WORKER * self.width:
                    row = await tasks.popleft()
                    if row is not None:
                        yield row
                if self._fatal is not None:
                    break
            while tasks:
                row = await tasks.popleft()
                if row is not None:
                    yield row
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._fatal is not None:
            raise self._fatal

    async def _row(self, row_input: BatchInput, gate: asyncio.Semaphore) -> BatchRow | None:
        """Answer a row; None means that the batch ended first."""
        if row_input.error:
            return failed_row(row_input, InputError(row_input.error))
        waited, alone, held = False, False, 0
        while True:
            async with gate, self._room(alone=alone) as room:
                if self._fatal is not None:
                    return None
                self._held -= held
                try:
                    check_cost(self.spent, self.options.cost_limit)
                    row = await self._run_row(row_input, room, waited=waited)
                except TaiwaError as error:
                    if isinstance(error, LimitError) and error.which == "cost" and room is not None and not room.is_all:
                        alone, held = True, usage_of(error).max_cost or 0
                        self._held += held
                        continue
                    self.spent = self.spent + usage_of(error)
                    if not is_fatal(error):
                        return failed_row(row_input, error)
                    self._fatal = error
                    return None
            if row is not None:
                return row
            waited = True
            await asyncio.sleep(POLL_SECONDS)

    @asynccontextmanager
    async def _room(self, *, alone: bool) -> "AsyncGenerator[_Room | None]":
        """Under a cost limit, wait until a row as expensive as the most expensive one so far fits in addition to the running
        ones, and yield what the row may cost. The first row runs alone, and so does one for which its share was too little.
        """
        limit = self.options.cost_limit
        if limit is None:
            yield None
            return

        def left() -> int:
            return max(limit - (self.spent.max_cost or 0) - self._held, 0)

        def places() -> int:
            return 1 if self._dearest is None else max(min(self.width, left() // max(self._dearest, 1)), 1)

        def fits() -> bool:
            return not self._shares if alone else len(self._shares) < places()

        async with self._ended:
            await self._ended.wait_for(fits)
            free = left() - sum(self._shares)
            share = free if alone else free // (places() - len(self._shares))
            room = _Room(share, not self._shares and share == left())
            self._shares.append(share)
        try:
            yield room
        finally:
            async with self._ended:
                self._shares.remove(share)
                self._ended.notify_all()

    async def _run_row(self, row_input: BatchInput, room: "_Room | None", *, waited: bool) -> BatchRow | None:
        """Answer a row; None while another process answers it, so that a resumed batch can have several workers.

        The store is written in threads, because another writer's lock must not block running rows.
        """
        started: list[_StartedRow] = []
        try:
            stored = await finish_in_thread(partial(self._start, row_input, started, waited=waited))
            if not started:
                return stored
            done = await self._run(started[0], room)
            (reply, after), spent = done.value, done.spent
            row = BatchRow(row_input, _turn(reply, spent, after))
            await finish_in_thread(partial(self._finish, started[0], row))
        except BaseException as error:
            for row_run in started:
                await finish_in_thread(partial(self._end, row_run, error))
            raise
        finally:
            for row_run in started:
                if row_run.resources is not None:
                    row_run.resources.close()
        return row

    def _start(self, row_input: BatchInput, started: list[_StartedRow], *, waited: bool) -> BatchRow | None:
        """Take a row and begin its run, or return its result if it was answered earlier."""
        app = self.repository.with_type(self.opened(row_input.params))
        turn_input = TurnInput(begin(app), row_input.text, attachments=row_input.attachments)
        turn_input.check()
        name = row_input.key(app.hash, self.priced_model.model.name, self.options.of_answer)
        self.repository.store.nodes.put_app(app.source)
        items = self.repository.store.batches
        item = items.take(name) if self.resume else items.begin(name)
        if item is None:
            return None
        if self.resume and item.status == "done" and isinstance(item.result, dict):
            if "reply" not in item.result:
                raise StoreError(
                    "the answers of this batch were stored by another version of taiwa; run it without --resume"
                )
            return BatchRow(row_input, turn_from_json(item.result), reused=True)
        if waited:
            self._interrupted = self._find_interrupted()  # the other process has ended
        with ExitStack() as stack:
            stack.callback(items.release, name)
            resources = open_resources(self.repository, turn_input.base, self.priced_model)
            if resources is not None:
                stack.callback(resources.close)
            program, options, _ = prepare_turn(self.repository, turn_input, self.priced_model, self.options, resources)
            run, journal = self._begin_run(name, turn_input)
            started.append(_StartedRow(name, run, journal, program, options, resources))
            stack.pop_all()
        return None

    def _finish(self, row_run: _StartedRow, row: BatchRow) -> None:
        # Store the result first, so that a crash in between does not repeat the row.
        self.repository.store.batches.finish(row_run.name, turn_to_json(row.turn))
        self.repository.store.runs.end(row_run.run, "done")

    async def _run(self, started: _StartedRow, room: "_Room | None") -> RunResult[tuple[Reply, Conversation]]:
        limits = self.options.limits or UsageLimits()
        options: RuntimeOptions = {
            **started.runtime_options,
            "limits": limits if room is None else replace(limits, cost=room.cost),
            "billing": Billing(self.priced_model.price, self.repository.budgets(started.run, limits)),
            "observers": (request_counter(self.repository, started.run, self.priced_model),),
        }
        runtime = AsyncRuntime(self.priced_model.model, **options)
        try:
            done = await runtime.run_result(started.program, started.journal)
        except (ExtractError, LimitError) as error:
            reached = error.__cause__ if isinstance(error, ExtractError) else error
            if not isinstance(reached, LimitError):
                raise
            if room is not None and reached.which == "cost":
                # The row was given what is left; the user gave the limit of all rows.
                limit = self.options.cost_limit or 0
                before = (limit - room.cost) / 1e9
                reached = LimitError("cost", before + reached.amount, limit / 1e9, reached.needed)
            reached.spent = error.spent  # the row can be resumed with a higher limit
            raise reached from None
        self.spent = self.spent + done.spent
        self._dearest = max(self._dearest or 0, done.spent.max_cost or 0)
        return done

    def _begin_run(self, name: str, turn_input: TurnInput) -> tuple[int, Journal]:
        """Begin the run of a row, or resume its interrupted one."""
        runs = self.repository.store.runs
        run = self._interrupted.pop(name, None)
        if run is not None:
            runs.claim(run)
            return run, Journal(runs.journal(run), sink(self.repository, run, self.priced_model))
        options = self.options.of_answer | {"item": name}
        run = runs.begin("", None, turn_input.base.app.hash, turn_input.text, options)
        return run, Journal((), sink(self.repository, run, self.priced_model))

    def _end(self, row_run: _StartedRow, error: BaseException) -> None:
        """Record a failure. A run stopped by a limit stays open, so that the next attempt reuses its calls."""
        runs, items = self.repository.store.runs, self.repository.store.batches
        if not isinstance(error, TaiwaError):
            runs.release(row_run.run)
            items.release(row_run.name)
            return
        with suppress(StoreError):
            if isinstance(error, LimitError):
                runs.release(row_run.run)
                self._interrupted[row_run.name] = row_run.run
            else:
                runs.end(row_run.run, "failed", error)
            items.fail(row_run.name, error)

    def _find_interrupted(self) -> dict[str, int]:
        runs = self.repository.store.runs.open_runs("")
        return {
            str(run.options["item"]): run.id for run in runs if isinstance(run.options, dict) and "item" in run.options
        }


CONTINUED_WITHOUT = "the row failed before, and the conversation continued without it"


def run_in_one_session(session: Session, rows: Iterable[BatchInput], before: Iterable[str] = ()) -> Iterator[BatchRow]:
    """Run rows as the turns of one session. `before` are the turns that exist already, oldest first.

    Raises:
        TaiwaError: further rows would fail in the same way.
    """
    there = deque(before)
    replies = recorded_replies(session.repository, there[-1]) if there else {}
    for row_input in rows:
        if row_input.error:
            yield failed_row(row_input, InputError(row_input.error))
        elif there and row_input.is_turn(session.repository.store.nodes.get(there[0])):
            yield _committed_row(session, row_input, there.popleft(), replies)
        elif there:
            yield failed_row(row_input, InputError(CONTINUED_WITHOUT))
        else:
            check_cost(session.spent, session.options.cost_limit)
            yield _complete_row(session, row_input)


def _complete_row(session: Session, row_input: BatchInput) -> BatchRow:
    try:
        if row_input.params is not None:
            raise InputError("a row must not have params where all rows are one conversation")
        return BatchRow(
            row_input, _resume_turn(session, row_input) or session.say(row_input.text, row_input.attachments)
        )
    except TaiwaError as error:
        if is_fatal(error):
            raise
        return failed_row(row_input, error)


def _resume_turn(session: Session, row_input: BatchInput) -> TurnResult | None:
    """Finish an interrupted turn of this row without repeating its paid calls."""
    runs = session.repository.store.runs.open_runs(session.name)
    references: list[Json] = [each.reference() for each in row_input.attachments]
    if not runs or runs[-1].text != row_input.text or items_at(runs[-1].options, "attachments") != references:
        return None
    if not runs[-1].calls and has_moved_since(session.repository, runs[-1]):
        return None  # nothing was answered yet, so the row is not worth a branch
    return session.resume()


def _committed_row(session: Session, row_input: BatchInput, node: str, replies: Mapping[str, Reply]) -> BatchRow:
    repository = session.repository
    turn, after = repository.store.nodes.get(node), repository.checkout(node)
    spent = RunUsage()
    for call in repository.store.runs.calls(node, session.name):
        if call.kind == "complete":
            cost = None if call.usage is None else call.cost_nano
            spent = spent + RunUsage(1, 0, call.usage or Usage(), int(call.usage is None), cost, call.time.ms / 1000)
    reply = replies.get(node) or Reply(turn.answer or "", turn.delta, value=after.app.read_answer(turn.answer))
    place = session.name, node, repository.store.refs.back(node, 1)
    return BatchRow(row_input, TurnResult(reply, *place, spent, after.state, findings=turn.findings), reused=True)


def committed_rows(session: Session, rows: Iterable[BatchInput]) -> tuple[str, ...]:
    """Return the turns of a session that belong to rows of a batch, oldest first, without earlier turns.

    Raises:
        InputError: the session contains a later turn that is not a row of the batch.
    """
    if session.conversation.stored_tip is None:
        return ()
    nodes = session.repository.store.nodes
    turns = [name for name, node in nodes.path(session.conversation.tip) if node.kind == "turn"][::-1]
    good = (row_input for row_input in rows if not row_input.error)
    first: dict[str, int] = {}
    for at, name in enumerate(turns):
        node = nodes.get(name)
        first.setdefault(digest((node.user, node.attachments)), at)
    begun = next((first[name] for row in good if (name := digest((row.text, row.attachments))) in first), len(turns))
    at = begun + 1
    for row in good:
        if at >= len(turns):
            break
        at += row.is_turn(nodes.get(turns[at]))
    if at < len(turns):
        text = nodes.get(turns[at]).user or ""
        raise InputError(
            f"{session.name} holds a turn that is not a row of this batch ({text[:60]!r}); choose another -s"
        )
    return tuple(turns[begun:])
