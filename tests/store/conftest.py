"""Stores to put turns into: what is asked of one place that keeps conversations is asked of every one."""

from collections.abc import Iterator

import pytest

from taiwa.store import Store
from tests.database import Database


@pytest.fixture(params=["memory", "server"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store."""
    place = ":memory:"
    if request.param == "server":
        database: Database = request.getfixturevalue("database")
        place = database.url
    with Store.open(place) as opened:
        yield opened
