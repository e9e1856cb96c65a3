"""Equations that a model wrote out: each is a call of the calculator that it did not make."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from taiwa.flows.solve.rationale import CallBudget, ExecutedCall, RequestedCall, SolveLimits
from taiwa.kernel.effects import Program
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.text import without_thousands
from taiwa.kernel.wording import Wording

CALCULATOR = "calculator"
EQUATION = re.compile(
    r"(?<![\w.,:])(?P<left>\d[\d.,]*(?:(?: ?[*/×÷+] ?| - )\d[\d.,]*)+) ?= ?(?P<right>\d[\d,]*(?:\.\d+)?)(?![\d:%^*/×÷+]| [-*/×÷+=])"
)
AMBIGUOUS = re.compile(r",|\d\.\d{3}(?!\d)")
"""A comma or a point that may separate thousands, or decimals."""
OPERATORS = str.maketrans("×÷", "*/")
MOST = 8


def equations_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield both sides of the equations between plain numbers.

    >>> list(equations_in("4 rooms: 1,200 × 4 = 4,800 euro, 2:30 - 1:10 = 1:20, 1,5 * 2 = 3"))
    [('1200 * 4', '4800')]
    """
    for found in EQUATION.finditer(text):
        left, right = map(without_thousands, found.groups())
        if not AMBIGUOUS.search(f"{left} {right}"):
            yield left.translate(OPERATORS), right


def calculate_equations(
    text: str, tools: Sequence[ToolSpec], made: Sequence[ExecutedCall]
) -> Program[tuple[tuple[ExecutedCall, ...], tuple[str, ...]]]:
    """Let the calculator, if it is one of the tools, answer the equations of a reply that are no calls already; return all calls, and
    a warning of each equation that is wrong beyond rounding.
    """
    if not any(map(_is_calculator, tools)):
        return tuple(made), ()
    known, wrong = {call.input for call in made}, list[str]()
    equations = dict.fromkeys(each for each in equations_in(text) if each[0] not in known)
    calls = CallBudget(tools, SolveLimits())
    for left, right in [*equations][:MOST]:
        (done,) = yield from calls.execute([RequestedCall(CALCULATOR, left, {"expression": left})])
        if done is None:
            break
        place = Fraction(1, 2 * 10 ** len(right.partition(".")[2]))
        if not done.result.error and abs(Fraction(str(done.result.value)) - Fraction(right)) > place:
            result = done.result.text
            wrong.append(Wording("the answer has a wrong equation: {left} = {right}; it is {result}", left=left, right=right, result=result))  # fmt: skip
    return (*made, *calls.executed), tuple(wrong)


def _is_calculator(tool: ToolSpec) -> bool:
    """Whether a tool is the calculator, and not one of the user or of a server that is called so."""
    properties = tool.parameters.get("properties")
    is_named = tool.name == CALCULATOR and tool.trust == "trusted"
    return is_named and isinstance(properties, dict) and [*properties] == ["expression"]
