"""Trains that pass poles, people, platforms and other trains, and things that meet or catch up."""

from training.builtin.quantities.speed import UNITS, length, mover, pace, period, unit_name
from training.builtin.quantities.telling import Ask, Slots, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import place
from training.builtin.quantities.working import Problem, problem

__all__ = ["meeting", "passing_platform", "passing_point", "passing_train", "passing_walker", "two_crossings"]

SAID = wordings("trains")
WALKERS = "[man|woman|runner|cyclist|jogger|walker|boy|girl|farmer|hiker]"
SAME_WAY = "[in the same direction|the same way|in the direction of the train]"
OTHER_WAY = "[in the opposite direction|the opposite way|from the other side|in the contrary direction]"

POINT = """[a pole|a pole|a man|a man|a signal|a tree|a post|a telegraph pole|a lamp post|a signal post|a standing man|a person|a woman|
a boy on the platform|somebody standing still|a guard|a milestone|a kilometre stone|a stationary observer|a child at the gate|
a porter|a cow beside the track|a sign|a fixed point|a waiting passenger|a bystander|the signalman]"""
PLATFORM = "[platform|platform|bridge|bridge|tunnel|station|viaduct|dam|crossing|culvert|embankment]"
CROSSES = "[crosses|crosses|passes|passes|goes past|rushes past|goes by|runs past|clears|moves past]"
CROSS = "[cross|cross|pass|pass|go past|clear|run past]"
OVER = "[crosses|crosses|passes|passes|goes through|clears|runs over|gets across|travels over]"
OVER_BASE = "[cross|cross|pass|clear|get across|go over]"
GOING = "[travelling|traveling|moving|running|going|running steadily|driving]"
TRAINS = """[train|train|train|train|express|goods train|metro train|freight train|passenger train|local train|tram|express train|
mail train|bullet train|steam train|railcar|monorail]"""


def _train(teller: Teller) -> Thing:
    name = teller.say(TRAINS).lower()
    return Thing(f"[a|a|a|the|one] {name}", ("it", "it", f"the {name}"))


def _speed_and_time(teller: Teller) -> tuple[str, str, str]:
    """Draw a speed, its unit and a time in seconds."""
    unit = teller.random.choices(("km/h", "m/s"), (4, 1))[0]
    if unit == "m/s":
        v = teller.whole(8, 60)
    else:
        v = teller.whole(18, 180, 18) if teller.chance(0.6) else teller.whole(24, 150, teller.random.choice((1, 3, 5)))
    return str(v), unit, str(teller.whole(4, 60)) if teller.chance(0.93) else teller.decimal(3, 30)


def _metres(v: str, unit: str) -> str:
    """Return a speed in metres per second."""
    return f"{v}*5/18" if unit == "km/h" else v


def _below(v: str, unit: str) -> str:
    """Return the same as a divisor."""
    return f"({v}*5/18)" if unit == "km/h" else v


def _slots(teller: Teller, **given: tuple[str, str]) -> dict[str, str | Thing]:
    """Return the slots of measures, each a number with its unit."""
    slots: dict[str, str | Thing] = {}
    for name, (number, unit) in given.items():
        make = pace if "/" in unit else period if unit in ("h", "min", "s") else length
        slots[name] = make(teller, number, unit).said
    return slots


LENGTH_WH = (
    "how long is {S}~how long {S} is",
    "what is the length of {S}~what the length of {S} is",
    "how many metres long is {S}~how many metres long {S} is",
    "what length does {S} have~what length {S} has",
    "how long must {S} be~how long {S} must be",
)
LENGTH_NP = ("the length of {S}", "{S's} length", "the length", "the [total|whole|overall] length of {S}")
TIME_WH = (
    "how long does {S} [take|need] [to {passb} {X}|]~how long {S} [takes|needs] [to {passb} {X}|]",
    "how many seconds does it take [|{S}] to {passb} {X}~how many seconds it takes [|{S}] to {passb} {X}",
    "in [what|how much] time does {S} {passb} {X}~in [what|how much] time {S} {passes} {X}",
    "how much time is needed [|for it|for this]~how much time is needed",
    "how long does it take to {passb} {X}~how long it takes to {passb} {X}",
)
TIME_NP = (
    "the time [|needed |taken |it takes ]to {passb} {X}",
    "the time in which {S} {passes} {X}",
    "the time {S} takes",
    "the time of the crossing",
    "the crossing time",
)
SPEED_WH = (
    "how fast is {S}~how fast {S} is",
    "what is {S's} speed~what {S's} speed is",
    "what is the speed of {S}~what the speed of {S} is",
    "how fast does {S} [go|run|travel|move]~how fast {S} [goes|runs|travels|moves]",
    "at what speed does {S} [run|travel|move|go]~at what speed {S} [runs|travels|moves|goes]",
)
SPEED_NP = ("the speed of {S}", "the speed", "{S's} speed", "the speed at which {S} [runs|travels]", "{S's} velocity")


