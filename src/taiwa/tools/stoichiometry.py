"""Stoichiometry: the coefficients of a chemical equation by conservation of every element and of charge.

It cannot predict products. What has no positive solution is impossible, and what has many is said to have many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Literal

from taiwa.kernel.records import Json
from taiwa.kernel.values import ToolResult
from taiwa.tools.equation import Equation, Term, equation
from taiwa.tools.linear import null_space, positive_solution
from taiwa.tools.tool import tool

__all__ = ["Balance", "balance", "stoichiometry"]

CHARGE = "charge"
MAX_SHOWN = 4


@tool(isolated=False)  # bounded by construction
def stoichiometry(equation: str) -> ToolResult:
    """Find the coefficients of a chemical equation, such as H2 + O2 -> H2O, or the unknown ones marked ? in 2H2 + ?O2 -> ?H2O.

    All reactants and products must be given. Write ions as SO4^2- and electrons as e^-.
    """
    found = balance(equation)
    value: dict[str, Json] = {"status": found.status, "text": found.text}
    if found.status == "solved":
        value["reactants"] = {term.species.text: str(term.count) for term in found.equations[0].reactants}
        value["products"] = {term.species.text: str(term.count) for term in found.equations[0].products}
    elif found.status == "underdetermined":
        value["basis"] = [_spelled(each) for each in found.equations]
    return ToolResult(found.text, value=value)


@dataclass(frozen=True, slots=True)
class Balance:
    """What conservation says: `equations` holds the solved equation, or a basis of the independent reactions."""

    status: Literal["solved", "underdetermined", "impossible"]
    text: str
    equations: tuple[Equation, ...] = ()


def balance(text: str) -> Balance:
    """Balance an equation, exactly.

    Where a coefficient is marked `?` all others hold as written (none means 1); without any mark all are to be found, in
    lowest whole numbers, unless the equation conserves everything as it is written and has other solutions, too.

    >>> balance("Fe + O2 -> Fe2O3").text, balance("CO -> CO2").status
    ('4Fe + 3O2 -> 2Fe2O3', 'impossible')

    Raises:
        ToolError: it is no equation.
    """
    given = equation(text)
    marked = [term.count is None for term in given.terms]
    system = _System(given, tuple(marked) if any(marked) and not all(marked) else ())
    return system.solved()


class _System:
    """The equation as a homogeneous system: a column per unknown, and one for all that is given."""

    def __init__(self, given: Equation, marked: tuple[bool, ...]) -> None:
        self._given = given
        self._marked = marked
        signs = [1] * len(given.reactants) + [-1] * len(given.products)
        self._atoms = list(dict.fromkeys(atom for term in given.terms for atom in term.species.atoms))
        counted = [
            [sign * term.species.atoms.get(atom, Fraction(0)) for sign, term in zip(signs, given.terms, strict=True)]
            for atom in self._atoms
        ]
        charges = [Fraction(sign * term.species.charge) for sign, term in zip(signs, given.terms, strict=True)]
        self._rows = [*counted, charges] if any(charges) else counted
        self._names = [*self._atoms, CHARGE]

    def solved(self) -> Balance:
        lone = self._one_sided()
        if lone:
            return Balance("impossible", f"impossible: {lone}")
        rows = [_whole(row) for row in self._folded()]
        width = len(rows[0])
        basis = null_space(rows, width)
        if not basis:
            return Balance("impossible", f"impossible: {self._contradiction()}")
        if len(basis) == 1:
            return self._single(basis[0])
        if not self._marked and self._conserved():
            return self._answer([term.count or Fraction(1) for term in self._given.terms])
        if positive_solution(_independent(rows), width) is None:
            return Balance("impossible", f"impossible: no positive coefficients conserve {self._all()} together")
        return self._many()

    def _folded(self) -> list[list[Fraction]]:
        """The rows with all given coefficients folded into one column at the end."""
        if not self._marked:
            return self._rows
        counts = [term.count or Fraction(0) for term in self._given.terms]
        return [
            [entry for entry, open_ in zip(row, self._marked, strict=True) if open_]
            + [sum((entry * count for entry, count in zip(row, counts, strict=True)), Fraction(0))]
            for row in self._rows
        ]

    def _single(self, vector: Sequence[int]) -> Balance:
        names = [
            term.species.text
            for term, open_ in zip(self._given.terms, self._marked or [True] * len(vector), strict=True)
            if open_
        ]
        if self._marked and not vector[-1]:
            return Balance("impossible", f"impossible: {self._contradiction()}")
        direction = -1 if sum(entry > 0 for entry in vector) < sum(entry < 0 for entry in vector) else 1
        if self._marked:
            direction = 1 if vector[-1] > 0 else -1
        signed = [direction * entry for entry in vector]
        for name, entry in zip(names, signed, strict=False):
            if entry <= 0:
                why = "would get the coefficient 0" if not entry else "would have to stand on the other side"
                return Balance("impossible", f"impossible: {name} {why}")
        if not self._marked:
            return self._answer([Fraction(entry) for entry in signed])
        found = iter(Fraction(entry, signed[-1]) for entry in signed[:-1])
        return self._answer([next(found) if term.count is None else term.count for term in self._given.terms])

    def _answer(self, counts: Sequence[Fraction]) -> Balance:
        whole = _counted(self._given, counts)
        return Balance("solved", _spelled(whole), (whole,))

    def _many(self) -> Balance:
        width = len(self._given.terms)
        basis = null_space([_whole(row) for row in self._rows], width)
        reactions = tuple(_reaction(self._given, vector) for vector in basis)
        shown = "; ".join(_spelled(each) for each in reactions[:MAX_SHOWN])
        more = "" if len(reactions) <= MAX_SHOWN else f"; and {len(reactions) - MAX_SHOWN} more"
        text = f"underdetermined: {len(reactions)} independent reactions: {shown}{more}"
        return Balance("underdetermined", text, reactions)

    def _one_sided(self) -> str:
        """An element that only one side holds, or that the given coefficients alone decide wrongly."""
        middle = len(self._given.reactants)
        for name, row in zip(self._names, self._rows, strict=False):
            left, right = any(row[:middle]), any(row[middle:])
            if name != CHARGE and left != right:
                return f"{name} is only on the {'left' if left else 'right'}"
            counted = [entry * (term.count or 0) for entry, term in zip(row, self._given.terms, strict=True)]
            settled = self._marked and not any(entry for entry, open_ in zip(row, self._marked, strict=True) if open_)
            if settled and sum(counted):
                return f"{name} is {sum(counted[:middle])} on the left and {-sum(counted[middle:])} on the right"
        return ""

    def _contradiction(self) -> str:
        return f"no coefficients conserve {self._all()} together"

    def _all(self) -> str:
        *first, last = self._names[: len(self._rows)]
        return f"{', '.join(first)} and {last}" if first else last

    def _conserved(self) -> bool:
        counts = [term.count or Fraction(1) for term in self._given.terms]
        said = any(term.said for term in self._given.terms) and not any(
            term.count is None for term in self._given.terms
        )
        return said and not any(
            sum(entry * count for entry, count in zip(row, counts, strict=True)) for row in self._rows
        )


def _independent(rows: list[list[int]]) -> list[list[int]]:
    """The rows without copies; what depends on others otherwise does no harm."""
    return [list(row) for row in dict.fromkeys(tuple(row) for row in rows) if any(row)]


def _whole(row: Sequence[Fraction]) -> list[int]:
    scale = lcm(*(entry.denominator for entry in row))
    whole = [int(entry * scale) for entry in row]
    shared = gcd(*whole) or 1
    return [entry // shared for entry in whole]


def _counted(given: Equation, counts: Sequence[Fraction]) -> Equation:
    terms = tuple(Term(term.species, count) for term, count in zip(given.terms, counts, strict=True))
    middle = len(given.reactants)
    return Equation(terms[:middle], terms[middle:])


def _reaction(given: Equation, vector: Sequence[int]) -> Equation:
    """One independent reaction; a species with a negative coefficient moves to the other side."""
    middle = len(given.reactants)
    if sum(entry < 0 for entry in vector[:middle]) > sum(entry > 0 for entry in vector[:middle]):
        vector = [-entry for entry in vector]
    terms = tuple(Term(term.species, Fraction(entry)) for term, entry in zip(given.terms, vector, strict=True))

    def side(own: tuple[Term, ...], other: tuple[Term, ...]) -> tuple[Term, ...]:
        moved = tuple(Term(term.species, -term.count) for term in other if term.count is not None and term.count < 0)
        return tuple(term for term in own if term.count is not None and term.count > 0) + moved

    return Equation(side(terms[:middle], terms[middle:]), side(terms[middle:], terms[:middle]))


def _spelled(whole: Equation) -> str:
    return " -> ".join(" + ".join(map(_term_text, side)) or "nothing" for side in (whole.reactants, whole.products))


def _term_text(term: Term) -> str:
    if term.count is None or term.count == 1:
        return term.species.text
    gap = " " if term.count.denominator != 1 or term.species.text[0] in "0123456789^" else ""
    return f"{term.count}{gap}{term.species.text}"
