"""What the model learns from: a task, what it is told, and what it is to write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

__all__ = ["Draw", "Sample", "Share", "Span", "choose"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of an answer. `weight` is what it counts in the loss: 1 for the model's own words, less for a tool's result."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One exchange. `prompt` is what the runtime makes of a request, so it is already in that form.

    `kind` is what it is counted as when the model is measured. `answer` is what stands behind the answer mark, without an end.
    `best` is how likely the likeliest answer was to be drawn: below 1 nobody can know the answer from the prompt.
    """

    task: str
    kind: str
    prompt: str
    answer: tuple[Span, ...]
    best: float = 1.0

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(span.text for span in self.answer)


Draw: TypeAlias = Callable[[Random], Sample]
"""Makes one sample; all chance comes from the generator that is given, so that a seed gives the same samples again."""


@dataclass(frozen=True, slots=True)
class Share:
    """A kind of sample, and how often it is drawn beside its neighbours."""

    weight: float
    draw: Draw


def choose(random: Random, shares: Mapping[str, Share]) -> Sample:
    """Draw one sample of some kind."""
    names = list(shares)
    name = random.choices(names, [shares[each].weight for each in names])[0]
    return shares[name].draw(random)
