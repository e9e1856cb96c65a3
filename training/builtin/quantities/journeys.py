"""Average speed, boats in a current, sound and light, wheels, and trips of several legs."""

from training.builtin.quantities.speed import UNITS, length, mover, pace, period, unit_name
from training.builtin.quantities.telling import FIND, Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import person, place
from training.builtin.quantities.working import Problem, problem

__all__ = ["average_speed", "current", "echo", "legs", "turning"]

SAID = wordings("journeys")

BOAT = "[boat|rowing boat|motorboat|canoe|ferry|swimmer|kayak|steamer|raft with a motor|duck|fish|plane]"


def average_speed(teller: Teller) -> Problem:
    """All the way over all the time; or there and back at two speeds."""
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
    """A boat with and against the water."""
    v, w, t = teller.whole(6, 40), teller.whole(1, 5), teller.whole(2, 8)
    down = teller.chance(0.5)
    boat = teller.say(BOAT).lower()
    wind = boat == "plane"
    v, w = (v * 10, w * 10) if wind else (v, w)
    slots: dict[str, str | Thing] = {
        "S": Thing(f"a {boat}", ("it", f"the {boat}")),
        "v": pace(teller, v, "km/h").said,
        "w": pace(teller, w, "km/h").said,
        "t": period(teller, t, "h").said,
        "river": "wind" if wind else "[current|stream|river|water]",
        "still": "[still air|calm air]" if wind else "[still water|calm water]",
        "way": ("[with|before] the wind" if wind else "[downstream|with the current|down the river]")
        if down
        else ("against the wind" if wind else "[upstream|against the current|up the river]"),
        "blows": "[blows|moves]" if wind else "[flows|runs|moves]",
    }
    sign = "+" if down else "-"
    says = "With the stream the speeds are added." if down else "Against the stream its speed is taken away."
    if teller.chance(0.25):
        d, u = v + w, v - w
        slots |= {"d": pace(teller, d, "km/h").said, "u": pace(teller, u, "km/h").said}
        facts = (
            [teller.pick(*SAID["current facts"])] if not wind else ["{S} flies at {d} with the wind and {u} against it"]
        )
        if teller.chance(0.5):
            wh: tuple[str, ...] = SAID["current wh"]
            return problem(
                teller,
                Ask(facts, wh, ("the speed in {still}", "its own speed")),
                slots,
                ("The own speed is the mean of both.", f"({d}+{u})/2"),
                "km/h",
            )
        wh = SAID["current wh2"]
        return problem(
            teller,
            Ask(facts, wh, ("the speed of the {river}",)),
            slots,
            ("The stream is half of the difference.", f"({d}-{u})/2"),
            "km/h",
        )
    facts = [teller.pick(*SAID["current facts2"])]
    kind = teller.random.choice(("speed", "distance", "time"))
    if kind == "speed":
        wh = SAID["current wh3"]
        return problem(teller, Ask(facts, wh, ("the speed {way}",)), slots, (says, f"{v}{sign}{w}"), "km/h")
    if kind == "distance":
        wh = SAID["current wh4"]
        return problem(
            teller, Ask(facts, wh, ("the distance {way} in {t}",)), slots, (says, f"({v}{sign}{w})*{t}"), "km"
        )
    d = (v + w if down else v - w) * t
    slots["d"] = length(teller, d, "km").said
    wh = SAID["current wh5"]
    return problem(teller, Ask(facts, wh, ("the time for {d} {way}",)), slots, (says, f"{d}/({v}{sign}{w})"), "h")


def echo(teller: Teller) -> Problem:
    """Sound and light: thunder, echoes, signals."""
    t = str(teller.whole(2, 20)) if teller.chance(0.6) else teller.decimal(0.3, 9)
    c, unit, size = teller.random.choice(
        (
            ("340", "m/s", "sound"),
            ("330", "m/s", "sound"),
            ("343", "m/s", "sound"),
            ("1500", "m/s", "sonar"),
            ("300000", "km/s", "light"),
            ("1480", "m/s", "sonar"),
        )
    )
    du = "m" if unit == "m/s" else "km"
    who = person(teller).name
    slots: dict[str, str | Thing] = {
        "S": who,
        "t": f"{t} {UNITS['s']}",
        "c": f"{c} {unit}" if size != "light" or teller.chance(0.5) else f"300,000 {unit}",
        "medium": "in water" if size == "sonar" else "in air" if size == "sound" else "in space",
        "X": "sound" if size != "light" else "light",
    }
    back = (size != "light" and teller.chance(0.5)) or size == "sonar"
    speed = teller.pick(*SAID["echo speed"])
    if back:
        fact = teller.pick(*SAID["echo fact"])
        wh: tuple[str, ...] = SAID["echo wh"]
        return problem(
            teller,
            Ask([fact, speed], wh, ("the distance [to the obstacle|to it]",)),
            slots,
            ("There and back: half of speed times time.", f"{c}*{t}/2"),
            du,
        )
    if size == "sound":
        fact = teller.pick(*SAID["echo fact2"])
        wh = SAID["echo wh2"]
    else:
        fact = teller.pick(*SAID["echo fact3"])
        wh = SAID["echo wh3"]
    return problem(
        teller,
        Ask([fact, speed], wh, ("the distance", "the distance to it")),
        slots,
        ("Distance is speed times time.", f"{c}*{t}"),
        du,
    )


def legs(teller: Teller) -> Problem:
    """Two or three parts of a way, each at its own speed; or a part that is still to go."""
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
    """Wheels and laps: how far so many rounds are, and how many rounds so far are."""
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
