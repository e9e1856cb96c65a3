"""Streams as servers and relays really write them: keep-alives, complete events beside pieces, and calls in fragments."""

import json
from typing import Any

import pytest

from taiwa.kernel.messages import Chunk, JsonSchema, Request, Response, TextDelta, collect_response, user
from taiwa.models.providers import resolve

CHAT, RESPONSES, MESSAGES, TEXT = (
    f"http://127.0.0.1:1/v1#m{wire}" for wire in ("", "?wire=responses", "?wire=messages", "?wire=completions")
)
DONE = b"data: [DONE]\n\n"


def event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def read(name: str, *pieces: bytes) -> Response:
    codec = resolve(name).codec
    assert codec is not None
    decoder = codec.decoder("text/event-stream")
    chunks: list[Chunk] = [chunk for piece in pieces for chunk in decoder.feed(piece)]
    return collect_response([*chunks, *decoder.close()])


def calls_of(response: Response) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in response.message.tool_calls]


# --- keep-alives ------------------------------------------------------------------------------------------------------

STREAMS = {
    CHAT: [
        event({"choices": [{"index": 0, "delta": {"content": "Hel"}}]}),
        event({"choices": [{"index": 0, "delta": {"content": "lo"}}]}),
        event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        DONE,
    ],
    TEXT: [
        event({"choices": [{"index": 0, "text": "Hel"}]}),
        event({"choices": [{"index": 0, "text": "lo", "finish_reason": "stop"}]}),
        DONE,
    ],
    RESPONSES: [
        event({"type": "response.created", "response": {"model": "m"}}),
        event({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}),
        event({"type": "response.output_text.delta", "output_index": 0, "delta": "lo"}),
        event({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ],
    MESSAGES: [
        event({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}),
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hel"}}),
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}}),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        event({"type": "message_stop"}),
    ],
}


@pytest.mark.parametrize("wire", STREAMS)
@pytest.mark.parametrize(
    "frame",
    [
        b"data:\n\n", b"data: \n\n", b"data: ping\n\n", b"data: keep-alive\n\n", b"data: : PROCESSING\n\n", b": ping\n\n",
        b":\n\n", b"event: ping\ndata:\n\n", b"event: ping\ndata: {}\n\n", b"event: heartbeat\ndata: 1700000000\n\n",
        b'data: {"type": "ping"}\n\n', b"data: null\n\n", b"data: []\n\n", b'data: "ping"\n\n', b"\n\n", b"\r\n\r\n",
    ],
)  # fmt: skip
def test_a_keep_alive_is_no_part_of_an_answer(wire: str, frame: bytes) -> None:
    stream = STREAMS[wire]

    response = read(wire, frame, *(piece for each in stream[:-1] for piece in (each, frame)), stream[-1])

    assert (response.text, response.finish) == ("Hello", "stop")


# --- responses --------------------------------------------------------------------------------------------------------

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": ""}
FULL = {**CALL, "arguments": '{"a":1}'}
OTHER = {**FULL, "id": "fc_2", "call_id": "c2", "arguments": '{"a":2}'}
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}


def added(item: object, **more: object) -> bytes:
    return event({"type": "response.output_item.added", "item": item, **more})


def done(item: object, **more: object) -> bytes:
    return event({"type": "response.output_item.done", "item": item, **more})


def arguments(kind: str, text: str, **more: object) -> bytes:
    name = "delta" if kind == "delta" else "arguments"
    return event({"type": f"response.function_call_arguments.{kind}", name: text, **more})


def text(kind: str, words: str, **more: object) -> bytes:
    return event({"type": f"response.output_text.{kind}", "delta" if kind == "delta" else "text": words, **more})


def completed(*output: object, **more: object) -> bytes:
    return event({"type": "response.completed", "response": {"status": "completed", "output": output, **more}})


ADD = [("add", '{"a":1}')]
TWO = [*ADD, ("add", '{"a":2}')]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([added(CALL, output_index=0), arguments("done", '{"a":1}', output_index=0), completed()], ADD),
        ([added(CALL), arguments("done", '{"a":1}', item_id="fc_1"), completed()], ADD),
        ([added(CALL), arguments("done", '{"a":1}'), done(CALL), completed()], ADD),
        ([added(FULL, output_index=0), completed()], ADD),
        ([added(FULL, output_index=0), arguments("delta", '{"a"', output_index=0),
          arguments("delta", ":1}", output_index=0), completed()], ADD),
        ([added(CALL, output_index=0), completed(FULL)], ADD),
        ([completed(FULL)], ADD),
        ([completed(FULL, OTHER)], TWO),
        ([added(FULL, output_index=0), done(FULL, output_index=0), completed(FULL, OTHER)], TWO),
        ([added(CALL), added(OTHER | {"arguments": ""}), arguments("delta", '{"a":1}', item_id="fc_1"),
          arguments("delta", '{"a":2}', item_id="fc_2"), completed()], TWO),
    ],
)  # fmt: skip
def test_arguments_count_wherever_a_responses_server_sends_them(pieces: list[bytes], calls: list[Any]) -> None:
    assert calls_of(read(RESPONSES, *pieces)) == calls


