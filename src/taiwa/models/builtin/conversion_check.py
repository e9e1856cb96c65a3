"""Parse questions that need no network: a conversion between units of the table, or a calculation in signs or words.

They cover English, Japanese and Chinese. The network distinguishes a conversion from other questions, unless the question
contains nothing else; the table decides which units are meant. A calculation is read only if every word of the question is
understood.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache

from taiwa.models.builtin.copy_constraint import CONVERTED, NUMERAL, UNIT_KINDS, numbers_in_place, read_numeral

__all__ = ["CALLED", "Conversion", "decided_line", "mixes_kinds", "read_calculation", "read_conversion", "unit_names"]

CALLED: Mapping[str, tuple[str, ...]] = {
    "feet": ("foot",), "inches": ("inch",), "degC": ("摂氏", "摄氏", "度"), "degF": ("華氏", "华氏"), "km/h": ("kmph", "kph", "時速", "毎時", "时速", "每小时"),
    "m/s": ("mps", "秒速", "毎秒", "每秒"), "tonnes": ("t",), "m/min": ("分速", "毎分", "每分"),
}  # fmt: skip
"""Other names of some units."""
SHOWN: Mapping[str, str] = {"degC": "°C", "degF": "°F"}
"""Units of answers whose spelling differs from the one that the converter reads."""
CONVERTING = frozenset((
    "Convert.", "I do not know this unit: I cannot convert it.", "These units measure different things: I cannot convert them.",
    "A number is missing: I cannot work this out.",
))  # fmt: skip
"""First lines of solutions whose units the table decides if it has both."""
INCHES = re.compile(r"\s*(?:[?.,=]|(?:in|to|into|is|are|make)\b|\Z)", re.IGNORECASE)
"""Text after `in` if it is a unit."""
SCALE = re.compile(r"([摂華摄华]氏)(?:\s?(-?[\d.]+)\s?)?度")
NUMBER = re.compile(r"(?<![\d.A-Za-z^])(?<!\d,)-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)(?![\d,]*\d)")
BELOW = re.compile(r"(?:\b(?:minus|negative) |マイナス|零下|氷点下|负)(?=\d)|(?<!\S)[-−–－]\s*(?=\d)", re.IGNORECASE)
BELOW_SCALE = re.compile(r"(零下|氷点下|マイナス|负)([摂華摄华]氏)")
NEGATIVE = re.compile(r"\b(?:minus|negative|below zero)\b|マイナス|零下|氷点下|负", re.IGNORECASE)
"""Words that make a number negative."""
MOST_READ = 500
"""Characters of a question that rules read; the patterns take time quadratic in the length."""
SPOON = re.compile(r"([大小]さじ|カップ)\s?([\d.]+)\s?杯?")
SPOONS = re.compile(r"([大小]さじ|カップ)(?:に|で|では|だと)?は?\s?何\s?杯")
"""Amounts in spoons or cups, and questions for them: the Japanese counter word 杯 means a cup in Chinese."""
HALF = re.compile(r"(\d+)(時間|週間|日|分|秒|小时|个小时|分钟|天|周)半|(\d+)个半(?=小时|星期)")
LENGTHS: Mapping[str, str] = {
    "km": "km|kilomet(?:re|er)s?|キロメートル|キロ|公里|千米", "cm": "cm|centimet(?:re|er)s?|センチメートル|センチ|厘米|公分",
    "mm": "mm|millimet(?:re|er)s?|ミリメートル|ミリ|毫米", "dm": "dm|decimet(?:re|er)s?|デシメートル|分米", "m": "m|met(?:re|er)s?|メートル|米",
    "ft": "ft|foot|feet|フィート|英尺", "in": "in|inch(?:es)?|インチ|英寸", "yd": "yd|yards?|ヤード|码", "mi": "mi|miles?|マイル|英里",
}  # fmt: skip
"""Lengths that are squared and cubed, by their symbols."""
RAISED = str.maketrans({"²": "^2", "³": "^3", "㎡": "m^2", "㎥": "m^3"})
POWER = re.compile(rf"(?<![A-Za-z])({'|'.join(LENGTHS)})\^?([23])(?![\d.,]*\d)")
SQUARED = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(f'(?P<{symbol}>{names})' for symbol, names in LENGTHS.items())}) (?:squared|(?P<cubic>cubed))\b",
    re.IGNORECASE,
)
SHAPED = re.compile(
    rf"(?:\b(?:square|sq\.?) ?|平方|(?P<cubic>\b(?:cubic|cu\.?) ?|立方))(?:{'|'.join(f'(?P<{symbol}>{names})' for symbol, names in LENGTHS.items())})(?![A-Za-z])",
    re.IGNORECASE,
)
"""A length that is squared or cubed in words."""
DEGREES = "度"
SCALES: Mapping[str, str] = {"摂氏": "℃", "摄氏": "℃", "華氏": "°F", "华氏": "°F"}
FRAME = re.compile(
    r"\b(?:how (?:many|much|large|long|heavy)|what(?:'s| is| are)?|is|are|in|into|to|as|does|do|make|equals?|convert(?:ed)?|please|can you|"
    r"could you|tell me|find|express(?:ed)?|write|an?|the|of|there|have|it|value)\b|等于|等於|多少|换算|转换|相当|[ぁ-ん]|何|換算|変換|計算|等|同|直|教|表|是|"
    r"成|为|几|合|有|把|请问|吗|化|问|[\s?？。.,、，:：=→>-]",
    re.IGNORECASE,
)
"""The text around a number and two units in a question that asks for a conversion and nothing else."""
NUMBERED = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)(?![\d,]*\d)")
OPERATIONS: Mapping[str, str] = {
    "+": r"\+|＋|plus|added to|たす|足す|プラス|加上?", "-": r"[-−–－]|minus|take away|ひく|引く|マイナス|减去?|減去?",
    "*": r"[*×·＊]|times|multiplied by|x(?= ?[\d(])|かける|掛ける|乘以?|乗以?", "/": r"[/÷／]|divided by|わる|割る|除以",
    "(": r"[(（]", ")": r"[)）]",
}  # fmt: skip
"""Operators of a calculation, and the words for them between two numbers."""
OPERATION = re.compile("|".join(f"(?P<s{at}>{words})" for at, words in enumerate(OPERATIONS.values())), re.IGNORECASE)
AROUND = re.compile(
    r"(?:(?:what(?:['’]?s| is| are| do i get for| does)?|how much(?: is| are| does)?|calculate|compute|work out|evaluate|solve|find|simplify|tell|give|show|me|"
    r"the|(?:value|result|answer|solution)(?: of| to)|please|can you|could you|make[s]?|come[s]? to|equal[s]?|is|so|now|then|ok|okay|hey|hi|hello|thanks|"
    r"thank you|any idea|do|know|you)(?![a-z])|いくつ|いくら|答え|計算|教え|おしえ|求め|何|等于|等於|多少|请问|得|几|是|计算|一下|结果|なに|なん|って|です|でしょう|"
    r"に?な(?:る|ります)|して|なさい|(?<=て)ください|の(?=答え|計算|結果|値)|[はをがとかにでてねよ]|"
    r"[\s.,;:!?=。、，！？：＝]+)*",
    re.IGNORECASE,
)
"""Text before and after a calculation in a question that asks for nothing else."""
SAYINGS: Mapping[str, frozenset[str]] = {
    "+": frozenset(("Work it out.", "Add them.", "Add.")), "-": frozenset(("Work it out.", "Take away.")),
    "*": frozenset(("Work it out.", "Multiply.")), "/": frozenset(("Work it out.", "Divide.")),
}  # fmt: skip
"""First lines of solutions with one operator."""
WORKED = "Work it out."
DIALLED = re.compile(
    r"(?<![\d.,])(?:0\d{1,4}-\d{1,4}-\d{3,4}|\d{3}-\d{4}|\d{4}([-/])\d\d?\1\d\d?|\d\d?([-/])\d\d?\2\d{4})(?![\d.,])"
)
"""A telephone number, or a date."""
NO_CALCULATION = re.compile(rf"{DIALLED.pattern}|(?<![\d.,])(?:0\d|(?:24/7|9/11|7-11)(?![\d/]))|\d-[A-Za-z]")
"""The same, and names that contain numbers."""
SHORTENED = re.compile(r"[百千万亿][一二三四五六七八九](?![一二三四五六七八九十百千万亿零〇])")
"""A Chinese number whose last unit is omitted, such as 三千二 for 3,200; in Japanese it is 3,002."""
KANA = re.compile(r"[ぁ-ヿ]")
CALCULATED = re.compile(r"<<calculator: ([^\n]*)>> (-?[\d.]+)\n\Z")
CALL = re.compile(r"<<unit_conversion: .*>>\Z")
CONVERTING_CALL = re.compile(r"<<unit_conversion: \S+ (\S+) to (\S+)>>")
RESULT = re.compile(r"<<unit_conversion: [^\n]*>> (-?[\d.]+) [^\n]*\n\Z")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A number with its unit, and the unit that it is converted to, as the converter reads them."""

    number: str
    source: str
    target: str
    is_whole: bool = field(default=False, compare=False, repr=False)
    """Return true if the question contains nothing else."""

    @property
    def call(self) -> str:
        """Return the call of the converter."""
        return f"<<unit_conversion: {self.number} {self.source} to {self.target}>>"


