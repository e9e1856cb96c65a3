"""Read the header and the tensors of a `.safetensors` file with numpy. Nothing in such a file is executed.

The file is 8 bytes with the length of the header, the header in JSON, and the raw numbers, little-endian.
"""

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from taiwa.kernel.attachments import open_regular
from taiwa.kernel.text import truncate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100 << 20
MAX_DIMENSIONS = 64
MOST = 1 << 62
MAX_SHOWN = 100
FLOATS = {"F32": 4, "F16": 2, "BF16": 2}
"""The types that can be read as F32, and the bytes of one number."""


class TensorInfo(NamedTuple):
    """The type and the shape of a tensor, and its offsets in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Read the header of a file and check that the tensors are all there, without reading them; return them by name.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a safetensors file, or is truncated.
    """
    with open_regular(path) as file:
        head = file.read(LENGTH_BYTES)
        head += file.read(min(int.from_bytes(head, "little"), MAX_HEADER_BYTES))
    return parse_header(head, path.stat().st_size)


def parse_header(data: bytes, size: int) -> dict[str, TensorInfo]:
    """Parse the header at the beginning of `data`, which belongs to a file of `size` bytes; return the tensors by name.

    Raises:
        ValueError: it is not the header of a safetensors file, or describes tensors that the file does not contain.
    """
    begin = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    if not LENGTH_BYTES < begin <= len(data):
        raise ValueError("its header is broken")
    try:
        entries: dict[str, Any] = json.loads(data[LENGTH_BYTES:begin])
        entries.pop("__metadata__", None)
        tensors = {name: _tensor_info(name, entry, begin, size) for name, entry in entries.items()}
    except (TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"its header is broken: {_shown(str(error))}") from None
    if sum(info.end - info.start for info in tensors.values()) > size - begin:
        raise ValueError("its tensors overlap")
    return tensors


def _tensor_info(name: str, entry: dict[str, Any], begin: int, size: int) -> TensorInfo:
    dtype, shape = str(entry["dtype"]), tuple(entry["shape"])
    start, end = entry["data_offsets"]
    named = f"{_shown(name)} has the shape {_shown(str(shape[:MAX_DIMENSIONS]))}"
    bounded = all(isinstance(number, int) and 0 <= number < MOST for number in (*shape, start, end))
    if len(shape) > MAX_DIMENSIONS or not bounded:
        raise ValueError(f"{named} at {_shown(str(start))} to {_shown(str(end))}")
    if start > end or (dtype in FLOATS and end - start != prod(shape) * FLOATS[dtype]):
        raise ValueError(f"{named}, and {end - start} bytes")
    if begin + end > size:
        raise ValueError("it is cut short")
    return TensorInfo(dtype, shape, begin + start, begin + end)


def _shown(text: str) -> str:
    return truncate(" ".join(text.split()), MAX_SHOWN)


def read_tensor(data: bytes, info: TensorInfo) -> "NDArray[np.float32]":
    """Return a tensor as F32, in its shape; `data` is the whole file.

    Raises:
        ValueError: its type is not among `FLOATS`.
    """
    import numpy as np

    if info.dtype not in FLOATS:
        raise ValueError(f"its numbers are {info.dtype}, not {' or '.join(FLOATS)}")
    raw = data[info.start : info.end]
    if info.dtype == "BF16":  # the upper half of an F32; numpy does not know it
        return (np.frombuffer(raw, "<u2").astype("<u4") << np.uint32(16)).view("<f4").reshape(info.shape)
    return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[info.dtype]).astype(np.float32).reshape(info.shape)
