"""Minimal deterministic automata: Thompson's construction, the subset construction, and Hopcroft's minimisation.

The symbols are the bytes of UTF-8, of which tokens are made, or characters, for display. From each state of an automaton a final
one can be reached, so its only loops are those of the texts themselves, and no pattern is catastrophic; what would exceed the
bounds is refused.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias, TypeVar

from taiwa.constraints.regex_syntax import (
    Alternation,
    Chars,
    Concatenation,
    Node,
    Ranges,
    Repeat,
    describe_ranges,
    encode_utf8,
    merge_ranges,
    parse_regex,
    without_surrogates,
)
from taiwa.kernel.errors import InputError

MOST_NFA_STATES = 200_000
MOST_STATES = 100_000
MOST_STEPS = 10_000_000
END_OF_BYTES = 256
END_OF_CHARS = 0x110000

Moves: TypeAlias = tuple[tuple[int, int, int], ...]
"""The moves of one state: the first and the last symbol of a range, and the next state; in order."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A minimal deterministic finite automaton; state 0 is the start."""

    moves: tuple[Moves, ...]
    finals: frozenset[int]

    @cached_property
    def table(self) -> tuple[dict[int, int], ...]:
        """The next state by byte for each state, for automata over bytes."""
        return tuple(
            {symbol: target for low, high, target in row for symbol in range(low, high + 1)} for row in self.moves
        )

    @cached_property
    def extent(self) -> tuple[int | None, int, int | None]:
        """The number of texts, and the number of symbols of the shortest and the longest; None where unbounded.

        >>> compile_regex("a{2,3}|b").extent
        (3, 1, 3)
        """
        least, states = 0, {0}
        while not states & self.finals:
            least, states = least + 1, {there for state in states for *_, there in self.moves[state]}
        following = {state: {there for *_, there in row} for state, row in enumerate(self.moves)}
        try:
            order = tuple(TopologicalSorter(following).static_order())
        except CycleError:
            return None, least, None
        count, most = dict[int, int](), dict[int, int]()
        for state in order:
            row = self.moves[state]
            count[state] = (state in self.finals) + sum((high - low + 1) * count[there] for low, high, there in row)
            most[state] = max((most[there] + 1 for *_, there in row), default=0)
        return count[0], least, most[0]

    def step(self, state: int, symbol: int) -> int | None:
        """Return the state after one more symbol; None if there is none."""
        row = self.moves[state]
        place = bisect_right(row, (symbol, END_OF_CHARS, 0)) - 1
        if place >= 0 and row[place][0] <= symbol <= row[place][1]:
            return row[place][2]
        return None

    def walk(self, symbols: Iterable[int], state: int | None = 0) -> int | None:
        """Return the state after some symbols; None if there is none."""
        for symbol in symbols:
            if state is None:
                break
            state = self.step(state, symbol)
        return state

    def within(self, symbols: Container[int]) -> "Automaton | None":
        """Return the automaton of the texts of these bytes, for one over bytes; None if there are none."""
        rows = [{symbol: target for symbol, target in row.items() if symbol in symbols} for row in self.table]
        if rows == list(self.table):
            return self
        try:
            return _minimize(*_trim(rows, set(self.finals), list(range(END_OF_BYTES + 1))))
        except InputError:
            return None

    def accepts(self, symbols: Iterable[int]) -> bool:
        """Return whether these symbols are a text of the language."""
        return self.walk(symbols) in self.finals


T = TypeVar("T", int, str)


def reaching(goals: Iterable[T], edges: Iterable[tuple[T, T]]) -> set[T]:
    """Return the states from which one of the goals can be reached, the goals included; `edges` are pairs from, to."""
    back: defaultdict[T, set[T]] = defaultdict(set)
    for state, there in edges:
        back[there].add(state)
    alive = set(goals)
    todo = list(alive)
    while todo:
        fresh = back[todo.pop()] - alive
        alive |= fresh
        todo += fresh
    return alive


def compile_regex(pattern: str | Node, *, chars: bool = False) -> Automaton:
    """Return the minimal automaton of a pattern, over bytes or over characters.

    >>> compile_regex("(a|b)*b").moves
    (((97, 97, 0), (98, 98, 1)), ((97, 97, 0), (98, 98, 1)))

    Raises:
        InputError: no automaton can represent the pattern, no text matches it, or the automaton would be too large.
    """
    nfa = _Nfa(chars)
    start, end = nfa.add(), nfa.add()
    nfa.build(parse_regex(pattern) if isinstance(pattern, str) else pattern, start, end)
    return _minimize(*_trim(*_determinize(nfa, start, end)))


