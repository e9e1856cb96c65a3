"""Exact unit conversion with pint, within bounds.

Only single unit names are passed to pint. Numbers, powers and the grammar around them are parsed here, because pint would
compute any power in a text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any, NoReturn

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.tools.expressions import RAISED, bounded, calculate, narrow, spell
from taiwa.tools.function_tool import tool

MAX_CHARS = 200
MAX_FACTORS = 12
MAX_POWER = 9
# `in` may be the inch, so it separates only if nothing else does.
DIVIDERS = (
    re.compile(r"\s*(?:->|→|⇒|=>)\s*|\s+(?:to|into)\s+(?=\S)", re.IGNORECASE),
    re.compile(r"\s*=\s*(?:\?\s*)?", re.IGNORECASE),
    re.compile(r"\s+(?:in|as)\s+(?=\S)", re.IGNORECASE),
)
AMOUNT = re.compile(r"\s*((?:\([^a-zA-Z]*\)|[-+\d.,/*×·÷−^ ()$]|[eE](?=[-+]?\d)|[xX](?=\s*[\d(.])|[½¼¾²³⁻⁰¹⁴-⁹])*)")
FACTOR = re.compile(
    rf"\s*(?P<sign>[*·⋅×/]|per\b|)\s*(?P<name>[^\W\d_][^\W\d]*|[°℃℉%Ω'\"])(?:(?:\s*(?:\^|\*\*)\s*)?(?P<power>[-+]?[0-9]{{1,2}})"
    rf"|(?P<raised>⁻?[{RAISED}]{{1,2}}))?"
)
LOWERED = str.maketrans("⁻" + RAISED, "-0123456789")
# Names that pint misreads (kmph: kilomile per hour) or does not know.
ALIASES = {
    "kmph": "km/h", "kmh": "km/h", "mps": "m/s", "℃": "degC", "°C": "degC", "℉": "degF", "°F": "degF", "celsius": "degC",
    "fahrenheit": "degF", "sec": "s", "secs": "s", "mins": "min", "hrs": "h", "kilometre": "km", "centimetre": "cm",
    "millimetre": "mm", "cc": "cm^3", "Kcal": "kcal", "Cal": "kcal", "lbs": "lb", "gm": "g", "gms": "g", "%": "percent",
    "時間": "h", "小时": "h", "分": "min", "分間": "min", "分钟": "min", "秒": "s",
}  # fmt: skip
SCALES = {"C": "degC", "F": "degF"}
CLOCK = re.compile(
    r"(?P<hours>[0-4]?\d):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d))?(?:\s*(?P<half>[ap])\.?m\b\.?)?(?![\d:])",
    re.IGNORECASE,
)
HOURS = re.compile(r"([0-4]?\d)[時点](?!間)(?:([0-5]?\d)分)?")
DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)")
TERM = re.compile(
    rf"\s*(?P<sign>[-+]|)\s*(?:{CLOCK.pattern}|{DATE.pattern}|(?P<amount>\d[\d.,]*|\d+\s*/\s*\d+|[½¼¾])\s*(?P<unit>[^\W\d_]+))"
    r"\s*(?:,|and\b)?",
    re.IGNORECASE,
)
"""A part of a sum: a quantity, as in `7 hours 50 minutes`, a time of day, or a date."""
TIME_OF_DAY, CALENDAR = "o'clock", "date"
STEPS = {TIME_OF_DAY: "min", CALENDAR: "day", "": ""}
"""The unit between two times of day, or two dates."""
TEMPERATURES = {"C", "F", "K", "degC", "degF", "degR", "kelvin"}
"""Between two of these, C and F are degrees, not coulomb and farad."""


@tool(isolated=False)  # bounded by construction
def unit_conversion(conversion: str) -> ToolResult:
    """Convert a quantity to another unit, such as 108 km/h to m/s, 25 degC to K, or 3.5 atm to kPa."""
    number, unit = convert(conversion)
    if write := {TIME_OF_DAY: clock, CALENDAR: calendar}.get(unit):
        return ToolResult(shown := write(number), value=shown)
    return ToolResult(f"{spell(number)} {unit}", value={"number": str(number), "unit": unit})


def sum_of_times(text: str) -> ToolResult | None:
    """Return what times of day, dates and quantities make together; None if the text is something else.

    Raises:
        ToolError: they do not make anything.
    """
    return unit_conversion(text) if _terms(_sides(text)) else None


def convert(text: str) -> tuple[Fraction, str]:
    """Convert `QUANTITY to UNIT`; return the number, exact as far as the definitions are, and the unit as written.

    A quantity can be a sum of some. Between two times of day are minutes, between two dates days; with a quantity added they are another
    one, whose unit is `TIME_OF_DAY` or `CALENDAR`, and whose number counts minutes since midnight, or days since the year 1.

    >>> convert("7 hours 50 minutes to min"), convert("17:10 - 14:35"), convert("8:45 + 8 h 35 min")
    ((Fraction(470, 1), 'min'), (Fraction(155, 1), 'min'), (Fraction(1040, 1), "o'clock"))

    Raises:
        ToolError: `syntax`, `unknown_unit`, or `dimension` if the units have different dimensions.
    """
    if len(text) > MAX_CHARS:
        raise ToolError(f"the conversion has {len(text):,} characters", code="too_long", hint=f"at most {MAX_CHARS}")
    sides = _sides(text)
    if terms := _terms(sides):
        return _sum(terms, *sides[1:])
    if len(sides) != 2 or not all(sides):
        _fail("a conversion must name a quantity and one unit")
    amount = AMOUNT.match(sides[0])
    written = amount[1].strip().rstrip("*·×") if amount else ""
    number = calculate(written) if written else Fraction(1)
    source, target = _unit(sides[0][amount.end() if amount else 0 :]), _unit(sides[1])
    if {source.lone, target.lone} <= TEMPERATURES:
        source, target = _unit(SCALES.get(source.lone, source.lone)), _unit(SCALES.get(target.lone, target.lone))
        if source.converted(number, _unit("kelvin")) < 0:
            raise ToolError(
                f"{sides[0].strip()[:60]} is below absolute zero", code="domain", hint="at least 0 K, -273.15 degC"
            )
    return bounded(source.converted(number, target)), sides[1]


def _sides(text: str) -> list[str]:
    """Return a quantity and the unit to convert it to; from one time of day, or date, to another is a difference of both."""
    plain = HOURS.sub(lambda time: f"{time[1]}:{time[2] or '0':0>2}", narrow(text)).strip()
    sides = next((parts for divider in DIVIDERS if len(parts := divider.split(plain)) > 1), [plain])
    sides = [side.strip() for side in sides]
    is_span = len(sides) == 2 and all(CLOCK.fullmatch(side) or DATE.fullmatch(side) for side in sides)
    return [f"{sides[1]} - {sides[0]}"] if is_span else sides


def clock(minutes: Fraction) -> str:
    """Write minutes since midnight as a time of day.

    >>> clock(Fraction(1040)), clock(Fraction(1450))
    ('17:20', '00:10 (the next day)')
    """
    days, second = divmod(round(minutes * 60), 24 * 60 * 60)
    shown = f"{second // 3600:02}:{second // 60 % 60:02}" + (f":{second % 60:02}" if second % 60 else "")
    passed = {0: "", 1: " (the next day)", -1: " (the day before)"}
    return shown + passed.get(days, f" ({days:+} days)")


def calendar(days: Fraction) -> str:
    """Write days since the year 1 as a date.

    Raises:
        ToolError: the days are not whole, or outside of the years 1 to 9999.
    """
    if days.denominator != 1 or not 1 <= days <= date.max.toordinal():
        raise ToolError("only whole days are added to a date, within the years 1 to 9999", code="domain")
    return date.fromordinal(int(days)).isoformat()


def _terms(sides: Sequence[str]) -> list[re.Match[str]]:
    """Return the parts of a sum of quantities, times of day or dates, of which there are two or more; none if a text is something else."""
    text, found, at = sides[0], list[re.Match[str]](), 0
    while len(sides) <= 2 and (match := TERM.match(text, at)):
        found.append(match)
        at = match.end()
    return found if len(found) > 1 and not text[at:].strip() else []


def _sum(terms: Sequence[re.Match[str]], target: str = "") -> tuple[Fraction, str]:
    kinds = {TIME_OF_DAY if term["hours"] else CALENDAR for term in terms if not term["unit"]}
    if len(kinds) > 1:
        _fail("a time of day and a date are not combined")
    kind = next(iter(kinds), "")
    if not (unit := target or STEPS[kind]):
        _fail("the unit to convert to is missing")
    wanted, total, points, sign = _unit(unit), Fraction(0), 0, 1
    for term in terms:
        sign = {"+": 1, "-": -1}.get(term["sign"], sign)
        if term["unit"]:
            part = _unit(term["unit"])
            if part.lone in TEMPERATURES:
                _fail("temperatures are not added")
            total += sign * part.converted(calculate(term["amount"]), wanted)
        else:
            points += sign
            total += sign * _unit(STEPS[kind]).converted(_point(term), wanted)
    if points not in (0, 1) or (points and target):
        _fail("two times, or two dates, are subtracted, and what is added to one has a unit")
    if kind == TIME_OF_DAY and not points and total < 0:
        raise ToolError(
            "the first time is before the second", code="domain", hint="on the next day it is later by 24:00"
        )
    return bounded(total), kind if points else unit


def _point(term: re.Match[str]) -> Fraction:
    """Return the minutes since midnight of a time of day, or the days since the year 1 of a date."""
    if term["year"]:
        try:
            return Fraction(date(int(term["year"]), int(term["month"]), int(term["day"])).toordinal())
        except ValueError:
            _fail(f"{term[0].strip()} is not a date")
    hours = int(term["hours"])
    if term["half"]:
        hours = hours % 12 + 12 * (term["half"].lower() == "p")
    return Fraction(hours * 60 + int(term["minutes"])) + Fraction(int(term["seconds"] or 0), 60)


def _fail(what: str) -> NoReturn:
    raise ToolError(what, code="syntax", hint="for example 108 km/h to m/s")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A product of powers of named units."""

    factors: tuple[tuple[str, int], ...]

    @property
    def lone(self) -> str:
        """The name, if it is a single unit; else empty."""
        return self.factors[0][0] if len(self.factors) == 1 and self.factors[0][1] == 1 else ""

    def converted(self, number: Fraction, target: "_Unit") -> Fraction:
        pint = _pint()
        try:
            quantity = pint.quantity(number, self.joined())
            converted = quantity.to(target.joined()).magnitude
        except pint.mismatch:
            # Not the message of the error: pint cannot format fractions in it.
            names = " and ".join("*".join(name for name, _ in each.factors) for each in (self, target))
            raise ToolError("the units have different dimensions", code="dimension", hint=names[:200]) from None
        except pint.faults as error:
            raise ToolError("these units cannot be converted", code="dimension", hint=type(error).__name__) from error
        return Fraction(converted)

    def joined(self) -> Any:  # noqa: ANN401  (pint's Unit, which is imported when it is needed)
        """The unit as pint knows it."""
        pint = _pint()
        whole = pint.one
        for name, power in self.factors:
            whole = whole * pint.named(name) ** power
        return whole


