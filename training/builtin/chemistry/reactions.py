"""Reactions with all that takes part in them: most are built by their kind out of the substances, the others stand in a table.

Nothing is predicted: which kinds of substances react how is written down here, and conservation decides only the numbers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random

from taiwa.tools.compound_names import anions, salt, substances
from taiwa.tools.stoichiometry import Balance, balance

__all__ = ["Part", "Reaction", "balanced", "drawn", "reactions"]

TABLE = Path(__file__).parent / "reactions.tsv"
PART = re.compile(r"([0-9/]*)([^{}]+)(?:\{(.+)\})?")
DISPLACING = "Mg Al Mn Zn Cr Fe Cd Co Ni Sn Pb Cu Hg Ag".split()
"""From the one that gives its electrons away most readily on."""
DISPLACED = frozenset("Cu Ag Pb Fe Sn Zn Ni Hg".split())
ACIDS = {
    "HCl": ("Cl", 1), "HBr": ("Br", 1), "HI": ("I", 1), "HF": ("F", 1), "HNO3": ("NO3", 1), "HNO2": ("NO2", 1),
    "H2SO4": ("SO4", 2), "H2SO3": ("SO3", 2), "H2CO3": ("CO3", 2), "H3PO4": ("PO4", 3), "HClO": ("ClO", 1),
    "HClO3": ("ClO3", 1), "HClO4": ("ClO4", 1), "HCN": ("CN", 1), "H2S": ("S", 2), "H2CrO4": ("CrO4", 2),
    "CH3COOH": ("CH3COO", 1), "HCOOH": ("HCOO", 1), "H2C2O4": ("C2O4", 2), "C6H5COOH": ("C6H5COO", 1),
    "C2H5COOH": ("C2H5COO", 1), "HBrO3": ("BrO3", 1), "HIO3": ("IO3", 1), "H2SiO3": ("SiO3", 2), "HMnO4": ("MnO4", 1),
}  # fmt: skip
"""Each with the anion that it leaves, and how many hydrogens it gives."""
STRONG = "HCl HBr HI HNO3 H2SO4 HClO4 CH3COOH H3PO4".split()
HALOGENS = {"F2": "F", "Cl2": "Cl", "Br2": "Br", "I2": "I"}
BASES = "Na K Li Ca Ba Mg Al Zn Fe Fe:3 Cu Sr Rb Cs NH4 Pb Ni Cr".split()
INSOLUBLE = (
    "Ag Cl,Ag Br,Ag I,Ag SO4,Ag CrO4,Ag PO4,Ag CO3,Ag S,Ag SCN,Pb I,Pb Cl,Pb Br,Pb SO4,Pb CrO4,Pb CO3,Pb S,Pb PO4,Ba SO4,"
    "Ba CO3,Ba CrO4,Ba PO4,Ba SO3,Ba C2O4,Ca CO3,Ca PO4,Ca SO4,Ca C2O4,Ca F,Ca SO3,Sr SO4,Sr CO3,Mg CO3,Mg OH,Mg PO4,Cu OH,"
    "Cu S,Cu CO3,Cu PO4,Zn OH,Zn S,Zn CO3,Zn PO4,Fe OH,Fe S,Fe CO3,Fe:3 OH,Fe:3 PO4,Al OH,Al PO4,Ni OH,Ni S,Ni CO3,Co OH,"
    "Co S,Mn OH,Mn S,Mn CO3,Cr OH,Hg S,Hg I,Hg2 Cl,Cd S,Cd OH,Cd CO3,Sn S,Pb OH,Ca OH,Ag OH,Sb S,Bi S,Ba F,Ag C2O4,Ag CN"
)
SOLUBLE_ANIONS = ("NO3", "Cl", "SO4", "CH3COO")
SOLUBLE_CATIONS = ("Na", "K", "NH4")
NEVER = frozenset(("AgCl", "PbCl2", "PbSO4", "BaSO4", "CaSO4", "SrSO4", "Hg2Cl2", "Ag2SO4", "Hg2SO4", "NH4OH", "HgCl2"))
"""What cannot bring the ions of a precipitate along, since it is none that dissolves."""
CARBONS = ("", "CH3", "C2H5", "C3H7", "C4H9", "C5H11", "C6H13")
BURNT = """CH4 C2H6 C3H8 C4H10 C5H12 C6H14 C7H16 C8H18 C9H20 C10H22 C12H26 C2H4 C3H6{propene} C4H8{butene} C5H10{pentene}
C6H12{hexene} C2H2 C3H4 C4H6{butadiene} C6H6 C6H5CH3 C10H8 C6H5C2H5 C3H6{cyclopropane} C6H12{cyclohexane} CH3OH C2H5OH C3H7OH C4H9OH
C5H11OH CH3CHOHCH3 C2H4(OH)2 C3H5(OH)3 HCHO CH3CHO C2H5CHO CH3COCH3 HCOOH CH3COOH C2H5COOH C3H7COOH C17H35COOH CH3COOC2H5
CH3OCH3 (C2H5)2O C6H12O6 C12H22O11 C6H5OH C6H5COOH C6H8O7 C6H8O6 H2C2O4 C16H34 C14H10 C57H110O6 C10H16O C5H10{cyclopentane}
C4H9COOH C15H31COOH C9H8O4 C20H42 C18H38 C8H16{octene} C11H24"""


@dataclass(frozen=True, slots=True)
class Part:
    """One side's member: `count` is 0 where conservation decides it. `name` is for this place alone."""

    formula: str
    count: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reaction:
    """Who reacts to what. `exact` reactions take place only in their own proportion; `text` is what the model writes."""

    text: str
    reactants: tuple[Part, ...]
    products: tuple[Part, ...]
    exact: bool = False
    kind: str = "table"

    @property
    def parts(self) -> tuple[Part, ...]:
        """All members, in order."""
        return self.reactants + self.products


