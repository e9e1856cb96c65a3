"""How a person names a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.store import Store
from tests.store.turns import begin, root, turn


def test_every_form_of_a_revision_names_its_node(store: Store) -> None:
    tip = begin(store, "main", "a", "b", "c")
    path = [name for name, _ in store.nodes.path(tip)]
    begin(store, "zz", "d")
    store.refs.undo("main", 2)
    store.refs.redo("main")

    assert store.resolve("main") == store.resolve("") == store.resolve("@") == store.resolve(" main ") == path[1]
    assert store.resolve("main~") == store.resolve("main~1") == store.resolve("@~1") == store.resolve("~1") == path[2]
    assert store.resolve("main~1~1") == store.resolve("main~~") == store.resolve("main~2") == path[3]
    assert store.resolve("main~0") == path[1]
    assert store.resolve("main@{0}") == path[1]
    assert store.resolve("main@{1}") == store.resolve("@{1}") == path[2]
    assert store.resolve("main@{2}") == tip
    assert store.resolve("main@{2}~1") == path[1]
    assert store.resolve(tip) == store.resolve(tip[:7]) == store.resolve(tip[:4].upper()) == tip
    assert store.resolve(tip[:9] + "~1") == path[1]


@pytest.mark.parametrize(
    ("revision", "complaint"),
    [
        ("main~4", "only 3 steps back to the beginning, not 4"),
        ("main@{9}", "'main' has moved only 3 times, not 9"),
        ("mian", "no session 'mian': did you mean main\\?"),
        ("mian~1", "no session 'mian': did you mean main\\?"),
        ("mian@{1}", "no session 'mian': did you mean main\\?"),
        ("ffff", "no session 'ffff' and no node that begins so: there are main"),
        ("abc", "no session 'abc': there are main"),
        ("main~x", "is no revision: write name, name~2"),
        ("main@{-1}", "is no revision"),
        ("main@{}", "is no revision"),
        ("main{1}", "is no revision"),
        ("main~1@{2}", "is no revision"),
        ("main~9999999999", "is no revision"),
    ],
)
def test_what_names_nothing_is_answered_with_what_there_is(store: Store, revision: str, complaint: str) -> None:
    begin(store, "main", "a", "b", "c")

    with pytest.raises(InputError, match=complaint):
        store.resolve(revision)


def test_without_a_session_the_latest_one_is_missing(store: Store) -> None:
    with pytest.raises(InputError, match="begin one with `taiwa chat`"):
        store.resolve("")


def test_the_beginning_of_several_hashes_lists_them(store: Store) -> None:
    tip = begin(store, "main")
    with store._db.transaction():
        first: dict[str, str] = {}
        number = 0
        while True:
            name = store.nodes.put(turn(tip, str(number)))
            if name[:4] in first:
                break
            first[name[:4]] = name
            number += 1
    other = first[name[:4]]

    with pytest.raises(InputError, match=f"'{name[:4]}' begins several hashes: ") as caught:
        store.resolve(name[:4])

    assert f"{name[:8]} (turn)" in caught.value.message
    assert f"{other[:8]} (turn)" in caught.value.message
    assert store.resolve(name) == name


def test_the_moment_of_its_deletion_names_no_node(store: Store) -> None:
    tip = begin(store, "main", "a")
    store.refs.delete("main")

    with pytest.raises(InputError, match="names no node: the session was deleted there"):
        store.resolve("main@{0}")
    assert store.resolve("main@{1}") == tip


@given(st.text())
def test_no_text_is_a_revision_that_breaks_anything(revision: str) -> None:
    with Store.open(":memory:") as store:
        begin(store, "main", "a")
        try:
            found = store.resolve(revision)
        except InputError:
            return

        assert found in (root().hash, store.refs.tip("main"))
