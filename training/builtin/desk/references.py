"""References to a line of the order: by dish, by a distinguishing extra, by position, or `that`."""

from random import Random

from taiwa.models.builtin.order_app import Order, OrderLine
from training.builtin.desk import english, japanese
from training.builtin.desk.english_words import SIZE_WORDS as SIZES_EN
from training.builtin.desk.english_words import STANDS as STANDS_EN
from training.builtin.desk.japanese_words import SIZE_WORDS as SIZES_JA

__all__ = ["named_alone", "reference"]

FIRST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
PLACES = ("一つ目", "二つ目", "三つ目", "四つ目", "五つ目", "六つ目", "七つ目", "八つ目")


def named_alone(order: Order, line: OrderLine) -> bool:
    """Return true if no other line has the same dish."""
    return sum(each.name == line.name for each in order.lines) == 1


def reference(random: Random, code: str, order: Order, line: OrderLine) -> str:
    """Return words that refer to this line only."""
    ways = []
    if named_alone(order, line):
        ways += ["name"] * 6
    if line.size and sum(each.size == line.size and each.name == line.name for each in order.lines) == 1:
        ways += ["size"] * (2 if named_alone(order, line) else 5)
    alone = [
        option
        for option in line.options
        if option in STANDS_EN and sum(option in each.options for each in order.lines) == 1
    ]
    if alone and code == "en":
        ways += ["option"]
    if line is order.lines[-1]:
        ways += ["that"] * (5 if len(order.lines) == 1 else 2)
    if len(order.lines) > 1 or not ways:
        ways += ["place"]
    way = random.choice(ways)
    if way == "option":
        return (
            f"the {STANDS_EN[alone[0]][0][0]} one" if STANDS_EN[alone[0]][0] else f"the one {STANDS_EN[alone[0]][1][0]}"
        )
    if way == "place":
        return _place(random, code, order, line)
    return (_english if code == "en" else _japanese)(random, way, line)


def _place(random: Random, code: str, order: Order, line: OrderLine) -> str:
    at = order.lines.index(line)
    last = line is order.lines[-1] and len(order.lines) > 1
    if code == "ja":
        return random.choice((PLACES[at], PLACES[at], "最後の" if last else PLACES[at], f"{line.number}番"))
    if last and random.random() < 0.4:
        return random.choice(("the last one", "the last thing", "the last item"))
    return random.choice(
        (
            f"the {FIRST[at]} one",
            f"the {FIRST[at]} one",
            f"number {line.number}",
            f"the {FIRST[at]} item",
            f"line {line.number}",
            f"item {line.number}",
        )
    )


def _english(random: Random, way: str, line: OrderLine) -> str:
    several = line.quantity > 1
    if way == "that":
        return random.choice(("those", "them", "these") if several else ("that", "it", "that one", "that", "it"))
    owner = random.choice(("the", "the", "the", "my", "my", "those" if several else "that", "our", "the"))
    size = f" {english.stands(random, SIZES_EN.get(line.size, (line.size,)))}" if way == "size" else ""
    return f"{owner}{size} {english.noun(random, line.name, several=several)}"


def _japanese(random: Random, way: str, line: OrderLine) -> str:
    if way == "that":
        return random.choice(("それ", "これ", "今の", "さっきの"))
    if way == "size":
        said = japanese.stands(random, SIZES_JA[line.size])
        return f"{said}{'' if said.endswith('い') else 'の'}{japanese.noun(random, line.name)}"
    return japanese.noun(random, line.name)