def _unit(text: str) -> _Unit:
    """Read `kg*m/s^2`, `m s-2`, `J/(mol K)`: one slash divides by all that follows only in parentheses."""
    text = text.strip()
    inner = re.fullmatch(r"([^()/]*)/\s*\(([^()/]*)\)", text)
    if inner is not None:
        above, below = _unit(inner[1] or "dimensionless"), _unit(inner[2])
        return _Unit(above.factors + tuple((name, -power) for name, power in below.factors))
    factors: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        match = FACTOR.match(text, at)
        if match is None or len(factors) >= MAX_FACTORS:
            _fail(f"{text[:40]!r} is not a unit")
        at = match.end()
        if match["name"] == "°" and text[at : at + 1] in ("C", "F"):
            at += 1
        factors += _factor(match, text[match.start("name") : at])
    if not factors:
        _fail("the unit is missing")
    return _Unit(tuple(factors))


def _factor(match: re.Match[str], written: str) -> list[tuple[str, int]]:
    power = int(match["power"] or (match["raised"] or "1").translate(LOWERED) or 1)
    if abs(power) > MAX_POWER:
        _fail(f"a power of {power} is too large")
    sign = -1 if match["sign"] in ("/", "per") else 1
    name = written if written in ALIASES else match["name"]
    if name in ALIASES and ALIASES[name] != name:
        return [(each, sign * power * own) for each, own in _unit(ALIASES[name]).factors]
    return [(name, sign * power)]


class _Pint:
    """The used part of pint."""

    def __init__(self) -> None:
        import pint

        library: Any = pint
        self._registry: Any = library.UnitRegistry(non_int_type=Fraction)
        self.quantity: Any = self._registry.Quantity
        self.one: Any = self._registry.Unit("dimensionless")
        self.mismatch: Any = library.DimensionalityError
        self.faults = (library.PintError, ArithmeticError, TypeError, ValueError)
        self._unknown: Any = library.UndefinedUnitError

    def named(self, name: str) -> Any:  # noqa: ANN401  (pint's Unit)
        """Return a unit by name; `faults` of the parser of pint mean that it is unknown."""
        try:
            return self._registry.Unit(name)
        except (self._unknown, AssertionError, *self.faults):
            import difflib

            near = difflib.get_close_matches(name, dir(self._registry), 1)
            hint = f"did you mean {near[0]}?" if near else "for example m, kg, s, L, mol, atm, kPa, degC, km/h"
            raise ToolError(f"unknown unit {name[:40]!r}", code="unknown_unit", hint=hint) from None


@cache
def _pint() -> _Pint:
    return _Pint()
