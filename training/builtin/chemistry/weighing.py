"""Questions about one substance: molar masses, moles to grams, grams to moles, and mass fractions."""

import re
from collections.abc import Mapping
from fractions import Fraction
from random import Random

from taiwa.models.builtin.line_check import count_atoms
from taiwa.tools.chemical_formulas import formula
from training.builtin.chemistry.naming import decimal, misspelt, said, usual
from training.builtin.chemistry.reacting import known, prompt
from training.builtin.chemistry.working import Working
from training.builtin.noise import number_words
from training.builtin.samples import Sample

__all__ = ["composition", "molar", "moles_in", "share", "weight"]

ELEMENTS: dict[str, str] = {
    pair.partition(":")[0]: pair.partition(":")[2]
    for pair in """H:hydrogen He:helium Li:lithium Be:beryllium B:boron C:carbon N:nitrogen O:oxygen F:fluorine Ne:neon
    Na:sodium Mg:magnesium Al:aluminium Si:silicon P:phosphorus S:sulfur Cl:chlorine Ar:argon K:potassium Ca:calcium
    Sc:scandium Ti:titanium V:vanadium Cr:chromium Mn:manganese Fe:iron Co:cobalt Ni:nickel Cu:copper Zn:zinc Ga:gallium
    Ge:germanium As:arsenic Se:selenium Br:bromine Kr:krypton Rb:rubidium Sr:strontium Y:yttrium Zr:zirconium Mo:molybdenum
    Ag:silver Cd:cadmium In:indium Sn:tin Sb:antimony Te:tellurium I:iodine Xe:xenon Cs:caesium Ba:barium La:lanthanum
    Ce:cerium W:tungsten Pt:platinum Au:gold Hg:mercury Pb:lead Bi:bismuth Th:thorium U:uranium Os:osmium""".split()
}
OTHER_NAMES = {"Al": "aluminum", "S": "sulphur", "Cs": "cesium"}


def molar(random: Random) -> Sample:
    """Ask for the molar mass of a substance."""
    each = said(random, usual(random), by_name=random.random() < 0.65)
    text = prompt(random, "weight one", {"X": each.text}, [each.text])
    working = Working(random)
    known(working, [each])
    return working.sample("molar mass", text, working.mass(each.formula), "g/mol")


def weight(random: Random) -> Sample:
    """Ask for the mass of an amount in moles, also worded as the molar mass of several moles."""
    each = said(random, usual(random), by_name=random.random() < 0.5)
    number = _number(random)
    counted = _counted_out(random, number)
    text = prompt(random, "weight many", {"X": each.text, "N": counted}, [each.text])
    working = Working(random)
    known(working, [each])
    mass = working.mass(each.formula)
    return working.sample("weight", text, working.calculated(f"{decimal(number)}*{mass}"), "g")


def _number(random: Random) -> Fraction:
    if random.random() < 0.7:
        return Fraction(random.choice((random.randint(2, 10), random.randint(1, 25))))
    return Fraction(random.choice((random.randint(1, 99), random.randint(100, 9_999))), random.choice((10, 100, 1_000)))


def _counted_out(random: Random, number: Fraction) -> str:
    if number.denominator == 1 and random.random() < 0.2:
        return re.sub(r"^(a|an) (?=single)|,| of$", "", number_words(random, int(number), 0.0))
    return decimal(number)


def moles_in(random: Random) -> Sample:
    """Ask for the moles in a mass."""
    each = said(random, usual(random), by_name=random.random() < 0.5)
    grams = _grams(random)
    text = prompt(random, "moles in", {"X": each.text, "M": decimal(grams)}, [each.text])
    working = Working(random)
    known(working, [each])
    mass = working.mass(each.formula)
    return working.sample("moles", text, working.calculated(f"{decimal(grams)}/{mass}"), "mol")


def _grams(random: Random) -> Fraction:
    if random.random() < 0.6:
        return Fraction(random.choice((random.randint(1, 100), random.randint(1, 40) * 5, random.randint(10, 1_000))))
    return Fraction(random.randint(1, 9_999), random.choice((10, 100)))


def composition(random: Random) -> Sample:
    """Ask for the molar mass of a compound given by its atoms."""
    atoms = _atoms(random)
    items = list(atoms.items())
    if random.random() < 0.4:
        random.shuffle(items)
    written = "".join(f"{symbol}{count if count > 1 else ''}" for symbol, count in items)
    text = prompt(random, "weight atoms", {"L": _listed(random, items)}, list(atoms))
    working = Working(random)
    return working.sample("composition", text, working.mass(written), "g/mol")


def _atoms(random: Random) -> Mapping[str, int]:
    if random.random() < 0.12:
        symbols = random.sample(list(ELEMENTS), random.randint(2, 4))
        return {symbol: random.randint(1, 12) for symbol in symbols}
    while True:
        found = formula(usual(random).formula).atoms
        if (
            1 < len(found) <= 5
            and all(count.denominator == 1 for count in found.values())
            and set(found) <= set(ELEMENTS)
        ):
            return {symbol: int(count) for symbol, count in found.items()}


def _listed(random: Random, items: list[tuple[str, int]]) -> str:
    how = random.randrange(9)
    parts = [_atom(random, how, symbol, count) for symbol, count in items]
    last = random.choice((" and ", " and ", ", and ", " plus ", ", ", " & ", " together with "))
    return ", ".join(parts[:-1]) + last + parts[-1]


def _atom(random: Random, how: int, symbol: str, count: int) -> str:
    name = ELEMENTS[symbol]
    name = OTHER_NAMES.get(symbol, name) if random.random() < 0.5 else name
    name = misspelt(random, name) if random.random() < 0.04 else name
    many = "atom" if count == 1 else "atoms"
    number = number_words(random, count, 0.0) if how == 8 else str(count)
    return (
        f"{count} {symbol}", f"{count} {name}", f"{count} {name[0].upper()}{name[1:]}", f"{count} {many} of {name}",
        f"{count} {name} {many}", f"{count} {symbol} {many}", f"{count} {many} of {symbol}", f"{name} ({count})",
        f"{number.removesuffix(' of')} {name} {many}",
    )[how]  # fmt: skip


def share(random: Random) -> Sample:
    """Ask for the mass fraction of an element in a substance."""
    while True:
        substance = usual(random)
        each = said(random, substance, by_name=random.random() < 0.5)
        atoms = formula(each.formula).atoms
        if len(atoms) > 1 and set(atoms) <= set(ELEMENTS):
            break
    symbol = random.choice(list(atoms))
    element = symbol if random.random() < 0.6 else _cased(random, OTHER_NAMES.get(symbol, ELEMENTS[symbol]))
    text = prompt(random, "percent", {"X": each.text, "E": element}, [each.text, element])
    working = Working(random)
    known(working, [each])
    mass = working.mass(each.formula)
    own = working.mass(symbol)
    number = working.calculated(f"round({count_atoms(each.formula, symbol)}*{own}/{mass}*100, 2)")
    return working.sample("percent", text, number, "%")


def _cased(random: Random, name: str) -> str:
    return name if random.random() < 0.7 else name[0].upper() + name[1:]
