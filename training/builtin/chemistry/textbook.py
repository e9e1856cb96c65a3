"""Textbook exercises: given equations, masses on both sides, yields, solutions and bare arithmetic."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from taiwa.tools.compound_names import substance
from training.builtin.chemistry.naming import Said, decimal, said, usual
from training.builtin.chemistry.reacting import WordedReaction, known, prompt, word_reaction
from training.builtin.chemistry.reactions import balanced, drawn
from training.builtin.chemistry.working import Working
from training.builtin.samples import Sample

__all__ = ["arithmetic", "balancing", "given_equation", "solution"]

ARROWS = (" -> ", " -> ", " -> ", " = ", " --> ", " => ")
GASES = frozenset(
    "H2 O2 N2 F2 Cl2 CO CO2 NO NO2 N2O SO2 SO3 NH3 HCl HBr HI H2S CH4 C2H6 C3H8 C2H4 C2H2 O3 HF PH3 SiH4".split()
)
IONIC = """Fe^2+ + MnO4^- + H^+ -> Fe^3+ + Mn^2+ + H2O;Cr2O7^2- + Fe^2+ + H^+ -> Cr^3+ + Fe^3+ + H2O;Cu + NO3^- + H^+ -> Cu^2+ + NO + H2O;
Ag^+ + Cl^- -> AgCl;Ba^2+ + SO4^2- -> BaSO4;H^+ + OH^- -> H2O;Pb^2+ + I^- -> PbI2;Zn + Ag^+ -> Zn^2+ + Ag;Al + H^+ -> Al^3+ + H2;
Cl2 + Br^- -> Cl^- + Br2;MnO4^- + C2O4^2- + H^+ -> Mn^2+ + CO2 + H2O;I2 + S2O3^2- -> I^- + S4O6^2-;ClO^- + I^- + H^+ -> I2 + Cl^- + H2O;
Cr2O7^2- + I^- + H^+ -> Cr^3+ + I2 + H2O;MnO4^- + H2O2 + H^+ -> Mn^2+ + O2 + H2O;Zn + NO3^- + H^+ -> Zn^2+ + NH4^+ + H2O;
Fe^3+ + SCN^- -> FeSCN^2+;Cu^2+ + OH^- -> Cu(OH)2;CO3^2- + H^+ -> CO2 + H2O;NH4^+ + OH^- -> NH3 + H2O;Fe^3+ + OH^- -> Fe(OH)3;
MnO4^- + SO3^2- + H2O -> MnO2 + SO4^2- + OH^-;Al + OH^- + H2O -> AlO2^- + H2;Br2 + OH^- -> Br^- + BrO3^- + H2O;Ca^2+ + PO4^3- -> Ca3(PO4)2;
Sn^2+ + Fe^3+ -> Sn^4+ + Fe^2+;MnO4^- + H^+ + e^- -> Mn^2+ + H2O;Cr2O7^2- + H^+ + e^- -> Cr^3+ + H2O;Cu^2+ + e^- -> Cu;O2 + H^+ + e^- -> H2O;
Al^3+ + e^- -> Al;H2O -> O2 + H^+ + e^-;NO3^- + H^+ + e^- -> NO + H2O;Pb + SO4^2- -> PbSO4 + e^-;Zn -> Zn^2+ + e^-;Cl^- -> Cl2 + e^-;
IO3^- + I^- + H^+ -> I2 + H2O;BrO3^- + Br^- + H^+ -> Br2 + H2O;S^2- + NO3^- + H^+ -> S + NO + H2O;Ni^2+ + NH3 -> Ni(NH3)6^2+;
CrO2^- + H2O2 + OH^- -> CrO4^2- + H2O;Fe(OH)2 + O2 + H2O -> Fe(OH)3;Mg + H^+ -> Mg^2+ + H2;Hg^2+ + I^- -> HgI4^2-;Cd + H^+ -> Cd^2+ + H2"""
DISSOLVED = frozenset(("neutral", "partly_neutral", "precipitates", "ammonium", "ammonia"))
"""Reactions of substances that are measured as solutions."""


@dataclass(frozen=True, slots=True)
class Given:
    """A reaction whose equation is part of the question."""

    worded: WordedReaction
    equation: str
    one: int
    other: int


def balancing(random: Random) -> Sample:
    """Return an equation to balance, as it is passed to the tool."""
    if random.random() < 0.15:
        equation = random.choice(IONIC.replace("\n", "").split(";"))
    else:
        equation = _equation(random, word_reaction(random, drawn(random), by_name=False), whole=False)
    text = prompt(random, "balance", {"R": equation}, equation.split(" "))
    working = Working(random)
    found = working.balanced(equation)
    if found.startswith(("impossible", "underdetermined")):
        return arithmetic(random)
    return working.sample("balance", text, found)


def _equation(random: Random, worded: WordedReaction, *, whole: bool) -> str:
    """Return the equation as the question shows it: balanced or not, with or without states."""
    states = random.random() < 0.2
    apart = " "
    terms: list[str] = []
    for part, each, count in zip(worded.reaction.parts, worded.said, worded.counts, strict=True):
        number = decimal(count) + apart if whole and count != 1 else ""
        number = part.count if part.count and not whole else number
        state = random.choice(_states(each.formula)) if states else ""
        terms.append(f"{number}{each.formula}{state}")
    middle = len(worded.reaction.reactants)
    return f"{' + '.join(terms[:middle])}{random.choice(ARROWS)}{' + '.join(terms[middle:])}"


def _states(formula: str) -> tuple[str, ...]:
    if formula in GASES:
        return ("(g)",)
    return ("(l)", "(l)", "(g)") if formula in ("H2O", "HOH", "Br2") else ("(s)", "(aq)")


def given_equation(random: Random) -> Sample:
    """Return one of the exercises for an equation."""
    kinds: Mapping[str, Callable[[Random], Sample | None]] = {
        "mass": _mass, "need": _need, "back": _back, "moles": _moles, "yield": _yield, "limiting": _limiting, "volume": _volume,
    }  # fmt: skip
    while True:
        found = random.choice(list(kinds.values()))(random)
        if found is not None:
            return found


def _given(random: Random) -> Given | None:
    worded = word_reaction(random, drawn(random), by_name=False)
    equation = _equation(random, worded, whole=random.random() < 0.6)
    if balanced(equation).status != "solved":
        return None
    middle = len(worded.reaction.reactants)
    return Given(worded, equation, random.randrange(middle), random.randrange(middle, len(worded.said)))


def _asked(random: Random, given: Given, section: str, slots: Mapping[str, str]) -> str:
    kept = [*given.equation.split(" "), *(each.text for each in given.worded.said)]
    return prompt(random, section, {"R": given.equation, **slots}, kept)


def _named(random: Random, each: Said) -> Said:
    """Return the same substance, sometimes by name."""
    known_ = substance(each.formula)
    if random.random() < 0.3 and known_.names and known_.formula == each.formula:
        return said(random, known_, by_name=True)
    return each


def _start(random: Random, given: Given, *parts: Said) -> Working:
    working = Working(random)
    known(working, parts)
    working.balanced(given.equation)
    return working


def _number(random: Random) -> str:
    return random.choice(
        (str(random.randint(1, 500)), f"{random.randint(1, 999) / 10:g}", f"{random.randint(100, 9_999) / 100:g}")
    )


def _ratio(given: Given, wanted: int, own: int) -> str:
    return f"{decimal(given.worded.counts[wanted])}/{decimal(given.worded.counts[own])}"


def _mass(random: Random) -> Sample | None:
    given = _given(random)
    return None if given is None else _by_mass(random, given, "given mass mass", given.one, given.other)


def _back(random: Random) -> Sample | None:
    given = _given(random)
    return None if given is None else _by_mass(random, given, "given mass back", given.other, given.one)


def _need(random: Random) -> Sample | None:
    given = _given(random)
    if given is None or len(given.worded.reaction.reactants) < 2:
        return None
    wanted = next(at for at in range(len(given.worded.reaction.reactants)) if at != given.one)
    return _by_mass(random, given, "given mass need", given.one, wanted)


def _by_mass(random: Random, given: Given, section: str, source: int, wanted: int) -> Sample:
    own, made = _named(random, given.worded.said[source]), _named(random, given.worded.said[wanted])
    grams = _number(random)
    text = _asked(random, given, section, {"A": own.text, "X": made.text, "M": grams})
    working = _start(random, given, own, made)
    first, second = working.mass(own.formula), working.mass(made.formula)
    number = working.calculated(f"{grams}/{first}*{_ratio(given, wanted, source)}*{second}")
    return working.sample("equation", text, number, "g")


def _moles(random: Random) -> Sample | None:
    given = _given(random)
    if given is None:
        return None
    source, wanted = random.sample(range(len(given.worded.said)), 2)
    own, made = _named(random, given.worded.said[source]), _named(random, given.worded.said[wanted])
    moles = _number(random)
    text = _asked(random, given, "given moles", {"A": own.text, "X": made.text, "N": moles})
    working = _start(random, given, own, made)
    return working.sample("equation", text, working.calculated(f"{moles}*{_ratio(given, wanted, source)}"), "mol")


def _yield(random: Random) -> Sample | None:
    given = _given(random)
    if given is None:
        return None
    own, made = given.worded.said[given.one], given.worded.said[given.other]
    grams = _number(random)
    trial = Working(random)
    theory = Fraction(
        trial.calculated(
            f"{grams}/{trial.mass(own.formula)}*{_ratio(given, given.other, given.one)}*{trial.mass(made.formula)}"
        )
    )
    got = f"{float(theory) * random.uniform(0.4, 0.99):.4g}"
    if "e" in got:
        return None
    text = _asked(random, given, "given yield", {"A": own.text, "X": made.text, "M": grams, "Y": got})
    working = _start(random, given)
    first, second = working.mass(own.formula), working.mass(made.formula)
    theoretical = working.calculated(f"{grams}/{first}*{_ratio(given, given.other, given.one)}*{second}")
    return working.sample("equation", text, working.calculated(f"round({got}/{theoretical}*100, 2)"), "%")


def _limiting(random: Random) -> Sample | None:
    given = _given(random)
    if given is None or len(given.worded.reaction.reactants) != 2:
        return None
    said_, made = given.worded.said, given.worded.said[given.other]
    grams = _number(random), _number(random)
    slots = {"A": said_[0].text, "B": said_[1].text, "X": made.text, "M": grams[0], "K": grams[1]}
    text = _asked(random, given, "given limiting", slots)
    working = _start(random, given)
    masses = [working.mass(each.formula) for each in (said_[0], said_[1], made)]
    ratios = [f"{grams[at]}/{masses[at]}*{_ratio(given, given.other, at)}" for at in (0, 1)]
    number = working.calculated(f"min({', '.join(ratios)})*{masses[2]}")
    return working.sample("equation", text, number, "g")


def _volume(random: Random) -> Sample | None:
    given = _given(random)
    if given is None or given.worded.reaction.kind not in DISSOLVED or len(given.worded.reaction.reactants) != 2:
        return None
    wanted, own = random.sample((0, 1), 2)
    strong = f"{random.randint(50, 3_000) / 1000:g}", f"{random.randint(50, 3_000) / 1000:g}"
    volume = _number(random)
    slots = {
        "A": given.worded.said[wanted].text,
        "B": given.worded.said[own].text,
        "C": strong[0],
        "D": strong[1],
        "V": volume,
    }
    text = _asked(random, given, "given volume", slots)
    working = _start(random, given)
    number = working.calculated(f"{volume}*{strong[1]}*{_ratio(given, wanted, own)}/{strong[0]}")
    return working.sample("equation", text, number, "mL")


def solution(random: Random) -> Sample:
    """Ask for a molarity, or the content of a solution."""
    section = random.choice(("molarity", "molarity mass", "solution moles", "solution mass"))
    each = said(random, usual(random), by_name=random.random() < 0.5)
    volume = random.choice(("0.25", "0.5", "1.5", "2", "3", "0.75", "0.1", "5", f"{random.randint(5, 3_000) / 1000:g}"))
    slots = {"X": each.text, "V": volume, "N": f"{random.randint(1, 400) / 100:g}", "M": _number(random)}
    slots["C"] = f"{random.randint(1, 600) / 100:g}"
    text = prompt(random, section, slots, [each.text, "M", "L"])
    working = Working(random)
    if section == "molarity":
        return working.sample("solution", text, working.calculated(f"{slots['N']}/{volume}"), "mol/L")
    if section == "solution moles":
        return working.sample("solution", text, working.calculated(f"{volume}*{slots['C']}"), "mol")
    known(working, [each])
    mass = working.mass(each.formula)
    if section == "molarity mass":
        return working.sample("solution", text, working.calculated(f"{slots['M']}/{mass}/{volume}"), "mol/L")
    return working.sample("solution", text, working.calculated(f"{volume}*{slots['C']}*{mass}"), "g")


def arithmetic(random: Random) -> Sample:
    """Ask for bare arithmetic, copied to the calculator."""
    expression = _expression(random, random.choice((1, 1, 2, 2, 3)))
    text = prompt(random, "arithmetic", {"R": expression}, expression.split(" "))
    working = Working(random)
    return working.sample("arithmetic", text, working.calculated(expression))


def _expression(random: Random, depth: int) -> str:
    gap = random.choice(("", "", " "))

    def number() -> str:
        return random.choice(
            (
                str(random.randint(1, 20)),
                str(random.randint(1, 1_000)),
                f"{random.randint(1, 999) / 100:g}",
                f".{random.randint(1, 99):02}",
            )
        )

    text = number()
    for _ in range(depth):
        sign = random.choice("+-*/*/")
        piece = number()
        if random.random() < 0.25:
            piece = f"({number()}{gap}{random.choice('+-*/')}{number()})"
        # No divisor is a bracket that could be 0.
        sign = "*" if sign == "/" and piece.startswith("(") else sign
        text = (
            f"{text}{gap}{sign}{gap}{piece}"
            if random.random() < 0.8 or text.isdigit()
            else f"({text}){gap}{sign}{gap}{piece}"
        )
    return text
