"""The built-in model is right or silent: how sure it is of a solution, and what `solve` does with that."""

import pytest

from taiwa.client import Client
from taiwa.flows.solve.solve import SolveOptions
from taiwa.models.builtin.confidence import fits, own_tokens
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.scripted import scripted_model

MODEL = BuiltinModel()
SURE = "How many grams do 3 moles of sulfuric acid weigh?"
BEYOND = (
    "How many atoms are in 1 mole of carbon?",
    "What is the atomic number of iron?",
    "Convert 5 bananas to metres",
    "How many flurbs are 7 litres?",
    "8モゲラは何メートルですか",
    "What are 3 hours in kilograms?",
    "What is 5 + 3? And what is 7 * 2?",
    "How many litres are 3 gallons and how many km are 5 miles?",
    "A pen costs 2 dollars. A pen costs 3 dollars. What do 4 pens cost?",
    "Wie viel Liter sind 3 Gallonen?",
    "Who wrote Faust?",
    "Which is heavier, 1 kg of feathers or 2 pounds of lead?",
    "A bus leaves at 8:35. When does it arrive?",
    "4加7等于几,3英里是多少公里?",
    "一本书8元。一本书9元。三本书多少钱?",
)
"""What no tool knows, units that do not exist or do not fit, two questions at once, a contradiction, another language, another topic."""


def test_a_solution_of_a_trained_kind_is_given_with_its_confidence() -> None:
    with Client(MODEL) as client:
        found = client.solve(SURE)

    assert found.complete
    assert found.answer.startswith("294.2")
    assert found.confidence is not None
    assert found.confidence > 0.9


@pytest.mark.parametrize("question", BEYOND)
def test_beyond_its_training_it_shows_its_steps_and_gives_no_answer(question: str) -> None:
    with Client(MODEL) as client:
        found = client.solve(question)

    assert (found.ending, found.answer, found.complete) == ("unsure", "", False)
    assert found.text


def test_a_guess_is_given_where_it_is_asked_for() -> None:
    with Client(MODEL) as client:
        unsure = client.solve(SURE, options=SolveOptions(min_confidence=1.0))
        found = client.solve(SURE, options=SolveOptions(min_confidence=0.0))

    assert (unsure.ending, unsure.answer) == ("unsure", "")
    assert found.answer.startswith("294.2")


def test_a_model_that_states_no_confidence_is_taken_at_its_word() -> None:
    with Client(scripted_model("Therefore, the answer is 7.")) as client:
        found = client.solve("What is 3 + 4?")

    assert (found.answer, found.confidence) == ("7", None)


def test_the_results_of_tools_are_not_words_of_the_model() -> None:
    tokens = ["<<calculator: ", "2+3", ">", ">", " 5", "6", "\n", "So 5."]

    assert [tokens[at] for at in own_tokens(tokens)] == ["<<calculator: ", "2+3", ">", ">", "\n", "So 5."]


@pytest.mark.parametrize(
    ("question", "unit", "expected"),
    [
        ("What do 2 moles weigh?", "g", True),
        ("Convert 20 Celsius to Fahrenheit", "°F", True),
        ("Convert 68 Fahrenheit to Celsius", "°F", False),
        ("How many molecules are in 18 g of water?", "mol", False),
        ("How many moles is that?", "mol", True),
        ("水2モルの質量は何グラムですか", "g", True),
        ("How many apples are left?", "apples", True),
        ("How many grams of KBr are in 250 mL of a 0.4 M solution?", "mL", False),
        ("How many gram-moles of water are formed?", "mol", True),
        ("How many miles per hour is that?", "mph", True),
        ("KBrの5molは何グラムですか", "g/mol", False),
        ("KBrの5molは何グラムですか", "g", True),
        ("时速多少公里?", "km/h", True),
        ("What is 5 + 3? And what is 7 - 2?", "", False),
        ("Can you help? What is 5 + 3?", "", True),
        ("A pen costs 2 dollars and a pen costs 3 dollars. What do 4 cost?", "dollars", False),
        ("A pen costs 2 dollars and a cup costs 3 dollars. What do 4 cups cost?", "dollars", True),
    ],
)
def test_the_unit_of_an_answer_fits_its_question(question: str, unit: str, expected: bool) -> None:
    assert fits(question, f"Therefore, the answer is 2 {unit}.") is expected


