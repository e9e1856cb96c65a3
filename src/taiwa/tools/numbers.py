"""Exact numbers with a bound on their size, and how they are read and written in every script."""

import re
import unicodedata
from decimal import Context, Decimal, Inexact
from fractions import Fraction

from taiwa.kernel.errors import ToolError

__all__ = [
    "MAX_BITS",
    "NEAR_DIGITS",
    "RAISED",
    "bits",
    "bounded",
    "halves_to_slashes",
    "myriads_to_digits",
    "narrow",
    "rounded",
    "spell",
    "spell_near",
    "too_large",
]

MAX_BITS = 4_096
EXACT_DIGITS = 15
ROUNDED_DIGITS = 6
NEAR_DIGITS = 50
LONGEST_MYRIADS = 20
"""Characters; what is longer would not fit the digits of a Decimal."""
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
# Full-width forms become plain ones. Not by NFKC, which would quietly make 32 of "3²" and 31/2 of "3½".
WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xFFE5: 0xA5, 0xA0: 0x20}
MYRIADS = re.compile(
    r"(?<![0-9.,])(?:(?P<億>[0-9]+(?:\.[0-9]+)?)[億亿])?(?:(?P<万>[0-9]+(?:\.[0-9]+)?)[万萬])?"
    r"(?:(?P<千>[0-9](?:\.[0-9]+)?)千)?(?P<rest>(?<=[万萬])[0-9]{3,4}|(?<=千)[0-9]{3})?(?![0-9.,億亿万萬千百十兆])"
)
SIZES = {"億": 10**8, "万": 10**4, "千": 10**3, "rest": 1}
VULGAR = re.compile(r"([0-9]*)([¼½¾⅐-⅞])")


def narrow(text: str) -> str:
    """Make the full-width letters, digits and signs of Japanese and Chinese texts plain.

    >>> narrow("（１２＋３）％")
    '(12+3)%'
    """
    return text.translate(WIDE)


def halves_to_slashes(text: str) -> str:
    """Write vulgar fractions with a slash; one that follows a whole number is added to it.

    >>> halves_to_slashes("¾"), halves_to_slashes("3½")
    ('3/4', '7/2')
    """
    return VULGAR.sub(lambda found: str(_vulgar(found[1], found[2])), text)


def _vulgar(whole: str, part: str) -> Fraction:
    return Fraction(int(whole or "0")) + Fraction(unicodedata.normalize("NFKC", part).replace("⁄", "/"))


def myriads_to_digits(text: str) -> str:
    """Write the 億, 万 and 千 of Japanese and Chinese out; 兆 is left, which is a million in one and a billion in the other.

    >>> myriads_to_digits("1億2000万円 ÷ 3千")
    '120000000円 ÷ 3000'
    """
    return MYRIADS.sub(_digits, text)


def _digits(found: re.Match[str]) -> str:
    parts = [(SIZES[name], part) for name, part in found.groupdict().items() if part is not None]
    if not parts or len(found[0]) > LONGEST_MYRIADS:
        return found[0]
    return f"{sum((Decimal(part) * size for size, part in parts), Decimal(0)).normalize():f}"


def bits(number: Fraction) -> int:
    """The size of a number: the bits of its larger half."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def bounded(number: Fraction) -> Fraction:
    """Let a number pass.

    Raises:
        ToolError: `too_large`, it has more than 4,096 bits.
    """
    if bits(number) > MAX_BITS:
        raise too_large()
    return number


def too_large() -> ToolError:
    """What is said of a number that is too large."""
    return ToolError("a number on the way is too large", code="too_large", hint=f"at most {MAX_BITS:,} bits")


def rounded(number: Fraction, digits: int) -> Decimal:
    """The nearest decimal number of so many significant digits."""
    return Context(prec=digits).divide(Decimal(number.numerator), Decimal(number.denominator))


def spell(number: Fraction) -> str:
    """Write a number as a person would: exactly where 15 digits are enough, else rounded to six.

    >>> spell(Fraction(1, 8)), spell(Fraction(2, 3)), spell(Fraction(2) ** 100)
    ('0.125', '0.666667', '1.26765e30')
    """
    parts = Decimal(number.numerator), Decimal(number.denominator)
    exact = Context(prec=EXACT_DIGITS)
    decimal = exact.divide(*parts)
    if exact.flags[Inexact]:
        decimal = Context(prec=ROUNDED_DIGITS).divide(*parts)
    return _plain(decimal, ROUNDED_DIGITS, EXACT_DIGITS)


def spell_near(number: Fraction) -> str:
    """Write a number with 50 digits, the last one rounded."""
    return _plain(rounded(number, NEAR_DIGITS), NEAR_DIGITS, NEAR_DIGITS)


def _plain(decimal: Decimal, zeros: int, digits: int) -> str:
    """Digits as they are where they are few, else with an exponent."""
    decimal = Context(prec=NEAR_DIGITS).normalize(decimal)
    if -zeros <= decimal.adjusted() < digits:
        return f"{decimal:f}"
    return f"{decimal:e}".replace("e+", "e")
