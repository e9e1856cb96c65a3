"""Recovery on cases that nobody here wrote: other libraries' test suites, issue threads, and generated corruptions."""

import json
from pathlib import Path

import pytest

from taiwa.kernel import Json, OutputValidationError
from taiwa.structured import OutputType
from taiwa.structured.diagnostics import find_mismatches
from taiwa.structured.from_json_schema import form_of
from tests.structured.recorded import outcome, rows, score


def is_container(row: dict[str, object]) -> bool:
    tags = row["tags"]
    assert isinstance(tags, list)
    return "target-container" in tags and "valid-json" not in tags and row["outcome"] == "value"


def test_of_corrupted_answers_nearly_all_are_read_and_none_is_read_wrong(shared_data: Path) -> None:
    cases = [
        row for row in rows(shared_data / "malformed_mutations.jsonl") if not row["mutation"].startswith("truncated")
    ]

    found = score(cases)

    assert found["right"] / len(cases) >= 0.98
    assert found["wrong"] + found["guessed wrong"] == 0


def test_no_answer_that_was_cut_is_taken_for_a_whole_one(shared_data: Path) -> None:
    cases = [row for row in rows(shared_data / "malformed_mutations.jsonl") if row["mutation"].startswith("truncated")]

    assert {outcome(row) for row in cases} <= {"refused", "right"}


# What json_repair 0.64 reads on the same cases: instructor 4/4, langchain 7/7, baml 11/26, jsonrepair 62/99. Of a library's own
# opinions (json_repair drops a newline at the end of a string, jsonrepair reads `...` as nothing) the rest consists.
@pytest.mark.parametrize(
    ("source", "least"),
    [("instructor", 1.0), ("langchain", 1.0), ("baml", 0.5), ("jsonrepair", 0.65), ("json_repair", 0.7)],
)
def test_of_each_library_s_own_cases_more_are_read_than_by_its_peers(
    shared_data: Path, source: str, least: float
) -> None:
    cases = [
        row for row in rows(shared_data / "malformed.jsonl") if row["id"].startswith(f"{source}/") and is_container(row)
    ]

    found = score(cases)

    assert found["right"] / len(cases) >= least
    assert found["wrong"] / len(cases) <= 0.09


def test_what_a_library_refuses_is_refused(shared_data: Path) -> None:
    cases = [row for row in rows(shared_data / "malformed.jsonl") if row["outcome"] == "reject"]

    assert {outcome(row) for row in cases} == {"refused"}


def test_recorded_schemas_are_shown_and_their_instances_judged(shared_data: Path) -> None:
    for row in rows(shared_data / "maskbench.jsonl"):
        shape = OutputType.from_json_schema(row["schema"])
        assert shape.render().startswith("type ")

        for test in row["tests"]:
            unchecked = "format" in test["description"]  # a uri needs a library that jsonschema does not bring
            assert accepts(shape, test["data"]) == test["valid"] or unchecked, (row["id"], test["description"])


def test_the_walk_finds_no_fault_in_what_is_valid(shared_data: Path) -> None:
    for row in rows(shared_data / "maskbench.jsonl"):
        form = form_of(row["schema"])

        for test in row["tests"]:
            assert not (test["valid"] and find_mismatches(form, test["data"])), (row["id"], test["description"])


def accepts(shape: OutputType[Json], data: Json) -> bool:
    try:
        return shape.read(json.dumps(data)).value == data
    except OutputValidationError:
        return False
