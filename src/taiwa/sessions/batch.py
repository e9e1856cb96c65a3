"""Batches: rows that run in parallel or in one session, and resume without repeating paid calls; rows are turns of an app or
extracted values. `extract_one` does the same for a single text.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node, begin
from taiwa.flows.extract import (
    DEFAULT_REPAIR,
    Attempt,
    ExtractError,
    ModeChoice,
    RepairPolicy,
    StyleChoice,
    TypedAnswer,
    extract,
)
from taiwa.flows.turn import Reply, say
from taiwa.kernel.async_runtime import AsyncRuntime, finish_in_thread
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import HideOutput, Program, ShowOutput, Watcher
from taiwa.kernel.errors import AuthenticationError, ConfigError, InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.execution import Journal, RunResult, first_request
from taiwa.kernel.messages import Capability, Notice, Request, Sampling, TextDelta, Usage, system, user
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, digest, items_at, record, restore, value
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.sessions.commit_turn import (
    PricedModel,
    TurnInput,
    TurnOptions,
    TurnResult,
    has_moved_since,
    request_counter,
    run_outside_sessions,
    sink,
)
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import item_key
from taiwa.structured import OutputType


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
    """The result of a row: `answer` None means that it failed. `reused` rows were answered earlier; `refused`: by the model."""

    input: BatchInput
    answer: str | None = None
    delta: Json = None
    state: Json = None
    warnings: tuple[str, ...] = ()
    session: str = ""
    node: str = ""
    parent: str = ""
    spent: RunUsage = RunUsage()
    error: Json = None
    reused: bool = False
    refused: bool = False


def failed_row(row_input: BatchInput, error: TaiwaError) -> BatchRow:
    """Return the row of an error, with its usage."""
    failure: dict[str, Json] = {"type": error.tag, "message": error.message}
    return BatchRow(row_input, error=failure, spent=usage_of(error.spent))


def usage_of(spent: object) -> RunUsage:
    """Return the usage of an error or a stored row; an empty usage if it has none."""
    return spent if isinstance(spent, RunUsage) else RunUsage()


def check_limits(options: TurnOptions, spent: RunUsage, priced_model: PricedModel) -> None:
    """Check the cost limit.

    Raises:
        LimitError: the limit is reached.
        ConfigError: the cost is unknown.
    """
    limit = options.cost_limit
    if limit is None:
        return
    if spent.max_cost is None:
        name = priced_model.model.name
        raise ConfigError(f"the cost of a call to {name} is unknown, so the cost limit can no longer be checked")
    if spent.max_cost >= limit:
        raise LimitError("cost", spent.max_cost / 1e9, limit / 1e9)


def is_fatal(error: TaiwaError) -> bool:
    """Return whether all further rows would fail in the same way."""
    if isinstance(error, LimitError):
        return error.which.startswith("cost") and error.which != "cost of a call"
    return isinstance(error, (AuthenticationError, ConfigError, StoreError))


A = TypeVar("A")

R = TypeVar("R")

MAX_WAITING_PER_WORKER = 4
"""Finished rows per worker that may wait for an older one; limits the memory of a batch."""

POLL_SECONDS = 0.5
"""Seconds between checks of whether another process has answered a row."""


@dataclass(frozen=True, slots=True)
class RowProgram(Generic[A]):
    """The program of a row, and a name derived from everything that its answer depends on."""

    name: str
    program: Program[A]
    app: str | None = None
    options: Json = None
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class _StartedRow(Generic[A]):
    """A row answered by this process: its program, its run, and the run's journal."""

    program: RowProgram[A]
    run: int
    journal: Journal


@dataclass(frozen=True, slots=True)
class _Room:
    """What a row may cost; `is_all` says that it is all that the limit leaves."""

    cost: int
    is_all: bool


