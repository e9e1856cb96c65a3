"""The numbers of a text in digits, in words (English, German, French) and in Chinese characters, as decimals that compare equal.

No library reads all of these: text2num knows no Chinese characters, word2number English only.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth"
)
FRENCH = "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
FRENCH_TENS = {"vingt": 20, "vingts": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60}
SCALES = {
    "hundred": 100, "hundredth": 100, "cent": 100, "cents": 100, "thousand": 1_000, "thousandth": 1_000, "mille": 1_000,
    "million": 10**6, "millionth": 10**6, "millions": 10**6, "millionen": 10**6, "billion": 10**9, "milliarde": 10**9,
}  # fmt: skip
WORDS = {
    **{word: number for number, word in enumerate(ONES.split())},
    **{word: number for number, word in enumerate(ORDINALS.split())},
    **{word: 10 * ten for ten, word in enumerate(TENS.split(), 2)},
    **{f"{word[:-1]}ieth": 10 * ten for ten, word in enumerate(TENS.split(), 2)},
    **{word: number for number, word in enumerate(FRENCH.split(), 2)},
    **FRENCH_TENS,
    **SCALES,
}  # fmt: skip
ORDINAL_WORDS = frozenset(word for word in WORDS if word in ORDINALS.split() or word.endswith("th"))
CARDINALS, ENDS = "|".join(word for word in WORDS if word not in ORDINAL_WORDS), "|".join(sorted(ORDINAL_WORDS))
PARTS = {
    "dozen": "12", "dutzend": "12", "douzaine": "12", "twice": "2", "zweimal": "2", "double": "2", "doppelt": "2", "thrice": "3",
    "triple": "3", "half": "0.5", "halb": "0.5", "halbe": "0.5", "halben": "0.5", "halbes": "0.5", "moitié": "0.5", "demi": "0.5",
    "demie": "0.5", "半": "0.5", "quarter": "0.25", "quarters": "0.25", "viertel": "0.25", "quart": "0.25",
}  # fmt: skip
"""Words that are a number by themselves."""
GERMAN = {
    **{word: number for number, word in enumerate(
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
    )},
    **{word: 10 * ten for ten, word in enumerate("zwanzig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig".split(), 2)},
    "ein": 1, "erste": 1, "dritte": 3, "siebte": 7,
}  # fmt: skip
GERMAN_SCALES = (("million", 10**6), ("tausend", 1_000), ("hundert", 100))
HAN_DIGITS = {**{digit: value for value, digit in enumerate("〇一二三四五六七八九")}, "零": 0, "两": 2, "兩": 2}
HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
HAN = "".join((*HAN_DIGITS, *HAN_UNITS))
COUNTERS = "日天年月週周回次人名個个件時小分点泊枚本台歳岁円元度倍位周歩社者割番号号階级級条条項项部章頁页"
"""What is counted: before one of these, 一 百 千 万 alone are numbers, and elsewhere parts of words."""
NUMBER = re.compile(
    r"(?P<minus>(?<![\w.)\]-])-(?=\d)|(?<![\w.)\]-])- (?=\d+ ?°)|\b(?:minus|moins) (?=\d)|マイナス|零下|氷点下|[负負](?=[\d"
    + HAN
    + r"]))?"
    r"(?:(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.:]\d+)*)(?P<unit>[十百千万萬億亿]*)"
    rf"|(?P<han>[{HAN}]+)(?P<counted>(?<=第[一百千万])|(?=[{COUNTERS}つ%％]|[かカヶヵケ箇]月))?"
    rf"|\b(?P<words>(?:{ENDS}|(?:{CARDINALS})(?:(?:[ -]|\b(?:and|et)\b)+(?:{CARDINALS}))*(?:(?:[ -]|\band\b)+(?:{ENDS}))?))\b"
    rf"|(?P<part>\b(?:{'|'.join(PARTS)})\b|半(?=[日年月額额分数時时]))"
    r"|\b(?P<german>[a-zäöü]*(?:hundert|tausend|million|zig|ssig|zehn|zwei|drei|dritt|vier|fünf|sechs|sieb|acht|neun|elf|zwölf|eins|erste)[a-zäöü]*)\b)"
)
PRONOUN = re.compile(
    r"\s*(?:$|[^\w\s]|(?:of|another|who|that|which|is|are|was|has|can|may|must|should|will|would|could|might|or|and|in|to|by|for|from|"
    r"with|as|but|if|at|on|more|side|hand|time)\b)"
)
"""What follows `one` where it counts nothing."""


def numbers(text: str) -> list[str]:
    """Return the numbers of a text as decimals, ordinals as what they count, times as hours and minutes.

    >>> sorted(numbers("1,250.50 at 09:30, twenty-five of 三百二十万, 30万 and two hundred and six"))
    ['1250.5', '206', '25', '300000', '3200000', '9:30']
    >>> numbers("-5 degrees, the twenty-first day, a dozen, fünfundzwanzig Tage, quatre-vingt-dix-sept jours, 第百回")
    ['-5', '21', '12', '25', '97', '100']
    """
    return [number for number, _, _ in find_numbers(text.casefold())]


def find_numbers(folded: str) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a text in small letters, each with where it begins and ends."""
    for match in NUMBER.finditer(folded):
        if number := _number(match, folded):
            yield f"-{number}" if match["minus"] else number, match.start(), match.end()


