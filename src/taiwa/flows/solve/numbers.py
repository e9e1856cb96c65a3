"""Read the number that a line of text states as its answer."""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

MAX_LINE_CHARS = 10_000
"""Characters at the end of the last line that are read."""

SIGNS = {
    0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2013: "-", 0x2212: "-", 0xFE63: "-", 0xFF0D: "-", 0xFF0B: "+", 0xFE62: "+",
    0xFF0E: ".", 0xFF0C: ",", 0xFF0F: "/", 0x2044: "/", 0x2215: "/", 0x066B: ".", 0x066C: ",", 0xFF3E: "^",
}  # fmt: skip

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

HALVES = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"

SCALES: Mapping[str, int] = {
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "百": 10**2, "千": 10**3, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12,
}  # fmt: skip

WIDE_SCALES = "百千万萬億亿兆"

GROUP_SCALE = 10**3
"""A scale up to this multiplies what stands before it within its group: 2千5百万 is (2000 + 500) × 10,000."""

FRACTION_OF_LATEX = re.compile(r"\\[dt]?frac\{\s*([0-9.,]+)\s*\}\{\s*([0-9.,]+)\s*\}")

COMMA = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|[\u00a0\u2009\u202f'’])(?=[0-9]{3}(?![0-9]))")

SPACED = re.compile(r"(?<![0-9])[0-9]{1,3}(?: [0-9]{3}){2,}(?![0-9])")

PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))(?:\.[0-9]+)?"
# Not \w: in "答えは25" the number follows a letter; in "H2O" it belongs to one, and in "mol-1" and "m^2" to a unit.
NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_^.])(?<![A-Za-z)\]][-+])(?P<sign>[-+]?)"
    rf"(?P<number>{PLAIN})"
    rf"(?:[eE](?P<short>[-+]?[0-9]+)"
    rf"|\s?(?:[×x*·]|\\times|\\cdot)\s?10(?:\^[{{(]?\s?(?P<power>[-+]?[0-9]+)[}})]?|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+))"
    rf"|(?P<mixed>\s[0-9]+/[0-9]+(?![0-9/]))|\s?/\s?(?P<below>[0-9]+)(?![0-9/]))?"
    rf"(?P<scales>\s?(?:thousand|million|billion|trillion)\b|[{WIDE_SCALES}](?:[0-9,.]*[{WIDE_SCALES}])*(?:[0-9]+)?)?"
)

PART_OF_SCALE = re.compile(rf"({PLAIN})?\s?({'|'.join(SCALES)})|({PLAIN})")


def last_number(text: str) -> str:
    """Return the last number of the last non-blank line, without thousands separators; '' for none. Digits of any script count.

    >>> last_number("2 x 612.5 = 1,225.00 yen")
    '1225.00'
    >>> last_number("答えは２５個です。"), last_number("It is 7/27 of it."), last_number("−3.2 × 10⁻⁵ mol")
    ('25', '7/27', '-3.2e-5')
    """
    lines = text.rstrip().splitlines()
    line = _plain(lines[-1][-MAX_LINE_CHARS:]) if lines else ""
    found = list(NUMBER.finditer(line))
    return _written(found[-1]) if found else ""


def _plain(line: str) -> str:
    """Write the line in ASCII digits and signs."""
    line = line.translate(SIGNS)
    line = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in line)
    line = re.sub(rf"(?<=[0-9])\s?([{HALVES}])", lambda match: " " + _fraction(match[1]), line)
    line = re.sub(f"[{HALVES}]", lambda match: _fraction(match[0]), line)
    line = SPACED.sub(lambda match: match[0].replace(" ", ""), COMMA.sub(",", line))
    return FRACTION_OF_LATEX.sub(r"\1/\2", line)


def _fraction(char: str) -> str:
    return unicodedata.normalize("NFKC", char).replace("\u2044", "/")


def _written(match: re.Match[str]) -> str:
    sign, number = match["sign"].replace("+", ""), match["number"].replace(",", "")
    power = match["short"] or match["power"] or (match["raised"] or "").translate(RAISED)
    if match["scales"]:
        return sign + _scaled(match["number"] + match["scales"])
    if power:
        return f"{sign}{number}e{power.removeprefix('+')}"
    if match["below"]:
        return f"{sign}{number}/{match['below']}"
    if match["mixed"]:
        over, _, below = match["mixed"].strip().partition("/")
        if number.isdecimal() and int(below):
            return f"{sign}{int(number) + Fraction(int(over), int(below))}"
    return sign + number


def _scaled(text: str) -> str:
    """Write out the scale of a number: 1億2000万 is 120000000, and 1.5 million 1500000."""
    total = group = Decimal(0)
    for number, scale, rest in PART_OF_SCALE.findall(text):
        factor = SCALES.get(scale, 1)
        here = Decimal((number or rest or "0").replace(",", ""))
        if factor > GROUP_SCALE:
            total, group = total + (group + here) * factor, Decimal(0)
        else:
            group += here * factor
    total += group
    return f"{total:f}".rstrip("0").rstrip(".") if total % 1 else f"{total:.0f}"
