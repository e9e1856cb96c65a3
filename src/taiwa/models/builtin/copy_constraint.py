"""The guide of answers to problems: numbers are copied from the question or from results, formulas are spelled with known elements.

Its parts: the numbers in a text; the parser of an answer, byte by byte; and the guide over the tokens of a vocabulary.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from taiwa.constraints.guide import LIMIT, Coverage, Explanation, empty_mask, fill_mask, mask_tokens
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError
from taiwa.tools.calculator import FUNCTIONS, SEVERAL
from taiwa.tools.chemical_formulas import elements

if TYPE_CHECKING:
    from taiwa.constraints.guide import Mask

SMALL = 30
"""Any whole number up to this one may be a coefficient, an exponent, or a number of decimals."""

CONSTANTS: Final = frozenset(
    """0 0.001 0.01 0.1 0.25 0.5 0.75 1.5 1.8 2.5 3.6 9.8 9.81 22.4 32 36 40 48 50 52 60 90 100 120 144 180 200 273 273.15 300 360 365
    366 500 600 1000 1440 1500 1760 2000 3600 5280 10000 86400 100000 1000000 3.14 3.1416 0.0821 8.314 6.02 6.022""".split()
).union(map(str, range(1, SMALL + 1)))
"""Numbers that a calculation may use although the question does not state them: 100, parts of hours, years and feet, physical
constants."""

MAX_DIGITS = 24
"""Length of a copied number."""

WRITTEN = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
FRACTION = re.compile(r"(?:(\d{1,6}) +)?(\d{1,6})/(\d{1,6})(?![\d/])")
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: Final[Mapping[str, str]] = {
    **{word: str(number) for number, word in enumerate(ONES.split())},
    **{
        f"{ten}{joint}{one}".strip(): str(10 * many + few)
        for many, ten in enumerate(TENS.split(), 2)
        for few, one in enumerate(("", *ONES.split()[1:10]))
        for joint in " -"[: 2 if one else 1]
    },
    "half a dozen": "6", "a dozen": "12", "a couple": "2", "a pair": "2", "a single": "1",
    "couple": "2", "pair": "2", "single": "1", "an": "1", "a": "1",
}  # fmt: skip
"""Numbers in one or two words, and their digits."""

UNITS: Final = {
    **{word: Decimal(number) for number, word in enumerate(ONES.split())},
    **{word: Decimal(10 * number) for number, word in enumerate(TENS.split(), 2)},
    **dict.fromkeys("a an single once".split(), Decimal(1)),
    **dict.fromkeys("couple pair pairs twice double doubles doubled both".split(), Decimal(2)),
    **dict.fromkeys("thrice triple triples tripled".split(), Decimal(3)),
    **dict.fromkeys("quadruple quadruples quadrupled".split(), Decimal(4)),
}

SCALES: Final = {
    **dict.fromkeys(("hundred", "hundreds"), Decimal(100)),
    **dict.fromkeys(("thousand", "thousands", "k"), Decimal(1000)),
    **dict.fromkeys(("million", "millions"), Decimal(10**6)),
    **dict.fromkeys(("billion", "billions"), Decimal(10**9)),
    **dict.fromkeys(("dozen", "dozens"), Decimal(12)),
    **dict.fromkeys(("score", "scores"), Decimal(20)),
}

SHARES: Final = {
    word: (Decimal(share), Decimal(parts))
    for words, share, parts in (
        ("half halves halved", "0.5", 2),
        ("third thirds", "0.3333", 3),
        ("quarter quarters", "0.25", 4),
        ("fifth fifths", "0.2", 5),
        ("sixth sixths", "0.1667", 6),
        ("eighth eighths", "0.125", 8),
        ("tenth tenths", "0.1", 10),
        ("hundredth hundredths", "0.01", 100),
    )
    for word in words.split()
}

SINGLE = re.compile(r"(?<=\bhalf) an? |(?<=\band) an? (?=half|third|quarter)")
WORD = re.compile(r"[a-z]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\s\w-]")
DIGITS_ZH: Final = {sign: str(number) for number, sign in enumerate("〇一二三四五六七八九")} | {"零": "0", "两": "2"}
POWERS: Final = {"十": 10, "百": 100, "千": 1_000, "万": 10**4, "億": 10**8, "亿": 10**8}
NUMERAL = re.compile(
    rf"(?:\d{{1,9}}(?:\.\d{{1,4}})?)?[{''.join((*DIGITS_ZH, *POWERS))}](?:[{''.join((*DIGITS_ZH, *POWERS))}]|\d){{0,15}}|\d{{1,3}}(?:\.\d)?(?=割|折|成|.{{1,2}}半)"
)
PERCENT = re.compile(r"\s?(?:%|percent|per cent|pct)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NumberSet:
    """The numbers that may be written, and all of their prefixes."""

    whole: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()

    def plus(self, numbers: frozenset[str]) -> "NumberSet":
        """Return this set with more numbers."""
        if numbers <= self.whole:
            return self
        more = {number[:end] for number in numbers for end in range(1, len(number) + 1)}
        return NumberSet(self.whole | numbers, self.begun | more)


@lru_cache(256)
def find_numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, in digits or in words, and values derived from percentages and fractions.

    >>> sorted(find_numbers("Two and a half dozen eggs at $1,250.50, 15% off"), key=lambda number: (float(number), number))
    ['0.15', '0.5', '0.85', '1.15', '2', '2.5', '12', '15', '30', '1250.5', '1250.50']
    """
    return frozenset(each for each in _numbers(text) if len(each) <= MAX_DIGITS)


