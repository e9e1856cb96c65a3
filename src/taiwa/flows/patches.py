"""Corrections of single places of an answer: `{"$.items[5].size": "large"}` instead of the whole answer once more.

Pure: paths are those of diagnostics. A patch may touch what was wrong and nothing else.
"""

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from typing import TypeAlias

from taiwa.kernel.records import Json

__all__ = ["Path", "patched", "place_of", "read_path"]

Path: TypeAlias = tuple[str | int, ...]
STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<index>\d{1,9})\]|\[(?P<key>\"(?:[^\"\\]|\\.)*\")\]")


def read_path(text: str) -> Path | None:
    """Read a path as diagnostics write it; None where it is none.

    >>> read_path('$.items[5]["odd key"]')
    ('items', 5, 'odd key')
    """
    found, end = _leading(text)
    return found if end == len(text) else None


def place_of(line: str) -> str:
    """Take the path from the beginning of a line of diagnostics; empty where the line is about the whole answer.

    >>> place_of("$.cups = 0: must be integer, 1..9")
    '$.cups'
    """
    found, end = _leading(line)
    return line[:end] if found and line.startswith((" = ", ": "), end) else ""


def patched(data: Json, patch: dict[str, Json], places: Iterable[str]) -> Json:
    """Give the data with the patch applied; None where a path is not there or leads to none of the faulty places."""
    faulty, whole = [read_path(place) or () for place in places], deepcopy(data)
    for text, value in patch.items():
        path = read_path(text)
        if not path or not any(_related(path, each) for each in faulty) or not _put(whole, path, deepcopy(value)):
            return None
    return whole if patch else None


def _leading(text: str) -> tuple[Path | None, int]:
    if not text.startswith("$"):
        return None, 0
    path: list[str | int] = []
    at = 1
    while found := STEP.match(text, at):
        if found["key"] is not None:
            try:
                path.append(json.loads(found["key"]))
            except ValueError:
                return None, at
        else:
            path.append(found["name"] if found["index"] is None else int(found["index"]))
        at = found.end()
    return tuple(path), at


def _related(path: Path, other: Path) -> bool:
    """Whether one of two paths leads through the other."""
    return all(one == two for one, two in zip(path, other, strict=False))


def _put(data: Json, path: Path, value: Json) -> bool:
    """Set the value at a path whose container is there; a key may be new, an item may not."""
    here = data
    for step in path[:-1]:
        inner = _inside(here, step)
        if inner is None:
            return False
        here = inner
    match here, path[-1]:
        case dict(), str(key):
            here[key] = value
        case list(), int(index) if index < len(here):
            here[index] = value
        case _:
            return False
    return True


def _inside(data: Json, step: str | int) -> Json:
    if isinstance(data, dict) and isinstance(step, str):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and step < len(data) else None
