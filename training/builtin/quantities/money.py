"""Prices and change: of one, of several, or by weight."""

from dataclasses import replace

from training.builtin.quantities.prices import Money, made, pieces
from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, person, several, subject
from training.builtin.quantities.working import Problem, value

__all__ = ["bought", "change", "scaled", "unit_price"]

SAID = wordings("money")

BULK_UNITS = (
    "[kg|kg|kilo|kilogram]",
    "[litre|liter|L]",
    "metre",
    "pound",
    "gram",
    "sack",
    "bottle",
    "box",
    "ton",
    "gallon",
    "bag",
    "jar",
    "pack",
    "crate",
)
SHOP = "[shop|store|market|bakery|kiosk|stall|fair|supermarket|bazaar|canteen|garden centre]"
TOTAL_WH = (
    "how much [is that|is it|does that cost|do they cost] [altogether|in all|in total|together|]~how much that costs [altogether|in all|]",
    "[what|how much] does {S} [pay|spend|have to pay|owe][ in all| altogether|]~how much {S} [pays|spends|has to pay]",
    "what is the [total|bill|total cost|total price|sum|amount to pay]~what the [total|bill|total cost] is",
    "how much money [is needed|does {S} need]~how much money {S} needs",
    "what does [it|all that|the purchase] cost~what [it|all that|the purchase] costs",
)
TOTAL_NP = (
    "the total",
    "the total [cost|price]",
    "the bill",
    "the price of [everything|all of it]",
    "the sum to pay",
    "the amount that {S} pays",
)


def bought(teller: Teller) -> Problem:
    """Ask for the price of several things, of two sorts, or with something added."""
    money = Money(teller)
    p, q = money.price(1, 60), money.price(1, 40)
    (n, said_n), (m, said_m) = pieces(teller), pieces(teller, 2, 12)
    x, y, unit = goods(teller), goods(teller), teller.say(teller.pick(*BULK_UNITS)).lower()
    amount = n if teller.chance(0.6) else teller.decimal(1, 9)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "n": said_n,
        "m": said_m,
        "p": money.say(p),
        "q": money.say(q),
    }
    slots |= {"X": x, "Xs": several(x), "Y": y, "Ys": several(y), "W": goods(teller, bulk=True), "a": amount, "u": unit}
    slots["us"] = unit + "s" * (len(unit) > 2)
    kind = teller.random.choices(("one", "two", "fee", "bulk"), (5, 3, 1.5, 2))[0]
    work = {
        "bulk": ("Multiply by the price.", f"{amount}*{p}"),
        "one": ("Multiply by the price.", f"{n}*{p}"),
        "fee": ("Multiply, then add the rest.", f"{n}*{p}+{q}"),
        "two": ("Multiply both, then add.", f"{n}*{p}+{m}*{q}"),
    }[kind]
    ask = replace(SAID.ask(teller, kind, loose=kind != "fee"), wh=TOTAL_WH, np=TOTAL_NP)
    return made(teller, ask, slots, work, money.name)


def unit_price(teller: Teller) -> Problem:
    """Ask for the unit price, or how many are affordable."""
    money = Money(teller)
    n, said = pieces(teller, 2, 20)
    p = money.price(2, 40)
    total = str(int(p) * int(n)) if p.isdigit() else money.price(10, 300)
    x = goods(teller)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "n": said,
        "T": money.say(total),
        "p": money.say(p),
        "X": x,
        "Xs": several(x),
    }
    if teller.chance(0.35):
        facts = [
            "{S} has {T}",
            teller.pick(*SAID["unit_price facts"]),
        ]
        whole = SAID["unit_price whole"]
        wh = SAID["unit_price wh"]
        if not p.isdigit():
            total = str(value(f"{p}*{n}")) if value(f"{p}*{n}").denominator == 1 else f"{float(value(f'{p}*{n}')):.2f}"
            slots["T"] = money.say(total)
        return Problem(
            teller.ask(Ask(facts, wh, ("the number of {Xs} {S} can buy",), whole), slots),
            (("Divide by the price.", f"{total}/{p}"),),
            several(x),
            tuple(several(x).split()),
        )
    if teller.chance(0.3):
        what, unit = goods(teller, bulk=True), teller.say(teller.pick(*BULK_UNITS)).lower()
        slots |= {"X": unit + " of " + what, "Xs": unit + "s" * (len(unit) > 2) + " of " + what}
    facts = [teller.pick(*SAID["unit_price facts2"])]
    wh = SAID["unit_price wh2"]
    np = SAID["unit_price np"]
    whole = SAID["unit_price whole2"]
    return made(teller, Ask(facts, wh, np, whole), slots, ("Divide by the number.", f"{total}/{n}"), money.name)


def scaled(teller: Teller) -> Problem:
    """Give the price of some things and ask for that of another number."""
    money = Money(teller)
    n, said = pieces(teller, 2, 15)
    m, other = pieces(teller, 2, 30)
    total = str(teller.whole(1, 20) * int(n)) if teller.chance(0.7) else money.price(5, 200)
    x = goods(teller)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "n": said,
        "m": other,
        "T": money.say(total),
        "X": x,
        "Xs": several(x),
    }
    facts = [teller.pick(*SAID["scaled facts"])]
    wh = SAID["scaled wh"]
    np = SAID["scaled np"]
    whole = SAID["scaled whole"]
    return made(
        teller, Ask(facts, wh, np, whole), slots, ("Price of one, times the number.", f"{total}/{n}*{m}"), money.name
    )


def change(teller: Teller) -> Problem:
    """Ask for the change, or the money left."""
    money = Money(teller)
    n, said = pieces(teller, 2, 9)
    p, q = money.price(1, 20), money.price(1, 30)
    kind = teller.random.choice(("one", "many", "two"))
    cost = {"one": q, "many": f"{n}*{p}", "two": f"{p}+{q}"}[kind]
    note = next(
        (size for size in ("5", "10", "20", "50", "100", "200", "500", "1000") if value(size) > value(cost)), "5000"
    )
    if teller.chance(0.3):
        note = str(int(value(cost)) + teller.whole(1, 60))
    x, y = goods(teller), goods(teller)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "n": said,
        "p": money.say(p),
        "q": money.say(q),
        "N": money.say(note),
        "X": x,
        "Xs": several(x),
        "Y": y,
        "F": person(teller).name,
    }
    facts = [
        {
            "one": teller.pick(*SAID["change facts"]),
            "many": teller.pick(*SAID["change facts4"]),
            "two": teller.pick(*SAID["change facts2"]),
        }[kind],
        teller.pick(*SAID["change facts3"]),
    ]
    wh = SAID["change wh"]
    np = SAID["change np"]
    expression = f"{note}-({cost})" if kind == "two" else f"{note}-{cost}"
    return made(
        teller, Ask(facts, wh, np, loose=False), slots, ("Take the price from what is paid.", expression), money.name
    )
