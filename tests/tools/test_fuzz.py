"""Odd inputs for each tool: nothing but an answer or a `ToolError`, and no input makes much work. `make explore` draws
others, and `python -m benches reach` gives each ten thousand.
"""

import os

import pytest

from taiwa.tools.registry import builtin_tools
from tests.fuzzing import EXPENSIVE_INPUTS, VALID_INPUTS, fuzz_tools

COUNT = int(os.environ.get("EXPLORE_ROUNDS", "1000"))
MOST_LINES = 200_000


@pytest.mark.fuzz
@pytest.mark.parametrize("name", builtin_tools())
def test_any_input_gives_an_answer_or_a_tool_error(name: str) -> None:
    found = fuzz_tools(name, COUNT)

    assert found.faults == ()
    assert found.answered > COUNT / 200
    assert found.most_lines < MOST_LINES, found.costliest


def test_every_tool_is_fuzzed_and_the_bombs_are_among_the_inputs() -> None:
    assert set(VALID_INPUTS) == set(builtin_tools())
    assert {"9**9**9**9", "(" * 100_000, "'1'*10**9"} < set(EXPENSIVE_INPUTS)
    assert max(map(len, EXPENSIVE_INPUTS)) >= 10_000_000
