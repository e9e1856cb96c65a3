"""Reaction questions in moles: a missing coefficient, or the products of a mixture."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from taiwa.tools.compound_names import Substance, substance
from training.builtin.chemistry.naming import Said, amounts, decimal, said, style_of
from training.builtin.chemistry.reactions import Part, Reaction, balanced, drawn
from training.builtin.chemistry.wording import wordings
from training.builtin.chemistry.working import Working
from training.builtin.noise import noisy
from training.builtin.samples import Sample

__all__ = [
    "WordedReaction",
    "coefficient",
    "given_out",
    "known",
    "phrase",
    "product_mass",
    "product_moles",
    "prompt",
    "word_reaction",
]

TIMES = tuple(map(Fraction, "1 1 1 1 2 2 2 3 3 4 5 6 7 8 10 12 15 20 0.5 1.5 2.5 0.25 0.1 0.2".split()))
LEVEL = 0.12
MISTAKEN = 0.04
"""How often one amount contradicts the others."""
TERM = re.compile(r"([0-9]+(?:/[0-9]+)?)?\s*(.+)")


@dataclass(frozen=True, slots=True)
class WordedReaction:
    """A reaction in one question: the wording of each part, and the equation of the answer."""

    reaction: Reaction
    said: tuple[Said, ...]
    counts: tuple[Fraction, ...]

    @property
    def equation(self) -> str:
        """Return the equation to balance, in the formulas of the question."""
        return self.ordered(range(len(self.reaction.reactants)))

    def ordered(self, reactants: Iterable[int]) -> str:
        """Return the same equation with the reactants in another order."""
        terms = [f"{part.count}{each.formula}" for part, each in zip(self.reaction.parts, self.said, strict=True)]
        middle = len(self.reaction.reactants)
        return f"{' + '.join(terms[at] for at in reactants)} -> {' + '.join(terms[middle:])}"


def word_reaction(random: Random, reaction: Reaction, by_name: bool | None = None) -> WordedReaction:
    """Choose how each part is named; most questions name all parts alike."""
    how = random.random()
    parts: list[Said] = []
    taken: set[str] = set()
    for part in reaction.parts:
        named = by_name if by_name is not None else how < 0.48 or (how > 0.92 and random.random() < 0.5)
        each = said(random, _substance(part), by_name=named, name=part.name if named else "")
        if each.formula in taken or each.text in taken:
            each = said(random, Substance(part.formula, (part.formula,), ()), by_name=False)
        taken |= {each.formula, each.text}
        parts.append(each)
    solved = balanced(reaction.text).equations[0]
    counts = tuple(term.count or Fraction(1) for term in (*solved.reactants, *solved.products))
    return WordedReaction(reaction, tuple(parts), counts)


def _substance(part: Part) -> Substance:
    return substance(part.formula)


def known(working: Working, parts: Sequence[Said]) -> None:
    """Return the wording of the given parts."""
    pairs = list(dict.fromkeys((each.name, each.formula) for each in parts if each.name))
    if pairs:
        text = ", ".join(f"{name} is {formula}" for name, formula in pairs)
        working.say(f"{text[0].upper()}{text[1:]}.\n")


def prompt(random: Random, section: str, slots: Mapping[str, str], formulas: Sequence[str]) -> str:
    """Write a question with typing errors; formulas stay intact."""
    text = random.choice(wordings(section)).write(random, slots)
    return noisy(random, text, LEVEL, frozenset(formulas))


def coefficient(random: Random) -> Sample:
    """Give all amounts but one."""
    worded = word_reaction(random, drawn(random))
    times = random.choice(TIMES)
    middle, whole = len(worded.reaction.reactants), len(worded.said)
    asked = random.randrange(middle) if random.random() < 0.75 else random.randrange(middle, whole)
    numbers = [count * times for count in worded.counts]
    left = random.sample([at for at in range(middle) if at != asked], middle - (asked < middle))
    right = random.sample([at for at in range(middle, whole) if at != asked], whole - middle - (asked >= middle))
    if random.random() < MISTAKEN:
        numbers[random.choice([*left, *right])] = Fraction(random.randint(1, 12))
    style = style_of(random)
    slots = {"X": worded.said[asked].text}
    for slot, places in (("G", left), ("P", right)):
        slots[slot] = amounts(random, style, [(numbers[at], worded.said[at].text) for at in places]) if places else ""
    slots["H"] = phrase(random, "moles how", slots)
    slots["Q"] = phrase(random, "moles noun", slots)
    section = "need reactant" if asked < middle else "need product"
    bare = not (left if asked < middle else right)
    text = prompt(random, f"{section} bare" if bare else section, slots, [each.text for each in worded.said])
    order = [asked, *left, *right] if asked < middle else [*left, *right, asked]
    return _solved(Working(random), worded, text, order, [None if at == asked else numbers[at] for at in order])


def _solved(
    working: Working, worded: WordedReaction, text: str, order: Sequence[int], numbers: Sequence[Fraction | None]
) -> Sample:
    """Answer by the missing coefficient, or by proportion if the amounts contradict each other."""
    known(working, [worded.said[at] for at in order])
    middle = len(worded.reaction.reactants)
    terms = [f"{_count(number)}{worded.said[at].formula}" for at, number in zip(order, numbers, strict=True)]
    found = working.balanced(f"{' + '.join(terms[:middle])} -> {' + '.join(terms[middle:])}")
    asked = numbers.index(None)
    if found.startswith("impossible"):
        first = next(at for at, number in enumerate(numbers) if number is not None)
        plain = [f"{worded.reaction.parts[at].count}{worded.said[at].formula}" for at in order]
        working.balanced(f"{' + '.join(plain[:middle])} -> {' + '.join(plain[middle:])}")
        own, wanted = worded.counts[order[first]], worded.counts[order[asked]]
        number = working.calculated(ratio(numbers[first] or Fraction(0), wanted, own))
        return working.sample("coefficient", text, number, "mol")
    term = re.split(r" \+ | -> ", found)[asked]
    number = term.removesuffix(worded.said[order[asked]].formula).strip() or "1"
    if "/" in number:
        number = working.calculated(number)
    return working.sample("coefficient", text, number, "mol")


def _count(number: Fraction | None) -> str:
    if number is None:
        return "?"
    if number == 1:
        return ""
    return decimal(number) if number.denominator == 1 else f"{decimal(number)} "


def phrase(random: Random, section: str, slots: Mapping[str, str]) -> str:
    """Return the wording of the requested amount."""
    text = random.choice(wordings(section)).write(random, slots)
    return text if text.startswith(slots["X"]) else text[0].lower() + text[1:]


def product_moles(random: Random) -> Sample:
    """Ask for the product of a mixture in moles."""
    return _product(random, "moles")


def product_mass(random: Random) -> Sample:
    """Ask for the product of a mixture in grams."""
    return _product(random, "mass")


def _product(random: Random, unit: str) -> Sample:
    reaction = drawn(random)
    worded = word_reaction(random, reaction)
    middle = len(reaction.reactants)
    asked = random.randrange(middle, len(worded.said))
    given = given_out(random, worded, middle)
    order = list(given)
    random.shuffle(order)
    style = style_of(random)
    slots = {"X": worded.said[asked].text}
    slots["H"] = phrase(random, f"{unit} how", slots)
    slots["Q"] = phrase(random, f"{unit} noun", slots)
    pairs = [(given[at], worded.said[at].text) for at in order]
    slots["AB"] = amounts(random, style, pairs)
    slots["A"] = amounts(random, style, pairs[:1])
    rest = [worded.said[at].text for at in range(middle) if at not in given]
    slots["B"] = amounts(random, style, pairs[1:]) if len(pairs) > 1 else " and ".join(rest)
    section = "products"
    if len(pairs) == 1:
        section = "products single" if rest else "products alone"
    elif len(pairs) == 2 and random.random() < 0.3:
        section = "products with"
    if section == "products with" and style == 2:
        slots["A"] = amounts(random, 0, pairs[:1])
    text = prompt(random, section, slots, [each.text for each in worded.said])
    working = Working(random)
    everything = [*order, *(at for at in range(middle) if at not in given)]
    known(working, [*(worded.said[at] for at in everything), worded.said[asked]])
    working.balanced(worded.ordered(everything))
    ratios = [ratio(given[at], worded.counts[asked], worded.counts[at]) for at in order]
    number = working.calculated(ratios[0] if len(ratios) == 1 else f"min({', '.join(ratios)})")
    if unit == "moles":
        return working.sample("product", text, number, "mol")
    mass = working.mass(worded.said[asked].formula)
    return working.sample("product mass", text, working.calculated(f"{number}*{mass}"), "g")


def ratio(number: Fraction, wanted: Fraction, own: Fraction) -> str:
    """Return the amount of product that a given amount yields."""
    return f"{decimal(number)}*{decimal(wanted)}/{decimal(own)}"


def given_out(random: Random, worded: WordedReaction, middle: int) -> dict[int, Fraction]:
    """Draw the amounts of the reactants: stoichiometric, or with one in excess."""
    times = random.choice(TIMES)
    given = {at: worded.counts[at] * times for at in range(middle)}
    if not worded.reaction.exact and middle > 1:
        if random.random() < 0.3:
            for at in given:
                given[at] = Fraction(random.randint(1, 12))
        if random.random() < 0.08:
            kept = random.randrange(middle)
            given = {kept: given[kept]}
    return given
