"""Names move, and their log says how: undo, redo, and everything that was ever a tip."""

import pytest

from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, CorruptError, InputError
from taiwa.store import Store
from tests.store.turns import APP, begin, root, turn


def said(store: Store, name: str = "main") -> str | None:
    return store.nodes.get(store.refs.tip(name)).user


def test_undo_takes_back_what_a_commit_added(store: Store) -> None:
    before = begin(store, "main", "a")
    store.commit("main", [turn(before, "b")], expected=before)

    assert store.undo("main") == before
    assert store.refs.tip("main") == before


@pytest.mark.parametrize("fold_first", [True, False])
def test_a_summary_that_was_committed_with_a_turn_is_undone_with_it(store: Store, fold_first: bool) -> None:
    before = begin(store, "main", "a")
    if fold_first:
        fold = Node(before, "summary", APP.hash, answer="summary")
        nodes = [fold, turn(fold.hash, "b")]
    else:
        first = turn(before, "b")
        nodes = [first, Node(first.hash, "summary", APP.hash, answer="summary")]
    tip = store.commit("main", nodes, expected=before)
    store.commit("main", [turn(tip, "c")], expected=tip)

    assert store.undo("main") == tip
    assert store.undo("main") == before
    assert store.redo("main") == tip


def test_a_turn_that_began_a_session_is_undone_back_to_the_root(store: Store) -> None:
    first = root()
    store.commit("main", [first, turn(first.hash, "a")], expected=None, apps=[APP])

    assert store.undo("main") == first.hash
    with pytest.raises(InputError, match="cannot go back: this is the beginning"):
        store.undo("main")


def test_undone_steps_are_redone_one_by_one_or_together(store: Store) -> None:
    begin(store, "main", "a", "b", "c", "d")
    store.undo("main", 3)
    store.redo("main")
    assert said(store) == "b"

    store.redo("main", 2)

    assert said(store) == "d"
    with pytest.raises(InputError, match="nothing to redo in session 'main'"):
        store.redo("main")


def test_redo_goes_no_further_than_what_was_undone(store: Store) -> None:
    begin(store, "main", "a", "b", "c")
    store.undo("main", 2)

    with pytest.raises(InputError, match="cannot redo 3 steps; only 2 undone steps are left"):
        store.redo("main", 3)


def test_redo_after_a_new_turn_is_refused_and_says_where_the_undone_one_is(store: Store) -> None:
    begin(store, "main", "a", "b")
    tip = store.undo("main")
    store.commit("main", [turn(tip, "instead")], expected=tip)

    with pytest.raises(
        InputError, match="it has moved on since the undo; what was undone is at main@\\{2\\}"
    ) as caught:
        store.redo("main")

    assert store.nodes.get(store.resolve("main@{2}")).user == "b"
    assert "instead" not in caught.value.message


def test_redo_without_undo_has_nothing_to_do(store: Store) -> None:
    begin(store, "main", "a")

    with pytest.raises(InputError, match="nothing to redo in session 'main': nothing was undone"):
        store.redo("main")


@pytest.mark.parametrize("steps", [0, -1])
def test_undo_and_redo_take_at_least_one_step(store: Store, steps: int) -> None:
    begin(store, "main", "a")

    for move in (store.undo, store.redo):
        with pytest.raises(InputError, match="at least 1"):
            move("main", steps)


def test_a_retried_turn_follows_an_earlier_node_and_undo_goes_back_to_what_it_replaced(store: Store) -> None:
    begin(store, "main", "a")
    before = store.refs.tip("main")
    old = store.commit("main", [turn(before, "b", "old answer")], expected=before)

    new = store.commit("main", [turn(before, "b", "new answer")], expected=old, reason="retry")

    assert store.refs.tip("main") == new
    assert store.resolve("main@{1}") == old
    assert store.undo("main") == old
    assert store.redo("main") == new
    assert store.undo("main", 2) == before
    assert store.redo("main") == old
    assert store.redo("main") == new
    assert store.resolve("main~") == before


def test_a_fork_shares_its_history_and_moves_alone(store: Store) -> None:
    tip = begin(store, "main", "a", "b")
    store.refs.create("other", store.resolve("main~1"), reason="fork")

    forked = store.refs.tip("other")
    store.commit("other", [turn(forked, "c")], expected=forked)

    assert store.refs.tip("main") == tip
    assert store.nodes.get(tip).parent == store.nodes.get(store.refs.tip("other")).parent == forked


def test_sessions_are_listed_latest_moved_first(store: Store) -> None:
    begin(store, "b", "1", "2")
    begin(store, "a", "1")
    store.undo("b")

    assert [(ref.name, ref.app, ref.turns) for ref in store.refs.list()] == [("b", "chat", 1), ("a", "chat", 1)]
    assert store.refs.latest() == "b"


def test_an_empty_store_has_no_latest_session(store: Store) -> None:
    assert store.refs.latest() is None
    assert store.refs.list() == ()


def test_a_name_is_moved_only_from_where_it_is_expected(store: Store) -> None:
    tip = begin(store, "main", "a", "b")
    earlier = store.resolve("main~1")

    with pytest.raises(ConflictError, match=r"is at .*, expected"):
        store.refs.move("main", earlier, expected=earlier, reason="reset")
    store.refs.move("main", earlier, expected=tip, reason="reset")

    assert store.refs.tip("main") == earlier
    assert store.refs.reflog("main")[0].reason == "reset"


