"""Classify the mood of a text in one word, with a reason.

python examples/sentiment.py "The parcel came a week late, but the note in it made my day"
"""

import sys
from typing import Literal

from pydantic import BaseModel, Field

import taiwa


class Mood(BaseModel):
    # The reason comes first, so that the model thinks before it judges.
    reason: str = Field(description="the words that show it, quoted", max_length=200)
    mood: Literal["good", "neutral", "bad", "mixed"]


if __name__ == "__main__":
    with taiwa.exit_on_error():
        found = taiwa.extract(Mood, " ".join(sys.argv[1:]) or "Well, that could have gone worse")
        print(f"{found.mood}: {found.reason}")
