"""Speed, distance and time: one of the three is asked for, possibly in another unit."""

from training.builtin.quantities.speed import PACES, Measured, Mover, length, mover, pace, period, unit_name
from training.builtin.quantities.telling import Ask, Teller
from training.builtin.quantities.working import Problem

__all__ = ["distance", "speed", "time"]

D_IN_T = (
    "{S} [covers|covers|travels|does|makes|{goes}|{goes}|completes] [|||a distance of |a stretch of |a route of ]{d} in {t}",
    "{S} {went} {d} in {t}",
    "{S} [covered|travelled|traveled|managed|completed] [|a distance of |a track of ]{d} [in|within] {t}",
    "in {t} {S} [covers|{goes}|travels|gets through] {d}",
    "it takes {S} {t} to [{go}|cover|travel|finish|complete] [|a distance of ]{d}",
    "{S} [takes|needs|requires|spends|uses] {t} [to [{go}|cover|travel]|for|on] {d}",
    "{S} [took|needed] {t} to [{go}|cover|complete] {d}",
    "[a distance of {d}|{d}] [is|was] covered by {S} in {t}",
    "[the distance|the journey|the trip|the way|the route] is {d} [and|and it is known that] {S} [covers|does|finishes] it in {t}",
    "{S} [has|had] {d} to [go|{go}] [and|and it] takes {t}",
    "after {t} of {going}, {S} [has covered|has done|has {went} over|is at] {d}",
    "{S} {goes} for {t} and [covers|gets|comes] {d} [far|away|]",
    "{going} for {t}, {S} [covers|makes] {d}",
    "{S} [is seen {going}|is filmed {going}|is timed {going}|has been {going}] {d} in {t}",
)
V_FOR_T = (
    "{S} {goes} at {v} for {t}",
    "{S} {goes} [at a speed of|at a steady|at a constant|at a constant speed of|at an average speed of|with a speed of|at] {v} for {t}",
    "{S} [keeps|keeps up|holds|maintains] [|a speed of |a pace of ]{v} for {t}",
    "for {t} {S} {goes} at {v}",
    "{S} {went} at [|a constant |a speed of ]{v} for {t}",
    "{S} [has|reaches] a [speed|velocity] of {v} and {goes} for {t}",
    "the speed of {S} is {v} and [the trip lasts|the trip takes|it {goes} for|the time is] {t}",
    "{S} [is|was] {going} at {v} [for|during|over] {t}",
    "{going} at {v}, {S} is [on the move|on the way|under way|on the road] for {t}",
    "{S} [moves|advances] at a rate of {v} over {t}",
    "{S} sets off at {v} and [stops|arrives|halts|rests] after {t}",
    "the journey of {S} lasts {t} at {v}",
    "{S} spends {t} {going} at {v}",
)
V_OVER_D = (
    "{S} {goes} {d} at {v}",
    "{S} {goes} [|at a speed of |at a constant |at a steady |with a speed of |at an average speed of ]{v} [and has to cover|and has to go|and must cover|over a distance of|for a distance of|to a place at a distance of] {d}",
    "{S} [has to|must] {go} {d} and [{goes}|moves] at {v}",
    "{S} [covers|does|finishes|travels] {d} [at|{going} at|with a speed of] {v}",
    "the distance is {d} and {S} {goes} at {v}",
    "{S} is {d} [away from home|from the goal|from the station|from town|away] and {goes} [there |home |]at {v}",
    "the speed of {S} is {v} and the distance [is|to cover is|to go is] {d}",
    "{S} {went} {d} at [|a speed of |an average of ]{v}",
    "a [route|track|road|path|stretch|course] of {d} is taken by {S} at {v}",
    "{S}, {going} at {v}, [has|wants] to [cover|go] {d}",
    "there are {d} to go for {S}, and the speed is {v}",
)
ASK_V = (
    "how fast does {S} {go}~how fast {S} {goes}",
    "how fast is {S}~how fast {S} is",
    "how fast is {S} {going}~how fast {S} is {going}",
    "what is {S's} [|average ]speed~what {S's} [|average ]speed is",
    "what is the [speed|velocity|average speed|rate] of {S}~what the [speed|velocity|average speed] of {S} is",
    "at [what|which] speed does {S} {go}~at [what|which] speed {S} {goes}",
    "what speed does {S} have~what speed {S} has",
    "how fast was {S} {going}~how fast {S} was {going}",
    "at what [rate|pace] does {S} {go}~at what [rate|pace] {S} {goes}",
)
NP_V = (
    "the speed",
    "the [|average ]speed of {S}",
    "{S's} speed",
    "{S's} [average speed|velocity|pace]",
    "the velocity",
    "the average speed",
    "the velocity of {S}",
    "the rate at which {S} {goes}",
)
ASK_D = (
    "how far does {S} {go}~how far {S} {goes}",
    "how far will {S} [{go}|get|come]~how far {S} will [{go}|get|come]",
    "how far did {S} {go}~how far {S} {went}",
    "[what|which] distance does {S} [cover|{go}|travel]~[what|which] distance {S} [covers|{goes}]",
    "what [is the distance|distance is] covered~what distance is covered",
    "how long is the [way|distance|route|trip]~how long the [way|distance|route|trip] is",
    "how much ground does {S} cover~how much ground {S} covers",
    "how far has {S} [gone|come|got] [by then|then|]~how far {S} has [gone|come|got]",
    "what distance will [be covered|{S} have covered]~what distance [will be covered|{S} will have covered]",
)
NP_D = (
    "the distance",
    "the distance [covered|travelled|traveled] by {S}",
    "the distance that {S} [covers|{goes}]",
    "the distance covered",
    "the length of the [trip|route|journey|way]",
    "the way {S} makes",
    "the path length",
)
ASK_T = (
    "how long does {S} [take|need]~how long {S} [takes|needs]",
    "how long does it take [|{S}]~how long it takes [|{S}]",
    "how long will [it take|the trip take|the journey last]~how long [it will take|the trip will take|the journey lasts]",
    "how much time does {S} [need|take|spend]~how much time {S} [needs|takes|spends]",
    "how much time [is needed|does it take|passes|goes by]~how much time [is needed|it takes|passes]",
    "what time does {S} need [for it|for that|for the trip]~what time {S} needs [for it|for that]",
    "for how long does {S} {go}~for how long {S} {goes}",
    "after [how much|what] time does {S} arrive~after [how much|what] time {S} arrives",
    "in what time does {S} [cover|finish|do] it~in what time {S} [covers|finishes|does] it",
)
NP_T = (
    "the time",
    "the time taken [|by {S}]",
    "the time {S} [needs|takes]",
    "the time needed",
    "the duration of the [trip|journey]",
    "the time for the [trip|journey|way]",
    "the travel time",
    "the time required",
)
WHOLE_V = (
    "how fast must {S} {go} to [cover|do|travel] {d} in {t}?",
    "at what speed must {S} {go} in order to cover {d} in {t}?",
    "what is the speed of {S} that [covers|{goes}|travels] {d} in {t}?",
    "{FIND} the speed of {S} which [covers|{goes}|travels] {d} in {t}.",
    "what speed is needed [to cover|for] {d} in {t}?",
    "{d} in {t}: what speed is [that|this|it]?",
    "how fast does {S} {go} when {d} [take|takes] {t}?",
    "what average speed is {d} in {t}?",
    "to cover {d} in {t}, how fast should {S} {go}?",
    "how fast is {d} in {t}?",
    "speed for {d} in {t}",
    "speed of {S}, {d} in {t}",
    "{FIND} the average speed if {d} are covered in {t}.",
)
WHOLE_D = (
    "how far [does|can|will|would] {S} {go} in {t} at {v}?",
    "how far [does|can|will|would] {S} {go} at [|a speed of |a steady ]{v} in {t}?",
    "what distance [does|can|will] {S} [cover|{go}|travel] in {t} [at|at a speed of|when {going} at|if {going} at|with] {v}?",
    "{FIND} the distance [covered|travelled|traveled] by {S} {going} at {v} [for|in] {t}.",
    "{FIND} [how far|the distance] {S} {goes} in {t} at {v}.",
    "in {t} at {v}, how far does {S} {go}?",
    "at {v}, how far does {S} {go} in {t}?",
    "{t} at {v}: [how far is that|what distance is that|how far]?",
    "distance covered in {t} at {v}",
    "which distance is covered in {t} by {S} {going} at {v}?",
    "how far is it if {S} needs {t} at {v}?",
)
WHOLE_T = (
    "how long [does|will|would] {S} [take|need] to [{go}|cover|travel] {d} at {v}?",
    "how long does it take {S} to [{go}|cover|travel] {d} at [|a speed of |a constant ]{v}?",
    "how long does it take to [cover|travel|go] {d} at {v}?",
    "how much time does {S} need [for|to cover] {d} [at|at a speed of|{going} at|when {going} at] {v}?",
    "in what time [does|will|can] {S} {going} at {v} cover {d}?",
    "{FIND} the time [taken by {S}|{S} takes|needed by {S}] to [cover|travel|{go}] {d} at [|a speed of ]{v}.",
    "at {v}, how long does {S} need for {d}?",
    "{d} at {v}: how long [is that|does it take|]?",
    "time for {d} at {v}",
    "{FIND} how long {S} [takes|needs] for {d} at {v}.",
    "how soon does {S} {going} at {v} arrive at a place {d} away?",
    "how long is {S} [under way|on the way|on the road] with {d} to go at {v}?",
)
D_LABELS, T_LABELS, V_LABELS = (
    "[distance|distance|d|length|s|way|path]",
    "[time|time|t|duration]",
    "[speed|speed|v|velocity]",
)

