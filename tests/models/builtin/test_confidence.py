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
    "How many litres are 3 gallons?",
    "1000円の20%引きはいくらですか",
    "What is the pH of 0.001 M HCl?",
    "How many atoms are in 1 mole of carbon?",
    "Convert 5 bananas to metres",
    "Wie viel wiegen 2 Mol Wasser?",
    "Convert 68 Fahrenheit to Celsius",
    "What is the atomic number of iron?",
    "Who wrote Faust?",
)


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
        found = client.solve(BEYOND[0], options=SolveOptions(min_confidence=0.0))

    assert found.answer == "3000"


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
    ],
)
def test_the_unit_of_an_answer_fits_its_question(question: str, unit: str, expected: bool) -> None:
    assert fits(question, f"Therefore, the answer is 2 {unit}.") is expected
