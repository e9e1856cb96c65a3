"""The built-in model as a graph of ONNX: one graph for a prompt and for a single token, with matrices of 32 or of 8 bits.

Given are tokens, where they stand, and a cache with room for more than is held; which of its places are held, a row of ones and
noughts tells. So nothing is copied as a text grows, and cutting it back moves a number. What may not be seen is multiplied by
nought, as in `network.py`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taiwa.models.builtin.onnx.proto import Graph

if TYPE_CHECKING:
    from taiwa.models.builtin.weights import Config, Weights

__all__ = ["BLOCK", "Precision", "eight_bits", "graph"]

Array: TypeAlias = NDArray[np.float32]
Precision: TypeAlias = Literal["int8", "float32"]
Times: TypeAlias = Callable[[str, Array], str]

BLOCK = 32
"""So many numbers of a row, and so many of what it is multiplied with, share a scale."""
MIDDLE = 128
INT8 = 4
"""By the numbers of onnxruntime: what a matrix is multiplied with may have 8 bits as well."""


def graph(weights: "Weights", precision: Precision) -> bytes:
    """The file of a graph that reads tokens: the logits behind the last one, and what the cache is to keep of all."""
    made = Graph()
    writer = _Writer(made, weights, _eight(made) if precision == "int8" else _plain(made))
    writer.write()
    return made.model()


def eight_bits(matrix: Array) -> tuple[NDArray[np.uint8], Array]:
    """A matrix (N, K) as bytes (N, blocks, BLOCK) around 128, and the scale of each block (N, blocks)."""
    rows, columns = matrix.shape
    blocks = -(-columns // BLOCK)
    whole = np.zeros((rows, blocks * BLOCK), np.float32)
    whole[:, :columns] = matrix
    parts = whole.reshape(rows, blocks, BLOCK)
    scales = np.maximum(np.abs(parts).max(-1), np.finfo(np.float32).tiny) / np.float32(MIDDLE - 1)
    return (np.rint(parts / scales[..., None]) + MIDDLE).astype(np.uint8), scales.astype(np.float32)


def _plain(made: Graph) -> Times:
    return lambda x, matrix: made.add("MatMul", x, made.hold(np.ascontiguousarray(matrix.T)))


def _eight(made: Graph) -> Times:
    def times(x: str, matrix: Array) -> str:
        numbers, scales = eight_bits(matrix)
        rows, columns = matrix.shape
        return made.add(
            "MatMulNBits", x, made.hold(numbers), made.hold(scales),
            ours=False, K=columns, N=rows, bits=8, block_size=BLOCK, accuracy_level=INT8,
        )  # fmt: skip

    return times


class _Writer:
    """Writes the graph, layer by layer."""

    def __init__(self, made: Graph, weights: "Weights", times: Times) -> None:
        self.made, self.config, self.tensors, self.times = made, weights.config, weights.tensors, times
        config = self.config
        self.ones = made.hold(np.ones(config.width, np.float32))
        self.flat = made.hold(np.array([-1, config.dim], np.int64))
        self.apart = made.hold(np.array([-1, 3, config.heads, config.width], np.int64))
        self.across = made.hold(np.array([-1], np.int64))
        self.two_one = made.hold(np.array([2, 1], np.int64))
        self.cos, self.sin = (made.hold(table) for table in _turns(config))

    def write(self) -> None:
        """Write all of it."""
        made, config = self.made, self.config
        ids, place = made.input("ids", "int64", ("T",)), made.input("place", "int64", ("T",))
        held, seen = made.input("held", "float32", ("room",)), made.input("seen", "float32", ("T", "T"))
        kept: list[str] = []
        x = made.add("Gather", made.hold(self.tensors["embed"]), ids)
        for layer in range(config.layers):
            axes = (config.heads, "room", config.width)
            old = (made.input(f"keys{layer}", "float32", axes), made.input(f"values{layer}", "float32", axes), held)
            qk, values = self._heads(self._normal(x, f"{layer}.norm1"), layer)
            queries, keys = made.split("Split", 2, self._turned(qk, place), axis=0)
            kept += (keys, values)
            found = self._attended(queries, (keys, values, seen), old)
            if layer + 1 == config.layers:  # behind the last layer nobody asks for more
                found, x = self._last(found), self._last(x)
            x = made.add("Add", x, self.times(found, self.tensors[f"{layer}.out"]))
            x = made.add("Add", x, self._gated(self._normal(x, f"{layer}.norm2"), layer))
        logits = self.times(self._normal(x, "norm"), self.tensors["embed"])
        made.node("Identity", (logits,), ("logits",), {})
        made.node("Concat", kept, ("kept",), {"axis": 0})
        made.output("logits", "float32", (1, config.vocab))
        made.output("kept", "float32", (2 * config.layers, config.heads, "T", config.width))

    def _normal(self, x: str, gain: str) -> str:
        return self._scaled(x, self.made.hold(self.tensors[gain]))

    def _scaled(self, x: str, gain: str) -> str:
        return self.made.add("SimplifiedLayerNormalization", x, gain, axis=-1, epsilon=float(self.config.eps))

    def _heads(self, x: str, layer: int) -> tuple[str, str]:
        """Queries and keys (2, H, T, d), normalised, and values (1, H, T, d)."""
        made = self.made
        apart = made.add("Reshape", self.times(x, self.tensors[f"{layer}.qkv"]), self.apart)
        qk, values = made.split("Split", 2, made.add("Transpose", apart, perm=(1, 2, 0, 3)), self.two_one, axis=0)
        return self._scaled(qk, self.ones), values

    def _turned(self, x: str, place: str) -> str:
        """Turned by positions: each number with the one half a head further on."""
        made = self.made
        first, second = made.split("Split", 2, x, axis=-1)
        cos, sin = (made.add("Gather", table, place) for table in (self.cos, self.sin))
        left = made.add("Sub", made.add("Mul", first, cos), made.add("Mul", second, sin))
        right = made.add("Add", made.add("Mul", second, cos), made.add("Mul", first, sin))
        return made.add("Concat", left, right, axis=-1)

    def _attended(self, queries: str, new: tuple[str, str, str], old: tuple[str, str, str]) -> str:
        """What queries find in the cache and in what is read now, heads side by side: (T, D)."""
        made = self.made
        tops: list[str] = []
        sums: list[str] = []
        for keys, values, mask in (new, old):
            scores = made.add(
                "FusedMatMul", queries, keys, ours=False, transB=1, alpha=float(self.config.width) ** -0.5
            )
            weights = made.add("Mul", made.add("Exp", scores), mask)
            tops.append(made.add("MatMul", weights, values))
            sums.append(made.add("ReduceSum", weights, self.across, keepdims=1))
        found = made.add("Div", made.add("Add", *tops), made.add("Add", *sums))
        return made.add("Reshape", made.add("Transpose", found, perm=(0, 2, 1, 3)), self.flat)

    def _gated(self, x: str, layer: int) -> str:
        made = self.made
        gate, up = made.split("Split", 2, self.times(x, self.tensors[f"{layer}.up"]), axis=-1)
        silu = made.add("Mul", gate, made.add("Sigmoid", gate))
        return self.times(made.add("Mul", silu, up), self.tensors[f"{layer}.down"])

    def _last(self, x: str) -> str:
        return self.made.add("Gather", x, self.across, axis=0)


def _turns(config: "Config") -> tuple[Array, Array]:
    half = config.width // 2
    rates = config.theta ** (-np.arange(half, dtype=np.float64) / half)
    angles = np.arange(config.context, dtype=np.float64)[:, None] * rates
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
