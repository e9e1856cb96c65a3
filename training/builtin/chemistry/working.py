"""Answers: text, calls of the real tools with their real results, and the final line."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Literal

from taiwa.flows.solve.tool_call_formats import sanitize_result
from taiwa.tools.calculator import calculate, calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.stoichiometry import stoichiometry
from training.builtin.samples import Sample, Span

__all__ = ["Working", "plain_number"]

OF_TOOLS = 0.2
"""The loss weight of a tool result, relative to the model's own text."""
Weights = Literal["iupac", "integer"]
ARGUMENTS: Mapping[str, str] = {"calculator": "expression", "stoichiometry": "equation", "molar_mass": "formula"}


class Working:
    """An answer under construction. Half of the answers use rounded atomic weights, a setting that the tool supports."""

    def __init__(self, random: Random) -> None:
        self._spans: list[Span] = []
        self._weights: Weights = random.choice(("iupac", "integer"))

    def say(self, text: str, weight: float = 1.0) -> None:
        """Append text."""
        if self._spans and self._spans[-1].weight == weight:
            text = self._spans.pop().text + text
        self._spans.append(Span(text, weight))

    def call(self, tool: str, written: str, weight: float = 1.0) -> str:
        """Append a tool call and return its result."""
        result = _asked(tool, written, self._weights)
        self.say(f"<<{tool}: {written}>>", weight)
        self.say(f" {result}", OF_TOOLS if weight else 0.0)
        self.say("\n")
        return result

    def calculated(self, expression: str) -> str:
        """Call the calculator and return its result."""
        return self.call("calculator", expression)

    def balanced(self, equation: str, weight: float = 1.0) -> str:
        """Return the balanced equation."""
        return self.call("stoichiometry", equation, weight)

    def mass(self, formula: str) -> str:
        """Return the molar mass without its unit."""
        return self.call("molar_mass", formula).removesuffix(" g/mol")

    def answer(self, number: str, unit: str = "") -> tuple[Span, ...]:
        """Append the final line and return the segments of the answer."""
        self.say(f"Therefore, the answer is {number}{' ' if unit else ''}{unit}.")
        return tuple(self._spans)

    def sample(self, kind: str, prompt: str, number: str, unit: str = "") -> Sample:
        """Build the sample."""
        return Sample("solve", kind, prompt, self.answer(number, unit))


@lru_cache(20_000)
def _asked(tool: str, written: str, weights: Weights) -> str:
    if tool == "calculator":
        return sanitize_result(calculator(written).text)
    if tool == "stoichiometry":
        return sanitize_result(stoichiometry(written).text)
    return sanitize_result(molar_mass(written, weights).text)


def plain_number(expression: str) -> Fraction:
    """Evaluate an expression exactly."""
    return calculate(expression)
