"""Texts made to exhaust a parser: each gives a value or an `OutputValidationError`, with work linear in its length."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import OutputType, ParseOptions, ParseResult
from tests.strategies import ODD, joined


class Tree(BaseModel):
    value: int = 0
    kids: list["Tree"] = []


class Order(BaseModel):
    name: str
    items: list[str] = []


TYPES: list[OutputType[Any]] = [OutputType(Any), OutputType(Tree), OutputType(Order)]
UNITS = (
    "[", "{", "[1,", '{"a":', "{x} ", "{} ", "[] ", '"', "'", '{"', '["', '{"a":"', '["a" ', "}", "]", "\\", "{{", "(", "[(", "`", "“",
    "// x\n", "/*", "# {\n", "```\n", "```{\n", "<think>", "</think>{", '{"a":1} ', '{"a":1},', '"a":1,', "a,", "a:b,", "...", "[-",
    '"x", "b', 'x"x', '"+"a', "{'a' ", ',]}\n"k":1', '{\\"a\\":', "A(", "{a:", "[[", '[{"a":', "｛", "，", "：", "\u00a0", "\ud7ff", "{{}}",
)  # fmt: skip


def calls(output_type: OutputType[Any], text: str) -> int:
    """Count the calls of a parse: a measure of work that does not depend on the machine."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        output_type.parse(text)
    except OutputValidationError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_the_work_grows_linearly_with_the_length_of_hostile_text(unit: str) -> None:
    for head in ("", '{"a": "'):
        once, twice = (calls(TYPES[2], head + unit * count) for count in (300, 600))

        assert twice < 2.3 * once + 500


def attempt(output_type: OutputType[Any], text: str, options: ParseOptions) -> ParseResult[Any] | OutputValidationError:
    try:
        return output_type.parse(text, options)
    except OutputValidationError as error:
        return error


@settings(max_examples=2 * settings().max_examples)
@given(
    joined([*UNITS, *ODD], max_size=40) | st.text(),
    st.sampled_from(TYPES),
)
def test_any_text_gives_a_result_or_an_output_validation_error(text: str, output_type: OutputType[Any]) -> None:
    found = attempt(output_type, text, ParseOptions())

    if isinstance(found, ParseResult):
        assert found.guessed == any(fix.level == "guess" for fix in found.fixes)
        assert all(0 <= fix.position <= len(text) for fix in found.fixes)
    else:
        assert found.diagnostics
        assert all("\n" not in line for line in found.diagnostics)


@given(
    joined([*UNITS, *ODD], min_size=1, max_size=4),
    joined(UNITS, max_size=3),
    st.sampled_from(TYPES),
)
def test_a_piece_repeated_thousands_of_times_gives_a_result_or_an_error(
    piece: str, tail: str, output_type: OutputType[Any]
) -> None:
    found = attempt(output_type, piece * (10_000 // len(piece)) + tail, ParseOptions())

    assert isinstance(found, (ParseResult, OutputValidationError))


@pytest.mark.parametrize(
    "text", ["[" * 1_000_000, "{" * 1_000_000, '{"a":' * 200_000, "[1," * 300_000, '"' * 1_000_000]
)
def test_a_million_characters_without_an_answer_are_refused_quickly(text: str) -> None:
    with pytest.raises(OutputValidationError):
        TYPES[0].parse(text)


def test_length_depth_and_work_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputValidationError, match="21 characters, at most 20"):
        TYPES[0].parse("x" * 21, ParseOptions(max_chars=20))
    with pytest.raises(OutputValidationError, match="nested deeper than 128"):
        TYPES[0].parse("[" * 129 + "]" * 129)
    monkeypatch.setattr("taiwa.structured.output_type.WORK_PER_CHAR", 0)
    with pytest.raises(OutputValidationError, match="too tangled"):
        TYPES[0].parse("{'a': 1, " * 1000)


def test_a_nearly_full_stack_is_an_output_validation_error() -> None:
    text = '{"kids": [' * 60 + "{}" + "]}" * 60

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            TYPES[1].parse(text.replace('"', "'"))

    for levels in range(sys.getrecursionlimit() - 400, sys.getrecursionlimit() - 60, 20):
        try:
            down(levels)
        except OutputValidationError:
            continue
        except RecursionError:
            break  # the stack had no room left for parsing
