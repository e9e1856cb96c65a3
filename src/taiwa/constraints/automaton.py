"""Regular expressions as trees, character sets, and minimal deterministic automata.

A pattern stands for whole texts, as in `re.fullmatch`, in the part of Python's syntax that a finite automaton can represent.
Refused, with the position: look-around, back-references, word boundaries, possessive and atomic groups, and anchors where
something else must come before or after. `\\d`, `\\w` and `\\s` are ASCII classes, as in JSON Schema.

An automaton is built by Thompson's construction, the subset construction, and Hopcroft's minimisation. The symbols are the
bytes of UTF-8, of which tokens are made, or characters, for display. Every state of an automaton can reach a final one, so
its only loops are those of the texts themselves, and no pattern takes exponential time; a pattern that would exceed the
bounds is refused.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn, TypeAlias, TypeVar

from taiwa.constraints.guide import check_unicode
from taiwa.kernel.errors import InputError
from taiwa.kernel.text import truncate

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points, in order and not adjacent."""

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
MOST_NAMED = 12
WIDTHS = ((0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, LAST))
LAST_WITH_CASE = 0x1FFFF


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges and merge those that touch.

    >>> merge_ranges([(5, 9), (1, 2), (3, 3), (6, 7)])
    ((1, 3), (5, 9))
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def invert_ranges(ranges: Ranges) -> Ranges:
    """Return every character outside of the ranges."""
    found: list[tuple[int, int]] = []
    here = 0
    for low, high in ranges:
        if here < low:
            found.append((here, low - 1))
        here = high + 1
    if here <= LAST:
        found.append((here, LAST))
    return tuple(found)


@lru_cache(maxsize=256)
def without_surrogates(ranges: Ranges) -> Ranges:
    """Return the ranges without surrogates."""
    return invert_ranges(merge_ranges((*invert_ranges(ranges), SURROGATES)))


def with_other_case(ranges: Ranges) -> Ranges:
    """Return the ranges and the other case of each letter in them."""
    more = (
        (other, other)
        for low, high in ranges
        for here, others in _cases().items()
        if low <= here <= high
        for other in others
    )
    return merge_ranges((*ranges, *more))


@cache
def _cases() -> dict[int, tuple[int, ...]]:
    groups: dict[str, set[int]] = {}
    for code in range(LAST_WITH_CASE + 1):
        char = chr(code)
        if char.lower() != char or char.upper() != char:
            groups.setdefault(char.upper(), set()).add(code)
    return {code: tuple(group - {code}) for group in groups.values() for code in group if len(group) > 1}


ALL: Ranges = ((0, LAST),)
NEWLINE: Ranges = ((10, 10),)
DIGIT: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = ((9, 13), (32, 32))


@lru_cache(maxsize=256)
def encode_utf8(ranges: Ranges) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the UTF-8 encoding of the ranges: sequences of one to four byte ranges. Surrogates have no encoding.

    >>> encode_utf8(((0x24, 0x24), (0x3042, 0x3044)))
    (((36, 36),), ((227, 227), (129, 129), (130, 132)))
    """
    return tuple(
        sequence
        for low, high in ranges
        for below, above in WIDTHS
        for sequence in _encode_range(max(low, below), min(high, above))
    )


def _encode_range(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield characters of one encoded length, divided so that the byte ranges are independent."""
    first, last = SURROGATES
    if low <= last and high >= first:
        yield from _encode_range(low, min(high, first - 1))
        yield from _encode_range(max(low, last + 1), high)
    elif low <= high:
        yield from _split_range(low, high, 6)


def _split_range(low: int, high: int, bits: int) -> Iterator[tuple[tuple[int, int], ...]]:
    below = (1 << bits) - 1
    if high <= 0x7F or low >> bits == high >> bits:
        yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
    elif low & below:
        yield from _split_range(low, low | below, bits)
        yield from _split_range((low | below) + 1, high, bits)
    elif high & below != below:
        yield from _split_range(low, (high & ~below) - 1, bits)
        yield from _split_range(high & ~below, high, bits)
    else:
        yield from _split_range(low, high, bits + 6)


