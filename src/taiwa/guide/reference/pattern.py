"""Regular expressions as trees: what of Python's syntax a finite automaton can hold a text to.

A pattern stands for whole texts, as in `re.fullmatch`. Refused, with the place: look-around, back-references, word
boundaries, possessive and atomic groups, and anchors where something else must come before or after.
`\\d`, `\\w` and `\\s` are the ASCII ones, as in JSON Schema.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from taiwa.guide.reference.charset import ALL, DIGIT, NEWLINE, SPACE, WORD, Ranges, cased, inverted, joined
from taiwa.kernel.errors import InputError

__all__ = ["Chars", "Either", "Node", "Repeat", "Then", "parse", "written"]

MOST_CHARS = 1_000_000
MOST_DEPTH = 120
MOST_TIMES = 100_000
META = frozenset("\\^$.|?*+()[]{}")
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "0": 0}
HEX = {"x": 2, "u": 4, "U": 8}
FLAGS = frozenset("isu")
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
    """One character out of some ranges; no ranges, no character."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Then:
    """One part after the other."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

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


Node: TypeAlias = Chars | Then | Either | Repeat | _Anchor


def parse(pattern: str, around: "Node | None" = None) -> Node:
    """Read a regular expression. `around` may stand on each side that no anchor closes: for patterns that are searched for.

    >>> parse("ab?")
    Then(parts=(Chars(ranges=((97, 97),)), Repeat(part=Chars(ranges=((98, 98),)), least=0, most=1)))

    Raises:
        InputError: it is none, or an automaton cannot hold a text to it; the message says where.
    """
    if len(pattern) > MOST_CHARS:
        raise InputError(f"the regex has {len(pattern):,} characters; {MOST_CHARS:,} is the most")
    opening = GLOBAL.match(pattern)
    reader = _Reader(pattern) if opening is None else _Reader(pattern, opening.end(), frozenset(opening[1]))
    tree = reader.either(0)
    if reader.at < len(pattern):
        reader.fail("this closes no group")
    return _settled(tree if around is None else _loose(tree, around), first=True, last=True)


def _loose(node: Node, around: Node) -> Node:
    if isinstance(node, Either):
        return Either(tuple(_loose(option, around) for option in node.options))
    parts = node.parts if isinstance(node, Then) else (node,)
    signs = [part.sign if isinstance(part, _Anchor) else "" for part in parts]
    before = () if "^" in signs[:1] else (around,)
    after = () if "$" in signs[-1:] else (around,)
    return Then((*before, *parts, *after))


def _settled(node: Node, *, first: bool, last: bool) -> Node:
    """Take the anchors out: as a pattern stands for whole texts, they say nothing at its ends, and are wrong elsewhere."""
    match node:
        case _Anchor(sign, at):
            if not (first if sign == "^" else last):
                raise InputError(f"the regex cannot be met at character {at + 1}: {sign!r} in the midst of a text")
            return Then(())
        case Then(parts):
            return Then(tuple(_anchored(parts, first=first, last=last)))
        case Either(options):
            return Either(tuple(_settled(option, first=first, last=last) for option in options))
        case Repeat(part, least, most):
            once = most == 1
            return Repeat(_settled(part, first=first and once, last=last and once), least, most)
        case Chars():
            return node


def _anchored(parts: tuple[Node, ...], *, first: bool, last: bool) -> Iterator[Node]:
    solid = [number for number, part in enumerate(parts) if not isinstance(part, _Anchor)]
    for number, part in enumerate(parts):
        before = not solid or number <= solid[0]
        after = not solid or number >= solid[-1]
        kept = _settled(part, first=first and before, last=last and after)
        if kept != Then(()):
            yield kept


@dataclass(slots=True)
class _Reader:
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
        return options[0] if len(options) == 1 else Either(tuple(options))

    def then(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated(self.atom(depth)))
        return parts[0] if len(parts) == 1 else Then(tuple(parts))

    def atom(self, depth: int) -> Node:
        sign = self.text[self.at]
        if sign == "(":
            return self.group(depth)
        if sign == "[":
            return self.set()
        if sign in "*+?" or (sign == "{" and self.counted() is not None):
            self.fail(f"{sign!r} repeats nothing")
        at = self.at
        self.at += 1
        if sign in "^$":
            return _Anchor(sign, at)
        if sign == ".":
            return Chars(ALL if "s" in self.flags else inverted(NEWLINE))
        if sign == "\\":
            return Chars(self.escape(at, within=False))
        return Chars(self.in_case(((ord(sign), ord(sign)),)))

    def in_case(self, ranges: Ranges) -> Ranges:
        return cased(ranges) if "i" in self.flags else ranges

    def group(self, depth: int) -> Node:
        at, outer = self.at, self.flags
        for sign, name in GROUPS.items():
            if self.sees(sign):
                self.fail(f"{name} ({sign}…) is nothing that an automaton can keep")
        self.at += 1
        if self.takes("?P<") or self.takes("?<"):
            end = self.text.find(">", self.at)
            if end < 0 or not self.text[self.at : end].isidentifier():
                self.fail("the name of this group is none", at)
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
                self.fail("a possessive repetition is nothing that an automaton can keep")
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
        """Look at `{m}`, `{m,}`, `{,n}` or `{m,n}`; any other brace is a character."""
        end = self.text.find("}", self.at, self.at + 40)
        if not self.sees("{") or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not (low or comma) or any(part and not (part.isascii() and part.isdecimal()) for part in (low, high)):
            return None
        least = int(low or 0)
        return least, (int(high) if high else None) if comma else least, end + 1

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
        ranges = self.in_case(joined(found))
        return Chars(inverted(ranges) if negative else ranges)

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
            return inverted(ranges) if sign.isupper() else ranges
        if sign in "AZz" and not within:
            self.fail("write ^ and $ for the ends of a text", at)
        if sign in "bB" and not (within and sign == "b"):
            self.fail("a word boundary is look-around, which is nothing that an automaton can keep", at)
        if sign.isdecimal() and sign != "0":
            self.fail("a back-reference is nothing that an automaton can keep", at)
        if sign in HEX:
            code = self.code(at, HEX[sign])
        elif sign == "b":
            code = 8
        elif sign in CONTROLS:
            code = CONTROLS[sign]
        elif sign.isascii() and sign.isalpha():
            self.fail(f"the escape \\{sign} is not known; write the characters or their ranges", at)
        else:
            code = ord(sign)
        return ((code, code),) if within else self.in_case(((code, code),))

    def code(self, at: int, width: int) -> int:
        """Read the number of a character: `41` after `\\x`, `0041` or `{41}` after `\\u`."""
        end = self.text.find("}", self.at) if width == 4 and self.sees("{") else -1
        digits = self.text[self.at + 1 : end] if end > 0 else self.text[self.at : self.at + width]
        self.at = end + 1 if end > 0 else self.at + width
        good = digits and all(digit in "0123456789abcdefABCDEF" for digit in digits) and len(digits) <= 8
        if not good or (end < 0 and len(digits) < width) or int(digits, 16) > 0x10FFFF:
            self.fail("this is no number of a character", at)
        return int(digits, 16)


def written(node: Node) -> str:
    """Write a tree as a regular expression again.

    >>> written(parse("a{2,3}|[^b]"))
    'a{2,3}|[^b]'
    """
    match node:
        case Chars(ranges):
            return _set(ranges)
        case Then(parts):
            return "".join(f"({written(part)})" if isinstance(part, Either) else written(part) for part in parts)
        case Either(options):
            return "|".join(map(written, options))
        case Repeat(part, least, most):
            inner = written(part) if isinstance(part, Chars) else f"({written(part)})"
            return inner + _times(least, most)
        case _Anchor(sign):
            return sign


def _times(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _set(ranges: Ranges) -> str:
    for name, known in CLASSES.items():
        if ranges == known:
            return f"\\{name}"
    if ranges == inverted(NEWLINE):
        return "."
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0], META)
    negative = ranges[-1:] and ranges[-1][1] == ALL[0][1] and ranges != ALL
    shown = inverted(ranges) if negative else ranges
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
