"""From a tree to a finite automaton: Thompson's construction, subsets, and Hopcroft's minimum.

The symbols are the bytes of UTF-8, which is what tokens are made of, or characters, which is what people read. An automaton
has no dead states: from each of them a final one can be reached. So the only loops are those of the texts themselves, and no
pattern is catastrophic; what would grow beyond the bounds is refused.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from taiwa.guide.reference.charset import Ranges, encoded, joined, without_surrogates
from taiwa.guide.reference.pattern import Chars, Either, Node, Repeat, Then, parse
from taiwa.kernel.errors import InputError

__all__ = ["Automaton", "compiled"]

MOST_PLACES = 200_000
MOST_STATES = 100_000
MOST_STEPS = 10_000_000
END_OF_BYTES = 256
END_OF_CHARS = 0x110000

Moves: TypeAlias = tuple[tuple[int, int, int], ...]
"""From one state: the first and the last symbol of a range, and the state that these lead to; in order."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic finite automaton with as few states as can be; state 0 is the start."""

    moves: tuple[Moves, ...]
    finals: frozenset[int]

    @cached_property
    def table(self) -> tuple[dict[int, int], ...]:
        """For automata over bytes: from each state, the state that each byte leads to."""
        return tuple(
            {symbol: target for low, high, target in row for symbol in range(low, high + 1)} for row in self.moves
        )

    @cached_property
    def extent(self) -> tuple[int | None, int, int | None]:
        """How many texts there are, and how many symbols the shortest and the longest have; None where there is no end.

        >>> compiled("a{2,3}|b").extent
        (3, 1, 3)
        """
        order, is_endless = _sorted(self.moves)
        least: dict[int, int] = dict.fromkeys(self.finals, 0)
        todo = deque(self.finals)
        back: defaultdict[int, set[int]] = defaultdict(set)
        for state, row in enumerate(self.moves):
            for *_, there in row:
                back[there].add(state)
        while todo:
            here = todo.popleft()
            for before in back[here] - least.keys():
                least[before] = least[here] + 1
                todo.append(before)
        if is_endless:
            return None, least[0], None
        count, most = dict[int, int](), dict[int, int]()
        for state in order:
            row = self.moves[state]
            count[state] = (state in self.finals) + sum((high - low + 1) * count[there] for low, high, there in row)
            most[state] = max((most[there] + 1 for *_, there in row), default=0)
        return count[0], least[0], most[0]

    def step(self, state: int, symbol: int) -> int | None:
        """The state after one more symbol, if there is one."""
        row = self.moves[state]
        place = bisect_right(row, (symbol, END_OF_CHARS, 0)) - 1
        if place >= 0 and row[place][0] <= symbol <= row[place][1]:
            return row[place][2]
        return None

    def walk(self, symbols: Iterable[int], state: int | None = 0) -> int | None:
        """The state after some symbols, if they lead anywhere."""
        for symbol in symbols:
            if state is None:
                break
            state = self.step(state, symbol)
        return state

    def within(self, symbols: Container[int]) -> "Automaton | None":
        """The automaton of the texts that these symbols can write, for one over bytes; None where there are none."""
        rows = [{symbol: target for symbol, target in row.items() if symbol in symbols} for row in self.table]
        if rows == list(self.table):
            return self
        try:
            return _minimal(*_trimmed(rows, set(self.finals), list(range(END_OF_BYTES + 1))))
        except InputError:
            return None

    def accepts(self, symbols: Iterable[int]) -> bool:
        """Say whether these symbols are a whole text of the language."""
        return self.walk(symbols) in self.finals


def _sorted(moves: tuple[Moves, ...]) -> tuple[list[int], bool]:
    """The states, each after those that it leads to, and whether there is a loop: then they have no such order."""
    left = [len({there for *_, there in row}) for row in moves]
    back: defaultdict[int, list[int]] = defaultdict(list)
    for state, row in enumerate(moves):
        for there in {there for *_, there in row}:
            back[there].append(state)
    order = [state for state, count in enumerate(left) if not count]
    for state in order:
        for before in back[state]:
            left[before] -= 1
            if not left[before]:
                order.append(before)
    return order, len(order) < len(moves)


