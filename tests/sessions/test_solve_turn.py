"""Questions solved as turns of the app `solve`, and the programs that solve them."""

from collections.abc import Iterator
from typing import cast

import pytest

from taiwa import tool
from taiwa.apps.catalog import load_app, load_text
from taiwa.apps.examples import ExampleCall, WorkedExample, built_in_examples
from taiwa.flows.solve.rationale import Rationale, ToolMode
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.errors import ConfigError, InputError, OverloadedError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import Capability, Response, assistant
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.sessions.turn_programs import SHOTS, Solving
from taiwa.store import Store
from taiwa.tools.registry import builtin_tools, find_tools

TOOLS = tuple(builtin_tools().values())
CALCULATOR = find_tools(["calculator"])
BARE: frozenset[Capability] = frozenset()
OWN = (WorkedExample("own", "", "1 + 1?", (ExampleCall("calculator", "1+1"), "\nSo {1}."), "2"),)


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Store.open(":memory:") as store:
        yield Repository(store)


def solved(model: ScriptedModel, solving: Solving, question: str = "6 × 7?") -> Rationale:
    return Runtime(model, tools=solving.tools).run(solving.program(question, model.capabilities))


def begin(repository: Repository, model: ScriptedModel, **params: Json) -> Session:
    app = load_app("solve").with_params(params)
    return Session(repository, "", repository.start(app), PricedModel(model))


@pytest.mark.parametrize(
    ("solving", "capabilities", "way"),
    [
        (Solving(TOOLS), ALL_CAPABILITIES, "prefill"),
        (Solving(TOOLS), {"tools"}, "native"),
        (Solving(TOOLS), BARE, "stop"),
        (Solving(TOOLS, shots=3), {"tools"}, "stop"),
        (Solving(TOOLS, examples=OWN), {"tools"}, "stop"),
        (Solving(TOOLS, text_only=True), {"tools"}, "stop"),
        (Solving(TOOLS, text_only=True), ALL_CAPABILITIES, "prefill"),
        (Solving(TOOLS, SolveOptions(tool_mode="native")), ALL_CAPABILITIES, "native"),
        (Solving(()), {"tools"}, "stop"),
    ],
)
def test_the_tool_mode_follows_from_the_options_and_the_capabilities(
    solving: Solving, capabilities: frozenset[Capability], way: ToolMode
) -> None:
    model = scripted_model("So 42.", capabilities=frozenset(capabilities))

    assert solving.tool_mode(frozenset(capabilities)) == way
    assert solved(model, solving).tool_mode == way


def test_examples_are_shown_in_text_and_not_where_functions_are_called() -> None:
    solving = Solving(TOOLS)

    assert len(solving.select_shots("stop")) == SHOTS
    assert solving.select_shots("native") == ()
    assert len(Solving(TOOLS, shots=2).select_shots("native")) == 2


def test_examples_that_fit_the_tools_come_first() -> None:
    fitting = [worked for worked in built_in_examples() if set(worked.tools) <= {"calculator"}]

    chosen = Solving(CALCULATOR, shots=len(built_in_examples())).select_shots("stop")

    assert len(chosen) == len(built_in_examples())
    assert set(chosen[: len(fitting)]) == set(fitting)
    assert Solving(CALCULATOR, shots=20).select_shots("stop") == chosen[:20]


def test_results_of_tools_that_are_not_offered_are_stated_in_words() -> None:
    solving = Solving(CALCULATOR, shots=20)

    text = "\n".join(message.text for message in first_request(solving.program("6 × 7?", BARE), BARE).messages[1:])

    assert "<<calculator: " in text
    assert " g/mol" in text
    assert "molar_mass" not in text


def test_more_shots_than_examples_are_refused() -> None:
    with pytest.raises(InputError, match=r"shots must be at most 37"):
        Solving(TOOLS, shots=38).select_shots("stop")


def test_tools_that_no_example_calls_are_shown_without_examples() -> None:
    assert Solving((twice,)).select_shots("stop") == ()
    assert len(Solving((twice, *CALCULATOR)).select_shots("stop")) == SHOTS


def test_examples_of_the_caller_keep_their_order() -> None:
    more = (*OWN, *built_in_examples()[:3])

    assert Solving(TOOLS, examples=more).select_shots("native") == more
    assert Solving(TOOLS, examples=more, shots=2).select_shots("stop") == more[:2]


def test_the_first_request_is_the_one_that_is_sent() -> None:
    model = scripted_model("So 42.", capabilities=BARE)
    solving = Solving(TOOLS, shots=1)

    foretold = first_request(solving.program("6 × 7?", model.capabilities), model.capabilities)
    solved(model, solving)

    assert model.requests == [foretold]


