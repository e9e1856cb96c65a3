"""`python -m evals order`: tables, JSON, what would be asked, and one-line errors."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, delta
from tests.evals_published.conftest import Evals


@pytest.fixture
def words(place: Place) -> tuple[str, ...]:
    rows = [
        {"id": "a", "domain": "cafe", "input": "a tea and two scones"},
        {"id": "b", "domain": "cafe", "input": "hello"},
        {"id": "c", "domain": "music", "input": "play it again"},
    ]
    data, key = place.folder / "requests.jsonl", place.folder / "key.yaml"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    orders = {"a": [{"name": "tea"}, {"name": "scone", "quantity": 2}], "b": [], "c": []}
    key.write_text(json.dumps({"requests": {name: {"items": lines} for name, lines in orders.items()}}))
    return ("order", "--data", str(data), "--key", str(key))


TEA = {"name": "tea", "quantity": 1, "options": []}
HEARD = delta("A tea.", items={"1": TEA})


def test_figures_are_told_with_their_counts(evals: Evals, model_server: ModelServer, words: tuple[str, ...]) -> None:
    model_server(HEARD, delta("Hello."))

    told = evals.ok(*words, "--only", "cafe", "-j", "1", "--json").json

    (row,) = told["rows"]
    assert (told["evaluation"], told["failed"], row["n"]) == ("order", 0, 2)
    assert (row["items"], row["counts"]["items"], row["whole"], row["wrong"]) == (0.5, [1, 2], 0.5, ["a"])
    assert len(row["items_interval"]) == 2


def test_a_folder_keeps_rows_table_and_chart(
    evals: Evals, model_server: ModelServer, words: tuple[str, ...], place: Place
) -> None:
    folder: Path = place.folder / "run"
    model_server(HEARD, delta("Hello."), delta("La."))

    shown = evals.ok(*words, "-j", "1", "--out", str(folder))
    again = evals.ok(*words, "--out", str(folder), "--resume")

    assert (
        shown.lines[0].split() == "setting n structure % items % sizes % options % wholly right % failed s/item".split()
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "chart.png", "chart.svg", "rows.jsonl", "summary.json", "table.md",
    ]  # fmt: skip
    assert "3 rows are already finished, 0 remain" in again.err


def test_what_would_be_asked_is_shown_before(evals: Evals, model_server: ModelServer, words: tuple[str, ...]) -> None:
    before = len(model_server().requests)
    shown = evals.ok(*words, "--dry-run", "-v")
    assert shown.lines[0].startswith("3 requests, the first of ")
    assert "a tea and two scones" in shown.out
    assert evals.ok(*words, "--dry-run", "--json", "--limit", "2").json["rows"] == 2
    assert len(model_server.requests) == before


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--only", "other"), "holds no request of other"),
        (("--key", "nowhere.yaml"), "nowhere.yaml: No such file"),
        (("--data", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("--resume",), "no rows to resume from"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(
    evals: Evals, model_server: ModelServer, words: tuple[str, ...], more: tuple[str, ...], complaint: str
) -> None:
    model_server()
    done = evals(*words, *more)
    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_help_shows_what_can_be_done(evals: Evals) -> None:
    assert "python -m evals order --data" in evals.ok("order", "--help").out
