"""A guide for those who stay with `generate()` of transformers."""

from typing import Any

from taiwa.constraints.guide import Guide, GuideState, empty_mask
from taiwa.kernel.errors import DeadEndError
from taiwa.models.local.library import torch

__all__ = ["GuideMask"]


class GuideMask:
    """A logits processor that lets through what a guide allows, for one or more texts that `generate()` writes together.

    The text begins where `generate()` begins to write: at the length of the first input that comes. Use a new one for each
    call. Beams are not followed: they go back to places where other tokens were taken.
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._states: list[GuideState] = []
        self._length = 0
        self._mask = empty_mask(len(guide.vocabulary))

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401  (torch's tensors, (B, T) and (B, V))
        """The scores with minus infinity for what may not come.

        Raises:
            DeadEndError: the guide lets nothing through.
            InputError: a token was taken that may not come.
        """
        import numpy as np

        library = torch()
        if not self._states:
            self._states = [self._guide.start() for _ in range(len(input_ids))]
        else:
            for number, tokens in enumerate(input_ids[:, self._length :].tolist()):
                for token in tokens:
                    if not self._states[number].is_ended:  # behind its end a text is filled up
                        self._states[number] = self._states[number].advance(token)
        self._length = input_ids.shape[1]
        closed = np.ones(scores.shape, dtype=bool)
        for number, state in enumerate(self._states):
            if state.is_ended:
                closed[number] = False
                continue
            state.mask(self._mask)
            if not self._mask.any():
                raise DeadEndError("the constraint leaves no token")
            opened = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: scores.shape[1]]
            np.equal(opened, 0, out=closed[number, : len(opened)])
        return scores.masked_fill(library.from_numpy(closed).to(scores.device), float("-inf"))
