"""`Regex`: a regular expression, or what can be written as one, as an automaton whose moves are tokens.

B. Willard and R. Louf, "Efficient Guided Generation for Large Language Models" (2023), section 3: for every state of the
automaton, the tokens that can be read from it and the states that they lead to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from taiwa.guide.protocol import Explanation
from taiwa.guide.reference.automaton import Automaton, compiled
from taiwa.guide.reference.charset import joined, named
from taiwa.guide.reference.guide import Reference
from taiwa.guide.reference.schema import to_regex
from taiwa.guide.reference.spelling import spelling
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import DeadEndError, InputError
from taiwa.kernel.records import Json

__all__ = ["Regex", "alternatives"]

MOST_MOVES = 5_000_000


def alternatives(words: Sequence[str]) -> str:
    """The regular expression of a choice.

    >>> alternatives(["yes", "no?"])
    'yes|no\\\\?'

    Raises:
        InputError: there is nothing to choose.
    """
    if not words:
        raise InputError("a choice needs at least one word")
    return "|".join(re.sub(r"[\\^$.|?*+()\[\]{}]", r"\\\g<0>", word) for word in words)


class Regex(Reference[int]):
    """Texts that match a regular expression, over a vocabulary; its places are the states of the automaton.

    Where every byte that can come has a token of its own, each state can be left and tokens are looked up when they are asked
    for. Otherwise all of them are looked up at once, and those that no tokens can finish are dropped.

    >>> from taiwa.guide import Vocabulary
    >>> guide = Regex("[1-9]", Vocabulary([b"1", b"a", b"<end>"], end=2))
    >>> guide.states_to_token_maps
    {0: {0: 1}}

    Raises:
        InputError: this is no pattern for an automaton, or it would be too large.
        DeadEndError: these tokens can write no text that matches.
    """

    def __init__(self, pattern: str, vocabulary: Vocabulary, *, schema: Json = None) -> None:
        super().__init__(vocabulary)
        self.pattern = pattern
        self.schema = schema
        self.automaton = compiled(pattern)
        self._maps: dict[int, dict[int, int]] = {}
        used = {byte for row in self.automaton.table for byte in row}
        self._is_free = used <= spelling(vocabulary).singles
        if not self._is_free:
            self._maps = self._pruned()

    @classmethod
    def of_schema(cls, schema: Json, vocabulary: Vocabulary, space: str = "") -> "Regex":
        """The JSON texts of a schema; `space` is the pattern of what may stand between their signs.

        Raises:
            InputError: the schema asks for something that no regular expression can say; pointer and keyword are named.
        """
        return cls(to_regex(schema, space), vocabulary, schema=schema)

    @classmethod
    def of_choice(cls, words: Sequence[str], vocabulary: Vocabulary) -> "Regex":
        """One of some words.

        Raises:
            InputError: there are none.
            DeadEndError: one of them cannot be written, so the choice would not be the one that was asked for.
        """
        guide = cls(alternatives(words), vocabulary)
        for word in words:
            if not guide.is_written(word):
                raise DeadEndError(
                    f"no sequence of tokens spells {word!r}: drop it, or use a vocabulary that can", state=word
                )
        return guide

    @cached_property
    def chars(self) -> Automaton:
        """The automaton over characters: what people draw."""
        return compiled(self.pattern, chars=True)

    @cached_property
    def _drawn(self) -> dict[int, int]:
        """The state of `chars` for each state between two characters: both are the minimum, so there is just one."""
        found, todo = {0: 0}, [0]
        for state in todo:
            for low, _, target in self.chars.moves[found[state]]:
                there = self.automaton.walk(chr(low).encode(), state)
                assert there is not None
                if there not in found:
                    found[there] = target
                    todo.append(there)
        return found

    @property
    def states_to_token_maps(self) -> dict[int, dict[int, int]]:
        """For each state that can be reached, the tokens that may come and the states they lead to.

        Raises:
            InputError: there would be too many.
        """
        found: dict[int, dict[int, int]] = {}
        todo, count = [0], 0
        for state in todo:
            if state not in found:
                moves = self.moves(state)
                count += len(moves)
                if count > MOST_MOVES:
                    raise InputError(
                        f"more than {MOST_MOVES:,} moves of tokens: use a smaller vocabulary, or ask state by state"
                    )
                found[state] = dict(sorted(moves.items()))
                todo += moves.values()
        return {state: row for state, row in sorted(found.items()) if row}

    @property
    def final_states(self) -> frozenset[int]:
        """The states in which a text may end."""
        return self.automaton.finals

    def drawn(self, place: int) -> int | None:
        """The state of `chars` that a state is; None within a character."""
        return self._drawn.get(place)

    def is_written(self, text: str) -> bool:
        """Say whether tokens of the vocabulary can write a whole text, one way or another."""
        wanted = text.encode()
        ways: dict[int, int] = {0: 0}
        for here in range(len(wanted)):
            if here in ways:
                for token, state in self.moves(ways[here]).items():
                    written = self.vocabulary.tokens[token]
                    if wanted.startswith(written, here):
                        ways[here + len(written)] = state
        return ways.get(len(wanted)) in self.final_states

    def begin(self) -> int:
        """The first state."""
        return 0

    def step(self, place: int, byte: int) -> int | None:
        """The state after one more byte."""
        return self.automaton.table[place].get(byte)

    def is_end(self, place: int) -> bool:
        """Say whether a state is final."""
        return place in self.automaton.finals

    def bytes_at(self, place: int) -> Iterator[int]:
        """The bytes that leave a state."""
        yield from self.automaton.table[place]

    def moves(self, place: int) -> Mapping[int, int]:
        """Where each token leads; looked up once for each state."""
        if place not in self._maps and self._is_free:
            self._maps[place] = self.reached(place)
        return self._maps.get(place, {})

    def expected(self, place: int) -> str:
        """The characters that can come next."""
        there = self._drawn.get(place)
        if there is None:
            return "the rest of a character"
        ranges = joined((low, high) for low, high, _ in self.chars.moves[there])
        if not ranges:
            return "the end"
        return named(ranges) + (", or the end" if self.is_end(place) else "")

    def locate(self, text: bytes, explanation: Explanation) -> Explanation:
        """Add where in the JSON text it stands, for a guide that was made from a schema."""
        if self.schema is None:
            return explanation
        from taiwa.guide.position import placed

        return placed(self.schema, text, explanation)

    def _pruned(self) -> dict[int, dict[int, int]]:
        """The moves of all states, less those from which no tokens reach an end."""
        maps: dict[int, dict[int, int]] = {}
        back: dict[int, set[int]] = {}
        todo, count = [0], 0
        for state in todo:
            if state in maps:
                continue
            maps[state] = self.reached(state)
            count += len(maps[state])
            if count > MOST_MOVES:
                raise InputError(
                    f"more than {MOST_MOVES:,} moves of tokens: the vocabulary is too large for this regex"
                )
            for there in set(maps[state].values()):
                back.setdefault(there, set()).add(state)
                todo.append(there)
        alive = {state for state in maps if self.is_end(state)}
        todo = list(alive)
        while todo:
            fresh = back.get(todo.pop(), set()) - alive
            alive |= fresh
            todo += fresh
        if 0 not in alive:
            raise DeadEndError(
                "no sequence of tokens of this vocabulary writes a text that matches", state=self.pattern
            )
        return {
            state: {token: there for token, there in maps[state].items() if there in alive} for state in sorted(alive)
        }
