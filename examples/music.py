"""Control a music player: reading is free, and changes are confirmed first; a dry run shows them.

python examples/music.py "Make a list 'morning' of my three calmest songs"
"""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

import taiwa
from taiwa.flows.plans import reads, writes
from taiwa.programs import PlanResult, execute_plan


@dataclass
class Song:
    title: str
    artist: str
    beats: int


class Player:
    songs = (Song("Storm", "A", 180), Song("Drift", "B", 60), Song("Walk", "C", 110), Song("Rain", "B", 72))

    def __init__(self) -> None:
        self.saved: dict[str, list[Song]] = {}

    @reads
    def favourites(self, count: Annotated[int, Field(ge=1, le=100)] = 20) -> list[Song]:
        """Return the most played songs."""
        return list(self.songs[:count])

    @reads
    def ordered(
        self, songs: list[Song], by: Literal["title", "artist", "beats"], descending: bool = False
    ) -> list[Song]:
        """Sort songs by tempo; fewer beats are calmer."""
        return sorted(songs, key=lambda song: getattr(song, by), reverse=descending)

    @reads
    def first(self, songs: list[Song], count: int) -> list[Song]:
        """Take the first songs of a list."""
        return songs[:count]

    @writes
    def save(self, name: str, songs: list[Song]) -> str:
        """Save songs as a list under a name."""
        self.saved[name] = songs
        return f"{len(songs)} songs"


PLAYER = taiwa.Api(Player)


def obey(text: str, *, dry: bool = False) -> taiwa.Program[PlanResult]:
    """Run a request; a dry run shows what would be saved."""
    plan = yield from taiwa.programs.extract(PLAYER, text)
    return (yield from execute_plan(PLAYER, plan.value, dry=dry))


if __name__ == "__main__":
    with taiwa.exit_on_error():
        text = " ".join(sys.argv[1:]) or "Save my two calmest songs as 'calm'"
        for each in taiwa.run(obey(text, dry=True), tools=PLAYER.bind(Player())).calls:
            print(f"{each.status}: {each.call.function}", *each.arguments.values(), sep="\n    ")
