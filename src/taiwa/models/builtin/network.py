"""The transformer of the built-in model in numpy, with a KV cache, and the loading of its weights."""

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json, is_number
from taiwa.safetensors_file import parse_header, read_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    from taiwa.models.inprocess.decode_loop import Logits, Rows

    Tensors = Mapping[str, NDArray[np.float32]]

Array: TypeAlias = NDArray[np.float32]

CHUNK = 256
"""Tokens that are read at a time: attention takes memory for each pair of a new and an old token."""

INITIAL_ROOM = 128
"""Initial capacity of a cache in tokens; it doubles as the text grows."""


FORMAT = "taiwa-builtin-1"

MAX_SIZE = 1 << 20
MAX_LAYERS = 200


@dataclass(frozen=True, slots=True)
class Config:
    """The dimensions of a model, the base of its rotary positions, and the epsilon of its norms."""

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
        """The width of one head."""
        return self.dim // self.heads

    def shapes(self) -> "Mapping[str, tuple[int, ...]]":
        """Return the required tensors and their shapes."""
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
    """The dimensions and float32 tensors of a model, and the digest of its vocabulary if the file names it."""

    config: Config
    tensors: "Tensors"
    vocabulary: str = ""

    @property
    def count(self) -> int:
        """The number of parameters."""
        return sum(each.size for each in self.tensors.values())


