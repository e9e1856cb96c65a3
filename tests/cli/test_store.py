"""Looking after the store: checking it, sweeping it, and deleting for good."""

import sqlite3

import pytest

from taiwa.store import Store
from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.cli.terminal import Terminal
from tests.store.turns import begin


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1` with two turns, one of them undone and replaced."""
    model_server(*[delta(answer) for answer in ("first", "second", "third")])
    taiwa.ok("say", "chat", "one")
    taiwa.ok("say", "-c", "two")
    taiwa.ok("undo")
    taiwa.ok("say", "-c", "three")
    return taiwa


def test_an_undamaged_store_has_no_problems(talked: Taiwa) -> None:
    assert talked.ok("fsck").out == "4 nodes: every hash is right\n"
    assert talked.ok("fsck", "--json").json == {"nodes": 4, "problems": []}


def test_the_nodes_of_callers_are_counted_with_those_that_were_checked(taiwa: Taiwa, place: Place) -> None:
    with Store.open(str(place.store), owner="ann") as store:
        begin(store, "main", "Tea?")

    assert taiwa.ok("fsck").out == "2 nodes: every hash is right\n"


def test_a_damaged_node_is_listed_without_its_text(talked: Taiwa, place: Place) -> None:
    node = talked.ok("show", "--json").json["node"]
    with sqlite3.connect(place.store) as db:
        damage = "UPDATE node SET body = CAST(substr(body, 1, length(body) - 3) || x'000000' AS BLOB) WHERE hash = ?"
        db.execute(damage, (bytes.fromhex(node),))
    db.close()

    checked = talked("fsck")

    assert checked.code == 2
    assert node in checked.out
    assert "three" not in checked.out
    assert checked.err.endswith("undamaged conversations can be saved with taiwa export\n")
    assert talked("show").code == 2
    assert talked.ok("show", "chat-1~1", "--json").json["user"] == "one"


def test_a_file_that_is_torn_is_one_line(talked: Taiwa, place: Place) -> None:
    raw = place.store.read_bytes()
    for part in ("-wal", "-shm"):
        place.store.with_name(f"{place.store.name}{part}").unlink(missing_ok=True)
    place.store.write_bytes(raw[: len(raw) // 2])

    checked = talked("fsck")

    assert checked.code == 2
    assert checked.err.startswith("taiwa: ")
    assert checked.err.count("\n") == 1


def test_a_damaged_store_names_what_can_be_exported(talked: Taiwa, place: Place) -> None:
    node = talked.ok("show", "--json").json["node"]
    talked.ok("fork", "chat-1~1", "sound")
    with sqlite3.connect(place.store) as db:
        db.execute("UPDATE node SET body = x'00' WHERE hash = ?", (bytes.fromhex(node),))
    db.close()

    checked = talked("fsck")

    assert checked.err.splitlines()[:2] == [
        "readable conversations: sound", "save each of them: taiwa export sound -o sound.jsonl",
    ]  # fmt: skip
    assert "run `taiwa fsck`" not in checked.out + checked.err
    assert talked("fsck", "--json").json["readable"] == ["sound"]
    talked.ok("export", "sound", "-o", str(place.folder / "sound.jsonl"))


@pytest.mark.parametrize("page", ["schema", "tables"])
def test_pages_that_were_overwritten_are_reported_once_each(talked: Taiwa, place: Place, page: str) -> None:
    with sqlite3.connect(place.store) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'node'").fetchone()
    db.close()
    start = 100 if page == "schema" else (root - 1) * size  # behind the header of the file
    with place.store.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 3000)

    checked = talked("fsck")

    lines = (checked.out + checked.err).splitlines()
    assert checked.code == 2
    assert len(lines) == len(set(lines))
    assert "run `taiwa fsck`" not in checked.out + checked.err
    if page == "schema":
        assert checked.err.endswith("so no conversation can be read; restore a backup\n")
    else:
        assert any(line.startswith("nodes") for line in lines)
        assert "no conversation can be read whole" in checked.err


def test_gc_deletes_only_unreachable_nodes(talked: Taiwa) -> None:
    assert talked.ok("gc").out == "deleted 0 nodes, 0 apps, 0 moves\n"

    foretold = talked.ok("gc", "--keep", "0", "--dry-run").out
    swept = talked.ok("gc", "--keep", "0").out

    assert foretold.startswith("would delete 1 node")
    assert swept.startswith("deleted 1 node")
    assert talked.ok("fsck", "--json").json["nodes"] == 3
    assert talked.ok("cost", "--json").json[0]["requests"] == 3


def test_a_deleted_conversation_leaves_no_trace(talked: Taiwa, place: Place) -> None:
    talked.ok("export", "chat-1")

    gone = talked.ok("delete", "chat-1", "--yes").out

    assert gone == "deleted chat-1: 4 nodes, 3 runs\n"
    assert talked.ok("log", "--json").json == []
    assert talked.ok("cost", "--json").json == []
    assert b"second" not in place.store.read_bytes()


def test_nodes_of_another_conversation_stay(talked: Taiwa) -> None:
    talked.ok("fork", "chat-1", "mine")

    gone = talked.ok("delete", "chat-1", "--yes", "--json").json

    assert gone["shared"] == 3
    assert talked.ok("show", "mine", "--json").json["user"] == "three"


def test_deleting_requires_confirmation(talked: Taiwa) -> None:
    refused = talked("delete", "chat-1")

    assert refused.code == 2
    assert refused.err == "taiwa: deleting chat-1 (2 turns) cannot be undone; add --yes\n"
    assert talked("delete", "chat-9", "--yes").code == 2


def test_what_does_not_exist_is_not_asked_about(talked: Taiwa) -> None:
    refused = talked("delete", "chat-9")

    assert refused.code == 2
    assert refused.err.startswith("taiwa: session 'chat-9' not found")


def test_on_a_terminal_the_user_is_asked(talked: Taiwa, place: Place) -> None:
    with Terminal(place.environment(), "delete", "chat-1") as shown:
        shown.see("delete chat-1 (2 turns) permanently? [y/N]")
        shown.type("n\n")
        assert shown.end() == 130

    assert len(talked.ok("log", "--json").json) == 1


def test_rows_of_batches_can_be_deleted_too(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("an answer nobody may keep"), delta("again"))
    batch = ("batch", "chat", "-", "--mode", "map", "--resume")
    taiwa.ok(*batch, input="one\n")

    forgotten = taiwa.ok("delete", "--batches", "--yes")

    assert forgotten.out == "deleted 1 row, 1 run\n"
    assert taiwa.ok(*batch, input="one\n").rows[0]["answer"] == "again"
    assert taiwa.ok("delete", "--batches", "--yes", "--json").json == {"rows": 1, "runs": 1}
    assert taiwa.ok("delete", "--batches", "--yes").out == "deleted 0 rows, 0 runs\n"
    assert b"nobody" not in place.store.read_bytes()


@pytest.mark.parametrize("words", [(), ("chat-1", "--batches")])
def test_delete_requires_a_name_or_batches(taiwa: Taiwa, words: tuple[str, ...]) -> None:
    assert taiwa("delete", *words, "--yes").code == 2
