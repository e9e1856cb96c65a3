"""Read the clues of a crossword from a badly scanned page.

python examples/crossword.py [PAGE.txt]
"""

import sys
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

import taiwa
from taiwa import system, user

INSTRUCTIONS = """\
The text is a scanned page of a crossword. Mend what the scanner garbled, keep the order, and leave out what is not a clue."""

PAGE = """\
THE SAT URDAY CR0SSWORD                    page 14
ACROSS  1 Leaves in hot water (3)   4 Round, ripe and red; a fru1t in law (6)
7 It barks twice: dog and tr ee (4,3)
DOWN  1 A h0t spring?  Tap it (3)   2 N0t early (4)
"""


class Clue(BaseModel):
    number: Annotated[int, Field(ge=1, le=200)]
    words: str = Field(description="the clue without its number and its lengths")
    lengths: list[Annotated[int, Field(ge=1, le=25)]] = Field(
        [], description="of each word of the answer: (3,4) is [3, 4]"
    )


class Crossword(BaseModel):
    title: str | None = None
    across: list[Clue]
    down: list[Clue]


def clues(page: str) -> taiwa.Program[taiwa.programs.TypedAnswer[Crossword]]:
    """Read the clues; in a long list, only the invalid parts are requested again."""
    repair = taiwa.RepairPolicy(rounds=2, patch_above=200)
    return taiwa.programs.extract(Crossword, (system(INSTRUCTIONS), user(page)), repair=repair)


if __name__ == "__main__":
    with taiwa.exit_on_error():
        found = taiwa.run(clues(Path(sys.argv[1]).read_text("utf-8") if sys.argv[1:] else PAGE)).value
        for name, listed in (("across", found.across), ("down", found.down)):
            for clue in listed:
                print(f"{clue.number:>3} {name:6} {clue.words} ({', '.join(map(str, clue.lengths))})")
