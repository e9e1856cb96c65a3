"""A store of any older version becomes one of the newest, once, by whichever process opens it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from taiwa.conversation.app import AppSource
from taiwa.kernel.errors import StoreError
from taiwa.kernel.serialization import digest
from taiwa.sql import DatabaseSpec, Migration, PostgresUrl
from taiwa.sql.base import Dialect
from taiwa.sql.postgres import PostgresDatabase
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from taiwa.store.nodes import hash_to_bytes, pack
from taiwa.store.schema import STORE
from tests.database import Database
from tests.store.turns import APP, begin

OTHER = AppSource("other", "---\ntaiwa: 1\nname: other\n---\nYou talk.\n", {})
MORE = Migration(("ALTER TABLE node ADD COLUMN pinned {int} NOT NULL DEFAULT 0", "UPDATE node SET pinned = turns"))
NEXT = replace(STORE, migrations=(*STORE.migrations, MORE))
HALF = Migration(("CREATE TABLE half(x {int}){strict}", "CREATE TABLE half(x {int}){strict}"))


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def opened_as(place: str, spec: DatabaseSpec, *, readonly: bool = False) -> SqliteDatabase | PostgresDatabase:
    if "://" in place:
        return PostgresDatabase(PostgresUrl(place), spec, readonly=readonly)
    return SqliteDatabase(place, spec, readonly=readonly)


@pytest.fixture
def dropped(postgres_server: Database) -> Iterator[Database]:
    """A database without our schemas, before and afterwards."""
    postgres_server.drop()
    yield postgres_server
    postgres_server.drop()


@pytest.fixture
def fresh(place: str, request: pytest.FixtureRequest) -> str:
    """A place without tables, and without those of a newer version afterwards."""
    if "://" in place:
        request.getfixturevalue("dropped")
    return place


def test_an_older_store_is_migrated_with_all_its_rows(fresh: str) -> None:
    with Store.open(fresh) as store:
        begin(store, "main", "a", "b")

    for _ in range(2):
        db = opened_as(fresh, NEXT)
        assert db.rows("SELECT pinned FROM node ORDER BY seq") == [(0,), (1,), (2,)]
        db.close()


def test_a_migration_that_fails_leaves_the_version_before_it(fresh: str) -> None:
    Store.open(fresh).close()
    broken = replace(STORE, migrations=(*STORE.migrations, HALF))

    with pytest.raises(StoreError, match="refused a statement"):
        opened_as(fresh, broken)

    with Store.open(fresh) as store:
        begin(store, "main")
        with pytest.raises(StoreError):
            store._db.rows("SELECT x FROM half")


def test_a_newer_store_is_refused_and_left_as_it_is(fresh: str) -> None:
    Store.open(fresh).close()
    opened_as(fresh, NEXT).close()

    newest = len(STORE.migrations)
    with pytest.raises(
        StoreError, match=rf"has format {newest + 1}, this version of taiwa reads up to {newest}; update taiwa"
    ):
        Store.open(fresh)


def test_an_older_file_is_read_from_a_migrated_copy(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        begin(store, "main", "a", "b")
    before = path.read_bytes()

    db = opened_as(str(path), NEXT, readonly=True)
    assert db.rows("SELECT pinned FROM node ORDER BY seq") == [(0,), (1,), (2,)]
    db.close()
    assert path.read_bytes() == before


def test_an_older_schema_cannot_be_read_before_it_was_opened_for_writing(dropped: Database) -> None:
    Store.open(dropped.url).close()

    with pytest.raises(StoreError, match="has an older format; open it once for writing"):
        opened_as(dropped.url, NEXT, readonly=True)


@pytest.mark.parametrize("readonly", [False, True])
def test_a_file_of_an_unreleased_format_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, readonly: bool
) -> None:
    path = tmp_path / "old.db"
    with closing(opened(path)) as sql:
        sql.execute("CREATE TABLE node(seq INTEGER PRIMARY KEY)")
        sql.execute("PRAGMA application_id = 0x74616977")
        sql.execute("PRAGMA user_version = 3")
    before = path.read_bytes()

    with pytest.raises(StoreError) as caught:
        Store.open(path, readonly=readonly)

    assert caught.value.message == (
        f"{path} was written by an unreleased version of taiwa and cannot be opened; move it away or delete it"
    )
    assert path.read_bytes() == before


def test_a_schema_of_an_unreleased_format_is_refused(dropped: Database) -> None:
    dropped.run("CREATE SCHEMA taiwa_store CREATE TABLE taiwa_version(number bigint NOT NULL)")

    with pytest.raises(
        StoreError, match=r"taiwa_store on postgresql://.* was written by an unreleased version of taiwa"
    ):
        Store.open(dropped.url)


def test_both_databases_have_the_same_tables(database: Database) -> None:
    file = Store.open(":memory:")._db
    with Store.open(database.url) as server:
        columns = server._db.rows(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'taiwa_store'"
        )
    tables = {name for (name,) in file.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    own = {"taiwa_format", "unindexed", "search"}
    shared = {name for name in tables if not name.startswith(("search", "sqlite_")) and name != "indexed"}
    found = {table: {name for (name,) in file.rows("SELECT name FROM pragma_table_info(?)", table)} for table in shared}

    assert {table for table, _ in columns} == shared | own
    assert found == {table: {name for other, name in columns if other == table} for table in shared}


def test_every_table_says_what_its_columns_hold() -> None:
    store = Store.open(":memory:")
    tables = store._db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%'")

    assert {name for name, sql in tables if name != "sqlite_sequence" and not sql.endswith("STRICT")} == set()


DIGESTS: dict[str, tuple[str, ...]] = {
    "sqlite": (
        "8834146607f1989f6ac7b11138a7ee1e",
        "65fb3522b1ec57875341b20892b3e438",
        "9d36902425040fd69da2933148abf8fb",
        "b395c22a595ec95dd0a5c3b8e43d265e",
        "be357536ce9ad5572f38bbf479515ac7",
        "56340f1e96b7cbe5c7aae014b8c41c55",
        "6cfdb8ee159fb1f136e8560a4de7c92f",
        "f1d3f33225ab68413f12bae243fe547a",
        "8e42cef0639061681b1a4df14a252f8d",
        "350e313679807ffe4da8182c983d59eb",
        "7ccc02164d71b0a6a1aba716de1b7205",
        "96a6788d5069fba9ad017495e4e05d89",
    ),
    "postgres": (
        "7d03563dc5139e07000617b19fde6573",
        "0304742288303895eff40db193320d89",
        "0c074ccb1390cd5c7eb238ab2235a0ae",
        "69004d041cea1435b6ad65d0644ea922",
        "26bdb15088e4d9b97a13af094c996e5c",
        "e14a9b7ec19b4e7d4fd32f63b5638135",
        "e6cfba68992c147d0234a7b694bcbd32",
        "48ab5dc78500723dbeb3240d1be024f4",
        "8e42cef0639061681b1a4df14a252f8d",
        "6e5589f3f4432788752cd4e79a729455",
        "6f7f8a412c26c64b43478a0d8b4b68fb",
        "96a6788d5069fba9ad017495e4e05d89",
    ),
}
"""Of the statements of each migration. Only a new line may be added here: stores that ran a migration never run it again."""


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_migration_is_never_edited(dialect: Dialect) -> None:
    digests = tuple(digest("\n".join(each.statements(dialect))) for each in STORE.migrations)

    assert digests == DIGESTS[dialect]


OLD = (
    "INSERT INTO app(hash, name, body) VALUES(?, 'chat', ?), (?, 'other', ?)",
    "INSERT INTO node(hash, kind, app, turns, state, body, at_us) SELECT hash, 'root', seq, 0, hash, body, 0 FROM app",
    "INSERT INTO ref(name, node, moved) VALUES('main', 1, 1), ('copy', 2, 2)",
    """INSERT INTO reflog(ref, op, old, new, reason, at_us)
        VALUES(1, 'create', NULL, 1, 'turn', 0), (2, 'create', NULL, 2, 'import', 0)""",
    "INSERT INTO run(ref, status, pid, token, at_us) VALUES('main', 'abandoned', 0, '', 0)",
    "INSERT INTO batch_item(key, status, attempts, pid, token, at_us) SELECT hash, 'open', 1, 0, '', 0 FROM app WHERE seq = 1",
    "INSERT INTO user_profile(name, body, at_us) SELECT name, body, 0 FROM app",
    "INSERT INTO feedback(user_profile, body, at_us) SELECT 2, body, 0 FROM app",
    "INSERT INTO user_session(ref, user_profile) VALUES(1, 2)",
)


def old_store(place: str, version: int) -> None:
    """Make a store as the first versions wrote it: an own session and an imported one, a batch, two users."""
    old = opened_as(place, replace(STORE, migrations=STORE.migrations[:version]))
    apps = ((hash_to_bytes(app.hash), pack({"source": app.source, "params": app.params})) for app in (APP, OTHER))
    old.run(OLD[0], *chain.from_iterable(apps))
    for statement in OLD[1:]:
        old.run(statement)
    if version > 1:
        old.run("INSERT INTO untrusted_app VALUES(2)")
    old.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_version_keeps_everything_and_distrusts_what_was_imported(fresh: str, version: int) -> None:
    old_store(fresh, version)

    with Store.open(fresh) as store:
        assert [app.name for app in store.nodes.untrusted_apps()] == ["other"]
        assert [ref.name for ref in store.refs.list()] == ["copy", "main"]
        assert [(user.name, user.feedback, user.sessions) for user in store.users.list()] == [
            ("chat", 0, 0), ("other", 2, 1),
        ]  # fmt: skip
        assert store.users.sessions("other") == ("main",)
        assert store._db.rows("SELECT ref, owner FROM run") == [("main", "")]
        assert store.batches.get(APP.hash) is not None
        store.users.put("ann", {})
        store.users.add_feedback("ann", {})
        begin(store.owned_by("alice"), "main", "a")
        assert [where for where, _ in ((each.where, each.what) for each in store.fsck()) if "node" not in where] == []