def describe_ranges(ranges: Ranges) -> str:
    """Return ranges for display.

    >>> describe_ranges(((0x30, 0x39), (0x6587, 0x6587)))
    "'0'…'9', '文'"
    >>> print(describe_ranges(invert_ranges(((0x22, 0x22),))))
    any character but '"'
    """
    whole = merge_ranges((*ranges, SURROGATES))  # texts contain no surrogates, so they do not interrupt a range
    ranges = whole if len(whole) <= len(ranges) else ranges
    if ranges == ALL:
        return "any character"
    others = invert_ranges(ranges)
    if ranges[-1][1] == LAST and len(others) <= len(ranges):
        return f"any character but {_list_ranges(others)}"
    return _list_ranges(ranges)


def _list_ranges(ranges: Ranges) -> str:
    shown = [repr(chr(low)) if low == high else f"{chr(low)!r}…{chr(high)!r}" for low, high in ranges[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(ranges) > MOST_NAMED else "")


MOST_CHARS = 1_000_000
MOST_DEPTH = 120
MOST_TIMES = 100_000
META = frozenset("\\^$.|?*+()[]{}")
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "b": 8, "0": 0}
HEX = {"x": 2, "u": 4, "U": 8}
FLAGS = frozenset("isu")
COUNTED = re.compile(r"\{(?!\})([0-9]{0,18})(,?)([0-9]{0,18})\}")
GLOBAL = re.compile(r"\(\?([isu]+)\)")
GROUPS = {
    "(?=": "look-ahead",
    "(?!": "look-ahead",
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?P=": "a back-reference",
    "(?(": "a condition",
    "(?>": "an atomic group",
    "(?#": "a comment",
}


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of some ranges; without ranges, none."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Several parts in order."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several options."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, `least` to `most` times; without `most`, any number of times."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class _Anchor:
    sign: str
    at: int


Node: TypeAlias = Chars | Concatenation | Alternation | Repeat | _Anchor


def parse_regex(pattern: str, around: "Node | None" = None) -> Node:
    """Parse a regular expression. `around` is allowed on each side without an anchor, for patterns that are searched for.

    >>> parse_regex("ab?")
    Concatenation(parts=(Chars(ranges=((97, 97),)), Repeat(part=Chars(ranges=((98, 98),)), least=0, most=1)))

    Raises:
        InputError: it is invalid, or no automaton can represent it; the message gives the position.
    """
    if len(pattern) > MOST_CHARS:
        raise InputError(f"the regex has {len(pattern):,} characters; the limit is {MOST_CHARS:,}")
    check_unicode(pattern, "the regex")
    opening = GLOBAL.match(pattern)
    reader = _Parser(pattern) if opening is None else _Parser(pattern, opening.end(), frozenset(opening[1]))
    tree = reader.either(0)
    if reader.at < len(pattern):
        reader.fail("unmatched parenthesis")
    return _drop_anchors(tree if around is None else _surround(tree, around), first=True, last=True)


def _surround(node: Node, around: Node) -> Node:
    if isinstance(node, Alternation):
        return Alternation(tuple(_surround(option, around) for option in node.options))
    parts = node.parts if isinstance(node, Concatenation) else (node,)
    signs = [part.sign if isinstance(part, _Anchor) else "" for part in parts]
    before = () if "^" in signs[:1] else (around,)
    after = () if "$" in signs[-1:] else (around,)
    return Concatenation((*before, *parts, *after))


