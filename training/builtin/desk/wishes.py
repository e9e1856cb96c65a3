"""The meaning of an order, before it is put into words: dishes, sizes, quantities and extras."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from taiwa.models.builtin.order_app import CREAMERS, FLAVOURS, MILKS, SWEETENERS, OrderLine
from training.builtin.desk.menu import MENU

__all__ = ["DRINKS", "SHORT_DRINKS", "Extra", "Wish", "extra", "extras", "quantity", "wish", "wishes"]


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra: its name in the state, an amount before it ("" for none), and its sort."""

    name: str
    sort: str
    measure: str = ""

    @property
    def text(self) -> str:
        """Return the extra as the state stores it."""
        return f"{self.measure} {self.name}" if self.measure else self.name


@dataclass(frozen=True, slots=True)
class Wish:
    """An item that a guest wants."""

    name: str
    size: str = ""
    quantity: int = 1
    extras: tuple[Extra, ...] = ()

    def line(self, number: int) -> OrderLine:
        """Return the order line of the item."""
        return OrderLine(number, self.name, self.size, self.quantity, tuple(extra.text for extra in self.extras))


Weights: TypeAlias = Mapping[str, float]
Maker: TypeAlias = "Callable[[Random, str], Extra]"
DRINKS = ("coffee", "tea", "cold")
FAVOURITES: Weights = {
    "latte": 9, "cappuccino": 7, "espresso": 5, "coffee": 6, "americano": 5, "mocha": 5, "flat white": 5, "latte macchiato": 4,
    "macchiato": 4, "chai latte": 4, "cold brew": 3, "hot chocolate": 3, "matcha latte": 3, "lungo": 3, "ristretto": 3,
    "cortado": 2, "tea": 2, "iced tea": 2, "bagel": 7, "croissant": 3, "blueberry muffin": 4, "apple bran muffin": 4,
    "lemon poppyseed muffin": 4, "muffin": 2, "cookie": 2, "scone": 1.5, "brownie": 1.5, "cake": 1.5, "sandwich": 2, "toast": 2,
}  # fmt: skip
NAMES = tuple(MENU)
SHARES = tuple(FAVOURITES.get(name, 0.9) for name in NAMES)

CUPS: Weights = {
    "tall": 5, "grande": 6, "venti": 5, "short": 3, "small": 4, "medium": 4, "large": 5, "regular": 1, "extra-large": 1,
    "mini": 0.3, "trenta": 0.5,
}  # fmt: skip
SHOTS: Weights = {
    "single": 3, "double": 5, "solo": 2, "doppio": 3, "triple": 3, "quad": 2, "short": 0.5, "small": 0.5, "large": 0.5,
}  # fmt: skip
PORTIONS: Weights = {"small": 3, "large": 3, "mini": 1.5, "medium": 0.5, "regular": 0.5, "extra-large": 0.5}
SIZED = {"coffee": 0.42, "tea": 0.35, "cold": 0.35, "muffin": 0.07, "baked": 0.05, "sweet": 0.06, "sandwich": 0.05}
COLD_DRINKS = ("iced tea", "cold brew", "frappe", "affogato")
NO_COFFEE = (
    "milk",
    "hot chocolate",
    "lemon tea",
    "ginger tea",
    "herbal tea",
    "chamomile tea",
    "rooibos tea",
    "peppermint tea",
)
SHORT_DRINKS = ("espresso", "ristretto", "lungo", "macchiato")

