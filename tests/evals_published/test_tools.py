"""Exercises are judged as a teacher would: by number within rounding, by proportion, by an honest refusal."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from evals.tools import solve_exercise
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.tools.registry import builtin_tools
from tests.evals_published.conftest import Evals


def call(name: str, text: str) -> ToolResult:
    tool = builtin_tools()[name]
    required = cast("list[str]", tool.spec.parameters["required"])
    return tool.call({required[0]: text})


def row(kind: str, given: Any, gold: Any) -> dict[str, Any]:
    return {"id": "x", "kind": kind, "input": given, "gold": gold}


@pytest.mark.parametrize(
    ("kind", "given", "gold", "right"),
    [
        ("arithmetic", "1/3", 0.333333333, True),
        ("arithmetic", "1/3", 0.33, True),
        ("arithmetic", "1/3", 0.34, False),
        ("arithmetic", "1/3", 0.3, False),
        ("arithmetic", "1/10^7", 1e-07, True),
        ("balance", "H2 + O2 -> H2O", "4H2 + 2O2 -> 4H2O", True),
        ("balance", "H2 + O2 -> H2O", "O2 + 2H2 -> 2H2O", True),
        ("balance", "H2 + O2 -> H2O", "H2 + O2 -> H2O", False),
        ("balance", "NO -> NO2", "NO -> NO2", False),
        ("balance_error", "NO -> NO2", "ERROR:cannot be balanced", True),
        ("balance_error", "CO + CO2 + H2 -> CH4 + H2O", "ERROR:underdetermined", True),
        ("balance_error", "H2 + O2 -> H2O", "ERROR:cannot be balanced", False),
        ("molar_mass", "H2O", 18.02, True),
        ("molar_mass", "H2O", 18.2, False),
        ("molar_mass", "h2o", 18.02, False),
        ("mass_percent", {"element": "N", "formula": "H2O"}, 5, False),
        ("mass_percent", {"element": "H2O", "formula": "CuSO4·5H2O"}, 36.08, True),
        ("mass_percent", {"element": "NH3", "formula": "Co(NH3)6Cl3"}, 38.2, True),
        ("mass_percent", {"element": "SO4^2-", "formula": "Al2(SO4)3"}, 84.2, True),
        ("mass_percent", {"element": "NH3", "formula": "H2O"}, 5, False),
        ("stoich", {"equation": "H2 + O2 -> H2O", "expression": "1"}, 1, False),
        ("stoich", {"expression": "2 * M[[Fe(CN)6]^4-]"}, 423.9, True),
        ("stoich", {"expression": "2 * M[H2O"}, 36, False),
        ("alchemy", "Pb -> Au", "ERROR:impossible", False),
    ],
)
def test_an_exercise_is_judged(kind: str, given: Any, gold: Any, right: bool) -> None:
    assert solve_exercise(row(kind, given, gold), call).right is right


def test_what_a_tool_refused_is_told() -> None:
    worked = solve_exercise(row("molar_mass", "h2o", 18.02), call)

    assert "h2o" in worked.error


def test_a_tool_that_always_fails_fails_the_exercise_and_not_the_run() -> None:
    def fails(name: str, text: str) -> ToolResult:
        raise ToolError("out of order")

    assert solve_exercise(row("arithmetic", "1+1", 2), fails).error == "out of order"


def test_the_tools_alone_get_every_shared_exercise_right(evals: Evals, shared_data: Path) -> None:
    found = evals.ok("tools", "--data", str(shared_data / "chemistry.jsonl"), "--json").json

    assert (found["n"], found["accuracy"], found["misses"]) == (30, 1.0, [])


def test_misses_and_recorded_calculations_are_listed(evals: Evals, place: Any) -> None:
    rows = [
        {"id": "a", "kind": "arithmetic", "input": "1+1", "gold": 3},
        {"id": "b", "kind": "alchemy", "input": "Pb", "gold": "Au"},
        {"id": "d", "question": "How many?", "answer": "10/4=<<10/4=2.5>>2.5, so <<2.5*4=11>>11\n#### 11"},
    ]
    path = place.folder / "mixed.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    found = evals.ok("tools", "--data", str(path), "--json").json
    shown = evals.ok("tools", "--data", str(path))

    assert (found["n"], found["right"], found["label_errors"]) == (4, 1, [])
    assert {miss["id"]: miss["got"] for miss in found["misses"]} == {"a": "2", "b": "", "d:2": "10"}
    assert shown.lines[0].startswith("1 of 4 right: 25.00 %")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"kind": "arithmetic", "input": "1"}', ":1: the field 'gold'"),
        ('{"kind": "arithmetic", "input": "1", "gold": "many"}', ":1: the field 'gold' must be a number"),
        ('{"kind": "arithmetic", "input": "1", "gold": "1e999999999"}', ":1: the field 'gold' must be a number"),
        ('{"answer": 1}', ":1: the field 'question'"),
        ('{"question": "Q"}', ":1: the field 'answer'"),
        ("{", ":1: not JSON"),
        ("", "holds nothing"),
    ],
)
def test_an_unusable_row_is_an_error_of_one_line_with_exit_code_2(
    evals: Evals, place: Any, text: str, complaint: str
) -> None:
    path = place.folder / "bad.jsonl"
    path.write_text(text)

    done = evals("tools", "--data", str(path))

    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
