"""From a request to what the built-in model is told: it never sees the long instructions that our flows write for large ones."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from taiwa.kernel.values import Request
from taiwa.models.builtin.reading.asking import asking
from taiwa.models.builtin.reading.desk import desk
from taiwa.models.builtin.reading.marks import mark
from taiwa.models.builtin.reading.solving import number, solve
from taiwa.models.builtin.reading.told import ANSWER, Told, unsupported

__all__ = ["Told", "read", "tasks"]


@cache
def tasks() -> Mapping[str, str]:
    """What the digests of first paragraphs ask for."""
    found: Mapping[str, str] = json.loads((files("taiwa.models.builtin") / "data" / "tasks.json").read_text("utf-8"))
    return found


def read(request: Request) -> Told | None:
    """Recognise a request of one of our flows; None where it is another.

    Raises:
        UnsupportedError: it is one, and asks for what the model did not learn.
    """
    if not request.messages or request.messages[0].role != "system":
        return None
    known = tasks()
    task = known.get(mark(request.messages[0].text), "")
    if task == "solve":
        return solve(request)
    if task == "number":
        return number(request)
    if task == "desk":
        order = desk(request)
        return None if order is None else Told("desk", order[0], grammar=order[1])
    if task == "refused":
        raise unsupported()
    if found := asking(request, known):
        name, _, score = found[0].partition(".")
        return Told(name, found[1], score or ANSWER)
    return None
