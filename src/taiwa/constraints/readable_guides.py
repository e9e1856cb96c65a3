"""Guides in plain Python, small enough to read: for learning, for explanations, and as the reference of the mask engine.

`RegexGuide` follows B. Willard and R. Louf, "Efficient Guided Generation for Large Language Models" (2023), section 3: for every
state of the automaton, the tokens that can be read from it and the states to which they lead.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from taiwa.constraints.automaton import Automaton, compile_regex, reaching
from taiwa.constraints.explain import add_json_position
from taiwa.constraints.guide import LIMIT, Coverage, Explanation, check_unicode, fill_mask, refusal, unexpected
from taiwa.constraints.regex_syntax import describe_ranges, merge_ranges
from taiwa.constraints.schema_regex import escape_regex, to_regex
from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.records import Json, value

if TYPE_CHECKING:
    from taiwa.constraints.guide import Mask

P = TypeVar("P")


@value
class Generate:
    """Ask the model for one of these tokens."""

    tokens: tuple[int, ...]


@value
class Write:
    """Append these tokens without running the model: nothing else can follow."""

    tokens: tuple[int, ...]


Instruction: TypeAlias = Generate | Write


class ReadableGuide(ABC, Generic[P]):
    """A guide over a machine with immutable states; subclasses define its moves."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.coverage = Coverage()

    @abstractmethod
    def begin(self) -> P:
        """Return the first state of the machine."""

    @abstractmethod
    def step(self, place: P, byte: int) -> P | None:
        """Return the state after one more byte; None if it is not allowed."""

    @abstractmethod
    def is_end(self, place: P) -> bool:
        """Return whether a text may end here."""

    @abstractmethod
    def bytes_at(self, place: P) -> Iterable[int]:
        """Return the bytes that may follow."""

    @abstractmethod
    def expected(self, place: P) -> str:
        """Describe what may follow."""

    @abstractmethod
    def moves(self, place: P) -> Mapping[int, P]:
        """Return the next state by allowed token from which a text can be finished."""

    def locate(self, state: "ReadableState[P]", explanation: Explanation) -> Explanation:  # noqa: ARG002  (for a subclass)
        """Add what the source says about the position of a state."""
        return explanation

    def start(self) -> "ReadableState[P]":
        """Return the state of the empty text."""
        return ReadableState(self, (), self.begin(), None)

    def reached(self, place: P) -> dict[int, P]:
        """Return the next state by token that the machine can read, whether or not a text can be finished."""
        return token_trie(self.vocabulary).reached(place, self.step)

    def next_instruction(self, state: "ReadableState[P]", *, write: bool = True) -> Instruction:
        """Return the next instruction of a decode loop: generate a token, or write what must follow.

        Without `write`, the model is asked for every token, also where only one is allowed, and only the end is written.
        """
        if write and (forced := state.forced()):
            return Write(forced)
        tokens = state.everything()
        is_end = set(tokens) <= set(self.vocabulary.end)
        return Write(tokens) if len(tokens) == 1 and (write or is_end) else Generate(tokens)

    def next_state(self, state: "ReadableState[P]", token: int) -> "ReadableState[P]":
        """Return the state after one more token.

        Raises:
            InputError: it is not allowed here.
        """
        return state.advance(token)

    def is_final_state(self, state: "ReadableState[P]") -> bool:
        """Return whether the text may end here."""
        return state.is_final

    def accepts(self, text: str | bytes) -> bool:
        """Return whether a whole text is allowed, in any tokenisation."""
        place = self.begin()
        for byte in text.encode() if isinstance(text, str) else text:
            there = self.step(place, byte)
            if there is None:
                return False
            place = there
        return self.is_end(place)


