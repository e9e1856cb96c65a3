"""Measurement: units, temperatures, speeds, times, pH, solutions and substances."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from taiwa.models.builtin import copy_constraint
from taiwa.tools.chemical_formulas import formula as parsed
from training.builtin.everyday.telling import Everyday, EverydayProblem, apart

__all__ = ["Unit", "dilution", "duration", "ph", "speed", "substance", "temperature", "unit", "units"]

FILE = Path(copy_constraint.__file__).with_name(copy_constraint.UNIT_FILE)
DEGREES = {"degC": "°C", "degF": "°F"}
COMMON = {
    "length": 8,
    "mass": 7,
    "volume": 7,
    "time": 7,
    "speed": 4,
    "energy": 2,
    "pressure": 2,
    "area": 2,
    "power": 1.5,
    "data": 1.5,
}
METRIC = frozenset("km m cm mm kg g mg L mL h min s days m/s km/h".split())
ACIDS = "HCl HNO3 HBr HI HClO4".split()
BASES = "NaOH KOH LiOH".split()
SOLUTES = (
    ("salt|NaCl", "食塩|NaCl", "盐|食盐|NaCl"), ("sugar", "砂糖", "糖|白糖"), ("glucose", "ブドウ糖", "葡萄糖"), ("HCl|hydrochloric acid", "塩酸|HCl", "盐酸|HCl"),
    ("NaOH|sodium hydroxide", "NaOH|水酸化ナトリウム", "NaOH|氢氧化钠"), ("acid|sulfuric acid|H2SO4", "硫酸", "硫酸"), ("KCl|KNO3|stock", "KCl|KNO3", "KCl|KNO3"),
)  # fmt: skip
SUBSTANCES = """H2O 水 水;CO2 二酸化炭素 二氧化碳;NaCl 塩化ナトリウム/食塩 氯化钠/食盐;O2 酸素 氧气;H2 水素 氢气;N2 窒素 氮气;NH3 アンモニア 氨/氨气;CH4 メタン 甲烷;HCl 塩化水素 氯化氢;H2SO4 硫酸 硫酸
HNO3 硝酸 硝酸;NaOH 水酸化ナトリウム 氢氧化钠;CaCO3 炭酸カルシウム 碳酸钙;C6H12O6 グルコース/ブドウ糖 葡萄糖;C2H5OH エタノール 乙醇/酒精;Fe 鉄 铁;Cu 銅 铜;Al アルミニウム 铝;Mg マグネシウム 镁;Ca カルシウム 钙
CaO 酸化カルシウム 氧化钙;MgO 酸化マグネシウム 氧化镁;Fe2O3 酸化鉄(III) 氧化铁;CuO 酸化銅(II) 氧化铜;Al2O3 酸化アルミニウム 氧化铝;KOH 水酸化カリウム 氢氧化钾;Ca(OH)2 水酸化カルシウム 氢氧化钙;KCl 塩化カリウム 氯化钾
CaCl2 塩化カルシウム 氯化钙;Na2CO3 炭酸ナトリウム 碳酸钠;NaHCO3 炭酸水素ナトリウム 碳酸氢钠;SO2 二酸化硫黄 二氧化硫;NO2 二酸化窒素 二氧化氮;H2O2 過酸化水素 过氧化氢;C3H8 プロパン 丙烷;C2H4 エチレン 乙烯;C6H6 ベンゼン 苯
CH3COOH 酢酸 乙酸/醋酸;AgNO3 硝酸銀 硝酸银;CuSO4 硫酸銅 硫酸铜;BaSO4 硫酸バリウム 硫酸钡;KMnO4 過マンガン酸カリウム 高锰酸钾;NH4Cl 塩化アンモニウム 氯化铵;NH4NO3 硝酸アンモニウム 硝酸铵;He ヘリウム 氦;Zn 亜鉛 锌;S 硫黄 硫;C 炭素 碳
Na ナトリウム 钠;K カリウム 钾;Ag 銀 银;Au 金 金;Cl2 塩素 氯气;CH3OH メタノール 甲醇;C2H6 エタン 乙烷;C4H10 ブタン 丁烷;C12H22O11 スクロース/ショ糖 蔗糖;KNO3 硝酸カリウム 硝酸钾;Na2SO4 硫酸ナトリウム 硫酸钠;SiO2 二酸化ケイ素 二氧化硅;H3PO4 リン酸 磷酸"""
ELEMENTS = {
    "C": ("炭素", "碳"),
    "H": ("水素", "氢"),
    "O": ("酸素", "氧"),
    "N": ("窒素", "氮"),
    "Na": ("ナトリウム", "钠"),
    "Cl": ("塩素", "氯"),
    "Ca": ("カルシウム", "钙"),
    "Fe": ("鉄", "铁"),
    "S": ("硫黄", "硫"),
    "K": ("カリウム", "钾"),
    "Cu": ("銅", "铜"),
    "Al": ("アルミニウム", "铝"),
    "Mg": ("マグネシウム", "镁"),
}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as the converter reads it, with its names in each language."""

    name: str
    sort: str
    words: Mapping[str, str]

    def said(self, writer: Everyday) -> str:
        """Draw one of its names."""
        return writer.expanded(self.words[writer.code], {})


