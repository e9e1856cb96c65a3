"""Look several queries up and make one ranking of what they found."""

from collections.abc import Sequence
from dataclasses import replace

from taiwa.flows.acts import key_of
from taiwa.kernel.effects import Program, Retrieve, gather, perform
from taiwa.kernel.values import Passage

__all__ = ["find", "fuse"]

RANK = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""


def fuse(rankings: Sequence[Sequence[Passage]], k: int) -> tuple[Passage, ...]:
    """Fuse rankings by the reciprocal ranks of each passage; a single ranking stays as it is.

    >>> a, b, c = (Passage(name, name, 1.0) for name in "abc")
    >>> [each.source for each in fuse(((a, b), (b, c)), 2)]
    ['b', 'a']
    """
    filled = [ranking for ranking in rankings if ranking]
    if len(filled) < 2:
        return tuple(filled[0][: max(k, 0)]) if filled else ()
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in filled:
        for place, passage in enumerate(ranking, 1):
            name = key_of(passage)
            scores[name] = scores.get(name, 0.0) + 1 / (RANK + place)
            passages.setdefault(name, passage)
    ranked = sorted(scores, key=lambda name: -scores[name])
    return tuple(replace(passages[name], score=scores[name]) for name in ranked[: max(k, 0)])


def find(queries: Sequence[str], k: int, known: Sequence[Sequence[Passage]] = ()) -> Program[tuple[Passage, ...]]:
    """Look queries up side by side, each of which stands alone, and fuse what was found with what is known already."""
    found = yield from gather(perform(Retrieve(query, k)) for query in queries)
    return fuse((*known, *found), k)
