"""`taiwa eval retrieve` and `extract`: figures of a user's own questions and texts, and one-line errors."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa

PASSAGES = [
    {"id": "p1", "title": "Paid leave", "text": "Paid leave is asked for in the portal."},
    {"id": "p2", "title": "Sick leave", "text": "Sick leave needs a note from the doctor."},
]
QUESTIONS = [
    {"id": "q1", "question": "who writes the note for sick leave", "relevant": ["p2"]},
    {"id": "q2", "question": "where is paid leave asked for", "relevant": ["p1"]},
]


@pytest.fixture
def questions(place: Place) -> str:
    folder: Path = place.folder
    for name, rows in (("leave_passages", PASSAGES), ("leave_questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(folder / "leave_questions.jsonl")


def test_what_an_index_finds_is_a_row_for_each_set(taiwa: Taiwa, questions: str) -> None:
    found = taiwa.ok("eval", "retrieve", "--data", questions, "--json").json

    (row,) = found["rows"]
    assert (found["evaluation"], found["model"], found["failed"]) == ("retrieve", "", 0)
    assert (row["setting"], row["set"], row["n"], row["ndcg10"], row["mrr"]) == ("question", "leave", 2, 1.0, 1.0)
    assert row["ndcg10_interval"] == [1.0, 1.0]


def test_a_dry_run_prints_what_would_be_measured(taiwa: Taiwa, questions: str) -> None:
    shown = taiwa.ok("eval", "retrieve", "--data", questions, "--dry-run")

    assert shown.lines[1].split() == ["leave", "questions", "2", "2"]
    assert shown.lines[-1] == "2 turns, 2 rows"


def test_a_history_is_a_second_setting(taiwa: Taiwa, questions: str, place: Place) -> None:
    history = [{"role": "user", "content": "I am ill."}, {"role": "assistant", "content": "Get well soon."}]
    rows = [{**QUESTIONS[0], "question": "who writes the note for sick leave then", "history": history}]
    (place.folder / "leave_questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    found = taiwa.ok("eval", "retrieve", "--data", questions, "--json").json

    assert [row["setting"] for row in found["rows"]] == ["question", "question in its dialogue"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--only", "other"), "--only: unknown set 'other'; choose among leave"),
        (("--passages", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("--language", "klingon"), "unknown stemmer language 'klingon'"),
    ],
)
def test_unusable_data_is_an_error_of_one_line_with_exit_code_2(
    taiwa: Taiwa, questions: str, words: tuple[str, ...], complaint: str
) -> None:
    done = taiwa("eval", "retrieve", "--data", questions, *words)

    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["name", "count"],
    "additionalProperties": False,
}


@pytest.fixture
def orders(place: Place) -> tuple[str, str]:
    """A type and a file of texts with expected values."""
    rows = [
        {"id": "a", "text": "two teas", "expected": {"name": "tea", "count": 2}},
        {"id": "b", "text": "a scone", "expected": {"name": "scone", "count": 1}},
    ]
    schema, data = place.folder / "order.json", place.folder / "orders.jsonl"
    schema.write_text(json.dumps(SCHEMA))
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(schema), str(data)


def test_extraction_is_measured_by_exact_values_and_fields(
    taiwa: Taiwa, model_server: ModelServer, orders: tuple[str, str]
) -> None:
    model_server('{"name": "tea", "count": 2}', '{"name": "scone", "count": 2}')

    found = taiwa.ok("eval", "extract", orders[0], "--data", orders[1], "--mode", "prompt", "-j", "1", "--json").json

    (row,) = found["rows"]
    assert (found["evaluation"], row["set"], row["n"], row["exact"], row["f1"]) == ("extract", "orders", 2, 0.5, 0.75)
    assert (row["valid"], row["field_precision"]) == (1.0, 0.75)


def test_an_answer_that_cannot_be_read_counts_as_wrong(
    taiwa: Taiwa, model_server: ModelServer, orders: tuple[str, str]
) -> None:
    model_server("no", "no")

    found = taiwa.ok(
        "eval", "extract", orders[0], "--data", orders[1], "--mode", "prompt", "--max-repairs", "0", "-j", "1", "--json"
    ).json

    assert [(row["exact"], row["f1"], row["valid"], row["failed"]) for row in found["rows"]] == [(0.0, 0.0, 0.0, 0)]


def test_the_first_request_of_an_extraction_is_shown(
    taiwa: Taiwa, model_server: ModelServer, orders: tuple[str, str]
) -> None:
    before = len(model_server().requests)

    shown = taiwa.ok("eval", "extract", orders[0], "--data", orders[1], "--dry-run", "-v")

    assert shown.lines[0].startswith("2 requests, the first of ")
    assert "two teas" in shown.out
    assert len(model_server.requests) == before


def test_help_shows_what_can_be_done(taiwa: Taiwa) -> None:
    for name in ("reason", "retrieve"):
        assert f"taiwa eval {name} --data" in taiwa.ok("eval", name, "--help").out
    assert "taiwa eval extract shop:Order --data" in taiwa.ok("eval", "extract", "--help").out


MIXED = (
    {"question": "2 + 2?", "answer": "<<2+2=4>>4", "id": "a"},
    {"text": "no question"},
    {"question": "3 + 3?", "answer": None},
    {"question": "4 + 4?", "answer": "<<4+4=8>>8", "kind": "sum"},
)


def test_a_number_in_place_of_a_text_to_extract_from_is_a_row_of_another_form(
    taiwa: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "orders.jsonl"
    data.write_text('{"text": 12, "expected": {}}\n', encoding="utf-8")
    (tmp_path / "any.json").write_text('{"type": "object"}', encoding="utf-8")

    refused = taiwa("eval", "extract", str(tmp_path / "any.json"), "--data", str(data))

    assert refused.code == 2
    assert f"{data}:1: the field 'text' must be a text" in refused.err


def test_strict_judges_no_set_that_only_leaves_out(taiwa: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "question": "tea?", "relevant": ["p"]}\n', encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"words": 1}\n', encoding="utf-8")
    for name in ("a", "b"):
        (tmp_path / f"{name}_passages.jsonl").write_text('{"id": "p", "text": "Tea is hot."}\n', encoding="utf-8")
    sets = ("--data", str(tmp_path / "a.jsonl"), "--data", str(tmp_path / "b.jsonl"))

    assert taiwa("eval", "retrieve", *sets, "--strict", "--only", "a").code == 0
    assert "b.jsonl:1" in taiwa("eval", "retrieve", *sets, "--strict").err


def test_rows_of_another_form_are_skipped_with_their_lines_and_strict_stops(taiwa: Taiwa, tmp_path: Path) -> None:
    command = ("reason", "-m", "ollama:x", "--shots", "0", "--tools-on", "none", "--dry-run")
    data = tmp_path / "mixed.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in MIXED) + "not json\n[1]\n")

    shown = taiwa.ok("eval", *command, "--data", str(data))
    skipped = taiwa.ok("eval", *command, "--data", str(data), "--json").json["skipped"]
    strict = taiwa("eval", *command, "--data", str(data), "--strict")

    assert "4 rows have another form" in shown.err
    assert {line.split(":")[1] for line in skipped} == {"2", "3", "5", "6"}
    assert f"{data}:5: not JSON" in shown.err
    assert (strict.code, len(strict.err.splitlines())) == (2, 1)


def test_only_the_kinds_that_are_asked_for_are_judged(taiwa: Taiwa, tmp_path: Path) -> None:
    data = tmp_path / "mixed.jsonl"
    rows = (
        *MIXED,
        {"text": "x", "expected": {"a": 1}, "kind": "good"},
        {"text": 5.5, "kind": "bad"},
        {"kind": "good", "text": ""},
    )
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    schema = tmp_path / "a.json"
    schema.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')

    reason = taiwa.ok(
        "eval", "reason", "-m", "ollama:x", "--shots", "0", "--data", str(data), "--only", "sum", "--dry-run", "--json"
    )
    extract = taiwa.ok(
        "eval", "extract", str(schema), "-m", "ollama:x", "--data", str(data), "--only", "good", "--dry-run"
    )

    assert (reason.json["items"], reason.json["skipped"]) == (1, [])
    assert "1 row has another form" in extract.err
    assert f"{data}:7: the field 'expected' is missing" in extract.err


def test_the_report_says_how_many_rows_were_skipped(taiwa: Taiwa, tmp_path: Path) -> None:
    data = tmp_path / "few_questions.jsonl"
    rows = [
        {"id": "1", "question": "leave?", "relevant": ["p"]},
        {"id": "2", "question": 4},
        {"question": "x", "relevant": []},
    ]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "few_passages.jsonl").write_text('{"id": "p", "text": "Days of leave."}\n{"id": "q"}\n')

    result = taiwa.ok("eval", "retrieve", "--data", str(data), "--out", str(tmp_path / "run"))

    assert "few_passages.jsonl:2: the field 'text' is missing" in result.err
    assert "3 rows of the data have another form and were skipped." in (tmp_path / "run" / "table.md").read_text()
    assert f"{data}:2: the field 'relevant' is missing" in result.err
    assert taiwa("eval", "retrieve", "--data", str(data), "--strict").code == 2