def find_digits(text: str) -> frozenset[str]:
    """Return the numbers of a text that are written in digits, as written and without thousands separators.

    >>> sorted(find_digits("1,250 g is 2.50 lb"))
    ['1,250', '1250', '2.5', '2.50']
    """
    found = {each for match in WRITTEN.finditer(text) for part in _split_commas(match[0]) for each in _spellings(part)}
    found |= {match[0] for match in GROUPED.finditer(text)}
    return frozenset(each for each in found if len(each) <= MAX_DIGITS)


def _numbers(text: str) -> Iterator[str]:
    for found in WRITTEN.finditer(text):
        for digits in _split_commas(found[0]):
            yield from _spellings(digits)
            if PERCENT.match(text, found.end()):
                share = Decimal(digits[:MAX_DIGITS]) / 100
                yield from map(_spell, (share, 1 + share, abs(1 - share)))
    for found in FRACTION.finditer(text):
        below = Decimal(found[3])
        if below:
            share = Decimal(found[2]) / below
            yield from map(_spell, (share, share + Decimal(found[1] or 0)))
    yield from _number_words(text.lower())
    yield from _numerals(text)


def _numerals(text: str) -> Iterator[str]:
    """Yield numbers with Chinese numerals, and values derived from tenths: `三千五百`, `1万2千`, `2時間半`, `三割`, `七五折`."""
    for found in NUMERAL.finditer(text):
        number = read_numeral(found[0])
        behind = text[found.end() : found.end() + 3]
        yield _spell(number)
        if "半" in behind:
            yield _spell(number + Decimal("0.5"))
        if behind[:1] in ("割", "折", "成"):
            percent = number * 10 if number < 10 else number
            yield from map(_spell, (percent, percent / 100, abs(1 - percent / 100)))
    if "半" in text:
        yield from ("0.5", "2")


def read_numeral(text: str) -> Decimal:
    """Return the value of a number with Chinese numerals."""
    whole = part = Decimal(0)
    digits = ""
    for sign in text:
        power = POWERS.get(sign, 0)
        if not power:
            digits += DIGITS_ZH.get(sign, sign)
        elif power < 10_000:
            part, digits = part + Decimal(digits or 1) * power, ""
        else:
            part += Decimal(digits or (0 if part else 1))
            whole, part, digits = whole + part * power, Decimal(0), ""
    return whole + part + Decimal(digits or 0)


PLACED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+")
LINKED = re.compile(r"[ -]|\s+and\s+|, ", re.IGNORECASE)
INSIDE = re.compile(r"(?<!\d)[A-Za-z]\Z|[A-WYZa-wyz^]\Z")
"""The end of a text after which a digit belongs to a formula or a name; `5x` is not one."""
SAID_ONCE: Final = frozenset(
    "a an single once couple pair pairs twice double doubles doubled both thrice triple triples tripled quadruple".split()
)
"""Number words that express repetition or singularity."""
SETS: Final = frozenset(("dozen", "dozens", "score", "scores"))


