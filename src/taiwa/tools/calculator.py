"""Exact arithmetic in the spellings that models use: a bounded Pratt parser over fractions.

Nothing is evaluated as code. Every bound is checked before the work that it bounds, so no text takes long.
"""

import re
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import NoReturn

from taiwa.kernel.errors import ToolError
from taiwa.kernel.values import ToolResult
from taiwa.tools.tool import tool

__all__ = ["calculate", "calculator", "spell"]

MAX_CHARS = 1_000
MAX_DEPTH = 60
MAX_BITS = 4_096
EXACT_DIGITS = 15
ROUNDED_DIGITS = 6
TOKEN = re.compile(
    r"\s*(?:(?P<number>[$€£]?(?!0[xX])(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?"
    r"(?![\d.,]|[^\W\dxX]))|(?P<sign>\*\*|[-+*/^%()xX])|(?P<other>\S))"
)
# Full-width forms become plain ones. Not by NFKC, which would quietly make 32 of "3²" and 31/2 of "3½".
WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
SIGNS = {"×": "*", "·": "*", "⋅": "*", "∙": "*", "✕": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-"}
SPELLINGS = WIDE | str.maketrans(SIGNS)
BINDS = {"+": 1, "-": 1, "*": 2, "x": 2, "/": 2, "^": 4}
NEGATION = 3
HINT = "numbers with + - * / ^ % and parentheses; the decimal point is '.', and thousands are written 1,000"


@tool
def calculator(expression: str) -> ToolResult:
    """Calculate exactly with numbers, + - * / ^ % and parentheses; % after a number means hundredths."""
    number = calculate(expression)
    return ToolResult(spell(number), value=str(number))


def calculate(text: str) -> Fraction:
    """Work out an expression exactly. `^` and `**` are powers with whole exponents; one final `=` is ignored.

    >>> calculate("1,000 × 5% + 2^-1")
    Fraction(101, 2)

    Raises:
        ToolError: it is no such expression, divides by zero, or has a number of more than 4,096 bits on the way.
    """
    if len(text) > MAX_CHARS:
        raise ToolError(f"the expression has {len(text):,} characters", code="too_long", hint=f"at most {MAX_CHARS:,}")
    return _Parser(text.translate(SPELLINGS).strip().removesuffix("=")).whole()


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
    decimal = decimal.normalize()
    if -ROUNDED_DIGITS <= decimal.adjusted() < EXACT_DIGITS:
        return f"{decimal:f}"
    return f"{decimal:e}".replace("e+", "e")


@dataclass(slots=True)
class _Parser:
    """Top-down operator precedence (Pratt 1973): each operator binds as strongly as `BINDS` says."""

    text: str
    at: int = field(default=0, init=False)
    depth: int = field(default=0, init=False)
    kind: str = field(default="", init=False)
    word: str = field(default="", init=False)

    def whole(self) -> Fraction:
        self.step()
        result = self.expression(0)
        if self.kind:
            self.fail("an operator or the end")
        return result

    def step(self) -> None:
        found = TOKEN.match(self.text, self.at)
        self.kind = (found.lastgroup or "") if found else ""
        self.word = found[self.kind].lower().replace("**", "^") if found else ""
        self.at = found.end() if found else len(self.text)

    def fail(self, expected: str) -> NoReturn:
        got = f"{self.word[:20]!r} (character {self.at})" if self.kind else "the end"
        raise ToolError(f"expected {expected}, got {got}", code="syntax", hint=HINT)

    def sign(self, *wanted: str) -> bool:
        return self.kind == "sign" and self.word in wanted

    def expression(self, binding: int) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError("the expression is nested too deep", code="too_deep", hint=f"at most {MAX_DEPTH} levels")
        left = self.operand()
        while self.sign("%", *(sign for sign, strength in BINDS.items() if strength > binding)):
            sign = self.word
            self.step()
            if sign == "%":
                left = self.hundredths(left)
            else:
                # What follows a power may be a power again, which comes first: 2^3^2 is 2^9.
                left = _apply(sign, left, self.expression(BINDS[sign] - (sign == "^")))
        self.depth -= 1
        return left

    def operand(self) -> Fraction:
        if self.kind == "number":
            number = _bounded(Fraction(self.word.lstrip("$€£").replace(",", "")))
            self.step()
            return number
        if not self.sign("(", "+", "-"):
            self.fail("a number")
        sign = self.word
        self.step()
        if sign != "(":
            inner = self.expression(NEGATION)
            return -inner if sign == "-" else inner
        inner = self.expression(0)
        if not self.sign(")"):
            self.fail("an operator or ')'")
        self.step()
        return inner

    def hundredths(self, number: Fraction) -> Fraction:
        if self.kind == "number" or self.sign("("):
            raise ToolError(
                "% means hundredths, so no number can follow it", code="syntax", hint="17 - 5*3 for a remainder"
            )
        return number / 100


def _apply(sign: str, left: Fraction, right: Fraction) -> Fraction:
    if sign == "^":
        return _power(left, right)
    if sign == "/":
        if not right:
            raise ToolError("division by zero", code="division_by_zero")
        return _bounded(left / right)
    if sign in ("*", "x"):
        return _bounded(left * right)
    return _bounded(left + right if sign == "+" else left - right)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """Raise to a power of which the size is known before it is computed."""
    if exponent.denominator != 1:
        raise ToolError("the exponent must be a whole number", code="exponent")
    if not base and exponent < 0:
        raise ToolError("division by zero", code="division_by_zero")
    if base not in (-1, 0, 1) and abs(exponent.numerator) * (_bits(base) - 1) > MAX_BITS:
        raise _too_large()
    return _bounded(base**exponent.numerator)


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _bounded(number: Fraction) -> Fraction:
    if _bits(number) > MAX_BITS:
        raise _too_large()
    return number


def _too_large() -> ToolError:
    return ToolError("a number on the way is too large", code="too_large", hint=f"at most {MAX_BITS:,} bits")
