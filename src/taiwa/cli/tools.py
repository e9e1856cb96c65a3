"""`taiwa tools`: listing the built-in tools, reading what a model is told of one, and calling one by hand."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.kernel.protocols import Tool
    from taiwa.kernel.values import ToolResult

__all__ = ["tools"]

C = TypeVar("C", bound=Callable[..., Any])


def mounts(command: C) -> C:
    """Give a command the flag that mounts servers."""
    about = "Also the tools of an MCP server, started by this command."
    return click.option("--mount", "servers", metavar="COMMAND", multiple=True, help=about)(command)


@click.group()
def tools() -> None:
    """List, show and call tools. Those that come with taiwa are exact, and no input keeps them busy.

    NAME is a built-in tool, one of your own as FILE.py:NAME or MODULE:NAME, or one of a server that --mount starts.

    \b
    taiwa tools list
    taiwa tools call calculator "1,000 × 5%"
    taiwa tools call molar_mass "CuSO4·5H2O"
    taiwa tools call molar_mass '{"formula": "NaCl", "weights": "integer"}'
    taiwa tools call stoichiometry "Fe + O2 -> Fe2O3"
    taiwa tools call unit_conversion "108 km/h to m/s"
    taiwa tools call my_tools.py:look_up "a word"
    taiwa tools list --mount "npx some-server"
    """


@tools.command("list")
@mounts
@flags("json")
def list_(shared: Flags, servers: tuple[str, ...]) -> None:
    """List the tools."""
    from taiwa.tools import builtin

    with _mounted(servers) as foreign:
        specs = [tool.spec for tool in (*builtin().values(), *foreign)]
    if shared.as_json:
        emit([{"tool": spec.name, "about": _first(spec.description)} for spec in specs])
    else:
        table(("tool", "about"), [(spec.name, _first(spec.description)) for spec in specs])


@tools.command("show")
@click.argument("name")
@mounts
@flags("json")
def show_(shared: Flags, name: str, servers: tuple[str, ...]) -> None:
    """Show what a model is told of the tool NAME: its description and its parameters."""
    with _mounted(servers) as foreign:
        spec = _found(name, foreign).spec
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
@mounts
@flags("json")
def call_(shared: Flags, name: str, input: str, servers: tuple[str, ...]) -> None:  # noqa: A002  (what click shows in the help)
    """Call the tool NAME with INPUT.

    INPUT is the text that the tool needs, a JSON object of all its parameters, or - for standard input.
    """
    from taiwa.cli.opening import read_text
    from taiwa.kernel.foreign import Foreign

    try:
        with _mounted(servers) as foreign, Foreign(name):
            result = _called(_found(name, foreign), read_text(input))
    except ToolError as error:
        if shared.as_json:
            emit({"tool": name, "error": error.code, "message": error.message, "hint": error.hint})
        # Who calls a tool of their own is no model, and may know what went wrong in it.
        more = error.hint or next(iter(error.trace.strip().splitlines()[-1:]), "")
        raise InputError(f"{name}: {error.message}" + (f" ({more})" if more else "")) from error
    if shared.as_json:
        emit({"tool": name, "text": result.text, "value": result.value})
    else:
        say_line(result.text)


def _called(tool: "Tool", text: str) -> "ToolResult":
    """The same door that a model's text goes through."""
    from taiwa.flows.tagged import Tagged

    return tool.call(Tagged().arguments(tool.spec, text))


@contextmanager
def _mounted(servers: tuple[str, ...]) -> "Generator[tuple[Tool, ...]]":
    if not servers:
        yield ()
        return
    from taiwa.tools.mcp import mounted

    with mounted(*servers) as foreign:
        yield foreign


def _found(name: str, foreign: "tuple[Tool, ...]") -> "Tool":
    from taiwa.tools import find

    return next((tool for tool in foreign if tool.spec.name == name), None) or find([name])[0]


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _kind(part: Mapping[str, Json]) -> str:
    choices = part.get("enum")
    if isinstance(choices, list):
        return " | ".join(f'"{choice}"' for choice in choices)
    return str(part.get("type", "any"))


def _default(part: Mapping[str, Json]) -> str:
    return str(part.get("default", ""))
