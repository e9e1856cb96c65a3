"""Ratios, averages, ages, work done together, recipes and mixtures."""

from dataclasses import replace

from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, noun, person, subject
from training.builtin.quantities.working import Problem, percent, problem

__all__ = ["age", "average", "mixture", "ratio", "recipe", "working"]

SAID = wordings("parts")

JOBS = "[paint a fence|dig a ditch|clean the hall|build a wall|mow the meadow|pack the order|sort the letters|fold the leaflets|weed the garden|type a report|pick the orchard]"
WORKERS = "[workers|men|machines|pumps|painters|people|robots|cooks]"
SHARE = "[%| %|%| percent| per cent|%]"


def ratio(teller: Teller) -> Problem:
    """Share a total in a ratio, or ask for one part from the other."""
    a, b, k = teller.whole(1, 9), teller.whole(1, 9), teller.whole(2, 40)
    b = b + 1 if a == b else b
    first = teller.chance(0.5)
    mine, other = (a, b) if first else (b, a)
    slots: dict[str, str | Thing] = {"R": teller.pick("{}:{}", "{} : {}", "{} to {}", "{}:{}").format(a, b)}
    if teller.chance(0.65):
        one, two = person(teller).name, person(teller).name
        two = two if one != two else "Zed"
        thing = SAID.pick(teller, "ratio thing") if teller.chance(0.6) else noun(teller)
        total = k * (a + b) if teller.chance(0.85) else teller.whole(20, 500)
        slots |= {"A": one, "B": two, "N": thing, "W": one if first else two, "T": teller.measure(total)}
        work = ("The whole by all parts, times the own parts.", f"{total}/({a}+{b})*{mine}")
        return Problem(teller.ask(SAID.ask(teller, "ratio"), slots), (work,), thing, tuple(thing.split()))
    x, y = goods(teller, bulk=True), goods(teller, bulk=True)
    unit = teller.pick("cups", "kg", "litres", "g", "parts", "spoons", "buckets", "bags")
    slots |= {"X": x, "Y": y, "K": teller.measure(other * k), "Z": x if first else y, "O": y if first else x, "u": unit}
    work = ("One part, times the parts asked for.", f"{other * k}/{other}*{mine}")
    return problem(teller, SAID.ask(teller, "mixed", loose=False), slots, work, unit)


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
    """Ask for the mean of some numbers, or for the number that makes the mean."""
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
    """Ask for an age now, in the past or in the future."""
    a, k, y = teller.whole(6, 70), teller.whole(2, 5), teller.whole(2, 30)
    kind = teller.random.choice(("older", "younger", "times", "future", "past", "born"))
    y = min(y, a - 2) if kind in ("younger", "past") else y
    one, two = person(teller).name, person(teller).name
    if two == one or teller.chance(0.4):
        two = teller.say(f"{one}'s [brother|sister|cousin|friend|uncle|aunt|neighbour|father|mother|dog]")
    times = {2: "[twice|two times|double]", 3: "[three times|thrice]"}.get(k, f"{teller.measure(k)} times")
    slots = {
        "A": one,
        "B": two,
        "W": two,
        "a": teller.measure(a),
        "y": teller.measure(y),
        "times": times,
        "year": str(2000 + a),
    }
    fact, expression, says = {
        "older": ("{B} is {y} years older than {A}", f"{a}+{y}", "Older means add."),
        "younger": ("{B} is {y} years younger than {A}", f"{a}-{y}", "Younger means take away."),
        "times": ("{B} is {times} as old as {A}", f"{a}*{k}", "So many times means multiply."),
        "future": ("", f"{a}+{y}", "Add the years."),
        "past": ("", f"{a}-{y}", "Take the years away."),
        "born": ("", f"{2000 + a}-{a}", "Take the age from the year."),
    }[kind]
    ask = SAID.ask(teller, "other" if fact else kind, loose=False)
    ask = replace(ask, facts=(*ask.facts, fact)) if fact else ask
    return problem(teller, ask, slots, (says, expression), "" if kind == "born" else "years")