@cache
def balanced(text: str) -> Balance:
    """What the tool says of an equation."""
    return balance(text)


@cache
def reactions() -> tuple[Reaction, ...]:
    """All reactions, each once; those of the table first."""
    found: dict[str, Reaction] = {}
    for kind, line in (*(("table", line) for line in _table()), *_built()):
        reaction = _read(line, kind)
        sides = [[part.formula for part in side] for side in (reaction.reactants, reaction.products)]
        if len(set(sides[0])) == len(sides[0]) and not set(sides[0]) & set(sides[1]):
            found.setdefault(reaction.text, reaction)
    return tuple(found.values())


def drawn(random: Random) -> Reaction:
    """Draw a reaction: half of them from the table, the others evenly by their kinds, and usual substances first."""
    groups, heights = _groups()
    found, ladder = random.choices(groups, cum_weights=heights)[0]
    return random.choices(found, cum_weights=ladder)[0]


@cache
def _groups() -> tuple[list[tuple[list[Reaction], list[float]]], list[float]]:
    kinds: dict[str, list[Reaction]] = {}
    for each in reactions():
        kinds.setdefault(each.kind, []).append(each)
    ladders = [(found, list(accumulate(map(_weight, found)))) for found in kinds.values()]
    shares = [len(found) ** 0.5 for found in kinds.values()]
    built = sum(share for kind, share in zip(kinds, shares, strict=True) if kind != "table")
    return ladders, list(
        accumulate(built if kind == "table" else share for kind, share in zip(kinds, shares, strict=True))
    )


def _weight(reaction: Reaction) -> float:
    known = substances()
    usual = [part.formula in known and known[part.formula].common for part in reaction.parts]
    return 1.0 if all(usual) else 0.3


def _read(line: str, kind: str) -> Reaction:
    exact, text = line.startswith("! "), line.removeprefix("! ")
    sides = [tuple(map(_part, side.split(" + "))) for side in text.split(" -> ")]
    plain = re.sub(r"\{.+?\}", "", text)
    return Reaction(plain, sides[0], sides[1], exact, kind)


def _part(text: str) -> Part:
    found = PART.fullmatch(text)
    assert found is not None
    return Part(found[2], found[1], found[3] or "")


def _table() -> Iterator[str]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def _built() -> Iterator[tuple[str, str]]:
    for kind in (
        _neutral, _partly_neutral, _ammonia, _carbonates, _acid_and_metal, _acid_and_oxide, _made_of_elements, _water,
        _displaced, _halogens, _precipitates, _ammonium, _burnt, _decomposed, _reduced, _alkanes, _alkenes, _alkynes,
        _alcohols, _esters,
    ):  # fmt: skip
        yield from ((kind.__name__.strip("_"), line) for line in kind())


def _has(cation: str, anion: str) -> bool:
    """Whether there is a salt of the two."""
    return cation in anions()[anion].partners


