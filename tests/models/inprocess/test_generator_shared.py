"""A model of this process that is opened twice is released by the second closing."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.models.providers import open_model, resolve
from taiwa.settings import Settings, load
from tests.models.inprocess.stub_model import StubModel


class Counted(StubModel):
    """Counts how often it is released."""

    def __init__(self) -> None:
        super().__init__("yes")
        self.released = 0

    def _release(self) -> None:
        self.released += 1


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"HOME": str(tmp_path)}, tmp_path / "config.yaml")


def test_the_last_opener_releases_the_model() -> None:
    model = Counted()

    with model.share(), model.share():
        pass

    assert model.released == 1


def test_one_opener_takes_nothing_from_another() -> None:
    model = Counted()
    first, second = model.share(), model.share()

    first.close()
    assert model.released == 0
    asyncio.run(second.aclose())
    assert model.released == 1


def test_a_model_that_was_made_and_not_opened_is_released_at_once() -> None:
    model = Counted()

    model.close()

    assert model.released == 1


def test_a_name_that_is_opened_twice_is_one_model_with_two_openers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taiwa.models.providers._load", lambda target, _: StubModel("Hi", target.name))
    target = replace(resolve("local:./model"), capabilities=StubModel("Hi").capabilities)
    first, second = (open_model(target, settings) for _ in range(2))
    assert first is second
    assert isinstance(first, StubModel)
    loaded = first.generator()

    first.close()
    assert first.generator() is loaded
    first.close()
    assert first.generator() is not loaded