def _drop_anchors(node: Node, *, first: bool, last: bool) -> Node:
    """Remove the anchors: a pattern matches complete texts, so anchors are redundant at its ends and wrong elsewhere."""
    match node:
        case _Anchor(sign, at):
            if not (first if sign == "^" else last):
                raise InputError(f"the regex cannot match at character {at + 1}: {sign!r} inside a text")
            return Concatenation(())
        case Concatenation(parts):
            # Several anchors at one end, as in `^^a`, all stand at that end.
            solid = [number for number, part in enumerate(parts) if not isinstance(part, _Anchor)]
            low, high = (solid[0], solid[-1]) if solid else (len(parts), 0)
            kept = (
                _drop_anchors(part, first=first and number <= low, last=last and number >= high)
                for number, part in enumerate(parts)
            )
            return Concatenation(tuple(part for part in kept if part != Concatenation(())))
        case Alternation(options):
            return Alternation(tuple(_drop_anchors(option, first=first, last=last) for option in options))
        case Repeat(part, least, most):
            # What may repeat has no end of its own, so an anchor in it would stand inside a text.
            once = most == 1
            return Repeat(_drop_anchors(part, first=first and once, last=last and once), least, most)
        case Chars():
            return node


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    flags: frozenset[str] = frozenset()

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        raise InputError(f"the regex cannot be used, character {place + 1}: {what}")

    def sees(self, sign: str) -> bool:
        return self.text.startswith(sign, self.at)

    def takes(self, sign: str) -> bool:
        found = self.sees(sign)
        self.at += len(sign) if found else 0
        return found

    def either(self, depth: int) -> Node:
        if depth > MOST_DEPTH:
            self.fail(f"groups are nested deeper than {MOST_DEPTH}")
        options = [self.then(depth)]
        while self.takes("|"):
            options.append(self.then(depth))
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def then(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated(self.atom(depth)))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def atom(self, depth: int) -> Node:
        sign = self.text[self.at]
        if sign == "(":
            return self.group(depth)
        if sign == "[":
            return self.set()
        if sign in "*+?" or (sign == "{" and self.counted() is not None):
            self.fail(f"{sign!r} has nothing to repeat")
        at = self.at
        self.at += 1
        if sign in "^$":
            return _Anchor(sign, at)
        if sign == ".":
            return Chars(ALL if "s" in self.flags else invert_ranges(NEWLINE))
        if sign == "\\":
            return Chars(self.escape(at, within=False))
        return Chars(self.in_case(((ord(sign), ord(sign)),)))

    def in_case(self, ranges: Ranges) -> Ranges:
        return with_other_case(ranges) if "i" in self.flags else ranges

    def group(self, depth: int) -> Node:
        at, outer = self.at, self.flags
        for sign, name in GROUPS.items():
            if self.sees(sign):
                self.fail(f"{name} ({sign}…) cannot be represented by an automaton")
        self.at += 1
        if self.takes("?P<") or self.takes("?<"):
            end = self.text.find(">", self.at)
            if end < 0 or not self.text[self.at : end].isidentifier():
                self.fail("invalid group name", at)
            self.at = end + 1
        elif self.takes("?") and not self.takes(":"):
            self.switch(at)
        inner = self.either(depth + 1)
        if not self.takes(")"):
            self.fail("this group is not closed", at)
        self.flags = outer
        return inner

    def switch(self, at: int) -> None:
        """Read the flags of a group, up to its colon."""
        end = self.text.find(":", self.at)
        flags = self.text[self.at : end] if end > 0 else ""
        if not flags or set(flags) - FLAGS:
            self.fail("of flags, only i and s are known: (?i:…), or (?i) at the very beginning", at)
        self.flags |= set(flags)
        self.at = end + 1

    def repeated(self, part: Node) -> Node:
        at, found = self.at, False
        while (times := self.times()) is not None:
            if found:
                self.fail("two repetitions of one thing; put the first into a group", at)
            if isinstance(part, _Anchor):
                self.fail("an anchor cannot be repeated", at)
            found, (least, most) = True, times
            if self.sees("+"):
                self.fail("a possessive repetition cannot be represented by an automaton")
            self.takes("?")  # lazy or not, the texts are the same
            part = part if (least, most) == (1, 1) else Repeat(part, least, most)
        return part

    def times(self) -> tuple[int, int | None] | None:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.takes(sign):
                return times
        found = self.counted()
        if found is None:
            return None
        least, most, end = found
        if most is not None and most < least:
            self.fail("the most is less than the least")
        if max(least, most or 0) > MOST_TIMES:
            self.fail(f"more than {MOST_TIMES:,} repetitions")
        self.at = end
        return least, most

    def counted(self) -> tuple[int, int | None, int] | None:
        """Read `{m}`, `{m,}`, `{,n}` or `{m,n}`; any other brace is a character."""
        found = COUNTED.match(self.text, self.at)
        if found is None:
            return None
        low, comma, high = found.groups()
        least = int(low or 0)
        return least, (int(high) if high else None) if comma else least, found.end()

    def set(self) -> Node:
        at = self.at
        self.at += 1
        negative = self.takes("^")
        found: list[tuple[int, int]] = []
        while not self.sees("]") or self.at == at + 1 + negative:
            if self.sees("[:"):
                self.fail("classes as in [[:alpha:]] are not known; write the characters")
            first = self.member(at)
            if self.sees("-") and not self.sees("-]"):
                self.at += 1
                last = self.member(at)
                if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1]:
                    self.fail("a range goes from one character to another", at)
                if last[0][0] < first[0][0]:
                    self.fail("a range ends before it begins", at)
                first = ((first[0][0], last[0][0]),)
            found += first
        self.at += 1
        ranges = self.in_case(merge_ranges(found))
        return Chars(invert_ranges(ranges) if negative else ranges)

    def member(self, opened: int) -> Ranges:
        if self.at >= len(self.text):
            self.fail("this set is not closed", opened)
        at, sign = self.at, self.text[self.at]
        self.at += 1
        return self.escape(at, within=True) if sign == "\\" else ((ord(sign), ord(sign)),)

    def escape(self, at: int, *, within: bool) -> Ranges:
        """Read what follows a backslash."""
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if not sign:
            self.fail("a backslash at the end", at)
        if sign.lower() in CLASSES:
            ranges = CLASSES[sign.lower()]
            return invert_ranges(ranges) if sign.isupper() else ranges
        if sign in "AZz" and not within:
            self.fail("write ^ and $ for the ends of a text", at)
        if sign in "bB" and not (within and sign == "b"):
            self.fail("a word boundary is look-around, which an automaton cannot represent", at)
        if sign.isdecimal() and sign != "0":
            self.fail("a back-reference cannot be represented by an automaton", at)
        if sign in HEX:
            code = self.code(at, HEX[sign], within=within)
        elif sign in CONTROLS:
            code = CONTROLS[sign]
        elif sign.isascii() and sign.isalpha():
            self.fail(f"the escape \\{sign} is not known; write the characters or their ranges", at)
        else:
            code = ord(sign)
        return ((code, code),) if within else self.in_case(((code, code),))

    def code(self, at: int, width: int, *, within: bool) -> int:
        """Read the code of a character: `41` after `\\x`, `0041` or `{41}` after `\\u`."""
        digits = f"[0-9a-fA-F]{{{width}}}" + (r"|\{[0-9a-fA-F]{1,8}\}" if width == 4 else "")
        found = re.compile(digits).match(self.text, self.at)
        code = int(found[0].strip("{}"), 16) if found else LAST + 1
        if found is None or code > LAST:
            self.fail("invalid character code", at)
        if SURROGATES[0] <= code <= SURROGATES[1] and not within:
            self.fail(f"half a character (U+{code:04X}) is not text", at)
        self.at = found.end()
        return code