def _neutral() -> Iterator[str]:
    for acid, (anion, _) in ACIDS.items():
        for base in BASES:
            if _has(base, anion) and base != "NH4":
                yield f"{acid} + {salt(base, 'OH')} -> {salt(base, anion)} + H2O"
                if base in ("Na", "K", "Ca"):
                    yield f"{salt(base, 'OH')} + {acid} -> {salt(base, anion)} + H2O"
        if acid in STRONG and _has("NH4", anion):
            yield f"{acid} + NH4OH -> {salt('NH4', anion)} + H2O"


def _partly_neutral() -> Iterator[str]:
    for base in ("Na", "K", "Li"):
        for acid, anion in (
            ("H2SO4", "HSO4"),
            ("H2SO3", "HSO3"),
            ("H2CO3", "HCO3"),
            ("H3PO4", "H2PO4"),
            ("H3PO4", "HPO4"),
            ("H2S", "HS"),
        ):
            if _has(base, anion):
                yield f"! {acid} + {salt(base, 'OH')} -> {salt(base, anion)} + H2O"
    for base in ("Ca", "Mg", "Ba"):
        yield f"! H3PO4 + {salt(base, 'OH')} -> {salt(base, 'HPO4')} + H2O"
        yield f"! H3PO4 + {salt(base, 'OH')} -> {salt(base, 'H2PO4')} + H2O"
    yield "! H2SO4 + NH3 -> NH4HSO4"
    yield "! H3PO4 + NH3 -> NH4H2PO4"
    yield "! H3PO4 + NH3 -> (NH4)2HPO4"


def _ammonia() -> Iterator[str]:
    for acid, (anion, _) in ACIDS.items():
        if _has("NH4", anion):
            yield f"NH3 + {acid} -> {salt('NH4', anion)}"


def _carbonates() -> Iterator[str]:
    for acid in (*STRONG, "HCOOH", "HF", "C6H5COOH", "H2C2O4", "C2H5COOH"):
        anion, _ = ACIDS[acid]
        for anion_lost, gas in (("CO3", "CO2"), ("HCO3", "CO2"), ("SO3", "SO2"), ("HSO3", "SO2")):
            for base in ("Na", "K", "Ca", "Mg", "Li", "Ba", "NH4", "Zn", "Cu", "Fe", "Pb", "Ag", "Ni", "Mn"):
                if _has(base, anion_lost) and (_has(base, anion) or (base == "NH4" and anion == "CH3COO")):
                    yield f"{acid} + {salt(base, anion_lost)} -> {salt(base, anion)} + H2O + {gas}"
        for base in ("Fe", "Na", "Zn", "K", "Mg", "Ca", "Mn", "Pb", "Ba"):
            if acid in ("HCl", "H2SO4", "HBr", "HNO3") and _has(base, anion):
                yield f"{salt(base, 'S')} + {acid} -> {salt(base, anion)} + H2S"


def _acid_and_metal() -> Iterator[str]:
    for acid in ("HCl", "HBr", "HI", "H2SO4", "CH3COOH", "HF", "H3PO4", "HCOOH", "HClO4", "H2C2O4", "C2H5COOH"):
        anion, _ = ACIDS[acid]
        for metal in "Li Na K Ca Ba Sr Mg Al Zn Fe Ni Sn Co Mn Cr Pb".split():
            if _has(metal, anion):
                yield f"{metal} + {acid} -> {salt(metal, anion)} + H2"
    for metal in ("Zn", "Na", "K", "Ca", "Fe"):
        yield f"{metal} + HNO3 -> {salt(metal, 'NO3')} + H2"


def _acid_and_oxide() -> Iterator[str]:
    for acid in ("HCl", "HBr", "HNO3", "H2SO4", "CH3COOH", "H3PO4", "HF", "HI", "HClO4"):
        anion, _ = ACIDS[acid]
        for base in "Na K Li Ca Ba Mg Al Zn Cu Fe Fe:3 Pb Ag Ni Mn Cr Hg Sn Co".split():
            if _has(base, anion):
                yield f"{salt(base, 'O')} + {acid} -> {salt(base, anion)} + H2O"


