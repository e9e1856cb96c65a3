"""Prices, change, discounts, tips, taxes, interest, pay, foreign money, fuel: in many currencies."""

from training.builtin.quantities.speed import UNITS
from training.builtin.quantities.telling import Ask, Slots, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, person, place, several, subject
from training.builtin.quantities.working import Problem, percent, value

__all__ = [
    "bought",
    "change",
    "discount",
    "exchanged",
    "fuel",
    "interest",
    "paid",
    "profit",
    "scaled",
    "surcharge",
    "unit_price",
]

SAID = wordings("money")

MONEYS = {
    "dollars": ("${}", "${}", "${}", "{} dollars", "{} dollars", "US${}", "{} USD"),
    "euros": ("€{}", "{} €", "{} euros", "{} euros", "{} EUR"),
    "pounds": ("£{}", "£{}", "{} pounds"),
    "yen": ("¥{}", "{} yen", "{} yen"),
    "rupees": ("Rs {}", "₹{}", "{} rupees", "Rs. {}"),
    "yuan": ("{} yuan", "{} yuan"),
    "won": ("{} won",),
    "pesos": ("{} pesos",),
    "francs": ("{} francs",),
    "cents": ("{} cents",),
    "kroner": ("{} kroner",),
    "shillings": ("{} shillings",),
    "rand": ("{} rand",),
    "crowns": ("{} crowns",),
    "coins": ("{} coins", "{} gold coins"),
}
WEIGHTS = (12, 5, 4, 3, 4, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1)
WHOLE_ONLY = ("yen", "cents", "won", "coins")
SHARE = "[%| %|%| percent| per cent|%]"
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


class Money:
    """One currency, always written in the same way in one question."""

    def __init__(self, teller: Teller) -> None:
        self.teller = teller
        self.name = teller.random.choices(list(MONEYS), WEIGHTS)[0]
        self._form = teller.random.choice(MONEYS[self.name])

    def price(self, low: int, high: int) -> str:
        """A price; in most currencies it may have hundredths."""
        kind = self.teller.random.randrange(10)
        if self.name in WHOLE_ONLY or kind < 6:
            return str(self.teller.whole(low, high))
        if kind < 8:
            return f"{self.teller.whole(low, high)}.{self.teller.pick('50', '25', '75', '99', '20', '5', '90')}"
        return f"{self.teller.random.uniform(low, high):.2f}"

    def say(self, number: str) -> str:
        """A sum of money."""
        said = self.teller.measure(number) if self._form.startswith("{}") else number
        if number.isdigit() and int(number) >= 1_000 and self.teller.chance(0.4):
            said = f"{int(number):,}"
        return self._form.format(said)


COST = "[costs|costs|costs|is sold for|sells for|goes for|is|comes to|can be had for]"
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


def _several(teller: Teller, low: int = 2, high: int = 24) -> tuple[str, str]:
    number = str(teller.whole(low, high))
    said = teller.number(number)
    return number, number if said.endswith(" of") else said


def _made(teller: Teller, ask: Ask, slots: Slots, work: tuple[str, str], unit: str) -> Problem:
    return Problem(teller.ask(ask, slots), (work,), unit, tuple(unit.split()))


