"""The card: read from what the steps left, whole where all of it is there, and without a figure that is not."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from training.builtin import card
from training.builtin.card import card_of, size_of, training_of, write
from training.builtin.curve import draw
from training.builtin.headline import headline
from training.builtin.origin import note, program

CONFIG = {"dim": 4, "layers": 1, "heads": 2, "hidden": 3, "vocab": 10, "context": 8, "theta": 10000.0, "eps": 1e-6}
ROW = {
    "minutes": 1.0,
    "steps": 10,
    "tokens": 100,
    "samples": 4,
    "dropped": 1,
    "loss": 2.0,
    "norm": 1.0,
    "held_out": 2.1,
}
ORDERS = {
    "items": 0.75, "items_interval": [0.5, 0.9], "precision": None, "precision_interval": None, "whole": 0.5,
    "whole_interval": [0.2, 0.8], "structure": 1.0, "structure_interval": [0.9, 1.0],
    "counts": {"items": [15, 20], "whole": [5, 10], "structure": [10, 10], "precision": [0, 0]},
}  # fmt: skip
REASONED = {
    "setting": "Zero-Shot+ALL", "n": 25, "accuracy": 0.8, "interval": [0.6, 0.9], "accuracy_tolerant": 0.84, "interval_tolerant": [0.65, 0.94],
}  # fmt: skip
EVALUATION: dict[str, Any] = {
    "parts": {
        "numglue": {"rows": [REASONED, {**REASONED, "setting": "Zero-Shot+CAL", "accuracy": 0.1}]},
        "orders": {"rows": [ORDERS]},
    },
    "refusals": {"refused": {"count": 9, "of": 10, "share": 0.9, "interval": [0.6, 0.98]}, "number": None},
    "validity": {"all": {"count": 35, "of": 35, "share": 1.0, "interval": [0.9, 1.0]}},
}


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """Weights of two tensors, as the export writes them."""
    folder = tmp_path / "data"
    folder.mkdir()
    header = {
        "__metadata__": {"format": "taiwa-builtin-1", "config": json.dumps(CONFIG)},
        "embed": {"dtype": "F16", "shape": [10, 4], "data_offsets": [0, 80]},
        "norm": {"dtype": "F16", "shape": [4], "data_offsets": [80, 88]},
    }
    text = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(88))
    (folder / "vocabulary.json").write_text(json.dumps({"special": ["<end>"], "pieces": ["ab", "cd"]}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    rows = [{**ROW, "minutes": float(minute), "loss": 3 / minute} for minute in range(1, 201)]
    (made / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"minutes": 3')
    (made / "held_out.json").write_text(
        json.dumps({"desk": {"desk: one": [1, 2, 1], "all": [3, 4, 3]}, "asking": {"all": [4, 4, 4]}})
    )
    (made / "evaluation.json").write_text(json.dumps(EVALUATION))
    note(made, seed=0, minutes=120, workers=2, device="cpu")
    return made


def test_the_sizes_are_those_of_the_files(shipped: Path) -> None:
    found = size_of(shipped)
    assert (found["parameters"], found["pieces"], found["vocab"], found["context"]) == (44, 2, 10, 8)
    assert found["bytes"] == (shipped / "weights.safetensors").stat().st_size


def test_the_curve_has_its_end_and_not_too_many_points(folder: Path, tmp_path: Path) -> None:
    found = training_of([{**ROW, "minutes": float(minute)} for minute in range(1, 201)])

    assert found["curve"][0] == [1.0, 2.0, 2.1]
    assert found["curve"][-1][0] == found["minutes"] == 200
    assert len(found["curve"]) <= 102
    draw(found["curve"], tmp_path / "pictures" / "curve.png")
    assert (tmp_path / "pictures" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_training_that_never_began_has_no_curve(tmp_path: Path) -> None:
    assert training_of([]) == {"curve": []}
    draw([], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_a_card_is_written_of_what_the_steps_left(folder: Path, shipped: Path) -> None:
    found = write(folder, shipped)

    assert json.loads((shipped / "card.json").read_text()) == found
    assert found["training"]["minutes"] == 200
    assert found["held_out"]["all"]["all"] == {
        "exact": 7, "right": 7, "of": 8, "share": 0.875, "interval": [0.529112, 0.977583],
    }  # fmt: skip
    assert (found["made"][0]["seed"], found["made"][0]["workers"]) == (0, 2)
    assert sum(domain["share"] for domain in found["data"]["shares"].values()) == pytest.approx(1)
    assert {row["what"]: row["value"] for row in found["headline"]} == {
        "held-out samples, written exactly": 0.875,
        "held-out samples, asking, written exactly": 1.0,
        "held-out samples, desk, written exactly": 0.75,
        "NumGLUE Task 2, all tools, exactly": 0.8,
        "NumGLUE Task 2, all tools, within 0.5 %": 0.84,
        "coffee-shop requests: items with the right name and quantity": 0.75,
        "coffee-shop requests: requests wholly right": 0.5,
        "coffee-shop requests: replies that can be read": 1.0,
        "made-up compounds: said not to be known": 0.9,
        "answers that have their form, over all evaluations": 1.0,
    }


def test_a_card_without_evaluations_has_none(shipped: Path, tmp_path: Path) -> None:
    found = card_of(tmp_path / "nowhere", shipped)
    assert (found["evaluation"], found["headline"], found["held_out"], found["made"]) == (None, [], {}, [])


def test_the_benchmark_gives_the_speeds(monkeypatch: pytest.MonkeyPatch, shipped: Path, tmp_path: Path) -> None:
    rows = [{"what": "free text", "value": 900, "unit": "tokens/s", "note": "one core", "times": 0}]
    (tmp_path / "builtin.json").write_text(json.dumps({"rows": rows, "machine": "m", "date": "d", "targets": []}))
    monkeypatch.setattr(card, "BENCH", tmp_path / "builtin.json")
    (row,) = card_of(tmp_path, shipped)["speed"]["rows"]
    assert (row["name"], row["tokens_a_second"]) == ("free text", 900)


def test_an_area_is_told_as_one() -> None:
    rows = [{"setting": "look_first", "set": "qulac", "n": 9, "auc": 0.7, "auc_interval": [0.6, 0.8]}]
    found = headline({}, {"parts": {"asking back": {"rows": rows}}, "refusals": None, "validity": None})
    assert [(row["what"], row["unit"]) for row in found] == [("when to ask back, qulac: AUC", "AUC")]


def test_a_start_is_noted_behind_those_before(tmp_path: Path) -> None:
    note(tmp_path, seed=1)
    note(tmp_path, seed=2)
    assert [row["seed"] for row in json.loads((tmp_path / "origin.json").read_text())] == [1, 2]
    assert set(program()) == {"commit", "clean"}
