"""Questions about quantities and substances, and the number that a rationale ends in, as the built-in model reads them."""

import re
from typing import Final

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.values import Request
from taiwa.models.builtin.plain import plain
from taiwa.models.builtin.reading.marks import first_paragraph, spoken
from taiwa.models.builtin.reading.told import Told

__all__ = ["TOOLS", "number", "solve"]

TOOLS: Final = ("calculator", "molar_mass", "stoichiometry")
"""The tools whose calls the model learned to write."""
TAGGED = "<<name: input>>"
LISTED = re.compile(r"^- <<([^\W\d][\w-]{0,63}): ", re.MULTILINE)


def solve(request: Request) -> Told | None:
    """A question to be solved step by step: the last words of the user. Worked examples are not read.

    Raises:
        UnsupportedError: tools are to be called in another way than the model learned.
    """
    last = request.messages[-1]
    if last.role != "user":
        return None
    words = request.messages[0].text.strip()
    if (words != first_paragraph(words) and TAGGED not in words) or request.tools:
        raise UnsupportedError(
            f"builtin writes calls of tools as {TAGGED} only: take the tagged protocol, or a larger model",
            ability="tools",
        )
    offered = LISTED.findall(words)
    return Told("solve", plain(spoken(last)), tools=tuple(set(TOOLS).intersection(offered)))


def number(request: Request) -> Told | None:
    """The number of the last lines of a rationale. Worked examples are not read."""
    last = request.messages[-1]
    return Told("number", plain(spoken(last))) if last.role == "user" else None