def bought(teller: Teller) -> Problem:
    """The price of so many things, of two sorts of things, or with something added."""
    money = Money(teller)
    p, q = money.price(1, 60), money.price(1, 40)
    (n, said_n), (m, said_m) = _several(teller), _several(teller, 2, 12)
    x, y = goods(teller), goods(teller)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "n": said_n,
        "m": said_m,
        "p": money.say(p),
        "q": money.say(q),
        "X": x,
        "Xs": several(x),
        "Y": y,
        "Ys": several(y),
    }
    kind = teller.random.choices(("one", "two", "fee", "bulk"), (5, 3, 1.5, 2))[0]
    if kind == "bulk":
        what, unit = goods(teller, bulk=True), teller.say(teller.pick(*BULK_UNITS)).lower()
        amount = n if teller.chance(0.6) else teller.decimal(1, 9)
        slots |= {"W": what, "u": unit, "us": unit + "s" * (len(unit) > 2), "a": amount}
        facts = [teller.pick(*SAID["bought facts"])]
        whole = SAID["bought whole"]
        return _made(
            teller,
            Ask(facts, TOTAL_WH, TOTAL_NP, whole),
            slots,
            ("Multiply by the price.", f"{amount}*{p}"),
            money.name,
        )
    if kind == "one":
        facts = [teller.pick(*SAID["bought facts2"])]
        whole = SAID["bought whole2"]
        return _made(
            teller, Ask(facts, TOTAL_WH, TOTAL_NP, whole), slots, ("Multiply by the price.", f"{n}*{p}"), money.name
        )
    if kind == "fee":
        facts = [
            teller.pick(*SAID["bought facts3"]),
            teller.pick(*SAID["bought facts4"]),
        ]
        return _made(
            teller,
            Ask(facts, TOTAL_WH, TOTAL_NP, loose=False),
            slots,
            ("Multiply, then add the rest.", f"{n}*{p}+{q}"),
            money.name,
        )
    facts = [teller.pick(*SAID["bought facts5"])]
    return _made(
        teller, Ask(facts, TOTAL_WH, TOTAL_NP), slots, ("Multiply both, then add.", f"{n}*{p}+{m}*{q}"), money.name
    )


def unit_price(teller: Teller) -> Problem:
    """The price of one, from the price of several; or how many can be had for some money."""
    money = Money(teller)
    n, said = _several(teller, 2, 20)
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
    return _made(teller, Ask(facts, wh, np, whole), slots, ("Divide by the number.", f"{total}/{n}"), money.name)


def scaled(teller: Teller) -> Problem:
    """So many cost so much; what do others cost."""
    money = Money(teller)
    n, said = _several(teller, 2, 15)
    m, other = _several(teller, 2, 30)
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
    np = (
        "the [price|cost] of {m} {Xs}",
        "the price of {m}",
        "what {m} of them cost".replace("what {m} of them cost", "the cost of {m} of them"),
    )
    whole = SAID["scaled whole"]
    return _made(
        teller, Ask(facts, wh, np, whole), slots, ("Price of one, times the number.", f"{total}/{n}*{m}"), money.name
    )


def change(teller: Teller) -> Problem:
    """What comes back from a note, or what is left in the purse."""
    money = Money(teller)
    n, said = _several(teller, 2, 9)
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
            "many": teller.pick("{S} buys {n} {Xs} at {p} each", "{S} takes {n} {Xs} that cost {p} each"),
            "two": teller.pick(*SAID["change facts2"]),
        }[kind],
        teller.pick(*SAID["change facts3"]),
    ]
    wh = SAID["change wh"]
    np = SAID["change np"]
    expression = f"{note}-({cost})" if kind == "two" else f"{note}-{cost}"
    return _made(
        teller, Ask(facts, wh, np, loose=False), slots, ("Take the price from what is paid.", expression), money.name
    )


def discount(teller: Teller) -> Problem:
    """A price cut by a share of it: the new price, or what is saved."""
    money = Money(teller)
    p, r = (
        (str(teller.whole(10, 900, teller.random.choice((1, 5, 10)))) if teller.chance(0.7) else money.price(10, 400)),
        str(teller.whole(5, 75, 5) if teller.chance(0.75) else teller.whole(2, 60)),
    )
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "p": money.say(p),
        "r": r + SHARE,
        "X": goods(teller),
        "day": "[today|this week|in the sale|on Friday|for students|for members|at the end of the season]",
    }
    facts = [teller.pick(*SAID["discount facts"])]
    if teller.chance(0.65):
        wh = SAID["discount wh"]
        np = SAID["discount np"]
        return _made(
            teller,
            Ask(
                facts,
                wh,
                np,
                SAID["discount part"],
            ),
            slots,
            ("Take the share off.", f"{p}*(100-{r})/100"),
            money.name,
        )
    wh = SAID["discount wh2"]
    return _made(
        teller,
        Ask(facts, wh, ("the discount in money", "the saving", "the amount saved", "the reduction")),
        slots,
        ("The share of the price.", f"{p}*{r}/100"),
        money.name,
    )


