"""Counting: averages, rates, recipes, sums and areas."""

from training.builtin.everyday.telling import Everyday, EverydayProblem

__all__ = ["area", "average", "fraction", "fuel", "portions", "rate", "recipe", "rest", "sums"]

UNITS = {
    "hour": ("hour", "時間", "小时"),
    "day": ("day", "日", "天"),
    "minute": ("minute", "分", "分钟"),
    "week": ("week", "週間", "周"),
}
GROUPS = (
    ("class|school class", "girls|boys", "クラス|学級", "女子|男子", "班|班级", "女生|男生"),
    ("class|course|choir|group", "boys|girls", "クラス|学級|合唱団", "男子|女子", "班|合唱团", "男生|女生"),
    ("team|club|firm|village", "women|men", "チーム|会社|村|クラブ", "女性|男性", "公司|村子|俱乐部", "女性|男性"),
    ("audience|party|tour", "adults|children", "ツアー|参加者|会場", "大人|子ども", "旅行团|晚会", "大人|孩子"),
)
VESSELS = (
    ("L", "mL", ("L|litres|liters", "L|リットル", "L|升"), ("mL|ml|millilitres", "mL|ml|ミリリットル", "mL|毫升"), "glasses|bottles|cups|jars|cans", "コップ|瓶|カップ|缶", "杯子|瓶子|罐子", "juice|water|milk|tea|oil", "ジュース|水|牛乳|お茶|油", "果汁|水|牛奶|茶|油", 1_000),
    ("kg", "g", ("kg|kilos|kilograms", "kg|キロ|キログラム", "kg|公斤|千克"), ("g|grams", "g|グラム", "g|克"), "bags|packets|portions|boxes", "袋|箱", "袋子|盒子", "flour|rice|sugar|salt|coffee", "小麦粉|米|砂糖|塩|豆", "面粉|米|糖|盐|豆子", 1_000),
    ("m", "cm", ("m|metres|meters", "m|メートル", "m|米"), ("cm|centimetres", "cm|センチ|センチメートル", "cm|厘米"), "pieces|strips", "切れ端", "段", "rope|ribbon|wire|string", "ロープ|リボン|針金|ひも", "绳子|丝带|铁丝", 100),
)  # fmt: skip
NUMERALS = dict(zip(range(1, 11), "一二三四五六七八九十", strict=True))
NAMED = {(1, 2): "half of", (1, 3): "a third of|one third of", (1, 4): "a quarter of|one quarter of", (1, 5): "a fifth of|one fifth of", (2, 3): "two thirds of", (3, 4): "three quarters of", (2, 5): "two fifths of", (3, 5): "three fifths of", (1, 10): "a tenth of|one tenth of"}  # fmt: skip


def rest(writer: Everyday) -> EverydayProblem:
    """Give a whole and one of its two parts; ask for the other part."""
    group, parts, group_ja, parts_ja, group_zh, parts_zh = writer.random.choice(GROUPS)
    one, other = {"en": parts, "ja": parts_ja, "zh": parts_zh}[writer.code].split("|")
    whole = writer.whole(8, 60) if writer.chance(0.6) else writer.whole(60, 900)
    part = writer.whole(2, whole - 2)
    slots = {
        "G": writer.of(group, group_ja, group_zh), "O": one, "P": other,
        "a": writer.figure(str(whole)), "b": writer.figure(str(part)),
    }  # fmt: skip
    return writer.problem("rest", slots, ("Take away.", f"{whole}-{part}"), other if writer.code == "en" else "")


def portions(writer: Everyday) -> EverydayProblem:
    """Ask how many vessels of a size a quantity fills; mostly the two have different units."""
    large, small, larges, smalls, vessels, vessels_ja, vessels_zh, goods, goods_ja, goods_zh, factor = (
        writer.random.choice(VESSELS)
    )
    size = writer.whole(2, 18) * factor // 40
    count = writer.whole(2, 40)
    same = writer.chance(0.25)
    whole = str(size * count) if same else f"{size * count / factor:g}"
    slots = {
        "q": whole + " " * (writer.code == "en") + writer.of(*(smalls if same else larges)), "v": f"{size}{' ' * (writer.code == 'en')}{writer.of(*smalls)}",
        "X": writer.of(goods, goods_ja, goods_zh), "G": writer.of(vessels, vessels_ja, vessels_zh),
    }  # fmt: skip
    convert = ("Convert.", f"{whole} {large} to {small}")
    steps = (("Divide.", f"{whole}/{size}"),) if same else (convert, ("Divide.", f"@1/{size}"))
    return EverydayProblem(writer.say("portions", slots), steps, keep=tuple(" ".join(slots.values()).split()))


