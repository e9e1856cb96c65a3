"""Dimensional analysis: the quantities of a question, and the dimension that the result of a calculation must have.

A dimension is a product of powers: of base quantities for units (`L T-1` for a speed), and of nouns for counted things (`page`,
`page week-1`). A number often has more than one possible dimension: in `one pen is 3 euros` it is 3 euros or 3 euros per pen. A
solution of everyday quantities states what it computes, `Time is work divided by power.`, and calculates. The check requires that
the question gives the dividend, that metres are not added to seconds, and that pages divided by pages per week are weeks.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Final, TypeAlias

from taiwa.models.builtin.copy_constraint import CONVERTED, UNIT_KINDS, numbers_in_place

__all__ = [
    "NONE",
    "Dimension",
    "Dimensions",
    "Mention",
    "NotAddedError",
    "Quantities",
    "asked_dimensions",
    "has_other_dimension",
    "is_other_unit",
    "is_plural",
    "lacks_quantity",
    "over",
    "read_quantities",
    "read_unit",
    "result_dimensions",
    "stem",
    "times",
]


Dimension: TypeAlias = frozenset[tuple[str, int]]
NONE: Final[Dimension] = frozenset()

KINDS: Final = {
    "length": "L", "mass": "M", "volume": "L3", "time": "T", "speed": "L T-1", "energy": "M L2 T-2", "pressure": "M L-1 T-2",
    "area": "L2", "power": "M L2 T-3", "data": "B", "temperature": "K",
}  # fmt: skip
"""The dimensions of the convertible units."""
PHYSICS: Final = {
    "M L T-2": "N newton newtons", "M L2 T-3 I-1": "V volt volts", "I": "A amp amps ampere amperes", "I T": "coulomb coulombs",
    "M L2 T-3 I-2": "ohm ohms Ω", "T-1": "Hz hertz", "Q": "mol mols mole moles", "Q L-3": "M molar",
    "L": "kms metre meter centimeter centimeters centimetre kilometer kilometre foot inch", "T": "hr hour secs second month months year years",
    "L T-1": "kmph kph mps", "L3": "liter litre cc", "M": "gram gm kilo",
}  # fmt: skip
"""Other names of units."""
JOINT = r"\s*(?:/|\*|·|\bper\b|\ban?\b|\beach\b|\bevery\b)\s*(?:1 |one )?"
DIVIDING = re.compile(
    r"\s*(?:of [A-Za-z]+ )?(?:/|\b(?:for |in |to |into |from )?(?:per|each|every|an?|one|1|to the)\b)\s*(?:1 |one )?(?=[A-Za-z])",
    re.IGNORECASE,
)
DEFINITE = re.compile(r"\s*(?:of \w+ )?(?:/|(?:for )?(?:per|each|every)\b)", re.IGNORECASE)
AN = re.compile(r"\s*(?:of \w+ )?an?\b", re.IGNORECASE)
POWER = re.compile(r"\^?(-?[234])(?!\d|\.\d)|([²³])| (squared|cubed)\b", re.IGNORECASE)
SHAPED = re.compile(r"(square|sq|cubic)\.? ", re.IGNORECASE)
WORD = re.compile(r"[A-Za-zµΩ°€$£%]+")
THING = re.compile(r"\s+((?:[A-Za-z]+ ?){1,4})")
NEXT_TO = frozenset(
    """a an the of in on at to for from with by and or but if is are was were be been has have had do does did how what when which
    who then each every per more less fewer other others another them it he she they his her their its left away off now so than
    as that this these those times need needs take takes cost costs long old wide high tall far will can could would per cent percent
    answer long""".split()
)
UNEVEN: Final = {
    "men": "man", "women": "woman", "children": "child", "people": "person", "feet": "foot", "geese": "goose", "mice": "mouse",
    "teeth": "tooth", "loaves": "loaf", "knives": "knife", "shelves": "shelf", "pence": "penny",
}  # fmt: skip
MONEY: Final = {"$": "dollar", "€": "euro", "£": "pound", "rs": "rupee"}
CURRENCIES: Final = frozenset(
    "dollar euro pound rupee yen cent peso rand won krona krone kroner franc yuan lira real shilling ruble coin zloty baht".split()
)
PERCENT = re.compile(r"\s?(?:%|per ?cent\b|pct\b)", re.IGNORECASE)
OF_ONE = re.compile(
    r"\b(?:one|an?|1|each|every|per)\s+((?:[A-Za-z]+ ){1,2}?)(?:[a-z]+ ?){0,4}(?:=|:)?\s*[$€£]?(?:rs\.? )?\Z",
    re.IGNORECASE,
)
HOW_MANY = re.compile(r"\b(?:how (?:many|much)|(?:the|a|what) number of)\s+((?:[A-Za-z]+[ ,.?!]*){1,3})", re.IGNORECASE)
IN_UNIT = re.compile(r"(?:\b(?:in|into|to|as)\s+|\()(?=[A-Za-z])", re.IGNORECASE)
PLURAL = re.compile(r"[a-z]+s\b", re.IGNORECASE)
EVERY = re.compile(
    r"\b(?:an?|per|each|every) (?:day|week|hour|minute|month|year|second)\b|daily|weekly|hourly|monthly", re.IGNORECASE
)
COST = re.compile(
    r"\b(?:cost|price|pay|pays|paid|owe|owes|spend|how much)\b(?!.*\bhow many\b)(?<!how many )", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A number of a question; `dimensions` are the possible ones, empty if unknown."""

    start: int
    end: int
    value: Fraction
    dimensions: frozenset[Dimension]
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class Quantities:
    """The numbers of a question, and those that its words stand for: `half`, `an hour and a half`."""

    mentions: tuple[Mention, ...]
    words: frozenset[Fraction]


