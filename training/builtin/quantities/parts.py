"""Percentages, fractions, ratios, averages, ages, work done together, recipes and mixtures."""

from training.builtin.quantities.telling import Ask, Teller, Thing
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

SHARE = "[%| %|%| percent| per cent|%]"
GROUP = "[pupils|students|people|members|guests|workers|voters|players|passengers|teachers|visitors|children|cars|trees|books|houses|tickets|questions|apples|animals|seats|letters]"
FRACTIONS = {
    "[half|one half|1/2]": "1/2", "[a third|one third|1/3]": "1/3", "[two thirds|2/3]": "2/3", "[a quarter|one quarter|one fourth|1/4]": "1/4", "[three quarters|three fourths|3/4]": "3/4",
    "[a fifth|one fifth|1/5]": "1/5", "[two fifths|2/5]": "2/5", "[three fifths|3/5]": "3/5", "[four fifths|4/5]": "4/5", "[a sixth|1/6]": "1/6", "[five sixths|5/6]": "5/6", "[an eighth|one eighth|1/8]": "1/8", "[three eighths|3/8]": "3/8",
    "[a tenth|one tenth|1/10]": "1/10", "[three tenths|3/10]": "3/10", "[seven tenths|7/10]": "7/10",
}  # fmt: skip


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
    facts = [teller.pick(
        "of {T} {N} {r} {do}", "there are {T} {N} and {r} [of them |]{do}", "{r} of {T} {N} {do}", "among {T} {N}, {r} {do}", "[a town|a club|a hall|a school|a list|a farm] has {T} {N}; {r} of them {do}",
    )]  # fmt: skip
    if teller.chance(0.7):
        wh = (
            "how many [{N} |]are [that|they|these]~how many that are".replace("[that|they|these]", "they"),
            "how many {N} is that~how many {N} that is",
            "what is the number of [these|those|such] {N}~what the number of [these|those] {N} is",
            "how many [of them |]are meant~how many are meant",
        )
        whole_q = (
            "how many {N} are {r} of {T}?",
            "what is {r} of {T} {N}?",
            "[find|calculate|work out] {r} of {T} {N}.",
            "{r} of {T} {N} is how many?",
        )
        return Problem(
            teller.ask(
                Ask(facts, wh, ("the number of [these|those|such] {N}", "their number", "{r} of {T}"), whole_q), slots
            ),
            (("The share of the whole.", f"{whole}*{r}/100"),),
            group,
            tuple(group.split()),
        )
    wh = (
        "how many {N} are [not|the others]~how many are the others".replace("[not|the others]", "the others"),
        "how many [{N} |][remain|are left|are the rest]~how many remain",
        "how many do not~how many do not",
    )
    return Problem(
        teller.ask(
            Ask(
                facts,
                wh,
                (
                    "the number of the other {N}",
                    "the number of the rest",
                    "how many are left".replace("how many are left", "the number that remains"),
                ),
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
    facts = [
        teller.pick(
            "{p} of {T} {N} {do}",
            "of {T} {N}, {p} {do}",
            "there are {T} {N} and {p} of them {do}",
            "{S} [counts|sees|has] {T} {N}, {p} of which {do}",
            "{S} gets {p} [points|marks] out of {T}",
            "{p} out of {T} {N} {do}",
        )
    ]
    wh = (
        "what [percentage|percent] is that~what percentage that is",
        "how many percent are that~how many percent that is",
        "what is that in [percent|%]~what that is in percent",
        "what share is that, in [percent|%]~what share that is in percent",
        "which percentage [of the {N} |]is it~which percentage it is",
    )
    np = ("the percentage", "the share in percent", "the [rate|proportion] in %", "this as a percentage")
    whole_q = (
        "what [percent|percentage] of {T} is {p}?",
        "{p} is what percent of {T}?",
        "express {p} out of {T} as a percentage.",
        "what is {p} out of {T} in percent?",
        "{p} of {T} in %?",
        "how many percent of {T} are {p}?",
    )
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
    wh = (
        "what is the new value~what the new value is",
        "what [is it|does it become] [then|afterwards|]~what it is then",
        "how [much|large] is it [then|afterwards]~how large it is then",
    )
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
    facts = [
        teller.pick(
            "{r} of the {N} are {p}",
            "{p} {N} are {r} of all",
            "{p} {N} [make up|are] {r} of the [total|whole]",
            "{r} of all {N}, [that is|namely] {p}, are new",
        )
    ]
    wh = (
        "how many {N} are there [in all|altogether|]~how many {N} there are",
        "what is the [whole|total number|total]~what the total is",
    )
    whole_q = (
        "{p} is {r} of what number?",
        "{r} of which number is {p}?",
        "if {r} of a number is {p}, what is the number?",
        "of what number is {p} {r}?",
    )
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
    facts = [
        "{S} "
        + teller.pick(
            "has {T} {N} and {do} {f}[| of them| of it]",
            "{do} {f} of {T} {N}",
            "[starts with|owns|got] {T} {N}, and {do} {f}",
        )
    ]
    if teller.chance(0.6):
        wh = (
            "how [many|much] is that~how much that is",
            "how [many|many {N}] are that~how many that is".replace(
                "how [many|many {N}] are that", "how many {N} is that"
            ),
            "what number of {N} is that~what number of {N} that is",
        )
        whole_q = (
            "what is {f} of {T} {N}?",
            "how many {N} are {f} of {T}?",
            "[find|calculate|work out] {f} of {T} {N}.",
            "{f} of {T} {N}?",
            "{f} of {T} {N} is how many {N}?",
        )
        return Problem(
            teller.ask(Ask(facts, wh, ("this part", "the part in {N}"), whole_q), slots),
            (("The part of the whole.", f"{whole}*{above}/{below}"),),
            unit,
            tuple(unit.split()),
        )
    wh = (
        "how [much|many {N}] [is|are] left~how much is left".replace("[is|are]", "are")
        .replace("[much|many {N}]", "many {N}")
        .replace("~how much is left", "~how many {N} are left"),
        "how many {N} remain~how many {N} remain",
        "what is left, in {N}~what is left, in {N}",
    )
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
        facts = [
            teller.pick(
                "{A} and {B} share {T} {N} in the ratio {R}",
                "{T} {N} are [shared|divided|split] between {A} and {B} in the ratio [of |]{R}",
                "{A} and {B} divide {T} {N}, and the ratio [of their shares |]is {R}",
            )
        ]
        wh = (
            "how many {N} does {W} get~how many {N} {W} gets",
            "how [much|large] is {W's} [share|part]~how large {W's} share is",
            "what does {W} [get|receive]~what {W} gets",
            "how much goes to {W}~how much goes to {W}",
        )
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
        teller.pick(
            "{X} and {Y} are mixed in the ratio {R}",
            "a mixture [has|needs|contains] {X} and {Y} in the ratio {R}",
            "the ratio of {X} to {Y} is {R}",
        ),
        teller.pick("there are {K} {u} of {O}", "{K} {u} of {O} are [used|taken]"),
    ]
    wh = (
        "how [many {u} of |much ]{Z} [are|is] needed~how many {u} of {Z} are needed".replace(
            "[many {u} of |much ]", "many {u} of "
        ).replace("[are|is]", "are"),
        "how many {u} of {Z} are there~how many {u} of {Z} there are",
    )
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
        wh = (
            "what is the {mean} [{name}|]~what the {mean} [{name}|] is",
            "what is the {name} on average~what the {name} is on average",
            "how [large|high] is the {mean}~how large the {mean} is",
        )
        np = ("the {mean}", "the {mean} {name}")
        whole = (
            "what is the {mean} of {L}?",
            "[find|calculate|work out|compute] the {mean} of {L}.",
            "{mean} of {L}?",
            "the {mean} of the numbers {L} is what?",
            "average {L}",
            "[find|give] the {mean} of these: {L}.",
        )
        question = teller.ask(Ask([fact], wh, np, whole), slots)
        unit = unit if fact.split("{L}")[1].split(" ")[-1] and f" {unit}" in question else ""
        return Problem(question, (("The sum, divided by how many there are.", f"({'+'.join(numbers)})/{count}"),), unit)
    mean, given = str(teller.whole(10, 90)), numbers[:-1]
    listed = ", ".join(given[:-1]) + (" and " if len(given) > 1 else "") + given[-1]
    slots |= {"m": mean, "L": listed, "k": str(len(given))}
    facts = [
        teller.pick(
            "the {mean} of {n} numbers is {m} and {k} of them are {L}",
            "{n} numbers have the {mean} {m}; the first {k} are {L}",
            "the {mean} of {L} and another number is {m}",
        )
    ]
    wh = (
        "what is the [last|missing|other] number~what the [last|missing|other] number is",
        "which number is missing~which number is missing",
    )
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
        "older": ("{B} is {y} years older than {A}", f"{a}+{y}", "Older means add.", "{B}"), "younger": ("{B} is {y} years younger than {A}", f"{a}-{y}", "Younger means take away.", "{B}"),
        "times": ("{B} is {times} as old as {A}", f"{a}*{k}", "So many times means multiply.", "{B}"), "future": ("", f"{a}+{y}", "Add the years.", "{A}"), "past": ("", f"{a}-{y}", "Take the years away.", "{A}"),
        "born": ("", f"{2000 + a}-{a}", "Take the age from the year.", "{A}"),
    }[kind]  # fmt: skip
    now = teller.pick("{A} is {a} years old", "{A} is {a}", "{A} has just turned {a}", "{A's} age is {a}")
    if kind == "born":
        slots["year"] = str(2000 + a)
        wh: tuple[str, ...] = (
            "in which year was {A} born~in which year {A} was born",
            "when was {A} born~when {A} was born",
        )
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
        facts = [
            teller.pick(
                "{A} can {job} in {a} and {B} in {b}",
                "{A} needs {a} to {job}, {B} needs {b}",
                "to {job}, {A} takes {a} and {B} takes {b}",
            )
        ]
        wh = (
            "how long do they take [together|if they work together|working together]~how long they take together",
            "how many {u} do both need together~how many {u} both need together",
            "in what time is it done if both work~in what time it is done if both work",
        )
        return problem(
            teller,
            Ask(facts, wh, ("the time [both need together|for both together]", "the time when they work together")),
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
    facts = [
        teller.pick(
            "{n} {W} need {a} [for a job|to {job}]", "{n} {W} [finish|do] a job in {a}", "a job takes {n} {W} {a}"
        )
    ]
    wh = (
        "how long do {m} {W} need~how long {m} {W} need",
        "how many {u} [would|do] {m} {W} take~how many {u} {m} {W} take",
        "how long does it take with {m}~how long it takes with {m}",
    )
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
        teller.pick(
            "a recipe [of|for] {dish} for {n} {for} [needs|takes|uses|asks for] {a}",
            "for {n} {for} one needs {a}",
            "{dish} for {n} {for} takes {a}",
            "{a} [is|are] enough for {n} {for}".replace("[is|are]", "are"),
        ),
    ]
    wh = (
        "how [many|much] {u} [are|is] needed for {m} [{for}|]~how many {u} are needed for {m}".replace(
            "[many|much]", "many"
        ).replace("[are|is]", "are"),
        "how many {u} do {m} {for} need~how many {u} {m} {for} need",
        "what does one need for {m}~what one needs for {m}",
    )
    whole = ("if {n} {for} need {a}, how many {u} do {m} need?", "{a} for {n} {for}; how many for {m}?")
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
    stuff = teller.pick(
        "salt",
        "sugar",
        "salt",
        "acid",
        "alcohol",
        "syrup",
        "honey",
        "glucose",
        "copper sulfate",
        "soda",
        "dye",
        "fertiliser",
    )
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
        facts = [
            teller.pick(
                "{s} of {X} are [dissolved|stirred] in {w} of water",
                "{w} of water and {s} of {X} are mixed",
                "a solution [is made of|contains] {s} of {X} and {w} of water",
            )
        ]
        wh = (
            "what is the [mass percentage|percentage by mass|mass percent|concentration in percent] of [the {X}|{X}]~what the percentage of {X} is",
            "how many percent of the solution [are|is] {X}~how many percent of the solution is {X}".replace(
                "[are|is]", "is"
            ),
        )
        return problem(
            teller,
            Ask(facts, wh, ("the [mass percentage|percentage|share in percent] of {X}", "the percent by mass of {X}")),
            slots,
            ("The part over the whole mass, in percent.", percent(f"{salt}/({salt}+{water})*100")),
            "%",
        )
    if kind == "content":
        facts = [
            teller.pick(
                "a {r} solution of {X} has a mass of {w}",
                "there are {w} of a {r} solution of {X}",
                "a [jar|flask|bottle] holds {w} of {X} solution with {r} of {X}",
            )
        ]
        wh = (
            "how [much|many grams of] {X} [is|does it] contain~how much {X} it contains".replace(
                "[is|does it] contain", "does it contain"
            ),
            "how many grams of {X} are in it~how many grams of {X} are in it",
            "what mass of {X} is [in it|dissolved]~what mass of {X} is in it",
        )
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
        facts = [
            teller.pick(
                "{v} of a {c} {sol} [is|are] [diluted|filled up|made up] to {V}".replace("[is|are]", "are"),
                "{v} of {c} {X} {sol} [are|get] diluted [with water |]to [a volume of |]{V}",
                "water is added to {v} of a {c} {sol} until there are {V}",
            )
        ]
        wh = (
            "what is the [new|final|resulting] [concentration|molarity]~what the [new|final] concentration is",
            "how [strong|concentrated] is it [then|now]~how concentrated it is then",
            "what molarity results~what molarity results",
        )
        return problem(
            teller,
            Ask(facts, wh, ("the [new|final] [concentration|molarity]", "the concentration after dilution")),
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
        facts = [
            teller.pick(
                "{v} of a {c} {sol} are mixed with {V} of a {d} one",
                "{v} of {c} {X} and {V} of {d} {X} are [poured together|mixed|combined]",
            )
        ]
        wh = (
            "what is the [final|resulting] concentration~what the final concentration is",
            "what concentration [results|does the mixture have]~what concentration results",
        )
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
    facts = [
        teller.pick(
            "{a} of water at {t} and {b} of water at {u} are mixed",
            "{a} of cold water ({t}) are poured into {b} of hot water ({u})",
        )
    ]
    wh = (
        "what is the temperature [of the mixture|then|in the end]~what the temperature is [then|in the end]",
        "how warm is the mixture~how warm the mixture is",
        "what temperature [results|does it get]~what temperature results",
    )
    return problem(
        teller,
        Ask(facts, wh, ("the temperature of the mixture", "the final temperature")),
        slots,
        ("The mean, by how much there is of each.", f"({v}*{t}+{water}*{u})/({v}+{water})"),
        "°C",
    )
