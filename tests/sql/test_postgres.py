"""A schema on a genuine server: how it is opened, shared and locked, and what is said when that cannot be."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from taiwa.kernel.errors import ConfigError, ConflictError, InputError, StoreError
from taiwa.sql import DatabaseSpec, Migration, PostgresUrl
from taiwa.sql import postgres as module
from taiwa.sql.postgres import PostgresDatabase
from tests.database import Database

THING = (Migration(("CREATE TABLE thing(seq {pk}, word {text}){strict}",)),)
BOX = DatabaseSpec("box", "taiwa_box", 0x626F7831, 1, THING, created_by="`open box` creates one", repair="delete it")
SECRET = "zeugma"


@pytest.fixture
def server(database: Database) -> Iterator[PostgresUrl]:
    yield PostgresUrl.parse(database.url)
    database.run("DROP SCHEMA IF EXISTS taiwa_box CASCADE")


@pytest.fixture
def db(server: PostgresUrl) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(server, BOX)
    yield opened
    opened.close()


def over_network(database: Database, login: str) -> PostgresUrl:
    ((port,),) = database.run("SHOW port")
    name = database.url.partition("@/")[2].partition("?")[0]
    return PostgresUrl.parse(f"postgresql://{login}@127.0.0.1:{port}/{name}")


def put(db: PostgresDatabase, word: str) -> int | None:
    return db.insert("INSERT INTO thing(word) VALUES(?)", word)


def words(db: PostgresDatabase) -> list[str]:
    return [word for (word,) in db.rows("SELECT word FROM thing ORDER BY seq")]


def test_committed_rows_are_seen_by_other_connections(db: PostgresDatabase, server: PostgresUrl) -> None:
    with db.transaction():
        assert put(db, "紅") == 1

    other = PostgresDatabase(server, BOX)
    assert words(other) == ["紅"]
    assert db.run("UPDATE thing SET word = ?", "a") == 1
    assert other.row("SELECT word FROM thing WHERE seq = ?1 AND seq = ?1", 1) == ("a",)
    other.close()


def test_a_failed_transaction_changes_nothing(db: PostgresDatabase) -> None:
    def half() -> None:
        with db.transaction():
            put(db, "a")
            db.run("INSERT INTO nothing VALUES(1)")

    with pytest.raises(StoreError, match="no longer has its tables"):
        half()

    assert words(db) == []
    with db.transaction():
        put(db, "b")
    assert words(db) == ["b"]


def test_a_reading_transaction_sees_one_snapshot(db: PostgresDatabase, server: PostgresUrl) -> None:
    other = PostgresDatabase(server, BOX)
    with db.transaction(write=False):
        assert words(db) == []
        put(other, "a")

        assert words(db) == []
        with pytest.raises(StoreError, match="open for reading only"):
            put(db, "b")
    other.close()


def test_a_name_is_locked_by_one_transaction_at_a_time(
    db: PostgresDatabase, server: PostgresUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", "100ms")
    other = PostgresDatabase(server, BOX)
    with db.transaction():
        db.lock("a", "b")
        with other.transaction():
            other.lock("c")
        with pytest.raises(StoreError, match="locked by another program that is writing"), other.transaction():
            other.lock("b")
        with pytest.raises(StoreError, match="locked by another program"), other.transaction(exclusive=True):
            pass

    with other.transaction(exclusive=True):
        other.lock("a", "b")
    other.close()


def test_a_deadlock_ends_in_a_conflict(db: PostgresDatabase, server: PostgresUrl, database: Database) -> None:
    database.run("ALTER SYSTEM SET deadlock_timeout = '50ms'")
    database.run("SELECT pg_reload_conf()")
    other, outcomes, both = PostgresDatabase(server, BOX), list[str](), threading.Barrier(2)

    def cross(db: PostgresDatabase, first: str, second: str) -> None:
        try:
            with db.transaction():
                db.lock(first)
                both.wait(300)
                db.lock(second)
            outcomes.append("done")
        except ConflictError as error:
            outcomes.append(error.message)

    threads = [
        threading.Thread(target=cross, args=(db, "a", "b")),
        threading.Thread(target=cross, args=(other, "b", "a")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(outcomes) == 2
    assert "done" in outcomes
    assert any("another program first" in outcome for outcome in outcomes)
    other.close()


def test_a_connection_lost_between_statements_is_opened_again(db: PostgresDatabase, database: Database) -> None:
    put(db, "a")
    kill(database)

    assert words(db) == ["a"]
    kill(database)
    with db.transaction():
        put(db, "b")
    assert words(db) == ["a", "b"]


def test_a_connection_lost_within_a_transaction_is_reported_and_changes_nothing(
    db: PostgresDatabase, database: Database
) -> None:
    def half() -> None:
        with db.transaction():
            put(db, "a")
            kill(database)
            put(db, "b")

    with pytest.raises(StoreError, match="lost its connection"):
        half()

    assert words(db) == []


def kill(database: Database) -> None:
    database.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


FORKS = """
import os, sys
from taiwa.sql import PostgresUrl
from taiwa.sql.postgres import PostgresDatabase
from tests.sql.test_postgres import BOX, put, words
db = PostgresDatabase(PostgresUrl.parse(sys.argv[1]), BOX)
put(db, "before")
child = os.fork()
if child == 0:
    put(db, "child")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