SPEEDS = {
    ("km", "h", "km/h"): ("{d}/{t}", 9), ("km", "h", "m/s"): ("{d}/{t}*5/18", 3), ("km", "min", "km/h"): ("{d}/{t}*60", 4),
    ("m", "s", "m/s"): ("{d}/{t}", 9), ("m", "s", "km/h"): ("{d}/{t}*18/5", 5), ("m", "min", "m/min"): ("{d}/{t}", 3),
    ("m", "min", "m/s"): ("{d}/({t}*60)", 2), ("m", "min", "km/h"): ("{d}/1000/{t}*60", 1), ("miles", "h", "mph"): ("{d}/{t}", 5),
    ("miles", "min", "mph"): ("{d}/{t}*60", 2), ("km", "s", "km/s"): ("{d}/{t}", 1), ("cm", "s", "cm/s"): ("{d}/{t}", 1),
    ("ft", "s", "ft/s"): ("{d}/{t}", 1), ("km", "min", "m/s"): ("{d}*1000/({t}*60)", 1), ("km", "s", "m/s"): ("{d}*1000/{t}", 1),
}  # fmt: skip
"""The given and requested quantities, with their expressions and weights."""
DISTANCES = {
    ("km/h", "h", "km"): ("{v}*{t}", 9), ("km/h", "min", "km"): ("{v}*{t}/60", 5), ("km/h", "s", "m"): ("{v}*5/18*{t}", 6),
    ("m/s", "s", "m"): ("{v}*{t}", 8), ("m/s", "min", "m"): ("{v}*{t}*60", 4), ("m/s", "min", "km"): ("{v}*{t}*60/1000", 2),
    ("m/s", "h", "km"): ("{v}*18/5*{t}", 2), ("mph", "h", "miles"): ("{v}*{t}", 5), ("mph", "min", "miles"): ("{v}*{t}/60", 2),
    ("m/min", "min", "m"): ("{v}*{t}", 2), ("km/min", "min", "km"): ("{v}*{t}", 1), ("km/s", "s", "km"): ("{v}*{t}", 1),
    ("cm/s", "s", "cm"): ("{v}*{t}", 1), ("ft/s", "s", "ft"): ("{v}*{t}", 1), ("km/h", "min", "m"): ("{v}*1000*{t}/60", 1),
    ("m/min", "h", "m"): ("{v}*{t}*60", 1), ("km/h", "h", "m"): ("{v}*{t}*1000", 1),
}  # fmt: skip
TIMES = {
    ("km", "km/h", "h"): ("{d}/{v}", 9), ("km", "km/h", "min"): ("{d}/{v}*60", 5), ("m", "m/s", "s"): ("{d}/{v}", 8),
    ("m", "km/h", "s"): ("{d}/({v}*5/18)", 5), ("km", "m/s", "s"): ("{d}*1000/{v}", 3), ("m", "m/s", "min"): ("{d}/{v}/60", 2),
    ("km", "m/s", "min"): ("{d}*1000/{v}/60", 1), ("miles", "mph", "h"): ("{d}/{v}", 5), ("miles", "mph", "min"): ("{d}/{v}*60", 2),
    ("m", "m/min", "min"): ("{d}/{v}", 2), ("km", "km/min", "min"): ("{d}/{v}", 1), ("km", "km/s", "s"): ("{d}/{v}", 1),
    ("cm", "cm/s", "s"): ("{d}/{v}", 1), ("ft", "ft/s", "s"): ("{d}/{v}", 1), ("m", "km/h", "min"): ("{d}/1000/{v}*60", 1),
}  # fmt: skip
NATURAL = frozenset(("km/h", "h", "km", "m/s", "s", "m", "mph", "miles", "m/min", "min", "cm", "cm/s", "ft", "ft/s"))
PER_SECOND = {
    "walk": (2, 4),
    "run": (2, 9),
    "bike": (3, 13),
    "car": (5, 45),
    "air": (60, 280),
    "slow": (2, 6),
    "roll": (2, 20),
}


