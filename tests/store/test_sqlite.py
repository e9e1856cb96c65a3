"""How a store is opened, shared and locked, and what is said when that cannot be."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from taiwa.kernel.errors import CorruptError, InputError, StoreError
from taiwa.sql import sqlite as module
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from taiwa.store.schema import STORE
from tests.store.turns import begin, root, turn

NOBODY = 65534


@pytest.fixture
def sealed_folder() -> Iterator[Path]:
    """A folder with a store that may be read and not written; for root's eyes too, who is made somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with Store.open(folder / "sealed.db") as store:
            begin(store, "main", "a")
        (folder / "sealed.db").chmod(0o444)
        folder.chmod(0o555)
        privileged = os.getuid() == 0
        if privileged:
            os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield folder
        finally:
            if privileged:
                os.setresuid(0, 0, 0)
            folder.chmod(0o755)


def test_a_new_store_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"

    with Store.open(path) as store:
        begin(store, "main", "a")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_store_can_be_closed_and_opened_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        tip = begin(store, "main", "a", "b")

    with Store.open(str(tmp_path / "store.db")) as store:
        assert store.refs.tip("main") == tip
        assert store.path == tmp_path / "store.db"


def test_a_commit_survives_its_process_and_costs_no_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped_synchronous: str
) -> None:
    monkeypatch.setattr(module, "SYNCHRONOUS", shipped_synchronous)
    with Store.open(tmp_path / "store.db") as store:
        assert store._db.one("PRAGMA journal_mode") == "wal"
        assert store._db.one("PRAGMA synchronous") == 1
        assert store._db.one("PRAGMA foreign_keys") == 1
        assert store._db.one("PRAGMA secure_delete") == 1
        assert store._db.one("PRAGMA auto_vacuum") == 2


def test_a_store_opened_for_reading_is_read_and_not_written(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        tip = begin(store, "main", "a")

    with Store.open(tmp_path / "store.db", readonly=True) as store:
        assert store.nodes.get(tip).user == "a"
        assert [hit.hash for hit in store.search("a")] == [tip]
        assert store.fsck() == ()
        with pytest.raises(StoreError, match="cannot be written; correct the permissions"):
            store.commit("main", [turn(tip, "b")], expected=tip)


def test_a_store_in_a_read_only_folder_can_be_read(sealed_folder: Path) -> None:
    with Store.open(sealed_folder / "sealed.db", readonly=True) as store:
        assert store.nodes.get(store.refs.tip("main")).user == "a"


def test_writing_to_a_store_in_a_read_only_folder_is_reported(sealed_folder: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written; correct the permissions"):
        Store.open(sealed_folder / "sealed.db")
    with pytest.raises(StoreError, match="cannot be written; correct the permissions"):
        Store.open(sealed_folder / "new.db")


def test_reading_a_missing_store_names_the_command_that_creates_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"store .* not found; `taiwa chat` creates one"):
        Store.open(tmp_path / "none.db", readonly=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to look like one" * 40, b"SQLite format 3\0" + b"x" * 4096]
)
def test_another_file_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)

    with pytest.raises((CorruptError, StoreError)) as caught:
        Store.open(path)

    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert path.read_bytes() == content


def test_the_sqlite_file_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmarks(url)")
    before = path.read_bytes()

    with pytest.raises(StoreError, match="belongs to another program"):
        Store.open(path)

    assert path.read_bytes() == before


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 999")

    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"has format 999, this version of taiwa reads up to \d+; update taiwa"):
            Store.open(path, readonly=readonly)


def test_an_empty_file_is_read_as_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()

    with Store.open(path, readonly=True) as store:
        assert store.refs.list() == ()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("name", ["folder", "file/store.db", "nul\0.db"])
def test_an_impossible_path_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    with pytest.raises((StoreError, InputError)) as caught:
        Store.open(tmp_path / name)

    assert "\n" not in caught.value.message


def test_a_full_disk_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        tip = begin(store, "main", "a")
        pages = store._db.one("PRAGMA page_count")
        store._db.run(f"PRAGMA max_page_count = {pages}")
        large = turn(tip, "".join(map(chr, range(0x4E00, 0x9FFF))))

        with pytest.raises(
            StoreError, match="no space left; free some disk space and try again, nothing was changed"
        ) as caught:
            store.commit("main", [large], expected=tip)

        assert "一" not in caught.value.message
        assert store.refs.tip("main") == tip
        store._db.run("PRAGMA max_page_count = 1000000")
        assert store.commit("main", [large], expected=tip) == large.hash
        assert store.fsck() == ()


