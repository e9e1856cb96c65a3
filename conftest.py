"""What holds for every test and every executed document, wherever it lies.

The documents and the docstrings of `src` and `evals` are collected from here, because pytest asks only the conftest above a file.
"""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import chdir, suppress
from doctest import ELLIPSIS
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.sybil import SybilCollection

ROOT = Path(__file__).parent
ENVIRONMENT = dict(os.environ)
# Workers share the cores: threads of BLAS beside theirs would wait for each other, spinning. Set before numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
IN_CI = bool(os.environ.get("CI"))
ALLOWED_SKIP = "shared data absent"
skips: list[tuple[str, str]] = []

# A run repeats exactly, at the desk as in CI, and no slow machine fails it; `make explore` looks for new examples.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deterministic", PATIENT, derandomize=True, database=None, max_examples=50)
settings.register_profile("explore", PATIENT, derandomize=False, max_examples=1_000, print_blob=True)
settings.load_profile("deterministic")

# A shell that starts a run in the background makes it ignore Ctrl-C, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What collecting makes stays to the end: looking for garbage in it, again and again, would be a third of that time.
gc.disable()


class Docstrings(PythonDocStringDocument):
    """A module, whose tree is not made where it has no example."""

    @staticmethod
    def extract_docstrings(python_source_code: str) -> Iterator[tuple[int, int, str]]:
        if ">>>" in python_source_code:
            yield from PythonDocStringDocument.extract_docstrings(python_source_code)


# Each Sybil has its own folder: the app files in src are Markdown, too, and what they quote is not to be run.
BLOCKS = (PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), SkipParser())
FIXTURES = ("clean_environment", "folder_of_its_own")
front = Sybil(BLOCKS, patterns=["README.md", "CONTRIBUTING.md"], excludes=["*/*.md"], fixtures=FIXTURES)
pages = Sybil(BLOCKS, path="docs", pattern="*.md", fixtures=FIXTURES)
docstrings = [
    Sybil(
        [DocTestParser(ELLIPSIS)],
        path=folder,
        pattern="*.py",
        fixtures=["clean_environment"],
        document_types={".py": Docstrings},
    )
    for folder in ("src", "evals")
]
pytest_collect_file = SybilCollection((front, pages, *docstrings)).pytest()


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No key, setting, proxy or file of the person who runs the tests is seen by a test, or changed by one."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("TAIWA_") or name.upper().endswith(("_API_KEY", "_PROXY")):
                patch.delenv(name)
        # Processes that tests start find compiled what the one before them compiled.
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        for place in ("CONFIG", "DATA", "STATE", "CACHE"):
            patch.setenv(f"XDG_{place}_HOME", str(home / place.lower()))
        # Nobody vouches for a server: to load a hundred authorities takes each client 30 ms, and no test leaves the machine.
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("authorities")))
        yield


@pytest.fixture(scope="session")
def real_environment() -> dict[str, str]:
    """The environment as it was before the tests cleaned it, for what must find the person's own pip and its cache."""
    return dict(ENVIRONMENT)


@pytest.fixture(scope="module")
def folder_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A document's examples may write files: they do so in an empty folder that the whole document shares."""
    with chdir(tmp_path_factory.mktemp("document")):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first, so that the workers end together; the order within a file stays."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


TOGETHER = {
    "tests/models/inprocess/test_transformers": "torch",
    "tests/retrieval/test_hybrid.py": "torch",
    "tests/training/test_torch.py": "torch",
    "tests/cli/test_generate.py": "torch",
    "docs/local.md": "torch",
    "tests/house/test_figures.py": "sources",
    "tests/house/test_imports.py": "sources",
    "tests/house/test_safety.py": "sources",
}
"""Files that one worker runs, by the beginning of their paths: to load torch takes seconds, and so does to parse all sources."""


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with modules of its own: what one has compiled, the others find compiled when they come to it."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [*map(str, session.config.args)] != session.config.getini("testpaths"):
        return
    for path in sorted(ROOT.glob("tests/**/test_*.py"))[int(worker["workerid"][2:]) :: worker["workercount"]]:
        with suppress(pytest.Collector.CollectError, pytest.skip.Exception):  # said when all are collected
            _ = pytest.Module.from_parent(session, path=path).obj


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:  # noqa: ANN401  (of xdist, which may not be here)
    """Deal whole files to the workers, and those that belong together to one."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Dealing(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            alone = super()._split_scope(nodeid)
            return next((name for begin, name in TOGETHER.items() if alone.startswith(begin)), alone)

    return Dealing(config, log)


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, among what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a skipped test; an expected failure is not one."""
    if report.skipped and not hasattr(report, "wasxfail"):
        remember(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember a whole module that was skipped."""
    if report.skipped:
        remember(report)


def remember(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Keep the reason of a skip, which pytest words as `Skipped: reason`."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    skips.append((report.nodeid, words.removeprefix("Skipped: ")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI set, a test that did not run is a test that failed, unless its data cannot be here."""
    if IN_CI and any(not why.startswith(ALLOWED_SKIP) for _, why in skips):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With CI set, name each skipped test before the closing line."""
    if IN_CI and skips:
        terminalreporter.section("skipped in CI")
        for where, why in skips:
            verdict = "allowed" if why.startswith(ALLOWED_SKIP) else "NOT ALLOWED"
            terminalreporter.line(f"{verdict}: {where}: {why}")
