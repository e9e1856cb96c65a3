"""Guides in plain Python, small enough to read: for learning, for explanations, and as the reference of the mask engine.

`RegexGuide` follows B. Willard and R. Louf, "Efficient Guided Generation for Large Language Models" (2023), section 3: for every
state of the automaton, the tokens that can be read from it and the states to which they lead.

`GrammarGuide` recognises context-free grammars in Lark's notation incrementally. J. Earley, "An Efficient Context-Free Parsing
Algorithm" (1970), with nullable rules advanced when they are predicted, as in J. Aycock and R. N. Horspool, "Practical Earley
Parsing" (2002). There is no lexer: a terminal is an automaton that reads while others read the same bytes, so every division of
a text into terminals is followed at once; Lark's own incremental parser takes whole terminals, and a token may be part of one,
or the end of one and the beginning of the next. A column is never changed after it is made, so states are values, and older ones
can be continued.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from taiwa.constraints.automaton import Automaton, compile_regex, describe_ranges, escape_regex, merge_ranges, reaching
from taiwa.constraints.explain import add_json_position
from taiwa.constraints.guide import (
    LIMIT,
    Coverage,
    Explanation,
    check_unicode,
    fill_mask,
    mask_markdown,
    refusal,
    unexpected,
)
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.extras import missing_extra
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.serialization import Json, value

if TYPE_CHECKING:
    from lark import Lark

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

        Without `write`, the model is called for every token, even if only one is allowed, and only the end is written.
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

        If the bytes are certain and several tokens could begin them, return those of the tokenizer. If the text is open
        after them, leave out the last one, which the tokenizer might join with what follows.
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

    def _repr_markdown_(self) -> str:
        return mask_markdown(self, self.guide.vocabulary)

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
    """The texts of a vocabulary as a trie, in the order of their bytes; tokens with equal bytes share a row."""

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
                continue  # it shares a longer prefix with the last text than could be read
            del path[shared + 1 :]
            for byte in text[shared:]:
                there = step(path[-1], byte)
                if there is None:
                    break
                path.append(there)
            else:
                found.update(dict.fromkeys(tokens, path[-1]))
        return found


token_trie = lru_cache(maxsize=4)(TokenTrie)
"""Return the trie of a vocabulary; cached."""

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

    If every byte that can follow has its own token, there are no dead ends and tokens are looked up on demand. Otherwise all
    of them are looked up at once, and those after which no tokens can finish the text are removed.

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
        """Return the guide of the JSON texts of a schema; `space` is the pattern of white space between JSON tokens.

        Raises:
            InputError: no regular expression can represent the schema; the message gives pointer and keyword.
        """
        return cls(to_regex(schema, space), vocabulary, schema=schema)

    @classmethod
    def of_choice(cls, words: Sequence[str], vocabulary: Vocabulary) -> "RegexGuide":
        """Return the guide of some words.

        Raises:
            InputError: there are none.
            NoValidTokenError: one of them cannot be written, which would change the choice.
        """
        guide = cls(choice_regex(words), vocabulary)
        vocabulary.check_spells(words)
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


Item: TypeAlias = "tuple[int, int, Column]"
"""A rule, how many of its symbols were read, and the column in which it began."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One expansion of a symbol."""

    name: str
    symbols: tuple[str, ...]


MOST_STEPS = 30_000
"""The maximum number of items processed after one byte: in an ambiguous grammar they grow with the square of the length."""


class Column:
    """The items of a position between two bytes; never changed after it is made."""

    __slots__ = ("items", "terminals", "waiting")

    def __init__(self) -> None:
        self.items: set[Item] = set()
        self.waiting: dict[str, list[Item]] = {}
        self.terminals: dict[str, list[Item]] = {}


Thread: TypeAlias = tuple[str, int, Column]
"""A terminal that is being read: its name, the state of its automaton, and the column in which it began."""


@dataclass(frozen=True, eq=False, slots=True)
class EarleyState:
    """After some bytes: the column, if a terminal can end here, and all terminals that are being read."""

    column: Column | None
    threads: tuple[Thread, ...]


