"""The built-in model in numpy: a decoder-only transformer with a cache of keys and values.

Pre-norm with RMSNorm, rotary positions on half-split pairs, queries and keys normalised per head, a gated feed-forward part,
embedding and output head tied. As queries and keys are normalised, no score exceeds the root of a head's width: the softmax
needs no maximum taken off, and what may not be seen is multiplied by nought. Gains of norms are folded into what follows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin.track import CachedTrack
from taiwa.models.builtin.weights import Weights

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits, Rows

__all__ = ["Network", "NetworkTrack"]

Array: TypeAlias = NDArray[np.float32]
PIECE = 400_000
"""Numbers of a matrix that a library of linear algebra multiplies with one vector without waking threads, which takes longer."""
HALF = np.float32(0.5)
SPARSE = 4
"""Where fewer than one in so many rows of the head are wanted, they are gathered; else all are computed."""


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Array
    out: Array
    up: Array
    down: Array


class Network:
    """The model; see `taiwa.models.decoding.source.Source`.

    Raises:
        ConfigError: the vocabulary is another model's.
    """

    def __init__(self, weights: Weights, vocabulary: Vocabulary) -> None:
        config, tensors = weights.config, weights.tensors
        if len(vocabulary) != config.vocab:
            raise ConfigError(f"the model has {config.vocab:,} tokens, and its vocabulary {len(vocabulary):,}")
        self.config = config
        self.vocabulary = vocabulary
        self.context = config.context
        self.embed = tensors["embed"]
        self.head: Array = np.ascontiguousarray(tensors["embed"] * tensors["norm"])
        self.pieces = _pieces(self.head)
        self.layers = [
            _Layer(
                np.ascontiguousarray((tensors[f"{at}.qkv"] * tensors[f"{at}.norm1"]).T),
                np.ascontiguousarray(tensors[f"{at}.out"].T),
                np.ascontiguousarray((tensors[f"{at}.up"] * tensors[f"{at}.norm2"]).T),
                np.ascontiguousarray(tensors[f"{at}.down"].T),
            )
            for at in range(config.layers)
        ]
        half = config.width // 2
        rates = config.theta ** (-np.arange(half, dtype=np.float64) / half)
        angles = np.arange(config.context, dtype=np.float64)[:, None] * rates
        cos, sin = np.cos(angles), np.sin(angles)
        self.cos: Array = np.stack((cos, cos), 1)[:, None].astype(np.float32)
        """(context, 1, 2, half), as a head's halves are turned."""
        self.sin: Array = np.stack((-sin, sin), 1)[:, None].astype(np.float32)

    def start(self) -> "NetworkTrack":
        """An empty text."""
        return NetworkTrack(self)

    def logits(self, state: Array, rows: "Rows | None") -> "Logits":
        """What follows a state (D,): the logits of all tokens, or of some."""
        scale = np.float32(1.0 / np.sqrt(np.vdot(state, state) / self.config.dim + self.config.eps))
        found: Array
        if rows is not None and len(rows) * SPARSE < len(self.head):
            found = self.head.take(rows, 0) @ state
        else:
            found = np.concatenate([piece @ state for piece in self.pieces])
            if rows is not None:
                found = found[rows]
        found *= scale
        return found


class NetworkTrack(CachedTrack):
    """A text as far as the model has read it; see `taiwa.models.decoding.source.Track`."""

    def __init__(self, network: Network) -> None:
        config = network.config
        super().__init__(config.context, (config.layers, 2, config.heads), config.width)
        self._network = network

    def _logits(self, state: Array, rows: "Rows | None") -> "Logits":
        return self._network.logits(state, rows)

    def _run(self, tokens: Sequence[int]) -> Array:
        """The state (D,) behind the last of some tokens; their keys and values are kept."""
        network, config = self._network, self._network.config
        length = len(tokens)
        here = slice(len(self.tokens), len(self.tokens) + length)
        seen = np.tri(length, here.stop, here.start, dtype=np.float32) if length > 1 else None
        x: Array = network.embed[np.asarray(tokens, np.intp)]
        for at, layer in enumerate(network.layers):
            qkv = (x @ layer.qkv) * _scale(x, config.eps)
            heads = qkv.reshape(length, 3, config.heads, config.width).transpose(1, 2, 0, 3)
            queries = self._turned(heads[:2], here)
            cache = self.cache[at]
            cache[0, :, here] = queries[1]
            cache[1, :, here] = heads[2]
            if at + 1 == config.layers and length > 1:  # behind the last layer nobody asks for more
                queries, x, seen = queries[:, :, -1:], x[-1:], None
            x = x + _just(self._attended(queries[0], cache[:, :, : here.stop], seen) @ layer.out)
            gate, up = np.split((x @ layer.up) * _scale(x, config.eps), 2, -1)
            x = x + _just((gate * (HALF + HALF * np.tanh(HALF * gate)) * up) @ layer.down)
        state: Array = x[-1]
        return state

    def _turned(self, heads: Array, here: slice) -> Array:
        """Queries and keys (2, H, T, d), normalised and turned by their positions."""
        network, config = self._network, self._network.config
        normal = heads * _scale(heads, config.eps)
        halves = normal.reshape(2, config.heads, heads.shape[2], 2, config.width // 2)
        turned = _just(halves * network.cos[here, 0] + halves[..., ::-1, :] * network.sin[here, 0])
        return turned.reshape(heads.shape)

    def _attended(self, queries: Array, cache: Array, seen: Array | None) -> Array:
        """What the queries (H, T, d) find in keys and values (2, H, n, d), side by side: (T, D)."""
        config = self._network.config
        weights = np.exp((queries * np.float32(config.width**-0.5)) @ cache[0].transpose(0, 2, 1))
        if seen is not None:
            weights *= seen
        found: Array = (weights @ cache[1]) / weights.sum(-1, keepdims=True)
        return found.transpose(1, 0, 2).reshape(-1, config.dim)


def _scale(x: Array, eps: float) -> Array:
    """What brings the last axis to a mean square of one."""
    squares: Array = np.einsum("...i,...i->...", x, x)[..., None]
    return _just(np.float32(1.0) / np.sqrt(squares / np.float32(x.shape[-1]) + np.float32(eps)))


def _just(found: "NDArray[np.floating]") -> Array:
    """Numbers of 32 bits and 32 bits give such: what numpy's types do not say."""
    return cast("Array", found)


def _pieces(matrix: Array) -> tuple[Array, ...]:
    count = -(-matrix.size // PIECE)
    return tuple(np.array_split(matrix, count))
