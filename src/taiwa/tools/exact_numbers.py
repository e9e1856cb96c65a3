"""Exact numbers of bounded size: notation, roots, powers, logarithms."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from math import floor, isqrt
from types import MappingProxyType

from taiwa.kernel.errors import ToolError

MAX_BITS = 4_096

EXACT_DIGITS = 15

ROUNDED_DIGITS = 6

NEAR_DIGITS = 50

MAX_MYRIADS_CHARS = 20
"""A longer number would not fit the digits of a Decimal."""

RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
# Full-width forms become ASCII. NFKC is not used: it would silently turn "3²" into 32 and "3½" into 31/2.
WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xFFE5: 0xA5, 0xA0: 0x20}

MYRIADS = re.compile(
    r"(?<![0-9.,])(?:(?P<億>[0-9]+(?:\.[0-9]+)?)[億亿])?(?:(?P<万>[0-9]+(?:\.[0-9]+)?)[万萬])?"
    r"(?:(?P<千>[0-9](?:\.[0-9]+)?)千)?(?P<rest>(?<=[万萬])[0-9]{3,4}|(?<=千)[0-9]{3})?(?![0-9.,億亿万萬千百十兆])"
)

SIZES = {"億": 10**8, "万": 10**4, "千": 10**3, "rest": 1}

VULGAR = re.compile(r"([0-9]*)([¼½¾⅐-⅞])")


def narrow(text: str) -> str:
    """Replace the full-width letters, digits and signs of Japanese and Chinese texts by ASCII.

    >>> narrow("（１２＋３）％")
    '(12+3)%'
    """
    return text.translate(WIDE)


def halves_to_slashes(text: str) -> str:
    """Write vulgar fractions with a slash; one that follows a whole number is added to it.

    >>> halves_to_slashes("¾"), halves_to_slashes("3½")
    ('3/4', '7/2')
    """
    return VULGAR.sub(lambda match: str(_vulgar(match[1], match[2])), text)


def _vulgar(whole: str, part: str) -> Fraction:
    return Fraction(int(whole or "0")) + Fraction(unicodedata.normalize("NFKC", part).replace("⁄", "/"))


def myriads_to_digits(text: str) -> str:
    """Write out the 億, 万 and 千 of Japanese and Chinese; 兆 is left, because its value differs between the two.

    >>> myriads_to_digits("1億2000万円 ÷ 3千")
    '120000000円 ÷ 3000'
    """
    return MYRIADS.sub(_digits, text)


def _digits(match: re.Match[str]) -> str:
    parts = [(SIZES[name], part) for name, part in match.groupdict().items() if part is not None]
    if not parts or len(match[0]) > MAX_MYRIADS_CHARS:
        return match[0]
    return f"{sum((Decimal(part) * size for size, part in parts), Decimal(0)).normalize():f}"


def bits(number: Fraction) -> int:
    """Return the bits of the numerator or the denominator, whichever has more."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def bounded(number: Fraction) -> Fraction:
    """Return the number.

    Raises:
        ToolError: `too_large`, the number has more than 4,096 bits.
    """
    if bits(number) > MAX_BITS:
        raise too_large()
    return number


def too_large() -> ToolError:
    """Return the error for a number of more than 4,096 bits."""
    return ToolError("an intermediate result is too large", code="too_large", hint=f"at most {MAX_BITS:,} bits")


def rounded(number: Fraction, digits: int) -> Decimal:
    """Round to a number of significant digits."""
    return Context(prec=digits).divide(Decimal(number.numerator), Decimal(number.denominator))