MILK_NAMES = tuple(MILKS.split("|"))
FLAVOUR_NAMES = tuple(FLAVOURS.replace("\n", "").split("|"))
SWEET_NAMES = tuple(SWEETENERS.split("|"))
CREAMER_NAMES = tuple(CREAMERS.split("|"))
TOPPING_WEIGHTS: Weights = {
    "whipped cream": 4, "foam": 5, "cinnamon": 2, "nutmeg": 2, "cocoa": 1, "cream": 2, "milk": 2, "half and half": 1.5,
    "heavy cream": 1, "sprinkles": 0.5, "marshmallows": 1, "caramel sauce": 0.7, "chocolate sauce": 0.7, "water": 1, "salt": 0.2,
    "ice": 2,
}  # fmt: skip
TEA_TOPPINGS: Weights = {"lemon": 4, "mint": 1.5, "ginger": 1, "milk": 4, "cream": 1, "ice": 2, "water": 0.5}
COLD_TOPPINGS: Weights = {"ice": 6, "lemon": 2, "mint": 1}
TEMPERATURES: Weights = {"iced": 6, "hot": 2, "extra hot": 3, "warm": 1.5, "lukewarm": 0.5}
STRENGTHS: Weights = {
    "decaf": 6,
    "half caf": 2,
    "one third caf": 0.7,
    "two thirds caf": 0.7,
    "strong": 1,
    "weak": 0.7,
    "dry": 0.5,
    "wet": 0.4,
    "unsweetened": 0.4,
    "blended": 0.3,
}
SPREADS: Weights = {
    "butter": 5, "cream cheese": 5, "jam": 3, "strawberry jam": 3, "peanut butter": 1, "chocolate spread": 1, "honey": 1,
}  # fmt: skip
FILLINGS: Weights = {
    "cheese": 2, "ham": 1, "egg": 1, "bacon": 1, "tomato": 2, "lettuce": 2, "onion": 2, "pickles": 2, "mayonnaise": 3, "mustard": 2,
    "butter": 2,
}  # fmt: skip
HANDLED: Weights = {
    "warmed": 5,
    "cut in half": 4,
    "sliced": 2.5,
    "to go": 2,
    "for here": 1,
    "toasted": 2,
    "gluten-free": 0.8,
    "vegan": 0.5,
}
BAGELS: Weights = {"plain": 2, "sesame": 2, "everything": 2, "whole wheat": 1}
CUPPED: Weights = {"to go": 5, "for here": 2.5, "lid": 2, "no lid": 1, "with room": 2, "straw": 0.5, "no straw": 0.4}
MEASURED: Weights = {"": 5, "no": 3, "light": 2.5, "extra": 3, "half": 0.3}
COUNTS: Weights = {"": 10, "2": 6, "3": 4, "4": 2, "5": 1, "6": 0.5, "no": 0.6, "light": 1, "extra": 1.4, "half": 0.2}
PINCHES: Weights = {"": 6, "2": 6, "3": 3, "4": 1.2, "5": 0.5, "no": 1.5, "light": 0.7, "extra": 0.6}
SHOT_COUNTS: Weights = {"": 6, "2": 3, "3": 1.2, "4": 0.5}


def _one(random: Random, weights: Weights) -> str:
    return random.choices(tuple(weights), tuple(weights.values()))[0]


def quantity(random: Random) -> int:
    """Draw a quantity: mostly one, occasionally a round for an office."""
    chance = random.random()
    if chance < 0.62:
        return 1
    if chance < 0.86:
        return random.choice((2, 2, 2, 3))
    return random.randint(3, 12) if chance < 0.95 else random.randint(10, 40)


def _milk(random: Random, _: str) -> Extra:
    return Extra(random.choice(MILK_NAMES), "milk")


def _creamer(random: Random, _: str) -> Extra:
    return Extra(
        random.choice(CREAMER_NAMES), "topping", _one(random, {"": 8, "no": 0.5, "light": 1, "extra": 1, "2": 1})
    )


def _syrup(random: Random, _: str) -> Extra:
    return Extra(f"{random.choice(FLAVOUR_NAMES)} syrup", "syrup", _one(random, COUNTS))


def _sweet(random: Random, _: str) -> Extra:
    name = "sugar" if random.random() < 0.4 else random.choice(SWEET_NAMES)
    return Extra(name, "sweet", _one(random, PINCHES))


def _topping(random: Random, kind: str) -> Extra:
    weights = {"tea": TEA_TOPPINGS, "cold": COLD_TOPPINGS}.get(kind, TOPPING_WEIGHTS)
    return Extra(_one(random, weights), "topping", _one(random, MEASURED))


def _spread(random: Random, kind: str) -> Extra:
    name = _one(random, FILLINGS if kind == "sandwich" else SPREADS)
    return Extra(name, "topping", _one(random, {"": 7, "no": 2, "light": 1, "extra": 2, "2": 0.5}))


def _plain(weights: Weights, sort: str) -> Maker:
    return lambda random, _: Extra(_one(random, weights), sort)


