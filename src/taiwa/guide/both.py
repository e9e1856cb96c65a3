"""Several guides on one text: what may come next must be allowed by each of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from taiwa.guide.bits import allocate, indices
from taiwa.guide.protocol import LIMIT, Coverage, Explanation, Guide, State
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.guide.protocol import Mask

__all__ = ["both"]


def both(*guides: Guide) -> Guide:
    """The guide of all texts that every one of some guides lets through; one guide alone stays as it is.

    Raises:
        InputError: there is none, or they speak of different tokens.
    """
    if not guides:
        raise InputError("there are no guides to be joined")
    if any(each.vocabulary != guides[0].vocabulary for each in guides[1:]):
        raise InputError("guides for different vocabularies cannot be joined")
    return guides[0] if len(guides) == 1 else _Joined(guides)


@dataclass(frozen=True, slots=True)
class _Joined:
    guides: tuple[Guide, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens it speaks about."""
        return self.guides[0].vocabulary

    @property
    def coverage(self) -> Coverage:
        """What of their sources the guides enforce, together."""
        told = [each.coverage for each in self.guides]
        return Coverage(
            tuple(chain.from_iterable(each.enforced for each in told)),
            tuple(chain.from_iterable(each.relaxed for each in told)),
            tuple(chain.from_iterable(each.unsupported for each in told)),
            tuple(chain.from_iterable(each.ignored for each in told)),
        )

    def start(self) -> "_JoinedState":
        """The state of the empty text."""
        return _JoinedState(self, tuple(each.start() for each in self.guides))


@dataclass(frozen=True, slots=True)
class _JoinedState:
    guide: _Joined
    states: tuple[State, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that led here."""
        return self.states[0].tokens

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here."""
        return all(each.is_final for each in self.states)

    @property
    def is_complete(self) -> bool:
        """Say whether nothing but the end may come."""
        if not self.is_final or self.is_ended:
            return False
        if any(each.is_complete for each in self.states):
            return True
        ends = self.guide.vocabulary.end
        return self.allowed(len(ends)) == tuple(sorted(ends))

    @property
    def is_ended(self) -> bool:
        """Say whether an end token was taken."""
        return self.states[0].is_ended

    @property
    def is_dead(self) -> bool:
        """Say whether no token may come next although the text may not end here."""
        if self.is_ended or self.is_final:
            return False
        return any(each.is_dead for each in self.states) or self.allowed(1) == ()

    def mask(self, out: "Mask") -> None:
        """Write which tokens may come next."""
        self.states[0].mask(out)
        other = allocate(len(self.guide.vocabulary))
        for each in self.states[1:]:
            each.mask(other)
            out &= other

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """The tokens that may come next, in order; None when there are more than `limit`."""
        out = allocate(len(self.guide.vocabulary))
        self.mask(out)
        found = indices(out, limit)
        return None if found is None else tuple(found.tolist())

    def forced(self) -> tuple[int, ...]:
        """What one of the guides forces, as far as all of them let it through."""
        longest = max((each.forced() for each in self.states), key=len)
        state: State = self
        for place, token in enumerate(longest):
            try:
                state = state.advance(token)
            except InputError:
                return longest[:place]
        return longest

    def advance(self, token: int) -> "_JoinedState":
        """The state after one more token.

        Raises:
            InputError: there is no such token, or one of the guides does not let it through.
            DeadEndError: a constraint is too complex to go on.
        """
        return self._with(each.advance(token) for each in self.states)

    def rollback(self, count: int) -> "_JoinedState":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        return self._with(each.rollback(count) for each in self.states)

    def fork(self) -> "_JoinedState":
        """The same state, sharing nothing with this one."""
        return self._with(each.fork() for each in self.states)

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """The named parts of the text that are complete."""
        return tuple(chain.from_iterable(each.captures() for each in self.states))

    def explain(self, token: int | None = None) -> Explanation:
        """What the guide says that does not let the token through; where none is asked about, the first one."""
        told = [each.explain(token) for each in self.states]
        return next((each for each in told if each.why), told[0])

    def _with(self, states: Iterable[State]) -> "_JoinedState":
        return _JoinedState(self.guide, tuple(states))