def fraction(writer: Everyday) -> EverydayProblem:
    """Ask for a fraction of a number, written in figures or in words."""
    below = writer.whole(2, 10)
    above = 1 if writer.chance(0.45) else writer.whole(1, below - 1)
    whole = writer.whole(2, 60) * below if writer.chance(0.85) else writer.whole(10, 500)
    figures = writer.chance(0.5)
    over, under = (str(above), str(below)) if figures else (NUMERALS[above], NUMERALS[below])
    english = (
        writer.random.choice(NAMED[above, below].split("|"))
        if (above, below) in NAMED and not figures
        else f"{above}/{below} of"
    )
    shown = {"en": english, "ja": f"{under}分の{over}", "zh": f"{under}分之{over}"}[writer.code]
    if writer.code != "en" and writer.chance(0.1):
        shown = f"{above}/{below}"
    slots = {"f": shown, "T": writer.figure(str(whole))}
    return writer.problem("fraction", slots, ("The part of the whole.", f"{whole}*{above}/{below}"))


def average(writer: Everyday) -> EverydayProblem:
    """Ask for the mean of some numbers."""
    places = writer.chance(0.2)
    top = writer.random.choice((10, 30, 100, 300))
    numbers = [
        writer.decimal(1, top) if places else str(writer.whole(1, top))
        for _ in range(writer.random.choice((2, 3, 3, 3, 4, 4, 5, 6)))
    ]
    joint = writer.of(", ", "、|,|と", "、|,")
    listed = joint.join(numbers)
    if writer.code != "ja" and writer.chance(0.6):
        listed = joint.join(numbers[:-1]) + writer.of(" and | and |, and ", "と", "和|、") + numbers[-1]
    slots = {"L": listed, "k": str(len(numbers))}
    return writer.problem(
        "average", slots, ("The sum, divided by how many there are.", f"({'+'.join(numbers)})/{len(numbers)}")
    )


def rate(writer: Everyday) -> EverydayProblem:
    """Give a count per time; ask for the count in another time, or for the time."""
    english, japanese, chinese = writer.random.choice(list(UNITS.values()))
    each, times = str(writer.whole(2, 120)), str(writer.whole(2, 40))
    slots = {
        "X": writer.goods(),
        "u": writer.of(english, japanese, chinese),
        "n": writer.figure(each),
        "t": writer.figure(times),
    }
    if writer.chance(0.6):
        return writer.problem("rate", slots, ("Times the time.", f"{each}*{times}"))
    whole = str(int(each) * int(times))
    return writer.problem(
        "ratetime", slots | {"T": writer.figure(whole)}, ("Divide by the rate.", f"{whole}/{each}"), f"{english}s"
    )


def fuel(writer: Everyday) -> EverydayProblem:
    """Ask for the fuel of a distance."""
    uses = writer.decimal(3, 15) if writer.chance(0.6) else str(writer.whole(4, 20))
    way = str(writer.whole(20, 1_500, writer.random.choice((1, 10, 50))))
    return writer.problem(
        "fuel", {"c": uses, "d": writer.figure(way)}, ("For 100 km, times the way.", f"{way}*{uses}/100"), "L"
    )


def recipe(writer: Everyday) -> EverydayProblem:
    """Scale a recipe to another number of people."""
    some, others = writer.random.sample(range(2, 13), 2)
    unit = writer.of("g|g|grams|ml|mL", "g|グラム|mL", "克|g|毫升")
    amount = (
        str(writer.whole(5, 90, 5) * some)
        if writer.chance(0.5)
        else str(writer.whole(20, 900, writer.random.choice((5, 10, 50))))
    )
    slots = {
        "n": writer.figure(str(some)), "m": writer.figure(str(others)), "a": amount, "g": unit,
        "F": writer.of("flour|sugar|rice|butter|milk|pasta|cheese|water", "小麦粉|砂糖|米|バター|牛乳|水|肉|野菜", "面粉|糖|米|黄油|牛奶|水|肉"),
    }  # fmt: skip
    name = "mL" if unit.lower() in ("ml", "毫升") else "g"
    return writer.problem("recipe", slots, ("For one, times the number.", f"{amount}/{some}*{others}"), name)


def sums(writer: Everyday) -> EverydayProblem:
    """Ask for one operation on two numbers."""
    kind, sign, says = writer.random.choice(
        (("left", "-", "Take away."), ("sum", "+", "Add."), ("product", "*", "Multiply."), ("quotient", "/", "Divide."))
    )
    one, other = writer.whole(2, 99), writer.whole(2, 60)
    if writer.chance(0.25):
        one = writer.whole(100, 5_000)
    if kind == "left" and one < other:
        one, other = other, one
    if kind == "left" and one == other:
        one += 5
    if kind == "quotient":
        one *= other if writer.chance(0.8) and one < 200 else 1
    slots = {"a": writer.figure(str(one)), "b": writer.figure(str(other)), "X": writer.goods(), "Y": writer.goods()}
    return writer.problem(kind, slots, (says, f"{one}{sign}{other}"))


def area(writer: Everyday) -> EverydayProblem:
    """Ask about a rectangle."""
    one, other = (str(writer.whole(2, 80)) if writer.chance(0.7) else writer.decimal(1, 30) for _ in range(2))
    unit, name = writer.random.choice(
        (
            ("m", writer.of("m|metres", "m|メートル", "米|m")),
            ("cm", writer.of("cm|centimetres", "cm|センチ", "厘米|cm")),
        )
    )
    return writer.problem(
        "area", {"a": one, "b": other, "u": name}, ("Length times width.", f"{one}*{other}"), f"{unit}^2"
    )
