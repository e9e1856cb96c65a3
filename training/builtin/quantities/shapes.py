"""Areas, perimeters and volumes, and the side that follows from one of them."""

from dataclasses import dataclass

from training.builtin.quantities.telling import Ask, Teller
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.working import Problem, problem

__all__ = ["covering", "shape"]

SAID = wordings("shapes")

LENGTHS = {
    "m": "[m|m|metres|meters]",
    "cm": "[cm|cm|centimetres|centimeters]",
    "km": "[km|kilometres]",
    "mm": "[mm|millimetres]",
    "ft": "[feet|ft]",
    "inches": "[inches|in]",
    "miles": "miles",
    "units": "units",
}
AREA, LONG, ROUND, ROOM = "area", "long", "round", "room"


@dataclass(frozen=True, slots=True)
class Figure:
    """A shape: its real-world objects, given measures by letter, the requested quantity and its expression."""

    names: str
    measures: tuple[tuple[str, str], ...]
    asked: str
    kind: str
    says: str
    expression: str
    weight: float = 1


LWH = (("[length|length|long side]", "a"), ("[width|width|breadth|short side]", "b"))
BOX = (*LWH, ("[height|height|depth]", "c"))
RECTANGLE = "[rectangle|rectangle|field|garden|room|floor|carpet|pool|wall|table top|playground|plot of land|door|sheet of paper|poster|lawn|screen|parking lot|yard]"
SQUARE = "[square|square|square tile|square field|square room|square garden|square piece of cloth|square courtyard|chess board]"
CIRCLE = "[circle|circle|round table|pond|disc|plate|wheel|round pizza|coin|round pool|circular field|clock face]"
CUBOID = "[box|cuboid|tank|room|crate|brick|aquarium|swimming pool|container|drawer|block|chest|suitcase|rectangular prism|truck bed]"
AREAS, ROUNDS, ROOMS = (
    "[area|area|surface]",
    "[perimeter|perimeter|way around it|length of the border]",
    "[volume|volume|capacity]",
)
SIDE = (("[side|side|side length|edge]", "a"),)
FIGURES = (
    Figure(RECTANGLE, LWH, AREAS, AREA, "Area is length times width.", "{a}*{b}", 4),
    Figure(RECTANGLE, LWH, ROUNDS, ROUND, "The perimeter is twice length plus width.", "2*({a}+{b})", 4),
    Figure(
        RECTANGLE,
        (("area", "A"), ("[length|width|one side]", "a")),
        "[other side|other side|missing side]",
        LONG,
        "A side is the area divided by the other side.",
        "{A}/{a}",
        2,
    ),
    Figure(
        RECTANGLE,
        (("perimeter", "a"), ("[length|width|one side]", "b")),
        "[other side|missing side]",
        LONG,
        "Half the perimeter less the known side.",
        "{a}/2-{b}",
        1,
    ),
    Figure(SQUARE, SIDE, AREAS, AREA, "The area of a square is its side squared.", "{a}^2", 2),
    Figure(SQUARE, SIDE, ROUNDS, ROUND, "A square has four equal sides.", "4*{a}", 2),
    Figure(SQUARE, (("perimeter", "a"),), "[side|side length]", LONG, "A square has four equal sides.", "{a}/4", 1),
    Figure(SQUARE, (("area", "A"),), "[side|side length]", LONG, "The side is the root of the area.", "sqrt({A})", 0.7),
    Figure(
        "[triangle|triangle|triangular field|sail|triangular flag|gable]",
        (("base", "a"), ("height", "b")),
        "area",
        AREA,
        "The area of a triangle is half of base times height.",
        "{a}*{b}/2",
        2,
    ),
    Figure(
        "[triangle|triangle|triangular plot]",
        (("first side", "a"), ("second side", "b"), ("third side", "c")),
        ROUNDS,
        ROUND,
        "The perimeter is the sum of the sides.",
        "{a}+{b}+{c}",
        1,
    ),
    Figure(
        "[right triangle|right-angled triangle]",
        (("first leg", "a"), ("second leg", "b")),
        "[hypotenuse|longest side]",
        LONG,
        "The hypotenuse is the root of the sum of the squares.",
        "sqrt({a}^2+{b}^2)",
        1,
    ),
    Figure(
        CIRCLE, (("radius", "a"),), "area", AREA, "The area of a circle is pi times the radius squared.", "pi*{a}^2", 2
    ),
    Figure(
        CIRCLE,
        (("radius", "a"),),
        "[circumference|perimeter|way around it]",
        ROUND,
        "The circumference is 2 pi times the radius.",
        "2*pi*{a}",
        1.5,
    ),
    Figure(
        CIRCLE,
        (("diameter", "a"),),
        "[circumference|perimeter|way around it]",
        ROUND,
        "The circumference is pi times the diameter.",
        "pi*{a}",
        1.5,
    ),
    Figure(
        CIRCLE,
        (("diameter", "a"),),
        "area",
        AREA,
        "The area is pi times half the diameter squared.",
        "pi*({a}/2)^2",
        0.7,
    ),
    Figure(
        "[trapezoid|trapezium]",
        (("one parallel side", "a"), ("other parallel side", "b"), ("height", "c")),
        "area",
        AREA,
        "The area is the mean of the parallel sides times the height.",
        "({a}+{b})/2*{c}",
        0.7,
    ),
    Figure(
        "parallelogram",
        (("base", "a"), ("height", "b")),
        "area",
        AREA,
        "The area is base times height.",
        "{a}*{b}",
        0.7,
    ),
    Figure(CUBOID, BOX, ROOMS, ROOM, "Volume is length times width times height.", "{a}*{b}*{c}", 4),
    Figure(
        "[box|cuboid|brick|block]",
        BOX,
        "[surface area|surface]",
        AREA,
        "The surface is twice the sum of three sides.",
        "2*({a}*{b}+{a}*{c}+{b}*{c})",
        0.7,
    ),
    Figure(
        "[cube|cube|die|cubic box|cubic tank]",
        SIDE,
        ROOMS,
        ROOM,
        "The volume of a cube is its edge cubed.",
        "{a}^3",
        1.5,
    ),
    Figure("[cube|cube|die]", SIDE, "[surface area|surface]", AREA, "A cube has six square faces.", "6*{a}^2", 0.7),
    Figure(
        "[cylinder|cylinder|can|pipe|barrel|column|glass|silo]",
        (("radius", "a"), ("height", "b")),
        ROOMS,
        ROOM,
        "The volume is pi times the radius squared times the height.",
        "pi*{a}^2*{b}",
        1,
    ),
    Figure(
        "[sphere|sphere|ball|globe]",
        (("radius", "a"),),
        "volume",
        ROOM,
        "The volume of a sphere is 4/3 pi times the radius cubed.",
        "4/3*pi*{a}^3",
        0.6,
    ),
    Figure(
        "[cone|cone|funnel|heap of sand]",
        (("radius", "a"), ("height", "b")),
        "volume",
        ROOM,
        "The volume of a cone is a third of pi times the radius squared times the height.",
        "pi*{a}^2*{b}/3",
        0.5,
    ),
)
WEIGHTS = [figure.weight for figure in FIGURES]


