"""A store of any older version becomes one of the newest, once, whoever opens it."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.kernel.errors import StoreError
from taiwa.sqlite.kind import is_current, migrate
from taiwa.store import Store
from taiwa.store.schema import APPLICATION, MIGRATIONS, STORE
from tests.store.turns import begin

MORE = ("ALTER TABLE node ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0", "UPDATE node SET pinned = turns")
NEXT = replace(STORE, migrations=(*MIGRATIONS, MORE))


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_a_file_of_the_first_version_is_brought_to_the_second_with_all_it_holds(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "old.db")) as sql:
        for statement in MIGRATIONS[0]:
            sql.execute(statement)
        sql.execute(f"PRAGMA application_id = {APPLICATION}")
        sql.execute("PRAGMA user_version = 1")
    with Store.open(tmp_path / "old.db") as store:
        begin(store, "main", "a", "b")

    with closing(opened(tmp_path / "old.db")) as sql:
        assert not is_current(sql, NEXT)
        migrate(sql, NEXT)
        migrate(sql, NEXT)

        assert is_current(sql, NEXT)
        assert sql.execute("SELECT pinned FROM node ORDER BY seq").fetchall() == [(0,), (1,), (2,)]
        assert sql.execute("PRAGMA user_version").fetchone() == (len(NEXT.migrations),)


def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    Store.open(tmp_path / "store.db").close()
    broken = replace(STORE, migrations=(*MIGRATIONS, ("CREATE TABLE half(x)", "CREATE TABLE half(x)")))

    with closing(opened(tmp_path / "store.db")) as sql:
        with pytest.raises(sqlite3.OperationalError):
            migrate(sql, broken)

        assert not sql.in_transaction
        assert sql.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
        assert is_current(sql, STORE)


def test_this_program_does_not_take_a_newer_store_back(tmp_path: Path) -> None:
    Store.open(tmp_path / "store.db").close()
    with closing(opened(tmp_path / "store.db")) as sql:
        migrate(sql, NEXT)

    with pytest.raises(StoreError, match=f"version {len(NEXT.migrations)} and this program knows {len(MIGRATIONS)}"):
        Store.open(tmp_path / "store.db")


def test_every_table_says_what_its_columns_hold() -> None:
    store = Store.open(":memory:")
    tables = store._db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%'")

    assert {name for name, sql in tables if name != "sqlite_sequence" and not sql.endswith("STRICT")} == set()
