"""All indexes of one file, by name."""

import shutil
from pathlib import Path

from taiwa.kernel.errors import InputError
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.schema import LIBRARY
from taiwa.retrieve.local.shelf import LocalShelf
from taiwa.retrieve.local.tabled import TableShelves
from taiwa.sqlite import Clock, Connection, now_us

__all__ = ["LocalShelves"]


class LocalShelves(TableShelves[LocalShelf]):
    """Indexes in one SQLite file; the words of each stand in a folder beside it."""

    def __init__(self, path: str | Path, *, clock: Clock = now_us) -> None:
        self._file = Connection(path, LIBRARY, clock=clock)
        if self._file.path is None:
            raise InputError("a library is a file, since its words stand beside it: name one")
        super().__init__(self._file)
        self._folder = self._file.path.with_suffix(".words")

    def __repr__(self) -> str:
        return f"LocalShelves({str(self._file.path)!r})"

    def _shelf(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> LocalShelf:
        return LocalShelf(self._file, self._folder / str(seq), seq, named, analyzer)

    def _begin(self, seq: int, stamp: bytes) -> None:
        self._db.run("INSERT INTO change VALUES(?, 0, ?)", seq, stamp)

    def _gone(self, shelf: LocalShelf) -> None:
        shutil.rmtree(self._folder / str(shelf.seq), ignore_errors=True)
