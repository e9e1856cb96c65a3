"""A snapshot saves time and nothing else."""

import pytest

from taiwa.kernel.errors import InputError, StoreError
from taiwa.store import Store
from tests.store.turns import begin


def test_a_checkout_begins_at_the_nearest_snapshot(store: Store) -> None:
    tip = begin(store, "main", "a", "b", "c", "d")
    path = [name for name, _ in reversed(list(store.nodes.path(tip)))]
    store.snapshots.put(path[1], {"topics": ["a"]})
    store.snapshots.put(path[2], {"topics": ["a", "b"]})

    near, steps = store.snapshots.checkout(tip)

    assert near == (path[2], {"topics": ["a", "b"]})
    assert [name for name, _ in steps] == path[3:]
    assert all(node.hash == name for name, node in steps)
    assert store.snapshots.checkout(path[2]) == (near, ())
    assert store.snapshots.checkout(path[1]).near == (path[1], {"topics": ["a"]})


def test_without_snapshots_a_checkout_begins_at_the_root(store: Store) -> None:
    tip = begin(store, "main", "a", "b")

    near, steps = store.snapshots.checkout(tip)

    assert near is None
    assert [node.user for _, node in steps] == [None, "a", "b"]
    assert steps == tuple(reversed(list(store.nodes.path(tip))))


def test_a_snapshot_can_be_replaced(store: Store) -> None:
    tip = begin(store, "main", "a", "b", "c")
    early = store.refs.back(tip, 2)
    store.snapshots.put(early, 1)
    store.snapshots.put(early, {"n": 2})

    assert store.snapshots.checkout(early).near == store.snapshots.checkout(tip).near == (early, {"n": 2})


def test_a_snapshot_requires_a_stored_node_and_json(store: Store) -> None:
    tip = begin(store)

    with pytest.raises(StoreError, match=r"node .* not found"):
        store.snapshots.put("ab" * 16, {})
    with pytest.raises(StoreError, match=r"node .* not found"):
        store.snapshots.checkout("ab" * 16)
    with pytest.raises(InputError, match="cannot be stored"):
        store.snapshots.put(tip, ("a",))
