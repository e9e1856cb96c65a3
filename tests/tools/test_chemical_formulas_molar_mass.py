"""Molar masses: exact sums of named tables, and never a number for nonsense."""

from fractions import Fraction

import pytest

from taiwa.kernel.errors import ToolError
from taiwa.tools.chemical_formulas import elements, formula, mass, mass_percent, molar_mass, nuclides, weight

PAPER = """
H 1 He 4 Li 7 Be 9 B 11 C 12 N 14 O 16 F 19 Ne 20 Na 23 Mg 24 Al 27 Si 28 P 31 S 32 Cl 35 Ar 40 K 39 Ca 40 Sc 45 Ti 48
V 51 Cr 52 Mn 55 Fe 56 Co 59 Ni 59 Cu 64 Zn 65 Br 80 Ag 108 I 127 Ba 137 Au 197 Hg 201 Pb 207
""".split()


@pytest.mark.parametrize(
    ("text", "iupac", "integer"),
    [
        ("H2O", "18.015", "18"),
        ("CuSO4·5H2O", "249.677", "250"),
        ("[Fe(CN)6]^4-", "211.953", "212"),
        ("SO4^2-", "96.056", "96"),
        ("CCl4", "153.811", "152"),
        ("D2O", "20.02720355568", "20"),
        ("^13CO2", "45.00135483534", "45"),
        ("^235U", "235.0439281", "235"),
        ("Tc", "98", "98"),
    ],
)
def test_the_mass_is_the_exact_sum(text: str, iupac: str, integer: str) -> None:
    assert mass(formula(text)) == Fraction(iupac)
    assert mass(formula(text), "integer") == Fraction(integer)


def test_integer_weights_are_those_of_school_books() -> None:
    for symbol, whole in zip(PAPER[::2], PAPER[1::2], strict=True):
        assert weight(symbol, "integer") == int(whole), symbol


def test_the_tables_are_whole() -> None:
    assert [element.number for element in elements().values()] == list(range(1, 119))
    assert sum(not element.standard for element in elements().values()) == 34
    assert set(nuclides()) == set(elements())
    for symbol, masses in nuclides().items():
        assert all(abs(found - number) < Fraction(1, 4) for number, found in masses.items()), symbol


def test_the_shares_of_the_elements_make_the_whole() -> None:
    shares = mass_percent(formula("K4[Fe(CN)6]·3H2O"))

    assert sum(shares.values()) == 100


def test_nuclides_of_one_element_share_its_percent() -> None:
    assert set(mass_percent(formula("^13CH3CH3"))) == {"C", "H"}


def test_the_share_of_an_element_is_given_as_a_percentage_of_the_mass() -> None:
    found = molar_mass("O in H2O")

    assert found.text == "88.8093 %"
    assert molar_mass("N in NH4NO3", weights="integer").text == "35 %"


def test_an_element_that_a_substance_does_not_contain_has_no_share() -> None:
    with pytest.raises(ToolError, match="N is not an element of H2O"):
        molar_mass("N in H2O")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("water", "18.015 g/mol (H2O)"),
        ("Calcium hydroxide", "74.092 g/mol (Ca(OH)2)"),
        ("Potasium Permanganate", "158.032 g/mol (KMnO4)"),
        ("O in water", "88.8093 % (H2O)"),
    ],
)
def test_a_substance_can_be_named(name: str, text: str) -> None:
    assert molar_mass(name).text == text


@pytest.mark.parametrize("text", ["sodium chlorote", "Xyz", "H2o", "no such thing", "a" * 500])
def test_a_name_that_no_substance_has_is_an_error_about_formulas(text: str) -> None:
    with pytest.raises(ToolError, match=r"not a formula|unknown"):
        molar_mass(text)


def test_the_tool_says_the_mass_and_gives_all_parts() -> None:
    result = molar_mass.call({"formula": "Ca(OH)₂", "weights": "integer"})

    assert result.text == "74 g/mol"
    assert result.value == {
        "formula": "Ca(OH)2",
        "molar_mass": "74",
        "unit": "g/mol",
        "weights": "integer",
        "atoms": {"Ca": "1", "O": "2", "H": "2"},
        "percent": {"Ca": "54.0541", "O": "43.2432", "H": "2.7027"},
    }


def test_an_electron_has_no_molar_mass() -> None:
    with pytest.raises(ToolError, match="electron"):
        molar_mass.call({"formula": "e^-"})


def test_weights_can_be_fixed_and_are_then_no_parameter() -> None:
    paper = molar_mass.preset(weights="integer")

    assert paper.call({"formula": "NaCl"}).text == "58 g/mol"
    assert paper.spec.parameters["required"] == ["formula"]
    assert "weights" not in str(paper.spec.parameters)
