"""Check a calculation against its question in Japanese or Chinese: every number is used, and the result has the unit asked for.

A number of a question counts what stands behind it: a unit of the table of units, a currency, or a counter (個, 本, 张). What it counts
is by another unit where that stands before it with 毎, 每 or a one: `1分間に8リットル` is litres, or litres a minute. Nothing here depends
on word order, which both languages leave free.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Final

from taiwa.models.builtin.conversion_check import KANA, unit_names
from taiwa.models.builtin.copy_constraint import UNIT_KINDS, read_numeral
from taiwa.models.builtin.dimension_check import (
    KINDS,
    NONE,
    Dimension,
    Dimensions,
    NotAddedError,
    over,
    result_dimensions,
    times,
)

__all__ = ["Asked", "Counted", "asked_names", "has_other_kind", "is_told_otherwise", "misuses", "read_counted"]

DIGIT = "〇零一二三四五六七八九两"
SCALE = "十百千万億亿"
NUMBER = re.compile(
    rf"(?<![\d.第])(?P<digits>(?<!\d,)\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!,?\d)|\d+(?:\.\d+)?)(?P<scale>[{SCALE}][{SCALE}{DIGIT}\d]*)?"
    rf"|(?<!第)(?P<numeral>[{DIGIT}{SCALE}]+)|(?P<kana>ひと|ふた|みっ|よっ|いつ|むっ|なな|やっ|ここの)つ",
)
KANA_NUMBERS: Final = {word: at for at, word in enumerate("ひと ふた みっ よっ いつ むっ なな やっ ここの".split(), 1)}
NAMES_WITH_NUMERAL = re.compile(
    r"[一二三四五六七八九十][酸氧氯塩盐硫水氮窒溴臭氟角边辺般共起样緒様定直切旦]|十分(?=[にな])|万一|千葉|四国|九州|三重|百货|三明治|一部|一人前"
)
"""Words that begin with a numeral and give no number."""
MONEY: Final[Mapping[str, str]] = {
    "円": "yen", "日元": "yen", "日圆": "yen", "元": "yuan", "块钱": "yuan", "人民币": "yuan", "块": "yuan", "ドル": "dollar", "美元": "dollar",
    "美金": "dollar", "ユーロ": "euro", "欧元": "euro", "ポンド": "pound", "英镑": "pound", "ウォン": "won", "韩元": "won", "ペソ": "peso",
    "フラン": "franc", "ルピー": "rupee",
}  # fmt: skip
COUNTERS: Final = frozenset(
    """個 个 箇 つ こ 本 冊 册 枚 人 名 位 匹 只 頭 头 台 辆 輛 両 箱 袋 杯 瓶 缶 罐 件 条 張 张 支 枝 把 颗 顆 粒 ページ 页 点 歳 岁 回 次 列 排 班 段 泊 晚 晩
    皿 斤 束 串 家 軒 間 间 层 階 足 羽 隻 篇 章 行 缸 盒 包 桶 份 片 根 棵 朵 双 套 句 字 題 题 問 问 道 盘 碗 筐 篮 车 組 组 打 ダース 周 圈 種 种 人分 人份 人前 問題
    """.split()
) | {"年", "个月", "か月", "ヶ月", "ケ月", "カ月", "月"}
PERCENT = re.compile(r"\s?(?:%|パーセント)")
TENTHS = re.compile(r"割(?!る|り算|り切|れ|っ|勘|り勘)(?:([一二三四五六七八九\d])分)?|成(?![功人長长员員分绩立本果])")
DISCOUNT = re.compile(r"折")
FRACTION = re.compile(
    rf"(?P<below>[{DIGIT}{SCALE}\d]+)\s?分[の之]\s?(?P<above>\d+(?:\.\d+)?|[{DIGIT}{SCALE}]+)|(?<![\d/])(?P<up>\d+)/(?P<down>\d+)(?![\d/])"
)
CLOCK_DIGITS = re.compile(r"(?<![\d.,:])(?P<h>[01]?\d|2[0-4])[:](?P<m>[0-5]\d)(?![:\d])")
CLOCK_JA = re.compile(r"(?<![\d.])(?P<h>[01]?\d|2[0-4])時(?!間|速)(?:(?P<half>半)|(?P<m>[0-5]?\d)分)?")
CLOCK_ZH = re.compile(r"(?<![\d.])(?P<h>[01]?\d|2[0-4])[点點时](?!间)(?!\d*[%度])(?:(?P<half>半)|(?P<m>[0-5]?\d)分?)?")
AFTERNOON = re.compile(r"(?:午後|下午|晚上|夜|夕方|傍晚|中午)(?:の)?\s?\Z")
DATE = re.compile(r"\d+月\d+[日号]|\d{4}年(?:\d+月)?|\d+号室|\d+[号號](?!楼)")
HALF = re.compile(r"[个個]?半(?!分|額|価|径|角|数)")
HALF_OF = re.compile(r"半[个個]?(?!分|額|価|径|角|数|时)")
LETTERS = re.compile(r"[A-Za-z][A-Za-z/]*\Z")
SPEED: Final = {"時速": "h", "毎時": "h", "时速": "h", "分速": "min", "毎分": "min", "秒速": "s", "毎秒": "s"}
SPEEDING = re.compile(rf"(?P<by>{'|'.join(SPEED)})(?:は|が|约|約)?\s?\Z")
PER = re.compile(r"\s?(?:/|毎|每|一)\s?(?:100|百)?")
CLAUSE_END = re.compile(r"[。!?！？;；\n]|(?<=[すた]) ")
ASKS = re.compile(r"何(?!も|か|で(?!す)|を|が)|多少|几(?!乎)|いくつの?")
MONEY_ASKED = re.compile(r"いくら|多少钱|几块钱|多少元|値段|价钱|お?つり|找回")
SHARE_ASKED = re.compile(r"百分之[几多]|[何几多少]+\s?(?:%|パーセント)|何割|[割比]合|百分率|百分比|占多少")
SIDES = 6


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of a question. `names` are the units that it may be given in, each with what it is by (`` for nothing).

    `uses` are the sets of numbers one of which a calculation with it has; none if it says nothing (a date, one).
    """

    start: int
    end: int
    value: Fraction
    names: frozenset[tuple[str, str]] = frozenset()
    uses: tuple[frozenset[Fraction], ...] = ()
    is_percent: bool = False
    is_clock: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: units, each with what it is by, `` for nothing; `share` for a part in percent."""

    names: frozenset[tuple[str, str]]
    is_share: bool = False


@cache
def _names() -> tuple[Mapping[str, frozenset[str]], re.Pattern[str]]:
    """Return what each name may mean, and a pattern of the names, the longest first."""
    found: dict[str, set[str]] = {}
    for name, units in unit_names().items():
        if not name.isascii() or len(name) <= 4:
            found.setdefault(name, set()).update(units)
    for name, currency in MONEY.items():
        found.setdefault(name, set()).add(currency)
    for name in COUNTERS:
        found.setdefault(name, set()).add(name)
    for name in ("分", "点"):
        found.setdefault(name, set()).add("点")
    found["杯"] = {"杯", "cups"}
    for name in ("mol/L", "mol/l", "M", "モル/リットル", "摩尔每升", "摩尔/升"):
        found[name] = {"mol/L"}
    for name in ("mol", "モル", "摩尔"):
        found[name] = {"mol"}
    spelt = sorted(found, key=lambda name: (-len(name), name))
    parts = (rf"{re.escape(name)}(?!(?![xX]\d)[A-Za-z^])" if name.isascii() else re.escape(name) for name in spelt)
    return {name: frozenset(units) for name, units in found.items()}, re.compile("|".join(parts))


def _name_at(text: str, at: int) -> tuple[frozenset[str], int] | None:
    """Return the units that a name at a place may mean, and its end."""
    names, pattern = _names()
    found = pattern.match(text, at + (text[at : at + 1] == " "))
    return None if found is None else (names[found[0]], found.end())


def _fraction(text: str) -> Fraction:
    return Fraction(read_numeral(text))


def _number(found: re.Match[str], text: str) -> tuple[Fraction, int] | None:
    """Return the value of a number and its end: where a unit that begins with a numeral follows (`八千克`), its beginning."""
    if found["kana"]:
        return Fraction(KANA_NUMBERS[found["kana"]]), found.end()
    start, end = found.span()
    for at in range(max(start + 1, end - 1), end):
        if text[at] in SCALE and (unit := _name_at(text, at)) is not None and unit[1] - at > 1:
            end = at
    if found["digits"]:
        digits = found["digits"].replace(",", "")
        if not found["scale"] or end <= found.end("digits"):
            return Fraction(digits), found.end("digits")
        return _fraction(digits + text[found.end("digits") : end]), end
    is_scale = text[start:end] in ("千", "万", "百")
    is_named = NAMES_WITH_NUMERAL.match(text, end - 1 if end - start > 1 else start) is not None
    if (is_named and not is_scale) or text[start:end] in ("零", "〇") or (is_scale and _name_at(text, end) is None):
        return None
    return _fraction(text[start:end]), end


@lru_cache(256)
def read_counted(text: str) -> tuple[Counted, ...]:
    """Return the numbers of a question, from the left.

    >>> [(str(each.value), sorted(each.names)) for each in read_counted("1本120円の鉛筆を五本と")]
    [('1', [('本', '')]), ('120', [('yen', ''), ('yen', '本')]), ('5', [('本', '')])]
    """
    return tuple(_read(text))


def _read(text: str) -> Iterator[Counted]:
    found = dict(_whole(text))
    taken = {at for each in found.values() for at in range(each.start, each.end)}
    dates = {at for date in DATE.finditer(text) for at in range(*date.span())}
    last = 0
    for number in NUMBER.finditer(text):
        is_new = number.start() >= last and taken.isdisjoint(range(*number.span()))
        if is_new and not _is_in_name(text, number.start()) and (read := _number(number, text)) is not None:
            found[number.start()] = _plain(text, number.start(), read[1], read[0], is_date=number.start() in dates)
            last = found[number.start()].end
    yield from (found[at] for at in sorted(found))


def _is_in_name(text: str, start: int) -> bool:
    """Whether a digit belongs to the letters before it, as in a formula; not behind a unit (`15g10%`), `pH` or the sign `x`."""
    letters = LETTERS.search(text, 0, start)
    if letters is None or letters[0] in ("x", "X", "pH", "pOH"):
        return False
    is_unit = letters[0].rstrip("xX/") in _names()[0] and text[letters.start() - 1 : letters.start()].isdecimal()
    return not is_unit


def _whole(text: str) -> Iterator[tuple[int, Counted]]:
    """Yield fractions and times of the day."""
    for found in FRACTION.finditer(text):
        if found["below"] == "百":  # a percentage
            above = _fraction(found["above"])
            yield found.start(), Counted(*found.span(), above, uses=_percent_uses(above), is_percent=True)
            continue
        above, below = (
            (_fraction(found["above"]), _fraction(found["below"]))
            if found["above"]
            else (Fraction(found["up"]), Fraction(found["down"]))
        )
        if below:
            yield (
                found.start(),
                Counted(
                    *found.span(),
                    above / below,
                    uses=(
                        frozenset({below}),
                        frozenset({above, below}),
                        frozenset({above / below}),
                        frozenset({1 - above / below}),
                    ),
                    is_percent=True,
                ),
            )
    for found in HALF_OF.finditer(text):
        unit = _name_at(text, found.end())
        if unit is not None and (
            found.start() == 0 or not HALF.match(text, found.start()) or _is_first_half(text, found.start())
        ):
            uses = tuple(frozenset({Fraction(each)}) for each in ("0.5", "2", "30"))
            yield (
                found.start(),
                Counted(found.start(), found.end(), Fraction(1, 2), frozenset((each, "") for each in unit[0]), uses),
            )
    for clock in (CLOCK_DIGITS, CLOCK_JA if KANA.search(text) else CLOCK_ZH):
        for found in clock.finditer(text):
            hours = int(found["h"])
            minutes = 30 if "half" in found.groupdict() and found["half"] else int(found["m"] or 0)
            late = 12 * bool(AFTERNOON.search(text[: found.start()]) and hours < 12)
            each = [frozenset(map(Fraction, {hour, minutes} - {0})) for hour in {hours + late, hours}]
            decimals = [frozenset({Fraction(hour) + Fraction(minutes, 60)}) for hour in {hours + late, hours}]
            yield found.start(), Counted(*found.span(), Fraction(hours + late), uses=(*each, *decimals), is_clock=True)


def _is_first_half(text: str, at: int) -> bool:
    """Whether no number with its unit stands right before a half: `用了半小时`, and not `3个半小时`."""
    return not re.search(rf"[\d{DIGIT}{SCALE}](?:時間|小时|個小时|个小时|時|时|个|個|[^\s\d]{{0,2}})\Z", text[:at])


def _percent_uses(percent: Fraction) -> tuple[frozenset[Fraction], ...]:
    share = percent / 100
    return tuple(frozenset({each}) for each in (percent, share, 100 - percent, 1 - share, 100 + percent, 1 + share))


def _plain(text: str, start: int, end: int, value: Fraction, *, is_date: bool) -> Counted:
    if PERCENT.match(text, end):
        return Counted(start, end, value, uses=_percent_uses(value), is_percent=True)
    if (tenths := TENTHS.match(text, end)) is not None and value < 10:
        percent = 10 * value + (_fraction(tenths[1]) if tenths[1] else 0)
        return Counted(
            start, tenths.end(), percent, uses=(*_percent_uses(percent), frozenset({value})), is_percent=True
        )
    if DISCOUNT.match(text, end):
        percent = 10 * value if value < 10 else value
        return Counted(start, end + 1, percent, uses=(*_percent_uses(percent), frozenset({value})), is_percent=True)
    if text[end : end + 1] == "倍":
        return Counted(start, end + 1, value, frozenset({("", "")}), (frozenset({value}),))
    named = _name_at(text, end)
    uses: tuple[frozenset[Fraction], ...] = () if is_date or value in (0, 1) else (frozenset({value}),)
    if (parts := text[start:end].split(","))[2:]:  # `72,188,195` may be three numbers
        uses = (*uses, frozenset(map(Fraction, parts)))
    if named is None:
        return Counted(start, end, value, uses=uses)
    units, after = named
    if (half := HALF.match(text, end) or HALF.match(text, after)) is not None and (
        behind := _name_at(text, half.end())
    ) is not None:
        units, after = (behind[0], behind[1]) if units & {"个", "個"} else (units, half.end())  # `3个半小时`
    if half is not None:
        one = Fraction(1, 2)
        uses = (frozenset({value + one}), frozenset({value, one}), frozenset({value, Fraction(30)}))
        value += one
    return Counted(start, end, value, frozenset(_by(text, start, after, units)), uses)


def _by(text: str, start: int, after: int, units: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the units of a number with what they may be by."""
    before = text[:start]
    if (speed := SPEEDING.search(before)) is not None:
        yield from ((unit, SPEED[speed["by"]]) for unit in units)
        return
    per = PER.match(text, after)
    if per is not None and (by := _name_at(text, per.end())) is not None:
        yield from ((unit, other) for unit in units for other in by[0])
        if per[0].strip() != "一":
            return
    is_sure = False
    for each in _each(before):
        is_sure |= each[1]
        yield from ((unit, by) for unit in units for by in each[0])
    if text.startswith("ずつ", after):
        yield from ((unit, unit) for unit in units)
    if not is_sure:
        yield from ((unit, "") for unit in units)


