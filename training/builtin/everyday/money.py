"""Money: prices, discounts, taxes, change and shared bills."""

from training.builtin.everyday.telling import Asked, Everyday, Money

__all__ = ["change", "discount", "exchange", "percent", "price", "split", "tax"]

SHARES = (5, 10, 10, 15, 20, 20, 25, 30, 30, 40, 50, 60, 70, 75)


def _share(told: Everyday) -> str:
    return (
        str(told.random.choice(SHARES))
        if told.chance(0.7)
        else str(told.whole(1, 95))
        if told.chance(0.8)
        else told.decimal(1, 60)
    )


def _off(told: Everyday, share: str) -> str:
    """Return a share in tenths (割) or per cent, as Japanese shops write it."""
    tenths = share.endswith("0") and share.isdigit() and told.chance(0.45)
    return f"{told.figure(share[:-1])}割" if tenths else f"{share}{told.pick('%', '%', 'パーセント')}"


def percent(told: Everyday) -> Asked:
    """Ask for a share of a number."""
    share, whole = _share(told), str(told.whole(10, 2_000, told.random.choice((1, 1, 5, 10, 20))))
    money = Money(told)
    if told.chance(0.25):
        slots = {"r": share, "T": told.figure(whole)}
        return told.asked("percent group", slots, ("The share of the whole.", f"{whole}*{share}/100"))
    shown, unit = (money.say(whole), money.name) if told.chance(0.4) else (told.figure(whole), "")
    return told.asked("percent", {"r": share, "T": shown}, ("The share of the whole.", f"{whole}*{share}/100"), unit)


def discount(told: Everyday) -> Asked:
    """Ask for a discounted price, or the amount saved."""
    money = Money(told)
    cost, share = money.price(5, 400), _share(told)
    slots = {"p": money.say(cost), "r": share, "R": _off(told, share)}
    if told.chance(0.2):
        return told.asked("saved", slots, ("The share of the price.", f"{cost}*{share}/100"), money.name)
    if told.code == "zh" and told.chance(0.65):
        tenths = told.random.choice(("9", "8", "7", "6", "5", "85", "75", "95", "88"))
        left = tenths if len(tenths) > 1 else f"{tenths}0"
        said = "".join("〇一二三四五六七八九"[int(each)] for each in tenths)
        shown = told.pick(said, f"{tenths[0]}.{tenths[1]}" if len(tenths) > 1 else tenths, tenths)
        return told.asked("discount", slots | {"Z": shown}, ("What is left to pay.", f"{cost}*{left}/100"), money.name)
    section = "off" if told.code == "zh" else "discount"
    return told.asked(section, slots, ("Take the share off.", f"{cost}*(100-{share})/100"), money.name)


def tax(told: Everyday) -> Asked:
    """Ask for a tax or a tip, with or without the price."""
    money = Money(told)
    cost = money.price(5, 300)
    share = told.pick("5", "8", "10", "10", "12", "15", "18", "20", "7", "19", "3", "2.5", "6", "13", "25")
    slots = {"p": money.say(cost), "r": share}
    if told.chance(0.25):
        return told.asked("tip", slots, ("The share of the price.", f"{cost}*{share}/100"), money.name)
    return told.asked("tax", slots, ("Add the share.", f"{cost}*(100+{share})/100"), money.name)


def price(told: Everyday) -> Asked:
    """Ask for the price of several or of one, or how many are affordable."""
    money = Money(told)
    kind = told.random.choices(("total", "two", "each", "howmany"), (4, 2, 2.5, 2))[0]
    one, other = money.price(1, 40), money.price(1, 30)
    many, more = str(told.whole(2, 24)), str(told.whole(2, 12))
    cost, name = one, told.goods()
    slots = {
        "X": name,
        "Y": told.pick(*sorted({told.goods() for _ in range(4)} - {name} or {name})),
        "n": told.figure(many),
        "m": told.figure(more),
    }
    slots |= {"p": money.say(one), "q": money.say(other)}
    if kind == "total":
        return told.asked(kind, slots, ("Multiply by the price.", f"{many}*{one}"), money.name)
    if kind == "two":
        return told.asked(kind, slots, ("Multiply both, then add.", f"{many}*{one}+{more}*{other}"), money.name)
    if kind == "each":
        whole = str(int(one) * int(many)) if one.isdigit() and told.chance(0.7) else money.price(10, 200)
        return told.asked(
            kind, slots | {"T": money.say(whole)}, ("Divide by the number.", f"{whole}/{many}"), money.name
        )
    one = cost if cost.isdigit() else cost.partition(".")[0]
    whole = str(int(one) * int(many))
    slots |= {"T": money.say(whole), "p": money.say(one)}
    return told.asked(kind, slots, ("Divide by the price.", f"{whole}/{one}"))


def change(told: Everyday) -> Asked:
    """Ask for the change, or the money left."""
    money = Money(told)
    many, one = str(told.whole(2, 9)), money.price(1, 40)
    several = told.chance(0.4)
    cost = float(one) * (int(many) if several else 1)
    notes = (
        (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
        if money.name == "yen"
        else (5, 10, 20, 50, 100, 200, 500, 1_000)
    )
    note = str(next((each for each in notes if each > cost), 100_000))
    slots = {"X": told.goods(), "n": told.figure(many), "p": money.say(one), "N": money.say(note)}
    work = f"{note}-{many}*{one}" if several else f"{note}-{one}"
    return told.asked(
        "changemany" if several else "change", slots, ("Take the price from what is paid.", work), money.name
    )


def split(told: Everyday) -> Asked:
    """Split a bill, sometimes with a tip."""
    money = Money(told)
    people = str(told.whole(2, 12))
    bill = str(told.whole(2, 60) * int(people)) if money.name != "yen" else str(told.whole(2, 60) * int(people) * 100)
    bill = bill if told.chance(0.6) else money.price(10, 300)
    slots = {"n": told.figure(people), "T": money.say(bill), "r": told.pick("10", "15", "20", "5", "12", "18", "8")}
    if told.chance(0.25):
        return told.asked(
            "splittip", slots, ("Add the share, then divide.", f"{bill}*(100+{slots['r']})/100/{people}"), money.name
        )
    return told.asked("split", slots, ("Divide by the number.", f"{bill}/{people}"), money.name)


def exchange(told: Everyday) -> Asked:
    """Convert currency at a given rate."""
    one = told.of("dollar|euro|pound|franc|crown", "ドル|ユーロ|ポンド|元|フラン", "美元|欧元|英镑|日元|港币")
    other = told.of("yen|pesos|rupees|won|yuan", "円|ウォン|ペソ|ルピー", "元|人民币|卢比|泰铢")
    rate = str(told.whole(2, 180)) if told.chance(0.4) else told.decimal(0.5, 20, 2)
    number = str(told.whole(2, 900))
    slots = {"X": one, "Y": other, "f": rate, "n": told.figure(number)}
    unit = {"円": "yen", "元": "yuan", "人民币": "yuan"}.get(other, other if told.code == "en" else "")
    return told.asked("exchange", slots, ("Times the rate.", f"{number}*{rate}"), unit)
