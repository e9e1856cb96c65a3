"""Questions that require the complete equation first: reaction partners, precursors, and products in grams."""

from fractions import Fraction
from random import Random

from training.builtin.chemistry.naming import decimal
from training.builtin.chemistry.reacting import known, phrase, prompt, ratio, word_reaction
from training.builtin.chemistry.reactions import drawn
from training.builtin.chemistry.working import Working
from training.builtin.samples import Sample

__all__ = ["from_grams", "needed", "needed_mass"]

GRAMS = ("{0} g of {1}", "{0} g {1}", "{0} grams of {1}", "{0} grams {1}", "{1} ({0} g)", "{0} g of {1}")
MOLES = ("{0} mol of {1}", "{0} mol {1}", "{0} moles of {1}", "{0} moles {1}")


def needed(random: Random) -> Sample:
    """Ask how many moles of a reactant go with an amount of another one, or into an amount of a product."""
    return _needed(random, "mol")


def needed_mass(random: Random) -> Sample:
    """Ask the same in grams; the amount of a compound is a mass."""
    return _needed(random, "g")


def _needed(random: Random, unit: str) -> Sample:
    worded = word_reaction(random, drawn(random))
    while len(worded.reaction.reactants) != 2 or worded.reaction.exact:
        worded = word_reaction(random, drawn(random))
    asked = random.randrange(2)
    given = 1 - asked if random.random() < 0.6 else random.randrange(2, len(worded.said))
    number = Fraction(random.choice((random.randint(1, 12), random.randint(1, 40) / Fraction(4))))
    amount = random.choice(MOLES).format(
        "one" if number == 1 and random.random() < 0.3 else decimal(number), worded.said[given].text
    )
    if number == 1:
        amount = amount.replace("moles", "mole", 1)
    slots = {"X": worded.said[asked].text, "A": amount, "B": worded.said[1 - asked].text}
    section = ("partner" if given < 2 else "source") + " mass" * (unit == "g")
    text = prompt(random, section, slots, [each.text for each in worded.said])
    working = Working(random)
    order = [asked, 1 - asked]
    known(working, [worded.said[at] for at in (*order, *((given,) if given > 1 else ()))])
    working.balanced(worded.ordered(order))
    moles = working.calculated(ratio(number, worded.counts[asked], worded.counts[given]))
    if unit == "mol":
        return working.sample("needed", text, moles, unit)
    mass = working.mass(worded.said[asked].formula)
    return working.sample("needed mass", text, working.calculated(f"{moles}*{mass}"), unit)


def from_grams(random: Random) -> Sample:
    """Ask for the product of a mass, without an equation in the question."""
    worded = word_reaction(random, drawn(random))
    while len(worded.reaction.reactants) > 2 or worded.reaction.exact:
        worded = word_reaction(random, drawn(random))
    middle = len(worded.reaction.reactants)
    asked = random.randrange(middle, len(worded.said))
    order = random.sample(range(middle), middle)
    amounts = [_grams(random) for _ in order]
    style = random.choice(GRAMS)
    parts = [style.format(decimal(grams), worded.said[at].text) for grams, at in zip(amounts, order, strict=True)]
    both = middle == 2 and random.random() < 0.6
    slots = {"X": worded.said[asked].text, "A": parts[0], "B": worded.said[order[-1]].text}
    slots["AB"] = random.choice((" and ", " with ", " plus ")).join(parts)
    slots["H"], slots["Q"] = phrase(random, "mass how", slots), phrase(random, "mass noun", slots)
    section = "products" if both else "products single" if middle == 2 else "products alone"
    text = prompt(random, section, slots, [each.text for each in worded.said])
    working = Working(random)
    known(working, [*(worded.said[at] for at in order), worded.said[asked]])
    working.balanced(worded.ordered(order))
    used = order if both else order[:1]
    masses = [working.mass(worded.said[at].formula) for at in used]
    made = working.mass(worded.said[asked].formula)
    ratios = [
        f"{decimal(grams)}/{mass}*{decimal(worded.counts[asked])}/{decimal(worded.counts[at])}"
        for grams, mass, at in zip(amounts, masses, used, strict=False)
    ]
    moles = ratios[0] if len(ratios) == 1 else f"min({', '.join(ratios)})"
    return working.sample("grams", text, working.calculated(f"{moles}*{made}"), "g")


def _grams(random: Random) -> Fraction:
    return Fraction(
        random.choice((random.randint(1, 100), random.randint(1, 50) * 5, random.randint(11, 999) / Fraction(10)))
    )
