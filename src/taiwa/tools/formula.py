"""Chemical formulas: nested brackets, hydrates, ions, isotopes, states, subscripts, condensed structures.

What can be read in two ways is refused with the right spellings; nothing that is no formula has a value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn, TypeAlias

from taiwa.kernel.errors import ToolError
from taiwa.tools.elements import elements, nuclides
from taiwa.tools.notation import plain, split_charge, without_state
from taiwa.tools.spelling import meant

__all__ = ["ELECTRON", "Formula", "formula", "species"]

MAX_DEPTH = 20
MAX_COUNT = 10**9
MAX_DIGITS = 7
CLOSES = {"(": ")", "[": "]", "{": "}"}
ELECTRON = re.compile(r"e(?:\^?\{?-\}?|\^\{?1?-\}?)\Z")
ISOTOPE = re.compile(r"\^(?:\{([0-9]{1,3})\}|([0-9]{1,3}))")
BRACKETED_ISOTOPE = re.compile(r"\[([0-9]{1,3})([A-Z][a-z]?)(?:_?\{?([0-9]{1,4})\}?)?\]")
SYMBOL = re.compile(r"[A-Z][a-z]?")
NUMBER = rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}}|/[0-9]{{1,3}})?"
MARKED_SUBSCRIPT = re.compile(rf"_(?:\{{\s*({NUMBER})\s*\}}|({NUMBER}))")
SUBSCRIPT = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}})?")
LEADING = re.compile(rf"{NUMBER}\s*")
BOND = re.compile(r"[-=≡](?=[A-Z(\[])")
DOT = re.compile(r"\s*·\s*")
# A full stop may join two parts (CuSO4.5H2O), or be a decimal point (Fe0.95O, YBa2Cu3O6.93, ·1.5H2O).
FULL_STOP = re.compile(r"(?P<before>(?:_\{?|(?:\A|·)\s*)?[0-9]*)\.(?P<after>[0-9]*)(?P<unit>[A-Z(\[])?")
OXIDATION_STATE = re.compile(r"\((?:I{1,3}|IV|VI{0,3})\)(?![0-9_])")
NUCLIDE = re.compile(r"([A-Z][a-z]?)-([0-9]{1,3})")
SOLVATE = re.compile(r"(?:H2O|D2O)(?![a-z0-9])")
Count: TypeAlias = int | Fraction
"""How many: whole numbers are added and multiplied many times faster than fractions."""
ALIASES = {"D": ("H", 2), "T": ("H", 3)}
GROUPS = {"Me": "CH3", "Et": "C2H5", "Bu": "C4H9", "Ph": "C6H5"}
"""Groups that chemists write like elements, and what they stand for."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A species: how many of each atom (`C`, or `^13C` for one nuclide), and its charge; `text` is its plain spelling."""

    text: str
    atoms: Mapping[str, Fraction]
    charge: int = 0


def formula(text: str) -> Formula:
    """Read the formula of one substance or ion.

    >>> formula("CuSO4·5H2O").atoms["O"], formula("SO₄²⁻").charge
    (Fraction(9, 1), -2)

    Raises:
        ToolError: `syntax` or `unknown_element` where it is none; `ambiguous` where it can be read in two ways.
    """
    found = species(text)
    leading = LEADING.match(found.text)
    if leading is None or "·" in found.text:
        return found
    number, rest = leading[0].strip(), found.text[leading.end() :]
    isotope = f"; for the isotope write ^{number}{rest[:60]}" if _is_isotope(number, rest) else ""
    raise ToolError(
        f"{found.text[:60]} begins with a number",
        code="ambiguous",
        hint=f"write {rest[:60]} and multiply by {number}{isotope}",
    )


