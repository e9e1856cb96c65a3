"""Chemical formulas: their notations, charges, elements, and molar masses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import floor
from types import MappingProxyType
from typing import Literal, NoReturn, TypeAlias

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.serialization import Json
from taiwa.tools.expressions import RAISED, halves_to_slashes, narrow, rounded, spell, spell_near
from taiwa.tools.function_tool import tool

MAX_CHARS = 1_000

MAX_NAME_CHARS = 60

LOWERED = "₀₁₂₃₄₅₆₇₈₉"

SUBSCRIPT = re.compile(f"[{LOWERED}]+")

SUPERSCRIPT = re.compile(f"[{RAISED}⁺⁻]+")

DIGITS = str.maketrans(LOWERED + RAISED + "⁺⁻", "0123456789" * 2 + "+-")

SIGNS = str.maketrans({"•": "·", "∙": "·", "⋅": "·", "・": "·", "‧": "·", "*": "·", "−": "-", "–": "-"})

LATEX = re.compile(r"\\(?:ce|mathrm|mathit|text|rm|left|right|,|;|!)(?![a-z])|\$")

LATEX_SIGNS = {
    r"\cdot": "·", r"\times": "x", r"\longrightarrow": "->", r"\rightarrow": "->", r"\rightleftharpoons": "->",
    r"\to": "->", r"\uparrow": "", r"\downarrow": "",
}  # fmt: skip

JOINING = re.compile(r"\s*·\s*|\s+\.\s*(?=[0-9A-Z])|\s*[x,]\s*(?=[0-9]+\s*H_?\{?2\}?O)")
# Lower case only: (S) is sulfur and (s) a solid.
STATE = re.compile(r"(?:\s|_)*(?:\((?:aq|s|l|g|cr|am|vap)(?:,\s*[a-z]+)?\)|\{\((?:aq|s|l|g)\)\}|[↑↓])\s*\Z")

CARET = re.compile(r"\^(?:\{([^{}]*)\}|([0-9]*[+-]+|[+-][0-9]+))\Z")

APART = re.compile(r"\s+([0-9]*[+-]|[+-][0-9]+|[+-]{2,})\Z")

BRACKETED = re.compile(r"[({]([0-9]*[+-]|[+-][0-9]+)[)}]\Z")

JOINED = re.compile(r"(?P<digits>(?<![_.0-9])[0-9]*)(?P<charge>[+-][1-9]|[+-]+)\Z")

CHARGE = re.compile(r"(?P<before>[0-9]*)(?P<sign>\++|-+)(?P<after>[0-9]*)\Z")

OXO_CATION = re.compile(r"(?:[A-Z][a-z]?O2)\Z")

NOT_OXO = re.compile(r"(?:N|P|S|C|H|Cl|Br|I|F|Se)O2\Z")


def plain(text: str) -> str:
    """Convert full-width signs, sub- and superscripts and LaTeX to plain notation.

    >>> plain("Ｃａ₃(PO₄)₂ SO₄²⁻")
    'Ca_{3}(PO_{4})_{2} SO_{4}^{2-}'

    Raises:
        ToolError: the text is too long.
    """
    if len(text) > MAX_CHARS:
        raise ToolError(f"the text has {len(text):,} characters", code="too_long", hint=f"at most {MAX_CHARS:,}")
    text = narrow(text).translate(SIGNS)
    for name, sign in LATEX_SIGNS.items():
        text = text.replace(name, sign)
    text = JOINING.sub("·", LATEX.sub("", text))
    text = halves_to_slashes(text)
    text = SUBSCRIPT.sub(lambda match: f"_{{{match[0].translate(DIGITS)}}}", text)
    return _unwrapped(SUPERSCRIPT.sub(lambda match: f"^{{{match[0].translate(DIGITS)}}}", text).strip())


def _unwrapped(text: str) -> str:
    """Remove braces around the whole text, which LaTeX leaves behind."""
    while text.startswith("{") and text.find("}", _matching(text)) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _matching(text: str) -> int:
    """Return the position at which the first brace is closed."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return at
    return len(text)


def without_state(text: str) -> str:
    """Drop (s), (l), (g), (aq) and the arrows of gases and precipitates from the end."""
    while (match := STATE.search(text)) is not None and match.start() > 0:
        text = text[: match.start()]
    return text.strip()


