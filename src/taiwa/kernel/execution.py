"""The state machine of one run (sans I/O); events; `replay`, `first_request`."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from taiwa.kernel.effects import (
    CallTool,
    Complete,
    Effect,
    Gather,
    GetCapabilities,
    Notify,
    Program,
    Watcher,
)
from taiwa.kernel.errors import LimitError, ReplayError, TaiwaError
from taiwa.kernel.journal import Entry, Journal, Strand
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Message,
    Notice,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    collect_response,
)
from taiwa.kernel.records import value
from taiwa.kernel.usage_limits import RunUsage, UsageLedger, UsageLimits, max_output_tokens

__all__ = [
    "EffectFinished",
    "EffectStarted",
    "Event",
    "Execution",
    "Observer",
    "PendingEffect",
    "RunResult",
    "first_request",
    "replay",
]


T = TypeVar("T")


class PendingEffect:
    """One effect that a driver has to perform. `wanted` turns false when nobody waits for the answer any more."""

    __slots__ = ("_cut", "_overdue", "_watcher", "begun", "chunks", "effect", "index", "line", "started", "wanted")

    def __init__(self, line: "_Line", index: int, effect: Effect[Any], started: float) -> None:
        self.line = line
        self.index = index
        self.effect = effect
        self.started = started
        self.wanted = True
        self.begun = False
        self.chunks: list[Chunk] = []
        self._watcher: Watcher | None = None
        self._cut: int | None = None
        self._overdue: LimitError | None = None

    def begin(self) -> None:
        """Forget what came of an earlier try."""
        watch = self.effect.watch if isinstance(self.effect, Complete) else None
        self.begun = True
        self.chunks = []
        self._cut = None
        self._watcher = None if watch is None else watch()

    def take(self, chunk: Chunk) -> str:
        """Add a chunk and return what a person may see of it."""
        self.chunks.append(chunk)
        if not isinstance(chunk, TextDelta):
            return ""
        if self._watcher is None:
            return chunk.text
        seen = self._watcher.feed(chunk.text)
        self._cut = seen.cut
        return seen.show

    def end(self) -> tuple[Response, str]:
        """Fold the chunks; return the response and what was held back until now."""
        response = collect_response(self.chunks)
        if self._cut is not None:
            return self._shortened(response, self._cut), ""
        return response, "" if self._watcher is None else self._watcher.close().show

    def _shortened(self, response: Response, cut: int) -> Response:
        kept = Message("assistant", (Text(response.text[:cut]),))
        at_most = None
        if response.usage is None and isinstance(self.effect, Complete):
            at_most = max_output_tokens(self.effect.request, response)
        return Response(kept, "cut", None, response.usage, response.model, response.text[cut:], at_most)

    @property
    def over(self) -> bool:
        """No more chunks are needed."""
        return self._cut is not None or self._overdue is not None or not self.wanted

    @property
    def overdue(self) -> LimitError | None:
        """Set when time ran out in the middle of the answer."""
        return self._overdue

    @overdue.setter
    def overdue(self, error: LimitError | None) -> None:
        self._overdue = error


@value
class EffectStarted:
    """An effect is about to be performed."""

    strand: Strand
    index: int
    effect: Effect[Any]


@value
class EffectFinished:
    """An effect was answered, or failed."""

    entry: Entry


@value
class RunResult(Generic[T]):
    """The end of a streamed run: its value, its bill and its journal."""

    value: T
    spent: RunUsage
    journal: Journal


Event: TypeAlias = EffectStarted | EffectFinished | TextDelta | Notice

Observer: TypeAlias = Callable[[Event], None]


class _Group:
    """The programs of one gather; `late` when the program that gathers them had been refused something before."""

    __slots__ = ("answers", "late", "left", "lines", "open", "parent")

    def __init__(self, parent: "_Line", size: int) -> None:
        self.parent = parent
        self.late = parent.refused
        self.lines: list[_Line] = []
        self.answers: list[object] = [None] * size
        self.left = size
        self.open = True


class _Line:
    """One strand while it runs."""

    __slots__ = ("group", "index", "inner", "path", "program", "refused", "slot", "wish")

    def __init__(self, path: Strand, program: Program[Any], group: _Group | None = None, slot: int = 0) -> None:
        self.path = path
        self.program = program
        self.group = group
        self.slot = slot
        self.index = 0
        self.refused = False
        self.wish: PendingEffect | None = None
        self.inner: _Group | None = None


class Execution(Generic[T]):
    """One run of one program."""

    def __init__(
        self,
        program: Program[T],
        ledger: UsageLedger,
        journal: Journal | None = None,
        observers: Iterable[Observer] = (),
        *,
        recorded_only: bool = False,
    ) -> None:
        self.ledger = ledger
        self.journal = Journal() if journal is None else journal
        self.done = False
        self.events: deque[TextDelta | Notice] = deque()
        self._observers = tuple(observers)
        self._recorded_only = recorded_only
        self._wishes: list[PendingEffect] = []
        self._ready: deque[tuple[_Line, object, BaseException | None]] = deque()
        self._value: object = None
        self._error: BaseException | None = None
        self._missing = ""
        self._root = _Line((), program)
        self._ready.append((self._root, None, None))
        self._pump()

    # What a driver calls

    def take(self) -> list[PendingEffect]:
        """Return the wishes that nobody has taken yet."""
        wishes, self._wishes = self._wishes, []
        return wishes if len(wishes) == 1 and wishes[0].wanted else [wish for wish in wishes if wish.wanted]

    def feed(self, wish: PendingEffect, chunk: Chunk) -> bool:
        """Take a chunk of a `Complete`; False means that the driver should close the stream."""
        if wish.over:
            return False
        show = wish.take(chunk)
        if show:
            self._emit(TextDelta(show))
        if self.ledger.limits.seconds is not None and not isinstance(chunk, StreamEnd):
            wish.overdue = self.ledger.late()
        return not wish.over

    def complete(self, wish: PendingEffect) -> None:
        """The stream of a `Complete` ended; its chunks become the answer."""
        if wish.overdue is not None:
            self.fail(wish, wish.overdue)
            return
        response, held = wish.end()
        if held and wish.wanted:
            self._emit(TextDelta(held))
        self.answer(wish, response)

    def answer(self, wish: PendingEffect, answer: object) -> None:
        """Give the answer of a wish; the program goes on."""
        if not wish.wanted:
            return
        self._settle(wish, answer, None)

    def fail(self, wish: PendingEffect, error: BaseException) -> None:
        """Throw the error of a wish into the program that made it."""
        if not wish.wanted:
            return
        partial = collect_response(wish.chunks) if wish.chunks else None
        self._settle(wish, partial, error)

    def expire(self) -> None:
        """Time is over: fail everything that is still under way."""
        error = self.ledger.late()
        if error is not None:
            for wish in self._under_way(self._root):
                self.fail(wish, error)

    def close(self) -> None:
        """Stop: nobody waits any more; `finally` blocks of the program run."""
        if not self.done:
            self._stop(self._root)
            self.done = True

    def result(self) -> T:
        """Return the program's value.

        Raises:
            BaseException: what the program raised; a `TaiwaError` carries the bill as `spent`.
        """
        if self._error is not None:
            if isinstance(self._error, TaiwaError):
                self._error.spent = self.ledger.spent
            raise self._error
        return self._value  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # a value once done

    # Rules

    def _emit(self, event: TextDelta | Notice) -> None:
        self.events.append(event)
        self._notify(event)

    def _notify(self, event: Event) -> None:
        try:
            for observe in self._observers:
                observe(event)
        except TaiwaError as problem:
            self._abort(problem)

    def _settle(self, wish: PendingEffect, answer: object, error: BaseException | None) -> None:
        entry = Entry(wish.line.path, wish.index, wish.effect, answer, error)
        entry.seconds = self.ledger.now() - wish.started
        if isinstance(answer, Response):
            self.ledger.charge(answer)
        wish.wanted = False
        wish.line.wish = None
        try:
            self.journal.append(entry)
        except TaiwaError as problem:
            self._abort(problem)
        else:
            if self._observers:
                self._notify(EffectFinished(entry))
        self._ready.append((wish.line, answer, error))
        self._pump()

    def _pump(self) -> None:
        ready = self._ready
        while ready:
            line, answer, error = ready.popleft()
            if self.done or (line.group is not None and not line.group.open):
                continue
            try:
                effect = line.program.send(answer) if error is None else line.program.throw(error)
            except StopIteration as stop:
                self._end(line, stop.value, None)
            except Exception as problem:
                self._end(line, None, problem)
            else:
                self._ask(line, effect)
        if self._missing and not self.done:
            self._abort(ReplayError(f"the journal ends before {self._missing}"))

    def _ask(self, line: _Line, effect: Effect[Any]) -> None:
        if isinstance(effect, Notify):
            if not self._recorded_only:
                self._emit(effect.note)
            self._ready.append((line, None, None))
            return
        index = line.index
        line.index += 1
        if isinstance(effect, Gather):
            self._spread(line, index, effect.programs)
            return
        entry = self.journal.find(line.path, index)
        if entry is not None:
            self._recall(line, entry, effect)
        elif self._recorded_only:
            self._unrecorded(line, index, effect)
        else:
            self._wish(line, index, effect)

    def _unrecorded(self, line: _Line, index: int, effect: Effect[Any]) -> None:
        """A replay came to what was refused, or was never answered: because another strand failed, if all is well."""
        refusal = self.journal.refusal(line.path, index)
        if refusal is not None:
            self._refuse(line, index, refusal)
        elif not self._missing:
            self._missing = f"{type(effect).__name__} at {_place(line, index)}"

    def _wish(self, line: _Line, index: int, effect: Effect[Any]) -> None:
        refusal = None
        if isinstance(effect, Complete):
            refusal = self.ledger.refuse_request()
        elif isinstance(effect, CallTool):
            refusal = self.ledger.refuse_tool_call()
        elif self.ledger.limits.seconds is not None:
            refusal = self.ledger.late()
        if refusal is not None:
            self._refuse(line, index, refusal)
            return
        wish = PendingEffect(line, index, effect, self.ledger.now())
        line.wish = wish
        if self._observers:
            self._notify(EffectStarted(line.path, index, effect))
        self._wishes.append(wish)

    def _refuse(self, line: _Line, index: int, refusal: TaiwaError) -> None:
        """The program may answer a first refusal, for instance by a plain word.

        One that asks again, itself or by programs that it gathers afterwards, is ended.
        """
        self.journal.refuse(line.path, index, refusal)
        asking = line
        while asking.group is not None and asking.group.late:
            asking = asking.group.parent
        if asking.refused:
            self._end_early(asking, refusal)
            return
        self._ready.append((line, None, refusal))
        line.refused = True
        while line.group is not None:
            line = line.group.parent
            line.refused = True

    def _recall(self, line: _Line, entry: Entry, effect: Effect[Any]) -> None:
        if not entry.answers(effect):
            message = f"the journal holds another {type(effect).__name__} at {_place(line, entry.index)}"
            self._abort(ReplayError(f"{message}; the app, the code or the text before it has changed"))
            return
        if isinstance(effect, Complete):
            self.ledger.requests += 1
        elif isinstance(effect, CallTool):
            self.ledger.tool_calls += 1
        if isinstance(entry.answer, Response):
            self.ledger.charge(entry.answer)
            self._show_again(line, entry, effect)
        error = entry.error if isinstance(entry.error, BaseException) else None
        self._ready.append((line, entry.answer, error))

    def _show_again(self, line: _Line, entry: Entry, effect: Effect[Any]) -> None:
        if self._recorded_only or entry.error is not None or not isinstance(entry.answer, Response):
            return
        wish = PendingEffect(line, entry.index, effect, 0.0)
        wish.begin()
        show = wish.take(TextDelta(entry.answer.text)) + wish.end()[1]
        if show:
            self._emit(TextDelta(show))

    def _spread(self, line: _Line, index: int, programs: tuple[Program[Any], ...]) -> None:
        if not programs:
            self._ready.append((line, (), None))
            return
        group = _Group(line, len(programs))
        line.inner = group
        for slot, program in enumerate(programs):
            child = _Line((*line.path, index, slot), program, group, slot)
            group.lines.append(child)
            self._ready.append((child, None, None))

    def _end_early(self, line: _Line, error: TaiwaError) -> None:
        self._stop(line)
        self._end(line, None, error)

    def _abort(self, error: TaiwaError) -> None:
        """End the run by what no program of it may catch: nobody could say any more what has happened."""
        if not self.done:
            self._error, self.done = error, True
            self._stop(self._root)

    def _end(self, line: _Line, answer: object, error: BaseException | None) -> None:
        group = line.group
        if group is None:
            self._value, self._error, self.done = answer, error, True
            return
        if error is not None:
            group.open = False
            for other in group.lines:
                if other is not line:
                    self._stop(other)
            group.parent.inner = None
            self._ready.append((group.parent, None, error))
            return
        group.answers[line.slot] = answer
        group.left -= 1
        if group.left == 0:
            group.parent.inner = None
            self._ready.append((group.parent, tuple(group.answers), None))

    def _stop(self, line: _Line) -> None:
        """Nobody waits for a strand and those inside it any more; the innermost programs are closed first."""
        stopped = _inside(line)
        for each in stopped:
            if each.wish is not None and each.wish.wanted:
                each.wish.wanted = False
                if each.wish.begun:
                    self.ledger.charge_unknown()
            if each.inner is not None:
                each.inner.open = False
        for each in reversed(stopped):
            _close(each.program)

    def _under_way(self, line: _Line) -> list[PendingEffect]:
        return [each.wish for each in _inside(line) if each.wish is not None]


def _inside(line: _Line) -> list[_Line]:
    """A strand and all those that it gathers, however deep, each before those inside it."""
    lines = [line]
    for each in lines:
        if each.inner is not None:
            lines += each.inner.lines
    return lines


def _place(line: _Line, index: int) -> str:
    return ".".join(str(step) for step in (*line.path, index))


def _close(program: Program[Any]) -> None:
    try:
        program.close()
    except RuntimeError as error:
        if "ignored GeneratorExit" not in str(error):
            raise


def replay(program: Program[T], journal: Journal) -> T:
    """Return the value the program has under the recorded answers.

    Raises:
        ReplayError: the program asks for something else than was recorded.
    """
    session = Execution(program, UsageLedger(UsageLimits(None, None)), journal, recorded_only=True)
    return session.result()


def first_request(program: Program[Any], capabilities: frozenset[Capability]) -> Request:
    """Give the request that a program sends first to a model with these abilities; nothing is sent.

    Raises:
        TaiwaError: as the program before its first request.
    """
    answer: object = None
    while True:
        effect = program.send(answer)
        if isinstance(effect, Complete):
            program.close()
            return effect.request
        answer = capabilities if isinstance(effect, GetCapabilities) else None
