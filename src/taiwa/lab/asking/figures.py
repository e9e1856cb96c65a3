"""Figures of rankings, of scores and of probabilities, with how sure they are.

The area under the curve has DeLong's interval (Biometrics 44, 1988), means and F1 that of a percentile bootstrap over the
questions; what is compared is drawn in pairs. nDCG is that of Järvelin and Kekäläinen (2002), with grades 0 and 1.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from taiwa.kernel.records import value
from taiwa.lab.evaluation.intervals import NORMAL_95, Share

__all__ = ["Chosen", "auc", "brier", "calibration", "cost", "drawn", "f1", "f1_interval", "mean", "median", "ndcg", "operating", "recall", "reciprocal"]  # fmt: skip

DRAWS = 1_000
BINS = 10
Interval = tuple[float, float]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def median(values: Sequence[float], part: float = 0.5) -> float | None:
    """The value below which a part of all lies; None of nothing."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else None


def drawn(values: Sequence[float]) -> Interval | None:
    """Between what the mean of so many questions lies, 95 times of 100 draws; None of nothing."""
    if not values:
        return None
    chance, size = random.Random(size_of(values)), len(values)  # noqa: S311  (a draw that repeats, no secret)
    means = sorted(math.fsum(chance.choices(values, k=size)) / size for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def size_of(values: Sequence[object]) -> int:
    """The seed of a draw: the same values are drawn alike."""
    return len(values)


def ndcg(found: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first k; what is found twice counts once.

    >>> ndcg(["a", "b"], ["b"], 10)
    0.6309297535714575
    """
    right = set(relevant)
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(dict.fromkeys(found[:k])) if one in right)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(k, len(right)))) if right else 0.0


def recall(found: Sequence[str], relevant: Sequence[str], k: int) -> float:
    """The part of what is relevant that is among the first k."""
    right = set(relevant)
    return len(right & set(found[:k])) / len(right) if right else 0.0


def reciprocal(found: Sequence[str], relevant: Sequence[str]) -> float:
    """One divided by the place of the first that is relevant."""
    right = set(relevant)
    return next((1 / place for place, one in enumerate(found, 1) if one in right), 0.0)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> tuple[float, Interval] | None:
    """How often a positive has the higher score than a negative, with its interval; None where one of both is missing.

    >>> auc([0.9, 0.4, 0.6, 0.1], [True, True, False, False])[0]
    0.75
    """
    positives = sorted(score for score, label in zip(scores, labels, strict=True) if label)
    negatives = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    if not positives or not negatives:
        return None
    above = [_below(score, negatives) for score in positives]
    below = [1 - _below(score, positives) for score in negatives]
    area = math.fsum(above) / len(above)
    half = NORMAL_95 * math.sqrt(_variance(above) / len(above) + _variance(below) / len(below))
    return area, (max(0.0, area - half), min(1.0, area + half))


def _below(score: float, ordered: Sequence[float]) -> float:
    """The part of the others that is lower; what is equal counts half."""
    return (bisect_left(ordered, score) + bisect_right(ordered, score)) / (2 * len(ordered))


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    middle = math.fsum(values) / len(values)
    return math.fsum((each - middle) ** 2 for each in values) / (len(values) - 1)


@value
class Chosen:
    """What a cut comes to: of the asked those that had to be, and of those that had to be the asked; false ones of the others."""

    precision: Share
    recall: Share
    false: Share


def operating(scores: Sequence[float], labels: Sequence[bool], most: float = 0.05) -> Chosen:
    """Cut the scores so low that at most this part of the negatives is asked; the cut is chosen on these very questions."""
    negatives = sum(not label for label in labels)
    best = Chosen(Share(0, 0), Share(0, sum(labels)), Share(0, negatives))
    right = false = 0
    ranked = sorted(zip(scores, labels, strict=True), key=lambda each: -each[0])
    for at, (score, label) in enumerate(ranked):
        right, false = right + label, false + (not label)
        tied = at + 1 < len(ranked) and ranked[at + 1][0] == score
        if false > most * negatives:
            break
        if not tied:
            best = Chosen(Share(right, right + false), Share(right, sum(labels)), Share(false, negatives))
    return best


def f1(asked: Sequence[bool], labels: Sequence[bool]) -> float:
    """The harmonic mean of precision and recall; 0 where nothing was asked that had to be."""
    right = sum(one and label for one, label in zip(asked, labels, strict=True))
    whole = sum(asked) + sum(labels)
    return 2 * right / whole if whole else 0.0


def f1_interval(asked: Sequence[bool], labels: Sequence[bool]) -> Interval | None:
    """Between what F1 lies, by draws of the questions."""
    return _redrawn([*zip(asked, labels, strict=True)], lambda pairs: f1(*zip(*pairs, strict=True)))


def _redrawn(
    pairs: Sequence[tuple[bool, bool]], figure: Callable[[Sequence[tuple[bool, bool]]], float]
) -> Interval | None:
    if not pairs:
        return None
    chance = random.Random(size_of(pairs))  # noqa: S311  (a draw that repeats, no secret)
    found = sorted(figure(chance.choices(pairs, k=len(pairs))) for _ in range(DRAWS))
    return found[int(0.025 * DRAWS)], found[int(0.975 * DRAWS) - 1]


def cost(asked: Sequence[bool], labels: Sequence[bool], ratio: float) -> float | None:
    """What a question costs on average, where a needless question back costs 1 and a missing one `ratio`."""
    pairs = [*zip(asked, labels, strict=True)]
    return mean([ratio if label and not one else float(one and not label) for one, label in pairs])


def brier(chances: Sequence[float], labels: Sequence[bool]) -> float | None:
    """The mean squared error of probabilities."""
    return mean([(chance - label) ** 2 for chance, label in zip(chances, labels, strict=True)])


def calibration(chances: Sequence[float], labels: Sequence[bool]) -> float | None:
    """How far probabilities are from what came true, in ten bins of equal width (expected calibration error).

    >>> calibration([0.9, 0.9, 0.1], [True, False, False])
    0.3
    """
    if not chances:
        return None
    bins: dict[int, list[tuple[float, bool]]] = {}
    for chance, label in zip(chances, labels, strict=True):
        bins.setdefault(min(int(chance * BINS), BINS - 1), []).append((chance, label))
    apart = [abs(math.fsum(chance for chance, _ in each) - sum(label for _, label in each)) for each in bins.values()]
    return round(math.fsum(apart) / len(chances), 12)