def _squared(unit: str, spelt: str) -> str:
    if unit in ("m", "cm", "km", "mm"):
        return f"[{unit}^2|{unit}^2|square {spelt.strip('[]').split('|')[-1]}|sq {unit}]"
    return f"square {unit}"


def _unit(kind: str, unit: str) -> str:
    power = {AREA: "^2", ROOM: "^3"}.get(kind, "")
    if unit in ("m", "cm", "km", "mm") or not power:
        return unit + power
    return f"{'square' if power == '^2' else 'cubic'} {unit}"


def shape(teller: Teller) -> Problem:
    """Ask about a shape with given measures."""
    figure = teller.random.choices(FIGURES, WEIGHTS)[0]
    unit = teller.random.choices(list(LENGTHS), (8, 8, 1, 1, 2, 1, 0.5, 0.5))[0]
    numbers: dict[str, str] = {}
    for _, letter in figure.measures:
        numbers[letter] = str(teller.whole(2, 60)) if teller.chance(0.85) else teller.decimal(1, 20)
    if "A" in numbers and "a" in numbers and numbers["a"].isdigit():
        numbers["A"] = str(int(numbers["a"]) * teller.whole(2, 40))
    elif "A" in numbers:
        numbers["A"] = str(teller.whole(2, 30) ** 2)
    if figure.says.startswith("Half") and float(numbers["a"]) / 2 <= float(numbers["b"]):
        numbers["a"] = str(int(float(numbers["b"])) * 2 + teller.whole(2, 40))
    slots: dict[str, str] = {}
    for _, letter in figure.measures:
        slots[letter] = (
            f"{teller.measure(numbers[letter])} {_squared(unit, LENGTHS[unit]) if letter == 'A' else LENGTHS[unit]}"
        )
    slots |= {"X": teller.say(figure.names), "Q": figure.asked, "its": "[its|the|its]"}
    slots["X"] = slots["X"][0].lower() + slots["X"][1:]
    ask = _ask(teller, figure)
    named = _unit(figure.kind, unit)
    return problem(teller, ask, slots, (figure.says, figure.expression.format(**numbers)), named)


