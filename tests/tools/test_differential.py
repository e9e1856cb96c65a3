"""Second opinions: molmass and periodictable on formulas, sympy on numbers and equations.

Where they differ from us is written down here, each with its reason; anything else that differs fails.
"""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ToolError
from taiwa.tools.chemical_formulas import elements, formula, mass, nuclides, weight
from taiwa.tools.expressions import calculate
from taiwa.tools.stoichiometry import balance, equation
from tests.lazily import Lazily

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import molmass
    import periodictable
    from periodictable.formulas import formula as periodic_formula

sympy: Any = Lazily("sympy")

# Formulas of which all three know the notation.
COMMON = """
H2O NaCl CH3COOH Ca(OH)2 Co3(Fe(CN)6)2 ((CH3)2CH)2O C12H22O11 KAl(SO4)2 UO2(NO3)2 Hg2Cl2 XeF4 Fe2(SO4)3 (NH4)2Cr2O7
C60 Na2B4O7 K4Fe(CN)6 Ca10(PO4)6(OH)2 C8H10N4O2 C17H35CO2Na Sc2(SO4)3 P4 LiCl O3 D2O
""".split()

OTHER_WEIGHTS = {"S": "molmass averages isotopes: 32.0648, IUPAC's abridged value is 32.06"}
"""Elements with a standard weight for which molmass differs by more than one part in ten thousand."""

# formula -> (ours, molmass, periodictable): a mass, or None for a refusal.
KNOWN_DISAGREEMENTS: dict[str, tuple[float | None, float | None, float | None]] = {
    # a hydrate: periodictable reads the dot as a decimal point
    "CuSO4.5H2O": (249.68, 249.68, 185.62),
    # notations that one of them does not have
    "CuSO4·5H2O": (249.68, None, None),
    "AgCl↓": (143.32, None, None),
    "SO4^2-": (96.06, None, None),
    "Al₂(CO₃)₃": (233.99, None, 233.99),
    "Fe0.95O": (69.05, None, 69.05),
    "[Fe(CN)6]4-": (211.95, 211.95, None),
    # a charge apart: molmass counts 42 oxygen atoms
    "SO4 2-": (96.06, 704.04, None),
    "SO42-": (None, 704.04, None),
    "Ca2+": (None, 80.16, None),
    # a number before a formula: an isotope for molmass, an amount for periodictable, ambiguous for us
    "13CO2": (None, 45.00, 572.12),
    "2H2O": (None, 20.03, 36.03),
    # a decimal that ends the formula: molmass takes the 93 away
    "YBa2Cu3O6.93": (665.07, 650.19, 665.07),
    # nonsense, or not a formula: refused by us
    "": (None, 0.0, 0.0),
    "CaSO4.0.5H2O": (None, None, 145.14),
    "Fe(II)": (None, 309.65, 309.65),
    # groups: molmass knows some by name; acetate becomes actinium for both
    "EtOH": (None, 46.07, None),
    "Pb(OAc)2": (None, 693.25, 693.20),
}


def tried(weigh: Callable[[str], float], text: str) -> float | None:
    try:
        return weigh(text)
    except (ToolError, molmass.FormulaError, ValueError, KeyError):
        return None
    except Exception as error:  # noqa: BLE001  (pyparsing's classes are periodictable's private matter)
        assert type(error).__module__.startswith("pyparsing"), error  # noqa: PT017
        return None


WEIGHERS: tuple[Callable[[str], float], ...] = (
    lambda text: float(mass(formula(text))),
    lambda text: float(molmass.Formula(text).mass),
    lambda text: float(periodic_formula(text).mass),
)


@pytest.mark.parametrize("text", COMMON)
def test_all_three_weigh_the_same(text: str) -> None:
    ours, second, third = (tried(weigh, text) for weigh in WEIGHERS)

    assert ours == pytest.approx(third, rel=1e-9)
    assert ours == pytest.approx(second, rel=2e-4)


@pytest.mark.parametrize("text", KNOWN_DISAGREEMENTS)
def test_a_disagreement_is_still_as_it_is_written_down(text: str) -> None:
    found = tuple(tried(weigh, text) for weigh in WEIGHERS)

    for got, written in zip(found, KNOWN_DISAGREEMENTS[text], strict=True):
        assert got == (None if written is None else pytest.approx(written, abs=0.01))


