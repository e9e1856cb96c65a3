"""Keep a health diary in free text. Missing information is asked for, not invented.

python examples/health_diary.py "Took two ibuprofen at noon, the headache is nearly gone" "Since this morning"
"""

import sys
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

import taiwa
from taiwa import Message, system, user
from taiwa.programs import NeedsClarification, Routed

INSTRUCTIONS = "Entries of a health diary. Write down what was said and nothing else; give no advice."


class Medicine(BaseModel):
    name: str
    amount: float = Field(gt=0)
    unit: Literal["pills", "mg", "ml", "drops"]
    when: str = Field(description="as it was said")


class Symptom(BaseModel):
    what: str
    strength: Literal["light", "medium", "strong"]
    since: str | None = None
    ended: bool = False


class Measure(BaseModel):
    what: Literal["weight", "temperature", "pulse", "blood sugar"]
    number: float
    unit: str


class Entry(BaseModel):
    medicines: list[Medicine] = []
    symptoms: list[Symptom] = []
    measures: list[Measure] = []


def entry(said: Sequence[str]) -> taiwa.Program[Routed | NeedsClarification]:
    """Read an entry from everything said so far, or ask for what is missing."""
    talk: tuple[Message, ...] = (system(INSTRUCTIONS), *(user(words) for words in said))
    return taiwa.programs.route({"entry": Entry}, talk)


if __name__ == "__main__":
    with taiwa.exit_on_error():
        match taiwa.run(entry(sys.argv[1:] or ["38.5 degrees this morning, and a light headache since noon"])):
            case Routed(value=found):
                assert isinstance(found, Entry)
                print(found.model_dump_json(indent=2, exclude_defaults=True))
            case NeedsClarification(question):
                print(question)
