"""Recorded conversations with native calls, through the codecs: encoded as a stream, cut, decoded, and sent as history."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias, cast

from evals.recorded.corpora import Conversation
from evals.recorded.sums import RecordedSum, check_recorded_sum
from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import Message, Request, Text, ToolCall, ToolResult, collect_response, user
from taiwa.kernel.serialization import Json, item_at, items_at, text_at, value
from taiwa.models.http_api.provider_interface import Codec
from taiwa.models.providers import resolve

__all__ = ["Cut", "ReplayedConversation", "replay_conversation"]

Cut: TypeAlias = Callable[[str], Iterable[str]]
"""A way to cut a text into pieces."""
CODEC = cast("Codec", resolve("openai:gpt-4o").codec)
CALCULATOR = "calculate"


@value
class ReplayedConversation:
    """The result of one replay: counts, differences from the record, hazards, calculations."""

    calls: int
    results: int
    differing: tuple[str, ...]
    hazards: Mapping[str, int]
    sums: tuple[RecordedSum, ...]


def replay_conversation(conversation: Conversation, cuts: Mapping[str, Cut]) -> ReplayedConversation:
    """Replay one conversation: every answer through the decoder in every kind of pieces, then all through the encoder."""
    messages = tuple(_message(each) for each in conversation.messages)
    differing = [
        f"message {place}, {name}"
        for place, (row, message) in enumerate(zip(conversation.messages, messages, strict=True))
        if message.role == "assistant"
        for name, cut in cuts.items()
        if not _streams(row, message, cut)
    ]
    if not _is_resent(conversation, messages):
        differing.append("the request with all of it")
    calls = [call for message in messages for call in message.tool_calls]
    results = _pairs(messages)
    return ReplayedConversation(
        len(calls),
        len(results),
        tuple(differing),
        _conversation_hazards(calls, results),
        tuple(_conversation_sums(calls, results)),
    )


def _message(row: dict[str, Json]) -> Message:
    words = text_at(row, "content")
    if row.get("role") == "tool":
        result = ToolResult(words, text_at(row, "name"), text_at(row, "tool_call_id"))
        return Message("tool", (result,))
    if row.get("role") != "assistant":
        return user(words)
    calls = tuple(
        ToolCall(text_at(each, "function", "name"), text_at(each, "function", "arguments"), text_at(each, "id"))
        for each in items_at(row, "tool_calls")
    )
    return Message("assistant", (Text(words), *calls))


def _streams(row: dict[str, Json], message: Message, cut: Cut) -> bool:
    """Return whether an answer is decoded as recorded: cut into many deltas, and one delta into many packets."""
    deltas, one = _stream(_events(row, cut)), _stream(_events(row, lambda text: [text]))
    return _read([deltas]) == _read(each.encode() for each in cut(one.decode("ascii"))) == message


def _stream(events: Iterable[Json]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events) + b"data: [DONE]\n\n"


def _read(packets: Iterable[bytes]) -> Message | None:
    decoder = CODEC.decoder("text/event-stream")
    try:
        chunks = [chunk for packet in packets for chunk in decoder.feed(packet)]
        return collect_response([*chunks, *decoder.close()]).message
    except ModelError:
        return None


def _events(row: dict[str, Json], cut: Cut) -> Iterator[Json]:
    yield from (_event({"content": piece}) for piece in cut(text_at(row, "content")))
    calls = items_at(row, "tool_calls")
    for place, call in enumerate(calls):
        yield _event({"tool_calls": [{"index": place, "id": item_at(call, "id"), "function": _function_delta(call)}]})
        for piece in cut(text_at(call, "function", "arguments")):
            yield _event({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield _event({}, "tool_calls" if calls else "stop")


def _function_delta(call: Json) -> Json:
    return {"name": text_at(call, "function", "name"), "arguments": ""}


def _event(delta: dict[str, Json], finish: str | None = None) -> Json:
    return {"model": "recorded", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _is_resent(conversation: Conversation, messages: tuple[Message, ...]) -> bool:
    """Return whether the conversation, sent as history, has the texts, calls and results of the record."""
    body = json.loads(CODEC.encode(Request(messages)).body)
    sent = tuple(_message(each) for each in items_at(body, "messages") if isinstance(each, dict))
    return (
        _without_ids(sent) == _without_ids(messages)
        and _pairs(sent) == _pairs(messages)
        and len(sent) == len(conversation.messages)
    )


def _without_ids(messages: Iterable[Message]) -> list[tuple[str, str, list[tuple[str, str]], list[str]]]:
    """Return messages without ids: an id that occurs twice is sent once."""
    return [
        (
            each.role,
            each.text,
            [(call.name, call.arguments) for call in each.tool_calls],
            [part.text for part in each.parts if isinstance(part, ToolResult)],
        )
        for each in messages
    ]


def _pairs(messages: Iterable[Message]) -> list[tuple[int, str]]:
    """Return each result with the position of its call; -1 without a call."""
    places, found, place = dict[str, int](), list[tuple[int, str]](), 0
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            places[part.id] = place
            place += 1
        elif isinstance(part, ToolResult):
            found.append((places.get(part.call, -1), part.text))
    return found


def _conversation_hazards(calls: Sequence[ToolCall], results: Sequence[tuple[int, str]]) -> Mapping[str, int]:
    answered = {place for place, _ in results}
    found = {
        "arguments that are not a JSON object": sum(not isinstance(_arguments(call), dict) for call in calls),
        "the same call twice in a row": sum(
            (one.name, one.arguments) == (two.name, two.arguments) for one, two in pairwise(calls)
        ),
        "a repeated id": len(calls) - len({call.id for call in calls}),
        "a call without a result": len(set(range(len(calls))) - answered),
        "a result without a call": sum(place < 0 for place, _ in results),
    }
    return {name: count for name, count in found.items() if count}


def _arguments(call: ToolCall) -> Json:
    try:
        return cast("Json", json.loads(call.arguments))
    except ValueError:
        return None


def _conversation_sums(calls: Sequence[ToolCall], results: Iterable[tuple[int, str]]) -> Iterator[RecordedSum]:
    for place, given in results:
        expression = text_at(_arguments(calls[place]), "expression") if place >= 0 else ""
        if expression and calls[place].name == CALCULATOR:
            yield check_recorded_sum(expression, given)
