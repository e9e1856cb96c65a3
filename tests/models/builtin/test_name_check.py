"""The check of the names in a solution's first line: the table decides, a misspelt name is understood, an unknown one is not made up."""

import pytest

from taiwa.kernel.messages import Request, TextDelta, user
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.name_check import check_names, checked_names


@pytest.mark.parametrize(
    ("question", "written", "checked"),
    [
        ("What is the molar mass of malic acid?", "Malic acid is C6H8O7.", "Malic acid is C4H6O5."),
        ("Moles in 5 g of Iron(III) Oxide?", "Iron(III) oxide is Fe2O3.", "Iron(III) oxide is Fe2O3."),
        ("Moles in 5 g of potasium permanganate?", "Potassium permanganium is KMn.", "Potassium permanganate is KMnO4."),
        ("The molar mass of RDX?", "RDX is C2H2.", "RDX is C3H6N6O6."),
        ("Take sodium chlorate.", "Sodium chlorite is NaClO2.", "Sodium chlorate is NaClO3."),
        (
            "How many moles of sulfur dioxide do 2 mol of sulfur and oxygen give?",
            "Sulfur is S, oxygen is O2, sulfur is S.",
            "Sulfur is S, oxygen is O2, sulfur dioxide is SO2.",
        ),
        ("What does a mole of vlorpium oxide weigh?", "Vanadium oxide is V2O5.", "I do not know the formula of vlorpium oxide."),
        ("How many moles are in 20 g of helium gas?", "Heliumgum is HG.", "Helium is He."),
        ("What is the molar mass of Potasium Permanganate?", "I do not know the formula of Potasium Permanganate.", "Potassium permanganate is KMnO4."),
        ("Weigh 2 mol of sodium  chloride.", "Sodium chloride is NaCl.", "Sodium chloride is NaCl."),
        ("A bottle of sylvite: what is its molar mass?", "I do not know the formula of sylvite.", "Sylvite is KCl."),
    ],
)  # fmt: skip
def test_the_first_line_says_what_the_table_says(question: str, written: str, checked: str) -> None:
    assert check_names(question, written) == checked
    assert check_names(question, checked) == checked


@pytest.mark.parametrize(
    "line",
    [
        "Speed is distance divided by time.",
        "<<molar_mass: H2O>> 18.015 g/mol",
        "pH is -log10 of the concentration.",
        "Add them.",
        "",
    ],
)
def test_a_line_that_names_no_substance_stays_as_it_is(line: str) -> None:
    assert check_names("How fast is a train of iron that goes 30 km in 2 hours?", line) == line


def test_names_in_other_languages_are_left_to_the_network() -> None:
    assert check_names("水のモル質量は?", "水 is H3O.") == "水 is H3O."


def test_only_a_line_that_the_table_confirms_counts_as_checked() -> None:
    question = "What is the molar mass of malic acid?"

    assert checked_names(question, "Malic acid is C4H6O5.\n<<molar_mass: C4H6O5>>") == "Malic acid is C4H6O5."
    assert checked_names(question, "Malic acid is C6H8O7.\n<<molar_mass: C6H8O7>>") == ""
    assert checked_names(question, "Divide.\n") == ""


def test_a_solution_goes_on_behind_the_checked_line() -> None:
    prompt = "Solve the problem step by step.\n\nTools:\n- <<molar_mass: formula>>"
    request = Request((user(f"{prompt}\n\nWhat is the molar mass of blorbine hexafluorane?"),), task="solve")

    text = "".join(chunk.text for chunk in BuiltinModel().stream(request) if isinstance(chunk, TextDelta))

    assert text.startswith("I do not know the formula of ")


@pytest.mark.parametrize("stop", [("\n",), ("KMnO4",)])
def test_a_stop_string_ends_the_answer_before_the_checked_line_does(stop: tuple[str, ...]) -> None:
    request = Request((user("What is the molar mass of Potasium Permanganate?"),), task="solve", stop=stop)

    text = "".join(chunk.text for chunk in BuiltinModel().stream(request) if isinstance(chunk, TextDelta))

    assert stop[0] not in text


@pytest.mark.parametrize(
    ("question", "written", "checked"),
    [
        ("What do 2 mol of chalk (calcium carbonate) weigh?", "Chalk is CaCO3, calcium carbonate is CaCO3.", "Chalk is CaCO3."),
        (
            "How many moles of carbon dioxide come from 3 mol of chalk (calcium carbonate)?",
            "Calcium is Ca, carbon dioxide is CO2.",
            "Calcium carbonate is CaCO3, carbon dioxide is CO2.",
        ),
        (
            "How many moles of carbon dioxide come from 3 mol of chalk (calcium carbonate)?",
            "Calcide is CaC, carbon dioxide is CO2.",
            "Calcium carbonate is CaCO3, carbon dioxide is CO2.",
        ),
        ("How much bromine do 2 mol of hexene take?", "Bromine is Br2.", "Bromine is Br2, hexene is C6H12."),
        ("The percentage of hydrogen in ammonia?", "Ammonia is NH3.", "Ammonia is NH3."),
        ("How many moles of broimne do 2 mol of hexene take?", "Hexene is C6H12.", "Bromine is Br2, hexene is C6H12."),
        ("What do 2 mol of eahtnol weigh?", "Ethanol is C2H5OH.", "Ethanol is C2H5OH."),
    ],
)  # fmt: skip
def test_every_substance_of_the_question_is_named_once(question: str, written: str, checked: str) -> None:
    assert check_names(question, written) == checked


def test_the_metal_of_an_unknown_salt_does_not_stand_for_the_salt() -> None:
    assert (
        check_names("How heavy is a mole of sodium blorbide?", "Sodium is Na.")
        == "I do not know the formula of sodium blorbide."
    )
    assert (
        check_names("How heavy is a mole of sodium chloride?", "Sodium chloride is NaCl.") == "Sodium chloride is NaCl."
    )
    assert check_names("How many moles are 23 g of sodium?", "Sodium is Na.") == "Sodium is Na."
