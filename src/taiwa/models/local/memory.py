"""Whether the weights of a model fit, before they are read: a process that runs out of memory is killed without a word."""

import os
from math import prod
from pathlib import Path

from taiwa.kernel.errors import ConfigError
from taiwa.safetensors_file import read_header

__all__ = ["available", "fits", "weights"]

GB = 1e9
MARGIN = 1.05
"""What is needed beside the weights themselves."""
CGROUP = Path("/sys/fs/cgroup")


def weights(folder: Path) -> dict[str, int]:
    """Count the numbers of each type (`F32`, `BF16` …) in the safetensors files of a folder, from their headers.

    Raises:
        ConfigError: a file is broken.
    """
    found: dict[str, int] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = read_header(path).tensors.values()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read as weights ({error}): fetch the file again") from None
        for info in tensors:
            found[info.dtype] = found.get(info.dtype, 0) + prod(info.shape)
    return found


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
