"""Journeys: average speed, boats in a current, sound and light, wheels, and trips of several legs."""

from training.builtin.quantities.speed import UNITS, length, mover, pace, period, unit_name
from training.builtin.quantities.telling import FIND, Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import person, place
from training.builtin.quantities.working import Problem, problem

__all__ = ["average_speed", "current", "echo", "legs", "turning"]

SAID = wordings("journeys")
WATER = {
    "river": "[current|stream|river|water]",
    "still": "[still water|calm water]",
    "blows": "[flows|runs|moves]",
    "down": "[downstream|with the current|down the river]",
    "up": "[upstream|against the current|up the river]",
}
AIR = {
    "river": "wind",
    "still": "[still air|calm air]",
    "blows": "[blows|moves]",
    "down": "[with|before] the wind",
    "up": "against the wind",
}

BOAT = "[boat|rowing boat|motorboat|canoe|ferry|swimmer|kayak|steamer|raft with a motor|duck|fish|plane]"


def average_speed(teller: Teller) -> Problem:
    """Ask for an average speed: total distance over total time, or a round trip at two speeds."""
    who = mover(teller, "car", "bike", "run")
    vu = teller.pick("km/h", "km/h", "mph")
    du = "km" if vu == "km/h" else "miles"
    ask_wh = SAID["average_speed ask_wh"]
    ask_np = SAID["average_speed ask_np"]
    named = unit_name(teller, vu) if teller.chance(0.3) else ""
    if teller.chance(0.55):
        d, e, t, u = (teller.whole(10, 200, 5), teller.whole(10, 200, 5), teller.whole(1, 6), teller.whole(1, 6))
        slots = who.slots(
            d=length(teller, d, du).said,
            e=length(teller, e, du).said,
            t=period(teller, t, "h").said,
            u=period(teller, u, "h").said,
        )
        facts = [teller.pick(*SAID["average_speed facts"])]
        return problem(
            teller,
            Ask(facts, ask_wh, ask_np, unit=named),
            slots,
            ("All the way divided by all the time.", f"({d}+{e})/({t}+{u})"),
            vu,
        )
    v, w = teller.whole(4, 100, 2), teller.whole(4, 100, 2)
    slots = who.slots(v=pace(teller, v, vu).said, w=pace(teller, w, vu).said, P=place(teller))
    facts = [teller.pick(*SAID["average_speed facts2"])]
    return problem(
        teller,
        Ask(facts, ask_wh, ask_np, unit=named),
        slots,
        ("Equal ways: twice the product over the sum.", f"2*{v}*{w}/({v}+{w})"),
        vu,
    )


def current(teller: Teller) -> Problem:
    """Ask about a boat in a current, or a plane in the wind."""
    boat = teller.say(BOAT).lower()
    wind, down = boat == "plane", teller.chance(0.5)
    size = 10 if wind else 1
    v, w, t = teller.whole(6, 40) * size, teller.whole(1, 5) * size, teller.whole(2, 8)
    d = (v + w if down else v - w) * t
    kind = teller.random.choices(("own", "stream", "quick", "far", "long"), (1, 1, 2, 2, 2))[0]
    mean = kind in ("own", "stream")
    slots: dict[str, str | Thing] = {"S": Thing(f"a {boat}", ("it", f"the {boat}")), **(AIR if wind else WATER)}
    slots |= {
        "way": str(slots["down" if down else "up"]),
        "v": pace(teller, v, "km/h").said,
        "w": pace(teller, w, "km/h").said,
    }
    slots["d"] = pace(teller, v + w, "km/h").said if mean else length(teller, d, "km").said
    slots |= {"u": pace(teller, v - w, "km/h").said, "t": period(teller, t, "h").said}
    sign = "+" if down else "-"
    swept = "With the stream the speeds are added." if down else "Against the stream its speed is taken away."
    says, expression, unit = {
        "own": ("The own speed is the mean of both.", f"({v + w}+{v - w})/2", "km/h"),
        "stream": ("The stream is half of the difference.", f"({v + w}-{v - w})/2", "km/h"),
        "quick": (swept, f"{v}{sign}{w}", "km/h"),
        "far": (swept, f"({v}{sign}{w})*{t}", "km"),
        "long": (swept, f"{d}/({v}{sign}{w})", "h"),
    }[kind]
    return problem(teller, SAID.ask(teller, kind + " wind" * (wind and mean)), slots, (says, expression), unit)


