"""Everyday wordings of formulas that do not name the quantities."""

from collections.abc import Mapping

__all__ = ["DEVICE", "MATERIAL", "MOVER", "PUSH", "SAYINGS", "THING"]

PUSH = "[pushes|pulls|acts on|moves|drags|accelerates]"
THING = "[box|cart|trolley|crate|sledge|car|boat|stone|ball|wagon|block|wardrobe|shopping cart|log]"
MOVER = "[car|ball|stone|truck|skater|bullet|train|cyclist|dog|cart|runner|arrow|boat|horse|motorbike|puck]"
DEVICE = "[lamp|heater|motor|toaster|kettle|radio|drill|fan|iron|bulb|charger]"
MATERIAL = "[liquid|metal|stone|oil|alloy|mineral|plastic|syrup|glass|rock|resin|wood]"

SAYINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "force": {
        "F": ("a {THING} of {m} [is accelerated|speeds up] [at|by|with] {a}", "a {m} {THING} [accelerates|is to accelerate|gains speed] at {a}", "somebody accelerates {m} at {a}"),
        "a": ("a force of {F} {PUSH} a {THING} of {m}", "a {THING} of {m} is [pushed|pulled] with {F}", "a net force of {F} acts on {m}"),
        "m": ("a force of {F} [gives|causes|produces] an acceleration of {a}", "a {THING} is pushed with {F} and accelerates at {a}"),
    },
    "weight": {"F": ("a {THING} with a mass of {m} [hangs on a hook|lies on a table|stands on the floor]", "somebody holds a {THING} of {m}"), "m": ("a {THING} weighs {F} on a spring scale", "the Earth pulls a {THING} down with {F}")},
    "momentum": {
        "p": ("a {MOVER} of {m} moves at {v}", "a {m} {MOVER} has a speed of {v}", "{m} move at {v}"),
        "v": ("a {MOVER} of {m} has a momentum of {p}",),
        "m": ("a {MOVER} moving at {v} has a momentum of {p}",),
    },
    "kinetic energy": {
        "E": ("a {MOVER} of {m} moves at {v}", "a {m} {MOVER} [goes|travels|flies|rolls] at {v}", "a {MOVER} [weighing|with a mass of] {m} [has|reaches] {v}"),
        "m": ("a {MOVER} moving at {v} has a kinetic energy of {E}",),
        "v": ("a {MOVER} of {m} has a kinetic energy of {E}",),
    },
    "potential energy": {
        "E": ("a {THING} of {m} is [lifted|raised|carried] [by |]{h}", "a {THING} of {m} [lies|stands|hangs] {h} above the ground", "a crane lifts {m} to a height of {h}"),
        "h": ("a {THING} of {m} has {E} of potential energy",),
        "m": ("at a height of {h} a {THING} has a potential energy of {E}",),
    },
    "work": {
        "W": ("a force of {F} {PUSH} a {THING} over {d}", "somebody [pushes|pulls|drags] a {THING} {d} with a force of {F}", "a {THING} is moved {d} by a force of {F}", "{F} act along {d}"),
        "F": ("moving a {THING} {d} takes {W} of work", "{W} of work are done over {d}"),
        "d": ("a force of {F} does {W} of work on a {THING}", "with a force of {F}, {W} of work are done"),
    },
    "power": {
        "P": ("a machine does {W} of work in {t}", "{W} of energy are used in {t}", "a motor needs {t} for {W} of work"),
        "W": ("a {P} {DEVICE} runs for {t}", "a {DEVICE} of {P} is on for {t}"),
        "t": ("a {P} {DEVICE} does {W} of work", "a {DEVICE} of {P} uses {W}"),
    },
    "pressure": {
        "p": ("a force of {F} [acts|presses|is spread] on an area of {A}", "{F} press on {A}", "a {THING} presses with {F} on {A}"),
        "F": ("a pressure of {p} acts on {A}", "an area of {A} is under a pressure of {p}"),
        "A": ("a force of {F} makes a pressure of {p}", "{F} cause a pressure of {p}"),
    },
    "ohm": {
        "U": ("a current of {I} flows through {R}", "{I} flow through a resistor of {R}", "a {R} resistor carries {I}"),
        "I": ("a {R} resistor is connected to {U}", "{U} are applied to a resistance of {R}", "a battery of {U} feeds a {DEVICE} of {R}"),
        "R": ("at {U} a current of {I} flows through a {DEVICE}", "a {DEVICE} at {U} draws {I}", "a battery of {U} drives {I} through a {DEVICE}"),
    },
    "electric power": {
        "P": ("a {DEVICE} draws {I} at {U}", "a {DEVICE} runs on {U} with a current of {I}"),
        "I": ("a {P} {DEVICE} is plugged into {U}", "a {DEVICE} of {P} runs on {U}"),
        "U": ("a {P} {DEVICE} draws {I}",),
    },
    "charge": {"Q": ("a current of {I} flows for {t}", "{I} run for {t}"), "I": ("{Q} pass through a wire in {t}",), "t": ("a current of {I} is to carry {Q}",)},
    "wave": {
        "v": ("a wave of {l} swings with {f}", "a tone of {f} has waves {l} long"),
        "f": ("waves {l} long travel at {v}", "a wave moves at {v} and its crests are {l} apart"),
        "l": ("a tone of {f} travels at {v}", "sound of {f} moves at {v}"),
    },
    "acceleration": {
        "a": ("a {MOVER} [goes|accelerates|speeds up] from [rest|zero|a standstill] to {v} in {t}", "in {t} a {MOVER} at rest reaches {v}"),
        "v": ("a {MOVER} [starts from rest|starts] and accelerates at {a} for {t}", "from rest a {MOVER} gains speed at {a} for {t}"),
        "t": ("a {MOVER} accelerates from rest at {a} until it has {v}",),
    },
    "density": {
        "d": ("{V} of a {MATERIAL} [weigh|have a mass of] {m}", "a piece of {MATERIAL} [weighs|has a mass of] {m} and [takes up|fills|has] {V}", "a {MATERIAL} of {m} pushes {V} of water aside", "{m} of a {MATERIAL} [take up|occupy|fill] {V}"),
        "m": ("a {MATERIAL} has a density of {d} and there are {V} of it", "a bottle holds {V} of a {MATERIAL} with a density of {d}"),
        "V": ("a {MATERIAL} has a density of {d} and one takes {m}", "there are {m} of a {MATERIAL} whose density is {d}"),
    },
    "density in kg": {"d": ("{V} of a {MATERIAL} [weigh|have a mass of] {m}", "a block of {m} fills {V}"), "m": ("{V} are filled with a {MATERIAL} of density {d}",), "V": ("there are {m} of a {MATERIAL} with a density of {d}",)},
    "concentration": {
        "c": ("{n} of [salt|sugar|acid|a substance|glucose] are [dissolved|put] in {V} of [water|solution]", "{V} of a solution [contain|hold] {n} of solute"),
        "n": ("there are {V} of a {c} solution", "somebody takes {V} of a solution of {c}", "a flask holds {V} of a {c} acid"),
        "V": ("{n} of a salt are needed and the solution is {c}", "a {c} solution [is to|shall] contain {n}"),
    },
    "molar volume": {"V": ("there are {n} of a gas at STP", "a reaction gives {n} of gas at STP"), "n": ("a gas fills {V} at STP", "{V} of gas are collected at STP")},
    "spring": {"F": ("a spring of {k} is stretched by {x}",), "k": ("a force of {F} stretches a spring by {x}", "{F} make a spring {x} longer"), "x": ("a force of {F} pulls at a spring of {k}",)},
    "period": {"f": ("one swing takes {T}", "a pendulum needs {T} for there and back"), "T": ("a string swings with {f}",)},
    "heat": {"Q": ("{m} of a material with a specific heat of {c} get warmer by {T}",), "T": ("{m} of a material with a specific heat of {c} take in {Q}",)},
}  # fmt: skip
"""By formula and unknown: facts that give everything needed."""
