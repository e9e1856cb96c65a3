"""The state machine of one run of a program, without I/O: a runtime performs the effects and feeds the answers back.

The journal of a run has its effects and their answers, in order for each strand: one sequence of effects. The root is `()`, the
j-th program of a gather that was the i-th effect of strand `s` is `(*s, i, j)`. A journal that is written during the run lets it
resume after a crash without repeating calls.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import GeneratorType
from typing import Any, Generic, TypeAlias, TypeVar

from taiwa.kernel.approval import ApprovalRequest, approval_message
from taiwa.kernel.effects import (
    CallTool,
    Complete,
    Effect,
    Gather,
    GetCapabilities,
    HideOutput,
    Notify,
    Program,
    Retrieve,
    Watcher,
)
from taiwa.kernel.errors import (
    ApprovalRequiredError,
    InputError,
    ModelError,
    ProtocolError,
    ReplayError,
    TaiwaError,
    ToolError,
    describe,
    restore_error,
)
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    FailedAttempt,
    Found,
    Grammar,
    HiddenDelta,
    Message,
    Notice,
    PartialValue,
    Regex,
    Request,
    Response,
    ShownEvent,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ThinkingSplitter,
    Usage,
    collect_response,
    split_unopened,
)
from taiwa.kernel.serialization import Json, digest, record, restore, tag_of, value
from taiwa.kernel.text import plural
from taiwa.kernel.usage_limits import Reservation, RunUsage, UsageLedger, UsageLimits, max_usage

logger = logging.getLogger("taiwa.effects")

T = TypeVar("T")


# --- the journal ------------------------------------------------------------------------------------------------------

Strand: TypeAlias = tuple[int, ...]


class Entry:
    """One effect and its answer or error; with both, the answer is the part that arrived before the error.

    An entry of this run holds its effect, one from a store only the digest of the effect.
    """

    __slots__ = ("_key", "answer", "effect", "error", "index", "seconds", "settled", "strand", "thought")

    def __init__(
        self, strand: Strand, index: int, effect: "Effect[Any] | str", answer: object = None, error: object = None
    ) -> None:
        self.strand = strand
        self.index = index
        self.effect = None if isinstance(effect, str) else effect
        self._key = effect if isinstance(effect, str) else ""
        self.answer = answer
        self.error = error
        self.seconds = 0.0
        self.thought = 0.0
        """Seconds from the first reasoning of a streamed answer to the text after it."""
        self.settled = False
        """Whether an earlier run was charged for it."""

    @property
    def key(self) -> str:
        """The digest of the effect."""
        if not self._key and self.effect is not None:
            self._key = self.effect.request.digest if isinstance(self.effect, Complete) else digest(self.effect)
        return self._key

    @property
    def kind(self) -> str:
        """The tag of the effect."""
        return tag_of(type(self.effect)) or "effect"

    def answers(self, effect: Effect[Any]) -> bool:
        """Return whether this is the entry of an effect."""
        if self.effect is not None:
            return self.effect == effect
        return self.key == Entry(self.strand, self.index, effect).key

    def record(self) -> dict[str, Json]:
        """Return the entry as plain data.

        Raises:
            InputError: the effect or its answer cannot be recorded.
        """
        return {
            "strand": list(self.strand),
            "index": self.index,
            "key": self.key,
            "answer": record(self.answer),
            "error": self.recorded_error,
        }

    @property
    def recorded_error(self) -> Json:
        """The record of the error; that of another library, whose class may not exist later, is one of ours."""
        error = self.error
        if error is None:
            return None
        known = error if isinstance(error, TaiwaError) else TaiwaError(f"{type(error).__name__}: {error}")
        return record(known.record())

    @classmethod
    def restore(cls, data: dict[str, Any]) -> "Entry":
        """Rebuild an entry from its record."""
        error = None if data["error"] is None else restore_error(restore(data["error"]))
        return cls(tuple(data["strand"]), data["index"], data["key"], restore(data["answer"]), error)


class Journal:
    """The entries of one run. `sink` is called with each new entry before the program continues."""

    __slots__ = ("_entries", "_refusals", "sink")

    def __init__(self, entries: Iterable[Entry] = (), sink: Callable[[Entry], None] | None = None) -> None:
        self._entries = {(entry.strand, entry.index): entry for entry in entries}
        self._refusals: dict[tuple[Strand, int], TaiwaError] = {}
        self.sink = sink

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order within each strand."""
        return tuple(self._entries.values())

    def find(self, strand: Strand, index: int) -> Entry | None:
        """Return the entry at a position, or None."""
        return self._entries.get((strand, index)) if self._entries else None

    def append(self, entry: Entry) -> None:
        """Add an entry and pass it to the sink."""
        self._entries[entry.strand, entry.index] = entry
        if self.sink is not None:
            self.sink(entry)

    def refuse(self, strand: Strand, index: int, refusal: TaiwaError) -> None:
        """Record that a limit refused the effect at a position; refusals are not passed to the sink."""
        self._refusals[strand, index] = refusal

    def refusal(self, strand: Strand, index: int) -> TaiwaError | None:
        """Return the error with which the effect at a position was refused, or None."""
        return self._refusals.get((strand, index))

    def requests(self) -> tuple[Complete, ...]:
        """Return the model calls of this run, for tests."""
        return tuple(entry.effect for entry in self.entries if isinstance(entry.effect, Complete))


