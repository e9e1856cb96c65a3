"""Functions of a user's own Python files, which an app names: reducers, tools, and the program of its turns.

A file next to the app is confirmed once and then identified by the hash of its content. `reduce: tops.py:highest(3)` calls
`highest(before, delta, 3)`. When the app is loaded, this becomes `tops.py@HASH:highest(3)` in its source, so that a stored
conversation always refers to the same code. Confirming a file copies it into the folder `code` next to the config file, under its
hash; no other code is ever run.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from taiwa.kernel.attachments import read_regular
from taiwa.kernel.errors import ConfigError, file_errors
from taiwa.settings import check_own, config_path

HASH_CHARS = 32
MODULE = "taiwa_code_"
"""The beginning of the name of a module; the hash of its file follows."""
MAX_BYTES = 1024 * 1024
IN_FILE = re.compile(
    r"(?P<file>[\w./-]+\.py)(?:@(?P<hash>[0-9a-f]{32}))?:(?P<name>[A-Za-z_][\w.]*)(?:\((?P<argument>.*)\))?"
)
"""The name of a function of a file."""
FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n.*?\n---", re.DOTALL)
IN_TEXT = re.compile(r"(?<![\w./@-])([\w./-]+\.py)(?=:[A-Za-z_])")
"""A file of a function in the front matter of an app."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A Python file that an app names, and the hash of its content; `confirmed` says whether it may run."""

    path: Path
    hash: str
    confirmed: bool


def pin_files(text: str, folder: Path) -> str:
    """Write the hash of each file into the front matter of an app's text; a file that cannot be read stays as it is."""

    def pin(match: re.Match[str]) -> str:
        with suppress(OSError):
            return f"{match[1]}@{_hash(read_regular(folder / match[1], MAX_BYTES))}"
        return match[0]

    front = FRONT.match(text)
    return text if front is None else IN_TEXT.sub(pin, front[0]) + text[front.end() :]


def code_files(text: str, folder: Path) -> Iterator[CodeFile]:
    """Yield the files that the text of an app names, each once.

    Raises:
        ConfigError: one cannot be read, or is too large.
    """
    front = FRONT.match(text)
    for name in dict.fromkeys(match[1] for match in IN_TEXT.finditer(front[0] if front else "")):
        path = folder / name
        with file_errors(f"read {path}"):
            data = read_regular(path, MAX_BYTES)
        yield CodeFile(path, _hash(data), confirmed=_kept(_hash(data)).is_file())


def confirm_file(file: CodeFile) -> None:
    """Allow a file to run: copy the content that was shown, which the hash identifies.

    Raises:
        ConfigError: the file has changed since, or cannot be copied.
    """
    with file_errors(f"keep a copy of {file.path}"):
        data, kept = read_regular(file.path, MAX_BYTES), _kept(file.hash)
        if _hash(data) != file.hash:
            raise ConfigError(f"{file.path} has changed meanwhile; confirm it again")
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_own(kept.parent)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(kept)


def confirmed_copy(file: str, key: str) -> Path:
    """Return the copy of a confirmed file.

    Raises:
        ConfigError: the code of this hash was not confirmed here.
    """
    kept = _kept(key)
    try:
        data = kept.read_bytes()
        check_own(kept.parent)  # or its file could be replaced behind this check, or its bytecode be another's
    except PermissionError as error:
        raise ConfigError(f"{file} is not run: {error.strerror}") from None
    except OSError:
        data = b""
    if _hash(data) != key:
        raise ConfigError(
            f"{file} (sha256 {key[:12]}…) is code that was not confirmed here; run `taiwa apps confirm` with the name or file of its app"
        )
    return kept


@cache
def load_function(file: str, key: str, name: str) -> object:
    """Return what a confirmed file defines under a name; it is the same object each time.

    Raises:
        ConfigError: the code of this hash was not confirmed here, cannot be run, or does not define the name.
    """
    confirmed_copy(file, key)
    found = _module(file, key)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{file} does not define {name!r}")
        found = getattr(found, part)
    return found


@cache
def _module(file: str, key: str) -> object:
    spec = spec_from_file_location(f"{MODULE}{key}", _kept(key))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module  # where dataclasses and others look for the names in annotations
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(module.__name__, None)
        raise ConfigError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    return module


def function_named(text: str) -> object:
    """Return the function of a file by its name in an app, such as `desk.py@HASH:turn`.

    Raises:
        ConfigError: as `load_function`; or the file was not found next to the app.
    """
    match = IN_FILE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not the name of a function; write FILE.py:NAME")
    if match["hash"] is None:
        raise ConfigError(f"the file {match['file']} was not found next to the app")
    return load_function(match["file"], match["hash"], match["name"])


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:HASH_CHARS]


def _kept(key: str) -> Path:
    return config_path(os.environ).parent / "code" / f"{key}.py"