def working(teller: Teller) -> Problem:
    """Ask about joint work, or another number of workers."""
    unit = teller.pick("hours", "hours", "days", "minutes")
    a, b, n, m = teller.whole(2, 30), teller.whole(2, 30), teller.whole(2, 12), teller.whole(2, 16)
    slots = {
        "A": person(teller).name,
        "B": person(teller).name,
        "job": teller.say(JOBS).lower(),
        "u": unit,
        "W": teller.say(WORKERS).lower(),
    }
    slots |= {
        "a": f"{teller.measure(a)} {unit}",
        "b": f"{teller.measure(b)} {unit}",
        "n": teller.measure(n),
        "m": teller.measure(m),
    }
    if teller.chance(0.5):
        if teller.chance(0.4):
            slots |= {"A": "one [pipe|pump|tap|hose]", "B": "another [one|]", "job": "fill the [tank|pool|basin|pond]"}
        work = ("The rates are added; the time is one over the rate.", f"1/(1/{a}+1/{b})")
        return problem(teller, SAID.ask(teller, "together"), slots, work, unit)
    work = ("The work is workers times time; divide it by the workers.", f"{n}*{a}/{m}")
    return problem(teller, SAID.ask(teller, "workers"), slots, work, unit)


def recipe(teller: Teller) -> Problem:
    """Scale a recipe."""
    n, m = teller.whole(2, 12), teller.whole(2, 30)
    what, unit = (
        goods(teller, bulk=True),
        teller.pick(*SAID["recipe parts"]),
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
        Ask(facts, wh, SAID["recipe part"], whole),
        slots,
        ("For one, times the number.", f"{amount}/{n}*{m}"),
        unit,
    )


def mixture(teller: Teller) -> Problem:
    """Ask about dissolving, diluting and mixing: mass fractions, c1V1 = c2V2, and mixtures of two."""
    kind = teller.random.choice(("share", "content", "dilute", "volume", "mix", "warm"))
    salt, water = str(teller.whole(2, 90)), str(teller.whole(20, 900, 10))
    c = str(teller.whole(2, 18)) if teller.chance(0.7) else teller.decimal(0.5, 12)
    v, d, low, r = teller.whole(10, 500, 5), teller.whole(1, 20), teller.decimal(0.1, 1.9), teller.whole(2, 60)
    w = v + teller.whole(20, 900, 10)
    unit, weight = teller.pick("mL", "mL", "ml", "L"), teller.pick("g", "kg", "L", "litres")
    t, u = teller.whole(2, 40), teller.whole(41, 98)
    slots = {
        "s": f"{salt} g",
        "w": f"{water} g",
        "X": SAID.pick(teller, "mixture stuff"),
        "v": f"{v} {unit}",
        "V": f"{w} {unit}",
    }
    slots |= {letter: f"{number} [M|mol/L|M|molar]" for letter, number in (("c", c), ("d", d), ("l", low))}
    slots |= {
        "r": f"{r}{SHARE}",
        "sol": "[solution|solution|stock|sample]",
        "u": unit,
        "a": f"{v} {weight}",
        "b": f"{water} {weight}",
    }
    says, expression, answer = {
        "share": ("The part over the whole mass, in percent.", percent(f"{salt}/({salt}+{water})*100"), "%"),
        "content": ("The share of the mass.", f"{water}*{r}/100", "g"),
        "dilute": ("Concentration times volume stays the same.", f"{c}*{v}/{w}", "mol/L"),
        "volume": ("Concentration times volume stays the same.", f"{low}*{w}/{c}", unit),
        "mix": ("All moles over all volume.", f"({c}*{v}+{d}*{w})/({v}+{w})", "mol/L"),
        "warm": ("The mean, by how much there is of each.", f"({v}*{t}+{water}*{u})/({v}+{water})", "°C"),
    }[kind]
    if kind == "warm":
        slots |= {"t": f"{t} [°C|degrees]", "u": f"{u} [°C|degrees]"}
    return problem(teller, SAID.ask(teller, kind), slots, (says, expression), answer)
