"""MCP tools and resources besides the built-in tools: questions to documents, passages, and typed values.

One definition serves standard input and output (`taiwa mcp`) and HTTP (`taiwa serve`); they differ in how a turn is performed.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import PROMPT, AnswerOptions, App, fill_placeholders
from taiwa.conversation.history import Conversation
from taiwa.kernel.approval import needs_approval
from taiwa.kernel.errors import InputError, NotFoundError, TaiwaError, ToolError, ToolErrorBoundary, UnknownToolError
from taiwa.kernel.messages import TextDelta, ToolResult, ToolSpec
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import FindOptions, find, open_library
from taiwa.operations.resent_history import Completion
from taiwa.operations.result_json import ask_to_json, to_json
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, TurnResult
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession, open_priced_model
from taiwa.settings import Settings
from taiwa.structured import OutputType
from taiwa.tools.function_tool import FunctionTool
from taiwa.tools.mcp_client import require_mcp
from taiwa.tools.mcp_transport import RESULT_KEY
from taiwa.tools.registry import builtin_tools

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcp import types
    from mcp.server.lowlevel import Server


# --- the server -------------------------------------------------------------------------------------------------------
# Tools of a program for others: an MCP server, over standard input and output or any other transport of the SDK.
#
# Needs the extra `mcp`, which is imported when a server is made.

R = TypeVar("R")

RESOURCE_NOT_FOUND = -32002

_progress: "ContextVar[Callable[[float, None, str], Awaitable[None]] | None]" = ContextVar("progress", default=None)
"""Sends the progress of the current call, on the event loop of the server."""


@dataclass(frozen=True, slots=True)
class StructuredTool:
    """A tool whose structured results have a schema. `stores` says whether it writes to the store."""

    tool: Tool
    output: Mapping[str, Json]
    stores: bool = False

    @property
    def spec(self) -> ToolSpec:
        """The specification for clients."""
        return self.tool.spec

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """As `Tool.call`."""
        return self.tool.call(arguments)


ReadPassage: TypeAlias = Callable[[str], str | None]
"""Returns the text of a passage by its id, or None."""
PASSAGES = "taiwa://passages/"
"""The beginning of the URIs by which clients read passages."""


async def report_progress(progress: float, message: str) -> None:
    """Report the progress of a tool call to a client that requested it; a disconnected client is ignored."""
    send = _progress.get()
    if send is not None:
        with suppress(Exception):  # of the SDK and its transport
            await send(progress, None, message)


def run_on_server(function: Callable[..., Coroutine[Any, Any, R]], *arguments: object) -> R:
    """Run a coroutine function on the event loop of the server, from the thread in which it calls a tool."""
    from anyio import from_thread

    return from_thread.run(function, *arguments)


async def answer_over_http(
    tools: Iterable[Tool],
    read_passage: ReadPassage | None,
    apps: Sequence[App],
    most_bytes: int,
    connection: "tuple[Any, Any, Any]",
) -> None:
    """Answer one HTTP request with a message, given the arguments of an ASGI application. Each request is independent.

    Raises:
        ConfigError: the extra is not installed.
    """
    require_mcp()
    server = await asyncio.to_thread(create_server, tools, read_passage, apps)  # the first one imports the SDK
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most_bytes)
    async with manager.run():
        await manager.handle_request(*connection)


def serve_mcp(tools: Iterable[Tool], read_passage: ReadPassage | None = None) -> None:
    """Serve tools until standard input ends. Output printed by a tool goes to standard error.

    Raises:
        ConfigError: the extra is not installed.
    """
    require_mcp()
    import anyio
    from mcp.server.stdio import stdio_server

    server = create_server(tools, read_passage)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)


def create_server(
    tools: Iterable[Tool], read_passage: ReadPassage | None = None, apps: Sequence[App] = ()
) -> "Server[Any]":
    """Create a server of tools and passages, and of prompts, which are the instructions of apps. Each call runs in a thread, so that calls of one client run concurrently."""
    import anyio.to_thread
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    by_name = {tool.spec.name: tool for tool in tools}

    async def list_tools(_: Any, __: "types.PaginatedRequestParams | None") -> "types.ListToolsResult":  # noqa: ANN401  (the SDK's context)
        return types.ListToolsResult(tools=[_listed(tool) for tool in by_name.values()])

    async def call_tool(context: Any, request: "types.CallToolRequestParams") -> "types.CallToolResult":  # noqa: ANN401  (the same)
        _progress.set(context.session.report_progress)
        return await anyio.to_thread.run_sync(lambda: _call(by_name, request), abandon_on_cancel=True)

    async def list_resources(_: Any, __: "types.PaginatedRequestParams | None") -> "types.ListResourcesResult":  # noqa: ANN401  (the same)
        return types.ListResourcesResult(resources=[])

    async def list_templates(_: Any, __: "types.PaginatedRequestParams | None") -> "types.ListResourceTemplatesResult":  # noqa: ANN401  (the same)
        about = "A passage of an indexed document, by the id that `find` and the citations of `ask` name."
        listed = types.ResourceTemplate(
            uri_template=f"{PASSAGES}{{id}}", name="passage", description=about, mime_type="text/plain"
        )
        return types.ListResourceTemplatesResult(resource_templates=[listed])

    async def read_resource(_: Any, request: "types.ReadResourceRequestParams") -> "types.ReadResourceResult":  # noqa: ANN401  (the same)
        assert read_passage is not None, "offered with passages only"
        address, text = str(request.uri), None
        if address.startswith(PASSAGES):
            text = await anyio.to_thread.run_sync(read_passage, address.removeprefix(PASSAGES))
        if text is None:
            raise MCPError(RESOURCE_NOT_FOUND, f"resource {address[:200]!r} not found")
        found = types.TextResourceContents(uri=request.uri, text=text, mime_type="text/plain")
        return types.ReadResourceResult(contents=[found])

    prompts = {app.name: app for app in apps if app.body.strip()}

    async def list_prompts(_: Any, __: "types.PaginatedRequestParams | None") -> "types.ListPromptsResult":  # noqa: ANN401  (the same)
        return types.ListPromptsResult(prompts=[_listed_prompt(app) for app in prompts.values()])

    async def get_prompt(_: Any, request: "types.GetPromptRequestParams") -> "types.GetPromptResult":  # noqa: ANN401  (the same)
        if (app := prompts.get(request.name)) is None:
            raise MCPError(types.INVALID_PARAMS, f"prompt {request.name[:200]!r} not found")
        try:
            app = app.with_params({name: each for name, each in (request.arguments or {}).items() if name != PROMPT})
        except InputError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from None
        text = fill_placeholders(app.body, {**app.values, PROMPT: (request.arguments or {}).get(PROMPT, "")})
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text.strip()))
        return types.GetPromptResult(description=app.about, messages=[message])

    offered: dict[str, Any] = {}
    if read_passage is not None:
        offered |= {"on_list_resources": list_resources, "on_list_resource_templates": list_templates}
        offered |= {"on_read_resource": read_resource}
    if prompts:
        offered |= {"on_list_prompts": list_prompts, "on_get_prompt": get_prompt}
    return Server("taiwa", version=version("taiwa"), on_list_tools=list_tools, on_call_tool=call_tool, **offered)


def _listed_prompt(app: App) -> "types.Prompt":
    from mcp.types import Prompt, PromptArgument

    arguments = [
        PromptArgument(name=each.name, description=each.ask or None, required=each.required and each.default is None)
        for each in app.params
    ]
    if app.is_template:
        arguments.append(PromptArgument(name=PROMPT, description="the text of the user", required=True))
    return Prompt(name=app.name, description=app.about, arguments=arguments)


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


def _listed(tool: Tool) -> "types.Tool":
    """Describe a tool; built-in tools are read-only and do not use the network. The client asks before a call that needs approval."""
    from mcp.types import Tool as ListedTool
    from mcp.types import ToolAnnotations

    spec = tool.spec
    exact = spec.name in builtin_tools() and builtin_tools()[spec.name].spec == spec
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False) if exact else None
    if needs_approval(tool):
        hints = ToolAnnotations(read_only_hint=False, destructive_hint=True)
    output = None
    if isinstance(tool, StructuredTool):
        output = dict(tool.output)
        hints = ToolAnnotations(read_only_hint=not tool.stores, destructive_hint=False, open_world_hint=False)
    return ListedTool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), output_schema=output,
        annotations=hints,
    )  # fmt: skip


def _call(by_name: Mapping[str, Tool], request: "types.CallToolRequestParams") -> "types.CallToolResult":
    from mcp.types import Annotations, CallToolResult, ImageContent, TextContent

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
    for_model = Annotations(audience=["assistant", "user"])
    text = TextContent(type="text", text=result.text, annotations=for_model)
    images = (
        ImageContent(type="image", data=each.base64, mime_type=each.media_type)
        for each in result.attachments
        if each.kind == "images"
    )
    return CallToolResult(content=[text, *images], structured_content=encode_value(result.value))


# --- what is offered --------------------------------------------------------------------------------------------------

NAMES = ("ask", "find", "extract")
MOST_FOUND = 50
TEXT: Json = {"type": "string"}
PASSAGE: Json = {
    "type": "object",
    "properties": {
        "path": TEXT, "id": TEXT, "text": TEXT, "heading": {"type": "array", "items": TEXT},
        "page": {"type": ["integer", "null"]}, "score": {"type": "number"}, "start": {"type": "integer"},
        "end": {"type": "integer"},
    },
    "required": ["path", "text", "score"],
}  # fmt: skip
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
OBJECTS: Json = {"type": "array", "items": {"type": "object"}}


def _object(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object with all of some members."""
    return {"type": "object", "properties": properties, "required": [*properties]}