@dataclass(eq=False, repr=False, slots=True)
class PendingEffect:
    """An effect that the runtime performs. `active` turns false when its answer is no longer needed."""

    strand: "_Strand"
    index: int
    effect: Effect[Any]
    started: float
    sent: Effect[Any] = field(init=False)
    """The effect as it is performed: limits may lower the `max_tokens` of a request."""
    active: bool = field(default=True, init=False)
    streaming: bool = field(default=False, init=False)
    chunks: list[Chunk] = field(default_factory=list[Chunk], init=False)
    refusal: TaiwaError | None = field(default=None, init=False)
    """Set when a limit is reached while the answer streams."""
    deferred: tuple[ApprovalRequest, ...] = field(default=(), init=False)
    """The calls that need approval, without a decision."""
    reservation: Reservation | None = field(default=None, init=False)
    """What the limits admit of a model call; None while it waits for another one to end."""
    in_delta: bool = field(default=False, init=False)
    """Whether the state delta is being written."""
    partial: Json = field(default=None, init=False)
    """The value of the answer after the last chunk, if that changed it."""
    thought: float = field(default=0.0, init=False)
    thinks_since: float | None = field(default=None, init=False)
    _watcher: Watcher | None = field(default=None, init=False)
    _cut: int | None = field(default=None, init=False)
    _splitter: ThinkingSplitter | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.sent = self.effect

    def admit(self, reservation: Reservation) -> None:
        """Take what the limits admit of a model call."""
        self.reservation = reservation
        if isinstance(self.effect, Complete) and (most := reservation.max_tokens) is not None:
            asked = self.effect.request
            self.sent = replace(self.effect, request=replace(asked, sampling=replace(asked.sampling, max_tokens=most)))

    def begin(self) -> None:
        """Start a stream of chunks and drop those of an earlier attempt."""
        watch = self.effect.watch if isinstance(self.effect, Complete) else None
        self._splitter = ThinkingSplitter() if _may_think(self.effect) else None
        self.streaming = True
        self.chunks = []
        self._cut = None
        self._watcher = None if watch is None else watch()

    def add(self, chunk: Chunk) -> str:
        """Add a chunk and return the text to show."""
        if self._splitter is not None and isinstance(chunk, TextDelta) and not chunk.refuses:
            return "".join(map(self._add, self._splitter.feed(chunk.text)))
        shown = self.flush() if isinstance(chunk, StreamEnd) else ""
        return shown + self._add(chunk)

    def measure(self, chunk: Chunk | None, now: float) -> None:
        """Measure the time from reasoning to the text or the end after it."""
        if isinstance(chunk, ThinkingDelta):
            self.thinks_since = now if self.thinks_since is None else self.thinks_since
        elif self.thinks_since is not None:
            self.thought += now - self.thinks_since
            self.thinks_since = None

    def flush(self) -> str:
        """Add thinking or text that was held back; return the text to show."""
        return "" if self._splitter is None else "".join(map(self._add, self._splitter.close()))

    def _add(self, chunk: Chunk) -> str:
        if self._cut is not None:
            return ""
        self.chunks.append(chunk)
        if not isinstance(chunk, TextDelta):
            return ""
        if self._watcher is None:
            return chunk.text
        result = self._watcher.feed(chunk.text)
        self._cut = result.cut
        self.in_delta = self.in_delta or result.in_delta
        self.partial = result.partial
        return result.show

    def finish(self) -> tuple[Response, str]:
        """Return the response and the text that was held back."""
        rest = self.flush()
        response = collect_response(self.chunks)
        if self._cut is not None:
            return self._cut_at(response, self._cut), rest
        if self._splitter is not None and (split := split_unopened(response.text)) is not None:
            parts = (part for part in response.message.parts if not isinstance(part, Text))
            response = replace(
                response, message=Message("assistant", (Thinking(split.thinking), Text(split.text), *parts))
            )
        return response, rest + ("" if self._watcher is None else self._watcher.close().show)

    def _cut_at(self, response: Response, end: int) -> Response:
        thinking = (part for part in response.message.parts if isinstance(part, Thinking))
        message = Message("assistant", (*thinking, Text(response.text[:end])))
        bound = None
        if response.usage is None and isinstance(self.effect, Complete):
            bound = max_usage(self.effect.request, response)
        return Response(message, "cut", None, response.usage, response.model, response.text[end:], bound)

    @property
    def shows_all(self) -> bool:
        """Return whether text is shown as it arrives: without a watcher, and when no thinking can begin any more."""
        return self._watcher is None and (self._splitter is None or self._splitter.is_text)

    @property
    def is_hidden(self) -> bool:
        """Return whether the answer is hidden completely."""
        return isinstance(self._watcher, HideOutput)

    @property
    def is_uncut(self) -> bool:
        """Return whether no watcher can end the answer early."""
        return self._watcher is None or self.is_hidden

    @property
    def is_complete(self) -> bool:
        """Return whether no more chunks are needed."""
        return self._cut is not None or self.refusal is not None or not self.active