def _made_of_elements() -> Iterator[str]:
    for metal in "Li Na K Rb Cs Be Mg Ca Sr Ba Al Zn Cu Ni Pb Mn Co Cr Hg Sn:4 Cd Ga Bi Sc Y In Ti".split():
        symbol = metal.partition(":")[0]
        for element, anion in (
            ("O2", "O"),
            ("S", "S"),
            ("Cl2", "Cl"),
            ("Br2", "Br"),
            ("I2", "I"),
            ("F2", "F"),
            ("N2", "N"),
            ("P", "P"),
            ("H2", "H"),
            ("Se", "Se"),
            ("P4", "P"),
        ):
            if _has(metal, anion) and not (metal == "Sn:4" and anion in ("I", "F")):
                yield f"{symbol} + {element} -> {salt(metal, anion)}"
                if anion == "O" and metal in ("Cu", "Pb", "Ni", "Mg", "Ca"):
                    yield f"{salt(metal, 'O')} -> {symbol} + O2"
    for element, anion in (("Cl2", "Cl"), ("Br2", "Br"), ("F2", "F")):
        yield f"Fe + {element} -> {salt('Fe:3', anion)}"
        yield f"Au + {element} -> {salt('Au', anion)}"
        yield f"! Sn + {element} -> {salt('Sn', anion)}"
        yield f"Ag + {element} -> {salt('Ag', anion)}"
    yield "Fe + I2 -> FeI2"
    yield "Ag + S -> Ag2S"


def _water() -> Iterator[str]:
    for metal in "Li Na K Rb Cs Ca Sr Ba Mg".split():
        yield f"{metal} + H2O -> {salt(metal, 'OH')} + H2"
        if metal in ("Li", "Na", "K", "Ca", "Sr", "Ba", "Mg", "Rb"):
            yield f"{salt(metal, 'O')} + H2O -> {salt(metal, 'OH')}"
    for metal in ("Mg", "Zn", "Al", "Ca"):
        yield f"{'! ' if metal in ('Mg', 'Ca') else ''}{metal} + H2O -> {salt(metal, 'O')} + H2"


def _displaced() -> Iterator[str]:
    for place, first in enumerate(DISPLACING[:-1]):
        for second in DISPLACING[place + 1 :]:
            for anion in ("SO4", "Cl", "NO3", "CH3COO") if second in DISPLACED else ():
                if _has(first, anion) and _has(second, anion) and salt(second, anion) not in ("HgSO4", "AgCl"):
                    yield f"{first} + {salt(second, anion)} -> {salt(first, anion)} + {second}"
    for metal in ("Al", "Mg", "Zn", "Cr", "Cu"):
        yield f"{'! ' if metal == 'Cu' else ''}{metal} + FeCl3 -> {salt(metal, 'Cl')} + Fe"


def _halogens() -> Iterator[str]:
    order = list(HALOGENS.items())
    for place, (first, mark) in enumerate(order):
        for _, lost in order[place + 1 :]:
            free = f"{lost}2"
            for metal in ("Na", "K", "Li", "Mg", "Ca", "Zn", "Al", "Fe:3", "NH4", "Ba"):
                if _has(metal, mark):
                    yield f"{first} + {salt(metal, lost)} -> {salt(metal, mark)} + {free}"
            yield f"{first} + H{lost} -> H{mark} + {free}"


def _precipitates() -> Iterator[str]:
    for pair in INSOLUBLE.split(","):
        cation, anion = pair.split()
        for with_it in SOLUBLE_ANIONS:
            for beside in _beside(anion):
                if with_it != anion and beside != cation and _falls(cation, anion, with_it, beside):
                    one, other = salt(cation, with_it), salt(beside, anion)
                    yield f"{one} + {other} -> {salt(cation, anion)} + {salt(beside, with_it)}"
    yield from _by_acids()


def _beside(anion: str) -> tuple[str, ...]:
    """What brings an anion along in solution."""
    metals = ("Ca", "Ba", "Mg", "Zn", "Fe:3", "Al", "Cu") if anion in ("Cl", "SO4", "Br", "I") else ()
    return (*SOLUBLE_CATIONS, *metals, *(("Ba", "Ca") if anion == "OH" else ()))


def _falls(cation: str, anion: str, with_it: str, beside: str) -> bool:
    """Whether both salts that are mixed dissolve, and are met."""
    if beside == "NH4" and anion == "OH":
        return False
    if not (_there(cation, with_it) and _there(beside, anion) and _there(beside, with_it, wet=False)):
        return False
    if {salt(cation, with_it), salt(beside, anion)} & NEVER or (salt(beside, with_it) in NEVER and beside != "Ba"):
        return False
    return beside in (*SOLUBLE_CATIONS, "Ca", "Ba", "Mg", "Al") or with_it == "NO3"


