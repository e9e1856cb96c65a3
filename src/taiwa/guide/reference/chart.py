"""Incremental recognition after Earley: from a grammar, and the bytes so far, to what may come.

J. Earley, "An Efficient Context-Free Parsing Algorithm" (1970), with nullable rules advanced when they are predicted, as in
J. Aycock and R. N. Horspool, "Practical Earley Parsing" (2002). There is no lexer before it: a terminal is an automaton that
reads while others read the same bytes, so every division of a text into terminals is followed at once. A column is never
changed after it is made, so places are values, and older ones can be gone on from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.guide.reference.automaton import Automaton

__all__ = ["Column", "Place", "Rule", "Rules", "Thread"]

Item: TypeAlias = "tuple[int, int, Column]"
"""A rule, how many of its symbols were read, and the column in which it began."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to write a symbol."""

    name: str
    symbols: tuple[str, ...]


class Column:
    """What the rules make of a place between two bytes; made once, by `Rules.column`."""

    __slots__ = ("items", "terminals", "waiting")

    def __init__(self) -> None:
        self.items: set[Item] = set()
        self.waiting: dict[str, list[Item]] = {}
        self.terminals: dict[str, list[Item]] = {}


Thread: TypeAlias = tuple[str, int, Column]
"""A terminal that is being read: its name, the state of its automaton, and the column in which it began."""


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """After some bytes: the column, if a terminal can end here, and all terminals that are being read."""

    column: Column | None
    threads: tuple[Thread, ...]


class Rules:
    """A grammar whose terminals are automata. Rules that nothing can finish are left out."""

    def __init__(
        self, start: str, rules: Iterable[Rule], terminals: Mapping[str, Automaton], ignored: Iterable[str]
    ) -> None:
        self.terminals = terminals
        self.ignored = tuple(name for name in ignored if name in terminals)
        made = list(rules)
        good = self._finishing(made)
        self.rules = (Rule("", (start,)), *(rule for rule in made if good.issuperset(rule.symbols)))
        self.is_empty = start not in good
        self._of: dict[str, list[int]] = {}
        for number, rule in enumerate(self.rules):
            self._of.setdefault(rule.name, []).append(number)
        self._nullable = self._vanishing()

    def _finishing(self, rules: list[Rule]) -> set[str]:
        good = set(self.terminals)
        while fresh := {rule.name for rule in rules if good.issuperset(rule.symbols)} - good:
            good |= fresh
        return good

    def _vanishing(self) -> set[str]:
        found: set[str] = set()
        while fresh := {rule.name for rule in self.rules if found.issuperset(rule.symbols)} - found:
            found |= fresh
        return found

    def begin(self) -> Place:
        """The place before the first byte."""
        first = Column()
        self._close(first, [(0, 0, first)])
        return Place(first, self._threads(first))

    def step(self, place: Place, byte: int) -> Place | None:
        """The place after one more byte, if it can come."""
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
            return Place(None, tuple(threads)) if threads else None
        column = Column()
        self._close(column, read)
        return Place(column, (*threads, *self._threads(column)))

    def is_end(self, place: Place) -> bool:
        """Say whether a text may end here."""
        return place.column is not None and any(rule == 0 and dot == 1 for rule, dot, _ in place.column.items)

    def _threads(self, column: Column) -> tuple[Thread, ...]:
        return tuple((name, 0, column) for name in dict.fromkeys((*column.terminals, *self.ignored)))

    def _close(self, column: Column, todo: list[Item]) -> None:
        """Predict and complete until nothing is added."""
        while todo:
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
            if symbol in self._nullable:
                todo.append((number, dot + 1, origin))
