"""The task `number`: read the final number from the last lines of a rationale."""

from collections.abc import Sequence
from random import Random

from training.builtin.quantities.others import MISSING, REFUSAL
from training.builtin.quantities.telling import Teller
from training.builtin.quantities.words import invented, noun, person
from training.builtin.quantities.working import Maker, solved
from training.builtin.samples import Draw, Sample, Span

__all__ = ["number_of"]

ENDS = (
    "Therefore, the answer is {n}{u}.", "Therefore, the answer is {n}{u}", "So the answer is {n}{u}.", "The answer is {n}{u}.", "Answer: {n}{u}", "Final answer: {n}{u}", "Hence {n}{u}.", "Thus, it is {n}{u}.", "= {n}{u}", "The result is {n}{u}.", "That makes {n}{u}.", "[Result|Total|Solution]: {n}{u}.",
    "It comes to {n}{u}[ in all|]", "So we get {n}{u}.", "In total, there are {n}{u}.", "{n}{u}", "**{n}**{u}", "The final result is {n}{u}.", "This gives {n}{u}, which is the answer.", "We find x = {n}{u}.", "It is about {n}{u}.", "[The value|It] is approximately {n}{u}.", "{X} needs {n}{u}.", "{X} has {n}{u} [left|now|in the end].", "#### {n}",
    "The [total|distance|speed|mass|price|time|number] is {n}{u}.", "Therefore {X} [pays|gets|owes|keeps|has] {n}{u}.", "So it takes {n}{u}.", "Answer is {n}{u} I think", "[{n}{u}, that is the answer.|Yes: {n}{u}.]", "To sum up, {n}{u}.", "So finally: {n}{u}!",
)  # fmt: skip
NONE = (
    "I do not know the formula of {I}.", REFUSAL, MISSING, "I cannot [answer|work out|solve] this.", "The question has no answer.", "There is not enough information.", "It depends on the {I}.", "No number can be given.", "I do not know.", "The substance {I} is unknown to me.", "So nothing can be said.", "Let us think about it step by step.",
    "The answer is unknown.", "Sorry, I do not know what {I} is.", "Therefore, the answer is not known.", "We would need the price of the {N}.", "First look at the {N}.", "hello", "{X} has some {N}.", "There is no way to tell.",
)  # fmt: skip
UNITS = (
    "",
    "",
    " g",
    " km/h",
    " m",
    " %",
    "%",
    " dollars",
    " hours",
    " mol",
    " L",
    " years",
    " km",
    " {N}",
    " {N}",
    " g/mol",
    " seconds",
    " euros",
    " ohm",
    " m^2",
    "kg",
    " points",
    " degrees",
)


def _shown(teller: Teller, number: str) -> str:
    """Format the number, sometimes with thousands separators."""
    whole, dot, rest = number.partition(".")
    return f"{int(whole):,}{dot}{rest}" if whole.isdigit() and int(whole) >= 1_000 and teller.chance(0.5) else number


def _drawn(teller: Teller) -> str:
    kind = teller.random.randrange(10)
    if kind < 6:
        return str(teller.whole(1, 999))
    if kind < 8:
        return teller.decimal(0.01, 900, teller.random.choice((1, 2, 3)))
    return "-" * teller.chance(0.2) + str(teller.whole(1_000, 999_999))


def number_of(makers: Sequence[Maker]) -> Draw:
    """Draw final lines of rationales: our own wording, other wordings, and some without a number."""

    def draw(random: Random) -> Sample:
        teller = Teller(random)
        kind = random.choices(("own", "styled", "none"), (4, 5, 1.5))[0]
        slots = {"X": person(teller).name, "I": invented(teller), "N": noun(teller)}
        if kind == "none":
            return _sample(
                " ".join(teller.say(each, slots) for each in random.sample(NONE, random.choice((1, 1, 2)))), "none"
            )
        if kind == "own":
            made = random.choice(makers)(teller)
            text = "".join(span.text for span in solved(made.steps, made.unit))
            lines = text.split("\n")[-random.choice((1, 2, 3)) :]
            if random.random() < 0.5:
                lines = [line for line in lines if "<<" not in line]
            return _sample(
                " ".join(lines), lines[-1].removeprefix("Therefore, the answer is ").split(" ")[0].rstrip(".")
            )
        number = _drawn(teller)
        slots |= {"n": _shown(teller, number), "u": random.choice(UNITS)}
        before = (
            f"{teller.whole(2, 90)} {random.choice('+-*/')} {teller.whole(2, 90)} = {_drawn(teller)}. "
            if random.random() < 0.5
            else ""
        )
        if random.random() < 0.3:
            before += teller.say("[First|Then|Now|Next], {X} has " + str(teller.whole(2, 90)) + " {N}. ", slots) + " "
        return _sample(before + teller.say(random.choice(ENDS), slots), number)

    return draw


def _sample(text: str, number: str) -> Sample:
    return Sample("number", "number", " ".join(text.split()), (Span(number),))
