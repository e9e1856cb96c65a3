"""Read a folder of documents into an index: scan it, and commit atomic batches; `access` decides who may see a document."""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from taiwa.kernel.attachments import real_path
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import value
from taiwa.retrieval.backend import IndexBackend
from taiwa.retrieval.document_access import (
    SIDECAR,
    AccessUnclearError,
    Rule,
    Rules,
    audience_of,
    has_rules,
    is_misnamed,
    may_be_rules,
    read_rules,
    unmatched_rule,
)
from taiwa.retrieval.readers import MISSING, IsolatedReader, document_format, reader_name
from taiwa.retrieval.types import CLOSED, Batch, Document, FileFacts, UnreadableError, reason_of

LARGEST_FILE = 64 << 20
LEFT_OUT = frozenset({"CVS", "_darcs", "RCS", "SCCS", "__pycache__", "node_modules"})
"""Folders of version control or generated files; hidden folders are skipped anyway."""
DEEPEST = 64
MOST_RULES = 64 << 10
"""Bytes of a file to search for rules."""
OPEN_FLAGS = 0 if sys.platform == "win32" else os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class File:
    """A file below a folder: its path with `/`, size, and time of change; or the reason why it is not read."""

    path: str
    size: int
    modified_ns: int
    problem: str = ""


