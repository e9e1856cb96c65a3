"""A user's own reducers: functions of a Python file beside the app, confirmed once and then known by the hash of the file.

`reduce: tops.py:highest(3)` calls `highest(before, delta, 3)`. What is read from disk becomes `tops.py@HASH:highest(3)` in the
source of the app, so that a stored conversation always means the same code. Confirming a file copies it into the folder
`reducers` beside the config file, under its hash; nothing else is ever run.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

from taiwa.conversation.reducers import USER_REDUCERS, Reducer
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import Json, canonical, parse_json
from taiwa.settings import config_path

HASH_CHARS = 32
MAX_BYTES = 1024 * 1024
NAMED = re.compile(
    r"(?P<file>[\w./-]+\.py)(?:@(?P<hash>[0-9a-f]{32}))?:(?P<name>[A-Za-z_]\w*)(?:\((?P<argument>.*)\))?"
)
FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n.*?\n---", re.DOTALL)
IN_TEXT = re.compile(r"(?m)(?<![\w-])(reduce:\s*[\"']?)([\w./-]+\.py)(?=:[A-Za-z_])")


@dataclass(frozen=True, slots=True)
class ReducerFile:
    """A Python file that an app names, and the hash of what it holds; `confirmed` says whether it may run."""

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
    """Let a file run from now on: copy what was shown of it, which its hash names.

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


def add_user_reducer(name: str) -> bool:
    """Make a reducer of that name known, if it is one of a file; return whether it is.

    Raises:
        ConfigError: the file is not found, was never confirmed, or does not have the function.
    """
    match = NAMED.fullmatch(name)
    if match is None:
        return False
    if name not in USER_REDUCERS:
        if match["hash"] is None:
            raise ConfigError(f"the file {match['file']} is not found beside the app")
        loaded = _load(match["file"], match["hash"], match["name"])
        if isinstance(loaded, Reducer):
            USER_REDUCERS[name] = replace(loaded, name=name)
        else:
            arguments = () if match["argument"] is None else (_argument(match["argument"]),)
            USER_REDUCERS[name] = Reducer(name, _step(name, loaded, arguments), about="a function of your own")
    return True


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
