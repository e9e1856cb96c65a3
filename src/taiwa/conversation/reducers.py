"""Reducers: how a state delta becomes the next value of a field. Pure steps, applied once, at commit.

The model never writes state; it answers with a delta, and a reducer folds it in. A reducer that offers `combine` promises
`step(step(s, a), b) == step(s, combine(a, b))`; `taiwa laws` checks that promise, for reducers of other packages too.

A user's own reducers are functions of a Python file next to the app, confirmed once and then identified by the hash of the
file. `reduce: tops.py:highest(3)` calls `highest(before, delta, 3)`. When the app is loaded, this becomes
`tops.py@HASH:highest(3)` in its source, so that a stored conversation always refers to the same code. Confirming a file
copies it into the folder `reducers` next to the config file, under its hash; no other code is ever run.
"""

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal, cast

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json, canonical, is_number, parse_json, value
from taiwa.plugins import find_plugin, load_plugin, plugin_names
from taiwa.settings import config_path

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
        loaded = load_plugin("reducers", name, Reducer, f"a Reducer named {name!r}")
        if loaded is None:
            return None
        if loaded.name != name:
            raise ConfigError(
                f"the {find_plugin('reducers', name)} must be a Reducer named {name!r}, not {loaded.name!r}"
            )
        KNOWN[name] = loaded
    return KNOWN[name]


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


# --- functions of a file ----------------------------------------------------------------------------------------------

HASH_CHARS = 32
MAX_BYTES = 1024 * 1024
IN_FILE = re.compile(
    r"(?P<file>[\w./-]+\.py)(?:@(?P<hash>[0-9a-f]{32}))?:(?P<name>[A-Za-z_]\w*)(?:\((?P<argument>.*)\))?"
)
"""The name of a reducer of a file."""
FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n.*?\n---", re.DOTALL)
IN_TEXT = re.compile(r"(?m)(?<![\w-])(reduce:\s*[\"']?)([\w./-]+\.py)(?=:[A-Za-z_])")

_of_files: dict[str, Reducer] = {}


@dataclass(frozen=True, slots=True)
class ReducerFile:
    """A Python file that an app names, and the hash of its content; `confirmed` says whether it may run."""

    path: Path
    hash: str
    confirmed: bool


def pin_files(text: str, folder: Path) -> str:
    """Write the hash of each file into the `reduce` keys of an app's text; a file that cannot be read stays as it is."""

    def pin(match: re.Match[str]) -> str:
        with suppress(OSError):
            return f"{match[1]}{match[2]}@{_hash((folder / match[2]).read_bytes())}"
        return match[0]

    front = FRONT.match(text)
    return text if front is None else IN_TEXT.sub(pin, front[0]) + text[front.end() :]


def reducer_files(text: str, folder: Path) -> Iterator[ReducerFile]:
    """Yield the files that the text of an app names, each once.

    Raises:
        ConfigError: one cannot be read, or is too large.
    """
    front = FRONT.match(text)
    for name in dict.fromkeys(match[2] for match in IN_TEXT.finditer(front[0] if front else "")):
        path = folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read {path} ({error.strerror})") from None
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES:,} bytes")
        yield ReducerFile(path, _hash(data), confirmed=_kept(_hash(data)).is_file())


def confirm_file(file: ReducerFile) -> None:
    """Allow a file to run: copy the content that was shown, which the hash identifies.

    Raises:
        ConfigError: the file has changed since, or cannot be copied.
    """
    try:
        data, kept = file.path.read_bytes(), _kept(file.hash)
        if _hash(data) != file.hash:
            raise ConfigError(f"{file.path} has changed meanwhile; confirm it again")
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(kept)
    except OSError as error:
        raise ConfigError(f"cannot keep a copy of {file.path} ({error.strerror})") from None


def _of_file(match: re.Match[str]) -> Reducer:
    if match[0] not in _of_files:
        if match["hash"] is None:
            raise ConfigError(f"the file {match['file']} was not found next to the app")
        loaded = _load(match["file"], match["hash"], match["name"])
        if isinstance(loaded, Reducer):
            _of_files[match[0]] = replace(loaded, name=match[0])
        else:
            arguments = () if match["argument"] is None else (_argument(match["argument"]),)
            step = _step(match[0], loaded, arguments)
            _of_files[match[0]] = Reducer(match[0], step, about="a function of your own")
    return _of_files[match[0]]


@cache
def _load(file: str, key: str, name: str) -> Callable[..., object] | Reducer:
    kept = _kept(key)
    try:
        data = kept.read_bytes()
    except OSError:
        data = b""
    if _hash(data) != key:
        raise ConfigError(
            f"{file} (sha256 {key[:12]}…) is code that was not confirmed here; run `taiwa apps confirm` on the app"
        )
    spec = spec_from_file_location(f"taiwa_reducer_{key}", kept)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    found: object = getattr(module, name, None)
    if isinstance(found, Reducer) or callable(found):
        return found
    raise ConfigError(f"{file} has no function or Reducer {name!r}")


def _step(name: str, function: Callable[..., object], arguments: tuple[Json, ...]) -> Callable[[Json, Json, int], Json]:
    def step(before: Json, delta: Json, _turn: int) -> Json:
        try:
            after = function(deepcopy(before), deepcopy(delta), *arguments)
            return cast("Json", json.loads(canonical(cast("Json", after))))
        except Exception as error:
            raise InputError(f"the reducer {name} failed: {type(error).__name__}: {error}") from error

    return step


def _argument(text: str) -> Json:
    """Return an argument: JSON, else a text."""
    try:
        return parse_json(text)
    except ValueError:
        return text.strip()


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:HASH_CHARS]


def _kept(key: str) -> Path:
    return config_path(os.environ).parent / "reducers" / f"{key}.py"
