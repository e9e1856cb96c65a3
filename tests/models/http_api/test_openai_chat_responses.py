import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ModelError, OverloadedError, ProtocolError, RateLimitError
from taiwa.kernel.messages import (
    Chunk,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    assistant,
    collect_response,
)
from taiwa.models.providers import resolve
from tests.models.pieces import PLACES, cut


def sse(*events: Any) -> bytes:
    """A stream as servers write it, with its end."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def chunks_of(body: bytes, name: str = "openai:gpt-4o", prefix: str = "") -> list[Chunk]:
    kind = "application/json" if body.startswith(b"{") else "text/event-stream"
    decoder = resolve(name).codec.decoder(kind, prefix)
    return decoder.feed(body) + decoder.close()


def read(body: bytes, name: str = "openai:gpt-4o", prefix: str = "") -> Response:
    return collect_response(chunks_of(body, name, prefix))


def whole(message: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(
        {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]} | more
    ).encode()


def test_a_stream_is_read_as_it_comes() -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("text/event-stream")
    body = sse(delta(role="assistant", content=""), delta(content="so "), delta(content="it is"), delta("stop"))
    first, second = body[: body.index(b"it is")], body[body.index(b"it is") :]

    assert decoder.feed(first) == [TextDelta("so ")]
    assert decoder.feed(second) == [TextDelta("it is"), StreamEnd("stop", model="m")]
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"), ("length", "length"), ("model_length", "length"), ("content_filter", "refusal"), ("eos", "stop"),
        ("tool_calls", "stop"), ("abort", "interrupted"),
    ],
)  # fmt: skip
def test_the_reason_of_the_end_is_translated(reason: str, finish: str) -> None:
    assert read(sse(delta(content="a"), delta(reason))).finish == finish


def test_the_stop_string_is_told_where_the_server_tells_it() -> None:
    event = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "<<"}]}
    token = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 128001}]}
    matched = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "matched_stop": "<<"}]}

    assert [read(sse(one), "vllm:x").stop for one in (event, token, matched)] == ["<<", None, "<<"]


def test_thoughts_are_kept_apart_from_words() -> None:
    body = sse(
        delta(reasoning_content="hm "), delta(reasoning="well"), delta(content="4", reasoning=None), delta("stop")
    )

    assert chunks_of(body)[:3] == [ThinkingDelta("hm "), ThinkingDelta("well"), TextDelta("4")]


def test_content_in_parts_is_read_as_words_and_thoughts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "4"}]

    response = read(sse(delta(content=parts), delta("stop")), "mistral:x")

    assert response.message.parts == (Thinking("hm"), Text("4"))


def test_a_refusal_is_shown_and_named() -> None:
    streamed = read(sse(delta(refusal="I can"), delta(refusal="not."), delta("stop")))
    at_once = read(whole({"role": "assistant", "content": None, "refusal": "I cannot."}))

    assert (streamed.text, streamed.finish) == (at_once.text, at_once.finish) == ("I cannot.", "refusal")
    assert (streamed.stop, at_once.stop) == ("refusal", "refusal")


def test_a_refusal_that_breaks_off_is_no_whole_answer() -> None:
    with pytest.raises(ProtocolError, match="in the middle"):
        read(sse(delta(refusal="I can")).removesuffix(b"data: [DONE]\n\n"))


def fragment(
    place: int | None, arguments: Any = None, name: str | None = None, identity: str | None = None
) -> dict[str, Any]:
    call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return call | ({} if place is None else {"index": place}) | ({} if identity is None else {"id": identity})


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment(0, "", "dice", "a"), fragment(0, '{"n"'), fragment(0, ":1}"), fragment(1, '{"n":2}', "dice", "b")],
        [fragment(0, '{"n"', "dice", "a"), fragment(1, '{"n"', "dice", "b"), fragment(0, ":1}"), fragment(1, ":2}")],
        [fragment(0, '{"n":1}', "dice", "a"), fragment(0, '{"n":2}', "dice", "b")],
        [fragment(None, '{"n":1}', "dice", "a"), fragment(None, '{"n":2}', "dice", "b")],
        [
            fragment(None, '{"n"', "dice", "a"),
            fragment(None, ":1}"),
            fragment(None, '{"n"', "dice", "b"),
            fragment(None, ":2}"),
        ],
        [fragment(None, '{"n"', "dice", "a"), fragment(None, ":1}", None, "a"), fragment(None, '{"n":2}', "dice", "b")],
        [fragment(0, {"n": 1}, "dice", "a"), fragment(1, {"n": 2}, "dice", "b")],
        [fragment(0, '{"n"', "dice"), fragment(0, ":1}", "dice", "a"), fragment(0, '{"n":2}', "dice", "b")],
        [
            fragment(0, '{"n"', "dice"),
            fragment(0, ":1}", "dice"),
            fragment(0, None, None, "a"),
            fragment(1, '{"n":2}', "dice", "b"),
        ],
        [fragment(0, '{"n"', "dice", "a"), fragment(0, ":1}", "dice", "a"), fragment(1, '{"n":2}', "dice", "b")],
    ],
)
def test_calls_are_put_together_whatever_binds_their_fragments(fragments: list[dict[str, Any]]) -> None:
    response = read(sse(*(delta(tool_calls=[one]) for one in fragments), delta("tool_calls")))

    calls = [(call.name, json.loads(call.arguments), call.id) for call in response.message.tool_calls]
    assert calls == [("dice", {"n": 1}, "a"), ("dice", {"n": 2}, "b")]
    assert response.finish == "tool_calls"


@pytest.mark.parametrize("place", [None, 0])
def test_calls_without_ids_are_read_one_by_one(place: int | None) -> None:
    fragments = [
        fragment(place, '{"n":1}', "dice"),
        fragment(place, '{"n":2}', "dice", ""),
        fragment(place, "{}", "clock"),
    ]

    response = read(sse(*(delta(tool_calls=[one]) for one in fragments), delta("stop")))

    assert [(call.name, call.arguments, call.id) for call in response.message.tool_calls] == [
        ("dice", '{"n":1}', ""),
        ("dice", '{"n":2}', ""),
        ("clock", "{}", ""),
    ]


def test_a_function_call_of_the_old_form_is_a_call() -> None:
    response = read(
        sse(
            delta(function_call={"name": "clock", "arguments": "{"}),
            delta(function_call={"arguments": "}"}),
            delta("function_call"),
        )
    )

    assert response.message.tool_calls == (ToolCall("clock", "{}"),)


@pytest.mark.parametrize(
    ("bill", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, Usage(10, 3)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(10, 3, 8)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 6}}, Usage(10, 3, 4, 6)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}, Usage(10, 3, 8)),
        ({"prompt_tokens": "10", "completion_tokens": "3"}, Usage(10, 3)),
        ({"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 8}}, Usage(10, 3, 8)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "cache_creation_input_tokens": 5}, Usage(10, 3, 0, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}, Usage(10, 3, 0, 0, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "completion_tokens_details": None}, Usage(10, 3)),
        ({"prompt_tokens": 10}, Usage(10)),
        ({"completion_tokens": 3}, None),
        ({"total_tokens": 13}, None),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_a_bill_is_read_in_every_dialect(bill: Any, usage: Usage | None) -> None:
    assert read(sse(delta("stop"), {"choices": [], "usage": bill})).usage == usage
    assert read(whole({"content": "a"}, usage=bill)).usage == usage


def test_a_bill_that_grows_with_each_event_counts_once() -> None:
    events = [delta(content="a") | {"usage": {"prompt_tokens": 5, "completion_tokens": count}} for count in (1, 2)]

    assert read(sse(*events, delta("stop") | {"usage": None})).usage == Usage(5, 2)


def test_a_bill_under_the_server_s_own_name_counts() -> None:
    assert read(
        sse(delta("stop") | {"x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 1}}})
    ).usage == Usage(5, 1)


def test_a_bill_within_the_choice_counts() -> None:
    last = delta("stop")
    last["choices"][0]["usage"] = {"prompt_tokens": 5, "completion_tokens": 1}

    assert read(sse(delta(content="a"), last)).usage == Usage(5, 1)


def test_a_stream_may_be_untidy() -> None:
    body = (
        b": keep-alive\n\n"
        + sse({"choices": []}, delta(role="assistant", content=None), delta(content="a"), {"choices": None}, delta("stop"), delta("length"))
        + sse(delta(content="late"), delta("stop"))
    )  # fmt: skip

    assert read(body) == Response(assistant("a"), "stop", model="m")


def test_only_the_first_of_several_choices_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}

    assert read(sse(delta(content="a"), other, delta("stop"))) == Response(assistant("a"), model="m")


def test_a_stream_without_its_last_line_has_ended_when_it_said_so() -> None:
    body = sse(
        delta(content="a"), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    )
    torn = body.removesuffix(b"\n\ndata: [DONE]\n\n")

    assert read(torn) == Response(assistant("a"), usage=Usage(5, 1), model="m")
    assert read(torn[:-9]) == Response(assistant("a"), model="m")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b": keep-alive\n\n",
        b"data: " + json.dumps(delta(content="a")).encode() + b"\n\n",
        b"data: " + json.dumps(delta(content="a")).encode() + b'\n\ndata: {"choi',
    ],
)
def test_an_answer_that_ends_in_the_middle_is_no_answer(body: bytes) -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("text/event-stream")
    decoder.feed(body)

    with pytest.raises(ProtocolError, match=r"in the middle|empty answer"):
        decoder.close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"data: {broken}\n\n", "text/event-stream"),
        (b"<!doctype html><p>Log in</p>", "text/html"),
        (b"<html></html>", "text/event-stream"),
        (b"hello", "text/html; charset=utf-8"),
    ],
)
def test_what_is_not_in_the_protocol_is_refused_at_once(body: bytes, kind: str) -> None:
    decoder = resolve("http://127.0.0.1:9/v1#m").codec.decoder(kind)

    with pytest.raises(ProtocolError, match="base URL leads to a model server") as caught:
        decoder.feed(body)

    assert caught.value.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [',
        b"[1]",
        b"null",
        b'{"ok": true}',
        b'{"choices": []}',
        b'{"choices": [{"message": 5}]}',
        b"{" * 9999,
    ],
)
def test_an_answer_of_one_piece_must_be_whole(body: bytes) -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("application/json")
    decoder.feed(body)

    with pytest.raises(ProtocolError):
        decoder.close()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
def test_a_server_may_send_the_other_kind_of_answer(kind: str) -> None:
    codec = resolve("openai:gpt-4o").codec
    answers = []

    for body in (b"  \n" + whole({"content": "a"}), sse(delta(content="a"), delta("stop"))):
        decoder = codec.decoder(kind)
        answers.append(collect_response(decoder.feed(body) + decoder.close()).text)

    assert answers == ["a", "a"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}}, RateLimitError),
        ({"error": {"message": "overloaded", "type": "server_error"}}, OverloadedError),
        ({"error": {"message": "no"}, "choices": []}, ModelError),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, OverloadedError),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "insufficient_system_resource"}]}, OverloadedError),
    ],
)
def test_a_failure_in_mid_stream_is_raised_after_what_was_said(error: Any, kind: type[ModelError]) -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("text/event-stream")

    said = decoder.feed(sse(delta(content="a"), error))

    assert said == [TextDelta("a")]
    for ask in (lambda: decoder.feed(b""), decoder.close):
        with pytest.raises(ModelError) as caught:
            ask()
        assert type(caught.value) is kind


def test_an_answer_without_end_is_refused() -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("application/json")
    piece = b" " * 2**20
    assert decoder.feed(b"{" + piece) == []

    with pytest.raises(ProtocolError, match="more than 64 MiB"):
        assert [decoder.feed(piece) for _ in range(64)]


def test_a_failure_in_an_answer_of_one_piece_is_raised() -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("application/json")
    decoder.feed(b'{"error": {"message": "out of memory", "type": "server_error"}}')

    with pytest.raises(OverloadedError, match="out of memory"):
        decoder.close()


def test_llama_repeats_the_prefix_in_answers_of_one_piece_only() -> None:
    message = {"role": "assistant", "content": "haha"}

    assert read(whole(message), "llamacpp:x", "ha").text == "ha"
    assert read(sse(delta(content="ha"), delta(content="ha"), delta("stop")), "llamacpp:x", "ha").text == "haha"


def test_mistral_repeats_the_prefix_in_streams_too() -> None:
    assert read(sse(delta(content="I "), delta(content="am well"), delta("stop")), "mistral:x", "I am ").text == "well"
    assert read(whole({"content": "I am well"}), "mistral:x", "I am ").text == "well"


def test_no_other_answer_loses_words_that_look_like_the_prefix() -> None:
    assert read(sse(delta(content="haha"), delta("stop")), "vllm:x", "ha").text == "haha"


def test_a_character_split_into_halves_over_two_events_is_joined() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00b"},"finish_reason":"stop"}]}\n\n'

    assert read(body).text == "a😀b"


PIECES = st.lists(st.text(max_size=5), max_size=6)


@given(PIECES, PIECES, st.text(max_size=6), PLACES, st.sampled_from(["\n", "\r\n"]))
def test_an_answer_reads_the_same_however_it_is_cut(said: list[str], thought: list[str], arguments: str, places: list[int], line_break: str) -> None:  # fmt: skip
    events = [delta(reasoning=piece) for piece in thought] + [delta(content=piece) for piece in said]
    events.append(delta(tool_calls=[fragment(0, arguments, "dice", "a")]))
    body = sse(*events, delta("stop")).replace(b"\n", line_break.encode())
    decoder = resolve("openai:gpt-4o").codec.decoder("text/event-stream")

    response = collect_response(
        [chunk for piece in cut(body, places) for chunk in decoder.feed(piece)] + decoder.close()
    )

    assert response.text == "".join(said)
    assert "".join(part.text for part in response.message.parts if isinstance(part, Thinking)) == "".join(thought)
    assert response.message.tool_calls == (ToolCall("dice", arguments if arguments.strip() else "{}", "a"),)


@given(st.binary(max_size=120), PLACES)
def test_any_bytes_end_in_an_answer_or_in_one_of_our_errors(body: bytes, places: list[int]) -> None:
    decoder = resolve("openai:gpt-4o").codec.decoder("text/event-stream")

    try:
        chunks = [chunk for piece in cut(body, places) for chunk in decoder.feed(piece)] + decoder.close()
    except ModelError:
        return

    assert isinstance(chunks[-1], StreamEnd)
