"""Money: prices, discounts, taxes, change and shared bills."""

from training.builtin.everyday.telling import Everyday, EverydayProblem, Money

__all__ = ["change", "discount", "exchange", "percent", "price", "split", "tax"]

SHARES = (5, 10, 10, 15, 20, 20, 25, 30, 30, 40, 50, 60, 70, 75)


def _share(writer: Everyday) -> str:
    return (
        str(writer.random.choice(SHARES))
        if writer.chance(0.7)
        else str(writer.whole(1, 95))
        if writer.chance(0.8)
        else writer.decimal(1, 60)
    )


def _off(writer: Everyday, share: str) -> str:
    """Return a share in tenths (割) or per cent, as Japanese shops write it."""
    tenths = share.endswith("0") and share.isdigit() and writer.chance(0.45)
    return f"{writer.figure(share[:-1])}割" if tenths else f"{share}{writer.pick('%', '%', 'パーセント')}"


def percent(writer: Everyday) -> EverydayProblem:
    """Ask for a share of a number."""
    share, whole = _share(writer), str(writer.whole(10, 2_000, writer.random.choice((1, 1, 5, 10, 20))))
    money = Money(writer)
    if writer.chance(0.25):
        slots = {"r": share, "T": writer.figure(whole)}
        return writer.problem("percent group", slots, ("The share of the whole.", f"{whole}*{share}/100"))
    shown, unit = (money.say(whole), money.name) if writer.chance(0.4) else (writer.figure(whole), "")
    return writer.problem(
        "percent", {"r": share, "T": shown}, ("The share of the whole.", f"{whole}*{share}/100"), unit
    )


def discount(writer: Everyday) -> EverydayProblem:
    """Ask for a discounted price, or the amount saved."""
    money = Money(writer)
    cost, share = money.price(5, 400), _share(writer)
    slots = {"p": money.say(cost), "r": share, "R": _off(writer, share)}
    if writer.chance(0.2):
        return writer.problem("saved", slots, ("The share of the price.", f"{cost}*{share}/100"), money.name)
    if writer.code == "zh" and writer.chance(0.65):
        tenths = writer.random.choice(("9", "8", "7", "6", "5", "85", "75", "95", "88"))
        left = tenths if len(tenths) > 1 else f"{tenths}0"
        said = "".join("〇一二三四五六七八九"[int(each)] for each in tenths)
        shown = writer.pick(said, f"{tenths[0]}.{tenths[1]}" if len(tenths) > 1 else tenths, tenths)
        return writer.problem(
            "discount", slots | {"Z": shown}, ("What is left to pay.", f"{cost}*{left}/100"), money.name
        )
    section = "off" if writer.code == "zh" else "discount"
    return writer.problem(section, slots, ("Take the share off.", f"{cost}*(100-{share})/100"), money.name)


def tax(writer: Everyday) -> EverydayProblem:
    """Ask for a tax or a tip, with or without the price."""
    money = Money(writer)
    cost = money.price(5, 300)
    share = writer.pick("5", "8", "10", "10", "12", "15", "18", "20", "7", "19", "3", "2.5", "6", "13", "25")
    slots = {"p": money.say(cost), "r": share}
    if writer.chance(0.25):
        return writer.problem("tip", slots, ("The share of the price.", f"{cost}*{share}/100"), money.name)
    return writer.problem("tax", slots, ("Add the share.", f"{cost}*(100+{share})/100"), money.name)


def price(writer: Everyday) -> EverydayProblem:
    """Ask for the price of several or of one, or how many are affordable."""
    money = Money(writer)
    kind = writer.random.choices(("total", "two", "each", "howmany"), (4, 2, 2.5, 2))[0]
    one, other = money.price(1, 40), money.price(1, 30)
    many, more = str(writer.whole(2, 24)), str(writer.whole(2, 12))
    cost, name = one, writer.goods()
    slots = {
        "X": name,
        "Y": writer.pick(*sorted({writer.goods() for _ in range(4)} - {name} or {name})),
        "n": writer.figure(many),
        "m": writer.figure(more),
    }
    slots |= {"p": money.say(one), "q": money.say(other)}
    if kind == "total":
        return writer.problem(kind, slots, ("Multiply by the price.", f"{many}*{one}"), money.name)
    if kind == "two":
        return writer.problem(kind, slots, ("Multiply both, then add.", f"{many}*{one}+{more}*{other}"), money.name)
    if kind == "each":
        whole = str(int(one) * int(many)) if one.isdigit() and writer.chance(0.7) else money.price(10, 200)
        return writer.problem(
            kind, slots | {"T": money.say(whole)}, ("Divide by the number.", f"{whole}/{many}"), money.name
        )
    one = cost if cost.isdigit() else cost.partition(".")[0]
    whole = str(int(one) * int(many))
    slots |= {"T": money.say(whole), "p": money.say(one)}
    return writer.problem(kind, slots, ("Divide by the price.", f"{whole}/{one}"))


def change(writer: Everyday) -> EverydayProblem:
    """Ask for the change, or the money left."""
    money = Money(writer)
    many, one = str(writer.whole(2, 9)), money.price(1, 40)
    several = writer.chance(0.4)
    cost = float(one) * (int(many) if several else 1)
    notes = (
        (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
        if money.name == "yen"
        else (5, 10, 20, 50, 100, 200, 500, 1_000)
    )
    note = str(next((each for each in notes if each > cost), 100_000))
    slots = {"X": writer.goods(), "n": writer.figure(many), "p": money.say(one), "N": money.say(note)}
    work = f"{note}-{many}*{one}" if several else f"{note}-{one}"
    return writer.problem(
        "changemany" if several else "change", slots, ("Take the price from what is paid.", work), money.name
    )


def split(writer: Everyday) -> EverydayProblem:
    """Split a bill, sometimes with a tip."""
    money = Money(writer)
    people = str(writer.whole(2, 12))
    bill = (
        str(writer.whole(2, 60) * int(people)) if money.name != "yen" else str(writer.whole(2, 60) * int(people) * 100)
    )
    bill = bill if writer.chance(0.6) else money.price(10, 300)
    slots = {"n": writer.figure(people), "T": money.say(bill), "r": writer.pick("10", "15", "20", "5", "12", "18", "8")}
    if writer.chance(0.25):
        return writer.problem(
            "splittip", slots, ("Add the share, then divide.", f"{bill}*(100+{slots['r']})/100/{people}"), money.name
        )
    return writer.problem("split", slots, ("Divide by the number.", f"{bill}/{people}"), money.name)


def exchange(writer: Everyday) -> EverydayProblem:
    """Convert currency at a given rate."""
    one = writer.of("dollar|euro|pound|franc|crown", "ドル|ユーロ|ポンド|元|フラン", "美元|欧元|英镑|日元|港币")
    other = writer.of("yen|pesos|rupees|won|yuan", "円|ウォン|ペソ|ルピー", "元|人民币|卢比|泰铢")
    rate = str(writer.whole(2, 180)) if writer.chance(0.4) else writer.decimal(0.5, 20, 2)
    number = str(writer.whole(2, 900))
    slots = {"X": one, "Y": other, "f": rate, "n": writer.figure(number)}
    unit = {"円": "yen", "元": "yuan", "人民币": "yuan"}.get(other, other if writer.code == "en" else "")
    return writer.problem("exchange", slots, ("Times the rate.", f"{number}*{rate}"), unit)
