"""Questions that are solved in runs that the store keeps."""

from collections.abc import Iterator

import pytest

from taiwa.apps.shots import built_in
from taiwa.flows.rationale import Rationale, Way
from taiwa.flows.reason import SolveOptions
from taiwa.flows.worked import Step, Worked
from taiwa.kernel import Ability, Done, InputError, Limits, OverloadedError, Response, TextDelta, assistant
from taiwa.models.scripted import EVERY_ABILITY, Scripted, script
from taiwa.shape import Shape
from taiwa.store import Store
from taiwa.talk.desk import Desk
from taiwa.talk.solving import SHOTS, Solving, solve
from taiwa.talk.turn import TurnOptions, Voice
from taiwa.tools import builtin, find, tool

TOOLS = tuple(builtin().values())
CALCULATOR = find(["calculator"])
BARE: frozenset[Ability] = frozenset()
OWN = (Worked("own", "", "1 + 1?", (Step("calculator", "1+1"), "\nSo {1}."), "2"),)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Store.open(":memory:") as store:
        yield Desk(store)


def solved(desk: Desk, model: Scripted, solving: Solving, question: str = "6 × 7?") -> Rationale:
    events = list(solve(desk, Voice(model), TurnOptions(), solving, question))
    done = events[-1]
    assert isinstance(done, Done)
    return done.value


@pytest.mark.parametrize(
    ("solving", "abilities", "way"),
    [
        (Solving(TOOLS), EVERY_ABILITY, "prefill"),
        (Solving(TOOLS), {"tools"}, "native"),
        (Solving(TOOLS), BARE, "stop"),
        (Solving(TOOLS, shots=3), {"tools"}, "stop"),
        (Solving(TOOLS, examples=OWN), {"tools"}, "stop"),
        (Solving(TOOLS, text_only=True), {"tools"}, "stop"),
        (Solving(TOOLS, text_only=True), EVERY_ABILITY, "prefill"),
        (Solving(TOOLS, SolveOptions(tool_mode="native")), EVERY_ABILITY, "native"),
        (Solving(()), {"tools"}, "stop"),
    ],
)
def test_the_way_follows_from_what_is_wanted_and_what_the_server_can(
    desk: Desk, solving: Solving, abilities: frozenset[Ability], way: Way
) -> None:
    model = script("So 42.", abilities=frozenset(abilities))

    assert solving.tool_mode(frozenset(abilities)) == way
    assert solved(desk, model, solving).way == way


def test_examples_are_shown_in_text_and_not_where_functions_are_called() -> None:
    solving = Solving(TOOLS)

    assert len(solving.chosen("stop")) == SHOTS
    assert solving.chosen("native") == ()
    assert len(Solving(TOOLS, shots=2).chosen("native")) == 2


def test_examples_that_fit_the_tools_come_first() -> None:
    fitting = [worked for worked in built_in() if set(worked.tools) <= {"calculator"}]

    chosen = Solving(CALCULATOR, shots=len(built_in())).chosen("stop")

    assert len(chosen) == len(built_in())
    assert set(chosen[: len(fitting)]) == set(fitting)
    assert Solving(CALCULATOR, shots=20).chosen("stop") == chosen[:20]


def test_what_a_tool_gives_that_is_not_offered_is_stated_in_words() -> None:
    solving = Solving(CALCULATOR, shots=20)

    text = "\n".join(message.text for message in solving.first_request("6 × 7?", BARE).messages[1:])

    assert "<<calculator: " in text
    assert "CO2: 44.009 g/mol" in text
    assert "molar_mass" not in text


def test_there_are_only_so_many_examples() -> None:
    with pytest.raises(InputError, match=r"shots must be at most 34"):
        Solving(TOOLS, shots=35).chosen("stop")


def test_tools_that_no_example_calls_are_shown_without_examples() -> None:
    assert Solving((twice,)).chosen("stop") == ()
    assert len(Solving((twice, *CALCULATOR)).chosen("stop")) == SHOTS


def test_one_s_own_examples_keep_their_order() -> None:
    more = (*OWN, *built_in()[:3])

    assert Solving(TOOLS, examples=more).chosen("native") == more
    assert Solving(TOOLS, examples=more, shots=2).chosen("stop") == more[:2]


def test_what_an_answer_depends_on_is_in_the_options() -> None:
    solving = Solving(TOOLS)
    others = (
        Solving(CALCULATOR), Solving(TOOLS, shots=2), Solving(TOOLS, seed=1), Solving(TOOLS, examples=OWN),
        Solving(TOOLS, options=SolveOptions(on_error="stop")), Solving(TOOLS, options=SolveOptions(output_type=Shape(int))),
    )  # fmt: skip

    assert solving.recorded("stop") == Solving(TOOLS).recorded("stop")
    assert all(solving.recorded("stop") != other.recorded("stop") for other in others)
    assert solving.recorded("stop") != solving.recorded("prefill")


def test_the_first_request_is_the_one_that_is_sent(desk: Desk) -> None:
    model = script("So 42.", abilities=BARE)
    solving = Solving(TOOLS, shots=1)

    foretold = solving.first_request("6 × 7?", model.abilities)
    solved(desk, model, solving)

    assert model.requests == [foretold]


def test_calls_and_bill_are_in_the_store(desk: Desk) -> None:
    model = script("It is <<calculator: 6 × 7>>", "So 42.", abilities=BARE)

    assert solved(desk, model, Solving(TOOLS)).answer == "42"

    run = desk.store.runs.run(1)
    assert (run.status, run.text) == ("done", "6 × 7?")
    assert [entry.kind for entry in desk.store.runs.journal(1)].count("effect") >= 3


def test_a_run_that_fails_or_is_left_keeps_what_was_paid(desk: Desk) -> None:
    model = script("It is <<calculator: 6 × 7>>", OverloadedError("busy"), abilities=BARE)
    with pytest.raises(OverloadedError):
        solved(desk, model, Solving(TOOLS))
    events = solve(desk, Voice(script("So 42.", chunk=1)), TurnOptions(), Solving(TOOLS), "6 × 7?")
    while not isinstance(next(events), TextDelta):
        pass
    events.close()

    runs = desk.store.runs
    assert [runs.run(number).status for number in (1, 2)] == ["failed", "abandoned"]
    assert len(runs.journal(1)) >= 2


def test_limits_of_the_run_hold(desk: Desk) -> None:
    model = script(*["<<calculator: 6 × 7>> "] * 5, abilities=BARE)
    events = list(solve(desk, Voice(model), TurnOptions(limits=Limits(requests=1)), Solving(TOOLS), "6 × 7?"))

    done = events[-1]
    assert isinstance(done, Done)
    assert done.value.ending == "limit"
    assert done.spent.requests == 1


def test_a_tool_of_one_s_own_is_offered_and_called(desk: Desk) -> None:
    model = script(Response(assistant("<<twice: 21>>")), "So 42.", abilities=BARE)

    assert solved(desk, model, Solving((twice,))).calls[0].result.value == 42


@tool
def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_an_empty_question_is_not_sent(desk: Desk) -> None:
    model = script("So 42.")

    with pytest.raises(InputError, match="the question is empty"):
        solved(desk, model, Solving(TOOLS), " \n")
    assert not model.requests
