"""Reducers: how a state delta becomes the next value of a field. Pure steps, applied once, at commit.

The model never writes state; it answers with a delta, and a reducer folds it in. A reducer that offers `combine` promises
`step(step(s, a), b) == step(s, combine(a, b))`; the tests check that promise.

A user's own reducers are functions of a file, see `code_files`.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import Literal, ParamSpec, cast

from taiwa.conversation.code_files import IN_FILE, MODULE, function_named
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json, canonical, is_number, parse_json, value
from taiwa.plugins import FAILURES, Plugin, find_plugin, load_plugin, one_line, plugin_names

P = ParamSpec("P")
DeltaKind = Literal["value", "items", "table", "words"]
"""The delta of a field: a value of its type · a list of items · a table whose nulls remove entries · a list of words."""


@value
class Reducer:
    """A named way to fold deltas: `step(state, delta, turn)`. `types` are the JSON types that a field of it may have.

    In the reply mode `environment` the model writes whole values, and `step(empty, value, turn)` bounds one, as in the first
    Monadic Chat; a reducer that `needs_before` makes no sense there.
    """

    name: str
    step: Callable[[Json, Json, int], Json]
    delta_kind: DeltaKind = "value"
    empty: Json = None
    types: tuple[str, ...] = ()
    combine: Callable[[Json, Json], Json] | None = None
    about: str = ""
    needs_before: bool = False
    max_tokens: int | None = None
    """The estimated tokens above which a model compresses the value, before the next turn."""


def _list(data: Json) -> list[Json]:
    if isinstance(data, list):
        return data
    raise InputError(f"expected a list, got {type(data).__name__}")


def _dict(data: Json) -> dict[str, Json]:
    if isinstance(data, dict):
        return data
    raise InputError(f"expected a table, got {type(data).__name__}")


def _number(data: Json) -> int | float:
    if is_number(data):
        return data
    raise InputError(f"expected a number, got {type(data).__name__}")


def item_key(item: Json) -> str | bytes:
    """Return the key by which items are equal: case, Unicode forms and surrounding space make no difference."""
    if not isinstance(item, str):
        return canonical(item)
    return item.strip().lower() if item.isascii() else unicodedata.normalize("NFKC", item).strip().casefold()


def _union(before: Json, delta: Json, _turn: int = 0) -> Json:
    items, new = list(_list(before)), _list(delta)
    if all(isinstance(item, str) and item in items for item in new):
        return items  # the usual case of a long conversation: nothing new
    known = {item_key(item) for item in items}
    for item in new:
        key = item_key(item)
        if key not in known:
            known.add(key)
            items.append(item)
    return items


def _merge(before: Json, delta: Json, _turn: int = 0) -> Json:
    """Set the entries of a table; null removes one. Entries set last come last, because a view shows the newest."""
    new = _dict(delta)
    after = {key: entry for key, entry in _dict(before).items() if key not in new} | new
    return {key: entry for key, entry in after.items() if entry is not None}


def _count(before: Json, delta: Json, _turn: int = 0) -> Json:
    counts = dict(_dict(before))
    for word in _list(delta):
        counts[str(word)] = cast("int", counts.get(str(word), 0)) + 1
    return counts


def _add(before: Json, delta: Json, _turn: int = 0) -> Json:
    """Add in decimal, so that 0.1 + 0.2 is 0.3."""
    left, right = _number(before), _number(delta)
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return float(Decimal(str(left)) + Decimal(str(right)))


def _overlay(first: Json, second: Json) -> Json:
    return _dict(first) | _dict(second)


def _append(before: Json, delta: Json, _turn: int = 0) -> Json:
    return [*_list(before), *_list(delta)]


def _log(before: Json, delta: Json, turn: int) -> Json:
    return [*_list(before), *({"turn": turn, "entry": entry} for entry in _list(delta))]


def _last(count: int) -> Reducer:
    def keep(before: Json, delta: Json, _turn: int = 0) -> Json:
        return [*_list(before), *_list(delta)][-count:]

    about = f"the newest {count} items of the list"
    return Reducer(f"last({count})", keep, "items", [], ("list",), keep, about)


def _summary(tokens: int) -> Reducer:
    about = f"the text is added; more than {tokens} tokens are compressed by the model before the next turn"
    return Reducer(f"summary({tokens})", _add_text, "value", "", ("str",), _add_text, about, max_tokens=tokens)


def _add_text(before: Json, delta: Json, _turn: int = 0) -> Json:
    return "\n".join(str(part) for part in (before, delta) if part)


def _set(_before: Json, delta: Json, _turn: int = 0) -> Json:
    return delta


def _max(before: Json, delta: Json, _turn: int = 0) -> Json:
    return max(_number(delta if before is None else before), _number(delta))


def _min(before: Json, delta: Json, _turn: int = 0) -> Json:
    return min(_number(delta if before is None else before), _number(delta))


NUMBERS = ("int", "float")

BUILT_IN: dict[str, Reducer] = {
    each.name: each
    for each in (
        Reducer("set", _set, combine=_set, about="the new value replaces the old"),
        Reducer("append", _append, "items", [], ("list",), _append, "the items are added at the end"),
        Reducer("union", _union, "items", [], ("list",), _union, "items not there yet are added"),
        Reducer("table", _merge, "table", {}, ("dict",), _overlay, "entries are set; null removes one"),
        # Not combinable: a sum of fractions is rounded at each commit, so adding two deltas first may change the last digit.
        Reducer("sum", _add, empty=0, types=NUMBERS, about="the numbers are added up", needs_before=True),
        Reducer("count", _count, "words", {}, ("dict",), _append, "how often each word was given", True),
        Reducer("max", _max, types=NUMBERS, combine=_max, about="the largest number given", needs_before=True),
        Reducer("min", _min, types=NUMBERS, combine=_min, about="the smallest number given", needs_before=True),
        Reducer("log", _log, "items", [], ("list",), None, "the items are added with the number of their turn", True),
    )
}

NUMBERED = re.compile(r"(last|summary)\(([1-9][0-9]{0,5})\)")

PATTERNS = ("last(n)", "summary(tokens)")
"""How the reducers with a number are written."""


KNOWN = dict(BUILT_IN)
"""The built-in reducers and the plug-ins loaded so far."""


def known_reducers() -> dict[str, Reducer]:
    """Return the built-in reducers and those of plug-ins, except one that cannot be loaded (`taiwa plugins` says why)."""
    for name in plugin_names("reducers"):
        with suppress(ConfigError):
            _plugin(name)
    return KNOWN


def reducer_names() -> tuple[str, ...]:
    """Return the names of all reducers and the patterns of those with a number, without loading a plug-in."""
    return tuple(dict.fromkeys((*KNOWN, *plugin_names("reducers"), *PATTERNS)))


def _plugin(name: str) -> Reducer | None:
    if name not in KNOWN:
        plugin = find_plugin("reducers", name)
        loaded = load_plugin("reducers", name, Reducer, f"a Reducer named {name!r}")
        if plugin is None or loaded is None:
            return None
        if loaded.name != name:
            raise ConfigError(f"the {plugin} must be a Reducer named {name!r}, not {loaded.name!r}")
        combine = loaded.combine and _blamed(plugin, loaded.combine)
        KNOWN[name] = replace(loaded, step=_blamed(plugin, loaded.step), combine=combine)
    return KNOWN[name]


def _blamed(plugin: Plugin, function: Callable[P, Json]) -> Callable[P, Json]:
    def call(*arguments: P.args, **named: P.kwargs) -> Json:
        with plugin.blamed(ConfigError):
            return function(*arguments, **named)

    return call


def reducer(name: str) -> Reducer:
    """Find a reducer: a known name, `last(n)`, `summary(tokens)`, or a function of a user's file.

    Raises:
        ConfigError: the name is unknown, its plug-in cannot be used, or its file was never confirmed or lacks the function.
    """
    numbered = NUMBERED.fullmatch(name.replace(" ", ""))
    if numbered:
        return (_last if numbered[1] == "last" else _summary)(int(numbered[2]))
    found = _of_file(match) if (match := IN_FILE.fullmatch(name)) else _plugin(name)
    if found is None:
        raise ConfigError(f"unknown reducer {name!r}; choose one of {', '.join(reducer_names())}")
    return found


_of_files: dict[str, Reducer] = {}


def _of_file(match: re.Match[str]) -> Reducer:
    if match[0] not in _of_files:
        loaded = function_named(match[0])
        if isinstance(loaded, Reducer):
            _of_files[match[0]] = replace(loaded, name=match[0])
        elif callable(loaded) and getattr(loaded, "__module__", "") == f"{MODULE}{match['hash']}":
            # Not what the file imports: an imported app would choose it, and the arguments that it is called with.
            arguments = () if match["argument"] is None else (_argument(match["argument"]),)
            step = _step(match[0], loaded, arguments)
            _of_files[match[0]] = Reducer(match[0], step, about="a function of your own")
        else:
            raise ConfigError(f"{match['file']} defines no function or Reducer {match['name']!r}")
    return _of_files[match[0]]


def _step(name: str, function: Callable[..., object], arguments: tuple[Json, ...]) -> Callable[[Json, Json, int], Json]:
    def step(before: Json, delta: Json, _turn: int) -> Json:
        try:
            after = function(deepcopy(before), deepcopy(delta), *arguments)
            return cast("Json", json.loads(canonical(cast("Json", after))))
        except FAILURES as error:
            raise InputError(f"the reducer {name} failed: {one_line(error)}") from error

    return step


def _argument(text: str) -> Json:
    """Return an argument: JSON, else a text."""
    try:
        return parse_json(text)
    except ValueError:
        return text.strip()
