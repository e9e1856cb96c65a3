"""The numbers of a text, as a calculation may write them: digits and words, shares and multiples."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

__all__ = ["CONSTANTS", "Figures", "figures", "written"]

SMALL = 30
"""Every whole number up to this one may be a coefficient, an exponent, or a number of decimals."""
CONSTANTS: Final = frozenset(
    """0 0.001 0.01 0.1 0.25 0.5 0.75 1.5 1.8 2.5 3.6 9.8 9.81 22.4 32 36 40 48 50 52 60 90 100 120 144 180 200 273 273.15 300 360 365
    366 500 600 1000 1440 1500 1760 2000 3600 5280 10000 86400 100000 1000000 3.14 3.1416 0.0821 8.314 6.02 6.022""".split()
).union(map(str, range(1, SMALL + 1)))
"""What a calculation may use without the question having it: hundredths, the parts of hours, years and feet, constants of nature."""
LONGEST = 24
"""Digits of a number that is copied."""
WRITTEN = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
FRACTION = re.compile(r"(?:(\d{1,6}) +)?(\d{1,6})/(\d{1,6})(?![\d/])")
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS: Final = {
    **{word: Decimal(number) for number, word in enumerate(ONES.split())},
    **{word: Decimal(10 * number) for number, word in enumerate(TENS.split(), 2)},
    **dict.fromkeys("a an single once".split(), Decimal(1)),
    **dict.fromkeys("couple pair pairs twice double doubles doubled both".split(), Decimal(2)),
    **dict.fromkeys("thrice triple triples tripled".split(), Decimal(3)),
    **dict.fromkeys("quadruple quadruples quadrupled".split(), Decimal(4)),
}
SCALES: Final = {
    **dict.fromkeys(("hundred", "hundreds"), Decimal(100)),
    **dict.fromkeys(("thousand", "thousands", "k"), Decimal(1000)),
    **dict.fromkeys(("million", "millions"), Decimal(10**6)),
    **dict.fromkeys(("billion", "billions"), Decimal(10**9)),
    **dict.fromkeys(("dozen", "dozens"), Decimal(12)),
    **dict.fromkeys(("score", "scores"), Decimal(20)),
}
SHARES: Final = {
    word: (Decimal(share), Decimal(among))
    for words, share, among in (
        ("half halves halved", "0.5", 2),
        ("third thirds", "0.3333", 3),
        ("quarter quarters", "0.25", 4),
        ("fifth fifths", "0.2", 5),
        ("sixth sixths", "0.1667", 6),
        ("eighth eighths", "0.125", 8),
        ("tenth tenths", "0.1", 10),
        ("hundredth hundredths", "0.01", 100),
    )
    for word in words.split()
}
SINGLE = re.compile(r"(?<=\bhalf) an? |(?<=\band) an? (?=half|third|quarter)")
WORD = re.compile(r"[a-z]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\s\w-]")
PERCENT = re.compile(r"\s?(?:%|percent|per cent|pct)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers as they may be written, and all that they begin with."""

    whole: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()

    def plus(self, numbers: frozenset[str]) -> "Figures":
        """These and others."""
        if numbers <= self.whole:
            return self
        more = {number[:end] for number in numbers for end in range(1, len(number) + 1)}
        return Figures(self.whole | numbers, self.begun | more)


@lru_cache(256)
def figures(text: str) -> frozenset[str]:
    """The numbers of a text.

    >>> sorted(figures("Two and a half dozen eggs at $1,250.50, 15% off"), key=lambda number: (float(number), number))
    ['0.15', '0.5', '0.85', '1.15', '2', '2.5', '12', '15', '30', '1250.5', '1250.50']
    """
    return frozenset(each for each in _all(text) if len(each) <= LONGEST)


def written(text: str) -> frozenset[str]:
    """The numbers of a text that are written with digits, as they stand there and without marks between thousands.

    >>> sorted(written("1,250 g is 2.50 lb"))
    ['1,250', '1250', '2.5', '2.50']
    """
    found = {each for match in WRITTEN.finditer(text) for part in _separate(match[0]) for each in _spellings(part)}
    found |= {match[0] for match in GROUPED.finditer(text)}
    return frozenset(each for each in found if len(each) <= LONGEST)


def _all(text: str) -> Iterator[str]:
    for found in WRITTEN.finditer(text):
        for written in _separate(found[0]):
            yield from _spellings(written)
            if PERCENT.match(text, found.end()):
                share = Decimal(written[:LONGEST]) / 100
                yield from map(_spelled, (share, 1 + share, abs(1 - share)))
    for found in FRACTION.finditer(text):
        below = Decimal(found[3])
        if below:
            share = Decimal(found[2]) / below
            yield from map(_spelled, (share, share + Decimal(found[1] or 0)))
    yield from _worded(text.lower())


def _separate(written: str) -> list[str]:
    """One number with marks between thousands, or several with commas between them."""
    return [written.replace(",", "")] if GROUPED.fullmatch(written) else [each for each in written.split(",") if each]


def _spellings(written: str) -> Iterator[str]:
    yield written
    if written.startswith("."):
        yield f"0{written}"
    yield _spelled(Decimal(written[:LONGEST]))


def _spelled(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _worded(text: str) -> Iterator[str]:
    """Numbers of words, and what they come to on the way: `twenty-five`, `two hundred and six`, `2 and a half dozen`."""
    reading = _Reading()
    for found in WORD.finditer(SINGLE.sub(" ", text)):
        yield from map(_spelled, reading.take(found[0]))


class _Reading:
    """A number of words as far as it was read: `whole` are its thousands, `part` is the rest."""

    def __init__(self) -> None:
        self.whole = self.part = Decimal(0)
        self.last = Decimal(0)
        """What the last word stands for; nought where it was none."""
        self.joined = False

    def take(self, word: str) -> Iterator[Decimal]:
        """Read a word, and give what the number comes to."""
        if word == "and":
            self.joined = True
            return
        number = UNITS.get(word)
        if number is None and word[0].isdecimal():
            number = Decimal(word.replace(",", "")[:LONGEST])
        if number is not None:
            yield self._number(number)
        elif word in SCALES:
            yield from self._scale(SCALES[word])
        elif word in SHARES:
            yield from self._share(*SHARES[word])
        else:
            self.whole = self.part = self.last = Decimal(0)
        self.joined = False

    def _number(self, number: Decimal) -> Decimal:
        goes_on = self.last >= 100 > number or (20 <= self.last < 100 and self.last % 10 == 0 and number < 10)
        if not goes_on and not (self.last >= 1000 > number):
            self.whole = self.part = Decimal(0)
        self.part, self.last = self.part + number, number
        return self.whole + self.part

    def _scale(self, scale: Decimal) -> Iterator[Decimal]:
        yield scale
        self.part = (self.part or (Decimal(1) if not self.whole else Decimal(0))) * scale
        yield self.part
        if scale >= 1000:
            grown = self.whole + self.part if self.whole > scale else self.whole * scale + self.part
            self.whole, self.part = grown, Decimal(0)
        self.last = max(scale, Decimal(100))
        yield self.whole + self.part

    def _share(self, share: Decimal, among: Decimal) -> Iterator[Decimal]:
        yield share
        yield among
        if self.last and self.joined:
            self.part += share
        elif self.last:
            self.whole, self.part = Decimal(0), share * (self.whole + self.part)
        else:
            self.part = share
        self.last = share
        yield self.whole + self.part
