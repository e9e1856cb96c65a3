"""The sizes and the tensors of the built-in model, from its safetensors file."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json
from taiwa.safetensors_file import parse_header, read_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    import numpy as np
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[np.float32]]

__all__ = ["FORMAT", "Config", "Weights", "loaded"]

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
