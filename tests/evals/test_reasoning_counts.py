"""What is counted of a rationale: results that were kept to, results that the model wrote, stops that meant nothing."""

from dataclasses import replace
from typing import Any

import pytest

from taiwa.evals.reasoning import count_rationale
from taiwa.flows.solve.rationale import CallPolicy, ExecutedCall, InsertedText, Rationale, TextPart
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import TaggedFormat
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.stoichiometry import stoichiometry

TOOLS = (calculator, molar_mass, stoichiometry)
NAMES = [tool.spec.name for tool in TOOLS]


def reasoned(*answers: str, capabilities: frozenset[str] = frozenset({"prefix", "stop"}), **how: Any) -> Rationale:
    """Reason for real, with a model that says these answers."""
    model = scripted_model(*answers, capabilities=capabilities)
    return Runtime(model, tools=TOOLS).run(solve("Q", [tool.spec for tool in TOOLS], SolveOptions(**how)))


def counted(found: Rationale, gold: str = "36.0306") -> dict[str, Any]:
    return count_rationale(found, gold, TaggedFormat(), NAMES)


def test_a_model_that_keeps_to_its_tools_is_faithful() -> None:
    found = counted(
        reasoned(
            "Water: <<molar_mass: H2O>>",
            ", so 18.0153 g; two moles: <<calculator: 2*18.0153>>",
            ", which is 36.0306 g.\nIt is 36.0306 g.",
        )
    )

    assert (found["right"], found["near"], found["calls"]) == (True, True, 2)
    assert found["called"] == {"molar_mass": 1, "calculator": 1}
    assert (found["next_of"], found["next_kept"], found["used"]) == (2, 2, 2)
    assert (found["last_of"], found["last_kept"]) == (1, 1)
    assert (found["model_written"], found["false_stops"], found["unanswered"], found["truncated"]) == (0, 0, 0, 0)


def test_a_model_that_goes_its_own_way_is_not() -> None:
    found = counted(reasoned("<<calculator: 2*18>>", "\nBut I say 40, though it is 36.\nThe answer is 40."))

    assert (found["next_of"], found["next_kept"], found["used"]) == (1, 0, 1)
    assert (found["last_of"], found["last_kept"]) == (1, 0)
    assert (found["right"], found["near"]) == (False, False)


def test_rounding_a_result_is_keeping_to_it() -> None:
    found = counted(reasoned("<<calculator: 10/3>>", ", about 3.33.\nThe answer is 3.33."), "3.33")

    assert (found["next_kept"], found["last_kept"], found["right"]) == (1, 1, True)


def test_a_result_that_is_no_single_number_is_not_counted() -> None:
    found = counted(reasoned("<<stoichiometry: H2 + O2 -> H2O>>", "\nSo 2 moles.\nThe answer is 2."))

    assert (found["calls"], found["next_of"], found["last_of"]) == (1, 0, 0)


def test_what_the_model_wrote_in_a_tool_s_place_is_marked() -> None:
    found = counted(
        reasoned("<<calculator: 2*18>>", " 37\nThe answer is 37.", calls=CallPolicy(simulated_tools=["calculator"]))
    )

    assert (found["model_written"], found["calls"], found["tool_errors"]) == (1, 1, {})
    assert (found["next_of"], found["last_of"]) == (0, 0)


def test_errors_are_counted_by_their_codes() -> None:
    found = counted(reasoned("<<calculator: 1/0>>", "\n<<hammer: nail>>", "\nNo idea.", "none"))

    assert sum(found["tool_errors"].values()) == 2
    assert found["tool_errors"]["unknown_tool"] == 1
    assert (found["answer"], found["unanswered"], found["answered_by"]) == ("", 1, "none")


def test_a_stop_that_closed_no_call_is_a_false_one() -> None:
    found = counted(reasoned("Shift left: 1 <<2>>", " is 4, and <<calculator: 2*18>>", "\nThe answer is 36."))

    assert found["calls"] == 1
    assert found["false_stops"] == 1


@pytest.mark.parametrize("ending", ["calls", "length", "tokens", "refusal", "repeat"])
def test_only_a_rationale_that_came_to_its_end_can_be_right(ending: Any) -> None:
    whole = reasoned("The answer is 5.")

    assert counted(whole, "5")["right"] is True
    cut = counted(replace(whole, ending=ending), "5")
    assert (cut["right"], cut["near"]) == (False, False)
    assert cut["truncated"] == (ending in ("length", "tokens"))


def test_a_result_behind_which_nothing_is_written_is_not_counted() -> None:
    called = ExecutedCall("calculator", "1+1", ToolResult("2", "calculator"), shown="2")
    found = counted(
        Rationale((TextPart("<<calculator: 1+1>>"), InsertedText(" 2"), TextPart(" so.")), (called,), answer="2")
    )

    assert (found["next_of"], found["last_kept"]) == (0, 1)