def numbers_in_place(text: str) -> tuple[tuple[tuple[int, int, Fraction], ...], frozenset[Fraction]]:
    """Return the numbers of a text, each once with its position, and the numbers that its other words may stand for.

    >>> [str(value) for _, _, value in numbers_in_place("Two hundred and six eggs and 1,250.5 g at 7")[0]]
    ['206', '2501/2', '7']
    >>> sorted(map(str, numbers_in_place("half of it in an hour and a half")[1]))
    ['1', '1/2', '2']
    """
    found: list[tuple[int, int, Fraction]] = []
    last = None
    for word in PLACED.finditer(text):
        if (word[0].isalpha() and not _is_numeral(word[0])) or INSIDE.search(text[: word.start()]):
            continue
        if last is not None and _goes_on(text, last, word):
            start = found.pop()[0]
        elif word[0].lower() in SCALES and not word[0].isdigit():
            continue
        else:
            start = word.start()
        last = word
        value = Fraction(word[0].replace(",", "")) if start == word.start() and not word[0].isalpha() else None
        if value is None:
            *_, value = map(Fraction, _number_words(text[start : word.end()].lower()))
        found.append((start, word.end(), value))
    told = find_numbers(text) if WORDY.search(text) else ()
    return tuple(found), frozenset(map(Fraction, told))


WORDY = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join((*SHARES, *(each for each in SAID_ONCE if each not in ('a', 'an')), 'dozens?', '[0-9]/[0-9]'))})(?![A-Za-z])",
    re.IGNORECASE,
)
"""Words whose numbers may be written in several forms."""


def _is_numeral(word: str) -> bool:
    lower = word.lower()
    return (lower in UNITS and lower not in SAID_ONCE) or (lower in SCALES and lower not in SETS)


def _goes_on(text: str, last: re.Match[str], word: re.Match[str]) -> bool:
    """Return true if a number word continues a number: `twenty five`, `two hundred and six`."""
    between, one, other = text[last.end() : word.start()], last[0].lower(), word[0].lower()
    if other in SCALES:
        return between in (" ", "-") or (other == "k" and not between)
    if one in SCALES:
        return between.lower() in (" ", " and ") and not other[0].isdigit()
    is_ten = one in UNITS and UNITS[one] >= 20 and other in UNITS and 0 < UNITS[other] < 10
    return is_ten and between in (" ", "-")


def _split_commas(digits: str) -> list[str]:
    """Return one number with thousands separators, or several numbers separated by commas."""
    return [digits.replace(",", "")] if GROUPED.fullmatch(digits) else [each for each in digits.split(",") if each]


def _spellings(digits: str) -> Iterator[str]:
    yield digits
    if digits.startswith("."):
        yield f"0{digits}"
    yield _spell(Decimal(digits[:MAX_DIGITS]))


def _spell(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number_words(text: str) -> Iterator[str]:
    """Yield numbers in words, and their partial values: `twenty-five`, `two hundred and six`, `2 and a half dozen`."""
    reader = _NumberReader()
    for found in WORD.finditer(SINGLE.sub(" ", text)):
        yield from map(_spell, reader.read(found[0]))


class _NumberReader:
    """A parser of numbers in words: `whole` are the thousands so far, `part` is the rest."""

    def __init__(self) -> None:
        self.whole = self.part = Decimal(0)
        self.last = Decimal(0)
        """The value of the last word; 0 if it was not a number."""
        self.joined = False

    def read(self, word: str) -> Iterator[Decimal]:
        """Read a word and yield the values of the number so far."""
        if word == "and":
            self.joined = True
            return
        number = UNITS.get(word)
        if number is None and word[0].isdecimal():
            number = Decimal(word.replace(",", "")[:MAX_DIGITS])
        if number is not None:
            yield self._number(number)
        elif word in SCALES:
            yield from self._scale(SCALES[word])
        elif word in SHARES:
            yield from self._share(*SHARES[word])
        else:
            self.whole = self.part = self.last = Decimal(0)
        self.joined = False

    def _number(self, number: Decimal) -> Decimal:
        continues = self.last >= 100 > number or (20 <= self.last < 100 and self.last % 10 == 0 and number < 10)
        if not continues and not (self.last >= 1000 > number):
            self.whole = self.part = Decimal(0)
        self.part, self.last = self.part + number, number
        return self.whole + self.part

    def _scale(self, scale: Decimal) -> Iterator[Decimal]:
        yield scale
        self.part = (self.part or (Decimal(1) if not self.whole else Decimal(0))) * scale
        yield self.part
        if scale >= 1000:
            grown = self.whole + self.part if self.whole > scale else self.whole * scale + self.part
            self.whole, self.part = grown, Decimal(0)
        self.last = max(scale, Decimal(100))
        yield self.whole + self.part

    def _share(self, share: Decimal, parts: Decimal) -> Iterator[Decimal]:
        yield share
        yield parts
        if self.last and self.joined:
            self.part += share
        elif self.last:
            self.whole, self.part = Decimal(0), share * (self.whole + self.part)
        else:
            self.part = share
        self.last = share
        yield self.whole + self.part


Mode: TypeAlias = Literal["words", "open", "name", "sum", "formula", "equation", "conversion", "close", "answer"]

MODES: Final[dict[str, Mode]] = {
    "calculator": "sum",
    "molar_mass": "formula",
    "stoichiometry": "equation",
    "unit_conversion": "conversion",
}

UNIT_FILE = "units.tsv"

UNIT_ROWS: Final = tuple(
    line.split("\t") for line in (files("taiwa.models.builtin") / UNIT_FILE).read_text("utf-8").splitlines()
)

UNIT_KINDS: Final[Mapping[str, str]] = MappingProxyType({name: kind for name, kind, *_ in UNIT_ROWS})
"""The dimension of each unit of conversions."""

CONVERTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {name: tuple("|".join(names).replace("[", "").replace("]", "").split("|")) for name, _, *names in UNIT_ROWS}
)
"""The units of conversions, as the converter reads them, and their names in English, Japanese and Chinese."""

