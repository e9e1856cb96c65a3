"""Streams that were damaged on their way: every codec ends each of them with an answer or one of our errors."""

import json
import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import Chunk, Request, StreamEnd, TextDelta, ThinkingDelta, collect_response, user
from taiwa.kernel.serialization import Json, record
from taiwa.models.http_api.provider_interface import Codec
from taiwa.models.providers import resolve

Mutation = Callable[[random.Random, bytes], bytes]


def sse(*events: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n" for event in events)


def choice(finish: str | None = None, **delta: Json) -> Json:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CALL: Json = {"index": 0, "id": "call_1", "function": {"name": "weather", "arguments": '{"city": "奈良"}'}}
CHAT = sse(
    choice(role="assistant", content="So "), choice(reasoning_content="hm"), choice(content="it is 😀"),
    choice(tool_calls=[CALL]), choice("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
) + b"data: [DONE]\n\n"  # fmt: skip
MESSAGES = sse(
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So it is 😀"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "weather"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city": "奈'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '良"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
)
LOGPROBS: Json = {"tokens": ["So"], "token_logprobs": [-0.1], "top_logprobs": [{"So": -0.1}]}
COMPLETIONS = sse(
    {"choices": [{"index": 0, "text": "So ", "logprobs": LOGPROBS, "finish_reason": None}]},
    {"choices": [{"index": 0, "text": "it is 😀", "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}},
) + b"data: [DONE]\n\n"  # fmt: skip
RESPONSES = sse(
    {"type": "response.created", "response": {"model": "m"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
    {"type": "response.output_item.done", "output_index": 0,
     "item": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "eA"}},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "So it is 😀"},
    {"type": "response.output_item.added", "output_index": 2,
     "item": {"type": "function_call", "call_id": "t", "name": "weather", "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"city": "奈良"}'},
    {"type": "response.completed", "response": {"model": "m", "status": "completed", "usage": {"input_tokens": 9}}},
)  # fmt: skip
WIRES = {
    "chat": ("http://127.0.0.1:1/v1#m", CHAT),
    "mistral": ("mistral:m", CHAT),
    "llamacpp": ("llamacpp:m", CHAT),
    "messages": ("anthropic:claude-sonnet-4-5", MESSAGES),
    "responses": ("openai:gpt-5", RESPONSES),
    "completions": ("http://127.0.0.1:1/v1#m?wire=completions", COMPLETIONS),
}
VALUES = (b"null", b"true", b"-1", b"1e999", b"[]", b"{}", b'""', b'"\\ud83d"', b"[[[[", b"NaN", b"\xff", b"9" * 400)


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _flip(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def _swap(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n\n")
    chance.shuffle(lines)
    return b"\n\n".join(lines)


def _repeat(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n\n")
    return b"\n\n".join(line for line in lines for _ in range(chance.randrange(3)))


def _value(chance: random.Random, data: bytes) -> bytes:
    """Put another value behind a colon or into an array."""
    places = [place + 1 for place, byte in enumerate(data) if byte in b":[,"] or [0]
    place = chance.choice(places)
    end = next((at for at in range(place, len(data)) if data[at : at + 1] in b",}]\n"), len(data))
    return data[:place] + chance.choice(VALUES) + data[end:]


def _lines(chance: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", chance.choice((b"\r", b"\r\n", b"\n\n", b"", b"\n: ping\n")))


MUTATIONS: tuple[Mutation, ...] = (_cut, _flip, _swap, _repeat, _value, _lines)


def mutated(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.randrange(1, 5)):
        data = chance.choice(MUTATIONS)(chance, data)
    return data


def pieces(chance: random.Random, data: bytes) -> Iterator[bytes]:
    while data:
        size = chance.choice((1, 2, 7, 40, 1000))
        yield data[:size]
        data = data[size:]


def read(codec: Codec, data: Iterator[bytes]) -> tuple[list[Chunk], str]:
    """Decode as the client does: all chunks, and the error that ended them."""
    decoder = codec.decoder("text/event-stream")
    chunks: list[Chunk] = []
    try:
        for piece in data:
            chunks += decoder.feed(piece)
            if chunks and isinstance(chunks[-1], StreamEnd):
                return chunks, ""
        chunks += decoder.close()
    except ModelError as error:
        return chunks, error.message
    return chunks, ""


@pytest.mark.parametrize("wire", WIRES)
@given(st.integers(0, 2**32))
@example(0)
def test_a_damaged_stream_ends_with_an_answer_or_with_one_of_our_errors(wire: str, seed: int) -> None:
    name, stream = WIRES[wire]
    codec, chance = resolve(name).codec, random.Random(seed)
    assert codec is not None

    for _ in range(5):
        damaged = mutated(chance, stream)
        chunks, error = read(codec, pieces(chance, damaged))

        *begun, last = chunks or [None]
        assert error or isinstance(last, StreamEnd), damaged
        assert "\n" not in error
        assert all(isinstance(chunk, (TextDelta, ThinkingDelta)) for chunk in begun), damaged
        json.dumps(record(collect_response(chunks)), ensure_ascii=False).encode()  # whole characters only


@pytest.mark.parametrize("wire", WIRES)
@given(st.integers(0, 2**32))
def test_how_a_stream_is_cut_into_pieces_changes_nothing_that_it_says(wire: str, seed: int) -> None:
    name, stream = WIRES[wire]
    codec, chance = resolve(name).codec, random.Random(seed)
    assert codec is not None
    damaged = mutated(chance, stream)

    whole, whole_error = read(codec, iter([damaged]))
    parts, parts_error = read(codec, pieces(chance, damaged))

    assert collect_response(whole) == collect_response(parts)
    assert bool(whole_error) == bool(parts_error)


@pytest.mark.parametrize("wire", WIRES)
def test_an_undamaged_stream_is_read_whole(wire: str) -> None:
    name, stream = WIRES[wire]
    codec = resolve(name).codec
    assert codec is not None

    chunks, error = read(codec, iter([stream]))

    assert error == ""
    assert collect_response(chunks).text == "So it is 😀"
    assert codec.encode(Request((user("x"),))).body
