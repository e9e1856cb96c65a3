"""The tools of a foreign server, as untrusted tools of ours.

A thread with an event loop of its own holds the connection. What the server says of its tools and what they give is data:
bounded, made harmless, and never an instruction of ours.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import TracebackType
from typing import cast
from weakref import finalize

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CONNECTION_CLOSED, CallToolResult, EmbeddedResource, TextContent, TextResourceContents
from mcp.types import Tool as Listed

from taiwa.isolation import ProcessLimits
from taiwa.kernel.errors import ConfigError, InputError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.text import clean_untrusted
from taiwa.tools.mcp.results import failure, unwrapped
from taiwa.tools.mcp_client import harmless_schema
from taiwa.tools.registry import builtin

__all__ = ["McpServerConnection", "McpTool"]

START_SECONDS = 30.0
MORE_SECONDS = 5.0
MOST_TOOLS = 128
LONGEST_ABOUT = 1_000
LONGEST_SCHEMA = 20_000
LONGEST_ERROR = 500
KEPT_STDERR_BYTES = 4_000
STDERR_SECONDS = 1.0
FILTER = Path(__file__).with_name("line_filter.py")
MEGABYTE = 1 << 20
FAULTS = (MCPError, RuntimeError, ValueError, OSError, anyio.ClosedResourceError, ExceptionGroup)
"""What the library raises where a server is gone, or says what it may not."""


@dataclass(frozen=True, slots=True, repr=False)
class McpTool:
    """One tool of a foreign server; its specification says that it is untrusted."""

    spec: ToolSpec
    own_name: str
    mount: "McpServerConnection"

    def __repr__(self) -> str:
        return f"Mounted({self.spec.name})"

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it, within the mount's limits.

        Raises:
            ToolError: what the server said; or `timeout`, `crashed`, `remote`.
        """
        return self.mount.call(self, arguments)


