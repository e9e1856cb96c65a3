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
        assert store.batches.begin(KEY) == BatchItem("open", None)
        store.batches.finish(KEY, {"answer": "これを訳す"})

    with Store.open(place) as store:
        assert store.batches.begin(KEY) == store.batches.get(KEY) == BatchItem("done", {"answer": "これを訳す"})


def test_a_failed_row_is_tried_again(store: Store) -> None:
    store.batches.begin(KEY)
    store.batches.fail(KEY, InputError("too long"))
    failed = store.batches.get(KEY)

    again = store.batches.begin(KEY)
    store.batches.finish(KEY, "done")

    assert failed == BatchItem("failed", {"type": "input", "message": "too long"})
    assert again.status == "open"
    assert store.batches.get(KEY) == BatchItem("done", "done")


def test_the_first_result_of_two_processes_stays(place: str) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        one.batches.begin(KEY)
        two.batches.begin(KEY)

        one.batches.finish(KEY, "first")
        two.batches.finish(KEY, "second")
        one.batches.fail(KEY, InputError("late"))

        assert two.batches.get(KEY) == BatchItem("done", "first")


def test_rows_can_be_cleared(store: Store) -> None:
    store.batches.begin(KEY)

    assert store.batches.clear() == 1
    assert store.batches.get(KEY) is None
    with pytest.raises(StoreError, match="was not begun"):
        store.batches.finish(KEY, "done")


def test_a_row_belongs_to_the_process_that_began_it_until_it_ends_or_releases_it(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        if one.path is not None:  # two stores of one process are one owner there
            monkeypatch.setattr(one._db, "owner", lambda: 7)
            monkeypatch.setattr(two._db, "is_alive", lambda owner: owner == 7)
        assert one.batches.take(KEY) == BatchItem("open", None)

        assert two.batches.take(KEY) is None
        assert one.batches.take(KEY) == BatchItem("open", None)
        one.batches.release(KEY)
        assert two.batches.take(KEY) == BatchItem("open", None)
        two.batches.finish(KEY, "done")
        assert one.batches.take(KEY) == BatchItem("done", "done")


def test_a_row_of_a_process_that_ended_can_be_taken(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(place) as one:
        if one.path is not None:
            monkeypatch.setattr(one._db, "owner", lambda: 7)
        one.batches.take(KEY)

    with Store.open(place) as two:
        assert two.batches.take(KEY) == BatchItem("open", None)
