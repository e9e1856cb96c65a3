"""One tool, several doors: the same input gives the same result from Python, from text, by a native call and in a worker."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from taiwa.flows.tagged import Tagged
from taiwa.kernel import CallTool, Program, Runtime, ToolError, ToolResult, perform
from taiwa.kernel.values import ToolCall
from taiwa.lab.exercises import Call, work
from taiwa.tools import Isolated, builtin, isolated, strict

EXERCISES = [
    {"id": "a", "kind": "arithmetic", "input": "1,000 × (2 + 1/2)%", "gold": 25},
    {"id": "b", "kind": "balance", "input": "Al + Cl2 -> AlCl3", "gold": "2Al + 3Cl2 -> 2AlCl3"},
    {"id": "c", "kind": "balance_error", "input": "NO -> NO2", "gold": "ERROR:cannot be balanced"},
    {"id": "d", "kind": "molar_mass", "input": "MgSO4·7H2O", "gold": 246.47},
    {"id": "e", "kind": "mass_percent", "input": {"element": "O", "formula": "CO2"}, "gold": 72.7},
    {"id": "f", "kind": "moles_to_mass", "input": {"moles": "0.25", "formula": "K2[PtCl6]"}, "gold": 121.5},
    {"id": "g", "kind": "mass_to_moles", "input": {"mass": "36.03", "formula": "H2O"}, "gold": 2},
    {
        "id": "h",
        "kind": "stoich",
        "input": {"equation": "N2 + 3H2 -> 2NH3", "expression": "28.014 / M[N2] * 2 * M[NH3]"},
        "gold": 34.06,
    },
]


def needed(name: str) -> str:
    """The one parameter that a built-in tool needs."""
    return str(cast("list[str]", builtin()[name].spec.parameters["required"])[0])


def by_python(name: str, text: str) -> ToolResult:
    """The function itself, called as one."""
    function: Callable[..., ToolResult] = builtin()[name]
    plain = function(text)
    return ToolResult(plain.text, name, value=plain.value)


def by_text(name: str, text: str) -> ToolResult:
    """A trigger in a text, or its JSON form where the input has signs of a trigger in it."""
    written = f"So it is <<{name}: {text}>>"
    if ">" in text:
        written = f"So it is <<{name}: {text.replace('->', '→')}>>"
    trigger = Tagged().scanner(builtin()).feed(written)
    assert trigger is not None
    return by_runtime(trigger.name, Tagged().arguments(builtin()[name].spec, trigger.input))


def by_native_call(name: str, text: str) -> ToolResult:
    """A call as a model writes it for the strict form: JSON text with every parameter."""
    required = cast("list[str]", strict(builtin()[name].spec).parameters["required"])
    call = ToolCall(name, json.dumps({each: text if each == needed(name) else None for each in required}))
    return by_runtime(call.name, json.loads(call.arguments))


def by_runtime(name: str, given: Mapping[str, Any]) -> ToolResult:
    """The effect that a program asks with."""

    def program() -> Program[ToolResult]:
        return (yield from perform(CallTool(name, dict(given))))

    return Runtime(tools=tuple(builtin().values())).run(program())


@pytest.fixture(scope="module")
def by_worker() -> Iterator[Call]:
    apart: dict[str, Isolated] = {name: isolated(tool) for name, tool in builtin().items()}
    yield lambda name, text: apart[name].call({needed(name): text})
    for each in apart.values():
        each.close()


@pytest.mark.parametrize("row", EXERCISES, ids=lambda row: str(row["kind"]))
@pytest.mark.parametrize("door", [by_python, by_text, by_native_call])
def test_an_exercise_is_right_through_every_door(row: Mapping[str, Any], door: Call) -> None:
    worked = work(row, door)

    assert worked.right, worked


def test_every_textbook_item_is_right_and_the_same_through_every_door(shared_data: Path, by_worker: Call) -> None:
    rows = [json.loads(line) for line in (shared_data / "chemistry.jsonl").read_text(encoding="utf-8").splitlines()]

    for row in rows:
        worked = [work(row, door) for door in (by_python, by_text, by_native_call, by_worker)]

        assert worked[0].right, worked[0]
        assert worked == [worked[0]] * 4


@pytest.mark.parametrize(
    ("name", "text"),
    [("calculator", "1/0"), ("molar_mass", "SO42-"), ("stoichiometry", "H2"), ("unit_conversion", "1 m to s")],
)
def test_an_error_is_the_same_through_every_door(name: str, text: str, by_worker: Call) -> None:
    said = set[tuple[str, str, str]]()

    for door in (by_python, by_text, by_native_call, by_worker):
        with pytest.raises(ToolError) as caught:
            door(name, text)
        said.add((caught.value.message, caught.value.code, caught.value.hint))

    assert len(said) == 1