def _may_think(effect: Effect[Any]) -> bool:
    """Return whether a thinking block may precede the answer: not if it continues a prefix or is constrained."""
    return (
        isinstance(effect, Complete)
        and not effect.request.prefix
        and not isinstance(effect.request.constraint, (Regex, Grammar))
    )


@value
class EffectStarted:
    """An effect is about to be performed, or a model call to be repeated after an attempt that may have been charged."""

    strand: Strand
    index: int
    effect: Effect[Any]


@value
class DeltaStarted:
    """The state delta of an answer is being written, which is not shown."""


def _log(entry: Entry) -> None:
    """Log a call of a model or a tool, or a search, without its texts."""
    match entry.effect, entry.answer:
        case Complete(), Response(model=model, usage=Usage() as usage):
            what = f"complete {model}: {usage.input_tokens} input and {usage.output_tokens} output tokens"
        case CallTool(name=name), _:
            what = f"call-tool {name}"
        case Retrieve(), Found(passages=passages):
            what = f"retrieve: {plural(len(passages), 'passage')}"
        case ((Complete() | Retrieve()), _):
            what = entry.kind
        case _:
            return
    failure = f", failed ({entry.error.tag})" if isinstance(entry.error, TaiwaError) else ""
    logger.info("%s, %.2f s%s", what, entry.seconds, failure)
    if isinstance(entry.error, ToolError) and entry.error.trace:
        logger.debug("%s", entry.error.trace)


@value
class EffectFinished:
    """An effect was answered or failed."""

    entry: Entry


@value
class RunResult(Generic[T]):
    """The result of a run: the value of the program, its usage, and its journal."""

    value: T
    spent: RunUsage
    journal: Journal


