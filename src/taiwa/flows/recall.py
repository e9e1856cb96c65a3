"""What the same person said in other dialogues: an effect, which whoever keeps the dialogues answers."""

from taiwa.kernel.effects import Effect
from taiwa.kernel.records import value

__all__ = ["Recall", "Recalled"]


@value(tag="earlier-turn")
class Recalled:
    """Some words of an earlier turn, and the conversation that it stands in."""

    session: str
    node: str
    words: str


@value(tag="search-earlier-sessions")
class Recall(Effect[tuple[Recalled, ...]]):
    """Find what a person said in other dialogues that shares words with a text, best first."""

    person: str
    text: str
    limit: int = 3
