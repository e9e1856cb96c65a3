"""What JSON text may hold and still is no JSON value that every program reads alike.

Not a number and infinities (JSON has none), numbers beyond a float, halves of characters, the same key twice, and nesting
without end. The checks of whole texts work on bytes, so that they cost a few percent of what validation costs.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite

from taiwa.kernel import Json

__all__ = ["depth_of", "flaws", "has_duplicate_keys", "has_odd_numbers", "is_deeper"]

BRACKETS = b"[]{}"
OTHERS = bytes(set(range(256)) - set(BRACKETS))
SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
LONGEST_FLOAT = 309
HALF = re.compile(r"[\ud800-\udfff]")


def has_odd_numbers(raw: bytes) -> bool:
    """Tell whether JSON may hold a number that is not finite as a float; True is a suspicion, False is certain."""
    if b"NaN" in raw or b"Infinity" in raw:
        return True
    shapes = raw.translate(SHAPES)
    return b"e000" in shapes or b"e+000" in shapes or b"0" * LONGEST_FLOAT in shapes


def is_deeper(raw: bytes, depth: int) -> bool:
    """Tell whether brackets may nest deeper than `depth`; brackets in strings can make a true answer wrong, not a false one."""
    left = raw.translate(None, OTHERS)
    for _ in range(depth):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def has_duplicate_keys(raw: bytes) -> bool:
    """Tell whether an object in valid JSON has a key twice."""
    try:
        json.loads(raw, object_pairs_hook=_once)
    except _TwiceError:
        return True
    except (ValueError, RecursionError):  # what this cannot read the reader looks at closely
        return True
    return False


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _TwiceError
    return made


def depth_of(data: Json, most: int) -> int:
    """Count how many objects and lists lie in one another, up to `most` + 1."""
    level, depth = [data], 0
    while depth <= most:
        outer = [each for each in level if isinstance(each, (dict, list))]
        if not outer:
            break
        depth += 1
        level = [inner for each in outer for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def flaws(data: Json) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Give the paths of what JSON cannot say: numbers that are not finite, halves of characters."""
    todo: list[tuple[tuple[str | int, ...], Json]] = [((), data)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, float) and not isfinite(here):
            yield path, "is no number that JSON has; give a finite number, or null where it is allowed"
        elif isinstance(here, str) and (found := HALF.search(here)):
            yield path, f"holds half a character (U+{ord(found[0]):04X}); give whole characters"
        elif isinstance(here, dict):
            for key in here:
                if HALF.search(key):
                    yield path, "has a key with half a character; give whole characters"
            todo.extend(((*path, key), inner) for key, inner in reversed(here.items()))
        elif isinstance(here, list):
            todo.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(here))))
