"""Stores to put turns into: what is asked of one place that keeps conversations is asked of every one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from taiwa.store import Store
from tests.database import Database


@pytest.fixture(params=["local", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place that holds nothing yet and can be opened several times: a file, and a database on a genuine server."""
    if request.param == "local":
        return str(tmp_path / "store.db")
    database: Database = request.getfixturevalue("database")
    return database.url


@pytest.fixture(params=["memory", "server"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store."""
    place = ":memory:"
    if request.param == "server":
        database: Database = request.getfixturevalue("database")
        place = database.url
    with Store.open(place) as opened:
        yield opened
