"""Draw a description as SVG.

python examples/drawing.py "A red house with a blue door, and the sun" > house.svg
"""

import sys
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import taiwa

Across = Annotated[float, Field(ge=0, le=100)]
Colour = Literal["black", "white", "grey", "red", "orange", "yellow", "green", "blue", "brown"]


class Box(BaseModel):
    draw: Literal["box"]
    x: Across
    y: Across
    width: Across
    height: Across
    fill: Colour = "white"


class Circle(BaseModel):
    draw: Literal["circle"]
    x: Across
    y: Across
    radius: Across
    fill: Colour = "white"


class Drawing(BaseModel):
    parts: list[Box | Circle] = Field(description="from back to front; 100 by 100, x from the left, y from above")


def svg(drawing: Drawing) -> str:
    """Write a drawing as SVG."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{"".join(map(_part, drawing.parts))}</svg>'


def _part(part: Box | Circle) -> str:
    if isinstance(part, Box):
        return f'<rect x="{part.x}" y="{part.y}" width="{part.width}" height="{part.height}" fill="{part.fill}"/>'
    return f'<circle cx="{part.x}" cy="{part.y}" r="{part.radius}" fill="{part.fill}"/>'


if __name__ == "__main__":
    with taiwa.exit_on_error():
        print(svg(taiwa.extract(Drawing, " ".join(sys.argv[1:]) or "A yellow sun over a green field")))