def format_regex(node: Node) -> str:
    """Return a tree as a regular expression.

    >>> format_regex(parse_regex("a{2,3}|[^b]"))
    'a{2,3}|[^b]'
    """
    match node:
        case Chars(ranges):
            return _set(ranges)
        case Concatenation(parts):
            return "".join(
                f"({format_regex(part)})" if isinstance(part, Alternation) else format_regex(part) for part in parts
            )
        case Alternation(options):
            return "|".join(map(format_regex, options))
        case Repeat(part, least, most):
            inner = format_regex(part) if isinstance(part, Chars) else f"({format_regex(part)})"
            return inner + format_times(least, most)
        case _Anchor(sign):
            return sign


def format_times(least: int, most: int | None) -> str:
    """Return a repetition as part of a regular expression; without `most`, there is no limit."""
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _set(ranges: Ranges) -> str:
    for name, known in CLASSES.items():
        if ranges == known:
            return f"\\{name}"
    if ranges == invert_ranges(NEWLINE):
        return "."
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0], META)
    negative = ranges[-1:] and ranges[-1][1] == ALL[0][1] and ranges != ALL
    shown = invert_ranges(ranges) if negative else ranges
    inner = "".join(_span(low, high) for low, high in shown)
    return f"[{'^' if negative else ''}{inner}]" if inner else "[^\\x00-\\U0010ffff]"


