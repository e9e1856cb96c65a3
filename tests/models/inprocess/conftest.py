"""The tiny model in a folder. What needs torch lies in few files: loading it takes a worker seconds."""

from pathlib import Path

import pytest

from taiwa.models.inprocess.transformers_model import LocalModel
from tests.peers.tiny import build


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny model"))


@pytest.fixture(scope="session")
def loaded(folder: Path) -> LocalModel:
    return LocalModel(f"local:{folder}?threads=1")  # more of them wait for each other


@pytest.fixture
def model(loaded: LocalModel) -> LocalModel:
    """A model that has read nothing yet."""
    loaded.generator().prefix_cache.clear()
    return loaded
