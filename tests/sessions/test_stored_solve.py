"""Questions solved in stored runs."""

from collections.abc import Generator, Iterator
from typing import cast

import pytest

from taiwa import tool
from taiwa.apps.examples import ExampleCall, WorkedExample, built_in_examples
from taiwa.flows.solve.rationale import Rationale, ToolMode
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.errors import InputError, OverloadedError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import Capability, Response, TextDelta, assistant
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.stored_solve import SHOTS, ReasonRun, solve_and_store
from taiwa.store import Store
from taiwa.structured import OutputType
from taiwa.tools.registry import builtin_tools, find_tools

TOOLS = tuple(builtin_tools().values())
CALCULATOR = find_tools(["calculator"])
BARE: frozenset[Capability] = frozenset()
OWN = (WorkedExample("own", "", "1 + 1?", (ExampleCall("calculator", "1+1"), "\nSo {1}."), "2"),)


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Store.open(":memory:") as store:
        yield Repository(store)


def solved(repository: Repository, model: ScriptedModel, solving: ReasonRun, question: str = "6 × 7?") -> Rationale:
    events = list(solve_and_store(repository, PricedModel(model), TurnOptions(), solving, question))
    done = events[-1]
    assert isinstance(done, RunResult)
    return done.value


@pytest.mark.parametrize(
    ("solving", "capabilities", "way"),
    [
        (ReasonRun(TOOLS), ALL_CAPABILITIES, "prefill"),
        (ReasonRun(TOOLS), {"tools"}, "native"),
        (ReasonRun(TOOLS), BARE, "stop"),
        (ReasonRun(TOOLS, shots=3), {"tools"}, "stop"),
        (ReasonRun(TOOLS, examples=OWN), {"tools"}, "stop"),
        (ReasonRun(TOOLS, text_only=True), {"tools"}, "stop"),
        (ReasonRun(TOOLS, text_only=True), ALL_CAPABILITIES, "prefill"),
        (ReasonRun(TOOLS, SolveOptions(tool_mode="native")), ALL_CAPABILITIES, "native"),
        (ReasonRun(()), {"tools"}, "stop"),
    ],
)
def test_the_tool_mode_follows_from_the_options_and_the_capabilities(
    repository: Repository, solving: ReasonRun, capabilities: frozenset[Capability], way: ToolMode
) -> None:
    model = scripted_model("So 42.", capabilities=frozenset(capabilities))

    assert solving.tool_mode(frozenset(capabilities)) == way
    assert solved(repository, model, solving).tool_mode == way


def test_examples_are_shown_in_text_and_not_where_functions_are_called() -> None:
    solving = ReasonRun(TOOLS)

    assert len(solving.select_shots("stop")) == SHOTS
    assert solving.select_shots("native") == ()
    assert len(ReasonRun(TOOLS, shots=2).select_shots("native")) == 2


def test_examples_that_fit_the_tools_come_first() -> None:
    fitting = [worked for worked in built_in_examples() if set(worked.tools) <= {"calculator"}]

    chosen = ReasonRun(CALCULATOR, shots=len(built_in_examples())).select_shots("stop")

    assert len(chosen) == len(built_in_examples())
    assert set(chosen[: len(fitting)]) == set(fitting)
    assert ReasonRun(CALCULATOR, shots=20).select_shots("stop") == chosen[:20]


def test_results_of_tools_that_are_not_offered_are_stated_in_words() -> None:
    solving = ReasonRun(CALCULATOR, shots=20)

    text = "\n".join(message.text for message in solving.first_request("6 × 7?", BARE).messages[1:])

    assert "<<calculator: " in text
    assert " g/mol" in text
    assert "molar_mass" not in text


def test_more_shots_than_examples_are_refused() -> None:
    with pytest.raises(InputError, match=r"shots must be at most 37"):
        ReasonRun(TOOLS, shots=38).select_shots("stop")


