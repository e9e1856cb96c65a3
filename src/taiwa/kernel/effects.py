"""Effects and programs: a program is a generator that yields effects and is sent their answers.

`return` is the unit of the monad and `yield from` is its bind, so a dialogue reads as sequential code and does no I/O.
A `Step` is a program over a state; `unit`, `bind`, `map` and `join` obey the monad laws, which the tests check.
The set of effects is open: subclass `Effect`, make it a `@value`, and give a runtime a handler for it.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Found,
    Message,
    Notice,
    Request,
    Response,
    TextDelta,
    ToolResult,
    assistant,
    user,
)
from taiwa.kernel.serialization import Json, value

R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")


class Effect(Generic[R]):
    """A request to the runtime; its answer has type R. `journaled` effects are recorded and not performed again on replay."""

    __slots__ = ()
    journaled: ClassVar[bool] = True
    unhandled: ClassVar[str] = "pass the runtime `handlers={...}`"
    """What to do if a runtime has no handler."""


Program: TypeAlias = Generator[Effect[Any], Any, R]


@value(tag="watch-result")
class WatchResult:
    """The result of a watcher: the text to show now, the length at which to cut the answer, or None, whether the state delta is
    being written, which is not shown, and the value of the answer so far if it has changed, or None.
    """

    show: str = ""
    cut: int | None = None
    in_delta: bool = False
    partial: Json = None


class Watcher(Protocol):
    """Filters an answer while it streams: decides what the user sees of it and may end it early."""

    def feed(self, text: str) -> WatchResult:
        """Process the next text of the answer."""

    def close(self) -> WatchResult:
        """Return the text that was held back at the end of the answer."""


class HideText:
    """The watcher that shows no text; what the model thinks is shown."""

    __slots__ = ()

    def feed(self, text: str) -> WatchResult:  # noqa: ARG002  (a watcher's signature)
        """Show nothing."""
        return WatchResult()

    def close(self) -> WatchResult:
        """Show nothing."""
        return WatchResult()


class HideOutput(HideText):
    """The watcher that shows nothing, for answers that only the program reads."""

    __slots__ = ()
    hides: ClassVar[bool] = True


def is_hidden(watch: Callable[[], Watcher] | None) -> bool:
    """Return whether the watchers that a function makes show nothing of an answer."""
    return getattr(watch, "hides", False)


Role: TypeAlias = Literal["", "judge", "rewrite", "summarize"]
"""What a call of the model is for: the answer, or to judge what the user wants, to write queries, or to summarise."""


@value(tag="complete")
class Complete(Effect[Response]):
    """Call the model. Without a watcher all text is shown as it arrives; the watcher is not part of the request."""

    request: Request
    watch: Callable[[], Watcher] | None = field(default=None, compare=False, repr=False)
    role: Role = field(default="", compare=False)
    shows: bool = field(default=False, compare=False)
    """Whether the user of a turn sees the text, if a program of the turn calls the model."""


@value(tag="call-tool")
class CallTool(Effect[ToolResult]):
    """Call a tool by name."""

    name: str
    arguments: Mapping[str, Json]


@value(tag="retrieve")
class Retrieve(Effect[Found]):
    """Find the k passages that fit the query best, and measure the evidence on it before it is answered.

    `history` counts too if the retriever is a `ContextualRetriever`.
    """

    query: str
    k: int = 5
    history: tuple[Message, ...] = ()


@value(tag="notify")
class Notify(Effect[None]):
    """Send a notice, or text, to the observers; costs nothing and is not recorded."""

    journaled: ClassVar[bool] = False
    notice: Notice | TextDelta


@value(tag="get-capabilities")
class GetCapabilities(Effect[frozenset[Capability]]):
    """Get the capabilities of the server of the model."""


@value(tag="gather")
class Gather(Effect[tuple[Any, ...]]):
    """Run programs concurrently; `gather` is its typed form."""

    journaled: ClassVar[bool] = False
    programs: tuple[Program[Any], ...] = field(compare=False)


def perform(effect: Effect[R]) -> Program[R]:
    """Yield an effect and return its answer, with its type."""
    answer = yield effect
    return cast(R, answer)


def notify(text: str, *, code: str = "", warning: bool = False) -> Program[None]:
    """Send a notice to the observers."""
    return perform(Notify(Notice(text, "warning" if warning else "note", code)))


GO_ON = "Go on with your answer exactly where it ends. Repeat nothing of it."


def complete_or_downgrade(request: Request, watch: Callable[[], Watcher] | None = None) -> Program[Response]:
    """Complete a request, without its constraint if the server cannot enforce it, and with a last message that asks to go on if it
    cannot prefill an answer.

    The caller checks the answer in either case.
    """
    try:
        return (yield from perform(Complete(request, watch)))
    except UnsupportedError as error:
        if request.prefix and error.capability == "prefix":
            yield from notify(f"the model is asked to go on: {error.message}", code="downgrade")
            messages = (*request.messages, assistant(request.prefix.rstrip()), user(GO_ON))
            return (yield from complete_or_downgrade(replace(request, messages=messages, prefix=""), watch))
        if request.constraint is None or error.capability not in {"json_schema", "regex", "grammar"}:
            raise
        yield from notify(f"the answer is checked against its schema afterwards: {error.message}", code="downgrade")
        return (yield from perform(Complete(replace(request, constraint=None), watch)))


def gather(programs: Iterable[Program[R]]) -> Program[tuple[R, ...]]:
    """Run programs concurrently under one shared ledger; answers come in the order of the programs.

    When one fails, the others are stopped and its error is raised here.
    """
    return cast("tuple[R, ...]", (yield from perform(Gather(tuple(programs)))))


def by_role(role: Role, program: Program[R]) -> Program[R]:
    """Run a program whose requests are for a purpose."""
    marked = program_with(
        lambda effect: replace(effect, role=role) if isinstance(effect, Complete) else effect, program
    )
    return (yield from marked)


def program_with(change: Callable[[Effect[Any]], Effect[Any]], program: Program[R]) -> Program[R]:
    """Run a program with each of its effects changed, those within `gather` too."""
    return (yield from _Changed(change, program))


@dataclass(frozen=True, slots=True)
class _Changed(Generator[Effect[Any], Any, R]):
    change: Callable[[Effect[Any]], Effect[Any]]
    program: Program[R]

    def send(self, answer: Any) -> Effect[Any]:  # noqa: ANN401  (the answer of any effect)
        return self._changed(self.program.send(answer))

    def throw(self, *error: Any) -> Effect[Any]:  # noqa: ANN401  (as a generator's)
        return self._changed(self.program.throw(*error))

    def _changed(self, effect: Effect[Any]) -> Effect[Any]:
        if isinstance(effect, Gather):
            return Gather(tuple(program_with(self.change, each) for each in effect.programs))
        return self.change(effect)


Step: TypeAlias = Callable[[S], Program[tuple[A, S]]]
"""A program over a state: `State -> Program of (A, State)`."""


def unit(answer: A) -> Step[S, A]:
    """Make a step that answers and leaves the state unchanged."""

    def step(state: S) -> Program[tuple[A, S]]:
        return answer, state
        yield

    return step


def bind(first: Step[S, A], then: Callable[[A], Step[S, B]]) -> Step[S, B]:
    """Run a step, then the step that `then` returns for its answer."""

    def step(state: S) -> Program[tuple[B, S]]:
        answer, after = yield from first(state)
        return (yield from then(answer)(after))

    return step


def map(first: Step[S, A], change: Callable[[A], B]) -> Step[S, B]:
    """Apply a function to the answer of a step."""

    def step(state: S) -> Program[tuple[B, S]]:
        answer, after = yield from first(state)
        return change(answer), after

    return step


def join(nested: Step[S, Step[S, A]]) -> Step[S, A]:
    """Run a step whose answer is a step, then run that step."""

    def step(state: S) -> Program[tuple[A, S]]:
        inner, after = yield from nested(state)
        return (yield from inner(after))

    return step
