"""Chemical equations: parsing, and balancing by linear algebra over integers."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, repeat
from math import gcd, lcm
from operator import mul
from typing import Literal

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.serialization import Json
from taiwa.tools.chemical_formulas import Formula, plain, species
from taiwa.tools.function_tool import tool

MAX_SPECIES = 24

MAX_ELEMENTS = 24

MAX_PLUSES = 8

EXAMPLE = "for example 2H2 + O2 -> 2H2O"

ARROW = re.compile(r"\s*(?:<?[-=–—]+>|<[-=]+>?|[→⟶⟹⇒⇌⇄⇋↔⟷⟵←])\s*")

EQUALS = re.compile(r"\s*=\s*")
# Conditions over an arrow: ->[heat], --Δ-->. In brackets only words that are not a species.
OVER = r"(?:heat(?:ing)?|light|spark|electrolysis|cat(?:alyst)?\.?|uv|h[νv]|Δ|\\Delta|[0-9]{1,4}\s?(?:°C|℃|K|atm))"

OVERS = rf"{OVER}(?:,?\s?{OVER}){{0,3}}"

CONDITIONS = re.compile(
    rf"(?P<arrow>->|→|⟶|⇌|=>)\[{OVERS}\](?:\[{OVERS}\])?|(?<![-=–—])[-=–—]{{1,4}}\s?\(?{OVERS}\)?\s?(?:[-=–—]{{0,4}}>|→)",
    re.IGNORECASE,
)
# aC2H6 + bO2 -> cCO2: a species does not start with a lower-case letter; in a single term its case may be wrong.
LETTERED = re.compile(r"\s*(?:(?P<letter>[a-z])(?=[A-Z(\[])|[0-9?_]|[a-z]\s+[A-Z(\[])")

LABEL = re.compile(r"\A\s*(?:reactants?|products?|equation|reaction|unbalanced|balance)\s*:?\s+(?=\S)", re.IGNORECASE)
# The heat of a reaction, as a term or after the equation, is not a species.
HEAT = re.compile(
    r"\s*\+\s*(?:heat|energy|light|Δ)\b|\b(?:heat|energy|light)\s*\+\s*|[,;]?\s*(?:Δ|\\Delta\s*)_?r?H\b.*\Z"
)

PLUS = re.compile(r"\s+\+\s+|\s*\+\s+(?=[\d?_])")

NUMBER = r"[0-9]+(?:\.[0-9]+|/[0-9]+)?"

UNKNOWN = r"\?|_+(?![{0-9])|[a-dg-z](?=\s+[A-Z(\[^])"

TERM = re.compile(
    rf"(?:(?P<number>{NUMBER})|(?P<unknown>{UNKNOWN}))?\s*(?:mol(?:es?)?\s+(?:of\s+)?|[·x]\s*)?(?P<species>.*)\Z",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Term:
    """One species of a side; `count` is None if it is unknown, `is_explicit` if a number or an unknown was written."""

    species: Formula
    count: Fraction | None = Fraction(1)
    is_explicit: bool = False


@dataclass(frozen=True, slots=True)
class Equation:
    """Both sides of an equation."""

    reactants: tuple[Term, ...]
    products: tuple[Term, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """Reactants, then products."""
        return self.reactants + self.products


def equation(text: str) -> Equation:
    """Read an equation: `2H2 + ?O2 -> ? H2O`, or reactants and products on two lines.

    >>> [term.count for term in equation("2 H2 + ?O2 → 2H2O").terms]
    [Fraction(2, 1), None, Fraction(2, 1)]

    Raises:
        ToolError: the equation or one of its species is malformed.
    """
    arrow = CONDITIONS.sub(lambda found: found["arrow"] or "->", plain(text))
    sides = _unlettered([LABEL.sub("", side) for side in _sides(HEAT.sub("", arrow))])
    if len(sides) != 2 or not all(side.strip() for side in sides):
        why = "an equation must have reactants and products with one arrow between them"
        raise ToolError(why, code="syntax", hint="for example H2 + O2 -> H2O")
    found = Equation(*(_terms(side) for side in sides))
    if len(found.terms) > MAX_SPECIES:
        raise ToolError(f"the equation has {len(found.terms)} species", code="too_long", hint=f"at most {MAX_SPECIES}")
    if len({atom for term in found.terms for atom in term.species.atoms}) > MAX_ELEMENTS:
        raise ToolError("the equation has too many elements", code="too_long", hint=f"at most {MAX_ELEMENTS}")
    for side in (found.reactants, found.products):
        names = [term.species.text for term in side]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ToolError(f"{twice} occurs twice on one side", code="duplicate", hint="write it once")
    return found


def _sides(text: str) -> list[str]:
    for form in (ARROW, EQUALS):
        if form.search(text) is not None:
            return form.split(text)
    return [line for line in text.splitlines() if line.strip()]


def _unlettered(sides: list[str]) -> list[str]:
    """Separate letters for coefficients from their species; then all terms must have a coefficient."""
    match = [LETTERED.match(piece) for side in sides for piece in PLUS.split(side)]
    letters = [each["letter"] for each in match if each is not None and each["letter"]]
    if None in match or len(letters) < 2 or len(set(letters)) < len(letters):
        return sides
    return [" + ".join(re.sub(r"\A\s*[a-z](?=[A-Z(\[])", "? ", piece) for piece in PLUS.split(side)) for side in sides]


def _terms(side: str) -> tuple[Term, ...]:
    pieces = [piece.strip() for piece in PLUS.split(LABEL.sub("", side).strip())]
    return tuple(term for piece in pieces for term in _close_terms(piece))


def _close_terms(piece: str) -> tuple[Term, ...]:
    """Parse a piece without ` + `: one species, or several joined by a bare `+` with only one possible reading."""
    try:
        return (_term(piece),)
    except ToolError as error:
        inner = [at for at in range(1, len(piece) - 1) if piece[at] == "+" and "{" not in piece[:at].rpartition("^")[2]]
        if not inner or len(inner) > MAX_PLUSES or error.code == "ambiguous":
            raise
        found = _splits(piece)
        if len(found) == 1:
            return found[0]
        if not found:
            raise
        why = f"{piece[:60]} has two readings"
        raise ToolError(why, code="ambiguous", hint="write ' + ' between species") from None


def _splits(piece: str) -> list[tuple[Term, ...]]:
    """Return the readings of a piece as species joined by `+`, at most two."""
    ways: dict[int, list[tuple[Term, ...]]] = {0: [()]}
    ends = [at for at, char in enumerate(piece) if char == "+"] + [len(piece)]
    for end in ends:
        for start in sorted(ways):
            with suppress(ToolError):
                term = _term(piece[start:end])
                ways.setdefault(end + 1, []).extend((*way, term) for way in ways[start])
    return ways.get(len(piece) + 1, [])[:2]


def _term(text: str) -> Term:
    match = TERM.match(text.strip())
    if match is None or not match["species"].strip():
        hint = "products are not predicted: write every species" if text.strip() in ("?", "_") else EXAMPLE
        raise ToolError(f"{text[:60]!r} has no species", code="syntax", hint=hint)
    kind = species(match["species"])
    if match["unknown"]:
        return Term(kind, None, is_explicit=True)
    number = match["number"]
    if number is None:
        return Term(kind)
    if re.search(r"/0+\Z", number) or len(number) > 20 or not Fraction(number):
        raise ToolError(f"{number[:20]} is not a coefficient", code="syntax", hint="for example 2 or 1/2")
    return Term(kind, Fraction(number), is_explicit=True)


Row = list[int]


def null_space(rows: Sequence[Sequence[int]], columns: int) -> list[Row]:
    """Return a basis of all x with A x = 0, each vector in lowest terms, by Gauss-Jordan elimination without fractions.

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