@dataclass
class ParallelBatch(ABC, Generic[A, R]):
    """A batch, `width` rows at a time. With `resume`, rows that were answered before are not repeated."""

    repository: Repository
    priced_model: PricedModel
    options: TurnOptions
    width: int = field(default=4, kw_only=True)
    resume: bool = field(default=False, kw_only=True)
    spent: RunUsage = field(default_factory=RunUsage, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _shares: list[int] = field(default_factory=list[int], init=False)
    _held: int = field(default=0, init=False)
    _dearest: int | None = field(default=None, init=False)
    _ended: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    _interrupted: dict[str, int] = field(default_factory=dict[str, int], init=False)

    @abstractmethod
    def row_program(self, row_input: BatchInput) -> RowProgram[A]:
        """Return the program of a row.

        Raises:
            TaiwaError: the row is invalid.
        """

    @abstractmethod
    def to_row(self, row_input: BatchInput, done: RunResult[A]) -> R:
        """Return the row of an answer."""

    @abstractmethod
    def to_failed_row(self, row_input: BatchInput, error: TaiwaError) -> R:
        """Return the row of an error."""

    @abstractmethod
    def row_to_json(self, row: R) -> Json:
        """Return what is stored of an answered row, without its position in the file."""

    @abstractmethod
    def row_from_json(self, row_input: BatchInput, data: dict[str, Json]) -> R:
        """Rebuild a row from what is stored of it."""

    async def rows(self, inputs: Iterable[BatchInput]) -> AsyncGenerator[R]:
        """Answer rows and yield them in order.

        Raises:
            TaiwaError: further rows would fail in the same way; rows that were running are yielded before.
        """
        if self.resume:
            self._interrupted = await finish_in_thread(self._find_interrupted)
        gate = asyncio.Semaphore(self.width)
        tasks: deque[asyncio.Task[R | None]] = deque()
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

    async def _row(self, row_input: BatchInput, gate: asyncio.Semaphore) -> R | None:
        """Answer a row; None means that the batch ended first."""
        if row_input.error:
            return self.to_failed_row(row_input, InputError(row_input.error))
        waited, alone, held = False, False, 0
        while True:
            async with gate, self._room(alone=alone) as room:
                if self._fatal is not None:
                    return None
                self._held -= held
                try:
                    check_limits(self.options, self.spent, self.priced_model)
                    row = await self._run_row(row_input, room, waited=waited)
                except TaiwaError as error:
                    if isinstance(error, LimitError) and error.which == "cost" and room is not None and not room.is_all:
                        alone, held = True, usage_of(error.spent).max_cost or 0
                        self._held += held
                        continue
                    self.spent = self.spent + usage_of(error.spent)
                    if not is_fatal(error):
                        return self.to_failed_row(row_input, error)
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

    async def _run_row(self, row_input: BatchInput, room: "_Room | None", *, waited: bool) -> R | None:
        """Answer a row; None while another process answers it, so that a resumed batch can have several workers.

        The store is written in threads, because another writer's lock must not block running rows.
        """
        started: list[_StartedRow[A]] = []
        try:
            stored = await finish_in_thread(partial(self._start, row_input, started, waited=waited))
            if not started:
                return stored
            done = await self._run(started[0], room)
            row = self.to_row(row_input, done)
            await finish_in_thread(partial(self._finish, started[0], row, done.spent.cost))
        except BaseException as error:
            for row_run in started:
                await finish_in_thread(partial(self._end, row_run, error))
            raise
        return row

    def _start(self, row_input: BatchInput, started: "list[_StartedRow[A]]", *, waited: bool) -> R | None:
        """Take a row and begin its run, or return its result if it was answered earlier."""
        program = self.row_program(row_input)
        items = self.repository.store.batches
        item = items.take(program.name) if self.resume else items.begin(program.name)
        if item is None:
            return None
        if self.resume and item.status == "done" and isinstance(item.result, dict):
            return self.row_from_json(row_input, item.result)
        if waited:
            self._interrupted = self._find_interrupted()  # the other process has ended
        started.append(_StartedRow(program, *self._begin_run(row_input.text, program)))
        return None

    def _finish(self, row_run: "_StartedRow[A]", row: R, cost: int | None) -> None:
        # Store the result first, so that a crash in between does not repeat the row.
        self.repository.store.batches.finish(row_run.program.name, self.row_to_json(row), cost)
        self.repository.store.runs.end(row_run.run, "done")

    async def _run(self, started: "_StartedRow[A]", room: "_Room | None") -> RunResult[A]:
        program, limits = started.program, self.options.limits or UsageLimits()
        runtime = AsyncRuntime(
            self.priced_model.model, tools=program.tools, price=self.priced_model.price,
            limits=limits if room is None else replace(limits, cost=room.cost),
            budgets=self.repository.budgets(started.run, limits), approve=self.options.approve,
            observers=(request_counter(self.repository, started.run, self.priced_model),),
        )  # fmt: skip
        done = await runtime.run_result(program.program, started.journal)
        self.spent = self.spent + done.spent
        self._dearest = max(self._dearest or 0, done.spent.max_cost or 0)
        return done

    def _begin_run(self, text: str, program: RowProgram[A]) -> tuple[int, Journal]:
        """Begin the run of a row, or resume its interrupted one."""
        runs = self.repository.store.runs
        interrupted = self._interrupted.pop(program.name, None)
        if interrupted is not None:
            runs.claim(interrupted)
            return interrupted, Journal(
                runs.journal(interrupted), sink(self.repository, interrupted, self.priced_model)
            )
        options = program.options if isinstance(program.options, dict) else {}
        run = runs.begin("", None, program.app, text, options | {"item": program.name})
        return run, Journal((), sink(self.repository, run, self.priced_model))

    def _end(self, row_run: "_StartedRow[A]", error: BaseException) -> None:
        """Record a failure. A run stopped by a limit stays open, so that the next attempt reuses its calls."""
        runs, items = self.repository.store.runs, self.repository.store.batches
        if not isinstance(error, TaiwaError):
            runs.release(row_run.run)
            items.release(row_run.program.name)
            return
        with suppress(StoreError):
            if isinstance(error, LimitError):
                runs.release(row_run.run)
                self._interrupted[row_run.program.name] = row_run.run
            else:
                runs.end(row_run.run, "failed", error)
            items.fail(row_run.program.name, error, usage_of(error.spent).cost)

    def _find_interrupted(self) -> dict[str, int]:
        runs = self.repository.store.runs.open_runs("")
        return {
            str(run.options["item"]): run.id for run in runs if isinstance(run.options, dict) and "item" in run.options
        }


@dataclass
class TurnBatch(ParallelBatch[tuple[Reply, Conversation], BatchRow]):
    """Independent rows, each a first turn. `opened` returns the app with the parameters of a row.

    With `resume`, rows that were answered earlier with the same app, model and parameters are not repeated.
    """

    opened: Callable[[Json], App] = field(kw_only=True)

    def row_program(self, row_input: BatchInput) -> RowProgram[tuple[Reply, Conversation]]:
        """Return the program that sends a row's text to its app."""
        app = self.opened(row_input.params)
        TurnInput(begin(app), row_input.text, attachments=row_input.attachments).check()
        name = row_input.key(app.hash, self.priced_model.model.name, self.options.of_answer)
        self.repository.store.nodes.put_app(app.source)
        tools = self.repository.tools_of(app)
        specs = [tool.spec for tool in tools]
        turn = say(
            row_input.text, row_input.attachments, strict=self.options.strict, repairs=self.options.repairs, tools=specs
        )
        return RowProgram(name, turn(begin(app)), app.hash, self.options.of_answer, tools)

    def to_row(self, row_input: BatchInput, done: RunResult[tuple[Reply, Conversation]]) -> BatchRow:
        """Return the row of a turn."""
        reply, after = done.value
        state, refused = dict(after.state), reply.is_refused
        return BatchRow(row_input, reply.text, reply.delta, state, reply.warnings, spent=done.spent, refused=refused)

    def to_failed_row(self, row_input: BatchInput, error: TaiwaError) -> BatchRow:
        """Return the row of an error."""
        return failed_row(row_input, error)

    def row_to_json(self, row: BatchRow) -> Json:
        """Return what is stored of an answered row, without its position in the file."""
        warnings, spent = list[Json](row.warnings), record(row.spent)
        return {
            "answer": row.answer,
            "delta": row.delta,
            "state": row.state,
            "warnings": warnings,
            "spent": spent,
            "refused": row.refused,
        }

    def row_from_json(self, row_input: BatchInput, data: dict[str, Json]) -> BatchRow:
        """Rebuild a row from what is stored of it."""
        warnings, spent = data.get("warnings"), usage_of(restore(data.get("spent")))
        warned = tuple(map(str, warnings)) if isinstance(warnings, list) else ()
        answer, delta, state = str(data.get("answer")), data.get("delta"), data.get("state")
        refused = data.get("refused") is True
        return BatchRow(row_input, answer, delta, state, warned, spent=spent, reused=True, refused=refused)


CONTINUED_WITHOUT = "the row failed before, and the conversation continued without it"


def run_in_one_session(session: Session, rows: Iterable[BatchInput], before: Iterable[str] = ()) -> Iterator[BatchRow]:
    """Run rows as the turns of one session. `before` are the turns that exist already, oldest first.

    Raises:
        TaiwaError: further rows would fail in the same way.
    """
    there = deque(before)
    for row_input in rows:
        if row_input.error:
            yield failed_row(row_input, InputError(row_input.error))
        elif there and row_input.is_turn(session.repository.store.nodes.get(there[0])):
            yield _committed_row(session, row_input, there.popleft())
        elif there:
            yield failed_row(row_input, InputError(CONTINUED_WITHOUT))
        else:
            check_limits(session.options, session.spent, session.priced_model)
            yield _complete_row(session, row_input)


def _complete_row(session: Session, row_input: BatchInput) -> BatchRow:
    try:
        if row_input.params is not None:
            raise InputError("a row must not have params where all rows are one conversation")
        result = _resume_turn(session, row_input) or session.say(row_input.text, row_input.attachments)
    except TaiwaError as error:
        if is_fatal(error):
            raise
        return failed_row(row_input, error)
    state, place = dict(session.state), (result.session, result.node, result.parent)
    refused = result.is_refused
    return BatchRow(row_input, result.text, result.delta, state, result.warnings, *place, result.spent, refused=refused)


def _resume_turn(session: Session, row_input: BatchInput) -> TurnResult | None:
    """Finish an interrupted turn of this row without repeating its paid calls."""
    runs = session.repository.store.runs.open_runs(session.name)
    references: list[Json] = [each.reference() for each in row_input.attachments]
    if not runs or runs[-1].text != row_input.text or items_at(runs[-1].options, "attachments") != references:
        return None
    if not runs[-1].calls and has_moved_since(session.repository, runs[-1]):
        return None  # nothing was answered yet, so the row is not worth a branch
    return session.resume()


def _committed_row(session: Session, row_input: BatchInput, node: str) -> BatchRow:
    repository = session.repository
    turn, after = repository.store.nodes.get(node), repository.checkout(node)
    place = session.name, node, repository.store.refs.back(node, 1)
    spent = RunUsage()
    for call in repository.store.runs.calls(node, session.name):
        if call.kind == "complete":
            cost = None if call.usage is None else call.cost_nano
            spent = spent + RunUsage(1, 0, call.usage or Usage(), int(call.usage is None), cost, call.ms / 1000)
    return BatchRow(row_input, turn.answer, turn.delta, dict(after.state), (), *place, spent, reused=True)


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


# --- typed rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExtractRun:
    """The options of an extraction."""

    output_type: OutputType[Any]
    repair: RepairPolicy = DEFAULT_REPAIR
    mode: ModeChoice = "auto"
    style: StyleChoice = "auto"
    system: str = ""
    sampling: Sampling = Sampling()

    def program(
        self, text: str, attachments: Sequence[Attachment] = (), watch: Callable[[], Watcher] = HideOutput
    ) -> Program[TypedAnswer[Any]]:
        """Return the program that extracts from a text and attachments; `watch` decides what is shown of the answers.

        Raises:
            InputError: the text is empty without attachments.
        """
        if not text.strip() and not attachments:
            raise InputError("the text is empty")
        prompt = (*((system(self.system),) if self.system else ()), user(text, attachments))
        return extract(
            self.output_type, prompt, repair=self.repair, mode=self.mode, style=self.style, sampling=self.sampling,
            watch=watch,
        )  # fmt: skip

    def first_request(
        self, text: str, capabilities: frozenset[Capability], attachments: Sequence[Attachment] = ()
    ) -> Request:
        """Return the request that is sent first; nothing is sent.

        Raises:
            InputError: the text is empty without attachments.
        """
        return first_request(self.program(text, attachments), capabilities)

    @property
    def options(self) -> dict[str, Json]:
        """Everything that an answer depends on except the text and the model."""
        options: dict[str, Json] = {
            "type": digest(self.output_type.schema()),
            "repair": record(self.repair),
            "mode": self.mode,
        }
        more: dict[str, Json] = {
            "style": "" if self.style == "auto" else self.style,
            "system": self.system,
            "sampling": None if self.sampling == Sampling() else record(self.sampling),
        }
        return options | {name: part for name, part in more.items() if part}


@value(tag="typed-row")
class TypedRow:
    """The result of a row: its value as JSON or its error, its attempts, and its usage."""

    input: BatchInput
    value: Json = None
    attempts: tuple[Attempt, ...] = ()
    spent: RunUsage = RunUsage()
    error: Json = None
    reused: bool = False


def extract_one(
    repository: Repository,
    priced_model: PricedModel,
    options: TurnOptions,
    extract_run: ExtractRun,
    text: str,
    attachments: Sequence[Attachment] = (),
    on_event: Callable[[TextDelta | Notice], None] | None = None,
) -> RunResult[TypedAnswer[Any]]:
    """Extract from one text and its attachments; its calls are stored as they are answered, even if it fails.

    `on_event` gets the text of the answers as it arrives, and notices.

    Raises:
        ExtractError: no attempt could be parsed.
    """
    program = extract_run.program(text, attachments, HideOutput if on_event is None else ShowOutput)
    done: RunResult[TypedAnswer[Any]] | None = None
    for event in run_outside_sessions(repository, priced_model, options, program, text, extract_run.options):
        if isinstance(event, RunResult):
            done = event
        elif on_event is not None:
            on_event(event)
    assert done is not None, "a run ends with a RunResult"
    return done


@dataclass
class ExtractBatch(ParallelBatch[TypedAnswer[Any], TypedRow]):
    """A batch of extractions. With `resume`, rows that were answered before are not repeated."""

    extract_run: ExtractRun = field(kw_only=True)

    def row_program(self, row_input: BatchInput) -> RowProgram[TypedAnswer[Any]]:
        """Return the program of a row."""
        if row_input.params is not None:
            raise InputError("a row of texts must not have params")
        options = self.extract_run.options
        # Identified by the rendered type, because the prompt may change while the schema stays the same.
        name = row_input.key(digest(self.extract_run.output_type.render()), self.priced_model.model.name, options)
        return RowProgram(name, self.extract_run.program(row_input.text, row_input.attachments), None, options)

    def to_row(self, row_input: BatchInput, done: RunResult[TypedAnswer[Any]]) -> TypedRow:
        """Return the row of a value."""
        return TypedRow(row_input, self.extract_run.output_type.dump(done.value.value), done.value.attempts, done.spent)

    def to_failed_row(self, row_input: BatchInput, error: TaiwaError) -> TypedRow:
        """Return the row of an error, with its attempts."""
        failure: dict[str, Json] = {"type": error.tag, "message": error.message}
        tries: Sequence[Attempt] = ()
        if isinstance(error, ExtractError):
            failure |= {"diagnostics": list(error.diagnostics), "best": error.best}
            tries = error.tries
        return TypedRow(row_input, None, tuple(tries), usage_of(error.spent), failure)

    async def _run(self, started: _StartedRow[TypedAnswer[Any]], room: _Room | None) -> RunResult[TypedAnswer[Any]]:
        """Raise the error of the limit that ended a repair, so that the row can be resumed with a higher limit."""
        try:
            return await super()._run(started, room)
        except ExtractError as error:
            if isinstance(error.__cause__, LimitError):
                error.__cause__.spent = error.spent
                raise error.__cause__ from None
            raise

    def row_to_json(self, row: TypedRow) -> Json:
        """Return what is stored of a row: its value, attempts and usage."""
        return {"value": row.value, "attempts": record(row.attempts), "spent": record(row.spent)}

    def row_from_json(self, row_input: BatchInput, data: dict[str, Json]) -> TypedRow:
        """Rebuild a row from what is stored of it."""
        spent, attempts = restore(data.get("spent")), cast("tuple[Attempt, ...]", restore(data.get("attempts")))
        return TypedRow(row_input, data.get("value"), attempts, usage_of(spent), reused=True)
