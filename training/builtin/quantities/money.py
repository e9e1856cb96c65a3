"""Prices, change, discounts, tips, taxes, interest, pay, foreign money, fuel: in many currencies."""

from training.builtin.quantities.speed import UNITS
from training.builtin.quantities.telling import Ask, Slots, Teller, Thing
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
        facts = [teller.pick(
            "{S} buys {a} {us} of {W} at {p} [per|a] {u}", "{W} [costs|is] {p} [per|a] {u} and {S} [takes|buys|needs|orders] {a} {us}", "a {u} of {W} " + COST + " {p}; {S} [takes|buys|wants] {a} {us}",
        )]  # fmt: skip
        whole = (
            "[how much|what] [do|will] {a} {us} of {W} [cost|come to] at {p} [per|a] {u}?",
            "[find|calculate|work out] the [cost|price] of {a} {us} of {W} at {p} [per|a] {u}.",
            "{a} {us} of {W} at {p} a {u}: how much?",
            "if one {u} of {W} "
            + COST
            + " {p}, what [is the price of|do] {a} {us}[ cost|]?".replace("[ cost|]", "").replace(
                "[is the price of|do]", "is the price of"
            ),
        )
        return _made(
            teller,
            Ask(facts, TOTAL_WH, TOTAL_NP, whole),
            slots,
            ("Multiply by the price.", f"{amount}*{p}"),
            money.name,
        )
    if kind == "one":
        facts = [teller.pick(
            "a {X} " + COST + " {p} and {S} [buys|takes|orders|wants|needs] {n}[| of them]", "{S} buys {n} {Xs} [at|for] {p} each", "{n} {Xs} at {p} [each|apiece|a piece] are bought by {S}", "in a " + SHOP + " one {X} " + COST + " {p}; {S} [takes|buys] {n}",
            "{Xs} cost {p} each and {S} [gets|buys] {n}", "{S} [ordered|bought] {n} {Xs} [, each of them|which cost] {p} [|each]".replace("[, each of them|which cost] {p} [|each]", "which cost {p} each"),
        )]  # fmt: skip
        whole = (
            "[how much|what] do {n} {Xs} cost [at|if one costs|if each costs] {p}?",
            "what is the [total |]price of {n} {Xs} at {p} each?",
            "[find|calculate|work out] the cost of {n} {Xs} at {p} [each|apiece].",
            "one {X} "
            + COST
            + " {p}. [how much are|what do] {n}[| cost]?".replace(
                "[how much are|what do] {n}[| cost]", "how much are {n}"
            ),
            "{n} {Xs}, {p} each. [total|how much|sum]?",
        )
        return _made(
            teller, Ask(facts, TOTAL_WH, TOTAL_NP, whole), slots, ("Multiply by the price.", f"{n}*{p}"), money.name
        )
    if kind == "fee":
        facts = [
            teller.pick("{S} [orders|buys] {n} {Xs} at {p} each", "a {X} " + COST + " {p} and {S} orders {n}"),
            teller.pick(
                "[delivery|shipping|postage|packing|gift wrap] [costs|is] {q}[| more| on top]",
                "[there is also|on top comes] a [fee|charge|deposit] of {q}",
            ),
        ]
        return _made(
            teller,
            Ask(facts, TOTAL_WH, TOTAL_NP, loose=False),
            slots,
            ("Multiply, then add the rest.", f"{n}*{p}+{q}"),
            money.name,
        )
    facts = [teller.pick(
        "{S} buys {n} {Xs} at {p} each and {m} {Ys} at {q} each", "a {X} " + COST + " {p} and a {Y} {q}; {S} [takes|buys] {n} {Xs} and {m} {Ys}", "{n} {Xs} for {p} each and {m} {Ys} for {q} each are in {S's} basket",
        "{S} pays for {n} {Xs} ({p} each) and {m} {Ys} ({q} each)",
    )]  # fmt: skip
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
            teller.pick("a {X} " + COST + " {p}", "{Xs} cost {p} each", "the price of a {X} is {p}"),
        ]
        whole = (
            "how many {Xs} at {p} each [can be bought|can one buy|does one get] for {T}?",
            "for {T}, how many {Xs} at {p} each [can {S} buy|does {S} get]?",
        )
        wh = (
            "how many {Xs} [can {S} buy|does {S} get|can {S} afford]~how many {Xs} {S} can buy",
            "how many [of them |]can {S} buy~how many {S} can buy",
        )
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
    facts = [teller.pick(
        "{n} {Xs} cost {T}", "{S} [pays|paid] {T} for {n} {Xs}", "{n} {Xs} [are sold|can be had|go] for {T}", "{S} [buys|bought] {n} {Xs} for {T}[| in all| altogether]", "the price of {n} {Xs} is {T}", "for {T} {S} gets {n} {Xs}",
    )]  # fmt: skip
    wh = (
        "[how much|what] does one [{X} |]cost~[how much|what] one [{X} |]costs",
        "what is the [price of one {X}|unit price|price of each {X}|price per {X}]~what the price of one {X} is",
        "how much is [a|one|a single|each] {X}~how much one {X} is",
        "what did each {X} cost~what each {X} cost",
    )
    np = (
        "the price of one {X}",
        "the unit price",
        "the price per {X}",
        "the cost of a single {X}",
        "the price of each",
    )
    whole = (
        "[how much|what] does one {X} cost if {n} cost {T}?",
        "if {n} {Xs} [cost|are] {T}, [how much|what] is one?",
        "[find|calculate|work out] the price [of one|per] {X} if {n} cost {T}.",
        "{n} {Xs} for {T}: [how much is one|price of one|what does one cost]?",
    )
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
    facts = [
        teller.pick(
            "{n} {Xs} cost {T}",
            "{S} pays {T} for {n} {Xs}",
            "one gets {n} {Xs} for {T}",
            "the price of {n} {Xs} is {T}",
        )
    ]
    wh = (
        "[how much|what] do {m} [{Xs} |]cost~how much {m} {Xs} cost",
        "[how much|what] are {m} of them~how much {m} of them are",
        "what is the price of {m} [{Xs}|of them]~what the price of {m} {Xs} is",
        "how much [must be paid|is to be paid] for {m}[| at the same price]~how much is to be paid for {m}",
    )
    np = (
        "the [price|cost] of {m} {Xs}",
        "the price of {m}",
        "what {m} of them cost".replace("what {m} of them cost", "the cost of {m} of them"),
    )
    whole = (
        "[at|with] {T} for {n} {Xs}, [how much|what] do {m} cost?",
        "{n} {Xs}: {T}. {m} {Xs}: [how much|?|what]?".replace("|?|", "|"),
        "if {S} gets {n} {Xs} for {T}, [how much|what] does {S} pay for {m}?",
    )
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
            "one": teller.pick(
                "{S} buys a {X} for {q}",
                "a {X} costs {q}",
                "the bill of {S} is {q}",
                "{S} [spends|spent] {q} [on a {X}|at the shop|at the market]",
            ),
            "many": teller.pick("{S} buys {n} {Xs} at {p} each", "{S} takes {n} {Xs} that cost {p} each"),
            "two": teller.pick(
                "{S} buys a {X} for {p} and a {Y} for {q}", "a {X} costs {p}, a {Y} {q}, and {S} takes both"
            ),
        }[kind],
        teller.pick(
            "{S} [pays with|gives|hands over|puts down] {N}",
            "{S} [has|had|brought] {N}",
            "a note of {N} is handed over",
        ),
    ]
    wh = (
        "how much change does {S} [get|receive][| back]~how much change {S} gets",
        "how much [does {S} get back|comes back|is left|does {S} have left]~how much {S} gets back",
        "what is the change~what the change is",
        "how much money [remains|is left over]~how much money remains",
    )
    np = ("the change", "the change [{S} gets|due]", "the money [left|that is left]", "the amount {S} gets back")
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
    facts = [teller.pick(
        "a {X} [costs|is] {p} and there is {r} off[| {day}]", "the price of a {X} is {p}, {day} [reduced|cut|lowered] by {r}", "{S} gets a [discount|reduction|rebate] of {r} on a {X} [of|that costs|priced at] {p}", "a {X} at {p} is [marked down|reduced|discounted] by {r}",
        "the [usual|old|normal|list] price of a {X} is {p}; {day} it is {r} [less|cheaper|off]", "a " + SHOP + " takes {r} off the price of {p} for a {X}",
    )]  # fmt: skip
    if teller.chance(0.65):
        wh = (
            "[how much|what] does it cost [now|then|]~how much it costs [now|then]",
            "what is the [new|sale|reduced|final] price~what the [new|sale|final] price is",
            "[how much|what] does {S} [pay|have to pay]~how much {S} pays",
            "how much is it after the discount~how much it is after the discount",
        )
        np = (
            "the [new|sale|reduced|final|discounted] price",
            "the price after the [discount|reduction]",
            "the price to pay",
        )
        return _made(
            teller,
            Ask(
                facts,
                wh,
                np,
                ("[what|how much] is {p} [after|with] a discount of {r}?", "{p} less {r}[: how much is that|]?"),
            ),
            slots,
            ("Take the share off.", f"{p}*(100-{r})/100"),
            money.name,
        )
    wh = (
        "how much [is saved|does {S} save|does one save]~how much is saved",
        "what is the [discount|saving|reduction] [in money|worth|]~what the discount is",
        "by how much does the price [fall|go down]~by how much the price falls",
    )
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
    facts = [teller.pick(
        "the [bill|meal|dinner|check|invoice|taxi ride] [comes to|is|costs] {p} and {tax} of {r} [is added|comes on top|is to be paid]", "{S} [leaves|gives|adds] a tip of {r} on a bill of {p}", "a {X} costs {p} [without|before] tax and the tax is {r}", "{tax} of {r} is [charged|added|put] on {p}",
        "the rent of {S} is {p} and goes up by {r}", "the wage of {S} is {p} and rises by {r}", "a {X} of {p} becomes {r} [dearer|more expensive]", "to {p} [comes|is added] {tax} of {r}",
    )]  # fmt: skip
    if teller.chance(0.6):
        wh = (
            "how much is [that|it] [in all|altogether|in total|with it|then]~how much it is [in all|altogether|then]",
            "what is the [total|full amount|whole sum|new amount]~what the [total|full amount|new amount] is",
            "[how much|what] [is paid|must be paid|is to be paid] [in all|then|]~how much must be paid",
        )
        whole = ("what is {p} plus {r} [tax|tip|VAT|service]?", "{p} with {r} [tax|tip] on top[: how much|]?")
        return _made(
            teller,
            Ask(facts, wh, ("the total", "the amount with it", "the full amount to pay", "the new amount"), whole),
            slots,
            ("Add the share.", f"{p}*(100+{r})/100"),
            money.name,
        )
    wh = (
        "how much [is added|comes on top|is the extra amount]~how much is added",
        "what is the [extra|additional] amount~what the extra amount is",
        "how much more is [paid|to be paid]~how much more is paid",
    )
    whole = (
        "what is a tip of {r} on {p}?",
        "[find|calculate|work out] {r} [tax|tip|VAT] on {p}.",
        "how much tax is {r} of {p}?",
    )
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
    facts = [teller.pick(
        "{S} [puts|invests|deposits|saves] {p} [in a bank|in an account|in a fund|] [at|with] {r} {how} {a} for {t} years", "{S} [lends|borrows] {p} at {r} {how} {a} for {t} years", "{p} [is|are] [invested|deposited|borrowed] for {t} years at a rate of {r} {how} {a}", "a sum of {p} [earns|bears] {r} {how} {a} and stays for {t} years",
        "an account with {p} pays {r} {how} {a}; nothing is taken out for {t} years",
    )]  # fmt: skip
    if total:
        wh: tuple[str, ...] = (
            "how much [is there|money is there|is in the account|is due] [in the end|after that|then|at the end]~how much there is in the end",
            "what does the [money|sum|account] grow to~what the sum grows to",
            "what is the [final amount|amount in the end|balance]~what the final amount is",
        )
        np: tuple[str, ...] = (
            "the [final|total] amount",
            "the amount [after that time|at the end]",
            "the balance at the end",
        )
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
    facts = [
        teller.pick(
            "{S} [buys|bought] a {X} for {a} and [sells|sold] it for {b}",
            "a {X} was bought for {a} and sold for {b}",
            "the cost price of a {X} is {a} and its selling price {b}",
            "{S} sells a {X} for {b} that cost {a}",
            "for a {X} {S} paid {a} and got {b}",
        )
    ]
    gain, high, low = ("profit", b, a) if b >= a else ("loss", a, b)
    slots["gain"] = "[profit|gain|profit]" if gain == "profit" else "loss"
    if teller.chance(0.5):
        wh = (
            "how [much|large|big] is the {gain}~how [large|big] the {gain} is",
            "what is the {gain}~what the {gain} is",
            "how much {gain} does {S} make~how much {gain} {S} makes",
        )
        return _made(
            teller,
            Ask(facts, wh, ("the {gain}", "{S's} {gain}", "the amount of the {gain}")),
            slots,
            ("The difference is asked for.", f"{high}-{low}"),
            money.name,
        )
    wh = (
        "what is the {gain} [percent|percentage|in percent|in %]~what the {gain} is in percent",
        "how many percent is the {gain}~how many percent the {gain} is",
        "what percentage {gain} is [that|made]~what percentage {gain} is made",
    )
    return Problem(
        teller.ask(
            Ask(facts, wh, ("the {gain} [in percent|percent|percentage|in %]", "the percentage of {gain}")), slots
        ),
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
            teller.pick(
                "{S} [earns|gets|makes|is paid|receives] {w} [an|a|per|for each|every] {u}",
                "the [wage|pay|rate] of {S} is {w} per {u}",
            ),
            teller.pick("{S} works [for |]{n} {u}s", "{n} {u}s are worked"),
        ]
        facts += ["[in addition|on top] there is a [bonus|tip|gift] of {b}"] * bonus
        wh = (
            "how much does {S} [earn|get|make|receive][| in all| altogether]~how much {S} [earns|gets|makes]",
            "how much money is that~how much money that is",
            "what is {S's} [pay|wage|income|salary]~what {S's} [pay|income] is",
        )
        np = ("the [pay|earnings|wages]", "the money {S} earns", "{S's} [total |]pay", "the total earned")
        work = ("Pay times time, then the rest." if bonus else "Pay times time.", f"{n}*{w}" + f"+{b}" * bonus)
        return _made(teller, Ask(facts, wh, np, loose=False), slots, (work[0], work[1]), money.name)
    total = str(int(n) * int(w)) if w.isdigit() else money.price(100, 900)
    slots["T"] = money.say(total)
    if w.isdigit() and teller.chance(0.4):
        facts = ["{S} [earns|gets|is paid] {w} [a|per] {u}", "{S} [wants|needs|would like] to have {T}"]
        wh = (
            "how many {u}s must {S} work~how many {u}s {S} must work",
            "how long does {S} have to work, in {u}s~how long {S} has to work, in {u}s",
        )
        return Problem(
            teller.ask(Ask(facts, wh, ("the number of {u}s [needed|of work]",)), slots),
            (("Divide by the pay.", f"{total}/{w}"),),
            unit + "s",
        )
    facts = [
        teller.pick(
            "{S} [earns|gets|is paid|made] {T} for {n} {u}s [of work|]",
            "for {n} {u}s of work {S} [gets|receives] {T}",
            "{n} {u}s of work bring {S} {T}",
        )
    ]
    wh = (
        "how much [is that|does {S} earn|does {S} get] [per|a|for each] {u}~how much that is per {u}",
        "what is {S's} pay per {u}~what {S's} pay per {u} is",
    )
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
    rate_said = teller.pick(
        "one {h} [is|equals|is worth|buys|gets you] {r} {A}",
        "the [rate|exchange rate] is {r} {A} [to|for|per] one {h}",
        "1 {h} = {r} {A}",
        "for a {h} one gets {r} {A}",
    )
    if teller.chance(0.6):
        facts = [
            rate_said,
            teller.pick(
                "{S} [changes|exchanges|converts|swaps] {a} {H}",
                "{S} [travels to {P}|goes abroad] with {a} {H}",
                "{S} has {a} {H}",
            ),
        ]
        wh = (
            "how many {A} [is that|does {S} get|are they]~how many {A} that is",
            "how much is that in {A}~how much that is in {A}",
            "what [does {S} get|is it] in {A}~what it is in {A}",
        )
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
    wh = ("how many {H} is that~how many {H} that is", "how much is that in {H}~how much that is in {H}")
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
    uses = teller.pick(
        "{S} [uses|needs|burns|consumes] {c} [of fuel |of petrol |of diesel |]per 100 km",
        "{S} [needs|takes] {c} for 100 km",
        "the consumption of {S} is {c} per 100 km",
    )
    if kind == "litres":
        facts = [uses, "[it goes|the trip is|it is driven|the way is] {d}"]
        wh = (
            "how [much fuel|many litres] [does it need|is needed|does it use|does that take]~how [much fuel|many litres] it needs",
            "how many litres are burnt~how many litres are burnt",
        )
        return Problem(
            teller.ask(
                Ask(facts, wh, ("the fuel needed", "the litres of fuel used", "the amount of fuel"), loose=False), slots
            ),
            (("Litres for 100 km, times the way over 100.", f"{per}*{d}/100"),),
            "L",
        )
    if kind == "cost":
        facts = [uses, "[fuel|a litre|one litre of fuel] costs {p}".replace("[fuel|", "["), "the trip is {d} long"]
        wh = (
            "[how much|what] does the fuel [for the trip |]cost~how much the fuel costs",
            "what is the cost of the fuel~what the cost of the fuel is",
        )
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
        facts = [
            teller.pick(
                "{S} needs {l} for {d}",
                "{S} [goes|drives|covers] {d} on {l}[| of fuel| of petrol]",
                "for {d} {S} burns {l} [of fuel|]",
            )
        ]
        wh = (
            "how many litres is that per 100 km~how many litres that is per 100 km",
            "what is the consumption per 100 km~what the consumption per 100 km is",
            "how much does it need for 100 km~how much it needs for 100 km",
        )
        return Problem(
            teller.ask(Ask(facts, wh, ("the consumption per 100 km", "the fuel per 100 km")), slots),
            (("Litres over the way, times 100.", f"{litres}/{d}*100"),),
            "L",
        )
    if kind == "miles":
        facts = [
            teller.pick("{S} [does|gets|goes|makes] {m} miles [to the|per|on a] gallon", "{S} gets {m} mpg"),
            "[there are|it has] {g} gallons [in the tank|left]",
        ]
        wh = (
            "how far can it go~how far it can go",
            "how many miles [can it go|does that last|is that]~how many miles it can go",
            "what distance can it cover~what distance it can cover",
        )
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
    wh = (
        "how many gallons [does it need|are needed|does it use|is that]~how many gallons it needs",
        "how much fuel does it need~how much fuel it needs",
    )
    return Problem(
        teller.ask(Ask(facts, wh, ("the gallons needed", "the fuel in gallons"), loose=False), slots),
        (("Miles divided by miles per gallon.", f"{far}/{mpg}"),),
        "gallons",
    )