class EarleyRules:
    """A grammar whose terminals are automata; rules that cannot be finished are left out. `shown` has the terminals for display."""

    def __init__(
        self,
        start: str,
        rules: Iterable[Rule],
        terminals: Mapping[str, Automaton],
        ignored: Iterable[str],
        shown: Mapping[str, str],
    ) -> None:
        self.shown = shown
        self.terminals = terminals
        self.ignored = tuple(name for name in ignored if name in terminals)
        made = list(rules)
        good = set(terminals)
        while fresh := {rule.name for rule in made if good.issuperset(rule.symbols)} - good:
            good |= fresh
        self.rules = (Rule("", (start,)), *(rule for rule in made if good.issuperset(rule.symbols)))
        self.is_empty = start not in good
        self._of: dict[str, list[int]] = {}
        for number, rule in enumerate(self.rules):
            self._of.setdefault(rule.name, []).append(number)
        self.nullable: set[str] = set()
        while fresh := {rule.name for rule in self.rules if self.nullable.issuperset(rule.symbols)} - self.nullable:
            self.nullable |= fresh

    def begin(self) -> EarleyState:
        """Return the state before the first byte."""
        first = Column()
        self._close(first, [(0, 0, first)])
        return EarleyState(first, self._threads(first))

    def step(self, place: EarleyState, byte: int) -> EarleyState | None:
        """Return the state after one more byte; None if it is not allowed."""
        read: list[Item] = []
        threads: list[Thread] = []
        for name, state, column in place.threads:
            there = self.terminals[name].table[state].get(byte)
            if there is None:
                continue
            if self.terminals[name].moves[there]:
                threads.append((name, there, column))
            if there in self.terminals[name].finals:
                # Ignored text changes nothing: the items before it are those after it.
                if name in self.ignored:
                    read += column.items
                read += ((rule, dot + 1, origin) for rule, dot, origin in column.terminals.get(name, ()))
        if not read:
            return EarleyState(None, tuple(threads)) if threads else None
        column = Column()
        self._close(column, read)
        return EarleyState(column, (*threads, *self._threads(column)))

    def is_end(self, place: EarleyState) -> bool:
        """Return whether a text may end here."""
        return place.column is not None and any(rule == 0 and dot == 1 for rule, dot, _ in place.column.items)

    def _threads(self, column: Column) -> tuple[Thread, ...]:
        return tuple((name, 0, column) for name in dict.fromkeys((*column.terminals, *self.ignored)))

    def _close(self, column: Column, todo: list[Item]) -> None:
        """Predict and complete until nothing is added."""
        steps = 0
        while todo:
            steps += 1
            if steps > MOST_STEPS:
                raise NoValidTokenError(
                    f"the grammar is too ambiguous here: more than {MOST_STEPS:,} steps for one byte"
                )
            item = todo.pop()
            if item in column.items:
                continue
            column.items.add(item)
            number, dot, origin = item
            rule = self.rules[number]
            if dot == len(rule.symbols):
                todo += ((parent, at + 1, began) for parent, at, began in origin.waiting.get(rule.name, ()))
                continue
            symbol = rule.symbols[dot]
            if symbol in self.terminals:
                column.terminals.setdefault(symbol, []).append(item)
                continue
            column.waiting.setdefault(symbol, []).append(item)
            todo += ((each, 0, column) for each in self._of.get(symbol, ()))
            # An empty rule may be complete before its parents wait for it, so it is skipped (Aycock and Horspool).
            if symbol in self.nullable:
                todo.append((number, dot + 1, origin))


