"""A store in memory, and turns to put into it."""

from collections.abc import Iterator

import pytest

from taiwa.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(":memory:") as opened:
        yield opened
