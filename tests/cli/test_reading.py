"""Commands that only read need nothing that can be written: a sealed folder, a full disk and another writer are fine."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import taiwa.models.providers  # noqa: F401  (another account may not read what would be imported later)
from taiwa.store import Store
from tests.cli.conftest import Place, Taiwa
from tests.format_1.write import DATA

UNPRIVILEGED = 65534
COMMANDS = (
    "log", "log translate-1", "log --tree", "show translate-1", "why dictionary.犬 translate-1", "state -s travel",
    "search good", "diff travel translate-1", "export translate-1 --calls", "export travel --format md", "cost", "fsck",
    "replay translate-1", "user list", "user export ann", "gc --dry-run",
)  # fmt: skip
WRITE_AND_DIE = """
import os, sys
from taiwa.store import Store
store = Store.open(sys.argv[1])
store.refs.rename("travel", "elsewhere")
store.refs.rename("elsewhere", "travel")
os._exit(0)
"""


INDEX_COMMANDS = (
    "index list", "index show notes --all", "index show notes --access", "find salary", "find salary --in notes --json",
    "apps list", "apps trust", "cost", "log",
)  # fmt: skip


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if not path.name.endswith("-shm")}


def newest(path: Path) -> None:
    shutil.copy(DATA / "store.db", path)
    with Store.open(path) as store:
        store.search("good")


def with_log(path: Path) -> None:
    """A store whose last writer was killed, so that its newest rows are in the log only."""
    newest(path)
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], check=True)


def with_log_alone(path: Path) -> None:
    with_log(path)
    path.with_name(f"{path.name}-shm").unlink()


def first_version(path: Path) -> None:
    shutil.copy(DATA / "store.db", path)


@pytest.fixture
def sealed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Path], None]], Path]]:
    """A folder that this process may read and not write; root becomes somebody else meanwhile."""
    privileged = os.getuid() == 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)

        def seal(fill: Callable[[Path], None]) -> Path:
            fill(folder / "taiwa.db")
            monkeypatch.setenv("TAIWA_STORE", str(folder / "taiwa.db"))
            monkeypatch.setenv("XDG_CONFIG_HOME", made)
            for path in folder.rglob("*"):
                path.chmod(0o555 if path.is_dir() else 0o444)
            folder.chmod(0o555)
            if privileged:
                os.setresuid(UNPRIVILEGED, UNPRIVILEGED, 0)
            return folder

        try:
            yield seal
        finally:
            if privileged:
                os.setresuid(0, 0, 0)
            for path in (folder, *filter(Path.is_dir, folder.rglob("*"))):
                path.chmod(0o755)


@pytest.mark.parametrize("fill", [newest, with_log, with_log_alone, first_version])
def test_a_sealed_folder_can_be_read(
    taiwa: Taiwa, sealed: Callable[[Callable[[Path], None]], Path], fill: Callable[[Path], None]
) -> None:
    folder = sealed(fill)
    before = content(folder)

    for command in COMMANDS:
        result = taiwa.ok(*command.split())
        assert result.out, command
        assert result.err == "", command
    assert content(folder) == before


def test_commands_beside_a_writer_do_not_wait_for_its_lock(taiwa: Taiwa, place: Place) -> None:
    newest(place.store)
    with closing(sqlite3.connect(place.store, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE ref SET name = 'uncommitted' WHERE name = 'travel'")
        before = content(place.folder)
        for command in COMMANDS:
            assert taiwa.ok(*command.split()).out, command
        assert content(place.folder) == before


def test_reading_changes_no_byte_and_leaves_no_file(taiwa: Taiwa, place: Place) -> None:
    newest(place.store)
    before = content(place.folder)

    for command in COMMANDS:
        taiwa.ok(*command.split())

    assert {name: body for name, body in content(place.folder).items() if body} == before


def full_disk() -> None:
    """Let every write to a file fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("command", ["log", "show translate-1", "search good", "export translate-1", "fsck"])
def test_a_full_disk_can_be_read(place: Place, command: str) -> None:
    newest(place.store)

    ran = subprocess.run(
        [sys.executable, "-m", "taiwa", *command.split()],
        env=place.environment(), capture_output=True, preexec_fn=full_disk, check=False,
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout


def test_a_store_that_is_missing_is_empty_for_reading(taiwa: Taiwa, place: Place) -> None:
    assert taiwa.ok("log").err.startswith("there are no conversations yet")
    assert taiwa.ok("fsck").out == "0 nodes: every hash is right\n"
    assert not place.store.exists()


def with_index(taiwa: Taiwa, store: Path) -> None:
    """Fill a store, and index a folder beside it."""
    newest(store)
    documents = store.parent / "notes"
    documents.mkdir()
    (documents / "pay.md").write_text("The salary is paid monthly.\n")
    taiwa.ok("index", str(documents))
    for command in INDEX_COMMANDS:  # what is imported late cannot be read by somebody else
        taiwa.ok(*command.split())


def with_library_log(path: Path) -> None:
    """Leave the log of a writer that was killed beside the library."""
    file = path.with_name(f"{path.stem}-library.db")
    code = "import os, sys, sqlite3; sql = sqlite3.connect(sys.argv[1]); sql.execute('UPDATE doc_index SET at_us = 0'); sql.commit(); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)


@pytest.mark.parametrize("leave", [lambda _: None, with_library_log])
def test_an_index_in_a_sealed_folder_can_be_listed_shown_and_searched(
    taiwa: Taiwa,
    sealed: Callable[[Callable[[Path], None]], Path],
    leave: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill(path: Path) -> None:
        monkeypatch.setenv("TAIWA_STORE", str(path))
        with_index(taiwa, path)
        leave(path)

    folder = sealed(fill)
    before = content(folder)

    for command in INDEX_COMMANDS:
        result = taiwa.ok(*command.split())
        if command.startswith("find"):
            assert "pay.md" in result.out
            assert (
                result.err
                == "notes: searched as it was indexed before, since 'notes' cannot be written: permission denied\n"
            )
        else:
            assert result.out, command
            assert result.err == "", command
    by_folder = taiwa.ok("find", "salary", "--in", str(folder / "notes"))
    assert "pay.md" in by_folder.out
    assert (
        by_folder.err
        == "notes: searched as it was indexed before, since 'notes' cannot be written: permission denied\n"
    )
    assert content(folder) == before


@pytest.mark.parametrize("command", ["index list", "index show notes --all", "find salary --in notes"])
def test_an_index_on_a_full_disk_can_be_read(taiwa: Taiwa, place: Place, command: str) -> None:
    with_index(taiwa, place.store)

    ran = subprocess.run(
        [sys.executable, "-m", "taiwa", *command.split()],
        env=place.environment(), capture_output=True, preexec_fn=full_disk, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert b"pay.md" in ran.stdout or b"notes" in ran.stdout


def test_a_library_that_is_missing_is_empty_for_reading(taiwa: Taiwa, place: Place) -> None:
    assert taiwa.ok("index", "list").err == "there are no indexes yet; create one with `taiwa index FOLDER`\n"
    assert "index 'notes' not found" in taiwa("index", "show", "notes").err
    assert "no index found; create one" in taiwa("find", "salary").err
    assert list(place.store.parent.glob("*library*")) == []


def test_a_folder_is_searched_where_no_library_can_be_written(
    taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = place.folder / "notes"
    documents.mkdir()
    (documents / "pay.md").write_text("The salary is paid monthly.\n")
    monkeypatch.setenv("TAIWA_STORE", "/proc/taiwa/store.db")

    assert "pay.md" in taiwa.ok("find", "salary", "--in", str(documents)).out