def test_a_question_is_a_turn_of_a_conversation(repository: Repository) -> None:
    model = scripted_model(
        "It is <<calculator: 6 × 7>>",
        "\nAnswer: 42",
        "Half is <<calculator: 42 / 2>>",
        "\nAnswer: 21",
        capabilities=BARE,
    )
    session = begin(repository, model)

    first = session.say("6 × 7?")
    second = session.say("And half of it?")

    assert first.reply.findings.rationale is not None
    assert (first.reply.findings.rationale.answer, first.session) == ("42", "solve-1")
    assert cast("dict[str, Json]", second.findings)["calls"] == [
        {"name": "calculator", "input": "42 / 2", "result": "21", "error": ""}
    ]
    assert cast("dict[str, Json]", second.findings)["solved"] == {
        "answer": "21", "answered_by": "line", "ending": "end", "tool_mode": "stop"
    }  # fmt: skip
    asked = [message.text for message in model.requests[2].messages]
    assert asked[-3:] == ["6 × 7?", first.text, "And half of it?"]
    assert all(not each.difference for each in session.replay())
    session.undo()
    assert [turn.user for turn in session.turns] == ["6 × 7?"]
    assert repository.store.runs.run(1).status == "done"


def test_an_answer_that_was_asked_for_apart_belongs_to_what_is_said(repository: Repository) -> None:
    model = scripted_model("It is six times seven.", "42", capabilities=BARE)

    turn = begin(repository, model, answer_by="prompt", shots=0).say("6 × 7?")

    assert turn.text == "It is six times seven.\n42"


def test_a_turn_that_fails_keeps_what_was_paid_and_is_finished_later(repository: Repository) -> None:
    model = scripted_model("It is <<calculator: 6 × 7>>", OverloadedError("busy"), "Answer: 42", capabilities=BARE)
    session = begin(repository, model)
    with pytest.raises(OverloadedError):
        session.say("6 × 7?")

    assert repository.store.runs.run(1).status == "failed"
    assert len(repository.store.runs.journal(1)) >= 2
    assert session.say("6 × 7?").text.endswith("Answer: 42")


def test_limits_of_the_run_hold(repository: Repository) -> None:
    model = scripted_model(*["<<calculator: 6 × 7>> "] * 5, capabilities=BARE)
    session = begin(repository, model)
    session.options = TurnOptions(limits=UsageLimits(requests=1))

    turn = session.say("6 × 7?")

    assert turn.reply.findings.rationale is not None
    assert turn.reply.findings.rationale.ending == "limit"
    assert turn.spent.requests == 1


def test_what_a_program_cannot_take_is_refused_before_anything_is_stored(repository: Repository) -> None:
    model = scripted_model("Answer: 42", capabilities=BARE)
    session = begin(repository, model, shots=0)
    session.say("6 × 7?")

    with pytest.raises(
        InputError, match="has a program for its turns: its answers cannot be made to begin with a text"
    ):
        session.retry(prefix="So")
    with pytest.raises(InputError, match="the program of the app 'solve' does not take attachments"):
        session.say("Read it.", [b"a note"])

    assert repository.store.runs.unfinished(session.name) is None
    assert len(model.requests) == 1


def test_an_app_of_ones_own_solves_with_its_tools_and_instructions(repository: Repository) -> None:
    text = "---\ntaiwa: 1\nname: physics\nflow: solve\ntools: [unit_conversion]\n---\nYou teach physics.\n"
    model = scripted_model("<<unit_conversion: 36 km/h to m/s>>", "\nAnswer: 10 m/s", capabilities=BARE)
    session = Session(repository, "", repository.start(load_text(text, "physics.md", "physics")), PricedModel(model))

    turn = session.say("36 km/h in m/s?")

    assert turn.reply.findings.rationale is not None
    assert turn.reply.findings.rationale.answer == "10"
    opening = model.requests[0].messages[0].text
    assert opening.startswith("You teach physics.")
    assert "calculator" not in opening


@pytest.mark.parametrize(
    "key", ["state: { a: int }", "documents: { in: guides }", "---\nTeach.\n## example\nuser: a\nanswer: b"]
)
def test_what_solving_does_not_use_is_an_error(key: str) -> None:
    text = f"---\ntaiwa: 1\nname: physics\nflow: solve\n{key}\n---\nYou teach.\n"

    with pytest.raises(ConfigError, match=r"physics\.md:[57]: .* has no effect with `flow: solve`"):
        load_text(text, "physics.md", "physics")


def test_parameters_choose_the_tools_and_what_they_return(repository: Repository) -> None:
    model = scripted_model(
        "<<molar_mass: H2O>>", "Answer: 18", "<<calculator: 1/3>>", "Answer: 0.33", capabilities=BARE
    )

    school = begin(repository, model, only=["molar_mass"], weights="integer", shots=0).say("H2O?")
    rounded = begin(repository, model, only=["calculator"], round=2, shots=0).say("1/3?")

    assert school.reply.findings.rationale is not None
    assert rounded.reply.findings.rationale is not None
    assert [
        call.result.text for call in (*school.reply.findings.rationale.calls, *rounded.reply.findings.rationale.calls)
    ] == [
        "18 g/mol",
        "0.33",
    ]
    assert "calculator" not in str(model.requests[0].messages)


def test_a_tool_of_the_caller_is_offered_and_called(repository: Repository) -> None:
    model = scripted_model(Response(assistant("<<twice: 21>>")), "So 42.", capabilities=BARE)

    assert solved(model, Solving((twice,))).calls[0].result.value == 42


@tool
def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_an_empty_question_is_not_sent() -> None:
    model = scripted_model("So 42.")

    with pytest.raises(InputError, match="the question is empty"):
        solved(model, Solving(TOOLS), " \n")
    assert not model.requests