class Folder:
    """A folder of documents, or of one file: the `only` one. `rules` are its access rules; `others` counts files of
    unsupported formats by suffix.
    """

    def __init__(self, root: str | Path) -> None:
        path = real_path(root)
        try:
            found, self.only = path.is_dir(), path.name if path.is_file() else ""
        except OSError as error:
            raise InputError(f"folder {root} cannot be read: {reason_of(error)}") from None
        if not found and not self.only:
            raise InputError(f"folder {root} not found")
        if self.only and document_format(self.only) is None:
            raise InputError(f"{root} cannot be indexed; its suffix is not that of a document")
        self.root = path.parent if self.only else path
        self.rules: Rules = ()
        self.others: dict[str, int] = {}

    def files(self) -> Iterator[File]:
        """Yield the documents of the folder, and read the access rules on the way; all rules are known at the end.

        Raises:
            ConfigError: a file of rules cannot be read, or a rule matches nothing.
        """
        self.rules, self.others = self._rules_above(), {}
        if self.only:
            yield from self._only_file()
            return
        unmatched: list[Rule] = []
        seen: list[str] = []
        for folder, folders, names, handle in os.fwalk(self.root, follow_symlinks=False, onerror=self._refused):
            parts = Path(folder).relative_to(self.root).parts
            below = "".join(f"{part}/" for part in parts)
            _no_rules_elsewhere(folder, handle, folders, names)
            if SIDECAR in names or SIDECAR in folders:
                rules = read_rules(_rules_text(handle, folder), str(Path(folder, SIDECAR)), below=parts)
                self.rules += rules
                unmatched += rules
            if unmatched:
                # A rule for a folder also applies to its future files.
                paths = [below + name for name in names if name != SIDECAR] + [f"{below}{name}/\0" for name in folders]
                seen += paths
                unmatched = [rule for rule in unmatched if not any(map(rule.matches, paths))]
            folders[:] = sorted(name for name in folders if not _hidden(name))
            if len(parts) >= DEEPEST:
                folders.clear()
            # A link to a folder is listed among the folders, but not followed.
            yield from self._links(below, [name for name in folders if Path(folder, name).is_symlink()])
            for name in sorted(names):
                if not _hidden(name) and (file := self._file(handle, below + name, name)):
                    yield file
        if unmatched:
            raise unmatched_rule(unmatched[0], (path.removesuffix("/\0") for path in seen))

    def _only_file(self) -> Iterator[File]:
        handle = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            if (file := self._file(handle, self.only, self.only)) is not None:
                yield file
        finally:
            os.close(handle)

    def read(self, path: str) -> bytes:
        """Return the bytes of a document of the folder.

        Raises:
            UnreadableError: it is deleted, a link, too large, or not readable.
        """
        handles: list[int] = []
        try:
            handles.append(os.open(self.root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY))
            *folders, name = path.split("/")
            for folder in folders:
                handles.append(os.open(folder, OPEN_FLAGS | os.O_DIRECTORY, dir_fd=handles[-1]))
            handles.append(os.open(name, OPEN_FLAGS, dir_fd=handles[-1]))
            return _read_bytes(handles[-1])
        except OSError as error:
            raise UnreadableError(f"cannot be read: {reason_of(error)}") from None
        finally:
            for handle in handles:
                os.close(handle)

    def _file(self, handle: int, path: str, name: str) -> File | None:
        try:
            path.encode()
            info = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except UnicodeEncodeError:
            shown = path.encode(errors="backslashreplace").decode()
            return File(shown, 0, 0, "its name is not valid Unicode: rename it")
        except OSError:
            return None
        if stat.S_ISLNK(info.st_mode):
            return next(self._links(path.removesuffix(name), [name]), None)
        if not stat.S_ISREG(info.st_mode):
            return None
        if document_format(path) is None:
            suffix = Path(name).suffix.lower() or "no suffix"
            self.others[suffix] = self.others.get(suffix, 0) + 1
            return None
        problem = f"{info.st_size >> 20} MB: larger than {LARGEST_FILE >> 20} MB" if info.st_size > LARGEST_FILE else ""
        return File(path, info.st_size, info.st_mtime_ns, problem)

    def _links(self, below: str, names: list[str]) -> Iterator[File]:
        """A link within the folder leads to a file that is found anyway; one that leads out is reported."""
        for name in names:
            path = below + name
            target = Path(os.path.realpath(self.root / path))
            if not target.is_relative_to(self.root) and (document_format(path) or target.is_dir()):
                yield File(path, 0, 0, "a link that leads out of the folder: not followed")

    def _rules_above(self) -> Rules:
        """A folder or file keeps the rules of its parent folders: indexing only a part grants no access."""
        rules: Rules = ()
        for above in (self.root, *self.root.parents) if self.only else self.root.parents:
            with suppress(OSError):  # the names in an unreadable folder are unknown
                misnamed = [each.name for each in above.iterdir() if is_misnamed(each.name)]
                _no_rules_elsewhere(str(above), None, (), misnamed)
            if os.path.lexists(above / SIDECAR):
                between = self.root.relative_to(above).parts
                read = read_rules(_rules_text(None, str(above)), str(above / SIDECAR), above=between)
                if missing := next((rule for rule in read if not _begins_somewhere(above, rule.pattern)), None):
                    raise unmatched_rule(missing, ["/".join(between)])
                rules += read
        return rules

    @staticmethod
    def _refused(error: OSError) -> None:
        """A folder that cannot be listed may hide rules as well as files, so nothing is treated as open because of it."""
        raise InputError(f"the folder {error.filename} cannot be read: {reason_of(error)}") from None


def _begins_somewhere(folder: Path, pattern: str) -> bool:
    """Whether the names before the first star of a rule lead to a file or folder; other folders are not searched."""
    for name in normalize("NFC", pattern).split("/"):
        if set("*?") & set(name):
            break
        if name not in ("", "."):
            try:
                folder = next(each for each in folder.iterdir() if normalize("NFC", each.name) == name)
            except (StopIteration, OSError):
                return False
    return True


def _no_rules_elsewhere(folder: str, handle: int | None, folders: Iterable[str], names: Iterable[str]) -> None:
    """Refuse rules under another file name, because their author believes that they apply."""
    for name in sorted(set(names) - {SIDECAR}):
        if document_format(name) is not None and not name.lower().endswith(".txt"):
            continue
        if is_misnamed(name) or (may_be_rules(name) and has_rules(_beginning(handle, folder, name))):
            raise ConfigError(f"{folder}/{name} is not read: rules of access are called {SIDECAR}, so rename it")
    for name in sorted(set(folders) - {SIDECAR}):
        if is_misnamed(name):
            raise ConfigError(f"{folder}/{name} is a folder: rules of access are a file {SIDECAR}")