def spell(number: Fraction) -> str:
    """Write a number: exactly if 15 digits are enough, else rounded to six.

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
    """Write few digits in full, others with an exponent."""
    decimal = Context(prec=NEAR_DIGITS).normalize(decimal)
    if -zeros <= decimal.adjusted() < digits:
        return f"{decimal:f}"
    return f"{decimal:e}".replace("e+", "e")


GUARD = 20

MAX_EXPONENT = 2_600
"""e to this power has about 3,750 bits."""

MAX_ROOT = 64

MAX_DECIMALS = 100
"""Decimals, or zeros before the point, to which a number may be rounded."""

CLOSE_TO_ONE = 30
"""A number that agrees with 1 in this many decimals has its logarithm from three terms of the series."""

PI = Fraction("3.14159265358979323846264338327950288419716939937510")


def near(number: Fraction | Decimal) -> Fraction:
    """Round to 50 significant digits."""
    exact = number if isinstance(number, Fraction) else Fraction(number)
    return Fraction(rounded(exact, NEAR_DIGITS))


def power(base: Fraction, exponent: Fraction) -> tuple[Fraction, bool]:
    """Return the power and whether it is exact; its size is checked before it is computed."""
    if not base and exponent < 0:
        raise ToolError("division by zero", code="division_by_zero")
    if base in (0, 1) and exponent:
        return base, True
    if exponent.denominator == 1:
        return _whole_power(base, exponent.numerator), True
    if base < 0:
        raise ToolError(
            "a negative number has no real power of that exponent", code="domain", hint="whole exponents are allowed"
        )
    root = _exact_root(base, exponent.denominator)
    if root is not None:
        return _whole_power(root, exponent.numerator), True
    context = Context(prec=NEAR_DIGITS + 2 * GUARD)
    grown = context.multiply(_decimal(exponent, context), _ln(base, NEAR_DIGITS + 2 * GUARD))
    if abs(grown) > MAX_EXPONENT:
        raise too_large()
    return near(context.exp(grown)), False


def _whole_power(base: Fraction, exponent: int) -> Fraction:
    if base not in (-1, 0, 1) and abs(exponent) * (bits(base) - 1) > MAX_BITS:
        raise too_large()
    if base == -1:
        exponent %= 2
    return bounded(base**exponent)


def _exact_root(number: Fraction, degree: int) -> Fraction | None:
    if degree > MAX_ROOT:
        return None
    root = Fraction(_whole_root(number.numerator, degree), _whole_root(number.denominator, degree))
    return root if root**degree == number else None


def _whole_root(number: int, degree: int) -> int:
    """Return the integer root, rounded down, by Newton's method from above."""
    if number < 2:
        return number
    guess = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + number // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def _sqrt(number: Fraction) -> tuple[Fraction, bool]:
    if number < 0:
        raise ToolError("a negative number has no real square root", code="domain")
    root = Fraction(isqrt(number.numerator), isqrt(number.denominator))
    if root * root == number:
        return root, True
    context = Context(prec=NEAR_DIGITS + GUARD)
    return near(context.sqrt(_decimal(number, context))), False


def _logarithm(number: Fraction) -> tuple[Fraction, bool]:
    return near(_ln(number, NEAR_DIGITS + GUARD)), number == 1


def _log10(number: Fraction) -> tuple[Fraction, bool]:
    exponent = len(str(number.numerator)) - len(str(number.denominator))
    if number > 0 and Fraction(10) ** exponent == number:
        return Fraction(exponent), True
    context = Context(prec=NEAR_DIGITS + GUARD)
    return near(context.divide(_ln(number, NEAR_DIGITS + GUARD), context.ln(Decimal(10)))), False


def _exp(number: Fraction) -> tuple[Fraction, bool]:
    if abs(number) > MAX_EXPONENT:
        raise too_large()
    context = Context(prec=NEAR_DIGITS + GUARD)
    return near(context.exp(_decimal(number, context))), not number


def _ln(number: Fraction, digits: int) -> Decimal:
    off = number - 1
    context = Context(prec=digits + CLOSE_TO_ONE)
    if off and abs(off) < Fraction(1, 10**CLOSE_TO_ONE):
        return _decimal(off - off * off / 2 + off**3 / 3, context)
    if number <= 0:
        raise ToolError("only a number above zero has a logarithm", code="domain")
    return context.ln(_decimal(number, context))


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


FUNCTIONS: Mapping[str, Callable[[Fraction], tuple[Fraction, bool]]] = MappingProxyType(
    {"sqrt": _sqrt, "√": _sqrt, "ln": _logarithm, "log10": _log10, "exp": _exp}
)
"""Each returns its result and whether it is exact."""


def _round(numbers: Sequence[Fraction]) -> Fraction:
    """Round to a number of decimals (0 by default), halves away from zero."""
    if len(numbers) > 2:
        raise ToolError("round takes a number and a number of decimals", code="arguments", hint="round(2.345, 2)")
    digits = numbers[1] if len(numbers) > 1 else Fraction(0)
    if digits.denominator != 1 or abs(digits) > MAX_DECIMALS:
        raise ToolError("the decimals of round must be a whole number", code="domain", hint=f"at most {MAX_DECIMALS}")
    scale = Fraction(10) ** digits.numerator
    whole = floor(abs(numbers[0]) * scale + Fraction(1, 2))
    return (whole if numbers[0] > 0 else -whole) / scale


SEVERAL: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = MappingProxyType(
    {"min": min, "max": max, "round": _round}
)
"""Exact functions of several numbers."""
