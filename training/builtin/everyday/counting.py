"""Counting: averages, rates, recipes, sums and areas."""

from training.builtin.everyday.telling import Asked, Everyday

__all__ = ["area", "average", "fuel", "rate", "recipe", "sums"]

UNITS = {
    "hour": ("hour", "時間", "小时"),
    "day": ("day", "日", "天"),
    "minute": ("minute", "分", "分钟"),
    "week": ("week", "週間", "周"),
}


def average(told: Everyday) -> Asked:
    """Ask for the mean of some numbers."""
    places = told.chance(0.2)
    top = told.random.choice((10, 30, 100, 300))
    numbers = [
        told.decimal(1, top) if places else str(told.whole(1, top))
        for _ in range(told.random.choice((2, 3, 3, 3, 4, 4, 5, 6)))
    ]
    joint = told.of(", ", "、|,|と", "、|,")
    listed = joint.join(numbers)
    if told.code != "ja" and told.chance(0.6):
        listed = joint.join(numbers[:-1]) + told.of(" and | and |, and ", "と", "和|、") + numbers[-1]
    slots = {"L": listed, "k": str(len(numbers))}
    return told.asked(
        "average", slots, ("The sum, divided by how many there are.", f"({'+'.join(numbers)})/{len(numbers)}")
    )


def rate(told: Everyday) -> Asked:
    """Give a count per time; ask for the count in another time, or for the time."""
    english, japanese, chinese = told.random.choice(list(UNITS.values()))
    each, times = str(told.whole(2, 120)), str(told.whole(2, 40))
    slots = {
        "X": told.goods(),
        "u": told.of(english, japanese, chinese),
        "n": told.figure(each),
        "t": told.figure(times),
    }
    if told.chance(0.6):
        return told.asked("rate", slots, ("Times the time.", f"{each}*{times}"))
    whole = str(int(each) * int(times))
    return told.asked(
        "ratetime", slots | {"T": told.figure(whole)}, ("Divide by the rate.", f"{whole}/{each}"), f"{english}s"
    )


def fuel(told: Everyday) -> Asked:
    """Ask for the fuel of a distance."""
    uses = told.decimal(3, 15) if told.chance(0.6) else str(told.whole(4, 20))
    way = str(told.whole(20, 1_500, told.random.choice((1, 10, 50))))
    return told.asked(
        "fuel", {"c": uses, "d": told.figure(way)}, ("For 100 km, times the way.", f"{way}*{uses}/100"), "L"
    )


def recipe(told: Everyday) -> Asked:
    """Scale a recipe to another number of people."""
    some, others = told.random.sample(range(2, 13), 2)
    unit = told.of("g|g|grams|ml|mL", "g|グラム|mL", "克|g|毫升")
    amount = (
        str(told.whole(5, 90, 5) * some)
        if told.chance(0.5)
        else str(told.whole(20, 900, told.random.choice((5, 10, 50))))
    )
    slots = {
        "n": told.figure(str(some)), "m": told.figure(str(others)), "a": amount, "g": unit,
        "F": told.of("flour|sugar|rice|butter|milk|pasta|cheese|water", "小麦粉|砂糖|米|バター|牛乳|水|肉|野菜", "面粉|糖|米|黄油|牛奶|水|肉"),
    }  # fmt: skip
    name = "mL" if unit.lower() in ("ml", "毫升") else "g"
    return told.asked("recipe", slots, ("For one, times the number.", f"{amount}/{some}*{others}"), name)


def sums(told: Everyday) -> Asked:
    """Ask for one operation on two numbers."""
    kind, sign, says = told.random.choice(
        (("left", "-", "Take away."), ("sum", "+", "Add."), ("product", "*", "Multiply."), ("quotient", "/", "Divide."))
    )
    one, other = told.whole(2, 99), told.whole(2, 60)
    if told.chance(0.25):
        one = told.whole(100, 5_000)
    if kind == "left" and one < other:
        one, other = other, one
    if kind == "left" and one == other:
        one += 5
    if kind == "quotient":
        one *= other if told.chance(0.8) and one < 200 else 1
    slots = {"a": told.figure(str(one)), "b": told.figure(str(other)), "X": told.goods(), "Y": told.goods()}
    return told.asked(kind, slots, (says, f"{one}{sign}{other}"))


def area(told: Everyday) -> Asked:
    """Ask about a rectangle."""
    one, other = (str(told.whole(2, 80)) if told.chance(0.7) else told.decimal(1, 30) for _ in range(2))
    unit, name = told.random.choice(
        (("m", told.of("m|metres", "m|メートル", "米|m")), ("cm", told.of("cm|centimetres", "cm|センチ", "厘米|cm")))
    )
    return told.asked("area", {"a": one, "b": other, "u": name}, ("Length times width.", f"{one}*{other}"), f"{unit}^2")
