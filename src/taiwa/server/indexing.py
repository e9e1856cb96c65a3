"""Indexes of a server: uploaded documents, a folder per index next to the store, and indexing as runs."""

import asyncio
import logging
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from tempfile import mkstemp
from typing import TYPE_CHECKING, BinaryIO, TypeAlias
from unicodedata import normalize

from taiwa.kernel.errors import ConflictError, InputError, NotFoundError, TaiwaError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import CONTROL
from taiwa.kernel.wording import Wording
from taiwa.operations.documents import IndexOptions, Reporter, index_folder, open_library
from taiwa.operations.result_json import refreshed_to_json, to_json
from taiwa.retrieval import Index, Library
from taiwa.retrieval.ingest import LARGEST_FILE, LEFT_OUT
from taiwa.retrieval.readers import document_format, readable_suffixes
from taiwa.retrieval.types import UnreadableError
from taiwa.server.http_responses import INTERNAL, api_error, error_to_json
from taiwa.server.runs import EventLog
from taiwa.settings import Settings, data_folder

if TYPE_CHECKING:
    from taiwa.retrieval.ingest import Progress

logger = logging.getLogger("taiwa.server")
AT_ONCE = 2
"""Indexes that are read concurrently."""
MOST_KEPT = 64
"""Ended runs whose events can still be followed."""
STEPS = 100
"""The highest number of progress events per run."""
IndexEvent: TypeAlias = tuple[str, Json]
"""The kind of an event and its data: `progress`, `warning`, `indexed`, `embeddings`, `error`."""


class _CancelledError(TaiwaError):
    """The run was cancelled between two files."""


class IndexRun(EventLog[IndexEvent]):
    """The indexing of one index, and its events."""

    def __init__(self, caller: str, index: str) -> None:
        super().__init__()
        self.id = token_urlsafe(12)
        self.caller = caller
        self.index = index
        self.cancelled = False
        self._loop = asyncio.get_running_loop()

    def cancel(self) -> None:
        """Stop after the current file; the next run reads the rest."""
        self.cancelled = True

    def reporter(self) -> Reporter:
        """Return the callback to which indexing in a thread reports."""

        def said(text: str) -> None:
            self.report("warning", {"text": text})

        return Reporter(said, said, self._progress)

    def report(self, kind: str, data: Json) -> None:
        """Add an event; may be called from any thread."""
        self._loop.call_soon_threadsafe(self.add, (kind, data))

    @contextmanager
    def _progress(self) -> "Generator[Progress]":
        last = -1

        def moved(done: int, whole: int, what: str) -> None:
            nonlocal last
            if self.cancelled:
                raise _CancelledError("the run was cancelled")
            if (step := done * STEPS // max(whole, 1)) != last:
                last = step
                self.report("progress", {"done": done, "of": whole, "path": what})

        yield moved


class Indexing:
    """The indexing runs of a server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs: dict[str, IndexRun] = {}
        """Other threads read a copy of them."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    def find(self, name: str, caller: str) -> IndexRun | None:
        """Return a run of a caller, or None."""
        found = self._runs.get(name)
        return found if found is not None and found.caller == caller else None

    def of_index(self, index: str) -> IndexRun | None:
        """Return the active or queued run of an index."""
        found = (run for run in tuple(self._runs.values()) if run.index == index and not run.done)
        return next(found, None)

    def start(self, caller: str, index: str, root: str) -> IndexRun:
        """Start to index the changes in the folder of an index."""
        run = IndexRun(caller, index)
        self._runs[run.id] = run
        for old in [each.id for each in self._runs.values() if each.done][:-MOST_KEPT]:
            del self._runs[old]
        task = asyncio.create_task(self._perform(run, root))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, run))
        return run

    def _end(self, run: IndexRun, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.error("indexing failed", exc_info=problem)
            run.add(("error", error_to_json(INTERNAL)))
        run.end()

    async def _perform(self, run: IndexRun, root: str) -> None:
        try:
            # One at a time for each caller but the owner of the server, so that one is left for others.
            turn = self._locks.setdefault(f"@{run.caller}", asyncio.Lock()) if run.caller else nullcontext()
            async with self._locks.setdefault(run.index, asyncio.Lock()), turn, self._room:
                await asyncio.to_thread(self._index, run, root)
        except _CancelledError:
            run.add(("warning", {"text": "stopped; the next run reads the rest"}))
        except TaiwaError as error:
            run.add(("error", error_to_json(api_error(error))))

    def _index(self, run: IndexRun, root: str) -> None:
        with open_library(self._settings) as library:
            for step in index_folder(library, self._settings, IndexOptions(root), run.reporter()):
                if isinstance(step, tuple):
                    run.report("indexed", without_folder(refreshed_to_json(*step)))
                elif step is not None:
                    run.report("embeddings", to_json(step))

    async def stop(self) -> None:
        """End all runs after their current files; the next runs read the rest."""
        for run in self._runs.values():
            run.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def without_folder(data: dict[str, Json]) -> dict[str, Json]:
    """Return a summary of an index without the path of its folder."""
    return {name: each for name, each in data.items() if name != "folder"}


LONGEST_PART = 200
"""Bytes of UTF-8 in a file name; file systems allow 255."""
DEEPEST = 16
ROOM = 2 << 30
"""Bytes of all uploaded documents of one owner."""


def uploads_folder(settings: Settings) -> Path:
    """Return the folder of all uploaded documents: next to the store file, or its default place for a store on a server."""
    store = settings.store if isinstance(settings.store, Path) else data_folder() / "taiwa.db"
    return store.with_name(f"{store.stem}-uploads").resolve()


def upload_path(name: str) -> str:
    """Return the path of an uploaded file within the folder of its index, from the name given by the sender.

    >>> upload_path("handbook/Chapter 1.md"), upload_path("C:\\\\docs\\\\a.pdf")
    ('handbook/Chapter 1.md', 'docs/a.pdf')

    Raises:
        InputError: the name leads outside the folder. UnreadableError: the file type is not supported.
    """
    shown = repr(name[-80:])
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"the file name {shown} is not valid Unicode; rename the file") from None
    path = normalize("NFC", name).replace("\\", "/")
    path = path[2:] if path[1:2] == ":" else path
    parts = path.removeprefix("/").split("/")
    for part in parts:
        if part.strip() != part or part in ("", ".", "..") or CONTROL.search(part) or not part.isprintable():
            raise InputError(Wording("the file name {name} cannot be used; name it like guide.md or folder/guide.md", name=shown))  # fmt: skip
        if part.startswith((".", "~$")) or part in LEFT_OUT:
            raise InputError(Wording("the file {name} is hidden, and hidden files are not indexed; rename it", name=shown))  # fmt: skip
        if len(part.encode()) > LONGEST_PART:
            raise InputError(f"the file name {shown} is longer than {LONGEST_PART} bytes; rename the file")
    if len(parts) > DEEPEST:
        raise InputError(f"the file {shown} is in more than {DEEPEST} folders; upload it from a folder nearer to it")
    if document_format(path) is None:
        raise UnreadableError(Wording("{name} is of a type that is not read; use one of {types}", name=shown, types=", ".join(readable_suffixes())))  # fmt: skip
    return "/".join(parts)


