"""The guide of `solve`: numbers of a calculation are copied, formulas are spelled with elements, calls are whole.

It holds nothing that the words of an answer may say. In a call of the calculator stand only numbers of the question, of what
the answer says before, and a few that belong to no question (12 months, 1000 grams); so does the number in `the answer is N`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from taiwa.constraints.guide import LIMIT, Coverage, Explanation, empty_mask, fill_mask, mask_tokens
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError
from taiwa.models.builtin.figures import CONSTANTS, LONGEST, Figures, figures
from taiwa.models.builtin.places import Place, after, key

if TYPE_CHECKING:
    from taiwa.constraints.guide import Mask

__all__ = ["CopyGuide", "CopyState", "copying"]

DIGITS = "0123456789."
RUN = frozenset("0123456789.,")
NOTHING = Figures()
COMMON = Figures().plus(CONSTANTS)


class _Branch:
    """Where tokens that begin alike go on; `here` are those that end here."""

    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.below: dict[str, _Branch] = {}
        self.here: list[int] = []


class _Table:
    """The tokens of a vocabulary as a tree of their bytes, and the masks of places, made when they are first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tree = _Branch()
        self.signs: dict[str, list[int]] = {}
        self._masks: dict[Place, Mask] = {}
        for token, written in enumerate(vocabulary.tokens):
            if token not in vocabulary.special and written:
                self._plant(token, written.decode("latin-1"))

    def mask(self, place: Place) -> "Mask":
        """What may follow a place, but for digits of a number that is copied."""
        found = self._masks.get(place)
        if found is None:
            tokens = sorted(self._fitting(self.tree, place))
            if place.is_final:
                tokens += self.vocabulary.end
            found = empty_mask(len(self.vocabulary))
            fill_mask(found, tokens)
            self._masks[place] = found
        return found

    def _plant(self, token: int, written: str) -> None:
        branch = self.tree
        for sign in written:
            branch = branch.below.setdefault(sign, _Branch())
        branch.here.append(token)
        if len(written) == 1:
            self.signs.setdefault(written, []).append(token)

    def _fitting(self, branch: _Branch, place: Place) -> Iterator[int]:
        yield from branch.here
        for sign, below in branch.below.items():
            there = after(place, sign, NOTHING)
            if there is not None:
                yield from self._fitting(below, there)


@lru_cache(4)
def _table(vocabulary: Vocabulary) -> _Table:
    return _Table(vocabulary)


@dataclass(frozen=True, slots=True)
class _Known:
    """The numbers that may be written: those of `all` in a calculation; as the answer, those of results where there are some."""

    all: Figures
    results: Figures = NOTHING

    def at(self, place: Place) -> Figures:
        """Those that may be written at a place."""
        return self.results if place.mode == "answer" and self.results.whole else self.all

    def plus(self, run: str, *, is_result: bool) -> "_Known":
        """These and a number that was written."""
        numbers = figures(run)
        return _Known(self.all.plus(numbers), self.results.plus(numbers | {"1"}) if is_result else self.results)


@dataclass(frozen=True, slots=True)
class CopyGuide:
    """What may be written as an answer to one question; see `taiwa.constraints.Guide`.

    `given` bytes of it are there already. Where they end in a result, a new line follows, so that no digit is put to it.
    """

    vocabulary: Vocabulary
    tools: tuple[str, ...]
    known: _Known = field(repr=False)
    given: int = 0
    spliced: bool = False
    coverage: Coverage = field(default=Coverage())

    def start(self) -> "CopyState":
        """The state of the empty text."""
        return CopyState(self, (), Place(self.tools), self.known)


def copying(question: str, tools: Iterable[str], vocabulary: Vocabulary, begun: str = "") -> CopyGuide:
    """The guide for a question; `tools` are those whose calls may be written, and `begun` is how the answer begins."""
    known = _Known(COMMON.plus(figures(question)))
    given = len(begun.encode("utf-8", "replace"))
    return CopyGuide(vocabulary, tuple(sorted(tools)), known, given, ">>" in begun.rpartition("\n")[2])


