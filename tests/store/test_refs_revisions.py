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
    store.undo("main", 2)
    store.redo("main")

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
        ("main~4", "cannot go back 4 steps; the beginning is 3 back"),
        ("main@{9}", "'main' has moved only 3 times, not 9"),
        ("mian", "session 'mian' not found; did you mean main\\?"),
        ("mian~1", "session 'mian' not found; did you mean main\\?"),
        ("mian@{1}", "session 'mian' not found; did you mean main\\?"),
        ("ffff", "no session and no node 'ffff' found; sessions: main"),
        ("abc", "session 'abc' not found; sessions: main"),
        ("main~x", "invalid revision 'main~x'; write name, name:2, name~2, name@\\{3\\} or"),
        ("main@{-1}", "invalid revision"),
        ("main@{}", "invalid revision"),
        ("main{1}", "invalid revision"),
        ("main~1@{2}", "invalid revision"),
        ("main~9999999999", "invalid revision"),
    ],
)
def test_an_unknown_revision_is_reported_with_what_exists(store: Store, revision: str, complaint: str) -> None:
    begin(store, "main", "a", "b", "c")

    with pytest.raises(InputError, match=complaint):
        store.resolve(revision)


def test_an_empty_store_has_no_latest_revision(store: Store) -> None:
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

    with pytest.raises(InputError, match=f"'{name[:4]}' is the beginning of several hashes: ") as caught:
        store.resolve(name[:4])

    assert f"{name[:8]} (turn)" in caught.value.message
    assert f"{other[:8]} (turn)" in caught.value.message
    assert store.resolve(name) == name


def test_the_move_that_removed_a_name_has_no_node(store: Store) -> None:
    tip = begin(store, "main", "a")
    store.refs.delete("main")

    with pytest.raises(InputError, match="has no node: the session was deleted there"):
        store.resolve("main@{0}")
    assert store.resolve("main@{1}") == tip


@given(st.text())
def test_every_text_is_a_revision_or_an_input_error(revision: str) -> None:
    with Store.open(":memory:") as store:
        begin(store, "main", "a")
        try:
            found = store.resolve(revision)
        except InputError:
            return

        assert found in (root().hash, store.refs.tip("main"))
