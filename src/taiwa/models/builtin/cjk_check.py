"""Check a calculation against its question in Japanese or Chinese: every number is used, and the result has the unit asked for."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Final, TypeAlias

from taiwa.models.builtin.cjk_quantities import CLAUSE_END, MONEY, Counted, asked_names, read_counted
from taiwa.models.builtin.copy_constraint import UNIT_KINDS
from taiwa.models.builtin.dimension_check import KINDS, NONE, Dimension, over, times

__all__ = ["has_other_kind", "is_told_otherwise", "misuses"]

DIGITS = re.compile(r"\d*\.?\d+")
HUNDRED = Fraction(100)
SCALING: Final = frozenset(map(Fraction, (7, 12, 24, 60, 1000, 3600)))
"""Numbers that turn one unit into another."""
ROUND: Final = frozenset(map(Fraction, (60, 100, 1000, 3600)))
"""Those of them that a question may give as well."""
CLOCK: Final[Dimension] = frozenset({("clock", 1)})
Kinds: TypeAlias = frozenset[Dimension] | None
"""What a value may count; None if that is not known."""
MOST = 64


class _NotAddedError(Exception):
    """Two values of different kinds are added."""


def misuses(question: str, calculation: str, constants: Collection[str]) -> bool:
    """Whether a calculation leaves out a number that the question gives, or has one from elsewhere.

    What a sentence by itself says of something else (`今日は3日です。`) may be left out.

    >>> misuses("点数は72点、88点、95点です。平均は?", "(72+88)/2", ()), misuses("72点と88点の平均は?", "(72+88)/2", ())
    (True, False)
    """
    used = Counter(map(Fraction, DIGITS.findall(calculation)))
    given = read_counted(question)
    left_out = [each for each in given if each.uses and not any(some <= used.keys() for some in each.uses)]
    if any(not _is_aside(question, each, given) for each in left_out):
        return True
    known = {number for each in given for some in (*each.uses, frozenset({each.value})) for number in some}
    known |= {Fraction(1), *map(Fraction, constants)}
    known |= {HUNDRED} if any(each.is_percent for each in given) or asked_names(question).is_share else set()
    known |= {Fraction(0)} if any(each.is_clock for each in given) else set()
    known |= {Fraction(1, 2), Fraction(2)} if "半" in question else set()
    count = sum(max(map(len, each.uses), default=1) for each in given)  # by which a sum is divided for a mean
    return bool(given) and not used.keys() <= known | {Fraction(count - 1), Fraction(count)}


def _is_aside(question: str, number: Counted, given: Iterable[Counted]) -> bool:
    """Whether a number stands in a sentence by itself, and nothing else is counted by its unit."""
    start = max((found.end() for found in CLAUSE_END.finditer(question, 0, number.start)), default=0)
    behind = CLAUSE_END.search(question, number.end)
    end = behind.start() if behind is not None else len(question)
    others = [each for each in given if each is not number and each.uses]
    units = {unit for unit, _ in number.names}
    alike = {unit for each in others for unit, _ in each.names} | {unit for unit, _ in asked_names(question).names}
    is_last = not question[end:].strip("。!?！？;； ")
    return (
        not is_last
        and units.isdisjoint(alike)
        and not number.is_percent
        and not any(start <= each.start < end for each in others)
    )


def has_other_kind(question: str, calculation: str) -> bool:
    """Whether the result of a calculation counts something else than what the question asks for.

    >>> has_other_kind("父は41歳、息子は12歳です。何歳差ですか?", "41*12"), has_other_kind("父は41歳、息子は12歳です。何歳差ですか?", "41-12")
    (True, False)
    """
    asked = asked_names(question)
    try:
        found = _result(question, calculation)
    except _NotAddedError:
        return True
    if found is None:
        return False
    if found and all(("clock", 1) in each for each in found):
        return True
    wanted = {NONE} if asked.is_share else _wanted(question, asked.names)
    if not wanted:
        return False
    if _scales(question, calculation):
        wanted = {*map(_coarse, wanted)}
    loose = {unit for unit in GENERIC if sum((unit, "") in each.names for each in read_counted(question)) > 1}
    return not any(_agrees(each, one, loose) for each in found for one in wanted)


def is_told_otherwise(question: str, before_calculation: str, unit: str) -> bool:
    """Whether an answer is told in a unit that neither the question asks for nor the calculation has as its result."""
    kind = UNIT_KINDS.get(_UNIT_SPELT.get(unit, unit))
    currency = _currency(unit)
    if kind is None and not currency:
        return False
    asked = _wanted(question, asked_names(question).names)
    try:
        found = _result(question, before_calculation)
    except _NotAddedError:
        return True
    told = frozenset({(currency, 1)}) if currency else _coarse(_fine(_UNIT_SPELT.get(unit, unit)))
    if asked and all(_is_hard(each) for each in asked):
        return not any(_coarse(each) == told for each in asked)
    if found is None or NONE in found:
        return False
    return not any(_agrees(_coarse(each), told) for each in found)


SPELT_OUT: Final[Mapping[str, str]] = {"mph": "miles/h"}
"""Units that are others in their names."""
_UNIT_SPELT: Final[Mapping[str, str]] = {"hours": "h", "minutes": "min", "seconds": "s", "°C": "degC", "°F": "degF"}


def _currency(unit: str) -> str:
    return next((each for each in MONEY.values() if unit in (each, f"{each}s")), "")


def _wanted(question: str, names: Iterable[tuple[str, str]]) -> set[Dimension]:
    """Return the dimensions that are asked for, as far as numbers of the question have their units."""
    units = {unit for each in read_counted(question) for name in each.names for unit in name}
    return {
        over(_fine(unit), _fine(by)) if by else _fine(unit)
        for unit, by in names
        if unit in units or UNIT_KINDS.get(unit) or unit in MONEY.values()
    }


def _scales(question: str, calculation: str) -> bool:
    """Whether a calculation has a number that turns one unit into another, and that the question does not give."""
    given = {each.value for each in read_counted(question)}
    return any(number not in given for number in map(Fraction, DIGITS.findall(calculation)) if number in SCALING)


@cache
def _fine(unit: str) -> Dimension:
    """Return the dimension of a unit with units as bases: `km/h` is `km h-1`, and `cm^2` is `cm2`."""
    if not unit:
        return NONE
    unit = SPELT_OUT.get(unit, unit)
    one, slash, other = unit.partition("/")
    if slash:
        return over(_fine(one), _fine(other))
    base, raised, power = unit.partition("^")
    return frozenset({(base, int(power))}) if raised and power.isdecimal() else frozenset({(unit, 1)})


def _coarse(dimension: Dimension) -> Dimension:
    """Return a dimension with the base quantities of physics instead of units."""
    found = NONE
    for base, power in dimension:
        kind = KINDS.get(UNIT_KINDS.get(base, ""), "")
        own = frozenset((each[0], int(each[1:] or 1)) for each in kind.split()) if kind else frozenset({(base, 1)})
        for _ in range(abs(power)):
            found = times(found, own, 1 if power > 0 else -1)
    return found


@cache
def _hard() -> frozenset[str]:
    """The bases that are units or money, and not things that are counted."""
    bases = {base for unit in UNIT_KINDS for base, _ in _fine(unit)}
    return frozenset(
        bases
        | {*MONEY.values()}
        | {"mol", "clock"}
        | {letter for kind in KINDS.values() for letter in re.findall("[A-Z]", kind)}
    )


def _is_hard(dimension: Dimension) -> bool:
    return all(base in _hard() for base, _ in dimension)


GENERIC: Final = frozenset("个個箇つこ")
"""Counters of anything: where two numbers have one, these may be different things."""


def _agrees(found: Dimension, wanted: Dimension, loose: Collection[str] = ()) -> bool:
    """Whether two dimensions are the same in units and in the thing that is wanted; what else is counted is not always told."""
    things = {base: power for base, power in wanted if base not in _hard() and base not in loose}
    return all(dict(found).get(base) == power for base, power in things.items()) and (
        {each for each in found if each[0] in _hard()} == {each for each in wanted if each[0] in _hard()}
    )


def _numbers(question: str) -> Mapping[Fraction, Kinds]:
    """Return what the numbers of a question may count."""
    found: dict[Fraction, Kinds] = {}
    for each in read_counted(question):
        kinds: Kinds = (
            frozenset({NONE})
            if each.is_percent
            else frozenset({CLOCK})
            if each.is_clock
            else frozenset(over(_fine(unit), _fine(by)) for unit, by in each.names) or None
        )
        for number in {each.value, *(number for some in each.uses for number in some)}:
            known = found.get(number, frozenset())
            found[number] = None if kinds is None or known is None else kinds | known
    return found


def _result(question: str, calculation: str) -> Kinds:
    """Return what the result of a calculation may count."""
    try:
        tree = ast.parse(calculation.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    numbers = _numbers(question)
    if _scales(question, calculation):
        numbers = {number: kinds and frozenset(map(_coarse, kinds)) for number, kinds in numbers.items()}
    return _value(tree, numbers)


def _value(tree: ast.expr, numbers: Mapping[Fraction, Kinds]) -> Kinds:
    match tree:
        case ast.Constant(value=int() | float()):
            number = Fraction(str(tree.value))
            kinds = numbers.get(number, frozenset({NONE}))
            return kinds if kinds is None or number not in ROUND else kinds | {NONE}
        case ast.UnaryOp(operand=inner):
            return _value(inner, numbers)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            left, right = _value(tree.left, numbers), _value(tree.right, numbers)
            if isinstance(tree.op, ast.Sub) and left is not None and CLOCK in left:
                return None
            return _sum(left, right)
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            left, right = _value(tree.left, numbers), _value(tree.right, numbers)
            if left is None or right is None or len(left) * len(right) > MOST:
                return None
            join = times if isinstance(tree.op, ast.Mult) else over
            return frozenset(join(one, other) for one in left for other in right)
        case ast.Call(func=ast.Name(id="round"), args=[inner, *_]):
            return _value(inner, numbers)
        case _:
            return None


def _sum(left: Kinds, right: Kinds) -> Kinds:
    if left is None or right is None:
        return None
    both = left & right
    if both:
        return both
    if NONE not in left | right and all(_is_hard(each) for each in left | right):
        raise _NotAddedError
    return None
