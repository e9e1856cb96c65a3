"""The molar mass of a formula, exact sums of atomic weights, with the share of each element."""

from collections.abc import Mapping
from fractions import Fraction

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json
from taiwa.kernel.values import ToolResult
from taiwa.tools.elements import Weights, weight
from taiwa.tools.formula import Formula, formula
from taiwa.tools.numbers import rounded, spell, spell_near
from taiwa.tools.tool import tool

__all__ = ["mass", "mass_percent", "molar_mass"]

SHOWN_DIGITS = 6


@tool(isolated=False)  # bounded by construction
def molar_mass(formula: str, weights: Weights = "iupac") -> ToolResult:
    """Give the molar mass of a chemical formula in g/mol; weights "integer" uses rounded atomic weights.

    Write hydrates as CuSO4·5H2O, ions as SO4^2-, isotopes as ^13CO2.
    """
    found = _substance(formula)
    whole = mass(found, weights)
    shares = mass_percent(found, weights)
    value: dict[str, Json] = {
        "formula": found.text,
        "molar_mass": spell_near(whole),
        "unit": "g/mol",
        "weights": weights,
        "atoms": {atom: str(count) for atom, count in found.atoms.items()},
        "percent": {symbol: spell(share) for symbol, share in shares.items()},
    }
    return ToolResult(f"{spell(Fraction(rounded(whole, SHOWN_DIGITS)))} g/mol", value=value)


def mass(substance: Formula, weights: Weights = "iupac") -> Fraction:
    """The molar mass in g/mol; the electrons that an ion has more or fewer weigh nothing here, as in any textbook.

    >>> mass(formula("H2O"), "integer")
    Fraction(18, 1)
    """
    return sum((count * weight(atom, weights) for atom, count in substance.atoms.items()), Fraction(0))


def mass_percent(substance: Formula, weights: Weights = "iupac") -> Mapping[str, Fraction]:
    """The share of each element in the mass, in hundredths; nuclides of one element count together.

    >>> mass_percent(formula("H2O"), "integer")["O"]
    Fraction(800, 9)
    """
    whole = mass(substance, weights)
    shares: dict[str, Fraction] = {}
    for atom, count in substance.atoms.items():
        symbol = atom.lstrip("^0123456789")
        shares[symbol] = shares.get(symbol, Fraction(0)) + 100 * count * weight(atom, weights) / whole
    return shares


def _substance(text: str) -> Formula:
    found = formula(text)
    if not found.atoms:
        raise ToolError("an electron is no substance", code="syntax", hint="its mass is 0.000548580 g/mol")
    return found
