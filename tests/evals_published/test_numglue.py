"""Questions that a formula and a tool alone decide, and those that need a model."""

import json
from pathlib import Path

import pytest

from evals.numglue import LABEL_ERRORS, DecisionCounts, count_decisions, decide_question
from taiwa.tools.chemical_formulas import formula, mass


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the molecular weight of 2 moles of H2SO4?", "196"),
        ("Calculate the molar mass of Ca(OH)2.", "74"),
        ("What is the molar mass of AgCl↓ in grams?", "143"),
        ("Find the mass of three moles of CO2", "132"),
        ("Find the molecular weight of a compound made of 1 Sulphur and 3 Oxygens", "80"),
        ("Give the percentage by mass of C in CO2.", "27.27"),
        ("How many moles of NaOH are required to react with 2 moles of HCl to form NaCl and H2O", "2"),
        ("How much do 2.5 moles of NaCl weigh", "145"),
        ("What is the molecular weight of a compound having 1 Carbon and 4 Cl", "152"),
        ("What is the molecular weight of a molecule with 12 atoms of C, 22 atoms of H, and 11 atoms of O?", "342"),
        ("Find the mass percentage of H in H2O", "11.11"),
        ("Find the mass percentage of sulphur in SO2", "50"),
        ("How many moles of O2 are required to react with 4 moles of H2 to form 4 moles of H2O", "2"),
        (
            "How many moles of KOH are needed to react with one mole of H2SO4 to give 1 mole of K2SO4 and two moles of H2O?",
            "2",
        ),
        ("Find the number of moles of NH3 formed on combining 2 moles of N2 and 6 moles of H2", "4"),
        (
            "Find the number of moles of O2 needed to combine with 1 mole of CH4 to form 1 mole of CO2 and 2 moles of H2O",
            "2",
        ),
        ("What amount of CH4 is required to react with 2 moles of O2 to form 1 mole of CO2 and 2 moles of H2O?", "16"),
        ("Find the amount of NH3 formed on combining 1 mole of N2 and 3 moles of H2", "34"),
    ],
)
def test_a_question_that_holds_all_is_decided(question: str, answer: str) -> None:
    found = decide_question(question)

    assert found is not None
    assert found.answer == answer


@pytest.mark.parametrize(
    "question",
    [
        "What is the molecular weight of Sulfuric acid",
        "Find the mass percentage of H in Water",
        "Find the mass percentage of Na in H2O",
        "Find the mass of NaCl formed on combining 1 mole of HCl and 1 mole of NaOH",
        "What mass of 2 moles of NaCl is required",
        "How many moles of Oxygen are required to react with 4 moles of Hydrogen to form 4 moles of Water",
        # a second product is not named
        "Find the number of moles of NaCl formed on combining 1 mole of HCl and 1 mole of NaOH",
        # one of the two is too much
        "Find the number of moles of NH3 formed on combining 2 moles of N2 and 3 moles of H2",
        "How many moles of SO42- are required to react with 1 mole of Ba2+ to form 1 mole of BaSO4",
        "A train of 100 m passes a pole in 5 seconds. What is its speed?",
        "",
    ],
)
def test_a_question_that_needs_knowledge_is_left_alone(question: str) -> None:
    assert decide_question(question) is None


def test_a_label_error_is_named_and_is_no_miss() -> None:
    rows = [
        {"id": 1, "question": "What is the molecular weight of 2 moles of KBrO3", "answer": 336},
        {"id": 2, "question": "What is the molecular weight of 2 moles of KBrO3", "answer": "334"},
        {"id": 3, "question": "What is the molecular weight of 2 moles of KBrO3", "answer": 335},
        {"id": 4, "question": "What is the molecular weight of Water", "answer": 18},
        {"id": 5, "question": "Calculate the molecular weight of H2O", "answer": "many"},
    ]

    assert count_decisions(rows) == DecisionCounts(5, 4, 1, ("3", "5"), ("1",))


def test_the_named_label_errors_are_errors() -> None:
    for text, (labelled, true) in LABEL_ERRORS.items():
        assert mass(formula(text), "integer") == true != labelled


def test_every_decided_question_of_the_data_set_is_right(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "numglue_task2.jsonl").read_text(encoding="utf-8").splitlines()]

    found = count_decisions(rows)

    assert found.misses == ()
    assert found.right + len(found.label_errors) == found.decided >= 10
