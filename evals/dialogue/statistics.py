"""Statistics of scores, decisions and probabilities on labelled questions.

The area under the curve has DeLong's interval (Biometrics 44, 1988); F1 has a percentile bootstrap interval over the questions.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from taiwa.evals.report import NORMAL_95, Interval, Proportion, bootstrap, mean
from taiwa.kernel.serialization import value

BINS = 10


@value
class OperatingPoint:
    """A threshold on scores: precision and recall of the positives, and the share of negatives above it."""

    precision: Proportion
    recall: Proportion
    false: Proportion


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
    """Choose the lowest threshold with at most this share of negatives above it, on the same questions."""
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
    return bootstrap([*zip(predicted, labels, strict=True)], lambda pairs: f1(*zip(*pairs, strict=True)))


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
