"""Dimensional analysis of a calculation: what its result counts must be what the question asks for.

A solution of everyday quantities says what it works out, `Time is work divided by power.`, and calculates. The question must give
what is divided, metres are not added to seconds, and pages by pages a week are weeks.
"""

import ast
import re
from contextlib import suppress
from fractions import Fraction
from typing import Final, TypeAlias

from taiwa.models.builtin.quantity_reading import (
    COST,
    CURRENCIES,
    NONE,
    Dimension,
    Quantities,
    asked_dimensions,
    over,
    read_quantities,
    read_unit,
    stem,
    times,
)

__all__ = ["has_other_dimension", "is_other_unit", "lacks_quantity"]

MEASURED: Final = {
    "speed|velocity": "L T-1", "distance|length|extension|height|wavelength|displacement": "L", "time|period": "T", "frequency": "T-1",
    "force|weight": "M L T-2", "mass": "M", "acceleration": "L T-2", "work|energy|heat": "M L2 T-2", "power": "M L2 T-3",
    "pressure": "M L-1 T-2", "area": "L2", "volume|litres": "L3", "density": "M L-3", "momentum": "M L T-1", "current": "I",
    "voltage": "M L2 T-3 I-1", "resistance": "M L2 T-3 I-2", "charge": "I T", "moles": "Q", "concentration": "Q L-3",
}  # fmt: skip
"""Quantities that a solution names, and their dimensions."""
NAMES: Final = {
    name: frozenset((each[0], int(each[1:] or 1)) for each in text.split())
    for names, text in MEASURED.items()
    for name in names.split("|")
}
NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b", re.IGNORECASE)
SAYING = re.compile(
    rf"(?:From rest, )?(?P<result>{'|'.join(NAMES)}) (?:is|are) (?:(?:half|the root) of )?(?:twice the )?(?P<parts>[^.]*(?:\d\.\d[^.]*)?)\.\n?",
    re.IGNORECASE,
)
"""A sentence that says what is calculated from what."""
SINGLE = re.compile(r"\b(?:an?|one|half an?|the) (?=[a-z])", re.IGNORECASE)
SCALING = re.compile(r"\*(?:5/18|18/5)(?![\d.])")
"""From one unit of speed to another."""
CONSTANTS: Final = {
    **dict.fromkeys(map(Fraction, (2, 3, 4, 6, 10, 12, 24, 60, 100, 1000, 3600)), frozenset({NONE})),
    Fraction("9.8"): frozenset({NONE, frozenset({("L", 1), ("T", -2)})}),
    Fraction("22.4"): frozenset({NONE, frozenset({("L", 3), ("Q", -1)})}),
}
ONE_CALL = re.compile(r"(?:[^\n]*\n)?<<calculator: (?P<calculation>[^\n]*)>> [^\n]*\n")
SCALES = frozenset((60, 100, 1000, 3600))
MOST, HIGHEST = 64, 4
Dimensions: TypeAlias = frozenset[Dimension] | None
"""What a value may count; None if that is not known."""


class _NotAddedError(Exception):
    """Two values of different kinds are added."""


def lacks_quantity(question: str, saying: str) -> bool:
    """Whether a sentence works with a quantity that the question does not give.

    >>> lacks_quantity("What is the density of 20 g in 4 cm^3?", "Volume is mass divided by density.")
    True
    """
    said = SAYING.fullmatch(saying)
    given = [each for each in read_quantities(question).mentions if each.value]
    known = {dimension for each in given for dimension in each.dimensions if _is_physical(dimension)}
    if said is None or not given or any(known.isdisjoint(each.dimensions) for each in given):
        return False
    known.update(unit[0] for each in SINGLE.finditer(question) if (unit := read_unit(question, each.end())) is not None)
    return any(NAMES[name.lower()] not in known for name in NAME.findall(said["parts"]))


def has_other_dimension(question: str, before: str, calculation: str) -> bool:
    """Whether a calculation adds what cannot be added, or gives something else than what is asked for.

    >>> has_other_dimension("A jar holds 4 eggs. How many jars do 8 eggs need?", "Divide.\\n", "4/8")
    True
    """
    quantities = read_quantities(question)
    try:
        found = _result(calculation, quantities)
    except _NotAddedError:
        return True
    if not found:
        return False
    said = SAYING.fullmatch(before)
    if said is not None:
        return NAMES[said["result"].lower()] not in found and any(_is_physical(each) for each in found)
    asked = [each for each in asked_dimensions(question) if _is_known(each, quantities) and ("K", 1) not in each]
    if asked:
        return not any(_agrees(each, wanted) for each in found for wanted in asked)
    currencies = {
        base for each in quantities.mentions for dimension in each.dimensions for base, _ in dimension
    } & CURRENCIES
    if (
        len(currencies) == 1
        and "round" not in calculation
        and COST.search(question)
        and not [*asked_dimensions(question)]
    ):
        return not any(dict(each).get(*currencies) == 1 for each in found)
    return False


