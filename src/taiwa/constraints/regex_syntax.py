"""Regular expressions as trees: the part of Python's syntax that a finite automaton can represent, and character sets.

A pattern stands for whole texts, as in `re.fullmatch`. Refused, with the position: look-around, back-references, word
boundaries, possessive and atomic groups, and anchors where something else must come before or after.
`\\d`, `\\w` and `\\s` are the ASCII ones, as in JSON Schema.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NoReturn, TypeAlias

from taiwa.constraints.guide import check_unicode
from taiwa.kernel.errors import InputError

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
    whole = merge_ranges((*ranges, SURROGATES))  # no text contains them, so they do not interrupt a range
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
    """Parse a regular expression. `around` may stand on each side without an anchor, for patterns that are searched for.

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
    """Remove the anchors: a pattern stands for whole texts, so they mean nothing at its ends and are wrong elsewhere."""
    match node:
        case _Anchor(sign, at):
            if not (first if sign == "^" else last):
                raise InputError(f"the regex cannot match at character {at + 1}: {sign!r} inside a text")
            return Concatenation(())
        case Concatenation(parts):
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
