"""In which way the built-in model reckons, as its name says: `builtin`, or `builtin?runtime=onnx`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from taiwa.kernel.errors import ConfigError
from taiwa.models.choices import chosen

if TYPE_CHECKING:
    from taiwa.models.builtin.onnx.graph import Precision

__all__ = ["Way", "way_of"]

RUNTIMES = ("numpy", "onnx")
PRECISIONS = ("int8", "float32")


@dataclass(frozen=True, slots=True)
class Way:
    """Who reckons, and for `onnx` with what numbers."""

    runtime: Literal["numpy", "onnx"] = "numpy"
    precision: "Precision" = "int8"


def way_of(name: str) -> Way:
    """Read the options behind the name of the model.

    Raises:
        ConfigError: one is unknown, or they do not go together.
    """
    found = chosen(name.partition("?")[2], ("runtime", "precision"), "built-in")
    for option, known in (("runtime", RUNTIMES), ("precision", PRECISIONS)):
        if found.get(option, known[0]) not in known:
            raise ConfigError(f"{option} is one of {', '.join(known)}, not {found[option]!r}")
    if "precision" in found and found.get("runtime") != "onnx":
        raise ConfigError(f"numpy reckons with 32 bits: say builtin?runtime=onnx&precision={found['precision']}")
    runtime = cast("Literal['numpy', 'onnx']", found.get("runtime", "numpy"))
    return Way(runtime, cast("Precision", found.get("precision", "int8")))