def create_upload_index(
    library: Library, settings: Settings, name: str, language: str = "english", owner: str = ""
) -> Index:
    """Create an index for uploaded documents. The index of a caller is named NAME@CALLER.

    Raises:
        InputError: the name or the language is invalid. ConflictError: the index exists.
    """
    if not name.isprintable() or name.strip() != name or not name or set("@/\\") & set(name) or name.startswith("."):
        raise InputError(Wording("an index cannot be called {name!r}: give one line, without @, / and a dot at its beginning", name=name[:80]))  # fmt: skip
    whole = f"{name}@{owner}" if owner else name
    if whole in library.names(None):
        raise ConflictError(f"index {name!r} already exists; choose another name")
    folder = _folder(settings, owner) / _folder_name(name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):  # of an index that was dropped on the command line
        raise ConflictError(f"the folder {folder.name!r} of uploaded documents exists already; choose another name")
    return library.create(folder, whole, language.lower(), owner)


def _folder(settings: Settings, owner: str) -> Path:
    return uploads_folder(settings) / (f"@{owner}" if owner else "own")


def _folder_name(name: str) -> str:
    """Return the folder name of an index; a long one is shortened and made unique by a digest."""
    if len(name.encode()) <= LONGEST_PART:
        return name
    from hashlib import sha256

    return f"{name[:40]}-{sha256(name.encode()).hexdigest()[:16]}"


def room_for_uploads(settings: Settings, owner: str = "") -> int:
    """Return the number of bytes that an owner may still upload."""
    folder = _folder(settings, owner)
    files = (file for file in folder.rglob("*") if file.is_file()) if folder.exists() else iter(())
    return ROOM - sum(file.stat().st_size for file in files)


def uploaded_file(settings: Settings, owner: str, name: str) -> Path:
    """Return the path of a file that does not belong to an index yet."""
    return _folder(settings, owner) / ".files" / name


class UploadedFile:
    """A file being received, next to its destination. `keep` moves it there, `close` removes it otherwise.

    `path` names it in errors. `room` is the remaining space in bytes, besides the limit of one file.
    """

    def __init__(self, settings: Settings, target: Path, path: str, room: int) -> None:
        self.path = path
        self.size = 0
        self._target = target
        self._room = room
        incoming = uploads_folder(settings) / "incoming"
        incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = mkstemp(dir=incoming)
        self._place = Path(name)
        self._file: BinaryIO = os.fdopen(handle, "wb")

    def write(self, data: bytes) -> None:
        """Write a chunk.

        Raises:
            InputError: the file is too large, or the documents would take too much space.
        """
        self.size += len(data)
        if self.size > LARGEST_FILE:
            raise InputError(Wording("{name!r} is larger than {most} MB", name=self.path, most=LARGEST_FILE >> 20))
        if self.size > self._room:
            raise InputError(Wording("no space left for {name!r}: documents may take {most} MB; delete some first", name=self.path, most=f"{ROOM >> 20:,}"))  # fmt: skip
        self._file.write(data)

    def keep(self) -> None:
        """Move the file to its destination, replacing a file of the same name.

        Raises:
            InputError: a folder has its name, or a file has the name of one of its folders.
        """
        self._file.close()
        try:
            self._target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._place.replace(self._target)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise InputError(f"{self.path!r} is a file and a folder at once; rename one of them") from None

    def close(self) -> None:
        """Remove a file that was not kept."""
        self._file.close()
        self._place.unlink(missing_ok=True)


def delete_upload(index: Index, path: str) -> None:
    """Delete an uploaded document; the next `refresh` removes it from its index.

    Raises:
        InputError: there is no document at the path.
    """
    file = Path(index.root) / upload_path(path)
    try:
        file.unlink()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFoundError(f"document {path[-80:]!r} not found in {index.name!r}") from None


def drop_upload_index(library: Library, index: Index) -> None:
    """Delete an index of uploaded documents with its files.

    Raises:
        ConflictError: it is being indexed.
    """
    folder = Path(index.root)
    library.drop(index.name)
    shutil.rmtree(folder, ignore_errors=True)
