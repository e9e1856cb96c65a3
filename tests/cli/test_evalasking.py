"""`taiwa eval clarify|rewrite|retrieve|answer`: tables, JSON, folders and one-line errors, with no model and with one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MODEL, Speaker, Taiwa

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


def test_what_an_index_finds_is_a_row_for_each_set(taiwa: Taiwa, questions: str) -> None:
    told = taiwa.ok("eval", "retrieve", "--data", questions, "--json").json

    (row,) = told["rows"]
    assert (told["evaluation"], told["model"], told["failed"]) == ("retrieve", "", 0)
    assert (row["setting"], row["set"], row["n"], row["ndcg10"], row["mrr"]) == ("question", "leave", 2, 1.0, 1.0)
    assert row["ndcg10_interval"] == [1.0, 1.0]


def test_the_shipped_questions_are_a_set(taiwa: Taiwa) -> None:
    told = taiwa.ok("eval", "clarify", "--data", "taiwa:handbook", "--limit", "5", "--json").json

    assert [(row["set"], row["n"]) for row in told["rows"]] == [("handbook", 5)] * 4


def test_extracts_are_measured_without_a_model_and_leave_a_folder(taiwa: Taiwa, questions: str, place: Any) -> None:
    folder: Path = place.folder / "run"

    first = taiwa.ok("eval", "answer", "--data", questions, "--out", str(folder))
    again = taiwa.ok("eval", "answer", "--data", questions, "--out", str(folder), "--resume")

    assert sorted(path.name for path in folder.iterdir()) == [
        "chart.png", "chart.svg", "rows.jsonl", "summary.json", "table.md",
    ]  # fmt: skip
    assert "4 rows were there before, 0 are left" in again.err
    assert "leave  extractive, passage withheld" in first.out
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 5


def test_a_model_is_asked_only_where_it_is_named(taiwa: Taiwa, speaker: Speaker, questions: str) -> None:
    before = len(speaker.requests)
    quiet = taiwa.ok("eval", "answer", "--data", questions, "--json").json
    assert (len(quiet["rows"]), len(speaker.requests) - before) == (2, 0)

    speaker(*['{"in_documents": false, "statements": [], "missing": "all"}'] * 4)
    told = taiwa.ok("eval", "answer", "--data", questions, "-m", speaker.model, "--json").json

    found = {row["setting"]: row for row in told["rows"]}
    assert told["model"].endswith(MODEL)
    assert (
        found["model, cited"]["refused_answerable"],
        found["model, cited, passage withheld"]["refused_unanswerable"],
    ) == (1.0, 1.0)


def test_what_would_be_measured_is_told_before(taiwa: Taiwa, questions: str) -> None:
    shown = taiwa.ok("eval", "retrieve", "--data", questions, "--dry-run")

    assert shown.lines[1].split() == ["leave", "questions", "2", "2"]
    assert shown.lines[-1] == "2 turns, 2 rows"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("clarify",), "leave: no row says whether it must be asked back (read as questions)"),
        (("rewrite",), "leave: no row has turns before the last"),
        (("retrieve", "--only", "other"), "--only: there is no set 'other'; there are leave"),
        (("retrieve", "--passages", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("retrieve", "--language", "klingon"), "unknown stemmer language 'klingon'"),
        (("clarify", "--policies", "guess"), "'guess' is no policy"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_exit_2(
    taiwa: Taiwa, questions: str, words: tuple[str, ...], complaint: str
) -> None:
    done = taiwa("eval", words[0], "--data", questions, *words[1:])

    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_help_shows_what_can_be_done(taiwa: Taiwa) -> None:
    for name in ("clarify", "rewrite", "retrieve", "answer"):
        assert f"taiwa eval {name} --data" in taiwa.ok("eval", name, "--help").out
