"""Percentages and fractions: parts, shares, wholes and changes."""

from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import goods, noun, subject
from training.builtin.quantities.working import Problem, percent, problem

__all__ = ["fraction", "percent_change", "percent_of", "percent_share", "whole_of_percent"]

SAID = wordings("parts")
SHARE = "[%| %|%| percent| per cent|%]"
GROUP = "[pupils|students|people|members|guests|workers|voters|players|passengers|teachers|visitors|children|cars|trees|books|houses|tickets|questions|apples|animals|seats|letters]"
WHAT_CHANGES = """[the price of a {X}|the rent|the population of a village|the number of members|the weight of a calf|the level of a lake|
the output of a factory|the number of visitors|a wage|the height of a tree|the length of a queue|the mass of a sample|the bill|a score]"""
RISING = {
    "verb": "[rises|grows|goes up|increases|climbs]",
    "sort": "[increase|rise|growth|change]",
    "do": "[increase|raise|increase]",
    "did": "[rose|grew]",
    "done": "[increased|raised]",
    "sign": "plus",
}
FALLING = {
    "verb": "[falls|drops|goes down|decreases|sinks]",
    "sort": "[decrease|fall|drop|reduction]",
    "do": "[decrease|reduce|lower]",
    "did": "[fell|dropped]",
    "done": "[decreased|reduced|lowered]",
    "sign": "minus",
}
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
    """Ask for a percentage of a number of people or things, or for the rest."""
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
            teller.ask(Ask(facts, wh, SAID["percent_of part2"], whole_q), slots),
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
    """Ask what percentage one number is of another."""
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
    """Ask for a percentage change, or for the new value."""
    a, r = teller.whole(5, 900), teller.whole(1, 90)
    up = teller.chance(0.6)
    b = a + teller.whole(1, a) if up else a - teller.whole(1, a - 1)
    what = teller.say(WHAT_CHANGES, {"X": goods(teller)})
    slots: dict[str, str | Thing] = {
        "a": teller.measure(a),
        "b": teller.measure(b),
        "r": f"{r}{SHARE}",
        "what": what[0].lower() + what[1:],
    }
    slots |= RISING if up else FALLING
    if teller.chance(0.55):
        high, low = (b, a) if up else (a, b)
        work = ("The change over the old value, in percent.", percent(f"({high}-{low})/{a}*100"))
        return problem(teller, SAID.ask(teller, "grown"), slots, work, "%")
    work = ("Add the share." if up else "Take the share off.", f"{a}*(100{'+' if up else '-'}{r})/100")
    return problem(teller, SAID.ask(teller, "changed"), slots, work)


def whole_of_percent(teller: Teller) -> Problem:
    """Ask for the whole from a part and its percentage."""
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
    """Ask for a fraction of things or of a measure, or for the rest."""
    said, number = teller.random.choice(list(FRACTIONS.items()))
    above, below = number.split("/")
    whole = str(teller.whole(2, 60) * int(below))
    unit = teller.pick(*SAID["fraction unit"]) if teller.chance(0.4) else noun(teller)
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
        teller.ask(Ask(facts, wh, SAID["fraction part"]), slots),
        (("The whole less the part.", f"{whole}-{whole}*{above}/{below}"),),
        unit,
        tuple(unit.split()),
    )
