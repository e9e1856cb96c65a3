"""Whether the weights of a model fit, before they are read: a process that runs out of memory is killed without a word."""

import json
import os
import struct
from math import prod
from pathlib import Path
from typing import Any

from taiwa.kernel.errors import ConfigError

__all__ = ["available", "fits", "weights"]

LARGEST_HEAD = 100 << 20
GB = 1e9
MARGIN = 1.05
"""What is needed beside the weights themselves."""
CGROUP = Path("/sys/fs/cgroup")


def weights(folder: Path) -> dict[str, int]:
    """How many numbers of each type the safetensors files of a folder hold (`F32`, `BF16` …), told by their heads.

    Raises:
        ConfigError: a file is broken.
    """
    found: dict[str, int] = {}
    for path in sorted(folder.glob("*.safetensors")):
        for kind, count in _head(path):
            found[kind] = found.get(kind, 0) + count
    return found


def _head(path: Path) -> list[tuple[str, int]]:
    """The type and the size of each tensor of a safetensors file: eight bytes of length, then JSON."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > LARGEST_HEAD:
                raise ValueError("its head is too long")
            head: dict[str, Any] = json.loads(stream.read(length))
            head.pop("__metadata__", None)
            end = max((int(tensor["data_offsets"][1]) for tensor in head.values()), default=0)
            if path.stat().st_size < 8 + length + end:
                raise ValueError("it is cut short")
            return [(str(tensor["dtype"]), prod(tensor["shape"])) for tensor in head.values()]
    except (OSError, struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as weights ({error}): fetch the file again") from None


def available() -> int | None:
    """How many bytes of memory this process may still take; None where the system does not say."""
    found: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        most, used = (CGROUP / "memory.max").read_text().strip(), (CGROUP / "memory.current").read_text().strip()
        if most.isdecimal():
            found.append(int(most) - int(used))
    except OSError:
        pass
    if not found and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def fits(folder: Path, numbers: int, width: int, free: int | None) -> None:
    """Refuse weights that do not fit into `free` bytes; `width` is the number of bytes of one number.

    Raises:
        ConfigError: they do not fit.
    """
    needed = int(numbers * width * MARGIN)
    if free is not None and needed > free:
        smaller = "choose a smaller model" + ("" if width <= 2 else ", or add ?dtype=bfloat16 to its name")
        raise ConfigError(
            f"{folder} needs about {needed / GB:.1f} GB of memory as {width * 8}-bit numbers, and {free / GB:.1f} GB are free: {smaller}"
        )
