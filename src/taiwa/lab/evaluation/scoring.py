"""Whether an answer is right: the same text, as papers count, or the same number within a tolerance."""

import re
from fractions import Fraction

__all__ = ["TOLERANCE", "exact", "near", "number"]

TOLERANCE = Fraction(1, 200)
"""Half a percent: what rounding and other tables of weights make."""
NUMBER = re.compile(
    r"(?P<sign>[-+−]?)[$¥€£]?(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{0,40})(?:\.(?P<part>[0-9]{0,40}))?"
    r"(?:[eE](?P<power>[-+]?[0-9]{1,3}))?(?:/(?P<below>[0-9]{1,40}))?%?"
)
NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


def exact(answer: str, gold: str) -> bool:
    """Whether two answers are the same text."""
    return bool(answer) and answer == gold


def near(answer: str, gold: str, tolerance: Fraction = TOLERANCE) -> bool:
    """Whether two answers are the same number within a share of the right one; what is no number must be the same words.

    >>> near("25.9", "25.93"), near("26.5", "25.93"), near("1,200", "1200.0")
    (True, False, True)
    """
    said, right = number(answer), number(gold)
    if said is None or right is None:
        return bool(answer.strip()) and answer.split() == gold.split()
    return abs(said - right) <= tolerance * abs(right)


def number(text: str) -> Fraction | None:
    """Read a number as people write it; None for anything else.

    >>> number("1,225.50"), number("3/4"), number("many")
    (Fraction(2451, 2), Fraction(3, 4), None)
    """
    found = NUMBER.fullmatch(text.strip().translate(NARROW).replace(" ", ""))
    if found is None or not (found["whole"] or found["part"]):
        return None
    digits, part = found["whole"].replace(",", ""), found["part"] or ""
    below = int(found["below"] or 1)
    if not below:
        return None
    read = Fraction(int(f"{digits}{part}"), 10 ** len(part)) * Fraction(10) ** int(found["power"] or 0) / below
    return -read if found["sign"] in ("-", "−") else read
