"""A form that asks back until it is complete and valid, and then hands a record to a program.

taiwa apps confirm examples/intake/intake.md
taiwa chat examples/intake/intake.md
"""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime

import taiwa
from taiwa.programs import extract


@dataclass
class Said:
    """What a patient said of a visit; null for what was not said."""

    name: str | None = None
    born: str | None = None  # the date of birth as YYYY-MM-DD
    reason: str | None = None  # why the patient comes


def turn(conversation: object, text: str) -> taiwa.Program[taiwa.Reply]:
    """Read the text, and ask for one thing after the other that is missing or cannot be."""
    del conversation
    read = yield from extract(Said, text)
    said = asdict(read.value)
    name = said["name"] or (yield taiwa.AskUser("What is your name?"))
    born = said["born"] or ""
    while (problem := problem_of(born)) is not None:
        born = yield taiwa.AskUser(problem)
    reason = said["reason"] or (yield taiwa.AskUser("Why do you come?", ("a check-up", "pain", "something else")))
    return book({"name": name, "born": born.strip(), "reason": reason})


def problem_of(born: str) -> str | None:
    """Return what to ask about a date of birth; None if it is one."""
    try:
        found = date.fromisoformat(born.strip())
    except ValueError:
        return "When were you born? Write the date as 1990-12-31."
    today = datetime.now(UTC).date()
    return None if date(1900, 1, 1) < found <= today else f"{found} cannot be a date of birth. Which is it?"


def book(visit: dict[str, str]) -> taiwa.Reply:
    """Book a visit: what stands behind a form, and gets only what is complete."""
    return taiwa.Reply(f"Thank you, {visit['name']}. The visit is booked: {visit['reason']}.", {"visit": {**visit}})
