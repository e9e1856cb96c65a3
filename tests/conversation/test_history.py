"""Nodes, and the conversation after them, live and reloaded."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import (
    Conversation,
    Node,
    TurnParts,
    add_turn,
    add_turns,
    advance,
    apply_nodes,
    begin,
    change_app,
    edit_state,
    summarize_window,
)
from taiwa.conversation.state import StateField
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Message, ToolResult, assistant, user
from taiwa.kernel.serialization import record, restore
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, app, asked, named, reloaded, talked
from tests.strategies import texts

FRIEND = app(TOPICS, DICTIONARY, MOOD, TURNS)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "topics": st.lists(texts, max_size=3),
        "dictionary": st.dictionaries(texts, st.none() | texts, max_size=3),
        "mood": texts,
    },
)
turns = st.lists(st.tuples(texts, texts, deltas), max_size=4)


def no_app(name: str) -> None:
    raise AssertionError(f"no other app was to be opened: {name}")


def test_a_turn_moves_state_window_and_tip_together() -> None:
    before = begin(FRIEND)

    after = add_turn(before, "tea?", "Yes!", {"topics": ["tea"]})

    assert after.state == {"topics": ["tea"], "dictionary": {}, "mood": None, "turns": 1}
    assert [past.user for past in after.turns] == ["tea?"]
    assert after.new_nodes[-1].parent == before.tip
    assert after.tip == after.new_nodes[-1].hash == after.turns[-1].hash
    assert after.new_nodes[-1].state_hash == after.state_hash
    assert after.count == 1


@given(st.lists(st.tuples(texts, texts), max_size=4), st.booleans(), st.booleans())
def test_turns_that_are_added_together_are_those_that_are_added_one_by_one(
    said: list[tuple[str, str]], has_fields: bool, calls_tools: bool
) -> None:
    before = begin(FRIEND if has_fields else app())
    more = (assistant("a"), Message("tool", (ToolResult("b"),))) if calls_tools else ()
    received = [
        (question, answer, TurnParts(messages=(user(question), *more, assistant(answer)))) for question, answer in said
    ]
    one_by_one = before
    for question, answer, parts in received:
        one_by_one = add_turn(one_by_one, question, answer, None, parts)

    assert add_turns(before, received) == one_by_one


def test_what_came_before_a_turn_is_unchanged_by_it() -> None:
    before = talked(FRIEND, ("a", "b", {"topics": ["tea"]}))
    kept = repr(before)

    add_turn(before, "c", "d", {"topics": ["go"], "dictionary": {"x": "y"}})

    assert repr(before) == kept


def test_a_conversation_has_the_same_hashes_wherever_it_is_held() -> None:
    tip = talked(FRIEND, ("tea?", "Yes!", {"topics": ["tea"], "mood": "fine"})).tip

    assert tip == talked(FRIEND, ("tea?", "Yes!", {"mood": "fine", "topics": ["tea"]})).tip
    assert tip != talked(FRIEND, ("tea?", "Yes!", {"topics": ["tea"]})).tip
    assert Node(None, "root", "0" * 32, state_hash="1" * 32).hash == "f3a6bdc786da94b374d30f83cdbb801e"


@given(turns)
def test_what_comes_back_from_a_store_is_the_same_conversation(said: list[tuple[str, str, dict[str, object]]]) -> None:
    live = talked(FRIEND, *said)  # type: ignore[arg-type]

    again = reloaded(live)

    assert (again.tip, again.state, again.turns, again.count) == (live.tip, live.state, live.turns, live.count)
    assert asked(again) == asked(live)


def test_an_edit_is_a_node_of_its_own() -> None:
    before = talked(FRIEND, ("a", "b", {"topics": ["tea"]}))

    after = edit_state(before, {"topics": ["go"], "mood": "fine"})

    assert (after.state["topics"], after.state["mood"]) == (["go"], "fine")
    assert after.new_nodes[-1].kind == "edit"
    assert (after.turns, after.count) == (before.turns, before.count)
    with pytest.raises(InputError, match="no field"):
        edit_state(before, {"nothing": 1})


def test_a_summary_keeps_the_state_and_the_turns_it_names() -> None:
    before = talked(FRIEND, ("a", "1", {"mood": "fine"}), ("b", "2", {}), ("c", "3", {}))
    first, _, last = before.turns

    after = summarize_window(before, [last.hash, first.hash, "unknown"], "they said b")

    assert after.turns == (first, last)
    assert (after.summary, after.state, after.count) == ("they said b", before.state, 3)
    assert reloaded(after).turns == after.turns


def test_a_change_of_app_is_a_node_and_keeps_what_fits() -> None:
    before = talked(FRIEND, ("a", "1", {"mood": "fine", "topics": ["tea"]}))
    other = app(MOOD, StateField("topics", "int"), body="Be short.")

    after = change_app(before, other)

    assert after.state == {"mood": "fine", "topics": None}
    assert after.app is other
    assert after.turns == before.turns
    apps = {FRIEND.hash: FRIEND, other.hash: other}
    root, *rest = after.new_nodes
    assert apply_nodes(begin(FRIEND), named(rest), apps.__getitem__).state == after.state
    assert root.app == FRIEND.hash


def test_following_nodes_leaves_no_new_nodes() -> None:
    live = talked(FRIEND, ("a", "b", {}))

    assert apply_nodes(replace(begin(FRIEND), new_nodes=()), named(live.new_nodes[1:]), no_app).new_nodes == ()


def grown() -> tuple[Conversation, Node]:
    before = begin(FRIEND)
    return before, add_turn(before, "a", "b", {"topics": ["tea"]}).new_nodes[-1]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"parent": "0" * 32}, "does not follow"),
        ({"state_hash": "0" * 32}, "leads to another state than it recorded"),
        ({"delta": {"topics": ["coffee"]}}, "leads to another state than it recorded"),
        ({"delta": {"topics": 5}}, "cannot be followed: expected a list, got int"),
        ({"delta": ["topics"]}, "cannot be followed: its delta must be an object, got list"),
        ({"delta": "topics"}, "its delta must be an object, got str"),
        ({"kind": "edit", "delta": [1]}, "its delta must be an object, got list"),
        ({"kind": "edit", "delta": {"nothing": 1}}, "cannot be followed: the state has no field"),
    ],
)
def test_a_node_that_was_tampered_with_is_not_followed(damage: dict[str, object], complaint: str) -> None:
    before, node = grown()

    assert advance(before, node, no_app).tip == node.hash  # type: ignore[arg-type]
    with pytest.raises(CorruptError, match=complaint):
        advance(before, replace(node, **damage), no_app)  # type: ignore[arg-type]


def test_an_app_is_known_by_its_text_and_its_parameters() -> None:
    source = AppSource("a", "text")

    assert source.hash == restore(record(source)).hash
    assert len({source.hash, AppSource("b", "text").hash, AppSource("a", "text", {"x": 1}).hash}) == 3