@cache
def _names() -> tuple[Mapping[str, tuple[str, ...]], re.Pattern[str]]:
    """Return the units that each name may mean, and a pattern of the names, longest first."""
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


def unit_names() -> Mapping[str, tuple[str, ...]]:
    """Return the names of the units that are converted, each with the units that it may mean."""
    return _names()[0]


def _units(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the units that a text names, with their positions; a shared name yields all of its units."""
    names, pattern = _names()
    for found in pattern.finditer(text):
        key = found[0] if len(found[0]) <= 3 else found[0].lower()
        if key != "in" or INCHES.match(text, found.end()):
            yield found.start(), found.end(), names[key]


def _spelt(text: str, units: Sequence[int]) -> Iterator[tuple[int, Fraction]]:
    """Yield the ends and values of the numbers in words or numerals; a number ends where a unit begins, `八千克`."""
    if text.isascii():
        yield from ((end, value) for _, end, value in numbers_in_place(text)[0])
    else:
        for found in NUMERAL.finditer(text):
            end = min((start for start in units if found.start() <= start < found.end()), default=found.end())
            if end > found.start():
                yield end, Fraction(read_numeral(text[found.start() : end]))


@lru_cache(256)
def read_conversion(question: str) -> Conversion | None:
    """Return the conversion of a question with one number and its unit, and one other unit of the same dimension; else None.

    >>> read_conversion("3ガロンは何リットルですか?")
    Conversion(number='3', source='gallons', target='L')
    >>> read_conversion("How many hours are 3 gallons?")
    """
    if len(question) > MOST_READ:
        return None
    text = _plain(question)
    units = list(_units(text))
    if "半" in text:
        return None
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
    if NEGATIVE.search(text):  # part of a number in words, or after one
        number = f"-{number.removeprefix('-')}"
    rest = "".join(" " if any(start <= at < end for start, end, _ in units) else sign for at, sign in enumerate(text))
    temperatures = [
        each for each in units if each is not source and text[each[0] : each[1]] != DEGREES and _is_temperature(each[2])
    ]
    if temperatures:  # `華氏で何度`: the word for degrees is not a scale
        units = [each for each in units if each is source or text[each[0] : each[1]] != DEGREES]
    others = {unit for each in units if each is not source for unit in each[2]} - {*source[2]}
    pairs = {(one, other) for one in source[2] for other in others if UNIT_KINDS[one] == UNIT_KINDS[other]}
    named = [each for each in units if each is not source and not {*each[2]} <= {*source[2]}]
    if len(pairs) != 1 or len({each[2] for each in named}) != 1:
        return None
    return Conversion(number, *pairs.pop(), is_whole=not FRAME.sub("", NUMBER.sub(" ", rest)))


def _plain(question: str) -> str:
    """Return a question with its units spelled as in the table, each after its number."""
    text = BELOW.sub("-", BELOW_SCALE.sub(r"\2\1", question)).translate(RAISED)
    for words in (SHAPED, SQUARED):
        text = words.sub(_power, text)
    text = POWER.sub(r"\1^\2", text)
    text = HALF.sub(lambda found: f"{found[1] or found[3]}.5{found[2] or ''}", text)
    text = SCALE.sub(lambda found: f"{found[2] or ''}{SCALES[found[1]]}", text)
    return SPOON.sub(r"\2\1", SPOONS.sub(r"何\1", text))


def _power(found: re.Match[str]) -> str:
    """Return the symbol of a length that is squared or cubed in words."""
    symbol = next(each for each in LENGTHS if found[each])
    return f"{symbol}^{3 if found['cubic'] else 2}"


def _is_temperature(units: Sequence[str]) -> bool:
    return any(UNIT_KINDS[each] == "temperature" for each in units)


def decided_line(question: str, before: str, line: str) -> str:
    """Return a conversion line as the table of units decides it; "" for any other line.

    >>> decided_line("3ガロンは何リットルですか?", "Convert.\\n", "<<unit_conversion: 3 gallons to dL>>")
    '<<unit_conversion: 3 gallons to L>>'
    """
    if calculation := read_calculation(question):
        return _calculation_line(calculation, before, line)
    conversion = read_conversion(question)
    if conversion is None:
        return ""
    if not before:
        return "Convert." if conversion.is_whole or line in CONVERTING else ""
    if line.startswith("<<"):
        is_meant = conversion.is_whole or CALL.match(line)
        return conversion.call if before == "Convert.\n" and is_meant else ""
    result = RESULT.search(before) if before.startswith(f"Convert.\n{conversion.call}") else None
    return (
        ""
        if result is None
        else f"Therefore, the answer is {result[1]} {SHOWN.get(conversion.target, conversion.target)}."
    )


@lru_cache(256)
def read_calculation(question: str) -> str:
    """Return the calculation that a question consists of, in digits and signs; "" for any other question.

    >>> read_calculation("What is seven times (eight plus 2)?"), read_calculation("十二たす三は?"), read_calculation("7 times 8 eggs?")
    ('7*(8+2)', '12+3', '')
    """
    if len(question) > MOST_READ or NO_CALCULATION.search(question) or is_shortened(question):
        return ""
    numbers = {start: (end, value) for start, end, value in _numbers(question)}
    if len(numbers) < 2:
        return ""
    signs: list[str] = []
    at = start = min((*numbers, *(found.start() for found in re.finditer("[(（]", question))))
    while at < len(question):
        if at in numbers:
            at, sign = numbers[at]
        elif question[at].isspace():
            at += 1
            continue
        elif (found := OPERATION.match(question, at)) is not None:
            sign = next(each for number, each in enumerate(OPERATIONS) if found[f"s{number}"])
            at = found.end()
        else:
            break
        signs.append(sign)
    before, behind = question[:start], question[at:]
    is_whole = AROUND.fullmatch(before) and AROUND.fullmatch(behind) and _is_calculation(signs)
    return "".join(signs) if is_whole else ""


def is_shortened(question: str) -> bool:
    """Return true if a Chinese question contains a number whose last unit is omitted.

    >>> is_shortened("三千二加一是多少?"), is_shortened("三千二たす一は?"), is_shortened("三千二百加一是多少?")
    (True, False, False)
    """
    return bool(SHORTENED.search(question)) and not KANA.search(question)


def _numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers of a text in digits, words or numerals, with their positions."""
    taken: set[int] = set()
    for found in NUMBERED.finditer(text):
        if found[0]:
            taken.update(range(found.start(), found.end()))
            yield found.start(), found.end(), f"0{found[0]}" if found[0][0] == "." else found[0].replace(",", "")
    if text.isascii():
        for start, end, value in numbers_in_place(text)[0]:
            if start not in taken and value.denominator == 1:
                yield start, end, str(value)
        return
    for found in NUMERAL.finditer(text):
        if taken.isdisjoint(range(*found.span())):
            yield *found.span(), str(read_numeral(found[0]))


def _is_calculation(signs: Sequence[str]) -> bool:
    """Return true if numbers and operators alternate and brackets are balanced."""
    depth, count, wants_number = 0, 0, True
    for sign in signs:
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        if depth < 0 or wants_number != (sign == "(" or sign[0].isdigit()):
            return False
        count += sign in SAYINGS
        wants_number = sign == "(" or sign in SAYINGS
    return count > 0 and depth == 0 and not wants_number


def mixes_kinds(line: str) -> bool:
    """Return true if a line converts between units of different dimensions, or a unit to itself.

    >>> mixes_kinds("<<unit_conversion: 3 kg to m/s>>"), mixes_kinds("<<unit_conversion: 3 kg to g>>")
    (True, False)
    """
    units = CONVERTING_CALL.fullmatch(line)
    if units is not None and units[1] == units[2]:
        return True
    kinds = {UNIT_KINDS.get(each, "") for each in units.groups()} if units is not None else {""}
    return "" not in kinds and len(kinds) == 2


def _calculation_line(calculation: str, before: str, line: str) -> str:
    """Return a line of the solution of a calculation; "" for a call without a preceding line, which is checked by itself."""
    signs = [each for each in calculation if each in SAYINGS]
    if not before:
        said = line if len(signs) == 1 and line in SAYINGS[signs[0]] else WORKED
        return "" if line.startswith("<<") else said
    if before.count("\n") == 1:
        return f"<<calculator: {calculation}>>" if line.startswith("<<") and "<<" not in before else ""
    result = CALCULATED.search(before)
    return f"Therefore, the answer is {result[2]}." if result is not None and result[1] == calculation else ""
