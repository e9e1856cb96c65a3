"""Attachments in a store: once by their hash, as long as something refers to them, and with every export that wants them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.history import Node, TurnParts
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.sql.postgres import PostgresDatabase
from taiwa.store import Store
from tests.files import PDF, PNG, TEXT, png
from tests.store.turns import APP, begin
from tests.strategies import attachments as any_attachments

CAT = Attachment.from_bytes(PNG, "cat.png")
BLUE = Attachment.from_bytes(png(0, 0, 255), "blue.png")
REPORT = Attachment.from_bytes(PDF, "report.pdf")


def turn(parent: str, text: str, *attachments: Attachment) -> Node:
    return Node(parent, "turn", APP.hash, text, "yes", {}, "1" * 32, TurnParts(attachments))


def attached(store: Store, name: str, *attachments: Attachment) -> str:
    tip = begin(store, name)
    return store.commit(name, [turn(tip, name, *attachments)], expected=tip)


def blobs(store: Store) -> int:
    return int(store._db.one("SELECT count(*) FROM blob"))


def test_bytes_are_stored_once_however_often_they_are_attached(store: Store) -> None:
    tip = attached(store, "main", CAT, replace(CAT, name="again.png"))
    tip = store.commit("main", [turn(tip, "next", CAT, REPORT)], expected=tip)

    node = store.nodes.get(tip)

    assert blobs(store) == 2
    assert node.attachments == (CAT, REPORT)
    assert [each.data for each in node.attachments] == [b"", b""]
    assert [each.data for each in store.blobs.fill(node.attachments)] == [PNG, PDF]
    assert store.fsck() == ()


def test_the_hash_of_a_node_covers_its_attachments() -> None:
    plain, with_cat, with_other = (turn("0" * 32, "a", *files) for files in ((), (CAT,), (BLUE,)))

    assert len({plain.hash, with_cat.hash, with_other.hash, turn("0" * 32, "a", replace(CAT, name="x.png")).hash}) == 4
    assert plain.hash == Node("0" * 32, "turn", APP.hash, "a", "yes", {}, "1" * 32).hash


def test_what_nothing_refers_to_is_collected(store: Store) -> None:
    attached(store, "main", CAT)
    attached(store, "other", CAT, BLUE)
    store.refs.delete("other")

    assert store.gc(0, dry_run=True).attachments == 1
    assert store.gc(0).attachments == 1

    assert store.blobs.data(CAT.sha256) == PNG
    assert store.blobs.data(BLUE.sha256) == b""
    assert store.fsck() == ()


def test_a_deleted_session_takes_its_own_attachments_along(store: Store) -> None:
    from taiwa.store.maintenance import delete_session

    attached(store, "main", CAT)
    attached(store, "other", CAT, BLUE)

    delete_session(store._db, store.refs, "other")

    assert blobs(store) == 1
    assert store.fsck() == ()


def test_the_attachments_of_a_turn_that_can_be_resumed_stay(store: Store) -> None:
    tip = begin(store, "main")
    run = store.runs.begin("main", tip, APP.hash, "look", None, [CAT])
    ended = store.runs.begin("main", tip, APP.hash, "look", None, [BLUE])
    store.runs.end(ended, "abandoned")

    assert store.gc(0).attachments == 1
    assert store.blobs.data(CAT.sha256) == PNG

    store.commit("main", [turn(tip, "look", CAT)], expected=tip, run=run)
    assert store._db.one("SELECT count(*) FROM run_blob") == 0
    assert store.gc(0).attachments == 0


def test_who_knows_a_hash_does_not_get_the_bytes_of_another_owner(store: Store) -> None:
    ann, bob = store.owned_by("ann"), store.owned_by("bob")
    tip = attached(ann, "main", CAT)

    assert bob.import_lines(list(ann.export("main", attachments=False))) == tip
    assert bob.blobs.data(CAT.sha256) == b""
    assert bob.blobs.fill(bob.nodes.get(tip).attachments)[0].data == b""

    bob.import_lines(list(ann.export("main")))
    assert bob.blobs.data(CAT.sha256) == PNG
    assert store.fsck() == ()
    ann.refs.delete("main")
    store.gc(0)
    assert bob.blobs.data(CAT.sha256) == PNG


@pytest.mark.parametrize(
    ("statement", "where", "what"),
    [
        ("UPDATE blob SET data = x'00'", "blob ", "does not match its hash"),
        ("DELETE FROM blob", "node_blob ", "refers to a row of blob that does not exist"),
        ("DELETE FROM node_blob", "node ", "its attachments are not those that the store keeps for it"),
        ("DELETE FROM node WHERE turns = 1", "node_blob ", "refers to a row of node that does not exist"),
    ],
)
def test_every_damage_is_reported(store: Store, statement: str, where: str, what: str) -> None:
    attached(store, "main", CAT)
    on_server = isinstance(store._db, PostgresDatabase)
    store._db.run("SET session_replication_role = replica" if on_server else "PRAGMA foreign_keys = OFF")
    store._db.run(statement.replace("x'00'", "decode('00', 'hex')") if on_server else statement)

    assert any(fault.where.startswith(where) and what in fault.what for fault in store.fsck())


def test_damaged_bytes_are_not_sent(store: Store) -> None:
    attached(store, "main", CAT)
    store._db.run("UPDATE blob SET data = ?", PDF)

    with pytest.raises(CorruptError, match=r"the attachment cat\.png does not match its hash, size or type"):
        store.blobs.fill([replace(CAT, data=b"")])


def test_search_finds_the_name_of_an_attachment(store: Store) -> None:
    attached(store, "main", REPORT)

    assert [hit.hash for hit in store.search("report.pdf")] == [store.refs.tip("main")]


# --- export and import ------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(any_attachments, max_size=3), max_size=3))
def test_attachments_leave_and_come_back_with_the_same_hashes(turns: list[list[Attachment]]) -> None:
    with Store.open(":memory:") as store, Store.open(":memory:") as other:
        tip = begin(store)
        for files in turns:
            tip = store.commit("main", [turn(tip, "look", *files)], expected=tip)
        lines = list(store.export("main"))

        assert other.import_lines(lines) == tip
        assert list(other.export("main")) == lines
        assert other.fsck() == ()
        assert sum('"blob"' in line for line in lines) == len({each.sha256 for files in turns for each in files})


def test_an_export_may_leave_the_bytes_out_and_a_later_import_brings_them(store: Store) -> None:
    with Store.open(":memory:") as other:
        tip = attached(other, "main", CAT, REPORT)
        whole, bare = list(other.export("main")), list(other.export("main", attachments=False))

    assert store.import_lines(bare) == tip
    assert not store.blobs.data(CAT.sha256)
    assert store.fsck() == ()
    assert store.blobs.fill(store.nodes.get(tip).attachments) == (CAT, REPORT)

    assert store.import_lines(whole) == tip
    assert store.blobs.data(CAT.sha256) == PNG
    assert list(store.export("main")) == whole


def lines_of(**changes: Any) -> list[str]:
    with Store.open(":memory:") as store:
        attached(store, "main", Attachment.from_bytes(TEXT, "a.txt"))
        lines = list(store.export("main"))
    at = next(at for at, line in enumerate(lines) if '"blob"' in line)
    lines[at] = json.dumps(json.loads(lines[at]) | changes)
    return lines


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"base64": "!"}, "the bytes of an attachment must be base64"),
        ({"base64": None}, "the bytes of an attachment must be base64"),
        ({"base64": ""}, "the attachment is empty"),
        ({"base64": "AAEC"}, "the attachment is neither a PNG"),
        ({"base64": "YWJj"}, "the content does not match its hash"),
        ({"blob": "0" * 64}, "the content does not match its hash"),
        ({"blob": 5}, "the content does not match its hash"),
    ],
)
def test_a_bad_attachment_is_named_and_nothing_is_imported(store: Store, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=f"line 4: {why}.*; nothing was imported"):
        store.import_lines(lines_of(**changes))

    assert blobs(store) == store.nodes.count() == 0


def test_a_node_cannot_lie_about_the_type_of_its_attachment(store: Store) -> None:
    with Store.open(":memory:") as other:
        attached(other, "main", replace(CAT, media_type="image/gif"))
        lines = list(other.export("main"))

    with pytest.raises(InputError, match=r"the attachment cat\.png does not match its hash, size or type"):
        store.import_lines(lines)