FOUND = _object(passages={"type": "array", "items": PASSAGE}, warnings={"type": "array", "items": TEXT})
ANSWERED = _object(
    act={"type": "string", "enum": ["search", "ask", "hand_over", "advise"]}, answer=TEXT_OR_NULL,
    question_back=TEXT_OR_NULL, options=OBJECTS, citations=OBJECTS, conversation=TEXT, node=TEXT,
)  # fmt: skip
EXTRACTED = _object(value={})


@dataclass(frozen=True, slots=True)
class McpContext:
    """What the operations work with.

    - `ask_app`: the app of questions to documents; None offers none.
    - `open_model`: the model of an app, or of none.
    - `answer`: performs a turn, on the event loop of the server.
    """

    repository: Repository
    settings: Settings
    turns: TurnOptions
    ask_app: App | None
    open_model: Callable[[App | None], PricedModel]
    answer: Callable[[Completion], Coroutine[Any, Any, TurnResult]]


def local_context(repository: Repository, settings: Settings) -> McpContext:
    """Return the context of one program: its own store and settings.

    Raises:
        ConfigError: the app `ask` has an error.
    """
    repository.place, repository.settings = settings.store, settings
    repository.limit_all_runs(settings.limits)

    def open_model(app: App | None) -> PricedModel:
        return open_priced_model(None, settings, app)

    return McpContext(repository, settings, TurnOptions(), load_app("ask").with_params({}), open_model, _perform)


