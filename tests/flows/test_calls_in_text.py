"""Function calls that a server returns as text."""

import json
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.calls_in_text import CallsInText
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import (
    Chunk,
    FinishReason,
    Message,
    Response,
    StreamEnd,
    TextDelta,
    ToolResult,
    ToolSpec,
    assistant,
    collect_response,
    user,
)
from tests.steps import lines_run

WEATHER = ToolSpec(
    "weather",
    "Look up the weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}'
ARGUMENTS = '{"city": "Oslo"}'
WRITTEN = [
    f"```json\n{CALL}\n```",
    f"```\n{CALL}\n```",
    f"```tool_call\n{CALL}\n```",
    f"```json\n{json.dumps(json.loads(CALL), indent=2)}\n```",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>{CALL}",
    CALL,
    f"[{CALL}]",
    '{"name": "weather", "parameters": {"city": "Oslo"}}',
    '{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
    '{"type": "function", "name": "weather", "parameters": {"city": "Oslo"}}',
    '{"type": "function", "function": {"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}}',
    f'{{"tool_calls": [{CALL}]}}',
    f'{{"function": "weather", "arguments": {ARGUMENTS}}}',
    f'{{"function": {{"name": "weather"}}, "arguments": {ARGUMENTS}}}',
    f'{{"tool": "weather", "arguments": {{"arguments": {ARGUMENTS}}}}}',
    f'[TOOL_CALLS]weather{{"arguments": {ARGUMENTS}}}',
    f"<tool_call>weather\n{CALL}</tool_call>",
    '<tool_call>{"arguments": {"city": "Oslo"}, "name": "functions.weather"}</tool_call>',
    "<tool_call>\n{'name': 'weather', 'arguments': {'city': 'Oslo'}}\n</tool_call>",
    f"<tool_call>\n{CALL[:-1]}\n</tool_call>",
    "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    "<function=weather><parameter=city>Oslo</function>",
    "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    '<function_calls><invoke name="weather"><parameter name="city">Oslo</parameter></invoke></function_calls>',
    f"<function=weather>{ARGUMENTS}</function>",
    f"[TOOL_CALLS][{CALL}]",
    f"[TOOL_CALLS]weather{ARGUMENTS}",
    f"[TOOL_CALLS]weather[CALL_ID]a1[ARGS]{ARGUMENTS}",
    f"<|python_tag|>{CALL}",
    "[weather(city='Oslo')]",
    "```tool_code\nprint(weather(city='Oslo'))\n```",
    "<|tool_call_start|>[weather(city='Oslo')]<|tool_call_end|>",
    f"<|tools|>functions.weather:0<|arguments|>{ARGUMENTS}<|end_of_tools|>",
    f"<｜call▁begin｜>function<｜sep｜>weather\n```json\n{ARGUMENTS}\n```<｜call▁end｜>",
    f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    '<|tools|>[{"weather": {"city": "Oslo"}}]<|end_of_tools|>',
    "<|tool_call>call:weather{city:'Oslo'}<tool_call|>",
    f"functools[{CALL}]",
    f"{{{CALL}}}",
    f"<tool_call>\n{{{CALL}}}\n</tool_call>",
    f"to=functions.weather json{ARGUMENTS}",
    f"to=functions.weather code {ARGUMENTS}",
]
REACT = f"Action: weather\nAction Input: {ARGUMENTS}\nObservation: 20 degrees"
TEXTS = [
    "Oslo is a city.",
    '```python\nprint({"name": "weather"})\n```\nIt prints.',
    '```json\n{"city": "Oslo"}\n```',
    '```json\n{"name": "calendar", "arguments": {"city": "Oslo"}}\n```',
    '```json\n{"name": "weather", "arguments": {"town": "Oslo"}}\n```',
    '```json\n{"name": "weather", "arguments": {"city": "Oslo", "unit": "K"}}\n```',
    '```json\n{"name": "weather"}\n```\nis no call.',
    '{"name": "Ann", "age": 3}',
    f"It writes `{CALL}` in a line.",
    "{not json",
    "``",
    "<tool_call>",
    "[1, 2]",
    "",
    "<b>weather</b> is a tool.",
    "[TODO] Write it.\n" * 20,
    "[INFO] weather </b>",
    "[NOTE] weather(city='Oslo')",
    '[WARNING] weather {"city": "Oslo"}',
    "See\n[weather(city='Oslo')](http://x)\nfor more.",
    "It is\n```python\n[weather(city='Oslo')]\n```\nin Python.",
    "{\n" * 100,
    "<call>weather</call>",
    "weather(city='Oslo')",
    "[weather(city='Oslo'), rain()]",
    "[weather('Oslo')]",
    "```python\nweather(city='Oslo')\n```",
    "`<tool_call>` and `[TOOL_CALLS]` are marks.",
    "[TOOL_CALLS]calendar{}",
    "<function=weather><parameter=town>Oslo</parameter></function>",
    f"```python\n<tool_call>{CALL}</tool_call>\n```\nshows one.",
    f'{{"type": "plan", "name": [\n{CALL}\n]}}',
    f"{REACT}\nA thing for functools[{CALL}.",
    f"We go to=functions.x {ARGUMENTS}",
    f"<think>I could write\n{CALL}\nbut no.</think>No.",
    f"<think>Hm.</think>So\n<think>{CALL}</think>no.",
    f"<|channel|>analysis<|message|>Or\n{CALL}<|end|><|start|>assistant<|channel|>final<|message|>No.",
]


def answer(
    pieces: Iterable[str],
    finish: FinishReason = "stop",
    messages: Sequence[Message] = (),
    *,
    is_prompted: bool = False,
) -> tuple[Response, list[Chunk]]:
    reader, chunks = CallsInText([WEATHER], messages, is_prompted=is_prompted), list[Chunk]()
    for each in (*map(TextDelta, pieces), StreamEnd(finish)):
        chunks += reader.feed(each)
    return collect_response(chunks), chunks


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_call_of_an_offered_tool_is_a_function_call_in_whatever_form_it_is_written(written: str, size: int) -> None:
    text = f"I look it up:\n{written}"

    response, _ = answer(text[at : at + size] for at in range(0, len(text), size))

    assert [(call.name, call.arguments) for call in response.message.tool_calls] == [("weather", ARGUMENTS)]
    assert (response.text, response.finish) == ("I look it up:\n", "tool_calls")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 1000])