TO = " to "

LEAD = "answer is "
MONEY = "$"
SIGNS = "+-*/^"
NUMERIC = frozenset("0123456789.")
NAMES: Final = frozenset(name for name in (*FUNCTIONS, *SEVERAL) if name.isascii())
WORDS: Final = frozenset(name[:end] for name in (*NAMES, "pi") for end in range(1, len(name) + 1))
ELECTRON = "e"
CHARGED = "charged"
STARTS: Final = frozenset(symbol[0] for symbol in elements())
SYMBOLS: Final = frozenset((*elements(), ELECTRON))
MAX_DEPTH = 4
COPYING: Final = frozenset(("sum", "conversion", "answer"))
"""Modes in which only known numbers are written."""
FORMULA = "0123456789()[].^+-\u00c2\u00b7"
"""Characters of a formula; the last two are the bytes of `·`."""

EQUATION = FORMULA + "? =\u00e2\u0086\u0092"
"""The question mark is an unknown coefficient; the last three are the bytes of `→`."""

FOLLOWING: Final = {"\u00c2": "\u00b7", "\u00e2": "\u0086", "\u0086": "\u0092"}
"""The next byte after a byte of a character that has several."""

INNER: Final = frozenset(FOLLOWING.values())
PHASES: Final = frozenset(("(g", "(s", "(l", "(a", "(aq"))
"""The beginnings of a state in parentheses after a formula of an equation."""

DUE: Final = {
    **{chr(byte): (1, 0x80, 0xBF) for byte in range(0xC2, 0xE0)},
    **{chr(byte): (2, 0x80, 0xBF) for byte in range(0xE0, 0xF0)},
    **{chr(byte): (3, 0x80, 0xBF) for byte in range(0xF0, 0xF5)},
    "\u00e0": (2, 0xA0, 0xBF),
    "\u00ed": (2, 0x80, 0x9F),
    "\u00f0": (3, 0x90, 0xBF),
    "\u00f4": (3, 0x80, 0x8F),
}
"""By the first byte of a character: the number of further bytes, and the range of the next one."""


