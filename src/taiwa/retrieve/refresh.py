"""Bringing an index up to date with its folder: what is new, changed or gone, in batches that each hold or do not."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value
from taiwa.retrieve.access import Rules, audience_of
from taiwa.retrieve.folder import File, Folder
from taiwa.retrieve.reading import UnreadableError, split
from taiwa.retrieve.reading.formats import MISSING, Apart, kind_of, reader_of
from taiwa.retrieve.seam import Shelf
from taiwa.retrieve.values import Batch, Document, Known

__all__ = ["Problem", "Progress", "Refreshed", "refresh"]

FILES = 64
CHARACTERS = 2_000_000
"""A batch is at most so many files, and is done when it holds so many characters."""
LONGEST_TITLE = 300
FRESH_NS = 2_000_000_000
"""A file that changed so shortly before it was read may have changed again within one tick of its clock."""

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many of how many files are done, and which comes next."""


@value(tag="refresh-problem")
class Problem:
    """A file that could not be read, and why."""

    path: str
    why: str


@value(tag="refresh-report")
class Refreshed:
    """What became of the files of a folder. `others` are suffixes that are not read, with how many files have them."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    same: int = 0
    problems: tuple[Problem, ...] = ()
    others: Mapping[str, int] | None = None
    seconds: float = 0.0


def refresh(shelf: Shelf, wait: float = 0.0, progress: Progress | None = None) -> Refreshed:
    """Read what changed in the folder of an index. What was done before an interruption is not done again.

    Raises:
        ConflictError: another process indexes here, and did not end within `wait` seconds.
        ConfigError: the rules of access cannot be understood.
        InputError: the folder is not there; the index stays as it is.
    """
    if not shelf.root:
        raise InputError(f"the index {shelf.name!r} is of no folder: what it holds came from elsewhere")
    began = time.monotonic()
    with shelf.writing(wait):
        folder = Folder(shelf.root)
        files = list(folder.files())
        work = _Work(folder, shelf.known(), folder.rules)
        gone = tuple(sorted(work.known.keys() - {file.path for file in files}))
        if gone:
            shelf.commit(Batch(gone=gone))
        with Apart() as apart:
            for batch in work.batches(files, apart, progress or _quietly):
                shelf.commit(batch)
        shelf.settle()
    return replace(work.done, removed=len(gone), others=folder.others, seconds=time.monotonic() - began)


class _Work:
    def __init__(self, folder: Folder, known: Mapping[str, Known], rules: Rules) -> None:
        self.known = known
        self.done = Refreshed()
        self._folder = folder
        self._rules = rules

    def batches(self, files: list[File], apart: Apart, progress: Progress) -> Iterator[Batch]:
        documents: list[Document] = []
        touched: list[tuple[str, Known]] = []
        room = CHARACTERS
        for number, file in enumerate(files):
            progress(number, len(files), file.path)
            found = self._look(file, apart)
            self._count(file.path, found)
            if isinstance(found, Document):
                documents.append(found)
                room -= sum(len(piece.text) for piece in found.pieces)
            elif found is not None:
                touched.append((file.path, found))
            if len(documents) + len(touched) >= FILES or room <= 0:
                yield Batch(tuple(documents), tuple(touched))
                documents, touched, room = [], [], CHARACTERS
        progress(len(files), len(files), "")
        if documents or touched:
            yield Batch(tuple(documents), tuple(touched))

    def _look(self, file: File, apart: Apart) -> "Document | Known | None":
        """A document to put, facts to put, or nothing to do."""
        before = self.known.get(file.path)
        kind = kind_of(file.path)
        reader = reader_of(kind) if kind and not file.problem else "none"
        known = Known("", file.size, file.modified_ns, reader, audience_of(file.path, self._rules), file.problem)
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
            reading = apart.read(raw, kind)
        except UnreadableError as error:
            known = replace(known, problem=error.message)
            return None if before is not None and replace(before, at_us=0) == known else Document(file.path, "", known)
        audience = audience_of(file.path, self._rules, reading.access)
        known = replace(known, audience=audience, access=reading.access)
        return Document(file.path, reading.title[:LONGEST_TITLE], known, split(reading))

    def _count(self, path: str, found: "Document | Known | None") -> None:
        done, before = self.done, self.known.get(path)
        now = found.known if isinstance(found, Document) else found or before
        if now is not None and now.problem:
            done = replace(done, problems=(*done.problems, Problem(path, now.problem)))
        if before is None:
            done = replace(done, added=done.added + 1)
        elif isinstance(found, Document) or (found is not None and found.audience != before.audience):
            done = replace(done, changed=done.changed + 1)
        else:
            done = replace(done, same=done.same + 1)
        self.done = done

    @staticmethod
    def _untouched(file: File, before: Known, reader: str) -> bool:
        """Size, time and reader are as they were, and the file was at rest when it was read."""
        return (
            (before.size, before.modified_ns, before.reader) == (file.size, file.modified_ns, reader)
            and before.at_us * 1000 - file.modified_ns > FRESH_NS
            and reader != MISSING
            and bool(before.digest)
        )


def _quietly(done: int, whole: int, path: str) -> None:
    del done, whole, path