def species(text: str, *, mended: bool = False) -> Formula:
    """Read a formula, or the electron `e^-`; the first part of a formula with dots may begin with a number.

    For a text that is `mended` no further spelling is proposed.
    """
    given = without_state(" ".join("".join(char if char.isprintable() else " " for char in plain(text)).split()))
    if ELECTRON.match(given):
        return Formula("e^-", {}, -1)
    if not given:
        raise ToolError("there is no formula", code="syntax", hint="for example H2O, Ca(OH)2, CuSO4·5H2O or SO4^2-")
    if (state := OXIDATION_STATE.search(given)) is not None:
        raise ToolError(
            f"{state[0]} is an oxidation state, which a formula does not hold",
            code="syntax",
            hint="write Fe^2+ or FeCl2",
        )
    _refuse_nuclide(given)
    bare, charge = split_charge(given)
    bare = _dotted(bare)
    atoms: dict[str, Count] = {}
    for part in DOT.split(bare):
        leading = LEADING.match(part)
        times = _count(leading[0].strip()) if leading and "/0" not in leading[0] else 1
        found = _Parser(part, leading.end() if leading else 0, given, mended).whole()
        for atom, count in found.items():
            atoms[atom] = atoms.get(atom, 0) + count * times
    if any(not count for count in atoms.values()):
        raise ToolError(f"{given[:60]} counts no atoms of something", code="syntax", hint="leave it out")
    return Formula(_spelled(bare, charge), {atom: Fraction(count) for atom, count in atoms.items()}, charge)


def _is_formula(text: str) -> bool:
    try:
        species(text, mended=True)
    except ToolError:
        return False
    return True


def _count(number: str) -> Count:
    return int(number) if number.isdigit() else Fraction(number)


def _refuse_nuclide(text: str) -> None:
    """`C-14` is a nuclide for physicists, and where charges are written so an ion."""
    found = NUCLIDE.fullmatch(text)
    if found is not None and int(found[2]) in nuclides().get(found[1], {}):
        hint = f"write ^{found[2]}{found[1]} or {found[1]}^{found[2]}-"
        raise ToolError(f"{text} is ambiguous", code="ambiguous", hint=hint)


def _dotted(text: str) -> str:
    """Write every full stop that joins two parts as the dot `·`; a decimal point stays."""

    def judge(found: re.Match[str]) -> str:
        before, after, unit = found["before"], found["after"], found["unit"] or ""
        if text[found.end() :].startswith("."):
            raise ToolError(f"the dots in {text[:60]} are ambiguous", code="ambiguous", hint="write CaSO4·0.5H2O")
        if not before and unit:
            return f"·{after}{unit}"
        if not before or not after or not unit or not before[0].isdigit() or before == "0":
            joins = before.isdigit() and unit and not after
            return f"{before}·{unit}" if joins else found[0]
        if SOLVATE.match(text, found.start("unit")):
            return f"{before}·{after}{unit}"
        either = (f"{text[: found.start()]}{way}{text[found.start('unit') :]}" for way in _ways(before, after))
        raise ToolError(
            f"the dot in {text[:60]} is ambiguous", code="ambiguous", hint=f"write {' or '.join(either)}"[:300]
        )

    return FULL_STOP.sub(judge, text)


def _ways(before: str, after: str) -> tuple[str, str]:
    return f"{before}·{after}", f"_{{{before}.{after}}}"


def _spelled(bare: str, charge: int) -> str:
    """The plain spelling: marks of subscripts are left out where digits say the same."""
    text = re.sub(r"_(?:\{([0-9]+)\}|([0-9]+)(?![.0-9]))", r"\1\2", bare)
    text = re.sub(r"\^\{([0-9]+)\}", r"^\1", text)
    if not charge:
        return text
    return f"{text}^{abs(charge) if abs(charge) > 1 else ''}{'+' if charge > 0 else '-'}"


def _is_isotope(number: str, rest: str) -> bool:
    symbol = SYMBOL.match(rest)
    return number.isdigit() and symbol is not None and int(number) in nuclides().get(symbol[0], {})


