"""Counting: averages, rates, recipes, sums and areas."""

from training.builtin.everyday.telling import Everyday, EverydayProblem

__all__ = ["area", "average", "fuel", "rate", "recipe", "sums"]

UNITS = {
    "hour": ("hour", "時間", "小时"),
    "day": ("day", "日", "天"),
    "minute": ("minute", "分", "分钟"),
    "week": ("week", "週間", "周"),
}


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