async def _perform(completion: Completion) -> TurnResult:
    written = 0
    assert completion.turn_input is not None, "no call resumes a turn"
    async with completion.session.stream_turn(completion.turn_input) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                written += len(event.text)
                await report_progress(written, event.text)
            elif isinstance(event, TurnResult):
                return event
    raise AssertionError("a turn ends with its result")


def operation_tools(context: McpContext) -> tuple[StructuredTool, ...]:
    """Return the operations as tools, in the order of `NAMES`."""

    def ask(question: str, conversation: str = "") -> ToolResult:
        """Answer a question from the indexed documents, with citations, or ask for clarification if the question is unclear.

        The `conversation` of an earlier answer is continued: a clarifying question is answered there.
        """
        with _as_tool_error():
            return _ask(context, question, conversation)

    def find_passages(query: str, limit: int = 5) -> ToolResult:
        """Find the passages of the indexed documents that fit a query best; no model is asked."""
        with _as_tool_error():
            return _find(context, query, limit)

    def extract(text: str, json_schema: dict[str, Any]) -> ToolResult:
        """Extract from a text the value that a JSON Schema describes; the value is validated."""
        with _as_tool_error():
            return _extract(context, text, json_schema)

    found = [
        StructuredTool(FunctionTool(find_passages, "find", isolated=False), FOUND),
        StructuredTool(FunctionTool(extract, isolated=False), EXTRACTED, stores=True),
    ]
    if context.ask_app is not None:
        found.insert(0, StructuredTool(FunctionTool(ask, isolated=False), ANSWERED, stores=True))
    return tuple(found)


