"""Answers to quantity problems: a short sentence, a call with the real calculator's result, and the final line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TypeAlias

from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.units import unit_conversion
from training.builtin.noise import noisy
from training.builtin.quantities.telling import Ask, Slots, Teller
from training.builtin.samples import Draw, Sample, Span

__all__ = ["CONSTANTS", "NUMBER", "Maker", "Problem", "draw_of", "percent", "problem", "solved", "value"]

CONSTANTS: frozenset[str] = frozenset(
    """0.001 0.01 0.1 0.25 0.5 0.75 1 1.5 1.8 2 3 4 5 6 7 8 9 9.8 10 12 14 16 18 20 22.4 24 30 32 36 40 48 50 52 60 90 100 180
    273.15 360 365 1000 1440 3600 10000 100000 1000000""".split()
)
"""Constants that a call may use although the question does not state them: 100, 60, 12, 365, 5/18, …"""
RESULT_WEIGHT = 0.2
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
BEFORE = re.compile(r"@([1-9])")


@dataclass(frozen=True, slots=True)
class Problem:
    """A question and its solution.

    `steps` are pairs of sentence and expression; `@1` stands for the result of the first step. The last result is the answer, and
    `unit` its unit. Words in `keep` are never misspelt.
    """

    question: str
    steps: tuple[tuple[str, str], ...]
    unit: str = ""
    keep: tuple[str, ...] = ()


Maker: TypeAlias = Callable[[Teller], Problem]


def problem(teller: Teller, ask: Ask, slots: Slots, work: tuple[str, str], unit: str = "") -> Problem:
    """Return a problem with one step, whose unit need not be copied from the question."""
    return Problem(teller.ask(ask, slots), (work,), unit)


def solved(steps: tuple[tuple[str, str], ...], unit: str) -> tuple[Span, ...]:
    """Build the answer with tool results: `3 gallons to L` goes to the converter, a formula to the molar mass tool."""
    spans: list[Span] = []
    results: list[str] = []
    opening = ""
    for says, expression in steps:
        given = BEFORE.sub(lambda found: results[int(found[1]) - 1], expression)
        tool = unit_conversion if " to " in given else molar_mass if given[0].isupper() else calculator
        result = tool(given).text
        said = f"{opening}{says}" + "\n" * bool(says)
        spans += [Span(f"{said}<<{tool.spec.name}: {given}>>"), Span(f" {result}", RESULT_WEIGHT)]
        results.append(result.partition(" ")[0])
        opening = "\n"
    spans.append(Span(f"\nTherefore, the answer is {results[-1]}{' ' * bool(unit)}{unit}."))
    return tuple(spans)


def percent(expression: str) -> str:
    """Return a percentage, which is given with two decimals."""
    return f"round({expression}, 2)"


def draw_of(kind: str, maker: Maker, level: float = 0.1) -> Draw:
    """Draw a sample of a kind, with typing noise."""

    def draw(random: Random) -> Sample:
        teller = Teller(random)
        made = maker(teller)
        question = noisy(random, made.question, level * random.choice((0, 0.5, 1, 1, 2)), made.keep)
        return Sample("solve", kind, question, solved(made.steps, made.unit))

    return draw


def value(expression: str) -> Fraction:
    """Evaluate an expression exactly with the calculator."""
    return Fraction(str(calculator(expression).value))
