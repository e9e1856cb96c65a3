"""`python -m evals clarify|rewrite|retrieve|answer|numglue`: tables, JSON, folders and one-line errors, with no model and with one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MODEL, ModelServer
from tests.evals_published.conftest import Evals

PASSAGES = [
    {"id": "p1", "title": "Paid leave", "text": "Paid leave is asked for in the portal."},
    {"id": "p2", "title": "Sick leave", "text": "Sick leave needs a note from the doctor."},
]
QUESTIONS = [
    {"id": "q1", "q": "who writes the note for sick leave", "rel": ["p2"], "answers": ["the doctor"]},
    {"id": "q2", "q": "where is paid leave asked for", "rel": ["p1"], "answers": ["in the portal"]},
]


@pytest.fixture
def questions(place: Any) -> str:
    folder: Path = place.folder
    for name, rows in (("leave_passages", PASSAGES), ("leave_questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(folder / "leave_questions.jsonl")


def test_what_an_index_finds_is_a_row_for_each_set(evals: Evals, questions: str) -> None:
    told = evals.ok("retrieve", "--data", questions, "--json").json

    (row,) = told["rows"]
    assert (told["evaluation"], told["model"], told["failed"]) == ("retrieve", "", 0)
    assert (row["setting"], row["set"], row["n"], row["ndcg10"], row["mrr"]) == ("question", "leave", 2, 1.0, 1.0)
    assert row["ndcg10_interval"] == [1.0, 1.0]


def test_the_shipped_questions_are_a_set(evals: Evals) -> None:
    told = evals.ok("clarify", "--data", "taiwa:handbook", "--limit", "5", "--json").json

    assert [(row["set"], row["n"]) for row in told["rows"]] == [("handbook", 5)] * 4


def test_extracts_are_measured_without_a_model_and_leave_a_folder(evals: Evals, questions: str, place: Any) -> None:
    folder: Path = place.folder / "run"

    first = evals.ok("answer", "--data", questions, "--out", str(folder))
    again = evals.ok("answer", "--data", questions, "--out", str(folder), "--resume")

    assert sorted(path.name for path in folder.iterdir()) == [
        "chart.png", "chart.svg", "rows.jsonl", "summary.json", "table.md",
    ]  # fmt: skip
    assert "4 rows are already finished, 0 remain" in again.err
    assert "leave  extractive, passage withheld" in first.out
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 5


def test_a_model_is_asked_only_where_it_is_named(evals: Evals, model_server: ModelServer, questions: str) -> None:
    before = len(model_server.requests)
    quiet = evals.ok("answer", "--data", questions, "--json").json
    assert (len(quiet["rows"]), len(model_server.requests) - before) == (2, 0)

    model_server(*["NOT FOUND"] * 4)
    told = evals.ok("answer", "--data", questions, "-m", model_server.model, "--json").json

    found = {row["setting"]: row for row in told["rows"]}
    assert told["model"].endswith(MODEL)
    assert (
        found["model, cited"]["refused_answerable"],
        found["model, cited, passage withheld"]["refused_unanswerable"],
    ) == (1.0, 1.0)


def test_what_would_be_measured_is_told_before(evals: Evals, questions: str) -> None:
    shown = evals.ok("retrieve", "--data", questions, "--dry-run")

    assert shown.lines[1].split() == ["leave", "questions", "2", "2"]
    assert shown.lines[-1] == "2 turns, 2 rows"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("clarify",), "leave: no row says whether clarification is needed (read as questions)"),
        (("rewrite",), "leave: no row has turns before the last"),
        (("retrieve", "--only", "other"), "--only: unknown set 'other'; choose among leave"),
        (("retrieve", "--passages", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("retrieve", "--language", "klingon"), "unknown stemmer language 'klingon'"),
        (("clarify", "--policies", "guess"), "unknown policy 'guess'"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_exit_2(
    evals: Evals, questions: str, words: tuple[str, ...], complaint: str
) -> None:
    done = evals(words[0], "--data", questions, *words[1:])

    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_help_shows_what_can_be_done(evals: Evals) -> None:
    for name in ("clarify", "rewrite", "retrieve", "answer"):
        assert f"python -m evals {name} --data" in evals.ok(name, "--help").out


def test_questions_that_a_formula_decides_are_asked_and_the_others_left_out(evals: Evals, shared_data: Path) -> None:
    told = evals.ok("numglue", str(shared_data / "numglue_task2.jsonl"), "--json").json

    assert (told["n"], told["undecided"], told["accuracy"]) == (10, 15, 1.0)


def test_wrong_labels_are_listed(evals: Evals, place: Any) -> None:
    path = place.folder / "labels.jsonl"
    path.write_text('{"id": "c", "question": "What is the molecular weight of 2 moles of KBrO3", "answer": 336}\n')

    told = evals.ok("numglue", str(path), "--json").json
    shown = evals.ok("numglue", str(path))

    assert (told["n"], told["right"], told["label_errors"]) == (1, 0, ["c"])
    assert "wrong label: c says 336, and 334 is right" in shown.out


def test_the_handbook_is_counted_by_language_and_kind(evals: Evals) -> None:
    rows = evals.ok("handbook", "--json").json["rows"]

    assert rows[-1]["name"] == "all"
    assert 0 < rows[-1]["first"] <= rows[-1]["three"] <= rows[-1]["questions"]


def test_schemas_and_recordings_are_read_from_files(evals: Evals, place: Any) -> None:
    schemas, texts = place.folder / "schemas.jsonl", place.folder / "texts.jsonl"
    tests = [{"data": 1, "valid": True}, {"data": "a", "valid": False}]
    schemas.write_text(json.dumps({"id": "int", "schema": {"type": "integer"}, "tests": tests}) + "\n")
    texts.write_text(json.dumps({"model": {"solution": "So 2*3=<<2*3=6>>6."}}) + "\n")

    covered = evals.ok("maskbench", str(schemas)).json
    (found,) = evals.ok("recorded", str(texts), "--json").json["files"]

    assert (covered["strict"]["exact"], covered["strict"]["let through an invalid instance"]) == (1, [])
    assert (found["texts"], found["calls"], found["results"], found["mismatches"]) == (1, 1, 1, [])