MOST_CHARS = 200_000
MOST_SEARCHED = 500
SHOWN = 3
RELATIVE_IMPORT = re.compile(r"^\s*%import\s*\(?\s*\.", re.MULTILINE)
NO_NAMES = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"i?|/(?!/)(?:\\.|[^/\\\n])+/[imslux]*')
DEFINITION = re.compile(r"^[ \t]*[!?]*(\w+)(?:\{[^{}\n]*\})?(?:\.-?\d+)?[ \t]*:", re.MULTILINE)
TO_THE_QUOTE = re.compile(r"""(?<=(["']))\.\*\?\(\?<!\\\\\)\(\\\\\\\\\)\*\?(?=\1)""")
"""Lark's `ESCAPED_STRING` uses look-behind for "up to the closing quote"; an automaton needs none."""


class GrammarGuide(ReadableGuide[EarleyState]):
    """The texts of a context-free grammar, over a vocabulary.

    Every grammar of Lark's Earley parser is read, ambiguous ones too. Terminals are read in every possible way, as by Lark's lexer
    `dynamic_complete`; priorities do not affect what is allowed and are ignored, lazy repetitions equal greedy ones. Files are not
    imported; Lark's own grammars (`%import common.NUMBER`) are.

    If some byte has no token of its own, a text might become impossible to finish: then each token is followed to some end
    of the text before it is allowed, as far as a bounded search goes.

    >>> from taiwa.constraints import Vocabulary
    >>> guide = GrammarGuide('start: "a" start "b" | "c"', Vocabulary([b"a", b"b", b"c", b"<end>"], end=3))
    >>> state = guide.start().advance(0).advance(2)
    >>> guide.next_instruction(state)
    Write(tokens=(1,))

    Raises:
        ConfigError: the extra `constraints` is not installed.
        InputError: it is not a grammar, or one of its terminals cannot be an automaton.
        NoValidTokenError: the vocabulary cannot write a text of the grammar.
    """

    def __init__(self, grammar: str, vocabulary: Vocabulary, *, start: str = "start") -> None:
        super().__init__(vocabulary)
        self.grammar = grammar
        bytes_of = {byte for text in vocabulary.tokens for byte in text}
        self.rules = read_rules(grammar, start, usable=bytes_of)
        if self.rules.is_empty:
            raise NoValidTokenError(
                "no sequence of tokens of this vocabulary writes a text of the grammar", state=start
            )
        used = {byte for terminal in self.rules.terminals.values() for row in terminal.table for byte in row}
        self._is_free = used <= vocabulary.single_bytes

    def begin(self) -> EarleyState:
        """Return the state before the first byte."""
        return self.rules.begin()

    def step(self, place: EarleyState, byte: int) -> EarleyState | None:
        """Return the state after one more byte."""
        return self.rules.step(place, byte)

    def is_end(self, place: EarleyState) -> bool:
        """Return whether a text may end here."""
        return self.rules.is_end(place)

    def bytes_at(self, place: EarleyState) -> Iterator[int]:
        """Yield the bytes that may follow."""
        yield from {byte for name, state, _ in place.threads for byte in self.rules.terminals[name].table[state]}

    def moves(self, place: EarleyState) -> Mapping[int, EarleyState]:
        """Return the next state by allowed token."""
        found = self.reached(place)
        if self._is_free:
            return found
        return {token: there for token, there in found.items() if self._can_end(there)}

    def expected(self, place: EarleyState) -> str:
        """Describe the terminals that may follow or continue."""
        names = dict.fromkeys(
            ("more of " if state else "") + self.rules.shown[name]
            for name, state, _ in place.threads
            if name not in self.rules.ignored
        )
        ending = ["the end"] if self.is_end(place) else []
        return " or ".join((*names, *ending))

    def locate(self, state: ReadableState[EarleyState], explanation: Explanation) -> Explanation:
        """Add the rules that are being read; a dot marks the position of the text."""
        place = state.place
        items = (item for name, _, column in place.threads for item in column.terminals.get(name, []))
        rules = list(dict.fromkeys(self._rule(number, dot) for number, dot, _ in items))
        keyword = "; ".join(rules[:SHOWN]) + ("; …" if len(rules) > SHOWN else "")
        names = sorted(place.column.terminals) if place.column is not None else []
        accepts = (*names, *(["$END"] if self.is_end(place) else []))
        return replace(explanation, keyword=keyword, accepts=() if state.is_ended else accepts)

    def described(self) -> Iterator[str]:
        """Yield the rules one by one, repetitions expanded."""
        yield from (self._rule(number) for number in range(1, len(self.rules.rules)))

    def _rule(self, number: int, dot: int | None = None) -> str:
        rule = self.rules.rules[number]
        words = [self.rules.shown.get(symbol, symbol) for symbol in rule.symbols]
        if dot is not None:
            words.insert(dot, "·")
        return f"{rule.name}: {' '.join(words)}".rstrip()

    def _can_end(self, place: EarleyState) -> bool:
        """Search for tokens that lead to an end of the text; an end that is not found in time is assumed to exist."""
        todo = deque([place])
        for _ in range(MOST_SEARCHED):
            if not todo:
                return False
            here = todo.popleft()
            if self.is_end(here):
                return True
            todo.extend(self.reached(here).values())
        return True


