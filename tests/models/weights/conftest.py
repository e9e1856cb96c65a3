"""A cache of its own for each test, and a hub on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.hub import CONTENT, Hub

CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "OLLAMA_MODELS", "LLAMA_CACHE")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of fetched files, in a home of its own."""
    for name in CACHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "taiwa" / "models"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that has the file of the tests."""
    with Hub({"owner/tiny-GGUF/tiny.Q4.gguf": CONTENT}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub
