"""Settings of every test and every executed document.

The documents and the docstrings of `src` and `evals` are collected from here, because pytest consults only the conftest above a
file.
"""

import gc
import inspect
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, suppress
from doctest import ELLIPSIS
from functools import wraps
from itertools import chain, product
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
# Workers share the cores: BLAS threads would compete with the other workers. Set before numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
IN_CI = bool(os.environ.get("CI"))
ALLOWED_SKIP = "shared data absent"
skips: list[tuple[str, str]] = []

# A run repeats exactly, locally and in CI, and a slow machine does not fail it; `make explore` generates new examples.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deterministic", PATIENT, derandomize=True, database=None, max_examples=50)
settings.register_profile("explore", PATIENT, derandomize=False, max_examples=1_000, print_blob=True)
settings.load_profile("deterministic")

# A shell that starts a run in the background makes it ignore Ctrl-C, which every process that a test interrupts would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Objects made by collection live to the end; scanning them for garbage repeatedly would take a third of that time.
gc.disable()
GC_THRESHOLDS = (50_000, 20, 20)
"""Objects, and younger collections, between two collections; with those of Python looking for garbage is a tenth of the time."""


class Docstrings(PythonDocStringDocument):
    """A module whose tree is not built if it contains no example."""

    @staticmethod
    def extract_docstrings(python_source_code: str) -> Iterator[tuple[int, int, str]]:
        if ">>>" in python_source_code:
            yield from PythonDocStringDocument.extract_docstrings(python_source_code)


# Each Sybil has its own folder: the app files in src are Markdown too, and their code blocks must not run.
BLOCKS = (PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), SkipParser())
FIXTURES = ("clean_environment", "shipped_synchronous", "folder_of_its_own")
front = Sybil(BLOCKS, patterns=["README.md", "CONTRIBUTING.md"], excludes=["*/*.md"], fixtures=FIXTURES)
pages = Sybil(BLOCKS, path="docs", pattern="*.md", fixtures=FIXTURES)
docstrings = [
    Sybil(
        [DocTestParser(ELLIPSIS)],
        path=folder,
        pattern="*.py",
        fixtures=["clean_environment", "shipped_synchronous"],
        document_types={".py": Docstrings},
    )
    for folder in ("src", "evals")
]
pytest_collect_file = SybilCollection((front, pages, *docstrings)).pytest()


@pytest.fixture(scope="session", autouse=True)
def shipped_synchronous() -> Iterator[str]:
    """When SQLite waits for the disk outside of the tests; in them it never does.

    Only a power failure can tell the difference, and a test of a command would wait ten times.
    """
    from taiwa.sql import sqlite

    with pytest.MonkeyPatch.context() as patch:
        shipped = sqlite.SYNCHRONOUS
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield shipped


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide keys, settings, addresses, proxies and files of the user from the tests, and protect them from changes."""
    from taiwa.settings import ADDRESS_VARIABLES

    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            ours = name.startswith("TAIWA_") or name in ADDRESS_VARIABLES.values()
            if ours or name.upper().endswith(("_API_KEY", "_PROXY")):
                patch.delenv(name)
        # Processes started by tests find the bytecode compiled by earlier ones.
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        for place in ("CONFIG", "DATA", "STATE", "CACHE"):
            patch.setenv(f"XDG_{place}_HOME", str(home / place.lower()))
        # No test leaves the machine, and loading a hundred certificate authorities takes each client 30 ms.
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("authorities")))
        yield


@pytest.fixture(scope="session")
def real_environment() -> dict[str, str]:
    """The environment before the tests cleaned it, for tests that need the user's pip and its cache."""
    return dict(ENVIRONMENT)


