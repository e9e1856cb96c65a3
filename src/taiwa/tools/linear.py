"""Exact linear algebra over whole numbers, for the few rows and columns of a chemical equation."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

__all__ = ["null_space", "positive_solution"]

Row = list[int]


def null_space(rows: Sequence[Sequence[int]], columns: int) -> list[Row]:
    """A basis of all x with A x = 0, each vector in lowest terms: Gauss-Jordan elimination without fractions.

    >>> null_space([[2, 0, -2], [0, 2, -1]], 3)
    [[2, 1, 2]]
    """
    left = [list(row) for row in rows]
    pivots: list[int] = []
    for column in range(columns):
        at = len(pivots)
        chosen = next((number for number in range(at, len(left)) if left[number][column]), None)
        if chosen is not None:
            left[at], left[chosen] = left[chosen], left[at]
            pivots.append(column)
            for number, row in enumerate(left):
                if number != at and row[column]:
                    left[number] = _cleared(row, left[at], column)
    return [_vector(left, pivots, free, columns) for free in range(columns) if free not in pivots]


def _cleared(row: Row, pivot: Row, column: int) -> Row:
    return _lowest([pivot[column] * a - row[column] * b for a, b in zip(row, pivot, strict=True)])


def _lowest(row: Row) -> Row:
    shared = gcd(*row) or 1
    return [number // shared for number in row]


def _vector(rows: list[Row], pivots: list[int], free: int, columns: int) -> Row:
    found = [Fraction(0)] * columns
    found[free] = Fraction(1)
    for row, pivot in zip(rows, pivots, strict=False):
        found[pivot] = Fraction(-row[free], row[pivot])
    scale = lcm(*(number.denominator for number in found))
    return _lowest([int(number * scale) for number in found])


def positive_solution(rows: Sequence[Sequence[int]], columns: int) -> list[Fraction] | None:
    """Some x with A x = 0 of which every entry is at least one; None where there is none.

    The first phase of the simplex method on x = 1 + y, y >= 0, with Bland's rule, which cannot cycle; rows stay whole.
    """
    table: list[Row] = []
    for number, row in enumerate(rows):
        wanted = -sum(row)
        sign = -1 if wanted < 0 else 1
        slack = [int(other == number) for other in range(len(rows))]
        table.append([*(sign * entry for entry in row), *slack, sign * wanted])
    basis = [columns + number for number in range(len(rows))]
    # What is left to be made good, per column: the sum of the rows whose artificial variable is still in the basis.
    while (entering := _entering(table, basis, columns)) is not None:
        leaving = _leaving(table, basis, entering)
        pivot = table[leaving]
        for number, row in enumerate(table):
            if number != leaving and row[entering]:
                table[number] = _cleared(row, pivot, entering)
        basis[leaving] = entering
    if any(variable >= columns and row[-1] for variable, row in zip(basis, table, strict=True)):
        return None
    found = [Fraction(1)] * columns
    for variable, row in zip(basis, table, strict=True):
        if variable < columns:
            found[variable] += Fraction(row[-1], row[variable])
    return found


def _entering(table: list[Row], basis: list[int], columns: int) -> int | None:
    """The first column that lowers the sum of the artificial variables."""
    for column in range(columns):
        if column not in basis:
            gain = sum(
                Fraction(row[column], row[variable])
                for variable, row in zip(basis, table, strict=True)
                if variable >= columns
            )
            if gain > 0:
                return column
    return None


def _leaving(table: list[Row], basis: list[int], entering: int) -> int:
    """The row that bounds the entering variable first; of equals the one of the lowest variable."""
    bounds = [
        (Fraction(row[-1], row[entering]), basis[number], number)
        for number, row in enumerate(table)
        if row[entering] * row[basis[number]] > 0
    ]
    return min(bounds)[2]