@cache
def units() -> Mapping[str, tuple[Unit, ...]]:
    """Return all units by dimension."""
    found: dict[str, list[Unit]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        name, sort, *words = line.split("\t")
        found.setdefault(sort, []).append(Unit(name, sort, dict(zip(("en", "ja", "zh"), words, strict=True))))
    return {sort: tuple(each) for sort, each in found.items()}


def quantity(writer: Everyday, number: str, one: Unit) -> str:
    """Return a number with its unit."""
    said = one.said(writer)
    if writer.code == "ja" and said in ("大さじ", "小さじ"):
        return f"{said}{number}杯"
    shown = writer.figure(number)
    if writer.code != "en":
        return f"{shown}{said}"
    if number == "1":
        said = {"feet": "foot", "inches": "inch"}.get(
            said, said.removesuffix("s") if len(said) > 3 and not said.endswith("ss") else said
        )
    return f"{shown}{'' if len(said) < 3 and writer.chance(0.2) else ' '}{said}"


def _amount(writer: Everyday) -> str:
    return writer.random.choice((
        str(writer.whole(1, 12)), str(writer.whole(2, 100)), str(writer.whole(2, 100)), str(writer.whole(5, 1_000, 5)), str(writer.whole(100, 20_000, 100)),
        writer.decimal(0.1, 10), writer.decimal(1, 100), writer.decimal(0.1, 20, 2), writer.pick("0.5", "1.5", "2.5", "3.5", "7.5", "0.25", "0.75", "1.75"),
    ))  # fmt: skip


def unit(writer: Everyday) -> EverydayProblem:
    """Ask to convert between units."""
    sort = writer.random.choices(list(COMMON), list(COMMON.values()))[0]
    weights = [2 if each.name in METRIC else 1 for each in units()[sort]]
    old = writer.random.choices(units()[sort], weights)[0]
    new = old
    while new is old:
        new = writer.random.choices(units()[sort], weights)[0]
    number = _amount(writer)
    slots = {"q": quantity(writer, number, old), "v": new.said(writer)}
    return writer.problem("unit", slots, ("Convert.", f"{number} {old.name} to {new.name}"), new.name)


def temperature(writer: Everyday) -> EverydayProblem:
    """Ask to convert between Celsius, Fahrenheit and kelvin; Celsius may be below zero."""
    celsius, fahrenheit, kelvin = units()["temperature"]
    old, new = writer.random.choice(
        ((celsius, fahrenheit),) * 4 + ((fahrenheit, celsius),) * 4 + ((celsius, kelvin), (kelvin, celsius))
    )
    number = str(
        {"degC": writer.whole(-30, 250), "degF": writer.whole(-20, 450), "K": writer.whole(100, 900)}[old.name]
    )
    number = number if writer.chance(0.85) else writer.decimal(2, 110)
    said = old.said(writer)
    if said.endswith("氏)"):
        shown = f"{'摂氏' if old is celsius else '華氏'}{number}度"
    elif writer.code == "zh" and said in ("摄氏度", "华氏度") and writer.chance(0.4):
        shown = f"{said[:2]}{number}度"
    else:
        shown = f"{number}{' ' if writer.code == 'en' and (len(said) > 2 or writer.chance(0.5)) else ''}{said}"
    target = new.said(writer)
    if writer.code == "ja":
        target = {"degC": writer.pick("摂氏", "摂氏", "℃"), "degF": writer.pick("華氏", "華氏", "°F")}.get(
            new.name, target
        )
    name = DEGREES.get(new.name, new.name)
    return writer.problem(
        "temperature", {"q": shown, "v": target}, ("Convert.", f"{number} {old.name} to {new.name}"), name
    )


PACES = (
    ("km/h", "km", "h", ("{} km/h|{} km/h|{} kilometres per hour|{} km per hour", "時速{}km|時速{}キロ|{}km/h|毎時{}km", "每小时{}公里|时速{}公里|{}km/h|每小时{}千米"), (10, 300)),
    ("m/min", "m", "min", ("{} m/min|{} metres per minute", "分速{}m|毎分{}m|分速{}メートル", "每分钟{}米|每分{}米"), (20, 400)),
    ("m/s", "m", "s", ("{} m/s|{} metres per second", "秒速{}m|毎秒{}m|秒速{}メートル", "每秒{}米|{}m/s"), (2, 60)),
    ("mph", "miles", "h", ("{} mph|{} miles per hour", "時速{}マイル", "每小时{}英里"), (10, 90)),
)  # fmt: skip


def speed(writer: Everyday) -> EverydayProblem:
    """Ask for one of speed, distance and time."""
    name, way, period, forms, (low, high) = writer.random.choices(PACES, (6, 2, 2, 1))[0]
    known = {each.name: each for sort in ("length", "time") for each in units()[sort]}
    pace = str(writer.whole(low, high)) if writer.chance(0.6) else str(writer.whole(low, high, 5))
    time = (
        str(writer.whole(2, 12))
        if writer.chance(0.6)
        else writer.pick("0.5", "1.5", "2.5", "3.5", "4.5")
        if period == "h"
        else str(writer.whole(2, 90))
    )
    distance = f"{float(pace) * float(time):g}" if writer.chance(0.8) else str(writer.whole(5, 900))
    distance = distance if "e" not in distance else "1200"
    v = writer.of(*forms).format(writer.figure(pace) if writer.code != "en" else pace)
    t, d = quantity(writer, time, known[period]), quantity(writer, distance, known[way])
    if period == "h" and time.endswith(".5") and writer.chance(0.4):
        half = time.removesuffix(".5")
        t = (
            writer.of(f"{half} and a half hours", f"{half}時間半", f"{half}个半小时")
            if half != "0"
            else writer.of("half an hour", "30分", "半小时")
        )
    kind = writer.random.choice(("speed", "distance", "time"))
    short_way, short_time = (
        writer.of(*{"km": ("km", "km", "公里"), "m": ("m", "m", "米"), "miles": ("miles", "マイル", "英里")}[way]),
        writer.of(*{"h": ("h", "時間", "小时"), "min": ("min", "分", "分钟"), "s": ("s", "秒", "秒")}[period]),
    )
    if kind == "speed":
        time = "0.5" if "30分" in t else time
        slots = {"d": d, "t": t if "30分" not in t else "半時間", "v": name, "T": short_time}
        return writer.problem(kind, slots, ("Speed is distance divided by time.", f"{distance}/{time}"), name)
    if kind == "distance":
        slots = {"v": v, "t": t if "30分" not in t else "半時間", "d": short_way}
        return writer.problem(kind, slots, ("Distance is speed times time.", f"{pace}*{time}"), way)
    return writer.problem(
        kind, {"d": d, "v": v, "t": short_time}, ("Time is distance divided by speed.", f"{distance}/{pace}"), period
    )


def duration(writer: Everyday) -> EverydayProblem:
    """Ask for hours and minutes in minutes, or for the time between two clock times."""
    if writer.chance(0.4):
        hours, minutes = str(writer.whole(1, 12)), str(writer.whole(5, 55, writer.random.choice((1, 5, 5))))
        return writer.problem(
            "minutes", {"H": hours, "M": minutes}, ("Hours are 60 minutes.", f"{hours}*60+{minutes}"), "min"
        )
    start, end = sorted(writer.random.sample(range(5 * 60, 23 * 60, writer.random.choice((1, 5, 5, 15))), 2))
    (a, b), (c, d) = divmod(start, 60), divmod(end, 60)
    form = writer.of("{}:{:02}|{}:{:02}|{}.{:02}", "{}時{}分|{}:{:02}|{}時{}分", "{}点{}分|{}:{:02}|{}时{}分")
    early, late = form.format(a, b), form.format(c, d)
    if "{}時{}" in form or "{}点" in form or "{}时" in form:
        early, late = (
            each.removesuffix("0分") if each.endswith(("時0分", "点0分", "时0分")) else each for each in (early, late)
        )
    work = f"({c}-{a})*60+{d}-{b}"
    return writer.problem("clock", {"a": early, "b": late}, ("Hours are 60 minutes.", work), "min")


def _strength(writer: Everyday) -> tuple[str, str]:
    """Return a small concentration as it is written, and as an expression."""
    unit_ = writer.pick(" M", "M", " mol/L", "mol/L", " mol/l")
    kind = writer.random.randrange(4)
    power = writer.whole(1, 7)
    if kind == 0:
        number = writer.pick("0.1", "0.01", "0.001", "0.0001", "0.00001", "1")
        return number + unit_, number
    if kind == 1:
        number = f"{writer.whole(1, 99) / writer.random.choice((100, 1_000, 10_000)):.5f}".rstrip("0")
        return number + unit_, number
    if kind == 2:
        return writer.pick(f"10^-{power}", f"10^-{power}", f"1e-{power}", f"1 x 10^-{power}") + unit_, f"10^-{power}"
    front = writer.decimal(1.1, 9.9)
    return writer.pick(
        f"{front} x 10^-{power}", f"{front}x10^-{power}", f"{front}e-{power}", f"{front}·10^-{power}"
    ) + unit_, f"{front}*10^-{power}"


def ph(writer: Everyday) -> EverydayProblem:
    """Ask about strong acids and bases."""
    kind = writer.random.choices(("ph acid", "ph base", "ph to h", "ph to poh", "poh to ph"), (5, 2.5, 4, 0.7, 0.7))[0]
    shown, number = _strength(writer)
    level = (
        str(writer.whole(1, 13)) if writer.chance(0.6) else writer.decimal(0.5, 13.5, writer.random.choice((1, 1, 2)))
    )
    acid = (
        writer.pick(*ACIDS, "HCl", "HCl")
        if writer.chance(0.7)
        else writer.of("hydrochloric acid|nitric acid|strong acid", "塩酸|硝酸|塩酸", "盐酸|硝酸|盐酸")
    )
    base = (
        writer.pick(*BASES, "NaOH")
        if writer.chance(0.7)
        else writer.of(
            "sodium hydroxide|potassium hydroxide|strong base", "水酸化ナトリウム|水酸化カリウム", "氢氧化钠|氢氧化钾"
        )
    )
    slots = {"c": shown, "A": acid, "B": base, "h": level}
    work = {
        "ph acid": ("pH is -log10 of H+.", f"-log10({number})", ""),
        "ph base": ("pH is 14 plus log10 of OH-.", f"14+log10({number})", ""),
        "ph to h": ("H+ is 10 to the power of -pH.", f"10^-{level}", "mol/L"),
        "ph to poh": ("pH and pOH are 14 together.", f"14-{level}", ""),
        "poh to ph": ("pH and pOH are 14 together.", f"14-{level}", ""),
    }[kind]
    return writer.problem(kind, slots, work[:2], work[2])


def dilution(writer: Everyday) -> EverydayProblem:
    """Ask about solutions that are diluted, mixed or prepared."""
    kind = writer.random.choice(
        (
            "dilute conc",
            "dilute conc",
            "dilute stock",
            "dilute stock",
            "water",
            "mass percent",
            "solute",
            "molarity moles",
        )
    )
    names = writer.random.choice(SOLUTES)
    strong, weak = (
        writer.pick("1", "2", "5", "6", "10", "12", "0.5", "2.5", "3"),
        writer.pick("0.1", "0.2", "0.05", "0.25", "0.4", "0.01"),
    )
    little, much = str(writer.whole(5, 100, 5)), str(writer.whole(100, 2_000, writer.random.choice((50, 100))))
    some, water = str(writer.whole(2, 60)), str(writer.whole(20, 500, 10))
    share = writer.pick("5", "10", "2", "20", "0.9", "3", "15", "25", "8")
    slots = {"S": writer.of(*names), "c": strong, "C": weak, "v": little, "V": much, "w": water, "m": some, "r": share}
    says, work, unit_ = {
        "dilute conc": ("The same moles in more volume.", f"{strong}*{little}/{much}", "mol/L"),
        "dilute stock": ("The same moles in less volume.", f"{much}*{weak}/{strong}", "mL"),
        "water": ("The same moles in more volume.", f"{strong}*{little}/({little}+{water})", "mol/L"),
        "mass percent": ("The part over the whole, in percent.", f"round({some}/({some}+{water})*100, 2)", "%"),
        "solute": ("The share of the whole.", f"{some}*{share}/100", "g"),
        "molarity moles": ("Volume in L times concentration.", f"{little}/1000*{strong}", "mol"),
    }[kind]
    return writer.problem(kind, slots, (says, work), unit_)


SUBSTANCE_WORDS = {
    "ja": {
        "molar": "{X}の[モル質量|分子量|式量|1モルの質量|1molあたりの質量][は|は何g/molですか|はいくらですか|を求めて|を求めてください|を教えて|はいくつですか|を計算して]|{X}1[モル|mol]は何[g|グラム]ですか",
        "weight": "{X}{n}[モル|mol][の質量は何[g|グラム]ですか|は何[g|グラム]ですか|の質量は|の重さは何[g|グラム]ですか|は何[g|グラム]になりますか|の質量を求めて|は何[g|グラム]|の質量を計算して]|{n}[モル|mol]の{X}[は何[g|グラム]ですか|の質量は何[g|グラム]ですか|の質量を求めてください|の重さは|は何グラムの重さですか]|物質量が{n}molの{X}の質量[は|を求めよ]",
        "moles": "{X}{m}[g|グラム]は何[モル|mol][ですか||になりますか|でしょうか|か]|{m}[g|グラム]の{X}[は何[モル|mol]ですか|の物質量は|の物質量を求めて|の物質量は何molですか|は何モルになりますか]|{X}が{m}[g|グラム]あります。[何モルですか|物質量は|何molですか]|{X}{m}gの[物質量|モル数]を[求めて|計算して]",
        "share": "{X}の{E}の質量[パーセント|百分率|割合][は|は何%ですか|を求めて]|{X}に含まれる{E}は質量で何%ですか|{X}中の{E}の[割合|質量%]は何%ですか",
    },
    "zh": {
        "molar": "{X}的[摩尔质量|分子量|相对分子质量|式量][是多少||等于多少|是多少g/mol]|[求|计算]{X}的摩尔质量|1[摩尔|mol]{X}[有多少克|重多少克|的质量是多少]",
        "weight": "{n}[摩尔|mol]{X}[的质量是多少克|有多少克|重多少克|的质量是多少|是多少克|多重]|{n}[摩尔|mol]的{X}[质量是多少|是多少克]|[求|计算]{n}mol{X}的质量|{X}的物质的量是{n}mol,质量是多少克",
        "moles": "{m}[克|g]{X}[是多少摩尔|是多少mol|有多少摩尔|的物质的量是多少|等于多少摩尔]|{m}[克|g]的{X}[的物质的量|是多少摩尔|有多少mol]|[求|计算]{m}克{X}的物质的量|有{m}克{X},[是多少摩尔|物质的量是多少]",
        "share": "{X}[中|里]{E}的质量[分数|百分比|百分数][是多少||是百分之几]|{X}含{E}百分之几|{E}在{X}中的质量[分数|百分比]是多少",
    },
}  # fmt: skip


@cache
def _substances() -> tuple[tuple[str, str, str], ...]:
    rows = (each.split(" ") for each in SUBSTANCES.replace("\n", ";").split(";"))
    return tuple((formula, japanese, chinese) for formula, japanese, chinese in rows)


def substance(writer: Everyday) -> EverydayProblem:
    """Ask for masses of substances, in Japanese and Chinese; English questions are in `chemistry`."""
    writer.code = writer.random.choice(("ja", "ja", "zh"))
    formula, japanese, chinese = writer.random.choice(_substances())
    by_name = writer.chance(0.6)
    name = writer.pick(*(japanese if writer.code == "ja" else chinese).split("/"))
    kind = writer.random.choices(("molar", "weight", "moles", "share"), (3, 4, 4, 2))[0]
    number = (
        str(writer.whole(1, 20))
        if writer.chance(0.6)
        else writer.pick("0.5", "1.5", "2.5", "0.25", "0.1", "3.5", "0.2", writer.decimal(0.1, 9))
    )
    grams = str(writer.whole(1, 200)) if writer.chance(0.7) else writer.decimal(0.5, 90)
    templates = _apart(SUBSTANCE_WORDS[writer.code][kind])
    template = writer.random.choice(templates)
    atoms = [each for each in parsed(formula).atoms if each in ELEMENTS]
    if kind == "share" and (len(parsed(formula).atoms) < 2 or not atoms):
        kind, template = "molar", writer.random.choice(_apart(SUBSTANCE_WORDS[writer.code]["molar"]))
    element = writer.random.choice(atoms) if atoms else ""
    said = (ELEMENTS[element][0 if writer.code == "ja" else 1] if writer.chance(0.7) else element) if element else ""
    text = writer.expanded(
        template, {"X": name if by_name else formula, "n": writer.figure(number), "m": writer.figure(grams), "E": said}
    )
    text = apart(text, [formula])
    steps = [(f"{name} is {formula}." if by_name else "", formula)]
    if kind == "share":
        steps += [("", element), ("", f"round({parsed(formula).atoms[element]}*@2/@1*100, 2)")]
    elif kind != "molar":
        steps.append(("", f"{number}*@1" if kind == "weight" else f"{grams}/@1"))
    unit_ = {"molar": "g/mol", "weight": "g", "moles": "mol", "share": "%"}[kind]
    return EverydayProblem(text, tuple(steps), unit_, (name, formula))


def _apart(templates: str) -> list[str]:
    """Split at the bars outside brackets."""
    found, depth, start = [], 0, 0
    for at, sign in enumerate(templates):
        depth += (sign == "[") - (sign == "]")
        if sign == "|" and not depth:
            found.append(templates[start:at])
            start = at + 1
    return [*found, templates[start:]]
