"""An index asked by words and by meaning."""

import time
from collections.abc import Callable, Iterable, Sequence

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.values import Message, Passage
from taiwa.retrieve.dense.embedder import Embedder
from taiwa.retrieve.index import NOBODY, Index, Near
from taiwa.retrieve.ranks import DEEP, reciprocal_ranks

__all__ = ["Fused"]

BATCH = 64
PAUSE = 30.0
"""Seconds for which an embedder that failed is not asked again."""
WAIT = 600.0


class Fused(Index):
    """An index asked by words and by meaning; it finds as the index does until `gain_of` has shown a gain.

    `always` fuses whatever was shown. A question whose embedder fails is answered by words alone, and `trouble` says why.
    """

    def __init__(
        self, index: Index, embedder: Embedder, *, always: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(index.shelf)
        self.embedder = embedder
        self.always = always
        self._clock = clock
        self._failed_at = -PAUSE

    def __repr__(self) -> str:
        return f"Fused({self.name!r}, {self.embedder.name!r})"

    @property
    def fuses(self) -> bool:
        """Whether a check has shown that fusing finds more here, or nobody asks for one."""
        gain = self.shelf.gain(self.embedder.name)
        return self.always or (gain is not None and gain.helps)

    def make_vectors(self, progress: Callable[[int], None] | None = None) -> int:
        """Make the vectors that are not there yet, and return how many; an interrupted run goes on where it was.

        Raises:
            TaiwaError: the embedder failed; what it made so far is kept.
        """
        made = 0
        model = self.embedder.name
        while True:
            # Held for one batch at a time: two processes share the work, and none waits long.
            with self.shelf.writing(WAIT):
                batch = self.shelf.without_vectors(model, BATCH)
                vectors = self.embedder.embed([text_of(passage) for passage in batch], "passage") if batch else ()
                named = [(passage.id, row) for passage, row in zip(batch, vectors, strict=True)]
                self.shelf.put_vectors(model, named)
            if not batch:
                return made
            made += len(batch)
            if progress is not None:
                progress(made)

    def find(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages, best first: by words, or by both where that was shown to be better."""
        near = self.near(query, max(DEEP, k), who, history) if k > 0 else None
        if near is None:
            return self.by_words(query, k, who, history)
        return reciprocal_ranks((self.by_words(query, max(DEEP, k), who, history), near.passages), k)

    def near(self, query: str, k: int, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()) -> Near | None:
        """Return what is near in meaning; None where fusing was not shown to help, or the embedder fails."""
        if not self.fuses or self._clock() - self._failed_at < PAUSE:
            return None
        try:
            near = self._nearest(query, k, frozenset(who), history)
        except TaiwaError as error:
            self._failed_at = self._clock()
            self.trouble = f"{self.name}: found by words alone, as its embedder fails: {error.message}"
            return None
        self.trouble = ""
        return Near(self.embedder.name, near)

    def both(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages by both, whatever a check has shown.

        Raises:
            TaiwaError: the embedder failed.
        """
        names = frozenset(who)
        words = self.by_words(query, max(DEEP, k), names, history)
        return reciprocal_ranks((words, self._nearest(query, max(DEEP, k), names, history)), k)

    def _nearest(self, query: str, k: int, who: frozenset[str], history: Sequence[Message]) -> tuple[Passage, ...]:
        said = [message.text for message in history if message.role == "user"]
        vector = self.embedder.embed([" ".join([*said[-1:], query])], "question")[0]
        return self.shelf.nearest(self.embedder.name, vector, k, who)


def text_of(passage: Passage) -> str:
    """What of a passage is embedded."""
    return "\n".join((*passage.heading, passage.text))
