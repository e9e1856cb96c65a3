"""Probabilities of levels: read from the likelihoods of labels or from the decision wire, as expected values with confidence."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import cast
from unicodedata import normalize

from taiwa.kernel.errors import ShapeError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Likelihood

__all__ = ["LEAST_MASS", "Reading", "confidence", "decided", "labelled"]

LEAST_MASS = 0.5
"""How much of all probability the labels must hold together: where a model would rather say something else, it was not asked well."""
EDGES = " \t\r\n\u2581\u0120\u010a"
"""White space, and what vocabularies write for it."""


@value(tag="level-distribution")
class Reading:
    """The chance of each level, first to last, and how much of all probability was on levels at all."""

    chances: tuple[float, ...]
    mass: float = 1.0

    @property
    def expected(self) -> float:
        """The expected level, counted from 1."""
        return sum(level * chance for level, chance in enumerate(self.chances, 1))

    @property
    def confidence(self) -> float:
        """How sure it is: 1 where one level holds everything, 0 where all are alike."""
        return confidence(self.chances) * self.mass


def confidence(chances: Sequence[float]) -> float:
    """Return 1 minus the entropy of some chances as a part of the highest there can be.

    >>> confidence((1.0, 0.0)), confidence((0.5, 0.5))
    (1.0, 0.0)
    """
    if len(chances) < 2:
        return 1.0
    entropy = -sum(each * math.log(each) for each in chances if each > 0)
    return min(max(1 - entropy / math.log(len(chances)), 0.0), 1.0)


def labelled(likelihoods: Sequence[Likelihood], labels: Sequence[str]) -> Reading | None:
    """Read the first token of an answer as labels; None where nothing was told or none of them is likely.

    >>> labelled([Likelihood("2", -0.22, (("2", -0.22), (" 1", -1.61), ("No", -9.0)))], "12").chances[1] > 0.79
    True
    """
    if not likelihoods:
        return None
    first = likelihoods[0]
    told = first.likeliest or ((first.token, first.logprob),)
    held = dict.fromkeys(labels, 0.0)
    for token, logprob in dict(told).items():
        label = normalize("NFKC", token).strip(EDGES)
        if label in held:
            held[label] += math.exp(min(logprob, 0.0))
    mass = min(sum(held.values()), 1.0)
    return None if mass <= 0 else Reading(_shares(tuple(held.values())), mass)


def decided(text: str, names: Sequence[str], levels: int) -> Mapping[str, Reading]:
    """Read the answers of the decision wire to some scales.

    Raises:
        ShapeError: an answer is missing, or says nothing that can be read.
    """
    try:
        data = cast("Json", json.loads(text))
    except ValueError:
        data = None
    answers = data if isinstance(data, dict) else {}
    return {name: _scale(name, answers.get(name), levels, text) for name in names}


def _scale(name: str, answer: Json, levels: int, text: str) -> Reading:
    given = answer if isinstance(answer, dict) else {}
    told = given.get("probabilities")
    if isinstance(told, dict):
        chances = tuple(_number(told.get(str(level))) or 0.0 for level in range(levels))
        if sum(chances) > 0:
            return Reading(_shares(chances))
    score = _number(given.get("score"))
    if score is None or score > levels - 1:
        line = f"$.{name}: must have `probabilities` of {levels} levels, or a `score` of 0 to {levels - 1}"
        raise ShapeError(f"the decision wire did not answer: {line}", text=text, diagnostics=(line,))
    low = min(int(score), levels - 2)
    return Reading(
        tuple(max(0.0, 1 - abs(level - score)) if level in (low, low + 1) else 0.0 for level in range(levels))
    )


def _number(data: Json) -> float | None:
    if isinstance(data, bool) or not isinstance(data, (int, float)) or not math.isfinite(data) or data < 0:
        return None
    return float(data)


def _shares(chances: tuple[float, ...]) -> tuple[float, ...]:
    """Make chances sum up to one, in as many digits as any server tells."""
    whole = sum(chances)
    return tuple(round(each / whole, 8) for each in chances)
