"""The parameters of an app as fields of a form."""

import re

from taiwa.ask.decide_search_or_clarify import POLICIES
from taiwa.conversation.app import App, Param
from taiwa.operations.complete import GRANTED, closed_params
from taiwa.sessions.stored_ask import ASSESS_BY

CHOICE = re.compile(r'"([^"]*)"')
NUMBER = re.compile(r"(int|float)(?:\((-?[\d.]*?)\.\.(-?[\d.]*)\))?(?![\[\w])")
ASK_CHOICES = {"policy": tuple(POLICIES), "assess_by": ASSESS_BY}
"""Parameters of the app `ask` that can be other texts too, and what a person chooses from."""


def open_params(app: App) -> tuple[Param, ...]:
    """Return the parameters that a person may set: those that say what is searched for whom are the operator's."""
    return tuple(param for param in app.params if app.flow != "ask" or param.name not in GRANTED)


def chooses_indexes(app: App) -> bool:
    """Return whether a person chooses what an app searches."""
    return app.flow == "ask" and "in" not in closed_params(app)


def chooses_person(app: App) -> bool:
    """Return whether a person chooses whom an app answers."""
    return app.flow == "ask" and "user" not in closed_params(app)


def is_asked(param: Param) -> bool:
    """Return whether a parameter is asked for at once; others have a default and are among more options."""
    return bool(param.ask) or is_required(param)


def is_required(param: Param) -> bool:
    """Return whether a conversation cannot begin without a value of a parameter."""
    return param.required and param.default is None and "| null" not in param.type


def range_of(param: Param) -> tuple[str, str]:
    """Return the least and the largest number that a parameter can be, "" where there is no such bound.

    >>> range_of(Param("n", "int(0..10) | null")), range_of(Param("x", "float(0.5..)"))
    (('0', '10'), ('0.5', ''))
    """
    found = NUMBER.match(param.type)
    return (found[2] or "", found[3] or "") if found else ("", "")


def choices_of(param: Param, flow: str = "chat") -> tuple[str, ...]:
    """Return the texts that a parameter can be, () where it is not a choice.

    >>> choices_of(Param("tone", '"formal" | "plain"'))
    ('formal', 'plain')
    """
    if flow == "ask" and param.name in ASK_CHOICES:
        return ASK_CHOICES[param.name]
    parts = [part.strip() for part in param.type.split("|")]
    found = [CHOICE.fullmatch(part) for part in parts]
    return tuple(each[1] for each in found if each) if all(found) else ()


def kind_of(param: Param, flow: str = "chat") -> str:
    """Return which field a parameter has: `choice`, `flag`, `number`, `text` or, for every other type, `value`.

    >>> kind_of(Param("n", "int(1..)")), kind_of(Param("to", "list[str]"))
    ('number', 'value')
    """
    if choices_of(param, flow):
        return "choice"
    plain = param.type.removesuffix("| null").strip()
    if plain == "bool":
        return "flag"
    if NUMBER.match(plain):
        return "number"
    return "text" if plain.startswith("str") else "value"