@dataclass(frozen=True, slots=True)
class ParserState:
    """The state of the parser after a byte of an answer.

    In words: how much of `answer is ` was just written (`lead`), which bytes are `due` to complete a character, whether a digit
    is forbidden (`no_digit`), whether only a new line may follow (`only_newline`), whether the line is empty so far (`fresh`),
    and the `last` byte if it must not be repeated (`>` or a new line).
    In a call: the `word` so far (a name, a number, an element), what is expected (`want`), and the `depth` of open brackets.
    """

    tools: tuple[str, ...]
    mode: Mode = "words"
    lead: int = 0
    due: tuple[int, int, int] = (0, 0, 0)
    no_digit: bool = False
    only_newline: bool = False
    fresh: bool = True
    word: str = ""
    want: str = "value"
    depth: int = 0
    last: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the text may end here, apart from an incomplete number."""
        return not (self.fresh or self.only_newline) and self.mode in ("words", "answer") and not self.due[0]


def without_number(parser: ParserState) -> ParserState:
    """Return the state after the number that is being written, which decides what may follow except digits."""
    if parser.mode in COPYING and parser.word[:1] in NUMERIC and parser.word:
        return replace(parser, word="", want="sign")
    return parser


def advance_byte(parser: ParserState, sign: str, known: NumberSet) -> ParserState | None:
    """Return the state after one more byte, given as a Latin-1 character; None if it is not allowed."""
    mode = parser.mode
    if mode == "words":
        return _words(parser, sign)
    if mode == "sum":
        return _sum(parser, sign, known)
    if mode in ("formula", "equation"):
        return _formula(parser, sign)
    if mode == "conversion":
        return _conversion(parser, sign, known)
    if mode == "answer":
        return _answer(parser, sign, known)
    if mode == "open":
        return ParserState(parser.tools, "name", fresh=False) if sign == "<" else None
    if mode == "close":
        return ParserState(parser.tools, fresh=False) if sign == ">" else None
    return _name(parser, sign)


def _words(parser: ParserState, sign: str) -> ParserState | None:
    if parser.only_newline and sign != "\n":
        return None
    more, low, high = parser.due
    if more:
        follows = low <= ord(sign) <= high
        return replace(parser, due=(more - 1, 0x80, 0xBF) if more > 1 else (0, 0, 0)) if follows else None
    if sign == "<":
        return ParserState(parser.tools, "open", fresh=False) if parser.tools else None
    if sign == ">":  # one may belong to an arrow; two would end a call that was not opened
        return ParserState(parser.tools, last=sign, fresh=False) if parser.last != sign else None
    if sign == "\n":
        return ParserState(parser.tools, last=sign, fresh=False) if parser.last != sign and not parser.fresh else None
    if (parser.no_digit and sign.isdigit()) or sign < " " or sign == "\x7f":
        return None
    if sign > "\x7f":
        return ParserState(parser.tools, due=DUE[sign], fresh=False) if sign in DUE else None
    lead = parser.lead + 1 if sign == LEAD[parser.lead] else int(sign == LEAD[0])
    if lead == len(LEAD):
        return ParserState(parser.tools, "answer", fresh=False)
    return ParserState(parser.tools, lead=lead, fresh=False)


def _answer(parser: ParserState, sign: str, known: NumberSet) -> ParserState | None:
    """The number or the formulas of the answer; after them, words."""
    word = parser.word
    if sign in NUMERIC and word + sign in known.begun and parser.want == "value":
        return replace(parser, word=word + sign)
    if not word and parser.want == "value":
        if sign in STARTS:  # a formula, or an equation
            return ParserState(parser.tools, fresh=False)
        return replace(parser, last=sign) if sign in ("-", MONEY) and parser.last != sign else None
    whole = parser.want == "sign" or word in known.whole
    if sign.isdigit() or not (whole or (word.endswith(".") and word[:-1] in known.whole)):
        return None
    if sign != ".":
        return _words(ParserState(parser.tools, fresh=False), sign)
    # A full stop after a number; no digit may follow and make it a decimal point.
    return None if word.endswith(".") else ParserState(parser.tools, no_digit=True, fresh=False)


def _name(parser: ParserState, sign: str) -> ParserState | None:
    word = parser.word + sign
    fitting = [tool for tool in parser.tools if f"{tool}: ".startswith(word)]
    if not fitting:
        return None
    if word == f"{fitting[0]}: ":
        return ParserState(parser.tools, MODES[fitting[0]], fresh=False, last=" ")
    return replace(parser, word=word)


def _sum(parser: ParserState, sign: str, known: NumberSet) -> ParserState | None:
    """A calculation: known numbers, operators, functions and parentheses."""
    word, want = parser.word, parser.want
    numeric = word[:1] in NUMERIC if word else sign in NUMERIC
    if want in ("value", "number") and numeric and word + sign in known.begun:
        return replace(parser, word=word + sign, last=sign)
    if not numeric and word + sign in WORDS and want in ("value", "number") and parser.depth <= MAX_DEPTH:
        return replace(parser, word=word + sign, last=sign)
    if word in NAMES:
        return _inner(parser) if sign == "(" else None
    if word:
        if word not in known.whole and word != "pi":
            return None
        parser = replace(parser, word="", want="sign")
    return _between(parser, sign)


def _between(parser: ParserState, sign: str) -> ParserState | None:
    """The operators and parentheses between the numbers of a calculation."""
    is_value = parser.want == "sign"
    if sign == " ":
        return replace(parser, last=" ") if parser.last != " " else None
    if sign == "(":
        return None if is_value or parser.depth >= MAX_DEPTH else _inner(parser)
    if not is_value:
        return replace(parser, want="number", last=sign) if sign == "-" and parser.want == "value" else None
    if sign == ")":
        return replace(parser, depth=parser.depth - 1, last=sign) if parser.depth else None
    if sign in SIGNS or (sign == "," and parser.depth):
        return replace(parser, want="value", last=sign)
    if sign == "%":
        return replace(parser, last=sign) if parser.last != "%" else None
    return replace(parser, mode="close") if sign == ">" and not parser.depth else None


def _conversion(parser: ParserState, sign: str, known: NumberSet) -> ParserState | None:
    """A conversion: a known number, a unit, and another one."""
    word, want = parser.word + sign, parser.want
    if want == "value" and sign in NUMERIC:
        return replace(parser, word=word, last=sign) if word in known.begun else None
    if want == "value" and sign == "-":
        return replace(parser, last=sign) if parser.last == " " and not parser.word else None
    if want == "sign" or (want == "value" and parser.word in known.whole):
        return replace(parser, word="", want="unit", last=sign) if sign == " " else None
    end = TO if want == "unit" else ">"
    fitting = [f"{unit}{end}" for unit in CONVERTED if f"{unit}{end}".startswith(word)] if want != "value" else []
    if word not in fitting:
        return replace(parser, word=word, last=sign) if fitting else None
    return replace(parser, word="", want="target") if want == "unit" else replace(parser, word="", mode="close")


def _inner(parser: ParserState) -> ParserState:
    return replace(parser, word="", want="value", depth=parser.depth + 1, last="(")


def _formula(parser: ParserState, sign: str) -> ParserState | None:
    """A formula, or an equation: elements, numbers, brackets, charges."""
    word = parser.word
    if parser.last in FOLLOWING or sign in INNER:
        return replace(parser, last=sign) if FOLLOWING.get(parser.last) == sign else None
    if word and word + sign in SYMBOLS:
        return replace(parser, word=word + sign, last=sign)
    if parser.mode == "equation" and (word or parser.last) + sign in PHASES:
        return replace(parser, word=(word or parser.last) + sign, last=sign)
    if word and word not in SYMBOLS and not (word in PHASES and word != "(a" and sign == ")"):
        return None
    if sign in STARTS or (sign == ELECTRON and parser.mode == "equation"):
        return replace(parser, word=sign, last=sign)
    parser = replace(parser, word="")
    if sign == ">":
        return _ended(parser)
    if sign not in (EQUATION if parser.mode == "equation" else FORMULA) or (sign == " " == parser.last):
        return None
    if sign in "([" and parser.depth < MAX_DEPTH:
        return replace(parser, depth=parser.depth + 1, last=sign)
    if sign in ")]":
        return replace(parser, depth=parser.depth - 1, last=sign) if parser.depth and parser.last not in "([" else None
    if parser.last == "^" and (sign.isdigit() or sign in "+-"):  # the sign of a charge does not start an arrow
        return replace(parser, last="^" if sign.isdigit() else CHARGED)
    return None if sign in "([" else replace(parser, last=sign)


def _ended(parser: ParserState) -> ParserState | None:
    """The end of an arrow, or of the call."""
    if parser.mode == "equation" and parser.last in ("-", "="):
        return replace(parser, last=">")
    if parser.depth or parser.last in " >-+=^.([":
        return None
    return replace(parser, mode="close")


EXPECTED: Final[dict[Mode, str]] = {
    "words": "words, or a tool call",
    "open": "the second < of a call",
    "name": "the name of an available tool",
    "sum": "a calculation with numbers of the question or of the answer so far",
    "formula": "a chemical formula",
    "equation": "a chemical equation",
    "conversion": "a number of the question or of the answer so far, a unit, and the unit that it is converted to",
    "close": "the second > of a call",
    "answer": "a number of the question or of the answer so far",
}

NUMBER_CHARS = frozenset("0123456789.,")
EMPTY = NumberSet()
COMMON = NumberSet().plus(CONSTANTS)


class _Branch:
    """A node of the tree of tokens by their bytes; `here` are the tokens that end at it."""

    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.below: dict[str, _Branch] = {}
        self.here: list[int] = []


class _Table:
    """The tokens of a vocabulary as a tree of their bytes, and a cache of the masks of parser states."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tree = _Branch()
        self.signs: dict[str, list[int]] = {}
        self._masks: dict[ParserState, Mask] = {}
        for token, content in enumerate(vocabulary.tokens):
            if token not in vocabulary.special and content:
                self._add(token, content.decode("latin-1"))

    def mask(self, parser: ParserState) -> "Mask":
        """Return the mask of the tokens that may follow a state, except the digits of a copied number."""
        mask = self._masks.get(parser)
        if mask is None:
            tokens = sorted(self._fitting(self.tree, parser))
            if parser.is_final:
                tokens += self.vocabulary.end
            mask = empty_mask(len(self.vocabulary))
            fill_mask(mask, tokens)
            self._masks[parser] = mask
        return mask

    def _add(self, token: int, content: str) -> None:
        branch = self.tree
        for sign in content:
            branch = branch.below.setdefault(sign, _Branch())
        branch.here.append(token)
        if len(content) == 1:
            self.signs.setdefault(content, []).append(token)

    def _fitting(self, branch: _Branch, parser: ParserState) -> Iterator[int]:
        yield from branch.here
        for sign, below in branch.below.items():
            following = advance_byte(parser, sign, EMPTY)
            if following is not None:
                yield from self._fitting(below, following)


