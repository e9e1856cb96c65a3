"""Apps and nodes by their hashes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import InputError, StoreError
from taiwa.kernel.serialization import Json
from taiwa.store import Store
from tests.store.test_nodes_encoding import jsons, texts
from tests.store.turns import APP, begin, root, turn

hashes = st.binary(min_size=16, max_size=16).map(bytes.hex)


@given(
    st.sampled_from(["turn", "summary", "edit", "app"]),
    st.none() | texts,
    st.none() | texts,
    jsons,
    hashes | st.just(""),
)
def test_every_node_is_read_back_with_its_hash(
    kind: str, user: str | None, answer: str | None, delta: Json, state: str
) -> None:
    with Store.open(":memory:") as store:
        begin(store)
        node = Node(root().hash, kind, APP.hash, user, answer, delta, state)

        name = store.nodes.put(node)

        assert store.nodes.get(name).hash == name == node.hash
        assert store.nodes.has(name)


@given(texts, texts, jsons)
def test_every_app_is_read_back_with_its_hash(name: str, source: str, params: Json) -> None:
    with Store.open(":memory:") as store:
        app = AppSource(name, source, params)

        assert store.nodes.put_app(app) == app.hash
        assert store.nodes.app(app.hash).hash == app.hash
        assert store.nodes.put_app(app) == app.hash


@pytest.mark.parametrize("length", [1, 255, 256, 257, 600])
def test_a_path_of_any_length_leads_to_the_root(store: Store, length: int) -> None:
    tip = begin(store)
    with store._db.transaction():
        for number in range(length):
            tip = store.nodes.put(turn(tip, str(number)))

    path = list(store.nodes.path(tip))

    assert [node.user for _, node in path] == [*map(str, reversed(range(length))), None]
    assert all(node.hash == name for name, node in path)
    assert [node.parent for _, node in path] == [*(name for name, _ in path[1:]), None]


def test_a_path_ends_before_its_stop(store: Store) -> None:
    stop = begin(store, "main", "a", "b")
    tip = begin(store, "main2", "a", "b", "c", "d")

    assert [node.user for _, node in store.nodes.path(tip, stop)] == ["d", "c"]
    assert list(store.nodes.path(tip, tip)) == []


def test_an_unknown_node_is_named_by_the_beginning_of_its_hash(store: Store) -> None:
    for ask in (store.nodes.get, store.nodes.seq, lambda name: next(store.nodes.path(name))):
        with pytest.raises(StoreError, match=r"node abababab not found"):
            ask("ab" * 16)
    with pytest.raises(StoreError, match=r"app abababab not found"):
        store.nodes.app("ab" * 16)
    assert not store.nodes.has("ab" * 16)


def test_storing_a_known_node_changes_nothing(store: Store) -> None:
    tip = begin(store, "main", "a")

    assert store.nodes.put(turn(root().hash, "a")) == tip
    assert store.nodes.count() == 2


def test_a_node_is_not_stored_before_its_parent(store: Store) -> None:
    store.nodes.put_app(APP)

    with pytest.raises(InputError, match="parent abababab of the node not found in the store"):
        store.nodes.put(turn("ab" * 16, "secret"))
