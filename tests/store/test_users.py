"""Who asks: profiles, verdicts, and whose a conversation is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.store import Store
from tests.store.turns import begin


def test_a_profile_is_stored_and_replaced(store: Store) -> None:
    assert store.users.get("ann") is None
    store.users.put("ann", {"office": "Osaka"})
    store.users.put("ann", {"office": "京都"})

    assert store.users.get("ann") == {"office": "京都"}
    assert [kept.name for kept in store.users.list()] == ["ann"]


def test_feedback_comes_back_in_order_and_can_be_cleared(store: Store) -> None:
    store.users.put("ann", {})
    assert store.users.add_feedback("ann", {"verdict": "good"}) == 1
    assert store.users.add_feedback("ann", {"verdict": "bad"}) == 2
    store.users.put("ann", {"office": "Osaka"})

    assert store.users.feedback("ann") == ({"verdict": "good"}, {"verdict": "bad"})
    assert store.users.list()[0].feedback == 2
    assert store.users.clear_feedback("ann") == 2
    assert store.users.feedback("ann") == ()
    assert store.users.get("ann") == {"office": "Osaka"}


def test_a_session_stays_assigned_when_it_is_renamed_until_it_is_deleted(store: Store) -> None:
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


def test_deleting_a_user_deletes_the_feedback_and_keeps_the_sessions(store: Store) -> None:
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
def test_invalid_user_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="invalid user name"):
        store.users.put(name, {})


def test_composed_and_decomposed_spellings_are_one_user(store: Store) -> None:
    store.users.put("Ame\u0301lie ", {"a": 1})

    assert store.users.get("Amélie") == {"a": 1}


def test_an_unknown_user_is_reported_with_known_ones(store: Store) -> None:
    store.users.put("ann", {})

    for act in (
        lambda: store.users.add_feedback("bob", {}),
        lambda: store.users.clear_feedback("bob"),
        lambda: store.users.delete("bob"),
    ):
        with pytest.raises(InputError, match="user 'bob' not found; users: ann"):
            act()


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(-9, 9), max_size=4))
def test_profiles_and_feedback_survive_closing(body: dict[str, str | int]) -> None:
    with Store.open(":memory:") as store:
        store.users.put("ann", dict(body))

        assert store.users.get("ann") == body
