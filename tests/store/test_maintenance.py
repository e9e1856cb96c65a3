"""What is collected, what is kept, and what is gone for good."""

from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import InputError
from taiwa.sql import sqlite as module
from taiwa.store import DeleteResult, GcResult, Store
from tests.store.turns import APP, answered, begin, turn

SECRET = "zeugma"


def test_nodes_reached_from_a_name_or_a_recent_move_are_not_collected(store: Store) -> None:
    begin(store, "main", "a", "b", "c")
    store.undo("main", 2)

    assert store.gc() == GcResult(0, 0, 0)
    assert store.redo("main", 2)


def test_what_a_conversation_left_stays_until_told_otherwise(store: Store) -> None:
    begin(store, "main", "a", "b", "c")
    store.undo("main", 2)
    for number in range(30):
        begin(store, f"other-{number}", "x")
    store.refs.delete("other-0")

    assert store.gc() == GcResult(0, 0, 3)
    assert store.resolve("main@{1}")
    assert store.gc(keep=3).nodes == 2


def test_nodes_reached_only_from_old_moves_are_collected_with_them(store: Store) -> None:
    begin(store, "main", "a", "b", "c")
    store.undo("main", 2)
    begin(store, "other", "x")

    assert store.gc(keep=2, dry_run=True) == GcResult(2, 0, 4)
    assert store.nodes.count() == 5
    assert store.gc(keep=2) == GcResult(2, 0, 4)

    assert store.nodes.count() == 3
    assert [move.op for move in store.refs.reflog("main")] == ["undo"]
    assert [ref.name for ref in store.refs.list()] == ["other", "main"]
    assert store.gc(keep=2) == GcResult(0, 0, 0)
    assert store.fsck() == ()
    with pytest.raises(InputError, match="nothing to redo"):
        store.redo("main")


def test_a_deleted_session_is_collected_with_its_app(store: Store) -> None:
    other = AppSource("other", "source")
    store.commit("odd", [Node(None, "root", other.hash)], expected=None, apps=[other])
    begin(store, "main", "a")
    store.refs.delete("odd")

    assert store.gc(keep=0).apps == 1

    with pytest.raises(InputError, match="session 'odd' not found"):
        store.refs.reflog("odd")
    assert store.nodes.app(APP.hash)


def test_the_base_of_an_interrupted_run_is_not_collected(store: Store) -> None:
    tip = begin(store, "main", "a")
    run = store.runs.begin("main", tip, APP.hash, "b")
    store.refs.delete("main")

    assert store.gc(keep=0).nodes == 0
    store.runs.end(run, "abandoned")
    assert store.gc(keep=0).nodes == 2
    assert store.runs.run(run).base is None


def test_searching_works_after_a_collection(store: Store) -> None:
    begin(store, "main", "keep this", "drop this")
    assert len(store.search("this")) == 2
    store.undo("main")

    store.gc(keep=0)

    assert [hit.excerpt.text for hit in store.search("this")] == ["keep this はい"]
    assert store.fsck() == ()


def test_a_negative_number_of_moves_to_keep_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="must not be negative"):
        store.gc(keep=-1)


def secret_session(store: Store) -> None:
    """A session with an unusual word in its turns, its state, its calls, its failed run and its snapshots."""
    tip = begin(store, "secret", f"{SECRET} one")
    run = store.runs.begin("secret", tip, APP.hash, f"{SECRET} two")
    store.runs.sink(run)(answered(SECRET, f"{SECRET} answer"))
    store.commit("secret", [turn(tip, f"{SECRET} two")], expected=tip, run=run)
    failed = store.runs.begin("secret", tip, APP.hash, f"{SECRET} three")
    store.runs.end(failed, "failed", InputError(SECRET))
    store.snapshots.put(tip, {"topics": [SECRET]})
    store.undo("secret")
    assert store.search(SECRET)


def test_a_deleted_session_leaves_no_bytes_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        begin(store, "main", "kept")
        secret_session(store)
        assert SECRET.encode() in path.read_bytes() + (tmp_path / "store.db-wal").read_bytes()

        gone = store.delete_session("secret")

        assert gone == DeleteResult(nodes=2, runs=2, shared=1, log_emptied=True)
        for file in tmp_path.iterdir():
            assert SECRET.encode() not in file.read_bytes()
        assert store.search(SECRET) == ()
        assert store.costs("session") == ()
        assert store.refs.list()[0].name == "main"
        assert store.fsck() == ()


def test_a_session_that_was_renamed_and_removed_before_is_deleted_too(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        secret_session(store)
        store.refs.rename("secret", "renamed")
        store.refs.delete("renamed")

        assert store.delete_session("renamed").nodes == 3

        assert SECRET.encode() not in (tmp_path / "store.db").read_bytes()
        assert store.nodes.count() == 0
        with pytest.raises(InputError, match="session 'renamed' not found"):
            store.delete_session("renamed")


def test_deleting_reports_that_another_program_is_still_reading_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT", 0.05)
    with Store.open(tmp_path / "store.db") as store, Store.open(tmp_path / "store.db", readonly=True) as reader:
        secret_session(store)
        with reader._db.transaction(write=False):
            assert reader.refs.has("secret")

            assert not store.delete_session("secret").log_emptied

        assert not reader.refs.has("secret")


def test_nodes_that_another_session_shares_stay(store: Store) -> None:
    begin(store, "main", "a", "b")
    store.refs.create("fork", store.resolve("main~1"))

    gone = store.delete_session("main")

    assert replace(gone, log_emptied=True) == DeleteResult(nodes=1, runs=0, shared=2, log_emptied=True)

    assert [node.user for _, node in store.nodes.path(store.refs.tip("fork"))] == ["a", None]
    assert store.fsck() == ()


def test_a_removed_fork_of_a_deleted_session_is_deleted_with_it(store: Store) -> None:
    begin(store, "main", "a", "b")
    store.refs.create("fork", store.resolve("main~1"))
    tip = store.refs.tip("fork")
    store.commit("fork", [turn(tip, "c")], expected=tip)
    store.refs.delete("fork")

    store.delete_session("main")

    assert store.nodes.count() == 0
    assert store.fsck() == ()


def test_a_deleted_session_that_shares_only_the_root_can_still_be_made_again(store: Store) -> None:
    tip = begin(store, "deleted", "precious")
    store.refs.delete("deleted")
    begin(store, "main", "a")

    store.delete_session("main")

    store.refs.create("deleted", store.resolve("deleted@{1}"))
    assert store.refs.tip("deleted") == tip
    assert store.fsck() == ()


def test_deleting_makes_the_file_as_small_as_one_without_sessions(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        empty = path.stat().st_size
        begin(store, "main", *("".join(map(chr, range(0x4E00 + number, 0x5200 + number))) for number in range(90)))
        store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size > 2 * empty

        store.delete_session("main")

        assert path.stat().st_size <= empty