@lru_cache(4)
def _table(vocabulary: Vocabulary) -> _Table:
    return _Table(vocabulary)


@dataclass(frozen=True, slots=True)
class _Known:
    """The numbers that may be written: `all` in a calculation; as the answer those of `results`, if there are any."""

    all: NumberSet
    results: NumberSet = EMPTY

    def at(self, parser: ParserState) -> NumberSet:
        """Return the numbers that may be written in a state."""
        return self.results if parser.mode == "answer" and self.results.whole else self.all

    def plus(self, run: str, *, is_result: bool) -> "_Known":
        """Return these numbers and one that was written."""
        numbers = find_numbers(run)
        return _Known(self.all.plus(numbers), self.results.plus(numbers | {"1"}) if is_result else self.results)


@dataclass(frozen=True, slots=True)
class CopyGuide:
    """The guide of the answer to one question; see `taiwa.constraints.Guide`.

    The answer begins with a prefix of `prefix_bytes`. If the prefix ends in the result of a call (`ends_in_result`), a new line
    follows, so that no digit is appended to the result.
    """

    vocabulary: Vocabulary
    tools: tuple[str, ...]
    known: _Known = field(repr=False)
    prefix_bytes: int = 0
    ends_in_result: bool = False
    coverage: Coverage = field(default=Coverage())

    @classmethod
    def for_question(cls, question: str, tools: Iterable[str], vocabulary: Vocabulary, prefix: str = "") -> "CopyGuide":
        """Make the guide for a question; `tools` are those that the answer may call, `prefix` is its beginning."""
        known = _Known(COMMON.plus(find_numbers(question)))
        prefix_bytes = len(prefix.encode("utf-8", "replace"))
        return cls(vocabulary, tuple(sorted(tools)), known, prefix_bytes, ">>" in prefix.rpartition("\n")[2])

    def start(self) -> "CopyState":
        """Return the state of the empty text."""
        return CopyState(self, (), ParserState(self.tools), self.known)


