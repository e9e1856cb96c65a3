"""Passages held in memory and found by the words they share with a query: for flows, tests and small collections."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from unicodedata import normalize

from taiwa.kernel.values import Passage

__all__ = ["InMemory", "terms"]

# What has no spaces between words, or glues endings to them: kana, Chinese characters, Hangul.
CJK = r"\u3005\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
RUN = re.compile(rf"(?P<cjk>[{CJK}]+)|(?:(?![{CJK}])\w)+")


class InMemory:
    """A retriever over the given passages.

    The score is the part of the query that a passage holds, 0 to 1, where a rare term counts for more (inverse document
    frequency). Of two passages that hold the same, the shorter comes first.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        self._held = tuple(frozenset(terms(passage.text)) for passage in self._passages)
        self._holders = Counter(term for held in self._held for term in held)

    def __repr__(self) -> str:
        return f"InMemory({len(self._passages)} passages)"

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the query, best first."""
        weights = {term: self._weight(term) for term in terms(query)}
        whole = math.fsum(weights.values())
        found: list[tuple[float, int, Passage]] = []
        for passage, held in zip(self._passages, self._held, strict=True):
            if shared := math.fsum(weight for term, weight in weights.items() if term in held):
                found.append((-shared / whole, len(held), replace(passage, score=shared / whole)))
        found.sort(key=lambda each: each[:2])
        return tuple(passage for _, _, passage in found[: max(k, 0)])

    def _weight(self, term: str) -> float:
        return math.log1p(len(self._passages) / (1 + self._holders[term]))


def terms(text: str) -> Iterator[str]:
    """Split text into what is compared: words in small letters, and pairs of neighbours of Chinese characters or kana.

    >>> list(terms("Tokyo 東京タワー、駅"))
    ['tokyo', '東京', '京タ', 'タワ', 'ワー', '駅']
    """
    for run in RUN.finditer(normalize("NFKC", text).casefold()):
        word = run[0]
        if run["cjk"] and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word
