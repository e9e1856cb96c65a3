"""Change a calendar by a sentence.

python examples/appointments.py "Move the dentist to Friday at three, and tell Aiko"
"""

import sys
from typing import Literal

from pydantic import BaseModel, Field

import taiwa


class When(BaseModel):
    day: str = Field(description="as it was said: today, next Tuesday, 3 May")
    hours: str | None = Field(None, description="as they were said: 15:00, noon to two, after lunch")


class Which(BaseModel):
    """Leads to an appointment that is there already; whatever was said of it."""

    about: str | None = None
    with_: list[str] = Field([], alias="with")
    when: When | None = None


class Add(BaseModel):
    do: Literal["add"]
    about: str
    when: When
    people: list[str] = []
    place: str | None = None


class Move(BaseModel):
    do: Literal["move"]
    which: Which
    to: When


class Invite(BaseModel):
    do: Literal["invite"]
    which: Which
    people: list[str] = Field(min_length=1)


class Cancel(BaseModel):
    do: Literal["cancel"]
    which: Which


CHANGES = taiwa.OutputType(list[Add | Move | Invite | Cancel], name="Changes")


if __name__ == "__main__":
    with taiwa.exit_on_error():
        for change in taiwa.extract(CHANGES, " ".join(sys.argv[1:]) or "Lunch with Ken on Monday at noon"):
            print(f"{change.do}:", change.model_dump_json(exclude={"do"}, exclude_defaults=True))
