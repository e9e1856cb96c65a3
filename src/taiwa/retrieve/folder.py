"""The files of a folder, and their bytes: never one outside of it, whatever links and names say."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.retrieve.access import SIDECAR, Rules, read_rules
from taiwa.retrieve.reading.formats import LARGEST_FILE, kind_of
from taiwa.retrieve.reading.reading import UnreadableError

__all__ = ["File", "Folder"]

LEFT_OUT = frozenset({"CVS", "_darcs", "RCS", "SCCS", "__pycache__", "node_modules"})
"""Folders that hold versions of other files, or what programs put there; hidden ones are left out anyway."""
MISNAMED = frozenset(
    {".taiwa-access.yml", "taiwa-access.yaml", "taiwa-access.yml", ".taiwa-access", ".taiwa-access.json"}
)
DEEPEST = 64
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class File:
    """A file below a folder: its path with `/`, size, and time of change; or why it is not read."""

    path: str
    size: int
    modified_ns: int
    problem: str = ""


class Folder:
    """A folder of documents. `rules` says who may see what; `others` counts the files of kinds that are not read."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError(f"there is no folder {root}: is the disk there, and the name right?")
        self.rules: Rules = ()
        self.others: dict[str, int] = {}

    def files(self) -> Iterator[File]:
        """Give the documents of the folder, and read the rules of access on the way: all of them hold when it is done.

        Raises:
            ConfigError: a file of rules cannot be read.
        """
        self.rules, self.others = self._rules_above(), {}
        for folder, folders, names, handle in os.fwalk(self.root, follow_symlinks=False, onerror=self._refused):
            below = "" if Path(folder) == self.root else f"{Path(folder).relative_to(self.root).as_posix()}/"
            _no_rules_elsewhere(folder, {*folders, *names})
            if SIDECAR in names or SIDECAR in folders:
                self.rules += read_rules(_rules_text(handle, folder), str(Path(folder, SIDECAR)), below)
            folders[:] = sorted(name for name in folders if not _hidden(name))
            if below.count("/") >= DEEPEST:
                folders.clear()
            # A link to a folder is listed among the folders, and not entered.
            yield from self._links(below, [name for name in folders if Path(folder, name).is_symlink()])
            for name in sorted(names):
                if not _hidden(name) and (found := self._file(handle, below + name, name)):
                    yield found

    def read(self, path: str) -> bytes:
        """Return the bytes of a document of the folder.

        Raises:
            UnreadableError: it is gone, or a link, too large, or may not be read.
        """
        handles: list[int] = []
        try:
            handles.append(os.open(self.root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY))
            *folders, name = path.split("/")
            for folder in folders:
                handles.append(os.open(folder, READ | os.O_DIRECTORY, dir_fd=handles[-1]))
            handles.append(os.open(name, READ, dir_fd=handles[-1]))
            return _bytes(handles[-1])
        except OSError as error:
            raise UnreadableError(f"cannot be read: {(error.strerror or 'the system refuses').lower()}") from None
        finally:
            for handle in handles:
                os.close(handle)

    def _file(self, handle: int, path: str, name: str) -> File | None:
        try:
            path.encode()
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except UnicodeEncodeError:
            return File(
                path.encode(errors="backslashreplace").decode(), 0, 0, "its name is not valid Unicode: rename it"
            )
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return next(self._links(path.removesuffix(name), [name]), None)
        if not stat.S_ISREG(found.st_mode):
            return None
        if kind_of(path) is None:
            suffix = Path(name).suffix.lower() or "no suffix"
            self.others[suffix] = self.others.get(suffix, 0) + 1
            return None
        if found.st_size > LARGEST_FILE:
            words = f"{found.st_size >> 20} MB: larger than {LARGEST_FILE >> 20} MB"
            return File(path, found.st_size, found.st_mtime_ns, words)
        return File(path, found.st_size, found.st_mtime_ns)

    def _links(self, below: str, names: list[str]) -> Iterator[File]:
        """A link within the folder leads to what is found anyway; one that leads out is said."""
        for name in names:
            path = below + name
            target = Path(os.path.realpath(self.root / path))
            if not target.is_relative_to(self.root) and (kind_of(path) or target.is_dir()):
                yield File(path, 0, 0, "a link that leads out of the folder: not followed")

    def _rules_above(self) -> Rules:
        """A folder keeps the rules of the folders that it stands in: naming a part of them opens nothing."""
        rules: Rules = ()
        for above in self.root.parents:
            if os.path.lexists(above / SIDECAR):
                path = f"{self.root.relative_to(above).as_posix()}/"
                rules += read_rules(_rules_text(None, str(above)), str(above / SIDECAR), above=path)
        return rules

    @staticmethod
    def _refused(error: OSError) -> None:
        """A folder that may not be listed hides rules as well as files: nothing may be taken for open because of that."""
        raise InputError(
            f"the folder {error.filename} cannot be read: {(error.strerror or 'refused').lower()}"
        ) from None


def _no_rules_elsewhere(folder: str, names: set[str]) -> None:
    """Whoever wrote rules under a name like the right one believes that they hold."""
    for name in sorted(names):
        if name.casefold() in MISNAMED or (name != SIDECAR and name.casefold() == SIDECAR):
            raise ConfigError(f"{folder}/{name} is not read: rules of access are called {SIDECAR}, so rename it")


def _rules_text(handle: int | None, folder: str) -> str:
    try:
        file = os.open(Path(folder, SIDECAR) if handle is None else SIDECAR, READ, dir_fd=handle)
        try:
            return _bytes(file).decode()
        finally:
            os.close(file)
    except (OSError, UnicodeDecodeError, UnreadableError) as error:
        raise ConfigError(f"{folder}/{SIDECAR} cannot be read ({error}): mend it, then index again") from None


def _bytes(handle: int) -> bytes:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError("not a file")
    parts: list[bytes] = []
    length = 0
    while piece := os.read(handle, 1 << 20):
        parts.append(piece)
        length += len(piece)
        if length > LARGEST_FILE:
            raise UnreadableError(f"larger than {LARGEST_FILE >> 20} MB")
    return b"".join(parts)


def _hidden(name: str) -> bool:
    return name.startswith((".", "~$")) or name in LEFT_OUT