def _velocity(teller: Teller, unit: str, size: str) -> str:
    """Draw a plausible speed for something of this size, in a unit."""
    low, high = PACES[size]
    if unit == "m/s":
        low, high = PER_SECOND[size]
    elif unit in ("m/min", "ft/s", "cm/s"):
        low, high = 3, 240
    elif unit in ("km/min", "km/s"):
        low, high = 2, 30
    elif unit == "mph":
        low, high = max(low * 5 // 8, 2), high * 5 // 8
    if unit == "km/h" and size in ("car", "air", "bike") and teller.chance(0.4):
        return str(teller.whole(18, max(high, 36), 18))
    if teller.chance(0.12):
        return teller.decimal(low, high)
    return str(teller.whole(low, high, 5 if high - low > 60 and teller.chance(0.6) else 1))


def _duration(teller: Teller, unit: str) -> str:
    if unit == "h":
        return (
            str(teller.whole(2, 12))
            if teller.chance(0.7)
            else teller.pick("0.5", "1.5", "2.5", "3.5", "4.5", "1", "0.25", "0.75", "2.25")
        )
    if unit == "min":
        return (
            str(teller.whole(2, 60))
            if teller.chance(0.5)
            else teller.pick("10", "15", "20", "30", "40", "45", "12", "90", "5")
        )
    return (
        str(teller.whole(2, 60)) if teller.chance(0.85) else teller.pick("120", "90", "0.5", "2.5", "7.5", "150", "1")
    )


def _way(teller: Teller, v: str, t: str) -> str:
    """Draw a distance that usually suits the speed and the time."""
    if "." not in v + t and teller.chance(0.75):
        return str(int(v) * int(t))
    return str(teller.whole(6, 960)) if teller.chance(0.7) else teller.decimal(2, 90)


def _asked(teller: Teller, unit: str, *, natural: bool) -> str:
    """Return the unit named in the question, often "" for the natural one."""
    return "" if natural and unit in NATURAL and teller.chance(0.6) else unit_name(teller, unit)


def _tell(teller: Teller, who: Mover, ask: Ask, given: dict[str, Measured]) -> str:
    slots = who.slots(
        FIND="[find|calculate|work out|determine|compute]", **{name: each.said for name, each in given.items()}
    )
    return teller.ask(ask, slots)


def _drawn(teller: Teller, table: dict[tuple[str, str, str], tuple[str, int]]) -> tuple[str, str, str]:
    return teller.random.choices(list(table), [weight for _, weight in table.values()])[0]


def speed(teller: Teller) -> Problem:
    """Ask for the speed."""
    du, tu, vu = _drawn(teller, SPEEDS)
    who = mover(teller)
    t = _duration(teller, tu)
    d = length(
        teller,
        _way(
            teller,
            _velocity(teller, f"{du}/{tu}" if f"{du}/{tu}" in ("m/s", "m/min", "km/min") else "km/h", who.size),
            t,
        ),
        du,
    )
    time_given = period(teller, t, tu)
    named = _asked(teller, vu, natural=vu in (f"{du}/{tu}", "mph" if tu == "h" else ""))
    ask = Ask((teller.pick(*D_IN_T),), ASK_V, NP_V, WHOLE_V, (D_LABELS + " {d}", T_LABELS + " {t}"), named)
    question = _tell(teller, who, ask, {"d": d, "t": time_given})
    expression = SPEEDS[du, tu, vu][0].format(d=d.number, t=time_given.number)
    return Problem(question, (("Speed is distance divided by time.", expression),), vu)


def distance(teller: Teller) -> Problem:
    """Ask for the distance."""
    vu, tu, du = _drawn(teller, DISTANCES)
    who = mover(teller)
    v, t = pace(teller, _velocity(teller, vu, who.size), vu), period(teller, _duration(teller, tu), tu)
    named = _asked(teller, du, natural=vu in (f"{du}/{tu}", "mph" if tu == "h" else ""))
    ask = Ask((teller.pick(*V_FOR_T),), ASK_D, NP_D, WHOLE_D, (V_LABELS + " {v}", T_LABELS + " {t}"), named)
    question = _tell(teller, who, ask, {"v": v, "t": t})
    expression = DISTANCES[vu, tu, du][0].format(v=v.number, t=t.number)
    return Problem(question, (("Distance is speed times time.", expression),), du)


def time(teller: Teller) -> Problem:
    """Ask for the time."""
    du, vu, tu = _drawn(teller, TIMES)
    who = mover(teller)
    v = pace(teller, _velocity(teller, vu, who.size), vu)
    d = length(teller, _way(teller, v.number, str(teller.whole(2, 30))), du)
    named = _asked(teller, tu, natural=vu in (f"{du}/{tu}", "mph" if tu == "h" else ""))
    ask = Ask((teller.pick(*V_OVER_D),), ASK_T, NP_T, WHOLE_T, (V_LABELS + " {v}", D_LABELS + " {d}"), named)
    question = _tell(teller, who, ask, {"d": d, "v": v})
    expression = TIMES[du, vu, tu][0].format(d=d.number, v=v.number)
    return Problem(question, (("Time is distance divided by speed.", expression),), tu)
