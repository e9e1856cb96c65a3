"""A transport of MCP that makes messages valid: one malformed tool or block affects neither the others nor the connection.

The SDK refuses a message as a whole, and a refused result looks like the end of the server.
"""

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from taiwa.kernel.serialization import Json
from taiwa.kernel.text import inert, join_surrogates, truncate

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

logger = logging.getLogger("taiwa.mcp")
MAX_NAME_CHARS = 60
MAX_DIGITS = 4_000
NO_RESULT = "the server sent no valid result"
RESULT_KEY = "result"
"""The key of structured content that is not an object."""


@asynccontextmanager
async def lenient(transport: "AbstractAsyncContextManager[Any]") -> AsyncGenerator[Any]:
    """Return a transport that makes the tools and results of a server valid before the SDK reads them."""
    import anyio

    asked: dict[object, str] = {}
    async with transport as (reading, writing), anyio.create_task_group() as tasks:
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        from_session, to_server = anyio.create_memory_object_stream[Any](0)

        async def receive() -> None:
            async with to_session:
                async for received in reading:
                    message = _readable(received, asked)
                    _repair(message, asked)
                    await to_session.send(message)

        async def send() -> None:
            async with to_server:
                async for message in to_server:
                    request = message.message
                    if hasattr(request, "id") and hasattr(request, "method"):
                        asked[request.id] = request.method
                    await writing.send(message)

        async def pump(step: Any) -> None:  # noqa: ANN401  (an async function without arguments)
            try:
                await step()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                await to_session.aclose()  # so that the session sees the end of the connection

        tasks.start_soon(pump, receive)
        tasks.start_soon(pump, send)
        try:
            yield from_server, from_session
        finally:
            tasks.cancel_scope.cancel()


def _readable(message: Any, asked: Mapping[object, str]) -> Any:  # noqa: ANN401  (of the SDK, or what it raised)
    """Return a message, or an error in place of an answer that cannot be read, for which a call would wait in vain."""
    from mcp.shared.message import SessionMessage
    from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

    for each in message.errors() if hasattr(message, "errors") else ():  # of pydantic
        found = each["input"]
        if isinstance(found, str):
            found = _read_again(found)
            with suppress(ValueError):
                return SessionMessage(jsonrpc_message_adapter.validate_python(found, by_name=False))
        sent = cast("Mapping[str, Any]", found if isinstance(found, dict) else {})
        number = sent.get("id")
        if isinstance(number, int | str) and number in asked:
            about = sent.get("error")
            words = cast("Mapping[str, Any]", about).get("message") if isinstance(about, dict) else about
            error = ErrorData(code=INTERNAL_ERROR, message=words if isinstance(words, str) else NO_RESULT)
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
    return message


def _read_again(line: str) -> object:
    """Read JSON that the SDK refuses: with half of a surrogate pair, as a cut text has it, or a number of thousands of digits."""
    with suppress(ValueError, RecursionError):
        found: object = json.loads(line, parse_int=lambda digits: int(digits) if len(digits) < MAX_DIGITS else digits)
        return json.loads(join_surrogates(json.dumps(found, ensure_ascii=False)))
    return None


def _repair(message: "SessionMessage | Exception", asked: dict[object, str]) -> None:
    """Make the result in a message valid, by the method that requested it."""
    response = getattr(message, "message", None)
    result = getattr(response, "result", None)
    if response is None or not isinstance(result, dict):
        return
    found = cast("dict[str, Json]", result)
    match asked.pop(getattr(response, "id", None), ""):
        case "tools/list":
            found["tools"] = valid_tools(found.get("tools"))
        case "tools/call":
            make_valid(found)
        case _:
            pass


def valid_tools(tools: Json) -> list[Json]:
    """Return the tools of a listing that can be read; the others are logged."""
    from mcp.types import Tool

    valid: list[Json] = []
    for tool in tools if isinstance(tools, list) else ():
        listed = tool if isinstance(tool, dict) else {}
        schema = listed.get("inputSchema")
        try:
            Tool.model_validate(tool)
        except ValueError:
            schema = None
        if isinstance(schema, dict) and schema.get("type") == "object":
            # The SDK would compare results with it in this process, by patterns that may take forever.
            valid.append({key: part for key, part in listed.items() if key != "outputSchema"})
        else:
            name = listed.get("name")
            shown = truncate(inert(name), MAX_NAME_CHARS) if isinstance(name, str) else "without a name"
            logger.warning("an MCP server lists a tool that cannot be read, which is left out: %s", shown)
    return valid


def make_valid(result: dict[str, Json]) -> None:
    """Make the result of a call valid: missing content is none, and a block of an unknown kind is named as one."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    result["content"] = [_valid_block(block) for block in blocks]
    structured = result.get("structuredContent")
    try:
        json.dumps(structured, allow_nan=False)
    except ValueError:
        structured = result["structuredContent"] = json.loads(json.dumps(structured), parse_constant=str)
    if structured is not None and not isinstance(structured, dict):
        result["structuredContent"] = {RESULT_KEY: structured}
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = False


def _valid_block(block: Json) -> Json:
    from mcp import types

    if isinstance(block, str):
        return {"type": "text", "text": block}
    kind = block.get("type") if isinstance(block, Mapping) else None
    known: dict[str, Any] = {
        "text": types.TextContent, "image": types.ImageContent, "audio": types.AudioContent,
        "resource": types.EmbeddedResource, "resource_link": types.ResourceLink,
    }  # fmt: skip
    if isinstance(kind, str) and kind in known:
        with suppress(ValueError):
            known[kind].model_validate(block)
            return block
    shown = truncate(inert(kind), MAX_NAME_CHARS) if isinstance(kind, str) else "a block"
    return {"type": "text", "text": f"[{shown} that cannot be read]"}