def test_undo_leads_to_the_beginning_whatever_was_replaced(store: Store) -> None:
    """A turn that replaces another by itself, or two that replace each other in turn, are no circle."""
    begin(store, "main", "a")
    before = store.refs.tip("main")
    one = store.commit("main", [turn(before, "b", "one")], expected=before)
    store.commit("main", [turn(before, "b", "one")], expected=one, reason="retry")
    two = store.commit("main", [turn(before, "b", "two")], expected=one, reason="retry")
    store.commit("main", [turn(before, "b", "one")], expected=two, reason="retry")

    assert store.undo("main") == before
    with pytest.raises(InputError, match="cannot go back 3 steps; the beginning is 1 back"):
        store.undo("main", 3)


def test_what_a_session_left_has_a_revision(store: Store) -> None:
    begin(store, "main", "a")
    before = store.refs.tip("main")
    old = store.commit("main", [turn(before, "b", "one")], expected=before)
    new = store.commit("main", [turn(before, "b", "two")], expected=old, reason="edit")

    left = store.refs.left()

    assert left[:2] == (("main@{0}", new), ("main@{1}", old))
    assert all(store.resolve(revision) == node for revision, node in left)


def test_a_renamed_session_keeps_its_log_its_runs_and_its_undone_turns(store: Store) -> None:
    begin(store, "old", "a", "b")
    run = store.runs.begin("old", store.refs.tip("old"), APP.hash, "c")
    store.undo("old")

    store.refs.rename("old", "neu")

    assert not store.refs.has("old")
    assert [store.refs.renamed(name) for name in ("old", "ol", "neu")] == ["neu", "", ""]
    assert store.runs.run(run).ref == "neu"
    assert [move.op for move in store.refs.reflog("neu")] == ["rename", "undo", "commit", "commit", "create"]
    store.redo("neu")
    assert said(store, "neu") == "b"


def test_a_session_has_tags_by_which_it_is_found_in_any_capitals(store: Store) -> None:
    begin(store, "one")
    begin(store, "two")

    given = store.refs.label("one", tags=["#Work", " tea   trade ", "work", "仕事"])
    store.refs.label("two", tags=["other"])

    assert given == ("Work", "tea trade", "仕事")
    assert store.refs.tags() == ("other", "tea trade", "Work", "仕事")
    assert [ref.name for ref in store.refs.list() if ref.has_tag("TEA TRADE")] == ["one"]
    assert store.refs.label("one", title="About tea") == given
    assert store.refs.label("one", tags=()) == ()
    assert store.refs.tags() == ("other",)


@pytest.mark.parametrize("tags", [["a,b"], ["、"], [""], ["#"], ["x" * 51], ["a\0b"], [str(n) for n in range(21)]])
def test_tags_that_cannot_be_written_in_a_line_are_refused(store: Store, tags: list[str]) -> None:
    begin(store)

    with pytest.raises(InputError, match="tag"):
        store.refs.label("main", tags=tags)

    assert store.refs.tags() == ()


def test_a_name_that_exists_is_refused(store: Store) -> None:
    tip = begin(store, "one", "a")
    begin(store, "two", "b")

    with pytest.raises(ConflictError, match="session 'two' already exists"):
        store.refs.create("two", tip)
    with pytest.raises(ConflictError, match="session 'two' already exists"):
        store.refs.rename("one", "two")


def test_a_deleted_session_can_be_made_again_from_its_log(store: Store) -> None:
    tip = begin(store, "main", "a", "b")

    assert store.refs.delete("main") == tip

    assert not store.refs.has("main")
    assert [move.new for move in store.refs.reflog("main", 2)] == [None, tip]
    assert store.resolve("main@{1}") == tip
    store.refs.create("main", tip)
    assert [move.op for move in store.refs.reflog("main")] == ["create"]


@pytest.mark.parametrize(
    "name", ["main", "日本語の会話", "été", "a.b/c-d_e", "x", "abc", "deadbeefs", "0" * 33, "2024-05-01"]
)
def test_a_name_may_be_in_any_language(store: Store, name: str) -> None:
    begin(store, name, "a")

    assert store.refs.list()[0].name == name


@pytest.mark.parametrize(
    "name", ["", "a b", "a\tb", "a\n", "a\0", "a~1", "@", "a@b", "a{", "}", "\u3000", "\u200b", "-x", "cafe", "0123", "DEAD", "x" * 101]
)  # fmt: skip
def test_names_that_read_as_a_revision_or_an_option_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        begin(store, name, "a")

    assert store.refs.list() == ()


def test_composed_and_decomposed_spellings_are_one_name(store: Store) -> None:
    tip = begin(store, "cafe\u0301s", "a")

    assert store.refs.list()[0].name == "cafés"
    assert store.refs.tip("cafés") == store.refs.tip("cafe\u0301s") == store.resolve("cafe\u0301s") == tip


def test_an_unknown_name_is_reported_with_similar_ones(store: Store) -> None:
    begin(store, "translate-1", "a")
    begin(store, "chat-1", "a")

    with pytest.raises(InputError, match="session 'translat1' not found; did you mean translate-1\\?"):
        store.refs.tip("translat1")
    with pytest.raises(InputError, match="session 'zz' not found; sessions: chat-1, translate-1"):
        store.undo("zz")


def test_a_hash_that_is_no_hash_is_a_damage() -> None:
    with Store.open(":memory:") as store:
        begin(store, "main", "a")
        tip = store.refs.tip("main")
        store._db.run("PRAGMA writable_schema = ON")
        store._db.run("UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE name = 'node'")
        store._db.run("PRAGMA writable_schema = RESET")
        store._db.run("UPDATE node SET hash = substr(hex(hash), 1, 16)")

        for read in (
            lambda: store.refs.tip("main"),
            lambda: store.resolve("main~1"),
            lambda: store.refs.reflog("main"),
        ):
            with pytest.raises(CorruptError, match="run `taiwa fsck`"):
                read()
        assert not store.nodes.has(tip)
