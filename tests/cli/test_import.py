"""Conversations that leave a store and come back."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\r\n"])
def test_what_was_exported_is_imported_whatever_its_texts_hold(
    taiwa: Taiwa, model_server: ModelServer, separator: str
) -> None:
    model_server(delta(f"one{separator}two", topics=[f"a{separator}b"]))
    taiwa.ok("say", "chat", f"said{separator}so")
    exported = taiwa.ok("export", "chat-1").out

    taiwa.ok("import", "-", "again", input=exported)

    assert taiwa.ok("export", "again").out == exported.replace('"name":"chat-1"', '"name":"again"', 1)


def test_an_import_that_fails_leaves_nothing_behind(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("one", topics=["a"]))
    taiwa.ok("say", "chat", "hello")
    exported = taiwa.ok("export", "chat-1").out

    result = taiwa("import", "-", "again", input=exported.replace("hello", "hullo"))

    assert result.code == 2
    assert "nothing was imported" in result.err
    assert "again" not in taiwa.ok("log").out


def test_a_database_is_refused_with_the_command_that_exports_it(taiwa: Taiwa, place: Place) -> None:
    database = place.folder / "logs.db"
    with closing(sqlite3.connect(database)) as log:
        log.execute("CREATE TABLE responses(prompt TEXT, response TEXT)")

    done = taiwa("import", str(database))

    why = "give what `taiwa export` writes of a store, or `llm logs -n 0 --json` of a log of llm"
    assert done.code == 2
    assert done.err == f"taiwa: {database} is an SQLite database; {why}\n"


def test_messages_of_another_program_become_a_conversation(taiwa: Taiwa, place: Place) -> None:
    (place.folder / "messages.json").write_text(
        json.dumps([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}])
    )

    imported = taiwa.ok("import", str(place.folder / "messages.json"), "talk")

    assert imported.out == "talk: 1 turn\n"
    assert taiwa.ok("log", "talk").lines[-2:] == ["you: one", "plain: two"]
    assert taiwa.ok("export", "talk", "--format", "sharegpt").json == {
        "conversations": [{"from": "human", "value": "one"}, {"from": "gpt", "value": "two"}]
    }