def _by_acids() -> Iterator[str]:
    for acid, cation, anion in (
        ("HCl", "Ag", "Cl"), ("HBr", "Ag", "Br"), ("HI", "Ag", "I"), ("H2SO4", "Ba", "SO4"), ("H2SO4", "Pb", "SO4"),
        ("HCl", "Pb", "Cl"), ("HI", "Pb", "I"), ("H2C2O4", "Ca", "C2O4"), ("H3PO4", "Ag", "PO4"), ("H2SO4", "Ca", "SO4"),
    ):  # fmt: skip
        yield f"{salt(cation, 'NO3')} + {acid} -> {salt(cation, anion)} + HNO3"
        if cation in ("Ba", "Ca"):
            yield f"{salt(cation, 'Cl')} + {acid} -> {salt(cation, anion)} + HCl"


def _there(cation: str, anion: str, *, wet: bool = True) -> bool:
    known = _has(cation, anion) or (cation == "NH4" and anion == "CH3COO")
    return known and not (wet and anion == "S" and cation not in ("Na", "K", "NH4"))


def _ammonium() -> Iterator[str]:
    for anion in ("Cl", "Br", "NO3", "SO4", "I", "PO4", "CO3"):
        for base in ("Na", "K", "Ca", "Ba", "Li", "Mg"):
            if _has(base, anion):
                yield f"{salt('NH4', anion)} + {salt(base, 'OH')} -> NH3 + H2O + {salt(base, anion)}"


def _burnt() -> Iterator[str]:
    for fuel in BURNT.split():
        yield f"{fuel} + O2 -> CO2 + H2O"
    for fuel in ("CH4", "C2H6", "C3H8", "C4H10", "C8H18", "C6H14", "C2H4", "CH3OH", "C2H5OH", "C5H12"):
        yield f"! {fuel} + O2 -> CO + H2O"
    for fuel in ("CH4", "C2H6", "C3H8", "C2H2", "C8H18"):
        yield f"! {fuel} + O2 -> C + H2O"
    for fuel in ("CH3NH2", "C2H5NH2", "C6H5NH2", "C5H5N", "CO(NH2)2", "HCN", "CH3CN"):
        yield f"{fuel} + O2 -> CO2 + H2O + N2"


def _decomposed() -> Iterator[str]:
    for metal in "Mg Ca Sr Ba Zn Cu Fe Pb Ni Co Mn Li Cd".split():
        yield f"{salt(metal, 'CO3')} -> {salt(metal, 'O')} + CO2"
    for metal in "Mg Ca Sr Ba Zn Cu Fe Fe:3 Al Pb Ni Co Cr Li".split():
        yield f"{salt(metal, 'OH')} -> {salt(metal, 'O')} + H2O"
    yield "Ag2CO3 -> Ag + CO2 + O2"
    for metal in ("Na", "K", "Ba"):
        yield f"{salt(metal, 'ClO3')} -> {salt(metal, 'Cl')} + O2"
        if metal != "Ba":
            yield f"{salt(metal, 'ClO4')} -> {salt(metal, 'Cl')} + O2"


def _reduced() -> Iterator[str]:
    for oxide, metal in (
        ("CuO", "Cu"), ("Fe2O3", "Fe"), ("Fe3O4", "Fe"), ("ZnO", "Zn"), ("PbO", "Pb"), ("NiO", "Ni"), ("SnO2", "Sn"),
        ("WO3", "W"), ("Cr2O3", "Cr"), ("MnO2", "Mn"), ("Ag2O", "Ag"), ("HgO", "Hg"), ("CoO", "Co"), ("FeO", "Fe"), ("Cu2O", "Cu"),
        ("MoO3", "Mo"), ("Mn3O4", "Mn"), ("PbO2", "Pb"), ("TiO2", "Ti"), ("V2O5", "V"), ("GeO2", "Ge"), ("Co3O4", "Co"),
    ):  # fmt: skip
        yield f"{oxide} + H2 -> {metal} + H2O"
        yield f"{oxide} + CO -> {metal} + CO2"
        yield f"{oxide} + C -> {metal} + CO"
        yield f"! {oxide} + C -> {metal} + CO2"
        if metal not in ("Ag", "Hg"):
            yield f"{oxide} + Al -> {metal} + Al2O3"
            yield f"{oxide} + Mg -> {metal} + MgO"
        if metal in ("Cu", "Pb", "Fe"):
            yield f"{oxide} + Zn -> {metal} + ZnO"


