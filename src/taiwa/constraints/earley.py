"""Context-free grammars: incremental Earley recognition, and `GrammarGuide` for grammars in Lark's notation.

J. Earley, "An Efficient Context-Free Parsing Algorithm" (1970), with nullable rules advanced when they are predicted, as in
J. Aycock and R. N. Horspool, "Practical Earley Parsing" (2002). There is no lexer: a terminal is an automaton that reads while
others read the same bytes, so every division of a text into terminals is followed at once; Lark's own incremental parser takes
whole terminals, and a token may be part of one, or the end of one and the beginning of the next. A column is never changed after
it is made, so states are values, and older ones can be continued.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from taiwa.constraints.automaton import Automaton, compile_regex, reaching
from taiwa.constraints.guide import Explanation, check_unicode
from taiwa.constraints.readable_guides import ReadableGuide, ReadableState
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError, NoValidTokenError

if TYPE_CHECKING:
    from lark import Lark

Item: TypeAlias = "tuple[int, int, Column]"
"""A rule, how many of its symbols were read, and the column in which it began."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One expansion of a symbol."""

    name: str
    symbols: tuple[str, ...]


MOST_STEPS = 30_000
"""The most items that are looked at after one byte: in an ambiguous grammar they grow with the square of the text."""


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

    If not every byte has a token of its own, a text might become impossible to finish: so each token is followed to some end of the
    text before it is allowed, as far as a bounded search goes.

    >>> from taiwa.constraints import Vocabulary
    >>> guide = GrammarGuide('start: "a" start "b" | "c"', Vocabulary([b"a", b"b", b"c", b"<end>"], end=3))
    >>> state = guide.start().advance(0).advance(2)
    >>> guide.next_instruction(state)
    Write(tokens=(1,))

    Raises:
        ConfigError: the extra `constraints` is not installed.
        InputError: it is not a grammar, or one of its terminals cannot be an automaton.
        DeadEndError: the vocabulary cannot write a text of the grammar.
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
        rules = list(dict.fromkeys(self._dotted(state.place)))
        keyword = "; ".join(rules[:SHOWN]) + ("; …" if len(rules) > SHOWN else "")
        return replace(explanation, keyword=keyword, accepts=() if state.is_ended else self.accepts_next(state.place))

    def accepts_next(self, place: EarleyState) -> tuple[str, ...]:
        """Return the terminals that may begin here by name, and `$END` where the text may end."""
        names = sorted(place.column.terminals) if place.column is not None else []
        return (*names, *(["$END"] if self.is_end(place) else []))

    def _dotted(self, place: EarleyState) -> Iterator[str]:
        for name, _, column in place.threads:
            yield from (self._rule(number, dot) for number, dot, _ in column.terminals.get(name, []))

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
    """Refuse a template that is used within itself with another one as its argument: Lark would expand it without end."""
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
        raise ConfigError("grammars require an extra: pip install 'taiwa[constraints]'") from None
    try:
        return Lark(grammar, start=start, parser="earley", lexer="dynamic")
    except Exception as error:
        raise InputError(f"the grammar cannot be read: {' '.join(str(error).split())}") from error
