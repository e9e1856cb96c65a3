"""What tests of different parts share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import database, postgres_server
from tests.peers.llama import LlamaServer

__all__ = ["database", "llama", "postgres_server", "shared_data"]

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recorded cases that may lie beside the checkout; without it the test is skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"shared data absent: no folder {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A genuine llama.cpp server with a tiny model of random weights, called `tiny`: one for all files of a worker."""
    with LlamaServer(tmp_path_factory.mktemp("llama")) as server:
        yield server