@dataclass(slots=True)
class _Parser:
    """Recursive descent over one part of a formula, from `at`; `given` is what an error quotes."""

    text: str
    at: int
    given: str
    mended: bool
    """Whether the text is a proposal of ours, for which nothing else is proposed."""
    depth: int = field(default=0, init=False)

    def whole(self) -> dict[str, Count]:
        atoms = self.units("")
        if self.at < len(self.text):
            if self.text[self.at].isdigit() and self.text[self.at - 1 : self.at].isdigit():
                self.fail("a number is too large", "too_large")
            odd = self.text[self.at :].lstrip(".")[:1]
            self.fail(
                "a number must stand there" if odd and odd in "nmx" else f"{self.text[self.at]!r} cannot stand there"
            )
        return atoms

    def fail(self, what: str, code: str = "syntax") -> NoReturn:
        proposals = () if "number" in what or self.mended else [one for one in meant(self.given) if _is_formula(one)]
        hint = f"write {' or '.join(proposals)}" if proposals else "for example H2O, Ca(OH)2, CuSO4·5H2O or SO4^2-"
        raise ToolError(f"{self.given[:60]!r} is no formula: {what}", code=code, hint=hint)

    def units(self, closing: str) -> dict[str, Count]:
        atoms: dict[str, Count] = {}
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != closing:
            found = self.unit()
            if found is None:
                break
            count = self.subscript()
            for atom, each in found.items():
                atoms[atom] = atoms.get(atom, 0) + each * count
                if atoms[atom] > MAX_COUNT:
                    self.fail("there are too many atoms", "too_large")
            self.bond()
        if self.at == start:
            self.fail("an element is missing")
        return atoms

    def unit(self) -> dict[str, Count] | None:
        if (found := BRACKETED_ISOTOPE.match(self.text, self.at)) is not None:
            self.at = found.end()
            return {self.nuclide(int(found[1]), found[2]): int(found[3] or 1)}
        if (found := ISOTOPE.match(self.text, self.at)) is not None:
            self.at = found.end()
            return {self.nuclide(int(found[1] or found[2]), self.symbol()): 1}
        opening = self.text[self.at]
        if opening in CLOSES:
            return self.group(CLOSES[opening])
        if not opening.isascii() or not opening.isupper():
            return None
        symbol = self.symbol()
        if symbol in ALIASES:
            return {self.nuclide(ALIASES[symbol][1], ALIASES[symbol][0]): 1}
        return {symbol: 1}

    def symbol(self) -> str:
        """The longest symbol here: `Co` is cobalt and `CO` is not."""
        found = SYMBOL.match(self.text, self.at)
        if found is None:
            self.fail("an element is missing")
        symbol = found[0]
        if symbol in GROUPS:
            raise ToolError(
                f"{symbol} is a group and no element", code="unknown_element", hint=f"write {GROUPS[symbol]}"
            )
        if symbol not in elements() and symbol not in ALIASES:
            self.fail(f"{symbol} is no element", "unknown_element")
        if symbol == "Ac" and self.text[: self.at].endswith("O"):
            raise ToolError(
                "OAc would be actinium; is it acetate?", code="ambiguous", hint="write CH3COO, or O_{1}Ac for actinium"
            )
        self.at = found.end()
        return symbol

    def nuclide(self, number: int, symbol: str) -> str:
        if number not in nuclides().get(symbol, {}):
            self.fail(f"no nuclide {number}{symbol} is known", "unknown_element")
        return f"^{number}{symbol}"

    def group(self, closing: str) -> dict[str, Count]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"brackets are nested more than {MAX_DEPTH} deep", "too_deep")
        self.at += 1
        atoms = self.units(closing)
        if self.at >= len(self.text) or self.text[self.at] != closing:
            self.fail(f"{closing!r} is missing")
        self.at += 1
        self.depth -= 1
        return atoms

    def subscript(self) -> Count:
        marked = MARKED_SUBSCRIPT.match(self.text, self.at)
        found = marked or SUBSCRIPT.match(self.text, self.at)
        if found is None:
            return 1
        number = (marked[1] or marked[2]) if marked else found[0]
        self.at = found.end()
        if number.endswith("/0") or "/00" in number or not (count := _count(number)):
            self.fail("a count of 0")
        if number.startswith("0") and "." not in number:
            self.fail("a count begins with 0")
        return count

    def bond(self) -> None:
        if (found := BOND.match(self.text, self.at)) is not None:
            self.at = found.end()
