"""Percentages, fractions, ratios, averages, ages, work done together, recipes and mixtures."""

from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, noun, person, subject
from training.builtin.quantities.working import Problem, percent, problem

__all__ = [
    "age",
    "average",
    "fraction",
    "mixture",
    "percent_change",
    "percent_of",
    "percent_share",
    "ratio",
    "recipe",
    "whole_of_percent",
    "working",
]

SAID = wordings("parts")

SHARE = "[%| %|%| percent| per cent|%]"
GROUP = "[pupils|students|people|members|guests|workers|voters|players|passengers|teachers|visitors|children|cars|trees|books|houses|tickets|questions|apples|animals|seats|letters]"
FRACTIONS = {
    "[half|one half|1/2]": "1/2",
    "[a third|one third|1/3]": "1/3",
    "[two thirds|2/3]": "2/3",
    "[a quarter|one quarter|one fourth|1/4]": "1/4",
    "[three quarters|three fourths|3/4]": "3/4",
    "[a fifth|one fifth|1/5]": "1/5",
    "[two fifths|2/5]": "2/5",
    "[three fifths|3/5]": "3/5",
    "[four fifths|4/5]": "4/5",
    "[a sixth|1/6]": "1/6",
    "[five sixths|5/6]": "5/6",
    "[an eighth|one eighth|1/8]": "1/8",
    "[three eighths|3/8]": "3/8",
    "[a tenth|one tenth|1/10]": "1/10",
    "[three tenths|3/10]": "3/10",
    "[seven tenths|7/10]": "7/10",
}


def percent_of(teller: Teller) -> Problem:
    """A share, in per cent, of a number of people or things; or the others."""
    r, whole = (
        str(teller.whole(1, 99)) if teller.chance(0.7) else teller.decimal(1, 60),
        str(teller.whole(20, 900, teller.random.choice((1, 5, 10, 20)))),
    )
    group = teller.say(GROUP).lower() if teller.chance(0.6) else noun(teller)
    slots: dict[str, str | Thing] = {
        "r": r + SHARE,
        "T": teller.measure(whole),
        "N": group,
        "S": subject(teller),
        "do": "[are new|are late|like music|are absent|come by bus|are from abroad|are old|are damaged|are left-handed|are red|were checked|are free|belong to {S}]",
    }
    facts = [teller.pick(*SAID["percent_of facts"])]
    if teller.chance(0.7):
        wh = SAID["percent_of wh"]
        whole_q = SAID["percent_of whole_q"]
        return Problem(
            teller.ask(
                Ask(facts, wh, ("the number of [these|those|such] {N}", "their number", "{r} of {T}"), whole_q), slots
            ),
            (("The share of the whole.", f"{whole}*{r}/100"),),
            group,
            tuple(group.split()),
        )
    wh = SAID["percent_of wh2"]
    return Problem(
        teller.ask(
            Ask(
                facts,
                wh,
                SAID["percent_of part"],
            ),
            slots,
        ),
        (("The rest of the hundred.", f"{whole}*(100-{r})/100"),),
        group,
        tuple(group.split()),
    )


def percent_share(teller: Teller) -> Problem:
    """What per cent one number is of another."""
    whole = teller.whole(5, 400)
    part = teller.whole(1, whole)
    group = teller.say(GROUP).lower() if teller.chance(0.6) else noun(teller)
    slots: dict[str, str | Thing] = {
        "p": teller.measure(str(part)),
        "T": teller.measure(str(whole)),
        "N": group,
        "S": subject(teller),
        "do": "[are new|are late|are broken|are absent|came|are sold|passed|were right|are green|answered|survived|arrived]",
    }
    facts = [teller.pick(*SAID["percent_share facts"])]
    wh = SAID["percent_share wh"]
    np = SAID["percent_share np"]
    whole_q = SAID["percent_share whole_q"]
    return problem(
        teller,
        Ask(facts, wh, np, whole_q),
        slots,
        ("The part over the whole, in percent.", percent(f"{part}/{whole}*100")),
        "%",
    )