def _beginning(handle: int | None, folder: str, name: str) -> str:
    """Return the text of a small file, "" for any other."""
    try:
        file = os.open(Path(folder, name) if handle is None else name, OPEN_FLAGS & ~os.O_NOFOLLOW, dir_fd=handle)
    except OSError:
        return ""
    try:
        return os.read(file, MOST_RULES).decode(errors="replace") if stat.S_ISREG(os.fstat(file).st_mode) else ""
    except OSError:
        return ""
    finally:
        os.close(file)


def _rules_text(handle: int | None, folder: str) -> str:
    try:
        file = os.open(Path(folder, SIDECAR) if handle is None else SIDECAR, OPEN_FLAGS, dir_fd=handle)
        try:
            return _read_bytes(file).decode()
        finally:
            os.close(file)
    except (OSError, UnicodeDecodeError, UnreadableError) as error:
        raise ConfigError(f"{folder}/{SIDECAR} cannot be read ({error}): mend it, then index again") from None


def _read_bytes(handle: int) -> bytes:
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
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


BATCH_FILES = 64
BATCH_CHARACTERS = 2_000_000
"""A batch ends at either limit; it includes the file that reaches the limit of characters."""
LONGEST_TITLE = 300
FRESH_NS = 2_000_000_000
"""A file changed so shortly before it was read may have changed again within one tick of the clock."""

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the number of finished files, the number of all files, and the next path."""


@value(tag="refresh-problem")
class Problem:
    """A file that could not be read, and the reason."""

    path: str
    why: str


@value(tag="refresh-report")
class RefreshReport:
    """Counts of the files of a folder. `others` counts files by unsupported suffix."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    same: int = 0
    problems: tuple[Problem, ...] = ()
    others: Mapping[str, int] | None = None
    seconds: float = 0.0


@value(tag="rule-listing")
class RuleListing:
    """An access rule in a listing: its file and line, its pattern, who may see what it matches, and the number of these files."""

    where: str
    pattern: str
    names: tuple[str, ...]
    files: int


def list_rules(root: str) -> tuple[RuleListing, ...]:
    """List the access rules that apply to a folder now.

    Raises:
        ConfigError: the access rules are invalid.
        InputError: the folder does not exist.
    """
    folder = Folder(root)
    paths = [file.path for file in folder.files()]
    return tuple(RuleListing(one.where, one.pattern, one.names, sum(map(one.matches, paths))) for one in folder.rules)


def count_unsupported(root: str) -> Mapping[str, int]:
    """Count the files of a folder that no reader supports, by suffix.

    Raises:
        ConfigError: the access rules are invalid.
        InputError: the folder does not exist.
    """
    folder = Folder(root)
    for _ in folder.files():
        pass
    return folder.others


def refresh(backend: IndexBackend, wait: float = 0.0, progress: Progress | None = None) -> RefreshReport:
    """Read changes in the folder of an index; committed batches are not repeated after an interruption.

    Raises:
        ConflictError: another process held the writer lock for `wait` seconds.
        ConfigError: the access rules are invalid; until they are corrected, all documents of the index are closed to everyone.
        InputError: the folder does not exist, and the index stays unchanged; or a part of it cannot be read and may hide rules, and
        the documents are closed.
    """
    if not backend.root:
        raise InputError(f"index {backend.name!r} has no folder; its documents come from elsewhere")
    began = time.monotonic()
    quiet: Progress = lambda _done, _all, _path: None  # noqa: E731
    with backend.write_lock(wait):
        folder = Folder(backend.root)
        try:
            files = list(folder.files())
        except (ConfigError, InputError):
            _close(backend)
            raise
        work = _Work(folder, backend.known(), folder.rules)
        gone = tuple(sorted(work.known.keys() - {file.path for file in files}))
        if gone:
            backend.commit(Batch(gone=gone))
        with closing(IsolatedReader()) as reader:
            for batch in work.batches(files, reader, progress or quiet):
                backend.commit(batch)
        backend.update_derived()
    return replace(work.done, removed=len(gone), others=folder.others, seconds=time.monotonic() - began)