def surcharge(teller: Teller) -> Problem:
    """A tip, a tax, a fee or a rise that comes on top."""
    money = Money(teller)
    p, r = (
        (str(teller.whole(10, 900)) if teller.chance(0.7) else money.price(10, 200)),
        teller.random.choice(("5", "8", "10", "12", "15", "18", "20", "25", "7", "19", "3", "2.5", "6", "22", "30")),
    )
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "p": money.say(p),
        "r": r + SHARE,
        "X": goods(teller),
        "tax": "[tax|sales tax|VAT|a tip|service|a fee|tax|a service charge|an increase|duty]",
    }
    facts = [teller.pick(*SAID["surcharge facts"])]
    if teller.chance(0.6):
        wh = SAID["surcharge wh"]
        whole = SAID["surcharge whole"]
        return _made(
            teller,
            Ask(facts, wh, ("the total", "the amount with it", "the full amount to pay", "the new amount"), whole),
            slots,
            ("Add the share.", f"{p}*(100+{r})/100"),
            money.name,
        )
    wh = SAID["surcharge wh2"]
    whole = SAID["surcharge whole2"]
    return _made(
        teller,
        Ask(facts, wh, ("the extra amount", "the amount added", "the additional amount"), whole),
        slots,
        ("The share of the price.", f"{p}*{r}/100"),
        money.name,
    )


def interest(teller: Teller) -> Problem:
    """Simple and compound interest: the interest or all the money."""
    money = Money(teller)
    p, r, t = (
        str(teller.whole(100, 9_000, 50)),
        teller.random.choice(("2", "3", "4", "5", "6", "8", "10", "2.5", "1.5", "7", "12")),
        str(teller.whole(2, 10)),
    )
    compound, total = teller.chance(0.45), teller.chance(0.5)
    sort = "[compound|compounded]" if compound else "simple"
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "p": money.say(p),
        "r": r + SHARE,
        "t": teller.measure(t),
        "a": "[a year|per year|per annum|yearly|every year|annually|p.a.]",
        "how": "[compound interest|interest compounded yearly|interest that is compounded every year]"
        if compound
        else "simple interest",
    }
    facts = [teller.pick(*SAID["interest facts"])]
    if total:
        wh: tuple[str, ...] = SAID["interest wh"]
        np: tuple[str, ...] = SAID["interest np"]
        expression = f"{p}*(1+{r}/100)^{t}" if compound else f"{p}+{p}*{r}/100*{t}"
    else:
        wh = (
            f"how much {sort.split('|', maxsplit=1)[0].strip('[')} interest [is that|is earned|is due|comes in]~how much interest that is",
            "how much interest [is paid|is there|does it bring]~how much interest there is",
            "what is the interest~what the interest is",
        )
        np = ("the interest", "the interest [earned|paid|due]", "the [total|whole] interest")
        expression = f"{p}*(1+{r}/100)^{t}-{p}" if compound else f"{p}*{r}/100*{t}"
    says = "Compound interest multiplies every year." if compound else "Simple interest is the same every year."
    return _made(teller, Ask(facts, wh, np), slots, (says, expression), money.name)


