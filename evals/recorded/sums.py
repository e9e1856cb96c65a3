"""Calculations recorded in texts of models, repeated with the calculator."""

import re
from fractions import Fraction
from typing import Literal, TypeAlias

from evals.tools import is_rounded
from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import value
from taiwa.tools.calculator import calculator

__all__ = ["Agreement", "RecordedSum", "check_recorded_sum"]

Agreement: TypeAlias = Literal["equal", "rounded", "differs", "refused", "unreadable"]
"""Our value and the recorded one: equal, equal but for rounding, different, refused by us, or not a recorded number."""
RECORDED_NUMBER = re.compile(
    r"[$€£]?\s*(?P<number>[-+]?(?:[0-9][0-9,]{0,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))\s*%?\.?\Z"
)


@value
class RecordedSum:
    """One calculation: the recorded result, and our exact value or error in `got`."""

    expression: str
    recorded: str
    got: str
    agreement: Agreement


def check_recorded_sum(expression: str, recorded: str) -> RecordedSum:
    """Repeat a recorded calculation.

    >>> check_recorded_sum("10*(2/3)", "8").agreement, check_recorded_sum("2/3", "0.67").agreement, check_recorded_sum("2x", "4").agreement
    ('differs', 'rounded', 'refused')
    """
    try:
        got = str(calculator.call({"expression": expression}).value)
    except ToolError as error:
        return RecordedSum(expression, recorded, error.message, "refused")
    found = RECORDED_NUMBER.match(recorded.strip())
    if found is None:
        return RecordedSum(expression, recorded, got, "unreadable")
    number = found["number"].replace(",", "")
    exact = Fraction(got)
    if exact == Fraction(number):
        return RecordedSum(expression, recorded, got, "equal")
    return RecordedSum(expression, recorded, got, "rounded" if is_rounded(exact, number) else "differs")
