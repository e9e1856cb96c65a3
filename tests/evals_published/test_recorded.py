"""Recordings are played again without a difference, and what is odd in them is counted by name."""

import ast
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from operator import add, mul, sub, truediv
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evals.recorded import replay
from evals.recorded.replay import CHUNKERS, ReplayCounts, replay_rows
from evals.recorded.sums import RecordedSum, check_recorded_sum
from taiwa.flows.solve.loops import StopAtCall
from taiwa.flows.solve.tool_call_formats import Scanner
from taiwa.kernel.effects import WatchResult
from taiwa.kernel.errors import InputError

SOLUTIONS = "gsm8k_gpt3_calculator"
"""Every fourth row of the corpus, which is a fair sample, and every one with something odd."""
CORPORA = (
    "tora_tora-70b-v1.0_gsm8k",
    "tora_tora-code-34b-v1.0_gsm8k",
    "react_fever_text-davinci-002",
    "reflexion_react_hotpotqa",
    "fireact_ft-gpt-3.5_hotpotqa",
    "taubench_gpt-4o_airline",
)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / "replay_tools" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def solutions(folder: Path, *, fair: bool) -> ReplayCounts:
    return replay_rows(row for row in rows(folder, SOLUTIONS) if (row["row"] % 4 == 0) == fair)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_played_again_without_a_difference(shared_data: Path, name: str) -> None:
    tally = replay_rows(rows(shared_data, name))

    assert tally.mismatches == ()
    assert tally.texts > 10
    assert tally.calls > 50
    assert tally.results >= tally.calls - tally.hazards.get("a call without a result", 0)


@pytest.mark.parametrize("fair", [True, False])
def test_solutions_are_played_again_without_a_difference(shared_data: Path, fair: bool) -> None:
    tally = solutions(shared_data, fair=fair)

    assert tally.mismatches == ()
    assert tally.texts > 10
    assert tally.calls > 50
    assert tally.results >= tally.calls - tally.hazards.get("a call without a result", 0)


def test_nearly_every_recorded_calculation_is_read(shared_data: Path) -> None:
    fair = solutions(shared_data, fair=True)

    assert fair.calculated > 3_000
    assert fair.parsed >= 0.998


def test_what_is_refused_is_no_arithmetic(shared_data: Path) -> None:
    both = [solutions(shared_data, fair=fair) for fair in (True, False)]
    refused = [each.expression for part in both for each in part.sums if each.agreement == "refused"]

    assert refused
    assert all(any(char.isalpha() for char in each) for each in refused)


def test_where_our_value_differs_from_the_record_the_record_is_wrong(shared_data: Path) -> None:
    both = [solutions(shared_data, fair=fair) for fair in (True, False)]
    differing = [each for part in both for each in part.sums if each.agreement == "differs"]

    assert 0 < len(differing) < sum(part.calculated for part in both) / 250
    for each in differing:
        tree = ast.parse(each.expression.replace("¾", "(3/4)"), mode="eval")
        assert Fraction(each.got) == worked(tree.body) != Fraction(each.recorded)


def worked(node: ast.expr) -> Fraction:
    """What the four operations give, worked out another way."""
    if isinstance(node, ast.BinOp):
        left, right = worked(node.left), worked(node.right)
        by: dict[type, Any] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}
        return Fraction(by[type(node.op)](left, right))
    assert isinstance(node, ast.Constant)
    return Fraction(str(node.value))


def test_what_is_odd_in_a_text_is_counted_by_name() -> None:
    react = "Action 1: Login\nObservation 1: Invalid\nAction 2: Search[x]\nThought: no."
    fence = "```python\n1\n```\n```output\n1\n```\n```python\n2\n```"
    gsm: dict[str, Any] = {"solution": "<<1+1=2 and\n<<2+2=4>>4 so <<3+"}

    assert replay_rows([{"raw": react}]).hazards == {
        "an action that is not a call": 1,
        "an observation without a call": 1,
        "a call without a result": 1,
    }
    assert replay_rows([{"gt_cot": "", "code": [fence]}]).hazards == {"a call with which the text ends": 1}
    assert replay_rows([{"gt_cot": "", "code": ["```python\n1\n"]}]).hazards == {"a block that is not closed": 1}
    assert replay_rows([{"model": gsm}]).hazards == {"a call without a result": 1, "an unfinished call": 1}


