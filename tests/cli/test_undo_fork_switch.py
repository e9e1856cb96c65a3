"""Going back and forth: undo, redo, fork, switch, and how a place is named."""

import pytest

from tests.cli.conftest import ModelServer, Taiwa, delta


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1` with three turns, each of which adds a topic."""
    model_server(*[delta(word.upper(), topics=[word]) for word in ("one", "two", "three", "four")])
    for number, word in enumerate(("one", "two", "three")):
        taiwa.ok("say", "chat", *(("-c",) if number else ()), word)
    return taiwa


def topics(taiwa: Taiwa, revision: str = "") -> list[str]:
    found: list[str] = taiwa.ok("state", "get", "topics", revision, "--json").json
    return found


def test_undo_moves_message_state_and_window_together(talked: Taiwa, model_server: ModelServer) -> None:
    assert talked.ok("undo", "2").out == "back to turn 1\n"

    assert topics(talked) == ["one"]
    talked.ok("say", "-c", "four")
    contents = [message["content"] for message in model_server.requests[-1]["messages"]]
    assert "one" in contents
    assert "two" not in contents


def test_redo_brings_back_what_undo_took(talked: Taiwa) -> None:
    talked.ok("undo", "2")

    assert talked.ok("redo").out == "forward to turn 2\n"
    assert talked.ok("redo").out == "forward to turn 3\n"
    assert topics(talked) == ["one", "two", "three"]


def test_json_has_the_new_position(talked: Taiwa) -> None:
    data = talked.ok("undo", "--json").json

    assert (data["session"], data["turn"]) == ("chat-1", 2)
    assert data["state"]["topics"] == ["one", "two"]
    assert talked.ok("show", data["node"], "--json").json["user"] == "two"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("undo", "4"), "cannot go back 4 steps; the beginning is 3 back"),
        (("redo",), "nothing to redo in session 'chat-1': nothing was undone"),
        (("undo", "0"), "give a number of turns, at least 1, not '0'"),
        (("undo", "x"), "session 'x' not found; sessions: chat-1"),
        (("undo", "-s", "chat-2"), "session 'chat-2' not found; did you mean chat-1?"),
        (("switch", "chat-9"), "session 'chat-9' not found"),
        (("fork",), "give the branch a name: taiwa fork plan-b"),
        (("fork", "chat-1"), "session 'chat-1' already exists"),
        (("fork", "chat-1~9", "b"), "cannot go back 9 steps"),
        (("fork", "chat-1", "a b"), "a session name must not contain spaces"),
    ],
)
def test_an_impossible_move_is_an_error_of_one_line(talked: Taiwa, command: tuple[str, ...], line: str) -> None:
    moved = talked(*command)

    assert moved.code == 2
    assert line in moved.err
    assert moved.err.count("\n") == 1
    assert topics(talked) == ["one", "two", "three"]


def test_before_the_first_conversation_there_is_nothing_to_undo(taiwa: Taiwa) -> None:
    moved = taiwa("undo")

    assert moved.code == 2
    assert moved.err == "taiwa: there are no conversations yet; begin one with `taiwa chat` or `taiwa say`\n"


def test_a_fork_is_the_current_conversation_and_changes_nothing_of_the_other(talked: Taiwa) -> None:
    assert talked.ok("fork", "chat-1~2", "plan-b").out == "now on plan-b, turn 1\n"

    talked.ok("say", "-c", "four")

    assert topics(talked, "plan-b") == ["one", "four"]
    assert topics(talked, "chat-1") == ["one", "two", "three"]


def test_switch_decides_what_the_other_commands_take(talked: Taiwa) -> None:
    talked.ok("fork", "chat-1~1", "plan-b")

    assert talked.ok("switch", "chat-1").out == "now on chat-1, turn 3\n"
    assert topics(talked) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        ("chat-1", "three"),
        ("", "three"),
        ("chat-1~", "two"),
        ("chat-1~2", "one"),
        ("~1", "two"),
        ("chat-1@{1}", "two"),
        ("chat-1@{0}~1", "two"),
    ],
)
def test_a_place_can_be_named_in_many_ways(talked: Taiwa, revision: str, expected: str) -> None:
    assert talked.ok("show", revision, "--json").json["user"] == expected


def test_a_place_can_be_named_by_the_beginning_of_its_hash(talked: Taiwa) -> None:
    node = talked.ok("show", "chat-1~1", "--json").json["node"]

    assert talked.ok("show", node[:10], "--json").json["user"] == "two"


@pytest.mark.parametrize(
    ("revision", "line"),
    [
        ("chat-7", "session 'chat-7' not found; did you mean chat-1?"),
        ("abcdef123456", "no session and no node"),
        (
            "chat-1~1@{2}",
            "invalid revision 'chat-1~1@{2}'; write name, name:2, name~2, name@{3} or the beginning of a hash",
        ),
        ("chat-1@{99}", "'chat-1' has moved only 2 times, not 99"),
    ],
)
def test_a_revision_that_names_nothing_says_how_to_write_one(talked: Taiwa, revision: str, line: str) -> None:
    shown = talked("show", revision)

    assert shown.code == 2
    assert line in shown.err


def test_what_was_undone_is_still_in_the_log_of_the_name(talked: Taiwa) -> None:
    talked.ok("undo")
    talked.ok("say", "-c", "four")

    assert talked.ok("show", "chat-1@{2}", "--json").json["user"] == "three"


def test_a_turn_is_named_by_its_number(talked: Taiwa) -> None:
    answers = [talked.ok("show", str(number), "--json").json["answer"] for number in (1, 2, 3)]

    assert answers == ["ONE", "TWO", "THREE"]
    assert talked("show", "4").err == "taiwa: turn 4 not found; session 'chat-1' has 3 turns\n"
    talked.ok("edit", "2", "other")
    assert [row["user"] for row in talked.ok("log", "chat-1", "--json").json[1:]] == ["one", "other"]


def test_a_session_that_is_named_by_a_number_goes_before_a_turn(talked: Taiwa) -> None:
    talked.ok("fork", "chat-1~2", "3")

    assert talked.ok("show", "3", "--json").json["answer"] == "ONE"


def test_redo_says_when_everything_is_restored(talked: Taiwa) -> None:
    talked.ok("undo")
    talked.ok("redo")

    assert talked("redo").err == (
        "taiwa: nothing to redo in session 'chat-1': everything that was undone is restored\n"
    )


def test_undo_redo_and_retry_take_the_name_of_a_conversation(talked: Taiwa) -> None:
    talked.ok("fork", "other")

    assert talked.ok("undo", "chat-1", "2").out == "back to turn 1\n"
    assert talked.ok("redo", "chat-1").out == "forward to turn 2\n"
    assert talked.ok("undo", "other").out == "back to turn 2\n"
    assert talked.ok("retry", "chat-1").out == "FOUR\n"
    assert topics(talked, "chat-1") == ["one", "four"]
    assert topics(talked, "other") == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("chat-1", "x"), "give a number of turns, at least 1, not 'x'"),
        (("chat-1", "-s", "other"), "two conversations are given: 'other' and 'chat-1'"),
        (("nowhere",), "session 'nowhere' not found; sessions: chat-1"),
    ],
)
def test_what_is_neither_a_conversation_nor_a_number_is_refused(
    talked: Taiwa, words: tuple[str, ...], problem: str
) -> None:
    refused = talked("undo", *words)

    assert refused.code == 2
    assert problem in refused.err


def test_a_conversation_that_does_not_exist_cannot_be_resumed(talked: Taiwa) -> None:
    assert "session 'nowhere' not found; sessions: chat-1" in talked("resume", "nowhere").err
    assert "nothing to resume: no turn was cut off" in talked("resume", "chat-1").err
