"""Statistics of shares and rankings, with intervals and paired tests.

Shares have Wilson's interval (JASA 22, 1927); two settings are compared by McNemar's exact test on pairs (Psychometrika 12,
1947). Means have percentile bootstrap intervals over the questions. nDCG is that of Järvelin and Kekäläinen (2002) with grades 0
and 1.
"""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from taiwa.kernel.records import value

T = TypeVar("T")
Interval = tuple[float, float]
NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
DRAWS = 1_000


@value(tag="proportion")
class Proportion:
    """`count` of `of`."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share; None if `of` is 0."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> Interval | None:
        """The Wilson interval at 95 %; None if `of` is 0."""
        return wilson(self.count, self.of) if self.of else None


@value(tag="paired-difference")
class PairedComparison:
    """Two settings on the same items: the numbers that only the one or only the other got right, of `pairs`."""

    only_this: int
    only_that: int
    pairs: int

    @property
    def p(self) -> float:
        """The two-sided exact p-value."""
        return mcnemar(self.only_this, self.only_that)


def wilson(count: int, of: int, z: float = NORMAL_95) -> Interval:
    """Return the Wilson score interval of a share.

    >>> low, high = wilson(15, 148)
    >>> round(low, 4), round(high, 4)
    (0.0624, 0.1605)
    """
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is not a share")
    share, square = count / of, z * z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends floating-point arithmetic would miss 0 and 1 by the last digit.
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == of else min(1.0, middle + half)
    return low, high


def mcnemar(only_this: int, only_that: int) -> float:
    """Return the probability of a division of the discordant pairs at least as uneven, if neither setting is better.

    >>> mcnemar(1, 9)
    0.021484375
    """
    pairs, fewer = only_this + only_that, min(only_this, only_that)
    if fewer < 0:
        raise ValueError("a number of pairs must not be negative")
    tail = sum(math.comb(pairs, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**pairs)))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of an empty sequence."""
    return math.fsum(values) / len(values) if values else None


def quantile(values: Sequence[float], part: float = 0.5) -> float | None:
    """Return the value below which `part` of the values lie, the median by default; None of an empty sequence."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else None


def bootstrap(values: Sequence[T], statistic: Callable[[Sequence[T]], float]) -> Interval | None:
    """Return the percentile interval of a statistic at 95 %; the draws are seeded by the number of values."""
    if not values:
        return None
    chance = random.Random(len(values))  # noqa: S311  (repeatable draws, not a secret)
    drawn = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS) - 1]


def bootstrap_mean(values: Sequence[float]) -> Interval | None:
    """Return the bootstrap interval of the mean at 95 %; None of an empty sequence."""
    return bootstrap(values, lambda drawn: math.fsum(drawn) / len(drawn))


def ndcg(ranking: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first k; a duplicate counts once.

    >>> ndcg(["a", "b"], ["b"], 10)
    0.6309297535714575
    """
    right = set(relevant)
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(dict.fromkeys(ranking[:k])) if one in right)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(k, len(right)))) if right else 0.0


def recall(ranking: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the share of the relevant that is among the first k."""
    right = set(relevant)
    return len(right & set(ranking[:k])) / len(right) if right else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Sequence[str]) -> float:
    """Return one divided by the rank of the first relevant element; 0 without one."""
    right = set(relevant)
    return next((1 / place for place, one in enumerate(ranking, 1) if one in right), 0.0)
