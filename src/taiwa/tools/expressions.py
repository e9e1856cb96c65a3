"""Exact expressions, their numbers of bounded size (notation, roots, powers, logarithms), and the unit words that may follow them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from math import floor, isqrt
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

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
    """Write out the 億, 万 and 千 of Japanese and Chinese; 兆 is left, because its value differs between the languages.

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
    return _spelled(decimal, ROUNDED_DIGITS, EXACT_DIGITS)


def spell_near(number: Fraction) -> str:
    """Write a number with 50 digits, the last one rounded."""
    return _spelled(rounded(number, NEAR_DIGITS), NEAR_DIGITS, NEAR_DIGITS)


def _spelled(decimal: Decimal, zeros: int, digits: int) -> str:
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
"""Maximum number of decimals, or of zeros before the point, to round to."""

CLOSE_TO_ONE = 30
"""For a number that agrees with 1 in this many decimals, three terms of the series give the logarithm."""

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
    # Powers of ten are exact; everything else is approximated.
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
    {
        "sqrt": _sqrt,
        "√": _sqrt,
        "ln": _logarithm,
        "log10": _log10,
        "exp": _exp,
        "abs": lambda number: (abs(number), True),
    }
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


CURRENCIES = "$€£¥₹₩"

UNIT_WORDS = Path(__file__).with_name("unit_words.txt")
"""The words of one line mean the same unit; a paragraph before the last has the units of one quantity."""

_PARAGRAPHS = [part.splitlines() for part in UNIT_WORDS.read_text(encoding="utf-8").split("\n\n")]

WORDS: Mapping[str, str] = MappingProxyType(
    {word: line.split()[0] for lines in _PARAGRAPHS for line in lines for word in line.split()}
)
"""The first word of its line; single letters are reserved for unknowns."""

QUANTITIES: Mapping[str, int] = MappingProxyType(
    {line.split()[0]: number for number, lines in enumerate(_PARAGRAPHS[:-1]) for line in lines}
)
"""The number of the quantity of a unit."""

LABEL = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
"""The pattern of a unit word, to be matched case-insensitively."""


def label(word: str) -> str:
    """Return the canonical name of a unit word.

    >>> label("mins"), label("円")
    ('minute', '¥')
    """
    return WORDS[word.lower()]


MAX_CHARS = 1_000

MAX_DEPTH = 60

MAX_APPROXIMATE_BITS = 600
"""An inexact number of more bits is rounded again, to 50 digits."""

NAMES = r"(?i:sqrt|log10|log|ln|exp|abs|pi|of)(?![0-9A-Za-z_])|(?i:min|max|round)(?=\()|√|π"

WORD = rf"(?i:{LABEL})(?![^\W\dxX_]|_)"
"""A whole unit word: neither the `yen` of `yeni` nor the `mile` of `5miles`."""

MONEY = rf"(?:(?:US)?[{CURRENCIES}][ ]?)?"


def _token(thousands: str, not_after: str) -> re.Pattern[str]:
    """Return the pattern of a token; `thousands` matches grouped digits, and `not_after` must not follow a number."""
    return re.compile(
        rf"\s*(?:(?P<number>{MONEY}(?!0[xX])(?:{thousands}[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
        rf"(?:[eE][+-]?[0-9]{{1,4}})?(?![{not_after}]|(?!{WORD})[^\W\dxX{RAISED}]))|(?P<vulgar>{MONEY}[0-9]*[¼½¾⅐-⅞](?!\w))"
        rf"|(?P<name>{NAMES})|(?P<raised>[⁺⁻]?[{RAISED}]+)|(?P<sign>\*\*|[-+*/^%()\[\]{{}}xX,])|(?P<label>{WORD})|(?P<other>\S))"
    )