def compiled(pattern: str | Node, *, chars: bool = False) -> Automaton:
    """Make the minimal automaton of a pattern, over bytes or over characters.

    >>> compiled("(a|b)*b").moves
    (((97, 97, 0), (98, 98, 1)), ((97, 97, 0), (98, 98, 1)))

    Raises:
        InputError: this is no pattern for an automaton, no text matches it, or the automaton would be too large.
    """
    nfa = _Places(chars)
    start, end = nfa.add(), nfa.add()
    nfa.build(parse(pattern) if isinstance(pattern, str) else pattern, start, end)
    whole = _trimmed(*_subsets(nfa, start, end))
    return _minimal(*whole)


@dataclass(slots=True)
class _Places:
    """A nondeterministic automaton: what symbols lead where, and where one gets without any."""

    chars: bool
    moves: list[list[tuple[int, int, int]]] = field(default_factory=list[list[tuple[int, int, int]]])
    free: list[list[int]] = field(default_factory=list[list[int]])

    def add(self) -> int:
        if len(self.moves) >= MOST_PLACES:
            raise InputError(
                f"the regex is too large for an automaton: more than {MOST_PLACES:,} places; make its repetitions smaller"
            )
        self.moves.append([])
        self.free.append([])
        return len(self.moves) - 1

    def build(self, node: Node, start: int, end: int) -> None:
        """Let the texts of a node lead from one place to another."""
        match node:
            case Chars(ranges):
                self._one(ranges, start, end)
            case Then(parts):
                here = start
                for part in parts:
                    there = self.add()
                    self.build(part, here, there)
                    here = there
                self.free[here].append(end)
            case Either(options):
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
            loop = self.add()  # a place of its own: nothing that leaves `here` may be repeated
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
        tails: dict[tuple[tuple[int, int], ...], int] = {(): end}  # characters that end alike share the places
        for sequence in encoded(ranges):
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


def _subsets(nfa: _Places, start: int, end: int) -> tuple[Rows, set[int], Cuts]:
    """Make it deterministic: each state is a set of places; symbols that nothing tells apart are one class."""
    last = END_OF_CHARS if nfa.chars else END_OF_BYTES
    cuts = sorted({0, last, *(edge for row in nfa.moves for low, high, _ in row for edge in (low, high + 1))})
    number = {cut: place for place, cut in enumerate(cuts)}
    first = _closed(nfa, [start])
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
                closures[goal] = _closed(nfa, goal)
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


def _closed(nfa: _Places, places: Iterable[int]) -> frozenset[int]:
    """The places, and those that one gets to without a symbol."""
    found = set(places)
    todo = list(found)
    while todo:
        for there in nfa.free[todo.pop()]:
            if there not in found:
                found.add(there)
                todo.append(there)
    return frozenset(found)


def _trimmed(rows: Rows, finals: set[int], cuts: Cuts) -> tuple[Rows, set[int], Cuts]:
    """Drop the states from which no final one can be reached."""
    back: defaultdict[int, set[int]] = defaultdict(set)
    for state, row in enumerate(rows):
        for target in row.values():
            back[target].add(state)
    alive = set(finals)
    todo = list(finals)
    while todo:
        fresh = back[todo.pop()] - alive
        alive |= fresh
        todo += fresh
    if 0 not in alive:
        raise InputError("no text at all matches the regex")
    number = {state: place for place, state in enumerate(sorted(alive))}
    kept = [{kind: number[target] for kind, target in rows[state].items() if target in alive} for state in number]
    return kept, {number[state] for state in finals}, cuts


def _minimal(rows: Rows, finals: set[int], cuts: Cuts) -> Automaton:
    """Make one state of those that no text tells apart, and number them in the order in which symbols reach them."""
    block = _blocks(rows, finals)
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
        moves.append(tuple(sorted((*span, target) for target, found in spans.items() for span in joined(found))))
    return Automaton(tuple(moves), frozenset(number[block[state]] for state in finals if block[state] in number))


def _blocks(rows: Rows, finals: set[int]) -> list[int]:
    """Hopcroft's partition: the block of each state (J. Hopcroft, An n log n algorithm, 1971).

    An absent move tells states apart as any other: all first blocks are splitters, so that it is seen at once.
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
                    _split(number, hit, members, block, todo)
    return block


def _split(number: int, hit: set[int], members: list[set[int]], block: list[int], todo: set[int]) -> None:
    rest = members[number] - hit
    members[number] = hit
    members.append(rest)
    fresh = len(members) - 1
    for state in rest:
        block[state] = fresh
    if number in todo or len(rest) <= len(hit):
        todo.add(fresh)
    else:
        todo.add(number)
