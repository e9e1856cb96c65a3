"""Tools of MCP servers, as untrusted tools of a program.

A separate thread with an event loop holds the connection to a server. The server's descriptions and results of its tools are
data, never instructions: limited in size, and stripped of invisible characters and of markers of calls and roles.

Needs the extra `mcp`. The SDK takes half a second to import, so this module imports it when it is
used.
"""

import json
import logging
import os
import re
import shlex
import sys
from base64 import b64decode
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast
from weakref import finalize

from taiwa.extras import missing_extra, require_posix
from taiwa.isolation import ProcessLimits
from taiwa.json_schema import Schema, from_openapi, is_object, map_subschemas
from taiwa.kernel.attachments import MAX_COUNT, MAX_RESULT_BYTES, Attachment
from taiwa.kernel.errors import ConfigError, InputError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, canonical, parse_json, to_json
from taiwa.kernel.text import clean_untrusted
from taiwa.structured import OutputType
from taiwa.tools.function_tool import json_size
from taiwa.tools.mcp_transport import RESULT_KEY, lenient
from taiwa.tools.registry import builtin_tools

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus
    from anyio.from_thread import BlockingPortal
    from mcp import Client, MCPError
    from mcp.types import CallToolResult, ContentBlock, ToolAnnotations
    from mcp.types import Tool as ListedTool

DEFAULT_LIMITS = ProcessLimits(seconds=30.0)
START_SECONDS = 30.0
EXTRA_SECONDS = 5.0
STDERR_SECONDS = 1.0
MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 1_000
MAX_ERROR_CHARS = 500
MAX_STDERR_BYTES = 4_000
SUPERVISOR = Path(__file__).with_name("mcp_supervisor.py")
MEGABYTE = 1 << 20

MAX_SCHEMA_CHARS = 20_000
MAX_SCHEMA_DEPTH = 8
MAX_SCHEMA_KEYS = 64
MAX_SCHEMA_TEXT = 500
SCHEMA_KEYWORDS = frozenset(
    """
    type properties required items enum const anyOf oneOf allOf description title default minimum maximum exclusiveMinimum
    exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems uniqueItems additionalProperties $ref $defs
    definitions prefixItems nullable
    """.split()
)


@contextmanager
def mcp_tools(
    *commands: str | Sequence[str], limits: ProcessLimits = DEFAULT_LIMITS, trusted: bool = False
) -> Generator[tuple[Tool, ...]]:
    """Start a server with each command and yield the tools of all of them; the servers are stopped at the end.

    Every call needs approval. Of `trusted` servers, calls of tools that only read or destroy nothing, as their annotations say,
    need none.

        with mcp_tools("npx some-server", ["python", "my_server.py"]) as tools:
            taiwa.run(program, tools=[calculator, *tools])

    Raises:
        ConfigError: the extra is not installed, or a server did not start.
        InputError: a command is empty or cannot be parsed.
    """
    tools: list[Tool] = []
    with ExitStack() as stack:
        for command in commands:
            taken = [tool.spec.name for tool in tools]
            tools += stack.enter_context(McpServerConnection(command, limits, taken, trusted=trusted)).tools
        yield tuple(tools)


def require_mcp() -> None:
    """Check that the SDK is installed.

    Raises:
        ConfigError: it is not.
    """
    if find_spec("mcp") is None:
        raise missing_extra("MCP", "mcp")


