"""Sets of characters as ranges of code points, and the bytes that UTF-8 writes them with."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TypeAlias

__all__ = [
    "ALL",
    "DIGIT",
    "NEWLINE",
    "SPACE",
    "WORD",
    "Ranges",
    "cased",
    "encoded",
    "inverted",
    "joined",
    "named",
    "without_surrogates",
]

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points: in order, and apart from each other."""

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
MOST_NAMED = 12
WIDTHS = ((0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, LAST))
LAST_WITH_CASE = 0x1FFFF


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Bring ranges into order, and make one of those that touch.

    >>> joined([(5, 9), (1, 2), (3, 3), (6, 7)])
    ((1, 3), (5, 9))
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def inverted(ranges: Ranges) -> Ranges:
    """Every character that is not in the ranges."""
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
    """The ranges, less what stands for no character."""
    return inverted(joined((*inverted(ranges), SURROGATES)))


def cased(ranges: Ranges) -> Ranges:
    """The ranges, and the other case of every letter in them."""
    more = (
        (other, other)
        for low, high in ranges
        for here, others in _cases().items()
        if low <= here <= high
        for other in others
    )
    return joined((*ranges, *more))


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
def encoded(ranges: Ranges) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The ranges as UTF-8 writes them: sequences of one to four ranges of bytes. Surrogates have no bytes.

    >>> encoded(((0x24, 0x24), (0x3042, 0x3044)))
    (((36, 36),), ((227, 227), (129, 129), (130, 132)))
    """
    return tuple(
        sequence
        for low, high in ranges
        for below, above in WIDTHS
        for sequence in _whole(max(low, below), min(high, above))
    )


def _whole(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Ranges of characters of one width, cut so that each byte's range is free of the others'."""
    first, last = SURROGATES
    if low <= last and high >= first:
        yield from _whole(low, min(high, first - 1))
        yield from _whole(max(low, last + 1), high)
    elif low <= high:
        yield from _cut(low, high, 6)


def _cut(low: int, high: int, bits: int) -> Iterator[tuple[tuple[int, int], ...]]:
    below = (1 << bits) - 1
    if high <= 0x7F or low >> bits == high >> bits:
        yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
    elif low & below:
        yield from _cut(low, low | below, bits)
        yield from _cut((low | below) + 1, high, bits)
    elif high & below != below:
        yield from _cut(low, (high & ~below) - 1, bits)
        yield from _cut(high & ~below, high, bits)
    else:
        yield from _cut(low, high, bits + 6)


def named(ranges: Ranges) -> str:
    """Write ranges for people.

    >>> named(((0x30, 0x39), (0x6587, 0x6587)))
    "'0'…'9', '文'"
    >>> print(named(inverted(((0x22, 0x22),))))
    any character but '"'
    """
    whole = joined((*ranges, SURROGATES))  # which no text has: they interrupt nothing
    ranges = whole if len(whole) <= len(ranges) else ranges
    if ranges == ALL:
        return "any character"
    others = inverted(ranges)
    if ranges[-1][1] == LAST and len(others) <= len(ranges):
        return f"any character but {_listed(others)}"
    return _listed(ranges)


def _listed(ranges: Ranges) -> str:
    shown = [repr(chr(low)) if low == high else f"{chr(low)!r}…{chr(high)!r}" for low, high in ranges[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(ranges) > MOST_NAMED else "")
