"""Texts made to exhaust a reader: each ends in a value or a `OutputValidationError` after work that grows with its length only."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from taiwa.kernel import OutputValidationError
from taiwa.structured import OutputType, ParseOptions, ParseResult


class Tree(BaseModel):
    value: int = 0
    kids: list["Tree"] = []


class Order(BaseModel):
    name: str
    items: list[str] = []


SHAPES: list[OutputType[Any]] = [OutputType(Any), OutputType(Tree), OutputType(Order)]
UNITS = (
    "[", "{", "[1,", '{"a":', "{x} ", "{} ", "[] ", '"', "'", '{"', '["', '{"a":"', '["a" ', "}", "]", "\\", "{{", "(", "[(", "`", "“",
    "// x\n", "/*", "# {\n", "```\n", "```{\n", "<think>", "</think>{", '{"a":1} ', '{"a":1},', '"a":1,', "a,", "a:b,", "...", "[-",
    '"x", "b', 'x"x', '"+"a', "{'a' ", ',]}\n"k":1', '{\\"a\\":', "A(", "{a:", "[[", '[{"a":', "｛", "，", "：", "\u00a0", "\ud7ff", "{{}}",
)  # fmt: skip


def calls(shape: OutputType[Any], text: str) -> int:
    """Count the calls that a reading makes: a measure of work that does not depend on the machine."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        shape.read(text)
    except OutputValidationError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_the_work_of_a_bomb_grows_with_its_length_and_no_faster(unit: str) -> None:
    for head in ("", '{"a": "'):
        once, twice = (calls(SHAPES[2], head + unit * count) for count in (300, 600))

        assert twice < 2.3 * once + 500


def attempt(shape: OutputType[Any], text: str, rules: ParseOptions) -> ParseResult[Any] | OutputValidationError:
    try:
        return shape.read(text, rules)
    except OutputValidationError as error:
        return error


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(UNITS) | st.text(max_size=3), max_size=40).map("".join),
    st.sampled_from(SHAPES),
    st.booleans(),
)
def test_any_text_is_a_reading_or_a_shape_error(text: str, shape: OutputType[Any], partial: bool) -> None:
    found = attempt(shape, text, ParseOptions(partial=partial))

    if isinstance(found, ParseResult):
        assert found.guessed == any(fix.level == "guess" for fix in found.fixes)
        assert all(0 <= fix.position <= len(text) for fix in found.fixes)
    else:
        assert found.diagnostics
        assert all("\n" not in line for line in found.diagnostics)


@pytest.mark.parametrize(
    "text", ["[" * 1_000_000, "{" * 1_000_000, '{"a":' * 200_000, "[1," * 300_000, '"' * 1_000_000]
)
def test_a_million_characters_of_nothing_end_soon(text: str) -> None:
    with pytest.raises(OutputValidationError):
        SHAPES[0].read(text)


def test_a_reading_may_be_given_less_room() -> None:
    with pytest.raises(OutputValidationError, match="21 characters, at most 20"):
        SHAPES[0].read("x" * 21, ParseOptions(most_chars=20))
    with pytest.raises(OutputValidationError, match="nested deeper than 2"):
        SHAPES[0].read("[[[1]]]", ParseOptions(most_depth=2))
    with pytest.raises(OutputValidationError, match="too tangled"):
        SHAPES[0].read("{'a': 1, " * 1000, ParseOptions(work_per_char=0))


def test_a_stack_that_is_nearly_full_is_a_shape_error() -> None:
    text = '{"kids": [' * 60 + "{}" + "]}" * 60

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            SHAPES[1].read(text.replace('"', "'"))

    for levels in range(sys.getrecursionlimit() - 400, sys.getrecursionlimit() - 60, 20):
        try:
            down(levels)
        except OutputValidationError:
            continue
        except RecursionError:
            break  # there was no room left to begin in