def _lowest(row: Sequence[int | Fraction]) -> Row:
    """Return the multiple of a row in whole numbers without a common divisor."""
    scale = lcm(*(entry.denominator for entry in row))
    whole = [int(entry * scale) for entry in row]
    shared = gcd(*whole) or 1
    return [entry // shared for entry in whole]


def _vector(rows: list[Row], pivots: list[int], free: int, columns: int) -> Row:
    found = [Fraction(0)] * columns
    found[free] = Fraction(1)
    for row, pivot in zip(rows, pivots, strict=False):
        found[pivot] = Fraction(-row[free], row[pivot])
    return _lowest(found)


def positive_solution(rows: Sequence[Sequence[int]], columns: int) -> list[Fraction] | None:
    """Return an x with A x = 0 whose entries are all at least 1; None if there is none.

    The first phase of the simplex method on x = 1 + y, y >= 0, with Bland's rule, which cannot cycle; rows stay whole.
    """
    table: list[Row] = []
    for number, row in enumerate(rows):
        # The constants of A (1 + y) = 0; a row changes its sign so that its artificial variable starts at zero or more.
        wanted = -sum(row)
        sign = -1 if wanted < 0 else 1
        slack = [int(other == number) for other in range(len(rows))]
        table.append([*(sign * entry for entry in row), *slack, sign * wanted])
    basis = [columns + number for number in range(len(rows))]
    # The objective per column is the sum of the rows whose artificial variable is still in the basis.
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
    """Return the first column that lowers the sum of the artificial variables."""
    artificial = [(row, variable) for variable, row in zip(basis, table, strict=True) if variable >= columns]
    for column in range(columns):
        if column not in basis and sum(Fraction(row[column], row[variable]) for row, variable in artificial) > 0:
            return column
    return None


def _leaving(table: list[Row], basis: list[int], entering: int) -> int:
    """Return the row that bounds the entering variable first; of equals that of the lowest variable."""
    bounds = [
        (Fraction(row[-1], row[entering]), basis[number], number)
        for number, row in enumerate(table)
        if row[entering] * row[basis[number]] > 0
    ]
    return min(bounds)[2]


CHARGE = "charge"

MAX_SHOWN = 4


@tool(isolated=False)  # bounded by construction
def stoichiometry(equation: str) -> ToolResult:
    """Find the coefficients of a chemical equation, such as H2 + O2 -> H2O, or the unknown ones marked ? in 2H2 + ?O2 -> ?H2O.

    All reactants and products must be given. Write ions as SO4^2- and electrons as e^-.
    """
    found = balance(equation)
    if found.status == "impossible":
        raise ToolError(found.text, code="impossible", hint="name all reactants and products")
    value: dict[str, Json] = {"status": found.status, "text": found.text}
    if found.status == "solved":
        value["reactants"] = {term.species.text: str(term.count) for term in found.equations[0].reactants}
        value["products"] = {term.species.text: str(term.count) for term in found.equations[0].products}
    elif found.status == "underdetermined":
        value["basis"] = [_spelled(each) for each in found.equations]
    return ToolResult(found.text, value=value)


@dataclass(frozen=True, slots=True)
class Balance:
    """The result of balancing; `equations` contains the solved equation, or a basis of the independent reactions."""

    status: Literal["solved", "underdetermined", "impossible"]
    text: str
    equations: tuple[Equation, ...] = ()


def balance(text: str) -> Balance:
    """Balance an equation, exactly.

    If a coefficient is marked `?`, all others are used as written (none means 1). Without a mark all are determined, in lowest
    whole numbers, unless the equation is balanced as written and has other solutions too.

    >>> balance("Fe + O2 -> Fe2O3").text, balance("CO -> CO2").status
    ('4Fe + 3O2 -> 2Fe2O3', 'impossible')

    Raises:
        ToolError: the equation is malformed.
    """
    reaction = equation(text)
    marked = [term.count is None for term in reaction.terms]
    system = _System(reaction, tuple(marked) if any(marked) and not all(marked) else ())
    return system.solved()


class _System:
    """The equation as a homogeneous system: a column per unknown, and one for all given coefficients."""

    def __init__(self, reaction: Equation, marked: tuple[bool, ...]) -> None:
        self._reaction = reaction
        self._marked = marked
        signs = [1] * len(reaction.reactants) + [-1] * len(reaction.products)
        self._atoms = list(dict.fromkeys(atom for term in reaction.terms for atom in term.species.atoms))
        counted = [
            [sign * term.species.atoms.get(atom, Fraction(0)) for sign, term in zip(signs, reaction.terms, strict=True)]
            for atom in self._atoms
        ]
        charges = [Fraction(sign * term.species.charge) for sign, term in zip(signs, reaction.terms, strict=True)]
        self._rows = [*counted, charges] if any(charges) else counted
        self._names = [*self._atoms, CHARGE]

    def solved(self) -> Balance:
        lone = self._one_sided()
        if lone:
            return Balance("impossible", f"impossible: {lone}")
        rows = [_lowest(row) for row in self._combined()]
        width = len(rows[0])
        basis = null_space(rows, width)
        if not basis:
            return Balance("impossible", self._contradiction())
        if len(basis) == 1:
            return self._single(basis[0])
        # Written coefficients that balance are an answer, although others exist.
        if not self._marked and self._conserved():
            return self._answer([term.count or Fraction(1) for term in self._reaction.terms])
        # Without the rows that are equal; other dependent rows are harmless.
        if positive_solution([row for row in dict.fromkeys(map(tuple, rows)) if any(row)], width) is None:
            return Balance("impossible", f"impossible: no positive coefficients conserve {self._all()} together")
        return self._many()

    def _combined(self) -> list[list[Fraction]]:
        """Return the rows with all given coefficients combined in a last column."""
        if not self._marked:
            return self._rows
        counts = [term.count or Fraction(0) for term in self._reaction.terms]
        return [[*compress(row, self._marked), sum(map(mul, row, counts), Fraction(0))] for row in self._rows]

    def _single(self, vector: Sequence[int]) -> Balance:
        names = [term.species.text for term in compress(self._reaction.terms, self._marked or repeat(True))]
        if self._marked and not vector[-1]:
            return Balance("impossible", self._contradiction())
        # A vector of the null space has no sign of its own; the one with more positive entries names fewer faults.
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
        return self._answer([next(found) if term.count is None else term.count for term in self._reaction.terms])

    def _answer(self, counts: Sequence[Fraction]) -> Balance:
        whole = _counted(self._reaction, counts)
        return Balance("solved", _spelled(whole), (whole,))

    def _many(self) -> Balance:
        width = len(self._reaction.terms)
        basis = null_space([_lowest(row) for row in self._rows], width)
        reactions = tuple(_reaction(self._reaction, vector) for vector in basis)
        shown = "; ".join(_spelled(each) for each in reactions[:MAX_SHOWN])
        more = "" if len(reactions) <= MAX_SHOWN else f"; and {len(reactions) - MAX_SHOWN} more"
        text = f"underdetermined: {len(reactions)} independent reactions: {shown}{more}"
        return Balance("underdetermined", text, reactions)

    def _one_sided(self) -> str:
        """Describe an element on one side only, or one that the given coefficients do not balance; empty if there is none."""
        middle = len(self._reaction.reactants)
        for name, row in zip(self._names, self._rows, strict=False):
            left, right = any(row[:middle]), any(row[middle:])
            if name != CHARGE and left != right:
                return f"{name} is only on the {'left' if left else 'right'}"
            counted = [entry * (term.count or 0) for entry, term in zip(row, self._reaction.terms, strict=True)]
            settled = self._marked and not any(compress(row, self._marked))
            if settled and sum(counted):
                return f"{name} is {sum(counted[:middle])} on the left and {-sum(counted[middle:])} on the right"
        return ""

    def _contradiction(self) -> str:
        return f"impossible: no coefficients conserve {self._all()} together"

    def _all(self) -> str:
        *first, last = self._names[: len(self._rows)]
        return f"{', '.join(first)} and {last}" if first else last

    def _conserved(self) -> bool:
        counts = [term.count for term in self._reaction.terms if term.count is not None]
        if len(counts) < len(self._reaction.terms) or not any(term.is_explicit for term in self._reaction.terms):
            return False
        return not any(sum(map(mul, row, counts)) for row in self._rows)


def _counted(reaction: Equation, counts: Sequence[Fraction]) -> Equation:
    terms = tuple(Term(term.species, count) for term, count in zip(reaction.terms, counts, strict=True))
    middle = len(reaction.reactants)
    return Equation(terms[:middle], terms[middle:])


def _reaction(reaction: Equation, vector: Sequence[int]) -> Equation:
    """Return one independent reaction; a species with a negative coefficient moves to the other side."""
    middle = len(reaction.reactants)
    if sum(entry < 0 for entry in vector[:middle]) > sum(entry > 0 for entry in vector[:middle]):
        vector = [-entry for entry in vector]
    terms = tuple(Term(term.species, Fraction(entry)) for term, entry in zip(reaction.terms, vector, strict=True))

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
