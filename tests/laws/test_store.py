"""The laws of conversations on a real store: what comes back is what was live, however it comes back."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.apps.catalog import load_source
from taiwa.conversation.app import App, AppSource
from taiwa.conversation.history import Conversation, add_turn, begin, edit_state, summarize_window
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.serialization import Json
from taiwa.sessions import repository as repositories
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from tests.strategies import texts

FILE = """---
taiwa: 1
name: laws
state:
  topics: { type: "list[str]", reduce: union }
  dictionary: { type: "dict[str, str | null]", reduce: table, max_shown: 2 }
  mood: { type: str }
  turns: { computed: turn_count }
reply: REPLY
---
Talk.
"""
keys = st.sampled_from("zyxabc")
deltas = st.fixed_dictionaries(
    {"dictionary": st.dictionaries(keys, st.none() | texts, max_size=2)},
    optional={"topics": st.lists(keys, max_size=3), "mood": texts},
)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), texts, deltas),
        st.tuples(st.just("edit"), texts, deltas),
        st.tuples(st.just("fold"), texts, deltas),
    ),
    min_size=1,
    max_size=6,
)


def app(reply: str = "text+delta") -> App:
    return load_source(AppSource("laws", FILE.replace("REPLY", reply)))


def moved(before: Conversation, kind: str, text: str, delta: dict[str, Json]) -> Conversation:
    if kind == "edit":
        return edit_state(before, delta)
    if kind == "fold":
        return summarize_window(before, [past.hash for past in before.turns[1:]], text)
    if before.app.reply == "environment":
        delta = {"topics": [], "dictionary": {}, "mood": "x"} | delta
    return add_turn(before, text, f"about {text}", delta)


def same(left: Conversation, right: Conversation) -> bool:
    """All that a later turn may depend on, the order of keys included."""
    return (
        (left.tip, left.state_hash, left.turns, left.summary, left.count)
        == (right.tip, right.state_hash, right.turns, right.summary, right.count)
        and repr(turn_request(left, "next")) == repr(turn_request(right, "next"))
    )  # fmt: skip


@pytest.mark.parametrize("reply", ["text+delta", "json", "environment"])
@settings(max_examples=25)
@given(said=moves)
def test_undo_after_a_commit_is_where_one_was_and_redo_where_one_came_from(
    reply: str, said: list[tuple[str, str, dict[str, Json]]]
) -> None:
    with Store.open(":memory:") as store:
        desk, of = Repository(store), app(reply)
        conversation = desk.commit("main", begin(of), expected=None)
        places = [conversation]
        for kind, text, delta in said:
            conversation = desk.commit("main", moved(conversation, kind, text, delta), expected=conversation.tip)
            places.append(conversation)

        for place in places:
            assert same(Repository(store).checkout(place.tip), place)
        for steps in range(1, len(places)):
            tip = store.refs.tip("main")
            assert tip == places[-1].tip
            assert store.undo("main", steps) == places[-1 - steps].tip
            assert store.redo("main", steps) == tip


@pytest.mark.parametrize("reply", ["text+delta", "environment"])
@settings(max_examples=25)
@given(said=moves, more=moves)
def test_a_snapshot_changes_nothing_but_the_time_it_takes(
    reply: str, said: list[tuple[str, str, dict[str, Json]]], more: list[tuple[str, str, dict[str, Json]]]
) -> None:
    with Store.open(":memory:") as store:
        desk = Repository(store)
        live = desk.commit("main", begin(app(reply)), expected=None)
        for kind, text, delta in said:
            live = desk.commit("main", moved(live, kind, text, delta), expected=live.tip)
        assert same(Repository(store).checkout(live.tip), live)
        store.snapshots.put(live.tip, repositories._snapshot(live))
        for kind, text, delta in more:
            live = desk.commit("main", moved(live, kind, text, delta), expected=live.tip)

        assert same(Repository(store).checkout(live.tip), live)


def test_a_table_comes_back_from_a_snapshot_with_its_newest_entries_last() -> None:
    with Store.open(":memory:") as store:
        desk = Repository(store)
        live = desk.commit("main", begin(app()), expected=None)
        for key in "zab":
            live = desk.commit("main", add_turn(live, "x", "y", {"dictionary": {key: "entry"}}), expected=live.tip)
        store.snapshots.put(live.tip, repositories._snapshot(live))

        assert same(Repository(store).checkout(live.tip), live)


@settings(max_examples=25)
@given(said=moves, left=moves, right=moves)
def test_work_on_a_fork_changes_nothing_that_the_other_branch_can_reach(
    said: list[tuple[str, str, dict[str, Json]]],
    left: list[tuple[str, str, dict[str, Json]]],
    right: list[tuple[str, str, dict[str, Json]]],
) -> None:
    with Store.open(":memory:") as store:
        desk = Repository(store)
        here = desk.commit("main", begin(app()), expected=None)
        for kind, text, delta in said:
            here = desk.commit("main", moved(here, kind, text, delta), expected=here.tip)
        desk.fork(here.tip, "other")
        ours = theirs = here
        for kind, text, delta in left:
            ours = desk.commit("main", moved(ours, kind, text, delta), expected=ours.tip)
        before = [(name, node) for name, node in store.nodes.path(ours.tip)]
        for kind, text, delta in right:
            theirs = desk.commit("other", moved(theirs, kind, text, delta), expected=theirs.tip)

        assert [(name, node) for name, node in store.nodes.path(ours.tip)] == before
        assert store.refs.tip("main") == ours.tip
        assert same(desk.checkout(ours.tip), replace(ours, new_nodes=()))
        assert same(desk.checkout(theirs.tip), theirs)
