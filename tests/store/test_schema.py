"""A store of any older version becomes one of the newest, once, by whichever process opens it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.kernel.errors import StoreError
from taiwa.kernel.serialization import digest
from taiwa.sql import DatabaseSpec, Migration, PostgresUrl
from taiwa.sql.base import Dialect
from taiwa.sql.postgres import PostgresDatabase
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from taiwa.store.schema import STORE
from tests.database import Database
from tests.store.turns import begin

MORE = Migration(("ALTER TABLE node ADD COLUMN pinned {int} NOT NULL DEFAULT 0", "UPDATE node SET pinned = turns"))
NEXT = replace(STORE, migrations=(*STORE.migrations, MORE))
HALF = Migration(("CREATE TABLE half(x {int}){strict}", "CREATE TABLE half(x {int}){strict}"))


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

    newest = STORE.first_format
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
def test_a_store_of_an_unreleased_format_is_refused_in_one_line(fresh: str, readonly: bool) -> None:
    opened_as(fresh, replace(STORE, first_format=STORE.first_format - 1)).close()

    with pytest.raises(
        StoreError, match=r"^the store .* was written by an unreleased version of taiwa and cannot be opened; move"
    ):
        Store.open(fresh, readonly=readonly)


def test_both_databases_have_the_same_tables(database: Database) -> None:
    file = Store.open(":memory:")._db
    with Store.open(database.url) as server:
        columns = server._db.rows(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'taiwa_store'"
        )
    tables = {name for (name,) in file.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    own = {"taiwa_format"}
    shared = {name for name in tables if not name.startswith("sqlite_")}
    found = {table: {name for (name,) in file.rows("SELECT name FROM pragma_table_info(?)", table)} for table in shared}

    assert {table for table, _ in columns} == shared | own
    assert found == {table: {name for other, name in columns if other == table} for table in shared}


def test_every_table_says_what_its_columns_hold() -> None:
    store = Store.open(":memory:")
    tables = store._db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")

    assert {name for name, sql in tables if name != "sqlite_sequence" and not sql.endswith("STRICT")} == set()


DIGESTS: dict[str, tuple[str, ...]] = {
    "sqlite": ("0b7dfe8f472811649a531812fec673f7",),
    "postgres": ("70a181ad995bac0656cd98155bb25edf",),
}
"""Of the statements of each migration. Only a new one may be added here: stores that ran a migration never run it again."""


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_migration_is_never_edited(dialect: Dialect) -> None:
    digests = tuple(digest("\n".join(each.statements(dialect))) for each in STORE.migrations)

    assert digests == DIGESTS[dialect]
