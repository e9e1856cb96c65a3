"""Average speed, boats in a current, sound and light, wheels, and trips of several legs."""

from training.builtin.quantities.speed import UNITS, length, mover, pace, period, unit_name
from training.builtin.quantities.telling import FIND, Ask, Teller, Thing
from training.builtin.quantities.words import person, place
from training.builtin.quantities.working import Problem, problem

__all__ = ["average_speed", "current", "echo", "legs", "turning"]

BOAT = "[boat|rowing boat|motorboat|canoe|ferry|swimmer|kayak|steamer|raft with a motor|duck|fish|plane]"


def average_speed(teller: Teller) -> Problem:
    """All the way over all the time; or there and back at two speeds."""
    who = mover(teller, "car", "bike", "run")
    vu = teller.pick("km/h", "km/h", "mph")
    du = "km" if vu == "km/h" else "miles"
    ask_wh = (
        "what is {S's} average speed [for the whole trip|]~what {S's} average speed is",
        "what is the average speed~what the average speed is",
        "how fast is {S} on average~how fast {S} is on average",
        "what speed [is that|does {S} have] on average~what speed that is on average",
    )
    ask_np = (
        "the average speed",
        "the average speed of {S}",
        "the average speed [for|over|on] the [whole|entire] [trip|way|journey]",
        "the mean speed",
    )
    named = unit_name(teller, vu) if teller.chance(0.3) else ""
    if teller.chance(0.55):
        d, e, t, u = (teller.whole(10, 200, 5), teller.whole(10, 200, 5), teller.whole(1, 6), teller.whole(1, 6))
        slots = who.slots(
            d=length(teller, d, du).said,
            e=length(teller, e, du).said,
            t=period(teller, t, "h").said,
            u=period(teller, u, "h").said,
        )
        facts = [teller.pick(
            "{S} {goes} {d} in {t} and then {e} in {u}", "first {S} {goes} {d} in {t}, [then|after that|after a break] {e} in {u}", "{S} {went} {d} in {t} and another {e} in {u}", "{S} needs {t} for {d} and {u} for the next {e}",
            "on the first day {S} {goes} {d} in {t}, on the second {e} in {u}",
        )]  # fmt: skip
        return problem(
            teller,
            Ask(facts, ask_wh, ask_np, unit=named),
            slots,
            ("All the way divided by all the time.", f"({d}+{e})/({t}+{u})"),
            vu,
        )
    v, w = teller.whole(4, 100, 2), teller.whole(4, 100, 2)
    slots = who.slots(v=pace(teller, v, vu).said, w=pace(teller, w, vu).said, P=place(teller))
    facts = [teller.pick(
        "{S} {goes} to {P} at {v} and [comes back|returns] the same way at {w}", "{S} {goes} [half of the distance|the first half of the way] at {v} and the [other|second] half at {w}", "there {S} {goes} at {v}, back at {w}",
        "{S} {went} from home to {P} at {v} and back at {w}",
    )]  # fmt: skip
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
        "S": Thing(f"a {boat}", ("it", f"the {boat}")), "v": pace(teller, v, "km/h").said, "w": pace(teller, w, "km/h").said, "t": period(teller, t, "h").said,
        "river": "wind" if wind else "[current|stream|river|water]", "still": "[still air|calm air]" if wind else "[still water|calm water]", "way": ("[with|before] the wind" if wind else "[downstream|with the current|down the river]") if down else ("against the wind" if wind else "[upstream|against the current|up the river]"),
        "blows": "[blows|moves]" if wind else "[flows|runs|moves]",
    }  # fmt: skip
    sign = "+" if down else "-"
    says = "With the stream the speeds are added." if down else "Against the stream its speed is taken away."
    if teller.chance(0.25):
        d, u = v + w, v - w
        slots |= {"d": pace(teller, d, "km/h").said, "u": pace(teller, u, "km/h").said}
        facts = (
            [
                teller.pick(
                    "{S} goes at {d} downstream and {u} upstream", "with the current {S} makes {d}, against it {u}"
                )
            ]
            if not wind
            else ["{S} flies at {d} with the wind and {u} against it"]
        )
        if teller.chance(0.5):
            wh: tuple[str, ...] = (
                "how fast is {S} in {still}~how fast {S} is in {still}",
                "what is its speed in {still}~what its speed in {still} is",
            )
            return problem(
                teller,
                Ask(facts, wh, ("the speed in {still}", "its own speed")),
                slots,
                ("The own speed is the mean of both.", f"({d}+{u})/2"),
                "km/h",
            )
        wh = (
            "how fast [{blows} the {river}|is the {river}]~how fast the {river} is".replace(
                "[{blows} the {river}|is the {river}]", "is the {river}"
            ),
            "what is the speed of the {river}~what the speed of the {river} is",
        )
        return problem(
            teller,
            Ask(facts, wh, ("the speed of the {river}",)),
            slots,
            ("The stream is half of the difference.", f"({d}-{u})/2"),
            "km/h",
        )
    facts = [
        teller.pick(
            "{S} moves at {v} in {still} and the {river} {blows} at {w}",
            "the speed of {S} in {still} is {v}, that of the {river} {w}",
            "{S} makes {v} in {still}; the {river} has a speed of {w}",
        )
    ]
    kind = teller.random.choice(("speed", "distance", "time"))
    if kind == "speed":
        wh = (
            "how fast [is {S}|does {S} go] {way}~how fast {S} goes {way}",
            "what is the speed {way}~what the speed {way} is",
        )
        return problem(teller, Ask(facts, wh, ("the speed {way}",)), slots, (says, f"{v}{sign}{w}"), "km/h")
    if kind == "distance":
        wh = (
            "how far does {S} go {way} in {t}~how far {S} goes {way} in {t}",
            "what distance [is covered|does {S} make] {way} in {t}~what distance is covered {way} in {t}",
        )
        return problem(
            teller, Ask(facts, wh, ("the distance {way} in {t}",)), slots, (says, f"({v}{sign}{w})*{t}"), "km"
        )
    d = (v + w if down else v - w) * t
    slots["d"] = length(teller, d, "km").said
    wh = (
        "how long does it take to go {d} {way}~how long it takes to go {d} {way}",
        "how long does {S} need for {d} {way}~how long {S} needs for {d} {way}",
    )
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
    speed = teller.pick(
        "{X} [travels|moves] at {c} [{medium}|]", "the speed of {X} [{medium}|] is {c}", "{X} goes {c} {medium}"
    )
    if back:
        fact = teller.pick(
            "the echo comes back [to {S}|] after {t}",
            "{S} [shouts at a cliff|claps before a wall|sends a pulse down] and hears the echo {t} later",
            "a signal returns after {t}",
        )
        wh: tuple[str, ...] = (
            "how far away is the [wall|cliff|bottom|obstacle]~how far away the obstacle is",
            "what is the distance [to it|to what throws it back]~what the distance to it is",
            "how far off is it~how far off it is",
        )
        return problem(
            teller,
            Ask([fact, speed], wh, ("the distance [to the obstacle|to it]",)),
            slots,
            ("There and back: half of speed times time.", f"{c}*{t}/2"),
            du,
        )
    if size == "sound":
        fact = teller.pick(
            "{S} sees [lightning|a flash] and hears [the thunder|the bang] {t} later",
            "[thunder|the noise of an explosion|the sound of a gun] [is heard|arrives] {t} after the flash",
            "{t} pass between the flash and the thunder",
        )
        wh = (
            "how far away is the [storm|flash|lightning]~how far away it is",
            "what is the distance to [the storm|it]~what the distance to it is",
        )
    else:
        fact = teller.pick(
            "a signal needs {t} from a [probe|star|planet|satellite]",
            "light from a planet arrives after {t}",
            "{S} gets an answer from a probe, which was {t} under way",
        )
        wh = (
            "how far away is it~how far away it is",
            "what distance [is that|does the light cover]~what distance that is",
        )
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
        facts = [teller.pick(
            "{S} {goes} at {v} for {t} and then at {w} for {u}", "for {t} {S} {goes} at {v}, and for the next {u} at {w}", "{S} {goes} {t} at {v} and {u} at {w}", "after {t} at {v}, {S} {goes} on at {w} for {u} more",
        )]  # fmt: skip
        wh = (
            "how far does {S} {go} [in all|altogether|]~how far {S} {goes} [in all|altogether|]",
            "what is the [total|whole] distance~what the total distance is",
            "how far is [it|that] [in all|altogether]~how far it is in all",
        )
        return problem(
            teller,
            Ask(facts, wh, ("the [total|whole] distance", "the length of the whole way")),
            slots,
            ("Each part is speed times time; add them.", f"{v}*{t}+{w}*{u}"),
            du,
        )
    rest = teller.whole(5, 90)
    d = v * t + rest
    slots = {**slots, "d": length(teller, d, du).said}
    facts = [
        teller.pick(
            "{S} has to {go} {d} and {goes} at {v} for {t}",
            "the way is {d}; {S} has been {going} at {v} for {t}",
            "{S} {goes} {t} at {v} on a way of {d}",
        )
    ]
    wh = (
        "how far [is left|is still to go|does {S} still have to {go}]~how far is still to go",
        "what distance remains~what distance remains",
        "how much of the way is left~how much of the way is left",
    )
    return problem(
        teller,
        Ask(facts, wh, ("the remaining distance", "the distance [left|still to go]")),
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
    around = teller.pick("one {X} around {track} is {l}", "a {X} of {track} has {l}", "the way around {track} is {l}")
    if teller.chance(0.6):
        facts = [around, "{S} {goes} {n} {X}s".replace("{X}", "[lap|round|circuit]")]
        wh = ("how far does {S} {go}~how far {S} {goes}", "what distance is that~what distance that is")
        return problem(
            teller,
            Ask(facts, wh, ("the distance", "the whole distance")),
            slots,
            ("One round times the number of rounds.", f"{lap}*{n}"),
            "m",
        )
    facts = [around, "{S} [wants|has] to {go} {d}"]
    wh = (
        "how many {X}s are [that|needed]~how many {X}s are needed",
        "how many {X}s must {S} {go}~how many {X}s {S} must {go}",
    )
    return problem(
        teller,
        Ask(facts, wh, ("the number of {X}s", "the {X}s needed")),
        slots,
        ("The distance divided by one round.", f"{lap * n}/{lap}"),
    )
