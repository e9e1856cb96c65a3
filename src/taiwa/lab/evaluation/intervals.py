"""How sure a share is, and whether two settings differ: the interval of Wilson, and McNemar's exact test on pairs.

Wilson, Probable inference, JASA 22 (1927); McNemar, Psychometrika 12 (1947), with the exact binomial of the discordant pairs.
"""

from fractions import Fraction
from math import comb, sqrt

from taiwa.kernel.records import value

__all__ = ["Paired", "Share", "mcnemar", "wilson"]

NORMAL_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


@value(tag="proportion")
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its Wilson interval at 95 %; None of nothing."""
        return wilson(self.count, self.of) if self.of else None


@value(tag="paired-difference")
class Paired:
    """What two settings say of the same items: right only in the one, only in the other, and how likely that is by chance."""

    only_this: int
    only_that: int
    pairs: int

    @property
    def p(self) -> float:
        """The two-sided exact p-value."""
        return mcnemar(self.only_this, self.only_that)


def wilson(count: int, of: int, z: float = NORMAL_95) -> tuple[float, float]:
    """The Wilson score interval of a share.

    >>> low, high = wilson(15, 148)
    >>> round(low, 4), round(high, 4)
    (0.0624, 0.1605)
    """
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is no share")
    share, square = count / of, z * z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = z / (1 + square / of) * sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends the arithmetic of floats would leave the interval by its last digit.
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == of else min(1.0, middle + half)
    return low, high


def mcnemar(only_this: int, only_that: int) -> float:
    """How likely a division of the discordant pairs at least so uneven is, if neither setting is better.

    >>> mcnemar(1, 9)
    0.021484375
    """
    pairs, fewer = only_this + only_that, min(only_this, only_that)
    if fewer < 0:
        raise ValueError("a number of pairs is zero or more")
    tail = sum(comb(pairs, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**pairs)))