LIMIT_NOTICE = "limit"
"""The code of a notice that a limit was exceeded, or cut an answer."""
NAMES_TOKENS = re.compile(r"max_?(?:new_?|output_?|completion_?)?tokens", re.IGNORECASE)

Event: TypeAlias = EffectStarted | EffectFinished | DeltaStarted | HiddenDelta | ThinkingDelta | ShownEvent

Observer: TypeAlias = Callable[[Event], None]


@dataclass(eq=False, repr=False, slots=True)
class _Group:
    """The programs of one gather; `after_refusal` when the gathering program had been refused an effect before."""

    parent: "_Strand"
    after_refusal: bool
    answers: list[object]
    left: int
    strands: "list[_Strand]" = field(default_factory=list["_Strand"])
    open: bool = True


@dataclass(eq=False, repr=False, slots=True)
class _Strand:
    """The state of a running strand."""

    path: Strand
    program: Program[Any]
    group: _Group | None = None
    slot: int = 0
    index: int = 0
    refused: bool = False
    pending: PendingEffect | None = None
    inner: _Group | None = None


class Execution(Generic[T]):
    """One run of one program. Runtimes take its pending effects and report answers, chunks and errors."""

    def __init__(
        self,
        program: Program[T],
        ledger: UsageLedger,
        journal: Journal | None = None,
        observers: Iterable[Observer] = (),
        *,
        recorded_only: bool = False,
    ) -> None:
        check_program(program)
        self.ledger = ledger
        self.journal = Journal() if journal is None else journal
        self.done = False
        self.events: deque[ShownEvent] = deque()
        self._observers = tuple(observers)
        self._recorded_only = recorded_only
        self._untaken: list[PendingEffect] = []
        self._waiting: list[PendingEffect] = []
        self._ready: list[tuple[_Strand, object, BaseException | None]] = []  # an empty deque takes 760 bytes
        self._value: object = None
        self._error: BaseException | None = None
        self._missing = ""
        self._has_deferred = False
        self._root = _Strand((), program)
        self._ready.append((self._root, None, None))
        self._pump()

    # Called by runtimes

    def take_pending(self) -> list[PendingEffect]:
        """Return the pending effects that were not taken before."""
        taken, self._untaken = self._untaken, []
        return [pending for pending in taken if pending.active]

    def feed(self, pending: PendingEffect, chunk: Chunk) -> bool:
        """Add a chunk of a `Complete`; False means that the runtime should close the stream."""
        if pending.is_complete:
            return False
        # Nearly all chunks take this short way: an answer has thousands of them.
        if isinstance(chunk, TextDelta) and chunk.text and pending.shows_all:
            pending.chunks.append(chunk)
            if pending.thinks_since is not None:
                pending.measure(chunk, self.ledger.now())
            self._emit(chunk)
            if self.ledger.limits.seconds is None:
                return pending.active
        elif isinstance(chunk, Notice):
            self._emit(chunk)
        elif isinstance(chunk, FailedAttempt):
            self._repeat(pending)
        elif not isinstance(chunk, TextDelta | ThinkingDelta | StreamEnd):
            kind = type(chunk).__name__
            pending.refusal = ProtocolError(
                f"the model yielded an object of type {kind}; expected TextDelta or StreamEnd"
            )
        else:
            known, was_in_delta = len(pending.chunks), pending.in_delta
            show = pending.add(chunk)
            for each in pending.chunks[known:]:
                pending.measure(each, self.ledger.now())
            for each in pending.chunks[known:] if self._observers else ():
                if pending.is_hidden and isinstance(each, TextDelta):
                    self._notify(HiddenDelta(each.text))
                elif isinstance(each, ThinkingDelta) and not pending.is_hidden:
                    self._notify(each)
            if show:
                self._emit(TextDelta(show, isinstance(chunk, TextDelta) and chunk.refuses))
            if pending.partial is not None:
                self._emit(PartialValue(pending.partial))
                pending.partial = None
            if pending.in_delta and not was_in_delta and self._observers:  # after the text before it
                self._notify(DeltaStarted())
        if pending.refusal is None and self.ledger.limits.seconds is not None and not isinstance(chunk, StreamEnd):
            pending.refusal = self.ledger.time_error()
        return not pending.is_complete

    def _repeat(self, pending: PendingEffect) -> None:
        """Charge the failed attempt of a `Complete`; the next one counts as a request of its own."""
        assert pending.reservation is not None
        assert isinstance(pending.sent, Complete)
        try:
            again = self.ledger.repeat_request(pending.reservation, pending.sent.request)
        except TaiwaError as problem:  # of the store that holds its budgets
            again = problem
        if not isinstance(again, Reservation):
            pending.reservation, pending.refusal = None, again
            return
        pending.admit(again)
        if self._observers:
            self._notify(EffectStarted(pending.strand.path, pending.index, pending.effect))

    def complete(self, pending: PendingEffect) -> None:
        """End the stream of a `Complete`; its chunks become the answer."""
        if pending.refusal is not None:
            self.fail(pending, pending.refusal)
            return
        response, rest = pending.finish()
        if rest and pending.active:
            self._emit(TextDelta(rest))
        self.answer(pending, response)

    def answer(self, pending: PendingEffect, answer: object) -> None:
        """Answer a pending effect and resume its program."""
        if pending.active:
            self._settle(pending, answer, None)

    def fail(self, pending: PendingEffect, error: BaseException) -> None:
        """Throw the error of a pending effect into its program."""
        if not pending.active:
            return
        if isinstance(error, ApprovalRequiredError):
            self._defer(pending, error)
            return
        pending.flush()
        answer = collect_response(pending.chunks) if pending.chunks else None
        if answer is None and isinstance(error, ModelError):
            if self._ask_for_less(pending, error):
                return
            if error.may_be_charged:
                held, sent = pending.reservation, pending.sent
                bound = held.most_usage(sent.request) if held is not None and isinstance(sent, Complete) else None
                answer = Response(Message("assistant", ()), "interrupted", max_usage=bound)
        self._settle(pending, answer, error)

    def _defer(self, pending: PendingEffect, error: ApprovalRequiredError) -> None:
        """Leave an effect without an answer; the run ends when no other effect can be answered."""
        pending.deferred = error.calls
        self._has_deferred = True
        self._release(pending)
        self._pump()
        self._end_deferred()

    def _end_deferred(self) -> None:
        if not self._has_deferred:
            return
        waiting = [each.pending for each in _with_children(self._root) if each.pending is not None]
        calls = tuple(call for pending in waiting for call in pending.deferred)
        if calls and not any(pending.active for pending in waiting):
            self._abort(ApprovalRequiredError(approval_message(calls), calls=calls))

    def _ask_for_less(self, pending: PendingEffect, error: ModelError) -> bool:
        """Send a request again whose `max_tokens`, which only a limit set, is more than its server allows."""
        reservation = pending.reservation
        if reservation is None or error.status not in (400, 422) or error.may_be_charged:
            return False
        # No protocol has a code for it: servers name the field or repeat the number in words.
        if not NAMES_TOKENS.search(error.message) and str(reservation.usage.output_tokens) not in error.message:
            return False
        less = self.ledger.shrink(reservation)
        if less is not None:
            pending.admit(less)
            pending.streaming = False
            self._untaken.append(pending)
        return less is not None

    def expire(self) -> None:
        """Fail all pending effects if the time limit is reached."""
        error = self.ledger.time_error()
        if error is not None:
            # Listed first: a failed effect continues its program, which changes the tree.
            for pending in [each.pending for each in _with_children(self._root) if each.pending is not None]:
                self.fail(pending, error)

    def close(self) -> None:
        """Cancel the run; `finally` blocks of the program run."""
        if not self.done:
            self._stop(self._root)
            self.done = True

    def result(self) -> T:
        """Return the program's value.

        Raises:
            BaseException: what the program raised; a `TaiwaError` carries the usage of the run as `spent`.
        """
        if self._error is not None:
            if isinstance(self._error, TaiwaError):
                self._error.spent = self.ledger.spent
            raise self._error
        return self._value  # type: ignore[return-value]  # a value once done

    def run_result(self) -> RunResult[T]:
        """Return the program's value with the usage and the journal of the run.

        Raises:
            BaseException: as `result`.
        """
        return RunResult(self.result(), self.ledger.spent, self.journal)

    # Transitions

    def _emit(self, event: ShownEvent) -> None:
        self.events.append(event)
        self._notify(event)

    def _notify(self, event: Event) -> None:
        try:
            for observe in self._observers:
                observe(event)
        except TaiwaError as problem:
            self._abort(problem)

    def _settle(self, pending: PendingEffect, answer: object, error: BaseException | None) -> None:
        entry = Entry(pending.strand.path, pending.index, pending.effect, answer, error)
        now = self.ledger.now()
        pending.measure(None, now)
        entry.seconds, entry.thought = now - pending.started, pending.thought
        pending.active = False
        pending.strand.pending = None
        if logger.isEnabledFor(logging.INFO):
            _log(entry)
        warning = ""
        try:
            try:
                # Before the program sees the answer: if the process is killed now, it is not paid for again.
                self.journal.append(entry)
            finally:  # the reservation of the call is given back when its cost is stored
                reservation, pending.reservation = pending.reservation, None
                if isinstance(answer, Response):
                    if reservation is None:  # of a handler, or the failed attempt of a call that is not repeated
                        self.ledger.charge(answer)
                    else:
                        warning = self.ledger.settle(reservation, answer)
                elif reservation is not None:
                    self.ledger.cancel(reservation)
        except TaiwaError as problem:
            self._abort(problem)
        else:
            if self._observers:
                self._notify(EffectFinished(entry))
        if warning:
            self._emit(Notice(warning, "warning", LIMIT_NOTICE))
        self._ready.append((pending.strand, answer, error))
        self._pump()
        self._end_deferred()

    def _pump(self) -> None:
        self._run_ready()
        while self._waiting and not self.done and self._start_waiting():
            self._run_ready()

    def _start_waiting(self) -> bool:
        """Start the first effect that waits; return whether it waits no longer."""
        pending = self._waiting[0]
        if not pending.active:
            self._waiting.pop(0)
            return True
        assert isinstance(pending.effect, Complete)
        admitted = self._admit(pending.effect)
        if admitted is None or self.done:
            return False
        self._waiting.pop(0)
        strand = pending.strand
        if isinstance(admitted, Reservation):
            pending.admit(admitted)
            self._send(pending)
        else:
            pending.active, strand.pending = False, None
            self._refuse(strand, pending.index, admitted)
        return True

    def _run_ready(self) -> None:
        # A queue and no recursion: a replay answers thousands of effects at once, which no stack would hold.
        at = 0
        try:
            while at < len(self._ready):
                strand, answer, error = self._ready[at]
                at += 1
                # Another program of its group has failed meanwhile, and the parent gets that error alone.
                if self.done or (strand.group is not None and not strand.group.open):
                    continue
                try:
                    effect = strand.program.send(answer) if error is None else strand.program.throw(error)
                except StopIteration as stop:
                    self._end(strand, stop.value, None)
                except Exception as problem:
                    self._end(strand, None, problem)
                else:
                    self._perform(strand, effect)
        finally:
            del self._ready[:at]
        if self._missing and not self.done:
            self._abort(ReplayError(f"the journal ends before {self._missing}"))

    def _perform(self, strand: _Strand, effect: Effect[Any]) -> None:
        # A notice takes no index: one that is added or removed leaves recorded journals valid.
        if isinstance(effect, Notify):
            if not self._recorded_only:
                self._emit(effect.notice)
            self._ready.append((strand, None, None))
            return
        index = strand.index
        strand.index += 1
        if isinstance(effect, Gather):
            self._gather(strand, index, effect.programs)
            return
        entry = self.journal.find(strand.path, index)
        if entry is not None:
            self._answer_from_journal(strand, entry, effect)
        elif not self._recorded_only:
            self._start(strand, index, effect)
        elif (refusal := self.journal.refusal(strand.path, index)) is not None:
            self._refuse(strand, index, refusal)
        elif not self._missing:  # not answered, because another strand failed
            self._missing = f"{type(effect).__name__} at {_position(strand, index)}"

    def _start(self, strand: _Strand, index: int, effect: Effect[Any]) -> None:
        admitted: Reservation | TaiwaError | None = None
        if isinstance(effect, Complete):
            # First come, first served: small calls would overtake a large one that waits for the budget, for ever.
            admitted = None if self._waiting else self._admit(effect)
        elif isinstance(effect, CallTool):
            admitted = self.ledger.start_tool_call()
        elif self.ledger.limits.seconds is not None:
            admitted = self.ledger.time_error()
        if self.done:
            return
        if isinstance(admitted, TaiwaError):
            self._refuse(strand, index, admitted)
            return
        pending = PendingEffect(strand, index, effect, self.ledger.now())
        strand.pending = pending
        if admitted is not None:
            pending.admit(admitted)
        if isinstance(effect, Complete) and admitted is None:
            self._waiting.append(pending)
        else:
            self._send(pending)

    def _admit(self, effect: Complete) -> Reservation | TaiwaError | None:
        """Return as `UsageLedger.start_request`; end the run if its budgets cannot be read."""
        try:
            return self.ledger.start_request(effect.request)
        except TaiwaError as problem:
            self._abort(problem)
            return None

    def _send(self, pending: PendingEffect) -> None:
        if self._observers:
            self._notify(EffectStarted(pending.strand.path, pending.index, pending.effect))
        self._untaken.append(pending)

    def _refuse(self, strand: _Strand, index: int, refusal: TaiwaError) -> None:
        """Throw the first refusal into the program, which may handle it.

        A program that yields another refused effect, directly or in programs that it gathers afterwards, is ended.
        """
        self.journal.refuse(strand.path, index, refusal)
        top = strand
        while top.group is not None and top.group.after_refusal:
            top = top.group.parent
        # A program that catches errors in a loop would otherwise go on without end at a limit.
        if top.refused:
            self._stop(top)
            self._end(top, None, refusal)
            return
        self._ready.append((strand, None, refusal))
        strand.refused = True
        while strand.group is not None:
            strand = strand.group.parent
            strand.refused = True

    def _answer_from_journal(self, strand: _Strand, entry: Entry, effect: Effect[Any]) -> None:
        if not entry.answers(effect):
            message = f"the journal holds another {type(effect).__name__} at {_position(strand, entry.index)}"
            self._abort(ReplayError(f"{message}; the app, the code or the text before it has changed"))
            return
        if self._recorded_only:
            self._notify(EffectStarted(strand.path, entry.index, effect))
        # Settled entries are on the bill of an earlier turn; those of an interrupted one are on this one's.
        if not entry.settled:
            if isinstance(effect, Complete):
                self.ledger.add(RunUsage(requests=1))
            elif isinstance(effect, CallTool):
                self.ledger.add(RunUsage(tool_calls=1))
            if isinstance(entry.answer, Response):
                self.ledger.charge(entry.answer)
                self._show_recorded(strand, entry, effect)
        error = entry.error if isinstance(entry.error, BaseException) else None
        self._ready.append((strand, entry.answer, error))

    def _show_recorded(self, strand: _Strand, entry: Entry, effect: Effect[Any]) -> None:
        if self._recorded_only or entry.error is not None or not isinstance(entry.answer, Response):
            return
        pending = PendingEffect(strand, entry.index, effect, 0.0)
        pending.begin()
        text = TextDelta(entry.answer.text, entry.answer.stop == "refusal")
        if show := pending.add(text) + pending.finish()[1]:
            self._emit(replace(text, text=show))

    def _gather(self, strand: _Strand, index: int, programs: tuple[Program[Any], ...]) -> None:
        if not programs:
            self._ready.append((strand, (), None))
            return
        group = _Group(strand, strand.refused, [None] * len(programs), len(programs))
        strand.inner = group
        for slot, program in enumerate(programs):
            child = _Strand((*strand.path, index, slot), program, group, slot)
            group.strands.append(child)
            self._ready.append((child, None, None))

    def _abort(self, error: TaiwaError) -> None:
        """End the run by an error that its programs cannot catch, because the journal is no longer complete."""
        if not self.done:
            self._error, self.done = error, True
            self._stop(self._root)

    def _end(self, strand: _Strand, answer: object, error: BaseException | None) -> None:
        group = strand.group
        if group is None:
            self._value, self._error, self.done = answer, error, True
            return
        if error is not None:
            group.open = False
            for other in group.strands:
                if other is not strand:
                    self._stop(other)
            group.parent.inner = None
            self._ready.append((group.parent, None, error))
            return
        group.answers[strand.slot] = answer
        group.left -= 1
        if group.left == 0:
            group.parent.inner = None
            self._ready.append((group.parent, tuple(group.answers), None))

    def _release(self, pending: PendingEffect) -> None:
        """End an effect without an answer; one that streams keeps what it has reserved."""
        pending.active = False
        if (reservation := pending.reservation) is not None:
            pending.reservation = None
            with suppress(TaiwaError):  # a reservation that cannot be given back stays
                if pending.streaming and isinstance(pending.sent, Complete):
                    self.ledger.settle_unknown(reservation, pending.sent.request)
                else:
                    self.ledger.cancel(reservation)

    def _stop(self, strand: _Strand) -> None:
        """Cancel a strand and its children, innermost programs first."""
        strands = _with_children(strand)
        for each in strands:
            if each.pending is not None and each.pending.active:
                self._release(each.pending)
            if each.inner is not None:
                each.inner.open = False
        for each in reversed(strands):
            _close(each.program)


