"""Small programs as values, and an oracle: a model whose answers follow from a seed.

A term denotes a step over a JSON state; an arrow denotes a function from an answer to such a step. Two runs of a program
are equal when they end alike, with the same value and state, and yield the same requests and notices in the same order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, TypeVar

from taiwa.kernel.effects import Complete, GetCapabilities, Program, Step, bind, gather, notify, perform
from taiwa.kernel.errors import InputError, ModelError, TaiwaError
from taiwa.kernel.execution import EffectStarted, Event, Execution, PendingEffect
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.messages import Capability, Notice, Request, StreamEnd, TextDelta, ThinkingDelta, Usage, user
from taiwa.kernel.records import Json, canonical, digest, record
from taiwa.kernel.usage_limits import UsageLedger, UsageLimits

JsonStep: TypeAlias = Step[Json, Json]


class Pure(NamedTuple):
    """Return an answer without an effect."""

    answer: Json


class Ask(NamedTuple):
    """Send a request to the model; the text of the response is the answer."""

    text: str


class Notify(NamedTuple):
    """Send a notice to the observers."""

    text: str


class Put(NamedTuple):
    """Replace the state."""

    state: Json


class Get(NamedTuple):
    """Return the state as the answer."""


class Fail(NamedTuple):
    """Raise an `InputError`."""

    message: str


class Catch(NamedTuple):
    """Run `instead` from the state before if `body` fails."""

    body: "ProgramTerm"
    instead: "ProgramTerm"


class Parallel(NamedTuple):
    """Run several terms in parallel from the same state; return the list of answers, discard their states."""

    bodies: tuple["ProgramTerm", ...]


class Then(NamedTuple):
    """Run a term, then the step that an arrow makes of its answer."""

    first: "ProgramTerm"
    arrow: "Arrow"


class Always(NamedTuple):
    """Run the same term for every answer."""

    term: "ProgramTerm"


class CompleteAbout(NamedTuple):
    """Send a request that contains the answer."""

    text: str


class PutAnswer(NamedTuple):
    """Store the answer as the state and return it."""


class ChooseByAnswer(NamedTuple):
    """Select one of several terms by the digest of the answer."""

    terms: tuple["ProgramTerm", ...]


ProgramTerm: TypeAlias = Pure | Ask | Notify | Put | Get | Fail | Catch | Parallel | Then
Arrow: TypeAlias = Always | CompleteAbout | PutAnswer | ChooseByAnswer


def step_of(term: ProgramTerm) -> JsonStep:
    """Return the step that a term denotes."""

    def step(state: Json) -> Program[tuple[Json, Json]]:
        match term:
            case Pure(answer):
                return answer, state
            case Ask(text):
                response = yield from perform(Complete(Request((user(text),))))
                return response.text, state
            case Notify(text):
                yield from notify(text)
                return None, state
            case Put(new):
                return None, new
            case Get():
                return state, state
            case Fail(message):
                raise InputError(message)
            case Parallel(bodies):
                pairs = yield from gather([step_of(body)(state) for body in bodies])
                return [answer for answer, _ in pairs], state
            case Catch(body, instead):
                try:
                    return (yield from step_of(body)(state))
                except TaiwaError:
                    return (yield from step_of(instead)(state))
            case Then(first, arrow):
                return (yield from bind(step_of(first), arrow_of(arrow))(state))

    return step


get = step_of(Get())
"""The step that returns the state."""


def put(new: Json) -> JsonStep:
    """Return the step that replaces the state."""
    return step_of(Put(new))


def arrow_of(arrow: Arrow) -> Callable[[Json], JsonStep]:
    """Return the function that an arrow denotes."""
    match arrow:
        case Always(term):
            return lambda _: step_of(term)
        case CompleteAbout(text):
            return lambda answer: step_of(Ask(f"{text} {canonical(answer).decode()}"))
        case PutAnswer():
            return lambda answer: bind(put(answer), lambda _: step_of(Pure(answer)))
        case ChooseByAnswer(terms):
            return lambda answer: step_of(terms[int(digest(answer), 16) % len(terms)])


T = TypeVar("T")
USAGE = Usage(1, 1)


@dataclass(slots=True)
class Oracle:
    """A model whose answer is a function of seed and request, and of the number of the call if `counting`.

    It answers with one of `words`, or with a generated word if there are none. One in `failing` calls fails (0: none).
    """

    seed: int = 0
    counting: bool = False
    failing: int = 0
    words: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset()
    asked: int = 0

    def answer(self, request: Request) -> str:
        """Return the answer to a request.

        Raises:
            ModelError: this call is one of those that fail.
        """
        self.asked += 1
        key = f"{self.seed} {self.asked if self.counting else ''} {request.digest}"
        chance = int.from_bytes(blake2b(key.encode(), digest_size=8).digest())
        if self.failing and chance % self.failing == 0:
            raise ModelError("the oracle failed", request=request.digest)
        chance //= max(self.failing, 1)
        return self.words[chance % len(self.words)] if self.words else f"word {chance % 1000}"


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The result of a program: its value or error, and the log of effects, answers and notices in order."""

    value: Any
    error: TaiwaError | None
    log: tuple[str, ...]
    journal: Journal = field(compare=False, repr=False, default_factory=Journal)

    @property
    def outcome(self) -> str:
        """The value or error as text, equal for equal results."""
        return f"fails: {self.error}" if self.error is not None else f"gives: {canonical(record(self.value)).decode()}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests that were sent to the model."""
        return tuple(effect.request for effect in self.journal.requests())


def run_program(program: Program[T], oracle: Oracle, recorded: Iterable[Entry] = ()) -> ProgramRun:
    """Run a program to its end, one effect after the other, in the order in which they were yielded."""
    log: list[str] = []
    journal = Journal(recorded)
    session = Execution(
        program, UsageLedger(UsageLimits(None, None)), journal, (lambda event: log.extend(_log_lines(event)),)
    )
    while not session.done:
        for wish in session.take_pending():
            if wish.active:
                _perform(session, wish, oracle)
    try:
        return ProgramRun(session.result(), None, tuple(log), journal)
    except TaiwaError as error:
        return ProgramRun(None, error, tuple(log), journal)


def _perform(session: Execution[T], wish: PendingEffect, oracle: Oracle) -> None:
    if isinstance(wish.effect, GetCapabilities):
        session.answer(wish, oracle.capabilities)
        return
    assert isinstance(wish.effect, Complete)
    wish.begin()
    try:
        text = oracle.answer(wish.effect.request)
    except ModelError as error:
        session.fail(wish, error)
        return
    session.feed(wish, TextDelta(text))
    session.feed(wish, StreamEnd(usage=USAGE, model="oracle"))
    session.complete(wish)


def _log_lines(event: Event) -> list[str]:
    if isinstance(event, Notice):
        return [f"notice: {event.text}"]
    if isinstance(event, (TextDelta, ThinkingDelta)):
        return []
    if isinstance(event, EffectStarted):
        return [f"effect at {_position(event.strand, event.index)}: {canonical(record(event.effect)).decode()}"]
    answer = canonical(record(event.entry.answer)).decode()
    return [f"answer at {_position(event.entry.strand, event.entry.index)}: {answer} {event.entry.error or ''}"]


def _position(strand: tuple[int, ...], index: int) -> str:
    return ".".join(map(str, (*strand, index)))
