"""A row of a batch is paid for once."""

import pytest

from taiwa.kernel.errors import InputError, StoreError
from taiwa.store import BatchItem, Store, item_key

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
        assert store.batches.get(KEY) is None
        assert store.batches.begin(KEY) == BatchItem("open", 1, 0, None)
        store.batches.finish(KEY, {"answer": "これを訳す"}, 120)

    with Store.open(place) as store:
        assert store.batches.begin(KEY) == store.batches.get(KEY) == BatchItem("done", 1, 120, {"answer": "これを訳す"})


def test_a_failed_row_is_tried_again_and_its_costs_add_up(store: Store) -> None:
    store.batches.begin(KEY)
    store.batches.fail(KEY, InputError("too long"), 100)
    failed = store.batches.get(KEY)

    again = store.batches.begin(KEY)
    store.batches.finish(KEY, "done", 50)

    assert failed == BatchItem("failed", 1, 100, {"type": "input", "message": "too long"})
    assert (again.status, again.attempts) == ("open", 2)
    assert store.batches.get(KEY) == BatchItem("done", 2, 150, "done")


def test_an_unknown_cost_stays_unknown(store: Store) -> None:
    store.batches.begin(KEY)
    store.batches.fail(KEY, InputError("cut off"), None)
    store.batches.begin(KEY)

    store.batches.finish(KEY, "done", 50)

    assert store.batches.get(KEY) == BatchItem("done", 2, None, "done")


def test_the_first_result_of_two_processes_stays_and_both_costs_count(place: str) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        one.batches.begin(KEY)
        two.batches.begin(KEY)

        one.batches.finish(KEY, "first", 10)
        two.batches.finish(KEY, "second", 10)
        one.batches.fail(KEY, InputError("late"), 1)

        assert two.batches.get(KEY) == BatchItem("done", 2, 21, "first")


def test_rows_can_be_cleared(store: Store) -> None:
    store.batches.begin(KEY)

    assert store.batches.clear() == 1
    assert store.batches.get(KEY) is None
    with pytest.raises(StoreError, match="was not begun"):
        store.batches.finish(KEY, "done", 1)


def test_a_row_belongs_to_the_process_that_began_it_until_it_ends_or_releases_it(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        if one.path is not None:  # two stores of one process are one owner there
            monkeypatch.setattr(one._db, "owner", lambda: 7)
            monkeypatch.setattr(two._db, "is_alive", lambda owner: owner == 7)
        assert one.batches.take(KEY) == BatchItem("open", 1, 0, None)

        assert two.batches.take(KEY) is None
        assert one.batches.take(KEY) == BatchItem("open", 2, 0, None)
        one.batches.release(KEY)
        assert two.batches.take(KEY) == BatchItem("open", 3, 0, None)
        two.batches.finish(KEY, "done", 1)
        assert one.batches.take(KEY) == BatchItem("done", 3, 1, "done")


def test_a_row_of_a_process_that_ended_can_be_taken(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(place) as one:
        if one.path is not None:
            monkeypatch.setattr(one._db, "owner", lambda: 7)
        one.batches.take(KEY)

    with Store.open(place) as two:
        taken = two.batches.take(KEY)
        assert taken is not None
        assert taken.attempts == 2