@dataclass(frozen=True, slots=True, repr=False)
class McpTool:
    """One tool of a server; its specification marks it as untrusted."""

    spec: ToolSpec
    name_on_server: str
    server: "McpServerConnection"
    confirm: bool = True
    """Whether a call by a model needs approval: unless a trusted server says that the tool only reads, or destroys nothing."""

    def __repr__(self) -> str:
        return f"McpTool({self.spec.name})"

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the tool, within the limits of the connection; numbers in strings are numbers where the schema allows no string.

        Raises:
            ToolError: as the server reports it; or `timeout`, `crashed`, `remote`.
        """
        with suppress(InputError):  # a schema that cannot be used
            repaired = OutputType.from_json_schema(self.spec.parameters).repair(dict(arguments))
            arguments = repaired if is_object(repaired) else arguments
        return self.server.call(self, arguments)


class McpServerConnection(AbstractContextManager["McpServerConnection"]):
    """A server that runs until `close`, with its `tools`; calls from several threads run concurrently.

    `command` is split as by a shell but run without one. The server gets only HOME, PATH and similar environment variables;
    put others into the command, as in `env KEY=… npx some-server`. A tool whose name is among `taken`, or is that of a
    built-in tool, gets the server's name in front.

    Raises:
        ConfigError: the extra is not installed, or the server did not start.
        InputError: the command is empty or cannot be parsed.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        limits: ProcessLimits = DEFAULT_LIMITS,
        taken: Iterable[str] = (),
        *,
        trusted: bool = False,
    ) -> None:
        require_mcp()
        require_posix("an MCP server by command")
        from anyio.from_thread import start_blocking_portal

        try:
            _connection_errors()
        except ImportError as error:  # before there is a thread that would outlive it
            raise ConfigError(
                f"the library mcp cannot be imported: {error}; does a file of this folder hide it?"
            ) from error
        words = _split_command(command)
        self._command = words[0]
        self._limits = limits
        self._trusted = trusted
        self._stderr = bytearray()
        stack = ExitStack()
        try:
            self._portal = stack.enter_context(start_blocking_portal("asyncio"))
            max_line_bytes = 24 * limits.characters + 2 * MAX_RESULT_BYTES + MEGABYTE
            ended, connected = self._portal.start_task(_connect, words, self._stderr, max_line_bytes)
        except _connection_errors() as error:
            stack.close()
            why = self._last_stderr_line() or _describe(error)
            what = "was stopped" if why.startswith("it sent a message") else "did not start"
            raise ConfigError(f"the MCP server {self._command!r} {what}: {why}") from error
        except BaseException:
            stack.close()
            raise
        connection = cast("_Connection", connected)
        self._client = connection.client
        self._close = finalize(self, _close, self._portal, connection.closing, ended, stack)
        self.tools = tuple(self._named_tools(connection.listed, {*taken, *builtin_tools()}))

    def __repr__(self) -> str:
        return f"McpServerConnection({self._command})"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and all processes that it started."""
        self._close()

    def call(self, tool: McpTool, arguments: Mapping[str, Json]) -> ToolResult:
        """Call a tool of the server.

        Raises:
            ToolError: see `McpTool.call`.
        """
        name = tool.spec.name
        try:
            future = self._portal.start_task_soon(self._request, tool.name_on_server, dict(arguments))
            try:
                result = future.result(self._limits.seconds + EXTRA_SECONDS)
            except BaseException:
                future.cancel()
                raise
        except TimeoutError:
            raise ToolError(f"{name} timed out", code="timeout") from None
        except _connection_errors() as error:
            raise self._call_error(name, error) from error
        return self._result(name, result)

    async def _request(self, name: str, arguments: dict[str, Json]) -> "CallToolResult":
        import anyio

        with anyio.fail_after(self._limits.seconds):
            return await self._client.call_tool(name, arguments)

    def _call_error(self, name: str, error: Exception) -> ToolError:
        from mcp import MCPError

        if isinstance(error, MCPError) and not _is_closed(error):
            return ToolError(_clean_line(error.message) or f"{name} failed", code="remote")
        trace = self._last_stderr_line() or _describe(error)
        if isinstance(error, ValueError):  # of pydantic: the server goes on
            return ToolError(f"{name} failed: its server sent no valid result", code="remote", trace=_describe(error))
        return ToolError(f"{name} failed: its server has ended", code="crashed", trace=trace)

    def _result(self, name: str, answer: "CallToolResult") -> ToolResult:
        max_chars = self._limits.characters
        texts, images = _read_blocks(answer.content)
        text = "\n".join(texts)
        content = cast("Json", answer.structured_content)
        if answer.is_error:
            error = decode_error(content, text, name)
            message, code, hint = map(_clean_line, (error.message, error.code, error.hint))
            raise ToolError(message or f"{name} failed", code=code, hint=hint)
        if json_size(content, max_chars) > max_chars:
            text, content = "\n".join(filter(None, (text, "[the structured content is too large]"))), None
        elif content is not None and not (_is_for_model(answer.content) or _says(text, content)):
            text = "\n".join(filter(None, (text, canonical(decode_value(content)).decode())))
        value = text[:max_chars] if content is None else decode_value(content)
        text = text or ("" if images else "[no content]")
        return ToolResult(_cut(text, max_chars), name, value=value, attachments=images)

    def _named_tools(self, listed: "Iterable[ListedTool]", taken: set[str]) -> Iterable[McpTool]:
        """Give each tool a unique name that every tool-call format can write."""
        info = self._client.server_info
        server = _identifier(info.name if info is not None else PurePath(self._command).name)[:24]
        for tool in listed:
            name = _identifier(tool.name)
            if name in taken:
                name = f"{server}_{name}"[:64]
            if name in taken:
                continue
            taken.add(name)
            about = clean_untrusted(tool.description or tool.title or "", MAX_DESCRIPTION_CHARS)
            about = " ".join(f"(From the server {server}.) {about}".split())
            spec = ToolSpec(name, about, _parameters(tool.input_schema), trust="untrusted")
            yield McpTool(spec, tool.name, self, not self._trusted or _needs_approval(tool.annotations))

    def _last_stderr_line(self) -> str:
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        return _clean_line(lines[-1]) if lines else ""


def _needs_approval(hints: "ToolAnnotations | None") -> bool:
    """Read the annotations of a tool; what is left out has the defaults of MCP: the tool writes, and may destroy."""
    if hints is None:
        return True
    return hints.read_only_hint is not True and hints.destructive_hint is not False


def _is_for_model(blocks: "Sequence[ContentBlock]") -> bool:
    """Return whether a server says that what it wrote beside structured content is what a model should read."""
    return any(block.annotations and "assistant" in (block.annotations.audience or ()) for block in blocks)


def _says(text: str, content: Json) -> bool:
    """Return whether a text is structured content written as JSON, as servers should repeat it for clients that do not know it."""
    value = decode_value(content)
    try:
        return text == value or parse_json(text) in (content, value)
    except ValueError:
        return False


def _cut(text: str, max_chars: int) -> str:
    """Clean a text; one that is too long ends with what was cut off."""
    if len(text) <= max_chars:
        return clean_untrusted(text, max_chars)
    note = f"\n[cut: the result has {len(text):,} characters]"
    return clean_untrusted(text, max(max_chars - len(note), 0)) + note


def clean_schema(schema: Json) -> dict[str, Json]:
    """Reduce an untrusted JSON Schema of arguments to known keywords, with clean short texts and bounded depth and width."""
    cleaned = _clean_subschema(schema, MAX_SCHEMA_DEPTH)
    root = from_openapi(cleaned) if isinstance(cleaned, dict) else {}
    properties = root.get("properties")
    return {**root, "type": "object", "properties": properties if isinstance(properties, dict) else {}}


def decode_value(content: Json) -> Json:
    """Unwrap structured content: the inverse of `taiwa.operations.mcp_tools.encode_value`."""
    return content[RESULT_KEY] if isinstance(content, dict) and set(content) == {RESULT_KEY} else content


def decode_error(content: Json, text: str, name: str) -> ToolError:
    """Restore the error of a tool: exactly from another taiwa, as text and its structured content from any other server."""
    if isinstance(content, dict) and set(content) == {"error", "message", "hint"}:
        code, message, hint = (str(content[key]) for key in ("error", "message", "hint"))
        return ToolError(message, code=code, hint=hint)
    if content is not None and not _says(text, content):
        text = f"{text} {to_json(content).decode()}".strip()
    return ToolError(text or f"{name} failed", code="remote")


@dataclass(frozen=True, slots=True)
class _Connection:
    """An open connection: its client, the tools that the server listed, and the event that ends it."""

    client: "Client"
    listed: "list[ListedTool]"
    closing: "anyio.Event"


async def _connect(
    words: Sequence[str], stderr_tail: bytearray, max_line_bytes: int, *, task_status: "TaskStatus[_Connection]"
) -> None:
    """Keep a connection open until it is closed, all in one task, as anyio's scopes require."""
    import anyio
    from mcp import Client, StdioServerParameters, stdio_client

    # The SDK logs an invalid line with a traceback; show that only in programs that configured logging.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    arguments = ["-IS", str(SUPERVISOR), str(max_line_bytes), *words]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    reading, writing = os.pipe()
    with anyio.CancelScope(deadline=anyio.current_time() + START_SECONDS) as scope:
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()
            tasks.start_soon(_keep_tail, reading, stderr_tail, ended)
            try:
                with os.fdopen(writing, "w") as stderr:
                    async with Client(lenient(stdio_client(server, stderr)), cache=None) as client:
                        closing = anyio.Event()
                        listed = await _list_tools(client)
                        scope.deadline = float("inf")
                        task_status.started(_Connection(client, listed, closing))
                        await closing.wait()
            finally:
                with anyio.move_on_after(STDERR_SECONDS, shield=True):  # a child of the server may keep the pipe open
                    await ended.wait()
                tasks.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise OSError(f"it did not answer for {START_SECONDS:g} seconds")