def _with_children(strand: _Strand) -> list[_Strand]:
    """Return a strand and all strands that it gathers at any depth, parents first."""
    strands = [strand]
    for each in strands:
        if each.inner is not None:
            strands += each.inner.strands
    return strands


def _position(strand: _Strand, index: int) -> str:
    return ".".join(map(str, (*strand.path, index)))


def _close(program: Program[Any]) -> None:
    try:
        program.close()
    except RuntimeError as error:
        # A program that yields while it is closed gets no answer; its run has ended all the same.
        if "ignored GeneratorExit" not in str(error):
            raise


def check_program(program: object) -> None:
    """Check that an argument is a program.

    Raises:
        InputError: it is not, for example the function that creates it.
    """
    if type(program) is not GeneratorType and not isinstance(program, Generator):
        name = getattr(program, "__name__", "")
        hint = f"; call it: {name}(…)" if callable(program) and name else ""
        raise InputError(f"expected a program (a generator that yields effects), got {describe(program)}{hint}")


def replay(program: Program[T], journal: Journal, observers: Iterable[Observer] = ()) -> T:
    """Run a program with the recorded answers only, and return its value.

    Raises:
        ReplayError: the program yields another effect than the recorded one.
    """
    return Execution(program, UsageLedger(UsageLimits(None, None)), journal, observers, recorded_only=True).result()


def first_request(program: Program[Any], capabilities: frozenset[Capability]) -> Request:
    """Return the request that a program sends first to a model with these capabilities; nothing is sent.

    Raises:
        InputError: there is none, or what precedes it has an answer that is not known before.
        TaiwaError: as the program before its first request.
    """
    answer: object = None
    while True:
        try:
            effect = program.send(answer)
        except StopIteration:
            raise InputError(
                "there is no request to show: the program ends, or asks the user, before it sends one"
            ) from None
        if isinstance(effect, Complete):
            program.close()
            return effect.request
        if not isinstance(effect, GetCapabilities | Notify):
            program.close()
            raise InputError(
                f"there is no request to show: the program waits for {type(effect).__name__} before it sends one"
            )
        answer = capabilities if isinstance(effect, GetCapabilities) else None
