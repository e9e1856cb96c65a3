"""The results of the methods of a client."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Generic, TypeVar

from taiwa.flows import extract as extracting
from taiwa.flows.extract import Attempt
from taiwa.kernel.messages import FinishReason, Usage
from taiwa.retrieval.tables import table_text
from taiwa.structured import Fix

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Generation(Generic[T]):
    """One answer: its `text`, the `value` parsed by the constraint, and the bill of all its calls.

    `usage` is None if the server did not report it; `cost` is in currency units, None if the price is unknown.
    """

    text: str
    value: T
    finish: FinishReason
    usage: Usage | None = None
    cost: Decimal | None = None

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows."""
        return self.text


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """The outcome of `try_extract`: a value, or the error that says why there is none, with all attempts and their bill."""

    value: T | None
    error: "extracting.ExtractError | None"
    attempts: tuple[Attempt, ...]
    usage: Usage | None
    cost: Decimal | None

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The repairs of the last attempt's text."""
        return self.attempts[-1].fixes if self.attempts else ()

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the value or the error, and what was wrong with each attempt."""
        rows = [(each.text, "; ".join(each.diagnostics) or "valid") for each in self.attempts]
        result = f"```python\n{self.value!r}\n```" if self.error is None else f"**{self.error}**"
        return f"{result}\n\n{table_text(('attempt', 'problems'), rows)}"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A conversation in a list: its first words, the model that wrote last ("": not known), and the cost of all its turns.

    `cost` is in currency units, None if it is not known; `at` is when it moved last.
    """

    name: str
    app: str
    turns: int
    text: str
    model: str
    cost: Decimal | None
    at: datetime
