"""The parameters of an app as fields of a form."""

import re

from taiwa.conversation.app import App, Param
from taiwa.operations.complete import GRANTED, closed_params

CHOICE = re.compile(r'"([^"]*)"')
NUMBER = re.compile(r"(int|float)(\(|\b)")


def open_params(app: App) -> tuple[Param, ...]:
    """Return the parameters that a person may set: those that say what is searched for whom are the operator's."""
    return tuple(param for param in app.params if app.flow != "ask" or param.name not in GRANTED)


def chooses_indexes(app: App) -> bool:
    """Return whether a person chooses what an app searches."""
    return app.flow == "ask" and "in" not in closed_params(app)


def choices_of(param: Param) -> tuple[str, ...]:
    """Return the texts that a parameter can be, () where it is not a choice.

    >>> choices_of(Param("tone", '"formal" | "plain"'))
    ('formal', 'plain')
    """
    parts = [part.strip() for part in param.type.split("|")]
    found = [CHOICE.fullmatch(part) for part in parts]
    return tuple(each[1] for each in found if each) if all(found) else ()


def kind_of(param: Param) -> str:
    """Return which field a parameter has: `choice`, `flag`, `number`, `text` or, for every other type, `value`.

    >>> kind_of(Param("n", "int(1..)")), kind_of(Param("to", "list[str]"))
    ('number', 'value')
    """
    if choices_of(param):
        return "choice"
    plain = param.type.removesuffix("| null").strip()
    if plain == "bool":
        return "flag"
    if NUMBER.match(plain):
        return "number"
    return "text" if plain.startswith("str") else "value"
