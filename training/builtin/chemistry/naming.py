"""Surface forms of substances and amounts: spellings of names and formulas, typing errors, numbers of moles."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random

from taiwa.tools.compound_names import Substance, named, substances

__all__ = ["Amount", "Said", "amounts", "decimal", "misspelt", "said", "style_of", "usual"]

VOWELS = "aeiou"
SWAPS = 4
ALIKE = (
    ("ph", "f"), ("y", "i"), ("ch", "c"), ("ll", "l"), ("mm", "m"), ("ss", "s"), ("ssi", "si"), ("ium", "uim"), ("hydro", "hydr"),
    ("chloro", "chlro"), ("chlor", "chlr"), ("phos", "fos"), ("ea", "ae"), ("ei", "ie"), ("carb", "crab"), ("ammo", "amo"),
    ("oxide", "oxid"), ("magnes", "magnis"), ("potas", "pottas"), ("sod", "sodd"), ("nitr", "niter"),
)  # fmt: skip
SHORTEST_MISSPELT = 6
ENDS = 3
"""Length of the ending that typing errors leave intact: it distinguishes chlorate from chlorite, and ethane from ethene."""
STATES = "solid gaseous aqueous pure dry molten dilute concentrated anhydrous powdered fresh liquid impure".split()
FAVOURITES = """H2O CO2 NaCl HCl H2SO4 HNO3 NaOH KOH Ca(OH)2 CaCO3 NaHCO3 Na2CO3 NH3 NH4Cl NH4NO3 CH4 C2H6 C3H8 C4H10 C2H4 C2H2
C6H6 C2H5OH CH3OH CH3COOH HCOOH C6H12O6 C12H22O11 KMnO4 K2Cr2O7 AgNO3 BaCl2 BaSO4 CaCl2 CaO MgO Al2O3 Fe2O3 Fe3O4 CuSO4 CuO ZnO
ZnSO4 FeSO4 FeCl3 FeCl2 AlCl3 Al2(SO4)3 Na2SO4 K2SO4 KCl KBr KI NaBr NaI NaF KNO3 NaNO3 KClO3 Pb(NO3)2 PbO PbO2 PbI2 AgCl HgO SO2
SO3 NO NO2 N2O N2O5 P2O5 PCl3 PCl5 P4O10 H3PO4 H2CO3 H2S H2O2 HF HBr HI O2 O3 H2 N2 Cl2 CO SiO2 CCl4 CHCl3 CH3Cl C6H8O7 C6H8O6
CO(NH2)2 C8H10N4O2 C9H8O4 CH3COCH3 HCHO CH3CHO C6H5CH3 C6H5OH C6H5NH2 C10H8 C8H18 C5H12 C6H14 C3H5(OH)3 H2C2O4 C6H5COOH CH3NH2
MgCl2 MgSO4 Mg(OH)2 Mg(NO3)2 Ca(NO3)2 Ca3(PO4)2 CaSO4 CaF2 CaC2 Al(OH)3 Fe(OH)3 Fe(OH)2 Cu(OH)2 Zn(OH)2 Ba(OH)2 Ba(NO3)2 BaCO3
(NH4)2SO4 (NH4)2CO3 (NH4)3PO4 (NH4)2Cr2O7 Na3PO4 K3PO4 Na2S2O3 Na2O Na2O2 Na2S K2O K2CO3 K2CrO4 KCN NaCN HCN LiOH Li2CO3 LiCl
MnO2 MnSO4 Cr2O3 CrO3 H2CrO4 H2SO3 HNO2 HClO4 HClO HClO3 H3BO3 SF6 N2H4 PH3 CS2 TiO2 SnO2 SnCl2 HgCl2 Hg2Cl2 NiCl2 CoCl2 CuCl2
CuSO4·5H2O MgSO4·7H2O Na2CO3·10H2O CaSO4·2H2O FeSO4·7H2O CH3COONa (CH3COO)2Pb (CH3COO)2Ca CH3COOC2H5 (C2H5)2O C2H5Br C2H5Cl
C6H5NO2 C6H5Cl C7H5N3O6 C3H5N3O9 C2H5NO2 C3H7NO2 C8H9NO2 C13H18O2 C10H14N2 C10H16O C27H46O K4Fe(CN)6 K3Fe(CN)6 Na2B4O7·10H2O
KAl(SO4)2·12H2O H2 S Mg Al Fe Cu Zn Na K Ca C""".split()
HALVES = {Fraction(1, 2): ("half a mole of {0}", "0.5 mol of {0}", "0.5 moles of {0}", "1/2 mole of {0}")}
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


@dataclass(frozen=True, slots=True)
class Said:
    """A substance in a question. The answer writes `formula`; `name` is the correct name if the question uses one."""

    text: str
    formula: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in moles."""

    number: Fraction
    text: str