@dataclass(slots=True)
class _Nfa:
    """A nondeterministic automaton: moves by symbols and free moves."""

    chars: bool
    moves: list[list[tuple[int, int, int]]] = field(default_factory=list[list[tuple[int, int, int]]])
    free: list[list[int]] = field(default_factory=list[list[int]])

    def add(self) -> int:
        if len(self.moves) >= MOST_NFA_STATES:
            raise InputError(
                f"the regex is too large for an automaton: more than {MOST_NFA_STATES:,} places; make its repetitions smaller"
            )
        self.moves.append([])
        self.free.append([])
        return len(self.moves) - 1

    def build(self, node: Node, start: int, end: int) -> None:
        """Add a node between two states."""
        match node:
            case Chars(ranges):
                self._one(ranges, start, end)
            case Concatenation(parts):
                here = start
                for part in parts:
                    there = self.add()
                    self.build(part, here, there)
                    here = there
                self.free[here].append(end)
            case Alternation(options):
                for option in options:
                    self.build(option, start, end)
            case Repeat(part, least, most):
                self._repeat(part, least, most, start, end)
            case _:
                raise AssertionError(node)

    def _repeat(self, part: Node, least: int, most: int | None, start: int, end: int) -> None:
        here = start
        for _ in range(least):
            there = self.add()
            self.build(part, here, there)
            here = there
        if most is None:
            loop = self.add()  # a state of its own: what leaves `here` must not be repeated
            self.free[here].append(loop)
            again = self.add()
            self.build(part, loop, again)
            self.free[again].append(loop)
            here = loop
        else:
            for _ in range(most - least):
                self.free[here].append(end)
                there = self.add()
                self.build(part, here, there)
                here = there
        self.free[here].append(end)

    def _one(self, ranges: Ranges, start: int, end: int) -> None:
        if self.chars:
            self.moves[start] += ((low, high, end) for low, high in without_surrogates(ranges))
            return
        tails: dict[tuple[tuple[int, int], ...], int] = {(): end}  # characters with the same ending share states
        for sequence in encode_utf8(ranges):
            for cut in range(len(sequence) - 1, 0, -1):
                if sequence[cut:] not in tails:
                    place = self.add()
                    low, high = sequence[cut]
                    self.moves[place].append((low, high, tails[sequence[cut + 1 :]]))
                    tails[sequence[cut:]] = place
            low, high = sequence[0]
            self.moves[start].append((low, high, tails[sequence[1:]]))


Rows: TypeAlias = list[dict[int, int]]
Cuts: TypeAlias = list[int]


def _determinize(nfa: _Nfa, start: int, end: int) -> tuple[Rows, set[int], Cuts]:
    """Return the deterministic automaton: states are sets of states, and symbols that nothing distinguishes form a class."""
    last = END_OF_CHARS if nfa.chars else END_OF_BYTES
    cuts = sorted({0, last, *(edge for row in nfa.moves for low, high, _ in row for edge in (low, high + 1))})
    number = {cut: place for place, cut in enumerate(cuts)}
    first = _closure(nfa, [start])
    states, rows, todo, steps = {first: 0}, [dict[int, int]()], [first], 0
    for here in todo:
        reached: defaultdict[int, set[int]] = defaultdict(set)
        for place in here:
            for low, high, target in nfa.moves[place]:
                for kind in range(number[low], number[high + 1]):
                    reached[kind].add(target)
                    steps += 1
        closures: dict[frozenset[int], frozenset[int]] = {}
        row = rows[states[here]]
        for kind, targets in reached.items():
            goal = frozenset(targets)
            if goal not in closures:
                closures[goal] = _closure(nfa, goal)
                steps += len(closures[goal])
            there = closures[goal]
            if there not in states:
                states[there] = len(rows)
                rows.append({})
                todo.append(there)
            row[kind] = states[there]
        if len(rows) > MOST_STATES or steps > MOST_STEPS:
            raise InputError(
                f"the regex is too large for an automaton: more than {MOST_STATES:,} states or {MOST_STEPS:,} steps to find them; make its repetitions smaller"
            )
    return rows, {number for state, number in states.items() if end in state}, cuts


def _closure(nfa: _Nfa, places: Iterable[int]) -> frozenset[int]:
    """Return the states and those reachable from them by free moves."""
    found = set(places)
    todo = list(found)
    while todo:
        for there in nfa.free[todo.pop()]:
            if there not in found:
                found.add(there)
                todo.append(there)
    return frozenset(found)


