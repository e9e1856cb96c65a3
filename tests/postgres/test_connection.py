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
from taiwa.postgres import Connection, Kind, Server
from taiwa.postgres import connection as module
from tests.database import Database

BOX = Kind(
    "box", "taiwa_box", (("CREATE TABLE thing(seq bigint GENERATED ALWAYS AS IDENTITY, word text)",),), maker="`open box` makes one"
)  # fmt: skip
SECRET = "zeugma"


@pytest.fixture
def server(database: Database) -> Iterator[Server]:
    yield Server.read(database.url)
    database.run("DROP SCHEMA IF EXISTS taiwa_box CASCADE")


@pytest.fixture
def db(server: Server) -> Iterator[Connection]:
    opened = Connection(server, BOX)
    yield opened
    opened.close()


def over_network(database: Database, login: str) -> Server:
    ((port,),) = database.run("SHOW port")
    name = database.url.partition("@/")[2].partition("?")[0]
    return Server.read(f"postgresql://{login}@127.0.0.1:{port}/{name}")


def put(db: Connection, word: str) -> int | None:
    return db.insert("INSERT INTO thing(word) VALUES(?)", word)


def words(db: Connection) -> list[str]:
    return [word for (word,) in db.rows("SELECT word FROM thing ORDER BY seq")]


def test_what_was_written_is_there_for_others(db: Connection, server: Server) -> None:
    with db.transaction():
        assert put(db, "紅") == 1

    other = Connection(server, BOX)
    assert words(other) == ["紅"]
    assert db.run("UPDATE thing SET word = ?", "a") == 1
    assert other.row("SELECT word FROM thing WHERE seq = ?1 AND seq = ?1", 1) == ("a",)
    other.close()


def test_what_fails_half_way_changes_nothing(db: Connection) -> None:
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


def test_one_view_does_not_change(db: Connection, server: Server) -> None:
    other = Connection(server, BOX)
    with db.transaction(write=False):
        assert words(db) == []
        put(other, "a")

        assert words(db) == []
        with pytest.raises(StoreError, match="open for reading only"):
            put(db, "b")
    other.close()


