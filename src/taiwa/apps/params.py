"""Values of parameters, from what a person typed."""

from collections.abc import Mapping

from taiwa.apps.faults import Faults, nearest, quoted
from taiwa.conversation.app import App, Param, fitting
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.yamlfile import parse_yaml, to_json

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
    try:
        return fitting(param, text)
    except InputError:
        tree = parse_yaml(text, Faults().error)
        if tree is None:
            raise
    return fitting(param, to_json(tree))
