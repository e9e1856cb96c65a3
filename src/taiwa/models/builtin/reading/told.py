"""What a request comes to: all that the built-in model is told of it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from taiwa.kernel.values import Grammar

__all__ = ["ANSWER", "Told"]

ANSWER = "answer"
Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A task and its prompt. The model reads `<task>` prompt `<mark>` and the beginning of the answer, and goes on.

    `mark` is `answer`, or the name of the score that is asked for. `begun` is how the answer begins already. `grammar` holds
    the whole answer, beside what the request holds it to. `tools` are those whose calls may be written.
    """

    task: str
    prompt: str
    mark: str = ANSWER
    begun: str = ""
    grammar: Grammar | None = None
    tools: Names = field(default=())