TOKEN = _token(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|", "0-9.,")

LISTED = _token("", "0-9.")
"""The token pattern in an argument list, where a comma separates numbers."""

GROUPED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")

PERCENT = re.compile(r"\b(?:percent|per cent|pct)\b|パーセント", re.IGNORECASE)

PER = re.compile(rf"\s+per\s+(?={WORD})", re.IGNORECASE)
# 3 1/2 is three and a half, unless an operator before or after it would bind a part of it.
MIXED = re.compile(rf"\s+([0-9]{{1,3}})/([0-9]{{1,3}})(?![0-9.]|,\S|\s*(?:[/^([{{]|\*\*|[{RAISED}]))")

PAIRS = {"(": ")", "[": "]", "{": "}"}

SIGNS = {"*": "×·⋅∙・✕✖⨯∗", "/": "÷∕⁄➗", "+": "➕", "-": "−–—➖", "": "\u200b\u2060\ufe0f\ufeff"}

SPELLINGS = str.maketrans({other: sign for sign, others in SIGNS.items() for other in others})

LOWERED = str.maketrans("⁺⁻" + RAISED, "+-0123456789")

NUMERAL = re.compile(r"[\w.,]+")
# In 2x + 1 and 2 x + 1 the letter is an unknown; in 2x3, 2 x 3 and 2 x -3 it is a times sign.
UNKNOWN = re.compile(r"\S[xX](?=\s|[-+])|.?[xX]\s*(?:[+]|-\s)")

BINDS = {"+": 1, "-": 1, "*": 2, "x": 2, "/": 2, "^": 4}

NEGATION = 3

HINT = "numbers with + - * / ^ % and parentheses; the decimal point is '.', and thousands are written 1,000"


def calculate(text: str) -> Fraction:
    """Work out an expression: exactly, but for irrational results, which are rounded to 50 digits.

    `^` and `**` are powers; unit words are skipped where they do not change the result. The value of an equation is that of its
    last side; the other sides must agree with it or contain an unknown. A final `=` is ignored.

    >>> calculate("1,000 × 5% + 2^-1")
    Fraction(101, 2)
    >>> calculate("speed = 36 / 9")
    Fraction(4, 1)

    Raises:
        ToolError: the expression is malformed, divides by zero, or an intermediate result has more than 4,096 bits.
    """
    return parsed(text).result


def parsed(text: str) -> "_Parser":
    """Work out an expression by `calculate`; return its `result`, and whether it is `exact`."""
    if len(text) > MAX_CHARS:
        raise ToolError(f"the expression has {len(text):,} characters", code="too_long", hint=f"at most {MAX_CHARS:,}")
    *others, last = _plain(text).removesuffix("?").rstrip().removesuffix("=").split("=")
    parser = _Parser(last)
    parser.whole()
    for side in others:
        other = _known(side)
        if other is None:
            if not parser.worked:
                raise ToolError("equations with an unknown are not solved", code="syntax", hint=HINT)
            continue
        if other.powers and parser.powers and other.powers.keys() != parser.powers.keys():
            raise _mixed(other.powers.keys() | parser.powers.keys())
        if near(other.result) != near(parser.result):
            raise ToolError(f"{side.strip()} is {spell(other.result)}, not {spell(parser.result)}", code="unequal")
    return parser


def _plain(text: str) -> str:
    plain = text if text.isascii() else myriads_to_digits(narrow(text).translate(SPELLINGS))
    return PER.sub("/", PERCENT.sub("%", plain)).strip()


def _known(side: str) -> "_Parser | None":
    """Parse a side of an equation; None if it is a name or contains an unknown."""
    parser = _Parser(side)
    try:
        parser.whole()
    except ToolError as error:
        if error.code == "syntax":
            return None
        raise
    return parser


def _mixed(labels: Set[str]) -> ToolError:
    hint = "convert them to one unit first, and leave the unit words out"
    return ToolError(f"{' and '.join(sorted(labels))} cannot be combined", code="ambiguous", hint=hint)


@dataclass(slots=True)
class _Parser:
    """Top-down operator precedence (Pratt 1973): each operator binds as strongly as `BINDS` says."""

    text: str
    at: int = field(default=0, init=False)
    depth: int = field(default=0, init=False)
    kind: str = field(default="", init=False)
    word: str = field(default="", init=False)
    exact: bool = field(default=True, init=False)
    worked: bool = field(default=False, init=False)
    """Whether the expression contains an operation."""
    adds: bool = field(default=False, init=False)
    listed: int = field(default=0, init=False)
    """The depth of argument lists, such as that of min(3, 4)."""
    powers: Counter[str] = field(default_factory=Counter[str], init=False)
    """The units of the numbers, several only if nothing is added, and their powers: minutes times hours per minute are hours."""
    side: int = field(default=1, init=False)
    """1 above a fraction bar, -1 below it."""
    result: Fraction = field(default=Fraction(0), init=False)

    def whole(self) -> None:
        self.step()
        self.result = self.expression(0)
        if self.kind:
            self.fail("an operator or the end")
        if self.adds and len(self.powers) > 1:
            raise _mixed(self.powers.keys())
        kept = Counter(QUANTITIES[each] for each, power in self.powers.items() if power and each in QUANTITIES)
        if not self.adds and (twice := {each for each in self.powers if kept[QUANTITIES.get(each, -1)] > 1}):
            raise _mixed(twice)

    def step(self) -> None:
        match = (LISTED if self.listed else TOKEN).match(self.text, self.at)
        self.kind = (match.lastgroup or "") if match else ""
        self.word = match[self.kind].lower().replace("**", "^") if match else ""
        self.at = match.end() if match else len(self.text)
        if self.listed and self.kind == "number" and match:
            self.ungrouped(match.start("number"))
        if self.word == "of":
            self.kind, self.word = "sign", "*"
        if self.word == "x" and match and UNKNOWN.match(self.text, max(match.start("sign") - 1, 0)):
            raise ToolError("x is an unknown here, not a times sign", code="syntax", hint="write * for times")

    def ungrouped(self, at: int) -> None:
        if grouped := GROUPED.match(self.text, at):
            hint = "a blank after a comma between two numbers; no comma within one"
            raise ToolError(f"{grouped[0][:20]} is ambiguous here", code="ambiguous", hint=hint)

    def fail(self, expected: str) -> NoReturn:
        if self.kind == "other" and self.word.isdigit():
            numeral = NUMERAL.match(self.text, self.at - 1)
            raise ToolError(f"{numeral[0][:20] if numeral else ''!r} is not a number", code="syntax", hint=HINT)
        got = f"{self.word[:20]!r} (character {self.at})" if self.kind else "the end"
        raise ToolError(f"expected {expected}, got {got}", code="syntax", hint=HINT)

    def sign(self, *wanted: str) -> bool:
        return self.kind == "sign" and self.word in wanted

    def expression(self, binding: int) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError("the expression is nested too deep", code="too_deep", hint=f"at most {MAX_DEPTH} levels")
        left = self.operand()
        last = ""
        while self.continues(binding):
            sign, word = self.kind, self.word
            if self.implicit():
                if last == "/":
                    raise ToolError("a/b(c) is ambiguous", code="ambiguous", hint="write a/(b*c) or (a/b)*c")
                left = self.recorded(_applied("*", left, self.expression(BINDS["*"])))
                continue
            self.step()
            if sign == "raised":
                left = self.recorded(power(left, Fraction(word.translate(LOWERED))))
            elif word == "%":
                left = self.hundredths(left)
            elif word == "/" and self.kind == "label":
                self.counted(-self.side)
            else:
                above, self.side = self.side, -self.side if word == "/" else self.side
                # Powers are right-associative: 2^3^2 is 2^9.
                right = self.expression(BINDS[word] - (word == "^"))
                self.side = above
                left = self.recorded(_applied(word, left, right))
                last = word
                self.adds = self.adds or word in ("+", "-")
        self.depth -= 1
        return left

    def continues(self, binding: int) -> bool:
        """Whether the next token binds the operand more strongly than the operator before it."""
        if self.kind == "sign" and self.word not in PAIRS:
            return self.word == "%" or BINDS.get(self.word, 0) > binding
        return self.kind == "raised" or (self.implicit() and BINDS["*"] > binding)

    def implicit(self) -> bool:
        """Whether a product without an operator follows, as in 2(3 + 4)."""
        return self.sign(*PAIRS) or self.kind == "name"

    def operand(self) -> Fraction:
        kind, word = self.kind, self.word
        if kind in ("number", "vulgar"):
            return self.number()
        if kind == "name":
            self.step()
            return self.named(word)
        if not self.sign("+", "-", *PAIRS):
            self.fail("a number")
        self.step()
        if word not in PAIRS:
            inner = self.expression(NEGATION)
            return -inner if word == "-" else inner
        return self.closed(PAIRS[word])

    def number(self) -> Fraction:
        digits = self.word.removeprefix("us").lstrip(f"{CURRENCIES} ")
        if money := self.word[: -len(digits)].strip():
            self.powers[label(money[-1])] += self.side
        part = self.mixed()
        self.step()
        self.counted()
        plain = digits.replace(",", "")
        whole = Fraction(int(plain)) if plain.isdigit() else Fraction(halves_to_slashes(plain))
        return bounded(whole + part if part else whole)

    def mixed(self) -> Fraction:
        """Return the fraction that follows a whole number, as in 3 1/2."""
        match = MIXED.match(self.text, self.at) if self.word.isdigit() else None
        if match is None or int(match[1]) >= int(match[2]):
            return Fraction(0)
        if self.text[: self.at].rstrip("0123456789").rstrip().endswith(("/", "^", "*")):
            return Fraction(0)
        self.at = match.end()
        return Fraction(int(match[1]), int(match[2]))

    def counted(self, power: int = 0) -> None:
        """Skip the unit word after a number, or after a fraction bar, with its power."""
        if self.kind == "label":
            self.powers[label(self.word)] += power or self.side
            self.step()
            self.no_power()

    def no_power(self) -> None:
        if self.kind == "raised" or self.sign("^"):
            self.fail("a number before the power")

    def closed(self, closing: str) -> Fraction:
        inner = self.expression(0)
        if not self.sign(closing):
            self.fail(f"an operator or {closing!r}")
        self.step()
        self.counted()
        return inner

    def named(self, name: str) -> Fraction:
        if name in ("pi", "π"):
            self.exact = False
            return PI
        if name == "log":
            raise ToolError("log is ambiguous", code="ambiguous", hint="write ln(x) or log10(x)")
        if name == "√" and not self.sign("("):
            return self.recorded(FUNCTIONS[name](self.expression(BINDS["^"])))
        if not self.sign("("):
            self.fail(f"'(' after {name}")
        if name in SEVERAL:
            return self.several(name)
        self.step()
        return self.recorded(FUNCTIONS[name](self.closed(")")))

    def several(self, name: str) -> Fraction:
        """Return the value of a function with several arguments."""
        self.listed += 1
        self.step()
        numbers = [self.expression(0)]
        while self.sign(","):
            self.step()
            numbers.append(self.expression(0))
        self.listed -= 1
        if not self.sign(")"):
            self.fail("an operator, ',' or ')'")
        self.step()
        self.counted()
        self.adds = self.adds or (name != "round" and len(numbers) > 1)
        return self.recorded((SEVERAL[name](numbers), True))

    def recorded(self, outcome: tuple[Fraction, bool]) -> Fraction:
        """Record the result of an operation; an inexact number is kept short."""
        number, exact = outcome
        self.worked = True
        self.exact = self.exact and exact
        return bounded(number if self.exact or bits(number) < MAX_APPROXIMATE_BITS else near(number))

    def hundredths(self, number: Fraction) -> Fraction:
        if self.kind in ("number", "vulgar", "name") or self.sign(*PAIRS):
            hint = "17 - 5*3 for a remainder"
            raise ToolError("% means hundredths, so no number can follow it", code="syntax", hint=hint)
        return number / 100


def _applied(sign: str, left: Fraction, right: Fraction) -> tuple[Fraction, bool]:
    if sign == "^":
        return power(left, right)
    if sign == "/":
        if not right:
            raise ToolError("division by zero", code="division_by_zero")
        return left / right, True
    if sign in ("*", "x"):
        return left * right, True
    return (left + right if sign == "+" else left - right), True
