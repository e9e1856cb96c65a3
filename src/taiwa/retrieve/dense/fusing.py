"""Two rankings as one, by ranks alone: scores of words and of vectors are of different kinds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from taiwa.kernel.values import Message, Passage
from taiwa.retrieve.dense.embedder import Embedder
from taiwa.retrieve.index import NOBODY, Index

__all__ = ["Fused", "reciprocal_ranks"]

EASE = 60
"""How little the first places count for more than the next (Cormack, Clarke, Buettcher 2009)."""
DEEP = 50
"""Passages of each ranking that are looked at."""
BATCH = 64


def reciprocal_ranks(rankings: Iterable[Sequence[Passage]], k: int) -> tuple[Passage, ...]:
    """Return the k passages that stand highest in the rankings together; the score is the sum of 1 / (60 + rank)."""
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            scores[passage.id] = scores.get(passage.id, 0.0) + 1 / (EASE + rank)
            passages.setdefault(passage.id, passage)
    best = sorted(scores, key=lambda one: -scores[one])[: max(k, 0)]
    return tuple(replace(passages[one], score=scores[one]) for one in best)


class Fused:
    """An index asked by words and by meaning; it finds as the index does until `gain_of` has shown a gain."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self.index = index
        self.embedder = embedder

    def __repr__(self) -> str:
        return f"Fused({self.index.name!r}, {self.embedder.name!r})"

    @property
    def fuses(self) -> bool:
        """Whether a check has shown that fusing finds more here."""
        gain = self.index.shelf.gain(self.embedder.name)
        return gain is not None and gain.helps

    def refresh(self) -> int:
        """Make the vectors that are not there yet, and return how many; an interrupted run goes on where it was."""
        made = 0
        while batch := self.index.shelf.without_vectors(self.embedder.name, BATCH):
            texts = ["\n".join((*passage.heading, passage.text)) for passage in batch]
            vectors = self.embedder.embed(texts, "passage")
            self.index.shelf.put_vectors(
                self.embedder.name, [(passage.id, row) for passage, row in zip(batch, vectors, strict=True)]
            )
            made += len(batch)
        return made

    def find(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages, best first: by words, or by both where that was shown to be better."""
        if not self.fuses:
            return self.index.find(query, k, who, history)
        return self.both(query, k, who, history)

    def both(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages by both, whatever a check has shown."""
        names = frozenset(who)
        said = [message.text for message in history if message.role == "user"]
        vector = self.embedder.embed([" ".join([*said[-1:], query])], "question")[0]
        near = self.index.shelf.nearest(self.embedder.name, vector, max(DEEP, k), names)
        return reciprocal_ranks((self.index.find(query, max(DEEP, k), names, history), near), k)
