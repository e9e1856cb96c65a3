"""Showing the exact request of a turn that is not sent."""

from dataclasses import replace

from taiwa.apps.render import request_text, request_tokens
from taiwa.cli.screen import emit, say_line, tell
from taiwa.conversation.derive import tokens_of
from taiwa.conversation.history import Conversation
from taiwa.conversation.layout import stable_bytes, turn_request
from taiwa.flows.chat import check
from taiwa.kernel.records import Json, record
from taiwa.kernel.values import Request

__all__ = ["show_request"]


def show_request(conversation: Conversation, text: str, *, as_json: bool = False) -> None:
    """Print the messages that a turn would send, about how many tokens they are, and how many a cache should know.

    Raises:
        InputError: the text cannot be said.
    """
    check(text)
    request = turn_request(conversation, text)
    tokens, cached = request_tokens(request), known(conversation, request)
    if as_json:
        messages: Json = [record(message) for message in request.messages]
        emit({"digest": request.digest, "messages": messages, "tokens": tokens, "cached_tokens": cached})
        return
    say_line(request_text(request))
    if conversation.turns:
        tell(f"about {cached:,} of them are the beginning of the last request, which a prefix cache knows")


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
