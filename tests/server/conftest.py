"""Fixtures of the server's tests."""

from collections.abc import Iterator

import pytest

from tests.peers.faults import FaultServer


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """The server of a model, which plays what a test gives it."""
    with FaultServer() as server:
        yield server
