"""From a request to what the built-in model is told: it never sees the long instructions that our flows write for large ones."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Request
from taiwa.models.builtin.reading.asking import asking
from taiwa.models.builtin.reading.desk import desk
from taiwa.models.builtin.reading.marks import mark
from taiwa.models.builtin.reading.solving import number, solve
from taiwa.models.builtin.reading.told import ANSWER, Told, unsupported

__all__ = ["Told", "read", "tasks"]


@cache
def tasks() -> Mapping[str, str]:
    """What the digests of first paragraphs ask for.

    Raises:
        ConfigError: the table is missing or broken.
    """
    path = files("taiwa.models.builtin") / "data" / "tasks.json"
    try:
        return _table(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} holds no table of tasks ({error}): install taiwa again") from None


def _table(held: bytes) -> Mapping[str, str]:
    table: Json = json.loads(held)
    if not isinstance(table, dict):
        raise ValueError("it is no JSON object")
    return {digest: task for digest, task in table.items() if isinstance(task, str)}


def read(request: Request) -> Told | None:
    """Recognise a request of one of our flows; None where it is another.

    Raises:
        ConfigError: the table of tasks is missing or broken.
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
