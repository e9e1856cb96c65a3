"""A snapshot saves time and nothing else."""

import pytest

from taiwa.kernel.errors import InputError, StoreError
from taiwa.store import Store
from tests.store.turns import begin


def test_a_checkout_begins_at_the_nearest_snapshot(store: Store) -> None:
    tip = begin(store, "main", "a", "b", "c", "d")
    path = [name for name, _ in reversed(list(store.nodes.path(tip)))]
    store.snaps.put(path[1], {"topics": ["a"]})
    store.snaps.put(path[2], {"topics": ["a", "b"]})

    near, steps = store.snaps.checkout(tip)

    assert near == (path[2], {"topics": ["a", "b"]})
    assert [name for name, _ in steps] == path[3:]
    assert all(node.hash == name for name, node in steps)
    assert store.snaps.checkout(path[2]) == (near, ())
    assert store.snaps.checkout(path[1]).near == (path[1], {"topics": ["a"]})


def test_without_snapshots_a_checkout_begins_at_the_root(store: Store) -> None:
    tip = begin(store, "main", "a", "b")
    store.snaps.put(tip, [])

    assert store.snaps.drop() == 1

    near, steps = store.snaps.checkout(tip)
    assert near is None
    assert [node.user for _, node in steps] == [None, "a", "b"]
    assert steps == tuple(reversed(list(store.nodes.path(tip))))


def test_a_snapshot_can_be_replaced_and_looked_up(store: Store) -> None:
    tip = begin(store, "main", "a", "b", "c")
    early = store.refs.back(tip, 2)
    store.snaps.put(early, 1)
    store.snaps.put(early, {"n": 2})

    assert store.snaps.get(early) == {"n": 2}
    assert store.snaps.get(tip) is None
    assert store.snaps.nearest(tip) == (early, {"n": 2})
    assert store.snaps.nearest(tip, steps=1) is None


def test_a_snapshot_is_json_after_a_node_that_is_here(store: Store) -> None:
    tip = begin(store)

    with pytest.raises(StoreError, match="no node"):
        store.snaps.put("ab" * 16, {})
    with pytest.raises(StoreError, match="no node"):
        store.snaps.checkout("ab" * 16)
    with pytest.raises(InputError, match="cannot be stored"):
        store.snaps.put(tip, ("a",))
