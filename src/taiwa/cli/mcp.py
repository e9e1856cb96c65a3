"""`taiwa mcp`: the tools for any program that speaks the Model Context Protocol."""

import sys

import click

__all__ = ["mcp"]


@click.command()
@click.option("--tools", "names", metavar="NAMES", help="Only these built-in tools, with commas between them.")
@click.option("--from", "own", metavar="FILE.py:NAME", multiple=True, help="A tool of yours, too; also MODULE:NAME.")
def mcp(names: str | None, own: tuple[str, ...]) -> None:
    """Serve the tools over MCP on standard input and output, until the input ends.

    What you name with --from runs in a process of its own, which is killed at its deadline.

    \b
    taiwa mcp
    taiwa mcp --tools calculator,molar_mass
    taiwa mcp --from my_tools.py:look_up

    \b
    In the settings of a program that starts MCP servers:
    {"mcpServers": {"taiwa": {"command": "taiwa", "args": ["mcp"]}}}
    """
    from taiwa.tools import builtin, find
    from taiwa.tools.mcp import serve

    if sys.stdin.isatty():
        click.echo("waiting for a program that speaks MCP on standard input; Ctrl-D ends", err=True)
    chosen = list(builtin()) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    serve(find([*chosen, *own]))