HOT_EXTRAS: Mapping[str, tuple[float, Maker]] = {
    "temperature": (4, _plain(TEMPERATURES, "temperature")), "milk": (5, _milk), "syrup": (6, _syrup), "sweet": (3, _sweet),
    "topping": (4, _topping), "strength": (2.4, _plain(STRENGTHS, "strength")), "served": (2, _plain(CUPPED, "served")),
    "shot": (1.6, lambda random, _: Extra("espresso shot", "shot", _one(random, SHOT_COUNTS))), "creamer": (0.5, _creamer),
}  # fmt: skip
TEA_EXTRAS: Mapping[str, tuple[float, Maker]] = {
    "temperature": (3, _plain(TEMPERATURES, "temperature")), "milk": (1.5, _milk), "sweet": (4, _sweet), "topping": (4, _topping),
    "syrup": (1, _syrup), "served": (2, _plain(CUPPED, "served")), "strength": (1, _plain({"decaf": 3, "strong": 2, "weak": 1}, "strength")),
}  # fmt: skip
COLD_EXTRAS: Mapping[str, tuple[float, Maker]] = {
    "topping": (5, _topping), "served": (3, _plain(CUPPED, "served")), "temperature": (0.6, _plain({"warm": 1}, "temperature")),
}  # fmt: skip
BAKED_EXTRAS: Mapping[str, tuple[float, Maker]] = {"handled": (5, _plain(HANDLED, "handled")), "spread": (5, _spread)}
SWEET_EXTRAS: Mapping[str, tuple[float, Maker]] = {
    "handled": (6, _plain(HANDLED, "handled")),
    "topping": (1.5, lambda random, _: Extra(_one(random, {"whipped cream": 3, "chocolate sauce": 1}), "topping", _one(random, MEASURED))),
}  # fmt: skip
KIND_EXTRAS: Mapping[str, Mapping[str, tuple[float, Maker]]] = {
    "coffee": HOT_EXTRAS, "tea": TEA_EXTRAS, "cold": COLD_EXTRAS, "muffin": BAKED_EXTRAS, "baked": BAKED_EXTRAS,
    "sweet": SWEET_EXTRAS, "sandwich": BAKED_EXTRAS,
}  # fmt: skip
SEVERAL = ("syrup", "sweet", "topping", "handled", "spread")
"""Sorts of which an item may have two."""


def extra(random: Random, name: str, have: Sequence[Extra] = ()) -> Extra | None:
    """Draw an extra that fits the dish and its other extras; None if no draw fits."""
    kind = MENU[name].kind
    offered = KIND_EXTRAS[kind]
    if name == "bagel" and random.random() < 0.15 and not any(each.sort == "bagel" for each in have):
        return Extra(_one(random, BAGELS), "bagel")
    if name == "coffee" and random.random() < 0.08 and not any(each.sort == "strength" for each in have):
        return Extra("black", "strength")
    for _ in range(4):
        sort = random.choices(tuple(offered), [weight for weight, _ in offered.values()])[0]
        found = offered[sort][1](random, kind)
        if (found.sort == "temperature" and name in COLD_DRINKS) or (found.sort == "strength" and name in NO_COFFEE):
            continue
        if all(_beside(found, each) for each in have):
            return found
    return None


def _beside(one: Extra, other: Extra) -> bool:
    if one.name == other.name or {one.name, other.name} == {"cream", "cream cheese"}:
        return False
    pair = {one.name, other.name}
    if pair & {"to go", "lid", "no lid"} and pair & {"for here"}:
        return False
    if pair <= {"cut in half", "sliced"} or pair <= {"lid", "no lid"} or pair <= {"straw", "no straw"}:
        return False
    if "milk" in pair and (one.sort == "milk" or other.sort == "milk"):
        return False
    return one.sort != other.sort or one.sort in SEVERAL or one.sort == "served"


def extras(random: Random, name: str, most: int = 5) -> tuple[Extra, ...]:
    """Draw the extras of a dish: often none, occasionally many."""
    rich = MENU[name].kind in ("coffee", "tea")
    weights = (38, 30, 17, 9, 4, 2) if rich else (52, 34, 11, 3, 0, 0)
    count = min(random.choices(range(6), weights)[0], most)
    found: list[Extra] = []
    for _ in range(count):
        more = extra(random, name, found)
        if more is not None:
            found.append(more)
    return tuple(found)


def size(random: Random, name: str) -> str:
    """Draw a size that is sold."""
    kind = MENU[name].kind
    weights = SHOTS if name in SHORT_DRINKS else CUPS if kind in DRINKS else PORTIONS
    return _one(random, weights)


def wish(random: Random, most_extras: int = 5) -> Wish:
    """Draw one item."""
    name = random.choices(NAMES, SHARES)[0]
    kind = MENU[name].kind
    chosen = size(random, name) if random.random() < SIZED[kind] else ""
    return Wish(name, chosen, quantity(random), extras(random, name, most_extras))


def wishes(random: Random, most: int = 6) -> tuple[Wish, ...]:
    """Draw the items of one turn; in large orders each has fewer extras."""
    count = min(random.choices(range(1, 7), (46, 26, 14, 8, 4, 2))[0], most)
    found = [wish(random, 5 if count < 3 else 3 if count < 5 else 2) for _ in range(count)]
    if count > 1 and random.random() < 0.12:
        at = random.randrange(1, count)
        found[at] = replace(
            found[at],
            name=found[0].name,
            extras=extras(random, found[0].name, 2),
            size=found[at].size and found[0].size,
        )
    return tuple(found)
