"""Each case of a program runs on both drivers."""

import pytest

from tests.kernel.fakes import Drive


@pytest.fixture(params=["blocking", "asynchronous"])
def drive(request: pytest.FixtureRequest) -> Drive:
    return Drive(request.param)
