"""Run a program again from its journal: no model call, no tool call."""

from typing import TypeVar

from taiwa.kernel.effects import Program
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Ledger, Limits
from taiwa.kernel.session import Session

__all__ = ["replay"]

T = TypeVar("T")


def replay(program: Program[T], journal: Journal) -> T:
    """Return the value the program has under the recorded answers.

    Raises:
        ReplayError: the program asks for something else than was recorded.
    """
    session = Session(program, Ledger(Limits(None, None)), journal, recorded_only=True)
    return session.result()