def is_other_unit(question: str, before: str, unit: str) -> bool:
    """Whether an answer is told in a unit of something else than what is calculated, or names another thing than is asked for.

    >>> is_other_unit("The side of a cube is 3 cm. Its volume?", "It is its edge cubed.\n<<calculator: 3^3>> 27\n", "cm")
    True
    """
    read = read_unit(unit, 0)
    quantities = read_quantities(question)
    asked = [*asked_dimensions(question, by_unit=False)]
    if read is None or read[1] != len(unit):
        things = {base for each in quantities.mentions for dimension in each.dimensions for base, _ in dimension}
        word = stem(unit)
        return len(asked) == 1 and word in things and all(base != word and base in things for base, _ in asked[0])
    call = ONE_CALL.fullmatch(before)
    moles = any(base == "Q" for each in quantities.mentions for dimension in each.dimensions for base, _ in dimension)
    if moles and not SAYING.match(before):
        return False
    with suppress(_NotAddedError):
        found = _result(call["calculation"], quantities) if call is not None else None
        return found is not None and any(map(_is_physical, found)) and NONE not in found and read[0] not in found
    return False


def _result(calculation: str, quantities: Quantities) -> Dimensions:
    """Return what the result of a calculation may count."""
    if SCALING.search(calculation) and any(each.value in (5, 18) for each in quantities.mentions):
        return None
    try:
        tree = ast.parse(SCALING.sub("", calculation).replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _value(tree, quantities)


def _is_physical(dimension: Dimension) -> bool:
    return all(base.isupper() for base, _ in dimension)


def _is_known(wanted: Dimension, quantities: Quantities) -> bool:
    """Whether what is asked for stands with a number of the question, or is a unit."""
    things = {base for each in quantities.mentions for dimension in each.dimensions for base, _ in dimension}
    return all(base.isupper() or base in things for base, _ in wanted)


def _agrees(found: Dimension, wanted: Dimension) -> bool:
    """Whether two dimensions are the same in units and in the thing that is wanted; what else is counted is not always told."""
    things = {base: power for base, power in wanted if not base.isupper()}
    return all(dict(found).get(base) == power for base, power in things.items()) and (
        {each for each in found if each[0].isupper()} == {each for each in wanted if each[0].isupper()}
    )


def _value(tree: ast.expr, quantities: Quantities) -> Dimensions:
    """Return what an expression may count."""
    match tree:
        case ast.Constant(value=int() | float()):
            return _number(Fraction(str(tree.value)), quantities)
        case ast.UnaryOp(operand=inner):
            return _value(inner, quantities)
        case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=int(power))):
            found = _value(base, quantities)
            return None if found is None or power > HIGHEST else frozenset(_power(each, power) for each in found)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return _sum(_value(tree.left, quantities), _value(tree.right, quantities))
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            left, right = _value(tree.left, quantities), _value(tree.right, quantities)
            if left is None or right is None or len(left) * len(right) > MOST:
                return None
            join = times if isinstance(tree.op, ast.Mult) else over
            return frozenset(join(one, other) for one in left for other in right)
        case ast.Call(func=ast.Name(id="round"), args=[inner, *_]):
            return _value(inner, quantities)
        case ast.Name(id="pi"):
            return frozenset({NONE})
        case _:
            return None


def _power(dimension: Dimension, power: int) -> Dimension:
    return frozenset((base, own * power) for base, own in dimension)


def _number(number: Fraction, quantities: Quantities) -> Dimensions:
    found = [each for each in quantities.mentions if each.value == number]
    if not found:
        return CONSTANTS.get(number)
    if not all(each.dimensions for each in found):
        return None
    return frozenset(
        (
            *(dimension for each in found for dimension in each.dimensions),
            *(CONSTANTS[number] if number in SCALES else ()),
        )
    )


def _sum(left: Dimensions, right: Dimensions) -> Dimensions:
    if left is None or right is None:
        return None
    both = left & right
    if both:
        return both
    if NONE not in left | right and all(_is_physical(each) for each in left | right):
        raise _NotAddedError
    return None
