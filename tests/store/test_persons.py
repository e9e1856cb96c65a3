"""Who asks: profiles, verdicts, and whose a conversation is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.store import Store
from tests.store.turns import begin


def test_a_person_is_kept_and_changed(store: Store) -> None:
    assert store.persons.get("ann") is None
    store.persons.put("ann", {"office": "Osaka"})
    store.persons.put("ann", {"office": "京都"})

    assert store.persons.get("ann") == {"office": "京都"}
    assert [kept.name for kept in store.persons.list()] == ["ann"]


def test_verdicts_come_back_in_their_order_and_can_be_forgotten(store: Store) -> None:
    store.persons.put("ann", {})
    assert store.persons.tell("ann", {"verdict": "good"}) == 1
    assert store.persons.tell("ann", {"verdict": "bad"}) == 2
    store.persons.put("ann", {"office": "Osaka"})

    assert store.persons.told("ann") == ({"verdict": "good"}, {"verdict": "bad"})
    assert store.persons.list()[0].verdicts == 2
    assert store.persons.reset("ann") == 2
    assert store.persons.told("ann") == ()
    assert store.persons.get("ann") == {"office": "Osaka"}


def test_whose_a_conversation_is_follows_its_name_and_ends_with_it(store: Store) -> None:
    begin(store, "main", "a")
    begin(store, "other", "b")
    store.persons.put("ann", {})
    store.persons.put("bob", {})
    store.persons.claim("main", "ann")
    store.persons.claim("other", "ann")
    store.persons.claim("other", "bob")

    assert store.persons.sessions("ann") == ("main",)
    store.refs.rename("main", "first")
    assert store.persons.sessions("ann") == ("first",)
    store.forget("first")
    assert store.persons.sessions("ann") == ()
    assert store.fsck() == ()


def test_a_person_is_removed_with_all_that_was_kept_and_the_conversation_stays(store: Store) -> None:
    begin(store, "main", "a")
    store.persons.put("ann", {})
    store.persons.tell("ann", {})
    store.persons.claim("main", "ann")

    store.persons.remove("ann")

    assert store.persons.get("ann") is None
    assert store.persons.told("ann") == ()
    assert store.persons.sessions("ann") == ()
    assert store.refs.has("main")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101])
def test_some_names_are_none(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        store.persons.put(name, {})


def test_one_name_in_two_ways_of_writing_is_one_person(store: Store) -> None:
    store.persons.put("Ame\u0301lie ", {"a": 1})

    assert store.persons.get("Amélie") == {"a": 1}


def test_nobody_is_named_with_those_who_are_known(store: Store) -> None:
    store.persons.put("ann", {})

    for act in (
        lambda: store.persons.tell("bob", {}),
        lambda: store.persons.reset("bob"),
        lambda: store.persons.remove("bob"),
    ):
        with pytest.raises(InputError, match="no person 'bob': there are ann"):
            act()


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(-9, 9), max_size=4))
def test_what_is_kept_comes_back(body: dict[str, str | int]) -> None:
    with Store.open(":memory:") as store:
        store.persons.put("ann", dict(body))

        assert store.persons.get("ann") == body
