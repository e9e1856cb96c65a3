"""Chemical equations as text: arrows, coefficients, unknowns, and species that themselves end in a plus."""

import re
from dataclasses import dataclass
from fractions import Fraction

from taiwa.kernel.errors import ToolError
from taiwa.tools.formula import Formula, species
from taiwa.tools.notation import plain

__all__ = ["Equation", "Term", "equation"]

MAX_SPECIES = 24
MAX_ELEMENTS = 24
MAX_PLUSES = 8
EXAMPLE = "for example 2H2 + O2 -> 2H2O"
ARROW = re.compile(r"\s*(?:<?[-=–—]+>|<[-=]+>?|[→⟶⟹⇒⇌⇄⇋↔⟷⟵←])\s*")
EQUALS = re.compile(r"\s*=\s*")
# What stands over an arrow: ->[heat], --Δ-->. Between brackets only what is no species.
OVER = r"(?:heat(?:ing)?|light|spark|electrolysis|cat(?:alyst)?\.?|uv|h[νv]|Δ|\\Delta|[0-9]{1,4}\s?(?:°C|℃|K|atm))"
OVERS = rf"{OVER}(?:,?\s?{OVER}){{0,3}}"
CONDITIONS = re.compile(
    rf"(?P<arrow>->|→|⟶|⇌|=>)\[{OVERS}\](?:\[{OVERS}\])?|(?<![-=–—])[-=–—]{{1,4}}\s?\(?{OVERS}\)?\s?(?:[-=–—]{{0,4}}>|→)",
    re.IGNORECASE,
)
# aC2H6 + bO2 -> cCO2: no species begins with a small letter, but where a single term does, its case may be wrong.
LETTERED = re.compile(r"\s*(?:(?P<letter>[a-z])(?=[A-Z(\[])|[0-9?_]|[a-z]\s+[A-Z(\[])")
LABEL = re.compile(r"\A\s*(?:reactants?|products?|equation|reaction|unbalanced|balance)\s*:?\s+(?=\S)", re.IGNORECASE)
# What is no species: the heat of a reaction, as a term or behind the equation.
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
    """One species of a side; `count` None where it is to be found, and `said` False where no number was written."""

    species: Formula
    count: Fraction | None = Fraction(1)
    said: bool = False


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
        ToolError: it is none, or one of its species is none.
    """
    arrow = CONDITIONS.sub(lambda found: found["arrow"] or "->", plain(text))
    sides = _unlettered([LABEL.sub("", side) for side in _sides(HEAT.sub("", arrow))])
    if len(sides) != 2 or not all(side.strip() for side in sides):
        raise ToolError(
            "an equation has reactants and products with one arrow between them",
            code="syntax",
            hint="for example H2 + O2 -> H2O",
        )
    found = Equation(*(_terms(side) for side in sides))
    if len(found.terms) > MAX_SPECIES:
        raise ToolError(f"there are {len(found.terms)} species", code="too_long", hint=f"at most {MAX_SPECIES}")
    if len({atom for term in found.terms for atom in term.species.atoms}) > MAX_ELEMENTS:
        raise ToolError("there are too many elements", code="too_long", hint=f"at most {MAX_ELEMENTS}")
    for side in (found.reactants, found.products):
        names = [term.species.text for term in side]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ToolError(f"{twice} stands twice on one side", code="duplicate", hint="write it once")
    return found


def _sides(text: str) -> list[str]:
    for form in (ARROW, EQUALS):
        if form.search(text) is not None:
            return form.split(text)
    return [line for line in text.splitlines() if line.strip()]


def _unlettered(sides: list[str]) -> list[str]:
    """Set off letters that stand for coefficients from their species; all terms must have a coefficient then."""
    found = [LETTERED.match(piece) for side in sides for piece in PLUS.split(side)]
    letters = [each["letter"] for each in found if each is not None and each["letter"]]
    if None in found or len(letters) < 2 or len(set(letters)) < len(letters):
        return sides
    return [" + ".join(re.sub(r"\A\s*[a-z](?=[A-Z(\[])", "? ", piece) for piece in PLUS.split(side)) for side in sides]


def _terms(side: str) -> tuple[Term, ...]:
    pieces = [piece.strip() for piece in PLUS.split(LABEL.sub("", side).strip())]
    return tuple(term for piece in pieces for term in _close_terms(piece))


def _close_terms(piece: str) -> tuple[Term, ...]:
    """Read a piece without ` + `: one species, or several joined by a bare `+`, which must be so in one way only."""
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
        raise ToolError(
            f"{piece[:60]} can be read in two ways", code="ambiguous", hint="write ' + ' between species"
        ) from None


def _splits(piece: str) -> list[tuple[Term, ...]]:
    """Every way to read a piece as species with a plus between them."""
    ways: dict[int, list[tuple[Term, ...]]] = {0: [()]}
    ends = [at for at, char in enumerate(piece) if char == "+"] + [len(piece)]
    for end in ends:
        for start in sorted(ways):
            term = _tried(piece[start:end]) if start < end else None
            if term is not None:
                ways.setdefault(end + 1, []).extend((*way, term) for way in ways[start])
    return ways.get(len(piece) + 1, [])[:2]


def _tried(text: str) -> Term | None:
    try:
        return _term(text)
    except ToolError:
        return None


def _term(text: str) -> Term:
    found = TERM.match(text.strip())
    if found is None or not found["species"].strip():
        hint = "products are not predicted: write every species" if text.strip() in ("?", "_") else EXAMPLE
        raise ToolError(f"{text[:60]!r} has no species", code="syntax", hint=hint)
    kind = species(found["species"])
    if found["unknown"]:
        return Term(kind, None, said=True)
    number = found["number"]
    if number is None:
        return Term(kind)
    if re.search(r"/0+\Z", number) or len(number) > 20 or not Fraction(number):
        raise ToolError(f"{number[:20]} is no coefficient", code="syntax", hint="for example 2 or 1/2")
    return Term(kind, Fraction(number), said=True)