def percent_change(teller: Teller) -> Problem:
    """By how many per cent something rose or fell; or what it became."""
    a = teller.whole(5, 900)
    b = a + teller.whole(1, a) if teller.chance(0.6) else max(a - teller.whole(1, a), 1)
    up = b >= a
    what = "[the price of a {X}|the rent|the population of a village|the number of members|the weight of a calf|the level of a lake|the output of a factory|the number of visitors|a wage|the height of a tree|the length of a queue|the mass of a sample]"
    slots: dict[str, str | Thing] = {
        "a": teller.measure(str(a)),
        "b": teller.measure(str(b)),
        "X": goods(teller),
        "what": teller.say(what, {"X": goods(teller)}),
    }
    slots["what"] = str(slots["what"])[0].lower() + str(slots["what"])[1:]
    if teller.chance(0.55):
        facts = [
            teller.pick(
                f"{{what}} [{'rises|grows|goes up|increased|climbs' if up else 'falls|drops|goes down|decreased|sinks'}] from {{a}} to {{b}}",
                "{what} was {a} and is {b} now",
                "last year {what} was {a}, this year it is {b}",
                "{what} changes from {a} to {b}",
            )
        ]
        sort = "[increase|rise|growth|change]" if up else "[decrease|fall|drop|reduction]"
        wh = (
            f"what is the percentage {sort}~what the percentage {sort} is",
            f"by [how many|what] percent did it [{'rise|grow|increase' if up else 'fall|drop|decrease'}]~by how many percent it {'rose' if up else 'fell'}",
            f"how large is the {sort} in [percent|%]~how large the {sort} is in percent",
        )
        np = (f"the percentage {sort}", f"the {sort} in [percent|%]", f"the percent {sort}")
        whole_q = (f"what is the percentage {sort} from {{a}} to {{b}}?", f"from {{a}} to {{b}}: {sort} in percent?")
        high, low = (b, a) if up else (a, b)
        return problem(
            teller,
            Ask(facts, wh, np, whole_q),
            slots,
            ("The change over the old value, in percent.", percent(f"({high}-{low})/{a}*100")),
            "%",
        )
    r = str(teller.whole(1, 90))
    rises = teller.chance(0.5)
    slots["r"] = r + SHARE
    verb = "[rises|grows|goes up|increases|climbs]" if rises else "[falls|drops|goes down|decreases|sinks]"
    facts = [
        teller.pick(
            f"{{what}} is {{a}} and {verb} by {{r}}",
            f"{{what}}, {{a}} [at first|today|so far], {verb} by {{r}}",
            f"{{what}} {verb} by {{r}} from {{a}}",
        )
    ]
    wh = SAID["percent_change wh"]
    whole_q = (
        f"what is {{a}} [{'increased|raised' if rises else 'decreased|reduced|lowered'}] by {{r}}?",
        f"{'increase|raise'.split('|', maxsplit=1)[0] if rises else 'decrease'} {{a}} by {{r}}.",
        f"{{a}} {'plus' if rises else 'minus'} {{r}}?",
    )
    return problem(
        teller,
        Ask(facts, wh, ("the new value", "the value afterwards"), whole_q),
        slots,
        ("Add the share." if rises else "Take the share off.", f"{a}*(100{'+' if rises else '-'}{r})/100"),
    )


