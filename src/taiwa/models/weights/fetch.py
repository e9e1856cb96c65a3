"""Fetch a model file from the first source that has it: resumed, verified, and written under its name only when it is whole.

The bytes are collected in `FILE.part`, which all sources continue, and which is locked: a second process waits for the first.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from taiwa.extras import require_posix
from taiwa.kernel.attachments import open_regular
from taiwa.kernel.errors import ConfigError, file_errors
from taiwa.models.weights.model_files import ModelFile, format_size, models_folder
from taiwa.models.weights.sources import CHUNK, Source, SourceError

if sys.platform != "win32":
    import fcntl

PART = ".part"
CONTINUATIONS = 5
"""How often a source that breaks off is asked to continue, as long as each time some bytes come."""


@dataclass(frozen=True, slots=True)
class FetchEvent:
    """What happens while a file is fetched.

    `waiting` for another process; `damaged`: the file is here, with another content, and is replaced; `source` begins to send;
    `progress`: `done` bytes of `total` are here; `failed`: the source cannot give the file, because of `reason`.
    """

    kind: Literal["waiting", "damaged", "source", "progress", "failed"]
    done: int = 0
    total: int = 0
    source: str = ""
    reason: str = ""


Listener: TypeAlias = Callable[[FetchEvent], None]


def fetch(file: ModelFile, sources: Sequence[Source], listener: Listener, *, replaces: bool) -> tuple[Path, str]:
    """Return the path of the verified file, and the label of the source that finished it; `""` if the file was here.

    A file that is here with another content is replaced if `replaces`. An interrupted call is continued by the next one.

    Raises:
        ConfigError: no source gives the file, it cannot be written, or another file has its name.
    """
    path = models_folder() / file.file
    with file_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(path.name + PART), listener) as part:
            if path.exists():
                if hash_file(path) == file.sha256:
                    part.truncate(0)
                    return path, ""
                if not replaces:
                    raise ConfigError(f"{path} is another file; remove it with: taiwa models remove {path.name}")
                listener(FetchEvent("damaged"))
            _check_space(path.parent, file.size - part.seek(0, os.SEEK_END))
            label = _collect(part, file, sources, listener)
            os.fsync(part.fileno())
            Path(part.name).replace(path)
            return path, label


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _locked(path: Path, listener: Listener) -> Generator[BinaryIO]:
    """Open and lock a partial file; wait while another process has it. It is deleted if it stays empty."""
    require_posix("fetching a model")
    while True:
        with path.open("a+b") as part:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                listener(FetchEvent("waiting"))
                fcntl.flock(part, fcntl.LOCK_EX)
            if not _is_at(part, path):  # the other process has finished it, or deleted it
                continue
            try:
                yield part
            finally:
                part.flush()
                if _is_at(part, path) and not path.stat().st_size:
                    path.unlink()
            return


def _is_at(opened: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _check_space(folder: Path, missing: int) -> None:
    free = shutil.disk_usage(folder).free
    if missing > free:
        raise ConfigError(
            f"{folder} has {format_size(free)} free, and {format_size(missing)} are missing; free some space"
        )


def _collect(part: BinaryIO, file: ModelFile, sources: Sequence[Source], listener: Listener) -> str:
    """Complete a partial file from the first source that can, and return its label."""
    failures: list[str] = []
    for source in sources:
        listener(FetchEvent("source", source=source.label))
        try:
            _complete(part, file, source, listener)
        except SourceError as error:
            failures.append(f"{source.label} {error}")
            listener(FetchEvent("failed", source=source.label, reason=str(error)))
        else:
            return source.label
    raise ConfigError(f"{file.name} cannot be fetched: {'; '.join(failures) or 'no source is known'}")


def _complete(part: BinaryIO, file: ModelFile, source: Source, listener: Listener) -> None:
    """Complete a partial file from one source; what turns out to be another file is thrown away."""
    for attempt in range(CONTINUATIONS + 1):
        begun = part.seek(0, os.SEEK_END)
        try:
            if _append(part, file, source, listener):
                return
        except SourceError as error:
            if error.broke_off and attempt < CONTINUATIONS and part.seek(0, os.SEEK_END) > begun:
                continue
            raise
        part.truncate(0)
        if not begun:
            break
        # The beginning may have come from a source with wrong bytes: retry from the start.
    raise SourceError("sends another file (its SHA-256 is not the expected one)")


def _append(part: BinaryIO, file: ModelFile, source: Source, listener: Listener) -> bool:
    """Append what is missing of a file; return whether the whole has its hash.

    Raises:
        SourceError: the source fails, or sends more or less than the file has.
    """
    part.seek(0)
    digest = hashlib.sha256()
    while chunk := part.read(CHUNK):
        digest.update(chunk)
    done = part.tell()
    if done < file.size:
        listener(FetchEvent("progress", done, file.size))
        for chunk in source.read(file, done):
            done += len(chunk)
            if done > file.size:
                part.truncate(0)
                raise SourceError(f"sends more than the {file.size:,} bytes of {file.file}")
            part.write(chunk)
            digest.update(chunk)
            listener(FetchEvent("progress", done, file.size))
        part.flush()
        if done < file.size:
            raise SourceError(f"sends {done:,} of {file.size:,} bytes", broke_off=True)
    return digest.hexdigest() == file.sha256
