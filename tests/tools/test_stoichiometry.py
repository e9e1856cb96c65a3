"""Coefficients by conservation: solved, underdetermined with its basis, or impossible and why."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ToolError
from taiwa.tools.stoichiometry import Equation, Term, balance, equation, null_space, positive_solution, stoichiometry


@pytest.mark.parametrize(
    ("text", "solved"),
    [
        ("Fe + O2 -> Fe2O3", "4Fe + 3O2 -> 2Fe2O3"),
        ("H2+O2->H2O", "2H2 + O2 -> 2H2O"),
        ("H₂ ＋ Ｏ₂ → H₂Ｏ", "2H2 + O2 -> 2H2O"),
        ("H2 + Cl2 = HCl", "H2 + Cl2 -> 2HCl"),
        ("N2 + H2 ⇌ NH3", "N2 + 3H2 -> 2NH3"),
        ("N2 + H2 <=> NH3", "N2 + 3H2 -> 2NH3"),
        ("\\ce{N_2} + H_2 \\rightarrow NH_3", "N2 + 3H2 -> 2NH3"),
        ("reactants: H2 + O2\nproducts: H2O", "2H2 + O2 -> 2H2O"),
        ("H2 + O2\nH2O", "2H2 + O2 -> 2H2O"),
        ("___ H2 + ___ O2 -> ___ H2O", "2H2 + O2 -> 2H2O"),
        ("a H2 + b O2 -> c H2O", "2H2 + O2 -> 2H2O"),
        ("aC2H6 + bO2 -> cCO2 + dH2O", "2C2H6 + 7O2 -> 4CO2 + 6H2O"),
        ("xH2 + yO2 -> 2H2O", "2H2 + O2 -> 2H2O"),
        ("CaCO3 ->[heat] CaO + CO2", "CaCO3 -> CaO + CO2"),
        ("NaHCO3 --Δ--> Na2CO3 + CO2 + H2O", "2NaHCO3 -> Na2CO3 + CO2 + H2O"),
        ("H2O2 –light→ H2O + O2", "2H2O2 -> 2H2O + O2"),
        ("Cu^2+ + NH3 ->[Cu(NH3)4]^2+", "Cu^2+ + 4NH3 -> [Cu(NH3)4]^2+"),
        ("2 H2 + 2 O2 -> H2O", "2H2 + O2 -> 2H2O"),
        ("Ca+2HCl->CaCl2+H2", "Ca + 2HCl -> CaCl2 + H2"),
        ("Ag+ + Cl- -> AgCl(s)", "Ag^+ + Cl^- -> AgCl"),
        ("Ag+(aq) + Cl-(aq) → AgCl↓", "Ag^+ + Cl^- -> AgCl"),
        ("Fe^3+ + e^- -> Fe", "Fe^3+ + 3e^- -> Fe"),
        ("Cr2O7^2- + Fe^2+ + H+ -> Cr^3+ + Fe^3+ + H2O", "Cr2O7^2- + 6Fe^2+ + 14H^+ -> 2Cr^3+ + 6Fe^3+ + 7H2O"),
        ("CH4 + O2 -> CO2 + H2O + heat", "CH4 + 2O2 -> CO2 + 2H2O"),
        ("2H2(g)+O2(g)→2H2O(l), ΔH = -572 kJ", "2H2 + O2 -> 2H2O"),
        ("CuSO4·5H2O -> CuSO4 + H2O", "CuSO4·5H2O -> CuSO4 + 5H2O"),
        ("D2O + Na -> NaOD + D2", "2D2O + 2Na -> 2NaOD + D2"),
        ("P2I4 + P4 + H2O -> PH4I + H3PO4", "10P2I4 + 13P4 + 128H2O -> 40PH4I + 32H3PO4"),
        (
            "[Cr(N2H4CO)6]4[Cr(CN)6]3 + KMnO4 + H2SO4 -> K2Cr2O7 + MnSO4 + CO2 + KNO3 + K2SO4 + H2O",
            "10[Cr(N2H4CO)6]4[Cr(CN)6]3 + 1176KMnO4 + 1399H2SO4 -> "
            "35K2Cr2O7 + 1176MnSO4 + 420CO2 + 660KNO3 + 223K2SO4 + 1879H2O",
        ),
        ("2H2 + ?O2 -> ?H2O", "2H2 + O2 -> 2H2O"),
        ("?Fe + 3O2 -> ?Fe2O3", "4Fe + 3O2 -> 2Fe2O3"),
        ("?N2 + ?H2 -> NH3", "1/2 N2 + 3/2 H2 -> NH3"),
        ("½O2 + ?H2 -> ?H2O", "1/2 O2 + H2 -> H2O"),
        ("2 mol H2 + ? mol O2 → ? mol H2O", "2H2 + O2 -> 2H2O"),
        ("? HNO3 + 2 NH3 -> 2 NH4NO3", "2HNO3 + 2NH3 -> 2NH4NO3"),
        # Other ratios conserve as much; what is written does.
        (
            "5H2O2 + 2KMnO4 + 3H2SO4 -> 5O2 + 8H2O + 2MnSO4 + K2SO4",
            "5H2O2 + 2KMnO4 + 3H2SO4 -> 5O2 + 8H2O + 2MnSO4 + K2SO4",
        ),
    ],
)
def test_an_equation_is_solved(text: str, solved: str) -> None:
    found = balance(text)

    assert (found.status, found.text) == ("solved", solved)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CO -> CO2", "no coefficients conserve C and O together"),
        ("H2 -> H2 + O2", "O is only on the right"),
        ("?C2H6 + Cl2 -> ?C2H5Cl", "H"),
        ("? H2 + O2 -> H2O", "O is 2 on the left and 1 on the right"),
        ("Fe^2+ -> Fe^3+", "no coefficients conserve Fe and charge together"),
        ("H2 + O2 + H2O2 -> H2O + H2O2 + C", "C is only on the right"),
        ("2H2 + O2 -> 2H2O + ?O3", "O3 would get the coefficient 0"),
        ("CO2 + O2 -> CO", "O2 would have to stand on the other side"),
        ("CO2 + O2 + N2 -> CO + N2", "no positive coefficients conserve C, O and N together"),
    ],
)
def test_what_cannot_be_is_impossible_and_said_why(text: str, why: str) -> None:
    found = balance(text)

    assert found.status == "impossible"
    assert why in found.text


def test_many_solutions_are_a_basis_and_never_one_of_them() -> None:
    result = stoichiometry.call({"equation": "CO + CO2 + H2 -> CH4 + H2O"})

    assert result.text.startswith("underdetermined: 2 independent reactions")
    assert isinstance(result.value, Mapping)
    basis = result.value["basis"]
    assert isinstance(basis, list)
    assert len(basis) == 2
    assert all(conserved(equation(str(each))) for each in basis)


def test_the_tool_gives_every_coefficient() -> None:
    result = stoichiometry.call({"equation": "?N2 + ?H2 -> NH3"})

    assert result.value == {
        "status": "solved",
        "text": "1/2 N2 + 3/2 H2 -> NH3",
        "reactants": {"N2": "1/2", "H2": "3/2"},
        "products": {"NH3": "1"},
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "syntax"),
        ("H2 + O2", "syntax"),
        ("H2 -> O2 -> H2O", "syntax"),
        ("-> H2O", "syntax"),
        ("? + H2 -> H2O", "syntax"),
        ("0H2 + O2 -> H2O", "syntax"),
        ("1/0 H2 + O2 -> H2O", "syntax"),
        ("2H2 + H2 -> H2O", "duplicate"),
        ("hydrogen + oxygen -> water", "syntax"),
        ("SO42- + Ba^2+ -> BaSO4", "ambiguous"),
        (" + ".join(f"H{n}" for n in range(2, 40)) + " -> H", "too_long"),
        ("H -> " + "(" * 10_000_000, "too_long"),
    ],
)
def test_what_is_no_equation_is_refused(text: str, code: str) -> None:
    with pytest.raises(ToolError) as caught:
        balance(text)

    assert caught.value.code == code


def conserved(whole: Equation) -> bool:
    """Whether every atom and the charge are as many on both sides."""
    totals: dict[str, Fraction] = {}
    for sign, side in ((1, whole.reactants), (-1, whole.products)):
        for term in side:
            parts = {**term.species.atoms, "charge": Fraction(term.species.charge)}
            for name, count in parts.items():
                totals[name] = totals.get(name, Fraction(0)) + sign * count * (term.count or 0)
    return not any(totals.values())


SPECIES = st.sampled_from("H2 O2 H2O H2O2 CO CO2 C CH4 C2H6 NH3 NO NO2 N2 HNO3 H+ OH- NH4+ NO3- CO3^2- e^-".split())
SIDES = st.lists(SPECIES, min_size=1, max_size=4, unique=True)


@given(SIDES, SIDES, st.sampled_from(["", "? ", "2 "]))
def test_whatever_is_solved_conserves_and_whatever_is_not_has_no_positive_solution(
    left: list[str], right: list[str], mark: str
) -> None:
    found = balance(f"{mark}{' + '.join(left)} -> {' + '.join(right)}")

    if found.status == "solved":
        assert conserved(found.equations[0])
        assert all((term.count or 0) > 0 for term in found.equations[0].terms)
        assert mark == "? " or balance(found.text).status == "solved"
    elif found.status == "underdetermined":
        assert len(found.equations) > 1
        assert all(conserved(each) for each in found.equations)


MATRICES = st.integers(1, 4).flatmap(
    lambda rows: st.integers(1, 6).flatmap(
        lambda columns: st.lists(
            st.lists(st.integers(-4, 4), min_size=columns, max_size=columns), min_size=rows, max_size=rows
        )
    )
)


@given(MATRICES)
def test_a_positive_solution_is_one_and_is_found_where_the_null_space_shows_one(rows: list[list[int]]) -> None:
    columns = len(rows[0])
    basis = null_space(rows, columns)

    found = positive_solution(rows, columns)

    for vector in basis:
        assert not any(sum(a * b for a, b in zip(row, vector, strict=True)) for row in rows)
        if all(entry > 0 for entry in vector) or all(entry < 0 for entry in vector):
            assert found is not None
    if found is not None:
        assert all(entry >= 1 for entry in found)
        assert not any(sum(a * b for a, b in zip(row, found, strict=True)) for row in rows)


def test_a_term_knows_whether_its_number_was_written() -> None:
    first, second = equation("2H2 + O2 -> ?H2O").reactants

    assert (first.is_explicit, second.is_explicit) == (True, False)
    assert isinstance(first, Term)