def test_the_tables_are_those_of_the_source() -> None:
    for element in periodictable.elements:
        if element.number:
            assert float(weight(element.symbol, "iupac")) == pytest.approx(element.mass, rel=1e-12)
            assert set(nuclides()[element.symbol]) == set(element.isotopes)
            for number, found in nuclides()[element.symbol].items():
                assert float(found) == element[number].mass


def test_standard_weights_agree_with_molmass_but_where_it_is_written_down() -> None:
    theirs = {element.symbol: element.mass for element in molmass.ELEMENTS}

    differing = {
        symbol
        for symbol, element in elements().items()
        if element.standard and abs(float(element.weight) - theirs[symbol]) > 1e-4 * theirs[symbol]
    }

    assert differing == set(OTHER_WEIGHTS)


NUMBERS = st.integers(1, 999).map(lambda number: (str(number), sympy.Integer(number)))


def combined(parts: tuple[tuple[str, Any], str, tuple[str, Any]]) -> tuple[str, Any]:
    (left, a), sign, (right, b) = parts
    joined = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b != 0 else a}[sign]
    return f"({left} {sign if b != 0 or sign != '/' else '* 1 + 0 *'} {right})", joined


def applied(parts: tuple[str, tuple[str, Any]]) -> tuple[str, Any]:
    name, (text, number) = parts
    size = sympy.Abs(number) + 1
    function = {"sqrt": sympy.sqrt, "ln": sympy.log, "exp": sympy.exp, "log10": lambda x: sympy.log(x, 10)}[name]
    bounded = size / 1000 if name == "exp" else size
    absolute = text if number >= 0 else f"(-{text})"
    return f"{name}(({absolute} + 1){' / 1000' if name == 'exp' else ''})", function(bounded)


RATIONALS = st.recursive(
    NUMBERS, lambda tree: st.tuples(tree, st.sampled_from("+-*/"), tree).map(combined), max_leaves=6
)
IRRATIONALS = st.tuples(st.sampled_from(["sqrt", "ln", "log10"]), RATIONALS).map(applied)


@given(RATIONALS)
def test_sympy_works_out_the_same_fraction(tree: tuple[str, Any]) -> None:
    text, number = tree

    assert calculate(text) == Fraction(str(number))


@given(IRRATIONALS)
def test_sympy_has_the_same_digits(tree: tuple[str, Any]) -> None:
    text, number = tree

    ours = calculate(text)

    assert abs(sympy.Rational(ours.numerator, ours.denominator) - number.evalf(70)) <= number.evalf(70) * sympy.Float(
        "1e-48", 70
    )


@pytest.mark.parametrize(
    "text",
    [
        "Fe + O2 -> Fe2O3",
        "KMnO4 + HCl -> KCl + MnCl2 + Cl2 + H2O",
        "Cu + HNO3 -> Cu(NO3)2 + NO + H2O",
        "Cr2O7^2- + C2H5OH + H^+ -> Cr^3+ + CO2 + H2O",
        "K4[Fe(CN)6] + KMnO4 + H2SO4 -> KHSO4 + Fe2(SO4)3 + MnSO4 + HNO3 + CO2 + H2O",
        "CO + CO2 + H2 -> CH4 + H2O",
        "H2O2 + KMnO4 + H2SO4 -> O2 + H2O + MnSO4 + K2SO4",
        "CO -> CO2",
    ],
)
def test_the_null_space_of_sympy_says_how_many_reactions_there_are(text: str) -> None:
    terms = equation(text).terms
    middle = len(equation(text).reactants)
    names = sorted({atom for term in terms for atom in term.species.atoms})
    rows = [
        [(1 if at < middle else -1) * term.species.atoms.get(name, 0) for at, term in enumerate(terms)]
        for name in names
    ]
    rows.append([(1 if at < middle else -1) * term.species.charge for at, term in enumerate(terms)])
    space = sympy.Matrix([[sympy.Rational(str(entry)) for entry in row] for row in rows]).nullspace()

    found = balance(text)

    assert found.status == {0: "impossible", 1: "solved"}.get(len(space), "underdetermined")
    if len(space) == 1:
        scale = sympy.ilcm(*(entry.q for entry in space[0]))
        wanted = [int(entry * scale) for entry in space[0]]
        assert [int(term.count or 0) for term in found.equations[0].terms] == wanted
