"""`taiwa tools`: listing the built-in tools, reading what a model is told of one, and calling one by hand."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.kernel.values import ToolResult
    from taiwa.tools import FunctionTool

__all__ = ["tools"]


@click.group()
def tools() -> None:
    """List, show and call the tools that come with taiwa. They are exact, and no input keeps them busy.

    \b
    taiwa tools list
    taiwa tools call calculator "1,000 × 5%"
    taiwa tools call molar_mass "CuSO4·5H2O"
    taiwa tools call molar_mass '{"formula": "NaCl", "weights": "integer"}'
    taiwa tools call stoichiometry "Fe + O2 -> Fe2O3"
    taiwa tools call unit_conversion "108 km/h to m/s"
    """


@tools.command("list")
@flags("json")
def list_(shared: Flags) -> None:
    """List the tools."""
    from taiwa.tools import builtin

    specs = [tool.spec for tool in builtin().values()]
    if shared.as_json:
        emit([{"tool": spec.name, "about": _first(spec.description)} for spec in specs])
    else:
        table(("tool", "about"), [(spec.name, _first(spec.description)) for spec in specs])


@tools.command("show")
@click.argument("name")
@flags("json")
def show_(shared: Flags, name: str) -> None:
    """Show what a model is told of the tool NAME: its description and its parameters."""
    spec = _found(name).spec
    if shared.as_json:
        emit({"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)})
        return
    say_line(spec.name, "bold")
    for line in spec.description.splitlines():
        say_line(line)
    say_line("")
    properties = cast("Mapping[str, Mapping[str, Json]]", spec.parameters["properties"])
    needed = cast("list[str]", spec.parameters.get("required", []))
    rows = [(each, _kind(part), "needed" if each in needed else _default(part)) for each, part in properties.items()]
    table(("parameter", "type", "otherwise"), rows)


# What begins with a minus is an input here: taiwa tools call calculator "-2^2".
@tools.command("call", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("input", metavar="INPUT")
@flags("json")
def call_(shared: Flags, name: str, input: str) -> None:  # noqa: A002  (what click shows in the help)
    """Call the tool NAME with INPUT.

    INPUT is the text that the tool needs, a JSON object of all its parameters, or - for standard input.
    """
    from taiwa.cli.opening import read_text

    tool = _found(name)
    try:
        result = _called(tool, read_text(input))
    except ToolError as error:
        if shared.as_json:
            emit({"tool": name, "error": error.code, "message": error.message, "hint": error.hint})
        raise InputError(f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else "")) from error
    if shared.as_json:
        emit({"tool": name, "text": result.text, "value": result.value})
    else:
        say_line(result.text)


def _called(tool: "FunctionTool[..., object]", text: str) -> "ToolResult":
    """The same door that a model's text goes through."""
    from taiwa.flows.tagged import Tagged

    return tool.call(Tagged().arguments(tool.spec, text))


def _found(name: str) -> "FunctionTool[..., object]":
    from taiwa.tools import find

    return find([name])[0]


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _kind(part: Mapping[str, Json]) -> str:
    choices = part.get("enum")
    if isinstance(choices, list):
        return " | ".join(f'"{choice}"' for choice in choices)
    return str(part.get("type", "any"))


def _default(part: Mapping[str, Json]) -> str:
    return str(part.get("default", ""))
