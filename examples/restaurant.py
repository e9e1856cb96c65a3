"""Take the order of a table in a noodle restaurant, guest by guest.

python examples/restaurant.py "ラーメン二つ、一つはネギ抜きで。それから餃子を一皿、みんなで。"
"""

import sys
from collections import Counter
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import taiwa

Topping = Literal["egg", "leek", "seaweed", "pork", "bamboo shoots"]


class Noodles(BaseModel):
    dish: Literal["ramen", "udon", "soba"]
    broth: Literal["soy", "salt", "miso"] | None = None
    more: list[Topping] = []
    without: list[Topping] = []


class Side(BaseModel):
    dish: Literal["dumplings", "edamame", "rice"]
    plates: Annotated[int, Field(ge=1)] = 1


class Guest(BaseModel):
    noodles: Noodles | None = None
    drink: Literal["water", "tea", "beer"] | None = None


class Table(BaseModel):
    guests: list[Guest]
    shared: list[Side] = Field([], description="for the middle of the table")
    not_understood: list[str] = []


def kitchen(wanted: Table) -> list[str]:
    """Return the lines for the kitchen."""
    noodles = Counter(guest.noodles.model_dump_json(exclude_defaults=True) for guest in wanted.guests if guest.noodles)
    lines = [f"{count} x {what}" for what, count in noodles.items()]
    return lines + [f"{side.plates} x {side.dish}" for side in wanted.shared]


if __name__ == "__main__":
    with taiwa.exit_on_error():
        print("\n".join(kitchen(taiwa.extract(Table, " ".join(sys.argv[1:]) or "Two miso ramen and some dumplings"))))
