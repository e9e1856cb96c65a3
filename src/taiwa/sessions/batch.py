"""Rows: in parallel, in one conversation, typed; resume."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.chat import Reply, say
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import AuthenticationError, ConfigError, InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.records import Json, digest, record, restore, value
from taiwa.kernel.runtime import Tool
from taiwa.kernel.usage_limits import RunUsage
from taiwa.sessions.checkout import Repository
from taiwa.sessions.durable_turn import PricedModel, TurnOptions, TurnResult, sink
from taiwa.sessions.session import Session
from taiwa.store import item_key

__all__ = [
    "BatchInput",
    "BatchRow",
    "Counted",
    "ParallelBatch",
    "RowProgram",
    "TurnBatch",
    "is_fatal",
    "run_in_one_session",
    "said_before",
]


@value(tag="batch-input")
class BatchInput:
    """One row as it was given; `error` says why it cannot be said, or is empty."""

    index: int
    text: str = ""
    id: Json = None
    params: Json = None
    error: str = ""


@value(tag="batch-row")
class BatchRow:
    """What came of a row: `answer` None means that it failed. `kept` rows were answered before."""

    given: BatchInput
    answer: str | None = None
    delta: Json = None
    state: Json = None
    warnings: tuple[str, ...] = ()
    session: str = ""
    node: str = ""
    parent: str = ""
    spent: RunUsage = RunUsage()
    error: Json = None
    kept: bool = False


class Counted(Protocol):
    """What the sum of a batch needs to know of a row, whatever it is a row of."""

    @property
    def spent(self) -> RunUsage:
        """Its bill."""
        ...

    @property
    def error(self) -> Json:
        """Its error, or None."""
        ...

    @property
    def kept(self) -> bool:
        """Whether it was answered before."""
        ...


def failed(given: BatchInput, error: TaiwaError) -> BatchRow:
    """A row with its error and what it cost all the same."""
    told: dict[str, Json] = {"type": error.tag, "message": error.message}
    return BatchRow(given, error=told, spent=error.spent if isinstance(error.spent, RunUsage) else RunUsage())


def check_limits(options: TurnOptions, spent: RunUsage, priced_model: PricedModel) -> None:
    """Refuse to go on where a cost limit is reached, or where nobody can say any more whether it is.

    Raises:
        LimitError, ConfigError: so it is.
    """
    limit = options.limits.cost
    if limit is None:
        return
    if spent.cost is None:
        name = priced_model.model.name
        raise ConfigError(f"the cost of a call to {name} is not known, so a cost limit cannot hold any longer")
    if spent.cost >= limit:
        raise LimitError("cost", spent.cost / 1e9, limit / 1e9)


def is_fatal(error: TaiwaError) -> bool:
    """Whether the next row could only fail in the same way."""
    if isinstance(error, LimitError):
        return error.which == "cost"
    return isinstance(error, (AuthenticationError, ConfigError, StoreError))


A = TypeVar("A")

R = TypeVar("R")

AHEAD = 4
"""Rows that may wait for an older one, for each that is under way; so the memory of a batch is bounded."""

LOOK_AGAIN = 0.5
"""Seconds until it is seen whether another program has answered a row."""


@dataclass(frozen=True, slots=True)
class RowProgram(Generic[A]):
    """What a row asks for: a program, and a name made of all that its answer depends on."""

    name: str
    program: Program[A]
    app: str | None = None
    options: Json = None
    tools: tuple[Tool, ...] = ()


@dataclass
class ParallelBatch(ABC, Generic[A, R]):
    """A batch, `width` rows at a time. With `resume` a row that was answered before is not asked again."""

    repository: Repository
    priced_model: PricedModel
    options: TurnOptions
    width: int = field(default=4, kw_only=True)
    resume: bool = field(default=False, kw_only=True)
    spent: RunUsage = field(default_factory=RunUsage, init=False)
    _fatal: TaiwaError | None = field(default=None, init=False)
    _cut_off: dict[str, int] = field(default_factory=dict[str, int], init=False)

    @abstractmethod
    def asking(self, given: BatchInput) -> RowProgram[A]:
        """Say what a row asks for.

        Raises:
            TaiwaError: it cannot be asked.
        """

    @abstractmethod
    def answered(self, given: BatchInput, done: RunResult[A]) -> R:
        """Make a row of its answer."""

    @abstractmethod
    def failed(self, given: BatchInput, error: TaiwaError) -> R:
        """Make a row of its error."""

    @abstractmethod
    def recorded(self, row: R) -> Json:
        """Give what is kept of a row that was answered; its place in the file is not."""

    @abstractmethod
    def restored(self, given: BatchInput, held: dict[str, Json]) -> R:
        """Make a row again of what was kept of it."""

    async def rows(self, given: Iterable[BatchInput]) -> AsyncGenerator[R]:
        """Answer rows and give them out in their order.

        Raises:
            TaiwaError: the next row could only fail as well; rows that were under way are given out before.
        """
        if self.resume:
            self._cut_off = self._find_cut_off()
        gate = asyncio.Semaphore(self.width)
        tasks: deque[asyncio.Task[R | None]] = deque()
        try:
            for one in given:
                tasks.append(asyncio.create_task(self._row(one, gate)))
                if len(tasks) >= AHEAD * self.width:
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

    async def _row(self, given: BatchInput, gate: asyncio.Semaphore) -> R | None:
        """Answer a row; None means that the batch ended before it."""
        if given.error:
            return self.failed(given, InputError(given.error))
        waited = False
        while True:
            async with gate:
                if self._fatal is not None:
                    return None
                try:
                    check_limits(self.options, self.spent, self.priced_model)
                    row = await self._answered(given, waited=waited)
                except TaiwaError as error:
                    if not is_fatal(error):
                        return self.failed(given, error)
                    self._fatal = error
                    return None
            if row is not None:
                return row
            waited = True
            await asyncio.sleep(LOOK_AGAIN)

    async def _answered(self, given: BatchInput, *, waited: bool) -> R | None:
        """Answer a row; None while another program is asking for it, so that a resumed batch can have many workers."""
        asking = self.asking(given)
        items = self.repository.store.batches
        item = items.take(asking.name) if self.resume else items.begin(asking.name)
        if item is None:
            return None
        if self.resume and item.status == "done" and isinstance(item.result, dict):
            return self.restored(given, item.result)
        if waited:
            self._cut_off = self._find_cut_off()  # whoever had it is gone
        run, journal = self._begun(given.text, asking)
        try:
            done = await self._asked(asking, journal)
        except TaiwaError as error:
            self._end(run, asking.name, error)
            raise
        except BaseException:
            self.repository.store.runs.release(run)
            items.release(asking.name)
            raise
        row = self.answered(given, done)
        # The result first: a crash between the two is then no reason to ask again.
        items.finish(asking.name, self.recorded(row), done.spent.cost)
        self.repository.store.runs.complete(run)
        return row

    async def _asked(self, asking: RowProgram[A], journal: Journal) -> RunResult[A]:
        limits, known = self.options.limits, self.spent.cost
        if limits.cost is not None and known is not None:
            limits = replace(limits, cost=limits.cost - known)
        runtime = AsyncRuntime(
            self.priced_model.model, tools=asking.tools, limits=limits, price=self.priced_model.price
        )
        try:
            events = [event async for event in runtime.stream(asking.program, journal) if isinstance(event, RunResult)]
        except TaiwaError as error:
            self._charge(error.spent)
            raise
        self._charge(events[0].spent)
        return events[0]

    def _charge(self, spent: object) -> None:
        if isinstance(spent, RunUsage):
            self.spent = self.spent + spent

    def _begun(self, text: str, asking: RowProgram[A]) -> tuple[int, Journal]:
        """Begin the run of a row, or take up the one that was cut off."""
        runs = self.repository.store.runs
        found = self._cut_off.pop(asking.name, None)
        if found is not None:
            runs.claim(found)
            return found, Journal(runs.journal(found), sink(self.repository, found, self.priced_model))
        options = asking.options if isinstance(asking.options, dict) else {}
        run = runs.begin("", None, asking.app, text, options | {"item": asking.name})
        return run, Journal((), sink(self.repository, run, self.priced_model))

    def _end(self, run: int, name: str, error: TaiwaError) -> None:
        """Record a failure. One that a limit stopped is not over: the next try goes on with what was paid for."""
        with suppress(StoreError):
            if isinstance(error, LimitError):
                self.repository.store.runs.release(run)
            else:
                self.repository.store.runs.fail(run, error)
            cost = error.spent.cost if isinstance(error.spent, RunUsage) else 0
            self.repository.store.batches.fail(name, error, cost)

    def _find_cut_off(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for run in self.repository.store.runs.open_runs(""):
            item = run.options.get("item") if isinstance(run.options, dict) else None
            if isinstance(item, str):
                found[item] = run.id
        return found


@dataclass
class TurnBatch(ParallelBatch[tuple[Reply, Conversation], BatchRow]):
    """Rows that know nothing of each other. `opened` gives the app with the params of a row.

    With `resume` a row that was answered before, with the same app, model and params, is not asked again.
    """

    opened: Callable[[Json], App] = field(kw_only=True)

    def asking(self, given: BatchInput) -> RowProgram[tuple[Reply, Conversation]]:
        """Say what a row says, to its app."""
        app = self.opened(given.params)
        options = self.options.to_json()
        name = item_key(given.text, app.hash, self.priced_model.model.name, options)
        self.repository.store.nodes.put_app(app.source)
        tools = self.repository.tools_of(app)
        specs = [tool.spec for tool in tools]
        program = say(given.text, strict=self.options.strict, repairs=self.options.repairs, tools=specs)(begin(app))
        return RowProgram(name, program, app.hash, options, tools)

    def answered(self, given: BatchInput, done: RunResult[tuple[Reply, Conversation]]) -> BatchRow:
        """Make a row of a turn."""
        reply, after = done.value
        return BatchRow(given, reply.text, reply.delta, dict(after.state), reply.warnings, spent=done.spent)

    def failed(self, given: BatchInput, error: TaiwaError) -> BatchRow:
        """Make a row of its error."""
        return failed(given, error)

    def recorded(self, row: BatchRow) -> Json:
        """Give what is kept of a row that was answered; its place in the file is not."""
        return {
            "answer": row.answer,
            "delta": row.delta,
            "state": row.state,
            "warnings": list(row.warnings),
            "spent": record(row.spent),
        }

    def restored(self, given: BatchInput, held: dict[str, Json]) -> BatchRow:
        """Make a row again of what was kept of it."""
        warnings = held.get("warnings")
        spent = restore(held.get("spent"))
        return BatchRow(
            given,
            str(held.get("answer")),
            held.get("delta"),
            held.get("state"),
            tuple(map(str, warnings)) if isinstance(warnings, list) else (),
            spent=spent if isinstance(spent, RunUsage) else RunUsage(),
            kept=True,
        )


GONE_ON = "it failed before, and the conversation has gone on without it"


def run_in_one_session(talk: Session, rows: Iterable[BatchInput], before: Iterable[str] = ()) -> Iterator[BatchRow]:
    """Say row after row in one conversation. `before` holds the turns that are there already, oldest first.

    Raises:
        TaiwaError: the next row could only fail as well.
    """
    there = deque(before)
    for given in rows:
        if given.error:
            yield failed(given, InputError(given.error))
        elif there and talk.repository.store.nodes.get(there[0]).user == given.text:
            yield _kept(talk, given, there.popleft())
        elif there:
            yield failed(given, InputError(GONE_ON))
        else:
            check_limits(talk.options, talk.spent, talk.priced_model)
            yield _said(talk, given)


def _said(talk: Session, given: BatchInput) -> BatchRow:
    try:
        if given.params is not None:
            raise InputError("a row of a fold has no params: all rows are one conversation")
        said = _resumed(talk, given.text) or talk.say(given.text)
    except TaiwaError as error:
        if is_fatal(error):
            raise
        return failed(given, error)
    return BatchRow(
        given, said.text, said.delta, dict(talk.state), said.warnings, said.session, said.node, said.parent, said.spent
    )


def _resumed(talk: Session, text: str) -> TurnResult | None:
    """Finish a turn that was cut off, if it says this text; its paid calls are not made again."""
    runs = talk.repository.store.runs.open_runs(talk.session)
    if not runs or runs[-1].text != text:
        return None
    return next((event for event in talk.resume() or () if isinstance(event, TurnResult)), None)


def _kept(talk: Session, given: BatchInput, node: str) -> BatchRow:
    repository = talk.repository
    turn, after = repository.store.nodes.get(node), repository.checkout(node)
    parent = repository.store.refs.back(node, 1)
    return BatchRow(
        given,
        turn.answer,
        turn.delta,
        dict(after.state),
        (),
        talk.session,
        node,
        parent,
        _paid(repository, node),
        kept=True,
    )


def _paid(repository: Repository, node: str) -> RunUsage:
    calls = [call for call in repository.store.runs.calls(node) if call.kind == "complete"]
    spent = RunUsage()
    for call in calls:
        cost = None if call.usage is None else call.cost_nano
        known = call.usage or RunUsage().usage
        spent = spent + RunUsage(1, 0, known, int(call.usage is None), cost, call.ms / 1000)
    return spent


def said_before(talk: Session, rows: Iterable[BatchInput]) -> tuple[str, ...]:
    """Find the turns of a conversation that the rows of a batch began, oldest first; earlier ones are not the batch's.

    Raises:
        InputError: something else was said after them.
    """
    if talk.conversation.new_nodes:
        return ()
    nodes = talk.repository.store.nodes
    turns = [name for name, node in nodes.path(talk.conversation.tip) if node.kind == "turn"][::-1]
    texts = (given.text for given in rows if not given.error)
    first: dict[str, int] = {}
    for at, name in enumerate(turns):
        first.setdefault(digest(nodes.get(name).user), at)
    begun = next((first[name] for text in texts if (name := digest(text)) in first), len(turns))
    at = begun + 1
    for text in texts:
        if at >= len(turns):
            break
        at += nodes.get(turns[at]).user == text
    if at < len(turns):
        said = nodes.get(turns[at]).user or ""
        raise InputError(f"{talk.session} holds a turn that is no row of this batch ({said[:60]!r}): choose another -s")
    return tuple(turns[begun:])