@dataclass(frozen=True)
class ReadableState(Generic[P]):
    """A text so far. Two states are equal if they have the same guide and tokens."""

    guide: ReadableGuide[P]
    tokens: tuple[int, ...]
    place: P = field(compare=False)
    before: "ReadableState[P] | None" = field(compare=False, repr=False)

    @cached_property
    def moves(self) -> Mapping[int, P]:
        """The next state of the machine by token."""
        return {} if self.is_ended else self.guide.moves(self.place)

    @property
    def is_ended(self) -> bool:
        """Whether an end token was taken."""
        return bool(self.tokens) and self.tokens[-1] in self.guide.vocabulary.end

    @property
    def is_final(self) -> bool:
        """Whether the text may end here."""
        return self.guide.is_end(self.place)

    @property
    def is_complete(self) -> bool:
        """Whether only an end token is allowed."""
        return self.is_final and not self.moves and not self.is_ended

    @property
    def is_dead(self) -> bool:
        """Whether no token is allowed although the text may not end here."""
        return not self.is_final and not self.moves

    @property
    def text(self) -> bytes:
        """The bytes so far."""
        return self.guide.vocabulary.decode(self.tokens)

    def everything(self) -> tuple[int, ...]:
        """Return all allowed tokens in order, end tokens included where the text may end."""
        ending = self.guide.vocabulary.end if self.is_final and not self.is_ended else ()
        return tuple(sorted((*self.moves, *ending)))

    def mask(self, out: "Mask") -> None:
        """Write the allowed tokens."""
        fill_mask(out, self.everything())

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """Return the allowed tokens; None if there are more than `limit`."""
        tokens = self.everything()
        return tokens if len(tokens) <= limit else None

    def forced(self) -> tuple[int, ...]:
        """Return the tokens that must follow.

        If the bytes are certain and several tokens could begin them, return those of the tokenizer, without the last of them if what
        follows is open: the tokenizer might join it with that.
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
            if token not in state.moves:  # the tokenizer would write another text
                return
            yield token
            state = state.advance(token)

    def _certain(self) -> tuple[bytes, bool]:
        """Return the bytes that must follow, and whether more may follow them."""
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

    def advance(self, token: int) -> "ReadableState[P]":
        """Return the state after one more token.

        Raises:
            InputError: the token does not exist, or is not allowed here.
        """
        if token in self.moves:
            return ReadableState(self.guide, (*self.tokens, token), self.moves[token], self)
        if token in self.guide.vocabulary.end and self.is_final and not self.is_ended:
            return ReadableState(self.guide, (*self.tokens, token), self.place, self)
        raise InputError(f"token {token} cannot come here: {self._why(token)}")

    def rollback(self, count: int) -> "ReadableState[P]":
        """Return the state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        state = self
        for _ in range(count):
            if state.before is None:
                raise InputError(f"cannot roll back {count} tokens; there are {len(self.tokens)}")
            state = state.before
        return state

    def fork(self) -> "ReadableState[P]":
        """Return this state, which is immutable."""
        return self

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """Return nothing: readable guides name no parts."""
        return ()

    def explain(self, token: int | None = None) -> Explanation:
        """Return where the text stands, and why `token` is not allowed, if it is not."""
        tokens = self.everything()
        here = Explanation(
            expected="nothing: the text has ended" if self.is_ended else self.guide.expected(self.place),
            count=len(tokens),
            examples=self.guide.vocabulary.examples(tokens),
            why="" if token is None or token in tokens else self._why(token),
        )
        return self.guide.locate(self, here)

    def _why(self, token: int) -> str:
        expected = self.guide.expected(self.place)
        if why := refusal(self, self.guide.vocabulary, token):
            return f"{why}; expected: {expected}" if token in self.guide.vocabulary.end and not self.is_ended else why
        place, text = self.place, self.guide.vocabulary.tokens[token]
        for number, byte in enumerate(text):
            there = self.guide.step(place, byte)
            if there is None:
                return f"{unexpected(text, number)}; expected: {self.guide.expected(place)}"
            place = there
        return f"after it, no tokens of this vocabulary can finish the text; expected: {expected}"


