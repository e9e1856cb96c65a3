"""Whatever is changed behind the store's back is found, and said without showing what was said."""

import re

import pytest

from taiwa.sql.postgres import PostgresDatabase
from taiwa.store import Store
from tests.store.turns import APP, answered, begin, turn

SECRET = "zeugma"

DAMAGE = [
    (
        "UPDATE node SET body = CAST(replace(CAST(body AS TEXT), 'zeugma', 'enigma') AS BLOB) WHERE kind = 'turn'",
        "node ",
        "does not match its hash",
    ),
    ("UPDATE node SET body = x'00ff' WHERE seq = 2", "node ", "body cannot be read"),
    ("UPDATE node SET body = x'' WHERE seq = 2", "node ", "body cannot be read"),
    ("UPDATE node SET kind = 'edit' WHERE seq = 3", "node ", "does not match its hash"),
    ("UPDATE node SET state = x'00000000000000000000000000000000' WHERE seq = 3", "node ", "does not match its hash"),
    ("UPDATE node SET parent = 1 WHERE seq = 4", "node ", "does not match its hash"),
    ("UPDATE node SET parent = 4 WHERE seq = 2", "node ", "missing or younger"),
    ("UPDATE node SET turns = 7 WHERE seq = 3", "node ", "number of turns is wrong"),
    ("UPDATE node SET base = 4 WHERE seq = 3", "node ", "the target of its undo is not an ancestor"),
    ("UPDATE node SET base = NULL WHERE seq = 3", "node ", "the target of its undo is not an ancestor"),
    ("DELETE FROM node WHERE seq = 2", "node ", "refers to a row of node that does not exist"),
    ("DELETE FROM node WHERE seq = 4", "ref main", "refers to a node or move that does not exist"),
    ("DELETE FROM app", "node ", "refers to a row of app that does not exist"),
    ("UPDATE app SET name = 'other'", "app ", "does not match its hash"),
    ("UPDATE app SET body = x'7b'", "app ", "body cannot be read"),
    ("UPDATE ref SET name = 'a b'", "ref ", "is not a valid session name"),
    ("UPDATE ref SET moved = 99", "ref main", "refers to a node or move that does not exist"),
    ("UPDATE call SET answer = x'ff'", "call ", "body cannot be read"),
    ("UPDATE run SET node = 99", "run ", "refers to a node or move that does not exist"),
    ("UPDATE snapshot SET state = x'7800'", "snapshot ", "body cannot be read"),
    ("UPDATE batch_item SET result = x'78'", "batch_item ", "body cannot be read"),
]


@pytest.fixture
def filled(store: Store) -> Store:
    tip = begin(store, "main", f"{SECRET} one", f"{SECRET} two")
    run = store.runs.begin("main", tip, APP.hash, SECRET)
    store.runs.sink(run)(answered(SECRET, SECRET))
    tip = store.commit("main", [turn(tip, SECRET)], expected=tip, run=run)
    store.snapshots.put(tip, {"a": SECRET})
    store.batches.begin("ab" * 16)
    store.batches.finish("ab" * 16, SECRET)
    return store


def test_an_undamaged_store_has_no_problems(filled: Store) -> None:
    filled.undo("main", 2)
    filled.refs.create("other", filled.refs.tip("main"))
    filled.refs.delete("main")

    assert filled.fsck() == ()


def _for_server(statement: str) -> str:
    """The same damage in the words of PostgreSQL."""
    if "replace(CAST(body" in statement:
        return (
            "UPDATE node SET body = replace(convert_from(body, 'UTF8'), 'zeugma', 'enigma')::bytea WHERE kind = 'turn'"
        )
    return re.sub(r"x'([0-9a-f]*)'", r"decode('\1', 'hex')", statement)


@pytest.mark.parametrize(("statement", "where", "what"), DAMAGE)
def test_every_damage_is_reported_and_nothing_is_repaired(filled: Store, statement: str, where: str, what: str) -> None:
    on_server = isinstance(filled._db, PostgresDatabase)
    filled._db.run("SET session_replication_role = replica" if on_server else "PRAGMA foreign_keys = OFF")
    filled._db.run(_for_server(statement) if on_server else statement)

    faults = filled.fsck()

    assert any(fault.where.startswith(where) and what in fault.what for fault in faults)
    assert filled.fsck() == faults
    assert SECRET not in repr(faults)