def profit(teller: Teller) -> Problem:
    """Bought for so much and sold for so much: gain, loss, or the gain in per cent."""
    money = Money(teller)
    a = teller.whole(10, 600)
    b = a + teller.whole(1, a) if teller.chance(0.7) else max(a - teller.whole(1, a // 2), 1)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "a": money.say(str(a)),
        "b": money.say(str(b)),
        "X": goods(teller),
    }
    facts = [teller.pick(*SAID["profit facts"])]
    gain, high, low = ("profit", b, a) if b >= a else ("loss", a, b)
    slots["gain"] = "[profit|gain|profit]" if gain == "profit" else "loss"
    if teller.chance(0.5):
        wh = SAID["profit wh"]
        return _made(
            teller,
            Ask(facts, wh, ("the {gain}", "{S's} {gain}", "the amount of the {gain}")),
            slots,
            ("The difference is asked for.", f"{high}-{low}"),
            money.name,
        )
    wh = SAID["profit wh2"]
    return Problem(
        teller.ask(Ask(facts, wh, SAID["profit part"]), slots),
        (("The difference over the cost, in percent.", percent(f"({high}-{low})/{a}*100")),),
        "%",
    )


def paid(teller: Teller) -> Problem:
    """Pay by the hour, the day or the piece."""
    money = Money(teller)
    w, unit = money.price(6, 60), teller.pick("hour", "hour", "hour", "day", "week", "lesson", "shift", "month")
    n, said = _several(teller, 2, 40)
    slots: dict[str, str | Thing] = {"S": subject(teller), "w": money.say(w), "n": said, "u": unit}
    if teller.chance(0.65):
        bonus = teller.chance(0.25)
        b = money.price(5, 90)
        slots["b"] = money.say(b)
        facts = [
            teller.pick(*SAID["paid facts"]),
            teller.pick("{S} works [for |]{n} {u}s", "{n} {u}s are worked"),
        ]
        facts += ["[in addition|on top] there is a [bonus|tip|gift] of {b}"] * bonus
        wh = SAID["paid wh"]
        np = SAID["paid np"]
        work = ("Pay times time, then the rest." if bonus else "Pay times time.", f"{n}*{w}" + f"+{b}" * bonus)
        return _made(teller, Ask(facts, wh, np, loose=False), slots, (work[0], work[1]), money.name)
    total = str(int(n) * int(w)) if w.isdigit() else money.price(100, 900)
    slots["T"] = money.say(total)
    if w.isdigit() and teller.chance(0.4):
        facts = SAID["paid facts2"]
        wh = SAID["paid wh2"]
        return Problem(
            teller.ask(Ask(facts, wh, ("the number of {u}s [needed|of work]",)), slots),
            (("Divide by the pay.", f"{total}/{w}"),),
            unit + "s",
        )
    facts = [teller.pick(*SAID["paid facts3"])]
    wh = SAID["paid wh3"]
    return _made(
        teller,
        Ask(facts, wh, ("the pay per {u}", "the pay for one {u}", "{S's} wage per {u}")),
        slots,
        ("Divide by the number.", f"{total}/{n}"),
        money.name,
    )


def exchanged(teller: Teller) -> Problem:
    """Money changed at a rate that is given."""
    home, away = Money(teller), Money(teller)
    while away.name == home.name or "coins" in (home.name, away.name):
        home, away = Money(teller), Money(teller)
    rate = str(teller.whole(2, 160)) if teller.chance(0.35) else teller.decimal(0.5, 12, 2)
    amount = str(teller.whole(10, 900, 5))
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "r": rate,
        "a": amount,
        "H": home.name,
        "A": away.name,
        "P": place(teller),
        "h": home.name.removesuffix("s"),
    }
    rate_said = teller.pick(*SAID["exchanged rate_said"])
    if teller.chance(0.6):
        facts = [
            rate_said,
            teller.pick(*SAID["exchanged facts"]),
        ]
        wh = SAID["exchanged wh"]
        return _made(
            teller,
            Ask(facts, wh, ("the amount in {A}", "the value in {A}", "the number of {A} {S} gets")),
            slots,
            ("Times the rate.", f"{amount}*{rate}"),
            away.name,
        )
    facts = [
        rate_said,
        teller.pick(
            "{S} [changes|exchanges|converts|wants to change] {a} {A} [back|]",
            "a {X} costs {a} {A}".replace("{X}", goods(teller)),
            "{S} has {a} {A}",
        ),
    ]
    wh = SAID["exchanged wh2"]
    return _made(
        teller,
        Ask(facts, wh, ("the amount in {H}", "the value in {H}", "the price in {H}".replace("price", "worth"))),
        slots,
        ("Divided by the rate.", f"{amount}/{rate}"),
        home.name,
    )


