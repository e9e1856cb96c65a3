"""Parsing of recorded cases: test suites of other libraries, issue threads, and generated corruptions."""

import json
from pathlib import Path

import pytest

from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType
from taiwa.structured.from_json_schema import type_ir_from_schema
from taiwa.structured.validators import find_mismatches
from tests.structured.recorded import outcome, rows, score


def is_container(row: dict[str, object]) -> bool:
    tags = row["tags"]
    assert isinstance(tags, list)
    return "target-container" in tags and "valid-json" not in tags and row["outcome"] == "value"


def test_nearly_all_corrupted_answers_are_parsed_and_none_wrongly(shared_data: Path) -> None:
    cases = [
        row for row in rows(shared_data / "malformed_mutations.jsonl") if not row["mutation"].startswith("truncated")
    ]

    found = score(cases)

    assert found["right"] / len(cases) >= 0.98
    assert found["wrong"] + found["guessed wrong"] == 0


def test_cut_answers_are_refused_or_right(shared_data: Path) -> None:
    cases = [row for row in rows(shared_data / "malformed_mutations.jsonl") if row["mutation"].startswith("truncated")]

    assert {outcome(row) for row in cases} <= {"refused", "right"}


# json_repair 0.64 on the same cases: instructor 4/4, langchain 7/7, baml 11/26, jsonrepair 62/99. The other cases record
# opinions of a library (json_repair drops a newline at the end of a string, jsonrepair reads `...` as nothing).
@pytest.mark.parametrize(
    ("source", "least"),
    [("instructor", 1.0), ("langchain", 1.0), ("baml", 0.5), ("jsonrepair", 0.65), ("json_repair", 0.7)],
)
def test_the_cases_of_other_libraries_are_parsed_at_least_as_often_as_recorded(
    shared_data: Path, source: str, least: float
) -> None:
    cases = [
        row for row in rows(shared_data / "malformed.jsonl") if row["id"].startswith(f"{source}/") and is_container(row)
    ]

    found = score(cases)

    assert found["right"] / len(cases) >= least
    assert found["wrong"] / len(cases) <= 0.09


def test_texts_that_another_library_refuses_are_refused(shared_data: Path) -> None:
    cases = [row for row in rows(shared_data / "malformed.jsonl") if row["outcome"] == "reject"]

    assert {outcome(row) for row in cases} == {"refused"}


def test_recorded_schemas_are_rendered_and_their_instances_validated(shared_data: Path) -> None:
    for row in rows(shared_data / "maskbench.jsonl"):
        output_type = OutputType.from_json_schema(row["schema"])
        assert output_type.render().startswith("type ")

        for test in row["tests"]:
            unchecked = "format" in test["description"]  # a uri needs a library that jsonschema does not bring
            assert accepts(output_type, test["data"]) == test["valid"] or unchecked, (row["id"], test["description"])


def test_valid_data_has_no_mismatches(shared_data: Path) -> None:
    for row in rows(shared_data / "maskbench.jsonl"):
        form = type_ir_from_schema(row["schema"])

        for test in row["tests"]:
            assert not (test["valid"] and find_mismatches(form, test["data"])), (row["id"], test["description"])


def accepts(output_type: OutputType[Json], data: Json) -> bool:
    try:
        return output_type.parse(json.dumps(data)).value == data
    except OutputValidationError:
        return False