async def _keep_tail(stderr: int, tail: bytearray, ended: "anyio.Event") -> None:
    """Keep the last bytes that a server writes to standard error, and signal its end."""
    import anyio

    with os.fdopen(stderr, "rb", buffering=0) as pipe:
        await anyio.wait_readable(pipe)
        while piece := pipe.read(1 << 16):
            tail += piece
            del tail[:-MAX_STDERR_BYTES]
            await anyio.wait_readable(pipe)
    ended.set()


async def _list_tools(client: "Client") -> "list[ListedTool]":
    tools: list[ListedTool] = []
    cursor: str | None = None
    while len(tools) < MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not page.next_cursor or not page.tools:
            break
        cursor = page.next_cursor
    return tools[:MAX_TOOLS]


def _close(portal: "BlockingPortal", closing: "anyio.Event", ended: "Future[None]", stack: ExitStack) -> None:
    with suppress(*_connection_errors()):
        portal.call(closing.set)
        ended.result()
    with suppress(*_connection_errors()):
        stack.close()


@cache
def _connection_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the SDK for a server that has exited or violates the protocol."""
    import anyio
    from mcp import MCPError

    return (MCPError, RuntimeError, ValueError, OSError, anyio.ClosedResourceError, ExceptionGroup)


def _split_command(command: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise InputError(f"cannot parse the command {command!r}: {error}") from None
    if not words or not words[0]:
        raise InputError("the command of an MCP server is empty; expected, for example, npx some-server")
    return words


def _identifier(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64]
    return plain if plain[:1].isalpha() else f"t_{plain}"[:64]


def _parameters(schema: Mapping[str, object]) -> dict[str, Json]:
    """Clean the schema of the arguments; one that is too large for a prompt is replaced by that of any object."""
    cleaned = clean_schema(cast("Json", dict(schema)))
    return cleaned if len(json.dumps(cleaned)) <= MAX_SCHEMA_CHARS else {"type": "object", "properties": {}}


def _clean_subschema(schema: "Json | Schema", depth: int) -> Json:
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth == 0:
        return {}
    kept: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(part, dict):
            kept[key] = {_clean_word(name): _as_schema(inner) for name, inner in islice(part.items(), MAX_SCHEMA_KEYS)}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(part, list):
            kept[key] = [_as_schema(inner) for inner in part[:MAX_SCHEMA_KEYS]]
        elif key in ("items", "additionalProperties"):
            kept[key] = _as_schema(part)
        elif key in ("description", "title"):
            kept[key] = _clean_word(str(part))
        elif key in SCHEMA_KEYWORDS and (
            key != "$ref" or str(part).startswith("#")
        ):  # the model's server might fetch it
            kept[key] = _clean_value(part)
    return map_subschemas(kept, lambda _, inner: _clean_subschema(inner, depth - 1))


def _as_schema(part: Json) -> Json:
    return part if isinstance(part, dict | bool) else {}


def _clean_value(part: Json) -> Json:
    """Clean the value of a keyword: a short text or number, or a list of them."""
    if isinstance(part, str):
        return _clean_word(part)
    if isinstance(part, list):
        return [_clean_value(inner) for inner in part[:MAX_SCHEMA_KEYS] if not isinstance(inner, list | dict)]
    if isinstance(part, dict):
        return part if len(json.dumps(part)) <= MAX_SCHEMA_TEXT else {}
    return part


def _clean_word(text: str) -> str:
    return " ".join(clean_untrusted(text, MAX_SCHEMA_TEXT).split())


def _clean_line(text: str) -> str:
    return " ".join(clean_untrusted(text, MAX_ERROR_CHARS).split())


def _read_blocks(blocks: "Sequence[ContentBlock]") -> tuple[list[str], tuple[Attachment, ...]]:
    """Return the texts and the images of a result; what cannot be shown is named in the texts."""
    texts: list[str] = []
    images: list[Attachment] = []
    for block in blocks:
        image = _image(block)
        if image is None:
            texts.append(_block_text(block))
        elif len(images) == MAX_COUNT or image.size + sum(each.size for each in images) > MAX_RESULT_BYTES:
            texts.append(f"[an image of {image.size:,} bytes, which is too large, was left out]")
        else:
            images.append(image)
    return texts, tuple(images)


def _image(block: "ContentBlock") -> Attachment | None:
    """Return the image of a block, by its bytes and not by what the server says of them."""
    from mcp.types import BlobResourceContents, EmbeddedResource, ImageContent

    if isinstance(block, ImageContent):
        data = block.data
    elif isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        data = block.resource.blob
    else:
        return None
    try:
        found = Attachment.from_bytes(b64decode(data, validate=True))
    except (ValueError, InputError):
        return None
    return found if found.kind == "images" else None


def _block_text(block: object) -> str:
    """Return a block of a result as text; for other kinds, the name of the kind."""
    from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    if isinstance(block, ResourceLink):
        return f"{block.name}: {block.uri}"
    return f"[{getattr(block, 'type', 'something')} that cannot be shown as text]"


def _is_closed(error: "MCPError") -> bool:
    """Return whether an error is the SDK's for a closed connection; a server that goes on may use its code for errors of its own."""
    from mcp.types import CONNECTION_CLOSED

    return error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def _describe(error: Exception) -> str:
    """Describe an error in one line; for a group, its first error."""
    from mcp import MCPError

    if isinstance(error, ExceptionGroup):
        return _describe(cast("ExceptionGroup[Exception]", error).exceptions[0])
    if isinstance(error, MCPError) and _is_closed(error):
        return "it closed the connection; does it speak MCP?"
    if isinstance(error, FileNotFoundError):
        return "command not found"
    return _clean_line(str(error)) or type(error).__name__