@dataclass(frozen=True, slots=True)
class CopyState:
    """An answer so far of `size` bytes; see `taiwa.constraints.GuideState`.

    `run` is the number that is being written in words, which becomes known at its end; `is_result` if it is part of a result.
    """

    guide: CopyGuide
    tokens: tuple[int, ...]
    parser: ParserState
    known: _Known = field(repr=False)
    run: str = ""
    size: int = 0
    is_result: bool = False
    before: "CopyState | None" = field(default=None, repr=False, compare=False)
    is_ended: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the text may end here."""
        return self.is_ended or (self.parser.is_final and (self._is_whole() or self._is_stopped()))

    @property
    def is_complete(self) -> bool:
        """Whether only the end is allowed; always False, because more words may follow."""
        return False

    @property
    def is_dead(self) -> bool:
        """Whether no token is allowed although the text is incomplete."""
        return not self.is_final and self.allowed(1) == ()

    def mask(self, out: "Mask") -> None:
        """Write the mask of the tokens that are allowed next."""
        if self.is_ended:
            out[:] = 0
            return
        table, parser = _table(self.guide.vocabulary), self.parser
        if self._is_whole():
            out[:] = table.mask(without_number(parser))
        elif self._is_stopped():
            out[:] = table.mask(ParserState(parser.tools, no_digit=True, fresh=False))
        else:
            out[:] = 0
        if parser.mode == "answer" or (parser.mode in COPYING and parser.want in ("value", "number")):
            for token in self._digits(table):
                out[token >> 5] |= 1 << (token & 31)

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """Return the tokens that are allowed next, in order; None if there are more than `limit`."""
        out = empty_mask(len(self.guide.vocabulary))
        self.mask(out)
        tokens = mask_tokens(out, limit)
        return None if tokens is None else tuple(tokens.tolist())

    def forced(self) -> tuple[int, ...]:
        """Return the rest of a tool name that only one tool can complete."""
        parser = self.parser
        if parser.mode != "name" or self.is_ended:
            return ()
        fitting = [tool for tool in parser.tools if f"{tool}:".startswith(parser.word)]
        if len(fitting) != 1 or parser.word == f"{fitting[0]}:":
            return ()
        return self.guide.vocabulary.encode(f"{fitting[0]}:"[len(parser.word) :])

    def advance(self, token: int) -> "CopyState":
        """Return the state after one more token.

        Raises:
            InputError: the token does not exist or is not allowed here.
        """
        vocabulary = self.guide.vocabulary
        if self.is_ended or not 0 <= token < len(vocabulary):
            raise InputError("the text has ended" if self.is_ended else f"unknown token {token}")
        if token in vocabulary.end and self.is_final:
            return replace(self, tokens=(*self.tokens, token), before=self, is_ended=True)
        if token in vocabulary.special:
            raise InputError(self._refusal(token))
        state = self
        for sign in vocabulary.tokens[token].decode("latin-1"):
            following = state.advance_byte(sign)
            if following is None:
                raise InputError(self._refusal(token))
            state = following
        return replace(state, tokens=(*self.tokens, token), before=self)

    def advance_byte(self, sign: str) -> "CopyState | None":
        """Return the state after one more byte of a token; None if it is not allowed."""
        guide, known, run = self.guide, self.known, self.run
        parser = advance_byte(self.parser, sign, known.at(self.parser))
        if parser is None:
            return None
        if sign in NUMBER_CHARS and self.parser.mode not in ("sum", "conversion"):
            run += sign
        elif run:
            known, run = known.plus(run, is_result=self.is_result), ""
        size = self.size + 1
        if guide.ends_in_result and size == guide.prefix_bytes:
            parser = replace(parser, only_newline=True)
        elif len(run) > MAX_DIGITS and size > guide.prefix_bytes and parser.mode == "words":
            parser = replace(parser, no_digit=True)
        is_result = sign != "\n" and (self.is_result or self.parser.mode == "close")
        return CopyState(guide, self.tokens, parser, known, run, size, is_result, self.before)

    def rollback(self, count: int) -> "CopyState":
        """Return the state before the last `count` tokens.

        Raises:
            InputError: the text has fewer tokens.
        """
        if not 0 <= count <= len(self.tokens):
            raise InputError(f"cannot remove {count} tokens; the text has {len(self.tokens)}")
        state = self
        for _ in range(count):
            assert state.before is not None, "each token has a state before it"
            state = state.before
        return state

    def fork(self) -> "CopyState":
        """Return this state, which is immutable."""
        return self

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """Return no captures: no part of the text is named."""
        return ()

    def explain(self, token: int | None = None) -> Explanation:
        """Describe what is expected, and why `token` is not allowed."""
        tokens = self.allowed(len(self.guide.vocabulary)) or ()
        why = "" if token is None or token in tokens else self._refusal(token)
        return Explanation(expected=EXPECTED[self.parser.mode], count=len(tokens), why=why)

    def _is_whole(self) -> bool:
        """Whether the number that is being written may end."""
        parser = self.parser
        numeric = parser.mode in COPYING and parser.word[:1] in NUMERIC and parser.word
        return not numeric or parser.word in self.known.at(parser).whole

    def _is_stopped(self) -> bool:
        """Whether a number ends in a point that may be a full stop as well as a decimal point."""
        parser = self.parser
        return parser.mode == "answer" and parser.word.endswith(".") and parser.word[:-1] in self.known.at(parser).whole

    def _digits(self, table: _Table) -> Iterator[int]:
        word = self.parser.word
        if word and word[0] not in NUMERIC:
            return
        begun = self.known.at(self.parser).begun
        for sign in sorted(NUMERIC):
            if word + sign in begun:
                yield from table.signs.get(sign, ())

    def _refusal(self, token: int) -> str:
        return f"{self.guide.vocabulary.show(token)} is not allowed here; expected {EXPECTED[self.parser.mode]}"