def _number(match: re.Match[str], text: str) -> str:
    if words := match["words"]:
        return _words(words, text[match.end() :])
    if han := match["han"]:
        return "" if len(han) == 1 and han in "一百千万萬億亿" and match["counted"] is None else str(_han(han))
    if part := match["part"]:
        return PARTS[part]
    if german := match["german"]:
        value = _german(german)
        return "" if value is None else str(value)
    digits = match["digits"].replace(",", "")
    if ":" in digits:
        return ":".join(part.lstrip("0") or "0" for part in digits.split(":"))
    if match["unit"]:
        if digits.count(".") > 1:
            return digits
        return f"{(Decimal(digits) * _han('一' + match['unit'])).normalize():f}"
    whole, point, rest = digits.partition(".")
    return (whole.lstrip("0") or "0") + (point + rest.rstrip("0") if rest.strip("0") else "")


def _words(words: str, rest: str) -> str:
    if words in ("one", "first", "second") and PRONOUN.match(rest):
        return ""
    value = part = 0
    for word in re.findall("[a-z]+", words):
        number = WORDS.get(word, 0)
        if number in SCALES.values() or (number == 20 and part % 100 == 4):  # quatre-vingt
            part = (part or 1) * number
        else:
            part += number
        if number >= 1_000:
            value, part = value + part, 0
    return str(value + part)


def _german(word: str) -> int | None:
    """Return the value of a German number word, also of its ordinal; None for any other word."""
    for stem in (word, re.sub(r"(?:s?te[nrsm]?)$", "", word), re.sub("[nrsm]$", "", word)):
        if (value := _german_cardinal(stem)) is not None and stem != "ein":
            return value
    return None


def _german_cardinal(word: str) -> int | None:
    for name, scale in GERMAN_SCALES:
        left, found, right = word.partition(name)
        if found:
            head, tail = (
                _german_cardinal(left) if left else 1,
                _german_cardinal(right.removeprefix("und")) if right else 0,
            )
            return None if head is None or tail is None else head * scale + tail
    ones, found, tens = word.partition("und")
    if found and ones in GERMAN and tens in GERMAN:
        return GERMAN[ones] + GERMAN[tens]
    return GERMAN.get(word)


def _han(text: str) -> int:
    if not set(text) & HAN_UNITS.keys():
        return int("".join(str(HAN_DIGITS[digit]) for digit in text))
    total = section = digit = 0
    for each in text:
        unit = HAN_UNITS.get(each)
        if unit is None:
            digit = HAN_DIGITS[each]
        elif unit < 10_000:
            section, digit = section + (digit or 1) * unit, 0
        else:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
    return total + section + digit
