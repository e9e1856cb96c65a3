"""How a delta becomes the next value of a field: pure steps, applied once, at commit.

The model never writes state; it answers with a delta and a reducer folds it in. A reducer that offers `squash` promises
`step(step(s, a), b) == step(s, squash(a, b))`; `taiwa laws` checks that promise for everybody's reducers.
"""

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib.metadata import entry_points
from typing import Literal, TypeAlias, cast

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import Json, canonical, value

__all__ = ["BUILT_IN", "Form", "Reducer", "known_reducers", "reducer"]

Form = Literal["same", "items", "table", "tally"]
"""What a delta looks like beside the field's type: the same · a list of items · a table whose nulls remove · a list of words."""
Items: TypeAlias = "list[Json]"


@value
class Reducer:
    """A named way to fold deltas. `step(state, delta, turn)`; `holds` are the JSON kinds a field of it may have."""

    name: str
    step: Callable[[Json, Json, int], Json]
    form: Form = "same"
    empty: Json = None
    holds: tuple[str, ...] = ()
    squash: Callable[[Json, Json], Json] | None = None
    about: str = ""


def items(held: Json) -> Items:
    """Read a list; anything else is an error.

    Raises:
        InputError: it is not a list.
    """
    if isinstance(held, list):
        return held
    raise InputError(f"a list was expected, not {type(held).__name__}")


def table(held: Json) -> dict[str, Json]:
    """Read a table.

    Raises:
        InputError: it is not a table.
    """
    if isinstance(held, dict):
        return held
    raise InputError(f"a table was expected, not {type(held).__name__}")


def number(held: Json) -> int | float:
    """Read a number.

    Raises:
        InputError: it is not a number.
    """
    if isinstance(held, (int, float)) and not isinstance(held, bool):
        return held
    raise InputError(f"a number was expected, not {type(held).__name__}")


def same_item(item: Json) -> str | bytes:
    """Name an item for equality: Unicode forms and surrounding space make no difference, substrings do."""
    if not isinstance(item, str):
        return canonical(item)
    return item.strip().lower() if item.isascii() else unicodedata.normalize("NFKC", item).strip().casefold()


def union_of(held: Json, more: Json) -> Items:
    """Add the items that are not there yet, each once; what is there stays as it is."""
    kept = list(items(held))
    if all(isinstance(item, str) and item in kept for item in items(more)):
        return kept  # the usual case of a long conversation: nothing new
    known = {same_item(item) for item in kept}
    for item in items(more):
        name = same_item(item)
        if name not in known:
            known.add(name)
            kept.append(item)
    return kept


def merge_tables(held: Json, change: Json) -> dict[str, Json]:
    """Set the entries of a table; null removes one. What was set last stands last: a view shows the newest entries."""
    given = table(change)
    after = {key: entry for key, entry in table(held).items() if key not in given} | given
    return {key: entry for key, entry in after.items() if entry is not None}


def add_counts(held: Json, words: Json) -> dict[str, Json]:
    """Count words."""
    counts = dict(table(held))
    for word in items(words):
        counts[str(word)] = cast("int", counts.get(str(word), 0)) + 1
    return counts


def _extreme(choose: Callable[[int | float, int | float], int | float]) -> Callable[[Json, Json], Json]:
    return lambda held, given: number(given) if held is None else choose(number(held), number(given))


def _added(held: Json, given: Json) -> Json:
    """Add as a person would on paper: 0.1 + 0.2 is 0.3."""
    left, right = number(held), number(given)
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return float(Decimal(str(left)) + Decimal(str(right)))


def _overlaid(first: Json, second: Json) -> Json:
    return table(first) | table(second)


def _appended(held: Json, given: Json) -> Json:
    return [*items(held), *items(given)]


def _logged(held: Json, given: Json, turn: int) -> Json:
    return [*items(held), *({"turn": turn, "entry": entry} for entry in items(given))]


def _last(count: int) -> Reducer:
    def keep(held: Json, given: Json) -> Json:
        return [*items(held), *items(given)][-count:]

    return Reducer(
        f"last({count})", _stepped(keep), "items", [], ("list",), keep, f"the newest {count} items of the list"
    )


def _stepped(fold: Callable[[Json, Json], Json]) -> Callable[[Json, Json, int], Json]:
    return lambda held, given, _turn: fold(held, given)


def _set(_held: Json, given: Json) -> Json:
    return given


_max, _min = _extreme(max), _extreme(min)
NUMBERS = ("int", "float")

BUILT_IN: dict[str, Reducer] = {
    made.name: made
    for made in (
        Reducer("set", _stepped(_set), squash=_set, about="the new value replaces the old"),
        Reducer("append", _stepped(_appended), "items", [], ("list",), _appended, "the items are added at the end"),
        Reducer("union", _stepped(union_of), "items", [], ("list",), union_of, "items not there yet are added"),
        Reducer(
            "table", _stepped(merge_tables), "table", {}, ("dict",), _overlaid, "entries are set; null removes one"
        ),
        # No squash: a sum of fractions is rounded at each commit, so adding two deltas first may give another last digit.
        Reducer("sum", _stepped(_added), empty=0, holds=NUMBERS, about="the numbers are added up"),
        Reducer("count", _stepped(add_counts), "tally", {}, ("dict",), _appended, "how often each word was given"),
        Reducer("max", _stepped(_max), holds=NUMBERS, squash=_max, about="the largest number given"),
        Reducer("min", _stepped(_min), holds=NUMBERS, squash=_min, about="the smallest number given"),
        Reducer("log", _logged, "items", [], ("list",), None, "the items are added with the number of their turn"),
    )
}

LAST = re.compile(r"last\(([1-9][0-9]{0,5})\)")


@cache
def known_reducers() -> dict[str, Reducer]:
    """Return the built-in reducers and those that installed packages offer as `taiwa.reducers` entry points.

    Raises:
        ConfigError: a package offers something that is not a reducer.
    """
    known = dict(BUILT_IN)
    for point in entry_points(group="taiwa.reducers"):
        offered: object = point.load()
        if not isinstance(offered, Reducer):
            raise ConfigError(f"the entry point {point.name!r} of taiwa.reducers is not a Reducer ({point.value})")
        known[offered.name] = offered
    return known


def reducer(name: str) -> Reducer:
    """Find a reducer: one of the known names, or `last(n)`.

    Raises:
        ConfigError: there is none of that name.
    """
    last = LAST.fullmatch(name.replace(" ", ""))
    if last:
        return _last(int(last[1]))
    found = known_reducers().get(name)
    if found is None:
        raise ConfigError(f"there is no reducer {name!r}; known: {', '.join([*known_reducers(), 'last(n)'])}")
    return found