def usual(random: Random) -> Substance:
    """Draw a substance, common ones more often."""
    favourites, common, others = _pools()
    how = random.random()
    return random.choice(favourites if how < 0.3 else common if how < 0.8 else others)


def said(random: Random, substance: Substance, *, by_name: bool, name: str = "") -> Said:
    """Return the name or the formula of a substance."""
    if not by_name or not (substance.names or name):
        spelt = substance.spellings
        written = spelt[0] if len(spelt) == 1 or random.random() < 0.65 else random.choice(spelt)
        return Said(written, written)
    right = name or _one(random, substance.names)
    text = _cased(random, misspelt(random, right) if random.random() < 0.1 else right)
    if random.random() < 0.03:
        text = f"{random.choice(STATES)} {text}"
    return Said(text, substance.formula, right)


def misspelt(random: Random, name: str) -> str:
    """Return a misspelt name that is not the name of another substance."""
    words = name.split(" ")
    places = [at for at, word in enumerate(words) if len(word) >= SHORTEST_MISSPELT and word.isalpha()]
    if not places:
        return name
    at = random.choice(places)
    words[at] = _slip(random, words[at])
    wrong = " ".join(words)
    return name if wrong.lower() in named() else wrong


def decimal(number: Fraction) -> str:
    """Write a number in digits.

    >>> decimal(Fraction(5, 2)), decimal(Fraction(3))
    ('2.5', '3')
    """
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.6g}"


def style_of(random: Random) -> int:
    """The notation of amounts within one question."""
    return random.choices(range(8), (18, 14, 26, 10, 5, 8, 3, 3))[0]


def amounts(random: Random, style: int, given: Sequence[tuple[Fraction, str]]) -> str:
    """Write a list of amounts."""
    parts = [_amount(random, style, number, text) for number, text in given]
    if len(parts) == 1:
        return parts[0]
    if style == 2:
        # "N moles of" with a bare "and" is the most common wording, and that of the evaluation sets, so other wordings are used here.
        joints = (
            " with ",
            " plus ",
            " along with ",
            " together with ",
            " and also ",
            " & ",
            " as well as ",
            " + ",
            " and then ",
        )
        return "".join(part + (random.choice(joints) if at < len(parts) - 1 else "") for at, part in enumerate(parts))
    last = random.choice(
        (" and ", " and ", " and ", " and ", " with ", " plus ", " + ", " as well as ", " together with ")
    )
    comma = random.choice((", ", ", ", " and ")) if last == " and " else random.choice((", ", last))
    return (
        comma.join(parts[:-1])
        + (random.choice(("", ",")) if len(parts) > 2 and last == " and " else "")
        + last
        + parts[-1]
    )


def _amount(random: Random, style: int, number: Fraction, text: str) -> str:
    digits = decimal(number)
    many = "mole" if number == 1 else "moles"
    if number in HALVES and random.random() < 0.3:
        return random.choice(HALVES[number]).format(text)
    if style == 5 and number.denominator == 1 and number < len(WORDS):
        one = "a" if number == 1 and random.random() < 0.4 else WORDS[int(number)]
        return f"{one} {many} of {text}"
    written = (
        f"{digits} mol of {text}", f"{digits} mol {text}", f"{digits} {many} of {text}", f"{digits} {many} {text}",
        f"{text} ({digits} mol)", f"{digits} mol of {text}", f"{digits} mols of {text}", f"{digits} mole {text}",
    )  # fmt: skip
    return written[style]


@cache
def _pools() -> tuple[list[Substance], list[Substance], list[Substance]]:
    known = [each for each in substances().values() if each.names]
    favourites = [substances()[formula] for formula in FAVOURITES]
    return favourites, [each for each in known if each.common], [each for each in known if not each.common]


def _one(random: Random, names: Sequence[str]) -> str:
    return names[0] if random.random() < 0.45 else random.choice(names)


def _cased(random: Random, name: str) -> str:
    how = random.random()
    if how < 0.55:
        return name
    if how < 0.9:
        return name[0].upper() + name[1:]
    return " ".join(word[:1].upper() + word[1:] for word in name.split(" "))


def _slip(random: Random, word: str) -> str:
    if random.random() < 0.35:
        fitting = [(right, wrong) for right, wrong in ALIKE if right in word[:-ENDS].lower()]
        if fitting:
            right, wrong = random.choice(fitting)
            return word.replace(right, wrong, 1)
    kind = random.randrange(6)
    if kind >= SWAPS:
        # Swapped letters never produce another ending.
        at = random.randrange(1, len(word) - 1 - (kind == SWAPS))
        further = at + 1 + (kind == SWAPS)
        return word[:at] + word[further] + word[at + 1 : further] + word[at] + word[further + 1 :]
    at = random.randrange(1, max(len(word) - ENDS, 2))
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    if word[at] in VOWELS:
        return word[:at] + random.choice(VOWELS.replace(word[at], "")) + word[at + 1 :]
    return word[:at] + word[at + 1 :]
