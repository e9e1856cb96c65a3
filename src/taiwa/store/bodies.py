"""How values lie in rows: canonical JSON, compressed where that pays, and 16-byte hashes."""

import json
import zlib
from typing import Any, cast

from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json, canonical

__all__ = ["key", "pack", "plain", "short", "text", "texts", "unpack"]

HASH_LENGTH = 32
WORTH = 600
"""Bytes from which on a body is compressed; below that, zlib saves less than its time costs."""
ZLIB = 0x78
"""The first byte of a zlib stream; no JSON text begins with it."""


def key(name: str) -> bytes:
    """Turn a hash of 32 hex characters into its 16 bytes.

    Raises:
        InputError: it is not one.
    """
    try:
        raw = bytes.fromhex(name)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != HASH_LENGTH // 2 or name != raw.hex():
        raise InputError(f"a hash has {HASH_LENGTH} hex characters, and this is none")
    return raw


def text(raw: bytes | None) -> str | None:
    """Turn the bytes of a hash into its text."""
    return None if raw is None else raw.hex()


def short(name: str | None) -> str:
    """Shorten a hash for a message."""
    return "nothing" if name is None else name[:8]


def plain(data: Json) -> Json:
    """Return the value when it is JSON to its last leaf, so that reading gives an equal one with an equal hash.

    Raises:
        InputError: it holds a tuple, an object of a class, or a key that is no text.
    """
    if isinstance(data, list):
        for part in data:
            plain(part)
    elif isinstance(data, dict):
        for name, part in data.items():
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (a caller may not check types)
                raise InputError("a JSON object that is to be stored has keys that are no text")
            plain(part)
    elif data is not None and not isinstance(data, (str, int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a {type(data).__name__} cannot be stored: give JSON, with lists and not tuples")
    return data


def pack(data: Json, *, in_order: bool = False) -> bytes:
    """Write JSON for a row, canonically, or with the keys in the order in which they are.

    Raises:
        InputError: it holds what JSON cannot say.
    """
    try:
        written = canonical(data)
        if in_order:
            written = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError:
        raise InputError("the value is nested too deeply to be stored") from None
    if len(written) <= WORTH:
        return written
    squeezed = zlib.compress(written)
    return squeezed if len(squeezed) < len(written) else written


def unpack(body: bytes) -> Json:
    """Read what `pack` wrote.

    Raises:
        CorruptError: the body is damaged.
    """
    try:
        data: Json = json.loads(zlib.decompress(body) if body[0] == ZLIB else body)
    except (IndexError, ValueError, RecursionError, zlib.error):
        raise CorruptError("a row of the store cannot be read: run `taiwa fsck`") from None
    return data


def texts(body: bytes) -> tuple[str, ...]:
    """Return what was said in a node: the words that searching finds."""
    said = cast("dict[str, Any]", unpack(body))  # what `Nodes.insert` wrote
    return tuple(text for text in (said.get("user"), said.get("answer")) if text)
