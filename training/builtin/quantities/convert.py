"""Unit and temperature conversion; the factor is common knowledge or given in the question."""

from taiwa.models.builtin.copy_constraint import CONVERTED
from training.builtin.quantities.speed import UNITS
from training.builtin.quantities.telling import Ask, Teller
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import invented, several
from training.builtin.quantities.working import Problem, problem

__all__ = ["given_factor", "temperature", "unit"]

SAID = wordings("convert")
PAIRS = (
    ("miles", "km", "1.6"), ("inches", "cm", "2.54"), ("pounds", "kg", "0.45"), ("kg", "pounds", "2.2"), ("gallons", "litres", "3.8"), ("feet", "m", "0.3"),
    ("ounces", "g", "28"), ("acres", "hectares", "0.4"), ("knots", "km/h", "1.85"), ("cups", "mL", "240"), ("stone", "pounds", "14"), ("miles", "km", "1.609"),
    ("atm", "kPa", "101.3"), ("calories", "J", "4.2"),
)  # fmt: skip

MORE = {
    **UNITS,
    "kg": "[kg|kg|kilograms|kilos]",
    "g": "[g|g|grams]",
    "mg": "[mg|milligrams]",
    "t": "[tonnes|t|metric tons]",
    "L": "[L|l|litres|liters]",
    "mL": "[mL|ml|millilitres|milliliters]",
    "mm": "[mm|millimetres|millimeters]",
    "inches": "[inches|inches|in]",
    "yards": "yards",
    "lb": "[pounds|lb|lbs]",
    "oz": "[ounces|oz]",
    "weeks": "weeks",
    "years": "years",
    "months": "months",
    "dozen": "dozen",
    "pieces": "[pieces|items]",
    "dollars": "dollars",
    "cents": "cents",
    "kJ": "[kJ|kilojoules]",
    "J": "[J|joules]",
    "kW": "[kW|kilowatts]",
    "W": "[W|watts]",
    "kPa": "[kPa|kilopascals]",
    "Pa": "[Pa|pascals]",
    "m^2": "[m^2|square metres|square meters]",
    "cm^2": "[cm^2|square centimetres]",
    "m^3": "[m^3|cubic metres]",
    "hectares": "[hectares|ha]",
    "mA": "[mA|milliamperes]",
    "A": "[A|amperes]",
    "GB": "[GB|gigabytes]",
    "MB": "[MB|megabytes]",
    "gallons": "gallons",
    "quarts": "quarts",
    "pints": "pints",
    "cups": "cups",
    "mol": "[mol|moles]",
    "mmol": "[mmol|millimoles]",
    "nm": "[nm|nanometres]",
}
FACTORS = (
    ("km", "m", "1000", 4),
    ("m", "cm", "100", 4),
    ("cm", "mm", "10", 2),
    ("m", "mm", "1000", 2),
    ("km", "cm", "100000", 0.5),
    ("kg", "g", "1000", 4),
    ("g", "mg", "1000", 2),
    ("t", "kg", "1000", 2),
    ("L", "mL", "1000", 4),
    ("h", "min", "60", 4),
    ("min", "s", "60", 4),
    ("h", "s", "3600", 3),
    ("days", "h", "24", 3),
    ("weeks", "days", "7", 2),
    ("years", "months", "12", 2),
    ("years", "days", "365", 1),
    ("years", "weeks", "52", 1),
    ("ft", "inches", "12", 2),
    ("yards", "ft", "3", 1),
    ("lb", "oz", "16", 1),
    ("dozen", "pieces", "12", 2),
    ("dollars", "cents", "100", 1.5),
    ("kJ", "J", "1000", 1),
    ("kW", "W", "1000", 1),
    ("kPa", "Pa", "1000", 0.7),
    ("m^2", "cm^2", "10000", 0.7),
    ("m^3", "L", "1000", 1),
    ("hectares", "m^2", "10000", 0.7),
    ("A", "mA", "1000", 0.5),
    ("GB", "MB", "1000", 0.6),
    ("gallons", "quarts", "4", 0.5),
    ("quarts", "pints", "2", 0.4),
    ("mol", "mmol", "1000", 0.5),
    ("days", "min", "1440", 0.4),
    ("gallons", "cups", "16", 0.3),
)
SPEEDS = (
    ("km/h", "m/s"),
    ("m/s", "km/h"),
    ("m/min", "m/s"),
    ("km/min", "km/h"),
    ("km/h", "km/min"),
    ("m/s", "m/min"),
    ("cm/s", "m/s"),
    ("km/h", "m/min"),
)
READ = {"ft": "feet", "t": "tonnes", "lb": "pounds", "oz": "ounces", "C": "degC", "F": "degF", "K": "K"}
"""The converter's names of some units."""
WHOLE = (
    "[convert|change|turn|translate|transform|bring] {q} [to|into] {v}.",
    "how many {v} [are|are there in|make|are the same as|equal|correspond to] {q}?",
    "[what is|how much is] {q} [in|when given in|expressed in|measured in] {v}?",
    "[express|write|give|state|show] {q} in {v}.",
    "{q} in {v}?",
    "{q} = ? {v}",
    "{q} is how many {v}?",
    "{q} to {v}",
    "I have {q}. [How many {v} is that|What is that in {v}|How much is it in {v}]?",
    "[a recipe|a book|a label|a sign|a map|the instruction|a note] says {q}. [How many {v} is that|What is that in {v}|I need it in {v}].",
    "[the length|the amount|it|the answer|the result] is {q}, but I need it in {v}.",
    "[find|calculate|work out] how many {v} {q} [are|make].",
    "my [teacher|boss|doctor|machine|form] wants {q} in {v}. [What do I write|What number is it]?",
)


