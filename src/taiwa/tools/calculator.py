"""The exact calculator, and the unit words that may follow its numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.tools.exact_numbers import (
    FUNCTIONS,
    PI,
    RAISED,
    SEVERAL,
    bits,
    bounded,
    halves_to_slashes,
    myriads_to_digits,
    narrow,
    near,
    power,
    spell,
    spell_near,
)
from taiwa.tools.function_tool import FunctionTool, tool

CURRENCIES = "$€£¥₹₩"

UNIT_WORDS = Path(__file__).with_name("unit_words.txt")
"""The words of one line mean the same unit."""

WORDS: Mapping[str, str] = MappingProxyType(
    {word: line.split()[0] for line in UNIT_WORDS.read_text(encoding="utf-8").splitlines() for word in line.split()}
)
"""The first word of its line; single letters are reserved for unknowns."""

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

NAMES = r"(?i:sqrt|log10|log|ln|exp|pi|of)(?![0-9A-Za-z_])|(?i:min|max|round)(?=\()|√|π"

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


@tool(isolated=False)  # bounded by construction
def calculator(expression: str) -> ToolResult:
    """Calculate with numbers, + - * / ^ % and parentheses, sqrt(), ln(), log10(), exp(), min(a, b), max(a, b), round(x, decimals) and pi.

    Exact but for roots, logarithms and exponentials, which are right to 50 digits. % after a number means hundredths.
    """
    parser = _parsed(expression)
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
    number = SEVERAL["round"]((_parsed(expression).result, Fraction(decimals)))
    return ToolResult(spell(number), value=str(number))


_round_result.__doc__ = calculator.spec.description


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
    return _parsed(text).result


def _parsed(text: str) -> "_Parser":
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
        if other.labels and parser.labels and other.labels != parser.labels:
            raise _mixed(other.labels | parser.labels)
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


def _mixed(labels: set[str]) -> ToolError:
    return ToolError(
        f"{' and '.join(sorted(labels))} cannot be added or compared",
        code="ambiguous",
        hint="convert them to one unit first, and leave the unit words out",
    )


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
    labels: set[str] = field(default_factory=set[str], init=False)
    """The units of the numbers; several are allowed only if nothing is added."""
    result: Fraction = field(default=Fraction(0), init=False)

    def whole(self) -> None:
        self.step()
        self.result = self.expression(0)
        if self.kind:
            self.fail("an operator or the end")
        if self.adds and len(self.labels) > 1:
            raise _mixed(self.labels)

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
                self.counted()
            else:
                # Powers are right-associative: 2^3^2 is 2^9.
                left = self.recorded(_applied(word, left, self.expression(BINDS[word] - (word == "^"))))
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
            self.labels.add(label(money[-1]))
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

    def counted(self) -> None:
        """Skip the unit word after a number."""
        if self.kind == "label":
            self.labels.add(label(self.word))
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
            raise ToolError(
                "% means hundredths, so no number can follow it", code="syntax", hint="17 - 5*3 for a remainder"
            )
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
