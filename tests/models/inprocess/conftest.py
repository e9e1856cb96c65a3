"""The tiny models. What needs torch lies in few files: loading it takes a worker seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from taiwa.models.inprocess.gguf import GgufModel
from taiwa.models.inprocess.transformers_model import LocalModel
from tests.peers.llama import write_model
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


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="session")
def gguf_loaded(gguf_file: Path) -> Iterator[GgufModel]:
    with GgufModel(f"gguf:{gguf_file}?threads=1&context=2048") as made:
        yield made
