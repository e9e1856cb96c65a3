"""Programs played against an oracle: a model whose answers follow from a seed, so that two programs can be compared.

Two runs are the same when they end alike, in the same value and state, and ask and tell the same in the same order, the bytes
of each request included. Times, prices and the cut of chunks are no part of that.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from taiwa.kernel.effects import Abilities, Complete, Effect, Program
from taiwa.kernel.errors import ModelError, TaiwaError
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.ledger import Ledger, Limits
from taiwa.kernel.records import Json, canonical, record
from taiwa.kernel.session import Asked, Event, Session, Wish
from taiwa.kernel.values import Ability, Finished, Note, Request, TextDelta, Usage

__all__ = ["Oracle", "Played", "play"]

T = TypeVar("T")
USAGE = Usage(1, 1)


@dataclass(slots=True)
class Oracle:
    """Answers by seed and request, and by the number of the call where it is `counting`.

    It says one of `words`, or a word of its own where there are none, and one call of `failing` fails (0: none does).
    """

    seed: int = 0
    counting: bool = False
    failing: int = 0
    words: tuple[str, ...] = ()
    abilities: frozenset[Ability] = frozenset()
    asked: int = 0

    def answer(self, request: Request) -> str:
        """Say something.

        Raises:
            ModelError: this is one of the calls that fail.
        """
        self.asked += 1
        spoken = f"{self.seed} {self.asked if self.counting else ''} {request.digest}"
        chance = int.from_bytes(blake2b(spoken.encode(), digest_size=8).digest())
        if self.failing and chance % self.failing == 0:
            raise ModelError("the oracle is silent", request=request.digest)
        chance //= max(self.failing, 1)
        return self.words[chance % len(self.words)] if self.words else f"word {chance % 1000}"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a program: its value, or its error, and what was asked, answered and told, in order."""

    value: Any
    error: TaiwaError | None
    log: tuple[str, ...]
    journal: Journal = field(compare=False, repr=False, default_factory=Journal)

    @property
    def outcome(self) -> str:
        """How it ended, as text that is equal where two endings are."""
        return f"fails: {self.error}" if self.error is not None else f"gives: {canonical(record(self.value)).decode()}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """What the model was asked."""
        return tuple(effect.request for effect in self.journal.requests())


def play(program: Program[T], oracle: Oracle, recorded: Iterable[Entry] = ()) -> Played:
    """Run a program to its end, one wish after the other, in the order in which they were made."""
    log: list[str] = []
    journal = Journal(recorded)
    session = Session(program, Ledger(Limits(None, None)), journal, (lambda event: log.extend(_line(event)),))
    while not session.done:
        for wish in session.take():
            if wish.wanted:
                _perform(session, wish, oracle)
    try:
        return Played(session.result(), None, tuple(log), journal)
    except TaiwaError as error:
        return Played(None, error, tuple(log), journal)


def _perform(session: Session[T], wish: Wish, oracle: Oracle) -> None:
    if isinstance(wish.effect, Abilities):
        session.answer(wish, oracle.abilities)
        return
    assert isinstance(wish.effect, Complete)
    wish.begin()
    try:
        words = oracle.answer(wish.effect.request)
    except ModelError as error:
        session.fail(wish, error)
        return
    session.feed(wish, TextDelta(words))
    session.feed(wish, Finished(usage=USAGE, model="oracle"))
    session.complete(wish)


def _line(event: Event) -> list[str]:
    if isinstance(event, Note):
        return [f"told: {event.text}"]
    if isinstance(event, TextDelta):
        return []
    if isinstance(event, Asked):
        return [f"asked at {_place(event.strand, event.index)}: {_written(event.effect)}"]
    answer = canonical(record(event.entry.answer)).decode()
    return [f"answered at {_place(event.entry.strand, event.entry.index)}: {answer} {event.entry.error or ''}"]


def _place(strand: tuple[int, ...], index: int) -> str:
    return ".".join(map(str, (*strand, index)))


def _written(effect: Effect[Any]) -> str:
    plain: Json = record(effect)
    return canonical(plain).decode()