def times(one: Dimension, other: Dimension, sign: int = 1) -> Dimension:
    """Return the dimension of a product, or of a quotient if `sign` is -1."""
    powers = dict(one)
    for base, power in other:
        powers[base] = powers.get(base, 0) + sign * power
    return frozenset((base, power) for base, power in powers.items() if power)


def over(one: Dimension, other: Dimension) -> Dimension:
    """Return the dimension of a quotient."""
    return times(one, other, -1)


def _dimension(text: str) -> Dimension:
    """Parse `M L2 T-2`."""
    return frozenset((each[0], int(each[1:] or 1)) for each in text.split())


@cache
def _units() -> Mapping[str, Dimension]:
    """Return the names of units and their dimensions: short names case-sensitive, long ones in lower case."""
    found: dict[str, Dimension] = {}
    for unit, names in CONVERTED.items():
        dimension = _dimension(KINDS[UNIT_KINDS[unit]])
        for name in (unit, *names):
            if name.isascii() and name.isalpha():
                for each in (name, name.removesuffix("s") if len(name) > 3 else name):
                    found[each if len(each) <= 2 else each.lower()] = dimension
    for text, names_ in PHYSICS.items():
        for name in names_.split():
            found[name if len(name) <= 2 else name.lower()] = _dimension(text)
    for (
        ambiguous
    ) in "C F in pound pounds stone bar cup cups tablespoon tablespoons tbsp teaspoon teaspoons tsp".split():
        found.pop(ambiguous, None)
    return found


def _factor(text: str, at: int) -> tuple[Dimension, int] | None:
    """Parse one unit with its power."""
    shaped = SHAPED.match(text, at)
    word = WORD.match(text, shaped.end() if shaped else at)
    if word is None:
        return None
    name = word[0]
    dimension = _units().get(name) if len(name) <= 2 else _units().get(name.lower())
    if dimension is None:
        return None
    power, end = 1, word.end()
    if shaped is not None:
        power = 3 if shaped[1].lower() == "cubic" else 2
    elif (raised := POWER.match(text, end)) is not None and (len(name) <= 2 or raised[3] or raised[0][0] == "^"):
        power = int(raised[1] or 0) or (3 if (raised[2] or raised[3]) in ("³", "cubed") else 2)
        end = raised.end()
    return frozenset((base, own * power) for base, own in dimension), end