def passage_reader(context: McpContext) -> ReadPassage:
    """Return the function that reads the passages that `find` and the citations of `ask` name."""

    def read(name: str) -> str | None:
        scope = context.repository.scope
        principals = frozenset[str]() if scope is None else scope.principals
        with open_library(context.settings, creating=False) as library:
            names = library.names() if scope is None else scope.names(library)
            found = (library.index(each).passage(name, principals) for each in names)
            return next((passage.text for passage in found if passage is not None), None)

    return read


@contextmanager
def _as_tool_error() -> "Generator[None]":
    """Report errors of the library to the client, which may read them."""
    try:
        yield
    except ToolError:
        raise
    except TaiwaError as error:
        raise ToolError(error.message, code=error.tag.replace("-", "_")) from None


def _ask(context: McpContext, question: str, conversation: str) -> ToolResult:
    repository, app = context.repository, context.ask_app
    assert app is not None, "without an app the tool is not offered"
    if conversation:
        if not repository.store.refs.has(conversation):
            raise NotFoundError(f"conversation {conversation[:80]!r} not found")
        name, base = conversation, repository.at(conversation)
        if base.app.documents is None:
            raise InputError(f"conversation {conversation[:80]!r} does not search documents")
    else:
        name, base = _begin(repository, app)
    run_on_server(report_progress, 0, "searching the documents")
    turn = _turn(context, name, base, question)
    whole: Mapping[str, Json] = ask_to_json(question, turn)
    value: dict[str, Json] = {
        "act": whole["act"],
        "answer": whole["answer"],
        "question_back": turn.ask.question_back or None if turn.ask is not None else None,
        "options": whole["options"],
        "citations": whole["citations"],
        "conversation": turn.session,
        "node": turn.node,
    }
    return ToolResult(turn.text, value=value)


def _begin(repository: Repository, app: App) -> tuple[str, Conversation]:
    """Begin a conversation with an app, and return its name."""
    repository.trust(app.hash)  # also if another program serves it
    with repository.store.transaction():
        name = repository.new_name(app)
        return name, repository.commit(name, repository.start(app), expected=None, reason="begin")


def _turn(context: McpContext, name: str, base: Conversation, text: str) -> TurnResult:
    session = AsyncSession(context.repository, name, base, context.open_model(base.app), options=context.turns)
    return run_on_server(context.answer, Completion(session, TurnInput(session.conversation, text)))


def _find(context: McpContext, query: str, limit: int) -> ToolResult:
    if not 1 <= limit <= MOST_FOUND:
        raise InputError(f"limit must be from 1 to {MOST_FOUND}, got {limit}")
    scope = context.repository.scope
    with open_library(context.settings) as library:
        names = library.names() if scope is None else scope.names(library)
        if not names:
            return ToolResult("no documents are indexed", value={"passages": [], "warnings": []})
        audience = () if scope is None else tuple(scope.principals)
        found = find(library, context.settings, FindOptions(query, names, audience, limit))
    passages: Json = to_json(found.passages)
    text = "\n\n".join(f"{each.passage.source}\n{each.passage.text}" for each in found.passages)
    return ToolResult(text or "nothing found", value={"passages": passages, "warnings": list(found.warnings)})


def _extract(context: McpContext, text: str, schema: Mapping[str, Any]) -> ToolResult:
    output_type = OutputType.from_json_schema(dict(schema))
    app = load_app("extract").with_params({}).with_options(AnswerOptions(schema=output_type.json_schema))
    turn = _turn(context, *_begin(context.repository, app), text)
    return ToolResult(turn.text, value={"value": turn.reply.value})
