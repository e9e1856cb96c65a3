"""What a place that keeps indexes must offer: SQLite with tantivy here, a database server elsewhere.

`Index` and `Library` are written over these two and know no engine. Every implementation passes the tests of
`tests/retrieve/conformance.py`. What somebody may not see is left out before anything is ranked or counted.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from taiwa.kernel.values import Passage
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.values import Batch, Counts, Feedback, Gain, Known, Listed, Meaning, Summary, Who

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Shelf", "Shelves", "Vector"]

Vector: TypeAlias = "NDArray[np.float32]"
"""A vector of length 1."""


class Shelf(Protocol):
    """Where one index is kept."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def root(self) -> str:
        """The folder that it is made from; empty where documents come from elsewhere."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """What turns its texts, and the questions to it, into terms."""
        ...

    def known(self) -> Mapping[str, Known]:
        """Return what is known of every file, by path."""
        ...

    def writing(self, wait: float) -> AbstractContextManager[None]:
        """Be the only one who indexes, until the context ends or the process dies.

        Raises:
            ConflictError: another process indexes here and did not end within `wait` seconds.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Do what a batch says, all or nothing. From then on nobody finds what is gone or was closed to them."""
        ...

    def settle(self) -> None:
        """Make everything committed quick to find; whoever asks first would otherwise wait for it."""
        ...

    def search(self, weights: Mapping[str, float], k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first by BM25 with each term's weight.

        Every score is above zero.
        """
        ...

    def counts(self, terms: Sequence[str], who: Who) -> Counts:
        """Count passages and the holders of terms."""
        ...

    def passage(self, id: str, who: Who) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if it is still there, in that version, and may be seen.

        No two passages of one place have one id, in whatever indexes they are.
        """
        ...

    def documents(self, who: Who | None) -> tuple[Listed, ...]:
        """List documents by path; None is the keeper of the index, who may see all."""
        ...

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document, in its order, for the keeper of the index."""
        ...

    def summary(self, who: Who | None) -> Summary:
        """Describe the index as far as somebody may see it."""
        ...

    def tell(self, feedback: Feedback) -> None:
        """Keep what a person said of a passage."""
        ...

    def told(self) -> tuple[Feedback, ...]:
        """Return all feedback, oldest first."""
        ...

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        ...

    def put_vectors(self, model: str, vectors: "Sequence[tuple[str, Vector]]") -> None:
        """Keep the vectors of passages, by their ids; a passage that is gone meanwhile is passed over."""
        ...

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        ...

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        ...

    def nearest(self, model: str, vector: "Vector", k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first, the score being the cosine."""
        ...

    def judge(self, model: str, gain: Gain) -> None:
        """Keep what a check of a model found."""
        ...

    def gain(self, model: str) -> Gain | None:
        """Return what the last check of a model found."""
        ...

    def meaning(self) -> Meaning | None:
        """Return by which embedder the index is asked by meaning too."""
        ...

    def choose(self, meaning: Meaning | None) -> None:
        """Ask by this embedder from now on, or by words alone."""
        ...


class Shelves(Protocol):
    """A place that keeps indexes by name."""

    def names(self) -> tuple[str, ...]:
        """Name every index, in the order of the alphabet."""
        ...

    def open(self, name: str) -> Shelf:
        """Return an index.

        Raises:
            InputError: there is none of that name.
        """
        ...

    def create(self, name: str, root: str, analyzer: Analyzer) -> Shelf:
        """Return a new, empty index.

        Raises:
            ConflictError: there is one of that name.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete an index and all that it holds.

        Raises:
            InputError: there is none of that name.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
