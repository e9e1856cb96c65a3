"""Tolerant reading of JSON that a server sent: what has the wrong type counts as absent."""

import json
import re
from typing import cast

from taiwa.kernel.records import Json

__all__ = ["SurrogateJoiner", "count_at", "item_at", "items_at", "mend", "parse", "text_at"]

SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def parse(text: str | bytes) -> Json:
    """Read JSON text; bytes that are not UTF-8 are read with replacement characters.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    try:
        return cast(Json, json.loads(words))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def item_at(data: Json, *path: str) -> Json:
    """Follow keys into nested objects; None where there is nothing."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def items_at(data: Json, *path: str) -> list[Json]:
    """The list at a path, or an empty one."""
    found = item_at(data, *path)
    return found if isinstance(found, list) else []


def text_at(data: Json, *path: str) -> str:
    """The string at a path, or an empty one."""
    found = item_at(data, *path)
    return found if isinstance(found, str) else ""


def count_at(data: Json, *path: str) -> int | None:
    """The count at a path, or None where there is no whole number from zero up."""
    found = item_at(data, *path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def mend(text: str) -> str:
    """Join halves of characters that stand side by side, and replace those that stand alone."""
    if text.isascii() or SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Mends text that arrives in pieces: some servers split a character into its two UTF-16 halves."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Take the next piece and give out all of it that is whole characters."""
        if self._half:
            text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mend(text)

    def close(self) -> str:
        """A half that never met its other half becomes a replacement character."""
        left, self._half = self._half, ""
        return REPLACEMENT if left else ""