def _close(backend: IndexBackend) -> None:
    """Close all documents of an index to everyone: their earlier rights may have been withdrawn by what cannot be read."""
    known = backend.known().items()
    touched = tuple((path, replace(facts, audience=CLOSED)) for path, facts in known if facts.audience != CLOSED)
    if touched:
        backend.commit(Batch(touched=touched))


class _Work:
    def __init__(self, folder: Folder, known: Mapping[str, FileFacts], rules: Rules) -> None:
        self.known = known
        self.done = RefreshReport()
        self._folder = folder
        self._rules = rules

    def batches(self, files: list[File], reader: IsolatedReader, progress: Progress) -> Iterator[Batch]:
        documents: list[Document] = []
        touched: list[tuple[str, FileFacts]] = []
        room = BATCH_CHARACTERS
        for number, file in enumerate(files):
            progress(number, len(files), file.path)
            change = self._look(file, reader)
            self._count(file.path, change)
            if isinstance(change, Document):
                documents.append(change)
                room -= sum(len(piece.text) for piece in change.chunks)
            elif change is not None:
                touched.append((file.path, change))
            if len(documents) + len(touched) >= BATCH_FILES or room <= 0:
                yield Batch(tuple(documents), tuple(touched))
                documents, touched, room = [], [], BATCH_CHARACTERS
        progress(len(files), len(files), "")
        if documents or touched:
            yield Batch(tuple(documents), tuple(touched))

    def _look(self, file: File, isolated: IsolatedReader) -> "Document | FileFacts | None":
        """Return a document to store, facts to store, or nothing."""
        before = self.known.get(file.path)
        kind = document_format(file.path)
        reader = reader_name(kind) if kind and not file.problem else "none"
        known = FileFacts("", file.size, file.modified_ns, reader, audience_of(file.path, self._rules), file.problem)
        if file.problem or kind is None:
            return None if before is not None and replace(before, at_us=0) == known else Document(file.path, "", known)
        if before is not None and self._untouched(file, before, reader):
            audience = audience_of(file.path, self._rules, before.access)
            return None if audience == before.audience else replace(before, audience=audience)
        try:
            raw = self._folder.read(file.path)
            known = replace(known, digest=hashlib.sha256(raw).hexdigest())
            if before is not None and reader != MISSING and (before.digest, before.reader) == (known.digest, reader):
                audience = audience_of(file.path, self._rules, before.access)
                return replace(known, audience=audience, access=before.access, problem=before.problem)
            reading = isolated.read(raw, kind)
        except UnreadableError as error:
            known = replace(known, problem=error.message)
            if isinstance(error, AccessUnclearError):
                known = replace(known, access=(), audience=audience_of(file.path, self._rules, ()))
            return None if before is not None and replace(before, at_us=0) == known else Document(file.path, "", known)
        known = replace(known, audience=audience_of(file.path, self._rules, reading.access), access=reading.access)
        if reading.doubt:  # kept, and read again next time
            known = replace(known, reader=MISSING, problem=reading.doubt)
            if before is not None and replace(before, at_us=0) == known:
                return None
        return Document(file.path, reading.title[:LONGEST_TITLE], known, reading.chunks)

    def _count(self, path: str, change: "Document | FileFacts | None") -> None:
        done, before = self.done, self.known.get(path)
        now = change.known if isinstance(change, Document) else change or before
        if now is not None and now.problem:
            done = replace(done, problems=(*done.problems, Problem(path, now.problem)))
        if before is None:
            done = replace(done, added=done.added + 1)
        elif isinstance(change, Document) or (change is not None and change.audience != before.audience):
            done = replace(done, changed=done.changed + 1)
        else:
            done = replace(done, same=done.same + 1)
        self.done = done

    @staticmethod
    def _untouched(file: File, before: FileFacts, reader: str) -> bool:
        """Whether size, time and reader are unchanged, and the file was not being changed when it was read."""
        same = (before.size, before.modified_ns, before.reader) == (file.size, file.modified_ns, reader)
        at_rest = before.at_us * 1000 - file.modified_ns > FRESH_NS
        return same and at_rest and reader != MISSING and bool(before.digest)