def unit(teller: Teller) -> Problem:
    """Convert with a factor that is common knowledge."""
    if teller.chance(0.3):
        old, new = teller.random.choices(SPEEDS, (8, 8, 1, 1, 1, 1, 1, 1))[0]
        number = (
            str(teller.whole(2, 200))
            if teller.chance(0.5)
            else str(teller.whole(18, 180, 18))
            if teller.chance(0.7)
            else teller.decimal(1, 90)
        )
        expression = ""
    else:
        big, small, factor, _ = teller.random.choices(FACTORS, [each[3] for each in FACTORS])[0]
        down = teller.chance(0.55)
        number = (
            str(teller.whole(2, 90)) if teller.chance(0.6) else teller.decimal(0.1, 60, teller.random.choice((1, 2)))
        )
        if not down:
            number = (
                str(teller.whole(1, 40) * int(factor) // teller.random.choice((1, 2, 4)))
                if teller.chance(0.6)
                else str(teller.whole(2, 9_000))
            )
        old, new = (big, small) if down else (small, big)
        expression = f"{number}{'*' if down else '/'}{factor}"
    if number in ("0", "1"):
        expression, number = "5" + expression[1:], "5"
    slots = {"q": f"{teller.measure(number)} {MORE[old]}", "v": MORE[new]}
    source, target = READ.get(old, old), READ.get(new, new)
    if source in CONVERTED and target in CONVERTED:
        return problem(teller, Ask(whole=WHOLE), slots, ("Convert.", f"{number} {source} to {target}"), target)
    says = f"{old} to {new}."
    says = says[0].upper() + says[1:] if old in ("years", "dozen") else says
    return problem(teller, Ask(whole=WHOLE), slots, (says, expression), new)


def temperature(teller: Teller) -> Problem:
    """Convert between Celsius, Fahrenheit and kelvin."""
    old, new = teller.random.choice((("C", "F"), ("C", "F"), ("F", "C"), ("F", "C"), ("C", "K"), ("K", "C")))
    number = (
        str({"C": teller.whole(2, 120), "F": teller.whole(33, 250), "K": teller.whole(150, 900)}[old])
        if teller.chance(0.85)
        else teller.decimal(2, 90)
    )
    spelt = {
        "C": "[°C|°C|degrees Celsius|degrees C|Celsius|deg C]",
        "F": "[°F|°F|degrees Fahrenheit|degrees F|Fahrenheit|deg F]",
        "K": "[K|K|kelvin|Kelvin]",
    }
    slots = {
        "q": f"{teller.measure(number)} {spelt[old]}",
        "v": spelt[new],
        "X": "[the oven|the water|a room|the weather report|a patient|the liquid|the freezer|a lake|the thermometer|the outside air|a furnace]",
    }
    facts = ["{X} [is at|shows|has|has reached|stands at] {q}"]
    wh = SAID["temperature wh"]
    unit_said = "K" if new == "K" else f"°{new}"
    return problem(
        teller,
        Ask(facts, wh, SAID["temperature part"], WHOLE[:9]),
        slots,
        ("Convert.", f"{number} {READ[old]} to {READ[new]}"),
        unit_said,
    )


def given_factor(teller: Teller) -> Problem:
    """Convert with a factor given in the question; the units may be made up."""
    if teller.chance(0.45):
        one, two = invented(teller), invented(teller)
        old, new = several(one), several(two)
        factor = str(teller.whole(2, 60)) if teller.chance(0.7) else teller.decimal(1, 20)
    else:
        old, new, factor = teller.random.choice(PAIRS)
        one = {"feet": "foot", "inches": "inch"}.get(old, old.removesuffix("s"))
    if teller.chance(0.2):
        factor = teller.decimal(0.2, 9, 2)
    number = str(teller.whole(2, 300)) if teller.chance(0.8) else teller.decimal(1, 80)
    slots = {"f": factor, "O": old, "o": one, "N": new, "n": teller.measure(number)}
    kind, says, sign, unit = teller.random.choice(
        (("times", "Times the factor.", "*", new), ("over", "Divided by the factor.", "/", old))
    )
    rule = SAID.pick(teller, "given_factor rule")
    whole = tuple(f"{rule}. {behind}" for behind in SAID[f"{kind} behind"])
    ask = Ask((rule,), SAID[f"{kind} wh"], SAID[f"{kind} np"], whole)
    return Problem(teller.ask(ask, slots), ((says, f"{number}{sign}{factor}"),), unit, tuple(unit.split()))
