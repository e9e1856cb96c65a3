"""Showing the exact request of a turn that is not sent."""

import json
from dataclasses import replace

from taiwa.apps.render import request_text, request_tokens
from taiwa.cli.screen import emit, say_line, tell
from taiwa.conversation.derive import tokens_of
from taiwa.conversation.history import Conversation
from taiwa.conversation.layout import stable_bytes, turn_request
from taiwa.flows.chat import check
from taiwa.kernel.records import Json
from taiwa.kernel.values import Request
from taiwa.models.wire import Target

__all__ = ["show_request"]


def show_request(conversation: Conversation, text: str, target: Target | None = None, *, as_json: bool = False) -> None:
    """Print the request that a turn would send, about how many tokens it has, and how many of them a cache should know.

    With the target of a model the JSON has the very body that would go to it; without one, the messages alone.

    Raises:
        InputError: the text cannot be said.
        UnsupportedError: the model cannot be asked so.
    """
    check(text)
    able = target is not None and "json_schema" in target.abilities
    request = turn_request(conversation, text, constrained=able or target is None)
    tokens, cached = request_tokens(request), known(conversation, request)
    if not as_json:
        say_line(request_text(request))
        if conversation.turns:
            tell(f"about {cached:,} of them are the beginning of the last request, which a prefix cache knows")
        return
    shown: dict[str, Json] = {"digest": request.digest, "tokens": tokens, "cached_tokens": cached}
    if target is None:
        shown["messages"] = [{"role": message.role, "content": message.text} for message in request.messages]
    else:
        call = target.codec.encode(request)
        shown |= {"url": f"{target.base_url}/{call.path.lstrip('/')}", "body": json.loads(call.body)}
    emit(shown)


def known(conversation: Conversation, request: Request) -> int:
    """About how many tokens begin the request as they began the last one."""
    if not conversation.turns:
        return 0
    now, last = stable_bytes(request).decode(), _last(conversation)
    shared = next((at for at, (a, b) in enumerate(zip(now, last, strict=False)) if a != b), min(len(now), len(last)))
    return tokens_of(now[:shared])


def _last(conversation: Conversation) -> str:
    """The lasting part of the request that the last turn sent."""
    before = replace(conversation, turns=conversation.turns[:-1])
    return stable_bytes(turn_request(before, conversation.turns[-1].user)).decode()