def _trim(rows: Rows, finals: set[int], cuts: Cuts) -> tuple[Rows, set[int], Cuts]:
    """Remove the states from which no final one can be reached."""
    alive = reaching(finals, ((state, target) for state, row in enumerate(rows) for target in row.values()))
    if 0 not in alive:
        raise InputError("no text matches the regex")
    number = {state: place for place, state in enumerate(sorted(alive))}
    kept = [{kind: number[target] for kind, target in rows[state].items() if target in alive} for state in number]
    return kept, {number[state] for state in finals}, cuts


def _minimize(rows: Rows, finals: set[int], cuts: Cuts) -> Automaton:
    """Merge the states that no text distinguishes, and number them in the order of symbols."""
    block = _partition(rows, finals)
    number = {block[0]: 0}
    todo = [0]
    moves: list[Moves] = []
    for state in todo:
        spans: dict[int, list[tuple[int, int]]] = {}
        for kind in sorted(rows[state]):
            target = rows[state][kind]
            if block[target] not in number:
                number[block[target]] = len(number)
                todo.append(target)
            spans.setdefault(number[block[target]], []).append((cuts[kind], cuts[kind + 1] - 1))
        moves.append(tuple(sorted((*span, target) for target, found in spans.items() for span in merge_ranges(found))))
    return Automaton(tuple(moves), frozenset(number[block[state]] for state in finals if block[state] in number))


def _partition(rows: Rows, finals: set[int]) -> list[int]:
    """Return the block of each state by Hopcroft's algorithm (J. Hopcroft, An n log n algorithm, 1971).

    A missing move distinguishes states as any other: all first blocks are splitters, so it is found at once.
    """
    back: dict[int, defaultdict[int, list[int]]] = {}
    for state, row in enumerate(rows):
        for kind, target in row.items():
            back.setdefault(kind, defaultdict(list))[target].append(state)
    members = [part for part in (set(finals), set(range(len(rows))) - finals) if part]
    block = [0] * len(rows)
    for number, part in enumerate(members):
        for state in part:
            block[state] = number
    todo = set(range(len(members)))
    while todo:
        splitter = tuple(members[todo.pop()])
        for sources in back.values():
            touched: defaultdict[int, set[int]] = defaultdict(set)
            for target in splitter:
                for state in sources.get(target, ()):
                    touched[block[state]].add(state)
            for number, hit in touched.items():
                if len(hit) < len(members[number]):
                    _split_block(number, hit, members, block, todo)
    return block


def _split_block(number: int, hit: set[int], members: list[set[int]], block: list[int], todo: set[int]) -> None:
    """Move the states that were hit to a block of their own; the work is in proportion to them, not to the rest."""
    rest = members[number]
    rest -= hit
    members.append(hit)
    fresh = len(members) - 1
    for state in hit:
        block[state] = fresh
    todo.add(fresh if number in todo or len(hit) <= len(rest) else number)


MOST_DRAWN_STATES = 250
MOST_DRAWN_EDGES = 1000
LONGEST_LABEL = 40
HEAD = '  rankdir=LR\n  node [shape=circle fontname="sans-serif"]\n  edge [fontname="monospace"]\n  "" [shape=none]\n  "" -> 0\n'


def to_dot(automaton: Automaton, title: str = "", visited: Iterable[int] = ()) -> str:
    """Return an automaton over characters as Graphviz text; final states have a double border, `visited` ones a colour.

    Raises:
        InputError: the drawing would be too large to read.
    """
    states, edges = len(automaton.moves), sum(len({there for *_, there in row}) for row in automaton.moves)
    if states > MOST_DRAWN_STATES or edges > MOST_DRAWN_EDGES:
        raise InputError(
            f"the automaton has {states:,} states and {edges:,} moves; a drawing of more than {MOST_DRAWN_STATES} and {MOST_DRAWN_EDGES:,} cannot be read: draw a part of it, or without white space (--whitespace compact)"
        )
    seen = set(visited)
    lines = [f"digraph {_quoted(title or 'automaton')} {{", HEAD.rstrip("\n")]
    for state, row in enumerate(automaton.moves):
        looks = ["shape=doublecircle"] if state in automaton.finals else []
        looks += ['style=filled fillcolor="#cfe8d8"'] if state in seen else []
        lines.append(f"  {state} [{' '.join(looks)}]" if looks else f"  {state}")
        for there in dict.fromkeys(target for *_, target in row):
            label = describe_ranges(merge_ranges((low, high) for low, high, target in row if target == there))
            short = label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
            lines.append(f"  {state} -> {there} [label={_quoted(short)}]")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """Return a Graphviz string: only quotes and backslashes are escaped in it."""
    plain = "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
