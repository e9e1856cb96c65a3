"""Packed masks in numpy: where they lie, which tokens they hold, how they meet logits."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from taiwa.guide.protocol import Mask

__all__ = ["address", "allocate", "count", "indices", "listed"]

WORD = 4


def allocate(size: int) -> "Mask":
    """An empty mask for a vocabulary of `size` tokens; shape ((V+31)//32,), uint32."""
    import numpy as np

    return np.zeros((size + 31) // 32, dtype=np.uint32)


def address(mask: "Mask", size: int) -> int:
    """Where the words of a mask lie in memory.

    Raises:
        InputError: it is not one row of `size` 32-bit words that may be written.
    """
    held = mask.__array_interface__
    where, fixed = held["data"]
    if held["shape"] != (size,) or held["typestr"][1:] not in ("u4", "i4") or held.get("strides") or fixed:
        raise InputError(f"a mask is one row of {size} 32-bit words, not {mask.shape} of {mask.dtype}")
    return int(where)


def count(mask: "Mask") -> int:
    """How many tokens a mask lets through."""
    import numpy as np

    return int(np.bitwise_count(mask).sum())


def indices(mask: "Mask", limit: int) -> "NDArray[np.intp] | None":
    """The tokens of a mask in order; None when there are more than `limit`. Reads only the words that are not empty."""
    import numpy as np

    words = np.flatnonzero(mask)
    if len(words) > limit:
        return None
    if len(words) == 0:
        return words
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    if len(rows) > limit:
        return None
    return words[rows] * 32 + columns


def listed(write: "Callable[[Mask], None]", size: int, limit: int) -> tuple[int, ...] | None:
    """The tokens that `write` puts into a mask for `size` tokens, in order; None when there are more than `limit`."""
    mask = allocate(size)
    write(mask)
    found = indices(mask, limit)
    return None if found is None else tuple(found.tolist())
