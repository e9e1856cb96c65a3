"""Recovery from wrong equations: the tool reports that nothing balances, and the model counts one element instead."""

import re
from random import Random

from taiwa.models.builtin.line_check import count_atoms
from taiwa.tools.chemical_formulas import formula
from taiwa.tools.stoichiometry import balance
from training.builtin.chemistry.naming import amounts, decimal, style_of
from training.builtin.chemistry.reacting import WordedReaction, given_out, known, phrase, prompt, word_reaction
from training.builtin.chemistry.reactions import drawn
from training.builtin.chemistry.working import Working, plain_number
from training.builtin.samples import Sample

__all__ = ["astray", "bare"]

TRIES = 60
COEFFICIENT = re.compile(r"(?<!\S)[0-9.]+ ?(?=[A-Z(\[])")
STRAY = "H2O CO2 O2 H2 HCl NaCl N2 CO NH3 SO2 Cl2 NaOH H2SO4 C2H6O CaCl2 C2H4 NO KCl Na2SO4 CH3OH".split()


def astray(random: Random) -> Sample:
    """Ask for a product where the first equation cannot be balanced."""
    while True:
        worded = word_reaction(random, drawn(random))
        middle = len(worded.reaction.reactants)
        asked = random.randrange(middle, len(worded.said))
        element, source = _leading(worded, asked)
        wrong = _wrong(random, worded, asked) if element else ""
        if wrong:
            break
    given = given_out(random, worded, middle)
    if source not in given or any(
        given[at] / worded.counts[at] < given[source] / worded.counts[source] for at in given
    ):
        given = {at: worded.counts[at] for at in range(middle)}
    order = list(given)
    random.shuffle(order)
    style = style_of(random)
    slots = {"X": worded.said[asked].text}
    slots["H"] = phrase(random, "moles how", slots)
    slots["Q"] = phrase(random, "moles noun", slots)
    slots["AB"] = amounts(random, style, [(given[at], worded.said[at].text) for at in order])
    slots["A"], slots["B"] = slots["AB"], ""
    section = "products" if middle > 1 else "products alone"
    text = prompt(random, section, slots, [each.text for each in worded.said])
    working = Working(random)
    known(working, [*(worded.said[at] for at in order), worded.said[asked]])
    working.balanced(wrong, weight=0.0)
    own, made = worded.said[source].formula, worded.said[asked].formula
    working.say(f"{element} of {made} is from {own}.\n")
    has, needs = count_atoms(own, element), count_atoms(made, element)
    needs = f"({needs})" if "*" in needs else needs
    number = working.calculated(f"{decimal(given[source])}*{has}/{needs}")
    return working.sample("astray", text, number, "mol")


def bare(equation: str) -> str:
    """Return an equation without coefficients.

    >>> bare("2CuSO4·5H2O + 10 HCl -> 0.5CaSO4·0.5H2O")
    'CuSO4·5H2O + HCl -> CaSO4·0.5H2O'
    """
    return COEFFICIENT.sub("", equation)


def _leading(worded: WordedReaction, asked: int) -> tuple[str, int]:
    """Return an element of the product that comes from a single reactant and goes entirely into the product, with that reactant."""
    middle = len(worded.reaction.reactants)
    holding = [formula(each.formula).atoms for each in worded.said]
    for element in holding[asked]:
        sources = [at for at in range(middle) if element in holding[at]]
        sinks = [at for at in range(middle, len(holding)) if element in holding[at]]
        if len(sources) == 1 and sinks == [asked]:
            has, needs = (
                count_atoms(worded.said[sources[0]].formula, element),
                count_atoms(worded.said[asked].formula, element),
            )
            ratio_of_atoms = plain_number(f"{has}/({needs})")
            if ratio_of_atoms == worded.counts[asked] / worded.counts[sources[0]]:
                return element, sources[0]
    return "", 0


def _wrong(random: Random, worded: WordedReaction, asked: int) -> str:
    """Return the equation with a product removed or replaced, so that it cannot be balanced."""
    left, right = worded.equation.split(" -> ")
    products = right.split(" + ")
    kept = products[asked - len(worded.reaction.reactants)]
    for _ in range(TRIES):
        changed = [each for each in products if each == kept or random.random() < 0.5]
        if random.random() < 0.7:
            stray = random.choice(STRAY)
            if stray not in {bare(each) for each in (*changed, *left.split(" + "))}:
                changed.append(stray)
        equation = bare(f"{left} -> {' + '.join(changed)}")
        if changed != products and balance(equation).status == "impossible":
            return equation
    return ""