def split_charge(text: str) -> tuple[str, int]:
    """Cut the charge from the end of a species.

    >>> split_charge("SO4^2-"), split_charge("SO4 2-"), split_charge("[Fe(CN)6]4-"), split_charge("NH4+")
    (('SO4', -2), ('SO4', -2), ('[Fe(CN)6]', -4), ('NH4', 1))

    Raises:
        ToolError: `ambiguous`, the digits before the sign may count atoms or charges.
    """
    for form in (CARET, APART, BRACKETED):
        if (match := form.search(text)) is not None:
            written = next(part for part in match.groups() if part is not None)
            return text[: match.start()].rstrip(), _charge(written, text)
    match = JOINED.search(text)
    if match is None:
        return text, 0
    digits, sign = match["digits"], match["charge"]
    rest = text[: match.start()]
    if not digits or len(sign) > 1:
        return rest + digits, _charge(sign, text)
    return _split_digits(rest, digits, sign)


def _charge(written: str, text: str) -> int:
    match = CHARGE.match(written.replace(" ", ""))
    if match is None or bool(match["before"]) + (len(match["sign"]) > 1) + bool(match["after"]) > 1:
        raise ToolError(f"cannot read the charge of {text[:40]!r}", code="syntax", hint="write SO4^2- or Ca^2+")
    size = int(match["before"] or match["after"] or len(match["sign"]))
    if not 0 < size < 100:
        raise ToolError(f"the charge must be between 1 and 99, got {size}", code="syntax", hint="write SO4^2- or Ca^2+")
    return size if "+" in match["sign"] else -size


def _split_digits(rest: str, digits: str, sign: str) -> tuple[str, int]:
    """Split digits right before a sign into (atoms, charge); exactly one reading must make sense."""
    one = -1 if sign == "-" else 1
    if rest.startswith("[") and rest.endswith("]") and len(digits) == 1:
        return rest, one * int(digits)
    readings = [(digits[:at], digits[at:]) for at in range(len(digits))] + [(digits, "")]
    sensible = [each for each in readings if re.fullmatch(r"(?!0|1,)[0-9]*,[2-9]?|,1", ",".join(each))]
    several = len(re.findall("[A-Z]", rest)) > 1 and not rest.endswith((")", "]", "}"))
    whole = rest + digits
    if several and len(digits) == 1 and not (sign == "+" and OXO_CATION.search(whole) and not NOT_OXO.search(whole)):
        return whole, one
    if len(sensible) == 1:
        atoms, charge = sensible[0]
        return rest + atoms, one * int(charge or 1)
    spelled = " or ".join(f"{rest}{atoms}^{charge}{sign}" for atoms, charge in reversed(sensible))
    raise ToolError(f"{rest[:60]}{digits}{sign} is ambiguous", code="ambiguous", hint=f"write {spelled[:120]}")


Weights: TypeAlias = Literal["iupac", "integer"]
"""Standard atomic weights, or these rounded half up to whole numbers as in school books."""


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
    """Return the elements by symbol."""
    found: dict[str, Element] = {}
    for number, symbol, name, mass in _rows("elements.tsv"):
        found[symbol] = Element(int(number), symbol, name, Fraction(mass.rstrip("*")), not mass.endswith("*"))
    return MappingProxyType(found)


@cache
def nuclides() -> Mapping[str, Mapping[int, Fraction]]:
    """Return the masses of the known nuclides by symbol and mass number, in unified atomic mass units."""
    found: dict[str, Mapping[int, Fraction]] = {}
    for symbol, lowest, *excesses in _rows("nuclides.tsv"):
        found[symbol] = {number: number + Fraction(each) for number, each in enumerate(excesses, int(lowest)) if each}
    return MappingProxyType(found)


def weight(atom: str, weights: Weights) -> Fraction:
    """Return the weight of an atom of a formula: `C`, or `^13C` for one nuclide."""
    if atom.startswith("^"):
        symbol = atom.lstrip("^0123456789")
        number = int(atom[1 : len(atom) - len(symbol)])
        return Fraction(number) if weights == "integer" else nuclides()[symbol][number]
    exact = elements()[atom].weight
    return exact if weights == "iupac" else Fraction(floor(exact + Fraction(1, 2)))


