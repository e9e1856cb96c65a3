"""Places in conversations: the same words on all commands."""

import pytest

from tests.cli.conftest import ModelServer, Taiwa


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """Two conversations: `old` with three turns, and `new` with one, which is the latest."""
    model_server("A.", "B.", "C.", "D.", "E.")
    for text in ("one", "two", "three"):
        taiwa.ok("say", "-s", "old", text)
    taiwa.ok("say", "-s", "new", "else")
    return taiwa


@pytest.mark.parametrize(
    "where", [("old:2",), ("-s", "old", "2"), ("-s", "old", ":2"), ("-s", "old", "~1"), ("old~1",)]
)
def test_a_turn_is_named_by_its_number(where: tuple[str, ...], talked: Taiwa) -> None:
    assert talked.ok("show", *where, "--json").json["user"] == "two"
    assert [row["user"] for row in talked.ok("log", *where, "--json").json] == [None, "one", "two"]
    assert talked.ok("export", *where, "--format", "md").out.count("## ") == 2
    assert talked.ok("replay", *where).code == 0


def test_a_number_alone_is_a_turn_of_the_latest_conversation(talked: Taiwa) -> None:
    assert talked.ok("show", "1", "--json").json["user"] == "else"
    assert talked("show", "2").err == "taiwa: turn 2 not found; session 'new' has 1 turn\n"


def test_edit_and_fork_take_turns(talked: Taiwa) -> None:
    talked.ok("fork", "old:2", "branch")
    talked.ok("edit", "old:1", "instead")

    assert [row["user"] for row in talked.ok("log", "branch", "--json").json] == [None, "one", "two"]
    assert [row["user"] for row in talked.ok("log", "old", "--json").json] == [None, "instead"]


def test_a_conversation_is_named_once(talked: Taiwa) -> None:
    refused = talked("show", "-s", "old", "new")

    assert (refused.code, refused.err) == (2, "taiwa: name the conversation once: -s old, or in 'new'\n")


def test_a_name_that_reads_as_a_turn_is_refused(talked: Taiwa) -> None:
    refused = talked("fork", "old:2")

    assert refused.code == 2
    assert "reads as a turn" in refused.err


def test_rename_keeps_turns_and_costs(talked: Taiwa) -> None:
    talked.ok("rename", "old", "monads")

    rows = {row["session"]: row for row in talked.ok("log", "--json").json}
    assert rows.keys() == {"monads", "new"}
    assert (rows["monads"]["turns"], rows["monads"]["text"]) == (3, "one")
    assert talked("rename", "new", "monads").code == 2
    assert talked("rename", "old", "x").code == 2


def test_conversations_are_tagged_and_listed_by_a_tag(talked: Taiwa) -> None:
    assert talked.ok("tag", "old", "work", "tea trade").out == "work, tea trade\n"
    assert talked.ok("tag", "new", "Work").out == "Work\n"

    assert [row["session"] for row in talked.ok("log", "--tag", "tea trade", "--json").json] == ["old"]
    assert "#work #tea trade one" in talked.ok("log").out
    assert talked.ok("tag", "old", "--remove", "WORK", "--json").json == {"session": "old", "tags": ["tea trade"]}
    assert [row["session"] for row in talked.ok("log", "--tag", "work", "--json").json] == ["new"]
    assert talked.ok("log", "--tag", "play").err == "no conversation has the tag play\n"
    for wrong in (
        ("tag", "old", "--remove", "work"),
        ("tag", "none", "x"),
        ("tag", "old", "a,b"),
        ("log", "old", "--tag", "x"),
    ):
        refused = talked(*wrong)
        assert (refused.code, len(refused.err.splitlines())) == (2, 1)


def test_the_log_shows_first_words_model_and_cost(talked: Taiwa) -> None:
    heads, latest, _ = talked.ok("log").lines

    assert heads.split() == ["session", "app", "turns", "model", "cost", "last", "first", "words"]
    assert latest.startswith("new")
    assert latest.endswith("else")
    assert "test-model" in latest
