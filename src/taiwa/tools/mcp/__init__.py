"""Tools over the Model Context Protocol, both ways: ours for others (`serve_mcp`), and those of others for us (`mcp_tools`).

Needs the extra: `pip install 'taiwa[mcp]'`.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from taiwa.isolation import ProcessLimits
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.runtime import Tool

if TYPE_CHECKING:
    from taiwa.tools.mcp.connection import McpServerConnection

__all__ = ["connect_mcp_server", "mcp_tools", "serve_mcp"]

USUAL = ProcessLimits(seconds=30.0)


def serve_mcp(tools: Iterable[Tool]) -> None:
    """Serve tools over standard input and output until the input ends.

    Raises:
        ConfigError: the extra is not installed.
    """
    _needed()
    from taiwa.tools.mcp.server import run

    run(tuple(tools))


def connect_mcp_server(
    command: str | Sequence[str], limits: ProcessLimits = USUAL, taken: Iterable[str] = ()
) -> "McpServerConnection":
    """Start a server of somebody else's tools; `connect_mcp_server(...).tools` are untrusted tools until `close`.

    `command` is split as a shell would and run without one. The server gets none of your environment but HOME, PATH and
    the like. A tool whose name is among `taken`, or a built-in's, gets the server's name in front.

    Raises:
        ConfigError: the extra is not installed, or the server did not start.
    """
    _needed()
    from taiwa.tools.mcp.connection import McpServerConnection

    return McpServerConnection(command, limits, taken)


@contextmanager
def mcp_tools(*commands: str | Sequence[str], limits: ProcessLimits = USUAL) -> Generator[tuple[Tool, ...]]:
    """The tools of servers, each started by a command; the servers are stopped at the end.

        with mounted("npx some-server", ["python", "my_server.py"]) as tools:
            taiwa.run(program, tools=[calculator, *tools])

    Raises:
        ConfigError: the extra is not installed, or a server did not start.
    """
    tools: list[Tool] = []
    with ExitStack() as stack:
        for command in commands:
            found = stack.enter_context(connect_mcp_server(command, limits, [each.spec.name for each in tools]))
            tools += found.tools
        yield tuple(tools)


def _needed() -> None:
    if find_spec("mcp") is None:
        raise ConfigError("MCP needs the extra: pip install 'taiwa[mcp]'")
