import pytest

from tests.flows.driving import Drive


@pytest.fixture(params=["blocking", "asynchronous"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Runs a program with one of the drivers, and again from its journal."""
    return Drive(request.param)
