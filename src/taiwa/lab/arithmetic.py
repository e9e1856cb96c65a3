"""Calculations that models had done, beside what our calculator gives."""

import re
from fractions import Fraction
from typing import Literal, TypeAlias

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import value
from taiwa.tools.calculator import calculator

__all__ = ["Agreement", "Sum", "is_rounded", "recorded_sum"]

Agreement: TypeAlias = Literal["equal", "rounded", "differs", "refused", "unreadable"]
"""Our value and the recorded one: the same · the same but for its last digits · another · we refuse · the record is no number."""
NUMBER = re.compile(r"[$€£]?\s*(?P<number>[-+]?(?:[0-9][0-9,]{0,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))\s*%?\.?\Z")
FLOATS = Fraction(1, 10**6)
LEAST_DECIMALS = 2


@value
class Sum:
    """One calculation: `recorded` is what stands there, `got` our exact value, or why there is none."""

    expression: str
    recorded: str
    got: str
    agreement: Agreement


def recorded_sum(expression: str, recorded: str) -> Sum:
    """Do a recorded calculation again.

    >>> recorded_sum("10*(2/3)", "8").agreement, recorded_sum("2/3", "0.67").agreement, recorded_sum("2x", "4").agreement
    ('differs', 'rounded', 'refused')
    """
    try:
        got = str(calculator.call({"expression": expression}).value)
    except ToolError as error:
        return Sum(expression, recorded, error.message, "refused")
    found = NUMBER.match(recorded.strip())
    if found is None:
        return Sum(expression, recorded, got, "unreadable")
    number = found["number"].replace(",", "")
    exact = Fraction(got)
    if exact == Fraction(number):
        return Sum(expression, recorded, got, "equal")
    return Sum(expression, recorded, got, "rounded" if is_rounded(exact, number) else "differs")


def is_rounded(exact: Fraction, written: str) -> bool:
    """Whether a number was written down rightly: as a float, or rounded to the decimals that stand there, two at least.

    >>> is_rounded(Fraction(2, 3), "0.67"), is_rounded(Fraction(2, 3), "0.66"), is_rounded(Fraction(2, 3), "0.7")
    (True, False, False)
    """
    decimals = len(written.partition(".")[2]) if "e" not in written else 0
    last = Fraction(1, 2 * 10**decimals) if decimals >= LEAST_DECIMALS else Fraction(0)
    return abs(exact - Fraction(written)) <= max(abs(exact) * FLOATS, last)