@pytest.mark.parametrize(
    ("question", "call", "expected"),
    [
        ("How many litres are 3 gallons?", "3 gallons to L", True),
        ("3ガロンは何リットルですか", "3 gallons to L", True),
        ("3加仑等于多少升?", "3 gallons to L", True),
        ("72 kilometres an hour in m/s?", "72 km/h to m/s", True),
        ("時速72kmは秒速何mですか", "72 km/h to m/s", True),
        ("How many feet is 1 inch?", "1 inches to feet", True),
        ("How many zorks are 3 gallons?", "3 gallons to L", False),
        ("Convert 5 bananas to metres", "5 miles to m", False),
    ],
)
def test_only_units_that_the_question_names_are_converted(question: str, call: str, expected: bool) -> None:
    assert fits(question, f"Convert.\n<<unit_conversion: {call}>> 1 x\nTherefore, the answer is 1 x.") is expected


def test_an_answer_may_be_an_equation() -> None:
    assert fits("Balance H2 + O2 -> H2O", "Therefore, the answer is 2H2 + O2 -> 2H2O.")
    assert fits("Balance PbO + Mg -> Pb + MgO", "Therefore, the answer is PbO + Mg -> Pb + MgO.")


@pytest.mark.parametrize(("calculation", "fitting"), [("2*2/1", True), ("2*2/2", False), ("2*1/1", False)])
def test_moles_are_converted_by_the_coefficients_of_what_is_given_and_asked_for(
    calculation: str, fitting: bool
) -> None:
    question = "How many moles of water form when 2 mol of methane burn in oxygen?"
    solution = (
        "Methane is CH4, oxygen is O2, water is H2O.\n<<stoichiometry: CH4 + O2 -> CO2 + H2O>> CH4 + 2O2 -> CO2 + 2H2O\n"
        f"<<calculator: {calculation}>> 4\nTherefore, the answer is 4 mol."
    )

    assert fits(question, solution) == fitting


def test_a_percentage_is_no_molar_mass() -> None:
    solution = "<<calculator: round(1*24/148*100, 2)>> 16.22\nTherefore, the answer is 16.22 %."

    assert fits("What percent of Mg(NO3)2 is magnesium?", solution)
    assert not fits("molar mass of Mg(NO3)2", solution)


def test_a_rate_of_units_that_have_short_names_only_is_read() -> None:
    solution = "Convert.\n<<unit_conversion: 3 ft/s to ft/min>> 180 ft/min\nTherefore, the answer is 180 ft/min."

    assert fits("What is 3 ft/s in ft/min?", solution)


@pytest.mark.parametrize(
    ("question", "equation", "calculation"),
    [
        ("How many moles of oxygen react with 2 mol of hydrogen to form water?", "2H2 + O2 -> 2H2O", "2*1/2"),
        ("How many moles of H2O form when 2 mol of H2 react with O2?", "2H2 + O2 -> 2H2O", "2*2/2"),
    ],
)
def test_what_is_asked_for_may_stand_on_either_side(question: str, equation: str, calculation: str) -> None:
    named = "Oxygen is O2, hydrogen is H2, water is H2O.\n<<stoichiometry: H2 + O2 -> H2O>>"
    solution = f"{named} {equation}\n<<calculator: {calculation}>> 1\nTherefore, the answer is 1 mol."

    assert fits(question, solution)


def test_a_relative_clause_is_no_comparison() -> None:
    solution = "Multiply.\n<<calculator: 4*2>> 8\nTherefore, the answer is 8 dollars."

    assert fits("A pen which is red or blue costs 2 dollars. How much do 4 pens cost?", solution)
    assert not fits("Which is heavier, 4 pens or 2 cups?", solution)


@pytest.mark.parametrize(("call", "fitting"), [("100/0.5", False), ("100/0", True)])
def test_a_given_zero_is_used(call: str, fitting: bool) -> None:
    question = "A train covers 100 km in 0 hours. What is its speed in km/h?"
    solution = f"Speed is distance divided by time.\n<<calculator: {call}>> 200\nTherefore, the answer is 200 km/h."

    assert fits(question, solution) is fitting
