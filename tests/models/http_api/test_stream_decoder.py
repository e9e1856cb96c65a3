import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ProtocolError
from taiwa.kernel.messages import StreamEnd, TextDelta, ThinkingDelta, Usage, collect_response
from taiwa.models.http_api.stream_decoder import MOST_CHARS, EchoFilter, ResponseBuilder, ToolCallBuilder
from taiwa.models.providers import resolve
from tests.models.pieces import PLACES, cut


def unechoed(prefix: str, *pieces: str) -> str:
    echo = EchoFilter(prefix)
    return "".join(echo.feed(piece) for piece in pieces) + echo.close()


@given(st.text(max_size=6), st.text(max_size=12), PLACES)
def test_a_repeated_prefix_is_taken_off_wherever_the_words_are_cut(prefix: str, words: str, places: list[int]) -> None:
    assert unechoed(prefix, *cut(prefix + words, places)) == words


@given(st.text("ab ", max_size=4), st.text("ab ", max_size=6), PLACES)
def test_what_comes_out_does_not_depend_on_the_cuts(prefix: str, words: str, places: list[int]) -> None:
    assert unechoed(prefix, *cut(words, places)) == unechoed(prefix, words)


@pytest.mark.parametrize(
    ("prefix", "words", "own"),
    [
        ("2+2=", "2+2=4", "4"),
        ("2+2=", "4", "4"),
        ("2+2=", "2+3", "2+3"),
        ("2+2=", "2+", "2+"),
        ("Answer: ", "Answer: 4", "4"),
        ("Answer: ", "Answer:", ""),
        ("Answer:\n", "Answer: 4", " 4"),
        ("", "4", "4"),
        ("ha", "haha", "ha"),
        ("  ", "  x", "x"),
        ("  ", " x", " x"),
    ],
)
def test_only_the_whole_prefix_counts_as_repeated(prefix: str, words: str, own: str) -> None:
    assert unechoed(prefix, words) == own


def test_words_are_given_out_at_once_when_there_is_no_prefix() -> None:
    speech = ResponseBuilder()

    speech.add_text("so ")

    assert speech.take_chunks() == [TextDelta("so ")]
    assert speech.take_chunks() == []


def test_a_response_ends_once() -> None:
    speech = ResponseBuilder()
    speech.usage = Usage(1, 2)
    speech.end()
    speech.end()

    assert speech.take_chunks() == [StreamEnd(usage=Usage(1, 2))]


def test_halves_of_characters_meet_across_pieces_of_words_and_of_thoughts() -> None:
    speech = ResponseBuilder()

    for half in ("\ud83c", "\udfb2", "\ud83c"):
        speech.add_text(half)
        speech.add_thinking(half)
    speech.end()

    assert speech.take_chunks() == [
        TextDelta("🎲"),
        ThinkingDelta("🎲"),
        ThinkingDelta("\ufffd"),
        TextDelta("\ufffd"),
        StreamEnd(),
    ]


@pytest.mark.parametrize("said", ["stop", "tool_calls"])
def test_calls_decide_what_the_end_is_called(said: str) -> None:
    with_call, without = ResponseBuilder(), ResponseBuilder()
    with_call.calls.append(ToolCallBuilder(name="clock"))
    with_call.finish = without.finish = "stop" if said == "stop" else "tool_calls"
    with_call.end()
    without.end()

    assert collect_response(with_call.take_chunks()).finish == "tool_calls"
    assert collect_response(without.take_chunks()).finish == "stop"


def test_a_call_that_was_cut_off_is_not_a_finish_for_tools() -> None:
    speech = ResponseBuilder()
    speech.calls.append(ToolCallBuilder(name="clock", pieces=['{"ho']))
    speech.finish = "length"
    speech.end()

    assert collect_response(speech.take_chunks()).finish == "length"


def test_a_call_without_arguments_has_an_empty_object() -> None:
    speech = ResponseBuilder()
    speech.calls += [ToolCallBuilder("a", "clock"), ToolCallBuilder(name="clock", pieces=[" ", ""])]
    speech.end()

    calls = collect_response(speech.take_chunks()).message.tool_calls
    assert [(call.arguments, call.id) for call in calls] == [("{}", "a"), ("{}", "")]


def test_a_call_never_holds_half_a_character() -> None:
    [call] = ToolCallBuilder("x\ud83d", "dice\ude00", ['{"a": "\ud83d', '\ude00"}']).build()

    assert (call.id, call.name, call.arguments) == ("x\ufffd", "dice\ufffd", '{"a": "😀"}')


def test_half_a_million_fragments_of_arguments_are_joined_once() -> None:
    call = ToolCallBuilder("a", "clock")

    for piece in ("[", *["1,"] * 500_000, "1]"):
        call.add_arguments(piece)

    assert call.build()[0].arguments == f"[{'1,' * 500_000}1]"


def call_of_chat(index: int) -> dict[str, object]:
    call = {"id": f"c{index}", "function": {"name": "f", "arguments": "{}"}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def item_of_responses(index: int) -> dict[str, object]:
    item = {"id": f"i{index}", "type": "reasoning", "summary": [], "encrypted_content": "x"}
    return {"type": "response.output_item.done", "item": item}


def call_of_messages(index: int) -> dict[str, object]:
    block = {"type": "tool_use", "id": f"c{index}", "name": "f", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ("openai:gpt-4o?wire=chat", call_of_chat),
        ("openai:gpt-5?wire=responses", item_of_responses),
        ("anthropic:claude-x", call_of_messages),
    ],
)
def test_an_answer_of_endless_parts_ends(model: str, part: Callable[[int], dict[str, object]]) -> None:
    decoder = resolve(model).codec.decoder("text/event-stream")
    stream = "".join(f"data: {json.dumps(part(index))}\n\n" for index in range(1_002))

    with pytest.raises(ProtocolError, match="more than 1,000 calls or parts"):
        decoder.feed(stream.encode())


@pytest.mark.parametrize("add", [ResponseBuilder.add_text, ResponseBuilder.add_refusal, ResponseBuilder.add_thinking])
def test_an_endless_text_ends(add: Callable[[ResponseBuilder, str], None]) -> None:
    response = ResponseBuilder()
    add(response, "a" * MOST_CHARS)

    with pytest.raises(ProtocolError, match="more than 4,194,304 characters"):
        add(response, "a")
