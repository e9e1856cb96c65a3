"""What tests of different parts share."""

from pathlib import Path

import pytest

from tests.database import database, postgres_server

__all__ = ["database", "postgres_server", "shared_data"]

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recorded cases that may lie beside the checkout; without it the test is skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"shared data absent: no folder {SHARED_DATA}")
    return SHARED_DATA