def _each(before: str) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield the unit of one of which a number behind a text may tell, and whether it does for sure."""
    clause = re.split(r"[、。,;!?，！？；]", before)[-1]
    if (per := re.search(r"(?:あたり|につき|ごとに)", clause)) is not None and not NUMBER.search(clause, per.end()):
        ends = ((at, _name_at(clause, at)) for at in range(max(0, per.start() - SIDES), per.start()))
        if (named := next((each for _, each in ends if each is not None and each[1] == per.start()), None)) is not None:
            yield named[0], True
            return
    for found in re.finditer(r"毎|每|各|(?<![\d.,一二三四五六七八九十第])[1一ひ](?!\d)(?:と(?=つ))?", clause):
        at = found.end()
        at += 1 if clause[at : at + 1] in ("百", "千", "十") else 3 if clause[at : at + 3] == "100" else 0
        named = _name_at(clause, at)
        if named is None:
            continue
        rest = clause[named[1] :]
        if not NUMBER.search(rest) and len(rest) <= 12:
            is_time = bool(named[0] & {"h", "min", "s", "days", "weeks"})
            yield named[0], found[0] in "毎每" and is_time


@lru_cache(256)
def asked_names(text: str) -> Asked:
    """Return what a question asks for.

    >>> sorted(asked_names("1日に16ページずつ読むと、何日かかりますか").names)
    [('days', '')]
    """
    found: set[tuple[str, str]] = set()
    for asked in ASKS.finditer(text):
        named = _name_at(text, asked.end())
        if named is not None:
            found.update((unit, by) for unit in named[0] for by in ("", *_asked_by(text, asked.start(), named[1])))
    currencies = {unit for each in read_counted(text) for unit, _ in each.names if unit in MONEY.values()}
    if MONEY_ASKED.search(text) and len(currencies) == 1 and not found:
        found.update((each, "") for each in currencies)
    return Asked(frozenset(found), bool(SHARE_ASKED.search(text)))


def _asked_by(text: str, start: int, after: int) -> Iterator[str]:
    """Yield by what a quantity may be asked for: `毎時何キロ`, `每升多少公里`."""
    if (speed := SPEEDING.search(text[:start])) is not None or (speed := re.search("|".join(SPEED), text)) is not None:
        yield SPEED[speed[0] if speed[0] in SPEED else speed["by"]]
    for units, _ in _each(text[:start]):
        yield from units
    per = PER.match(text, after)
    if per is not None and (by := _name_at(text, per.end())) is not None:
        yield from by[0]


DIGITS = re.compile(r"\d*\.?\d+")
HUNDRED = Fraction(100)
SCALING: Final = frozenset(map(Fraction, (7, 12, 24, 60, 1000, 3600)))
"""Numbers that turn one unit into another."""
ROUND: Final = frozenset(map(Fraction, (60, 100, 1000, 3600)))
"""Those of them that a question may give as well."""
CLOCK: Final[Dimension] = frozenset({("clock", 1)})


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
    except NotAddedError:
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
    except NotAddedError:
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


def _numbers(question: str) -> Mapping[Fraction, Dimensions]:
    """Return what the numbers of a question may count."""
    found: dict[Fraction, Dimensions] = {}
    for each in read_counted(question):
        kinds: Dimensions = (
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


def _result(question: str, calculation: str) -> Dimensions:
    """Return what the result of a calculation may count."""
    numbers = _numbers(question)
    if _scales(question, calculation):
        numbers = {number: kinds and frozenset(map(_coarse, kinds)) for number, kinds in numbers.items()}

    def number_of(number: Fraction) -> Dimensions:
        kinds = numbers.get(number, frozenset({NONE}))
        return kinds if kinds is None or number not in ROUND else kinds | {NONE}

    return result_dimensions(calculation, number_of, _sum, has_powers=False)


def _sum(operator: ast.operator, left: Dimensions, right: Dimensions) -> Dimensions:
    if left is None or right is None or (isinstance(operator, ast.Sub) and CLOCK in left):
        return None
    both = left & right
    if both:
        return both
    if NONE not in left | right and all(_is_hard(each) for each in left | right):
        raise NotAddedError
    return None
