"""Transformer in numpy with KV cache; weights."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import Json
from taiwa.safetensors_file import parse_header, read_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    from taiwa.models.inprocess.decode_loop import Logits, Rows

    Tensors = Mapping[str, NDArray[np.float32]]

__all__ = ["CHUNK", "Config", "Network", "NetworkTrack", "Weights", "loaded"]


Array: TypeAlias = NDArray[np.float32]

CHUNK = 256
"""So many tokens are read at a time: attention takes memory for each pair of a new and an old one."""

ROOM = 128
"""For so many tokens a cache is made at first; it doubles as a text grows."""


class CachedTrack(ABC):
    """A text as far as a model has read it; see `taiwa.models.inprocess.decode_loop.TokenSequence`. The cache is (…, places, width)."""

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


FORMAT = "taiwa-builtin-1"

LARGEST = 1 << 20

MOST_LAYERS = 200


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of a model, and what its positions turn by."""

    dim: int
    layers: int
    heads: int
    hidden: int
    vocab: int
    context: int
    theta: float
    eps: float

    @property
    def width(self) -> int:
        """Numbers of one head."""
        return self.dim // self.heads

    def shapes(self) -> "Mapping[str, tuple[int, ...]]":
        """The tensors that there must be."""
        found: dict[str, tuple[int, ...]] = {"embed": (self.vocab, self.dim), "norm": (self.dim,)}
        for layer in range(self.layers):
            found |= {
                f"{layer}.norm1": (self.dim,),
                f"{layer}.qkv": (3 * self.dim, self.dim),
                f"{layer}.out": (self.dim, self.dim),
                f"{layer}.norm2": (self.dim,),
                f"{layer}.up": (2 * self.hidden, self.dim),
                f"{layer}.down": (self.dim, self.hidden),
            }
        return found


@dataclass(frozen=True, slots=True)
class Weights:
    """A model as numbers: its sizes and its tensors, with 32 bits a number; and the digest of its vocabulary, where it says it."""

    config: Config
    tensors: "Tensors"
    vocabulary: str = ""

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return sum(each.size for each in self.tensors.values())


def loaded(path: "Path | Traversable") -> Weights:
    """Read a file of weights.

    Raises:
        ConfigError: it is missing or broken, or holds another kind of model.
    """
    try:
        held = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): install taiwa again") from None
    try:
        return _read(held)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{path} holds no weights of the built-in model ({error}): install taiwa again") from None


def _read(data: bytes) -> Weights:
    import numpy as np

    header = parse_header(data, len(data))
    metadata = header.metadata
    if metadata.get("format") != FORMAT:
        raise ValueError(f"its format is {metadata.get('format')!r}, not {FORMAT!r}")
    config = _config(json.loads(metadata["config"]))
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, shape in config.shapes().items():
        info = header.tensors[name]
        if info.shape != shape:
            raise ValueError(f"{name} has the shape {list(info.shape)}, not {list(shape)}")
        tensors[name] = read_tensor(data, info)
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"{name} holds what is no number")
    return Weights(config, tensors, metadata.get("vocabulary", ""))


def _config(told: dict[str, Json]) -> Config:
    given: dict[str, float] = {}
    for field in fields(Config):
        number = told.get(field.name)
        whole = field.type in (int, "int")
        if not _is_number(number) or not 0 < number <= LARGEST or (whole and number != int(number)):
            raise ValueError(f"{field.name} is {number!r}")
        given[field.name] = int(number) if whole else float(number)
    config = Config(**given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  (whole numbers are made so)
    if config.layers > MOST_LAYERS or config.dim % config.heads or config.width % 2:
        raise ValueError(f"{config.heads} heads do not divide {config.dim} numbers evenly")
    return config


def _is_number(given: Json) -> TypeGuard[int | float]:
    return isinstance(given, (int, float)) and not isinstance(given, bool)


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
    """The model; see `taiwa.models.inprocess.decode_loop.Backend`.

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
    """A text as far as the model has read it; see `taiwa.models.inprocess.decode_loop.TokenSequence`."""

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
