"""What a request comes to: all that the built-in model is told of it."""

from dataclasses import dataclass

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.values import Grammar

__all__ = ["ANSWER", "Told", "unsupported"]

ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Told:
    """A task and its prompt. The model reads `<task>` prompt `<mark>` and the beginning of the answer, and goes on.

    `mark` is `answer`, or the name of the score that is asked for. `grammar` holds
    the whole answer, beside what the request holds it to. `tools` are those whose calls may be written.
    """

    task: str
    prompt: str
    mark: str = ANSWER
    grammar: Grammar | None = None
    tools: tuple[str, ...] = ()


def unsupported() -> UnsupportedError:
    """What is told to a program that asks for what the model did not learn."""
    return UnsupportedError(
        "builtin did not learn to answer this: it solves questions of quantities and chemistry, takes orders of the app order, and "
        "assesses and rewrites questions; set a larger model with `taiwa config set model NAME`, or give -m NAME",
        ability="words",
    )
