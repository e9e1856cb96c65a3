"""Preview the first request of a turn, and describe requests: as text, and in tokens."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.turn_prompt import stable_bytes, turn_request
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import (
    Capability,
    JsonSchema,
    Message,
    Part,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from taiwa.kernel.text import estimate_tokens
from taiwa.models.http_api.capabilities import file_text
from taiwa.operations.results import RequestPreview
from taiwa.sessions.commit_turn import TurnInput, TurnOptions, step_of
from taiwa.sessions.session import open_priced_model
from taiwa.settings import Settings

if TYPE_CHECKING:
    from taiwa.kernel.runtime import Tool
    from taiwa.models.http_api.provider_interface import Target

ASSUMED: frozenset[Capability] = frozenset({"json_schema", "tools"})
"""Capabilities of an unknown server."""
MESSAGE_TOKENS = 4
"""Tokens of a message in addition to its text: its role and delimiters."""


def preview_turn(
    conversation: Conversation,
    text: str,
    tools: "Sequence[Tool]" = (),
    target: "Target | None" = None,
    attachments: Sequence[Attachment] = (),
) -> RequestPreview:
    """Return the request that a turn would send first; nothing is sent. With a target it includes the body on the wire;
    without one the server is assumed to support schemas and function calling.

    Raises:
        InputError: the text is empty or too large, or the app searches documents before it calls a model.
        UnsupportedError: the model does not support the request.
    """
    capabilities = ASSUMED if target is None else target.capabilities
    request = first_turn_request(conversation, text, tools, capabilities, attachments)
    preview = RequestPreview(request, request_tokens(request), _cached_tokens(conversation, request))
    if target is None or target.codec is None:
        return preview
    call = target.codec.encode(request)
    return replace(preview, url=f"{target.base_url}/{call.path.lstrip('/')}", body=json.loads(call.body))


def first_turn_request(
    conversation: Conversation,
    text: str,
    tools: "Sequence[Tool]",
    capabilities: frozenset[Capability],
    attachments: Sequence[Attachment] = (),
) -> Request:
    """Return the request that a turn would send first to a model of these capabilities; nothing is sent.

    Raises:
        InputError: as `preview_turn`.
    """
    if conversation.app.documents is not None:
        raise InputError(
            f"the app {conversation.app.name!r} searches documents before its first request; send the text with -v to see what it found"
        )
    turn_input = TurnInput(conversation, text, attachments=tuple(attachments))
    turn_input.check()
    return first_request(step_of(turn_input, TurnOptions(), tools)(conversation), capabilities)


def capabilities_of(settings: Settings) -> frozenset[Capability]:
    """Return what the server of the configured model can do; without a model it is assumed."""
    return ASSUMED if settings.model is None else open_priced_model(None, settings).model.capabilities


def _cached_tokens(conversation: Conversation, request: Request) -> int:
    """Estimate the tokens of the prefix that the request shares with the one of the last turn."""
    if not conversation.turns:
        return 0
    before = replace(conversation, turns=conversation.turns[:-1])
    now = stable_bytes(request).decode()
    past = conversation.turns[-1]
    constrained = request.constraint is not None
    last = stable_bytes(turn_request(before, past.user, past.parts.attachments, constrained=constrained)).decode()
    shared = next((at for at, (a, b) in enumerate(zip(now, last, strict=False)) if a != b), min(len(now), len(last)))
    return estimate_tokens(now[:shared])


def known_tools(app: App) -> "tuple[Tool, ...]":
    """Return the built-in tools and plug-ins of an app; tools passed by a program are unknown here."""
    if not app.tools:
        return ()
    from taiwa.tools.registry import named_tool

    return tuple(tool for tool in map(named_tool, app.tools) if tool is not None)


def request_text(request: Request) -> str:
    """Write a request as text: every message with its role and an estimate of its tokens.

    A part marked "not kept" is sent with this request only; the next request begins with everything above it too.
    """
    blocks = [_message(message) for message in request.messages]
    if isinstance(request.constraint, JsonSchema):
        blocks.append(f"── constraint: JSON Schema {request.constraint.name!r} ──")
    if request.tools:
        blocks.append(f"── tools: {', '.join(tool.name for tool in request.tools)} ──")
    files = sum(each.kind is not None for each in request.files)
    besides = f", and {_counted(files, 'image or PDF', 'images or PDFs')}" if files else ""
    size = f"{_about(request_tokens(request))} in {_counted(len(request.messages), 'message')}{besides}"
    blocks.append(f"── {size} ──")
    return "\n\n".join(blocks)


def request_tokens(request: Request) -> int:
    """Estimate the tokens of a request without a tokenizer, excluding images and PDFs, which servers count."""
    return sum(
        MESSAGE_TOKENS + sum(estimate_tokens(_words(part)) for part in message.parts) for message in request.messages
    )


def _message(message: Message) -> str:
    kept = [part for part in message.parts if not _transient(part)]
    blocks = [(message.role, kept), (f"{message.role}, not kept", [part for part in message.parts if _transient(part)])]
    lines: list[str] = []
    for title, parts in blocks:
        if parts or title == message.role:
            lines.append(f"── {title} ({_about(sum(estimate_tokens(_words(part)) for part in parts))}) ──")
            lines += [_words(part) for part in parts]
    return "\n".join(lines)


def _transient(part: Part) -> bool:
    return isinstance(part, Text) and part.transient


def _about(tokens: int) -> str:
    return f"about {_counted(tokens, 'token')}"


def _counted(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or f'{word}s'}"


def _words(part: Part) -> str:
    if isinstance(part, Attachment):
        if part.kind is None and part.data:
            return file_text(part).text
        return f"[{part.label}: {part.media_type}, {part.size:,} bytes]"
    if isinstance(part, ToolResult):
        return "\n".join(filter(None, (part.text, *map(_words, part.attachments))))
    return f"{part.name} {part.arguments}" if isinstance(part, ToolCall) else part.text
