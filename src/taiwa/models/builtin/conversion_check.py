"""The conversion that a question asks for, by the table of units and their names in English, Japanese and Chinese.

The network tells a conversion from other questions; which units are meant, the table decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from taiwa.models.builtin.copy_constraint import CONVERTED, NUMERAL, UNIT_KINDS, numbers_in_place, read_numeral

__all__ = ["CALLED", "Conversion", "decided_line", "read_conversion"]

CALLED: Mapping[str, tuple[str, ...]] = {
    "feet": ("foot",), "inches": ("inch",), "degC": ("摂氏", "摄氏", "度"), "degF": ("華氏", "华氏"), "km/h": ("kmph", "kph", "時速", "毎時", "时速", "每小时"),
    "m/s": ("mps", "秒速", "毎秒", "每秒"), "tonnes": ("t",), "m/min": ("分速", "毎分", "每分"),
}  # fmt: skip
"""Other names of some units."""
SHOWN: Mapping[str, str] = {"degC": "°C", "degF": "°F"}
"""Units of answers that are written in another way than the converter reads them."""
CONVERTING = frozenset((
    "Convert.", "I do not know this unit: I cannot convert it.", "These units measure different things: I cannot convert them.",
    "A number is missing: I cannot work this out.",
))  # fmt: skip
"""First lines of solutions that the table decides where it has both units."""
INCHES = re.compile(r"\s*(?:[?.,=]|(?:to|into|is|are|make)\b|\Z)", re.IGNORECASE)
"""What follows `in` where it is a unit."""
SCALE = re.compile(r"([摂華摄华]氏)\s?(-?[\d.]+)\s?度")
NUMBER = re.compile(r"(?<![\d.A-Za-z^])(?<!\d,)-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)(?![\d,]*\d)")
BELOW = re.compile(r"(?:\b(?:minus|negative) |マイナス|零下|氷点下|负)(?=\d)", re.IGNORECASE)
SPOON = re.compile(r"([大小]さじ)\s?([\d.]+)\s?杯?")
CALL = re.compile(r"<<unit_conversion: .*>>\Z")
RESULT = re.compile(r"<<unit_conversion: [^\n]*>> (-?[\d.]+) [^\n]*\n\Z")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A number with its unit, and the unit that it is converted to, as the converter reads them."""

    number: str
    source: str
    target: str

    @property
    def call(self) -> str:
        """The call of the converter."""
        return f"<<unit_conversion: {self.number} {self.source} to {self.target}>>"


@cache
def _names() -> tuple[Mapping[str, tuple[str, ...]], re.Pattern[str]]:
    """Return the units that each name may mean, and a pattern of the names, long ones first."""
    found: dict[str, tuple[str, ...]] = {}
    for unit, names in CONVERTED.items():
        for name in (unit, *names, *CALLED.get(unit, ())):
            singular = name.removesuffix("s") if name.isascii() and len(name) > 3 else name
            for each in {name, singular}:
                key = each if len(each) <= 3 else each.lower()
                found[key] = (*found.get(key, ()), unit) if unit not in found.get(key, ()) else found[key]
    spelt = sorted(found, key=lambda name: (-len(name), name))
    parts = [
        rf"(?<![A-Za-z'’]){re.escape(name)}(?![A-Za-z/^])" if name.isascii() else re.escape(name) for name in spelt
    ]
    return found, re.compile(
        "|".join(f"(?i:{part})" if len(name) > 3 else part for name, part in zip(spelt, parts, strict=True))
    )


def _units(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the units that a text names, each with its place; of several with one name, all."""
    names, pattern = _names()
    for found in pattern.finditer(text):
        key = found[0] if len(found[0]) <= 3 else found[0].lower()
        if key != "in" or INCHES.match(text, found.end()):
            yield found.start(), found.end(), names[key]


def _spelt(text: str, units: Sequence[int]) -> Iterator[tuple[int, Fraction]]:
    """Yield the ends and the values of the numbers in words or numerals; these end where a unit begins, `八千克`."""
    if text.isascii():
        yield from ((end, value) for _, end, value in numbers_in_place(text)[0])
    else:
        for found in NUMERAL.finditer(text):
            end = min((start for start in units if found.start() <= start < found.end()), default=found.end())
            if end > found.start():
                yield end, Fraction(read_numeral(text[found.start() : end]))


@lru_cache(256)
def read_conversion(question: str) -> Conversion | None:
    """Return the conversion of a question that has one number with its unit, and one other unit of the same kind; else None.

    >>> read_conversion("3ガロンは何リットルですか?")
    Conversion(number='3', source='gallons', target='L')
    >>> read_conversion("How many hours are 3 gallons?")
    """
    text = BELOW.sub("-", question)
    text = SPOON.sub(
        r"\2\1", SCALE.sub(lambda found: f"{found[2]}{'℃' if found[1] in ('摂氏', '摄氏') else '°F'}", text)
    )
    units = list(_units(text))
    numbers = [(found.end(), found[0].replace(",", "")) for found in NUMBER.finditer(text) if found[0]]
    if not numbers:
        numbers = [(end, str(value)) for end, value in _spelt(text, [each[0] for each in units])]
    if len(numbers) != 1:
        return None
    given = [
        (number, each)
        for end, number in numbers
        for each in units
        if end <= each[0] and not text[end : each[0]].strip(" -")
    ]
    if len(given) != 1:
        return None
    number, source = given[0]
    others = {unit for each in units if each is not source for unit in each[2]} - {*source[2]}
    pairs = {(one, other) for one in source[2] for other in others if UNIT_KINDS[one] == UNIT_KINDS[other]}
    named = [each for each in units if each is not source and not {*each[2]} <= {*source[2]}]
    if len(pairs) != 1 or len({each[2] for each in named}) != 1:
        return None
    return Conversion(number, *pairs.pop())


def decided_line(question: str, before: str, line: str) -> str:
    """Return a line of a conversion as the table of units decides it; '' for any other line.

    >>> decided_line("3ガロンは何リットルですか?", "Convert.\\n", "<<unit_conversion: 3 gallons to dL>>")
    '<<unit_conversion: 3 gallons to L>>'
    """
    conversion = read_conversion(question) if line in CONVERTING or "unit_conversion" in line + before else None
    if conversion is None:
        return ""
    if not before:
        return "Convert." if line in CONVERTING else ""
    if CALL.match(line):
        return conversion.call if before == "Convert.\n" else ""
    result = RESULT.search(before) if before.startswith(f"Convert.\n{conversion.call}") else None
    return (
        ""
        if result is None
        else f"Therefore, the answer is {result[1]} {SHOWN.get(conversion.target, conversion.target)}."
    )
