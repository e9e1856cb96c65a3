"""A turn is one transaction: all of it, or nothing and a clear word."""

import pytest

from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.store import Store
from tests.store.turns import APP, answered, begin, root, turn


def test_a_commit_returns_the_tip_and_the_nodes_can_be_read_back(store: Store) -> None:
    first = root()
    second = turn(first.hash, "今日は", "良い天気です。")
    fold = Node(
        second.hash, "summary", APP.hash, answer="summary", delta={"keep": [1, {"a": None}]}, state_hash="2" * 32
    )

    tip = store.commit("main", [first, second, fold], expected=None, apps=[APP])

    assert tip == fold.hash
    assert [node for _, node in store.nodes.path(tip)] == [fold, second, first]
    assert store.nodes.get(second.hash) == second
    assert store.nodes.app(APP.hash) == APP
    assert store.nodes.count() == 3


def test_a_commit_on_a_tip_that_has_moved_is_a_conflict_and_changes_nothing(store: Store) -> None:
    tip = begin(store, "main", "a")
    store.commit("main", [turn(tip, "theirs")], expected=tip)
    before = (store.nodes.count(), store.refs.reflog("main"))

    with pytest.raises(ConflictError, match="another program changed it first"):
        store.commit("main", [turn(tip, "ours")], expected=tip)

    assert (store.nodes.count(), store.refs.reflog("main")) == before


@pytest.mark.parametrize("expected", [None, "f" * 32])
def test_a_commit_must_say_whether_its_session_exists(store: Store, expected: str | None) -> None:
    begin(store, "main", "a")
    nodes = [root()] if expected is None else [turn(expected, "b")]

    with pytest.raises(ConflictError):
        store.commit("main", nodes, expected=expected)


def test_the_run_of_a_conflicting_commit_stays_on_the_bill(store: Store) -> None:
    tip = begin(store, "main", "a")
    run = store.runs.begin("main", tip, APP.hash, "ours")
    store.runs.sink(run)(answered("ours", "paid"))
    store.commit("main", [turn(tip, "theirs")], expected=tip)

    with pytest.raises(ConflictError):
        store.commit("main", [turn(tip, "ours")], expected=tip, run=run)

    assert store.runs.run(run).status == "conflict"
    assert store.runs.run(run).text == "ours"
    assert len(store.runs.journal(run)) == 1


def test_the_run_of_a_commit_is_done_and_its_calls_belong_to_every_node_of_it(store: Store) -> None:
    tip = begin(store, "main", "a")
    run = store.runs.begin("main", tip, APP.hash, "b")
    store.runs.sink(run)(answered("b", "paid"))
    first = turn(tip, "b")
    fold = Node(first.hash, "summary", APP.hash)

    store.commit("main", [first, fold], expected=tip, run=run)

    assert store.runs.run(run).status == "done"
    assert len(store.runs.calls(first.hash)) == len(store.runs.calls(fold.hash)) == 1
    assert store.runs.calls(tip) == ()


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([], "at least one node"),
        ([turn("f" * 32, "x")], "parent ffffffff of the node not found"),
        ([Node(None, "turn", APP.hash)], "every other node must have one"),
        ([root(), root()], "does not follow"),
        ([Node(None, "root", "e" * 32)], "not found in the store"),
        ([Node(None, "root", APP.hash, state_hash="short")], "32 hex"),
        ([Node(None, "root", APP.hash, answer="\ud800")], "half a character"),
    ],
)
def test_nodes_that_do_not_follow_each_other_are_refused_together(
    store: Store, nodes: list[Node], complaint: str
) -> None:
    with pytest.raises((InputError, StoreError), match=complaint):
        store.commit("main", nodes, expected=None, apps=[APP])

    assert store.refs.list() == ()
    assert store.nodes.count() == 0


def test_equal_turns_of_two_sessions_are_one_node(store: Store) -> None:
    begin(store, "one", "a", "b")
    begin(store, "two", "a", "b")

    assert store.refs.tip("one") == store.refs.tip("two")
    assert store.nodes.count() == 3


def test_a_turn_of_ten_megabytes_is_stored(store: Store) -> None:
    tip = begin(store, "main")
    text = ("and words, " * 40 + "長い文章 ") * 23_000

    tip = store.commit("main", [turn(tip, text)], expected=tip)

    assert store.nodes.get(tip).user == text
    assert store.search("文章 words")[0].hash == tip
