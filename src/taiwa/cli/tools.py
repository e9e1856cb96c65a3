"""List, show and call tools, and serve them over MCP: tools, mcp."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import click

from taiwa.cli.options import CommonOptions, Group, common_options, read_text, server_option
from taiwa.cli.output import print_item, print_json, print_line, print_notice, table
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.kernel.runtime import Tool


@click.group(cls=Group)
def tools() -> None:
    """List, show and call tools. The built-in tools are exact, and their running time is bounded.

    NAME is a built-in tool, one of your own as FILE.py:NAME or MODULE:NAME, or one of an MCP server that --mcp-server starts.

    \b
    taiwa tools list
    taiwa tools call calculator "1,000 × 5%"
    taiwa tools call molar_mass "CuSO4·5H2O"
    taiwa tools call molar_mass '{"formula": "NaCl", "weights": "integer"}'
    taiwa tools call stoichiometry "Fe + O2 -> Fe2O3"
    taiwa tools call unit_conversion "108 km/h to m/s"
    taiwa tools call my_tools.py:look_up "a word"
    taiwa tools list --mcp-server "npx some-server"
    """


@tools.command("list")
@server_option
@common_options("as_json")
def list_(common: CommonOptions, servers: tuple[str, ...]) -> None:
    """List the tools.

    \b
    taiwa tools list --json
    """
    from taiwa.kernel.errors import ConfigError
    from taiwa.tools.registry import find_tools, tool_names

    own: list[Tool] = []
    for name in tool_names():
        try:
            own += find_tools([name])
        except ConfigError as error:  # a plug-in that cannot be used; the others can
            print_notice(error.message)
    with _mcp_tools(servers) as foreign:
        specs = [tool.spec for tool in (*own, *foreign)]
    if common.as_json:
        print_json([{"tool": spec.name, "about": _first(spec.description)} for spec in specs])
    else:
        table(("tool", "about"), [(spec.name, _first(spec.description)) for spec in specs])


@tools.command("show")
@click.argument("name")
@server_option
@common_options("as_json")
def show_(common: CommonOptions, name: str, servers: tuple[str, ...]) -> None:
    """Show the tool NAME as models see it: its description and its parameters.

    \b
    taiwa tools show calculator
    """
    with _mcp_tools(servers) as foreign:
        spec = _found(name, foreign).spec
    if common.as_json:
        print_json({"tool": spec.name, "description": spec.description, "parameters": dict(spec.parameters)})
        return
    print_line(spec.name, "bold")
    for line in spec.description.splitlines():
        print_line(line)
    print_line("")
    properties = cast("Mapping[str, Mapping[str, Json]]", spec.parameters["properties"])
    needed = cast("list[str]", spec.parameters.get("required", []))
    rows = [
        (each, _kind(part), "required" if each in needed else str(part.get("default", "")))
        for each, part in properties.items()
    ]
    table(("parameter", "type", "default"), rows)


# A word that begins with a minus is an input here: taiwa tools call calculator "-2^2".
@tools.command("call", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("input", metavar="INPUT")
@server_option
@common_options("as_json")
def call_(common: CommonOptions, name: str, input: str, servers: tuple[str, ...]) -> None:  # noqa: A002  (what click shows in the help)
    """Call the tool NAME with INPUT.

    INPUT is the text that the tool needs, a JSON object of all its parameters, or - for standard input.

    \b
    taiwa tools call calculator "1,000 × 5%"
    """
    from taiwa.flows.solve.tool_call_formats import TaggedFormat
    from taiwa.kernel.errors import ToolErrorBoundary

    try:
        with _mcp_tools(servers) as foreign, ToolErrorBoundary(name):
            tool = _found(name, foreign)
            result = tool.call(TaggedFormat().parse_arguments(tool.spec, read_text(input)))
    except ToolError as error:
        if common.as_json:
            print_json({"tool": name, "error": error.code, "message": error.message, "hint": error.hint})
        # Unlike a model, the user may see what went wrong inside a tool.
        more = error.hint or next(iter(error.trace.strip().splitlines()[-1:]), "")
        raise InputError(f"{name}: {error.message}" + (f" ({more})" if more else "")) from error
    print_item({"tool": name, "text": result.text, "value": result.value}, result.text, as_json=common.as_json)


@contextmanager
def _mcp_tools(servers: tuple[str, ...]) -> "Generator[tuple[Tool, ...]]":
    if not servers:
        yield ()
        return
    from taiwa.tools.mcp_client import mcp_tools

    with mcp_tools(*servers) as foreign:
        yield foreign


def _found(name: str, foreign: "tuple[Tool, ...]") -> "Tool":
    from taiwa.tools.registry import find_tools

    return next((tool for tool in foreign if tool.spec.name == name), None) or find_tools([name])[0]


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _kind(part: Mapping[str, Json]) -> str:
    choices = part.get("enum")
    if isinstance(choices, list):
        return " | ".join(f'"{choice}"' for choice in choices)
    return str(part.get("type", "any"))


@click.command()
@click.option("--tools", "names", metavar="NAMES", help="Serve only these of taiwa's own tools, separated by commas.")
@click.option("--tool", "own", metavar="FILE.py:NAME", multiple=True, help="Serve your own tool too; also MODULE:NAME.")
@common_options("model", "max_cost", "store")
def mcp(common: CommonOptions, names: str | None, own: tuple[str, ...]) -> None:
    """Serve the tools over MCP on standard input and output, until the input ends.

    Beside the built-in tools there are `ask` and `find`, which search the indexed documents, and `extract`. A tool named with
    --tool runs in a process of its own, which is killed at its deadline.

    \b
    taiwa mcp
    taiwa mcp --tools calculator,molar_mass
    taiwa mcp --tools ask,find -m ollama:qwen3
    taiwa mcp --tool my_tools.py:look_up

    \b
    In the settings of a program that starts MCP servers:
    {"mcpServers": {"taiwa": {"command": "taiwa", "args": ["mcp"]}}}
    """
    from taiwa.tools.mcp_client import require_mcp
    from taiwa.tools.mcp_server import serve_mcp
    from taiwa.tools.registry import builtin_tools, find_tools

    require_mcp()
    from taiwa.operations.mcp_tools import NAMES, local_context, operation_tools, passage_texts

    if sys.stdin.isatty():
        click.echo("waiting for an MCP client on standard input; Ctrl-D quits", err=True)
    chosen = (
        [*builtin_tools(), *NAMES] if names is None else [name.strip() for name in names.split(",") if name.strip()]
    )
    operations: tuple[Tool, ...] = ()
    texts = None
    if set(chosen) & set(NAMES):
        settings = common.settings()
        context = local_context(common.repository(settings), settings)
        operations, texts = operation_tools(context), passage_texts(context)
    simple = find_tools([*(name for name in chosen if name not in NAMES), *own])
    serve_mcp([*simple, *(tool for tool in operations if tool.spec.name in chosen)], texts)
