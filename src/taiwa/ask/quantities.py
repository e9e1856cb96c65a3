"""Quantities in a text: its numbers as decimals that compare equal, and their units and currencies, the same for every spelling
and language (`$5`, `5 dollars`, `5ドル`, `5美元`).

Numbers are read in digits, in words (English, German, French) and in Chinese characters. No library reads all of these: text2num
does not know Chinese characters, word2number reads English only.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

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
    **{word: number for number, word in enumerate(FRENCH.split(), 2)}, **FRENCH_TENS, **SCALES,
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
            head = _german_cardinal(left) if left else 1
            tail = _german_cardinal(right.removeprefix("und")) if right else 0
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


SPELLINGS = {
    "second": "second seconds sec secs s sekunde sekunden seconde secondes 秒 秒間 秒钟 秒鐘",
    "minute": "minute minutes min mins minuten 分 分間 分钟 分鐘",
    "hour": "hour hours hr hrs h stunde stunden heure heures 時間 小时 小時 钟头 鐘頭",
    "o'clock": "o'clock uhr 時 时 點 点",
    "night": "night nights nacht nächte nuit nuits 泊 晚",
    "day": "day days tag tage tagen jour jours journée journées 日 日間 天 营业日 営業日",
    "week": "week weeks woche wochen semaine semaines 週 週間 周 周間 星期 礼拜 禮拜",
    "month": "month months monat monate monaten mois か月 カ月 ヶ月 ケ月 ヵ月 箇月 か月間 カ月間 ヶ月間 个月 個月",
    "month of the year": "月",
    "year": "year years jahr jahre jahren ans année années 年 年間",
    "fiscal year": "年度",
    "euro": "€ euro euros eur ユーロ 欧元 歐元",
    "dollar": "$ us$ dollar dollars usd ドル 米ドル 美元 美金",
    "pound": "£ pound pounds quid gbp pfund ポンド 英镑 英鎊 lb lbs",
    "yen": "¥ yen yens jpy 円 圓 日元 日圆",
    "yuan": "¥ yuan cny rmb renminbi 元 块 塊 人民币 人民幣",
    "franc": "franc francs franken chf フラン 法郎",
    "won": "₩ won krw ウォン 韩元",
    "rupee": "₹ rupee rupees inr ルピー 卢比",
    "cent": "¢ cent cents セント 美分",
    "penny": "pence penny p ペンス 便士",
    "percent": "% percent per_cent prozent pour_cent パーセント",
    "point": "point points pts ポイント 点 點",
    "permille": "‰",
    "times": "times × 倍 回 次",
    "metre": "metre metres meter meters mètre mètres m メートル 米",
    "kilometre": "kilometre kilometres kilometer kilometers kilomètre kilomètres km キロ キロメートル 公里 千米",
    "centimetre": "centimetre centimetres centimeter centimeters cm センチ センチメートル 厘米 公分",
    "millimetre": "millimetre millimetres millimeter millimeters mm ミリ ミリメートル 毫米",
    "mile": "mile miles meile meilen マイル 英里",
    "foot": "foot feet ft フィート 英尺",
    "inch": "inch inches zoll インチ 英寸",
    "kilogram": "kilogram kilograms kilo kilos kg キロ キログラム 公斤 千克",
    "gram": "gram grams gramm gramme grammes g グラム 克",
    "milligram": "milligram milligrams mg ミリグラム 毫克",
    "tonne": "tonne tonnes ton tons t トン 吨",
    "litre": "litre litres liter liters l リットル 升",
    "millilitre": "millilitre millilitres milliliter milliliters ml ミリリットル 毫升",
    "degree": "degree degrees ° °c °f 度 grad degrés",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes メガバイト",
    "gigabyte": "gb gigabyte gigabytes ギガバイト",
    "terabyte": "tb terabyte terabytes テラバイト",
    "watt": "watt watts w ワット 瓦",
    "volt": "volt volts v ボルト 伏",
}  # fmt: skip
UNITS_OF_COUNTERS = {
    "person": "人 名 位", "case": "件", "machine": "台", "sheet": "枚 张 張", "volume": "冊 册", "long thing": "本",
    "floor": "階 楼 层 層", "age": "歳 才 岁 歲", "character": "字 文字",
}  # fmt: skip
"""What Japanese and Chinese count; other languages name the things themselves, in any words."""

UNITS: dict[str, frozenset[str]] = {}
for _name, _spellings in (SPELLINGS | UNITS_OF_COUNTERS).items():
    for _word in (each.replace("_", " ") for each in _spellings.split()):
        UNITS[_word] = UNITS.get(_word, frozenset[str]()) | {_name}

LATIN = re.compile(r"[a-zäöüéè' $]+\Z")
LATIN_UNITS = "|".join(sorted((re.escape(word) for word in UNITS if LATIN.match(word)), key=len, reverse=True))
SIGN_UNITS = "|".join(sorted((re.escape(word) for word in UNITS if not LATIN.match(word)), key=len, reverse=True))
BOUND = {
    "分": "(?!の|之)", "日": "(?![本曜])", "月": "(?!曜)", "本": "(?![社日部人当])", "人": "(?!民)", "年": "(?!度)",
}  # fmt: skip
"""What a character is not a unit before."""
SMALL = """and or to a an the of in on at for by per than with from until but if as is are may can must be before after each every no
not then when where which who will would should has have had was were does this these those always across unless towards perhaps plus
minus less january february march april june july august september october november december""".split()
OTHER = rf"(?!(?:{'|'.join((*WORDS, *SMALL))})\b)[a-z]+"
"""A word between a number and its unit, as in `28 working days`."""
BEHIND = re.compile(
    r"(?:(?:st|nd|rd|th|er|e)(?=\s))?\)?"
    r"(?:(?:営業|勤務|労働|工作|营业|个工作|個工作|自然|暦)(?P<wide>日|時間|小时)"
    rf"|[ -]?(?P<sign>{'|'.join(f'{word}{BOUND.get(word, str())}' for word in SIGN_UNITS.split('|'))})"
    rf"|[ -]*(?:{OTHER}[ -]+){{0,2}}?(?P<latin>{LATIN_UNITS})(?![\w'])"
    rf"|\s?{OTHER}(?<=[a-z]{{3}}s)\b|[\u30a1-\u30fa\u3400-\u9fff](?<![以前超未約程内中後余強弱]))"
)
PART_OF = re.compile("[ -]*(?:of )?an? ")
BEFORE = re.compile(
    r"(?P<unit>[€£$¥₩₹]|us\$|(?<![a-z])(?:usd|eur|gbp|jpy|cny|rmb|chf|inr|krw)|人民币|人民幣)\s?(?:\d[\d.,]*\s?(?:-|to|bis|〜|~|至|到)\s?)?\Z"
)
RATE = re.compile(
    rf"(?P<before>[a-z%€£$]+|\d) (?:an?|per(?! cent)|each|every|pro|par) (?P<latin>{LATIN_UNITS})\b|/ ?(?P<slash>{LATIN_UNITS})\b"
    r"|\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annual|annually)\b"
    r"|(?:毎|每|一(?=[日年月週周泊]))(?P<wide>日|天|週|周|月|年|時|时|泊|晚)"
)
ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annual": "year", "annually": "year"}  # fmt: skip
HAVE = frozenset(
    "have has had take takes took is was get gets for in within after of on at to and or half such".split()
)
"""Words behind which `a day` is one day, and not each day."""
ANY = frozenset[str]()
REPEATED = frozenset({"twice", "thrice", "zweimal"})
ORDINAL = re.compile(rf"(?:{'|'.join(ORDINALS.split())}|(?<=\d)(?:st|nd|rd|th))\b")
COUNTED = frozenset({"day", *UNITS_OF_COUNTERS})
"""What an ordinal without a unit can count: a day of a month, or a thing."""


class Quantity(NamedTuple):
    """A number, what its unit may be (nothing known: empty), and whether a word follows it that is not a unit."""

    number: str
    units: frozenset[str] = ANY
    counts_things: bool = False

    def agrees(self, other: "Quantity") -> bool:
        """Whether this quantity can be the other one; a number without a unit can stand for one with it.

        >>> [Quantity("5", UNITS["$"]).agrees(Quantity("5", UNITS[unit])) for unit in ("dollars", "euros")]
        [True, False]
        """
        if self.number != other.number:
            return False
        if self.units and other.units:
            return not self.units.isdisjoint(other.units)
        return not (self.units and other.counts_things and self.units.isdisjoint(UNITS_OF_COUNTERS))


def quantities(folded: str) -> list[Quantity]:
    """Return the numbers of a text in small letters with their units.

    >>> [(each.number, *sorted(each.units)) for each in quantities("£5 a day, thirty working days, 2万円, 3か月, 午後3時")]
    [('5', 'pound'), ('30', 'day'), ('20000', 'yen'), ('3', 'month'), ('3', "o'clock")]
    """
    return [_quantity(folded, *found) for found in find_numbers(folded)]


def _quantity(folded: str, number: str, start: int, end: int) -> Quantity:
    before, spelling, behind = folded[max(start - 30, 0) : start], folded[start:end], folded[end : end + 60]
    if found := BEFORE.search(before):
        return Quantity(number, UNITS[found["unit"]])
    if spelling in REPEATED:
        return Quantity(number, UNITS["times"])
    found = BEHIND.match(PART_OF.sub(" ", behind, count=1) if number.startswith("0.") else behind)
    is_ordinal = ORDINAL.search(spelling + behind[:2]) is not None
    if found is None:
        return Quantity(number, COUNTED if is_ordinal else ANY)
    word = found["sign"] or found["latin"] or found["wide"]
    return Quantity(number, UNITS[word]) if word else Quantity(number, COUNTED if is_ordinal else ANY, not is_ordinal)


def rates(folded: str) -> Iterator[frozenset[str]]:
    """Yield the units by which something is counted: `a year`, `per mile`, `monthly`, `毎月`.

    >>> [*map(sorted, rates("42 pounds a day, 45 pence per mile, and you have a week"))]
    [['day'], ['mile']]
    """
    for found in RATE.finditer(folded):
        if found["adverb"]:
            yield frozenset({ADVERBS[found["adverb"]]})
        elif wide := found["wide"]:
            yield frozenset({"month"}) if wide == "月" else UNITS[wide] - {"o'clock", "month of the year"}
        elif found["slash"]:
            yield UNITS[found["slash"]]
        elif found["before"] not in HAVE:
            yield UNITS[found["latin"]]


def mentioned_units(folded: str) -> frozenset[str]:
    """Return every unit that a text names, with a number or without."""
    return ANY.union(*(UNITS[found[0]] for found in MENTION.finditer(folded)), *rates(folded))


MENTION = re.compile(rf"\b(?:{LATIN_UNITS})(?![\w'])|{SIGN_UNITS}")