@pytest.fixture(scope="module")
def folder_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the examples of a document in an empty folder that the whole document shares."""
    with chdir(tmp_path_factory.mktemp("document")):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slow tests first, so that the workers end together; the order within a file stays."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


TOGETHER = {
    "tests/models/inprocess/test_transformers": "torch",
    "tests/models/inprocess/test_backends.py": "torch",
    "tests/models/inprocess/test_control_tokens.py": "torch",
    "tests/operations/test_generate.py": "torch",
    "tests/retrieval/test_hybrid.py": "torch",
    "tests/cli/test_generate.py": "torch",
    "docs/models.md": "torch",
    "docs/server.md": "clients",
    "tests/docs/test_commands.py": "sources",
    "tests/docs/test_sessions.py": "clients",
    "tests/house/test_figures.py": "sources",
    "tests/house/test_imports.py": "sources",
    "tests/house/test_safety.py": "sources",
    "tests/server/test_clients.py": "clients",
    "tests/test_i18n.py": "sources",
}
"""Path prefixes of files that one worker runs, because loading torch, clients of others or all sources takes seconds."""


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with different modules, so that they share compiled bytecode."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [*map(str, session.config.args)] != session.config.getini("testpaths"):
        return
    for path in sorted(ROOT.glob("tests/**/test_*.py"))[int(worker["workerid"][2:]) :: worker["workercount"]]:
        with suppress(pytest.Collector.CollectError, pytest.skip.Exception):  # reported when all are collected
            _ = pytest.Module.from_parent(session, path=path).obj


# In a run of several workers a test costs 5 ms before it does anything, more than most rows of a table take: there, a table is one
# test, and a worker tells only what is shown (decision 0097).
STATELESS = frozenset({"drive", "face"})
"""Fixtures that the rows of a table may share although each test has its own."""


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> Any:  # noqa: ANN401  (pytest knows what it makes)
    """Make one test of a table in a worker; elsewhere each row is a test that can be named."""
    in_worker = hasattr(collector.config, "workerinput")
    if not in_worker or not inspect.isfunction(obj) or (whole := table(obj)) is None:
        return None
    setattr(collector.obj, name, whole)
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=name, obj=whole)


def table(test: Callable[..., None]) -> Callable[..., None] | None:
    """Return a test of all rows of a parametrized one; None if it is not, or if a row has a fixture or a mark of its own."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    tables = [mark for mark in marks if mark.name == "parametrize"]
    unusual = any(len(mark.args) != 2 or not mark.kwargs.keys() <= {"ids"} for mark in tables)
    if not tables or unusual or hasattr(test, "hypothesis"):
        return None
    columns, rows = zip(*map(columns_and_rows, tables), strict=True)
    names = [name for some in columns for name in some]
    signature = inspect.signature(test)
    fixtures = [each for name, each in signature.parameters.items() if name not in names]
    if not all(rows) or not STATELESS.issuperset(each.name for each in fixtures):
        return None

    @wraps(test)
    def whole(**given: object) -> None:
        failed: list[BaseException] = []
        skipped: BaseException | None = None
        for parts in product(*rows):
            row = dict(zip(names, chain.from_iterable(parts), strict=True))
            try:
                test(**row, **given)
            except pytest.skip.Exception as skip:
                skipped = skip
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (all are raised when the last row has run)
                error.add_note(f"row: {row!r:.1000}")
                failed.append(error)
        if failed:
            raise BaseExceptionGroup(f"{len(failed)} rows of the table", failed)
        if skipped:
            raise skipped

    vars(whole)["__signature__"] = signature.replace(parameters=fixtures)
    vars(whole)["pytestmark"] = [mark for mark in marks if mark.name != "parametrize"]
    return whole


def columns_and_rows(mark: pytest.Mark) -> tuple[list[str], list[Sequence[object]]]:
    """Return the names and the rows of a mark; no rows if one of them has marks, or if they can be read only once."""
    names, rows = mark.args
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    if isinstance(rows, Iterator):
        return columns, []
    parameters = type(pytest.param())
    if any(isinstance(row, parameters) and row.marks for row in rows):
        return columns, []
    plain = [row.values if isinstance(row, parameters) else (row,) if len(columns) == 1 else row for row in rows]
    return columns, plain


def pytest_configure(config: pytest.Config) -> None:
    """Let a worker tell of a test only what a run shows: its end, what failed, and fixtures that took long."""
    if not hasattr(config, "workerinput"):
        return
    worker = next(each for each in config.pluginmanager.get_plugins() if hasattr(each, "sendevent"))
    send = worker.sendevent

    def send_what_is_shown(name: str, **what: Any) -> None:  # noqa: ANN401  (messages of xdist)
        if name not in ("logstart", "logfinish") and what.get("data") is not UNSEEN:
            send(name, **what)

    worker.sendevent = send_what_is_shown


UNSEEN: dict[str, Any] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report: object) -> dict[str, Any] | None:
    """Write down nothing of fixtures that were made, or ended, within a second."""
    fixtures = isinstance(report, pytest.TestReport) and report.when != "call" and report.passed and report.duration < 1
    return UNSEEN if fixtures else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:  # noqa: ANN401  (of xdist, which may not be here)
    """Distribute whole files to the workers, and files that belong together to one worker."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Dealing(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            alone = super()._split_scope(nodeid)
            return next((name for begin, name in TOGETHER.items() if alone.startswith(begin)), alone)

    return Dealing(config, log)


def pytest_collection_finish() -> None:
    """Enable garbage collection from here on, for the objects of the tests."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Keep what a file left, such as the modules that it imported, out of later collections, which else take a second each."""
    yield
    if (nextitem is None or nextitem.path != item.path) and gc.get_count()[1]:
        gc.collect()
        gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a skipped test; an expected failure does not count."""
    if report.skipped and not hasattr(report, "wasxfail"):
        remember(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a module that was skipped."""
    if report.skipped:
        remember(report)


def remember(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Store the reason of a skip, which pytest formats as `Skipped: reason`."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    skips.append((report.nodeid, words.removeprefix("Skipped: ")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI set, fail the run for a skipped test, unless its data cannot be present."""
    if IN_CI and any(not why.startswith(ALLOWED_SKIP) for _, why in skips):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With CI set, name each skipped test before the final line."""
    if IN_CI and skips:
        terminalreporter.section("skipped in CI")
        for where, why in skips:
            verdict = "allowed" if why.startswith(ALLOWED_SKIP) else "NOT ALLOWED"
            terminalreporter.line(f"{verdict}: {where}: {why}")
