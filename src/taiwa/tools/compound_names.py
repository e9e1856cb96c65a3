"""The names of chemical compounds and their formulas: of salts, which are built from ions, and of a table of all others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from math import gcd

ORGANIC = frozenset(("CH3COO", "HCOO", "C2H5COO", "C3H7COO", "C6H5COO", "C17H35COO", "C15H31COO"))
WATERS = {
    1: "monohydrate", 2: "dihydrate", 3: "trihydrate", 4: "tetrahydrate", 5: "pentahydrate", 6: "hexahydrate",
    7: "heptahydrate", 8: "octahydrate", 9: "nonahydrate", 10: "decahydrate", 12: "dodecahydrate",
}  # fmt: skip
HYDRATES = """Na SO4 7 10;Na CO3 1 7 10;Mg SO4 1 7;Mg Cl 6;Ca Cl 2 6;Ca SO4 2;Ba Cl 2;Ba OH 8;Sr OH 8;Fe SO4 7;Fe:3 Cl 6;
Fe:3 NO3 9;Cu SO4 5;Cu Cl 2;Cu NO3 3;Co Cl 2 6;Co NO3 6;Co SO4 7;Ni Cl 6;Ni SO4 6 7;Ni NO3 6;Mn Cl 4;Mn SO4 1 4;Zn SO4 7;
Zn NO3 6;Al Cl 6;Al NO3 9;Al SO4 18;Cr Cl 6;Cr NO3 9;Sn Cl 2;Ca NO3 4;Mg NO3 6;Cd SO4 8;Na S2O3 5;Na C2O4 2;Li OH 1;
Na PO4 12;Na HPO4 7 12;Na H2PO4 1;Zn CH3COO 2;Na CH3COO 3;Pb CH3COO 3;Mg PO4 8;Ca C2O4 1;Na S 9;Sr Cl 6;Li Cl 1;La Cl 7"""


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
    one, other = cations()[cation], anions()[anion]
    shared = gcd(one.charge, other.charge)
    plus, minus = other.charge // shared, one.charge // shared
    if anion in ORGANIC:
        return _times(other, minus, grouped=True) + _times(one, plus, grouped=cation == "NH4")
    return _times(one, plus, grouped=cation in ("NH4", "Hg2")) + _times(other, minus, grouped=other.grouped)


def substances() -> Iterator[tuple[str, list[str]]]:
    """Yield the formulas of all substances, each with its names; one may come twice with different names."""
    return chain(_salts(), _written(), _hydrates())


@cache
def formulas() -> Mapping[str, str]:
    """The formulas of all substances by their names in lower case."""
    return {name.lower(): formula for formula, names in substances() for name in names}


@lru_cache(1024)
def nearest_formula(text: str) -> str | None:
    """Return the formula of the name that a text is or misspells; None if there is none, or if several names with different
    formulas are equally near.

    >>> nearest_formula("Potasium Permanganate"), nearest_formula("sodium chlorate"), nearest_formula("sodium chlorote")
    ('KMnO4', 'NaClO3', None)
    """
    words = text.lower().split()
    near = {name: slips for name in formulas() if (slips := _count_slips(words, name.split())) is not None}
    nearest = {formulas()[name] for name, slips in near.items() if slips == min(near.values())}
    return nearest.pop() if len(nearest) == 1 else None


def _count_slips(words: Sequence[str], right: Sequence[str]) -> int | None:
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


def _times(ion: Ion, count: int, *, grouped: bool) -> str:
    if count == 1:
        return ion.formula
    return f"({ion.formula}){count}" if grouped else f"{ion.formula}{count}"


def _salts() -> Iterator[tuple[str, list[str]]]:
    for anion in anions().values():
        for cation in cations().values():
            if cation.mark in anion.partners and not _strange(cation, anion):
                yield (
                    salt(cation.mark, anion.mark),
                    [f"{plus} {minus}" for minus in anion.names for plus in cation.names],
                )


def _strange(cation: Ion, anion: Ion) -> bool:
    """Uncommon pairs of ions, or pairs with another formula."""
    many = cation.charge >= 4 and anion.mark not in ("O", "S", "Cl", "Br", "I", "F", "SO4", "NO3")
    return many or (cation.mark in ("Hg2", "Au:1", "Cu:1") and anion.mark in ("OH", "PO4"))


def _hydrates() -> Iterator[tuple[str, list[str]]]:
    for entry in HYDRATES.replace("\n", "").split(";"):
        cation, anion, *waters = entry.split()
        for water in map(int, waters):
            if water in WATERS:
                names = [
                    f"{plus} {minus} {WATERS[water]}"
                    for minus in anions()[anion].names[:2]
                    for plus in cations()[cation].names
                ]
                yield f"{salt(cation, anion)}·{'' if water == 1 else water}H2O", names


def _written() -> Iterator[tuple[str, list[str]]]:
    for formula, names in _rows("compounds.tsv"):
        yield formula, names.split("|")
