"""What a person reads of branches: the tree, the difference of two places, and who was asked for a value."""

import re

import pytest

from tests.cli.conftest import ModelServer, Taiwa, delta


@pytest.fixture
def branches(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1` and `tea` share one turn and part at the second; `tea` went on for a third."""
    model_server(
        delta("Yes.", topics=["drinks"]),
        delta("Coffee.", topics=["coffee"]),
        delta("Tea.", topics=["tea"]),
        delta("Green tea.", topics=["green tea"]),
    )
    taiwa.ok("say", "chat", "Shall we drink?")
    taiwa.ok("say", "-c", "What?")
    taiwa.ok("fork", "chat-1~1", "tea")
    taiwa.ok("say", "-c", "What instead of coffee?")
    taiwa.ok("say", "-c", "Which?")
    return taiwa


def test_a_tree_shows_what_follows_what(branches: Taiwa) -> None:
    lines = [re.sub(r"[0-9a-f]{12} ", "", line) for line in branches.ok("log", "--tree").lines]

    assert lines == [
        "root chat",
        "turn Shall we drink?",
        "├─ turn What?  ← chat-1",
        "└─ turn What instead of coffee?",
        "   turn Which?  ← tea",
    ]


def test_a_tree_shows_what_an_edit_left_and_undo_leads_back_there(branches: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Cocoa."))
    branches.ok("edit", "tea:2", "What instead of both?")

    lines = [re.sub(r"[0-9a-f]{12} ", "", line) for line in branches.ok("log", "--tree", "tea").lines]
    branches.ok("undo", "tea")

    assert lines == [
        "root chat",
        "turn Shall we drink?",
        "├─ turn What instead of both?  ← tea",
        "└─ turn What instead of coffee?",
        "   turn Which?  ← tea@{1}",
    ]
    assert branches.ok("log", "tea").lines[-2:] == ["you: Which?", "chat: Green tea."]


def test_two_names_of_one_place_are_both_shown(branches: Taiwa) -> None:
    branches.ok("fork", "chat-1", "again")

    assert "What?  ← again, chat-1" in branches.ok("log", "--tree").out


def test_a_diff_prints_the_state_first_and_then_the_texts(branches: Taiwa) -> None:
    lines = branches.ok("diff", "chat-1", "tea~1").lines

    assert lines[0] == '~ topics[1]: "coffee" → "tea"'
    assert lines[-4:] == ["- > What?", "-   Coffee.", "+ > What instead of coffee?", "+   Tea."]


@pytest.mark.parametrize("command", [["show"], ["why", "topics"]])
def test_only_model_calls_count_as_calls(branches: Taiwa, command: list[str]) -> None:
    calls = [line for line in branches.ok(*command).lines if "call:" in line]

    assert len(calls) == 1
    assert "7 in + 3 out tokens" in calls[0]


def test_a_value_is_given_to_programs_as_it_is(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Yes.", topics=["a\x85b\u202e"]))
    taiwa.ok("say", "chat", "hello")

    assert taiwa.ok("state", "get", "topics", "--json").json == ["a\x85b\u202e"]
    assert taiwa.ok("state", "get", "topics").out == '["a\ufffdb\ufffd"]\n'