def _span(low: int, high: int) -> str:
    signs = frozenset("\\]^-[")
    between = "" if high <= low + 1 else "-"
    return _char(low, signs) + (between + _char(high, signs) if high > low else "")


def _char(code: int, special: frozenset[str]) -> str:
    char = chr(code)
    if char in special:
        return f"\\{char}"
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    if char.isprintable():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


def escape_regex(text: str) -> str:
    r"""Return the pattern that matches just one text.

    >>> escape_regex("1+1")
    '1\\+1'
    """
    return SPECIAL.sub(r"\\\g<0>", text)


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


def compile_regex(pattern: str | Node, *, chars: bool = False, most_steps: int = MOST_STEPS) -> Automaton:
    """Return the minimal automaton of a pattern, over bytes or over characters; finding it may take `most_steps`.

    >>> compile_regex("(a|b)*b").moves
    (((97, 97, 0), (98, 98, 1)), ((97, 97, 0), (98, 98, 1)))

    Raises:
        InputError: no automaton can represent the pattern, no text matches it, or the automaton would be too large.
    """
    if isinstance(pattern, str):
        if len(pattern) > most_steps:
            raise InputError(f"the regex is too large for an automaton of {most_steps:,} steps")
        pattern = parse_regex(pattern)
    nfa = _Nfa(chars, min(MOST_NFA_STATES, most_steps))
    start, end = nfa.add(), nfa.add()
    nfa.build(pattern, start, end)
    return _minimize(*_trim(*_determinize(nfa, start, end, most_steps)))


@dataclass(slots=True)
class _Nfa:
    """A nondeterministic automaton: moves by symbols and free moves."""

    chars: bool
    most: int
    moves: list[list[tuple[int, int, int]]] = field(default_factory=list[list[tuple[int, int, int]]])
    free: list[list[int]] = field(default_factory=list[list[int]])

    def add(self) -> int:
        if len(self.moves) >= self.most:
            raise InputError(
                f"the regex is too large for an automaton: more than {self.most:,} places; make its repetitions smaller"
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
            loop = self.add()  # a separate state: moves that leave `here` must not be repeated
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
            # From the last byte backwards, so that equal endings of characters meet in one state.
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


def _determinize(nfa: _Nfa, start: int, end: int, most_steps: int) -> tuple[Rows, set[int], Cuts]:
    """Return the deterministic automaton: states are sets of states, and symbols that nothing distinguishes form a class."""
    last = END_OF_CHARS if nfa.chars else END_OF_BYTES
    # Only where a range begins or ends can two symbols differ: a few classes instead of 1,114,112 characters.
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
        # Most classes of a state lead to the same places.
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
        if len(rows) > MOST_STATES or steps > most_steps:
            raise InputError(
                f"the regex is too large for an automaton: more than {MOST_STATES:,} states or {most_steps:,} steps to find them; make its repetitions smaller"
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

    A missing move distinguishes states like any other; since all first blocks are splitters, it is found at once.
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
    """Move the states that were hit to a new block; the work is proportional to their number only."""
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
            short = truncate(label, LONGEST_LABEL)
            lines.append(f"  {state} -> {there} [label={_quoted(short)}]")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """Return a Graphviz string: only quotes and backslashes are escaped in it."""
    plain = "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
