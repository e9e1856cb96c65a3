"""How much an index has on a question, before anybody answers it: look, then decide whether to ask back.

Each number alone is weak; together they tell answerable questions from others well enough to be worth measuring first
(AUC 0.74 to 0.94 on public sets of questions, Japanese and English).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import pstdev

from taiwa.kernel.records import value
from taiwa.kernel.values import Passage
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.values import Counts

__all__ = ["LOOKED_AT", "Evidence", "judge"]

LOOKED_AT = 10
COVERING = 5
SATURATION = 2.2
"""What a term's frequency multiplies its weight by at most in BM25 with k1 = 1.2."""


@value
class Evidence:
    """What retrieval says of a question; every number is 0 to 1, and 0 where nothing was found.

    `passages` may be seen at all and `found` of them were looked at. `coverage`: the part of what is asked, rare terms
    counting more, that one of the best five passages holds. `top`: the best score as part of the highest thinkable one.
    `nqc`: how much the best scores differ, as part of that (normalised query commitment, Shtok et al. 2012). `unknown`: terms
    that no passage holds. `dangling`: words that point at something said nowhere.
    """

    passages: int = 0
    found: int = 0
    coverage: float = 0.0
    top: float = 0.0
    nqc: float = 0.0
    unknown: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()


def judge(
    analyzer: Analyzer,
    weights: Mapping[str, float],
    found: Sequence[Passage],
    counts: Counts,
    points: tuple[str, ...] = (),
) -> Evidence:
    """Measure the evidence for a weighted question in the best passages that were found for it."""
    rare = {term: weight * _idf(counts, term) for term, weight in weights.items()}
    mass = math.fsum(rare.values())
    unknown = tuple(term for term in weights if not counts.holders.get(term))
    if not found or mass <= 0:
        return Evidence(counts.passages, len(found), unknown=unknown, dangling=points)
    ideal = SATURATION * mass
    held = [frozenset(_terms(analyzer, passage)) for passage in found[:COVERING]]
    coverage = max(math.fsum(weight for term, weight in rare.items() if term in terms) for terms in held) / mass
    scores = [passage.score for passage in found[:LOOKED_AT]]
    top, spread = min(scores[0] / ideal, 1.0), min(pstdev(scores) / ideal, 1.0)
    return Evidence(counts.passages, len(found), min(coverage, 1.0), top, spread, unknown, points)


def _terms(analyzer: Analyzer, passage: Passage) -> list[str]:
    return analyzer.terms("\n".join((passage.title, *passage.heading, "", passage.text)))


def _idf(counts: Counts, term: str) -> float:
    holders = counts.holders.get(term, 0)
    return math.log1p((counts.passages - holders + 0.5) / (holders + 0.5))