def read_unit(text: str, at: int) -> tuple[Dimension, int] | None:
    """Parse a unit at a position, `kg m/s^2` or `metres per second`: its dimension and its end; None if there is none."""
    first = _factor(text, at)
    if first is None:
        return None
    dimension, end = first
    while True:
        joint = re.compile(JOINT, re.IGNORECASE).match(text, end) or re.compile(r" (?=(?:m|s)\b)").match(text, end)
        following = _factor(text, joint.end()) if joint is not None else None
        if joint is None or following is None:
            return dimension, end
        dimension = times(dimension, following[0], 1 if joint[0].strip() in ("*", "·", "") else -1)
        end = following[1]


def stem(word: str) -> str:
    """Return the singular of a noun, guessed from its spelling."""
    word = word.lower()
    if word in UNEVEN:
        return UNEVEN[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return re.sub(r"(?<=[sxz])es$|(?<=[cs]h)es$|(?<=[^s])s$", "", word) if len(word) > 3 else word


def is_plural(word: str) -> bool:
    """Return true if a noun is plural, guessed from its spelling."""
    return word.lower() in UNEVEN or (len(word) > 3 and word.lower().endswith("s") and not word.lower().endswith("ss"))


def read_thing(text: str, at: int, *, single: bool = False) -> tuple[str, int] | None:
    """Read what is counted at a position: the first plural noun among the next words, or any noun if `single`."""
    run = THING.match(text, at) if at < len(text) and text[at].isspace() else THING.match(f" {text[at:]}")
    if run is None:
        return None
    offset = 0 if at < len(text) and text[at].isspace() else at - 1
    found = None
    for word in re.finditer(r"[A-Za-z]+", run[1]):
        is_noun = single or is_plural(word[0]) or stem(word[0]) in CURRENCIES
        if word[0].lower() in NEXT_TO or (found is not None and (single or not is_noun)):
            break
        if is_noun:
            found = stem(word[0]), offset + run.start(1) + word.end()
    return found


def _counted(text: str, start: int, end: int, *, single: bool) -> tuple[Dimension, int] | None:
    """Read the unit or noun of the number between two positions."""
    sign = re.search(r"([$€£]|\brs)\.? ?\Z", text[:start], re.IGNORECASE)
    if sign is not None:
        return frozenset({(MONEY[sign[1].lower()], 1)}), end
    behind = re.compile(r"[ -]?").match(text, end)
    at = behind.end() if behind else end
    if text[at : at + 1] in MONEY:
        return frozenset({(MONEY[text[at]], 1)}), at + 1
    unit = read_unit(text, at)
    if unit is not None:
        return unit
    thing = read_thing(text, end, single=single)
    return None if thing is None else (frozenset({(thing[0], 1)}), thing[1])


def _dimensions(text: str, start: int, end: int, value: Fraction) -> frozenset[Dimension]:
    """Return the possible dimensions of a number, from the text after and before it."""
    if PERCENT.match(text, end):
        return frozenset({NONE})
    counted = _counted(text, start, end, single=value == 1)
    if counted is None:
        return frozenset()
    dimension, after = counted
    found = {dimension}
    dividing = DIVIDING.match(text, after)
    if dividing is not None and all(power > 0 for _, power in dimension):
        by = read_unit(text, dividing.end()) or _thing_dimension(read_thing(text, dividing.end(), single=True))
        if by is not None:
            is_rate = DEFINITE.match(dividing[0]) or (("T", 1) in by[0] and AN.match(dividing[0]))
            if is_rate:
                return frozenset({over(dimension, by[0])})
            found.add(over(dimension, by[0]))
    one = OF_ONE.search(text[:start])
    if one is not None:
        by = read_unit(one[1], 0) or _thing_dimension(read_thing(one[1], 0, single=True))
        if by is not None:
            found.add(over(dimension, by[0]))
    return frozenset(found)


def _thing_dimension(thing: tuple[str, int] | None) -> tuple[Dimension, int] | None:
    return None if thing is None else (frozenset({(thing[0], 1)}), thing[1])


@lru_cache(256)
def read_quantities(question: str) -> Quantities:
    """Return the numbers of a question."""
    numbers, words = numbers_in_place(question)
    return Quantities(
        tuple(
            Mention(start, end, value, _dimensions(question, start, end, value), bool(PERCENT.match(question, end)))
            for start, end, value in numbers
        ),
        words,
    )


def asked_dimensions(question: str, *, by_unit: bool = True) -> Iterator[Dimension]:
    """Yield the requested dimensions, from `how many` or `the number of`, and with `by_unit` from `in` with a unit and from
    rates.
    """
    for found in HOW_MANY.finditer(question):
        counted = read_unit(question, found.start(1)) or _thing_dimension(read_thing(question, found.start(1)))
        if counted is not None:
            yield counted[0]
            if by_unit and EVERY.search(question):
                yield over(counted[0], frozenset({("T", 1)}))
    for found in IN_UNIT.finditer(question if by_unit else ""):
        counted = read_unit(question, found.end())
        if counted is None and PLURAL.match(question, found.end()):
            counted = _thing_dimension(read_thing(question, found.end()))
        if counted is not None:
            yield counted[0]


MEASURED: Final = {
    "speed|velocity": "L T-1", "distance|length|extension|height|wavelength|displacement": "L", "time|period": "T", "frequency": "T-1",
    "force|weight": "M L T-2", "mass": "M", "acceleration": "L T-2", "work|energy|heat": "M L2 T-2", "power": "M L2 T-3",
    "pressure": "M L-1 T-2", "area": "L2", "volume|litres": "L3", "density": "M L-3", "momentum": "M L T-1", "current": "I",
    "voltage": "M L2 T-3 I-1", "resistance": "M L2 T-3 I-2", "charge": "I T", "moles": "Q", "concentration": "Q L-3",
}  # fmt: skip
"""Quantities that a solution names, with their dimensions."""
NAMES: Final = {
    name: frozenset((each[0], int(each[1:] or 1)) for each in text.split())
    for names, text in MEASURED.items()
    for name in names.split("|")
}
NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b", re.IGNORECASE)
SAYING = re.compile(
    rf"(?:From rest, |(?:Kinetic|Potential|Spring|Wave) )?(?P<result>{'|'.join(NAMES)}) (?:is|are) (?:(?:half|the root) of )?(?:twice the )?(?P<parts>[^.]*(?:\d\.\d[^.]*)?)\.\n?",
    re.IGNORECASE,
)
"""A sentence that states what is calculated from what."""
SINGLE = re.compile(r"\b(?:an?|one|half an?|the) (?=[a-z])", re.IGNORECASE)
SCALING = re.compile(r"\*(?:5/18|18/5)(?![\d.])")
"""A conversion from one unit of speed to another."""
CONSTANTS: Final = {
    **dict.fromkeys(map(Fraction, (2, 3, 4, 6, 10, 12, 24, 60, 100, 1000, 3600)), frozenset({NONE})),
    Fraction(1, 2): frozenset({NONE}),
    Fraction("9.8"): frozenset({NONE, frozenset({("L", 1), ("T", -2)})}),
    Fraction("22.4"): frozenset({NONE, frozenset({("L", 3), ("Q", -1)})}),
}
ONE_CALL = re.compile(r"(?:[^\n]*\n)?<<calculator: (?P<calculation>[^\n]*)>> [^\n]*\n")
SCALES = frozenset((60, 100, 1000, 3600))
MOST, HIGHEST = 64, 4
Dimensions: TypeAlias = frozenset[Dimension] | None
"""The possible dimensions of a value; None if unknown."""


class NotAddedError(Exception):
    """Two values of different dimensions are added."""


def lacks_quantity(question: str, saying: str) -> bool:
    """Return true if a sentence uses a quantity that the question does not give.

    >>> lacks_quantity("What is the density of 20 g in 4 cm^3?", "Volume is mass divided by density.")
    True
    """
    said = SAYING.fullmatch(saying)
    mentions = read_quantities(question).mentions
    given = [each for each in mentions if each.value]
    known = {dimension for each in mentions for dimension in each.dimensions if is_physical(dimension)}
    if said is None or not given or any(known.isdisjoint(each.dimensions) for each in given):
        return False
    known.update(unit[0] for each in SINGLE.finditer(question) if (unit := read_unit(question, each.end())) is not None)
    return any(NAMES[name.lower()] not in known for name in NAME.findall(said["parts"]))


def has_other_dimension(question: str, before: str, calculation: str) -> bool:
    """Return true if a calculation adds different dimensions, or its result has another dimension than the requested one.

    >>> has_other_dimension("A jar holds 4 eggs. How many jars do 8 eggs need?", "Divide.\\n", "4/8")
    True
    """
    quantities = read_quantities(question)
    try:
        found = _result(calculation, quantities)
    except NotAddedError:
        return not any(each.is_percent for each in quantities.mentions)  # by the year, mostly
    if not found:
        return False
    said = SAYING.fullmatch(before)
    if said is not None:
        return NAMES[said["result"].lower()] not in found and any(is_physical(each) for each in found)
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
    """Return true if an answer has a unit of another dimension than the calculation, or names another noun than the question.

    >>> is_other_unit("The side of a cube is 3 cm. Its volume?", "It is its edge cubed.\\n<<calculator: 3^3>> 27\\n", "cm")
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
    with suppress(NotAddedError):
        found = _result(call["calculation"], quantities) if call is not None else None
        return found is not None and any(map(is_physical, found)) and NONE not in found and read[0] not in found
    return False


def _result(calculation: str, quantities: Quantities) -> Dimensions:
    """Return the possible dimensions of the result of a calculation."""
    if SCALING.search(calculation) and any(each.value in (5, 18) for each in quantities.mentions):
        return None
    return result_dimensions(SCALING.sub("", calculation), partial(_number, quantities), _sum)


def result_dimensions(
    calculation: str,
    number: Callable[[Fraction], Dimensions],
    add: Callable[[ast.operator, Dimensions, Dimensions], Dimensions],
    *,
    has_powers: bool = True,
) -> Dimensions:
    """Return the possible dimensions of the result of a calculation, from those of its numbers, and those of a sum or difference."""

    def value(tree: ast.expr) -> Dimensions:
        match tree:
            case ast.Constant(value=int() | float()):
                return number(Fraction(str(tree.value)))
            case ast.UnaryOp(operand=inner) | ast.Call(func=ast.Name(id="round"), args=[inner, *_]):
                return value(inner)
            case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=int(power))) if has_powers:
                found = value(base)
                return None if found is None or power > HIGHEST else frozenset(_power(each, power) for each in found)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return add(tree.op, value(tree.left), value(tree.right))
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                left, right = value(tree.left), value(tree.right)
                if left is None or right is None or len(left) * len(right) > MOST:
                    return None
                join = times if isinstance(tree.op, ast.Mult) else over
                return frozenset(join(one, other) for one in left for other in right)
            case ast.Name(id="pi") if has_powers:
                return frozenset({NONE})
            case _:
                return None

    try:
        tree = ast.parse(calculation.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return value(tree)


def is_physical(dimension: Dimension) -> bool:
    """Return true for a dimension of units alone; things that are counted have names in lower case."""
    return all(base.isupper() for base, _ in dimension)


def _units_of(dimension: Dimension) -> Dimension:
    """Return the units and the money of a dimension without the things, which may be of one kind by other names."""
    return frozenset((base, power) for base, power in dimension if base.isupper() or base in CURRENCIES)


def _is_known(wanted: Dimension, quantities: Quantities) -> bool:
    """Return true if the requested noun occurs with a number in the question, or is a unit."""
    things = {base for each in quantities.mentions for dimension in each.dimensions for base, _ in dimension}
    return all(base.isupper() or base in things for base, _ in wanted)


def _agrees(found: Dimension, wanted: Dimension) -> bool:
    """Return true if two dimensions agree in units and in the requested noun; other nouns are often left implicit."""
    things = {base: power for base, power in wanted if not base.isupper()}
    return all(dict(found).get(base) == power for base, power in things.items()) and (
        {each for each in found if each[0].isupper()} == {each for each in wanted if each[0].isupper()}
    )


def _power(dimension: Dimension, power: int) -> Dimension:
    return frozenset((base, own * power) for base, own in dimension)


def _number(quantities: Quantities, number: Fraction) -> Dimensions:
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


def _sum(_: ast.operator, left: Dimensions, right: Dimensions) -> Dimensions:
    if left is None or right is None:
        return None
    both = left & right
    if both:
        return both
    one, other = {*map(_units_of, left)}, {*map(_units_of, right)}
    if NONE not in one | other and one.isdisjoint(other):
        raise NotAddedError
    return None
