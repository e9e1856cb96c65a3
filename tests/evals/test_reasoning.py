"""The work of the evaluation: what a model sees under each setting, and what comes of a whole evaluation of a script."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from taiwa.evals.data import DataSet, Item
from taiwa.evals.reasoning import (
    STEP_BY_STEP,
    THEREFORE,
    Grid,
    ReasoningOptions,
    ReasoningTask,
    reasoning_chart,
    reasoning_lines,
    reasoning_report,
)
from taiwa.evals.report import NO_FIGURE, to_markdown
from taiwa.evals.run import EvalRow, Evaluation, Job, RunOptions
from taiwa.flows.solve.rationale import SolveLimits
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Request
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model

TOOLS = ("calculator", "stoichiometry", "molar_mass")
ITEMS = tuple(
    Item(str(n), f"How much do {n} moles of water weigh?", str(18 * n), "even" if n % 2 == 0 else "odd")
    for n in range(1, 5)
)
DATA = DataSet("water.jsonl", "d" * 64, ITEMS)


def pupil(request: Request) -> str:
    """Ask the tool, and say what it gave, or 17 where it gave nothing; without one, always 18."""
    if request.prefix.endswith("(arabic numerals) is"):
        return " 18."
    if request.prefix:
        result = request.prefix.rpartition(">>")[2].strip()
        return f", so it is\n{result}" if result else " 17\nIt is 17."
    shown = any("molar_mass" in message.text for message in request.messages)
    count = request.messages[-1].text.split()[3]
    return f"<<calculator: {count} * 18>>" if shown else "It is 18."


def work(grid: Grid, model: ScriptedModel | None = None, **solving: Any) -> ReasoningTask:
    return ReasoningTask(
        ReasoningOptions(TOOLS, **solving), grid.settings(), given_model=model or scripted_model(*[pupil] * 1000)
    )


def first(reasoning: ReasoningTask, setting: str) -> Request:
    return reasoning.first_request(Job(setting, ITEMS[0]))


def evaluated(evaluation: Evaluation) -> list[EvalRow]:
    async def run() -> list[EvalRow]:
        return [row async for row in evaluation.run()]

    return asyncio.run(run())


def test_without_examples_the_two_cues_of_zero_shot_chain_of_thought_lead() -> None:
    model = scripted_model(" 17.", " One mole weighs 18 g.", " 18.", capabilities=ALL_CAPABILITIES)
    one = DataSet("water.jsonl", "d" * 64, ITEMS[:1])
    with Evaluation(
        work(Grid(TOOLS, (0,), ("none",)), model, limits=SolveLimits(max_tokens=100)), one, RunOptions(width=1)
    ) as evaluation:
        found = {row.setting: (row.found["answer"], row.found["right"]) for row in evaluated(evaluation)}

    assert [request.prefix for request in model.requests] == [
        "",  # the question alone
        STEP_BY_STEP,
        f"{STEP_BY_STEP} One mole weighs 18 g.\n{THEREFORE}",
    ]
    assert found == {"Zero-Shot": ("17", False), "Zero-Shot+CoT": ("18", True)}


def test_cues_stand_in_the_conversation_where_texts_are_cut() -> None:
    reasoning = work(Grid(TOOLS, (0,), ("none",)), tool_mode="stop")

    (message,) = first(reasoning, "Zero-Shot+CoT").messages
    assert message.text == f"{ITEMS[0].text}\n\n{STEP_BY_STEP}"
    assert STEP_BY_STEP not in str(first(reasoning, "Zero-Shot"))


def test_no_prompt_forbids_the_results_that_a_model_is_to_write() -> None:
    reasoning = work(Grid(TOOLS, (2,), ("cal", "all"), modes=("execution", "exposure")))

    prompts = [first(reasoning, name).messages[0].text for name in reasoning.settings]

    assert not any("Never write" in prompt for prompt in prompts)
    assert prompts[0] == prompts[-1]  # the mode execution changes no prompt


def test_more_examples_are_the_same_and_some_more() -> None:
    reasoning = work(Grid(TOOLS, (2, 5, 20), ("all",)))
    two, five, twenty = (first(reasoning, f"+ALL@{n}").messages[1:-1] for n in (2, 5, 20))

    assert (len(two), len(five), len(twenty)) == (4, 10, 40)
    assert five[:4] == two
    assert twenty[:10] == five


def test_another_order_shows_other_examples_first() -> None:
    reasoning = work(Grid(TOOLS, (5,), ("all",), orders=2))

    assert first(reasoning, "+ALL@5").messages[1:-1] != first(reasoning, "+ALL@5 order 1").messages[1:-1]


def test_examples_show_what_the_tools_give_with_the_weights_that_they_have() -> None:
    texts = {}
    for weights in ("integer", "iupac"):
        reasoning = work(Grid(TOOLS, (20,), ("all",)), weights=weights)
        texts[weights] = str(first(reasoning, "+ALL@20"))

    assert "<<molar_mass: C8H10N4O2>> 194 g/mol" in texts["integer"]
    assert "<<molar_mass: C8H10N4O2>> 194.19" in texts["iupac"]


def test_an_example_at_once_is_its_last_line_alone() -> None:
    messages = first(work(Grid(TOOLS, (4,), ("none",))), "Few-Shot@4").messages

    answers = [message.text for message in messages if message.role == "assistant"]
    assert len(answers) == 4
    assert not any("\n" in answer or "<<" in answer for answer in answers)


def test_settings_with_functions_show_their_examples_as_calls() -> None:
    reasoning = work(Grid(TOOLS, (3,), ("all",)), tool_mode="native")

    request = first(reasoning, "+ALL@3")

    assert {tool.name for tool in request.tools} == set(TOOLS)
    assert any(message.role == "tool" for message in request.messages)


def test_a_tool_without_examples_of_its_own_is_shown_those_of_others_in_words() -> None:
    reasoning = ReasoningTask(
        ReasoningOptions(("molar_mass",)),
        Grid(("molar_mass",), (20,), ("all",)).settings(),
        given_model=scripted_model("x"),
    )

    text = str(first(reasoning, "+ALL@20"))

    assert "<<molar_mass" in text
    assert "<<calculator" not in text


def test_too_many_examples_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InputError, match="90 worked examples requested"):
        work(Grid(TOOLS, (90,), ("all",))).check()


def test_a_whole_evaluation_adds_up(tmp_path: Path) -> None:
    grid = Grid(TOOLS, (0, 3), ("none", "cal", "all"))
    with Evaluation(work(grid), DATA, RunOptions(folder=tmp_path)) as evaluation:
        rows = evaluated(evaluation)
        lines: Any = reasoning_lines(evaluation.measured, (), grid.settings(), grid.full)
        found = {line["setting"]: line for line in lines}
        report = reasoning_report(evaluation, grid)

    assert len(rows) == len(grid.settings()) * 4
    whole, none = found["+ALL@3"], found["Few-Shot+CoT@3"]
    assert (whole["n"], whole["accuracy"], whole["accuracy_tolerant"], whole["calls"]) == (4, 1.0, 1.0, 4)
    assert (found["+CAL@3"]["accuracy"], none["accuracy"], found["Zero-Shot"]["accuracy"]) == (1.0, 0.0, 0.25)
    assert none["model_written"] == 4
    assert none["mcnemar"] == {"against": "+ALL@3", "pairs": 4, "only_this": 0, "only_that": 4, "p": 0.125}
    assert [(one["class"], one["n"], one["accuracy"]) for one in found["Zero-Shot"]["classes"]] == [
        ("even", 2, 0.0), ("odd", 2, 0.5),
    ]  # fmt: skip
    # The model is scripted: what adds up here is not reported.
    assert NO_FIGURE in to_markdown(report)
    assert "100.00" not in to_markdown(report)
    assert all(line["accuracy"] is None and line["classes"] is None for line in report.without_scripted_figures().lines)
    assert reasoning_chart(report).bars == ()


def test_the_report_of_a_model_has_classes_spread_and_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReasoningTask, "scripted", False)
    grid = Grid(TOOLS, (1, 3), ("none", "all"), orders=2)
    with Evaluation(work(grid), DATA) as evaluation:
        evaluated(evaluation)
        report = reasoning_report(evaluation, grid)

    page, chart = to_markdown(report), reasoning_chart(report)
    assert "## By class" in page
    assert "| +ALL@3 | 100.0 / 100.0 | 100.0 / 100.0 |" in page
    assert "+ALL@3 100.00 to 100.00" in page
    assert [bar.label for bar in chart.bars][:2] == ["Few-Shot+CoT@1", "Few-Shot+CoT@1 order 1"]
    assert [(series.label, [point.at for point in series.points]) for series in chart.series] == [
        ("Few-Shot+CoT", [1, 3]), ("+ALL", [1, 3]),
    ]  # fmt: skip


def test_a_grown_grid_goes_on_with_the_rows_that_are_there(tmp_path: Path) -> None:
    model = scripted_model(*[pupil] * 1000)
    for ablations in (("none",), ("none", "all")):
        grid = Grid(TOOLS, (0,), ablations)
        with Evaluation(work(grid, model), DATA, RunOptions(folder=tmp_path)) as evaluation:
            kept, asked = evaluation.kept, len(evaluated(evaluation))

    assert (kept, asked) == (8, 4)
    assert len(evaluation.rows.headers) == 2


def test_fewer_items_are_measured_of_the_rows_that_are_there(tmp_path: Path) -> None:
    grid = Grid(TOOLS, (0,), ("none",))
    with Evaluation(work(grid), DATA, RunOptions(folder=tmp_path)) as evaluation:
        evaluated(evaluation)
    few = DataSet(DATA.name, DATA.digest, ITEMS[:1])
    with Evaluation(work(grid), few, RunOptions(folder=tmp_path)) as evaluation:
        assert (evaluation.left, len(evaluation.measured)) == (0, 2)


def test_a_way_that_the_model_cannot_go_ends_it_at_once() -> None:
    model = scripted_model(*[pupil] * 50, capabilities=frozenset())
    grid = Grid(TOOLS, (2,), ("all",))

    with (
        Evaluation(work(grid, model, tool_mode="prefill"), DATA, RunOptions(1)) as evaluation,
        pytest.raises(UnsupportedError),
    ):
        evaluated(evaluation)

    assert evaluation.measured == []


def test_all_that_answers_depend_on_is_written_down(tmp_path: Path) -> None:
    grid = Grid(TOOLS, (0,), ("none",))
    own = tmp_path / "rows.jsonl"
    with Evaluation(
        work(grid, tool_format="inline", weights="integer"), DATA, RunOptions(folder=tmp_path)
    ) as evaluation:
        evaluated(evaluation)

    header = json.loads(own.read_text().splitlines()[0])
    assert header["options"]["protocol"] == "inline"
    assert header["options"]["bounds"] == {
        "max_tool_calls": 10,
        "max_tokens": 2000,
        "max_repeats": 3,
        "max_false_stops": 20,
    }
    assert header["options"]["sampling"]["temperature"] == 0.0
    assert header["scripted"] is True
    assert set(header) == {
        "format", "evaluation", "model", "scripted", "data", "data_hash", "date", "program", "settings", "options",
    }  # fmt: skip


def test_a_question_that_is_shown_as_an_example_is_found() -> None:
    reasoning = work(Grid(TOOLS))
    question = reasoning.solving.pool()[0].question

    assert reasoning.overlap((*ITEMS, Item("same", f"  {question.upper()} ", "1"))) == ("same",)


def test_no_worked_example_is_a_shared_question(shared_data: Path) -> None:
    from taiwa.evals.data import read_questions

    for name in ("numglue_task2.jsonl", "chemistry.jsonl"):
        assert work(Grid(TOOLS)).overlap(read_questions(shared_data / name).items) == ()
