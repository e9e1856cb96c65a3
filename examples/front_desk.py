"""One front desk for everything: choose what a guest wants and read it in one call, or ask.

python examples/front_desk.py "A table for two on Friday at seven"
"""

import sys
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import taiwa
from taiwa.programs import NeedsClarification, Routed


class Booking(BaseModel):
    """A table in the restaurant."""

    people: Annotated[int, Field(ge=1, le=30)]
    day: str
    hour: str


class Complaint(BaseModel):
    """Something went wrong."""

    about: Literal["room", "food", "staff", "bill", "other"]
    words: str = Field(description="in the guest's own words")
    urgent: bool


class Bill:
    """The guest's bill."""

    def entries(self, day: str) -> list[float]:
        """Return the charges of a day."""
        raise NotImplementedError

    def total(self, amounts: list[float]) -> float:
        """Add amounts up."""
        raise NotImplementedError


DESK: dict[str, object] = {"booking": Booking, "complaint": Complaint, "bill": taiwa.Api(Bill, undeclared="read")}


def desk(text: str) -> taiwa.Program[Routed | NeedsClarification]:
    """Find out what a guest wants."""
    return taiwa.programs.route(DESK, text)


if __name__ == "__main__":
    with taiwa.exit_on_error():
        match taiwa.run(desk(" ".join(sys.argv[1:]) or "It is cold in my room")):
            case Routed(to, value):
                print(f"{to}: {value}")
            case NeedsClarification(question):
                print(question)
