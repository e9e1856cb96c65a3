"""Places in a state (`dictionary.文`, `topics[2]`), the differences of two states, and who set a value."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, value

__all__ = ["ABSENT", "Change", "Missing", "StatePath", "diff_states", "format_path", "get_path", "parse_path"]


StatePath: TypeAlias = tuple[str | int, ...]

STEP = re.compile(r"\.?([^.\[\]\s][^.\[\]]*)|\[(-?\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class Missing:
    """Nothing is there; not the same as null."""

    def __repr__(self) -> str:
        return "(nothing)"


ABSENT = Missing()


@value(tag="state-change")
class Change:
    """One difference: where, and what stood and stands there."""

    place: StatePath
    kind: Literal["added", "removed", "changed"]
    before: Json = None
    after: Json = None


def parse_path(text: str) -> StatePath:
    """Read a place as a person writes it.

    >>> parse_path('dictionary.文'), parse_path('topics[0]'), parse_path('table["a.b"]')
    (('dictionary', '文'), ('topics', 0), ('table', 'a.b'))

    Raises:
        InputError: the text names no place.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = STEP.match(text, at)
        if match is None:
            raise InputError(
                f"{text!r} names no place in the state (at character {at + 1}); write field, field.key or field[0]"
            )
        name, index, quoted = match.groups()
        steps.append(int(index) if index else name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    if not steps:
        raise InputError("no place was given; write field, field.key or field[0]")
    return tuple(steps)


def format_path(place: StatePath) -> str:
    """Write a place so that `parse_path` reads it back."""
    words: list[str] = []
    for step in place:
        if isinstance(step, int):
            words.append(f"[{step}]")
        elif re.fullmatch(r"[^.\[\]\s\"\\]+", step):
            words.append(f".{step}" if words else step)
        else:
            escaped = re.sub(r'([\\"])', r"\\\1", step)
            words.append(f'["{escaped}"]')
    return "".join(words)


def get_path(held: Json, place: StatePath) -> "Json | Missing":
    """What stands at a place, or `ABSENT`."""
    for step in place:
        if isinstance(held, dict) and str(step) in held:
            held = held[str(step)]
        elif isinstance(held, list) and isinstance(step, int) and -len(held) <= step < len(held):
            held = held[step]
        else:
            return ABSENT
    return held


def diff_states(before: Json, after: Json, place: StatePath = ()) -> Iterator[Change]:
    """The differences between two values, tables entry by entry, lists item by item."""
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from _entry((*place, key), before.get(key, ABSENT), after.get(key, ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, place)
    else:
        yield Change(place, "changed", before, after)


def _entry(place: StatePath, before: "Json | Missing", after: "Json | Missing") -> Iterable[Change]:
    if isinstance(before, Missing):
        return () if isinstance(after, Missing) else (Change(place, "added", None, after),)
    if isinstance(after, Missing):
        return (Change(place, "removed", before, None),)
    return diff_states(before, after, place)


def _items(before: list[Json], after: list[Json], place: StatePath) -> Iterator[Change]:
    """Lists that grew, shrank or moved on: what stayed in order is not a change."""
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))
    before, after = before[same:], after[same:]
    shift = next((n for n in range(len(before) + 1) if before[n:] == after[: len(before) - n]), len(before))
    if shift == len(before) and before and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True), same):
            yield from diff_states(old, new, (*place, index))
        return
    for index, item in enumerate(before[:shift], same):
        yield Change((*place, index), "removed", item, None)
    for index, item in enumerate(after[len(before) - shift :], same + len(before) - shift):
        yield Change((*place, index), "added", None, item)
