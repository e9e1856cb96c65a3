"""The elements: symbols, standard weights, integer weights, and the masses of nuclides; both tables name their source."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["Element", "Weights", "elements", "nuclides", "weight"]

Weights: TypeAlias = Literal["iupac", "integer"]
"""Standard atomic weights, or these rounded half up to whole numbers as school books do."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element; without a standard weight its weight is the mass number of a long-lived isotope."""

    number: int
    symbol: str
    name: str
    weight: Fraction
    standard: bool


@cache
def elements() -> Mapping[str, Element]:
    """Every element by its symbol."""
    found: dict[str, Element] = {}
    for number, symbol, name, mass in _rows("elements.tsv"):
        found[symbol] = Element(int(number), symbol, name, Fraction(mass.rstrip("*")), not mass.endswith("*"))
    return MappingProxyType(found)


@cache
def nuclides() -> Mapping[str, Mapping[int, Fraction]]:
    """The mass of every known nuclide by symbol and mass number, in unified atomic mass units."""
    found: dict[str, Mapping[int, Fraction]] = {}
    for symbol, *masses in _rows("nuclides.tsv"):
        pairs = (mass.split(":") for mass in masses)
        found[symbol] = {int(number): Fraction(mass) for number, mass in pairs}
    return MappingProxyType(found)


def weight(atom: str, weights: Weights) -> Fraction:
    """The weight of an atom as a formula names it: `C`, or `^13C` for one nuclide."""
    if atom.startswith("^"):
        symbol = atom.lstrip("^0123456789")
        number = int(atom[1 : len(atom) - len(symbol)])
        return Fraction(number) if weights == "integer" else nuclides()[symbol][number]
    exact = elements()[atom].weight
    if weights == "iupac":
        return exact
    decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
    return Fraction(decimal.quantize(Decimal(1), ROUND_HALF_UP))


def _rows(name: str) -> list[list[str]]:
    text = files("taiwa.tools").joinpath(name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
