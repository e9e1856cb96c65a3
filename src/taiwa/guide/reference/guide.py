"""What the reference guides share: a machine that reads bytes, and states that are where it stands after some tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from taiwa.guide.protocol import LIMIT, Coverage, Explanation, fill
from taiwa.guide.reference.spelling import spelling
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

if TYPE_CHECKING:
    from taiwa.guide.protocol import Mask

__all__ = ["Generate", "Instruction", "Reference", "ReferenceState", "Write"]

P = TypeVar("P")
EXAMPLES = 8


@value
class Generate:
    """Ask the model for one of these tokens."""

    tokens: tuple[int, ...]


@value
class Write:
    """Write these tokens without asking the model: nothing else can come."""

    tokens: tuple[int, ...]


Instruction: TypeAlias = Generate | Write


class Reference(ABC, Generic[P]):
    """A guide over a machine whose places are values; a subclass says how the machine moves."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.coverage = Coverage()

    @abstractmethod
    def begin(self) -> P:
        """The place before the first byte."""

    @abstractmethod
    def step(self, place: P, byte: int) -> P | None:
        """The place after one more byte, if it can come."""

    @abstractmethod
    def is_end(self, place: P) -> bool:
        """Say whether a text may end here."""

    @abstractmethod
    def bytes_at(self, place: P) -> Iterable[int]:
        """The bytes that can come next."""

    @abstractmethod
    def expected(self, place: P) -> str:
        """What can come next, for people."""

    @abstractmethod
    def moves(self, place: P) -> Mapping[int, P]:
        """Where each token leads that can come next and from which a text can be finished."""

    def locate(self, text: bytes, explanation: Explanation) -> Explanation:  # noqa: ARG002  (for a subclass)
        """Add what the source says about the place after a text."""
        return explanation

    def start(self) -> "ReferenceState[P]":
        """The state of the empty text."""
        return ReferenceState(self, (), self.begin(), None)

    def reached(self, place: P) -> dict[int, P]:
        """Where each token leads that the machine can read, whether or not a text can be finished from there."""
        return spelling(self.vocabulary).reached(place, self.step)

    def next_instruction(self, state: "ReferenceState[P]") -> Instruction:
        """Say what a decode loop does next: ask the model, or write what must come."""
        if forced := state.forced():
            return Write(forced)
        tokens = state.everything()
        return Write(tokens) if len(tokens) == 1 else Generate(tokens)

    def next_state(self, state: "ReferenceState[P]", token: int) -> "ReferenceState[P]":
        """The state after one more token.

        Raises:
            InputError: it may not come here.
        """
        return state.advance(token)

    def is_final_state(self, state: "ReferenceState[P]") -> bool:
        """Say whether the text may end here."""
        return state.is_final

    def accepts(self, text: str | bytes) -> bool:
        """Say whether a whole text is one that the guide can lead to, whatever the tokens."""
        place = self.begin()
        for byte in text.encode() if isinstance(text, str) else text:
            there = self.step(place, byte)
            if there is None:
                return False
            place = there
        return self.is_end(place)


