"""Tools of a program for others: an MCP server, over standard input and output or any other transport of the SDK.

Needs the extra: `pip install 'taiwa[mcp]'`, which is imported when a server is made.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from taiwa.kernel.errors import TaiwaError, ToolError, ToolErrorBoundary, UnknownToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json
from taiwa.kernel.runtime import Tool
from taiwa.tools.mcp_client import RESULT_KEY, require_mcp
from taiwa.tools.registry import builtin_tools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import (
        CallToolRequestParams,
        CallToolResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
    )
    from mcp.types import Tool as ListedTool


R = TypeVar("R")

RESOURCE_NOT_FOUND = -32002

_progress: "ContextVar[Callable[[float, None, str], Awaitable[None]] | None]" = ContextVar("progress", default=None)
"""Sends the progress of the call that runs here, on the event loop of the server."""


@dataclass(frozen=True, slots=True)
class StructuredTool:
    """A tool whose structured results have a schema. It `stores` what it does, or only reads."""

    tool: Tool
    output: Mapping[str, Json]
    stores: bool = False

    @property
    def spec(self) -> ToolSpec:
        """How a client sees the tool."""
        return self.tool.spec

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """As `Tool.call`."""
        return self.tool.call(arguments)


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """Texts that a client reads by an address: `uri` ends with `{id}`, and `read` returns the text of an id, or None."""

    uri: str
    name: str
    description: str
    read: Callable[[str], str | None]


async def report_progress(progress: float, message: str) -> None:
    """Report how far the call of a tool has come, to a client that asked for it; a client that has left is ignored."""
    send = _progress.get()
    if send is not None:
        with suppress(Exception):  # of the SDK and its transport
            await send(progress, None, message)


def run_on_server(function: Callable[..., Coroutine[Any, Any, R]], *arguments: object) -> R:
    """Run a coroutine function on the event loop of the server, from the thread in which it calls a tool."""
    from anyio import from_thread

    return from_thread.run(function, *arguments)


async def answer_over_http(
    tools: Iterable[Tool], texts: ResourceTemplate | None, most_bytes: int, connection: "tuple[Any, Any, Any]"
) -> None:
    """Answer one HTTP request with a message, given what an ASGI application is called with. Each request stands for itself.

    Raises:
        ConfigError: the extra is not installed.
    """
    require_mcp()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    server = create_server(tools, texts)
    manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most_bytes)
    async with manager.run():
        await manager.handle_request(*connection)


def serve_mcp(tools: Iterable[Tool], texts: ResourceTemplate | None = None) -> None:
    """Serve tools until standard input ends. What a tool prints goes to standard error.

    Raises:
        ConfigError: the extra is not installed.
    """
    require_mcp()
    import anyio
    from mcp.server.stdio import stdio_server

    server = create_server(tools, texts)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)


def create_server(tools: Iterable[Tool], texts: ResourceTemplate | None = None) -> "Server[Any]":
    """Make a server of tools, and of texts to read. Each call runs in a thread, so that calls of one client run side by side."""
    import anyio.to_thread
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
    from mcp.types import (
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        ReadResourceResult,
        TextResourceContents,
    )
    from mcp.types import ResourceTemplate as ListedTemplate

    by_name = {tool.spec.name: tool for tool in tools}

    async def list_tools(_: Any, __: "PaginatedRequestParams | None") -> "ListToolsResult":  # noqa: ANN401  (the SDK's context)
        return ListToolsResult(tools=[_listed(tool) for tool in by_name.values()])

    async def call_tool(context: Any, request: "CallToolRequestParams") -> "CallToolResult":  # noqa: ANN401  (the same)
        _progress.set(context.session.report_progress)
        return await anyio.to_thread.run_sync(lambda: _call(by_name, request), abandon_on_cancel=True)

    async def list_resources(_: Any, __: "PaginatedRequestParams | None") -> "ListResourcesResult":  # noqa: ANN401  (the same)
        return ListResourcesResult(resources=[])

    async def list_templates(_: Any, __: "PaginatedRequestParams | None") -> "ListResourceTemplatesResult":  # noqa: ANN401  (the same)
        assert texts is not None, "offered with texts only"
        about = texts.description
        listed = ListedTemplate(uri_template=texts.uri, name=texts.name, description=about, mime_type="text/plain")
        return ListResourceTemplatesResult(resource_templates=[listed])

    async def read_resource(_: Any, request: "ReadResourceRequestParams") -> "ReadResourceResult":  # noqa: ANN401  (the same)
        assert texts is not None, "offered with texts only"
        beginning = texts.uri.partition("{")[0]
        address = str(request.uri)
        text = None
        if address.startswith(beginning):
            text = await anyio.to_thread.run_sync(texts.read, address.removeprefix(beginning))
        if text is None:
            raise MCPError(RESOURCE_NOT_FOUND, f"resource {address[:200]!r} not found")
        return ReadResourceResult(contents=[TextResourceContents(uri=request.uri, text=text, mime_type="text/plain")])

    if texts is None:
        return Server("taiwa", version=version("taiwa"), on_list_tools=list_tools, on_call_tool=call_tool)
    return Server(
        "taiwa", version=version("taiwa"), on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip


def encode_value(value: Json) -> dict[str, Json] | None:
    """Write a value as structured content, which must be an object; any other value goes under `result`, as in the Python SDK.

    >>> encode_value("2/3"), encode_value({"a": 1}), encode_value(None)
    ({'result': '2/3'}, {'a': 1}, None)
    """
    if value is None:
        return None
    return value if isinstance(value, dict) and set(value) != {RESULT_KEY} else {RESULT_KEY: value}


def encode_error(error: ToolError) -> dict[str, Json]:
    """Write an error as structured content, from which `taiwa.tools.mcp_client.decode_error` restores it."""
    return {"error": error.code, "message": error.message, "hint": error.hint}


def _listed(tool: Tool) -> "ListedTool":
    """Describe a tool; built-in tools are known to change nothing and to reach no network."""
    from mcp.types import Tool as ListedTool
    from mcp.types import ToolAnnotations

    spec = tool.spec
    exact = spec.name in builtin_tools() and builtin_tools()[spec.name].spec == spec
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False) if exact else None
    output = None
    if isinstance(tool, StructuredTool):
        output = dict(tool.output)
        hints = ToolAnnotations(read_only_hint=not tool.stores, destructive_hint=False, open_world_hint=False)
    return ListedTool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), output_schema=output,
        annotations=hints,
    )  # fmt: skip


def _call(by_name: Mapping[str, Tool], request: "CallToolRequestParams") -> "CallToolResult":
    from mcp.types import CallToolResult, TextContent

    try:
        tool = by_name.get(request.name)
        if tool is None:
            hint = f"tools: {', '.join(by_name) or 'none'}"
            raise UnknownToolError(f"unknown tool {request.name!r}", code="unknown_tool", hint=hint)
        with ToolErrorBoundary(request.name):
            result = tool.call(request.arguments or {})
    except TaiwaError as caught:
        error = caught if isinstance(caught, ToolError) else ToolError(caught.message)
        if error.trace:
            sys.stderr.write(f"{error.trace}\n")  # for the operator of this server
        text = TextContent(type="text", text=error.message + (f" ({error.hint})" if error.hint else ""))
        return CallToolResult(content=[text], structured_content=encode_error(error), is_error=True)
    text = TextContent(type="text", text=result.text)
    return CallToolResult(content=[text], structured_content=encode_value(result.value))
