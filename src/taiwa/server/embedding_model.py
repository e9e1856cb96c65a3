"""The embedding model of a server."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from taiwa.models.http_api.embeddings import open_embedder
from taiwa.settings import Settings

if TYPE_CHECKING:
    from taiwa.retrieval.embedding import Embedder, Vectors


class EmbeddingModel:
    """The model that makes vectors, opened at the first request: the folder of a sentence model, or a model on a server."""

    def __init__(self, place: str, settings: Settings) -> None:
        self.names = tuple(dict.fromkeys((place, Path(place).name if "://" not in place else place)))
        """The names by which a request may call it."""
        self._place = place
        self._settings = settings
        self._embedder: Embedder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return one vector of length 1 for each text; a text that is too long for the model is cut.

        Raises:
            ConfigError: the model does not exist, or its key is missing.
            ModelError: the call failed.
        """
        with self._lock:
            if self._embedder is None:
                self._embedder = open_embedder(self._place, self._settings)
            return self._embedder.embed(texts, "passage")