def _rows(name: str) -> list[list[str]]:
    text = files("taiwa.tools").joinpath(name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


SPELLING_MAX_CHARS = 24

LONGEST_WORD = 4

MAX_PROPOSALS = 3

MAX_STEPS = 2_000

WORD = re.compile(r"[A-Za-z]+")


def suggest_spellings(text: str) -> tuple[str, ...]:
    """Suggest correct spellings, nearest first; none for a long text, or for one that looks like a word.

    >>> suggest_spellings("h2o"), suggest_spellings("NaCL")
    (('H2O',), ('NaCl',))
    """
    words = WORD.findall(text)
    if not words or " " in text or len(text) > (LONGEST_WORD if text.isalpha() else SPELLING_MAX_CHARS):
        return ()
    # Every letter of a wrong spelling may be a symbol or half of one, so the ways are bounded, not listed.
    partial = [""]
    steps = 0
    for piece in re.findall(r"[A-Za-z]+|[^A-Za-z]+", text):
        ways = _split(piece) if piece[0].isalpha() else [piece]
        partial = [start + way for start in partial for way in ways][:MAX_STEPS]
        steps += len(partial)
        if steps > MAX_STEPS:
            return ()
    found = [each for each in partial if each != text]
    found.sort(key=lambda each: (sum(a != b for a, b in zip(each, text, strict=True)), sum(map(str.isupper, each))))
    return tuple(found[:MAX_PROPOSALS])


def _split(letters: str) -> list[str]:
    """Return all ways to write these letters as symbols."""
    ways: list[list[str]] = [[""]]
    for end in range(1, len(letters) + 1):
        here: list[str] = []
        for length in (1, 2):
            symbol = letters[end - length : end].capitalize() if end >= length else ""
            if symbol in elements() and len(symbol) == length:
                here += [start + symbol for start in ways[end - length]]
        ways.append(here[:200])
    return ways[-1]


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

FORMULA_SUBSCRIPT = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}})?")

LEADING = re.compile(rf"{NUMBER}\s*")

BOND = re.compile(r"[-=≡](?=[A-Z(\[])")

DOT = re.compile(r"\s*·\s*")
# A full stop may join two parts (CuSO4.5H2O), or be a decimal point (Fe0.95O, YBa2Cu3O6.93, ·1.5H2O).
FULL_STOP = re.compile(r"(?P<before>(?:_\{?|(?:\A|·)\s*)?[0-9]*)\.(?P<after>[0-9]*)(?P<unit>[A-Z(\[])?")

OXIDATION_STATE = re.compile(r"\((?:I{1,3}|IV|VI{0,3})\)(?![0-9_])")

NUCLIDE = re.compile(r"([A-Z][a-z]?)-([0-9]{1,3})")

SOLVATE = re.compile(r"(?:H2O|D2O)(?![a-z0-9])")

Count: TypeAlias = int | Fraction
"""A number of atoms; integers are many times faster than fractions."""

ALIASES = {"D": ("H", 2), "T": ("H", 3)}

GROUPS = {"Me": "CH3", "Et": "C2H5", "Bu": "C4H9", "Ph": "C6H5"}
"""Groups that chemists write like elements, and their formulas."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A species: its plain notation, the number of each atom (`C`, or `^13C` for one nuclide), and its charge."""

    text: str
    atoms: Mapping[str, Fraction]
    charge: int = 0


def formula(text: str) -> Formula:
    """Read the formula of one substance or ion.

    >>> formula("CuSO4·5H2O").atoms["O"], formula("SO₄²⁻").charge
    (Fraction(9, 1), -2)

    Raises:
        ToolError: `syntax` or `unknown_element` for a malformed formula; `ambiguous` for one with two readings.
    """
    found = species(text)
    leading = LEADING.match(found.text)
    if leading is None or "·" in found.text:
        return found
    number, rest = leading[0].strip(), found.text[leading.end() :]
    isotope = f"; for the isotope write ^{number}{rest[:60]}" if _is_isotope(number, rest) else ""
    raise _ambiguous(f"{found.text[:60]} begins with a number", f"{rest[:60]} and multiply by {number}{isotope}")


def _ambiguous(what: str, instead: str) -> ToolError:
    return ToolError(what, code="ambiguous", hint=f"write {instead}"[:300])