@dataclass(frozen=True, slots=True)
class CopyState:
    """An answer so far of `size` bytes; see `taiwa.constraints.GuideState`.

    `run` is a number that was begun in words, which is known once it ends; `is_result` says whether it stands in a result.
    """

    guide: CopyGuide
    tokens: tuple[int, ...]
    place: Place
    known: _Known = field(repr=False)
    run: str = ""
    size: int = 0
    is_result: bool = False
    before: "CopyState | None" = field(default=None, repr=False, compare=False)
    is_ended: bool = False

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here."""
        return self.is_ended or (self.place.is_final and (self._is_whole() or self._is_stopped()))

    @property
    def is_complete(self) -> bool:
        """Say whether nothing but the end may come: behind words, more words may."""
        return False

    @property
    def is_dead(self) -> bool:
        """Say whether no token may come next although the text may not end here."""
        return not self.is_final and self.allowed(1) == ()

    def mask(self, out: "Mask") -> None:
        """Write which tokens may come next."""
        if self.is_ended:
            out[:] = 0
            return
        table, place = _table(self.guide.vocabulary), self.place
        if self._is_whole():
            out[:] = table.mask(key(place))
        elif self._is_stopped():
            out[:] = table.mask(Place(place.tools, barred=True, fresh=False))
        else:
            out[:] = 0
        if place.mode == "answer" or (place.mode == "sum" and place.want != "sign"):
            for token in self._digits(table):
                out[token >> 5] |= 1 << (token & 31)

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """The tokens that may come next, in order; None when there are more than `limit`."""
        out = empty_mask(len(self.guide.vocabulary))
        self.mask(out)
        found = mask_tokens(out, limit)
        return None if found is None else tuple(found.tolist())

    def forced(self) -> tuple[int, ...]:
        """The rest of the name of a tool that no other name begins like."""
        place = self.place
        if place.mode != "name" or self.is_ended:
            return ()
        fitting = [tool for tool in place.tools if f"{tool}:".startswith(place.word)]
        if len(fitting) != 1 or place.word == f"{fitting[0]}:":
            return ()
        return self.guide.vocabulary.encode(f"{fitting[0]}:"[len(place.word) :])

    def advance(self, token: int) -> "CopyState":
        """The state after one more token.

        Raises:
            InputError: there is no such token, or it may not come here.
        """
        vocabulary = self.guide.vocabulary
        if self.is_ended or not 0 <= token < len(vocabulary):
            raise InputError("the text has ended" if self.is_ended else f"there is no token {token}")
        if token in vocabulary.end and self.is_final:
            return replace(self, tokens=(*self.tokens, token), before=self, is_ended=True)
        if token in vocabulary.special:
            raise InputError(self._refusal(token))
        state = self
        for sign in vocabulary.tokens[token].decode("latin-1"):
            there = state.behind(sign)
            if there is None:
                raise InputError(self._refusal(token))
            state = there
        return replace(state, tokens=(*self.tokens, token), before=self)

    def behind(self, sign: str) -> "CopyState | None":
        """The state behind one more byte, which is not yet a token; None where it may not come."""
        guide, known, run = self.guide, self.known, self.run
        place = after(self.place, sign, known.at(self.place))
        if place is None:
            return None
        if sign in RUN and self.place.mode != "sum":
            run += sign
        elif run:
            known, run = known.plus(run, is_result=self.is_result), ""
        size = self.size + 1
        if guide.spliced and size == guide.given:
            place = replace(place, held=True)
        elif len(run) > LONGEST and size > guide.given and place.mode == "words":
            place = replace(place, barred=True)
        is_result = sign != "\n" and (self.is_result or self.place.mode == "close")
        return CopyState(guide, self.tokens, place, known, run, size, is_result, self.before)

    def rollback(self, count: int) -> "CopyState":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        if not 0 <= count <= len(self.tokens):
            raise InputError(f"{count} tokens cannot be taken back: there are {len(self.tokens)}")
        state = self
        for _ in range(count):
            assert state.before is not None, "each token has a state before it"
            state = state.before
        return state

    def fork(self) -> "CopyState":
        """The same state: it shares nothing that changes."""
        return self

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """No part of the text has a name."""
        return ()

    def explain(self, token: int | None = None) -> Explanation:
        """Say where the text stands, and why `token` may not come, if it may not."""
        tokens = self.allowed(len(self.guide.vocabulary)) or ()
        why = "" if token is None or token in tokens else self._refusal(token)
        return Explanation(expected=_EXPECTED[self.place.mode], count=len(tokens), why=why)

    def _is_whole(self) -> bool:
        """Whether a number that was begun may end."""
        place = self.place
        numeric = place.mode in ("sum", "answer") and place.word[:1] in DIGITS and place.word
        return not numeric or place.word in self.known.at(place).whole

    def _is_stopped(self) -> bool:
        """Whether a number ends in what may be a full stop as well as a decimal point."""
        place = self.place
        return place.mode == "answer" and place.word.endswith(".") and place.word[:-1] in self.known.at(place).whole

    def _digits(self, table: _Table) -> Iterator[int]:
        word = self.place.word
        if word and word[0] not in DIGITS:
            return
        begun = self.known.at(self.place).begun
        for sign in DIGITS:
            if word + sign in begun:
                yield from table.signs.get(sign, ())

    def _refusal(self, token: int) -> str:
        return f"{self.guide.vocabulary.show(token)} may not come here: {_EXPECTED[self.place.mode]}"


_EXPECTED = {
    "words": "words, or a call of a tool",
    "open": "the second < of a call",
    "name": "the name of a tool that may be called",
    "sum": "a calculation with numbers of the question or of the answer so far",
    "formula": "a chemical formula",
    "equation": "a chemical equation",
    "close": "the second > of a call",
    "answer": "a number of the question or of the answer so far",
}