def test_any_other_text_stays_as_it_is(text: str, size: int) -> None:
    response, _ = answer(text[at : at + size] for at in range(0, len(text), size))

    assert (response.text, response.message.tool_calls, response.finish) == (text, (), "stop")


SOURCES = (
    lambda words: user(f"It says:\n{words}\nWhat is that?"),
    lambda words: user("What is that?", [Attachment.from_bytes(words.encode(), "notes.txt")]),
    lambda words: Message("tool", (ToolResult(f"It says:\n{words}", "find"),)),
)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("source", SOURCES, ids=["text", "file", "result"])
def test_a_call_that_the_model_repeats_from_a_source_stays_text(written: str, source: Callable[[str], Message]) -> None:
    text = f"It says:\n{written}\nThat is all."

    response, _ = answer([text], messages=[source(written.replace("\n", "\n\n"))])
    own, _ = answer([text], messages=[source(written.replace("Oslo", "Bergen")), assistant(written)])

    assert (response.text, response.message.tool_calls, response.finish) == (text, (), "stop")
    assert len(own.message.tool_calls) == 1


def test_what_follows_a_call_was_written_without_its_result_and_is_dropped() -> None:
    response, _ = answer([f"```json\n{CALL}\n```\nIt is 20 degrees in Oslo.\n"])

    assert (response.text, len(response.message.tool_calls)) == ("", 1)


@pytest.mark.parametrize("size", [1, 1000])
def test_lines_of_react_are_a_call_where_the_prompt_describes_the_tools(size: int) -> None:
    text = f"Thought: I look it up.\n{REACT}"
    code = f"```text\n{REACT}\n```\n"

    response, _ = answer((text[at : at + size] for at in range(0, len(text), size)), is_prompted=True)
    shown, _ = answer([code], is_prompted=True)

    assert [call.arguments for call in response.message.tool_calls] == [ARGUMENTS]
    assert (response.text, shown.text) == ("Thought: I look it up.\n", code)


