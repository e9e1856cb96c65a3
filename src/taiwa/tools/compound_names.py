"""The names of chemical compounds: a table of about 1,600 substances with their formulas in every usual spelling.

Salts are built from ions; all others are in a table. Several substances of the same atoms may share a formula.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from math import gcd

__all__ = [
    "COMMON", "Ion", "Substance", "anions", "cations", "count_slips", "find_names", "named", "nearest_name", "salt", "substance",
    "substances",
]  # fmt: skip

ORGANIC = frozenset(("CH3COO", "HCOO", "C2H5COO", "C3H7COO", "C6H5COO", "C17H35COO", "C15H31COO"))
ALSO_WRITTEN = {"CH3COO": "C2H3O2", "HCOO": "CHO2", "C6H5COO": "C7H5O2", "C2H5COO": "C3H5O2"}
OTHERWISE = {"OCN": "CNO", "SCN": "CNS", "ClO": "OCl"}
WATERS = {
    1: "monohydrate", 2: "dihydrate", 3: "trihydrate", 4: "tetrahydrate", 5: "pentahydrate", 6: "hexahydrate",
    7: "heptahydrate", 8: "octahydrate", 9: "nonahydrate", 10: "decahydrate", 12: "dodecahydrate",
}  # fmt: skip
HYDRATES = """Na SO4 7 10;Na CO3 1 7 10;Mg SO4 1 7;Mg Cl 6;Ca Cl 2 6;Ca SO4 2;Ba Cl 2;Ba OH 8;Sr OH 8;Fe SO4 7;Fe:3 Cl 6;
Fe:3 NO3 9;Cu SO4 5;Cu Cl 2;Cu NO3 3;Co Cl 2 6;Co NO3 6;Co SO4 7;Ni Cl 6;Ni SO4 6 7;Ni NO3 6;Mn Cl 4;Mn SO4 1 4;Zn SO4 7;
Zn NO3 6;Al Cl 6;Al NO3 9;Al SO4 18;Cr Cl 6;Cr NO3 9;Sn Cl 2;Ca NO3 4;Mg NO3 6;Cd SO4 8;Na S2O3 5;Na C2O4 2;Li OH 1;
Na PO4 12;Na HPO4 7 12;Na H2PO4 1;Zn CH3COO 2;Na CH3COO 3;Pb CH3COO 3;Mg PO4 8;Ca C2O4 1;Na S 9;Sr Cl 6;Li Cl 1;La Cl 7"""
COMMON = frozenset(
    """Na K Ca Mg Ba Al Zn Ag NH4 Cu Fe Fe:3 Pb Li
    Cl Br I O S OH NO3 SO4 CO3 HCO3 PO4 F SO3 S2O3 CrO4 Cr2O7 MnO4 ClO3 CH3COO CN C2O4 NO2 HSO4""".split()
)
"""The most common ions."""


@dataclass(frozen=True, slots=True)
class Ion:
    """`mark` identifies it: its formula, with its charge if several ions have that formula."""

    mark: str
    charge: int
    names: tuple[str, ...]
    partners: frozenset[str] = frozenset()

    @property
    def formula(self) -> str:
        """Its formula without the charge."""
        return self.mark.partition(":")[0]

    @property
    def grouped(self) -> bool:
        """Whether it needs brackets if there are several."""
        return sum(letter.isupper() for letter in self.formula) > 1 or self.formula[-1].isdigit()


@dataclass(frozen=True, slots=True)
class Substance:
    """`formula` is the usual spelling, the first of `spellings`; `names` begin with the most usual one."""

    formula: str
    spellings: tuple[str, ...]
    names: tuple[str, ...]
    common: bool = True


@cache
def cations() -> Mapping[str, Ion]:
    """All cations by their marks."""
    return {ion.mark: ion for side, ion in _ions() if side == "+"}


@cache
def anions() -> Mapping[str, Ion]:
    """All anions by their marks."""
    return {ion.mark: ion for side, ion in _ions() if side == "-"}


@cache
def salt(cation: str, anion: str) -> str:
    """The formula of a salt, a base or an oxide.

    >>> salt("Al", "SO4"), salt("Ca", "CH3COO"), salt("Hg2", "Cl")
    ('Al2(SO4)3', '(CH3COO)2Ca', 'Hg2Cl2')
    """
    plus, minus = _counts(cation, anion)
    if anion in ORGANIC:
        return _times(anions()[anion], minus, grouped=True) + _times(cations()[cation], plus, grouped=cation == "NH4")
    return _joined(cations()[cation], plus, anions()[anion].formula, minus, grouped=anions()[anion].grouped)


@cache
def substances() -> Mapping[str, Substance]:
    """All substances by their usual formulas."""
    found: dict[str, Substance] = {}
    for each in chain(_salts(), _written(), _hydrates()):
        known = found.get(each.formula, each)
        found[each.formula] = Substance(
            each.formula,
            tuple(dict.fromkeys((*known.spellings, *each.spellings))),
            tuple(dict.fromkeys((*known.names, *each.names))),
            known.common or each.common,
        )
    return found


@cache
def named() -> Mapping[str, tuple[str, str]]:
    """By name in lower case: the name as written, and the formula."""
    found: dict[str, tuple[str, str]] = {}
    for each in substances().values():
        for name in each.names:
            found.setdefault(name.lower(), (name, each.formula))
    return found


@cache
def substance(formula: str) -> Substance:
    """Return the substance of a formula in any spelling; one without a name if it is unknown."""
    known = substances().get(formula)
    return known or Substance(formula, (formula,), ())


WORD = re.compile(r"(?:[^\s,;:!?()\"“”.]|\.(?=\d)|\([^\s()]*\))+")
MOST_WORDS = 5


def find_names(text: str) -> tuple[str, ...]:
    """Return the names of substances in a text, spelled as in the table, from left to right, longest match first.

    >>> find_names("How much Sulfur Dioxide do 2 mol of sulfur (S) give with iron(III) chloride?")
    ('sulfur dioxide', 'sulfur', 'iron(III) chloride')
    """
    words = list(WORD.finditer(text))
    found: list[str] = []
    at = 0
    while at < len(words):
        for last in reversed(range(at, min(at + MOST_WORDS, len(words)))):
            run = " ".join(text[words[at].start() : words[last].end()].lower().split())
            if run in named():
                found.append(named()[run][0])
                at = last
                break
        at += 1
    return tuple(found)


@lru_cache(1024)
def nearest_name(text: str) -> str | None:
    """Return the name that a text is or misspells; None if there is none, or if several with different formulas are equally
    near.

    >>> nearest_name("Potasium Permanganate"), nearest_name("sodium chlorate"), nearest_name("sodium chlorote")
    ('potassium permanganate', 'sodium chlorate', None)
    """
    words = text.lower().split()
    near = {name: slips for name in named() if (slips := count_slips(words, name.split())) is not None}
    nearest = [name for name in near if near[name] == min(near.values())]
    return named()[nearest[0]][0] if len({named()[name][1] for name in nearest}) == 1 else None


def count_slips(words: Sequence[str], right: Sequence[str]) -> int | None:
    """Count the letters omitted, added, changed or swapped (Damerau 1964) in the words of a name; None if the words differ
    too much.

    A word of up to 5 letters may have none, one of up to 8 letters one, a longer one two.
    """
    if len(words) != len(right):
        return None
    counts = [
        0 if one == other else _slips(one, other, (len(other) > 5) + (len(other) > 8) if (one + other).isalpha() else 0)
        for one, other in zip(words, right, strict=True)
    ]
    return None if None in counts else sum(filter(None, counts))


def _slips(one: str, other: str, most: int) -> int | None:
    if one == other:
        return 0
    if most == 0 or abs(len(one) - len(other)) > most:
        return None
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[at:], other[at:]
    rests = [(one[1:], other), (one, other[1:]), (one[1:], other[1:])]
    if len(one) > 1 and one[:2] == other[1::-1]:
        rests.append((one[2:], other[2:]))
    found = [slips for rest in rests if (slips := _slips(*rest, most - 1)) is not None]
    return min(found) + 1 if found else None


def _rows(name: str) -> Iterator[list[str]]:
    for line in files("taiwa.tools").joinpath(name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


@cache
def _ions() -> tuple[tuple[str, Ion], ...]:
    found: list[tuple[str, Ion]] = []
    metals = frozenset(row[1] for row in _rows("ions.tsv") if row[0] == "+" and row[1] != "NH4")
    for side, mark, charge, names, *partners in _rows("ions.tsv"):
        words: list[str] = partners[0].split() if partners else []
        allowed = frozenset(words) | (metals if "*" in words else frozenset[str]())
        found.append((side, Ion(mark, int(charge), tuple(names.split("|")), allowed)))
    return tuple(found)


def _counts(cation: str, anion: str) -> tuple[int, int]:
    plus, minus = cations()[cation].charge, anions()[anion].charge
    shared = gcd(plus, minus)
    return minus // shared, plus // shared


def _times(ion: Ion, count: int, *, grouped: bool) -> str:
    if count == 1:
        return ion.formula
    return f"({ion.formula}){count}" if grouped else f"{ion.formula}{count}"


def _joined(cation: Ion, plus: int, anion: str, minus: int, *, grouped: bool) -> str:
    first = _times(cation, plus, grouped=cation.mark in ("NH4", "Hg2"))
    if minus == 1:
        return first + anion
    return f"{first}({anion}){minus}" if grouped else f"{first}{anion}{minus}"


def _spellings(cation: str, anion: str) -> tuple[str, ...]:
    plus, minus = _counts(cation, anion)
    others = (anion if anion in ORGANIC else "", ALSO_WRITTEN.get(anion, ""), OTHERWISE.get(anion, ""))
    spelt = [salt(cation, anion)]
    spelt.extend(_joined(cations()[cation], plus, other, minus, grouped=True) for other in others if other)
    return tuple(dict.fromkeys(spelt))


def _salts() -> Iterator[Substance]:
    for anion in anions().values():
        for cation in cations().values():
            if cation.mark in anion.partners and not _strange(cation, anion):
                names = [f"{plus} {minus}" for minus in anion.names for plus in cation.names]
                common = cation.mark in COMMON and anion.mark in COMMON
                spelt = _spellings(cation.mark, anion.mark)
                yield Substance(spelt[0], spelt, tuple(names), common)


def _strange(cation: Ion, anion: Ion) -> bool:
    """Uncommon pairs of ions, or pairs with another formula."""
    many = cation.charge >= 4 and anion.mark not in ("O", "S", "Cl", "Br", "I", "F", "SO4", "NO3")
    return many or (cation.mark in ("Hg2", "Au:1", "Cu:1") and anion.mark in ("OH", "PO4"))


def _hydrates() -> Iterator[Substance]:
    for entry in HYDRATES.replace("\n", "").split(";"):
        cation, anion, *waters = entry.split()
        for water in map(int, waters):
            if water in WATERS:
                dry = _spellings(cation, anion)
                names = [
                    f"{plus} {minus} {WATERS[water]}"
                    for minus in anions()[anion].names[:2]
                    for plus in cations()[cation].names
                ]
                drops = "" if water == 1 else str(water)
                yield Substance(
                    f"{dry[0]}·{drops}H2O", tuple(f"{each}·{drops}H2O" for each in dry), tuple(names), common=False
                )


def _written() -> Iterator[Substance]:
    for formula, others, names in _rows("compounds.tsv"):
        yield Substance(formula, (formula, *others.split()), tuple(names.split("|")))
