"""What turns texts into vectors: a folder with a model here, an endpoint elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "Vectors"]

Vectors: TypeAlias = "NDArray[np.float32]"
"""One row per text, each of length 1."""


class Embedder(Protocol):
    """Turns texts into vectors whose products say how near they are in meaning."""

    @property
    def name(self) -> str:
        """Names the model for good: vectors of another name are of no use to it."""
        ...

    def embed(self, texts: Sequence[str], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text."""
        ...