@pytest.mark.parametrize(
    "unit",
    ["<call>", "\n[", "`", "\n{", '{"name": [', '<call>{\\"</a>', "<call>weather<parameter=a>", " ", "<think>", "A"],
)
def test_each_piece_of_a_hostile_text_costs_the_same(unit: str) -> None:
    def work(length: int) -> int:
        return lines_run(answer, (unit * length)[:length])

    assert work(8_000) < 2.5 * work(4_000)


def test_backticks_in_a_line_open_no_block_of_code_wherever_a_piece_ends() -> None:
    response, _ = answer(["Call it ", "```, he said.\n", "[weather(city='Oslo')]\n"])

    assert len(response.message.tool_calls) == 1


def test_several_calls_are_one_request_each() -> None:
    other = CALL.replace("Oslo", "Bergen")

    response, _ = answer([f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{other}\n</tool_call>"])

    assert [call.arguments for call in response.message.tool_calls] == [ARGUMENTS, '{"city": "Bergen"}']


def test_code_of_another_kind_is_not_held_back() -> None:
    reader = CallsInText([WEATHER])

    assert reader.feed(TextDelta("```python\nx = ")) == [TextDelta("```python\nx = ")]
    assert reader.feed(TextDelta("<b>")) == [TextDelta("<b>")]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_call_may_follow_a_block_of_code_in_its_last_line(size: int) -> None:
    block = f"```python\n{CALL}\n```"

    response, _ = answer(f"{block}{CALL}"[at : at + size] for at in range(0, len(block + CALL), size))

    assert (response.text, [each.name for each in response.message.tool_calls]) == (block, ["weather"])


def test_a_call_in_thinking_that_does_not_end_is_made() -> None:
    response, _ = answer([f"<think>I look it up.\n<tool_call>{CALL}</tool_call>"])

    assert [call.arguments for call in response.message.tool_calls] == [ARGUMENTS]


def test_arguments_in_tags_have_the_types_of_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "xs": {"type": "array"},
            "m": {"type": "integer"},
        },
    }
    reader = CallsInText([ToolSpec("put", "Put.", schema)])
    tags = "".join(
        f"<parameter={key}>\n{text}\n</parameter>"
        for key, text in (("n", 1), ("s", "1\n<b>"), ("xs", "[2]"), ("m", ""))
    )

    reader.feed(TextDelta(f"<function=put>{tags}</function>"))
    response = collect_response(reader.feed(StreamEnd()))

    assert json.loads(response.message.tool_calls[0].arguments) == {"n": 1, "s": "1\n<b>", "xs": [2]}


def test_a_call_that_the_length_limit_cut_is_text() -> None:
    cut = "```json\n" + CALL[:-6]

    response, _ = answer([cut], "length")

    assert (response.text, response.message.tool_calls, response.finish) == (cut, (), "length")


PIECES = st.sampled_from(
    [
        *(
            "```json\n",
            "\n```\n",
            CALL,
            "{",
            "<tool_call>",
            "</tool_call>",
            "\n",
            "so ",
            '"',
            "[",
            "[TOOL_CALLS]",
            "weather",
        ),
        *(
            ARGUMENTS,
            "<function=weather>",
            "<parameter=city>",
            "</parameter>",
            "</function>",
            "<think>",
            "</think>",
            "<",
            "; ",
        ),
        *("weather(city='Oslo')", "]", "<|channel|>analysis<|message|>", "<|end|>"),
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_no_text_is_lost_before_the_first_call(pieces: list[str]) -> None:
    response, _ = answer(pieces)

    text = "".join(pieces)
    assert text.startswith(response.text)
    assert response.text == text or response.message.tool_calls


@given(st.lists(PIECES, max_size=8))
def test_pieces_make_no_difference(pieces: list[str]) -> None:
    whole, _ = answer(["".join(pieces)])
    single, _ = answer("".join(pieces))

    assert whole == single
