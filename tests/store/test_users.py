"""Who asks: profiles, verdicts, and whose a conversation is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.store import Store
from tests.store.turns import begin


def test_a_person_is_kept_and_changed(store: Store) -> None:
    assert store.users.get("ann") is None
    store.users.put("ann", {"office": "Osaka"})
    store.users.put("ann", {"office": "京都"})

    assert store.users.get("ann") == {"office": "京都"}
    assert [kept.name for kept in store.users.list()] == ["ann"]


def test_verdicts_come_back_in_their_order_and_can_be_forgotten(store: Store) -> None:
    store.users.put("ann", {})
    assert store.users.add_feedback("ann", {"verdict": "good"}) == 1
    assert store.users.add_feedback("ann", {"verdict": "bad"}) == 2
    store.users.put("ann", {"office": "Osaka"})

    assert store.users.feedback("ann") == ({"verdict": "good"}, {"verdict": "bad"})
    assert store.users.list()[0].feedback == 2
    assert store.users.clear_feedback("ann") == 2
    assert store.users.feedback("ann") == ()
    assert store.users.get("ann") == {"office": "Osaka"}


def test_whose_a_conversation_is_follows_its_name_and_ends_with_it(store: Store) -> None:
    begin(store, "main", "a")
    begin(store, "other", "b")
    store.users.put("ann", {})
    store.users.put("bob", {})
    store.users.assign_session("main", "ann")
    store.users.assign_session("other", "ann")
    store.users.assign_session("other", "bob")

    assert store.users.sessions("ann") == ("main",)
    store.refs.rename("main", "first")
    assert store.users.sessions("ann") == ("first",)
    store.delete_session("first")
    assert store.users.sessions("ann") == ()
    assert store.fsck() == ()


def test_a_person_is_removed_with_all_that_was_kept_and_the_conversation_stays(store: Store) -> None:
    begin(store, "main", "a")
    store.users.put("ann", {})
    store.users.add_feedback("ann", {})
    store.users.assign_session("main", "ann")

    store.users.delete("ann")

    assert store.users.get("ann") is None
    assert store.users.feedback("ann") == ()
    assert store.users.sessions("ann") == ()
    assert store.refs.has("main")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101])
def test_some_names_are_none(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="invalid user name"):
        store.users.put(name, {})


def test_one_name_in_two_ways_of_writing_is_one_person(store: Store) -> None:
    store.users.put("Ame\u0301lie ", {"a": 1})

    assert store.users.get("Amélie") == {"a": 1}


def test_nobody_is_named_with_those_who_are_known(store: Store) -> None:
    store.users.put("ann", {})

    for act in (
        lambda: store.users.add_feedback("bob", {}),
        lambda: store.users.clear_feedback("bob"),
        lambda: store.users.delete("bob"),
    ):
        with pytest.raises(InputError, match="user 'bob' not found; users: ann"):
            act()


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(-9, 9), max_size=4))
def test_what_is_kept_comes_back(body: dict[str, str | int]) -> None:
    with Store.open(":memory:") as store:
        store.users.put("ann", dict(body))

        assert store.users.get("ann") == body