def load_weights(path: "Path | Traversable") -> Weights:
    """Read a file of weights.

    Raises:
        ConfigError: it is missing or broken, or contains another kind of model.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({error.strerror}); install taiwa again") from None
    try:
        return _parse_weights(content)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"{path} does not contain weights of the built-in model ({error}); install taiwa again"
        ) from None


def _parse_weights(data: bytes) -> Weights:
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
            raise ValueError(f"{name} contains values that are not finite")
    return Weights(config, tensors, metadata.get("vocabulary", ""))


def _config(data: dict[str, Json]) -> Config:
    sizes: dict[str, float] = {}
    for field in fields(Config):
        number = data.get(field.name)
        whole = field.type in (int, "int")
        if not is_number(number) or not 0 < number <= MAX_SIZE or (whole and number != int(number)):
            raise ValueError(f"{field.name} is {number!r}")
        sizes[field.name] = int(number) if whole else float(number)
    config = Config(**sizes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  (converted above)
    if config.layers > MAX_LAYERS or config.dim % config.heads or config.width % 2:
        raise ValueError(f"{config.heads} heads do not divide {config.dim} numbers evenly")
    return config


PIECE = 400_000
"""Maximum elements of a matrix that BLAS multiplies with a vector on one thread; starting threads would take longer."""
HALF = np.float32(0.5)
SPARSE = 4
"""Rows of the output head are gathered if they are fewer than one in this many; otherwise all rows are computed."""


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Array
    out: Array
    up: Array
    down: Array


class Network:
    """The network; see `taiwa.models.inprocess.decode_loop.Backend`.

    Raises:
        ConfigError: the vocabulary belongs to another model.
    """

    def __init__(self, weights: Weights, vocabulary: Vocabulary) -> None:
        config, tensors = weights.config, weights.tensors
        if len(vocabulary) != config.vocab:
            raise ConfigError(f"the model has {config.vocab:,} tokens, and its vocabulary {len(vocabulary):,}")
        self.config = config
        self.vocabulary = vocabulary
        self.context = self.piece = config.context
        self.embed = tensors["embed"]
        self.head: Array = np.ascontiguousarray(tensors["embed"] * tensors["norm"])
        self.pieces = np.array_split(self.head, -(-self.head.size // PIECE))
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
        """(context, 1, 2, half): the cosines by which the halves of a head are rotated."""
        self.sin: Array = np.stack((-sin, sin), 1)[:, None].astype(np.float32)

    def start(self) -> "CachedSequence":
        """Return an empty sequence."""
        return CachedSequence(self)

    def log_probabilities(self, known: Sequence[int], text: Sequence[int]) -> Array:
        """Return the log probability (T,) of each token of a text given the previous ones, without masks.

        Raises:
            InputError: the text is longer than the context of the model.
        """
        states = CachedSequence(self).states((*known, *text[:-1]), len(text))
        logits = (states * _scale(states, self.config.eps)) @ self.head.T
        highest = logits.max(-1)
        found: Array = logits[np.arange(len(text)), np.asarray(text, np.intp)] - highest
        found -= np.log(np.exp(logits - highest[:, None]).sum(-1))
        return found

    def logits(self, state: Array, rows: "Rows | None") -> "Logits":
        """Return the logits after a state (D,): of all tokens, or of `rows`."""
        scale = np.float32(1.0 / np.sqrt(np.vdot(state, state) / self.config.dim + self.config.eps))
        logits: Array
        if rows is not None and len(rows) * SPARSE < len(self.head):
            logits = self.head.take(rows, 0) @ state
        else:
            logits = np.concatenate([piece @ state for piece in self.pieces])
            if rows is not None:
                logits = logits[rows]
        logits *= scale
        return logits


class CachedSequence:
    """A text that the model has read, with its keys and values; see `taiwa.models.inprocess.decode_loop.TokenSequence`."""

    def __init__(self, network: Network) -> None:
        config = network.config
        self._network = network
        self.tokens: list[int] = []
        self.cache: Array = np.zeros(
            (config.layers, 2, config.heads, min(INITIAL_ROOM, config.context), config.width), np.float32
        )
        """Keys and values: (layers, 2, H, positions, d)."""

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read more tokens and return the logits after the last.

        Raises:
            InputError: the text becomes longer than the context of the model.
        """
        return self._network.logits(self.states(tokens, 1)[0], rows)

    def states(self, tokens: Sequence[int], count: int) -> Array:
        """Read more tokens and return the states (count, D) after the last ones.

        Raises:
            InputError: the text becomes longer than the context of the model.
        """
        total, context = len(self.tokens) + len(tokens), self._network.context
        if total > context:
            raise InputError(f"the text has {total:,} tokens; the model reads at most {context:,}")
        self._grow(total)
        found: list[Array] = []
        for start in range(0, len(tokens), CHUNK):
            part = tokens[start : start + CHUNK]
            wanted = min(len(part), max(count - (len(tokens) - start - len(part)), 1))
            found.append(self._run(part, wanted))
            self.tokens.extend(part)
        return np.concatenate(found)[-count:]

    def rollback(self, count: int) -> None:
        """Remove the last tokens."""
        if count:
            del self.tokens[-count:]

    def fork(self) -> Self:
        """Return a copy that can be continued independently."""
        other = copy(self)
        other.cache = self.cache.copy()
        other.tokens = list(self.tokens)
        return other

    def batch(self, count: int) -> None:  # noqa: ARG002  (the protocol's)
        """Return None: in numpy a batch is hardly faster than one text after the other."""
        return

    def _grow(self, total: int) -> None:
        *axes, room, width = self.cache.shape
        if total <= room:
            return
        while room < total:
            room *= 2
        cache: Array = np.zeros((*axes, min(room, self._network.context), width), np.float32)
        cache[..., : len(self.tokens), :] = self.cache[..., : len(self.tokens), :]
        self.cache = cache

    def _run(self, tokens: Sequence[int], count: int) -> Array:
        """Return the states (count, D) after the last of some tokens, and keep their keys and values; the cache has room."""
        network, config = self._network, self._network.config
        length = len(tokens)
        here = slice(len(self.tokens), len(self.tokens) + length)
        seen = np.tri(length, here.stop, here.start, dtype=np.float32) if length > 1 else None
        x: Array = network.embed[np.asarray(tokens, np.intp)]
        for at, layer in enumerate(network.layers):
            qkv = (x @ layer.qkv) * _scale(x, config.eps)
            heads = qkv.reshape(length, 3, config.heads, config.width).transpose(1, 2, 0, 3)
            queries = self._rotated(heads[:2], here)
            cache = self.cache[at]
            cache[0, :, here] = queries[1]
            cache[1, :, here] = heads[2]
            if at + 1 == config.layers and seen is not None:  # only the last positions of the last layer are needed
                queries, x, seen = queries[:, :, -count:], x[-count:], seen[-count:]
            x = x + _float32(self._attended(queries[0], cache[:, :, : here.stop], seen) @ layer.out)
            gate, up = np.split((x @ layer.up) * _scale(x, config.eps), 2, -1)
            x = x + _float32((gate * (HALF + HALF * np.tanh(HALF * gate)) * up) @ layer.down)
        return x

    def _rotated(self, heads: Array, here: slice) -> Array:
        """Normalise queries and keys (2, H, T, d) and rotate them by their positions."""
        network, config = self._network, self._network.config
        normal = heads * _scale(heads, config.eps)
        halves = normal.reshape(2, config.heads, heads.shape[2], 2, config.width // 2)
        turned = _float32(halves * network.cos[here, 0] + halves[..., ::-1, :] * network.sin[here, 0])
        return turned.reshape(heads.shape)

    def _attended(self, queries: Array, cache: Array, seen: Array | None) -> Array:
        """Attend with the queries (H, T, d) to keys and values (2, H, n, d); returns the heads side by side, (T, D)."""
        config = self._network.config
        weights = np.exp((queries * np.float32(config.width**-0.5)) @ cache[0].transpose(0, 2, 1))
        if seen is not None:
            weights *= seen
        found: Array = (weights @ cache[1]) / weights.sum(-1, keepdims=True)
        return found.transpose(1, 0, 2).reshape(-1, config.dim)


def _scale(x: Array, eps: float) -> Array:
    """Return the factor that brings the last axis to a mean square of one."""
    squares: Array = np.einsum("...i,...i->...", x, x)[..., None]
    return _float32(np.float32(1.0) / np.sqrt(squares / np.float32(x.shape[-1]) + np.float32(eps)))


def _float32(array: "NDArray[np.floating]") -> Array:
    """Cast for the type checker: float32 with float32 gives float32, which numpy's types do not express."""
    return cast("Array", array)
