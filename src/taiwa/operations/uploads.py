"""Indexes of uploaded documents: each has a folder beside the store, which is indexed as every other folder."""

import os
import shutil
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO
from unicodedata import normalize

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.text import CONTROL
from taiwa.retrieval import Index, Library
from taiwa.retrieval.ingest import LARGEST_FILE, LEFT_OUT
from taiwa.retrieval.reader_process import document_format, readable_suffixes
from taiwa.retrieval.types import UnreadableError
from taiwa.settings import Settings, data_folder

LONGEST_PART = 200
"""Of a file name, in bytes of UTF-8; file systems allow 255."""
DEEPEST = 16
ROOM = 2 << 30
"""Bytes of all uploaded documents of one owner."""


def uploads_folder(settings: Settings) -> Path:
    """Return the folder of all uploaded documents: beside the store, or beside where a file would be for a store on a server."""
    store = settings.store if isinstance(settings.store, Path) else data_folder() / "taiwa.db"
    return store.with_name(f"{store.stem}-uploads").resolve()


def upload_path(name: str) -> str:
    """Return where an uploaded file goes below the folder of its index, from the name that its sender gave it.

    >>> upload_path("handbook/Chapter 1.md"), upload_path("C:\\\\docs\\\\a.pdf")
    ('handbook/Chapter 1.md', 'docs/a.pdf')

    Raises:
        InputError: the name leads elsewhere; UnreadableError: files of its type are not read.
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
            raise InputError(f"the file name {shown} cannot be used; name it like guide.md or folder/guide.md")
        if part.startswith((".", "~$")) or part in LEFT_OUT:
            raise InputError(f"the file {shown} is hidden, and hidden files are not indexed; rename it")
        if len(part.encode()) > LONGEST_PART:
            raise InputError(f"the file name {shown} is longer than {LONGEST_PART} bytes; rename the file")
    if len(parts) > DEEPEST:
        raise InputError(f"the file {shown} is in more than {DEEPEST} folders; upload it from a folder nearer to it")
    if document_format(path) is None:
        raise UnreadableError(f"{shown} is of a type that is not read; use one of {', '.join(readable_suffixes())}")
    return "/".join(parts)


def create_upload_index(
    library: Library, settings: Settings, name: str, language: str = "english", owner: str = ""
) -> Index:
    """Create an index for uploaded documents. That of a caller of a server is called NAME@CALLER.

    Raises:
        InputError: the name or the language is invalid.
        ConflictError: an index of that name exists.
    """
    if not name.strip() or name.strip() != name or set("@/\\") & set(name) or name.startswith("."):
        raise InputError(
            f"an index cannot be called {name[:80]!r}: give one line, without @, / and a dot at its beginning"
        )
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
    """Return the name of the folder of an index; a long one is cut, and told from others by its digest."""
    if len(name.encode()) <= LONGEST_PART:
        return name
    from hashlib import sha256

    return f"{name[:40]}-{sha256(name.encode()).hexdigest()[:16]}"


def room_for_uploads(settings: Settings, owner: str = "") -> int:
    """Return how many bytes of documents an owner may still upload."""
    folder = _folder(settings, owner)
    files = (file for file in folder.rglob("*") if file.is_file()) if folder.exists() else iter(())
    return ROOM - sum(file.stat().st_size for file in files)


def uploaded_file(settings: Settings, owner: str, name: str) -> Path:
    """Return where a file of an owner is kept that belongs to no index yet."""
    return _folder(settings, owner) / ".files" / name


class UploadedFile:
    """A file that is being received, beside where it goes; `keep` puts it there, and `close` removes it otherwise.

    `path` names it in errors. `room` is how many bytes it may have besides the limit of one file.
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
        """Write a piece.

        Raises:
            InputError: the file is too large, or the documents would take too much space.
        """
        self.size += len(data)
        if self.size > LARGEST_FILE:
            raise InputError(f"{self.path!r} is larger than {LARGEST_FILE >> 20} MB")
        if self.size > self._room:
            raise InputError(
                f"no space left for {self.path!r}: documents may take {ROOM >> 20:,} MB; delete some first"
            )
        self._file.write(data)

    def keep(self) -> None:
        """Put the file in its place; one of its name there is replaced.

        Raises:
            InputError: a folder has its name, or a file that of one of its folders.
        """
        self._file.close()
        try:
            self._target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._place.replace(self._target)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise InputError(f"{self.path!r} is a file and a folder at once; rename one of them") from None

    def close(self) -> None:
        """Remove what was not kept."""
        self._file.close()
        self._place.unlink(missing_ok=True)


def delete_upload(index: Index, path: str) -> None:
    """Delete an uploaded document; the next `refresh` takes it out of its index.

    Raises:
        InputError: the path holds none.
    """
    file = Path(index.root) / upload_path(path)
    try:
        file.unlink()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise InputError(f"document {path[-80:]!r} not found in {index.name!r}") from None


def drop_upload_index(library: Library, index: Index) -> None:
    """Delete an index of uploaded documents with its documents.

    Raises:
        ConflictError: it is being indexed.
    """
    folder = Path(index.root)
    library.drop(index.name)
    shutil.rmtree(folder, ignore_errors=True)