def whole_of_percent(teller: Teller) -> Problem:
    """The whole from a part and its per cent."""
    r = teller.whole(1, 95)
    whole = teller.whole(20, 900, 20)
    part = str(r * whole // 100) if not r * whole % 100 else str(teller.whole(2, 300))
    group = teller.say(GROUP).lower() if teller.chance(0.6) else noun(teller)
    slots: dict[str, str | Thing] = {"r": f"{r}" + SHARE, "p": teller.measure(part), "N": group}
    facts = [teller.pick(*SAID["whole_of_percent facts"])]
    wh = SAID["whole_of_percent wh"]
    whole_q = SAID["whole_of_percent whole_q"]
    unnamed = teller.chance(0.4)
    ask = Ask((), (), (), whole_q) if unnamed else Ask(facts, wh, ("the total", "the number of all {N}"))
    return Problem(
        teller.ask(ask, slots),
        (("The part over its percent, times 100.", f"{part}/{r}*100"),),
        "" if unnamed else group,
        tuple(group.split()),
    )


def fraction(teller: Teller) -> Problem:
    """A half, two thirds, … of things or of a measure, or what remains."""
    said, number = teller.random.choice(list(FRACTIONS.items()))
    above, below = number.split("/")
    whole = str(teller.whole(2, 60) * int(below))
    unit = (
        teller.pick("kg", "L", "m", "km", "hours", "minutes", "litres", "metres", "pages", "euros", "dollars")
        if teller.chance(0.4)
        else noun(teller)
    )
    slots: dict[str, str | Thing] = {
        "f": said,
        "T": teller.measure(whole),
        "N": unit,
        "S": subject(teller),
        "do": "[gives away|uses|sells|loses|finishes|spends|puts aside|needs]",
    }
    facts = ["{S} " + teller.pick(*SAID["fraction facts"])]
    if teller.chance(0.6):
        wh = SAID["fraction wh"]
        whole_q = SAID["fraction whole_q"]
        return Problem(
            teller.ask(Ask(facts, wh, ("this part", "the part in {N}"), whole_q), slots),
            (("The part of the whole.", f"{whole}*{above}/{below}"),),
            unit,
            tuple(unit.split()),
        )
    wh = SAID["fraction wh2"]
    return Problem(
        teller.ask(Ask(facts, wh, ("the number of {N} left", "the rest", "the remaining {N}")), slots),
        (("The whole less the part.", f"{whole}-{whole}*{above}/{below}"),),
        unit,
        tuple(unit.split()),
    )


def ratio(teller: Teller) -> Problem:
    """A whole that is shared in a ratio; or one part from the other."""
    a, b = teller.whole(1, 9), teller.whole(1, 9)
    b = b + 1 if a == b else b
    k = teller.whole(2, 40)
    thing = (
        teller.pick("dollars", "euros", "kg", "L", "marbles", "points", "hours", "grams", "rupees")
        if teller.chance(0.6)
        else noun(teller)
    )
    one, two = person(teller).name, person(teller).name
    while two == one:
        two = person(teller).name
    slots: dict[str, str | Thing] = {
        "A": one,
        "B": two,
        "R": teller.pick("{}:{}", "{} : {}", "{} to {}", "{}:{}").format(a, b),
        "N": thing,
    }
    first = teller.chance(0.5)
    mine, other, who = (a, b, one) if first else (b, a, two)
    slots["W"] = who
    if teller.chance(0.65):
        total = k * (a + b) if teller.chance(0.85) else teller.whole(20, 500)
        slots["T"] = teller.measure(str(total))
        facts = [teller.pick(*SAID["ratio facts"])]
        wh = SAID["ratio wh"]
        np = ("{W's} [share|part]", "the share of {W}", "the number of {N} for {W}")
        return Problem(
            teller.ask(Ask(facts, wh, np), slots),
            (("The whole by all parts, times the own parts.", f"{total}/({a}+{b})*{mine}"),),
            thing,
            tuple(thing.split()),
        )
    known = other * k
    x, y = goods(teller, bulk=True), goods(teller, bulk=True)
    slots |= {
        "X": x,
        "Y": y,
        "K": teller.measure(str(known)),
        "Z": x if first else y,
        "O": y if first else x,
        "u": teller.pick("cups", "kg", "litres", "g", "parts", "spoons", "buckets", "bags"),
    }
    facts = [
        teller.pick(*SAID["ratio facts2"]),
        teller.pick("there are {K} {u} of {O}", "{K} {u} of {O} are [used|taken]"),
    ]
    wh = SAID["ratio wh2"]
    return Problem(
        teller.ask(Ask(facts, wh, ("the [amount|quantity] of {Z}", "the {u} of {Z}"), loose=False), slots),
        (("One part, times the parts asked for.", f"{known}/{other}*{mine}"),),
        str(slots["u"]),
    )


AVERAGED = (
    ("{S} [scores|got|has] {L} [points|marks] in {n} [tests|games|rounds|exams]", "[score|mark|number of points]", ""),
    ("the temperatures of {n} days are {L} degrees", "temperature", "degrees"),
    ("{n} [children|friends|players|students] are {L} years old", "age", "years"),
    ("{n} [parcels|fish|apples|stones|dogs] weigh {L} kg", "[weight|mass]", "kg"),
    ("{S} [runs|walks|cycles] {L} km on {n} days", "[distance|way a day]", "km"),
    ("{S} [sells|makes|finds] {L} {N} on {n} days", "number", ""),
    ("{n} [planks|ropes|rods|snakes|sticks] are {L} cm long", "length", "cm"),
    ("{n} [measurements|readings|trials] give {L}", "[value|result|reading]", ""),
    ("it rains {L} mm in {n} [days|weeks|months]", "rainfall", "mm"),
)


def average(teller: Teller) -> Problem:
    """The mean of some numbers; or the number that makes the mean."""
    count = teller.random.choice((2, 3, 3, 4, 4, 5, 5, 6))
    numbers = [str(teller.whole(1, 99)) if teller.chance(0.9) else teller.decimal(1, 40) for _ in range(count)]
    listed = ", ".join(numbers[:-1]) + teller.pick(" and ", ", ", ", and ") + numbers[-1]
    fact, name, unit = teller.random.choice(AVERAGED)
    slots: dict[str, str | Thing] = {
        "S": subject(teller),
        "L": listed,
        "n": teller.number(str(count)) if count != 2 else "two",
        "N": noun(teller),
        "name": name,
        "mean": "[average|average|mean|arithmetic mean]",
    }
    if teller.chance(0.75):
        wh = SAID["average wh"]
        np = ("the {mean}", "the {mean} {name}")
        whole = SAID["average whole"]
        question = teller.ask(Ask([fact], wh, np, whole), slots)
        unit = unit if fact.split("{L}")[1].split(" ")[-1] and f" {unit}" in question else ""
        return Problem(question, (("The sum, divided by how many there are.", f"({'+'.join(numbers)})/{count}"),), unit)
    mean, given = str(teller.whole(10, 90)), numbers[:-1]
    listed = ", ".join(given[:-1]) + (" and " if len(given) > 1 else "") + given[-1]
    slots |= {"m": mean, "L": listed, "k": str(len(given))}
    facts = [teller.pick(*SAID["average facts"])]
    wh = SAID["average wh2"]
    return problem(
        teller,
        Ask(facts, wh, ("the [missing|last|other] number",), loose=False),
        slots,
        ("All together, less those that are known.", f"{mean}*{count}-({'+'.join(given)})"),
    )


def age(teller: Teller) -> Problem:
    """How old somebody is, was or will be."""
    a, k, y = teller.whole(6, 70), teller.whole(2, 5), teller.whole(2, 30)
    one, two = person(teller), person(teller)
    while two.name == one.name:
        two = person(teller)
    relative = "[brother|sister|cousin|friend|uncle|aunt|neighbour|father|mother|dog]"
    slots: dict[str, str | Thing] = {
        "A": one.name,
        "B": two.name if teller.chance(0.6) else teller.say(f"{one.name}'s {relative}"),
        "a": teller.measure(str(a)),
        "y": teller.measure(str(y)),
        "times": {2: "[twice|two times|double]", 3: "[three times|thrice]"}.get(k, f"{teller.measure(str(k))} times"),
    }
    kind = teller.random.choice(("older", "younger", "times", "future", "past", "born"))
    y = min(y, a - 2) if kind in ("younger", "past") else y
    slots["y"] = teller.measure(str(y))
    fact, expression, says, who = {
        "older": ("{B} is {y} years older than {A}", f"{a}+{y}", "Older means add.", "{B}"),
        "younger": ("{B} is {y} years younger than {A}", f"{a}-{y}", "Younger means take away.", "{B}"),
        "times": ("{B} is {times} as old as {A}", f"{a}*{k}", "So many times means multiply.", "{B}"),
        "future": ("", f"{a}+{y}", "Add the years.", "{A}"),
        "past": ("", f"{a}-{y}", "Take the years away.", "{A}"),
        "born": ("", f"{2000 + a}-{a}", "Take the age from the year.", "{A}"),
    }[kind]
    now = teller.pick("{A} is {a} years old", "{A} is {a}", "{A} has just turned {a}", "{A's} age is {a}")
    if kind == "born":
        slots["year"] = str(2000 + a)
        wh: tuple[str, ...] = SAID["age wh"]
        return problem(
            teller,
            Ask(
                [teller.pick("in {year} {A} [is|turns] {a}", "{A} [will be|is] {a} in {year}")],
                wh,
                ("the year of {A's} birth",),
            ),
            slots,
            (says, expression),
        )
    if kind in ("future", "past"):
        when = "in {y} years" if kind == "future" else "{y} years ago"
        verb = "will {A} be" if kind == "future" else "was {A}"
        told = "{A} will be" if kind == "future" else "{A} was"
        wh = (f"how old {verb} {when}~how old {told} {when}", f"{when}, how old {verb}~how old {told} {when}")
        return problem(teller, Ask([now], wh, (f"{{A's}} age {when}",)), slots, (says, expression), "years")
    wh = (f"how old is {who}~how old {who} is", f"what is the age of {who}~what the age of {who} is")
    return problem(
        teller, Ask([now, fact], wh, (f"the age of {who}",), loose=False), slots, (says, expression), "years"
    )


def working(teller: Teller) -> Problem:
    """Work done together, or by another number of workers."""
    unit = teller.pick("hours", "hours", "days", "minutes")
    a, b = str(teller.whole(2, 30)), str(teller.whole(2, 30))
    one, two = person(teller).name, person(teller).name
    job = "[paint a fence|dig a ditch|clean the hall|build a wall|mow the meadow|pack the order|sort the letters|fold the leaflets|weed the garden|type a report|pick the orchard]"
    slots: dict[str, str | Thing] = {
        "A": one,
        "B": two,
        "a": f"{teller.measure(a)} {unit}",
        "b": f"{teller.measure(b)} {unit}",
        "job": teller.say(job).lower(),
        "u": unit,
    }
    if teller.chance(0.5):
        if teller.chance(0.4):
            slots |= {"A": "one [pipe|pump|tap|hose]", "B": "another [one|]", "job": "fill the [tank|pool|basin|pond]"}
        facts = [teller.pick(*SAID["working facts"])]
        wh = SAID["working wh"]
        return problem(
            teller,
            Ask(facts, wh, SAID["working part"]),
            slots,
            ("The rates are added; the time is one over the rate.", f"1/(1/{a}+1/{b})"),
            unit,
        )
    n, m = teller.whole(2, 12), teller.whole(2, 16)
    slots |= {
        "n": teller.measure(str(n)),
        "m": teller.measure(str(m)),
        "W": "[workers|men|machines|pumps|painters|people|robots|cooks]",
    }
    slots["W"] = teller.say(str(slots["W"])).lower()
    facts = [teller.pick(*SAID["working facts2"])]
    wh = SAID["working wh2"]
    return problem(
        teller,
        Ask(facts, wh, ("the time for {m} {W}", "the time {m} {W} need")),
        slots,
        ("The work is workers times time; divide it by the workers.", f"{n}*{a}/{m}"),
        unit,
    )


def recipe(teller: Teller) -> Problem:
    """A recipe for more or fewer people."""
    n, m = teller.whole(2, 12), teller.whole(2, 30)
    what, unit = (
        goods(teller, bulk=True),
        teller.pick("g", "grams", "cups", "ml", "spoons", "kg", "litres", "tablespoons", "teaspoons", "ounces", "eggs"),
    )
    amount = str(teller.whole(1, 12) * n) if unit not in ("g", "grams", "ml") else str(teller.whole(50, 900, 10))
    dish = "[soup|a cake|bread|pancakes|curry|a stew|rice pudding|salad dressing|pasta|dumplings|muffins|a pie|lemonade|porridge|risotto|a sauce|cookies|{X}]"
    of = "" if unit == "eggs" else " of {W}"
    slots: dict[str, str | Thing] = {
        "n": teller.measure(str(n)),
        "m": teller.measure(str(m)),
        "a": f"{teller.measure(amount)} {unit}{of}",
        "W": what,
        "u": f"{unit}{of}",
        "X": goods(teller),
        "dish": dish,
        "for": "[people|persons|servings|guests|portions]",
    }
    facts = [
        teller.pick(*SAID["recipe facts"]),
    ]
    wh = SAID["recipe wh"]
    whole = SAID["recipe whole"]
    return problem(
        teller,
        Ask(facts, wh, ("the amount for {m} {for}", "the {u} for {m} {for}"), whole),
        slots,
        ("For one, times the number.", f"{amount}/{n}*{m}"),
        unit,
    )


def mixture(teller: Teller) -> Problem:
    """Dissolved, diluted and mixed: shares of the mass, c1V1 = c2V2, and the mean of two."""
    kind = teller.random.choice(("share", "content", "dilute", "volume", "mix", "water"))
    salt, water = str(teller.whole(2, 90)), str(teller.whole(20, 900, 10))
    c, v = str(teller.whole(2, 18)) if teller.chance(0.7) else teller.decimal(0.5, 12), str(teller.whole(10, 500, 5))
    w, r = str(int(v) + teller.whole(20, 900, 10)), str(teller.whole(2, 60))
    unit = teller.pick("mL", "mL", "ml", "L")
    stuff = teller.pick(*SAID["mixture stuff"])
    slots: dict[str, str | Thing] = {
        "s": f"{salt} g",
        "w": f"{water} g",
        "X": stuff,
        "c": f"{c} [M|mol/L|M|molar]",
        "v": f"{v} {unit}",
        "V": f"{w} {unit}",
        "r": r + SHARE,
        "sol": "[solution|solution|stock|sample]",
    }
    if kind == "share":
        facts = [teller.pick(*SAID["mixture facts"])]
        wh = SAID["mixture wh"]
        return problem(
            teller,
            Ask(facts, wh, SAID["mixture part"]),
            slots,
            ("The part over the whole mass, in percent.", percent(f"{salt}/({salt}+{water})*100")),
            "%",
        )
    if kind == "content":
        facts = [teller.pick(*SAID["mixture facts2"])]
        wh = SAID["mixture wh2"]
        return problem(
            teller,
            Ask(
                facts,
                wh,
                ("the mass of {X}", "the grams of {X} in it"),
                ("how many grams of {X} are in {w} of a {r} solution?",),
            ),
            slots,
            ("The share of the mass.", f"{water}*{r}/100"),
            "g",
        )
    if kind == "dilute":
        facts = [teller.pick(*SAID["mixture facts3"])]
        wh = SAID["mixture wh3"]
        return problem(
            teller,
            Ask(facts, wh, SAID["mixture part2"]),
            slots,
            ("Concentration times volume stays the same.", f"{c}*{v}/{w}"),
            "mol/L",
        )
    if kind == "volume":
        low = teller.decimal(0.1, 1.9)
        slots["l"] = f"{low} [M|mol/L|M|molar]"
        wh = (
            "what volume of [it|the {sol}|the stock] is needed~what volume of it is needed",
            f"how many {unit} of [it|the stock] are needed~how many {unit} are needed",
        )
        facts = ["a {c} {sol} [of {X} |]is [diluted|used] to [make|prepare] {V} of a {l} [one|solution]"]
        whole = (
            f"how many {unit} of a {{c}} {{sol}} [are needed|does one need] [to make|for|to prepare] {{V}} of a {{l}} solution?",
            "what volume of {c} {X} {sol} gives {V} of {l} solution?",
        )
        return problem(
            teller,
            Ask(facts, wh, ("the volume [of stock |]needed",), whole),
            slots,
            ("Concentration times volume stays the same.", f"{low}*{w}/{c}"),
            unit,
        )
    if kind == "mix":
        d = str(teller.whole(1, 20))
        slots |= {"d": f"{d} [M|mol/L|M|molar]"}
        facts = [teller.pick(*SAID["mixture facts4"])]
        wh = SAID["mixture wh4"]
        return problem(
            teller,
            Ask(facts, wh, ("the concentration of the mixture", "the [final|resulting] concentration")),
            slots,
            ("All moles over all volume.", f"({c}*{v}+{d}*{w})/({v}+{w})"),
            "mol/L",
        )
    t, u = str(teller.whole(2, 40)), str(teller.whole(41, 98))
    slots |= {"t": f"{t} [°C|degrees]", "u": f"{u} [°C|degrees]", "a": f"{v} [g|kg|L|litres]", "b": f"{water}"}
    same = teller.say(f"{teller.pick('g', 'kg', 'L')}")
    slots |= {
        "a": f"{v} {same.lower() if same != 'L' else 'L'}",
        "b": f"{water} {same.lower() if same != 'L' else 'L'}",
    }
    facts = [teller.pick(*SAID["mixture facts5"])]
    wh = SAID["mixture wh5"]
    return problem(
        teller,
        Ask(facts, wh, ("the temperature of the mixture", "the final temperature")),
        slots,
        ("The mean, by how much there is of each.", f"({v}*{t}+{water}*{u})/({v}+{water})"),
        "°C",
    )