class Forgetful:
    """Looks at each piece by itself, as a search for a stop string in a chunk does."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def feed(self, text: str) -> WatchResult:
        return StopAtCall(self._scanner).feed(text)


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "StopAtCall", Forgetful)

    tally = replay_rows([{"model": {"solution": "It is <<12*3=36>>36."}}])

    assert {"0 model: tokens", "0 model: characters"} <= set(tally.mismatches)


def test_the_ways_to_cut_keep_every_character() -> None:
    text = "Héllo, 東京 <<1.5*2=\n\n3>>```output\n\u2028x"

    for cut in CHUNKERS.values():
        assert "".join(cut(Random(1), text)) == text
        assert list(cut(Random(1), text)) == list(cut(Random(1), text))


@pytest.mark.parametrize(
    ("expression", "recorded", "agreement", "got"),
    [
        ("16-3", "13", "equal", "13"),
        ("1,000*2", "$2,000.", "equal", "2000"),
        (".5*3", "1.50", "equal", "3/2"),
        ("2/3", "0.6666666666666666", "rounded", "2/3"),
        ("2/3", "0.67", "rounded", "2/3"),
        ("2/3", "0.7", "differs", "2/3"),
        ("10*(2/3)", "8", "differs", "20/3"),
        ("1+1", "2s", "unreadable", "2"),
        ("1+1", "", "unreadable", "2"),
        ("X*.25", "19.5", "refused", None),
    ],
)
def test_a_recorded_sum_is_done_again(expression: str, recorded: str, agreement: str, got: str | None) -> None:
    done = check_recorded_sum(expression, recorded)

    assert done.agreement == agreement
    assert got is None or done == RecordedSum(expression, recorded, got, done.agreement)


def conversation(**more: Any) -> dict[str, Any]:
    call = {"id": "a", "type": "function", "function": {"name": "calculate", "arguments": '{"expression": "1 + 1"}'}}
    calls = [{**call, **more}]
    return {
        "traj": [
            {"role": "user", "content": "What is 1 + 1? 日本語で"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "name": "calculate", "content": "2.0"},
            {"role": "assistant", "content": "二です。"},
        ]
    }


def test_native_calls_go_through_the_wire_and_their_sums_are_done_again() -> None:
    tally = replay_rows([conversation()])

    assert (tally.texts, tally.calls, tally.results, tally.mismatches, tally.hazards) == (1, 1, 1, (), {})
    assert (tally.calculated, tally.parsed, tally.sums) == (1, 1.0, ())


@pytest.mark.parametrize("arguments", ["{", '["x"]', '{"expression": 1', ""])
def test_arguments_that_are_no_object_are_counted(arguments: str) -> None:
    tally = replay_rows([conversation(function={"name": "calculate", "arguments": arguments})])

    assert tally.hazards == {"arguments that are not a JSON object": 1}
    assert tally.calculated == 0


def test_a_result_without_its_call_and_a_repeated_call_are_counted() -> None:
    row = conversation(id="b")
    twice = conversation()
    twice["traj"] = [*twice["traj"], *twice["traj"]]

    assert replay_rows([row]).hazards == {"a call without a result": 1, "a result without a call": 1}
    assert replay_rows([twice]).hazards == {"the same call twice in a row": 1, "a repeated id": 1}
    assert replay_rows([twice]).mismatches == ()


def test_a_row_of_no_known_corpus_is_refused() -> None:
    def given() -> Iterator[dict[str, Any]]:
        yield {"raw": "Thought: x"}
        yield {"question": "?", "answer": "!"}

    with pytest.raises(InputError, match="row 1: unknown corpus with the fields question, answer"):
        replay_rows(given())
