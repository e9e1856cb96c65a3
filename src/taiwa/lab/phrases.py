"""Small programs as values, so that laws can be tried on any of them and a counterexample can be read.

A phrase means a step over a JSON state; an arrow means a function from an answer to such a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.kernel.effects import Complete, Program, Step, bind, gather, perform, tell
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.records import Json, canonical, digest
from taiwa.kernel.values import Request, user

__all__ = [
    "Always",
    "Arrow",
    "Ask",
    "Asking",
    "Catch",
    "Choosing",
    "Fail",
    "Get",
    "Keeping",
    "Phrase",
    "Pure",
    "Put",
    "Tell",
    "Then",
    "Together",
    "arrow_of",
    "get",
    "put",
    "step_of",
]

JsonStep: TypeAlias = Step[Json, Json]


@dataclass(frozen=True, slots=True)
class Pure:
    """Answer, and do nothing."""

    answer: Json


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model; its words are the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell observers something."""

    text: str


@dataclass(frozen=True, slots=True)
class Put:
    """Replace the state."""

    state: Json


@dataclass(frozen=True, slots=True)
class Get:
    """Answer the state."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail."""

    why: str


@dataclass(frozen=True, slots=True)
class Catch:
    """Do something else, from the state before, where the first fails."""

    body: "Phrase"
    instead: "Phrase"


@dataclass(frozen=True, slots=True)
class Together:
    """Do several things side by side from the same state; their answers are the answer, their states are dropped."""

    bodies: tuple["Phrase", ...]


@dataclass(frozen=True, slots=True)
class Then:
    """Do one thing, then what its answer leads to."""

    first: "Phrase"
    arrow: "Arrow"


@dataclass(frozen=True, slots=True)
class Always:
    """Whatever the answer was, do this."""

    phrase: "Phrase"


@dataclass(frozen=True, slots=True)
class Asking:
    """Ask the model about the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Keeping:
    """Make the answer the state, and answer it again."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """Let the answer choose one of these."""

    phrases: tuple["Phrase", ...]


Phrase: TypeAlias = Pure | Ask | Tell | Put | Get | Fail | Catch | Together | Then
Arrow: TypeAlias = Always | Asking | Keeping | Choosing


def get(state: Json) -> Program[tuple[Json, Json]]:
    """The step that answers the state."""
    return state, state
    yield


def put(new: Json) -> JsonStep:
    """The step that replaces the state."""

    def step(_: Json) -> Program[tuple[Json, Json]]:
        return None, new
        yield

    return step


def step_of(phrase: Phrase) -> JsonStep:
    """Give the meaning of a phrase."""
    if isinstance(phrase, Get):
        return get
    if isinstance(phrase, Put):
        return put(phrase.state)
    if isinstance(phrase, Then):
        return bind(step_of(phrase.first), arrow_of(phrase.arrow))
    return _wishing(phrase)


def _wishing(phrase: Pure | Ask | Tell | Fail | Catch | Together) -> JsonStep:
    def step(state: Json) -> Program[tuple[Json, Json]]:
        match phrase:
            case Pure(answer):
                return answer, state
            case Ask(text):
                return (yield from _asked(text)), state
            case Tell(text):
                yield from tell(text)
                return None, state
            case Fail(why):
                raise InputError(why)
            case Together(bodies):
                pairs = yield from gather([step_of(body)(state) for body in bodies])
                return [answer for answer, _ in pairs], state
            case Catch(body, instead):
                try:
                    return (yield from step_of(body)(state))
                except TaiwaError:
                    return (yield from step_of(instead)(state))

    return step


def _asked(text: str) -> Program[Json]:
    response = yield from perform(Complete(Request((user(text),))))
    return response.text


def arrow_of(arrow: Arrow) -> Callable[[Json], JsonStep]:
    """Give the meaning of an arrow."""
    match arrow:
        case Always(phrase):
            return lambda _: step_of(phrase)
        case Asking(text):
            return lambda answer: step_of(Ask(f"{text} {canonical(answer).decode()}"))
        case Keeping():
            return lambda answer: bind(put(answer), lambda _: step_of(Pure(answer)))
        case Choosing(phrases):
            return lambda answer: step_of(phrases[int(digest(answer), 16) % len(phrases)])
