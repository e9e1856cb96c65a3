"""A row of a batch is paid for once."""

import os

import pytest

from taiwa.kernel.errors import InputError, StoreError
from taiwa.store import Item, Store, item_key
from taiwa.store.process import identity

KEY = item_key("translate this", "a" * 32, "m", {"lang": "ja"})


def test_every_part_of_a_row_is_in_its_key() -> None:
    keys = {
        KEY,
        item_key("translate that", "a" * 32, "m", {"lang": "ja"}),
        item_key("translate this", "b" * 32, "m", {"lang": "ja"}),
        item_key("translate this", "a" * 32, "n", {"lang": "ja"}),
        item_key("translate this", "a" * 32, "m", {"lang": "en"}),
        item_key("translate this", "a" * 32, "m", None),
    }

    assert len(keys) == 6
    assert item_key("translate this", "a" * 32, "m", {"lang": "ja"}) == KEY


def test_a_finished_row_is_found_by_the_next_run(place: str) -> None:
    with Store.open(place) as store:
        assert store.items.get(KEY) is None
        assert store.items.begin(KEY) == Item("open", 1, 0, None)
        store.items.finish(KEY, {"answer": "これを訳す"}, 120)

    with Store.open(place) as store:
        assert store.items.begin(KEY) == store.items.get(KEY) == Item("done", 1, 120, {"answer": "これを訳す"})


def test_a_failed_row_is_tried_again_and_its_costs_add_up(store: Store) -> None:
    store.items.begin(KEY)
    store.items.fail(KEY, InputError("too long"), 100)
    failed = store.items.get(KEY)

    again = store.items.begin(KEY)
    store.items.finish(KEY, "done", 50)

    assert failed == Item("failed", 1, 100, {"type": "input", "message": "too long"})
    assert (again.status, again.attempts) == ("open", 2)
    assert store.items.get(KEY) == Item("done", 2, 150, "done")


def test_an_unknown_cost_stays_unknown(store: Store) -> None:
    store.items.begin(KEY)
    store.items.fail(KEY, InputError("cut off"), None)
    store.items.begin(KEY)

    store.items.finish(KEY, "done", 50)

    assert store.items.get(KEY) == Item("done", 2, None, "done")


def test_the_first_result_of_two_processes_stays_and_both_costs_count(place: str) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        one.items.begin(KEY)
        two.items.begin(KEY)

        one.items.finish(KEY, "first", 10)
        two.items.finish(KEY, "second", 10)
        one.items.fail(KEY, InputError("late"), 1)

        assert two.items.get(KEY) == Item("done", 2, 21, "first")


def test_rows_can_be_cleared(store: Store) -> None:
    store.items.begin(KEY)

    assert store.items.clear() == 1
    assert store.items.get(KEY) is None
    with pytest.raises(StoreError, match="was not begun"):
        store.items.finish(KEY, "done", 1)


def test_a_row_that_somebody_has_begun_is_theirs_until_they_end_or_let_go(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        if one.path is not None:  # two stores of one process are one owner there
            monkeypatch.setattr(one._db, "owner", lambda: (os.getppid(), identity(os.getppid())))
        assert one.items.take(KEY) == Item("open", 1, 0, None)

        assert two.items.take(KEY) is None
        assert one.items.take(KEY) == Item("open", 2, 0, None)
        one.items.release(KEY)
        assert two.items.take(KEY) == Item("open", 3, 0, None)
        two.items.finish(KEY, "done", 1)
        assert one.items.take(KEY) == Item("done", 3, 1, "done")


def test_a_row_of_somebody_who_is_gone_is_free(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(place) as one:
        if one.path is not None:
            monkeypatch.setattr(one._db, "owner", lambda: (os.getpid(), "another"))
        one.items.take(KEY)

    with Store.open(place) as two:
        taken = two.items.take(KEY)
        assert taken is not None
        assert taken.attempts == 2
