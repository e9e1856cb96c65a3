"""Statistics of shares, rankings, scores and probabilities, with intervals and paired tests.

Shares have Wilson's interval (JASA 22, 1927); two settings are compared by McNemar's exact test on pairs (Psychometrika 12,
1947). The area under the curve has DeLong's interval (Biometrics 44, 1988); means and F1 have percentile bootstrap intervals
over the questions. nDCG is that of Järvelin and Kekäläinen (2002) with grades 0 and 1.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from taiwa.kernel.records import value

T = TypeVar("T")
Interval = tuple[float, float]
NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
DRAWS = 1_000
BINS = 10


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


@value
class OperatingPoint:
    """A threshold on scores: precision and recall of the positives, and the share of negatives above it."""

    precision: Proportion
    recall: Proportion
    false: Proportion


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


def _bootstrap(values: Sequence[T], statistic: Callable[[Sequence[T]], float]) -> Interval | None:
    """Return the percentile interval of a statistic; the draws are seeded by the number of values."""
    if not values:
        return None
    chance = random.Random(len(values))  # noqa: S311  (repeatable draws, not a secret)
    found = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return found[int(0.025 * DRAWS)], found[int(0.975 * DRAWS) - 1]


def bootstrap_mean(values: Sequence[float]) -> Interval | None:
    """Return the bootstrap interval of the mean at 95 %; None of an empty sequence."""
    return _bootstrap(values, lambda drawn: math.fsum(drawn) / len(drawn))


def ndcg(found: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first k; a duplicate counts once.

    >>> ndcg(["a", "b"], ["b"], 10)
    0.6309297535714575
    """
    right = set(relevant)
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(dict.fromkeys(found[:k])) if one in right)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(k, len(right)))) if right else 0.0


def recall(found: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Return the share of the relevant that is among the first k."""
    right = set(relevant)
    return len(right & set(found[:k])) / len(right) if right else 0.0


def reciprocal_rank(found: Sequence[str], relevant: Sequence[str]) -> float:
    """Return one divided by the rank of the first relevant element; 0 without one."""
    right = set(relevant)
    return next((1 / place for place, one in enumerate(found, 1) if one in right), 0.0)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> tuple[float, Interval] | None:
    """Return the probability that a positive scores above a negative, with its interval; None if either is missing.

    >>> auc([0.9, 0.4, 0.6, 0.1], [True, True, False, False])[0]
    0.75
    """
    positives = sorted(score for score, label in zip(scores, labels, strict=True) if label)
    negatives = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    if not positives or not negatives:
        return None
    above = [_share_below(score, negatives) for score in positives]
    below = [1 - _share_below(score, positives) for score in negatives]
    area = math.fsum(above) / len(above)
    half = NORMAL_95 * math.sqrt(_variance(above) / len(above) + _variance(below) / len(below))
    return area, (max(0.0, area - half), min(1.0, area + half))


def _share_below(score: float, ordered: Sequence[float]) -> float:
    """Return the share of the others that is lower; ties count half."""
    return (bisect_left(ordered, score) + bisect_right(ordered, score)) / (2 * len(ordered))


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    middle = math.fsum(values) / len(values)
    return math.fsum((each - middle) ** 2 for each in values) / (len(values) - 1)


def operating_point(scores: Sequence[float], labels: Sequence[bool], max_false: float = 0.05) -> OperatingPoint:
    """Choose the lowest threshold with at most this share of negatives above it, on these very questions."""
    negatives = sum(not label for label in labels)
    best = OperatingPoint(Proportion(0, 0), Proportion(0, sum(labels)), Proportion(0, negatives))
    right = false = 0
    ranked = sorted(zip(scores, labels, strict=True), key=lambda each: -each[0])
    for at, (score, label) in enumerate(ranked):
        right, false = right + label, false + (not label)
        tied = at + 1 < len(ranked) and ranked[at + 1][0] == score
        if false > max_false * negatives:
            break
        if not tied:
            precision = Proportion(right, right + false)
            best = OperatingPoint(precision, Proportion(right, sum(labels)), Proportion(false, negatives))
    return best


def f1(predicted: Sequence[bool], labels: Sequence[bool]) -> float:
    """Return the harmonic mean of precision and recall; 0 without a true positive."""
    right = sum(one and label for one, label in zip(predicted, labels, strict=True))
    whole = sum(predicted) + sum(labels)
    return 2 * right / whole if whole else 0.0


def bootstrap_f1(predicted: Sequence[bool], labels: Sequence[bool]) -> Interval | None:
    """Return the bootstrap interval of F1 at 95 %; None of an empty sequence."""
    return _bootstrap([*zip(predicted, labels, strict=True)], lambda pairs: f1(*zip(*pairs, strict=True)))


def mean_cost(predicted: Sequence[bool], labels: Sequence[bool], ratio: float) -> float | None:
    """Return the mean cost, where a false positive costs 1 and a false negative costs `ratio`."""
    pairs = [*zip(predicted, labels, strict=True)]
    return mean([ratio if label and not one else float(one and not label) for one, label in pairs])


def brier(chances: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Return the mean squared error of probabilities (Brier score)."""
    return mean([(chance - label) ** 2 for chance, label in zip(chances, labels, strict=True)])


def calibration_error(chances: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Return the expected calibration error of probabilities in ten bins of equal width.

    >>> calibration_error([0.9, 0.9, 0.1], [True, False, False])
    0.3
    """
    if not chances:
        return None
    bins: dict[int, list[tuple[float, bool]]] = {}
    for chance, label in zip(chances, labels, strict=True):
        bins.setdefault(min(int(chance * BINS), BINS - 1), []).append((chance, label))
    apart = [abs(math.fsum(chance for chance, _ in each) - sum(label for _, label in each)) for each in bins.values()]
    return round(math.fsum(apart) / len(chances), 12)
