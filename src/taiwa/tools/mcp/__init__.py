"""Tools over the Model Context Protocol, both ways: ours for others (`serve`), and those of others for us (`mounted`).

Needs the extra: `pip install 'taiwa[mcp]'`.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from taiwa.isolation import ProcessLimits
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.protocols import Tool

if TYPE_CHECKING:
    from taiwa.tools.mcp.connection import Mount

__all__ = ["mount", "mounted", "serve"]

USUAL = ProcessLimits(seconds=30.0)


def serve(tools: Iterable[Tool]) -> None:
    """Serve tools over standard input and output until the input ends.

    Raises:
        ConfigError: the extra is not installed.
    """
    _needed()
    from taiwa.tools.mcp.server import run

    run(tuple(tools))


def mount(command: str | Sequence[str], limits: ProcessLimits = USUAL, taken: Iterable[str] = ()) -> "Mount":
    """Start a server of somebody else's tools; `mount(...).tools` are untrusted tools until `close`.

    `command` is split as a shell would and run without one. The server gets none of your environment but HOME, PATH and
    the like. A tool whose name is among `taken`, or a built-in's, gets the server's name in front.

    Raises:
        ConfigError: the extra is not installed, or the server did not start.
    """
    _needed()
    from taiwa.tools.mcp.connection import Mount

    return Mount(command, limits, taken)


@contextmanager
def mounted(*commands: str | Sequence[str], limits: ProcessLimits = USUAL) -> Generator[tuple[Tool, ...]]:
    """The tools of servers, each started by a command; the servers are stopped at the end.

        with mounted("npx some-server", ["python", "my_server.py"]) as tools:
            taiwa.run(program, tools=[calculator, *tools])

    Raises:
        ConfigError: the extra is not installed, or a server did not start.
    """
    tools: list[Tool] = []
    with ExitStack() as stack:
        for command in commands:
            found = stack.enter_context(mount(command, limits, [each.spec.name for each in tools]))
            tools += found.tools
        yield tuple(tools)


def _needed() -> None:
    if find_spec("mcp") is None:
        raise ConfigError("MCP needs the extra: pip install 'taiwa[mcp]'")
