"""Several rankings as one, by ranks alone: scores of words and of vectors are of different kinds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from taiwa.kernel.values import Passage

__all__ = ["DEEP", "reciprocal_ranks"]

EASE = 60
"""How little the first places count for more than the next (Cormack, Clarke, Buettcher 2009)."""
DEEP = 50
"""Passages of each ranking that are looked at."""


def reciprocal_ranks(rankings: Iterable[Sequence[Passage | None]], k: int) -> tuple[Passage, ...]:
    """Return the k passages that stand highest in the rankings together; the score is the sum of 1 / (60 + rank).

    None holds a place without being a passage.
    """
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            if passage is not None:
                scores[passage.id] = scores.get(passage.id, 0.0) + 1 / (EASE + rank)
                passages.setdefault(passage.id, passage)
    best = sorted(scores, key=lambda one: -scores[one])[: max(k, 0)]
    return tuple(replace(passages[one], score=scores[one]) for one in best)
