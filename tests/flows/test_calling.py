import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.calling import shown
from taiwa.flows.tagged import Tagged
from taiwa.kernel import Json, ToolError, ToolSpec


def spec(properties: dict[str, Json], required: list[Json] | None = None) -> ToolSpec:
    return ToolSpec("t", "A tool.", {"type": "object", "properties": properties, "required": required or []})


@given(st.text())
def test_a_result_fits_on_a_line_and_holds_no_mark(result: str) -> None:
    line = shown(result)

    assert 0 < len(line) <= 500
    assert line.isprintable()
    assert "<<" not in line
    assert ">>" not in line
    assert line == line.strip()


@pytest.mark.parametrize(
    ("tool", "text", "given_arguments"),
    [
        (spec({"expression": {"type": "string"}}), "1 + 1", {"expression": "1 + 1"}),
        (spec({"expression": {"type": "string"}}), '{"a": 1}', {"expression": '{"a": 1}'}),
        (spec({"expression": {"type": "string"}}), '{"expression": "1"}', {"expression": "1"}),
        (spec({"count": {"type": "integer"}}), "3", {"count": 3}),
        (spec({"count": {"type": "integer"}}), "three", {"count": "three"}),
        (spec({"count": {"type": "number"}}), "NaN", {"count": "NaN"}),
        (spec({"a": {"type": "string"}, "b": {"type": "string"}}, ["a"]), "x", {"a": "x"}),
        (spec({"a": {}, "b": {}}), '{"a": 1, "b": [2]}', {"a": 1, "b": [2]}),
        (spec({}), "", {}),
    ],
)
def test_an_input_becomes_arguments(tool: ToolSpec, text: str, given_arguments: dict[str, Json]) -> None:
    assert Tagged().arguments(tool, text) == given_arguments


def test_several_arguments_need_an_object() -> None:
    with pytest.raises(ToolError, match="must be a JSON object") as caught:
        Tagged().arguments(spec({"a": {}, "b": {}}), "x")

    assert caught.value.hint == '<<t: {"a": …, "b": …}>>'


def test_a_deeply_nested_input_is_only_text() -> None:
    assert Tagged().arguments(spec({"a": {"type": "array"}}), "[" * 1000) == {"a": "[" * 1000}