def fuel(teller: Teller) -> Problem:
    """What a vehicle burns, how far that takes it, and what that costs."""
    per = str(teller.whole(3, 14)) if teller.chance(0.6) else teller.decimal(3, 14)
    d = str(teller.whole(20, 900, 5))
    money = Money(teller)
    p = teller.decimal(1, 3, 2)
    mpg, gallons = str(teller.whole(12, 60)), str(teller.whole(2, 30))
    slots: dict[str, str | Thing] = {
        "S": Thing("a [car|van|truck|bus|motorbike|taxi|lorry|tractor|camper]", ("it",)),
        "c": f"{per} [litres|liters|L|l]",
        "d": f"{d} {UNITS['km']}",
        "p": money.say(p),
        "m": mpg,
        "g": gallons,
    }
    kind = teller.random.choice(("litres", "cost", "miles", "gallons", "per"))
    uses = teller.pick(*SAID["fuel uses"])
    if kind == "litres":
        facts = [uses, "[it goes|the trip is|it is driven|the way is] {d}"]
        wh = SAID["fuel wh"]
        return Problem(
            teller.ask(
                Ask(facts, wh, ("the fuel needed", "the litres of fuel used", "the amount of fuel"), loose=False), slots
            ),
            (("Litres for 100 km, times the way over 100.", f"{per}*{d}/100"),),
            "L",
        )
    if kind == "cost":
        facts = [uses, "[fuel|a litre|one litre of fuel] costs {p}".replace("[fuel|", "["), "the trip is {d} long"]
        wh = SAID["fuel wh2"]
        return _made(
            teller,
            Ask(facts, wh, ("the cost of the fuel", "the fuel cost of the trip"), loose=False),
            slots,
            ("Litres for the way, times the price.", f"{per}*{d}/100*{p}"),
            money.name,
        )
    if kind == "per":
        litres = teller.whole(5, 60)
        slots["l"] = f"{litres} [litres|liters|L]"
        facts = [teller.pick(*SAID["fuel facts"])]
        wh = SAID["fuel wh3"]
        return Problem(
            teller.ask(Ask(facts, wh, ("the consumption per 100 km", "the fuel per 100 km")), slots),
            (("Litres over the way, times 100.", f"{litres}/{d}*100"),),
            "L",
        )
    if kind == "miles":
        facts = [
            teller.pick(*SAID["fuel facts2"]),
            "[there are|it has] {g} gallons [in the tank|left]",
        ]
        wh = SAID["fuel wh4"]
        return Problem(
            teller.ask(
                Ask(facts, wh, ("the distance it can go", "the range", "the miles it can go"), loose=False), slots
            ),
            (("Miles per gallon times gallons.", f"{mpg}*{gallons}"),),
            "miles",
        )
    far = int(mpg) * int(gallons)
    slots["f"] = str(far)
    facts = [
        teller.pick("{S} [does|gets|goes] {m} miles [to the|per] gallon", "{S} gets {m} mpg"),
        "[the trip is|it has to go|it goes] {f} miles",
    ]
    wh = SAID["fuel wh5"]
    return Problem(
        teller.ask(Ask(facts, wh, ("the gallons needed", "the fuel in gallons"), loose=False), slots),
        (("Miles divided by miles per gallon.", f"{far}/{mpg}"),),
        "gallons",
    )
