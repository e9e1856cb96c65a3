"""The substances: every formula is one, and a name belongs to one formula."""

import pytest

from taiwa.tools.chemical_formulas import formula
from taiwa.tools.compound_names import formulas, nearest_formula, salt, substances


def test_every_formula_is_read() -> None:
    assert [each for each in set(formulas().values()) if formula(each).charge] == []


def test_there_are_many_and_no_name_means_two_things() -> None:
    assert len(set(formulas().values())) > 1_400
    assert all(formulas()[name.lower()] == formula for formula, names in substances() for name in names)


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
        ("lead(iv) acetate", None),
    ],
)
def test_a_name_has_its_formula(name: str, spelt: str | None) -> None:
    assert formulas().get(name) == spelt


def test_a_salt_is_built_of_its_ions() -> None:
    assert [salt("NH4", "SO4"), salt("Ca", "CH3COO"), salt("Na", "CH3COO"), salt("Hg2", "NO3"), salt("Mg", "O")] == [
        "(NH4)2SO4",
        "(CH3COO)2Ca",
        "CH3COONa",
        "Hg2(NO3)2",
        "MgO",
    ]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("Potasium  Permanganate", "KMnO4"),
        ("hyroiodic acid", "HI"),
        ("germainum", "Ge"),
        ("sodium chlorate", "NaClO3"),
        ("sodium chlorote", None),  # chlorate and chlorite are as near
        ("iron(IV) oxide hydrate", None),
        ("gold fnger", None),
    ],
)
def test_a_misspelt_name_is_found_if_it_can_be_only_one(text: str, formula: str | None) -> None:
    assert nearest_formula(text) == formula
