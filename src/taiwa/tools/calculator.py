"""The calculator as a tool: exact expressions, times of day and dates."""

import re
from fractions import Fraction

from taiwa.kernel.messages import ToolResult
from taiwa.tools.expressions import SEVERAL, parsed, spell, spell_near
from taiwa.tools.function_tool import FunctionTool, tool
from taiwa.tools.units import sum_of_times

TIME = re.compile(r"\d:\d\d|\d[時点](?!間)|\d{4}-\d\d-\d\d")
"""A time of day, or a date, unless it is a subtraction."""


@tool(isolated=False)  # bounded by construction
def calculator(expression: str) -> ToolResult:
    """Calculate with numbers, + - * / ^ % and parentheses, sqrt(), ln(), log10(), exp(), min(a, b), max(a, b), round(x, decimals) and pi.

    Exact but for roots, logarithms and exponentials, which are right to 50 digits. % after a number means hundredths.
    """
    if TIME.search(expression) and (found := sum_of_times(expression)) is not None:
        return found
    parser = parsed(expression)
    number = parser.result
    return ToolResult(spell(number), value=str(number) if parser.exact else spell_near(number))


def rounding_calculator(decimals: int) -> FunctionTool[..., ToolResult]:
    """Return the calculator with results rounded to a number of decimals, halves away from zero, as a model sees only those.

    MultiTool-CoT rounded to two.

    >>> rounding_calculator(2).call({"expression": "28/108*100"}).text
    '25.93'
    """
    return FunctionTool(_round_result, calculator.spec.name, {"decimals": decimals}, isolated=False)


def _round_result(expression: str, decimals: int) -> ToolResult:
    number = SEVERAL["round"]((parsed(expression).result, Fraction(decimals)))
    return ToolResult(spell(number), value=str(number))


_round_result.__doc__ = calculator.spec.description
