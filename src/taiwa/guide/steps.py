"""A text under a guide, token by token: what `taiwa explain` tells."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taiwa.guide.protocol import Explanation, Guide, State
from taiwa.kernel.errors import DeadEndError, InputError

if TYPE_CHECKING:
    from taiwa.guide.vocabulary import Vocabulary

__all__ = ["Step", "Walk", "walked"]

MOST_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class Step:
    """One place of a text: what may come there, and the token that came.

    `token` is None at the last place. `ways` is how the place is called, where it has a name; `forced` says that the token
    was the only one, or the one that had to be written; `why` what is wrong with it, where it cannot come.
    """

    text: bytes
    token: int | None
    told: Explanation
    place: str = ""
    forced: bool = False
    final: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """The places of a text, the first one before its first token."""

    steps: tuple[Step, ...]

    @property
    def accepted(self) -> bool:
        """Say whether the text may end where it ends."""
        return not self.steps[-1].why and self.steps[-1].final

    @property
    def refused(self) -> Step | None:
        """The place at which the text leaves what is allowed."""
        return self.steps[-1] if self.steps[-1].why else None


def walked(guide: Guide, text: str | None) -> Walk:
    """Follow a text through a guide as far as it goes; without a text, look at the start alone.

    Raises:
        InputError: the vocabulary cannot write the text, or it has too many tokens.
    """
    tokens = guide.vocabulary.encode(text) if text else ()
    if len(tokens) > MOST_TOKENS:
        raise InputError(f"the text has {len(tokens):,} tokens; {MOST_TOKENS:,} is the most that is explained")
    return Walk(tuple(_steps(guide.start(), tokens, guide.vocabulary)))


def _steps(state: State, tokens: tuple[int, ...], vocabulary: "Vocabulary") -> Iterator[Step]:
    certain = 0
    for number, token in enumerate(tokens):
        text = vocabulary.decode(state.tokens)
        told = state.explain(token)
        certain = max(certain, number + len(_common(state.forced(), tokens[number:])))
        try:
            there = state.advance(token)
        except (InputError, DeadEndError) as error:
            yield Step(text, token, told, _place(state), final=state.is_final, why=told.why or error.message)
            return
        yield Step(text, token, told, _place(state), number < certain or told.count == 1, state.is_final)
        state = there
    yield Step(vocabulary.decode(state.tokens), None, state.explain(), _place(state), final=state.is_final)


def _common(forced: tuple[int, ...], tokens: tuple[int, ...]) -> tuple[int, ...]:
    for number, (one, other) in enumerate(zip(forced, tokens, strict=False)):
        if one != other:
            return forced[:number]
    return forced[: len(tokens)]


def _place(state: State) -> str:
    """The number of the state, where the guide is an automaton."""
    place = getattr(state, "place", None)
    return str(place) if isinstance(place, int) else ""
