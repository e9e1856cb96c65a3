from typing import Any

from taiwa.models.builtin.model import card_rows, read_card

CARD: dict[str, Any] = {
    "size": {"parameters": 3_117_504, "bytes": 6_240_000, "context": 1024, "vocab": 2400},
    "training": {"tokens": 60_000_000, "minutes": 170.4},
    "held_out": {
        "desk": {"all": {"exact": 97, "of": 100, "share": 0.97, "interval": [0.9, 0.99]}},
        "asking": {"all": {"exact": 0, "of": 0, "share": 0.0, "interval": None}},
    },
    "headline": [
        {"what": "held-out samples, desk", "value": 0.97, "interval": [0.9, 0.99], "of": 100, "unit": "share"},
        {"what": "NumGLUE Task 2", "value": 0.6, "interval": [0.4, 0.77], "of": 25, "unit": "share"},
        {"what": "when to ask back: AUC", "value": 0.6543, "interval": [0.6, 0.7], "of": 79, "unit": "AUC"},
        {"what": "never asked", "of": 0},
    ],
    "speed": {"rows": [{"name": "free", "tokens_a_second": 812.4}, {"name": "odd"}]},
}


def test_the_rows_of_a_card_are_its_results_with_intervals() -> None:
    assert dict(card_rows(CARD)) == {
        "parameters": "3,117,504 (6.2 MB)",
        "reads": "1,024 tokens at most; 2,400 different ones",
        "trained": "on 60.0 million tokens in 170 minutes",
        "exact: desk": "97.0% of 100 held-out samples (90.0% to 99.0%)",
        "NumGLUE Task 2": "60.0% of 25 (40.0% to 77.0%)",
        "when to ask back: AUC": "0.654 of 79 (0.600 to 0.700)",
        "speed: free": "812 tokens a second on one core",
    }


def test_a_card_without_results_has_no_rows() -> None:
    assert list(card_rows({})) == []


def test_the_card_of_the_package_has_results_of_every_kind() -> None:
    names = {name.partition(":")[0] for name, value in card_rows(read_card()) if value}

    assert names >= {"parameters", "reads", "trained", "exact", "speed"}
