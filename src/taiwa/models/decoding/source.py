"""What a model in this process must be able to do; structural, there is nothing to inherit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from taiwa.constraints.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logits: TypeAlias = NDArray[np.float32]
    Rows: TypeAlias = NDArray[np.intp]

__all__ = ["Bundle", "Source", "Track"]


class Track(Protocol):
    """One text as far as a model has read it, with what the model keeps of it (keys and values)."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that were read."""
        ...

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read at least one more token, all in one go, and say what follows the last one.

        The logits of all tokens, (V,), or of those in `rows` alone, (len(rows),): the rest of the output head is not
        computed. float32. They may be overwritten by the next call.
        """
        ...

    def rollback(self, count: int) -> None:
        """Forget the last `count` tokens."""
        ...

    def fork(self) -> "Track":
        """The same text on a track of its own."""
        ...

    def bundle(self, count: int) -> "Bundle | None":
        """The same text `count` times, to be continued side by side; None where the model cannot."""
        ...


class Bundle(Protocol):
    """Several texts that a model reads side by side, in one pass of its weights."""

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text, as many of each as there are; for each as `Track.read`."""
        ...

    def keep(self, places: Sequence[int]) -> None:
        """Go on with the texts at these places only."""
        ...


class Source(Protocol):
    """A model that gives logits."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""
        ...

    @property
    def context(self) -> int:
        """How many tokens a text may have in all."""
        ...

    def start(self) -> Track:
        """An empty text."""
        ...