def species(text: str, *, suggest: bool = True) -> Formula:
    """Read a formula, or the electron `e^-`; the first part of a formula with dots may begin with a number.

    An error suggests other spellings unless `suggest` is false.
    """
    source = without_state(" ".join("".join(char if char.isprintable() else " " for char in plain(text)).split()))
    if ELECTRON.match(source):
        return Formula("e^-", {}, -1)
    if not source:
        raise ToolError("the formula is empty", code="syntax", hint="for example H2O, Ca(OH)2, CuSO4·5H2O or SO4^2-")
    if (state := OXIDATION_STATE.search(source)) is not None:
        why = f"{state[0]} is an oxidation state, which a formula does not contain"
        raise ToolError(why, code="syntax", hint="write Fe^2+ or FeCl2")
    _refuse_nuclide(source)
    bare, charge = split_charge(source)
    bare = _dotted(bare)
    atoms: dict[str, Count] = {}
    for part in DOT.split(bare):
        leading = LEADING.match(part)
        times = _count(leading[0].strip()) if leading and "/0" not in leading[0] else 1
        found = _Parser(part, leading.end() if leading else 0, source, suggest).whole()
        for atom, count in found.items():
            atoms[atom] = atoms.get(atom, 0) + count * times
    if any(not count for count in atoms.values()):
        raise ToolError(f"{source[:60]!r} has a count of 0", code="syntax", hint="leave it out")
    return Formula(_spelled(bare, charge), {atom: Fraction(count) for atom, count in atoms.items()}, charge)


def _is_formula(text: str) -> bool:
    try:
        species(text, suggest=False)
    except ToolError:
        return False
    return True


def _count(number: str) -> Count:
    return int(number) if number.isdigit() else Fraction(number)


def _refuse_nuclide(text: str) -> None:
    """Refuse `C-14`, which is a nuclide, but also the notation of an ion."""
    match = NUCLIDE.fullmatch(text)
    if match is not None and int(match[2]) in nuclides().get(match[1], {}):
        raise _ambiguous(f"{text} is ambiguous", f"^{match[2]}{match[1]} or {match[1]}^{match[2]}-")


def _dotted(text: str) -> str:
    """Write a full stop that joins two parts as `·`; a decimal point stays."""

    def replace_stop(match: re.Match[str]) -> str:
        before, after, unit = match["before"], match["after"], match["unit"] or ""
        if text[match.end() :].startswith("."):
            raise _ambiguous(f"the dots in {text[:60]} are ambiguous", "CaSO4·0.5H2O")
        if not before and unit:
            return f"·{after}{unit}"
        if not before or not after or not unit or not before[0].isdigit() or before == "0":
            joins = before.isdigit() and unit and not after
            return f"{before}·{unit}" if joins else match[0]
        if SOLVATE.match(text, match.start("unit")):
            return f"{before}·{after}{unit}"
        ways = f"{before}·{after}", f"_{{{before}.{after}}}"
        either = (f"{text[: match.start()]}{way}{text[match.start('unit') :]}" for way in ways)
        raise _ambiguous(f"the dot in {text[:60]} is ambiguous", " or ".join(either))

    return FULL_STOP.sub(replace_stop, text)


def _spelled(bare: str, charge: int) -> str:
    """Return the plain notation, without marks of subscripts that digits alone express."""
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
    """Recursive descent over one part of a formula, from `at`; `source` is what an error quotes."""

    text: str
    at: int
    source: str
    suggest: bool
    """Whether an error suggests other spellings."""
    depth: int = field(default=0, init=False)

    def whole(self) -> dict[str, Count]:
        atoms = self.units("")
        if self.at < len(self.text):
            if self.text[self.at].isdigit() and self.text[self.at - 1 : self.at].isdigit():
                self.fail("a number is too large", "too_large")
            if self.text[self.at :].lstrip(".").startswith(("n", "m", "x")):
                self.fail("a number is expected there")
            self.fail(f"{self.text[self.at]!r} is not expected there")
        return atoms

    def fail(self, what: str, code: str = "syntax") -> NoReturn:
        spellings = suggest_spellings(self.source) if self.suggest and "number" not in what else ()
        proposals = [one for one in spellings if _is_formula(one)]
        hint = f"write {' or '.join(proposals)}" if proposals else "for example H2O, Ca(OH)2, CuSO4·5H2O or SO4^2-"
        raise ToolError(f"{self.source[:60]!r} is not a formula: {what}", code=code, hint=hint)

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
        if (match := BRACKETED_ISOTOPE.match(self.text, self.at)) is not None:
            self.at = match.end()
            return {self.nuclide(int(match[1]), match[2]): int(match[3] or 1)}
        if (match := ISOTOPE.match(self.text, self.at)) is not None:
            self.at = match.end()
            return {self.nuclide(int(match[1] or match[2]), self.symbol()): 1}
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
        """Read the longest symbol: `Co` is cobalt, `CO` is carbon and oxygen."""
        match = SYMBOL.match(self.text, self.at)
        if match is None:
            self.fail("an element is missing")
        symbol = match[0]
        if symbol in GROUPS:
            hint = f"write {GROUPS[symbol]}"
            raise ToolError(f"{symbol} is a group, not an element", code="unknown_element", hint=hint)
        if symbol not in elements() and symbol not in ALIASES:
            self.fail(f"unknown element {symbol}", "unknown_element")
        if symbol == "Ac" and self.text[: self.at].endswith("O"):
            raise _ambiguous("OAc would be actinium; is it acetate?", "CH3COO, or O_{1}Ac for actinium")
        self.at = match.end()
        return symbol

    def nuclide(self, number: int, symbol: str) -> str:
        if number not in nuclides().get(symbol, {}):
            self.fail(f"unknown nuclide {number}{symbol}", "unknown_element")
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
        match = marked or FORMULA_SUBSCRIPT.match(self.text, self.at)
        if match is None:
            return 1
        number = (marked[1] or marked[2]) if marked else match[0]
        self.at = match.end()
        if number.endswith("/0") or "/00" in number or not (count := _count(number)):
            self.fail("a count of 0")
        if number.startswith("0") and "." not in number:
            self.fail("a count begins with 0")
        return count

    def bond(self) -> None:
        if (match := BOND.match(self.text, self.at)) is not None:
            self.at = match.end()


