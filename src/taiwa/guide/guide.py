"""A reference guide: which tokens may come next so that the text ends as one of a few words.

Small enough to be checked by eye: it is what a faster guide is compared with. A state is the text so far.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args, get_origin

from taiwa.kernel.errors import DeadEndError, InputError
from taiwa.kernel.records import value

__all__ = ["Choice", "Guide", "Logits", "State", "compile", "decode"]

State: TypeAlias = str
Logits: TypeAlias = Callable[[tuple[int, ...]], Sequence[float]]
"""What a model makes of the tokens so far: one number for each token of the vocabulary, shape (V,)."""


@value
class Choice:
    """The answer must be one of these words."""

    options: tuple[str, ...]

    @classmethod
    def of(cls, annotation: Any) -> "Choice":  # noqa: ANN401  (no static type says "a type expression")
        """Read the words of a `Literal`.

        Raises:
            InputError: it is no `Literal` of strings.
        """
        words = get_args(annotation)
        if get_origin(annotation) is not Literal or not all(isinstance(word, str) for word in words):
            raise InputError(f"{annotation!r} is not a Literal of strings")
        return cls(words)


@dataclass(frozen=True, slots=True)
class Guide:
    """A constraint compiled for one vocabulary. No state that it gives out is a dead end."""

    size: int
    end: int
    moves: Mapping[State, Mapping[int, State]]
    finals: frozenset[State]

    @property
    def start(self) -> State:
        """The state before the first token."""
        return ""

    def allowed(self, state: State) -> tuple[int, ...]:
        """The tokens that may come next, in order; the end token among them where the text may end."""
        ending = (self.end,) if self.is_final(state) else ()
        return tuple(sorted((*self._moves(state), *ending)))

    def mask(self, state: State) -> tuple[bool, ...]:
        """Which tokens may come next, shape (V,)."""
        allowed = set(self.allowed(state))
        return tuple(token in allowed for token in range(self.size))

    def forced(self, state: State) -> int | None:
        """The only token that may come next, if there is only one."""
        allowed = self.allowed(state)
        return allowed[0] if len(allowed) == 1 else None

    def advance(self, state: State, token: int) -> State:
        """The state after one more token, which is not the end token.

        Raises:
            InputError: the token may not come here.
        """
        moves = self._moves(state)
        if token not in moves:
            raise InputError(f"token {token} cannot follow {state!r}; allowed: {list(self.allowed(state))[:10]}")
        return moves[token]

    def is_final(self, state: State) -> bool:
        """Say whether the text may end here."""
        return state in self.finals

    def _moves(self, state: State) -> Mapping[int, State]:
        if state not in self.moves:
            raise InputError(f"{state!r} is no state of this guide")
        return self.moves[state]


def compile(constraint: Choice, vocabulary: Sequence[str], end: int) -> Guide:  # noqa: A001  (used as guide.compile)
    """Compile a constraint for a vocabulary: `vocabulary[i]` is the text of token i, `end` the token that ends a text.

    Raises:
        DeadEndError: a word cannot be written with these tokens, so the choice would not be the one that was asked for.
        InputError: there is no word to choose, or `end` is no token.
    """
    if not constraint.options:
        raise InputError("a choice needs at least one word")
    if not 0 <= end < len(vocabulary):
        raise InputError(f"the end token {end} is not among the {len(vocabulary)} tokens of the vocabulary")
    spelled: dict[str, list[int]] = {}
    for token, text in enumerate(vocabulary):
        if text and token != end:
            spelled.setdefault(text, []).append(token)
    longest = max(map(len, spelled), default=0)
    moves: dict[State, dict[int, State]] = {}
    for option in constraint.options:
        for here, there in _ways(option, spelled, longest):
            row = moves.setdefault(option[:here], {})
            row.update(dict.fromkeys(spelled[option[here:there]], option[:there]))
        moves.setdefault(option, {})
    return Guide(len(vocabulary), end, moves, frozenset(constraint.options))


def _ways(option: str, spelled: Mapping[str, list[int]], longest: int) -> Iterator[tuple[int, int]]:
    """Each token's place in any spelling of the option: where it begins and ends."""
    ends: dict[int, list[int]] = {len(option): []}
    for here in reversed(range(len(option))):
        reach = range(here + 1, min(here + longest, len(option)) + 1)
        if places := [there for there in reach if there in ends and option[here:there] in spelled]:
            ends[here] = places
    if 0 not in ends:
        raise DeadEndError(
            f"no sequence of tokens spells {option!r}: drop it, or use a vocabulary that can", state=option
        )
    waiting = {0}
    while waiting:
        here = waiting.pop()
        yield from ((here, there) for there in ends[here])
        waiting.update(ends.pop(here))


def decode(guide: Guide, logits: Logits) -> tuple[int, ...]:
    """Write the most likely text step by step; where only one token is possible the model is not asked.

    Returns the tokens without the end token.

    Raises:
        DeadEndError: the model gives every allowed token minus infinity, or not a number.
        InputError: the logits do not have the shape (V,).
    """
    tokens: list[int] = []
    state = guide.start
    while True:
        token = guide.forced(state)
        if token is None:
            token = _likeliest(guide, state, logits(tuple(tokens)))
        if token == guide.end:
            return tuple(tokens)
        tokens.append(token)
        state = guide.advance(state, token)


def _likeliest(guide: Guide, state: State, scores: Sequence[float]) -> int:
    if len(scores) != guide.size:
        raise InputError(f"{len(scores)} logits for a vocabulary of {guide.size} tokens")
    possible = [token for token in guide.allowed(state) if scores[token] > -math.inf]
    if not possible:
        raise DeadEndError(f"the model rules out every token that may follow {state!r}", state=state)
    return max(possible, key=scores.__getitem__)