def test_names_are_held_by_one_at_a_time(db: Connection, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCKED", "100ms")
    other = Connection(server, BOX)
    with db.transaction():
        db.hold("a", "b")
        with other.transaction():
            other.hold("c")
        with pytest.raises(StoreError, match="locked by another program that is writing"), other.transaction():
            other.hold("b")
        with pytest.raises(StoreError, match="locked by another program"), other.transaction(alone=True):
            pass

    with other.transaction(alone=True):
        other.hold("a", "b")
    other.close()


def test_two_that_wait_for_each_other_do_not_wait_for_ever(db: Connection, server: Server, database: Database) -> None:
    database.run("ALTER SYSTEM SET deadlock_timeout = '50ms'")
    database.run("SELECT pg_reload_conf()")
    other, outcomes, both = Connection(server, BOX), list[str](), threading.Barrier(2)

    def cross(db: Connection, first: str, second: str) -> None:
        try:
            with db.transaction():
                db.hold(first)
                both.wait(300)
                db.hold(second)
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
    assert any("another program was first" in outcome for outcome in outcomes)
    other.close()


def test_a_connection_that_was_lost_between_two_steps_is_opened_anew(db: Connection, database: Database) -> None:
    put(db, "a")
    kill(database)

    assert words(db) == ["a"]
    kill(database)
    with db.transaction():
        put(db, "b")
    assert words(db) == ["a", "b"]


def test_a_connection_that_is_lost_within_a_step_says_so_and_changes_nothing(
    db: Connection, database: Database
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
from taiwa.postgres import Connection, Server
from tests.postgres.test_connection import BOX, put, words
db = Connection(Server.read(sys.argv[1]), BOX)
put(db, "before")
child = os.fork()
if child == 0:
    put(db, "child")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
put(db, "parent")
assert words(db) == ["before", "child", "parent"]
"""


def test_a_forked_child_opens_its_own(server: Server) -> None:
    environment = os.environ | {"PYTHONPATH": "."}
    subprocess.run([sys.executable, "-c", FORKS, server.url], check=True, env=environment)


def test_a_closed_one_says_that_it_is_closed(db: Connection) -> None:
    db.close()

    with pytest.raises(StoreError, match="closed: open it again"):
        words(db)


@pytest.mark.parametrize(
    ("word", "complaint"), [("half \ud800", "half a character"), ("a\0b", "NUL character"), (2**63, "64 bits")]
)
def test_what_the_server_cannot_hold_is_said_without_being_repeated(
    db: Connection, word: object, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        db.run("INSERT INTO thing(word) VALUES(?)", word)

    assert "half \ud800" not in caught.value.message


def test_many_rows_are_put_at_once(db: Connection) -> None:
    with db.transaction():
        db.copy("thing(word)", ["text"], ((str(number),) for number in range(1000)))

    assert db.one("SELECT count(*) FROM thing") == 1000
    with pytest.raises(InputError, match="half a character"):
        db.copy("thing(word)", ["text"], [("\ud800",)])
    assert db.one("SELECT count(*) FROM thing") == 1000


def test_a_schema_of_a_newer_version_is_refused(db: Connection, server: Server) -> None:
    db.run("UPDATE taiwa_box.taiwa_version SET number = 9")

    for readonly in (False, True):
        with pytest.raises(
            StoreError, match=r"the box on this server is of version 9 and this program knows 1: update"
        ):
            Connection(server, BOX, readonly=readonly)


def test_an_older_schema_is_brought_forward_once_and_not_read_half(db: Connection, server: Server) -> None:
    put(db, "a")
    newer = replace(BOX, migrations=(*BOX.migrations, ("ALTER TABLE thing ADD COLUMN more bigint DEFAULT 7",)))

    with pytest.raises(StoreError, match="older version: open it once for writing"):
        Connection(server, newer, readonly=True)
    for _ in range(2):
        opened = Connection(server, newer)
        assert opened.rows("SELECT word, more FROM thing") == [("a", 7)]
        opened.close()


def test_a_migration_that_fails_leaves_nothing(server: Server) -> None:
    broken = replace(BOX, migrations=(("CREATE TABLE half(x int)", "CREATE TABLE half(x int)"),))

    with pytest.raises(StoreError, match="refused a step"):
        Connection(server, broken)
    with pytest.raises(StoreError, match=r"there is no box on postgresql://.*: `open box` makes one"):
        Connection(server, BOX, readonly=True)


def test_the_schema_of_another_program_is_left_alone(server: Server, database: Database) -> None:
    database.run("CREATE SCHEMA taiwa_box; CREATE TABLE taiwa_box.theirs(x int)")

    with pytest.raises(StoreError, match="is another program's: name another database"):
        Connection(server, BOX)


def test_one_that_is_only_read_is_not_written(db: Connection, server: Server) -> None:
    put(db, "a")
    reader = Connection(server, BOX, readonly=True)

    assert words(reader) == ["a"]
    with pytest.raises(StoreError, match="open for reading only"):
        put(reader, "b")
    reader.close()


def test_why_a_server_cannot_be_opened_is_said_in_one_line_without_the_password(
    database: Database, server: Server
) -> None:
    database.run("DROP ROLE IF EXISTS keyed; CREATE ROLE keyed LOGIN PASSWORD 'right'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
    cases = {
        f"postgresql://keyed:{SECRET}@127.0.0.1:{closed}/x": "cannot be reached: see whether it runs",
        over_network(database, f"keyed:{SECRET}").url: "does not take this password",
        over_network(database, "keyed").url: "does not take this password",
        server.url.replace("@/", "@/no_").replace("taiwa@", f"taiwa:{SECRET}@"): "has no such database: make it",
        server.url.replace("taiwa@", f"stranger:{SECRET}@"): "knows no such user",
        f"postgresql://a:{SECRET}@127.0.0.1/x?zeta={SECRET}": "has a parameter that PostgreSQL does not know",
    }

    for url, complaint in cases.items():
        with pytest.raises((StoreError, InputError)) as caught:
            Connection(Server.read(url), BOX)
        assert complaint in caught.value.message
        assert SECRET not in caught.value.message
        assert "\n" not in caught.value.message


def test_a_user_who_may_not_write_is_told_so(database: Database) -> None:
    database.run("DROP ROLE IF EXISTS keyed; CREATE ROLE keyed LOGIN PASSWORD 'right'")

    with pytest.raises(StoreError, match="may not be written by this user: let the owner of the database grant it"):
        Connection(over_network(database, "keyed:right"), BOX)


def test_without_the_extra_its_name_is_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match=r"needs the extra postgres: pip install 'taiwa\[postgres\]'"):
        Connection(server, BOX)