SHOWN_DIGITS = 6

SHARE = re.compile(r"\s*(?P<element>[A-Z][a-z]?) in (?P<whole>.+)", re.DOTALL)


@tool(isolated=False)  # bounded by construction
def molar_mass(formula: str, weights: Weights = "iupac") -> ToolResult:
    """Give the molar mass of a formula or name in g/mol, or the mass percentage of an element in it: O in H2O.

    Write hydrates as CuSO4·5H2O, ions as SO4^2-, isotopes as ^13CO2. Weights "integer" uses rounded atomic weights.
    """
    share = SHARE.match(formula)
    found, name = _named_substance(share["whole"] if share else formula)
    whole = mass(found, weights)
    value: dict[str, Json] = {
        "formula": found.text, "molar_mass": spell_near(whole), "unit": "g/mol", "weights": weights,
        "atoms": {atom: str(count) for atom, count in found.atoms.items()},
        "percent": {symbol: spell(share) for symbol, share in mass_percent(found, weights).items()},
    }  # fmt: skip
    named = f" ({name})" if name else ""
    if share:
        percent = mass_percent(found, weights).get(share["element"])
        if percent is None:
            raise ToolError(
                f"{share['element']} is not an element of {found.text}", code="syntax", hint="write its symbol"
            )
        shown = f"{spell(Fraction(rounded(percent, SHOWN_DIGITS)))} %"
        return ToolResult(shown + named, value=value | {"element": share["element"], "share": spell(percent)})
    return ToolResult(f"{spell(Fraction(rounded(whole, SHOWN_DIGITS)))} g/mol{named}", value=value)


def mass(substance: Formula, weights: Weights = "iupac") -> Fraction:
    """Return the molar mass in g/mol; the mass of the electrons of an ion is neglected, as in textbooks.

    >>> mass(formula("H2O"), "integer")
    Fraction(18, 1)
    """
    return sum((count * weight(atom, weights) for atom, count in substance.atoms.items()), Fraction(0))


def mass_percent(substance: Formula, weights: Weights = "iupac") -> Mapping[str, Fraction]:
    """Return the percentage of each element in the mass; the nuclides of an element are added up.

    >>> mass_percent(formula("H2O"), "integer")["O"]
    Fraction(800, 9)
    """
    whole = mass(substance, weights)
    shares: dict[str, Fraction] = {}
    for atom, count in substance.atoms.items():
        symbol = atom.lstrip("^0123456789")
        shares[symbol] = shares.get(symbol, Fraction(0)) + 100 * count * weight(atom, weights) / whole
    return shares


def _named_substance(text: str) -> tuple[Formula, str]:
    """Read a formula, or the name of a substance; of a name, the formula is returned as text too."""
    try:
        return _substance(text), ""
    except ToolError:
        from taiwa.tools.compound_names import nearest_formula

        written = None if len(text) > MAX_NAME_CHARS or any(map(str.isdecimal, text)) else nearest_formula(text)
        if written is None:
            raise
        return _substance(written), written


def _substance(text: str) -> Formula:
    found = formula(text)
    if not found.atoms:
        raise ToolError("an electron is not a substance", code="syntax", hint="its mass is 0.000548580 g/mol")
    return found