def _alkanes() -> Iterator[str]:
    for halogen, mark in HALOGENS.items():
        for carbons in range(1, 7):
            hydrogens = 2 * carbons + 2
            alkane = f"C{carbons if carbons > 1 else ''}H{hydrogens}"
            most = 4 if carbons == 1 else (6 if carbons == 2 else 2)
            for taken in range(1, most + 1):
                if mark == "I" and taken > 1:
                    continue
                made = f"C{carbons if carbons > 1 else ''}{_times('H', hydrogens - taken)}{_times(mark, taken)}"
                made = f"{CARBONS[carbons]}{mark}" if taken == 1 else made
                yield f"! {alkane} + {halogen} -> {made} + H{mark}"
    for halogen, mark in (("Cl2", "Cl"), ("Br2", "Br"), ("F2", "F")):
        for first, second in (("CH3", "CH2"), ("CH2", "CH"), ("CH", "C")):
            had = 4 - (3 if first == "CH3" else 2 if first == "CH2" else 1)
            yield f"{first}{_times(mark, had)} + {halogen} -> {second}{_times(mark, had + 1)} + H{mark}"


def _times(symbol: str, count: int) -> str:
    return "" if not count else symbol if count == 1 else f"{symbol}{count}"


def _alkenes() -> Iterator[str]:
    for carbons, name in ((2, ""), (3, "{propene}"), (4, "{butene}"), (5, "{pentene}"), (6, "{hexene}")):
        alkene = f"C{carbons}H{2 * carbons}{name}"
        yield f"{alkene} + H2 -> C{carbons}H{2 * carbons + 2}"
        yield f"{alkene} + H2O -> {CARBONS[carbons]}OH"
        for halogen, mark in (("Cl2", "Cl"), ("Br2", "Br"), ("I2", "I")):
            yield f"{alkene} + {halogen} -> C{carbons}H{2 * carbons}{mark}2"
        for mark in ("Cl", "Br", "I"):
            yield f"{alkene} + H{mark} -> {CARBONS[carbons]}{mark}"
            yield f"{CARBONS[carbons]}{mark} + NaOH -> {CARBONS[carbons]}OH + Na{mark}"
            yield f"{CARBONS[carbons]}{mark} + KOH -> {CARBONS[carbons]}OH + K{mark}"
    for mark in ("Cl", "Br", "I"):
        yield f"CH3{mark} + NaOH -> CH3OH + Na{mark}"
        yield f"CH3{mark} + KOH -> CH3OH + K{mark}"
        yield f"CH3{mark} + Na -> C2H6 + Na{mark}"
        yield f"C2H5{mark} + Na -> C4H10 + Na{mark}"


def _alkynes() -> Iterator[str]:
    for alkyne, alkene, alkane in (
        ("C2H2", "C2H4", "C2H6"),
        ("C3H4", "C3H6{propene}", "C3H8"),
        ("C4H6{butyne}", "C4H8{butene}", "C4H10"),
    ):
        yield f"! {alkyne} + H2 -> {alkene}"
        yield f"{alkyne} + H2 -> {alkane}"
    for halogen, mark in (("Cl2", "Cl"), ("Br2", "Br")):
        yield f"! C2H2 + {halogen} -> C2H2{mark}2"
        yield f"C2H2 + {halogen} -> C2H2{mark}4"
        yield f"! C3H4 + {halogen} -> C3H4{mark}2"
        yield f"C3H4 + {halogen} -> C3H4{mark}4"
        yield f"! C2H2 + H{mark} -> C2H3{mark}"
        yield f"C2H2 + H{mark} -> C2H4{mark}2"


def _alcohols() -> Iterator[str]:
    for group in CARBONS[1:]:
        for mark in ("Cl", "Br", "I"):
            yield f"{group}OH + H{mark} -> {group}{mark} + H2O"
            if mark != "I":
                yield f"! {group}OH + P{mark}3 -> {group}{mark} + H3PO3"


def _esters() -> Iterator[str]:
    for acid in ("H", "CH3", "C2H5", "C3H7", "C6H5", "C17H35"):
        for group in CARBONS[1:6]:
            ester, carboxylic = f"{acid}COO{group}", f"{acid}COOH"
            yield f"{carboxylic} + {group}OH -> {ester} + H2O"
            yield f"{ester} + H2O -> {carboxylic} + {group}OH"
            if acid in ("H", "CH3", "C2H5", "C3H7", "C6H5"):
                yield f"{ester} + NaOH -> {acid}COONa + {group}OH"
                if group == "C2H5":
                    yield f"{ester} + KOH -> {acid}COOK + {group}OH"