def read_rules(grammar: str, start: str, *, chars: bool = False, usable: set[int] | None = None) -> EarleyRules:
    """Read a Lark grammar; the terminals are automata over bytes (of which only `usable` can be written) or characters.

    Raises:
        ConfigError: the extra `constraints` is not installed.
        InputError: the text is not a grammar, or one of its terminals cannot be an automaton.
    """
    lark = _load_lark(grammar, start)
    shown: dict[str, str] = {}
    terminals: dict[str, Automaton] = {}
    for terminal in lark.terminals:
        name, raw = str(terminal.name), terminal.pattern.value
        shown[name] = repr(raw) if terminal.pattern.type == "str" else f"/{raw}/" if name.startswith("__") else name
        pattern = TO_THE_QUOTE.sub(r"([^\1\\\\\\n]|\\\\[^\\n])*", terminal.pattern.to_regexp())
        try:
            automaton = compile_regex(pattern, chars=chars)
        except InputError as error:
            raise InputError(f"the terminal {name} of the grammar: {error.message}") from None
        writable = automaton if usable is None else automaton.within(usable)
        if writable is not None:
            terminals[name] = writable
    rules = [Rule(str(rule.origin.name), tuple(str(part.name) for part in rule.expansion)) for rule in lark.rules]
    known = set(shown) | {rule.name for rule in rules}
    for symbol in (symbol for rule in rules for symbol in rule.symbols):
        if symbol not in known:
            raise InputError(f"the terminal {symbol} of the grammar has no pattern: it is only declared")
    return EarleyRules(start, rules, terminals, map(str, lark.ignore_tokens), shown)


def _check_templates(grammar: str) -> None:
    """Refuse a template that is used within itself with another template as its argument: Lark would expand it without end."""
    _, *parts = DEFINITION.split(NO_NAMES.sub('""', grammar))
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    uses = [(name, used) for name, body in bodies.items() for used in re.findall(r"(\w+)[ \t]*\{", body)]
    for name, body in bodies.items():
        inner = [used for user, used in uses if user == name]
        if re.search(r"\{[^{}]*\{", body) and any(used in reaching([name], uses) for used in inner):
            raise InputError(
                f"the template {name!r} of the grammar grows without end: it is used in an argument of itself"
            )


def _load_lark(grammar: str, start: str) -> "Lark":
    check_unicode(grammar, "the grammar")
    if len(grammar) > MOST_CHARS:
        raise InputError(f"the grammar has {len(grammar):,} characters; at most {MOST_CHARS:,} are read")
    if RELATIVE_IMPORT.search(grammar):
        raise InputError("the grammar imports a file (%import .name); put its rules into the grammar itself")
    _check_templates(grammar)
    try:
        from lark import Lark
    except ImportError:
        raise missing_extra("a readable guide of a grammar", "constraints") from None
    try:
        return Lark(grammar, start=start, parser="earley", lexer="dynamic")
    except Exception as error:
        raise InputError(f"the grammar cannot be read: {' '.join(str(error).split())}") from error
