"""The substances: every formula is one, every spelling means the same, and a name belongs to one formula."""

import pytest

from taiwa.tools.chemical_formulas import formula
from taiwa.tools.compound_names import find_names, named, nearest_name, salt, substance, substances


def test_every_formula_is_read_and_every_spelling_has_the_same_atoms() -> None:
    wrong = [
        (each.formula, spelling)
        for each in substances().values()
        for spelling in each.spellings
        if dict(formula(spelling).atoms) != dict(formula(each.formula).atoms) or formula(spelling).charge
    ]

    assert wrong == []


def test_there_are_many_and_no_name_means_two_things() -> None:
    names = [name.lower() for each in substances().values() for name in each.names]

    assert len(substances()) > 1_400
    assert len(names) == len(set(names)) == len(named())


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("baking soda", "NaHCO3"),
        ("iron(iii) sulfate", "Fe2(SO4)3"),
        ("ferric chloride", "FeCl3"),
        ("cuprous oxide", "Cu2O"),
        ("aluminium sulphate", "Al2(SO4)3"),
        ("aluminum hydroxide", "Al(OH)3"),
        ("ammonium dichromate", "(NH4)2Cr2O7"),
        ("calcium dihydrogen phosphate", "Ca(H2PO4)2"),
        ("mercurous chloride", "Hg2Cl2"),
        ("copper sulfate pentahydrate", "CuSO4·5H2O"),
        ("dinitrogen pentoxide", "N2O5"),
        ("laughing gas", "N2O"),
        ("vitamin c", "C6H8O6"),
        ("aspirin", "C9H8O4"),
        ("ethyl acetate", "CH3COOC2H5"),
        ("lead(IV) acetate".lower(), None),
    ],
)
def test_a_name_has_its_formula(name: str, spelt: str | None) -> None:
    assert named().get(name, ("", None))[1] == spelt


def test_a_salt_is_built_of_its_ions() -> None:
    assert [salt("NH4", "SO4"), salt("Ca", "CH3COO"), salt("Na", "CH3COO"), salt("Hg2", "NO3"), salt("Mg", "O")] == [
        "(NH4)2SO4",
        "(CH3COO)2Ca",
        "CH3COONa",
        "Hg2(NO3)2",
        "MgO",
    ]


def test_one_formula_in_several_spellings_is_one_substance() -> None:
    assert {"CH3COOH", "C2H4O2", "HC2H3O2"} <= set(substance("CH3COOH").spellings)
    assert substance("Xx").names == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("2 mol of Sulfur Dioxide (SO2), and sulfur.", ["sulfur dioxide", "sulfur"]),
        ("Take iron(III) chloride; weigh it.", ["iron(III) chloride"]),
        ("67.69 g of methyl acetate.how many mol?", ["methyl acetate"]),
        ("A train goes 30 km", []),
    ],
)
def test_names_are_found_in_a_text_each_as_long_as_possible(text: str, names: list[str]) -> None:
    assert [*find_names(text)] == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Potasium  Permanganate", "potassium permanganate"),
        ("hyroiodic acid", "hydroiodic acid"),
        ("germainum", "germanium"),
        ("sodium chlorate", "sodium chlorate"),
        ("sodium chlorote", None),  # chlorate and chlorite are as near
        ("iron(IV) oxide hydrate", None),
        ("gold fnger", None),
    ],
)
def test_a_misspelt_name_is_found_if_it_can_be_only_one(text: str, name: str | None) -> None:
    assert nearest_name(text) == name
