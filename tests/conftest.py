"""Fixtures shared by several packages of tests."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import pytest

from taiwa.retrieval import ingest
from taiwa.retrieval.index import Index
from taiwa.retrieval.readers import IsolatedReader, ReadDocument
from taiwa.sessions import ask_resources
from tests.database import database, place, postgres_server
from tests.peers.llama import LlamaServer

__all__ = ["database", "llama", "place", "postgres_server", "shared_data", "smollm2"]

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recorded cases that may lie beside the checkout; without it the test is skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"shared data absent: no folder {SHARED_DATA}")
    return SHARED_DATA


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
"""The user's cache: tests run with another one."""
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real model of 93 MB; a test that needs it is skipped where it was not fetched."""
    path = CACHE / "taiwa" / "models" / SMOLLM2
    if not path.is_file():
        pytest.skip(f"real model absent: no file {path}; `taiwa models pull smollm2-135m` fetches it")
    return path


class KeptReader:
    """A reader of documents whose process is reused: starting one takes longer than most tests that index a folder."""

    def __init__(self) -> None:
        self._reader = IsolatedReader()
        self._path = list(sys.path)
        self._lock = Lock()

    def __call__(self) -> "KeptReader":
        """Start reading; a process that sees other packages than this one is restarted."""
        if self._path != sys.path:
            self.end()
            self._path = list(sys.path)
        return self

    def read(self, raw: bytes, kind: str) -> ReadDocument:
        with self._lock:
            return self._reader.read(raw, kind)

    def close(self) -> None:
        """Keep the process."""

    def end(self) -> None:
        with self._lock:
            self._reader.close()


@pytest.fixture(scope="session", autouse=True)
def one_reader_process() -> Iterator[None]:
    """Index folders in one process per worker; tests/retrieval/test_readers.py starts its own."""
    kept = KeptReader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "IsolatedReader", kept)
        yield
    kept.end()


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what has no place of its own, such as the documents of a store in memory, out of the folder of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def handbook_read_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Read the bundled handbook once per worker; a home without its index gets a copy, which is then updated.

    A worker of several reads it before its first test, since a test that changes what reads would spoil the copies of the others.
    """
    kept = tmp_path_factory.mktemp("handbook") / "kept.db"
    made, one_at_a_time = kept.with_name("made.db"), Lock()
    open_handbook = ask_resources._handbook

    def read() -> None:
        with ExitStack() as own:
            open_handbook(made, own)
        made.with_suffix(".words").rename(kept.with_suffix(".words"))
        made.rename(kept)

    if hasattr(request.config, "workerinput"):
        read()

    def copied(place: Path | None, stack: ExitStack) -> Index:
        if place is None:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="taiwa-"))) / "library.db"
        with one_at_a_time:  # a server's threads open it side by side: none may copy what another has half written
            if not place.exists():
                if not kept.exists():
                    read()
                shutil.copytree(kept.with_suffix(".words"), place.with_suffix(".words"))
                shutil.copyfile(kept, place)
        return open_handbook(place, stack)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ask_resources, "_handbook", copied)
        yield


@pytest.fixture
def no_chart() -> Iterator[pytest.MonkeyPatch]:
    """Skip the charts of evaluations, which take longer than the evaluations, unless the patch is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taiwa.evals.report.draw", lambda *_: ())
        yield patch


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A real llama.cpp server with a tiny random model, called `tiny`, shared by all files of a worker."""
    with LlamaServer(tmp_path_factory.mktemp("llama")) as server:
        yield server
