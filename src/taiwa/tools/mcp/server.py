"""Our tools for others: an MCP server over standard input and output."""

import sys
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as Listed

from taiwa.kernel.errors import TaiwaError, ToolError, ToolErrorBoundary, UnknownToolError
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.runtime import Tool
from taiwa.tools.mcp.results import failed, wrapped
from taiwa.tools.registry import builtin

__all__ = ["run", "server"]


def run(tools: tuple[Tool, ...]) -> None:
    """Serve until standard input ends. What a tool prints goes to standard error."""
    anyio.run(_serve, server(tools))


async def _serve(one: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await one.run(reading, writing, one.create_initialization_options())


def server(tools: tuple[Tool, ...]) -> Server[Any]:
    """Make a server of tools. Each call runs in a thread, so calls of one client run side by side."""
    known = {tool.spec.name: tool for tool in tools}

    async def listed(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ANN401  (the library's context)
        return ListToolsResult(tools=[_listed(tool.spec) for tool in tools])

    async def called(_: Any, asked: CallToolRequestParams) -> CallToolResult:  # noqa: ANN401  (the same)
        return await anyio.to_thread.run_sync(lambda: _called(known, asked), abandon_on_cancel=True)

    return Server("taiwa", version=version("taiwa"), on_list_tools=listed, on_call_tool=called)


def _listed(spec: ToolSpec) -> Listed:
    """A tool as it is announced; of the built-in ones it is known that they change nothing and reach nowhere."""
    exact = spec.name in builtin() and builtin()[spec.name].spec == spec
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False) if exact else None
    return Listed(name=spec.name, description=spec.description, input_schema=dict(spec.parameters), annotations=hints)


def _called(known: dict[str, Tool], asked: CallToolRequestParams) -> CallToolResult:
    try:
        tool = known.get(asked.name)
        if tool is None:
            raise UnknownToolError(
                f"there is no tool {asked.name!r}", code="unknown_tool", hint=f"tools: {', '.join(known) or 'none'}"
            )
        with ToolErrorBoundary(asked.name):
            result = tool.call(asked.arguments or {})
    except TaiwaError as caught:
        error = caught if isinstance(caught, ToolError) else ToolError(caught.message)
        if error.trace:
            sys.stderr.write(f"{error.trace}\n")  # for the person who runs this server
        said = error.message + (f" ({error.hint})" if error.hint else "")
        return CallToolResult(content=[_text(said)], structured_content=failed(error), is_error=True)
    return CallToolResult(content=[_text(result.text)], structured_content=wrapped(result.value))


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
