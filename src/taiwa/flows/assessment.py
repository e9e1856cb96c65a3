"""What a model makes of a dialogue: five scores and three questions back, whichever way they were got."""

from typing import Literal, TypeAlias

from taiwa.kernel.records import value

__all__ = ["SCORES", "Assessment", "Level", "Source", "Words", "Written"]

Level: TypeAlias = Literal[1, 2, 3, 4, 5]
"""1 is most true, 5 least."""
Source: TypeAlias = Literal["typed", "functions", "labels", "decisions"]
"""Written as a typed answer · by the choice of a function · read from probabilities of labels · from the decision wire."""
SCORES = ("clarity", "is_question", "is_consultation", "in_internal_docs", "ask_person")
SURENESS = (0.05, 0.45, 0.65, 0.8, 0.95)
"""How likely a statement is taken to be false when a model writes 1 to 5 and nobody knows how sure it was."""


@value(tag="assessment-output")
class Written:
    """What a model makes of a dialogue. Missing scores count as 1."""

    clarity: Level = 1
    is_question: Level = 1
    is_consultation: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""


@value(tag="clarifying-questions")
class Words:
    """Questions back to the user, empty where there is no need."""

    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""


@value(tag="assessment")
class Assessment:
    """Five scores, 1 most true and 5 least, and what could be asked back.

    A score is a whole number where a model wrote it, and the expected one where it was read from probabilities. `chances`
    holds these by name, level 1 first, and `confidence` how sure each was: 1 where one level had it all, 0 where all were alike.
    """

    clarity: float = 1
    is_question: float = 1
    is_consultation: float = 1
    in_internal_docs: float = 1
    ask_person: float = 1
    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""
    source: Source = "typed"
    chances: tuple[tuple[str, tuple[float, ...]], ...] = ()
    confidence: tuple[tuple[str, float], ...] = ()

    @property
    def sureness(self) -> float | None:
        """How sure the least sure score was; None where nobody told."""
        return min((each for _, each in self.confidence), default=None)

    def unlikely(self, name: str, level: float) -> float:
        """Say how likely a score is at least so high, that is, the statement not true enough.

        >>> Assessment(clarity=4).unlikely("clarity", 2)
        0.8
        """
        chances = dict(self.chances).get(name)
        if chances is not None:
            return min(sum(each for at, each in enumerate(chances, 1) if at >= level), 1.0)
        score = float(getattr(self, name))
        if level <= 1:
            return 1.0
        shifted = min(max(score - (level - 2), 1.0), 5.0)
        low = int(shifted)
        high = min(low + 1, 5)
        return SURENESS[low - 1] + (SURENESS[high - 1] - SURENESS[low - 1]) * (shifted - low)
