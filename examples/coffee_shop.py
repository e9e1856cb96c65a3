"""Take the order of a coffee shop from a sentence.

python examples/coffee_shop.py "Two large oat lattes and a croissant, warm please"
taiwa extract examples.coffee_shop:Order "Two large oat lattes and a croissant, warm please" -v
"""

import sys
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import taiwa

Cups = Annotated[int, Field(ge=1, le=20)]


class Coffee(BaseModel):
    kind: Literal["coffee"]
    name: Literal["espresso", "latte", "cappuccino", "filter coffee"]
    size: Literal["small", "medium", "large"] = "medium"
    milk: Literal["cow", "oat", "soy", "none"] | None = Field(None, description="as the house makes it, if not said")
    shots: Annotated[int, Field(ge=1, le=4)] = 1
    cups: Cups = 1


class Tea(BaseModel):
    kind: Literal["tea"]
    leaf: Literal["sencha", "hojicha", "earl grey", "mint"]
    iced: bool = False
    cups: Cups = 1


class Bakery(BaseModel):
    kind: Literal["bakery"]
    name: Literal["croissant", "scone", "banana bread"]
    warm: bool = False
    pieces: Cups = 1


class Unclear(BaseModel):
    kind: Literal["unclear"]
    words: str = Field(description="what was said and is not on the menu")


class Order(BaseModel):
    items: list[Annotated[Coffee | Tea | Bakery | Unclear, Field(discriminator="kind")]]


if __name__ == "__main__":
    with taiwa.exit_on_error():
        for item in taiwa.extract(Order, " ".join(sys.argv[1:]) or "A large oat latte and two scones").items:
            print(f"{item.kind}:", *item.model_dump(exclude={"kind"}, exclude_defaults=True).values())
