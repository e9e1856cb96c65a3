"""The built-in model in onnxruntime; see `taiwa.models.decoding.source`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin.onnx.graph import Precision, graph
from taiwa.models.builtin.track import CachedTrack
from taiwa.models.builtin.weights import Weights

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits, Rows

__all__ = ["OnnxNetwork", "OnnxTrack"]

Array: TypeAlias = NDArray[np.float32]
ERRORS = 3
"""By the numbers of onnxruntime: what is less is not said."""


class _Session(Protocol):
    def run(self, wanted: Sequence[str], given: Mapping[str, "NDArray[Any]"]) -> Sequence[Array]:
        """Reckon what is wanted from what is given."""
        ...


class OnnxNetwork:
    """The model; see `taiwa.models.decoding.source.Source`. It runs on one thread: at its size more would wait for each other.

    Raises:
        ConfigError: the vocabulary is another model's, or the extra is not installed.
    """

    def __init__(self, weights: Weights, vocabulary: Vocabulary, precision: Precision = "int8") -> None:
        config = weights.config
        if len(vocabulary) != config.vocab:
            raise ConfigError(f"the model has {config.vocab:,} tokens, and its vocabulary {len(vocabulary):,}")
        self.config = config
        self.vocabulary = vocabulary
        self.context = config.context
        self.session = _session(graph(weights, precision))
        self.held: Array = np.repeat(np.array([1, 0], np.float32), config.context)
        """Ones and noughts: a window of it tells how many places of a cache are held."""
        self.names = [f"{kind}{layer}" for layer in range(config.layers) for kind in ("keys", "values")]

    def start(self) -> "OnnxTrack":
        """An empty text."""
        return OnnxTrack(self)


class OnnxTrack(CachedTrack):
    """A text as far as the model has read it; see `taiwa.models.decoding.source.Track`."""

    def __init__(self, network: OnnxNetwork) -> None:
        config = network.config
        super().__init__(config.context, (2 * config.layers, config.heads), config.width)
        self._network = network

    def _logits(self, state: Array, rows: "Rows | None") -> "Logits":
        return state if rows is None else state[rows]

    def _run(self, tokens: Sequence[int]) -> Array:
        """The logits behind the last of some tokens; their keys and values are kept."""
        network, length, here = self._network, len(tokens), len(self.tokens)
        first = network.context - here
        given: dict[str, NDArray[Any]] = {
            "ids": np.asarray(tokens, np.int64),
            "place": np.arange(here, here + length, dtype=np.int64),
            "held": network.held[first : first + self.cache.shape[2]],
            "seen": np.tri(length, dtype=np.float32),
            **dict(zip(network.names, self.cache, strict=True)),
        }
        logits, kept = network.session.run(("logits", "kept"), given)
        self.cache[:, :, here : here + length] = kept
        found: Array = logits[0]
        return found


def _session(model: bytes) -> _Session:
    try:
        library = import_module("onnxruntime")
    except ImportError:
        raise ConfigError("runtime=onnx needs an extra: pip install 'taiwa[onnx]'") from None
    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS
    made: _Session = library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return made
