"""How people write substances and amounts: names and formulas in their spellings, slips in names, numbers of moles."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from training.builtin.chemistry.compounds import Substance, named, substances

__all__ = ["Amount", "Said", "amounts", "decimal", "misspelt", "said", "style_of", "usual"]

VOWELS = "aeiou"
ALIKE = (
    ("ph", "f"), ("y", "i"), ("ch", "c"), ("ll", "l"), ("mm", "m"), ("ss", "s"), ("ssi", "si"), ("ium", "uim"), ("hydro", "hydr"),
    ("chloro", "chlro"), ("chlor", "chlr"), ("phos", "fos"), ("ea", "ae"), ("ei", "ie"), ("carb", "crab"), ("ammo", "amo"),
    ("chloric", "chrolic"), ("oxide", "oxid"), ("magnes", "magnis"), ("potas", "pottas"), ("sod", "sodd"), ("nitr", "niter"),
)  # fmt: skip
SHORTEST_MISSPELT = 6
ENDS = 4
"""Letters at the end of a word that a slip leaves alone: there chlorate and chlorite, ethane and ethene differ."""
HALVES = {Fraction(1, 2): ("half a mole of {0}", "0.5 mol of {0}", "0.5 moles of {0}", "1/2 mole of {0}")}
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


@dataclass(frozen=True, slots=True)
class Said:
    """A substance as a question has it. `formula` is what the answer writes, `name` its right name where it was named."""

    text: str
    formula: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Amount:
    """So many moles of something."""

    number: Fraction
    text: str


def usual(random: Random) -> Substance:
    """A substance, the usual ones more often."""
    common, others = _pools()
    return random.choice(common if random.random() < 0.75 else others)


def said(random: Random, substance: Substance, *, by_name: bool, name: str = "") -> Said:
    """Name a substance, or write its formula."""
    if not by_name or not (substance.names or name):
        spelt = substance.spellings
        written = spelt[0] if len(spelt) == 1 or random.random() < 0.65 else random.choice(spelt)
        return Said(written, written)
    right = name or _one(random, substance.names)
    text = misspelt(random, right) if random.random() < 0.1 else right
    return Said(_cased(random, text), substance.formula, right)


def misspelt(random: Random, name: str) -> str:
    """A name with a slip; never one that is another substance's name."""
    words = name.split(" ")
    places = [at for at, word in enumerate(words) if len(word) >= SHORTEST_MISSPELT and word.isalpha()]
    if not places:
        return name
    at = random.choice(places)
    words[at] = _slip(random, words[at])
    wrong = " ".join(words)
    return name if wrong.lower() in named() else wrong


def decimal(number: Fraction) -> str:
    """A number in digits.

    >>> decimal(Fraction(5, 2)), decimal(Fraction(3))
    ('2.5', '3')
    """
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.6g}"


def style_of(random: Random) -> int:
    """How the amounts of one question are written."""
    return random.choices(range(8), (18, 14, 26, 10, 5, 8, 3, 3))[0]


def amounts(random: Random, style: int, given: Sequence[tuple[Fraction, str]]) -> str:
    """A list of amounts."""
    parts = [_amount(random, style, number, text) for number, text in given]
    if len(parts) == 1:
        return parts[0]
    if style == 2:
        # Digits with "moles of" and a bare "and" is how nearly everybody puts it, and so the tests: here it is put otherwise.
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


def _pools() -> tuple[list[Substance], list[Substance]]:
    if not _POOLS:
        known = [each for each in substances().values() if each.names]
        _POOLS.append([each for each in known if each.common])
        _POOLS.append([each for each in known if not each.common])
    return _POOLS[0], _POOLS[1]


_POOLS: list[list[Substance]] = []


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
    at = random.randrange(1, max(len(word) - ENDS, 2))
    kind = random.randrange(4)
    letter = word[at]
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + letter + word[at:]
    if kind == 2 and letter in VOWELS:
        return word[:at] + random.choice(VOWELS.replace(letter, "")) + word[at + 1 :]
    return word[:at] + word[at + 1] + letter + word[at + 2 :]
