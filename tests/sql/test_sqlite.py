"""A file belongs to one kind, and errors call it by its name."""

import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from taiwa.kernel.errors import CorruptError, InputError, StoreError
from taiwa.sql import DatabaseSpec, Migration
from taiwa.sql import sqlite as module
from taiwa.sql.sqlite import SqliteDatabase

THING = (Migration(("CREATE TABLE thing(x)",)),)
BOX = DatabaseSpec("box", "taiwa_box", 0x626F7831, 1, THING, created_by="`open box` creates one", repair="delete it")
CRATE = DatabaseSpec("crate", "taiwa_crate", 0x63726174, 1, THING, created_by="", repair="")


def test_the_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "it.db", BOX).close()

    with pytest.raises(StoreError, match="name another file for the crate"):
        SqliteDatabase(tmp_path / "it.db", CRATE)


def test_a_missing_file_is_reported_with_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"box .*it\.db not found; `open box` creates one"):
        SqliteDatabase(tmp_path / "it.db", BOX, readonly=True)


def test_a_damaged_file_is_reported_with_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "it.db"
    db = SqliteDatabase(path, BOX)
    db.run("INSERT INTO thing VALUES(zeroblob(100000))")
    db.close()
    raw = bytearray(path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    path.write_bytes(raw)

    with pytest.raises(CorruptError, match=r"the box .*it\.db is damaged; delete it"):
        SqliteDatabase(path, BOX).rows("SELECT x FROM thing")


def test_a_path_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the path of the box"):
        SqliteDatabase(f"{tmp_path}/a\0b", BOX)


def test_the_mark_and_the_version_of_a_file_are_read_in_one_snapshot(tmp_path: Path) -> None:
    """Another process creates the tables between the two reads: the file must not look like that of another program."""
    path = tmp_path / "it.db"
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("PRAGMA journal_mode = WAL")
    created: list[SqliteDatabase] = []

    def between(statement: str) -> None:
        if statement == "-- PRAGMA user_version" and not created:
            created.append(SqliteDatabase(path, BOX))

    sql.set_trace_callback(between)
    target = module._Migrating(sql, BOX, path)

    assert (target.read_version(), target.read_version()) == (0, 1)
    created[0].close()
    sql.close()


def test_a_file_on_a_read_only_file_system_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as db:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        monkeypatch.setattr("os.access", lambda *_: False)

        assert "cannot be written" in str(db._error(error))


def test_a_transaction_that_waits_for_nobody_keeps_what_its_parts_committed(tmp_path: Path) -> None:
    """A part that fails is undone, as on its own; an error outside the parts undoes nothing."""
    with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as db:
        with pytest.raises(ValueError, match="after"), db.transaction_now() as begun:  # noqa: PT012
            assert begun
            with db.transaction(), db.transaction():
                db.run("INSERT INTO thing VALUES(1)")
            with suppress(LookupError), db.transaction():
                db.run("INSERT INTO thing VALUES(2)")
                with db.transaction():
                    db.run("INSERT INTO thing VALUES(3)")
                raise LookupError
            raise ValueError("after")

        with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as other:
            assert other.rows("SELECT x FROM thing") == [(1,)]


def test_a_transaction_that_would_wait_for_another_program_is_not_begun(tmp_path: Path) -> None:
    path, ran = tmp_path / "it.db", list[str]()
    waits, waits_not = f"PRAGMA busy_timeout = {module.WAIT * 1000:.0f}", "PRAGMA busy_timeout = 0"
    with closing(SqliteDatabase(path, BOX)) as db, closing(SqliteDatabase(path, BOX)) as other:
        db._sql.set_trace_callback(ran.append)
        with other.transaction(), db.transaction_now() as begun:
            assert not begun
        assert ran == [waits_not, "PRAGMA wal_autocheckpoint = 0", "BEGIN IMMEDIATE"]
        ran.clear()
        with db.transaction_now() as begun:
            assert begun
        assert ran == ["BEGIN IMMEDIATE", "COMMIT"]
        ran.clear()
        with db.transaction():
            pass

    writes_back = f"PRAGMA wal_autocheckpoint = {module.CHECKPOINT_PAGES}"
    assert ran == [waits, writes_back, "BEGIN IMMEDIATE", "COMMIT"]


def test_a_transaction_that_would_wait_for_another_thread_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, asked, now = threading.Event(), threading.Event(), [0.0]

    def write() -> None:
        with db.transaction():
            held.set()
            asked.wait()

    def begins() -> bool:
        with db.transaction_now() as begun:
            return begun

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as db:
        thread = threading.Thread(target=write)
        thread.start()
        held.wait()
        assert not begins()
        asked.set()
        thread.join()

        assert not begins()  # it does not ask again so soon
        now[0] += module.REST_NOW
        assert begins()


def test_some_transactions_are_left_to_those_that_write_the_log_into_the_file(tmp_path: Path) -> None:
    with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as db:
        begun = []
        for number in range(2 * module.REFUSED_NOW):
            with db.transaction_now() as now:
                begun.append(now)
                if now:
                    db.run("INSERT INTO thing VALUES(?)", number)

        assert begun.count(False) == 2


def test_a_commit_does_not_wait_for_the_disk_and_a_checkpoint_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped_synchronous: str
) -> None:
    monkeypatch.setattr(module, "SYNCHRONOUS", shipped_synchronous)

    with closing(SqliteDatabase(tmp_path / "it.db", BOX)) as db:
        assert db._sql.execute("PRAGMA synchronous").fetchone() == (1,)  # NORMAL, whatever the other tests run with


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_joins_transactions_in_memory() -> None:
    db = SqliteDatabase(":memory:", BOX)
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            with db.transaction(), db.transaction():
                db.run("INSERT INTO thing VALUES(1)")
            os._exit(0)
        os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
    db.close()
