"""Several texts that a model of transformers reads side by side.

The texts move on by different numbers of tokens, because some of theirs are forced. What is read is filled up on the left to
the longest of them; the mask hides the filling, and each token has the position that it has in its own text.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from taiwa.models.local.library import torch

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits, Rows
    from taiwa.models.local.network import Network, NetworkTrack

__all__ = ["NetworkBundle"]

MOST_ROWS = 8_192
"""So many rows of the output head are computed for all texts at once; for more of them, all are."""


class NetworkBundle:
    """One text many times over, each to go on in its own way; see `taiwa.models.decoding.source.Bundle`."""

    def __init__(self, network: "Network", track: "NetworkTrack", count: int) -> None:
        library = torch()
        self._network = network
        self._cache = track.cache
        self._lengths = [len(track.tokens)] * count
        self._mask = library.ones((count, len(track.tokens)), dtype=library.long, device=network.device)
        if track.tokens:
            with library.inference_mode():
                self._cache.batch_repeat_interleave(count)

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text, and give the logits behind the last of each."""
        import numpy as np

        library, device = torch(), self._network.device
        width, count = max(map(len, tokens)), len(tokens)
        ids = np.full((count, width), self._network.vocabulary.end[0], dtype=np.int64)
        seen, places = np.zeros_like(ids), np.zeros_like(ids)
        for number, given in enumerate(tokens):
            here = slice(width - len(given), width)
            ids[number, here], seen[number, here] = given, 1
            places[number, here] = range(self._lengths[number], self._lengths[number] + len(given))
            self._lengths[number] += len(given)
        self._mask = library.cat([self._mask, library.from_numpy(seen).to(device)], dim=1)
        every = _union(rows)
        found = self._network.run(
            every,
            input_ids=library.from_numpy(ids).to(device),
            position_ids=library.from_numpy(places).to(device),
            attention_mask=self._mask,
            past_key_values=self._cache,
        ).numpy()
        if every is None:
            return [line if few is None else line[few] for line, few in zip(found, rows, strict=True)]
        return [line[np.searchsorted(every, few)] for line, few in zip(found, rows, strict=True) if few is not None]

    def keep(self, places: Sequence[int]) -> None:
        """Go on with the texts at these places only."""
        library = torch()
        chosen = library.tensor(list(places), device=self._network.device)
        with library.inference_mode():
            self._cache.batch_select_indices(chosen)
        self._mask = self._mask[chosen]
        self._lengths = [self._lengths[place] for place in places]


def _union(rows: "Sequence[Rows | None]") -> "Rows | None":
    """The rows that some text wants; None for all."""
    import numpy as np

    few = [each for each in rows if each is not None]
    if len(few) < len(rows):
        return None
    every = np.unique(np.concatenate(few))
    return every if len(every) <= MOST_ROWS else None
