"""What turns texts into vectors: a folder with a model here, an endpoint elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from taiwa.kernel.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MISSING", "Embedder", "Vectors", "numpy", "unit_rows"]

Vectors: TypeAlias = "NDArray[np.float32]"
"""One row per text, each of length 1."""
MISSING = "needs the extra dense: pip install 'taiwa[dense]'"


class Embedder(Protocol):
    """Turns texts into vectors whose products say how near they are in meaning."""

    @property
    def name(self) -> str:
        """Names the model for good: vectors of another name are of no use to it."""
        ...

    def embed(self, texts: Sequence[str], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text."""
        ...


def unit_rows(rows: "Sequence[Sequence[float]]") -> Vectors:
    """Make vectors of length 1; one of zeros stays as it is, and is near to nothing.

    Raises:
        ValueError: they have not all the same number of numbers, or one is no finite number.
    """
    np = numpy("a search by meaning")
    if len({len(row) for row in rows}) > 1 or not all(len(row) for row in rows):
        raise ValueError("vectors of different lengths")
    made = np.asarray(rows, np.float32)
    lengths = np.linalg.norm(made.astype(np.float64), axis=-1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ValueError("a number that is not finite")
    unit: Vectors = (made / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit


def numpy(who: str) -> Any:  # noqa: ANN401  (the module, which need not be there)
    """Return the module.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import numpy as np
    except ImportError:
        raise ConfigError(f"{who} {MISSING}") from None
    return np