@dataclass(frozen=True)
class ReferenceState(Generic[P]):
    """A text so far. Two states are equal when they are of one guide and have the same tokens."""

    guide: Reference[P]
    tokens: tuple[int, ...]
    place: P = field(compare=False)
    before: "ReferenceState[P] | None" = field(compare=False, repr=False)

    @cached_property
    def moves(self) -> Mapping[int, P]:
        """Where each token leads."""
        return {} if self.is_ended else self.guide.moves(self.place)

    @property
    def is_ended(self) -> bool:
        """Say whether an end token was taken."""
        return bool(self.tokens) and self.tokens[-1] in self.guide.vocabulary.end

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here."""
        return self.guide.is_end(self.place)

    @property
    def is_complete(self) -> bool:
        """Say whether nothing but the end may come."""
        return self.is_final and not self.moves and not self.is_ended

    @property
    def is_dead(self) -> bool:
        """Say whether nothing may come although the text may not end here."""
        return not self.is_final and not self.moves

    @property
    def text(self) -> bytes:
        """What was written so far."""
        return self.guide.vocabulary.decode(self.tokens)

    def everything(self) -> tuple[int, ...]:
        """All tokens that may come next, in order, the end tokens among them where the text may end."""
        ending = self.guide.vocabulary.end if self.is_final and not self.is_ended else ()
        return tuple(sorted((*self.moves, *ending)))

    def mask(self, out: "Mask") -> None:
        """Write which tokens may come next."""
        fill(out, self.everything())

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """The tokens that may come next; None when there are more than `limit`."""
        found = self.everything()
        return found if len(found) <= limit else None

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next.

        Where the bytes are certain and several tokens could begin them, those that the tokenizer would choose; without the
        last of them, if what follows is open: the tokenizer might join it with that.
        """
        if self.is_ended or self.is_final:
            return ()
        if len(self.moves) == 1:
            return tuple(self.moves)
        return tuple(self._chosen()) if self.guide.vocabulary.is_canonical else ()

    def _chosen(self) -> Iterator[int]:
        text, open_end = self._certain()
        try:
            tokens = self.guide.vocabulary.encode(text.decode())
        except (InputError, UnicodeDecodeError):
            return
        state = self
        for token in tokens[:-1] if open_end else tokens:
            if token not in state.moves:  # the tokenizer would write something else than was asked of it
                return
            yield token
            state = state.advance(token)

    def _certain(self) -> tuple[bytes, bool]:
        """The bytes that must come next, and whether something may follow them."""
        place, found = self.place, bytearray()
        while not self.guide.is_end(place):
            options = set(self.guide.bytes_at(place))
            if len(options) != 1:
                return bytes(found), True
            found += bytes(options)
            following = self.guide.step(place, found[-1])
            assert following is not None
            place = following
        return bytes(found), any(True for _ in self.guide.bytes_at(place))

    def advance(self, token: int) -> "ReferenceState[P]":
        """The state after one more token.

        Raises:
            InputError: there is no such token, or it may not come here.
        """
        if token in self.moves:
            return ReferenceState(self.guide, (*self.tokens, token), self.moves[token], self)
        if token in self.guide.vocabulary.end and self.is_final and not self.is_ended:
            return ReferenceState(self.guide, (*self.tokens, token), self.place, self)
        raise InputError(f"token {token} cannot come here: {self._why(token)}")

    def rollback(self, count: int) -> "ReferenceState[P]":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        state = self
        for _ in range(count):
            if state.before is None:
                raise InputError(f"there are {len(self.tokens)} tokens, so {count} cannot be taken back")
            state = state.before
        return state

    def fork(self) -> "ReferenceState[P]":
        """This state: nothing in it can change."""
        return self

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """The reference guides name no parts."""
        return ()

    def explain(self, token: int | None = None) -> Explanation:
        """Say where the text stands, and why `token` may not come, if it may not."""
        tokens = self.everything()
        here = Explanation(
            expected="nothing: the text has ended" if self.is_ended else self.guide.expected(self.place),
            count=len(tokens),
            examples=tuple(map(self.guide.vocabulary.show, _telling(self.guide.vocabulary, tokens))),
            why="" if token is None or token in tokens else self._why(token),
        )
        return self.guide.locate(self.text, here)

    def _why(self, token: int) -> str:
        vocabulary = self.guide.vocabulary
        if not 0 <= token < len(vocabulary):
            return f"the vocabulary has {len(vocabulary)} tokens"
        if self.is_ended:
            return "the text has ended"
        expected = self.guide.expected(self.place)
        if token in vocabulary.end:
            return f"the text cannot end here; expected: {expected}"
        if token in vocabulary.special or not vocabulary.tokens[token]:
            return "it writes nothing"
        place, text = self.place, vocabulary.tokens[token]
        for number, byte in enumerate(text):
            there = self.guide.step(place, byte)
            if there is None:
                read = f"after {_readable(text[:number])}, " if number else ""
                return f"{read}{_readable(text[number:])} is not expected; expected: {self.guide.expected(place)}"
            place = there
        return f"after it, no tokens of this vocabulary can finish the text; expected: {expected}"


def _readable(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))


def _telling(vocabulary: Vocabulary, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """A few tokens that a person can read, from all over the vocabulary, and the end."""
    ends = [token for token in tokens if token in vocabulary.end]
    clear = [
        token
        for token in tokens
        if token not in vocabulary.end and vocabulary.tokens[token].decode("utf-8", "replace").isprintable()
    ]
    room = EXAMPLES - len(ends)
    found = [clear[number * len(clear) // room] for number in range(room)] if len(clear) > room else clear
    return (*found, *ends) or tokens[:EXAMPLES]
