"""Signs that a line about everyday quantities cannot be right: what the numbers, units and words of the question rule out."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from taiwa.kernel.errors import ToolError
from taiwa.models.builtin.copy_constraint import CONVERTED, NUMBER_WORDS, find_digits
from taiwa.models.builtin.name_check import likeness
from taiwa.tools.calculator import calculate

__all__ = ["cannot_be", "rename"]

ALIKE, BEGUN = 0.5, 3
"""How like a word of the question a thing is that only the answer counts, at least; and the first letters that tell the word."""

CALCULATION = re.compile(r"<<calculator: (.*)>>\Z")
CONCLUSION = re.compile(r"Therefore, the answer is (-?\d*\.?\d+) ([A-Za-z/]+)\.?\Z")
DIGITS = re.compile(r"(?<![a-wyz\d_.])(?:\d[\d,]*(?:\.\d+)?|\.\d+)", re.IGNORECASE)
UNITS = frozenset(CONVERTED) | frozenset(
    "dollars euros pounds rupees years months weeks hours minutes seconds miles cents degrees".split()
)
NUMBERS = re.compile(r"\d*\.?\d+")
THINGS = re.compile(r"\b(?:how many|number of) ([a-z]{4,})", re.IGNORECASE)
COUNT = rf"(?<![\w.-])(\d[\d,]*(?:\.\d+)?|{'|'.join(sorted(NUMBER_WORDS.keys() - {'a', 'an'}, key=len, reverse=True))})(?!\w)"
PLAIN = "Work it out.\n"
"""What precedes a calculation that the question gives in signs or words."""
SAME_WAY, OTHER_WAY = (
    r"\bsame (?:way|direction)|in the direction of|overtak",
    r"\b(?:opposite|(?:towards?|against) each other|meet)",
)
LESS, MORE = (
    r"\b(?:falls?|fell|drop|lower|reduc|cut|discount|rebate|off|decreas|loses?|lost|shrinks?|sinks?|less|down)",
    r"\b(?:ris|rose|grow|grew|increas|rais|add|plus|tip|tax|surcharge|gain|more|up|on top|higher|extra|fee|interest|climb|dearer|vat)",
)
OPPOSITES = [
    (re.compile(said), re.compile(own, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for said, own, other in (
        (r"speeds (?:are )?added", OTHER_WAY, SAME_WAY),
        (r"speeds (?:are )?subtracted", SAME_WAY, OTHER_WAY),
        (r"^Add the share\.", MORE, LESS),
        (r"^Take the share off\.", LESS, MORE),
        (r"^Area|^The area", "area|surface|cover|cost|floor|wall|paint|tile", "perimeter|circumference|volume"),
        (r"^The (?:perimeter|circumference)", "perimeter|circumference|around|fence", "area|volume"),
    )
]
"""What a line says, the words of questions that it fits, and those that ask for something else."""


def cannot_be(question: str, before: str, line: str) -> bool:
    """Whether a line about quantities contradicts its question."""
    if not question.isascii():
        return False
    if (found := CALCULATION.fullmatch(line)) is not None:
        return (
            _miscounts(question, before, found[1])
            or _is_below_nothing(question, found[1])
            or _is_no_motion(question, before, found[1])
        )
    if (ended := CONCLUSION.search(line)) is not None:
        return _is_strange(question, ended[2]) or _has_other_unit(question, before, ended[1], ended[2])
    return any(
        said.search(line) and other.search(question) and not own.search(question) for said, own, other in OPPOSITES
    )


def rename(question: str, line: str) -> str:
    """Return the last line with the word of the question that is most like a thing which only the answer counts.

    >>> rename("Seven guests share 84 custoplurbers.", "Therefore, the answer is 12 custests.")
    'Therefore, the answer is 12 custoplurbers.'
    """
    ended = CONCLUSION.search(line)
    if ended is None or not question.isascii() or not _is_strange(question, ended[2]):
        return line
    words, begun = re.findall(r"[A-Za-z]{3,}", question), ended[2][:BEGUN].lower()
    nearest = max(words, key=lambda word: (word.lower().startswith(begun), likeness(word, ended[2])), default="")
    return line[: ended.start(2)] + nearest + line[ended.end(2) :] if likeness(nearest, ended[2]) >= ALIKE else line


def _written(question: str) -> Counter[str]:
    return Counter(each.replace(",", "").lstrip("0") for each in DIGITS.findall(question))


def _miscounts(question: str, before: str, calculation: str) -> bool:
    """Whether a number of the things that are asked for is left out, or any while another one is used more often than it is given."""
    given = _written(question)
    written = [each.lstrip("0") for each in NUMBERS.findall(calculation)]
    used = Counter(written)
    if before == PLAIN and len(given) == given.total() > 1:
        return written != [*given]
    if "<<" in before or "log" in calculation:
        return False
    missing = [each for each in given if not used[each]]
    if not {*_asked_things(question)} <= {*used}:
        return True
    return bool(missing) and any(count > given[each] for each, count in used.items() if each in given)


def _asked_things(question: str) -> Iterator[str]:
    """Yield the numbers of the things of which a question asks how many there are."""
    asked = THINGS.search(question)
    if asked is not None:
        for found in re.finditer(rf"{COUNT} (?:[a-z]+ )?{asked[1][:-1]}", question, re.IGNORECASE):
            number = NUMBER_WORDS.get(found[1].lower(), found[1].replace(",", ""))
            if number != "1":
                yield number.lstrip("0")


def _is_below_nothing(question: str, calculation: str) -> bool:
    """Whether a difference of what is given is negative."""
    if re.search(r"- ?\.?\d|\d ?-|minus|negative|below zero|another number|other number", question):
        return False
    with suppress(ToolError):
        return calculate(calculation) < 0
    return False


def _is_strange(question: str, word: str) -> bool:
    """Whether a thing that is counted in the answer is not in the question."""
    stem = word.lower()[: max(3, len(word) - 3)]
    return len(word) > 4 and word.isalpha() and stem not in question.lower() and word not in UNITS


LENGTHS = {
    "kms?|kilomet(?:er|re)s?": Fraction(1000), "m|met(?:er|re)s?": Fraction(1), "cms?|centimet(?:er|re)s?": Fraction(1, 100),
    "mi|miles?": Fraction("1609.344"), "feet|foot|ft": Fraction("0.3048"), "yards?|yd": Fraction("0.9144"),
}  # fmt: skip
TIMES = {
    "s|secs?|seconds?": Fraction(1), "min|mins|minutes?": Fraction(60), "h|hrs?|hours?": Fraction(3600), "days?": Fraction(86400),
}  # fmt: skip
SPEEDS_OF = {"km/?hr?|kmph|kph": Fraction(1000, 3600), "mph": Fraction("1609.344") / 3600}
LENGTH, TIME = "|".join(LENGTHS), "|".join(TIMES)
MOTION = re.compile(
    r"(?=(\w+))(?:Time is (?:distance|length) divided by speed|Distance is speed times time|Speed is distance divided by time)\.\n"
)
KINDS = {"Time": "time", "Distance": "length", "Speed": "speed"}
SPEED_SCALES = frozenset(length / time for length in LENGTHS.values() for time in TIMES.values())
PARTS = re.compile("half|quarter", re.IGNORECASE)
UNIT = re.compile(
    rf"(?P<number>\b(?:{'|'.join(sorted(NUMBER_WORDS.keys() - {'a', 'an'}, key=len, reverse=True))}) |\d*\.?\d+)?[ -]?(?<![A-Za-z])"
    rf"(?:(?P<speed>(?P<over>{LENGTH}) ?(?:/|per|an?|each|every) ?(?P<per>{TIME})|{'|'.join(SPEEDS_OF)})|(?P<length>{LENGTH})|(?P<time>{TIME}))(?![\w^])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Motion:
    """What follows from two of a distance, a time and a speed, in metres and seconds; and the units in which it may be told."""

    value: Fraction
    scales: frozenset[Fraction]

    @classmethod
    def read(cls, question: str, before: str) -> "_Motion | None":
        """Return what follows where the solution works out the third from the other two, and nothing else is given."""
        asking = MOTION.match(before)
        if asking is None:
            return None
        given: dict[str, Fraction] = {}
        asked: dict[str, set[Fraction]] = {"speed": set(), "length": set(), "time": set()}
        numbers = 0
        for found in UNIT.finditer(re.sub(r"(?<=\d),(?=\d)", "", question)):
            kind = next(each for each in asked if found[each])
            if found["number"] is None:
                asked[kind].add(_scale_of(found))
                continue
            number = found["number"].strip().lower()
            numbers += 1
            given[kind] = Fraction(NUMBER_WORDS.get(number, number)) * _scale_of(found)
        is_alone = (
            len(given) == numbers == 2
            and KINDS[asking[1]] not in given
            and len(find_digits(question)) <= 2
            and 0 not in given.values()
        )
        if not is_alone or PARTS.search(question):
            return None
        if "speed" not in given:
            return cls(given["length"] / given["time"], frozenset(asked["speed"] or SPEED_SCALES))
        if "length" not in given:
            return cls(given["speed"] * given["time"], frozenset(asked["length"] or LENGTHS.values()))
        return cls(given["length"] / given["speed"], frozenset(asked["time"] or TIMES.values()))

    def fits(self, number: Fraction, scales: Collection[Fraction]) -> bool:
        """Whether a number is the value in one of some units, as exactly as results are written."""
        return any(abs(number * scale - self.value) <= abs(self.value) / 1000 for scale in scales)


def _is_no_motion(question: str, before: str, calculation: str) -> bool:
    motion = _Motion.read(question, before)
    with suppress(ToolError):
        return motion is not None and not motion.fits(calculate(calculation), motion.scales)
    return False


def _has_other_unit(question: str, before: str, number: str, unit: str) -> bool:
    motion, found = _Motion.read(question, before), UNIT.fullmatch(unit)
    return motion is not None and found is not None and not motion.fits(Fraction(number), (_scale_of(found),))


def _scale_of(unit: re.Match[str]) -> Fraction:
    if unit["over"]:
        return _scale(LENGTHS, unit["over"]) / _scale(TIMES, unit["per"])
    return _scale(LENGTHS | TIMES | SPEEDS_OF, unit["speed"] or unit["length"] or unit["time"])


def _scale(scales: Mapping[str, Fraction], unit: str) -> Fraction:
    return next(scale for pattern, scale in scales.items() if re.fullmatch(pattern, unit, re.IGNORECASE))
