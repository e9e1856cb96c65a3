"""The exact request that an app would send, and a text of it for people."""

from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.derive import tokens_of
from taiwa.conversation.history import begin
from taiwa.conversation.layout import turn_request
from taiwa.kernel.values import JsonSchema, Message, Part, Request, Text, ToolCall, ToolSpec

__all__ = ["render_request", "request_text", "request_tokens"]

MESSAGE_TOKENS = 4
"""What a message costs beside its words: its role and its ends."""


def render_request(app: App, text: str) -> Request:
    """The request of the first turn with an app, exactly as it would be sent; to a model that takes tools, if it has any.

    Raises:
        InputError: the app needs parameters that were not filled in.
    """
    opened = app if app.values or not app.params else app.opened({})
    request = turn_request(begin(opened), text, constrained=opened.reply == "json" and not opened.tools)
    return replace(request, tools=_specs(opened)) if opened.tools else request


def _specs(app: App) -> tuple[ToolSpec, ...]:
    """The built-in tools of an app; of those that a program hands over nothing is known here."""
    from taiwa.tools import builtin

    return tuple(builtin()[name].spec for name in app.tools if name in builtin())


def request_text(request: Request) -> str:
    """A request for people to read: every message with its role, its words as they are, and about how many tokens.

    A part marked “not kept” is sent with this request only; everything above it begins the next one as well.
    """
    blocks = [_message(message) for message in request.messages]
    if isinstance(request.constraint, JsonSchema):
        blocks.append(f"── constraint: JSON Schema {request.constraint.name!r} ──")
    if request.tools:
        blocks.append(f"── tools: {', '.join(tool.name for tool in request.tools)} ──")
    blocks.append(f"── {_about(request_tokens(request))} in {_counted(len(request.messages), 'message')} ──")
    return "\n\n".join(blocks)


def request_tokens(request: Request) -> int:
    """Estimate the tokens of a request without a tokenizer."""
    return sum(MESSAGE_TOKENS + sum(tokens_of(_words(part)) for part in message.parts) for message in request.messages)


def _message(message: Message) -> str:
    kept = [part for part in message.parts if not _transient(part)]
    blocks = [(message.role, kept), (f"{message.role}, not kept", [part for part in message.parts if _transient(part)])]
    lines: list[str] = []
    for title, parts in blocks:
        if parts or title == message.role:
            lines.append(f"── {title} ({_about(sum(tokens_of(_words(part)) for part in parts))}) ──")
            lines += [_words(part) for part in parts]
    return "\n".join(lines)


def _transient(part: Part) -> bool:
    return isinstance(part, Text) and part.transient


def _about(tokens: int) -> str:
    return f"about {_counted(tokens, 'token')}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _words(part: Part) -> str:
    return f"{part.name} {part.arguments}" if isinstance(part, ToolCall) else part.text
