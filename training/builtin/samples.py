"""Training samples: a task, a prompt and an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

__all__ = ["Draw", "Sample", "Share", "Span", "choose"]


@dataclass(frozen=True, slots=True)
class Span:
    """A segment of an answer. `weight` is its loss weight: 1 for the model's own text, less for a tool result."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt and its answer. `prompt` is the text that the runtime makes of a request.

    `kind` groups samples in measurements. `answer` is the text after the answer marker, without an end token.
    """

    task: str
    kind: str
    prompt: str
    answer: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Return the whole answer."""
        return "".join(span.text for span in self.answer)


Draw: TypeAlias = Callable[[Random], Sample]
"""A function that makes one sample. All randomness comes from the generator passed in, so a seed reproduces the samples."""


@dataclass(frozen=True, slots=True)
class Share:
    """A kind of sample and its weight."""

    weight: float
    draw: Draw


def choose(random: Random, shares: Mapping[str, Share]) -> Sample:
    """Draw a sample of a random kind."""
    names = list(shares)
    name = random.choices(names, [shares[each].weight for each in names])[0]
    return shares[name].draw(random)
