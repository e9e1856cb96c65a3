"""What a guide is: a constraint compiled for a vocabulary, and the states a text goes through under it.

States are values. `advance` and `rollback` give another state and leave the old one as it was, so a state may be kept,
compared with what follows, and continued in two ways. A guide may let its states share work behind the curtain; `fork`
gives a state that shares nothing and so may be used in another thread.

Masks are packed: bit `token % 32` of word `token // 32` says whether the token may come next; shape ((V+31)//32,), uint32.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask: TypeAlias = NDArray[np.uint32]

__all__ = ["LIMIT", "Clause", "Coverage", "Explanation", "Guide", "State", "UncoveredError", "fill", "words"]

LIMIT = 4096
"""The most tokens that `allowed` lists unless it is told otherwise: above that, the mask is the better form."""


@value(tag="schema-clause")
class Clause:
    """One keyword of a source: the JSON pointer of the schema that holds it, and why it is treated as it is."""

    pointer: str
    keyword: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.keyword}" + (f" ({self.reason})" if self.reason else "")


@value(tag="coverage")
class Coverage:
    """What of a source the guide enforces.

    `relaxed` is enforced in part or not at all, so the answer must be checked for it afterwards; `unsupported` is what a
    strict compilation refuses; `ignored` are keywords to which JSON Schema gives no meaning. Of a regex, a grammar or a
    choice everything is enforced.
    """

    enforced: tuple[Clause, ...] = ()
    relaxed: tuple[Clause, ...] = ()
    unsupported: tuple[Clause, ...] = ()
    ignored: tuple[Clause, ...] = ()

    @property
    def whole(self) -> bool:
        """Say whether a text that the guide let through needs no check."""
        return not self.relaxed and not self.unsupported


class UncoveredError(InputError, tag="unsupported-constraint"):
    """A strict compilation met what cannot be enforced; `clauses` has one line for each such keyword."""

    details: ClassVar[tuple[str, ...]] = ("clauses",)

    def __init__(self, message: str, *, clauses: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.clauses = clauses


@value(tag="explanation")
class Explanation:
    """Where a text stands under its constraint. Advisory: for people, never for masks.

    `pointer` names the place in the JSON that is being written, `keyword` and `expected` what the source wants there. `count`
    tokens may come next, `examples` are some of them, and `why` says what is wrong with the token that was asked about.
    """

    pointer: str = ""
    keyword: str = ""
    expected: str = ""
    count: int = 0
    examples: tuple[str, ...] = ()
    why: str = ""


@runtime_checkable
class State(Protocol):
    """A text so far under a guide; an immutable value."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that led here."""
        ...

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here."""
        ...

    @property
    def is_complete(self) -> bool:
        """Say whether nothing but the end may come: a decode loop need not ask the model."""
        ...

    @property
    def is_ended(self) -> bool:
        """Say whether an end token was taken; no token may follow."""
        ...

    @property
    def is_dead(self) -> bool:
        """Say whether no token may come next although the text may not end here."""
        ...

    def mask(self, out: "Mask") -> None:
        """Write which tokens may come next, the end tokens among them where the text may end; shape ((V+31)//32,)."""
        ...

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """The tokens that may come next, in order; None when there are more than `limit`."""
        ...

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next and that the tokenizer itself would choose; empty where it is free, or ended."""
        ...

    def advance(self, token: int) -> "State":
        """The state after one more token.

        Raises:
            InputError: there is no such token, or it may not come here.
            DeadEndError: the constraint is too complex to go on.
        """
        ...

    def rollback(self, count: int) -> "State":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        ...

    def fork(self) -> "State":
        """The same state, sharing nothing with this one."""
        ...

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """The named parts of the text that are complete, in the order they were written."""
        ...

    def explain(self, token: int | None = None) -> Explanation:
        """Say where the text stands, and why `token` may not come, if it may not."""
        ...


@runtime_checkable
class Guide(Protocol):
    """A constraint compiled for one vocabulary; immutable, and cheap to start from."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens it speaks about."""
        ...

    @property
    def coverage(self) -> Coverage:
        """What of the source it enforces."""
        ...

    def start(self) -> State:
        """The state of the empty text."""
        ...


def words(vocabulary: Vocabulary) -> int:
    """How many 32-bit words a mask has."""
    return (len(vocabulary) + 31) // 32


def fill(out: "Mask", tokens: Iterable[int]) -> None:
    """Write a mask from token ids: how a guide that knows its tokens one by one fulfils `State.mask`."""
    out[:] = 0
    bits: dict[int, int] = {}
    for token in tokens:
        bits[token >> 5] = bits.get(token >> 5, 0) | 1 << (token & 31)
    for word, setting in bits.items():
        out[word] = setting
