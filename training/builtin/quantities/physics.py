"""Physics formulas with one unknown: force, work, energy, pressure, current, waves, gases and solutions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from training.builtin.quantities.sayings import DEVICE, MATERIAL, MOVER, PUSH, SAYINGS, THING
from training.builtin.quantities.speed import UNITS
from training.builtin.quantities.telling import FIND, WHAT, Ask, Teller
from training.builtin.quantities.working import Problem

__all__ = ["Formula", "Quantity", "formula"]

KG, M, S, MPS, L = "[kg|kg|kilograms]", UNITS["m"], UNITS["s"], UNITS["m/s"], "[L|L|litres|liters|l]"
MOL, MOLAR = "[mol|mol|moles]", "[mol/L|mol/L|M|mol per litre|moles per liter]"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of a formula: names, symbol, spellings of its unit, unit in expressions, and range."""

    names: str
    sign: str
    units: str
    unit: str
    low: float = 2
    high: float = 90
    article: str = "a "

    def drawn(self, teller: Teller) -> str:
        """Draw a value."""
        if self.high < 3 or teller.chance(0.22):
            return teller.decimal(self.low, self.high, 2 if self.high < 3 else 1)
        return str(
            teller.whole(max(int(self.low), 1), int(self.high), 5 if self.high > 100 and teller.chance(0.7) else 1)
        )


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula: quantities by letter, and for each possible unknown a sentence and an expression; `who` are the objects."""

    quantities: Mapping[str, Quantity]
    works: Mapping[str, tuple[str, str]]
    who: str
    weight: float = 1


MASS = Quantity("mass", "m", KG, "kg", 2, 90)
FORCE = Quantity("[force|net force|force]", "F", "[N|N|newtons|newton]", "N", 5, 400)
VOLTAGE = Quantity("[voltage|voltage|potential difference|tension]", "U", "[V|V|volts]", "V", 3, 240)
CURRENT = Quantity("current", "I", "[A|A|amperes|amps]", "A", 0.2, 15)
VOLUME = Quantity("volume", "V", L, "L", 2, 40)
MOLES = Quantity("[amount|number of moles|amount of substance]", "n", MOL, "mol", 0.2, 8, "an ")
SPEED = Quantity("[speed|velocity|speed]", "v", MPS, "m/s", 2, 60)
BODY = "[a body|an object|a cart|a car|a block|a stone|a ball|a trolley|a box|a crate|a sledge|a rocket|a toy|a truck|a cyclist|a runner|a boat]"

FORMULAS: dict[str, Formula] = {
    "force": Formula(
        {"m": MASS, "a": Quantity("acceleration", "a", "[m/s^2|m/s^2|m/s2|metres per second squared|m per s squared|m/s/s]", "m/s^2", 2, 20, "an "), "F": FORCE},
        {"F": ("Force is mass times acceleration.", "{m}*{a}"), "a": ("Acceleration is force divided by mass.", "{F}/{m}"), "m": ("Mass is force divided by acceleration.", "{F}/{a}")},
        BODY, 2,
    ),
    "weight": Formula(
        {"m": MASS, "F": Quantity("[weight|weight|weight force]", "W", "[N|N|newtons]", "N", 20, 900)},
        {"F": ("Weight is mass times 9.8 m/s^2.", "{m}*9.8"), "m": ("Mass is weight divided by 9.8 m/s^2.", "{F}/9.8")},
        "[a body|a stone|a bag|a suitcase|a student|a dog|a rock|a pumpkin|a box|a crate|a bucket|an astronaut] [on Earth|on the Earth|near the ground|]",
    ),
    "momentum": Formula(
        {"m": MASS, "v": SPEED, "p": Quantity("momentum", "p", "[kg m/s|kg*m/s|kg m/s]", "kg m/s", 20, 900)},
        {"p": ("Momentum is mass times velocity.", "{m}*{v}"), "v": ("Velocity is momentum divided by mass.", "{p}/{m}"), "m": ("Mass is momentum divided by velocity.", "{p}/{v}")},
        BODY,
    ),
    "kinetic energy": Formula(
        {"m": MASS, "v": SPEED, "E": Quantity("[kinetic energy|kinetic energy|energy of motion]", "Ek", "[J|J|joules]", "J", 50, 900)},
        {"E": ("Kinetic energy is half of mass times velocity squared.", "0.5*{m}*{v}^2"), "m": ("Mass is twice the energy divided by velocity squared.", "2*{E}/{v}^2"), "v": ("Velocity is the root of twice the energy divided by mass.", "sqrt(2*{E}/{m})")},
        BODY, 1.4,
    ),
    "potential energy": Formula(
        {"m": MASS, "h": Quantity("height", "h", M, "m", 2, 80), "E": Quantity("[potential energy|potential energy|gravitational potential energy|energy of height]", "Ep", "[J|J|joules]", "J", 50, 900)},
        {"E": ("Potential energy is mass times 9.8 times height.", "{m}*9.8*{h}"), "h": ("Height is energy divided by mass and 9.8.", "{E}/({m}*9.8)"), "m": ("Mass is energy divided by 9.8 and height.", "{E}/(9.8*{h})")},
        "[a body|a stone|a book|a bird|a lift|a box|a brick|a climber|a flowerpot|a drone|a rock|a barrel]",
    ),
    "work": Formula(
        {"F": FORCE, "d": Quantity("[distance|distance|displacement]", "d", M, "m", 2, 60), "W": Quantity("[work|work done|work]", "W", "[J|J|joules]", "J", 50, 900, "")},
        {"W": ("Work is force times distance.", "{F}*{d}"), "F": ("Force is work divided by distance.", "{W}/{d}"), "d": ("Distance is work divided by force.", "{W}/{F}")},
        "[a man pushing a cart|a horse pulling a cart|a machine|a crane|a worker pushing a box|a winch|a tractor|a child with a sledge|an engine]",
    ),
    "power": Formula(
        {"W": Quantity("[work|energy|work done]", "W", "[J|J|joules]", "J", 50, 900, ""), "t": Quantity("time", "t", S, "s", 2, 60), "P": Quantity("power", "P", "[W|W|watts]", "W", 20, 900)},
        {"P": ("Power is work divided by time.", "{W}/{t}"), "W": ("Work is power times time.", "{P}*{t}"), "t": ("Time is work divided by power.", "{W}/{P}")},
        "[a motor|an engine|a machine|a lamp|a pump|a heater|a crane|a lift|a drill|a kettle|a robot|a worker]",
    ),
    "pressure": Formula(
        {"F": FORCE, "A": Quantity("area", "A", "[m^2|m^2|square metres|square meters|m2]", "m^2", 0.2, 12, "an "), "p": Quantity("pressure", "p", "[Pa|Pa|pascals]", "Pa", 20, 900)},
        {"p": ("Pressure is force divided by area.", "{F}/{A}"), "F": ("Force is pressure times area.", "{p}*{A}"), "A": ("Area is force divided by pressure.", "{F}/{p}")},
        "[a box on the floor|a piston|a block|a plate|a machine|a statue|a liquid|a shelf|a foot|a press]",
    ),
    "ohm": Formula(
        {"U": VOLTAGE, "I": CURRENT, "R": Quantity("resistance", "R", "[ohm|ohms|Ω|ohms]", "ohm", 2, 120)},
        {"U": ("Voltage is resistance times current.", "{R}*{I}"), "I": ("Current is voltage divided by resistance.", "{U}/{R}"), "R": ("Resistance is voltage divided by current.", "{U}/{I}")},
        "[a resistor|a wire|a lamp|a circuit|a heater|a conductor|a bulb|a coil|a device|a motor]", 1.6,
    ),
    "electric power": Formula(
        {"U": VOLTAGE, "I": CURRENT, "P": Quantity("[power|electric power|power]", "P", "[W|W|watts]", "W", 20, 900)},
        {"P": ("Power is voltage times current.", "{U}*{I}"), "I": ("Current is power divided by voltage.", "{P}/{U}"), "U": ("Voltage is power divided by current.", "{P}/{I}")},
        "[a lamp|a heater|a toaster|a kettle|an iron|a motor|a computer|a fan|an oven|a bulb|a charger]",
    ),
    "charge": Formula(
        {"Q": Quantity("charge", "Q", "[C|C|coulombs]", "C", 2, 200), "I": CURRENT, "t": Quantity("time", "t", S, "s", 2, 90)},
        {"Q": ("Charge is current times time.", "{I}*{t}"), "I": ("Current is charge divided by time.", "{Q}/{t}"), "t": ("Time is charge divided by current.", "{Q}/{I}")},
        "[a wire|a battery|a cell|a circuit|an electrolysis cell|a lamp]", 0.6,
    ),
    "wave": Formula(
        {"f": Quantity("frequency", "f", "[Hz|Hz|hertz]", "Hz", 2, 900), "l": Quantity("wavelength", "λ", M, "m", 0.2, 12), "v": Quantity("[speed|wave speed|velocity]", "v", MPS, "m/s", 20, 900)},
        {"v": ("Wave speed is frequency times wavelength.", "{f}*{l}"), "f": ("Frequency is speed divided by wavelength.", "{v}/{l}"), "l": ("Wavelength is speed divided by frequency.", "{v}/{f}")},
        "[a wave|a sound wave|a water wave|a wave on a rope|a wave in a spring|a radio signal|a tone|an ultrasound wave]",
    ),
    "acceleration": Formula(
        {"v": SPEED, "t": Quantity("time", "t", S, "s", 2, 30), "a": Quantity("[acceleration|acceleration|constant acceleration]", "a", "[m/s^2|m/s^2|m/s2|metres per second squared]", "m/s^2", 2, 12, "an ")},
        {"a": ("From rest, acceleration is speed divided by time.", "{v}/{t}"), "v": ("From rest, speed is acceleration times time.", "{a}*{t}"), "t": ("From rest, time is speed divided by acceleration.", "{v}/{a}")},
        "[a car starting from rest|a body that starts from rest|a train leaving a station|a motorbike from rest|a rocket from rest|a runner off the blocks]", 1.2,
    ),
    "density": Formula(
        {"m": Quantity("mass", "m", "[g|g|grams]", "g", 5, 900), "V": Quantity("volume", "V", "[cm^3|cm^3|cubic centimetres|mL|ml|cc]", "cm^3", 2, 300), "d": Quantity("density", "ρ", "[g/cm^3|g/cm^3|grams per cubic centimetre|g per cm^3|g/cc]", "g/cm^3", 1, 20)},
        {"d": ("Density is mass divided by volume.", "{m}/{V}"), "m": ("Mass is density times volume.", "{d}*{V}"), "V": ("Volume is mass divided by density.", "{m}/{d}")},
        "[a stone|a metal|a liquid|a block|an alloy|a coin|a solid|a piece of wood|a sample|an oil|a crystal|a ring|a mineral|a plastic cube|a syrup|a substance]", 2.4,
    ),
    "density in kg": Formula(
        {"m": Quantity("mass", "m", KG, "kg", 5, 900), "V": Quantity("volume", "V", "[m^3|m^3|cubic metres|cubic meters]", "m^3", 0.2, 20), "d": Quantity("density", "ρ", "[kg/m^3|kg/m^3|kg per cubic metre|kilograms per cubic meter]", "kg/m^3", 20, 900)},
        {"d": ("Density is mass divided by volume.", "{m}/{V}"), "m": ("Mass is density times volume.", "{d}*{V}"), "V": ("Volume is mass divided by density.", "{m}/{d}")},
        "[a beam|a gas|a liquid|a rock|a block of ice|a tank of fuel|a concrete slab|a cork|a heap of sand]",
    ),
    "concentration": Formula(
        {"n": MOLES, "V": VOLUME, "c": Quantity("[concentration|molarity|molar concentration]", "c", MOLAR, "mol/L", 0.2, 6)},
        {"c": ("Concentration is moles divided by litres.", "{n}/{V}"), "n": ("Moles are concentration times litres.", "{c}*{V}"), "V": ("Litres are moles divided by concentration.", "{n}/{c}")},
        "[a solution|a salt solution|a sugar solution|an acid solution|a solution of an alkali|a sample of brine|a stock solution]", 1.6,
    ),
    "molar volume": Formula(
        {"n": MOLES, "V": VOLUME},
        {"V": ("At STP one mole of gas has 22.4 L.", "{n}*22.4"), "n": ("At STP one mole of gas has 22.4 L.", "{V}/22.4")},
        "[a gas at STP|an ideal gas at STP|a gas at standard temperature and pressure|a balloon of gas at STP|a gas under standard conditions]", 1.4,
    ),
    "spring": Formula(
        {"F": FORCE, "k": Quantity("[spring constant|stiffness]", "k", "[N/m|N/m|newtons per metre]", "N/m", 20, 400), "x": Quantity("[extension|stretch|elongation]", "x", M, "m", 0.1, 2.5, "an ")},
        {"F": ("Spring force is the constant times the extension.", "{k}*{x}"), "k": ("The constant is force divided by extension.", "{F}/{x}"), "x": ("Extension is force divided by the constant.", "{F}/{k}")},
        "[a spring|a steel spring|a coil spring|a rubber band]", 0.6,
    ),
    "period": Formula(
        {"T": Quantity("[period|time of one oscillation]", "T", S, "s", 2, 20), "f": Quantity("frequency", "f", "[Hz|Hz|hertz]", "Hz", 2, 400)},
        {"f": ("Frequency is one divided by the period.", "1/{T}"), "T": ("The period is one divided by the frequency.", "1/{f}")},
        "[a pendulum|a tuning fork|a wave|a swing|a vibrating string|a rotor]", 0.4,
    ),
    "heat": Formula(
        {"m": MASS, "c": Quantity("[specific heat|specific heat capacity]", "c", "[J/(kg K)|J/kg K|J per kg and K]", "J/(kg K)", 100, 900), "T": Quantity("[rise in temperature|temperature change|warming]", "ΔT", "[K|K|degrees|°C]", "K", 2, 60), "Q": Quantity("[heat|heat energy]", "Q", "[J|J|joules]", "J", 200, 990, "")},
        {"Q": ("Heat is mass times specific heat times temperature change.", "{m}*{c}*{T}"), "T": ("The change is heat divided by mass times specific heat.", "{Q}/({m}*{c})")},
        "[a block of metal|a pot|a liquid|a stone|an oil bath|a piece of copper|a sample]", 0.6,
    ),
}  # fmt: skip
WH = (
    "what is {its} {name}~what {its} {name} is",
    "what is the {name}~what the {name} is",
    "how large is the {name}~how large the {name} is",
    "how [much|great|big] is {its} {name}~how [great|big] {its} {name} is",
    "what {name} does {S} have~what {name} {S} has",
    "which {name} [results|is that|does one get]~which {name} results",
    "how many {units} is the {name}~how many {units} the {name} is",
)
NP = ("the {name}", "{its} {name}", "the {name} of {S}", "the {name}", "the value of the {name}")
SAID_WH = (
    "what is the {name}~what the {name} is",
    "how large is the {name}~how large the {name} is",
    "what {name} [results|is that]~what {name} results",
    "what is its {name}~what its {name} is",
    "how many {units} is the {name}~how many {units} the {name} is",
)
SAID_NP = ("the {name}", "the {name}", "its {name}", "the {name} [in this case|here|of it]")
NOUNS = (("THING", THING), ("MOVER", MOVER), ("DEVICE", DEVICE), ("MATERIAL", MATERIAL))
NAMES = list(FORMULAS)
WEIGHTS = [each.weight for each in FORMULAS.values()]


def formula(teller: Teller) -> Problem:
    """Draw a formula and one of its quantities as the unknown."""
    name = teller.random.choices(NAMES, WEIGHTS)[0]
    chosen = FORMULAS[name]
    wanted = teller.random.choice(list(chosen.works))
    says, expression = chosen.works[wanted]
    given = [letter for letter in chosen.quantities if "{" + letter + "}" in expression]
    numbers = {letter: chosen.quantities[letter].drawn(teller) for letter in given}
    who = teller.say(chosen.who)
    slots = {
        "S": who[0].lower() + who[1:],
        "PUSH": PUSH,
        **{thing: teller.say(names).lower() for thing, names in NOUNS},
    }
    unknown = chosen.quantities[wanted]
    slots |= {"its": "[its|the|its]", "FIND": FIND, "WHAT": WHAT, "name": unknown.names, "units": unknown.units}
    parts: list[str] = []
    brief: list[str] = []
    for letter in given:
        each = chosen.quantities[letter]
        slots[letter] = f"{teller.measure(numbers[letter])} {each.units}"
        parts.append(f"{each.article}{each.names} of {{{letter}}}")
        brief.append(teller.pick(each.sign, each.names) + f" {{{letter}}}")
    ask = _ask(teller, parts, brief, unknown)
    if teller.chance(0.5):
        ask = replace(
            ask, facts=(teller.random.choice(SAYINGS[name][wanted]),), whole=(), brief=(), wh=SAID_WH, np=SAID_NP
        )
    return Problem(
        teller.ask(ask, slots),
        ((says, expression.format(**numbers)),),
        unknown.unit,
    )


def _ask(teller: Teller, parts: list[str], brief: list[str], unknown: Quantity) -> Ask:
    teller.random.shuffle(parts)
    both = " and ".join(parts)
    facts = (
        teller.pick(
            f"{{S}} has {both}",
            f"{{S}} has {both}",
            f"for {{S}} [we measure|somebody measures|a student notes|the book gives|the table shows] {both}",
            f"there is {both} [in the case of|for|with] {{S}}",
            f"{both} [is|are] [known|measured|given|found|recorded] for {{S}}".replace(
                "[is|are]", "is" if len(parts) == 1 else "are"
            ),
        ),
    )
    whole = (
        f"what is the {{name}} of {{S}} with {both}?",
        f"[find|calculate|work out|determine|compute] the {{name}} of {{S}} [with|that has|having] {both}.",
        f"how large is the {{name}} of {{S}} [with|that has] {both}?",
        f"{{S}} has {both}. {{name}}?",
        f"take {{S}} with {both}. {{WHAT}} the {{name}}?",
        f"[take|consider] {{S}} with {both}. {{FIND}} {{its}} {{name}}.",
        f"what {{name}} [belongs to|goes with|results from|follows from] {both}?",
        f"[use|from|with|given] {both}[ to|,] [find|calculate|get] the {{name}}.",
    )
    unit = "" if teller.chance(0.7) else unknown.units
    np = (*NP, unknown.sign) if len(unknown.sign) == 1 and unknown.sign.isascii() and teller.chance(0.3) else NP
    return Ask(facts, WH, np, whole, brief, unit, loose=False)