put(db, "parent")
assert words(db) == ["before", "child", "parent"]
"""


def test_a_forked_child_opens_its_own_connection(server: PostgresUrl) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((".", os.environ.get("PYTHONPATH", "")))}
    subprocess.run([sys.executable, "-c", FORKS, server.url], check=True, env=environment)


def test_using_a_closed_database_is_reported(db: PostgresDatabase) -> None:
    db.close()

    with pytest.raises(StoreError, match="is closed"):
        words(db)


@pytest.mark.parametrize(
    ("word", "complaint"), [("half \ud800", "lone surrogate"), ("a\0b", "NUL character"), (2**63, "64 bits")]
)
def test_a_value_that_the_server_refuses_is_not_repeated_in_the_error(
    db: PostgresDatabase, word: object, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        db.run("INSERT INTO thing(word) VALUES(?)", word)

    assert "half \ud800" not in caught.value.message


def test_many_rows_are_copied_at_once(db: PostgresDatabase) -> None:
    with db.transaction():
        db.copy("thing(word)", ["text"], ((str(number),) for number in range(1000)))

    assert db.one("SELECT count(*) FROM thing") == 1000
    with pytest.raises(InputError, match="lone surrogate"):
        db.copy("thing(word)", ["text"], [("\ud800",)])
    assert db.one("SELECT count(*) FROM thing") == 1000


def test_a_schema_of_a_newer_version_is_refused(db: PostgresDatabase, server: PostgresUrl) -> None:
    db.run("UPDATE taiwa_box.taiwa_format SET version = 9")

    for readonly in (False, True):
        with pytest.raises(
            StoreError, match=r"the box on .* has format 9, this version of taiwa reads up to 1; update"
        ):
            PostgresDatabase(server, BOX, readonly=readonly)


def test_an_older_schema_is_migrated_once_and_not_read_before(db: PostgresDatabase, server: PostgresUrl) -> None:
    put(db, "a")
    newer = replace(
        BOX, migrations=(*BOX.migrations, Migration(("ALTER TABLE thing ADD COLUMN more {int} DEFAULT 7",)))
    )

    with pytest.raises(StoreError, match="older format; open it once for writing"):
        PostgresDatabase(server, newer, readonly=True)
    for _ in range(2):
        opened = PostgresDatabase(server, newer)
        assert opened.rows("SELECT word, more FROM thing") == [("a", 7)]
        opened.close()


def test_a_migration_that_fails_leaves_nothing(server: PostgresUrl) -> None:
    broken = replace(BOX, migrations=(Migration(("CREATE TABLE half(x int)", "CREATE TABLE half(x int)")),))

    with pytest.raises(StoreError, match="refused a statement"):
        PostgresDatabase(server, broken)
    with pytest.raises(StoreError, match=r"box on postgresql://.* not found; `open box` creates one"):
        PostgresDatabase(server, BOX, readonly=True)


def test_the_schema_of_another_program_is_left_alone(server: PostgresUrl, database: Database) -> None:
    database.run("CREATE SCHEMA taiwa_box; CREATE TABLE taiwa_box.theirs(x int)")

    with pytest.raises(StoreError, match="belongs to another program; name another database"):
        PostgresDatabase(server, BOX)


def test_a_read_only_database_is_not_written(db: PostgresDatabase, server: PostgresUrl) -> None:
    put(db, "a")
    reader = PostgresDatabase(server, BOX, readonly=True)

    assert words(reader) == ["a"]
    with pytest.raises(StoreError, match="open for reading only"):
        put(reader, "b")
    reader.close()


def test_an_unreachable_server_is_reported_in_one_line_without_the_password(
    database: Database, server: PostgresUrl
) -> None:
    database.run("DROP ROLE IF EXISTS keyed; CREATE ROLE keyed LOGIN PASSWORD 'right'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
    cases = {
        f"postgresql://keyed:{SECRET}@127.0.0.1:{closed}/x": "cannot be reached; check that it runs",
        over_network(database, f"keyed:{SECRET}").url: "rejected the password",
        over_network(database, "keyed").url: "rejected the password",
        server.url.replace("@/", "@/no_").replace(
            "taiwa@", f"taiwa:{SECRET}@"
        ): "does not have this database; create it",
        server.url.replace("taiwa@", f"stranger:{SECRET}@"): "does not know this user",
        f"postgresql://a:{SECRET}@127.0.0.1/x?zeta={SECRET}": "has a parameter that PostgreSQL does not know",
    }

    for url, complaint in cases.items():
        with pytest.raises((StoreError, InputError)) as caught:
            PostgresDatabase(PostgresUrl.parse(url), BOX)
        assert complaint in caught.value.message
        assert SECRET not in caught.value.message
        assert "\n" not in caught.value.message


def test_missing_permission_to_write_is_reported(database: Database) -> None:
    database.run("DROP ROLE IF EXISTS keyed; CREATE ROLE keyed LOGIN PASSWORD 'right'")

    with pytest.raises(StoreError, match="cannot be written by this user; let the owner of the database grant it"):
        PostgresDatabase(over_network(database, "keyed:right"), BOX)


def test_a_missing_extra_is_named(server: PostgresUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match="a PostgreSQL store needs the extra postgres; install it with"):
        PostgresDatabase(server, BOX)


def at_once(db: PostgresDatabase, count: int) -> list[str]:
    """Let threads meet in the middle of their transactions, and return how each of them ended."""
    outcomes, all_inside = list[str](), threading.Barrier(count)

    def write(word: str) -> None:
        try:
            with db.transaction():
                put(db, word)
                all_inside.wait(300)
                put(db, word * 2)
            outcomes.append("done")
        except (StoreError, threading.BrokenBarrierError) as error:
            all_inside.abort()
            outcomes.append(str(error))

    threads = [threading.Thread(target=write, args=(word,)) for word in "abcdefgh"[:count]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


def test_threads_of_a_server_write_at_the_same_time_on_connections_of_a_pool(db: PostgresDatabase) -> None:
    db.connections = 4

    assert at_once(db, 4) == ["done"] * 4
    assert sorted(words(db)) == sorted([*"abcd", "aa", "bb", "cc", "dd"])
    assert at_once(db, 4) == ["done"] * 4


def test_a_thread_that_finds_no_free_connection_is_told_so(
    db: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT", 0.2)
    db.connections = 2

    outcomes = at_once(db, 3)

    assert any("has no free connection left; try again in a moment" in each for each in outcomes)
    assert words(db) == []


def test_lost_connections_of_a_pool_are_opened_again(db: PostgresDatabase, database: Database) -> None:
    db.connections = 3
    at_once(db, 3)
    kill(database)

    assert at_once(db, 3) == ["done"] * 3
    assert len(words(db)) == 12


def test_the_number_of_a_process_stays_locked_while_its_threads_use_a_pool(
    db: PostgresDatabase, server: PostgresUrl
) -> None:
    db.connections = 3
    db.run("CREATE SEQUENCE owner AS integer CYCLE")
    owner = db.owner()
    at_once(db, 3)
    other = PostgresDatabase(server, BOX)

    assert other.is_alive(owner)
    assert db.owner() == owner
    db.close()
    for _ in range(6_000):  # the server ends a connection some time after its client has
        if not other.is_alive(owner):
            break
        other.run("SELECT pg_sleep(0.01)")
    else:
        pytest.fail("the lock of the process is still held")
    other.close()


def test_a_number_that_another_process_holds_is_not_taken_though_its_sequence_begins_anew(
    db: PostgresDatabase, server: PostgresUrl
) -> None:
    db.run("CREATE SEQUENCE owner AS integer CYCLE")
    held = db.owner()
    db.run("ALTER SEQUENCE owner RESTART")
    other = PostgresDatabase(server, BOX)

    assert other.owner() != held
    assert db.is_alive(other.owner())
    other.close()
