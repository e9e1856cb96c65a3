import json
from pathlib import Path

import pytest

from evals.maskbench import BYTES, check_schemas, coverage_report, is_writable
from taiwa import constraints
from taiwa.kernel.messages import JsonSchema

NAMES = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}
ROWS = [
    {
        "id": "names",
        "schema": NAMES,
        "tests": [{"data": {"b": 1, "a": 2}, "valid": True}, {"data": {"b": 1}, "valid": False}],
    },
    {
        "id": "wrong",
        "schema": {"type": "integer"},
        "tests": [{"data": 1, "valid": False}, {"data": "x", "valid": True}],
    },
    {"id": "unique", "schema": {"type": "array", "uniqueItems": True}, "tests": [{"data": [1, 1], "valid": False}]},
]


def test_a_value_is_writable_if_some_order_of_its_keys_is() -> None:
    compiled = constraints.compile(JsonSchema(NAMES), BYTES)

    assert not compiled.accepts(b'{"b":1,"a":2}')
    assert is_writable(compiled, {"b": 1, "a": 2}, NAMES)
    assert not is_writable(compiled, {"b": 1}, NAMES)


def test_each_schema_is_judged_by_its_instances() -> None:
    names, wrong, unique = check_schemas(ROWS)

    assert (names.refused, names.let_through, names.kept_out) == ("", (), ())
    assert (wrong.let_through, wrong.kept_out) == (("0: ",), ("1: ",))
    assert "/: uniqueItems" in unique.refused


def test_the_figures_are_written_to_a_file(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "figures.json"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")

    report = coverage_report(rows, out)

    assert json.loads(out.read_text(encoding="utf-8")) == report
    assert report["strict"] == {
        "compiled": 2,
        "exact": 1,
        "let through an invalid instance": ["wrong"],
        "kept out a valid instance": ["wrong"],
        "refused for": {"uniqueItems": 1},
    }


@pytest.mark.slow
def test_on_the_shared_schemas_strict_lets_nothing_invalid_through_and_keeps_nothing_valid_out(
    shared_data: Path,
) -> None:
    rows = list(map(json.loads, (shared_data / "maskbench.jsonl").read_text(encoding="utf-8").splitlines()))
    # What lenient lets through is no fault; to try every order of the keys of these instances is most of the work.
    valid = [row | {"tests": [test for test in row["tests"] if test["valid"]]} for row in rows]

    strict, lenient = list(check_schemas(rows)), list(check_schemas(valid, strict=False))

    assert not any(each.let_through or each.kept_out for each in strict)
    assert not any(each.refused or each.kept_out for each in lenient)
