"""Values of parameters, from what a person typed."""

from collections.abc import Mapping

from taiwa.apps.faults import Faults, nearest, quoted
from taiwa.apps.tree import json_of, read_tree
from taiwa.conversation.app import App, Param
from taiwa.kernel.errors import InputError, ShapeError
from taiwa.kernel.records import Json
from taiwa.shape import Shape
from taiwa.shape.notation import parse_notation

__all__ = ["convert_param", "convert_params"]


def convert_params(app: App, texts: Mapping[str, str]) -> dict[str, Json]:
    """Read the values of parameters that came as `-p NAME=VALUE`.

    Raises:
        InputError: the app has no such parameter, or the text is no value of its type.
    """
    known = {param.name: param for param in app.params}
    for name in texts:
        if name not in known:
            mend = nearest(name, tuple(known), "parameters")
            raise InputError(f"the app {app.name!r} has no parameter {quoted(name)}; {mend}")
    return {name: convert_param(known[name], text) for name, text in texts.items()}


def convert_param(param: Param, text: str) -> Json:
    """Read one value: as it stands where the type takes a text, else as YAML (`3`, `true`, `[en, ja]`, JSON too).

    >>> convert_param(Param("n", "int(1..)"), "3"), convert_param(Param("to", "list[str]"), "[en, ja]")
    (3, ['en', 'ja'])

    Raises:
        InputError: the text is no value of the parameter's type.
    """
    shape = Shape.fields("Param", {param.name: parse_notation(param.type)})
    try:
        return shape.check({param.name: text})[param.name]
    except ShapeError:
        pass
    tree = read_tree(text, 1, Faults())
    try:
        return shape.check({param.name: json_of(tree) if tree else text})[param.name]
    except ShapeError as error:
        why = (error.diagnostics[0] if error.diagnostics else error.message).partition(": ")[2]
        raise InputError(
            f"-p {param.name}={quoted(text)} does not fit the type {param.type}: {' '.join(why.split())}"
        ) from None
