"""Places that keep indexes: what `conformance` asks of one, it asks of every one that is listed here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from taiwa.retrieval import Index, Library
from taiwa.retrieval.backend import LibraryBackend
from taiwa.retrieval.postgres import PostgresLibraryBackend
from taiwa.retrieval.sqlite import SqliteLibraryBackend
from taiwa.sql import PostgresUrl
from tests.database import Database

Opens: TypeAlias = Callable[[], LibraryBackend]
"""Opens the same place once more, as another process would."""


def _local(request: pytest.FixtureRequest, folder: Path) -> Opens:
    return lambda: SqliteLibraryBackend(folder / "library.db")


def _server(request: pytest.FixtureRequest, folder: Path) -> Opens:
    database: Database = request.getfixturevalue("database")
    return lambda: PostgresLibraryBackend(PostgresUrl.parse(database.url))


PLACES: dict[str, Callable[[pytest.FixtureRequest, Path], Opens]] = {"local": _local, "server": _server}


@pytest.fixture(params=PLACES)
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opens]:
    """Opens one and the same place; all that was opened is closed at the end."""
    opened: list[LibraryBackend] = []
    again = PLACES[request.param](request, tmp_path / "place")

    def once_more() -> LibraryBackend:
        opened.append(again())
        return opened[-1]

    yield once_more
    for shelves in opened:
        shelves.close()


@pytest.fixture
def library(opens: Opens) -> Library:
    return Library(opens())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for documents."""
    made = tmp_path / "documents"
    made.mkdir()
    return made


@pytest.fixture
def index(library: Library, folder: Path) -> Index:
    return library.create(folder, "docs")