def echo(teller: Teller) -> Problem:
    """Ask about sound and light: thunder, echoes, signals."""
    t = str(teller.whole(2, 20)) if teller.chance(0.6) else teller.decimal(0.3, 9)
    kind = teller.random.choice(("back", "back", "thunder", "thunder", "signal"))
    medium = "in space" if kind == "signal" else "in water" if kind == "back" and teller.chance(0.5) else "in air"
    c = {"in air": teller.pick("340", "330", "343"), "in water": teller.pick("1500", "1480"), "in space": "300000"}[
        medium
    ]
    unit, du = ("km/s", "km") if kind == "signal" else ("m/s", "m")
    slots: dict[str, str | Thing] = {
        "S": person(teller).name,
        "t": f"{t} {UNITS['s']}",
        "c": f"{teller.measure(c)} {unit}",
    }
    slots |= {"medium": medium, "X": "light" if kind == "signal" else "sound"}
    if kind == "back":
        work = ("There and back: half of speed times time.", f"{c}*{t}/2")
    else:
        work = ("Distance is speed times time.", f"{c}*{t}")
    return problem(teller, SAID.ask(teller, kind), slots, work, du)


def legs(teller: Teller) -> Problem:
    """Ask about two or three legs with different speeds, or the remaining leg."""
    who = mover(teller, "car", "bike", "run")
    vu, du = teller.random.choice((("km/h", "km"), ("km/h", "km"), ("mph", "miles"), ("m/s", "m")))
    tu = "s" if vu == "m/s" else "h"
    v, w, t, u = teller.whole(4, 90), teller.whole(4, 90), teller.whole(2, 9), teller.whole(2, 9)
    slots = who.slots(
        v=pace(teller, v, vu).said,
        w=pace(teller, w, vu).said,
        t=period(teller, t, tu).said,
        u=period(teller, u, tu).said,
        FIND=FIND,
    )
    if teller.chance(0.6):
        facts = [teller.pick(*SAID["legs facts"])]
        wh = SAID["legs wh"]
        return problem(
            teller,
            Ask(facts, wh, SAID["legs part"]),
            slots,
            ("Each part is speed times time; add them.", f"{v}*{t}+{w}*{u}"),
            du,
        )
    rest = teller.whole(5, 90)
    d = v * t + rest
    slots = {**slots, "d": length(teller, d, du).said}
    facts = [teller.pick(*SAID["legs facts2"])]
    wh = SAID["legs wh2"]
    return problem(
        teller,
        Ask(facts, wh, SAID["legs part2"]),
        slots,
        ("The whole way less speed times time.", f"{d}-{v}*{t}"),
        du,
    )


def turning(teller: Teller) -> Problem:
    """Ask about wheels and laps: the distance of some turns, or the number of turns in a distance."""
    lap, n = teller.whole(2, 90, 2) * teller.random.choice((1, 5, 10)), teller.whole(3, 60)
    who = mover(teller, "run", "bike", "walk")
    slots = who.slots(
        l=f"{teller.measure(lap)} {UNITS['m']}",
        n=teller.measure(n),
        d=f"{teller.measure(lap * n)} {UNITS['m']}",
        X="[lap|round|circuit]",
        track="[a track|a field|a park|a pond|a stadium|a block of houses]",
    )
    around = teller.pick(*SAID["turning around"])
    if teller.chance(0.6):
        facts = [around, "{S} {goes} {n} {X}s".replace("{X}", "[lap|round|circuit]")]
        wh = SAID["turning wh"]
        return problem(
            teller,
            Ask(facts, wh, ("the distance", "the whole distance")),
            slots,
            ("One round times the number of rounds.", f"{lap}*{n}"),
            "m",
        )
    facts = [around, "{S} [wants|has] to {go} {d}"]
    wh = SAID["turning wh2"]
    return problem(
        teller,
        Ask(facts, wh, ("the number of {X}s", "the {X}s needed")),
        slots,
        ("The distance divided by one round.", f"{lap * n}/{lap}"),
    )
