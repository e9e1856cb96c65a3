"""A text that is read with a cache of keys and values: what is the same whoever reckons."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits, Rows

__all__ = ["CHUNK", "CachedTrack"]

Array: TypeAlias = NDArray[np.float32]
CHUNK = 256
"""So many tokens are read at a time: attention takes memory for each pair of a new and an old one."""
ROOM = 128
"""For so many tokens a cache is made at first; it doubles as a text grows."""


class CachedTrack(ABC):
    """A text as far as a model has read it; see `taiwa.models.decoding.source.Track`. The cache is (…, places, width)."""

    def __init__(self, context: int, axes: Sequence[int], width: int) -> None:
        self._context = context
        self.tokens: list[int] = []
        self.cache: Array = np.zeros((*axes, min(ROOM, context), width), np.float32)

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read more tokens, and give the logits behind the last.

        Raises:
            InputError: the text becomes longer than the model can read.
        """
        total = len(self.tokens) + len(tokens)
        if total > self._context:
            raise InputError(f"the text has {total:,} tokens, and the model reads {self._context:,} at most")
        self._grow(total)
        state: Array | None = None
        for start in range(0, len(tokens), CHUNK):
            part = tokens[start : start + CHUNK]
            state = self._run(part)
            self.tokens.extend(part)
        assert state is not None, "there is nothing behind no token"
        return self._logits(state, rows)

    def rollback(self, count: int) -> None:
        """Forget the last tokens."""
        if count:
            del self.tokens[-count:]

    def fork(self) -> Self:
        """The same text on a track of its own."""
        other = copy(self)
        other.cache = self.cache.copy()
        other.tokens = list(self.tokens)
        return other

    def bundle(self, count: int) -> None:  # noqa: ARG002  (the seam's)
        """Texts are written one after the other: side by side they would hardly be quicker."""
        return

    @abstractmethod
    def _run(self, tokens: Sequence[int]) -> Array:
        """What stands behind the last of some tokens; their keys and values are kept, and there is room for them."""

    @abstractmethod
    def _logits(self, state: Array, rows: "Rows | None") -> "Logits":
        """The logits of all tokens, or of some, from what `_run` gave."""

    def _grow(self, total: int) -> None:
        *axes, room, width = self.cache.shape
        if total <= room:
            return
        while room < total:
            room *= 2
        cache: Array = np.zeros((*axes, min(room, self._context), width), np.float32)
        cache[..., : len(self.tokens), :] = self.cache[..., : len(self.tokens), :]
        self.cache = cache