def passing_point(teller: Teller) -> Problem:
    """Let a train pass something without a length."""
    v, unit, t = _speed_and_time(teller)
    train = _train(teller)
    slots: dict[str, str | Thing] = {
        "S": train,
        "X": Thing(POINT, ("it",)),
        "passes": CROSSES,
        "passb": CROSS,
        "GOING": GOING,
    }
    wanted = teller.pick("length", "length", "speed", "time")
    if wanted == "length":
        facts = (teller.pick(*SAID["passing_point facts"]),)
        slots |= _slots(teller, v=(v, unit), t=(t, "s"))
        ask = Ask(facts, LENGTH_WH, LENGTH_NP, (), (), "[metres|meters|m]" if teller.chance(0.5) else "")
        return Problem(teller.ask(ask, slots), (("Length is speed times time.", f"{_metres(v, unit)}*{t}"),), "m")
    long = (
        str(teller.whole(60, 600, 10))
        if teller.chance(0.6)
        else str(round(int(v) * int(float(t)) * (5 / 18 if unit == "km/h" else 1)))
    )
    if wanted == "time":
        facts = (teller.pick(*SAID["passing_point facts2"]),)
        slots |= _slots(teller, v=(v, unit), L=(long, "m"))
        ask = Ask(facts, TIME_WH, TIME_NP, (), (), "[seconds|s]" if teller.chance(0.3) else "")
        return Problem(
            teller.ask(ask, slots), (("Time is length divided by speed.", f"{long}/{_below(v, unit)}"),), "s"
        )
    facts = (teller.pick(*SAID["passing_point facts3"]),)
    slots |= _slots(teller, t=(t, "s"), L=(long, "m"))
    return _speed_asked(teller, Ask(facts, SPEED_WH, SPEED_NP), slots, f"{long}/{t}")


def _speed_asked(teller: Teller, ask: Ask, slots: Slots, expression: str) -> Problem:
    """Ask for a speed from metres and seconds, in m/s or km/h as the question states."""
    unit = teller.pick("km/h", "m/s")
    named = unit_name(teller, unit) if unit == "km/h" or teller.chance(0.6) else ""
    question = teller.ask(Ask(ask.facts, ask.wh, ask.np, unit=named), slots)
    whole = expression + "*18/5" * (unit == "km/h")
    return Problem(question, (("Speed is distance divided by time.", whole),), unit)


def passing_platform(teller: Teller) -> Problem:
    """Let a train pass something with a length."""
    v, unit, t = _speed_and_time(teller)
    long, far = (
        teller.whole(80, 500, teller.random.choice((5, 10, 1))),
        teller.whole(60, 900, teller.random.choice((5, 10, 1))),
    )
    over, wanted = teller.say(PLATFORM).lower(), teller.pick("time", "far", "length", "speed")
    known = far if wanted == "length" else long
    way = float(t) * int(v) * (5 / 18 if unit == "km/h" else 1)
    known = known if way > known else max(int(way) - teller.whole(10, 40), 5)
    slots = _slots(teller, v=(v, unit), t=(t, "s"), L=(str(long), "m"), P=(str(far), "m"), K=(str(known), "m"))
    slots |= {"S": _train(teller), "passes": OVER, "passb": OVER_BASE, "GOING": GOING, "Y": over}
    facts = SAID.ask(teller, f"over {wanted}").facts
    slots["X"] = Thing(f"{'a' if '{X}' in facts[0] else 'the'} {over}", (f"the {over}",), f"the {over}'s")
    named = "[metres|meters|m]" if teller.chance(0.4) else ""
    if wanted == "time":
        work = ("The train goes its own length and that of the other.", f"({long}+{far})/{_below(v, unit)}")
        return Problem(teller.ask(Ask(facts, TIME_WH, TIME_NP), slots), (work,), "s")
    if wanted == "speed":
        return _speed_asked(teller, Ask(facts, SPEED_WH, SPEED_NP), slots, f"({long}+{far})/{t}")
    wh: tuple[str, ...] = LENGTH_WH
    np: tuple[str, ...] = LENGTH_NP
    if wanted == "far":
        wh, np = tuple(each.replace("{S}", "{X}") for each in LENGTH_WH), ("the length of {X}", "the length of the {Y}")
    work = ("The way is speed times time, less the known length.", f"{_metres(v, unit)}*{t}-{known}")
    return Problem(teller.ask(Ask(facts, wh, np, unit=named), slots), (work,), "m")


