"""Building blocks of motion problems: moving things, speeds, distances, times and their units."""

from collections.abc import Sequence
from dataclasses import dataclass

from training.builtin.quantities.telling import Slots, Teller, Thing
from training.builtin.quantities.words import person

__all__ = ["Measured", "Mover", "length", "mover", "pace", "period", "unit_name"]

UNITS = {
    "km/h": "[km/h|km/h|km/h|kmph|kmph|km/hr|kmh|kph|km per hour|km an hour|kilometres per hour|kilometers per hour|kilometers an hour|km per hr]",
    "m/s": "[m/s|m/s|m/s|m/sec|mps|metres per second|meters per second|m per second|meters/second|metres a second|meters per sec]",
    "mph": "[mph|mph|miles per hour|miles an hour|mi/h|miles/hour|mi per hour]",
    "m/min": "[m/min|m per minute|metres per minute|meters per minute|meters/min|metres a minute]",
    "km/min": "[km/min|km per minute|kilometres per minute|kilometers a minute]",
    "km/s": "[km/s|km per second|kilometres per second|kilometers per second]",
    "cm/s": "[cm/s|cm per second|centimetres per second|centimeters per second]",
    "ft/s": "[ft/s|feet per second|ft per second|feet/sec]",
    "km": "[km|km|km|kilometres|kilometers|kms]",
    "m": "[m|m|metres|meters|metres|meters]",
    "miles": "[miles|miles|mi]",
    "cm": "[cm|centimetres|centimeters]",
    "ft": "[feet|ft]",
    "h": "[hours|hours|hours|h|hrs|hr]",
    "min": "[minutes|minutes|minutes|min|mins]",
    "s": "[seconds|seconds|seconds|s|sec|secs]",
    "days": "days",
}
ONE = {
    "h": "[an hour|1 hour|one hour]",
    "min": "[a minute|1 minute|one minute]",
    "s": "[a second|1 second|one second]",
    "days": "[a day|1 day]",
}
ASKED = {
    "km/h": "[km/h|km/h|km/hr|kmph|kilometres per hour|kilometers per hour|km per hour]",
    "m": "[m|metres|meters]",
    "s": "[s|seconds|seconds]",
    "h": "[hours|hours|h]",
    "min": "[minutes|minutes|min]",
    "km": "[km|kilometres|kilometers]",
    "miles": "miles",
}
HE, SHE, IT = ("he", "his"), ("she", "her"), ("it", "its")


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its unit, in the wording of the question and as an expression."""

    said: str
    number: str
    unit: str


@dataclass(frozen=True, slots=True)
class Mover:
    """A moving thing: `{S}` and the forms of its verb, which are template slots."""

    thing: Thing
    verbs: tuple[str, str, str, str]
    size: str

    def slots(self, **others: str) -> Slots:
        """Return the slots `S`, `go`, `goes`, `went` and `going`, and the given ones."""
        go, goes, went, going = self.verbs
        return {"S": self.thing, "go": go, "goes": goes, "went": went, "going": going, **others}


RIDE = ("ride", "rides", "rode", "riding")
CYCLE = ("cycle", "cycles", "cycled", "cycling")
PEDAL = ("pedal", "pedals", "pedalled", "pedalling")
RUN = ("run", "runs", "ran", "running")
JOG = ("jog", "jogs", "jogged", "jogging")
WALK = ("walk", "walks", "walked", "walking")
HIKE = ("hike", "hikes", "hiked", "hiking")
DRIVE = ("drive", "drives", "drove", "driving")
GO = ("go", "goes", "went", "going")
TRAVEL = ("travel", "travels", "travelled", "travelling")
TRAVEL_US = ("travel", "travels", "traveled", "traveling")
MOVE = ("move", "moves", "moved", "moving")
FLY = ("fly", "flies", "flew", "flying")
SAIL = ("sail", "sails", "sailed", "sailing")
SWIM = ("swim", "swims", "swam", "swimming")
ROLL = ("roll", "rolls", "rolled", "rolling")
CRAWL = ("crawl", "crawls", "crawled", "crawling")
SKATE = ("skate", "skates", "skated", "skating")
SKI = ("ski", "skis", "skied", "skiing")
ROW = ("row", "rows", "rowed", "rowing")
GALLOP = ("gallop", "gallops", "galloped", "galloping")
SLIDE = ("slide", "slides", "slid", "sliding")
RACE = ("race", "races", "raced", "racing")
COMMON = (TRAVEL, TRAVEL_US, MOVE, GO)
PEOPLE: dict[str, tuple[str, tuple[tuple[str, str, str, str], ...]]] = {
    "cyclist rider biker cycle-courier schoolboy-on-a-bike": ("bike", (RIDE, CYCLE, PEDAL, TRAVEL)),
    "runner jogger sprinter athlete marathon-runner boy girl student footballer": ("run", (RUN, RUN, JOG, RACE)),
    "walker hiker man woman tourist pilgrim postman farmer soldier teacher child pedestrian old-man": ("walk", (WALK, WALK, GO, HIKE)),
    "driver salesman taxi-driver courier nurse commuter motorist traveller": ("car", (DRIVE, DRIVE, TRAVEL)),
    "swimmer diver": ("walk", (SWIM, SWIM, MOVE)),
    "skater skateboarder roller-skater": ("run", (SKATE, SKATE, GO)),
    "skier snowboarder": ("bike", (SKI, GO, MOVE)),
    "rower kayaker canoeist": ("walk", (ROW, TRAVEL)),
}  # fmt: skip
THINGS: dict[str, tuple[str, tuple[tuple[str, str, str, str], ...]]] = {
    "car taxi van sports-car police-car jeep electric-car truck lorry motorbike motorcycle ambulance bus school-bus coach minibus": ("car", (*COMMON, RUN)),
    "train express-train goods-train freight-train metro subway-train tram local-train": ("car", (*COMMON, RUN)),
    "bicycle scooter e-bike tricycle moped rickshaw": ("bike", COMMON),
    "ship boat ferry yacht tanker submarine barge": ("bike", (*COMMON, SAIL)),
    "plane aeroplane jet aircraft airliner": ("air", (FLY, FLY, TRAVEL)),
    "helicopter drone hot-air-balloon": ("car", (FLY, FLY, MOVE)),
    "bird pigeon falcon swallow bee eagle goose": ("bike", (FLY, FLY, TRAVEL)),
    "horse dog cheetah hare wolf kangaroo fox deer zebra ostrich": ("bike", (RUN, RUN, MOVE)),
    "horse camel": ("run", (GALLOP, RUN, TRAVEL)),
    "snail tortoise beetle ant caterpillar crab": ("slow", (CRAWL, CRAWL, MOVE)),
    "ball cart toy-car trolley marble wheel go-kart wagon model-train": ("roll", (ROLL, MOVE, TRAVEL)),
    "robot cleaning-robot rover lift elevator conveyor-belt cable-car escalator": ("roll", (MOVE, TRAVEL)),
    "puck block sled sledge crate": ("roll", (SLIDE, SLIDE, MOVE)),
    "body particle object point-mass vehicle machine probe": ("car", (MOVE, TRAVEL)),
    "dolphin fish shark whale turtle penguin": ("walk", (SWIM, SWIM, MOVE)),
}  # fmt: skip
PACES = {
    "walk": (2, 9), "run": (6, 20), "bike": (9, 45), "car": (24, 160), "air": (240, 990), "slow": (1, 9), "roll": (4, 60),
}  # fmt: skip
ADJECTIVES = "[|||||||small|red|blue|fast|slow|new|old|green|heavy|young|yellow|white|black]"


def _flat(
    groups: dict[str, tuple[str, tuple[tuple[str, str, str, str], ...]]],
) -> Sequence[tuple[str, str, tuple[tuple[str, str, str, str], ...]]]:
    return [
        (noun.replace("-", " ") if noun not in ("e-bike", "go-kart") else noun, size, verbs)
        for nouns, (size, verbs) in groups.items()
        for noun in nouns.split()
    ]


FLAT_PEOPLE, FLAT_THINGS = _flat(PEOPLE), _flat(THINGS)


def mover(teller: Teller, *sizes: str) -> Mover:
    """Draw a moving thing or person, optionally of some speed ranges."""
    random = teller.random
    while True:
        kind = random.randrange(10)
        if kind < 5:
            noun, size, verbs = random.choice(FLAT_THINGS)
            name, again, whose = f"a {noun}" if kind else f"the {noun}", ("it", "it", f"the {noun}"), "its"
            if kind == 1:
                name = f"a {ADJECTIVES} {noun}"
        elif kind < 8:
            noun, size, verbs = random.choice(FLAT_PEOPLE)
            pronoun, whose = random.choice((HE, SHE))
            name, again = f"a {noun}", (pronoun, pronoun, f"the {noun}")
        else:
            who = person(teller)
            _, size, verbs = random.choice(FLAT_PEOPLE)
            name, again, whose = who.name, (who.he, who.he, who.name), who.his
        if not sizes or size in sizes:
            return Mover(Thing(name, again, whose), random.choice(verbs), size)


def unit_name(teller: Teller, unit: str) -> str:
    """Return a unit as a question may ask for it."""
    return ASKED.get(unit, UNITS.get(unit, unit)) if teller.chance(0.9) else unit


def pace(teller: Teller, number: int | str, unit: str) -> Measured:
    """Write a speed."""
    return Measured(f"{teller.measure(number)} {UNITS[unit]}", str(number), unit)


def length(teller: Teller, number: int | str, unit: str) -> Measured:
    """Write a distance."""
    return Measured(f"{teller.measure(number)} {UNITS[unit]}", str(number), unit)


def period(teller: Teller, number: int | str, unit: str) -> Measured:
    """Write a time, with common expressions such as half an hour."""
    text = str(number)
    if text == "1":
        return Measured(ONE[unit], "1", unit)
    if unit == "h":
        if text == "0.5":
            return Measured("[half an hour|half an hour|0.5 hours|0.5 h]", "0.5", unit)
        if text.endswith(".5") and len(text) < 5 and teller.chance(0.6):
            whole = text[:-2]
            said = teller.number(whole) if whole != "1" else "one"
            wording = "[an hour and a half|one and a half hours]" if whole == "1" else f"{said} and a half hours"
            return Measured(wording, f"({whole}+0.5)", unit)
    return Measured(f"{teller.measure(text)} {UNITS[unit]}", text, unit)
