"""What the benchmarks count with."""

import json
from pathlib import Path

import pytest

from benches import measure
from benches.measure import Subject, median, middle_half
from benches.tokens import PrefixCache


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    return tmp_path


def test_one_slow_run_moves_neither_the_median_nor_the_middle_half() -> None:
    assert median([1.0, 2.0, 3.0, 4.0, 1000.0]) == 3.0
    assert middle_half([1.0, 2.0, 3.0, 4.0, 1000.0]) == (2.0, 4.0)
    assert middle_half([7.0]) == (7.0, 7.0)


def test_a_missed_promise_is_said_and_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subject = Subject("speed", "how fast")

    subject.target("this", 2.0, 1.0, "ms")
    subject.target("that", 1.0, 1.0, "ms")
    subject.write()

    said = capsys.readouterr().out
    written = json.loads((results / "speed.json").read_text())
    assert "MISSED this: 2 ms, at most 1" in said
    assert "met    that" in said
    assert [row["met"] for row in written["targets"]] == [False, True]


def test_a_peer_that_is_ahead_is_said_to_be() -> None:
    subject = Subject("speed", "how fast")

    subject.row("a peer", 1.0, "ms", ours=2.0)
    subject.row("another", 3.0, "ms", "a note", ours=2.0)
    subject.row("ourselves", 2.0, "ms")

    assert [(row.note, row.times) for row in subject.rows] == [
        ("ahead, 0.5 times ours", 0.5),
        ("1.5 times ours; a note", 1.5),
        ("", 0.0),
    ]


def test_a_cache_holds_what_requests_begin_with_in_steps() -> None:
    held = PrefixCache()
    first = list(range(3_000))

    assert held.shared(first) == 0
    assert held.shared(first) == 2_944
    assert held.shared([*first[:1_500], *range(9_000, 9_500)]) == 1_408
    assert held.shared([*first[:1_000], *range(9_000, 9_500)]) == 0
    assert held.shared([-1, *first]) == 0
    assert held.shared([*first, 1, 2]) == 2_944