def test_tools_that_no_example_calls_are_shown_without_examples() -> None:
    assert ReasonRun((twice,)).select_shots("stop") == ()
    assert len(ReasonRun((twice, *CALCULATOR)).select_shots("stop")) == SHOTS


def test_examples_of_the_caller_keep_their_order() -> None:
    more = (*OWN, *built_in_examples()[:3])

    assert ReasonRun(TOOLS, examples=more).select_shots("native") == more
    assert ReasonRun(TOOLS, examples=more, shots=2).select_shots("stop") == more[:2]


def test_the_recorded_options_have_all_that_an_answer_depends_on() -> None:
    solving = ReasonRun(TOOLS)
    others = (
        ReasonRun(CALCULATOR), ReasonRun(TOOLS, shots=2), ReasonRun(TOOLS, seed=1), ReasonRun(TOOLS, examples=OWN),
        ReasonRun(TOOLS, options=SolveOptions(on_error="stop")), ReasonRun(TOOLS, options=SolveOptions(output_type=OutputType(int))),
    )  # fmt: skip

    assert solving.to_json("stop") == ReasonRun(TOOLS).to_json("stop")
    assert all(solving.to_json("stop") != other.to_json("stop") for other in others)
    assert solving.to_json("stop") != solving.to_json("prefill")


def test_the_first_request_is_the_one_that_is_sent(repository: Repository) -> None:
    model = scripted_model("So 42.", capabilities=BARE)
    solving = ReasonRun(TOOLS, shots=1)

    foretold = solving.first_request("6 × 7?", model.capabilities)
    solved(repository, model, solving)

    assert model.requests == [foretold]


def test_calls_and_bill_are_in_the_store(repository: Repository) -> None:
    model = scripted_model("It is <<calculator: 6 × 7>>", "So 42.", capabilities=BARE)

    assert solved(repository, model, ReasonRun(TOOLS)).answer == "42"

    run = repository.store.runs.run(1)
    assert (run.status, run.text) == ("done", "6 × 7?")
    assert [entry.kind for entry in repository.store.runs.journal(1)].count("effect") >= 3


def test_a_run_that_fails_or_is_left_keeps_what_was_paid(repository: Repository) -> None:
    model = scripted_model("It is <<calculator: 6 × 7>>", OverloadedError("busy"), capabilities=BARE)
    with pytest.raises(OverloadedError):
        solved(repository, model, ReasonRun(TOOLS))
    events = solve_and_store(
        repository, PricedModel(scripted_model("So 42.", chunk=1)), TurnOptions(), ReasonRun(TOOLS), "6 × 7?"
    )
    while not isinstance(next(events), TextDelta):
        pass
    cast("Generator[object]", events).close()

    runs = repository.store.runs
    assert [runs.run(number).status for number in (1, 2)] == ["failed", "abandoned"]
    assert len(runs.journal(1)) >= 2


def test_limits_of_the_run_hold(repository: Repository) -> None:
    model = scripted_model(*["<<calculator: 6 × 7>> "] * 5, capabilities=BARE)
    events = list(
        solve_and_store(
            repository, PricedModel(model), TurnOptions(limits=UsageLimits(requests=1)), ReasonRun(TOOLS), "6 × 7?"
        )
    )

    done = events[-1]
    assert isinstance(done, RunResult)
    assert done.value.ending == "limit"
    assert done.spent.requests == 1


def test_a_tool_of_the_caller_is_offered_and_called(repository: Repository) -> None:
    model = scripted_model(Response(assistant("<<twice: 21>>")), "So 42.", capabilities=BARE)

    assert solved(repository, model, ReasonRun((twice,))).calls[0].result.value == 42


@tool
def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_an_empty_question_is_not_sent(repository: Repository) -> None:
    model = scripted_model("So 42.")

    with pytest.raises(InputError, match="the question is empty"):
        solved(repository, model, ReasonRun(TOOLS), " \n")
    assert not model.requests