def passing_walker(teller: Teller) -> Problem:
    """Let a train pass a person who moves along the track."""
    v, _, t = _speed_and_time(teller)
    v, w, long = str(max(int(v), 30)), str(teller.whole(2, 14)), str(teller.whole(60, 500, 10))
    same = teller.chance(0.5)
    slots = _slots(teller, v=(v, "km/h"), w=(w, "km/h"), t=(t, "s"), L=(long, "m"))
    slots |= {"S": _train(teller), "GOING": GOING, "W": WALKERS, "way": SAME_WAY if same else OTHER_WAY}
    slots |= {"passes": CROSSES, "passb": CROSS, "X": "[the other|him|her]"}
    relative = f"({v}{'-' if same else '+'}{w})*5/18"
    says = "The speeds are subtracted: same direction." if same else "The speeds are added: they go towards each other."
    if teller.chance(0.5):
        facts = SAID.ask(teller, "walker same" if same else "walker against").facts
        return Problem(teller.ask(Ask(facts, LENGTH_WH, LENGTH_NP), slots), ((says, f"{relative}*{t}"),), "m")
    ask = Ask(SAID.ask(teller, "walker time").facts, TIME_WH[:1] + TIME_WH[3:4], TIME_NP[:1] + TIME_NP[3:])
    return Problem(teller.ask(ask, slots), ((says, f"{long}/({relative})"),), "s")


def passing_train(teller: Teller) -> Problem:
    """Let two trains pass each other."""
    first, second = str(teller.whole(70, 400, 10)), str(teller.whole(70, 400, 10))
    v, w = sorted((teller.whole(24, 140, 2), teller.whole(24, 140, 2)), reverse=True)
    same = teller.chance(0.35) and v > w
    slots = _slots(teller, A=(first, "m"), B=(second, "m"), v=(str(v), "km/h"), w=(str(w), "km/h"))
    slots |= {
        "GOING": GOING,
        "way": "[in the same direction|the same way|on parallel tracks in the same direction]"
        if same
        else "[in opposite directions|towards each other|from opposite sides]",
    }
    facts = (teller.pick(*SAID["passing_train facts"]),)
    ask = Ask(
        facts, SAID["passing_train ask"], SAID["passing_train ask2"], (), (), "seconds" if teller.chance(0.3) else ""
    )
    work = f"({first}+{second})/(({v}{'-' if same else '+'}{w})*5/18)"
    says = f"The lengths are added, the speeds {'subtracted' if same else 'added'}."
    return Problem(teller.ask(ask, slots), ((says, work),), "s")


def two_crossings(teller: Teller) -> Problem:
    """Let a train pass a pole and a platform, in different times."""
    short, more, far = teller.whole(5, 20), teller.whole(4, 30), teller.whole(80, 600, 20)
    train = _train(teller)
    slots = _slots(teller, t=(str(short), "s"), u=(str(short + more), "s"), P=(str(far), "m"))
    slots |= {"S": train, "X": POINT, "passes": CROSSES, "passb": CROSS, "Y": PLATFORM}
    facts = (teller.pick(*SAID["two_crossings facts"]),)
    velocity = f"{far}/({short + more}-{short})"
    if teller.chance(0.5):
        return _speed_asked(teller, Ask(facts, SPEED_WH, SPEED_NP), slots, velocity)
    work = ("The difference of the times gives the speed; length is speed times time.", f"{velocity}*{short}")
    return Problem(teller.ask(Ask(facts, LENGTH_WH, LENGTH_NP), slots), (work,), "m")


def meeting(teller: Teller) -> Problem:
    """Let two things approach each other, separate, or follow each other."""
    vu, du, tu = teller.random.choice((*[("km/h", "km", "h")] * 2, ("mph", "miles", "h"), ("m/s", "m", "s")))
    v, w, t = teller.whole(8, 110), teller.whole(5, 90), teller.whole(2, 12)
    one, two = (mover(teller, "car", "bike").thing.first for _ in range(2))
    slots: dict[str, str | Thing] = {"A": one, "B": two.replace("a ", "another ", 1) if one == two else two}
    slots |= {"P": place(teller), "Q": place(teller), "u": UNITS[tu], "x": UNITS[du]}
    if teller.chance(0.45):
        d = (v + w) * t if teller.chance(0.7) else teller.whole(30, 900)
        slots |= _slots(teller, d=(str(d), du), v=(str(v), vu), w=(str(w), vu))
        work = ("They approach with the sum of the speeds.", f"{d}/({v}+{w})")
        return problem(teller, SAID.ask(teller, "meet"), slots, work, tu)
    away = teller.chance(0.6)
    v, w = (v, w) if away or v > w else (w + 3, v)
    slots |= _slots(teller, t=(str(t), tu), v=(str(v), vu), w=(str(w), vu))
    slots["way"] = "opposite directions" if away else "the same direction"
    says = f"The {'sum' if away else 'difference'} of the speeds times the time."
    return problem(teller, SAID.ask(teller, "apart"), slots, (says, f"({v}{'+' if away else '-'}{w})*{t}"), du)
