"""Discounts, tips, taxes, interest, profit, pay, currency exchange and fuel."""

from training.builtin.quantities.prices import SHARE, Money, made, pieces
from training.builtin.quantities.speed import UNITS
from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, place, subject
from training.builtin.quantities.working import Problem, percent

__all__ = ["discount", "exchanged", "fuel", "interest", "paid", "profit", "surcharge"]

SAID = wordings("money")


def discount(teller: Teller) -> Problem:
    """Ask for a discounted price, or the amount saved."""
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
        return made(
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
    return made(
        teller,
        Ask(facts, wh, SAID["discount part2"]),
        slots,
        ("The share of the price.", f"{p}*{r}/100"),
        money.name,
    )


def surcharge(teller: Teller) -> Problem:
    """Add a tip, a tax, a fee or a rise."""
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
        return made(
            teller,
            Ask(facts, wh, SAID["surcharge part"], whole),
            slots,
            ("Add the share.", f"{p}*(100+{r})/100"),
            money.name,
        )
    wh = SAID["surcharge wh2"]
    whole = SAID["surcharge whole2"]
    return made(
        teller,
        Ask(facts, wh, SAID["surcharge part2"], whole),
        slots,
        ("The share of the price.", f"{p}*{r}/100"),
        money.name,
    )


def interest(teller: Teller) -> Problem:
    """Ask for simple or compound interest, or the final amount."""
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
        np = SAID["interest np2"]
        expression = f"{p}*(1+{r}/100)^{t}-{p}" if compound else f"{p}*{r}/100*{t}"
    says = "Compound interest multiplies every year." if compound else "Simple interest is the same every year."
    return made(teller, Ask(facts, wh, np), slots, (says, expression), money.name)


def profit(teller: Teller) -> Problem:
    """Ask for a profit or loss, also as a percentage."""
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
        return made(
            teller,
            Ask(facts, wh, SAID["profit part2"]),
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
    """Ask for pay by the hour, the day or the piece."""
    money = Money(teller)
    w, unit = money.price(6, 60), teller.pick("hour", "hour", "hour", "day", "week", "lesson", "shift", "month")
    n, said = pieces(teller, 2, 40)
    slots: dict[str, str | Thing] = {"S": subject(teller), "w": money.say(w), "n": said, "u": unit}
    if teller.chance(0.65):
        bonus = teller.chance(0.25)
        b = money.price(5, 90)
        slots["b"] = money.say(b)
        facts = [
            teller.pick(*SAID["paid facts"]),
            teller.pick(*SAID["paid facts4"]),
        ]
        facts += ["[in addition|on top] there is a [bonus|tip|gift] of {b}"] * bonus
        wh = SAID["paid wh"]
        np = SAID["paid np"]
        work = ("Pay times time, then the rest." if bonus else "Pay times time.", f"{n}*{w}" + f"+{b}" * bonus)
        return made(teller, Ask(facts, wh, np, loose=False), slots, (work[0], work[1]), money.name)
    total = str(int(n) * int(w)) if w.isdigit() else money.price(100, 900)
    slots["T"] = money.say(total)
    if w.isdigit() and teller.chance(0.4):
        facts = list(SAID["paid facts2"])
        wh = SAID["paid wh2"]
        return Problem(
            teller.ask(Ask(facts, wh, ("the number of {u}s [needed|of work]",)), slots),
            (("Divide by the pay.", f"{total}/{w}"),),
            unit + "s",
        )
    facts = [teller.pick(*SAID["paid facts3"])]
    wh = SAID["paid wh3"]
    return made(
        teller,
        Ask(facts, wh, SAID["paid part"]),
        slots,
        ("Divide by the number.", f"{total}/{n}"),
        money.name,
    )


def exchanged(teller: Teller) -> Problem:
    """Convert currency at a given rate."""
    home, away = Money(teller), Money(teller)
    while away.name == home.name or "coins" in (home.name, away.name):
        home, away = Money(teller), Money(teller)
    rate = str(teller.whole(2, 160)) if teller.chance(0.35) else teller.decimal(0.5, 12, 2)
    amount = str(teller.whole(10, 900, 5))
    slots: dict[str, str | Thing] = {"S": subject(teller), "r": rate, "a": amount, "H": home.name, "A": away.name}
    slots |= {"P": place(teller), "h": home.name.removesuffix("s"), "X": goods(teller)}
    if teller.chance(0.6):
        return made(teller, SAID.ask(teller, "away"), slots, ("Times the rate.", f"{amount}*{rate}"), away.name)
    return made(teller, SAID.ask(teller, "home"), slots, ("Divided by the rate.", f"{amount}/{rate}"), home.name)


def fuel(teller: Teller) -> Problem:
    """Ask for fuel consumption, range or fuel cost."""
    money, kind = Money(teller), teller.random.choice(("litres", "cost", "miles", "gallons", "per"))
    per = str(teller.whole(3, 14)) if teller.chance(0.6) else teller.decimal(3, 14)
    d, p, litres = teller.whole(20, 900, 5), teller.decimal(1, 3, 2), teller.whole(5, 60)
    mpg, gallons = teller.whole(12, 60), teller.whole(2, 30)
    vehicle = Thing("a [car|van|truck|bus|motorbike|taxi|lorry|tractor|camper]", ("it",))
    slots: dict[str, str | Thing] = {
        "S": vehicle,
        "c": f"{per} [litres|liters|L|l]",
        "l": f"{litres} [litres|liters|L]",
    }
    slots |= {"d": f"{d} {UNITS['km']}", "p": money.say(p), "m": str(mpg), "g": str(gallons), "f": str(mpg * gallons)}
    says, expression, unit = {
        "litres": ("Litres for 100 km, times the way over 100.", f"{per}*{d}/100", "L"),
        "cost": ("Litres for the way, times the price.", f"{per}*{d}/100*{p}", money.name),
        "per": ("Litres over the way, times 100.", f"{litres}/{d}*100", "L"),
        "miles": ("Miles per gallon times gallons.", f"{mpg}*{gallons}", "miles"),
        "gallons": ("Miles divided by miles per gallon.", f"{mpg * gallons}/{mpg}", "gallons"),
    }[kind]
    return made(teller, SAID.ask(teller, kind, loose=False), slots, (says, expression), unit)
