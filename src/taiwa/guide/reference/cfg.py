"""`Cfg`: a grammar in Lark's notation, followed byte by byte.

Lark reads the grammar: its rules, templates, repetitions and imports. What a text may go on with is then found by
`taiwa.guide.reference.chart`, because Lark's own incremental parser takes whole terminals, and a token may be a part of one,
or the end of one and the beginning of the next.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from taiwa.guide.protocol import Explanation
from taiwa.guide.reference.automaton import Automaton, compiled
from taiwa.guide.reference.chart import Column, Place, Rule, Rules
from taiwa.guide.reference.guide import Reference
from taiwa.guide.reference.spelling import spelling
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, DeadEndError, InputError, TaiwaError

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["Cfg", "loaded", "terminal_of"]

MOST_CHARS = 200_000
MOST_SEARCHED = 500
SHOWN = 3
RELATIVE_IMPORT = re.compile(r"^\s*%import\s*\(?\s*\.", re.MULTILINE)
TO_THE_QUOTE = re.compile(r"""(?<=(["']))\.\*\?\(\?<!\\\\\)\(\\\\\\\\\)\*\?(?=\1)""")
"""How Lark's `ESCAPED_STRING` says "up to the closing quote" with look-behind; an automaton says it without."""


class Cfg(Reference[Place]):
    """Texts of a context-free grammar, over a vocabulary.

    All grammars that Lark's Earley parser reads, ambiguous ones too. Terminals are read in every way they can be, as by
    Lark's lexer `dynamic_complete`; priorities say nothing about what is allowed, and are not read. Lazy repetitions are as
    any others. Files are not imported; Lark's own grammars (`%import common.NUMBER`) are.

    A vocabulary in which not every byte has a token of its own might leave a text that cannot be finished: so each token is
    followed to some end of the text before it is allowed, as far as a bounded search goes.

    >>> from taiwa.guide import Vocabulary
    >>> guide = Cfg('start: "a" start "b" | "c"', Vocabulary([b"a", b"b", b"c", b"<end>"], end=3))
    >>> state = guide.start().advance(0).advance(2)
    >>> guide.next_instruction(state)
    Write(tokens=(1,))

    Raises:
        ConfigError: the extra `guide` is not installed.
        InputError: this is no grammar, or one of its terminals cannot be an automaton.
        DeadEndError: the vocabulary can write no text of the grammar.
    """

    def __init__(self, grammar: str, vocabulary: Vocabulary, *, start: str = "start") -> None:
        super().__init__(vocabulary)
        self.grammar = grammar
        bytes_of = {byte for text in vocabulary.tokens for byte in text}
        self._shown, self.rules = _read(loaded(grammar, start), start, bytes_of)
        if self.rules.is_empty:
            raise DeadEndError("no sequence of tokens of this vocabulary writes a text of the grammar", state=start)
        used = {byte for terminal in self.rules.terminals.values() for row in terminal.table for byte in row}
        self._is_free = used <= spelling(vocabulary).singles

    def begin(self) -> Place:
        """The place before the first byte."""
        return self.rules.begin()

    def step(self, place: Place, byte: int) -> Place | None:
        """The place after one more byte."""
        return self.rules.step(place, byte)

    def is_end(self, place: Place) -> bool:
        """Say whether a text may end here."""
        return self.rules.is_end(place)

    def bytes_at(self, place: Place) -> Iterator[int]:
        """The bytes that can come next."""
        yield from {byte for name, state, _ in place.threads for byte in self.rules.terminals[name].table[state]}

    def moves(self, place: Place) -> Mapping[int, Place]:
        """Where each token leads that can come next."""
        found = self.reached(place)
        if self._is_free:
            return found
        return {token: there for token, there in found.items() if self._can_end(there)}

    def expected(self, place: Place) -> str:
        """The terminals that can come next, or go on."""
        names = dict.fromkeys(
            ("more of " if state else "") + self._shown[name]
            for name, state, _ in place.threads
            if name not in self.rules.ignored
        )
        ending = ["the end"] if self.is_end(place) else []
        return " or ".join((*names, *ending))

    def locate(self, text: bytes, explanation: Explanation) -> Explanation:
        """Add the rules that are being read: the dot stands where the text does."""
        place: Place | None = self.begin()
        for byte in text:
            place = None if place is None else self.step(place, byte)
        rules = dict.fromkeys(self._dotted(place)) if place is not None else {}
        return replace(explanation, keyword="; ".join(list(rules)[:SHOWN]) + ("; …" if len(rules) > SHOWN else ""))

    def _dotted(self, place: Place) -> Iterator[str]:
        for name, _, column in place.threads:
            yield from (self._rule(number, dot) for number, dot, _ in _items(column, name))

    def described(self) -> Iterator[str]:
        """The rules as they are followed, one by one, repetitions written out."""
        yield from (self._rule(number) for number in range(1, len(self.rules.rules)))

    def _rule(self, number: int, dot: int | None = None) -> str:
        rule = self.rules.rules[number]
        words = [self._shown.get(symbol, symbol) for symbol in rule.symbols]
        if dot is not None:
            words.insert(dot, "·")
        return f"{rule.name}: {' '.join(words)}".rstrip()

    def _can_end(self, place: Place) -> bool:
        """Look for tokens that lead from here to an end of the text; what is not found soon is taken to be there."""
        todo = deque([place])
        for _ in range(MOST_SEARCHED):
            if not todo:
                return False
            here = todo.popleft()
            if self.is_end(here):
                return True
            todo.extend(self.reached(here).values())
        return True


def _items(column: Column, name: str) -> list[tuple[int, int, Column]]:
    return column.terminals.get(name, [])


def _read(lark: "Lark", start: str, usable: set[int]) -> tuple[dict[str, str], Rules]:
    """Take rules and terminals from Lark; with each terminal how a person reads it."""
    shown: dict[str, str] = {}
    terminals: dict[str, Automaton] = {}
    for terminal in lark.terminals:
        name = str(terminal.name)
        pattern = terminal.pattern.to_regexp()
        raw = terminal.pattern.value
        shown[name] = repr(raw) if terminal.pattern.type == "str" else f"/{raw}/" if name.startswith("__") else name
        found = terminal_of(name, pattern).within(usable)
        if found is not None:
            terminals[name] = found
    rules = [Rule(str(rule.origin.name), tuple(str(part.name) for part in rule.expansion)) for rule in lark.rules]
    known = set(shown) | {rule.name for rule in rules}
    for rule in rules:
        for symbol in rule.symbols:
            if symbol not in known:
                raise InputError(f"the terminal {symbol} of the grammar has no text: it is only declared")
    return shown, Rules(start, rules, terminals, map(str, lark.ignore_tokens))


def terminal_of(name: str, pattern: str, *, chars: bool = False) -> Automaton:
    """The automaton of a terminal.

    Raises:
        InputError: there can be none; the message names the terminal.
    """
    try:
        return compiled(TO_THE_QUOTE.sub(r"([^\1\\\\\\n]|\\\\[^\\n])*", pattern), chars=chars)
    except InputError as error:
        raise InputError(f"the terminal {name} of the grammar: {error.message}") from None


def loaded(grammar: str, start: str) -> "Lark":
    """Let Lark read a grammar.

    Raises:
        ConfigError: the extra `guide` is not installed.
        InputError: this is no grammar.
    """
    if len(grammar) > MOST_CHARS:
        raise InputError(f"the grammar has {len(grammar):,} characters; {MOST_CHARS:,} is the most")
    if RELATIVE_IMPORT.search(grammar):
        raise InputError("the grammar imports a file (%import .name): put its rules into the grammar itself")
    try:
        from lark import Lark
    except ImportError:
        raise ConfigError("grammars need an extra: pip install 'taiwa[guide]'") from None
    with _Foreign():
        return Lark(grammar, start=start, parser="earley", lexer="dynamic")
    raise AssertionError  # the guard above always raises


class _Foreign:
    """Whatever Lark raises while it reads a grammar is a fault of the grammar: it names no common class for it."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, TaiwaError):
            words: Any = " ".join(str(error).split())
            raise InputError(f"the grammar cannot be read: {words}") from error
