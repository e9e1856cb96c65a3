"""Sample one token from logits and a mask, in numpy alone.

Most of a step outside the model is not the mask but its application: writing -inf into 131,072 logits one by one and a softmax over
all of them cost a hundred times the mask. So nothing here touches tokens that are not allowed: the likeliest of all tokens is
looked up in the mask first; few allowed tokens are gathered; for many, a table turns each byte of the mask into eight
summands. A token too unlikely for a draw in double precision is never looked at.
"""

from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from taiwa.constraints.guide import mask_tokens
from taiwa.kernel.errors import DeadEndError, InputError
from taiwa.kernel.values import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taiwa.constraints.guide import Mask

    Logits = NDArray[np.float32]
    Tokens = NDArray[np.intp]

__all__ = ["Sampler", "log_probability"]

FEW = 2_048
"""Up to this many allowed tokens are gathered; more of them are masked in place."""
SORTED = 512
REACH = 40.0
"""Logits further below the best are ignored, in units of the temperature: e^-40 of 131,072 tokens is less than a draw resolves."""


class Sampler:
    """Samples tokens: the likeliest one, or by temperature and `top_p` with a seed. It has a buffer, so use one per thread."""

    __slots__ = ("_buffer", "_random", "_temperature", "_top_p")

    def __init__(self, sampling: Sampling = Sampling()) -> None:
        self._temperature = 1.0 if sampling.temperature is None else sampling.temperature
        self._top_p = 1.0 if sampling.top_p is None else sampling.top_p
        if not 0.0 <= self._temperature < float("inf"):
            raise InputError(f"a temperature is 0 or more, not {self._temperature}")
        if not 0.0 < self._top_p <= 1.0:
            raise InputError(f"top_p lies above 0 and is 1 at most, not {self._top_p}")
        self._random = np.random.default_rng(sampling.seed)
        self._buffer = np.empty(0, dtype=np.float32)

    def pick(self, logits: "Logits", mask: "Mask | None" = None) -> int:
        """Return one token; logits (V,) float32, mask ((V+31)//32,). The logits are not changed.

        Raises:
            DeadEndError: the mask allows nothing, or the model rules out all that it allows.
            InputError: the shapes do not match, or a logit is NaN.
        """
        if mask is not None and (logits.ndim != 1 or mask.shape != ((len(logits) + 31) // 32,)):
            raise InputError(f"logits of the shape {logits.shape} do not fit a mask of {mask.shape}")
        best = int(logits.argmax())
        if mask is None or int(mask[best >> 5]) >> (best & 31) & 1:
            return self._near(logits, mask, best)
        few = mask_tokens(mask, FEW)
        if few is not None:
            few = few[few < len(logits)]
            return self.choose(logits[few], few)
        masked = self._masked(logits, mask)
        return self._near(masked, mask, int(masked.argmax()))

    def choose(self, scores: "Logits", tokens: "Tokens") -> int:
        """Return one of the allowed tokens; scores (n,) are the logits of these n tokens.

        Raises:
            DeadEndError: there is none, or the model rules out all of them.
            InputError: a score is NaN.
        """
        if len(tokens) == 0:
            raise DeadEndError("the constraint leaves no token: the text cannot go on")
        best = int(scores.argmax())
        _check(float(scores[best]))
        return int(tokens[best if self._temperature == 0 else self._draw(scores, float(scores[best]))])

    def _near(self, logits: "Logits", mask: "Mask | None", best: int) -> int:
        """Return the best token, or one of those that a draw can reach."""
        top = float(logits[best])
        _check(top)
        if self._temperature == 0:
            return best
        reached = np.packbits(logits >= top - REACH * self._temperature, bitorder="little")
        if mask is not None:
            reached &= mask.view(np.uint8)[: len(reached)]
        near = _tokens(reached)
        return int(near[self._draw(logits[near], top)])

    def _draw(self, scores: "Logits", top: float) -> int:
        """Return the index of one score, drawn by its probability."""
        weights = np.exp((scores.astype(np.float64) - top) / self._temperature)
        if self._top_p == 1.0:
            return _drawn(np.cumsum(weights), self._random.random())
        wanted = self._top_p * float(weights.sum())
        order = _heaviest(weights, wanted)
        shares = np.cumsum(weights[order])
        kept = int(np.searchsorted(shares, wanted)) + 1
        return int(order[_drawn(shares[:kept], self._random.random())])

    def _masked(self, logits: "Logits", mask: "Mask") -> "Logits":
        """Return the logits with -inf where the mask allows nothing."""
        size = mask.size * 32
        if len(self._buffer) != size:
            self._buffer = np.empty(size, dtype=np.float32)
        np.take(_summands(), mask.view(np.uint8), axis=0, out=self._buffer.reshape(-1, 8), mode="clip")
        masked = self._buffer[: len(logits)]
        return np.add(logits, masked, out=masked)


def _tokens(packed: "NDArray[np.uint8]") -> "Tokens":
    """Return the indices of the bits that are set."""
    if len(packed) % 4 == 0:
        few = mask_tokens(packed.view(np.uint32), FEW)
        if few is not None:
            return few
    return np.flatnonzero(np.unpackbits(packed, bitorder="little").view(np.bool_))


def _heaviest(weights: "NDArray[np.float64]", wanted: float) -> "Tokens":
    """Return the indices of the largest weights in descending order, enough to reach the wanted sum."""
    count = SORTED
    while count < len(weights):
        part = np.argpartition(-weights, count)[:count]
        if float(weights[part].sum()) > wanted:
            part.sort()
            return part[np.argsort(-weights[part], kind="stable")]
        count *= 8
    return np.argsort(-weights, kind="stable")


def _drawn(shares: "NDArray[np.float64]", draw: float) -> int:
    return min(int(np.searchsorted(shares, draw * float(shares[-1]), side="right")), len(shares) - 1)


def _check(top: float) -> None:
    if isnan(top):
        raise InputError("a logit is not a number: the model's weights or its input are broken")
    if top == float("-inf"):
        raise DeadEndError("the model rules out every token that the constraint allows")


@lru_cache(maxsize=1)
def _summands() -> "NDArray[np.float32]":
    """Return the summands of eight logits for each byte of a mask, shape (256, 8)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.where(bits == 1, np.float32(0), np.float32("-inf"))


def log_probability(scores: "Logits", place: int) -> float:
    """Return the log probability of one score among all; scores (n,)."""
    top = float(scores.max())
    return float(scores[place]) - top - float(np.log(np.exp(scores.astype(np.float64) - top).sum()))