def _ask(teller: Teller, figure: Figure) -> Ask:
    measures = list(figure.measures)
    if teller.chance(0.3):
        teller.random.shuffle(measures)
    parts = [f"a {name} of {{{letter}}}" for name, letter in measures]
    with_all = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    facts = [
        teller.pick(
            f"a {{X}} has {with_all}",
            f"there is a {{X}} with {with_all}",
            "a {X} is given; " + " and ".join(f"its {name} is {{{letter}}}" for name, letter in measures),
            f"somebody measures a {{X}} and finds {with_all}",
        )
    ]
    if (
        [letter for _, letter in figure.measures] == ["a", "b"]
        and figure.measures[0][0].startswith("[length")
        and teller.chance(0.5)
    ):
        facts = [teller.pick(*SAID["_ask facts"])]
    elif len(figure.measures) == 3 and figure.measures[2][0].startswith("[height|height|") and teller.chance(0.5):
        facts = [teller.pick(*SAID["_ask facts2"])]
    elif figure.measures == SIDE:
        facts = [teller.pick(*SAID["_ask facts3"])]
    wh = SAID["_ask wh"]
    whole = (
        f"what is the {{Q}} of a {{X}} with {with_all}?",
        f"[find|calculate|work out|compute] the {{Q}} of a {{X}} with {with_all}.",
        f"{{Q}} of a {{X}} with {with_all}?",
        f"how large is the {{Q}} of a {{X}} that has {with_all}?",
    )
    brief = [f"{name} {{{letter}}}" for name, letter in figure.measures]
    return Ask(facts, wh, ("{its} {Q}", "the {Q}", "the {Q} of the {X}"), whole, brief)


def covering(teller: Teller) -> Problem:
    """Ask about tiles, fences, paint and floors: an area or perimeter times an amount per unit."""
    a, b, each = teller.whole(2, 40), teller.whole(2, 40), teller.whole(2, 30)
    side = teller.random.choice((10, 20, 25, 50))
    slots = {"X": "[garden|field|yard|meadow|playground]", "Y": "[floor|room|hall|terrace|kitchen|wall]"}
    slots = {name: teller.say(names).lower() for name, names in slots.items()}
    slots |= {
        "a": f"{a} {LENGTHS['m']}",
        "b": f"{b} {LENGTHS['m']}",
        "p": f"${each}",
        "e": str(each),
        "s": f"{side} [cm|centimetres]",
    }
    kind = teller.random.choice(("fence", "floor", "tiles", "paint"))
    says, expression, unit = {
        "fence": ("The perimeter times the price.", f"2*({a}+{b})*{each}", "dollars"),
        "floor": ("The area times the price.", f"{a}*{b}*{each}", "dollars"),
        "paint": ("The area divided by what one covers.", f"{a}*{b}/{each}", ""),
        "tiles": ("The area in square cm, divided by that of a tile.", f"({a}*100)*({b}*100)/{side}^2", "tiles"),
    }[kind]
    return problem(teller, SAID.ask(teller, kind, loose=False), slots, (says, expression), unit)