class McpServerConnection:
    """A foreign server that runs until `close`; calls from several threads run side by side."""

    def __init__(self, command: str | Sequence[str], limits: ProcessLimits, taken: Iterable[str] = ()) -> None:
        words = _words(command)
        self._command = words[0]
        self._limits = limits
        self._said = bytearray()
        stack = ExitStack()
        try:
            self._portal = stack.enter_context(start_blocking_portal("asyncio"))
            longest = 24 * limits.characters + MEGABYTE
            ended, found = self._portal.start_task(_live, words, self._said, longest)
        except FAULTS as error:
            stack.close()
            why = self._last_words() or _reason(error)
            raise ConfigError(f"the MCP server {self._command!r} did not start: {why}") from error
        except BaseException:
            stack.close()
            raise
        here = cast("_Live", found)
        self._client = here.client
        self._end = finalize(self, _close, self._portal, here.closing, ended, stack)
        self.tools = tuple(self._mounted(here.listed, {*taken, *builtin()}))

    def __repr__(self) -> str:
        return f"Mount({self._command})"

    def __enter__(self) -> "McpServerConnection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and all that it started."""
        self._end()

    def call(self, tool: McpTool, arguments: Mapping[str, Json]) -> ToolResult:
        """Call a tool of the server.

        Raises:
            ToolError: as `McpTool.call` says.
        """
        name = tool.spec.name
        try:
            future = self._portal.start_task_soon(self._ask, tool.own_name, dict(arguments))
            try:
                result = future.result(self._limits.seconds + MORE_SECONDS)
            except BaseException:
                future.cancel()
                raise
        except TimeoutError:
            raise ToolError(f"{name} timed out", code="timeout") from None
        except FAULTS as error:
            raise self._fault(name, error) from error
        return self._result(name, result)

    async def _ask(self, name: str, arguments: dict[str, Json]) -> CallToolResult:
        with anyio.fail_after(self._limits.seconds):
            return await self._client.call_tool(name, arguments)

    def _fault(self, name: str, error: Exception) -> ToolError:
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            return ToolError(_line(error.message) or f"{name} failed", code="remote")
        return ToolError(
            f"{name} failed: its server has ended", code="crashed", trace=self._last_words() or _reason(error)
        )

    def _result(self, name: str, given: CallToolResult) -> ToolResult:
        longest = self._limits.characters
        words = "\n".join(_shown(block) for block in given.content)
        content = cast("Json", given.structured_content)
        if given.is_error:
            told = failure(content, words, name)
            raise ToolError(_line(told.message) or f"{name} failed", code=_line(told.code), hint=_line(told.hint))
        value = unwrapped(content) if content is not None else words[:longest]
        if not words and content is not None:
            words = canonical(value).decode()
        return ToolResult(clean_untrusted(words, longest), name, value=value)

    def _mounted(self, listed: Iterable[Listed], taken: set[str]) -> Iterable[McpTool]:
        """Each tool under a name that nobody else has and every protocol can write."""
        told = self._client.server_info
        server = _name(told.name if told is not None else PurePath(self._command).name)[:24]
        for one in listed:
            name = _name(one.name)
            if name in taken:
                name = f"{server}_{name}"[:64]
            if name in taken:
                continue
            taken.add(name)
            about = f"(From the server {server}.) {clean_untrusted(one.description or one.title or '', LONGEST_ABOUT)}"
            spec = ToolSpec(name, " ".join(about.split()), _parameters(one.input_schema), trust="untrusted")
            yield McpTool(spec, one.name, self)

    def _last_words(self) -> str:
        """The last line that the server wrote for people."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return _line(lines[-1]) if lines else ""


@dataclass(frozen=True, slots=True)
class _Live:
    """A connection: what to ask, what there is, and how it is told to end."""

    client: Client
    listed: list[Listed]
    closing: anyio.Event


async def _live(words: Sequence[str], said: bytearray, longest: int, *, task_status: TaskStatus[_Live]) -> None:
    """Hold a connection until it is told to end; all of it in one task, as its scopes demand."""
    server = StdioServerParameters(command=sys.executable, args=["-IS", str(FILTER), str(longest), *words])
    reading, writing = os.pipe()
    with anyio.CancelScope(deadline=anyio.current_time() + START_SECONDS) as scope:
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()
            tasks.start_soon(_keep_end, reading, said, ended)
            try:
                with os.fdopen(writing, "w") as stderr:
                    async with Client(stdio_client(server, stderr), cache=None) as client:
                        closing = anyio.Event()
                        listed = await _listed(client)
                        scope.deadline = float("inf")
                        task_status.started(_Live(client, listed, closing))
                        await closing.wait()
            finally:
                with anyio.move_on_after(STDERR_SECONDS, shield=True):  # what it started may hold the pipe
                    await ended.wait()
                tasks.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise OSError(f"it did not answer for {START_SECONDS:g} seconds")


async def _keep_end(stderr: int, said: bytearray, ended: anyio.Event) -> None:
    """Keep the last bytes of what a server writes to standard error, and tell of its end."""
    with os.fdopen(stderr, "rb", buffering=0) as pipe:
        await anyio.wait_readable(pipe)
        while piece := pipe.read(1 << 16):
            said += piece
            del said[:-KEPT_STDERR_BYTES]
            await anyio.wait_readable(pipe)
    ended.set()


async def _listed(client: Client) -> list[Listed]:
    tools: list[Listed] = []
    cursor: str | None = None
    while len(tools) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not page.next_cursor or not page.tools:
            break
        cursor = page.next_cursor
    return tools[:MOST_TOOLS]


def _close(portal: BlockingPortal, closing: anyio.Event, ended: "Future[None]", stack: ExitStack) -> None:
    with suppress(*FAULTS):
        portal.call(closing.set)
        ended.result()
    with suppress(*FAULTS):
        stack.close()


def _words(command: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise InputError(f"the command {command!r} cannot be read: {error}") from None
    if not words or not words[0]:
        raise InputError("the command of an MCP server is missing, for example: npx some-server")
    return words


def _name(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64]
    return plain if plain[:1].isalpha() else f"t_{plain}"[:64]


def _parameters(schema: Mapping[str, object]) -> dict[str, Json]:
    """The schema of the arguments; where it is too large to be shown to a model, only that it is an object."""
    plain = harmless_schema(cast("Json", dict(schema)))
    return plain if len(json.dumps(plain)) <= LONGEST_SCHEMA else {"type": "object", "properties": {}}


def _shown(block: object) -> str:
    """A block of a result as text; what is none is named."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    return f"[{getattr(block, 'type', 'something')} that cannot be shown as text]"


def _line(text: str) -> str:
    return " ".join(clean_untrusted(text, LONGEST_ERROR).split())


def _reason(error: Exception) -> str:
    """The first words of an error, or of the first of a group of them."""
    if isinstance(error, ExceptionGroup):
        return _reason(cast("ExceptionGroup[Exception]", error).exceptions[0])
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return "it closed the connection; does it speak MCP?"
    if isinstance(error, FileNotFoundError):
        return "there is no such command"
    return _line(str(error)) or type(error).__name__
