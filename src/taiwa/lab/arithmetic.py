"""Calculations that models had done, beside what our calculator gives."""

import re
from fractions import Fraction
from typing import Literal, TypeAlias

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import value
from taiwa.tools.calculator import calculator

__all__ = ["Agreement", "Sum", "recorded_sum"]

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
    exact, written, decimals = Fraction(got), Fraction(number), len(number.partition(".")[2])
    if exact == written:
        return Sum(expression, recorded, got, "equal")
    last = Fraction(1, 2 * 10**decimals) if decimals >= LEAST_DECIMALS else Fraction(0)
    close = abs(exact - written) <= max(abs(exact) * FLOATS, last)
    return Sum(expression, recorded, got, "rounded" if close else "differs")