def test_a_lock_held_for_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT", 0.05)
    path = tmp_path / "store.db"
    with Store.open(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        tip = begin(store, "main", "a")
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match="locked by another program that is writing; wait for it, or end it"):
            store.commit("main", [turn(tip, "b")], expected=tip)

        other.execute("ROLLBACK")
        assert store.commit("main", [turn(tip, "b")], expected=tip)


def test_a_damaged_file_raises_corrupt_error(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path):
        pass
    first = path.stat().st_size  # behind the pages that hold the schema
    with Store.open(path) as store:
        begin(store, "main", *map(str, range(200)))
    content = bytearray(path.read_bytes())
    content[first : len(content) - 4096] = b"\xff" * (len(content) - first - 4096)
    path.write_bytes(content)

    with pytest.raises(CorruptError, match="is damaged; run `taiwa fsck`"), Store.open(path) as store:
        list(store.nodes.path(store.refs.tip("main")))
    with Store.open(path) as store:
        assert store.fsck()


def test_using_a_closed_store_is_reported(store: Store) -> None:
    store.close()

    with pytest.raises(StoreError, match="is closed"):
        store.refs.list()


def test_a_lone_surrogate_is_refused(store: Store) -> None:
    tip = begin(store, "main")

    with pytest.raises(InputError, match="lone surrogate"):
        store.refs.create("other", tip, reason="\udfff")


def test_threads_share_a_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:

        def write(name: str) -> None:
            begin(store, name, *(f"{name} {number}" for number in range(20)))

        threads = [threading.Thread(target=write, args=(f"thread-{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {ref.turns for ref in store.refs.list()} == {20}
        assert len(store.refs.list()) == 4
        assert store.fsck() == ()


FORKS = """
import os, sys
from taiwa.conversation.history import Node
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from taiwa.store.schema import STORE
store = Store.open(sys.argv[1])
tip = store.refs.tip("main")
app = store.nodes.get(tip).app
inherited = store._db._sql
child = os.fork()
if child == 0:
    store.commit("main", [Node(tip, "turn", app, "child")], expected=tip)
    os._exit(0 if store._db._sql is not inherited else 1)
assert os.waitpid(child, 0)[1] == 0
assert store.nodes.get(store.refs.tip("main")).user == "child"
store.commit("main", [Node(store.refs.tip("main"), "turn", app, "parent")], expected=store.refs.tip("main"))
"""


def test_a_forked_child_opens_the_file_anew(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        begin(store, "main", "a")

    subprocess.run([sys.executable, "-c", FORKS, str(tmp_path / "store.db")], check=True)

    with Store.open(tmp_path / "store.db") as store:
        assert [node.user for _, node in store.nodes.path(store.refs.tip("main"))] == ["parent", "child", "a", None]
        assert store.fsck() == ()


def test_a_clock_that_goes_back_changes_no_order() -> None:
    times = iter(range(10**9, 0, -1))
    with Store.open(":memory:", clock=lambda: next(times)) as store:
        begin(store, "zoo", "a")
        begin(store, "animals", "b")
        store.undo("zoo")

        assert [ref.name for ref in store.refs.list()] == ["zoo", "animals"]
        assert store.refs.latest() == "zoo"
        assert [move.op for move in store.refs.reflog("zoo")] == ["undo", "commit", "create"]
        assert store.resolve("") == root().hash
        stored = dict(store._db.rows("SELECT hash, at_us FROM node"))
        assert stored[bytes.fromhex(root().hash)] > stored[bytes.fromhex(store.refs.tip("animals"))]


class Interrupted(SqliteDatabase):
    """A store whose user presses Ctrl-C right after the next transaction has begun."""

    pressed = False

    def run(self, statement: str, *values: object) -> int:
        changed = super().run(statement, *values)
        if self.pressed and statement.startswith("BEGIN"):
            self.pressed = False
            raise KeyboardInterrupt
        return changed


def test_an_interrupt_right_after_begin_leaves_no_transaction_open(tmp_path: Path) -> None:
    db = Interrupted(tmp_path / "s.db", STORE)
    db.pressed = True
    with pytest.raises(KeyboardInterrupt), db.transaction():
        pass

    with db.transaction():
        db.run("INSERT INTO server VALUES(7)")

    other = SqliteDatabase(tmp_path / "s.db", STORE)
    assert other.one("SELECT process FROM server") == 7