class TokenTrie:
    """The texts of a vocabulary as a trie, in the order of their bytes; tokens that write the same stand in one row."""

    __slots__ = ("_rows",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        rows: list[tuple[bytes, int, list[int]]] = []
        before = b""
        for text in sorted(vocabulary.tokens_by_text):
            rows.append((text, common_prefix(before, text), vocabulary.tokens_by_text[text]))
            before = text
        self._rows = tuple(rows)

    def reached(self, place: P, step: Callable[[P, int], P | None]) -> dict[int, P]:
        """Return the next state by token that can be read; `step` returns the state after one byte, or None."""
        found: dict[int, P] = {}
        path = [place]  # the states after each byte of the last text, as far as it could be read
        for text, shared, tokens in self._rows:
            if len(path) <= shared:
                continue  # it shares more with the last text than could be read
            del path[shared + 1 :]
            for byte in text[shared:]:
                there = step(path[-1], byte)
                if there is None:
                    break
                path.append(there)
            else:
                found.update(dict.fromkeys(tokens, path[-1]))
        return found


@lru_cache(maxsize=4)
def token_trie(vocabulary: Vocabulary) -> TokenTrie:
    """Return the trie of a vocabulary; cached."""
    return TokenTrie(vocabulary)


MOST_MOVES = 5_000_000


def choice_regex(words: Sequence[str]) -> str:
    """Return the regular expression of a choice.

    >>> choice_regex(["yes", "no?"])
    'yes|no\\\\?'

    Raises:
        InputError: there are no words.
    """
    if not words:
        raise InputError("a choice needs at least one word")
    for word in words:
        check_unicode(word, f"the word {word!r}")
    return "|".join(map(escape_regex, words))


class RegexGuide(ReadableGuide[int]):
    """The texts that match a regular expression, over a vocabulary; its states are those of the automaton.

    If every byte that can follow has a token of its own, each state can be left and tokens are looked up on demand. Otherwise all of
    them are looked up at once, and those after which no tokens can finish the text are removed.

    >>> from taiwa.constraints import Vocabulary
    >>> guide = RegexGuide("[1-9]", Vocabulary([b"1", b"a", b"<end>"], end=2))
    >>> guide.states_to_token_maps
    {0: {0: 1}}

    Raises:
        InputError: no automaton can represent the pattern, or it would be too large.
        NoValidTokenError: the tokens cannot write a text that matches.
    """

    def __init__(self, pattern: str, vocabulary: Vocabulary, *, schema: Json = None) -> None:
        super().__init__(vocabulary)
        self.pattern = pattern
        self.schema = schema
        self.automaton = compile_regex(pattern)
        self._maps: dict[int, dict[int, int]] = {}
        used = {byte for row in self.automaton.table for byte in row}
        self._is_free = used <= vocabulary.single_bytes
        if not self._is_free:
            self._maps = self._pruned()

    @classmethod
    def of_schema(cls, schema: Json, vocabulary: Vocabulary, space: str = "") -> "RegexGuide":
        """Return the guide of the JSON texts of a schema; `space` is the pattern of white space between their signs.

        Raises:
            InputError: no regular expression can represent the schema; the message gives pointer and keyword.
        """
        return cls(to_regex(schema, space), vocabulary, schema=schema)

    @classmethod
    def of_choice(cls, words: Sequence[str], vocabulary: Vocabulary) -> "RegexGuide":
        """Return the guide of some words.

        Raises:
            InputError: there are none.
            NoValidTokenError: one of them cannot be written, so that the choice would be another one.
        """
        guide = cls(choice_regex(words), vocabulary)
        for word in words:
            if not vocabulary.spells(word.encode()):
                raise NoValidTokenError(
                    f"no sequence of tokens spells {word!r}: drop it, or use a vocabulary that can", state=word
                )
        return guide

    @cached_property
    def chars(self) -> Automaton:
        """The automaton over characters, for drawings."""
        return compile_regex(self.pattern, chars=True)

    @cached_property
    def _drawn(self) -> dict[int, int]:
        """The state of `chars` for each state between two characters; both automata are minimal, so it is unique."""
        drawn, todo = {0: 0}, [0]
        for state in todo:
            for low, _, target in self.chars.moves[drawn[state]]:
                there = self.automaton.walk(chr(low).encode(), state)
                assert there is not None
                if there not in drawn:
                    drawn[there] = target
                    todo.append(there)
        return drawn

    @property
    def states_to_token_maps(self) -> dict[int, dict[int, int]]:
        """For each reachable state, the allowed tokens and the states to which they lead.

        Raises:
            InputError: there are too many.
        """
        moves = self._explore(self.moves, "use a smaller vocabulary, or ask state by state")
        return {state: dict(sorted(row.items())) for state, row in sorted(moves.items()) if row}

    def _explore(self, moves_of: Callable[[int], Mapping[int, int]], hint: str) -> dict[int, Mapping[int, int]]:
        """Return the moves of every state that can be reached."""
        moves: dict[int, Mapping[int, int]] = {}
        todo, count = [0], 0
        for state in todo:
            if state not in moves:
                moves[state] = moves_of(state)
                count += len(moves[state])
                if count > MOST_MOVES:
                    raise InputError(f"more than {MOST_MOVES:,} moves of tokens: {hint}")
                todo += set(moves[state].values())
        return moves

    @property
    def final_states(self) -> frozenset[int]:
        """The states in which a text may end."""
        return self.automaton.finals

    def drawn(self, place: int) -> int | None:
        """Return the state of `chars` for a state; None within a character."""
        return self._drawn.get(place)

    def begin(self) -> int:
        """Return the first state."""
        return 0

    def step(self, place: int, byte: int) -> int | None:
        """Return the state after one more byte."""
        return self.automaton.table[place].get(byte)

    def is_end(self, place: int) -> bool:
        """Return whether a state is final."""
        return place in self.automaton.finals

    def bytes_at(self, place: int) -> Iterator[int]:
        """Yield the bytes that leave a state."""
        yield from self.automaton.table[place]

    def moves(self, place: int) -> Mapping[int, int]:
        """Return the next state by token; looked up once for each state."""
        if place not in self._maps and self._is_free:
            self._maps[place] = self.reached(place)
        return self._maps.get(place, {})

    def expected(self, place: int) -> str:
        """Describe the characters that may follow."""
        there = self._drawn.get(place)
        if there is None:
            return "the rest of a character"
        ranges = merge_ranges((low, high) for low, high, _ in self.chars.moves[there])
        if not ranges:
            return "the end"
        return describe_ranges(ranges) + (", or the end" if self.is_end(place) else "")

    def locate(self, state: "ReadableState[int]", explanation: Explanation) -> Explanation:
        """Add the position in the JSON text, for a guide made from a schema."""
        if self.schema is None:
            return explanation
        return add_json_position(self.schema, state.text, explanation)

    def _pruned(self) -> dict[int, dict[int, int]]:
        """Return the moves of all states without those from which no tokens reach an end."""
        maps = self._explore(self.reached, "the vocabulary is too large for this regex")
        edges = ((state, there) for state, row in maps.items() for there in set(row.values()))
        alive = reaching(filter(self.is_end, maps), edges)
        if 0 not in alive:
            raise NoValidTokenError(
                "no sequence of tokens of this vocabulary writes a text that matches", state=self.pattern
            )
        return {
            state: {token: there for token, there in maps[state].items() if there in alive} for state in sorted(alive)
        }