@pytest.mark.parametrize(
    "pieces",
    [
        [text("done", "Hello", output_index=0, content_index=0), completed()],
        [text("delta", "Hel", output_index=0), text("done", "Hello", output_index=0), completed(MESSAGE)],
        [text("delta", "Hel"), text("delta", "lo"), text("done", "Hello"), done(MESSAGE), completed(MESSAGE)],
        [text("delta", "Hello", output_index=1), completed(REASONING, MESSAGE)],
        [event({"type": "response.content_part.done", "output_index": 0, "part": MESSAGE["content"][0]}), completed()],
        [done(MESSAGE), completed()],
        [completed(MESSAGE)],
        [completed(REASONING, MESSAGE)],
        [completed(output_text="Hello")],
        [text("delta", "Hello"), event({"type": "response.done", "response": {"status": "completed"}})],
    ],
)
def test_a_text_counts_once_wherever_a_responses_server_sends_it(pieces: list[bytes]) -> None:
    assert read(RESPONSES, *pieces).text == "Hello"


def test_reasoning_that_a_responses_server_sends_when_it_is_complete_is_read_once() -> None:
    pieces = [
        event({"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 0, "text": "Hm."}),
        done(REASONING, output_index=0),
        completed(REASONING, MESSAGE),
    ]

    response = read(RESPONSES, *pieces)

    assert [part.text for part in response.message.thinking] == ["Hm."]
    assert response.text == "Hello"


# --- calls of the chat protocol ---------------------------------------------------------------------------------------


def fragment(name: str | None = None, given: str | None = None, **more: object) -> dict[str, object]:
    function = {key: part for key, part in (("name", name), ("arguments", given)) if part is not None}
    return {**more, "function": function}


def fragments(*pieces: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"tool_calls": pieces}}]})


END = [event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}), DONE]
BOTH = [("add", '{"a":1}'), ("mul", '{"a":2}')]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # without an index
        ([fragments(fragment("add", '{"a":1}', id="c1"), fragment("mul", '{"a":2}', id="c2"))], BOTH),
        ([fragments(fragment("add", '{"a"', id="c1")), fragments(fragment("mul", '{"a"', id="c2")),
          fragments(fragment(None, ":1}", id="c1")), fragments(fragment(None, ":2}", id="c2"))], BOTH),
        ([fragments(fragment("add", "", id="c1")), fragments(fragment(None, '{"a":1}')),
          fragments(fragment("mul", "", id="c2")), fragments(fragment(None, '{"a":2}'))], BOTH),
        ([fragments(fragment("add", ""), fragment("mul", "")),
          fragments(fragment(None, '{"a"'), fragment(None, '{"a"')), fragments(fragment(None, ":1}"), fragment(None, ":2}"))], BOTH),
        ([fragments(fragment("add", '{"a":1}', id="c"), fragment("add", '{"a":2}', id="c"))], TWO),
        # names in fragments, and names so far
        ([fragments(fragment("a", "", index=0, id="c1")), fragments(fragment("dd", "", index=0)),
          fragments(fragment(None, '{"a":1}', index=0))], ADD),
        ([fragments(fragment("a", "", index=0, id="c1")), fragments(fragment("ad", "", index=0, id="c1")),
          fragments(fragment("add", '{"a":1}', index=0, id="c1"))], ADD),
        # several objects under one id, and what only looks like that
        ([fragments(fragment("add", '{"a":1}{"a":2}', index=0, id="c1"))], TWO),
        ([fragments(fragment("add", '{"a":1}', index=0, id="c1")), fragments(fragment(None, ' {"a":2}', index=0))], TWO),
        ([fragments(fragment("add", '{"a":1}', index=0, id="c1")), fragments(fragment("mul", '{"a":2}', index=0, id="c1"))], BOTH),
        ([fragments(fragment("add", '{"a":1}', index=0, id="c1")), fragments(fragment("add", '{"a":1}', index=0, id="c1"))], ADD),
        ([fragments(fragment("add", "{}", index=0, id="c1")), fragments(fragment(None, '{"a":1}', index=0))], ADD),
        ([fragments(fragment("add", "null", index=0, id="c1")), fragments(fragment(None, '{"a":1}', index=0))], ADD),
        ([fragments(fragment("add", '{"a"', index=0, id="c1")), fragments(fragment(None, '{"a":1}', index=0))], ADD),
        ([fragments(fragment("add", '{"a":1} then', index=0, id="c1"))], [("add", '{"a":1} then')]),
    ],
)  # fmt: skip
def test_calls_are_assembled_from_what_servers_send(pieces: list[bytes], calls: list[Any]) -> None:
    assert calls_of(read(CHAT, *pieces, *END)) == calls


@pytest.mark.parametrize("name", ["openai:gpt-4o", "openai:gpt-5", "anthropic:claude-sonnet-5", "ollama:x", "vllm:x"])
@pytest.mark.parametrize("rule", [True, {"type": "string"}, {"enum": ["a", "b"]}])
def test_a_rule_for_keys_that_forbids_nothing_is_never_sent(name: str, rule: Any) -> None:
    schema: dict[str, Any] = {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False,
        "propertyNames": rule,
    }  # fmt: skip
    codec = resolve(name).codec
    assert codec is not None

    body = codec.encode(Request((user("?"),), constraint=JsonSchema(schema, "Answer"))).body

    assert b"propertyNames" not in body
    assert b'"integer"' in body


def test_a_line_break_of_two_characters_is_never_split_between_chunks() -> None:
    codec = resolve(CHAT).codec
    assert codec is not None
    decoder = codec.decoder("text/event-stream")
    parts = [event({"choices": [{"index": 0, "delta": {"content": part}}]}) for part in ("a\r", "\nb\r", "c\r")]

    chunks = [chunk for part in parts for chunk in decoder.feed(part)]
    chunks += [*decoder.feed(END[0]), *decoder.feed(DONE)]

    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["a", "\r\nb", "\rc", "\r"]
