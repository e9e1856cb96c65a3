"""Paths into a state (`dictionary.文`, `topics[2]`) and the differences of two states."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, value

StatePath: TypeAlias = tuple[str | int, ...]

STEP = re.compile(r"\.?([^.\[\]\s][^.\[\]]*)|\[(-?\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class Missing:
    """The type of `MISSING`: there is no value at a path, which is not the same as null."""

    def __repr__(self) -> str:
        return "(nothing)"


MISSING = Missing()


@value(tag="state-change")
class Change:
    """One difference between two states: its path and the values before and after."""

    path: StatePath
    kind: Literal["added", "removed", "changed"]
    before: Json = None
    after: Json = None


def parse_path(text: str) -> StatePath:
    """Parse a path.

    >>> parse_path('dictionary.文'), parse_path('topics[0]'), parse_path('table["a.b"]')
    (('dictionary', '文'), ('topics', 0), ('table', 'a.b'))

    Raises:
        InputError: the text is not a path.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = STEP.match(text, at)
        if match is None:
            raise InputError(f"invalid path {text!r} at character {at + 1}; write field, field.key or field[0]")
        name, index, quoted = match.groups()
        steps.append(int(index) if index else name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    if not steps:
        raise InputError("the path is empty; write field, field.key or field[0]")
    return tuple(steps)


def format_path(path: StatePath) -> str:
    """Format a path such that `parse_path` returns it."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif re.fullmatch(r"[^.\[\]\s\"\\]+", step):
            parts.append(f".{step}" if parts else step)
        else:
            escaped = re.sub(r'([\\"])', r"\\\1", step)
            parts.append(f'["{escaped}"]')
    return "".join(parts)


def as_index(step: str | int) -> int | None:
    """Return a step as the index of a list: `items[1]` and `items.1` are the same place there."""
    return int(step) if isinstance(step, int) or step.isdecimal() else None


def get_path(data: Json, path: StatePath) -> "Json | Missing":
    """Return the value at a path, or `MISSING`."""
    for step in path:
        if isinstance(data, dict) and str(step) in data:
            data = data[str(step)]
        elif isinstance(data, list) and (index := as_index(step)) is not None and -len(data) <= index < len(data):
            data = data[index]
        else:
            return MISSING
    return data


def diff_states(before: Json, after: Json, path: StatePath = ()) -> Iterator[Change]:
    """Compare two values: tables entry by entry, lists item by item."""
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from _diff_entry((*path, key), before.get(key, MISSING), after.get(key, MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(before, after, path)
    else:
        yield Change(path, "changed", before, after)


def _diff_entry(path: StatePath, before: "Json | Missing", after: "Json | Missing") -> Iterable[Change]:
    if isinstance(before, Missing):
        return () if isinstance(after, Missing) else (Change(path, "added", None, after),)
    if isinstance(after, Missing):
        return (Change(path, "removed", before, None),)
    return diff_states(before, after, path)


def _diff_lists(before: list[Json], after: list[Json], path: StatePath) -> Iterator[Change]:
    """Compare two lists; items that stay in order while the list grows, shrinks or scrolls are not changes."""
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))
    before, after = before[same:], after[same:]
    shift = next((n for n in range(len(before) + 1) if before[n:] == after[: len(before) - n]), len(before))
    if shift == len(before) and before and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True), same):
            yield from diff_states(old, new, (*path, index))
        return
    for index, item in enumerate(before[:shift], same):
        yield Change((*path, index), "removed", item, None)
    for index, item in enumerate(after[len(before) - shift :], same + len(before) - shift):
        yield Change((*path, index), "added", None, item)
